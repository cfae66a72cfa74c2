"""Successive Rejects: its allocation by hand, its ties, and its errors against its bound."""

import numpy as np
import pytest

import rposst_opt as ro
from rposst_opt.solvers.bounds import log_bar, successive_rejects_error
from rposst_opt.solvers.successive_rejects import phase_lengths, successive_rejects


def test_the_allocation_for_four_arms_by_hand() -> None:
    """log-bar(4) = 1/2 + 1/2 + 1/3 + 1/4 = 19/12, so n_k = ceil(12/19 * 96 / (5 - k)): 15.16, 20.21, 30.32."""
    assert log_bar(4) == pytest.approx(19 / 12)
    assert phase_lengths(4, 100) == [16, 21, 31]


@pytest.mark.parametrize(("n_arms", "budget"), [(2, 2), (2, 50), (5, 100), (40, 41), (40, 1000)])
def test_no_more_samples_are_drawn_than_the_budget(n_arms: int, budget: int) -> None:
    drawn = np.zeros(n_arms, dtype=int)

    def sample(arms: np.ndarray, count: int) -> np.ndarray:
        drawn[arms] += count
        return np.tile(arms[:, None] / n_arms, (1, count))

    assert successive_rejects(sample, n_arms, budget) == 0 or budget <= n_arms + 1
    assert drawn.sum() <= budget
    assert sorted(drawn, reverse=True) == drawn.tolist() or budget <= n_arms + 1


def test_each_phase_rejects_the_worst_and_ties_go_to_the_lower_index() -> None:
    phases: list[list[int]] = []

    def sample(arms: np.ndarray, count: int) -> np.ndarray:
        phases.append(arms.tolist())
        return np.tile(np.array([0.3, 0.1, 0.1, 0.3])[arms][:, None], (1, count))

    assert successive_rejects(sample, 4, 100) == 1
    assert phases == [[0, 1, 2, 3], [0, 1, 2], [1, 2]]


def test_a_single_arm_needs_no_samples() -> None:
    def nobody_asks(arms: np.ndarray, count: int) -> np.ndarray:
        raise AssertionError

    assert successive_rejects(nobody_asks, 1, 1) == 0


def test_a_budget_below_one_sample_per_arm_is_refused() -> None:
    with pytest.raises(ro.ProblemError, match="budget"):
        phase_lengths(5, 4)


@pytest.mark.parametrize("budget", [400, 1500, 4000])
def test_the_best_arm_is_found_more_often_than_the_bound_promises(budget: int) -> None:
    means = np.array([0.30, 0.45, 0.5, 0.55, 0.6])
    rng = np.random.default_rng(0)
    runs = 400

    def flip(arms: np.ndarray, count: int) -> np.ndarray:
        return np.where(rng.random((len(arms), count)) < means[arms][:, None], 1.0, 0.0)

    hits = sum(successive_rejects(flip, 5, budget) == 0 for _ in range(runs))
    promised = 1 - successive_rejects_error(means.tolist(), budget)
    assert hits / runs >= promised - 3 * np.sqrt(0.25 / runs)
    assert hits / runs >= 0.8
    if budget == 4000:
        assert promised > 0.9


def test_the_bound_by_hand() -> None:
    """Two arms, gap 1/2: H2 = 2 / (1/4) = 8, log-bar(2) = 1, so exp(-(T - 2) / 8)."""
    assert successive_rejects_error([0.0, 0.5], 42) == pytest.approx(np.exp(-5))
    assert successive_rejects_error([0.3, 0.3, 0.3], 10) == 0.0
    assert successive_rejects_error([0.0, 0.001, 0.001], 4) == 1.0
