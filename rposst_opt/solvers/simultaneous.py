r"""RPOSST_sim: a fresh set of test cases is drawn for every evaluation (paper, appendix; Algorithm 3).

The protagonist plays a distribution over tuples, with weights for each; the antagonist does not see which tuple is
drawn, so a scenario's loss is the *expected* one. CFR+ learns both decisions by regret matching+: the tuple's, from the
losses of all tuples, and each tuple's weights, from their gradients. The answer is the average of all rounds, round t
counted t times (a tuple's weights are averaged by how often it was played), or the round with the least loss.

With a `measure` the antagonist's answer is exact, for every measure of this package, as in the deterministic form that
the paper describes for CVaR; with `draws`, N scenarios are drawn each round, and the k worst count.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Progress
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import Unsupported
from rposst_opt.problem import ASSEMBLY_NEEDS, Need, Problem
from rposst_opt.solvers.kernels.sampled import expect_losses, update_tuples
from rposst_opt.solvers.running import Run, check_counts, running
from rposst_opt.solvers.sampled import TableSampler, all_tuples, k_and_n

MOST_TUPLES = 1_000_000  # whose weights are kept
TESTS_AT_ONCE = 1024  # that are judged together
SMALLEST_PROBABILITY = 1e-12  # tests drawn less often than this are left out of a mixture


@dataclass(frozen=True, eq=False)
class MixedTest:
    """A distribution over tests, from which one is drawn for every evaluation.

    Attributes
    ----------
    tests : tuple of EfficientTest
    probabilities : ndarray of shape (n_tests,)
    """

    tests: tuple[EfficientTest, ...]
    probabilities: FloatArray

    def draw(self, rng: np.random.Generator) -> EfficientTest:
        """A test for one evaluation."""
        return self.tests[int(rng.choice(len(self.tests), p=self.probabilities))]

    def expected_losses(self, problem: Problem) -> FloatArray:
        """The expected loss of every scenario."""
        losses = np.zeros(problem.n_scenarios)
        for test, probability in zip(self.tests, self.probabilities, strict=True):
            losses += probability * problem.losses(test)
        return losses

    def objective(self, problem: Problem) -> float:
        """The measure of the expected losses."""
        return problem.measure.value(self.expected_losses(problem), problem.scenarios.probabilities)


@dataclass(frozen=True, kw_only=True)
class Simultaneous:
    """RPOSST_sim by CFR+.

    As a backend it hands back the best single test of its mixture; `play` gives the mixture.

    Parameters
    ----------
    rounds : int
        T.
    average : bool
        The linear average of all rounds, or the round with the least loss.
    draws : int, optional
        Draw so many scenarios each round (N) instead of answering exactly.
    seed : int
        For drawing.
    """

    rounds: int = 500
    average: bool = True
    draws: int | None = None
    seed: int = 0

    capabilities: ClassVar[Capabilities] = Capabilities(
        method="CFR+ over tuples and weights; the best test of the mixture (paper, Algorithm 3)",
        handles=frozenset(Need) - ASSEMBLY_NEEDS - {Need.NOISE},
        finds_optimum=False,
        is_heuristic=True,
        proves="nothing",
        tolerance=1e-9,
        requires=("numba",),
    )

    def __post_init__(self) -> None:
        """Refuse numbers below one."""
        check_counts(rounds=self.rounds, draws=self.draws)

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Play, and pick the test of the mixture that does best alone."""
        game, limit, run = self._play(problem, budget)
        test = game.best_test()
        stats = run.stats(tuples=problem.n_tuples, rounds=game.rounds_played)
        return Candidate(test=test, lower_bound=-math.inf, limit=limit, stats=stats)

    def play(self, problem: Problem) -> MixedTest:
        """Play all rounds."""
        return self._play(problem, Budget())[0].mixture()

    def _play(self, problem: Problem, budget: Budget) -> "tuple[_SimultaneousGame, Limit | None, Run]":
        if problem.n_tuples > MOST_TUPLES:
            raise Unsupported(f"CFR+ keeps the weights of all tuples, and {problem.n_tuples:,} are too many.")
        with running(budget) as run:
            game = _SimultaneousGame(problem, self)
            with run.getting_ready():
                game.play_round()
            limit = game.play_on(budget)
        return game, limit, run


class _SimultaneousGame:
    """The state of CFR+: pseudoregrets and averages of the tuple's decision and of every tuple's weights."""

    def __init__(self, problem: Problem, method: Simultaneous) -> None:
        self.problem, self.method = problem, method
        self.tuples = all_tuples(problem)
        count, width = self.tuples.shape
        self.probabilities, self.weights = np.full(count, 1 / count), np.full((count, width), 1 / width)
        self.tuple_regrets, self.weight_regrets = np.zeros(count), np.zeros((count, width))
        self.average, self.weight_averages = np.zeros(count), np.zeros((count, width))
        self.least, self.best = math.inf, (self.probabilities, self.weights)
        self.rounds_played = 0
        self.rng = np.random.default_rng(method.seed)

    def play_on(self, budget: Budget) -> Limit | None:
        """Play the rounds that are left, or until a limit is reached."""
        rounds, limit = self.method.rounds, None
        while self.rounds_played < rounds and limit is None:
            self.play_round()
            budget.tell(Progress(done=self.rounds_played, total=rounds, objective=self.least))
            limit = budget.reached() if self.rounds_played < rounds else None
        return limit

    def play_round(self) -> None:
        """One round: the expected losses, the antagonist's answer, and both updates."""
        problem, pieces = self.problem, self.problem.pieces
        alpha, policies, full_scores, value = self._answer()
        if value < self.least:
            self.least, self.best = value, (self.probabilities.copy(), self.weights.copy())
        self.rounds_played += 1
        t = self.rounds_played
        self.average += t * self.probabilities
        self.weight_averages += t * self.probabilities[:, None] * self.weights
        losses = np.empty(len(self.tuples))
        update_tuples(
            self.tuples,
            self.weights,
            self.weight_regrets,
            alpha,
            policies,
            full_scores,
            problem.results,
            pieces.knots,
            pieces.coefficients,
            losses,
        )
        # v_τ = -loss_τ, regret = v - E[v], q ← [q + regret]₊
        self.tuple_regrets = np.maximum(self.tuple_regrets + (self.probabilities @ losses - losses), 0.0)
        total = self.tuple_regrets.sum()
        self.probabilities = self.tuple_regrets / total if total > 0 else np.full(len(losses), 1 / len(losses))

    def _answer(self) -> tuple[FloatArray, IntArray, FloatArray, float]:
        """The antagonist's weights of the scenarios that count, these scenarios, and the loss."""
        problem, scenarios = self.problem, self.problem.scenarios
        if self.method.draws is None:
            expected = self._expected(scenarios.policies, scenarios.full_scores)
            alpha = problem.measure.weights(expected, scenarios.probabilities)
            counted = np.flatnonzero(alpha)
            return alpha[counted], scenarios.policies[counted], scenarios.full_scores[counted], float(alpha @ expected)
        k, n_drawn = k_and_n(problem.measure, self.method.draws)
        policies, full_scores = TableSampler(problem).draw(self.rng, (n_drawn,))
        expected = self._expected(policies, full_scores)
        worst = np.argsort(-expected, kind="stable")[:k]
        return np.full(k, 1 / k), policies[worst], full_scores[worst], float(expected[worst].mean())

    def _expected(self, policies: IntArray, full_scores: FloatArray) -> FloatArray:
        pieces, expected = self.problem.pieces, np.empty(len(full_scores))
        expect_losses(
            self.tuples,
            self.weights,
            self.probabilities,
            self.problem.results,
            policies,
            full_scores,
            pieces.knots,
            pieces.coefficients,
            expected,
        )
        return expected

    def mixture(self) -> MixedTest:
        """The linear average of the rounds, or the best round."""
        kept, probabilities, weights = self._kept()
        return MixedTest(tuple(map(self._test, kept, weights)), probabilities)

    def best_test(self) -> EfficientTest:
        """The test of the mixture that does best alone."""
        kept, _, weights = self._kept()
        best, least = 0, math.inf
        for start in range(0, len(kept), TESTS_AT_ONCE):
            some = slice(start, start + TESTS_AT_ONCE)
            objectives = self._objectives(self.tuples[kept[some]], weights[some])
            if objectives.min() < least:
                best, least = start + int(objectives.argmin()), float(objectives.min())
        return self._test(kept[best], weights[best])

    def _kept(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The tuples that the mixture has, their probabilities and their weights."""
        probabilities, weights = self.best
        if self.method.average:
            probabilities, weights = self.average / self.average.sum(), self.weight_averages
        kept = np.flatnonzero(probabilities > SMALLEST_PROBABILITY)
        weights = weights[kept] / weights[kept].sum(axis=1, keepdims=True)
        return kept, probabilities[kept] / probabilities[kept].sum(), weights

    def _test(self, at: int, weights: FloatArray) -> EfficientTest:
        return self.problem.test(cases=self.tuples[at].tolist(), weights=weights)

    def _objectives(self, tuples: IntArray, weights: FloatArray) -> FloatArray:
        """`Problem.objective` of many tests at once, to choose one of them."""
        problem, scenarios = self.problem, self.problem.scenarios
        scores = np.einsum("ti,tij->tj", weights, problem.results[tuples])[:, scenarios.policies]
        losses = problem.loss.value(scores, scenarios.full_scores)
        worst_first = np.argsort(-losses, axis=1)
        tails = np.minimum(np.cumsum(scenarios.probabilities[worst_first], axis=1), 1.0)
        increments = np.diff(problem.measure.tail_weight(tails), axis=1, prepend=0.0)
        objectives: FloatArray = (increments * np.take_along_axis(losses, worst_first, axis=1)).sum(axis=1)
        return objectives
