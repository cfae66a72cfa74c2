r"""Is this the same table, the same problem? SHA-256 of data in one canonical form, whatever file they came from.

The bytes that are hashed are, one after the other:

numbers
    every number as a little-endian float64 of eight bytes, row by row; a negative zero counts as zero.
names
    a list of lists of names as JSON without spaces, everything beyond ASCII escaped (``\\u00df``).
facts
    an object as JSON without spaces, everything beyond ASCII escaped, its keys in order.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

SHA256 = re.compile(r"[0-9a-f]{64}")
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of an object without a name, which is another one in every process


def results_digest(case_names: Sequence[str], policy_names: Sequence[str], results: NDArray[np.float64]) -> str:
    """SHA-256 of a table: the names of its cases and policies, a line feed, then its numbers, a row per case.

    The same table has the same digest whether it was read from CSV, from Parquet or made in Python. Another order of
    rows or columns is another table.

    Examples
    --------
    >>> results_digest(["easy", "hard"], ["one"], np.array([[1.0], [0.0]]))[:16]
    '2c34e11bb43f9ca2'
    >>> names = b'[["easy","hard"],["one"]]'
    >>> hashlib.sha256(names + bytes([10]) + np.array([1.0, 0.0], dtype="<f8").tobytes()).hexdigest()[:16]
    '2c34e11bb43f9ca2'
    """
    names = [[str(name) for name in case_names], [str(name) for name in policy_names]]
    return hashlib.sha256(_as_ascii(names) + b"\n" + _as_bytes(results)).hexdigest()


def numbers_digest(numbers: NDArray[np.float64]) -> str:
    """SHA-256 of the shape of an array as a JSON list, a line feed, then its numbers."""
    return hashlib.sha256(_as_ascii(list(numbers.shape)) + b"\n" + _as_bytes(numbers)).hexdigest()


def facts_digest(facts: Mapping[str, object]) -> str:
    """SHA-256 of an object of JSON values."""
    return hashlib.sha256(ADDRESS.sub("", _as_ascii(facts).decode("ascii")).encode("ascii")).hexdigest()


def is_digest(value: object) -> bool:
    """Whether this has the form of a digest."""
    return isinstance(value, str) and SHA256.fullmatch(value) is not None


def _as_bytes(numbers: NDArray[np.float64]) -> bytes:
    return np.ascontiguousarray(np.asarray(numbers, dtype=np.float64) + 0.0, dtype="<f8").tobytes()


def _as_ascii(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":")).encode("ascii")
