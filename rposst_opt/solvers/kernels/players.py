"""Other players than regret matching+ on one tuple, and on a stretch of tuples (see `rposst_opt.solvers.players`).

They are apart from the reference because they are compiled apart: nobody who does not ask for them waits for that.
"""

from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import allocates, compiled, inlined, internal
from rposst_opt.solvers.kernels.problem_arrays import BY_SELECTION, ProblemArrays
from rposst_opt.solvers.kernels.regret_matching import cut_at_response, match_regrets, move_to_next_tuple
from rposst_opt.solvers.kernels.response import (
    Response,
    average_loss,
    bound_losses,
    list_worst,
    make_response,
    noise_at,
    score_policies,
    select_worst,
    slope_of_noise,
    weigh_scenarios,
)

NEVER, FROM_LAST, FROM_BEST = 0, 1, 2  # whether to start again, and where
ROUND, PROBE, AVERAGE = 0, 1, 2  # what the antagonist is asked about

FIRST_AVERAGE = 8  # after so many rounds their average is tried, and then after twice as many each time
# A player starts again when the gap is down to this share of what it was, after this many rounds at least. The steps
# are so many times shorter from then on. Halves and fourths were the best of a few that were tried.
SHARE_OF_GAP, LEAST_ROUNDS, SHORTER = 0.5, 4, 4.0
# And averages alone begin anew when this share of all rounds has passed since they did: early rounds are forgotten.
SHARE_OF_ROUNDS, LEAST_AVERAGED = 0.36, 32


class Player(NamedTuple):
    """How the test maker plays, in numbers."""

    predicts: bool  # it expects the last regret once more
    probes: bool  # it asks the antagonist first, and expects what it has heard
    floor: float  # the least sum of its pseudoregrets
    step: float  # how much a regret moves the pseudoregrets
    restarts: int  # NEVER, FROM_LAST or FROM_BEST
    least_gap: float  # a gap below this is rounding


class PlayerRun(NamedTuple):
    """A workspace for a player on one tuple."""

    weights: FloatArray  # that the antagonist is asked about
    pseudoregrets: FloatArray
    regret: FloatArray
    prediction: FloatArray
    guess: FloatArray  # the pseudoregrets moved by the prediction
    gradient: FloatArray
    average_cut: FloatArray  # Σ_t c^t, and Σ_t t² c^t
    quadratic_cut: FloatArray
    average_weights: FloatArray  # Σ_t t² w^t
    best_weights: FloatArray
    scores: FloatArray
    bounds: FloatArray
    scratch: FloatArray


@internal
@allocates
def make_player_run(n_chosen: int, n_policies: int) -> PlayerRun:
    """A workspace for tuples of this many cases."""
    return PlayerRun(
        weights=np.empty(n_chosen),
        pseudoregrets=np.empty(n_chosen),
        regret=np.empty(n_chosen),
        prediction=np.empty(n_chosen),
        guess=np.empty(n_chosen),
        gradient=np.empty(n_chosen),
        average_cut=np.empty(n_chosen),
        quadratic_cut=np.empty(n_chosen),
        average_weights=np.empty(n_chosen),
        best_weights=np.empty(n_chosen),
        scores=np.empty(n_policies),
        bounds=np.empty(n_policies),
        scratch=np.empty(n_policies),
    )


@internal
def move_within(pseudoregrets: FloatArray, direction: FloatArray, step: float, floor: float, moved: FloatArray) -> None:
    """Moved ← the point nearest to q + step · direction among those with q ≥ 0 and 1ᵀq ≥ floor.

    Where the sum falls short, the nearest point is [q - θ]₊ with the θ < 0 that makes the sum right: θ is worked out
    from the positive entries, and again without those that it makes negative, until there are none.
    """
    total = 0.0
    for i in range(moved.shape[0]):
        moved[i] = pseudoregrets[i] + step * direction[i]
        total += max(moved[i], 0.0)
    theta = 0.0
    if total < floor:
        theta, before = -np.inf, moved.shape[0] + 1
        while True:
            total, count = -floor, 0
            for i in range(moved.shape[0]):
                if moved[i] > theta:
                    total += moved[i]
                    count += 1
            if count == 0 or count >= before:  # more than before, or none, are left where rounding says so
                break
            theta, before = total / count, count
    for i in range(moved.shape[0]):
        moved[i] = max(moved[i] - theta, 0.0)


@inlined
def set_all(values: FloatArray, value: float) -> None:
    """Every entry ← the value. A slice would be an array, and these kernels make none."""
    for i in range(values.shape[0]):
        values[i] = value


@inlined
def add_round(
    n: int,
    constant: float,
    weights: FloatArray,
    gradient: FloatArray,
    average_cut: FloatArray,
    quadratic_cut: FloatArray,
    average_weights: FloatArray,
) -> float:
    """Add round n to the averages. Returns the better bound of the two averages of the cuts."""
    share = float(n) * n
    average_least, quadratic_least = np.inf, np.inf
    for i in range(weights.shape[0]):
        cut = constant + gradient[i]
        average_cut[i] += cut
        quadratic_cut[i] += share * cut
        average_weights[i] += share * weights[i]
        average_least = min(average_least, average_cut[i])
        quadratic_least = min(quadratic_least, quadratic_cut[i])
    return max(average_least / n, quadratic_least / (share * (n / 3.0 + 0.5) + n / 6.0))


@inlined
def shorten_steps(restarts: int, pseudoregrets: FloatArray, best_weights: FloatArray) -> None:
    """Q ← 4 q, or 4 (1ᵀq) w with the best weights: what a regret moves is the less, the larger they are."""
    total = 0.0
    for i in range(pseudoregrets.shape[0]):
        total += pseudoregrets[i]
    for i in range(pseudoregrets.shape[0]):
        pseudoregrets[i] = SHORTER * (total * best_weights[i] if restarts == FROM_BEST else pseudoregrets[i])


@compiled
def play_tuple_as(
    player: Player,
    cases: IntArray,
    rounds: int,
    cutoff: FloatArray,
    arrays: ProblemArrays,
    run: PlayerRun,
    response: Response,
) -> tuple[float, float, int]:
    """Play one tuple: the best loss, the lower bound, and how often the antagonist was asked, at most `rounds` times.

    As in `play_tuple`, the lower bound is the best one seen of averages of the rounds' cuts, here plain and weighted by
    t², and of single cuts; and the tuple is left as soon as its bound is above ``cutoff[0]``, or ``cutoff[1]`` asks to
    stop.
    """
    # Long because what every question to the antagonist needs is written once.
    results, full_scores, knots, coefficients = arrays.results, arrays.full_scores, arrays.knots, arrays.coefficients
    low, high, offsets = arrays.least_full_scores, arrays.greatest_full_scores, arrays.offsets
    probabilities, rank_weights = arrays.probabilities, arrays.rank_weights
    edges, table, kind = arrays.tail_edges, arrays.tail_coefficients, arrays.response
    scenarios, policies, losses, alpha = response.scenarios, response.policies, response.losses, response.weights
    weights, q, regret, prediction, guess = run.weights, run.pseudoregrets, run.regret, run.prediction, run.guess
    gradient, best_weights, average_weights = run.gradient, run.best_weights, run.average_weights
    average_cut, quadratic_cut = run.average_cut, run.quadratic_cut
    scores, bounds, scratch, noise = run.scores, run.bounds, run.scratch, arrays.noise
    predicts, probes, floor, step, restarts = player.predicts, player.probes, player.floor, player.step, player.restarts
    set_all(q, floor / q.shape[0])
    set_all(prediction, 0.0)
    for h in range(scenarios.shape[0]):
        scenarios[h] = -1
    first = PROBE if probes else ROUND
    best, lower_bound, t, asked, played, n, next_average, last_gap = np.inf, -np.inf, 0, first, 0, 0, 0, np.inf
    while t < rounds:
        t += 1
        if n == 0:
            set_all(average_cut, 0.0)
            set_all(quadratic_cut, 0.0)
            set_all(average_weights, 0.0)
            next_average = FIRST_AVERAGE
        # w ← the average so far, or what the pseudoregrets and the prediction say
        if asked == AVERAGE:
            match_regrets(average_weights, weights)
        else:
            move_within(q, prediction, step, floor, guess)
            match_regrets(guess, weights)
        # ℓ ← the losses that may count, worst first;  α ← the antagonist's best response
        score_policies(results, cases, weights, scores)
        if kind == BY_SELECTION:
            bound_losses(scores, low, high, knots, coefficients, bounds, scratch)
            select_worst(scores, bounds, offsets, full_scores, knots, coefficients, losses, scenarios, policies)
        else:
            list_worst(scores, bounds, scratch, arrays, response)
        weigh_scenarios(kind, scenarios, probabilities, rank_weights, edges, table, alpha)
        loss = average_loss(losses, alpha)
        constant = cut_at_response(
            loss, cases, scores, scenarios, policies, alpha, results, full_scores, knots, coefficients, gradient
        )
        cost_of_noise = noise_at(cases, weights, noise)
        loss += cost_of_noise
        mean, least = 0.0, np.inf
        for i in range(gradient.shape[0]):
            gradient[i] += slope_of_noise(cases[i], weights[i], noise, cost_of_noise)
            mean += weights[i] * gradient[i]
            least = min(least, gradient[i])
        lower_bound = max(lower_bound, constant + least)
        if loss < best:
            best = loss
            for i in range(weights.shape[0]):
                best_weights[i] = weights[i]
        if asked != AVERAGE:
            for i in range(regret.shape[0]):
                regret[i] = mean - gradient[i]
                prediction[i] = regret[i] if predicts or asked == PROBE else 0.0
        was_round = asked == ROUND
        asked = ROUND if asked == PROBE else first
        if was_round:
            move_within(q, regret, step, floor, q)
            n += 1
            played += 1
            bound = add_round(n, constant, weights, gradient, average_cut, quadratic_cut, average_weights)
            lower_bound = max(lower_bound, bound)
            gap = best - lower_bound
            if n == next_average:
                asked = AVERAGE
                next_average *= 2
            if restarts != NEVER and gap > player.least_gap:
                is_closer = n >= LEAST_ROUNDS and gap <= SHARE_OF_GAP * last_gap
                if is_closer:
                    shorten_steps(restarts, q, best_weights)
                    set_all(prediction, 0.0)
                if is_closer or (n >= LEAST_AVERAGED and n >= SHARE_OF_ROUNDS * played):
                    n, asked, last_gap = 0, first, gap
        if lower_bound > cutoff[0] or cutoff[1] > 0.0:
            break
    return best, lower_bound, t


@compiled
@allocates
def play_tuples_as(
    player: Player,
    first: IntArray,
    n_tuples: int,
    selectable: IntArray,
    required: IntArray,
    rounds: int,
    cutoff: FloatArray,
    lead: float,
    arrays: ProblemArrays,
    best_cases: IntArray,
    best_weights: FloatArray,
) -> tuple[float, float, int, int]:
    """What `play_tuples` does, for this player."""
    size = first.shape[0]
    width = size + required.shape[0]
    chosen = first.copy()
    cases = np.empty(width, np.int64)
    for i in range(required.shape[0]):
        cases[size + i] = required[i]
    run = make_player_run(width, arrays.results.shape[1])
    response = make_response(arrays)
    best, lower_bound, done, asked = np.inf, np.inf, 0, 0
    while done < n_tuples and (done == 0 or cutoff[1] <= 0.0):
        for i in range(size):
            cases[i] = selectable[chosen[i]]
        loss, bound, t = play_tuple_as(player, cases, rounds, cutoff, arrays, run, response)
        asked += t
        done += 1
        lower_bound = min(lower_bound, bound)
        if loss < best:
            best = loss
            for i in range(width):
                best_cases[i], best_weights[i] = cases[i], run.best_weights[i]
            if best + lead < cutoff[0]:
                cutoff[0] = best + lead
        if not move_to_next_tuple(chosen, selectable.shape[0]):
            break
    return best, lower_bound, done, asked
