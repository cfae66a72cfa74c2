"""Who climbs in a local search: one set of cases, of which one is swapped for another as long as that helps."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rposst_opt.arrays import BoolArray, FloatArray, IntArray
from rposst_opt.assembly import Rule
from rposst_opt.problem import Problem
from rposst_opt.solvers.kernels.cut_mixture import make_cut_mixture
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.kernels.swaps import find_swap, price_cases, settle_rows, try_additions
from rposst_opt.solvers.kernels.tuple_game import make_tuple_game

# In units of the largest loss there can be:
TOLERANCE = 1e-11  # to which one tuple is solved
IMPROVEMENT = 1e-9  # a swap must be better by this

DIGITS = 8  # of prices and weights that are told apart
SWAPS_AT_ONCE = 64  # between two looks at the clock


@dataclass(frozen=True, eq=False)
class Found:
    """A set of cases, the required ones first, with its best weights and their objective."""

    rows: IntArray
    weights: FloatArray
    value: float

    @property
    def position(self) -> list[int]:
        """What sets that are equally good are told apart by."""
        return sorted(self.rows.tolist())


def cheapest_first(cases: IntArray, prices: FloatArray) -> IntArray:
    """These cases by price; those that cost the same up to rounding by position."""
    return cases[np.argsort(np.round(prices[cases], DIGITS), kind="stable")]


def heaviest_first(cases: IntArray, weights: FloatArray) -> IntArray:
    """These cases by weight; those that weigh the same up to rounding in the order they come in."""
    return cases[np.argsort(-np.round(weights, DIGITS), kind="stable")]


class Climber:
    """Someone who swaps cases, with cuts and random numbers of their own."""

    def __init__(self, arrays: ProblemArrays, problem: Problem, *, breadth: int, effort: int | None, seed: int) -> None:
        self.arrays, self.breadth = arrays, breadth
        self.effort = math.inf if effort is None else effort
        self.n_fixed, self.n_rows = len(problem.required_cases), problem.n_chosen
        self.rules = problem.choice_rules if problem.rules.choose else ()
        self.required = np.array(problem.required_cases, dtype=np.int64)
        self.selectable = np.array(problem.selectable_cases, dtype=np.int64)
        self.workspace, self.mixture = make_tuple_game(arrays, self.n_rows), make_cut_mixture(arrays)
        self.prices = np.empty(problem.n_cases)
        self.rng = np.random.default_rng(seed)
        self.settled = 0

    @property
    def effort_left(self) -> int:
        """How many sets it may still settle, up to some."""
        return int(min(max(self.effort - self.settled, 0), SWAPS_AT_ONCE))

    @property
    def has_done_enough(self) -> bool:
        """Whether it has settled as many sets as it may."""
        return self.effort_left == 0

    def settle(self, rows: IntArray) -> Found:
        """The best weights of these cases; the mixture and the prices are theirs afterwards."""
        self.settled += 1
        _, value = settle_rows(rows, TOLERANCE, self.arrays, self.workspace, self.mixture)
        price_cases(self.arrays, self.mixture, self.prices)
        return Found(rows.copy(), self.workspace.vectors[1, : len(rows)].copy(), value)

    def grow(self, out_of_time: Callable[[], bool]) -> Found:
        """Add one case at a time, the best one; when time is out or enough is done, the cheapest ones."""
        rows, candidates = self.required, self.selectable
        self.prices.fill(-math.inf)
        while len(rows) < self.n_rows:
            if len(rows):
                self.settle(rows)
                candidates = cheapest_first(np.sort(candidates), self.prices)
            if out_of_time() or self.has_done_enough:
                return self.settle(np.concatenate([rows, candidates[: self.n_rows - len(rows)]]))
            chosen, _, tried = try_additions(rows, candidates, TOLERANCE, self.arrays, self.workspace, self.prices)
            self.settled += tried
            rows, candidates = np.append(rows, candidates[chosen]), np.delete(candidates, chosen)
        return self.settle(rows)

    def climb(self, found: Found, out_of_time: Callable[[], bool]) -> Found:
        """Swap cases as long as that helps."""
        rows = found.rows.copy()
        found = self.settle(rows)
        while True:
            outside = self._outside(rows)
            cheap = outside[self.prices[outside] < found.value - IMPROVEMENT]
            candidates = cheapest_first(cheap, self.prices)[: self.breadth]
            places = self.n_fixed + np.argsort(np.round(found.weights[self.n_fixed :], DIGITS), kind="stable")
            allowed = allowed_swaps(self.rules, rows, places, candidates)
            swap, total, helped = 0, len(places) * len(candidates), 0
            while swap < total and not helped and not (self.has_done_enough or out_of_time()):
                before = swap
                swap, helped = find_swap(
                    rows,
                    places,
                    candidates,
                    allowed,
                    swap,
                    self.effort_left,
                    found.value - IMPROVEMENT,
                    TOLERANCE,
                    self.arrays,
                    self.workspace,
                )
                self.settled += swap - before + helped
            better = self.settle(rows) if helped else found
            if not better.value < found.value:
                return found  # also where rounding has spoiled what looked like help
            found = better

    def kick(self, found: Found) -> IntArray:
        """Swap a few cases at random, for cheap ones rather than for dear ones."""
        self.settle(found.rows)
        rows = found.rows.copy()
        outside = self._outside(rows)
        count = min(len(outside), len(rows) - self.n_fixed, int(self.rng.integers(1, 5)))
        near = cheapest_first(outside, self.prices)[: max(4 * self.breadth, count)]
        places = self.n_fixed + self.rng.choice(len(rows) - self.n_fixed, count, replace=False)
        if not self.rules:
            rows[places] = self.rng.choice(near, count, replace=False)
            return rows
        for place in places:  # one after the other, each for a case that keeps the rules
            near = np.setdiff1d(near, rows)
            fitting = near[allowed_swaps(self.rules, rows, np.array([place]), near)[:, 0]]
            rows[place] = self.rng.choice(fitting) if len(fitting) else rows[place]
        return rows

    def _outside(self, rows: IntArray) -> IntArray:
        """The cases that may be chosen and are not among these, ascending."""
        is_outside = np.full(len(self.prices), True)  # np.setdiff1d would sort, and take ten times as long
        is_outside[rows] = False
        outside: IntArray = self.selectable[is_outside[self.selectable]]
        return outside


def allowed_swaps(rules: Sequence[Rule], rows: IntArray, places: IntArray, candidates: IntArray) -> BoolArray:
    """Whether each candidate may take each of these places of the set; empty if there are no rules."""
    if not rules:
        return np.empty((0, 0), dtype=np.bool_)
    allowed = np.full((len(candidates), len(places)), True)
    for rule in rules:
        numbers = rule.coefficients
        totals = numbers[rows].sum() - numbers[rows[places]][None, :] + numbers[candidates][:, None]
        allowed &= (totals >= rule.low - rule.slack) & (totals <= rule.high + rule.slack)
    return allowed
