"""``rposst backends`` and ``rposst agree``, as a user meets them."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from sample_files import write_random_table

import rposst_opt as ro
from rposst_opt import backends

pytestmark = pytest.mark.usefixtures("compiled_kernels")


class TestBackends:
    def test_the_table_for_people_names_every_backend(self, rposst: Run) -> None:
        outcome = rposst("backends")
        assert (outcome.code, outcome.told) == (0, "")
        for name in ro.BACKENDS:
            assert name in outcome.out

    def test_json_says_what_each_handles_and_proves(self, rposst: Run) -> None:
        record = rposst("backends", "--json").json
        assert [row["name"] for row in record["backends"]] == list(ro.BACKENDS)
        for row in record["backends"]:
            assert row["installed"] is (row["install"] is None)
            assert row["handles"]
            assert row["proves"]
            assert isinstance(row["finds_optimum"], bool)
            assert row["tolerance"] >= 0
            assert "solves_this" not in row

    def test_with_a_problem_it_is_said_who_can_solve_it(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 4, 2)
        options = ("results.csv", "--size", "2", "--loss", "squared", "--k", "2", "--n", "3")
        record = rposst("backends", *options, "--json").json
        able = [row["name"] for row in record["backends"] if row["solves_this"]]
        assert "regret-matching" in able
        assert record["auto"] in able
        assert all((row["why_not"] is None) == row["solves_this"] for row in record["backends"])
        outcome = rposst("backends", *options)
        assert (outcome.code, outcome.told) == (0, "")
        assert "auto" in outcome.out


class AlwaysCertain:
    """A backend that claims to have proved more than is true."""

    capabilities = ro.Capabilities(
        method="wishful thinking",
        handles=frozenset(ro.Need),
        finds_optimum=True,
        proves="anything",
        tolerance=1e-9,
    )

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        weights = np.full(problem.n_chosen, 1 / problem.n_chosen)
        test = problem.test(cases=range(problem.n_chosen), weights=weights)
        return ro.Candidate(test=test, lower_bound=problem.objective(test))


class TestAgree:
    @pytest.fixture(autouse=True)
    def table(self, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 5)

    @pytest.mark.slow
    def test_every_backend_is_listed_and_they_agree(self, rposst: Run, tmp_path: Path) -> None:
        outcome = rposst("agree", "results.csv", "--size", "2", "--json", "--csv", "table.csv")
        record = outcome.json
        assert record["format"] == "rposst-agreement/1"
        assert record["agreed"] is True
        witnesses = [name for name, entry in backends.BACKENDS.items() if not entry.capabilities.is_heuristic]
        assert [row["backend"] for row in record["backends"]] == witnesses
        answered = [row for row in record["backends"] if row["objective"] is not None]
        assert len(answered) >= 8
        assert {row["verdict"] for row in answered} <= {"agrees", "ties"}
        assert all(row["version"] for row in answered)
        with open(tmp_path / "table.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["backend"] for row in rows] == witnesses
        assert [json.loads(row["cases"]) for row in rows if row["cases"]] == [row["cases"] for row in answered]

    def test_people_see_a_table_and_why_some_did_not_answer(self, rposst: Run) -> None:
        outcome = rposst("agree", "results.csv", "--size", "2", "--loss", "squared")
        assert outcome.code == 0
        assert "cvxpy-clarabel" in outcome.out
        assert "scipy-milp, cannot state this problem: it does not handle a loss with curvature" in outcome.out
        assert "agree." in outcome.out

    def test_a_liar_is_named_and_the_exit_code_is_one(self, rposst: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(backends.BACKENDS, "certain", backends.Entry(__name__, "AlwaysCertain"))
        outcome = rposst("agree", "results.csv", "--size", "2", "--backends", "scipy-milp, certain")
        assert outcome.code == 1
        assert "certain, disagrees: its lower bound" in outcome.out
        assert "refuted by scipy-milp" in outcome.out
        assert "No agreement: certain." in outcome.out

    def test_every_set_of_cases_is_compared_when_asked(self, rposst: Run) -> None:
        names = "regret-matching,scipy-milp"
        record = rposst("agree", "results.csv", "--size", "2", "--backends", names, "--by-tuple", "--json").json
        alone = [row for row in record["backends"] if row["only_cases"] is not None]
        assert len(alone) == 2 * 15
        assert all(row["cases"] == row["only_cases"] for row in alone)

    def test_an_unknown_backend_is_refused(self, rposst: Run) -> None:
        outcome = rposst("agree", "results.csv", "--size", "2", "--backends", "nobody")
        assert (outcome.code, outcome.out) == (2, "")
        assert "unknown backend 'nobody'" in outcome.err
