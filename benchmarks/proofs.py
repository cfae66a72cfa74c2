"""How long does it take to check a proof, beside finding it? Run: make bench-proofs.

Racing Arrows as in ``benchmarks.exact``, and a table of random results, with CVaR 10 %. The exact solver runs without
and with a certificate, on all cores, after the kernels are loaded; the checker runs on one core. A bound that is 1e-4
too high must be refused before times are printed.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import rposst_opt as ro
from benchmarks.regret_matching import racing_arrows_problem

REPEATS = 3


def random_problem(n: int, size: int) -> ro.Problem:
    """Results of 30 policies, uniform between 0 and 1."""
    return ro.Problem(results=np.random.default_rng(0).random((n, 30)), size=size, measure=ro.CVaR(0.1))


PROBLEMS: dict[str, Callable[[int, int], ro.Problem]] = {"arrows": racing_arrows_problem, "random": random_problem}
DEFAULT = ("arrows,50,6", "arrows,100,6", "arrows,200,5", "random,40,4")


def least_seconds(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """The least time of several runs."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measured(problem: ro.Problem) -> str:
    """A row of the table."""
    solution = ro.solve(problem, "exact", certificate=True)
    proof = solution.certificate
    assert proof is not None
    outcome = ro.verify_certificate(problem, proof)
    assert outcome.holds and outcome.is_complete
    assert not ro.verify_certificate(problem, replace(proof, bound=proof.bound + 1e-4)).holds
    seconds = [
        least_seconds(lambda: ro.solve(problem, "exact")),
        least_seconds(lambda: ro.solve(problem, "exact", certificate=True)),
        least_seconds(lambda: ro.verify_certificate(problem, proof)),
        least_seconds(lambda: check_exactly(problem, proof), 1),
    ]
    cells = [f"{problem.n_tuples:,}", f"{len(proof.cuts):,}", f"{outcome.n_nodes:,}", *(f"{s:.2f} s" for s in seconds)]
    return " | ".join(cells)


def check_exactly(problem: ro.Problem, proof: ro.Certificate) -> None:
    """Check in rational numbers that a proof holds."""
    assert ro.verify_certificate(problem, proof, exact_arithmetic=True).holds


def main() -> None:
    """Print the table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=DEFAULT, metavar="NAME,CASES,SIZE")
    ro.solve(racing_arrows_problem(20, 2), "exact", certificate=True)  # compiles, or loads
    head = "problem, n, m | sets | cuts | nodes | solved | with a certificate | checked | in rational numbers"
    print(f"| {head} |\n{'| --- ' * 8}|")
    for each in parser.parse_args().problems:
        name, n, size = each.split(",")
        print(f"| {name}, {n}, {size} | {measured(PROBLEMS[name](int(n), int(size)))} |", flush=True)


if __name__ == "__main__":
    main()
