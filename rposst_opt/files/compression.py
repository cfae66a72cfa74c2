"""What is in a file: its bytes, unpacked if they were compressed, and the name that remains."""

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path, PurePath

from rposst_opt.errors import ProblemError, check_installed
from rposst_opt.text_files import decoded, named, read_bytes

STANDARD_INPUT = "-"
MEMBERS_OF_A_WORKBOOK = "xl/"  # an Excel file is a zip archive too


class File:
    """A file that is read when its bytes are asked for; `-` is standard input.

    Attributes
    ----------
    path : Path
    where : str
        How messages call it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = "standard input" if str(path) == STANDARD_INPUT else named(path)

    @cached_property
    def _unpacked(self) -> tuple[bytes, str]:
        raw = sys.stdin.buffer.read() if str(self.path) == STANDARD_INPUT else read_bytes(self.path)
        return _unpack(self.where, raw, self.path.name)

    @property
    def data(self) -> bytes:
        """The bytes, unpacked."""
        return self._unpacked[0]

    @property
    def suffix(self) -> str:
        """How the name ends when what says that it is compressed has been taken off, in small letters."""
        return PurePath(self._unpacked[1]).suffix.lower()

    @property
    def text(self) -> str:
        """The bytes as text in UTF-8."""
        return decoded(self.where, self.data)


def _unpack(where: str, data: bytes, name: str) -> tuple[bytes, str]:
    """Unpack what its first bytes call compressed."""
    for magic, (suffix, unpack) in COMPRESSIONS.items():
        if data.startswith(magic):
            try:
                return unpack(data), name[: -len(suffix)] if name.lower().endswith(suffix) else name
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise ProblemError(f"{where}: this compressed file cannot be unpacked ({error}).") from None
    return _unzip(where, data, name) if data.startswith(b"PK\x03\x04") else (data, name)


def _unzip(where: str, data: bytes, name: str) -> tuple[bytes, str]:
    """The one file in an archive; an Excel file stays as it is."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [member for member in archive.namelist() if not member.endswith("/")]
            if any(member.startswith(MEMBERS_OF_A_WORKBOOK) for member in members):
                return data, name
            if len(members) != 1:
                raise ProblemError(f"{where}: the archive must hold one file, got {len(members)}.")
            return archive.read(members[0]), members[0]
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"{where}: this archive cannot be unpacked ({error}).") from None


def _unpack_zstandard(data: bytes) -> bytes:
    check_installed("a .zst file needs", ["zstandard"], extra="tables")
    import zstandard

    try:
        unpacker = zstandard.ZstdDecompressor().decompressobj()
        unpacked = bytes(unpacker.decompress(data))
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it is not one whole frame")
    return unpacked


COMPRESSIONS: dict[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": (".gz", gzip.decompress),
    b"BZh": (".bz2", bz2.decompress),
    b"\xfd7zXZ\x00": (".xz", lzma.decompress),
    b"\x28\xb5\x2f\xfd": (".zst", _unpack_zstandard),
}
