"""Which policy is better, by one test and by another?"""

from bisect import bisect_right, insort
from collections.abc import Sequence

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray

DIGITS = 12  # scores that differ beyond these digits of the largest differ by rounding


def ranks(scores: FloatArray) -> IntArray:
    """The rank of each score, highest first; equal scores share the best of their ranks.

    Scores that differ by rounding alone count as equal.

    Examples
    --------
    >>> ranks(np.array([0.5, 0.9, 0.5, 0.1])).tolist()
    [2, 1, 2, 4]
    """
    rounded = _without_rounding(scores)
    return np.asarray(1 + len(rounded) - np.searchsorted(np.sort(rounded), rounded, side="right"), dtype=np.int64)


def swapped_pairs(full: FloatArray, small: FloatArray) -> int:
    """How many pairs of policies two tests rank in opposite orders; a tie in either is no swap."""
    full, small = _without_rounding(full), _without_rounding(small)
    swapped, before = 0, list[float]()
    for score in small[np.lexsort((small, full))].tolist():  # those that tie in full stand in the order of small
        swapped += len(before) - bisect_right(before, score)
        insort(before, score)
    return swapped


def newly_tied_pairs(full: FloatArray, small: FloatArray) -> int:
    """How many pairs of policies the full test tells apart and the small one does not."""
    full, small = _without_rounding(full), _without_rounding(small)
    return _tied_pairs(small[:, None]) - _tied_pairs(np.column_stack([small, full]))


def _tied_pairs(rows: FloatArray) -> int:
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def kendall_tau(full: FloatArray, small: FloatArray) -> float:
    """Kendall's τ-b of two tests' scores; NaN where a test gives all policies the same."""
    swapped = swapped_pairs(full, small)
    full, small = _without_rounding(full), _without_rounding(small)
    pairs = len(full) * (len(full) - 1) // 2
    in_full, in_small = (pairs - _tied_pairs(scores[:, None]) for scores in (full, small))  # that are told apart
    if in_full == 0 or in_small == 0:
        return float("nan")
    in_both = in_full + in_small - pairs + _tied_pairs(np.column_stack([small, full]))
    tau = (in_both - 2 * swapped) / np.sqrt(in_full) / np.sqrt(in_small)
    return float(np.clip(tau, -1.0, 1.0))  # by rounding it may lie outside


def ranking_words(names: Sequence[str], full: FloatArray, small: FloatArray) -> str:
    """How the small test's ranking differs from the full test's."""
    tau = kendall_tau(full, small)
    tau_words = f" (Kendall's τ {tau:.3f})" if np.isfinite(tau) else ""
    pairs = len(full) * (len(full) - 1) // 2
    if pairs == 0:
        return "There is one policy, and nothing to rank."
    tied = newly_tied_pairs(full, small)
    tied_words = f", and {tied:,} can no longer be told apart" if tied else ""
    swapped = swapped_pairs(full, small)
    told = f"Pairs of policies: {pairs:,}; in the opposite order: {swapped:,}{tied_words}{tau_words}."
    by_full, by_small = ranks(full), ranks(small)
    best = np.flatnonzero(by_full == 1)
    if (by_small[best] == 1).any():
        return f"{told} The best policy is the same."
    first = best[np.argmin(by_small[best])]
    return f"{told} The full test's best policy, {names[first]!r}, is number {by_small[first]} by the small test."


def _without_rounding(scores: FloatArray) -> FloatArray:
    largest = float(np.abs(scores).max()) or 1.0
    rounded: FloatArray = np.round(scores / largest, DIGITS)
    return rounded
