"""Results from any table: wide either way round or long, from a file, standard input or a DataFrame."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.errors import ProblemError
from rposst_opt.files.cells import Cells, ObjectArray
from rposst_opt.files.choices import Missing, Side
from rposst_opt.files.formats import Asked, open_cells
from rposst_opt.files.incomplete import BoolArray
from rposst_opt.files.long_tables import Long, as_long
from rposst_opt.files.missing_cells import without_missing
from rposst_opt.files.names import check_names
from rposst_opt.files.numbers import Numbers, NumberStyle, are_texts, read_numbers, why_no_number
from rposst_opt.files.shapes import Layout, Wide, as_headed, as_text, as_wide, option_of, some_of
from rposst_opt.results import averaged

MOST_CELLS, SPARSEST = 10_000_000, 100  # a long table with more cells than both allow is none


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Results as they were read, and what was found out about them.

    Attributes
    ----------
    results : DataFrame
        A row per test case, a column per policy, all of them finite numbers.
    standard_errors : Series, optional
        Of each test case's result, where the table has repetitions; NaN for a case that has none.
    notes : tuple of str
        A line each on how the table was read and what was done to it.
    """

    results: pd.DataFrame
    standard_errors: "pd.Series[float] | None"
    notes: tuple[str, ...]


def read_results(
    source: "str | Path | pd.DataFrame | Any",
    *,
    format: str | None = None,
    long: tuple[str, str, str] | None = None,
    cases_are: str | None = None,
    names: bool | None = None,
    header: bool | None = None,
    drop_columns: Sequence[str] = (),
    percent: bool = False,
    decimal: str = ".",
    missing: str = "error",
    only_cases: Collection[str] | None = None,
    metric: str | None = None,
    filter: str | None = None,
    scorer: str | None = None,
    task: str | None = None,
) -> ResultTable:
    """Read results from a table of any shape; what is not said is found out, and `notes` say what.

    Parameters
    ----------
    source : path, or DataFrame of pandas, polars or pyarrow
        CSV, TSV or text with semicolons, Parquet, Feather, JSON lines or Excel, compressed or not; ``-`` is standard
        input.
    format : str, optional
        One of `rposst_opt.files.formats.FORMATS`; told by the file's first bytes and its name unless given.
    long : (str, str, str), optional
        For a long table: its columns of test cases, of policies and of values. Several values of a case and a policy
        are averaged.
    cases_are : {"rows", "columns"}, optional
        For a wide table: where its test cases are.
    names : bool, optional
        Whether the first column of a wide table has the names of its rows.
    header : bool, optional
        Whether the first row of a text has the names of columns.
    drop_columns : sequence of str
        Columns to leave out, such as one of categories.
    percent : bool
        Read 61.0% as 61.0.
    decimal : {".", ","}
    missing : {"error", "drop-cases", "drop-policies", "drop", "fill"}
        What to do about missing cells: those that are absent, empty, or ``-``, ``?``, ``NA``, ``N/A``, ``nan`` or
        ``null``.
    only_cases : collection of str, optional
        The test cases that are wanted, those of a test, say. All others are passed over unread, and may be incomplete.
    metric, filter, scorer, task : str, optional
        Of logs, with the format ``"lm-eval"`` (`read_lm_eval`: metric, filter, task) or ``"inspect"`` (`read_inspect`:
        scorer, task).

    Returns
    -------
    ResultTable

    Examples
    --------
    >>> table = read_results(pd.DataFrame({"task": ["a", "b"], "dqn": [0.5, 1.0], "ppo": [0.0, 0.5]}))
    >>> float(table.results.loc["a", "dqn"])
    0.5
    >>> table.notes
    ('read 2 test cases (rows) × 2 policies (columns); --cases-are columns if that is wrong',)
    """
    if cases_are is not None and cases_are not in set(Side):
        raise ProblemError(f"`cases_are` must be 'rows' or 'columns', got {cases_are!r}.")
    # Long because every option is explained.
    layout = Layout(
        long=long,
        cases_are=None if cases_are is None else Side(cases_are),
        names=names,
        header=header,
        drop_columns=drop_columns,
        style=NumberStyle(decimal, percent),
    )
    choices = {"metric": metric, "filter": filter, "scorer": scorer, "task": task}
    asked = Asked(decimal, {name: choice for name, choice in choices.items() if choice is not None})
    return table_of(open_cells(source, format=format, asked=asked), layout, missing, only_cases)


def table_of(cells: Cells, layout: Layout, missing: str, only_cases: Collection[str] | None = None) -> ResultTable:
    """The results in cells that have been read."""
    if missing not in set(Missing):
        raise ProblemError(f"`missing` must be one of {', '.join(Missing)}, got {missing!r}.")
    if cells.long is not None:
        layout = replace(layout, long=cells.long, why_long="as its logs are")
    headed, notes = as_headed(cells, layout)
    long = as_long(headed, layout, only_cases)
    if long is not None:
        read = _from_long(cells.where, long, layout.style, only_cases)
    else:
        read = _from_wide(cells.where, as_wide(headed, layout, only_cases), layout.style, only_cases)
    table, more = without_missing(cells.where, read.results, Missing(missing))
    errors, still_more = _errors_of(read, table)
    return ResultTable(table, errors, (*cells.notes, *notes, *read.notes, *more, *still_more))


@dataclass(frozen=True, eq=False)
class _Read:
    """Results, perhaps with missing ones; and each value by its position, where there are several of a result."""

    results: pd.DataFrame
    notes: tuple[str, ...]
    repetitions: tuple[IntArray, IntArray, FloatArray] | None = None


def _from_wide(where: str, wide: Wide, style: NumberStyle, only_cases: Collection[str] | None) -> _Read:
    rows, columns, body = np.array(wide.row_names, dtype=object), np.array(wide.column_names, dtype=object), wide.body
    by_rows = wide.cases_are is Side.ROWS
    if only_cases is not None:
        wanted = _wanted(where, rows if by_rows else columns, only_cases, columns if by_rows else rows)
        if by_rows:
            rows, body = rows[wanted], body[wanted]
        else:
            columns, body = columns[wanted], body[:, wanted]
    kinds = ("test case", "policy") if by_rows else ("policy", "test case")
    hint = " If this is a long table: --long CASE,POLICY,VALUE." if len(columns) > 1 else ""
    check_names(where, kinds[0], rows.tolist(), hint)
    check_names(where, kinds[1], columns.tolist())
    numbers = read_numbers(body, style)
    if numbers.is_bad.any():
        raise ProblemError(f"{where}: {_what_is_bad(numbers, body, rows, columns, kinds)}")
    table = pd.DataFrame(numbers.values, index=pd.Index(rows), columns=pd.Index(columns))
    return _Read(table if by_rows else table.T, (*wide.notes, *_percent_notes(numbers)))


def _wanted(where: str, names: ObjectArray, wanted: Collection[str], others: ObjectArray) -> BoolArray:
    """Which of the names are wanted; at least one must be."""
    chosen = set(wanted)
    found = np.array([name in chosen for name in names], dtype=bool)
    if not found.any():
        raise ProblemError(
            f"{where}: none of the test's cases is there: it needs {some_of(list(wanted))}, and the file has "
            f"{some_of(names.tolist())} against {some_of(others.tolist())}."
        )
    return found


def _what_is_bad(
    numbers: Numbers, body: ObjectArray, rows: ObjectArray, columns: ObjectArray, kinds: tuple[str, str]
) -> str:
    """The columns of text, if there are any, or else the first cell that is no number."""
    n_known = (~np.isnan(numbers.values)).sum(axis=0)
    texts = columns[2 * are_texts(body).sum(axis=0) > n_known]
    row, column = np.argwhere(numbers.is_bad)[0].tolist()
    if 0 < len(texts) < len(columns):
        column = columns.tolist().index(texts[0])
        row = int(np.flatnonzero(numbers.is_bad[:, column])[0])
        left_out = option_of(texts.tolist())
        return (
            f"the column {texts[0]!r} holds text, {as_text(body[row, column])!r} for {kinds[0]} {rows[row]!r}: "
            f"--drop-columns {left_out} leaves it out, and a long table is read by --long CASE,POLICY,VALUE."
        )
    where = f"the cell of {kinds[0]} {rows[row]!r} and {kinds[1]} {columns[column]!r}"
    return f"{where} {why_no_number(body[row, column])}"


def _percent_notes(numbers: Numbers) -> tuple[str, ...]:
    if not numbers.n_percent:
        return ()
    return (f"read {numbers.n_percent:,} of {numbers.values.size:,} cells such as 61.0% as 61.0, as --percent says",)


def _from_long(where: str, long: Long, style: NumberStyle, only_cases: Collection[str] | None) -> _Read:
    cases, policies, values = np.array(long.cases, dtype=object), np.array(long.policies, dtype=object), long.values
    if only_cases is not None:
        wanted = _wanted(where, cases, only_cases, policies)
        cases, policies, values = cases[wanted], policies[wanted], values[wanted]
    if not len(values):
        raise ProblemError(f"{where}: there must be at least one test case below the header, got none.")
    numbers = read_numbers(values, style)
    if numbers.is_bad.any():
        row = int(np.flatnonzero(numbers.is_bad)[0])
        raise ProblemError(
            f"{where}: the cell in {long.columns[2]!r} of test case {cases[row]!r} and policy {policies[row]!r} "
            f"{why_no_number(values[row])}"
        )
    case_of, case_names = pd.factorize(cases)
    policy_of, policy_names = pd.factorize(policies)
    n_cells = len(case_names) * len(policy_names)
    if n_cells > MOST_CELLS and n_cells > SPARSEST * len(values):
        raise ProblemError(
            f"{where}: {len(case_names):,} test cases × {len(policy_names):,} policies have {len(values):,} values, "
            "which is next to nothing: --long CASE,POLICY,VALUE names other columns."
        )
    known = ~np.isnan(numbers.values)
    repetitions = case_of[known], policy_of[known], numbers.values[known]
    found = averaged(*repetitions, (len(case_names), len(policy_names)))
    table = pd.DataFrame(found.means, index=pd.Index(case_names), columns=pd.Index(policy_names))
    notes = (*long.notes, *_percent_notes(numbers))
    most = int(found.counts.max(initial=0))
    if most < 2:
        return _Read(table, notes)
    least = int(found.counts[found.counts > 0].min())
    each = f"{most}" if least == most else f"{least} to {most}"
    note = f"averaged {len(repetitions[2]):,} values, {each} of each test case and policy"
    return _Read(table, (*notes, note), repetitions)


def _errors_of(read: _Read, kept: pd.DataFrame) -> "tuple[pd.Series[float] | None, list[str]]":
    """Standard errors of the results that were kept, if values were averaged; and a note on those that have none."""
    if read.repetitions is None:
        return None, []
    cases, policies, values = read.repetitions
    case_at, policy_at = kept.index.get_indexer(read.results.index), kept.columns.get_indexer(read.results.columns)
    there = (case_at[cases] >= 0) & (policy_at[policies] >= 0)
    found = averaged(case_at[cases[there]], policy_at[policies[there]], values[there], kept.shape)
    errors = pd.Series(found.standard_errors, index=kept.index, name="standard_error")
    unknown = int(errors.isna().sum())
    return errors, [f"{unknown:,} test cases have no repetitions, and no standard error"] if unknown else []
