"""The basis of the simplex method in `tuple_game`: its inverse, its pivots, and what it proves.

Row i of the basis holds cut k, ``basic[i] == k``, or the slack of row x, ``basic[i] == slots + x``; the last one v.
"""

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import allocates, inlined, internal

WEIGHT_TOLERANCE = 1e-12  # a weight below minus this is negative
PIVOT_TOLERANCE = 1e-10
SINGULAR = 1e-14  # a pivot of an inversion that is no more than rounding
REFINEMENTS = 2
TIE_TOLERANCE = 1e-13
NEGATIVE = 1e-13  # a basic variable below minus this is mended


@internal
def start_basis(n_rows: int, slots: int, kept: int, values: FloatArray, inverse: FloatArray, basic: IntArray) -> None:
    """The basis of the one cut that is best alone: its least row is tight, and all others have slack."""
    best, least_row, highest = 0, 0, -np.inf
    for k in range(kept):
        row, least = 0, np.inf
        for i in range(n_rows):
            if values[i, k] < least:
                row, least = i, values[i, k]
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
            inverse[i, n_rows] = values[i, best] - highest
    inverse[n_rows, least_row] = -1.0
    inverse[n_rows, n_rows] = highest


@internal
def extend_basis(n_rows: int, values: FloatArray, inverse: FloatArray, basic: IntArray) -> None:
    """Give the basis one more row, the one after `n_rows`, with its slack as the basic variable.

    That slack, the mixture at the new row less v, is negative if the mixture does not rule the row out: then it must
    leave (`mend`). The weights stay in order, with none on the new row.
    """
    slots, new, last = values.shape[1], n_rows, n_rows + 1
    for i in range(n_rows + 1):  # what belonged to the sum of the mixture, and to v, moves to the new end
        inverse[i, last] = inverse[i, new]
        inverse[i, new] = 0.0
    for j in range(last + 1):
        inverse[last, j] = inverse[new, j]
        inverse[new, j] = -inverse[last, j]
    for i in range(n_rows):
        if basic[i] < slots:
            for j in range(last + 1):
                inverse[new, j] += values[new, basic[i]] * inverse[i, j]
    inverse[new, new] = -1.0
    basic[new] = slots + new


@inlined
def leaving_row(n_rows: int, inverse: FloatArray, direction: FloatArray, shifts: FloatArray) -> int:
    """The basic variable that reaches zero first; ties go to the lexicographically least row.

    The variables are shifted a little where too many of them are zero (`shift_basis`).
    """
    leaving, shortest = -1, np.inf
    for i in range(n_rows):
        if direction[i] <= PIVOT_TOLERANCE:
            continue
        step = (max(inverse[i, n_rows], 0.0) + shifts[i]) / direction[i]
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
def shift_basis(n_rows: int, shift: float, shifts: FloatArray) -> None:
    """Move every basic variable a little away from zero, each by another amount, or back if `shift` is zero.

    Where very many mixtures are as good, nearly all basic variables are zero, and the simplex method goes in circles:
    rounding decides between ties. With other right sides there are no ties; the weights do not depend on them.
    """
    for i in range(n_rows):
        shifts[i] = shift * (1.0 + (i * 7919) % 1009 / 1009)


@internal
def proved_value(n_rows: int, slots: int, values: FloatArray, inverse: FloatArray, basic: IntArray) -> float:
    """The least row of the mixture λ, which is clipped and scaled to be a distribution whatever rounding did.

    Where rounding has left none of it, nothing is proved.
    """
    total = 0.0
    for i in range(n_rows):
        if basic[i] < slots:
            total += max(inverse[i, n_rows], 0.0)
    least = np.inf
    for j in range(n_rows):
        value = 0.0
        for i in range(n_rows):
            if basic[i] < slots:
                value += max(inverse[i, n_rows], 0.0) * values[j, basic[i]]
        least = min(least, value)
    return least / total if 0.0 < total < np.inf else -np.inf


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
                matrix[i, j] = values[i, basic[j]]


@internal
@allocates
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
@allocates
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
@allocates
def reinvert(n_rows: int, slots: int, values: FloatArray, basic: IntArray, inverse: FloatArray) -> bool:
    """Work the inverse of the basis out afresh; False if the basis has none."""
    matrix = np.empty((n_rows + 1, n_rows + 1))
    basis_matrix(n_rows, slots, values, basic, matrix)
    if not invert(matrix, inverse):
        return False
    for _ in range(REFINEMENTS):
        refine(matrix, inverse)
    return True


@inlined
def write_sums(
    constant: float, n_rows: int, kept: int, factors: FloatArray, values: FloatArray, sums: FloatArray
) -> None:
    """For every kept cut the constant and the sum of its values, each times the factor of its row.

    Cut by cut within every row, so that the compiler can use vector instructions: the simplex method does little else.
    """
    for k in range(kept):
        sums[k] = constant
    for i in range(n_rows):
        factor = factors[i]
        if factor != 0.0:
            for k in range(kept):
                sums[k] += factor * values[i, k]


@inlined
def arriving_column(
    n_rows: int,
    slots: int,
    kept: int,
    least_excess: float,
    values: FloatArray,
    inverse: FloatArray,
    weights: FloatArray,
    columns: FloatArray,
) -> int:
    """Read the weights w off the basis, and say what should enter it: a cut, slots + i for a slack, or -1.

    A negative weight asks for its slack. If there is none, the kept cut that w violates most is asked for.
    """
    arriving, lowest = -1, -WEIGHT_TOLERANCE
    for i in range(n_rows):
        weights[i] = -inverse[n_rows, i]
        if weights[i] < lowest:
            lowest, arriving = weights[i], slots + i
    if arriving < 0:
        excess, most = columns[0], least_excess
        write_sums(-inverse[n_rows, n_rows], n_rows, kept, weights, values, excess)
        for k in range(kept):
            if excess[k] > most:
                most, arriving = excess[k], k
    return arriving


@inlined
def write_direction(
    n_rows: int, slots: int, arriving: int, values: FloatArray, inverse: FloatArray, direction: FloatArray
) -> None:
    """By how much each basic variable falls when the arriving one rises by one."""
    for i in range(n_rows + 1):
        direction[i] = change_of(i, n_rows, slots, arriving, values, inverse)


@inlined
def change_of(i: int, n_rows: int, slots: int, arriving: int, values: FloatArray, inverse: FloatArray) -> float:
    """By how much the i-th basic variable falls when the arriving one rises by one."""
    change = 0.0
    if arriving >= slots:
        change = -inverse[i, arriving - slots]
    else:
        change = inverse[i, n_rows]
        for j in range(n_rows):
            change += inverse[i, j] * values[j, arriving]
    return change


@inlined
def exchange(
    n_rows: int,
    leaving: int,
    arriving: int,
    inverse: FloatArray,
    basic: IntArray,
    direction: FloatArray,
    shifts: FloatArray,
) -> None:
    """Put the arriving variable in the place of the one that leaves."""
    basic[leaving] = arriving
    scale = 1.0 / direction[leaving]
    for j in range(n_rows + 1):
        inverse[leaving, j] *= scale
    shifts[leaving] *= scale
    for i in range(n_rows + 1):
        if i != leaving and direction[i] != 0.0:
            factor = direction[i]
            shifts[i] -= factor * shifts[leaving]
            for j in range(n_rows + 1):
                inverse[i, j] -= factor * inverse[leaving, j]


@inlined
def pivot(
    n_rows: int,
    slots: int,
    arriving: int,
    values: FloatArray,
    inverse: FloatArray,
    basic: IntArray,
    direction: FloatArray,
    shifts: FloatArray,
) -> bool:
    """Let a column enter the basis; False, with nothing changed, if rounding has spoiled it so that none can leave."""
    write_direction(n_rows, slots, arriving, values, inverse, direction)
    leaving = leaving_row(n_rows, inverse, direction, shifts)
    if leaving >= 0:
        exchange(n_rows, leaving, arriving, inverse, basic, direction, shifts)
    return leaving >= 0


@internal
def mend(
    n_rows: int,
    slots: int,
    kept: int,
    values: FloatArray,
    inverse: FloatArray,
    basic: IntArray,
    direction: FloatArray,
    shifts: FloatArray,
    columns: FloatArray,
) -> bool:
    """Let negative basic variables leave, by steps of the dual simplex method; whether none is left.

    Where cuts are nearly alike, rounding in an earlier ratio test makes such a variable. The weights are in order then,
    and stay so: what arrives is the column whose reduced cost is used up first.
    """
    for _ in range(2 * n_rows + 2):
        leaving, lowest = -1, -NEGATIVE
        for i in range(n_rows):
            if inverse[i, n_rows] < lowest:
                leaving, lowest = i, inverse[i, n_rows]
        if leaving < 0:
            return True
        largest = 1.0  # entries of a nearly singular inverse are large, and so is their rounding
        for j in range(n_rows + 1):
            largest = max(largest, abs(inverse[leaving, j]))
        arriving, least_ratio = -1, np.inf
        changes, costs = columns[0], columns[1]
        write_sums(inverse[leaving, n_rows], n_rows, kept, inverse[leaving], values, changes)
        write_sums(inverse[n_rows, n_rows], n_rows, kept, inverse[n_rows], values, costs)
        for i in range(n_rows):
            changes[kept + i], costs[kept + i] = -inverse[leaving, i], -inverse[n_rows, i]
        for column in range(kept + n_rows):
            change = changes[column]
            if change < -PIVOT_TOLERANCE * largest:
                cost = max(costs[column], 0.0)
                if cost / -change < least_ratio:
                    arriving, least_ratio = column if column < kept else slots + column - kept, cost / -change
        if arriving < 0:
            return False
        write_direction(n_rows, slots, arriving, values, inverse, direction)
        exchange(n_rows, leaving, arriving, inverse, basic, direction, shifts)
    return False
