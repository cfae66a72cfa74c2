"""Which formats are read, and how are the cells of each?

A format is a line in the table `FORMATS`: how it reads a file, and how its files are told from others, by their first
bytes or by how their names end. One without either is read only where it is asked for by name.
"""

import io
import json
import xml.etree.ElementTree
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.errors import ProblemError, check_installed, unknown
from rposst_opt.files.cells import Cells, as_grid, cells_of_text
from rposst_opt.files.compression import File
from rposst_opt.files.harness_runs import LONG_COLUMNS
from rposst_opt.files.inspect_logs import read_inspect
from rposst_opt.files.lm_eval_logs import read_lm_eval

TEXT, JSON_LINES = "csv", "jsonl"
OLD_EXCEL = b"\xd0\xcf\x11\xe0"


@dataclass(frozen=True)
class Asked:
    """What was said about how a file is to be read.

    Attributes
    ----------
    decimal : str
        The decimal sign of numbers in a text.
    chosen : mapping of str to str
        Which of several metrics, say, of a log are read.
    """

    decimal: str = "."
    chosen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Format:
    """How a kind of file is read, and told from others.

    Attributes
    ----------
    read : callable
        Takes a `File` and what was asked, returns its `Cells`.
    magic : tuple of bytes
        What its files begin with.
    suffixes : tuple of str
        How the names of its files end.
    choices : tuple of str
        What may be chosen about it (`Asked.chosen`).
    """

    read: Callable[[File, Asked], Cells]
    magic: tuple[bytes, ...] = ()
    suffixes: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


def results_log(read: Callable[..., pd.DataFrame], *choices: str) -> Format:
    """A format for logs, read only where it is asked for: a function from a path to a row per value."""

    def cells(file: File, asked: Asked) -> Cells:
        return replace(cells_of_frame(file.where, read(file.path, **asked.chosen)), long=LONG_COLUMNS)

    return Format(cells, choices=choices)


def open_cells(source: object, *, format: str | None = None, asked: Asked | None = None) -> Cells:
    """The cells of a file, of standard input (`-`) or of a DataFrame."""
    asked = Asked() if asked is None else asked
    _check_choices(format, asked)
    if not isinstance(source, str | Path):
        if format is not None:
            raise ProblemError(f"`format` goes with a file, got a {type(source).__name__}.")
        if isinstance(source, pd.DataFrame):
            return cells_of_frame("the DataFrame", source)
        return cells_of_frame("the DataFrame", _as_pandas(source), is_indexed=False)
    file = File(Path(source))
    if format is not None and format not in FORMATS:
        raise ProblemError(unknown("format", format, FORMATS))
    return FORMATS[_format_of(file) if format is None else format].read(file, asked)


def _check_choices(format: str | None, asked: Asked) -> None:
    """Refuse a choice that the format does not offer."""
    for choice in asked.chosen:
        offering = [name for name, known in FORMATS.items() if choice in known.choices]
        if format not in offering:
            raise ProblemError(f"--{choice} goes with --format {' or '.join(offering)}.")


def _format_of(file: File) -> str:
    """The format that the first bytes tell, or else the name; text with separators if neither does."""
    if file.path.is_dir():
        raise ProblemError(f"{file.where}: this is a folder: name a file, or say by `format` whose logs are in it.")
    data = file.data
    for name, known in FORMATS.items():
        if data.startswith(known.magic):
            return name
    for name, known in FORMATS.items():
        if file.suffix in known.suffixes:
            if known.magic:
                raise ProblemError(f"{file.where}: this is not what its name says: its bytes are not those of {name}.")
            return name
    if data.startswith(OLD_EXCEL):
        raise ProblemError(f"{file.where}: this is an Excel file of the old kind: save it as .xlsx or .csv.")
    return JSON_LINES if data.lstrip()[:1] in (b"{", b"[") else TEXT


def _read_text(file: File, asked: Asked) -> Cells:
    return cells_of_text(file.where, file.text, decimal=asked.decimal)


def _read_json_lines(file: File, asked: Asked) -> Cells:
    """Records, one JSON object a line, or a list of them; the header is of all keys."""
    text = file.text.strip()
    if not text:
        raise ProblemError(f"{file.where}: the file is empty.")
    try:
        if text.startswith("["):
            records = json.loads(text, object_pairs_hook=_record)
        else:
            records = [json.loads(line, object_pairs_hook=_record) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{file.where}: this is not JSON with one record a line ({error}).") from None
    if not records or not all(isinstance(record, dict) for record in records):
        raise ProblemError(f"{file.where}: there must be JSON objects, one a line, each with the cells of a row.")
    header = list(dict.fromkeys(key for record in records for key in record))
    rows = [[record.get(key) for key in header] for record in records]
    for record in records:
        for key, value in record.items():
            if isinstance(value, dict | list):
                raise ProblemError(f"{file.where}: {key!r} must be a number or a text in every record, got {value!r}.")
    return Cells(file.where, as_grid(file.where, [header, *rows]), has_header=True)


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, in which no key may stand twice."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a record has the same key twice")
    return record


def _read_excel(file: File, asked: Asked) -> Cells:
    """The first sheet of a workbook."""
    check_installed("an Excel file needs", ["openpyxl"], extra="tables")
    import openpyxl

    try:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise ProblemError(f"{file.where}: this Excel file is damaged (in {damaged}).")
        book = openpyxl.load_workbook(io.BytesIO(file.data), data_only=True)
        sheet = book.worksheets[0]
        rows = [list(row) for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)]
    except ProblemError:
        raise
    except (*UNREADABLE, zipfile.BadZipFile, xml.etree.ElementTree.ParseError) as error:
        raise ProblemError(f"{file.where}: this Excel file cannot be read ({_first_line(error)}).") from None
    if not rows:
        raise ProblemError(f"{file.where}: the sheet {sheet.title!r} is empty.")
    several = len(book.sheetnames)
    note = f"read the sheet {sheet.title!r}, the first of {several}"
    width = max(place for row in rows for place, cell in enumerate(row, start=1) if cell is not None)
    rows = [row[:width] for row in rows]
    rows[0] = ["" if cell is None else cell for cell in rows[0]]
    return Cells(file.where, as_grid(file.where, rows), notes=(note,) if several > 1 else ())


def _read_parquet(file: File, asked: Asked) -> Cells:
    check_installed("a Parquet file needs", ["pyarrow"], extra="tables")
    from pyarrow import parquet

    return _read_arrow(file, parquet.read_table, "this Parquet file")


def _read_feather(file: File, asked: Asked) -> Cells:
    check_installed("a Feather file needs", ["pyarrow"], extra="tables")
    from pyarrow import feather

    return _read_arrow(file, feather.read_table, "this Feather file")


def _read_arrow(file: File, read_table: Callable[[io.BytesIO], Any], what: str) -> Cells:
    try:
        table = read_table(io.BytesIO(file.data))
        return cells_of_frame(file.where, table.to_pandas(), is_indexed=table.schema.pandas_metadata is not None)
    except ProblemError:
        raise
    except UNREADABLE as error:
        raise ProblemError(f"{file.where}: {what} cannot be read ({_first_line(error)}).") from None


# What readers of other packages raise where a file is damaged; Arrow's own errors are among the first two.
UNREADABLE = (ValueError, OSError, KeyError, IndexError, TypeError, AttributeError, EOFError, NotImplementedError)


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _as_pandas(source: object) -> pd.DataFrame:
    """A DataFrame of polars or pyarrow, as one of pandas."""
    check_installed("a DataFrame that is not of pandas needs", ["narwhals"], extra="tables")
    import narwhals

    try:
        frame = narwhals.from_native(source, eager_only=True)
    except TypeError:
        raise ProblemError(
            f"results must be a path or a DataFrame of pandas, polars or pyarrow, got a {type(source).__name__}."
        ) from None
    return pd.DataFrame({name: pd.Series(frame[name].to_list(), dtype=object) for name in frame.columns})


def cells_of_frame(where: str, frame: pd.DataFrame, *, is_indexed: bool = True) -> Cells:
    """The cells of a DataFrame; an index with names becomes its first column, and one of numbers is no column."""
    if frame.columns.nlevels > 1:
        raise ProblemError(f"{where}: the columns must have one name each, got {frame.columns.nlevels} levels.")
    numbered = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
    header = [str(name) for name in frame.columns]
    body = frame.to_numpy(dtype=object)
    if not numbered:
        levels = [frame.index.get_level_values(level) for level in range(frame.index.nlevels)]
        header = [*("" if level.name is None else str(level.name) for level in levels), *header]
        body = np.column_stack([*(level.to_numpy(dtype=object) for level in levels), body])
    if not len(header):
        raise ProblemError(f"{where}: there are no columns.")
    names = np.empty((1, len(header)), dtype=object)
    names[0] = header
    return Cells(
        where,
        np.concatenate([names, body.astype(object)]),
        has_header=True,
        has_row_numbers=numbered and is_indexed,
    )


FORMATS: dict[str, Format] = {
    "parquet": Format(_read_parquet, magic=(b"PAR1",), suffixes=(".parquet", ".pq")),
    "feather": Format(_read_feather, magic=(b"ARROW1", b"FEA1"), suffixes=(".feather", ".arrow")),
    "excel": Format(_read_excel, magic=(b"PK\x03\x04",), suffixes=(".xlsx", ".xlsm")),
    JSON_LINES: Format(_read_json_lines, suffixes=(".jsonl", ".ndjson", ".json")),
    TEXT: Format(_read_text, suffixes=(".csv", ".tsv", ".txt", ".tab")),
    "lm-eval": results_log(read_lm_eval, "metric", "filter", "task"),
    "inspect": results_log(read_inspect, "scorer", "task"),
}
