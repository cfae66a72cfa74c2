"""Five tasks, done by following the guides alone: their commands are read out of the pages and run, in an empty folder.

Here they run within this process, and what they leave behind is looked at; ``make try-guides`` runs them as a reader
does, in an environment that is made as the pages say.
"""

import contextlib
import io
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from commands import Outcome, Run, strict_json
from guides import DOCS, WIDTH, blocks, faults, steps, steps_of

import rposst_opt as ro
from rposst_opt.backends.table import OWN_BACKENDS, offered_by_others

TRUTH = ro.sample_results(new_models=True).mean()
Follow = Callable[..., list[Outcome]]


@pytest.fixture
def follow(rposst: Run, monkeypatch: pytest.MonkeyPatch) -> Follow:
    """Do what a page says, or some of its sections, one command after the other."""
    monkeypatch.setenv("COLUMNS", WIDTH)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # to start further processes takes longer than what they would do

    def run(page: str, *sections: int) -> list[Outcome]:
        outcomes = []
        for step in steps(page, *sections):
            program, *arguments = shlex.split(step.command)
            assert program == "rposst"
            outcome = rposst(*arguments)
            assert faults(step, outcome) == [], step.command
            outcomes.append(outcome)
        return outcomes

    return run


def covered(rposst: Run, test: str) -> int:
    """How many of the new models have their full score in the interval that a test gives them."""
    rows = rposst("score", test, "new_models.csv", "--json").json["scores"]
    assert {row["policy"] for row in rows} == set(TRUTH.index)
    return sum(row["low"] <= TRUTH[row["policy"]] <= row["high"] for row in rows)


def test_score_a_new_model_with_error_bars(follow: Follow, rposst: Run, tmp_path: Path) -> None:
    follow("index.md")
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert covered(rposst, "test.json") >= 3
    text = " ".join((DOCS / "index.md").read_text().split())
    assert all(f"{score:.1f} for {policy}" in text for policy, score in TRUTH.items())


def test_subset_my_leaderboard(follow: Follow, rposst: Run, tmp_path: Path) -> None:
    follow("how-to/leaderboard.md")
    subset = pd.read_csv(tmp_path / "subset.csv", index_col=0)
    assert len(subset) == 3 and subset["weight"].sum() == pytest.approx(1.0)
    assert covered(rposst, "test.json") >= 3
    scores = (ro.sample_results(new_models=True).loc[subset.index].T * subset["weight"]).sum(axis=1)
    assert (scores - TRUTH).abs().mean() < 2.5  # the chosen tasks and weights are all that is needed


def test_choose_how_many_cases(follow: Follow, tmp_path: Path) -> None:
    *_, validated = follow("how-to/budget.md", 1, 2)
    [named] = re.findall(r"For new policies like these, take (\d) cases", validated.out)
    assert f"name the number: **{named}**" in (DOCS / "how-to/budget.md").read_text()
    assert (tmp_path / "trials").is_dir()


def test_a_budgeted_test_by_categories(follow: Follow, rposst: Run, tmp_path: Path) -> None:
    follow("how-to/budget.md", 1, 3, 4, 5)
    known = pd.read_csv(tmp_path / "cases.csv", index_col="case")
    lite = strict_json((tmp_path / "lite.json").read_text())
    chosen = known.loc[lite["cases"]]
    assert chosen["cost"].sum() <= 45 and set(chosen["group"]) == {"math", "code", "knowledge", "language"}
    assert min(lite["weights"]) >= 0.05 - 1e-9 and lite["status"] == "optimal"
    assert covered(rposst, "lite.json") >= 3
    forms = [strict_json((tmp_path / f"forms/form-{number}.json").read_text())["cases"] for number in (1, 2)]
    assert not set(forms[0]) & set(forms[1])


def test_compare_solvers_on_my_problem(follow: Follow, rposst: Run, tmp_path: Path) -> None:
    _, backends, agreed, compared, _, verified, _ = follow("how-to/solvers.md")
    assert "auto stands for exact" in backends.out
    assert "disagree" not in agreed.out + compared.out
    assert verified.out.startswith("The proof holds")
    assert (tmp_path / "model.mps").stat().st_size > 0


def test_evaluate_noisy_checkpoints(follow: Follow, tmp_path: Path) -> None:
    follow("how-to/checkpoints.md")
    first_rows = (tmp_path / "runs.csv").read_text().splitlines()[:3]
    assert "\n".join(first_rows) in (DOCS / "how-to/checkpoints.md").read_text()
    noisy, stronger = (strict_json((tmp_path / name).read_text()) for name in ("test.json", "stronger.json"))
    assert noisy["offset"] != 0 and sum(stronger["weights"]) == pytest.approx(1.0)


def test_add_a_backend(follow: Follow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = "how-to/add-a-backend.md"
    (module, use), [printed], [project] = blocks(page, "python"), blocks(page, "text"), blocks(page, "toml")
    assert len(module.strip().splitlines()) <= 45
    site = tmp_path / "site"
    (site / "hill_climb-1.0.dist-info").mkdir(parents=True)
    (site / "hill_climb.py").write_text(module)
    monkeypatch.syspath_prepend(str(site))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(use, page, "exec"), {})
    assert output.getvalue() == printed

    points = tomllib.loads(project)["project"]["entry-points"]["rposst_opt.backends"]
    lines = ["[rposst_opt.backends]", *(f"{name} = {value}" for name, value in points.items())]
    (site / "hill_climb-1.0.dist-info/entry_points.txt").write_text("\n".join(lines) + "\n")
    (site / "hill_climb-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: hill-climb\nVersion: 1.0\n")
    ro.BACKENDS.update(offered_by_others(OWN_BACKENDS))
    follow(page)
    sys.modules.pop("hill_climb", None)


def test_every_page_with_commands_is_followed_and_no_command_hides_in_another_block() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in [DOCS / "index.md", *DOCS.glob("how-to/*.md")]}
    with_commands = {page for page in pages if any(steps_of((DOCS / page).read_text()))}
    followed = set(re.findall(r'"((?:how-to/)?[\w-]+\.md)"', Path(__file__).read_text()))
    assert with_commands <= followed
    assert pages - with_commands == {"how-to/cluster.md"}  # its commands need a cluster, as it says


@pytest.mark.parametrize("page", ["leaderboard", "budget", "checkpoints", "solvers"])
def test_a_guide_says_what_must_be_installed(page: str) -> None:
    text = (DOCS / f"how-to/{page}.md").read_text()
    assert text.index("[installed](../index.md#1-install)") < text.index("```console")


def test_a_number_that_is_not_printed_is_told() -> None:
    page = "## 1. One\n```console\n$ rposst score a.json b.csv\nscore  1.25\n…\ntook … s\nerror 3\n```\n"
    [step] = steps_of(page)
    assert faults(step, Outcome(0, "score 1.25\ntook 2 s\nerror 2\n", "")) == ["error 3   [printed: ['error 2']]"]
    assert step.section == "1. One" and step.command == "rposst score a.json b.csv"
