"""The contract between the package and a backend: what it says of itself, what it is given, what it hands back.

A backend returns a `Candidate`: a test and a lower bound, never a status. Only `rposst_opt.backends` turns it into a
`rposst_opt.solution.Solution`.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import FrameType
from typing import Protocol

from rposst_opt.arrays import FloatArray
from rposst_opt.assembly import SizeIs
from rposst_opt.certificate import Certificate
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import Infeasible, Unsupported
from rposst_opt.feasibility import check_feasible
from rposst_opt.problem import Need, Problem
from rposst_opt.values.by_value import ByValue


class Limit(StrEnum):
    """What ended a run before it was done; the value is the phrase shown to the user."""

    TIME = "the time limit"
    INTERRUPT = "an interrupt"
    SOLVER = "the solver's own limit"  # of iterations or of accuracy, by its own account


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    done, total : int
        Tuples dealt with, of all there are, or whatever `unit` says; the total is 0 where nobody knows it.
    objective : float
        Of the best test so far, by the solver's own account; infinity if there is none.
    lower_bound : float
    test : EfficientTest or None
        The best test so far, where the solver can hand it over: then its objective is no mere claim.
    unit : str
    share : float or None
        Of the work, by a guess that only moves forward, and 1 at the end alone. None where `done` is all that is known:
        the tuples that a search rules out at once say little about how far it is.
    seconds_left : float or None
        By the same guess, at the pace so far.
    """

    done: int
    total: int
    objective: float
    lower_bound: float = -float("inf")
    unit: str = "sets"
    share: float | None = None
    seconds_left: float | None = None
    test: EfficientTest | None = None


@dataclass(frozen=True, kw_only=True)
class Stats:
    """Where the time went, and how much work it was."""

    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    compile_seconds: float = 0.0  # once per installation, and no part of the others
    tuples: int = 0  # dealt with, one by one or ruled out together
    solved: int = 0  # of these, solved one by one, by a search that rules out the others
    rounds: int = 0  # of the game: questions to the antagonist
    nodes: int = 0  # of a search tree
    cuts: int = 0  # learned
    kicks: int = 0  # of a local search, away from its best test
    share_done: float | None = None  # of a search, by its own guess; None where `tuples` is all that is known
    local_search_share: float = 0.0  # of a search's work that went into a local search beside it,
    relaxation_share: float = 0.0  # and into the linear relaxation


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate(ByValue):
    """What a backend hands back.

    Attributes
    ----------
    test : EfficientTest or None
        The best test found, if any.
    lower_bound : float
        No test for the problem has a lower objective than this; -inf when nothing is proved.
    claimed_objective : float or None
        What the solver itself says that its test is worth. It is never reported as the objective, only held against it.
    claimed_losses : ndarray of shape (n_scenarios,) or None
        The solver's own losses; those of scenarios without weight may be anything.
    ranking : tuple of EfficientTest
        The best tests there are, the answer included, where the caller asked for more than one.
    certificate : Certificate or None
        A proof of the lower bound, where the caller asked for one.
    limit : Limit or None
        What ended the run early, if anything did.
    one_of_many : bool
        Whether so many sets of cases are as good that it was not found out which of them comes first.
    stats : Stats
    """

    test: EfficientTest | None
    lower_bound: float
    claimed_objective: float | None = None
    claimed_losses: FloatArray | None = None
    ranking: tuple[EfficientTest, ...] = ()
    certificate: Certificate | None = None
    limit: Limit | None = None
    one_of_many: bool = False
    stats: Stats = field(default_factory=Stats)


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a backend handles and what its answers are worth.

    Attributes
    ----------
    method : str
        What it does, in a few words.
    handles : frozenset of Need
        Compared with `Problem.needs`, so that a new loss or measure edits no backend.
    finds_optimum : bool
        False where the guarantee is a rate, as for regret matching+.
    is_heuristic : bool
        True where there is no guarantee at all, or one in probability only: such a backend is no witness, and being
        worse than others is no disagreement.
    proves : str
        What its lower bound is, in a few words.
    tolerance : float
        The gap, relative to `Problem.unit`, up to which its answers count as optimal.
    requires : tuple of str
        Import names of the packages it needs, probed without importing.
    extra : str or None
        The extra of this distribution that installs them, if they do not come along anyway.
    weighs_freely : bool
        False where its weights follow a rule, so that an offset is of no use to it.
    promised_gap : callable or None
        From a problem, how far above the optimum an answer may be: what a method with a rate is held to.
    unusable : str or None
        Why the backend cannot be used at all, if it cannot.
    why_no_licence : callable or None
        Where the solver needs a licence: what it says if there is none, found out by a program of two variables.
    """

    method: str
    handles: frozenset[Need]
    finds_optimum: bool
    proves: str
    tolerance: float
    requires: tuple[str, ...] = ()
    extra: str | None = None
    is_heuristic: bool = False
    weighs_freely: bool = True
    promised_gap: Callable[[Problem], float] | None = field(default=None, compare=False)
    unusable: str | None = None
    why_no_licence: Callable[[], str | None] | None = field(default=None, compare=False)

    def why_not(self, problem: Problem) -> str | None:
        """What this problem asks for that the backend does not handle, or None.

        Everybody handles a number of cases that is not fixed: `ask` asks for each number in turn.
        """
        unmet = sorted(need.value for need in problem.needs - self.handles - {Need.ANY_NUMBER})
        return f"it does not handle {' or '.join(unmet)}" if unmet else None


class Budget:
    """How long a backend may run and how good an answer must be; it also carries news of the run.

    Parameters
    ----------
    time_limit_seconds : float, optional
        Counted from the making of the budget.
    gap : float
        A gap, in units of the objective, with which the caller is content.
    progress : callable, optional
        Called now and then with a `Progress`.
    """

    def __init__(
        self,
        *,
        time_limit_seconds: float | None = None,
        gap: float = 0.0,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.time_limit_seconds = time_limit_seconds
        self.gap = gap
        self._progress = progress
        self._interrupted = threading.Event()
        self._started = time.monotonic()

    def reached(self) -> Limit | None:
        """Which limit the run has reached by now, if any."""
        if self._interrupted.is_set():
            return Limit.INTERRUPT
        if self.time_limit_seconds is not None and time.monotonic() - self._started >= self.time_limit_seconds:
            return Limit.TIME
        return None

    def restart_clock(self) -> None:
        """Leave out of the time limit what has passed until now, such as a first compilation."""
        self._started = time.monotonic()

    def leave_out(self, seconds: float) -> None:
        """Leave so much of what has passed out of the time limit."""
        self._started += seconds

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens to `tell`, so that tests are worth the making."""
        return self._progress is not None

    def tell(self, progress: Progress) -> None:
        """Pass on how far the run is."""
        if self._progress is not None:
            self._progress(progress)

    @contextmanager
    def telling(self, change: Callable[[Progress], Progress]) -> Iterator[None]:
        """Within this, news are changed before they are passed on: what is true of a part need not be of the whole."""
        heard = self._progress
        self._progress = None if heard is None else lambda progress: heard(change(progress))
        try:
            yield
        finally:
            self._progress = heard

    def in_terms_of(
        self, problem: Problem, translate: Callable[[EfficientTest], EfficientTest]
    ) -> AbstractContextManager[None]:
        """Within this, tests of another problem are told of as what they are, and are worth, in this one."""

        def change(progress: Progress) -> Progress:
            if progress.test is None:
                return progress
            test = translate(progress.test)
            return replace(progress, test=test, objective=problem.objective(test))

        return self.telling(change)

    @contextmanager
    def listening_for_interrupts(self) -> Iterator[None]:
        """Within this, a first Ctrl-C is a limit that `reached` tells of; a second one raises as usual.

        Only the main thread can listen; elsewhere this does nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, frame: FrameType | None) -> None:
            self._interrupted.set()
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def ask(problem: Problem, backend: "Backend", budget: Budget) -> Candidate:
    """Have a backend solve a problem: it is given the problem as solvers state it, and its tests are translated back.

    A certificate is one for the `Problem.stated` problem. A backend that cannot leave the number of cases open is asked
    for every number.
    """
    check_feasible(problem)
    if Need.ANY_NUMBER in problem.needs - backend.capabilities.handles:
        return _ask_for_each_size(problem, backend, budget)
    if not problem.offset:
        return backend.solve(problem, budget)
    if not backend.capabilities.weighs_freely:
        return backend.solve(replace(problem, offset=False), budget)
    with budget.in_terms_of(problem, problem.from_stated):
        candidate = backend.solve(problem.stated, budget)
    return replace(
        candidate,
        test=None if candidate.test is None else problem.from_stated(candidate.test),
        ranking=tuple(problem.from_stated(test) for test in candidate.ranking),
    )


def _ask_for_each_size(problem: Problem, backend: "Backend", budget: Budget) -> Candidate:
    """The best of the backend's answers for every number of cases, and the least of its bounds.

    Numbers that no test can have are left out; after a limit the rest is not asked for, and nothing is proved of it.
    """
    best: Candidate | None = None
    objective, bound, limit = math.inf, math.inf, None
    for size in reversed(problem.sizes):  # more cases are mostly better: a limit may come
        of_size = replace(problem.with_rules(size_is=SizeIs.EXACTLY), size=size)
        try:
            with budget.telling(lambda progress: replace(progress, lower_bound=-math.inf)):  # which is one of this size
                candidate = ask(of_size, backend, budget)
        except Infeasible:
            continue
        if candidate.ranking or candidate.certificate is not None:
            raise Unsupported("a ranking or a certificate needs a fixed number of cases: leave `size_is` as it is.")
        bound, limit = min(bound, candidate.lower_bound), candidate.limit
        value = math.inf if candidate.test is None else problem.objective(candidate.test)
        if best is None or value < objective:
            best, objective = candidate, value
        if limit is not None:
            break
    assert best is not None  # there is a test
    is_done = limit is None or size == problem.sizes[0]
    return replace(best, lower_bound=bound if is_done else -math.inf, limit=limit)


class Backend(Protocol):
    """A way to solve problems: what it can do, and doing it. Its options are its fields."""

    @property
    def capabilities(self) -> Capabilities:
        """What it handles and what its answers are worth."""

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Look for a good test within the budget; prove a lower bound if possible."""
