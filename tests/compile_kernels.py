"""Have the kernels of these solvers compiled and kept, or of all: tests in several processes then load them."""

import sys

import rposst_opt as ro
from rposst_opt.solvers.kernels.compiling import compile_from_now_on

SOLVERS = ("exact", "local-search", "regret-matching", "sampled-regret-matching", "simultaneous")

if __name__ == "__main__":
    compile_from_now_on()
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.3, 0.4]], size=2)
    for solver in sys.argv[1:] or SOLVERS:
        ro.solve(problem, solver)
