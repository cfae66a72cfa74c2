"""Every backend over a grid of problems, each run in a process of its own. Run: make bench, or make bench-quick.

Problems are drawn by `rposst_opt.backends.synthetic`: 0/1 answers, real numbers, nearly low-rank and noisy matrices;
five measures, two losses. A run has a limit on time and on memory. Answers are compared before times are. What was
measured goes to ``benchmarks/grid.csv``; ``benchmarks.report`` makes tables and figures of it. To fit the package's
table of predicted times to it: python -m benchmarks.grid --fit.
"""

import argparse
import importlib.metadata
import multiprocessing
import platform
import resource
import sys
import time
from datetime import date
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pandas as pd

import rposst_opt as ro
from rposst_opt.backends import BACKENDS, entry_of, missing_packages
from rposst_opt.backends.calibration import GAP, fit_models, provers, record_of
from rposst_opt.backends.forecast import TABLE, as_table
from rposst_opt.backends.synthetic import SyntheticProblem, draw_synthetic
from rposst_opt.files.writing import write_atomically
from rposst_opt.solvers.running import available_cores

HERE = Path(__file__).parent
FIT, CHECK = 48, 75  # problems to fit predictions to, and others to check them on
FIT_SECONDS, CHECK_SECONDS = 1.5, 3.0
GRACE = 4.0  # how much longer than its limit a run may take before it is killed
GIGABYTES = 8
ALWAYS_RUN = ("exact", "pulp-highs")
PACKAGES = (
    "cvxpy",
    "pulp",
    "highspy",
    "scipy",
    "pyscipopt",
    "clarabel",
    "scs",
    "osqp",
    "ecos",
    "piqp",
    "numba",
    "gurobipy",
)
WARM = SyntheticProblem("binary", 10, 2, 5, 1, "cvar-0.01", "absolute", 0)


def installed() -> list[str]:
    """Every backend that can be run here."""
    return [name for name, entry in BACKENDS.items() if not missing_packages(entry.capabilities)]


def run_apart(instance: SyntheticProblem, backend: str, seconds: float, gap: float = 0.0) -> dict[str, Any]:
    """Solve in a forked process, which has all packages and kernels loaded, and is killed if it does not end."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_solve, args=(sender, instance, backend, seconds, gap))
    started = time.monotonic()
    process.start()
    sender.close()
    record = None
    if receiver.poll(seconds + GRACE):
        try:
            record = receiver.recv()
        except EOFError:
            pass  # it died without a word: the memory limit, or a crash
    ended = time.monotonic() - started
    process.kill()
    process.join()
    if record is None:
        problem = instance.problem()
        record = {"backend": backend, **instance.__dict__, "scenarios": problem.n_scenarios}
        record |= {"tuples": problem.n_tuples, "seconds": ended, "status": "killed", "gap": gap, "proved": False}
    return record


def _solve(sender: Connection, instance: SyntheticProblem, backend: str, seconds: float, gap: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES * 2**30, GIGABYTES * 2**30))
    try:
        solution = ro.solve(instance.problem(), backend, time_limit_seconds=seconds, gap=gap)
    except (ro.Unsupported, ro.BackendFailure, ro.LicenceMissing) as error:
        status = "declined" if isinstance(error, ro.Unsupported) else "failed"
        sender.send({"backend": backend, **instance.__dict__, "status": status, "gap": gap, "proved": False})
        return
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sender.send({**record_of(instance, backend, solution, gap), "megabytes": megabytes})


def is_hopeless(instance: SyntheticProblem, record: dict[str, Any]) -> bool:
    """Whether a run that was cut short says that this problem, a much larger one, is out of reach too.

    Either it is larger in every way, with three times as many tuples, or it has ten times as many. What does not
    enumerate need not follow from sizes, so the exact solver and one MILP solver are run on every problem.
    """
    tuples = instance.problem().n_tuples
    if record["backend"] in ALWAYS_RUN:
        return False
    larger = (
        record["n"] <= instance.n
        and record["m"] <= instance.m
        and record["policies"] * record["targets"] <= instance.policies * instance.targets
        and record["measure"] == instance.measure
        and record["loss"] == instance.loss
    )
    return bool(10 * record["tuples"] <= tuples or (larger and 3 * record["tuples"] <= tuples))


def _was_cut_short(record: dict[str, Any]) -> bool:
    """Whether a prover ran out of time or memory before it had proved what was asked."""
    ran = record["status"] in ("optimal", "feasible", "no_test", "killed")
    return ran and not record["proved"] and entry_of(record["backend"]).capabilities.finds_optimum


def measure(
    instances: list[SyntheticProblem],
    split: str,
    backends: list[str],
    seconds: float,
    before: list[dict[str, Any]],
    gap: float = 0.0,
) -> list[dict[str, Any]]:
    """Run every backend on every problem, the smallest first; those that have no hope are passed over."""
    records: list[dict[str, Any]] = []
    cut_short: dict[str, list[dict[str, Any]]] = {name: [] for name in backends}
    for record in before:
        if _was_cut_short(record) and record["gap"] >= gap:  # it failed at something easier
            cut_short[record["backend"]].append(record)
    for place, instance in enumerate(sorted(instances, key=lambda each: each.problem().n_tuples)):
        problem = instance.problem()
        for name in backends:
            if entry_of(name).capabilities.why_not(problem) is not None:
                continue
            if any(is_hopeless(instance, record) for record in cut_short[name]):
                record = {"backend": name, **instance.__dict__, "status": "not run", "gap": gap, "proved": False}
                record |= {"scenarios": problem.n_scenarios, "tuples": problem.n_tuples, "seconds": seconds}
            else:
                record = run_apart(instance, name, seconds, gap)
                if _was_cut_short(record):
                    cut_short[name].append(record)
            records.append({**record, "split": split})
        print(f"{split} {place + 1} of {len(instances)}: {instance}", file=sys.stderr)
    return records


def check(measured: pd.DataFrame) -> None:
    """No answer may be below a proved optimum, and no bound above an answer: checked before any time is reported."""
    assert not (measured["status"] == "failed").any(), measured[measured["status"] == "failed"].to_string()
    keys = ["kind", "n", "m", "policies", "targets", "measure", "loss", "seed"]
    for _, rows in measured[measured["status"].isin(["optimal", "feasible"])].groupby(keys):
        tolerance = 2e-6  # the least exact backends' own
        worst_bound = rows["lower_bound"].max()
        best = rows["objective"].min()
        assert worst_bound <= best + tolerance, rows[["backend", "objective", "lower_bound", "status"]].to_string()


def warm_up(backends: list[str]) -> None:
    """Load packages and kernels here, so that no run has to: compiled kernels by running them, others by importing."""
    for name in backends:
        entry = entry_of(name)
        entry.load()
        if entry.module.startswith("rposst_opt"):
            ro.solve(WARM.problem(), name)


def versions() -> str:
    """Where and with what it was measured."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return (
        f"Measured on {date.today()} by `make bench`: {platform.machine()}, {available_cores()} cores, "
        f"Python {platform.python_version()}; {', '.join(found)}.\n"
    )


def main() -> None:
    """Measure the grid, or a small part of it, and fit the table of predicted times if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a dozen problems, one second for each run")
    parser.add_argument("--smoke", action="store_true", help="three problems: checks answers, writes nothing")
    parser.add_argument(
        "--fit", action="store_true", help="fit the package's table to benchmarks/grid.csv; run nothing"
    )
    parser.add_argument("--out", type=Path, default=HERE / "grid.csv")
    options = parser.parse_args()
    if options.fit:
        measured = pd.read_csv(HERE / "grid.csv")
        of_fit = measured[measured["split"].isin(["fit", "gap"]) & measured["backend"].isin(provers())]
        write_atomically(TABLE, as_table(fit_models(of_fit.to_dict("records"))))  # type: ignore[arg-type]
        return
    backends = installed()
    warm_up(backends)
    if options.quick or options.smoke:
        records = measure(draw_synthetic(3 if options.smoke else 12, seed=7), "fit", backends, 0.5, [])
    else:
        records = measure(draw_synthetic(FIT, seed=1), "fit", backends, FIT_SECONDS, [])
        records += measure(draw_synthetic(FIT, seed=1), "gap", provers(), FIT_SECONDS, records, GAP)
        records += measure(draw_synthetic(CHECK, seed=2), "check", [*provers(), "local-search"], CHECK_SECONDS, records)
    measured = pd.DataFrame(records)
    if not options.smoke:
        write_atomically(options.out, measured.to_csv(index=False, lineterminator="\n"))
        write_atomically(options.out.with_suffix(".txt"), versions())
    check(measured)
    print(f"{len(measured)} runs of {len(backends)} backends, and their answers fit together.")


if __name__ == "__main__":
    main()
