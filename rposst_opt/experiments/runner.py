"""Run tasks, here or on a cluster, and never run one twice: what is done is kept in a folder, a file each.

A file is written whole or not at all, under a name made of all that the task depends on. So a run may be killed at any
moment, and the next one goes on from there; other numbers of replicas, sizes or holdouts use what is there already.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rposst_opt.errors import ProblemError, check_installed
from rposst_opt.experiments.protocol import Choice
from rposst_opt.experiments.studies import Task
from rposst_opt.files.writing import write_atomically

Tell = Callable[[str, int, int], None]  # what is being done, how much of it is done, and of how much


def run_tasks(
    tasks: Sequence[Task], folder: Path, *, jobs: int = 1, scheduler: str | None = None, tell: Tell | None = None
) -> list[tuple[Choice, ...]]:
    """The choices of all tasks, in their order.

    Parameters
    ----------
    tasks : sequence of Task
    folder : Path
        Where what is done is kept.
    jobs : int
        How many processes on this machine.
    scheduler : str, optional
        The address of a Dask scheduler whose workers do it instead.
    tell : callable, optional
        Called after every task.
    """
    tell = tell or (lambda what, done, total: None)
    outcomes = {place: done for place, task in enumerate(tasks) if (done := _read(folder, task)) is not None}
    pending = [(place, task) for place, task in enumerate(tasks) if place not in outcomes]
    tell("choosing tests", len(outcomes), len(tasks))
    for place, choices in _perform(pending, jobs, scheduler):
        _write(folder, tasks[place], choices)
        outcomes[place] = choices
        tell("choosing tests", len(outcomes), len(tasks))
    return [outcomes[place] for place in range(len(tasks))]


def _perform(
    pending: Sequence[tuple[int, Task]], jobs: int, scheduler: str | None
) -> Iterator[tuple[int, tuple[Choice, ...]]]:
    """Place and outcome of every task, in the order in which they are done."""
    from joblib import Parallel, delayed

    if not pending:
        return
    with _workers(jobs, scheduler) as arguments:
        parallel = Parallel(return_as="generator_unordered", batch_size=1, **arguments)
        yield from parallel(delayed(_run)(place, task) for place, task in pending)


def _run(place: int, task: Task) -> tuple[int, tuple[Choice, ...]]:
    return place, task.run()


@contextmanager
def _workers(jobs: int, scheduler: str | None) -> Iterator[dict[str, object]]:
    """Arguments for joblib that say who works: processes of this machine, or a cluster's."""
    if scheduler is None:
        yield {"n_jobs": jobs}
        return
    check_cluster()
    from distributed import Client
    from joblib import parallel_config

    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise ProblemError(f"no Dask scheduler answers at {scheduler!r}: {error}") from None
    with client, parallel_config(backend="dask"):
        yield {}


def check_can_run() -> None:
    """Refuse to go on without what experiments need, to be run and to be drawn."""
    check_installed("experiments need", ["joblib", "matplotlib"], extra="experiments")


def check_cluster() -> None:
    """Refuse to go on without Dask."""
    check_installed("a cluster needs", ["dask", "distributed"], extra="cluster")


def _path(folder: Path, task: Task) -> Path:
    return folder / f"{task.name}-{task.digest}.json"


def _read(folder: Path, task: Task) -> tuple[Choice, ...] | None:
    path = _path(folder, task)
    if not path.exists():
        return None
    try:
        records = json.loads(path.read_text(encoding="utf-8"))
        choices = tuple(
            Choice(record["method"], tuple(record["cases"]), tuple(record["weights"]), record["objective"])
            for record in records
        )
    except (ValueError, KeyError, TypeError):
        choices = ()
    if tuple(choice.method for choice in choices) != task.methods:
        raise ProblemError(f"{path} is not what was written there: delete it, and it is made again.")
    return choices


def _write(folder: Path, task: Task, choices: Iterable[Choice]) -> None:
    path = _path(folder, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps([choice.__dict__ for choice in choices]) + "\n")
