"""Who can solve a problem, and what is their answer worth?

`solve` checks, calls, scores again and decides the status, for all backends in one place. `table` has their names,
`auto` chooses among them, and says what `forecast` predicts of their times; `rposst_opt.referee` asks them all.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rposst_opt.backends.auto import choose_backend, long_run_words
from rposst_opt.backends.table import (
    AUTO,
    BACKENDS,
    Entry,
    entry_of,
    how_to_install,
    make_backend,
    missing_packages,
    name_of,
    why_unusable,
)
from rposst_opt.contract import Backend, Budget, Candidate, Limit, Progress, ask
from rposst_opt.errors import BackendFailure, ProblemError, Unsupported, warn
from rposst_opt.problem import Problem
from rposst_opt.solution import Solution, Status, rank_tests

__all__ = [
    "AUTO",
    "BACKENDS",
    "Entry",
    "choose_backend",
    "entry_of",
    "how_to_install",
    "judge",
    "make_backend",
    "missing_packages",
    "name_of",
    "solve",
    "why_unusable",
]


def solve(
    problem: Problem,
    backend: str | Backend = AUTO,
    *,
    time_limit_seconds: float | None = None,
    gap: float = 0.0,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Solution:
    """Choose test cases and weights.

    Parameters
    ----------
    problem : Problem
    backend : str or Backend
        A name from `BACKENDS`, ``"auto"``, or a backend made beforehand.
    time_limit_seconds : float, optional
        When to stop with the best test so far.
    gap : float
        The gap with which you are content, in the units of the objective.
    progress : callable, optional
        Called now and then with a `Progress`.
    **options
        Options of the backend, by name, such as ``rounds=1000`` for ``"regret-matching"``; others are refused.

    Examples
    --------
    >>> import rposst_opt as ro
    >>> problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=2)
    >>> solution = ro.solve(problem, "regret-matching", rounds=100)
    >>> solution.test.cases, solution.status.value
    ((0, 1), 'optimal')
    """
    if time_limit_seconds is not None and not time_limit_seconds >= 0:
        raise ProblemError(f"`time_limit_seconds` must not be negative, got {time_limit_seconds:g}.")
    if not (math.isfinite(gap) and gap >= 0):
        raise ProblemError(f"`gap` must be a number from 0 on, got {gap:g}.")
    choice = None
    if backend == AUTO:
        choice = choose_backend(problem, options, time_limit_seconds=time_limit_seconds, gap=gap)
        backend = choice.backend
        told = long_run_words(choice) if time_limit_seconds is None else None
        if told is not None:
            warn(told)
    if isinstance(backend, str):
        name, backend = backend, make_backend(backend, options)
    elif options:
        raise ProblemError(f"option `{next(iter(options))}` goes with a backend's name; this backend is already made.")
    else:
        name = name_of(backend)
    _check_capable(problem, name, backend)
    started = time.perf_counter()
    candidate = _ask(problem, backend, Budget(time_limit_seconds=time_limit_seconds, gap=gap, progress=progress))
    seconds = time.perf_counter() - started - candidate.stats.compile_seconds
    solution = judge(problem, candidate, name, backend.capabilities.tolerance, seconds)
    return solution if choice is None else replace(solution, choice=choice)


def _check_capable(problem: Problem, name: str, backend: Backend) -> None:
    """Refuse a problem that the backend cannot state, and name those that can."""
    reason = backend.capabilities.why_not(problem)
    if reason is not None:
        able = [other for other, entry in BACKENDS.items() if entry.capabilities.why_not(problem) is None]
        raise Unsupported(
            f"backend {name!r} cannot solve this problem: {reason} ({problem.loss!r}, {problem.measure!r}). "
            f"Backends that can: {', '.join(able) or 'none'}."
        )


def _ask(problem: Problem, backend: Backend, budget: Budget) -> Candidate:
    """Have the backend solve the problem; an interrupt that it does not listen to ends it without an answer."""
    try:
        return ask(problem, backend, budget)
    except KeyboardInterrupt:
        if budget.reached() is Limit.INTERRUPT:
            raise  # the second one: the first has asked the backend to stop
        return Candidate(test=None, lower_bound=-math.inf, limit=Limit.INTERRUPT)


def judge(problem: Problem, candidate: Candidate, backend: str, tolerance: float, seconds: float) -> Solution:
    """Score a candidate again and decide its status: the only place where either is done."""
    lower_bound = candidate.lower_bound
    if math.isnan(lower_bound):
        raise BackendFailure(f"backend {backend!r} returned NaN as its lower bound.")
    if candidate.test is None:
        objective, status = math.inf, Status.NO_TEST
    else:
        for each in (candidate.test, *candidate.ranking):
            reason = problem.why_not(each)
            if reason is not None:
                raise BackendFailure(f"backend {backend!r} returned a test that is no answer: {reason}.")
        objective = problem.objective(candidate.test)
        allowance = problem.allowance(tolerance)
        if lower_bound > objective + allowance:
            raise BackendFailure(
                f"backend {backend!r} claims that no test is below {lower_bound!r}, and its own is at {objective!r}."
            )
        lower_bound = min(lower_bound, objective)
        status = Status.OPTIMAL if objective - lower_bound <= allowance else Status.FEASIBLE
    test = None if candidate.test is None else problem.tuned(candidate.test)
    return Solution(
        test=test,
        objective=objective,
        lower_bound=lower_bound,
        gap=objective - lower_bound if lower_bound < objective else 0.0,
        status=status,
        backend=backend,
        limit=candidate.limit,
        seconds=seconds,
        stats=candidate.stats,
        ranking=rank_tests(problem, candidate.ranking),
        certificate=candidate.certificate,
        one_of_many=candidate.one_of_many,
    )
