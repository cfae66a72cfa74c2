"""Clusters for tests: one that runs everything at once in this very thread, and processes that can be killed."""

import json
import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forks import Fork, Forks

from rposst_opt.contract import Limit
from rposst_opt.solvers.cluster import ClusterLost

NOWHERE = Path(os.devnull)


class InlineCluster:
    """Has what a solver asks of a cluster, with what it is sent and brings back copied as on a wire.

    Parameters
    ----------
    n_threads : int
    loses : callable, optional
        From the number of a round and the number of a hand, whether that hand does not come back.
    is_lost_in : int, optional
        In this round it does not answer any more.
    """

    address = "tcp://nowhere:8786"

    def __init__(
        self,
        n_threads: int = 2,
        *,
        loses: Callable[[int, int], bool] = lambda number, hand: False,
        is_lost_in: int | None = None,
    ) -> None:
        self._n_threads, self._loses, self._is_lost_in = n_threads, loses, is_lost_in
        self.rounds: list[tuple[list[Any], list[Any]]] = []  # what was sent, and what came back

    def n_threads(self) -> int:
        return self._n_threads

    def hold(self, value: object) -> object:
        return _copied(value)

    def holds(self, held: object) -> bool:
        return True

    def on_every_worker(self, function: Callable[..., object], *arguments: object) -> None:
        function(*arguments)

    def run(
        self, task: Callable[..., Any], hands: Sequence[Sequence[Any]], reached: Callable[[], Limit | None]
    ) -> tuple[list[Any], Limit | None]:
        number = len(self.rounds)
        if number == self._is_lost_in:
            raise ClusterLost("the cluster does not answer any more")
        outcomes = [
            None if self._loses(number, place) else _copied(task(*_copied(hand))) for place, hand in enumerate(hands)
        ]
        self.rounds.append((list(hands), outcomes))
        return outcomes, reached()


def _copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


# What the processes of a cluster import, and what these have to import for this package's tasks.
IMPORTED = ("distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "numba", "pandas", "scipy.optimize")


@contextmanager
def dask_processes(folder: Path, n_workers: int = 2) -> Iterator[tuple[str, list[Fork]]]:
    """The address of a scheduler, and its workers, each a process of its own, on loopback."""
    address_file = folder / "scheduler.json"
    running: list[Fork] = []
    with Forks(*IMPORTED) as forks:

        def start(module: str, *arguments: str) -> Fork:
            code = f"import runpy; runpy.run_module('distributed.cli.{module}', run_name='__main__', alter_sys=True)"
            line = ["--scheduler-file", str(address_file), "--no-dashboard", *arguments]
            running.append(forks.start(code, *line, folder=folder, out=NOWHERE, err=NOWHERE))
            return running[-1]

        try:
            start("dask_scheduler", "--host", "127.0.0.1", "--port", "0")
            deadline = time.monotonic() + 60
            while not address_file.exists():
                assert time.monotonic() < deadline
                time.sleep(0.05)
            workers = [
                start("dask_worker", "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1") for _ in range(n_workers)
            ]
            yield json.loads(address_file.read_text())["address"], workers
        finally:
            for process in running:
                process.kill()
                process.wait()
