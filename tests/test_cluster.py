"""Searches on real Dask clusters: workers that come and go, limits, and clusters that are not there any more."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import dask_processes
from commands import Run
from sample_files import write_random_table
from test_remote_searchers import PROBLEMS, assert_same_answer, impatient

import rposst_opt as ro
from rposst_opt.arrays import IntArray
from rposst_opt.contract import Limit
from rposst_opt.solvers import cluster as clusters
from rposst_opt.solvers import remote_searchers
from rposst_opt.solvers.exact import Exact
from rposst_opt.solvers.remote_searchers import Hand

distributed = pytest.importorskip("distributed")

Reached = Callable[[], Limit | None]
__all__ = ["impatient"]  # short turns, for every test here too


@pytest.fixture(scope="module")
def local() -> Iterator[Any]:
    """A cluster of two threads of this process."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster


class Rounds(list[int]):
    """How many threads there were in each round that was sent; and what is to happen while a round is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.during: dict[int, Callable[[], object]] = {}  # by the number of the round

    def note(self, n_threads: int, reached: Reached) -> Reached:
        happening = self.during.pop(len(self), None)
        self.append(n_threads)
        due = [] if happening is None else [happening]

        def look() -> Limit | None:
            if due:
                due.pop()()
            return reached()

        return look


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    noted, send = Rounds(), remote_searchers.Crew._send

    def noting(crew: remote_searchers.Crew, known: IntArray, hands: list[Hand], reached: Reached) -> Any:
        return send(crew, known, hands, noted.note(crew._n_threads, reached))

    monkeypatch.setattr(remote_searchers.Crew, "_send", noting)
    return noted


@pytest.mark.parametrize("backend", ["exact", "auto"])
def test_a_cluster_has_the_answer_of_one_machine(backend: str, local: Any, rounds: Rounds) -> None:
    problem = PROBLEMS["numbers"]
    solution = ro.solve(problem, backend, scheduler=local.scheduler_address)
    assert solution.backend == "exact" and len(rounds) >= 2
    assert_same_answer(problem, solution, ro.solve(problem, "exact"))


def test_workers_may_come_while_it_runs(local: Any, rounds: Rounds) -> None:
    problem = PROBLEMS["mean"]

    def one_more() -> None:
        local.scale(3)
        local.wait_for_workers(3)

    rounds.during[0] = one_more
    try:
        solution = ro.solve(problem, "exact", scheduler=local.scheduler_address)
    finally:
        local.scale(2)
    assert rounds[:2] == [2, 3]
    assert_same_answer(problem, solution, ro.solve(problem, "exact"))


def is_busy(cluster: Any) -> bool:
    return any(worker.state.executing for worker in cluster.workers.values())


@pytest.mark.parametrize("limit", Limit)
def test_a_limit_ends_it_with_its_bound_and_leaves_nothing_running(
    limit: Limit, local: Any, rounds: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns are endless here, so that workers are idle only if they were told."""
    monkeypatch.setattr(remote_searchers, "SHORTEST_TURN", math.inf)
    monkeypatch.setattr(remote_searchers, "LONGEST_TURN", math.inf)

    class Impatient(ro.Budget):
        def reached(self) -> Limit | None:
            return limit if rounds and is_busy(local) else None

    results = np.random.default_rng(0).random((60, 40))
    problem = ro.Problem(results=results, size=6, measure=ro.CVaR(0.2), targets=ro.softmax_targets(results))
    found = Exact(scheduler=local.scheduler_address).solve(problem, Impatient())
    assert len(rounds) == 1 and found.limit is limit
    assert found.test is not None and 0 < found.lower_bound < problem.objective(found.test)
    deadline = time.monotonic() + 60
    while is_busy(local) or local.scheduler.tasks:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_lost_cluster_is_told_and_the_search_goes_on_here(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "SECONDS_FOR_AN_ANSWER", 1)
    problem = PROBLEMS["numbers"]
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0")
    rounds.during[1] = cluster.close
    message = "^the cluster at '.*' does not answer any more: .* The search goes on on this machine.$"
    with pytest.warns(ro.RposstWarning, match=message) as told:
        solution = ro.solve(problem, "exact", scheduler=cluster.scheduler_address)
    assert len(told) == 1 and len(rounds) == 2
    assert_same_answer(problem, solution, ro.solve(problem, "exact"))


def test_the_last_worker_may_go_with_all_it_holds_before_another_comes(rounds: Rounds) -> None:
    problem = PROBLEMS["numbers"]
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:

        async def start() -> Any:
            return await distributed.Worker(cluster.scheduler_address, nthreads=2, dashboard_address=":0")

        workers = [cluster.sync(start)]

        def replace_worker() -> None:
            cluster.sync(workers[0].close)
            workers.append(cluster.sync(start))

        rounds.during[1] = replace_worker
        solution = ro.solve(problem, "exact", scheduler=cluster.scheduler_address)
        assert len(rounds) > 2 and workers[1].state.executed_count > 0
        cluster.sync(workers[1].close)
    assert_same_answer(problem, solution, ro.solve(problem, "exact"))


def test_a_worker_that_cannot_search_is_told(local: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = remote_searchers.Crew._what_is_held
    monkeypatch.setattr(
        remote_searchers.Crew, "_what_is_held", lambda crew: hold(crew)._replace(written_by="another version")
    )
    message = (
        r"^a worker of the cluster at .* has failed: ProblemError\('the worker has rposst-opt .* by another version"
    )
    with pytest.raises(ro.BackendFailure, match=message):
        ro.solve(PROBLEMS["numbers"], "exact", scheduler=local.scheduler_address)


def test_a_scheduler_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "SECONDS_FOR_AN_ANSWER", 0.2)
    with pytest.raises(ro.ProblemError, match=r"^no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        ro.solve(PROBLEMS["numbers"], scheduler="tcp://127.0.0.1:9")


def test_without_dask_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = r"^a cluster needs distributed, which is not installed: pip install 'rposst-opt\[cluster\]'$"
    with pytest.raises(ro.BackendUnavailable, match=message):
        ro.solve(PROBLEMS["numbers"], "exact", scheduler="tcp://127.0.0.1:9")


def test_the_command_line_has_a_cluster_too(local: Any, rounds: Rounds, rposst: Run, tmp_path: Path) -> None:
    write_random_table(tmp_path / "results.csv", 22, 20)
    asked = ("solve", "results.csv", "--size", "4", "--tail-fraction", "0.1", "--no-error-bars", "--json")
    here, there = rposst(*asked), rposst(*asked, "--scheduler", local.scheduler_address, "--certificate", "proof.json")
    assert rounds
    assert there.json["cases"] == here.json["cases"] and there.json["status"] == "optimal"
    assert rposst("verify", "results.csv", "proof.json", *asked[2:6]).code == 0


def test_on_the_command_line_a_scheduler_that_is_not_there_is_one_line(
    rposst: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "SECONDS_FOR_AN_ANSWER", 0.2)
    write_random_table(tmp_path / "results.csv", 6, 4)
    refused = rposst("solve", "results.csv", "--size", "2", "--scheduler", "tcp://127.0.0.1:9")
    assert (refused.code, len(refused.told.splitlines())) == (2, 1)
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:9'" in refused.told


@pytest.mark.slow
def test_two_processes_of_which_one_is_killed_half_way_prove_what_one_machine_proves(
    tmp_path: Path, rounds: Rounds
) -> None:
    problem = PROBLEMS["long"]

    with dask_processes(tmp_path) as (address, workers):
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2)

        rounds.during[1] = workers[0].kill
        solution = ro.solve(problem, "exact", scheduler=address, certificate=True)
    assert rounds[0] == 2 and rounds[-1] == 1
    alone = ro.solve(problem, "exact", certificate=True)
    assert_same_answer(problem, solution, alone)
    assert solution.certificate is not None and alone.certificate is not None
    assert abs(solution.certificate.bound - alone.certificate.bound) <= 1e-9 * problem.unit
    assert ro.verify_certificate(problem, solution.certificate).holds
