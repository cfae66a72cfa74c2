"""The product: a few test cases with weights, which can score any policy, and the file that keeps it."""

import math
import operator
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from rposst_opt import __version__
from rposst_opt.arrays import (
    SUM_ROUNDING,
    WEIGHT_TOLERANCE,
    FloatArray,
    Named,
    as_numbers,
    by_policy,
    is_frame,
    is_number,
    is_position,
    on_the_simplex,
    one_column_each,
    read_only,
    rows_by_name,
)
from rposst_opt.errors import ProblemError, warn
from rposst_opt.estimators import WEIGHTS, TuningScores, learned_estimates
from rposst_opt.results import Scale, full_scores, off_scale
from rposst_opt.text_files import as_json, checked_record, named, read_record, write_atomically
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.digests import is_digest
from rposst_opt.values.showing import brief_number, html_table, listed, quoted

if TYPE_CHECKING:
    import pandas as pd

TEST_FORMAT = "rposst-test/1"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where a test comes from, as far as its file says.

    Attributes
    ----------
    package_version : str or None
        The version of this package that wrote the file.
    table_sha256 : str or None
        `rposst_opt.values.digests.results_digest` of the table of results that it was chosen from, as it was read.
    problem_sha256 : str or None
        `rposst_opt.certificate.problem_digest` of the problem that it is an answer to.
    """

    package_version: str | None = None
    table_sha256: str | None = None
    problem_sha256: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class EfficientTest(ByValue):
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
        The interval of the table's own units that was mapped to [0, 1], or the range of results if none was: what the
        test was made for. None where that is not known; `Problem.from_results` and files know it.
    is_rescaled : bool
        Whether offset and tuning are in units in which that interval is [0, 1]. Scores are in the table's units anyway.
    provenance : Provenance, optional
        Where the test comes from, if it was read from a file. Tests that differ in this alone are equal.

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
    tuning: TuningScores | None
    scale: Scale | None
    is_rescaled: bool
    provenance: Provenance | None = field(default=None, compare=False)

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
        provenance: Provenance | None = None,
    ) -> None:
        try:
            positions = [operator.index(case) for case in cases]
        except TypeError:
            raise ProblemError(f"the cases of a test must be whole numbers, got {list(cases)}.") from None
        names = [str(case) for case in positions] if case_names is None else [str(name) for name in case_names]
        simplex = on_the_simplex(weights, may_be_less=offset is not None)
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
        object.__setattr__(self, "provenance", provenance)

    def full_weights(self) -> FloatArray:
        """The weights over all cases of the full test, zero where a case was not chosen."""
        full = np.zeros(self.n_cases)
        full[list(self.cases)] = self.weights
        return full

    @overload
    def score(self, new_results: Named, *, strict: bool = ...) -> "pd.Series[float]": ...

    @overload
    def score(self, new_results: ArrayLike, *, strict: bool = ...) -> FloatArray: ...

    def score(self, new_results: "ArrayLike | Named", *, strict: bool = False) -> "FloatArray | pd.Series[float]":
        """One score per policy, in the units of the results.

        Parameters
        ----------
        new_results : DataFrame, or array of shape (n_cases, n_policies) or (n_chosen, n_policies)
            A DataFrame is read by the names in its index. An array has a row for every case of the full test, or for
            the chosen cases alone, in their order. A Series or a dict has one policy's results, by case.
        strict : bool
            Whether results that seem to be on another scale than the test was made for are refused. There is a
            warning otherwise, unless that scale is not known.

        Returns
        -------
        Series or ndarray of shape (n_policies,)
            A Series for what has names, with those of the policies (the columns of a DataFrame) as its index; an array
            for an array.
        """
        rows = self.rows_of(new_results)
        self._check_scale(rows, strict=strict)
        return by_policy(self.in_table_units().weighed(rows), new_results)

    def weighed(self, rows: FloatArray) -> FloatArray:
        """Scores from the results on the test's cases alone, in the units of its own offset, whatever they are."""
        # Not a matrix product: that may round equal columns differently, and equal policies must rank alike.
        scores: FloatArray = self.offset + (self.weights[:, None] * rows).sum(axis=0)
        return scores

    def estimated(self, rows: FloatArray, method: str = WEIGHTS) -> FloatArray:
        """Estimates for every target (row) of every policy (column) from what `weighed` takes, in the same units."""
        if method != WEIGHTS:
            return learned_estimates(method, self.tuning, rows)
        n_targets = 1 if self.tuning is None else len(self.tuning.full_scores)
        return np.repeat(self.weighed(rows)[None], n_targets, axis=0)

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

    @overload
    def estimate(
        self, new_results: Named, method: str = ..., *, target: int = ..., strict: bool = ...
    ) -> "pd.Series[float]": ...

    @overload
    def estimate(
        self, new_results: ArrayLike, method: str = ..., *, target: int = ..., strict: bool = ...
    ) -> FloatArray: ...

    def estimate(
        self, new_results: "ArrayLike | Named", method: str = WEIGHTS, *, target: int = 0, strict: bool = False
    ) -> "FloatArray | pd.Series[float]":
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

        Returns
        -------
        Series or ndarray of shape (n_policies,)
            As for `score`.
        """
        estimates = self.estimates_by_target(new_results, method, strict=strict)
        if not 0 <= target < len(estimates):
            raise ProblemError(f"`target` must lie in 0..{len(estimates) - 1}, got {target}.")
        return by_policy(estimates[target], new_results)

    def estimates_by_target(
        self, new_results: "ArrayLike | Named", method: str = WEIGHTS, *, strict: bool = False
    ) -> FloatArray:
        """The estimates for every target (row) of every policy (column)."""
        rows = self.rows_of(new_results)
        self._check_scale(rows, strict=strict)
        return self.in_table_units().estimated(rows, method)

    def tuned_on(
        self,
        results: FloatArray,
        targets: FloatArray,
        policy_names: Sequence[str] = (),
        *,
        known_scores: FloatArray | None = None,
        scale: Scale | None = None,
        is_rescaled: bool = False,
    ) -> "EfficientTest":
        """The same test, with what estimators learn from the tuning policies' results on all cases."""
        scores = full_scores(targets, results) if known_scores is None else known_scores
        tuning = TuningScores(results[list(self.cases)], scores, tuple(policy_names))
        return self._with(tuning=tuning, **({} if scale is None else {"scale": scale, "is_rescaled": is_rescaled}))

    def without_tuning(self) -> "EfficientTest":
        """The same test, without what estimators learn from."""
        return self._with(tuning=None)

    @property
    def has_offset(self) -> bool:
        """Whether a score is more than an average of results."""
        return self.offset != 0.0 or abs(float(self.weights.sum()) - 1.0) > WEIGHT_TOLERANCE

    def in_file_units(self, scale: Scale) -> "EfficientTest":
        """The same test, with this scale, for results that are not rescaled: offsets depend on units, weights do not.

        A test that knows its scale, and is in the table's units already, stays as it is. Scale(0, 1) stands for results
        that were not rescaled, as in `Problem.scale`, and tells nothing of their range.
        """
        if self.scale is not None and not self.is_rescaled:
            return self
        tuning = None if self.tuning is None else self.tuning.in_file_units(scale)
        is_known = self.is_rescaled or scale != Scale(0.0, 1.0)
        known = {"scale": scale, "is_rescaled": False} if is_known else {}
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

    def to_frame(self) -> "pd.DataFrame":
        """The cases with their positions in the full test and their weights; the index has their names."""
        import pandas as pd

        names = pd.Index(self.case_names, dtype=object, name="test_case")
        return pd.DataFrame({"position": list(self.cases), "weight": self.weights.tolist()}, index=names)

    def to_dict(self) -> dict[str, Any]:
        """The test as one JSON object of the format ``rposst-test/1``, in the units of the table.

        `from_dict` makes the same test of it, as `in_table_units` has it, to the last bit. What `rposst solve --out`
        writes has this and more.
        """
        if self.is_rescaled:
            return self.in_table_units().to_dict()
        repeated = [name for name in self.case_names if self.case_names.count(name) > 1]
        if repeated:
            raise ProblemError(f"a test that is written must have cases of different names, got {repeated[0]!r} twice.")
        sums_to_one = abs(float(self.weights.sum()) - 1.0) <= SUM_ROUNDING
        source = self.provenance or Provenance()
        hashes = {"table_sha256": source.table_sha256, "problem_sha256": source.problem_sha256}
        return {
            "format": TEST_FORMAT,
            "package_version": __version__,
            **{name: value for name, value in hashes.items() if value is not None},
            "cases": list(self.case_names),
            "positions": list(self.cases),
            "weights": self.weights.tolist(),
            **({} if sums_to_one and self.offset == 0.0 else {"offset": self.offset}),
            "n_cases": self.n_cases,
            **({} if self.scale is None else {"scale": asdict(self.scale)}),
            **({} if self.tuning is None else {"tuning": self.tuning.to_dict()}),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "EfficientTest":
        """The test that `to_dict` made, or `rposst solve`; without positions, they are those among the chosen cases."""
        record = checked_record(record, TEST_FORMAT, "test", "the test")
        cases, weights, offset = record.get("cases"), record.get("weights"), record.get("offset")
        if not isinstance(cases, list) or not all(isinstance(case, str) for case in cases):
            raise ProblemError('"cases" must be a list of names.')
        if not isinstance(weights, list) or not all(is_number(weight) for weight in weights):
            raise ProblemError('"weights" must be a list of numbers.')
        if offset is not None and not is_number(offset):
            raise ProblemError('"offset" must be a number.')
        if not cases:
            raise ProblemError("this test has no cases: its search ended without one.")
        if len(set(cases)) < len(cases):
            raise ProblemError('"cases" must differ from each other.')
        positions, n_cases = _places_in(record, len(cases))
        tuning, name = record.get("tuning"), "scale" if record.get("range") is None else "range"
        return cls(
            cases=positions,
            weights=read_only(as_numbers("weights", weights)),  # locked, so that they keep every bit
            case_names=cases,
            n_cases=n_cases,
            offset=offset,
            tuning=None if tuning is None else TuningScores.from_dict(tuning),
            scale=None if record.get(name) is None else Scale.from_dict(record[name], name),
            provenance=_provenance_in(record),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the test to a file that `load` and `rposst score` read: whole, or not at all."""
        write_atomically(Path(path), as_json(self.to_dict()) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "EfficientTest":
        """Read a test that `save` or `rposst solve --out` wrote."""
        record = read_record(Path(path), TEST_FORMAT, "test")
        try:
            return cls.from_dict(record)
        except ProblemError as error:
            raise ProblemError(f"{named(Path(path))}: {error}") from None

    def __repr__(self) -> str:
        pairs = zip(self.case_names, self.weights.tolist(), strict=True)
        weights = listed([f"{quoted(name)}: {weight:.4g}" for name, weight in pairs])
        offset = f", offset={brief_number(self.offset)}" if self.has_offset else ""
        offset += ", is_rescaled=True" if self.has_offset and self.is_rescaled else ""
        return f"EfficientTest({{{weights}}}, n_cases={self.n_cases}{offset})"

    def _repr_html_(self) -> str:
        title = f"{len(self.cases):,} of {self.n_cases:,} test cases"
        if self.has_offset:
            title += f", and an offset of {brief_number(self.in_table_units().offset)}"
        parts = zip(self.case_names, self.cases, self.weights.tolist(), strict=True)
        rows = [(name, str(case), f"{weight:.4g}") for name, case, weight in parts]
        return html_table(title, ("test case", "position", "weight"), rows)

    def _with(self, **changes: object) -> "EfficientTest":
        """A copy in which some fields are others; the weights keep every bit."""
        changed = object.__new__(type(self))
        for each in fields(self):
            object.__setattr__(changed, each.name, changes.get(each.name, getattr(self, each.name)))
        return changed

    def rows_of(self, new_results: "ArrayLike | Named") -> FloatArray:
        """The results on the test's cases, in their order."""
        table = one_column_each("new_results", new_results)
        rows = rows_by_name(table, self.case_names) if is_frame(table) else self._rows_by_position(table)
        if not np.isfinite(rows).all():
            raise ProblemError("`new_results` must be finite for the cases of the test.")
        return rows

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


def _places_in(record: Mapping[str, Any], count: int) -> tuple[list[int], int]:
    """Positions and the number of all cases, as a test's file has them; older files may lack positions."""
    positions, n_cases = record.get("positions"), record.get("n_cases")
    if positions is None:
        return list(range(count)), count
    if not isinstance(positions, list) or not all(is_position(position) for position in positions):
        raise ProblemError('"positions" must be a list of whole numbers from 0 on.')
    if not is_position(n_cases):
        raise ProblemError(f'"n_cases" must be the number of all cases, got {n_cases!r}.')
    if len(positions) != count:
        raise ProblemError(f'"positions" must have a number per case, got {len(positions)} for {count} cases.')
    return positions, n_cases


def _provenance_in(record: Mapping[str, Any]) -> Provenance | None:
    """What a test's file says of where it comes from, if it does."""
    said = {field.name: record.get(field.name) for field in fields(Provenance)}
    version = said["package_version"]
    if version is not None and not isinstance(version, str):
        raise ProblemError(f'"package_version" must be a text, got {version!r}.')
    for name in ("table_sha256", "problem_sha256"):
        if said[name] is not None and not is_digest(said[name]):
            raise ProblemError(f'"{name}" must be 64 hexadecimal digits, got {said[name]!r}.')
    return Provenance(**said) if any(value is not None for value in said.values()) else None
