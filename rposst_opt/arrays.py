"""The arrays that everything here is made of: their types, and how values become arrays that nobody can change."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rposst_opt.errors import ProblemError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ScalarType = TypeVar("ScalarType", bound=np.generic)


def read_only(array: NDArray[ScalarType]) -> NDArray[ScalarType]:
    """The same array, locked against writing."""
    array.setflags(write=False)
    return array


def as_numbers(name: str, values: object) -> FloatArray:
    """A copy of the values as a contiguous array of floats, or an error with the argument's name."""
    try:
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"`{name}` must be a table of numbers: {error}.") from None
