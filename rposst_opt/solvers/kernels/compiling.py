"""How kernels are compiled, and where the outcome is kept.

numba keeps compiled functions on disk and compiles again when the *file* of a function has changed. It does not notice
a change in another file whose functions are part of the compiled one: after an update, a search could run with the
arithmetic of the version before. So every state of these sources has a folder of its own. What earlier states left is
removed when something new is kept, and never by a mere import.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config, njit

Function = TypeVar("Function", bound=Callable[..., Any])

SOURCES = Path(__file__).parent
PREFIX = "rposst-kernels-"


def digest_of(sources: Path) -> str:
    """A name for what all files of kernels in this folder say."""
    digest = hashlib.sha256()
    for path in sorted(sources.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder(sources: Path) -> Path:
    """The folder for what is compiled from these sources."""
    if config.CACHE_DIR:
        base = Path(config.CACHE_DIR)
    elif os.access(sources, os.W_OK):
        base = sources / "__pycache__"
    else:
        base = Path.home() / ".cache" / "rposst-opt"
    return base / (PREFIX + digest_of(sources))


FOLDER = cache_folder(SOURCES)


def remove_outdated(folder: Path) -> None:
    """Remove the folders of other states of the sources that stand beside this one."""
    for other in folder.parent.glob(PREFIX + "*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)


@contextmanager
def replacing_outdated() -> Iterator[None]:
    """If anything is compiled and kept within this, remove what earlier sources left."""
    before = _count_kept()
    yield
    if _count_kept() > before:
        remove_outdated(FOLDER)


def _count_kept() -> int:
    return sum(1 for _ in FOLDER.rglob("*.nbc"))


@contextmanager
def _kept_in_our_folder() -> Iterator[None]:
    before = config.CACHE_DIR
    config.CACHE_DIR = str(FOLDER)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _compile(function: Function, **options: object) -> Function:
    with _kept_in_our_folder():
        compiler = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)
        return cast(Function, compiler(function))


def compiled(function: Function) -> Function:
    """Compile on the first call, keep the outcome on disk, and run without the interpreter's lock."""
    return _compile(function)


def internal(function: Function) -> Function:
    """Compile what only compiled code calls: a way in from Python takes longest to compile, for large tuples.

    Python must not call it, and crashes if it does.
    """
    return _compile(function, no_cpython_wrapper=True)


def inlined(function: Function) -> Function:
    """Make this a part of whatever compiled function calls it, as if it were written there.

    For the parts of a loop so hot that passing a dozen arrays to a function would take longer than its arithmetic.
    """
    return _compile(function, no_cpython_wrapper=True, inline="always")
