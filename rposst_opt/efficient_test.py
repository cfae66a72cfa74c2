"""The product: a few test cases with weights, which can score any policy."""

import math
import operator
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rposst_opt.arrays import FloatArray, as_numbers, one_column_each, read_only
from rposst_opt.errors import ProblemError, warn
from rposst_opt.estimators import WEIGHTS, TuningScores, learned_estimates
from rposst_opt.results import Scale, full_scores, is_frame, off_scale

if TYPE_CHECKING:
    import pandas as pd

WEIGHT_TOLERANCE = 1e-6  # by how much a solver's weights may miss the simplex before they are refused


@dataclass(frozen=True, eq=False)
class EfficientTest:
    """Test cases and their weights (the paper's ⟨τ, σ̂⟩).

    Parameters
    ----------
    cases : sequence of int
        Positions in the full test; they are kept in ascending order, each with its weight.
    weights : array of shape (n_chosen,)
        On the simplex. Misses up to `WEIGHT_TOLERANCE`, as solvers make them, are mended; larger ones are refused.
    case_names : sequence of str
        The chosen cases' names; their positions where they have none.
    n_cases : int
        How many cases the full test has.
    offset : float, optional
        What is added to every score. With an offset the weights may sum to less than one (`Problem`, `offset`).
    tuning : TuningScores, optional
        What is known of the tuning policies, for estimators that learn from them.
    scale : Scale, optional
        The range of results that the test was made for, if that is known: `Problem.from_results` and files know it.
    is_rescaled : bool
        Whether offset and tuning are in units in which that range is [0, 1]. Scores are in the table's units anyway.

    Examples
    --------
    >>> test = EfficientTest(cases=[2, 0], weights=[0.25, 0.75], case_names=["c", "a"], n_cases=3)
    >>> test.cases, test.case_names
    ((0, 2), ('a', 'c'))
    >>> test.score([[4.0, 0.0], [9.0, 9.0], [0.0, 8.0]])
    array([3., 2.])
    """

    cases: tuple[int, ...]
    weights: FloatArray
    case_names: tuple[str, ...]
    n_cases: int
    offset: float
    tuning: TuningScores | None = field(repr=False)
    scale: Scale | None
    is_rescaled: bool

    def __init__(
        self,
        *,
        cases: Sequence[int],
        weights: ArrayLike,
        n_cases: int,
        case_names: Sequence[str] | None = None,
        offset: float | None = None,
        tuning: TuningScores | None = None,
        scale: Scale | None = None,
        is_rescaled: bool = False,
    ) -> None:
        try:
            positions = [operator.index(case) for case in cases]
        except TypeError:
            raise ProblemError(f"the cases of a test must be whole numbers, got {list(cases)}.") from None
        names = [str(case) for case in positions] if case_names is None else [str(name) for name in case_names]
        simplex = _on_the_simplex(weights, may_be_less=offset is not None)
        if offset is not None and not math.isfinite(offset):
            raise ProblemError(f"the offset of a test must be a finite number, got {offset}.")
        if not len(positions) == len(simplex) == len(names):
            raise ProblemError(
                f"a test needs one weight and one name per case, got {len(positions)} cases, {len(simplex)} weights "
                f"and {len(names)} names."
            )
        if len(set(positions)) < len(positions):
            raise ProblemError(f"a test must not use a case twice, got cases {positions}.")
        if not all(0 <= case < n_cases for case in positions):
            raise ProblemError(f"the cases of a test must lie in 0..{n_cases - 1}, got {positions}.")
        order = sorted(range(len(positions)), key=positions.__getitem__)
        object.__setattr__(self, "cases", tuple(positions[i] for i in order))
        object.__setattr__(self, "weights", read_only(simplex[order]))
        object.__setattr__(self, "case_names", tuple(names[i] for i in order))
        object.__setattr__(self, "n_cases", int(n_cases))
        object.__setattr__(self, "offset", 0.0 if offset is None else float(offset))
        if tuning is not None and len(tuning.results) != len(positions):
            raise ProblemError(f"`tuning` must have a row per case, got {len(tuning.results)} for {len(positions)}.")
        object.__setattr__(self, "tuning", None if tuning is None else tuning.of_cases(order))
        if is_rescaled and scale is None:
            raise ProblemError("a test that is rescaled needs its `scale`.")
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "is_rescaled", bool(is_rescaled))

    def full_weights(self) -> FloatArray:
        """The weights over all cases of the full test, zero where a case was not chosen."""
        full = np.zeros(self.n_cases)
        full[list(self.cases)] = self.weights
        return full

    def score(self, new_results: "ArrayLike | pd.DataFrame", *, strict: bool = False) -> FloatArray:
        """One score per policy, in the units of the results.

        Parameters
        ----------
        new_results : DataFrame, or array of shape (n_cases, n_policies) or (n_chosen, n_policies)
            A DataFrame is read by the names in its index. An array has a row for every case of the full test, or for
            the chosen cases alone, in their order. A Series or a dict has one policy's results, by case.
        strict : bool
            Whether results that seem to be on another scale than the test was made for are refused. There is a
            warning otherwise, unless that scale is not known.
        """
        rows = self.rows_of(new_results)
        self._check_scale(rows, strict=strict)
        return self.in_table_units().weighed(rows)

    def weighed(self, rows: FloatArray) -> FloatArray:
        """Scores from the results on the test's cases alone, in the units of its own offset, whatever they are."""
        # Not a matrix product: that may round equal columns differently, and equal policies must rank alike.
        scores: FloatArray = self.offset + (self.weights[:, None] * rows).sum(axis=0)
        return scores

    def _check_scale(self, rows: FloatArray, *, strict: bool) -> None:
        """Warn of results that are not on the scale that the test was made for; or refuse them."""
        if self.scale is None:
            if strict:
                raise ProblemError("the test does not know for what range of results it was made: leave `strict` out.")
            return
        tuning = self.in_table_units().tuning
        message = off_scale(self.scale, rows, None if tuning is None else tuning.results)
        if message is not None and strict:
            raise ProblemError(message)
        if message is not None:
            warn(message)

    def estimate(
        self,
        new_results: "ArrayLike | pd.DataFrame",
        method: str = WEIGHTS,
        *,
        target: int = 0,
        strict: bool = False,
    ) -> FloatArray:
        """The full test's score of every policy, as well as it can be told from the test's cases.

        Parameters
        ----------
        new_results : DataFrame or array
            As for `score`.
        method : str
            One of `rposst_opt.estimators.ESTIMATORS`: the test's own weights, or what learns from tuning policies.
        target : int
            Which target's score is estimated, by its row in `Problem.targets`; the weights' score is the same for all.
        strict : bool
            As for `score`.
        """
        estimates = self.estimates_by_target(new_results, method, strict=strict)
        if not 0 <= target < len(estimates):
            raise ProblemError(f"`target` must lie in 0..{len(estimates) - 1}, got {target}.")
        chosen: FloatArray = estimates[target]
        return chosen

    def estimates_by_target(
        self, new_results: "ArrayLike | pd.DataFrame", method: str = WEIGHTS, *, strict: bool = False
    ) -> FloatArray:
        """The estimates for every target (row) of every policy (column)."""
        rows, test = self.rows_of(new_results), self.in_table_units()
        self._check_scale(rows, strict=strict)
        if method == WEIGHTS:
            n_targets = 1 if test.tuning is None else len(test.tuning.full_scores)
            return np.repeat(test.weighed(rows)[None], n_targets, axis=0)
        return learned_estimates(method, test.tuning, rows)

    def tuned_on(
        self, results: FloatArray, targets: FloatArray, *, scale: Scale | None = None, is_rescaled: bool = False
    ) -> "EfficientTest":
        """The same test, with what estimators learn from the tuning policies' results on all cases."""
        tuning = TuningScores(results[list(self.cases)], full_scores(targets, results))
        return self._with(tuning=tuning, **({} if scale is None else {"scale": scale, "is_rescaled": is_rescaled}))

    @property
    def has_offset(self) -> bool:
        """Whether a score is more than an average of results."""
        return self.offset != 0.0 or abs(float(self.weights.sum()) - 1.0) > WEIGHT_TOLERANCE

    def in_file_units(self, scale: Scale) -> "EfficientTest":
        """The same test for results that are not rescaled: an offset depends on units, weights do not.

        A test that knows its scale, and is in the table's units already, stays as it is.
        """
        if self.scale is not None and not self.is_rescaled:
            return self
        tuning = None if self.tuning is None else self.tuning.in_file_units(scale)
        known = {"scale": scale, "is_rescaled": False} if self.is_rescaled else {}
        if not self.has_offset:
            return self._with(tuning=tuning, **known)
        missing = 1.0 - float(self.weights.sum())
        offset = scale.low * missing + scale.error_in_file_units(self.offset)
        return self._with(offset=offset, tuning=tuning, **known)

    def in_table_units(self) -> "EfficientTest":
        """The same test with offset and tuning in the units of the table that it was made of, as far as it knows."""
        return self.in_file_units(self.scale) if self.scale is not None and self.is_rescaled else self

    def offset_on(self, scale: Scale | None) -> float:
        """The offset in units that were rescaled so, if the test knows in which units it is; else as it stands."""
        if scale is None or self.scale is None or self.is_rescaled or not self.has_offset:
            return self.offset
        missing = 1.0 - float(self.weights.sum())
        return float(scale.error_from_file_units(np.array(self.offset - scale.low * missing)))

    def _with(self, **changes: object) -> "EfficientTest":
        """A copy in which some fields are others; the weights keep every bit."""
        changed = copy(self)
        for name, value in changes.items():
            object.__setattr__(changed, name, value)
        return changed

    def rows_of(self, new_results: "ArrayLike | pd.DataFrame") -> FloatArray:
        """The results on the test's cases, in their order."""
        new_results = one_column_each("new_results", new_results)
        rows = self._rows_by_name(new_results) if is_frame(new_results) else self._rows_by_position(new_results)
        if not np.isfinite(rows).all():
            raise ProblemError("`new_results` must be finite for the cases of the test.")
        return rows

    def _rows_by_name(self, frame: "pd.DataFrame") -> FloatArray:
        names = [str(name) for name in frame.index]
        missing = [name for name in self.case_names if name not in names]
        if missing:
            raise ProblemError(
                f"the results lack {', '.join(map(repr, missing))}, which the test needs: add a row for each."
            )
        repeated = [name for name in self.case_names if names.count(name) > 1]
        if repeated:
            raise ProblemError(f"the results have test case {repeated[0]!r} more than once: keep one row for each.")
        return as_numbers("new_results", frame.iloc[[names.index(name) for name in self.case_names]])

    def _rows_by_position(self, array: ArrayLike) -> FloatArray:
        rows = as_numbers("new_results", array)
        if rows.ndim == 2 and len(rows) == self.n_cases:
            return rows[list(self.cases)]
        if rows.ndim == 2 and len(rows) == len(self.cases):
            return rows
        raise ProblemError(
            f"`new_results` must have {self.n_cases} rows (all cases) or {len(self.cases)} (the chosen ones) and a "
            f"column per policy, got shape {rows.shape}."
        )


def _on_the_simplex(weights: ArrayLike, *, may_be_less: bool) -> FloatArray:
    """Weights without what rounding and solvers' tolerances have done to them."""
    simplex = as_numbers("weights", weights)
    if simplex.ndim != 1 or not np.isfinite(simplex).all():
        raise ProblemError(f"the weights of a test must be a list of finite numbers, got {simplex.tolist()}.")
    with np.errstate(over="ignore"):
        total = simplex.sum()
    excess = total - 1 if may_be_less else abs(total - 1)
    if (simplex < -WEIGHT_TOLERANCE).any() or excess > WEIGHT_TOLERANCE:
        at_most = "at most 1" if may_be_less else "1"
        raise ProblemError(f"the weights of a test must be non-negative and sum to {at_most}, got {simplex.tolist()}.")
    simplex = np.maximum(simplex, 0.0)
    if not may_be_less or simplex.sum() > 1:
        simplex /= simplex.sum()
    return simplex
