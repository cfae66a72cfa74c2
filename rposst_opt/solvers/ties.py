"""Which sets of cases are as good as the best, and which of them is the answer?

Once the optimum is proved, the same search with a threshold just above it finds all sets that are tied. If there are
few, they are compared: the least mean loss, then the first by position. Of more the first by position is the answer;
it is looked for case by case, from the first on, so that not all of them have to be found. Both rules, and which of
them applies, depend on the problem alone, and not on the order in which a search comes upon its finds.
"""

from collections.abc import Callable

from rposst_opt.contract import Limit
from rposst_opt.solvers.remote_searchers import Crew
from rposst_opt.solvers.searchers import FoundTest, Searchers

MOST_COMPARED = 256  # tests that are tied for the best: of more, the first by position is taken
# Nanoseconds by a rough count, that ties may take besides as much as the proof took:
LEAST_WORK = 1e9
LEAST_WORK_AFTER_BOUND = 1e8  # where a bound from elsewhere has cut it short

Reached = Callable[[], Limit | None]


def tied_tests(
    crew: Crew, best: FoundTest, margin: float, reached: Reached, *, cut_short: bool = False
) -> tuple[list[FoundTest], bool]:
    """All tests within the margin of the best, or the first by position of too many; and whether others were left out.

    Others are left out if the work does not do, or a limit is reached: then the answer is the best known, as one of
    many. Where a bound from elsewhere has `cut_short` the search for the best, this one may be hopeless: it has less.
    """
    work = crew.searchers.work + (LEAST_WORK_AFTER_BOUND if cut_short else LEAST_WORK)
    threshold = best.value + margin
    left = crew.collect(crew.searchers.new_front().nodes, threshold, MOST_COMPARED, work, reached)
    tied = _collected(crew.searchers)
    if len(tied) > MOST_COMPARED:
        known = min(tied, key=_position)
        first = _first_by_position(crew, known, threshold, work, reached) if len(left.cases) else known
        return ([best], True) if first is None else ([first], False)
    return ([best], True) if len(left.cases) else (tied or [best], False)


def _first_by_position(
    crew: Crew, known: FoundTest, threshold: float, work: float, reached: Reached
) -> FoundTest | None:
    """Of all tuples below the threshold, of which one is known, the first by position; None if the work does not do."""
    searchers, end = crew.searchers, crew.searchers.work + work
    chosen: tuple[int, ...] = ()
    while len(chosen) < len(known.cases):
        following = chosen[-1] + 1 if chosen else 0
        for case in range(following, known.cases[len(chosen)]):
            nodes = searchers.beginning_with((*chosen, case))
            left = crew.collect(nodes, threshold, 0, end - searchers.work, reached)
            found = _collected(searchers)
            if found:
                known = min(found, key=_position)
                break
            if len(left.cases):
                return None
        chosen = known.cases[: len(chosen) + 1]
    return known


def _position(test: FoundTest) -> tuple[int, ...]:
    return test.cases


def _collected(searchers: Searchers) -> list[FoundTest]:
    """What the searchers have found since they were last asked."""
    found = list(searchers.found)
    searchers.found.clear()
    return found
