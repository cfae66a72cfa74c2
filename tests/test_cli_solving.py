"""``rposst demo``, ``solve``, ``score``, ``verify`` and ``export``, as a user meets them."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import highspy
import numpy as np
import pytest
from commands import Run, has_traceback, run_process, strict_json
from contract import KEYS_OF_THE_CONTRACT
from sample_files import files_in, write_random_table, write_table

import rposst_opt as ro
from rposst_opt import backends

pytestmark = pytest.mark.usefixtures("compiled_kernels")


class TestDemo:
    def test_it_shows_a_chosen_test_and_what_is_known_about_it(self, rposst: Run, tmp_path: Path) -> None:
        outcome = rposst("demo")
        assert (outcome.code, outcome.told) == (0, "")
        weights = [float(weight) for weight in re.findall(r"follower-\d{3}\s+│\s+([\d.]+)", outcome.out)]
        assert len(weights) == 3
        assert sum(weights) == pytest.approx(1, abs=2e-4)
        facts = {
            label: float(re.findall(rf"^{label}\s+([\d.e+-]+)", outcome.out, re.MULTILINE)[0])
            for label in ("objective", "lower bound", "gap")
        }
        assert 0 <= facts["lower bound"] <= facts["objective"] < 0.5
        assert facts["gap"] == pytest.approx(facts["objective"] - facts["lower bound"], abs=1e-4)
        assert os.listdir(tmp_path) == []


class TestSolve:
    def test_the_table_for_people_has_the_test_and_what_is_known_about_it(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 4)
        found = rposst("solve", "results.csv", "--size", "2", "--json").json
        outcome = rposst("solve", "results.csv", "--size", "2")
        assert outcome.code == 0
        assert outcome.told == ""
        for name, weight in zip(found["cases"], found["weights"], strict=True):
            assert re.search(rf"\b{name}\b\D+{weight:.4f}", outcome.out)
        for label, key in (("objective", "objective"), ("lower bound", "lower_bound"), ("gap", "gap")):
            shown = re.search(rf"^{label}\s+(\S+)", outcome.out, re.MULTILINE)
            assert shown is not None
            assert float(shown[1]) == pytest.approx(found[key], rel=1e-2, abs=1e-12)

    def test_json_is_one_strict_object_with_the_keys_of_the_contract(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 4)
        outcome = rposst("solve", "results.csv", "--size", "2", "--json")
        record = outcome.json
        assert outcome.told == ""
        for key, kind in KEYS_OF_THE_CONTRACT.items():
            assert type(record[key]) is kind, key
        assert record["format"] == "rposst-test/1"
        assert (record["size"], record["n_cases"], record["n_policies"], record["n_scenarios"]) == (2, 6, 4, 4)
        assert len(record["cases"]) == len(record["weights"]) == 2
        assert sum(record["weights"]) == pytest.approx(1)
        assert min(record["weights"]) >= 0
        assert record["lower_bound"] <= record["objective"]
        assert record["gap"] == pytest.approx(record["objective"] - record["lower_bound"])
        assert record["status"] in ("optimal", "feasible")
        assert record["backend"] in ro.BACKENDS
        assert record["limit"] is None

    def test_the_objective_is_the_packages_own(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 4)
        record = rposst("solve", "results.csv", "--size", "2", "--betas", "0,1,4", "--json").json
        scaled, scale = ro.rescale(np.random.default_rng(0).random((6, 4)))
        problem = ro.Problem(
            results=scaled,
            size=2,
            targets=ro.softmax_targets(scaled, betas=(0, 1, 4)),
            case_names=[f"c{i}" for i in range(6)],
        )
        test = problem.test(cases=record["cases"], weights=record["weights"])
        assert record["objective"] == pytest.approx(problem.objective(test))
        assert record["scale"] == {"low": scale.low, "high": scale.high}
        assert record["n_scenarios"] == 12

    def test_the_file_has_the_same_object_as_standard_output(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 4)
        printed = rposst("solve", "results.csv", "--size", "2", "--out", "test.json", "--json").json
        written = strict_json((tmp_path / "test.json").read_text(encoding="utf-8"))
        again = rposst("solve", "results.csv", "--size", "2", "--json").json
        assert written == printed
        assert {**again, "seconds": 0} == {**printed, "seconds": 0}
        assert sorted(os.listdir(tmp_path)) == ["results.csv", "test.json"]

    def test_the_file_is_written_beside_the_table_for_people_and_replaces_an_old_one_only_by_force(
        self, rposst: Run, crossed: Path
    ) -> None:
        (crossed / "test.json").write_text("old")
        refused = rposst("solve", "crossed.csv", "--size", "2", "--out", "test.json")
        assert (refused.code, refused.out) == (2, "")
        assert "test.json exists already, and is not written over: name another, or give --force." in refused.err
        assert (crossed / "test.json").read_text() == "old"
        outcome = rposst("solve", "crossed.csv", "--size", "2", "--out", "test.json", "--force")
        assert outcome.code == 0 and "wrote test.json\n" in outcome.err
        assert "down" in outcome.out
        assert strict_json((crossed / "test.json").read_text())["cases"] == ["up", "down"]

    def test_nothing_is_written_unless_asked_for(self, rposst: Run, crossed: Path) -> None:
        rposst("solve", "crossed.csv", "--size", "1")
        assert os.listdir(crossed) == ["crossed.csv"]

    def test_without_a_test_the_exit_code_is_one_and_no_file_is_written(
        self, rposst: Run, crossed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def find_nothing(problem: ro.Problem, backend: str, **options: object) -> ro.Solution:
            candidate = ro.Candidate(test=None, lower_bound=-math.inf, limit=ro.Limit.TIME)
            return backends.judge(problem, candidate, "regret-matching", 0.0, 0.0)

        monkeypatch.setattr(backends, "solve", find_nothing)
        for_people = rposst("solve", "crossed.csv", "--size", "1", "--out", "test.json")
        assert for_people.code == 1
        assert "the time limit" in for_people.out
        outcome = rposst("solve", "crossed.csv", "--size", "1", "--out", "test.json", "--json")
        assert outcome.code == 1
        record = strict_json(outcome.out)
        assert (record["cases"], record["weights"], record["status"]) == ([], [], "no_test")
        assert (record["objective"], record["lower_bound"], record["gap"]) == (None, None, None)
        assert os.listdir(crossed) == ["crossed.csv"]

    @pytest.mark.slow
    def test_the_installed_command_prints_only_json(self, crossed: Path) -> None:
        outcome = run_process("solve", "crossed.csv", "--size", "1", "--json", "--out", "test.json", folder=crossed)
        assert outcome.code == 0
        assert outcome.json["objective"] == pytest.approx(0.5)
        assert not has_traceback(outcome.err)
        assert sorted(os.listdir(crossed)) == ["crossed.csv", "test.json"]

    @pytest.mark.slow
    def test_a_module_can_be_run_as_well(self, crossed: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "rposst_opt", "solve", "missing.csv", "--size", "1"],
            cwd=crossed,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("rposst: ")
        assert len(done.stderr.splitlines()) == 1


class TestScore:
    @pytest.fixture
    def test_of_two(self, tmp_path: Path) -> Path:
        record = {"format": "rposst-test/1", "cases": ["b", "a"], "weights": [0.75, 0.25]}
        (tmp_path / "test.json").write_text(json.dumps(record))
        return tmp_path

    def test_scores_are_weights_times_rows_and_ties_share_a_rank(self, rposst: Run, test_of_two: Path) -> None:
        (test_of_two / "new.csv").write_text("case,low,top,mid,tied\na,0,8,4,1\nother,9,9,9,9\nb,1,4,0,1\n")
        outcome = rposst("score", "test.json", "new.csv", "--json")
        assert outcome.told == ""
        assert [(row["rank"], row["policy"], row["score"]) for row in outcome.json["scores"]] == [
            (1, "top", 5.0),
            (2, "mid", 1.0),
            (2, "tied", 1.0),
            (4, "low", 0.75),
        ]

    def test_the_table_for_people_has_ranks_names_and_scores(self, rposst: Run, test_of_two: Path) -> None:
        (test_of_two / "new.csv").write_text("case,low,top,[b]mid[/b],tied\na,0,8,4,1\nb,1,4,0,1\n")
        outcome = rposst("score", "test.json", "new.csv")
        assert (outcome.code, outcome.told) == (0, "")
        rows = [re.findall(r"[^│\s]+", line) for line in outcome.out.splitlines() if line.startswith("│")]
        assert rows == [["1", "top", "5"], ["2", "[b]mid[/b]", "1"], ["2", "tied", "1"], ["4", "low", "0.75"]]

    def test_policies_with_the_same_results_share_a_rank_wherever_they_stand(self, rposst: Run, tmp_path: Path) -> None:
        rng = np.random.default_rng(2)
        cases, policies = [f"c{i}" for i in range(11)], [f"p{j}" for j in range(35)]
        for _ in range(10):
            weights, results = rng.dirichlet(np.ones(11)).tolist(), rng.random(11).tolist()
            record = {"format": "rposst-test/1", "cases": cases, "weights": weights}
            (tmp_path / "test.json").write_text(json.dumps(record))
            write_table(tmp_path / "new.csv", cases, policies, [[result] * 35 for result in results])
            assert {row["rank"] for row in rposst("score", "test.json", "new.csv", "--json").json["scores"]} == {1}

    def test_other_rows_may_have_blanks(self, rposst: Run, test_of_two: Path) -> None:
        (test_of_two / "new.csv").write_text("case,p,q\nother,,\na,0,4\nanother,n/a\nb,4,0\n")
        scores = rposst("score", "test.json", "new.csv", "--json").json["scores"]
        assert {row["policy"]: row["score"] for row in scores} == {"p": 3.0, "q": 1.0}

    @pytest.mark.parametrize(
        ("table", "words"),
        [
            ("case,p\na,1\n", ["'b'"]),
            ("case,p\nother,1\n", ["'a'", "'b'"]),
            ("case,p\na,1\nb,\n", ["new.csv", "'b'", "'p'", "empty"]),
            ("case,p\na,1\nb,nan\n", ["new.csv", "'b'", "'p'", "missing"]),
            ("case,p\na,1\nb,inf\n", ["new.csv", "'b'", "'p'", "finite"]),
            ("case,p\na,1\nb,2\nb,3\n", ["new.csv", "'b'", "more than once"]),
        ],
    )
    def test_a_case_that_the_test_needs_must_be_there(
        self, rposst: Run, test_of_two: Path, table: str, words: list[str]
    ) -> None:
        (test_of_two / "new.csv").write_text(table)
        before = files_in(test_of_two)
        outcome = rposst("score", "test.json", "new.csv")
        assert (outcome.code, outcome.out) == (2, "")
        assert len(outcome.told.splitlines()) == 1
        for word in words:
            assert word in outcome.err
        assert files_in(test_of_two) == before

    def test_what_solve_wrote_score_reads(self, rposst: Run, tmp_path: Path) -> None:
        names = [
            "<script>alert(1)</script>",
            "../x",
            "a,b",
            'he said "hi"',
            "two\nlines",
            " 🙂 ",
            "nan",
            "[red]x[/red]",
        ]
        numbers = np.random.default_rng(3).random((8, 5))
        write_table(tmp_path / "results.csv", names, list("pqrst"), numbers.tolist())
        found = rposst("solve", "results.csv", "--size", "3", "--out", "test.json", "--json").json
        scores = rposst("score", "test.json", "results.csv", "--json").json["scores"]
        chosen = [names.index(name) for name in found["cases"]]
        expected = dict(zip("pqrst", np.array(found["weights"]) @ numbers[chosen], strict=True))
        assert {row["policy"]: row["score"] for row in scores} == pytest.approx(expected)
        assert [row["policy"] for row in scores] == sorted(expected, key=lambda policy: -expected[policy])

    def test_scores_are_in_the_units_of_the_file(self, rposst: Run, crossed: Path) -> None:
        rposst("solve", "crossed.csv", "--size", "2", "--out", "test.json")
        scores = rposst("score", "test.json", "crossed.csv", "--json").json["scores"]
        assert [row["score"] for row in scores] == pytest.approx([20.0, 20.0], abs=0.5)


class TestRankingsAndProofs:
    @pytest.fixture(autouse=True)
    def table(self, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 9, 6)

    def test_the_best_few_sets_of_cases_are_listed(self, rposst: Run) -> None:
        record = rposst("solve", "results.csv", "--size", "2", "--top", "3", "--json").json
        ranking = record["ranking"]
        assert [len(entry["cases"]) for entry in ranking] == [2, 2, 2]
        assert ranking[0]["objective"] == record["objective"]
        assert [entry["objective"] for entry in ranking] == sorted(entry["objective"] for entry in ranking)
        outcome = rposst("solve", "results.csv", "--size", "2", "--top", "3")
        assert "The best 3 sets of cases" in outcome.out
        for entry in ranking:
            assert f"{entry['objective']:.9g}" in outcome.out
            assert all(name in outcome.out for name in entry["cases"])

    def test_all_sets_that_are_tied_are_listed(self, rposst: Run, tmp_path: Path) -> None:
        write_table(tmp_path / "twins.csv", ["a", "b", "c"], ["p", "q"], [[0, 1], [0, 1], [1, 0]])
        record = rposst("solve", "twins.csv", "--size", "2", "--all-optimal", "--json").json
        assert [entry["cases"] for entry in record["ranking"]] == [["a", "c"], ["b", "c"]]
        assert "ranking" not in rposst("solve", "twins.csv", "--size", "2", "--json").json

    def test_a_proof_is_written_and_verified(self, rposst: Run) -> None:
        solved = rposst("solve", "results.csv", "--size", "3", "--certificate", "proof.json", "--json").json
        outcome = rposst("verify", "results.csv", "proof.json", "--size", "3")
        assert outcome.code == 0
        assert "The proof holds" in outcome.out
        assert "all 84 sets" in outcome.out
        record = rposst("verify", "results.csv", "proof.json", "--size", "3", "--json").json
        assert record["holds"] is True
        assert record["n_checked"] == record["n_tuples"] == 84
        assert record["bound"] == pytest.approx(solved["objective"], abs=1e-9)

    def test_a_proof_of_something_else_does_not_hold(self, rposst: Run) -> None:
        rposst("solve", "results.csv", "--size", "2", "--certificate", "proof.json")
        outcome = rposst("verify", "results.csv", "proof.json", "--size", "4")
        assert (outcome.code, outcome.out) == (2, "")
        assert "this is a proof about another problem (other size): " in outcome.err

    def test_an_older_proof_that_names_no_problem_is_checked_by_its_cuts_alone(
        self, rposst: Run, tmp_path: Path
    ) -> None:
        rposst("solve", "results.csv", "--size", "2", "--certificate", "proof.json")
        record = json.loads((tmp_path / "proof.json").read_text())
        (tmp_path / "proof.json").write_text(
            json.dumps({name: value for name, value in record.items() if not name.startswith("problem")})
        )
        outcome = rposst("verify", "results.csv", "proof.json", "--size", "2")
        assert (outcome.code, "The proof holds" in outcome.out) == (0, True)
        assert "proof.json does not say which problem it is about" in outcome.err
        outcome = rposst("verify", "results.csv", "proof.json", "--size", "4")
        assert (outcome.code, "does not hold" in outcome.out) == (1, True)
        assert rposst("verify", "results.csv", "proof.json", "--size", "4", "--json").code == 1

    def test_without_a_whole_proof_nothing_is_written(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "big.csv", 100, 40)
        outcome = rposst("solve", "big.csv", "--size", "7", "--time-limit", "0", "--certificate", "proof.json")
        assert outcome.code == 0
        assert "proof.json was not written" in outcome.err
        assert not (tmp_path / "proof.json").exists()

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--top", "0"), "whole number from 1"),
            (("--top", "2", "--all-optimal"), "exclude each other"),
            (("--top", "2", "--backend", "scipy-milp"), "no option --top. It has: "),
            (("--top", "2", "--rounds", "5"), "together"),
            (("--certificate", "results.csv"), "read as input"),
            (("--certificate", "missing/proof.json"), "does not exist"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, rposst: Run, options: tuple[str, ...], words: str) -> None:
        outcome = rposst("solve", "results.csv", "--size", "2", *options)
        assert (outcome.code, outcome.out) == (2, "")
        assert words in outcome.err
        assert len(outcome.told.splitlines()) == 1

    def test_rounds_alone_ask_for_the_game(self, rposst: Run) -> None:
        assert rposst("solve", "results.csv", "--size", "2", "--rounds", "7", "--json").json["backend"] == (
            "regret-matching"
        )


class TestOtherGamesAndBaselines:
    @pytest.mark.parametrize(
        "backend",
        [
            "sampled-regret-matching",
            "simultaneous",
            "minimax-uniform",
            "minimax-ttd-uniform",
            "minimax-tnp-uniform",
            "miniaverage-uniform",
            "iterative-minimax",
            "kmeans-anchors",
            "random",
        ],
    )
    def test_each_works_from_the_command_line_and_claims_nothing(
        self, rposst: Run, tmp_path: Path, backend: str
    ) -> None:
        write_random_table(tmp_path / "results.csv", 8, 6)
        record = rposst("solve", "results.csv", "--size", "2", "--backend", backend, "--json").json
        assert record["backend"] == backend
        assert len(record["cases"]) == 2
        assert record["status"] == "feasible"
        assert record["lower_bound"] is None and record["gap"] is None
        shown = rposst("solve", "results.csv", "--size", "2", "--backend", backend)
        assert shown.code == 0
        assert "nothing is proved" in shown.out

    def test_a_seed_is_passed_on(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 30, 6)
        command = ("solve", "results.csv", "--size", "3", "--backend", "random", "--json", "--seed")
        drawn = [rposst(*command, seed).json["cases"] for seed in ("1", "1", "2")]
        assert drawn[0] == drawn[1] != drawn[2]


class TestExport:
    @pytest.fixture(autouse=True)
    def table(self, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 5)

    @pytest.mark.parametrize("name", ["model.mps", "model.lp"])
    def test_another_solver_finds_the_same_optimum(self, rposst: Run, tmp_path: Path, name: str) -> None:
        assert rposst("export", "results.csv", "--size", "2", "--out", name).code == 0
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.readModel(str(tmp_path / name))
        solver.run()
        expected = rposst("solve", "results.csv", "--size", "2", "--backend", "scipy-milp", "--json").json
        assert solver.getInfo().objective_function_value == pytest.approx(expected["objective"], abs=1e-6)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (("--out", "model.txt"), ".mps or .lp"),
            (("--out", "results.csv"), "read as input"),
            (("--out", "model.mps", "--loss", "squared"), "curvature"),
            (("--out", "missing/model.mps"), "does not exist"),
        ],
    )
    def test_what_cannot_be_written_is_refused(
        self, rposst: Run, tmp_path: Path, options: tuple[str, ...], words: str
    ) -> None:
        before = files_in(tmp_path)
        outcome = rposst("export", "results.csv", "--size", "2", *options)
        assert (outcome.code, outcome.out) == (2, "")
        assert words in outcome.err
        assert len(outcome.told.splitlines()) == 1
        assert files_in(tmp_path) == before
