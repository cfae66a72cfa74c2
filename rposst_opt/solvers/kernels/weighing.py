"""Weights of one set of cases after the other: are they the only optimal ones, and what are they worth?"""

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import allocates, compiled_when_it_pays, inlined
from rposst_opt.solvers.kernels.problem_arrays import BY_SELECTION, ProblemArrays
from rposst_opt.solvers.kernels.response import (
    average_loss,
    bound_losses,
    list_worst,
    make_response,
    noise_at,
    score_policies,
    select_worst,
    slope_at,
    slope_of_noise,
    weigh_scenarios,
)
from rposst_opt.solvers.kernels.tuple_game import TupleGame, place_row, settle


@inlined
def settle_set(
    rows: IntArray, threshold: float, tolerance: float, arrays: ProblemArrays, workspace: TupleGame
) -> tuple[float, float, float]:
    """Settle these rows: a proved bound, the objective of the best weights, and how sharp the optimum is.

    The weights are the multipliers of the program that mixes cuts. If none of its basic variables is zero, no other
    multipliers are optimal, whatever cuts are added: at any other weights one of the basic cuts is higher, by the
    distance times the least basic variable over the largest entry of the inverse, up to the number of rows.
    """
    n_rows = rows.shape[0]
    for i in range(n_rows):
        place_row(i, rows[i], arrays.results, workspace)
    lower, upper = settle(n_rows, threshold, -np.inf, tolerance, arrays, workspace, 0.0)
    least, largest = np.inf, 1.0
    for i in range(n_rows):
        least = min(least, workspace.inverse[i, n_rows])
        for j in range(n_rows):
            largest = max(largest, abs(workspace.inverse[i, j]))
    return lower, upper, least / largest


@compiled_when_it_pays
@allocates
def settle_sets(
    sets: IntArray, tolerance: float, arrays: ProblemArrays, workspace: TupleGame, weights: FloatArray
) -> FloatArray:
    """Settle every row of `sets`, one after the other: what `settle_set` returns of each, and its best weights."""
    settled = np.empty((sets.shape[0], 3))
    for at in range(sets.shape[0]):
        lower, upper, sharpness = settle_set(sets[at], np.inf, tolerance, arrays, workspace)
        settled[at, 0], settled[at, 1], settled[at, 2] = lower, upper, sharpness
        for i in range(sets.shape[1]):
            weights[at, i] = workspace.vectors[1, i]
    return settled


@compiled_when_it_pays
@allocates
def value_sets(sets: IntArray, weights: FloatArray, arrays: ProblemArrays) -> FloatArray:
    """The objective of every row of `sets` at its weights."""
    values, cut = np.empty(sets.shape[0]), np.empty(sets.shape[1])
    for at in range(sets.shape[0]):
        values[at] = tangent(sets[at], weights[at], arrays, cut)
    return values


@compiled_when_it_pays
@allocates
def tangent(rows: IntArray, weights: FloatArray, arrays: ProblemArrays, cut: FloatArray) -> float:
    """The objective at these weights of the rows; its cut there, at each row, is written to `cut`."""
    n_policies = arrays.results.shape[1]
    knots, coefficients, full_scores = arrays.knots, arrays.coefficients, arrays.full_scores
    scores, response = np.empty(n_policies), make_response(arrays)
    score_policies(arrays.results, rows, weights, scores)
    bounds, scratch = np.empty(n_policies), np.empty(n_policies)
    if arrays.response == BY_SELECTION:
        low, high = arrays.least_full_scores, arrays.greatest_full_scores
        bound_losses(scores, low, high, knots, coefficients, bounds, scratch)
        losses, worst, policies = response.losses, response.scenarios, response.policies
        select_worst(scores, bounds, arrays.offsets, full_scores, knots, coefficients, losses, worst, policies)
    else:
        list_worst(scores, bounds, scratch, arrays, response)
    weigh_scenarios(
        arrays.response,
        response.scenarios,
        arrays.probabilities,
        arrays.rank_weights,
        arrays.tail_edges,
        arrays.tail_coefficients,
        response.weights,
    )
    loss = average_loss(response.losses, response.weights)
    cost_of_noise = noise_at(rows, weights, arrays.noise)
    pulls = np.zeros(n_policies)
    for h in range(response.scenarios.shape[0]):
        j = response.policies[h]
        error = scores[j] - full_scores[response.scenarios[h]]
        pulls[j] += response.weights[h] * slope_at(error, knots, coefficients)
    for i in range(rows.shape[0]):
        cut[i] = loss + slope_of_noise(rows[i], weights[i], arrays.noise, cost_of_noise)
        for j in range(n_policies):
            cut[i] += pulls[j] * (arrays.results[rows[i], j] - scores[j])
    return loss + cost_of_noise
