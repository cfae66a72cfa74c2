"""What does it save to compile a convex program once and solve it for every tuple? Run: make bench-methods.

On the Racing Arrows instance with 50 test cases and 160 scenarios, the same tuples are solved twice: with one program
that is used again, and with a program built afresh for each tuple. The answers are compared before the times are.
"""

import itertools
import statistics
import time

import numpy as np

from benchmarks.regret_matching import racing_arrows_problem
from formulations.convex import TupleOptimum, TupleProgram
from formulations.convex_solvers import SOLVERS
from formulations.epigraph import make_epigraph
from rposst_opt.backends import BACKENDS, missing_packages

N_TUPLES = 12
SOLVERS_TIMED = ("CLARABEL", "HIGHS", "ECOS", "PIQP", "SCIPY", "SCS")


def median_milliseconds(times: list[float]) -> float:
    """The median of some times in seconds, in milliseconds."""
    return 1e3 * statistics.median(times)


def main() -> None:
    """Print the table."""
    problem = racing_arrows_problem(50, 3)
    epigraph = make_epigraph(problem)
    rng = np.random.default_rng(0)
    tuples = [tuple(sorted(rng.choice(50, 3, replace=False).tolist())) for _ in range(N_TUPLES)]
    print(f"{problem.n_scenarios} scenarios, {N_TUPLES} tuples, median milliseconds per tuple")
    for solver in SOLVERS_TIMED:
        if missing_packages(BACKENDS[f"cvxpy-{solver.lower()}"].capabilities):
            print(f"{solver:10} not installed")
            continue
        program = TupleProgram(epigraph, 3, solver)
        program.solve(tuples[0])  # compiles
        again: list[float] = []
        afresh: list[float] = []
        for cases, fresh in itertools.product(tuples, (False, True)):
            started = time.perf_counter()
            optimum = (TupleProgram(epigraph, 3, solver) if fresh else program).solve(cases)
            (afresh if fresh else again).append(time.perf_counter() - started)
            check(problem.objective(problem.test(cases=cases, weights=optimum.weights)), optimum, solver)
        ratio = statistics.median(afresh) / statistics.median(again)
        print(
            f"{solver:10} used again {median_milliseconds(again):7.2f}   "
            f"built afresh {median_milliseconds(afresh):7.2f}   {ratio:4.1f} times"
        )


def check(objective: float, optimum: TupleOptimum, solver: str) -> None:
    """An answer is worth timing only if it is right: its own bound must prove it."""
    assert objective - optimum.lower_bound <= SOLVERS[solver].tolerance


if __name__ == "__main__":
    main()
