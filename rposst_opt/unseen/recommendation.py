"""What follows from a validation, in a sentence: how many cases, which, which estimator, and what error to expect."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.unseen.procedures import SELECTIONS
from rposst_opt.unseen.splits import Kind
from rposst_opt.unseen.validation import WAY, Validation

if TYPE_CHECKING:
    import pandas as pd

AT_RANDOM = ("stratified", "random")
NOISE = 1.1  # ratios of errors up to this are noise
REGRESSIONS = ("ridge", "kernel")  # of the full score: they fall back to the tuning policies' mean, or go far beyond
SMALLEST = 1e-300  # an error of zero has no logarithm


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The way of making a test that did best on held-out policies of some kind.

    Attributes
    ----------
    kind : Kind
        What the held-out policies were like.
    size : int
    selection, estimator : str
    mean_error, worst_error : float
        On held-out policies, in the results' units.
    low, high : float
        A 95 % interval of the mean error.
    tuned_mean : float
        The mean error of the chosen tests' own weights on the policies that they were tuned on.
    random_error : float or None
        The least mean error with random cases of this size; None if none were tried.
    n_ways : int
        How many ways were tried with this size: the best of many looks a little better than it is.
    """

    kind: Kind
    size: int
    selection: str
    estimator: str
    mean_error: float
    worst_error: float
    low: float
    high: float
    tuned_mean: float
    random_error: float | None
    n_ways: int

    @property
    def random_would_do(self) -> bool:
        """Whether random cases are as good, up to noise."""
        return self.random_error is not None and self.random_error <= NOISE * self.mean_error

    @property
    def sentence(self) -> str:
        """All of it, for people."""
        cases = "1 case" if self.size == 1 else f"{self.size} cases"
        said = (
            f"{_EXPECTED[self.kind]}, take {cases} by {SELECTIONS[self.selection].label} and estimate by "
            f"{_ESTIMATED[self.estimator]}: it was off by {self.mean_error:.3g} on average in the trials"
        )
        if np.isfinite(self.low):
            said += f" (95 % interval {self.low:.3g} to {self.high:.3g})"
        said += f" and {self.worst_error:.3g} at worst"
        if self.n_ways > 1:
            said += f"; it was chosen out of {self.n_ways} ways, so expect a little more"
        if self.random_would_do and self.selection in AT_RANDOM:
            return said + "; nothing that chooses cases with more care did better."
        if self.random_would_do:
            return said + f"; random cases would do as well ({self.random_error:.3g})."
        return said + "."


_EXPECTED = {
    Kind.ALIKE: "For new policies like these",
    Kind.STRONGEST: "For new policies stronger than all of these",
    Kind.GROUPS: "For new policies of another group",
}
_ESTIMATED = {
    "weights": "the test's own weights",
    "ridge": "ridge regression",
    "residual": "their mean and ridge regression of the rest",
    "kernel": "kernel ridge regression",
    "aipw": "AIPW",
}


def recommend(validation: Validation, kind: Kind = Kind.ALIKE, *, size: int | None = None) -> Recommendation:
    """The way of making a test that is best for new policies of this kind, by what was found on held-out ones.

    For policies like the others it is the one with the least error. Other kinds have few held-out policies, and
    the least of many errors on few is luck: there it is the way that is never far behind the best, neither on them nor
    on policies like the others (the least larger ratio of its error to the best way's). Plain regressions of the full
    score are not recommended for them, whatever the few show: they are fitted to scores that the new ones lie beyond.
    On policies like the others they count as rivals like any other.

    Without a size, it is the least of those tried whose error is the least up to noise.
    """
    table = validation.summary[validation.summary["kind"] == kind.value]
    if size is not None:
        table = table[table["size"] == size]
    if table.empty:
        raise ProblemError(f"nothing was validated with held-out policies of the kind {kind.value!r} and this size.")
    if kind is not Kind.ALIKE and not table["estimator"].isin(REGRESSIONS).all():
        table = table[~table["estimator"].isin(REGRESSIONS)]
    best_of_sizes = [_best(validation, kind, of_size) for _, of_size in table.groupby("size")]
    least = min(way["mean_error"] for way in best_of_sizes)
    chosen = next(way for way in best_of_sizes if way["mean_error"] <= NOISE * least)
    return _recommendation(kind, chosen, table)


def _best(validation: Validation, kind: Kind, table: "pd.DataFrame") -> dict[str, Any]:
    """The best way among those of a kind and a size."""
    behind = _behind_the_best(validation, kind, table, among=table)
    if kind is not Kind.ALIKE:
        everything = validation.summary[
            (validation.summary["kind"] == Kind.ALIKE.value) & validation.summary["size"].isin(table["size"])
        ]
        behind = np.maximum(behind, _behind_the_best(validation, Kind.ALIKE, table, among=everything))
    return {str(name): value for name, value in table.iloc[int(behind.argmin())].items()}


def _behind_the_best(validation: Validation, kind: Kind, table: "pd.DataFrame", among: "pd.DataFrame") -> FloatArray:
    """The logarithm of the ratio of each way's error to that of the best way among some, on policies of this kind.

    Errors are geometric means over replicas, so that splits with large errors do not decide alone.
    """
    found = validation.by_replica[validation.by_replica["kind"] == kind.value]
    logarithms = found.assign(error=np.log(np.maximum(found["mean_error"], SMALLEST)))
    by_way = logarithms.groupby(WAY[1:])["error"].mean()
    errors, rivals = (
        by_way.reindex([tuple(way) for way in ways[WAY[1:]].itertuples(index=False)]).to_numpy()
        for ways in (table, among)
    )
    behind: FloatArray = np.nan_to_num(errors - np.nanmin(np.append(errors, rivals)))
    return behind


def _recommendation(kind: Kind, chosen: dict[str, Any], table: "pd.DataFrame") -> Recommendation:
    rivals = table[(table["size"] == chosen["size"]) & table["selection"].isin(AT_RANDOM)]
    return Recommendation(
        kind=kind,
        size=int(chosen["size"]),
        selection=str(chosen["selection"]),
        estimator=str(chosen["estimator"]),
        mean_error=float(chosen["mean_error"]),
        worst_error=float(chosen["worst_error"]),
        low=float(chosen["low"]),
        high=float(chosen["high"]),
        tuned_mean=float(chosen["tuned_mean"]),
        random_error=None if rivals.empty else float(rivals["mean_error"].min()),
        n_ways=int((table["size"] == chosen["size"]).sum()),
    )
