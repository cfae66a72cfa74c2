"""What every solver needs to run: checked options, the cores there are, and a word when compiling takes long."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rposst_opt.errors import ProblemError

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
        yield
        _compiled.add(kernels)
    finally:
        notice.cancel()


def check_counts(**options: int | None) -> None:
    """Refuse whatever is not a whole number from 1 on; None is an option that was not given."""
    for name, number in options.items():
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST:
            raise ProblemError(f"`{name}` must be a whole number from 1 to {MOST:,}, got {number!r}.")
