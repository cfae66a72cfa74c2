"""All forms at once as one mixed-integer program for `scipy.optimize.milp`: the worst of them is minimised.

A program as in `formulations.direct` for every form, side by side; a variable t that is at least each one's value; and
for every case that not more than one form has it. Where forms may share some cases, o_x says for each pair whether they
share x, and these sum to the overlap at most.
"""

import itertools
from typing import Any

import numpy as np
from scipy import optimize, sparse

from formulations.direct import IMPOSSIBLE, LIMIT_REACHED, SOLVED, SelectionArrays, selection_arrays
from formulations.epigraph import selected_test
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import BackendFailure, Infeasible, ProblemError
from rposst_opt.problem import Problem


def forms_by_milp(
    problem: Problem, count: int, overlap: int, time_limit_seconds: float | None = None
) -> tuple[list[EfficientTest], float]:
    """The forms, and what the worst of them cannot be below."""
    stated = problem.stated
    arrays = selection_arrays(stated)
    outcome = _solved(arrays, count, overlap, time_limit_seconds)
    if outcome.status in IMPOSSIBLE:
        raise Infeasible(f"there are no {count} tests that share at most {overlap} cases and keep all rules.")
    if outcome.status not in (SOLVED, LIMIT_REACHED):
        raise BackendFailure(f"SciPy's milp could not solve the program of all forms: {outcome.message}")
    if outcome.x is None:
        raise ProblemError("no forms were found within the time: give more.")
    width = len(arrays.cost)
    tests = [_test(stated, arrays, outcome.x[form * width : (form + 1) * width]) for form in range(count)]
    bound = max(float(outcome.mip_dual_bound) * arrays.epigraph.unit, problem.pieces.minimum())
    return [problem.from_stated(test) for test in tests], bound


def _test(stated: Problem, arrays: SelectionArrays, values: np.ndarray) -> EfficientTest:
    chosen, weights = np.split(values[: len(arrays.choosable) + len(arrays.cases)], [len(arrays.choosable)])
    return selected_test(
        stated,
        dict(zip(arrays.choosable.tolist(), chosen, strict=True)),
        dict(zip(arrays.cases.tolist(), weights, strict=True)),
    )


def _solved(arrays: SelectionArrays, count: int, overlap: int, time_limit_seconds: float | None) -> Any:
    """Have the program of all forms solved."""
    width, n = len(arrays.cost), len(arrays.choosable)
    pairs = list(itertools.combinations(range(count), 2)) if overlap else []
    n_shared = n * len(pairs)
    total = count * width + n_shared + 1  # all forms, o of every pair, and t
    last = np.ones((count, 1))
    values = sparse.hstack(
        [-sparse.block_diag([arrays.cost[None]] * count), sparse.csr_array((count, n_shared)), sparse.csr_array(last)]
    )
    each = sparse.hstack(
        [sparse.block_diag([arrays.rows] * count), sparse.csr_array((count * len(arrays.low), n_shared + 1))]
    )
    blocks = [
        (each, np.tile(arrays.low, count), np.tile(arrays.high, count)),
        (values, np.zeros(count), np.full(count, np.inf)),
    ]
    blocks += _apart(width, n, count, pairs, overlap, total)
    options: dict[str, Any] = {"mip_rel_gap": 0.0} | (
        {} if time_limit_seconds is None else {"time_limit": time_limit_seconds}
    )
    return optimize.milp(
        np.append(np.zeros(total - 1), 1.0),
        integrality=np.concatenate([np.tile(arrays.integer, count), np.zeros(n_shared + 1)]),
        bounds=optimize.Bounds(
            np.concatenate([np.tile(arrays.lower, count), np.zeros(n_shared), [-np.inf]]),
            np.concatenate([np.tile(arrays.upper, count), np.ones(n_shared), [np.inf]]),
        ),
        constraints=optimize.LinearConstraint(
            sparse.csr_array(sparse.vstack([rows for rows, _, _ in blocks])),
            np.concatenate([low for _, low, _ in blocks]),
            np.concatenate([high for _, _, high in blocks]),
        ),
        options=options,
    )


Block = tuple[sparse.sparray, np.ndarray, np.ndarray]


def _apart(width: int, n: int, count: int, pairs: list[tuple[int, int]], overlap: int, total: int) -> list[Block]:
    """That forms share no cases, or not more than are allowed."""
    cases = np.arange(n)
    if not overlap:
        places = np.concatenate([form * width + cases for form in range(count)])
        rows = sparse.csr_array((np.ones(n * count), (np.tile(cases, count), places)), shape=(n, total))
        return [(rows, np.full(n, -np.inf), np.ones(n))]
    blocks = []
    for number, (one, other) in enumerate(pairs):
        shared = count * width + number * n + cases
        places = np.concatenate([one * width + cases, other * width + cases, shared])
        signs = np.repeat([1.0, 1.0, -1.0], n)
        rows = sparse.csr_array((signs, (np.tile(cases, 3), places)), shape=(n, total))
        blocks.append((rows, np.full(n, -np.inf), np.ones(n)))
        amount = sparse.csr_array((np.ones(n), (np.zeros(n, dtype=int), shared)), shape=(1, total))
        blocks.append((amount, np.full(1, -np.inf), np.full(1, float(overlap))))
    return blocks
