"""What a report says of policies that nobody has seen is what the validation found."""

import html
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run
from sample_files import complaint

import rposst_opt as ro
from rposst_opt.reports.pages.report import Report, gather
from rposst_opt.reports.pages.report_page import report_page
from rposst_opt.reports.pages.sections import UNSEEN
from rposst_opt.reports.pages.unseen_policies import BEST_SHOWN, chart, own_selection, shown
from rposst_opt.unseen.procedures import Purpose
from rposst_opt.unseen.recommendation import recommend
from rposst_opt.unseen.splits import Kind
from rposst_opt.unseen.validation import Validation, validate
from rposst_opt.unseen.validation_files import write_validation

PURPOSE = Purpose(betas=(0, 2))


def results() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    skill, difficulty = rng.normal(size=8), rng.normal(size=(10, 1))
    values = 5 + 20 / (1 + np.exp(difficulty - skill + rng.normal(size=(10, 8)) / 2))
    return pd.DataFrame(values, [f"c{case}" for case in range(10)], [f"p{policy}" for policy in range(8)])


@cache
def trials() -> Validation:
    selections = ("rposst", "stratified", "random")
    return validate(results(), [2, 4], purpose=PURPOSE, selections=selections, groups=["a", "b"] * 4)


def stated(size: int, purpose: Purpose = PURPOSE, **changes: Any) -> tuple[ro.Problem, ro.Scale]:
    problem, scale = purpose.problem(results().to_numpy(), size)
    return replace(problem, policy_names=tuple(results().columns), **changes), scale


@cache
def gathered(size: int, backend: str = "exact", *, validated: bool = True) -> Report:
    problem, scale = stated(size)
    validation = trials() if validated else None
    report = gather(problem, scale=scale, backend=backend, backends=[], largest_size=size, validation=validation)
    assert report is not None
    return report


def section_of(report: Report) -> str:
    """The words of the section, as a browser shows them."""
    page = report_page(report, sections=[UNSEEN])
    body = page.split('<section id="unseen">')[1].split("</section>")[0]
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", body)).split())


@pytest.mark.parametrize("kind", list(Kind))
def test_the_numbers_are_the_summarys(kind: Kind) -> None:
    place = list(Kind).index(kind)
    drawn, part = chart(gathered(4))[place], shown(gathered(4))["parts"][place]
    summary = trials().summary
    ways = summary[(summary["kind"] == kind.value) & (summary["size"] == 4)].sort_values("mean_error", kind="stable")
    best = ways.head(BEST_SHOWN)
    assert drawn["ways"][:BEST_SHOWN] == best[["selection", "estimator"]].to_numpy().tolist()
    assert drawn["mean"][:BEST_SHOWN] == best["mean_error"].tolist()
    for name in ("low", "high"):
        assert drawn[name][:BEST_SHOWN] == best[name].tolist()
    assert drawn["tuned"][:BEST_SHOWN] == best["tuned_mean"].tolist()
    columns = ["mean_error", "p90_error", "worst_error", "tuned_mean", "kendall_tau", "picks_best"]
    for row, (_, way) in zip(part["rows"], best.iterrows(), strict=False):
        assert row["way"] == f"{way['selection']}, {way['estimator']}"
        assert [float(number) for number in row["numbers"]] == pytest.approx(
            way[columns].astype(float).tolist(), rel=5e-3, abs=5e-3
        )
    assert part["chart"] == drawn["chart"] == f"chart-unseen-{kind.value}"


@pytest.mark.parametrize("kind", list(Kind))
def test_the_reports_own_way_is_marked_and_never_left_out(kind: Kind) -> None:
    place = list(Kind).index(kind)
    summary = trials().summary
    ways = summary[(summary["kind"] == kind.value) & (summary["size"] == 4)].sort_values("mean_error", kind="stable")
    names = [*zip(ways["selection"], ways["estimator"], strict=True)]
    drawn, rows = chart(gathered(4))[place], shown(gathered(4))["parts"][place]["rows"]
    assert drawn["ways"][drawn["own"]] == ["rposst", "weights"]
    [own] = [row for row in rows if row["is_own"]]
    assert own["way"] == "rposst, weights" and own["rank"] == 1 + names.index(("rposst", "weights"))
    assert len(rows) == len(drawn["mean"]) == BEST_SHOWN + (own["rank"] > BEST_SHOWN)


def test_a_way_that_is_far_behind_stands_below_the_best() -> None:
    errors = trials().errors
    is_own = (errors["selection"] == "rposst") & (errors["estimator"] == "weights")
    worse = errors.assign(estimate=errors["estimate"] + 1e3 * is_own)
    report = replace(gathered(4), validation=Validation(worse, trials().tuned))
    for part, drawn in zip(shown(report)["parts"], chart(report), strict=True):
        assert [row["rank"] for row in part["rows"]] == [*range(1, BEST_SHOWN + 1), 15]
        assert drawn["own"] == BEST_SHOWN and part["rows"][-1]["is_own"]


@pytest.mark.parametrize(
    ("backend", "selection"),
    [
        ("exact", "rposst"),
        ("regret-matching", "rposst"),
        ("local-search", "rposst"),
        ("kmeans-anchors", "kmeans"),
        ("stratified-random", "stratified"),
        ("greedy-ridge", "greedy-ridge"),
        ("miniaverage-uniform", None),
    ],
)
def test_how_the_choice_of_a_backend_is_called_in_trials(backend: str, selection: str | None) -> None:
    assert own_selection(backend) == selection


def test_a_way_that_was_not_tried_is_said_so() -> None:
    told = section_of(gathered(4, "miniaverage-uniform"))
    assert "The way in which this report's test was made is not among them." in told
    assert "not among them" not in section_of(gathered(4))
    assert [drawn["own"] for drawn in chart(gathered(4, "miniaverage-uniform"))] == [None] * 3


def test_the_section_has_every_kinds_recommendation() -> None:
    told = section_of(gathered(4))
    for kind in Kind:
        assert recommend(trials(), kind).sentence in told
    assert "Tests of 4 cases were made without some of the policies" in told


@pytest.mark.parametrize(("size", "nearest"), [(1, 2), (3, 2), (6, 4)])
def test_a_size_that_was_not_tried_is_said_and_the_nearest_is_shown(size: int, nearest: int) -> None:
    report = gathered(size)
    cases = "1 case" if size == 1 else f"{size} cases"
    told = section_of(report)
    assert f"This test has {cases}, and tests of 2 and 4 were tried: the nearest is shown." in told
    assert f"Tests of {nearest} cases were made" in told
    assert chart(report)[0]["mean"] == chart(gathered(nearest))[0]["mean"]


def test_without_a_validation_it_says_what_to_run() -> None:
    report = gathered(2, validated=False)
    told = section_of(report)
    assert "Run rposst validate RESULTS.csv --size 2 --out FOLDER , and then rposst report" in told
    assert "--validation FOLDER" in told
    assert chart(report) == []


def test_the_first_tiles_have_what_was_validated_where_nothing_else_is_known() -> None:
    def first_tiles(report: Report) -> list[tuple[str, ...]]:
        found = re.findall(r'"tile"><span>(.*?)</span><strong>(.*?)</strong><span>(.*?)</span>', report_page(report))
        return [tuple(html.unescape(part) for part in tile) for tile in found[:2]]

    summary = trials().summary
    [way] = summary[
        (summary["kind"] == "alike")
        & (summary["size"] == 4)
        & (summary["selection"] == "rposst")
        & (summary["estimator"] == "weights")
    ].to_dict("records")
    error, ranking = first_tiles(gathered(4))
    assert error == (
        "Expected error on new policies",
        f"{way['mean_error']:.4g}",
        "on average, in the file's units, over policies that were held out in the trials given; "
        f"{way['worst_error']:.4g} at worst",
    )
    assert ranking[1] == f"τ {way['kendall_tau']:.2f}" and "held out in the trials given" in ranking[2]
    for report in (gathered(3), gathered(4, "miniaverage-uniform")):  # a size and a way that were not tried
        assert [tile[1] for tile in first_tiles(report)] == ["unknown", "unknown"]


# Trials of something else


def test_trials_of_another_table_are_refused_before_anything_is_run() -> None:
    problem, scale = stated(2)
    told: list[str] = []

    def refused(validation: Validation, problem: ro.Problem = problem, scale: ro.Scale | None = scale) -> str:
        return complaint(lambda: gather(problem, scale=scale, validation=validation, backends=[], tell=told.append))

    errors, tuned = trials().errors, trials().tuned
    renamed = errors.assign(policy=errors["policy"].replace("p3", "parrot"))
    assert refused(Validation(renamed, tuned)).endswith("there is no policy 'parrot' in this problem.")
    assert refused(Validation(errors[errors["policy"] != "p3"], tuned)).endswith("never held out the policy 'p3'.")
    assert refused(Validation(errors[errors["target"] == 0], tuned)).endswith("has 1 targets and this problem 2.")
    shifted = errors.assign(full=errors["full"] + 0.1 * (errors["policy"] == "p5"))
    score = results()["p5"].mean()
    assert refused(Validation(shifted, tuned)) == (
        f"the validation is of other results: the full score of 'p5' is {score + 0.1:.6g} there, and {score:.6g} here."
    )
    assert "other results" in refused(trials(), scale=None)  # other units
    assert told == []


# On the command line


@pytest.fixture
def files(tmp_path: Path) -> Path:
    results().to_csv(tmp_path / "results.csv", index_label="case")
    return tmp_path


@pytest.mark.slow
def test_the_report_shows_the_folder_that_validate_wrote(rposst: Run, files: Path) -> None:
    asked = ("results.csv", "--size", "2", "--betas", "0,2")
    options = ("--selections", "rposst,random", "--estimators", "weights,ridge", "--jobs", "1", "--out", "found")
    found = rposst("validate", *asked, *options, "--json")
    made = rposst("report", *asked, "--no-agree", "--validation", "found", "--out", "r.html")
    assert made.code == 0, made.err
    page = html.unescape((files / "r.html").read_text("utf-8"))
    said = [each["sentence"] for each in found.json["recommendations"]]
    assert len(said) == 2 and all(f"<p>{sentence}</p>" in page for sentence in said)
    assert "could not be checked" not in made.err


@pytest.mark.parametrize(
    ("folder", "message"),
    [("nowhere", "nowhere: there is no such folder"), (".", "errors.csv: there is no such file")],
)
def test_a_folder_that_has_no_validation_is_refused_in_one_line(
    rposst: Run, files: Path, folder: str, message: str
) -> None:
    outcome = rposst("report", "results.csv", "--size", "2", "--validation", folder, "--out", "r.html")
    assert outcome.code == 2
    assert message in outcome.err and len(outcome.told.strip().splitlines()) == 1
    assert not (files / "r.html").exists()


def test_trials_of_another_table_are_refused_and_older_ones_are_told(rposst: Run, files: Path) -> None:
    trials = validate(results(), [1], selections=["random"], estimators=["weights"], folds=3, replicas=1)
    write_validation(files / "found", trials, "0" * 64)
    asked = ("report", "results.csv", "--size", "1", "--no-agree", "--validation", "found", "--out", "r.html")
    outcome = rposst(*asked)
    assert outcome.code == 2 and "found: these trials are of another table: " in outcome.err
    assert not (files / "r.html").exists()
    write_validation(files / "found", trials)
    outcome = rposst(*asked)
    assert outcome.code == 0, outcome.err
    assert "found does not say which table its trials are of" in outcome.err


def test_the_trials_are_not_written_over(rposst: Run, files: Path) -> None:
    (files / "errors.csv").write_text("kept")
    (files / "r.html").symlink_to("errors.csv")
    outcome = rposst("report", "results.csv", "--size", "2", "--validation", ".", "--out", "r.html", "--force")
    assert outcome.code == 2 and "is read as input" in outcome.err
    assert (files / "errors.csv").read_text() == "kept"
