"""Which backends there are: our own, and those that other packages offer.

`OWN_BACKENDS` is our table of names, and `BACKENDS` has the others' too. A backend's module is imported when the
backend is called for and not before, so a missing optional package troubles nobody who does not use it. Another package
offers a backend by an entry point:

    [project.entry-points."rposst_opt.backends"]
    my-solver = "my_package.my_module:MySolver"

where ``MySolver()`` is a `rposst_opt.contract.Backend`; if it is a dataclass, its fields are the backend's options.
"""

import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

from rposst_opt.contract import Backend, Capabilities
from rposst_opt.errors import BackendNotFound, BackendUnavailable, ProblemError, closest_option, unknown

logger = logging.getLogger("rposst_opt")

GROUP = "rposst_opt.backends"
AUTO = "auto"


@dataclass(frozen=True)
class Entry:
    """Where a backend is to be found: a module, the name of a class in it, and options that are settled.

    `provider` names the distribution that offers it, if it is not this one.
    """

    module: str
    kind: str
    settled: Mapping[str, Any] = field(default_factory=dict)
    provider: str | None = None

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
        return attrgetter(name)(module)

    def make(self, **options: Any) -> Backend:
        """Make the backend with these options."""
        return self.load()(**self.settled, **options)

    @property
    def capabilities(self) -> Capabilities:
        """What the backend handles and what its answers are worth; nothing, if another package's does not load."""
        if self.provider is None:
            return self.make().capabilities
        try:
            capabilities = self.make().capabilities
            if not isinstance(capabilities, Capabilities):
                raise TypeError(f"its capabilities are a {type(capabilities).__name__}, not Capabilities")
        except Exception as error:  # another package may raise anything; it is told, and troubles no other backend
            return _of_no_use(f"what {self.provider} offers does not load ({type(error).__name__}: {error})")
        return capabilities

    @property
    def options(self) -> list[str]:
        """The names of the backend's options that are not settled."""
        kind = self.load()
        return [option.name for option in fields(kind) if option.name not in self.settled] if is_dataclass(kind) else []

    @property
    def name(self) -> str:
        """The name under which the table has this entry."""
        return next((name for name, entry in BACKENDS.items() if entry == self), self.kind)


def _of_no_use(reason: str) -> Capabilities:
    return Capabilities(
        method="unknown",
        handles=frozenset(),
        finds_optimum=False,
        is_heuristic=True,
        proves="nothing",
        tolerance=0.0,
        unusable=reason,
    )


def _by_solver(prefix: str, module: str, kind: str, solvers: Iterable[str]) -> dict[str, Entry]:
    return {f"{prefix}-{solver.lower()}": Entry(module, kind, {"solver": solver}) for solver in solvers}


OF_SOLVE = ("time_limit_seconds", "gap", "progress")  # what `solve` takes, whoever the backend is
CONVEX_SOLVERS = ("CLARABEL", "HIGHS", "SCS", "SCIPY", "OSQP", "ECOS", "PIQP", "SCIP", "GUROBI", "MOSEK")

OWN_BACKENDS: dict[str, Entry] = {
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
    "stratified-random": Entry("rposst_opt.solvers.baselines", "StratifiedRandom"),
    "greedy-ridge": Entry("rposst_opt.solvers.for_regression", "GreedyRidge"),
    "mrmr": Entry("rposst_opt.solvers.for_regression", "MinimumRedundancy"),
}


def offered_by_others(taken: Iterable[str]) -> dict[str, Entry]:
    """The backends that other packages offer; a name that is taken already is passed over, and that is told."""
    names = {AUTO, *taken}
    offered: dict[str, Entry] = {}
    for point in entry_points(group=GROUP):
        provider = point.dist.name if point.dist is not None else "an unknown package"
        if point.name in names:
            logger.warning("the backend %r of %s is passed over: the name is taken.", point.name, provider)
            continue
        names.add(point.name)
        offered[point.name] = Entry(point.module, point.attr, provider=provider)
    return offered


BACKENDS: dict[str, Entry] = {**OWN_BACKENDS, **offered_by_others(OWN_BACKENDS)}


def entry_of(name: str) -> Entry:
    """Look a backend up."""
    if name not in BACKENDS:
        raise BackendNotFound(unknown("backend", name, [AUTO, *BACKENDS]))
    return BACKENDS[name]


def name_of(backend: Backend) -> str:
    """The name of a backend that was made already: the table's, if it is there, or its class's."""
    kind = type(backend)
    for name, entry in BACKENDS.items():
        same_settings = all(getattr(backend, option, None) == value for option, value in entry.settled.items())
        if (entry.module, entry.kind) == (kind.__module__, kind.__qualname__) and same_settings:
            return name
    return kind.__name__


def missing_packages(capabilities: Capabilities) -> list[str]:
    """The packages that a backend needs and that are not installed, found without importing them."""
    return [package for package in capabilities.requires if find_spec(package) is None]


def why_unusable(capabilities: Capabilities) -> str | None:
    """Why a backend cannot be used here, whatever the problem is, or the command that installs it; None if it can."""
    return capabilities.unusable or how_to_install(capabilities)


def how_to_install(capabilities: Capabilities) -> str | None:
    """The command that installs what a backend lacks, or None if it lacks nothing."""
    missing = missing_packages(capabilities)
    if not missing:
        return None
    return "pip install " + (f"'rposst-opt[{capabilities.extra}]'" if capabilities.extra else " ".join(missing))


def make_backend(name: str, options: Mapping[str, Any]) -> Backend:
    """Make a backend with these options; a wrong option is an error that names the right ones."""
    entry = entry_of(name)
    if entry.provider is not None and (reason := why_unusable(entry.capabilities)) is not None:
        raise BackendUnavailable(f"backend {name!r} cannot be used: {reason}")
    known = entry.options
    strange = [option for option in options if option not in known]
    if strange:
        raise ProblemError(no_option(f"backend {name!r} has no option", strange[0], f"It has: {quoted(known)}.", known))
    backend = entry.make(**options)
    missing = ", ".join(missing_packages(backend.capabilities))
    if missing:
        hint = how_to_install(backend.capabilities)
        raise BackendUnavailable(f"backend {name!r} needs {missing}, which is not installed: {hint}")
    return backend


def no_option(who_has_none: str, option: str, which: str, known: Iterable[str]) -> str:
    """A message about an option that nobody asked knows: what it may have meant, which they have, and who has it."""
    others = [name for name, entry in BACKENDS.items() if _is_sound(entry) and option in entry.options]
    meant = None if others else closest_option(option, [*known, *OF_SOLVE])
    asked = "." if meant is None else f": did you mean `{meant}`?"
    elsewhere = f" Backends that have `{option}`: {', '.join(others)}." if others else ""
    return f"{who_has_none} `{option}`{asked} {which}{elsewhere}"


def quoted(names: Iterable[str]) -> str:
    """Names of options in a message."""
    return ", ".join(f"`{name}`" for name in names) or "none"


def _is_sound(entry: Entry) -> bool:
    """Whether an entry can be looked into: another package's may not load."""
    return entry.provider is None or entry.capabilities.unusable is None
