"""Where a search for tuples stands: the nodes that are yet to be searched, to be dealt out and gathered again."""

import math
from collections.abc import Iterable

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.solvers.kernels.case_sets import WordArray
from rposst_opt.solvers.kernels.search_state import Nodes, Plan
from rposst_opt.solvers.prospect import Weights
from rposst_opt.solvers.widening import Widening


class Front:
    """Where one search for tuples below a threshold stands: the nodes that are yet to be searched."""

    def __init__(self, plan: Plan, beyond: WordArray) -> None:
        self.nodes = Nodes(np.zeros((1, plan.size + 1), np.int64), beyond[None])
        self.weights, self.closed = np.ones(1), 0.0  # of the nodes, and of what is done (`solvers.prospect`)
        self.size, self.n_selectable = plan.size, plan.n_selectable
        self.widening = Widening()  # what pays below one threshold need not pay below another
        self.unresolved = math.inf  # the least bound among tuples that rounding kept from being settled

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be searched."""
        return not len(self.nodes.cases)

    def close(self) -> None:
        """Take everything for searched."""
        self.nodes, self.weights, self.closed = some_of(self.nodes, slice(0)), np.empty(0), 1.0

    def deal(self, hands: int) -> tuple[list[Nodes], list[FloatArray]]:
        """The nodes, dealt out one by one, and their weights; none are here until what is left is gathered."""
        places = [slice(hand, None, hands) for hand in range(hands)]
        dealt = [some_of(self.nodes, each) for each in places], [self.weights[each] for each in places]
        self.nodes, self.weights = some_of(self.nodes, slice(0)), np.empty(0)
        return dealt

    def gather(self, parts: list[Nodes], weights: list[Weights]) -> None:
        """Put together what is left, and what that weighs, the deepest first: they are done soonest."""
        depths = np.concatenate([part.cases[:, -1] for part in parts])
        deepest_first = np.argsort(-depths, kind="stable")
        places, end = np.empty(len(depths), np.int64), 0
        places[deepest_first] = np.arange(len(depths))
        cases = np.empty((len(depths), parts[0].cases.shape[1]), np.int64)
        excluded = np.empty((len(depths), parts[0].excluded.shape[1]), np.uint64)
        for part in parts:  # each copied once, to its place, since nodes may take more memory than all else
            start, end = end, end + len(part.cases)
            cases[places[start:end]], excluded[places[start:end]] = part.cases, part.excluded
        self.nodes = Nodes(cases, excluded)
        self.weights = np.concatenate([each.left for each in weights])[deepest_first]
        self.closed += sum(each.closed for each in weights)

    def share_done(self) -> float:
        """The share of tuples that are dealt with."""
        if self.is_done:
            return 1.0
        free = 64 * self.nodes.excluded.shape[1] - np.bitwise_count(self.nodes.excluded).sum(axis=1, dtype=np.int64)
        kinds, counts = np.unique(np.stack([free, self.size - self.nodes.cases[:, -1]]), axis=1, return_counts=True)
        left = sum(math.comb(int(n), int(k)) * int(count) for (n, k), count in zip(kinds.T, counts, strict=True))
        return 1 - left / math.comb(self.n_selectable, self.size)


def set_of(cases: Iterable[int], n_words: int) -> WordArray:
    """These cases as a set of bits."""
    bits = np.zeros(64 * n_words, dtype=bool)
    bits[list(cases)] = True
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def view_of(nodes: Nodes, places: slice) -> Nodes:
    """The nodes at these places, where they are."""
    return Nodes(nodes.cases[places], nodes.excluded[places])


def some_of(nodes: Nodes, places: slice) -> Nodes:
    """Copies of the nodes at these places, laid out one after the other."""
    return Nodes(nodes.cases[places].copy(), nodes.excluded[places].copy())


def together(parts: list[Nodes]) -> Nodes:
    """All of these nodes."""
    return Nodes(np.concatenate([part.cases for part in parts]), np.concatenate([part.excluded for part in parts]))
