"""What can be made of a table with missing cells: its largest complete part, or a guess at what is missing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError

BoolArray = NDArray[np.bool_]

FOLDS = 5
MOST_FACTORS = 5
SHRINKAGES = (0.3, 1.0, 3.0, 10.0, 30.0)  # a number of cells: what a factor's ridge counts as
ROUNDS = 30
SETTLED = 1e-4  # a change of all factors, in standard deviations of a row, that ends the rounds
SEED = 2023


def largest_complete_part(absent: BoolArray) -> tuple[BoolArray, BoolArray]:
    """The largest part without missing cells that is found: which rows and which columns are kept.

    Whatever row or column has the largest share of missing cells is dropped until there are none; rows alone and
    columns alone are tried too. There may be a larger part that this does not find.

    Examples
    --------
    >>> rows, columns = largest_complete_part(np.array([[0, 0, 1], [0, 0, 1], [0, 1, 1]], dtype=bool))
    >>> rows.tolist(), columns.tolist()
    ([True, True, False], [True, True, False])
    """
    parts = [_by_shares(absent), complete_rows(absent), complete_columns(absent)]
    return max(parts, key=lambda part: int(part[0].sum()) * int(part[1].sum()))


def complete_rows(absent: BoolArray) -> tuple[BoolArray, BoolArray]:
    """The rows without a missing cell, and every column."""
    return np.logical_not(np.any(absent, axis=1)), np.ones(absent.shape[1], dtype=np.bool_)


def complete_columns(absent: BoolArray) -> tuple[BoolArray, BoolArray]:
    """Every row, and the columns without a missing cell."""
    return np.ones(absent.shape[0], dtype=np.bool_), np.logical_not(np.any(absent, axis=0))


def _by_shares(absent: BoolArray) -> tuple[BoolArray, BoolArray]:
    rows, columns = np.ones(absent.shape[0], dtype=bool), np.ones(absent.shape[1], dtype=bool)
    in_rows, in_columns = absent.sum(axis=1), absent.sum(axis=0)
    while (in_rows * rows).any():
        row, column = int(np.argmax(in_rows * rows)), int(np.argmax(in_columns * columns))
        if in_rows[row] * rows.sum() >= in_columns[column] * columns.sum():
            rows[row] = False
            in_columns = in_columns - absent[row]
        else:
            columns[column] = False
            in_rows = in_rows - absent[:, column]
    return rows, columns


@dataclass(frozen=True, eq=False)
class Filled:
    """A table whose missing cells were guessed, and how good such guesses were for cells that are known.

    Attributes
    ----------
    table : ndarray of shape (n_rows, n_columns)
    error : float
        Root mean square error of cells that were held out, in standard deviations of their rows.
    error_of_means : float
        The same where a row's mean stands for every missing cell.
    mean_error : float
        Mean absolute error of cells that were held out, in the table's own units.
    """

    table: FloatArray
    error: float
    error_of_means: float
    mean_error: float


def fill(table: FloatArray) -> Filled:
    r"""Guess the missing cells (NaN) by a few factors that rows and columns share.

    With rows standardised to :math:`z`, and over the known cells only, this minimises

    .. math::

        \sum_{ij} (z_{ij} - u_i^\top v_j)^2 + \lambda \sum_i |u_i|^2 + \lambda \sum_j |v_j|^2

    by alternating ridge regressions. The shrinkage :math:`\lambda` is the one that guesses best what was held out, in
    `FOLDS` random parts of the known cells; one of the choices is infinite, which fills in the rows' means.

    Examples
    --------
    >>> fill(np.array([[1.0, 2.0, 3.0, np.nan], [2.0, 4.0, 6.0, 8.0]])).table[1].tolist()
    [2.0, 4.0, 6.0, 8.0]
    """
    known = ~np.isnan(table)
    if not known.any(axis=1).all() or not known.any(axis=0).all():
        raise ProblemError("every row and every column must have a known cell.")
    largest = float(np.nanmax(np.abs(table))) or 1.0  # so that no square is beyond what a float holds
    table, given = table / largest, table
    fold = np.where(known, np.random.default_rng(SEED).integers(FOLDS, size=table.shape), -1)
    guesses = {shrinkage: np.full(table.shape, np.nan) for shrinkage in (*SHRINKAGES, np.inf)}
    for held_out in range(FOLDS):
        kept = known & (fold != held_out)
        for shrinkage, guess in guesses.items():
            guess[fold == held_out] = _guess(table, kept, shrinkage)[fold == held_out]
    spread = _spread(table, known)
    errors = {
        shrinkage: float(np.sqrt(np.mean(((guess - table) / spread[:, None])[known] ** 2)))
        for shrinkage, guess in guesses.items()
    }
    best = min(errors, key=errors.__getitem__)
    # A guess is not beyond the largest result, which all others stay below.
    filled = np.where(known, given, np.clip(_guess(table, known, best), -1.0, 1.0) * largest)
    mean_error = float(np.mean(np.abs(guesses[best] - table)[known])) * largest
    return Filled(filled, errors[best], errors[np.inf], mean_error)


def _spread(table: FloatArray, known: BoolArray) -> FloatArray:
    """The standard deviation of every row's known cells, and one where there is none."""
    counts = np.maximum(known.sum(axis=1), 1)
    values = np.where(known, table, 0.0)
    centred = np.where(known, values - (values.sum(axis=1) / counts)[:, None], 0.0)
    spread: FloatArray = np.sqrt((centred**2).sum(axis=1) / counts).astype(np.float64)
    return np.where(spread > 0, spread, 1.0)


def _guess(table: FloatArray, known: BoolArray, shrinkage: float) -> FloatArray:
    """The fit to the known cells, everywhere, in the units of the table."""
    counts = np.maximum(known.sum(axis=1), 1)
    values = np.where(known, table, 0.0)
    total = values.sum() / max(known.sum(), 1)
    means = np.where(known.any(axis=1), values.sum(axis=1) / counts, total)
    spread = _spread(table, known)
    if np.isinf(shrinkage):
        return np.repeat(means[:, None], table.shape[1], axis=1)
    z = np.where(known, (values - means[:, None]) / spread[:, None], 0.0)
    fit: FloatArray = means[:, None] + spread[:, None] * _low_rank(z, known.astype(np.float64), shrinkage)
    return fit


def _low_rank(z: FloatArray, known: FloatArray, shrinkage: float) -> FloatArray:
    """Alternating ridge regressions; `z` is zero where cells are not known."""
    factors = max(1, min(MOST_FACTORS, *(length // 2 for length in z.shape)))
    of_columns: FloatArray = np.random.default_rng(SEED).normal(size=(z.shape[1], factors))
    of_rows = np.zeros((len(z), factors))
    for _ in range(ROUNDS):
        before = of_columns
        of_rows = _ridge(z, known, of_columns, shrinkage)
        of_columns = _ridge(z.T, known.T, of_rows, shrinkage)
        if np.abs(of_columns - before).max() < SETTLED:
            break
    product: FloatArray = of_rows @ of_columns.T
    return product


def _ridge(z: FloatArray, known: FloatArray, factors: FloatArray, shrinkage: float) -> FloatArray:
    """For every row of `z`, the ridge regression of its known cells on the factors of the columns."""
    count = factors.shape[1]
    squares = (factors[:, :, None] * factors[:, None, :]).reshape(len(factors), count * count)
    systems = (known @ squares).reshape(-1, count, count) + shrinkage * np.eye(count)
    return np.linalg.solve(systems, (z @ factors)[:, :, None])[:, :, 0].astype(np.float64)
