r"""How far off may a score be? Intervals from tests that were made without each tuning policy in turn.

Leave tuning policy j out, choose and weigh again, and keep the test :math:`w_{-j}` and its error :math:`R_j` on j. The
cases are chosen again each time: with the cases of the whole table, intervals are too narrow. A new policy with results
a has one of two intervals:

.. math::

    \text{jackknife:}  &\quad w \cdot a \pm q^+\{|R_j|\} \\
    \text{jackknife+:} &\quad \bigl[\,q^-\{w_{-j} \cdot a - |R_j|\},\ q^+\{w_{-j} \cdot a + |R_j|\}\,\bigr]

with the quantiles of Barber, Candès, Ramdas and Tibshirani (*Predictive inference with the jackknife+*, 2021). Both are
about new policies that are exchangeable with the tuning ones, and no promise about policies that are unlike all of
these.

The *jackknife* needs no results but those on the test's own cases, and serves estimators that learn as well. It covers
the full score with a probability near the level if a test that was made from one policy more is off by about as much;
no bound is known without that. The *jackknife+* never covers less than twice the level less one. But it needs results
on all cases of the tests :math:`w_{-j}`, which nobody runs for the sake of a small test, and it covers more than was
asked for: that the choice of cases changes is in :math:`R_j`, and again in :math:`w_{-j} \cdot a`.

Where there are so many policies that leaving them out one by one takes too long, they are left out in folds, and
:math:`w_{-j}` is the test without all of j's fold (CV+, of the same paper, with a bound that is a little lower). Its
tests know fewer policies than the one that is scored with, so it is off by a little more, and the intervals are a
little wider.

Where a run was cut short or takes too long to be repeated, `unseen.stand_in` makes these tests.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rposst_opt.arrays import FloatArray, Named, one_column_each
from rposst_opt.backends import solve
from rposst_opt.contract import Limit
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError, unknown
from rposst_opt.estimators import ESTIMATORS, WEIGHTS
from rposst_opt.files.records import TEST_FORMAT, read_record
from rposst_opt.files.shapes import some_of
from rposst_opt.results import full_scores, is_frame
from rposst_opt.text_files import named
from rposst_opt.unseen.procedures import Purpose
from rposst_opt.unseen.splits import MOST_LEFT_OUT_ONE_BY_ONE, Split, alike, alike_one_by_one

if TYPE_CHECKING:
    import pandas as pd

JACKKNIFE, JACKKNIFE_PLUS = KINDS = ("jackknife", "jackknife+")
TOO_FAR_BEHIND = 2.0  # times the error on tuning policies
FOLDS, SEED = 10, 2023
SLOW_START = 8  # so many times longer a first run may take than others, with kernels that are yet to be loaded
SAME_RESULT = 1e-9  # of the largest result: what rescaling and back may do to one
OF_A_TEST = ("cases", "positions", "weights", "offset", "n_cases")  # what is kept of a test without a policy


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Tests that were made without some of the tuning policies, and how far off they are on these.

    Attributes
    ----------
    tests : tuple of EfficientTest
        For results in the file's units.
    errors : dict of str to ndarray of shape (n_targets, n_policies)
        By estimator: what the test without a policy says of it, less its full score. Policies come test by test.
    counts : tuple of int
        How many policies each test was made without; every policy was left out once.
    full : ndarray of shape (n_targets, n_policies), or None
        Full scores, in the order of the errors; None where they are not known, as in tests that were read from a file.
    made_by : str or None
        Who stood in for the backend of the test with all policies, if anybody did.
    """

    tests: tuple[EfficientTest, ...]
    errors: Mapping[str, FloatArray]
    counts: tuple[int, ...]
    full: FloatArray | None = None
    made_by: str | None = None

    @property
    def words(self) -> str:
        """How policies were left out, for people, and by which method if that is not the test's own."""
        one_by_one = max(self.counts) == 1
        way = "each policy left out in turn" if one_by_one else f"policies left out in {len(self.counts)} folds"
        return way if self.made_by is None else f"{way} by {self.made_by}"

    def mean_error(self, method: str = WEIGHTS) -> float:
        """By how much scores of policies that were left out are off, on average over policies and targets."""
        return float(np.abs(self.errors[method]).mean())

    def worst_error(self, method: str = WEIGHTS) -> float:
        """By how much they are off at worst."""
        return float(np.abs(self.errors[method]).max())

    def scores(self, method: str = WEIGHTS) -> list[tuple[FloatArray, FloatArray]]:
        """For every target the full scores, and what was said of each policy by a test without it; none if unknown."""
        return [] if self.full is None else list(zip(self.full, self.full + self.errors[method], strict=True))


def leave_out(
    results: FloatArray,
    size: int,
    purpose: Purpose,
    *,
    backend: str,
    options: Mapping[str, Any],
    most_seconds: float | None = None,
    seconds_each: float = 0.0,
    estimators: Sequence[str] = ESTIMATORS,
    splits: Sequence[Split] | None = None,
) -> LeftOut | None:
    """Make tests without each policy in turn; in folds where that takes too long; None if they do, too.

    Parameters
    ----------
    results : ndarray of shape (n_cases, n_policies)
        In the file's units.
    size : int
    purpose : Purpose
    backend, options
        As for `solve`.
    most_seconds : float, optional
        That each of the two ways may take. Without it, policies are left out one by one if they are few
        (`splits.MOST_LEFT_OUT_ONE_BY_ONE`), and in folds if they are many.
    seconds_each : float
        What making the test with all policies took, if that is known: what is sure to take too long is not begun.
    estimators : sequence of str
        Whose errors are worked out.
    splits : sequence of Split, optional
        Who is left out together, in the place of both ways.

    Raises
    ------
    KeyboardInterrupt
        If an interrupt comes: half of the tests say nothing.
    """
    n_policies = results.shape[1]
    ways = [alike_one_by_one(n_policies)]
    if n_policies > FOLDS:
        ways.append(alike(n_policies, folds=FOLDS, replicas=1, seed=SEED))
    if most_seconds is None:
        ways = ways[:1] if n_policies <= MOST_LEFT_OUT_ONE_BY_ONE else ways[1:]
    else:
        ways = [way for way in ways if seconds_each * len(way) <= SLOW_START * most_seconds]
    make = partial(_made_without, results, size, purpose, backend, options, estimators, most_seconds)
    return next((found for found in map(make, ways if splits is None else [splits]) if found is not None), None)


def _made_without(
    results: FloatArray,
    size: int,
    purpose: Purpose,
    backend: str,
    options: Mapping[str, Any],
    estimators: Sequence[str],
    most_seconds: float | None,
    splits: Sequence[Split],
) -> LeftOut | None:
    """Make a test without the policies of each split; None if that would take longer than it may."""
    started = time.monotonic()
    tests: list[EfficientTest] = []
    errors: list[dict[str, FloatArray]] = []
    scores: list[FloatArray] = []
    for done, split in enumerate(splits, start=1):
        problem, scale = purpose.problem(results[:, split.tuning(results.shape[1])], size)
        solution = solve(problem, backend, **options)
        if solution.limit is Limit.INTERRUPT:
            raise KeyboardInterrupt
        if solution.test is None or solution.limit is not None:
            return None
        test, new = solution.test.in_file_units(scale), results[:, list(split.held_out)]
        full = full_scores(problem.targets, new)
        tests.append(test)
        scores.append(full)
        rows = test.rows_of(new)
        errors.append({method: test.estimated(rows, method) - full for method in estimators})
        elapsed = time.monotonic() - started
        if done == 1 and most_seconds is not None and most_seconds > elapsed:
            continue  # the first one may have had kernels to load
        if most_seconds is not None and elapsed * len(splits) / done > most_seconds:
            return None
    return replace(_left_out(tests, errors), full=np.hstack(scores))


def _left_out(tests: Sequence[EfficientTest], errors: Sequence[Mapping[str, FloatArray]]) -> LeftOut:
    """Tests, with the errors of each on what it was made without, put together."""
    together = {method: np.hstack([each[method] for each in errors]) for method in errors[0]}
    return LeftOut(tuple(tests), together, tuple(int(next(iter(each.values())).shape[1]) for each in errors))


class Intervals(NamedTuple):
    """Scores of new policies with the ends of their intervals.

    Attributes
    ----------
    scores, low, high : ndarray of shape (n_new,)
    n_applied : int
        How many tests without a policy were applied to the new results: all of them by jackknife+, none otherwise.
    """

    scores: FloatArray
    low: FloatArray
    high: FloatArray
    n_applied: int


def intervals(
    test: EfficientTest,
    left_out: LeftOut,
    new_results: "ArrayLike | Named",
    *,
    method: str = WEIGHTS,
    level: float = 0.9,
    target: int = 0,
    kind: str = JACKKNIFE,
) -> Intervals:
    """Scores of new policies, and intervals that hold the full score with about this probability.

    An end is infinite where there are too few tuning policies for the level. The `kind` is "jackknife", which needs
    results on the test's own cases alone, or "jackknife+", which needs those on all cases of `left_out.tests`, and the
    test's own weights as the method.
    """
    if not 0 < level < 1:
        raise ProblemError(f"`level` must lie between 0 and 1, got {level:g}.")
    check_kind(kind, method)
    scores = np.asarray(test.estimate(new_results, method, target=target))
    radii = np.abs(left_out.errors[method][target])
    if kind == JACKKNIFE:
        centres, n_applied = np.repeat(scores[None], len(radii), axis=0), 0
    else:
        by_test = _scores_by_others(test, left_out, new_results)
        centres, n_applied = np.repeat(by_test, left_out.counts, axis=0), len(by_test)
    below, above = centres - radii[:, None], centres + radii[:, None]
    return Intervals(scores, -_order_statistic(-below, level), _order_statistic(above, level), n_applied)


def check_kind(kind: str, method: str = WEIGHTS) -> None:
    """Refuse a kind of intervals that is not known, or that this estimator cannot have."""
    if kind not in KINDS:
        raise ProblemError(unknown("kind of intervals", kind, KINDS))
    if kind == JACKKNIFE_PLUS and method != WEIGHTS:
        raise ProblemError(
            f"{kind} intervals are for the test's own weights: tests without a policy do not keep what the estimator "
            f"{method!r} learns from. Ask for {JACKKNIFE} intervals."
        )


def _scores_by_others(test: EfficientTest, left_out: LeftOut, new_results: "ArrayLike | Named") -> FloatArray:
    """Scores of new policies by each test without some policies: of shape (n_tests, n_new)."""
    table = one_column_each("new_results", new_results)
    used = dict.fromkeys(name for other in left_out.tests for name in other.case_names)
    known = _cases_with_results(test, table, used)
    missing = [name for name in used if name not in known]
    if missing:
        can_be_applied = sum(known.issuperset(other.case_names) for other in left_out.tests)
        raise ProblemError(
            f"{JACKKNIFE_PLUS} intervals need results on the cases of all {len(left_out.tests):,} tests that were made "
            f"without some policies; {can_be_applied:,} can be applied, as results on {some_of(missing)} are missing. "
            f"Add them, or ask for {JACKKNIFE} intervals, which need the test's own cases alone."
        )
    return np.array([other.in_table_units().weighed(other.rows_of(table)) for other in left_out.tests])


def _cases_with_results(test: EfficientTest, table: "ArrayLike | pd.DataFrame", used: Iterable[str]) -> set[str]:
    """Which of these cases, by name, the new results have; an array has all cases of the full test, or the test's."""
    if is_frame(table):
        return {str(name) for name in table.index[table.notna().all(axis=1)]}
    return set(used) if len(np.asarray(table)) > len(test.cases) else set(test.case_names)


def _order_statistic(rows: FloatArray, level: float) -> FloatArray:
    """The value of rank ⌈level · (n + 1)⌉ in every column of n; infinite if that is beyond n."""
    rank = math.ceil(round(level * (len(rows) + 1), 9))
    if rank > len(rows):
        return np.full(rows.shape[1], np.inf)
    value: FloatArray = np.sort(rows, axis=0)[rank - 1]
    return value


def rank_intervals(low: FloatArray, high: FloatArray) -> list[tuple[int, int]]:
    """The best and the worst rank that each policy may have, if every score may be anywhere in its interval.

    Examples
    --------
    >>> rank_intervals(np.array([0.8, 0.5, 0.1]), np.array([0.9, 0.85, 0.2]))
    [(1, 2), (1, 2), (3, 3)]
    """
    surely_better = (low[:, None] > high[None]).sum(axis=0)
    surely_worse = (high[:, None] < low[None]).sum(axis=0)
    return [(1 + int(better), len(low) - int(worse)) for better, worse in zip(surely_better, surely_worse, strict=True)]


def pairs_not_told_apart(low: FloatArray, high: FloatArray) -> list[tuple[int, int]]:
    """Pairs of policies whose intervals overlap."""
    apart = (low[:, None] > high[None]) | (high[:, None] < low[None])
    return [(one, other) for one in range(len(low)) for other in range(one + 1, len(low)) if not apart[one, other]]


def beyond_what_was_seen(test: EfficientTest, new_results: "ArrayLike | pd.DataFrame") -> list[str | None]:
    """For every new policy, in what it is unlike all tuning policies; None where nothing shows.

    A full score beyond theirs by AIPW, the estimator that may go there, or results on the test's cases that are farther
    from every tuning policy than any tuning policy is from all others. Whoever has the results of a tuning policy, to
    the last bit, is like that one, whatever AIPW says.
    """
    test = test.in_table_units()
    if test.tuning is None:
        raise ProblemError("what tuning policies were like is not known of this test.")
    known, rows = test.tuning.results, test.rows_of(new_results)
    estimates = test.estimates_by_target(new_results, "aipw")
    lowest, highest = test.tuning.full_scores.min(axis=1), test.tuning.full_scores.max(axis=1)
    farthest = _nearest(known, known, apart_from_itself=True).max() if known.shape[1] > 1 else np.inf
    distances = _nearest(known, rows, apart_from_itself=False)
    found: list[str | None] = []
    for policy in range(rows.shape[1]):
        if distances[policy] == 0:
            found.append(None)
        elif (estimates[:, policy] > highest).any():
            found.append("stronger than all tuning policies")
        elif (estimates[:, policy] < lowest).any():
            found.append("weaker than all tuning policies")
        elif distances[policy] > farthest:
            found.append("results unlike those of any tuning policy")
        else:
            found.append(None)
    return found


def known_policies(test: EfficientTest, new_results: "pd.DataFrame") -> str | None:
    """What to say if some of the policies are called like tuning policies; None if none are, or nobody knows."""
    tuning = test.in_table_units().tuning
    if tuning is None:
        return None
    place = {name: number for number, name in enumerate(tuning.policy_names)}
    columns = [str(name) for name in new_results.columns]
    shared = [(column, place[name]) for column, name in enumerate(columns) if name in place]
    if not shared:
        return None
    rows = test.rows_of(new_results)
    allowed = SAME_RESULT * float(np.abs(tuning.results).max())
    apart = [float(np.abs(rows[:, column] - tuning.results[:, known]).max()) for column, known in shared]
    changed = [column for (column, _), distance in zip(shared, apart, strict=True) if distance > allowed]
    count = f"{len(shared):,} of {len(columns):,} policies are called like policies that the test was tuned on"
    if changed:
        return (
            f"{count}, and {columns[changed[0]]!r} had other results then: if these are the same policies, see whether "
            "the units are the same."
        )
    return f"{count}, and have the same results: scores and intervals are meant for others."


def _nearest(known: FloatArray, new: FloatArray, *, apart_from_itself: bool) -> FloatArray:
    """The distance of each new policy to the nearest known one."""
    distances = np.linalg.norm(known[:, :, None] - new[:, None, :], axis=0)  # (known, new)
    if apart_from_itself:
        np.fill_diagonal(distances, np.inf)
    nearest: FloatArray = distances.min(axis=0)
    return nearest


def warning(left_out: LeftOut, tuned_mean: float) -> str | None:
    """What to say where a test follows its tuning policies more closely than it follows others; None otherwise."""
    mean = left_out.mean_error()
    if mean <= TOO_FAR_BEHIND * tuned_mean or mean == 0:
        return None
    best = min(ESTIMATORS, key=left_out.mean_error)
    other = "" if best == WEIGHTS else f", or score with --estimator {best} (about {left_out.mean_error(best):.3g})"
    return (
        f"the test follows its tuning policies too closely: off by {tuned_mean:.3g} on them and by {mean:.3g} on "
        f"policies that it was not tuned on. Take fewer cases, --offset or --regularise auto{other}; `rposst validate` "
        "compares."
    )


def left_out_record(left_out: LeftOut) -> list[dict[str, Any]]:
    """The tests without some policies and their errors on these, as a test's file has them.

    Errors are by target; if a test was made without several policies, by target and policy.
    """
    ends = np.cumsum(left_out.counts)
    made_by = {} if left_out.made_by is None else {"made_by": left_out.made_by}
    return [
        {
            **made_by,
            **{name: value for name, value in test.without_tuning().to_dict().items() if name in OF_A_TEST},
            "errors": {
                method: (found[:, end - 1] if count == 1 else found[:, end - count : end]).tolist()
                for method, found in left_out.errors.items()
            },
        }
        for test, count, end in zip(left_out.tests, left_out.counts, ends.tolist(), strict=True)
    ]


def read_left_out(path: Path) -> LeftOut | None:
    """The tests without some policies that a test's file has, if it has any."""
    record = read_record(path, TEST_FORMAT, "test").get("left_out")
    if record is None:
        return None
    try:
        tests = [EfficientTest.from_dict({**each, "format": TEST_FORMAT}) for each in record]
        errors = [{method: _errors_by_target(each["errors"][method]) for method in ESTIMATORS} for each in record]
        made_by = record[0].get("made_by")
        return replace(_left_out(tests, errors), made_by=None if made_by is None else str(made_by))
    except (ProblemError, ValueError, LookupError, TypeError, AttributeError, OverflowError):
        raise ProblemError(f'{named(path)}: "left_out" is not what was written there.') from None


def _errors_by_target(record: object) -> FloatArray:
    """Errors of shape (n_targets, n_policies), as they are in a file."""
    errors = np.array(record, dtype=np.float64)
    by_target = errors[:, None] if errors.ndim == 1 else errors
    if by_target.ndim != 2 or not by_target.size or not np.isfinite(by_target).all():
        raise ValueError("no numbers")
    return by_target
