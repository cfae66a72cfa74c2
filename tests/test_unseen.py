"""Held-out policies: who they are, that nothing of them leaks, and that what is said of them is what was found."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run
from sample_files import write_table
from scipy import stats

import rposst_opt as ro
from rposst_opt.estimators import ESTIMATORS
from rposst_opt.unseen import splits, validation
from rposst_opt.unseen.procedures import SELECTIONS, Purpose, attempt
from rposst_opt.unseen.recommendation import recommend
from rposst_opt.unseen.splits import Kind
from rposst_opt.unseen.validation import Validation, chance_of_best, validate

EVERYTHING = tuple(SELECTIONS)


def table(seed: int = 0, n_cases: int = 12, n_policies: int = 10) -> np.ndarray:
    rng = np.random.default_rng(seed)
    skill, difficulty = rng.normal(size=n_policies), rng.normal(size=(n_cases, 1))
    return 5 + 20 / (1 + np.exp(difficulty - skill + rng.normal(size=(n_cases, n_policies)) / 2))


# Who is held out


def test_few_policies_are_left_out_one_by_one_and_many_in_folds() -> None:
    assert [split.held_out for split in splits.alike(5, folds=None, replicas=3, seed=0)] == [
        (0,),
        (1,),
        (2,),
        (3,),
        (4,),
    ]
    folds = splits.alike(200, folds=None, replicas=3, seed=0)
    assert len(folds) == 15
    for replica in range(3):
        held_out = [split.held_out for split in folds if split.replica == replica]
        assert sorted(policy for part in held_out for policy in part) == list(range(200))
        assert {len(part) for part in held_out} == {40}
    assert folds[0].held_out != folds[5].held_out
    assert len(splits.alike(10, folds=2, replicas=1, seed=0)) == 2


def test_the_strongest_are_those_with_the_highest_scores() -> None:
    scores = np.array([0.1, 0.9, 0.5, 0.8, 0.3, 0.7, 0.2, 0.6, 0.4, 0.0])
    found = splits.strongest(scores, (0.1, 0.3, 0.9))
    assert [split.held_out for split in found] == [(1,), (1, 3, 5)]  # 0.9 would leave one to tune on
    assert found[1].tuning(10).tolist() == [0, 2, 4, 6, 7, 8, 9]


def test_each_group_is_held_out_once() -> None:
    found = splits.by_group(["b", "a", "b", "c"])
    assert [split.held_out for split in found] == [(1,), (0, 2), (3,)]
    with pytest.raises(ro.ProblemError, match="at least two of them, got a"):
        splits.by_group(["a", "a"])


def test_too_few_policies_and_impossible_folds_are_told() -> None:
    with pytest.raises(ro.ProblemError, match="needs at least 4 of them, got 3"):
        splits.alike(3, folds=None, replicas=1, seed=0)
    with pytest.raises(ro.ProblemError, match="`folds` must lie between 2 and the 5 policies, got 6"):
        splits.alike(5, folds=6, replicas=1, seed=0)


# Nothing leaks


@pytest.mark.parametrize("purpose", [Purpose(), Purpose(betas=(0, 1, 4), offset=True)])
def test_what_held_out_policies_do_changes_neither_the_choice_nor_estimates_of_others(purpose: Purpose) -> None:
    results, poison = table(), np.random.default_rng(1).normal(0, 1e6, 12)
    tuning, others = results[:, :7], results[:, 7:]
    poisoned = others.copy()
    poisoned[:, 1] = poison
    honest = attempt(tuning, others, 3, purpose, EVERYTHING, ESTIMATORS, seed=1)
    wary = attempt(tuning, poisoned, 3, purpose, EVERYTHING, ESTIMATORS, seed=1)
    for one, other in zip(honest, wary, strict=True):
        assert one.cases == other.cases
        assert one.tuned_errors.tolist() == other.tuned_errors.tolist()
        for method in ESTIMATORS:
            apart = np.abs(one.estimates[method] - other.estimates[method])
            assert apart[:, [0, 2]].max() <= 1e-9  # a matrix product may round a column by what is beside it
            assert apart[:, 1].min() > 0


def test_every_split_is_tuned_on_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    results = table()
    seen = []

    def spy(tuning, others, size, *rest):  # type: ignore[no-untyped-def]
        seen.append((tuning, others))
        return attempt(tuning, others, size, *rest)

    monkeypatch.setattr(validation, "attempt", spy)
    validate(results, [2], selections=["random"], estimators=["weights"], groups=["a", "b"] * 5)
    assert len(seen) == 10 + 4 + 2
    for tuning, others in seen:
        columns = {tuple(column) for column in tuning.T.tolist()}
        assert not columns & {tuple(column) for column in others.T.tolist()}
        assert len(columns) + others.shape[1] == 10


# What is said is what was found


def test_errors_are_those_of_doing_it_by_hand() -> None:
    results = table(3, n_policies=6)
    found = validate(results, [2], selections=["stratified"], estimators=["weights", "ridge"], seed=5)
    expected = {method: np.zeros(6) for method in ("weights", "ridge")}
    for policy in range(6):
        tuning = np.delete(results, policy, axis=1)
        scaled, scale = ro.rescale(tuning)
        test = ro.solve(ro.Problem(results=scaled, size=2), "stratified-random", seed=5).test
        assert test is not None
        new = (results[:, [policy]] - scale.low) / (scale.high - scale.low)
        for method, errors in expected.items():
            estimate = scale.low + (scale.high - scale.low) * test.estimate(new, method)[0]
            errors[policy] = abs(estimate - results[:, policy].mean())
    for method, errors in expected.items():
        row = found.summary[(found.summary.kind == "alike") & (found.summary.estimator == method)].iloc[0]
        assert row.mean_error == pytest.approx(errors.mean())
        assert row.worst_error == pytest.approx(errors.max())
        assert row.p90_error == pytest.approx(np.quantile(errors, 0.9))
        half = 2.5705818 * errors.std(ddof=1) / np.sqrt(6)  # Student's t with five degrees of freedom
        assert (row.low, row.high) == pytest.approx((max(errors.mean() - half, 0), errors.mean() + half), rel=1e-6)


def test_intervals_are_over_replicas_where_folds_are_drawn_again_and_over_policies_elsewhere() -> None:
    found = validate(
        table(), [2, 3], selections=["stratified"], estimators=["weights"], groups=["a", "b"] * 5, folds=3, replicas=4
    )
    errors = found.errors.assign(error=(found.errors["estimate"] - found.errors["full"]).abs())
    assert {*errors["kind"]} == {*Kind} and len(found.summary) == 2 * len(Kind)
    for _, row in found.summary.iterrows():
        of_this_way = errors[(errors["kind"] == row["kind"]) & (errors["size"] == row["size"])]
        sampled = of_this_way.groupby("replica" if row["kind"] == Kind.ALIKE else "policy")["error"].mean()
        if len(sampled) < 2:
            assert pd.isna(row.low) and pd.isna(row.high)
            continue
        half = stats.t.ppf(0.975, len(sampled) - 1) * stats.sem(sampled)
        assert (row.low, row.high) == pytest.approx((max(row.mean_error - half, 0), row.mean_error + half))


def test_a_test_that_is_the_full_test_is_never_wrong_by_its_weights_and_ranks_rightly() -> None:
    found = validate(table(), [12], selections=["random"], estimators=["weights", "aipw"])
    assert found.summary["mean_error"].max() < 1e-9
    assert found.summary["kendall_tau"].min() == pytest.approx(1.0)
    assert found.summary["picks_best"].min() == pytest.approx(1.0)
    assert found.summary["tuned_worst"].max() < 1e-9


def test_the_chance_of_picking_the_best() -> None:
    full = np.array([0.1, 0.2, 0.3])
    assert chance_of_best(full, np.array([1.0, 2.0, 3.0])) == 1.0
    assert chance_of_best(full, np.array([3.0, 2.0, 1.0])) == 0.0
    assert chance_of_best(full, np.zeros(3)) == pytest.approx(1 / 3)
    assert np.isnan(chance_of_best(full[:1], full[:1]))
    many = np.arange(1000.0)
    swapped = many.copy()
    swapped[[998, 999]] = swapped[[999, 998]]
    assert chance_of_best(many, swapped) > 0.99  # the two are rarely among the same ten


# Running


@pytest.mark.slow
def test_what_is_done_is_kept_and_two_processes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, Any] = {"selections": ["rposst-offset", "random"], "folds": 3, "replicas": 2}
    first = validate(table(), [2, 3], folder=tmp_path, **arguments)
    monkeypatch.setattr(validation, "attempt", None)  # nothing is left to be done
    pd.testing.assert_frame_equal(validate(table(), [2, 3], folder=tmp_path, **arguments).errors, first.errors)
    monkeypatch.undo()
    pd.testing.assert_frame_equal(validate(table(), [2, 3], jobs=2, **arguments).errors, first.errors)
    file = next(tmp_path.glob("*.json"))
    file.write_text("[]")
    with pytest.raises(ro.ProblemError, match="is not what was written there"):
        validate(table(), [2, 3], folder=tmp_path, **arguments)


def test_names_that_stand_for_nothing_are_refused() -> None:
    with pytest.raises(ro.ProblemError, match="unknown selection 'luck'"):
        validate(table(), [2], selections=["luck"])
    with pytest.raises(ro.ProblemError, match="unknown estimator 'guess'"):
        validate(table(), [2], estimators=["guess"])
    with pytest.raises(ro.ProblemError, match="`groups` must have an entry per policy, got 1 for 10"):
        validate(table(), [2], groups=["a"])


# What follows


def made_up(errors: dict[tuple[str, int, str, str], float]) -> Validation:
    """A validation in which each way is off by this much on every one of four policies."""
    rows = [
        {"kind": kind, "replica": 0, "size": size, "selection": selection, "estimator": estimator}
        | {"policy": f"p{policy}", "target": 0, "full": policy, "estimate": policy + error}
        for (kind, size, selection, estimator), error in errors.items()
        for policy in range(4)
    ]
    tuned = [
        {"kind": kind, "replica": 0, "size": size, "selection": selection, "tuned_mean": 0.1, "tuned_worst": 0.2}
        for kind, size, selection in {key[:3] for key in errors}
    ]
    return Validation(pd.DataFrame(rows), pd.DataFrame(tuned))


def test_the_least_size_whose_error_is_least_up_to_noise_is_recommended() -> None:
    found = made_up(
        {
            ("alike", 2, "rposst", "weights"): 2.0,
            ("alike", 5, "rposst", "weights"): 3.0,
            ("alike", 5, "rposst", "ridge"): 1.05,
            ("alike", 9, "rposst", "ridge"): 1.0,
            ("alike", 5, "random", "weights"): 4.0,
            ("alike", 5, "random", "aipw"): 4.5,
            ("strongest", 5, "rposst", "weights"): 6.0,
            ("strongest", 5, "random", "weights"): 6.5,
            ("strongest", 5, "random", "aipw"): 5.0,
            ("strongest", 5, "rposst", "ridge"): 0.1,
        }
    )
    best = recommend(found)
    assert (best.size, best.selection, best.estimator) == (5, "rposst", "ridge")
    assert best.mean_error == pytest.approx(1.05)
    assert not best.random_would_do
    assert best.sentence == (
        "For new policies like these, take 5 cases by RPOSST and estimate by ridge regression: it was off by 1.05 on "
        "average in the trials (95 % interval 1.05 to 1.05) and 1.05 at worst; it was chosen out of 4 ways, so expect "
        "a little more."
    )
    assert recommend(found, size=2).mean_error == pytest.approx(2.0)
    # AIPW is best there, by a fifth, and behind by half elsewhere; regressions do not count, however well they look.
    stronger = recommend(found, Kind.STRONGEST)
    assert stronger.sentence.startswith("For new policies stronger than all of these, take 5 cases by RPOSST")
    assert stronger.estimator == "weights" and stronger.n_ways == 3
    # On policies like the others, regressions are rivals. Without them, k-means would be a third behind at most.
    with_rival = made_up(
        {
            ("alike", 5, "rposst", "ridge"): 1.0,
            ("alike", 5, "rposst", "weights"): 3.0,
            ("alike", 5, "kmeans", "weights"): 4.0,
            ("strongest", 5, "rposst", "ridge"): 9.0,
            ("strongest", 5, "rposst", "weights"): 7.0,
            ("strongest", 5, "kmeans", "weights"): 5.0,
        }
    )
    assert recommend(with_rival, Kind.STRONGEST).selection == "rposst"  # three times behind, and four times
    of_ridge = made_up({(kind, 5, "rposst", "ridge"): 1.0 for kind in ("alike", "strongest")})
    assert recommend(of_ridge, Kind.STRONGEST).estimator == "ridge"  # nothing else was tried
    assert stronger.sentence.endswith("; random cases would do as well (5).")
    with pytest.raises(ro.ProblemError, match="of the kind 'groups'"):
        recommend(found, Kind.GROUPS)


# On the command line


@pytest.fixture
def results(tmp_path: Path) -> Path:
    names = [f"p{policy}" for policy in range(10)]
    write_table(tmp_path / "results.csv", [f"c{case}" for case in range(12)], names, table().tolist())
    (tmp_path / "families.csv").write_text("policy,family\n" + "".join(f"p{j},{'ab'[j % 2]}\n" for j in range(10)))
    return tmp_path / "results.csv"


@pytest.mark.slow
def test_the_command_says_what_python_says(rposst: Run, results: Path) -> None:
    asked = ("--size", "2,4-5", "--selections", "rposst,stratified", "--betas", "0,2", "--groups", "families.csv")
    outcome = rposst("validate", "results.csv", *asked, "--jobs", "1", "--out", "found", "--json")
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    frame = pd.DataFrame(table(), columns=[f"p{policy}" for policy in range(10)])
    expected = validate(
        frame, [2, 4, 5], purpose=Purpose(betas=(0, 2)), selections=["rposst", "stratified"], groups=["a", "b"] * 5
    )
    assert [row["mean_error"] for row in record["summary"]] == pytest.approx(expected.summary["mean_error"].tolist())
    said = [each["sentence"] for each in record["recommendations"]]
    assert said == [recommend(expected, kind).sentence for kind in Kind]
    assert (results.parent / "found" / "errors.png").read_bytes().startswith(b"\x89PNG")
    written = pd.read_csv(results.parent / "found" / "summary.csv")
    assert written["mean_error"].tolist() == pytest.approx(expected.summary["mean_error"].tolist())
    shown = rposst("validate", "results.csv", *asked, "--jobs", "1", "--out", "found")
    assert all(sentence in " ".join(shown.out.split()) for sentence in said)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (("--size", "2", "--selections", "luck"), "unknown selection 'luck'"),
        (("--size", "x"), "--size must be whole numbers or ranges with commas between them, got 'x'"),
        (("--size", "0"), "--size must name at least one number from 1 on"),
        (("--size", "13"), "--size must lie between 1 and the 12 test cases"),
        (("--size", "2", "--probabilities", "results.csv"), "--probabilities of held-out policies are not known"),
        (("--size", "2", "--groups", "results.csv"), "results.csv: "),
        (("--size", "2", "--groups", "nowhere.csv"), "nowhere.csv: there is no such file"),
    ],
)
def test_bad_options_are_told_before_anything_is_run(
    asked: tuple[str, ...], complaint: str, rposst: Run, results: Path
) -> None:
    outcome = rposst("validate", "results.csv", *asked)
    assert outcome.code == 2
    assert complaint in outcome.err
