"""Text and JSON in files: read with errors of one line that name the file, written whole or not at all."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rposst_opt.errors import ProblemError, closest


def named(path: Path) -> str:
    """The path for a message of one line."""
    return str(path) if str(path).isprintable() else repr(str(path))


def read_bytes(path: Path) -> bytes:
    """All that is in a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError as error:  # a path that no file can have
        raise ProblemError(f"{named(path)}: cannot be read ({error}).") from None


def unreadable(path: Path, error: OSError) -> ProblemError:
    """Why a file cannot be read, in words; where there is none, which one may have been meant."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        beside = sorted(path.parent.iterdir()) if path.parent.is_dir() and os.access(path.parent, os.R_OK) else []
        by_stem = {each.stem: each for each in beside if each.is_file()}
        meant = closest(path.stem, by_stem)
        asked = "." if meant is None else f": did you mean {str(by_stem[meant])!r}?"
        return ProblemError(f"{named(path)}: there is no such file{asked}")
    if isinstance(error, IsADirectoryError):
        return ProblemError(f"{named(path)}: this is a folder, not a file: name a file.")
    if isinstance(error, PermissionError):
        return ProblemError(f"{named(path)}: this file may not be read by you: ask its owner, or copy it.")
    return ProblemError(f"{named(path)}: cannot be read ({error.strerror or error}).")


def decoded(where: str, data: bytes) -> str:
    """Bytes as text in UTF-8, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(f"{where}: the file is not UTF-8 text (byte {error.start}): save it as UTF-8.") from None


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark."""
    return decoded(named(path), read_bytes(path))


def read_record(path: Path, wanted: str, what: str) -> dict[str, Any]:
    """Read a JSON object of this format."""
    text = read_text(path)
    if not text.strip():
        raise ProblemError(f"{named(path)}: the file is empty: a {what} is expected.")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{named(path)}: this is not JSON ({error}): a {what} is expected.") from None
    return checked_record(record, wanted, what, named(path))


def checked_record(record: object, wanted: str, what: str, where: str) -> dict[str, Any]:
    """The record, if it is an object of this format."""
    if not isinstance(record, dict) or record.get("format") != wanted:
        raise ProblemError(f'{where}: this is not a {what}: a JSON object with "format": "{wanted}" is expected.')
    return record


def as_json(record: object) -> str:
    """A record as JSON text that any reader takes and any terminal shows."""
    return json.dumps(record, indent=2, allow_nan=False)


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
