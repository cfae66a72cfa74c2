"""Rules on the command line: a case file, a budget, quotas, conflicts and limits to weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run

import rposst_opt as ro

NAMES = ["sum", "proof", "loop", "sort", "haiku", "essay"]
CASES = pd.DataFrame(
    {
        "case": NAMES,
        "cost": [1.0, 4.0, 2.0, 2.5, 0.5, 3.0],
        "group": ["math", "math; hard", "code", "code", "text", "text;hard"],
        "author": "me",
    }
)


@pytest.fixture
def table(rposst: Run) -> pd.DataFrame:
    """Six cases and seven policies, in the folder in which commands run."""
    results = np.random.default_rng(3).random((6, 7))
    frame = pd.DataFrame(results, index=NAMES, columns=[f"p{j}" for j in range(7)])
    frame.to_csv("results.csv")
    CASES.to_csv("cases.csv", index=False)
    return frame


def stated(table: pd.DataFrame, **rules: Any) -> ro.Problem:
    return ro.Problem.from_results(table, costs=CASES["cost"].tolist(), **rules)


def test_a_budget_and_quotas_are_those_of_the_library(rposst: Run, table: pd.DataFrame) -> None:
    given = ["--cases", "cases.csv", "--budget", "5", "--at-least", "math=1", "--at-most", "hard=0"]
    outcome = rposst("solve", "results.csv", "--size", "3", *given, "--json")
    groups = {case: group.replace(" ", "").split(";") for case, group in zip(NAMES, CASES["group"], strict=True)}
    problem = stated(table, size=3, budget=5, groups=groups, at_least={"math": 1}, at_most={"hard": 0})
    best = ro.solve(problem, "scipy-milp")
    record = outcome.json
    assert record["objective"] == pytest.approx(best.objective, abs=1e-7)
    assert record["cost"] <= 5 and record["rules"]["budget"] == 5
    assert record["rules"]["at_least"] == {"math": 1} and record["rules"]["groups"]["hard"] == ["proof", "essay"]
    assert "sum" in record["cases"] and not {"proof", "essay"} & set(record["cases"])
    assert "passed over the columns 'author'" in outcome.err


def test_the_cost_is_shown_beside_the_budget(rposst: Run, table: pd.DataFrame) -> None:
    outcome = rposst("solve", "results.csv", "--cases", "cases.csv", "--budget", "3.5", "--no-error-bars")
    assert "of a budget of 3.5" in outcome.out
    problem = stated(table, budget=3.5)
    best = ro.solve(problem, "scipy-milp")
    record = rposst("solve", "results.csv", "--cases", "cases.csv", "--budget", "3.5", "--json").json
    assert record["objective"] == pytest.approx(best.objective, abs=1e-7)
    assert record["rules"]["size_is"] == "at most"


def test_conflicts_sets_and_limits_to_weights(rposst: Run, table: pd.DataFrame) -> None:
    given = ["--conflict", "sum, haiku", "--together", "loop,sort", "--most-weight", "0.5", "--least-weight", "0.1"]
    record = rposst("solve", "results.csv", "--size", "4", "--up-to", *given, "--json").json
    problem = ro.Problem.from_results(
        table,
        size=4,
        size_is="at most",
        conflicts=[("sum", "haiku")],
        together=[("loop", "sort")],
        most_weight=0.5,
        least_weight=0.1,
    )
    assert record["objective"] == pytest.approx(ro.solve(problem, "cvxpy-clarabel").objective, abs=1e-6)
    assert all(0.1 - 1e-6 <= weight <= 0.5 + 1e-6 for weight in record["weights"])


def test_left_out_tests_keep_the_rules(rposst: Run, table: pd.DataFrame) -> None:
    given = ["--cases", "cases.csv", "--budget", "4", "--size", "2", "--error-bars", "--json"]
    record = rposst("solve", "results.csv", *given).json
    cost_of = dict(zip(NAMES, CASES["cost"], strict=True))
    tests = record["left_out"]
    assert len(tests) == 7
    for test in tests:
        names = [NAMES[position] for position in test["positions"]]
        assert sum(cost_of[name] for name in names) <= 4


def test_an_infeasible_problem_is_explained_and_exits_with_two(rposst: Run, table: pd.DataFrame) -> None:
    given = ["--cases", "cases.csv", "--budget", "4", "--at-least", "math=2"]
    outcome = rposst("solve", "results.csv", "--size", "3", *given)
    assert outcome.code == 2
    said = " ".join(outcome.err.split())
    assert "These cannot hold together: a budget of 4; at least 2 of 'math'." in said
    assert "The cheapest choice that keeps the others costs 5." in said


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--budget", "3"], "a budget goes with what test cases cost: give --cases with a column `cost`"),
        (["--at-least", "math=1"], "--at-least needs --cases with a column `group`"),
        (["--cases", "cases.csv", "--at-least", "math"], "--at-least must be GROUP=NUMBER"),
        (["--cases", "cases.csv", "--at-most", "1", "--at-most", "math=1"], "--at-most 1 is for every group"),
        (["--cases", "cases.csv", "--at-least", "prose=1"], "speaks of the group 'prose', which no test case is in"),
        (["--cases", "cases.csv", "--at-most", "math=1", "--at-most", "math=2"], "has the group 'math' twice"),
        (["--conflict", "sum,nobody"], "unknown test case 'nobody'"),
        (["--cases", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_what_is_no_rule_is_told(rposst: Run, table: pd.DataFrame, given: list[str], message: str) -> None:
    outcome = rposst("solve", "results.csv", "--size", "2", *given)
    assert outcome.code == 2
    assert message in " ".join(outcome.err.split())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (CASES.drop(columns="case"), "the column 'case' is missing, which names the test cases"),
        (CASES.iloc[1:], "the test case 'sum' is missing (1 of 6 are)"),
        (CASES.assign(cost=["1", "", "2", "2", "2", "2"]), "the cost of test case 'proof' is empty"),
        (CASES.assign(cost=["1", "two", "2", "2", "2", "2"]), "the cost of test case 'proof' "),
    ],
)
def test_a_case_file_that_does_not_do_is_told(
    rposst: Run, table: pd.DataFrame, changed: pd.DataFrame, message: str
) -> None:
    changed.to_csv("cases.csv", index=False)
    outcome = rposst("solve", "results.csv", "--size", "2", "--cases", "cases.csv", "--budget", "9")
    assert outcome.code == 2
    assert message in " ".join(outcome.err.split())


def test_without_size_and_budget_it_says_what_is_missing(rposst: Run, table: pd.DataFrame) -> None:
    outcome = rposst("solve", "results.csv")
    assert outcome.code == 2
    assert "--size says how many test cases to choose: give it, or --budget" in " ".join(outcome.err.split())


def test_a_proof_with_rules_is_written_and_verified(rposst: Run, table: pd.DataFrame) -> None:
    given = ["results.csv", "--size", "2", "--cases", "cases.csv", "--budget", "4"]
    rposst("solve", *given, "--out", "test.json", "--certificate", "proof.json")
    assert json.loads(Path("test.json").read_text())["cost"] <= 4
    outcome = rposst("verify", *given[:1], "proof.json", *given[1:], "--test", "test.json")
    assert outcome.code == 0
    other = rposst("verify", *given[:1], "proof.json", *given[1:-1], "9")
    assert other.code == 2
    assert "another problem" in other.out + other.err


def test_validate_leaves_out_who_cannot_and_says_so(rposst: Run, table: pd.DataFrame) -> None:
    given = ["--cases", "cases.csv", "--budget", "4", "--estimators", "weights", "--jobs", "1", "--json"]
    outcome = rposst("validate", "results.csv", "--size", "2", *given)
    assert {row["selection"] for row in outcome.json["summary"]} == {"rposst", "rposst-offset"}
    assert "kmeans was left out: it does not handle rules about the choice" in " ".join(outcome.err.split())


def test_validate_says_that_it_needs_a_size(rposst: Run, table: pd.DataFrame) -> None:
    outcome = rposst("validate", "results.csv", "--cases", "cases.csv", "--budget", "4")
    assert outcome.code == 2 and "--size says how many test cases to choose" in outcome.err
