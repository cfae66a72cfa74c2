"""The sampled game on a stretch of tuples, sampled losses of given tests, and the rounds of the mixed game."""

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import allocates, compiled, internal
from rposst_opt.solvers.kernels.regret_matching import match_regrets
from rposst_opt.solvers.kernels.response import loss_at, slope_at


@internal
def keep_worst(loss: float, draw: int, worst: FloatArray, places: IntArray) -> None:
    """Put a loss into the list of the worst, worst first, if it is among them; the earlier of two equal ones stays."""
    h = worst.shape[0] - 1
    if loss <= worst[h]:
        return
    while h > 0 and worst[h - 1] < loss:
        worst[h], places[h] = worst[h - 1], places[h - 1]
        h -= 1
    worst[h], places[h] = loss, draw


@compiled
@allocates
def play_sampled(
    tuples: IntArray,
    policies: IntArray,
    full_scores: FloatArray,
    k: int,
    results: FloatArray,
    knots: FloatArray,
    coefficients: FloatArray,
    weights: FloatArray,
) -> None:
    """Regret matching+ against the k worst of the scenarios drawn in each round (Algorithm 1, the inner loops).

    Row t of `policies` and `full_scores` has the N scenarios of round t. The weights of the last round are left in
    `weights`, a row per tuple.
    """
    rounds, n_drawn = policies.shape
    width = tuples.shape[1]
    scores = np.empty(results.shape[1])
    worst, places = np.empty(k), np.empty(k, np.int64)
    q, gradient = np.empty(width), np.empty(width)
    for at in range(tuples.shape[0]):
        w = weights[at]
        for i in range(width):
            q[i] = 0.0
        for t in range(rounds):
            match_regrets(q, w)
            for j in range(scores.shape[0]):
                scores[j] = 0.0
            for i in range(width):
                for j in range(scores.shape[0]):
                    scores[j] += w[i] * results[tuples[at, i], j]
            for h in range(k):
                worst[h] = -np.inf
            for draw in range(n_drawn):
                loss = loss_at(scores[policies[t, draw]] - full_scores[t, draw], knots, coefficients)
                keep_worst(loss, draw, worst, places)
            # v_x = -(1/k) Σ_(i) ∂ℓ_(i)/∂w_x (here its negation); regret = v - wᵀv; q ← [q + regret]₊
            for i in range(width):
                gradient[i] = 0.0
            for h in range(k):
                j = policies[t, places[h]]
                slope = slope_at(scores[j] - full_scores[t, places[h]], knots, coefficients) / k
                for i in range(width):
                    gradient[i] += slope * results[tuples[at, i], j]
            mean = 0.0
            for i in range(width):
                mean += w[i] * gradient[i]
            if t < rounds - 1:
                for i in range(width):
                    q[i] = max(q[i] + (mean - gradient[i]), 0.0)


@compiled
@allocates
def mean_of_worst(
    scores: FloatArray,
    policies: IntArray,
    full_scores: FloatArray,
    k: int,
    knots: FloatArray,
    coefficients: FloatArray,
    means: FloatArray,
) -> None:
    """The mean of the k worst of N losses, for tests whose scores of the policies are given, a row each.

    `policies` and `full_scores` have the shape (tests, samples, N), `means` the shape (tests, samples).
    """
    worst, places = np.empty(k), np.empty(k, np.int64)
    for test in range(policies.shape[0]):
        for sample in range(policies.shape[1]):
            for h in range(k):
                worst[h] = -np.inf
            for draw in range(policies.shape[2]):
                error = scores[test, policies[test, sample, draw]] - full_scores[test, sample, draw]
                keep_worst(loss_at(error, knots, coefficients), draw, worst, places)
            total = 0.0
            for h in range(k):
                total += worst[h]
            means[test, sample] = total / k


@compiled
@allocates
def expect_losses(
    tuples: IntArray,
    weights: FloatArray,
    probabilities: FloatArray,
    results: FloatArray,
    scenario_policies: IntArray,
    full_scores: FloatArray,
    knots: FloatArray,
    coefficients: FloatArray,
    expected: FloatArray,
) -> None:
    """ℓ_s ← Σ_τ P(τ) Δ(score of τ's test - b_s)."""
    scores = np.empty(results.shape[1])
    for s in range(expected.shape[0]):
        expected[s] = 0.0
    for at in range(tuples.shape[0]):
        if probabilities[at] == 0.0:
            continue
        for j in range(scores.shape[0]):
            scores[j] = 0.0
        for i in range(tuples.shape[1]):
            for j in range(scores.shape[0]):
                scores[j] += weights[at, i] * results[tuples[at, i], j]
        for s in range(expected.shape[0]):
            error = scores[scenario_policies[s]] - full_scores[s]
            expected[s] += probabilities[at] * loss_at(error, knots, coefficients)


@compiled
@allocates
def update_tuples(
    tuples: IntArray,
    weights: FloatArray,
    pseudoregrets: FloatArray,
    alpha: FloatArray,
    scenario_policies: IntArray,
    full_scores: FloatArray,
    results: FloatArray,
    knots: FloatArray,
    coefficients: FloatArray,
    losses: FloatArray,
) -> None:
    """Regret matching+ of every tuple's weights against the antagonist's α, whose non-zero scenarios are given.

    Leaves Σ_s α_s ℓ_s in `losses`, the new pseudoregrets, and the weights that they stand for.
    """
    width = tuples.shape[1]
    gradient = np.empty(width)
    for at in range(tuples.shape[0]):
        loss = 0.0
        for i in range(width):
            gradient[i] = 0.0
        for h in range(alpha.shape[0]):
            j, score = scenario_policies[h], 0.0
            for i in range(width):
                score += weights[at, i] * results[tuples[at, i], j]
            error = score - full_scores[h]
            loss += alpha[h] * loss_at(error, knots, coefficients)
            pull = alpha[h] * slope_at(error, knots, coefficients)
            for i in range(width):
                gradient[i] += pull * results[tuples[at, i], j]
        losses[at] = loss
        mean = 0.0
        for i in range(width):
            mean += weights[at, i] * gradient[i]
        for i in range(width):
            pseudoregrets[at, i] = max(pseudoregrets[at, i] + (mean - gradient[i]), 0.0)
        match_regrets(pseudoregrets[at], weights[at])
