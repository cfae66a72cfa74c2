"""A validation survives its folder, and folders that hold none are told in one line."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_files import AWKWARD_NAMES, complaint

from rposst_opt.unseen.splits import Kind
from rposst_opt.unseen.validation import Validation, validate
from rposst_opt.unseen.validation_files import check_validation_is_of, read_validation, write_validation


@cache
def trials() -> Validation:
    results = pd.DataFrame(np.random.default_rng(0).normal(0, 1e-5, (6, len(AWKWARD_NAMES))), columns=AWKWARD_NAMES)
    groups = ["a", "b"] * (len(AWKWARD_NAMES) // 2) + ["c"]
    selections, estimators = ["stratified", "random"], ["weights", "ridge"]
    return validate(results, [1, 3], selections=selections, estimators=estimators, groups=groups, folds=4, replicas=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_validation(tmp_path / "new" / "found", trials())
    return tmp_path / "new" / "found"


def test_a_validation_survives_its_folder_to_the_last_bit(folder: Path) -> None:
    written, read = trials(), read_validation(folder)
    assert {kind.value for kind in Kind} == set(read.summary["kind"])
    assert set(read.errors["policy"]) == set(AWKWARD_NAMES)
    for name in ("errors", "tuned", "by_replica", "summary"):
        pd.testing.assert_frame_equal(getattr(read, name), getattr(written, name), check_exact=True)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    told = complaint(lambda: read_validation(tmp_path / "nowhere"))
    assert told == f"{tmp_path / 'nowhere'}: there is no such folder: `rposst validate --out` writes one."
    (tmp_path / "file").write_text("")
    assert "there is no such folder" in complaint(lambda: read_validation(tmp_path / "file"))


@pytest.mark.parametrize("name", ["errors.csv", "tuned.csv"])
def test_a_table_that_is_not_there_is_told(folder: Path, name: str) -> None:
    (folder / name).unlink()
    told = complaint(lambda: read_validation(folder))
    assert told.startswith(f"{folder / name}: there is no such file: run `rposst validate --out`")


def change(path: Path, changed: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    changed(pd.read_csv(path, dtype=str, keep_default_na=False)).to_csv(path, index=False)


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        (
            "errors.csv",
            lambda t: t.drop(columns="policy"),
            "the column 'policy' is missing: there must be kind, replica",
        ),
        ("tuned.csv", lambda t: t.drop(columns="tuned_worst"), "the column 'tuned_worst' is missing"),
        ("errors.csv", lambda t: t.iloc[:0], "there is nothing below the header"),
        ("errors.csv", lambda t: t.assign(size="two"), "'size' must be a whole number, got 'two' in row 1 below"),
        ("errors.csv", lambda t: t.assign(replica="-1"), "'replica' must be a whole number, got '-1'"),
        ("errors.csv", lambda t: t.assign(full="nan"), "'full' must be a number, got 'nan'"),
        ("tuned.csv", lambda t: t.assign(tuned_mean=""), "'tuned_mean' must be a number, got ''"),
        ("errors.csv", lambda t: t.assign(kind="best"), "unknown kind 'best'. Known: alike, strongest, groups."),
        ("errors.csv", lambda t: t.assign(selection="luck"), "unknown selection 'luck'"),
        ("errors.csv", lambda t: t.assign(estimator="guess"), "unknown estimator 'guess'"),
        ("tuned.csv", lambda t: t[t["size"] == "1"], "errors.csv and tuned.csv are not of the same trials"),
    ],
)
def test_what_is_no_validation_is_told(
    folder: Path, name: str, changed: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    change(folder / name, changed)
    told = complaint(lambda: read_validation(folder))
    assert told.startswith(str(folder)) and message in told


def test_columns_may_stand_in_any_order_and_have_others_beside_them(folder: Path) -> None:
    before = read_validation(folder)
    change(folder / "errors.csv", lambda table: table[sorted(table.columns)].assign(note="ours"))
    pd.testing.assert_frame_equal(read_validation(folder).errors, before.errors, check_exact=True)


def test_trials_of_another_table_are_refused_and_older_ones_cannot_be_checked(tmp_path: Path) -> None:
    write_validation(tmp_path, trials(), "a" * 64)
    assert check_validation_is_of(tmp_path, "a" * 64)
    told = complaint(lambda: check_validation_is_of(tmp_path, "b" * 64))
    assert told.startswith(f"{tmp_path}: these trials are of another table: ")
    for damaged, words in (('{"format": "x"}', "not a validation's source"), ("{", "not JSON")):
        (tmp_path / "source.json").write_text(damaged)
        assert words in complaint(lambda: check_validation_is_of(tmp_path, "a" * 64))
    (tmp_path / "source.json").write_text('{"format": "rposst-validation-source/1", "table_sha256": "x"}')
    assert "64 hexadecimal digits" in complaint(lambda: check_validation_is_of(tmp_path, "a" * 64))
    (tmp_path / "source.json").unlink()
    assert not check_validation_is_of(tmp_path, "a" * 64)
    write_validation(tmp_path, trials())
    assert not check_validation_is_of(tmp_path, "a" * 64)
