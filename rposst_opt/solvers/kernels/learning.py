"""Learning cuts: what settles a tuple rules out other tuples too."""

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.solvers.kernels.case_sets import ONE, WordArray, count_bits, lowest_bit
from rposst_opt.solvers.kernels.compiling import compiled_when_it_pays, internal
from rposst_opt.solvers.kernels.cut_mixture import keep_mixture, mixture_at, record_mixture
from rposst_opt.solvers.kernels.response import ProblemArrays
from rposst_opt.solvers.kernels.search_state import Cuts, Plan, Search
from rposst_opt.solvers.kernels.tuple_game import KEPT, NEXT, add_row, settle

ONE_BY_ONE = 8  # times as long it takes to work a mixture out at one case alone, compared with one of all
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
def work_out(slot: int, search: Search) -> None:
    """Write the mixture at every case to this place among the cuts."""
    values, by_policy = search.cuts.values, search.by_policy
    policies, pulls, constant = search.mixture.policies, search.mixture.pulls, search.mixture.constant[0]
    noise_slopes = search.mixture.noise_slopes
    n_cases = values.shape[1]
    for x in range(n_cases):
        values[slot, x] = constant + noise_slopes[x] if noise_slopes.shape[0] > 0 else constant
    for h in range(search.mixture.length[0]):
        pull, j = pulls[h], policies[h]
        for x in range(n_cases):
            values[slot, x] += pull * by_policy[j, x]


@internal
def nearest_case(slot: int, within: WordArray, limit: float, results: FloatArray, search: Search) -> int:
    """The case that the mixture comes closest to ruling out, of those that it does not; -1 if there is none.

    For many cases the mixture is worked out at all of them, in this place among the cuts: that is quicker than one by
    one.
    """
    count = 0
    for word in range(within.shape[0]):
        count += count_bits(within[word])
    values, all_at_once = search.cuts.values, count * ONE_BY_ONE > search.cuts.values.shape[1]
    if all_at_once:
        work_out(slot, search)
    nearest, highest = -1, -np.inf
    for word in range(within.shape[0]):
        bits = within[word]
        while bits != 0:
            case = 64 * word + lowest_bit(bits)
            bits &= bits - ONE
            value = values[slot, case] if all_at_once else mixture_at(case, results, search.mixture)
            if highest < value < limit:
                nearest, highest = case, value
    return nearest


@internal
def add_cut(search: Search) -> int:
    """Make the mixture the next of the own cuts."""
    counts = search.counts
    slot = counts.own_start + counts.learned
    counts.learned += 1
    work_out(slot, search)
    write_hits(slot, slot + 1, search.levels.limit, search.cuts)
    search.uses[slot] = 0
    return slot


@internal
def settle_and_learn(
    n_rows: int, good_enough: float, within: WordArray, plan: Plan, arrays: ProblemArrays, search: Search
) -> tuple[float, float, int]:
    """Settle the rows. If they are ruled out, learn a cut that rules out more cases of `within` too while it can.

    Where extending a cut fails, it is not tried again for a while. Returns the bounds of `settle`, and the cut or -1.
    """
    workspace, mixture, counts = search.workspace, search.mixture, search.counts
    threshold, limit = search.levels.threshold, search.levels.limit
    proved, reached = -np.inf, np.inf
    first, learned = True, False
    while True:
        lower, upper = settle(n_rows, threshold, good_enough, plan.tolerance, arrays, workspace)
        if first and lower < limit and threshold <= upper:
            # Rounding has come between the two bounds: cuts that are nearly alike spoil a basis. Begin without them.
            workspace.state[KEPT], workspace.state[NEXT] = 0, 0
            lower, again = settle(n_rows, threshold, good_enough, plan.tolerance, arrays, workspace)
            upper = again  # the weights that are kept are this run's
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
        first, learned, good_enough = False, True, threshold
        keep_mixture(n_rows, workspace, mixture)
        if search.record.shape[0] > 0:
            record_mixture(n_rows, workspace, search.record[counts.learned])
            search.noise_record[counts.learned] = mixture.noise_slopes
        if n_rows >= plan.reach or counts.extensions_to_skip > 0:
            break
        case = nearest_case(counts.own_start + counts.learned, within, limit, arrays.results, search)
        if case < 0:
            break
        add_row(n_rows, case, arrays.results, workspace)
        n_rows += 1
    return proved, reached, add_cut(search) if learned else -1
