"""Error bars: jackknife and jackknife+ by hand, coverage by counting, and what `solve` and `score` say of it."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run
from sample_files import write_table

import rposst_opt as ro
from rposst_opt.estimators import ESTIMATORS
from rposst_opt.unseen import error_bars, stand_in
from rposst_opt.unseen.error_bars import LeftOut, beyond_what_was_seen, intervals, leave_out
from rposst_opt.unseen.procedures import Purpose, gently
from rposst_opt.unseen.splits import alike
from rposst_opt.unseen.stand_in import leave_out_after, why_not_left_out


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
    only = leave_out(results, 2, Purpose(), backend="exact", options={}, estimators=["ridge"])
    assert only is not None and list(only.errors) == ["ridge"] and only.counts == left_out.counts
    assert only.errors["ridge"].tolist() == left_out.errors["ridge"].tolist()


def known_errors(errors: list[float], test: ro.EfficientTest) -> LeftOut:
    """Errors of a test that is the same whoever is left out."""
    by_method = {method: np.array([errors]) for method in ESTIMATORS}
    return LeftOut((test,) * len(errors), by_method, (1,) * len(errors))


@pytest.mark.parametrize(("level", "radius"), [(0.8, 8.0), (0.85, 9.0), (0.9, 9.0), (0.91, np.inf)])
def test_the_jackknife_by_hand(level: float, radius: float) -> None:
    test = ro.EfficientTest(cases=[0, 2], weights=[0.5, 0.5], n_cases=3)
    left_out = known_errors([1, -9, 2, 8, -3, 7, -4, 6, 5], test)
    found = intervals(test, left_out, [[4.0], [100.0], [6.0]], level=level)
    assert found.scores.tolist() == [5.0]
    assert (found.low.item(), found.high.item()) == (5.0 - radius, 5.0 + radius)  # rank ⌈level · 10⌉ of |errors|
    assert found.n_applied == 0


@pytest.mark.parametrize("kind", error_bars.KINDS)
@pytest.mark.parametrize(("level", "n_covered"), [(0.9, 18), (0.85, 17), (0.88, 18), (0.5, 10), (0.42, 9)])
def test_of_exchangeable_policies_exactly_as_many_are_covered_as_the_rank_says(
    kind: str, level: float, n_covered: int
) -> None:
    # Each of 20 policies is the new one in turn. The test learns nothing, so that its errors are exchangeable.
    test = ro.EfficientTest(cases=[1], weights=[1.0], n_cases=4)
    results = np.random.default_rng(5).normal(size=(4, 20))
    full, errors = results.mean(axis=0), results[1] - results.mean(axis=0)
    covered = 0
    for new in range(20):
        left_out = known_errors(np.delete(errors, new).tolist(), test)
        found = intervals(test, left_out, results[:, [new]], level=level, kind=kind)
        covered += int(found.low.item() <= full[new] <= found.high.item())
    assert covered == n_covered  # ⌈level · 20⌉


def test_the_jackknife_plus_is_that_of_the_paper() -> None:
    results, new = table(), table(1, n_policies=3)
    test, left_out = left_out_of(results)
    found = intervals(test, left_out, new, level=0.8, kind="jackknife+")
    radii = np.abs(left_out.errors["weights"][0])
    for policy in range(3):
        scores = np.array([other.score(new)[policy] for other in left_out.tests])
        below, above = sorted(scores - radii), sorted(scores + radii)
        assert found.low[policy] == pytest.approx(below[3 - 1])  # ⌊0.2 · 15⌋
        assert found.high[policy] == pytest.approx(above[12 - 1])  # ⌈0.8 · 15⌉
    assert found.n_applied == 14
    assert found.scores == pytest.approx(test.score(new))


@pytest.mark.parametrize("method", ESTIMATORS)
def test_the_jackknife_has_the_score_in_the_middle_and_needs_no_results_on_other_cases(method: str) -> None:
    results, new = table(), table(1, n_policies=3)
    test, left_out = left_out_of(results)
    assert any(other.cases != test.cases for other in left_out.tests)
    found = intervals(test, left_out, new, method=method, level=0.8)
    radius = np.sort(np.abs(left_out.errors[method][0]))[12 - 1]
    assert found.scores == pytest.approx(test.estimate(new, method))
    assert found.high - found.scores == pytest.approx(radius)
    assert found.scores - found.low == pytest.approx(radius)
    for part in (new[list(test.cases)], pd.DataFrame(new).loc[list(test.cases)]):
        of_its_cases = intervals(test, left_out, part, method=method, level=0.8)
        assert of_its_cases.low.tolist() == found.low.tolist()
        assert of_its_cases.high.tolist() == found.high.tolist()


def test_what_the_jackknife_plus_lacks_is_said() -> None:
    test, left_out = left_out_of(table())
    new = pd.DataFrame(table(1, n_policies=3))
    used = dict.fromkeys(case for other in left_out.tests for case in other.cases)
    lacking = next(case for case in used if case not in test.cases)
    count = sum(lacking not in other.cases for other in left_out.tests)
    assert count < 14
    holes = new.copy()
    holes.loc[lacking, 1] = np.nan
    for part in (new.drop(index=lacking), holes):
        with pytest.raises(
            ro.ProblemError, match=f"all 14 tests .*; {count} can be applied, as results on '{lacking}'"
        ):
            intervals(test, left_out, part, kind="jackknife+")
    with pytest.raises(ro.ProblemError, match="or ask for jackknife intervals, which need the test's own cases alone"):
        intervals(test, left_out, new.to_numpy()[list(test.cases)], kind="jackknife+")
    whole = intervals(test, left_out, new.to_numpy(), kind="jackknife+")
    unused = new.index.difference(pd.Index([*used, *test.cases]))
    enough = intervals(test, left_out, new.drop(index=unused), kind="jackknife+")
    assert enough.low.tolist() == whole.low.tolist()
    with pytest.raises(
        ro.ProblemError, match=r"do not keep what the estimator 'kernel' learns from\. Ask for jackknife"
    ):
        intervals(test, left_out, new, kind="jackknife+", method="kernel")
    with pytest.raises(ro.ProblemError, match=r"unknown kind of intervals 'cv'. Known: jackknife, jackknife\+\."):
        intervals(test, left_out, new, kind="cv")


def test_the_jackknife_plus_of_one_policy_by_name() -> None:
    test, left_out = left_out_of(table())
    new = pd.DataFrame(table(1, n_policies=1), columns=["x"])
    expected = intervals(test, left_out, new, kind="jackknife+")
    assert intervals(test, left_out, new["x"], kind="jackknife+").low.tolist() == expected.low.tolist()
    assert intervals(test, left_out, new["x"].to_dict(), kind="jackknife+").low.tolist() == expected.low.tolist()


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
    found = intervals(test, left_out, new, level=0.8, kind="jackknife+")
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
    for kind in error_bars.KINDS:
        asked = ("--json", "--level", "0.8", "--intervals", kind)
        scored = json.loads(rposst("score", "test.json", "new.csv", *asked).out)
        assert (scored["intervals"], scored["left_out"]) == (kind, "policies left out in 4 folds")
        expected = intervals(test, left_out, table(1, n_policies=3), level=0.8, kind=kind)
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
    covered, count = dict.fromkeys([*error_bars.KINDS, "tuning"], 0), 0
    for seed in range(12):
        results = table(seed, n_policies=35)
        tuning, new = results[:, :25], results[:, 25:]
        test, left_out = left_out_of(tuning)
        full = new.mean(axis=0)
        for kind in error_bars.KINDS:
            found = intervals(test, left_out, new, level=0.8, kind=kind)
            covered[kind] += int(((found.low <= full) & (full <= found.high)).sum())
        narrow = np.quantile(np.abs(test.score(tuning) - tuning.mean(axis=0)), 0.8)
        covered["tuning"] += int((np.abs(test.score(new) - full) <= narrow).sum())
        count += len(full)
    assert 0.69 <= covered["jackknife"] / count <= 0.91  # three standard deviations of 120 draws are 0.11
    assert covered["jackknife+"] / count >= 0.69
    assert covered["tuning"] < min(covered["jackknife"], covered["jackknife+"])


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


def solved_until(limit: ro.Limit | None, backend: str = "exact", seconds: float = 0.1) -> ro.Solution:
    """A solution of the table whose run ended so."""
    problem, _ = Purpose().problem(table(), 2)
    return replace(ro.solve(problem, backend), limit=limit, seconds=seconds)


@pytest.mark.parametrize(("limit", "seconds"), [(ro.Limit.TIME, 0.1), (None, 1e6)])
def test_where_its_own_backend_cannot_make_it_again_a_gentle_search_stands_in_and_is_named(
    limit: ro.Limit | None, seconds: float
) -> None:
    results, solution = table(), solved_until(limit, seconds=seconds)
    left_out = leave_out_after(solution, results, 2, Purpose(), options={}, most_seconds=60.0, search_seconds=60.0)
    assert left_out is not None
    assert left_out.words == "policies left out in 10 folds by local-search"
    expected = []
    for split in alike(14, folds=10, replicas=1, seed=error_bars.SEED):
        problem, _ = Purpose().problem(np.delete(results, split.held_out, axis=1), 2)
        test = ro.solve(problem, "local-search", **gently(problem)).test
        assert test is not None
        new = results[:, split.held_out]
        expected += (test.weights @ new[list(test.cases)] - new.mean(axis=0)).tolist()
    assert left_out.errors["weights"][0] == pytest.approx(expected)


def test_its_own_backend_makes_it_again_where_there_is_time() -> None:
    left_out = leave_out_after(solved_until(None), table(), 2, Purpose(), options={})
    assert left_out is not None and left_out.words == "each policy left out in turn"


@pytest.mark.parametrize(("seconds", "folds"), [(11.0, 10), (10.9, 5), (4.0, 3), (3.0, 2), (2.9, None)])
def test_there_are_fewer_folds_where_time_is_short(
    monkeypatch: pytest.MonkeyPatch, seconds: float, folds: int | None
) -> None:
    searching = ro.solve

    def in_a_second(*arguments: Any, **options: Any) -> ro.Solution:
        return replace(searching(*arguments, **options), seconds=1.0)

    monkeypatch.setattr(stand_in, "solve", in_a_second)
    solution = solved_until(ro.Limit.TIME)
    left_out = leave_out_after(solution, table(), 2, Purpose(), options={}, search_seconds=seconds)
    assert (None if left_out is None else len(left_out.counts)) == folds
    assert left_out is None or f"in {folds} folds by local-search" in left_out.words


def test_a_search_does_not_stand_in_for_who_chooses_in_another_way() -> None:
    problem, _ = Purpose().problem(table(), 2)
    solution = solved_until(ro.Limit.TIME, "kmeans-anchors")
    assert leave_out_after(solution, table(), 2, Purpose(), options={}) is None
    reason = why_not_left_out(solution, problem)
    assert reason == "the time limit ended kmeans-anchors, and local-search chooses in another way"


def test_an_interrupt_ends_leaving_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leave_out_after(solved_until(ro.Limit.INTERRUPT), table(), 2, Purpose(), options={}) is None
    solution = solved_until(None)
    monkeypatch.setattr(error_bars, "solve", lambda *arguments, **options: solved_until(ro.Limit.INTERRUPT))
    with pytest.raises(KeyboardInterrupt):
        leave_out_after(solution, table(), 2, Purpose(), options={})


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


@pytest.fixture
def other_cases(rposst: Run, results: Path) -> set[str]:
    """The cases of tests without a policy that the test, in test.json, has not; a hole in them is in holes.csv."""
    solved = json.loads(rposst("solve", "results.csv", "--size", "2", "--out", "test.json", "--json").out)
    others = {name for other in solved["left_out"] for name in other["cases"]} - set(solved["cases"])
    lines = (results.parent / "new.csv").read_text().splitlines()
    is_kept = [line.split(",")[0] not in others for line in lines]
    (results.parent / "few.csv").write_text("\n".join(line for line, kept in zip(lines, is_kept, strict=True) if kept))
    (results.parent / "holes.csv").write_text(
        "\n".join(line if kept else line.rsplit(",", 1)[0] + "," for line, kept in zip(lines, is_kept, strict=True))
    )
    return others


def test_what_is_said_does_not_depend_on_results_on_other_cases(rposst: Run, other_cases: set[str]) -> None:
    assert other_cases
    whole = rposst("score", "test.json", "new.csv", "--json")
    record = json.loads(whole.out)
    assert (record["intervals"], record["left_out"]) == ("jackknife", "each policy left out in turn")
    assert (record["n_left_out"], record["n_applied"]) == (14, 0)
    for file in ("few.csv", "holes.csv"):
        assert rposst("score", "test.json", file, "--json").out == whole.out
    assert "Intervals (jackknife, each policy left out in turn) are for" in rposst("score", "test.json", "few.csv").out


def test_jackknife_plus_intervals_are_asked_for_and_need_results_on_other_cases(
    rposst: Run, other_cases: set[str]
) -> None:
    plus = ("--intervals", "jackknife+")
    whole = json.loads(rposst("score", "test.json", "new.csv", "--json", *plus).out)
    assert (whole["intervals"], whole["n_applied"]) == ("jackknife+", 14)
    test, left_out = left_out_of(table())
    expected = intervals(test, left_out, table(1, n_policies=3), kind="jackknife+")
    for row in whole["scores"]:
        place = "xyz".index(row["policy"])
        assert (row["low"], row["high"]) == pytest.approx((expected.low[place], expected.high[place]))
    assert "Intervals (jackknife+, each" in rposst("score", "test.json", "new.csv", *plus).out
    few = rposst("score", "test.json", "few.csv", *plus)
    assert few.code == 2
    assert "jackknife+ intervals need results on the cases of all 14 tests" in few.err
    holes = rposst("score", "test.json", "holes.csv", *plus)
    assert holes.code == 2
    assert "missing" in holes.err
    learned = rposst("score", "test.json", "new.csv", *plus, "--estimator", "ridge")
    assert learned.code == 2
    assert "jackknife+ intervals are for the test's own weights" in learned.err
    unknown = rposst("score", "test.json", "new.csv", "--intervals", "conformal")
    assert unknown.code == 2
    assert "unknown kind of intervals 'conformal'" in unknown.err


@pytest.mark.parametrize("asked", [[], ["--error-bars"]])
def test_a_run_that_was_cut_short_still_says_the_error_on_unseen_policies(
    rposst: Run, results: Path, asked: list[str]
) -> None:
    solved = rposst("solve", "results.csv", "--size", "2", "--time-limit", "0", "--out", "test.json", *asked)
    assert solved.code == 0, solved.err
    assert "the time limit" in solved.out
    said = " ".join(solved.out.split())
    assert "unseen policies off by about" in said
    assert "in the file's units (policies left out in 10 folds by local-search)" in said
    back = error_bars.read_left_out(results.parent / "test.json")
    assert back is not None and back.made_by == "local-search"
    shown = " ".join(rposst("score", "test.json", "new.csv").out.split())
    assert "Intervals (jackknife, policies left out in 10 folds by local-search)" in shown


def test_what_was_found_is_shown_if_an_interrupt_comes_after_it(
    rposst: Run, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_bars, "solve", lambda *arguments, **options: solved_until(ro.Limit.INTERRUPT))
    solved = rposst("solve", "results.csv", "--size", "2")
    assert solved.code == 0
    assert "unseen policies  not known" in solved.out
    assert "not worked out: an interrupt came before" in " ".join(solved.err.split())


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
