"""Local search: its answers against exact ones, its bound against the relaxation, and what it promises."""

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import problems

import rposst_opt as ro
from rposst_opt.arrays import FloatArray
from rposst_opt.backends.iterative import select_iteratively
from rposst_opt.contract import Budget, Progress
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.results import targets_of
from rposst_opt.solvers import climber, local_search
from rposst_opt.solvers.kernels.cut_mixture import make_cut_mixture
from rposst_opt.solvers.kernels.problem_arrays import scaled_problem_arrays
from rposst_opt.solvers.kernels.swaps import settle_rows
from rposst_opt.solvers.kernels.tuple_game import make_tuple_game
from rposst_opt.solvers.local_search import Climb, LocalSearch
from rposst_opt.solvers.relaxation import Relaxation


def answers(n_items: int, n_policies: int, seed: int) -> FloatArray:
    """Right and wrong answers of policies with three skills to items of different difficulty."""
    rng = np.random.default_rng(seed)
    skills, loads = rng.normal(size=(n_policies, 3)), rng.gamma(2.0, 0.5, size=(n_items, 3))
    log_odds = loads @ skills.T - rng.normal(size=(n_items, 1))
    return (rng.random((n_items, n_policies)) < 1 / (1 + np.exp(-log_odds))).astype(np.float64)


def made(kind: str, n: int, p: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    if kind == "answers":
        return answers(n, p, seed)
    if kind == "uniform":
        return rng.random((n, p))
    if kind == "low-rank":
        return rng.random((n, 2)) @ rng.random((2, p)) + 0.05 * rng.normal(size=(n, p))
    return racing_arrows(n, rng).to_numpy()[:, :p]


def some_problems(count: int) -> list[ro.Problem]:
    rng = np.random.default_rng(0)
    measures = (ro.CVaR(0.01), ro.CVaR(0.1), ro.KOfN(2, 20), ro.WorstCase())
    found = []
    for seed in range(count):
        kind = ("answers", "uniform", "low-rank", "arrows")[seed % 4]
        n, p, m = int(rng.integers(15, 36)), int(rng.integers(8, 15)), int(rng.integers(1, 5))
        results = made(kind, n, p, seed)
        measure = measures[int(rng.integers(4))]
        targets = targets_of(results, (0, 1, 2, 4))
        found.append(ro.Problem(results=results, size=m, targets=targets, measure=measure))
    return found


@pytest.mark.slow
def test_it_equals_the_exact_optimum_in_95_of_100_problems() -> None:
    asked = some_problems(60)
    equal = 0
    for problem in asked:
        exact, found = ro.solve(problem, "exact"), ro.solve(problem, "local-search", kicks=20)
        assert exact.status is ro.Status.OPTIMAL
        assert found.objective >= exact.objective - 1e-9
        equal += found.objective <= exact.objective + 1e-9
    assert equal >= 0.95 * len(asked)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_it_is_never_worse_than_iterative_selection_or_anchors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = ("answers", "uniform", "low-rank", "arrows")[seed % 4]
    results = made(kind, int(rng.integers(30, 120)), int(rng.integers(8, 30)), seed)
    problem = ro.Problem(results=results, size=int(rng.integers(2, 9)), targets=targets_of(results, (0, 1, 2, 4)))
    found = ro.solve(problem, "local-search", kicks=1)
    assert found.objective <= select_iteratively(problem, "exact").objective + 1e-9
    assert found.objective <= ro.solve(problem, "kmeans-anchors").objective + 1e-9


def test_beside_a_search_the_relaxation_waits_where_it_can_prove_little() -> None:
    results = np.random.default_rng(0).random((40, 100))
    problem = ro.Problem(results=results, size=3, targets=targets_of(results, (0, 1, 2, 4)))
    climb = Climb(problem, LocalSearch(kicks=1), Budget(), is_alone=False)
    climb.settle_first_tuple()
    steps = climb.steps()
    seen = [(climb.kicks, climb.relaxation.is_settled) for _ in until_its_end(climb, steps)]
    assert any(kicks > 0 and not is_settled for kicks, is_settled in seen)
    assert climb.relaxation.is_settled  # in the end the bound is all that the relaxation proves
    assert climb.bound == pytest.approx(ro.solve(problem, "local-search", kicks=1).lower_bound / problem.unit, abs=1e-9)
    kicks = climb.kicks
    next(steps)  # kicks go on, in case that another one helps
    assert climb.kicks > kicks


def until_its_end(climb: Climb, steps: Iterator[None]) -> Iterator[None]:
    for step in steps:
        yield step
        if climb.has_come_to_its_end:
            return


def test_beside_a_search_a_bound_that_falls_behind_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    results = made("answers", 60, 30, 1)
    problem = ro.Problem(results=results, size=4, targets=targets_of(results, (0, 1, 2, 4)), measure=ro.Mean())

    def ended(trial: float) -> Climb:
        monkeypatch.setattr(local_search, "FAIR_TRIAL", trial)
        climb = Climb(problem, LocalSearch(kicks=1), Budget(), is_alone=False)
        climb.settle_first_tuple()
        assert len(list(itertools.islice(until_its_end(climb, climb.steps()), 300))) < 300
        return climb

    climb = ended(1e7)
    assert not climb.told_apart.is_settled and climb.told_apart.work > 1e7
    assert climb.told_apart.bound < 0.5 * climb.bound == 0.5 * climb.relaxation.bound


@pytest.mark.slow
@settings(max_examples=60)
@given(problems())
def test_its_bound_is_the_relaxations_and_below_every_test(problem: ro.Problem) -> None:
    found = ro.solve(problem, "local-search", kicks=1)
    tolerance = 1e-7 * problem.unit + problem.rounding
    selectable = len(problem.selectable_cases)
    relaxed = ro.solve(replace(problem, size=selectable), "exact")
    # All cases that are allowed, with any weights, as one set of cases: the relaxation by another name.
    assert found.lower_bound <= relaxed.objective + tolerance
    assert found.lower_bound >= relaxed.lower_bound - tolerance
    assert found.lower_bound <= ro.solve(problem, "exact").objective + tolerance


@pytest.mark.parametrize(("n_items", "n_models"), [(200, 40), (500, 60)])
def test_what_is_settled_is_settled_where_very_many_weights_are_as_good(
    n_items: int, n_models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights on more cases than models can be right about all of them, in very many ways: ties lead in circles."""
    gaps = []

    def watched(*arguments: Any) -> tuple[float, float]:
        lower, upper = settle_rows(*arguments)
        gaps.append(upper - lower)
        return lower, upper

    monkeypatch.setattr(climber, "settle_rows", watched)
    for seed in range(9):
        rng = np.random.default_rng(seed)
        chances = 1 / (1 + np.exp(-1.5 * rng.normal(size=(n_items, 1)) - rng.normal(size=(1, n_models))))
        results = (rng.random((n_items, n_models)) < chances).astype(float)
        ro.solve(ro.Problem(results=results, size=5), "local-search", kicks=1, effort=1)
        assert max(gaps) < 1e-9, seed


@pytest.mark.slow
def test_sets_of_cases_are_settled_whatever_the_measure_and_the_loss() -> None:
    """Probabilities like 1/13 and tables of 0 and 1 make cuts that are nearly alike, and these spoil a basis."""
    rng = np.random.default_rng(1)
    losses = [ro.AbsoluteError(), ro.PinballError(0.75), ro.SquaredError(), ro.HuberError(0.2)]
    for number in range(2000):
        n, p, n_targets = (int(most) for most in rng.integers([2, 1, 1], [8, 7, 4]))
        likely = rng.integers(1, 6, (p, n_targets)).astype(float)
        problem = ro.Problem(
            results=rng.integers(0, 2, (n, p)) if rng.random() < 0.5 else np.round(rng.random((n, p)), 1),
            size=1,
            measure=ro.KOfN(1, int(rng.integers(1, 40))),
            loss=losses[number % 4],
            targets=rng.dirichlet(np.ones(n), n_targets),
            probabilities=likely / likely.sum(),
        )
        arrays = scaled_problem_arrays(problem, np.arange(n))
        workspace, mixture = make_tuple_game(arrays, n), make_cut_mixture(arrays)
        for rows in (np.arange(max(1, n - 2)), np.arange(n), np.arange(n)[::-1].copy()):
            lower, upper = settle_rows(rows, 1e-11, arrays, workspace, mixture)
            assert abs(upper - lower) < 1e-9, (number, rows)


@pytest.mark.parametrize("most", [1000, 20])
@pytest.mark.parametrize("seed", range(4))
def test_the_relaxation_of_many_cases_is_that_of_a_linear_program(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least t with |Σ w_x A[x, j] - b_s| ≤ t in every scenario, over all weights: no column generation here."""
    monkeypatch.setattr(local_search, "MOST_CUTS", most)
    results = made(("answers", "uniform", "low-rank", "arrows")[seed], 150, 12, seed)
    problem = ro.Problem(results=results, size=3, targets=targets_of(results, (0, 1, 2, 4)), measure=ro.WorstCase())
    rows, targets = problem.results[:, problem.scenarios.policies].T, problem.scenarios.full_scores
    one = np.ones((len(targets), 1))
    relaxed = linprog(
        np.append(np.zeros(150), 1.0),
        A_ub=np.block([[rows, -one], [-rows, -one]]),
        b_ub=np.concatenate([targets, -targets]),
        A_eq=np.append(np.ones(150), 0.0)[None],
        b_eq=[1.0],
    )
    found = ro.solve(problem, "local-search", kicks=1)
    assert found.lower_bound <= relaxed.fun + 1e-9
    assert found.lower_bound == pytest.approx(relaxed.fun, abs=1e-7 if most == 1000 else 0.05)


@settings(max_examples=30)
@given(problems(), st.integers(0, 99))
def test_required_and_forbidden_cases_are_heeded(problem: ro.Problem, seed: int) -> None:
    test = ro.solve(problem, "local-search", kicks=2, seed=seed).test
    assert test is not None
    assert problem.why_not(test) is None


def test_the_number_of_threads_does_not_change_the_answer() -> None:
    results = answers(80, 25, 3)
    problem = ro.Problem(results=results, size=6, targets=targets_of(results, (0, 1, 2, 4)))
    found = [ro.solve(problem, "local-search", threads=threads, kicks=3) for threads in (1, 2, 3)]
    for other in found[1:]:
        assert other.test is not None
        assert found[0].test is not None
        assert other.test.cases == found[0].test.cases
        assert other.test.weights.tolist() == found[0].test.weights.tolist()
        assert other.stats.solved == found[0].stats.solved


def test_seeds_make_other_kicks() -> None:
    results = made("uniform", 40, 20, 1)
    problem = ro.Problem(results=results, size=5)
    solved = {ro.solve(problem, "local-search", seed=seed, kicks=2).stats.solved for seed in range(4)}
    assert len(solved) > 1


@pytest.mark.slow
def test_many_cases_are_solved_with_a_proved_gap_in_the_time_given() -> None:
    results = answers(1000, 40, 0)
    problem = ro.Problem(results=results, size=12, targets=targets_of(results, (0, 1, 2, 4)))
    ro.solve(ro.Problem(results=results[:20], size=2), "local-search", kicks=1)  # compiled by now
    started = time.perf_counter()
    found = ro.solve(problem, "local-search", time_limit_seconds=3.0)
    assert time.perf_counter() - started < 6.0
    assert found.test is not None
    assert 0.0 <= found.gap < 0.5 * found.objective
    assert found.objective < ro.solve(problem, "random").objective / 2
    assert found.objective <= ro.solve(problem, "kmeans-anchors").objective


def test_a_gap_of_zero_is_a_proof() -> None:
    """Two copies of an average case: the relaxation has it all."""
    results = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 0.5], [0.5, 0.5, 0.5]])
    found = ro.solve(ro.Problem(results=results, size=1), "local-search")
    assert found.test is not None
    assert found.test.cases == (2,)
    assert found.status is ro.Status.OPTIMAL
    assert found.stats.kicks == 0  # nothing had to be kicked


@settings(max_examples=40)
@given(problems())
def test_the_least_price_of_the_best_test_bounds_every_test(problem: ro.Problem) -> None:
    climb = Climb(problem, LocalSearch(), Budget())
    climb.settle_first_tuple()
    bound, rng = climb._least_price() * problem.unit, np.random.default_rng(0)
    for _ in range(20):
        weights = np.zeros(problem.n_cases)
        weights[list(problem.eligible_cases)] = rng.dirichlet(np.full(len(problem.eligible_cases), 0.3))
        test = problem.test(cases=range(problem.n_cases), weights=weights)
        assert bound <= problem.objective(test) + problem.allowance(1e-10)


def test_a_test_as_good_as_weights_on_all_cases_is_proved_by_its_own_prices() -> None:
    """No program is solved: three cuts are those at equal weights, at those of regret matching+, and at the test's."""
    results = answers(500, 20, 0)
    problem = ro.Problem(results=results, size=15, targets=targets_of(results, (0, 1, 2, 4)))
    climb = Climb(problem, LocalSearch(), Budget())
    climb.settle_first_tuple()
    assert climb.run() is None
    assert climb.best.value - climb.bound <= local_search.PROVED
    assert climb.kicks == 0
    assert len(climb.relaxation._cuts) == 3


def test_the_relaxation_goes_on_from_weights_that_it_is_offered() -> None:
    problem = ro.Problem(results=made("uniform", 60, 20, 2), size=8, required_cases=(50,), forbidden_cases=(0, 7))
    climb = Climb(problem, LocalSearch(kicks=1), Budget())
    climb.settle_first_tuple()
    climb.run()
    relaxation = Relaxation(climb.exact_arrays, climb.relaxation.rows)
    relaxation.offer(climb.best.rows, climb.best.weights / climb.best.weights.sum())
    assert relaxation.value == pytest.approx(climb.best.value, abs=1e-8)
    assert relaxation.rows[np.flatnonzero(relaxation.weights)].tolist() == sorted(
        climb.best.rows[climb.best.weights > 0].tolist()
    )


def test_it_stops_within_a_gap_that_is_asked_for() -> None:
    results = made("uniform", 60, 20, 2)
    problem = ro.Problem(results=results, size=4)
    bound = ro.solve(problem, "local-search", kicks=1).lower_bound
    found = ro.solve(problem, "local-search", gap=1.0)
    assert found.stats.kicks == 0
    assert found.lower_bound == pytest.approx(bound)


def test_progress_tells_objective_and_bound() -> None:
    results = made("uniform", 40, 20, 2)
    told: list[Progress] = []
    found = ro.solve(ro.Problem(results=results, size=4), "local-search", kicks=3, progress=told.append)
    assert told
    assert told[-1].objective == pytest.approx(found.objective)
    assert told[-1].lower_bound == pytest.approx(found.lower_bound)
    assert all(progress.lower_bound <= progress.objective for progress in told)


def test_without_time_there_is_a_test_all_the_same() -> None:
    results = answers(400, 30, 0)
    problem = ro.Problem(results=results, size=10)
    candidate = LocalSearch().solve(problem, Budget(time_limit_seconds=1e-9))
    assert candidate.test is not None
    assert math.isfinite(candidate.lower_bound)
    assert candidate.limit is not None


@pytest.mark.parametrize("backend", ["local-search", "exact"])
def test_losses_below_zero_are_bounded_by_what_they_can_be(backend: str) -> None:
    class BelowZero(ro.Loss):
        """|e| - 0.25"""

        @property
        def pieces(self) -> ro.PiecewiseQuadratic:
            return ro.PiecewiseQuadratic(knots=[0.0], coefficients=[[-0.25, -1.0, 0.0], [-0.25, 1.0, 0.0]])

    results = [[0.0, 0.3], [0.3, 0.0], [0.15, 0.15]]
    found = ro.solve(ro.Problem(results=results, size=1, loss=BelowZero()), backend)
    assert found.test is not None
    assert found.test.cases == (2,)
    assert found.objective == pytest.approx(-0.25)
    assert found.status is ro.Status.OPTIMAL


@pytest.mark.parametrize("option", ["kicks", "breadth", "threads"])
def test_counts_below_one_are_refused(option: str) -> None:
    with pytest.raises(ro.ProblemError, match=f"`{option}`"):
        LocalSearch(**{option: 0})
