"""The smallest problem on which a solver is still wrong: leave out and simplify, as long as the contradiction stays.

Delta debugging: halves of the test cases, policies and targets are left out, then quarters, then single ones; what
states the problem gives way to what is plainer; numbers lose digits. Every step makes the problem cheaper by `cost`, so
that it ends, and it ends early when enough questions were asked.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.losses import AbsoluteError
from rposst_opt.measures import CVaR, Mean, WorstCase
from rposst_opt.problem import Problem

MOST_QUESTIONS = 400  # to whoever says whether a problem still shows the contradiction
PARTS = 8  # of which targets and probabilities are made when they lose their digits: sums are then exact

Contradicts = Callable[[Problem], bool]


def shrink(problem: Problem, contradicts: Contradicts, *, most_questions: int = MOST_QUESTIONS) -> Problem:
    """A problem that cannot be made any smaller in one step, or not within so many questions.

    Parameters
    ----------
    problem : Problem
        One that contradicts.
    contradicts : callable
        Whether a problem still shows what this one does.
    most_questions : int

    Examples
    --------
    >>> problem = Problem(results=np.eye(6), size=3, measure=CVaR(0.37))
    >>> small = shrink(problem, lambda smaller: smaller.n_cases > 2 and smaller.n_policies > 1)
    >>> small.results.shape, small.size, small.measure
    ((3, 2), 1, Mean())
    """
    questions = itertools.count()
    while True:
        for smaller in _cheaper(problem):
            if next(questions) >= most_questions:
                return problem
            if contradicts(smaller):
                problem = smaller
                break
        else:
            return problem


def cost(problem: Problem) -> tuple[int, int]:
    """What a problem takes to be read: how much there is, then how many digits."""
    plain_measure = isinstance(problem.measure, Mean | WorstCase)
    parts = (
        *(problem.n_cases, problem.n_policies, len(problem.targets), problem.size),
        *(len(problem.required_cases), len(problem.forbidden_cases)),
        *(problem.offset, problem.noise is not None),
        *(not isinstance(problem.loss, AbsoluteError), not plain_measure),
    )
    uneven = [array for array in (problem.targets, problem.probabilities) if np.ptp(array) > 0]
    digits = sum(_digits(array) for array in (problem.results, *uneven)) + len(problem.measure.label)
    return sum(int(part) for part in parts), digits


def _digits(array: FloatArray) -> int:
    return sum(len(f"{number!r}".removesuffix(".0")) - (number == 0) for number in array.ravel().tolist())


def _cheaper(problem: Problem) -> Iterator[Problem]:
    """Problems in one step from this one that take less to be read, the boldest steps first."""
    now = cost(problem)
    for make in (_with_fewer, _stated_plainly, _with_fewer_digits, _with_zeros):
        for smaller in _valid(make(problem)):
            if cost(smaller) < now:
                yield smaller


def _valid(makers: Iterator[Callable[[], Problem]]) -> Iterator[Problem]:
    """The problems that there are; a step may lead to none, such as one without a probability that is not zero."""
    for make in makers:
        try:
            yield make()
        except ProblemError:
            continue


# Fewer test cases, policies and targets


def _with_fewer(problem: Problem) -> Iterator[Callable[[], Problem]]:
    for kept in _subsets(problem.n_cases):
        yield lambda kept=kept: _of_cases(problem, kept)  # type: ignore[misc]
    for kept in _subsets(problem.n_policies):
        yield lambda kept=kept: _of_policies(problem, kept)  # type: ignore[misc]
    for kept in _subsets(len(problem.targets)):
        yield lambda kept=kept: _of_targets(problem, kept)  # type: ignore[misc]
    for size in range(1, problem.size):
        yield lambda size=size: replace(problem, size=size)  # type: ignore[misc]


def _subsets(count: int) -> Iterator[list[int]]:
    """What is left without a half, a quarter, ... a single one of them."""
    width = count // 2
    while width:
        for first in range(0, count, width):
            kept = [place for place in range(count) if not first <= place < first + width]
            if kept:
                yield kept
        width //= 2


def _of_cases(problem: Problem, kept: Sequence[int]) -> Problem:
    """The problem without the other test cases; a target that had no others gives way to the uniform one."""
    place = {case: position for position, case in enumerate(kept)}
    targets = problem.targets[:, kept]
    targets = np.where(targets.sum(axis=1, keepdims=True) > 0, targets, 1.0)
    required = tuple(place[case] for case in problem.required_cases if case in place)
    forbidden = tuple(place[case] for case in problem.forbidden_cases if case in place)
    return replace(
        problem,
        results=problem.results[kept],
        targets=targets / targets.sum(axis=1, keepdims=True),
        noise=None if problem.noise is None else problem.noise[kept],
        case_names=tuple(problem.case_names[case] for case in kept),
        required_cases=required,
        forbidden_cases=forbidden,
        size=min(problem.size, len(kept) - len(required) - len(forbidden)),
        rules=problem.rules.of_cases(kept),
    )


def _of_policies(problem: Problem, kept: Sequence[int]) -> Problem:
    names = tuple(problem.policy_names[policy] for policy in kept)
    return replace(
        problem,
        results=problem.results[:, kept],
        probabilities=_scaled(problem.probabilities[kept]),
        policy_names=names,
    )


def _of_targets(problem: Problem, kept: Sequence[int]) -> Problem:
    names = tuple(problem.target_names[target] for target in kept)
    probabilities = _scaled(problem.probabilities[:, kept])
    return replace(problem, targets=problem.targets[kept], probabilities=probabilities, target_names=names)


def _scaled(probabilities: FloatArray) -> FloatArray:
    total = float(probabilities.sum())
    if not total > 0:
        raise ProblemError("no scenario that is left has a probability.")
    return probabilities / total


# Plainer statements


def _stated_plainly(problem: Problem) -> Iterator[Callable[[], Problem]]:
    plainer: list[dict[str, Any]] = [
        {"required_cases": ()},
        {"forbidden_cases": ()},
        {"offset": False},
        {"noise": None},
        {"loss": AbsoluteError()},
        {"measure": WorstCase()},
        {"measure": Mean()},
        {"measure": CVaR(0.5)},
        {"probabilities": None},
        {"targets": None, "target_names": None, "probabilities": None},
    ]
    for changes in plainer:
        yield lambda changes=changes: replace(problem, **changes)  # type: ignore[misc]


# Fewer digits


def _with_fewer_digits(problem: Problem) -> Iterator[Callable[[], Problem]]:
    results = problem.results
    low, spread = float(results.min()), float(np.ptp(results)) or 1.0
    for plainer in ((results - low) / spread, results - low, results / spread):
        yield lambda plainer=plainer: replace(problem, results=plainer)  # type: ignore[misc]
    for digits in (1, 2, 3, 6):
        rounded = _rounded(results, digits)
        yield lambda rounded=rounded: replace(problem, results=rounded)  # type: ignore[misc]
        if isinstance(problem.measure, CVaR):
            shorter = CVaR(float(f"{problem.measure.tail_fraction:.{digits}g}"))
            yield lambda shorter=shorter: replace(problem, measure=shorter)  # type: ignore[misc]
    yield lambda: replace(problem, targets=np.array([_in_parts(target) for target in problem.targets]))
    parts = _in_parts(problem.probabilities.ravel()).reshape(problem.probabilities.shape)
    yield lambda: replace(problem, probabilities=parts)


def _rounded(numbers: FloatArray, digits: int) -> FloatArray:
    """To so many significant digits, each number by itself."""
    return np.array([[float(f"{number:.{digits}g}") for number in row] for row in numbers])


def _in_parts(distribution: FloatArray) -> FloatArray:
    """A distribution in eighths; the likeliest takes what is left."""
    parts = np.floor(distribution * PARTS)
    parts[np.argmax(distribution)] += PARTS - parts.sum()
    shares: FloatArray = parts / PARTS
    return shares


def _with_zeros(problem: Problem) -> Iterator[Callable[[], Problem]]:
    """One result after the other as zero."""
    for place in np.argwhere(problem.results != 0).tolist():
        results = problem.results.copy()
        results[tuple(place)] = 0.0
        yield lambda results=results: replace(problem, results=results)  # type: ignore[misc]
