"""Sets of test cases, as bits in words of 64."""

import numpy as np
from numpy.typing import NDArray

from rposst_opt.solvers.kernels.compiling import internal

WordArray = NDArray[np.uint64]

ONE = np.uint64(1)


@internal
def count_bits(word: np.uint64) -> int:
    """How many bits are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@internal
def lowest_bit(word: np.uint64) -> int:
    """The place of the lowest bit that is set."""
    return count_bits((word & (~word + ONE)) - ONE)


@internal
def first_member(words: WordArray) -> int:
    """The least member of a set, or -1."""
    for word in range(words.shape[0]):
        if words[word] != 0:
            return 64 * word + lowest_bit(words[word])
    return -1


@internal
def insert(case: int, words: WordArray) -> None:
    """Put a case into a set."""
    words[case >> 6] |= ONE << np.uint64(case & 63)


@internal
def remove(case: int, words: WordArray) -> None:
    """Take a case out of a set."""
    words[case >> 6] &= ~(ONE << np.uint64(case & 63))


@internal
def write_complement(words: WordArray, complement: WordArray) -> None:
    """The cases that are not in a set."""
    for word in range(words.shape[0]):
        complement[word] = ~words[word]
