"""The paper's bounds by hand, and regret matching+ held to its own by adversaries."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import rposst_opt as ro
from rposst_opt.bounds import largest_loss, regret_bound, regret_matching_gap, sampled_gap, steepest_payoff

Adversary = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def against_the_favourite(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(weights == weights.max(), 1.0, 0.0)


def for_the_neglected(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(weights > weights.min() + 1e-12, 1.0, 0.0)


def keeping_one_action_good(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    losses = (rng.random(len(weights)) < 0.5).astype(float)
    losses[int(np.argmin(totals))] = 0.0
    return losses


def alternating(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(np.arange(len(weights)) % 2 == int(totals.sum()) % 2, 1.0, 0.0)


def at_random(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.random(len(weights))


@pytest.mark.parametrize(
    "adversary", [against_the_favourite, for_the_neglected, keeping_one_action_good, alternating, at_random]
)
@given(n_actions=st.integers(1, 8), scale=st.sampled_from([0.01, 1.0, 50.0]), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_regret_matching_never_regrets_more_than_its_bound(
    adversary: Adversary, n_actions: int, scale: float, seed: int
) -> None:
    """The update of the proposition, on losses in [0, scale], checked after every round."""
    rng = np.random.default_rng(seed)
    q, totals, incurred = np.zeros(n_actions), np.zeros(n_actions), 0.0
    for t in range(1, 301):
        weights = q / q.sum() if q.sum() > 0 else np.full(n_actions, 1 / n_actions)
        losses = scale * adversary(weights, totals, rng)
        totals += losses
        incurred += losses @ weights
        q = np.maximum(q + losses @ weights - losses, 0)
        assert incurred - totals.min() <= regret_bound(scale, n_actions, t) + 1e-9 * scale


def test_the_bounds_of_a_small_problem_by_hand() -> None:
    """Results between 0 and 1, the absolute loss: G = 1/2, L = 1; with m = 4 and T = 100 the Corollary gives 0.2."""
    problem = ro.Problem(results=np.eye(5), size=4)
    assert steepest_payoff(problem) == 0.5
    assert largest_loss(problem) == 1.0
    assert regret_matching_gap(problem, 100) == pytest.approx(2 * 0.5 * math.sqrt(4 / 100))
    promise = sampled_gap(problem, rounds=100, p=math.exp(-2), q=0.5, selection_error=0.1)
    assert promise.gap == pytest.approx((0.2 + 2 * math.sqrt(2 * 2 / 100)) / 0.5)
    assert promise.probability == pytest.approx((1 - math.exp(-2)) * 0.5 * 0.9)


@pytest.mark.parametrize(("p", "q"), [(0.0, 0.5), (0.5, 0.0), (1.0, 0.5), (0.5, 1.5)])
def test_shares_of_bad_luck_must_be_shares(p: float, q: float) -> None:
    with pytest.raises(ro.ProblemError):
        sampled_gap(ro.Problem(results=np.eye(3), size=1), rounds=10, p=p, q=q)


@given(problems())
@settings(max_examples=60)
def test_no_loss_is_above_the_largest(problem: ro.Problem) -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        test = problem.test(cases=range(problem.n_cases), weights=rng.dirichlet(np.full(problem.n_cases, 0.2)))
        assert problem.losses(test).max() <= largest_loss(problem) + problem.rounding


@given(problem=problems(), rounds=st.integers(1, 60))
@settings(max_examples=60)
def test_the_corollary_holds_against_the_proved_optimum(problem: ro.Problem, rounds: int) -> None:
    played, best = ro.solve(problem, "regret-matching", rounds=rounds), ro.solve(problem, "exact")
    allowed = regret_matching_gap(problem, rounds) + 1e-9 * problem.unit + problem.rounding
    assert played.objective - best.objective <= allowed
