"""The arrays that everything here is made of: their types, and how values become arrays, or distributions."""

from typing import NamedTuple, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rposst_opt.errors import ProblemError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SUM_TOLERANCE = 1e-6  # by how much a distribution written in decimals may miss a sum of one
SUM_ROUNDING = 1e-14  # by how much one may miss it that was scaled before
WEIGHT_TOLERANCE = 1e-6  # by how much a solver's weights may miss the simplex before they are refused

ScalarType = TypeVar("ScalarType", bound=np.generic)


class Scenarios(NamedTuple):
    """The (policy, target) pairs that have a positive probability, policy by policy.

    Attributes
    ----------
    policies : ndarray of shape (n_scenarios,)
        The policy of each scenario, ascending.
    target_rows : ndarray of shape (n_scenarios,)
        The target of each scenario, by its row in `Problem.targets`.
    full_scores : ndarray of shape (n_scenarios,)
        The full test's score in each scenario (b in the formulas).
    probabilities : ndarray of shape (n_scenarios,)
    offsets : ndarray of shape (n_policies + 1,)
        The scenarios of policy j are ``offsets[j]:offsets[j + 1]``.
    """

    policies: IntArray
    target_rows: IntArray
    full_scores: FloatArray
    probabilities: FloatArray
    offsets: IntArray

    @classmethod
    def of(cls, probabilities: FloatArray, full_scores: FloatArray) -> "Scenarios":
        """Those of policies (rows of probabilities) and targets (columns), with full scores, a row per target."""
        policies, targets = np.nonzero(probabilities)
        return cls(
            policies=read_only(policies.astype(np.int64)),
            target_rows=read_only(targets.astype(np.int64)),
            full_scores=read_only(full_scores.T[policies, targets]),
            probabilities=read_only(probabilities[policies, targets]),
            offsets=read_only(np.searchsorted(policies, np.arange(len(probabilities) + 1)).astype(np.int64)),
        )


def read_only(array: NDArray[ScalarType]) -> NDArray[ScalarType]:
    """The same array, locked against writing."""
    array.setflags(write=False)
    return array


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value that was read from JSON is a number: true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_numbers(name: str, values: object) -> FloatArray:
    """A copy of the values as a contiguous array of floats, or an error with the argument's name."""
    try:
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"`{name}` must be a table of numbers: {error}.") from None


def is_scaled(values: object, total: object) -> bool:
    """Whether a distribution was made here before, and is to be left as it is, to the last bit.

    What is made here cannot be written to, and sums to one up to rounding. To scale it again would change its last
    bits, and a problem that was copied with other options would have other targets.
    """
    is_ours = isinstance(values, np.ndarray) and not values.flags.writeable
    return is_ours and bool((np.abs(np.asarray(total) - 1.0) <= SUM_ROUNDING).all())


def checked_targets(targets: ArrayLike | None, n_cases: int) -> FloatArray:
    """Target distributions, one per row, that sum to one exactly; the uniform one if none are given."""
    if targets is None:
        return read_only(np.full((1, n_cases), 1.0 / n_cases))
    rows = as_numbers("targets", targets)
    if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != n_cases:
        raise ProblemError(f"`targets` must have one row per target and {n_cases} columns, got shape {rows.shape}.")
    for number, row in enumerate(rows):
        check_distribution(f"row {number} of `targets`", row)
    totals = rows.sum(axis=1, keepdims=True)
    return read_only(rows if is_scaled(targets, totals) else rows / totals)


def checked_probabilities(probabilities: ArrayLike | None, shape: tuple[int, int]) -> FloatArray:
    """Probabilities of policies (rows) and targets (columns) that sum to one exactly; all alike if none are given."""
    if probabilities is None:
        return read_only(np.full(shape, 1.0 / (shape[0] * shape[1])))
    table = as_numbers("probabilities", probabilities)
    if table.shape != shape:
        raise ProblemError(
            f"`probabilities` must have a row per policy and a column per target, {shape[0]} x {shape[1]}, "
            f"got shape {table.shape}."
        )
    check_distribution("`probabilities`", table)
    total = table.sum()
    return read_only(table if is_scaled(probabilities, total) else table / total)


def checked_noise(noise: ArrayLike | None, n_cases: int) -> FloatArray | None:
    """The standard error of every case's result; one number stands for all of them."""
    if noise is None:
        return None
    errors = as_numbers("noise", noise)
    if errors.shape not in {(), (n_cases,)}:
        raise ProblemError(f"`noise` must be a number or {n_cases} of them, one per test case, got {errors.shape}.")
    if not np.isfinite(errors).all() or (errors < 0).any():
        wrong = errors[~(np.isfinite(errors) & (errors >= 0))].flat[0]
        raise ProblemError(f"`noise` must be standard errors, finite and not negative, got {wrong:g}.")
    return read_only(np.broadcast_to(errors, n_cases).copy())


def checked_noise_weight(weight: float) -> float:
    """What a unit of standard error costs."""
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.number) or not 0 <= weight < np.inf:
        raise ProblemError(f"`noise_weight` must be a finite number that is not negative, got {weight!r}.")
    return float(weight)


def check_distribution(name: str, values: FloatArray) -> None:
    """Refuse what is no distribution, by the name of the argument."""
    if not np.isfinite(values).all():
        raise ProblemError(f"{name} must be finite, got {values[~np.isfinite(values)].flat[0]}.")
    if (values < 0).any():
        raise ProblemError(f"{name} must not be negative, got {values.min():g}.")
    with np.errstate(over="ignore"):
        total = values.sum()
    if abs(total - 1) > SUM_TOLERANCE:
        raise ProblemError(f"{name} must sum to 1, got {total:.9g}.")


def on_the_simplex(weights: ArrayLike, *, may_be_less: bool) -> FloatArray:
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
    if (not may_be_less or simplex.sum() > 1) and not is_scaled(weights, simplex.sum()):
        simplex /= simplex.sum()
    return simplex
