"""The frame in which solvers run: interrupts are limits, getting ready costs nobody's time, and all time is kept."""

import logging
import signal
import time

import numpy as np
import pytest

import rposst_opt as ro
from rposst_opt.contract import Budget, Limit
from rposst_opt.solvers import running as module
from rposst_opt.solvers.running import running

SOLVERS = ["exact", "local-search", "regret-matching", "sampled-regret-matching", "simultaneous"]


def test_a_first_interrupt_is_a_limit_and_afterwards_all_is_as_before() -> None:
    before, budget = signal.getsignal(signal.SIGINT), Budget()
    with running(budget):
        assert budget.reached() is None
        signal.raise_signal(signal.SIGINT)
        assert budget.reached() is Limit.INTERRUPT
    assert signal.getsignal(signal.SIGINT) is before


def test_getting_ready_counts_as_building_and_against_no_limit() -> None:
    budget = Budget(time_limit_seconds=0.4)
    with running(budget) as run:
        with run.compiling("nothing"):
            time.sleep(0.5)
            assert budget.reached() is Limit.TIME
        assert budget.reached() is None
        time.sleep(0.05)
    stats = run.stats(tuples=7, rounds=3)
    assert stats.build_seconds >= 0.5
    assert stats.solve_seconds >= 0.05
    assert (stats.tuples, stats.rounds, stats.nodes) == (7, 3, 0)


def test_long_compilation_is_announced_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(module, "ANNOUNCE_AFTER_SECONDS", 0.01)
    monkeypatch.setattr(module, "_compiled", set())
    with caplog.at_level(logging.WARNING, logger="rposst_opt"), running(Budget()) as run:
        for _ in range(2):
            with run.compiling("slow kernels"):
                time.sleep(0.1)
    assert [record.message.split(":")[0] for record in caplog.records] == ["compiling the kernels"]


def test_an_error_while_getting_ready_passes_through_and_leaves_the_kernels_unannounced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: set[str] = set()
    monkeypatch.setattr(module, "_compiled", compiled)
    with pytest.raises(ZeroDivisionError), running(Budget()) as run, run.compiling("broken kernels"):
        raise ZeroDivisionError
    assert compiled == set()


@pytest.mark.parametrize("backend", SOLVERS)
def test_every_solver_says_how_long_it_took(backend: str) -> None:
    stats = ro.solve(ro.Problem(results=np.random.default_rng(0).random((6, 4)), size=2), backend).stats
    assert stats.build_seconds > 0
    assert stats.solve_seconds > 0
