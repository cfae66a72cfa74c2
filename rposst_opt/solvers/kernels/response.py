"""The antagonist's best response: which scenarios count at given weights, and by how much."""

import math
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray, read_only
from rposst_opt.measures import Measure, equally_likely, tabulate, tabulate_mixture
from rposst_opt.problem import Problem
from rposst_opt.results import ALIKE_STEPS
from rposst_opt.solvers.kernels.compiling import inlined, internal
from rposst_opt.solvers.kernels.sorting import sort_where_it_matters

# How the antagonist finds the scenarios that count.
BY_SELECTION, BY_SORTING, BY_PROBABILITY = 0, 1, 2
GRID = 2.0**-30  # of scaled numbers, for searches that only look for good tests
SELECTION_LIMIT = 48  # up to about this length, keeping a sorted list of the worst is faster than sorting parts


class ProblemArrays(NamedTuple):
    """A problem as compiled code reads it: arrays and numbers only."""

    results: FloatArray  # (n_cases, n_policies)
    offsets: IntArray  # (n_policies + 1,): the scenarios of policy j are offsets[j]:offsets[j + 1]
    scenario_policies: IntArray  # (n_scenarios,)
    full_scores: FloatArray  # (n_scenarios,)
    least_full_scores: FloatArray  # (n_policies,): the least and the greatest of each policy
    greatest_full_scores: FloatArray
    probabilities: FloatArray  # (n_scenarios,)
    knots: FloatArray  # the loss
    coefficients: FloatArray
    rank_weights: FloatArray  # the measure for equally likely scenarios, worst first; empty for others
    tail_edges: FloatArray  # the measure for others, tabulated; empty for equally likely ones
    tail_coefficients: FloatArray
    response: int  # BY_SELECTION, BY_SORTING or BY_PROBABILITY
    most_chosen: int  # no response has more scenarios of positive weight than this
    noise: FloatArray  # (n_cases,): what the noise of each case costs with all the weight; empty if there is none


def problem_arrays(problem: Problem) -> ProblemArrays:
    """Lay a problem out for the kernels."""
    scenarios, pieces = problem.scenarios, problem.pieces
    occupied = np.diff(scenarios.offsets) > 0
    starts = scenarios.offsets[:-1][occupied]
    low, high = np.zeros(problem.n_policies), np.zeros(problem.n_policies)
    low[occupied] = np.minimum.reduceat(scenarios.full_scores, starts)
    high[occupied] = np.maximum.reduceat(scenarios.full_scores, starts)
    arrays = ProblemArrays(
        results=np.ascontiguousarray(problem.results),
        offsets=scenarios.offsets,
        scenario_policies=scenarios.policies,
        full_scores=scenarios.full_scores,
        least_full_scores=low,
        greatest_full_scores=high,
        probabilities=scenarios.probabilities,
        knots=pieces.knots,
        coefficients=pieces.coefficients,
        rank_weights=np.empty(0),
        tail_edges=np.empty(0),
        tail_coefficients=np.empty((0, 0)),
        response=BY_PROBABILITY,
        most_chosen=len(scenarios.full_scores),
        noise=problem.noise_costs,
    )
    return _with_measure(arrays, problem.measure)


def _with_measure(arrays: ProblemArrays, measure: Measure) -> ProblemArrays:
    """The same arrays, but for the measure."""
    d, probabilities = len(arrays.full_scores), arrays.probabilities
    rank_weights, edges, coefficients = np.empty(0), np.empty(0), np.empty((0, 0))
    if equally_likely(probabilities):
        rank_weights = measure.rank_weights(d)
        most_chosen = int(np.flatnonzero(rank_weights)[-1]) + 1
    else:
        mixture = measure.cvar_mixture(probabilities)
        edges, coefficients = tabulate(measure.tail_weight) if mixture is None else tabulate_mixture(mixture)
        least_likely_first = np.cumsum(np.sort(probabilities))
        most_chosen = min(d, 1 + int(np.searchsorted(least_likely_first, measure.reach())))
    if measure.cvar_tail_fraction == 1:  # the mean: every scenario counts by its probability
        response = BY_PROBABILITY
    else:
        response = BY_SELECTION if most_chosen <= SELECTION_LIMIT else BY_SORTING
    return arrays._replace(
        rank_weights=rank_weights,
        tail_edges=edges,
        tail_coefficients=coefficients,
        response=response,
        most_chosen=most_chosen,
    )


def with_mean_alone(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays with the mean as the measure, and losses alone."""
    return without_noise(arrays)._replace(
        rank_weights=np.empty(0),
        tail_edges=np.empty(0),
        tail_coefficients=np.empty((0, 0)),
        response=BY_PROBABILITY,
        most_chosen=len(arrays.full_scores),
    )


def without_noise(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays with losses alone."""
    return arrays._replace(noise=read_only(np.empty(0)))


def with_share_of_mean(arrays: ProblemArrays, share: float) -> ProblemArrays:
    """The same arrays with a share of the mean in their measure: the tail weight g(u) is (1 - share) g(u) + share u."""
    d = len(arrays.full_scores)
    if arrays.response == BY_PROBABILITY:
        return arrays
    coefficients = (1 - share) * arrays.tail_coefficients
    if len(coefficients):
        coefficients[:, 0] += share * arrays.tail_edges[:-1]
        coefficients[:, 1] += share * np.diff(arrays.tail_edges)
    return arrays._replace(
        rank_weights=(1 - share) * arrays.rank_weights + share / d,
        tail_coefficients=coefficients,
        response=BY_SELECTION if d <= SELECTION_LIMIT else BY_SORTING,
        most_chosen=d,
    )


def scaled_problem_arrays(problem: Problem, cases: IntArray) -> ProblemArrays:
    """The arrays over these cases, with errors in units of the spread of results and losses in units of the largest.

    Only errors count, so every policy's results and full scores may be moved together: to lie around zero, where
    rounding is least.
    """
    arrays = problem_arrays(problem)
    spread = float(np.ptp(problem.results)) or 1.0
    rounding = ALIKE_STEPS * np.finfo(np.float64).eps * float(np.abs(problem.results).max())
    divisor = spread if spread > rounding else math.inf  # where only rounding tells results apart, they are all alike
    middle = problem.results.min(axis=0) / 2 + problem.results.max(axis=0) / 2
    pieces = problem.pieces.rescaled(error_unit=spread, value_unit=problem.unit)
    return arrays._replace(
        results=np.ascontiguousarray((problem.results[cases] - middle) / divisor),
        full_scores=(arrays.full_scores - middle[arrays.scenario_policies]) / divisor,
        least_full_scores=(arrays.least_full_scores - middle) / divisor,
        greatest_full_scores=(arrays.greatest_full_scores - middle) / divisor,
        knots=pieces.knots,
        coefficients=pieces.coefficients,
        noise=read_only(problem.noise_costs[cases] / problem.unit if len(problem.noise_costs) else np.empty(0)),
    )


def rounded_arrays(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays with all numbers on a grid, so that their last bits do not choose the path of a search.

    Numbers that make ties are fractions with small denominators, and these do not lie halfway between two points of a
    grid whose width is a power of two.
    """
    return arrays._replace(
        results=_on_grid(arrays.results),
        full_scores=_on_grid(arrays.full_scores),
        least_full_scores=_on_grid(arrays.least_full_scores),
        greatest_full_scores=_on_grid(arrays.greatest_full_scores),
        probabilities=_on_grid(arrays.probabilities),
        knots=_on_grid(arrays.knots),
        coefficients=_on_grid(arrays.coefficients),
        rank_weights=_on_grid(arrays.rank_weights),
        tail_coefficients=_on_grid(arrays.tail_coefficients),
        noise=_on_grid(arrays.noise),
    )


def _on_grid(values: FloatArray) -> FloatArray:
    rounded: FloatArray = np.round(values / GRID) * GRID
    rounded.setflags(write=values.flags.writeable)  # for arrays that are locked, kernels are compiled once more
    return rounded


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

    The scenarios of the last response, at their new losses, give a floor under which nothing can be among the worst:
    with it, nearly all policies are passed over after one comparison of their bound.
    """
    most = losses.shape[0]
    floor = np.inf
    for h in range(most):
        if scenarios[h] < 0:
            floor = -np.inf
        else:
            floor = min(floor, loss_at(scores[policies[h]] - full_scores[scenarios[h]], knots, coefficients))
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


@internal
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
