"""Looking at an objective: what a measure weighs, how the optimum moves, what a larger test would bring.

Each function returns a tidy DataFrame, and `rposst_opt.plots` has a picture of the same name for each. Every objective
in them is `Problem.objective`'s; `cases` and `weights` are tuples, of names and of numbers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.backends import AUTO
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError
from rposst_opt.measures import CVaR, KOfN, Mean, Measure, WorstCase
from rposst_opt.problem import Problem
from rposst_opt.reports.budgets import budget_curve as budget_curve
from rposst_opt.reports.questions import Question
from rposst_opt.reports.sizes import never_rising
from rposst_opt.solution import Solution
from rposst_opt.unseen.runner import Tell, run_all

MOST_STEPS = 400  # of a surface's grid: 80,601 points


def tail_profile(measure: Measure, d: int) -> pd.DataFrame:
    """How a measure weighs d equally likely losses, worst first.

    Returns
    -------
    DataFrame
        `rank` (1 is the worst), `tail` (rank/d), `tail_weight` (g at that tail) and `weight` (of the loss itself).

    Examples
    --------
    >>> tail_profile(KOfN(1, 2), 4)
       rank  tail  tail_weight  weight
    0     1  0.25       0.4375  0.4375
    1     2  0.50       0.7500  0.3125
    2     3  0.75       0.9375  0.1875
    3     4  1.00       1.0000  0.0625
    """
    _check_positive("d", d)
    rank = np.arange(1, d + 1)
    return pd.DataFrame(
        {
            "rank": rank,
            "tail": rank / d,
            "tail_weight": measure.tail_weight(rank / d),
            "weight": measure.rank_weights(d),
        }
    )


def k_of_n_table(problem: Problem, test: EfficientTest, *, ks: Iterable[int], ns: Iterable[int]) -> pd.DataFrame:
    """What a test is worth under k-of-N, exactly, beside CVaR with the same tail fraction; a row for each k ≤ N.

    Returns
    -------
    DataFrame
        `k`, `n`, `tail_fraction` (k/n), `k_of_n` and `cvar` (the two objectives) and `difference` (`k_of_n - cvar`,
        never above zero but for rounding).

    Examples
    --------
    >>> problem = Problem(results=[[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]], size=1)
    >>> test = problem.test(cases=[0], weights=[1.0])
    >>> k_of_n_table(problem, test, ks=[1], ns=[1, 2, 3])["k_of_n"].round(4).tolist()
    [0.1667, 0.2778, 0.3519]
    """
    ns = list(ns)
    rows = []
    for k in ks:
        for n in (n for n in ns if k <= n):
            drawn, limit = (replace(problem, measure=each).objective(test) for each in (KOfN(k, n), CVaR(k / n)))
            row = {"k": k, "n": n, "tail_fraction": k / n, "k_of_n": drawn, "cvar": limit, "difference": drawn - limit}
            rows.append(row)
    if not rows:
        raise ProblemError("`ks` and `ns` must have a pair with k <= n.")
    return pd.DataFrame(rows)


def objective_surface(problem: Problem, cases: Sequence[int | str], *, steps: int = 40) -> pd.DataFrame:
    """The objective at all weights of three cases that are multiples of 1/steps.

    Returns
    -------
    DataFrame
        `case_1` to `case_3` (names, the same in every row), `weight_1` to `weight_3`, and `objective`.
    """
    if len(cases) != 3:
        raise ProblemError(f"a surface is over three cases, got {len(cases)}.")
    _check_positive("steps", steps)
    if steps > MOST_STEPS:
        raise ProblemError(f"`steps` must be at most {MOST_STEPS}, got {steps}.")
    names = problem.test(cases=cases, weights=np.full(3, 1 / 3)).case_names
    rows = []
    for first in range(steps + 1):
        for second in range(steps + 1 - first):
            weights = np.array([first, second, steps - first - second]) / steps
            objective = problem.objective(problem.test(cases=names, weights=weights))
            rows.append((*names, *weights.tolist(), objective))
    columns = [f"{what}_{place}" for what in ("case", "weight") for place in (1, 2, 3)]
    return pd.DataFrame(rows, columns=[*columns, "objective"])


def closing_in(problem: Problem, cases: Sequence[int | str], *, rounds: int = 500) -> pd.DataFrame:
    """Regret matching+ on one set of cases, round by round, and the bound that its averaged cuts prove.

    In plain NumPy and from `Problem.cut` alone, to be read beside the paper's Algorithm 2; the backend
    ``"regret-matching"`` does the same for all sets, compiled. A round's cut says what each case would have cost, so
    its regrets are what the test paid less these costs.

    Returns
    -------
    DataFrame
        `round`, `objective` (of that round's weights), `best` (so far), `lower_bound` (for these cases, the best so
        far) and `weights` (by the cases' positions in the problem, ascending).
    """
    _check_positive("rounds", rounds)
    if len(cases) == 0:
        raise ProblemError("`cases` must have at least one test case.")
    chosen = problem.test(cases=cases, weights=np.full(len(cases), 1 / len(cases)))
    weights, regrets = chosen.weights, np.zeros(len(cases))
    plain_sum, linear_sum = np.zeros(len(cases)), np.zeros(len(cases))
    best, lower_bound = np.inf, -np.inf
    rows = []
    for number in range(1, rounds + 1):
        test = problem.test(cases=chosen.cases, weights=weights)
        objective, full_cut = problem.objective_and_cut(test)
        cut = full_cut[list(chosen.cases)]
        plain_sum, linear_sum = plain_sum + cut, linear_sum + number * cut
        best = min(best, objective)
        proved = max(plain_sum.min() / number, linear_sum.min() / (number * (number + 1) / 2))
        lower_bound = max(lower_bound, float(proved))
        rows.append((number, objective, best, lower_bound, tuple(test.weights.tolist())))
        regrets = np.maximum(regrets + test.weights @ cut - cut, 0.0)
        total = regrets.sum()
        weights = regrets / total if total > 0 else chosen.weights
    return pd.DataFrame(rows, columns=["round", "objective", "best", "lower_bound", "weights"])


def sweep(
    problem: Problem,
    *,
    tail_fractions: Iterable[float],
    backend: str = AUTO,
    time_limit_seconds: float | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    tell: Tell | None = None,
) -> pd.DataFrame:
    """The best test for every tail fraction, from the worst case (0) to the mean (1).

    Parameters
    ----------
    problem, backend, time_limit_seconds, jobs, scheduler, tell
        As for `size_curve`.
    tail_fractions : iterable of float

    Returns
    -------
    DataFrame
        A row per tail fraction: `tail_fraction` and the columns of `size_curve`. The problem's own measure plays no
        part.
    """
    fractions = [float(fraction) for fraction in tail_fractions]
    asked = [Question(replace(problem, measure=CVaR(each)), backend, time_limit_seconds) for each in fractions]
    solutions = run_all(asked, jobs=jobs, scheduler=scheduler, tell=tell)
    answers = [_answer(each.problem, solution) for each, solution in zip(asked, solutions, strict=True)]
    rows = [{"tail_fraction": each, **answer} for each, answer in zip(fractions, answers, strict=True)]
    return _table("tail_fractions", rows)


def size_curve(
    problem: Problem,
    sizes: Iterable[int],
    *,
    backend: str = AUTO,
    time_limit_seconds: float | None = None,
    known: Mapping[int, Solution] | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    tell: Tell | None = None,
) -> pd.DataFrame:
    """The best test of every size, to help choose m.

    A larger test can contain a smaller one. So where a run ends early, the test of a smaller size stands in if it is
    better, with cases more that have no weight, and what is proved for a larger size holds for a smaller one too: the
    curve never rises. With rules this is done as far as the rules allow.

    Parameters
    ----------
    problem : Problem
    sizes : iterable of int
    backend : str
        As for `solve`.
    time_limit_seconds : float, optional
        For each of them.
    known : mapping of int to Solution, optional
        Solutions of some sizes, which are not asked for again.
    jobs : int
        How many processes of this machine solve them, each one at a time.
    scheduler : str, optional
        The address of a Dask scheduler whose workers do it instead.
    tell : callable, optional
        Called with what is being done, how many are done, and of how many.

    Returns
    -------
    DataFrame
        A row per size: `size`, `objective`, `lower_bound`, `status`, `mean_loss` and `worst_loss` of the test, `cases`,
        `weights`, `limit` (what ended the run early, if anything did) and `seconds`. With a time limit, a row may be
        feasible only, or have no test at all.
    """
    asked = [Question(replace(problem, size=size), backend, time_limit_seconds) for size in sizes]
    by_place = {place: known[each.size] for place, each in enumerate(asked) if known and each.size in known}
    found = run_all(asked, jobs=jobs, scheduler=scheduler, tell=tell, known=by_place)
    solutions = never_rising([each.problem for each in asked], found)
    return _table(
        "sizes",
        [
            {"size": each.size, **_answer(each.problem, solution)}
            for each, solution in zip(asked, solutions, strict=True)
        ],
    )


def sensitivity(
    problem: Problem,
    *,
    backend: str = AUTO,
    time_limit_seconds: float | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    tell: Tell | None = None,
) -> pd.DataFrame:
    """How the optimum moves when a single policy or a single target is left out.

    The scenarios that stay keep their proportions. A policy or target is passed over if without it nothing stays.

    Parameters
    ----------
    problem, backend, time_limit_seconds, jobs, scheduler, tell
        As for `size_curve`.

    Returns
    -------
    DataFrame
        A row for the problem as it is (`left_out` is ``"nothing"``), then one per policy and per target, by their
        `position` and `name` (targets are named by their positions). Besides the columns of `size_curve`:
        `judged_by_all`, the whole problem's objective of that row's test; and `cost`, by how much this is above the
        whole problem's optimum: what it would have cost not to have known the policy or target.
    """
    parts = [("nothing", -1, "", problem), *_leave_one_out(problem)]
    asked = [Question(rest, backend, time_limit_seconds) for _, _, _, rest in parts]
    solutions = run_all(asked, jobs=jobs, scheduler=scheduler, tell=tell)
    rows = [
        {"left_out": kind, "position": position, "name": name, **_answer(rest, solution)}
        for (kind, position, name, rest), solution in zip(parts, solutions, strict=True)
    ]
    table = pd.DataFrame(rows)
    table["judged_by_all"] = [
        np.inf if solution.test is None else problem.objective(solution.test) for solution in solutions
    ]
    table["cost"] = table["judged_by_all"] - table["judged_by_all"][0]
    return table


def _leave_one_out(problem: Problem) -> Iterator[tuple[str, int, str, Problem]]:
    """The problems that lack a policy or a target, with what is missing."""
    for policy, name in enumerate(problem.policy_names):
        probabilities = np.delete(problem.probabilities, policy, axis=0)
        if probabilities.sum() > 0:
            yield (
                "policy",
                policy,
                name,
                replace(
                    problem,
                    results=np.delete(problem.results, policy, axis=1),
                    probabilities=probabilities / probabilities.sum(),
                    policy_names=tuple(other for other in problem.policy_names if other != name),
                ),
            )
    for target, name in enumerate(problem.target_names):
        probabilities = np.delete(problem.probabilities, target, axis=1)
        if probabilities.sum() > 0:
            targets = np.delete(problem.targets, target, axis=0)
            others = tuple(other for other in problem.target_names if other != name)
            likely = probabilities / probabilities.sum()
            yield "target", target, name, replace(problem, targets=targets, probabilities=likely, target_names=others)


def _answer(problem: Problem, solution: Solution) -> dict[str, Any]:
    """What is told of an answer: its numbers, and the mean and the worst loss that its test has."""
    test = solution.test
    mean, worst = (
        np.nan if test is None else replace(problem, measure=measure).objective(test)
        for measure in (Mean(), WorstCase())
    )
    return {
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "status": solution.status.value,
        "mean_loss": mean,
        "worst_loss": worst,
        "cases": () if test is None else test.case_names,
        "weights": () if test is None else tuple(test.weights.tolist()),
        "limit": "" if solution.limit is None else solution.limit.value,
        "seconds": solution.seconds,
    }


def _table(name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    if not rows:
        raise ProblemError(f"`{name}` must have at least one entry.")
    return pd.DataFrame(rows)


def _check_positive(name: str, number: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise ProblemError(f"`{name}` must be a whole number from 1 on, got {number!r}.")
