"""Which runs in the logs of an evaluation harness belong together? What readers of such logs share.

A run is one model on one task. Several runs of a model are repetitions only if they were made alike; what is read of
them, a metric or a scorer, must be one thing. Where that is not so an error says it: nothing is guessed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pandas as pd

from rposst_opt.errors import ProblemError
from rposst_opt.text_files import named

A_FEW = 3  # how many names an error lists
LONG_COLUMNS = ("case", "policy", "value")


@dataclass(frozen=True)
class Run:
    """One model on one task, as a log tells it.

    Attributes
    ----------
    where : Path
        The log.
    task, policy : str
        The names of the task and of the model.
    settings : mapping
        What must be the same for runs of the same policy to be repetitions.
    """

    where: Path
    task: str
    policy: str
    settings: Mapping[str, Any]


class HasRun(Protocol):
    """A log whose run is known."""

    @property
    def run(self) -> Run:
        """Its run."""


Log = TypeVar("Log", bound=HasRun)


def log_files(paths: Path | Sequence[Path], patterns: Sequence[str], nothing_found: str) -> list[Path]:
    """The logs in folders and all below them, by name; files are taken as they are."""
    found: list[Path] = []
    for path in [paths] if isinstance(paths, Path) else paths:
        if path.is_dir():
            inside = {file for pattern in patterns for file in path.rglob(pattern) if file.is_file()}
            if not inside:
                raise ProblemError(f"{named(path)}: {nothing_found}")
            found += sorted(inside, key=lambda file: (file.name, file))
        else:
            found.append(path)
    if not found:
        raise ProblemError(f"no log is named: {nothing_found}")
    return list(dict.fromkeys(found))


def of_task(logs: list[Log], task: str | None) -> list[Log]:
    """The logs of one task, or all."""
    if task is None:
        return logs
    chosen = [log for log in logs if log.run.task == task]
    if not chosen:
        raise ProblemError(f"the logs have no task {task!r}; they have {a_few({log.run.task for log in logs})}.")
    return chosen


def check_repetitions(runs: Iterable[Run]) -> None:
    """Refuse to take runs with different settings for repetitions of one policy."""
    first_of: dict[tuple[str, str], Run] = {}
    for run in runs:
        first = first_of.setdefault((run.policy, run.task), run)
        check_same(
            first, run, f"{run.policy!r} was run on task {run.task!r} with another", run.settings, first.settings
        )


def check_same(first: Run, run: Run, what: str, mine: Mapping[str, Any], its: Mapping[str, Any]) -> None:
    """Refuse two logs that differ in something that must be one."""
    for setting in mine:
        if mine[setting] != its[setting]:
            raise ProblemError(
                f"{named(run.where)}: {what} `{setting}` ({_brief(mine[setting])}) than in {named(first.where)} "
                f"({_brief(its[setting])}): read such logs apart, from folders of their own."
            )


def chosen_by_task(option: str, wanted: str | None, offered: Mapping[str, Collection[str]]) -> dict[str, str]:
    """What is read of each task: its metric, filter or scorer.

    Parameters
    ----------
    option : str
        How it is called: the name of the parameter that decides.
    wanted : str, optional
        A name, or several in order of preference with commas between them: a task takes the first that it has.
    offered : mapping of str to collection of str
        What each task has.

    Examples
    --------
    >>> chosen_by_task("metric", "acc_norm,acc", {"arc": ["acc", "acc_norm"], "boolq": ["acc"]})
    {'arc': 'acc_norm', 'boolq': 'acc'}
    """
    if wanted is None:
        everything = {name for names in offered.values() for name in names}
        if len(everything) > 1:
            listed = "; ".join(f"{a_few(names)} in task {task!r}" for task, names in _first_of_each_kind(offered))
            raise ProblemError(
                f"the logs have more than one {option}: {listed}: say by `{option}` which is read, or several in order "
                "of preference with commas between them."
            )
        return dict.fromkeys(offered, *everything)
    preferred = [name.strip() for name in wanted.split(",")]
    for task, names in offered.items():
        if not set(preferred) & set(names):
            raise ProblemError(f"task {task!r} has no {option} {wanted!r}; it has {a_few(names)}.")
    return {task: next(name for name in preferred if name in names) for task, names in offered.items()}


def long_table(values: Iterable[tuple[str, str, float]]) -> pd.DataFrame:
    """A row for every value of a test case (case), of a policy (policy), as (value); several are repetitions.

    What is not a number is left out where the cell has other values, and else kept once: the cell is missing.
    """
    table = pd.DataFrame(values, columns=list(LONG_COLUMNS)).astype({"value": "float64"})
    known = table["value"].notna()
    has_value = known.groupby([table["case"], table["policy"]]).transform("any")
    once = ~table.duplicated(["case", "policy"])
    return table[known | (once & ~has_value)].reset_index(drop=True)


def a_few(names: Collection[str]) -> str:
    """Some names for a message, all of them if they are few."""
    listed = sorted(names)
    more = len(listed) - A_FEW
    return ", ".join(repr(name) for name in listed[:A_FEW]) + (f" and {more:,} more" if more > 0 else "")


def _first_of_each_kind(offered: Mapping[str, Collection[str]]) -> list[tuple[str, list[str]]]:
    """Tasks that differ in what they have, one for each."""
    kinds: dict[tuple[str, ...], str] = {}
    for task, names in offered.items():
        kinds.setdefault(tuple(sorted(names)), task)
    return [(task, list(names)) for names, task in kinds.items()][:A_FEW]


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
