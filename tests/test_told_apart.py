"""What so few cases cannot tell apart bounds every test: by hand, against all tests, and whatever the program says."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.solvers.choice_program import Branch, ChoiceProgram, Reply
from rposst_opt.solvers.kernels.problem_arrays import scaled_problem_arrays
from rposst_opt.solvers.relaxation import Relaxation
from rposst_opt.solvers.told_apart import ToldApart


def settled(problem: ro.Problem, most_steps: int = 200, below: float = math.inf) -> float:
    """The bound in the problem's own units, when no step raises it any more; weights are limited as `below` allows."""
    program = ToldApart(problem)
    if below < math.inf:
        program.limit_weights(below / problem.unit)
    for _ in range(most_steps):
        if program.is_settled:
            break
        program.step()
    return program.bound * problem.unit


def steps_of_a_ladder(policies: int) -> np.ndarray:
    """Case x is won by all policies after x: every two neighbours are told apart by one case alone."""
    return np.array([[float(policy > case) for policy in range(policies)] for case in range(policies - 1)])


def test_two_of_three_policies_that_one_case_leaves_alike() -> None:
    # Full scores 0, 1/2, 1. Half of each case leaves half of each pair: e₁ + e₂ ≥ 1/4 and e₂ + e₃ ≥ 1/4, and e₂ = 1/4
    # serves both. But either case alone leaves two neighbours alike, whose errors sum to 1/2: the mean is 1/6 at least.
    problem = ro.Problem(results=steps_of_a_ladder(3), size=1, measure=ro.Mean())
    assert settled(problem, most_steps=2) == pytest.approx(1 / 12)
    assert settled(problem) == pytest.approx(1 / 6)
    assert ro.solve(problem).objective == pytest.approx(1 / 6)


@pytest.mark.parametrize("below", [math.inf, 0.06])
def test_branches_that_are_solved_at_the_same_time_prove_the_same(below: float) -> None:
    table = racing_arrows(40, np.random.default_rng(2)).to_numpy()
    problem = ro.Problem(results=table, size=6, measure=ro.Mean())
    one_by_one, at_the_same_time = ToldApart(problem), ToldApart(problem)
    if below < math.inf:
        one_by_one.limit_weights(below)
        at_the_same_time.limit_weights(below)
    with ThreadPoolExecutor(3) as pool:
        for _ in range(40):
            one_by_one.step()
            at_the_same_time.step(pool.map)
    assert one_by_one.bound > 0 and not one_by_one.is_settled  # so that several branches were open
    assert (at_the_same_time.bound, at_the_same_time.work) == (one_by_one.bound, one_by_one.work)


def test_squared_errors_of_two_alike_are_least_half_way() -> None:
    results = np.array([[0.0, 1.0], [0.5, 0.5], [0.5, 0.5]])
    problem = ro.Problem(results=results, size=1, measure=ro.Mean(), loss=ro.SquaredError(), forbidden_cases=[0])
    # Nothing that may be chosen tells the two apart. Full scores are 1/3 and 2/3; half-way each is off by 1/6.
    assert settled(problem) == pytest.approx(1 / 36)
    assert ro.solve(problem).objective == pytest.approx(1 / 36)


def test_required_cases_tell_apart_and_an_offset_does_not() -> None:
    ladder = steps_of_a_ladder(3)
    assert settled(ro.Problem(results=ladder, size=1, measure=ro.Mean(), required_cases=[0])) == pytest.approx(0.0)
    with_offset = ro.Problem(results=ladder, size=1, measure=ro.Mean(), offset=True).stated
    assert settled(with_offset) == pytest.approx(1 / 6)


@settings(max_examples=60)
@given(problems(), st.integers(1, 8), st.sampled_from([math.inf, 0.2, 0.01, 0.0]))
def test_no_test_is_better(problem: ro.Problem, steps: int, room: float) -> None:
    optimum = ro.solve(problem, "exact").objective
    below = optimum + room * problem.unit
    assert settled(problem.stated, 10 * steps, below) <= optimum + problem.allowance(1e-9)


def few_tell_apart(seed: int) -> ro.Problem:
    rng = np.random.default_rng(seed)
    results = (rng.random((8, 1)) < rng.random((1, 10))).astype(float)  # who wins one case wins all easier ones
    measure = [ro.Mean(), ro.CVaR(0.3), ro.WorstCase(), ro.KOfN(1, 3)][seed % 4]
    loss = [ro.AbsoluteError(), ro.SquaredError(), ro.PinballError(0.2), ro.HuberError(0.1)][seed // 4 % 4]
    return ro.Problem(results=results, size=2, measure=measure, loss=loss)


@given(st.integers(0, 999), st.sampled_from([math.inf, 0.1, 1e-3]))
def test_no_test_is_better_where_pairs_are_told_apart_by_few(seed: int, room: float) -> None:
    problem = few_tell_apart(seed)
    optimum = ro.solve(problem, "exact").objective
    assert settled(problem, below=optimum + room * problem.unit) <= optimum + problem.allowance(1e-9)


@settings(max_examples=25)
@given(st.integers(0, 999))
def test_with_weights_it_ends_at_the_optimum(seed: int) -> None:
    # Tangents of absolute errors are the errors themselves; then a choice that is whole has the objective of its test.
    rng = np.random.default_rng(seed)
    results = rng.random((7, 5)) if seed % 2 else (rng.random((7, 6)) < 0.5).astype(float)
    measure = [ro.Mean(), ro.CVaR(0.3), ro.WorstCase()][seed % 3]
    problem = ro.Problem(results=results, size=2 + seed % 2, measure=measure, offset=seed % 5 == 0).stated
    optimum = ro.solve(problem, "exact").objective
    assert settled(problem, 2000, below=optimum + 0.01) == pytest.approx(optimum, abs=2e-6)


def test_independent_numbers_have_a_bound_where_the_relaxation_has_none() -> None:
    problem = ro.Problem(results=np.random.default_rng(3).random((24, 20)), size=5, measure=ro.CVaR(0.2))
    found = ro.solve(problem, "local-search", kicks=2)
    assert found.lower_bound < 1e-6 and settled(problem, 100) < 1e-6
    assert 0.2 * found.objective < settled(problem, 100, below=found.objective) <= found.objective


@pytest.mark.parametrize("below", [math.inf, 0.4])
def test_what_is_proved_does_not_rest_on_the_program(below: float, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ro.Problem(results=steps_of_a_ladder(9), size=2, measure=ro.CVaR(0.4))
    optimum, solve = ro.solve(problem).objective, ChoiceProgram.solve
    assert optimum < 0.4
    rng = np.random.default_rng(0)

    def wrong(program: ChoiceProgram, branch: Branch) -> Reply:
        reply = solve(program, branch)
        multipliers = reply.multipliers * rng.normal(3.0, 5.0, len(reply.multipliers))
        return reply._replace(multipliers=multipliers, price=reply.price + rng.normal())

    monkeypatch.setattr(ChoiceProgram, "solve", wrong)
    assert settled(problem, below=below) <= optimum + 1e-12


def test_losses_that_fall_below_zero_by_a_tolerance_are_no_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    # As a pair with itself a scenario would come twice in a row, which HiGHS does not take, and then rows are missing.
    problem = ro.Problem(results=steps_of_a_ladder(9), size=2, measure=ro.CVaR(0.4))
    bound, solve = settled(problem), ChoiceProgram.solve

    def lower(program: ChoiceProgram, branch: Branch) -> Reply:
        reply = solve(program, branch)
        return reply._replace(losses=np.where(reply.losses == 0.0, -1e-6, reply.losses))

    monkeypatch.setattr(ChoiceProgram, "solve", lower)
    assert settled(problem) == pytest.approx(bound)


def test_racing_arrows_has_a_bound_where_the_relaxation_has_none() -> None:
    table = racing_arrows(60, np.random.default_rng(1)).to_numpy()
    problem = ro.Problem(results=table, size=6, measure=ro.Mean())
    relaxation = Relaxation(scaled_problem_arrays(problem, np.arange(60)), np.arange(60))
    relaxation.play()
    relaxation.close_in()
    assert relaxation.bound * problem.unit < 1e-6
    found = ro.solve(problem, "local-search", kicks=2).objective
    assert 0.2 * found < settled(problem) <= found


def test_where_many_cases_tell_every_pair_apart_it_ends_at_once() -> None:
    program = ToldApart(ro.Problem(results=np.random.default_rng(2).random((200, 10)), size=20))
    program.step()
    assert program.is_settled and program.bound == 0.0
