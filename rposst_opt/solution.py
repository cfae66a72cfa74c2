"""What the package says about a backend's answer: scored again by `Problem`, with a status decided from the gap."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rposst_opt.certificate import Certificate
from rposst_opt.contract import Limit, Stats
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.measures import Mean
from rposst_opt.problem import Problem

TIE_TOLERANCE = 1e-9  # in units of the largest loss: objectives and mean losses this close are ties


class Status(StrEnum):
    """What is known about a solution."""

    OPTIMAL = "optimal"  # no test can be better, by more than the backend's tolerance
    FEASIBLE = "feasible"  # a test, with a gap
    NO_TEST = "no_test"  # none was found


@dataclass(frozen=True, kw_only=True)
class RankedTest:
    """A test among others, with what it is worth.

    Attributes
    ----------
    test : EfficientTest
    objective : float
        `Problem.objective` of the test.
    mean_loss : float
        Its average loss over scenarios, by which ties are broken.
    """

    test: EfficientTest
    objective: float
    mean_loss: float


def rank_tests(problem: Problem, tests: Iterable[EfficientTest]) -> tuple[RankedTest, ...]:
    """Sort tests by objective; ties by the lower mean loss, then by fewer repeated cases, then by position.

    Objectives tie when they are within `TIE_TOLERANCE` of the least among them. A case is repeated if another of the
    test has the same results.
    """
    ranked = []
    for test in tests:
        mean_loss = Mean().value(problem.losses(test), problem.scenarios.probabilities)
        ranked.append(RankedTest(test=test, objective=problem.objective(test), mean_loss=mean_loss))
    order = order_of_tests(
        problem,
        objectives=[entry.objective for entry in ranked],
        mean_losses=[entry.mean_loss for entry in ranked],
        cases=[entry.test.cases for entry in ranked],
    )
    return tuple(ranked[i] for i in order)


def order_of_tests(
    problem: Problem, *, objectives: list[float], mean_losses: list[float], cases: list[tuple[int, ...]]
) -> list[int]:
    """The places of tests with these values and cases, in the order of `rank_tests`."""
    tolerance = problem.allowance(TIE_TOLERANCE)
    by_objective, by_mean_loss = _tie_groups(objectives, tolerance), _tie_groups(mean_losses, tolerance)
    repeated = [len(each) - len(set(problem.first_alike[list(each)].tolist())) for each in cases]
    return sorted(range(len(cases)), key=lambda i: (by_objective[i], by_mean_loss[i], repeated[i], cases[i]))


def _tie_groups(values: list[float], tolerance: float) -> list[int]:
    """The number of each value's group: a group begins with the least value that is in no group before."""
    groups, group, first = [0] * len(values), -1, -np.inf
    for i in np.argsort(values, kind="stable").tolist():
        if values[i] > first + tolerance:
            group, first = group + 1, values[i]
        groups[i] = group
    return groups


@dataclass(frozen=True)
class BackendChoice:
    """Which backend `auto` stands for, and why.

    Attributes
    ----------
    backend : str
    predicted_seconds : mapping of str to float
        To a proved optimum, by `rposst_opt.backends.forecast`; of all backends it knows, whether or not they can be
        used here.
    reason : str
    """

    backend: str
    predicted_seconds: Mapping[str, float]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Solution:
    """A candidate as the package vouches for it.

    Attributes
    ----------
    test : EfficientTest or None
    objective : float
        `Problem.objective` of the test; +inf without one.
    lower_bound : float
        What the backend proved; never above the objective.
    gap : float
        ``objective - lower_bound``, in the units of the objective.
    status : Status
    backend : str
    limit : Limit or None
        What ended the run early, if anything did.
    seconds : float
        Wall time of the whole run.
    stats : Stats
    ranking : tuple of RankedTest
        The best tests in their order, if the backend was asked for them.
    certificate : Certificate or None
        A proof of the lower bound, if the backend was asked for one and the run was not cut short; see
        `verify_certificate`.
    choice : BackendChoice or None
        Why this backend, if it was chosen by ``"auto"``.
    one_of_many : bool
        Whether so many sets of cases are as good that it was not found out which of them comes first: another machine
        may return another one.
    """

    test: EfficientTest | None
    objective: float
    lower_bound: float
    gap: float
    status: Status
    backend: str
    limit: Limit | None
    seconds: float
    stats: Stats
    ranking: tuple[RankedTest, ...] = ()
    certificate: Certificate | None = None
    choice: BackendChoice | None = None
    one_of_many: bool = False
