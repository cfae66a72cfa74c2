"""Answers that are found in another way than the package finds them."""

from itertools import combinations

import numpy as np
from linear_programs import linear_program

import rposst_opt as ro

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def every_tuple(problem: ro.Problem) -> list[tuple[int, ...]]:
    """All sets of cases that a test may have, each ascending, in the order of what is chosen."""
    settled = {*problem.required_cases, *problem.forbidden_cases}
    free = [case for case in range(problem.n_cases) if case not in settled]
    return [tuple(sorted(chosen + problem.required_cases)) for chosen in combinations(free, problem.size)]


def cutting_plane_optimum(problem: ro.Problem, cases: tuple[int, ...], tolerance: float) -> float:
    """The least objective of weights on these cases: Kelley's cutting planes from `Problem.cut`, by linprog."""
    width = len(cases)
    weights, best, cuts = np.full(width, 1 / width), np.inf, []
    for _ in range(300):
        test = problem.test(cases=cases, weights=weights)
        best = min(best, problem.objective(test) / problem.unit)
        cuts.append(problem.cut(test)[list(cases)] / problem.unit)
        outcome = linear_program(
            np.append(np.zeros(width), 1.0),
            A_ub=np.column_stack([cuts, -np.ones(len(cuts))]),
            b_ub=np.zeros(len(cuts)),
            A_eq=[[1.0] * width + [0.0]],
            b_eq=[1.0],
            bounds=[(0, 1)] * width + [(None, None)],
        )
        if best - outcome.fun <= tolerance:
            return float(best * problem.unit)
        weights = np.maximum(outcome.x[:width], 0) / np.maximum(outcome.x[:width], 0).sum()
    raise AssertionError("the cutting planes did not close")
