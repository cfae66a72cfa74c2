r"""The best weights of a set of cases, where weights have limits: cutting planes over a polytope.

With :math:`W(R) = \{w : l_x \le w_x \le u_x,\ \sum_{x \in R} w_x = 1\}` the game on a set R is a matrix game over W(R)
in the place of the simplex. A cut is a tangent of the objective with its constant given to every case, so it holds for
all weights that sum to one, and

.. math:: v_W(R) = \min_{w \in W(R)} \rho(w) \ \ge\ \min_{w \in W(R)} \sum_{x \in R} w_x c_x \qquad (\star_W)

where the right side is worked out case by case: every case has its least weight, and what is left goes to the cases
with the least c_x first, to each up to its most. By linear programming duality the best mixture of cuts attains it.

*Why the search without limits serves.* The right side is at least :math:`\min_{x \in R} c_x`, so whatever rules a set
out without limits rules it out with them: :math:`v_W(R) \ge v(R)`. So the sets are taken in the order of v(R), each is
settled with limits, and where v(R) is not below the best value found, no set after it can be better.
"""

from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.assembly import least_average, weights_between
from rposst_opt.cut_program import CutProgram
from rposst_opt.errors import BackendFailure
from rposst_opt.problem import Problem

TOLERANCE = 1e-10  # in units of the largest objective, to which one set is settled
MOST_CUTS = 1_000  # for one set: curved losses take the most


class Settled(NamedTuple):
    """What is known of a set of cases: no weights within the limits are below `lower`; these have `upper`."""

    lower: float
    upper: float
    weights: FloatArray


class LimitedWeights:
    """Settles sets of cases, one after the other, with the cuts of those before."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._cuts: list[FloatArray] = []  # over all cases, in units of the largest objective

    def settle(self, cases: tuple[int, ...]) -> Settled:
        """The best weights of these cases within their limits."""
        problem, places = self.problem, list(cases)
        upper, best, lower = np.inf, np.empty(0), -np.inf
        least, most = problem.rules.limits_of(places)
        weights, program = weights_between(least, most), CutProgram(least, most, [cut[places] for cut in self._cuts])
        for _ in range(MOST_CUTS):
            test = problem.test(cases=cases, weights=weights)
            value = problem.objective(test) / problem.unit
            if value < upper:
                upper, best = value, weights
            self._cuts.append(problem.cut(test) / problem.unit)
            program.add(self._cuts[-1][places])
            reply = program.solve()
            if not reply.is_solved:
                raise BackendFailure("HiGHS could not weigh cases within limits.")
            weights, mixture = reply.weights, reply.shares @ np.array(self._cuts)[:, places]
            lower = max(lower, least_average(mixture, least, most))
            if upper - lower <= TOLERANCE:
                break
        return Settled(lower * problem.unit, upper * problem.unit, best)
