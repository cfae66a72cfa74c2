r"""What is the least objective that weights on one set of test cases can have? A cut that proves it, nearly.

Kelley's method: the antagonist's answer to any weights is a cut c, which is equal to the objective there and nowhere
above it. What a mixture λ of the answers so far proves at most for the set R is a linear program, whose dual is where
to look next,

.. math:: \max_\lambda \min_{x \in R} \sum_k \lambda_k c^k_x = \min_w \max_k \sum_{x \in R} w_x c^k_x

Where weights have limits, the least is that over the weights within them (`rposst_opt.assembly.least_average`).

The answer there is added, until it tells nothing new. Neither the linear program nor the answers have to be trusted:
what is returned is a cut, to be checked like any other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.assembly import least_average, weights_between
from rposst_opt.certificate import CertificateCut
from rposst_opt.cut_program import CutProgram
from rposst_opt.problem import Problem

GOOD_ENOUGH = 1e-10  # in units of the largest loss: a bound that is nearer to the objective is not sought
MOST_ROUNDS = 200


class Answer(NamedTuple):
    """What the antagonist and the slopes of losses answer to some weights; see `CertificateCut`."""

    tail_weights: FloatArray  # (n_scenarios,)
    pulls: FloatArray
    noise_direction: FloatArray  # (n_cases,)


def best_cut(problem: Problem, cases: Sequence[int], wanted: float = np.inf) -> CertificateCut:
    """The cut that proves the most for tests on these cases: nearly, or as far as so many rounds go.

    If it proves more than is wanted, no better one is sought.

    Parameters
    ----------
    problem : Problem
        As solvers are given it (`Problem.stated`).
    cases : sequence of int
        The whole set, required cases included.
    wanted : float
        The bound that the set is to be shown not to be below.
    """
    here, enough = list(cases), GOOD_ENOUGH * problem.unit
    least_weights, most_weights = problem.rules.limits_of(here)
    weights, shares = weights_between(least_weights, most_weights), np.ones(1)
    program = CutProgram(least_weights, most_weights)
    answers: list[Answer] = []
    values: list[FloatArray] = []
    least = np.inf
    while len(answers) < MOST_ROUNDS:
        answers.append(answer_to(problem, here, weights))
        values.append(mixed(answers[-1:], np.ones(1)).values(problem)[here])
        least = min(least, float(weights @ values[-1]))
        program.add(values[-1] / problem.unit)
        reply = program.solve()
        if not reply.is_solved:
            break
        weights, shares = reply.weights, reply.shares
        proved = least_average(shares @ np.array(values), least_weights, most_weights)
        if least - proved <= enough or proved >= wanted + enough:
            break
    return mixed(answers[: len(shares)], shares)


def answer_to(problem: Problem, cases: Sequence[int], weights: FloatArray) -> Answer:
    """The antagonist's answer to weights on these cases."""
    scenarios = problem.scenarios
    errors = (weights @ problem.results[cases])[scenarios.policies] - scenarios.full_scores
    tail_weights = problem.measure.weights(problem.pieces.value(errors), scenarios.probabilities)
    direction = np.zeros(problem.n_cases)
    if len(problem.noise_costs):
        direction[cases] = weights * problem.noise_costs[cases]
        direction /= np.linalg.norm(direction) or 1.0
    return Answer(tail_weights, tail_weights * problem.pieces.slope(errors), direction)


def mixed(answers: Sequence[Answer], shares: FloatArray) -> CertificateCut:
    """The mixture of answers as one cut."""
    tail_weights, pulls, direction = (shares @ np.array(parts) for parts in zip(*answers, strict=True))
    total = tail_weights.sum()
    return CertificateCut.from_dense(tail_weights / total, pulls / total, noise_direction=direction)
