"""What is known of test cases besides their results: costs, groups and limits to weights, from a file.

There is a row for every case. The column `case` has the names; others are read if they are there. Rows of cases that
the results lack are passed over, and so are columns that mean nothing here: that is told.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rposst_opt.errors import ProblemError
from rposst_opt.files.names import check_names
from rposst_opt.files.numbers import NumberStyle, read_numbers, why_no_number
from rposst_opt.files.tables import read_cells
from rposst_opt.text_files import named
from rposst_opt.values.showing import listed, quoted

CASE, GROUP = "case", "group"
NUMBERS = {"cost": "costs", "least_weight": "least_weight", "most_weight": "most_weight"}  # to arguments of a problem
BETWEEN_GROUPS = ";"


class KnownCases(NamedTuple):
    """What a file says of cases, as arguments of `Problem`, and what is to be told about the reading."""

    given: dict[str, Any]
    notes: tuple[str, ...]


def read_cases(path: Path, case_names: Sequence[str]) -> KnownCases:
    """Read what a file says of these cases, each of which it must have."""
    grid, where = read_cells(path), named(path)
    header = [name.strip() for name in grid[0].tolist()]
    check_names(where, "column", header)
    if CASE not in header:
        raise ProblemError(f"{where}: the column {CASE!r} is missing, which names the test cases.")
    columns = {name: grid[1:, place].tolist() for place, name in enumerate(header)}
    names = columns.pop(CASE)
    check_names(where, "test case", names)
    row_of = {name: row for row, name in enumerate(names)}
    missing = [name for name in case_names if name not in row_of]
    if missing:
        raise ProblemError(
            f"{where}: the test case {missing[0]!r} is missing ({len(missing)} of {len(case_names)} are)."
        )
    rows = [row_of[name] for name in case_names]
    given: dict[str, Any] = {}
    for name in [name for name in NUMBERS if name in columns]:
        given[NUMBERS[name]] = _numbers(where, name, case_names, [columns[name][row] for row in rows])
    if GROUP in columns:
        given["groups"] = {name: _groups(columns[GROUP][row]) for name, row in zip(case_names, rows, strict=True)}
    return KnownCases(given, tuple(_notes(where, columns, names, case_names)))


def _numbers(where: str, column: str, case_names: Sequence[str], texts: list[str]) -> list[float]:
    """A number for each of these cases."""
    values = read_numbers(np.array(texts, dtype=object)[:, None], NumberStyle()).values[:, 0]
    for case, text, value in zip(case_names, texts, values.tolist(), strict=True):
        if not math.isfinite(value):
            what = why_no_number(text) if text.strip() else "is empty: every test case needs a number."
            raise ProblemError(f"{where}: the {column} of test case {case!r} {what}")
    return [float(value) for value in values]


def _groups(text: str) -> list[str]:
    return [group.strip() for group in text.split(BETWEEN_GROUPS) if group.strip()]


def _notes(where: str, columns: dict[str, list[str]], names: list[str], case_names: Sequence[str]) -> list[str]:
    """What was passed over."""
    notes = []
    idle = [name for name in columns if name not in NUMBERS and name != GROUP]
    if idle:
        notes.append(f"{where}: passed over the columns {listed([quoted(name) for name in idle])}.")
    wanted = set(case_names)
    surplus = [name for name in names if name not in wanted]
    if surplus:
        notes.append(f"{where}: passed over {len(surplus)} test cases that the results lack, such as {surplus[0]!r}.")
    return notes
