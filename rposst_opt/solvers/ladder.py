"""How a bound is climbed for: which threshold under the incumbent to search below next."""

import math
from collections.abc import Callable

from rposst_opt.solvers.front import Front

FIRST_STEP, LONGEST_STEP = 1 / 16, 0.5  # up the ladder, as shares of the way to the incumbent
CLOSEST_RUNG = 1e-3  # of the incumbent: nearer to it no bound is climbed for


class Ladder:
    """The threshold to try for: some way up from the bound to the incumbent, less where that was too much."""

    def __init__(self) -> None:
        self.front: Front | None = None
        self.threshold = math.inf
        self.step = FIRST_STEP
        self.failed_once = False

    def next_rung(self, bound: float, best: float, new_front: Callable[[], Front]) -> tuple[Front, float] | None:
        """The search to go on with, and its threshold; None when the bound is as good as at the incumbent."""
        if self.front is not None and self.front.is_done:
            self.step = min(2 * self.step, LONGEST_STEP)
        if self.front is None or self.front.is_done or not bound < self.threshold <= best:
            if best - bound <= CLOSEST_RUNG * abs(best):
                return None
            self.front, self.threshold = new_front(), bound + self.step * (best - bound)
            self.failed_once = False
        return self.front, self.threshold

    def note_failure(self) -> None:
        """Note that a round did not reach the rung. After a second one try for less, unless the end is in sight."""
        if self.failed_once and self.front is not None and self.front.share_done() < 0.5:
            self.front, self.step = None, self.step / 2
        self.failed_once = not self.failed_once
