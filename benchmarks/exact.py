"""How fast is the exact solver, and how do MILP solvers compare? Run: make bench-exact.

Racing Arrows with followers as test cases, 80 % of the leaders as tuning policies, four softmax targets and CVaR 1 %.
Every run has a process of its own, with nothing else running; the exact solver's time is the median of 25 runs after
the kernels are loaded, and a MILP solver's that of one run, as given by the backend after the model is built. Answers
are compared before times are. What was measured goes to ``benchmarks/exact.csv``, and from there to
``benchmarks/README.md`` and ``benchmarks/exact.png``.
"""

import argparse
import importlib.metadata
import itertools
import json
import platform
import resource
import statistics
import subprocess
import sys
from dataclasses import replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import rposst_opt as ro
from benchmarks.regret_matching import racing_arrows_problem
from rposst_opt.solvers.running import available_cores

HERE = Path(__file__).parent
REPEATS = 25
OFFSET_SEEDS = 6
TABLE = [(50, 3), (100, 3), (200, 3), (500, 3), (50, 5)]
GROWTH = {2: (25, 50, 100, 200, 400, 800), 3: (25, 50, 100, 200, 400, 800), 4: (25, 50, 100, 200, 400)}
SIZES = range(1, 11)  # at n = 50
GUROBI_CASES = 200  # its licence from PyPI covers no more
MILP_SECONDS = 60.0
START, END = "<!-- measured: exact -->\n", "<!-- end -->\n"


def measure(backend: str, n: int, size: int, time_limit_seconds: float | None) -> dict[str, object]:
    """Solve one instance in this process, and say how long it took and how much memory."""
    problem = racing_arrows_problem(n, size)
    repeats = REPEATS if backend == "exact" else 1
    if backend == "exact":
        ro.solve(racing_arrows_problem(20, 2), backend)  # compiles, or loads
    threads = available_cores()  # HiGHS takes half of them by itself
    runs = [ro.solve(problem, backend, time_limit_seconds=time_limit_seconds, threads=threads) for _ in range(repeats)]
    return {
        "backend": backend,
        "n": n,
        "m": size,
        "scenarios": problem.n_scenarios,
        "tuples": problem.n_tuples,
        "seconds": statistics.median(run.stats.solve_seconds for run in runs),
        "objective": runs[-1].objective,
        "gap": runs[-1].gap,
        "status": runs[-1].status.value,
        "solved": runs[-1].stats.solved,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_apart(backend: str, n: int, size: int, time_limit_seconds: float | None = None) -> dict[str, object]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.exact", "--one", backend, str(n), str(size)]
    limit = [] if time_limit_seconds is None else ["--time-limit", str(time_limit_seconds)]
    done = subprocess.run([*command, *limit], capture_output=True, text=True, check=True, cwd=HERE.parent)
    record: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    print(f"{backend:12} n = {n:4}  m = {size:2}  {record['seconds']:10.4f} s  {record['status']}", file=sys.stderr)
    return record


def measure_all(rivals: list[str]) -> pd.DataFrame:
    """Every instance of the table and of the figure; a rival that has not finished a smaller one is spared the rest."""
    wanted = {*TABLE, *((n, size) for size, ns in GROWTH.items() for n in ns), *((50, size) for size in SIZES)}
    instances = sorted(wanted, key=lambda instance: (instance[1], instance[0]))
    records = [measure_apart("exact", n, size) for n, size in instances]
    for rival in rivals:
        unfinished: list[tuple[int, int]] = []
        for n, size in instances:
            hopeless = any(n >= other and size >= m for other, m in unfinished) and (n, size) not in TABLE
            if hopeless or n > GUROBI_CASES:
                continue
            record = measure_apart(rival, n, size, MILP_SECONDS)
            records.append(record)
            if record["status"] != "optimal":
                unfinished.append((n, size))
    return pd.DataFrame(records)


def check(measured: pd.DataFrame) -> None:
    """Every answer that is called optimal must be the exact solver's, and every other one no better."""
    records = measured.to_dict("records")
    best = {(row["n"], row["m"]): row["objective"] for row in records if row["backend"] == "exact"}
    for row in records:
        difference = row["objective"] - best[row["n"], row["m"]]
        assert difference > -1e-6 and (row["status"] != "optimal" or abs(difference) <= 1e-6), row


def table(measured: pd.DataFrame) -> str:
    """The comparison, as Markdown."""
    by = {(row["n"], row["m"], row["backend"]): row for row in measured.to_dict("records")}
    rivals = [name for name in measured.backend.unique() if name != "exact"]
    head = ["n, m (scenarios)", "tuples", "solved one by one", "exact", "memory", *rivals]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for n, m in TABLE:
        own = by[n, m, "exact"]
        cells = [
            f"{n}, {m} ({own['scenarios']})",
            f"{own['tuples']:,}",
            f"{own['solved']:,}",
            f"{1000 * own['seconds']:.1f} ms",
            f"{own['megabytes']:.0f} MB",
        ]
        for rival in rivals:
            other = by.get((n, m, rival))
            if other is None:
                cells.append("")
                continue
            ratio = f"{other['seconds'] / own['seconds']:,.0f} times"
            proved = other["status"] == "optimal"
            cells.append(
                f"{other['seconds']:.2f} s, {ratio}" if proved else f"not in {MILP_SECONDS:.0f} s, over {ratio}"
            )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def figure(measured: pd.DataFrame, path: Path) -> None:
    """Time against n and against m, with the MILP solvers beside it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    colours = {"exact": "#0072B2", "pulp-highs": "#D55E00", "pulp-gurobi": "#009E73"}
    styles = {2: ":", 3: "-", 4: "--"}
    chart, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    backends = list(measured.backend.unique())
    proved = measured[measured.status == "optimal"]
    for backend, m in itertools.product(backends, GROWTH):
        rows = proved[(proved.backend == backend) & (proved.m == m)].sort_values("n")
        label = backend if m == 3 else ""
        _draw_line(left, rows.n.tolist(), rows.seconds.tolist(), label, colours[backend], styles[m])
    left.set(xscale="log", yscale="log", xlabel="test cases, n", ylabel="seconds to a proved optimum")
    left.set_xlim(right=2500)
    left.set_xticks([25, 50, 100, 200, 400, 800], labels=["25", "50", "100", "200", "400", "800"])
    left.minorticks_off()
    for m, style in styles.items():
        left.plot([], [], style, color="#555555", label=f"m = {m}")
    left.legend(frameon=False, loc="lower right", fontsize=8)
    for backend in backends:
        rows = proved[(proved.backend == backend) & (proved.n == 50)].sort_values("m")
        _draw_line(right, rows.m.tolist(), rows.seconds.tolist(), backend, colours[backend], "-")
    right.set(yscale="log", xlabel="cases to choose, m (n = 50)", xticks=list(SIZES), xlim=(0.5, 12.5))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3, which="major")
    chart.suptitle("Racing Arrows, CVaR 1 %, four targets: only runs that proved the optimum are shown", fontsize=10)
    chart.savefig(path, dpi=120)


def _draw_line(axes: Any, x: list[float], y: list[float], label: str, colour: str, style: str) -> None:
    """A line with its name at its end."""
    if x:
        axes.plot(x, y, style, color=colour, marker="o", markersize=4)
        place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 8}
        axes.annotate(label, (x[-1], y[-1]), color=colour, **place)


def versions(rivals: list[str]) -> str:
    """Where and with what it was measured."""
    packages = {"pulp-highs": "highspy", "pulp-gurobi": "gurobipy"}
    solvers = ", ".join(f"{packages[name]} {importlib.metadata.version(packages[name])}" for name in rivals)
    return (
        f"Measured on {date.today()} by `make bench-exact`: {platform.machine()}, {available_cores()} cores, "
        f"Python {platform.python_version()}, numba {importlib.metadata.version('numba')}; {solvers}, "
        "each with all cores and a gap of zero.\n"
    )


def write_report(measured: pd.DataFrame, rivals: list[str]) -> None:
    """Put the table and the figure into the benchmarks' README."""
    readme = HERE / "README.md"
    before, rest = readme.read_text().split(START)
    _, after = rest.split(END)
    readme.write_text(before + START + versions(rivals) + "\n" + table(measured) + END + after)
    figure(measured, HERE / "exact.png")


def time_table(path: Path) -> None:
    """Times on a result matrix of one's own, for m = 1 to 4."""
    results, _ = ro.rescale(ro.read_results(path).results)
    for size in range(1, 5):
        problem = ro.Problem(results=results, size=size, targets=ro.softmax_targets(results))
        runs = [ro.solve(problem, "exact") for _ in range(20)]
        seconds = statistics.median(run.seconds for run in runs[1:])
        print(f"m = {size}  {1000 * seconds:.2f} ms  objective {runs[0].objective:.6f}  gap {runs[0].gap:.1g}")


def time_offset() -> None:
    """What an offset costs, with runs that take turns: the time with one over that without, for m = 3.

    How long one problem takes is a matter of luck, so median times are added up over several.
    """
    for n in (50, 100, 200, 500):
        seconds, questions = np.zeros(2), np.zeros(2, dtype=int)
        for seed in range(OFFSET_SEEDS):
            without = racing_arrows_problem(n, 3, seed)
            problems = (without, replace(without, offset=True))
            runs = [[ro.solve(problem, "exact") for problem in problems] for _ in range(REPEATS)]
            seconds += [statistics.median(pair[i].stats.solve_seconds for pair in runs[1:]) for i in range(2)]
            questions += [run.stats.rounds for run in runs[-1]]
        ms = 1000 * seconds / OFFSET_SEEDS
        print(
            f"n = {n:3}  {ms[0]:7.2f} ms  with an offset {ms[1]:7.2f} ms  {ms[1] / ms[0]:.2f} times; "
            f"questions to the antagonist {questions[0]:,} and {questions[1]:,}"
        )


def main() -> None:
    """Measure one instance, all of them, an offset's cost, or a table of one's own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("BACKEND", "N", "M"))
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--table", type=Path, help="only time the exact solver on this results file")
    parser.add_argument("--offset", action="store_true", help="only time the exact solver with and without an offset")
    parser.add_argument("--redraw", action="store_true", help="use what benchmarks/exact.csv has")
    options = parser.parse_args()
    if options.one:
        backend, n, size = options.one
        print(json.dumps(measure(backend, int(n), int(size), options.time_limit)))
        return
    if options.table:
        time_table(options.table)
        return
    if options.offset:
        time_offset()
        return
    rivals = ["pulp-highs"] + (["pulp-gurobi"] if find_spec("gurobipy") else [])
    measured = pd.read_csv(HERE / "exact.csv") if options.redraw else measure_all(rivals)
    check(measured)
    measured.to_csv(HERE / "exact.csv", index=False)
    write_report(measured, rivals)
    print(table(measured))


if __name__ == "__main__":
    main()
