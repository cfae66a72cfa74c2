"""Files that tests write, awkward names for what is in them, and the complaints that they meet."""

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import rposst_opt as ro

AWKWARD_NAMES = (
    "<script>alert(1)</script>",
    "../x",
    "a,b",
    'he said "hi"',
    '"',
    "two\nlines",
    "two\r\nlines",
    "a\ttab",
    "semi;colon",
    ",;\t,;\t;;;\t\t\t",
    " leading and trailing ",
    "größer ∑ 文字",
    "🙂👩‍🚀",
    "[red]x[/red]",
    "nan",
    "NA",
    "None",
    "1e5",
    "007",
    "#comment",
    "'quoted'",
    "back\\slash",
    "\x1b[31mred",
    "line\u2028separator",
    "=1+1",
)


def complaint(call: Callable[[], object]) -> str:
    """The message of the ProblemError that this call must end with, which must be a single line."""
    with pytest.raises(ro.ProblemError) as caught:
        call()
    message = str(caught.value)
    assert len(message.splitlines()) == 1, message
    return message


def write_table(
    path: Path,
    cases: Sequence[str],
    policies: Sequence[str],
    results: Sequence[Sequence[float]],
    *,
    separator: str = ",",
    quote_all: bool = False,
    corner: str = "case",
) -> Path:
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=separator,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL,
    )
    writer.writerow([corner, *policies])
    writer.writerows([case, *map(repr, row)] for case, row in zip(cases, results, strict=True))
    path.write_bytes(text.getvalue().encode())
    return path


def write_random_table(path: Path, n_cases: int, n_policies: int) -> None:
    numbers = np.random.default_rng(0).random((n_cases, n_policies)).tolist()
    write_table(path, [f"c{i}" for i in range(n_cases)], [f"p{j}" for j in range(n_policies)], numbers)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
