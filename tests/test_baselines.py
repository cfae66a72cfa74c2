"""The baselines against their definitions, tuple by tuple."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import every_tuple
from strategies import problems

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows

BASELINES = [name for name, entry in ro.BACKENDS.items() if entry.module == "rposst_opt.solvers.baselines"]


def losses_of(problem: ro.Problem, cases: tuple[int, ...]) -> np.ndarray:
    """Losses of equal weights on these cases, by (policy, target)."""
    scores = problem.results[list(cases)].mean(axis=0)
    return problem.loss.value(scores[:, None], (problem.targets @ problem.results).T)


def uniform_losses_of(problem: ro.Problem, cases: tuple[int, ...]) -> np.ndarray:
    """The same against the uniform target alone, by policy."""
    return problem.loss.value(problem.results[list(cases)].mean(axis=0), problem.results.mean(axis=0))


DEFINITIONS: dict[str, Callable[[ro.Problem, tuple[int, ...]], float]] = {
    "minimax-uniform": lambda problem, cases: losses_of(problem, cases).max(),
    "minimax-ttd-uniform": lambda problem, cases: losses_of(problem, cases).mean(axis=0).max(),
    "minimax-tnp-uniform": lambda problem, cases: uniform_losses_of(problem, cases).max(),
    "miniaverage-uniform": lambda problem, cases: uniform_losses_of(problem, cases).mean(),
}


def small_arrows(size: int = 2, **changes: Any) -> ro.Problem:
    table = racing_arrows(12, np.random.default_rng(3)).to_numpy()
    return ro.Problem(results=table, size=size, targets=ro.softmax_targets(table), **changes)


@pytest.mark.parametrize("name", DEFINITIONS)
@given(problem=problems())
@settings(max_examples=40)
def test_equal_weights_on_the_tuple_that_the_definition_says(name: str, problem: ro.Problem) -> None:
    solution = ro.solve(problem, name)
    assert solution.test is not None
    np.testing.assert_allclose(solution.test.weights, 1 / problem.n_chosen)
    values = {cases: DEFINITIONS[name](problem, cases) for cases in every_tuple(problem)}
    assert values[solution.test.cases] <= min(values.values()) + problem.allowance(1e-9)


@pytest.mark.parametrize("name", BASELINES)
@given(problem=problems())
@settings(max_examples=25)
def test_every_baseline_answers_every_problem_and_claims_nothing(name: str, problem: ro.Problem) -> None:
    solution = ro.solve(problem, name)
    assert solution.test is not None and problem.why_not(solution.test) is None
    assert solution.lower_bound == -np.inf
    assert solution.status is ro.Status.FEASIBLE
    best = ro.solve(problem, "exact")
    assert best.objective <= solution.objective + problem.allowance(1e-9)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_minimax_uniform_is_cvar_zero_rposst_without_a_round(size: int) -> None:
    """Initialisation and selection alone (T = 0): equal weights, and the least of the largest losses."""
    problem = small_arrows(size, measure=ro.CVaR(0.0))
    start = ro.solve(problem, "regret-matching", rounds=1)  # the first round plays the initial weights
    baseline = ro.solve(problem, "minimax-uniform")
    assert baseline.test is not None and start.test is not None
    assert baseline.objective == start.objective
    assert baseline.test.cases == start.test.cases


def test_iterative_minimax_step_by_step() -> None:
    """Targets 1/2 for both policies. Alone cases are off by 0.5, 0.5 and 0.4; with the third, by 0.45, 0.45 and 0.4.

    So greed takes the third case twice, where the first two together would be exact.
    """
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.9, 0.9]], size=2, targets=[[0.5, 0.5, 0.0]])
    solution = ro.solve(problem, "iterative-minimax")
    assert solution.test is not None
    assert solution.test.cases == (0, 2)
    np.testing.assert_allclose(solution.test.weights, [0.0, 1.0])
    assert solution.objective == pytest.approx(0.4)
    assert ro.solve(problem, "exact").objective == pytest.approx(0.0, abs=1e-9)


def test_iterative_minimax_may_take_a_case_again_and_fills_up_with_weight_zero() -> None:
    """The target is 2/3 of the way from the first case to the second, so the second is taken twice."""
    problem = ro.Problem(results=[[0.0], [0.9], [100.0]], size=3, targets=[[1 / 3, 2 / 3, 0.0]])
    solution = ro.solve(problem, "iterative-minimax")
    assert solution.test is not None
    assert solution.test.cases == (0, 1, 2)
    np.testing.assert_allclose(solution.test.weights, [1 / 3, 2 / 3, 0.0])
    assert solution.objective == pytest.approx(0.0)


def test_anchors_are_the_middles_of_clusters_weighed_by_their_sizes() -> None:
    results = [[0.0, 0.0], [0.1, 0.0], [-0.1, 0.0], [5.0, 5.0]]
    solution = ro.solve(ro.Problem(results=results, size=2), "kmeans-anchors")
    assert solution.test is not None
    assert solution.test.cases == (0, 3)
    np.testing.assert_allclose(solution.test.weights, [0.75, 0.25])


def test_required_and_forbidden_anchors() -> None:
    results = [[0.0, 0.0], [0.1, 0.0], [-0.1, 0.0], [5.0, 5.0], [5.1, 5.0]]
    problem = ro.Problem(results=results, size=1, required_cases=[1], forbidden_cases=[3])
    solution = ro.solve(problem, "kmeans-anchors")
    assert solution.test is not None
    assert solution.test.cases == (1, 4)
    np.testing.assert_allclose(solution.test.weights, [0.6, 0.4])


@pytest.mark.parametrize("name", ["random", "kmeans-anchors"])
def test_the_same_seed_makes_the_same_test(name: str) -> None:
    problem = small_arrows(3)
    one, two = ro.solve(problem, name, seed=4), ro.solve(problem, name, seed=4)
    assert one.test is not None and two.test is not None
    assert one.test.cases == two.test.cases


def test_another_seed_draws_another_test() -> None:
    drawn = {ro.solve(small_arrows(3), "random", seed=seed).test.cases for seed in range(10)}  # type: ignore[union-attr]
    assert len(drawn) > 5


@pytest.mark.parametrize("name", ["minimax-uniform", "minimax-ttd-uniform"])
def test_a_time_limit_is_kept(name: str) -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((60, 10)), size=5)
    solution = ro.solve(problem, name, time_limit_seconds=0.0)
    assert solution.limit is ro.Limit.TIME
    assert solution.test is not None


@pytest.mark.slow
def test_heuristics_are_no_witnesses_unless_called_and_never_disagree_by_being_worse() -> None:
    problem = small_arrows(2)
    assert not {finding.backend for finding in ro.agree(problem, None).findings} & set(BASELINES)
    report = ro.agree(problem, ["exact", "random", "minimax-uniform"])
    assert report.agreed, report


def test_auto_is_never_a_heuristic() -> None:
    problem = replace(small_arrows(2), measure=ro.KOfN(2, 5))
    assert ro.solve(problem).backend == "exact"
    with pytest.raises(ro.ProblemError, match="seed"):
        ro.solve(problem, seed=3)  # only heuristics have it, and none was asked for
