"""Files that version 0.1.0 has written are read, as the upgrade notes promise."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Run

import rposst_opt as ro

WRITTEN = Path(__file__).parent / "written_by_0.1.0"
PROBLEM = ("--size", "2", "--betas", "0,2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in WRITTEN.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def test_a_test_scores_as_it_did(folder: Path, rposst: Run) -> None:
    results = ro.read_results(folder / "results.csv").results
    test = ro.EfficientTest.load(folder / "test.json")
    record = json.loads((folder / "test.json").read_text())
    by_hand = np.array(record["weights"]) @ results.loc[record["cases"]].to_numpy()
    np.testing.assert_allclose(test.score(results), by_hand)
    scored = rposst("score", "test.json", "results.csv", "--json")
    assert scored.code == 0
    assert "interval" not in rposst("score", "test.json", "results.csv").out
    assert json.loads(rposst("write-subset", "test.json", "--for", "json").out)


def test_a_proof_is_checked_and_its_test_held_against_it(folder: Path, rposst: Run) -> None:
    assert rposst("verify", "results.csv", "proof.json", *PROBLEM, "--test", "test.json").code == 0
    of_larger_tests = rposst("verify", "results.csv", "proof.json", "--size", "3", "--betas", "0,2")
    assert of_larger_tests.code == 1 and "does not say which problem" in of_larger_tests.err


def test_a_solution_has_the_keys_that_it_had(folder: Path, rposst: Run) -> None:
    before = json.loads((folder / "test.json").read_text())
    assert rposst("solve", "results.csv", *PROBLEM, "--out", "new.json").code == 0
    now = json.loads((folder / "new.json").read_text())
    assert before.keys() <= now.keys()
    assert now["cases"] == before["cases"] and now["objective"] == pytest.approx(before["objective"])
