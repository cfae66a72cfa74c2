"""The paper's bounds by hand, and regret matching+ held to its own by adversaries."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import rposst_opt as ro
from rposst_opt.solvers.bounds import largest_loss, regret_bound, regret_matching_gap, sampled_gap, steepest_payoff
from rposst_opt.solvers.kernels.sampled import update_tuples

Adversary = Callable[[np.ndarray, np.ndarray, np.random.Generator], Any]  # who loses


def against_the_favourite(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> Any:
    return weights == weights.max()


def for_the_neglected(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> Any:
    return weights > weights.min() + 1e-12


def keeping_one_action_good(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> Any:
    return (rng.random(len(weights)) < 0.5) & (np.arange(len(weights)) != np.argmin(totals))


def alternating(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> Any:
    return np.arange(len(weights)) % 2 == int(totals.sum()) % 2


def at_random(weights: np.ndarray, totals: np.ndarray, rng: np.random.Generator) -> Any:
    return rng.random(len(weights)) < 0.5


def policy_of(losers: np.ndarray) -> int:
    return sum(1 << int(action) for action in np.flatnonzero(losers))


@pytest.mark.slow
@pytest.mark.parametrize(
    "adversary", [against_the_favourite, for_the_neglected, keeping_one_action_good, alternating, at_random]
)
@given(n_actions=st.integers(1, 8), scale=st.sampled_from([0.01, 1.0, 50.0]), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_regret_matching_never_regrets_more_than_its_bound(
    adversary: Adversary, n_actions: int, scale: float, seed: int
) -> None:
    """The compiled update, on a loss that is the score itself, so that a policy's results are the actions' losses.

    There is a policy for every choice of who loses `scale` and who nothing; the adversary names one each round.
    """
    rng = np.random.default_rng(seed)
    policies = np.arange(2**n_actions)
    results = scale * ((policies >> np.arange(n_actions)[:, None]) & 1).astype(np.float64)
    score = ro.PiecewiseQuadratic(knots=[], coefficients=[[0.0, 1.0, 0.0]])
    cases, incurred = np.arange(n_actions)[None], np.empty(1)
    q, weights = np.zeros((1, n_actions)), np.full((1, n_actions), 1 / n_actions)
    totals, sum_incurred = np.zeros(n_actions), 0.0
    for t in range(1, 301):
        policy = policy_of(adversary(weights[0], totals, rng))
        totals += results[:, policy]
        pieces = (score.knots, score.coefficients)
        update_tuples(cases, weights, q, np.ones(1), np.array([policy]), np.zeros(1), results, *pieces, incurred)
        sum_incurred += incurred[0]
        assert sum_incurred - totals.min() <= regret_bound(scale, n_actions, t) + 1e-9 * scale


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
    allowed = regret_matching_gap(problem, rounds) + problem.allowance(1e-9)
    assert played.objective - best.objective <= allowed
