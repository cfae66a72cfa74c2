"""Handing a test to those who run it: ``rposst write-subset``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rposst_opt.cli.terminal import notice
from rposst_opt.cli.writing import check_output, write_file


class Harness(StrEnum):
    """Who takes the chosen cases."""

    LM_EVAL = "lm-eval"
    INSPECT = "inspect"
    JSON = "json"
    CSV = "csv"


def write_subset(
    test: Annotated[Path, typer.Argument(metavar="TEST.json", help="A test that `rposst solve --out` wrote.")],
    harness: Annotated[
        Harness,
        typer.Option(
            "--for",
            help="lm-eval: what --samples of lm-evaluation-harness takes; inspect: what --sample-id of Inspect takes; "
            "json, csv: names, positions and weights.",
            show_default=False,
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(help="The task of all cases, where their names are numbers or ids alone.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write; standard output unless given.", show_default=False),
    ] = None,
) -> None:
    """Write the chosen cases as evaluation harnesses take them."""
    from rposst_opt.files.harnesses import how_to_score, read_subset, subset_for

    if out is not None:
        check_output(out, [test])
    subset = read_subset(test, task)
    text = subset_for(harness, subset)
    if out is None:
        print(text, end="")
    else:
        write_file(out, text)
    for sentence in how_to_score(harness, subset, test, out):
        notice(sentence)
