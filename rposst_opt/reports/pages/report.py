"""What a report is about: everything that there is to run on one problem, run. `report_page` only writes it down."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray
from rposst_opt.backends import AUTO, entry_of, solve
from rposst_opt.contract import Limit, Progress
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import Infeasible, ProblemError
from rposst_opt.problem import Problem
from rposst_opt.referee.comparison import Comparison, compare
from rposst_opt.referee.findings import Agreement
from rposst_opt.reports.analysis import closing_in, size_curve
from rposst_opt.reports.budgets import budget_curve, default_budgets
from rposst_opt.reports.pages.explorer import GAME_SECONDS, GAMES, GameValues, game_values
from rposst_opt.reports.pages.timing import Clock, Part, Plan, finite_or_none
from rposst_opt.reports.sizes import spread_out, with_cases_dropped
from rposst_opt.results import Scale
from rposst_opt.solution import Solution, Status
from rposst_opt.solvers.running import available_cores
from rposst_opt.unseen.error_bars import LeftOut
from rposst_opt.unseen.procedures import Purpose
from rposst_opt.unseen.splits import FEWEST_TUNED_ON
from rposst_opt.unseen.stand_in import leave_out_after, why_not_left_out
from rposst_opt.unseen.validation import Validation

ALL_SECONDS = 300.0  # for everything together
AGREE_SECONDS = 10.0  # at most, for each backend
SIZES_BEYOND = 2  # how many sizes above the one asked for are shown
SIZES_AT_LEAST = 8  # none has less than such a share of the time for sizes: a few are worked out well rather than all
DROPPING_LEAVES = 0.9  # of that time, to searches: dropping cases from larger tests is soon done
BUDGETS_BEYOND = 3.0  # times the problem's own budget
BUDGET_SECONDS = 10.0  # at most, for each of them
ROUNDS = 500
SAME_SCORES = 1e-6  # full scores that differ by a smaller share of the largest are taken for the same

Tell = Callable[[str], None]  # takes what is being done


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found out about one problem.

    Attributes
    ----------
    problem : Problem
    scale : Scale
        Of the units that the results had in their file.
    target_names : sequence of str
    solution : Solution
        With a test.
    trace : sequence of (seconds, objective, lower bound)
        News of the run, in their order.
    sizes : DataFrame
        `rposst_opt.reports.analysis.size_curve`.
    rounds : DataFrame
        `rposst_opt.reports.analysis.closing_in` on the chosen cases.
    budgets : DataFrame or None
        `rposst_opt.reports.budgets.budget_curve`; None where it is not known what cases cost.
    game_values : GameValues
        What the game on the page holds its players against.
    comparison : Comparison or None
        What other solvers found, and when; None if nobody was asked.
    not_asked : mapping of str to str
        Backends that would have taken too long, and why they were not asked.
    left_out : LeftOut or None
        Tests that were made without some policies; None if that is not known how to do, or takes too long.
    why_not_left_out : str or None
        Why none were made, if that was tried.
    validation : Validation or None
        Trials on policies that were held out; None if none were handed over.
    interrupted : bool
        Whether an interrupt came before everything was run.
    """

    problem: Problem
    scale: Scale
    target_names: Sequence[str]
    solution: Solution
    trace: Sequence[tuple[float, float, float]]
    sizes: pd.DataFrame
    rounds: pd.DataFrame
    game_values: GameValues = field(default_factory=GameValues)
    comparison: Comparison | None = None
    budgets: pd.DataFrame | None = None
    not_asked: Mapping[str, str] = field(default_factory=dict)
    left_out: LeftOut | None = None
    why_not_left_out: str | None = None
    validation: Validation | None = None
    interrupted: bool = False

    @property
    def test(self) -> EfficientTest:
        """The small test."""
        assert self.solution.test is not None
        return self.solution.test

    @property
    def agreement(self) -> Agreement | None:
        """Whether the others agree; None if nobody was asked."""
        return None if self.comparison is None else self.comparison.agreement


class _Trace:
    """Notes what a run tells about itself."""

    def __init__(self) -> None:
        self.news: list[tuple[float, float, float]] = []

    def __call__(self, progress: Progress) -> None:
        self.news.append((time.perf_counter(), progress.objective, progress.lower_bound))

    def of(self, solution: Solution) -> list[tuple[float, float, float]]:
        """The news in seconds since the search began, without compilation, and the end."""
        ended = time.perf_counter()
        began = ended - (solution.stats.solve_seconds or solution.seconds)
        told = [(max(at - began, 0.0), objective, bound) for at, objective, bound in self.news]
        return [*told, (ended - began, solution.objective, solution.lower_bound)]


def gather(
    problem: Problem,
    *,
    scale: Scale | None = None,
    target_names: Sequence[str] | None = None,
    backend: str = AUTO,
    time_limit_seconds: float | None = ALL_SECONDS,
    backends: Sequence[str] | None = None,
    agree_seconds: float = AGREE_SECONDS,
    largest_size: int | None = None,
    made_of: tuple[FloatArray, Purpose] | None = None,
    validation: Validation | None = None,
    tell: Tell = lambda what: None,
    expect: Callable[[float], None] = lambda seconds: None,
) -> Report | None:
    """Solve the problem and all that the report compares it with; None if no test was found.

    An interrupt ends what is being run, and leaves out the rest.

    Parameters
    ----------
    problem : Problem
    scale : Scale, optional
        The units that the results had before they were rescaled; the problem's, if it knows them, by default.
    target_names : sequence of str, optional
    backend : str
    time_limit_seconds : float, optional
        In all, but for compiling and drawing: `rposst_opt.reports.pages.timing` says how it is shared out.
    backends : sequence of str, optional
        Who is asked to agree; by default all that promise something and are predicted to answer in time. None of them
        with an empty sequence.
    agree_seconds : float
        At most, for each of them.
    largest_size : int, optional
        Up to which size the best achievable objective is shown; two above the problem's by default.
    made_of : (ndarray, Purpose), optional
        The results before they were rescaled, and what makes a problem of them: for the error on policies not seen.
    validation : Validation, optional
        What `validate` found with the same results and targets.
    tell : callable, optional
        Called with what is being done.
    expect : callable, optional
        Called before anything is run with the seconds that all of it may take, as far as that can be predicted.
    """
    _check_who_is_asked(backend, backends, agree_seconds)
    _check_validation(validation, problem, scale := scale or problem.scale or Scale(0.0, 1.0))
    leaves_out = made_of is not None and problem.n_policies > FEWEST_TUNED_ON
    sizes = _sizes_shown(problem, largest_size)
    plan = Plan(problem, backend, time_limit_seconds, leaves_out, sizes, backends, agree_seconds)
    clock = Clock(time_limit_seconds, plan.parts)
    expect(plan.expected_seconds())
    solution, trace = _solved(problem, backend, clock, tell)
    if solution.test is None:
        return None
    report = replace(_first_report(problem, solution, trace, scale, target_names), validation=validation)
    return _all_run(report, [partial(_with_rounds, tell=tell), *_steps(plan, made_of, clock, tell)])


def _steps(
    plan: Plan, made_of: tuple[FloatArray, Purpose] | None, clock: Clock, tell: Tell
) -> list[Callable[[Report], Report]]:
    """What is run after the test itself, each within its share of the time."""
    steps: dict[Part, Callable[..., Report]] = {
        Part.LEFT_OUT: partial(_with_left_out, made_of=made_of),
        Part.SIZES: partial(_with_sizes, sizes=plan.sizes),
        Part.BUDGETS: _with_budgets,
        Part.GAMES: _with_game_values,
        Part.OTHERS: partial(_with_comparison, plan=plan),
    }
    return [partial(steps[part], clock=clock, tell=tell) for part in plan.parts if part in steps]


def _check_who_is_asked(backend: str, backends: Sequence[str] | None, agree_seconds: float) -> None:
    for name in (*(backends or ()), *([] if backend == AUTO else [backend])):
        entry_of(name)
    if not agree_seconds >= 0:
        raise ProblemError(f"the time for each backend must not be negative, got {agree_seconds:g}.")


def _check_validation(validation: Validation | None, problem: Problem, scale: Scale) -> None:
    """Refuse trials with other policies, targets or results; they may have been of other sizes."""
    if validation is None:
        return
    errors = validation.errors.reset_index(drop=True)
    held_out = set(errors["policy"])
    strange = sorted(held_out.difference(problem.policy_names))
    if strange:
        raise ProblemError(f"the validation is of another table: there is no policy {strange[0]!r} in this problem.")
    missing = [name for name in problem.policy_names if name not in held_out]
    if missing:
        raise ProblemError(f"the validation is of another table: it never held out the policy {missing[0]!r}.")
    n_targets = int(errors["target"].max()) + 1
    if n_targets != len(problem.targets):
        raise ProblemError(f"the validation has {n_targets} targets and this problem {len(problem.targets)}.")
    means = scale.score_in_file_units(problem.results.mean(axis=0))
    full = errors["policy"].map(dict(zip(problem.policy_names, means.tolist(), strict=True))).to_numpy()
    # Targets that are made of results differ with who is held out; the uniform one is always the same.
    uniform = np.flatnonzero(np.isclose(problem.targets, 1 / problem.n_cases).all(axis=1))
    apart = np.abs(errors["full"].to_numpy() - full) > SAME_SCORES * np.abs(means).max()
    differing = errors[apart & errors["target"].isin(uniform.tolist()).to_numpy()]
    if len(differing):
        first = differing.iloc[0]
        raise ProblemError(
            f"the validation is of other results: the full score of {first['policy']!r} is {first['full']:.6g} there, "
            f"and {full[differing.index[0]]:.6g} here."
        )


def _solved(
    problem: Problem, backend: str, clock: Clock, tell: Tell
) -> tuple[Solution, Sequence[tuple[float, float, float]]]:
    """The solution, and the news of its run."""
    tell("the test itself")
    trace = _Trace()
    limit = finite_or_none(clock.share(Part.TEST))
    solution = solve(problem, backend, time_limit_seconds=limit, progress=trace)
    return solution, trace.of(solution)


def _with_left_out(report: Report, *, clock: Clock, tell: Tell, made_of: tuple[FloatArray, Purpose] | None) -> Report:
    """The test made again without some policies, by a search if need be, for which half of the share is kept."""
    if made_of is None:
        return report
    tell("the test without some policies")
    share = clock.share(Part.LEFT_OUT)
    seconds = finite_or_none(share / 2)
    left_out = leave_out_after(
        report.solution,
        made_of[0],
        report.problem.size,
        made_of[1],
        options={} if seconds is None else {"time_limit_seconds": seconds},
        most_seconds=seconds,
        search_seconds=seconds if report.solution.limit is None else finite_or_none(share),
    )
    if left_out is not None:
        return replace(report, left_out=left_out)
    reason = why_not_left_out(report.solution, report.problem)
    return replace(report, why_not_left_out=reason or "that takes longer than its share of the time")


def _first_report(
    problem: Problem,
    solution: Solution,
    trace: Sequence[tuple[float, float, float]],
    scale: Scale,
    target_names: Sequence[str] | None,
) -> Report:
    """What there is to say of a solution if an interrupt comes before the rest."""
    assert solution.test is not None
    return Report(
        problem=problem,
        scale=scale,
        target_names=target_names or _names_of_targets(problem),
        solution=solution,
        trace=trace,
        sizes=size_curve(problem, [problem.size], known={problem.size: solution}),
        rounds=_rounds(problem, solution.test, 1),
        interrupted=solution.limit is Limit.INTERRUPT,
    )


def _names_of_targets(problem: Problem) -> list[str]:
    """The targets' own names, and what they are called that have none."""
    names = enumerate(problem.target_names)
    return [f"target {name}" if name == str(place) else name for place, name in names]


def _all_run(report: Report, steps: Iterable[Callable[[Report], Report]]) -> Report:
    """The report after all steps, or after those before an interrupt."""
    try:
        for step in steps:
            if report.interrupted:
                break
            report = step(report)
    except KeyboardInterrupt:
        return replace(report, interrupted=True)
    return report


def _with_rounds(report: Report, *, tell: Tell) -> Report:
    tell("regret matching+ on the chosen cases")
    return replace(report, rounds=_rounds(report.problem, report.test, ROUNDS))


def _rounds(problem: Problem, test: EfficientTest, rounds: int) -> pd.DataFrame:
    return closing_in(problem.stated, problem.to_stated(test).cases, rounds=rounds)


def _sizes_shown(problem: Problem, largest: int | None) -> range:
    """From one case to two more than the problem's, or to the largest asked for."""
    wanted = problem.size + SIZES_BEYOND if largest is None else largest
    return range(1, min(max(wanted, problem.size), len(problem.selectable_cases)) + 1)


def _with_sizes(report: Report, *, clock: Clock, tell: Tell, sizes: Sequence[int]) -> Report:
    """The best test of every size that keeps the rules, first of some that are far apart: time may end it."""
    tell(f"the best tests of 1 to {sizes[-1]} cases")
    share = clock.share(Part.SIZES)
    found, interrupted = _best_by_size(report, spread_out(sizes, report.problem.size), DROPPING_LEAVES * share)
    try:
        if not interrupted:
            found = with_cases_dropped(report.problem, found, (1 - DROPPING_LEAVES) * share)
    except KeyboardInterrupt:
        interrupted = True
    return replace(report, sizes=size_curve(report.problem, sorted(found), known=found), interrupted=interrupted)


def _best_by_size(report: Report, sizes: Sequence[int], seconds: float) -> tuple[dict[int, Solution], bool]:
    """The best tests of sizes, in this order, as far as there is time; and whether an interrupt has ended it."""
    ends, found = time.monotonic() + seconds, dict[int, Solution]()
    for done, size in enumerate(sizes):
        left = max(ends - time.monotonic(), 0.0)
        if left == 0 and found:
            break
        each = min(max(left / (len(sizes) - done), seconds / SIZES_AT_LEAST), left)
        try:
            found[size] = _best_of_size(report, size, finite_or_none(each))
        except Infeasible:
            continue  # no test of so many cases keeps the rules
        if found[size].limit is Limit.INTERRUPT:
            return found, True
    return found, False


def _best_of_size(report: Report, size: int, seconds: float | None) -> Solution:
    """The best test of so many cases that is known or found; the report's own need not be, whoever was asked for it."""
    own = report.solution
    if size != report.problem.size:
        return solve(replace(report.problem, size=size), time_limit_seconds=seconds)
    if own.status is Status.OPTIMAL or own.choice is not None:  # or the same has been asked already
        return own
    return min(own, solve(report.problem, time_limit_seconds=seconds), key=lambda each: each.objective)


def _with_budgets(report: Report, *, clock: Clock, tell: Tell) -> Report:
    """The best test for each of some budgets, up to a multiple of the problem's own."""
    problem = report.problem
    own = problem.rules.budget
    tell("the best tests for other budgets")
    farthest = problem if own is None else problem.with_rules(budget=BUDGETS_BEYOND * own)
    budgets = sorted({*default_budgets(farthest), *([] if own is None else [own])})
    seconds = min(clock.share(Part.BUDGETS) / len(budgets), BUDGET_SECONDS)
    return replace(report, budgets=budget_curve(problem, budgets, time_limit_seconds=seconds))


def _with_game_values(report: Report, *, clock: Clock, tell: Tell) -> Report:
    tell("the best weights for every game on the chosen cases")
    share = clock.share(Part.GAMES)
    each = min(share / len(GAMES), GAME_SECONDS)
    values = game_values(report.problem, report.solution, time_limit_seconds=each, all_seconds=share)
    return replace(report, game_values=values, interrupted=values.interrupted)


def _with_comparison(report: Report, *, clock: Clock, tell: Tell, plan: Plan) -> Report:
    """What others say who are asked; who is not asked is known even if an interrupt ends it."""
    asked = plan.asked(clock.share(Part.OTHERS))
    report = replace(report, not_asked=asked.not_asked)
    if not asked.names:
        return report
    try:
        found = compare(report.problem, asked.names, asked.seconds, threads=available_cores(), progress=tell)
    except KeyboardInterrupt:
        return replace(report, interrupted=True)
    return replace(report, comparison=found)
