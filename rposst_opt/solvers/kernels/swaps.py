"""Swapping one test case for another, as long as that helps: the inner loop of local search.

The mixture of cuts that proves a set's optimum v puts a price on every other case: the mixture's value there. A set
with this case in the place of another is worth at least the lesser of v and the price. So only a case priced below v
can make the set better, and few are: they are tried cheapest first, each in the place of the lightest case first. A
swap is settled only until it is known whether it helps, with the cuts of the sets before.
"""

import numpy as np

from rposst_opt.arrays import BoolArray, FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import compiled
from rposst_opt.solvers.kernels.cut_mixture import CutMixture, keep_mixture, mixture_at
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.kernels.tuple_game import TupleGame, place_row, settle


@compiled
def settle_rows(
    rows: IntArray, tolerance: float, arrays: ProblemArrays, workspace: TupleGame, mixture: CutMixture
) -> tuple[float, float]:
    """Place these rows and settle them: a proved bound and the objective of the best weights, ``vectors[1]``."""
    for i in range(rows.shape[0]):
        place_row(i, rows[i], arrays.results, workspace)
    lower, upper = settle(rows.shape[0], np.inf, -np.inf, tolerance, arrays, workspace, 0.0)
    keep_mixture(rows.shape[0], workspace, mixture)
    return lower, upper


@compiled
def price_cases(arrays: ProblemArrays, mixture: CutMixture, prices: FloatArray) -> float:
    """The mixture at every case, and the least of these: a bound on every test, whatever its cases."""
    least = np.inf
    for case in range(prices.shape[0]):
        prices[case] = mixture_at(case, arrays.results, mixture)
        least = min(least, prices[case])
    return least


@compiled
def find_swap(
    rows: IntArray,
    places: IntArray,
    candidates: IntArray,
    allowed: BoolArray,
    start: int,
    most: int,
    value: float,
    tolerance: float,
    arrays: ProblemArrays,
    workspace: TupleGame,
) -> tuple[int, int]:
    """The first swap, from number `start` on, after which an objective is below `value`, or where the search stands.

    Swap number h puts ``candidates[h // P]`` into ``places[h % P]``, P places; it is passed over unless it is
    ``allowed[h // P, h % P]``, or all are and that is empty. Returns the number of the swap and 1 if one was found,
    with `rows` changed; the number of the next one and 0 if not.
    """
    n_places, end = places.shape[0], min(start + most, places.shape[0] * candidates.shape[0])
    for h in range(start, end):
        if allowed.shape[0] > 0 and not allowed[h // n_places, h % n_places]:
            continue
        place, case = places[h % n_places], candidates[h // n_places]
        before = rows[place]
        place_row(place, case, arrays.results, workspace)
        _, upper = settle(rows.shape[0], value, value, tolerance, arrays, workspace, 0.0)
        if upper < value:
            rows[place] = case
            return h, 1
        place_row(place, before, arrays.results, workspace)
    return end, 0


@compiled
def try_additions(
    rows: IntArray,
    candidates: IntArray,
    tolerance: float,
    arrays: ProblemArrays,
    workspace: TupleGame,
    prices: FloatArray,
) -> tuple[int, float, int]:
    """Which of the candidates, in their order, is best added to the rows, the objective then, and how many were tried.

    `prices` are those of a mixture that proves the rows' own optimum: with one more case they are worth at least the
    lesser of that and the case's price, so dear cases are passed over.
    """
    n_rows = rows.shape[0]
    for i in range(n_rows):
        place_row(i, rows[i], arrays.results, workspace)
    chosen, best, tried = 0, np.inf, 0
    for h in range(candidates.shape[0]):
        if prices[candidates[h]] >= best:
            continue
        tried += 1
        place_row(n_rows, candidates[h], arrays.results, workspace)
        _, upper = settle(n_rows + 1, best, -np.inf, tolerance, arrays, workspace, 0.0)
        if upper < best:
            chosen, best = h, upper
    return chosen, best, tried
