"""The arrays that everything here is made of: their types, and how values become arrays, or distributions.

Values that have names (a DataFrame, a Series, a mapping) are matched by these, here and nowhere else; others are taken
as they stand.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rposst_opt.errors import ProblemError, warn

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeIs

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
# What an argument may be that is matched by name where it has names; none at all stands for a default.
Named: TypeAlias = "pd.DataFrame | pd.Series[Any] | Mapping[Any, Any] | Sequence[pd.Series[Any] | Mapping[Any, Any]]"
NamedValues: TypeAlias = "ArrayLike | pd.DataFrame | pd.Series[Any] | Mapping[Any, Any] | Sequence[Any] | None"

SUM_TOLERANCE = 1e-6  # by how much a distribution written in decimals may miss a sum of one
SUM_ROUNDING = 1e-14  # by how much one may miss it that was scaled before
WEIGHT_TOLERANCE = 1e-6  # by how much a solver's weights may miss the simplex before they are refused
MOST_CASES = 2**53  # that a file may speak of

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


def is_position(value: object) -> TypeGuard[int]:
    """Whether a value that was read from JSON is a whole number from 0 on that is not beyond reason."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_CASES


def as_numbers(name: str, values: object) -> FloatArray:
    """A copy of the values as a contiguous array of floats, or an error with the argument's name."""
    try:
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"`{name}` must be a table of numbers: {error}.") from None


class Labelled(NamedTuple):
    """Values with the names of their rows and columns; a list of values has no columns, and may have a title."""

    values: NDArray[Any]
    rows: list[str] | None
    columns: list[str] | None
    title: str | None = None


def is_frame(table: object) -> "TypeIs[pd.DataFrame]":
    """Whether this is a DataFrame; pandas itself is not imported for those who have no use for it."""
    return hasattr(table, "loc") and hasattr(table, "columns")


def _is_series(values: object) -> "TypeIs[pd.Series[Any]]":
    return hasattr(values, "loc") and hasattr(values, "index") and not hasattr(values, "columns")


def labelled(argument: str, values: object) -> Labelled | None:
    """Values with their names as text; None where they have none."""
    if is_frame(values):
        return Labelled(np.asarray(values), _texts(values.index), _texts(values.columns))
    if hasattr(values, "columns") and hasattr(values, "to_numpy"):  # a table without names of rows, as polars has them
        return Labelled(np.asarray(values), None, _texts(values.columns))
    if _is_series(values):
        return Labelled(np.asarray(values), _texts(values.index), None, _title(values))
    several = values.values() if isinstance(values, Mapping) else values if isinstance(values, list | tuple) else ()
    if any(isinstance(part, Mapping) or _is_series(part) for part in several):
        return _of_parts(argument, list(several), _texts(values) if isinstance(values, Mapping) else None)
    if isinstance(values, Mapping):
        return Labelled(_each_a_value(argument, list(several)), _texts(values), None)
    return None


def _texts(names: Iterable[object]) -> list[str]:
    return [str(name) for name in names]


def _title(values: object) -> str | None:
    name = getattr(values, "name", None)
    return None if name is None else str(name)


def _each_a_value(argument: str, values: Sequence[object]) -> NDArray[Any]:
    if any(np.ndim(value) > 0 for value in values):  # type: ignore[arg-type]  # it takes anything
        raise ProblemError(f"every name in `{argument}` must have one value, or a mapping or a Series of them.")
    return np.array(values, dtype=object)


def _of_parts(argument: str, parts: Sequence[object], titles: list[str] | None) -> Labelled:
    """Several mappings or Series as the rows of one table."""
    rows: list[NDArray[Any]] = []
    columns: list[str] = []
    own_titles: list[str] = []
    for place, part in enumerate(parts):
        row = labelled(argument, part)
        if row is None or row.rows is None or row.columns is not None:
            raise ProblemError(f"all parts of `{argument}` must be mappings or Series, got {type(part).__name__}.")
        columns = columns if place else row.rows
        rows.append(row.values[places_of(f"part {place} of `{argument}`", "name of its part 0", row.rows, columns)])
        own_titles += [] if row.title is None else [row.title]
    if titles is None and len(own_titles) == len(rows):
        titles = own_titles
    return Labelled(np.array(rows, dtype=object), titles, columns)


def places_of(where: str, noun: str, labels: Sequence[str], names: Sequence[str]) -> list[int]:
    """Where each of the names stands among labels that must be the same names, in any order.

    Examples
    --------
    >>> places_of("`targets`", "test case", ["b", "a"], ["a", "b"])
    [1, 0]
    >>> places_of("`targets`", "test case", ["b", "x"], ["a", "b"])
    Traceback (most recent call last):
    rposst_opt.errors.ProblemError: `targets` must have every test case once and no others; missing: 'a' (1 of 2);
    unknown: 'x' (1 of 2).
    """
    place_of = {label: place for place, label in enumerate(labels)}
    known = set(names)
    missing = [name for name in names if name not in place_of]
    unknown = [label for label in place_of if label not in known]
    faults = [f"missing: {some_names(missing)} ({len(missing)} of {len(names)})"] if missing else []
    faults += [f"unknown: {some_names(unknown)} ({len(unknown)} of {len(labels)})"] if unknown else []
    if len(place_of) < len(labels):
        again = [label for place, label in enumerate(labels) if place_of[label] != place]
        faults.append(f"more than once: {some_names(list(dict.fromkeys(again)))}")
    if faults:
        raise ProblemError(f"{where} must have every {noun} once and no others; {'; '.join(faults)}.")
    return [place_of[name] for name in names]


def some_names(names: Sequence[str], most: int = 8) -> str:
    """Names in a message: a few of them, and how many more there are."""
    listed = ", ".join(repr(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def aligned(argument: str, table: Labelled, noun: str, names: Sequence[str]) -> tuple[NDArray[Any], list[str] | None]:
    """The values with a row per name, in the order of the names, and what the columns are called.

    In the table the names may be those of rows or of columns.
    """
    if table.columns is None and table.rows is not None:
        order = places_of(f"`{argument}`", noun, table.rows, names)
        return table.values[order, None], None if table.title is None else [table.title]
    axes = [set(table.rows or ()), set(table.columns or ())]
    fits = [axis == set(names) for axis in axes]
    if all(fits):
        raise ProblemError(
            f"rows and columns of `{argument}` both have the name of every {noun}, so that it cannot be told which is "
            "which: give an array, or other names."
        )
    if not any(fits):
        common = [len(axis & set(names)) for axis in axes]
        if common[0] == common[1] or 2 * max(common) < len(names):
            raise ProblemError(
                f"neither rows nor columns of `{argument}` have the name of every {noun}: rows are "
                f"{some_names(table.rows or [], 4) or 'nameless'} (with {common[0]} of {len(names)} names), columns "
                f"{some_names(table.columns or [], 4)} (with {common[1]}), and the names {some_names(names, 4)}."
            )
        fits = [common[0] > common[1], common[1] > common[0]]
    values, labels, rest = table.values, table.rows, table.columns
    if fits[1]:
        values, labels, rest = values.T, table.columns, table.rows
    return values[places_of(f"`{argument}`", noun, labels or [], names)], rest


def in_order(argument: str, values: object, noun: str, names: Sequence[str]) -> NDArray[Any] | None:
    """One value per name, in the order of the names; None where the values have no names."""
    table = labelled(argument, values)
    if table is None:
        return None
    rows, _ = aligned(argument, table, noun, names)
    if rows.shape[1] != 1:
        raise ProblemError(f"`{argument}` must have one value per {noun}, got {rows.shape[1]}.")
    return rows[:, 0]


def one_column_each(argument: str, values: "ArrayLike | Named") -> "ArrayLike | pd.DataFrame":
    """A Series, a mapping or several of these as a DataFrame with a column for each; everything else as it is."""
    table = None if hasattr(values, "columns") else labelled(argument, values)
    if table is None:
        return values  # type: ignore[return-value]  # mappings and the like have names
    import pandas as pd

    if table.columns is None:
        return pd.DataFrame(table.values[:, None], table.rows, None if table.title is None else [table.title])
    return pd.DataFrame(table.values.T, index=table.columns, columns=table.rows)


def rows_by_name(frame: "pd.DataFrame", case_names: Sequence[str]) -> FloatArray:
    """The rows of new results that a test needs, in its order; there may be others."""
    names = _texts(frame.index)
    missing = [name for name in case_names if name not in names]
    if missing:
        raise ProblemError(
            f"the results lack {', '.join(map(repr, missing))}, which the test needs: add a row for each."
        )
    repeated = [name for name in case_names if names.count(name) > 1]
    if repeated:
        raise ProblemError(f"the results have test case {repeated[0]!r} more than once: keep one row for each.")
    return as_numbers("new_results", frame.iloc[[names.index(name) for name in case_names]])


def by_policy(values: FloatArray, new_results: "ArrayLike | Named") -> "FloatArray | pd.Series[float]":
    """Scores of new results with the names of policies, if the results have names at all."""
    table = one_column_each("new_results", new_results)
    if not is_frame(table):
        return values
    import pandas as pd

    return pd.Series(values, index=table.columns, name="score")


def positions_as_names(count: int) -> tuple[str, ...]:
    """What things are called that have no names."""
    return tuple(str(position) for position in range(count))


def checked_names(name: str, names: Sequence[object] | None, count: int) -> tuple[str, ...]:
    """Names that differ from each other, or the positions if none are given; `name` is the argument's."""
    if names is None:
        return positions_as_names(count)
    checked = tuple(str(each) for each in names)
    if len(checked) != count:
        noun = {"case_names": "test case", "policy_names": "policy", "target_names": "target"}[name]
        raise ProblemError(f"`{name}` must have {count} names, one per {noun}, got {len(checked)}.")
    if len(set(checked)) < count:
        repeated = next(each for each in checked if checked.count(each) > 1)
        raise ProblemError(f"`{name}` must differ from each other, got {repeated!r} more than once.")
    return checked


def is_scaled(values: object, total: object) -> bool:
    """Whether a distribution was made here before, and is to be left as it is, to the last bit.

    What is made here cannot be written to, and sums to one up to rounding. To scale it again would change its last
    bits, and a problem that was copied with other options would have other targets. Others' arrays of which both are
    true, as pandas has them, are scaled already too.
    """
    is_locked = isinstance(values, np.ndarray) and not values.flags.writeable
    return is_locked and bool((np.abs(np.asarray(total) - 1.0) <= SUM_ROUNDING).all())


def checked_targets(
    targets: NamedValues, case_names: Sequence[str], target_names: Sequence[object] | None
) -> tuple[FloatArray, tuple[str, ...]]:
    """Target distributions, one per row, that sum to one exactly, and their names; the uniform one if none are given.

    Importances that do not sum to one are scaled, with a warning.
    """
    n_cases, own = len(case_names), None
    given = None if target_names is None else _texts(target_names)
    is_default = given is not None and tuple(given) == positions_as_names(len(given))  # of a problem without names
    if targets is None:
        names = checked_names("target_names", None if is_default else given, 1)
        return read_only(np.full((1, n_cases), 1.0 / n_cases)), names
    table = labelled("targets", targets)
    if table is None:
        rows = as_numbers("targets", targets)
        rows = rows[None] if rows.shape == (n_cases,) else rows
    else:
        values, own = aligned("targets", table, "test case", case_names)
        rows = as_numbers("targets", values.T)
    if rows.ndim != 2 or len(rows) == 0 or rows.shape[1] != n_cases:
        raise ProblemError(f"`targets` must have one row per target and {n_cases} columns, got shape {rows.shape}.")
    if is_default and (own is None or set(own) != set(given or ())):
        given = None
    if own is not None and given is not None:
        rows, own = rows[places_of("`targets`", "name of `target_names`", own, given)], None
    names = checked_names("target_names", given if own is None else own, len(rows))
    scaled = _normalised_targets(rows)
    return read_only(rows if is_scaled(targets, rows.sum(axis=1)) else scaled), names


def _normalised_targets(rows: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        totals = rows.sum(axis=1)
    for number, (row, total) in enumerate(zip(rows, totals.tolist(), strict=True)):
        is_usable = np.isfinite(row).all() and (row >= 0).all() and np.isfinite(total)
        if is_usable and total == 0:
            raise ProblemError(f"row {number} of `targets` must have a number above zero, got zeros alone.")
        check_distribution(f"row {number} of `targets`", row / total if is_usable else row)
    off = np.flatnonzero(np.abs(totals - 1) > SUM_TOLERANCE)
    if len(off):
        which = f"row {off[0]} sums to {totals[off[0]]:.9g}" if len(rows) > 1 else f"they sum to {totals[0]:.9g}"
        warn(f"`targets` that do not sum to 1 are taken as importances, and divided by their sum: {which}.")
    scaled: FloatArray = rows / rows.sum(axis=1, keepdims=True)
    return scaled


def checked_probabilities(
    probabilities: NamedValues, policy_names: Sequence[str], target_names: Sequence[str]
) -> FloatArray:
    """Probabilities of policies (rows) and targets (columns) that sum to one exactly; all alike if none are given."""
    shape = len(policy_names), len(target_names)
    if probabilities is None:
        return read_only(np.full(shape, 1.0 / (shape[0] * shape[1])))
    named = labelled("probabilities", probabilities)
    by_name = None if named is None else _probabilities_by_name(named, policy_names, target_names)
    table = as_numbers("probabilities", probabilities if by_name is None else by_name)
    if table.shape != shape:
        raise ProblemError(
            f"`probabilities` must have a row per policy and a column per target, {shape[0]} x {shape[1]}, "
            f"got shape {table.shape}."
        )
    check_distribution("`probabilities`", table)
    total = table.sum()
    return read_only(table if is_scaled(probabilities, total) else table / total)


def _probabilities_by_name(table: Labelled, policy_names: Sequence[str], target_names: Sequence[str]) -> NDArray[Any]:
    """Rows and columns in the order of the names; where targets have none, columns are taken as they stand."""
    n_targets, are_named = len(target_names), tuple(target_names) != positions_as_names(len(target_names))
    values, own = aligned("probabilities", table, "policy", policy_names)
    if table.columns is None:
        return np.repeat(as_numbers("probabilities", values) / n_targets, n_targets, axis=1)
    one_by_one = n_targets == 1 and values.shape[1] == 1
    if own is None or one_by_one or not (are_named or set(own) == set(target_names)):
        return values
    return values[:, places_of("`probabilities`", "target", own, target_names)]


def checked_noise(noise: NamedValues, case_names: Sequence[str]) -> FloatArray | None:
    """The standard error of every case's result; one number stands for all of them."""
    if noise is None:
        return None
    by_name, n_cases = in_order("noise", noise, "test case", case_names), len(case_names)
    errors = as_numbers("noise", noise if by_name is None else by_name)
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
