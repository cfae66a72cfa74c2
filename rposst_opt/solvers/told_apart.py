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
the cases together determine the full score. Where every pair is told apart by many cases it says nothing, and ends at
once. Where it says something, it is made whole step by step: the case that is chosen most nearly by half is chosen in
one branch and left out in the other, and the branches with the least bounds are gone on with, a few side by side. Of
cases that tell the same policies apart, one stands for all: a test that has several of them tells no more apart.

*What is proved* does not rest on the program's arithmetic. With answers α of the antagonist, mixed, and multipliers μ
of pairs that sum to at most α_s at every scenario, a test has an objective of at least Σ_s α_s Δ_s, and so of at least

.. math:: \sum_{ij} \mu_{ij} C_{ij} \Bigl(1 - \sum_{x \in H_{ij}} y_x\Bigr)

of which the least over all choices of m cases is that of the m cases with the largest sums of μ C; of a branch, that of
its chosen cases and the best others.
"""

import heapq
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import BoolArray, FloatArray, IntArray
from rposst_opt.problem import Problem

PAIRS_AT_ONCE = 400  # that join the program, those it breaks most
MOST_ROWS = 3_000
PROVING_ROWS = 1_000  # after which something must be proved
MOST_SCENARIOS = 2_000  # there are as many pairs as the square of this,
MOST_NUMBERS = 20_000_000  # and as many numbers as the square of the policies, times the cases
MOST_ITERATIONS = 3_000  # of the simplex method, for one program: it may be lost among equal vertices
VIOLATED = 1e-7  # in units of the largest loss, like all here
SLACK = 4e-12  # rounding
WHOLE = 1e-6  # so near to zero or one a case is left out or chosen
MOST_BRANCHES = 100_000
SIDE_BY_SIDE = 4  # branches, however many threads there are, so that the bound does not depend on them


class Reply(NamedTuple):
    """What HiGHS says: the choice in parts, losses, the objective, and multipliers of all rows but the first."""

    choice: FloatArray
    losses: FloatArray
    value: float
    multipliers: FloatArray
    is_solved: bool
    iterations: int


class Branch(NamedTuple):
    """All choices with some cases and without others, by their places in the program, and a bound of them."""

    bound: float
    number: int
    chosen: tuple[int, ...]
    left_out: tuple[int, ...]


class Row(NamedTuple):
    """A constraint of the program: at least so much, at these variables with these coefficients."""

    least: float
    places: IntArray
    coefficients: FloatArray


RunAll = Callable[[Callable[["_Program", Branch], Reply], "list[_Program]", list[Branch]], Iterable[Reply]]


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
        self._pair_members: list[BoolArray] = []
        self._is_answer: list[bool] = []  # of every row of the program after the first
        self._rows: list[Row] = []
        self._programs: list[_Program] = []  # all with the same rows, one for each branch that is solved at a time
        self._open: list[Branch] = []  # a heap, the least bound first
        self._least_whole = np.inf  # of the choices that were found without parts

    def step(self, run_all: RunAll = map) -> None:
        """Solve the programs of a few branches; take their bounds, and add what they break, or else branch.

        Parameters
        ----------
        run_all : callable
            Like `map`, and as that by default; the `map` of a pool solves them at the same time.
        """
        if not self._programs:
            self._begin()
            return
        branches = [heapq.heappop(self._open) for _ in range(min(SIDE_BY_SIDE, len(self._open)))]
        replies = list(run_all(_Program.solve, self._programs, branches))
        self.work += sum(len(self._is_answer) * (90.0 * r.iterations + 60.0 * len(r.choice)) for r in replies)
        proved = [self._proved(reply.multipliers, branch) for branch, reply in zip(branches, replies, strict=True)]
        for branch, reply, value in zip(branches, replies, proved, strict=True):
            self._go_on(branch, reply, max(branch.bound, self._least + value - SLACK))
        least = min(self._open[0].bound if self._open else np.inf, self._least_whole)
        self.bound = max(self.bound, least)
        self.is_settled = not self._open or self._least_whole <= least or self._numbered > MOST_BRANCHES

    def _go_on(self, branch: Branch, reply: Reply, bound: float) -> None:
        """Add what a reply breaks, or else branch."""
        if reply.is_solved and self._add_what_is_broken(reply):
            self._put(bound, branch.chosen, branch.left_out)
        elif not branch.number and bound <= self._least:
            self._least_whole = bound  # nothing is proved of all choices, and branching would begin with nothing
        else:
            self._divide(bound, branch, reply.choice)

    @cached_property
    def _cases(self) -> IntArray:
        """The selectable cases, one of those with the same results."""
        cases = np.array(self._problem.selectable_cases, dtype=np.int64)
        return cases[np.sort(np.unique(self._problem.results[cases], axis=0, return_index=True)[1])]

    def _add_what_is_broken(self, reply: Reply) -> int:
        """Add pairs and an answer that the reply breaks, as long as there are not too many; how many."""
        if len(self._is_answer) > (MOST_ROWS if self.bound > self._least else PROVING_ROWS):
            return 0
        losses = np.maximum(reply.losses, 0.0)  # HiGHS lets them fall below zero, by its tolerance
        added, answer = self._add_pairs(reply.choice, losses), self._answer(losses)
        if answer @ losses > reply.value + VIOLATED:
            self._add_answer(answer)
            added += 1
        return added

    def _divide(self, bound: float, branch: Branch, choice: FloatArray) -> None:
        """Choose a case in one branch and leave it out in another; where all are whole, the branch is done."""
        halves = np.round(np.minimum(choice, 1.0 - choice), 9)
        case = int(np.argmax(halves))
        if halves[case] <= WHOLE:
            self._least_whole = min(self._least_whole, bound)
            return
        self._put(bound, (*branch.chosen, case), branch.left_out)
        self._put(bound, branch.chosen, (*branch.left_out, case))

    def _put(self, bound: float, chosen: tuple[int, ...], left_out: tuple[int, ...]) -> None:
        """Keep a branch for later; of several with one bound the first comes first."""
        heapq.heappush(self._open, Branch(bound, self._numbered, chosen, left_out))
        self._numbered += 1

    def _begin(self) -> None:
        """Start with what equal parts of all cases leave not told apart; if that is nothing, there is no bound here."""
        self._programs = [
            _Program(len(self._cases), self._n_scenarios, self._size, self._rows) for _ in range(SIDE_BY_SIDE)
        ]
        nothing = np.zeros(self._n_scenarios)
        self._add_answer(self._answer(nothing))
        evenly = np.full(len(self._cases), self._size / len(self._cases))
        self.is_settled = self._add_pairs(evenly, nothing) == 0
        self._put(self._least, (), ())

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
        self._is_answer.append(True)

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
        members, least_sum = self._members(low, high), float(self._least_sums[low, high])
        cases = np.flatnonzero(members)
        places = np.append(cases, len(self._cases) + np.array([low, high]))
        self._rows.append(Row(least_sum, places, np.append(np.full(len(cases), least_sum), [1.0, 1.0])))
        self._pair_members.append(members)
        self._is_answer.append(False)

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

    def _members(self, low: int, high: int) -> BoolArray:
        """Which of the selectable cases are in H_ij, for two scenarios."""
        one, other = self._problem.scenarios.policies[[low, high]]
        results = self._problem.results[self._cases]
        members: BoolArray = results[:, other] > results[:, one]
        return members

    @cached_property
    def _least_sums(self) -> FloatArray:
        """C_ij of all pairs of scenarios of one target, less what both lose at least, in units of the largest loss."""
        scenarios, pieces = self._problem.scenarios, self._problem.pieces
        full, targets = scenarios.full_scores, scenarios.target_rows
        apart = np.maximum(full[None, :] - full[:, None], 0.0)
        slopes = np.minimum(pieces.slope(apart / 2), -pieces.slope(-apart / 2)).ravel()
        tilted = slopes * apart.ravel() - pieces.conjugate(slopes) - pieces.conjugate(-slopes)
        sums = np.where(slopes > 0, tilted, 0.0).reshape(apart.shape) / self._problem.unit - 2 * self._least
        return np.where((apart > 0) & (targets[:, None] == targets[None, :]), np.maximum(sums, 0.0), 0.0)

    def _proved(self, multipliers: FloatArray, branch: Branch) -> float:
        """What these multipliers prove of every choice in a branch, whoever has found them."""
        is_answer = np.array(self._is_answer)
        shares = np.maximum(multipliers[is_answer], 0.0)
        if not shares.sum() > 0:
            return 0.0
        tail_weights = (shares / shares.sum()) @ np.array(self._answers)
        prices = np.maximum(multipliers[~is_answer], 0.0)
        used = np.bincount(self._pairs.ravel(), np.repeat(prices, 2), self._n_scenarios)
        fits = np.minimum(1.0, tail_weights / np.where(used > 0, used, 1.0))
        prices = prices * fits[self._pairs].min(axis=1)
        counted = np.flatnonzero(prices)
        worth = prices[counted] * self._least_sums[tuple(self._pairs[counted].T)]
        saved = worth @ np.array([self._pair_members[pair] for pair in counted]).reshape(len(counted), len(self._cases))
        free = np.delete(saved, [*branch.chosen, *branch.left_out])
        others = min(self._size - len(branch.chosen), len(free))
        return float(worth.sum() - saved[list(branch.chosen)].sum() - np.sort(free)[len(free) - others :].sum())


class _Program:
    """Least t with t ≥ α · Δ for every answer, and (1) for every pair; HiGHS goes on from its last basis."""

    def __init__(self, n_cases: int, n_scenarios: int, size: int, rows: list[Row]) -> None:
        import highspy

        self._n_cases, self._infinity = n_cases, highspy.kHighsInf
        self._value = n_cases + n_scenarios
        self._rows, self._n_taken = rows, 0  # which others add to
        self._model = highspy.Highs()
        self._model.silent()
        self._model.setOptionValue("parallel", "off")
        self._model.setOptionValue("simplex_iteration_limit", MOST_ITERATIONS)
        self._optimal = highspy.HighsModelStatus.kOptimal
        low, high = np.zeros(self._value + 1), np.full(self._value + 1, self._infinity)
        high[:n_cases] = 1.0
        self._model.addVars(self._value + 1, low, high)
        self._model.changeColCost(self._value, 1.0)
        self._add(Row(-float(size), np.arange(n_cases), np.full(n_cases, -1.0)))

    def _add(self, row: Row) -> None:
        least, places, coefficients = row
        self._model.addRow(least, self._infinity, len(places), places.astype(np.int32), coefficients)

    def solve(self, branch: Branch) -> Reply:
        """The least objective of a branch, or what is known of it after so many iterations."""
        for row in self._rows[self._n_taken :]:
            self._add(row)
        self._n_taken = len(self._rows)
        low, high = np.zeros(self._n_cases), np.ones(self._n_cases)
        low[list(branch.chosen)], high[list(branch.left_out)] = 1.0, 0.0
        self._model.changeColsBounds(self._n_cases, np.arange(self._n_cases, dtype=np.int32), low, high)
        self._model.run()
        solution = self._model.getSolution()
        values = np.array(solution.col_value)
        choice, losses = values[: self._n_cases], values[self._n_cases : self._value]
        is_solved = self._model.getModelStatus() == self._optimal
        iterations = int(self._model.getInfo().simplex_iteration_count)
        return Reply(choice, losses, float(values[self._value]), np.array(solution.row_dual[1:]), is_solved, iterations)
