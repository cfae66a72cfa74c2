"""Is a table wide or long, has it a header and names, and are its rows test cases or policies?

What names and shape tell is found out, and said in one line; where they do not tell, an error shows the readings and
the option that decides between them.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rposst_opt.errors import ProblemError
from rposst_opt.files.cells import Cells, ObjectArray
from rposst_opt.files.choices import Side
from rposst_opt.files.numbers import NUMBER, NumberStyle, is_missing
from rposst_opt.files.words import Kind, is_index_word, kind_of, kind_of_names

FEWEST_COUNTED = 5  # 0, 1, 2, ... in so many cells are taken for numbers of rows, and fewer may be results
SHOWN = 3  # names in a message
ROWS, COLUMNS = Side.ROWS, Side.COLUMNS


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What the caller says about a table; None where it is to be found out.

    Attributes
    ----------
    long : (str, str, str), optional
        The columns of test cases, policies and values.
    cases_are : {"rows", "columns"}, optional
    names : bool, optional
        Whether the first column has the names of rows.
    header : bool, optional
        Whether the first row has the names of columns.
    drop_columns : sequence of str
    style : NumberStyle
    why_long : str
        Who says that it is a long table.
    """

    long: tuple[str, str, str] | None = None
    cases_are: Side | None = None
    names: bool | None = None
    header: bool | None = None
    drop_columns: Sequence[str] = ()
    style: NumberStyle = field(default_factory=NumberStyle)
    why_long: str = "as --long says"

    def __post_init__(self) -> None:
        if self.long is not None and (len(self.long) != 3 or len(set(self.long)) < 3):
            raise ProblemError(f"`long` must name three columns, CASE,POLICY,VALUE, got {self.long!r}.")
        wide = {"--cases-are": self.cases_are, "--names": self.names}
        for option, value in wide.items():
            if self.long is not None and value is not None:
                raise ProblemError(f"--long and {option} exclude each other: the one is for long tables.")


@dataclass(frozen=True, eq=False)
class Headed:
    """Cells below the names of their columns."""

    where: str
    header: list[str]
    body: ObjectArray
    has_row_numbers: bool
    has_header: bool

    def column(self, name: str) -> ObjectArray:
        """The cells of a column."""
        return self.body[:, self.header.index(name)]


@dataclass(frozen=True, eq=False)
class Wide:
    """Cells between the names of rows and columns; `cases_are` says which of them are test cases, `note` why."""

    row_names: list[str]
    column_names: list[str]
    body: ObjectArray
    cases_are: Side
    notes: tuple[str, ...]


def as_headed(cells: Cells, layout: Layout) -> tuple[Headed, list[str]]:
    """The header apart from the rest, without the columns that are not wanted; and notes."""
    first = [as_text(cell) for cell in cells.grid[0]]
    has_header = layout.header
    if cells.has_header and has_header is False:
        raise ProblemError(f"{cells.where}: the columns have names, so that --no-header cannot be.")
    if has_header is None:
        has_header = bool(cells.has_header) or not _may_be_results(first, layout.style)
        if not has_header:
            raise ProblemError(
                f"{cells.where}: the first row ({some_of(first)}) may be names or results: "
                "--header if these are names, --no-header if they are results."
            )
    header = first if has_header else ["", *map(str, range(len(first) - 1))]
    if not has_header and layout.names is False:
        header = [str(place) for place in range(len(first))]
    body = cells.grid[1:] if has_header else cells.grid
    headed = Headed(cells.where, header, body, cells.has_row_numbers, has_header)
    return _without(headed, layout.drop_columns)


def _may_be_results(first: list[str], style: NumberStyle) -> bool:
    """Whether a first row may be one of results, because beside its first cell it has nothing but numbers."""
    corner, rest = first[0], first[1:]
    if not rest or not _all_numbers(rest, style) or not corner.strip():
        return False
    if _all_numbers([corner], style):
        return True
    return kind_of(corner) is None and not is_index_word(corner) and not _is_counted(rest)


def _without(headed: Headed, unwanted: Sequence[str]) -> tuple[Headed, list[str]]:
    for name in unwanted:
        if name not in headed.header:
            raise ProblemError(
                f"{headed.where}: there is no column {name!r} to drop. Columns: {some_of(headed.header, 8)}."
            )
    if not unwanted:
        return headed, []
    kept = [place for place, name in enumerate(headed.header) if name not in set(unwanted)]
    if not kept:
        raise ProblemError(f"{headed.where}: --drop-columns leaves no column.")
    rest = replace(headed, header=[headed.header[place] for place in kept], body=headed.body[:, kept])
    return rest, [f"left out {len(headed.header) - len(kept)} of {len(headed.header)} columns, as --drop-columns says"]


def as_wide(headed: Headed, layout: Layout, only_cases: Collection[str] | None) -> Wide:
    """A wide table: names of rows and columns, and which of them are test cases."""
    if not len(headed.body):
        raise ProblemError(f"{headed.where}: there must be at least one test case below the header, got none.")
    named = _has_names(headed, layout) if layout.names is None else layout.names
    notes = []
    if named:
        row_names, header, body = [as_text(cell) for cell in headed.body[:, 0]], headed.header[1:], headed.body[:, 1:]
        if layout.names is None and _all_numbers(row_names, layout.style):
            notes.append(f"took the numbers of the first column, {row_names[0]} to {row_names[-1]}, for names of rows")
        corner = headed.header[0]
    else:
        row_names, header, body = [str(row) for row in range(len(headed.body))], headed.header, headed.body
        notes.append(f"numbered the rows from 0 to {len(body) - 1}, as no column names them")
        corner = ""
    if not header:
        raise ProblemError(
            f"{headed.where}: there must be at least one policy beside the names, got none. "
            "Columns are separated by a comma, a tab or a semicolon."
        )
    cases_are, why = _orientation(headed, corner, row_names, header, layout, only_cases)
    return Wide(row_names, header, body, cases_are, (*notes, _sentence(body, cases_are, why)))


def _sentence(body: ObjectArray, cases_are: Side, why: str) -> str:
    """How the table was read, and the option for the other way round."""
    other = cases_are.other
    n_cases, n_policies = body.shape if cases_are == ROWS else body.shape[::-1]
    if why:
        why = f", {why}"
    return (
        f"read {n_cases:,} test case{'s' * (n_cases != 1)} ({cases_are}) × {n_policies:,} "
        f"polic{'y' if n_policies == 1 else 'ies'} ({other}){why}; --cases-are {other} if that is wrong"
    )


def _has_names(headed: Headed, layout: Layout) -> bool:
    """Whether the first column has names: told by its cells, or by its heading; numbers alone may be results."""
    corner, first = headed.header[0], [as_text(cell) for cell in headed.body[:, 0]]
    found = [text for text in first if not is_missing(text)]
    numbers = [text for text in found if _is_number(text, layout.style)]
    if not corner.strip() or 2 * len(numbers) <= len(found):
        return True
    may_be_names = _are_whole(numbers) and len(set(first)) == len(first)
    is_heading = kind_of(corner) in (Kind.CASE, Kind.POLICY) or is_index_word(corner)
    if may_be_names and (is_heading or len(numbers) < len(found)):
        return True
    if headed.has_row_numbers:
        return False
    if _is_counted(first):
        return True
    raise ProblemError(
        f"{headed.where}: the first column {corner!r} ({some_of(first)}) may be names or results: --names if rows "
        f"are called so, and results begin with {some_of(headed.header[1:2]) or 'no column'}; --no-names if they begin "
        "with this."
    )


def _orientation(
    headed: Headed,
    corner: str,
    row_names: list[str],
    column_names: list[str],
    layout: Layout,
    only_cases: Collection[str] | None,
) -> tuple[Side, str]:
    """Whether rows or columns are test cases, and why, if that is not plain."""
    if layout.cases_are is not None:
        return layout.cases_are, "as --cases-are says"
    if only_cases is not None:
        in_rows, in_columns = (len(set(only_cases) & set(names)) for names in (row_names, column_names))
        if in_rows != in_columns:
            return ROWS if in_rows > in_columns else COLUMNS, "by the names of the test's cases"
    told = _evidence(corner, row_names, column_names)
    if len(set(told.values())) > 1:
        raise ProblemError(
            f"{headed.where}: the test cases are {', but '.join(f'{side} by {why}' for why, side in told.items())}: "
            f"--cases-are rows if {some_of(row_names)} are test cases, --cases-are columns if {some_of(column_names)}."
        )
    if told:
        return next(iter(told.values())), ""
    if kind_of_names(column_names)[0] is Kind.CASE and kind_of_names(row_names)[0] is not Kind.CASE:
        return COLUMNS, f"by names such as {column_names[0]!r}"
    if headed.has_header and len(column_names) > 1 and _are_whole(column_names) and not _are_whole(row_names):
        raise ProblemError(
            f"{headed.where}: which are test cases? Columns have numbers ({some_of(column_names)}), and rows names: "
            f"--cases-are rows if {some_of(row_names)} are test cases, --cases-are columns if they are policies."
        )
    return ROWS, "as nothing in the names tells otherwise"


def _evidence(corner: str, row_names: list[str], column_names: list[str]) -> dict[str, Side]:
    """What says, by a word, which are the test cases: the header's first cell, names of columns and names of rows."""
    told: dict[str, Side] = {}
    kinds = {Kind.CASE: ROWS, Kind.POLICY: COLUMNS}
    if (kind := kind_of(corner)) in kinds:
        told[f"the header's {corner!r}"] = kinds[kind]
    (of_rows, rows_sure), (of_columns, columns_sure) = kind_of_names(row_names), kind_of_names(column_names)
    if of_rows is of_columns:  # agents against agents, say
        return told
    if of_rows is not None and rows_sure:
        told[f"the row {row_names[0]!r}"] = kinds[of_rows]
    if of_columns is not None and columns_sure:
        told[f"the column {column_names[0]!r}"] = ROWS if of_columns is Kind.POLICY else COLUMNS
    return told


def as_text(cell: Any) -> str:
    """A cell as a name."""
    return cell if isinstance(cell, str) else "" if is_missing(cell) else str(cell)


def option_of(names: Sequence[str]) -> str:
    """Names as an option takes them, on most command lines."""
    text = ",".join(f'"{name}"' if "," in name else name for name in names)
    return text if re.fullmatch(r"[\w.,@%+=:/-]+", text) else f"'{text}'"


def some_of(names: Sequence[str], most: int = SHOWN) -> str:
    """The first few names, for a message."""
    return ", ".join(repr(name) for name in names[:most]) + (", ..." if len(names) > most else "")


def _all_numbers(texts: Sequence[str], style: NumberStyle) -> bool:
    """Whether there are numbers, and beside them nothing but missing cells."""
    found = [text for text in texts if not is_missing(text)]
    return bool(found) and all(_is_number(text, style) for text in found)


def _is_number(text: str, style: NumberStyle) -> bool:
    plain = text.strip().rstrip("%").rstrip()
    return NUMBER.fullmatch(plain.replace(",", ".") if style.decimal == "," else plain) is not None


def _are_whole(names: Sequence[str]) -> bool:
    return all(name.strip().isdecimal() for name in names)


def _is_counted(texts: Sequence[str]) -> bool:
    """Whether these are 0, 1, 2, ... or 1, 2, 3, ..., and so many that this can be no chance."""
    if len(texts) < FEWEST_COUNTED or not _are_whole(texts):
        return False
    first = int(texts[0])
    return first in (0, 1) and all(text == str(number) for number, text in enumerate(texts, start=first))
