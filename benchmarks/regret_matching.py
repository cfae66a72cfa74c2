"""How fast is the reference method on the paper's own instance? Run: make bench-methods.

Racing Arrows with 50 followers as test cases, 40 leaders as tuning policies and four softmax targets: 160 scenarios;
3 test cases, so 19,600 tuples; CVaR 1 %, T = 500 rounds. The paper reports about 2 minutes on 16 cores. Answers are
compared before times are.
"""

import platform
import statistics

import numpy as np

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.solvers.running import available_cores

REPEATS = 7


def racing_arrows_problem(n: int, size: int, seed: int = 0) -> ro.Problem:
    """Followers as test cases, 80 % of the leaders as tuning policies, four softmax targets, CVaR 1 %."""
    rng = np.random.default_rng(seed)
    table = racing_arrows(n, rng)
    tuning = table.iloc[:, np.sort(rng.permutation(n)[: int(0.8 * n)])]
    return ro.Problem(results=tuning, size=size, measure=ro.CVaR(0.01), targets=ro.softmax_targets(tuning))


def median_seconds(problem: ro.Problem, *, prune: bool) -> tuple[float, ro.Solution]:
    """The median time of several runs, and the answer of the last."""
    runs = [ro.solve(problem, "regret-matching", rounds=500, prune=prune) for _ in range(REPEATS)]
    return statistics.median(run.stats.solve_seconds for run in runs), runs[-1]


def main() -> None:
    """Print the table."""
    problem = racing_arrows_problem(50, 3)
    ro.solve(problem, "regret-matching", rounds=1)  # compiles, or loads
    full_seconds, full = median_seconds(problem, prune=False)
    pruned_seconds, pruned = median_seconds(problem, prune=True)
    assert full.test is not None and pruned.test is not None
    assert full.test.cases == pruned.test.cases and np.array_equal(full.test.weights, pruned.test.weights)
    print(f"{platform.machine()}, {available_cores()} cores, Python {platform.python_version()}, median of {REPEATS}")
    print(f"{problem.n_tuples:,} tuples, {problem.n_scenarios} scenarios, objective {full.objective:.6f}")
    print(
        f"without pruning  {full_seconds:7.3f} s  {full.stats.rounds / full_seconds / 1e6:6.1f} million rounds a second"
    )
    print(f"with pruning     {pruned_seconds:7.3f} s  {full_seconds / pruned_seconds:6.1f} times faster, same answer")


if __name__ == "__main__":
    main()
