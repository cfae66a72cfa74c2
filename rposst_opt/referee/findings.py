"""What is said of one problem by all who were asked: a verdict on each, in one of a few plain words."""

import math
from dataclasses import dataclass
from enum import StrEnum

from rposst_opt.contract import Candidate, Capabilities
from rposst_opt.problem import Problem
from rposst_opt.referee.profiles import Point
from rposst_opt.solution import Solution
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.showing import Shown, brief_number, html_table


class Verdict(StrEnum):
    """What is to be said of a backend's answer. Only a contradiction is a disagreement."""

    AGREES = "agrees"
    TIES = "ties"  # the same objective with other cases
    DISAGREES = "disagrees"  # with the facts, or with the judge
    PROVED_LESS = "proved less in the time"
    FOUND_NOTHING = "found nothing in the time"
    DECLINED = "declined"
    UNAVAILABLE = "unavailable"
    NO_LICENCE = "no licence"
    CRASHED = "crashed"  # it raised, died, or took more memory than it may

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        return {"declined": "cannot state this problem", "unavailable": "not installed"}.get(self.value, self.value)


class Contradiction(StrEnum):
    """What is wrong with an answer that disagrees: the rules of `rposst_opt.referee.agreement`, each in a few words."""

    NO_ANSWER = "no answer"
    FALSE_VALUE = "a false value of its own test"
    REFUTED_BOUND = "a bound that a test refutes"
    MISSED_OPTIMUM = "a worse test than it promises"
    ON_THE_WAY = "something false on its way"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Finding(ByValue, Shown):
    """One backend's answer and what is to be said of it.

    Attributes
    ----------
    backend : str
    verdict : Verdict
    reason : str
        Why, with the numbers and the evidence; empty when there is nothing to explain.
    contradiction : Contradiction or None
        Which rule it breaks, if it disagrees.
    solution : Solution or None
    candidate : Candidate or None
        What the backend itself handed back.
    version : str
        Of the solver's package.
    capabilities : Capabilities or None
        What the backend says of itself, and is held to.
    profile : tuple of Point
        What it told of while it ran, and its answer.
    """

    backend: str
    verdict: Verdict
    reason: str = ""
    contradiction: Contradiction | None = None
    solution: Solution | None = None
    candidate: Candidate | None = None
    version: str = ""
    capabilities: Capabilities | None = None
    profile: tuple[Point, ...] = ()

    @property
    def objective(self) -> float:
        """Of its test, by the judge; infinity if it has none."""
        return math.inf if self.solution is None else self.solution.objective

    def _facts(self) -> list[tuple[str, str]]:
        objective = [] if self.solution is None else [("objective", brief_number(self.solution.objective))]
        reason = [("because", self.reason)] if self.reason else []
        return [("backend", self.backend), ("verdict", self.verdict.words), *objective, *reason]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Agreement(ByValue, Shown):
    """What all backends say of one problem.

    Attributes
    ----------
    problem : Problem
    findings : tuple of Finding
        One per backend, in the order of the table.
    by_tuple : tuple of (cases, Agreement)
        The same for every single tuple, when asked for.
    """

    problem: Problem
    findings: tuple[Finding, ...]
    by_tuple: tuple[tuple[tuple[int, ...], "Agreement"], ...] = ()

    @property
    def dissenters(self) -> tuple[Finding, ...]:
        """Those who contradict the facts or the judge, tuple by tuple included."""
        own = [finding for finding in self.findings if finding.verdict is Verdict.DISAGREES]
        return (*own, *(finding for _, agreement in self.by_tuple for finding in agreement.dissenters))

    @property
    def agreed(self) -> bool:
        """Whether nobody contradicts and somebody answered."""
        answered = any(finding.solution is not None for finding in self.findings)
        return answered and not self.dissenters

    @property
    def best(self) -> Finding | None:
        """Who has the test with the least objective; the first in the table among equals."""
        answered = [finding for finding in self.findings if finding.solution is not None]
        return min(answered, key=lambda finding: finding.objective, default=None)

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many there are of each verdict, for those that there are."""
        found = [finding.verdict for finding in self.findings]
        return {verdict: found.count(verdict) for verdict in Verdict if verdict in found}

    def _facts(self) -> list[tuple[str, str]]:
        verdicts = ", ".join(f"{count} {verdict.words}" for verdict, count in self.counts.items())
        best = self.best
        return [
            ("agreed", "yes" if self.agreed else "no"),
            ("backends", verdicts or "none"),
            *([] if best is None else [("best", f"{brief_number(best.objective)} by {best.backend}")]),
            *([("sets of cases one by one", f"{len(self.by_tuple):,}")] if self.by_tuple else []),
        ]

    def _repr_html_(self) -> str:
        rows = [
            (
                finding.backend,
                "" if finding.solution is None else brief_number(finding.solution.objective),
                "" if finding.candidate is None else brief_number(finding.candidate.lower_bound),
                finding.verdict.words,
                finding.reason,
            )
            for finding in self.findings
        ]
        columns = ("backend", "objective", "lower bound", "verdict", "reason")
        return html_table("All agree" if self.agreed else "No agreement", columns, rows, most=len(rows))
