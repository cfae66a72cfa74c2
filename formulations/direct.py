r"""The same mixed-integer program as in `formulations.milp`, as sparse arrays for `scipy.optimize.milp`.

No modelling language stands between: the leanest exact route, and a second, independent statement of the same program.
With z = (y, w, score, ℓ, v, u) the rows are, from the top:

    Σ w = 1                                        one row
    Σ y = m                                        one row
    y_x - w_x ≥ 0                                  a row per case that may be chosen
    score_j - Σ_x A[x, j] w_x = 0                  a row per policy
    ℓ_s - c_p1 score_{j_s} ≥ c_p0 - c_p1 b_s       a row per piece and scenario
    v_i + u_is - ℓ_s ≥ 0                           a row per part of the measure and scenario; without u_is if η_i = 0

and a part with η_i = 1 costs λ_i Ψ_s on ℓ_s, with neither v nor u. With a single part and η < 1, v + u_s takes the
place of ℓ_s, which has neither variables nor rows then: HiGHS needs a fifth to two thirds less time.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from formulations.epigraph import Epigraph, make_epigraph, selected_test
from rposst_opt.arrays import FloatArray
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Stats
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import BackendFailure, FalseClaim
from rposst_opt.problem import ASSEMBLY_NEEDS, Need, Problem

TOLERANCE = 1e-6  # of its values, in units of the largest loss
# SciPy lets nobody change HiGHS's tolerance of 1e-7 for costs. Parts of a k-of-N measure may have shares below that,
# and then its optima are wrong by up to a hundredth, in one of fifteen such programs: so costs are in smaller units.
COSTS_IN_ONE = 1e4
SOLVED, LIMIT_REACHED = 0, 1  # SciPy's status
IMPOSSIBLE = {2: "infeasible", 3: "unbounded"}  # every set of cases is a test, and no loss is below its least


class SelectionArrays(NamedTuple):
    """min cost·z subject to low ≤ rows·z ≤ high, lower ≤ z ≤ upper, integers where told."""

    cost: FloatArray
    rows: sparse.csr_array
    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: NDArray[np.int64]
    cases: NDArray[np.int64]  # which case the w stand for, in order
    choosable: NDArray[np.int64]  # which case the y stand for, in order
    losses: list[NDArray[np.int64]]  # places in z, by scenario: ℓ is the sum of what stands there
    epigraph: Epigraph


class _Layout:
    """Which places of z belong to which variables."""

    def __init__(self, problem: Problem, epigraph: Epigraph) -> None:
        self.choosable = np.array(problem.selectable_cases, dtype=np.int64)
        self.cases = np.array(problem.eligible_cases, dtype=np.int64)
        self.n_policies, self.n_scenarios = epigraph.results.shape[1], len(epigraph.full_scores)
        parts = list(zip(epigraph.shares, epigraph.tail_fractions, strict=True))
        self.tails = [(share, eta) for share, eta in parts if eta < 1]
        has_losses = not len(parts) == len(self.tails) == 1
        self.excesses = [(share, eta) for share, eta in self.tails if eta > 0]
        self.sizes = [
            len(self.choosable),
            len(self.cases),
            self.n_policies,
            self.n_scenarios if has_losses else 0,
            len(self.tails),
            self.n_scenarios * len(self.excesses),
        ]
        places = np.split(np.arange(sum(self.sizes)), np.cumsum(self.sizes)[:-1])
        self.y, self.w, self.score, self.loss, self.level, self.excess = places
        self.losses = [self.loss] if has_losses else next(self.in_tails())

    def in_tails(self) -> Iterator[list[NDArray[np.int64]]]:
        """For each part of the measure with a tail, the places of v and u, by scenario: their sum is at least ℓ."""
        excesses = iter(self.excess.reshape(len(self.excesses), self.n_scenarios))
        for level, (_, eta) in zip(self.level, self.tails, strict=True):
            yield [np.full(self.n_scenarios, level), *([next(excesses)] if eta > 0 else [])]


class Part(NamedTuple):
    """What is not zero in a block of rows; ten times as fast to put together as sparse arrays are."""

    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    values: FloatArray


def _table(values: FloatArray, places: NDArray[np.int64]) -> Part:
    """Rows of numbers, each of which belongs to one of these places."""
    rows, columns = np.nonzero(values)
    return Part(rows, places[columns], values[rows, columns])


def _diagonal(values: FloatArray | float, places: NDArray[np.int64]) -> Part:
    """A row for each of these places."""
    return Part(np.arange(len(places)), places, np.broadcast_to(values, len(places)))


Rows = tuple[list[Part], FloatArray, FloatArray]  # a block of rows, with what they are at least and at most


def _put_together(blocks: list[Rows], width: int) -> sparse.csr_array:
    """All blocks, one below the other."""
    ends = np.cumsum([len(low) for _, low, _ in blocks])
    parts = [
        Part(part.rows + end - len(low), part.places, part.values)
        for (block, low, _), end in zip(blocks, ends, strict=True)
        for part in block
    ]
    rows, places, values = (np.concatenate(each) for each in zip(*parts, strict=True))
    return sparse.csr_array((values, (rows, places)), shape=(int(ends[-1]), width))


def selection_arrays(problem: Problem) -> SelectionArrays:
    """State the whole selection."""
    epigraph = make_epigraph(problem)
    layout = _Layout(problem, epigraph)
    blocks = [
        *_choice_rows(problem, epigraph, layout),
        *_loss_rows(epigraph, layout),
        *_tail_rows(layout),
    ]
    width = sum(layout.sizes)
    lower, upper = np.full(width, -np.inf), np.full(width, np.inf)
    lower[np.concatenate([layout.y, layout.w, layout.score, layout.excess])] = 0.0
    upper[np.concatenate([layout.y, layout.w, layout.score])] = 1.0
    for case in problem.required_cases:
        place = layout.w[np.searchsorted(layout.cases, case)]
        lower[place], upper[place] = problem.rules.weight_limits(case)
    bounded = np.concatenate([layout.loss, layout.level])
    lower[bounded], upper[bounded] = epigraph.loss_range()
    integer = np.zeros(width, dtype=np.int64)
    integer[layout.y] = 1
    return SelectionArrays(
        cost=_cost(epigraph, layout),
        rows=_put_together(blocks, width),
        low=np.concatenate([low for _, low, _ in blocks]),
        high=np.concatenate([high for _, _, high in blocks]),
        lower=lower,
        upper=upper,
        integer=integer,
        cases=layout.cases,
        choosable=layout.choosable,
        losses=layout.losses,
        epigraph=epigraph,
    )


def _choice_rows(problem: Problem, epigraph: Epigraph, layout: _Layout) -> Iterator[Rows]:
    """Weights on the simplex, the rules about the choice, weights only where chosen, and the policies' scores."""
    n, p = len(layout.choosable), layout.n_policies
    yield [_table(np.ones((1, len(layout.cases))), layout.w)], np.ones(1), np.ones(1)
    rules = problem.choice_rows
    yield [_table(rules.matrix, layout.y)], rules.low, rules.high
    weights = layout.w[np.searchsorted(layout.cases, layout.choosable)]
    least, most = np.array([problem.rules.weight_limits(int(case)) for case in layout.choosable]).T
    yield [_diagonal(most, layout.y), _diagonal(-1.0, weights)], np.zeros(n), np.full(n, np.inf)
    if least.any():
        yield [_diagonal(-least, layout.y), _diagonal(1.0, weights)], np.zeros(n), np.full(n, np.inf)
    yield [_table(-epigraph.results[layout.cases].T, layout.w), _diagonal(1.0, layout.score)], np.zeros(p), np.zeros(p)


def _loss_rows(epigraph: Epigraph, layout: _Layout) -> Iterator[Rows]:
    """Losses above every affine piece."""
    for c0, c1, _ in epigraph.pieces.coefficients:
        rows = [_diagonal(-c1, layout.score[epigraph.policies])]
        rows += [_diagonal(1.0, places) for places in layout.losses]
        yield rows, c0 - c1 * epigraph.full_scores, np.full(layout.n_scenarios, np.inf)


def _tail_rows(layout: _Layout) -> Iterator[Rows]:
    """What a part of the measure must not let the losses exceed."""
    if not len(layout.loss):
        return
    d = layout.n_scenarios
    for tail in layout.in_tails():
        rows = [_diagonal(-1.0, layout.loss), *(_diagonal(1.0, places) for places in tail)]
        yield rows, np.zeros(d), np.full(d, np.inf)


def _cost(epigraph: Epigraph, layout: _Layout) -> FloatArray:
    d, cost = layout.n_scenarios, np.zeros(sum(layout.sizes))
    cost[layout.level] = [share for share, _ in layout.tails]
    for i, (share, eta) in enumerate(layout.excesses):
        cost[layout.excess[i * d : (i + 1) * d]] = share * epigraph.probabilities / eta
    for share, eta in zip(epigraph.shares, epigraph.tail_fractions, strict=True):
        if eta == 1:
            cost[layout.loss] += share * epigraph.probabilities
    return cost


def _run_milp(arrays: SelectionArrays, time_limit_seconds: float | None, *, presolve: bool) -> Any:
    options: dict[str, Any] = {"mip_rel_gap": 0.0, "presolve": presolve}
    if time_limit_seconds is not None:
        options["time_limit"] = time_limit_seconds
    outcome = optimize.milp(
        COSTS_IN_ONE * arrays.cost,
        integrality=arrays.integer,
        bounds=optimize.Bounds(arrays.lower, arrays.upper),
        constraints=optimize.LinearConstraint(arrays.rows, arrays.low, arrays.high),
        options=options,
    )
    for name in ("fun", "mip_dual_bound"):
        if outcome.get(name) is not None:
            outcome[name] /= COSTS_IN_ONE
    return outcome


def _test_of(problem: Problem, arrays: SelectionArrays, outcome: Any) -> EfficientTest:
    """The test in a solution of the program."""
    chosen, weights = np.split(outcome.x[: len(arrays.choosable) + len(arrays.cases)], [len(arrays.choosable)])
    return selected_test(
        problem,
        dict(zip(arrays.choosable.tolist(), chosen, strict=True)),
        dict(zip(arrays.cases.tolist(), weights, strict=True)),
    )


def _contradicts_itself(problem: Problem, arrays: SelectionArrays, outcome: Any) -> bool:
    """Whether it calls a value optimal that its own test is better than."""
    if outcome.status != SOLVED:
        return False
    objective = problem.objective(_test_of(problem, arrays, outcome))
    return bool(outcome.fun * arrays.epigraph.unit > objective + problem.allowance(TOLERANCE))


@dataclass(frozen=True, kw_only=True)
class DirectMilp:
    """Solve the whole selection with `scipy.optimize.milp`."""

    @property
    def capabilities(self) -> Capabilities:
        """What the program states."""
        return Capabilities(
            method="one mixed-integer program as arrays, by SciPy's HiGHS",
            handles=frozenset({Need.POLYHEDRAL_LOSS, Need.CVAR_MIXTURE, *ASSEMBLY_NEEDS}),
            finds_optimum=True,
            proves="the optimum, by the solver's own branch and bound",
            tolerance=TOLERANCE,
            requires=("scipy",),
        )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """State the program and have it solved."""
        started = time.perf_counter()
        arrays = selection_arrays(problem)
        built = time.perf_counter()
        outcome = _run_milp(arrays, budget.time_limit_seconds, presolve=True)
        if outcome.status not in (SOLVED, LIMIT_REACHED) or _contradicts_itself(problem, arrays, outcome):
            # SciPy's HiGHS has ended small programs of this shape with "solve error", or with a value that its own test
            # does not have, and solves them unsimplified.
            outcome = _run_milp(arrays, budget.time_limit_seconds, presolve=False)
        stats = Stats(build_seconds=built - started, solve_seconds=time.perf_counter() - built)
        if outcome.status in IMPOSSIBLE:
            claim = f"it calls the program {IMPOSSIBLE[outcome.status]}"
            raise FalseClaim(f"SciPy's milp claims that there is no best test: {claim}.")
        if outcome.status not in (SOLVED, LIMIT_REACHED):
            raise BackendFailure(f"SciPy's milp could not solve the program: {outcome.message}")
        limit = Limit.TIME if outcome.status == LIMIT_REACHED else None
        dual_bound = outcome.mip_dual_bound
        bound = -np.inf if dual_bound is None else float(dual_bound) * arrays.epigraph.unit
        if outcome.x is None:
            return Candidate(test=None, lower_bound=bound, limit=limit, stats=stats)
        return Candidate(
            test=_test_of(problem, arrays, outcome),
            lower_bound=max(bound, problem.pieces.minimum()),
            claimed_objective=float(outcome.fun) * arrays.epigraph.unit,
            claimed_losses=sum(outcome.x[places] for places in arrays.losses) * arrays.epigraph.unit,
            limit=limit,
            stats=stats,
        )
