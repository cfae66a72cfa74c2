r"""Which cases may be in one test? A budget, quotas of groups, conflicts, cases that go together, limits to weights.

Every rule about the choice is linear in the numbers y_x, which are 1 for cases that a test has and 0 for others:

.. math:: \text{low} \le \sum_x a_x y_x \le \text{high}

A budget is a rule with the costs as a, a quota one with ones for the cases of a group, a conflict a quota of at most
one; that x and z go together is y_x - y_z = 0. Weights between l and u sum to one only if Σ l_x y_x ≤ 1 ≤ Σ u_x y_x, so
limits to weights bring two rules more. Solvers of programs are given these rows, searches leave out what breaks one,
and the judge checks them all (`Rule.why_not`).
"""

# Long because rules and the checks of what is given for them belong together, and the root has few modules.
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

import numpy as np

from rposst_opt.arrays import FloatArray, NamedValues, as_numbers, in_order, read_only, some_names
from rposst_opt.errors import ProblemError, check_arguments
from rposst_opt.results import positions_of
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.showing import brief_number, counted, listed, quoted

# Of the right side of a rule: sums of costs are rounded, and solvers of programs keep to rows up to a tolerance. So a
# budget of 0.3 pays for three cases of 0.1 whoever adds them up. Whole numbers up to some size need none.
SLACK, MOST_EXACT = 5e-7, 1e5
LARGE = 1e3  # what solvers are given in the place of the right side


class SizeIs(StrEnum):
    """What the size of a problem says about the number of cases that are chosen."""

    EXACTLY = "exactly"
    AT_MOST = "at most"


class RuleKind(StrEnum):
    """What a rule adds up; the value says what a test that breaks it has."""

    COUNT = "it has {}"
    BUDGET = "its cases cost {}"
    TOGETHER = "it has some of them"
    WEIGHTS = "these limits sum to {}"


@dataclass(frozen=True, eq=False)
class Rule(ByValue):
    """A rule about the choice: low ≤ Σ a_x y_x ≤ high; in words, for people.

    Attributes
    ----------
    words : str
    coefficients : ndarray of shape (n_cases,)
    low, high : float
    kind : RuleKind
    """

    words: str
    coefficients: FloatArray
    low: float
    high: float
    kind: RuleKind = RuleKind.COUNT

    @cached_property
    def slack(self) -> float:
        """By how much a sum may miss: nobody uses another."""
        end = max((abs(end) for end in (self.low, self.high) if np.isfinite(end)), default=0.0)
        numbers = [end for end in (self.low, self.high) if np.isfinite(end)] + self.coefficients.tolist()
        is_exact = end <= MOST_EXACT and all(float(number).is_integer() for number in numbers)
        return 0.0 if is_exact else SLACK * end

    def row(self) -> tuple[FloatArray, float, float]:
        """Coefficients and ends as solvers are given them, who keep to a row up to an absolute tolerance.

        What costs more than the whole budget is given as twice that. Whole numbers are given as they are; sums of other
        numbers with our own slack, made so large that a solver's tolerance is nothing beside it.
        """
        coefficients = self.coefficients
        if self.kind is RuleKind.BUDGET:
            too_dear = coefficients > self.high + self.slack
            coefficients = np.where(too_dear, 2 * self.high if self.high > 0 else 1.0, coefficients)
        end = max((abs(end) for end in (self.low, self.high) if np.isfinite(end)), default=0.0)
        factor = LARGE / end if self.slack > 0 else 1.0
        return coefficients * factor, (self.low - self.slack) * factor, (self.high + self.slack) * factor

    def why_not(self, cases: Collection[int]) -> str | None:
        """Why a test with these cases breaks the rule, or None."""
        total = float(self.coefficients[list(cases)].sum())
        if self.low - self.slack <= total <= self.high + self.slack:
            return None
        return f"the rule is {self.words}, and {self.kind.value.format(f'{total:.10g}')}"


class Rows(NamedTuple):
    """Rules as rows over the cases that may be chosen: low ≤ matrix · y ≤ high."""

    matrix: FloatArray
    low: FloatArray
    high: FloatArray


def rows_of(rules: Sequence[Rule], selectable: Sequence[int], required: Sequence[int]) -> Rows:
    """The rules as solvers are given them, with what the required cases add up to taken to the ends."""
    matrix, low, high = np.zeros((len(rules), len(selectable))), np.zeros(len(rules)), np.zeros(len(rules))
    for at, rule in enumerate(rules):
        coefficients, least, most = rule.row()
        settled = float(coefficients[list(required)].sum())
        matrix[at], low[at], high[at] = coefficients[list(selectable)], least - settled, most - settled
    return Rows(matrix, low, high)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Rules(ByValue):
    """What a test may be assembled of; `Problem` says what each argument means.

    Attributes
    ----------
    costs : ndarray of shape (n_cases,), or None
    budget : float or None
    groups : dict of str to tuple of int
        The positions of each group's cases.
    at_least, at_most : dict of str to int
        By group.
    conflicts, together : tuple of tuples of int
    least_weights, most_weights : ndarray of shape (n_cases,), or None
    size_is : SizeIs
    """

    costs: FloatArray | None = None
    budget: float | None = None
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    at_least: dict[str, int] = field(default_factory=dict)
    at_most: dict[str, int] = field(default_factory=dict)
    conflicts: tuple[tuple[int, ...], ...] = ()
    together: tuple[tuple[int, ...], ...] = ()
    least_weights: FloatArray | None = None
    most_weights: FloatArray | None = None
    size_is: SizeIs = SizeIs.EXACTLY

    @property
    def choose(self) -> bool:
        """Whether there is a rule about the choice, limits to weights aside."""
        return self.budget is not None or any((self.at_least, self.at_most, self.conflicts, self.together))

    @property
    def limit_weights(self) -> bool:
        """Whether weights have other limits than 0 and 1."""
        return self.least_weights is not None or self.most_weights is not None

    def weight_limits(self, case: int) -> tuple[float, float]:
        """Between which the weight of a case must lie if a test has it."""
        least = 0.0 if self.least_weights is None else float(self.least_weights[case])
        return least, 1.0 if self.most_weights is None else float(self.most_weights[case])

    def limits_of(self, cases: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """The least and most weights of a set of cases; those that miss a sum of one by rounding alone give way."""
        least, most = np.array([self.weight_limits(case) for case in cases]).T
        return least / max(least.sum(), 1.0), most / min(most.sum(), 1.0)

    def rows(self, case_names: Sequence[str], *, weights_may_sum_to_less: bool = False) -> tuple[Rule, ...]:
        """All rules about the choice, in the order of their arguments.

        With an offset, weights may sum to less than one.
        """
        n_cases = len(case_names)
        rows: list[Rule] = []
        if self.budget is not None:
            assert self.costs is not None
            words = f"a budget of {self.budget:.10g}"
            rows.append(Rule(words, self.costs, -np.inf, self.budget, kind=RuleKind.BUDGET))
        for quotas, words in ((self.at_least, "at least"), (self.at_most, "at most")):
            for group, count in quotas.items():
                low, high = (count, np.inf) if words == "at least" else (-np.inf, count)
                rows.append(Rule(f"{words} {count} of {group!r}", _ones(self.groups[group], n_cases), low, high))
        for cases in self.conflicts:
            names = listed([quoted(case_names[case]) for case in cases])
            rows.append(Rule(f"at most one of {names}", _ones(cases, n_cases), -np.inf, 1))
        for cases in self.together:
            names = listed([quoted(case_names[case]) for case in cases])
            rows += [
                Rule(
                    f"all or none of {names}",
                    _ones([first], n_cases) - _ones([other], n_cases),
                    0,
                    0,
                    kind=RuleKind.TOGETHER,
                )
                for first, other in pairwise(cases)
            ]
        return (*rows, *self._weight_rows(weights_may_sum_to_less))

    def __repr__(self) -> str:
        """All that is set, whole arrays included: it tells rules apart."""
        n_cases = max(
            [0, *(len(each) for each in (self.costs, self.least_weights, self.most_weights) if each is not None)]
        )
        members = [case for cases in (*self.groups.values(), *self.conflicts, *self.together) for case in cases]
        told = self.describe([str(case) for case in range(max([n_cases - 1, *members], default=-1) + 1)])
        return f"Rules({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def _weight_rows(self, may_sum_to_less: bool) -> list[Rule]:
        """Which choices have weights within the limits that sum to one."""
        rows = []
        if self.least_weights is not None:
            words = f"weights of at least {_range(self.least_weights)} that sum to 1"
            rows.append(Rule(words, self.least_weights, -np.inf, 1.0, kind=RuleKind.WEIGHTS))
        if self.most_weights is not None and not may_sum_to_less:
            words = f"weights of at most {_range(self.most_weights)} that sum to 1"
            rows.append(Rule(words, self.most_weights, 1.0, np.inf, kind=RuleKind.WEIGHTS))
        return rows

    def with_phantoms(self, count: int) -> "Rules":
        """The same rules where so many cases more, which cost nothing and may have any weight, stand at the end."""
        longer = {
            "costs": (self.costs, 0.0),
            "least_weights": (self.least_weights, 0.0),
            "most_weights": (self.most_weights, 1.0),
        }
        grown = {
            name: read_only(np.append(values, np.full(count, more)))
            for name, (values, more) in longer.items()
            if values is not None
        }
        return Rules(**{each.name: getattr(self, each.name) for each in fields(self)} | grown)

    def check_fits(self, n_cases: int) -> None:
        """Refuse rules that were made for another number of cases."""
        arrays = [each for each in (self.costs, self.least_weights, self.most_weights) if each is not None]
        members = [case for cases in (*self.groups.values(), *self.conflicts, *self.together) for case in cases]
        if any(len(each) != n_cases for each in arrays) or max(members, default=0) >= n_cases:
            raise ProblemError(f"the rules are those of other test cases: there are {n_cases} here.")

    def of_cases(self, kept: Sequence[int]) -> "Rules":
        """The same rules where these cases are all there are, in this order."""
        place_of = {case: place for place, case in enumerate(kept)}

        def moved(cases: Iterable[int]) -> tuple[int, ...]:
            return tuple(sorted(place_of[case] for case in cases if case in place_of))

        arrays = {name: getattr(self, name) for name in ("costs", "least_weights", "most_weights")}
        changed: dict[str, Any] = {name: each[list(kept)] for name, each in arrays.items() if each is not None}
        changed["groups"] = {name: moved(cases) for name, cases in self.groups.items()}
        for name in ("conflicts", "together"):
            sets = [moved(cases) for cases in getattr(self, name)]
            changed[name] = tuple(cases for cases in sets if len(cases) > 1)
        return replace(self, **changed)

    def facts(self, case_names: Sequence[str]) -> list[tuple[str, str]]:
        """All rules in labels and values."""
        said = list(dict.fromkeys(rule.words for rule in self.rows(case_names)))
        return [("rules", "; ".join(said))] if said else []

    def describe(self, case_names: Sequence[str]) -> dict[str, Any]:
        """All rules in values that JSON has, cases by their names; what is not set is left out."""

        def named(cases: Iterable[int]) -> list[str]:
            return [case_names[case] for case in cases]

        told: dict[str, Any] = {"size_is": self.size_is.value} if self.size_is is not SizeIs.EXACTLY else {}
        if self.budget is not None:
            assert self.costs is not None
            told |= {"costs": dict(zip(case_names, self.costs.tolist(), strict=True)), "budget": self.budget}
        ruled = [group for group in self.groups if group in self.at_least or group in self.at_most]
        told |= {"groups": {group: named(self.groups[group]) for group in ruled}} if ruled else {}
        told |= {"at_least": self.at_least} if self.at_least else {}
        told |= {"at_most": self.at_most} if self.at_most else {}
        for name, sets in (("conflicts", self.conflicts), ("together", self.together)):
            told |= {name: [named(cases) for cases in sets]} if sets else {}
        for name, weights in (("least_weights", self.least_weights), ("most_weights", self.most_weights)):
            told |= {name: dict(zip(case_names, weights.tolist(), strict=True))} if weights is not None else {}
        return told


def _ones(cases: Iterable[int], n_cases: int) -> FloatArray:
    ones = np.zeros(n_cases)
    ones[list(cases)] = 1.0
    return ones


def _range(values: FloatArray) -> str:
    least, greatest = brief_number(values.min()), brief_number(values.max())
    return least if least == greatest else f"{least} to {greatest}"


def weights_between(least: FloatArray, most: FloatArray) -> FloatArray:
    """Weights that sum to one, each as far between its limits as the others."""
    room = most - least
    weights: FloatArray = least + room * ((1.0 - least.sum()) / (room.sum() or 1.0))
    return weights


def least_average(values: FloatArray, least: FloatArray, most: FloatArray) -> float:
    """The least Σ w_x c_x over weights between these limits that sum to one.

    Every case has its least weight, and the rest goes to the cases with the least values first.

    Examples
    --------
    >>> round(least_average(np.array([1.0, 2.0, 4.0]), np.full(3, 0.1), np.full(3, 0.6)), 9)  # 0.6, 0.3 and 0.1 of them
    1.6
    """
    weights, rest = least.astype(np.float64), 1.0 - float(least.sum())
    for place in np.argsort(values, kind="stable"):
        more = min(max(rest, 0.0), float(most[place] - least[place]))
        weights[place] += more
        rest -= more
    return float(weights @ values)


# What users give, checked


class GivenRules(TypedDict, total=False):
    """The arguments of `Problem` that state rules."""

    size_is: "str | SizeIs"
    costs: NamedValues
    budget: float | None
    groups: Any
    at_least: Mapping[str, int] | int | None
    at_most: Mapping[str, int] | int | None
    conflicts: Iterable[Iterable[int | str]] | None
    together: Iterable[Iterable[int | str]] | None
    least_weight: NamedValues
    most_weight: NamedValues


def changed_rules(rules: Rules, given: GivenRules, case_names: Sequence[str]) -> Rules:
    """These rules with what is given in the place of what they had; None takes a rule away."""
    check_arguments("Problem", given, GivenRules.__annotations__)
    position_of_name = {name: position for position, name in enumerate(case_names)}
    stated = {each.name: getattr(rules, each.name) for each in fields(rules)}
    if "costs" in given:
        stated["costs"] = _numbers_by_case("costs", given["costs"], case_names, 0.0, np.inf)
    if "budget" in given:
        stated["budget"] = _checked_budget(given["budget"])
    if "groups" in given:
        stated["groups"] = _checked_groups(given["groups"], case_names, position_of_name)
    said: Mapping[str, Any] = given
    for name in ("at_least", "at_most"):
        if name in said:
            stated[name] = _checked_quotas(name, said[name], stated["groups"])
    for name in ("conflicts", "together"):
        if name in said:
            stated[name] = _checked_sets(name, said[name], position_of_name)
    for name, end in (("least_weight", 0.0), ("most_weight", 1.0)):
        if name in said:
            weights = _numbers_by_case(name, said[name], case_names, 0.0, 1.0)
            stated[f"{name}s"] = None if weights is None or (weights == end).all() else weights
    if "size_is" in given:
        stated["size_is"] = _checked_size_is(given["size_is"])
    changed = Rules(**stated)
    _check_together(changed, case_names)
    return changed


def _check_together(rules: Rules, case_names: Sequence[str]) -> None:
    """Refuse rules that need others which are not given, and limits to a weight that exclude each other."""
    if rules.budget is not None and rules.costs is None:
        raise ProblemError("`budget` needs `costs`: what each test case costs.")
    for name, quotas in (("at_least", rules.at_least), ("at_most", rules.at_most)):
        for group in quotas:
            if group not in rules.groups:
                known = f" Known: {some_names(list(rules.groups))}." if rules.groups else " `groups` are not given."
                raise ProblemError(f"`{name}` speaks of the group {group!r}, which no test case is in.{known}")
    if rules.least_weights is not None and rules.most_weights is not None:
        crossed = np.flatnonzero(rules.least_weights > rules.most_weights)
        if len(crossed):
            first = case_names[crossed[0]]
            raise ProblemError(f"the least weight of test case {first!r} is above its most.")


def _numbers_by_case(
    name: str, values: NamedValues, case_names: Sequence[str], low: float, high: float
) -> FloatArray | None:
    """One number per case; a single one stands for all."""
    if values is None:
        return None
    by_name, n_cases = in_order(name, values, "test case", case_names), len(case_names)
    numbers = as_numbers(name, values if by_name is None else by_name)
    if numbers.shape not in {(), (n_cases,)}:
        raise ProblemError(f"`{name}` must be a number or {n_cases} of them, one per test case, got {numbers.shape}.")
    wrong = ~(np.isfinite(numbers) & (numbers >= low) & (numbers <= high))
    if wrong.any():
        ends = "not be negative" if high == np.inf else f"lie between {low:g} and {high:g}"
        raise ProblemError(f"`{name}` must be finite and {ends}, got {numbers[wrong].flat[0]:g}.")
    return read_only(np.broadcast_to(numbers, n_cases).copy())


def _checked_budget(budget: float | None) -> float | None:
    if budget is None:
        return None
    if isinstance(budget, bool) or not isinstance(budget, int | float | np.number) or not 0 <= budget < np.inf:
        raise ProblemError(f"`budget` must be a finite number that is not negative, got {budget!r}.")
    return float(budget)


def _checked_groups(
    groups: Any, case_names: Sequence[str], position_of_name: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """The cases of every group, from the group or groups of every case that is in any."""
    if groups is None:
        return {}
    if hasattr(groups, "to_dict"):  # a Series
        groups = groups.to_dict()
    if not isinstance(groups, Mapping):
        listed_groups = list(groups)
        if len(listed_groups) != len(case_names):
            raise ProblemError(
                f"`groups` must have an entry for each of the {len(case_names)} test cases, got {len(listed_groups)}."
            )
        groups = dict(zip(case_names, listed_groups, strict=True))
    members: dict[str, list[int]] = {}
    for case, entry in groups.items():
        (position,) = positions_of([case], position_of_name)
        for group in _names_of_groups(entry):
            members.setdefault(group, []).append(position)
    return {group: tuple(sorted(set(cases))) for group, cases in members.items()}


def _names_of_groups(entry: Any) -> list[str]:
    """The groups that one case is in: none, one, or several."""
    if entry is None or (isinstance(entry, float) and np.isnan(entry)):
        return []
    if isinstance(entry, str) or not isinstance(entry, Iterable):
        return [str(entry)]
    return [str(each) for each in entry]


def _checked_quotas(name: str, quotas: Any, groups: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    if quotas is None:
        return {}
    if isinstance(quotas, int | np.integer) and not isinstance(quotas, bool):
        if not groups:
            raise ProblemError(f"`{name}` is for every group, and `groups` are not given.")
        quotas = dict.fromkeys(groups, quotas)  # one number for every group
    if not isinstance(quotas, Mapping):
        raise ProblemError(f"`{name}` must have a number for each group that it speaks of, got {quotas!r}.")
    for group, count in quotas.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise ProblemError(f"`{name}` of {group!r} must be a whole number from 0 on, got {count!r}.")
    return {str(group): int(count) for group, count in quotas.items()}


def _checked_sets(name: str, sets: Any, position_of_name: Mapping[str, int]) -> tuple[tuple[int, ...], ...]:
    """Sets of two or more cases."""
    found = []
    for given in () if sets is None else sets:
        cases = positions_of(given.tolist() if isinstance(given, np.ndarray) else given, position_of_name)
        if len(cases) < 2:
            raise ProblemError(f"`{name}` must be sets of two or more test cases, got {given!r}.")
        found.append(cases)
    return tuple(found)


def _checked_size_is(size_is: str | SizeIs) -> SizeIs:
    try:
        return SizeIs(size_is)
    except ValueError:
        known = " or ".join(repr(each.value) for each in SizeIs)
        raise ProblemError(f"`size_is` must be {known}, got {size_is!r}.") from None


def counted_size(size: int, size_is: SizeIs) -> str:
    """How many cases are chosen, in words."""
    return counted(size, "case") if size_is is SizeIs.EXACTLY else f"{size_is.value} {counted(size, 'case')}"
