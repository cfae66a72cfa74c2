"""What was known of a run, and when: the tests and numbers that a backend told of on its way, scored by the judge.

A test that a backend hands over while it runs is scored like any other, and its objective is a fact. A number that
comes without a test is what the backend claims, and is never called an objective here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rposst_opt.efficient_test import EfficientTest
from rposst_opt.problem import Problem
from rposst_opt.referee.nursery import News
from rposst_opt.values.by_value import ByValue


@dataclass(frozen=True, kw_only=True, eq=False)
class Point(ByValue):
    """What was known of a run at one moment.

    Attributes
    ----------
    seconds : float
        Since the backend was asked; compiling does not count.
    objective : float
        Of the best test that it had handed over by then, by the judge; infinity if there was none.
    claimed_objective : float or None
        What the backend says itself that its best test is worth, handed over or not.
    lower_bound : float
        As the backend says; -inf while it says nothing.
    test : EfficientTest or None
        What it handed over at this moment, if it did.
    is_end : bool
        Whether this is its answer.
    objection : str
        By which evidence something that it says here is false; empty if nothing is.
    """

    seconds: float
    objective: float = math.inf
    claimed_objective: float | None = None
    lower_bound: float = -math.inf
    test: EfficientTest | None = None
    is_end: bool = False
    objection: str = ""


def profile(problem: Problem, news: Iterable[News], allowance: float) -> tuple[Point, ...]:
    """What a backend told of on its way, with every test scored, and with objections to what is false by itself.

    Its numbers may miss by the allowance, in units of the objective.
    """
    points, best = [], math.inf
    for piece in news:
        told = piece.progress
        reason = None if told.test is None else problem.why_not(told.test)
        scored = None if told.test is None or reason is not None else problem.objective(told.test)
        best = best if scored is None else min(best, scored)
        if reason is not None:
            objection = f"it tells of a test that is none: {reason}"
        else:
            objection = _false_by_itself(float(told.objective), float(told.lower_bound), scored, allowance)
        points.append(
            Point(
                seconds=piece.seconds,
                objective=best,
                claimed_objective=float(told.objective),
                lower_bound=float(told.lower_bound),
                test=None if scored is None else told.test,
                objection=objection,
            )
        )
    return tuple(points)


def _false_by_itself(claimed: float, bound: float, scored: float | None, allowance: float) -> str:
    """What the judge, or what it says itself, has against numbers of a backend."""
    if math.isnan(bound):
        return "its lower bound is NaN"
    if scored is not None and not abs(claimed - scored) <= allowance:
        return (
            f"it says that its test is worth {claimed:.9g}, and the judge says {scored:.9g}: "
            f"off by {abs(claimed - scored):.3g}, with {allowance:.3g} allowed"
        )
    if bound > claimed + allowance:
        return f"it says that no test is below {bound:.9g}, and that it has one at {claimed:.9g}"
    return ""


def with_end(points: Sequence[Point], end: Point) -> tuple[Point, ...]:
    """The profile with its answer; what was known before is not forgotten by it."""
    before = points[-1].objective if points else math.inf
    return (*points, replace(end, objective=min(before, end.objective), is_end=True))


def best_test(points: Sequence[Point]) -> EfficientTest | None:
    """The best test that was handed over, the first among equals."""
    least = min((point.objective for point in points), default=math.inf)
    return next((point.test for point in points if point.test is not None and point.objective == least), None)


def seconds_to(points: Sequence[Point], objective: float) -> float | None:
    """When a test was first handed over that is no worse than this; None if none was."""
    return next((point.seconds for point in points if point.objective <= objective), None)
