"""Is there a set of at most so many members that hits each of many sets, that is, has a member of each?

Sets are whole numbers here: x is a member if bit x is one. So ``&`` is the intersection, ``int.bit_count`` the size.

The search is depth first. Whatever hits all sets has a member of any one of them. So take a small one, and try its
members one after the other, each with those sets that it does not hit and with one member fewer to choose; a member
that was tried is no candidate for those after it, since all that has it was looked at. Who lacks one member needs one
that is in all sets left.

Nothing is left to chance: where the search finds nothing, there is nothing. How long it takes depends on its tree, and
not on how many sets could be chosen.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

# Any set will do to branch on, and any sets to tell who cannot be the last member; so only a few small ones are read.
FIRST_SETS = (1 << 2048) - 1
FEW_SETS = 32


class Search(NamedTuple):
    """What a search found: members that hit all sets, ascending, or None if there are none; and how large it was."""

    found: tuple[int, ...] | None
    nodes: int


def find_hitting_set(sets: Iterable[int], size: int, *, candidates: int, required: int = 0) -> Search:
    """Look for at most `size` of the candidates that hit all sets, together with those that are required.

    Parameters
    ----------
    sets : iterable of int
        What must be hit, each a set of members as bits.
    size : int
        How many candidates may be chosen.
    candidates, required : int
        Who may be chosen, and who is there anyway, as bits.

    Examples
    --------
    >>> triangle = [as_bits([0, 1]), as_bits([1, 2]), as_bits([2, 0])]
    >>> find_hitting_set(triangle, 1, candidates=as_bits([0, 1, 2])).found is None
    True
    >>> find_hitting_set(triangle, 2, candidates=as_bits([0, 1, 2])).found
    (0, 1)
    """
    to_hit = sorted({each & candidates for each in sets if not each & required}, key=int.bit_count)
    tree = _Tree(to_hit)
    found = tree.search((1 << len(to_hit)) - 1, without_dominated(to_hit, candidates), size)
    return Search(None if found is None else members_of(found), tree.nodes)


def as_bits(members: Iterable[int]) -> int:
    """A set as a whole number."""
    return sum(1 << member for member in set(members))


def members_of(bits: int) -> tuple[int, ...]:
    """The members of a set, ascending.

    >>> members_of(as_bits([5, 0, 3]))
    (0, 3, 5)
    """
    return tuple(member for member in range(bits.bit_length()) if bits >> member & 1)


def without_dominated(sets: Sequence[int], candidates: int) -> int:
    """The candidates without those whose place another can take: one that is in all sets that they are in."""
    for member in members_of(candidates):
        alone = 1 << member
        others = candidates ^ alone
        for each in sets:
            if each & alone:
                others &= each
                if not others:
                    break
        if others:
            candidates ^= alone
    return candidates


class _Tree:
    """A search among these sets, the smallest of which come first.

    Which sets are left to be hit is a whole number too, with a bit for each: one ``&`` takes away all that a member
    hits, however many they are.
    """

    def __init__(self, sets: Sequence[int]) -> None:
        self.sets, self.missed_by, self.nodes = sets, missed_by_members(sets), 0

    def search(self, left: int, candidates: int, size: int) -> int | None:
        """At most `size` of the candidates that hit all sets left; None if there are none."""
        self.nodes += 1
        if not left or not size:
            return None if left else 0
        few = self.few_of(left)
        if size == 1:
            return self.last_member(left, few, candidates)
        branches = min((each & candidates for each in few), key=int.bit_count)
        while branches:
            member = branches & -branches
            branches ^= member
            candidates ^= member
            below = left & self.missed_by[member]
            if size > 2:
                rest = self.search(below, candidates, size - 1)
            else:  # the same again, but for the few sets, which are at hand
                self.nodes += 1
                few_below = (each for each in few if not each & member)
                rest = self.last_member(below, few_below, candidates) if below else 0
            if rest is not None:
                return member | rest
        return None

    def few_of(self, left: int) -> list[int]:
        """A few of the sets left, of the smaller ones; at least one."""
        numbers = left & FIRST_SETS or left & -left
        few: list[int] = []
        while numbers and len(few) < FEW_SETS:
            few.append(self.sets[(numbers & -numbers).bit_length() - 1])
            numbers &= numbers - 1
        return few

    def last_member(self, left: int, few: Iterable[int], candidates: int) -> int | None:
        """One of the candidates that hits all sets left; only who hits the few among them is tried."""
        for each in few:
            candidates &= each
            if not candidates:
                return None
        while candidates:
            member = candidates & -candidates
            candidates ^= member
            if not left & self.missed_by[member]:
                return member
        return None


def missed_by_members(sets: Sequence[int]) -> dict[int, int]:
    """For every member, as a bit, the numbers of those sets that it does not hit, as bits.

    >>> missed_by_members([as_bits([0, 1]), as_bits([1])])
    {1: 2, 2: 0}
    """
    width = max((each.bit_length() for each in sets), default=0)
    n_bytes = (width + 7) // 8
    packed = np.frombuffer(b"".join(each.to_bytes(n_bytes, "little") for each in sets), dtype=np.uint8)
    is_member = np.unpackbits(packed.reshape(len(sets), n_bytes), axis=1, count=width, bitorder="little")
    missed = np.packbits(1 - is_member.T, axis=1, bitorder="little")
    return {1 << member: int.from_bytes(row.tobytes(), "little") for member, row in enumerate(missed)}
