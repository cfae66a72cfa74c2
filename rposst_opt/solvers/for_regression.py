r"""Cases that a regression predicts the full score from: peers that the paper's choice is compared with.

They look at how results on the cases explain the policies' full scores, not at any weights. The weights that they
return are equal ones, and an estimator (`rposst_opt.estimators`) does better with their cases.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.contract import Budget, Candidate, Capabilities
from rposst_opt.problem import Problem
from rposst_opt.results import full_scores
from rposst_opt.solvers.baselines import claims_nothing, uniform_test

PENALTIES = (0.01, 0.1, 1.0)  # that greedy selection tries, in units of a case's sum of squares over policies
DIGITS = 10  # to which cases' merits are told apart: of equal ones the first is taken


@dataclass(frozen=True, kw_only=True)
class GreedyRidge:
    """One case at a time, each time the one with which ridge regression predicts policies that were left out best.

    Leaving a policy out has a closed form, and one more case is a change of rank one, so a step costs no more than a
    product of matrices. Of a few penalties the one with the least error in the end is taken.
    """

    capabilities: ClassVar[Capabilities] = claims_nothing(
        "one case at a time, the least error of ridge regression on policies left out, equal weights"
    )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Choose with every penalty, and keep the best choice."""
        features, outcomes = _centred(problem)
        runs = [self._choose(problem, features, outcomes, penalty) for penalty in PENALTIES]
        _, chosen = min(runs, key=lambda run: run[0])
        return Candidate(test=uniform_test(problem, chosen), lower_bound=-math.inf)

    def _choose(
        self, problem: Problem, features: FloatArray, outcomes: FloatArray, share: float
    ) -> tuple[float, list[int]]:
        """The error in the end, to some digits, and the cases."""
        n_policies = features.shape[1]
        penalty = share * float((features**2).sum(axis=1).mean()) or 1.0
        inverse = np.eye(n_policies) / penalty  # of the Gram matrix of policies plus the penalty
        chosen: list[int] = []
        for case in problem.required_cases:
            inverse = _with_case(inverse, features[case])
            chosen.append(case)
        free, error = list(problem.selectable_cases), math.inf
        for _ in range(problem.size):
            errors = np.round(errors_with_each(inverse, features[free], outcomes), DIGITS)
            best = int(errors.argmin())
            error = float(errors[best])
            inverse = _with_case(inverse, features[free[best]])
            chosen.append(free.pop(best))
        return error, chosen


def _centred(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Results and full scores in units of the results' range, each less its mean over policies."""
    results = problem.results / (float(np.ptp(problem.results)) or 1.0)
    outcomes = full_scores(problem.targets, results)
    return results - results.mean(axis=1, keepdims=True), outcomes - outcomes.mean(axis=1, keepdims=True)


def _with_case(inverse: FloatArray, feature: FloatArray) -> FloatArray:
    moved = inverse @ feature
    after: FloatArray = inverse - np.outer(moved, moved) / (1.0 + feature @ moved)
    return after


def errors_with_each(inverse: FloatArray, features: FloatArray, outcomes: FloatArray) -> FloatArray:
    """The mean squared error of leaving a policy out, with each of these cases added (Sherman and Morrison)."""
    moved = features @ inverse  # (cases, policies)
    gain = 1.0 / (1.0 + (moved * features).sum(axis=1))  # (cases,)
    diagonal = np.diag(inverse) - gain[:, None] * moved**2
    errors = np.zeros(len(features))
    for outcome in outcomes:
        left = inverse @ outcome
        after = left - (gain * (features @ left))[:, None] * moved
        errors += ((after / diagonal) ** 2).mean(axis=1)
    mean: FloatArray = errors / len(outcomes)
    return mean


@dataclass(frozen=True, kw_only=True)
class MinimumRedundancy:
    """Cases that go with the full score and not with each other: minimum redundancy, maximum relevance (mRMR).

    One case at a time, each time the one with the largest ratio of relevance, the F statistic of its correlation with
    the full score, to redundancy, its mean absolute correlation with the cases chosen before.
    """

    capabilities: ClassVar[Capabilities] = claims_nothing(
        "one case at a time, relevant for the full score and unlike the cases before (mRMR), equal weights"
    )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Take case after case."""
        features, outcomes = _centred(problem)
        units = _unit_rows(features)
        relevance = _f_statistics(np.abs(units @ _unit_rows(outcomes).T).mean(axis=1), problem.n_policies)
        chosen = list(problem.required_cases)
        redundancy = np.abs(units @ units[chosen].T).sum(axis=1) if chosen else np.zeros(problem.n_cases)
        free = np.array(problem.selectable_cases)
        for _ in range(problem.size):
            merit = relevance[free] / np.maximum(redundancy[free] / max(len(chosen), 1), 1e-3)
            best = free[int(np.round(merit, DIGITS).argmax())]
            chosen.append(int(best))
            redundancy += np.abs(units @ units[best])
            free = free[free != best]
        return Candidate(test=uniform_test(problem, chosen), lower_bound=-math.inf)


def _unit_rows(rows: FloatArray) -> FloatArray:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: FloatArray = rows / np.where(norms > 0, norms, 1.0)
    return unit


def _f_statistics(correlations: FloatArray, n_policies: int) -> FloatArray:
    square = np.minimum(correlations, 1.0 - 1e-9) ** 2
    statistics: FloatArray = square / (1.0 - square) * max(n_policies - 2, 1)
    return statistics
