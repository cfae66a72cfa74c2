"""For how long, and from where on: trials one after the other, kept in a folder, so that a run can go on after a pause.

Trial number i is drawn from the family number i, counted in a circle, and the seed plus the rounds so far: a run is a
function of its seed, and a longer one begins with a shorter one. What contradicts or crashes is made small the first
few times that a solver does so in one way; from then on it is counted.
"""

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from rposst_opt.contract import Backend
from rposst_opt.errors import ProblemError, names_arguments, unknown
from rposst_opt.files.run_folders import write_source
from rposst_opt.fuzzing.families import FAMILIES
from rposst_opt.fuzzing.trials import TIME_LIMIT_SECONDS, Outcome, Row, Trial, versions_of, who_is_asked
from rposst_opt.referee.findings import Verdict
from rposst_opt.text_files import write_atomically
from rposst_opt.unseen.runner import run_tasks

DONE, TRIALS = "done", "trials.csv"
SOURCE_FORMAT = "rposst-referee-source/1"
MOST_FOLDERS = 3  # for one solver and one kind of contradiction, or its crashes
WRITING_SECONDS = 20.0  # between two writings of the table
TRIALS_PER_JOB, TRIALS_ON_A_CLUSTER = 4, 64  # that are handed out together
MINUTES, SEED = 1.0, 2023


class News(NamedTuple):
    """How far a run is: problems, contradictions and seconds so far, and the rows that were made small just now."""

    problems: int
    contradictions: int
    seconds: float
    latest: list[Row]


@dataclass(frozen=True)
class FuzzingReport:
    """What all solvers said of all problems that were drawn.

    Attributes
    ----------
    trials : DataFrame
        A row for every problem and solver: family, seed, backend, verdict, contradiction, reason, objective,
        lower_bound, seconds, version, folder.
    folders : mapping of str to mapping of str to str
        What was made small: the files of each, by their names. `fuzz` has written them below ``contradictions`` and
        ``crashes`` if it was given a folder; the names begin so.
    """

    trials: pd.DataFrame
    folders: Mapping[str, Mapping[str, str]]

    @property
    def n_problems(self) -> int:
        """How many problems were drawn and given to all."""
        return len(self.trials.drop_duplicates(["family", "seed"]))

    @property
    def contradictions(self) -> pd.DataFrame:
        """The rows of those who contradict."""
        return self.trials[self.trials["verdict"] == Verdict.DISAGREES.value]

    @property
    def agreed(self) -> bool:
        """Whether nobody contradicts."""
        return self.contradictions.empty

    @property
    def counts(self) -> pd.DataFrame:
        """How often each solver (a row) had each verdict (a column)."""
        counts = pd.crosstab(self.trials["backend"], self.trials["verdict"])
        found = [verdict.value for verdict in Verdict if verdict.value in counts.columns]
        return counts.loc[list(dict.fromkeys(self.trials["backend"])), found]


@names_arguments
def fuzz(
    *,
    minutes: float = MINUTES,
    problems: int | None = None,
    seed: int = SEED,
    families: Sequence[str] | None = None,
    backends: Sequence[str | Backend] | None = None,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    folder: Path | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    tell: Callable[[News], None] | None = None,
) -> FuzzingReport:
    """Draw problems that are hard on solvers, have all solve them, and make small what contradicts the facts.

    Parameters
    ----------
    minutes : float
        After which no further problem is begun.
    problems : int, optional
        To end earlier: how many problems there are to be, those of a run before in the same folder included.
    seed : int
        Where families begin; each problem is drawn from its family and its own seed alone.
    families : sequence of str, optional
        Names from `rposst_opt.fuzzing.families.FAMILIES`; all by default.
    backends : sequence of str or Backend, optional
        Who is asked besides `exact`, which always is; by default all that are installed and promise something.
    time_limit_seconds : float
        For one solver on one problem.
    folder : Path, optional
        Where the table ``trials.csv`` and the folders ``contradictions`` and ``crashes`` are written, and what is done
        is kept: run again, it goes on where it was.
    jobs, scheduler
        How many processes on this machine, or the address of a Dask scheduler whose workers do it.
    tell : callable, optional
        Called with `News` now and then.

    Examples
    --------
    >>> report = fuzz(problems=2, families=["binary"], backends=["scipy-milp"])
    >>> report.n_problems, report.agreed, list(report.counts.index)
    (2, True, ['exact', 'scipy-milp'])
    """
    _check(minutes, problems, families)
    asked = who_is_asked(backends)
    source = asked_of(seed, families, backends, time_limit_seconds)
    plan = Trial(family="", seed=0, backends=asked, versions=versions_of(asked), time_limit_seconds=time_limit_seconds)
    drawn = _drawn(plan, seed, list(FAMILIES) if families is None else families)
    batch = TRIALS_ON_A_CLUSTER if scheduler is not None else 1 if jobs == 1 else TRIALS_PER_JOB * jobs
    record = _Record(folder, source, tell)
    try:
        while record.seconds < 60 * minutes and record.n_outcomes < (math.inf if problems is None else problems):
            count = batch if problems is None else min(batch, problems - record.n_outcomes)
            trials = [record.informed(trial) for trial in itertools.islice(drawn, count)]
            done = None if folder is None else folder / DONE
            record.add(run_tasks(trials, done, jobs=jobs, scheduler=scheduler))
    finally:
        record.write()
    return record.report()


def asked_of(
    seed: int,
    families: Sequence[str] | None,
    backends: Sequence[str | Backend] | None,
    time_limit_seconds: float,
) -> dict[str, Any]:
    """What tells a run from others whose trials are not its own; a longer one goes on with a shorter one."""
    options = {
        "seed": seed,
        "families": list(FAMILIES if families is None else families),
        "backends": [each if isinstance(each, str) else repr(each) for each in who_is_asked(backends)],
        "time_limit_seconds": time_limit_seconds,
    }
    return {"options": options}


def _check(minutes: float, problems: int | None, families: Sequence[str] | None) -> None:
    if not (math.isfinite(minutes) and minutes > 0):
        raise ProblemError(f"`minutes` must be a number above 0, got {minutes:g}.")
    if problems is not None and problems < 1:
        raise ProblemError(f"`problems` must be at least 1, got {problems}.")
    for family in families or ():
        if family not in FAMILIES:
            raise ProblemError(unknown("family", family, FAMILIES))


def _drawn(plan: Trial, seed: int, families: Sequence[str]) -> Iterator[Trial]:
    for rounds in itertools.count():
        for family in families:
            yield replace(plan, family=family, seed=seed + rounds)


class _Record:
    """What is known so far, and its folder."""

    def __init__(self, folder: Path | None, source: Mapping[str, Any], tell: Callable[[News], None] | None) -> None:
        self._folder, self._source, self._tell = folder, source, tell
        self._rows: list[Row] = []
        self._folders: dict[str, dict[str, str]] = {}
        self._told: Counter[tuple[str, str]] = Counter()
        self.n_outcomes, self._n_contradictions = 0, 0
        self._started = self._written = time.monotonic()
        if folder is not None:
            (folder / DONE).mkdir(parents=True, exist_ok=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def informed(self, trial: Trial) -> Trial:
        """The trial, told what was made small often enough."""
        return replace(trial, told=frozenset(key for key, times in self._told.items() if times >= MOST_FOLDERS))

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Keep these outcomes, and write their folders and now and then the table."""
        latest = []
        for outcome in outcomes:
            self.n_outcomes += 1
            self._rows += outcome.rows
            shown = [row for row in outcome.rows if row["folder"]]
            against = [row for row in outcome.rows if row["verdict"] == Verdict.DISAGREES.value]
            self._told.update((row["backend"], row["contradiction"] or row["verdict"]) for row in shown)
            self._n_contradictions += len(against)
            latest += shown
            for name, files in outcome.folders.items():
                self._folders[name] = files
                self._write_folder(name, files)
        if self._tell is not None:
            self._tell(News(self.n_outcomes, self._n_contradictions, self.seconds, latest))
        if time.monotonic() - self._written > WRITING_SECONDS:
            self.write()

    def _write_folder(self, name: str, files: dict[str, str]) -> None:
        if self._folder is None:
            return
        place = self._folder / name
        place.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            if not (place / file).exists():
                write_atomically(place / file, text)

    def report(self) -> FuzzingReport:
        return FuzzingReport(pd.DataFrame(self._rows), self._folders)

    def write(self) -> None:
        """Write the table, whole, and of which run it is."""
        self._written = time.monotonic()
        if self._folder is not None and self._rows:
            write_source(self._folder, SOURCE_FORMAT, self._source)
            write_atomically(self._folder / TRIALS, pd.DataFrame(self._rows).to_csv(index=False))
