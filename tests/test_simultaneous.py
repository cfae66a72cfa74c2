"""Algorithm 3 against the exact optimum of the simultaneous game, a linear program."""

from typing import Any

import numpy as np
import pytest

import rposst_opt as ro
from formulations.simultaneous import exploitability, simultaneous_optimum
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.solvers.simultaneous import MixedTest, Simultaneous


def arrows(n: int, size: int, **changes: Any) -> ro.Problem:
    table = racing_arrows(n, np.random.default_rng(5)).to_numpy()
    return ro.Problem(results=table, size=size, targets=ro.softmax_targets(table), **changes)


PROBLEMS = {
    "arrows": arrows(8, 2, measure=ro.CVaR(0.1)),
    "mean": arrows(7, 2, measure=ro.Mean()),
    "k of n": arrows(7, 1, measure=ro.KOfN(2, 9)),
    "required": arrows(7, 1, measure=ro.CVaR(0.2), required_cases=[2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_average_approaches_the_linear_programs_optimum_at_the_rate_of_regret(name: str) -> None:
    problem = PROBLEMS[name]
    gaps = [exploitability(problem, Simultaneous(rounds=rounds).play(problem)) for rounds in (50, 400, 3200)]
    assert all(gap >= -1e-7 for gap in gaps)
    # At least like 1/√T; CFR+ is usually faster.
    assert gaps[2] <= max(gaps[0] / 4, 1e-4)
    assert gaps[2] <= 0.01 * problem.unit


def test_one_round_by_hand() -> None:
    """Two cases, one policy, target 1/4 of the way: losses 1/4 and 3/4, so round 2 plays the first tuple alone."""
    problem = ro.Problem(results=[[0.0], [1.0]], size=1, targets=[[0.75, 0.25]])
    mixed = Simultaneous(rounds=2).play(problem)
    # Round 1 plays both alike, round 2 the first alone: averages 1 * 1/2 + 2 * 1 and 1 * 1/2, out of 3.
    assert [test.cases for test in mixed.tests] == [(0,), (1,)]
    np.testing.assert_allclose(mixed.probabilities, [2.5 / 3, 0.5 / 3])


def test_the_least_loss_variant_is_the_best_round() -> None:
    problem = PROBLEMS["arrows"]
    values = [Simultaneous(rounds=rounds, average=False).play(problem).objective(problem) for rounds in (1, 5, 50, 500)]
    assert values == sorted(values, reverse=True)
    assert values[-1] >= simultaneous_optimum(problem).lower_bound - 1e-7


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_simultaneous_optimum_is_never_above_the_sequential_one(name: str) -> None:
    problem = PROBLEMS[name]
    assert simultaneous_optimum(problem).objective <= ro.solve(problem, "exact").objective + 1e-7


@pytest.mark.slow
def test_sampled_rounds_come_close_too() -> None:
    problem = arrows(7, 2, measure=ro.KOfN(2, 10))
    mixed = Simultaneous(rounds=3000, draws=10, seed=1).play(problem)
    assert exploitability(problem, mixed) <= 0.05 * problem.unit
    again, other = (
        Simultaneous(rounds=50, draws=10, seed=1).play(problem),
        Simultaneous(rounds=50, draws=10, seed=2).play(problem),
    )
    repeated = Simultaneous(rounds=50, draws=10, seed=1).play(problem)
    assert again.objective(problem) == repeated.objective(problem) != other.objective(problem)


def test_tests_are_drawn_by_their_probabilities() -> None:
    problem = PROBLEMS["arrows"]
    tests = tuple(problem.test(cases=[case, case + 1], weights=[0.5, 0.5]) for case in (0, 2, 4))
    mixed = MixedTest(tests, np.array([0.5, 0.3, 0.2]))
    rng = np.random.default_rng(0)
    drawn = [mixed.draw(rng).cases for _ in range(5000)]
    for test, probability in zip(tests, mixed.probabilities, strict=True):
        assert drawn.count(test.cases) / 5000 == pytest.approx(probability, abs=0.03)
    expected = sum(p * problem.losses(test) for p, test in zip(mixed.probabilities, tests, strict=True))
    np.testing.assert_allclose(mixed.expected_losses(problem), expected)


def test_as_a_backend_it_hands_back_its_best_single_test() -> None:
    problem = PROBLEMS["arrows"]
    solution = ro.solve(problem, "simultaneous", rounds=300)
    mixed = Simultaneous(rounds=300).play(problem)
    assert solution.objective == min(problem.objective(test) for test in mixed.tests)
    assert solution.lower_bound == -np.inf


@pytest.mark.parametrize("options", [{"rounds": 0}, {"draws": 0}, {"rounds": True}], ids=str)
def test_options_without_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ro.ProblemError):
        Simultaneous(**options)
