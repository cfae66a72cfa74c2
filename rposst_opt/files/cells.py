"""A table as cells, before anybody knows what they mean; and delimited text as cells."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rposst_opt.errors import ProblemError

ObjectArray = NDArray[np.object_]

SEPARATORS = (",", "\t", ";")
FIRST_LINE = re.compile(r'\s*((?:[^"\r\n]|"(?:[^"]|"")*+")*+)')
QUOTED = re.compile(r'"(?:[^"]|"")*+"')


class CutOff(str):
    """The text of a cell that is not there because its row has ended: empty, and no missing cell."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A table as it stands in its file.

    Attributes
    ----------
    where : str
        The file, for messages.
    grid : ndarray of shape (n_rows, n_columns)
        Text, or what the file's format has instead: numbers, booleans, None. The header is the first row.
    has_header : bool, optional
        Whether the first row is one; None if that is not known.
    has_row_numbers : bool
        Whether rows have numbers outside of the cells, as rows of a DataFrame have: then no column need name them.
    notes : tuple of str
        What was found out on the way.
    long : (str, str, str), optional
        The columns of test cases, policies and values, where the format says that this is a long table.
    """

    where: str
    grid: ObjectArray
    has_header: bool | None = None
    has_row_numbers: bool = False
    notes: tuple[str, ...] = ()
    long: tuple[str, str, str] | None = None


def cells_of_text(where: str, text: str, *, decimal: str = ".") -> Cells:
    """Text with a comma, a tab or a semicolon between cells, which may be quoted."""
    if not text.strip():
        raise ProblemError(f"{where}: the file is empty.")
    if "\0" in text:
        raise ProblemError(f"{where}: this is not a text file (it holds a zero byte).")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text, decimal), strict=True)
    rows, lines = [], []
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ProblemError(f"{where}: the quotes or lines of this text cannot be made out ({error}).") from None
    if not rows:
        raise ProblemError(f"{where}: the file is empty.")
    return Cells(where, as_grid(where, rows, lines))


def as_grid(where: str, rows: Sequence[Sequence[Any]], lines: Sequence[int] | None = None) -> ObjectArray:
    """Rows of cells as long as the first; an error names one that is longer, and the line that it ends in."""
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        for number, row in enumerate(rows):
            if len(row) > width:
                line = "" if lines is None else f" in line {lines[number]}"
                raise ProblemError(
                    f"{where}: the row of {row[0]!r}{line} has {len(row)} cells and the header has {width}: a name may "
                    "lack its quotes, or the header its first cell."
                )
        rows = [[*row, *[CutOff()] * (width - len(row))] for row in rows]
    grid = np.empty((len(rows), width), dtype=object)
    grid[:] = rows
    return grid


def _separator(text: str, decimal: str) -> str:
    """The separator that the first line has most of; those in quotes are part of a name."""
    match = FIRST_LINE.match(text)
    header = QUOTED.sub('""', match[1] if match is not None else "")
    others = [separator for separator in SEPARATORS if separator != decimal and separator in header]
    return max(others or SEPARATORS, key=header.count)
