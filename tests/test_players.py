"""The other players of the game against their papers' update rules in plain NumPy, and against certified optima."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from oracles import every_tuple
from strategies import problems
from test_regret_matching import (
    CLOSE_CALL,
    LOSSES,
    MEASURES,
    UNEVEN,
    answer_of,
    antagonist_answer,
    assert_brackets,
    assert_same_answer,
    is_close_call,
    larger_problem,
    make_problem,
    optimum,
    play_all,
    scenarios_of,
)

import rposst_opt as ro
from rposst_opt.solvers import regret_matching
from rposst_opt.solvers.bounds import predictive_gap, steepest_payoff
from rposst_opt.solvers.kernels.players import move_within
from rposst_opt.solvers.players import PLAYERS, RESTARTS
from rposst_opt.solvers.regret_matching import RegretMatching

OTHERS = [(player, restarts) for player in PLAYERS for restarts in RESTARTS][1:]  # the first is the reference
SMOOTH = [name for name, rule in PLAYERS.items() if rule.is_smooth]

every_other = pytest.mark.parametrize(("player", "restarts"), OTHERS)


# The oracle


class Asked(NamedTuple):
    loss: float
    bound: float  # proved by then
    is_close_call: bool


class OutOfRounds(Exception):
    pass


def nearest_with_sum_of_one_or_more(point: np.ndarray) -> np.ndarray:
    """The nearest point that is nowhere negative and adds up to at least one, by sorting."""
    positive: np.ndarray = np.maximum(point, 0.0)
    if positive.sum() >= 1:
        return positive
    down = np.sort(point)[::-1]
    shifts = (np.cumsum(down) - 1) / np.arange(1, len(point) + 1)
    return np.asarray(np.maximum(point - shifts[down > shifts][-1], 0.0))


def normalised(q: np.ndarray) -> np.ndarray:
    return np.asarray(q / q.sum()) if q.sum() > 0 else np.full(len(q), 1 / len(q))


def largest_payoff(problem: ro.Problem) -> float:
    """Half the widest spread of a policy's results, by the steepest slope between any two results."""
    spread = float(np.ptp(problem.results))
    slope = np.abs(problem.pieces.slope(np.array([-spread, spread]))).max()
    eligible = problem.results[list(problem.eligible_cases)]
    return float(slope * np.ptp(eligible, axis=0).max() / 2)


class Game:
    """One tuple: asks the antagonist, so many times, and writes down what came of it."""

    def __init__(self, problem: ro.Problem, cases: tuple[int, ...], rounds: int) -> None:
        self.problem, self.cases, self.rounds = problem, cases, rounds
        self.scenarios = scenarios_of(problem)
        self.asked: list[Asked] = []
        self.best, self.best_weights, self.bound = math.inf, np.empty(0), -math.inf
        self.turns_on_rounding = False

    def ask(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The weights, the regrets and the cut."""
        if len(self.asked) == self.rounds:
            raise OutOfRounds
        weights = normalised(q)
        answer = antagonist_answer(self.problem, self.scenarios, self.cases, weights.tolist())
        close = is_close_call(self.problem, self.scenarios, self.cases, answer, float(q.sum()))
        pulls = np.multiply(answer.weights, answer.slopes)
        results = np.array([[scenario.results[case] for case in self.cases] for scenario in self.scenarios])
        payoff = -(pulls @ results)
        cut = answer.loss - payoff + weights @ payoff
        if answer.loss < self.best:
            elsewhere = not len(self.best_weights) or bool(np.abs(weights - self.best_weights).max() > 1e-9)
            close |= elsewhere and self.best - answer.loss < CLOSE_CALL
            self.best, self.best_weights = answer.loss, weights
        self.bound = max(self.bound, cut.min())
        self.asked.append(Asked(answer.loss, self.bound, close or self.turns_on_rounding))
        return weights, payoff - weights @ payoff, cut

    def prove(self, cuts: Sequence[np.ndarray]) -> None:
        """Average the cuts of rounds 1, 2, ..., once plainly and once by the squares of these numbers."""
        squares = np.arange(1, len(cuts) + 1) ** 2
        averages = np.mean(cuts, axis=0), np.average(cuts, axis=0, weights=squares)
        self.bound = max(self.bound, *(average.min() for average in averages))
        self.asked[-1] = self.asked[-1]._replace(bound=self.bound)


def play(problem: ro.Problem, cases: tuple[int, ...], rounds: int, player: str, restarts: str) -> list[Asked]:
    """The update rules of the papers, and when the game starts again."""
    game = Game(problem, cases, rounds)
    try:
        play_on(game, player, restarts)
    except OutOfRounds:
        pass
    return game.asked


def play_on(game: Game, player: str, restarts: str) -> None:
    width = len(game.cases)
    smooth = player in ("extragradient", "smooth-predictive")
    step = 0.1 / largest_payoff(game.problem) if smooth else 1.0
    nearest: Callable[[np.ndarray], np.ndarray]
    nearest = nearest_with_sum_of_one_or_more if smooth else lambda point: np.asarray(np.maximum(point, 0.0))
    q = np.full(width, 1 / width) if smooth else np.zeros(width)
    expected, last_gap, in_all = np.zeros(width), math.inf, 0
    cuts: list[np.ndarray] = []
    played: list[np.ndarray] = []
    while True:
        if player == "extragradient":
            expected = game.ask(q)[1]
        weights, regret, cut = game.ask(nearest(q + step * expected))
        q = nearest(q + step * regret)
        expected = regret if "predictive" in player else np.zeros(width)
        in_all += 1
        cuts.append(cut)
        played.append(weights)
        game.prove(cuts)
        gap = game.best - game.bound
        if restarts != "never" and gap > CLOSE_CALL:
            game.turns_on_rounding |= abs(gap - last_gap / 2) < CLOSE_CALL or gap < 10 * CLOSE_CALL
            closer = len(cuts) >= 4 and gap <= last_gap / 2
            if closer:
                q = 4 * q if restarts == "last" else 4 * q.sum() * game.best_weights
                expected = np.zeros(width)
            if closer or len(cuts) >= max(32, 0.36 * in_all):
                cuts, played, last_gap = [], [], gap
        if len(cuts) in (8, 16, 32, 64, 128, 256):
            game.ask(np.average(played, axis=0, weights=np.arange(1, len(played) + 1) ** 2))


def assert_plays_by_the_rules(problem: ro.Problem, rounds: int, player: str, restarts: str) -> int:
    games = [play(problem, cases, rounds, player, restarts) for cases in every_tuple(problem)]
    close_calls = (number for game in games for number, each in enumerate(game, start=1) if each.is_close_call)
    certain = min(close_calls, default=rounds)
    solution = play_all(problem, certain, player=player, restarts=restarts, prune=False)
    scale = max(1.0, float(np.abs(problem.results).max()))
    best = min(each.loss for game in games for each in game[:certain])
    bound = max(min(game[certain - 1].bound for game in games), problem.pieces.minimum())
    assert solution.objective == pytest.approx(best, rel=0, abs=1e-9 * scale)
    # The last round may be the one that rounding turns, and its cut another.
    if certain == rounds:
        assert solution.lower_bound == pytest.approx(bound, rel=0, abs=1e-9 * scale)
        assert solution.stats.rounds == rounds * problem.n_tuples
    return certain


RANDOM = np.random.default_rng(20231107)
REAL = RANDOM.random((4, 5))
TWO_TARGETS = RANDOM.dirichlet(np.ones(4), 2)
UNLIKELY = RANDOM.dirichlet(np.ones(10)).reshape(5, 2)

# One or two sets of cases each: the oracle takes its time.
SOME_PROBLEMS = {
    "worst case": ro.Problem(results=REAL, size=3, forbidden_cases=[3], targets=TWO_TARGETS, measure=ro.WorstCase()),
    "some of the worst": ro.Problem(
        results=REAL, size=1, required_cases=[0, 2], targets=TWO_TARGETS, measure=ro.CVaR(0.3)
    ),
    "unlikely scenarios": ro.Problem(
        results=REAL, size=4, targets=TWO_TARGETS, probabilities=UNLIKELY, measure=ro.KOfN(2, 5)
    ),
    "curved": ro.Problem(results=REAL, size=3, forbidden_cases=[1], targets=TWO_TARGETS, loss=ro.SquaredError()),
    "far from zero": ro.Problem(results=1000 + 10 * REAL, size=4, measure=ro.CVaR(0.5), loss=ro.HuberError(1)),
}


@every_other
@pytest.mark.parametrize("name", SOME_PROBLEMS)
def test_every_player_follows_its_rule(name: str, player: str, restarts: str) -> None:
    assert_plays_by_the_rules(SOME_PROBLEMS[name], 100, player, restarts)


@every_other
def test_some_of_these_games_are_certain_to_the_end(player: str, restarts: str) -> None:
    lengths = [assert_plays_by_the_rules(problem, 50, player, restarts) for problem in SOME_PROBLEMS.values()]
    assert lengths.count(50) >= 3


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_every_measure_goes_with_every_loss(loss: ro.Loss, measure: ro.Measure) -> None:
    problem = make_problem("forbidden cases", loss=loss, measure=measure, probabilities=UNEVEN)
    player, restarts = OTHERS[(7 * LOSSES.index(loss) + MEASURES.index(measure)) % len(OTHERS)]
    assert_plays_by_the_rules(problem, 20, player, restarts)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6))
@example([1.7, 0.7000000000000001])
@example([0.9, -0.09999999999999998])
@example([0.3, -0.7, -0.7])
def test_the_nearest_point_of_the_chopped_orthant(point: list[float]) -> None:
    moved = np.empty(len(point))
    move_within(np.zeros(len(point)), np.array(point), 1.0, 1.0, moved)
    np.testing.assert_allclose(moved, nearest_with_sum_of_one_or_more(np.array(point)), rtol=0, atol=1e-14)


def test_the_nearest_point_is_found_wherever_rounding_decides_who_is_left() -> None:
    moved = np.empty(2)
    for first, last_bits in itertools.product(np.linspace(0.05, 0.95, 91), range(-3, 4)):
        second = first - 1 + last_bits * 2.0**-54
        move_within(np.zeros(2), np.array([first, second]), 1.0, 1.0, moved)
        assert moved.sum() == pytest.approx(1, abs=1e-14)
        assert moved.min() >= 0


# What is proved and promised


@settings(max_examples=25)
@given(problems(most_cases=4), st.sampled_from(OTHERS), st.integers(1, 150))
def test_bounds_are_below_the_optimum_and_tests_are_not(
    problem: ro.Problem, other: tuple[str, str], rounds: int
) -> None:
    player, restarts = other
    best = optimum(problem)
    solution = play_all(problem, rounds, player=player, restarts=restarts)
    assert_brackets(solution, best)
    assert_brackets(play_all(problem, rounds, player=player, restarts=restarts, gap=0.1), best)
    assert_brackets(play_all(problem, rounds, player=player, restarts=restarts, time_limit_seconds=0), best)
    promised = RegretMatching(rounds=rounds, player=player, restarts=restarts).capabilities.promised_gap
    if promised is not None:
        assert solution.gap <= promised(problem) + 1e-9


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
def test_bounds_hold_with_every_kind_of_loss(measure: ro.Measure) -> None:
    for number, loss in enumerate(LOSSES):
        probabilities = UNEVEN if number % 2 else None
        more: dict[str, Any] = {"loss": loss, "measure": measure, "probabilities": probabilities}
        problem = make_problem("required and forbidden cases", **more)
        best = optimum(problem)
        for player, restarts in OTHERS:
            assert_brackets(play_all(problem, 60, player=player, restarts=restarts), best)


@every_other
def test_noise_is_played_with_and_bounded(player: str, restarts: str) -> None:
    results = np.random.default_rng(3).random((6, 5))
    problem = ro.Problem(results=results, size=3, measure=ro.CVaR(0.3), noise=0.2)
    optimal = ro.solve(problem, "exact")
    solution = play_all(problem, 2000, player=player, restarts=restarts)
    assert solution.lower_bound <= optimal.objective + 1e-9
    assert solution.objective >= optimal.lower_bound - 1e-9
    assert solution.gap < 0.01


@pytest.mark.parametrize("player", SMOOTH)
@pytest.mark.parametrize("step", [1e-3, 1, 1e6])
def test_any_step_keeps_what_is_promised_for_it(player: str, step: float) -> None:
    problem = larger_problem(5)
    for rounds in (1, 2, 30, 3000):
        backend = RegretMatching(rounds=rounds, player=player, step=step)
        promised = backend.capabilities.promised_gap
        assert promised is not None
        assert ro.solve(problem, backend).gap <= promised(problem)


def test_the_promise_falls_with_the_root_of_the_rounds() -> None:
    problem = larger_problem(5)
    steepest = steepest_payoff(problem)
    assert predictive_gap(problem, 1) == 2 * steepest
    assert predictive_gap(problem, 9 * 10**6) == pytest.approx(4 * steepest * math.sqrt(2 * 3 / (8 * 10**6)))
    twice_asked = predictive_gap(problem, 9 * 10**6, questions_per_round=2, step=0.5)
    assert twice_asked == pytest.approx(4 * steepest * math.sqrt(2 * 3 / (4 * 10**6)) + steepest / (2 * 10**6))


@pytest.mark.parametrize("player", PLAYERS)
def test_restarts_mostly_prove_much_more_in_the_same_rounds(player: str) -> None:
    tables = [np.random.default_rng(seed).random((12, 20)) for seed in range(9)]
    four_cases = [ro.Problem(results=t, size=4, measure=ro.CVaR(0.3), forbidden_cases=range(4, 12)) for t in tables]

    def usual_gap(restarts: str) -> float:
        return float(np.median([play_all(one, 20_000, player=player, restarts=restarts).gap for one in four_cases]))

    without = usual_gap("never")
    assert usual_gap("last") < without / 10
    assert usual_gap("best") < without / 10


# The same as ever


@every_other
def test_pruning_and_threads_change_neither_the_answer_nor_the_bound(player: str, restarts: str) -> None:
    problem = larger_problem(7)
    options: dict[str, Any] = {"player": player, "restarts": restarts}
    pruned = play_all(problem, 100, threads=1, **options)
    full = play_all(problem, 100, threads=1, prune=False, **options)
    assert_same_answer(pruned, full)
    assert_same_answer(full, play_all(problem, 100, threads=3, prune=False, **options))
    assert pruned.stats.rounds < full.stats.rounds == 100 * problem.n_tuples
    again = play_all(problem, 100, threads=1, **options)
    assert (again.objective, again.lower_bound) == (pruned.objective, pruned.lower_bound)
    assert answer_of(again).weights.tolist() == answer_of(pruned).weights.tolist()


def test_regret_matching_is_the_default_and_needs_nobody_elses_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = larger_problem(7)
    other = play_all(problem, 100, restarts="best")

    def nobody(*arguments: object) -> None:
        raise AssertionError("another player was called for")

    monkeypatch.setattr(regret_matching, "play_tuples_as", nobody)
    monkeypatch.setattr(regret_matching, "play_tuple_as", nobody)
    default = play_all(problem, 100)
    named = play_all(problem, 100, player="regret-matching+", restarts="never")
    assert answer_of(default).weights.tolist() == answer_of(named).weights.tolist()
    assert answer_of(default).weights.tolist() != answer_of(other).weights.tolist()
    assert (default.objective, default.lower_bound) == (named.objective, named.lower_bound)
    assert RegretMatching().capabilities == RegretMatching(player="regret-matching+").capabilities


def test_players_differ() -> None:
    problem = make_problem("one target", measure=ro.CVaR(0.3))
    answers = {tuple(answer_of(play_all(problem, 60, player=p, restarts=r)).weights.tolist()) for p, r in OTHERS}
    assert len(answers) > 6


@settings(max_examples=20)
@given(problems(kinds=["constant", "binary"]), st.sampled_from(OTHERS))
def test_games_that_are_over_at_once_go_on_without_harm(problem: ro.Problem, other: tuple[str, str]) -> None:
    """A gap of nothing neither halves for ever nor makes pseudoregrets overflow."""
    player, restarts = other
    solution = play_all(problem, 5000, player=player, restarts=restarts, prune=False)
    assume(solution.test is not None)
    assert np.isfinite(answer_of(solution).weights).all()
    assert math.isfinite(solution.lower_bound)
    assert solution.lower_bound <= solution.objective + 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"player": "cfr"},
            "`player` must be one of regret-matching\\+, predictive, extragradient, smooth-predictive, got 'cfr'",
        ),
        ({"player": None}, "`player` must be one of .* got None"),
        ({"player": ["predictive"]}, "`player` must be one of"),
        ({"restarts": "often"}, "`restarts` must be one of never, last, best, got 'often'"),
        ({"restarts": True}, "`restarts` must be one of never, last, best, got True"),
        (
            {"step": 0.1},
            "`step` goes with the players extragradient and smooth-predictive; regret-matching\\+ has none",
        ),
        ({"player": "predictive", "step": 0.1}, "predictive has none"),
        ({"player": "extragradient", "step": 0}, "`step` must be a number above 0 and at most 1,000,000, got 0"),
        ({"player": "extragradient", "step": math.nan}, "got nan"),
        ({"player": "smooth-predictive", "step": math.inf}, "got inf"),
        ({"player": "smooth-predictive", "step": "long"}, "got 'long'"),
        ({"player": "smooth-predictive", "step": True}, "got True"),
        ({"player": "predictive", "rounds": 0}, "`rounds` must be a whole number from 1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ro.ProblemError, match=message):
        RegretMatching(**options)
