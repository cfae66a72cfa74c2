import math

import numpy as np
import pytest

import rposst_opt as ro
from rposst_opt.experiments.domains import arrows
from rposst_opt.experiments.domains.arrows import leader_payoffs, racing_arrows

LEADER_SPEED, FOLLOWER_SPEED = 0.8, 1.0


def payoff(leader: float, follower: float) -> float:
    """What a single leader gets against a single follower."""
    return float(leader_payoffs(np.array([leader]), np.array([follower]))[0, 0])


def payoff_by_the_rules(leader: float, follower: float) -> float:
    """The rules of the paper's appendix, told one after the other."""
    if abs(leader - follower) < math.pi / 10:
        return 1.0
    leader_distance, follower_distance = LEADER_SPEED * math.sin(leader), FOLLOWER_SPEED * math.sin(follower)
    if leader_distance == follower_distance:
        return 0.5
    return 1.0 if leader_distance > follower_distance else 0.0


def angles_as_the_paper_draws_them(n: int, seed: int) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    low, high = 0.05 * math.pi, 0.95 * math.pi
    evenly_spaced = [low + (high - low) * place / (n - 1) for place in range(n)]
    leader_shifts = rng.uniform(-0.05 * math.pi, 0.05 * math.pi, n)
    follower_shifts = rng.uniform(-0.05 * math.pi, 0.05 * math.pi, n)
    leaders = [angle + shift for angle, shift in zip(evenly_spaced, leader_shifts.tolist(), strict=True)]
    followers = [angle + shift for angle, shift in zip(evenly_spaced, follower_shifts.tolist(), strict=True)]
    return leaders, followers


class TestPayoffs:
    def test_equal_angles_are_blocked_although_the_follower_is_faster(self) -> None:
        assert payoff(leader=math.pi / 2, follower=math.pi / 2) == 1.0

    def test_a_difference_of_exactly_a_tenth_of_pi_is_not_blocked(self) -> None:
        tenth = math.pi / 10
        for leader, follower in ((0.0, tenth), (10 * tenth, 9 * tenth)):
            assert abs(leader - follower) == tenth
            assert payoff(leader, follower) == 0.0

    def test_a_difference_just_below_a_tenth_of_pi_is_blocked(self) -> None:
        assert payoff(leader=0.0, follower=math.nextafter(math.pi / 10, 0.0)) == 1.0

    def test_a_difference_just_above_a_tenth_of_pi_is_not_blocked(self) -> None:
        assert payoff(leader=0.0, follower=math.nextafter(math.pi / 10, 1.0)) == 0.0

    def test_blocking_works_from_both_sides(self) -> None:
        assert payoff(leader=1.0, follower=1.3) == 1.0
        assert payoff(leader=1.3, follower=1.0) == 1.0
        assert payoff(leader=1.0, follower=1.32) == 0.0
        assert payoff(leader=2.2, follower=1.85) == 0.0

    def test_the_leader_wins_who_gets_farther(self) -> None:
        assert payoff(leader=math.pi / 2, follower=0.0) == 1.0
        assert payoff(leader=math.pi / 2, follower=math.pi / 6) == 1.0
        assert payoff(leader=math.pi / 2, follower=0.9) == 1.0  # sin(0.9) = 0.783 < 0.8

    def test_the_follower_wins_who_gets_farther(self) -> None:
        assert payoff(leader=0.0, follower=math.pi / 2) == 0.0
        assert payoff(leader=math.pi / 2, follower=0.95) == 0.0  # sin(0.95) = 0.813 > 0.8
        assert payoff(leader=math.pi / 4, follower=3 * math.pi / 4) == 0.0  # as high, were it not for the speeds

    def test_equal_distances_share(self) -> None:
        leader = math.pi / 2
        near = math.asin(LEADER_SPEED)
        angles = near + np.spacing(near) * np.arange(-4, 5)
        followers = angles[np.sin(angles) == LEADER_SPEED * np.sin(leader)]
        assert len(followers)
        assert leader_payoffs(np.array([leader]), followers).tolist() == [[0.5]] * len(followers)

    def test_rows_are_followers_and_columns_are_leaders(self) -> None:
        payoffs = leader_payoffs(np.array([0.0, math.pi / 2, 1.5]), np.array([math.pi / 2, 0.1]))
        assert payoffs.tolist() == [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]

    def test_the_whole_table_follows_the_rules(self) -> None:
        rng = np.random.default_rng(4)
        leaders, followers = rng.uniform(0, math.pi, 30), rng.uniform(0, math.pi, 20)
        expected = [[payoff_by_the_rules(leader, follower) for leader in leaders] for follower in followers]
        assert leader_payoffs(leaders, followers).tolist() == expected


class TestRacingArrows:
    @pytest.mark.parametrize(("n", "seed"), [(2, 0), (7, 1), (50, 2), (50, 2023)])
    def test_the_table_is_the_one_that_the_papers_angles_make(self, n: int, seed: int) -> None:
        leaders, followers = angles_as_the_paper_draws_them(n, seed)
        table = racing_arrows(n, np.random.default_rng(seed))
        expected = [[payoff_by_the_rules(leader, follower) for leader in leaders] for follower in followers]
        assert table.to_numpy().tolist() == expected

    def test_angles_lie_in_the_half_circle(self, monkeypatch: pytest.MonkeyPatch) -> None:
        drawn: list[np.ndarray] = []

        def note(leaders: np.ndarray, followers: np.ndarray) -> np.ndarray:
            drawn.extend([leaders, followers])
            return leader_payoffs(leaders, followers)

        monkeypatch.setattr(arrows, "leader_payoffs", note)
        for seed in range(50):
            racing_arrows(20, np.random.default_rng(seed))
        angles = np.concatenate(drawn)
        assert angles.min() >= 0.0
        assert angles.max() <= math.pi
        assert angles.min() < 0.01
        assert angles.max() > math.pi - 0.01

    def test_leaders_and_followers_are_shifted_independently(self) -> None:
        leaders, followers = angles_as_the_paper_draws_them(50, 0)
        assert leaders != followers
        table = racing_arrows(50, np.random.default_rng(0)).to_numpy()
        assert not np.array_equal(table, leader_payoffs(np.array(leaders), np.array(leaders)))

    def test_the_two_views_are_complementary_transposes(self) -> None:
        followers_test = racing_arrows(30, np.random.default_rng(5), test_cases="followers")
        leaders_test = racing_arrows(30, np.random.default_rng(5), test_cases="leaders")
        np.testing.assert_array_equal(leaders_test.to_numpy(), 1.0 - followers_test.to_numpy().T)
        assert list(leaders_test.index) == list(followers_test.columns)
        assert list(leaders_test.columns) == list(followers_test.index)

    def test_followers_are_the_test_cases_unless_told_otherwise(self) -> None:
        table = racing_arrows(3, np.random.default_rng(5))
        assert table.equals(racing_arrows(3, np.random.default_rng(5), test_cases="followers"))
        assert all(name.startswith("follower") for name in table.index)
        assert all(name.startswith("leader") for name in table.columns)

    def test_names_differ_and_sort_in_order_for_as_many_as_the_paper_takes(self) -> None:
        table = racing_arrows(500, np.random.default_rng(5))
        assert table.shape == (500, 500)
        assert sorted(set(table.index)) == list(table.index)
        assert sorted(set(table.columns)) == list(table.columns)

    def test_results_are_losses_wins_or_shares(self) -> None:
        results = racing_arrows(50, np.random.default_rng(5)).to_numpy()
        assert set(np.unique(results)) <= {0.0, 0.5, 1.0}
        assert {0.0, 1.0} <= set(np.unique(results))

    def test_the_same_seed_gives_the_same_table_and_another_seed_another(self) -> None:
        table = racing_arrows(50, np.random.default_rng(7))
        assert table.equals(racing_arrows(50, np.random.default_rng(7)))
        assert not table.equals(racing_arrows(50, np.random.default_rng(8)))

    def test_only_the_given_generator_is_used(self) -> None:
        np.random.seed(0)  # noqa: NPY002
        before = np.random.random()  # noqa: NPY002
        np.random.seed(0)  # noqa: NPY002
        racing_arrows(5, np.random.default_rng(0))
        assert np.random.random() == before  # noqa: NPY002

    def test_one_arrow_of_each_kind_is_enough(self) -> None:
        table = racing_arrows(1, np.random.default_rng(0))
        assert table.to_numpy().tolist() == [[1.0]]  # both within 0.05 pi of the same place, hence blocked

    @pytest.mark.parametrize("n", [0, -1])
    def test_a_number_below_one_is_refused(self, n: int) -> None:
        with pytest.raises(ro.ProblemError, match=f"`n` must be at least 1, got {n}"):
            racing_arrows(n, np.random.default_rng(0))

    def test_unknown_test_cases_are_refused(self) -> None:
        with pytest.raises(ro.ProblemError, match="'followers' or 'leaders', got 'judges'"):
            racing_arrows(3, np.random.default_rng(0), test_cases="judges")  # type: ignore[arg-type]
