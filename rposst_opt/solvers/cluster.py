"""How is a Dask cluster reached, how are tasks dealt out to its workers, and what if it is lost?"""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from rposst_opt.contract import Limit
from rposst_opt.errors import BackendFailure, ProblemError, check_installed

SECONDS_FOR_AN_ANSWER = 10  # of a scheduler
POLL_SECONDS = 0.05  # between two looks at limits,
SECONDS_BETWEEN_COUNTS = 1.0  # and between two at the workers


class ClusterLost(Exception):
    """The cluster does not answer any more."""


def check_cluster() -> None:
    """Refuse to go on without Dask."""
    check_installed("a cluster needs", ["dask", "distributed"], extra="cluster")


@contextmanager
def connected(scheduler: str, *, as_default: bool) -> Iterator[Any]:
    """A client of the Dask scheduler at this address; `as_default` is for libraries that look for one themselves."""
    check_cluster()
    from distributed import Client

    try:
        client = Client(scheduler, timeout=SECONDS_FOR_AN_ANSWER, set_as_default=as_default)
    except (OSError, ValueError) as error:
        raise ProblemError(f"no Dask scheduler answers at {scheduler!r}: {error}") from None
    with client:
        yield client


@contextmanager
def reached_at(scheduler: str | None) -> "Iterator[Cluster | None]":
    """The cluster at this address, if one is given."""
    if scheduler is None:
        yield None
        return
    with connected(scheduler, as_default=False) as client:
        yield Cluster(client, scheduler)


def _itself(value: object) -> object:
    return value


class Cluster:
    """Workers that come and go, and run tasks that need nothing but their arguments."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self.address = client, address
        self._counted = -math.inf  # when workers were

    def n_threads(self) -> int:
        """How many tasks the workers can run at a time by now."""
        with self._telling_of_its_loss():
            return sum(self._client.nthreads().values())

    def hold(self, value: object) -> Any:
        """Have the workers hold a value; what stands for it among the arguments of tasks.

        The scheduler has it too, and so it is not lost with a worker.
        """
        with self._telling_of_its_loss(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # there is no smaller one that has it
            return self._client.submit(_itself, value, pure=False)

    def holds(self, held: Any) -> bool:
        """Whether there is still something behind this."""
        return held.status in ("pending", "finished")

    def on_every_worker(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function in the process of every worker, whatever its threads are doing."""
        with self._telling_of_its_loss():
            self._client.run(function, *arguments, on_error="ignore")

    def run(
        self, task: Callable[..., Any], hands: Sequence[Sequence[Any]], reached: Callable[[], Limit | None]
    ) -> tuple[list[Any], Limit | None]:
        """Run a task with each of these arguments; the outcomes, and the limit that came before all were there, if any.

        An outcome is None where the limit came before, or where the workers went away and nobody took their place.
        """
        with self._telling_of_its_loss():
            futures = [self._client.submit(task, *hand, pure=False) for hand in hands]
            try:
                limit, outcomes = reached(), dict[str, Any]()
                while limit is None and (awaited := self._awaited(futures, outcomes)):
                    outcomes |= self._collect(awaited)
                    limit = reached()
            finally:
                self._client.cancel(futures)
            if self._client.status != "running":
                raise ConnectionError("the scheduler has closed the connection")
        return [outcomes.get(future.key) for future in futures], limit

    def _awaited(self, futures: Sequence[Any], outcomes: Mapping[str, Any]) -> list[Any]:
        """Those that are still to come; none if there is nobody any more to see to them."""
        awaited = [future for future in futures if future.key not in outcomes and not future.cancelled()]
        return awaited if self._counted_lately() or self.n_threads() > 0 else []

    def _collect(self, futures: Sequence[Any]) -> dict[str, Any]:
        """The outcomes that come within a moment, by the keys of their futures."""
        from distributed import wait

        with suppress(TimeoutError, CancelledError), self._client.as_current():
            wait(futures, timeout=POLL_SECONDS)
        outcomes = {}
        for future in futures:
            if future.status in ("finished", "error"):
                # A worker may be gone between the two; then it is done again elsewhere.
                with suppress(TimeoutError, CancelledError):
                    outcomes[future.key] = self._outcome(future)
        return outcomes

    def _outcome(self, future: Any) -> Any:
        """What has come of a task; None if it was running on workers that died, again and again."""
        from distributed import KilledWorker

        error = future.exception(timeout=SECONDS_FOR_AN_ANSWER)
        if error is None:
            return future.result(timeout=SECONDS_FOR_AN_ANSWER)
        if isinstance(error, KilledWorker):
            return None
        raise BackendFailure(f"a worker of the cluster at {self.address!r} has failed: {error!r}") from error

    def _counted_lately(self) -> bool:
        """Whether workers were counted a moment ago; if not, they will have been now."""
        now = time.monotonic()
        is_lately = now - self._counted < SECONDS_BETWEEN_COUNTS
        self._counted = self._counted if is_lately else now
        return is_lately

    @contextmanager
    def _telling_of_its_loss(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ClusterLost(f"the cluster at {self.address!r} does not answer any more: {error}") from error
