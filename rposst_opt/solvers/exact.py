r"""The proved optimum over all tuples, for every measure, every convex loss and every finite Ψ of this package.

**Cuts.** The antagonist's answer at any weights w⁰ gives numbers c_x, one per test case, with

.. math:: \rho(w) \ge \sum_x w_x c_x \quad\text{for every } w \text{ on the simplex}

(`Problem.cut`: the objective is convex, so it lies above its tangents). Any mixture of cuts is a cut. Hence, with v(R)
the least objective of weights on a set of cases R,

.. math:: v(R) \ge \min_{x \in R} c_x \qquad (\star)

and by linear programming duality the best mixture attains it: max over mixtures of min_{x∈R} c_x = v(R). Column
generation finds that mixture together with the optimal weights (`rposst_opt.solvers.kernels.tuple_game`).

**Hitting sets.** Fix a threshold θ. A cut rules out, by (★), every tuple on which it is at least θ. What is left must
*hit* the cut: contain a member of H_c = {x : c_x < θ}. So

    a tuple with v(τ) < θ hits every H_c.                                                                (1)

Depth-first over partial tuples S, with a set E of excluded cases: take the cut not hit by S with the fewest members
outside E, and branch on those members, excluding each from the branches after it. By (1) every tuple of the subtree
(S ⊆ τ, τ ∩ E ⊆ S) below θ is in exactly one branch; if no member is left, there is none. If S hits all cuts known, then
either v(S) ≥ θ, and the best mixture for S is a new cut, at least θ on all of S, that S does not hit; or v(S) < θ, and
all cases outside E are branched on. When one case is lacking, the candidates are the intersection of all H_c not yet
hit; each of them is settled: below θ, and it is a test to report; or not, and its cut may rule out other candidates
too. A new cut is first extended: while some superset R ⊃ τ has v(R) ≥ θ, the mixture for R rules out more. Each step
goes on from the basis of the one before. Cuts reach a few cases farther than their tuple, and as far as they go where
that saves settling the cases that are left; in long searches they are widened for use elsewhere in the tree too, where
that turns out to pay (`solvers.kernels.learning`, `solvers.widening`).

The tree is finite and each leaf is settled, so in the end **every tuple that was not reported has v ≥ θ.**

**The proof of optimality** is this search with θ just below the incumbent U (by `MARGIN`); whenever a tuple below θ
turns up it becomes the incumbent, θ falls, and every cut rules out more than before, so nothing needs to be searched
again. **An anytime bound** is this search with a lower θ, which is much quicker: it proves that no test is below θ. In
long runs thresholds are climbed alongside, up to half of the way to U at a time, with most of the work as long as the
end of the search below U is not in sight. **The best K tuples** come from θ just above the K-th best value found so
far.

**Some of the work goes elsewhere.** Once the search takes longer than it takes to look there, the linear relaxation
(`solvers.relaxation`) gives a bound to climb from, and a local search (`solvers.local_search`) tests to be better than.
Where the relaxation proves nothing, what so few cases cannot tell apart may, with weights that none of them has more of
in a good test (`solvers.told_apart`, `solvers.most_weights`).
They make no difference to a proved answer, and for hard problems all the difference to an early one. So they have a
tenth of the work where the search is seen to come to its end, and most of it where it is not (`solvers.besides`).

Rounding: a tuple counts as ruled out if a cut is above θ less `SLACK`, a thousandfold of what rounding does to cuts in
these units, and the bound that is reported is θ less `SLACK`. Test cases with equal results are searched once, unless
all tuples are asked for: exchanging them changes no objective, and having both is no better than having one. With noise
that is not so, and every case is searched; nor where rules tell cases with equal results apart.

**Rules about the choice** leave sets out: a budget, quotas, conflicts. A case that a partial tuple cannot be continued
with is excluded below it (`rposst_opt.solvers.kernels.choice_rules`), and everything else stays as it is: (1) is true
of all tuples, and so of those that keep the rules. The relaxation knows no rules, so its bound is true with them. Where
the number of cases is not fixed, there is a search for each number, whose tests must be better than those before.

**Several threads, one answer.** Searchers take turns that are measured in work, not in time
(`rposst_opt.solvers.searchers`). So every run is the same with any number of threads, until a limit of time ends it.
First there is one, then a pair, and in long searches there are eight: the more there are, the more of them learn the
same.
"""

# Long because the proof of the method stands beside it.
import math
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rposst_opt.certificate import Certificate
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Progress
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError, Unsupported
from rposst_opt.problem import Need, Problem
from rposst_opt.solvers.answers import as_tests
from rposst_opt.solvers.besides import Besides
from rposst_opt.solvers.cluster import Cluster, reached_at
from rposst_opt.solvers.front import Front
from rposst_opt.solvers.kernels.compiling import compile_from_now_on, load_from_now_on
from rposst_opt.solvers.kernels.problem_arrays import scaled_problem_arrays
from rposst_opt.solvers.kernels.search_state import NEVER, Plan, work_of
from rposst_opt.solvers.ladder import Ladder
from rposst_opt.solvers.prospect import Prospect
from rposst_opt.solvers.relaxation import least_loss, least_noise
from rposst_opt.solvers.remote_searchers import Crew
from rposst_opt.solvers.running import Run, available_cores, check_counts, running
from rposst_opt.solvers.searched_cases import as_searched, cases_to_search, cuts_as_stated, first_choice, searched_rules
from rposst_opt.solvers.searchers import OWN_CUTS, FoundTest, Searchers
from rposst_opt.solvers.several_proofs import Proved, solve_in_parts
from rposst_opt.solvers.ties import tied_tests

# In units of the largest loss there can be:
MARGIN = 1e-10  # a test must be better than the incumbent by this; tests within it are ties
SLACK = 4e-12  # rounding of cuts
TOLERANCE = 1e-12  # to which one tuple is solved

REACH, MOST_MORE = 2, 31  # cases more than a tuple has that a cut is made for, in any case and at most
ROUGHNESS = 0.2  # of exchanging cases at first: the least gain that counts, and the share of it that may be left
MOST_TESTS = 20_000  # that may be tied for the best before we refuse to list them

# Work, in nanoseconds by a rough count:
START_TURN, LONGEST_START = 2e7, 5e7  # by exchanging single cases: a local search is better at it
ALONE = 1e6  # then one searcher begins with the tree: many problems are done before another could help,
PAIRED, PAIRS_TURN = 1e8, 4e6  # and two go on, who learn little twice
MOST_INTERPRETED = 5e4  # a question to the antagonist that is dearer takes too long when it is interpreted
MOST_TUPLES_INTERPRETED = 3_000_000  # where there are more, compiling at once is sooner done,
MOST_LOSSES_INTERPRETED = 5_000  # and of all tuples in all scenarios, loading what was compiled before
SHORTEST_TURN, LONGEST_TURN = 1e6, 2e7
WIDENED_AFTER = 3e7  # cuts are widened: a problem that takes no longer is solved before that could pay
FIRST_ROUND = 1e8  # then a lower bound is climbed for, with this share of a round's work,
CLIMBING_SHARE = 0.5
HOPELESS, HOPELESS_CLIMBING_SHARE = 10.0, 4.0  # or this where so many times as much work is left as was done
TELL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Exact:
    """The proved optimum, by cuts and hitting sets.

    The answer is a function of the problem. Of the sets of cases within 2e-10 of the largest loss from the best it is
    the one with the least mean loss, then with fewer cases whose results another of them has too, then the first by
    position (`solvers.ties`); its weights have the least mean loss among the optimal ones, then the least sum of
    squares (`solvers.canonical`). On any machine the cases are the same, the weights within 1e-7 (where the objective
    hardly grows beside its optimum 1e-6, with curved losses or noise 1e-4) and the objective within 1e-9 of the largest
    loss. Not so where a limit or a gap ended the run early, where weights have limits, and where
    ``Solution.one_of_many`` says that the ties were too many to be looked through.

    Parameters
    ----------
    top : int, optional
        Also the best `top` tuples, in ``Solution.ranking``: by objective, then (within 1e-9 of the largest loss there
        can be) by the lower mean loss, then as above. The first of the ranking is the answer.
    all_optimal : bool
        Also all tuples that are as good as the best, ranked likewise.
    certificate : bool
        Also the cuts that prove the bound, in ``Solution.certificate``.
    threads : int, optional
        All cores by default; the answer is the same with any number.
    scheduler : str, optional
        The address of a Dask cluster, whose workers go on with a long search; the answer is the same.
    """

    top: int | None = None
    all_optimal: bool = False
    certificate: bool = False
    threads: int | None = None
    scheduler: str | None = None

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
        parts = problem.needs & {Need.ANY_NUMBER, Need.WEIGHT_LIMITS}
        if parts and (self.top is not None or self.all_optimal):
            raise Unsupported("rankings are of sets of a fixed number of cases, with weights that have no limits.")
        with running(budget) as run, reached_at(self.scheduler) as cluster:
            prove = _Prover(self, budget, run, cluster)
            return solve_in_parts(problem, prove, budget) if parts else prove(problem).candidate


class _Prover:
    """Makes proofs, one after the other, within one run."""

    def __init__(self, method: Exact, budget: Budget, run: Run, cluster: Cluster | None) -> None:
        self.method, self.budget, self.run, self.cluster = method, budget, run, cluster
        self.is_ready = False

    def __call__(self, problem: Problem, *, below: float = math.inf, top: int | None = None) -> Proved:
        """What comes of one proof; only the first one's getting ready is not counted against the limit of time."""
        method = self.method if top is None else replace(self.method, top=top)
        with nullcontext() if self.is_ready else self.run.getting_ready():
            self.is_ready = True
            proof = _Proof(problem, method, self.budget, self.cluster, below / problem.unit)
            proof.settle_first_tuple()
        limit = proof.run()
        certificate = proof.make_certificate() if method.certificate and limit is None else None
        tests, one_of_many = proof.tests() if proof.best.cases else ((), False)
        if tests:
            proof.tell()
        candidate = Candidate(
            test=tests[0] if tests else None,
            lower_bound=float(proof.bound * problem.unit),
            ranking=tests if proof.wants_ranking else (),
            certificate=certificate,
            limit=limit,
            one_of_many=one_of_many,
            stats=self.run.stats(
                tuples=int(proof.share_done * problem.n_tuples),
                solved=proof.searchers.leaves,
                rounds=proof.searchers.calls,
                nodes=proof.searchers.nodes,
                cuts=proof.searchers.learned,
                share_done=proof.prospect.share,
                **proof.besides.stats(proof.searchers.work),
            ),
        )
        return Proved(candidate, float(proof.besides.bound * problem.unit))


class _Proof:
    """One run: the incumbent, what was found, and what is proved. All values are in the scaled arrays' units."""

    def __init__(
        self, problem: Problem, method: Exact, budget: Budget, cluster: Cluster | None = None, below: float = math.inf
    ) -> None:
        self.problem, self.method, self.budget = problem, method, budget
        self.threads = method.threads or available_cores()
        self.wants_ranking = method.top is not None or method.all_optimal
        has_noise = Need.NOISE in problem.needs
        self.cases, n_required = cases_to_search(
            problem, everything=self.wants_ranking or has_noise or problem.rules.choose
        )
        arrays = scaled_problem_arrays(problem, self.cases)
        n_cases = len(arrays.results)
        call_cost, step_cost = work_of(arrays, problem.n_chosen)
        self.plan = Plan(
            size=problem.size,
            n_selectable=n_cases - n_required,
            n_required=n_required,
            most_rows=min(problem.n_chosen + MOST_MORE, n_cases),
            reach=min(problem.n_chosen + REACH, n_cases),
            widening=NEVER,
            margin=max(budget.gap / problem.unit, MARGIN),
            slack=SLACK,
            tolerance=TOLERANCE,
            call_cost=call_cost,
            step_cost=step_cost,
        )
        if self.plan.call_cost > MOST_INTERPRETED or problem.n_tuples > MOST_TUPLES_INTERPRETED:
            compile_from_now_on()
        elif problem.n_tuples * problem.n_scenarios > MOST_LOSSES_INTERPRETED:
            load_from_now_on()
        capacity = min(method.top or OWN_CUTS, OWN_CUTS) if self.wants_ranking else 1
        rules = searched_rules(problem, self.cases)
        self.searchers = Searchers(arrays, self.plan, rules, capacity=capacity, record=method.certificate)
        self.crew = Crew(self.searchers, cluster)
        # That no test has less noise is not a cut, so a certificate cannot rest on it.
        self.floor = least_loss(problem) + (0.0 if method.certificate else least_noise(problem))
        self.bound = self.floor
        self.best = FoundTest(below, (), np.empty(0))  # whatever is found must be better
        self.reported: dict[tuple[int, ...], FoundTest] = {}  # those that a ranking may need
        self.closed: dict[tuple[int, ...], float] = {}  # tuples that were found, and so have no cut of their own
        self.unresolved = math.inf
        self.front, self.prospect = self.searchers.new_front(), Prospect()
        self.is_complete, self.was_cut_short, self.share_done = False, False, 0.0
        self.besides = Besides(problem, budget, method.threads)
        self.told, self.told_value = time.monotonic(), math.inf
        self.told_test: tuple[FoundTest, EfficientTest] | None = None

    def settle_first_tuple(self) -> None:
        """Make the first tuple there is the incumbent; by the way the kernels are compiled, or loaded."""
        if not self.wants_ranking:
            self.searchers.begin_roughly(ROUGHNESS)
        self.searchers.explore_alone(self.searchers.only(first_choice(self.problem, self.cases)), math.inf)
        self._take_found()

    def run(self) -> Limit | None:
        """Search, and return the limit that ended it early, if any."""
        front = self.front
        limit = self._begin(front)
        if limit is None and not front.is_done:
            with ThreadPoolExecutor(self.threads) as pool:
                try:
                    limit = self._search_in_a_pair(front, pool)
                    if limit is None and not front.is_done:
                        limit = self._search_and_climb(front, pool)
                finally:
                    self.searchers.stop[0] = 1
        if not front.is_done and not self.besides.has_begun:
            self._step_besides()  # there was no time for it, but a bound there must be
        if front.is_done:
            proved = min(self._threshold(), self.best.value) - SLACK
            self.bound = max(self.bound, min(proved, front.unresolved))
            self.unresolved = front.unresolved
            limit = None
        if limit is not None:  # and so no certificate, which could not rest on the relaxation
            self.bound = max(self.bound, self.besides.bound)
        else:
            self.prospect.finish()
        self.is_complete, self.share_done = front.is_done, front.share_done()
        return limit

    # The stages of a run

    def _begin(self, front: Front) -> Limit | None:
        """One searcher finds a good test by exchanging single cases, and then begins to search the tree."""
        left, may_help, limit = self.searchers.none_left, True, None
        while may_help and self.searchers.work < LONGEST_START:
            limit = self.budget.reached()
            if limit is not None:
                return limit
            left, may_help = self.searchers.exchange_alone(left, START_TURN)
            self._take_found()
        self.searchers.set_threshold(self._threshold())
        if self._threshold() <= self.floor:
            front.close()  # no test can be better
        elif self._may_adopt:
            self.searchers.advance_alone(front, ALONE)
            self._look_ahead()
            self._take_found()
        self.searchers.keep_cuts()
        return self.budget.reached()

    @property
    def _may_adopt(self) -> bool:
        """Whether a searcher may take what it finds for its threshold and go on."""
        return not (self.wants_ranking or self.method.certificate)

    def _search_in_a_pair(self, front: Front, pool: ThreadPoolExecutor) -> Limit | None:
        """Have two searchers search the tree as long as the rounds would be too short for more of them."""
        second_thread = pool if self.threads > 1 else None
        while self._may_adopt and not front.is_done and self.searchers.work < PAIRED:
            limit = self.budget.reached()
            if limit is not None:
                return limit
            if self.searchers.work >= WIDENED_AFTER:
                self.searchers.widen_from_now_on()
            self.searchers.take_turns_in_a_pair(front, self._threshold(), PAIRS_TURN, second_thread)
            self._look_ahead()
            self._take_found()
        return None

    def _search_and_climb(self, front: Front, pool: ThreadPoolExecutor) -> Limit | None:
        """Search for better tests; after every round, climb for a bound, with more work where the search has no end."""
        work = FIRST_ROUND
        ladder = Ladder()
        self.searchers.widen_from_now_on()
        while True:
            limit = self._advance(front, None, work, pool)
            if limit is None and not front.is_done:
                is_hopeless = self.prospect.left > HOPELESS * self.searchers.work
                share = HOPELESS_CLIMBING_SHARE if is_hopeless else CLIMBING_SHARE
                limit = self._climb_the_ladder(ladder, share * work, pool)
            is_near = self.best.value - self.bound <= self.plan.margin and not self.wants_ranking
            if limit is not None or front.is_done or is_near:
                return limit
            work *= 2

    def _look_elsewhere(self) -> None:
        """Go on with the linear relaxation and with a local search, as far as the search's prospect has it."""
        while not self.front.is_done and self.besides.may_go_on(self.crew.work_alone, self.front.closed):
            if not self._step_besides():
                return
            self._look_ahead()
            self._tell(None)

    def _look_ahead(self) -> None:
        """Guess again how much of the search is left."""
        self.prospect.note(float(self.searchers.work) + self.besides.work, self.front.closed)

    def _step_besides(self) -> bool:
        """One step of the relaxation or of the local search, and what came of it; whether there was one."""
        before = self.besides.climb.best
        is_step = self.besides.step()
        if not self.method.certificate:  # which rests on cuts of the search alone
            self.bound = max(self.bound, self.besides.bound)
        found = self.besides.climb.best
        if found is not before and found.value < self._threshold():
            self.searchers.try_tuple(as_searched(self.problem, self.cases, found.rows), self._threshold())
            self._take_found()
        if self._threshold() <= self.bound:
            self.front.close()  # no test can be better
            self.was_cut_short = True
        return is_step

    def _climb_the_ladder(self, ladder: Ladder, work: float, pool: ThreadPoolExecutor) -> Limit | None:
        """Prove higher and higher bounds by searching below thresholds under the incumbent, as far as the work goes."""
        end = self.searchers.work + work
        while True:
            rung = ladder.next_rung(self.bound, self.best.value, self.searchers.new_front)
            if rung is None:
                return None
            front, threshold = rung
            limit = self._advance(front, threshold, end - self.searchers.work, pool)
            if limit is not None:
                return limit
            if self.front.is_done:
                return None
            if front.is_done:
                self.bound = max(self.bound, min(min(threshold, self.best.value) - SLACK, front.unresolved))
            elif self.best.value >= threshold:
                ladder.note_failure()
                return None

    def _advance(self, front: Front, rung: float | None, work: float, pool: ThreadPoolExecutor) -> Limit | None:
        """Take turns until the work is spent, the front is done, or the incumbent has fallen below the rung."""
        end, turn = self.searchers.work + work, SHORTEST_TURN
        while not front.is_done and self.searchers.work < end and (rung is None or self.best.value >= rung):
            threshold = self._threshold() if rung is None else rung
            limit = self.crew.take_turns(front, threshold, turn, end - self.searchers.work, pool, self.budget.reached)
            self._look_ahead()
            self._take_found()
            if limit is not None:
                return None if front.is_done else limit
            turn = min(2 * turn, LONGEST_TURN)
            self._look_elsewhere()
            self._tell(front if rung is None else None)
        return None

    # Tests

    def _take_found(self) -> None:
        """Note what the searchers have found."""
        for test in self.searchers.found:
            self.best = min(self.best, test, key=lambda one: (one.value, one.cases))
            self.closed[test.cases] = test.value
            if self.wants_ranking:
                self.reported[test.cases] = test
        self.searchers.found.clear()
        if self.wants_ranking:
            self._drop_beaten()
        self._tell(None)

    def _drop_beaten(self) -> None:
        """Forget tests that are not among the best any more, and settle ties early where there are too many."""
        threshold = self._threshold()
        self.reported = {cases: test for cases, test in self.reported.items() if test.value < threshold}
        if len(self.reported) <= MOST_TESTS:
            return
        if self.method.all_optimal:
            raise Unsupported(f"more than {MOST_TESTS:,} sets of test cases are optimal: ask for the best few instead.")
        kept = {test.cases for test in self.tests()[0]}
        self.reported = {cases: test for cases, test in self.reported.items() if self._all_cases(cases) in kept}

    def _threshold(self) -> float:
        """What a tuple must be below to be of interest."""
        if self.method.all_optimal:
            return self.best.value + 2 * MARGIN
        if self.method.top is not None:
            wanted = min(self.method.top, self.problem.n_tuples)
            if len(self.reported) < wanted:
                return math.inf
            return sorted(test.value for test in self.reported.values())[wanted - 1] + 2 * MARGIN
        return self.best.value - self.plan.margin

    def _all_cases(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """The problem's own positions of the required cases and of these chosen ones, ascending."""
        return tuple(sorted([*self.problem.required_cases, *self.cases[list(chosen)].tolist()]))

    def tests(self) -> tuple[tuple[EfficientTest, ...], bool]:
        """The answer, and where a ranking is wanted the tests after it; and whether the answer is just one of many."""
        if self.wants_ranking:
            found, one_of_many = list(self.reported.values()) or [self.best], not self.is_complete
        elif self.is_complete and not self.budget.gap:
            found, one_of_many = tied_tests(
                self.crew, self.best, 2 * MARGIN, self.budget.reached, cut_short=self.was_cut_short
            )
        else:
            found, one_of_many = [self.best], True
        most = None if self.method.all_optimal else self.method.top or 1
        return as_tests(self.problem, self.cases, self.searchers.arrays, found, most), one_of_many

    def make_certificate(self) -> Certificate:
        """The cuts that rule out every tuple; those that were found meanwhile get theirs now."""
        threshold = self._threshold() if self.is_complete else self.bound + SLACK
        exceptions = {cases for cases, value in self.closed.items() if value < threshold}
        self.searchers.rule_out(self.closed.keys() - exceptions, threshold)
        return Certificate(
            bound=float(min(threshold - SLACK, self.unresolved) * self.problem.unit),
            cuts=cuts_as_stated(self.problem, self.cases, self.searchers.records),
            exceptions=tuple(sorted(self._all_cases(cases) for cases in exceptions)),
        )

    def _tell(self, front: Front | None) -> None:
        """Tell how far the run is: of every better test, and otherwise now and then."""
        if self.best.value < self.told_value or time.monotonic() - self.told >= TELL_SECONDS:
            self.share_done = self.share_done if front is None else front.share_done()
            self.tell()

    def tell(self) -> None:
        """Tell how far the run is."""
        self.told, self.told_value = time.monotonic(), self.best.value
        self.budget.tell(
            Progress(
                done=int(self.share_done * self.problem.n_tuples),
                total=self.problem.n_tuples,
                objective=self.best.value * self.problem.unit,
                lower_bound=float(max(self.bound, self.besides.bound) * self.problem.unit),
                share=self.prospect.share,
                seconds_left=self.prospect.seconds_left,
                test=self._told_test() if self.budget.is_heard else None,
            )
        )

    def _told_test(self) -> EfficientTest | None:
        """The incumbent with the weights that it was found with; made once for each. None if there is none yet."""
        if not self.best.cases:
            return None
        if self.told_test is None or self.told_test[0] is not self.best:
            cases = [*self.problem.required_cases, *self.cases[list(self.best.cases)].tolist()]
            weights = self.best.weights / self.best.weights.sum()
            self.told_test = self.best, self.problem.test(cases=cases, weights=weights)
        return self.told_test[1]
