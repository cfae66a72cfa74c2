"""Damaged tables are read or refused in one line, and never turned without a word."""

from pathlib import Path

import pytest
from mutate_tables import CASES, POLICIES, RESULTS, is_turned, outcome, run, sources

import rposst_opt as ro


def test_four_hundred_mutants_are_read_or_refused() -> None:
    counts = run(range(400))
    assert sum(counts.values()) == 400
    assert counts["read"] > 50 and counts["refused"] > 50


def test_the_tables_that_are_damaged_all_say_the_same(tmp_path: Path) -> None:
    for name, data in sources().items():
        (tmp_path / name).write_bytes(data)
        found = ro.read_results(tmp_path / name).results
        assert (found.loc[CASES, POLICIES].to_numpy() == RESULTS.to_numpy()).all(), name


def test_a_table_that_is_turned_without_a_word_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    turned = ro.ResultTable(RESULTS.T, None, ("read 5 test cases",))
    assert is_turned(RESULTS.T) and not is_turned(RESULTS)
    assert (list(RESULTS.index), list(RESULTS.columns)) == (CASES, POLICIES)
    monkeypatch.setattr(ro, "read_results", lambda path: turned, raising=False)
    with pytest.raises(AssertionError, match="turned without a word"):
        outcome(Path("any.csv"))
