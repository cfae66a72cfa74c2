"""Have the kernels of these solvers compiled and kept: tests in several processes then load them."""

import gc
import subprocess
import sys
from typing import Any

import rposst_opt as ro
from rposst_opt.solvers.kernels.compiling import compile_from_now_on

# At the same time. Local search comes last: its kernels contain some of `exact`, which are there by then.
SEPARATE = (("exact",), ("regret-matching", "sampled-regret-matching", "simultaneous", "local-search"))
OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "regret-matching": ({}, {"player": "predictive"})
}  # all other players have kernels of their own


def start_compiling() -> list[subprocess.Popen[bytes]]:
    """Compile all kernels that are not kept yet, in processes of their own."""
    return [subprocess.Popen([sys.executable, __file__, *solvers]) for solvers in SEPARATE]


if __name__ == "__main__":
    compile_from_now_on()
    gc.disable()  # numba makes millions of objects, and looking for garbage among them takes a tenth of the time
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.3, 0.4]], size=2)
    for solver in sys.argv[1:]:
        for options in OPTIONS.get(solver, ({},)):
            ro.solve(problem, solver, **options)
