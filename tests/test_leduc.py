import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import rposst_opt as ro
from rposst_opt.experiments.domains import leduc
from rposst_opt.experiments.domains.leduc import Decision, checkpoints, payoff_law, schedule, scripted, tabulated

if TYPE_CHECKING:
    import pandas as pd

FOLD, CALL, RAISE = 0, 1, 2
JACK, QUEEN, KING = 0, 1, 2

needs_openspiel = pytest.mark.skipif(find_spec("pyspiel") is None, reason="OpenSpiel is not installed")


class ScriptedPlayer:
    """A player for OpenSpiel's own evaluation, who reads its cards from the text of what it observes."""

    def __init__(self, choose: Callable[[int, int | None, list[int]], int]) -> None:
        self.choose = choose

    def action_probabilities(self, state: Any) -> dict[int, float]:
        text = state.information_state_string()
        private = re.search(r"\[Private: (\d)\]", text)
        public = re.search(r"\[Public: (\d)\]", text)
        assert private is not None
        ranks = int(private[1]) // 2, int(public[1]) // 2 if public else None
        chosen = self.choose(*ranks, state.legal_actions())
        return {action: float(action == chosen) for action in state.legal_actions()}


def tight_by_its_description(private: int, public: int | None, legal: list[int]) -> int:
    """Raises with a pair or a king, folds other jacks to a bet, and calls with the rest."""
    pair = public is not None and private == public
    if pair or private == KING:
        return RAISE if RAISE in legal else CALL
    faces_a_bet = FOLD in legal
    return FOLD if faces_a_bet and private == JACK else CALL


SCRIPTED_PLAYERS = {
    "always-call": ScriptedPlayer(lambda private, public, legal: CALL),
    "always-raise": ScriptedPlayer(lambda private, public, legal: RAISE if RAISE in legal else CALL),
    "tight": ScriptedPlayer(tight_by_its_description),
}


@pytest.fixture(scope="module")
def openspiel_game() -> Any:
    import pyspiel

    return pyspiel.load_game("leduc_poker")


@pytest.fixture(scope="module")
def game(openspiel_game: Any) -> leduc.Game:
    return leduc.listed(openspiel_game)


@pytest.fixture(scope="module")
def table() -> "pd.DataFrame":
    return checkpoints()


def strategies_of_a_run(openspiel_game: Any, iterations: list[int]) -> dict[int, Any]:
    """OpenSpiel's own objects for the strategies of the moment."""
    import pyspiel

    solver = pyspiel.CFRSolver(openspiel_game)
    found = {}
    for iteration in range(1, max(iterations) + 1):
        solver.evaluate_and_update_policy()
        if iteration in iterations:
            found[iteration] = solver.tabular_current_policy()
    return found


@pytest.fixture(scope="module")
def strategies(openspiel_game: Any) -> dict[int, Any]:
    """The strategies of every moment of a run as long as `checkpoints` has it, unless told otherwise."""
    return strategies_of_a_run(openspiel_game, list(range(1, 101)))


def expected_result(openspiel_game: Any, player: Any, opponent: Any) -> float:
    """What a player wins from an opponent, the mean over both seats, by OpenSpiel's walk through the tree."""
    from open_spiel.python.algorithms.expected_game_score import policy_value

    first = policy_value(openspiel_game.new_initial_state(), [player, opponent])[0]
    second = policy_value(openspiel_game.new_initial_state(), [opponent, player])[1]
    return float(first + second) / 2


def uniform(game: leduc.Game) -> np.ndarray:
    allowed = np.zeros((len(game.decisions), 3))
    for place, decision in enumerate(game.decisions.values()):
        allowed[place, list(decision.allowed)] = 1 / len(decision.allowed)
    return allowed


def law_of(game: leduc.Game, first: leduc.Rule, second: leduc.Rule) -> dict[float, float]:
    """How likely each payoff is for the first, who sits in seat 0, leaving out what is impossible."""
    payoffs, law = payoff_law(game, np.array([scripted(game, first), scripted(game, second)]))
    return {float(won): float(likely) for won, likely in zip(payoffs, law[0, 1], strict=True) if likely}


@needs_openspiel
class TestListing:
    def test_every_information_state_and_every_ending_is_listed(self, game: leduc.Game) -> None:
        assert len(game.decisions) == 936  # as OpenSpiel tells suits apart
        assert len(game.payoffs) == 5520
        assert game.payoffs.max() == 13.0  # the ante, two raises of 2 and two of 4
        np.testing.assert_array_equal(np.unique(game.payoffs), -np.unique(game.payoffs)[::-1])

    def test_a_decision_knows_its_cards(self, game: leduc.Game) -> None:
        seen = {(decision.private, decision.public) for decision in game.decisions.values()}
        assert seen == {(private, public) for private in (JACK, QUEEN, KING) for public in (None, JACK, QUEEN, KING)}
        for text, decision in game.decisions.items():
            private = re.search(r"Private: (\d)", text)
            assert private is not None
            assert decision.private == int(private[1]) // 2
            assert (decision.public is None) == ("[Round 1]" in text)

    def test_what_can_happen_to_any_pair_has_probability_one(self, game: leduc.Game) -> None:
        random = np.random.default_rng(0).dirichlet(np.ones(3), len(game.decisions)) * (uniform(game) > 0)
        random /= random.sum(axis=1, keepdims=True)
        policies = np.array([random, uniform(game), scripted(game, leduc.tight)])
        _, law = payoff_law(game, policies)
        np.testing.assert_allclose(law.sum(axis=2), 1.0, rtol=0, atol=1e-12)

    def test_stakes_follow_from_the_rules(self, game: leduc.Game) -> None:
        """Nobody folds, and one deal in five gives both the same rank: a tie."""
        call, more = leduc.always_call, leduc.always_raise
        for stake, first, second in ((1, call, call), (13, more, more), (7, call, more), (7, more, call)):
            assert law_of(game, first, second) == pytest.approx({-stake: 0.4, 0.0: 0.2, stake: 0.4})

    def test_who_folds_to_any_bet_loses_the_ante_to_who_always_bets(self, game: leduc.Game) -> None:
        def timid(decision: Decision) -> int:
            return FOLD if FOLD in decision.allowed else CALL

        assert law_of(game, timid, leduc.always_raise) == pytest.approx({-1.0: 1.0})
        assert law_of(game, leduc.always_raise, timid) == pytest.approx({1.0: 1.0})

    def test_random_play_is_worth_what_openspiel_says_to_seat_0(self, game: leduc.Game, openspiel_game: Any) -> None:
        import pyspiel
        from open_spiel.python.algorithms.expected_game_score import policy_value

        payoffs, law = payoff_law(game, uniform(game)[None])
        random = pyspiel.UniformRandomPolicy(openspiel_game)
        expected = policy_value(openspiel_game.new_initial_state(), [random, random])[0]
        assert law[0, 0] @ payoffs == pytest.approx(expected, abs=1e-12)
        assert abs(expected) > 0.05

    def test_near_optimal_play_wins_the_games_known_value(self, game: leduc.Game, openspiel_game: Any) -> None:
        import pyspiel

        solver = pyspiel.CFRPlusSolver(openspiel_game)
        for _ in range(60):
            solver.evaluate_and_update_policy()
        policy = tabulated(solver.tabular_average_policy().policy_table(), game)
        payoffs, law = payoff_law(game, policy[None])
        assert law[0, 0] @ payoffs == pytest.approx(-0.0856, abs=0.005)


class TestScripted:
    @pytest.mark.parametrize(
        ("name", "decision", "action"),
        [
            ("always-call", Decision(KING, KING, (0, 1, 2)), CALL),
            ("always-raise", Decision(JACK, None, (1, 2)), RAISE),
            ("always-raise", Decision(JACK, None, (0, 1)), CALL),
            ("tight", Decision(KING, None, (1, 2)), RAISE),
            ("tight", Decision(KING, JACK, (0, 1, 2)), RAISE),
            ("tight", Decision(KING, JACK, (0, 1)), CALL),
            ("tight", Decision(JACK, JACK, (0, 1, 2)), RAISE),
            ("tight", Decision(QUEEN, QUEEN, (0, 1)), CALL),
            ("tight", Decision(JACK, None, (1, 2)), CALL),
            ("tight", Decision(JACK, None, (0, 1, 2)), FOLD),
            ("tight", Decision(JACK, QUEEN, (0, 1)), FOLD),
            ("tight", Decision(QUEEN, None, (0, 1, 2)), CALL),
            ("tight", Decision(QUEEN, KING, (0, 1)), CALL),
        ],
    )
    def test_rules(self, name: str, decision: Decision, action: int) -> None:
        assert leduc.SCRIPTED[name](decision) == action


class TestSchedule:
    @pytest.mark.parametrize("iterations", [2, 7, 43, 44, 60, 100, 1000])
    def test_checkpoints_are_distinct_and_reach_from_the_first_iteration_to_the_last(self, iterations: int) -> None:
        for n_checkpoints in range(2, min(iterations, 60) + 1):
            stops = schedule(n_checkpoints, iterations)
            assert len(stops) == n_checkpoints
            assert all(earlier < later for earlier, later in pairwise(stops))
            assert (stops[0], stops[-1]) == (1, iterations)

    def test_they_are_dense_early_and_sparse_late(self) -> None:
        assert schedule(4, 1000) == [1, 10, 100, 1000]
        assert schedule(43, 100)[:30] == list(range(1, 31))

    def test_the_only_one_is_the_last(self) -> None:
        assert schedule(1, 50) == [50]

    def test_as_many_as_iterations_are_all_of_them(self) -> None:
        assert schedule(20, 20) == list(range(1, 21))


@needs_openspiel
class TestCheckpoints:
    def test_43_checkpoints_and_three_scripted_agents(self, table: "pd.DataFrame") -> None:
        names = [f"checkpoint-{number:02d}" for number in range(43)] + ["always-call", "always-raise", "tight"]
        assert table.shape == (46, 46)
        assert list(table.index) == list(table.columns) == names
        assert sorted(names[:43]) == names[:43]

    @pytest.mark.parametrize("n_checkpoints", [1, 10, 11])
    def test_names_sort_in_order(self, n_checkpoints: int) -> None:
        names = list(checkpoints(n_checkpoints=n_checkpoints, iterations=n_checkpoints).columns)[:n_checkpoints]
        assert sorted(set(names)) == names

    def test_one_players_win_is_the_others_loss_to_the_last_digit(self, table: "pd.DataFrame") -> None:
        results = table.to_numpy()
        np.testing.assert_array_equal(results, -results.T)
        assert not results.diagonal().any()
        assert np.isfinite(results).all()

    def test_results_are_those_of_openspiels_own_evaluation(
        self, table: "pd.DataFrame", openspiel_game: Any, strategies: dict[int, Any]
    ) -> None:
        stops = schedule(43, 100)
        numbers = [0, 1, 7, 20, 41, 42]
        players: dict[str, Any] = dict(SCRIPTED_PLAYERS)
        for number in numbers:
            players[f"checkpoint-{number:02d}"] = strategies[stops[number]]
        for policy, player in players.items():
            for test_case, opponent in players.items():
                expected = expected_result(openspiel_game, player, opponent)
                assert table.loc[test_case, policy] == pytest.approx(expected, abs=1e-12)

    def test_rows_are_opponents_and_columns_policies(self, table: "pd.DataFrame") -> None:
        assert table.to_numpy()[0, 42] > 0.3
        assert table.loc["always-raise", "tight"] == pytest.approx(5 / 3)

    def test_skill_grows(self, table: "pd.DataFrame") -> None:
        means = table.iloc[:43, :43].mean().to_numpy()
        assert means[0] < means[3] < means[6] < means[9] < means[-5:].min()
        later_against_earlier = table.to_numpy()[:43, :43][np.triu_indices(43, 1)]
        assert (later_against_earlier > 0).mean() > 0.9

    def test_late_checkpoints_are_harder_to_exploit(self, openspiel_game: Any, strategies: dict[int, Any]) -> None:
        import pyspiel

        numbers = (1, 80, 90, 100)
        exploitability = {number: pyspiel.exploitability(openspiel_game, strategies[number]) for number in numbers}
        assert max(exploitability[number] for number in (80, 90, 100)) < exploitability[1] / 2

    def test_late_checkpoints_can_still_be_told_apart(self, table: "pd.DataFrame") -> None:
        late = table.to_numpy()[33:43, 33:43]
        assert np.abs(late[np.triu_indices(10, 1)]).mean() > 0.02

    def test_some_go_round_in_circles(self, table: "pd.DataFrame") -> None:
        beats = (table.to_numpy().T > 1e-3).astype(int)
        assert np.trace(beats @ beats @ beats) / 3 > 100

    def test_checkpoints_are_of_one_run(self) -> None:
        """With a checkpoint at every iteration, a shorter run is the beginning of a longer one."""
        short, long = checkpoints(n_checkpoints=5, iterations=5), checkpoints(n_checkpoints=10, iterations=10)
        np.testing.assert_allclose(short.iloc[:5, :5], long.iloc[:5, :5], rtol=0, atol=1e-12)
        np.testing.assert_allclose(short.iloc[:5, 5:], long.iloc[:5, 10:], rtol=0, atol=1e-12)

    def test_the_same_again(self) -> None:
        assert checkpoints(n_checkpoints=4, iterations=9).equals(checkpoints(n_checkpoints=4, iterations=9))


@needs_openspiel
class TestMatches:
    def play(self, matches: int, seed: int) -> "pd.DataFrame":
        return checkpoints(n_checkpoints=4, iterations=20, matches=matches, rng=np.random.default_rng(seed))

    def test_the_mean_of_many_is_the_expected_result(self, game: leduc.Game, openspiel_game: Any) -> None:
        matches = 40_000
        strategies = strategies_of_a_run(openspiel_game, schedule(4, 20))
        trained = [tabulated(strategy.policy_table(), game) for strategy in strategies.values()]
        policies = np.array([*trained, *(scripted(game, rule) for rule in leduc.SCRIPTED.values())])
        payoffs, law = payoff_law(game, policies)
        variance = law @ payoffs**2 - (law @ payoffs) ** 2
        standard_error = np.sqrt((variance + variance.T) / 4 / (matches / 2))
        difference = self.play(matches, seed=3) - checkpoints(n_checkpoints=4, iterations=20)
        upper = np.triu_indices(7, 1)
        scores = difference.to_numpy()[upper] / standard_error[upper]
        assert np.abs(scores).max() < 5
        assert 0.5 < scores.std() < 1.6  # as noisy as so many games are, no more and no less

    def test_so_many_matches_make_whole_chips_and_noise(self) -> None:
        results = self.play(matches=20, seed=0).to_numpy()
        np.testing.assert_allclose(results * 20, np.rint(results * 20), rtol=0, atol=1e-9)
        assert np.abs(results - checkpoints(n_checkpoints=4, iterations=20).to_numpy()).max() > 0.3

    def test_the_same_matches_serve_both_players(self) -> None:
        results = self.play(matches=20, seed=0).to_numpy()
        np.testing.assert_array_equal(results, -results.T)
        assert not results.diagonal().any()

    def test_the_generator_decides(self) -> None:
        assert self.play(20, seed=5).equals(self.play(20, seed=5))
        assert not self.play(20, seed=5).equals(self.play(20, seed=6))

    def test_only_the_given_generator_is_used(self) -> None:
        np.random.seed(0)  # noqa: NPY002
        before = np.random.random()  # noqa: NPY002
        np.random.seed(0)  # noqa: NPY002
        self.play(20, seed=5)
        assert np.random.random() == before  # noqa: NPY002

    def test_without_matches_the_generator_does_not_matter(self) -> None:
        exact = checkpoints(n_checkpoints=2, iterations=2)
        assert exact.equals(checkpoints(n_checkpoints=2, iterations=2, rng=np.random.default_rng(0)))


class TestRefusals:
    @pytest.mark.parametrize("n_checkpoints", [0, -3])
    def test_no_checkpoints(self, n_checkpoints: int) -> None:
        with pytest.raises(ro.ProblemError, match=f"`n_checkpoints` must be at least 1, got {n_checkpoints}"):
            checkpoints(n_checkpoints=n_checkpoints)

    def test_fewer_iterations_than_checkpoints(self) -> None:
        with pytest.raises(ro.ProblemError, match="`iterations` must be at least `n_checkpoints`, 43, got 42"):
            checkpoints(iterations=42)

    @pytest.mark.parametrize("matches", [-2, 0, 1, 21])
    def test_matches_that_cannot_be_split_between_the_seats(self, matches: int) -> None:
        with pytest.raises(ro.ProblemError, match=f"`matches` must be an even number from 2.* got {matches}"):
            checkpoints(matches=matches, rng=np.random.default_rng(0))

    def test_matches_without_a_generator(self) -> None:
        with pytest.raises(ro.ProblemError, match="`matches` needs `rng`"):
            checkpoints(matches=20)

    def test_without_openspiel(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pyspiel", None)
        with pytest.raises(ro.BackendUnavailable, match=r"needs OpenSpiel: pip install 'rposst-opt\[openspiel\]'$"):
            checkpoints()
