"""The searchers of the exact solver: who searches which part of the tree, and the cuts that they share.

The tree is dealt out to two searchers, or to eight, which work for a fixed amount of *work*, not of time, with the cuts
known at the start of their turn. Then all is put together in the order of the searchers. So every run is the same,
whatever the number of threads.
"""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.certificate import CertificateCut
from rposst_opt.contract import Limit
from rposst_opt.solvers.front import Front, set_of, some_of, together, view_of
from rposst_opt.solvers.kernels.choice_rules import ChoiceRules
from rposst_opt.solvers.kernels.hitting_set import explore
from rposst_opt.solvers.kernels.learning import write_hits
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.kernels.search_state import (
    Counts,
    Cuts,
    Nodes,
    Plan,
    Search,
    look_below,
    make_search,
    read_counts,
    spent,
)
from rposst_opt.solvers.kernels.tuple_game import CALLS
from rposst_opt.solvers.prospect import weights_left
from rposst_opt.solvers.widening import Widening

SEARCHERS = 8  # however many threads there are, so that the answer does not depend on them
OWN_CUTS, OWN_BYTES = 512, 8 * 2**20  # that a searcher may learn in one turn,
OWN_RECORDS = 128  # and if each is recorded for a certificate
FEWEST_OWN_CUTS = 64
KEPT_CUTS, KEPT_BYTES = 4096, 128 * 2**20  # in all, between turns
MOST_WORDS_LEFT = 2**16  # in nodes that a searcher has left, if their places are to be used again in the next turn
POLL_SECONDS = 0.05
COLLECTED_AT_ONCE, COLLECTING_TURN = 64, 2e7  # tests, and work, between two looks at the clock


class FoundTest(NamedTuple):
    """A tuple below the threshold that it was searched for with; its cases are positions among those searched."""

    value: float
    cases: tuple[int, ...]  # ascending
    weights: FloatArray  # of the required cases, then of these


class Hand(NamedTuple):
    """What one searcher is to search in its turn."""

    member: Search
    nodes: Nodes
    weights: FloatArray
    order: IntArray  # of the cuts that are known when the turn begins


class Searchers:
    """The searchers with all that they share.

    Parameters
    ----------
    arrays, plan, rules
        As the kernels read them; all values are in the arrays' units.
    capacity : int
        How many tests a searcher may find before its turn is over.
    record : bool
        Whether to write down what every cut is made of, for a certificate.

    Attributes
    ----------
    found : list of FoundTest
        What was found since the caller last emptied it.
    records : list of CertificateCut
        What the cuts are made of, if recorded.
    work, leaves, nodes, learned
        How much was done: work in nanoseconds by a rough count, tuples settled, nodes, cuts.
    """

    def __init__(self, arrays: ProblemArrays, plan: Plan, rules: ChoiceRules, *, capacity: int, record: bool) -> None:
        n_cases = len(arrays.results)
        self.arrays, self.plan, self.rules = arrays, plan, rules
        self.capacity, self.record = capacity, record
        self.n_words = (n_cases + 63) // 64
        self._beyond = ~set_of(range(plan.n_selectable), self.n_words)
        self.none_left = Nodes(np.empty((0, plan.size + 1), np.int64), np.empty((0, self.n_words), np.uint64))
        most_own = max(FEWEST_OWN_CUTS, OWN_BYTES // (8 * n_cases))
        self.own_places = min(OWN_RECORDS if record else OWN_CUTS, most_own)
        self.kept_places = max(2 * self.own_places, min(KEPT_CUTS, KEPT_BYTES // (8 * n_cases)))
        places = self.kept_places + SEARCHERS * self.own_places
        self.cuts = Cuts(np.empty((places, n_cases)), np.empty((places, self.n_words), np.uint64))
        self.by_policy = arrays.results.T.copy()  # of one kind for the compiler, whatever its shape
        self._noise = np.where(arrays.noise > 0, arrays.noise, 1.0)  # cases without noise have no slopes
        self.stop = np.zeros(1, np.int64)
        self.kept = 0
        self.kept_uses = np.zeros(self.kept_places, np.int64)
        self.limit_of_hits = math.nan
        self.may_widen = False  # which is not for problems that are solved at once
        self.widening: Widening | None = None  # that of the front that is searched
        self.members: list[Search] = []
        self.found: list[FoundTest] = []
        self.records: list[CertificateCut] = []
        self.work, self.leaves, self.nodes, self.learned, self.calls_elsewhere = 0.0, 0, 0, 0, 0
        first = self._member(0)
        if not record:  # as long as it is alone, it may have the places of all
            first.counts.own_start, first.counts.own_end = 0, self.kept_places

    @property
    def calls(self) -> int:
        """How often the antagonist was asked."""
        return self.calls_elsewhere + sum(int(member.workspace.state[CALLS]) for member in self.members)

    def widen_from_now_on(self) -> None:
        """Widen cuts from now on, as far as that turns out to pay for a front."""
        if not self.may_widen:
            self.keep_cuts()
            self._give_places(0)
            self.may_widen = True

    def _widen_for(self, front: Front) -> None:
        if self.may_widen:
            self.widening = front.widening
            self.plan = self.plan._replace(widening=front.widening.plan)

    def new_front(self) -> Front:
        """A search that has not begun."""
        return Front(self.plan, self._beyond)

    # One searcher alone

    def set_threshold(self, threshold: float) -> None:
        """What all searchers look below from now on, with the cuts of their own; nothing is unresolved there yet."""
        for member in self.members:
            look_below(threshold, self.plan.slack, member.levels)
            member.levels.unresolved, member.levels.roughness = math.inf, 0.0
            own, learned = int(member.counts.own_start), int(member.counts.learned)
            if learned:
                write_hits(own, own + learned, float(member.levels.limit), self.cuts)

    def begin_roughly(self, roughness: float) -> None:
        """Have the first searcher look for great gains at first (`kernels.exchanging`)."""
        self.members[0].levels.roughness = roughness

    def explore_alone(self, nodes: Nodes, work: float) -> Nodes:
        """Have the first searcher search below these nodes, each find being its new threshold; what is left to do."""
        return self._explored_alone(nodes, work, exchanging=False)

    def exchange_alone(self, left: Nodes, work: float) -> tuple[Nodes, bool]:
        """Have the first searcher exchange single cases of its last find as long as that helps.

        It begins with what was left the last time. Returns what is left now, and whether exchanges may still help.
        """
        if len(left.cases):
            return self.explore_alone(left, work), True
        rows = self.plan.size + 1
        nodes = Nodes(np.empty((rows, rows), np.int64), np.empty((rows, self.n_words), np.uint64))
        left = self._explored_alone(nodes, work, exchanging=True)
        return left, len(left.cases) > 0

    def _explored_alone(self, nodes: Nodes, work: float, *, exchanging: bool) -> Nodes:
        """Have the first searcher explore, take over what it has adopted, and its cuts if it has no place for more."""
        first = self.members[0]
        first.levels.unresolved = math.inf
        begun = explore(nodes, self._sorted_cuts(), work, True, exchanging, self.plan, self.arrays, first)
        counts = self._count(first)
        if counts.adopted:
            self._take(first, 1)
        if counts.learned + 1 >= counts.own_end - counts.own_start:
            self.keep_cuts()
            self._give_places(0)
        return self._left_of(self.members[0], counts.left, nodes, begun)

    def advance_alone(self, front: Front, work: float) -> None:
        """Have the first searcher search the tree for so much work."""
        nodes, weights = front.nodes, front.weights
        self._widen_for(front)
        remaining = self.explore_alone(nodes, work)
        if len(remaining.cases):
            left = some_of(self.members[0].left, slice(int(self.members[0].counts.left)))
            begun = len(nodes.cases) - (len(remaining.cases) - len(left.cases))
            front.gather([remaining], [weights_left(nodes, weights, begun, left)])
        else:
            front.close()
        front.unresolved = min(front.unresolved, float(self.members[0].levels.unresolved))

    def collect(
        self, nodes: Nodes, threshold: float, most: int, work: float, reached: Callable[[], Limit | None]
    ) -> Nodes:
        """Have the first searcher find all tuples below the threshold, until there are more than `most`; what is left.

        It also ends when the work is spent or a limit is reached.
        """
        self.stop[0] = 0
        first, end, already = self.members[0], self.work + work, len(self.found)
        collector = first._replace(
            found_cases=np.zeros((COLLECTED_AT_ONCE, first.found_cases.shape[1]), np.int64),
            found_weights=np.zeros((COLLECTED_AT_ONCE, first.found_weights.shape[1])),
        )
        self.set_threshold(threshold)
        while len(nodes.cases) and len(self.found) - already <= most and self.work < end and reached() is None:
            self.keep_cuts()
            self._give_places(0)
            order = self._sorted_cuts()
            begun = explore(nodes, order, COLLECTING_TURN, False, False, self.plan, self.arrays, collector)
            counts = self._count(collector)
            self._take(collector, counts.found)
            nodes = self._left_of(collector, counts.left, nodes, begun)
        return nodes

    def beginning_with(self, chosen: tuple[int, ...]) -> Nodes:
        """The node of all tuples whose first cases, in the order of their positions, are these."""
        if len(chosen) == self.plan.size:
            return self.only(chosen)
        cases = np.zeros((1, self.plan.size + 1), dtype=np.int64)
        cases[0, : len(chosen)], cases[0, -1] = chosen, len(chosen)
        excluded = ~set_of(range(chosen[-1] + 1, self.plan.n_selectable), self.n_words)
        return Nodes(cases, excluded[None])

    def rule_out(self, tuples: Iterable[tuple[int, ...]], threshold: float) -> None:
        """Learn a cut for each of these tuples; one that is below the threshold is found instead."""
        self.stop[0] = 0
        self.set_threshold(threshold)
        for chosen in sorted(tuples):
            self._give_places(0)
            self.explore_alone(self.only(chosen), math.inf)
            self.keep_cuts()

    def try_tuple(self, chosen: tuple[int, ...], threshold: float) -> None:
        """Have the first searcher settle this tuple; it is found if it is below the threshold."""
        self.keep_cuts()
        self.rule_out([chosen], threshold)

    def only(self, chosen: tuple[int, ...]) -> Nodes:
        """The node of this tuple alone: it lacks its last case, and nothing else may take the place."""
        lacking = len(chosen) - 1
        cases = np.array([[*chosen[:-1], lacking, lacking]], dtype=np.int64)
        return Nodes(cases, ~set_of(chosen[-1:], self.n_words)[None])

    # All of them

    def take_turns(
        self,
        front: Front,
        threshold: float,
        turn: float,
        pool: ThreadPoolExecutor,
        reached: Callable[[], Limit | None],
    ) -> Limit | None:
        """Every searcher has a turn; then all is put together, in their order. A limit that was reached ends it."""
        hands = self._deal(front, threshold, SEARCHERS)
        futures = [pool.submit(self._play, hand, turn, adopting=False) for hand in hands]
        limit, pending = None, set(futures)
        while pending:
            _, pending = wait(pending, timeout=POLL_SECONDS)
            limit = limit or reached()
            if limit is not None:
                self.stop[0] = 1
        self._gather(front, hands, [future.result() for future in futures])
        return limit

    def take_turns_in_a_pair(
        self, front: Front, threshold: float, turn: float, pool: ThreadPoolExecutor | None
    ) -> None:
        """Two searchers have a turn, in the pool and here, or here one after the other if there is no pool.

        What they find is their new threshold, so a turn is not over with a find.
        """
        first, second = self._deal(front, threshold, 2)
        elsewhere = None if pool is None else pool.submit(self._play, second, turn, adopting=True)
        begun = self._play(first, turn, adopting=True)
        begun_by_second = self._play(second, turn, adopting=True) if elsewhere is None else elsewhere.result()
        self._gather(front, [first, second], [begun, begun_by_second])

    def _deal(self, front: Front, threshold: float, number: int) -> list[Hand]:
        """Deal the front out to so many searchers, who look below the threshold."""
        for i in range(number):
            self._member(i)
            self._give_places(i)
        self._widen_for(front)
        self.set_threshold(threshold)
        order = self._sorted_cuts()
        dealt = zip(self.members[:number], *front.deal(number), strict=True)
        return [Hand(member, nodes, weights, order) for member, nodes, weights in dealt]

    def _play(self, hand: Hand, turn: float, *, adopting: bool) -> int:
        """Have a searcher search what was dealt to it; how many of the nodes were begun."""
        return explore(hand.nodes, hand.order, turn, adopting, False, self.plan, self.arrays, hand.member)

    def _gather(self, front: Front, hands: list[Hand], all_begun: list[int]) -> None:
        """Put together what the searchers have left, found and learned, in their order."""
        parts, weights = [], []
        for hand, begun in zip(hands, all_begun, strict=True):
            counts = self._count(hand.member)
            left = view_of(hand.member.left, slice(counts.left))
            parts += [left, view_of(hand.nodes, slice(begun, None))]
            weights.append(weights_left(hand.nodes, hand.weights, begun, left))
            front.unresolved = min(front.unresolved, float(hand.member.levels.unresolved))
            self._take(hand.member, counts.adopted or counts.found)
        front.gather(parts, weights)
        self._free_what_was_left()
        self.keep_cuts()

    def _free_what_was_left(self) -> None:
        """Have searchers that left very many nodes begin with empty places for them, which take no memory yet."""
        for i, member in enumerate(self.members):
            if member.counts.left * self.n_words > MOST_WORDS_LEFT:
                cases, excluded = member.left
                empty = Nodes(np.empty(cases.shape, np.int64), np.empty(excluded.shape, np.uint64))
                self.members[i] = member._replace(left=empty)

    def _member(self, i: int) -> Search:
        while len(self.members) <= i:
            self.members.append(
                make_search(
                    self.arrays,
                    self.plan,
                    rules=self.rules,
                    cuts=self.cuts,
                    by_policy=self.by_policy,
                    capacity=self.capacity,
                    records=self.own_places if self.record else 0,
                    stop=self.stop,
                )
            )
            self._give_places(len(self.members) - 1)
        return self.members[i]

    def _give_places(self, i: int) -> None:
        """Give the i-th searcher an empty stretch of its own for what it learns and finds."""
        start = self.kept_places + i * self.own_places
        counts = self.members[i].counts
        counts.own_start, counts.own_end, counts.learned, counts.found = (
            start,
            start + self.own_places,
            0,
            0,
        )

    def _take(self, member: Search, found: int) -> None:
        """Take over the first tests that a searcher has found."""
        all_cases, all_weights = member.found_cases[:found].tolist(), member.found_weights[:found].tolist()
        n_required = self.plan.n_required
        for cases, (*weights, value) in zip(all_cases, all_weights, strict=True):
            pairs = sorted(zip(cases, weights[n_required:], strict=True))
            ordered = np.array(weights[:n_required] + [weight for _, weight in pairs])
            self.found.append(FoundTest(value, tuple(case for case, _ in pairs), ordered))

    def _count(self, member: Search) -> Counts:
        """Add what a searcher has done to what all have; its counts."""
        counts = read_counts(member.counts)
        self.leaves += counts.leaves
        self.nodes += counts.nodes
        call_cost, step_cost = self.plan.call_cost, self.plan.step_cost
        work = float(spent(call_cost, step_cost, counts, member.workspace.state))
        self.work += work
        if self.widening is not None:
            self.widening.note_work(work, call_cost * counts.widening_calls + step_cost * counts.widening_steps)
        return counts

    def _left_of(self, member: Search, left: int, nodes: Nodes, begun: int) -> Nodes:
        """What a searcher has left to do of these nodes: those that it has put aside, and those not begun with."""
        if not left and begun == len(nodes.cases):
            return self.none_left
        return together([some_of(member.left, slice(left)), some_of(nodes, slice(begun, None))])

    # Cuts

    def keep_cuts(self) -> None:
        """Move the cuts that were learned to those that are kept; where all places are taken, the least used go."""
        self.kept_uses[: self.kept] //= 2
        for member in self.members:
            self.kept_uses[: self.kept] += member.uses[: self.kept]
            counts = read_counts(member.counts)
            learned, first = counts.learned, counts.own_start
            own_uses = member.uses[first : first + learned].copy()
            if self.widening is not None:
                self.widening.note_uses(own_uses)
            member.uses[:] = 0
            member.counts.learned = 0
            self.add_cuts(self.cuts.values[first : first + learned], own_uses)
            self.learned += learned
            if self.record:
                self.records += [
                    CertificateCut.from_dense(*record, noise_direction=slopes / self._noise)
                    for record, slopes in zip(member.record[:learned], member.noise_record[:learned], strict=True)
                ]
        if self.widening is not None:
            self.widening.decide()
            self.plan = self.plan._replace(widening=self.widening.plan)
        self.limit_of_hits = math.nan

    def add_cuts(self, values: FloatArray, uses: IntArray) -> None:
        """Keep these cuts too, which have been of use so often."""
        if self.kept + len(values) > self.kept_places:
            self._forget()
        places = slice(self.kept, self.kept + len(values))
        self.cuts.values[places], self.kept_uses[places] = values, uses
        self.kept += len(values)
        self.limit_of_hits = math.nan

    def _forget(self) -> None:
        """Keep the more used half of the cuts."""
        kept = np.sort(np.argsort(-self.kept_uses[: self.kept], kind="stable")[: self.kept_places // 2])
        self.cuts.values[: len(kept)] = self.cuts.values[kept]
        self.kept_uses[: len(kept)] = self.kept_uses[kept]
        self.kept = len(kept)

    def _sorted_cuts(self) -> IntArray:
        """The cuts that are kept, those that fewest cases hit first, with their hits brought up to the limit."""
        if not self.kept:
            return np.empty(0, dtype=np.int64)
        limit = float(self.members[0].levels.limit)
        if limit != self.limit_of_hits:
            write_hits(0, self.kept, limit, self.cuts)
            self.limit_of_hits = limit
        sizes = np.bitwise_count(self.cuts.hit[: self.kept]).sum(axis=1, dtype=np.int64)
        return np.argsort(sizes, kind="stable").astype(np.int64)
