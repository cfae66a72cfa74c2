"""How kernels are compiled, when, and where the outcome is kept.

**When.** Compiling a solver's kernels takes half a minute or more, and most problems that anybody tries first are
small. So a kernel that is `compiled_when_it_pays` is interpreted until all interpreting together has taken
`PATIENCE_SECONDS`; only then is it compiled. It is the same code and the same arithmetic, and so the same answer.
What was compiled before is kept on disk, and loaded once interpreting has taken as long as that takes. numba itself is
imported when it is first needed: the smallest problems do without.

**Where.** numba compiles again when the *file* of a function has changed. It does not notice a change in another file
whose functions are part of the compiled one: after an update, a search could run with the arithmetic of the version
before. So every state of these sources has a folder of its own. What earlier states left is removed when something new
is kept, and never by a mere import, nor while it may still be in use.

With ``NUMBA_DISABLE_JIT=1`` everything is interpreted. ``NUMBA_CACHE_DIR`` names another place for what is compiled.
"""

import functools
import hashlib
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from rposst_opt.solvers.kernels.entries import Entry

Function = TypeVar("Function", bound=Callable[..., Any])

SOURCES = Path(__file__).parent
PREFIX = "rposst-kernels-"
ALLOCATES = "_allocates"
INTERPRETS_ALL = os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0")
LOADING_SECONDS = 0.5  # of interpreting in one process, before a kernel that is kept is loaded: about what that takes
PATIENCE_SECONDS = 8.0  # of interpreting in one process, before a kernel is compiled: some share of what that takes
OUTDATED_AFTER_SECONDS = 3600.0  # since something was last kept in a folder: nobody compiles for so long

logger = logging.getLogger("rposst_opt")


# Where


def digest_of(sources: Path) -> str:
    """A name for what all files of kernels in this folder say."""
    digest = hashlib.sha256()
    for path in sorted(sources.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder(sources: Path) -> Path | None:
    """The folder for what is compiled from these sources: beside them, or in the user's cache; None if none will do."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    named = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(named)] if named else [sources / "__pycache__", Path(user) / "rposst-opt"]
    name = PREFIX + digest_of(sources)
    return next((place / name for place in places if _can_write(place / name)), None)


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


FOLDER = cache_folder(SOURCES)


def remove_outdated(folder: Path) -> None:
    """Remove what other states of the sources have left beside this folder, if nothing was kept there lately."""
    for other in folder.parent.glob(PREFIX + "*"):
        try:
            is_outdated = time.time() - other.stat().st_mtime > OUTDATED_AFTER_SECONDS
        except FileNotFoundError:  # another process was quicker
            continue
        if other != folder and is_outdated:
            shutil.rmtree(other, ignore_errors=True)


# What is being compiled


class CompilationWatch:
    """Hears of every kernel that numba compiles; tells people once, and whoever asked how long it took."""

    def __init__(self) -> None:
        self.tell_seconds: list[Callable[[float], None]] = []
        self._has_told = False
        self._under_way = 0  # functions that are being compiled, in all threads
        self._thread = threading.local()

    @property
    def is_compiling(self) -> bool:
        """Whether something is being compiled just now, in any thread."""
        return self._under_way > 0

    def on_start(self, event: Any) -> None:
        """Tell that something is being compiled."""
        self._started.append(time.perf_counter())
        self._under_way += 1
        if _is_a_kernel(event) and not self._has_told:
            self._has_told = True
            kept = "once per installation" if FOLDER else "in every process, for no folder to keep them is writable"
            logger.warning(f"compiling the kernels, {kept}; this can take a minute...")

    def on_end(self, event: Any) -> None:
        """Tell how long it took, and mark what was kept; whatever a kernel calls is compiled on the way."""
        seconds = time.perf_counter() - self._started.pop()
        self._under_way -= 1
        if not _is_a_kernel(event):
            return
        dispatcher = event.data["dispatcher"]
        if FOLDER is not None and "no_cpython_wrapper" not in dispatcher.targetoptions:
            mark(FOLDER, dispatcher.py_func, event.data["args"]).touch()
        if not self._started:
            for tell in list(self.tell_seconds):
                tell(seconds)
            if FOLDER is not None:
                remove_outdated(FOLDER)

    @property
    def _started(self) -> list[float]:
        """When this thread began to compile something, and what that needs, and so on."""
        started: list[float] = self._thread.__dict__.setdefault("started", [])
        return started


def _is_a_kernel(event: Any) -> bool:
    return event.data["dispatcher"] in _dispatchers


def mark(folder: Path, function: Callable[..., Any], types: Iterable[object]) -> Path:
    """A file that is there if this function was compiled for such arguments, on such a processor, and kept."""
    import llvmlite.binding
    import numba

    made_for = [
        numba.__version__,
        numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name(),
        numba.config.CPU_FEATURES or llvmlite.binding.get_host_cpu_features().flatten(),
        *map(str, types),
    ]
    digest = hashlib.sha256("\n".join(made_for).encode()).hexdigest()[:16]
    return folder / f"{function.__name__}-{digest}.compiled"


@contextmanager
def telling_compile_seconds(tell: Callable[[float], None]) -> Iterator[None]:
    """Within this, `tell` is called with the seconds of everything that is compiled."""
    watch.tell_seconds.append(tell)
    try:
        yield
    finally:
        watch.tell_seconds.remove(tell)


_dispatchers: set[object] = set()  # of all kernels: numba also tells of functions that are not ours
watch = CompilationWatch()


# numba


_one_at_a_time = threading.RLock()  # numba asks for what a kernel calls while it is itself being made


@functools.cache
def _watched_numba() -> Any:
    """numba, whose compiling `watch` hears of from now on. One thread at a time may ask."""
    import numba
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc] # numba has no types
        on_start = staticmethod(watch.on_start)
        on_end = staticmethod(watch.on_end)

    event.register("numba:compile", Listener())
    return numba


def _make_dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """What numba makes of a function: it compiles it when it is called, and keeps that in our folder.

    Unless it `allocates`, it counts no references to arrays: whoever calls it holds them. Counting them, for every
    array of every tuple that is passed on, took a sixth of the time of a search.
    """
    numba = _watched_numba()
    options = {**options, "_nrt": getattr(function, ALLOCATES, False)}
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(FOLDER)
    try:
        dispatcher = numba.njit(
            cache=FOLDER is not None, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options
        )(function)
    finally:
        numba.config.CACHE_DIR = before
    _dispatchers.add(dispatcher)
    return dispatcher


def _call_with_room(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*arguments)


# CPython keeps frames in chunks of 16 kB, and gives the last one back to the system whenever it is left. Where a chunk
# ends in the middle of numba's recursion, it is fetched and given back for every call: up to a sixth of the time of
# compiling was spent so. A function that claims to need much stack gets a chunk of a megabyte, with room for those
# above it.
_call_with_room.__code__ = _call_with_room.__code__.replace(co_stacksize=70_000)


# When


class FromPython(Enum):
    """How a kernel runs when Python calls it; compiled code always calls it compiled."""

    COMPILED = "at once"
    COMPILED_LATER = "when interpreting has taken too long"
    INTERPRETED = "never"


class _Here(threading.local):
    """Whether this thread is interpreting a kernel."""

    interpreting = False


_here = _Here()


class Kernel:
    """A function that compiled code and Python both call, and that Python may run without compiling it."""

    interpreted_seconds = 0.0  # of all kernels

    def __init__(
        self, function: Callable[..., Any], from_python: FromPython, entry: Entry | None = None, **options: object
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._entry = function, entry
        self.from_python = FromPython.INTERPRETED if INTERPRETS_ALL else from_python
        self.is_loaded = False
        self.is_kept: bool | None = None  # on disk, as far as is known
        self._options: dict[str, Any] = options
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """What numba has made of the function."""
        with _one_at_a_time:
            if self._dispatcher is None:
                self._dispatcher = _make_dispatcher(self.py_func, self._options)
        return self._dispatcher

    # By these two numba takes a global name in compiled code for the function behind it.

    @functools.cached_property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_ if self._entry is None else self._entry.numba_type(self.dispatcher)

    @property
    def targetoptions(self) -> Any:
        """How numba is to compile it."""
        return self.dispatcher.targetoptions

    def __call__(self, *arguments: Any) -> Any:
        """Run it: compiled if it is loaded or must be, interpreted otherwise."""
        if self.is_loaded:
            return self._dispatcher(*arguments)
        if _here.interpreting:
            return self.py_func(*arguments)
        if self._is_to_be_interpreted(arguments):
            return self._interpret(arguments)
        for kernel in self._within(set()):
            kernel._open_entry()
        outcome = _call_with_room(self.dispatcher, arguments)  # compiles it, or loads what is kept
        self.is_loaded = True
        return outcome

    def _within(self, known: set["Kernel"]) -> set["Kernel"]:
        """The kernels that this one calls, and those that they call, and so on; added to those known."""
        for name in self.py_func.__code__.co_names:
            called = self.py_func.__globals__.get(name)
            if isinstance(called, Kernel) and called not in known:
                known.add(called)
                called._within(known)
        return known

    def _open_entry(self) -> None:
        if self._entry is not None:
            _call_with_room(self._entry.open, (self.dispatcher,))

    def _is_to_be_interpreted(self, arguments: tuple[Any, ...]) -> bool:
        if self.from_python is not FromPython.COMPILED_LATER:
            return self.from_python is FromPython.INTERPRETED
        if Kernel.interpreted_seconds < LOADING_SECONDS:
            return True
        if self.is_kept is None:
            from numba import typeof

            self.is_kept = FOLDER is not None and mark(FOLDER, self.py_func, map(typeof, arguments)).exists()
        return not self.is_kept and Kernel.interpreted_seconds < PATIENCE_SECONDS

    def _interpret(self, arguments: tuple[Any, ...]) -> Any:
        _here.interpreting, started = True, time.perf_counter()
        try:
            with np.errstate(all="ignore"):  # as compiled code does; sets of bits overflow on purpose
                return self.py_func(*arguments)
        finally:
            _here.interpreting = False
            Kernel.interpreted_seconds += time.perf_counter() - started


def load_from_now_on() -> None:
    """Interpret nothing more in this process that was compiled before."""
    Kernel.interpreted_seconds = max(Kernel.interpreted_seconds, LOADING_SECONDS)


def compile_from_now_on() -> None:
    """Interpret nothing more in this process that can be compiled."""
    Kernel.interpreted_seconds = float("inf")


def allocates(function: Function) -> Function:
    """Let a kernel make arrays of its own; put this below what makes it a kernel."""
    setattr(function, ALLOCATES, True)
    return function


def compiled(function: Function) -> Function:
    """Compile on the first call, keep the outcome on disk, and run without the interpreter's lock."""
    return cast(Function, Kernel(function, FromPython.COMPILED))


def compiled_when_it_pays(function: Function) -> Function:
    """Interpret the first calls; compile when that has taken long. No single call may take long interpreted."""
    return cast(Function, Kernel(function, FromPython.COMPILED_LATER))


def internal(function: Function) -> Function:
    """Compile what only compiled code calls: a way in from Python takes longest to compile, for large tuples."""
    return cast(Function, Kernel(function, FromPython.INTERPRETED, no_cpython_wrapper=True))


def apart(example: Callable[[], tuple[Any, ...]]) -> Callable[[Function], Function]:
    """Compile a large function, which only compiled code calls, once for all callers (`entries`).

    `example` makes arguments of the types that it is called with.
    """

    def compiled_apart(function: Function) -> Function:
        entry = Entry(function, example)
        return cast(Function, Kernel(function, FromPython.INTERPRETED, entry, no_cpython_wrapper=True))

    return compiled_apart


def inlined(function: Function) -> Function:
    """Make this a part of whatever compiled function calls it, as if it were written there.

    For the parts of a loop so hot that passing a dozen arrays to a function would take longer than its arithmetic, and
    for what is called in one place: every function on its own takes a third of a second to compile.
    """
    return cast(Function, Kernel(function, FromPython.INTERPRETED, no_cpython_wrapper=True, inline="always"))
