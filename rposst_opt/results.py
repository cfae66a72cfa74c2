"""What can be read off a result matrix before any problem is stated: its scale, and targets that stress hard cases."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rposst_opt.arrays import FloatArray, IntArray, as_numbers, is_number, some_names
from rposst_opt.arrays import is_frame as is_frame
from rposst_opt.errors import ProblemError, closest, warn

if TYPE_CHECKING:
    import pandas as pd

_Scores = TypeVar("_Scores", float, FloatArray)
TARGET_BITS = 40  # of softmax targets, before they are scaled to sum to one
BEYOND_UNIT_RANGE = 1e-6  # by how much results that were rescaled may miss [0, 1] after rounding to decimals
SUMMED_AT_ONCE = 2**20  # products that are held in memory
ALIKE_STEPS = 16  # of rounding at the largest result: rows that differ by no more are alike


@dataclass(frozen=True)
class Scale:
    """The interval of the file's own units that was mapped to [0, 1]."""

    low: float
    high: float

    @classmethod
    def from_dict(cls, record: object, name: str = "scale") -> "Scale":
        """The scale, or the range, that a file has as an object with two numbers, ``low`` and ``high``."""
        given = [record.get("low"), record.get("high")] if isinstance(record, dict) else []
        ends = [float(end) for end in given if is_number(end) and abs(end) <= sys.float_info.max]
        if len(ends) < 2 or ends[0] > ends[1]:
            raise ProblemError(f'"{name}" must be two finite numbers, "low" and "high", in this order.')
        return cls(*ends)

    # `high - low` may be beyond float64 when an error or a score is not, so neither method computes it.

    def error_in_file_units(self, error: float) -> float:
        """A difference between rescaled scores, in the units of the file."""
        return error * self.high - error * self.low

    def error_from_file_units(self, error: FloatArray) -> FloatArray:
        """Differences between the file's scores, in rescaled units; where all results are alike there are none."""
        half_spread = self.high / 2 - self.low / 2
        return error / 2 / half_spread if half_spread > 0 else np.zeros_like(error)

    def score_in_file_units(self, score: _Scores) -> _Scores:
        """A rescaled score, or an array of them, in the units of the file."""
        return self.low * (1 - score) + self.high * score


# When new results are not on the scale that a test was made for.
OFF_BY = 0.5  # of the range: beyond it by more, no policy is merely better
WELL_WITHIN = 0.05  # of the range: a factor of 100 must bring results back to it, up to so much
AT_LEAST = 0.25  # of the largest result of the range: so far the largest new one must reach when the factor is right
SLIVER = 0.015  # of the largest result of the range: so small are all that are too small by a factor of 100


def off_scale(scale: Scale, new: FloatArray, known: FloatArray | None = None) -> str | None:
    """What is suspicious about the scale of new results, given the range that a test was made for; None if nothing is.

    Parameters
    ----------
    scale : Scale
        The range of results that the test was made for.
    new : ndarray of shape (n_chosen, n_policies)
    known : ndarray of shape (n_chosen, n_tuning_policies), optional
        They are part of the range. If those of a tuning policy are as small as the new ones, there is nothing to doubt.

    Examples
    --------
    >>> off_scale(Scale(0.0, 1.0), np.array([[87.3, 12.0]]))
    'the new results reach 87.3, and the test was made for results from 0 to 1: percent?'
    >>> off_scale(Scale(0.0, 1.0), np.array([[1.1, 0.9]]))
    """
    if new.size == 0:
        return None
    seen = [scale.low, scale.high] if known is None else [scale.low, scale.high, float(known.min()), float(known.max())]
    low, high, least, most = min(seen), max(seen), float(new.min()), float(new.max())
    spread, largest, size = high - low, max(abs(low), abs(high)), max(abs(least), abs(most))
    made_for = f"and the test was made for results from {low:g} to {high:g}"

    def is_right_when(factor: float) -> bool:
        slack = WELL_WITHIN * spread
        return low - slack <= least * factor and most * factor <= high + slack and size * factor >= AT_LEAST * largest

    if spread <= ALIKE_STEPS * np.finfo(np.float64).eps * largest:  # a range of rounding tells nothing of others
        return None
    if max(low - least, most - high) > OFF_BY * spread:
        reach = most if most - high > low - least else least
        guess = "are they in the same units?"
        if is_right_when(0.01):
            guess = "percent?" if low >= 0 and high <= 1 else "are they too large by a factor of 100?"
        elif is_right_when(100.0):
            guess = "are they too small by a factor of 100?"
        elif most - least <= spread:
            guess = "are they shifted, or in other units?"
        return f"the new results reach {reach:g}, {made_for}: {guess}"
    # Around zero many results may be small, if some are negative; only tuning policies can then tell what is usual.
    as_small = low < 0 < high if known is None else bool((np.abs(known).max(axis=0) <= SLIVER * largest).any())
    if size <= SLIVER * largest and is_right_when(100.0) and not as_small:
        return f"the new results reach only {most:g}, {made_for}: are they too small by a factor of 100?"
    return None


def finite_table(results: "ArrayLike | pd.DataFrame") -> FloatArray:
    """A copy of the results as numbers, or an error that says where one is missing."""
    table = numeric_table(results)
    if is_frame(results):
        check_finite(table, [str(name) for name in results.index], [str(name) for name in results.columns])
    else:
        check_finite(table, *([str(place) for place in range(length)] for length in table.shape))
    return table


def numeric_table(results: "ArrayLike | pd.DataFrame") -> FloatArray:
    """A copy of the results as numbers, cases by policies, whatever the numbers are."""
    table = as_numbers("results", results)
    if table.ndim != 2 or table.size == 0:
        raise ProblemError(f"`results` must be a table of test cases by policies, got shape {table.shape}.")
    return table


def check_finite(table: FloatArray, case_names: Sequence[str], policy_names: Sequence[str]) -> None:
    """Refuse a table with a number missing, and say where."""
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        case, policy = bad[0].tolist()
        raise ProblemError(
            f"`results` must be finite, got {table[case, policy]} for test case {case_names[case]!r} and "
            f"policy {policy_names[policy]!r}."
        )


def checked_size(size: int, n_selectable: int, n_cases: int) -> int:
    """How many cases to choose, if there are so many to choose from."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer):
        raise ProblemError(f"`size` must be a whole number, got {size!r}.")
    if not 1 <= size <= n_selectable:
        besides = " that are neither required nor forbidden" if n_selectable < n_cases else ""
        raise ProblemError(f"`size` must lie between 1 and the {n_selectable} test cases{besides}, got {size}.")
    return int(size)


def positions_of(cases: Iterable[int | str], position_of_name: Mapping[str, int]) -> tuple[int, ...]:
    """The positions of cases that are given by position or by name, ascending and each once."""
    n_cases = len(position_of_name)
    positions = set()
    for case in (cases,) if isinstance(cases, str) else cases:
        if isinstance(case, str):
            if case not in position_of_name:
                meant = closest(case, position_of_name)
                asked = "." if meant is None else f": did you mean {meant!r}?"
                raise ProblemError(f"unknown test case {case!r}{asked} Known: {some_names(list(position_of_name))}.")
            positions.add(position_of_name[case])
        elif isinstance(case, bool) or not isinstance(case, int | np.integer) or not 0 <= case < n_cases:
            raise ProblemError(f"unknown test case {case!r}: give a name, or a position from 0 to {n_cases - 1}.")
        else:
            positions.add(int(case))
    return tuple(sorted(positions))


def unused_names(taken: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """These names, with as many dashes before them as it takes to differ from those that are taken."""
    names = list(wanted)
    while set(names) & set(taken):
        names = ["-" + name for name in names]
    return names


def rescale(results: ArrayLike) -> tuple[FloatArray, Scale]:
    """Map all entries to [0, 1], as the paper's experiments do; a constant matrix becomes all zeros.

    Examples
    --------
    >>> rescale([[-2.0, 0.0], [2.0, 1.0]])
    (array([[0.  , 0.5 ],
           [1.  , 0.75]]), Scale(low=-2.0, high=2.0))
    """
    results = finite_table(results)
    low, high = float(results.min()), float(results.max())
    half_spread = high / 2 - low / 2  # halves, because high - low may be beyond float64 when both are not
    if half_spread == 0:
        return np.zeros_like(results), Scale(low, high)
    return np.clip((results / 2 - low / 2) / half_spread, 0.0, 1.0), Scale(low, high)


def softmax_targets(results: "ArrayLike | pd.DataFrame", betas: Sequence[float] = (0, 1, 2, 4)) -> FloatArray:
    """Target distributions that put the more weight on a test case the lower its mean result is (paper, section 5).

    Parameters
    ----------
    results : array of shape (n_cases, n_policies), or DataFrame
        The paper's are rescaled to [0, 1]; others come with a warning, since what a beta means depends on the scale.
    betas : sequence of float
        How sharply; zero is the uniform distribution.

    Returns
    -------
    ndarray of shape (n_betas, n_cases)
        Row b is proportional to ``exp(-betas[b] * results.mean(axis=1))``, rounded to `TARGET_BITS` bits so that the
        processor's own exponential function, which differs in the last ones, makes no difference.

    Examples
    --------
    >>> softmax_targets([[0.0, 0.0], [1.0, 1.0]], betas=(0, 1)).round(3)
    array([[0.5  , 0.5  ],
           [0.731, 0.269]])
    """
    table = finite_table(results)
    targets = targets_of(table, betas)
    warn_of_scale(table, betas)
    return targets


def warn_of_scale(table: FloatArray, betas: Sequence[float]) -> None:
    """Warn where softmax targets are made of results that were not rescaled, and that makes a difference."""
    low, high = float(table.min()), float(table.max())
    if np.any(betas) and low < high and (low < -BEYOND_UNIT_RANGE or high > 1 + BEYOND_UNIT_RANGE):
        warn(
            f"softmax targets are made of results from {low:g} to {high:g}, and how sharp they are "
            "depends on the scale of results: map these to [0, 1] first, with `rescale`, `Problem.from_results` or "
            "--rescale."
        )


def targets_of(results: FloatArray, betas: Sequence[float]) -> FloatArray:
    """`softmax_targets` of a table that was looked at before: nothing is said of its scale."""
    sharpness = np.asarray(betas, dtype=np.float64)
    if sharpness.ndim != 1 or len(sharpness) == 0 or not np.isfinite(sharpness).all():
        raise ProblemError(f"`betas` must be a list of finite numbers, got {betas}.")
    mean = (results / results.shape[1]).sum(axis=1)
    with np.errstate(over="ignore"):
        above_least = mean - mean.min()
        if not np.isfinite(above_least).all():
            raise ProblemError("`results` must not span more than float64 holds: rescale them first.")
        # The largest exponent is zero whatever the sign of beta, so nothing overflows but towards a weight of zero.
        below_most = np.where(sharpness[:, None] < 0, above_least - above_least.max(), above_least)
        unnormalised = _rounded_to_bits(np.exp(-sharpness[:, None] * below_most), TARGET_BITS)
    targets: FloatArray = unnormalised / unnormalised.sum(axis=1, keepdims=True)
    return targets


def _rounded_to_bits(values: FloatArray, bits: int) -> FloatArray:
    """Values with so many leading bits."""
    mantissas, exponents = np.frexp(values)
    rounded: FloatArray = np.ldexp(np.round(mantissas * 2.0**bits) / 2.0**bits, exponents)
    return rounded


def standard_errors(repetitions: ArrayLike) -> FloatArray:
    """The standard error of each case's result, from repetitions of all of them.

    Parameters
    ----------
    repetitions : array of shape (n_cases, n_policies, n_repetitions)
        NaN where there are fewer; a result is the mean of its repetitions.

    Returns
    -------
    ndarray of shape (n_cases,)
        The root mean square, over policies, of s / √r, for results with two repetitions or more.

    Examples
    --------
    >>> standard_errors([[[0.0, 2.0], [1.0, 3.0]]])
    array([1.])
    """
    table = as_numbers("repetitions", repetitions)
    if table.ndim != 3 or np.isinf(table).any():
        raise ProblemError(f"`repetitions` must be finite, cases by policies by repetitions, got shape {table.shape}.")
    cases, policies, _ = np.nonzero(~np.isnan(table))
    errors = averaged(cases, policies, table[~np.isnan(table)], (len(table), table.shape[1])).standard_errors
    if np.isnan(errors).any():
        raise ProblemError("`repetitions` must have two results or more for some policy of every test case.")
    return errors


class Averaged(NamedTuple):
    """Means of repetitions, of how many, and the standard error of each case's results; NaN where there is none."""

    means: FloatArray
    counts: IntArray
    standard_errors: FloatArray


def averaged(cases: IntArray, policies: IntArray, values: FloatArray, shape: tuple[int, int]) -> Averaged:
    """Average values, each of a case and a policy that are given by position.

    Examples
    --------
    >>> averaged(np.array([0, 0, 0]), np.array([0, 0, 1]), np.array([0.0, 2.0, 3.0]), (1, 2)).means
    array([[1., 3.]])
    """
    cell, n_cells = cases * shape[1] + policies, shape[0] * shape[1]
    counts = np.bincount(cell, minlength=n_cells).astype(np.int64)
    means = _means(cell, values, counts)
    largest = float(np.abs(values).max(initial=0.0)) or 1.0  # squares of what is divided by it stay finite
    deviations = values / largest - means[cell] / largest
    spare = np.maximum(counts - 1, 1) * np.maximum(counts, 1)
    squares = (np.bincount(cell, weights=deviations**2, minlength=n_cells) / spare * (counts > 1)).reshape(shape)
    n_repeated = (counts > 1).reshape(shape).sum(axis=1)
    errors: FloatArray = np.sqrt(squares.sum(axis=1) / np.maximum(n_repeated, 1)) * largest
    errors[n_repeated == 0] = np.nan
    return Averaged(means.reshape(shape), counts.reshape(shape), errors)


def _means(cell: IntArray, values: FloatArray, counts: IntArray) -> FloatArray:
    """The mean of the values in every cell, NaN where there are none."""
    with np.errstate(over="ignore"):
        sums = np.bincount(cell, weights=values, minlength=len(counts))
    means: FloatArray = sums / np.maximum(counts, 1)
    if np.isinf(sums).any():  # a mean is finite even where the sum is beyond float64
        means = np.bincount(cell, weights=values / counts[cell], minlength=len(counts)).astype(np.float64)
    return np.where(counts > 0, means, np.nan)


def peculiar_spread(results: FloatArray, factors: int = 2) -> FloatArray:
    """By how much each case's results differ from what the other cases tell: their spread beside a few common factors.

    A new policy is peculiar in its own ways, so this acts on its score like noise. The factors are principal components
    of the table with every case's mean taken off; there are fewer where policies are few.

    Examples
    --------
    >>> peculiar_spread(np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0]]), factors=1).round(9)
    array([0., 0.])
    """
    centred = results - results.mean(axis=1, keepdims=True)
    left, lengths, right = np.linalg.svd(centred, full_matrices=False)
    kept = max(0, min(factors, results.shape[1] - 2, len(lengths) - 1))
    rest = centred - (left[:, :kept] * lengths[:kept]) @ right[:kept]
    spread: FloatArray = np.sqrt((rest**2).sum(axis=1) / max(results.shape[1] - 1 - kept, 1))
    return spread


def full_scores(targets: FloatArray, results: FloatArray) -> FloatArray:
    """The full test's score by every target (row) of every policy (column): Σ_x σ_x A[x, j].

    The sums are taken case by case: a matrix product rounds differently on every kind of processor, and where results
    tie, what is chosen would depend on that.

    Examples
    --------
    >>> full_scores(np.array([[0.5, 0.5]]), np.array([[0.0, 1.0], [1.0, 3.0]]))
    array([[0.5, 2. ]])
    """
    scores = np.zeros((len(targets), results.shape[1]))
    at_once = max(1, SUMMED_AT_ONCE // scores.size)
    for start in range(0, len(results), at_once):
        some = slice(start, start + at_once)
        products = targets.T[some, :, None] * results[some, None, :]
        products[0] += scores
        scores = np.add.reduce(products, axis=0)
    return scores


def first_alike(results: FloatArray) -> IntArray:
    """For every case, the first one with the same results, up to rounding: itself, if no earlier one has them.

    Examples
    --------
    >>> first_alike(np.array([[0.1, 0.3], [0.5, 0.5], [0.1, 0.1 + 0.2]])).tolist()
    [0, 1, 0]
    """
    allowed = ALIKE_STEPS * np.finfo(np.float64).eps * float(np.abs(results).max())
    # Rows that are alike have sums that are alike, with any weights; so only rows with neighbouring sums are compared.
    weights = 1.0 + np.modf(np.arange(1, results.shape[1] + 1) * np.sqrt(2))[0]
    largest = float(np.abs(results).max()) or 1.0
    sums = (results / largest) @ weights
    order = np.argsort(sums, kind="stable")
    apart = np.diff(sums[order]) > 2 * ALIKE_STEPS * np.finfo(np.float64).eps * weights.sum()
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1, [len(order)]])
    first = np.arange(len(results))
    for group in np.flatnonzero(np.diff(starts) > 1):
        left = np.sort(order[starts[group] : starts[group + 1]])
        while len(left) > 1:
            alike = (np.abs(results[left] - results[left[0]]) <= allowed).all(axis=1)
            first[left[alike]] = left[0]
            left = left[~alike]
    return first
