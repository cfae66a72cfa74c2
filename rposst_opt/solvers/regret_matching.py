r"""The reference method: RPOSST_seq as a game that is played out with regret matching+ (paper, Algorithm 2).

For every tuple of test cases, the protagonist weighs the cases by regret matching+ and the antagonist answers with
the worst scenarios, for T rounds. The best round of the best tuple is the answer. Expectations are exact, for every
measure, loss and finite Ψ of this package.

Two things are added to the pseudocode, and neither changes the answer:

*A certificate.* The antagonist's answer in round t gives a cut c^t (`Problem.cut`): no weights on a tuple τ can have
an objective below :math:`\min_{x\in\tau} c^t_x`. Any average of cuts is a cut, so the average over rounds bounds the
tuple's optimum from below, and the least such bound over all tuples bounds the problem's.

*Pruning.* A tuple whose bound is above the best loss found anywhere cannot be the answer, and is left.

Where the pseudocode and the paper's text differ, the text is followed: the best round is the one with the lowest
*loss* (the pseudocode compares :math:`w^\top v`, which is the loss only up to the target's share), and the first
round's weights are uniform over all cases of the tuple, the required ones included. Ties between tuples go to the first
in lexicographic order, ties between rounds to the earlier, ties between scenarios to the one with the lower index
(policy by policy, then target by target), and where the loss has a kink its left slope is taken.

All this is regret matching+, the default. `rposst_opt.solvers.players` has others to play the game, with the same
antagonist, the same kind of certificate and the same pruning.
"""

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Progress
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.problem import Need, Problem
from rposst_opt.solvers.kernels.players import make_player_run, play_tuple_as, play_tuples_as
from rposst_opt.solvers.kernels.problem_arrays import problem_arrays
from rposst_opt.solvers.kernels.regret_matching import make_tuple_run, play_tuple, play_tuples, tuple_at
from rposst_opt.solvers.kernels.response import make_response
from rposst_opt.solvers.players import REGRET_MATCHING, PlayerChoice
from rposst_opt.solvers.running import available_cores, check_counts, running

ROUNDING = 1e-12  # relative to the scale of losses: a bound must exceed the best loss by more than this to prune
STRETCH_SECONDS = 0.05  # how much a thread takes on at a time: little enough to stop soon, enough to hide the overhead
# After an early end all cases together are bounded, for a second at most: so many results may be touched, a scenario
# counts for as many as sorting it takes, and more rounds would hardly improve the bound.
RELAXATION_WORK, SORTING_WORK, RELAXATION_ROUNDS = 5 * 10**8, 100, 1000


@dataclass(frozen=True, kw_only=True)
class RegretMatching:
    """RPOSST_seq by regret matching+, or another player, deterministic, on all tuples.

    Parameters
    ----------
    rounds : int
        Rounds of the game per tuple (the paper's T): how often the antagonist is asked.
    prune : bool
        Leave tuples that cannot be the answer; the answer is the same without.
    threads : int, optional
        All cores by default; the answer is the same with any number.
    player : str
        Who weighs the cases: ``"regret-matching+"`` as in the paper, ``"predictive"``, ``"extragradient"`` or
        ``"smooth-predictive"``; `rposst_opt.solvers.players` says what they do.
    restarts : str
        ``"never"``; or, whenever the proved gap has halved, from the ``"last"`` round's pseudoregrets or from the
        weights of the ``"best"`` round, with shorter steps.
    step : float, optional
        The length of steps of the two smooth players (the last two), for payoffs of at most 1; 0.1 unless given.
    """

    rounds: int = 500
    prune: bool = True
    threads: int | None = None
    player: str = REGRET_MATCHING
    restarts: str = "never"
    step: float | None = None

    @property
    def capabilities(self) -> Capabilities:
        """It handles everything, and comes as close to the optimum as is promised for this player and these rounds."""
        return Capabilities(
            method=self._choice.method,
            handles=frozenset(Need) - {Need.WEIGHT_LIMITS, Need.ANY_NUMBER},
            finds_optimum=False,
            proves=self._choice.proves,
            tolerance=1e-9,
            requires=("numba",),
            promised_gap=self._choice.promised_gap(self.rounds),
        )

    def __post_init__(self) -> None:
        """Refuse a number of rounds or threads below one, and players that there are not."""
        check_counts(rounds=self.rounds, threads=self.threads)
        self._choice.check()

    @property
    def _choice(self) -> PlayerChoice:
        return PlayerChoice(self.player, self.restarts, self.step)

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Play the game on every tuple, as far as the budget allows."""
        with running(budget) as run:
            search = _Search(problem, self, self._choice, budget.gap)
            with run.getting_ready():
                search.warm_up()
            limit = search.run(budget)
            lower_bound = search.proved_bound()
        return Candidate(
            test=search.best_test(),
            lower_bound=lower_bound,
            limit=limit,
            stats=run.stats(tuples=search.done, rounds=search.rounds_played),
        )


@dataclass(frozen=True, order=True)
class _Stretch:
    """What came of playing some consecutive tuples; the order is by loss, then by place."""

    loss: float
    rank: int  # of the first tuple
    cases: IntArray = field(compare=False)
    weights: FloatArray = field(compare=False)
    lower_bound: float = field(compare=False)
    done: int = field(compare=False)
    rounds_played: int = field(compare=False)
    seconds: float = field(compare=False)


class _Places:
    """The places of the tuples that keep the rules among all tuples, handed out in stretches of neighbours."""

    def __init__(self, problem: Problem) -> None:
        self._runs = _runs(problem)
        self._rank, self._left = next(self._runs)
        self.first, self.taken = self._rank, 0

    @property
    def are_taken(self) -> bool:
        """Whether none is left."""
        return self._left == 0

    def take(self, most: int) -> tuple[int, int]:
        """The next place, and how many tuples from there on, of so many at most."""
        rank, count = self._rank, min(most, self._left)
        self._rank, self._left, self.taken = rank + count, self._left - count, self.taken + count
        if self._left == 0:
            self._rank, self._left = next(self._runs, (0, 0))
        return rank, count


def _runs(problem: Problem) -> Iterator[tuple[int, int]]:
    """Where stretches of tuples that keep the rules begin, and how long they are."""
    if Need.CHOICE_RULES not in problem.needs:
        yield 0, problem.n_tuples
        return
    start, length = 0, 0
    for rank, chosen in enumerate(combinations(problem.selectable_cases, problem.size)):
        if problem.keeps_rules(chosen + problem.required_cases):
            start, length = (start, length + 1) if length else (rank, 1)
        elif length:
            yield start, length
            length = 0
    if length:
        yield start, length


class _Search:
    """The game on all tuples of a problem, by several threads that share the best loss found."""

    def __init__(self, problem: Problem, method: RegretMatching, choice: PlayerChoice, gap: float) -> None:
        self.problem = problem
        self.arrays = problem_arrays(problem)
        self.selectable = np.array(problem.selectable_cases, dtype=np.int64)
        self.required = np.array(problem.required_cases, dtype=np.int64)
        # A single case has the weight one in every round.
        self.rounds = method.rounds if problem.n_chosen > 1 else 1
        self.threads = method.threads or available_cores()
        # A tuple is left when its bound exceeds cutoff[0], which is kept at the best loss plus `lead`.
        rounding = ROUNDING * problem.loss_scale + problem.rounding
        self.lead = rounding - gap if method.prune else np.inf
        self.player = None if choice.is_reference else choice.player(problem, least_gap=rounding)
        self.cutoff = np.array([np.inf, 0.0])
        self.places = _Places(problem)
        self.best: _Stretch
        self.lower_bound = np.inf
        self.done = 0
        self.rounds_played = 0

    def play(self, rank: int, count: int, rounds: int) -> _Stretch:
        """Play `count` tuples from the one at this place on."""
        first = tuple_at(rank, len(self.selectable), self.problem.size)
        cases = np.empty(self.problem.n_chosen, dtype=np.int64)
        weights = np.empty(self.problem.n_chosen)
        started = time.perf_counter()
        ranges = first, count, self.selectable, self.required, rounds
        shared = self.cutoff, self.lead, self.arrays, cases, weights
        if self.player is None:
            loss, lower_bound, done, rounds_played = play_tuples(*ranges, *shared)
        else:
            loss, lower_bound, done, rounds_played = play_tuples_as(self.player, *ranges, *shared)
        seconds = time.perf_counter() - started
        return _Stretch(loss, rank, cases, weights, lower_bound, done, rounds_played, seconds)

    def warm_up(self) -> None:
        """Have the kernels compiled, or loaded, by one round on one tuple."""
        self.play(rank=self.places.first, count=1, rounds=1)

    def run(self, budget: Budget) -> Limit | None:
        """Play all tuples, stretch by stretch, until they are done or a limit is reached."""
        places, stretch = self.places, 1
        limit = None
        pending: set[Future[_Stretch]] = set()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                while not places.are_taken or pending:
                    may_begin = limit is None or not places.taken
                    while not places.are_taken and len(pending) < 2 * self.threads and may_begin:
                        pending.add(pool.submit(self.play, *places.take(stretch), self.rounds))
                        may_begin = limit is None
                    if not pending:
                        break
                    finished, pending = wait(pending, timeout=STRETCH_SECONDS, return_when=FIRST_COMPLETED)
                    for future in finished:
                        outcome = future.result()
                        self._take(outcome)
                        stretch = _next_stretch(outcome)
                    if limit is None and (pending or not places.are_taken):
                        limit = budget.reached()
                    if limit is not None:
                        self.cutoff[1] = 1.0
                    if self.done and budget.is_heard:
                        test = self.best_test()
                        total = self.problem.n_tuples
                        budget.tell(Progress(done=self.done, total=total, objective=self.best.loss, test=test))
            finally:
                self.cutoff[1] = 1.0
        return limit

    def _take(self, outcome: _Stretch) -> None:
        self.best = min(self.best, outcome) if self.done else outcome
        self.lower_bound = min(self.lower_bound, outcome.lower_bound)
        self.done += outcome.done
        self.rounds_played += outcome.rounds_played

    def best_test(self) -> EfficientTest:
        """The best cases so far, with the best weights that were played on them."""
        return self.problem.test(cases=self.best.cases, weights=self.best.weights)

    def proved_bound(self) -> float:
        """A bound for all tuples: that of those played and, if some were not, that of all cases taken together.

        Weights on a tuple are weights on all cases, so the averaged cut over all of them bounds every tuple. And no
        objective is below the least loss there is.
        """
        bound = self.lower_bound
        if not self.places.are_taken or self.done < self.places.taken:
            bound = min(bound, self._relaxation_bound())
        return max(bound, self.problem.pieces.minimum())

    def _relaxation_bound(self) -> float:
        everything = np.concatenate([self.required, self.selectable])
        work = len(everything) * self.problem.n_policies + SORTING_WORK * self.problem.n_scenarios
        rounds = max(1, min(self.rounds, RELAXATION_ROUNDS, RELAXATION_WORK // work))
        game = everything, rounds, np.array([np.inf, 0.0]), self.arrays
        response, shape = make_response(self.arrays), (len(everything), self.problem.n_policies)
        if self.player is None:
            _, bound, _ = play_tuple(*game, make_tuple_run(*shape), response)
        else:
            _, bound, _ = play_tuple_as(self.player, *game, make_player_run(*shape), response)
        return float(bound)


def _next_stretch(outcome: _Stretch) -> int:
    """How many tuples fill `STRETCH_SECONDS`, growing fourfold at most since the first ones tell little."""
    fitting = outcome.done * STRETCH_SECONDS / max(outcome.seconds, 1e-9)
    return max(1, min(int(fitting), 4 * outcome.done))
