"""The frame in which solvers run: interrupts are limits, getting ready costs nobody's time, and all time is kept."""

import signal
import time

import numpy as np
import pytest

import rposst_opt as ro
from rposst_opt.contract import Budget, Limit
from rposst_opt.solvers.kernels import compiling
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
        with run.getting_ready():
            time.sleep(0.5)
            assert budget.reached() is Limit.TIME
        assert budget.reached() is None
        time.sleep(0.05)
    stats = run.stats(tuples=7, rounds=3)
    assert stats.build_seconds >= 0.5
    assert stats.solve_seconds >= 0.05
    assert (stats.tuples, stats.rounds, stats.nodes) == (7, 3, 0)


def test_compiling_is_left_out_of_all_times_and_limits() -> None:
    budget = Budget(time_limit_seconds=0.4)
    with running(budget) as run:
        with run.getting_ready():
            time.sleep(0.02)
        time.sleep(0.5)
        assert budget.reached() is Limit.TIME
        run.leave_out(0.45)
        assert budget.reached() is None
    stats = run.stats()
    assert 0.02 <= stats.build_seconds < 0.4
    assert 0.05 <= stats.solve_seconds < 0.4
    assert stats.compile_seconds == 0.45


def test_what_is_compiled_for_others_is_not_told_after_the_run() -> None:
    before = list(compiling.watch.tell_seconds)
    with pytest.raises(ZeroDivisionError), running(Budget()) as run:
        assert compiling.watch.tell_seconds == [*before, run.leave_out]
        raise ZeroDivisionError
    assert compiling.watch.tell_seconds == before


@pytest.mark.parametrize("backend", SOLVERS)
def test_every_solver_says_how_long_it_took(backend: str) -> None:
    stats = ro.solve(ro.Problem(results=np.random.default_rng(0).random((6, 4)), size=2), backend).stats
    assert stats.build_seconds > 0
    assert stats.solve_seconds > 0
