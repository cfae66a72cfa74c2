"""Depth-first search for tuples that hit every cut (`rposst_opt.solvers.exact` has the proof).

Sets of test cases are bits in words of 64; the selectable cases come first, the required ones after them. A *node* is a
partial tuple with the cases that are excluded below it: those of the tuple itself, and those of siblings that are done.
"""

from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.case_sets import (
    ONE,
    WordArray,
    count_bits,
    first_member,
    insert,
    lowest_bit,
    remove,
    write_complement,
)
from rposst_opt.solvers.kernels.compiling import compiled, internal
from rposst_opt.solvers.kernels.cut_mixture import (
    CutMixture,
    keep_mixture,
    make_cut_mixture,
    mixture_at,
    record_mixture,
)
from rposst_opt.solvers.kernels.response import ProblemArrays
from rposst_opt.solvers.kernels.tuple_game import (
    CALLS,
    KEPT,
    NEXT,
    STEPS,
    TupleGame,
    make_tuple_game,
    place_row,
    settle,
)

LEAF_COST, NODE_COST, SCAN_COST = 500.0, 300.0, 4.0  # nanoseconds, roughly: budgets are in these, so that runs repeat
MOST_EXTENSIONS_SKIPPED = 15  # cuts that are learned without trying to extend them, after extensions that failed


class Plan(NamedTuple):
    """What all searchers agree on."""

    size: int  # cases to choose
    n_selectable: int
    n_required: int
    most_rows: int  # up to which a cut is extended
    margin: float  # by how much a test must be better than the incumbent
    slack: float  # what rounding may do to a cut
    tolerance: float  # to which a tuple is solved
    call_cost: float  # of a question to the antagonist, in nanoseconds, roughly
    step_cost: float  # of a step of the simplex method


class Cuts(NamedTuple):
    """Cuts over all cases. Each searcher adds to a stretch of its own."""

    values: FloatArray  # (places, n_cases)
    hit: WordArray  # (places, n_words): the cases below the limit; a better tuple has one of them


class Stack(NamedTuple):
    """The branch of the tree that is being searched, level by level."""

    chosen: IntArray  # (size,): the partial tuple
    excluded: WordArray  # (size + 1, n_words)
    branches: WordArray  # (size + 1, n_words): cases yet to branch on
    unhit: IntArray  # the cuts that are not hit, level after level
    ends: IntArray  # (size + 2,): level l has unhit[ends[l]:ends[l + 1]]
    seen: IntArray  # (size + 1,): so many of the own cuts have been looked at


class Nodes(NamedTuple):
    """Nodes that are yet to be searched."""

    cases: IntArray  # (n, size + 1): the partial tuple; in the last column, how many cases it has
    excluded: WordArray  # (n, n_words)


class Search(NamedTuple):
    """What one searcher works with."""

    cuts: Cuts
    uses: IntArray  # (places,): how often each cut has ruled something out
    workspace: TupleGame
    mixture: CutMixture
    by_policy: FloatArray  # (n_policies, n_cases): the results, the other way round
    stack: Stack
    candidates: WordArray  # (n_words,): cases that may complete the tuple
    found_cases: IntArray  # (capacity, size): tests below the threshold
    found_weights: FloatArray  # (capacity, cases of a test + 1): in the last column, their values
    left: Nodes
    levels: FloatArray  # THRESHOLD, LIMIT, UNRESOLVED
    counts: IntArray
    record: FloatArray  # (own cuts, 2, n_scenarios): tail weights and pulls of each own cut, or empty
    stop: IntArray  # (1,), shared: not zero when all are to stop


# Places in Search.levels. A tuple of at least the threshold is ruled out; a cut rules out what is above the limit, that
# is lower by what rounding may do. Unresolved is the least bound among tuples that rounding kept from being settled.
THRESHOLD, LIMIT, UNRESOLVED = range(3)

# Places in Search.counts.
OWN_START, OWN_END, LEARNED, FOUND, ADOPTED, LEFT, NODES, LEAVES, SCANNED = range(9)
SPENT_CALLS, SPENT_STEPS, EXTENSIONS_TO_SKIP, SKIPPED_AFTER_FAILURE = 9, 10, 11, 12


def make_search(
    arrays: ProblemArrays, plan: Plan, cuts: Cuts, by_policy: FloatArray, capacity: int, records: int, stop: IntArray
) -> Search:
    """Make a searcher that has nothing of its own yet."""
    size, width = plan.size, plan.size + plan.n_required
    places, n_words = cuts.hit.shape
    most_left = (size + 1) * plan.n_selectable + 1
    return Search(
        cuts,
        np.zeros(places, np.int64),
        make_tuple_game(arrays, plan.most_rows),
        make_cut_mixture(arrays, plan.most_rows),
        by_policy,
        Stack(
            np.zeros(size, np.int64),
            np.zeros((size + 1, n_words), np.uint64),
            np.zeros((size + 1, n_words), np.uint64),
            np.empty((size + 1) * places, np.int64),
            np.zeros(size + 2, np.int64),
            np.zeros(size + 1, np.int64),
        ),
        np.zeros(n_words, np.uint64),
        np.zeros((capacity, size), np.int64),
        np.zeros((capacity, width + 1)),
        Nodes(np.zeros((most_left, size + 1), np.int64), np.zeros((most_left, n_words), np.uint64)),
        np.full(3, np.inf),
        np.zeros(13, np.int64),
        np.zeros((records, 2, arrays.full_scores.shape[0])),
        stop,
    )


@compiled
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


# Learning


@internal
def add_cut(search: Search) -> int:
    """Work the mixture out at every case, and make it the next of the own cuts."""
    counts, values, by_policy = search.counts, search.cuts.values, search.by_policy
    policies, pulls, constant = search.mixture.policies, search.mixture.pulls, search.mixture.constant[0]
    slot = counts[OWN_START] + counts[LEARNED]
    counts[LEARNED] += 1
    n_cases = values.shape[1]
    for x in range(n_cases):
        values[slot, x] = constant
    for h in range(search.mixture.length[0]):
        pull, j = pulls[h], policies[h]
        for x in range(n_cases):
            values[slot, x] += pull * by_policy[j, x]
    write_hits(slot, slot + 1, search.levels[LIMIT], search.cuts)
    search.uses[slot] = 0
    return slot


@internal
def nearest_case(within: WordArray, limit: float, results: FloatArray, mixture: CutMixture) -> int:
    """The case that the mixture comes closest to ruling out, of those that it does not; -1 if there is none."""
    nearest, highest = -1, -np.inf
    for word in range(within.shape[0]):
        bits = within[word]
        while bits != 0:
            case = 64 * word + lowest_bit(bits)
            bits &= bits - ONE
            value = mixture_at(case, results, mixture)
            if highest < value < limit:
                nearest, highest = case, value
    return nearest


@internal
def settle_and_learn(
    n_rows: int, good_enough: float, within: WordArray, plan: Plan, arrays: ProblemArrays, search: Search
) -> tuple[float, float, int]:
    """Settle the rows. If they are ruled out, learn a cut that rules out more cases of `within` too while it can.

    Where extending a cut fails, it is not tried again for a while. Returns the bounds of `settle`, and the cut or -1.
    """
    workspace, mixture, counts = search.workspace, search.mixture, search.counts
    threshold, limit = search.levels[THRESHOLD], search.levels[LIMIT]
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
            counts[EXTENSIONS_TO_SKIP] = max(counts[EXTENSIONS_TO_SKIP] - 1, 0)
        if lower < limit:
            if not first:
                counts[SKIPPED_AFTER_FAILURE] = min(2 * counts[SKIPPED_AFTER_FAILURE] + 1, MOST_EXTENSIONS_SKIPPED)
                counts[EXTENSIONS_TO_SKIP] = counts[SKIPPED_AFTER_FAILURE]
            break
        if not first:
            counts[SKIPPED_AFTER_FAILURE] //= 4
        first, learned, good_enough = False, True, threshold
        keep_mixture(n_rows, workspace, mixture)
        if search.record.shape[0] > 0:
            record_mixture(n_rows, workspace, search.record[counts[LEARNED]])
        if n_rows == plan.most_rows or counts[EXTENSIONS_TO_SKIP] > 0:
            break
        case = nearest_case(within, limit, arrays.results, mixture)
        if case < 0:
            break
        place_row(n_rows, case, arrays.results, workspace)
        n_rows += 1
    return proved, reached, add_cut(search) if learned else -1


# Tuples


@internal
def place_partial_tuple(depth: int, plan: Plan, results: FloatArray, chosen: IntArray, workspace: TupleGame) -> int:
    """Make the required cases and the partial tuple the rows; how many there are."""
    for i in range(plan.n_required):
        place_row(i, plan.n_selectable + i, results, workspace)
    for i in range(depth):
        place_row(plan.n_required + i, chosen[i], results, workspace)
    return plan.n_required + depth


@internal
def note_test(value: float, plan: Plan, search: Search) -> None:
    """Add the tuple in the rows, with its best weights, to what was found."""
    at, rows, weights = search.counts[FOUND], search.workspace.rows, search.workspace.vectors
    width = plan.n_required + plan.size
    search.counts[FOUND] += 1
    search.found_weights[at, width] = value
    for i in range(plan.size):
        search.found_cases[at, i] = rows[plan.n_required + i]
    for i in range(width):
        search.found_weights[at, i] = weights[1, i]


@internal
def adopt(plan: Plan, search: Search) -> None:
    """Make the one test that was found the incumbent: from now on, tuples must be better than it."""
    counts, levels = search.counts, search.levels
    counts[FOUND], counts[ADOPTED] = 0, 1
    levels[THRESHOLD] = search.found_weights[0, plan.n_required + plan.size] - plan.margin
    levels[LIMIT] = levels[THRESHOLD] - plan.slack
    write_hits(counts[OWN_START], counts[OWN_START] + counts[LEARNED], levels[LIMIT], search.cuts)


@compiled
def spent(call_cost: float, step_cost: float, counts: IntArray, state: IntArray) -> float:
    """How much work the counts stand for, in nanoseconds, roughly."""
    return (
        call_cost * (state[CALLS] - counts[SPENT_CALLS])
        + step_cost * (state[STEPS] - counts[SPENT_STEPS])
        + SCAN_COST * counts[SCANNED]
        + NODE_COST * counts[NODES]
        + LEAF_COST * counts[LEAVES]
    )


@internal
def must_stop(
    budget: float, call_cost: float, step_cost: float, counts: IntArray, state: IntArray, stop: IntArray
) -> bool:
    """Whether the budget is spent, or there is no place for another cut, or all are to stop."""
    no_place = counts[LEARNED] + 1 >= counts[OWN_END] - counts[OWN_START]
    return no_place or stop[0] != 0 or spent(call_cost, step_cost, counts, state) > budget


@internal
def close_leaves(budget: float, alone: bool, plan: Plan, arrays: ProblemArrays, search: Search) -> bool:
    """Settle the partial tuple, which lacks one case, with every candidate; False if it had to stop before.

    A searcher that is `alone` takes what it finds as its new threshold and goes on.
    """
    candidates, counts, levels, hit = search.candidates, search.counts, search.levels, search.cuts.hit
    last = place_partial_tuple(plan.size - 1, plan, arrays.results, search.stack.chosen, search.workspace)
    while True:
        if alone and counts[FOUND] > 0:
            adopt(plan, search)
        if counts[FOUND] == search.found_cases.shape[0]:
            return False
        case = first_member(candidates)
        if case < 0:
            return True
        if must_stop(budget, plan.call_cost, plan.step_cost, counts, search.workspace.state, search.stop):
            return False
        place_row(last, case, arrays.results, search.workspace)
        remove(case, candidates)
        counts[LEAVES] += 1
        lower, upper, slot = settle_and_learn(last + 1, -np.inf, candidates, plan, arrays, search)
        if slot >= 0:
            for word in range(candidates.shape[0]):
                candidates[word] &= hit[slot, word]
        elif upper < levels[THRESHOLD]:
            note_test(upper, plan, search)
        else:
            levels[UNRESOLVED] = min(levels[UNRESOLVED], lower)


# The tree. What is called for every node takes the arrays it needs one by one: taking them out of their tuples at every
# call would cost more than the work itself.


@internal
def is_hit(slot: int, depth: int, n_selectable: int, n_required: int, chosen: IntArray, hit: WordArray) -> bool:
    """Whether a required case or the partial tuple hits this cut."""
    for i in range(n_selectable, n_selectable + n_required):
        if (hit[slot, i >> 6] >> np.uint64(i & 63)) & ONE != 0:
            return True
    for i in range(depth):
        case = chosen[i]
        if (hit[slot, case >> 6] >> np.uint64(case & 63)) & ONE != 0:
            return True
    return False


@internal
def smallest_cut(
    level: int, start: int, end: int, hit: WordArray, unhit: IntArray, excluded: WordArray
) -> tuple[int, int]:
    """The cut with the fewest cases that are not excluded, and how many these are; -1 if there is no cut."""
    smallest, least = -1, 64 * hit.shape[1] + 1
    for at in range(start, end):
        count = 0
        for word in range(hit.shape[1]):
            count += count_bits(hit[unhit[at], word] & ~excluded[level, word])
        if count < least:
            smallest, least = unhit[at], count
    return smallest, least


@internal
def find_candidates(
    level: int,
    case: int,
    start: int,
    end: int,
    hit: WordArray,
    unhit: IntArray,
    excluded: WordArray,
    uses: IntArray,
    candidates: WordArray,
) -> int:
    """Fill in the cases that hit whatever neither the level's partial tuple nor `case` (unless -1) hits.

    Returns how many cuts it took.
    """
    n_words = candidates.shape[0]
    word_of, bit_of = max(case, 0) >> 6, np.uint64(case & 63)
    for word in range(n_words):
        candidates[word] = ~excluded[level, word]
    for at in range(start, end):
        cut = unhit[at]
        if case >= 0 and (hit[cut, word_of] >> bit_of) & ONE != 0:
            continue
        remaining = np.uint64(0)
        for word in range(n_words):
            candidates[word] &= hit[cut, word]
            remaining |= candidates[word]
        if remaining == 0:
            # A cut that has ruled something out comes forward in the list, so that it is tried sooner.
            uses[cut] += 1
            forward = start + (at - start) // 2
            unhit[at], unhit[forward] = unhit[forward], cut
            return at - start
    return end - start


@internal
def leave_node(depth: int, excluded: WordArray, chosen: IntArray, counts: IntArray, left: Nodes) -> None:
    """Put a node aside for later."""
    at = counts[LEFT]
    counts[LEFT] += 1
    for i in range(depth):
        left.cases[at, i] = chosen[i]
    left.cases[at, left.cases.shape[1] - 1] = depth
    for word in range(excluded.shape[0]):
        left.excluded[at, word] = excluded[word]


@internal
def leave_branches(level: int, depth: int, stack: Stack, counts: IntArray, left: Nodes) -> None:
    """Put every case that is yet to be branched on aside, as a node of its own."""
    excluded, branches = stack.excluded[level], stack.branches[level]
    case = first_member(branches)
    while case >= 0:
        stack.chosen[depth] = case
        remove(case, branches)
        insert(case, excluded)
        leave_node(depth + 1, excluded, stack.chosen, counts, left)
        case = first_member(branches)


@compiled
def explore(
    nodes: Nodes, order: IntArray, budget: float, alone: bool, plan: Plan, arrays: ProblemArrays, search: Search
) -> int:
    """Search below the nodes, one after the other, until the budget is spent; how many of them were begun.

    The cuts in `order`, and those it learns, rule tuples out. What is left of the last node is put into
    ``search.left``, what was found into ``search.found_cases``.
    """
    stack, counts, left = search.stack, search.counts, search.left
    chosen, excluded, branches = stack.chosen, stack.excluded, stack.branches
    unhit, ends, seen = stack.unhit, stack.ends, stack.seen
    hit, uses, candidates, state = search.cuts.hit, search.uses, search.candidates, search.workspace.state
    size, n_selectable, n_required, n_words = plan.size, plan.n_selectable, plan.n_required, hit.shape[1]
    counts[SPENT_CALLS], counts[SPENT_STEPS] = state[CALLS], state[STEPS]
    counts[SCANNED], counts[NODES], counts[LEAVES], counts[LEFT], counts[ADOPTED] = 0, 0, 0, 0, 0
    for at in range(nodes.cases.shape[0]):
        # Begin with a node: its partial tuple, and the cuts that it does not hit.
        first_depth = nodes.cases[at, size]
        for i in range(first_depth):
            chosen[i] = nodes.cases[at, i]
        for word in range(n_words):
            excluded[0, word] = nodes.excluded[at, word]
        ends[0], ends[1], seen[0] = 0, 0, 0
        for slot in order:
            if not is_hit(slot, first_depth, n_selectable, n_required, chosen, hit):
                unhit[ends[1]] = slot
                ends[1] += 1
        counts[SCANNED] += order.shape[0]
        level, fresh, stopped = 0, True, False
        while level >= 0:
            depth = first_depth + level
            stopped = stopped or must_stop(budget, plan.call_cost, plan.step_cost, counts, state, search.stop)
            if stopped:
                if fresh:
                    leave_node(depth, excluded[level], chosen, counts, left)
                else:
                    leave_branches(level, depth, stack, counts, left)
                level, fresh = level - 1, False
                continue
            # Bring the list of cuts that are not hit up to date with those learned since.
            for slot in range(counts[OWN_START] + seen[level], counts[OWN_START] + counts[LEARNED]):
                if not is_hit(slot, depth, n_selectable, n_required, chosen, hit):
                    unhit[ends[level + 1]] = slot
                    ends[level + 1] += 1
            seen[level] = counts[LEARNED]
            lacks_one = depth == size - 1
            counts[NODES] += fresh
            if fresh and not lacks_one:
                # Branch on the smallest cut that is not hit. If all are hit, the partial tuple's own optimum gives one
                # that is not, unless it is itself below the threshold; then every case is branched on.
                fresh = False
                cut, least = smallest_cut(level, ends[level], ends[level + 1], hit, unhit, excluded)
                counts[SCANNED] += ends[level + 1] - ends[level]
                write_complement(excluded[level], branches[level])
                if cut < 0 and depth + n_required > 0:
                    n_rows = place_partial_tuple(depth, plan, arrays.results, chosen, search.workspace)
                    good_enough = search.levels[THRESHOLD]
                    _, _, cut = settle_and_learn(n_rows, good_enough, branches[level], plan, arrays, search)
                if cut >= 0:
                    uses[cut] += 1
                    for word in range(n_words):
                        branches[level, word] &= hit[cut, word]
                if least == 0:
                    level -= 1
                continue
            case = -1 if lacks_one else first_member(branches[level])
            if case < 0 and not lacks_one:
                level -= 1
                continue
            if case >= 0:
                chosen[depth] = case
                branches[level, case >> 6] &= ~(ONE << np.uint64(case & 63))
                excluded[level, case >> 6] |= ONE << np.uint64(case & 63)
            if lacks_one or depth == size - 2:
                # One case is lacking now: its candidates are found without listing cuts for them.
                counts[NODES] += not lacks_one
                counts[SCANNED] += find_candidates(
                    level, case, ends[level], ends[level + 1], hit, unhit, excluded, uses, candidates
                )
                if first_member(candidates) >= 0 and not close_leaves(budget, alone, plan, arrays, search):
                    stopped = True
                    write_complement(candidates, excluded[level + 1])
                    if first_member(candidates) >= 0:
                        leave_node(size - 1, excluded[level + 1], chosen, counts, left)
                if lacks_one:
                    level, fresh = level - 1, False
                continue
            # Go on to the next level with this case, and list the cuts that are still not hit.
            top = ends[level + 1]
            for place in range(ends[level], ends[level + 1]):
                if (hit[unhit[place], case >> 6] >> np.uint64(case & 63)) & ONE == 0:
                    unhit[top] = unhit[place]
                    top += 1
            counts[SCANNED] += ends[level + 1] - ends[level]
            ends[level + 2], seen[level + 1] = top, seen[level]
            for word in range(n_words):
                excluded[level + 1, word] = excluded[level, word]
            level, fresh = level + 1, True
        if stopped:
            return at + 1
    return nodes.cases.shape[0]
