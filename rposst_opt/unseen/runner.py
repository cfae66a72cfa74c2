"""Run tasks, here or on a cluster, and never run one twice: what is done is kept in a folder, a file each.

A file is written whole or not at all, under a name made of all that the task depends on. So a run may be killed at any
moment, and the next one goes on from there; other numbers of replicas, sizes or holdouts use what is there already.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

import rposst_opt
from rposst_opt.errors import ProblemError, check_installed
from rposst_opt.files.writing import write_atomically
from rposst_opt.solvers.cluster import connected

Outcome = TypeVar("Outcome")
Done = TypeVar("Done", covariant=True)
Tell = Callable[[str, int, int], None]  # what is being done, how much of it is done, and of how much

# The code that chooses tests, in the package's folder: what predicts, words, writes and draws is left out.
CHOOSING = (
    "*.py",
    "solvers/**/*.py",
    "backends/__init__.py",
    "backends/table.py",  # says what a backend's name stands for, with which options
    "experiments/methods.py",
    "experiments/protocol.py",
    "unseen/procedures.py",
)


@cache
def sources_digest(package: Path = Path(rposst_opt.__file__).parent) -> str:
    """Tells states of the code apart that may choose other tests."""
    paths = sorted({path for pattern in CHOOSING for path in package.glob(pattern)})
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


class Doable(Protocol[Done]):
    """Something to be done that knows nothing of other tasks; what it needs is in it."""

    def run(self) -> Done:
        """Do it."""


class Task(Protocol[Outcome]):
    """Something to be done whose outcome can be kept."""

    @property
    def name(self) -> str:
        """Says what it is; a file is called by it."""

    @property
    def digest(self) -> str:
        """Tells tasks apart whose outcomes may differ."""

    def run(self) -> Outcome:
        """Do it."""

    def to_record(self, outcome: Outcome) -> object:
        """The outcome as JSON has it."""

    def from_record(self, record: object) -> Outcome:
        """The outcome that was written; a ValueError, KeyError or TypeError if it is none of this task."""


def run_tasks(
    tasks: Sequence[Task[Outcome]],
    folder: Path | None,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    tell: Tell | None = None,
) -> list[Outcome]:
    """The outcomes of all tasks, in their order.

    Parameters
    ----------
    tasks : sequence of Task
    folder : Path or None
        Where what is done is kept, if anywhere.
    jobs : int
        How many processes on this machine.
    scheduler : str, optional
        The address of a Dask scheduler whose workers do it instead.
    tell : callable, optional
        Called after every task.
    """
    if folder is None:
        return run_all(tasks, jobs=jobs, scheduler=scheduler, tell=tell)
    paths = [_path(folder, task) for task in tasks]
    known = {place: _read(path, tasks[place]) for place, path in enumerate(paths) if path.exists()}

    def keep(place: int, outcome: Outcome) -> None:
        _write(paths[place], tasks[place], outcome)

    return run_all(tasks, jobs=jobs, scheduler=scheduler, tell=tell, known=known, keep=keep)


def run_all(
    tasks: Sequence[Doable[Outcome]],
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    tell: Tell | None = None,
    known: Mapping[int, Outcome] | None = None,
    keep: Callable[[int, Outcome], None] | None = None,
) -> list[Outcome]:
    """The outcomes of all tasks, in their order.

    Parameters
    ----------
    tasks, jobs, scheduler, tell
        As for `run_tasks`.
    known : mapping of int to outcome, optional
        By their places, the outcomes of tasks that are not to be done again.
    keep : callable, optional
        Called with the place and the outcome of every task, before `tell`.
    """
    outcomes = dict(known or {})
    pending = [(place, task) for place, task in enumerate(tasks) if place not in outcomes]
    tell = tell or (lambda what, done, total: None)
    tell("choosing tests", len(outcomes), len(tasks))
    for place, outcome in _perform(pending, jobs, scheduler):
        if keep is not None:
            keep(place, outcome)
        outcomes[place] = outcome
        tell("choosing tests", len(outcomes), len(tasks))
    return [outcomes[place] for place in range(len(tasks))]


def _perform(
    pending: Sequence[tuple[int, Doable[Outcome]]], jobs: int, scheduler: str | None
) -> Iterator[tuple[int, Outcome]]:
    """Place and outcome of every task, in the order in which they are done."""
    if not pending:
        return
    if jobs == 1 and scheduler is None:
        yield from (_run(place, task) for place, task in pending)
        return
    check_installed("several processes need", ["joblib"], extra="experiments")
    from joblib import Parallel, delayed

    with _workers(jobs, scheduler) as arguments:
        parallel = Parallel(return_as="generator_unordered", batch_size=1, **arguments)
        yield from parallel(delayed(_run)(place, task) for place, task in pending)


def _run(place: int, task: Doable[Outcome]) -> tuple[int, Outcome]:
    return place, task.run()


@contextmanager
def _workers(jobs: int, scheduler: str | None) -> Iterator[dict[str, object]]:
    """Arguments for joblib that say who works: processes of this machine, or a cluster's."""
    if scheduler is None:
        yield {"n_jobs": jobs}
        return
    from joblib import parallel_config

    with connected(scheduler, as_default=True), parallel_config(backend="dask"):
        yield {}


def check_can_run() -> None:
    """Refuse to go on without what experiments need, to be run and to be drawn."""
    check_installed("experiments need", ["joblib", "matplotlib"], extra="experiments")


def _path(folder: Path, task: Task[Outcome]) -> Path:
    return folder / f"{task.name}-{task.digest}.json"


def _read(path: Path, task: Task[Outcome]) -> Outcome:
    try:
        return task.from_record(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, KeyError, TypeError):
        raise ProblemError(f"{path} is not what was written there: delete it, and it is made again.") from None


def _write(path: Path, task: Task[Outcome], outcome: Outcome) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(task.to_record(outcome)) + "\n")
