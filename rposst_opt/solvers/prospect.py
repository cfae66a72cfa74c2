r"""How much of a search is done, and how much work is left? A guess, made while it runs.

**Weights.** The whole tree weighs 1, and the branches of a node share its weight. What has been closed weighs as much
as the search has done (Knuth's estimator, as Kilby, Slaney, Thiébaux and Walsh read it off a search that backtracks).
Counting tuples instead would mislead: the first cut rules out half of them at once, and the other half is the search.
Of the branches of one node, those that come later have fewer cases left, and so less below them; they share its weight
by their numbers of tuples.

**What is left.** If W is the work so far and c the weight that is closed, W (1 - c) / c is left.

**The share that is done** only moves forward, however the guess changes: of what it lacks to 1, each piece of work
takes as much as the piece is of all the work that is left now. If the guess is right it is the share of all work; if
the guess is wrong it goes too slowly or too fast for a while, but it never stands still, and is 1 at the end alone.

References
----------
.. [1] P. Kilby, J. Slaney, S. Thiébaux and T. Walsh, "Estimating search tree size", AAAI 2006.
.. [2] G. Hendel, D. Anderson, P. Le Bodic and M. E. Pfetsch, "Estimating the size of branch-and-bound trees",
   INFORMS Journal on Computing 34 (2022).
"""

import math
import time
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.case_sets import WordArray
from rposst_opt.solvers.kernels.search_state import Nodes

ALMOST_ALL = 1.0 - 1e-9  # of a search may be done while something is left of it


class Prospect:
    """What is seen of a search's end.

    Attributes
    ----------
    share : float
        Of the search that is done; it never falls, and is below 1 until `finish`.
    left : float
        The work that is left, by the last guess.
    """

    def __init__(self) -> None:
        self.share, self.left, self._work = 0.0, math.inf, 0.0
        self._began = time.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """How long that will take at the pace so far; None before there is one. It is told, and nothing rests on it."""
        return (time.monotonic() - self._began) * self.left / self._work if self._work else None

    def note(self, work: float, weight_done: float) -> None:
        """So much work was done in all, and nodes of this weight are closed."""
        self.left = work_left(work, weight_done)
        piece, self._work = work - self._work, work
        if piece > 0:
            self.share = min(self.share + (1.0 - self.share) * piece / (piece + self.left), ALMOST_ALL)

    def finish(self) -> None:
        """Nothing is left."""
        self.share, self.left = 1.0, 0.0


def work_left(work: float, weight_done: float) -> float:
    """How much is left after so much work, which has closed so much of the tree."""
    return work * (1.0 - weight_done) / weight_done if weight_done > 0 else math.inf


class Weights(NamedTuple):
    """What nodes weigh that are left, and what is closed weighs."""

    left: FloatArray
    closed: float


def weights_left(nodes: Nodes, weights: FloatArray, begun: int, left: Nodes) -> Weights:
    """What is left of these nodes weighs: of the last that was begun, and then of those that were not.

    Parameters
    ----------
    nodes, weights
        That were to be searched, one after the other.
    begun : int
        So many of them were begun, and all but the last of these were done.
    left : Nodes
        What is left of that one.
    """
    if not begun:
        return Weights(weights, 0.0)
    last = Nodes(nodes.cases[begun - 1], nodes.excluded[begun - 1])
    below = _weights_below(last, float(weights[begun - 1]), left)
    return Weights(np.concatenate([below.left, weights[begun:]]), below.closed + float(weights[: begun - 1].sum()))


def _weights_below(node: Nodes, weight: float, left: Nodes) -> Weights:
    """The same for one node, whose search was broken off.

    Level by level, what is left are the later siblings of the branch on which it was broken off. How many siblings came
    before the first of them is told by the cases that it excludes.
    """
    weights, closed = np.zeros(len(left.cases)), 0.0
    depths, excluded = left.cases[:, -1], _sizes(left.excluded)
    size, n_bits = left.cases.shape[1] - 1, 64 * left.excluded.shape[1]
    depth, before = int(node.cases[-1]), int(_sizes(node.excluded))
    itself = depths == depth
    if itself.any():  # hardly begun
        return Weights(np.where(itself, weight, 0.0), 0.0)
    for level in range(depth + 1, int(depths.max(initial=depth)) + 1):
        here = np.flatnonzero(depths == level)
        if not len(here):
            continue
        taken = max(int(excluded[here].min()) - 1 - before, 0)
        shares = _shares(
            np.concatenate([n_bits - before - 1 - np.arange(taken), n_bits - excluded[here]]), size - level
        )
        weights[here] = weight * shares[taken:]
        closed += weight * float(shares[: max(taken - 1, 0)].sum())
        weight *= float(shares[taken - 1]) if taken else 0.0
        before += taken
    return Weights(weights, closed + weight)


def _sizes(sets: WordArray) -> IntArray:
    sizes: IntArray = np.bitwise_count(sets).sum(axis=-1, dtype=np.int64)
    return sizes


def _shares(free: IntArray, lacking: int) -> FloatArray:
    """What the branches of one node weigh, of 1, with so many free cases each, and so many that they lack."""
    tuples = np.log(np.maximum(free[:, None] - np.arange(lacking), 1)).sum(axis=1)  # all divided by the same factorial
    sizes = np.exp(tuples - tuples.max())
    shares: FloatArray = sizes / sizes.sum()
    return shares
