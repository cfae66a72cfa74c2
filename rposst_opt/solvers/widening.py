r"""Does it pay to widen cuts? That is decided while a search runs, by what cuts of both kinds turn out to be good for.

A cut that is widened (`solvers.kernels.learning`) costs more and rules out more. How much more depends on the table: on
Racing Arrows, where cases are alike, a few cases more take their likes with them, and a search needs a third of the
sets; on independent numbers it needs as many as before. It depends on the threshold, too: below a low one, cuts can be
widened far. So each front has one of these. Most of its cuts are of one kind, and some are probes of the other.

With u uses of a cut in its first turn, it has done the work of 1 + u cuts. Widening pays if

.. math:: \frac{\text{work of a cut, with widening}}{1 + u_\text{widened}}
          < \frac{\text{work of a cut}}{1 + u_\text{others}}

where the work of a cut is all work of the search by the number of cuts. All of this is in counts of work and never by
the clock, so that every run is the same.
"""

import numpy as np

from rposst_opt.arrays import IntArray
from rposst_opt.solvers.kernels.learning import PROBE_EVERY
from rposst_opt.solvers.kernels.search_state import MOSTLY, SELDOM

FEWEST_CUTS = 20  # of each kind, before they are compared
REMEMBERED = 0.8  # of what was seen before, after each turn


class Widening:
    """What is seen of cuts that were widened, and of others.

    Attributes
    ----------
    pays : bool
        Whether most cuts should be widened.
    """

    def __init__(self) -> None:
        self.pays = True
        self._cuts, self._coverage = np.zeros(2), np.zeros(2)  # of others, and of those that were widened
        self._work, self._work_of_widening = 0.0, 0.0

    @property
    def plan(self) -> int:
        """What the searchers' plan says of it."""
        return MOSTLY if self.pays else SELDOM

    def note_work(self, work: float, of_widening: float) -> None:
        """So much was done, of which so much for widening alone."""
        self._work += work - of_widening
        self._work_of_widening += of_widening

    def note_uses(self, uses: IntArray) -> None:
        """How often each cut of a searcher's turn was used, in the order in which it learned them."""
        is_probe = np.arange(len(uses)) % PROBE_EVERY == 0
        for is_widened in (False, True):
            of_this_kind = uses[is_probe == (is_widened != self.pays)]
            self._cuts[int(is_widened)] += len(of_this_kind)
            self._coverage[int(is_widened)] += len(of_this_kind) + of_this_kind.sum()

    def decide(self) -> None:
        """After a turn, decide anew."""
        if self._cuts.min() < FEWEST_CUTS:
            return
        work_of_cut = self._work / self._cuts.sum()
        work_of_widened = work_of_cut + self._work_of_widening / self._cuts[1]
        covered, covered_if_widened = self._coverage / self._cuts
        self.pays = bool(work_of_widened / covered_if_widened < work_of_cut / covered)
        for seen in (self._cuts, self._coverage):
            seen *= REMEMBERED
        self._work, self._work_of_widening = REMEMBERED * self._work, REMEMBERED * self._work_of_widening
