"""Ranks and how two tests' rankings differ, against SciPy and against counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rposst_opt.ranking import kendall_tau, ranking_words, ranks, swapped_pairs

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
    assert ranking_words(names, full, full).endswith(
        "0 change their order (Kendall's τ 1.000). The best policy is the same."
    )
    told = ranking_words(names, full, small)
    assert told.startswith("Of 3 pairs of policies, 1 change their order")
    assert told.endswith("The full test's best policy, 'first', is number 2 by the small test.")
    assert ranking_words(names, np.ones(3), small).endswith("0 change their order. The best policy is the same.")
    assert ranking_words(["alone"], np.ones(1), np.ones(1)).startswith("Of 0 pairs")
