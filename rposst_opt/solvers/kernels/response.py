"""The antagonist's best response: which scenarios count at given weights, and by how much."""

import math
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import allocates, apart, inlined, internal
from rposst_opt.solvers.kernels.problem_arrays import (
    BY_PROBABILITY,
    BY_SELECTION,
    BY_SORTING,
    ProblemArrays,
    example_arrays,
)
from rposst_opt.solvers.kernels.sorting import sort_where_it_matters

RAISES = 4  # of the floor under the worst losses, each by half of what may be left


class Response(NamedTuple):
    """The antagonist's best response: the scenarios that count, with their policies, losses and weights.

    Where they are found by sorting, `listed` are the scenarios that may be among them; if all scenarios count, the same
    array as `scenarios`.
    """

    scenarios: IntArray
    policies: IntArray
    losses: FloatArray
    weights: FloatArray
    listed: IntArray
    listed_losses: FloatArray


@internal
@allocates
def make_response(arrays: ProblemArrays) -> Response:
    """A workspace for a response, with none in it yet."""
    count = arrays.most_chosen
    scenarios, losses = np.full(count, -1), np.empty(count)
    listed, listed_losses = scenarios, losses
    if count < arrays.full_scores.shape[0]:
        n_listed = 0 if arrays.response == BY_SELECTION else arrays.full_scores.shape[0]
        listed, listed_losses = np.empty(n_listed, np.int64), np.empty(n_listed)
    return Response(
        scenarios=scenarios,
        policies=np.empty(count, np.int64),
        losses=losses,
        weights=np.empty(count),
        listed=listed,
        listed_losses=listed_losses,
    )


@inlined
def loss_at(error: float, knots: FloatArray, coefficients: FloatArray) -> float:
    """Δ(error) = c₀ + c₁ error + c₂ error², on the piece that the error falls on."""
    p = 0
    while p < knots.shape[0] and error > knots[p]:
        p += 1
    return coefficients[p, 0] + error * (coefficients[p, 1] + error * coefficients[p, 2])


@inlined
def slope_at(error: float, knots: FloatArray, coefficients: FloatArray) -> float:
    """δ ∈ ∂Δ(error): the left slope where two pieces meet."""
    p = 0
    while p < knots.shape[0] and error > knots[p]:
        p += 1
    return coefficients[p, 1] + error * (2.0 * coefficients[p, 2])


@inlined
def score_policies(results: FloatArray, cases: IntArray, weights: FloatArray, scores: FloatArray) -> None:
    """score_j = Σ_x w_x A[x, j]."""
    first, weight = cases[0], weights[0]
    for j in range(scores.shape[0]):
        scores[j] = weight * results[first, j]
    for i in range(1, cases.shape[0]):
        case, weight = cases[i], weights[i]
        for j in range(scores.shape[0]):
            scores[j] += weight * results[case, j]


@inlined
def bound_losses(
    scores: FloatArray,
    low: FloatArray,
    high: FloatArray,
    knots: FloatArray,
    coefficients: FloatArray,
    bounds: FloatArray,
    scratch: FloatArray,
) -> None:
    """The largest loss of each policy, over its full scores: Δ is convex, so the least or the greatest has it.

    One pass per piece, each free of branches, so that the compiler can use vector instructions. Where all pieces are
    affine, the greatest of them at an error is the loss there.
    """
    n_policies = scores.shape[0]
    c0, c1, c2 = coefficients[0, 0], coefficients[0, 1], coefficients[0, 2]
    if not np.any(coefficients[:, 2]):
        for j in range(n_policies):
            at_over, at_under = c0 + (scores[j] - low[j]) * c1, c0 + (scores[j] - high[j]) * c1
            bounds[j] = at_over if at_over > at_under else at_under
        for p in range(1, coefficients.shape[0]):
            c0, c1 = coefficients[p, 0], coefficients[p, 1]
            for j in range(n_policies):
                at_over, at_under = c0 + (scores[j] - low[j]) * c1, c0 + (scores[j] - high[j]) * c1
                greater = at_over if at_over > at_under else at_under
                bounds[j] = greater if greater > bounds[j] else bounds[j]
        return
    for j in range(n_policies):
        over, under = scores[j] - low[j], scores[j] - high[j]
        bounds[j] = c0 + over * (c1 + over * c2)
        scratch[j] = c0 + under * (c1 + under * c2)
    for p in range(1, coefficients.shape[0]):
        c0, c1, c2, knot = coefficients[p, 0], coefficients[p, 1], coefficients[p, 2], knots[p - 1]
        for j in range(n_policies):
            over, under = scores[j] - low[j], scores[j] - high[j]
            at_over, at_under = c0 + over * (c1 + over * c2), c0 + under * (c1 + under * c2)
            bounds[j] = at_over if over > knot else bounds[j]
            scratch[j] = at_under if under > knot else scratch[j]
    for j in range(n_policies):
        bounds[j] = bounds[j] if bounds[j] > scratch[j] else scratch[j]


@internal
def select_worst(
    scores: FloatArray,
    bounds: FloatArray,
    offsets: IntArray,
    full_scores: FloatArray,
    knots: FloatArray,
    coefficients: FloatArray,
    losses: FloatArray,
    scenarios: IntArray,
    policies: IntArray,
) -> None:
    """Fill `losses`, `scenarios` and `policies` with the worst scenarios, worst first, ties by index.

    The scenarios of the last response, at their new losses, give a floor under which nothing can be among the worst,
    and the bounds of the policies' losses may raise it: then nearly all policies are passed over after one comparison.
    """
    most = losses.shape[0]
    floor, highest = np.inf, -np.inf
    for h in range(most):
        if scenarios[h] < 0:
            floor = -np.inf
            break
        loss = loss_at(scores[policies[h]] - full_scores[scenarios[h]], knots, coefficients)
        floor, highest = min(floor, loss), max(highest, loss)
    if floor > -np.inf:
        floor = raised_floor(floor, highest, most, bounds)
    fill_worst(floor, scores, bounds, offsets, full_scores, knots, coefficients, losses, scenarios, policies)
    if losses[most - 1] == -np.inf:  # rounding has a bound above the loss that it is of
        fill_worst(-np.inf, scores, bounds, offsets, full_scores, knots, coefficients, losses, scenarios, policies)


@internal
def raised_floor(floor: float, highest: float, most: int, bounds: FloatArray) -> float:
    """A floor between these two that so many bounds still reach: each is the loss of some scenario."""
    for _ in range(RAISES):
        middle = 0.5 * (floor + highest)
        count = 0
        for j in range(bounds.shape[0]):
            count += bounds[j] >= middle
        if count >= most:
            floor = middle
        else:
            highest = middle
    return floor


@internal
def fill_worst(
    floor: float,
    scores: FloatArray,
    bounds: FloatArray,
    offsets: IntArray,
    full_scores: FloatArray,
    knots: FloatArray,
    coefficients: FloatArray,
    losses: FloatArray,
    scenarios: IntArray,
    policies: IntArray,
) -> None:
    """As `select_worst`, of what is not below the floor; the losses of places that stay empty are -inf."""
    most = losses.shape[0]
    for h in range(most):
        losses[h] = -np.inf
    for j in range(scores.shape[0]):
        if bounds[j] < floor or bounds[j] <= losses[most - 1]:
            continue
        for s in range(offsets[j], offsets[j + 1]):
            loss = loss_at(scores[j] - full_scores[s], knots, coefficients)
            if loss >= floor and loss > losses[most - 1]:
                h = most - 1
                while h > 0 and losses[h - 1] < loss:
                    losses[h], scenarios[h], policies[h] = losses[h - 1], scenarios[h - 1], policies[h - 1]
                    h -= 1
                losses[h], scenarios[h], policies[h] = loss, s, j


@internal
def list_candidates(
    scores: FloatArray, bounds: FloatArray, scratch: FloatArray, arrays: ProblemArrays, response: Response
) -> int:
    """List the scenarios that may be among the worst, and their losses: those above the last response's floor."""
    full_scores, knots, coefficients = arrays.full_scores, arrays.knots, arrays.coefficients
    offsets, listed, losses = arrays.offsets, response.listed, response.listed_losses
    worst, policies = response.scenarios, response.policies
    floor = np.inf
    for h in range(worst.shape[0]):
        if worst[h] < 0:
            floor = -np.inf
            break
        floor = min(floor, loss_at(scores[policies[h]] - full_scores[worst[h]], knots, coefficients))
    bound_losses(scores, arrays.least_full_scores, arrays.greatest_full_scores, knots, coefficients, bounds, scratch)
    count = 0
    for j in range(scores.shape[0]):
        if bounds[j] >= floor:
            for s in range(offsets[j], offsets[j + 1]):
                loss = loss_at(scores[j] - full_scores[s], knots, coefficients)
                listed[count], losses[count] = s, loss
                count += loss >= floor
    return count


@internal
def list_all(scores: FloatArray, arrays: ProblemArrays, response: Response) -> int:
    """List every scenario, in the order of the last response if there was one, and its loss."""
    full_scores, scenario_policies, listed = arrays.full_scores, arrays.scenario_policies, response.listed
    count = full_scores.shape[0]
    if listed[0] < 0:
        for s in range(count):
            listed[s] = s
    for h in range(count):
        s = listed[h]
        response.listed_losses[h] = loss_at(
            scores[scenario_policies[s]] - full_scores[s], arrays.knots, arrays.coefficients
        )
    return count


def _example_of_list_worst() -> tuple[FloatArray, FloatArray, FloatArray, ProblemArrays, Response]:
    """Arguments of the types that `list_worst` is called with."""
    arrays = example_arrays()
    return np.empty(1), np.empty(1), np.empty(1), arrays, make_response(arrays)


@apart(_example_of_list_worst)
def list_worst(
    scores: FloatArray, bounds: FloatArray, scratch: FloatArray, arrays: ProblemArrays, response: Response
) -> None:
    """Fill `response` with the scenarios that may count, in an order that is worst first as far as it matters."""
    n_worst = response.scenarios.shape[0]
    some = n_worst < arrays.full_scores.shape[0]
    count = list_candidates(scores, bounds, scratch, arrays, response) if some else list_all(scores, arrays, response)
    if arrays.response == BY_SORTING:
        sort_where_it_matters(
            count,
            response.listed,
            response.listed_losses,
            arrays.probabilities,
            arrays.rank_weights,
            arrays.tail_edges,
            arrays.tail_coefficients,
        )
    for h in range(n_worst):
        response.scenarios[h], response.losses[h] = response.listed[h], response.listed_losses[h]
        response.policies[h] = arrays.scenario_policies[response.listed[h]]


@internal
def tail_weight(tail: float, cell: int, edges: FloatArray, coefficients: FloatArray) -> tuple[float, int]:
    """g(tail) from the table, and the cell it is in; `cell` is where to begin, since tails are asked for in order."""
    while cell < coefficients.shape[0] - 1 and tail > edges[cell + 1]:
        cell += 1
    t = (tail - edges[cell]) / (edges[cell + 1] - edges[cell])
    degree = coefficients.shape[1] - 1
    value = coefficients[cell, degree]
    for i in range(degree - 1, -1, -1):
        value = value * t + coefficients[cell, i]
    return value, cell


@internal
def weigh_by_tail(
    scenarios: IntArray, probabilities: FloatArray, edges: FloatArray, coefficients: FloatArray, weights: FloatArray
) -> None:
    """α_(i) = g(F_i) - g(F_(i-1)), with F the cumulative probability of the scenarios from the worst on."""
    cumulative, before, cell = 0.0, 0.0, 0
    for h in range(weights.shape[0]):
        cumulative = min(cumulative + probabilities[scenarios[h]], 1.0)
        if h == probabilities.shape[0] - 1:
            cumulative = 1.0
        after, cell = tail_weight(cumulative, cell, edges, coefficients)
        weights[h] = max(after - before, 0.0)
        before = after


@inlined
def weigh_scenarios(
    kind: int,
    scenarios: IntArray,
    probabilities: FloatArray,
    rank_weights: FloatArray,
    edges: FloatArray,
    coefficients: FloatArray,
    weights: FloatArray,
) -> None:
    """α ← by how much each of these scenarios counts, which are listed worst first."""
    if kind == BY_PROBABILITY:
        for h in range(weights.shape[0]):
            weights[h] = probabilities[scenarios[h]]
    elif rank_weights.shape[0] > 0:
        for h in range(weights.shape[0]):
            weights[h] = rank_weights[h]
    else:
        weigh_by_tail(scenarios, probabilities, edges, coefficients, weights)


@inlined
def noise_at(rows: IntArray, weights: FloatArray, noise: FloatArray) -> float:
    """What the noise of a score costs: the norm of all cases' noise, each by its weight; zero if there is none."""
    total = 0.0
    if noise.shape[0] > 0:
        for i in range(rows.shape[0]):
            total += (noise[rows[i]] * weights[i]) ** 2
    return math.sqrt(total)


@inlined
def slope_of_noise(row: int, weight: float, noise: FloatArray, cost: float) -> float:
    """By how much the cost of noise grows with this row's weight. On the simplex the tangent has no other part."""
    return noise[row] * (noise[row] * weight / cost) if cost > 0.0 else 0.0


@inlined
def average_loss(losses: FloatArray, weights: FloatArray) -> float:
    """Σ_s α_s ℓ_s, the objective."""
    total = 0.0
    for h in range(losses.shape[0]):
        total += weights[h] * losses[h]
    return total
