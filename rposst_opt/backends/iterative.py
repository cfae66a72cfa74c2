"""RPOSST in a loop: choose some cases, require them, choose some more (paper, section "RPOSST").

Fewer tuples have to be looked at, at a cost in accuracy that can be measured where the whole problem is affordable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rposst_opt.backends import AUTO, solve
from rposst_opt.contract import Backend
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError, Unsupported
from rposst_opt.problem import Need, Problem
from rposst_opt.solution import Solution, Status


@dataclass(frozen=True, kw_only=True)
class IterativeSelection:
    """What came of choosing cases step by step.

    Attributes
    ----------
    test : EfficientTest
        Of the last step: all cases, with weights that were chosen together.
    objective : float
        `Problem.objective` of the test, for the whole problem.
    steps : tuple of Solution
        The answer to each step's problem.
    joint : Solution or None
        The answer to the whole problem, if it was asked for.
    """

    test: EfficientTest
    objective: float
    steps: tuple[Solution, ...]
    joint: Solution | None

    @property
    def cost_of_greed(self) -> float | None:
        """By how much the objective exceeds the joint optimum; None where that is not known."""
        if self.joint is None or self.joint.status is not Status.OPTIMAL:
            return None
        return self.objective - self.joint.objective


def select_iteratively(
    problem: Problem,
    backend: str | Backend = AUTO,
    *,
    step_sizes: Sequence[int] | None = None,
    compare: bool = False,
    joint_time_limit_seconds: float | None = 60.0,
    **options: Any,
) -> IterativeSelection:
    """Choose the cases of a test in steps, each with those of the steps before required.

    Parameters
    ----------
    problem : Problem
    backend : str or Backend
        What solves each step.
    step_sizes : sequence of int, optional
        How many cases each step chooses; one by one by default. They add up to the problem's size.
    compare : bool
        Whether to solve the whole problem too, by ``"auto"``, to see what greed has cost.
    joint_time_limit_seconds : float, optional
        For the whole problem.
    **options
        Options of the backend.

    Examples
    --------
    >>> import rposst_opt as ro
    >>> problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=2)
    >>> selection = select_iteratively(problem, compare=True)
    >>> [step.test.cases for step in selection.steps], selection.joint.test.cases
    ([(2,), (0, 2)], (0, 1))
    """
    if problem.rules.choose or problem.rules.limit_weights or Need.ANY_NUMBER in problem.needs:
        raise Unsupported("cases that are chosen step by step need not keep rules in the end: choose them at once.")
    sizes = [1] * problem.size if step_sizes is None else list(step_sizes)
    if sum(sizes) != problem.size or any(size < 1 for size in sizes):
        raise ProblemError(f"`step_sizes` must be positive and add up to {problem.size}, got {sizes}.")
    steps: list[Solution] = []
    required = problem.required_cases
    for size in sizes:
        step = solve(replace(problem, size=size, required_cases=required), backend, **options)
        if step.test is None:
            raise ProblemError("a step found no test within its limits.")
        steps.append(step)
        required = step.test.cases
    test = steps[-1].test
    assert test is not None
    joint = solve(problem, time_limit_seconds=joint_time_limit_seconds) if compare else None
    return IterativeSelection(test=test, objective=problem.objective(test), steps=tuple(steps), joint=joint)
