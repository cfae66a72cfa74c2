"""The search for hitting sets against looking at every set there is."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rposst_opt.checking import hitting_sets
from rposst_opt.checking.hitting_sets import as_bits, find_hitting_set, members_of, without_dominated

MEMBERS = range(9)

families = st.lists(st.sets(st.sampled_from(MEMBERS)), max_size=14)
sparse_families = st.lists(st.sets(st.sampled_from(MEMBERS), min_size=1, max_size=3), max_size=14)
some_members = st.sets(st.sampled_from(MEMBERS), max_size=4)


def can_be_hit(family: list[set[int]], size: int, candidates: set[int], required: set[int]) -> bool:
    """By looking at every set of at most `size` candidates."""
    return any(
        all(each & {*chosen, *required} for each in family)
        for count in range(size + 1)
        for chosen in combinations(sorted(candidates), count)
    )


@given(families | sparse_families, st.integers(0, 5), some_members, some_members, st.sampled_from([1, 3, 128]))
def test_the_search_finds_a_hitting_set_if_and_only_if_there_is_one(
    family: list[set[int]], size: int, required: set[int], forbidden: set[int], compared: int
) -> None:
    candidates = set(MEMBERS) - required - forbidden
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hitting_sets, "SETS_COMPARED", compared)
        found, nodes = find_hitting_set(
            map(as_bits, family), size, candidates=as_bits(candidates), required=as_bits(required)
        )
    assert (found is not None) == can_be_hit(family, size, candidates, required)
    assert nodes >= 1
    if found is not None:
        assert set(found) <= candidates and len(found) <= size
        assert all(each & {*found, *required} for each in family)


@given(families, st.integers(0, 5))
def test_dominated_candidates_are_not_needed(family: list[set[int]], size: int) -> None:
    kept = set(members_of(without_dominated([as_bits(each) for each in family], as_bits(MEMBERS))))
    assert can_be_hit(family, size, kept, set()) == can_be_hit(family, size, set(MEMBERS), set())
    for one, other in combinations(kept, 2):
        assert any((one in each) and (other not in each) for each in family)


def test_nobody_who_may_be_chosen_hits_anything() -> None:
    assert find_hitting_set([as_bits([0])], 1, candidates=as_bits([5])).found is None
    assert find_hitting_set([as_bits([0])], 3, candidates=0).found is None
    assert find_hitting_set([], 0, candidates=0).found == ()


def test_the_size_of_the_search_does_not_grow_with_the_number_of_sets_to_choose_from() -> None:
    """Three pairs without a common member: two members cannot hit them, of however many."""
    pairs = [as_bits([0, 1]), as_bits([2, 3]), as_bits([4, 5])]
    search = find_hitting_set(pairs, 2, candidates=as_bits(range(1000)))
    assert search.found is None and search.nodes <= 7


def test_every_line_of_a_finite_plane_is_hit_by_a_line_and_by_no_fewer_points() -> None:
    """The plane of order 3: any two of its 13 lines meet, so a line's 4 points hit all; no 3 points do."""
    lines = [as_bits((shift + point) % 13 for point in (0, 1, 3, 9)) for shift in range(13)]
    assert find_hitting_set(lines, 3, candidates=as_bits(range(13))).found is None
    four = find_hitting_set(lines, 4, candidates=as_bits(range(13))).found
    assert four is not None and as_bits(four) in lines
    assert find_hitting_set(lines[1:], 3, candidates=as_bits(range(13))).found is None
