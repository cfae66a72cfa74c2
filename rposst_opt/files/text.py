"""What all readers and writers share: a file's text, and its path in a message of one line."""

from pathlib import Path

from rposst_opt.errors import ProblemError


def named(path: Path) -> str:
    """The path for a message of one line."""
    return str(path) if str(path).isprintable() else repr(str(path))


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte order mark."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"{named(path)}: the file is not UTF-8 text (byte {error.start}): save it as UTF-8."
        ) from None
    except OSError as error:
        raise ProblemError(f"{named(path)}: cannot be read ({error.strerror}).") from None
