"""Tables in a folder are gone on with by the same run alone: what another run, or somebody else, wrote there stays."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from sample_files import write_table

VALIDATE = "validate results.csv --selections stratified --estimators weights,ridge --folds 3 --replicas 1 --jobs 1"
REFEREE = "referee --problems 2 --families binary --backends scipy-milp"
REPRODUCE = "reproduce poker --table cup.csv --methods exact --replicas 1 --holdouts 0.4 --jobs 1"
COMMANDS = {  # the command, the same with another option, a table that it writes to the folder `found`
    "validate": (f"{VALIDATE} --size 2", f"{VALIDATE} --size 3", "summary.csv"),
    "referee": (f"{REFEREE} --seed 1", f"{REFEREE} --seed 2", "trials.csv"),
    "reproduce": (f"{REPRODUCE} --sizes 1", f"{REPRODUCE} --sizes 2", "poker/summary.csv"),
}
ANY_COMMAND = pytest.mark.parametrize(("one", "other", "table"), COMMANDS.values(), ids=COMMANDS)
SOURCES = {name: str(Path(table).with_name("source.json")) for name, (_, _, table) in COMMANDS.items()}


@pytest.fixture
def ask(rposst: Run, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    values = np.random.default_rng(0).normal(50, 10, (8, 9))
    write_table(tmp_path / "results.csv", [f"c{i}" for i in range(8)], [f"p{j}" for j in range(9)], values.tolist())
    scores = np.random.default_rng(1).normal(0, 100, (6, 6))
    names = [f"agent {place}" for place in range(6)]
    write_table(tmp_path / "cup.csv", names, names, (scores - scores.T).tolist())

    def run(command: str, *more: str) -> tuple[int, str]:
        outcome = rposst(*command.split(), "--out", "found", *more)
        return outcome.code, outcome.err

    return run


Ask = Callable[..., tuple[int, str]]


@ANY_COMMAND
def test_a_table_of_somebody_else_is_kept_unless_forced(
    ask: Ask, tmp_path: Path, one: str, other: str, table: str
) -> None:
    path = tmp_path / "found" / table
    path.parent.mkdir(parents=True)
    path.write_text("precious")
    code, told = ask(one)
    assert code == 2
    assert f"found/{table}: nothing says of which run this file is, and it is not written over" in told
    assert told.rstrip().endswith("name another folder, or give --force.")
    assert [each for each in (tmp_path / "found").rglob("*") if each.is_file()] == [path]
    assert path.read_text() == "precious"
    code, told = ask(one, "--force")
    assert code == 0, told
    assert path.read_text() != "precious"


@ANY_COMMAND
def test_the_same_run_goes_on_and_another_is_refused_unless_forced(
    ask: Ask, tmp_path: Path, one: str, other: str, table: str
) -> None:
    code, told = ask(one)
    assert code == 0, told
    written = (tmp_path / "found" / table).read_bytes()
    code, told = ask(one)
    assert code == 0, told
    assert (tmp_path / "found" / table).read_bytes() == written
    option, before, now = other.split()[-2], one.split()[-1], other.split()[-1]
    code, told = ask(other)
    assert code == 2
    assert f"this file is of a run with another {option} ({before} then, {now} now)" in told
    assert (tmp_path / "found" / table).read_bytes() == written
    code, told = ask(other, "--force")
    assert code == 0, told
    assert (tmp_path / "found" / table).read_bytes() != written
    assert ask(other)[0] == 0


@ANY_COMMAND
def test_a_run_that_ended_before_its_tables_is_gone_on_with(
    ask: Ask, tmp_path: Path, one: str, other: str, table: str
) -> None:
    assert ask(one)[0] == 0
    for path in (tmp_path / "found" / table).parent.iterdir():
        if path.is_file():
            path.unlink()
    code, told = ask(one)
    assert code == 0, told


@pytest.mark.parametrize("command", COMMANDS)
def test_tables_of_a_version_that_kept_no_options_are_kept(ask: Ask, tmp_path: Path, command: str) -> None:
    one = COMMANDS[command][0]
    assert ask(one)[0] == 0
    source = tmp_path / "found" / SOURCES[command]
    record = json.loads(source.read_text())
    del record["options"]
    source.write_text(json.dumps(record))
    code, told = ask(one)
    assert code == 2 and "which did not write down its options" in told and "--force" in told


@pytest.mark.parametrize("command", COMMANDS)
def test_a_source_of_somebody_else_is_kept(ask: Ask, tmp_path: Path, command: str) -> None:
    source = tmp_path / "found" / SOURCES[command]
    source.parent.mkdir(parents=True)
    source.write_text("precious")
    code, told = ask(COMMANDS[command][0])
    assert code == 2 and "source.json: this is not JSON" in told and "--force" in told
    assert source.read_text() == "precious"


@pytest.mark.parametrize("command", ["validate", "referee"])
def test_a_file_in_the_place_of_the_folder_is_told(ask: Ask, tmp_path: Path, command: str) -> None:
    (tmp_path / "found").write_text("precious")
    code, told = ask(COMMANDS[command][0], "--force")
    assert code == 2 and "found: this is a file, not a folder: name a folder." in told
    assert (tmp_path / "found").read_text() == "precious"


def test_trials_of_another_table_or_of_files_that_have_changed_are_kept(ask: Ask, tmp_path: Path) -> None:
    groups = tmp_path / "groups.csv"
    groups.write_text("policy,group\n" + "".join(f"p{j},{'ab'[j % 2]}\n" for j in range(9)))
    one = f"{VALIDATE} --size 2 --groups groups.csv"
    assert ask(one)[0] == 0
    groups.write_text("policy,group\n" + "".join(f"p{j},{'abc'[j % 3]}\n" for j in range(9)))
    code, told = ask(one)
    assert code == 2 and "this file is of a run with another --groups, and it is not written over" in told
    groups.write_text("policy,group\n" + "".join(f"p{j},{'ab'[j % 2]}\n" for j in range(9)))
    assert ask(one)[0] == 0
    table = tmp_path / "results.csv"
    table.write_text(table.read_text().replace("c7", "c8"))
    code, told = ask(one)
    assert code == 2 and "this file is of a run on another table" in told


def test_a_table_that_is_read_is_not_written_over_even_if_forced(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "summary.csv").write_bytes((tmp_path / "results.csv").read_bytes())
    code, told = ask(VALIDATE.replace("results.csv", "found/summary.csv") + " --size 2", "--force")
    assert code == 2 and "this file is read as input" in told
    assert (tmp_path / "found" / "summary.csv").read_bytes() == (tmp_path / "results.csv").read_bytes()


def test_a_longer_run_of_the_referee_goes_on_with_a_shorter_one(ask: Ask, tmp_path: Path) -> None:
    assert ask(COMMANDS["referee"][0])[0] == 0
    before = (tmp_path / "found" / "trials.csv").read_text()
    assert ask(COMMANDS["referee"][0].replace("--problems 2", "--problems 3"))[0] == 0
    assert (tmp_path / "found" / "trials.csv").read_text().startswith(before)
