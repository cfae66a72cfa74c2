"""Every figure and table of the paper by name: from which matrices, in which cells, drawn how.

`REPRODUCTIONS` is the table. Results are written as tidy CSV files first; figures are drawn from these files alone
(`rposst_opt.experiments.figures`), and can be drawn again without running anything.

What cannot be reproduced for lack of public data: Gran Turismo's own matrices (two stand-ins are here, `passing-race`
and `checkpoints`), and the 2012 limit poker table (any table of a competition can be given by its path).
"""

import gzip
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from rposst_opt.backends import solve
from rposst_opt.errors import ProblemError, unknown
from rposst_opt.experiments import tables
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.experiments.methods import METHODS, REFERENCE
from rposst_opt.experiments.protocol import HOLDOUTS, REPLICAS, SIZES, tuning_problem
from rposst_opt.experiments.studies import SEED, Cell, Study
from rposst_opt.files.run_folders import write_source
from rposst_opt.files.writing import write_atomically, write_table, write_with
from rposst_opt.unseen.runner import Tell, run_tasks
from rposst_opt.values.digests import results_digest

if TYPE_CHECKING:
    import pandas as pd

QUICK_REPLICAS, QUICK_SIZES = 5, (2,)


@dataclass(frozen=True)
class Domain:
    """Where a reproduction's result matrix comes from."""

    title: str
    make: "Callable[[], pd.DataFrame]"
    paper_seconds: float | None = None  # the paper's time for T = 500 and one seed, on 16 cores
    hold_out_cases: bool = False


def _leduc() -> "pd.DataFrame":
    from rposst_opt.experiments.domains.leduc import checkpoints

    return checkpoints()


def _passing(collision_penalty: bool) -> "pd.DataFrame":
    from rposst_opt.experiments.domains.passing import passing_race

    return passing_race(rng=np.random.default_rng(SEED), collision_penalty=collision_penalty)


def _dilemma() -> "pd.DataFrame":
    from rposst_opt.experiments.domains.dilemma import axelrod_tournament

    return axelrod_tournament(seed=SEED)


def _arrows(role: str, n: int) -> "pd.DataFrame":
    return racing_arrows(n, np.random.default_rng(SEED), test_cases="followers" if role == "follower" else "leaders")


DOMAINS: dict[str, Domain] = {
    "racing-arrows-follower": Domain("Racing Arrows, cases are followers", lambda: _arrows("follower", 50), 120.0),
    "racing-arrows-leader": Domain("Racing Arrows, cases are leaders", lambda: _arrows("leader", 50), 120.0),
    "racing-arrows-500-follower": Domain(
        "500 Racing Arrows, cases are followers", lambda: _arrows("follower", 500), hold_out_cases=True
    ),
    "racing-arrows-500-leader": Domain(
        "500 Racing Arrows, cases are leaders", lambda: _arrows("leader", 500), hold_out_cases=True
    ),
    "passing-race": Domain("Passing race, win rate", lambda: _passing(False), 90.0),
    "passing-race-collisions": Domain("Passing race, collisions cost", lambda: _passing(True), 90.0),
    "checkpoints": Domain("Leduc checkpoints", _leduc, 90.0),
    "axelrod": Domain("Axelrod's strategies", _dilemma),
}
POKER_SECONDS = 10.0
TIMED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("T = 500", REFERENCE, {"prune": False}),
    ("T = 500, pruned", REFERENCE, {}),
    ("exact", "exact", {}),
)

ARROWS = ("racing-arrows-follower", "racing-arrows-leader")
RACES = ("passing-race", "passing-race-collisions")


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A figure or table of the paper.

    Attributes
    ----------
    place : str
        What it is in the paper.
    domains : tuple of str
        Names in `DOMAINS`.
    takes_tables : bool
        Whether poker tables that are given take part; if there are no other domains, they must be given.
    draws : tuple of str
        Names of drawings in `rposst_opt.experiments.figures`.
    timed : bool
        Whether runs are timed, instead of errors being measured.
    """

    place: str
    domains: tuple[str, ...] = ()
    takes_tables: bool = False
    needs: str = "nothing"
    holdouts: tuple[float, ...] = HOLDOUTS
    sizes: tuple[int, ...] = SIZES
    replicas: int = REPLICAS
    draws: tuple[str, ...] = ("error-grids",)
    timed: bool = False


REPRODUCTIONS: dict[str, Reproduction] = {
    "test-score-error": Reproduction(
        place="main figure: errors on held-out policies in six domains, m = 2, 20 % held out",
        domains=(*ARROWS, *RACES),
        takes_tables=True,
        needs="poker tables, if they are to be in it (--table)",
        holdouts=(0.2,),
        sizes=(2,),
        draws=("error-panels",),
    ),
    "racing-arrows": Reproduction(
        place="appendix: Racing Arrows with 50 policies, both roles, all sizes and holdouts", domains=ARROWS
    ),
    "racing-arrows-500": Reproduction(
        place="main figure and appendix: Racing Arrows with 500 policies, 96 % of both roles held out",
        domains=("racing-arrows-500-follower", "racing-arrows-500-leader"),
        holdouts=(0.96,),
    ),
    "poker": Reproduction(
        place="appendix: ACPC 2012 and 2017, all sizes and holdouts",
        takes_tables=True,
        needs="tables of duplicate scores (--table, once for each)",
    ),
    "passing-race": Reproduction(
        place="appendix: Gran Turismo, win rates and collisions, all sizes and holdouts (a stand-in)", domains=RACES
    ),
    "checkpoints": Reproduction(
        place="appendix: Gran Turismo, 43 checkpoints and 3 scripted agents, all sizes and holdouts (a stand-in)",
        domains=("checkpoints",),
        needs="pip install 'rposst-opt[openspiel]'",
    ),
    "selection-frequencies": Reproduction(
        place="appendix: which pairs each method chooses, as matrices and as a table (a stand-in)",
        domains=("passing-race",),
        holdouts=(0.2,),
        sizes=(2,),
        draws=("frequency-matrices",),
    ),
    "chosen-pair": Reproduction(
        place="figures of the win-rate matrix, and of its two rows that RPOSST chooses most often (a stand-in)",
        domains=("passing-race",),
        holdouts=(0.2,),
        sizes=(2,),
        draws=("result-matrix", "chosen-pair"),
    ),
    "runtimes": Reproduction(
        place="table: time to run T = 500 rounds in each domain",
        domains=(ARROWS[0], RACES[0]),
        takes_tables=True,
        needs="poker tables, if they are to be in it (--table)",
        holdouts=(0.2,),
        replicas=3,
        draws=(),
        timed=True,
    ),
    "axelrod": Reproduction(
        place="not in the paper: a large population that nobody here wrote",
        domains=("axelrod",),
        needs="pip install 'rposst-opt[axelrod]'",
        sizes=(1, 2),
        replicas=20,
    ),
}
ALL = "all"
SOURCE_FORMAT = "rposst-reproduction-source/1"


@dataclass(frozen=True, kw_only=True)
class Request:
    """How to reproduce: what is not given is as in the paper.

    Attributes
    ----------
    folder : Path
        Where everything is written: `NAME/*.csv`, `NAME/*.png`, `NAME/*.svg`, and finished tasks under `parts`.
    poker : mapping of str to DataFrame
        Tables of duplicate scores, by the names that they shall have.
    """

    folder: Path
    poker: "Mapping[str, pd.DataFrame]" = field(default_factory=dict)
    replicas: int | None = None
    sizes: tuple[int, ...] | None = None
    holdouts: tuple[float, ...] | None = None
    methods: tuple[str, ...] = tuple(METHODS)
    every_error: bool = False
    jobs: int = 1
    scheduler: str | None = None
    tell: Tell = lambda what, done, total: None

    @cached_property
    def _made(self) -> "dict[str, pd.DataFrame]":
        return {}

    def table(self, domain: str) -> "pd.DataFrame":
        """A domain's matrix, made once."""
        if domain not in self._made:
            self.tell(f"making {domain}", 0, 1)
            self._made[domain] = self.poker[domain] if domain in self.poker else DOMAINS[domain].make()
        return self._made[domain]


def asked_of(name: str, request: Request) -> dict[str, Any]:
    """What tells a run from others that write other tables to the same folder."""
    return _source(_known(name), request)


def _source(asked: Reproduction, request: Request) -> dict[str, Any]:
    poker = request.poker if asked.takes_tables else {}
    options = {
        "replicas": asked.replicas if request.replicas is None else request.replicas,
        "sizes": asked.sizes if request.sizes is None else request.sizes,
        "holdouts": asked.holdouts if request.holdouts is None else request.holdouts,
        "methods": request.methods,
        "every_error": request.every_error,
        "table": {
            domain: results_digest(list(table.index), list(table.columns), table.to_numpy(dtype=float))
            for domain, table in poker.items()
        },
    }
    return {"options": options}


def _known(name: str) -> Reproduction:
    if name not in REPRODUCTIONS:
        raise ProblemError(unknown("name", name, [*REPRODUCTIONS, ALL]))
    return REPRODUCTIONS[name]


def reproduce(name: str, request: Request) -> list[Path]:
    """Run what a figure or table needs, write its tables, draw it, and say which files were written."""
    from rposst_opt.experiments.figures import draw

    asked = _known(name)
    if asked.takes_tables and not asked.domains and not request.poker:
        raise ProblemError(f"{name} needs {asked.needs}.")
    folder = request.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    written = (_write_runtimes if asked.timed else _write_tables)(folder, asked, request)
    for drawing in asked.draws:
        request.tell(f"drawing {drawing}", 0, 1)
        written += draw(drawing, folder)
    return written


def names_for_all(request: Request) -> list[str]:
    """Every name that can be reproduced with what was given."""
    return [name for name, asked in REPRODUCTIONS.items() if asked.domains or request.poker]


def _studies(asked: Reproduction, request: Request) -> list[Study]:
    names = [*asked.domains, *(request.poker if asked.takes_tables else ())]
    studies = []
    for domain in names:
        known = DOMAINS.get(domain)
        studies.append(
            Study(
                name=domain,
                title=domain if known is None else known.title,
                table=request.table(domain),
                holdouts=asked.holdouts if request.holdouts is None else request.holdouts,
                sizes=asked.sizes if request.sizes is None else request.sizes,
                replicas=asked.replicas if request.replicas is None else request.replicas,
                hold_out_cases=known is not None and known.hold_out_cases,
                methods=request.methods,
            )
        )
    return studies


def _write_tables(folder: Path, asked: Reproduction, request: Request) -> list[Path]:
    """Run all tasks of all studies together, and write what came of them."""
    import pandas as pd

    studies = _studies(asked, request)
    cells = [(study, cell) for study in studies for cell in study.cells()]
    tasks = [study.task(cell) for study, cell in cells]
    choices = run_tasks(
        tasks, request.folder / "parts", jobs=request.jobs, scheduler=request.scheduler, tell=request.tell
    )
    request.tell("writing tables", 0, 1)
    write_source(folder, SOURCE_FORMAT, _source(asked, request))
    parts: dict[str, list[pd.DataFrame]] = {"selections": [], "curves": [], "summary": [], "errors": []}
    written = []
    for study in studies:
        outcomes: tables.Outcomes = [
            (cell, chosen) for (of, cell), chosen in zip(cells, choices, strict=True) if of is study
        ]
        found = tables.sorted_errors(study, outcomes)
        parts["selections"].append(tables.selections(study, outcomes))
        parts["curves"].append(tables.curves(study.name, found))
        parts["summary"].append(tables.summary(study.name, found))
        if request.every_error:
            parts["errors"].append(tables.errors(study, outcomes))
        written.append(folder / f"matrix-{study.name}.csv")
        write_table(written[-1], study.table)
    titles = pd.DataFrame({"domain": [study.name for study in studies], "title": [study.title for study in studies]})
    written.append(_write_csv(folder / "domains.csv", titles))
    for kind, frames in parts.items():
        path = folder / f"{kind}{'.csv.gz' if kind == 'errors' else '.csv'}"
        path.unlink(missing_ok=True)  # one of an earlier run would not go with the others
        if frames:
            written.append(_write_csv(path, pd.concat(frames, ignore_index=True)))
    (folder / "comparison.csv").unlink(missing_ok=True)
    if all(method in request.methods for method, known in METHODS.items() if known.in_paper):
        compared = tables.comparison(pd.concat(parts["summary"], ignore_index=True))
        written.append(_write_csv(folder / "comparison.csv", compared))
    picks = tables.top_picks(pd.concat(parts["selections"], ignore_index=True))
    written.append(_write_csv(folder / "top-picks.csv", picks))
    return written


def _write_csv(path: Path, frame: "pd.DataFrame") -> Path:
    """Write a table with all digits, so that reading it back gives the same numbers."""
    text = frame.to_csv(index=False, lineterminator="\n")
    if path.suffix == ".gz":
        packed = gzip.compress(text.encode("utf-8"), mtime=0)  # the same bytes whenever it is written
        write_with(path, lambda temporary: temporary.write_bytes(packed))
    else:
        write_atomically(path, text)
    return path


def _write_runtimes(folder: Path, asked: Reproduction, request: Request) -> list[Path]:
    """Time the reference method and the exact solver, one at a time on all cores, and set the paper's times beside."""
    import pandas as pd

    rows = []
    studies = _studies(asked, request)
    cells = [(study, holdout, size) for study in studies for holdout in study.holdouts for size in study.sizes]
    for place, (study, holdout, size) in enumerate(cells):
        request.tell("timing", place, len(cells))
        known = DOMAINS.get(study.name)
        problems = [
            tuning_problem(study.task(Cell(holdout, size, replica)).tuning, size) for replica in range(study.replicas)
        ]
        paper = POKER_SECONDS if known is None else known.paper_seconds
        for label, backend, options in TIMED:
            solve(problems[0], backend, **options)  # so that compiling is not timed
            seconds = []
            for problem in problems:
                started = time.perf_counter()
                if solve(problem, backend, **options).limit is not None:
                    raise KeyboardInterrupt  # the only limit there is
                seconds.append(time.perf_counter() - started)
            sizes = problems[0].n_cases, problems[0].n_policies, size
            rows.append((study.name, holdout, *sizes, label, median(seconds), paper))
    columns = ["domain", "holdout", "cases", "tuning_policies", "size", "method", "seconds", "paper_seconds_16_cores"]
    write_source(folder, SOURCE_FORMAT, _source(asked, request))
    return [_write_csv(folder / "runtimes.csv", pd.DataFrame(rows, columns=columns))]


def quick(request: Request) -> Request:
    """The same in half a minute: few replicas, tests of two cases."""
    return replace(
        request,
        replicas=QUICK_REPLICAS if request.replicas is None else request.replicas,
        sizes=QUICK_SIZES if request.sizes is None else request.sizes,
    )
