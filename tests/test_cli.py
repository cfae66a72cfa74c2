"""What holds for every command: help, messages, exit codes, names that are only data, runs that end early."""

import os
import re
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from commands import COMMAND, Outcome, Run, has_traceback, run_process, strict_json
from sample_files import files_in, write_random_table, write_table

import rposst_opt as ro
from rposst_opt import backends
from rposst_opt.__main__ import stems_from_interrupt

pytestmark = pytest.mark.usefixtures("compiled_kernels")

HEAVY_PACKAGES = ("numpy", "pandas", "numba", "scipy", "cvxpy", "pulp", "matplotlib")
SUB_COMMANDS = (
    "demo",
    "solve",
    "score",
    "write-subset",
    "budget",
    "forms",
    "report",
    "explore",
    "verify",
    "agree",
    "compare",
    "export",
    "backends",
    "calibrate",
    "reproduce",
    "domain",
)
HELP_COMMANDS = ("--help", "--version", *(f"{name} --help" for name in SUB_COMMANDS))
ASKING_FOR_HELP = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from rposst_opt.__main__ import main

outcomes, before = {{}}, set()
for command in {commands!r}:
    sys.argv, out, err, code = ["rposst", *command.split()], StringIO(), StringIO(), None
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = ended.code or 0
    imported = [name for name in {heavy!r} if name in sys.modules and name not in before]
    before.update(sys.modules)
    outcomes[command] = [code, out.getvalue(), err.getvalue(), imported]
print(json.dumps(outcomes))
"""
LONG_RUN = ("big.csv", "--size", "5", "--backend", "regret-matching", "--rounds", "5000", "--json")
SOLVE = "solve good.csv --size 2 --out kept.json --force"
BAD_INPUT: list[tuple[str, list[str]]] = [
    ("nonsense", ["nonsense"]),
    ("--nonsense", ["--nonsense"]),
    ("solve", ["RESULTS.csv"]),
    ("solve good.csv --out kept.json --force", ["--size"]),
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
    (f"{SOLVE} --tail-fraction 1.5", ["--tail-fraction", "1.5"]),
    (f"{SOLVE} --tail-fraction -0.1", ["--tail-fraction", "-0.1"]),
    (f"{SOLVE} --tail-fraction nan", ["--tail-fraction", "nan"]),
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
    (f"{SOLVE} --player cfr", ["player", "'cfr'", "smooth-predictive"]),
    (f"{SOLVE} --restarts often", ["restarts", "'often'", "never, last, best"]),
    ("solve good.csv --size 2 --out missing/test.json", ["missing/test.json", "folder"]),
    ("solve good.csv --size 2 --out folder", ["folder"]),
    ("solve good.csv --size 2 --out good.csv/test.json", ["good.csv"]),
    (f"solve good.csv --size 2 --out {'x' * 300}", ["xxx"]),
    ("solve missing.csv --size 2 --out kept.json --force", ["missing.csv"]),
    ("solve folder --size 2 --out kept.json --force", ["folder"]),
    ("solve empty.csv --size 2 --out kept.json --force", ["empty.csv", "empty"]),
    ("solve header.csv --size 2 --out kept.json --force", ["header.csv"]),
    ("solve names.csv --size 2 --out kept.json --force", ["names.csv"]),
    ("solve nan.csv --size 2 --out kept.json --force", ["nan.csv", "'b'", "'q'", "nan"]),
    ("solve inf.csv --size 2 --out kept.json --force", ["inf.csv", "'b'", "'q'", "-inf"]),
    ("solve blank.csv --size 2 --out kept.json --force", ["blank.csv", "'b'", "'q'"]),
    ("solve text.csv --size 2 --out kept.json --force", ["text.csv", "'b'", "'q'", "hello"]),
    ("solve decimal.csv --size 2 --out kept.json --force", ["decimal.csv", "'b'", "'q'", "0,5"]),
    ("solve short.csv --size 2 --out kept.json --force", ["short.csv", "'b'", "'q'"]),
    ("solve long.csv --size 2 --out kept.json --force", ["long.csv", "line 3"]),
    ("solve repeated.csv --size 2 --out kept.json --force", ["repeated.csv", "'a'"]),
    ("solve columns.csv --size 2 --out kept.json --force", ["columns.csv", "'p'"]),
    ("solve nameless.csv --size 2 --out kept.json --force", ["nameless.csv", "name"]),
    ("solve binary.csv --size 2 --out kept.json --force", ["binary.csv"]),
    ("solve latin.csv --size 2 --out kept.json --force", ["latin.csv", "UTF-8"]),
    (f"{SOLVE} --targets missing.csv", ["missing.csv"]),
    (f"{SOLVE} --targets short-targets.csv", ["short-targets.csv", "'d'"]),
    (f"{SOLVE} --targets zero-targets.csv", ["targets", "above zero"]),
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


@pytest.fixture(scope="module")
def asked_for_help() -> dict[str, list[Any]]:
    """How every such command ends, what it prints, and which heavy packages it imports: one process for all."""
    done = subprocess.run(
        [sys.executable, "-c", ASKING_FOR_HELP.format(commands=HELP_COMMANDS, heavy=HEAVY_PACKAGES)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    outcomes: dict[str, list[Any]] = strict_json(done.stdout)
    return outcomes


class TestHelp:
    @pytest.mark.parametrize("flag", ["--help", "-h"])
    def test_help_lists_the_commands(self, rposst: Run, flag: str) -> None:
        outcome = rposst(flag)
        assert outcome.code == 0
        assert outcome.told == ""
        for name in SUB_COMMANDS:
            assert name in outcome.out

    @pytest.mark.parametrize("name", SUB_COMMANDS)
    def test_every_command_has_help(self, rposst: Run, name: str) -> None:
        outcome = rposst(name, "--help")
        assert outcome.code == 0
        assert name in outcome.out
        assert outcome.told == ""

    def test_help_on_solve_names_every_option_of_the_contract(self, rposst: Run) -> None:
        text = re.sub(r"\x1b\[[0-9;]*m", "", rposst("solve", "--help").out)
        options = "size tail-fraction k n measure loss betas targets probabilities require forbid backend rounds"
        for option in [*options.split(), "time-limit", "gap", "[no-]rescale", "out", "json"]:
            assert re.search(rf"(?<![\w-])--{re.escape(option)}(?![\w-])", text), option

    def test_version(self, rposst: Run) -> None:
        assert rposst("--version") == Outcome(0, f"rposst {ro.__version__}\n", "")

    def test_without_arguments_there_is_help_and_no_empty_message(self, rposst: Run) -> None:
        outcome = rposst()
        assert "solve" in outcome.out + outcome.err
        assert "rposst:" not in [line.strip() for line in outcome.err.splitlines()]

    @pytest.mark.parametrize("command", HELP_COMMANDS)
    def test_help_and_version_import_nothing_heavy(self, asked_for_help: dict[str, list[Any]], command: str) -> None:
        code, out, err, imported = asked_for_help[command]
        assert code == 0
        assert out
        assert err == ""
        assert imported == []


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
        "zero-targets.csv": "case,t\na,0\nb,0\nc,0\nd,0\n",
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
        assert outcome.told.startswith("rposst: ")
        assert len(outcome.told.splitlines()) == 1, outcome.err
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
            assert len(outcome.told.splitlines()) == 1

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
        outcome = run_process("solve", "nan.csv", "--size", "2", "--out", "kept.json", "--force", folder=files)
        assert (outcome.code, outcome.out) == (2, "")
        assert len(outcome.told.splitlines()) == 1
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
        assert solved.told == "" and "policies are called like policies that the test was tuned on" in scored.err
        for outcome in (solved, scored):
            assert outcome.code == 0
            assert self.is_safe(outcome.out) and self.is_safe(outcome.err)
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
        assert len(outcome.told.splitlines()) == 1
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


def seconds_of_ended_processes() -> float:
    """The processor's time, which does not depend on what else the machine does, of all that this process started."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def interrupt_a_long_run(folder: Path, *, times: int) -> tuple[Outcome, float]:
    """Interrupt a run once its progress bar, on a terminal of its own, shows that it is at work; and its seconds."""
    terminal, its_end = os.openpty()
    before = seconds_of_ended_processes()
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
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            seen += read_terminal(terminal, until=lambda text: False)
            out, _ = process.communicate(timeout=60)
        finally:
            process.kill()
            os.close(terminal)
    seconds = seconds_of_ended_processes() - before
    return Outcome(process.returncode, out.decode(), seen.decode(errors="replace")), seconds


DEAF_SOLVER = """
import hashlib, signal, sys
import rposst_opt as ro
from rposst_opt.__main__ import main
from rposst_opt.backends import BACKENDS, Entry
class Deaf:
    capabilities = ro.Capabilities(
        method="sums", handles=frozenset(ro.Need), finds_optimum=True, proves="nothing", tolerance=1e-6
    )
    def solve(self, problem, budget):
        signal.signal(signal.SIGINT, lambda number, frame: None)  # so it is deaf before its sums begin, too
        print("begun", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)  # hours in C, as a solver may take
sys.modules["deaf"] = sys.modules["__main__"]
BACKENDS["deaf"] = Entry("deaf", "Deaf")
sys.argv = ["rposst", "solve", "big.csv", "--size", "5", "--backend", "deaf", "--json"]
main()
"""

STARTING_UP = """
import os, runpy, signal, sys

class InterruptedImport:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            open("interrupted", "w").close()
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, InterruptedImport())
sys.argv = [{command!r}, "solve", "crossed.csv", "--size", "1", "--json", "--backend", "regret-matching"]
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
            open("interrupted", "w").close()
            os.kill(os.getpid(), signal.SIGINT)
        return function(*arguments)
    return call

def set_interrupted_cache(self, notify_func=None, getbuffer_func=None):
    set_object_cache(self, interrupted(notify_func, "notify"), interrupted(getbuffer_func, "getbuffer"))

ExecutionEngine.set_object_cache = set_interrupted_cache
sys.argv = [{command!r}, "solve", "crossed.csv", "--size", "1", "--json", "--backend", "regret-matching"]
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

    def test_an_error_that_an_interrupt_has_caused_is_taken_for_one(self) -> None:
        def broken_lock() -> None:
            try:
                raise KeyboardInterrupt
            finally:
                raise RuntimeError("release unlocked lock")

        with pytest.raises(RuntimeError) as raised:
            broken_lock()
        assert stems_from_interrupt(raised.value)
        assert stems_from_interrupt(KeyboardInterrupt())
        assert not stems_from_interrupt(RuntimeError("a bug"))
        assert not stems_from_interrupt(SystemExit(2))

    def test_a_second_interrupt_ends_it_at_once(self, big: Path) -> None:
        outcome, seconds = interrupt_a_long_run(big, times=2)
        if outcome.code == -signal.SIGINT:  # it struck when all was done, and Python itself was about to end
            outcome = replace(outcome, code=0)
        assert outcome.code in (0, 1, 130)
        assert not has_traceback(outcome.err)
        assert seconds < 10
        written = {"big.csv", "test.json"} == set(os.listdir(big))
        if outcome.code == 1:
            record = strict_json(outcome.out)
            assert (record["status"], record["limit"]) == ("no_test", "an interrupt")
            assert not written
        if outcome.code == 0 or written:  # also by an interrupt that struck when the test was written and not yet shown
            assert len(strict_json((big / "test.json").read_text())["cases"]) == 5
        else:
            assert os.listdir(big) == ["big.csv"]

    def test_a_second_interrupt_ends_a_solver_that_does_not_return_to_python(self, big: Path) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", DEAF_SOLVER],
            cwd=big,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"begun\n"
                deadline = time.monotonic() + 30
                for _ in range(4):  # two that are sent at once may count as one
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.1)
                while process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.05)
                process.kill()
                out, err = process.communicate()
            finally:
                process.kill()
        assert (process.returncode, out) == (130, b"")
        assert err.endswith(b"rposst: interrupted.\n")
        assert not has_traceback(err.decode())

    def test_a_time_limit_ends_a_run_with_the_best_test_so_far(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "big.csv", 60, 40)
        started = time.process_time()
        record = rposst("solve", *LONG_RUN, "--time-limit", "1").json
        assert time.process_time() - started < 30
        assert record["limit"] == "the time limit"
        assert record["status"] == "feasible"
        assert len(record["cases"]) == 5
        assert record["gap"] > 0

    def test_people_are_told_what_ended_a_run(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "big.csv", 60, 40)
        outcome = rposst("solve", *LONG_RUN[:-1], "--time-limit", "0")
        assert outcome.code == 0
        assert "the time limit" in outcome.out

    def test_an_interrupt_of_a_command_is_said(self, rposst: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        rposst("sample", "--out", "results.csv")
        monkeypatch.setattr("rposst_opt.unseen.validation.validate", interrupted)
        outcome = rposst("validate", "results.csv", "--size", "2")
        assert (outcome.code, outcome.told) == (130, "rposst: interrupted.\n")

    @pytest.mark.parametrize("module", ["typer", "numpy", "pandas", "numba", "rposst_opt.solvers.kernels.response"])
    def test_an_interrupt_during_start_up_leaves_no_traceback(self, crossed: Path, module: str) -> None:
        self.check_start_up(crossed, STARTING_UP.format(module=module, command=str(COMMAND)))

    @pytest.mark.parametrize("moment", ["notify", "getbuffer"])
    def test_an_interrupt_while_kernels_are_loaded_leaves_no_traceback(self, crossed: Path, moment: str) -> None:
        self.check_start_up(crossed, LOADING_KERNELS.format(moment=moment, command=str(COMMAND)))

    @staticmethod
    def check_start_up(folder: Path, program: str) -> None:
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=120)
        assert (folder / "interrupted").exists()
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
