import random
import sys
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import rposst_opt as ro
from rposst_opt.experiments.domains import dilemma
from rposst_opt.experiments.domains.dilemma import axelrod_tournament, match_seed, round_robin

if TYPE_CHECKING:
    import pandas as pd

needs_axelrod = pytest.mark.skipif(find_spec("axelrod") is None, reason="the Axelrod library is not installed")

TURNS = 10


@pytest.fixture(scope="module")
def players() -> dict[str, Any]:
    """The whole population by name, made once; a match begins with players as good as new."""
    return {player.name: player for player in dilemma.population()}


@pytest.fixture(scope="module")
def dozen() -> "pd.DataFrame":
    return axelrod_tournament(n_strategies=12, turns=TURNS, seed=3)


def score(players: dict[str, Any], policy: str, test_case: str, *, turns: int = TURNS, seed: int = 0) -> float:
    """What one strategy scores per turn against another, in a table of only the two."""
    return float(round_robin([players[policy], players[test_case]], turns, 1, seed)[1, 0])


@needs_axelrod
class TestScores:
    @pytest.mark.parametrize(
        ("policy", "test_case", "total"),
        [
            ("Cooperator", "Defector", 0),
            ("Defector", "Cooperator", 5 * TURNS),
            ("Tit For Tat", "Defector", TURNS - 1),  # cheated once, then mutual defection
            ("Defector", "Tit For Tat", 5 + TURNS - 1),
            ("Tit For Tat", "Cooperator", 3 * TURNS),
            ("Suspicious Tit For Tat", "Tit For Tat", (5 + 0) * TURNS // 2),  # they take turns at defecting
            ("Alternator", "Cooperator", (3 + 5) * TURNS // 2),  # it cooperates first
            ("Cooperator", "Alternator", (3 + 0) * TURNS // 2),
            ("Alternator", "Defector", (0 + 1) * TURNS // 2),
            ("Defector", "Alternator", (5 + 1) * TURNS // 2),
            ("Tit For 2 Tats", "Defector", TURNS - 2),
            ("Grudger", "Alternator", 3 + 0 + (5 + 1) * (TURNS - 2) // 2),  # cheated in turn 2, and never forgives
            ("BackStabber", "Cooperator", 3 * (TURNS - 2) + 5 * 2),  # knows which turns are the last two
        ],
    )
    def test_by_hand(self, players: dict[str, Any], policy: str, test_case: str, total: int) -> None:
        assert score(players, policy, test_case) == pytest.approx(total / TURNS, abs=1e-12)

    @pytest.mark.parametrize("turns", [1, 7, 50])
    def test_the_length_of_a_match(self, players: dict[str, Any], turns: int) -> None:
        assert score(players, "Tit For Tat", "Defector", turns=turns) == pytest.approx((turns - 1) / turns)

    @pytest.mark.parametrize(
        ("name", "total"),
        [
            ("Cooperator", 3 * TURNS),
            ("Defector", TURNS),
            ("Alternator", (3 + 1) * TURNS // 2),
            ("Cycler DDC", 3 * 3 + 7),  # both cooperate in turns 3, 6 and 9
            ("BackStabber", 3 * (TURNS - 2) + 2),
        ],
    )
    def test_against_a_copy_of_itself(self, players: dict[str, Any], name: str, total: int) -> None:
        """A copy with a memory of its own: moves of the two are not counted together."""
        assert round_robin([players[name]], TURNS, 1, 0).tolist() == [[pytest.approx(total / TURNS)]]

    def test_against_a_copy_both_score_in_the_mean(self, players: dict[str, Any]) -> None:
        """A random strategy's two copies score differently; their entry lies between."""
        coin = players["Random"]
        own, opposing = dilemma.mean_scores(coin, coin, 25, 1, 0)
        assert own != opposing
        assert round_robin([coin], 25, 1, 0).tolist() == [[pytest.approx((own + opposing) / 2)]]

    def test_rows_are_opponents_and_columns_policies(self, players: dict[str, Any]) -> None:
        scores = round_robin([players[name] for name in ("Cooperator", "Defector", "Tit For Tat")], 4, 1, 0)
        np.testing.assert_allclose(scores, [[3.0, 5.0, 3.0], [0.0, 1.0, 3 / 4], [3.0, 8 / 4, 3.0]])

    def test_stochastic_pairs_score_their_mean_over_repetitions(self, players: dict[str, Any]) -> None:
        """Against Cooperator, a coin scores 3 or 5 a turn."""
        pair = players["Random"], players["Cooperator"]
        means = [dilemma.mean_scores(*pair, TURNS, repetitions, 0)[0] for repetitions in (1, 2, 3, 200)]
        singles = np.diff([0.0, means[0], 2 * means[1], 3 * means[2]]) * TURNS
        np.testing.assert_allclose(singles, np.rint(singles), atol=1e-9)
        assert len(set(singles.round().tolist())) > 1
        assert means[3] == pytest.approx(4.0, abs=5 / np.sqrt(200 * TURNS))

    def test_other_pairs_play_once(self, players: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
        played = []

        def note(player: str, opponent: str, repetition: int, seed: int) -> int:
            played.append((player, opponent, repetition))
            return match_seed(player, opponent, repetition, seed)

        monkeypatch.setattr(dilemma, "match_seed", note)
        round_robin([players["Defector"], players["Random"]], TURNS, 3, 0)
        assert played == [
            ("Defector", "Defector", 0),
            *(("Defector", "Random", repetition) for repetition in range(3)),
            *(("Random", "Random", repetition) for repetition in range(3)),
        ]


@needs_axelrod
class TestSeeds:
    def test_the_seed_decides_for_stochastic_strategies_only(self, players: dict[str, Any]) -> None:
        chosen = [players[name] for name in ("Random", "Tit For Tat", "Defector")]
        first, second = (round_robin(chosen, 40, 1, seed) for seed in (0, 1))
        differs = first != second
        assert differs[0].all()
        assert differs[:, 0].all()
        assert not differs[1:, 1:].any()

    def test_the_same_seed_gives_the_same_table(self, dozen: "pd.DataFrame") -> None:
        assert dozen.equals(axelrod_tournament(n_strategies=12, turns=TURNS, seed=3))

    def test_who_else_takes_part_does_not_matter(self, players: dict[str, Any]) -> None:
        names = ["Random", "GTFT", "First by Joss", "Naive Prober"]
        all_four = round_robin([players[name] for name in names], 30, 2, 5)
        np.testing.assert_array_equal(round_robin([players[name] for name in names[2:]], 30, 2, 5), all_four[2:, 2:])

    def test_each_match_has_a_seed_of_its_own(self) -> None:
        names = ["Random", "GTFT", "Tit For Tat"]
        seeds = {match_seed(a, b, again, seed) for a in names for b in names for again in (0, 1) for seed in (0, 1)}
        assert len(seeds) == 3 * 3 * 2 * 2

    def test_only_its_own_generators_are_used(self) -> None:
        np.random.seed(0)  # noqa: NPY002
        before = np.random.random()  # noqa: NPY002
        np.random.seed(0)  # noqa: NPY002
        state = random.getstate()
        axelrod_tournament(n_strategies=5, turns=TURNS)
        assert np.random.random() == before  # noqa: NPY002
        assert random.getstate() == state


@needs_axelrod
class TestPopulation:
    def test_it_is_large_and_every_name_is_its_own(self, players: dict[str, Any]) -> None:
        names = [player.name for player in dilemma.population()]
        assert 150 <= len(names) <= 230
        assert len(set(names)) == len(names)
        assert {"Tit For Tat", "Cooperator", "Defector", "Random", "Win-Stay Lose-Shift", "Grudger"} <= set(names)

    def test_nobody_cheats_or_is_a_team(self, players: dict[str, Any]) -> None:
        import axelrod

        for player in players.values():
            assert axelrod.Classifiers.obey_axelrod(player)
            assert not hasattr(player, "team")
            assert not axelrod.Classifiers["long_run_time"](player)

    def test_a_match_of_each_is_quiet(self, players: dict[str, Any], capfd: pytest.CaptureFixture[str]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for name in players:
                assert 0.0 <= score(players, name, "Random", turns=20) <= 5.0
        assert capfd.readouterr() == ("", "")

    def test_the_table_is_named_after_the_strategies(self, dozen: "pd.DataFrame", players: dict[str, Any]) -> None:
        assert dozen.shape == (12, 12)
        assert list(dozen.index) == list(dozen.columns)
        assert list(dozen.columns) == [name for name in players if name in dozen.columns]

    def test_the_table_is_the_round_robin_of_the_strategies_it_names(
        self, dozen: "pd.DataFrame", players: dict[str, Any]
    ) -> None:
        scores = round_robin([players[name] for name in dozen.columns], TURNS, 2, 3)
        np.testing.assert_array_equal(dozen.to_numpy(), scores)
        assert scores.min() >= 0.0
        assert scores.max() <= 5.0
        assert len(np.unique(scores)) > 10

    def test_fewer_are_some_of_the_more_with_the_same_results(self, dozen: "pd.DataFrame") -> None:
        few = axelrod_tournament(n_strategies=5, turns=TURNS, seed=3)
        assert set(few.columns) < set(dozen.columns)
        assert few.equals(dozen.loc[few.index, few.columns])

    def test_the_seed_draws_the_few(self, dozen: "pd.DataFrame") -> None:
        other = axelrod_tournament(n_strategies=12, turns=1, repetitions=1, seed=4)
        assert set(other.columns) != set(dozen.columns)

    def test_all_take_part_unless_told_otherwise(
        self, players: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_matches(players: list[Any], turns: int, repetitions: int, seed: int) -> np.ndarray:
            assert (turns, repetitions, seed) == (50, 2, 0)
            return np.zeros((len(players), len(players)))

        monkeypatch.setattr(dilemma, "round_robin", no_matches)
        assert list(axelrod_tournament().columns) == list(players)
        assert list(axelrod_tournament(n_strategies=len(players)).columns) == list(players)


class TestRefusals:
    @pytest.mark.parametrize("parameter", ["turns", "repetitions"])
    @pytest.mark.parametrize("value", [0, -1])
    def test_nothing_to_play(self, parameter: str, value: int) -> None:
        with pytest.raises(ro.ProblemError, match=f"`{parameter}` must be at least 1, got {value}"):
            axelrod_tournament(**{parameter: value})

    def test_a_negative_seed(self) -> None:
        with pytest.raises(ro.ProblemError, match="`seed` must not be negative, got -1"):
            axelrod_tournament(seed=-1)

    @needs_axelrod
    @pytest.mark.parametrize("n_strategies", [-1, 0, 1000])
    def test_too_few_or_too_many_strategies(self, n_strategies: int) -> None:
        with pytest.raises(ro.ProblemError, match=rf"`n_strategies` must be from 1 to \d+, got {n_strategies}"):
            axelrod_tournament(n_strategies=n_strategies)

    def test_without_the_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "axelrod", None)
        with pytest.raises(ro.BackendUnavailable, match=r"Axelrod library: pip install 'rposst-opt\[axelrod\]'$"):
            axelrod_tournament()
