"""Sets of cases that a search has found, as tests: which comes first, and what are its weights?"""

from collections.abc import Sequence

import numpy as np

from rposst_opt.arrays import IntArray
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.problem import Problem
from rposst_opt.solution import order_of_tests
from rposst_opt.solvers.canonical import Weighed, Weigher
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.searchers import FoundTest


def as_tests(
    problem: Problem, cases: IntArray, arrays: ProblemArrays, found: Sequence[FoundTest], most: int | None
) -> tuple[EfficientTest, ...]:
    """The best of these sets, in the order of a ranking, each with the weights that `solvers.canonical` defines.

    Parameters
    ----------
    problem : Problem
    cases : ndarray of int
        The cases that were searched, as positions in the problem, with the required ones at the end.
    arrays : ProblemArrays
        Over these cases.
    found : sequence of FoundTest
    most : int or None
        How many are asked for; None for all of them.
    """
    weigher = Weigher(arrays)
    required = range(len(cases) - len(problem.required_cases), len(cases))
    sets = np.array([[*required, *test.cases] for test in found], dtype=np.int64)
    weighed = weigher.by_mean(sets, np.array([test.weights / test.weights.sum() for test in found]))
    order = _order(problem, cases, weighed)[:most] if len(weighed) > 1 else [0]
    return tuple(problem.test(cases=cases[weighed[i].rows].tolist(), weights=weigher.finish(weighed[i])) for i in order)


def _order(problem: Problem, cases: IntArray, weighed: Sequence[Weighed]) -> list[int]:
    """The places of these sets in their order."""
    return order_of_tests(
        problem,
        objectives=[problem.unit * each.objective for each in weighed],
        mean_losses=[problem.unit * each.mean_loss for each in weighed],
        cases=[tuple(np.sort(cases[each.rows]).tolist()) for each in weighed],
    )
