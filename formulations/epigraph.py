r"""The problem as plain arrays, ready for any modelling language; no solver here.

Every program of this package is an epigraph of the same shape. With weights w on the simplex, losses ℓ, and the measure
as a mixture of CVaRs with shares λ and tail fractions η (`Measure.cvar_mixture`):

.. math::

    \min\ \sum_i \lambda_i \Bigl(v_i + \tfrac1{\eta_i} \sum_s \Psi_s u_{is}\Bigr)
    \quad\text{s.t.}\quad
    & \text{score}_j = \sum_x A_{xj} w_x \\
    & \ell_s \ge c_{p0} + c_{p1}\,(\text{score}_{j_s} - b_s) \quad\text{for every affine piece } p \\
    & u_{is} \ge \ell_s - v_i,\quad u_{is} \ge 0

*Why it equals the problem.* CVaR(η) of losses is the least value of v + (1/η) Σ Ψ_s max(ℓ_s - v, 0) over v (Rockafellar
and Uryasev, 2000); a mixture adds up; and since everything grows with ℓ, no ℓ_s is left above its largest piece at an
optimum. A tail fraction of 0 is the largest loss, so its term is v_i alone with v_i ≥ ℓ_s; a tail fraction of 1 is the
mean, so its term is Σ Ψ_s ℓ_s. Noise in the results adds the norm ‖κ s ∘ w‖₂, a second-order cone; linear programs
cannot state it.

*Units.* Solvers have absolute tolerances, so results are mapped to [0, 1] and losses divided by their largest possible
value: the program's value times `unit` is the objective. Weights are on the simplex, so shifting results shifts the
scores of both tests alike.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import Unsupported
from rposst_opt.losses import PiecewiseQuadratic
from rposst_opt.problem import Problem


class Epigraph(NamedTuple):
    """A problem in a solver's units.

    Attributes
    ----------
    results : ndarray of shape (n_cases, n_policies)
        In [0, 1].
    policies : ndarray of shape (n_scenarios,)
        The policy of each scenario.
    full_scores, probabilities : ndarray of shape (n_scenarios,)
    pieces : PiecewiseQuadratic
        The loss of an error in these units.
    shares, tail_fractions : ndarray of shape (n_parts,)
        The measure as a mixture of CVaRs.
    noise : ndarray of shape (n_cases,), or empty
        What the noise of each case costs with all the weight, if results are noisy.
    least_weights, most_weights : ndarray of shape (n_cases,)
        Of a case that is chosen.
    unit : float
        What one unit of the program's value is worth in the problem's.
    """

    results: FloatArray
    policies: NDArray[np.int64]
    full_scores: FloatArray
    probabilities: FloatArray
    pieces: PiecewiseQuadratic
    shares: FloatArray
    tail_fractions: FloatArray
    noise: FloatArray
    least_weights: FloatArray
    most_weights: FloatArray
    unit: float

    @property
    def limits_weights(self) -> bool:
        """Whether weights have other limits than 0 and 1."""
        return bool(self.least_weights.any() or (self.most_weights < 1).any())

    def loss_range(self) -> tuple[float, float]:
        """The least and the greatest loss there can be, since errors lie in [-1, 1].

        An optimal level v_i is a quantile of the losses, so it lies here too. Saying so spares a solver the question
        whether a level with a tiny share is unbounded, which HiGHS has answered wrongly.
        """
        _, linear, quadratic = self.pieces.coefficients.T
        curved = quadratic > 0
        turning = np.concatenate([self.pieces.knots, -linear[curved] / (2 * quadratic[curved]), [-1.0, 1.0]])
        losses = self.pieces.value(np.clip(turning, -1.0, 1.0))
        return float(losses.min()), float(losses.max())


def make_epigraph(problem: Problem) -> Epigraph:
    """Lay a problem out for modelling languages."""
    mixture = problem.measure.cvar_mixture(problem.scenarios.probabilities)
    if mixture is None:
        raise Unsupported(f"{problem.measure!r} is no finite mixture of CVaRs with these probabilities.")
    low = float(problem.results.min())
    spread = float(np.ptp(problem.results)) or 1.0
    unit = problem.unit
    least = problem.scenarios.probabilities.min()
    rules, n_cases = problem.rules, problem.n_cases
    return Epigraph(
        results=(problem.results - low) / spread,
        policies=problem.scenarios.policies,
        full_scores=(problem.scenarios.full_scores - low) / spread,
        probabilities=problem.scenarios.probabilities,
        pieces=problem.pieces.rescaled(error_unit=spread, value_unit=unit),
        shares=mixture.shares,
        # A tail that is no likelier than any single scenario is the worst case, and so it is stated.
        tail_fractions=np.where(mixture.tail_fractions <= least, 0.0, mixture.tail_fractions),
        noise=problem.noise_costs / unit,
        least_weights=np.zeros(n_cases) if rules.least_weights is None else rules.least_weights,
        most_weights=np.ones(n_cases) if rules.most_weights is None else rules.most_weights,
        unit=unit,
    )


def selected_test(problem: Problem, chosen: Mapping[int, float], weights: Mapping[int, float]) -> EfficientTest:
    """The test that a solver's y (by case that may be chosen) and w (by case that may have a weight) stand for.

    Solvers keep to integers and signs only up to a tolerance.
    """
    cases = [case for case, y in chosen.items() if y > 0.5] + list(problem.required_cases)
    simplex = np.array([max(weights[case], 0.0) for case in cases])
    return problem.test(cases=cases, weights=simplex / simplex.sum())
