"""What does a test of each price bring? The best test for each budget: the curve of error against cost."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.backends import AUTO
from rposst_opt.errors import ProblemError
from rposst_opt.feasibility import all_rules, check_feasible, find_choice
from rposst_opt.problem import Problem
from rposst_opt.reports.questions import Question
from rposst_opt.solution import Solution, Status
from rposst_opt.unseen.runner import Tell, run_all

BUDGETS = 12  # if none are named


def budget_curve(
    problem: Problem,
    budgets: Iterable[float] | None = None,
    *,
    backend: str = AUTO,
    time_limit_seconds: float | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    tell: Tell | None = None,
) -> pd.DataFrame:
    """The best test for each budget, from the least to the greatest.

    A larger budget allows whatever a smaller one does. So where a run ends early, the test of a smaller budget stands
    in if it is better, and what is proved for a larger budget holds for a smaller one too: the curve never rises.

    Parameters
    ----------
    problem : Problem
        With costs; its own budget, if it has one, is the greatest by default.
    budgets : iterable of float, optional
        About a dozen by default, ever farther apart, from the cheapest test to one that costs no more than it helps.
    backend, time_limit_seconds, jobs, scheduler, tell
        As for `size_curve`; the time is for each budget.

    Returns
    -------
    DataFrame
        A row per budget: `budget`, `cost` of the test, `objective`, `lower_bound`, `status`, `cases` (names), `weights`
        and `seconds`.

    Examples
    --------
    >>> problem = Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], costs=[1, 1, 1.5], budget=3)
    >>> budget_curve(problem, [1, 1.5, 2])[["budget", "cost", "objective"]].round(4).values.tolist()
    [[1.0, 1.0, 0.5333], [1.5, 1.5, 0.0667], [2.0, 2.0, 0.0333]]
    """
    if problem.rules.costs is None:
        raise ProblemError("`budget_curve` needs a problem with `costs`.")
    check_feasible(problem)
    asked = sorted(float(budget) for budget in budgets) if budgets is not None else default_budgets(problem)
    if not asked:
        raise ProblemError("`budgets` must have at least one entry.")
    check_feasible(problem.with_rules(budget=asked[0]))  # who has the least can still buy a test
    questions = [Question(problem.with_rules(budget=budget), backend, time_limit_seconds) for budget in asked]
    solutions = run_all(questions, jobs=jobs, scheduler=scheduler, tell=tell)
    return _never_rising(problem, asked, solutions)


def default_budgets(problem: Problem) -> list[float]:
    """About a dozen budgets, each a factor above the one before: the cost of the cheapest test is the first."""
    costs = problem.rules.costs
    assert costs is not None
    free = problem.with_rules(budget=None)
    rules = all_rules(free)
    cheapest = find_choice(rules, problem.n_cases, costs)
    dearest = find_choice(rules, problem.n_cases, -costs)
    assert cheapest is not None and dearest is not None  # the problem was checked
    least, most = (float(costs[list(cases)].sum()) for cases in (cheapest, dearest))
    if problem.rules.budget is not None:
        most = min(most, problem.rules.budget)
    if not 0 < least < most:
        return sorted({least, most})
    return [*np.geomspace(least, most, BUDGETS)[:-1].tolist(), most]


def _never_rising(problem: Problem, budgets: list[float], solutions: list[Solution]) -> pd.DataFrame:
    """The rows, each with the best test that its budget pays for and the best bound that is known."""
    costs = problem.rules.costs
    assert costs is not None
    bounds = np.maximum.accumulate([solution.lower_bound for solution in solutions][::-1])[::-1].tolist()
    rows: list[dict[str, Any]] = []
    best: Solution | None = None
    for budget, solution, bound in zip(budgets, solutions, bounds, strict=True):
        if solution.test is not None and (best is None or solution.objective < best.objective):
            best = solution
        if best is None or best.test is None:
            nothing = {"objective": np.inf, "lower_bound": bound, "status": Status.NO_TEST.value}
            rows.append({"budget": budget, "cost": np.nan, **nothing, "cases": (), "weights": (), "seconds": 0.0})
            continue
        is_proved = best.objective - bound <= problem.allowance(1e-9) or solution.status is Status.OPTIMAL
        rows.append(
            {
                "budget": budget,
                "cost": float(costs[list(best.test.cases)].sum()),
                "objective": best.objective,
                "lower_bound": min(bound, best.objective),
                "status": (Status.OPTIMAL if is_proved else Status.FEASIBLE).value,
                "cases": best.test.case_names,
                "weights": tuple(best.test.weights.tolist()),
                "seconds": solution.seconds,
            }
        )
    return pd.DataFrame(rows)
