r"""The proved optimum over all tuples, for every measure, every convex loss and every finite Ψ of this package.

**Cuts.** The antagonist's answer at any weights w⁰ gives numbers c_x, one per test case, with

.. math:: \rho(w) \ge \sum_x w_x c_x \quad\text{for every } w \text{ on the simplex}

(`Problem.cut`: the objective is convex, so it lies above its tangents). Any mixture of cuts is a cut. Hence, with v(R)
the least objective of weights on a set of cases R,

.. math:: v(R) \ge \min_{x \in R} c_x \qquad (\star)

and by linear programming duality the best mixture attains it: max over mixtures of min_{x∈R} c_x = v(R). Column
generation finds that mixture together with the optimal weights (`rposst_opt.kernels.tuple_game`).

**Hitting sets.** Fix a threshold θ. A cut rules out, by (★), every tuple on which it is at least θ. What is left must
*hit* the cut: contain a member of H_c = {x : c_x < θ}. So

    a tuple with v(τ) < θ hits every H_c.                                                                (1)

Depth-first over partial tuples S, with a set E of excluded cases: take the cut not hit by S with the fewest members
outside E, and branch on those members, excluding each from the branches after it. By (1) every tuple of the subtree
(S ⊆ τ, τ ∩ E ⊆ S) below θ is in exactly one branch; if no member is left, there is none. If S hits all cuts known, then
either v(S) ≥ θ, and the best mixture for S is a new cut, at least θ on all of S, that S does not hit; or v(S) < θ, and
all cases outside E are branched on. When one case is lacking, the candidates are the intersection of all H_c not yet
hit; each of them is settled: below θ, and it is a test to report; or not, and its cut may rule out other candidates
too. A new cut is first extended: while some superset R ⊃ τ has v(R) ≥ θ, the mixture for R rules out more.

The tree is finite and each leaf is settled, so in the end **every tuple that was not reported has v ≥ θ.**

**The proof of optimality** is this search with θ just below the incumbent U (by `MARGIN`); whenever a tuple below θ
turns up it becomes the incumbent, θ falls, and every cut rules out more than before, so nothing needs to be searched
again. **An anytime bound** is this search with a lower θ, which is much quicker: it proves that no test is below θ. In
long runs thresholds are climbed alongside, up to half of the way to U at a time. **The best K tuples** come from θ just
above the K-th best value found so far.

Rounding: a tuple counts as ruled out if a cut is above θ less `SLACK`, a thousandfold of what rounding does to cuts in
these units, and the bound that is reported is θ less `SLACK`. Test cases with equal results are searched once, unless
all tuples are asked for: exchanging them changes no objective, and having both is no better than having one.

**Several threads, one answer.** The tree is dealt out to a fixed number of searchers, which work for a fixed amount
of *work*, not of time, with the cuts known at the start of their turn; then all is put together in the order of the
searchers. So every run is the same, whatever the number of threads, until a limit of time ends it.
"""

import math
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rposst_opt.certificate import Certificate, CertificateCut
from rposst_opt.compilation import announced_compilation, available_cores
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError, Unsupported
from rposst_opt.kernels.hitting_set import (
    ADOPTED,
    FOUND,
    LEARNED,
    LEAVES,
    LEFT,
    LIMIT,
    NODES,
    OWN_END,
    OWN_START,
    UNRESOLVED,
    Cuts,
    Nodes,
    Plan,
    Search,
    WordArray,
    explore,
    make_search,
    spent,
    write_hits,
)
from rposst_opt.kernels.response import Game, make_game
from rposst_opt.kernels.tuple_game import CALLS, make_tuple_game, place_row, settle
from rposst_opt.losses import FloatArray
from rposst_opt.measures import Mean, Mixture
from rposst_opt.options import check_counts
from rposst_opt.problem import IntArray, Need, Problem
from rposst_opt.solution import Budget, Candidate, Capabilities, Limit, Progress, Stats, rank_tests

# In units of the largest loss there can be:
MARGIN = 1e-10  # a test must be better than the incumbent by this; tests within it are ties
SLACK = 4e-12  # rounding of cuts
TOLERANCE = 1e-12  # to which one tuple is solved

EXTENSION = 1  # a cut is made for so many cases more than a tuple has; with more it rules out more, but takes longer
SEARCHERS = 8  # however many threads there are, so that the answer does not depend on them
OWN_CUTS = 512  # that a searcher may learn in one turn
OWN_RECORDS = 128  # and if each is recorded for a certificate
KEPT_CUTS, KEPT_BYTES = 4096, 128 * 2**20  # in all, between turns
MOST_TESTS = 20_000  # that may be tied for the best before we refuse to list them

# Work, in nanoseconds by a rough count:
ALONE = 2e7  # one searcher begins: most problems are done before others could help
SHORTEST_TURN, LONGEST_TURN = 1e6, 2e7
FIRST_ROUND = 1e8  # then a lower bound is climbed for, with half of the work so far
POLL_SECONDS = 0.05
TELL_SECONDS = 0.1
MEAN_SHARES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of the mean, added to a measure to choose among its optimal weights
FIRST_STEP, LONGEST_STEP = 0.25, 0.5  # up the ladder, as shares of the way to the incumbent
CLOSEST_RUNG = 1e-3  # of the incumbent: nearer to it no bound is climbed for


@dataclass(frozen=True, kw_only=True)
class Exact:
    """The proved optimum, by cuts and hitting sets.

    Parameters
    ----------
    top : int, optional
        Also the best `top` tuples, in ``Solution.ranking``: by objective, then (within 1e-9 of the largest loss there
        can be) by the lower mean loss, then by index. Of a tuple's optimal weights those with the least mean loss are
        taken. The first of the ranking is the answer. Without a ranking it is any one of those that are tied, the same
        in every run.
    all_optimal : bool
        Also all tuples that are as good as the best, ranked likewise.
    certificate : bool
        Also the cuts that prove the bound, in ``Solution.certificate``.
    threads : int, optional
        All cores by default; the answer is the same with any number.
    """

    top: int | None = None
    all_optimal: bool = False
    certificate: bool = False
    threads: int | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(
        method="hitting sets of cuts, with column generation per tuple",
        handles=frozenset(Need),
        finds_optimum=True,
        proves="the optimum, by cuts that anyone can check",
        tolerance=1e-9,
        requires=("numba",),
    )

    def __post_init__(self) -> None:
        """Refuse a number of tuples or threads below one."""
        check_counts(top=self.top, threads=self.threads)
        if self.top is not None and self.all_optimal:
            raise ProblemError("`top` and `all_optimal` exclude each other: ask for one ranking.")

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Search until all tuples are ruled out or reported, or the budget is spent."""
        started = time.perf_counter()
        with budget.listening_for_interrupts():
            with announced_compilation("exact"):
                proof = _Proof(problem, self, budget)
                proof.warm_up()
            budget.restart_clock()
            ready = time.perf_counter()
            limit = proof.run()
        tests = proof.tests()
        return Candidate(
            test=tests[0],
            lower_bound=float(proof.bound * problem.unit),
            ranking=tests if proof.wants_ranking else (),
            certificate=proof.make_certificate() if self.certificate and limit is None else None,
            limit=limit,
            stats=Stats(
                build_seconds=ready - started,
                solve_seconds=time.perf_counter() - ready,
                tuples=int(proof.share_done * problem.n_tuples),
                solved=proof.leaves,
                rounds=proof.calls,
                nodes=proof.nodes,
                cuts=proof.learned,
            ),
        )


class _Front:
    """Where one search for tuples below a threshold stands: the nodes that are yet to be searched."""

    def __init__(self, plan: Plan, n_words: int) -> None:
        excluded = ~_set_of(range(plan.n_selectable), n_words)[None]
        self.nodes = Nodes(np.zeros((1, plan.size + 1), np.int64), excluded)
        self.size, self.n_selectable = plan.size, plan.n_selectable
        self.unresolved = math.inf  # the least bound among tuples that rounding kept from being settled

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be searched."""
        return not len(self.nodes.cases)

    def deal(self, hands: int) -> list[Nodes]:
        """The nodes, dealt out one by one."""
        return [_some_of(self.nodes, slice(hand, None, hands)) for hand in range(hands)]

    def gather(self, parts: list[Nodes]) -> None:
        """Put together what is left, the deepest first: they are done soonest."""
        cases = np.concatenate([part.cases for part in parts])
        excluded = np.concatenate([part.excluded for part in parts])
        deepest_first = np.argsort(-cases[:, -1], kind="stable")
        self.nodes = Nodes(cases[deepest_first], excluded[deepest_first])

    def share_done(self) -> float:
        """The share of tuples that are dealt with."""
        free = 64 * self.nodes.excluded.shape[1] - np.bitwise_count(self.nodes.excluded).sum(axis=1, dtype=np.int64)
        kinds, counts = np.unique(np.stack([free, self.size - self.nodes.cases[:, -1]]), axis=1, return_counts=True)
        left = sum(math.comb(int(n), int(k)) * int(count) for (n, k), count in zip(kinds.T, counts, strict=True))
        return 1 - left / math.comb(self.n_selectable, self.size)


class _Proof:
    """One run: the searchers, the cuts they share, the incumbent, and what is proved. All values in scaled units."""

    def __init__(self, problem: Problem, method: Exact, budget: Budget) -> None:
        self.problem, self.method, self.budget = problem, method, budget
        self.wants_ranking = method.top is not None or method.all_optimal
        self.cases, n_required = _cases_to_search(problem, everything=self.wants_ranking)
        self.game = _scaled_game(problem, self.cases)
        n_cases, n_policies = self.game.results.shape
        self.margin = max(budget.gap / problem.unit, MARGIN)
        self.plan = Plan(
            size=problem.size,
            n_selectable=n_cases - n_required,
            n_required=n_required,
            most_rows=min(problem.n_chosen + EXTENSION, n_cases),
            margin=self.margin,
            slack=SLACK,
            tolerance=TOLERANCE,
            call_cost=300.0 + n_policies * (0.3 * problem.n_chosen + 3.0) + 20.0 * self.game.most_chosen,
            step_cost=60.0,
        )
        self.n_words = (n_cases + 63) // 64
        self.own_room = OWN_RECORDS if method.certificate else OWN_CUTS
        self.kept_room = max(2 * self.own_room, min(KEPT_CUTS, KEPT_BYTES // (8 * n_cases)))
        places = self.kept_room + SEARCHERS * self.own_room
        self.cuts = Cuts(np.empty((places, n_cases)), np.empty((places, self.n_words), np.uint64))
        self.stop = np.zeros(1, np.int64)
        self.kept = 0
        self.kept_uses = np.zeros(self.kept_room, np.int64)
        self.limit_of_kept = math.inf
        self.by_policy = np.ascontiguousarray(self.game.results.T)
        self.searchers: list[Search] = []
        self.floor = max(problem.loss.pieces.minimum() / problem.unit, -1.0)
        self.bound = self.floor
        self.best: tuple[float, tuple[int, ...], FloatArray] = (math.inf, (), np.empty(0))
        self.reported: dict[tuple[int, ...], tuple[float, FloatArray]] = {}
        self.records: list[CertificateCut] = []
        self.leaves = self.nodes = self.learned = 0
        self.work = 0.0
        self.share_done = 0.0
        self.is_complete = False
        self.unresolved = math.inf
        self.closed: dict[tuple[int, ...], float] = {}  # tuples that were found, and so have no cut of their own
        self.told = time.monotonic()

    def warm_up(self) -> None:
        """Have the kernels compiled, or loaded, by settling the first tuple there is."""
        first = self._searcher(0)
        if self.method.certificate:
            self._give_room(first, 0)
        else:
            first.counts[[OWN_START, OWN_END]] = 0, self.kept_room
        self._explore_alone(self._only(tuple(range(self.plan.size))), math.inf)
        write_hits(0, 0, 0.0, self.cuts)

    def run(self) -> Limit | None:
        """Search, and return the limit that ended it early, if any."""
        front = _Front(self.plan, self.n_words)
        limit = self._begin(front)
        if limit is None and not front.is_done:
            with ThreadPoolExecutor(self.method.threads or available_cores()) as pool:
                try:
                    limit = self._search_and_climb(front, pool)
                finally:
                    self.stop[0] = 1
        if front.is_done:
            proved = min(self._threshold(), self.best[0]) - SLACK
            self.bound = max(self.bound, min(proved, front.unresolved))
            self.unresolved = front.unresolved
            limit = None
        self.is_complete, self.share_done = front.is_done, front.share_done()
        return limit

    # The stages of a run

    def _begin(self, front: _Front) -> Limit | None:
        """One searcher finds a good test by exchanging single cases, and then searches the tree for a while."""
        before = math.inf
        while self.best[0] < before:
            before = self.best[0]
            limit = self._finish_alone(self._neighbours(self.best[1]))
            if limit is not None:
                return limit
        if self._threshold() <= self.floor:
            front.gather([_some_of(front.nodes, slice(0))])  # no test can be better
        elif not (self.wants_ranking or self.method.certificate):
            front.gather([self._explore_alone(front.nodes, ALONE)])
            front.unresolved = float(self.searchers[0].levels[UNRESOLVED])
        self._keep_cuts()
        return None

    def _finish_alone(self, nodes: Nodes) -> Limit | None:
        """Have the first searcher search below all of these nodes."""
        while len(nodes.cases):
            limit = self.budget.reached()
            if limit is not None:
                return limit
            nodes = self._explore_alone(nodes, ALONE)
            counts = self.searchers[0].counts
            if counts[LEARNED] + 1 >= counts[OWN_END] - counts[OWN_START]:
                self._keep_cuts()
                self._give_room(self.searchers[0], 0)
        return None

    def _explore_alone(self, nodes: Nodes, work: float) -> Nodes:
        """Have the first searcher search below these nodes, and take what it finds; what is left to do."""
        first = self.searchers[0]
        first.levels[UNRESOLVED] = math.inf
        order = self._sorted_cuts(float(first.levels[LIMIT]))
        begun = explore(nodes, order, work, True, self.plan, self.game, first)
        self._count(first)
        if first.counts[ADOPTED]:
            self._take(first.found_cases[0], first.found_weights[0])
        left = _left_by(first)
        rest = _some_of(nodes, slice(begun, None))
        return Nodes(np.concatenate([left.cases, rest.cases]), np.concatenate([left.excluded, rest.excluded]))

    def _only(self, chosen: tuple[int, ...]) -> Nodes:
        """The node of this tuple alone: it lacks its last case, and nothing else may take the place."""
        return self._lacking_one([chosen[:-1]], [~_set_of(chosen[-1:], self.n_words)])

    def _neighbours(self, chosen: tuple[int, ...]) -> Nodes:
        """For each case of the tuple, the node that lacks it: any case outside the tuple may take its place."""
        excluded = ~_set_of(range(self.plan.n_selectable), self.n_words) | _set_of(chosen, self.n_words)
        partial = [chosen[:place] + chosen[place + 1 :] for place in range(len(chosen))]
        return self._lacking_one(partial, [excluded] * len(partial))

    def _lacking_one(self, partial_tuples: list[tuple[int, ...]], excluded: list[WordArray]) -> Nodes:
        cases = np.full((len(partial_tuples), self.plan.size + 1), self.plan.size - 1, dtype=np.int64)
        cases[:, : self.plan.size - 1] = partial_tuples
        return Nodes(cases, np.array(excluded))

    def _search_and_climb(self, front: _Front, pool: ThreadPoolExecutor) -> Limit | None:
        """Search for better tests; after every round, climb for a bound with half of its work."""
        work = FIRST_ROUND
        ladder = _Ladder()
        while True:
            limit = self._advance(front, None, work, pool)
            if limit is not None or front.is_done:
                return limit
            limit = self._climb(ladder, work / 2, pool)
            if limit is not None or (self.best[0] - self.bound <= self.margin and not self.wants_ranking):
                return limit
            work *= 2

    def _climb(self, ladder: "_Ladder", work: float, pool: ThreadPoolExecutor) -> Limit | None:
        """Prove higher and higher bounds by searching below thresholds under the incumbent, as far as the work goes."""
        before = self.work
        while True:
            rung = ladder.next_rung(self)
            if rung is None:
                return None
            front, threshold = rung
            limit = self._advance(front, threshold, work - (self.work - before), pool)
            if limit is not None:
                return limit
            if front.is_done:
                self.bound = max(self.bound, min(threshold - SLACK, front.unresolved))
            elif self.best[0] >= threshold:
                ladder.tire()
                return None

    def _advance(self, front: _Front, rung: float | None, work: float, pool: ThreadPoolExecutor) -> Limit | None:
        """Take turns until the work is spent, the front is done, or the incumbent has fallen below the rung."""
        before, turn = self.work, SHORTEST_TURN
        while not front.is_done and self.work - before < work and (rung is None or self.best[0] >= rung):
            limit = self._take_turns(front, self._threshold() if rung is None else rung, turn, pool)
            if limit is not None:
                return None if front.is_done else limit
            turn = min(2 * turn, LONGEST_TURN)
            self._tell(front if rung is None else None)
        return None

    def _take_turns(self, front: _Front, threshold: float, turn: float, pool: ThreadPoolExecutor) -> Limit | None:
        """Every searcher has a turn; then all is put together, in their order."""
        order = self._sorted_cuts(threshold - SLACK)
        hands = front.deal(SEARCHERS)
        futures = []
        for i, hand in enumerate(hands):
            searcher = self._searcher(i)
            self._give_room(searcher, i)
            searcher.levels[:] = threshold, threshold - SLACK, math.inf
            futures.append(pool.submit(explore, hand, order, turn, False, self.plan, self.game, searcher))
        limit, pending = None, set(futures)
        while pending:
            _, pending = wait(pending, timeout=POLL_SECONDS)
            limit = limit or self.budget.reached()
            if limit is not None:
                self.stop[0] = 1
        parts = []
        for searcher, hand, future in zip(self.searchers, hands, futures, strict=True):
            parts += [_left_by(searcher), _some_of(hand, slice(future.result(), None))]
            front.unresolved = min(front.unresolved, float(searcher.levels[UNRESOLVED]))
            self._count(searcher)
            self._take_found(searcher)
        front.gather(parts)
        self._keep_cuts()
        return limit

    # Cuts

    def _searcher(self, i: int) -> Search:
        while len(self.searchers) <= i:
            capacity = min(self.method.top or OWN_CUTS, OWN_CUTS) if self.wants_ranking else 1
            records = self.own_room if self.method.certificate else 0
            self.searchers.append(
                make_search(self.game, self.plan, self.cuts, self.by_policy, capacity, records, self.stop)
            )
        return self.searchers[i]

    def _give_room(self, searcher: Search, i: int) -> None:
        """Give the i-th searcher an empty stretch of its own for what it learns and finds."""
        start = self.kept_room + i * self.own_room
        searcher.counts[[OWN_START, OWN_END, LEARNED, FOUND]] = start, start + self.own_room, 0, 0

    def _keep_cuts(self) -> None:
        """Move the cuts that were learned to those that are kept; where there is no room, the least used ones go."""
        self.kept_uses //= 2
        for searcher in self.searchers:
            self.kept_uses[: self.kept] += searcher.uses[: self.kept]
            learned, first = int(searcher.counts[LEARNED]), int(searcher.counts[OWN_START])
            own_uses = searcher.uses[first : first + learned].copy()
            searcher.uses[:] = 0
            searcher.counts[LEARNED] = 0
            if self.kept + learned > self.kept_room:
                self._forget()
            places = slice(self.kept, self.kept + learned)
            self.cuts.values[places] = self.cuts.values[first : first + learned]
            self.kept_uses[places] = own_uses
            self.kept += learned
            self.learned += learned
            if self.method.certificate:
                spread = float(np.ptp(self.problem.results)) or 1.0
                for tail_weights, pulls in searcher.record[:learned]:
                    self.records.append(CertificateCut.from_dense(tail_weights, pulls * (self.problem.unit / spread)))
        self.limit_of_kept = math.nan

    def _forget(self) -> None:
        """Keep the more used half of the cuts."""
        kept = np.sort(np.argsort(-self.kept_uses[: self.kept], kind="stable")[: self.kept_room // 2])
        self.cuts.values[: len(kept)] = self.cuts.values[kept]
        self.kept_uses[: len(kept)] = self.kept_uses[kept]
        self.kept = len(kept)

    def _sorted_cuts(self, limit: float) -> IntArray:
        """The cuts that are kept, those that most cases avoid first, with their hits brought up to this limit."""
        if not self.kept:
            return np.empty(0, dtype=np.int64)
        if limit != self.limit_of_kept:
            write_hits(0, self.kept, limit, self.cuts)
            self.limit_of_kept = limit
        sizes = np.bitwise_count(self.cuts.hit[: self.kept]).sum(axis=1, dtype=np.int64)
        return np.argsort(sizes, kind="stable").astype(np.int64)

    # Tests

    def _take(self, cases: IntArray, weights_and_value: FloatArray) -> None:
        """Note a test that was found. The weights of the required cases come first."""
        order, n_required = np.argsort(cases), self.plan.n_required
        value, key = float(weights_and_value[-1]), tuple(cases[order].tolist())
        weights = np.concatenate([weights_and_value[:n_required], weights_and_value[n_required:-1][order]])
        if (value, key) < self.best[:2]:
            self.best = (value, key, weights)
        self.closed[key] = value
        if self.wants_ranking:
            self.reported[key] = (value, weights)

    def _take_found(self, searcher: Search) -> None:
        for at in range(int(searcher.counts[FOUND])):
            self._take(searcher.found_cases[at], searcher.found_weights[at])
        if self.wants_ranking:
            self._drop_beaten()

    def _drop_beaten(self) -> None:
        """Forget tests that are not among the best any more, and settle ties early where there are too many."""
        threshold = self._threshold()
        self.reported = {cases: entry for cases, entry in self.reported.items() if entry[0] < threshold}
        if len(self.reported) <= MOST_TESTS:
            return
        if self.method.all_optimal:
            raise Unsupported(f"more than {MOST_TESTS:,} sets of test cases are optimal: ask for the best few instead.")
        kept = {test.cases for test in self.tests()}
        self.reported = {cases: entry for cases, entry in self.reported.items() if self._all_cases(cases) in kept}

    def _threshold(self) -> float:
        """What a tuple must be below to be of interest."""
        if self.method.all_optimal:
            return self.best[0] + 2 * MARGIN
        if self.method.top is not None:
            wanted = min(self.method.top, self.problem.n_tuples)
            if len(self.reported) < wanted:
                return math.inf
            values = np.array([value for value, _ in self.reported.values()])
            return float(np.partition(values, wanted - 1)[wanted - 1]) + 2 * MARGIN
        return self.best[0] - self.margin

    def _all_cases(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """The problem's own positions of the required cases and of these chosen ones, ascending."""
        return tuple(sorted([*self.problem.required_cases, *self.cases[list(chosen)].tolist()]))

    def tests(self) -> tuple[EfficientTest, ...]:
        """The answer, and where a ranking is wanted the tests after it."""
        if not self.wants_ranking:
            return (self._make_test(self.best[1], self.best[2]),)
        weights = {cases: weights for cases, (_, weights) in self.reported.items()} or {self.best[1]: self.best[2]}
        tie_breaker = _TieBreaker(self.problem, self.cases, self.plan)
        tests = [tie_breaker.improve(self._make_test(cases, weights[cases])) for cases in weights]
        return tuple(ranked.test for ranked in rank_tests(self.problem, tests)[: self.method.top])

    def _make_test(self, chosen: tuple[int, ...], weights: FloatArray) -> EfficientTest:
        cases = [*self.problem.required_cases, *self.cases[list(chosen)].tolist()]
        return self.problem.test(cases=cases, weights=weights / weights.sum())

    def make_certificate(self) -> Certificate:
        """The cuts that rule out every tuple; those that were reported meanwhile get theirs now."""
        threshold = self._threshold() if self.is_complete else self.bound + SLACK
        exceptions = {cases for cases, value in self.closed.items() if value < threshold}
        self._rule_out(self.closed.keys() - exceptions, threshold)
        return Certificate(
            bound=float(min(threshold - SLACK, self.unresolved) * self.problem.unit),
            cuts=tuple(self.records),
            exceptions=tuple(sorted(self._all_cases(cases) for cases in exceptions)),
        )

    def _rule_out(self, tuples: set[tuple[int, ...]], threshold: float) -> None:
        """Learn a cut for each of these tuples, all of which are above the threshold by now."""
        self.stop[0] = 0
        first = self.searchers[0]
        first.levels[:] = threshold, threshold - SLACK, math.inf
        for cases in sorted(tuples):
            self._give_room(first, 0)
            self._explore_alone(self._only(cases), math.inf)
            self._keep_cuts()

    # Reckoning

    def _count(self, searcher: Search) -> None:
        self.leaves += int(searcher.counts[LEAVES])
        self.nodes += int(searcher.counts[NODES])
        self.work += spent(self.plan.call_cost, self.plan.step_cost, searcher.counts, searcher.room.state)

    @property
    def calls(self) -> int:
        """How often the antagonist was asked."""
        return sum(int(searcher.room.state[CALLS]) for searcher in self.searchers)

    def _tell(self, front: _Front | None) -> None:
        """Tell how far the run is, now and then."""
        if time.monotonic() - self.told < TELL_SECONDS:
            return
        self.told = time.monotonic()
        if front is not None:
            self.share_done = front.share_done()
        total, unit = self.problem.n_tuples, self.problem.unit
        self.budget.tell(
            Progress(
                done=int(self.share_done * total),
                total=total,
                objective=self.best[0] * unit,
                lower_bound=float(self.bound * unit),
            )
        )


class _TieBreaker:
    """Of the weights that are optimal for a set of cases, finds those with the least mean loss.

    It adds a little of the mean to the measure. Where the little is too much, so that the objective suffers, it takes a
    hundredth of it, and in the end none.
    """

    def __init__(self, problem: Problem, cases: IntArray, plan: Plan) -> None:
        self.problem, self.plan = problem, plan
        self.place_of = {case: place for place, case in enumerate(cases.tolist())}
        self.games = [
            _scaled_game(replace(problem, measure=Mixture([(1 - share, problem.measure), (share, Mean())])), cases)
            for share in MEAN_SHARES
        ]

    def improve(self, test: EfficientTest) -> EfficientTest:
        """The same cases with weights that are no worse, and better on average if there are such."""
        allowed = self.problem.objective(test) + MARGIN / 4 * self.problem.unit
        for game in self.games:
            room = make_tuple_game(game, self.plan.most_rows)
            for row, case in enumerate(test.cases):
                place_row(row, self.place_of[case], game.results, room)
            settle(len(test.cases), math.inf, -math.inf, TOLERANCE, game, room)
            weights = room.vectors[1, : len(test.cases)]
            improved = self.problem.test(cases=test.cases, weights=weights / weights.sum())
            if self.problem.objective(improved) <= allowed:
                return improved
        return test


class _Ladder:
    """Which threshold under the incumbent to try for next: some way up to it, less where that was too much."""

    def __init__(self) -> None:
        self.front: _Front | None = None
        self.threshold = math.inf
        self.step = FIRST_STEP
        self.tired = False

    def next_rung(self, proof: _Proof) -> tuple[_Front, float] | None:
        """The search to go on with, and its threshold; None when the bound is as good as at the incumbent."""
        low, high = proof.bound, proof.best[0]
        if self.front is not None and self.front.is_done:
            self.step = min(2 * self.step, LONGEST_STEP)
        if self.front is None or self.front.is_done or self.threshold > high:
            if high - low <= CLOSEST_RUNG * abs(high):
                return None
            self.front, self.threshold = _Front(proof.plan, proof.n_words), low + self.step * (high - low)
            self.tired = False
        return self.front, self.threshold

    def tire(self) -> None:
        """Note that a round did not do. After a second one try for less, unless the end is in sight."""
        if self.tired and self.front is not None and self.front.share_done() < 0.5:
            self.front, self.step = None, self.step / 2
        self.tired = not self.tired


def _set_of(cases: Iterable[int], n_words: int) -> WordArray:
    """These cases as a set of bits."""
    bits = sum(1 << case for case in cases)
    return np.frombuffer(bits.to_bytes(8 * n_words, "little"), dtype="<u8").astype(np.uint64)


def _left_by(searcher: Search) -> Nodes:
    """What a searcher has left to do."""
    return _some_of(searcher.left, slice(int(searcher.counts[LEFT])))


def _some_of(nodes: Nodes, places: slice) -> Nodes:
    """Copies of the nodes at these places, laid out one after the other."""
    return Nodes(nodes.cases[places].copy(), nodes.excluded[places].copy())


def _cases_to_search(problem: Problem, *, everything: bool) -> tuple[IntArray, int]:
    """The cases that can be chosen, then the required ones; and how many of these there are.

    Of cases with equal results only the first is needed, as long as enough remain.
    """
    selectable, required = list(problem.selectable_cases), list(problem.required_cases)
    if not everything:
        first_with = {problem.results[case].tobytes(): case for case in [*required, *selectable][::-1]}
        settled = {problem.results[case].tobytes() for case in required}
        distinct = [
            case
            for case in selectable
            if (row := problem.results[case].tobytes()) not in settled and first_with[row] == case
        ]
        spare = [case for case in selectable if case not in set(distinct)]
        selectable = sorted(distinct + spare[: max(0, problem.size - len(distinct))])
    return np.array(selectable + required, dtype=np.int64), len(required)


def _scaled_game(problem: Problem, cases: IntArray) -> Game:
    """The game over these cases, with errors in units of the spread of results and losses in units of the largest.

    Only errors count, so every policy's results and targets may be moved together: to lie around zero, where rounding
    is least.
    """
    game = make_game(problem)
    spread = float(np.ptp(problem.results)) or 1.0
    middle = problem.results.min(axis=0) / 2 + problem.results.max(axis=0) / 2
    pieces = problem.loss.pieces.rescaled(error_unit=spread, value_unit=problem.unit)
    return game._replace(
        results=np.ascontiguousarray((problem.results[cases] - middle) / spread),
        targets=(game.targets - middle[game.scenario_policies]) / spread,
        low_targets=(game.low_targets - middle) / spread,
        high_targets=(game.high_targets - middle) / spread,
        knots=pieces.knots,
        coefficients=pieces.coefficients,
    )
