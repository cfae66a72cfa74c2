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
from rposst_opt.problem import Problem
from rposst_opt.referee.findings import Contradiction, Finding, Verdict
from rposst_opt.solution import Solution, Status


class Objection(NamedTuple):
    """What an answer contradicts, and the evidence in a sentence."""

    contradiction: Contradiction
    words: str

    def told_of(self, finding: Finding) -> Finding:
        """The finding, as one that disagrees."""
        return replace(finding, verdict=Verdict.DISAGREES, contradiction=self.contradiction, reason=self.words)


def weigh_evidence(problem: Problem, findings: Sequence[Finding]) -> list[Finding]:
    """Hold every answer against the facts: the objectives of the tests that were found."""
    answered = [finding for finding in findings if finding.solution is not None]
    if not answered:
        return list(findings)
    best = min(answered, key=lambda finding: finding.objective)
    return [_weighed(problem, finding, best) for finding in findings]


def _weighed(problem: Problem, finding: Finding, best: Finding) -> Finding:
    if finding.solution is not None:
        return _held_against(problem, finding, best)
    if finding.candidate is None or finding.capabilities is None or finding.verdict is not Verdict.FOUND_NOTHING:
        return finding
    objection = _refuted_bound(finding.candidate, best, problem.allowance(finding.capabilities.tolerance))
    return finding if objection is None else objection.told_of(finding)


def _held_against(problem: Problem, finding: Finding, best: Finding) -> Finding:
    candidate, solution, capabilities = finding.candidate, finding.solution, finding.capabilities
    assert candidate is not None and solution is not None and capabilities is not None and best.solution is not None
    allowance = problem.allowance(capabilities.tolerance)
    objection = (
        _false_claim(problem, candidate, solution, allowance)
        or _refuted_bound(candidate, best, allowance)
        or _missed_optimum(problem, finding, capabilities, best, allowance)
    )
    bound = min(candidate.lower_bound, solution.objective)
    if objection is not None:
        return objection.told_of(finding)
    judged = judge(
        problem, replace(candidate, lower_bound=bound), finding.backend, capabilities.tolerance, solution.seconds
    )
    if judged.limit is not None and judged.status is not Status.OPTIMAL:
        reason = f"stopped early by {judged.limit.value}"
        return replace(finding, solution=judged, verdict=Verdict.PROVED_LESS, reason=reason)
    assert solution.test is not None and best.solution.test is not None
    same_value = solution.objective - best.solution.objective <= allowance
    if solution.test.cases != best.solution.test.cases and same_value:
        reason = f"as good as {best.backend}'s cases {list(best.solution.test.case_names)}"
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


def _refuted_bound(candidate: Candidate, best: Finding, allowance: float) -> Objection | None:
    """Rule 3: a bound above what was reached."""
    bound, reached = candidate.lower_bound, best.objective
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
    problem: Problem, finding: Finding, capabilities: Capabilities, best: Finding, allowance: float
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
