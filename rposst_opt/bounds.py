"""How close to the optimum do the paper's theorems promise to come?"""

import math

import numpy as np

from rposst_opt.problem import Problem


def steepest_payoff(problem: Problem) -> float:
    """G: no payoff of the optimisation game is larger in magnitude (paper, proof of the Corollary).

    A payoff is an average of slopes of Δ times results. Adding a constant to a policy's results shifts its payoffs
    alike and so changes no regret; we take the constant that makes G least, half the policy's spread of results.
    """
    used = np.unique(problem.scenarios.policies)
    eligible = [*problem.required_cases, *problem.selectable_cases]
    spread = float(np.ptp(problem.results[:, used]))
    steepest_slope = float(np.abs(problem.loss.pieces.slope(np.array([-spread, spread]))).max())
    return steepest_slope * float(np.ptp(problem.results[eligible][:, used], axis=0).max()) / 2


def regret_matching_gap(problem: Problem, rounds: int) -> float:
    """The Corollary's ε = 2G √(m / T): how far regret matching+'s best round can be from a tuple's optimum.

    Its proof needs nothing but convex losses, so it holds for every measure and loss of this package; m counts the
    required cases too.
    """
    return 2 * steepest_payoff(problem) * math.sqrt(problem.n_chosen / rounds)
