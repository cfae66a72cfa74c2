r"""How good can a test be that tells only some policies apart? That bounds tests of few cases.

*Pairs.* Take two scenarios i and j of one target, of which j has the higher full score, and the cases H_ij on which
j's policy does better than i's. A test without any of H_ij scores i at least as high as j, so at least one of them is
off: with γ > 0 and the conjugate Δ* of the loss, for all such scores

.. math:: \Delta_i + \Delta_j \ \ge\ C_{ij} := \gamma (b_j - b_i) - \Delta^*(\gamma) - \Delta^*(-\gamma)

(add Fenchel's inequalities for γ at i and for −γ at j); for absolute errors it is b_j − b_i. If no loss is below zero,
every test, with y_x = 1 for its cases and 0 for others, has

.. math:: \Delta_i + \Delta_j \ge C_{ij} \Bigl(1 - \sum_{x \in H_{ij}} y_x\Bigr) \qquad (1)

*The program.* The least objective that (1) leaves, with 0 ≤ y ≤ 1 and Σ y = m in the place of a choice, is a linear
program; pairs and answers of the antagonist join it as long as they change it. Where results are 0 or 1 and cases few,
as in Racing Arrows, this is far above the relaxation over all weights (`solvers.relaxation`), which is zero as soon as
the cases together determine the full score. Where every pair is told apart by many cases it says nothing. It is made
whole step by step: a case is chosen in one branch and left out in the other, and the branches with the least bounds are
gone on with, a few side by side. Which case, is told by what both have brought where it was branched on before
(pseudo-costs). Of cases with the same results, one stands for all.

*Weights.* In a test that is better than a known one no case has a weight above its limit u_x
(`solvers.most_weights`). So the program has weights too, with w_x ≤ u_x y_x, and tangents of the losses at them, which
join it like pairs. And a case tells a pair apart by no more than γ u_x (A[x, j] − A[x, i]), so that this takes the
place of C_ij before its y_x in (1) where it is less. What is proved then is true of all tests up to the known one, and
so the bound is at most its objective.

*What is proved* does not rest on the program's arithmetic. With answers α of the antagonist, mixed, and multipliers μ
of pairs and ν of tangents :math:`\Delta_s \ge k + \sum_x g_x w_x` that sum to at most α_s at every scenario, a test has
an objective of at least Σ_s α_s Δ_s, and so of at least

.. math::

    \sum_{ij} \mu_{ij} \Bigl(C_{ij} - \sum_x c^{ij}_x y_x\Bigr) + \sum \nu k + \theta
    - \sum_x \max\Bigl(\theta - \sum \nu g_x,\ 0\Bigr) u_x y_x

with any number θ, since weights sum to one. The least of it over all choices of m cases is that of the m cases with the
largest sums; of a branch, that of its chosen cases and the best others.
"""

import heapq
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.problem import Problem
from rposst_opt.solvers.choice_program import Branch, ChoiceProgram, Reply, Row, Side, Step
from rposst_opt.solvers.most_weights import MostWeights, Tangents

PAIRS_AT_ONCE = 400  # that join the program, those it breaks most
MOST_ROWS = 3_000
PROVING_ROWS = 1_000  # after which something must be proved
MOST_SCENARIOS = 2_000  # there are as many pairs as the square of this,
MOST_NUMBERS = 20_000_000  # and as many numbers as the square of the policies, times the cases
VIOLATED = 1e-7  # in units of the largest loss, like all here
SLACK = 4e-12  # rounding
WHOLE = 1e-6  # so near to zero or one a case is left out or chosen
USUAL_GAIN, LEAST_GAIN = 1e-3, 1e-9  # of a branch, where nothing is known of it yet, and at least
LIMITS_AT_ONCE = 2  # cases whose weights are limited in one step
MOST_BRANCHES = 100_000
SIDE_BY_SIDE = 4  # branches, however many threads there are, so that the bound does not depend on them


class Kind(Enum):
    """What a row says."""

    ANSWER = "the objective is at least what the antagonist makes of the losses"
    PAIR = "two scenarios lose so much together"
    TANGENT = "a scenario loses so much with these weights"


RunAll = Callable[[Callable[["ChoiceProgram", Branch], Reply], "list[ChoiceProgram]", list[Branch]], Iterable[Reply]]


class ToldApart:
    """The program, step by step.

    Parameters
    ----------
    problem : Problem
        As solvers are given it.

    Attributes
    ----------
    bound : float
        No test has a lower objective, in units of the largest loss.
    is_settled : bool
        Whether another step would not raise it.
    work : float
        What was done, in nanoseconds by a rough count.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._size = problem, problem.size
        least = float(problem.pieces.minimum() / problem.unit)
        self._least, self.bound, self.work = least, least, 0.0
        self._n_scenarios = problem.n_scenarios
        n_cases = len(problem.selectable_cases)
        is_large = self._n_scenarios > MOST_SCENARIOS or problem.n_policies**2 * n_cases > MOST_NUMBERS
        self.is_settled = not np.isfinite(least) or not n_cases or is_large
        self._numbered = 0
        self._answers: list[FloatArray] = []
        self._pairs = np.empty((0, 2), dtype=np.int64)
        self._pair_savings: list[FloatArray] = []  # what each case takes off a pair's sum
        self._kinds: list[Kind] = []
        self._rows: list[Row] = []
        self._most_weights: MostWeights | None = None
        self._below = np.inf
        self._gains, self._tried = np.empty((2, 0)), np.empty((2, 0))  # of branches, by side and case
        self._programs: list[ChoiceProgram] = []  # all with the same rows, one for each branch that is solved at a time
        self._open: list[Branch] = []  # a heap, the least bound first
        self._least_whole = np.inf  # of the choices that were found without parts

    def limit_weights(self, below: float) -> None:
        """Bound only tests with an objective of at most this, in units of the largest loss; before the first step."""
        if not self.is_settled:
            self._below = below
            required = np.array(self._problem.required_cases, dtype=np.int64)
            self._most_weights = MostWeights(self._problem, np.concatenate([self._cases, required]), below)

    def step(self, run_all: RunAll = map) -> None:
        """Solve the programs of a few branches; take their bounds, and add what they break, or else branch.

        Parameters
        ----------
        run_all : callable
            Like `map`, and as that by default; the `map` of a pool solves them at the same time.
        """
        if not self._programs:
            self._limit_some_weights() if self._has_weights_to_limit else self._begin()
            return
        branches = [heapq.heappop(self._open) for _ in range(min(SIDE_BY_SIDE, len(self._open)))]
        replies = list(run_all(ChoiceProgram.solve, self._programs, branches))
        self.work += sum(len(self._rows) * (90.0 * r.iterations + 60.0 * len(r.choice)) for r in replies)
        proved = [self._proved(reply, branch) for branch, reply in zip(branches, replies, strict=True)]
        for branch, reply, value in zip(branches, replies, proved, strict=True):
            self._learn_from(branch, reply)
            self._go_on(branch, reply, max(branch.bound, self._least + value - SLACK))
        least = min(self._open[0].bound if self._open else np.inf, self._least_whole)
        self.bound = max(self.bound, min(least, self._below))
        self.is_settled = not self._open or self._least_whole <= least or self._numbered > MOST_BRANCHES

    def _go_on(self, branch: Branch, reply: Reply, bound: float) -> None:
        """Add what a reply breaks, or else branch."""
        if reply.is_solved and self._add_what_is_broken(reply):
            self._put(branch._replace(bound=bound, step=None, basis=reply.basis))
        elif self._most_weights is None and not branch.number and bound <= self._least:
            self._least_whole = bound  # nothing is proved of all choices, and branching would begin with nothing
        else:
            self._divide(bound, branch, reply)

    @cached_property
    def _cases(self) -> IntArray:
        """The selectable cases, one of those with the same results."""
        cases = np.array(self._problem.selectable_cases, dtype=np.int64)
        return cases[np.sort(np.unique(self._problem.results[cases], axis=0, return_index=True)[1])]

    @property
    def _has_weights_to_limit(self) -> bool:
        return self._most_weights is not None and not self._most_weights.is_done

    def _limit_some_weights(self) -> None:
        """Find the limits of a few cases more."""
        assert self._most_weights is not None
        before = self._most_weights.work
        for _ in range(LIMITS_AT_ONCE):
            if self._has_weights_to_limit:
                self._most_weights.step()
        self.work += self._most_weights.work - before

    def _learn_from(self, branch: Branch, reply: Reply) -> None:
        """Note how much more than before a case costs that was chosen, or left out, whole instead of in part."""
        if branch.step is not None and reply.is_solved:
            case = (branch.chosen if branch.step.side is Side.CHOSEN else branch.left_out)[-1]
            place = branch.step.side.value, case
            self._gains[place] += max(reply.value - branch.step.value, 0.0) / branch.step.part
            self._tried[place] += 1

    def _add_what_is_broken(self, reply: Reply) -> int:
        """Add pairs, tangents and an answer that the reply breaks, as long as there are not too many; how many."""
        if len(self._rows) > (MOST_ROWS if self.bound > self._least else PROVING_ROWS):
            return 0
        losses = np.maximum(reply.losses, 0.0)  # HiGHS lets them fall below zero, by its tolerance
        added, answer = self._add_pairs(reply.choice, losses), self._answer(losses)
        if self._most_weights is not None:
            added += self._add_tangents(np.maximum(reply.weights, 0.0), losses)
        if answer @ losses > reply.value + VIOLATED:
            self._add_answer(answer)
            added += 1
        return added

    def _divide(self, bound: float, branch: Branch, reply: Reply) -> None:
        """Choose a case in one branch and leave it out in another; where all are whole, the branch is done."""
        choice = np.clip(np.round(reply.choice, 9), 0.0, 1.0)
        if np.minimum(choice, 1.0 - choice).max() <= WHOLE:
            self._least_whole = min(self._least_whole, bound)
            return
        case = self._most_telling(choice)
        part, below = float(choice[case]), branch._replace(bound=bound, basis=reply.basis)
        chosen = Step(reply.value, Side.CHOSEN, 1.0 - part)
        self._put(below._replace(chosen=(*branch.chosen, case), step=chosen))
        left_out = Step(reply.value, Side.LEFT_OUT, part)
        self._put(below._replace(left_out=(*branch.left_out, case), step=left_out))

    def _most_telling(self, choice: FloatArray) -> int:
        """The case, of those that are chosen in part, of which both branches are thought to gain most."""
        tried = self._tried.sum(axis=1, keepdims=True)
        usual = np.where(tried > 0, self._gains.sum(axis=1, keepdims=True) / np.maximum(tried, 1), USUAL_GAIN)
        costs = (self._gains + usual) / (self._tried + 1)
        gains = np.maximum(costs * np.array([1.0 - choice, choice]), LEAST_GAIN).prod(axis=0)
        gains[np.minimum(choice, 1.0 - choice) <= WHOLE] = 0.0
        return int(np.argmax(np.round(gains / gains.max(), 6)))

    def _put(self, branch: Branch) -> None:
        """Keep a branch for later; of several with one bound the first comes first."""
        if not self._may_weigh_one(branch.chosen, branch.left_out):
            self._least_whole = min(self._least_whole, self._below)
            return
        heapq.heappush(self._open, branch._replace(number=self._numbered))
        self._numbered += 1

    def _may_weigh_one(self, chosen: tuple[int, ...], left_out: tuple[int, ...]) -> bool:
        """Whether weights within their limits sum to one, with these cases and the heaviest others that are left."""
        if self._most_weights is None:
            return True
        limits, n = self._limits, len(self._cases)
        free = np.sort(np.delete(limits[:n], [*chosen, *left_out]))
        others = min(self._size - len(chosen), len(free))
        return bool(limits[list(chosen)].sum() + limits[n:].sum() + free[len(free) - others :].sum() >= 1.0)

    def _begin(self) -> None:
        """Start with what equal parts of all cases leave not told apart; without weights, nothing there is the end."""
        self._gains, self._tried = np.zeros((2, len(self._cases))), np.zeros((2, len(self._cases)))
        self._programs = [
            ChoiceProgram(len(self._cases), self._n_scenarios, self._size, self._rows, self._limits)
            for _ in range(SIDE_BY_SIDE)
        ]
        nothing = np.zeros(self._n_scenarios)
        self._add_answer(self._answer(nothing))
        evenly = np.full(len(self._cases), self._size / len(self._cases))
        self.is_settled = self._add_pairs(evenly, nothing) == 0 and self._most_weights is None
        self._put(Branch(self._least, 0, (), ()))

    def _answer(self, losses: FloatArray) -> FloatArray:
        """What the antagonist weighs these losses with."""
        weights: FloatArray = self._problem.measure.weights(losses, self._problem.scenarios.probabilities)
        return weights

    def _add_answer(self, answer: FloatArray) -> None:
        """The objective is at least what this answer makes of the losses."""
        counted, value = np.flatnonzero(answer), len(self._cases) + self._n_scenarios
        places = np.append(len(self._cases) + counted, value)
        self._rows.append(Row(0.0, places, np.append(-answer[counted], 1.0)))
        self._answers.append(answer)
        self._kinds.append(Kind.ANSWER)

    def _add_pairs(self, choice: FloatArray, losses: FloatArray) -> int:
        """Add the pairs that a choice with these losses breaks most; how many."""
        policies = self._problem.scenarios.policies
        apart = self._told_apart(choice)[np.ix_(policies, policies)]
        missing = self._least_sums * (1.0 - apart) - (losses[:, None] + losses[None, :])
        found = np.argwhere(missing > VIOLATED)
        worst = np.argsort(-np.round(missing[tuple(found.T)], 9), kind="stable")[:PAIRS_AT_ONCE]
        for low, high in found[worst].tolist():
            self._add_pair(low, high)
        self._pairs = np.concatenate([self._pairs, found[worst]])
        return len(worst)

    def _add_pair(self, low: int, high: int) -> None:
        """These two scenarios lose so much together, but for what the choice has of the cases that tell them apart."""
        savings, least_sum = self._savings(low, high), float(self._least_sums[low, high])
        cases = np.flatnonzero(savings)
        places = np.append(cases, len(self._cases) + np.array([low, high]))
        self._rows.append(Row(least_sum, places, np.append(savings[cases], [1.0, 1.0])))
        self._pair_savings.append(savings)
        self._kinds.append(Kind.PAIR)

    def _add_tangents(self, weights: FloatArray, losses: FloatArray) -> int:
        """Add the tangents that these weights and losses break most; how many."""
        n, d, before = len(self._cases), self._n_scenarios, len(self._rows)
        for scenario, constant, slopes in self._tangents.add_broken(weights, losses):
            counted = np.flatnonzero(slopes)
            places = np.append(n + d + 1 + counted, n + scenario)
            self._rows.append(Row(constant, places, np.append(-slopes[counted], 1.0)))
            self._kinds.append(Kind.TANGENT)
        return len(self._rows) - before

    @cached_property
    def _tangents(self) -> Tangents:
        required = np.array(self._problem.required_cases, dtype=np.int64)
        return Tangents(self._problem, np.concatenate([self._cases, required]))

    @property
    def _limits(self) -> FloatArray:
        """Of the weights of the cases and then the required ones; none where weights play no part."""
        return np.empty(0) if self._most_weights is None else self._most_weights.limits

    def _told_apart(self, choice: FloatArray) -> FloatArray:
        """How much of each pair of policies the choice tells apart: what of H_ij it has, with the required cases."""
        self.work += float(self._better.size)
        apart: FloatArray = self._apart_anyway + self._better @ choice
        return apart

    @cached_property
    def _better(self) -> NDArray[np.float32]:
        """Whether the second policy does better than the first, on each case: of shape (policies, policies, cases)."""
        results = self._problem.results[self._cases].T
        return (results[None, :, :] > results[:, None, :]).astype(np.float32)

    @cached_property
    def _apart_anyway(self) -> FloatArray:
        """How many of the required cases tell each pair of policies apart."""
        results = self._problem.results[list(self._problem.required_cases)].T
        count: FloatArray = (results[None, :, :] > results[:, None, :]).sum(axis=2).astype(np.float64)
        return count

    def _savings(self, low: int, high: int) -> FloatArray:
        """What each selectable case takes off the sum of losses of two scenarios."""
        one, other = self._problem.scenarios.policies[[low, high]]
        results = self._problem.results[self._cases]
        ahead = np.maximum(results[:, other] - results[:, one], 0.0)
        all_of_it: FloatArray = np.where(ahead > 0, self._least_sums[low, high], 0.0)
        if self._most_weights is None:
            return all_of_it
        slope = self._slopes_of_pairs[low, high] / self._problem.unit
        savings: FloatArray = np.minimum(all_of_it, slope * self._limits[: len(self._cases)] * ahead)
        return savings

    @cached_property
    def _least_sums(self) -> FloatArray:
        """C_ij of all pairs of scenarios of one target, less what both lose at least, in units of the largest loss."""
        pieces, targets = self._problem.pieces, self._problem.scenarios.target_rows
        apart, slopes = self._apart, self._slopes_of_pairs.ravel()
        tilted = slopes * apart.ravel() - pieces.conjugate(slopes) - pieces.conjugate(-slopes)
        sums = np.where(slopes > 0, tilted, 0.0).reshape(apart.shape) / self._problem.unit - 2 * self._least
        return np.where((apart > 0) & (targets[:, None] == targets[None, :]), np.maximum(sums, 0.0), 0.0)

    @cached_property
    def _apart(self) -> FloatArray:
        """By how much the second scenario of a pair has the higher full score."""
        full = self._problem.scenarios.full_scores
        return np.maximum(full[None, :] - full[:, None], 0.0)

    @cached_property
    def _slopes_of_pairs(self) -> FloatArray:
        """γ of all pairs of scenarios."""
        slope = self._problem.pieces.slope
        return np.minimum(slope(self._apart / 2), -slope(-self._apart / 2))

    def _proved(self, reply: Reply, branch: Branch) -> float:
        """What the multipliers of a reply prove of every choice in a branch, whoever has found them."""
        kinds, multipliers = np.array(self._kinds), np.maximum(reply.multipliers, 0.0)
        shares = multipliers[kinds == Kind.ANSWER]
        if not shares.sum() > 0:
            return 0.0
        tail_weights = (shares / shares.sum()) @ np.array(self._answers)
        prices, of_tangents = multipliers[kinds == Kind.PAIR], multipliers[kinds == Kind.TANGENT]
        used = self._tangents.used(of_tangents)
        used += np.bincount(self._pairs.ravel(), np.repeat(prices, 2), self._n_scenarios)
        fits = np.minimum(1.0, tail_weights / np.where(used > 0, used, 1.0))
        prices = prices * fits[self._pairs].min(axis=1)
        counted, n = np.flatnonzero(prices), len(self._cases)
        proved = float(prices[counted] @ self._least_sums[tuple(self._pairs[counted].T)])
        saved = prices[counted] @ np.array([self._pair_savings[pair] for pair in counted]).reshape(len(counted), n)
        if len(of_tangents):
            constant, slopes = self._tangents.mixed(of_tangents, fits)
            saved_by_weight = np.maximum(reply.price - slopes, 0.0) * self._limits
            proved += constant + reply.price - float(saved_by_weight[n:].sum())
            saved = saved + saved_by_weight[:n]
        free = np.delete(saved, [*branch.chosen, *branch.left_out])
        others = min(self._size - len(branch.chosen), len(free))
        return proved - float(saved[list(branch.chosen)].sum() + np.sort(free)[len(free) - others :].sum())
