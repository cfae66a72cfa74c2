r"""The best weights of a set of test cases, by column generation.

Over the cases R, the *rows*, the weights that cuts c¹ … c^K leave possible are worth at least

.. math:: \theta = \min_{w \in \triangle(R)} \max_k \sum_{x \in R} w_x c^k_x
                 = \max_{\lambda \in \triangle} \min_{x \in R} \sum_k \lambda_k c^k_x

a matrix game. Its left side proposes weights w; the antagonist's answer there gives the objective ρ(w) ≥ optimum and
one more cut, which raises θ ≤ optimum unless the two have met. The right side is solved by the simplex method,

Variables    λ_k ≥ 0, v free, s_x ≥ 0
Constraints  Σ_k λ_k c^k_x - v - s_x = 0 for every row x;  Σ_k λ_k = 1
Objective    maximise v

with v always in the basis, so that its row of the inverse holds (-w, θ). Ties in the ratio test are broken
lexicographically, so it cannot cycle.

Cuts hold for all test cases. So they are kept from one set of rows to the next, a few dozen at a time, and a set that
is much like the last one is often settled without asking the antagonist at all. What is proved does not rest on the
simplex method's arithmetic: the bound is read off the mixture λ itself, clipped and scaled to a distribution.
"""

from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import apart, compiled_when_it_pays, inlined, internal
from rposst_opt.solvers.kernels.problem_arrays import BY_SELECTION, ProblemArrays, example_arrays
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
from rposst_opt.solvers.kernels.simplex_basis import (
    arriving_column,
    extend_basis,
    mend,
    pivot,
    proved_value,
    reinvert,
    shift_basis,
    start_basis,
)

APART, SHARE = 1e-8, 0.5
KEPT_CUTS = 32  # from one set of rows to the next
MOST_PIVOTS = 500  # of the simplex method on few rows; far more than are needed unless rounding spoils it
# Many pivots, one after the other, make the inverse inexact, and then there is no end to what seems to be violated.
AFRESH_AFTER = 50  # pivots on few rows the inverse is worked out afresh,
SHIFT_AFTER = 30  # the basis is shifted,
ASK_AFTER = 300  # and the antagonist is asked anyway
SHIFT = 1e-8
MOST_MENDED = 6  # times that a basis is mended
SPOILED_SUM = 1e-3  # by which the weights of a basis may miss one: rounding in a basis that is one misses by far less
MOST_SPOILED_SUMS = 2  # times that weights miss it before we give up; the cuts are made afresh after each

# Places in TupleGame.state. A record with names would cost every call from Python a microsecond more, which is a
# twentieth of settling three cases.
KEPT, COMPLETE, CALLS, STEPS, EXTENDED = range(5)


class TupleGame(NamedTuple):
    """A workspace for the game over some rows, and the cuts that are kept.

    Cut k is c_x = constants[k] + Σ_h pulls[k, h] A[x, policies[k, h]], h < lengths[k], each policy once; and if results
    are noisy, what `noise_slopes` holds for the cases that were rows when it was made.
    """

    rows: IntArray
    values: FloatArray  # (rows, slots): each cut at each row
    columns: FloatArray  # (2, slots + rows): scratch, a number for every cut and every slack
    constants: FloatArray
    lengths: IntArray
    policies: IntArray
    pulls: FloatArray
    noise_cases: IntArray  # (slots, rows), or empty without noise
    noise_slopes: FloatArray
    places: IntArray  # (n_policies,): where the cut that is being made has each policy; -1 for all that it has not
    answers: IntArray  # (slots, scenarios that may count): what made each cut, if that is recorded,
    answer_parts: FloatArray  # (slots, 2, scenarios): and the tail weight and the slope of each
    inverse: FloatArray  # of the basis; the last row belongs to v
    basic: IntArray  # cut k, or number of slots + i for the slack of row i
    used: IntArray  # (slots,): the question at which each cut was last wanted in the basis
    vectors: FloatArray  # (4, rows + 1): weights, the best so far, the direction of a pivot, shifts of the basis
    state: IntArray  # cuts kept, rows that all of them have, questions to the antagonist, steps, whether a row is new
    scores: FloatArray  # (3, n_policies): scores, bounds of losses, and scratch to work out the bounds
    response: Response


def make_tuple_game(arrays: ProblemArrays, most_rows: int, *, record: bool = False) -> TupleGame:
    """A workspace for up to this many rows, with no cut in it yet; if asked for, what makes each cut is recorded."""
    slots, n_policies = KEPT_CUTS + most_rows, arrays.results.shape[1]
    width, recorded = min(arrays.most_chosen, n_policies), arrays.most_chosen if record else 0
    noisy_rows = most_rows if len(arrays.noise) else 0
    return TupleGame(
        rows=np.zeros(most_rows, np.int64),
        values=np.empty((most_rows, slots)),
        columns=np.empty((2, slots + most_rows)),
        constants=np.empty(slots),
        lengths=np.zeros(slots, np.int64),
        policies=np.empty((slots, width), np.int64),
        pulls=np.empty((slots, width)),
        noise_cases=np.full((slots, noisy_rows), -1),
        noise_slopes=np.zeros((slots, noisy_rows)),
        places=np.full(n_policies, -1),
        answers=np.empty((slots, recorded), np.int64),
        answer_parts=np.empty((slots, 2, recorded)),
        inverse=np.empty((most_rows + 1, most_rows + 1)),
        basic=np.empty(most_rows + 1, np.int64),
        used=np.zeros(slots, np.int64),
        vectors=np.zeros((4, most_rows + 1)),
        state=np.zeros(5, np.int64),
        scores=np.empty((3, n_policies)),
        response=make_response(arrays),
    )


@compiled_when_it_pays
def place_row(at: int, case: int, results: FloatArray, workspace: TupleGame) -> None:
    """Make this case a row, and work out every kept cut there, unless it is that row already; rows come in order."""
    state = workspace.state
    if at < state[COMPLETE] and workspace.rows[at] == case:
        return
    if at == state[COMPLETE]:
        state[COMPLETE] = at + 1
    constants, lengths, policies = workspace.constants, workspace.lengths, workspace.policies
    pulls, values, noise_cases = workspace.pulls, workspace.values, workspace.noise_cases
    workspace.rows[at] = case
    for k in range(state[KEPT]):
        value = constants[k]
        for h in range(lengths[k]):
            value += pulls[k, h] * results[case, policies[k, h]]
        for i in range(noise_cases.shape[1]):
            if noise_cases[k, i] == case:
                value += workspace.noise_slopes[k, i]
        values[at, k] = value


@internal
def add_row(n_rows: int, case: int, results: FloatArray, workspace: TupleGame) -> None:
    """Make this case one more row of those that were settled last; the basis goes on from where it is."""
    place_row(n_rows, case, results, workspace)
    if workspace.state[KEPT] > 0:
        extend_basis(n_rows, workspace.values, workspace.inverse, workspace.basic)
        workspace.state[EXTENDED] = 1


@inlined
def make_distribution(weights: FloatArray) -> bool:
    """Clip and scale what rounding has left of a distribution; False, and equal weights, if it has left none."""
    total, n_rows = 0.0, weights.shape[0]
    for i in range(n_rows):
        weights[i] = max(weights[i], 0.0)
        total += weights[i]
    is_one = abs(total - 1.0) < SPOILED_SUM
    for i in range(n_rows):
        weights[i] = weights[i] / total if is_one else 1.0 / n_rows
    return is_one


@inlined
def free_slot(n_rows: int, slots: int, state: IntArray, basic: IntArray, used: IntArray) -> int:
    """Where a new cut is kept: in an empty slot, or in that of the cut that has not been in a basis for longest."""
    slot, now = state[KEPT], state[CALLS]
    if slot < slots:
        state[KEPT] += 1
    else:
        for i in range(n_rows):
            if basic[i] < slots:
                used[basic[i]] = now
        oldest = now
        for k in range(slots):
            if used[k] < oldest:
                slot, oldest = k, used[k]
    used[slot] = now
    return slot


@inlined
def work_out_cut(
    slot: int,
    rows: IntArray,
    results: FloatArray,
    constants: FloatArray,
    lengths: IntArray,
    policies: IntArray,
    pulls: FloatArray,
    noise_slopes: FloatArray,
    values: FloatArray,
) -> None:
    """The values of a new cut at every row."""
    for i in range(rows.shape[0]):
        value = constants[slot]
        for h in range(lengths[slot]):
            value += pulls[slot, h] * results[rows[i], policies[slot, h]]
        values[i, slot] = value + noise_slopes[slot, i] if noise_slopes.shape[1] > 0 else value


def _example_of_play() -> tuple[int, float, float, float, ProblemArrays, TupleGame, float]:
    """Arguments of the types that `play` is called with."""
    arrays = example_arrays()
    return 1, 0.0, 0.0, 0.0, arrays, make_tuple_game(arrays, 1), 0.0


@apart(_example_of_play)
def play(
    n_rows: int,
    threshold: float,
    good_enough: float,
    tolerance: float,
    arrays: ProblemArrays,
    workspace: TupleGame,
    leftover: float,
) -> tuple[float, float]:
    """Play the game over the rows once, as `settle` says; rounding may keep the two bounds apart."""
    # Long because every array is taken out of its tuple once, here, and what has more than a handful of them stays in
    # the loop: with few cases, to pass them on takes longer than the arithmetic.
    results, full_scores, knots, coefficients = arrays.results, arrays.full_scores, arrays.knots, arrays.coefficients
    low, high, offsets = arrays.least_full_scores, arrays.greatest_full_scores, arrays.offsets
    probabilities, rank_weights = arrays.probabilities, arrays.rank_weights
    edges, table, kind = arrays.tail_edges, arrays.tail_coefficients, arrays.response
    response, places = workspace.response, workspace.places
    worst, their_policies, losses, alpha = response.scenarios, response.policies, response.losses, response.weights
    scores, bounds, scratch = workspace.scores[0], workspace.scores[1], workspace.scores[2]
    constants, lengths, policies, pulls = workspace.constants, workspace.lengths, workspace.policies, workspace.pulls
    answers, parts, state = workspace.answers, workspace.answer_parts, workspace.state
    noise, noise_cases, noise_slopes = arrays.noise, workspace.noise_cases, workspace.noise_slopes
    rows, values, inverse, basic = workspace.rows[:n_rows], workspace.values, workspace.inverse, workspace.basic
    weights, best_weights, direction = workspace.vectors[0, :n_rows], workspace.vectors[1], workspace.vectors[2]
    shifts, columns, used = workspace.vectors[3], workspace.columns, workspace.used
    slots = values.shape[1]
    upper, started, exact_inverse, spoiled, mended, pivots = np.inf, state[KEPT] > 0, False, False, 0, 0
    spoiled_sums, inverted_at, asked_at = 0, 0, 0
    shifted, direct, share = False, False, min(0.7, 1.0 - 2.0 / n_rows)
    shift_basis(n_rows, 0.0, shifts)
    for i in range(n_rows):
        weights[i], best_weights[i] = 1.0 / n_rows, 1.0 / n_rows
    if started and state[EXTENDED] == 0:
        start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
    elif started and not mend(n_rows, slots, state[KEPT], values, inverse, basic, direction, shifts, columns):
        start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
    state[EXTENDED] = 0
    while pivots < MOST_PIVOTS + 200 * n_rows:
        arriving = -1  # the variable that enters the basis: a cut, or slots + i for the slack of row i
        if pivots - inverted_at > AFRESH_AFTER + n_rows:
            inverted_at = pivots
            if not reinvert(n_rows, slots, values, basic, inverse):
                start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
        if started:
            theta = inverse[n_rows, n_rows]
            if theta >= threshold and proved_value(n_rows, slots, values, inverse, basic) >= threshold:
                break
            arriving = arriving_column(n_rows, slots, state[KEPT], 0.25 * tolerance, values, inverse, weights, columns)
            if arriving < 0 and shifted:
                shift_basis(n_rows, 0.0, shifts)
                shifted = False
                if mend(n_rows, slots, state[KEPT], values, inverse, basic, direction, shifts, columns):
                    continue
            elif not shifted and pivots - asked_at > SHIFT_AFTER + n_rows:
                shift_basis(n_rows, SHIFT, shifts)
                shifted = True
            # Cuts that are nearly alike make pivots inexact: then the inverse is worked out afresh, once.
            if arriving < 0 and not exact_inverse:
                exact_inverse = True
                drift = abs(theta - proved_value(n_rows, slots, values, inverse, basic))
                if drift > 0.1 * tolerance and reinvert(n_rows, slots, values, basic, inverse):
                    continue
        if arriving < 0 or pivots - asked_at > ASK_AFTER + 30 * n_rows:
            asked_at = pivots
            if not make_distribution(weights):
                # Pivots on next to nothing have spoiled the basis. Begin without the cuts that it was made of.
                if spoiled_sums == MOST_SPOILED_SUMS:
                    break
                spoiled_sums, state[KEPT], started = spoiled_sums + 1, 0, False
            # Between the best weights and those of the basis the antagonist says more, as long as they are far apart.
            between = started and not direct and upper - inverse[n_rows, n_rows] > APART and upper < np.inf
            if between:
                for i in range(n_rows):
                    weights[i] = share * best_weights[i] + (1.0 - share) * weights[i]
            # The antagonist's answer: which scenarios, worst first, and by how much they count.
            state[CALLS] += 1
            score_policies(results, rows, weights, scores)
            if kind == BY_SELECTION:
                bound_losses(scores, low, high, knots, coefficients, bounds, scratch)
                select_worst(scores, bounds, offsets, full_scores, knots, coefficients, losses, worst, their_policies)
            else:
                list_worst(scores, bounds, scratch, arrays, response)
            weigh_scenarios(kind, worst, probabilities, rank_weights, edges, table, alpha)
            cost_of_noise = noise_at(rows, weights, noise)
            objective = average_loss(losses, alpha) + cost_of_noise
            if objective < upper:
                upper = objective
                for i in range(n_rows):
                    best_weights[i] = weights[i]
            if upper < good_enough:
                break
            if leftover > 0.0 and started and upper - inverse[n_rows, n_rows] <= leftover * (threshold - upper):
                break
            if started and upper - inverse[n_rows, n_rows] <= tolerance:
                proved = proved_value(n_rows, slots, values, inverse, basic)
                if mended == MOST_MENDED or proved >= upper - 2.0 * tolerance:
                    break
                # The mixture has negative parts: an earlier pivot was no more than rounding. Make them leave; where
                # that does not help, begin with one cut again, once.
                mended += 1
                if mended == MOST_MENDED // 2 or not reinvert(n_rows, slots, values, basic, inverse):
                    start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
                else:
                    mend(n_rows, slots, state[KEPT], values, inverse, basic, direction, shifts, columns)
                continue
            arriving = free_slot(n_rows, slots, state, basic, used)
            length, constant = 0, objective - cost_of_noise
            for i in range(noise_cases.shape[1]):
                noise_cases[arriving, i] = rows[i] if i < n_rows else -1
                if i < n_rows:
                    noise_slopes[arriving, i] = slope_of_noise(rows[i], weights[i], noise, cost_of_noise)
            for h in range(worst.shape[0]):
                j = their_policies[h]
                slope = slope_at(scores[j] - full_scores[worst[h]], knots, coefficients)
                pull = alpha[h] * slope
                constant -= pull * scores[j]
                if h < answers.shape[1]:
                    answers[arriving, h], parts[arriving, 0, h], parts[arriving, 1, h] = worst[h], alpha[h], slope
                if pull != 0.0 and places[j] >= 0:
                    pulls[arriving, places[j]] += pull
                elif pull != 0.0:
                    pulls[arriving, length], policies[arriving, length], places[j] = pull, j, length
                    length += 1
            for h in range(length):
                places[policies[arriving, h]] = -1
            lengths[arriving], constants[arriving] = length, constant
            state[COMPLETE] = min(state[COMPLETE], n_rows)
            work_out_cut(arriving, rows, results, constants, lengths, policies, pulls, noise_slopes, values)
            if not started:
                start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
                started = True
                continue
            direct = False
            if between:
                excess = -inverse[n_rows, n_rows]
                for i in range(n_rows):
                    excess -= inverse[n_rows, i] * values[i, arriving]
                if excess <= 0.25 * tolerance:
                    direct = True
                    continue
        if arriving < slots:
            used[arriving] = state[CALLS]
        if not pivot(n_rows, slots, arriving, values, inverse, basic, direction, shifts):
            if spoiled:
                break  # what is proved so far stays proved
            spoiled = True
            if not reinvert(n_rows, slots, values, basic, inverse):
                start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
            continue
        exact_inverse, spoiled = False, False
        pivots += 1
        state[STEPS] += 1
    return proved_value(n_rows, slots, values, inverse, basic) if started else -np.inf, upper


@compiled_when_it_pays
def settle(
    n_rows: int,
    threshold: float,
    good_enough: float,
    tolerance: float,
    arrays: ProblemArrays,
    workspace: TupleGame,
    leftover: float,
) -> tuple[float, float]:
    """Bounds on the optimum over the rows: a proved one, and the objective of the best weights (``vectors[1]``).

    It ends when the proved bound reaches `threshold`, when an objective below `good_enough` is found, or when the two
    bounds are within `tolerance` of each other; and below the threshold also when what may be left to gain is no more
    than a share `leftover` of what is gained. The mixture that proves the bound is left in the basis.

    Cuts that are nearly alike spoil a basis, and then rounding comes between the two bounds. Where it does, the game is
    played once more, without the cuts that were kept.
    """
    lower, upper = play(n_rows, threshold, good_enough, tolerance, arrays, workspace, leftover)
    is_apart = lower < threshold and upper >= good_enough and upper - lower > 2.0 * tolerance
    if is_apart and (leftover == 0.0 or upper >= threshold):
        workspace.state[KEPT] = 0
        lower, upper = play(n_rows, threshold, good_enough, tolerance, arrays, workspace, 0.0)
    return lower, upper
