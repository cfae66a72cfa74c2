"""Missing cells: what is kept is complete, and what is filled in is as good as it is said to be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rposst_opt as ro
from rposst_opt.files.incomplete import fill, largest_complete_part


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**31), st.floats(0, 1))
def test_the_part_that_is_kept_is_complete_and_no_smaller_than_rows_or_columns_alone(
    n_rows: int, n_columns: int, seed: int, share: float
) -> None:
    absent = np.random.default_rng(seed).random((n_rows, n_columns)) < share
    rows, columns = largest_complete_part(absent)
    assert not absent[np.ix_(rows, columns)].any()
    alone = max((~absent.any(axis=1)).sum() * n_columns, (~absent.any(axis=0)).sum() * n_rows)
    assert rows.sum() * columns.sum() >= alone


def test_a_sparse_row_and_a_sparse_column_are_dropped_together() -> None:
    absent = np.zeros((5, 6), dtype=bool)
    absent[2, :4] = absent[:4, 5] = True
    rows, columns = largest_complete_part(absent)
    assert rows.tolist() == [True, True, False, True, True]
    assert columns.tolist() == [True] * 5 + [False]


def of_two_factors(rng: np.random.Generator) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    table: np.ndarray[tuple[int, int], np.dtype[np.float64]] = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 25)) + 5.0
    return table


def test_a_table_of_few_factors_is_filled_in_and_the_error_is_told_rightly() -> None:
    rng = np.random.default_rng(0)
    truth = of_two_factors(rng) * 100.0
    table = np.where(rng.random(truth.shape) < 0.1, np.nan, truth)
    filled = fill(table)
    absent = np.isnan(table)
    np.testing.assert_array_equal(filled.table[~absent], truth[~absent])
    real_error = np.abs(filled.table - truth)[absent].mean()
    assert filled.error < 0.2 < 0.9 < filled.error_of_means
    assert 0.3 * real_error < filled.mean_error < 3 * real_error


def test_noise_is_filled_in_about_as_badly_as_by_means_and_that_is_told() -> None:
    rng = np.random.default_rng(1)
    table = np.where(rng.random((20, 20)) < 0.1, np.nan, rng.normal(size=(20, 20)))
    filled = fill(table)
    assert 0.9 < filled.error <= filled.error_of_means


def test_the_same_table_is_filled_alike_in_any_units() -> None:
    rng = np.random.default_rng(2)
    table = np.where(rng.random((30, 25)) < 0.1, np.nan, of_two_factors(rng))
    np.testing.assert_allclose(fill(table * 1e300).table / 1e300, fill(table).table, rtol=1e-9)


def test_constant_rows_are_no_trouble() -> None:
    table = np.array([[1.0, np.nan, 1.0, 1.0], [0.0, 0.0, 0.0, np.nan], [0.5, 0.25, 0.0, 1.0]])
    assert fill(table).table[:2].tolist() == [[1.0] * 4, [0.0] * 4]


def test_nothing_can_be_told_about_a_row_without_cells() -> None:
    with pytest.raises(ro.ProblemError, match="every row and every column must have a known cell"):
        fill(np.array([[np.nan, np.nan], [1.0, 2.0]]))
