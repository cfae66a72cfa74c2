"""Reading results, targets, probabilities and match logs.

A table has a header with names, a first column with names, and numbers elsewhere; commas, tabs or semicolons separate
them. All errors are `ProblemError`s of one line that say where in the file the trouble is.
"""

import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.files.text import named, read_text

SEPARATORS = (",", "\t", ";")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
WHOLE_NUMBER = re.compile(r"\d+", re.ASCII)
NO_NUMBER = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def read_results(path: Path, *, only_cases: Collection[str] | None = None) -> pd.DataFrame:
    """Read a result matrix: test cases as rows, policies as columns.

    With `only_cases`, other rows are passed over unread, so they may be incomplete; missing cases stay missing.
    """
    return _read_table(path, rows="test case", columns="policy", only_rows=only_cases)


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
        _check_same_names(path, "test case", list(table.columns), case_names)
        return table[list(case_names)]
    _check_same_names(path, "test case", list(table.index), case_names)
    return table.loc[list(case_names)].T


def read_probabilities(path: Path, policy_names: Sequence[str], target_names: Sequence[str]) -> FloatArray:
    """Read the probability of each policy (row) and target (column), in the order of the names given.

    With a single target its column may have any name.
    """
    table = _read_table(path, rows="policy", columns="target")
    _check_same_names(path, "policy", list(table.index), policy_names)
    if len(target_names) == 1 and table.shape[1] == 1:
        return table.loc[list(policy_names)].to_numpy()
    _check_same_names(path, "target", list(table.columns), target_names)
    return table.loc[list(policy_names), list(target_names)].to_numpy()


def read_noise(path: Path, case_names: Sequence[str]) -> FloatArray:
    """Read the standard error of every test case's result, in the order of the names given."""
    table = _read_table(path, rows="test case", columns="column of standard errors")
    if table.shape[1] != 1:
        raise ProblemError(f"{named(path)}: there must be one column of standard errors, got {table.shape[1]}.")
    _check_same_names(path, "test case", list(table.index), case_names)
    return table.loc[list(case_names)].to_numpy()[:, 0]


def read_groups(path: Path, policy_names: Sequence[str]) -> list[str]:
    """Read the group of every policy, in the order of the names given: policies in the first column, groups after."""
    cells = _read_cells(path)
    if cells.shape[1] < 2:
        raise ProblemError(f"{named(path)}: there must be a column of policies and a column of groups.")
    names = cells.iloc[1:, 0].tolist()
    _check_names(path, "policy", names)
    _check_same_names(path, "policy", names, policy_names)
    group_of = dict(zip(names, cells.iloc[1:, 1].tolist(), strict=True))
    return [group_of[name] for name in policy_names]


def read_columns(path: Path, columns: Mapping[str, type[str] | type[int] | type[float]]) -> pd.DataFrame:
    """Read a table that has these columns, of text, whole numbers or numbers; others are passed over."""
    cells = _read_cells(path)
    header = cells.iloc[0].tolist()
    for name in columns:
        if name not in header:
            raise ProblemError(f"{named(path)}: the column {name!r} is missing: there must be {', '.join(columns)}.")
    body = cells.iloc[1:]
    read = {name: _as_column(path, name, body[header.index(name)].tolist(), kind) for name, kind in columns.items()}
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
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
        except (OSError, EOFError, zlib.error) as error:
            raise ProblemError(f"{named(path)}: cannot be read ({error}).") from None
        yield str(path.relative_to(folder)), text.decode("utf-8", errors="replace").splitlines()


def _read_table(
    path: Path, *, rows: str, columns: str, only_rows: Collection[str] | None = None, blanks: bool = False
) -> pd.DataFrame:
    cells = _read_cells(path)
    if cells.shape[0] < 2:
        raise ProblemError(f"{named(path)}: there must be at least one {rows} below the header, got none.")
    if cells.shape[1] < 2:
        raise ProblemError(
            f"{named(path)}: there must be at least one {columns} beside the names, got none. "
            "Columns are separated by a comma, a tab or a semicolon."
        )
    header = cells.iloc[0, 1:].tolist()
    body = cells.iloc[1:]
    if only_rows is not None:
        body = body[body[0].isin(list(only_rows))]
    names = body[0].tolist()
    _check_names(path, columns, header)
    _check_names(path, rows, names)
    numbers = _as_numbers(path, body.iloc[:, 1:], rows, names, columns, header, blanks=blanks)
    return pd.DataFrame(numbers, index=names, columns=header)


def _read_cells(path: Path) -> pd.DataFrame:
    """The file as text, cell by cell."""
    text = read_text(path)
    if not text.strip():
        raise ProblemError(f"{named(path)}: the file is empty.")
    if "\0" in text:
        raise ProblemError(f"{named(path)}: this is not a text file (it holds a zero byte).")
    separator = max(SEPARATORS, key=_unquoted_header(text).count)
    try:
        return pd.read_csv(
            io.StringIO(text, newline=""), sep=separator, header=None, dtype=str, keep_default_na=False, na_filter=False
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = " ".join(str(error).replace("Error tokenizing data. C error: ", "").split())
        raise ProblemError(f"{named(path)}: the rows do not have the header's number of columns ({reason}).") from None


def _unquoted_header(text: str) -> str:
    """The first line that is not blank, without what is in quotes: separators there are part of a name."""
    unquoted = re.sub(r'"(?:[^"]|"")*"', '""', text)
    return next((line for line in re.split(r"[\r\n]", unquoted) if line.strip()), "")


def _check_names(path: Path, kind: str, names: list[str]) -> None:
    for place, name in enumerate(names, start=2):
        if not name.strip():
            raise ProblemError(f"{named(path)}: every {kind} must have a name, and number {place - 1} has none.")
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ProblemError(f"{named(path)}: the {kind} {repeated!r} is there more than once: names must differ.")


def _check_same_names(path: Path, kind: str, names: Sequence[str], expected: Sequence[str]) -> None:
    missing = [name for name in expected if name not in set(names)]
    surplus = [name for name in names if name not in set(expected)]
    if missing:
        raise ProblemError(
            f"{named(path)}: the {kind} {missing[0]!r} is missing ({len(missing)} of {len(expected)} are)."
        )
    if surplus:
        raise ProblemError(f"{named(path)}: there is no {kind} {surplus[0]!r} in this problem: remove it.")


def _as_numbers(
    path: Path, cells: pd.DataFrame, rows: str, names: list[str], columns: str, header: list[str], *, blanks: bool
) -> FloatArray:
    # Python reads a number to its last bit, which not every version of pandas does.
    texts = [[text.strip() for text in row] for row in cells.to_numpy().tolist()]
    numbers = np.array([[float(text) if NUMBER.fullmatch(text) else np.nan for text in row] for row in texts])
    allowed = np.array([[blanks and not text for text in row] for row in texts], dtype=bool)
    bad = np.argwhere(~np.isfinite(numbers) & ~allowed)
    if len(bad):
        row, column = bad[0]
        text = texts[row][column]
        where = f"{named(path)}: the cell of {rows} {names[row]!r} and {columns} {header[column]!r}"
        if not text:
            raise ProblemError(f"{where} is empty: every cell needs a number.")
        if NUMBER.fullmatch(text) or NO_NUMBER.fullmatch(text):
            raise ProblemError(f"{where} must be finite, got {text!r}.")
        hint = " Write decimals with a point." if "," in text else ""
        raise ProblemError(f"{where} must be a number, got {text!r}.{hint}")
    return numbers
