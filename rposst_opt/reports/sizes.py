"""What does each size learn from its neighbours? A larger test can contain a smaller one: the curve never rises."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rposst_opt.assembly import Rule, SizeIs
from rposst_opt.backends import solve
from rposst_opt.contract import Limit
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import Infeasible
from rposst_opt.feasibility import all_rules, find_choice
from rposst_opt.problem import Problem
from rposst_opt.solution import TIE_TOLERANCE, Solution, Status


def spread_out(sizes: Sequence[int], own: int) -> list[int]:
    """The sizes, this one first, in an order in which those that come first are far apart, by their ratios.

    Wherever time ends, what was worked out shows the whole curve.

    >>> spread_out(range(1, 11), 8)
    [8, 1, 3, 5, 2, 4, 10, 6, 7, 9]
    """
    order, gaps = [own], {size: math.inf for size in sizes if size != own}
    while gaps:
        gaps = {size: min(gap, round(abs(math.log(size / order[-1])), 9)) for size, gap in gaps.items()}
        order.append(max(gaps, key=lambda size: gaps[size]))
        del gaps[order[-1]]
    return order


def with_cases_dropped(problem: Problem, found: Mapping[int, Solution], seconds: float) -> dict[int, Solution]:
    """The answers by size, where larger tests without their least useful cases stand in for worse ones.

    Sizes have had more time or less: without this the curve would fall where time was longer. What is not done within
    so many seconds stays as it was.

    Raises
    ------
    KeyboardInterrupt
        If an interrupt comes.
    """
    told, ends = dict(found), time.monotonic() + seconds
    for larger, smaller in pairwise(sorted(found, reverse=True)):
        test = told[larger].test
        if test is None or told[smaller].status is Status.OPTIMAL:
            continue
        for size in range(larger - 1, smaller - 1, -1):
            test = None if test is None else _without_the_least_useful(replace(problem, size=size), test, ends)
        told[smaller] = _with_better(replace(problem, size=smaller), told[smaller], test)
    return told


def _without_the_least_useful(problem: Problem, test: EfficientTest, ends: float) -> EfficientTest | None:
    """The best test of this problem on the cases of a larger one; None if the rules have none, or time is up."""
    left = ends - time.monotonic()
    if left <= 0:
        return None
    try:
        found = solve(problem.restricted_to(test.cases), time_limit_seconds=left if math.isfinite(left) else None)
    except Infeasible:
        return None
    if found.limit is Limit.INTERRUPT:
        raise KeyboardInterrupt
    return found.test


def never_rising(problems: Sequence[Problem], solutions: Sequence[Solution]) -> list[Solution]:
    """The answers to one problem with several sizes, in any order, each with what the others know.

    With more cases that have no weight, a test is one of a larger size. So where a run ends early, the test of a
    smaller size stands in if it is better and the rules allow such cases. What is proved for a larger size holds for a
    smaller one if that is so for every test (`is_part_of_larger`); otherwise each size keeps what its own run proved.
    """
    upwards = sorted(range(len(problems)), key=lambda place: problems[place].size)
    told = list(solutions)
    for place, larger in zip(reversed(upwards[:-1]), reversed(upwards[1:]), strict=True):
        if is_part_of_larger(problems[place]):
            told[place] = _with_bound(problems[place], told[place], told[larger].lower_bound)
    smaller: list[EfficientTest] = []
    for place in upwards:
        told[place] = _with_best_of(problems[place], told[place], smaller)
        test = told[place].test
        smaller += [] if test is None else [test]
    return told


def is_part_of_larger(problem: Problem) -> bool:
    """Whether every test of this problem is one of a larger size too, with cases more that have no weight.

    Not under rules about the choice, which may keep all other cases out, nor where a case must have some weight if a
    test has it; unless the size is the most that there may be, and says no more.
    """
    rules = problem.rules
    return rules.size_is is SizeIs.AT_MOST or not (rules.choose or rules.least_weights is not None)


def grown(problem: Problem, test: EfficientTest) -> EfficientTest | None:
    """The test as one of this problem, which asks for more cases: those that are added have no weight.

    None if the rules have no such test.
    """
    if problem.why_not(test) is None:
        return test
    cases = _cases_with(problem, test.cases)
    if cases is None:
        return None
    weight_of = dict(zip(test.cases, test.weights.tolist(), strict=True))
    longer = problem.test(
        cases=cases,
        weights=[weight_of.get(case, 0.0) for case in cases],
        offset=test.offset_on(problem.scale) if problem.offset else None,
    )
    return longer if problem.why_not(longer) is None else None


def _cases_with(problem: Problem, cases: Sequence[int]) -> tuple[int, ...] | None:
    """As many cases as the problem asks for, these among them, that keep its rules; None if there are none."""
    if is_part_of_larger(problem):
        others = [case for case in problem.selectable_cases if case not in cases]
        missing = problem.n_chosen - len(cases)
        return (*cases, *others[:missing]) if 0 <= missing <= len(others) else None
    kept, weighty = np.zeros(problem.n_cases), np.zeros(problem.n_cases)
    kept[list(cases)] = 1.0
    if problem.rules.least_weights is not None:
        weighty = np.where((problem.rules.least_weights > 0) & (kept == 0), 1.0, 0.0)
    wanted = [Rule("the cases of the smaller test", kept, len(cases), len(cases)), Rule("no weight", weighty, 0, 0)]
    return find_choice([*all_rules(problem), *wanted], problem.n_cases)


def _with_bound(problem: Problem, solution: Solution, bound: float) -> Solution:
    """The answer with this bound, if it is the better one."""
    if bound <= solution.lower_bound:
        return solution
    return _judged(problem, solution, solution.test, min(bound, solution.objective))


def _with_better(problem: Problem, solution: Solution, test: EfficientTest | None) -> Solution:
    """The answer with this test of the same size, if it is better."""
    if test is None or problem.objective(test) >= solution.objective - problem.allowance(TIE_TOLERANCE):
        return solution
    return _judged(problem, solution, problem.tuned(test), solution.lower_bound)


def _with_best_of(problem: Problem, solution: Solution, smaller: Sequence[EfficientTest]) -> Solution:
    """The answer with the best of these tests of smaller sizes that can grow, if it is better."""
    for test in sorted(smaller, key=problem.objective):
        if problem.objective(test) >= solution.objective - problem.allowance(TIE_TOLERANCE):
            break
        longer = grown(problem, test)
        if longer is not None:
            return _judged(problem, solution, problem.tuned(longer), solution.lower_bound)
    return solution


def _judged(problem: Problem, solution: Solution, test: EfficientTest | None, bound: float) -> Solution:
    """The answer with another test or bound, scored and judged again."""
    if test is None:
        return replace(solution, lower_bound=bound)
    objective = problem.objective(test)
    gap = max(objective - bound, 0.0)
    is_proved = gap <= problem.allowance(TIE_TOLERANCE) or solution.status is Status.OPTIMAL
    status = Status.OPTIMAL if is_proved else Status.FEASIBLE
    return replace(solution, test=test, objective=objective, lower_bound=min(bound, objective), gap=gap, status=status)
