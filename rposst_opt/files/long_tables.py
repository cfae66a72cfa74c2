"""Which columns of a long table, a row per value, hold test cases, policies and values?"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rposst_opt.errors import ProblemError
from rposst_opt.files.cells import ObjectArray
from rposst_opt.files.numbers import NumberStyle, are_texts, read_numbers
from rposst_opt.files.shapes import Headed, Layout, as_text, option_of, some_of
from rposst_opt.files.words import Kind, is_index_word, kind_of

MOST_COLUMNS = 60  # of a table that is taken for a long one without being asked
LOOKED_AT = 1000  # cells of a column, spread evenly, that tell whether it holds text


@dataclass(frozen=True, eq=False)
class Long:
    """A table with a value per row: the test case and the policy of each."""

    cases: list[str]
    policies: list[str]
    values: ObjectArray
    columns: tuple[str, str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """What can be told about a column of a long table without knowing the others."""

    name: str
    kind: Kind | None
    is_text: bool
    is_repeated: bool
    is_whole: bool

    @property
    def can_name(self) -> bool:
        """Whether its cells may be names that stand in many rows."""
        return self.is_text or (self.is_repeated and self.is_whole)


def as_long(headed: Headed, layout: Layout, only_cases: Collection[str] | None) -> Long | None:
    """The long table that this is, or was said to be; None if it is no long table."""
    if layout.long is not None:
        for name in layout.long:
            if headed.header.count(name) != 1:
                raise ProblemError(
                    f"{headed.where}: --long names {name!r}, and there must be one such column. "
                    f"Columns: {some_of(headed.header, 8)}."
                )
        return _long(headed, layout.long, layout.why_long)
    if layout.cases_are is not None or layout.names is not None or not 3 <= len(headed.header) <= MOST_COLUMNS:
        return None
    if not len(headed.body) or len(set(headed.header)) < len(headed.header):
        return None
    columns = [_looked_at(headed, name, layout.style) for name in headed.header]
    names = _name_columns(headed, columns, only_cases)
    if names is None:
        return None
    value, passed_over = _value_column(headed, columns, names)
    chosen = (*names, value)
    _check_that_cells_are_told_apart(headed, columns, chosen)
    others = f"; {some_of(passed_over, 8)} passed over" if passed_over else ""
    return _long(headed, chosen, f"as names and cells tell{others}; --long CASE,POLICY,VALUE if that is wrong")


def _long(headed: Headed, columns: tuple[str, str, str], why: str) -> Long:
    cases, policies = ([as_text(cell) for cell in headed.column(name)] for name in columns[:2])
    for name, cells in zip(columns, (cases, policies), strict=False):
        for row, text in enumerate(cells, start=1):
            if not text.strip():
                raise ProblemError(f"{headed.where}: every row needs a name in {name!r}, and row {row} has none.")
    note = (
        f"read a long table of {len(set(cases)):,} test cases ({columns[0]!r}) × {len(set(policies)):,} policies "
        f"({columns[1]!r}) with values {columns[2]!r}, {why}"
    )
    return Long(cases, policies, headed.column(columns[2]), columns, (note,))


def _looked_at(headed: Headed, name: str, style: NumberStyle) -> Column:
    cells = headed.column(name)
    sample = cells[:: max(1, len(cells) // LOOKED_AT)]
    values = read_numbers(sample, style).values
    n_known, finite = int((~np.isnan(values)).sum()), values[np.isfinite(values)]
    return Column(
        name,
        kind_of(name),
        is_text=2 * int(are_texts(sample).sum()) > n_known,
        is_repeated=len(pd.unique(cells)) < len(cells),
        is_whole=bool(np.all(finite == np.round(finite))),
    )


def _name_columns(headed: Headed, columns: list[Column], only_cases: Collection[str] | None) -> tuple[str, str] | None:
    """The columns of test cases and of policies; None if this is no long table."""
    said = {kind: [one.name for one in columns if one.kind is kind and one.can_name] for kind in Kind}
    cases, policies = said[Kind.CASE], said[Kind.POLICY]
    texts = [one for one in columns if one.is_text and one.is_repeated]
    if len(cases) == len(policies) == 1 and any(one.is_repeated for one in columns if one.name in cases + policies):
        return cases[0], policies[0]
    if len(texts) < 2 or any(one.is_text and not one.is_repeated for one in columns):
        return None
    if not any(not one.is_text for one in columns):
        return None
    first, second = (one.name for one in texts[:2])
    if len(texts) == 2:
        if first in policies or second in cases:
            first, second = second, first
        if (first in cases and second not in cases) or (second in policies and first not in policies):
            return first, second
        if only_cases is not None:
            in_first, in_second = (_n_known(headed, name, only_cases) for name in (first, second))
            if in_first != in_second:
                return (first, second) if in_first > in_second else (second, first)
    value = next(one.name for one in columns if not one.is_text)
    readings = [option_of([first, second, value]), option_of([second, first, value])]
    raise ProblemError(
        f"{headed.where}: this is a long table, and nothing tells which of {some_of([one.name for one in texts], 8)} "
        f"are test cases and which policies: --long {' or --long '.join(readings)}."
    )


def _n_known(headed: Headed, name: str, only_cases: Collection[str]) -> int:
    return len(set(only_cases) & {as_text(cell) for cell in headed.column(name)})


def _value_column(headed: Headed, columns: list[Column], names: tuple[str, str]) -> tuple[str, list[str]]:
    """The column of values, and the others that could be."""
    others = [one for one in columns if one.name not in names]
    candidates = [
        one.name
        for one in others
        if not one.is_text and one.kind is not Kind.REPETITION and not (is_index_word(one.name) and one.is_whole)
    ]
    said = [one.name for one in others if one.name in candidates and one.kind is Kind.RESULT]
    chosen = said if len(said) == 1 else candidates
    if len(chosen) == 1:
        return chosen[0], [name for name in candidates if name != chosen[0]]
    if not candidates:
        raise ProblemError(
            f"{headed.where}: this seems a long table of {names[0]!r} and {names[1]!r}, and no column has numbers. "
            "--long CASE,POLICY,VALUE says which holds the results."
        )
    shown = " or ".join(f"--long {option_of([*names, name])}" for name in candidates[:4])
    raise ProblemError(
        f"{headed.where}: this is a long table of {names[0]!r} and {names[1]!r}, and its results may be in "
        f"{some_of(candidates, 8)}: {shown}."
    )


def _check_that_cells_are_told_apart(headed: Headed, columns: list[Column], chosen: tuple[str, str, str]) -> None:
    """Refuse to average values that another column tells apart, unless it counts repetitions."""
    pairs = pd.DataFrame({place: headed.column(name) for place, name in enumerate(chosen[:2])})
    if not pairs.duplicated().any():
        return
    for one in columns:
        if one.name in chosen or one.kind is Kind.REPETITION or (not one.is_repeated and not one.is_text):
            continue
        told_apart = pairs.assign(other=headed.column(one.name))
        if len(told_apart.drop_duplicates()) > len(pairs.drop_duplicates()):
            raise ProblemError(
                f"{headed.where}: some test cases and policies have several values, which {one.name!r} tells apart: "
                f"keep one kind of them, or average all by --long {option_of(chosen)}."
            )
