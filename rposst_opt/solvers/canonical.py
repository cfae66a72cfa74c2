r"""Which of many optimal weights are *the* answer?

An optimum need not be unique: results of 0 and 1, rounded ones and few policies make whole faces of weights that are
equally good. Which of them a method runs into depends on the last bit of something, and so on the machine. The answer
is therefore defined by the problem alone: of the weights with the least objective those with the least mean loss, and
of these the one with the least sum of squares, which is unique:

.. math::

    \min_w\ \sum_x w_x^2 \quad\text{s.t.}\quad
    \rho(w) \le v + \epsilon,\quad \text{mean}(w) \le \bar v + \epsilon,\quad w \in \triangle

with v and :math:`\bar v` the least values and ε a slack that rounding does not reach. The solution moves with the data
no more than they do, times the steepness of the face's edges; nothing in it jumps.

Both constraints are suprema of cuts (`Problem.cut`), so cutting planes solve it: the weights that the cuts known so far
allow are found as a least-distance problem, :math:`\min |w|` subject to :math:`G w \ge h`, which is a non-negative
least-squares problem of the same size (Lawson and Hanson, *Solving Least Squares Problems*, chapter 23).
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.measures import Mean, Measure, Mixture
from rposst_opt.problem import Problem
from rposst_opt.solvers.kernels.response import ProblemArrays, scaled_problem_arrays
from rposst_opt.solvers.kernels.tuple_game import make_tuple_game, place_row, settle

# In units of the largest loss there can be:
OBJECTIVE_SLACK = 2e-11
MEAN_SLACK = 2e-10  # the least mean loss is known less exactly
ROUNDING = 1e-14

TOLERANCE = 1e-12  # to which the weights of one set are settled
ALLOWED = 2.5e-11  # by how much an objective may suffer for the sake of the mean

MEAN_SHARES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of the mean, added to a measure to choose among its optimal weights
SHARP = 1e-4  # where every cut of the mixture that proves an optimum has a share above this, its weights are unique
MOST_CUTS = 400
NO_DISTANCE = 1e-13  # a residual of the dual problem that is rounding: no weights are allowed


class Weigher:
    """Finds the weights of sets of cases that are the answer.

    Parameters
    ----------
    problem : Problem
    cases : ndarray of int
        The cases that may be weighed.
    """

    def __init__(self, problem: Problem, cases: IntArray) -> None:
        self.problem, self.cases = problem, cases
        self.place_of = {case: place for place, case in enumerate(cases.tolist())}

    def weigh(self, test: EfficientTest) -> EfficientTest:
        """The same cases with the weights that are the answer; the test's own must be optimal."""
        settled, is_unique = self._settle(test, self._arrays)
        if is_unique and self._is_no_worse(settled, test):
            return settled
        best, is_unique = self._by_mean(test)
        if is_unique:
            return best
        weights = least_squares_weights(self.problem, best.cases, best.weights)
        return self.problem.test(cases=best.cases, weights=weights)

    def weigh_by_mean(self, test: EfficientTest) -> EfficientTest:
        """The same cases with some optimal weights that have the least mean loss."""
        return self._by_mean(test)[0]

    def _by_mean(self, test: EfficientTest) -> tuple[EfficientTest, bool]:
        """Weights with the least mean loss among the optimal ones, and whether no others have it.

        A little of the mean is added to the measure. Where that is too much, so that the objective suffers, it is a
        tenth of it, and in the end none.
        """
        for arrays in self._arrays_with_mean:
            settled, is_unique = self._settle(test, arrays)
            if self._is_no_worse(settled, test):
                return settled, is_unique
        return test, False

    def _is_no_worse(self, test: EfficientTest, than: EfficientTest) -> bool:
        allowed = self.problem.objective(than) + ALLOWED * self.problem.unit
        return self.problem.objective(test) <= allowed

    def _settle(self, test: EfficientTest, arrays: ProblemArrays) -> tuple[EfficientTest, bool]:
        """The best weights for these arrays, and whether they are unique.

        The weights are the multipliers of the program that mixes cuts (`solvers.kernels.tuple_game`). If none of its
        basic variables is zero, no other multipliers are optimal, whatever cuts are added.
        """
        width = len(test.cases)
        workspace = make_tuple_game(arrays, width)
        for row, case in enumerate(test.cases):
            place_row(row, self.place_of[case], arrays.results, workspace)
        settle(width, np.inf, -np.inf, TOLERANCE, arrays, workspace)
        weights = workspace.vectors[1, :width]
        is_unique = bool(workspace.inverse[:width, width].min() > SHARP)
        return self.problem.test(cases=test.cases, weights=weights / weights.sum()), is_unique

    @cached_property
    def _arrays(self) -> ProblemArrays:
        return scaled_problem_arrays(self.problem, self.cases)

    @cached_property
    def _arrays_with_mean(self) -> list[ProblemArrays]:
        measures = [Mixture([(1 - share, self.problem.measure), (share, Mean())]) for share in MEAN_SHARES]
        return [scaled_problem_arrays(replace(self.problem, measure=measure), self.cases) for measure in measures]


def least_squares_weights(problem: Problem, cases: tuple[int, ...], weights: FloatArray) -> FloatArray:
    """The weights with the least sum of squares that have the objective and the mean loss of these, up to the slack.

    Where curved losses need more cuts than there may be, the best of the weights known is returned: these.

    Parameters
    ----------
    cases : tuple of int
    weights : ndarray
        Of these cases, on the simplex; with the least objective and, among such, with the least mean loss.
    """
    limits = [
        (side, side.at(weights)[0] + slack)
        for side, slack in (
            (_Side(problem, cases, problem.measure), OBJECTIVE_SLACK),
            (_Side(problem, cases, Mean()), MEAN_SLACK),
        )
    ]
    width = len(cases)
    rows, least = [*np.eye(width), np.ones(width), -np.ones(width)], [0.0] * width + [1.0, -1.0]
    shortest: FloatArray | None = np.full(width, 1 / width)
    while len(rows) < MOST_CUTS and shortest is not None:
        on_simplex = np.maximum(shortest, 0.0)
        on_simplex /= on_simplex.sum()
        cuts = []
        for side, limit in limits:
            value, cut = side.at(on_simplex)
            if value > limit + ROUNDING:
                cuts.append(limit - cut)  # Σ w_x c_x ≤ limit, and weights sum to one
        if not cuts:
            return on_simplex
        rows, least = rows + cuts, least + [0.0] * len(cuts)
        shortest = _shortest(np.array(rows), np.array(least))
    return weights


class _Side:
    """One of the two values that must not grow: a measure of the losses, over the weights of some cases."""

    def __init__(self, problem: Problem, cases: tuple[int, ...], measure: Measure) -> None:
        self.problem, self.measure = problem, measure
        self.results = problem.results[list(cases)]

    def at(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """The value at these weights and its cut there, in units of the largest loss there can be."""
        scenarios, loss = self.problem.scenarios, self.problem.loss
        scores = (weights @ self.results)[scenarios.policies]
        losses = loss.value(scores, scenarios.full_scores)
        alpha = self.measure.weights(losses, scenarios.probabilities)
        value = float(alpha @ losses)
        pull = alpha * loss.slope(scores, scenarios.full_scores)
        gradient = self.results @ np.bincount(scenarios.policies, pull, minlength=self.problem.n_policies)
        cut: FloatArray = value + gradient - gradient @ weights
        return value / self.problem.unit, cut / self.problem.unit


def _shortest(rows: FloatArray, least: FloatArray) -> FloatArray | None:
    """The shortest x with ``rows @ x >= least``; None if there is none."""
    dual = np.vstack([rows.T, least])
    wanted = np.zeros(len(dual))
    wanted[-1] = 1.0
    residual = dual @ nnls(dual, wanted)[0] - wanted
    if abs(residual[-1]) < NO_DISTANCE:
        return None
    shortest: FloatArray = -residual[:-1] / residual[-1]
    return shortest
