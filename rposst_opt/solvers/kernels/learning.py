"""Learning cuts: what settles a tuple rules out other tuples too.

The mixture that settles a set of cases R is a cut that rules out every tuple within R, and some more by chance. So R is
made larger than the tuple, in three ways, as long as it is ruled out still:

1. *A leap.* The tuple is settled with a few of the other candidates for its last case at once, those that the cut
   before comes nearest to ruling out. One set is settled in the place of several; where that fails, the tuple is
   settled alone, and the next leaps are shorter.
2. *Within*, by more and more of the candidates that are left, as long as so many are left that it saves settling them.
3. *Widening*, once, by the cases that the mixture comes nearest to ruling out of all there are: that saves nothing
   here, but elsewhere in the tree, where cases are alike. By how many cases, is found out by trying: by more after a
   success, by fewer after a failure. Whether it pays at all is decided in `rposst_opt.solvers.widening`, which
   compares cuts of both kinds: of those that are learned, one now and then is a probe of the other kind.
"""

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.case_sets import ONE, WordArray, count_bits, lowest_bit
from rposst_opt.solvers.kernels.compiling import compiled_when_it_pays, inlined, internal
from rposst_opt.solvers.kernels.cut_mixture import CutMixture, keep_mixture, mixture_at, record_mixture
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.kernels.search_state import MOSTLY, NEVER, Cuts, Plan, Search
from rposst_opt.solvers.kernels.tuple_game import CALLS, STEPS, TupleGame, add_row, place_row, settle

ONE_BY_ONE = 8  # times as long it takes to work a mixture out at one case alone, compared with one of all
EACH_PAYS = 12  # times as many cases as a cut is extended by must be left to settle, for that to pay
MOST_EXTENSIONS_SKIPPED = 15  # cuts that are learned without trying to extend them, after extensions that failed
LONGEST_LEAP = 3  # cases that are settled with a tuple,
SKIPPED_AFTER_LEAP = 2  # and cuts that are not extended, or that no leap is tried for, after one that failed
# By how many cases a cut is widened: one more and this part of them after a success, three fewer and this part of them
# after a failure, so that three of four succeed.
WIDER, NARROWER = 8, 4
PROBE_EVERY = 32  # cuts there is one that is widened although others are not, or the other way round


@compiled_when_it_pays
def write_hits(first: int, end: int, limit: float, cuts: Cuts) -> None:
    """For each of these cuts, the set of cases where it is below the limit."""
    values, hit = cuts.values, cuts.hit
    n_cases = values.shape[1]
    for slot in range(first, end):
        for word in range(hit.shape[1]):
            bits, start = np.uint64(0), 64 * word
            for b in range(min(64, n_cases - start)):  # without branches, for vector instructions
                bits |= np.uint64(values[slot, start + b] < limit) << np.uint64(b)
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
def list_nearest(most: int, limit: float, within: WordArray, values: FloatArray, nearest: IntArray) -> int:
    """List up to `most` of these cases, those with the greatest values below the limit; how many there are.

    They come in the order of their values; of cases with the same value only the first is listed, as they are mostly
    alike.
    """
    count = 0
    for word in range(within.shape[0]):
        bits = within[word]
        while bits != 0:
            case = 64 * word + lowest_bit(bits)
            bits &= bits - ONE
            value = values[case]
            if value >= limit or (count == most and value <= values[nearest[most - 1]]):
                continue
            place = count
            while place > 0 and values[nearest[place - 1]] < value:
                place -= 1
            if place > 0 and values[nearest[place - 1]] == value:
                continue
            count = min(count + 1, most)
            for later in range(count - 1, place, -1):
                nearest[later] = nearest[later - 1]
            nearest[place] = case
    return count


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
def place_nearest_rows(
    n_rows: int,
    most: int,
    within: WordArray,
    values: FloatArray,
    results: FloatArray,
    nearest: IntArray,
    workspace: TupleGame,
) -> int:
    """Make the cases rows, for a game that is new, where a cut has the greatest values; how many rows there are."""
    count = list_nearest(most - n_rows, np.inf, within, values, nearest) if most > n_rows else 0
    for i in range(count):
        place_row(n_rows + i, nearest[i], results, workspace)
    return n_rows + count


@internal
def add_nearest_rows(
    n_rows: int,
    most: int,
    limit: float,
    within: WordArray,
    values: FloatArray,
    results: FloatArray,
    nearest: IntArray,
    workspace: TupleGame,
) -> int:
    """Make the cases that the mixture, of these values, comes closest to ruling out rows; how many rows there are."""
    count = list_nearest(most - n_rows, limit, within, values, nearest) if most > n_rows else 0
    for i in range(count):
        add_row(n_rows + i, nearest[i], results, workspace)
    return n_rows + count


@internal
def keep(n_rows: int, search: Search) -> None:
    """Keep the mixture that settled the rows, and write it down if that is wanted."""
    keep_mixture(n_rows, search.workspace, search.mixture)
    search.counts.worked_out, learned = 0, search.counts.learned
    if search.record.shape[0] > 0:
        record_mixture(n_rows, search.workspace, search.record[learned])
        for x in range(search.mixture.noise_slopes.shape[0]):
            search.noise_record[learned, x] = search.mixture.noise_slopes[x]


@internal
def is_ruled_out(n_rows: int, plan: Plan, arrays: ProblemArrays, search: Search) -> bool:
    """Settle the rows no farther than is needed to know it; if they are, keep the mixture that does it."""
    threshold = search.levels.threshold
    lower, _ = settle(n_rows, threshold, threshold, plan.tolerance, arrays, search.workspace, 0.0)
    if lower >= search.levels.limit:
        keep(n_rows, search)
        return True
    return False


@internal
def work_out_everywhere(search: Search) -> None:
    """Work the mixture that is kept out at all cases, in the place of the next cut, unless that was done."""
    if search.counts.worked_out == 0:
        work_out(search.by_policy, search.mixture, search.cuts.values[search.counts.own_start + search.counts.learned])
        search.counts.worked_out = 1


@inlined
def leap(n_rows: int, within: WordArray, plan: Plan, arrays: ProblemArrays, search: Search) -> int:
    """Try to rule the rows out together with a few cases more; how many rows are, or 0."""
    counts = search.counts
    if search.levels.roughness > 0.0 or counts.extensions_to_skip > 0 or counts.learned == 0:
        return 0
    most = min(n_rows + LONGEST_LEAP - counts.held_back, plan.most_rows)
    values = search.cuts.values[counts.own_start + counts.learned - 1]
    extended = place_nearest_rows(n_rows, most, within, values, arrays.results, search.nearest, search.workspace)
    if extended == n_rows:
        return 0
    if is_ruled_out(extended, plan, arrays, search):
        counts.held_back = max(counts.held_back - 1, 0)
        return extended
    counts.held_back = min(counts.held_back + 1, LONGEST_LEAP)
    counts.extensions_to_skip = SKIPPED_AFTER_LEAP
    return 0


@inlined
def extend_within(n_rows: int, within: WordArray, plan: Plan, arrays: ProblemArrays, search: Search) -> int:
    """Extend the cut to cases of `within`: by one, then by two more, by four, and so on; how many rows it is for.

    Settling many at once takes little longer than one. Returns 0 if the last extension failed; after that, none is
    tried for a while.
    """
    counts, limit, stride = search.counts, search.levels.limit, 1
    values = search.cuts.values[counts.own_start + counts.learned]
    while n_rows < plan.most_rows and counts.extensions_to_skip == 0:
        # As far as cuts are meant to reach, this is mostly the last step, and the cut is needed at all cases.
        is_last = n_rows >= plan.reach
        if work_out_within(within, is_last, arrays.results, search.by_policy, search.mixture, values):
            counts.worked_out = 1
        if is_last and count_below(limit, within, values) < EACH_PAYS * stride:
            break
        most = min(n_rows + stride, plan.most_rows)
        extended = add_nearest_rows(
            n_rows, most, limit, within, values, arrays.results, search.nearest, search.workspace
        )
        if extended == n_rows:
            break
        if not is_ruled_out(extended, plan, arrays, search):
            counts.skipped_after_failure = min(2 * counts.skipped_after_failure + 1, MOST_EXTENSIONS_SKIPPED)
            counts.extensions_to_skip = counts.skipped_after_failure
            return 0
        counts.skipped_after_failure //= 4
        counts.held_back = max(counts.held_back - 1, 0)
        n_rows, stride = extended, 2 * stride
    return n_rows


@inlined
def widen(n_rows: int, plan: Plan, arrays: ProblemArrays, search: Search) -> None:
    """Try to extend the cut, which is for the rows that were settled last, to the cases it is nearest to ruling out."""
    counts, state = search.counts, search.workspace.state
    values = search.cuts.values[counts.own_start + counts.learned]
    work_out_everywhere(search)
    most, limit = min(n_rows + max(counts.width, 1), plan.most_rows), search.levels.limit
    extended = add_nearest_rows(
        n_rows, most, limit, search.selectable, values, arrays.results, search.nearest, search.workspace
    )
    if extended == n_rows:
        return
    calls, steps = state[CALLS], state[STEPS]
    if is_ruled_out(extended, plan, arrays, search):
        counts.width = min(counts.width + 1 + counts.width // WIDER, plan.most_rows)
    else:
        counts.width = max(counts.width - 3 - counts.width // NARROWER, 1)
    counts.widening_calls += state[CALLS] - calls
    counts.widening_steps += state[STEPS] - steps


@internal
def settle_and_learn(
    n_rows: int, good_enough: float, within: WordArray, plan: Plan, arrays: ProblemArrays, search: Search
) -> tuple[float, float, int]:
    """Settle the rows. If they are ruled out, learn a cut that rules out more cases, of `within` first.

    Returns the bounds of `settle`, and the cut, or -1. Where the cut is of a leap, the bounds say no more than that.
    """
    counts, levels = search.counts, search.levels
    place = counts.own_start + counts.learned
    lower, upper = levels.threshold, np.inf
    extended = leap(n_rows, within, plan, arrays, search)
    counts.extensions_to_skip = max(counts.extensions_to_skip - 1, 0)
    if extended == 0:
        extended, workspace = n_rows, search.workspace
        lower, upper = settle(
            n_rows, levels.threshold, good_enough, plan.tolerance, arrays, workspace, levels.roughness
        )
        if lower < levels.limit:
            return lower, upper, -1
        keep(n_rows, search)
    extended = extend_within(extended, within, plan, arrays, search)
    is_probe = counts.learned % PROBE_EVERY == 0
    if extended > 0 and plan.widening != NEVER and (plan.widening == MOSTLY) != is_probe:
        widen(extended, plan, arrays, search)
    work_out_everywhere(search)
    write_hits(place, place + 1, levels.limit, search.cuts)
    counts.learned += 1
    search.uses[place] = 0
    return lower, upper, place
