"""What all readers and writers share: a file's bytes and text, and its path in a message of one line."""

from pathlib import Path

from rposst_opt.errors import ProblemError


def named(path: Path) -> str:
    """The path for a message of one line."""
    return str(path) if str(path).isprintable() else repr(str(path))


def read_bytes(path: Path) -> bytes:
    """All that is in a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ProblemError(f"{named(path)}: cannot be read ({error.strerror}).") from None
    except ValueError as error:  # a path that no file can have
        raise ProblemError(f"{named(path)}: cannot be read ({error}).") from None


def decoded(where: str, data: bytes) -> str:
    """Bytes as text in UTF-8, with or without a byte order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(f"{where}: the file is not UTF-8 text (byte {error.start}): save it as UTF-8.") from None


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark."""
    return decoded(named(path), read_bytes(path))
