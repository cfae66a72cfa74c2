"""``rposst verify``, as a user meets it: the proof, the test, and what other solvers say of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Run
from sample_files import write_random_table

import rposst_opt as ro
from rposst_opt.checking.claims import Claims, check_claims

ASKED = ("results.csv", "--size", "3")


@pytest.fixture(autouse=True)
def solved(rposst: Run, tmp_path: Path) -> dict[str, Any]:
    """A table, a test and a proof."""
    write_random_table(tmp_path / "results.csv", 9, 6)
    record: dict[str, Any] = rposst(
        "solve", *ASKED, "--certificate", "proof.json", "--out", "test.json", "--no-error-bars", "--json"
    ).json
    return record


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_test_bound_and_problem_are_checked_together(rposst: Run, solved: dict[str, Any]) -> None:
    outcome = rposst("verify", *ASKED, "proof.json", "--test", "test.json")
    assert outcome.code == 0
    assert f"test.json: its objective is {solved['objective']:.9g}, which is within " in outcome.out
    record = rposst("verify", *ASKED, "proof.json", "--test", "test.json", "--json").json
    assert (record["holds"], record["reason"]) == (True, None)
    assert record["objective"] == solved["objective"]
    assert record["gap"] == pytest.approx(record["objective"] - record["bound"])
    assert 0 <= record["gap"] < 1e-9
    assert "objective" not in rposst("verify", *ASKED, "proof.json", "--json").json


@pytest.mark.parametrize("options", [("--offset",), ("--no-rescale",), ("--offset", "--no-rescale"), ("--top", "3")])
def test_offsets_units_and_exceptions_are_no_trouble(rposst: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    table = (tmp_path / "results.csv").read_text().replace(",0.", ",-20.")
    (tmp_path / "results.csv").write_text(table)
    written = ("--certificate", "proof.json", "--out", "test.json", "--force")
    rposst("solve", *ASKED, *options, *written, "--no-error-bars")
    stated = [option for option in options if option not in ("--top", "3")]
    outcome = rposst("verify", *ASKED, *stated, "proof.json", "--test", "test.json")
    assert outcome.code == 0, outcome.out + outcome.err
    if "--top" in options:
        assert "3 named sets" in outcome.out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": 0.01}, "its file says that its objective is 0.01, and it is "),
        ({"lower_bound": 0.9}, "its file says that no test is below 0.9, and "),
        ({"weights": [0.2, 0.3, 0.5]}, "its file says that its objective is "),
        ({"problem_sha256": None, "cases": ["c0", "c1"], "positions": [0, 1], "weights": [0.5, 0.5]}, "asks for 3"),
    ],
    ids=["objective", "bound", "weights", "size"],
)
def test_a_test_that_is_not_what_its_file_says_is_refused(
    rposst: Run, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    rewrite(tmp_path / "test.json", tuning=None, **changes)
    outcome = rposst("verify", *ASKED, "proof.json", "--test", "test.json")
    assert outcome.code == 1
    assert "The proof holds" in outcome.out and "test.json: " in outcome.out and words in outcome.out
    outcome = rposst("verify", *ASKED, "proof.json", "--test", "test.json", "--json")
    record = json.loads(outcome.out)
    assert outcome.code == 1
    assert record["holds"] is False and words in record["reason"]


def test_another_problems_test_is_refused(rposst: Run, tmp_path: Path) -> None:
    rposst("solve", "results.csv", "--size", "2", "--out", "other.json", "--no-error-bars")
    outcome = rposst("verify", *ASKED, "proof.json", "--test", "other.json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "other.json: this is a test for another problem: give the table and the options " in outcome.err
    for changes, words in (
        ({"cases": ["c0", "c1", "who"]}, "unknown test case 'who'"),
        ({"objective": "good"}, '"objective" must be a number'),
        ({"lower_bound": True}, '"lower_bound" must be a number'),
    ):
        rposst("solve", *ASKED, "--out", "test.json", "--force", "--no-error-bars")
        rewrite(tmp_path / "test.json", problem_sha256=None, **changes)
        outcome = rposst("verify", *ASKED, "proof.json", "--test", "test.json")
        assert (outcome.code, outcome.out) == (2, "") and words in outcome.err


def test_a_test_that_is_better_than_what_is_called_proved_refutes_the_proof() -> None:
    """Should the checker ever be wrong, the judge says so."""
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1)
    claims = Claims(test=problem.test(cases=[0], weights=[1.0]))
    wrong = ro.Verification(True, None, 2, 2, bound=0.6)
    assert str(check_claims(problem, claims, wrong).reason).endswith("so that the proof is wrong")
    right = check_claims(problem, claims, replace(wrong, bound=0.4))
    assert (right.reason, right.objective) == (None, 0.5) and right.gap == pytest.approx(0.1)


def test_without_a_proof_a_test_is_scored_all_the_same(rposst: Run, tmp_path: Path, solved: dict[str, Any]) -> None:
    proof = json.loads((tmp_path / "proof.json").read_text())
    rewrite(tmp_path / "proof.json", bound=proof["bound"] + 0.01)
    outcome = rposst("verify", *ASKED, "proof.json", "--test", "test.json", "--json")
    record = json.loads(outcome.out)
    assert outcome.code == 1 and record["reason"].startswith("nothing rules out ")
    assert (record["bound"], record["gap"]) == (None, None)
    assert record["objective"] == solved["objective"]
    outcome = rposst("verify", *ASKED, "proof.json", "--test", "test.json")
    assert "how far that is from the best is not proved" in outcome.out


def test_exact_arithmetic_proves_the_last_digit(rposst: Run, tmp_path: Path) -> None:
    bound = json.loads((tmp_path / "proof.json").read_text())["bound"]
    outcome = rposst("verify", *ASKED, "proof.json", "--exact-arithmetic")
    assert outcome.code == 0
    assert f"The proof holds, to the last digit: no test has an objective below {bound!r}." in outcome.out
    record = rposst("verify", *ASKED, "proof.json", "--exact-arithmetic", "--json").json
    assert (record["exact_arithmetic"], record["bound"]) == (True, bound)
    rewrite(tmp_path / "proof.json", bound=bound + 5e-10)
    assert rposst("verify", *ASKED, "proof.json").code == 0
    assert rposst("verify", *ASKED, "proof.json", "--exact-arithmetic").code == 1


def test_exceptions_are_counted(rposst: Run) -> None:
    rposst("solve", *ASKED, "--top", "4", "--certificate", "proof.json", "--force")
    outcome = rposst("verify", *ASKED, "proof.json")
    assert (outcome.code, "but for 4 named sets none has one below " in outcome.out) == (0, True)
    outcome = rposst("verify", *ASKED, "proof.json", "--most-exceptions", "3")
    assert outcome.code == 1 and "not more than 3 are solved again" in outcome.out


def test_options_for_sampling_have_no_effect_and_that_is_said(rposst: Run) -> None:
    outcome = rposst("verify", *ASKED, "proof.json", "--samples", "10", "--seed", "3")
    assert outcome.code == 0
    assert outcome.told == "--samples and --seed have no effect: all sets of test cases are accounted for.\n"
    assert "--samples" not in rposst("verify", "--help").out


def test_an_exported_proof_is_written_unless_it_is_none(rposst: Run, tmp_path: Path) -> None:
    assert "wrote proof.opb\n" in rposst("verify", *ASKED, "proof.json", "--out", "proof.opb").err
    assert (tmp_path / "proof.opb").read_text().startswith("* #variable= 9 #constraint= ")
    proof = json.loads((tmp_path / "proof.json").read_text())
    proof["cuts"][0]["tail_weights"][0] *= 2
    rewrite(tmp_path / "proof.json", cuts=proof["cuts"])
    outcome = rposst("verify", *ASKED, "proof.json", "--export", "none.opb")  # its former name
    assert outcome.code == 1 and not (tmp_path / "none.opb").exists()
    assert "none.opb was not written: cut 0 is none: " in outcome.err
    for path, words in (
        ("results.csv", "read as input"),
        ("test.json", "read as input"),
        ("a/b.opb", "does not exist"),
    ):
        outcome = rposst("verify", *ASKED, "proof.json", "--test", "test.json", "--out", path)
        assert (outcome.code, outcome.out) == (2, "") and words in outcome.err
