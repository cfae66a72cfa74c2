"""Which number does a cell say, to the last bit? Or that there is none; or neither, which is an error."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.files.cells import CutOff, ObjectArray

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
WITHOUT_NUMBER = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
PLAIN = re.compile(r"[0-9eE+.\s-]*+")  # what a text of numbers is made of
MISSING_WORDS = {"", "-", "–", "—", "?", "n/a", "na", "nan", "null", "#n/a"}
AT_ONCE = 1024  # cells that are converted together, as long as all of them are plain


@dataclass(frozen=True)
class NumberStyle:
    """How numbers are written: the decimal sign, and whether 61.0% says 61.0."""

    decimal: str = "."
    percent: bool = False

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ProblemError(f"`decimal` must be a point or a comma, got {self.decimal!r}.")


class Numbers(NamedTuple):
    """Cells as numbers: NaN where a cell is missing, and infinite where it holds no number that a float can be."""

    values: FloatArray
    n_percent: int

    @property
    def is_bad(self) -> NDArray[np.bool_]:
        """Where a cell is neither a finite number nor missing."""
        return np.isinf(self.values)


def read_numbers(cells: ObjectArray, style: NumberStyle) -> Numbers:
    """The numbers that cells say."""
    flat = cells.ravel().tolist()
    values, n_percent = np.empty(len(flat)), 0
    for start in range(0, len(flat), AT_ONCE):
        some = flat[start : start + AT_ONCE]
        plain = _plain_numbers(some, style)
        if plain is None:
            plain = np.array([_number(cell, style) for cell in some])
            n_percent += sum(_has_percent_sign(cell) for cell in some)
        values[start : start + AT_ONCE] = plain
    return Numbers(values.reshape(cells.shape), n_percent if style.percent else 0)


def _plain_numbers(cells: list[Any], style: NumberStyle) -> FloatArray | None:
    """The numbers of cells that are all plain text or all floats; None if they are not."""
    kinds = set(map(type, cells))
    if kinds <= {float}:
        return np.array(cells, dtype=np.float64)
    if kinds != {str}:
        return None
    text = "".join(cells)
    if PLAIN.fullmatch(text) is None or (style.decimal == "," and "." in text):
        return None
    try:
        # Python's own conversion, which is right to the last bit; not every version of pandas is.
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return None


def are_texts(cells: ObjectArray) -> NDArray[np.bool_]:
    """Where cells are neither missing nor a number in any style."""
    texts: NDArray[np.bool_] = np.ones(cells.shape, dtype=np.bool_)
    for decimal in (".", ","):
        texts &= read_numbers(cells, NumberStyle(decimal, percent=True)).is_bad
    return texts


def _number(cell: Any, style: NumberStyle) -> float:
    if is_missing(cell):
        return math.nan
    if isinstance(cell, Real | Decimal | np.bool_):
        try:
            return float(cell)
        except OverflowError:
            return math.inf
    text = str(cell).strip()
    if style.percent and text.endswith("%"):
        text = text[:-1].rstrip()
    if style.decimal == ",":
        text = text.replace(".", "no point").replace(",", ".")
    return float(text) if NUMBER.fullmatch(text) else math.inf


def is_missing(cell: Any) -> bool:
    """Whether a cell says that there is no number."""
    if isinstance(cell, CutOff):
        return False
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING_WORDS
    return cell is None or cell is pd.NA or cell is pd.NaT or (isinstance(cell, Real) and math.isnan(cell))


def _has_percent_sign(cell: Any) -> bool:
    return isinstance(cell, str) and cell.rstrip().endswith("%")


def why_no_number(cell: Any) -> str:
    """What is wrong with a cell, as the end of a sentence, and the way out."""
    if isinstance(cell, CutOff):
        return "is not there, as its row ends before it: every row needs as many cells as the header."
    text = cell.strip() if isinstance(cell, str) else str(cell)
    if NUMBER.fullmatch(text) or WITHOUT_NUMBER.fullmatch(text):
        if NUMBER.fullmatch(text) and math.isfinite(float(text)):
            return f"must be a number with a decimal comma, got {text!r}: leave --decimal out."
        return f"must be finite, got {text!r}."
    hint = ""
    if text.endswith("%"):
        hint = " --percent reads 61.0% as 61.0."
    elif "," in text:
        hint = " Write decimals with a point, or give --decimal ,"
    return f"must be a number, got {text!r}.{hint}"
