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
from rposst_opt.solvers.kernels.compiling import compiled, internal
from rposst_opt.solvers.kernels.response import (
    BY_PROBABILITY,
    BY_SELECTION,
    ProblemArrays,
    Response,
    bound_losses,
    list_all,
    make_response,
    score_policies,
    select_worst,
    slope_at,
    weigh_by_tail,
)

KEPT_CUTS = 32  # from one set of rows to the next
MOST_PIVOTS = 500  # of the simplex method on few rows; far more than are needed unless rounding spoils it

WEIGHT_TOLERANCE = 1e-12  # a weight below minus this is negative
PIVOT_TOLERANCE = 1e-11
SINGULAR = 1e-14  # a pivot of an inversion that is no more than rounding
REFINEMENTS = 2
TIE_TOLERANCE = 1e-13


KEPT, NEXT, CALLS, STEPS = range(4)  # places in TupleGame.state


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
        np.zeros(most_rows, np.int64),
        np.empty((slots, most_rows)),
        np.empty(slots),
        np.zeros(slots, np.int64),
        np.empty((slots, width), np.int64),
        np.empty((slots, width)),
        np.empty((slots, reach), np.int64),
        np.empty((slots, 2, reach)),
        np.empty((most_rows + 1, most_rows + 1)),
        np.empty(most_rows + 1, np.int64),
        np.empty((3, most_rows + 1)),
        np.zeros(4, np.int64),
        np.empty((3, n_policies)),
        make_response(arrays),
        is_dense,
    )


@compiled
def place_row(at: int, case: int, results: FloatArray, workspace: TupleGame) -> None:
    """Make this case a row, and work out every kept cut there."""
    constants, lengths, policies, pulls, values = (
        workspace.constants,
        workspace.lengths,
        workspace.policies,
        workspace.pulls,
        workspace.values,
    )
    workspace.rows[at] = case
    for k in range(workspace.state[KEPT]):
        value = constants[k]
        for h in range(lengths[k]):
            value += pulls[k, h] * results[case, policies[k, h]]
        values[k, at] = value


@internal
def start_basis(n_rows: int, slots: int, kept: int, values: FloatArray, inverse: FloatArray, basic: IntArray) -> None:
    """The basis of the one cut that is best alone: its least row is tight, and all others have slack."""
    best, least_row, highest = 0, 0, -np.inf
    for k in range(kept):
        row, least = 0, np.inf
        for i in range(n_rows):
            if values[k, i] < least:
                row, least = i, values[k, i]
        if least > highest:
            best, least_row, highest = k, row, least
    for i in range(n_rows + 1):
        for j in range(n_rows + 1):
            inverse[i, j] = 0.0
    # The rows of the inverse: slack of x is c_x λ - v, λ is one, and v is c at the least row.
    for i in range(n_rows):
        if i == least_row:
            basic[i] = best
            inverse[i, n_rows] = 1.0
        else:
            basic[i] = slots + i
            inverse[i, i] = -1.0
            inverse[i, least_row] = 1.0
            inverse[i, n_rows] = values[best, i] - highest
    inverse[n_rows, least_row] = -1.0
    inverse[n_rows, n_rows] = highest


@internal
def leaving_row(n_rows: int, inverse: FloatArray, direction: FloatArray) -> int:
    """The basic variable that reaches zero first; ties go to the lexicographically least row."""
    leaving, shortest = -1, np.inf
    for i in range(n_rows):
        if direction[i] <= PIVOT_TOLERANCE:
            continue
        step = max(inverse[i, n_rows], 0.0) / direction[i]
        if leaving < 0 or step < shortest - TIE_TOLERANCE:
            leaving, shortest = i, step
        elif step <= shortest + TIE_TOLERANCE:
            for j in range(n_rows):
                mine, its = inverse[i, j] / direction[i], inverse[leaving, j] / direction[leaving]
                if mine < its - TIE_TOLERANCE:
                    leaving, shortest = i, min(step, shortest)
                    break
                if mine > its + TIE_TOLERANCE:
                    break
    return leaving


@internal
def proved_value(n_rows: int, slots: int, values: FloatArray, inverse: FloatArray, basic: IntArray) -> float:
    """The least row of the mixture λ, which is clipped and scaled to be a distribution whatever rounding did."""
    total = 0.0
    for i in range(n_rows):
        if basic[i] < slots:
            total += max(inverse[i, n_rows], 0.0)
    least = np.inf
    for j in range(n_rows):
        value = 0.0
        for i in range(n_rows):
            if basic[i] < slots:
                value += max(inverse[i, n_rows], 0.0) * values[basic[i], j]
        least = min(least, value)
    return least / total


@internal
def basis_matrix(n_rows: int, slots: int, values: FloatArray, basic: IntArray, matrix: FloatArray) -> None:
    """The columns of the cuts and slacks in the basis, and of v."""
    for j in range(n_rows + 1):
        for i in range(n_rows + 1):
            matrix[i, j] = 0.0
    for j in range(n_rows):
        matrix[j, n_rows] = -1.0
        if basic[j] >= slots:
            matrix[basic[j] - slots, j] = -1.0
        else:
            matrix[n_rows, j] = 1.0
            for i in range(n_rows):
                matrix[i, j] = values[basic[j], i]


@internal
def invert(matrix: FloatArray, inverse: FloatArray) -> bool:
    """The inverse, by elimination; False, and left as it is, if the matrix has none."""
    order = matrix.shape[0]
    table = np.empty((order, 2 * order))
    for i in range(order):
        for j in range(order):
            table[i, j] = matrix[i, j]
            table[i, order + j] = 1.0 if i == j else 0.0
    for column in range(order):
        largest = column
        for i in range(column + 1, order):
            if abs(table[i, column]) > abs(table[largest, column]):
                largest = i
        if abs(table[largest, column]) <= SINGULAR:
            return False
        for j in range(2 * order):
            table[column, j], table[largest, j] = table[largest, j], table[column, j]
        pivot = 1.0 / table[column, column]
        for j in range(2 * order):
            table[column, j] *= pivot
        for i in range(order):
            factor = table[i, column]
            if i != column and factor != 0.0:
                for j in range(2 * order):
                    table[i, j] -= factor * table[column, j]
    for i in range(order):
        for j in range(order):
            inverse[i, j] = table[i, order + j]
    return True


@internal
def refine(matrix: FloatArray, inverse: FloatArray) -> None:
    """Correct the last column (λ, s and v) and the last row (w and θ), by what is missing from the equations.

    The inverse of a nearly singular basis has large, inexact entries, but these two are of order one.
    """
    last = matrix.shape[0] - 1
    missing = np.empty(last + 1)
    for i in range(last + 1):
        missing[i] = 1.0 if i == last else 0.0
        for j in range(last + 1):
            missing[i] -= matrix[i, j] * inverse[j, last]
    for i in range(last + 1):
        for j in range(last + 1):
            inverse[i, last] += inverse[i, j] * missing[j]
    for j in range(last + 1):
        missing[j] = 1.0 if j == last else 0.0
        for i in range(last + 1):
            missing[j] -= inverse[last, i] * matrix[i, j]
    for j in range(last + 1):
        for i in range(last + 1):
            inverse[last, j] += missing[i] * inverse[i, j]


@internal
def reinvert(n_rows: int, slots: int, values: FloatArray, basic: IntArray, inverse: FloatArray) -> bool:
    """Work the inverse of the basis out afresh; False if the basis has none."""
    matrix = np.empty((n_rows + 1, n_rows + 1))
    basis_matrix(n_rows, slots, values, basic, matrix)
    if not invert(matrix, inverse):
        return False
    for _ in range(REFINEMENTS):
        refine(matrix, inverse)
    return True


@compiled
def settle(
    n_rows: int, threshold: float, good_enough: float, tolerance: float, arrays: ProblemArrays, workspace: TupleGame
) -> tuple[float, float]:
    """Bounds on the optimum over the rows: a proved one, and the objective of the best weights (``vectors[1]``).

    It ends when the proved bound reaches `threshold`, when an objective below `good_enough` is found, or when the two
    bounds are within `tolerance` of each other. The mixture that proves the bound is left in the basis.
    """
    # Every array is taken out of its tuple once, here: inside the loop it would cost more than the arithmetic.
    results, full_scores, knots, coefficients = arrays.results, arrays.full_scores, arrays.knots, arrays.coefficients
    low, high, offsets, probabilities = (
        arrays.least_full_scores,
        arrays.greatest_full_scores,
        arrays.offsets,
        arrays.probabilities,
    )
    rank_weights, edges, table, kind = arrays.rank_weights, arrays.tail_edges, arrays.tail_coefficients, arrays.response
    response = workspace.response
    worst, their_policies, losses, alpha = response.scenarios, response.policies, response.losses, response.weights
    rows, values, constants, lengths = workspace.rows[:n_rows], workspace.values, workspace.constants, workspace.lengths
    policies, pulls, answers, parts = workspace.policies, workspace.pulls, workspace.answers, workspace.answer_parts
    inverse, basic, state, dense = workspace.inverse, workspace.basic, workspace.state, workspace.is_dense
    weights, best_weights, direction = workspace.vectors[0, :n_rows], workspace.vectors[1], workspace.vectors[2]
    scores, bounds, scratch = workspace.scores[0], workspace.scores[1], workspace.scores[2]
    slots, count = values.shape[0], losses.shape[0]

    upper, started, exact_inverse, pivots = np.inf, state[KEPT] > 0, False, 0
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
            # w from the row of v; a negative one asks for its slack
            lowest = -WEIGHT_TOLERANCE
            for i in range(n_rows):
                weights[i] = -inverse[n_rows, i]
                if weights[i] < lowest:
                    lowest, arriving = weights[i], slots + i
            if arriving < 0:
                # the kept cut that w violates most
                most = 0.25 * tolerance
                for k in range(state[KEPT]):
                    excess = -theta
                    for i in range(n_rows):
                        excess += weights[i] * values[k, i]
                    if excess > most:
                        most, arriving = excess, k
            # Cuts that are nearly alike make pivots inexact: then the inverse is worked out afresh, once.
            if arriving < 0 and not exact_inverse:
                exact_inverse = True
                drift = abs(theta - proved_value(n_rows, slots, values, inverse, basic))
                if drift > 0.1 * tolerance and reinvert(n_rows, slots, values, basic, inverse):
                    continue
        if arriving < 0:
            total = 0.0
            for i in range(n_rows):
                weights[i] = max(weights[i], 0.0)
                total += weights[i]
            for i in range(n_rows):
                weights[i] /= total
            # The antagonist's answer: which scenarios, worst first, and by how much they count. It stands here as it
            # does in `regret_matching`: a function for both made that one take twice as long.
            state[CALLS] += 1
            score_policies(results, rows, weights, scores)
            if kind == BY_SELECTION:
                bound_losses(scores, low, high, knots, coefficients, bounds, scratch)
                select_worst(scores, bounds, offsets, full_scores, knots, coefficients, losses, worst, their_policies)
            else:
                list_all(scores, arrays, response)
            if kind == BY_PROBABILITY:
                for h in range(count):
                    alpha[h] = probabilities[worst[h]]
            elif rank_weights.shape[0] > 0:
                for h in range(count):
                    alpha[h] = rank_weights[h]
            else:
                weigh_by_tail(worst, probabilities, edges, table, alpha)
            objective = 0.0
            for h in range(count):
                objective += alpha[h] * losses[h]
            if objective < upper:
                upper = objective
                for i in range(n_rows):
                    best_weights[i] = weights[i]
            if upper < good_enough or (started and upper - inverse[n_rows, n_rows] <= tolerance):
                break
            # The new cut takes an empty slot, or the oldest that is not in the basis.
            if state[KEPT] < slots:
                arriving = state[KEPT]
                state[KEPT] += 1
            else:
                taken = True
                while taken:
                    arriving = state[NEXT]
                    state[NEXT] = (state[NEXT] + 1) % slots
                    taken = False
                    for i in range(n_rows):
                        taken = taken or basic[i] == arriving
            length, constant = 0, objective
            if dense:
                length = scores.shape[0]
                for j in range(length):
                    pulls[arriving, j], policies[arriving, j] = 0.0, j
            for h in range(count):
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
            for i in range(n_rows):
                value = constant
                for h in range(length):
                    value += pulls[arriving, h] * results[rows[i], policies[arriving, h]]
                values[arriving, i] = value
            if not started:
                start_basis(n_rows, slots, state[KEPT], values, inverse, basic)
                started = True
                continue
        # Pivot: the arriving column in terms of the basis, who leaves, and the new inverse.
        for i in range(n_rows + 1):
            if arriving >= slots:
                direction[i] = -inverse[i, arriving - slots]
            else:
                change = inverse[i, n_rows]
                for j in range(n_rows):
                    change += inverse[i, j] * values[arriving, j]
                direction[i] = change
        leaving = leaving_row(n_rows, inverse, direction)
        if leaving < 0:
            break  # rounding has spoiled the basis; what is proved so far stays proved
        basic[leaving] = arriving
        exact_inverse = False
        pivots += 1
        state[STEPS] += 1
        pivot = 1.0 / direction[leaving]
        for j in range(n_rows + 1):
            inverse[leaving, j] *= pivot
        for i in range(n_rows + 1):
            if i != leaving and direction[i] != 0.0:
                factor = direction[i]
                for j in range(n_rows + 1):
                    inverse[i, j] -= factor * inverse[leaving, j]
    return proved_value(n_rows, slots, values, inverse, basic) if started else -np.inf, upper


class CutMixture(NamedTuple):
    """A mixture of cuts: c_x = constant + Σ_h pulls[h] A[x, policies[h]], h < length."""

    constant: FloatArray  # (1,)
    length: IntArray  # (1,)
    policies: IntArray
    pulls: FloatArray


def make_cut_mixture(arrays: ProblemArrays, most_rows: int) -> CutMixture:
    """A workspace for a mixture of as many cuts as a basis has."""
    length = max(most_rows * arrays.most_chosen, arrays.results.shape[1])
    return CutMixture(np.zeros(1), np.zeros(1, np.int64), np.empty(length, np.int64), np.empty(length))


@internal
def mixture_at(case: int, results: FloatArray, mixture: CutMixture) -> float:
    """The mixture at one case."""
    value, policies, pulls = mixture.constant[0], mixture.policies, mixture.pulls
    for h in range(mixture.length[0]):
        value += pulls[h] * results[case, policies[h]]
    return value


@internal
def share_of(i: int, n_rows: int, workspace: TupleGame) -> float:
    """What cut ``basic[i]`` has in the mixture of the basis; zero for a slack."""
    slots, total = workspace.values.shape[0], 0.0
    if workspace.basic[i] >= slots:
        return 0.0
    for k in range(n_rows):
        if workspace.basic[k] < slots:
            total += max(workspace.inverse[k, n_rows], 0.0)
    return max(workspace.inverse[i, n_rows], 0.0) / total


@internal
def keep_mixture(n_rows: int, workspace: TupleGame, mixture: CutMixture) -> None:
    """Copy the mixture that the basis holds."""
    n_policies, length = workspace.scores.shape[1], 0
    dense = workspace.is_dense
    if dense:
        length = n_policies
        for j in range(n_policies):
            mixture.policies[j], mixture.pulls[j] = j, 0.0
    mixture.constant[0] = 0.0
    for i in range(n_rows):
        share, k = share_of(i, n_rows, workspace), workspace.basic[i]
        if share == 0.0:
            continue
        mixture.constant[0] += share * workspace.constants[k]
        for h in range(workspace.lengths[k]):
            if dense:
                mixture.pulls[h] += share * workspace.pulls[k, h]
            else:
                mixture.policies[length], mixture.pulls[length] = (
                    workspace.policies[k, h],
                    share * workspace.pulls[k, h],
                )
                length += 1
    mixture.length[0] = length


@internal
def record_mixture(n_rows: int, workspace: TupleGame, record: FloatArray) -> None:
    """Write down the tail weight α and the pull αδ of each scenario in the mixture of the basis."""
    record[:] = 0.0
    for i in range(n_rows):
        share, k = share_of(i, n_rows, workspace), workspace.basic[i]
        if share > 0.0:
            for h in range(workspace.answers.shape[1]):
                weight = share * workspace.answer_parts[k, 0, h]
                record[0, workspace.answers[k, h]] += weight
                record[1, workspace.answers[k, h]] += weight * workspace.answer_parts[k, 1, h]
