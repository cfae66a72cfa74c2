"""Regret matching+ on one tuple, and on a stretch of tuples."""

import math
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import allocates, compiled, inlined, internal
from rposst_opt.solvers.kernels.problem_arrays import BY_SELECTION, ProblemArrays
from rposst_opt.solvers.kernels.response import (
    Response,
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


class TupleRun(NamedTuple):
    """A workspace for regret matching+ on one tuple."""

    weights: FloatArray  # of the round that is played
    pseudoregrets: FloatArray
    gradient: FloatArray
    average_cut: FloatArray  # Σ_t c^t, and Σ_t t c^t
    linear_cut: FloatArray
    best_weights: FloatArray  # of the round with the least loss so far
    scores: FloatArray
    bounds: FloatArray
    scratch: FloatArray


@internal
@allocates
def make_tuple_run(n_chosen: int, n_policies: int) -> TupleRun:
    """A workspace for tuples of this many cases."""
    return TupleRun(
        weights=np.empty(n_chosen),
        pseudoregrets=np.empty(n_chosen),
        gradient=np.empty(n_chosen),
        average_cut=np.empty(n_chosen),
        linear_cut=np.empty(n_chosen),
        best_weights=np.empty(n_chosen),
        scores=np.empty(n_policies),
        bounds=np.empty(n_policies),
        scratch=np.empty(n_policies),
    )


@inlined
def match_regrets(pseudoregrets: FloatArray, weights: FloatArray) -> None:
    """Weights ← q / 1ᵀq, or uniform weights where q is zero."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += pseudoregrets[i]
    for i in range(weights.shape[0]):
        weights[i] = pseudoregrets[i] / total if total > 0.0 else 1.0 / weights.shape[0]


@inlined
def cut_at_response(
    loss: float,
    cases: IntArray,
    scores: FloatArray,
    scenarios: IntArray,
    policies: IntArray,
    alpha: FloatArray,
    results: FloatArray,
    full_scores: FloatArray,
    knots: FloatArray,
    coefficients: FloatArray,
    gradient: FloatArray,
) -> float:
    """v_x ← -Σ α_s δ_s A[x, j_s], here its negation, and the constant of the cut c_x = constant - v_x.

    The cut is c_x = loss + Σ α_s δ_s (A[x, j_s] - score_s).
    """
    for i in range(gradient.shape[0]):
        gradient[i] = 0.0
    constant = loss
    for h in range(alpha.shape[0]):
        if alpha[h] > 0.0:
            j = policies[h]
            pull = alpha[h] * slope_at(scores[j] - full_scores[scenarios[h]], knots, coefficients)
            constant -= pull * scores[j]
            for i in range(gradient.shape[0]):
                gradient[i] += pull * results[cases[i], j]
    return constant


@inlined
def update_regrets(
    t: int,
    constant: float,
    weights: FloatArray,
    gradient: FloatArray,
    pseudoregrets: FloatArray,
    average_cut: FloatArray,
    linear_cut: FloatArray,
) -> float:
    """Regret ← v - wᵀv;  q ← [q + regret]₊. Returns the better bound of the two averages of the cuts so far."""
    mean = 0.0
    for i in range(weights.shape[0]):
        mean += weights[i] * gradient[i]
    average_least, linear_least = np.inf, np.inf
    for i in range(weights.shape[0]):
        pseudoregrets[i] = max(pseudoregrets[i] + (mean - gradient[i]), 0.0)
        average_cut[i] += constant + gradient[i]
        linear_cut[i] += t * (constant + gradient[i])
        average_least = min(average_least, average_cut[i])
        linear_least = min(linear_least, linear_cut[i])
    return max(average_least / t, linear_least / (0.5 * t * (t + 1.0)))


@compiled
def play_tuple(
    cases: IntArray, rounds: int, cutoff: FloatArray, arrays: ProblemArrays, run: TupleRun, response: Response
) -> tuple[float, float, int]:
    """Regret matching+ on one tuple (Algorithm 2, the body of its loops): best loss, lower bound, rounds played.

    The lower bound is the best one seen of two averages of the rounds' cuts, plain and weighted by t: any average of
    cuts is a cut, and the second closes in much faster. The tuple is left as soon as its bound is above ``cutoff[0]``,
    or ``cutoff[1]`` asks to stop.
    """
    # Every array is taken out of its tuple once, here: inside the loop it would cost more than the arithmetic.
    results, full_scores, knots, coefficients = arrays.results, arrays.full_scores, arrays.knots, arrays.coefficients
    low, high, offsets = arrays.least_full_scores, arrays.greatest_full_scores, arrays.offsets
    probabilities, rank_weights = arrays.probabilities, arrays.rank_weights
    edges, table, kind = arrays.tail_edges, arrays.tail_coefficients, arrays.response
    scenarios, policies, losses, alpha = response.scenarios, response.policies, response.losses, response.weights
    weights, q, gradient, best_weights = run.weights, run.pseudoregrets, run.gradient, run.best_weights
    average_cut, linear_cut = run.average_cut, run.linear_cut
    scores, bounds, scratch, noise = run.scores, run.bounds, run.scratch, arrays.noise
    for i in range(q.shape[0]):
        q[i], average_cut[i], linear_cut[i] = 0.0, 0.0, 0.0
    for h in range(scenarios.shape[0]):
        scenarios[h] = -1
    best, lower_bound, t = np.inf, -np.inf, 0
    while t < rounds:
        t += 1
        match_regrets(q, weights)
        # ℓ ← the losses that may count, worst first;  α ← the antagonist's best response
        score_policies(results, cases, weights, scores)
        if kind == BY_SELECTION:
            bound_losses(scores, low, high, knots, coefficients, bounds, scratch)
            select_worst(scores, bounds, offsets, full_scores, knots, coefficients, losses, scenarios, policies)
        else:
            list_worst(scores, bounds, scratch, arrays, response)
        weigh_scenarios(kind, scenarios, probabilities, rank_weights, edges, table, alpha)
        loss = average_loss(losses, alpha)
        constant = cut_at_response(
            loss, cases, scores, scenarios, policies, alpha, results, full_scores, knots, coefficients, gradient
        )
        cost_of_noise = noise_at(cases, weights, noise)
        if cost_of_noise > 0.0:
            loss += cost_of_noise
            for i in range(gradient.shape[0]):
                gradient[i] += slope_of_noise(cases[i], weights[i], noise, cost_of_noise)
        bound = update_regrets(t, constant, weights, gradient, q, average_cut, linear_cut)
        lower_bound = max(lower_bound, bound)
        if loss < best:
            best = loss
            for i in range(weights.shape[0]):
                best_weights[i] = weights[i]
        if lower_bound > cutoff[0] or cutoff[1] > 0.0:
            break
    return best, lower_bound, t


@inlined
def move_to_next_tuple(chosen: IntArray, pool: int) -> bool:
    """Move on in the lexicographic order of the subsets of ``range(pool)``; False if this was the last one."""
    size = chosen.shape[0]
    i = size - 1
    while i >= 0 and chosen[i] == pool - size + i:
        i -= 1
    if i < 0:
        return False
    chosen[i] += 1
    for k in range(i + 1, size):
        chosen[k] = chosen[k - 1] + 1
    return True


@compiled
@allocates
def play_tuples(
    first: IntArray,
    n_tuples: int,
    selectable: IntArray,
    required: IntArray,
    rounds: int,
    cutoff: FloatArray,
    lead: float,
    arrays: ProblemArrays,
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
    size = first.shape[0]
    width = size + required.shape[0]
    chosen = first.copy()
    cases = np.empty(width, np.int64)
    for i in range(required.shape[0]):
        cases[size + i] = required[i]
    run = make_tuple_run(width, arrays.results.shape[1])
    response = make_response(arrays)
    best, lower_bound, done, played = np.inf, np.inf, 0, 0
    while done < n_tuples and (done == 0 or cutoff[1] <= 0.0):
        for i in range(size):
            cases[i] = selectable[chosen[i]]
        loss, bound, t = play_tuple(cases, rounds, cutoff, arrays, run, response)
        played += t
        done += 1
        lower_bound = min(lower_bound, bound)
        if loss < best:
            best = loss
            for i in range(width):
                best_cases[i], best_weights[i] = cases[i], run.best_weights[i]
            if best + lead < cutoff[0]:
                cutoff[0] = best + lead
        if not move_to_next_tuple(chosen, selectable.shape[0]):
            break
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
