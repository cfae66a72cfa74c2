"""The benchmarks' own checks: that they would notice a wrong answer, and that a small run goes through."""

import collections
import math
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import pandas as pd
import pytest

import rposst_opt as ro
from benchmarks import grid, hard, hard_ablation, hard_problems, hard_report, players, report, unseen
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


# Hard problems


def test_the_sixty_problems_are_spread_over_families_measures_and_numbers_of_sets() -> None:
    drawn = hard_problems.drawn()
    assert len({each.name for each in drawn}) == 60
    assert set(collections.Counter((each.family, each.measure) for each in drawn).values()) == {3}
    sets = np.array([math.comb(each.n, each.m) for each in drawn]).astype(float).reshape(-1, 3)
    assert (sets[:, 0] < 1e7).all() and (sets[:, 2] >= 1e11).all()
    assert {(40 <= each.n <= 800, 3 <= each.m <= 10) for each in drawn} == {(True, True)}
    assert drawn == hard_problems.drawn()


@pytest.mark.parametrize("family", hard_problems.FAMILIES)
def test_a_hard_problem_is_the_one_that_its_name_says(family: str) -> None:
    drawn = hard_problems.HardProblem(family, 45, 30, 4, 4, "cvar-0.3", seed=1)
    assert drawn.name == f"{family}-45x30-m4-t4-cvar-0.3"
    problem = drawn.problem()
    assert (problem.n_cases, problem.n_policies, problem.size, problem.n_scenarios) == (45, 30, 4, 120)
    assert (problem.results.min(), problem.results.max(), problem.measure) == (0.0, 1.0, ro.CVaR(0.3))


def hard_records(**answers: tuple[str, float, float, float]) -> pd.DataFrame:
    """Records of one problem, from status, objective, bound and seconds of each solver."""
    rows = [
        {"problem": "p", "solver": solver.replace("_", "-"), "without": "", "limit": 60.0, "threads": 2}
        | {"status": status, "objective": objective, "lower_bound": bound, "gap": objective - bound}
        | {"seconds": seconds, "versions": "v", "date": "2026-11-17"}
        for solver, (status, objective, bound, seconds) in answers.items()
    ]
    return pd.DataFrame(rows)


def test_where_the_exact_solver_is_behind_it_is_said() -> None:
    measured = hard_records(
        exact=("feasible", 0.30, 0.20, 60.0),
        pulp_highs=("feasible", 0.31, 0.22, 60.0),
        pulp_gurobi=(hard_report.TOO_LARGE, math.inf, -math.inf, math.nan),
        local_search=("feasible", 0.29, 0.20, 5.0),
    )
    assert hard_report.lost(measured, "pulp-highs", "gap") == ["p"]
    assert hard_report.lost(measured, "pulp-highs", "objective") == []
    assert hard_report.lost(measured, "local-search", "objective") == ["p"]
    text = hard_report.section(measured, "`a command`")
    assert "The gap of `exact` is above that of `pulp-highs` on 1 of 1 problems: p." in text
    assert "The gap of `exact` is above that of `pulp-gurobi` on 0 of 0 problems." in text
    assert (
        "| p | 0.29000 | 0.30000, gap 34.48% | over its licence | 0.31000, gap 31.03% | 0.29000, gap 31.03% |" in text
    )


def test_times_are_compared_where_both_have_proved_the_optimum() -> None:
    both = hard_records(exact=("optimal", 0.3, 0.3, 2.0), pulp_highs=("optimal", 0.3, 0.3, 18.0))
    other = hard_records(exact=("optimal", 0.3, 0.3, 1.0), pulp_highs=("optimal", 0.3, 0.3, 4.0)).assign(problem="q")
    open_one = hard_records(exact=("optimal", 0.3, 0.3, 1.0), pulp_highs=("feasible", 0.3, 0.2, 60.0)).assign(
        problem="r"
    )
    measured = pd.concat([both, other, open_one])
    ratio, of = hard_report.time_ratio(measured, "pulp-highs")
    assert ratio == pytest.approx(6.0) and of == 2
    text = hard_report.section(measured, "`a command`")
    assert "`exact` proved 3 of 3." in text
    assert "`pulp-highs` proved 2 of the 3 that it was given, and `exact` 3 of these." in text
    assert "Where both proved it (2 problems), `pulp-highs` took 6 times as long as `exact`." in text


def test_a_bound_above_another_solvers_answer_is_not_reported() -> None:
    with pytest.raises(AssertionError):
        hard_report.check(hard_records(exact=("optimal", 0.3, 0.3, 1.0), pulp_highs=("feasible", 0.4, 0.31, 60.0)))


def test_who_begins_changes_from_problem_to_problem() -> None:
    runs = hard.runs_of(["p", "q"], ["exact", "pulp-highs", "local-search"], 60.0, 2)
    assert [run.solver for run in runs] == [
        "exact",
        "pulp-highs",
        "local-search",
        "pulp-highs",
        "local-search",
        "exact",
    ]
    assert {(run.solver, run.limit) for run in runs} == {("exact", 60.0), ("pulp-highs", 60.0), ("local-search", 5.0)}


def test_a_run_goes_on_where_it_was_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    runs = hard.runs_of(["p", "q"], ["exact", "pulp-highs"], 60.0, 2)
    ran: list[hard.Run] = []

    def pretend(run: hard.Run, of_tables: object) -> dict[str, object]:
        if len(ran) == 3:
            raise InterruptedError
        ran.append(run)
        return {"status": "no_test", **hard.NOTHING, "seconds": 60.0, "build_seconds": 0.1}

    monkeypatch.setattr(hard, "run_apart", pretend)
    path = tmp_path / "hard.csv"
    with pytest.raises(InterruptedError):
        hard.measure_missing(path, runs, [])
    assert list(hard.records_of(path, runs)["problem"]) == ["p", "p", "q"]
    del ran[:2]
    hard.measure_missing(path, runs, [])
    assert ran[1:] == runs[3:]
    hard.forget(path, [run for run in runs if run.solver == "exact"])
    kept = hard.records_of(path, runs)
    assert list(kept["solver"]) == ["pulp-highs"] * 2 and (kept["objective"] == math.inf).all()


@pytest.mark.parametrize("what", [[], ["--ablation"]])
def test_without_records_there_is_no_report(what: list[str], tmp_path: Path) -> None:
    options = ["--report", "--only", "independent-40x120", "--out", str(tmp_path / "none.csv")]
    with pytest.raises(SystemExit, match=r"none\.csv has no record of such a run: measure first"):
        hard.main([*options, *what])


def test_a_table_of_ones_own_is_measured_in_a_process_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("case,a,b,c\n" + "".join(f"x{i},{i},{i * i % 7},{5 - i}\n" for i in range(6)))
    out = tmp_path / "out.csv"
    options = ["--table", str(table), "--sizes", "2", "--measures", "mean", "--solvers", "exact", "--out", str(out)]
    hard.main([*options, "--limit", "5", "--threads", "1"])
    assert "`exact` proved 1 of 1." in capsys.readouterr().out
    problem = ro.Problem.from_results(pd.read_csv(table, index_col=0), size=2, betas=(0, 1, 2, 4), measure=ro.Mean())
    assert hard.read_records(out)["objective"].tolist() == pytest.approx([ro.solve(problem, "exact").objective])


@pytest.mark.parametrize("ingredient", hard_ablation.INGREDIENTS)
def test_without_any_one_ingredient_the_optimum_is_the_same(ingredient: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SMALL.problem()
    expected = ro.solve(problem, "exact")
    for change in hard_ablation.INGREDIENTS[ingredient]:
        owner, name = (resolve_name(change.owner), change.name) if isinstance(change, hard_ablation.Constant) else EXACT
        monkeypatch.setattr(owner, name, getattr(owner, name))  # puts it back in the end
    hard_ablation.switch_off(ingredient)
    assert ro.solve(problem, "exact").objective == pytest.approx(expected.objective, abs=1e-9)


EXACT = (resolve_name("rposst_opt.solvers.exact"), "Plan")


def test_a_plan_is_made_with_another_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*EXACT, EXACT[0].Plan)
    as_told = dict.fromkeys(EXACT[0].Plan._fields, 1)
    hard_ablation.PlanField("margin", 0.5).change()
    assert EXACT[0].Plan(**as_told)._asdict() == as_told | {"margin": 0.5}


@pytest.mark.parametrize(
    "change", [hard_ablation.Constant("rposst_opt.solvers.exact", "PARROT", 0), hard_ablation.PlanField("parrot", 0)]
)
def test_an_ingredient_that_is_not_there_cannot_be_switched_off(
    change: hard_ablation.Constant | hard_ablation.PlanField,
) -> None:
    with pytest.raises(AttributeError, match=r"(?i)parrot"):
        change.change()


def test_ablation_takes_problems_that_took_a_while_and_then_those_that_are_nearly_proved() -> None:
    proved = [hard_records(exact=("optimal", 0.3, 0.3, 0.1 * place)).assign(problem=f"p{place}") for place in range(40)]
    chosen = hard_ablation.chosen_problems(pd.concat(proved), 60.0)
    assert len(set(chosen)) == 15 and {"p5", "p39"} < set(chosen) and "p4" not in chosen
    unproved = [hard_records(exact=("feasible", 0.3, 0.3 - gap, 60.0)).assign(problem=f"q{gap}") for gap in (0.2, 0.1)]
    assert hard_ablation.chosen_problems(pd.concat([proved[20], *unproved]), 60.0) == ["p20", "q0.1", "q0.2"]


def test_the_report_says_how_much_longer_it_takes_without_an_ingredient() -> None:
    whole = hard_records(exact=("optimal", 0.3, 0.3, 2.0))
    without = hard_records(exact=("feasible", 0.3, 0.27, 60.0)).assign(without="salt")
    text = hard_report.ablation_section(pd.concat([whole, without]), "`a command`")
    assert "| 1 | salt | 1 | 0 | 30.00 | 0.00000 | 0.03000 |" in text
    assert "| p | 2.00 s | 10.00% |" in text


def player_rows(lower_bound: float) -> pd.DataFrame:
    common = {"problem": "p", "restarts": "never", "rounds": 8, "all_rounds": 80, "seconds": 0.5, "objective": 0.5}
    proofs = [{"player": "one", "lower_bound": 0.4, "is_proved": True}]
    proofs += [{"player": "other", "lower_bound": lower_bound, "is_proved": False}]
    return pd.DataFrame([{**common, **proof, "gap": gap} for proof in proofs for gap in players.GAPS])


def test_players_are_held_against_each_other_and_told_in_rounds() -> None:
    players.check(player_rows(0.5))
    with pytest.raises(AssertionError):
        players.check(player_rows(0.51))
    lines = players.table(player_rows(0.5)).splitlines()
    assert lines[2] == "| one | never |" + " 8 (80; 0.5 s) |" * 3
    assert lines[3] == "| other | never |" + " not with 8 |" * 3


def test_a_player_is_given_more_rounds_until_it_has_proved_the_gap() -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((4, 6)), size=3, measure=ro.CVaR(0.3))
    loose, tight = (players.first_proof(problem, "predictive", "best", gap) for gap in (0.1, 1e-3))
    assert loose["is_proved"] and tight["is_proved"]
    assert loose["rounds"] < tight["rounds"]
    assert tight["objective"] - tight["lower_bound"] <= 1e-3 + 1e-12
