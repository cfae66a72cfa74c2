"""Limits of weights: none is below what a linear program finds, however wrong the multipliers, nor far above it."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import problems

import rposst_opt as ro
from rposst_opt.solvers import most_weights
from rposst_opt.solvers.most_weights import MostWeights


def limited(problem: ro.Problem, below: float) -> np.ndarray:
    """The limits for tests with an objective of at most this, in the problem's own units."""
    program = MostWeights(problem, np.arange(problem.n_cases), below / problem.unit)
    while not program.is_done:
        program.step()
    return program.limits


def greatest_weights(problem: ro.Problem, tail: float, below: float) -> list[float]:
    """By a linear program of the test's own: absolute errors u and what is above v in the tail, for every scenario."""
    n, scenarios = problem.n_cases, problem.scenarios
    d, scores = problem.n_scenarios, problem.results[:, scenarios.policies].T
    one, none = np.eye(d), np.zeros((d, d))
    rows = np.block(
        [
            [scores, -one, np.zeros((d, 1)), none],
            [-scores, -one, np.zeros((d, 1)), none],
            [np.zeros((d, n)), one, -np.ones((d, 1)), -one],
            [np.zeros((1, n + d)), np.ones((1, 1)), scenarios.probabilities[None] / tail],
        ]
    )
    full = scenarios.full_scores
    most = np.concatenate([full, -full, np.zeros(d), [below]])
    is_weight = np.append(np.ones(n), np.zeros(2 * d + 1))[None]
    bounds = [(0, None)] * (n + d) + [(None, None)] + [(0, None)] * d
    solved = [
        linprog(-np.eye(1, n + 2 * d + 1, case)[0], rows, most, is_weight, [1.0], bounds=bounds) for case in range(n)
    ]
    return [-each.fun for each in solved]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.2, 0.5, 1.0]), st.floats(0.01, 0.3))
def test_they_are_those_of_a_linear_program(seed: int, tail: float, room: float) -> None:
    rng = np.random.default_rng(seed)
    results = rng.random((6, 5)) if seed % 2 else (rng.random((6, 5)) < 0.5).astype(float)
    assume(np.ptp(results) > 0)
    problem = ro.Problem(results=results, size=2, measure=ro.CVaR(tail), targets=ro.softmax_targets(results, (0, 2)))
    everything = problem.test(cases=range(6), weights=np.full(6, 1 / 6))
    below = problem.objective(everything) + room * problem.unit
    expected = greatest_weights(problem, tail, below)
    np.testing.assert_array_less(np.array(expected) - 1e-7, limited(problem, below))
    with pytest.MonkeyPatch.context() as patch:  # at first cutting planes end early, and then limits are too large
        patch.setattr(most_weights, "MOST_ROUNDS", 100)
        patch.setattr(most_weights, "ROOM", 0.0)
        np.testing.assert_allclose(limited(problem, below), expected, atol=1e-5)


@settings(max_examples=60)
@given(problems(), st.integers(0, 10**6))
def test_a_test_that_is_good_enough_keeps_to_them(problem: ro.Problem, seed: int) -> None:
    stated = problem.stated
    rng = np.random.default_rng(seed)
    cases = np.arange(stated.n_cases)
    weights = rng.dirichlet(np.full(len(cases), 0.3))
    losses = stated.pieces.value((weights @ stated.results)[stated.scenarios.policies] - stated.scenarios.full_scores)
    tail_weights = stated.measure.weights(losses, stated.scenarios.probabilities)
    assert np.all(weights <= limited(stated, float(tail_weights @ losses)) + 1e-9)


def test_what_is_proved_does_not_rest_on_the_program() -> None:
    problem = ro.Problem(results=np.random.default_rng(1).random((6, 5)), size=2, measure=ro.CVaR(0.5))
    below = 0.1
    expected = greatest_weights(problem, 0.5, below)
    program = MostWeights(problem, np.arange(6), below / problem.unit)
    while not program.is_done:
        program.step()
    rng = np.random.default_rng(0)
    for case in range(6):
        for _ in range(100):
            multipliers = rng.normal(0.0, 2.0, len(program._is_tangent))
            assert program._proved(case, multipliers) >= expected[case] - 1e-9


def test_what_the_work_does_not_reach_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ro.Problem(results=np.random.default_rng(1).random((6, 5)), size=2, measure=ro.CVaR(0.5))
    assert limited(problem, 0.1).max() < 1.0
    monkeypatch.setattr(most_weights, "MOST_WORK", 1.0)
    limits = limited(problem, 0.1)
    assert limits[0] < 1.0 and np.all(limits[1:] == 1.0)
