"""Runs that are killed, runs by many processes and runs on a cluster end with the same bytes."""

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from clusters import NOWHERE, dask_processes
from forks import Fork, Forks

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


COMMAND = "from rposst_opt.__main__ import main; main()"


def reproduce(out: Path, *more: str) -> list[str]:
    """The arguments of a command that takes a while."""
    asked = ["reproduce", "racing-arrows", "--quick", "--methods", "exact,minimax-uniform,regret-matching,random"]
    return [*asked, "--replicas", "4", "--every-error", "--out", str(out), *more]


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    drawing = ("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg")
    with Forks("joblib", "numba", "pandas", "rich.console", "scipy.optimize", "typer", *drawing) as forks:
        yield forks


def wait_for_parts(out: Path, count: int, process: Fork) -> None:
    deadline = time.monotonic() + 180
    while len(list(out.glob("parts/*/*.json"))) < count:
        assert process.is_running(), "the run ended before it could be disturbed"
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, forks: Forks) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed")
    forks.run(COMMAND, *reproduce(out, "--jobs", "1"), folder=out).check_returncode()
    return files_of(out)


def kill_when_there_are(parts: int, out: Path, forks: Forks) -> None:
    """Begin or go on with a run, and kill it with all its processes when this much is done."""
    run = forks.start(COMMAND, *reproduce(out, "--jobs", "2"), folder=out, out=NOWHERE, err=NOWHERE)
    wait_for_parts(out, parts, run)
    run.kill()
    run.wait()


def assert_what_is_left_is_whole(left: dict[str, bytes]) -> None:
    assert not any(name.endswith(".png") for name in left)
    for name, content in left.items():
        if name.endswith(".json") and not Path(name).name.startswith("."):
            assert json.loads(content), f"{name} is not whole"


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_goes_on_and_ends_with_the_same_bytes(
    tmp_path: Path, undisturbed: dict[str, bytes], forks: Forks
) -> None:
    for parts in (1, 9):
        kill_when_there_are(parts, tmp_path, forks)
        assert_what_is_left_is_whole(files_of(tmp_path))
    forks.run(COMMAND, *reproduce(tmp_path, "--jobs", "2"), folder=tmp_path).check_returncode()
    ended = {name: content for name, content in files_of(tmp_path).items() if not Path(name).name.startswith(".")}
    assert ended == undisturbed


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_half_way_finds_the_same(
    tmp_path: Path, undisturbed: dict[str, bytes], forks: Forks
) -> None:
    pytest.importorskip("distributed")
    out, complaints = tmp_path / "out", tmp_path / "complaints"
    with dask_processes(tmp_path) as (address, workers):
        arguments = reproduce(out, "--scheduler", address)
        run = forks.start(COMMAND, *arguments, folder=tmp_path, out=NOWHERE, err=complaints)
        wait_for_parts(out, 12, run)
        workers[0].kill()
        code = run.wait()
    assert code == 0, complaints.read_text()
    assert files_of(out) == undisturbed


def test_a_scheduler_that_is_not_there_is_told(tmp_path: Path, forks: Forks) -> None:
    hasty = "import rposst_opt.solvers.cluster as cluster; cluster.SECONDS_FOR_AN_ANSWER = 1; "
    arguments = reproduce(tmp_path, "--scheduler", "tcp://127.0.0.1:9")
    refused = forks.run(hasty + COMMAND, *arguments, folder=tmp_path)
    assert refused.returncode == 2
    assert "no Dask scheduler answers at 'tcp://127.0.0.1:9'" in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1


def test_without_dask_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = r"^a cluster needs distributed, which is not installed: pip install 'rposst-opt\[cluster\]'$"
    with pytest.raises(ro.BackendUnavailable, match=message):
        run_tasks(tasks(replicas=1), tmp_path, scheduler="tcp://127.0.0.1:9")
