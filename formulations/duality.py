r"""A lower bound that anyone can check, from whatever multipliers a solver returns.

Take weights α on scenarios that the measure allows, and any slopes δ. The conjugate
:math:`\Delta^*(\delta) = \sup_e \delta e - \Delta(e)` gives :math:`\Delta(e) \ge \delta e - \Delta^*(\delta)`, so for
all w

.. math::

    \rho(w) \ge \sum_s \alpha_s \Delta(a_s^\top w - b_s)
            \ge \sum_x w_x c_x, \qquad
    c_x = \sum_s \alpha_s \bigl[\delta_s (A_{x j_s} - b_s) - \Delta^*(\delta_s)\bigr]

and the least c_x over a set of cases bounds that set's optimum from below. At an optimal pair of solutions it is equal
to it. The multipliers need not be optimal, nor even feasible: α is first moved into the set that the measure allows,
and δ into the domain of Δ*. So a solver that stops early, or errs, yields a poor bound and never a false one.
"""

import numpy as np

from formulations.epigraph import Epigraph
from rposst_opt.arrays import FloatArray
from rposst_opt.certificate import cut_values


def allowed_tail_weights(epigraph: Epigraph, multipliers: FloatArray) -> FloatArray:
    """Scenario weights that the measure allows, near the multipliers of ``u_is >= l_s - v_i``.

    Part i of the mixture allows weights between 0 and λ_i Ψ_s / η_i that sum to λ_i.

    Parameters
    ----------
    multipliers : ndarray of shape (n_parts, n_scenarios)
    """
    total = np.zeros(len(epigraph.full_scores))
    for share, fraction, part in zip(epigraph.shares, epigraph.tail_fractions, multipliers, strict=True):
        most = np.full(len(total), share) if fraction == 0 else share * epigraph.probabilities / fraction
        weights = np.clip(part, 0.0, most)
        missing = share - weights.sum()
        if missing > 0:
            spare = most - weights
            weights += spare * min(1.0, missing / spare.sum()) if spare.sum() > 0 else 0.0
        else:
            weights *= share / weights.sum()
        total += weights
    return total


def dual_cut(
    epigraph: Epigraph, tail_weights: FloatArray, pulls: FloatArray, noise_direction: FloatArray | None = None
) -> FloatArray:
    """The numbers c_x, one per test case, in the epigraph's units.

    Parameters
    ----------
    tail_weights : ndarray of shape (n_scenarios,)
        α, allowed by the measure.
    pulls : ndarray of shape (n_scenarios,)
        α_s δ_s: by how much the optimum would change with scenario s's full score, up to sign.
    noise_direction : ndarray of shape (n_cases,), optional
        Any u: it is made no longer than one, and then ‖noise ∘ w‖ is at least Σ_x w_x noise_x u_x.
    """
    counted = tail_weights > 0
    least, greatest = epigraph.pieces.slope(np.array([-1.0, 1.0]))  # errors lie in [-1, 1]: no other slopes occur
    values = cut_values(
        errors=epigraph.results[:, epigraph.policies[counted]] - epigraph.full_scores[counted],
        tail_weights=tail_weights[counted],
        pulls=pulls[counted],
        pieces=epigraph.pieces,
        slope_range=(float(least), float(greatest)),
    )
    if noise_direction is not None:
        values += epigraph.noise * (noise_direction / max(float(np.linalg.norm(noise_direction)), 1.0))
    return values
