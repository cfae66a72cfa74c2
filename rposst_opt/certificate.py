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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.losses import PiecewiseQuadratic
from rposst_opt.problem import Problem
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.digests import facts_digest, numbers_digest, results_digest
from rposst_opt.values.showing import Shown, brief_number, counted

CHECK_TOLERANCE = 1e-9  # of weights, which sum to one, and of values in units of the largest loss
NUMBERS_AT_ONCE = 2**18  # in a stack of cuts, about

BoolArray = NDArray[np.bool_]


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
        (answer,) = checked_values(problem, [self])
        return answer if isinstance(answer, str) else None

    def values(self, problem: Problem) -> FloatArray:
        """The numbers c_x, one per test case."""
        values: FloatArray = CutStack.of([self]).values(problem)[0]
        return self.add_noise(problem, values)

    def add_noise(self, problem: Problem, values: FloatArray) -> FloatArray:
        """The same numbers with what noise adds to them."""
        values[self.noisy_cases] += problem.noise_costs[self.noisy_cases] * self.noise_direction
        return values

    def why_misshapen(self, problem: Problem) -> str | None:
        """Why this cannot stand among others in a `CutStack`, or has a noise that is none; None otherwise."""
        if len({len(self.scenarios), len(self.tail_weights), len(self.pulls)}) > 1:
            return "it has not as many weights and pulls as scenarios"
        cases, direction = self.noisy_cases, self.noise_direction
        if not len(cases) and not len(direction):
            return None
        if len(cases) != len(direction):
            return "it has not as many noisy cases as its direction has parts"
        if len(np.unique(cases)) < len(cases) or ((cases < 0) | (cases >= problem.n_cases)).any():
            return f"its noisy cases are not different ones of the problem's {problem.n_cases}"
        if not len(problem.noise_costs):
            return "it has noise, and the problem has none"
        if not np.isfinite(direction).all() or np.linalg.norm(direction) > 1 + CHECK_TOLERANCE:
            return "the direction of its noise is longer than one"
        return None


def checked_values(problem: Problem, cuts: Iterable[CertificateCut]) -> Iterator[FloatArray | str]:
    """For every cut the numbers c_x, one per test case; or why it is no cut for the problem.

    Cuts are taken many at once, which is much quicker than one by one.
    """
    left, at_once = iter(cuts), max(1, NUMBERS_AT_ONCE // max(problem.n_scenarios, problem.n_cases))
    while some := list(islice(left, at_once)):
        misshapen = [cut.why_misshapen(problem) for cut in some]
        stack = CutStack.of([cut for cut, reason in zip(some, misshapen, strict=True) if reason is None])
        rows = zip(stack.why_not(problem), stack.values(problem), strict=True)
        for cut, odd in zip(some, misshapen, strict=True):
            reason, values = (odd, np.zeros(0)) if odd is not None else next(rows)
            yield cut.add_noise(problem, values) if reason is None else reason


class CutStack(NamedTuple):
    """Cuts as rows, filled up to the length of the longest with scenario 0 at no weight."""

    is_filled: BoolArray
    scenarios: IntArray
    tail_weights: FloatArray
    pulls: FloatArray

    @classmethod
    def of(cls, cuts: Sequence[CertificateCut]) -> "CutStack":
        """Stack cuts that have as many weights and pulls as scenarios."""
        lengths = np.array([len(cut.scenarios) for cut in cuts], dtype=np.int64)
        is_filled = np.arange(lengths.max(initial=0)) < lengths[:, None]
        columns = np.zeros(is_filled.shape, dtype=np.int64), np.zeros(is_filled.shape), np.zeros(is_filled.shape)
        for column, name in zip(columns, ("scenarios", "tail_weights", "pulls"), strict=True):
            column[is_filled] = np.concatenate([getattr(cut, name) for cut in cuts]) if cuts else []
        return cls(is_filled, *columns)

    def why_not(self, problem: Problem) -> list[str | None]:
        """Why each row is no cut for the problem, by the first rule that it breaks; None if it is one."""
        with np.errstate(all="ignore"):  # what is beyond all numbers breaks a rule
            rules = {
                "it has a weight or a pull that is not finite": self._are_finite(),
                "it names a scenario twice": self._are_different(problem),
                f"it names a scenario beyond the {problem.n_scenarios} of the problem": self._are_known(problem),
                "its weights are no distribution": self._are_distributions(),
                f"its weights are more than {problem.measure!r} allows": self._are_allowed(problem),
                "it has a slope that is not finite": _all_along(np.isfinite(self._slopes(problem))),
                f"a slope is outside what {problem.loss!r} has": self._are_within_range(problem),
            }
        reasons, kept = list(rules), np.array(list(rules.values()))
        first_broken, are_cuts = np.argmin(kept, axis=0), _all_along(kept.T)
        return [None if is_cut else reasons[rule] for is_cut, rule in zip(are_cuts, first_broken, strict=True)]

    def _are_finite(self) -> BoolArray:
        return _all_along(np.isfinite(self.tail_weights) & np.isfinite(self.pulls))

    def _are_different(self, problem: Problem) -> BoolArray:
        fill = problem.n_scenarios + np.arange(self.scenarios.shape[1])
        ascending = np.sort(np.where(self.is_filled, self.scenarios, fill), axis=1)
        return _all_along(np.diff(ascending, axis=1) > 0)

    def _are_known(self, problem: Problem) -> BoolArray:
        return _all_along((self.scenarios >= 0) & (self.scenarios < problem.n_scenarios))

    def _are_distributions(self) -> BoolArray:
        sums = self.tail_weights.sum(axis=1)
        return np.asarray(_all_along((self.tail_weights > 0) | ~self.is_filled) & (np.abs(sums - 1) <= CHECK_TOLERANCE))

    def _are_allowed(self, problem: Problem) -> BoolArray:
        """Whether no set of scenarios has more weight than g of its probability: of those with the greatest α / Ψ."""
        probabilities = np.take(problem.scenarios.probabilities, self.scenarios, mode="clip")
        heaviest_first = np.argsort(-self.tail_weights / probabilities, axis=1, kind="stable")
        tails = np.cumsum(np.take_along_axis(probabilities, heaviest_first, axis=1), axis=1)
        weights = np.cumsum(np.take_along_axis(self.tail_weights, heaviest_first, axis=1), axis=1)
        most = problem.measure.tail_weight(np.minimum(tails, 1.0).ravel()).reshape(tails.shape)
        return _all_along(weights <= most + CHECK_TOLERANCE)

    def _are_within_range(self, problem: Problem) -> BoolArray:
        """Whether slopes are the loss's. A tiny weight makes its slope inexact; then the pull must be nearly right."""
        least, greatest = problem.pieces.slope_range()
        slopes = self.pulls / self.tail_weights
        outside = np.maximum(slopes - greatest, 0.0) + np.maximum(least - slopes, 0.0)
        excess = np.where(self.is_filled, self.tail_weights * outside, 0.0).sum(axis=1)
        return np.asarray(excess <= CHECK_TOLERANCE * np.maximum(1.0, np.abs(self.pulls).sum(axis=1)))

    def _slopes(self, problem: Problem) -> FloatArray:
        """The slopes δ, moved into the range of the loss."""
        slopes = np.where(self.is_filled, self.pulls / self.tail_weights, 0.0)
        return np.clip(slopes, *problem.pieces.slope_range())

    def values(self, problem: Problem) -> FloatArray:
        """The numbers c_x without noise: a row per cut, a column per test case."""
        scenarios = problem.scenarios
        with np.errstate(all="ignore"):
            slopes = self._slopes(problem)
            pulls = self.tail_weights * slopes
            rows = np.arange(len(pulls))[:, None] * problem.n_policies
            places = rows + np.take(scenarios.policies, self.scenarios, mode="clip")
            n_places = len(pulls) * problem.n_policies
            by_policy = np.bincount(places.ravel(), pulls.ravel(), n_places).reshape(len(pulls), problem.n_policies)
            constants = pulls * np.take(scenarios.full_scores, self.scenarios, mode="clip")
            constants += self.tail_weights * problem.pieces.conjugate(slopes.ravel()).reshape(slopes.shape)
            return np.asarray(by_policy @ problem.results.T - constants.sum(axis=1, keepdims=True))


def _all_along(flags: BoolArray) -> BoolArray:
    """Which rows are true all along."""
    return np.asarray(flags.all(axis=1))


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
        **({"rules": rules} if (rules := problem.rules.describe(names)) else {}),
    }


def problem_digest(problem: Problem) -> str:
    """SHA-256 of all that makes a problem: two that differ in it may have different answers.

    It is the digest of `problem_facts` (`rposst_opt.values.digests.facts_digest`): of the names and numbers of the
    results as they are optimised, targets, probabilities, measure, loss, size, required and forbidden cases, offset and
    noise.
    """
    return facts_digest(problem_facts(problem))
