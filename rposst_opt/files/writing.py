"""Writing files whole or not at all, and finding out before a long run whether that will do."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from rposst_opt.errors import ProblemError
from rposst_opt.files.text import named


def check_can_write(path: Path) -> None:
    """Find out before a long run whether its outcome can be written, without touching anything."""
    folder = path.parent
    try:
        if not folder.is_dir():
            raise ProblemError(f"{named(path)}: the folder {str(folder)!r} does not exist: make it first.")
        if path.exists() and not path.is_file():
            raise ProblemError(f"{named(path)}: this is a folder or a device, not a file: name a file.")
        if not os.access(folder, os.W_OK):
            raise ProblemError(f"{named(path)}: the folder {str(folder)!r} cannot be written to.")
    except OSError as error:
        raise ProblemError(f"{named(path)}: cannot be written ({error.strerror}).") from None


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that at every moment there is either the old one or the whole new one."""
    write_with(path, lambda temporary: temporary.write_bytes(text.encode("utf-8")))


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a result matrix so that reading it back gives the same numbers."""
    write_atomically(path, table.to_csv(index_label="test_case", lineterminator="\n"))


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """The same with a function that writes to the path it is given."""
    check_can_write(path)
    path = Path(os.path.realpath(path))  # a link stays a link
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".rposst-", suffix=path.suffix[:8])
        os.close(handle)
        try:
            write(Path(name))
            with open(name, "rb") as file:
                os.fsync(file.fileno())
            os.chmod(name, _usual_permissions(path))
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ProblemError(f"{named(path)}: cannot be written ({error.strerror}).") from None


def _usual_permissions(path: Path) -> int:
    """Those of the file that is replaced, or of a new one; a temporary file has stricter ones."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
