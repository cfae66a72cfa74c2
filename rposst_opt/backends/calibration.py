"""Measuring backends, and fitting the table of predicted times to what was measured."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rposst_opt.backends import BACKENDS, entry_of, solve, why_unusable
from rposst_opt.backends.forecast import Model, Run, features, fit
from rposst_opt.backends.synthetic import SyntheticProblem, synthetic_problems
from rposst_opt.contract import Limit
from rposst_opt.solution import Solution, Status

FEWEST_PROBLEMS = 12  # that every backend is measured on, however little time there is
GAP = 0.02  # with which some of the runs are content


def provers() -> list[str]:
    """Installed backends whose answers can be proved optimal."""
    names = []
    for name, entry in BACKENDS.items():
        capabilities = entry.capabilities
        if capabilities.finds_optimum and not capabilities.is_heuristic and why_unusable(capabilities) is None:
            names.append(name)
    return names


def record_of(synthetic: SyntheticProblem, backend: str, solution: Solution, gap: float = 0.0) -> dict[str, Any]:
    """What a run tells, as a row of a table; `proved` says whether it is proved to be within the gap asked for."""
    problem = synthetic.problem()
    return {
        "backend": backend,
        **asdict(synthetic),
        "scenarios": problem.n_scenarios,
        "tuples": problem.n_tuples,
        "seconds": solution.seconds,
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "relative_gap": solution.gap / problem.unit,
        "status": solution.status.value,
        "gap": gap,
        "proved": solution.status is Status.OPTIMAL or (gap > 0 and solution.gap <= gap),
    }


def fit_models(records: Sequence[dict[str, Any]]) -> dict[str, Model]:
    """A model for every backend that has proved something; a problem that was out of reach counts as one cut short."""
    by_backend: dict[str, list[Run]] = {}
    cache: dict[tuple[SyntheticProblem, float], dict[str, float]] = {}
    for record in records:
        if record["status"] not in ("optimal", "feasible", "no_test", "killed", "not run"):
            continue
        synthetic = SyntheticProblem(**{name: record[name] for name in SyntheticProblem.__dataclass_fields__})
        key = synthetic, float(record["gap"])
        if key not in cache:
            cache[key] = features(synthetic.problem(), key[1])
        run = Run(cache[key], float(record["seconds"]), bool(record["proved"]))
        by_backend.setdefault(str(record["backend"]), []).append(run)
    return {backend: fit(runs) for backend, runs in by_backend.items() if any(run.proved for run in runs)}


def calibrate(
    seconds: float, *, tell: Callable[[str, float], None] | None = None, backends: Sequence[str] | None = None
) -> dict[str, Model]:
    """Measure the backends on this machine for about so many seconds, and fit a model to each.

    Parameters
    ----------
    seconds : float
    tell : callable, optional
        Called with what is being done, and the share of the time that has passed.
    backends : sequence of str, optional
        All that are installed and prove optima, by default.
    """
    names = provers() if backends is None else list(backends)
    small = SyntheticProblem("binary", 10, 2, 5, 1, "cvar-0.01", "absolute", 0)
    for name in names:
        solve(small.problem(), name)  # compiles, or loads
    records: list[dict[str, Any]] = []
    fewest = FEWEST_PROBLEMS * len(names)
    limit = max(0.05, seconds / (12 * len(names)))
    gaps = itertools.cycle((0.0, 0.0, GAP))
    started, ended = time.monotonic(), False
    for synthetic, gap in zip(synthetic_problems(seed=1), gaps, strict=False):
        problem = synthetic.problem()
        for name in names:
            share = (time.monotonic() - started) / seconds
            ended = share >= 1 and len(records) >= fewest
            if ended:
                break
            if entry_of(name).capabilities.why_not(problem) is None:
                if tell is not None:
                    tell(f"{name} on n = {synthetic.n}, m = {synthetic.m}", min(share, 1.0))
                solution = solve(problem, name, time_limit_seconds=limit, gap=gap)
                if solution.limit is Limit.INTERRUPT:
                    raise KeyboardInterrupt
                records.append(record_of(synthetic, name, solution, gap))
        if ended:
            break
    return fit_models(records)
