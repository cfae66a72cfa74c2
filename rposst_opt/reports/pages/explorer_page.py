"""The k-of-N explorer as a page of its own. Nothing is solved here."""

from collections.abc import Sequence

from rposst_opt.problem import Need, Problem
from rposst_opt.reports.pages.explorer import GameValues, explorer_data
from rposst_opt.reports.pages.page import render
from rposst_opt.reports.pages.sections import EXPLORER, GAME
from rposst_opt.solution import Solution, Status

TUTORIAL = "https://github.com/rposst-opt/rposst-opt/blob/main/docs/k_of_n.md"


def explorer_page(
    problem: Problem,
    solution: Solution,
    target_names: Sequence[str],
    values: GameValues,
    *,
    title: str,
    command: str,
) -> str:
    """The explorer alone, on the losses of a solution's test."""
    test = solution.test
    assert test is not None
    best = "the best one there is" if solution.status is Status.OPTIMAL else "the best one that was found in time"
    targets = "one target" if len(target_names) == 1 else f"{len(target_names)} targets"
    return render(
        "explorer.html",
        sections=[(EXPLORER, {"has_noise": Need.NOISE in problem.needs}), (GAME, {})],
        data={"explorer": explorer_data(problem.stated, problem.to_stated(test), target_names, values)},
        title=title,
        command=command,
        tutorial=TUTORIAL,
        loss=problem.loss.label,
        words=(
            f"{len(test.cases)} of {problem.n_cases} test cases, {problem.n_scenarios:,} scenarios "
            f"({problem.n_policies} policies, {targets}); the test is {best} for the {problem.measure.words}."
        ),
    )
