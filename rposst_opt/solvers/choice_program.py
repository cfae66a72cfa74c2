"""The linear program of a choice of cases in parts, as HiGHS solves it, branch by branch.

Variables    0 ≤ y_x ≤ 1, how much of case x is chosen; losses Δ_s ≥ 0; the objective t; and where weights have
             limits, weights w_x ≤ u_x, of the cases and then the required ones
Constraints  Σ y ≤ m; Σ w = 1 and w_x ≤ u_x y_x; and whatever rows are added
Objective    minimise t

A branch begins with the basis that the branch which it was divided from has ended with: few pivots lead from there.
"""

from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray, IntArray

MOST_ITERATIONS = 3_000  # of the simplex method, for one program: it may be lost among equal vertices


class Basis(NamedTuple):
    """Where the simplex method has ended: the status of every column and row, by HiGHS's numbers."""

    columns: NDArray[np.int8]
    rows: NDArray[np.int8]


class Reply(NamedTuple):
    """What HiGHS says: the choice in parts, losses, the objective, and multipliers of all rows that were added."""

    choice: FloatArray
    losses: FloatArray
    value: float
    multipliers: FloatArray
    is_solved: bool
    iterations: int
    weights: FloatArray  # of the cases and then the required ones; none where weights have no limits
    price: float  # of all weight
    basis: Basis | None


class Side(Enum):
    """What is decided of a case in a branch."""

    CHOSEN = 0
    LEFT_OUT = 1


class Branch(NamedTuple):
    """All choices with some cases and without others, by their places in the program, and a bound of them."""

    bound: float
    number: int
    chosen: tuple[int, ...]
    left_out: tuple[int, ...]
    step: "Step | None" = None
    basis: Basis | None = None  # to begin with: few pivots lead from a branch to those that it is divided into


class Step(NamedTuple):
    """What made a branch: of a program of this value, a case that was chosen in part is chosen, or left out."""

    value: float
    side: Side
    part: float


class Row(NamedTuple):
    """A constraint of the program: at least so much, at these variables with these coefficients."""

    least: float
    places: IntArray
    coefficients: FloatArray


class ChoiceProgram:
    """Least t with t ≥ α · Δ for every answer, and (1) for every pair; HiGHS goes on from its last basis."""

    def __init__(self, n_cases: int, n_scenarios: int, size: int, rows: list[Row], limits: FloatArray) -> None:
        import highspy

        self._n_cases, self._infinity = n_cases, highspy.kHighsInf
        self._value = n_cases + n_scenarios
        self._rows, self._n_taken = rows, 0  # which others add to
        self._model = highspy.Highs()
        self._model.silent()
        self._model.setOptionValue("parallel", "off")
        self._model.setOptionValue("simplex_iteration_limit", MOST_ITERATIONS)
        self._optimal = highspy.HighsModelStatus.kOptimal
        n_variables = self._value + 1 + len(limits)
        low, high = np.zeros(n_variables), np.full(n_variables, self._infinity)
        high[:n_cases], high[self._value + 1 :] = 1.0, limits
        self._model.addVars(n_variables, low, high)
        self._model.changeColCost(self._value, 1.0)
        self._add(Row(-float(size), np.arange(n_cases), np.full(n_cases, -1.0)))
        self._n_begun = 1  # rows that are there from the beginning
        if len(limits):
            weights = self._value + 1 + np.arange(len(limits))
            self._model.addRow(1.0, 1.0, len(weights), weights.astype(np.int32), np.ones(len(weights)))
            for case in range(n_cases):
                self._add(Row(0.0, np.array([case, weights[case]]), np.array([limits[case], -1.0])))
            self._n_begun += 1 + n_cases

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
        if branch.basis is not None:
            self._begin_at(branch.basis)
        self._model.run()
        solution = self._model.getSolution()
        values, multipliers = np.array(solution.col_value), np.array(solution.row_dual)
        is_solved = self._model.getModelStatus() == self._optimal
        return Reply(
            choice=values[: self._n_cases],
            losses=values[self._n_cases : self._value],
            value=float(values[self._value]),
            multipliers=multipliers[self._n_begun :],
            is_solved=is_solved,
            iterations=int(self._model.getInfo().simplex_iteration_count),
            weights=values[self._value + 1 :],
            price=float(multipliers[1]) if self._n_begun > 1 else 0.0,
            basis=self._basis() if is_solved else None,
        )

    def _basis(self) -> Basis:
        basis = self._model.getBasis()
        return Basis(*(np.array([int(s) for s in each], np.int8) for each in (basis.col_status, basis.row_status)))

    def _begin_at(self, basis: Basis) -> None:
        """Go on from here; rows that came later begin with their slacks in the basis."""
        import highspy

        statuses = [highspy.HighsBasisStatus(i) for i in range(5)]
        begun = highspy.HighsBasis()
        begun.col_status = [statuses[i] for i in basis.columns.tolist()]
        later = self._n_begun + self._n_taken - len(basis.rows)
        begun.row_status = [statuses[i] for i in basis.rows.tolist()] + later * [highspy.HighsBasisStatus.kBasic]
        begun.valid = True
        self._model.setBasis(begun)
