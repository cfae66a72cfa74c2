r"""How good could a test be if it had all cases? That bounds every test, however many cases it may have.

Weights on m cases are weights on all cases, so the least objective over all of them, without a limit on their number,

.. math:: \min_{w \in \triangle^n} \rho(w) = \max_{\lambda \in \triangle} \min_x \sum_k \lambda_k c^k_x

bounds every test. It is one game over n cases, with a support of a hundred and more. Two methods take turns:

1. Regret matching+ (`solvers.kernels.regret_matching`), which needs a few hundred rounds, each as long as it takes to
   score all policies once, to find weights within a percent of the best.
2. Cutting planes: a linear program over the cuts so far proposes weights, the antagonist is asked between these and the
   best weights known, much nearer to the latter, and the cut at its answer joins the program. Asked at the proposals
   themselves it would be asked several times as often: they jump.

What is proved does not rest on the linear program's arithmetic. Its multipliers mix the cuts, and the least value of
any mixture is a bound, whenever one stops.
"""

from collections.abc import Callable

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.cut_program import CutProgram
from rposst_opt.problem import Problem
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays, without_noise
from rposst_opt.solvers.kernels.regret_matching import make_tuple_run, play_tuple
from rposst_opt.solvers.kernels.response import make_response
from rposst_opt.solvers.kernels.weighing import tangent

ROUNDS = 400  # of regret matching+
ENOUGH_CUTS, MOST_CUTS = 300, 1000
# In units of the largest loss: how near the bound comes to the least objective, with up to so many cuts and with more.
PRECISION, COARSE_PRECISION = 1e-10, 1e-6
SLACK = 4e-12  # rounding of cuts
VIOLATED = 1e-12  # by how much a cut must be above the program's value to change it
# How near to the best weights the antagonist is asked: nearer the more cases there are, between these two.
LEAST_NEARNESS, MOST_NEARNESS, CASES_APART = 0.9, 0.97, 6
LATE_NEARNESS, LATE = 0.8, 1e-4  # and when there is so little between the bound and the objective


def least_loss(problem: Problem) -> float:
    """No loss is below this, in the problem's unit; a loss that falls for ever is least at an end."""
    least = float(problem.pieces.minimum() / problem.unit)
    return least if np.isfinite(least) else -1.0


def least_noise(problem: Problem) -> float:
    """No test has less noise than this, in the problem's unit: that of its least noisy cases, weighed as 1 / s²."""
    if not len(problem.noise_costs):
        return 0.0
    costs = problem.noise_costs / problem.unit
    chosen = np.sort(costs[list(problem.selectable_cases)])[: problem.size]
    counted = np.concatenate([chosen, costs[list(problem.required_cases)]])
    least = float(counted.min())
    return least / float(np.sqrt(((least / counted) ** 2).sum())) if least > 0 else 0.0


class Relaxation:
    """The game over all of these cases: what it is worth at least, and the best weights so far.

    Noise is left out: weights on very many cases have next to none.

    Attributes
    ----------
    weights : ndarray
        Of the rows; the best that were found.
    value : float
        Their objective.
    bound : float
        No weights have a lower one.
    work : float
        What was done, in nanoseconds by a rough count.
    """

    def __init__(self, arrays: ProblemArrays, rows: IntArray) -> None:
        self.arrays, self.rows = without_noise(arrays), rows
        self.weights = np.full(len(rows), 1 / len(rows))
        self.value, self.bound, self.work = np.inf, -np.inf, 0.0
        self._cuts: list[FloatArray] = []
        self._program: CutProgram | None = None

    def play(self) -> None:
        """Begin with regret matching+."""
        run = make_tuple_run(len(self.rows), self.arrays.results.shape[1])
        never = np.array([np.inf, 0.0])
        _, lower, played = play_tuple(self.rows, ROUNDS, never, self.arrays, run, make_response(self.arrays))
        self.bound = max(self.bound, lower - SLACK)
        self.work += played * self._question_cost
        self._ask(np.full(len(self.rows), 1 / len(self.rows)))
        self._ask(run.best_weights / run.best_weights.sum())

    def offer(self, cases: IntArray, weights: FloatArray) -> None:
        """Ask the antagonist at weights from elsewhere, too; if they are better than those known, go on from them."""
        offered = np.zeros(len(self.rows))
        offered[np.searchsorted(self.rows, cases)] = weights
        self._ask(offered)

    def close_in(self, cuts: int = MOST_CUTS, out_of_time: Callable[[], bool] = lambda: False) -> None:
        """Go on with cutting planes, for so many programs at most, until the bound is near enough to the value."""
        n_cases = len(self.rows)
        self._program = self._program or CutProgram(np.zeros(n_cases), np.ones(n_cases), self._cuts)
        for _ in range(cuts):
            if self.is_settled or out_of_time():
                break
            proposed, value, mixture, _ = self._program.solve()
            self.work += 20.0 * len(self._cuts) * n_cases
            self.bound = max(self.bound, float((mixture @ np.array(self._cuts)).min()) - SLACK)
            nearness = self._nearness()
            if self._ask(nearness * self.weights + (1 - nearness) * proposed) @ proposed <= value + VIOLATED:
                self._ask(proposed)

    @property
    def is_settled(self) -> bool:
        """Whether the bound is as near to the value as it is meant to come."""
        precision = PRECISION if len(self._cuts) < ENOUGH_CUTS else COARSE_PRECISION
        return self.value - self.bound <= precision or len(self._cuts) >= MOST_CUTS

    def _nearness(self) -> float:
        if self.value - self.bound < LATE:
            return LATE_NEARNESS
        return min(max(1 - CASES_APART / len(self.rows), LEAST_NEARNESS), MOST_NEARNESS)

    @property
    def cost_of_playing(self) -> float:
        """What regret matching+ will take, in the units of `work`."""
        return float(ROUNDS * self._question_cost)

    @property
    def _question_cost(self) -> float:
        return float(0.4 * len(self.rows) * self.arrays.results.shape[1] + 5.0 * len(self.arrays.full_scores))

    def _ask(self, weights: FloatArray) -> FloatArray:
        """The cut at these weights, which joins the others."""
        cut = np.empty(len(self.rows))
        value = tangent(self.rows, weights, self.arrays, cut)
        self.work += self._question_cost
        if value < self.value:
            self.value, self.weights = value, weights
        self._cuts.append(cut)
        if self._program is not None:
            self._program.add(cut)
        return cut
