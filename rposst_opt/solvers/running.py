"""What every solver needs to run: checked options, the cores there are, and a frame for the run itself.

Within the frame a first Ctrl-C is a limit like that of time, the time is kept, and compiling counts neither as a
solver's time nor against its limit.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rposst_opt.contract import Budget, Stats
from rposst_opt.errors import ProblemError
from rposst_opt.solvers.kernels.compiling import telling_compile_seconds

MOST = 10**9  # of rounds, threads or samples: beyond it somebody has mistyped


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Run:
    """One run of a solver: how long it took to get ready, to search, and to compile what it needs."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._began = time.perf_counter()
        self._build_seconds = self._compile_seconds = 0.0

    @contextmanager
    def getting_ready(self) -> Iterator[None]:
        """Within this the solver gets ready; only then does the time limit begin to run."""
        yield
        self._budget.restart_clock()
        self._build_seconds = self._own_seconds

    def leave_out(self, seconds: float) -> None:
        """So long something was compiled, which counts neither as the solver's time nor against its limit."""
        self._budget.leave_out(seconds)
        self._compile_seconds += seconds

    def stats(self, **counts: Any) -> Stats:
        """The seconds that it took to get ready, and those since; with whatever the solver has counted."""
        return Stats(
            build_seconds=self._build_seconds,
            solve_seconds=self._own_seconds - self._build_seconds,
            compile_seconds=self._compile_seconds,
            **counts,
        )

    @property
    def _own_seconds(self) -> float:
        return time.perf_counter() - self._began - self._compile_seconds


@contextmanager
def running(budget: Budget) -> Iterator[Run]:
    """Run a solver within this: a first Ctrl-C is then a limit that the budget tells of."""
    run = Run(budget)
    with budget.listening_for_interrupts(), telling_compile_seconds(run.leave_out):
        yield run


def check_counts(**options: int | None) -> None:
    """Refuse whatever is not a whole number from 1 on; None is an option that was not given."""
    for name, number in options.items():
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST:
            raise ProblemError(f"`{name}` must be a whole number from 1 to {MOST:,}, got {number!r}.")
