"""What the exact solver does besides its search: the linear relaxation for a bound, and a local search for a test.

How much work goes there is decided by what is seen of the search (`solvers.prospect`), in counts of work and never by
the clock, so that every run is the same. As long as the search comes to its end soon, a tenth is enough. While less
than about a tenth of a long search is done, as much goes there as into the search; while less than about a thousandth
is, nine times as much. If what is seen is right, that is a tenth of the search's work in the end, as anywhere. Where
the search never ends it is nearly all, so that the test of a hard problem is that of the local search in less than
twice the time that this takes alone: it takes the same steps. Where they no longer help, a tenth is enough again.
"""

import itertools
import math
from collections.abc import Iterator
from functools import cached_property

from rposst_opt.contract import Budget
from rposst_opt.problem import Problem
from rposst_opt.solvers.local_search import Climb, LocalSearch
from rposst_opt.solvers.prospect import work_left

USUAL_SHARE = 0.1  # of the search's work goes here,
EARLY, EARLY_SHARE = 10.0, 1.0  # this where there is so many times as much work left as was done,
HOPELESS, HOPELESS_SHARE = 1e3, 9.0  # and this where it is so many times as much;
LEAST_LEFT = 3e8  # but not where less is left than this, in nanoseconds by a rough count


class Besides:
    """The relaxation and the local search, step by step."""

    def __init__(self, problem: Problem, budget: Budget, threads: int | None) -> None:
        self._problem, self._budget, self._threads = problem, budget, threads
        self._steps: Iterator[None] = iter(())
        self.has_begun = False

    @cached_property
    def climb(self) -> Climb:
        """A local search, which has a test as good as any but no bound yet."""
        climb = Climb(self._problem, LocalSearch(threads=self._threads), self._budget, is_alone=False)
        climb.settle_first_tuple()
        return climb

    @property
    def bound(self) -> float:
        """What is proved here of every test, in the arrays' units."""
        return self.climb.bound if self.has_begun else -math.inf

    @property
    def work(self) -> float:
        """What was done here, in nanoseconds by a rough count."""
        return float(self.climb.work) if self.has_begun else 0.0

    def stats(self, search_work: float) -> dict[str, float]:
        """What of all work went into the local search and into the relaxation, as `Stats` has it."""
        relaxation = float(self.climb.relaxation.work) if self.has_begun else 0.0
        total = float(search_work + self.work)
        return {
            "kicks": self.climb.kicks if self.has_begun else 0,
            "local_search_share": (self.work - relaxation) / total,
            "relaxation_share": relaxation / total,
        }

    def may_go_on(self, search_work: float, weight_done: float) -> bool:
        """Whether it is this side's turn, after so much work of the search, which has closed so much of its tree."""
        has_ended = self.has_begun and self.climb.has_come_to_its_end
        share = USUAL_SHARE if has_ended else share_besides(search_work, work_left(search_work, weight_done))
        allowed = share * search_work
        return self.work < allowed if self.has_begun else self.climb.relaxation.cost_of_playing <= allowed

    def step(self) -> bool:
        """Go one step on; whether there was one."""
        self._steps = self._steps if self.has_begun else self.climb.steps()
        self.has_begun = True
        return any(True for _ in itertools.islice(self._steps, 1))


def share_besides(work: float, left: float) -> float:
    """How much work goes elsewhere, for each piece of the search's, after so much of it and with so much left."""
    if left < max(EARLY * work, LEAST_LEFT):
        return USUAL_SHARE
    return EARLY_SHARE if left < HOPELESS * work else HOPELESS_SHARE
