"""Certificates in rational numbers: cuts are below the exact objective of every test, to the last digit."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import losses, measures, problems

import rposst_opt as ro
from rposst_opt.arrays import FloatArray
from rposst_opt.certificate import CertificateCut
from rposst_opt.checking.rationals import RationalCuts, exact_conjugate, exact_tail_weight
from rposst_opt.experiments.domains import racing_arrows


def exact_loss(pieces: ro.PiecewiseQuadratic, error: Fraction) -> Fraction:
    piece = sum(Fraction(knot) < error for knot in pieces.knots.tolist())
    constant, linear, quadratic = map(Fraction, pieces.coefficients[piece].tolist())
    return constant + linear * error + quadratic * error**2


def exact_objective(problem: ro.Problem, weights: list[Fraction]) -> Fraction:
    """The definition of the objective without noise, word for word, for weights on all cases."""
    results = [[Fraction(value) for value in row] for row in problem.results.tolist()]
    tail_weight = exact_tail_weight(problem.measure)
    total = sum(map(Fraction, problem.scenarios.probabilities.tolist()))
    scenarios = []
    for policy, target, probability in zip(
        problem.scenarios.policies, problem.scenarios.target_rows, problem.scenarios.probabilities.tolist(), strict=True
    ):
        score = sum(weight * row[policy] for weight, row in zip(weights, results, strict=True))
        full_score = sum(
            Fraction(weight) * row[policy]
            for weight, row in zip(problem.targets[target].tolist(), results, strict=True)
        )
        scenarios.append((exact_loss(problem.pieces, score - full_score), Fraction(probability) / total))
    value, tail = Fraction(0), Fraction(0)
    for loss, probability in sorted(scenarios, reverse=True):
        value += (tail_weight(tail + probability) - tail_weight(tail)) * loss
        tail += probability
    return value


def bold_cut(problem: ro.Problem, weights: list[Fraction], rng: np.random.Generator) -> CertificateCut:
    """A cut that is equal to the losses at these weights, and weighs the worst scenarios more than may be allowed."""
    scores = np.array([float(weight) for weight in weights]) @ problem.results
    errors = scores[problem.scenarios.policies] - problem.scenarios.full_scores
    worst = np.argsort(-problem.pieces.value(errors), kind="stable")[: rng.integers(1, 4)]
    tail_weights = np.array([0.6, 0.3, 0.1])[: len(worst)]
    order = rng.permutation(len(worst))
    slopes = problem.pieces.slope(errors[worst])
    return CertificateCut(worst[order], tail_weights[order], (tail_weights * slopes)[order])


@dataclass(frozen=True)
class Rising(ro.Loss):
    """A loss that has no slope of zero, and need not be zero where there is no error."""

    base: float
    name = "rising"

    @property
    def pieces(self) -> ro.PiecewiseQuadratic:
        return ro.PiecewiseQuadratic(knots=[0.0], coefficients=[[self.base, 0.5, 0.0], [self.base, 2.0, 0.0]])


@given(problems(most_cases=5, most_policies=4), st.sampled_from([None, -1.0, 1.0]), st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_a_cut_is_nowhere_above_the_exact_objective_whatever_its_weights(
    problem: ro.Problem, base: float | None, seed: int
) -> None:
    problem = problem if base is None else replace(problem, loss=Rising(base))
    rng, exact = np.random.default_rng(seed), RationalCuts(problem)
    parts = rng.integers(0, 4, problem.n_cases) + np.eye(problem.n_cases, dtype=int)[rng.integers(problem.n_cases)]
    weights = [Fraction(part, int(parts.sum())) for part in parts.tolist()]
    values = exact.values(bold_cut(problem, weights, rng))
    below = sum(weight * value for weight, value in zip(weights, values, strict=True))
    assert below <= exact_objective(problem, weights)


def check_comparisons(exact: RationalCuts, cut: CertificateCut) -> None:
    """Bounds near the values of a cut, one bit apart, are told to be below or above as these are."""
    values = exact.values(cut)
    for nearest in {float(value) for value in values}:
        for bound in (nearest, math.nextafter(nearest, math.inf), math.nextafter(nearest, -math.inf)):
            (is_below,) = exact.below([cut], bound)
            assert not isinstance(is_below, str)
            assert is_below.tolist() == [value < Fraction(bound) for value in values]


@given(problems())
@settings(max_examples=20)
def test_what_floats_say_of_a_cut_is_what_it_is_up_to_rounding(problem: ro.Problem) -> None:
    certificate = ro.solve(problem, "exact", certificate=True).certificate
    assert certificate is not None
    exact = RationalCuts(problem)
    for cut in certificate.cuts[:3]:
        values = exact.values(cut)
        rounded = np.array([float(value) for value in values])
        assert rounded == pytest.approx(cut.values(problem), abs=problem.allowance(1e-11))
        check_comparisons(exact, cut)
        proved = exact.least(cut, range(problem.n_cases))
        assert Fraction(proved) <= min(values) < Fraction(math.nextafter(proved, math.inf))


@given(problems())
@settings(max_examples=40)
def test_certificates_of_the_solver_hold_to_the_last_digit(problem: ro.Problem) -> None:
    solution = ro.solve(problem, "exact", certificate=True)
    assert solution.certificate is not None
    outcome = ro.verify_certificate(problem, solution.certificate, exact_arithmetic=True)
    assert outcome.holds, outcome.reason
    assert outcome.bound == solution.certificate.bound


def crossed_cuts() -> tuple[ro.Problem, ro.Certificate]:
    """Two cases that rank two policies in opposite ways: each alone is off by 1/2, which a cut each proves."""
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1)
    halves = np.full(2, 0.5)
    cuts = tuple(CertificateCut(np.arange(2), halves, sign * np.array([-0.5, 0.5])) for sign in (1, -1))
    return problem, ro.Certificate(0.5, cuts)


def test_one_bit_too_much_is_refused() -> None:
    problem, proof = crossed_cuts()
    one_bit_more = replace(proof, bound=math.nextafter(0.5, 1.0))
    assert ro.verify_certificate(problem, proof, exact_arithmetic=True).bound == 0.5
    assert not ro.verify_certificate(problem, one_bit_more, exact_arithmetic=True).holds
    assert ro.verify_certificate(problem, one_bit_more).holds  # which rounding could explain


def test_a_bound_above_the_objective_by_less_than_what_rounding_may_do_is_refused() -> None:
    table = racing_arrows(16, np.random.default_rng(1)).to_numpy()
    problem = ro.Problem(results=table, size=3, targets=ro.softmax_targets(table), measure=ro.CVaR(0.1))
    solution = ro.solve(problem, "exact", certificate=True)
    assert solution.certificate is not None
    assert ro.verify_certificate(problem, solution.certificate, exact_arithmetic=True).holds
    forged = replace(solution.certificate, bound=solution.objective + 1e-12)
    assert ro.verify_certificate(problem, forged).holds
    assert not ro.verify_certificate(problem, forged, exact_arithmetic=True).holds


def test_a_tampered_cut_is_refused_in_rational_numbers_too() -> None:
    problem, proof = crossed_cuts()
    steeper = replace(proof.cuts[0], pulls=1.5 * proof.cuts[0].pulls)
    outcome = ro.verify_certificate(problem, replace(proof, cuts=(steeper, proof.cuts[1])), exact_arithmetic=True)
    assert "a slope is outside" in str(outcome.reason)


def test_noise_is_counted_without_a_square_root() -> None:
    """Cuts of a noisy problem, with directions that rounding or more has made too long, against κ‖s ∘ w‖ squared."""
    rng = np.random.default_rng(4)
    for _ in range(8):
        problem = ro.Problem(results=rng.random((5, 4)), size=2, measure=ro.CVaR(0.3), noise=rng.random(5))
        certificate = ro.solve(problem, "exact", certificate=True).certificate
        assert certificate is not None and problem.noise is not None
        assert ro.verify_certificate(problem, certificate, exact_arithmetic=True).holds
        exact = RationalCuts(problem)
        parts = rng.integers(1, 5, 5)
        weights = [Fraction(part, int(parts.sum())) for part in parts.tolist()]
        spread = [weight * Fraction(noise) for weight, noise in zip(weights, problem.noise.tolist(), strict=True)]
        noise_squared = Fraction(problem.noise_weight) ** 2 * sum(each**2 for each in spread)
        for cut in certificate.cuts[:3]:
            check_comparisons(exact, cut)
            for each in (cut, replace(cut, noise_direction=1.2 * cut.noise_direction)):
                below = sum(weight * value for weight, value in zip(weights, exact.values(each), strict=True))
                excess = below - exact_objective(problem, weights)
                assert excess <= 0 or excess**2 <= noise_squared


@given(measures(), st.fractions(0, 1, max_denominator=50))
def test_exact_tail_weights_are_the_measures(measure: ro.Measure, tail: Fraction) -> None:
    exact = float(exact_tail_weight(measure)(tail))
    nearby = measure.tail_weight(np.array([float(tail)]))[0]
    assert exact == pytest.approx(nearby, abs=1e-12)
    assert exact_tail_weight(measure)(Fraction(1)) == 1


@given(losses(), st.floats(-1, 1))
def test_exact_conjugates_are_the_losses(loss: ro.Loss, share: float) -> None:
    least, greatest = np.clip(loss.pieces.slope_range(), -3.0, 3.0)
    slope = float(np.clip(share * 3.0, least, greatest))
    exact = float(exact_conjugate(loss.pieces)(Fraction(slope)))
    assert exact == pytest.approx(loss.pieces.conjugate(np.array([slope]))[0], abs=1e-12)


@dataclass(frozen=True)
class Root(ro.Measure):
    """A measure that has no rational values."""

    name = "root"

    def tail_weight(self, tail: FloatArray) -> FloatArray:
        return np.sqrt(tail)


@pytest.mark.parametrize(
    ("measure", "words"), [(Root(), "knows Mean, CVaR, WorstCase, KOfN"), (ro.KOfN(1, 5_000), "up to n = 1,000")]
)
def test_what_cannot_be_said_in_rational_numbers_is_refused(measure: ro.Measure, words: str) -> None:
    problem = replace(crossed_cuts()[0], measure=measure)
    with pytest.raises(ro.Unsupported, match=words):
        ro.verify_certificate(problem, crossed_cuts()[1], exact_arithmetic=True)
