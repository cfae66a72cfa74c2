"""How fast is the exact solver where there are rules about the choice? Run: make bench-rules.

Racing Arrows with 100 followers as test cases, 80 % of the leaders as tuning policies, four softmax targets and CVaR
1 %, as in `benchmarks.exact`. The rules: a budget that pays for about three cases of random cost, with any number of
cases; the same with three cases; and one case of each quarter of the cases, four in all. The exact solver's time is the
median of five runs after the kernels are loaded, and that of others of one run of a minute at most, each in the same
process, one after the other, with the same number of threads. Answers are compared first.
"""

import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

import rposst_opt as ro
from benchmarks.hard_report import as_markdown, put_into_readme
from benchmarks.regret_matching import racing_arrows_problem
from rposst_opt.solvers.kernels.compiling import compile_from_now_on
from rposst_opt.solvers.running import available_cores

N, REPEATS, SECONDS = 100, 5, 60.0
RIVALS = {"pulp-highs": "highspy", "pulp-gurobi": "gurobipy"}
TOLERANCE = 1e-6  # what a MILP solver's answers are good for


def problems() -> Iterator[tuple[str, ro.Problem]]:
    """The problems, with what they are called."""
    quarters = [f"quarter {4 * case // N + 1}" for case in range(N)]
    three = racing_arrows_problem(N, 3).with_rules(costs=np.random.default_rng(0).uniform(0.5, 1.5, N), budget=3.0)
    yield "a budget of 3, any number of cases", replace(three.with_rules(size_is="at most"), size=N)
    yield "a budget of 3, three cases", three
    yield "one of each quarter", racing_arrows_problem(N, 4).with_rules(groups=quarters, at_least=1)


def main() -> None:
    """Measure and report."""
    compile_from_now_on()
    ro.solve(racing_arrows_problem(20, 2), "exact")
    rivals = [name for name, package in RIVALS.items() if find_spec(package) is not None]
    rows = []
    for name, problem in problems():
        runs = [ro.solve(problem, "exact", threads=available_cores()) for _ in range(REPEATS)]
        own = statistics.median(run.stats.solve_seconds for run in runs)
        assert runs[0].status is ro.Status.OPTIMAL and runs[0].test is not None
        cells = [name, str(len(runs[0].test.cases)), f"{runs[0].objective:.5f}", f"{1000 * own:.1f} ms"]
        for rival in rivals:
            try:
                run = ro.solve(problem, rival, time_limit_seconds=SECONDS, threads=available_cores())
            except ro.LicenceMissing:
                cells.append("over its licence")
                continue
            assert run.objective >= runs[0].objective - TOLERANCE and run.lower_bound <= runs[0].objective + TOLERANCE
            times = run.stats.solve_seconds / own
            is_proved = run.status is ro.Status.OPTIMAL
            cells.append(
                f"{run.stats.solve_seconds:.1f} s, {'' if is_proved else 'not proved, more than '}{times:.0f} ×"
            )
        rows.append(cells)
        print(cells, file=sys.stderr)
    head = ["rules", "cases chosen", "objective", "exact", *rivals]
    text = as_markdown(head, rows)
    put_into_readme("rules", text)
    print(text)


if __name__ == "__main__":
    main()
