"""Exchanging single cases of a tuple as long as that helps: the quickest way to a good one, before any proof.

It may begin roughly (`Levels.roughness`): a find must then be better by some share, and need not have its best weights.
That is quick and finds good cases, but proves nothing of those it finds; so it goes on finely in the end, with the last
find itself as well.
"""

import numpy as np

from rposst_opt.arrays import IntArray
from rposst_opt.solvers.kernels.case_sets import insert, remove
from rposst_opt.solvers.kernels.compiling import allocates, internal
from rposst_opt.solvers.kernels.learning import write_hits
from rposst_opt.solvers.kernels.search_state import Counts, Cuts, Levels, Nodes, look_below


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
@allocates
def write_neighbours(found: IntArray, n_selectable: int, with_itself: bool, nodes: Nodes) -> None:
    """For each case of what was found, the node that lacks it: any other case may take its place.

    The last node is that of the find itself, if it is wanted: its last case alone may complete it.
    """
    size, n_words = found.shape[0], nodes.excluded.shape[1]
    chosen = np.empty(size, np.int64)
    write_sorted(found, chosen)
    for at in range(size + 1):
        left_out = min(at, size - 1)
        for i in range(size - 1):
            nodes.cases[at, i] = chosen[i] if i < left_out else chosen[i + 1]
        nodes.cases[at, size] = size - 1
        for word in range(n_words):
            nodes.excluded[at, word] = ~np.uint64(0)
    if with_itself:
        remove(chosen[size - 1], nodes.excluded[size])
    for case in range(n_selectable):
        remove(case, nodes.excluded[0])
    for i in range(size):
        insert(chosen[i], nodes.excluded[0])
    for at in range(1, size):
        for word in range(n_words):
            nodes.excluded[at, word] = nodes.excluded[0, word]


@internal
def look_finely(threshold: float, slack: float, order: IntArray, levels: Levels, counts: Counts, cuts: Cuts) -> None:
    """From now on, look for whatever is below this threshold, and solve it."""
    levels.roughness = 0.0
    look_below(threshold, slack, levels)
    write_hits(counts.own_start, counts.own_start + counts.learned, levels.limit, cuts)
    for slot in order:
        write_hits(slot, slot + 1, levels.limit, cuts)
