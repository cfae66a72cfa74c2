"""Looking for problems on which solvers are wrong: ``rposst referee``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rposst_opt.cli.commands import DRAWN, OUTPUT, RUN
from rposst_opt.cli.parsing import listed
from rposst_opt.cli.running import Scheduler
from rposst_opt.cli.terminal import console, notice, plain
from rposst_opt.cli.writing import AsJson, check_run_folder, wrote

if TYPE_CHECKING:
    from rich.console import Console

    from rposst_opt.fuzzing.run import FuzzingReport, News

Minutes = Annotated[
    float, typer.Option(metavar="MINUTES", help="After which no further problem is begun.", rich_help_panel=RUN)
]
Problems = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="End after so many problems, those of an earlier run in the folder included.",
        show_default=False,
        rich_help_panel=RUN,
    ),
]
Seed = Annotated[
    int,
    typer.Option(min=0, help="Where to begin; each problem has a family and a seed of its own.", rich_help_panel=DRAWN),
]
Families = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Of plain, binary, ties, scaled, edges, tails, twins, shifted; all unless given.",
        show_default=False,
        rich_help_panel=DRAWN,
    ),
]
Backends = Annotated[
    str | None,
    typer.Option(
        metavar="A,B", help="Only these backends, and exact; all that are installed if not given.", rich_help_panel=RUN
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="For each solver and problem; problems are small.", rich_help_panel=RUN),
]
Jobs = Annotated[
    int, typer.Option(min=1, help="Processes on this machine, each with solvers of its own.", rich_help_panel=RUN)
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FOLDER",
        help="Where the table and contradictions are written; run again, it goes on where it stopped.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]


def referee(
    minutes: Minutes = 1.0,
    problems: Problems = None,
    seed: Seed = 2023,
    families: Families = None,
    backends: Backends = None,
    time_limit: TimeLimit = 10.0,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    out: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Draw problems that are hard on solvers, and make small what one is wrong about; exit 1 if there is any."""
    from rposst_opt.fuzzing.run import SOURCE_FORMAT, TRIALS, asked_of, fuzz
    from rposst_opt.solvers.cluster import check_cluster

    if scheduler is not None:
        check_cluster()
    drawn_from = None if families is None else listed(families)
    asked = None if backends is None else listed(backends)
    if out is not None:
        check_run_folder(out, [TRIALS], SOURCE_FORMAT, asked_of(seed, drawn_from, asked, time_limit))
    with _telling() as tell:
        report = fuzz(
            minutes=minutes,
            problems=problems,
            seed=seed,
            families=drawn_from,
            backends=asked,
            time_limit_seconds=time_limit,
            folder=out,
            jobs=jobs,
            scheduler=scheduler,
            tell=tell,
        )
    if out is not None:
        wrote(out, "the table of all trials, and a folder for each that was made small.")
    if as_json:
        _print_json(report)
    else:
        _show(console(), report, out)
    if not report.agreed:
        raise typer.Exit(1)


@contextmanager
def _telling() -> "Iterator[Callable[[News], None]]":
    """How far the run is, on a terminal; each contradiction and crash that was made small, everywhere."""
    screen = console(stderr=True)
    with screen.status("drawing problems") as status:

        def tell(news: "News") -> None:
            for row in news.latest:
                notice(f"{row['backend']} {row['verdict']} on {row['family']} {row['seed']}: {row['reason']}")
            minutes = f"{news.seconds / 60:.1f} minutes"
            status.update(f"{news.problems:,} problems in {minutes}, {news.contradictions:,} contradictions")

        yield tell


def _show(out: "Console", report: "FuzzingReport", folder: Path | None) -> None:
    """Who had which verdict how often, and where the contradictions are."""
    from rich.table import Table

    from rposst_opt.referee.findings import Verdict

    counts = report.counts
    shown = Table(title=f"{report.n_problems:,} problems, by every solver")
    shown.add_column("backend", no_wrap=True)
    for verdict in counts.columns:
        shown.add_column(Verdict(verdict).words, justify="right")
    for backend, row in counts.iterrows():
        shown.add_row(plain(backend), *(f"{count:,}" if count else "" for count in row))
    out.print(shown)
    for _, row in report.trials[report.trials["folder"] != ""].iterrows():
        where = "" if folder is None else f" -> {folder / row['folder']}"
        words = f"{row['backend']} {row['verdict']} on {row['family']} {row['seed']}: {row['reason']}{where}"
        out.print(plain(words), soft_wrap=True)
    if report.folders and folder is None:
        out.print("What was made small is kept by --out FOLDER.")
    out.print(_last_words(len(report.contradictions)))


def _last_words(contradictions: int) -> str:
    if not contradictions:
        return "Nobody contradicts the facts."
    return f"{contradictions:,} answer{'s contradict' if contradictions > 1 else ' contradicts'} the facts."


def _print_json(report: "FuzzingReport") -> None:
    from rposst_opt.files.records import as_json, finite

    counts = report.counts
    backends = [
        {"backend": backend, "counts": {verdict: int(count) for verdict, count in row.items() if count}}
        for backend, row in counts.iterrows()
    ]
    rows = [{key: finite(value) for key, value in row.items()} for row in report.contradictions.to_dict("records")]
    record = {"format": "rposst-referee/1", "problems": report.n_problems, "agreed": report.agreed}
    print(as_json({**record, "backends": backends, "contradictions": rows}))
