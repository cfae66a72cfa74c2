"""Holding the solvers against each other: ``rposst agree | compare | backends | calibrate``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rposst_opt.cli.commands import OUTPUT, RUN
from rposst_opt.cli.options import ProblemOptions, read_problem, takes_problem
from rposst_opt.cli.parsing import listed
from rposst_opt.cli.running import SECONDS_EACH, Backends, Threads
from rposst_opt.cli.showing import show_agreement, show_backends, show_comparison
from rposst_opt.cli.terminal import console, solvers_in_turn, spinner
from rposst_opt.cli.writing import AsJson, CsvOut, check_output, check_picture, write_file, write_file_with, wrote

if TYPE_CHECKING:
    from rposst_opt.contract import Capabilities
    from rposst_opt.referee.comparison import Comparison

EachTimeLimit = Annotated[float, typer.Option(metavar="SECONDS", help="For each backend.", rich_help_panel=RUN)]
ByTuple = Annotated[
    bool,
    typer.Option("--by-tuple", help="Compare the optimum of every set of cases too.", rich_help_panel=RUN),
]
TimeLimitOrSeconds = Annotated[
    float,
    typer.Option("--time-limit", "--seconds", metavar="SECONDS", help="For each solver.", rich_help_panel=RUN),
]


@takes_problem()
def agree(
    options: ProblemOptions,
    backends: Backends = None,
    time_limit: EachTimeLimit = SECONDS_EACH,
    by_tuple: ByTuple = False,
    csv: CsvOut = None,
    as_json: AsJson = False,
) -> None:
    """Run every backend on the same problem and say who agrees; exit 1 if somebody does not."""
    from rposst_opt.files.records import agreement_rows, as_csv
    from rposst_opt.files.records import as_json as to_json
    from rposst_opt.referee.agreement import agree as run_all

    if csv is not None:
        check_output(csv, options.files)
    problem = read_problem(options).problem
    names = None if backends is None else listed(backends)
    with solvers_in_turn() as telling:
        report = run_all(problem, names, time_limit_seconds=time_limit, by_tuple=by_tuple, **telling)
    rows = agreement_rows(report)
    if csv is not None:
        write_file(csv, as_csv(rows))
    if as_json:
        print(to_json({"format": "rposst-agreement/1", "agreed": report.agreed, "backends": rows}))
    else:
        show_agreement(console(), report)
    if not report.agreed:
        raise typer.Exit(1)


@takes_problem()
def compare(
    options: ProblemOptions,
    time_limit: TimeLimitOrSeconds = SECONDS_EACH,
    backends: Backends = None,
    threads: Threads = 1,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Write who had what when to this file, a row for each news.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE.png",
            help="Draw objectives and bounds against time to a .png, .svg or .pdf.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run solvers one after the other and say who has a good test, and a proof, how soon; exit 1 as `agree` does."""
    from rposst_opt.files.records import as_json as to_json
    from rposst_opt.files.records import comparison_record
    from rposst_opt.referee.comparison import compare as run_all

    if out is not None:
        check_picture(out, options.files)
    if csv is not None:
        check_output(csv, options.files)
    problem = read_problem(options).problem
    names = None if backends is None else listed(backends)
    with solvers_in_turn() as telling:
        comparison = run_all(problem, names, time_limit, threads=threads, **telling)
    if csv is not None:
        write_file(csv, comparison.frame.to_csv(index=False))
    if out is not None:
        _draw(out, comparison)
    if as_json:
        print(to_json(comparison_record(comparison)))
    else:
        show_comparison(console(), comparison)
    if not comparison.agreement.agreed:
        raise typer.Exit(1)


def _draw(out: Path, comparison: "Comparison") -> None:
    from rposst_opt.reports import plots

    write_file_with(out, lambda path: plots.anytime_profiles(comparison.frame).savefig(path, dpi=150))


@takes_problem(optional=True)
def backends(
    options: ProblemOptions | None,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Whom `auto` chooses with this limit of time.", rich_help_panel=RUN),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the solvers: what is installed, what each handles and proves; with a problem, who can solve it, how soon."""
    from rposst_opt.backends import BACKENDS, choose_backend
    from rposst_opt.files.records import as_json as to_json

    problem = None if options is None else read_problem(options).problem
    choice = None if problem is None else choose_backend(problem, time_limit_seconds=time_limit)
    rows = [_backend_record(name, entry.capabilities) for name, entry in BACKENDS.items()]
    if problem is not None and choice is not None:
        for row, entry in zip(rows, BACKENDS.values(), strict=True):
            reason = entry.capabilities.why_not(problem)
            seconds = choice.predicted_seconds.get(row["name"])
            row |= {"solves_this": reason is None, "why_not": reason, "predicted_seconds": seconds}
    if as_json:
        auto = {"auto": None, "reason": None} if choice is None else {"auto": choice.backend, "reason": choice.reason}
        print(to_json({"format": "rposst-backends/1", **auto, "backends": rows}))
    else:
        show_backends(console(), rows, choice)


def _backend_record(name: str, capabilities: "Capabilities") -> dict[str, Any]:
    """What a backend is, whatever the problem."""
    from rposst_opt.backends import how_to_install, why_unusable

    return {
        "name": name,
        "installed": why_unusable(capabilities) is None,
        "install": how_to_install(capabilities),
        "unusable": capabilities.unusable,
        "method": capabilities.method,
        "handles": sorted(need.value for need in capabilities.handles),
        "finds_optimum": capabilities.finds_optimum,
        "proves": capabilities.proves,
        "tolerance": capabilities.tolerance,
    }


def calibrate(
    seconds: Annotated[
        float, typer.Option(min=1.0, metavar="SECONDS", help="How long to measure, about.", rich_help_panel=RUN)
    ] = 120.0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Where to write the table; where `auto` looks for it, in your configuration folder, unless given.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Fit the times that `auto` predicts to this machine, by running the backends on small problems."""
    from rposst_opt.backends.calibration import calibrate as measure
    from rposst_opt.backends.forecast import as_table, users_table
    from rposst_opt.files.writing import check_can_write, write_atomically

    path = users_table() if out is None else out
    if out is None:  # the table of an earlier calibration, which is measured anew
        path.parent.mkdir(parents=True, exist_ok=True)
        check_can_write(path)
    else:
        check_output(path)
    with spinner() as say:
        models = measure(seconds, tell=lambda what, share: say(f"{what} ({share:.0%} of the time)"))
    table = as_table(models)
    write_atomically(path, table)
    print(table, end="")
    in_use = "this table now" if path == users_table() else f"{users_table()}, if it is there"
    wrote(path, f"{len(models)} backends; auto predicts by {in_use}.")
