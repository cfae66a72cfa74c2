"""The process that witnesses come from, and what a witness does. Run by `rposst_opt.referee.witnesses` alone.

A witness is a process that asks one backend, question by question. The nursery has imported what most backends need
and forks itself for each of them, which takes milliseconds where importing anew takes a second. It is told what to do
by these words, each with what it is about, and answers each:

    "import", module      have it imported once for all who come later
    "witness", None       a new process, which is handed the connection that follows; its number
    "bury", number        wait for the end of that process; its exit code, or minus the signal that ended it

When nobody is left to tell it anything, because whoever asks has ended, however that was, all witnesses are killed.
"""

import contextlib
import importlib
import logging
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import numpy as np

from rposst_opt.contract import Backend, Budget, Progress, ask
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import FalseClaim, LicenceMissing
from rposst_opt.problem import Problem
from rposst_opt.solvers.kernels.compiling import telling_compile_seconds, watch

BEAT_SECONDS = 0.5  # between two signs of life of a process that compiles
NEWS_SECONDS = 0.1  # between two pieces of news in which neither test nor numbers are new


@dataclass(frozen=True)
class Answer:
    """What came of asking a backend: what it returned or raised, what it falsely claims, or why it has no licence."""

    returned: object = None
    raised: str | None = None
    false_claim: str | None = None
    no_licence: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class News:
    """How far a backend is after so many seconds; its test comes along when it is a new one."""

    seconds: float
    progress: Progress


@dataclass(frozen=True)
class Notice:
    """Something that the package tells its user while a backend runs."""

    level: int
    message: str


@dataclass(frozen=True)
class Compiling:
    """A sign of life: kernels are being compiled, which counts against no limit."""


def answer(problem: Problem, backend: Backend, time_limit_seconds: float, voice: "Voice") -> Answer:
    """Ask the backend; whatever is raised is evidence, and kept."""
    try:
        probe = backend.capabilities.why_no_licence
        reason = None if probe is None else probe()
        if reason is not None:
            return Answer(no_licence=reason)
        account = Account(voice)
        with telling_compile_seconds(account.leave_out), contextlib.closing(account):
            returned = ask(problem, backend, Budget(time_limit_seconds=time_limit_seconds, progress=account.tell))
    except LicenceMissing as error:
        return Answer(no_licence=str(error))
    except FalseClaim as error:
        return Answer(false_claim=str(error))
    except BaseException as error:  # an exit or an interrupt that a backend raises is its own, too
        return Answer(raised=f"{type(error).__name__}: {error}")
    return Answer(returned=returned, seconds=account.seconds)


class Account:
    """What a backend tells while it has a question: all that is new is passed on, and now and then what is not.

    Its clock leaves compiling out. Whatever is told when the question is answered already is told to nobody.
    """

    def __init__(self, voice: "Voice") -> None:
        self._voice = voice
        self._started, self._compile_seconds = time.perf_counter(), 0.0
        self._one_at_a_time, self._is_over = threading.Lock(), False
        self._said: tuple[float, float] | None = None
        self._said_at = 0.0
        self._test: EfficientTest | None = None
        self.seconds = 0.0  # that the answer took, when it is there

    def leave_out(self, seconds: float) -> None:
        """So long something was compiled."""
        self._compile_seconds += seconds

    def close(self) -> None:
        """Stop the clock, and pass nothing on any more."""
        with self._one_at_a_time:
            self._is_over, self.seconds = True, self._now()

    def tell(self, progress: Progress) -> None:
        """Pass it on, if anything in it is new; what is no progress is the backend's own error."""
        if not isinstance(progress, Progress):
            raise TypeError(f"what it tells of its progress is a {type(progress).__name__}, not a Progress")
        if not (progress.test is None or isinstance(progress.test, EfficientTest)):
            raise TypeError(f"the test that it tells of is a {type(progress.test).__name__}, not an EfficientTest")
        for number in (progress.objective, progress.lower_bound):
            if not isinstance(number, int | float | np.number):
                raise TypeError(f"it tells of {number!r} where a number is due")
        with self._one_at_a_time:
            now = self._now()
            numbers = (progress.objective, progress.lower_bound)
            is_new_test = progress.test is not None and progress.test != self._test
            if self._is_over or not (is_new_test or numbers != self._said or now - self._said_at >= NEWS_SECONDS):
                return
            self._voice.say(News(now, progress if is_new_test else replace(progress, test=None)))
            self._said, self._said_at = numbers, now
            self._test = progress.test if is_new_test else self._test

    def _now(self) -> float:
        return time.perf_counter() - self._started - self._compile_seconds


class Voice(logging.Handler):
    """Sends what a witness has to say: answers, news, notices, and signs of life. One at a time."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._one_at_a_time = threading.Lock()

    def say(self, what: object) -> None:
        """Send it."""
        message = cloudpickle.dumps(what)
        with self._one_at_a_time:
            self._connection.send_bytes(message)

    def answer(self, given: Answer) -> None:
        """Send an answer; one that cannot be sent is an answer of its own kind."""
        try:
            cloudpickle.dumps(given)
        except Exception as error:  # a backend's answer may hold anything
            given = Answer(raised=f"{type(error).__name__}: its answer cannot be passed on: {error}")
        self.say(given)

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on what the package logs."""
        self.say(Notice(record.levelno, record.getMessage()))

    @contextlib.contextmanager
    def showing_life(self) -> Iterator[None]:
        """Within this it is told, again and again, if something is being compiled."""
        done = threading.Event()

        def beat() -> None:
            while not done.wait(BEAT_SECONDS):
                if watch.is_compiling:
                    self.say(Compiling())

        beating = threading.Thread(target=beat, daemon=True)
        beating.start()
        try:
            yield
        finally:
            done.set()
            beating.join()


def be_a_witness(connection: Connection) -> None:
    """Answer questions until nobody asks any more."""
    sys.path[:] = cloudpickle.loads(connection.recv_bytes())
    voice = Voice(connection)
    logging.getLogger("rposst_opt").addHandler(voice)
    try:
        backend: Any = cloudpickle.loads(connection.recv_bytes())
    except BaseException as error:  # whatever its module does when it is imported
        backend = error
    with voice.showing_life():
        while True:
            problem, time_limit_seconds = cloudpickle.loads(connection.recv_bytes())
            if isinstance(backend, BaseException):
                words = f"{type(backend).__name__}: it cannot be loaded in a process of its own: {backend}"
                voice.answer(Answer(raised=words))
            else:
                voice.answer(answer(problem, backend, time_limit_seconds, voice))


def fork_witness(handle: int, control: Connection) -> int:
    """A new process in a group of its own, so that all that it starts can be killed with it; its number."""
    with warnings.catch_warnings():
        # Python warns of threads that a fork leaves behind. Those of linear algebra, the only ones here, are made anew.
        warnings.simplefilter("ignore", DeprecationWarning)
        number = os.fork()
    if number:
        os.close(handle)
        return number
    code = 0
    try:
        os.setsid()
        control.close()
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 0)
        os.dup2(nowhere, 1)  # what solvers print is for nobody; messages and warnings are
        be_a_witness(Connection(handle))
    except (EOFError, ConnectionError):
        pass  # nobody asks any more
    except BaseException:
        code = 1
        traceback.print_exc()
    finally:
        os._exit(code)  # nothing that the nursery has begun is ended twice


def tend(handle: int) -> None:
    """Do as is told by the connection with this handle, until it ends."""
    control = Connection(handle)
    witnesses: set[int] = set()
    with contextlib.suppress(EOFError):
        while True:
            what, about = control.recv()
            told = 0
            if what == "import":
                with contextlib.suppress(Exception):  # whoever needs it imports it again, and tells
                    importlib.import_module(about)
            elif what == "witness":
                told = fork_witness(reduction.recv_handle(control), control)
                witnesses.add(told)
            else:
                _, status = os.waitpid(about, 0)
                witnesses.remove(about)
                told = os.waitstatus_to_exitcode(status)
            control.send(told)
    for number in witnesses:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(number, signal.SIGKILL)
