r"""Several tests of equal quality that share no cases: forms, so that nobody trains on the one that is asked.

The worst of them is to be as good as it can be:

.. math:: \min_{\tau_1, \dots, \tau_F}\ \max_f\ v(\tau_f) \quad\text{s.t.}\quad |\tau_f \cap \tau_g| \le \text{overlap}

with v the objective of the best weights. *The search.* Take the sets of cases in the order of v (`exact` ranks them).
The first set with which F of those so far can be told apart, each from each, is the worst form of an optimal answer:
before it, no F of them were. So the optimum is proved as soon as it is found, and until then the value of the last set
is a bound. Where ranking so many sets takes too long, forms are chosen one after the other, each the best of what is
left, and the bound stays where it was. *The program* states all forms at once (`formulations.forms`).
"""

import itertools
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any

from rposst_opt.backends import entry_of, solve
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import Infeasible, ProblemError, Unsupported, warn
from rposst_opt.problem import Need, Problem
from rposst_opt.results import unused_names
from rposst_opt.solution import TIE_TOLERANCE, Status
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.showing import Shown, brief_number, counted, listed

__all__ = ["Forms", "FormsMethod", "make_forms"]

FIRST_RANKED, MOST_RANKED = 64, 4096
PREVIOUS = "previous test {}"  # what its cases are called as a group
MORE = "give more, or try method='milp'"


class FormsMethod(StrEnum):
    """How forms are found."""

    SEARCH = "search"
    MILP = "milp"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Forms(ByValue, Shown):
    """Tests for one problem that share no cases, or few.

    Attributes
    ----------
    problem : Problem
    tests : tuple of EfficientTest
        The best first.
    objectives : tuple of float
        Of each, by `Problem.objective`.
    lower_bound : float
        The worst of so many forms cannot be below this.
    status : Status
    seconds : float
    """

    problem: Problem
    tests: tuple[EfficientTest, ...]
    objectives: tuple[float, ...]
    lower_bound: float
    status: Status
    seconds: float

    @property
    def worst(self) -> float:
        """The objective of the worst form, which is what is minimised."""
        return self.objectives[-1]

    @property
    def gap(self) -> float:
        """How far the worst form may be from the best possible."""
        return max(self.worst - self.lower_bound, 0.0)

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("forms", counted(len(self.tests), "test")),
            ("worst objective", brief_number(self.worst)),
            ("best objective", brief_number(self.objectives[0])),
            ("gap", brief_number(self.gap)),
            ("status", self.status.value),
        ]


def make_forms(
    problem: Problem,
    count: int = 2,
    *,
    overlap: int = 0,
    previous: Iterable[EfficientTest | Iterable[int | str]] = (),
    method: str | FormsMethod = FormsMethod.SEARCH,
    time_limit_seconds: float | None = None,
) -> Forms:
    """Make several tests that share no cases, the worst of which is as good as can be.

    Parameters
    ----------
    problem : Problem
        What every form is for; all of them keep its rules. Required cases are in every form, and do not count as
        shared.
    count : int
    overlap : int
        How many cases two forms may share, and a form and a previous test.
    previous : iterable of EfficientTest, or of cases
        Tests that were used before, from which all forms keep away.
    method : str
        ``"search"``, or ``"milp"`` for one mixed-integer program by SciPy.
    time_limit_seconds : float, optional

    Examples
    --------
    >>> import rposst_opt as ro
    >>> problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.1, 0.8], [0.9, 0.3]], size=2)
    >>> forms = ro.make_forms(problem, count=2)
    >>> [test.cases for test in forms.tests], forms.status.value
    ([(0, 1), (2, 3)], 'optimal')
    """
    started = time.monotonic()
    for name, number, least in (("count", count, 1), ("overlap", overlap, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ProblemError(f"`{name}` must be a whole number from {least} on, got {number!r}.")
    asked = keeping_away(problem, previous, overlap)
    try:
        how = FormsMethod(method)
    except ValueError:
        raise ProblemError(f"`method` must be 'search' or 'milp', got {method!r}.") from None
    if how is FormsMethod.MILP:
        reason = entry_of("scipy-milp").capabilities.why_not(asked)
        if reason is not None:
            raise Unsupported(f"the program of all forms cannot state this problem: {reason}.")
        tests, bound = import_module("formulations.forms").forms_by_milp(asked, count, overlap, time_limit_seconds)
    else:
        tests, bound = _Search(asked, count, overlap, started, time_limit_seconds).run()
    return _judged(problem, asked, tests, bound, time.monotonic() - started)


def keeping_away(problem: Problem, previous: Iterable[EfficientTest | Iterable[int | str]], overlap: int) -> Problem:
    """The problem with a rule for each test that was used before: not more than so many of its cases."""
    members: dict[int, list[str]] = {}
    rules, quotas = problem.rules, dict(problem.rules.at_most)
    for number, test in enumerate(previous, start=1):
        cases = list(test.case_names if isinstance(test, EfficientTest) else test)
        (group,) = unused_names([*rules.groups, *quotas], [PREVIOUS.format(number)])
        quotas[group] = overlap
        known = [case for case in cases if not isinstance(case, str) or case in problem.case_names]
        if not known:
            named = listed([repr(case) for case in cases])
            warn(f"a previous test has no case of this problem ({named}): it is passed over")
        for case in problem.test(cases=known, weights=[1 / len(known)] * len(known)).cases if known else ():
            if case not in problem.required_cases:
                members.setdefault(case, []).append(group)
    if not members:
        return problem
    groups = {case: [name for name, cases in rules.groups.items() if case in cases] for case in range(problem.n_cases)}
    for case, names in members.items():
        groups[case] += names
    known_groups = {name for names in groups.values() for name in names}
    at_most = {group: most for group, most in quotas.items() if group in known_groups}
    return problem.with_rules(groups=groups, at_most=at_most, at_least=rules.at_least)


def _judged(problem: Problem, asked: Problem, tests: Sequence[EfficientTest], bound: float, seconds: float) -> Forms:
    """Score all forms again, and decide what is known of them."""
    for test in tests:
        reason = asked.why_not(test)
        assert reason is None, reason
    scored = sorted((problem.objective(test), test.cases, test) for test in tests)
    worst = scored[-1][0]
    is_proved = worst - bound <= problem.allowance(TIE_TOLERANCE)
    return Forms(
        problem=problem,
        tests=tuple(test for _, _, test in scored),
        objectives=tuple(objective for objective, _, _ in scored),
        lower_bound=min(bound, worst),
        status=Status.OPTIMAL if is_proved else Status.FEASIBLE,
        seconds=seconds,
    )


class _Search:
    """Ranked sets, and who of them can be told apart."""

    def __init__(
        self, problem: Problem, count: int, overlap: int, started: float, time_limit_seconds: float | None
    ) -> None:
        if Need.WEIGHT_LIMITS in problem.needs or Need.ANY_NUMBER in problem.needs:
            raise Unsupported("the search for forms ranks sets of a fixed number of cases: ask for method='milp'.")
        self.problem, self.count, self.overlap = problem, count, overlap
        self.ends = math.inf if time_limit_seconds is None else started + time_limit_seconds

    def run(self) -> tuple[Sequence[EfficientTest], float]:
        """The forms, and what the worst of them cannot be below."""
        bound, ranked = -math.inf, FIRST_RANKED
        while True:
            solution = solve(self.problem, "exact", top=ranked, **self._time())
            tests = [each.test for each in solution.ranking]
            if solution.limit is not None:
                return self._one_after_the_other(), max(bound, solution.lower_bound)
            chosen = self._first_apart(tests)
            if chosen is not None:
                return [tests[place] for place in chosen], self.problem.objective(tests[chosen[-1]])
            if len(tests) < ranked:
                shared = f" that share at most {self.overlap} cases" if self.overlap else " without a common case"
                raise Infeasible(f"there are no {self.count} tests{shared} that keep all rules.")
            bound = self.problem.objective(tests[-1]) - self.problem.allowance(TIE_TOLERANCE)
            if ranked >= MOST_RANKED:
                return self._one_after_the_other(), bound
            ranked *= 4

    def _time(self) -> dict[str, Any]:
        return {} if self.ends == math.inf else {"time_limit_seconds": max(self.ends - time.monotonic(), 0.0)}

    def _first_apart(self, tests: Sequence[EfficientTest]) -> list[int] | None:
        """The places of the first forms that can be told apart: those whose last comes soonest."""
        required = set(self.problem.required_cases)
        sets = [frozenset(test.cases) - required for test in tests]
        for last in range(self.count - 1, len(sets)):
            others = [place for place in range(last) if self._are_apart(sets[place], sets[last])]
            found = self._some_apart(others, sets, self.count - 1)
            if found is not None:
                return [*found, last]
        return None

    def _some_apart(self, places: list[int], sets: Sequence[frozenset[int]], count: int) -> list[int] | None:
        """So many of these places whose sets can be told apart, each from each; None if there are not so many."""
        if count == 0:
            return []
        for at, place in enumerate(places[: len(places) - count + 1]):
            rest = [other for other in places[at + 1 :] if self._are_apart(sets[place], sets[other])]
            found = self._some_apart(rest, sets, count - 1)
            if found is not None:
                return [place, *found]
        return None

    def _are_apart(self, one: frozenset[int], other: frozenset[int]) -> bool:
        return len(one & other) <= self.overlap

    def _one_after_the_other(self) -> list[EfficientTest]:
        """The best test, then the best of what is left, and so on; within the time, or a second for each.

        That nothing is left for the last ones does not say that there are no such forms.
        """
        found: list[EfficientTest] = []
        for left in range(self.count, 0, -1):
            asked = keeping_away(self.problem, found, self.overlap)
            seconds = max((self.ends - time.monotonic()) / left, 1.0)
            try:
                solution = solve(asked, time_limit_seconds=None if seconds == math.inf else seconds)
            except Infeasible:
                raise ProblemError(f"no {self.count} forms were found within the time: {MORE}.") from None
            if solution.test is None:
                raise ProblemError(f"no test was found within the time: {MORE}.")
            found.append(solution.test)
        return found


def shared_cases(forms: Sequence[EfficientTest], required: Iterable[int] = ()) -> int:
    """The most cases that two forms share, the required ones aside."""
    sets = [frozenset(test.cases) - set(required) for test in forms]
    return max((len(one & other) for one, other in itertools.combinations(sets, 2)), default=0)
