"""The benchmarks' own checks: that they would notice a wrong answer, and that a small run goes through."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import grid, report, unseen
from rposst_opt import backends
from rposst_opt.backends import forecast
from rposst_opt.backends.synthetic import SyntheticProblem, draw_synthetic
from rposst_opt.contract import Budget, Candidate, Capabilities

ROOT = Path(__file__).parent.parent
SMALL = SyntheticProblem("binary", 12, 2, 6, 1, "cvar-0.01", "absolute", 3)


def rows(*answers: tuple[str, str, float, float]) -> pd.DataFrame:
    columns = ["backend", "status", "objective", "lower_bound"]
    return pd.DataFrame([{**SMALL.__dict__, **dict(zip(columns, answer, strict=True))} for answer in answers])


def test_answers_that_fit_together_pass() -> None:
    grid.check(rows(("exact", "optimal", 0.5, 0.5), ("random", "feasible", 0.9, -np.inf), ("a", "killed", 0.1, 0.0)))


@pytest.mark.parametrize(
    "answers",
    [
        [("exact", "optimal", 0.5, 0.5), ("liar", "optimal", 0.4, 0.4)],
        [("exact", "optimal", 0.5, 0.5), ("liar", "feasible", 0.6, 0.55)],
    ],
)
def test_answers_that_contradict_each_other_do_not(answers: list[tuple[str, str, float, float]]) -> None:
    with pytest.raises(AssertionError):
        grid.check(rows(*answers))


def test_a_run_has_a_process_of_its_own_and_is_judged() -> None:
    record = grid.run_apart(SMALL, "exact", 5.0)
    assert record["status"] == "optimal"
    assert record["relative_gap"] <= 1e-9
    assert record["megabytes"] > 10


class Crasher:
    """A backend that takes its process down."""

    capabilities = Capabilities(
        method="none", handles=SMALL.problem().needs, finds_optimum=True, proves="nothing", tolerance=1e-9
    )

    def solve(self, problem: object, budget: Budget) -> Candidate:
        import os

        os._exit(3)


class Hog(Crasher):
    """A backend that wants more memory than there is."""

    def solve(self, problem: object, budget: Budget) -> Candidate:
        np.ones(2 * grid.GIGABYTES * 2**30 // 8)
        raise AssertionError("there should be no room for this")


class Liar(Crasher):
    """A backend that claims a bound above its own answer."""

    def solve(self, problem: object, budget: Budget) -> Candidate:
        stated = SMALL.problem()
        return Candidate(test=stated.test(cases=[0, 1], weights=[0.5, 0.5]), lower_bound=1e9)


@pytest.mark.parametrize("kind", [Crasher, Hog])
def test_a_run_that_dies_is_told_and_takes_nobody_along(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.BACKENDS, "dying", backends.Entry(kind.__module__, kind.__name__))
    monkeypatch.setattr(backends.Entry, "load", lambda entry: kind)
    assert grid.run_apart(SMALL, "dying", 5.0)["status"] == "killed"


def test_a_run_that_is_content_with_its_gap_was_not_cut_short() -> None:
    content = {"backend": "pulp-cbc", "status": "feasible", "gap": 0.02, "proved": True}
    assert not grid._was_cut_short(content)
    assert grid._was_cut_short({**content, "proved": False})
    assert not grid._was_cut_short({**content, "proved": False, "backend": "random"})
    assert not grid._was_cut_short({**content, "proved": False, "status": "not run"})


def test_a_backend_that_breaks_its_contract_fails_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.BACKENDS, "dying", backends.Entry(Liar.__module__, "Liar"))
    monkeypatch.setattr(backends.Entry, "load", lambda entry: Liar)
    record = grid.run_apart(SMALL, "dying", 5.0)
    assert record["status"] == "failed"
    with pytest.raises(AssertionError):
        grid.check(pd.DataFrame([record]))


def test_only_much_larger_problems_are_without_hope() -> None:
    record = {**SMALL.__dict__, "backend": "pulp-cbc", "tuples": SMALL.problem().n_tuples}  # 66
    larger = SyntheticProblem("binary", 20, 3, 6, 4, "cvar-0.01", "absolute", 3)  # 1,140
    similar = SyntheticProblem("binary", 24, 2, 6, 4, "cvar-0.01", "absolute", 3)  # 276
    assert grid.is_hopeless(larger, record)
    assert grid.is_hopeless(similar, record)
    assert not grid.is_hopeless(SMALL, record)
    assert not grid.is_hopeless(SyntheticProblem("binary", 24, 2, 6, 4, "mean", "absolute", 3), record)
    assert not grid.is_hopeless(SyntheticProblem("binary", 24, 2, 5, 1, "cvar-0.01", "absolute", 3), record)
    assert not grid.is_hopeless(larger, {**record, "backend": "exact"})
    assert not grid.is_hopeless(larger, {**record, "backend": "pulp-highs"})


def test_choices_are_judged_by_recorded_times(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(forecast.VARIABLE, str(tmp_path / "none.csv"))
    easy, hard = draw_synthetic(2, 9)
    made = []
    for instance, times in ((easy, {"exact": 0.001, "pulp-cbc": 0.02}), (hard, {"exact": 4.0, "pulp-cbc": 1.0})):
        for backend, seconds in times.items():
            made.append(
                {**instance.__dict__, "backend": backend, "seconds": seconds, "status": "optimal", "split": "check"}
            )
    monkeypatch.setattr(report, "choose_backend", lambda problem: type("Choice", (), {"backend": "exact"}))
    judged = report.judged_choices(pd.DataFrame(made))
    assert judged["ratio"].tolist() == [1.0, 4.0]  # times under 50 ms count as 50 ms
    assert judged["fastest"].tolist() == ["exact", "pulp-cbc"]


@pytest.mark.slow
def test_a_small_grid_of_all_backends_fits_together() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.grid", "--smoke"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "their answers fit together" in done.stdout


def test_regret_is_the_recommended_error_over_the_best_ways_in_hindsight() -> None:
    place = {"table": "t", "size": 3, "kind": "alike"}
    trials = pd.DataFrame(
        [
            place | {"replica": r, "selection": s, "estimator": "weights", "mean_error": e, "is_recommended": chosen}
            for r, s, e, chosen in [
                (0, "a", 1.0, False),
                (0, "b", 3.0, True),
                (1, "a", 3.0, True),
                (1, "b", 5.0, False),
            ]
        ]
    )
    assert unseen.regrets(trials)["regret"].tolist() == [0.5]  # 3 on average, and always `a` has 2
    assert dict(zip(*unseen.rivals(trials)[["selection", "ratio"]].to_numpy().T, strict=True)) == {"a": 1.0, "b": 2.0}


def test_intervals_are_counted_on_held_out_policies() -> None:
    rng = np.random.default_rng(0)
    results = rng.normal(size=20) + rng.normal(size=(6, 20)) / 4
    ((_, tuning, held_out),) = unseen.random_splits(20, 1)
    assert sorted([*tuning, *held_out]) == list(range(20)) and len(held_out) == 4
    found = {(row["estimator"], row["way"]): row for row in unseen.coverage("t", results, 2, True, 0, tuning, held_out)}
    ways = ["jackknife", "between ranks", "tuning", "jackknife+", "halfway"]
    assert [way for estimator, way in found if estimator == "weights"] == ways
    assert [way for estimator, way in found if estimator == "ridge"] == ways[:3]
    width = {way: found["weights", way]["width"] for way in ways}
    assert width["tuning"] < width["between ranks"] < width["jackknife"]  # 0.9 · 17 is no whole number
    assert width["halfway"] == pytest.approx((width["jackknife"] + width["jackknife+"]) / 2)
    assert all(0 <= row["covered"] <= row["policies"] == 4 for row in found.values())
    assert found["weights", "tuning"]["covered"] <= found["weights", "jackknife"]["covered"]


def test_where_policies_are_many_all_but_those_that_are_tuned_on_are_held_out() -> None:
    assert [len(held_out) for _, _, held_out in unseen.random_splits(83, 2)] == [19, 19]
    assert len(list(unseen.random_splits(83))) == 32  # 31 of them would hold out 589
    assert len(list(unseen.random_splits(448))) == unseen.FEWEST_REPLICAS


def test_shares_that_are_covered_have_their_error_over_replicas() -> None:
    place = {"table": "t", "size": 3, "offset": False, "estimator": "weights", "policies": 4}
    trials = pd.DataFrame(
        [
            place | {"replica": replica, "way": way, "covered": covered, "width": width}
            for way, rows in {"jackknife": [(4, 3.0), (2, 5.0)], "tuning": [(2, 1.0), (2, 3.0)]}.items()
            for replica, (covered, width) in enumerate(rows)
        ]
    )
    found = unseen.shares_covered(trials)
    assert found["way"].tolist() == ["jackknife", "tuning"]
    assert found["policies"].tolist() == [8, 8] and found["replicas"].tolist() == [2, 2]
    assert found["share"].tolist() == [0.75, 0.5]
    assert found["standard_error"].tolist() == [0.25, 0.0]  # half the difference of two shares
    assert found["ratio"].tolist() == [2.0, 1.0]
