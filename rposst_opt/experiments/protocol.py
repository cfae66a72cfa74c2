"""The paper's protocol: hold policies out, choose a test without them, and see how far it is off on them.

What chooses the test (`choose_tests`) is handed the tuning policies' results and nothing else, so nothing about
held-out policies can reach it. Scale and targets are made of the tuning results too.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.backends import solve
from rposst_opt.errors import ProblemError
from rposst_opt.experiments.methods import options_of
from rposst_opt.measures import CVaR
from rposst_opt.problem import Problem
from rposst_opt.results import Scale, rescale, softmax_targets
from rposst_opt.unseen.intervals import half_width

BETAS = (0, 1, 2, 4)
TAIL_FRACTION = 0.01
HOLDOUTS = (0.2, 0.4, 0.6)
SIZES = (1, 2, 3)
REPLICAS = 100
HARDEST = 4  # the paper looks at the four hardest (policy, target) pairs


@dataclass(frozen=True, eq=False)
class Split:
    """Which rows and columns of a result matrix take part.

    Attributes
    ----------
    cases : ndarray
        Rows from which a test is chosen; the full test is all of them.
    tuning, holdout : ndarray
        Columns that the test is chosen for, and columns that it is then applied to.
    """

    cases: IntArray
    tuning: IntArray
    holdout: IntArray


def draw_split(
    shape: tuple[int, int], holdout: float, rng: np.random.Generator, *, hold_out_cases: bool = False
) -> Split:
    """Hold out a share of the columns at random, and the same share of the rows if asked to."""
    n_cases, n_policies = shape
    held = round(holdout * n_policies)
    if not 0 < held < n_policies:
        raise ProblemError(f"holding out {holdout:g} of {n_policies} policies leaves none on one side.")
    order = rng.permutation(n_policies)
    cases = np.arange(n_cases)
    if hold_out_cases:
        cases = np.sort(rng.permutation(n_cases)[round(holdout * n_cases) :])
    return Split(cases=cases, tuning=np.sort(order[held:]), holdout=np.sort(order[:held]))


@dataclass(frozen=True)
class Choice:
    """The test that a method chose.

    Attributes
    ----------
    method : str
    cases : tuple of int
        Rows of the tuning matrix.
    weights : tuple of float
    objective : float
        On the tuning policies, by the one judge.
    """

    method: str
    cases: tuple[int, ...]
    weights: tuple[float, ...]
    objective: float


def tuning_problem(tuning: FloatArray, size: int) -> Problem:
    """The paper's problem on a tuning matrix: rescaled, four targets, all scenarios alike, the worst 1 %.

    Targets come from each case's mean over the tuning policies, as the paper's words have it; its formula divides by
    the number of all policies, held-out ones included.
    """
    scaled, _ = rescale(tuning)
    return Problem(results=scaled, size=size, measure=CVaR(TAIL_FRACTION), targets=softmax_targets(scaled, betas=BETAS))


def choose_tests(tuning: FloatArray, size: int, methods: Sequence[str], seed: int) -> tuple[Choice, ...]:
    """What every method makes of a tuning matrix."""
    problem = tuning_problem(tuning, size)
    choices = []
    for method in methods:
        solution = solve(problem, method, **options_of(method, problem.n_tuples, seed))
        if solution.limit is not None or solution.test is None:
            raise KeyboardInterrupt  # the only limit there is: half an answer must not be taken for a whole one
        test = solution.test
        choices.append(Choice(method, test.cases, tuple(test.weights.tolist()), solution.objective))
    return tuple(choices)


def holdout_errors(results: FloatArray, split: Split, choice: Choice) -> FloatArray:
    """How far the test's score is from the full test's by each target, for each held-out policy.

    Returns
    -------
    ndarray of shape (n_holdout, n_targets)
        In units of the tuning results' range.
    """
    rows = results[split.cases]
    targets, scale = targets_and_scale(rows[:, split.tuning])
    unseen = rows[:, split.holdout]
    scores = np.array(choice.weights) @ unseen[list(choice.cases)]
    spread = scale.high - scale.low or 1.0
    errors: FloatArray = np.abs(scores - targets @ unseen).T / spread
    return errors


def targets_and_scale(tuning: FloatArray) -> tuple[FloatArray, Scale]:
    """The targets by which scores are judged, and the range of the tuning results."""
    scaled, scale = rescale(tuning)
    return softmax_targets(scaled, betas=BETAS), scale


def mean_with_interval(samples: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean of the rows, and the ends of its 95 % interval by Student's t; NaN ends where there is but one row."""
    mean = samples.mean(axis=0)
    if len(samples) < 2:
        unknown = np.full_like(mean, np.nan)
        return mean, unknown, unknown
    half = half_width(samples)
    return mean, mean - half, mean + half
