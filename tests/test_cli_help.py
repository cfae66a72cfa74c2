"""How the command line reads: the order of commands and options in help, what a slip is answered, what is written."""

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import typer
from commands import Run
from sample_files import write_table

import rposst_opt as ro
from rposst_opt.cli import COMMANDS, app
from rposst_opt.cli.commands import OLD_NAMES, PANELS, in_options

NAMES = [command.name for command in typer.main.get_command(app).commands.values()]  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    """Results, and files that are none."""
    numbers = [[0.1, 0.2, 0.9], [0.4, 0.3, 0.5], [0.7, 0.1, 0.2]]
    write_table(tmp_path / "results.csv", ["a", "b", "c"], ["p", "q", "r"], numbers)
    (tmp_path / "empty.json").touch()
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "words.json").write_text("a test")
    return tmp_path


class TestHelp:
    def test_commands_stand_in_groups_in_the_order_of_use(self, rposst: Run) -> None:
        told = rposst("--help").out
        assert re.findall(r"╭─ (.*?) ─", told) == ["Options", *COMMANDS]
        listed = re.findall(r"^│ ([a-z][a-z-]+) ", told, flags=re.MULTILINE)
        assert listed[0] == "demo" and listed[-2:] == ["domain", "reproduce"]
        assert sorted(listed) == sorted(NAMES)

    def test_options_of_solve_stand_in_panels_and_are_not_cut_off_at_80_columns(
        self, rposst: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "80")
        told = rposst("solve", "--help").out
        panels = re.findall(r"╭─ (.*?) ─", told)
        assert panels == ["Arguments", *(panel for panel in PANELS if panel in panels)] and len(panels) == 7
        assert "…" not in told and "Usage: rposst solve [OPTIONS] RESULTS.csv\n" in re.sub(" +\n", "\n", told)
        assert "--[no-]rescale" in told

    @pytest.mark.parametrize("name", [*NAMES, "domain checkpoints"])
    def test_flags_have_no_type_and_old_names_are_not_shown(self, rposst: Run, name: str) -> None:
        told = rposst(*name.split(), "--help").out
        assert "<bool>" not in told and "BOOLEAN" not in told
        assert not re.findall(rf"--\S+,({'|'.join(OLD_NAMES)})", told)

    def test_who_has_asked_for_help_can_still_use_every_name_of_an_option(self, rposst: Run) -> None:
        shown = rposst("solve", "--help").out
        options = ["--size", "1", "--no-rescale", "--json"]
        assert rposst("solve", "results.csv", *options).json["status"] == "optimal"
        assert rposst("solve", "--help").out == shown

    def test_all_that_write_a_file_can_be_forced_to_write_over_one(self, rposst: Run) -> None:
        forced = [name for name in NAMES if "--force" in rposst(str(name), "--help").out]
        assert set(forced) == set(NAMES) - {"demo", "backends", "domain"}


class TestSlips:
    @pytest.mark.parametrize(
        ("asked", "answer"),
        [
            ("solv", "No such command 'solv'. Did you mean 'solve'?"),
            ("magic", "No such command 'magic'. See `rposst --help`."),
            ("solve results.csv --sise 2", "there is no option --sise: did you mean --size?"),
            ("solve results.csv --time-limt 3", "there is no option --time-limt: did you mean --time-limit?"),
            ("solve results.csv --wizardry", "there is no option --wizardry. See `rposst solve --help`."),
            ("score test.json results.csv --outt s.csv", "there is no option --outt: did you mean --out?"),
            ("solve results.csv --csv test.json", "there is no option --csv: did you mean --out?"),
            ("solve results.csv --solver exact", "there is no option --solver: did you mean --backend?"),
            ("agree results.csv --solver exact", "there is no option --solver: did you mean --backends?"),
            ("solve results.csv --limit 3", "there is no option --limit: did you mean --time-limit?"),
            ("compare results.csv --timeout 3", "there is no option --timeout: did you mean --time-limit?"),
            ("budget results.csv --output curve.png", "there is no option --output: did you mean --out?"),
            ("backends --out list.csv", "there is no option --out. See `rposst backends --help`."),
            ("report results.csv --json", "there is no option --json. See `rposst report --help`."),
            ("solve results.csv --no-rescal", "there is no option --no-rescal: did you mean --no-rescale?"),
            ("solve results.csv --size 2 more", "(more). See `rposst solve --help`."),
            ("solve results.csv --size 2 --backend exat", "unknown backend 'exat': did you mean 'exact'? Known: auto"),
            ("solve results.csv --size 2 --loss absolut", "unknown loss 'absolut': did you mean 'absolute'?"),
            (
                "solve results.csv --size 2 --measure wrst",
                "must be one of mean, worst, got 'wrst': did you mean worst?",
            ),
            (
                "solve results.csv --size 2 --require A",
                "unknown test case 'A': did you mean 'a'? Known: 'a', 'b', 'c'.",
            ),
            ("solve results.csv --size 2 --player predictiv", "got 'predictiv': did you mean 'predictive'?"),
            ("solve results.csv --size 2 --format exel", "unknown format 'exel': did you mean 'excel'?"),
            ("validate results.csv --size 1 --selections rpost", "unknown selection 'rpost': did you mean 'rposst'?"),
            ("validate results.csv --size 1 --estimators rige", "unknown estimator 'rige': did you mean 'ridge'?"),
            ("solve results.csv --size 9", "rposst: --size must lie between 1 and the 3 test cases, got 9."),
            ("solve results.csv --size 2 --time-limit -1", "rposst: --time-limit must not be negative, got -1."),
            (
                "solve results.csv --size 2 --noise -1",
                "--noise must be a standard error, finite and not negative, got -1.",
            ),
            ("export results.csv --size 2", "--out is missing. The file to write: .mps, or .lp for people."),
            ("score nope.json results.csv", "rposst: nope.json: there is no such file.\n"),
            ("score bnary.json results.csv", "bnary.json: there is no such file: did you mean 'binary.json'?"),
            ("score empty.json results.csv", "empty.json: the file is empty: a test is expected."),
            ("score binary.json results.csv", "binary.json: the file is not UTF-8 text (byte 0): save it as UTF-8."),
            (
                "score words.json results.csv",
                "words.json: this is not JSON (Expecting value: line 1 column 1 (char 0)): a test is expected.",
            ),
            ("score . results.csv", ".: this is a folder, not a file: name a file."),
            ("solve . --size 2", ".: this is a folder: name a file, or say by --format whose logs are in it."),
        ],
    )
    def test_a_slip_is_answered_by_what_was_meant(self, rposst: Run, asked: str, answer: str) -> None:
        outcome = rposst(*asked.split())
        assert (outcome.code, outcome.out) == (2, "")
        assert answer in outcome.told and len(outcome.told.splitlines()) == 1

    def test_a_wrong_value_is_told_with_the_option(self, rposst: Run) -> None:
        """The rule between them is in the words of Typer, which differ between its versions."""
        for option, value in (("--size", "two"), ("--jobs", "0")):
            outcome = rposst("budget", "results.csv", option, value)
            assert outcome.code == 2 and outcome.err.startswith(f"rposst: {option}") and value in outcome.err

    def test_an_option_that_a_backend_has_not_is_told_with_those_that_have_it(self, rposst: Run) -> None:
        told = rposst("solve", "results.csv", "--size", "2", "--backend", "exact", "--seed", "3").told
        assert "backend 'exact' has no option --seed. It has: --top, --all-optimal, --certificate, " in told
        assert "Backends that have --seed: local-search, " in told
        told = rposst("solve", "results.csv", "--size", "2", "--seed", "3").told
        assert "no backend that `auto` chooses among has an option --seed. They have: " in told

    @pytest.mark.parametrize(
        ("call", "slip", "answer"),
        [
            (ro.agree, "time_limit", "agree has no argument 'time_limit': did you mean 'time_limit_seconds'?"),
            (ro.compare, "time_limit", "compare has no argument 'time_limit': did you mean 'time_limit_seconds'?"),
            (ro.compare, "solvers", "compare has no argument 'solvers': did you mean 'backends'?"),
            (ro.validate, "fold", "validate has no argument 'fold': did you mean 'folds'?"),
            (ro.validate, "wizardry", "validate has no argument 'wizardry'. It has: results, sizes, purpose, "),
            (ro.fuzz, "problem", "fuzz has no argument 'problem': did you mean 'problems'?"),
            (ro.Problem.from_results, "sise", "Problem.from_results has no argument 'sise': did you mean 'size'?"),
            (ro.Problem.from_results, "beta", "has no argument 'beta': did you mean 'betas'?"),
            (ro.Problem.from_results, "required", "has no argument 'required': did you mean 'required_cases'?"),
        ],
    )
    def test_a_mistyped_argument_in_python_is_answered_by_the_one_that_is_meant(
        self, call: Callable[..., object], slip: str, answer: str
    ) -> None:
        table = [[0.0, 1.0], [1.0, 0.0]]
        first: dict[Callable[..., object], tuple[object, ...]] = {ro.fuzz: (), ro.validate: (table, [1])}
        first |= dict.fromkeys((ro.agree, ro.compare), (ro.Problem(results=table, size=1),))
        with pytest.raises(TypeError, match=re.escape(answer)):
            call(*first.get(call, (table,)), **{slip: 1})

    def test_a_problem_and_its_rules_name_the_right_argument(self) -> None:
        with pytest.raises(TypeError, match="Problem has no argument 'ofset': did you mean 'offset'"):
            ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1, ofset=True)  # type: ignore[call-arg]
        problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1)
        with pytest.raises(TypeError, match="Problem has no argument 'conflict': did you mean 'conflicts'"):
            problem.with_rules(conflict=[[0, 1]])  # type: ignore[call-arg]

    @pytest.mark.parametrize("backend", ["auto", "exact"])
    def test_an_argument_in_python_too(self, backend: str) -> None:
        problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1)
        with pytest.raises(ro.ProblemError, match=r"option `time_limit`: did you mean `time_limit_seconds`\?"):
            ro.solve(problem, backend, time_limit=3)

    def test_columns_and_unknown_words_stay_as_they_are(self) -> None:
        message = "`size` and `required_cases`, the column `size`, `rposst size` and `exact`."
        words = in_options(message, {"size": "--size", "require": "--require"})
        assert words == "--size and --require, the column `size`, `rposst size` and `exact`."

    def test_a_file_that_may_not_be_read_is_told_as_such(self, rposst: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(path: Path) -> bytes:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_bytes", refuse)
        assert "words.json: this file may not be read by you" in rposst("score", "words.json", "results.csv").err


class TestWriting:
    def test_what_was_written_is_told_and_not_written_over_unless_forced(self, rposst: Run, folder: Path) -> None:
        solve = ("solve", "results.csv", "--size", "2", "--certificate", "proof.json", "--out", "test.json")
        asked = {
            "test.json": solve,
            "scores.csv": ("score", "test.json", "results.csv", "--csv", "scores.csv"),
            "subset.json": ("write-subset", "test.json", "--for", "json", "--out", "subset.json"),
            "model.mps": ("export", "results.csv", "--size", "2", "--out", "model.mps"),
            "arrows.csv": ("domain", "racing-arrows-follower", "--n", "3", "--out", "arrows.csv"),
        }
        for name, command in asked.items():
            outcome = rposst(*command)
            assert outcome.code == 0 and re.search(rf"^wrote {name}(:|$)", outcome.err, flags=re.MULTILINE), name
        assert (folder / "scores.csv").read_text().startswith("rank,policy,score")
        for name, command in asked.items():
            (folder / name).rename(folder / "moved")
            (folder / name).write_text((folder / "moved").read_text())
            before = (folder / name).stat().st_ino
            refused = rposst(*command)
            assert (refused.code, refused.out) == (2, "") and "exists already" in refused.err
            assert (folder / name).stat().st_ino == before
            assert rposst(*command, "--force").code == 0
            assert (folder / name).stat().st_ino != before

    def test_scores_and_agreement_have_an_out_that_is_their_csv(self, rposst: Run, folder: Path) -> None:
        assert rposst("solve", "results.csv", "--size", "2", "--out", "test.json").code == 0
        agree = ("agree", "results.csv", "--size", "2", "--backends", "exact")
        for command in (("score", "test.json", "results.csv"), agree):
            for option in ("--out", "--csv"):
                assert rposst(*command, option, f"{command[0]}{option}.csv").code == 0
            by_out, by_csv = (pd.read_csv(folder / f"{command[0]}{option}.csv") for option in ("--out", "--csv"))
            assert not by_out.empty
            lasting = [name for name in by_out if not str(name).endswith("seconds")]
            assert list(by_out) == list(by_csv) and by_out[lasting].equals(by_csv[lasting])

    @pytest.mark.parametrize("option", ["--out", "--certificate"])
    def test_a_test_is_not_written_to_what_is_called_a_table(self, rposst: Run, folder: Path, option: str) -> None:
        outcome = rposst("solve", "results.csv", "--size", "2", option, "test.CSV")
        assert (outcome.code, outcome.out) == (2, "") and not (folder / "test.CSV").exists()
        assert f"{option} writes JSON, got 'test.CSV': name it .json" in outcome.err
        assert "`rposst write-subset TEST.json --for csv`" in outcome.err

    def test_scores_have_a_column_of_warnings_only_where_there_are_any(self, rposst: Run, folder: Path) -> None:
        assert rposst("solve", "results.csv", "--size", "2", "--out", "test.json").code == 0
        write_table(folder / "strange.csv", ["a", "b", "c"], ["p", "odd"], [[0.1, 9.0], [0.4, 9.0], [0.7, 9.0]])
        widths = {}
        for name in ("results.csv", "strange.csv"):
            shown = rposst("score", "test.json", name).out.splitlines()
            headings = next(line for line in shown if "policy" in line)
            widths[name] = [cell.strip() for cell in re.split("[┃│]", headings)[1:-1]]
        assert widths["results.csv"] == ["rank", "policy", "score"]
        assert widths["strange.csv"][-1].startswith("unlike")

    def test_what_is_read_is_not_written_over_even_by_force(self, rposst: Run) -> None:
        outcome = rposst("export", "results.csv", "--size", "2", "--out", "results.csv", "--force")
        assert outcome.code == 2 and "results.csv: this file is read as input, and is not written over" in outcome.err

    def test_forms_are_not_written_over_either(self, rposst: Run, folder: Path) -> None:
        (folder / "made").mkdir()
        (folder / "made/form-2.json").write_text("kept")
        asked = ("forms", "results.csv", "--size", "1", "--count", "2", "--out")
        for place, words in (("made", "made/form-2.json exists already"), ("results.csv", "a file, not a folder")):
            outcome = rposst(*asked, place)
            assert outcome.code == 2 and words in outcome.err
        assert (folder / "made/form-2.json").read_text() == "kept"
        assert "wrote made/form-1.json\nwrote made/form-2.json\n" in rposst(*asked, "made", "--force").err
