"""How far off is a test on unseen policies whose run cannot be repeated? Another search makes the tests without some.

A run that was cut short cannot be repeated without each fold, nor can one that takes long. A local search of limited
work makes the tests in its place, as `validate` does in its trials, and is named with what is said.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rposst_opt.arrays import FloatArray
from rposst_opt.backends import entry_of, solve
from rposst_opt.contract import Limit
from rposst_opt.problem import Problem
from rposst_opt.solution import Solution
from rposst_opt.unseen.error_bars import FOLDS, SEED, LeftOut, leave_out
from rposst_opt.unseen.procedures import SEARCH, Purpose, gently
from rposst_opt.unseen.splits import FEWEST_TUNED_ON, alike

FEWER_FOLDS = (5, 3, 2)  # where there is no time for more


def leave_out_after(
    solution: Solution,
    results: FloatArray,
    size: int,
    purpose: Purpose,
    *,
    options: Mapping[str, Any],
    most_seconds: float | None = None,
    search_seconds: float | None = None,
) -> LeftOut | None:
    """Make tests without some policies, as a solution with all of them was made; None if that cannot be done in time.

    Its own backend makes them if it has come to its end. If it has not, or takes too long, a local search of limited
    work does (`LeftOut.made_by`), in ten folds, or in fewer where time is short.

    Parameters
    ----------
    solution : Solution
        With all policies.
    results, size, purpose
        As for `leave_out`.
    options : mapping
        Of the solution's own backend.
    most_seconds : float, optional
        That each way of the solution's own backend may take.
    search_seconds : float, optional
        That local search may take.

    Raises
    ------
    KeyboardInterrupt
        If an interrupt comes: half of the tests say nothing.
    """
    if why_not_left_out(solution, purpose.problem(results, size)[0]) is not None:
        return None
    found = None
    if solution.limit is None:
        found = leave_out(
            results,
            size,
            purpose,
            backend=solution.backend,
            options=options,
            most_seconds=most_seconds,
            seconds_each=solution.seconds,
        )
    return found or _left_out_by_search(solution.backend, results, size, purpose, search_seconds)


def why_not_left_out(solution: Solution, problem: Problem) -> str | None:
    """Why no policies can be left out, however long that may take; None if they can."""
    if solution.test is None:
        return "no test was found"
    if solution.limit is Limit.INTERRUPT:
        return "an interrupt ended the run"
    if problem.n_policies <= FEWEST_TUNED_ON:
        return f"some policies would have to be left out, and that takes at least {FEWEST_TUNED_ON + 1} of them"
    if solution.limit is None:
        return None
    reason = _why_no_stand_in(solution.backend, problem)
    return None if reason is None else f"{solution.limit.value} ended {solution.backend}, and {reason}"


def _why_no_stand_in(backend: str, problem: Problem) -> str | None:
    """Why tests by local search tell nothing of those by this backend, or cannot be made; None if they do."""
    if backend != SEARCH and entry_of(backend).capabilities.is_heuristic:
        return f"{SEARCH} chooses in another way"
    reason = entry_of(SEARCH).capabilities.why_not(problem)
    return None if reason is None else f"{SEARCH} cannot stand in: {reason}"


def _left_out_by_search(
    backend: str, results: FloatArray, size: int, purpose: Purpose, most_seconds: float | None
) -> LeftOut | None:
    """Tests by local search without each of some folds, of which there are as many as time allows."""
    problem, _ = purpose.problem(results, size)
    if _why_no_stand_in(backend, problem) is not None:
        return None
    options = gently(problem)
    counts = [count for count in (FOLDS, *FEWER_FOLDS) if problem.n_policies >= count + FEWEST_TUNED_ON]
    counts = counts or [problem.n_policies]
    if most_seconds is not None:
        first = solve(problem, SEARCH, time_limit_seconds=most_seconds, **options)  # the others take about as long
        if first.limit is Limit.INTERRUPT:
            raise KeyboardInterrupt
        left = most_seconds - first.seconds
        counts = [count for count in counts if first.limit is None and count * first.seconds <= left]
    if not counts:
        return None
    splits = alike(problem.n_policies, folds=counts[0], replicas=1, seed=SEED)
    found = leave_out(results, size, purpose, backend=SEARCH, options=options, splits=splits)
    return None if found is None else replace(found, made_by=SEARCH)
