"""Exchanging single cases of a tuple as long as that helps: the quickest way to a good one, before any proof."""

from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import IntArray
from rposst_opt.solvers.kernels.case_sets import WordArray, insert, remove
from rposst_opt.solvers.kernels.compiling import compiled_when_it_pays, internal
from rposst_opt.solvers.kernels.hitting_set import explore
from rposst_opt.solvers.kernels.learning import write_hits
from rposst_opt.solvers.kernels.response import ProblemArrays
from rposst_opt.solvers.kernels.search_state import Nodes, Plan, Search, look_below, spent


class Exchanged(NamedTuple):
    """What came of exchanging cases."""

    begun: int  # of the nodes of the last tuple
    adopted: int  # whether there is a new incumbent
    work: float
    leaves: int
    nodes: int


@internal
def write_sorted(cases: IntArray, ascending: IntArray) -> None:
    """Sort a few cases, by insertion."""
    for at in range(cases.shape[0]):
        i = at
        while i > 0 and ascending[i - 1] > cases[at]:
            ascending[i] = ascending[i - 1]
            i -= 1
        ascending[i] = cases[at]


@internal
def write_neighbours(chosen: IntArray, beyond: WordArray, with_itself: bool, nodes: Nodes) -> None:
    """For each case of the tuple, the node that lacks it: any case outside the tuple may take its place.

    The last node is that of the tuple itself, if it is wanted: its last case alone may complete it.
    """
    size = chosen.shape[0]
    for at in range(size):
        for i in range(size - 1):
            nodes.cases[at, i] = chosen[i] if i < at else chosen[i + 1]
        nodes.cases[at, size] = size - 1
        for word in range(beyond.shape[0]):
            nodes.excluded[at, word] = beyond[word]
        for i in range(size):
            insert(chosen[i], nodes.excluded[at])
    for i in range(size - 1):
        nodes.cases[size, i] = chosen[i]
    nodes.cases[size, size] = size - 1
    for word in range(beyond.shape[0]):
        nodes.excluded[size, word] = ~np.uint64(0)
    if with_itself:
        remove(chosen[size - 1], nodes.excluded[size])


@internal
def look_finely(order: IntArray, plan: Plan, search: Search) -> None:
    """From now on, solve what is found, and count every gain."""
    counts, levels = search.counts, search.levels
    levels.roughness = 0.0
    look_below(search.found_weights[0, plan.n_required + plan.size] - plan.margin, plan.slack, levels)
    write_hits(counts.own_start, counts.own_start + counts.learned, levels.limit, search.cuts)
    for slot in order:
        write_hits(slot, slot + 1, levels.limit, search.cuts)


@compiled_when_it_pays
def exchange_cases(
    beyond: WordArray, order: IntArray, budget: float, plan: Plan, arrays: ProblemArrays, search: Search, nodes: Nodes
) -> Exchanged:
    """Explore the neighbours of the incumbent, and those of every better one, until none is better or work is spent.

    It may begin roughly (`Levels.roughness`), which is quick and finds good cases, but proves nothing of those it
    finds; in the end it goes on finely, with the incumbent itself as well.

    The incumbent is the last test that was adopted. What is left of the last tuple is in ``search.left``, and among its
    `nodes` from number `begun` on.
    """
    counts, levels, chosen = search.counts, search.levels, search.found_cases[0].copy()
    adopted, work, leaves, n_nodes = 0, 0.0, 0, 0
    while True:
        write_sorted(search.found_cases[0], chosen)
        write_neighbours(chosen, beyond, levels.roughness == 0.0, nodes)
        begun = explore(nodes, order, budget - work, True, plan, arrays, search)
        work += spent(plan.call_cost, plan.step_cost, counts, search.workspace.state)
        leaves += counts.leaves
        n_nodes += counts.nodes
        adopted = max(adopted, counts.adopted)
        is_done = counts.adopted == 0 and levels.roughness == 0.0
        if is_done or counts.left > 0 or begun < nodes.cases.shape[0]:
            return Exchanged(begun, adopted, work, leaves, n_nodes)
        if counts.adopted == 0:
            look_finely(order, plan, search)
