"""Which problem do the results of policies (rows of X) on test cases (columns) and a full score (y) state?

A test is to be close to one full score or to several, and the first of them is what is predicted:

- without y, those of the declared targets, or the mean of all features if none is declared;
- with y, y itself first, and those of the declared targets besides, if any are declared.

A y that is the full score by one of these targets, up to rounding, adds nothing but says which comes first. Any other
y joins the problem as one more test case, which is forbidden and has all the weight of the first target. So the full
score is y, no test has y among its cases, and all solvers, bounds and proofs hold as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.problem import Problem
from rposst_opt.results import Scale, full_scores, rescale, softmax_targets, unused_names

SAME_STEPS = 64  # of rounding at the largest result, by which y may differ from the full score that it is
REACH_TOLERANCE = 1e-3  # of the range of results, by which y may lie beyond them before that is worth a word


@dataclass(frozen=True, eq=False)
class Statement:
    """A problem, and the units that it is in.

    Attributes
    ----------
    problem : Problem
        Its first target is the full score that is predicted.
    scale : Scale
        What of X is 0 and 1 in the problem.
    has_y : bool
        Whether the problem has y as its last test case.
    unreachable : str or None
        In words, where y lies beyond what weights on test cases can give.
    """

    problem: Problem
    scale: Scale
    has_y: bool = False
    unreachable: str | None = None


def state(
    policies: FloatArray,
    y: np.ndarray[Any, np.dtype[Any]] | None,
    *,
    is_rescaled: bool,
    betas: Sequence[float] | None,
    targets: Any,
    **asked: Any,
) -> Statement:
    """State the problem.

    Parameters
    ----------
    policies : ndarray of shape (n_policies, n_cases)
    y : ndarray of shape (n_policies,), optional
        Of any type of numbers; its precision says what rounding is.
    is_rescaled : bool
        Whether the results are mapped to [0, 1], and y with them.
    betas, targets
        Declared targets: made of the results (`softmax_targets`), or given.
    **asked
        What else a `Problem` is made of.
    """
    if betas is not None and targets is not None:
        raise ProblemError("`betas` and `targets` both declare targets: give one of them.")
    values, scale = np.ascontiguousarray(policies.T), Scale(0.0, 1.0)
    if is_rescaled and values.min() < values.max():  # where all results are alike there is no scale, and y may need one
        values, scale = rescale(values)
    declared = targets if betas is None else softmax_targets(values, betas)
    problem = Problem(results=values, targets=declared, **asked)
    if y is None:
        return Statement(problem, scale)
    outcome = np.asarray(y, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        differences = np.abs(full_scores(problem.targets, policies.T) - outcome).max(axis=1)
        rescaled = scale.error_from_file_units(outcome - scale.low)
        if not np.isfinite(scale.score_in_file_units(rescaled)).all():
            raise ProblemError(
                f"y from {outcome.min():g} to {outcome.max():g} is too large: give it in the units of X."
            )
    same = np.flatnonzero(differences <= SAME_STEPS * _precision(y) * np.abs(policies).max())
    if len(same):
        return Statement(_with_target_first(problem, int(same[0])), scale)
    extended = _with_y(problem, rescaled, adds_to_targets=declared is not None)
    return Statement(extended, scale, has_y=True, unreachable=_unreachable(problem, policies, outcome))


def _precision(y: np.ndarray[Any, np.dtype[Any]]) -> float:
    """What rounding does to numbers of this type, relative to them; whole numbers are averaged in float64."""
    return float(np.finfo(y.dtype if y.dtype.kind == "f" else np.float64).eps)


def _with_target_first(problem: Problem, row: int) -> Problem:
    if row == 0:
        return problem
    order = [row, *(other for other in range(len(problem.targets)) if other != row)]
    return replace(
        problem, targets=problem.targets[order], target_names=tuple(problem.target_names[place] for place in order)
    )


def _with_y(problem: Problem, y: FloatArray, *, adds_to_targets: bool) -> Problem:
    """The same problem with y as a forbidden test case, and as the first full score, or the only one."""
    besides = problem.targets if adds_to_targets else problem.targets[:0]
    names = problem.target_names[: len(besides)]
    targets = np.zeros((1 + len(besides), problem.n_cases + 1))
    targets[0, -1] = 1.0
    targets[1:, :-1] = besides
    return replace(
        problem,
        results=np.vstack([problem.results, y]),
        targets=targets,
        target_names=tuple(unused_names(names, ["y"]) + list(names)),
        probabilities=np.full((problem.n_policies, len(targets)), 1 / (problem.n_policies * len(targets))),
        forbidden_cases=(*problem.forbidden_cases, problem.n_cases),
        case_names=(*problem.case_names, *unused_names(problem.case_names, ["y"])),
    )


def _unreachable(problem: Problem, policies: FloatArray, y: FloatArray) -> str | None:
    """Where y lies beyond the results on cases that a test may have, if it does so by more than a trifle."""
    eligible = policies[:, list(problem.eligible_cases)]
    axis = None if problem.offset else 1
    with np.errstate(over="ignore"):
        beyond = np.maximum(eligible.min(axis=axis) - y, y - eligible.max(axis=axis))
        told = beyond > REACH_TOLERANCE * np.ptp(policies)
    if not told.any():
        return None
    whose, why = (
        ("all", "where an offset leaves less weight to test cases")
        if problem.offset
        else (
            "its own",
            "which no weights on test cases can reach",
        )
    )
    return (
        f"for {told.sum()} of {len(y)} policies, y lies outside the range of {whose} results, by up to "
        f"{beyond.max():.3g}, {why}"
    )
