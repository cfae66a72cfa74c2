"""Thirty of two thousand: local search for 30 seconds against HiGHS's MILP for 300. Run: make bench-many.

Right and wrong answers of 60 policies to 2,000 items, four softmax targets (240 scenarios), CVaR 1 %. Both answers are
scored by the one judge. HiGHS gets the same program as any backend; its incumbent is what it has when time runs out.
"""

import argparse
from dataclasses import replace

import rposst_opt as ro
from rposst_opt.backends.synthetic import SyntheticProblem


def main() -> None:
    """Run both and say who did better."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--size", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--milp-seconds", type=float, default=300.0)
    options = parser.parse_args()
    problem = SyntheticProblem(
        "binary", options.cases, options.size, 60, 4, "cvar-0.01", "absolute", options.seed
    ).problem()
    ro.solve(replace(problem, size=1), "local-search", kicks=1)  # compiles, or loads
    for backend, seconds in (("local-search", options.seconds), ("pulp-highs", options.milp_seconds)):
        found = ro.solve(problem, backend, time_limit_seconds=seconds)
        print(
            f"{backend:12}  {found.seconds:6.1f} s  objective {found.objective:.6f}  "
            f"lower bound {found.lower_bound:.6f}  {found.status.value}",
            flush=True,
        )


if __name__ == "__main__":
    main()
