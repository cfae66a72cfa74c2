"""The k-of-N explorer: what its sliders and its game need to know about a test."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from rposst_opt.backends import solve
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.measures import KOfN, Measure
from rposst_opt.problem import Problem
from rposst_opt.reports.pages.page import EXPLORER_SCRIPTS, render
from rposst_opt.solution import Solution, Status

MOST_DRAWN = 10_000  # by the explorer's sliders
LARGEST_DENOMINATOR = 200  # of a CVaR's tail fraction, as k/N
ELSEWHERE = (1, 10)  # where the sliders stand for a measure that they cannot show
GAME_DRAWS, GAME_MOST_CHARGED = (2, 3, 4, 6, 8), 4
GAME_START = {"n": 6, "k": 2}
CHECKED_PAIRS = ((1, 1), (1, 2), (2, 3), (1, 100), (5, 100), (100, 100), (7, 250), (50, 1000), (100, 10_000))
CHECKED_TAILS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.999)


def explorer_page(
    problem: Problem, solution: Solution, target_names: Sequence[str], *, title: str, command: str
) -> str:
    """The explorer alone, on the losses of a solution's test."""
    test = solution.test
    assert test is not None
    best = "the best one there is" if solution.status is Status.OPTIMAL else "the best one that was found in time"
    targets = "one target" if len(target_names) == 1 else f"{len(target_names)} targets"
    return render(
        "explorer.html",
        data={"explorer": explorer_data(problem, test, target_names)},
        scripts=EXPLORER_SCRIPTS,
        title=title,
        command=command,
        words=(
            f"{len(test.cases)} of {problem.n_cases} test cases, {problem.n_scenarios:,} scenarios "
            f"({problem.n_policies} policies, {targets}); the test is {best} for the {problem.measure.words}."
        ),
    )


def explorer_data(problem: Problem, test: EfficientTest, target_names: Sequence[str]) -> dict[str, Any]:
    """All that the scripts `explorer.js` and `game.js` read."""
    scenarios = problem.scenarios
    pieces = problem.loss.pieces
    settings = _settings(problem.measure)
    return {
        "cases": test.case_names,
        "weights": test.weights.tolist(),
        "rows": problem.results[list(test.cases)].tolist(),
        "policies": problem.policy_names,
        "targets": list(target_names),
        "scenarios": {
            "policy": scenarios.policies.tolist(),
            "target": problem.scenarios.targets.tolist(),
            "score": scenarios.full_scores.tolist(),
            "probability": scenarios.probabilities.tolist(),
        },
        "loss": {"knots": pieces.knots.tolist(), "coefficients": pieces.coefficients.tolist()},
        "settings": settings,
        "checks": _checks(problem, test),
        "game": _game_values(problem, test),
        "gameStart": GAME_START,
    }


def _settings(measure: Measure) -> dict[str, Any]:
    """Where the sliders stand at first: at the problem's own measure if they can."""
    fraction, drawn = measure.cvar_tail_fraction, measure.k_of_n(MOST_DRAWN)
    if fraction is not None:
        share = Fraction(fraction).limit_denominator(LARGEST_DENOMINATOR)
        k, n = (share.numerator, share.denominator) if share > 0 else (1, LARGEST_DENOMINATOR)
        return {"k": k, "n": n, "tailFraction": fraction, "linked": Fraction(k, n) == Fraction(repr(fraction))}
    k, n = drawn if drawn is not None and drawn[1] <= MOST_DRAWN else ELSEWHERE
    return {"k": k, "n": n, "tailFraction": k / n, "linked": True}


def _checks(problem: Problem, test: EfficientTest) -> dict[str, Any]:
    """Numbers of the package, which the page holds its own formulas against."""
    tails = np.array(CHECKED_TAILS)
    return {
        "weights": [
            (k, n, tail, weight)
            for k, n in CHECKED_PAIRS
            for tail, weight in zip(CHECKED_TAILS, KOfN(k, n).tail_weight(tails).tolist(), strict=True)
        ],
        "objectives": [(k, n, replace(problem, measure=KOfN(k, n)).objective(test)) for k, n in CHECKED_PAIRS],
        "unit": problem.unit,
    }


def _game_values(problem: Problem, test: EfficientTest) -> dict[int, dict[int, float]]:
    """The least k-of-N objective that weights on these cases can have, if proved, for every N and k of the game."""

    def least(measure: KOfN) -> float:
        solution = solve(replace(alone, measure=measure))
        return solution.objective if solution.status is Status.OPTIMAL else math.nan

    alone = problem.restricted_to(test.cases)
    return {n: {k: least(KOfN(k, n)) for k in range(1, min(n, GAME_MOST_CHARGED) + 1)} for n in GAME_DRAWS}
