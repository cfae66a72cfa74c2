"""Pages for a browser: ``rposst report | explore``."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rposst_opt.cli.commands import OUTPUT, RUN
from rposst_opt.cli.options import (
    ProblemOptions,
    Stated,
    purpose_of,
    read_problem,
    table_digest,
    takes_problem,
)
from rposst_opt.cli.parsing import listed
from rposst_opt.cli.showing import show_solution
from rposst_opt.cli.terminal import console, notice, plain, progress_of_a_search, spinner
from rposst_opt.cli.writing import check_output, wrote
from rposst_opt.errors import ProblemError

if TYPE_CHECKING:
    from rposst_opt.unseen.validation import Validation

PAGES = (".html", ".htm")
SHORTEST_TOLD = 1.0  # seconds: Python itself takes as long

TimeInAll = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        help="In all: half for the test itself, the rest for policies left out, other sizes, budgets and solvers; what "
        "a part does not need is left to those after it.",
        rich_help_panel=RUN,
    ),
]
Trials = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Show the trials on unseen policies that `rposst validate --out` wrote.",
        rich_help_panel=OUTPUT,
    ),
]

Solver = Annotated[str, typer.Option(help="Which solver; `rposst backends` lists them.", rich_help_panel=RUN)]
Others = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Ask only these backends to agree; all that are predicted to be in time if not given.",
        rich_help_panel=RUN,
    ),
]
TimeOfEach = Annotated[float, typer.Option(metavar="SECONDS", help="At most, for each of them.", rich_help_panel=RUN)]
AskOthers = Annotated[
    bool, typer.Option("--agree/--no-agree", help="Whether others are asked at all.", rich_help_panel=RUN)
]
LargestSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="SIZE",
        help="Up to how many cases the best error is shown; two more than --size unless given.",
        rich_help_panel=OUTPUT,
    ),
]
Title = Annotated[
    str | None, typer.Option(help="The page's heading; the file's name unless given.", rich_help_panel=OUTPUT)
]


@takes_problem()
def report(
    options: ProblemOptions,
    out: Annotated[Path, typer.Option(metavar="REPORT.html", help="The page to write.", rich_help_panel=OUTPUT)],
    backend: Solver = "auto",
    time_limit: TimeInAll = 300.0,
    backends: Others = None,
    agree_time_limit: TimeOfEach = 10.0,
    ask_others: AskOthers = True,
    largest_size: LargestSize = None,
    validation: Trials = None,
    title: Title = None,
) -> None:
    """Write a page for a browser: the test, its errors, its proof, who agrees, and the k-of-N explorer."""
    from rposst_opt.files.writing import write_atomically
    from rposst_opt.reports.pages.page import check_can_render
    from rposst_opt.reports.pages.report import gather
    from rposst_opt.reports.pages.report_page import report_page
    from rposst_opt.reports.wording import agreement_words

    check_can_render()
    _check_page(out, options.files)
    if backends is not None and not ask_others:
        raise ProblemError("--backends and --no-agree exclude each other: give one of them.")
    stated = read_problem(options)
    names, trials = None if backends is None else listed(backends), _read_trials(validation, out, stated)
    with spinner() as say:
        found = gather(
            stated.problem,
            scale=stated.scale,
            target_names=stated.target_names,
            backend=backend,
            time_limit_seconds=time_limit,
            backends=names if ask_others else [],
            agree_seconds=agree_time_limit,
            largest_size=largest_size,
            made_of=None if options.probabilities else (stated.table.to_numpy(), purpose_of(options, stated)),
            validation=trials,
            tell=say,
            expect=lambda seconds: notice(_expectation(seconds, time_limit)),
        )
    if found is None:
        console().print("No test was found before the time limit.")
        raise typer.Exit(1)
    heading = title or f"A small test for {options.title}"
    write_atomically(out, report_page(found, title=heading, command=_own_command()))
    show_solution(console(), found.problem, found.solution, found.scale, found.left_out)
    missing = " An interrupt came before all was run, and the page lacks the rest." if found.interrupted else ""
    wrote(out, f"open it in a browser; it needs no network.{missing}")
    if found.agreement is not None and not found.agreement.agreed:
        console().print(plain(agreement_words(found.agreement)))
        raise typer.Exit(1)


def _check_page(out: Path, inputs: Iterable[Path]) -> None:
    """Refuse, before anything is run, what is no page, cannot be written or is read as input."""
    check_output(out, inputs)
    if out.suffix.lower() not in PAGES:
        raise ProblemError(f"--out must be a page for a browser ({' or '.join(PAGES)}), got {str(out)!r}.")


def _expectation(seconds: float, time_limit: float) -> str:
    """How long it may take, before it begins."""
    from rposst_opt.backends.forecast import in_words

    return (
        f"This may take about {in_words(max(seconds, SHORTEST_TOLD))}, as far as can be predicted, and no longer than "
        f"about {in_words(time_limit)} (--time-limit)."
    )


def _read_trials(folder: Path | None, out: Path, stated: Stated) -> "Validation | None":
    """The validation in a folder, if one is named; it must be of this table."""
    from rposst_opt.unseen.validation_files import READ_BACK, check_validation_is_of, read_validation

    if folder is None:
        return None
    check_output(out, [folder / name for name in READ_BACK])
    trials = read_validation(folder)
    if not check_validation_is_of(folder, table_digest(stated.table)):
        notice(f"{folder} does not say which table its trials are of, so that this could not be checked.")
    return trials


@takes_problem(optional=True)
def explore(
    options: ProblemOptions | None,
    out: Annotated[Path, typer.Option(metavar="EXPLORE.html", help="The page to write.", rich_help_panel=OUTPUT)],
    time_limit: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="For the test whose losses are shown.", rich_help_panel=RUN),
    ] = 60.0,
) -> None:
    """Write a page for a browser with sliders for k, N and eta, and a game; on a small race if no results are given."""
    from rposst_opt.backends import solve
    from rposst_opt.files.writing import write_atomically
    from rposst_opt.reports.pages.explorer import game_values
    from rposst_opt.reports.pages.explorer_page import explorer_page
    from rposst_opt.reports.pages.page import check_can_render

    check_can_render()
    _check_page(out, [] if options is None else options.files)
    stated = _small_race() if options is None else read_problem(options)
    problem, target_names = stated.problem, stated.target_names
    with progress_of_a_search() as progress:
        solution = solve(problem, time_limit_seconds=time_limit, progress=progress)
    if solution.test is None:
        console().print(f"No test was found before {solution.limit or 'the run ended'}.", markup=False)
        raise typer.Exit(1)
    values = game_values(problem, solution)
    title = "The k-of-N objective, by hand"
    write_atomically(out, explorer_page(problem, solution, target_names, values, title=title, command=_own_command()))
    wrote(out, "open it in a browser; it needs no network.")


def _small_race() -> Stated:
    """A problem that is small enough to look at: 20 followers, 12 leaders, 4 targets."""
    import numpy as np

    from rposst_opt.experiments.domains import racing_arrows
    from rposst_opt.measures import KOfN
    from rposst_opt.problem import Problem
    from rposst_opt.results import Scale, softmax_targets

    table = racing_arrows(20, np.random.default_rng(2023)).iloc[:, :12]
    betas = (0, 1, 2, 4)
    problem = Problem(results=table, size=3, measure=KOfN(1, 10), targets=softmax_targets(table, betas))
    return Stated(problem, Scale(0.0, 1.0), [f"beta {beta}" for beta in betas], table)


def _own_command() -> str:
    """The command line as it was given, for the page that it makes."""
    return shlex.join(["rposst", *sys.argv[1:]])
