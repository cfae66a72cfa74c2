"""Error bars: the jackknife+ by hand, coverage by simulation, and what `solve` and `score` say of it."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from commands import Run
from sample_files import write_table

import rposst_opt as ro
from rposst_opt.unseen import error_bars
from rposst_opt.unseen.error_bars import LeftOut, beyond_what_was_seen, intervals, leave_out
from rposst_opt.unseen.procedures import Purpose
from rposst_opt.unseen.splits import alike


def table(seed: int = 0, n_cases: int = 10, n_policies: int = 14) -> np.ndarray:
    rng = np.random.default_rng(seed)
    skill, difficulty = rng.normal(size=n_policies), rng.normal(size=(n_cases, 1))
    return 10 / (1 + np.exp(difficulty - skill + rng.normal(size=(n_cases, n_policies)) / 2))


def left_out_of(results: np.ndarray, size: int = 2, backend: str = "exact") -> tuple[ro.EfficientTest, LeftOut]:
    purpose = Purpose()
    problem, scale = purpose.problem(results, size)
    test = ro.solve(problem, backend).test
    left_out = leave_out(results, size, purpose, backend=backend, options={})
    assert test is not None and left_out is not None
    return test.in_file_units(scale), left_out


def test_every_policy_is_left_out_once_and_all_is_made_again() -> None:
    results = table()
    _, left_out = left_out_of(results)
    for policy, (test, error) in enumerate(zip(left_out.tests, left_out.errors["weights"][0], strict=True)):
        rest = np.delete(results, policy, axis=1)
        scaled, _ = ro.rescale(rest)
        alone = ro.solve(ro.Problem(results=scaled, size=2), "exact").test
        assert alone is not None
        assert test.cases == alone.cases
        score = alone.weights @ results[list(alone.cases), policy]
        assert error == pytest.approx(score - results[:, policy].mean())
    assert left_out.mean_error() == pytest.approx(np.abs(left_out.errors["weights"]).mean())


def test_intervals_are_those_of_the_paper() -> None:
    results, new = table(), table(1, n_policies=3)
    test, left_out = left_out_of(results)
    found = intervals(test, left_out, new, level=0.8)
    radii = np.abs(left_out.errors["weights"][0])
    for policy in range(3):
        scores = np.array([other.score(new)[policy] for other in left_out.tests])
        below, above = sorted(scores - radii), sorted(scores + radii)
        assert found.low[policy] == pytest.approx(below[3 - 1])  # ⌊0.2 · 15⌋
        assert found.high[policy] == pytest.approx(above[12 - 1])  # ⌈0.8 · 15⌉
    assert found.n_applied == 14
    assert found.scores == pytest.approx(test.score(new))


def test_without_results_on_other_cases_the_score_stands_in_the_middle() -> None:
    results, new = table(), table(1, n_policies=3)
    test, left_out = left_out_of(results)
    found = intervals(test, left_out, new[list(test.cases)], level=0.8)
    same = sum(other.cases == test.cases for other in left_out.tests)
    assert found.n_applied == same < 14
    by_kernel = intervals(test, left_out, new, method="kernel", level=0.8)
    radii = np.sort(np.abs(left_out.errors["kernel"][0]))
    assert by_kernel.n_applied == 0
    assert by_kernel.high - by_kernel.scores == pytest.approx(radii[12 - 1])
    assert by_kernel.scores - by_kernel.low == pytest.approx(radii[12 - 1])


def in_folds(results: np.ndarray, monkeypatch: pytest.MonkeyPatch, folds: int = 4) -> tuple[ro.EfficientTest, LeftOut]:
    """What is left out where policies count as many."""
    monkeypatch.setattr(error_bars, "MOST_LEFT_OUT_ONE_BY_ONE", 0)
    monkeypatch.setattr(error_bars, "FOLDS", folds)
    return left_out_of(results)


def test_many_policies_are_left_out_in_folds_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    results = table()
    _, left_out = in_folds(results, monkeypatch)
    assert left_out.counts == (4, 4, 3, 3)
    assert left_out.words == "policies left out in 4 folds"
    expected = []
    for split in alike(14, folds=4, replicas=1, seed=error_bars.SEED):
        scaled, _ = ro.rescale(np.delete(results, split.held_out, axis=1))
        test = ro.solve(ro.Problem(results=scaled, size=2), "exact").test
        assert test is not None
        new = results[:, split.held_out]
        expected += (test.weights @ new[list(test.cases)] - new.mean(axis=0)).tolist()
    assert left_out.errors["weights"][0] == pytest.approx(expected)


def test_intervals_of_folds_are_those_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    new = table(1, n_policies=3)
    test, left_out = in_folds(table(), monkeypatch)
    found = intervals(test, left_out, new, level=0.8)
    radii = np.abs(left_out.errors["weights"][0])
    for policy in range(3):
        its_test = [other for other, count in zip(left_out.tests, left_out.counts, strict=True) for _ in range(count)]
        scores = np.array([other.score(new)[policy] for other in its_test])
        assert found.low[policy] == pytest.approx(sorted(scores - radii)[3 - 1])
        assert found.high[policy] == pytest.approx(sorted(scores + radii)[12 - 1])
    assert found.n_applied == 4


def test_folds_come_where_one_by_one_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(np.arange(0.0, 1000.0))  # every look at it takes a second
    monkeypatch.setattr(error_bars, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))

    def found(most_seconds: float, seconds_each: float = 0.0) -> int | None:
        left_out = leave_out(
            table(), 2, Purpose(), most_seconds=most_seconds, seconds_each=seconds_each, backend="exact", options={}
        )
        return None if left_out is None else len(left_out.tests)

    assert found(20) == 14
    assert found(12) == 10  # fourteen would take fourteen seconds
    assert found(5) is None
    begun = float(next(clock))
    assert found(1, seconds_each=1.0) is None
    assert float(next(clock)) == begun + 1  # nothing was tried


def test_folds_survive_the_file(rposst: Run, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test, left_out = in_folds(table(), monkeypatch)
    solved = rposst("solve", "results.csv", "--size", "2", "--out", "test.json", "--error-bars")
    assert "policies left out in 4 folds" in solved.out
    back = error_bars.read_left_out(results.parent / "test.json")
    assert back is not None and back.counts == left_out.counts
    for method, errors in left_out.errors.items():
        assert back.errors[method] == pytest.approx(errors)
    scored = json.loads(rposst("score", "test.json", "new.csv", "--json", "--level", "0.8").out)
    expected = intervals(test, left_out, table(1, n_policies=3), level=0.8)
    by_policy = {row["policy"]: (row["low"], row["high"]) for row in scored["scores"]}
    for place, policy in enumerate("xyz"):
        assert by_policy[policy] == pytest.approx((expected.low[place], expected.high[place]))


def test_too_few_policies_for_the_level_leave_the_ends_open() -> None:
    test, left_out = left_out_of(table(n_policies=6))
    found = intervals(test, left_out, table(1), level=0.9)
    assert (found.low == -np.inf).all() and (found.high == np.inf).all()
    with pytest.raises(ro.ProblemError, match="`level` must lie between 0 and 1, got 90"):
        intervals(test, left_out, table(1), level=90)


@pytest.mark.slow
def test_intervals_cover_policies_drawn_from_the_same_about_as_often_as_they_say() -> None:
    covered, by_tuning_errors, count = 0, 0, 0
    for seed in range(12):
        results = table(seed, n_policies=35)
        tuning, new = results[:, :25], results[:, 25:]
        test, left_out = left_out_of(tuning)
        full = new.mean(axis=0)
        found = intervals(test, left_out, new, level=0.8)
        covered += int(((found.low <= full) & (full <= found.high)).sum())
        narrow = np.quantile(np.abs(test.score(tuning) - tuning.mean(axis=0)), 0.8)
        by_tuning_errors += int((np.abs(found.scores - full) <= narrow).sum())
        count += len(full)
    assert 0.69 <= covered / count <= 0.91  # three standard deviations of 120 draws are 0.11
    assert by_tuning_errors < covered


def test_ranks_and_pairs_follow_from_overlapping_intervals() -> None:
    low, high = np.array([0.5, 0.1, 0.55, 0.9]), np.array([0.6, 0.2, 0.8, 1.0])
    assert error_bars.rank_intervals(low, high) == [(2, 3), (4, 4), (2, 3), (1, 1)]
    assert error_bars.pairs_not_told_apart(low, high) == [(0, 2)]


def test_policies_beyond_what_was_seen_are_told() -> None:
    rng = np.random.default_rng(2)
    skill = np.linspace(0.2, 0.6, 12)
    results = skill + np.linspace(-0.1, 0.1, 8)[:, None] + rng.normal(0, 0.005, (8, 12))
    test, _ = left_out_of(results, size=3)
    new = np.column_stack([results[:, 5] + 0.001, results[:, 5] + 0.5, results[:, 5] - 0.5, results[:, 5]])
    new[list(test.cases), 3] += 0.2 * np.array([1, -2, 1])  # the same mean, and a pattern like none
    assert beyond_what_was_seen(test, new)[:3] == [
        None,
        "stronger than all tuning policies",
        "weaker than all tuning policies",
    ]
    assert beyond_what_was_seen(test, new)[3] is not None
    assert beyond_what_was_seen(test, results) == [None] * 12  # tuning policies are like themselves
    bare = ro.EfficientTest(cases=[0], weights=[1.0], n_cases=8)
    with pytest.raises(ro.ProblemError, match="not known of this test"):
        beyond_what_was_seen(bare, new)


def test_a_test_that_interpolates_is_warned_of() -> None:
    results = np.random.default_rng(0).integers(0, 2, (60, 8)).astype(float)
    _, left_out = left_out_of(results, size=6, backend="local-search")
    said = error_bars.warning(left_out, 0.001)
    assert said is not None
    assert "off by 0.001 on them" in said
    assert "Take fewer cases, --offset or --regularise auto" in said
    assert error_bars.warning(left_out, left_out.mean_error()) is None


def test_it_is_given_up_where_it_takes_too_long() -> None:
    assert leave_out(table(), 2, Purpose(), backend="exact", options={}, most_seconds=0.0) is None


# On the command line


@pytest.fixture
def results(tmp_path: Path) -> Path:
    cases, policies = [f"c{case}" for case in range(10)], [f"p{policy}" for policy in range(14)]
    write_table(tmp_path / "results.csv", cases, policies, table().tolist())
    write_table(tmp_path / "new.csv", cases, ["x", "y", "z"], table(1, n_policies=3).tolist())
    return tmp_path / "results.csv"


def test_solve_says_the_error_on_unseen_policies_first_and_score_has_intervals(rposst: Run, results: Path) -> None:
    solved = rposst("solve", "results.csv", "--size", "2", "--out", "test.json", "--error-bars")
    assert solved.code == 0, solved.err
    test, left_out = left_out_of(table())
    assert solved.out.index("unseen policies") < solved.out.index("tuned error")
    assert f"off by about {left_out.mean_error():.3g} on average, {left_out.worst_error():.3g} at worst" in solved.out
    record = json.loads((results.parent / "test.json").read_text())
    assert record["unseen"]["kernel"]["mean_error"] == pytest.approx(left_out.mean_error("kernel"))
    for method in ("weights", "kernel"):
        scored = rposst("score", "test.json", "new.csv", "--json", "--level", "0.8", "--estimator", method)
        assert scored.code == 0, scored.err
        new = pd.DataFrame(table(1, n_policies=3), columns=["x", "y", "z"])
        expected = intervals(test, left_out, new.to_numpy(), level=0.8, method=method)
        for row in json.loads(scored.out)["scores"]:
            place = list(new.columns).index(row["policy"])
            assert row["score"] == pytest.approx(expected.scores[place])
            assert (row["low"], row["high"]) == pytest.approx((expected.low[place], expected.high[place]))
    shown = rposst("score", "test.json", "new.csv")
    assert "90% interval" in shown.out and "pairs of policies are not told apart" in shown.out


def test_results_on_other_cases_may_be_missing_or_incomplete(rposst: Run, results: Path) -> None:
    solved = json.loads(rposst("solve", "results.csv", "--size", "2", "--out", "test.json", "--json").out)
    used = {name for other in solved["left_out"] for name in other["cases"]} - set(solved["cases"])
    assert used
    whole = json.loads(rposst("score", "test.json", "new.csv", "--json").out)
    assert whole["n_applied"] == whole["n_left_out"] == 14
    lines = (results.parent / "new.csv").read_text().splitlines()
    (results.parent / "holes.csv").write_text(
        "\n".join(line + "," if line.split(",")[0] in used else line + ",1.0" for line in lines) + "\n"
    )
    holes = json.loads(rposst("score", "test.json", "holes.csv", "--json").out)
    assert holes["n_applied"] < 14
    by_policy = {row["policy"]: row["score"] for row in holes["scores"]}
    assert all(by_policy[row["policy"]] == pytest.approx(row["score"]) for row in whole["scores"])


def test_without_error_bars_that_is_said(rposst: Run, results: Path) -> None:
    solved = rposst("solve", "results.csv", "--size", "2", "--out", "test.json", "--no-error-bars")
    assert "unseen policies  not known" in solved.out
    assert "The file has no error bars" in rposst("score", "test.json", "new.csv").out
    with_few = rposst("solve", "new.csv", "--size", "2", "--error-bars")
    assert with_few.code == 2
    assert "--error-bars needs more than 3 policies" in with_few.err


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ({"left_out": [1]}, '"left_out" is not what was written there'),
        (
            {"left_out": [{"cases": ["a"], "weights": [1.0], "errors": {"weights": [0.1]}}]},
            '"left_out" is not what was',
        ),
        ({"left_out": []}, '"left_out" is not what was written there'),
        ({"tuning": 3}, '"tuning" must be an object'),
        ({"tuning": {"results": [[1, 2]], "full_scores": [[1]]}}, "a column per policy"),
        ({"tuning": {"results": [["a"]], "full_scores": [[1]]}}, '"results" of "tuning" must be rows of numbers'),
        ({"tuning": {"results": [[10**400]], "full_scores": [[1]]}}, '"results" of "tuning" must be rows of numbers'),
        ({"tuning": {"results": [[1]] * 9, "full_scores": [[1]]}}, "`tuning` must have a row per case"),
    ],
)
def test_damaged_files_are_told(damage: dict[str, object], complaint: str, rposst: Run, results: Path) -> None:
    rposst("solve", "results.csv", "--size", "2", "--out", "test.json")
    record = json.loads((results.parent / "test.json").read_text()) | damage
    (results.parent / "test.json").write_text(json.dumps(record))
    outcome = rposst("score", "test.json", "new.csv")
    assert outcome.code == 2
    assert complaint in outcome.err
