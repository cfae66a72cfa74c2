"""Who can solve a problem, and what is their answer worth?

`BACKENDS` is the table of names; `solve` checks, calls, scores again and decides the status, for all of them in one
place. A backend's module is imported when the backend is called for and not before, so a missing optional package
troubles nobody who does not use it.
"""

import importlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib.util import find_spec
from typing import Any

from rposst_opt.backends.forecast import in_words, predict
from rposst_opt.contract import Backend, Budget, Candidate, Capabilities, Limit, Progress
from rposst_opt.errors import BackendFailure, BackendNotFound, BackendUnavailable, ProblemError, Unsupported
from rposst_opt.problem import Problem
from rposst_opt.solution import BackendChoice, Solution, Status, rank_tests


@dataclass(frozen=True)
class Entry:
    """Where a backend is to be found: a module, the name of a class in it, and options that are settled."""

    module: str
    kind: str
    settled: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Callable[..., Backend]:
        """Import the backend's class."""
        kind: Callable[..., Backend] = self.module_attribute(self.kind)
        return kind

    def module_attribute(self, name: str) -> Any:
        """Import something from the backend's module."""
        try:
            module = importlib.import_module(self.module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] in ("rposst_opt", "formulations"):
                raise  # a bug of ours, not a missing package
            raise BackendUnavailable(
                f"backend {self.name!r} needs {error.name}, which is not installed: pip install {error.name}"
            ) from None
        return getattr(module, name)

    def make(self, **options: Any) -> Backend:
        """Make the backend with these options."""
        return self.load()(**self.settled, **options)

    @property
    def capabilities(self) -> Capabilities:
        """What the backend handles and what its answers are worth."""
        return self.make().capabilities

    @property
    def name(self) -> str:
        """The name under which the table has this entry."""
        return next((name for name, entry in BACKENDS.items() if entry == self), self.kind)


def _by_solver(prefix: str, module: str, kind: str, solvers: Iterable[str]) -> dict[str, Entry]:
    return {f"{prefix}-{solver.lower()}": Entry(module, kind, {"solver": solver}) for solver in solvers}


CONVEX_SOLVERS = ("CLARABEL", "HIGHS", "SCS", "SCIPY", "OSQP", "ECOS", "PIQP", "SCIP", "GUROBI", "MOSEK")

BACKENDS: dict[str, Entry] = {
    "exact": Entry("rposst_opt.solvers.exact", "Exact"),
    "regret-matching": Entry("rposst_opt.solvers.regret_matching", "RegretMatching"),
    "scipy-milp": Entry("formulations.direct", "DirectMilp"),
    **_by_solver("pulp", "formulations.milp", "MilpSelection", ("CBC", "HIGHS", "SCIP", "GUROBI")),
    **_by_solver("cvxpy", "formulations.convex", "ConvexEnumeration", CONVEX_SOLVERS),
    **_by_solver("cvxpy-mip", "formulations.convex", "ConvexSelection", ("SCIP", "GUROBI", "MOSEK")),
    "local-search": Entry("rposst_opt.solvers.local_search", "LocalSearch"),
    "sampled-regret-matching": Entry("rposst_opt.solvers.sampled", "SampledRegretMatching"),
    "simultaneous": Entry("rposst_opt.solvers.simultaneous", "Simultaneous"),
    **{
        name: Entry(
            "rposst_opt.solvers.baselines", "UniformSelection", {"worst_policy": policy, "worst_target": target}
        )
        for name, policy, target in (
            ("minimax-uniform", True, True),
            ("minimax-ttd-uniform", False, True),
            ("minimax-tnp-uniform", True, False),
            ("miniaverage-uniform", False, False),
        )
    },
    "iterative-minimax": Entry("rposst_opt.solvers.baselines", "IterativeMinimax"),
    "kmeans-anchors": Entry("rposst_opt.solvers.baselines", "KMeansAnchors"),
    "random": Entry("rposst_opt.solvers.baselines", "RandomSubset"),
}

AUTO = "auto"
TOO_SHORT_TO_TELL = 0.05  # seconds: among backends predicted to be this fast, the first in the table is taken
ANYTIME = "local-search"  # what `auto` stands for when there is no time for a proof


def missing_packages(capabilities: Capabilities) -> list[str]:
    """The packages that a backend needs and that are not installed, found without importing them."""
    return [package for package in capabilities.requires if find_spec(package) is None]


def entry_of(name: str) -> Entry:
    """Look a backend up."""
    if name not in BACKENDS:
        raise BackendNotFound(f"unknown backend {name!r}. Known: {', '.join([AUTO, *BACKENDS])}.")
    return BACKENDS[name]


def choose_backend(
    problem: Problem, options: Iterable[str] = (), *, time_limit_seconds: float | None = None, gap: float = 0.0
) -> BackendChoice:
    """The backend that `auto` stands for: of those that can, the one that is predicted to prove what is asked soonest.

    What is asked is the optimum, or a test within a gap. If even that one is predicted to take longer than there is
    time, the best anytime method is taken instead. Options narrow the choice to backends that have them; where none of
    these finds optima, the first in the table is taken. Other heuristics are never chosen: they have to be asked for.
    """
    options = tuple(options)
    predicted = predict(problem, BACKENDS, gap)
    soonest_first = sorted(predicted, key=lambda name: max(predicted[name], TOO_SHORT_TO_TELL))
    known: set[str] = set()
    # One by one: a backend's module is imported when it is looked at.
    for name in dict.fromkeys([*soonest_first, *BACKENDS]):
        entry = BACKENDS[name]
        if entry.capabilities.is_heuristic or not _can_solve(entry, problem):
            continue
        has = set(_options_of(entry))
        known |= has
        if not has.issuperset(options):
            continue
        seconds = predicted.get(name)
        aim = f"a gap of {gap:g}" if gap else "the optimum"
        if seconds is None:
            return BackendChoice(name, predicted, "the first that can; its time is not known")
        too_long = time_limit_seconds is not None and seconds > time_limit_seconds
        if too_long and _can_stand_in(problem, options):
            reason = (
                f"no backend is predicted to prove {aim} within {time_limit_seconds:g} s ({name}, the fastest, "
                f"would take about {in_words(seconds)}), so {ANYTIME} looks for a good test"
            )
            return BackendChoice(ANYTIME, predicted, reason)
        return BackendChoice(name, predicted, f"predicted to prove {aim} soonest, in about {in_words(seconds)}")
    if known:
        wanted = ", ".join(options)
        raise ProblemError(f"no backend has the options {wanted} together. Known: {', '.join(sorted(known))}.")
    raise Unsupported("no installed backend handles this problem.")


def _can_solve(entry: Entry, problem: Problem) -> bool:
    capabilities = entry.capabilities
    return capabilities.why_not(problem) is None and not missing_packages(capabilities)


def _can_stand_in(problem: Problem, options: tuple[str, ...]) -> bool:
    """Whether the anytime method is there, and has the options that are asked for."""
    entry = BACKENDS.get(ANYTIME)
    return entry is not None and _can_solve(entry, problem) and set(_options_of(entry)).issuperset(options)


def _options_of(entry: Entry) -> list[str]:
    """The names of a backend's options that are not settled."""
    kind = entry.load()
    return [option.name for option in fields(kind) if option.name not in entry.settled] if is_dataclass(kind) else []


def make_backend(name: str, options: Mapping[str, Any]) -> Backend:
    """Make a backend with these options; a wrong option is an error that names the right ones."""
    entry = entry_of(name)
    known = _options_of(entry)
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ProblemError(f"backend {name!r} has no option `{unknown[0]}`. It has: {', '.join(known) or 'none'}.")
    backend = entry.make(**options)
    hint = how_to_install(backend.capabilities)
    if hint is not None:
        missing = ", ".join(missing_packages(backend.capabilities))
        raise BackendUnavailable(f"backend {name!r} needs {missing}, which is not installed: {hint}")
    return backend


def how_to_install(capabilities: Capabilities) -> str | None:
    """The command that installs what a backend lacks, or None if it lacks nothing."""
    missing = missing_packages(capabilities)
    if not missing:
        return None
    return "pip install " + (f"rposst-opt[{capabilities.extra}]" if capabilities.extra else " ".join(missing))


def solve(
    problem: Problem,
    backend: str | Backend = AUTO,
    *,
    time_limit_seconds: float | None = None,
    gap: float = 0.0,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Solution:
    """Choose test cases and weights.

    Parameters
    ----------
    problem : Problem
    backend : str or Backend
        A name from `BACKENDS`, ``"auto"``, or a backend made beforehand.
    time_limit_seconds : float, optional
        When to stop with the best test so far.
    gap : float
        The gap with which you are content, in the units of the objective.
    progress : callable, optional
        Called now and then with a `Progress`.
    **options
        Options of the backend, by name, such as ``rounds=1000`` for ``"regret-matching"``; others are refused.

    Examples
    --------
    >>> import rposst_opt as ro
    >>> problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=2)
    >>> solution = ro.solve(problem, "regret-matching", rounds=100)
    >>> solution.test.cases, solution.status.value
    ((0, 1), 'optimal')
    """
    if time_limit_seconds is not None and not time_limit_seconds >= 0:
        raise ProblemError(f"`time_limit_seconds` must not be negative, got {time_limit_seconds:g}.")
    if not (math.isfinite(gap) and gap >= 0):
        raise ProblemError(f"`gap` must be a number from 0 on, got {gap:g}.")
    if isinstance(backend, str):
        name, choice = backend, None
        if backend == AUTO:
            choice = choose_backend(problem, options, time_limit_seconds=time_limit_seconds, gap=gap)
            name = choice.backend
        backend = make_backend(name, options)
    elif options:
        raise ProblemError(f"option `{next(iter(options))}` goes with a backend's name; this backend is already made.")
    else:
        name, choice = _name_of(backend), None
    reason = backend.capabilities.why_not(problem)
    if reason is not None:
        able = [other for other, entry in BACKENDS.items() if entry.capabilities.why_not(problem) is None]
        raise Unsupported(
            f"backend {name!r} cannot solve this problem: {reason} ({problem.loss!r}, {problem.measure!r}). "
            f"Backends that can: {', '.join(able) or 'none'}."
        )
    started = time.perf_counter()
    budget = Budget(time_limit_seconds=time_limit_seconds, gap=gap, progress=progress)
    try:
        candidate = backend.solve(problem, budget)
    except KeyboardInterrupt:
        if budget.reached() is Limit.INTERRUPT:
            raise  # the second one: the first has asked the backend to stop
        # A solver that cannot be asked: what it had is lost.
        candidate = Candidate(test=None, lower_bound=-math.inf, limit=Limit.INTERRUPT)
    solution = judge(problem, candidate, name, backend.capabilities.tolerance, time.perf_counter() - started)
    return solution if choice is None else replace(solution, choice=choice)


def _name_of(backend: Backend) -> str:
    kind = type(backend)
    for name, entry in BACKENDS.items():
        same_settings = all(getattr(backend, option, None) == value for option, value in entry.settled.items())
        if (entry.module, entry.kind) == (kind.__module__, kind.__name__) and same_settings:
            return name
    return kind.__name__


def judge(problem: Problem, candidate: Candidate, backend: str, tolerance: float, seconds: float) -> Solution:
    """Score a candidate again and decide its status: the only place where either is done."""
    lower_bound = candidate.lower_bound
    if math.isnan(lower_bound):
        raise BackendFailure(f"backend {backend!r} returned NaN as its lower bound.")
    if candidate.test is None:
        objective, status = math.inf, Status.NO_TEST
    else:
        for test in (candidate.test, *candidate.ranking):
            reason = problem.why_not(test)
            if reason is not None:
                raise BackendFailure(f"backend {backend!r} returned a test that is no answer: {reason}.")
        objective = problem.objective(candidate.test)
        allowance = problem.allowance(tolerance)
        if lower_bound > objective + allowance:
            raise BackendFailure(
                f"backend {backend!r} claims that no test is below {lower_bound!r}, and its own is at {objective!r}."
            )
        lower_bound = min(lower_bound, objective)
        status = Status.OPTIMAL if objective - lower_bound <= allowance else Status.FEASIBLE
    return Solution(
        test=candidate.test,
        objective=objective,
        lower_bound=lower_bound,
        gap=objective - lower_bound if lower_bound < objective else 0.0,
        status=status,
        backend=backend,
        limit=candidate.limit,
        seconds=seconds,
        stats=candidate.stats,
        ranking=rank_tests(problem, candidate.ranking),
        certificate=candidate.certificate,
    )
