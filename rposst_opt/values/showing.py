"""How is an object shown where it is looked at? In a line or three as text, as a small table in a notebook.

A page's own colours and fonts are used, so that tables are readable in light and dark; nothing is loaded from
elsewhere, and every name is escaped.
"""

from collections.abc import Iterable, Sequence
from html import escape

MOST_NAMES = 6  # in a text
MOST_ROWS = 20  # in a table
LONGEST_NAME, LONGEST_LINE, LONGEST_CELL = 40, 110, 200  # characters
MOST_LINES = 3  # of a text


def shortened(text: str, most: int = LONGEST_CELL) -> str:
    """The text, or its beginning if it is too long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def quoted(name: str) -> str:
    """A name in a text of one line, in quotation marks."""
    return repr(shortened(name, LONGEST_NAME))


def brief_number(value: float) -> str:
    """A number that is long enough to be told from others.

    >>> brief_number(0.26714285), brief_number(float("inf"))
    ('0.267143', 'inf')
    """
    return f"{value:.6g}"


def listed(parts: Sequence[str], most: int = MOST_NAMES) -> str:
    """Parts with commas between them; how many were left out is said.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(parts[:most])
    return shown if len(parts) <= most else f"{shown} and {len(parts) - most:,} more"


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "policy"), counted(1200, "policy"), counted(0, "target")
    ('1 policy', '1,200 policies', '0 targets')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


class Shown:
    """Something that is known by a few facts: labels and values, as text and as a table in a notebook.

    Examples
    --------
    >>> class Table(Shown):
    ...     def _facts(self):
    ...         return [("of", "3 cases"), ("by", "'somebody'")]
    >>> Table()
    Table(of 3 cases; by 'somebody')
    """

    def _facts(self) -> Sequence[tuple[str, str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return text_facts(type(self).__name__, self._facts())

    def _repr_html_(self) -> str:
        return html_facts(type(self).__name__, self._facts())


def text_facts(title: str, facts: Sequence[tuple[str, str]]) -> str:
    """The same as `html_facts` in at most three lines, as the text of an object.

    >>> text_facts("Problem", [("size", "3"), ("loss", "AbsoluteError()")])
    'Problem(size 3; loss AbsoluteError())'
    """
    parts = [shortened(f"{label} {value}".replace("\n", " ")) for label, value in facts]
    whole = "; ".join(parts)
    lines = max(1, min(MOST_LINES, -(-len(whole) // LONGEST_LINE)))
    if lines == 1 or len(parts) == 1:
        return f"{title}({whole})"
    # Parts are never broken: a new line begins with the part that passes the next share of the whole.
    text, filled, done = parts[0], 1, len(parts[0])
    for part in parts[1:]:
        done += len(part) + 2
        begins = filled < lines and done > filled * len(whole) / lines
        text += f";\n{' ' * (len(title) + 1)}{part}" if begins else f"; {part}"
        filled += begins
    return f"{title}({text})"


def html_facts(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """A table of labels and values below a title."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL}">{_cell(label)}</th><td style="{_CELL}">{_cell(value)}</td></tr>'
        for label, value in facts
    )
    return _table(title, f"<tbody>{rows}</tbody>")


def html_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], most: int = MOST_ROWS) -> str:
    """A table with a heading per column below a title; of many rows the first are shown, and it is said."""
    head = "".join(f'<th scope="col" style="{_CELL}">{_cell(column)}</th>' for column in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_cell(cell)}</td>' for cell in row) + "</tr>" for row in rows[:most]
    )
    if len(rows) > most:
        body += f'<tr><td colspan="{len(columns)}" style="{_CELL}">and {len(rows) - most:,} more</td></tr>'
    return _table(title, f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>")


_CELL = "text-align:left;vertical-align:top;padding:0.1em 1em 0.1em 0"
_TABLE = "border-collapse:collapse;color:inherit;background:transparent;margin:0.3em 0"
_CAPTION = "caption-side:top;text-align:left;color:inherit;font-weight:bold;white-space:nowrap"


def _table(title: str, body: str) -> str:
    return f'<table style="{_TABLE}"><caption style="{_CAPTION}">{_cell(title)}</caption>{body}</table>'


def _cell(text: str) -> str:
    text = shortened(text).encode("utf-8", "replace").decode("utf-8")  # half of a pair of surrogates is no text
    return escape(text, quote=True)
