"""When are two of our objects the same? When all of their fields are, arrays included, whatever has been worked out.

Objects that hold arrays cannot be compared as dataclasses are, field by field with ``==``; and what a process unpickles
has arrays that can be written to, and whatever was cached in another process.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np


class ByValue:
    """A frozen dataclass, made with ``eq=False``, that compares, hashes, copies and pickles by its fields.

    Fields with ``compare=False`` are no part of the comparison. NaN equals NaN. A copy has no cached property, and its
    arrays can be written to only where those of the original can.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Table(ByValue):
    ...     numbers: np.ndarray
    >>> Table(np.ones(3)) == Table(np.ones(3)), Table(np.ones(3)) == Table(np.ones(2))
    (True, False)
    """

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return alike(self, other)

    def __hash__(self) -> int:
        return hash((type(self), *(_hash_of(value) for value in _compared(self))))

    def __getstate__(self) -> dict[str, Any]:
        """All fields, and which of them are arrays that cannot be written to: pickles do not tell."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        locked = [name for name, value in values.items() if isinstance(value, np.ndarray) and not value.flags.writeable]
        return {"fields": values, "locked": locked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state["fields"].items():
            object.__setattr__(self, name, value)
        for name in state["locked"]:
            state["fields"][name].setflags(write=False)


def _compared(value: Any) -> list[object]:
    return [getattr(value, field.name) for field in fields(value) if field.compare]


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same: arrays number by number, dataclasses and plain objects field by field.

    Examples
    --------
    >>> alike((np.zeros(2), {"a": float("nan")}), (np.zeros(2), {"a": float("nan")}))
    True
    >>> alike([1.0, 2.0], (1.0, 2.0))
    False
    """
    if one is other:
        return True
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and _same_arrays(one, other)
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if type(one) is not type(other):
        return bool(one == other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(alike(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if is_dataclass(one) and not isinstance(one, type):
        return all(alike(*pair) for pair in zip(_compared(one), _compared(other), strict=True))
    # A measure or loss of somebody else's may be a plain object, of which there is another one in every process.
    is_plain = getattr(type(one), "__eq__", None) is object.__eq__ and not callable(one)
    if is_plain and hasattr(one, "__dict__"):
        return alike(vars(one), vars(other))
    return bool(one == other)


def _same_arrays(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    with np.errstate(invalid="ignore"):
        return bool(((one == other) | ((one != one) & (other != other))).all())


def _hash_of(value: object) -> int:
    """The same for values that are `alike`; where that takes long or cannot be, no more than the kind of value."""
    if isinstance(value, np.ndarray):
        return hash(("array", value.shape))
    if isinstance(value, tuple):
        return hash(tuple(_hash_of(each) for each in value))
    if isinstance(value, float) and math.isnan(value):
        return hash("nan")
    if value is None or isinstance(value, str | int | float | Enum | ByValue):
        return hash(value)
    return hash(type(value).__name__)
