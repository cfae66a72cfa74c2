"""Learning cuts: what settles a tuple rules out other tuples too."""

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.solvers.kernels.case_sets import ONE, WordArray, count_bits, lowest_bit
from rposst_opt.solvers.kernels.compiling import compiled_when_it_pays, inlined, internal
from rposst_opt.solvers.kernels.cut_mixture import CutMixture, keep_mixture, mixture_at, record_mixture
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.kernels.search_state import Cuts, Plan, Search
from rposst_opt.solvers.kernels.tuple_game import TupleGame, add_row, settle

ONE_BY_ONE = 8  # times as long it takes to work a mixture out at one case alone, compared with one of all
EACH_PAYS = 4  # times as many cases as a cut is extended by must be left to settle, for that to pay
MOST_EXTENSIONS_SKIPPED = 15  # cuts that are learned without trying to extend them, after extensions that failed


@compiled_when_it_pays
def write_hits(first: int, end: int, limit: float, cuts: Cuts) -> None:
    """For each of these cuts, the set of cases where it is below the limit."""
    values, hit = cuts.values, cuts.hit
    n_cases = values.shape[1]
    for slot in range(first, end):
        for word in range(hit.shape[1]):
            bits = np.uint64(0)
            for x in range(64 * word, min(64 * word + 64, n_cases)):
                if values[slot, x] < limit:
                    bits |= ONE << np.uint64(x & 63)
            hit[slot, word] = bits


@internal
def work_out(by_policy: FloatArray, mixture: CutMixture, values: FloatArray) -> None:
    """Write down the mixture at every case."""
    policies, pulls, constant = mixture.policies, mixture.pulls, mixture.constant[0]
    noise_slopes, length = mixture.noise_slopes, mixture.length[0]
    n_cases = values.shape[0]
    for x in range(n_cases):
        values[x] = constant + noise_slopes[x] if noise_slopes.shape[0] > 0 else constant
    # Four policies at a time: with many cases, reading and writing the values is half of the work.
    for h in range(0, length - 3, 4):
        first, second, third, fourth = policies[h], policies[h + 1], policies[h + 2], policies[h + 3]
        for x in range(n_cases):
            values[x] += (pulls[h] * by_policy[first, x] + pulls[h + 1] * by_policy[second, x]) + (
                pulls[h + 2] * by_policy[third, x] + pulls[h + 3] * by_policy[fourth, x]
            )
    for h in range(length - length % 4, length):
        for x in range(n_cases):
            values[x] += pulls[h] * by_policy[policies[h], x]


@internal
def work_out_within(
    within: WordArray,
    everywhere: bool,
    results: FloatArray,
    by_policy: FloatArray,
    mixture: CutMixture,
    values: FloatArray,
) -> bool:
    """Write down the mixture at these cases, or where they are many or it is asked for, at all; whether at all."""
    count = 0
    for word in range(within.shape[0]):
        count += count_bits(within[word])
    if everywhere or count * ONE_BY_ONE > values.shape[0]:
        work_out(by_policy, mixture, values)
        return True
    for word in range(within.shape[0]):
        bits = within[word]
        while bits != 0:
            case = 64 * word + lowest_bit(bits)
            bits &= bits - ONE
            values[case] = mixture_at(case, results, mixture)
    return False


@internal
def nearest_below(limit: float, within: WordArray, values: FloatArray) -> int:
    """Of these cases, the one with the greatest value below the limit; -1 if there is none."""
    nearest, highest = -1, -np.inf
    for word in range(within.shape[0]):
        bits = within[word]
        while bits != 0:
            case = 64 * word + lowest_bit(bits)
            bits &= bits - ONE
            if highest < values[case] < limit:
                nearest, highest = case, values[case]
    return nearest


@internal
def count_below(limit: float, within: WordArray, values: FloatArray) -> int:
    """How many of these cases have a value below the limit."""
    count = 0
    for word in range(within.shape[0]):
        bits = within[word]
        while bits != 0:
            count += values[64 * word + lowest_bit(bits)] < limit
            bits &= bits - ONE
    return count


@internal
def add_nearest_rows(
    n_rows: int,
    most: int,
    limit: float,
    within: WordArray,
    values: FloatArray,
    results: FloatArray,
    workspace: TupleGame,
) -> int:
    """Make the cases that the mixture, of these values, comes closest to ruling out rows; how many rows there are."""
    while n_rows < most:
        case = nearest_below(limit, within, values)
        if case < 0:
            break
        add_row(n_rows, case, results, workspace)
        n_rows, limit = n_rows + 1, values[case]
    return n_rows


@inlined
def add_cut(place: int, is_worked_out: bool, search: Search) -> int:
    """Make the mixture, which may have been worked out at its place already, the next of the own cuts."""
    if not is_worked_out:
        work_out(search.by_policy, search.mixture, search.cuts.values[place])
    write_hits(place, place + 1, search.levels.limit, search.cuts)
    search.counts.learned += 1
    search.uses[place] = 0
    return place


@internal
def settle_and_learn(
    n_rows: int, good_enough: float, within: WordArray, plan: Plan, arrays: ProblemArrays, search: Search
) -> tuple[float, float, int]:
    """Settle the rows. If they are ruled out, learn a cut that rules out more cases of `within` too while it can.

    It is extended by one case, then by two more, by four, and so on: settling many at once takes little longer than
    one. Where extending a cut fails, it is not tried again for a while. Returns the bounds of `settle`, and the cut
    or -1.
    """
    workspace, mixture, counts = search.workspace, search.mixture, search.counts
    threshold, limit, roughness = search.levels.threshold, search.levels.limit, search.levels.roughness
    proved, reached = -np.inf, np.inf
    first, learned, stride, is_worked_out = True, False, 1, False
    place = counts.own_start + counts.learned
    values = search.cuts.values[place]
    while True:
        lower, upper = settle(n_rows, threshold, good_enough, plan.tolerance, arrays, workspace, roughness)
        if first:
            proved, reached = lower, upper
            counts.extensions_to_skip = max(counts.extensions_to_skip - 1, 0)
        if lower < limit:
            if not first:
                counts.skipped_after_failure = min(2 * counts.skipped_after_failure + 1, MOST_EXTENSIONS_SKIPPED)
                counts.extensions_to_skip = counts.skipped_after_failure
            break
        if not first:
            counts.skipped_after_failure //= 4
        first, learned, good_enough, is_worked_out = False, True, threshold, False
        keep_mixture(n_rows, workspace, mixture)
        if search.record.shape[0] > 0:
            record_mixture(n_rows, workspace, search.record[counts.learned])
            for x in range(mixture.noise_slopes.shape[0]):
                search.noise_record[counts.learned, x] = mixture.noise_slopes[x]
        if n_rows >= plan.most_rows or counts.extensions_to_skip > 0:
            break
        # As far as cuts are meant to reach, this is mostly the last step, and the cut is needed at all cases.
        is_last = n_rows >= plan.reach
        is_worked_out = work_out_within(within, is_last, arrays.results, search.by_policy, mixture, values)
        if n_rows >= plan.reach and count_below(limit, within, values) < EACH_PAYS * stride:
            break
        most = min(n_rows + stride, plan.most_rows)
        extended = add_nearest_rows(n_rows, most, limit, within, values, arrays.results, workspace)
        if extended == n_rows:
            break
        n_rows, stride = extended, 2 * stride
    return proved, reached, add_cut(place, is_worked_out, search) if learned else -1
