import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from sample_files import complaint

from rposst_opt.files.writing import check_can_write, write_atomically


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


class TestWritingAtomically:
    def test_the_content_is_written_as_utf8_without_translation(self, tmp_path: Path) -> None:
        path = tmp_path / "out.json"
        write_atomically(path, "größer\r\n🙂\n")
        assert path.read_bytes() == "größer\r\n🙂\n".encode()
        assert os.listdir(tmp_path) == ["out.json"]

    def test_an_existing_file_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "out.json"
        path.write_text("a much longer text than the new one")
        write_atomically(path, "new")
        assert path.read_text() == "new"
        assert os.listdir(tmp_path) == ["out.json"]

    def test_a_bare_file_name_is_in_the_current_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        write_atomically(Path("out.json"), "new")
        assert os.listdir(tmp_path) == ["out.json"]

    @pytest.mark.usefixtures("usual_umask")
    def test_a_new_file_has_the_permissions_that_the_umask_leaves(self, tmp_path: Path) -> None:
        write_atomically(tmp_path / "out.json", "new")
        (tmp_path / "plain").write_text("new")
        assert permissions(tmp_path / "out.json") == permissions(tmp_path / "plain") == 0o640

    @pytest.mark.usefixtures("usual_umask")
    def test_the_umask_is_left_as_it_was(self, tmp_path: Path) -> None:
        write_atomically(tmp_path / "out.json", "new")
        assert os.umask(0o027) == 0o027

    @pytest.mark.usefixtures("usual_umask")
    @pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
    def test_an_existing_file_keeps_its_permissions(self, tmp_path: Path, mode: int) -> None:
        path = tmp_path / "out.json"
        path.write_text("old")
        path.chmod(mode)
        write_atomically(path, "new")
        assert permissions(path) == mode

    @pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
    def test_when_writing_fails_the_old_file_stays(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        def fail(*arguments: object, **options: object) -> NoReturn:
            raise OSError(errno.ENOSPC, "No space left on device")

        path = tmp_path / "out.json"
        path.write_text("old")
        monkeypatch.setattr(os, step, fail)
        message = complaint(lambda: write_atomically(path, "new"))
        assert str(path) in message
        assert "No space left on device" in message
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["out.json"]

    def test_an_interrupt_while_writing_leaves_no_trace(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*arguments: object) -> NoReturn:
            raise KeyboardInterrupt

        path = tmp_path / "out.json"
        path.write_text("old")
        monkeypatch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomically(path, "new")
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["out.json"]

    def test_the_longest_name_that_the_system_takes_will_do(self, tmp_path: Path) -> None:
        path = tmp_path / ("x" * os.pathconf(tmp_path, "PC_NAME_MAX"))
        write_atomically(path, "new")
        assert path.read_text() == "new"


@pytest.mark.parametrize(
    "function", [check_can_write, lambda path: write_atomically(path, "new")], ids=["check", "write"]
)
class TestPlacesThatCannotBeWritten:
    def test_the_folder_must_exist(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        message = complaint(lambda: function(tmp_path / "missing" / "out.json"))
        assert str(tmp_path / "missing") in message
        assert os.listdir(tmp_path) == []

    def test_the_folder_must_not_be_a_file(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        (tmp_path / "file").write_text("old")
        assert str(tmp_path / "file") in complaint(lambda: function(tmp_path / "file" / "out.json"))
        assert (tmp_path / "file").read_text() == "old"

    def test_a_folder_is_no_target(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        (tmp_path / "folder").mkdir()
        assert str(tmp_path / "folder") in complaint(lambda: function(tmp_path / "folder"))
        assert list(tmp_path.rglob("*")) == [tmp_path / "folder"]

    def test_the_folder_must_be_writable(
        self, tmp_path: Path, function: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda *arguments, **options: False)
        assert str(tmp_path) in complaint(lambda: function(tmp_path / "out.json"))
        assert os.listdir(tmp_path) == []

    def test_a_name_may_not_be_too_long(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        complaint(lambda: function(tmp_path / ("x" * 300)))
        assert os.listdir(tmp_path) == []

    def test_what_is_not_a_plain_file_is_not_replaced(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        assert str(path) in complaint(lambda: function(path))
        assert path.is_fifo()


class TestCheckingWhetherAFileCanBeWritten:
    def test_nothing_is_touched(self, tmp_path: Path) -> None:
        existing = tmp_path / "existing.json"
        existing.write_text("old")
        before = (existing.stat(), tmp_path.stat().st_mtime_ns)
        check_can_write(existing)
        check_can_write(tmp_path / "new.json")
        after = (existing.stat(), tmp_path.stat().st_mtime_ns)
        assert after == before
        assert existing.read_text() == "old"
        assert os.listdir(tmp_path) == ["existing.json"]
