r"""The same mixed-integer program as in `formulations.milp`, as sparse arrays for `scipy.optimize.milp`.

No modelling language stands between: the leanest exact route, and a second, independent statement of the same program.
With z = (y, w, score, ℓ, v, u) the rows are, from the top:

    Σ w = 1                                        one row
    Σ y = m                                        one row
    y_x - w_x ≥ 0                                  a row per case that may be chosen
    score_j - Σ_x A[x, j] w_x = 0                  a row per policy
    ℓ_s - c_p1 score_{j_s} ≥ c_p0 - c_p1 b_s       a row per piece and scenario
    v_i + u_is - ℓ_s ≥ 0                           a row per part of the measure and scenario; without u_is if η_i = 0

and a part with η_i = 1 costs λ_i Ψ_s on ℓ_s, with neither v nor u.
"""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from formulations.epigraph import Epigraph, make_epigraph, selected_test
from rposst_opt.arrays import FloatArray
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Stats
from rposst_opt.errors import BackendFailure
from rposst_opt.problem import Need, Problem

SOLVED, LIMIT_REACHED = 0, 1  # SciPy's status


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
    losses: NDArray[np.int64]  # the places of ℓ in z
    epigraph: Epigraph


def selection_arrays(problem: Problem) -> SelectionArrays:
    """State the whole selection."""
    epigraph = make_epigraph(problem)
    choosable = np.array(problem.selectable_cases, dtype=np.int64)
    cases = np.array(problem.eligible_cases, dtype=np.int64)
    p, d = epigraph.results.shape[1], len(epigraph.full_scores)
    tails = [(share, eta) for share, eta in zip(epigraph.shares, epigraph.tail_fractions, strict=True) if eta < 1]
    excesses = [(share, eta) for share, eta in tails if eta > 0]
    sizes = [len(choosable), len(cases), p, d, len(tails), d * len(excesses)]
    y, w, score, loss, level, excess = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])

    def block(parts: dict[int, sparse.sparray], height: int) -> sparse.sparray:
        """A row of blocks: the parts by the number of their variables, zeros elsewhere."""
        widths = [parts.get(i, sparse.csr_array((height, size))) for i, size in enumerate(sizes)]
        return sparse.hstack(widths)

    ones, scenario = sparse.csr_array, sparse.eye_array(d)
    scenario_of_policy = sparse.csr_array((np.ones(d), (np.arange(d), epigraph.policies)), shape=(d, p))
    links = sparse.csr_array(
        (np.ones(len(choosable)), (np.arange(len(choosable)), np.searchsorted(cases, choosable))),
        shape=(len(choosable), len(cases)),
    )
    blocks = [
        (block({1: ones(np.ones((1, len(cases))))}, 1), np.ones(1), np.ones(1)),
        (block({0: ones(np.ones((1, len(choosable))))}, 1), np.full(1, problem.size), np.full(1, problem.size)),
        (
            block({0: sparse.eye_array(len(choosable)), 1: -links}, len(choosable)),
            np.zeros(len(choosable)),
            np.full(len(choosable), np.inf),
        ),
        (block({1: -ones(epigraph.results[cases].T), 2: sparse.eye_array(p)}, p), np.zeros(p), np.zeros(p)),
    ]
    for c0, c1, _ in epigraph.pieces.coefficients:
        rows = block({2: -c1 * scenario_of_policy, 3: scenario}, d)
        blocks.append((rows, c0 - c1 * epigraph.full_scores, np.full(d, np.inf)))
    for i, (_, eta) in enumerate(tails):
        parts: dict[int, sparse.sparray] = {
            3: -scenario,
            4: ones((np.ones(d), (np.arange(d), np.full(d, i))), shape=(d, len(tails))),
        }
        if eta > 0:
            place = sum(other > 0 for _, other in tails[:i])
            parts[5] = ones((np.ones(d), (np.arange(d), place * d + np.arange(d))), shape=(d, sizes[5]))
        blocks.append((block(parts, d), np.zeros(d), np.full(d, np.inf)))

    cost = np.zeros(sum(sizes))
    cost[level] = [share for share, _ in tails]
    for i, (share, eta) in enumerate(excesses):
        cost[excess[i * d : (i + 1) * d]] = share * epigraph.probabilities / eta
    for share, eta in zip(epigraph.shares, epigraph.tail_fractions, strict=True):
        if eta == 1:
            cost[loss] += share * epigraph.probabilities
    lower, upper = np.full(sum(sizes), -np.inf), np.full(sum(sizes), np.inf)
    lower[np.concatenate([y, w, score, excess])] = 0.0
    upper[np.concatenate([y, w, score])] = 1.0
    lower[np.concatenate([loss, level])], upper[np.concatenate([loss, level])] = epigraph.loss_range()
    integer = np.zeros(sum(sizes), dtype=np.int64)
    integer[y] = 1
    return SelectionArrays(
        cost=cost,
        rows=sparse.csr_array(sparse.vstack([rows for rows, _, _ in blocks])),
        low=np.concatenate([low for _, low, _ in blocks]),
        high=np.concatenate([high for _, _, high in blocks]),
        lower=lower,
        upper=upper,
        integer=integer,
        cases=cases,
        choosable=choosable,
        losses=loss,
        epigraph=epigraph,
    )


def _run_milp(arrays: SelectionArrays, time_limit_seconds: float | None, *, presolve: bool) -> Any:
    options: dict[str, Any] = {"mip_rel_gap": 0.0, "presolve": presolve}
    if time_limit_seconds is not None:
        options["time_limit"] = time_limit_seconds
    return optimize.milp(
        arrays.cost,
        integrality=arrays.integer,
        bounds=optimize.Bounds(arrays.lower, arrays.upper),
        constraints=optimize.LinearConstraint(arrays.rows, arrays.low, arrays.high),
        options=options,
    )


@dataclass(frozen=True, kw_only=True)
class DirectMilp:
    """Solve the whole selection with `scipy.optimize.milp`."""

    @property
    def capabilities(self) -> Capabilities:
        """What the program states."""
        return Capabilities(
            method="one mixed-integer program as arrays, by SciPy's HiGHS",
            handles=frozenset({Need.POLYHEDRAL_LOSS, Need.CVAR_MIXTURE}),
            finds_optimum=True,
            proves="the optimum, by the solver's own branch and bound",
            tolerance=1e-6,
            requires=("scipy",),
        )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """State the program and have it solved."""
        started = time.perf_counter()
        arrays = selection_arrays(problem)
        built = time.perf_counter()
        outcome = _run_milp(arrays, budget.time_limit_seconds, presolve=True)
        if outcome.status not in (SOLVED, LIMIT_REACHED):
            # SciPy's HiGHS has ended small programs of this shape with "solve error", and solves them unsimplified.
            outcome = _run_milp(arrays, budget.time_limit_seconds, presolve=False)
        stats = Stats(build_seconds=built - started, solve_seconds=time.perf_counter() - built)
        if outcome.status not in (SOLVED, LIMIT_REACHED):
            raise BackendFailure(f"SciPy's milp could not solve the program: {outcome.message}")
        limit = Limit.TIME if outcome.status == LIMIT_REACHED else None
        dual_bound = outcome.mip_dual_bound
        bound = -np.inf if dual_bound is None else float(dual_bound) * arrays.epigraph.unit
        if outcome.x is None:
            return Candidate(test=None, lower_bound=bound, limit=limit, stats=stats)
        chosen, weights = np.split(outcome.x[: len(arrays.choosable) + len(arrays.cases)], [len(arrays.choosable)])
        return Candidate(
            test=selected_test(
                problem,
                dict(zip(arrays.choosable.tolist(), chosen, strict=True)),
                dict(zip(arrays.cases.tolist(), weights, strict=True)),
            ),
            lower_bound=max(bound, problem.loss.pieces.minimum()),
            claimed_objective=float(outcome.fun) * arrays.epigraph.unit,
            claimed_losses=outcome.x[arrays.losses] * arrays.epigraph.unit,
            limit=limit,
            stats=stats,
        )
