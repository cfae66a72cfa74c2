"""The k-of-N explorer: what its sliders and its game need to know about a test."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from rposst_opt.assembly import Rules
from rposst_opt.backends import solve
from rposst_opt.contract import Limit
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.measures import KOfN, Measure
from rposst_opt.problem import Problem
from rposst_opt.solution import TIE_TOLERANCE, Solution, Status

MOST_DRAWN = 10_000  # by the explorer's sliders
LARGEST_DENOMINATOR = 200  # of a CVaR's tail fraction, as k/N
ELSEWHERE = (1, 10)  # where the sliders stand for a measure that they cannot show
GAMES = tuple((k, n) for n in (2, 3, 4, 6, 8) for k in range(1, min(n, 4) + 1))
GAME_SECONDS = 10.0  # at most, for each of the game's values
GAME_START = {"n": 6, "k": 2}
CHECKED_PAIRS = ((1, 1), (1, 2), (2, 3), (1, 100), (5, 100), (100, 100), (7, 250), (50, 1000), (100, 10_000))
CHECKED_TAILS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.999)


def _nothing_proved() -> dict[int, dict[int, float]]:
    return {n: {k: math.nan for k, drawn in GAMES if drawn == n} for _, n in GAMES}


@dataclass(frozen=True)
class GameValues:
    """What the game holds its players against.

    Attributes
    ----------
    least : mapping of int to mapping of int to float
        By N and k, the least k-of-N objective that weights on the chosen cases can have; NaN where none is proved.
    interrupted : bool
        Whether an interrupt came before all were looked for.
    """

    least: Mapping[int, Mapping[int, float]] = field(default_factory=_nothing_proved)
    interrupted: bool = False


def game_values(
    problem: Problem,
    solution: Solution,
    *,
    time_limit_seconds: float = GAME_SECONDS,
    all_seconds: float = math.inf,
) -> GameValues:
    """Solve every game on the cases of a solution, each within the time limit.

    What is not begun within `all_seconds` is left out, and an interrupt leaves out the rest.
    """
    assert solution.test is not None
    if solution.limit is Limit.INTERRUPT:
        return GameValues(interrupted=True)
    cases = solution.test.cases
    # The page is about losses alone, and its players weigh as they like.
    free = replace(problem, noise=None, rules=Rules(), size=len(cases) - len(problem.required_cases))
    alone = free.restricted_to(cases).stated
    least, ends = _nothing_proved(), time.monotonic() + all_seconds
    try:
        for k, n in GAMES:
            if time.monotonic() > ends:
                break
            best = solve(replace(alone, measure=KOfN(k, n)), time_limit_seconds=time_limit_seconds)
            if best.status is Status.OPTIMAL:
                least[n][k] = best.objective
            if best.limit is Limit.INTERRUPT:
                return GameValues(least, interrupted=True)
    except KeyboardInterrupt:
        return GameValues(least, interrupted=True)
    return GameValues(least)


def explorer_data(
    problem: Problem, test: EfficientTest, target_names: Sequence[str], values: GameValues
) -> dict[str, Any]:
    """All that the scripts `explorer.js` and `game.js` read: the losses, without the noise of scores."""
    problem = replace(problem, noise=None)
    scenarios = problem.scenarios
    pieces = problem.pieces
    settings = _settings(problem.measure)
    return {
        "cases": test.case_names,
        "weights": test.weights.tolist(),
        "rows": problem.results[list(test.cases)].tolist(),
        "policies": problem.policy_names,
        "targets": list(target_names),
        "scenarios": {
            "policy": scenarios.policies.tolist(),
            "target": problem.scenarios.target_rows.tolist(),
            "score": scenarios.full_scores.tolist(),
            "probability": scenarios.probabilities.tolist(),
        },
        "tieTolerance": problem.allowance(TIE_TOLERANCE),
        "loss": {"knots": pieces.knots.tolist(), "coefficients": pieces.coefficients.tolist()},
        "settings": settings,
        "checks": _checks(problem, test),
        "game": values.least,
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
