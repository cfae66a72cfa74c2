"""Depth-first search for tuples that hit every cut (`rposst_opt.solvers.exact` has the proof).

In sets of cases the selectable ones come first, the required ones after them. A *node* is a partial tuple with the
cases that are excluded below it: those of the tuple itself, and those of siblings that are done.
"""

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
from rposst_opt.solvers.kernels.choice_rules import ChoiceRules, exclude_what_breaks_rules
from rposst_opt.solvers.kernels.compiling import compiled_when_it_pays, inlined, internal
from rposst_opt.solvers.kernels.exchanging import look_finely, write_neighbours
from rposst_opt.solvers.kernels.learning import settle_and_learn, write_hits
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.kernels.search_state import Counts, Nodes, Plan, Search, Stack, look_below, spent
from rposst_opt.solvers.kernels.tuple_game import CALLS, STEPS, TupleGame, place_row

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
    at, rows, weights = search.counts.found, search.workspace.rows, search.workspace.vectors
    width = plan.n_required + plan.size
    search.counts.found += 1
    search.found_weights[at, width] = value
    for i in range(plan.size):
        search.found_cases[at, i] = rows[plan.n_required + i]
    for i in range(width):
        search.found_weights[at, i] = weights[1, i]


@internal
def adopt(plan: Plan, search: Search) -> None:
    """Make the one test that was found the incumbent: from now on, tuples must be better than it."""
    counts, levels = search.counts, search.levels
    counts.found, counts.adopted = 0, 1
    value = search.found_weights[0, plan.n_required + plan.size]
    look_below(value - max(plan.margin, levels.roughness * abs(value)), plan.slack, levels)
    write_hits(counts.own_start, counts.own_start + counts.learned, levels.limit, search.cuts)


@internal
def must_stop(
    budget: float, call_cost: float, step_cost: float, counts: Counts, state: IntArray, stop: IntArray
) -> bool:
    """Whether the budget is spent, or there is no place for another cut, or all are to stop."""
    no_place = counts.learned + 1 >= counts.own_end - counts.own_start
    return no_place or stop[0] != 0 or spent(call_cost, step_cost, counts, state) > budget


@internal
def most_promising(candidates: WordArray, last_cut: int, first_cut: int, values: FloatArray) -> int:
    """The candidate that the cut learned last leaves the most room, the first if there is no such cut; -1 if none."""
    if last_cut < first_cut:
        return first_member(candidates)
    best, least = -1, np.inf
    for word in range(candidates.shape[0]):
        bits = candidates[word]
        while bits != 0:
            case = 64 * word + lowest_bit(bits)
            bits &= bits - ONE
            if values[last_cut, case] < least:
                best, least = case, values[last_cut, case]
    return best


@inlined
def close_leaves(budget: float, alone: bool, plan: Plan, arrays: ProblemArrays, search: Search) -> bool:
    """Settle the partial tuple, which lacks one case, with every candidate; False if it had to stop before.

    A searcher that is `alone` takes what it finds as its new threshold and goes on.
    """
    candidates, counts, levels, hit = search.candidates, search.counts, search.levels, search.cuts.hit
    last = place_partial_tuple(plan.size - 1, plan, arrays.results, search.stack.chosen, search.workspace)
    while True:
        if alone and counts.found > 0:
            adopt(plan, search)
        if counts.found == search.found_cases.shape[0]:
            return False
        case = most_promising(candidates, counts.own_start + counts.learned - 1, counts.own_start, search.cuts.values)
        if case < 0:
            return True
        if must_stop(budget, plan.call_cost, plan.step_cost, counts, search.workspace.state, search.stop):
            return False
        place_row(last, case, arrays.results, search.workspace)
        remove(case, candidates)
        counts.leaves += 1
        lower, upper, slot = settle_and_learn(last + 1, -np.inf, candidates, plan, arrays, search)
        if slot >= 0:
            for word in range(candidates.shape[0]):
                candidates[word] &= hit[slot, word]
        elif upper < levels.threshold:
            note_test(upper, plan, search)
        else:
            levels.unresolved = min(levels.unresolved, lower)


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
def leave_node(depth: int, excluded: WordArray, chosen: IntArray, counts: Counts, left: Nodes) -> None:
    """Put a node aside for later."""
    at = counts.left
    counts.left += 1
    for i in range(depth):
        left.cases[at, i] = chosen[i]
    left.cases[at, left.cases.shape[1] - 1] = depth
    for word in range(excluded.shape[0]):
        left.excluded[at, word] = excluded[word]


@internal
def leave_branches(level: int, depth: int, stack: Stack, counts: Counts, left: Nodes) -> None:
    """Put every case that is yet to be branched on aside, as a node of its own."""
    excluded, branches = stack.excluded[level], stack.branches[level]
    case = first_member(branches)
    while case >= 0:
        stack.chosen[depth] = case
        remove(case, branches)
        insert(case, excluded)
        leave_node(depth + 1, excluded, stack.chosen, counts, left)
        case = first_member(branches)


@inlined
def put_aside(level: int, depth: int, fresh: bool, stack: Stack, counts: Counts, left: Nodes) -> None:
    """Leave what is yet to be searched of a level: all of it if it is fresh, its branches otherwise."""
    if fresh:
        leave_node(depth, stack.excluded[level], stack.chosen, counts, left)
    else:
        leave_branches(level, depth, stack, counts, left)


@internal
def leave_candidates(level: int, depth: int, candidates: WordArray, stack: Stack, counts: Counts, left: Nodes) -> None:
    """Put aside the tuple that lacks one case, with the candidates that are yet to be settled."""
    write_complement(candidates, stack.excluded[level + 1])
    if first_member(candidates) >= 0:
        leave_node(depth, stack.excluded[level + 1], stack.chosen, counts, left)


@inlined
def begin_node(
    at: int, nodes: Nodes, order: IntArray, plan: Plan, hit: WordArray, stack: Stack, rules: ChoiceRules
) -> int:
    """Begin with a node: its partial tuple, and the cuts that it does not hit. Returns how many cases it has."""
    chosen, excluded, unhit, ends = stack.chosen, stack.excluded, stack.unhit, stack.ends
    depth = nodes.cases[at, plan.size]
    for i in range(depth):
        chosen[i] = nodes.cases[at, i]
    for word in range(excluded.shape[1]):
        excluded[0, word] = nodes.excluded[at, word]
    exclude_what_breaks_rules(depth, plan.size, chosen, rules, excluded[0])
    ends[0], ends[1], stack.seen[0] = 0, 0, 0
    for slot in order:
        if not is_hit(slot, depth, plan.n_selectable, plan.n_required, chosen, hit):
            unhit[ends[1]] = slot
            ends[1] += 1
    return depth


@inlined
def list_new_cuts(
    level: int,
    depth: int,
    own_start: int,
    learned: int,
    n_selectable: int,
    n_required: int,
    chosen: IntArray,
    hit: WordArray,
    unhit: IntArray,
    ends: IntArray,
    seen: IntArray,
) -> None:
    """Bring a level's list of cuts that are not hit up to date with those learned since."""
    for slot in range(own_start + seen[level], own_start + learned):
        if not is_hit(slot, depth, n_selectable, n_required, chosen, hit):
            unhit[ends[level + 1]] = slot
            ends[level + 1] += 1
    seen[level] = learned


@inlined
def learn_at_partial_tuple(depth: int, branches: WordArray, plan: Plan, arrays: ProblemArrays, search: Search) -> int:
    """A cut that the partial tuple does not hit, from its own optimum; -1 if that is below the threshold."""
    n_rows = place_partial_tuple(depth, plan, arrays.results, search.stack.chosen, search.workspace)
    _, _, cut = settle_and_learn(n_rows, search.levels.threshold, branches, plan, arrays, search)
    return cut


@inlined
def branch_on(cut: int, level: int, hit: WordArray, branches: WordArray, uses: IntArray) -> None:
    """Only the cases that hit this cut are branched on."""
    uses[cut] += 1
    for word in range(hit.shape[1]):
        branches[level, word] &= hit[cut, word]


@inlined
def take_branch(level: int, depth: int, chosen: IntArray, branches: WordArray, excluded: WordArray) -> int:
    """Choose the next case that is to be branched on, and exclude it from the branches after it; -1 if none is left."""
    case = first_member(branches[level])
    if case >= 0:
        chosen[depth] = case
        branches[level, case >> 6] &= ~(ONE << np.uint64(case & 63))
        excluded[level, case >> 6] |= ONE << np.uint64(case & 63)
    return case


@inlined
def descend(
    level: int, case: int, hit: WordArray, unhit: IntArray, ends: IntArray, seen: IntArray, excluded: WordArray
) -> int:
    """Begin the next level with this case: list the cuts that are still not hit. Returns how many were looked at."""
    top = ends[level + 1]
    for place in range(ends[level], ends[level + 1]):
        if (hit[unhit[place], case >> 6] >> np.uint64(case & 63)) & ONE == 0:
            unhit[top] = unhit[place]
            top += 1
    ends[level + 2], seen[level + 1] = top, seen[level]
    for word in range(hit.shape[1]):
        excluded[level + 1, word] = excluded[level, word]
    return ends[level + 1] - ends[level]


@internal
def keep_to_rules(size: int, chosen: IntArray, rules: ChoiceRules, candidates: WordArray, others: WordArray) -> None:
    """Take the candidates away that would break a rule as the last case; `others` is overwritten."""
    write_complement(candidates, others)
    exclude_what_breaks_rules(size - 1, size, chosen, rules, others)
    write_complement(others, candidates)


@inlined
def search_below(
    first_depth: int, budget: float, alone: bool, plan: Plan, arrays: ProblemArrays, search: Search
) -> bool:
    """Search the tree below a node that was begun; False if it had to stop, with what is left put aside."""
    stack, counts, left = search.stack, search.counts, search.left
    chosen, excluded, branches = stack.chosen, stack.excluded, stack.branches
    unhit, ends, seen = stack.unhit, stack.ends, stack.seen
    hit, uses, candidates, state = search.cuts.hit, search.uses, search.candidates, search.workspace.state
    size, n_selectable, n_required = plan.size, plan.n_selectable, plan.n_required
    has_rules = search.rules.coefficients.shape[0] > 0
    level, fresh, stopped = 0, True, False
    while level >= 0:
        depth = first_depth + level
        stopped = stopped or must_stop(budget, plan.call_cost, plan.step_cost, counts, state, search.stop)
        if stopped:
            put_aside(level, depth, fresh, stack, counts, left)
            level, fresh = level - 1, False
            continue
        own_start, learned = counts.own_start, counts.learned
        list_new_cuts(level, depth, own_start, learned, n_selectable, n_required, chosen, hit, unhit, ends, seen)
        start, end, lacks_one = ends[level], ends[level + 1], depth == size - 1
        counts.nodes += fresh
        if fresh and not lacks_one:
            # Branch on the smallest cut that is not hit. If all are hit, the partial tuple's own optimum gives one that
            # is not, unless it is itself below the threshold; then every case is branched on.
            fresh = False
            cut, least = smallest_cut(level, start, end, hit, unhit, excluded)
            counts.scanned += end - start
            write_complement(excluded[level], branches[level])
            if cut < 0 and depth + n_required > 0:
                cut = learn_at_partial_tuple(depth, branches[level], plan, arrays, search)
            if cut >= 0:
                branch_on(cut, level, hit, branches, uses)
            if least == 0:
                level -= 1
            continue
        case = -1 if lacks_one else take_branch(level, depth, chosen, branches, excluded)
        if case < 0 and not lacks_one:
            level -= 1
        elif lacks_one or depth == size - 2:
            # One case is lacking now: its candidates are found without listing cuts for them.
            counts.nodes += not lacks_one
            counts.scanned += find_candidates(level, case, start, end, hit, unhit, excluded, uses, candidates)
            if has_rules and not lacks_one:
                keep_to_rules(size, chosen, search.rules, candidates, excluded[level + 1])
            stopped = first_member(candidates) >= 0 and not close_leaves(budget, alone, plan, arrays, search)
            if stopped:
                leave_candidates(level, size - 1, candidates, stack, counts, left)
            if lacks_one:
                level, fresh = level - 1, False
        else:
            counts.scanned += descend(level, case, hit, unhit, ends, seen, excluded)
            if has_rules:
                exclude_what_breaks_rules(depth + 1, size, chosen, search.rules, excluded[level + 1])
            level, fresh = level + 1, True
    return not stopped


@compiled_when_it_pays
def explore(
    nodes: Nodes,
    order: IntArray,
    budget: float,
    alone: bool,
    exchanging: bool,
    plan: Plan,
    arrays: ProblemArrays,
    search: Search,
) -> int:
    """Search below the nodes, one after the other, until the budget is spent; how many of them were begun.

    The cuts in `order`, and those it learns, rule tuples out. What is left of the last node is put into
    ``search.left``, what was found into ``search.found_cases``.

    A searcher that is `exchanging` fills the nodes in with the neighbours of what it found last (`exchanging`), and
    again with those of every better find. All is one function, since what is compiled twice takes twice as long.
    """
    counts, state = search.counts, search.workspace.state
    counts.calls_before, counts.steps_before = state[CALLS], state[STEPS]
    counts.scanned, counts.nodes, counts.leaves, counts.left, counts.adopted = 0, 0, 0, 0, 0
    counts.widening_calls, counts.widening_steps = 0, 0
    at, adopted = 0, 0
    while at < nodes.cases.shape[0]:
        if at == 0 and exchanging:
            write_neighbours(search.found_cases[0], plan.n_selectable, search.levels.roughness == 0.0, nodes)
        first_depth = begin_node(at, nodes, order, plan, search.cuts.hit, search.stack, search.rules)
        counts.scanned += order.shape[0]
        at += 1
        if not search_below(first_depth, budget, alone, plan, arrays, search):
            break
        if exchanging and at == nodes.cases.shape[0] and (counts.adopted > 0 or search.levels.roughness > 0.0):
            if counts.adopted == 0:
                threshold = search.found_weights[0, plan.n_required + plan.size] - plan.margin
                look_finely(threshold, plan.slack, order, search.levels, counts, search.cuts)
            adopted, counts.adopted, at = max(adopted, counts.adopted), 0, 0
    counts.adopted = max(adopted, counts.adopted)
    return at
