"""Compiled kernels must not outlive the sources they were made from."""

import shutil
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
    assert compiling.cache_folder(sources) == before
    assert before.exists()
    (sources / "response.py").write_text("# all new\n")
    assert compiling.cache_folder(sources) != before
    assert not before.exists()
    assert other.exists()


def test_a_folder_that_the_user_names_is_used(sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "mine"))
    assert compiling.cache_folder(sources).parent == tmp_path / "mine"


@pytest.mark.parametrize("kernel", [explore, settle, play_tuples])
def test_kernels_are_kept_there_and_numba_is_left_as_it_was(kernel: object) -> None:
    assert Path(kernel.stats.cache_path).is_relative_to(compiling.FOLDER)  # type: ignore[attr-defined]
    assert str(compiling.FOLDER) != config.CACHE_DIR
