"""How is a table of results to be read? The options that all commands share that read one, and the reading."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rposst_opt.cli.commands import READING
from rposst_opt.cli.terminal import notice
from rposst_opt.errors import ProblemError
from rposst_opt.files.choices import Missing, Side

if TYPE_CHECKING:
    from collections.abc import Collection

    from rposst_opt.files.cells import Cells
    from rposst_opt.files.reading import ResultTable
    from rposst_opt.files.shapes import Layout

Results = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS.csv",
        help="Results, wide (names in the first row and column) or long (a row per result): CSV, TSV, Parquet, "
        "Feather, JSON lines or Excel, compressed or not; - is standard input.",
        show_default=False,
    ),
]
CasesAre = Annotated[
    Side | None,
    typer.Option(
        help="Where the test cases of a wide table are; told by names unless given, and rows if they do not tell.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Long = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="The columns of a long table with case, policy and value; several values of a case and a policy are "
        "averaged.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
DropColumns = Annotated[
    str | None,
    typer.Option(metavar="A,B", help="Columns to leave out.", rich_help_panel=READING, show_default=False),
]
MissingCells = Annotated[
    Missing,
    typer.Option(
        metavar="NAME",
        help="What becomes of missing cells: error refuses them; drop-cases, drop-policies and drop leave out test "
        "cases, policies, or what leaves the largest complete part found; fill fills them by a low-rank fit, whose "
        "error is printed.",
        rich_help_panel=READING,
    ),
]
Names = Annotated[
    bool | None,
    typer.Option(
        "--names/--no-names",
        help="Whether the first column of a wide table names its rows.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row of a text names its columns.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Percent = Annotated[bool, typer.Option("--percent", help="Read 61.0% as 61.0.", rich_help_panel=READING)]
DecimalSign = Annotated[
    str,
    typer.Option("--decimal", metavar=".|,", help="The decimal sign of numbers in a text.", rich_help_panel=READING),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="csv, jsonl, parquet, feather or excel, told by the file unless given; lm-eval or inspect for a folder of "
        "their logs.",
        rich_help_panel=READING,
        show_default=False,
    ),
]


def _of_logs(what: str) -> Any:
    return typer.Option(metavar="NAME", help=what, rich_help_panel=READING, show_default=False)


Metric = Annotated[str | None, _of_logs("Of lm-eval's logs: which metric is read, where there are several.")]
Filter = Annotated[str | None, _of_logs("Of lm-eval's logs: which filter is read, where there are several.")]
Scorer = Annotated[str | None, _of_logs("Of Inspect's logs: which scorer is read, where there are several.")]
Task = Annotated[str | None, _of_logs("Of logs: read this task alone, and call its cases by their number or id.")]


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """What says how results are read; the fields are options."""

    results: Results
    cases_are: CasesAre = None
    long: Long = None
    drop_columns: DropColumns = None
    missing: MissingCells = Missing.ERROR
    names: Names = None
    header: Header = None
    percent: Percent = False
    decimal: DecimalSign = "."
    format: FormatName = None
    metric: Metric = None
    filter: Filter = None
    scorer: Scorer = None
    task: Task = None

    @property
    def title(self) -> str:
        """What the results are called."""
        return "standard input" if str(self.results) == "-" else self.results.stem


def read_table(options: ReadingOptions) -> "ResultTable":
    """The results, with what was found out about them told on standard error."""
    table = table_of_cells(open_table(options), options)
    for note in table.notes:
        notice(note)
    return table


def open_table(options: ReadingOptions) -> "Cells":
    """The cells of the results' file, which may be standard input and is read once."""
    from rposst_opt.files.formats import Asked, open_cells

    chosen = {name: getattr(options, name) for name in ("metric", "filter", "scorer", "task")}
    asked = Asked(options.decimal, {name: choice for name, choice in chosen.items() if choice is not None})
    return open_cells(options.results, format=options.format, asked=asked)


def table_of_cells(
    cells: "Cells", options: ReadingOptions, only_cases: "Collection[str] | None" = None
) -> "ResultTable":
    """The results that are in cells, as the options read them."""
    from rposst_opt.files.reading import table_of

    return table_of(cells, _layout(options), options.missing, only_cases)


def _layout(options: ReadingOptions) -> "Layout":
    from rposst_opt.files.numbers import NumberStyle
    from rposst_opt.files.shapes import Layout

    long = None if options.long is None else columns_of("--long", options.long)
    if long is not None and len(long) != 3:
        raise ProblemError(f"--long must name three columns, CASE,POLICY,VALUE, got {options.long!r}.")
    return Layout(
        long=None if long is None else (long[0], long[1], long[2]),
        cases_are=options.cases_are,
        names=options.names,
        header=options.header,
        drop_columns=[] if options.drop_columns is None else columns_of("--drop-columns", options.drop_columns),
        style=NumberStyle(options.decimal, options.percent),
    )


def columns_of(option: str, text: str) -> list[str]:
    """Names of columns with commas between them; a name with a comma is quoted, as in the file."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error as error:
        raise ProblemError(f"{option} must be names with commas between them, got {text!r} ({error}).") from None
