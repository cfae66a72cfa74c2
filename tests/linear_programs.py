"""Linear programs for oracles: HiGHS without SciPy's `linprog` around it."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import highspy
import numpy as np

from rposst_opt.arrays import FloatArray

TOLERANCE = 1e-10  # HiGHS takes no smaller one


class LinearOptimum(NamedTuple):
    """The least value, and where it is."""

    fun: float
    x: FloatArray


def linear_program(
    cost: Any,
    *,
    A_ub: Any,
    b_ub: Any,
    A_eq: Any = None,
    b_eq: Any = (),
    bounds: Sequence[tuple[float | None, float | None]] | None = None,
) -> LinearOptimum:
    """Minimise ``cost @ x`` over ``A_ub @ x <= b_ub``, ``A_eq @ x == b_eq`` and bounds, as `linprog` states it.

    Variables are at least zero where nothing is said. A program that cannot be solved fails the test.
    """
    cost, above, equal = np.asarray(cost, dtype=float), np.asarray(b_ub, dtype=float), np.asarray(b_eq, dtype=float)
    limits = [(0.0, None)] * len(cost) if bounds is None else bounds
    table = np.asarray(A_ub, dtype=float) if A_eq is None else np.vstack([A_ub, A_eq]).astype(float)
    rows, columns = np.nonzero(table)
    program = highspy.HighsLp()
    program.num_col_, program.num_row_, program.col_cost_ = len(cost), len(table), cost
    program.col_lower_ = np.array([-np.inf if low is None else low for low, _ in limits])
    program.col_upper_ = np.array([np.inf if high is None else high for _, high in limits])
    program.row_lower_ = np.concatenate([np.full(len(above), -np.inf), equal])
    program.row_upper_ = np.concatenate([above, equal])
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.searchsorted(rows, np.arange(len(table) + 1))
    program.a_matrix_.index_, program.a_matrix_.value_ = columns, table[rows, columns]
    solver = _solver()
    solver.passModel(program)
    solver.run()
    status = solver.getModelStatus()
    assert status == highspy.HighsModelStatus.kOptimal, solver.modelStatusToString(status)
    return LinearOptimum(solver.getInfo().objective_function_value, np.array(solver.getSolution().col_value))


@functools.cache
def _solver() -> highspy.Highs:
    """Made once, which spares a third of a small program's time. Each program that is passed begins from nothing."""
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("parallel", "off")
    for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(tolerance, TOLERANCE)
    return solver
