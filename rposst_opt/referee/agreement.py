"""Do independent solvers agree, and if not, who is wrong and by which evidence?

Every capable backend is run on the same problem, each in a process of its own, and every test that comes back is scored
by `Problem`: such an objective is a fact, whoever found the test. A backend is named as disagreeing when

1. its answer is none: it returns something that is no test for the problem, or none although nothing stopped it, or
   claims that there is none;
2. its own value of its test, or its own losses in the tail, differ from the judge's;
3. its lower bound is above an objective that somebody reached: a fact refutes the bound;
4. it claims to find the optimum, was not stopped early, and somebody found a better test;
5. it is a method with a rate, and misses the best objective by more than the rate allows;
6. what it told of on its way, while it ran, is false by rules 1 to 3.

Differences are judged by each backend's own stated tolerance, relative to the scale of the losses. Different cases with
the same objective are ties, and agree. Whoever proved less or found nothing in the time, crashed, has no licence, is
not installed or cannot state the problem has contradicted nobody: that is told and counted apart, and never left out.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from rposst_opt.arrays import on_the_simplex
from rposst_opt.backends import BACKENDS, entry_of, judge, make_backend, name_of, why_unusable
from rposst_opt.contract import Backend, Candidate, Capabilities, Limit, Progress
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import BackendFailure, ProblemError, RposstError, names_arguments
from rposst_opt.feasibility import check_feasible
from rposst_opt.problem import Problem
from rposst_opt.referee.evidence import weigh_evidence
from rposst_opt.referee.findings import Agreement, Contradiction, Finding, Verdict
from rposst_opt.referee.nursery import News
from rposst_opt.referee.profiles import Point, best_test, profile, with_end
from rposst_opt.referee.witnesses import Limits, Silence, ask_apart

__all__ = ["PATIENCE_SECONDS", "TIME_LIMIT_SECONDS", "Agreement", "Finding", "Verdict", "agree"]

TIME_LIMIT_SECONDS = 60.0  # for one backend on one problem
Heard = Callable[[str, float, Progress], None]  # a backend's name, its seconds so far, and how far it is

PATIENCE_SECONDS = 30.0  # how long beyond its limit a backend is waited for; compiling does not count


@names_arguments
def agree(
    problem: Problem,
    backends: Sequence[str | Backend] | None = None,
    *,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
    most_bytes: float | None = None,
    by_tuple: bool = False,
    progress: Callable[[str], None] | None = None,
    heard: Heard | None = None,
    found: Callable[[Finding], None] | None = None,
) -> Agreement:
    """Run every backend on a problem and say who agrees.

    Parameters
    ----------
    problem : Problem
    backends : sequence of str or Backend, optional
        Names from `BACKENDS`, or backends made beforehand, which `cloudpickle` must be able to pass on to another
        process; all that promise something by default, so none of the heuristics.
    time_limit_seconds : float
        For each backend.
    patience_seconds : float
        How long beyond its limit a backend is waited for before it counts as hanging.
    most_bytes : float, optional
        How much memory a backend may take, with all that it starts; half of the machine's by default.
    by_tuple : bool
        Compare the optimum of every single tuple as well.
    progress : callable, optional
        Called with the name of each backend before it runs.
    heard : callable, optional
        Called with a backend's name, its seconds so far and its `Progress`, as often as it tells of any.
    found : callable, optional
        Called with each finding as it comes, before it is held against those that come later: its verdict may change.

    Examples
    --------
    >>> import rposst_opt as ro
    >>> problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1)
    >>> report = ro.agree(problem, backends=["regret-matching", "scipy-milp"])
    >>> report.agreed, [finding.verdict.value for finding in report.findings]
    (True, ['agrees', 'agrees'])
    """
    limits = checked_limits(time_limit_seconds, patience_seconds, most_bytes)
    witnesses = [name for name, entry in BACKENDS.items() if not entry.capabilities.is_heuristic]
    asked = named(witnesses if backends is None else backends)
    findings = asked_in_turn(problem, asked, limits, progress=progress, heard=heard, found=found)
    return Agreement(
        problem=problem,
        findings=findings,
        by_tuple=tuple(
            (cases, agree(alone, backends, **limits._asdict()))
            for cases, alone in (_tuples_alone(problem) if by_tuple else ())
        ),
    )


def asked_in_turn(
    problem: Problem,
    asked: Mapping[str, str | Backend],
    limits: Limits,
    *,
    options: Mapping[str, Any] | None = None,
    warm_up: bool = False,
    progress: Callable[[str], None] | None = None,
    heard: Heard | None = None,
    found: Callable[[Finding], None] | None = None,
) -> tuple[Finding, ...]:
    """What each backend says, one asked after the other, held against what all say.

    Those that are given by name are made with such of the `options` as they have. To warm up, each is asked once
    before, with no time at all.
    """
    check_feasible(problem)
    findings: list[Finding] = []
    for name, backend in asked.items():
        if progress is not None:
            progress(name)
        tell = None if heard is None else functools.partial(heard, name)
        if warm_up:
            _found(problem, name, backend, limits._replace(time_limit_seconds=0.0), options or {}, None)
        findings.append(_found(problem, name, backend, limits, options or {}, tell))
        if found is not None:
            found(weigh_evidence(problem, findings)[-1])
    return tuple(weigh_evidence(problem, findings))


def checked_limits(time_limit_seconds: float, patience_seconds: float, most_bytes: float | None) -> Limits:
    for name, seconds in (("time_limit_seconds", time_limit_seconds), ("patience_seconds", patience_seconds)):
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ProblemError(f"`{name}` must be a number from 0 on, got {seconds:g}.")
    if most_bytes is not None and not most_bytes > 0:
        raise ProblemError(f"`most_bytes` must be a number above 0, got {most_bytes:g}.")
    return Limits(time_limit_seconds, patience_seconds, most_bytes)


def _tuples_alone(problem: Problem) -> Iterator[tuple[tuple[int, ...], Problem]]:
    """Each tuple as a problem in which nothing else can be chosen."""
    for cases in problem.tuples():
        yield tuple(sorted(cases)), problem.restricted_to(cases)


def named(backends: Sequence[str | Backend]) -> dict[str, str | Backend]:
    """The backends by the names that they are given here: a second one of the same name gets a number."""
    if not backends:
        raise ProblemError("`backends` must name at least one backend.")
    named: dict[str, str | Backend] = {}
    for backend in backends:
        if isinstance(backend, str):
            entry_of(backend)
        own = backend if isinstance(backend, str) else name_of(backend)
        names = itertools.chain([own], (f"{own} ({number})" for number in itertools.count(2)))
        named[next(name for name in names if name not in named)] = backend
    return named


def _found(
    problem: Problem,
    name: str,
    asked: str | Backend,
    limits: Limits,
    options: Mapping[str, Any],
    tell: Callable[[float, Progress], None] | None,
) -> Finding:
    """One backend's answer, scored by the judge; nothing is concluded from it yet."""
    try:
        backend = _made(asked, options) if isinstance(asked, str) else asked
    except RposstError as error:
        return Finding(backend=name, verdict=Verdict.UNAVAILABLE, reason=str(error))
    capabilities = backend.capabilities
    reason = why_unusable(capabilities)
    if reason is not None:
        return Finding(backend=name, verdict=Verdict.UNAVAILABLE, reason=reason)
    finding = Finding(
        backend=name, verdict=Verdict.DISAGREES, version=_version_of(capabilities), capabilities=capabilities
    )
    reason = capabilities.why_not(problem)
    if reason is not None:
        return replace(finding, verdict=Verdict.DECLINED, reason=reason)
    news: list[News] = []

    def listen(piece: News) -> None:
        news.append(piece)
        if tell is not None:
            tell(piece.seconds, piece.progress)

    heard = ask_apart(problem, backend, limits, listen)
    finding = replace(finding, profile=profile(problem, news, problem.allowance(capabilities.tolerance)))
    if isinstance(heard, Silence):
        return _silent(problem, finding, heard, limits)
    if heard.no_licence is not None:
        return replace(finding, verdict=Verdict.NO_LICENCE, reason=heard.no_licence)
    if heard.false_claim is not None:
        return replace(finding, contradiction=Contradiction.NO_ANSWER, reason=heard.false_claim)
    if heard.raised is not None:
        return replace(finding, verdict=Verdict.CRASHED, reason=f"it raised {heard.raised}")
    return _scored(problem, finding, heard.returned, heard.seconds)


def _made(name: str, options: Mapping[str, Any]) -> Backend:
    """The backend with such of the options as it has."""
    backend = make_backend(name, {})
    own = {option: value for option, value in options.items() if option in entry_of(name).options}
    return make_backend(name, own) if own else backend


def _silent(problem: Problem, finding: Finding, silence: Silence, limits: Limits) -> Finding:
    """What is known of a backend that gave no answer: if it hung, the best test that it told of is its answer."""
    if not silence.has_hung:
        return replace(finding, verdict=Verdict.CRASHED, reason=silence.words)
    test = best_test(finding.profile)
    if test is None:
        return replace(finding, verdict=Verdict.FOUND_NOTHING, reason=silence.words)
    told = Candidate(test=test, lower_bound=max(point.lower_bound for point in finding.profile), limit=Limit.TIME)
    seconds = limits.time_limit_seconds + limits.patience_seconds
    solution = judge(problem, replace(told, lower_bound=-math.inf), finding.backend, 0.0, seconds)
    reason = f"{silence.words}; its test is the best one that it told of on its way"
    return replace(finding, verdict=Verdict.PROVED_LESS, reason=reason, solution=solution, candidate=told)


def _scored(problem: Problem, finding: Finding, returned: object, seconds: float) -> Finding:
    """What a backend returned, if it is an answer, with the judge's score."""
    none = replace(finding, contradiction=Contradiction.NO_ANSWER)
    reason = _not_a_candidate(problem, returned)
    if reason is not None:
        return replace(none, reason=reason)
    assert isinstance(returned, Candidate)
    finding = replace(finding, candidate=returned)
    try:
        # The bound is left out here: whether it is true is a question of evidence.
        solution = judge(problem, replace(returned, lower_bound=-math.inf), finding.backend, 0.0, seconds)
    except BackendFailure as error:
        return replace(none, candidate=returned, reason=str(error))
    end = Point(
        seconds=seconds,
        objective=solution.objective,
        claimed_objective=returned.claimed_objective,
        lower_bound=float(returned.lower_bound),
        test=solution.test,
    )
    finding = replace(finding, profile=with_end(finding.profile, end))
    if solution.test is not None:
        return replace(finding, verdict=Verdict.AGREES, solution=solution)
    if solution.limit is None:
        reason = "it found no test, and nothing had stopped it"
        return replace(finding, contradiction=Contradiction.NO_ANSWER, reason=reason)
    reason = f"it found no test before {solution.limit.value} ended its run"
    return replace(finding, verdict=Verdict.FOUND_NOTHING, reason=reason)


def _not_a_candidate(problem: Problem, candidate: object) -> str | None:
    """What is wrong with the form of an answer, before anybody looks at what it says."""
    if candidate is None:
        return "it returned nothing"
    if not isinstance(candidate, Candidate):
        return f"it returned a {type(candidate).__name__}, not a Candidate"
    if not (candidate.test is None or isinstance(candidate.test, EfficientTest)):
        return f"it returned a {type(candidate.test).__name__} as its test, not an EfficientTest"
    off = None if candidate.test is None else _off_the_simplex(candidate.test)
    if off is not None:
        return off
    if not isinstance(candidate.lower_bound, int | float | np.number):
        return f"it returned {candidate.lower_bound!r} as its lower bound, not a number"
    if candidate.claimed_losses is not None and np.shape(candidate.claimed_losses) != (problem.n_scenarios,):
        shape = np.shape(candidate.claimed_losses)
        return f"it returned losses of shape {shape} for {problem.n_scenarios} scenarios"
    return None


def _off_the_simplex(test: EfficientTest) -> str | None:
    """What is wrong with the weights of a test that was not made as tests are, with their checks."""
    try:
        on_the_simplex(test.weights, may_be_less=test.has_offset)
    except ProblemError as error:
        return f"it returned what is no test: {error}"
    return None


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
