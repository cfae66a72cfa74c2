import csv
import io
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import highspy
import numpy as np
import pytest
from commands import Outcome, Run, strict_json
from contract import KEYS_OF_THE_CONTRACT

import rposst_opt as ro
from rposst_opt import backends

COMMAND = Path(sys.executable).with_name("rposst")
HEAVY_PACKAGES = ("numpy", "pandas", "numba", "scipy", "cvxpy", "pulp", "matplotlib")
SUB_COMMANDS = ("demo", "solve", "verify", "agree", "export", "score", "backends", "domain", "reproduce")
LONG_RUN = ("big.csv", "--size", "5", "--backend", "regret-matching", "--rounds", "5000", "--json")


@pytest.fixture(scope="module", autouse=True)
def compiled_kernels() -> None:
    """On a fresh machine the kernels are compiled first, and that is announced on standard error."""
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=2)
    ro.solve(problem, "regret-matching", rounds=1)
    ro.solve(problem, "exact")


def run_process(*arguments: str, folder: Path, **environment: str) -> Outcome:
    """Run the installed command as its own process."""
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def write_table(path: Path, cases: Sequence[str], policies: Sequence[str], numbers: Sequence[Sequence[float]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerow(["case", *policies])
    writer.writerows([case, *map(repr, row)] for case, row in zip(cases, numbers, strict=True))
    path.write_bytes(text.getvalue().encode())


def write_random_table(path: Path, n_cases: int, n_policies: int) -> None:
    numbers = np.random.default_rng(0).random((n_cases, n_policies)).tolist()
    write_table(path, [f"c{i}" for i in range(n_cases)], [f"p{j}" for j in range(n_policies)], numbers)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def has_traceback(text: str) -> bool:
    return "Traceback" in text or "Exception ignored" in text


@pytest.fixture
def crossed(tmp_path: Path) -> Path:
    """Two cases that rank two policies in opposite ways, in units of their own: every single case misses by 10."""
    write_table(tmp_path / "crossed.csv", ["up", "down"], ["p", "q"], [[10, 30], [30, 10]])
    return tmp_path


@pytest.fixture
def ladder(tmp_path: Path) -> Path:
    """A case that is always 0 and one that is the whole target: without that one the errors are 0, 0.2, 0.6 and 1."""
    write_table(tmp_path / "ladder.csv", ["zero", "rungs"], ["p", "q", "r", "s"], [[0, 0, 0, 0], [0, 0.2, 0.6, 1]])
    (tmp_path / "on-rungs.csv").write_text("case,t\nzero,0\nrungs,1\n")
    return tmp_path


LADDER = ("solve", "ladder.csv", "--size", "1", "--targets", "on-rungs.csv", "--forbid", "rungs", "--json")


class TestHelp:
    @pytest.mark.parametrize("flag", ["--help", "-h"])
    def test_help_lists_the_commands(self, rposst: Run, flag: str) -> None:
        outcome = rposst(flag)
        assert outcome.code == 0
        assert outcome.err == ""
        for name in SUB_COMMANDS:
            assert name in outcome.out

    @pytest.mark.parametrize("name", SUB_COMMANDS)
    def test_every_command_has_help(self, rposst: Run, name: str) -> None:
        outcome = rposst(name, "--help")
        assert outcome.code == 0
        assert name in outcome.out
        assert outcome.err == ""

    def test_help_on_solve_names_every_option_of_the_contract(self, rposst: Run) -> None:
        text = re.sub(r"\x1b\[[0-9;]*m", "", rposst("solve", "--help").out)
        options = "size tail-fraction k n measure loss betas targets probabilities require forbid backend rounds"
        for option in [*options.split(), "time-limit", "gap", "rescale", "no-rescale", "out", "json"]:
            assert re.search(rf"(?<![\w-])--{option}(?![\w-])", text), option

    def test_version(self, rposst: Run) -> None:
        assert rposst("--version") == Outcome(0, f"rposst {ro.__version__}\n", "")

    def test_without_arguments_there_is_help_and_no_empty_message(self, rposst: Run) -> None:
        outcome = rposst()
        assert "solve" in outcome.out + outcome.err
        assert "rposst:" not in [line.strip() for line in outcome.err.splitlines()]

    @pytest.mark.parametrize(
        "arguments", [["--help"], ["--version"], *([name, "--help"] for name in SUB_COMMANDS)], ids=" ".join
    )
    def test_help_and_version_import_nothing_heavy(self, arguments: list[str]) -> None:
        program = (
            "import sys\n"
            "from rposst_opt.__main__ import main\n"
            "try:\n"
            "    main()\n"
            "except SystemExit as ended:\n"
            f"    print([name for name in {HEAVY_PACKAGES!r} if name in sys.modules], file=sys.stderr)\n"
            "    raise\n"
        )
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        assert done.stdout
        assert done.stderr == "[]\n"


class TestSolve:
    def test_the_table_for_people_has_the_test_and_what_is_known_about_it(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 4)
        found = rposst("solve", "results.csv", "--size", "2", "--json").json
        outcome = rposst("solve", "results.csv", "--size", "2")
        assert outcome.code == 0
        assert outcome.err == ""
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
        assert outcome.err == ""
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

    def test_the_file_is_written_beside_the_table_for_people_and_replaces_an_old_one(
        self, rposst: Run, crossed: Path
    ) -> None:
        (crossed / "test.json").write_text("old")
        outcome = rposst("solve", "crossed.csv", "--size", "2", "--out", "test.json")
        assert outcome.code == 0
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

    def test_the_installed_command_prints_only_json(self, crossed: Path) -> None:
        outcome = run_process("solve", "crossed.csv", "--size", "1", "--json", "--out", "test.json", folder=crossed)
        assert outcome.code == 0
        assert outcome.json["objective"] == pytest.approx(0.5)
        assert not has_traceback(outcome.err)
        assert sorted(os.listdir(crossed)) == ["crossed.csv", "test.json"]

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


class TestOptionsOfSolve:
    @pytest.mark.parametrize(
        ("options", "described", "objective"),
        [
            ([], {"name": "cvar", "tail_fraction": 0.01}, 1.0),
            (["--tail-fraction", "0.5"], {"name": "cvar", "tail_fraction": 0.5}, 0.8),
            (["--tail-fraction", "1"], {"name": "cvar", "tail_fraction": 1.0}, 0.45),
            (["--tail-fraction", "0"], {"name": "cvar", "tail_fraction": 0.0}, 1.0),
            (["--k", "1", "--n", "2"], {"name": "k-of-n", "k": 1, "n": 2}, (7 * 1 + 5 * 0.6 + 3 * 0.2) / 16),
            (["--k", "3", "--n", "3"], {"name": "k-of-n", "k": 3, "n": 3}, 0.45),
            (["--measure", "mean"], {"name": "mean"}, 0.45),
            (["--measure", "worst"], {"name": "worst"}, 1.0),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    @pytest.mark.usefixtures("ladder")
    def test_measures(self, rposst: Run, options: list[str], described: dict[str, object], objective: float) -> None:
        record = rposst(*LADDER, *options).json
        assert record["measure"] == described
        assert record["cases"] == ["zero"]
        assert record["objective"] == pytest.approx(objective)

    @pytest.mark.parametrize(
        ("loss", "label", "objective"),
        [
            ("absolute", "absolute", 0.45),
            ("squared", "squared", (0.04 + 0.36 + 1) / 4),
            ("huber:0.5", "huber:0.5", (0.5 * 0.04 + 0.5 * (0.6 - 0.25) + 0.5 * (1 - 0.25)) / 4),
            ("pinball:0.8", "pinball:0.8", 0.8 * 0.45),
            ("pinball:0.2", "pinball:0.2", 0.2 * 0.45),
            ("epsilon-insensitive:0.1", "epsilon-insensitive:0.1", (0.1 + 0.5 + 0.9) / 4),
            ("huber", "huber:0.05", (0.05 * (0.2 + 0.6 + 1) - 3 * 0.00125) / 4),
            ("pinball", "pinball:0.9", 0.9 * 0.45),
            ("epsilon-insensitive", "epsilon-insensitive:0.01", (0.19 + 0.59 + 0.99) / 4),
        ],
    )
    @pytest.mark.usefixtures("ladder")
    def test_losses(self, rposst: Run, loss: str, label: str, objective: float) -> None:
        record = rposst(*LADDER, "--measure", "mean", "--loss", loss).json
        assert record["loss"] == label
        assert record["objective"] == pytest.approx(objective)

    @pytest.mark.usefixtures("ladder")
    def test_the_number_of_a_loss_is_not_rounded(self, rposst: Run) -> None:
        record = rposst(*LADDER, "--loss", "pinball:0.123456789").json
        assert record["loss"] == "pinball:0.123456789"

    def test_probabilities(self, rposst: Run, ladder: Path) -> None:
        (ladder / "likely.csv").write_text("policy,any name\ns,0.4\nr,0.3\np,0.3\nq,0\n")
        record = rposst(*LADDER, "--measure", "mean", "--probabilities", "likely.csv").json
        assert record["objective"] == pytest.approx(0.4 * 1 + 0.3 * 0.6)
        assert record["n_scenarios"] == 3

    @pytest.mark.parametrize(
        "targets", ["case,a,b\ndown,0,1\nup,1,0\n", "target,down,up\na,0,1\nb,1,0\n"], ids=["rows", "columns"]
    )
    def test_targets_with_their_probabilities(self, rposst: Run, crossed: Path, targets: str) -> None:
        (crossed / "targets.csv").write_text(targets)
        common = ("solve", "crossed.csv", "--size", "1", "--targets", "targets.csv", "--json")
        assert rposst(*common).json["n_scenarios"] == 4
        assert rposst(*common).json["objective"] == pytest.approx(1.0)
        for likely, case in (("1,0", "up"), ("0,1", "down")):
            halves = ",".join(str(float(part) / 2) for part in likely.split(","))
            (crossed / "likely.csv").write_text(f"policy,a,b\nq,{halves}\np,{halves}\n")
            record = rposst(*common, "--probabilities", "likely.csv").json
            assert (record["cases"], record["n_scenarios"]) == ([case], 2)
            assert record["objective"] == pytest.approx(0.0)

    def test_betas_make_a_target_each_and_stress_low_results(self, rposst: Run, tmp_path: Path) -> None:
        write_table(tmp_path / "results.csv", ["easy", "hard"], ["p", "q"], [[1, 0.5], [0, 0.25]])
        common = ("solve", "results.csv", "--size", "1", "--json")
        assert rposst(*common, "--betas", "0,1,2,4").json["n_scenarios"] == 8
        hard = rposst(*common, "--betas", "1000").json
        assert hard["cases"] == ["hard"]
        assert hard["objective"] == pytest.approx(0.0)
        assert rposst(*common, "--betas=-1000").json["cases"] == ["easy"]
        assert rposst(*common, "--betas", "0").json["objective"] == rposst(*common).json["objective"]

    def test_probabilities_name_targets_by_their_beta(self, rposst: Run, tmp_path: Path) -> None:
        write_table(tmp_path / "results.csv", ["easy", "hard"], ["p", "q"], [[1, 0.5], [0, 0.25]])
        (tmp_path / "likely.csv").write_text("policy,1000,-1000\np,0.5,0\nq,0.5,0\n")
        record = rposst(
            "solve", "results.csv", "--size", "1", "--betas", "1000,-1000", "--probabilities", "likely.csv", "--json"
        ).json
        assert (record["cases"], record["n_scenarios"]) == (["hard"], 2)

    def test_required_cases_come_on_top_and_forbidden_ones_do_not_come(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 4)
        common = ("solve", "results.csv", "--size", "1", "--json")
        required = rposst(*common, "--require", "c4", "--require", "c1").json
        assert len(required["cases"]) == len(required["weights"]) == 3
        assert {"c1", "c4"} < set(required["cases"])
        assert required["size"] == 1
        assert required["required"] == ["c1", "c4"]
        forbidden = [option for name in ("c0", "c1", "c2", "c3", "c5") for option in ("--forbid", name)]
        assert rposst(*common, *forbidden).json["cases"] == ["c4"]

    @pytest.mark.parametrize("name", ["--size", "1", "a,b", " spaced ", "two\nlines", "[red]x[/red]"])
    def test_a_case_is_known_by_its_exact_name(self, rposst: Run, tmp_path: Path, name: str) -> None:
        write_table(tmp_path / "results.csv", ["other", name], ["p", "q"], [[0, 1], [1, 0]])
        record = rposst("solve", "results.csv", "--size", "1", f"--forbid={name}", "--json").json
        assert record["cases"] == ["other"]

    def test_rounds_time_limit_gap_and_backend_reach_the_solver(
        self, rposst: Run, crossed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: dict[str, object] = {}
        solve = backends.solve

        def note(problem: ro.Problem, backend: str, **options: Any) -> ro.Solution:
            seen.update(options, backend=backend)
            return solve(problem, backend, **options)

        monkeypatch.setattr(backends, "solve", note)
        options = "--backend regret-matching --rounds 7 --time-limit 12.5 --gap 0.25"
        assert rposst("solve", "crossed.csv", "--size", "2", *options.split()).code == 0
        del seen["progress"]
        assert seen == {"backend": "regret-matching", "rounds": 7, "time_limit_seconds": 12.5, "gap": 0.25}

    def test_more_rounds_prove_more(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 8, 6)
        common = ("solve", "results.csv", "--size", "3", "--backend", "regret-matching", "--json")
        few, many = rposst(*common, "--rounds", "2").json, rposst(*common, "--rounds", "2000").json
        assert many["gap"] < few["gap"]
        assert few["lower_bound"] <= many["objective"] <= few["objective"]
        assert many["lower_bound"] <= few["objective"]

    def test_a_gap_with_which_one_is_content_is_kept(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 8, 6)
        common = ("solve", "results.csv", "--size", "3", "--json")
        best, content = rposst(*common).json, rposst(*common, "--gap", "0.1").json
        assert content["gap"] <= 0.1 + 1e-9
        assert content["lower_bound"] <= best["objective"]
        assert best["lower_bound"] <= content["objective"] <= best["objective"] + 0.1

    @pytest.mark.usefixtures("crossed")
    def test_objectives_are_rescaled_unless_told_otherwise(self, rposst: Run) -> None:
        common = ("solve", "crossed.csv", "--size", "1", "--json")
        rescaled, kept = rposst(*common).json, rposst(*common, "--no-rescale").json
        assert rposst(*common, "--rescale").json["objective"] == rescaled["objective"] == pytest.approx(0.5)
        assert rescaled["scale"] == {"low": 10.0, "high": 30.0}
        assert kept["objective"] == pytest.approx(10.0)
        spread = rescaled["scale"]["high"] - rescaled["scale"]["low"]
        assert rescaled["objective"] * spread == pytest.approx(kept["objective"])
        assert kept["scale"]["high"] - kept["scale"]["low"] == 1.0

    @pytest.mark.usefixtures("crossed")
    @pytest.mark.parametrize("option", ["--rescale", "--no-rescale"])
    @pytest.mark.parametrize("loss", ["absolute", "squared"])
    def test_the_error_for_people_is_in_the_units_of_the_file(self, rposst: Run, option: str, loss: str) -> None:
        outcome = rposst("solve", "crossed.csv", "--size", "1", option, "--loss", loss)
        assert re.search(r"score error +10 by that measure, 10 on average, 10 at worst", outcome.out)

    def test_units_of_the_file_hold_for_unequal_errors(self, rposst: Run, tmp_path: Path) -> None:
        write_table(tmp_path / "results.csv", ["zero", "rungs"], ["p", "q", "r", "s"], [[-5] * 4, [-5, -3, 1, 5]])
        (tmp_path / "on-rungs.csv").write_text("case,t\nzero,0\nrungs,1\n")
        options = "--size 1 --targets on-rungs.csv --forbid rungs --tail-fraction 0.5"
        outcome = rposst("solve", "results.csv", *options.split())
        assert re.search(r"score error +8 by that measure, 4.5 on average, 10 at worst", outcome.out)


class TestScore:
    @pytest.fixture
    def test_of_two(self, tmp_path: Path) -> Path:
        record = {"format": "rposst-test/1", "cases": ["b", "a"], "weights": [0.75, 0.25]}
        (tmp_path / "test.json").write_text(json.dumps(record))
        return tmp_path

    def test_scores_are_weights_times_rows_and_ties_share_a_rank(self, rposst: Run, test_of_two: Path) -> None:
        (test_of_two / "new.csv").write_text("case,low,top,mid,tied\na,0,8,4,1\nother,9,9,9,9\nb,1,4,0,1\n")
        outcome = rposst("score", "test.json", "new.csv", "--json")
        assert outcome.err == ""
        assert [(row["rank"], row["policy"], row["score"]) for row in outcome.json["scores"]] == [
            (1, "top", 5.0),
            (2, "mid", 1.0),
            (2, "tied", 1.0),
            (4, "low", 0.75),
        ]

    def test_the_table_for_people_has_ranks_names_and_scores(self, rposst: Run, test_of_two: Path) -> None:
        (test_of_two / "new.csv").write_text("case,low,top,[b]mid[/b],tied\na,0,8,4,1\nb,1,4,0,1\n")
        outcome = rposst("score", "test.json", "new.csv")
        assert (outcome.code, outcome.err) == (0, "")
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
            ("case,p\na,1\nb,nan\n", ["new.csv", "'b'", "'p'", "finite"]),
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
        assert len(outcome.err.splitlines()) == 1
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


SOLVE = "solve good.csv --size 2 --out kept.json"
BAD_INPUT: list[tuple[str, list[str]]] = [
    ("nonsense", ["nonsense"]),
    ("--nonsense", ["--nonsense"]),
    ("solve", ["RESULTS.csv"]),
    ("solve good.csv --out kept.json", ["--size"]),
    (f"{SOLVE} --nonsense", ["--nonsense"]),
    (f"{SOLVE} surplus.csv", ["surplus.csv"]),
    (f"{SOLVE} --size 0", ["size", "0"]),
    (f"{SOLVE} --size -1", ["size", "-1"]),
    (f"{SOLVE} --size 5", ["size", "5", "4"]),
    (f"{SOLVE} --size 99999999999999999999", ["size", "99999999999999999999"]),
    (f"{SOLVE} --size two", ["--size"]),
    (f"{SOLVE} --size 1.5", ["--size"]),
    (f"{SOLVE} --backend nonsense", ["'nonsense'", "auto", *ro.BACKENDS]),
    (f"{SOLVE} --loss nonsense", ["'nonsense'", "absolute", "squared", "huber", "pinball", "epsilon-insensitive"]),
    (f"{SOLVE} --loss huber:wide", ["huber:wide", "number"]),
    (f"{SOLVE} --loss huber:", ["huber:", "number"]),
    (f"{SOLVE} --loss huber:-1", ["threshold", "-1"]),
    (f"{SOLVE} --loss huber:nan", ["threshold", "nan"]),
    (f"{SOLVE} --loss absolute:1", ["absolute:1"]),
    (f"{SOLVE} --loss pinball:2", ["quantile", "2"]),
    (f"{SOLVE} --measure nonsense", ["--measure", "nonsense", "mean", "worst"]),
    (f"{SOLVE} --tail-fraction 1.5", ["tail_fraction", "1.5"]),
    (f"{SOLVE} --tail-fraction -0.1", ["tail_fraction", "-0.1"]),
    (f"{SOLVE} --tail-fraction nan", ["tail_fraction", "nan"]),
    (f"{SOLVE} --tail-fraction all", ["--tail-fraction"]),
    (f"{SOLVE} --k 3 --n 2", ["3", "2"]),
    (f"{SOLVE} --k 0 --n 2", ["0", "2"]),
    (f"{SOLVE} --k 1", ["--k", "--n"]),
    (f"{SOLVE} --n 1", ["--k", "--n"]),
    (f"{SOLVE} --k 1 --n 2 --tail-fraction 0.5", ["--k", "--tail-fraction"]),
    (f"{SOLVE} --k 1 --n 2 --measure mean", ["--k", "--measure"]),
    (f"{SOLVE} --tail-fraction 0.5 --measure mean", ["--tail-fraction", "--measure"]),
    (f"{SOLVE} --betas 0,1 --targets targets.csv", ["--betas", "--targets"]),
    (f"{SOLVE} --betas 0;1", ["--betas", "0;1"]),
    (f"{SOLVE} --betas 0,,1", ["--betas", "0,,1"]),
    (f"{SOLVE} --betas 0,nan", ["betas", "nan"]),
    (f"{SOLVE} --require nobody", ["'nobody'", "'a'", "'d'"]),
    (f"{SOLVE} --forbid nobody", ["'nobody'", "'a'", "'d'"]),
    (f"{SOLVE} --require a --forbid a", ["'a'", "required", "forbidden"]),
    (f"{SOLVE} --forbid a --forbid b --forbid c", ["size", "2", "1"]),
    (f"{SOLVE} --time-limit -1", ["-1"]),
    (f"{SOLVE} --time-limit nan", ["nan"]),
    (f"{SOLVE} --time-limit soon", ["--time-limit"]),
    (f"{SOLVE} --gap -0.5", ["gap", "-0.5"]),
    (f"{SOLVE} --gap nan", ["gap", "nan"]),
    (f"{SOLVE} --gap inf", ["gap", "inf"]),
    (f"{SOLVE} --backend regret-matching --rounds 0", ["rounds", "0"]),
    (f"{SOLVE} --backend regret-matching --rounds -5", ["rounds", "-5"]),
    (f"{SOLVE} --rounds many", ["--rounds"]),
    ("solve good.csv --size 2 --out missing/test.json", ["missing/test.json", "folder"]),
    ("solve good.csv --size 2 --out folder", ["folder"]),
    ("solve good.csv --size 2 --out good.csv/test.json", ["good.csv"]),
    (f"solve good.csv --size 2 --out {'x' * 300}", ["xxx"]),
    ("solve missing.csv --size 2 --out kept.json", ["missing.csv"]),
    ("solve folder --size 2 --out kept.json", ["folder"]),
    ("solve empty.csv --size 2 --out kept.json", ["empty.csv", "empty"]),
    ("solve header.csv --size 2 --out kept.json", ["header.csv"]),
    ("solve names.csv --size 2 --out kept.json", ["names.csv"]),
    ("solve nan.csv --size 2 --out kept.json", ["nan.csv", "'b'", "'q'", "nan"]),
    ("solve inf.csv --size 2 --out kept.json", ["inf.csv", "'b'", "'q'", "-inf"]),
    ("solve blank.csv --size 2 --out kept.json", ["blank.csv", "'b'", "'q'"]),
    ("solve text.csv --size 2 --out kept.json", ["text.csv", "'b'", "'q'", "hello"]),
    ("solve decimal.csv --size 2 --out kept.json", ["decimal.csv", "'b'", "'q'", "0,5"]),
    ("solve short.csv --size 2 --out kept.json", ["short.csv", "'b'", "'q'"]),
    ("solve long.csv --size 2 --out kept.json", ["long.csv", "line 3"]),
    ("solve repeated.csv --size 2 --out kept.json", ["repeated.csv", "'a'"]),
    ("solve columns.csv --size 2 --out kept.json", ["columns.csv", "'p'"]),
    ("solve nameless.csv --size 2 --out kept.json", ["nameless.csv", "name"]),
    ("solve binary.csv --size 2 --out kept.json", ["binary.csv"]),
    ("solve latin.csv --size 2 --out kept.json", ["latin.csv", "UTF-8"]),
    (f"{SOLVE} --targets missing.csv", ["missing.csv"]),
    (f"{SOLVE} --targets short-targets.csv", ["short-targets.csv", "'d'"]),
    (f"{SOLVE} --targets off-targets.csv", ["targets", "sum to 1"]),
    (f"{SOLVE} --targets negative-targets.csv", ["targets", "negative"]),
    (f"{SOLVE} --probabilities missing.csv", ["missing.csv"]),
    (f"{SOLVE} --probabilities short-likely.csv", ["short-likely.csv", "'q'"]),
    (f"{SOLVE} --probabilities off-likely.csv", ["probabilities", "sum to 1"]),
    ("score", ["TEST.json"]),
    ("score test.json", ["RESULTS.csv"]),
    ("score missing.json good.csv", ["missing.json"]),
    ("score test.json missing.csv", ["missing.csv"]),
    ("score good.csv good.csv", ["good.csv", "JSON"]),
    ("score folder good.csv", ["folder"]),
    ("score other.json good.csv", ["other.json"]),
    ("score off.json good.csv", ["off.json", "sum to 1"]),
    ("score test.json lacking.csv", ["'b'"]),
    ("backends good.csv", ["--size"]),
    ("backends --size 2", ["RESULTS.csv"]),
    ("backends good.csv --size 9", ["size", "9"]),
    ("backends missing.csv --size 2", ["missing.csv"]),
    ("backends good.csv --size 2 --loss nonsense", ["nonsense", "absolute"]),
    ("demo surplus", ["surplus"]),
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    contents: dict[str, str | bytes] = {
        "good.csv": "case,p,q\na,0,1\nb,1,0\nc,0.5,0.25\nd,0.2,0.8\n",
        "kept.json": "an older test that no bad input may touch",
        "empty.csv": "",
        "header.csv": "case,p,q\n",
        "names.csv": "case\na\nb\n",
        "nan.csv": "case,p,q\na,1,2\nb,3,nan\n",
        "inf.csv": "case,p,q\na,1,2\nb,3,-inf\n",
        "blank.csv": "case,p,q\na,1,2\nb,3,\n",
        "text.csv": "case,p,q\na,1,2\nb,3,hello\n",
        "decimal.csv": "case;p;q\na;1;2\nb;3;0,5\n",
        "short.csv": "case,p,q\na,1,2\nb,3\n",
        "long.csv": "case,p,q\na,1,2\nb,3,4,5\n",
        "repeated.csv": "case,p,q\na,1,2\na,3,4\n",
        "columns.csv": "case,p,p\na,1,2\nb,3,4\n",
        "nameless.csv": "case,p,q\na,1,2\n,3,4\n",
        "binary.csv": bytes(range(128)),
        "latin.csv": "case,p,q\nGröße,1,2\n".encode("latin-1"),
        "targets.csv": "case,t\na,1\nb,0\nc,0\nd,0\n",
        "short-targets.csv": "case,t\na,1\nb,0\nc,0\n",
        "off-targets.csv": "case,t\na,1\nb,0\nc,0\nd,0.5\n",
        "negative-targets.csv": "case,t\na,1.5\nb,-0.5\nc,0\nd,0\n",
        "short-likely.csv": "policy,t\np,1\n",
        "off-likely.csv": "policy,t\np,0.5\nq,0.6\n",
        "test.json": '{"format": "rposst-test/1", "cases": ["a", "b"], "weights": [0.5, 0.5]}',
        "other.json": '{"format": "another/1", "cases": ["a", "b"], "weights": [0.5, 0.5]}',
        "off.json": '{"format": "rposst-test/1", "cases": ["a", "b"], "weights": [0.5, 0.6]}',
        "lacking.csv": "case,p,q\na,0,1\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "folder").mkdir()
    return tmp_path


class TestBadInput:
    @pytest.mark.parametrize(("command", "words"), BAD_INPUT, ids=[command[:80] for command, _ in BAD_INPUT])
    def test_it_gives_one_line_and_exit_code_two_and_changes_nothing(
        self, rposst: Run, files: Path, command: str, words: list[str]
    ) -> None:
        before = files_in(files)
        outcome = rposst(*command.split())
        assert outcome.code == 2
        assert outcome.out == ""
        assert outcome.err.startswith("rposst: ")
        assert len(outcome.err.splitlines()) == 1, outcome.err
        for word in words:
            assert word in outcome.err
        assert files_in(files) == before

    @pytest.mark.parametrize(
        "option",
        [
            "--loss huber:1e200",
            "--loss epsilon-insensitive:1e308",
            "--backend regret-matching --rounds 99999999999999999999 --time-limit 0",
            f"--k 1 --n {10**400}",
            "--tail-fraction 1e-320",
            "--betas 1e308,-1e308",
        ],
        ids=lambda option: option[:40],
    )
    def test_extreme_numbers_are_taken_or_refused_in_one_line(self, rposst: Run, files: Path, option: str) -> None:
        outcome = rposst("solve", "good.csv", "--size", "2", *option.split())
        if outcome.code != 0:
            assert (outcome.code, outcome.out) == (2, "")
            assert len(outcome.err.splitlines()) == 1

    @pytest.mark.parametrize("out", ["missing/test.json", "folder"])
    def test_a_place_that_cannot_be_written_is_found_out_before_the_search(
        self, rposst: Run, files: Path, monkeypatch: pytest.MonkeyPatch, out: str
    ) -> None:
        def search(*arguments: object, **options: object) -> NoReturn:
            raise AssertionError("the search began")

        monkeypatch.setattr(backends, "solve", search)
        assert rposst("solve", "good.csv", "--size", "2", "--out", out).code == 2

    def test_the_installed_command_does_the_same(self, files: Path) -> None:
        before = files_in(files)
        outcome = run_process("solve", "nan.csv", "--size", "2", "--out", "kept.json", folder=files)
        assert (outcome.code, outcome.out) == (2, "")
        assert len(outcome.err.splitlines()) == 1
        assert files_in(files) == before


class TestNamesAreOnlyData:
    NAMES = (
        "[red]x[/red]",
        "[/]",
        "[link=https://example.org]y[/link]",
        ":smile:",
        "\x1b[31mred\x1b[0m",
        "bell\x07",
        "\x9b31mcontrol",
        "right\u202eleft",
        "<script>alert(1)</script>",
        "$(touch here)",
        "%s{0}",
    )

    @pytest.fixture
    def named(self, tmp_path: Path) -> Path:
        numbers = np.random.default_rng(1).random((len(self.NAMES), len(self.NAMES))).tolist()
        write_table(tmp_path / "named.csv", self.NAMES, self.NAMES, numbers)
        return tmp_path

    @staticmethod
    def is_safe(text: str) -> bool:
        return all(character.isprintable() or character == "\n" for character in text)

    @pytest.mark.usefixtures("named")
    def test_tables_show_them_literally_and_safely(self, rposst: Run) -> None:
        solved = rposst("solve", "named.csv", "--size", str(len(self.NAMES)), "--out", "test.json")
        scored = rposst("score", "test.json", "named.csv")
        for outcome in (solved, scored):
            assert (outcome.code, outcome.err) == (0, "")
            assert self.is_safe(outcome.out)
            for name in self.NAMES:
                shown = name if name.isprintable() else name.encode("unicode_escape").decode()
                assert shown in outcome.out

    @pytest.mark.usefixtures("named")
    def test_json_has_them_unchanged_and_is_safe_to_print(self, rposst: Run) -> None:
        size = str(len(self.NAMES))
        solved = rposst("solve", "named.csv", "--size", size, "--json", "--out", "test.json")
        assert solved.json["cases"] == list(self.NAMES)
        scored = rposst("score", "test.json", "named.csv", "--json")
        assert {row["policy"] for row in scored.json["scores"]} == set(self.NAMES)
        assert self.is_safe(solved.out)
        assert self.is_safe(scored.out)

    @pytest.mark.usefixtures("named")
    @pytest.mark.parametrize(
        "arguments",
        [
            ["solve", "named.csv", "--size", "1", "--require", "\x1b[31mnobody"],
            ["solve", "named.csv", "--size", "1", "--require", "[red]nobody"],
            ["solve", "\x1b[31mmissing\n.csv", "--size", "1"],
            ["solve", "named.csv", "--size", "1", "--out", "\x1b[31mmissing/x"],
            ["solve", "named.csv", "--size", "1", "--loss", "\x1b[31m"],
            ["solve", "named.csv", "--size", "1", "--backend", "\x1b[31m"],
            ["solve", "named.csv", "--size", "\x1b[31m"],
            ["\x1b[31m"],
        ],
        ids=repr,
    )
    def test_messages_are_safe(self, rposst: Run, arguments: list[str]) -> None:
        outcome = rposst(*arguments)
        assert outcome.code == 2
        assert len(outcome.err.splitlines()) == 1
        assert self.is_safe(outcome.err)

    @pytest.mark.usefixtures("named")
    def test_a_name_is_no_command(self, rposst: Run, tmp_path: Path) -> None:
        rposst("solve", "named.csv", "--size", "1")
        assert os.listdir(tmp_path) == ["named.csv"]

    def test_a_terminal_that_knows_only_ascii_is_no_trouble(self, tmp_path: Path) -> None:
        write_table(tmp_path / "results.csv", ["größer", "🙂"], ["p", "q"], [[0, 1], [1, 0]])
        options = ("solve", "results.csv", "--size", "2")
        for_people = run_process(*options, folder=tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert (for_people.code, has_traceback(for_people.err)) == (0, False)
        for_programs = run_process(*options, "--json", folder=tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert for_programs.code == 0
        assert for_programs.json["cases"] == ["größer", "🙂"]


class TestNumbersAtTheEdge:
    TABLES: dict[str, list[list[float]]] = {  # noqa: RUF012
        "huge": [[1e308, -1e308], [-1.7976931348623157e308, 1.7976931348623157e308], [0, 1]],
        "constant": [[3, 3], [3, 3], [3, 3]],
        "zero": [[0, 0], [0, 0], [0, 0]],
        "constant and huge": [[1e308, 1e308], [1e308, 1e308], [1e308, 1e308]],
        "huge and close": [[1.7976931348623157e308, 1.797693134862315e308], [1.7e308, 1.7e308], [1.6e308, 1.7e308]],
        "tiny": [[1e-310, 0], [0, 1e-308], [0, 0]],
        "one apart from the rest": [[0, 0], [0, 1e308], [0, 0]],
    }

    @pytest.mark.parametrize("options", ["", "--betas 0,1,4", "--loss squared", "--measure mean", "--k 2 --n 5"])
    @pytest.mark.parametrize("name", TABLES)
    def test_rescaled_they_are_solved_without_nan(self, rposst: Run, tmp_path: Path, name: str, options: str) -> None:
        write_table(tmp_path / "results.csv", ["a", "b", "c"], ["p", "q"], self.TABLES[name])
        command = ["solve", "results.csv", "--size", "2", *options.split()]
        for_people, record = rposst(*command), rposst(*command, "--json").json
        assert (for_people.code, for_people.err) == (0, "")
        assert not re.search(r"\bnan\b", for_people.out)
        assert not re.search(r"\binf\b", for_people.out)
        assert 0 <= record["lower_bound"] <= record["objective"] <= 1

    @pytest.mark.parametrize("options", ["", "--betas 0,1,4", "--loss squared", "--loss huber:0.1", "--k 2 --n 5"])
    @pytest.mark.parametrize("name", TABLES)
    def test_as_they_are_they_are_solved_or_refused(self, rposst: Run, tmp_path: Path, name: str, options: str) -> None:
        write_table(tmp_path / "results.csv", ["a", "b", "c"], ["p", "q"], self.TABLES[name])
        outcome = rposst("solve", "results.csv", "--size", "2", "--no-rescale", *options.split())
        assert not re.search(r"\bnan\b", outcome.out)
        if outcome.code == 0:
            assert outcome.err == ""
        else:
            assert (outcome.code, outcome.out) == (2, "")
            assert len(outcome.err.splitlines()) == 1

    @pytest.mark.parametrize("name", ["constant", "zero", "constant and huge"])
    def test_a_constant_table_has_nothing_to_miss(self, rposst: Run, tmp_path: Path, name: str) -> None:
        write_table(tmp_path / "results.csv", ["a", "b", "c"], ["p", "q"], self.TABLES[name])
        record = rposst("solve", "results.csv", "--size", "1", "--json").json
        assert (record["objective"], record["status"]) == (0.0, "optimal")

    def test_the_widest_range_there_is_can_be_rescaled(self, rposst: Run, tmp_path: Path) -> None:
        most = sys.float_info.max
        write_table(tmp_path / "results.csv", ["up", "down"], ["p", "q"], [[-most, most], [most, -most]])
        record = rposst("solve", "results.csv", "--size", "1", "--json").json
        assert record["objective"] == pytest.approx(0.5)
        assert record["scale"] == {"low": -most, "high": most}
        outcome = rposst("solve", "results.csv", "--size", "1")
        assert f"{most:.6g} by that measure, {most:.6g} on average, {most:.6g} at worst" in outcome.out

    def test_a_single_case_and_policy_is_its_own_test(self, rposst: Run, tmp_path: Path) -> None:
        write_table(tmp_path / "results.csv", ["only"], ["p"], [[7]])
        record = rposst("solve", "results.csv", "--size", "1", "--json").json
        assert (record["cases"], record["weights"], record["objective"]) == (["only"], [1.0], 0.0)


def read_terminal(terminal: int, *, until: Callable[[bytes], bool], seconds: float = 60) -> bytes:
    """What is written to a terminal until this much is seen or nobody writes any more."""
    seen, deadline = b"", time.monotonic() + seconds
    while not until(seen):
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"after {seconds} s there is only {seen!r}"
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # how Linux says that nobody writes any more
            break
        if not chunk:
            break
        seen += chunk
    return seen


def interrupt_a_long_run(folder: Path, *, times: int) -> tuple[Outcome, float]:
    """Interrupt a run once its progress bar, on a terminal of its own, shows that it is at work."""
    terminal, its_end = os.openpty()
    with subprocess.Popen(
        [COMMAND, "solve", *LONG_RUN, "--out", "test.json"],
        cwd=folder,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=its_end,
    ) as process:
        try:
            os.close(its_end)
            seen = read_terminal(terminal, until=lambda text: b"sets" in text)
            started = time.monotonic()
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            seen += read_terminal(terminal, until=lambda text: False)
            out, _ = process.communicate(timeout=60)
            seconds = time.monotonic() - started
        finally:
            process.kill()
            os.close(terminal)
    return Outcome(process.returncode, out.decode(), seen.decode(errors="replace")), seconds


STARTING_UP = """
import os, runpy, signal, sys

class InterruptedImport:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, InterruptedImport())
sys.argv = [{command!r}, "solve", "crossed.csv", "--size", "1", "--json"]
runpy.run_path({command!r}, run_name="__main__")
"""

LOADING_KERNELS = """
import os, runpy, signal, sys
from llvmlite.binding.executionengine import ExecutionEngine

moments = [{moment!r}]
set_object_cache = ExecutionEngine.set_object_cache

def interrupted(function, name):
    def call(*arguments):
        if name in moments:
            moments.remove(name)
            os.kill(os.getpid(), signal.SIGINT)
        return function(*arguments)
    return call

def set_interrupted_cache(self, notify_func=None, getbuffer_func=None):
    set_object_cache(self, interrupted(notify_func, "notify"), interrupted(getbuffer_func, "getbuffer"))

ExecutionEngine.set_object_cache = set_interrupted_cache
sys.argv = [{command!r}, "solve", "crossed.csv", "--size", "1", "--json"]
runpy.run_path({command!r}, run_name="__main__")
"""


class TestRunsThatEndEarly:
    @pytest.fixture
    def big(self, tmp_path: Path) -> Path:
        write_random_table(tmp_path / "big.csv", 60, 40)
        return tmp_path

    def test_an_interrupt_ends_a_run_with_the_best_test_so_far(self, big: Path) -> None:
        outcome, seconds = interrupt_a_long_run(big, times=1)
        record = outcome.json
        assert record["limit"] == "an interrupt"
        assert record["status"] == "feasible"
        assert len(record["cases"]) == 5
        assert 0 < record["gap"] <= record["objective"] - record["lower_bound"] + 1e-12
        assert not has_traceback(outcome.err)
        assert seconds < 10
        assert strict_json((big / "test.json").read_text()) == record

    def test_a_second_interrupt_ends_it_at_once(self, big: Path) -> None:
        outcome, seconds = interrupt_a_long_run(big, times=2)
        assert outcome.code in (0, 1, 130)
        assert not has_traceback(outcome.err)
        assert seconds < 10
        if outcome.code == 1:
            record = strict_json(outcome.out)
            assert (record["status"], record["limit"]) == ("no_test", "an interrupt")
        assert sorted(os.listdir(big)) == (["big.csv", "test.json"] if outcome.code == 0 else ["big.csv"])

    def test_a_time_limit_ends_a_run_with_the_best_test_so_far(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "big.csv", 60, 40)
        started = time.monotonic()
        record = rposst("solve", *LONG_RUN, "--time-limit", "1").json
        assert time.monotonic() - started < 30
        assert record["limit"] == "the time limit"
        assert record["status"] == "feasible"
        assert len(record["cases"]) == 5
        assert record["gap"] > 0

    def test_people_are_told_what_ended_a_run(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "big.csv", 60, 40)
        outcome = rposst("solve", *LONG_RUN[:-1], "--time-limit", "0")
        assert outcome.code == 0
        assert "the time limit" in outcome.out

    @pytest.mark.parametrize("module", ["typer", "numpy", "pandas", "numba", "rposst_opt.solvers.kernels.response"])
    def test_an_interrupt_during_start_up_leaves_no_traceback(self, crossed: Path, module: str) -> None:
        self.check_start_up(crossed, STARTING_UP.format(module=module, command=str(COMMAND)))

    @pytest.mark.parametrize("moment", ["notify", "getbuffer"])
    def test_an_interrupt_while_kernels_are_loaded_leaves_no_traceback(self, crossed: Path, moment: str) -> None:
        self.check_start_up(crossed, LOADING_KERNELS.format(moment=moment, command=str(COMMAND)))

    @staticmethod
    def check_start_up(folder: Path, program: str) -> None:
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=120)
        assert done.returncode in (0, 130), done.stderr
        assert not has_traceback(done.stderr), done.stderr
        if done.returncode == 0:
            assert strict_json(done.stdout)["cases"]
        else:
            assert done.stdout == ""

    @pytest.mark.parametrize("command", ["--help", "solve crossed.csv --size 1 --json", "backends"])
    def test_a_reader_who_leaves_causes_no_traceback(self, crossed: Path, command: str) -> None:
        outcome = self.run_into(crossed, command, reader=None)
        assert outcome.code in (0, 1, 141)
        assert not has_traceback(outcome.err)
        assert "rposst:" not in outcome.err

    def test_a_full_disk_behind_standard_output_causes_no_traceback(self, crossed: Path) -> None:
        full = Path("/dev/full")
        if not full.exists():
            pytest.skip("this system has no /dev/full")
        outcome = self.run_into(crossed, "solve crossed.csv --size 1 --json", reader=full)
        assert outcome.code != 0
        assert not has_traceback(outcome.err)
        assert outcome.err.count("rposst:") == 1

    @staticmethod
    def run_into(folder: Path, command: str, *, reader: Path | None) -> Outcome:
        """Run with standard output going to this device, or to a pipe that nobody reads."""
        if reader is None:
            nobody, end = os.pipe()
            os.close(nobody)
        else:
            end = os.open(reader, os.O_WRONLY)
        try:
            done = subprocess.run(
                [COMMAND, *command.split()], cwd=folder, stdout=end, stderr=subprocess.PIPE, text=True, timeout=120
            )
        finally:
            os.close(end)
        return Outcome(done.returncode, "", done.stderr)


class TestDemo:
    def test_it_shows_a_chosen_test_and_what_is_known_about_it(self, rposst: Run, tmp_path: Path) -> None:
        outcome = rposst("demo")
        assert (outcome.code, outcome.err) == (0, "")
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


class TestBackends:
    def test_the_table_for_people_names_every_backend(self, rposst: Run) -> None:
        outcome = rposst("backends")
        assert (outcome.code, outcome.err) == (0, "")
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

    def test_with_a_problem_it_is_said_who_can_solve_it(self, rposst: Run, files: Path) -> None:
        options = ("good.csv", "--size", "2", "--loss", "squared", "--k", "2", "--n", "3")
        record = rposst("backends", *options, "--json").json
        able = [row["name"] for row in record["backends"] if row["solves_this"]]
        assert "regret-matching" in able
        assert record["auto"] in able
        assert all((row["why_not"] is None) == row["solves_this"] for row in record["backends"])
        outcome = rposst("backends", *options)
        assert (outcome.code, outcome.err) == (0, "")
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
        assert "scipy-milp declined: it does not handle a loss with curvature" in outcome.out
        assert "agree." in outcome.out

    def test_a_liar_is_named_and_the_exit_code_is_one(self, rposst: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(backends.BACKENDS, "certain", backends.Entry(__name__, "AlwaysCertain"))
        outcome = rposst("agree", "results.csv", "--size", "2", "--backends", "scipy-milp, certain")
        assert outcome.code == 1
        assert "certain disagrees: its lower bound" in outcome.out
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
        assert len(outcome.err.splitlines()) == 1
        assert files_in(tmp_path) == before


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
        assert outcome.code == 1
        assert "does not hold" in outcome.out
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
            (("--top", "2", "--backend", "scipy-milp"), "no option `top`"),
            (("--top", "2", "--rounds", "5"), "together"),
            (("--certificate", "results.csv"), "read as input"),
            (("--certificate", "missing/proof.json"), "does not exist"),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, rposst: Run, options: tuple[str, ...], words: str) -> None:
        outcome = rposst("solve", "results.csv", "--size", "2", *options)
        assert (outcome.code, outcome.out) == (2, "")
        assert words in outcome.err
        assert len(outcome.err.splitlines()) == 1

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
