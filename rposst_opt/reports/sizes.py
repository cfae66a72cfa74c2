"""What does each size learn from its neighbours? A larger test can contain a smaller one: the curve never rises."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rposst_opt.assembly import Rule, SizeIs
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.feasibility import all_rules, find_choice
from rposst_opt.problem import Problem
from rposst_opt.solution import TIE_TOLERANCE, Solution, Status


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
