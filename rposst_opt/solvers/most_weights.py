r"""How much weight can a case have in a test that is better than one that is known?

Weights w with an objective of at most U have a least and a greatest part of every case, and in a good test no case
counts for much more than it must. The greatest part of case x is a convex program,

.. math:: u_x = \max_w\ w_x \quad\text{s.t.}\quad \rho(w) \le U,\ w \in \triangle

over all cases together, however many a test may have. It is solved by cutting planes: losses are above their
tangents, and the objective is at least what any answer of the antagonist makes of the losses. Where these are not
all known yet, the limit is too large, and true.

*What is proved* does not rest on the program's arithmetic. With multipliers ψ of answers α and ν of tangents
:math:`\Delta_s \ge k + \sum_z g_z w_z`, where those of a scenario sum to at most :math:`\sum \psi \alpha_s`,

.. math:: w_x \ \le\ \sum \psi U - \sum \nu k + \max_z \Bigl([z = x] - \sum \nu g_z\Bigr)
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.problem import Problem

TANGENTS_AT_ONCE = 60  # that join a program, those it breaks most
MOST_ROUNDS = 6  # of cutting planes for one case
MOST_WORK = 5e9  # in nanoseconds by a rough count; what is not reached by then has no limit
VIOLATED = 1e-7  # in units of the largest loss
ROUNDING = 1e-9  # of what is proved
ROOM = 1e-6  # above the objective that is known, for whatever rounding it was found with


class Tangent(NamedTuple):
    """The loss of a scenario is at least so much, and so much more for the weight of each case."""

    scenario: int
    constant: float
    slopes: FloatArray


class Tangents:
    """Tangents of the losses, in units of the largest loss and less what is lost at least, as functions of the weights.

    Parameters
    ----------
    problem : Problem
    cases : ndarray of int
        That may have weight.
    """

    def __init__(self, problem: Problem, cases: IntArray) -> None:
        self._pieces, self._unit = problem.pieces, problem.unit
        self._least = float(problem.pieces.minimum() / problem.unit)
        self._full_scores, self._policies = problem.scenarios.full_scores, problem.scenarios.policies
        self._results = problem.results[cases]
        self._scenarios: list[int] = []
        self._slopes: list[float] = []  # of the loss, by the error
        self._constants: list[float] = []

    def losses(self, weights: FloatArray) -> FloatArray:
        """Of all scenarios."""
        return np.asarray(self._pieces.value(self._errors(weights)) / self._unit - self._least)

    def add_broken(self, weights: FloatArray, losses: FloatArray) -> Iterator[Tangent]:
        """The tangents at these weights that the losses, which somebody takes for theirs, are farthest below."""
        errors = self._errors(weights)
        missing = self.losses(weights) - losses
        found = np.flatnonzero(missing > VIOLATED)
        for scenario in found[np.argsort(-np.round(missing[found], 9), kind="stable")][:TANGENTS_AT_ONCE].tolist():
            error = errors[scenario : scenario + 1]
            slope, value = float(self._pieces.slope(error)[0]), float(self._pieces.value(error)[0])
            constant = (value - slope * float(error[0] + self._full_scores[scenario])) / self._unit - self._least
            yield self._add(scenario, slope / self._unit, constant)

    def _add(self, scenario: int, slope: float, constant: float) -> Tangent:
        self._scenarios.append(scenario)
        self._slopes.append(slope)
        self._constants.append(constant)
        return Tangent(scenario, constant, slope * self._results[:, self._policies[scenario]])

    def used(self, multipliers: FloatArray) -> FloatArray:
        """The sum of these multipliers, of the tangents in the order in which they were added, at every scenario."""
        sums: FloatArray = np.bincount(self._scenarios, multipliers, len(self._full_scores)).astype(np.float64)
        return sums

    def mixed(self, multipliers: FloatArray, fits: FloatArray) -> tuple[float, FloatArray]:
        """The constant, and the slope at every case, of the tangents times these multipliers and what fits of them."""
        counted = multipliers * fits[self._scenarios]
        by_scenario = np.bincount(self._scenarios, counted * np.array(self._slopes), len(self._full_scores))
        by_policy = np.bincount(self._policies, by_scenario, self._results.shape[1])
        return float(counted @ np.array(self._constants)), self._results @ by_policy

    def _errors(self, weights: FloatArray) -> FloatArray:
        errors: FloatArray = (weights @ self._results)[self._policies] - self._full_scores
        return errors


class MostWeights:
    """The greatest weights, case by case.

    Parameters
    ----------
    problem : Problem
    cases : ndarray of int
        That may have weight.
    below : float
        The objective that a test must not exceed, in units of the largest loss.

    Attributes
    ----------
    limits : ndarray of shape (n_cases,)
        What is proved so far: one, where nothing is.
    work : float
        What was done, in nanoseconds by a rough count.
    """

    def __init__(self, problem: Problem, cases: IntArray, below: float) -> None:
        import highspy

        n, d = len(cases), problem.n_scenarios
        self.limits, self.work = np.ones(n), 0.0
        self._problem, self._n, self._reached = problem, n, 0
        self._below = below + ROOM - float(problem.pieces.minimum() / problem.unit)
        self._tangents, self._answers = Tangents(problem, cases), [np.zeros(d)]
        self._is_tangent: list[bool] = [False]  # of every row after the first
        self._infinity = highspy.kHighsInf
        self._model = highspy.Highs()
        self._model.silent()
        self._model.setOptionValue("parallel", "off")
        self._model.addVars(n + d, np.zeros(n + d), np.append(np.ones(n), np.full(d, self._infinity)))
        self._model.addRow(1.0, 1.0, n, np.arange(n, dtype=np.int32), np.ones(n))
        self._model.addRow(-self._infinity, self._below, 0, np.empty(0, np.int32), np.empty(0))

    @property
    def is_done(self) -> bool:
        """Whether all cases have their limits, or those that are left will have none."""
        return self._reached == self._n or self.work > MOST_WORK

    def step(self) -> None:
        """Limit the weight of one more case."""
        case, self._reached = self._reached, self._reached + 1
        self._model.changeColCost(case, -1.0)
        for _ in range(MOST_ROUNDS):
            self._model.run()
            solution = self._model.getSolution()
            self.work += len(self._is_tangent) * (90.0 * self._model.getInfo().simplex_iteration_count + 60.0 * self._n)
            self.limits[case] = min(self.limits[case], self._proved(case, np.array(solution.row_dual[1:])))
            if not self._add_what_is_broken(np.array(solution.col_value)):
                break
        self._model.changeColCost(case, 0.0)

    def _add_what_is_broken(self, values: FloatArray) -> bool:
        """Add tangents and an answer that the weights and losses break; whether there were any."""
        weights, losses, before = np.maximum(values[: self._n], 0.0), values[self._n :], len(self._is_tangent)
        for scenario, constant, slopes in self._tangents.add_broken(weights, losses):
            places, coefficients = np.append(np.arange(self._n), self._n + scenario), np.append(-slopes, 1.0)
            self._model.addRow(constant, self._infinity, len(places), places.astype(np.int32), coefficients)
            self._is_tangent.append(True)
        true_losses = self._tangents.losses(weights)
        answer = self._problem.measure.weights(true_losses, self._problem.scenarios.probabilities)
        if answer @ true_losses > self._below + VIOLATED and not any(np.array_equal(answer, a) for a in self._answers):
            counted = np.flatnonzero(answer)
            self._model.addRow(
                -self._infinity, self._below, len(counted), (self._n + counted).astype(np.int32), answer[counted]
            )
            self._answers.append(answer)
            self._is_tangent.append(False)
        return len(self._is_tangent) > before

    def _proved(self, case: int, multipliers: FloatArray) -> float:
        """What these multipliers prove of the weight of this case, whoever has found them."""
        is_tangent = np.array(self._is_tangent)
        shares = np.maximum(-multipliers[~is_tangent], 0.0)
        prices = np.maximum(multipliers[is_tangent], 0.0)
        allowed = shares @ np.array(self._answers)
        used = self._tangents.used(prices)
        fits = np.minimum(1.0, allowed / np.where(used > 0, used, 1.0))
        constant, slopes = self._tangents.mixed(prices, fits)
        gains = -slopes
        gains[case] += 1.0
        limit = float(shares.sum() * self._below - constant + gains.max()) + ROUNDING
        return limit if np.isfinite(limit) else 1.0
