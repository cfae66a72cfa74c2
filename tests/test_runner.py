"""Runs that are killed, runs by many processes and runs on a cluster end with the same bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from clusters import dask_processes

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.experiments.protocol import Choice
from rposst_opt.experiments.studies import Study, Task
from rposst_opt.unseen.runner import run_tasks, sources_digest

METHODS = ("exact", "minimax-uniform", "random")


def tasks(replicas: int = 3, sizes: tuple[int, ...] = (1, 2)) -> list[Task]:
    table = racing_arrows(12, np.random.default_rng(0))
    study = Study(
        name="arrows", title="", table=table, holdouts=(0.2, 0.6), sizes=sizes, replicas=replicas, methods=METHODS
    )
    return [study.task(cell) for cell in study.cells()]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_outcomes_are_in_the_order_of_the_tasks_and_kept(tmp_path: Path) -> None:
    asked = tasks()
    found = run_tasks(asked, tmp_path)
    assert found == [task.run() for task in asked]
    assert len(list(tmp_path.rglob("*.json"))) == len(asked)


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tasks()
    found = run_tasks(asked, tmp_path)

    def refuse(task: Task) -> tuple[Choice, ...]:
        raise AssertionError(f"{task.name} was run again")

    monkeypatch.setattr(Task, "run", refuse)
    assert run_tasks(asked, tmp_path) == found
    with pytest.raises(AssertionError, match="was run again"):
        run_tasks(tasks(replicas=4), tmp_path)


def test_more_replicas_use_what_is_there(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    run_tasks(tasks(replicas=2), tmp_path)
    run_tasks(tasks(replicas=3), tmp_path, tell=lambda what, done, total: told.append((done, total)))
    assert told == [(done, 12) for done in range(8, 13)]


def test_another_matrix_size_or_seed_is_another_task() -> None:
    task = tasks()[0]
    others = [
        Task(task.name, task.tuning + 1e-12, task.size, task.methods, task.seed),
        Task(task.name, task.tuning.reshape(-1, 6), task.size, task.methods, task.seed),
        Task(task.name, task.tuning, 3, task.methods, task.seed),
        Task(task.name, task.tuning, task.size, ("exact",), task.seed),
        Task(task.name, task.tuning, task.size, task.methods, 99),
    ]
    assert len({task.digest, *(other.digest for other in others)}) == 6
    assert Task(task.name, task.tuning.copy(), task.size, task.methods, task.seed).digest == task.digest


@pytest.mark.parametrize(
    ("place", "runs_again"),
    [
        ("problem.py", True),
        ("solvers/regret_matching.py", True),
        ("solvers/kernels/response.py", True),
        ("backends/__init__.py", True),
        ("backends/table.py", True),
        ("experiments/methods.py", True),
        ("experiments/protocol.py", True),
        ("backends/forecast.py", False),
        ("referee/agreement.py", False),
        ("files/writing.py", False),
        ("reports/wording.py", False),
        ("reports/plots.py", False),
        ("reports/pages/sections.py", False),
        ("experiments/figures.py", False),
        ("cli/__init__.py", False),
    ],
)
def test_experiments_run_again_if_the_code_that_chooses_tests_has_changed_and_not_for_a_sentence(
    place: str, runs_again: bool, tmp_path: Path
) -> None:
    package = Path(ro.__file__).parent
    copy = tmp_path / "rposst_opt"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = sources_digest(package)
    (copy / place).write_text((copy / place).read_text() + "\n# Another sentence.\n")
    assert (sources_digest(copy) != before) == runs_again


@pytest.mark.parametrize("damage", ["", "[", "{}", '[{"method": "exact"}]', "[1]"])
def test_a_damaged_file_is_named(damage: str, tmp_path: Path) -> None:
    asked = tasks(replicas=1, sizes=(1,))
    run_tasks(asked, tmp_path)
    path = sorted(tmp_path.rglob("*.json"))[0]
    path.write_text(damage)
    with pytest.raises(ro.ProblemError, match=f"{path.name} is not what was written there: delete it"):
        run_tasks(asked, tmp_path)


def test_two_processes_find_the_same(tmp_path: Path) -> None:
    run_tasks(tasks(), tmp_path / "one", jobs=1)
    run_tasks(tasks(), tmp_path / "two", jobs=2)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def command(out: Path, *more: str) -> list[str]:
    asked = ["reproduce", "racing-arrows", "--quick", "--methods", "exact,minimax-uniform,regret-matching,random"]
    return [sys.executable, "-m", "rposst_opt", *asked, "--replicas", "4", "--every-error", "--out", str(out), *more]


def wait_for_parts(out: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 180
    while len(list(out.glob("parts/*/*.json"))) < count:
        assert process.poll() is None, "the run ended before it could be disturbed"
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed")
    subprocess.run(command(out, "--jobs", "1"), check=True, capture_output=True)
    return files_of(out)


def kill_when_there_are(parts: int, out: Path) -> None:
    """Begin or go on with a run, and kill it with all its processes when this much is done."""
    run = subprocess.Popen(
        command(out, "--jobs", "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_for_parts(out, parts, run)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()


def assert_what_is_left_is_whole(left: dict[str, bytes]) -> None:
    assert not any(name.endswith(".png") for name in left)
    for name, content in left.items():
        if name.endswith(".json") and not Path(name).name.startswith("."):
            assert json.loads(content), f"{name} is not whole"


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_goes_on_and_ends_with_the_same_bytes(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    for parts in (1, 9):
        kill_when_there_are(parts, tmp_path)
        assert_what_is_left_is_whole(files_of(tmp_path))
    subprocess.run(command(tmp_path, "--jobs", "2"), check=True, capture_output=True)
    ended = {name: content for name, content in files_of(tmp_path).items() if not Path(name).name.startswith(".")}
    assert ended == undisturbed


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_half_way_finds_the_same(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    pytest.importorskip("distributed")
    out = tmp_path / "out"
    with dask_processes(tmp_path) as (address, workers):
        run = subprocess.Popen(command(out, "--scheduler", address), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wait_for_parts(out, 12, run)
        workers[0].kill()
        _, complaints = run.communicate(timeout=300)
    assert run.returncode == 0, complaints.decode()
    assert files_of(out) == undisturbed


def test_a_scheduler_that_is_not_there_is_told(tmp_path: Path) -> None:
    hasty = "import rposst_opt.solvers.cluster as cluster; cluster.SECONDS_FOR_AN_ANSWER = 1"
    hasty += "; from rposst_opt.__main__ import main; main()"
    python, _, _, *arguments = command(tmp_path, "--scheduler", "tcp://127.0.0.1:9")
    refused = subprocess.run([python, "-c", hasty, *arguments], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:9'" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def test_without_dask_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = r"^a cluster needs distributed, which is not installed: pip install 'rposst-opt\[cluster\]'$"
    with pytest.raises(ro.BackendUnavailable, match=message):
        run_tasks(tasks(replicas=1), tmp_path, scheduler="tcp://127.0.0.1:9")
