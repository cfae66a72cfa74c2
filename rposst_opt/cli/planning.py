"""What does a test of each price bring, and how are several made that share no cases: ``rposst budget | forms``."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rposst_opt.cli.commands import OUTPUT, PROBLEM, RUN
from rposst_opt.cli.options import ProblemOptions, Stated, read_problem, source_of, takes_problem
from rposst_opt.cli.parsing import numbers
from rposst_opt.cli.running import SECONDS_EACH, TimeLimit
from rposst_opt.cli.terminal import console, plain, progress_of_experiments, spinner
from rposst_opt.cli.writing import (
    AsJson,
    CsvFile,
    check_folder,
    check_output,
    check_picture,
    write_file,
    write_file_with,
)
from rposst_opt.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from rposst_opt.backends.forms import Forms


@takes_problem(size_may_be_open=True)
def budget(
    options: ProblemOptions,
    budgets: Annotated[
        str | None,
        typer.Option(
            metavar="1,2,5",
            help="Which budgets; about a dozen from the cheapest test on unless given.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="For each budget.", rich_help_panel=RUN)
    ] = SECONDS_EACH,
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this machine.", rich_help_panel=RUN)] = 1,
    csv: CsvFile = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PICTURE.png",
            help="Draw errors against costs to a .png, .svg or .pdf.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """What is the best test for each budget? The curve of error against cost, each point with what is proved of it."""
    from rposst_opt.files.records import as_json as to_json
    from rposst_opt.reports.budgets import budget_curve

    if out is not None:
        check_picture(out, options.files)
    if csv is not None:
        check_output(csv, options.files)
    stated = read_problem(options)
    if stated.problem.rules.costs is None:
        raise ProblemError("`rposst budget` needs --cases with a column `cost`: what each test case costs.")
    asked = None if budgets is None else numbers("--budgets", budgets, float)
    with progress_of_experiments() as tell:
        table = budget_curve(stated.problem, asked, time_limit_seconds=time_limit, jobs=jobs, tell=tell)
    errors = table["objective"].map(stated.scale.error_in_file_units)
    table.insert(2, "error", errors)
    if csv is not None:
        write_file(csv, table.to_csv(index=False))
    if out is not None:
        from rposst_opt.reports import plots

        write_file_with(out, lambda path: plots.budget_curve(table).savefig(path, dpi=150))
    if as_json:
        print(to_json({"format": "rposst-budgets/1", "budgets": _records(table)}))
    else:
        _show_budgets(console(), table)


def _records(table: "pd.DataFrame") -> list[dict[str, object]]:
    """Rows as JSON has them: numbers that are not finite are null."""
    return [
        {
            str(name): None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        for row in table.to_dict("records")
    ]


def _show_budgets(out: "Console", table: "pd.DataFrame") -> None:
    from rich.table import Table

    shown = Table(title="The best test for each budget")
    for heading in ("budget", "cost", "error", "objective", "gap", "cases"):
        shown.add_column(heading, justify="right" if heading != "cases" else "left", overflow="fold")
    shown.add_column("known")
    for row in table.to_dict("records"):
        gap = row["objective"] - row["lower_bound"]
        cells = [f"{row[name]:.6g}" for name in ("budget", "cost", "error", "objective")]
        gaps = "0" if row["status"] == "optimal" else f"{gap:.2g}" if math.isfinite(gap) else "unknown"
        shown.add_row(*(plain(cell) for cell in (*cells, gaps, ", ".join(row["cases"]), row["status"])))
    out.print(shown)
    out.print(
        "The objective is that of the measure, in the units that were optimised; the error is the same in the file's. "
        "Both are of the policies that tests are tuned on.",
        markup=False,
    )


@takes_problem()
def forms(
    options: ProblemOptions,
    count: Annotated[int, typer.Option(min=1, help="How many tests.", rich_help_panel=PROBLEM)] = 2,
    overlap: Annotated[
        int, typer.Option(min=0, help="How many cases two of them may share.", rich_help_panel=PROBLEM)
    ] = 0,
    previous: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="TEST.json",
            help="A test that was used before, to keep away from; repeat for more.",
            rich_help_panel=PROBLEM,
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="search, or milp for one mixed-integer program.", rich_help_panel=RUN)
    ] = "search",
    time_limit: TimeLimit = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the tests to form-1.json and so on in this folder.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make several tests of equal quality that share no cases: the worst of them is as good as can be."""
    from rposst_opt.backends.forms import make_forms
    from rposst_opt.efficient_test import EfficientTest
    from rposst_opt.files.records import as_json as to_json

    if out is not None:
        check_folder(out, map(_file_of, range(1, count + 1)), [*options.files, *(previous or ())])
    stated = read_problem(options)
    used = [EfficientTest.load(path) for path in previous or ()]
    with spinner() as tell:
        tell("the search for forms")
        found = make_forms(
            stated.problem, count, overlap=overlap, previous=used, method=method, time_limit_seconds=time_limit
        )
    if out is not None:
        _write_forms(out, options, stated, found)
    if as_json:
        record = {"format": "rposst-forms/1", "status": found.status.value, "worst": found.worst}
        told = [
            {"cases": test.case_names, "weights": test.weights.tolist(), "objective": objective}
            for test, objective in zip(found.tests, found.objectives, strict=True)
        ]
        print(to_json({**record, "lower_bound": found.lower_bound, "gap": found.gap, "forms": told}))
    else:
        _show_forms(console(), found)


def _file_of(number: int) -> str:
    return f"form-{number}.json"


def _write_forms(folder: Path, options: ProblemOptions, stated: Stated, found: "Forms") -> None:
    """A file for each form, as `rposst solve --out` writes them."""
    from rposst_opt.backends import judge
    from rposst_opt.contract import Candidate
    from rposst_opt.files.records import as_json, solution_record

    folder.mkdir(parents=True, exist_ok=True)
    for number, test in enumerate(found.tests, start=1):
        solution = judge(stated.problem, Candidate(test=test, lower_bound=-math.inf), "forms", 1e-9, found.seconds)
        record = solution_record(stated.problem, solution, stated.scale, source_of(options, stated, {}))
        write_file(folder / _file_of(number), as_json(record) + "\n")


def _show_forms(out: "Console", found: "Forms") -> None:
    from rich.table import Table

    shown = Table(title=f"{len(found.tests)} forms")
    for heading in ("form", "objective"):
        shown.add_column(heading, justify="right")
    shown.add_column("cases and weights", overflow="fold")
    for number, (test, objective) in enumerate(zip(found.tests, found.objectives, strict=True), start=1):
        weighed = ", ".join(
            f"{name} {weight:.4f}" for name, weight in zip(test.case_names, test.weights.tolist(), strict=True)
        )
        shown.add_row(str(number), f"{objective:.6g}", plain(weighed))
    out.print(shown)
    is_proved = found.status.value == "optimal"
    known = "proved: the worst form cannot be better" if is_proved else f"it may be better by {found.gap:.3g}"
    out.print(plain(f"Worst objective {found.worst:.6g}, bound {found.lower_bound:.6g}; {known}."))
    out.print("Objectives are of the policies that tests are tuned on, in the units that were optimised.", markup=False)
