r"""Good tests where proof is out of reach: swaps that are priced by cuts, and a bound from the linear relaxation.

With n in the thousands or m in the tens there are too many tuples to rule out. This backend looks for a good one for as
long as it may, and says how far from the best possible it can be at most:

*The bound.* Weights on m cases are weights on all cases, so the optimum over all of them, without a limit on their
number, bounds every test (`solvers.relaxation`). It is closed in on after the first climb. Where m is large enough, the
test found by then often is as good as weights on all cases: then the mixture of cuts that proves its weights may prove
it, and if not, the relaxation has less far to go. Beside an exact search, which has need of it, there is a second bound
(`solvers.told_apart`), for tests of few cases where all of them together would determine the full score.

With noise the relaxation is that of the losses alone, to which the least noise of any test is added: weights on very
many cases have next to none, so a relaxation of both together would say less, and take far longer.

*The starts.* The heaviest cases of the relaxation; and cases added one by one, each time the best one (what iterative
selection does).

Where there are rules about the choice, the start is the heaviest choice that keeps them, and only swaps that keep them
are made.

*The search.* From each start one case is swapped for another as long as that helps (`solvers.kernels.swaps`). Then a
few cases of the best test are swapped at random, and the search goes on from there, again and again.

Eight climbers share the work, each with its own seed and its own cuts, and compare what they have after every kick. So
without a time limit the answer is the same with any number of threads.

*Ties.* Where a search goes depends on prices and weights, and where these are not unique, on the last bits of the data.
So it runs on numbers that are rounded to a grid, and of sets that are equally good the first by position is kept. The
bound, and the weights of the set that is chosen in the end, are worked out from the numbers as they are; the weights
are those that `solvers.canonical` defines.
"""

import math
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Progress
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.feasibility import all_rules, find_choice
from rposst_opt.problem import Need, Problem
from rposst_opt.solvers.canonical import Weigher
from rposst_opt.solvers.climber import DIGITS, IMPROVEMENT, TOLERANCE, Climber, Found, heaviest_first
from rposst_opt.solvers.kernels.cut_mixture import make_cut_mixture
from rposst_opt.solvers.kernels.problem_arrays import rounded_arrays, scaled_problem_arrays
from rposst_opt.solvers.kernels.search_state import LEAF_COST, work_of
from rposst_opt.solvers.kernels.swaps import find_swap, price_cases, settle_rows, try_additions
from rposst_opt.solvers.kernels.tuple_game import CALLS, STEPS, make_tuple_game
from rposst_opt.solvers.relaxation import MOST_CUTS, SLACK, Relaxation, least_loss, least_noise
from rposst_opt.solvers.running import available_cores, check_counts, running
from rposst_opt.solvers.told_apart import ToldApart

# In units of the largest loss there can be: so near to its bound a test is the best, whose value is of rounded numbers.
PROVED = 4e-9

CLIMBERS = 8  # however many threads there are, so that the answer does not depend on them
FIRST_CLIMB_SHARE, RELAXATION_SHARE = 0.4, 0.2  # of the time limit, at most
CUTS_AT_ONCE = 10  # of the relaxation
STEPS_AT_ONCE = 3  # of what cases tell apart; about as much work as a kick of every climber
WORTH_PROVING = 0.02  # of what is not proved of the best test: where less can be, kicks take turns with it
# Beside another search, a step of a bound follows every round of kicks; and once these no longer help, it has so many
# times their work.
LATE_PROOFS = 9.0
FAIR_TRIAL, BEHIND = 5e8, 0.5  # after so much work, what cases tell apart must prove this share of what else is proved
SETS_PER_CUT = 20  # that a climber may settle, for each cut of the relaxation: about as much work as that takes


@dataclass(frozen=True, kw_only=True)
class LocalSearch:
    """A good test by swaps, and a bound from the linear relaxation.

    Without a limit of time the answer is a function of the problem and the options. On any machine the cases are the
    same, the weights within 1e-7 (where the objective hardly grows beside its optimum 1e-6, with curved losses or noise
    1e-4) and the objective within 1e-9 of the largest loss; not so with noise and tens of cases, whose weights are
    found to about 1e-4 of it. The weights are the best of these cases; of several that are equally good those with the
    least mean loss, and of these those with the least sum of squares (`solvers.canonical`).

    Parameters
    ----------
    kicks : int
        It ends after so many kicks of every climber, one after the other, that made nothing better.
    breadth : int
        How many cases, cheapest first, are tried in every place before a test counts as locally best.
    seed : int
        For kicks. The same seed gives the same answer with any number of threads, unless time runs out.
    threads : int, optional
        All cores by default.
    effort : int, optional
        How many sets of cases each climber settles at most, and how long the relaxation may take: a limit that, unlike
        one of time, leaves the answer a function of the problem. None by default.
    """

    kicks: int = 40
    breadth: int = 64
    seed: int = 0
    threads: int | None = None
    effort: int | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(
        method="swaps priced by cuts, from several starts",
        handles=frozenset(Need) - {Need.WEIGHT_LIMITS, Need.ANY_NUMBER},
        finds_optimum=False,
        is_heuristic=True,
        proves="a gap, by the linear relaxation",
        tolerance=1e-9,
        requires=("numba",),
    )

    def __post_init__(self) -> None:
        """Refuse numbers below one."""
        check_counts(kicks=self.kicks, breadth=self.breadth, threads=self.threads, effort=self.effort)

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Bound, construct, climb and kick, as far as the budget allows."""
        with running(budget) as run:
            with run.getting_ready():
                search = Climb(problem, self, budget)
                search.settle_first_tuple()
            limit = search.run()
            test = search.best_test()
        return Candidate(
            test=test,
            lower_bound=float(search.bound * problem.unit),
            limit=limit,
            stats=run.stats(solved=sum(climber.settled for climber in search.climbers), kicks=search.kicks),
        )


class Climb:
    """One run: the climbers, the best test and the bound. All values are in the scaled arrays' units.

    Beside another search, which has most of the time, it does without anchors unless told otherwise, no clock ends its
    relaxation, and it begins with that: who searches needs the bound more than a test.
    """

    def __init__(self, problem: Problem, method: LocalSearch, budget: Budget, *, is_alone: bool = True) -> None:
        self.problem, self.method, self.budget = problem, method, budget
        self.is_alone = is_alone
        self.exact_arrays = scaled_problem_arrays(problem, np.arange(problem.n_cases))
        self.arrays = rounded_arrays(self.exact_arrays)
        self.climbers = [
            Climber(self.arrays, problem, breadth=method.breadth, effort=method.effort, seed=seed)
            for seed in np.random.SeedSequence(method.seed).generate_state(CLIMBERS).tolist()
        ]
        self.bound = least_loss(problem) + least_noise(problem)
        self.best: Found
        self.relaxation = Relaxation(self.exact_arrays, np.array(problem.eligible_cases, dtype=np.int64))
        self.told_apart = ToldApart(problem)
        self.kicks, self.idle = 0, 0  # kicks in all; rounds of them since one made the test better
        self.has_proofs_left = True
        self.limit: Limit | None = None

    def settle_first_tuple(self) -> None:
        """Make the first tuple there is the best test so far; by the way the kernels are compiled, or loaded."""
        climber = self.climbers[0]
        rows = np.array([*self.problem.required_cases, *self._first_choice()])
        self.best = climber.settle(rows)
        allowed = np.empty((0, 0), dtype=np.bool_)
        find_swap(rows, rows[:0], rows[:0], allowed, 0, 0, 0.0, TOLERANCE, self.arrays, climber.workspace)
        try_additions(rows[:0], rows[:0], TOLERANCE, self.arrays, climber.workspace, climber.prices)

    def run(self) -> Limit | None:
        """Bound, climb from every start, and kick until nothing gets better."""
        for _ in self.steps():
            self._tell()
        return None if self._is_proved() else self.limit

    def steps(self) -> Iterator[None]:
        """Bound, climb from every start, and kick, step by step; beside another search, without an end."""
        self.relaxation.play()
        self._take_bound(self.relaxation.bound + least_noise(self.problem))
        yield
        self._take(self._first_climb())
        self._take_bound(self._least_price())
        yield
        self.relaxation.offer(self.best.rows, self.best.weights / self.best.weights.sum())
        yield from self._close_in(0.0 if self.is_alone else WORTH_PROVING)
        with ThreadPoolExecutor(self.method.threads or available_cores()) as pool:
            if not self._is_done() and not self.problem.rules.choose:  # cases added one by one may not keep rules
                self._take(self._climb_from_nothing(self.climbers[0]))
                yield
            proofs = iter(()) if self.is_alone else self._proofs(pool)
            while not (self.is_alone and self._kicks_are_idle) and not self._is_done() and not self._has_done_enough():
                self._kick_all(pool)
                yield
                yield from self._some_of(proofs)

    def _kick_all(self, pool: ThreadPoolExecutor) -> None:
        """Have every climber kick the best test, and climb from there."""
        before = self.best
        self._take_all(pool.map(self._kick_and_climb, self.climbers, [before] * CLIMBERS))
        self.kicks += CLIMBERS
        self.idle = 0 if self.best.value < before.value - IMPROVEMENT else self.idle + 1

    @property
    def _kicks_are_idle(self) -> bool:
        return self.idle >= self.method.kicks

    @property
    def has_come_to_its_end(self) -> bool:
        """Whether neither kicks nor steps of a bound are seen to help any more."""
        return self._kicks_are_idle and not self.has_proofs_left

    @property
    def work(self) -> float:
        """What was done, in nanoseconds by a rough count."""
        return self._work_of_climbing() + self._work_of_proofs()

    def _work_of_climbing(self) -> float:
        states = [climber.workspace.state for climber in self.climbers]
        asked, stepped = sum(int(state[CALLS]) for state in states), sum(int(state[STEPS]) for state in states)
        call_cost, step_cost = work_of(self.arrays, self.problem.n_chosen)
        settled = sum(climber.settled for climber in self.climbers)
        return call_cost * asked + step_cost * stepped + LEAF_COST * settled

    def _work_of_proofs(self) -> float:
        return self.relaxation.work + self.told_apart.work

    def best_test(self) -> EfficientTest:
        """The best cases found, with their best weights."""
        rows, weights = self.best.rows, self.best.weights / self.best.weights.sum()
        return self.problem.test(cases=rows.tolist(), weights=Weigher(self.exact_arrays).weigh(rows, weights))

    def _climb_from_nothing(self, climber: Climber) -> Found:
        """Add cases one by one, and climb from there."""
        return climber.climb(climber.grow(self._out_of_time), self._out_of_time)

    def _kick_and_climb(self, climber: Climber, best: Found) -> Found:
        return climber.climb(climber.settle(climber.kick(best)), self._out_of_time)

    def _take(self, found: Found) -> None:
        is_tie = abs(found.value - self.best.value) <= IMPROVEMENT
        if found.position < self.best.position if is_tie else found.value < self.best.value:
            self.best = found

    def _take_all(self, found: Iterable[Found]) -> None:
        for each in found:  # in the order of the climbers, whoever is done first
            self._take(each)

    def _is_done(self) -> bool:
        return self._is_proved() or self._out_of_time()

    def _is_optimal(self) -> bool:
        return self.best.value - self.bound <= PROVED

    def _is_proved(self) -> bool:
        return self.best.value - self.bound <= max(self.budget.gap / self.problem.unit, PROVED)

    def _has_done_enough(self) -> bool:
        return all(climber.has_done_enough for climber in self.climbers)

    def _out_of_time(self) -> bool:
        if self.limit is None:
            self.limit = self.budget.reached()
        return self.limit is not None

    def _tell(self) -> None:
        if not self.budget.is_heard:
            return
        rows, weights = self.best.rows, self.best.weights / self.best.weights.sum()
        test = self.problem.test(cases=rows.tolist(), weights=weights)
        self.budget.tell(
            Progress(
                done=self.idle,
                total=self.method.kicks,
                unit="rounds without improvement",
                objective=self.problem.objective(test),  # its own value is that on a grid
                lower_bound=self.bound * self.problem.unit,
                test=test,
            )
        )

    def _take_bound(self, bound: float) -> None:
        self.bound = max(self.bound, bound)

    def _first_climb(self) -> Found:
        """Climb from the heaviest cases of the relaxation, for as long as that leaves time for its bound."""
        ends = time.monotonic() + FIRST_CLIMB_SHARE * (self.budget.time_limit_seconds or math.inf)
        climber = self.climbers[0]
        return climber.climb(climber.settle(self._heaviest()), lambda: time.monotonic() > ends or self._out_of_time())

    def _close_in(self, worth: float = 0.0) -> Iterator[None]:
        """Bring the bound as near to the relaxation's value as time allows, step by step, unless it is not needed.

        It ends where the relaxation can prove no more than this share of what is not proved of the best test.
        """
        limit = self.budget.time_limit_seconds if self.is_alone else None
        ends = time.monotonic() + RELAXATION_SHARE * (limit or math.inf)
        programs = MOST_CUTS if self.method.effort is None else self.method.effort // SETS_PER_CUT
        while programs > 0 and time.monotonic() < ends and not self._out_of_time():
            provable = self.relaxation.value - self.relaxation.bound
            if self.relaxation.is_settled or self._is_optimal():
                break
            if provable < worth * (self.best.value - self.relaxation.bound):
                break
            self.relaxation.close_in(CUTS_AT_ONCE, lambda: time.monotonic() > ends)
            self._take_bound(self.relaxation.bound + least_noise(self.problem))
            programs -= CUTS_AT_ONCE
            yield

    def _proofs(self, pool: ThreadPoolExecutor) -> Iterator[None]:
        """Raise the bound, step by step: by the relaxation, and by what so few cases cannot tell apart."""
        yield from self._close_in()
        self.told_apart.limit_weights(self.best.value)
        while self._may_prove_more():
            for _ in range(STEPS_AT_ONCE):
                if not self.told_apart.is_settled:
                    self.told_apart.step(pool.map)
            self._take_bound(self.told_apart.bound + least_noise(self.problem))
            yield

    def _some_of(self, proofs: Iterator[None]) -> Iterator[None]:
        """Go one step on with these proofs; once kicks no longer help, until they have had their share of the work."""
        share = LATE_PROOFS if self._kicks_are_idle else 0.0
        for _ in proofs:
            yield
            if self._is_done() or self._work_of_proofs() >= share * self._work_of_climbing():
                return
        self.has_proofs_left = False

    def _may_prove_more(self) -> bool:
        """Whether what cases tell apart has not come to its end, nor fallen far behind what is proved otherwise."""
        least = least_loss(self.problem)
        is_behind = self.told_apart.bound - least < BEHIND * (self.bound - least_noise(self.problem) - least)
        return not self.told_apart.is_settled and not (is_behind and self.told_apart.work > FAIR_TRIAL)

    def _least_price(self) -> float:
        """What the mixture of cuts that proves the best test's own weights is at least, at any case: it bounds all."""
        arrays, prices = self.exact_arrays, np.empty(self.problem.n_cases)
        mixture = make_cut_mixture(arrays)
        settle_rows(self.best.rows, TOLERANCE, arrays, make_tuple_game(arrays, len(self.best.rows)), mixture)
        price_cases(arrays, mixture, prices)
        return float(prices[self.relaxation.rows].min()) - SLACK

    def _heaviest(self) -> IntArray:
        """The heaviest cases of the relaxation that may be chosen, as many as a test has, after the required ones."""
        rounded = Relaxation(self.arrays, self.relaxation.rows)
        rounded.play()
        free = ~np.isin(rounded.rows, self.problem.required_cases)
        if self.problem.rules.choose:
            weights = np.zeros(self.problem.n_cases)
            weights[rounded.rows] = np.round(rounded.weights, DIGITS)
            return np.array([*self.problem.required_cases, *self._first_choice(-weights)])
        heavy = heaviest_first(rounded.rows[free], rounded.weights[free])
        return np.concatenate([np.array(self.problem.required_cases, dtype=np.int64), heavy[: self.problem.size]])

    def _first_choice(self, costs: FloatArray | None = None) -> tuple[int, ...]:
        """The first cases that may be chosen, or where there are rules, some that keep them, at the least cost."""
        problem = self.problem
        if not problem.rules.choose:
            return problem.selectable_cases[: problem.size]
        choice = find_choice(all_rules(problem), problem.n_cases, costs)
        assert choice is not None  # the problem was checked before it was handed over
        return tuple(case for case in choice if case not in problem.required_cases)
