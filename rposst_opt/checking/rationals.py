r"""What do a certificate's cuts prove, if nothing is rounded? They are worked out anew, in rational numbers.

Every float is a rational number. The problem is taken as it is stated: results, targets, tail fractions and the pieces
of the loss are what their floats say, full scores are exact sums, probabilities and shares of a mixture are divided by
their exact sums. So the objective of every test is a real number without rounding, and a cut that is below it is proved
to be. A certificate's weights α are rounded, and so they may exceed by a little what the measure allows. They are
repaired first: with A and F the sums of α and Ψ over the scenarios with the greatest α_s / Ψ_s, the mixture

.. math:: (1 - t)\,\alpha + t\,\Psi, \qquad t = \max_{A > g(F)} \frac{A - g(F)}{A - F}

is allowed exactly, because mixing keeps the order of scenarios and (1 - t) A + t F <= g(F) for all of these sums.
Slopes are free: any within the range of the loss gives a line under it, Δ(e) >= δ e - Δ*(δ). Of the direction u of the
noise it matters that ‖u‖ <= 1, which is true of u / ‖u‖² where ‖u‖² > 1; so no square root is taken.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray
from rposst_opt.certificate import BoolArray, CertificateCut, checked_values
from rposst_opt.errors import Unsupported
from rposst_opt.losses import PiecewiseQuadratic
from rposst_opt.measures import KOfN, Measure, Mixture
from rposst_opt.problem import Problem

MOST_DRAWN = 1_000  # scenarios in k-of-N: its tail weight is a polynomial of this degree
SHARE_UNIT = 2**100  # shares t are rounded up to whole parts of one, so that numbers stay short

TailWeight = Callable[[Fraction], Fraction]


class RationalCuts:
    """The cuts of a problem, in rational numbers.

    Parameters
    ----------
    problem : Problem
        As solvers are given it (`Problem.stated`).
    """

    def __init__(self, problem: Problem) -> None:
        scenarios, targets = problem.scenarios, Whole.of(problem.targets)
        self.problem = problem
        self.results = Whole.of(problem.results)
        self.policies = scenarios.policies.tolist()
        full_scores = (targets.numerators @ self.results.numerators)[scenarios.target_rows, scenarios.policies]
        unit = targets.denominator * self.results.denominator
        self.full_scores = [Fraction(score, unit) for score in full_scores]
        probabilities = Whole.of(scenarios.probabilities).numerators
        self.probabilities = [Fraction(each, sum(probabilities)) for each in probabilities]
        self.tail_weight = cache(exact_tail_weight(problem.measure))
        self.conjugate = cache(exact_conjugate(problem.pieces))
        self.slope_range = problem.pieces.slope_range()
        self.noise_costs = exact_noise_costs(problem)

    def below(self, cuts: Sequence[CertificateCut], bound: float) -> Iterator[BoolArray | str]:
        """For every cut whether it is below the bound, case by case; or why it is none."""
        exact_bound = Fraction(bound)
        for cut, rounded in zip(cuts, checked_values(self.problem, cuts), strict=True):
            yield rounded if isinstance(rounded, str) else self._is_below(cut, exact_bound)

    def _is_below(self, cut: CertificateCut, bound: Fraction) -> BoolArray:
        """Whether a cut is below the bound, case by case: whole numbers are compared, which is quicker."""
        scores, constant = self.parts(cut)
        limit = (bound + constant) * scores.denominator
        limits = [math.ceil(limit)] * len(scores.numerators)
        for case, noise in self.noise_parts(cut).items():
            limits[case] = math.ceil(limit - noise * scores.denominator)
        return np.array([score < most for score, most in zip(scores.numerators, limits, strict=True)])

    def least(self, cut: CertificateCut, cases: Sequence[int]) -> float:
        """What a cut proves for tests on these cases: a float that is not above its least value there."""
        values = self.values(cut)
        least = _least_average([values[case] for case in cases], *self.problem.rules.limits_of(cases))
        nearest = float(least)
        return nearest if Fraction(nearest) <= least else math.nextafter(nearest, -math.inf)

    def values(self, cut: CertificateCut) -> list[Fraction]:
        r"""The numbers :math:`c_x = \sum_s \alpha_s [\delta_s (A_{x j_s} - b_s) - \Delta^*(\delta_s)]`, α repaired.

        Where results are noisy, what noise adds is part of them.
        """
        scores, constant = self.parts(cut)
        values = [Fraction(score, scores.denominator) - constant for score in scores.numerators]
        for case, noise in self.noise_parts(cut).items():
            values[case] += noise
        return values

    def parts(self, cut: CertificateCut) -> tuple["Whole", Fraction]:
        r"""For every case :math:`\sum_s \alpha_s \delta_s A_{x j_s}`, and the rest of c_x, which is taken off of it.

        Scenarios that have a weight by the repair alone have the idle slope. First all are given that, with the share
        of Ψ that is mixed in; then those of the cut have their own.
        """
        weights, share = self.repaired(cut)
        idle_slope, idle_pulls, idle_constant = self.idle
        pulls, constant = {policy: share * pull for policy, pull in idle_pulls.items()}, share * idle_constant
        for scenario, weight, slope in zip(cut.scenarios.tolist(), weights, self.slopes(cut), strict=True):
            policy, idle_weight = self.policies[scenario], share * self.probabilities[scenario]
            own_weight = (1 - share) * weight + idle_weight
            pulls[policy] = pulls.get(policy, Fraction(0)) + own_weight * slope - idle_weight * idle_slope
            constant += own_weight * self.line_constant(scenario, slope)
            constant -= idle_weight * self.line_constant(scenario, idle_slope)
        return self.results.times(pulls), constant

    def repaired(self, cut: CertificateCut) -> tuple[list[Fraction], Fraction]:
        """The weights α of a cut, scaled to sum to one, and the share t of Ψ that makes them allowed."""
        numerators = Whole.of(cut.tail_weights).numerators
        weights = [Fraction(each, sum(numerators)) for each in numerators]
        probabilities = [self.probabilities[scenario] for scenario in cut.scenarios.tolist()]
        pairs = zip(weights, probabilities, strict=True)
        heaviest_first = sorted(pairs, key=lambda pair: pair[0] / pair[1], reverse=True)
        weight_so_far, tail, share = Fraction(0), Fraction(0), Fraction(0)
        for weight, probability in heaviest_first:
            weight_so_far, tail = weight_so_far + weight, tail + probability
            most = self.tail_weight(tail)
            if weight_so_far > most:
                share = max(share, (weight_so_far - most) / (weight_so_far - tail))
        return weights, Fraction(math.ceil(share * SHARE_UNIT), SHARE_UNIT)

    def slopes(self, cut: CertificateCut) -> list[Fraction]:
        """A slope for every scenario of a cut, within the range of the loss; nearest floats do."""
        with np.errstate(over="ignore"):
            slopes = np.clip(cut.pulls / cut.tail_weights, *self.slope_range)
        return [Fraction(slope) for slope in np.nan_to_num(slopes).tolist()]

    def line_constant(self, scenario: int, slope: Fraction) -> Fraction:
        """What is taken off ``slope * score`` for a line that is below the loss of a scenario."""
        return slope * self.full_scores[scenario] + self.conjugate(slope)

    @cached_property
    def idle(self) -> tuple[Fraction, dict[int, Fraction], Fraction]:
        """The slope nearest to zero; and if all scenarios had it, pulls by policy and the constant, weighed by Ψ."""
        slope, constant = Fraction(float(np.clip(0.0, *self.slope_range))), Fraction(0)
        pulls: dict[int, Fraction] = {}
        for scenario, probability in enumerate(self.probabilities):
            constant += probability * self.line_constant(scenario, slope)
            if slope:
                policy = self.policies[scenario]
                pulls[policy] = pulls.get(policy, Fraction(0)) + probability * slope
        return slope, pulls, constant

    def noise_parts(self, cut: CertificateCut) -> dict[int, Fraction]:
        """What noise adds to a cut, κ s_x u_x, by case, for a direction u that is not longer than one."""
        direction = [Fraction(part) for part in cut.noise_direction.tolist()]
        length = max(Fraction(1), sum((part * part for part in direction), Fraction(0)))
        pairs = zip(cut.noisy_cases.tolist(), direction, strict=True)
        return {case: self.noise_costs[case] * part / length for case, part in pairs}


class Whole(NamedTuple):
    """Floats as whole numbers over one denominator, a power of two."""

    numerators: NDArray[Any]  # of Python's own integers, which have no limit
    denominator: int

    @classmethod
    def of(cls, values: FloatArray) -> "Whole":
        """These floats, without any rounding."""
        ratios = [value.as_integer_ratio() for value in values.ravel().tolist()]
        denominator = max(below for _, below in ratios)
        numerators = np.empty(len(ratios), dtype=object)
        numerators[:] = [above * (denominator // below) for above, below in ratios]
        return cls(numerators.reshape(values.shape), denominator)

    def times(self, factors: Mapping[int, Fraction]) -> "Whole":
        """The product of this matrix and a vector, given by its entries that are not zero."""
        common = math.lcm(*(factor.denominator for factor in factors.values()))
        whole = np.array([int(factor * common) for factor in factors.values()], dtype=object)
        return Whole(self.numerators[:, list(factors)] @ whole, common * self.denominator)


def exact_tail_weight(measure: Measure) -> TailWeight:
    """The function g of a measure, from rational numbers to rational numbers.

    Examples
    --------
    >>> exact_tail_weight(KOfN(1, 2))(Fraction(1, 3))
    Fraction(5, 9)
    """
    if isinstance(measure, Mixture):
        parts = [(Fraction(share), exact_tail_weight(part)) for share, part in measure.parts]
        total = sum(share for share, _ in parts)
        return lambda tail: sum((share * weight(tail) for share, weight in parts), Fraction(0)) / total
    if isinstance(measure, KOfN):
        return _exact_k_of_n(measure.k, measure.n)
    if measure.cvar_tail_fraction is None:
        raise Unsupported(
            f"exact arithmetic knows Mean, CVaR, WorstCase, KOfN and mixtures of these, got {measure!r}: leave it out."
        )
    fraction = Fraction(measure.cvar_tail_fraction)
    return lambda tail: min(tail / fraction, Fraction(1)) if fraction else Fraction(tail > 0)


def _exact_k_of_n(k: int, n: int) -> TailWeight:
    """g(u) = E[min(k, B)] / k = 1 - Σ_{i<k} (1 - i/k) P[B = i] with B ~ Binomial(n, u)."""
    if n > MOST_DRAWN:
        raise Unsupported(f"exact arithmetic takes k-of-N up to n = {MOST_DRAWN:,}, got n = {n:,}: leave it out.")

    def weight(tail: Fraction) -> Fraction:
        hit, miss, whole = tail.numerator, tail.denominator - tail.numerator, tail.denominator
        lacking = sum((k - i) * math.comb(n, i) * hit**i * miss ** (n - i) for i in range(k))
        return 1 - Fraction(lacking, k * whole**n)

    return weight


def exact_conjugate(pieces: PiecewiseQuadratic) -> Callable[[Fraction], Fraction]:
    """The supremum over errors e of ``slope * e - loss(e)`` as a function of slopes within the range of the loss.

    Pieces are taken as they stand, each on its own closed interval, also if they miss each other where they meet.

    Examples
    --------
    >>> exact_conjugate(PiecewiseQuadratic(knots=[], coefficients=[[0, 0, 1]]))(Fraction(1))
    Fraction(1, 4)
    """
    knots = [Fraction(knot) for knot in pieces.knots.tolist()]
    table = [tuple(Fraction(each) for each in row) for row in pieces.coefficients.tolist()]
    intervals = list(zip([None, *knots], [*knots, None], strict=True))

    def conjugate(slope: Fraction) -> Fraction:
        values = []
        for (constant, linear, quadratic), (left, right) in zip(table, intervals, strict=True):
            errors = [end for end in (left, right) if end is not None] or [Fraction(0)]
            tangent = (slope - linear) / (2 * quadratic) if quadratic else None
            if tangent is not None and (left is None or left < tangent) and (right is None or tangent < right):
                errors.append(tangent)
            values += [slope * error - (constant + error * (linear + error * quadratic)) for error in errors]
        return max(values)

    return conjugate


def exact_noise_costs(problem: Problem) -> list[Fraction]:
    """κ s_x of every case; none if the problem has no noise."""
    noise = [] if problem.noise is None else problem.noise.tolist()
    return [Fraction(problem.noise_weight) * Fraction(each) for each in noise]


def _least_average(values: Sequence[Fraction], least: FloatArray, most: FloatArray) -> Fraction:
    """The least average of these values over weights within limits that sum to one (`assembly.least_average`)."""
    weights, rest = [Fraction(weight) for weight in least.tolist()], 1 - sum(map(Fraction, least.tolist()))
    for place in sorted(range(len(values)), key=values.__getitem__):
        more = max(min(rest, Fraction(float(most[place])) - weights[place]), Fraction(0))
        weights[place], rest = weights[place] + more, rest - more
    return sum((weight * value for weight, value in zip(weights, values, strict=True)), rest * min(values))
