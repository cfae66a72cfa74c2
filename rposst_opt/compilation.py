"""What every backend with compiled kernels needs: how many cores there are, and a word when compiling takes long."""

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("rposst_opt")

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
