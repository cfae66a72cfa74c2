"""Do independent solvers agree, and if not, who is wrong and by which evidence?

Every capable backend is run on the same problem, and every test that comes back is scored by `Problem`: such an
objective is a fact, whoever found the test. A backend is named as disagreeing when

1. its answer is none: it raises, does not answer in time, or returns a test that does not fit the problem;
2. its own value of its test, or its own losses in the tail, differ from the judge's;
3. its lower bound is above an objective that somebody reached: a fact refutes the bound;
4. it claims to find the optimum, was not stopped early, and somebody found a better test;
5. it is a method with a rate, and misses the best objective by more than the rate allows.

Differences are judged by each backend's own stated tolerance, relative to the scale of the losses. Different cases with
the same objective are ties, and agree. Backends that are not installed or cannot state the problem are listed with the
reason, never left out.
"""

import functools
import itertools
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from typing import NamedTuple

import numpy as np

from rposst_opt.backends import BACKENDS, entry_of, judge, make_backend, name_of, why_unusable
from rposst_opt.contract import Backend, Budget, Candidate, Capabilities, ask
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import BackendFailure, ProblemError, RposstError
from rposst_opt.problem import Problem
from rposst_opt.solution import Solution
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.showing import Shown, brief_number, html_table

TIME_LIMIT_SECONDS = 60.0  # for one backend on one problem
PATIENCE_SECONDS = 30.0  # how long beyond its limit a backend is waited for: a first compilation takes part of it


class Verdict(StrEnum):
    """What is to be said of a backend's answer."""

    AGREES = "agrees"
    TIES = "ties"  # the same objective with other cases
    DISAGREES = "disagrees"
    FAILED = "failed"  # no valid answer
    DECLINED = "declined"  # the backend cannot state the problem
    UNAVAILABLE = "unavailable"  # a package is missing


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Finding(ByValue, Shown):
    """One backend's answer and what is to be said of it.

    Attributes
    ----------
    backend : str
    verdict : Verdict
    reason : str
        Why, with the numbers and the evidence; empty when there is nothing to explain.
    solution : Solution or None
    candidate : Candidate or None
        What the backend itself handed back.
    version : str
        Of the solver's package.
    capabilities : Capabilities or None
        What the backend says of itself, and is held to.
    """

    backend: str
    verdict: Verdict
    reason: str = ""
    solution: Solution | None = None
    candidate: Candidate | None = None
    version: str = ""
    capabilities: Capabilities | None = None

    def _facts(self) -> list[tuple[str, str]]:
        objective = [] if self.solution is None else [("objective", brief_number(self.solution.objective))]
        reason = [("because", self.reason)] if self.reason else []
        return [("backend", self.backend), ("verdict", self.verdict.value), *objective, *reason]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Agreement(ByValue, Shown):
    """What all backends say of one problem.

    Attributes
    ----------
    problem : Problem
    findings : tuple of Finding
        One per backend, in the order of the table.
    by_tuple : tuple of (cases, Agreement)
        The same for every single tuple, when asked for.
    """

    problem: Problem
    findings: tuple[Finding, ...]
    by_tuple: tuple[tuple[tuple[int, ...], "Agreement"], ...] = ()

    @property
    def dissenters(self) -> tuple[Finding, ...]:
        """Those who disagree or failed, tuple by tuple included."""
        own = [finding for finding in self.findings if finding.verdict in (Verdict.DISAGREES, Verdict.FAILED)]
        return (*own, *(finding for _, agreement in self.by_tuple for finding in agreement.dissenters))

    @property
    def agreed(self) -> bool:
        """Whether nobody dissents and somebody answered."""
        answered = any(finding.solution is not None for finding in self.findings)
        return answered and not self.dissenters

    @property
    def best(self) -> Finding | None:
        """Who has the test with the least objective; the first in the table among equals."""
        answered = [finding for finding in self.findings if finding.solution is not None]
        return min(answered, key=lambda finding: _objective(finding), default=None)

    def _facts(self) -> list[tuple[str, str]]:
        found = [finding.verdict for finding in self.findings]
        verdicts = ", ".join(f"{found.count(verdict)} {verdict.value}" for verdict in Verdict if verdict in found)
        best = self.best
        return [
            ("agreed", "yes" if self.agreed else "no"),
            ("backends", verdicts or "none"),
            *([] if best is None else [("best", f"{brief_number(_objective(best))} by {best.backend}")]),
            *([("sets of cases one by one", f"{len(self.by_tuple):,}")] if self.by_tuple else []),
        ]

    def _repr_html_(self) -> str:
        rows = [
            (
                finding.backend,
                "" if finding.solution is None else brief_number(finding.solution.objective),
                "" if finding.candidate is None else brief_number(finding.candidate.lower_bound),
                finding.verdict.value,
                finding.reason,
            )
            for finding in self.findings
        ]
        columns = ("backend", "objective", "lower bound", "verdict", "reason")
        return html_table("All agree" if self.agreed else "No agreement", columns, rows, most=len(rows))


def agree(
    problem: Problem,
    backends: Sequence[str | Backend] | None = None,
    *,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
    by_tuple: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Agreement:
    """Run every backend on a problem and say who agrees.

    Parameters
    ----------
    problem : Problem
    backends : sequence of str or Backend, optional
        Names from `BACKENDS`, or backends made beforehand; all that promise something by default, so none of the
        heuristics.
    time_limit_seconds : float
        For each backend.
    patience_seconds : float
        How long beyond its limit a backend is waited for before it counts as hanging.
    by_tuple : bool
        Compare the optimum of every single tuple as well.
    progress : callable, optional
        Called with the name of each backend before it runs.

    Examples
    --------
    >>> import rposst_opt as ro
    >>> problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1)
    >>> report = ro.agree(problem, backends=["regret-matching", "scipy-milp"])
    >>> report.agreed, [finding.verdict.value for finding in report.findings]
    (True, ['agrees', 'agrees'])
    """
    for name, seconds in (("time_limit_seconds", time_limit_seconds), ("patience_seconds", patience_seconds)):
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ProblemError(f"`{name}` must be a number from 0 on, got {seconds:g}.")
    witnesses = [name for name, entry in BACKENDS.items() if not entry.capabilities.is_heuristic]
    asked = _named(witnesses if backends is None else backends)
    if not asked:
        raise ProblemError("`backends` must name at least one backend.")
    findings = []
    for name, backend in asked.items():
        if progress is not None:
            progress(name)
        findings.append(_run(problem, name, backend, time_limit_seconds, patience_seconds))
    return Agreement(
        problem=problem,
        findings=tuple(_weigh_evidence(problem, findings)),
        by_tuple=tuple(
            (cases, agree(alone, backends, time_limit_seconds=time_limit_seconds, patience_seconds=patience_seconds))
            for cases, alone in (_tuples_alone(problem) if by_tuple else ())
        ),
    )


def _tuples_alone(problem: Problem) -> Iterator[tuple[tuple[int, ...], Problem]]:
    """Each tuple as a problem in which nothing else can be chosen."""
    for cases in problem.tuples():
        yield tuple(sorted(cases)), problem.restricted_to(cases)


def _named(backends: Sequence[str | Backend]) -> dict[str, str | Backend]:
    """The backends by the names that they are given here: a second one of the same name gets a number."""
    named: dict[str, str | Backend] = {}
    for backend in backends:
        if isinstance(backend, str):
            entry_of(backend)
        own = backend if isinstance(backend, str) else name_of(backend)
        names = itertools.chain([own], (f"{own} ({number})" for number in itertools.count(2)))
        named[next(name for name in names if name not in named)] = backend
    return named


def _run(
    problem: Problem, name: str, asked: str | Backend, time_limit_seconds: float, patience_seconds: float
) -> Finding:
    """One backend's answer, scored by the judge; nothing is concluded from it yet."""
    try:
        backend = make_backend(asked, {}) if isinstance(asked, str) else asked
    except RposstError as error:
        return Finding(backend=name, verdict=Verdict.UNAVAILABLE, reason=str(error))
    capabilities = backend.capabilities
    version = _version_of(capabilities)
    reason = why_unusable(capabilities)
    if reason is not None:
        return Finding(backend=name, verdict=Verdict.UNAVAILABLE, reason=reason)
    reason = capabilities.why_not(problem)
    if reason is not None:
        return Finding(backend=name, verdict=Verdict.DECLINED, reason=reason, version=version)
    answer = _ask(problem, backend, time_limit_seconds, patience_seconds)
    if answer is None:
        reason = f"it did not answer within {time_limit_seconds + patience_seconds:g} s, its limit and some patience"
        return Finding(backend=name, verdict=Verdict.FAILED, reason=reason, version=version)
    if answer.error is not None:
        reason = f"it raised {type(answer.error).__name__}: {answer.error}"
        return Finding(backend=name, verdict=Verdict.FAILED, reason=reason, version=version)
    candidate = answer.candidate
    reason = _not_a_candidate(problem, candidate)
    if reason is not None:
        return Finding(backend=name, verdict=Verdict.FAILED, reason=reason, version=version)
    assert candidate is not None
    try:
        # The bound is left out here: whether it is true is a question of evidence, below.
        solution = judge(problem, replace(candidate, lower_bound=-math.inf), name, 0.0, answer.seconds)
    except BackendFailure as error:
        return Finding(backend=name, verdict=Verdict.FAILED, reason=str(error), version=version, candidate=candidate)
    if solution.test is None:
        stopped = "nothing" if solution.limit is None else solution.limit.value
        reason = f"it found no test before {stopped} ended its run"
        return Finding(backend=name, verdict=Verdict.FAILED, reason=reason, version=version, candidate=candidate)
    return Finding(
        backend=name,
        verdict=Verdict.AGREES,
        solution=solution,
        candidate=candidate,
        version=version,
        capabilities=capabilities,
    )


def _not_a_candidate(problem: Problem, candidate: object) -> str | None:
    """What is wrong with the form of an answer, before anybody looks at what it says."""
    if candidate is None:
        return "it returned nothing"
    if not isinstance(candidate, Candidate):
        return f"it returned a {type(candidate).__name__}, not a Candidate"
    if not (candidate.test is None or isinstance(candidate.test, EfficientTest)):
        return f"it returned a {type(candidate.test).__name__} as its test, not an EfficientTest"
    if not isinstance(candidate.lower_bound, int | float | np.number):
        return f"it returned {candidate.lower_bound!r} as its lower bound, not a number"
    if candidate.claimed_losses is not None and np.shape(candidate.claimed_losses) != (problem.n_scenarios,):
        shape = np.shape(candidate.claimed_losses)
        return f"it returned losses of shape {shape} for {problem.n_scenarios} scenarios"
    return None


class _Answer(NamedTuple):
    """What came of asking a backend."""

    candidate: Candidate | None
    error: BaseException | None
    seconds: float


class _Worker(threading.Thread):
    """Runs backends apart, one after the other, so that one that hangs can be left behind.

    One thread serves them all while none hangs: SCIP crashes after some hundred solves in a new thread each.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.questions: queue.SimpleQueue[tuple[Problem, Backend, float]] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()

    def run(self) -> None:
        """Answer; whatever is raised is evidence, and kept."""
        while True:
            problem, backend, time_limit_seconds = self.questions.get()
            started = time.perf_counter()
            candidate, error = None, None
            try:
                candidate = ask(problem, backend, Budget(time_limit_seconds=time_limit_seconds))
            except BaseException as raised:
                error = raised
            compile_seconds = candidate.stats.compile_seconds if isinstance(candidate, Candidate) else 0.0
            self.answers.put(_Answer(candidate, error, time.perf_counter() - started - compile_seconds))


_workers: list[_Worker] = []  # the one that is free, if there is one


def _ask(problem: Problem, backend: Backend, time_limit_seconds: float, patience_seconds: float) -> _Answer | None:
    """Let a worker ask the backend; None if it does not answer in time, and the worker is then left behind."""
    try:
        worker = _workers.pop()
    except IndexError:
        worker = _Worker()
        worker.start()
    worker.questions.put((problem, backend, time_limit_seconds))
    try:
        answer = worker.answers.get(timeout=time_limit_seconds + patience_seconds)
    except queue.Empty:
        return None
    _workers.append(worker)
    return answer


def _version_of(capabilities: Capabilities) -> str:
    """The version of the package that does the solving, the last one required."""
    return _version(capabilities.requires[-1]) if capabilities.requires else ""


@functools.cache
def _version(package: str) -> str:
    """Looked up once in a process: finding and reading a package's metadata takes as long as a small problem."""
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return ""


def _objective(finding: Finding) -> float:
    return math.inf if finding.solution is None else finding.solution.objective


def _weigh_evidence(problem: Problem, findings: Sequence[Finding]) -> list[Finding]:
    """Hold every answer against the facts: the objectives of the tests that were found."""
    answered = [finding for finding in findings if finding.solution is not None]
    if not answered:
        return list(findings)
    best = min(answered, key=_objective)
    return [_held_against(problem, finding, best) if finding in answered else finding for finding in findings]


def _held_against(problem: Problem, finding: Finding, best: Finding) -> Finding:
    candidate, solution, capabilities = finding.candidate, finding.solution, finding.capabilities
    assert candidate is not None and solution is not None and capabilities is not None and best.solution is not None
    allowance = problem.allowance(capabilities.tolerance)
    objection = (
        _false_claim(problem, candidate, solution, allowance)
        or _refuted_bound(candidate, best, allowance)
        or _missed_optimum(problem, finding, capabilities, best, allowance)
    )
    bound = min(candidate.lower_bound, solution.objective)
    if objection is not None:
        return replace(finding, verdict=Verdict.DISAGREES, reason=objection)
    judged = judge(
        problem, replace(candidate, lower_bound=bound), finding.backend, capabilities.tolerance, solution.seconds
    )
    notes = [] if solution.limit is None else [f"stopped early by {solution.limit.value}"]
    assert solution.test is not None and best.solution.test is not None
    same_value = solution.objective - best.solution.objective <= allowance
    if solution.test.cases != best.solution.test.cases and same_value:
        notes.append(f"as good as {best.backend}'s cases {list(best.solution.test.case_names)}")
        return replace(finding, solution=judged, verdict=Verdict.TIES, reason="; ".join(notes))
    return replace(finding, solution=judged, verdict=Verdict.AGREES, reason="; ".join(notes))


def _false_claim(problem: Problem, candidate: Candidate, solution: Solution, allowance: float) -> str | None:
    """Rule 2: what the backend says of its own test."""
    assert solution.test is not None
    claimed = candidate.claimed_objective
    if claimed is not None and not abs(claimed - solution.objective) <= allowance:
        return (
            f"it says that its test is worth {claimed:.9g}, and the judge says {solution.objective:.9g}: "
            f"off by {abs(claimed - solution.objective):.3g}, with {allowance:.3g} allowed"
        )
    if candidate.claimed_losses is not None:
        losses = problem.losses(solution.test)
        weights = problem.measure.weights(losses, problem.scenarios.probabilities)
        # A loss enters the objective with its weight, so it may miss by as much more as it counts less.
        claimed_losses = np.where(weights > 0, candidate.claimed_losses, losses)
        misses = weights * np.abs(claimed_losses - losses)
        worst = int(np.argmax(np.nan_to_num(misses, nan=np.inf)))
        if not misses[worst] <= allowance:
            policy = problem.policy_names[problem.scenarios.policies[worst]]
            return (
                f"in the tail, it says that scenario {worst} (policy {policy!r}) loses "
                f"{candidate.claimed_losses[worst]:.9g}, and the judge says {losses[worst]:.9g}"
            )
    return None


def _refuted_bound(candidate: Candidate, best: Finding, allowance: float) -> str | None:
    """Rule 3: a bound above what was reached."""
    bound, reached = candidate.lower_bound, _objective(best)
    if math.isnan(bound):
        return "its lower bound is NaN"
    if bound > reached + allowance:
        return (
            f"its lower bound {bound:.9g} is refuted by {best.backend}'s test at {reached:.9g}: "
            f"off by {bound - reached:.3g}, with {allowance:.3g} allowed"
        )
    return None


def _missed_optimum(
    problem: Problem, finding: Finding, capabilities: Capabilities, best: Finding, allowance: float
) -> str | None:
    """Rules 4 and 5: a better test exists than the method may miss."""
    assert finding.solution is not None and finding.candidate is not None
    if finding.candidate.limit is not None or capabilities.is_heuristic:
        return None
    missed = finding.solution.objective - _objective(best)
    if not capabilities.finds_optimum:
        if capabilities.promised_gap is None:
            return None
        allowance += capabilities.promised_gap(problem.stated)
    if missed > allowance:
        return (
            f"its test is at {finding.solution.objective:.9g}, and {best.backend} found one at "
            f"{_objective(best):.9g}: off by {missed:.3g}, with {allowance:.3g} allowed"
        )
    return None
