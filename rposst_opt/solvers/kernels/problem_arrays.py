"""A problem as compiled code reads it: arrays and numbers only."""

import math
from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.measures import Measure, equally_likely, tabulate, tabulate_mixture
from rposst_opt.problem import Problem
from rposst_opt.results import ALIKE_STEPS

# How the antagonist finds the scenarios that count.
BY_SELECTION, BY_SORTING, BY_PROBABILITY = 0, 1, 2
GRID = 2.0**-30  # of scaled numbers, for searches that only look for good tests
SELECTION_LIMIT = 48  # up to about this length, keeping a sorted list of the worst is faster than sorting parts


class ProblemArrays(NamedTuple):
    """A problem as compiled code reads it: arrays and numbers only."""

    results: FloatArray  # (n_cases, n_policies)
    offsets: IntArray  # (n_policies + 1,): the scenarios of policy j are offsets[j]:offsets[j + 1]
    scenario_policies: IntArray  # (n_scenarios,)
    full_scores: FloatArray  # (n_scenarios,)
    least_full_scores: FloatArray  # (n_policies,): the least and the greatest of each policy
    greatest_full_scores: FloatArray
    probabilities: FloatArray  # (n_scenarios,)
    knots: FloatArray  # the loss
    coefficients: FloatArray
    rank_weights: FloatArray  # the measure for equally likely scenarios, worst first; empty for others
    tail_edges: FloatArray  # the measure for others, tabulated; empty for equally likely ones
    tail_coefficients: FloatArray
    response: int  # BY_SELECTION, BY_SORTING or BY_PROBABILITY
    most_chosen: int  # no response has more scenarios of positive weight than this
    noise: FloatArray  # (n_cases,): what the noise of each case costs with all the weight; empty if there is none


def locked(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays, all locked against writing: where some are and some are not, kernels are compiled once more."""
    for array in arrays:
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    return arrays


def problem_arrays(problem: Problem) -> ProblemArrays:
    """Lay a problem out for the kernels."""
    scenarios, pieces = problem.scenarios, problem.pieces
    occupied = np.diff(scenarios.offsets) > 0
    starts = scenarios.offsets[:-1][occupied]
    low, high = np.zeros(problem.n_policies), np.zeros(problem.n_policies)
    low[occupied] = np.minimum.reduceat(scenarios.full_scores, starts)
    high[occupied] = np.maximum.reduceat(scenarios.full_scores, starts)
    arrays = ProblemArrays(
        results=np.ascontiguousarray(problem.results),
        offsets=scenarios.offsets,
        scenario_policies=scenarios.policies,
        full_scores=scenarios.full_scores,
        least_full_scores=low,
        greatest_full_scores=high,
        probabilities=scenarios.probabilities,
        knots=pieces.knots,
        coefficients=pieces.coefficients,
        rank_weights=np.empty(0),
        tail_edges=np.empty(0),
        tail_coefficients=np.empty((0, 0)),
        response=BY_PROBABILITY,
        most_chosen=len(scenarios.full_scores),
        noise=problem.noise_costs,
    )
    return _with_measure(arrays, problem.measure)


def example_arrays() -> ProblemArrays:
    """The arrays of some problem: those of all others are of the same types."""
    return problem_arrays(Problem(results=[[0.0]], size=1))


def _with_measure(arrays: ProblemArrays, measure: Measure) -> ProblemArrays:
    """The same arrays, but for the measure."""
    d, probabilities = len(arrays.full_scores), arrays.probabilities
    rank_weights, edges, coefficients = np.empty(0), np.empty(0), np.empty((0, 0))
    if equally_likely(probabilities):
        rank_weights = measure.rank_weights(d)
        most_chosen = int(np.flatnonzero(rank_weights)[-1]) + 1
    else:
        mixture = measure.cvar_mixture(probabilities)
        edges, coefficients = tabulate(measure.tail_weight) if mixture is None else tabulate_mixture(mixture)
        least_likely_first = np.cumsum(np.sort(probabilities))
        most_chosen = min(d, 1 + int(np.searchsorted(least_likely_first, measure.reach())))
    if measure.cvar_tail_fraction == 1:  # the mean: every scenario counts by its probability
        response = BY_PROBABILITY
    else:
        response = BY_SELECTION if most_chosen <= SELECTION_LIMIT else BY_SORTING
    return locked(
        arrays._replace(
            rank_weights=rank_weights,
            tail_edges=edges,
            tail_coefficients=coefficients,
            response=response,
            most_chosen=most_chosen,
        )
    )


def with_mean_alone(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays with the mean as the measure, and losses alone."""
    return locked(
        without_noise(arrays)._replace(
            rank_weights=np.empty(0),
            tail_edges=np.empty(0),
            tail_coefficients=np.empty((0, 0)),
            response=BY_PROBABILITY,
            most_chosen=len(arrays.full_scores),
        )
    )


def without_noise(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays with losses alone."""
    return locked(arrays._replace(noise=np.empty(0)))


def with_share_of_mean(arrays: ProblemArrays, share: float) -> ProblemArrays:
    """The same arrays with a share of the mean in their measure: the tail weight g(u) is (1 - share) g(u) + share u."""
    d = len(arrays.full_scores)
    if arrays.response == BY_PROBABILITY:
        return arrays
    coefficients = (1 - share) * arrays.tail_coefficients
    if len(coefficients):
        coefficients[:, 0] += share * arrays.tail_edges[:-1]
        coefficients[:, 1] += share * np.diff(arrays.tail_edges)
    return locked(
        arrays._replace(
            rank_weights=(1 - share) * arrays.rank_weights + share / d,
            tail_coefficients=coefficients,
            response=BY_SELECTION if d <= SELECTION_LIMIT else BY_SORTING,
            most_chosen=d,
        )
    )


def scaled_problem_arrays(problem: Problem, cases: IntArray) -> ProblemArrays:
    """The arrays over these cases, with errors in units of the spread of results and losses in units of the largest.

    Only errors count, so every policy's results and full scores may be moved together: to lie around zero, where
    rounding is least.
    """
    arrays = problem_arrays(problem)
    spread = float(np.ptp(problem.results)) or 1.0
    rounding = ALIKE_STEPS * np.finfo(np.float64).eps * float(np.abs(problem.results).max())
    divisor = spread if spread > rounding else math.inf  # where only rounding tells results apart, they are all alike
    middle = problem.results.min(axis=0) / 2 + problem.results.max(axis=0) / 2
    pieces = problem.pieces.rescaled(error_unit=spread, value_unit=problem.unit)
    return locked(
        arrays._replace(
            results=np.ascontiguousarray((problem.results[cases] - middle) / divisor),
            full_scores=(arrays.full_scores - middle[arrays.scenario_policies]) / divisor,
            least_full_scores=(arrays.least_full_scores - middle) / divisor,
            greatest_full_scores=(arrays.greatest_full_scores - middle) / divisor,
            knots=pieces.knots,
            coefficients=pieces.coefficients,
            noise=problem.noise_costs[cases] / problem.unit if len(problem.noise_costs) else np.empty(0),
        )
    )


def rounded_arrays(arrays: ProblemArrays) -> ProblemArrays:
    """The same arrays with all numbers on a grid, so that their last bits do not choose the path of a search.

    Numbers that make ties are fractions with small denominators, and these do not lie halfway between two points of a
    grid whose width is a power of two.
    """
    return locked(
        arrays._replace(
            results=_on_grid(arrays.results),
            full_scores=_on_grid(arrays.full_scores),
            least_full_scores=_on_grid(arrays.least_full_scores),
            greatest_full_scores=_on_grid(arrays.greatest_full_scores),
            probabilities=_on_grid(arrays.probabilities),
            knots=_on_grid(arrays.knots),
            coefficients=_on_grid(arrays.coefficients),
            rank_weights=_on_grid(arrays.rank_weights),
            tail_coefficients=_on_grid(arrays.tail_coefficients),
            noise=_on_grid(arrays.noise),
        )
    )


def _on_grid(values: FloatArray) -> FloatArray:
    rounded: FloatArray = np.round(values / GRID) * GRID
    return rounded
