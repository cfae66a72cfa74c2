"""Ranks and how two tests' rankings differ, against SciPy and against counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rposst_opt.unseen.policy_ranking import kendall_tau, newly_tied_pairs, ranking_words, ranks, swapped_pairs

scores = st.lists(st.sampled_from([-2.0, 0.0, 0.1, 0.3, 1e6]) | st.integers(-9, 9).map(float), min_size=1, max_size=12)


@given(scores)
def test_ranks_are_scipys(values: list[float]) -> None:
    expected = stats.rankdata([-value for value in values], method="min")
    assert ranks(np.array(values)).tolist() == expected.tolist()


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_swapped_pairs_are_those_that_change_their_order(seed: int, count: int) -> None:
    full, small = np.random.default_rng(seed).integers(0, 6, (2, count)) / 10
    by_hand = sum((full[i] - full[j]) * (small[i] - small[j]) < 0 for i in range(count) for j in range(i))
    assert swapped_pairs(full, small) == by_hand


@given(st.integers(0, 2**32 - 1), st.integers(2, 20))
def test_tau_is_scipys(seed: int, count: int) -> None:
    full, small = np.random.default_rng(seed).integers(0, 6, (2, count)) / 10
    expected = float(stats.kendalltau(full, small).statistic)
    assert kendall_tau(full, small) == pytest.approx(expected, abs=1e-15, nan_ok=True)


def test_rounding_is_no_difference() -> None:
    values = np.array([0.1 + 0.2, 0.3, 0.5])
    assert values[0] != values[1]
    assert ranks(values).tolist() == [2, 2, 1]
    assert swapped_pairs(values, np.array([1.0, 2.0, 3.0])) == 0
    assert ranks(1e9 * values).tolist() == [2, 2, 1]


def test_tau_is_one_minus_one_and_unknown() -> None:
    rising = np.array([1.0, 2.0, 3.0])
    assert kendall_tau(rising, rising) == pytest.approx(1.0)
    assert kendall_tau(rising, -rising) == pytest.approx(-1.0)
    assert np.isnan(kendall_tau(rising, np.zeros(3)))
    assert np.isnan(kendall_tau(np.ones(1), np.ones(1)))


def test_words_name_the_best_policy_where_it_changes() -> None:
    names = ["first", "second", "third"]
    full, small = np.array([3.0, 2.0, 1.0]), np.array([2.0, 3.0, 1.0])
    assert ranking_words(names, full, full) == (
        "Pairs of policies: 3; in the opposite order: 0 (Kendall's τ 1.000). The best policy is the same."
    )
    told = ranking_words(names, full, small)
    assert told.startswith("Pairs of policies: 3; in the opposite order: 1 (")
    assert told.endswith("The full test's best policy, 'first', is number 2 by the small test.")
    assert ranking_words(names, np.ones(3), small).endswith("in the opposite order: 0. The best policy is the same.")
    assert ", and 1 can no longer be told apart" in ranking_words(names, full, np.array([2.0, 2.0, 1.0]))
    assert ranking_words(["alone"], np.ones(1), np.ones(1)) == "There is one policy, and nothing to rank."


@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_newly_tied_pairs_are_those_that_only_the_full_test_tells_apart(seed: int, count: int) -> None:
    full, small = np.random.default_rng(seed).integers(0, 6, (2, count)) / 10
    by_hand = sum(full[i] != full[j] and small[i] == small[j] for i in range(count) for j in range(i))
    assert newly_tied_pairs(full, small) == by_hand
