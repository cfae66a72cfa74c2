"""Solvers in processes of their own: one that crashes, hangs or eats memory is killed, and nobody else is harmed.

A witness is made once for a backend and asked again and again. It is the leader of a process group, so that whatever it
starts is killed with it. Where a question ends in anything but an answer, the witness is gone, and the next question
makes a new one. When this process ends, however it ends, so do all witnesses (`rposst_opt.referee.nursery`).
"""

import atexit
import contextlib
import functools
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from multiprocessing import Pipe, reduction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import cloudpickle

from rposst_opt.contract import Backend
from rposst_opt.problem import Problem
from rposst_opt.referee.nursery import Answer, Compiling, News, Notice

logger = logging.getLogger("rposst_opt")

MOST_IDLE = 40  # witnesses that wait for another question
GLANCE_SECONDS = 0.1  # between two looks at the memory of a witness
BURYING_SECONDS = 5.0  # for the system to end what was killed
MEMORY_SHARE = 0.5  # of the machine's, that a witness and all it starts may take unless told otherwise
OWN_PACKAGES = ("rposst_opt", "formulations")
# Not as a module by its name, which would be there twice then: what is passed on is known by the module of its class.
START_NURSERY = """
import sys
handle, *sys.path = sys.argv[1:]
from rposst_opt.referee.nursery import tend
tend(int(handle))
"""


class Silence(NamedTuple):
    """No answer, and why: it did not stop in time, or it has died, or it had to be killed."""

    words: str
    has_hung: bool = False


class Limits(NamedTuple):
    """What a backend may take for one question."""

    time_limit_seconds: float
    patience_seconds: float  # how long beyond that it is waited for
    most_bytes: float | None = None  # of memory, with all that it starts; a share of the machine's unless told


class Nursery:
    """The process that forks witnesses: made when the first one is needed."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self._imported: set[str] = set()
        self._control, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START_NURSERY, str(theirs.fileno()), *sys.path],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C in the terminal is for whoever asks
            )

    def start(self, module: str) -> tuple[int, Connection]:
        """A new process, in which this module is imported already if it is one of ours; its number, and its ear."""
        ours, theirs = Pipe()
        with self._one_at_a_time, theirs:
            if module.partition(".")[0] in OWN_PACKAGES and module not in self._imported:
                self._tell("import", module)
                self._imported.add(module)
            self._control.send(("witness", None))
            reduction.send_handle(self._control, theirs.fileno(), self._process.pid)
            return self._heard(), ours

    def bury(self, number: int) -> int:
        """How a process has ended: its exit code, or minus the signal."""
        with self._one_at_a_time:
            return self._tell("bury", number)

    def _tell(self, what: str, about: object) -> int:
        self._control.send((what, about))
        return self._heard()

    def _heard(self) -> int:
        try:
            told: int = self._control.recv()
        except EOFError:
            raise RuntimeError("the process that starts solvers has ended; its messages are above.") from None
        return told

    def close(self) -> None:
        """End it, and every witness with it."""
        self._control.close()
        self._process.wait()


@functools.cache
def nursery() -> Nursery:
    """The one nursery of this process."""
    made = Nursery()
    atexit.register(made.close)
    return made


class Witness:
    """A process that asks one backend."""

    def __init__(self, pickled_backend: bytes, module: str) -> None:
        self.number, self._connection = nursery().start(module)
        self._connection.send_bytes(cloudpickle.dumps(sys.path))
        self._connection.send_bytes(pickled_backend)

    def ask(self, problem: Problem, limits: Limits, tell: Callable[[News], None]) -> Answer | Silence:
        """Its answer, or why there is none; there is then no such witness any more. Its news is told as it comes."""
        with contextlib.suppress(OSError):  # if it has died, that is told below
            self._connection.send_bytes(cloudpickle.dumps((problem, limits.time_limit_seconds)))
        most_bytes = MEMORY_SHARE * machines_memory() if limits.most_bytes is None else limits.most_bytes
        seconds = limits.time_limit_seconds + limits.patience_seconds
        now = looked = time.monotonic()
        deadline = now + seconds
        while True:
            heard = self._listen()
            if isinstance(heard, Answer | Silence):
                return heard
            if isinstance(heard, Notice):
                logger.log(heard.level, heard.message)
            elif isinstance(heard, News):
                tell(heard)
            elif isinstance(heard, Compiling):
                deadline = time.monotonic() + seconds
            now = time.monotonic()  # one that talks without end is no better than one that is silent
            if now - looked >= GLANCE_SECONDS:
                looked = now
                if memory_of_group(self.number) > most_bytes:
                    self.kill()
                    return Silence(f"it took more than {most_bytes / 2**20:,.0f} MB of memory")
            if now > deadline:
                self.kill()
                return Silence(f"it did not answer within {seconds:g} s, its limit and some patience", has_hung=True)

    def _listen(self) -> object:
        """What it says next; None if it says nothing for a moment."""
        try:
            if not self._connection.poll(GLANCE_SECONDS):
                return None
            heard: object = cloudpickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            return Silence(exit_words(self.kill()))
        return heard

    def kill(self) -> int:
        """End it and all that it has started; how it ended, if it had done so by itself."""
        self._connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.number, signal.SIGKILL)
        code = nursery().bury(self.number)
        given_up = time.monotonic() + BURYING_SECONDS
        while processes_of_group(self.number) - {self.number} and time.monotonic() < given_up:
            with contextlib.suppress(ProcessLookupError):  # what it had started in the meantime
                os.killpg(self.number, signal.SIGKILL)
            time.sleep(0.001)
        return code

    @property
    def is_alone(self) -> bool:
        """Whether nothing that it has started is left."""
        return processes_of_group(self.number) <= {self.number}


def exit_words(code: int) -> str:
    """How a process ended, for people."""
    if code >= 0:
        return f"its process ended with code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"its process was ended by {name}"


# Many witnesses


_idle: OrderedDict[bytes, Witness] = OrderedDict()  # by the backend that they ask, the longest idle first


def _belong_to_nobody() -> None:
    """A copy of this process has witnesses of its own: two that ask the same one would hear each other's answers."""
    nursery.cache_clear()
    _idle.clear()


os.register_at_fork(after_in_child=_belong_to_nobody)


def ask_apart(
    problem: Problem, backend: Backend, limits: Limits, tell: Callable[[News], None] = lambda news: None
) -> Answer | Silence:
    """Have a backend asked in a process of its own; the process stays for the next question, if it answers.

    What the backend says of its progress is told while it runs.
    """
    pickled = cloudpickle.dumps(backend)
    witness = _idle.pop(pickled, None) or Witness(pickled, type(backend).__module__)
    heard: Answer | Silence | None = None
    try:
        heard = witness.ask(problem, limits, tell)
    finally:
        if heard is None or (isinstance(heard, Answer) and not witness.is_alone):
            witness.kill()
        elif isinstance(heard, Answer):
            _idle[pickled] = witness
            while len(_idle) > MOST_IDLE:
                _idle.popitem(last=False)[1].kill()
    return heard


# What the system says


def machines_memory() -> int:
    """How many bytes there are."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def processes_of_group(leader: int) -> set[int]:
    """The numbers of all processes of a group that run; the leader alone where the system does not tell."""
    if not Path("/proc/self/stat").exists():
        return {leader}
    members = set()
    for number in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError):  # it has ended in the meantime
            if os.getpgid(number) == leader and _is_running(number):
                members.add(number)
    return members


def _is_running(number: int) -> bool:
    """Whether a process is more than what is kept of it until somebody asks how it ended."""
    state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    return state not in "ZX"


def memory_of_group(leader: int) -> int:
    """The bytes that a group of processes holds in memory; 0 where the system does not tell."""
    held = 0
    for number in processes_of_group(leader):
        with contextlib.suppress(OSError):
            held += int(Path(f"/proc/{number}/statm").read_text().split()[1])
    return held * os.sysconf("SC_PAGE_SIZE")
