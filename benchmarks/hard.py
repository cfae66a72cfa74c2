"""Who is ahead where problems are hard? Run: make bench-hard.

Sixty problems, drawn by the rule in `benchmarks.hard_problems`, or tables of one's own by ``--table``. On each of them
`exact`, HiGHS and Gurobi (where it is installed and its licence allows it) have 60 seconds, and `local-search` 5; all
with the same number of threads, one after the other, each in a process of its own. Who begins changes from problem to
problem. Kernels are loaded before the clock starts, and a MILP solver's clock starts when its model is built. Tests are
scored by `Problem.objective`.

Every run adds a line to ``benchmarks/hard.csv`` as soon as it ends, and what is there already is not run again, so a
run that was stopped goes on when it is started again. ``--solvers exact --again`` measures `exact` anew, and leaves the
others' lines. ``--report`` runs nothing and writes the tables to ``benchmarks/README.md``; ``--ablation`` measures
`exact` without each of its ingredients (`benchmarks.hard_ablation`).
"""

import argparse
import csv
import importlib.metadata
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

import rposst_opt as ro
from benchmarks import hard_ablation, hard_report
from benchmarks.hard_problems import MEASURES, problems, problems_of_table
from rposst_opt.files.writing import write_atomically
from rposst_opt.solvers.kernels.compiling import compile_from_now_on
from rposst_opt.solvers.running import available_cores

HERE = Path(__file__).parent
RECORDS = HERE / "hard.csv"
SECONDS, LOCAL_SEARCH_SECONDS = 60.0, 5.0
GRACE_SECONDS = 180.0  # to build the model and to end, before a run is killed
PACKAGES = {
    "exact": ("numba",),
    "local-search": ("numba",),
    "pulp-highs": ("pulp", "highspy"),
    "pulp-gurobi": ("pulp", "gurobipy"),
}
SOLVERS = ("exact", "pulp-highs", "pulp-gurobi", "local-search")
KEY = ("problem", "solver", "without", "limit", "threads")
FIELDS = (*KEY, "status", "objective", "lower_bound", "gap", "seconds", "build_seconds", "versions", "date")
NOTHING = {"objective": math.inf, "lower_bound": -math.inf, "gap": math.inf}


@dataclass(frozen=True)
class Run:
    """One solver on one problem, with so many seconds and threads; `without` names an ingredient that is off."""

    problem: str
    solver: str
    limit: float
    threads: int
    without: str = ""

    @property
    def key(self) -> tuple[object, ...]:
        """What tells its record from others."""
        return tuple(getattr(self, name) for name in KEY)


# One run, in its own process


def warm_up() -> None:
    """Compile the kernels of our own solvers, or load them; `exact` has need of both."""
    compile_from_now_on()
    small = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.3, 0.4]], size=2)
    for solver in ("exact", "local-search"):
        ro.solve(small, solver)


def measure(problem: ro.Problem, run: Run) -> dict[str, object]:
    """Solve it here, and say how good the answer is, what is proved, and how long it took."""
    try:
        solution = ro.solve(problem, run.solver, time_limit_seconds=run.limit, threads=run.threads)
    except ro.LicenceMissing:
        return _without_answer(hard_report.TOO_LARGE)
    except ro.BackendFailure as error:
        return _without_answer(f"failed: {error}")
    return {
        "status": solution.status.value,
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "gap": solution.gap,
        "seconds": solution.stats.solve_seconds,
        "build_seconds": solution.stats.build_seconds,
    }


def _without_answer(status: str) -> dict[str, object]:
    return {"status": status, **NOTHING, "seconds": math.nan, "build_seconds": math.nan}


# All runs


def run_apart(run: Run, of_tables: Sequence[str]) -> dict[str, object]:
    """Have it measured in a process of its own."""
    limits = ["--limit", str(run.limit), "--threads", str(run.threads)]
    which = ["--only", run.problem, "--one", run.problem, run.solver, run.without]
    folder = hard_ablation.folder_of(run.without)
    environment = os.environ | ({} if folder is None else {"NUMBA_CACHE_DIR": str(folder)})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.hard", *which, *limits, *of_tables],
        stdout=subprocess.PIPE,
        text=True,
        cwd=HERE.parent,
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        return _without_answer("killed" if done.returncode == -signal.SIGALRM else f"ended with {done.returncode}")
    outcome: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def versions_of(solver: str) -> str:
    """What a solver's times depend on besides this package."""
    return ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES[solver])


def read_records(path: Path) -> pd.DataFrame:
    """What was measured so far."""
    if not path.exists():
        return pd.DataFrame(columns=list(FIELDS))
    return pd.read_csv(path, dtype={"without": str, "limit": float}, keep_default_na=False, na_values=["nan"])


def append_record(path: Path, run: Run, outcome: dict[str, object]) -> None:
    """Add one line, for good."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow({**run.__dict__, **outcome, "versions": versions_of(run.solver), "date": date.today()})


def records_of(path: Path, runs: Sequence[Run]) -> pd.DataFrame:
    """What was measured of these runs, in their order."""
    places = {run.key: place for place, run in enumerate(runs)}
    records = read_records(path)
    of_runs = records.assign(place=[places.get(key, -1) for key in _keys(records)]).sort_values("place")
    return of_runs[of_runs["place"] >= 0].drop(columns="place")


def forget(path: Path, runs: Sequence[Run]) -> None:
    """Drop the records of these runs, so that they are measured anew."""
    records = read_records(path)
    again = {run.key for run in runs}
    kept = [key not in again for key in _keys(records)]
    write_atomically(path, records[kept].to_csv(index=False, lineterminator="\n", na_rep="nan"))


def _keys(records: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    return records[list(KEY)].itertuples(index=False, name=None)


def measure_missing(path: Path, runs: Sequence[Run], of_tables: Sequence[str]) -> None:
    """Run what has no record yet, one after the other."""
    done = set(_keys(read_records(path)))
    missing = [run for run in runs if run.key not in done]
    for place, run in enumerate(missing):
        outcome = run_apart(run, of_tables)
        append_record(path, run, outcome)
        told = f"{outcome['status']}, objective {outcome['objective']:.6f}, gap {outcome['gap']:.6f}"
        who = f"{run.solver} without {run.without}" if run.without else run.solver
        print(
            f"{place + 1} of {len(missing)}: {run.problem}, {who}: {outcome['seconds']:.2f} s, {told}", file=sys.stderr
        )


def runs_of(names: Sequence[str], solvers: Sequence[str], limit: float, threads: int) -> list[Run]:
    """Every solver on every problem; who begins changes from problem to problem."""
    runs = []
    for place, name in enumerate(names):
        first = place % len(solvers)
        for solver in (*solvers[first:], *solvers[:first]):
            seconds = min(limit, LOCAL_SEARCH_SECONDS) if solver == "local-search" else limit
            runs.append(Run(name, solver, seconds, threads))
    return runs


def run_here(options: argparse.Namespace, given: dict[str, ro.Problem]) -> None:
    """Measure the one run that the options name, and print it; a solver that does not end is killed."""
    name, solver, without = options.one
    if without:
        hard_ablation.switch_off(without)
    if solver in ("exact", "local-search"):
        warm_up()
    signal.alarm(math.ceil(options.limit + GRACE_SECONDS))  # ends this process, whatever library has the word then
    print(json.dumps(measure(given[name], Run(name, solver, options.limit, options.threads, without))))


# The command


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=SECONDS, help="seconds for each run (local search: at most 5)")
    parser.add_argument("--threads", type=int, default=available_cores(), help="for each run; all cores by default")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=[name for name in SOLVERS if _is_here(name)])
    parser.add_argument("--only", default="", help="only problems with this in their name")
    parser.add_argument("--again", action="store_true", help="also run what has a record, which is dropped first")
    parser.add_argument("--report", action="store_true", help="run nothing; write the tables to benchmarks/README.md")
    parser.add_argument("--ablation", action="store_true", help="exact without each of its ingredients")
    parser.add_argument("--list", action="store_true", help="run nothing; print the problems")
    parser.add_argument(
        "--table", type=Path, action="append", default=[], help="a results file, not the sixty problems"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 8], help="of tests, with --table")
    parser.add_argument("--measures", nargs="+", choices=MEASURES, default=["cvar-0.01", "cvar-0.1", "mean"])
    parser.add_argument(
        "--out", type=Path, help="where the records go: hard.csv beside this file, or with --table here"
    )
    parser.add_argument("--one", nargs=3, metavar=("PROBLEM", "SOLVER", "WITHOUT"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.out = options.out or (Path("hard-tables.csv") if options.table else RECORDS)
    return options


def _is_here(solver: str) -> bool:
    return all(find_spec(package) is not None for package in PACKAGES[solver])


def problems_of(options: argparse.Namespace) -> dict[str, ro.Problem]:
    """The problems that the options name."""
    if not options.table:
        return problems(options.only)
    given: dict[str, ro.Problem] = {}
    for path in options.table:
        given |= problems_of_table(path, options.sizes, options.measures)
    return {name: problem for name, problem in given.items() if options.only in name}


def table_options(options: argparse.Namespace) -> list[str]:
    """The options by which another process makes the same problems."""
    if not options.table:
        return []
    tables = [word for path in options.table for word in ("--table", str(path.resolve()))]
    return [*tables, "--sizes", *map(str, options.sizes), "--measures", *options.measures]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one run, all of them, or those without an ingredient; or report."""
    options = parse(arguments)
    given = problems_of(options)
    if options.one:
        run_here(options, given)
    elif options.list:
        for name, problem in given.items():
            print(f"{name:45} {problem.n_tuples:.1e} sets, {problem.n_scenarios} scenarios")
    elif options.ablation:
        ablate(options, list(given))
    else:
        compare(options, list(given))


def compare(options: argparse.Namespace, names: list[str]) -> None:
    """Every solver on every problem."""
    measure_all(options, options.out, runs_of(names, options.solvers, options.limit, options.threads))
    measured = some_records(options.out, runs_of(names, SOLVERS, options.limit, options.threads))
    hard_report.check(measured)
    text = hard_report.section(
        measured, "`python -m benchmarks.hard --table`" if options.table else "`make bench-hard`"
    )
    if options.report and not options.table:
        hard_report.put_into_readme("hard", text)
    print(text)


def ablate(options: argparse.Namespace, names: list[str]) -> None:
    """`exact` with all of its ingredients and without each, on some of the problems that it was measured on."""
    whole = some_records(options.out, runs_of(names, ["exact"], options.limit, options.threads))
    runs = [
        Run(name, "exact", options.limit, options.threads, without)
        for name in hard_ablation.chosen_problems(whole, options.limit)
        for without in ("", *hard_ablation.INGREDIENTS)
    ]
    path = options.out.with_name(f"{options.out.stem}-ablation.csv")
    measure_all(options, path, runs)
    measured = some_records(path, runs)
    hard_report.check(measured)
    text = hard_report.ablation_section(measured, "`python -m benchmarks.hard --ablation`")
    if options.report and not options.table:
        hard_report.put_into_readme("ablation", text)
    print(text)


def some_records(path: Path, runs: Sequence[Run]) -> pd.DataFrame:
    """What was measured of these runs, if there is any."""
    records = records_of(path, runs)
    if records.empty:
        sys.exit(f"{path} has no record of such a run: measure first, or name other problems, --limit or --threads.")
    return records


def measure_all(options: argparse.Namespace, path: Path, runs: Sequence[Run]) -> None:
    """Measure what the options ask for."""
    if options.report:
        return
    if options.again:
        forget(path, runs)
    measure_missing(path, runs, table_options(options))


if __name__ == "__main__":
    main()
