"""Have every kernel compiled and kept, so that tests in several processes load them."""

import rposst_opt as ro
from rposst_opt.solvers.kernels.compiling import compile_from_now_on

SOLVERS = ("exact", "local-search", "regret-matching", "sampled-regret-matching", "simultaneous")

if __name__ == "__main__":
    compile_from_now_on()
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.3, 0.4]], size=2)
    for solver in SOLVERS:
        ro.solve(problem, solver)
    ro.solve(problem, "exact", top=2)
