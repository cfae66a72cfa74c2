r"""A proof of a lower bound that can be checked without the solver that found it.

A certificate claims that no test has an objective below its bound, save the sets of test cases that it names. It
consists of cuts. Each is given by weights α on scenarios and by pulls α_s δ_s, and is checked from these alone:

1. α is a distribution that the measure allows: no set of scenarios has more weight than g of its probability. Sorting
   scenarios by α_s / Ψ_s makes it enough to look at the sets of the first i (between them the most weight that a
   probability u can hold is linear in u, and g is concave).
2. Every slope δ_s gives a line under the loss, Δ(e) ≥ δ_s e - Δ*(δ_s), where Δ* is the conjugate. Hence for all weights
   w of test cases, with the objective ρ the largest α-average that the measure allows,

   .. math:: \rho(w) \ge \sum_s \alpha_s \Delta(a_s^\top w - b_s) \ge \sum_x w_x c_x, \qquad
             c_x = \sum_s \alpha_s \bigl[\delta_s (A_{x j_s} - b_s) - \Delta^*(\delta_s)\bigr]

   Where results are noisy, the noise κ‖s ∘ w‖ of a score is part of the objective. For every direction u no longer than
   one it is at least Σ_x w_x κ s_x u_x, so κ s_x u_x is added to c_x.
3. So a set of test cases on which every c_x is at least the bound has no weights with an objective below the bound.
4. Every set of test cases is ruled out by such a cut, or named.

Points 1 to 3 are here, point 4 is in `rposst_opt.checking`. Plain NumPy, and nothing of the solver: whoever doubts the
one can check it with the other.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.losses import PiecewiseQuadratic
from rposst_opt.problem import Problem
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.digests import facts_digest, numbers_digest, results_digest
from rposst_opt.values.showing import Shown, brief_number, counted

CHECK_TOLERANCE = 1e-9  # of weights, which sum to one, and of values in units of the largest loss


def cut_values(
    *,
    errors: FloatArray,
    tail_weights: FloatArray,
    pulls: FloatArray,
    pieces: PiecewiseQuadratic,
    slope_range: tuple[float, float],
) -> FloatArray:
    r"""The numbers :math:`c_x = \sum_s \alpha_s [\delta_s (A_{x j_s} - b_s) - \Delta^*(\delta_s)]` of a cut.

    Parameters
    ----------
    errors : ndarray of shape (n_cases, n_counted)
        What each test case alone would err by in each scenario that has a weight, ``A[x, j_s] - b_s``.
    tail_weights, pulls : ndarray of shape (n_counted,)
        α, all positive, and αδ.
    pieces : PiecewiseQuadratic
        The loss, whose conjugate is Δ*.
    slope_range : tuple of float
        Slopes outside are moved to its ends: inside it Δ* must be finite.
    """
    with np.errstate(over="ignore"):  # a tiny weight may have a slope beyond all numbers, which is moved to an end
        slopes = np.clip(pulls / tail_weights, *slope_range)
    values: FloatArray = errors @ (tail_weights * slopes) - tail_weights @ pieces.conjugate(slopes)
    return values


@dataclass(frozen=True, eq=False)
class CertificateCut(ByValue):
    """One cut: the scenarios with a weight, by position in `Problem.scenarios`, their weights α and their pulls αδ.

    If results are noisy, also the direction u of the noise, at the cases where it is not zero.
    """

    scenarios: IntArray
    tail_weights: FloatArray
    pulls: FloatArray
    noisy_cases: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    noise_direction: FloatArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def from_dense(
        cls, tail_weights: FloatArray, pulls: FloatArray, *, noise_direction: FloatArray
    ) -> "CertificateCut":
        """Leave out the scenarios without a weight, and the cases that the noise does not point to."""
        counted, noisy = np.flatnonzero(tail_weights), np.flatnonzero(noise_direction)
        return cls(counted, tail_weights[counted], pulls[counted], noisy, noise_direction[noisy])

    def why_not(self, problem: Problem) -> str | None:
        """Why this is no cut for the problem, or None if it is one."""
        if len({len(self.scenarios), len(self.tail_weights), len(self.pulls)}) > 1:
            return "it has not as many weights and pulls as scenarios"
        if not (np.isfinite(self.tail_weights).all() and np.isfinite(self.pulls).all()):
            return "it has a weight or a pull that is not finite"
        if len(np.unique(self.scenarios)) < len(self.scenarios):
            return "it names a scenario twice"
        if ((self.scenarios < 0) | (self.scenarios >= problem.n_scenarios)).any():
            return f"it names a scenario beyond the {problem.n_scenarios} of the problem"
        if (self.tail_weights <= 0).any() or abs(self.tail_weights.sum() - 1) > CHECK_TOLERANCE:
            return "its weights are no distribution"
        probabilities = problem.scenarios.probabilities[self.scenarios]
        heaviest_first = np.argsort(-self.tail_weights / probabilities, kind="stable")
        tails = np.minimum(np.cumsum(probabilities[heaviest_first]), 1.0)
        if (np.cumsum(self.tail_weights[heaviest_first]) > problem.measure.tail_weight(tails) + CHECK_TOLERANCE).any():
            return f"its weights are more than {problem.measure!r} allows"
        least, greatest = problem.pieces.slope_range()
        with np.errstate(over="ignore"):
            slopes = self.pulls / self.tail_weights
        if not np.isfinite(np.clip(slopes, least, greatest)).all():
            return "it has a slope that is not finite"
        # A tiny weight makes its slope inexact; then it is the pull that must be nearly right.
        excess = self.tail_weights * (np.maximum(slopes - greatest, 0.0) + np.maximum(least - slopes, 0.0))
        if excess.sum() > CHECK_TOLERANCE * max(1.0, np.abs(self.pulls).sum()):
            return f"a slope is outside what {problem.loss!r} has"
        return self._why_not_noise(problem)

    def _why_not_noise(self, problem: Problem) -> str | None:
        cases, direction = self.noisy_cases, self.noise_direction
        if not len(cases) and not len(direction):
            return None
        if len(cases) != len(direction):
            return "it has not as many noisy cases as its direction has parts"
        if len(np.unique(cases)) < len(cases) or ((cases < 0) | (cases >= problem.n_cases)).any():
            return f"its noisy cases are not different ones of the problem's {problem.n_cases}"
        if len(cases) and not len(problem.noise_costs):
            return "it has noise, and the problem has none"
        if not np.isfinite(direction).all() or np.linalg.norm(direction) > 1 + CHECK_TOLERANCE:
            return "the direction of its noise is longer than one"
        return None

    def values(self, problem: Problem) -> FloatArray:
        """The numbers c_x, one per test case."""
        pieces, scenarios = problem.pieces, problem.scenarios
        values = cut_values(
            errors=problem.results[:, scenarios.policies[self.scenarios]] - scenarios.full_scores[self.scenarios],
            tail_weights=self.tail_weights,
            pulls=self.pulls,
            pieces=pieces,
            slope_range=pieces.slope_range(),
        )
        if len(self.noisy_cases):
            values[self.noisy_cases] += problem.noise_costs[self.noisy_cases] * self.noise_direction
        return values


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(ByValue, Shown):
    """A proof that no test has an objective below `bound`, save those on the sets of cases in `exceptions`.

    One that was read from a file also has the `problem_digest` of the problem that it is about, if the file says so.
    """

    bound: float
    cuts: tuple[CertificateCut, ...]
    exceptions: tuple[tuple[int, ...], ...] = ()
    problem_sha256: str | None = field(default=None, compare=False)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("bound", brief_number(self.bound)), ("by", counted(len(self.cuts), "cut"))]
        return [*facts, *([("save on", counted(len(self.exceptions), "named set"))] if self.exceptions else [])]


def problem_facts(problem: Problem) -> dict[str, Any]:
    """What a problem is, in values that JSON has; arrays by their digests."""
    names = problem.case_names
    return {
        "results_sha256": results_digest(names, problem.policy_names, problem.results),
        "targets_sha256": numbers_digest(problem.targets),
        "probabilities_sha256": numbers_digest(problem.probabilities),
        "measure": problem.measure.describe(),
        "loss": problem.loss.describe(),
        "size": problem.size,
        "required": [names[case] for case in problem.required_cases],
        "forbidden": [names[case] for case in problem.forbidden_cases],
        "offset": problem.offset,
        "noise_sha256": None if problem.noise is None else numbers_digest(problem.noise),
        "noise_weight": None if problem.noise is None else problem.noise_weight,
    }


def problem_digest(problem: Problem) -> str:
    """SHA-256 of all that makes a problem: two that differ in it may have different answers.

    It is the digest of `problem_facts` (`rposst_opt.values.digests.facts_digest`): of the names and numbers of the
    results as they are optimised, targets, probabilities, measure, loss, size, required and forbidden cases, offset and
    noise.
    """
    return facts_digest(problem_facts(problem))
