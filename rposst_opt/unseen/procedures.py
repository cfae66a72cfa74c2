"""What is done to make a test from tuning policies, from the raw table to the estimate, so that it can be repeated.

A procedure is handed the tuning policies' results and nothing else. Scale, targets, choice, weights and estimator are
made of them alone, so nothing about a policy that is held out can reach them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rposst_opt.arrays import FloatArray, checked_noise, checked_targets
from rposst_opt.assembly import Rules
from rposst_opt.backends import solve
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError, unknown
from rposst_opt.estimators import ESTIMATORS
from rposst_opt.losses import AbsoluteError, Loss
from rposst_opt.measures import CVaR, Measure
from rposst_opt.problem import NOISE_WEIGHT, Problem
from rposst_opt.results import Scale, full_scores, peculiar_spread, rescale, targets_of

SEARCH = "local-search"
# Of local search: solving harder lowers the error on tuning policies, and not that on others.
# The time that a set takes grows with the square of its size.
KICKS, EFFORT, LEAST_EFFORT = 1, 40_000, 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Purpose:
    """What a test is for: all that states a problem, but for the results and the size.

    Attributes
    ----------
    measure : Measure
    loss : Loss
    betas : tuple of float or None
        Targets that are made of the tuning results (`softmax_targets`); they are made again without what is held out.
    targets : ndarray or None
        Targets that are given. With neither these nor betas the target is the uniform one.
    required_cases, forbidden_cases : tuple of int
    offset : bool
    is_rescaled : bool
        Whether results are mapped to [0, 1] first.
    case_names : tuple of str or None
    noise : ndarray of shape (n_cases,) or None
        Standard errors of results, in the units of the file.
    noise_weight : float
    regularise : float or None
        In the place of noise: by how much the spread that is peculiar to a policy (`results.peculiar_spread`) counts.
    rules : Rules
        About the choice; they do not depend on policies.
    """

    measure: Measure = field(default_factory=lambda: CVaR(0.01))
    loss: Loss = field(default_factory=AbsoluteError)
    betas: tuple[float, ...] | None = None
    targets: FloatArray | None = None
    required_cases: tuple[int, ...] = ()
    forbidden_cases: tuple[int, ...] = ()
    offset: bool = False
    is_rescaled: bool = True
    case_names: tuple[str, ...] | None = None
    noise: FloatArray | None = None
    noise_weight: float = NOISE_WEIGHT
    regularise: float | None = None
    rules: Rules = field(default_factory=Rules)

    def by_position(self, case_names: Sequence[str]) -> "Purpose":
        """The same, with targets and noise as arrays in the order of these cases, however they were given."""
        targets, noise = self.targets, self.noise
        if targets is not None and not isinstance(targets, np.ndarray):
            targets, _ = checked_targets(targets, case_names, None)
        if noise is not None and not isinstance(noise, np.ndarray):
            noise = checked_noise(noise, case_names)
        return replace(self, targets=targets, noise=noise)

    def problem(self, tuning: FloatArray, size: int) -> tuple[Problem, Scale]:
        """The problem that tuning results state, and their scale."""
        values, scale = rescale(tuning) if self.is_rescaled else (tuning, Scale(0.0, 1.0))
        targets = self.targets if self.betas is None else targets_of(values, self.betas)
        problem = Problem(
            results=values,
            size=size,
            measure=self.measure,
            loss=self.loss,
            targets=targets,
            required_cases=self.required_cases,
            forbidden_cases=self.forbidden_cases,
            case_names=self.case_names,
            offset=self.offset,
            rules=self.rules,
            **self._noise(values, scale),
        )
        return problem, scale

    def _noise(self, values: FloatArray, scale: Scale) -> dict[str, Any]:
        """What is added to the objective for the noise of scores, if anything is."""
        if self.regularise is not None:
            return regularisation(values, self.regularise)
        if self.noise is None:
            return {}
        errors = scale.error_from_file_units(self.noise) if self.is_rescaled else self.noise
        return {"noise": errors, "noise_weight": self.noise_weight}


def regularisation(values: FloatArray, strength: float) -> dict[str, Any]:
    """The noise of a problem that is regularised: what is peculiar to a policy counts as noise, by this strength."""
    return {"noise": peculiar_spread(values), "noise_weight": strength}


def gently(problem: Problem) -> dict[str, Any]:
    """Options of a local search that soon ends, by its own work and not by the clock."""
    return {"kicks": KICKS, "threads": 1, "effort": max(LEAST_EFFORT, EFFORT // problem.n_chosen**2)}


@dataclass(frozen=True)
class Selection:
    """A way to choose cases, as tables call it.

    Attributes
    ----------
    backend : str
    options : dict
    label : str
        For people.
    is_random : bool
        Whether a seed decides the choice.
    tail_fraction : float or None
        Of the CVaR that takes the place of the purpose's measure.
    offset : bool
        Whether scores have an offset, whatever the purpose says.
    """

    backend: str
    label: str
    options: tuple[tuple[str, Any], ...] = ()
    is_random: bool = False
    tail_fraction: float | None = None
    offset: bool = False

    def choose(self, problem: Problem, seed: int) -> EfficientTest:
        """The test that is chosen for a problem."""
        if self.tail_fraction is not None:
            problem = replace(problem, measure=CVaR(self.tail_fraction))
        if self.offset:
            problem = replace(problem, offset=True)
        options = dict(self.options) | ({"seed": seed} if self.is_random else {})
        if self.backend == SEARCH:
            options |= gently(problem)
        solution = solve(problem, self.backend, **options)
        if solution.limit is not None or solution.test is None:
            raise KeyboardInterrupt  # the only limit there is: half an answer must not be taken for a whole one
        return solution.test


SELECTIONS: dict[str, Selection] = {
    "rposst": Selection(SEARCH, "RPOSST"),
    "rposst-offset": Selection(SEARCH, "RPOSST with an offset (worst 10 %)", tail_fraction=0.1, offset=True),
    "greedy-ridge": Selection("greedy-ridge", "greedy choice for ridge regression"),
    "kmeans": Selection("kmeans-anchors", "k-means", is_random=True),
    "stratified": Selection("stratified-random", "stratified random", is_random=True),
    "random": Selection("random", "random", is_random=True),
    "mrmr": Selection("mrmr", "mRMR"),
}


def check_known(selections: Sequence[str], estimators: Sequence[str]) -> None:
    """Refuse names that stand for nothing."""
    for name in selections:
        if name not in SELECTIONS:
            raise ProblemError(unknown("selection", name, SELECTIONS))
    for name in estimators:
        if name not in ESTIMATORS:
            raise ProblemError(unknown("estimator", name, ESTIMATORS))


@dataclass(frozen=True, eq=False)
class Trial:
    """What one selection made of tuning policies, and what its test says of others.

    Attributes
    ----------
    selection : str
    cases : tuple of int
    tuned_errors : ndarray of shape (n_targets, n_tuning)
        How far the test's own weights are off on the tuning policies, in the results' units.
    estimates : dict of str to ndarray of shape (n_targets, n_others)
        By estimator, in the results' units.
    full : ndarray of shape (n_targets, n_others)
        What is estimated. It is worked out last, and nothing else depends on it.
    """

    selection: str
    cases: tuple[int, ...]
    tuned_errors: FloatArray
    estimates: dict[str, FloatArray]
    full: FloatArray


def attempt(
    tuning: FloatArray,
    others: FloatArray,
    size: int,
    purpose: Purpose,
    selections: Sequence[str],
    estimators: Sequence[str],
    seed: int,
) -> list[Trial]:
    """Make a test by every selection from the tuning results, and apply it to others by every estimator."""
    problem, scale = purpose.problem(tuning, size)
    trials = []
    for name in selections:
        chosen = SELECTIONS[name].choose(problem, seed)
        test = chosen.tuned_on(problem.results, problem.targets).in_file_units(scale)
        trials.append(
            Trial(
                selection=name,
                cases=test.cases,
                tuned_errors=np.abs(test.weighed(test.rows_of(tuning)) - full_scores(problem.targets, tuning)),
                estimates={method: test.estimated(test.rows_of(others), method) for method in estimators},
                full=full_scores(problem.targets, others),
            )
        )
    return trials
