r"""Which weights do best against cuts? The linear program that all cutting planes of this package have in the middle.

.. math:: \min_w \max_k \sum_x w_x c^k_x \quad\text{s.t.}\quad \sum_x w_x = 1,\ l_x \le w_x \le u_x

Its multipliers are a mixture of the cuts, which shows that no weights do better. Neither has to be trusted: whoever
asks works out anew what the mixture proves.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray

LEAST_TOLERANCE = 1e-10  # HiGHS takes no smaller one


class Reply(NamedTuple):
    """What HiGHS says: the best weights, what they have against the worst cut, and shares of the cuts that show it.

    Weights and shares are distributions even if it could not solve the program, and the weights within their limits.
    """

    weights: FloatArray
    value: float
    shares: FloatArray
    is_solved: bool


class CutProgram:
    """The program with the cuts so far; HiGHS goes on from its last basis.

    Parameters
    ----------
    least_weights, most_weights : ndarray of shape (n_cases,)
    cuts : iterable of ndarray of shape (n_cases,)

    Examples
    --------
    >>> program = CutProgram(np.zeros(2), np.ones(2), [np.array([0.0, 1.0]), np.array([3.0, 0.0])])
    >>> reply = program.solve()
    >>> reply.weights.round(6), reply.shares.round(6), round(reply.value, 6)
    (array([0.25, 0.75]), array([0.75, 0.25]), 0.75)
    """

    def __init__(self, least_weights: FloatArray, most_weights: FloatArray, cuts: Iterable[FloatArray] = ()) -> None:
        import highspy

        self._least, self._most, self._n = least_weights, most_weights, len(least_weights)
        self._infinity, self._optimal = highspy.kHighsInf, highspy.HighsModelStatus.kOptimal
        self._places = np.arange(self._n + 1, dtype=np.int32)
        self._model = highspy.Highs()
        self._model.silent()
        # One thread; but not by the option "threads", for HiGHS solves nothing if others in this process had another.
        self._model.setOptionValue("parallel", "off")
        for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            self._model.setOptionValue(tolerance, LEAST_TOLERANCE)
        low, high = np.append(least_weights, -self._infinity), np.append(most_weights, self._infinity)
        self._model.addVars(self._n + 1, low, high)
        self._model.changeColCost(self._n, 1.0)
        self._model.addRow(1.0, 1.0, self._n, self._places[:-1], np.ones(self._n))
        for cut in cuts:
            self.add(cut)

    def add(self, cut: FloatArray) -> None:
        """One more cut."""
        self._model.addRow(0.0, self._infinity, self._n + 1, self._places, np.append(-cut, 1.0))

    def solve(self) -> Reply:
        """The weights that the cuts leave best."""
        self._model.run()
        solution = self._model.getSolution()
        return Reply(
            _distribution(np.clip(solution.col_value[:-1], self._least, self._most)),
            float(solution.col_value[-1]),
            _distribution(np.maximum(solution.row_dual[1:], 0.0)),
            self._model.getModelStatus() == self._optimal,
        )


def _distribution(values: FloatArray) -> FloatArray:
    """Scale what a solver has left of a distribution; all alike if that is nothing."""
    total = float(values.sum())
    return values / total if total > 0 else np.full(len(values), 1 / len(values))
