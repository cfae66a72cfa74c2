"""Problems to measure backends on, and fitting the table of predicted times to what was measured."""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.backends import BACKENDS, entry_of, missing_packages, solve
from rposst_opt.backends.forecast import Model, Run, features, fit
from rposst_opt.contract import Limit
from rposst_opt.losses import AbsoluteError, Loss, SquaredError
from rposst_opt.measures import CVaR, KOfN, Mean, Measure, WorstCase
from rposst_opt.problem import Problem
from rposst_opt.results import softmax_targets
from rposst_opt.solution import Solution, Status

CASES = (10, 15, 20, 30, 50, 80, 120, 200, 300, 500)
SIZES = (1, 2, 3, 4, 5, 6, 8, 10)
POLICIES = (5, 10, 20, 40, 60)
MOST_TUPLES = 10**9
FEWEST_PROBLEMS = 12  # that every backend is measured on, however little time there is
GAP = 0.02  # with which some of the runs are content
MEASURES: dict[str, Measure] = {
    "cvar-0.01": CVaR(0.01),
    "cvar-0.2": CVaR(0.2),
    "worst": WorstCase(),
    "mean": Mean(),
    "1-of-100": KOfN(1, 100),
}
LOSSES: dict[str, Loss] = {"absolute": AbsoluteError(), "squared": SquaredError()}


def _skilled(n: int, p: int, rng: np.random.Generator) -> FloatArray:
    """Probabilities of right answers: policies with three skills, items of different difficulty."""
    skills, loads = rng.normal(size=(p, 3)), rng.gamma(2.0, 0.5, size=(n, 3))
    chances: FloatArray = 1 / (1 + np.exp(rng.normal(size=(n, 1)) - loads @ skills.T))
    return chances


KINDS: dict[str, Callable[[int, int, np.random.Generator], FloatArray]] = {
    "binary": lambda n, p, rng: (rng.random((n, p)) < _skilled(n, p, rng)).astype(np.float64),
    "real": lambda n, p, rng: rng.random((n, p)),
    "low-rank": lambda n, p, rng: _skilled(n, p, rng),
    "noisy": lambda n, p, rng: rng.binomial(20, _skilled(n, p, rng)) / 20,
}


@dataclass(frozen=True)
class Instance:
    """A problem by a few words and numbers, to be made again anywhere."""

    kind: str
    n: int
    m: int
    policies: int
    targets: int
    measure: str
    loss: str
    seed: int

    def problem(self) -> Problem:
        """Make it."""
        results = KINDS[self.kind](self.n, self.policies, np.random.default_rng(self.seed))
        return Problem(
            results=results,
            size=self.m,
            measure=MEASURES[self.measure],
            loss=LOSSES[self.loss],
            targets=softmax_targets(results, betas=(0, 1, 2, 4)[: self.targets]),
        )


def draw_instances(count: int, seed: int) -> list[Instance]:
    """Problems drawn at random from the grid; one in five has a curved loss."""
    return list(itertools.islice(instances(seed), count))


def instances(seed: int) -> Iterator[Instance]:
    """The same without an end."""
    rng = np.random.default_rng(seed)
    kinds = itertools.cycle(KINDS)
    while True:
        instance = Instance(
            kind=next(kinds),
            n=int(rng.choice(CASES)),
            m=int(rng.choice(SIZES)),
            policies=int(rng.choice(POLICIES)),
            targets=int(rng.choice((1, 4))),
            measure=str(rng.choice(list(MEASURES))),
            loss=str(rng.choice(["absolute"] * 4 + ["squared"])),
            seed=int(rng.integers(10**6)),
        )
        if 2 * instance.m <= instance.n and math.comb(instance.n, instance.m) <= MOST_TUPLES:
            yield instance


def provers() -> list[str]:
    """Installed backends whose answers can be proved optimal."""
    names = []
    for name, entry in BACKENDS.items():
        capabilities = entry.capabilities
        if capabilities.finds_optimum and not capabilities.is_heuristic and not missing_packages(capabilities):
            names.append(name)
    return names


def record_of(instance: Instance, backend: str, solution: Solution, gap: float = 0.0) -> dict[str, Any]:
    """What a run tells, as a row of a table; `proved` says whether it is proved to be within the gap asked for."""
    problem = instance.problem()
    return {
        "backend": backend,
        **asdict(instance),
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
    cache: dict[tuple[Instance, float], dict[str, float]] = {}
    for record in records:
        if record["status"] not in ("optimal", "feasible", "no_test", "killed", "not run"):
            continue
        instance = Instance(**{name: record[name] for name in Instance.__dataclass_fields__})
        key = instance, float(record["gap"])
        if key not in cache:
            cache[key] = features(instance.problem(), key[1])
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
    small = Instance("binary", 10, 2, 5, 1, "cvar-0.01", "absolute", 0)
    for name in names:
        solve(small.problem(), name)  # compiles, or loads
    records: list[dict[str, Any]] = []
    fewest = FEWEST_PROBLEMS * len(names)
    limit = max(0.05, seconds / (12 * len(names)))
    gaps = itertools.cycle((0.0, 0.0, GAP))
    started, ended = time.monotonic(), False
    for instance, gap in zip(instances(seed=1), gaps, strict=False):
        problem = instance.problem()
        for name in names:
            share = (time.monotonic() - started) / seconds
            ended = share >= 1 and len(records) >= fewest
            if ended:
                break
            if entry_of(name).capabilities.why_not(problem) is None:
                if tell is not None:
                    tell(f"{name} on n = {instance.n}, m = {instance.m}", min(share, 1.0))
                solution = solve(problem, name, time_limit_seconds=limit, gap=gap)
                if solution.limit is Limit.INTERRUPT:
                    raise KeyboardInterrupt
                records.append(record_of(instance, name, solution, gap))
        if ended:
            break
    return fit_models(records)
