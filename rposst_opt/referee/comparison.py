"""Which solver has a good test first, and which one a proof? Objectives and bounds against time, on one problem.

Solvers are asked as `rposst_opt.referee.agreement` asks them, each in a process of its own, and one after the other,
so that they do not disturb each other; and once before with no time at all, so that loading their code does not count.
Those that have an option for threads are given the same number. What a solver tells of while it runs makes its profile:
tests, which the judge scores, and numbers, which it claims. The profile of one that tells nothing is its answer alone,
and it is not known when it had its test.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from rposst_opt.backends import BACKENDS
from rposst_opt.contract import Backend
from rposst_opt.errors import ProblemError, names_arguments
from rposst_opt.problem import Problem
from rposst_opt.referee.agreement import (
    PATIENCE_SECONDS,
    TIME_LIMIT_SECONDS,
    Heard,
    asked_in_turn,
    checked_limits,
    named,
)
from rposst_opt.referee.findings import Agreement, Finding, Verdict
from rposst_opt.referee.profiles import seconds_to
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.showing import Shown, brief_number, html_table

__all__ = ["NEAR", "Comparison", "compare"]

NEAR = 0.01  # of the best objective: within this, a test counts as nearly as good
BESIDES_WITNESSES = ("local-search",)  # it promises no optimum, but has tests early, and a bound


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison(ByValue, Shown):
    """How soon solvers had good tests and proofs.

    Attributes
    ----------
    problem : Problem
    findings : tuple of Finding
        One per backend, in the order in which they were asked, each with its profile.
    seconds : float
        The time that each had.
    threads : int
        That each was given, of those that can be told.
    is_warm : bool
        Whether each had been asked before, so that loading its code is no part of its time.
    """

    problem: Problem
    findings: tuple[Finding, ...]
    seconds: float
    threads: int
    is_warm: bool = True

    @property
    def agreement(self) -> Agreement:
        """The same findings, as `agree` has them."""
        return Agreement(problem=self.problem, findings=self.findings)

    @cached_property
    def best_objective(self) -> float:
        """Of all tests that anybody found, on the way too; infinity if nobody found one."""
        return min((_least(finding) for finding in self.findings), default=math.inf)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """What was known when: a row for each moment of each solver.

        Columns: `backend`; `seconds` since it was asked; `objective`, of the best test that it had handed over by then,
        scored by `Problem`; `claimed_objective` and `claimed_bound`, by its own account; `is_end`, if that is its
        answer; and `contradiction`, the evidence against what it says, empty if there is none. Numbers that are not
        known are missing.
        """
        rows = [
            {
                "backend": finding.backend,
                "seconds": point.seconds,
                "objective": _finite(point.objective),
                "claimed_objective": _finite(point.claimed_objective),
                "claimed_bound": _finite(point.lower_bound),
                "is_end": point.is_end,
                "contradiction": point.objection,
            }
            for finding in self.findings
            for point in finding.profile
        ]
        columns = ["backend", "seconds", "objective", "claimed_objective", "claimed_bound", "is_end", "contradiction"]
        numbers = {name: float for name in columns[1:5]}
        return pd.DataFrame(rows, columns=columns).astype({**numbers, "is_end": bool})

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each solver: what `agree` says of it, its numbers, and when it had a first and a nearly best test.

        Where `tells_tests` is False, these times are those of its answer: it may have had the tests earlier.
        """
        near = self.best_objective + NEAR * abs(self.best_objective) + self.problem.rounding
        return pd.DataFrame([self._row(finding, near) for finding in self.findings])

    def _row(self, finding: Finding, near: float) -> dict[str, object]:
        points, solution = finding.profile, finding.solution
        objective = _least(finding) if solution is None else solution.objective
        bound = max((point.lower_bound for point in points), default=-math.inf)
        if finding.candidate is not None:
            bound = finding.candidate.lower_bound
        gap = objective - bound
        if solution is not None and finding.verdict is not Verdict.DISAGREES:
            gap = solution.gap
        ended = points[-1].seconds if points and points[-1].is_end else None
        return {
            "backend": finding.backend,
            "verdict": finding.verdict.value,
            "reason": finding.reason,
            "objective": _finite(objective),
            "lower_bound": _finite(bound),
            "gap": _finite(gap),
            "seconds": ended if solution is None else solution.seconds,
            "first_test_seconds": seconds_to(points, math.nextafter(math.inf, 0)),
            "near_best_seconds": seconds_to(points, near),
            "tells_tests": any(point.test is not None and not point.is_end for point in points),
            "moments": len(points),
            "version": finding.version,
        }

    def _facts(self) -> list[tuple[str, str]]:
        ahead = self.table.dropna(subset="near_best_seconds").sort_values("near_best_seconds", kind="stable")
        first = [] if ahead.empty else [("first within 1 % of the best", str(ahead["backend"].iloc[0]))]
        return [
            ("solvers", f"{len(self.findings)}, {self.seconds:g} s each"),
            ("best objective", brief_number(self.best_objective)),
            *first,
        ]

    def _repr_html_(self) -> str:
        columns = ["backend", "objective", "lower_bound", "seconds", "first_test_seconds", "near_best_seconds"]
        rows = [
            (row["backend"], *(_brief(row[name]) for name in columns[1:]), finding.verdict.words)
            for row, finding in zip(self.table.to_dict("records"), self.findings, strict=True)
        ]
        names = [name.replace("_", " ") for name in columns]
        return html_table("Objectives and bounds against time", (*names, "verdict"), rows, most=len(rows))


@names_arguments
def compare(
    problem: Problem,
    backends: Sequence[str | Backend] | None = None,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    *,
    threads: int = 1,
    warm_up: bool = True,
    patience_seconds: float = PATIENCE_SECONDS,
    most_bytes: float | None = None,
    progress: Callable[[str], None] | None = None,
    heard: Heard | None = None,
    found: Callable[[Finding], None] | None = None,
    seconds: float | None = None,
) -> Comparison:
    """Run solvers on a problem, one after the other, and keep what each knew when.

    Parameters
    ----------
    problem : Problem
    backends : sequence of str or Backend, optional
        As for `agree`; by default those that it asks, and `local-search`.
    time_limit_seconds : float
        For each backend.
    threads : int
        For each backend that is given by its name and has such an option; others do as they like.
    warm_up : bool
        Ask each backend once before, with no time at all, so that its time does not have the loading of its code.
    patience_seconds, most_bytes, progress, heard, found
        As for `agree`.
    seconds : float, optional
        The former name of `time_limit_seconds`.

    Examples
    --------
    >>> import rposst_opt as ro
    >>> problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1)
    >>> comparison = ro.compare(problem, ["exact", "scipy-milp"], time_limit_seconds=30)
    >>> comparison.table[["backend", "verdict", "objective"]].round(4).values.tolist()
    [['exact', 'agrees', 0.0667], ['scipy-milp', 'agrees', 0.0667]]
    >>> int(comparison.frame["is_end"].sum())
    2
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ProblemError(f"`threads` must be a whole number from 1 on, got {threads!r}.")
    limit = time_limit_seconds if seconds is None else _by_former_name(seconds, time_limit_seconds)
    limits = checked_limits(limit, patience_seconds, most_bytes)
    findings = asked_in_turn(
        problem,
        named(_usual() if backends is None else backends),
        limits,
        options={"threads": threads},
        warm_up=warm_up,
        progress=progress,
        heard=heard,
        found=found,
    )
    return Comparison(problem=problem, findings=findings, seconds=limit, threads=threads, is_warm=warm_up)


def _by_former_name(seconds: float, time_limit_seconds: float) -> float:
    if time_limit_seconds not in (TIME_LIMIT_SECONDS, seconds):
        raise ProblemError("`seconds` is the former name of `time_limit_seconds`: give one of them.")
    return seconds


def _usual() -> list[str]:
    """Who is asked unless others are named."""
    return [
        name for name, entry in BACKENDS.items() if name in BESIDES_WITNESSES or not entry.capabilities.is_heuristic
    ]


def _least(finding: Finding) -> float:
    """The objective of the best test that a backend found, by the judge."""
    return finding.objective if not finding.profile else min(finding.objective, finding.profile[-1].objective)


def _finite(number: float | None) -> float | None:
    return None if number is None or not math.isfinite(number) else float(number)


def _brief(number: float | None) -> str:
    return "" if number is None or math.isnan(number) else brief_number(number)
