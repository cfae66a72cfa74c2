r"""Which of many optimal weights are *the* answer?

An optimum need not be unique: results of 0 and 1, rounded ones and few policies make whole faces of weights that are
equally good. Which of them a method runs into depends on the last bit of something, and so on the machine. The answer
is therefore defined by the problem alone: of the weights with the least objective those with the least mean loss, and
of these the one with the least sum of squares, which is unique:

.. math::

    \min_w\ \sum_x w_x^2 \quad\text{s.t.}\quad
    \rho(w) \le v + \epsilon,\quad \text{mean}(w) \le \bar v + \epsilon,\quad w \in \triangle

with v and :math:`\bar v` the least values and ε a slack that rounding does not reach. The solution moves with the data
no more than they do, times the steepness of the face's edges; nothing in it jumps.

Both constraints are suprema of cuts (`Problem.cut`), so cutting planes solve it: the weights that the cuts known so far
allow are found as a least-distance problem, :math:`\min |w|` subject to :math:`G w \ge h`, which is a non-negative
least-squares problem of the same size (Lawson and Hanson, *Solving Least Squares Problems*, chapter 23).
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays, with_mean_alone, with_share_of_mean
from rposst_opt.solvers.kernels.tuple_game import COMPLETE, KEPT, TupleGame, make_tuple_game, place_row
from rposst_opt.solvers.kernels.weighing import settle_sets, tangent, value_sets

# In units of the largest loss there can be:
OBJECTIVE_SLACK = 2e-11
MEAN_SLACK = 2e-10  # the least mean loss is known less exactly
ROUNDING = 1e-12  # of the least-distance problem, whose cuts are nearly parallel: the slack is a multiple of it

TOLERANCE = 1e-12  # to which the weights of one set are settled
ALLOWED = 2.5e-11  # by how much an objective may suffer for the sake of the mean

MEAN_SHARES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of the mean, added to a measure to choose among its optimal weights
SHARP = 1e-3  # by how much the objective grows with the distance from weights that count as unique
MOST_CUTS = 400
NEAR = 1e-10  # by how much weights may miss a limit where cuts that are nearly parallel keep them from meeting it
SETS_AT_ONCE = 16  # in one call of a kernel, which may be interpreted
NO_MOVE = 1e-11  # of weights: more cuts do not help
NO_DISTANCE = 1e-13  # a residual of the dual problem that is rounding: no weights are allowed


class Weighed(NamedTuple):
    """A set of cases, as rows of the arrays, with optimal weights; values in units of the largest loss."""

    rows: IntArray
    weights: FloatArray
    objective: float
    mean_loss: float
    is_unique: bool  # whether no other weights have this objective and this mean loss


class Weigher:
    """Finds the weights of sets of cases that are the answer.

    Parameters
    ----------
    arrays : ProblemArrays
        Scaled; their rows are the cases that may be weighed.
    """

    def __init__(self, arrays: ProblemArrays) -> None:
        self.arrays = arrays
        self._games: dict[tuple[float, int], tuple[ProblemArrays, TupleGame]] = {}

    def weigh(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        """The weights of these rows that are the answer; those given must be optimal."""
        return self.finish(self.by_mean(rows[None], weights[None])[0])

    def finish(self, weighed: Weighed) -> FloatArray:
        """Of the weights that are as good in both ways, those with the least sum of squares."""
        if weighed.is_unique:
            return weighed.weights
        known = self._known_cuts(weighed.rows)
        return least_squares_weights(self.arrays, self._mean, weighed.rows, weighed.weights, known)

    def _known_cuts(self, rows: IntArray) -> FloatArray:
        """The cuts that settling sets of cases has left, at these rows: one a line."""
        arrays, game = self._game(0.0, len(rows))
        if game.state[COMPLETE] < len(rows) or (game.rows[: len(rows)] != rows).any():
            for at, row in enumerate(rows):
                place_row(at, int(row), arrays.results, game)
        known: FloatArray = game.values[: len(rows), : game.state[KEPT]].T
        return known

    def by_mean(self, sets: IntArray, weights: FloatArray) -> list[Weighed]:
        """Of every set of rows, the weights with the least mean loss among the optimal ones.

        Those given are taken if rounding spoils the search.
        """
        parts = [slice(start, start + SETS_AT_ONCE) for start in range(0, len(sets), SETS_AT_ONCE)]
        return [weighed for part in parts for weighed in self._some_by_mean(sets[part], weights[part])]

    def _some_by_mean(self, sets: IntArray, weights: FloatArray) -> list[Weighed]:
        """As above, for a few sets.

        Where the optimal weights are not unique, a little of the mean is added to the measure. Where that is too much,
        so that the objective suffers, it is a tenth of it, and in the end none.
        """
        best, objectives, are_unique = self._settled(sets, 0.0)
        left = np.flatnonzero(~are_unique)
        if len(left):
            given = value_sets(sets[left], weights[left], self.arrays)
            spoiled = left[given < objectives[left]]
            best[spoiled], objectives[left] = weights[spoiled], np.minimum(given, objectives[left])
        for share in MEAN_SHARES:
            if not len(left):
                break
            settled, _, unique = self._settled(sets[left], share)
            reached = value_sets(sets[left], settled, self.arrays)
            allowed = reached <= objectives[left] + ALLOWED
            done = left[allowed]
            best[done], objectives[done], are_unique[done] = settled[allowed], reached[allowed], unique[allowed]
            left = left[~allowed]
        means = value_sets(sets, best, self._mean)
        found = zip(sets, best, objectives.tolist(), means.tolist(), are_unique.tolist(), strict=True)
        return [Weighed(*each) for each in found]

    def _settled(self, sets: IntArray, share: float) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """The best weights with a share of the mean in the measure, their values, and whether no others have these."""
        arrays, game = self._game(share, sets.shape[1])
        raw = np.empty(sets.shape)
        lower, upper, sharpness = settle_sets(sets, TOLERANCE, arrays, game, raw).T
        is_sharp = np.full(len(sets), False) if self._is_curved else sharpness > SHARP
        return _on_simplex(raw), upper, (upper - lower <= 2 * TOLERANCE) & (is_sharp | self._noise_decides(sets))

    def _noise_decides(self, sets: IntArray) -> NDArray[np.bool_]:
        """Whether all cases of a set are noisy: the norm of the noise has its least on the simplex at one place."""
        if not len(self.arrays.noise):
            return np.full(len(sets), False)
        decides: NDArray[np.bool_] = (self.arrays.noise[sets] <= 0).sum(axis=1) == 0
        return decides

    @cached_property
    def _is_curved(self) -> bool:
        """Whether the objective has curvature: then optima are flat, and cuts do not tell whether they are unique."""
        return bool(self.arrays.coefficients[:, 2].any()) or len(self.arrays.noise) > 0

    @cached_property
    def _mean(self) -> ProblemArrays:
        return with_mean_alone(self.arrays)

    def _game(self, share: float, width: int) -> tuple[ProblemArrays, TupleGame]:
        """The arrays with a share of the mean in the measure, and a workspace that keeps its cuts from set to set."""
        if (share, width) not in self._games:
            arrays = with_share_of_mean(self.arrays, share) if share else self.arrays
            self._games[share, width] = arrays, make_tuple_game(arrays, width)
        return self._games[share, width]


def least_squares_weights(
    arrays: ProblemArrays, mean: ProblemArrays, rows: IntArray, weights: FloatArray, known: FloatArray
) -> FloatArray:
    """The weights with the least sum of squares that have the objective and the mean loss of these, up to the slack.

    Where more cuts are needed than there may be, the last weights are returned that come near; or else these.

    Parameters
    ----------
    arrays, mean : ProblemArrays
        The problem, and the same with the mean as its measure.
    rows : ndarray of int
    weights : ndarray
        Of these rows, on the simplex; with the least objective and, among such, with the least mean loss.
    known : ndarray of shape (n_cuts, n_rows)
        Cuts of the objective that are known already, to begin with.
    """
    width = len(rows)
    cut = np.empty(width)
    limits = [
        (side, tangent(rows, weights, side, cut) + slack)
        for side, slack in ((arrays, OBJECTIVE_SLACK), (mean, MEAN_SLACK))
    ]
    bounds, least = [*np.eye(width), np.ones(width), -np.ones(width)], [0.0] * width + [1.0, -1.0]
    begun = [limits[0][1] - each for each in known]
    shortest = _shortest(np.array(bounds + begun), np.array(least + [0.0] * len(begun)))
    if shortest is None:  # cuts that are nearly alike: go without them
        begun, shortest = [], np.full(width, 1 / width)
    bounds, least = bounds + begun, least + [0.0] * len(begun)
    near = weights
    while len(bounds) < MOST_CUTS and shortest is not None:
        on_simplex = _on_simplex(shortest)
        new, excess = [], 0.0
        for side, limit in limits:
            above = tangent(rows, on_simplex, side, cut) - limit
            if above > ROUNDING:
                new.append(limit - cut)  # Σ w_x c_x ≤ limit, and weights sum to one
                excess = max(excess, above)
        stands_still = np.abs(on_simplex - near).max() < NO_MOVE
        if excess < NEAR:
            near = on_simplex
        if not new or stands_still:
            break
        bounds, least = bounds + new, least + [0.0] * len(new)
        shortest = _shortest(np.array(bounds), np.array(least))
    return near


def _on_simplex(weights: FloatArray) -> FloatArray:
    """What rounding has left of a distribution, clipped and scaled."""
    clipped = np.maximum(weights, 0.0)
    on_simplex: FloatArray = clipped / clipped.sum(axis=-1, keepdims=True)
    return on_simplex


def _shortest(rows: FloatArray, least: FloatArray) -> FloatArray | None:
    """The shortest x with ``rows @ x >= least``; None if there is none, or rounding keeps it from being found."""
    from scipy.optimize import nnls  # slow to import, and weights that are unique have no need of it

    dual = np.vstack([rows.T, least])
    wanted = np.zeros(len(dual))
    wanted[-1] = 1.0
    try:
        solution, _ = nnls(dual, wanted)
    except RuntimeError:  # too many steps: rows that are nearly parallel take turns for ever
        return None
    residual = dual @ solution - wanted
    if abs(residual[-1]) < NO_DISTANCE:
        return None
    shortest: FloatArray = -residual[:-1] / residual[-1]
    return shortest
