"""Sorting scenarios by their losses, worst first, no further than it changes how much they count."""

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import allocates, inlined, internal

SORTED_RUN = 16  # scenarios that are sorted by insertion
MOST_PARTS = 64  # yet to be sorted at a time: the larger half waits, so each is at most half as long as the one before


@inlined
def is_worse(loss: float, scenario: int, other_loss: float, other: int) -> bool:
    """Whether a scenario comes before another: a larger loss, ties by index."""
    return loss > other_loss or (loss == other_loss and scenario < other)


@inlined
def sort_by_insertion(low: int, high: int, order: IntArray, losses: FloatArray) -> None:
    """Sort a short stretch, worst first."""
    for i in range(low + 1, high):
        s, loss, h = order[i], losses[i], i
        while h > low and is_worse(loss, s, losses[h - 1], order[h - 1]):
            order[h], losses[h] = order[h - 1], losses[h - 1]
            h -= 1
        order[h], losses[h] = s, loss


@inlined
def part_at(pivot: int, low: int, high: int, order: IntArray, losses: FloatArray) -> int:
    """Put what is worse than the scenario at `pivot` before it, and the rest after it; where it is then."""
    s, loss = order[pivot], losses[pivot]
    order[pivot], losses[pivot] = order[high - 1], losses[high - 1]
    place = low
    for i in range(low, high - 1):
        its, its_loss = order[i], losses[i]
        # Exchanged in any case, so that there is no branch to predict.
        order[i], losses[i] = order[place], losses[place]
        order[place], losses[place] = its, its_loss
        place += is_worse(its_loss, its, loss, s)
    order[high - 1], losses[high - 1] = order[place], losses[place]
    order[place], losses[place] = s, loss
    return place


@inlined
def change_near(middle: int, low: int, high: int, rank_weights: FloatArray) -> int:
    """Where the weights of ranks, which never rise, fall near the middle of a stretch whose ends differ."""
    weight = rank_weights[middle]
    if rank_weights[low] > weight:  # the first rank of this weight
        first, last = low, middle
        while last - first > 1:
            between = (first + last) // 2
            if rank_weights[between] > weight:
                first = between
            else:
                last = between
        return last
    first, last = middle, high - 1  # the first rank of less
    while last - first > 1:
        between = (first + last) // 2
        if rank_weights[between] < weight:
            last = between
        else:
            first = between
    return last


@internal
def count_alike(
    low: int,
    high: int,
    before: float,
    after: float,
    rank_weights: FloatArray,
    edges: FloatArray,
    coefficients: FloatArray,
) -> bool:
    """Whether the order within a stretch makes no difference to how much its scenarios count.

    Equally likely ones count by rank. Others, of cumulative probabilities from `before` to `after`, count by their
    probability where the tail weight is linear.
    """
    if rank_weights.shape[0] > 0:
        return rank_weights[low] == rank_weights[high - 1]
    if coefficients.shape[1] > 2:
        return False
    for cell in range(coefficients.shape[0]):
        if before >= edges[cell] and (after <= edges[cell + 1] or cell == coefficients.shape[0] - 1):
            return True
    return False


@internal
@allocates
def sort_where_it_matters(
    count: int,
    order: IntArray,
    losses: FloatArray,
    probabilities: FloatArray,
    rank_weights: FloatArray,
    edges: FloatArray,
    coefficients: FloatArray,
) -> None:
    """Sort scenarios by their losses, worst first, as far as the order changes how much they count.

    A quicksort that leaves every part alone whose scenarios count alike: for a CVaR it is no more than a selection of
    the worst. The order given may be that of the last response, so the first pivot is what came where the weights
    change; later ones are drawn, by a rule, since no order that data come in may make this slow.
    """
    parts, tails = np.empty((MOST_PARTS, 2), np.int64), np.empty((MOST_PARTS, 2))
    parts[0, 0], parts[0, 1], tails[0, 0], tails[0, 1] = 0, count, 0.0, 1.0
    waiting, drawn, is_first, by_rank = 1, 12345, True, rank_weights.shape[0] > 0
    while waiting > 0:
        waiting -= 1
        low, high, before, after = parts[waiting, 0], parts[waiting, 1], tails[waiting, 0], tails[waiting, 1]
        while high - low > 1 and not count_alike(low, high, before, after, rank_weights, edges, coefficients):
            if high - low <= SORTED_RUN:
                sort_by_insertion(low, high, order, losses)
                break
            pivot = (low + high) // 2
            if is_first and by_rank:
                pivot = change_near(pivot, low, high, rank_weights)
            elif not is_first:
                drawn = (drawn * 1103515245 + 12345) % 2147483648
                pivot = low + (drawn >> 8) % (high - low)
            is_first = False
            place = part_at(pivot, low, high, order, losses)
            at_pivot, past_pivot = before, before
            if not by_rank:
                for h in range(low, place):
                    at_pivot += probabilities[order[h]]
                past_pivot = at_pivot + probabilities[order[place]]
            if place - low > high - place:
                parts[waiting, 0], parts[waiting, 1], tails[waiting, 0], tails[waiting, 1] = (
                    low,
                    place,
                    before,
                    at_pivot,
                )
                low, before = place + 1, past_pivot
            else:
                parts[waiting, 0], parts[waiting, 1] = place + 1, high
                tails[waiting, 0], tails[waiting, 1] = past_pivot, after
                high, after = place, at_pivot
            waiting += 1
