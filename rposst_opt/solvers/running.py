"""What every solver needs to run: checked options, the cores there are, and a frame for the run itself.

Within the frame a first Ctrl-C is a limit like that of time, compiling is announced when it takes long and counts
against no limit, and the time is kept.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rposst_opt.contract import Budget, Stats
from rposst_opt.errors import ProblemError
from rposst_opt.solvers.kernels.compiling import replacing_outdated

logger = logging.getLogger("rposst_opt")

MOST = 10**9  # of rounds, threads or samples: beyond it somebody has mistyped
ANNOUNCE_AFTER_SECONDS = 1.0  # loading compiled code takes less, compiling it more


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_compiled: set[str] = set()


@contextmanager
def announced_compilation(kernels: str) -> Iterator[None]:
    """Say that these kernels are being compiled, if it takes long enough for someone to wonder."""
    if kernels in _compiled:
        yield
        return
    notice = threading.Timer(
        ANNOUNCE_AFTER_SECONDS, logger.warning, ["compiling the kernels: once per installation, 10 to 30 seconds..."]
    )
    notice.daemon = True
    notice.start()
    try:
        with replacing_outdated():
            yield
        _compiled.add(kernels)
    finally:
        notice.cancel()


class Run:
    """One run of a solver: when it began, and when it was ready to search."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._began = self._ready = time.perf_counter()

    @contextmanager
    def compiling(self, kernels: str) -> Iterator[None]:
        """Within this the solver gets ready, with these kernels; only then does the time limit begin to run."""
        with announced_compilation(kernels):
            yield
        self._budget.restart_clock()
        self._ready = time.perf_counter()

    def stats(self, **counts: int) -> Stats:
        """The seconds that it took to get ready, and those since; with whatever the solver has counted."""
        return Stats(build_seconds=self._ready - self._began, solve_seconds=time.perf_counter() - self._ready, **counts)


@contextmanager
def running(budget: Budget) -> Iterator[Run]:
    """Run a solver within this: a first Ctrl-C is then a limit that the budget tells of."""
    run = Run(budget)
    with budget.listening_for_interrupts():
        yield run


def check_counts(**options: int | None) -> None:
    """Refuse whatever is not a whole number from 1 on; None is an option that was not given."""
    for name, number in options.items():
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST:
            raise ProblemError(f"`{name}` must be a whole number from 1 to {MOST:,}, got {number!r}.")
