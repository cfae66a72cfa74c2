"""Settings that all tests share."""

import gc
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from browsers import browser as browser
from commands import Outcome, Run
from compile_kernels import start_compiling
from hypothesis import HealthCheck, settings
from sample_files import write_table

from rposst_opt.__main__ import main
from rposst_opt.solvers.kernels.compiling import compile_from_now_on

compile_from_now_on()  # many small problems together are not small

# What Python compiles is kept, whatever the environment says: tests start processes by the hundred.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Compiling the kernels makes the first example slow, so no example has a deadline.
settings.register_profile("rposst", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("quick", settings.get_profile("rposst"), max_examples=10)
settings.load_profile(os.environ.get("RPOSST_EXAMPLES", "rposst"))


collect_ignore = ["inspect_tasks.py"]  # Inspect loads it in a process of its own; its import takes seconds, and warns

# They start processes, draw pictures, import large libraries or run for seconds.
SLOW_FILES = {
    "test_assembly",
    "test_baselines",
    "test_benchmarks",
    "test_besides",
    "test_cli",
    "test_cli_experiments",
    "test_cli_options",
    "test_cluster",
    "test_comparison",
    "test_compiling",
    "test_dilemma",
    "test_error_bars",
    "test_estimators",
    "test_extension",
    "test_figures",
    "test_first_notebook",
    "test_forecast",
    "test_forms",
    "test_fuzzing",
    "test_leduc",
    "test_missing_packages",
    "test_passing",
    "test_plots",
    "test_prospect",
    "test_readme",
    "test_real_harnesses",
    "test_remote_searchers",
    "test_report",
    "test_reproductions",
    "test_run_folders",
    "test_runner",
    "test_tasks",
    "test_told_apart",
    "test_tutorial",
    "test_unseen_policies",
    "test_witnesses",
}

# The longest come first, so that no process is left alone with one of them at the end; the rest in any order.
LONGEST_FILES = (
    "test_pages",
    "test_agreement",
    "test_assembly",
    "test_runner",
    "test_tasks",
    "test_canonical",
    "test_regret_matching",
    "test_exact",
    "test_figures",
    "test_missing_packages",
    "test_cli",
    "test_report",
    "test_compiling",
    "test_noise",
    "test_offset",
    "test_tutorial",
    "test_unseen",
    "test_local_search",
    "test_formulations",
    "test_plots",
    "test_leduc",
    "test_extension",
    "test_benchmarks",
    "test_cli_solving",
    "test_real_harnesses",
    "test_analysis",
    "test_measures",
    "test_forecast",
    "test_cli_options",
    "test_cli_experiments",
    "test_sklearn",
    "test_baselines",
    "test_dilemma",
)


_compilers: list[subprocess.Popen[bytes]] = []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Have the kernels compiled while the workers collect the tests, and by none of the workers."""
    _compilers.extend(start_compiling())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished() -> None:
    """No test begins before the kernels are there."""
    for compiler in _compilers:
        if compiler.wait() != 0:
            pytest.exit("the kernels could not be compiled", returncode=1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, and mark what takes long and what needs a browser, so that it can be left out."""
    places = {stem: place for place, stem in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))
    for item in items:
        if item.path.stem in SLOW_FILES:
            item.add_marker(pytest.mark.slow)
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and all that they import stay to the end: nobody needs to look for garbage among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def same_backends_for_every_test() -> Iterator[None]:
    """Taking a backend out of the table and putting it back changes the table's order, and order decides `auto`."""
    from rposst_opt.backends import BACKENDS

    before = dict(BACKENDS)
    yield
    BACKENDS.clear()
    BACKENDS.update(before)


@pytest.fixture
def rposst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line within this process, in an empty folder, on a wide terminal without colours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["rposst", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Outcome(code or 0, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def compiled_kernels() -> None:
    """On a fresh machine the kernels are compiled first, and that is announced on standard error."""
    import rposst_opt as ro

    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=2)
    ro.solve(problem, "regret-matching", rounds=1)
    ro.solve(problem, "exact")


@pytest.fixture
def crossed(tmp_path: Path) -> Path:
    """Two cases that rank two policies in opposite ways, in units of their own: every single case misses by 10."""
    write_table(tmp_path / "crossed.csv", ["up", "down"], ["p", "q"], [[10, 30], [30, 10]])
    return tmp_path
