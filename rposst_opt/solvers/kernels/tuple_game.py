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
from rposst_opt.solvers.kernels.compiling import compiled_when_it_pays, inlined
from rposst_opt.solvers.kernels.response import (
    BY_SELECTION,
    ProblemArrays,
    Response,
    average_loss,
    bound_losses,
    list_all,
    make_response,
    score_policies,
    select_worst,
    slope_at,
    weigh_scenarios,
)
from rposst_opt.solvers.kernels.simplex_basis import arriving_column, pivot, proved_value, reinvert, start_basis

KEPT_CUTS = 32  # from one set of rows to the next
MOST_PIVOTS = 500  # of the simplex method on few rows; far more than are needed unless rounding spoils it

# Places in TupleGame.state. A record with names would cost every call from Python a microsecond more, which is a
# twentieth of settling three cases.
KEPT, NEXT, CALLS, STEPS = range(4)


class TupleGame(NamedTuple):
    """A workspace for the game over some rows, and the cuts that are kept.

    Cut k is c_x = constants[k] + Σ_h pulls[k, h] A[x, policies[k, h]], h < lengths[k].
    """

    rows: IntArray
    values: FloatArray  # (slots, rows): each cut at each row
    constants: FloatArray
    lengths: IntArray
    policies: IntArray
    pulls: FloatArray
    answers: IntArray  # (slots, scenarios that may count): what made each cut,
    answer_parts: FloatArray  # (slots, 2, scenarios): and the tail weight and the slope of each
    inverse: FloatArray  # of the basis; the last row belongs to v
    basic: IntArray  # cut k, or number of slots + i for the slack of row i
    vectors: FloatArray  # (3, rows + 1): weights, the best weights so far, and the direction of a pivot
    state: IntArray  # cuts kept, the slot that is next, questions to the antagonist, steps of the simplex method
    scores: FloatArray  # (3, n_policies): scores, bounds of losses, and scratch to work out the bounds
    response: Response
    is_dense: bool  # whether a cut lists every policy, in order, or only those that count


def make_tuple_game(arrays: ProblemArrays, most_rows: int) -> TupleGame:
    """A workspace for up to this many rows, with no cut in it yet."""
    slots, reach, n_policies = KEPT_CUTS + most_rows, arrays.most_chosen, arrays.results.shape[1]
    is_dense = arrays.response != BY_SELECTION
    width = n_policies if is_dense else reach
    return TupleGame(
        rows=np.zeros(most_rows, np.int64),
        values=np.empty((slots, most_rows)),
        constants=np.empty(slots),
        lengths=np.zeros(slots, np.int64),
        policies=np.empty((slots, width), np.int64),
        pulls=np.empty((slots, width)),
        answers=np.empty((slots, reach), np.int64),
        answer_parts=np.empty((slots, 2, reach)),
        inverse=np.empty((most_rows + 1, most_rows + 1)),
        basic=np.empty(most_rows + 1, np.int64),
        vectors=np.empty((3, most_rows + 1)),
        state=np.zeros(4, np.int64),
        scores=np.empty((3, n_policies)),
        response=make_response(reach),
        is_dense=is_dense,
    )


@compiled_when_it_pays
def place_row(at: int, case: int, results: FloatArray, workspace: TupleGame) -> None:
    """Make this case a row, and work out every kept cut there."""
    constants, lengths, policies = workspace.constants, workspace.lengths, workspace.policies
    pulls, values = workspace.pulls, workspace.values
    workspace.rows[at] = case
    for k in range(workspace.state[KEPT]):
        value = constants[k]
        for h in range(lengths[k]):
            value += pulls[k, h] * results[case, policies[k, h]]
        values[k, at] = value


@inlined
def make_distribution(weights: FloatArray) -> None:
    """Clip and scale what rounding has left of a distribution."""
    total = 0.0
    for i in range(weights.shape[0]):
        weights[i] = max(weights[i], 0.0)
        total += weights[i]
    for i in range(weights.shape[0]):
        weights[i] /= total


@inlined
def free_slot(n_rows: int, slots: int, state: IntArray, basic: IntArray) -> int:
    """Where a new cut is kept: in an empty slot, or in the place of the oldest that is not in the basis."""
    slot = state[KEPT]
    if slot < slots:
        state[KEPT] += 1
        return slot
    taken = True
    while taken:
        slot = state[NEXT]
        state[NEXT] = (state[NEXT] + 1) % slots
        taken = False
        for i in range(n_rows):
            taken = taken or basic[i] == slot
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
    values: FloatArray,
) -> None:
    """The values of a new cut at every row."""
    for i in range(rows.shape[0]):
        value = constants[slot]
        for h in range(lengths[slot]):
            value += pulls[slot, h] * results[rows[i], policies[slot, h]]
        values[slot, i] = value


@compiled_when_it_pays
def settle(
    n_rows: int, threshold: float, good_enough: float, tolerance: float, arrays: ProblemArrays, workspace: TupleGame
) -> tuple[float, float]:
    """Bounds on the optimum over the rows: a proved one, and the objective of the best weights (``vectors[1]``).

    It ends when the proved bound reaches `threshold`, when an objective below `good_enough` is found, or when the two
    bounds are within `tolerance` of each other. The mixture that proves the bound is left in the basis.
    """
    # Long because a function that is given a tuple counts references to every array in it: asking the antagonist and
    # keeping the cut in two such functions made settling 3 to 30 cases take 7 to 16 % longer. So every array is taken
    # out of its tuple once, here, and what has more than a handful of them stays in the loop.
    results, full_scores, knots, coefficients = arrays.results, arrays.full_scores, arrays.knots, arrays.coefficients
    low, high, offsets = arrays.least_full_scores, arrays.greatest_full_scores, arrays.offsets
    probabilities, rank_weights = arrays.probabilities, arrays.rank_weights
    edges, table, kind = arrays.tail_edges, arrays.tail_coefficients, arrays.response
    response, dense = workspace.response, workspace.is_dense
    worst, their_policies, losses, alpha = response.scenarios, response.policies, response.losses, response.weights
    scores, bounds, scratch = workspace.scores[0], workspace.scores[1], workspace.scores[2]
    constants, lengths, policies, pulls = workspace.constants, workspace.lengths, workspace.policies, workspace.pulls
    answers, parts, state = workspace.answers, workspace.answer_parts, workspace.state
    rows, values, inverse, basic = workspace.rows[:n_rows], workspace.values, workspace.inverse, workspace.basic
    weights, best_weights, direction = workspace.vectors[0, :n_rows], workspace.vectors[1], workspace.vectors[2]
    slots = values.shape[0]
    upper, started, exact_inverse, spoiled, restarted, pivots = np.inf, state[KEPT] > 0, False, False, False, 0
    if started:
        start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
    else:
        for i in range(n_rows):
            weights[i] = 1.0 / n_rows
    while pivots < MOST_PIVOTS + 200 * n_rows:
        arriving = -1  # the variable that enters the basis: a cut, or slots + i for the slack of row i
        if started:
            theta = inverse[n_rows, n_rows]
            if theta >= threshold and proved_value(n_rows, slots, values, inverse, basic) >= threshold:
                break
            arriving = arriving_column(n_rows, slots, state[KEPT], 0.25 * tolerance, values, inverse, weights)
            # Cuts that are nearly alike make pivots inexact: then the inverse is worked out afresh, once.
            if arriving < 0 and not exact_inverse:
                exact_inverse = True
                drift = abs(theta - proved_value(n_rows, slots, values, inverse, basic))
                if drift > 0.1 * tolerance and reinvert(n_rows, slots, values, basic, inverse):
                    continue
        if arriving < 0:
            make_distribution(weights)
            # The antagonist's answer: which scenarios, worst first, and by how much they count.
            state[CALLS] += 1
            score_policies(results, rows, weights, scores)
            if kind == BY_SELECTION:
                bound_losses(scores, low, high, knots, coefficients, bounds, scratch)
                select_worst(scores, bounds, offsets, full_scores, knots, coefficients, losses, worst, their_policies)
            else:
                list_all(scores, arrays, response)
            weigh_scenarios(kind, worst, probabilities, rank_weights, edges, table, alpha)
            objective = average_loss(losses, alpha)
            if objective < upper:
                upper = objective
                for i in range(n_rows):
                    best_weights[i] = weights[i]
            if upper < good_enough:
                break
            if started and upper - inverse[n_rows, n_rows] <= tolerance:
                proved = proved_value(n_rows, slots, values, inverse, basic)
                if restarted or proved >= upper - 2.0 * tolerance:
                    break
                # The mixture has negative parts: an earlier pivot was no more than rounding. Begin with one cut again.
                restarted = True
                start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
                continue
            arriving = free_slot(n_rows, slots, state, basic)
            length, constant = 0, objective
            if dense:
                length = scores.shape[0]
                for j in range(length):
                    pulls[arriving, j], policies[arriving, j] = 0.0, j
            for h in range(worst.shape[0]):
                j = their_policies[h]
                slope = slope_at(scores[j] - full_scores[worst[h]], knots, coefficients)
                pull = alpha[h] * slope
                constant -= pull * scores[j]
                answers[arriving, h], parts[arriving, 0, h], parts[arriving, 1, h] = worst[h], alpha[h], slope
                if dense:
                    pulls[arriving, j] += pull
                elif pull != 0.0:
                    pulls[arriving, length], policies[arriving, length] = pull, j
                    length += 1
            lengths[arriving], constants[arriving] = length, constant
            work_out_cut(arriving, rows, results, constants, lengths, policies, pulls, values)
            if not started:
                start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
                started = True
                continue
        if not pivot(n_rows, slots, arriving, values, inverse, basic, direction):
            if spoiled or not reinvert(n_rows, slots, values, basic, inverse):
                break  # what is proved so far stays proved
            spoiled = True
            continue
        exact_inverse, spoiled = False, False
        pivots += 1
        state[STEPS] += 1
    return proved_value(n_rows, slots, values, inverse, basic) if started else -np.inf, upper
