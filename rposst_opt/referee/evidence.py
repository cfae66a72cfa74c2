"""Who is wrong, and by which evidence: every answer is held against the facts.

A test that was found and scored by the judge is a fact, whoever found it. What is refuted by one is named, with the
numbers. The rules are those of `rposst_opt.referee.agreement`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rposst_opt.backends import judge
from rposst_opt.contract import Candidate, Capabilities
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.problem import Problem
from rposst_opt.referee.findings import Contradiction, Finding, Verdict
from rposst_opt.referee.profiles import Point, best_test
from rposst_opt.solution import Solution, Status

LAST_DIGITS = 1e-9  # of the unit of a problem: tests that differ by less are equally good


class Fact(NamedTuple):
    """A test that was found, by whom, and its objective by the judge."""

    objective: float
    backend: str
    test: EfficientTest


class Objection(NamedTuple):
    """What an answer contradicts, and the evidence in a sentence."""

    contradiction: Contradiction
    words: str

    def told_of(self, finding: Finding) -> Finding:
        """The finding, as one that disagrees."""
        return replace(finding, verdict=Verdict.DISAGREES, contradiction=self.contradiction, reason=self.words)


def weigh_evidence(problem: Problem, findings: Sequence[Finding]) -> list[Finding]:
    """Hold every answer, and all that was told on the way, against the facts: the objectives of tests that were found.

    Tests that were handed over on the way are facts too, also those of a backend that did not live to answer.
    """
    best = _best_fact(problem, findings)
    if best is None:
        return [_with_objections(problem, finding, None) for finding in findings]
    return [_with_objections(problem, _weighed(problem, finding, best), best) for finding in findings]


def _best_fact(problem: Problem, findings: Sequence[Finding]) -> Fact | None:
    """The best answer; or a test on the way, if it is better by more than the last digits."""
    answers = [
        Fact(finding.solution.objective, finding.backend, finding.solution.test)
        for finding in findings
        if finding.solution is not None and finding.solution.test is not None
    ]
    on_the_way = [
        Fact(finding.profile[-1].objective, finding.backend, test)
        for finding in findings
        if (test := best_test(finding.profile)) is not None
    ]
    best_answer = min(answers, key=lambda fact: fact.objective, default=None)
    earlier = min(on_the_way, key=lambda fact: fact.objective, default=None)
    if best_answer is None or earlier is None:
        return best_answer or earlier
    return earlier if earlier.objective < best_answer.objective - problem.allowance(LAST_DIGITS) else best_answer


def _with_objections(problem: Problem, finding: Finding, best: Fact | None) -> Finding:
    """Rule 6: what was told on the way, each number with what refutes it."""
    if not finding.profile or finding.capabilities is None:
        return finding
    allowance = problem.allowance(finding.capabilities.tolerance)
    points = tuple(_objected(point, best, allowance) for point in finding.profile)
    finding = replace(finding, profile=points)
    first = next((point for point in points if point.objection and not point.is_end), None)
    if first is None or finding.verdict is Verdict.DISAGREES:
        return finding
    words = f"on its way, after {first.seconds:.3g} s, {first.objection}"
    words = f"{words}; {finding.reason}" if finding.reason else words
    return Objection(Contradiction.ON_THE_WAY, words).told_of(finding)


def _objected(point: Point, best: Fact | None, allowance: float) -> Point:
    if point.objection or best is None:
        return point
    objection = _refuted_bound(point.lower_bound, best, allowance)
    return point if objection is None else replace(point, objection=objection.words)


def _weighed(problem: Problem, finding: Finding, best: Fact) -> Finding:
    if finding.solution is not None:
        return _held_against(problem, finding, best)
    if finding.candidate is None or finding.capabilities is None or finding.verdict is not Verdict.FOUND_NOTHING:
        return finding
    objection = _refuted_bound(finding.candidate.lower_bound, best, problem.allowance(finding.capabilities.tolerance))
    return finding if objection is None else objection.told_of(finding)


def _held_against(problem: Problem, finding: Finding, best: Fact) -> Finding:
    candidate, solution, capabilities = finding.candidate, finding.solution, finding.capabilities
    assert candidate is not None and solution is not None and capabilities is not None
    allowance = problem.allowance(capabilities.tolerance)
    objection = (
        _false_claim(problem, candidate, solution, allowance)
        or _refuted_bound(candidate.lower_bound, best, allowance)
        or _missed_optimum(problem, finding, capabilities, best, allowance)
    )
    bound = min(candidate.lower_bound, solution.objective)
    if objection is not None:
        return objection.told_of(finding)
    judged = judge(
        problem, replace(candidate, lower_bound=bound), finding.backend, capabilities.tolerance, solution.seconds
    )
    if judged.limit is not None and judged.status is not Status.OPTIMAL:
        reason = finding.reason or f"stopped early by {judged.limit.value}"
        return replace(finding, solution=judged, verdict=Verdict.PROVED_LESS, reason=reason)
    assert solution.test is not None
    same_value = solution.objective - best.objective <= allowance
    if solution.test.cases != best.test.cases and same_value:
        reason = f"as good as {best.backend}'s cases {list(best.test.case_names)}"
        return replace(finding, solution=judged, verdict=Verdict.TIES, reason=reason)
    return replace(finding, solution=judged, verdict=Verdict.AGREES)


def _false_claim(problem: Problem, candidate: Candidate, solution: Solution, allowance: float) -> Objection | None:
    """Rule 2: what the backend says of its own test."""
    assert solution.test is not None
    claimed = candidate.claimed_objective
    if claimed is not None and not abs(claimed - solution.objective) <= allowance:
        return Objection(
            Contradiction.FALSE_VALUE,
            f"it says that its test is worth {claimed:.9g}, and the judge says {solution.objective:.9g}: "
            f"off by {abs(claimed - solution.objective):.3g}, with {allowance:.3g} allowed",
        )
    if candidate.claimed_losses is not None:
        losses = problem.losses(solution.test)
        weights = problem.measure.weights(losses, problem.scenarios.probabilities)
        # A loss enters the objective with its weight, so it may miss by as much more as it counts less.
        claimed_losses = np.where(weights > 0, candidate.claimed_losses, losses)
        misses = weights * np.abs(claimed_losses - losses)
        worst = int(np.argmax(np.nan_to_num(misses, nan=np.inf)))
        if not misses[worst] <= allowance:
            policy = problem.policy_names[problem.scenarios.policies[worst]]
            return Objection(
                Contradiction.FALSE_VALUE,
                f"in the tail, it says that scenario {worst} (policy {policy!r}) loses "
                f"{candidate.claimed_losses[worst]:.9g}, and the judge says {losses[worst]:.9g}",
            )
    return None


def _refuted_bound(bound: float, best: Fact, allowance: float) -> Objection | None:
    """Rule 3: a bound above what was reached."""
    reached = best.objective
    if math.isnan(bound):
        return Objection(Contradiction.REFUTED_BOUND, "its lower bound is NaN")
    if bound > reached + allowance:
        return Objection(
            Contradiction.REFUTED_BOUND,
            f"its lower bound {bound:.9g} is refuted by {best.backend}'s test at {reached:.9g}: "
            f"off by {bound - reached:.3g}, with {allowance:.3g} allowed",
        )
    return None


def _missed_optimum(
    problem: Problem, finding: Finding, capabilities: Capabilities, best: Fact, allowance: float
) -> Objection | None:
    """Rules 4 and 5: a better test exists than the method may miss."""
    assert finding.solution is not None and finding.candidate is not None
    if finding.candidate.limit is not None or capabilities.is_heuristic:
        return None
    missed = finding.solution.objective - best.objective
    if not capabilities.finds_optimum:
        if capabilities.promised_gap is None:
            return None
        allowance += capabilities.promised_gap(problem.stated)
    if missed > allowance:
        return Objection(
            Contradiction.MISSED_OPTIMUM,
            f"its test is at {finding.solution.objective:.9g}, and {best.backend} found one at "
            f"{best.objective:.9g}: off by {missed:.3g}, with {allowance:.3g} allowed",
        )
    return None
