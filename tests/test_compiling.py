"""When kernels are compiled, where that is kept, and that it makes no difference to any answer."""

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config, typeof

import rposst_opt as ro
from rposst_opt.solvers.kernels import compiling
from rposst_opt.solvers.kernels.cut_mixture import make_cut_mixture
from rposst_opt.solvers.kernels.hitting_set import explore
from rposst_opt.solvers.kernels.problem_arrays import (
    ProblemArrays,
    example_arrays,
    problem_arrays,
    rounded_arrays,
    scaled_problem_arrays,
    with_mean_alone,
    with_share_of_mean,
)
from rposst_opt.solvers.kernels.regret_matching import play_tuples
from rposst_opt.solvers.kernels.response import make_response
from rposst_opt.solvers.kernels.swaps import settle_rows
from rposst_opt.solvers.kernels.tuple_game import make_tuple_game, settle
from rposst_opt.solvers.kernels.weighing import settle_sets

REPOSITORY = compiling.SOURCES.parents[2]
UNEQUAL = [[0.1], [0.2], [0.3], [0.4]]

# A kernel that is compiled in a moment, with one that it calls.
TOY = """
from rposst_opt.solvers.kernels import compiling

@compiling.internal
def add(one: float, other: float) -> float:
    return one + other

@compiling.compiled_when_it_pays
def total(count: int) -> float:
    result = 0.0
    for i in range(count):
        result = add(result, 0.5 * i)
    return result
"""


def run_python(code: str, *, cache: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this in a process of its own, where logged warnings go to standard error."""
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    paths = os.pathsep.join([str(REPOSITORY), *filter(None, [environment.pop("PYTHONPATH", "")])])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


# The same answer


PROBLEMS = """
import numpy as np, rposst_opt as ro
rng = np.random.default_rng(11)
losses = [ro.AbsoluteError(), ro.SquaredError(), ro.HuberError(0.1), ro.PinballError(0.8)]
measures = [ro.CVaR(0.01), ro.CVaR(0.3), ro.Mean(), ro.KOfN(2, 7), ro.WorstCase()]
def problems():
    for number in range(20):
        results = rng.random((int(rng.integers(5, 12)), int(rng.integers(2, 8))))
        if number % 3 == 0:
            results = np.round(results, 1)
        unequal = rng.random((results.shape[1], 2)) + 0.1
        yield ro.Problem(
            results=results,
            size=int(rng.integers(1, 4)),
            loss=losses[number % 4],
            measure=measures[number % 5],
            targets=ro.softmax_targets(results, betas=(0, 2)),
            probabilities=unequal / unequal.sum() if number % 2 else None,
            required_cases=[0] if number % 7 == 0 else [],
        )
def runs():
    for problem in problems():
        for options in ({}, {"top": 3}):
            solution = ro.solve(problem, "exact", **options)
            counts = [solution.stats.solved, solution.stats.rounds, solution.stats.nodes, solution.stats.cuts]
            numbers = [solution.objective, solution.lower_bound, *solution.test.weights]
            yield [list(solution.test.cases), counts, [float(number).hex() for number in numbers]]
"""


def test_interpreted_kernels_take_the_same_steps_to_the_same_bits() -> None:
    interpreted = run_python(PROBLEMS + "import json; print(json.dumps(list(runs())))", NUMBA_DISABLE_JIT="1")
    assert interpreted.stderr == ""
    names: dict[str, object] = {}
    exec(PROBLEMS, names)
    assert json.loads(interpreted.stdout) == list(names["runs"]())  # type: ignore[operator]
    assert explore.is_loaded and settle_sets.is_loaded  # type: ignore[attr-defined]


@pytest.mark.parametrize("backend", ["regret-matching", "sampled-regret-matching", "simultaneous", "local-search"])
def test_every_solver_works_without_a_compiler(backend: str) -> None:
    solving = f"""
import sys, numpy as np, rposst_opt as ro
results = np.random.default_rng(1).random((6, 4))
options = {{}} if {backend!r} == "local-search" else {{"rounds": 30}}
solution = ro.solve(ro.Problem(results=results, size=2), {backend!r}, **options)
print(solution.objective.hex(), solution.test.cases)
assert "sklearn" not in sys.modules, "an answer must not depend on what is installed besides"
"""
    interpreted = run_python(solving, NUMBA_DISABLE_JIT="1")
    assert interpreted.stderr == ""
    problem = ro.Problem(results=np.random.default_rng(1).random((6, 4)), size=2)
    options: dict[str, Any] = {} if backend == "local-search" else {"rounds": 30}
    compiled = ro.solve(problem, backend, **options)
    assert compiled.test is not None
    assert interpreted.stdout.strip() == f"{compiled.objective.hex()} {compiled.test.cases}"


# When


def kinds_of(arrays: ProblemArrays) -> tuple[object, ...]:
    """The types of a problem's arrays and of the workspaces for them."""
    return typeof(arrays), typeof(make_tuple_game(arrays, 2)), typeof(make_response(arrays))


def test_all_arrays_of_problems_are_of_one_kind_so_that_kernels_are_compiled_once() -> None:
    rng = np.random.default_rng(0)
    plain = ro.Problem(results=rng.random((5, 4)), size=2)
    unequal = ro.Problem(results=rng.random((5, 4)), size=2, measure=ro.KOfN(1, 3), probabilities=UNEQUAL)
    noisy = ro.Problem(results=rng.random((5, 4)), size=2, loss=ro.HuberError(0.1), noise=np.full(5, 0.1))
    kinds = set()
    for problem in (plain, unequal, noisy):
        stated, scaled = problem_arrays(problem), scaled_problem_arrays(problem, np.arange(3))
        others = rounded_arrays(scaled), with_mean_alone(scaled), with_share_of_mean(scaled, 0.1)
        kinds |= {kinds_of(arrays) for arrays in (stated, scaled, *others)}
    assert kinds == {kinds_of(example_arrays())}  # which the entries of the largest kernels are for


def test_kernels_that_count_no_references_leave_them_as_they_were() -> None:
    arrays = scaled_problem_arrays(ro.Problem(results=np.random.default_rng(0).random((5, 4)), size=2), np.arange(5))
    game, mixture, rows = make_tuple_game(arrays, 2), make_cut_mixture(arrays), np.array([1, 3])

    def references() -> list[int]:
        return [sys.getrefcount(array) for array in (rows, *arrays, *game, *mixture) if isinstance(array, np.ndarray)]

    before = references()
    for _ in range(3):
        settle_rows(rows, 1e-12, arrays, game, mixture)
    assert settle_rows.is_loaded  # type: ignore[attr-defined]
    assert references() == before


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    (tmp_path / "toy.py").write_text(TOY)
    return tmp_path


def run_toy(code: str, folder: Path, cache: str = "cache") -> subprocess.CompletedProcess[str]:
    return run_python("import toy; " + code, cache=folder / cache, PYTHONPATH=str(folder))


def test_nothing_is_compiled_while_interpreting_takes_no_time(toy: Path) -> None:
    done = run_toy("print(toy.total(10), toy.total.is_loaded)", toy)
    assert done.stdout.split() == ["22.5", "False"]
    assert done.stderr == ""
    assert not list((toy / "cache").rglob("*.nbc"))


def test_the_smallest_problems_are_solved_without_numba_and_larger_ones_load_what_is_kept() -> None:
    done = run_python(
        """
import sys, numpy as np, rposst_opt as ro
from rposst_opt.solvers.kernels.hitting_set import explore
for n in (4, 60):
    ro.solve(ro.Problem(results=np.random.default_rng(0).random((n, 5)), size=2), "exact")
    print("numba" in sys.modules, explore.is_loaded)
"""
    )
    assert done.stdout.split() == ["False", "False", "True", "True"]
    assert done.stderr == ""


def test_when_patience_is_out_it_is_compiled_kept_and_told_once(toy: Path) -> None:
    spent = "toy.compiling.compile_from_now_on(); "
    told = "seconds = []; toy.compiling.watch.tell_seconds.append(seconds.append); "
    calls = "print(toy.total(10), toy.total(10), toy.total.is_loaded, len(seconds), sum(seconds) > 0)"
    first = run_toy(spent + told + calls, toy)
    assert first.stdout.split() == ["22.5", "22.5", "True", "1", "True"]
    assert first.stderr.count("compiling the kernels, once per installation") == 1
    kept = sorted((toy / "cache").rglob("*.nbc"))
    assert kept
    # The next process loads what is kept, patient or not, once that pays, and has nothing to tell.
    early = run_toy(calls.replace("len(seconds), sum(seconds) > 0", ""), toy)
    assert early.stdout.split() == ["22.5", "22.5", "False"]
    second = run_toy("toy.compiling.load_from_now_on(); " + told + calls, toy)
    assert second.stdout.split() == ["22.5", "22.5", "True", "0", "False"]
    assert second.stderr == ""
    assert sorted((toy / "cache").rglob("*.nbc")) == kept


def test_what_was_compiled_for_other_processors_or_arguments_is_not_taken_for_ours(
    toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    run_toy("toy.compiling.compile_from_now_on(); toy.total(10)", toy)
    code = "import toy; toy.compiling.load_from_now_on(); print(toy.total(10), toy.total.is_loaded)"
    cache, path = toy / "cache", str(toy)
    assert run_python(code, cache=cache, PYTHONPATH=path).stdout.split() == ["22.5", "True"]
    other_processor = run_python(code, cache=cache, PYTHONPATH=path, NUMBA_CPU_NAME="generic")
    assert other_processor.stdout.split() == ["22.5", "False"]
    other_type = run_python(code.replace("(10)", "(True)"), cache=cache, PYTHONPATH=path)
    assert other_type.stdout.split() == ["0.0", "False"]


def test_compiling_is_neither_the_solvers_time_nor_counted_against_its_limit(tmp_path: Path) -> None:
    done = run_python(
        """
import time, rposst_opt as ro
from numba.core import compiler
from rposst_opt.solvers.sampled import STRETCH

asleep, compile_function = [], compiler.compile_extra

def compile_slowly(*arguments, **options):
    asleep.append(0.25)
    time.sleep(asleep[-1])
    return compile_function(*arguments, **options)

compiler.compile_extra = compile_slowly
problem = ro.Problem(results=[[0.0], [1.0]] * STRETCH, size=1)  # after a stretch of tuples it asks for the time
started = time.perf_counter()
solution = ro.solve(problem, "sampled-regret-matching", rounds=2, time_limit_seconds=1.0)
elapsed, stats = time.perf_counter() - started, solution.stats
print(sum(asleep), elapsed, solution.seconds, stats.compile_seconds, stats.build_seconds + stats.solve_seconds)
print(solution.limit)
""",
        cache=tmp_path,
    )
    numbers, limit = done.stdout.splitlines()
    asleep, elapsed, seconds, compile_seconds, own_seconds = map(float, numbers.split())
    assert compile_seconds >= asleep > 1.0  # which is the limit
    assert own_seconds <= seconds <= elapsed - compile_seconds  # however busy the machine is
    assert limit == "None"
    assert "compiling the kernels" in done.stderr


# Functions that are called by their address

# `add` is called with floats and, by `count`, with integers; `total` reaches it by way of `more`, which is kept too.
TOY_APART = """
from rposst_opt.solvers.kernels import compiling

@compiling.apart(lambda: (0.0, 0.0))
def add(one, other):
    return one + other

@compiling.apart(lambda: (0.0,))
def more(one):
    return add(one, 1.0)

@compiling.compiled
def total(count):
    result = 0.0
    for i in range(count):
        result = more(add(result, 0.5 * i))
    return result

@compiling.compiled
def count(most):
    result = 0
    for i in range(most):
        result = add(result, 1)
    return result
"""


@pytest.fixture
def toy_apart(tmp_path: Path) -> Path:
    (tmp_path / "toy.py").write_text(TOY_APART)
    return tmp_path


def has_the_name(kernel: str, called: str) -> str:
    """Code that says whether what is made of a kernel calls another by its address, and whether it contains it."""
    text = f"next(iter(toy.{kernel}.dispatcher.inspect_llvm().values()))"
    return f"text = {text}; print('rposst_entry_{called}' in text, 'toy{len(called)}{called}' in text)"


def test_a_function_apart_is_called_by_its_address_and_no_part_of_its_callers(toy_apart: Path) -> None:
    by_address = run_toy("print(toy.total(10)); " + has_the_name("total", "add"), toy_apart)
    assert by_address.stdout.split() == ["32.5", "True", "False"]
    linked = run_toy("print(toy.count(10)); " + has_the_name("count", "add"), toy_apart)
    assert linked.stdout.split() == ["10", "False", "True"]


def test_what_is_kept_finds_the_address_anew_in_every_process(toy_apart: Path) -> None:
    run_toy("toy.total(10)", toy_apart)
    kept = sorted((toy_apart / "cache").rglob("*.nbc"))
    later = run_toy("print(toy.total(10), toy.count(10), toy.total(20))", toy_apart)
    assert later.stdout.split() == ["32.5", "10", "115.0"]
    assert later.stderr.count("compiling") == 1  # of what was new: `count`, and `add` for integers
    assert set(kept) < set((toy_apart / "cache").rglob("*.nbc"))
    assert run_toy("print(toy.total(10), toy.count(10))", toy_apart).stderr == ""


def test_without_what_was_kept_of_it_a_function_apart_is_compiled_again(toy_apart: Path) -> None:
    run_toy("toy.total(10)", toy_apart)
    kept = list((toy_apart / "cache").rglob("toy.add*"))
    assert kept
    for file in kept:
        file.unlink()
    assert run_toy("print(toy.total(10))", toy_apart).stdout.split() == ["32.5"]


# Where


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the kernels' sources, without what was compiled from them."""
    return Path(shutil.copytree(compiling.SOURCES, tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__")))


def folder_of(sources: Path) -> Path:
    folder = compiling.cache_folder(sources)
    assert folder is not None
    return folder


def test_a_change_in_any_file_of_kernels_means_another_folder(sources: Path) -> None:
    folders = {folder_of(sources)}
    files = sorted(sources.glob("*.py"))
    assert len(files) >= 6
    for count, path in enumerate(files, start=2):
        path.write_text(path.read_text() + "# changed\n")
        folders.add(folder_of(sources))
        assert len(folders) == count


def age(folder: Path) -> None:
    long_ago = time.time() - 2 * compiling.OUTDATED_AFTER_SECONDS
    os.utime(folder, (long_ago, long_ago))


def test_what_earlier_sources_left_is_removed_and_nothing_else(sources: Path) -> None:
    before = folder_of(sources)
    (before / "kernel.nbc").write_text("machine code")
    other = before.parent / "something.pyc"
    other.write_text("not ours")
    age(before)
    compiling.remove_outdated(folder_of(sources))
    assert before.exists()
    (sources / "response.py").write_text("# all new\n")
    after = folder_of(sources)
    assert after != before
    assert before.exists()
    age(before)
    age(after)
    compiling.remove_outdated(after)
    assert not before.exists()
    assert after.exists()
    assert other.exists()


def test_what_may_still_be_in_use_is_not_removed(sources: Path) -> None:
    before = folder_of(sources)
    (sources / "response.py").write_text("# all new\n")
    compiling.remove_outdated(folder_of(sources))
    assert before.exists()


def test_a_mere_import_removes_nothing_and_compiling_does(toy: Path) -> None:
    outdated = toy / "cache" / (compiling.PREFIX + "of-another-version")
    outdated.mkdir(parents=True)
    age(outdated)
    run_toy("toy.total(10)", toy)
    assert outdated.exists()
    run_toy("toy.compiling.compile_from_now_on(); toy.total(10)", toy)
    assert not outdated.exists()


def test_a_folder_that_the_user_names_is_used(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "mine"))
    assert folder_of(sources).parent == tmp_path / "mine"


def test_an_installation_that_cannot_be_written_to_keeps_it_in_the_users_cache(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwritable(sources / "__pycache__")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert folder_of(sources).parent == tmp_path / "home" / "rposst-opt"
    unwritable(tmp_path / "nothing")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    assert compiling.cache_folder(sources) is None


def unwritable(path: Path) -> None:
    """A file where a folder is wanted: even the superuser, whom permissions do not stop, cannot write into it."""
    path.write_text("")
    path.chmod(stat.S_IRUSR)


def test_where_nothing_can_be_kept_it_works_and_says_so(toy: Path) -> None:
    unwritable(toy / "blocked")
    done = run_toy("toy.compiling.compile_from_now_on(); print(toy.total(10), toy.compiling.FOLDER)", toy, "blocked")
    assert done.stdout.split() == ["22.5", "None"]
    assert "in every process, for no folder to keep them is writable" in done.stderr


def test_two_processes_that_compile_at_the_same_moment_do_not_trouble_each_other(toy: Path) -> None:
    code = "import toy; toy.compiling.compile_from_now_on(); print(toy.total(10))"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(toy / "cache"), "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{toy}"}
    both = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate()[0].strip() for process in both] == ["22.5", "22.5"]
    assert [process.returncode for process in both] == [0, 0]
    loading = "toy.compiling.load_from_now_on(); print(toy.total(10), toy.total.is_loaded)"
    assert run_toy(loading, toy).stdout.split() == ["22.5", "True"]


@pytest.mark.parametrize("kernel", [explore, settle, play_tuples])
def test_kernels_are_kept_there_and_numba_is_left_as_it_was(kernel: object) -> None:
    assert compiling.FOLDER is not None
    assert Path(kernel.dispatcher.stats.cache_path).is_relative_to(compiling.FOLDER)  # type: ignore[attr-defined]
    assert str(compiling.FOLDER) != config.CACHE_DIR
