"""The options for reading tables, on the command line: what is read is said, and every command takes them."""

import gzip
import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Run

import rposst_opt as ro

MODELS_BY_ITEMS = "model,item-0,item-1,item-2\ndqn,0,1,0.5\nppo,1,0,0.5\na2c,0.25,0.75,0.5\n"
LONG = "game,agent,run,return\n" + "".join(
    f"{game},{agent},{run},{number}\n"
    for (game, agent, run), number in zip(
        [(game, agent, run) for game in "xyz" for agent in "pqr" for run in (0, 1)],
        np.random.default_rng(0).random(18).round(3).tolist(),
        strict=True,
    )
)
COMMANDS = ("solve", "agree", "backends", "report", "explore", "validate", "verify", "export", "score")
OPTIONS = ("cases-are", "long", "drop-columns", "missing", "names", "header", "percent", "decimal", "format")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.csv").write_text(MODELS_BY_ITEMS)
    (tmp_path / "long.csv").write_text(LONG)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_reads_results_has_the_options(rposst: Run, command: str) -> None:
    text = re.sub(r"\x1b\[[0-9;]*m", "", rposst(command, "--help").out)
    for option in OPTIONS:
        assert re.search(rf"(?<![\w-])--(\[no-\])?{option}(?![\w-])", text), option


def test_models_as_rows_are_no_test_cases_and_the_reading_is_said(rposst: Run, folder: Path) -> None:
    outcome = rposst("solve", "models.csv", "--size", "1", "--json")
    assert outcome.json["cases"] == ["item-2"]
    assert outcome.err.splitlines()[0] == (
        "read 3 test cases (columns) × 3 policies (rows); --cases-are rows if that is wrong"
    )
    turned = rposst("solve", "models.csv", "--size", "1", "--json", "--cases-are", "rows")
    assert turned.json["cases"][0] in ("dqn", "ppo", "a2c")


def test_standard_input_may_be_compressed(rposst: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(MODELS_BY_ITEMS.encode()))))
    assert rposst("solve", "-", "--size", "1", "--json").json["cases"] == ["item-2"]


def test_repetitions_are_the_noise(rposst: Run, folder: Path) -> None:
    outcome = rposst("solve", "long.csv", "--size", "2", "--noise", "repetitions", "--no-rescale", "--json")
    read = ro.read_results("long.csv")
    assert read.standard_errors is not None
    problem = ro.Problem(
        results=read.results, size=2, noise=read.standard_errors.to_numpy(), case_names=list(read.results.index)
    )
    assert outcome.json["objective"] == pytest.approx(ro.solve(problem).objective, abs=1e-9)
    assert "averaged 18 values, 2 of each test case and policy" in outcome.err


def test_noise_of_repetitions_needs_repetitions(rposst: Run, folder: Path) -> None:
    outcome = rposst("solve", "models.csv", "--size", "1", "--noise", "repetitions")
    assert outcome.code == 2 and "--noise repetitions needs a long table" in outcome.err
    (folder / "few.csv").write_text("game,agent,score\nx,p,1\nx,p,2\nx,q,1\ny,p,1\ny,q,2\n")
    outcome = rposst("solve", "few.csv", "--size", "1", "--noise", "repetitions")
    assert outcome.code == 2 and "'y' has none (1 of 2 have none)" in outcome.err


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a;b;v\nx;p;0,5\nx;q;1\ny;p;0\ny;q;0,25\n", ["--long", "a,b,v", "--decimal", ","]),
        ("case,kind,p,q\nx,k,50%,100%\ny,k,0%,25%\n", ["--drop-columns", "kind", "--percent"]),
        ("case,p,q\nx,0.5,1\ny,0,0.25\nz,-,1\n", ["--missing", "drop-cases"]),
        ('"k,l",b,v\nx,p,0.5\nx,q,1\ny,p,0\ny,q,0.25\n', ["--long", '"k,l",b,v']),
        ("0.5,1\n0,0.25\n", ["--no-header", "--no-names"]),
    ],
)
def test_options_make_a_table_readable(rposst: Run, folder: Path, text: str, options: list[str]) -> None:
    (folder / "results.csv").write_text(text)
    refused = rposst("backends", "results.csv", "--size", "1", "--json")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert options[0].split(",")[0] in refused.err
    assert rposst("backends", "results.csv", "--size", "1", "--json", *options).code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--long", "a,b"], "--long must name three columns"),
        (["--long", '"a,b,c'], "--long must be names"),
        (["--decimal", "x"], "--decimal must be a point or a comma"),
        (["--format", "nonsense"], "unknown format 'nonsense'"),
        (["--missing", "nonsense"], "nonsense"),
        (["--long", "game,agent,return", "--cases-are", "rows"], "exclude each other"),
    ],
)
def test_nonsense_is_one_line(rposst: Run, folder: Path, options: list[str], words: str) -> None:
    outcome = rposst("solve", "long.csv", "--size", "1", *options)
    assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (2, "", 1)
    assert words in outcome.err


class TestScore:
    @pytest.fixture
    def test_of_items(self, rposst: Run, folder: Path) -> Path:
        assert rposst("solve", "models.csv", "--size", "1", "--out", "test.json").code == 0
        return folder

    @pytest.mark.parametrize(
        "text",
        [
            "x,item-1,item-2\nnew,3,4\nnewer,5,6\n",
            "x,new,newer\nitem-2,4,6\nitem-1,-,words\n",
            "one,two,v\nnew,item-2,4\nnewer,item-2,6\nnewer,item-1,words\nnew,item-1,1\n",
        ],
        ids=["policies as rows", "policies as columns", "long"],
    )
    def test_the_names_of_its_cases_tell_the_shape(self, rposst: Run, test_of_items: Path, text: str) -> None:
        (test_of_items / "new.csv").write_text(text)
        scores = rposst("score", "test.json", "new.csv", "--json").json["scores"]
        assert {row["policy"]: row["score"] for row in scores} == {"new": 4.0, "newer": 6.0}

    def test_where_no_row_matches_one_line_names_both_sides(self, rposst: Run, test_of_items: Path) -> None:
        (test_of_items / "new.csv").write_text("case,p,q\na,1,2\nb,3,4\n")
        outcome = rposst("score", "test.json", "new.csv")
        assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (2, "", 1)
        for word in ("'item-2'", "'a'", "'b'", "'p'"):
            assert word in outcome.err
