"""The searchers of the exact solver on other machines: the front's nodes, dealt out to the workers of a Dask cluster.

A round deals the front out into hands, a few for every thread of the cluster. A hand is a task of its own: its nodes,
the cuts that are known when the round begins, the threshold, and how much work to do; what comes back is what is left,
found and learned. Nothing else plays a part, least of all what a worker has done before. So a hand may be searched
anywhere, and again where a worker has died; a hand that does not come back stays in the front as it was. When a round
is over, all is put together, and with the next one every worker gets to know what the others have learned.

Which hands there are depends on the number of workers, and so the path of the search does. The answer does not: it is
settled among all tests that are as good (`rposst_opt.solvers.ties`).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from rposst_opt import __version__
from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.certificate import CertificateCut
from rposst_opt.contract import Limit
from rposst_opt.errors import ProblemError, warn
from rposst_opt.solvers.cluster import Cluster, ClusterLost
from rposst_opt.solvers.front import Front, some_of
from rposst_opt.solvers.kernels.choice_rules import ChoiceRules
from rposst_opt.solvers.kernels.compiling import SOURCES, compile_from_now_on, digest_of
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays, locked
from rposst_opt.solvers.kernels.search_state import Nodes, Plan
from rposst_opt.solvers.prospect import Weights, weights_left
from rposst_opt.solvers.searchers import FoundTest, Searchers

HANDS = 3  # for every thread of the cluster: some are done sooner than others
SENT_BYTES = 8 * 2**20  # of cuts, with every round
FRUITLESS_ROUNDS = 3  # of which nothing came back, before a cluster is given up

# Work, in nanoseconds by a rough count:
AT_HOME = 2e8  # a search begins on this machine, and most end there
SHORTEST_TURN, LONGEST_TURN = 2e7, 1e8


class Held(NamedTuple):
    """What workers hold as long as the run goes on."""

    arrays: ProblemArrays
    rules: ChoiceRules
    capacity: int
    record: bool
    written_by: str  # the state of the code


class Hand(NamedTuple):
    """What one task is about."""

    nodes: Nodes
    plan: Plan
    threshold: float
    work: float
    most_cuts: int  # to bring back
    round: str  # a name for all hands of a round


class Effort(NamedTuple):
    """How much was done."""

    work: float  # in nanoseconds, by a rough count
    leaves: int  # tuples settled
    nodes: int
    learned: int  # cuts
    calls: int  # questions to the antagonist


class Turn(NamedTuple):
    """What has come of a hand."""

    left: Nodes
    found: list[FoundTest]
    unresolved: float
    cuts: FloatArray  # of those that were learned, the most used
    uses: IntArray
    uses_of_known: IntArray  # of those that were known when it began
    records: list[CertificateCut]  # of all that were learned
    effort: Effort


# On a worker


@cache
def state_of_the_code() -> str:
    """Tells versions apart whose searches may differ."""
    return f"rposst-opt {__version__} ({digest_of(SOURCES)})"


_ended_rounds: set[str] = set()  # that this worker has still been busy with


def end_round(name: str) -> None:
    """Have the turns of this round end, as far as they are under way in this process."""
    _ended_rounds.add(name)


def take_turn(held: Held, known: FloatArray, hand: Hand) -> Turn:
    """Search below the nodes of a hand, with these cuts to begin with."""
    if held.written_by != state_of_the_code():
        raise ProblemError(f"the worker has {state_of_the_code()}, and the search is by {held.written_by}.")
    compile_from_now_on()
    searchers = Searchers(locked(held.arrays), hand.plan, held.rules, capacity=held.capacity, record=held.record)
    searchers.add_cuts(known, np.zeros(len(known), np.int64))

    def is_ended() -> Limit | None:
        return Limit.INTERRUPT if hand.round in _ended_rounds else None

    left = searchers.collect(hand.nodes, hand.threshold, held.capacity - 1, hand.work, is_ended)
    searchers.keep_cuts()
    place_of = {cut.tobytes(): place for place, cut in enumerate(known)}
    cuts, uses = searchers.cuts.values[: searchers.kept], searchers.kept_uses[: searchers.kept]
    places = np.array([place_of.get(cut.tobytes(), -1) for cut in cuts], dtype=np.int64)
    uses_of_known = np.zeros(len(known), np.int64)
    uses_of_known[places[places >= 0]] = uses[places >= 0]
    learned = np.flatnonzero(places < 0)
    most_used = learned[np.argsort(-uses[learned], kind="stable")[: hand.most_cuts]]
    return Turn(
        left=left,
        found=searchers.found,
        unresolved=float(searchers.members[0].levels.unresolved),
        cuts=cuts[most_used],
        uses=uses[most_used],
        uses_of_known=uses_of_known,
        records=searchers.records,
        effort=Effort(searchers.work, searchers.leaves, searchers.nodes, searchers.learned, searchers.calls),
    )


# On this machine


def weights_after(nodes: Nodes, weights: FloatArray, left: Nodes) -> Weights:
    """What is left of a hand weighs, whose nodes were searched one after the other: its last ones may be untouched."""
    longest = min(len(nodes.cases), len(left.cases))
    ends = [
        (mine[len(mine) - longest :] == its[len(its) - longest :]).all(axis=1)
        for mine, its in zip(nodes, left, strict=True)
    ]
    untouched = int(np.minimum.accumulate((ends[0] & ends[1])[::-1]).sum())
    begun, rest = len(nodes.cases) - untouched, len(left.cases) - untouched
    return weights_left(nodes, weights, begun, some_of(left, slice(rest)))


class Crew:
    """Whoever takes turns in a search: the searchers of this machine, and where it takes long those of a cluster.

    Parameters
    ----------
    searchers : Searchers
        Those of this machine: whatever is found and learned elsewhere is put together there.
    cluster : Cluster or None
    """

    def __init__(self, searchers: Searchers, cluster: Cluster | None) -> None:
        self.searchers, self.cluster = searchers, cluster
        self._work_beside = 0.0
        self._held: Any = None
        self._n_threads, self._fruitless, self._has_warned = 0, 0, False

    @property
    def work_alone(self) -> float:
        """What was done, without what others have done at the same time as one of them."""
        return float(self.searchers.work - self._work_beside)

    def take_turns(
        self,
        front: Front,
        threshold: float,
        turn: float,
        work: float,
        pool: ThreadPoolExecutor,
        reached: Callable[[], Limit | None],
    ) -> Limit | None:
        """Everybody has a turn; then all is put together. A limit that was reached ends it.

        Parameters
        ----------
        front : Front
        threshold : float
        turn : float
            How much work a searcher of this machine does.
        work : float
            How much there is to do before the caller looks at the search again, by all together.
        pool : ThreadPoolExecutor
            Of this machine.
        reached : callable
            Returns the limit that was reached, if any.
        """
        if self._is_for_the_cluster(front):
            return self._deal_out(front, threshold, work, reached)
        return self.searchers.take_turns(front, threshold, turn, pool, reached)

    def collect(
        self, nodes: Nodes, threshold: float, most: int, work: float, reached: Callable[[], Limit | None]
    ) -> Nodes:
        """As `Searchers.collect`, with the help of the cluster."""
        searchers, front = self.searchers, self.searchers.new_front()
        front.nodes, front.weights = nodes, np.full(len(nodes.cases), 1 / len(nodes.cases))
        end, enough = searchers.work + work, len(searchers.found) + most
        while not front.is_done and len(searchers.found) <= enough and searchers.work < end and reached() is None:
            if self._is_for_the_cluster(front):
                self._deal_out(front, threshold, end - searchers.work, reached)
            else:
                turn = end - searchers.work if self.cluster is None else SHORTEST_TURN
                more = enough - len(searchers.found)
                left = searchers.collect(front.nodes, threshold, more, turn, reached)
                front.gather([left], [weights_after(front.nodes, front.weights, left)])
        return front.nodes

    def _is_for_the_cluster(self, front: Front) -> bool:
        """Whether this front is one for the cluster: the search takes long, and there is a node for every thread."""
        n_nodes = len(front.nodes.cases)
        if self.cluster is None or self.searchers.work < AT_HOME or n_nodes < 2:
            return False
        try:
            self._n_threads = self.cluster.n_threads()
        except ClusterLost as loss:
            self._give_up(str(loss))
            return False
        if not self._n_threads and not self._has_warned:
            self._has_warned = True
            warn(
                f"the cluster at {self.cluster.address!r} has no workers: this machine searches alone until some come."
            )
        return 0 < self._n_threads <= n_nodes

    def _deal_out(
        self, front: Front, threshold: float, work: float, reached: Callable[[], Limit | None]
    ) -> Limit | None:
        """A round on the cluster: hands that do not come back stay in the front."""
        assert self.cluster is not None
        self.searchers.keep_cuts()
        known = self._most_used_cuts()
        dealt, shares = front.deal(min(HANDS * self._n_threads, len(front.nodes.cases)))
        hands = self._hands(dealt, threshold, work)
        try:
            turns, limit = self._send(known, hands, reached)
        except ClusterLost as loss:
            front.gather(dealt, [Weights(share, 0.0) for share in shares])
            self._give_up(str(loss))
            return reached()
        come = [turn for turn in turns if turn is not None]
        front.unresolved = min([front.unresolved, *(turn.unresolved for turn in come)])
        left = [nodes if turn is None else turn.left for nodes, turn in zip(dealt, turns, strict=True)]
        front.gather(left, [weights_after(*each) for each in zip(dealt, shares, left, strict=True)])
        self._put_together(come, known)
        self._fruitless = 0 if come or limit is not None else self._fruitless + 1
        if self._fruitless == FRUITLESS_ROUNDS:
            self._give_up(f"nothing comes back from the cluster at {self.cluster.address!r}")
        return limit

    def _most_used_cuts(self) -> IntArray:
        """The places of the cuts that are sent: as many as there may be, the most used."""
        searchers = self.searchers
        most = max(SENT_BYTES // (8 * searchers.cuts.values.shape[1]), 1)
        by_use = np.argsort(-searchers.kept_uses[: searchers.kept], kind="stable")
        return np.sort(by_use[:most])

    def _hands(self, dealt: list[Nodes], threshold: float, work: float) -> list[Hand]:
        """These nodes with all that is to be known about them."""
        turn = min(max(work / len(dealt), SHORTEST_TURN), LONGEST_TURN)
        most_cuts = max(self.searchers.kept_places // (2 * len(dealt)), 1)  # half of them are new after a round
        name = uuid4().hex
        return [Hand(nodes, self.searchers.plan, threshold, turn, most_cuts, name) for nodes in dealt]

    def _send(
        self, known: IntArray, hands: list[Hand], reached: Callable[[], Limit | None]
    ) -> tuple[list[Turn | None], Limit | None]:
        """What has come of these hands; None for those that did not come back."""
        assert self.cluster is not None
        if self._held is None or not self.cluster.holds(self._held):
            self._held = self.cluster.hold(self._what_is_held())
        cuts = self.cluster.hold(self.searchers.cuts.values[known])
        turns, limit = self.cluster.run(take_turn, [(self._held, cuts, hand) for hand in hands], reached)
        if limit is not None:
            self.cluster.on_every_worker(end_round, hands[0].round)
        return turns, limit

    def _what_is_held(self) -> Held:
        searchers = self.searchers
        return Held(searchers.arrays, searchers.rules, searchers.capacity, searchers.record, state_of_the_code())

    def _put_together(self, turns: list[Turn], known: IntArray) -> None:
        """Take over what was found, learned and counted."""
        searchers = self.searchers
        for turn in turns:  # before a cut is added, as some may have to go for it
            searchers.kept_uses[known] += turn.uses_of_known
        for turn in turns:
            searchers.found += turn.found
            searchers.records += turn.records
            searchers.add_cuts(turn.cuts, turn.uses)
            searchers.work += turn.effort.work
            searchers.leaves += turn.effort.leaves
            searchers.nodes += turn.effort.nodes
            searchers.learned += turn.effort.learned
            searchers.calls_elsewhere += turn.effort.calls
            self._work_beside += turn.effort.work * (1 - 1 / self._n_threads)

    def _give_up(self, reason: str) -> None:
        """Do without the cluster from now on."""
        self.cluster = None
        warn(f"{reason}. The search goes on on this machine.")
