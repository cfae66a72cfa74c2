"""Exchanging single cases of a tuple as long as that helps: the quickest way to a good one, before any proof."""

from typing import NamedTuple

from rposst_opt.arrays import IntArray
from rposst_opt.solvers.kernels.case_sets import WordArray, insert
from rposst_opt.solvers.kernels.compiling import compiled_when_it_pays, internal
from rposst_opt.solvers.kernels.hitting_set import explore
from rposst_opt.solvers.kernels.response import ProblemArrays
from rposst_opt.solvers.kernels.search_state import Nodes, Plan, Search, spent


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
def write_neighbours(chosen: IntArray, beyond: WordArray, nodes: Nodes) -> None:
    """For each case of the tuple, the node that lacks it: any case outside the tuple may take its place."""
    size = chosen.shape[0]
    for at in range(size):
        for i in range(size - 1):
            nodes.cases[at, i] = chosen[i] if i < at else chosen[i + 1]
        nodes.cases[at, size] = size - 1
        for word in range(beyond.shape[0]):
            nodes.excluded[at, word] = beyond[word]
        for i in range(size):
            insert(chosen[i], nodes.excluded[at])


@compiled_when_it_pays
def exchange_cases(
    beyond: WordArray, order: IntArray, budget: float, plan: Plan, arrays: ProblemArrays, search: Search, nodes: Nodes
) -> Exchanged:
    """Explore the neighbours of the incumbent, and those of every better one, until none is better or work is spent.

    The incumbent is the last test that was adopted. What is left of the last tuple is in ``search.left``, and among its
    `nodes` from number `begun` on.
    """
    counts, chosen = search.counts, search.found_cases[0].copy()
    adopted, work, leaves, n_nodes = 0, 0.0, 0, 0
    while True:
        write_sorted(search.found_cases[0], chosen)
        write_neighbours(chosen, beyond, nodes)
        begun = explore(nodes, order, budget - work, True, plan, arrays, search)
        work += spent(plan.call_cost, plan.step_cost, counts, search.workspace.state)
        leaves += counts.leaves
        n_nodes += counts.nodes
        adopted = max(adopted, counts.adopted)
        if counts.adopted == 0 or counts.left > 0 or begun < nodes.cases.shape[0]:
            return Exchanged(begun, adopted, work, leaves, n_nodes)
