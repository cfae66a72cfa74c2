"""The compiled loops: the antagonist's best response, the cut, and regret matching+ over a stretch of tuples.

Plain loops, because they are compiled; each stands beside its formula. No `fastmath`, so sums are taken in the order in
which they are written, and the answer does not depend on the processor. All functions release the interpreter's lock.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rposst_opt.losses import FloatArray
from rposst_opt.measures import Mean, equally_likely, tabulate
from rposst_opt.problem import Problem

IntArray = NDArray[np.int64]

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on the first call, keep the outcome on disk, and run without the interpreter's lock."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))


# How the antagonist finds the scenarios that count.
BY_SELECTION, BY_SORTING, BY_PROBABILITY = 0, 1, 2
SELECTION_LIMIT = 48  # keeping a sorted list of the worst is faster than sorting everything up to about this length


class Game(NamedTuple):
    """A problem as compiled code reads it: arrays and numbers only."""

    results: FloatArray  # (n_cases, n_policies)
    offsets: IntArray  # (n_policies + 1,): the scenarios of policy j are offsets[j]:offsets[j + 1]
    scenario_policies: IntArray  # (n_scenarios,)
    targets: FloatArray  # (n_scenarios,)
    low_targets: FloatArray  # (n_policies,): the least and the greatest target of each policy
    high_targets: FloatArray
    probabilities: FloatArray  # (n_scenarios,)
    knots: FloatArray  # the loss
    coefficients: FloatArray
    rank_weights: FloatArray  # the measure for equally likely scenarios, worst first; empty for others
    tail_edges: FloatArray  # the measure for others, tabulated; empty for equally likely ones
    tail_coefficients: FloatArray
    response: int  # BY_SELECTION, BY_SORTING or BY_PROBABILITY
    most_chosen: int  # no response has more scenarios of positive weight than this


def make_game(problem: Problem) -> Game:
    """Lay a problem out for the kernels."""
    scenarios, pieces = problem.scenarios, problem.loss.pieces
    d = len(scenarios.targets)
    if equally_likely(scenarios.probabilities):
        rank_weights = problem.measure.rank_weights(d)
        most_chosen = int(np.flatnonzero(rank_weights)[-1]) + 1
        edges, coefficients = np.empty(0), np.empty((0, 0))
    else:
        rank_weights = np.empty(0)
        edges, coefficients = tabulate(problem.measure.tail_weight)
        least_likely_first = np.cumsum(np.sort(scenarios.probabilities))
        most_chosen = min(d, 1 + int(np.searchsorted(least_likely_first, problem.measure.reach())))
    if isinstance(problem.measure, Mean):
        response = BY_PROBABILITY
    else:
        response = BY_SELECTION if most_chosen <= SELECTION_LIMIT else BY_SORTING
    occupied = np.diff(scenarios.offsets) > 0
    starts = scenarios.offsets[:-1][occupied]
    low, high = np.zeros(problem.n_policies), np.zeros(problem.n_policies)
    low[occupied] = np.minimum.reduceat(scenarios.targets, starts)
    high[occupied] = np.maximum.reduceat(scenarios.targets, starts)
    return Game(
        results=np.ascontiguousarray(problem.results),
        offsets=scenarios.offsets,
        scenario_policies=scenarios.policies,
        targets=scenarios.targets,
        low_targets=low,
        high_targets=high,
        probabilities=scenarios.probabilities,
        knots=pieces.knots,
        coefficients=pieces.coefficients,
        rank_weights=rank_weights,
        tail_edges=edges,
        tail_coefficients=coefficients,
        response=response,
        most_chosen=most_chosen if response == BY_SELECTION else d,
    )


class Response(NamedTuple):
    """The antagonist's best response: the scenarios that count, with their policies, losses and weights."""

    scenarios: IntArray
    policies: IntArray
    losses: FloatArray
    weights: FloatArray


@compiled
def make_response(game: Game) -> Response:
    """Room for a response, with no scenario in it yet."""
    most = game.most_chosen
    return Response(np.full(most, -1), np.empty(most, np.int64), np.empty(most), np.empty(most))


@compiled
def loss_at(error: float, knots: FloatArray, coefficients: FloatArray) -> float:
    """Δ(error) = c₀ + c₁ error + c₂ error², on the piece that the error falls on."""
    p = 0
    while p < knots.shape[0] and error > knots[p]:
        p += 1
    return coefficients[p, 0] + error * (coefficients[p, 1] + error * coefficients[p, 2])


@compiled
def slope_at(error: float, knots: FloatArray, coefficients: FloatArray) -> float:
    """δ ∈ ∂Δ(error): the left slope where two pieces meet."""
    p = 0
    while p < knots.shape[0] and error > knots[p]:
        p += 1
    return coefficients[p, 1] + error * (2.0 * coefficients[p, 2])


@compiled
def score_policies(results: FloatArray, cases: IntArray, weights: FloatArray, scores: FloatArray) -> None:
    """score_j = Σ_x w_x A[x, j]."""
    first, weight = cases[0], weights[0]
    for j in range(scores.shape[0]):
        scores[j] = weight * results[first, j]
    for i in range(1, cases.shape[0]):
        case, weight = cases[i], weights[i]
        for j in range(scores.shape[0]):
            scores[j] += weight * results[case, j]


@compiled
def bound_losses(
    scores: FloatArray,
    low: FloatArray,
    high: FloatArray,
    knots: FloatArray,
    coefficients: FloatArray,
    bounds: FloatArray,
    scratch: FloatArray,
) -> None:
    """The largest loss of each policy, over its targets: Δ is convex, so the least or the greatest target has it.

    One pass per piece, each free of branches, so that the compiler can use vector instructions.
    """
    n_policies = scores.shape[0]
    c0, c1, c2 = coefficients[0, 0], coefficients[0, 1], coefficients[0, 2]
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


@compiled
def select_worst(
    scores: FloatArray,
    bounds: FloatArray,
    offsets: IntArray,
    targets: FloatArray,
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
            floor = min(floor, loss_at(scores[policies[h]] - targets[scenarios[h]], knots, coefficients))
        losses[h] = -np.inf
    for j in range(scores.shape[0]):
        if bounds[j] < floor:
            continue
        for s in range(offsets[j], offsets[j + 1]):
            loss = loss_at(scores[j] - targets[s], knots, coefficients)
            if loss >= floor and loss > losses[most - 1]:
                h = most - 1
                while h > 0 and losses[h - 1] < loss:
                    losses[h], scenarios[h], policies[h] = losses[h - 1], scenarios[h - 1], policies[h - 1]
                    h -= 1
                losses[h], scenarios[h], policies[h] = loss, s, j


@compiled
def list_all(scores: FloatArray, game: Game, response: Response) -> None:
    """Fill `response` with every scenario, worst first, ties by index; unsorted if only probabilities count."""
    count = game.targets.shape[0]
    losses = np.empty(count)
    for s in range(count):
        losses[s] = loss_at(scores[game.scenario_policies[s]] - game.targets[s], game.knots, game.coefficients)
    order = np.arange(count)
    if game.response == BY_SORTING:
        order = np.argsort(-losses, kind="mergesort")
    for h in range(count):
        s = order[h]
        response.losses[h], response.scenarios[h], response.policies[h] = losses[s], s, game.scenario_policies[s]


@compiled
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


@compiled
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


class TupleRun(NamedTuple):
    """Room for regret matching+ on one tuple."""

    weights: FloatArray  # of the round that is played
    pseudoregrets: FloatArray
    gradient: FloatArray
    average_cut: FloatArray  # Σ_t c^t, and Σ_t t c^t
    linear_cut: FloatArray
    best_weights: FloatArray  # of the round with the least loss so far
    scores: FloatArray
    bounds: FloatArray
    scratch: FloatArray


@compiled
def make_tuple_run(n_chosen: int, n_policies: int) -> TupleRun:
    """Room for tuples of this many cases."""
    return TupleRun(
        np.empty(n_chosen),
        np.empty(n_chosen),
        np.empty(n_chosen),
        np.empty(n_chosen),
        np.empty(n_chosen),
        np.empty(n_chosen),
        np.empty(n_policies),
        np.empty(n_policies),
        np.empty(n_policies),
    )


@compiled
def play_tuple(
    cases: IntArray, rounds: int, cutoff: FloatArray, game: Game, run: TupleRun, response: Response
) -> tuple[float, float, int]:
    """Regret matching+ on one tuple (Algorithm 2, the body of its loops): best loss, lower bound, rounds played.

    The lower bound is the best one seen of two averages of the rounds' cuts, plain and weighted by t: any average of
    cuts is a cut, and the second closes in much faster. The tuple is left as soon as its bound is above ``cutoff[0]``,
    or ``cutoff[1]`` asks to stop.
    """
    # Every array is taken out of its tuple once, here: inside the loop it would cost more than the arithmetic.
    results, targets, knots, coefficients = game.results, game.targets, game.knots, game.coefficients
    low, high, offsets, probabilities = game.low_targets, game.high_targets, game.offsets, game.probabilities
    rank_weights, edges, table = game.rank_weights, game.tail_edges, game.tail_coefficients
    scenarios, policies, losses, alpha = response.scenarios, response.policies, response.losses, response.weights
    weights, q, gradient, best_weights = run.weights, run.pseudoregrets, run.gradient, run.best_weights
    average_cut, linear_cut = run.average_cut, run.linear_cut
    scores, bounds, scratch = run.scores, run.bounds, run.scratch
    width, count = cases.shape[0], losses.shape[0]
    for i in range(width):
        q[i], average_cut[i], linear_cut[i] = 0.0, 0.0, 0.0
    for h in range(count):
        scenarios[h] = -1
    best, lower_bound, t = np.inf, -np.inf, 0
    while t < rounds:
        t += 1
        # z ← 1ᵀq;  w ← q / z if z > 0 else uniform
        z = 0.0
        for i in range(width):
            z += q[i]
        for i in range(width):
            weights[i] = q[i] / z if z > 0.0 else 1.0 / width

        # ℓ ← the losses that may count, worst first
        score_policies(results, cases, weights, scores)
        if game.response == BY_SELECTION:
            bound_losses(scores, low, high, knots, coefficients, bounds, scratch)
            select_worst(scores, bounds, offsets, targets, knots, coefficients, losses, scenarios, policies)
        else:
            list_all(scores, game, response)

        # α ← the antagonist's best response
        if game.response == BY_PROBABILITY:
            for h in range(count):
                alpha[h] = probabilities[scenarios[h]]
        elif rank_weights.shape[0] > 0:
            for h in range(count):
                alpha[h] = rank_weights[h]
        else:
            weigh_by_tail(scenarios, probabilities, edges, table, alpha)

        # loss ← Σ α_s ℓ_s;  v_x ← -Σ α_s δ_s A[x, j_s] (here its negation);
        # the cut is c_x = loss + Σ α_s δ_s (A[x, j_s] - score_s)
        loss = 0.0
        for h in range(count):
            loss += alpha[h] * losses[h]
        for i in range(width):
            gradient[i] = 0.0
        constant = loss
        for h in range(count):
            if alpha[h] > 0.0:
                j = policies[h]
                pull = alpha[h] * slope_at(scores[j] - targets[scenarios[h]], knots, coefficients)
                constant -= pull * scores[j]
                for i in range(width):
                    gradient[i] += pull * results[cases[i], j]

        # regret ← v - wᵀv;  q ← [q + regret]₊
        mean = 0.0
        for i in range(width):
            mean += weights[i] * gradient[i]
        average_least, linear_least = np.inf, np.inf
        for i in range(width):
            q[i] = max(q[i] + (mean - gradient[i]), 0.0)
            average_cut[i] += constant + gradient[i]
            linear_cut[i] += t * (constant + gradient[i])
            average_least = min(average_least, average_cut[i])
            linear_least = min(linear_least, linear_cut[i])
        lower_bound = max(lower_bound, average_least / t, linear_least / (0.5 * t * (t + 1.0)))

        # Keep the best round.
        if loss < best:
            best = loss
            for i in range(width):
                best_weights[i] = weights[i]
        if lower_bound > cutoff[0] or cutoff[1] > 0.0:
            break
    return best, lower_bound, t


@compiled
def play_tuples(
    first: IntArray,
    n_tuples: int,
    selectable: IntArray,
    required: IntArray,
    rounds: int,
    cutoff: FloatArray,
    lead: float,
    game: Game,
    best_cases: IntArray,
    best_weights: FloatArray,
) -> tuple[float, float, int, int]:
    """Regret matching+ on `n_tuples` tuples, in lexicographic order from `first` (positions in `selectable`).

    ``cutoff[0]`` is shared by all threads: a tuple whose lower bound exceeds it cannot change the answer. It is lowered
    to ``best loss + lead`` when a better test is found; a lead of +inf means that nothing is left out. A thread may
    overwrite another's lower cutoff, which costs time and nothing else: every cutoff stems from a test that was found.

    Returns
    -------
    best, lower_bound, tuples_done, rounds_played
        The least loss, whose test is left in `best_cases` and `best_weights`; the least bound of any tuple; and how
        much was done, at least one tuple even when asked to stop.
    """
    size, pool = first.shape[0], selectable.shape[0]
    width = size + required.shape[0]
    chosen = first.copy()
    cases = np.empty(width, np.int64)
    for i in range(required.shape[0]):
        cases[size + i] = required[i]
    run = make_tuple_run(width, game.results.shape[1])
    response = make_response(game)
    best, lower_bound, done, played = np.inf, np.inf, 0, 0
    while done < n_tuples and (done == 0 or cutoff[1] <= 0.0):
        for i in range(size):
            cases[i] = selectable[chosen[i]]
        loss, bound, t = play_tuple(cases, rounds, cutoff, game, run, response)
        played += t
        done += 1
        lower_bound = min(lower_bound, bound)
        if loss < best:
            best = loss
            best_cases[:] = cases
            best_weights[:] = run.best_weights
            if best + lead < cutoff[0]:
                cutoff[0] = best + lead
        # the next tuple
        i = size - 1
        while i >= 0 and chosen[i] == pool - size + i:
            i -= 1
        if i < 0:
            break
        chosen[i] += 1
        for k in range(i + 1, size):
            chosen[k] = chosen[k - 1] + 1
    return best, lower_bound, done, played


def tuple_at(rank: int, pool: int, size: int) -> IntArray:
    """The tuple at this place in the lexicographic order of all `size`-subsets of ``range(pool)``.

    Examples
    --------
    >>> [tuple_at(rank, 4, 2).tolist() for rank in range(6)]
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    """
    chosen = np.empty(size, dtype=np.int64)
    candidate = 0
    for place in range(size):
        while (below := math.comb(pool - candidate - 1, size - place - 1)) <= rank:
            rank -= below
            candidate += 1
        chosen[place] = candidate
        candidate += 1
    return chosen
