"""The options that state a problem, and numbers at the edge of what they may be."""

import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest
from commands import Run
from sample_files import write_random_table, write_table

import rposst_opt as ro
from rposst_opt import backends
from rposst_opt.cli.options import LossName, NamedMeasure
from rposst_opt.losses import LOSSES
from rposst_opt.measures import MEASURES

pytestmark = pytest.mark.usefixtures("compiled_kernels")


@pytest.fixture
def ladder(tmp_path: Path) -> Path:
    """A case that is always 0 and one that is the whole target: without that one the errors are 0, 0.2, 0.6 and 1."""
    write_table(tmp_path / "ladder.csv", ["zero", "rungs"], ["p", "q", "r", "s"], [[0, 0, 0, 0], [0, 0.2, 0.6, 1]])
    (tmp_path / "on-rungs.csv").write_text("case,t\nzero,0\nrungs,1\n")
    return tmp_path


def test_the_help_names_every_loss_with_its_numbers() -> None:
    told = get_args(LossName)[1].help
    names = re.split(r", | or ", told.rstrip("."))
    numbers = {name: ",".join(field.name.upper() for field in fields(kind)) for name, kind in LOSSES.items()}  # type: ignore[arg-type]
    assert names == [f"{name}:{number}" if number else name for name, number in numbers.items()]


def test_every_measure_without_numbers_can_be_named() -> None:
    assert set(NamedMeasure) == {name for name, kind in MEASURES.items() if not fields(kind)}  # type: ignore[arg-type]


LADDER = ("solve", "ladder.csv", "--size", "1", "--targets", "on-rungs.csv", "--forbid", "rungs", "--json")


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

    def test_rounds_player_time_limit_gap_and_backend_reach_the_solver(
        self, rposst: Run, crossed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: dict[str, object] = {}
        solve = backends.solve

        def note(problem: ro.Problem, backend: str, **options: Any) -> ro.Solution:
            seen.update(options, backend=backend)
            return solve(problem, backend, **options)

        monkeypatch.setattr(backends, "solve", note)
        options = (
            "--backend regret-matching --rounds 7 --player predictive --restarts best --time-limit 12.5 --gap 0.25"
        )
        assert rposst("solve", "crossed.csv", "--size", "2", *options.split()).code == 0
        del seen["progress"]
        game = {"rounds": 7, "player": "predictive", "restarts": "best"}
        assert seen == {"backend": "regret-matching", "time_limit_seconds": 12.5, "gap": 0.25} | game

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
        assert re.search(r"tuned error +10 by that measure, 10 on average, 10 at worst", outcome.out)

    def test_units_of_the_file_hold_for_unequal_errors(self, rposst: Run, tmp_path: Path) -> None:
        write_table(tmp_path / "results.csv", ["zero", "rungs"], ["p", "q", "r", "s"], [[-5] * 4, [-5, -3, 1, 5]])
        (tmp_path / "on-rungs.csv").write_text("case,t\nzero,0\nrungs,1\n")
        options = "--size 1 --targets on-rungs.csv --forbid rungs --tail-fraction 0.5"
        outcome = rposst("solve", "results.csv", *options.split())
        assert re.search(r"tuned error +8 by that measure, 4.5 on average, 10 at worst", outcome.out)


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
        assert (for_people.code, for_people.told) == (0, "")
        assert not re.search(r"\bnan\b", for_people.out)
        assert not re.search(r"\binf\b", for_people.out)
        assert 0 <= record["lower_bound"] <= record["objective"] <= 1

    @pytest.mark.parametrize("options", ["", "--betas 0,1,4", "--loss squared", "--loss huber:0.1", "--k 2 --n 5"])
    @pytest.mark.parametrize("name", TABLES)
    def test_as_they_are_they_are_solved_or_refused(self, rposst: Run, tmp_path: Path, name: str, options: str) -> None:
        write_table(tmp_path / "results.csv", ["a", "b", "c"], ["p", "q"], self.TABLES[name])
        outcome = rposst("solve", "results.csv", "--size", "2", "--no-rescale", *options.split())
        assert not re.search(r"\bnan\b", outcome.out)
        said = [line for line in outcome.told.splitlines() if not line.startswith("Note: softmax targets are made of ")]
        if outcome.code == 0:
            assert said == []
        else:
            assert (outcome.code, outcome.out) == (2, "")
            assert len(said) == 1

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
