"""Solvers in processes of their own: whatever one does is told as what it is, nothing is left, and nobody is harmed."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import rposst_opt as ro
from rposst_opt.referee import witnesses
from rposst_opt.referee.nursery import Answer
from rposst_opt.referee.witnesses import Limits, Witness, ask_apart, processes_of_group

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no solver's process imports this file

PROBLEM = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1)
TEST = PROBLEM.test(cases=[2], weights=[1.0])
LIMITS = Limits(time_limit_seconds=20.0, patience_seconds=20.0)
ABILITY = ro.Capabilities(
    method="doing what it likes", handles=frozenset(ro.Need), finds_optimum=True, proves="nothing", tolerance=1e-6
)

Does = Callable[[], Any]


@dataclass(frozen=True)
class Wild:
    """A backend that does something before it answers truly."""

    does: Does
    capabilities: ro.Capabilities = ABILITY

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        return ro.Candidate(test=TEST, lower_bound=self.does() or 0.0)


def crashes() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def leaves_by_the_window() -> None:
    os._exit(3)


def hangs() -> None:
    while True:
        time.sleep(1)


def hangs_deaf() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    hangs()


def leaves_a_child() -> None:
    if os.fork() == 0:
        time.sleep(300)


def hangs_with_children() -> None:
    os.fork()
    hangs()


def eats_memory() -> None:
    eaten = []
    while True:
        eaten.append(b"x" * 10**7)


def returns_no_number() -> float:
    return float("nan")


def refuses_for_want_of_a_licence() -> None:
    raise ro.LicenceMissing("the licence has run out")


def claims_that_there_is_no_test() -> None:
    raise ro.FalseClaim("it calls the program infeasible")


def returns_what_cannot_be_passed_on() -> Any:
    return threading.Lock()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No process of a witness that is not waiting for a question outlives a test."""
    started: list[int] = []
    make = Witness.__init__

    def remembered(self: Witness, pickled: bytes, module: str) -> None:
        make(self, pickled, module)
        started.append(self.number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Witness, "__init__", remembered)
        yield
    waiting = {witness.number for witness in witnesses._idle.values()}
    for number in started:
        assert processes_of_group(number) == ({number} if number in waiting else set())


WILD = {
    "crashed": (crashes, ro.Verdict.CRASHED, "its process was ended by SIGSEGV"),
    "left": (leaves_by_the_window, ro.Verdict.CRASHED, "its process ended with code 3"),
    "hung": (hangs, ro.Verdict.FOUND_NOTHING, "it did not answer within 3 s, its limit and some patience"),
    "hung and deaf": (hangs_deaf, ro.Verdict.FOUND_NOTHING, "it did not answer within 3 s"),
    "hung with children": (hangs_with_children, ro.Verdict.FOUND_NOTHING, "it did not answer within 3 s"),
    "ate memory": (eats_memory, ro.Verdict.CRASHED, "it took more than 600 MB of memory"),
    "no number": (returns_no_number, ro.Verdict.DISAGREES, "its lower bound is NaN"),
    "no licence": (refuses_for_want_of_a_licence, ro.Verdict.NO_LICENCE, "the licence has run out"),
    "no test": (claims_that_there_is_no_test, ro.Verdict.DISAGREES, "it calls the program infeasible"),
    "not to be passed on": (returns_what_cannot_be_passed_on, ro.Verdict.CRASHED, "its answer cannot be passed on"),
    "left a child": (leaves_a_child, ro.Verdict.AGREES, ""),
}


@pytest.mark.parametrize("what", WILD)
def test_each_has_the_right_verdict_and_others_are_unharmed(what: str) -> None:
    does, verdict, reason = WILD[what]
    ro.agree(PROBLEM, ["scipy-milp"])  # so that nothing is imported in the seconds that are given
    seconds = 60.0 if what == "ate memory" else 1.5
    report = ro.agree(
        PROBLEM,
        ["scipy-milp", Wild(does), "scipy-milp"],
        time_limit_seconds=seconds,
        patience_seconds=seconds,
        most_bytes=600 * 2**20,
    )
    before, wild, after = report.findings
    assert (wild.verdict, reason in wild.reason) == (verdict, True), wild
    assert (before.verdict, after.verdict) == (ro.Verdict.AGREES, ro.Verdict.AGREES)
    assert report.agreed is (verdict is not ro.Verdict.DISAGREES)


def test_a_probe_that_finds_no_licence_keeps_the_solver_from_being_asked() -> None:
    ability = replace(ABILITY, why_no_licence=lambda: "no licence file was found")
    (finding,) = ro.agree(PROBLEM, [Wild(crashes, ability)]).findings
    assert (finding.verdict, finding.reason) == (ro.Verdict.NO_LICENCE, "no licence file was found")


def process_number() -> float:
    return -float(os.getpid())


def asked(backend: Any) -> float:
    heard = ask_apart(PROBLEM, backend, LIMITS)
    assert isinstance(heard, Answer) and isinstance(heard.returned, ro.Candidate), heard
    return heard.returned.lower_bound


def test_a_witness_is_asked_again_and_a_dead_one_is_replaced() -> None:
    backend = Wild(process_number)
    first = asked(backend)
    assert asked(backend) == first != -os.getpid()
    os.kill(int(-first), signal.SIGKILL)
    while processes_of_group(int(-first)):
        time.sleep(0.01)
    # Its death is found out by asking it.
    assert "SIGKILL" in str(ask_apart(PROBLEM, backend, LIMITS))
    assert asked(backend) not in (first, -os.getpid())


def test_of_many_witnesses_only_some_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witnesses, "MOST_IDLE", 2)
    several = [Wild(process_number, replace(ABILITY, tolerance=tolerance)) for tolerance in (1e-6, 1e-5, 1e-4, 1e-3)]
    numbers = [int(-asked(backend)) for backend in several]
    assert [bool(processes_of_group(number)) for number in numbers] == [False, False, True, True]


def test_a_backend_that_cannot_be_loaded_elsewhere_is_told() -> None:
    class Fragile(Wild):
        def __reduce__(self) -> Any:
            return (int, ("no number",))

    (finding,) = ro.agree(PROBLEM, [Fragile(crashes)]).findings
    assert finding.verdict is ro.Verdict.CRASHED
    assert "it cannot be loaded in a process of its own" in finding.reason


def test_a_module_that_cannot_be_imported_harms_no_other_witness() -> None:
    number, ear = witnesses.nursery().start("rposst_opt.not_there")
    ear.close()
    assert witnesses.nursery().bury(number) == 0
    assert asked(Wild(process_number)) < 0


def test_a_copy_of_this_process_has_witnesses_of_its_own() -> None:
    backend = Wild(process_number)
    first = asked(backend)
    copy = os.fork()
    if copy == 0:
        with contextlib.suppress(BaseException):
            os._exit(0 if asked(backend) not in (first, -os.getpid()) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
    assert asked(backend) == first


@pytest.fixture
def interruptible() -> Iterator[None]:
    """An interrupt raises here, whatever the process that runs the tests does with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_whoever_asks_ends_the_witness() -> None:
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ro.agree(PROBLEM, [Wild(hangs)], time_limit_seconds=20)
    timer.join()


SCRIPT = """
import os, sys, time
import rposst_opt as ro
from rposst_opt.referee import witnesses
sys.path.insert(0, {tests!r})
import test_witnesses as t
start = witnesses.Nursery.start
def told(self, module):
    number, ear = start(self, module)
    print(number, self._process.pid, flush=True)
    return number, ear
witnesses.Nursery.start = told
ro.agree(t.PROBLEM, [t.Wild(t.hangs_with_children)], time_limit_seconds=60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_whoever_asks(how: signal.Signals) -> None:
    script = SCRIPT.format(tests=str(Path(__file__).parent))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        witness, nursery = map(int, asking.stdout.readline().split())
        deadline = time.monotonic() + 20
        while len(processes_of_group(witness)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(processes_of_group(witness)) == 2
        asking.send_signal(how)
    while (processes_of_group(witness) or processes_of_group(nursery)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of_group(witness) == processes_of_group(nursery) == set()


def test_what_a_solver_tells_while_it_runs_is_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    def tells() -> None:
        import logging

        logging.getLogger("rposst_opt").warning("compiling something")

    with caplog.at_level("WARNING"):
        asked(Wild(tells))
    assert [record.getMessage() for record in caplog.records] == ["compiling something"]
