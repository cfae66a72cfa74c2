"""RPOSST_seq with sampled scenarios (paper, Algorithm 1), for any Ψ that can be drawn from.

In every round N scenarios are drawn, the protagonist's weights on each tuple meet the k worst of them, and regret
matching+ answers. After T' rounds, drawn from 1 to T₁ alike, the weights stand, and Successive Rejects chooses among
tuples with T₂ samples of their k-of-N losses, scaled by 1 / (2kL) as in the paper.

Two liberties, neither of which changes the law of what happens to any one tuple: all tuples of a round meet the same
draw of N scenarios, where the pseudocode draws afresh for each; and rounds after T' are not played. Successive Rejects
draws for every tuple by itself, since its proof compares arms.

k and N are those of the problem's measure, if that is `KOfN`. Of `CVaR(η)` it is ``k = η N`` of ``draws`` scenarios, at
least one; of `WorstCase` k is one, and of `Mean` it is N. Nothing is proved about the answer but in probability
(`rposst_opt.solvers.bounds.sampled_gap`).
"""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Progress
from rposst_opt.errors import Unsupported
from rposst_opt.measures import Measure, equally_likely
from rposst_opt.problem import ASSEMBLY_NEEDS, Need, Problem
from rposst_opt.solvers.bounds import largest_loss
from rposst_opt.solvers.kernels.sampled import mean_of_worst, play_sampled
from rposst_opt.solvers.running import available_cores, check_counts, running
from rposst_opt.solvers.successive_rejects import successive_rejects

STRETCH = 256  # tuples that a thread takes on at a time
MOST_TUPLES = 5_000_000  # whose weights are kept
DRAWS_AT_ONCE = 2_000_000  # scenarios, to bound memory


class ScenarioSampler(Protocol):
    """A distribution of scenarios that can be drawn from; its support may be infinite."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[IntArray, FloatArray]:
        """Policies, by position, and the full test's scores of them, each of this shape."""


@dataclass(frozen=True, eq=False)
class TableSampler:
    """The problem's own scenarios with their probabilities."""

    problem: Problem

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[IntArray, FloatArray]:
        """Draw by inverting the cumulative distribution."""
        scenarios = self.problem.scenarios
        if equally_likely(scenarios.probabilities):
            drawn = (rng.random(shape) * len(scenarios.full_scores)).astype(np.int64)  # many times faster than a search
        else:
            cumulative = np.cumsum(scenarios.probabilities)
            drawn = np.searchsorted(cumulative, rng.random(shape) * cumulative[-1], side="right")
        drawn = np.minimum(drawn, len(scenarios.full_scores) - 1)
        return scenarios.policies[drawn], scenarios.full_scores[drawn]


@dataclass(frozen=True, eq=False)
class DirichletSampler:
    """Policies as likely as in the problem, and targets from a Dirichlet distribution: infinitely many scenarios.

    Parameters
    ----------
    problem : Problem
    concentration : float
        One draws all targets alike; less prefers targets that look at few test cases, more prefers even ones.
    """

    problem: Problem
    concentration: float = 1.0

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[IntArray, FloatArray]:
        """Draw a policy and a target for each."""
        policies = TableSampler(self.problem).draw(rng, shape)[0]
        count, n_cases = math.prod(shape), self.problem.n_cases
        scores = np.empty(count)
        step = max(1, DRAWS_AT_ONCE // n_cases)
        for start in range(0, count, step):
            end = min(start + step, count)
            targets = rng.dirichlet(np.full(n_cases, self.concentration), end - start)
            scores[start:end] = np.einsum("sx,xs->s", targets, self.problem.results[:, policies.flat[start:end]])
        return policies, scores.reshape(shape)


@dataclass(frozen=True, kw_only=True)
class SampledRegretMatching:
    """RPOSST_seq by regret matching+ on sampled scenarios, with Successive Rejects at the end.

    Parameters
    ----------
    rounds : int
        T₁; the game is played for a number of rounds drawn from 1 to this.
    draws : int
        N, for measures that do not bring their own.
    samples_per_tuple : int
        T₂ divided by the number of tuples.
    seed : int
        The same seed gives the same answer, with any number of threads.
    sampler : ScenarioSampler, optional
        Where scenarios come from; the problem's own table by default.
    threads : int, optional
        All cores by default.
    """

    rounds: int = 500
    draws: int = 100
    samples_per_tuple: int = 50
    seed: int = 0
    sampler: ScenarioSampler | None = None
    threads: int | None = None

    capabilities: ClassVar[Capabilities] = Capabilities(
        method="regret matching+ on sampled scenarios, then Successive Rejects (paper, Algorithm 1)",
        handles=frozenset(Need) - ASSEMBLY_NEEDS - {Need.NOISE},
        finds_optimum=False,
        is_heuristic=True,
        proves="nothing; a gap of ε/q with the Theorem's probability",
        tolerance=1e-9,
        requires=("numba",),
    )

    def __post_init__(self) -> None:
        """Refuse numbers below one."""
        check_counts(
            rounds=self.rounds, draws=self.draws, samples_per_tuple=self.samples_per_tuple, threads=self.threads
        )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Play the game on all tuples, then choose one of them."""
        if problem.n_tuples > MOST_TUPLES:
            raise Unsupported(
                f"the sampled game keeps the weights of all tuples, and {problem.n_tuples:,} are too many."
            )
        with running(budget) as run:
            game = _SampledGame(problem, self)
            with run.getting_ready():
                game.warm_up()
            limit = game.play(self.threads or available_cores(), budget)
            chosen = game.choose(self.samples_per_tuple) if limit is None else game.choose_in_haste()
        return Candidate(
            test=problem.test(cases=game.tuples[chosen].tolist(), weights=game.weights[chosen]),
            lower_bound=-math.inf,
            limit=limit,
            stats=run.stats(tuples=game.done, rounds=game.rounds * game.done),
        )


class _SampledGame:
    """All tuples with their weights, and where scenarios are drawn from."""

    def __init__(self, problem: Problem, method: SampledRegretMatching) -> None:
        self.problem = problem
        self.rng = np.random.default_rng(method.seed)
        self.sampler = method.sampler or TableSampler(problem)
        self.k, self.n_drawn = k_and_n(problem.measure, method.draws)
        self.rounds = int(self.rng.integers(1, method.rounds + 1))  # T'
        self.drawn = self.sampler.draw(self.rng, (self.rounds, self.n_drawn))
        self.tuples = all_tuples(problem)
        self.weights = np.full(self.tuples.shape, 1 / problem.n_chosen)
        self.pieces = problem.pieces
        self.done = 0

    def warm_up(self) -> None:
        """Have the kernels compiled, or loaded, by giving them nothing to do."""
        self._play_stretch(slice(0))
        self.sample(np.arange(0), 1)

    def play(self, threads: int, budget: Budget) -> Limit | None:
        """Play T' rounds on every tuple; or on the first ones, if a limit is reached."""

        def play_in_time(stretch: slice) -> int:
            late = stretch.start > 0 and budget.reached() is not None
            return 0 if late else self._play_stretch(stretch)

        stretches = [slice(start, start + STRETCH) for start in range(0, len(self.tuples), STRETCH)]
        with ThreadPoolExecutor(threads) as pool:
            for count in pool.map(play_in_time, stretches):
                self.done += count
                budget.tell(Progress(done=self.done, total=len(self.tuples), objective=math.inf))
        return budget.reached() if self.done < len(self.tuples) else None

    def _play_stretch(self, stretch: slice) -> int:
        tuples, weights = self.tuples[stretch], self.weights[stretch]
        pieces, results = self.pieces, self.problem.results
        play_sampled(tuples, *self.drawn, self.k, results, pieces.knots, pieces.coefficients, weights)
        return len(tuples)

    def sample(self, arms: IntArray, count: int) -> FloatArray:
        """So many samples of the k-of-N losses of these tuples' tests."""
        means = np.empty((len(arms), count))
        step = max(1, DRAWS_AT_ONCE // (count * self.n_drawn))
        for start in range(0, max(1, len(arms)), step):
            some = arms[start : start + step]
            drawn = self.sampler.draw(self.rng, (len(some), count, self.n_drawn))
            scores = np.einsum("ti,tij->tj", self.weights[some], self.problem.results[self.tuples[some]])
            place = means[start : start + step]
            mean_of_worst(scores, *drawn, self.k, self.pieces.knots, self.pieces.coefficients, place)
        return means

    def choose(self, samples_per_tuple: int) -> int:
        """The tuple that Successive Rejects leaves; losses are scaled as in the paper."""
        scale = 2 * largest_loss(self.problem) or 1.0
        budget = samples_per_tuple * len(self.tuples)
        return successive_rejects(lambda arms, count: self.sample(arms, count) / scale, len(self.tuples), budget)

    def choose_in_haste(self) -> int:
        """The tuple with the least loss in one sample each, of those that were played."""
        return int(np.argmin(self.sample(np.arange(self.done), 1)))


def k_and_n(measure: Measure, draws: int) -> tuple[int, int]:
    """How many of how many sampled scenarios count, for a measure."""
    pair = measure.k_of_n(draws)
    if pair is None:
        raise Unsupported(f"{measure!r} is not the mean of the k worst of N scenarios: use KOfN.")
    return pair


def all_tuples(problem: Problem) -> IntArray:
    """Every tuple, a row each, in lexicographic order, with the required cases at the end."""
    cases = itertools.chain.from_iterable(problem.tuples())
    count = problem.n_tuples * problem.n_chosen
    return np.fromiter(cases, dtype=np.int64, count=count).reshape(-1, problem.n_chosen)
