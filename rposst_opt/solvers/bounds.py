"""How close to the optimum do the paper's theorems promise to come?

Each bound names its place in the paper (*Composing Efficient, Robust Tests for Policy Selection*, UAI 2023). Where the
paper's statement is loose or has a slip, what its proof gives is computed, and the docstring says so.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rposst_opt.errors import ProblemError
from rposst_opt.problem import Problem


def steepest_payoff(problem: Problem) -> float:
    """G: no payoff of the optimisation game is larger in magnitude (paper, proof of the Corollary).

    A payoff is an average of slopes of Δ times results. Adding a constant to a policy's results shifts its payoffs
    alike and so changes no regret; we take the constant that makes G least, half the policy's spread of results. With
    noise, its slopes come to that, which lie between zero and what a case's noise costs.
    """
    used = np.unique(problem.scenarios.policies)
    spread = float(np.ptp(problem.results[:, used]))
    steepest_slope = float(np.abs(problem.pieces.slope(np.array([-spread, spread]))).max())
    widest = float(np.ptp(problem.results[list(problem.eligible_cases)][:, used], axis=0).max())
    return (steepest_slope * widest + float(problem.noise_costs.max(initial=0.0))) / 2


def largest_loss(problem: Problem) -> float:
    """L: no loss of a scenario is larger (paper, appendix, the Lemma); losses are taken to be at least zero there."""
    return problem.loss_scale


def regret_bound(payoff_bound: float, n_actions: int, rounds: int) -> float:
    """What regret matching+ can regret after `rounds` rounds: U √(T m), for payoffs that span at most U.

    Paper, appendix, the proposition "Regret matching+ regret bound", which takes losses in [0, U]: it is their spread
    that counts. With payoffs between -G and G, U is 2G, which is where the Corollary's factor of two comes from.
    """
    return payoff_bound * math.sqrt(rounds * n_actions)


def regret_matching_gap(problem: Problem, rounds: int) -> float:
    """The Corollary's ε = 2G √(m / T): how far regret matching+'s best round can be from a tuple's optimum.

    Its proof needs nothing but convex losses, so it holds for every measure and loss of this package; m counts the
    required cases too.
    """
    return regret_bound(2 * steepest_payoff(problem), problem.n_chosen, rounds) / rounds


def predictive_gap(problem: Problem, rounds: int, *, questions_per_round: int = 1, step: float = math.inf) -> float:
    r"""How far the other players' best weights can be from a tuple's optimum: (4 √2 G √(m P) + G / step) / P.

    These players are predictive mirror descent on pseudoregrets. After P rounds with regrets :math:`r_t`, predictions
    :math:`p_t` and steps :math:`\eta`, for every :math:`u` in their set and the start :math:`q^1`

    .. math:: \sum_t r_t^\top u \le \frac{\lVert u - q^1\rVert^2}{2\eta} + \eta \sum_t \lVert r_t - p_t\rVert^2

    (Farina, Kroer and Sandholm 2021, *Faster Game Solving via Predictive Blackwell Approachability*). The set contains
    every multiple c ≥ 1 of every case, and from zero every multiple. No entry of :math:`r_t - p_t` exceeds 4G, so with
    S = 16 G² m P and c = max(1, η √(2S)), the regret of a case is at most :math:`\sqrt{2S} + 1/\eta`; without a set
    that is chopped, η does not matter, and the last term is not there. Of T questions to the antagonist some are not
    rounds: one of at most nine is about an average, and of the rest as many belong to a round as `questions_per_round`
    says. A single answer bounds the gap by 2G.

    Parameters
    ----------
    rounds : int
        T.
    questions_per_round : int
        2 for the extragradient player.
    step : float
        η G, for the two smooth players; infinite for the others.
    """
    steepest = steepest_payoff(problem)
    played = (rounds - rounds // 9) // questions_per_round
    if played == 0:
        return 2 * steepest
    gap = (4 * math.sqrt(2 * problem.n_chosen * played) + 1 / step) * steepest / played
    return min(2 * steepest, gap)


class SampledGuarantee(NamedTuple):
    """What the Theorem promises of the sampled game: with this probability, a gap of at most this."""

    gap: float
    probability: float


def sampled_gap(problem: Problem, *, rounds: int, p: float, q: float, selection_error: float = 0.0) -> SampledGuarantee:
    """The Theorem's ε / q, with its probability (1 - p)(1 - q)(1 - α).

    ε = 2G √(m / T₁) + 2L √(2 log(1/p) / T₁), from the appendix's Lemma.

    Two slips of the paper are mended. In the Theorem, α is the probability that Successive Rejects *errs*, which is
    what (1 - α) and α = O(exp(-T₂)) need; the appendix's proof defines α as the probability that it succeeds. And in
    the Lemma's proof the exponent has lost its sign: Azuma and Hoeffding give exp(-λ² / (2 T (2L)²)), and with the
    proof's λ = 2L √(2 T log(1/p)) that is p, as it should be.

    What the proof shows is about each tuple by itself. The tuple that is selected is within ε / q of the best *tuple*
    only if its own weights and those of the best tuple both are; the stated probability counts one of them.

    Parameters
    ----------
    rounds : int
        T₁.
    p, q : float
        The shares of bad luck that are allowed for: in the samples of the game, and in the draw of T'.
    selection_error : float
        The Theorem's α, for instance by `successive_rejects_error`.
    """
    for name, share in (("p", p), ("q", q)):
        if not 0 < share < 1:
            raise ProblemError(f"`{name}` must lie between 0 and 1, got {share:g}.")
    luck = 2 * largest_loss(problem) * math.sqrt(2 * math.log(1 / p) / rounds)
    epsilon = regret_matching_gap(problem, rounds) + luck
    return SampledGuarantee(epsilon / q, (1 - p) * (1 - q) * (1 - min(selection_error, 1.0)))


def log_bar(n_arms: int) -> float:
    """The paper's log-bar: 1/2 + Σ_{i=2..K} 1/i (appendix, Successive Rejects error probability)."""
    return 0.5 + sum(1 / i for i in range(2, n_arms + 1))


def successive_rejects_error(expected_losses: Sequence[float], budget: int) -> float:
    """The probability that Successive Rejects returns an arm that is not the best, at most.

    (K (K - 1) / 2) exp(-(T₂ - K) / (log-bar(K) H₂)), H₂ = max_i i / Δ_(i)² (appendix, the proposition; Audibert and
    Bubeck 2010, Theorem 2), for losses within an interval of length one. The paper writes the number of actions as m
    and numbers the suboptimal arms from one; in the source, i runs over all arms in the order of their gaps, the best
    one being the first, so that the closest rival has i = 2. The source's numbering is used: it gives the larger, and
    proved, bound.

    Parameters
    ----------
    expected_losses : sequence of float
        Of every arm.
    budget : int
        T₂, the number of samples in all.
    """
    losses = np.sort(np.asarray(expected_losses, dtype=np.float64))
    n_arms, gaps = len(losses), losses - losses[0]
    rivals = np.flatnonzero(gaps > 0)
    if not len(rivals):
        return 0.0
    hardness = float(np.max((rivals + 1) / gaps[rivals] ** 2))
    exponent = (budget - n_arms) / (log_bar(n_arms) * hardness)
    return min(1.0, n_arms * (n_arms - 1) / 2 * math.exp(-exponent))
