"""Several tests that share no cases, against enumeration; and the curve of error against cost."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run
from oracles import cutting_plane_optimum

import rposst_opt as ro
from rposst_opt.backends import forms as forms_module
from rposst_opt.backends.forms import shared_cases
from rposst_opt.reports.budgets import budget_curve, default_budgets


def a_problem(seed: int, **given: Any) -> ro.Problem:
    results = np.random.default_rng(seed).random((9, 5))
    return ro.Problem(results=results, measure=ro.CVaR(0.4), **{"size": 2, **given})


def least_worst(problem: ro.Problem, count: int, overlap: int, sets: list[tuple[int, ...]] | None = None) -> float:
    """The least worst objective of so many sets that share no more than that, by trying all."""
    required = set(problem.required_cases)
    every = list(problem.tuples()) if sets is None else sets
    values = {cases: cutting_plane_optimum(problem, cases, 1e-10) for cases in every}
    best = np.inf
    for chosen in itertools.combinations(sorted(values, key=values.__getitem__), count):
        worst = max(values[cases] for cases in chosen)
        if worst < best and all(
            len(set(one) & set(other) - required) <= overlap for one, other in itertools.combinations(chosen, 2)
        ):
            best = worst
    return best


@pytest.mark.parametrize("method", ["search", "milp"])
@pytest.mark.parametrize(
    ("count", "overlap", "given"),
    [
        (2, 0, {}),
        (3, 0, {}),
        (3, 1, {}),
        (1, 0, {}),
        (2, 0, {"required_cases": [4]}),
        (2, 0, {"costs": np.arange(9) / 4, "budget": 2.0, "conflicts": [(0, 1)]}),
    ],
)
def test_forms_equal_enumeration(method: str, count: int, overlap: int, given: dict[str, Any]) -> None:
    for seed in range(2):
        problem = a_problem(seed, **given)
        forms = ro.make_forms(problem, count, overlap=overlap, method=method)
        assert len(forms.tests) == count and forms.status is ro.Status.OPTIMAL
        assert forms.worst == pytest.approx(least_worst(problem, count, overlap), abs=1e-6)
        assert shared_cases(forms.tests, problem.required_cases) <= overlap
        assert list(forms.objectives) == sorted(problem.objective(test) for test in forms.tests)
        assert all(problem.why_not(test) is None for test in forms.tests)


@pytest.mark.parametrize("method", ["search", "milp"])
def test_forms_keep_away_from_tests_that_were_used_before(method: str) -> None:
    problem = a_problem(3)
    used = ro.solve(problem).test
    assert used is not None
    forms = ro.make_forms(problem, 2, previous=[used], method=method)
    assert not set(used.cases) & {case for test in forms.tests for case in test.cases}
    free = [cases for cases in problem.tuples() if not set(cases) & set(used.cases)]
    assert forms.worst == pytest.approx(least_worst(problem, 2, 0, free), abs=1e-6)
    by_name = ro.make_forms(problem, 2, previous=[[*used.case_names, "a case of another table"]], method=method)
    assert by_name.worst == pytest.approx(forms.worst, abs=1e-7)


def test_forms_with_limits_to_weights_are_left_to_the_program() -> None:
    problem = a_problem(4, most_weight=0.6)
    with pytest.raises(ro.Unsupported, match="ask for method='milp'"):
        ro.make_forms(problem, 2)
    forms = ro.make_forms(problem, 2, method="milp")
    assert all(test.weights.max() <= 0.6 + 1e-6 for test in forms.tests)


def test_with_an_offset_each_form_has_one() -> None:
    problem = a_problem(5, offset=True)
    by_search, by_milp = (ro.make_forms(problem, 2, method=method) for method in ("search", "milp"))
    assert by_search.worst == pytest.approx(by_milp.worst, abs=1e-6)
    assert all(problem.why_not(test) is None for test in (*by_search.tests, *by_milp.tests))


@pytest.mark.parametrize("method", ["search", "milp"])
def test_too_many_forms_are_refused(method: str) -> None:
    with pytest.raises(ro.Infeasible, match="there are no 5 tests"):
        ro.make_forms(a_problem(0), 5, method=method)


def test_where_ranking_takes_too_long_forms_are_feasible_with_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms_module, "FIRST_RANKED", 2)
    monkeypatch.setattr(forms_module, "MOST_RANKED", 2)
    problem = a_problem(1)
    forms = ro.make_forms(problem, 3)
    assert shared_cases(forms.tests) == 0
    best = least_worst(problem, 3, 0)
    assert forms.lower_bound <= best + 1e-9 <= forms.worst + 2e-9
    assert forms.lower_bound >= ro.solve(problem).objective - 1e-8
    assert (forms.status is ro.Status.OPTIMAL) == (forms.gap < 1e-8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"count": 0}, "`count` must be a whole number from 1 on, got 0"),
        ({"overlap": -1}, "`overlap` must be a whole number from 0 on, got -1"),
        ({"method": "luck"}, "`method` must be 'search' or 'milp', got 'luck'"),
    ],
)
def test_what_makes_no_forms_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ro.ProblemError, match=message):
        ro.make_forms(a_problem(0), **given)


def a_trap() -> ro.Problem:
    """Of four cases, the best pair leaves two that exclude each other."""
    results = np.random.default_rng(0).random((4, 5))
    best = ro.solve(ro.Problem(results=results, size=2)).test
    assert best is not None
    others = tuple(case for case in range(4) if case not in best.cases)
    return ro.Problem(results=results, size=2, conflicts=[others])


def test_where_greed_finds_no_forms_that_is_no_proof_that_there_are_none() -> None:
    problem = a_trap()
    assert len(ro.make_forms(problem, 2).tests) == 2
    with pytest.raises(ro.ProblemError, match="no 2 forms were found within the time") as told:
        ro.make_forms(problem, 2, time_limit_seconds=0.0)
    assert not isinstance(told.value, ro.Infeasible)


def test_a_group_of_the_users_is_not_taken_for_a_previous_test() -> None:
    problem = a_problem(2, groups={"0": "previous test 1", "1": "previous test 1"}, at_least={"previous test 1": 1})
    forms = ro.make_forms(problem, 2, previous=[[4, 5]])
    assert all({0, 1} & set(test.cases) and not {4, 5} & set(test.cases) for test in forms.tests)
    with pytest.warns(ro.RposstWarning, match="a previous test has no case of this problem"):
        ro.make_forms(problem, 2, previous=[["of another table"]])


def test_the_program_refuses_what_it_cannot_state() -> None:
    with pytest.raises(ro.Unsupported, match="noise in the results"):
        ro.make_forms(a_problem(1, noise=0.1), 2, method="milp")


# Errors against costs


def test_each_point_of_the_curve_is_the_best_test_that_its_budget_pays_for() -> None:
    problem = a_problem(6, size=None, costs=[1, 2, 3, 1.5, 2.5, 1, 4, 2, 1], budget=6)
    table = budget_curve(problem)
    assert (np.diff(table["objective"]) <= 1e-12).all() and (table["status"] == "optimal").all()
    assert table["budget"].iloc[0] == 1.0 and table["budget"].iloc[-1] == 6.0
    assert (table["cost"] <= table["budget"] + 1e-9).all()
    for row in table.to_dict("records")[::3]:
        best = ro.solve(problem.with_rules(budget=row["budget"]), "scipy-milp")
        assert row["objective"] == pytest.approx(best.objective, abs=1e-7)


def test_where_a_run_ends_early_the_curve_takes_what_its_neighbours_know(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = a_problem(6, size=None, costs=1.0, budget=4)
    solve = ro.solve

    def tired(asked: ro.Problem, *options: Any, **more: Any) -> ro.Solution:
        solution = solve(asked, *options, **more)
        if asked.rules.budget == 2.0:  # it finds nothing, and proves nothing
            return replace(solution, test=None, objective=np.inf, lower_bound=-np.inf, status=ro.Status.NO_TEST)
        return solution

    monkeypatch.setattr("rposst_opt.reports.questions.solve", tired)
    table = budget_curve(problem, [1.0, 2.0, 3.0])
    assert table["objective"].iloc[1] == table["objective"].iloc[0]
    assert table["lower_bound"].iloc[1] == pytest.approx(table["lower_bound"].iloc[2])
    assert table["status"].tolist() == ["optimal", "feasible", "optimal"]


def test_budgets_begin_with_the_cheapest_test() -> None:
    problem = a_problem(7, size=3, costs=range(1, 10))
    budgets = default_budgets(problem)
    assert budgets[0] == 6.0 and budgets[-1] == 24.0 and len(budgets) == 12
    with pytest.raises(ro.ProblemError, match="needs a problem with `costs`"):
        budget_curve(a_problem(7))
    with pytest.raises(ro.Infeasible, match="a budget of 5"):
        budget_curve(problem, [5, 10])


# On the command line


@pytest.fixture
def files(rposst: Run) -> pd.DataFrame:
    names = [f"case {x}" for x in range(9)]
    frame = pd.DataFrame(np.random.default_rng(8).random((9, 5)), index=names, columns=list("abcde"))
    frame.to_csv("results.csv")
    pd.DataFrame({"case": names, "cost": range(1, 10)}).to_csv("cases.csv", index=False)
    return frame


def test_the_budget_command_prints_draws_and_writes(rposst: Run, files: pd.DataFrame) -> None:
    asked = ["results.csv", "--cases", "cases.csv", "--budgets", "2,5,9"]
    record = rposst("budget", *asked, "--csv", "curve.csv", "--out", "curve.png", "--json").json
    assert [row["budget"] for row in record["budgets"]] == [2, 5, 9]
    problem = ro.Problem.from_results(files, costs=range(1, 10), budget=5)
    best = ro.solve(problem, "scipy-milp")
    assert record["budgets"][1]["objective"] == pytest.approx(best.objective, abs=1e-7)
    assert problem.scale is not None
    assert record["budgets"][1]["error"] == pytest.approx(problem.scale.error_in_file_units(best.objective), abs=1e-7)
    assert list(pd.read_csv("curve.csv")["budget"]) == [2, 5, 9] and Path("curve.png").stat().st_size > 5000
    shown = rposst("budget", *asked[:-1], "4,9", "--size", "2").out
    assert "The best test for each budget" in shown and "optimal" in shown


def test_the_budget_command_needs_costs(rposst: Run, files: pd.DataFrame) -> None:
    outcome = rposst("budget", "results.csv")
    assert outcome.code == 2 and "give --cases with a column `cost`" in outcome.err


def test_the_forms_command_writes_tests_that_can_be_scored(rposst: Run, files: pd.DataFrame) -> None:
    record = rposst("forms", "results.csv", "--size", "2", "--count", "3", "--out", "forms", "--json").json
    assert record["status"] == "optimal" and len(record["forms"]) == 3
    cases = [case for form in record["forms"] for case in form["cases"]]
    assert len(set(cases)) == 6
    for number in (1, 2, 3):
        assert ro.EfficientTest.load(Path(f"forms/form-{number}.json")).case_names == tuple(
            record["forms"][number - 1]["cases"]
        )
    assert rposst("score", "forms/form-3.json", "results.csv", "--json").code == 0
    again = rposst("forms", "results.csv", "--size", "2", "--count", "1", "--previous", "forms/form-1.json")
    assert again.code == 0
    assert not any(case in again.out for case in record["forms"][0]["cases"])
