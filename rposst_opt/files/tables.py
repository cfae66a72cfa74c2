"""Reading what goes with results: targets, probabilities, noise and groups; and crosstables and match logs.

A table has a header with names, a first column with names, and numbers elsewhere; commas, tabs or semicolons separate
them. All errors are `ProblemError`s of one line that say where in the file the trouble is.
"""

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.files.cells import ObjectArray, cells_of_text
from rposst_opt.files.incomplete import BoolArray
from rposst_opt.files.names import check_names, check_same_names
from rposst_opt.files.numbers import NUMBER, NumberStyle, read_numbers, why_no_number
from rposst_opt.text_files import named, read_bytes, read_text

WHOLE_NUMBER = re.compile(r"\d+", re.ASCII)


def read_crosstable(path: Path) -> pd.DataFrame:
    """Read a table of agents against agents; a blank cell is a missing number."""
    return _read_table(path, rows="agent", columns="agent", blanks=True)


def read_targets(path: Path, case_names: Sequence[str]) -> pd.DataFrame:
    """Read target distributions, one per row of the outcome, columns in the order of `case_names`.

    In the file, the test cases may be the rows or the columns; their names tell which.
    """
    table = _read_table(path, rows="row", columns="column")
    known = set(case_names)
    if len(known & set(table.columns)) > len(known & set(table.index)):
        check_same_names(named(path), "test case", list(table.columns), case_names)
        return table[list(case_names)]
    check_same_names(named(path), "test case", list(table.index), case_names)
    return table.loc[list(case_names)].T


def read_probabilities(path: Path, policy_names: Sequence[str], target_names: Sequence[str]) -> FloatArray:
    """Read the probability of each policy (row) and target (column), in the order of the names given.

    With a single target its column may have any name.
    """
    table = _read_table(path, rows="policy", columns="target")
    check_same_names(named(path), "policy", list(table.index), policy_names)
    if len(target_names) == 1 and table.shape[1] == 1:
        return table.loc[list(policy_names)].to_numpy()
    check_same_names(named(path), "target", list(table.columns), target_names)
    return table.loc[list(policy_names), list(target_names)].to_numpy()


def read_noise(path: Path, case_names: Sequence[str]) -> FloatArray:
    """Read the standard error of every test case's result, in the order of the names given."""
    table = _read_table(path, rows="test case", columns="column of standard errors")
    if table.shape[1] != 1:
        raise ProblemError(f"{named(path)}: there must be one column of standard errors, got {table.shape[1]}.")
    check_same_names(named(path), "test case", list(table.index), case_names)
    return table.loc[list(case_names)].to_numpy()[:, 0]


def read_groups(path: Path, policy_names: Sequence[str]) -> list[str]:
    """Read the group of every policy, in the order of the names given: policies in the first column, groups after."""
    cells = read_cells(path)
    if cells.shape[1] < 2:
        raise ProblemError(f"{named(path)}: there must be a column of policies and a column of groups.")
    names = cells[1:, 0].tolist()
    check_names(named(path), "policy", names)
    check_same_names(named(path), "policy", names, policy_names)
    group_of = dict(zip(names, cells[1:, 1].tolist(), strict=True))
    return [group_of[name] for name in policy_names]


def read_columns(path: Path, columns: Mapping[str, type[str] | type[int] | type[float]]) -> pd.DataFrame:
    """Read a table that has these columns, of text, whole numbers or numbers; others are passed over."""
    cells = read_cells(path)
    header = cells[0].tolist()
    for name in columns:
        if name not in header:
            raise ProblemError(f"{named(path)}: the column {name!r} is missing: there must be {', '.join(columns)}.")
    body = cells[1:]
    read = {name: _as_column(path, name, body[:, header.index(name)].tolist(), kind) for name, kind in columns.items()}
    return pd.DataFrame(read)


def _as_column(
    path: Path, name: str, texts: list[str], kind: type[str] | type[int] | type[float]
) -> list[str] | list[int] | list[float]:
    if kind is str:
        return texts
    is_right = WHOLE_NUMBER.fullmatch if kind is int else NUMBER.fullmatch
    for row, text in enumerate(texts, start=1):
        if not is_right(text):
            number = "a whole number" if kind is int else "a number"
            raise ProblemError(f"{named(path)}: {name!r} must be {number}, got {text!r} in row {row} below the header.")
    return [int(text) for text in texts] if kind is int else [float(text) for text in texts]


def match_logs(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of every match log (``.log`` or ``.log.gz``) in a folder and its subfolders, by name."""
    if not folder.is_dir():
        raise ProblemError(f"{named(folder)}: there is no such folder.")
    paths = sorted(path for path in folder.rglob("*") if path.name.endswith((".log", ".log.gz")))
    if not paths:
        raise ProblemError(f"{named(folder)}: there are no match logs (*.log, *.log.gz) in this folder.")
    for path in paths:
        try:
            data = read_bytes(path)
            text = gzip.decompress(data) if path.suffix == ".gz" else data
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ProblemError(f"{named(path)}: cannot be read ({error}).") from None
        yield str(path.relative_to(folder)), text.decode("utf-8", errors="replace").splitlines()


def _read_table(path: Path, *, rows: str, columns: str, blanks: bool = False) -> pd.DataFrame:
    """A table with a header, a first column of names, and numbers elsewhere."""
    grid, where = read_cells(path), named(path)
    if grid.shape[0] < 2:
        raise ProblemError(f"{where}: there must be at least one {rows} below the header, got none.")
    if grid.shape[1] < 2:
        raise ProblemError(
            f"{where}: there must be at least one {columns} beside the names, got none. "
            "Columns are separated by a comma, a tab or a semicolon."
        )
    names, header, body = grid[1:, 0].tolist(), grid[0, 1:].tolist(), grid[1:, 1:]
    check_names(where, columns, header)
    check_names(where, rows, names)
    numbers = read_numbers(body, NumberStyle()).values
    allowed = _are_blank(body) if blanks else np.zeros(body.shape, dtype=bool)
    numbers[allowed] = np.nan
    bad = ~np.isfinite(numbers) & ~allowed
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        what = why_no_number(body[row, column]) if body[row, column].strip() else "is empty: every cell needs a number."
        raise ProblemError(f"{where}: the cell of {rows} {names[row]!r} and {columns} {header[column]!r} {what}")
    return pd.DataFrame(numbers, index=names, columns=header)


def _are_blank(cells: ObjectArray) -> BoolArray:
    return np.array([[not cell.strip() for cell in row] for row in cells.tolist()], dtype=bool)


def read_cells(path: Path) -> ObjectArray:
    """The file as text, cell by cell."""
    return cells_of_text(named(path), read_text(path)).grid
