"""Compiled kernels must not outlive the sources they were made from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

from rposst_opt.solvers.kernels import compiling
from rposst_opt.solvers.kernels.hitting_set import explore
from rposst_opt.solvers.kernels.regret_matching import play_tuples
from rposst_opt.solvers.kernels.tuple_game import settle


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the kernels' sources, without what was compiled from them."""
    return Path(shutil.copytree(compiling.SOURCES, tmp_path / "kernels", ignore=shutil.ignore_patterns("__pycache__")))


def test_a_change_in_any_file_of_kernels_means_another_folder(sources: Path) -> None:
    folders = {compiling.cache_folder(sources)}
    files = sorted(sources.glob("*.py"))
    assert len(files) >= 6
    for count, path in enumerate(files, start=2):
        path.write_text(path.read_text() + "# changed\n")
        folders.add(compiling.cache_folder(sources))
        assert len(folders) == count


def test_what_earlier_sources_left_is_removed_and_nothing_else(sources: Path) -> None:
    before = compiling.cache_folder(sources)
    before.mkdir(parents=True)
    (before / "kernel.nbc").write_text("machine code")
    other = before.parent / "something.pyc"
    other.write_text("not ours")
    compiling.remove_outdated(compiling.cache_folder(sources))
    assert before.exists()
    (sources / "response.py").write_text("# all new\n")
    after = compiling.cache_folder(sources)
    assert after != before
    assert before.exists()
    after.mkdir()
    compiling.remove_outdated(after)
    assert not before.exists()
    assert after.exists()
    assert other.exists()


def test_a_mere_import_removes_nothing_and_compiling_does(tmp_path: Path) -> None:
    outdated = tmp_path / (compiling.PREFIX + "of-another-version")
    outdated.mkdir()
    (outdated / "kernel.nbc").write_text("machine code")
    run_python("import rposst_opt.solvers.exact, rposst_opt.solvers.sampled", cache=tmp_path)
    assert (outdated / "kernel.nbc").exists()
    solving = "import rposst_opt as ro; ro.solve(ro.Problem(results=[[0.0], [1.0]], size=1), 'sampled-regret-matching')"
    run_python(solving, cache=tmp_path)
    assert not outdated.exists()
    kept = sorted(tmp_path.rglob("*.nbc"))
    assert kept
    outdated.mkdir()
    run_python(solving, cache=tmp_path)  # loads what was kept: nothing new, nothing outdated by it
    assert outdated.exists()
    assert sorted(tmp_path.rglob("*.nbc")) == kept


def run_python(code: str, *, cache: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(compiling.SOURCES.parents[2])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_folder_that_the_user_names_is_used(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "mine"))
    assert compiling.cache_folder(sources).parent == tmp_path / "mine"


@pytest.mark.parametrize("kernel", [explore, settle, play_tuples])
def test_kernels_are_kept_there_and_numba_is_left_as_it_was(kernel: object) -> None:
    assert Path(kernel.stats.cache_path).is_relative_to(compiling.FOLDER)  # type: ignore[attr-defined]
    assert str(compiling.FOLDER) != config.CACHE_DIR
