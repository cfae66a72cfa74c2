"""Is there a set of at most so many members that hits each of many sets, that is, has a member of each?

Sets are whole numbers here: x is a member if bit x is one. So ``&`` is the intersection, ``int.bit_count`` the size.

The search is depth first. Whatever hits all sets has a member of any one of them. So take a small one, and try its
members one after the other, each with those sets that it does not hit and with one member fewer to choose; a member
that was tried is no candidate for those after it, since all that has it was looked at. Who lacks one member needs one
that is in all sets left.

Where rules say which members may be together, those that were chosen and hit all sets are filled up, in all ways there
are, until one keeps the rules; and what cannot be made to keep them by any others is left at once.

Nothing is left to chance: where the search finds nothing, there is nothing. How long it takes depends on its tree, and
not on how many sets could be chosen.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

SETS_COMPARED = 128  # the last so many of those left, to find a small one to branch on: any would do


class LinearRule(NamedTuple):
    """That the coefficients of all members, those that are required included, sum to something from low to high."""

    coefficients: Sequence[float]
    low: float
    high: float


Rules = Sequence[LinearRule]


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
    to_hit = sorted({each & candidates for each in sets if not each & required}, key=int.bit_count, reverse=True)
    tree = _Tree(to_hit, candidates)
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
        for each in reversed(sets):
            if each & alone:
                others &= each
                if not others:
                    break
        if others:
            candidates ^= alone
    return candidates


def find_allowed_hitting_set(sets: Iterable[int], size: int, *, candidates: int, required: int, rules: Rules) -> Search:
    """Look for exactly `size` of the candidates that keep the rules and hit all sets, with those that are required.

    Members that another could replace are looked at like all others, since a rule may tell them apart.
    """
    to_hit = sorted({each & candidates for each in sets if not each & required}, key=int.bit_count, reverse=True)
    tree = _AllowedTree(to_hit, candidates, size, rules)
    found = tree.search((1 << len(to_hit)) - 1, candidates, required, size)
    return Search(None if found is None else members_of(found), tree.nodes)


class _Tree:
    """A search among these sets, the smallest of which come last.

    Which of them are left to be hit is a whole number too, with a bit for each: one ``&`` takes away all that a member
    hits, however many they are, and the last of them is the highest bit.
    """

    def __init__(self, sets: Sequence[int], candidates: int) -> None:
        self.sets, self.missed_by, self.nodes = sets, missed_by_each(candidates, sets), 0

    def search(self, left: int, candidates: int, size: int) -> int | None:
        """At most `size` of the candidates that hit all sets left; None if there are none."""
        self.nodes += 1
        if not left:
            return 0
        if size <= 1:
            return self.last_member(left, candidates) if size == 1 else None
        branches = min((each & candidates for each in self.some_of(left)), key=int.bit_count)
        while branches:
            member = branches & -branches
            branches ^= member
            candidates ^= member
            rest = self.search(left & self.missed_by[member], candidates, size - 1)
            if rest is not None:
                return member | rest
        return None

    def some_of(self, left: int) -> Iterator[int]:
        """The last of the sets left; at least one."""
        first = max(left.bit_length() - SETS_COMPARED, 0)
        numbers = left >> first
        while numbers:
            last = numbers.bit_length() - 1
            numbers ^= 1 << last
            yield self.sets[first + last]

    def last_member(self, left: int, candidates: int) -> int | None:
        """One of the candidates that hits all sets left: if one misses a set, nobody else who misses it is tried."""
        while candidates:
            member = candidates & -candidates
            missed = left & self.missed_by[member]
            if not missed:
                return member
            candidates &= self.sets[missed.bit_length() - 1]
        return None


class _AllowedTree(_Tree):
    """The same search, in which a member is tried only if the rules may still be kept with it."""

    def __init__(self, sets: Sequence[int], candidates: int, size: int, rules: Rules) -> None:
        super().__init__(sets, candidates)
        self.rules = [(*rule, *_extreme_sums(rule.coefficients, candidates, size)) for rule in rules]

    def search(self, left: int, candidates: int, chosen: int, size: int) -> int | None:  # type: ignore[override]
        """Exactly `size` of the candidates that hit all sets left, and keep the rules with those chosen; or None."""
        self.nodes += 1
        if not self.may_be(chosen, size):
            return None
        if size == 0:
            return None if left else 0
        branches = min((each & candidates for each in self.some_of(left)), key=int.bit_count) if left else candidates
        while branches:
            member = branches & -branches
            branches ^= member
            candidates ^= member
            rest = self.search(left & self.missed_by[member], candidates, chosen | member, size - 1)
            if rest is not None:
                return member | rest
        return None

    def may_be(self, chosen: int, size: int) -> bool:
        """Whether so many members more can bring every sum to where its rule wants it."""
        for coefficients, low, high, least, greatest in self.rules:
            total = sum(coefficients[member] for member in members_of(chosen))
            if total + least[size] > high or total + greatest[size] < low:
                return False
        return True


def _extreme_sums(coefficients: Sequence[float], candidates: int, size: int) -> tuple[list[float], list[float]]:
    """The least and the greatest sum of none, one, two and more candidates."""
    ascending = sorted(coefficients[member] for member in members_of(candidates))
    least, greatest = ([0.0, *accumulate(some)] for some in (ascending[:size], ascending[::-1][:size]))
    return least, greatest


def missed_by_each(candidates: int, sets: Sequence[int]) -> dict[int, int]:
    """For every candidate, as a bit, the numbers of those sets that it does not hit, as bits.

    >>> missed_by_each(as_bits([0, 1]), [as_bits([0, 1]), as_bits([1])])
    {1: 2, 2: 0}
    """
    n_bytes = (candidates.bit_length() + 7) // 8
    packed = np.frombuffer(b"".join(each.to_bytes(n_bytes, "little") for each in sets), dtype=np.uint8)
    is_member = np.unpackbits(packed.reshape(len(sets), n_bytes), axis=1, bitorder="little")
    missed = np.packbits(1 - is_member.T, axis=1, bitorder="little")
    return {1 << member: int.from_bytes(missed[member].tobytes(), "little") for member in members_of(candidates)}
