"""The antagonist's answer: the scenarios that count, and by how much, as a plain sort has them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rposst_opt as ro
from rposst_opt.arrays import FloatArray
from rposst_opt.solvers.kernels.problem_arrays import (
    BY_PROBABILITY,
    BY_SELECTION,
    BY_SORTING,
    ProblemArrays,
    problem_arrays,
)
from rposst_opt.solvers.kernels.response import RAISES, list_worst, make_response, raised_floor, select_worst
from rposst_opt.solvers.kernels.sorting import sort_where_it_matters
from rposst_opt.solvers.kernels.tuple_game import COMPLETE, KEPT, add_row, make_tuple_game, place_row, settle

MEASURES = [
    ro.CVaR(0.35),
    ro.CVaR(0.6),
    ro.KOfN(3, 40),
    ro.Mixture([(0.7, ro.CVaR(0.2)), (0.2, ro.CVaR(0.55)), (0.1, ro.Mean())]),
    ro.Mean(),
]


def weights_by_sorting(losses: FloatArray, problem: ro.Problem) -> FloatArray:
    """α_s by the definition: all scenarios sorted, worst first, ties by index."""
    worst_first = np.lexsort((np.arange(len(losses)), -losses))
    tails = np.minimum(np.cumsum(problem.scenarios.probabilities[worst_first]), 1.0)
    tails[-1] = 1.0
    weights = np.empty(len(losses))
    weights[worst_first] = np.diff(np.asarray(problem.measure.tail_weight(tails)), prepend=0.0)
    return weights


def table(seed: int, n_policies: int, ties: bool) -> FloatArray:
    results = np.random.default_rng(seed).random((6, n_policies))
    return np.round(results, 1) if ties else results


@pytest.mark.slow
@settings(max_examples=150)
@given(
    seed=st.integers(0, 10**6),
    measure=st.sampled_from(MEASURES),
    equally_likely=st.booleans(),
    ties=st.booleans(),
    n_policies=st.integers(200, 260),
)
def test_answers_are_those_of_a_sort_whatever_was_asked_before(
    seed: int, measure: ro.Measure, equally_likely: bool, ties: bool, n_policies: int
) -> None:
    """The floor of the last answer and its order are used in the next one, and must not be seen in it."""
    rng = np.random.default_rng(seed)
    likely = rng.integers(1, 5, (n_policies, 1)).astype(float)
    problem = ro.Problem(
        results=table(seed, n_policies, ties),
        size=2,
        measure=measure,
        probabilities=None if equally_likely else likely / likely.sum(),
    )
    arrays = problem_arrays(problem)
    assert arrays.response != BY_SELECTION  # so few scenarios are found in another way
    response = make_response.py_func(arrays)  # type: ignore[attr-defined] # a kernel, interpreted
    for _ in range(4):
        scores = rng.dirichlet(np.ones(6)) @ problem.results
        list_worst.py_func(  # type: ignore[attr-defined]
            scores, np.empty(n_policies), np.empty(n_policies), arrays, response
        )
        losses = np.abs(scores - problem.scenarios.full_scores)
        wanted = weights_by_sorting(losses, problem)
        assert len(set(response.scenarios.tolist())) == len(response.scenarios)
        assert wanted[np.setdiff1d(np.arange(n_policies), response.scenarios)].sum() == pytest.approx(0.0, abs=1e-12)
        assert response.losses == pytest.approx(losses[response.scenarios], abs=0.0)
        if arrays.response == BY_SORTING:
            assert given_weights(arrays, response.scenarios) == pytest.approx(wanted[response.scenarios], abs=1e-12)
        else:
            assert arrays.response == BY_PROBABILITY


def given_weights(arrays: ProblemArrays, order: FloatArray) -> FloatArray:
    """What scenarios in this order count, by rank or by their probabilities from the worst on."""
    if len(arrays.rank_weights):
        return arrays.rank_weights[: len(order)]
    tails = np.minimum(np.cumsum(arrays.probabilities[order]), 1.0)
    if len(order) == len(arrays.probabilities):
        tails[-1] = 1.0
    cells = np.clip(np.searchsorted(arrays.tail_edges, tails) - 1, 0, len(arrays.tail_coefficients) - 1)
    shares = (tails - arrays.tail_edges[cells]) / np.diff(arrays.tail_edges)[cells]
    powers = shares[:, None] ** np.arange(arrays.tail_coefficients.shape[1])
    return np.diff((arrays.tail_coefficients[cells] * powers).sum(axis=1), prepend=0.0)


@pytest.mark.parametrize("shape", ["as it comes", "sorted", "the other way round", "falling, then rising", "all alike"])
def test_no_order_of_the_data_makes_it_slow(shape: str) -> None:
    """The steps are counted, not timed: every comparison reads a loss."""
    count = 3000
    losses = {
        "as it comes": np.random.default_rng(0).random(count),
        "sorted": np.linspace(1, 0, count),
        "the other way round": np.linspace(0, 1, count),
        "falling, then rising": np.abs(np.linspace(-1, 1, count)),
        "all alike": np.zeros(count),
    }[shape]
    reads = 0

    class Counted(np.ndarray):
        def __getitem__(self, place: Any) -> Any:
            nonlocal reads
            reads += 1
            return super().__getitem__(place)

    rank_weights = np.concatenate([np.full(300, 1 / 300), np.zeros(count - 300)])
    order, none = np.arange(count), np.empty(0)
    counted = losses.copy().view(Counted)
    sort_where_it_matters.py_func(count, order, counted, none, rank_weights, none, np.empty((0, 0)))  # type: ignore[attr-defined]
    worst = np.lexsort((np.arange(count), -losses))[:300]
    assert set(order[:300].tolist()) == set(worst.tolist())
    assert (
        reads < 40 * count
    )  # a selection takes a few passes; a sort of all of it would take more, a bad pivot far more


@pytest.mark.parametrize("seed", range(30))
def test_a_set_with_one_case_more_is_settled_as_if_it_were_new(seed: int) -> None:
    """The basis goes on from the set before, and comes to the same value."""
    rng = np.random.default_rng(seed)
    results = rng.random((10, 15)) if seed % 2 else rng.integers(0, 2, (10, 15)).astype(float)
    problem = ro.Problem(results=results, size=2, measure=MEASURES[seed % len(MEASURES)])
    arrays = problem_arrays(problem)
    going_on = make_tuple_game(arrays, 8)
    for row in range(2):
        place_row(row, row, arrays.results, going_on)
    settle(2, np.inf, -np.inf, 1e-12, arrays, going_on, 0.0)
    for more in range(2, 8):
        add_row.py_func(more, more, arrays.results, going_on)  # type: ignore[attr-defined]
        lower, upper = settle(more + 1, np.inf, -np.inf, 1e-12, arrays, going_on, 0.0)
        afresh = make_tuple_game(arrays, 8)
        for row in range(more + 1):
            place_row(row, row, arrays.results, afresh)
        its_lower, its_upper = settle(more + 1, np.inf, -np.inf, 1e-12, arrays, afresh, 0.0)
        assert lower == pytest.approx(its_lower, abs=1e-10)
        assert upper == pytest.approx(its_upper, abs=1e-10)
        assert upper - lower < 1e-10


@pytest.mark.parametrize("seed", range(12))
def test_every_kept_cut_is_right_at_every_row_whatever_sets_came_before(seed: int) -> None:
    """Rows that stay where they are are not worked out again, and old cuts make room for new ones."""
    rng = np.random.default_rng(seed)
    problem = ro.Problem(results=rng.random((9, 40)), size=2, measure=MEASURES[seed % len(MEASURES)])
    arrays = problem_arrays(problem)
    game = make_tuple_game(arrays, 8)
    stayed = 0
    for _ in range(40):
        before, n_rows = game.rows.copy(), int(rng.integers(1, 6))
        cases = [int(before[row]) if rng.random() < 0.5 else int(rng.integers(9)) for row in range(n_rows)]
        for row, case in enumerate(cases):
            stayed += row < game.state[COMPLETE] and before[row] == case
            place_row(row, case, arrays.results, game)
        lower, upper = settle(n_rows, np.inf, -np.inf, 1e-12, arrays, game, 0.0)
        assert upper - lower < 1e-10
        if n_rows < 8:
            add_row.py_func(n_rows, int(rng.integers(9)), arrays.results, game)  # type: ignore[attr-defined]
            settle(n_rows + 1, np.inf, -np.inf, 1e-12, arrays, game, 0.0)
        for k in range(int(game.state[KEPT])):
            length = game.lengths[k]
            for row in range(int(game.state[COMPLETE])):
                pulled = game.pulls[k, :length] @ arrays.results[game.rows[row], game.policies[k, :length]]
                assert game.values[row, k] == pytest.approx(game.constants[k] + pulled, abs=1e-12)
    assert stayed > 10


@pytest.mark.parametrize("seed", range(20))
def test_bounds_above_the_losses_that_they_are_of_leave_nothing_out(seed: int) -> None:
    """They raise the floor too far, as rounding might by a bit; then all is looked through again."""
    rng = np.random.default_rng(seed)
    problem = ro.Problem(results=rng.integers(0, 3, (6, 30)) / 2.0, size=2, measure=ro.CVaR(0.2))
    arrays = problem_arrays(problem)
    low, high, full = arrays.least_full_scores, arrays.greatest_full_scores, arrays.full_scores
    most = arrays.most_chosen
    losses, worst, policies = np.empty(most), np.full(most, -1), np.zeros(most, np.int64)
    for _ in range(20):
        scores = rng.dirichlet(np.ones(6)) @ arrays.results
        bounds = np.maximum(abs(scores - low), abs(scores - high)) + rng.choice([0.0, 1e-15, 0.3], len(scores))
        select_worst.py_func(  # type: ignore[attr-defined]
            scores, bounds, arrays.offsets, full, arrays.knots, arrays.coefficients, losses, worst, policies
        )
        wanted = np.sort(abs(scores[arrays.scenario_policies] - full))[::-1][:most]
        np.testing.assert_allclose(losses, wanted, atol=1e-12)
        assert len(set(worst.tolist())) == most


def test_the_floor_is_raised_by_bounds_but_never_above_what_so_many_reach() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        bounds, most = rng.random(40), int(rng.integers(1, 20))
        reached = float(np.sort(bounds)[-most])
        floor = raised_floor.py_func(0.0, 1.0, most, bounds)  # type: ignore[attr-defined]
        assert reached - 1 / 2**RAISES <= floor <= reached
