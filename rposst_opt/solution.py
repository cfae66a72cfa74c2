"""What the package says about a backend's answer: scored again by `Problem`, with a status decided from the gap."""

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from rposst_opt import __version__
from rposst_opt.certificate import Certificate, problem_digest
from rposst_opt.contract import Limit, Stats
from rposst_opt.efficient_test import TEST_FORMAT, EfficientTest
from rposst_opt.errors import ProblemError
from rposst_opt.measures import Mean
from rposst_opt.problem import Need, Problem
from rposst_opt.results import Scale
from rposst_opt.text_files import as_json, write_atomically
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.digests import numbers_digest, results_digest
from rposst_opt.values.showing import Shown, brief_number, html_facts

MOST_STORED = 200_000  # numbers of tuning policies in a test's file
MOST_TARGET_NUMBERS = 1_000  # of targets in a test's file
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

    def to_dict(self, problem: Problem, scale: Scale) -> dict[str, Any]:
        """The same as JSON has it, with an offset in the units of the file."""
        return {
            "cases": list(self.test.case_names),
            "weights": self.test.weights.tolist(),
            **({"offset": self.test.in_file_units(scale).offset} if problem.offset else {}),
            "objective": finite(self.objective),
            "mean_loss": finite(self.mean_loss),
        }


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

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {"reason": self.reason, "predicted_seconds": dict(self.predicted_seconds)}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Solution(ByValue, Shown):
    """A candidate as the package vouches for it.

    Two are equal if all of their attributes are, times included.

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

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("status", self.status.value),
            ("objective", brief_number(self.objective)),
            ("lower bound", brief_number(self.lower_bound)),
            ("gap", brief_number(self.gap)),
            ("by", f"{self.backend} in {self.seconds:.3g} s"),
        ]
        facts += [] if self.limit is None else [("stopped by", self.limit.value)]
        return [*facts, ("test", repr(self.test))]

    def _repr_html_(self) -> str:
        facts = html_facts("Solution", self._facts()[:-1])
        return facts if self.test is None else facts + self.test._repr_html_()

    def to_dict(
        self, problem: Problem, scale: Scale | None = None, *, source: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The solution as one JSON object of the format ``rposst-test/1``, which `EfficientTest.from_dict` reads.

        A number that JSON cannot say (an infinite bound, say) becomes null.

        Parameters
        ----------
        problem : Problem
            The one that was solved.
        scale : Scale, optional
            What `rescale` returned, if the problem's results were rescaled and it does not know that itself
            (`Problem.scale`): a test's offset is then written in the units that they had before.
        source : mapping, optional
            What else is known of where the problem comes from, such as the ``table_sha256`` of results before they were
            rescaled.
        """
        test, units = self.test, scale or problem.scale or Scale(0.0, 1.0)
        known = {"table_sha256": table_digest(problem)} if units == Scale(0.0, 1.0) else {}
        source = {**known, **(source or {})}
        written = {} if test is None else _written(test.in_file_units(units), problem)
        tuning = {"tuning": written.pop("tuning")} if "tuning" in written else {}  # it is long, and comes last
        return {
            "format": TEST_FORMAT,
            "package_version": __version__,
            "cases": [],
            "positions": [],
            "weights": [],
            "n_cases": problem.n_cases,
            **written,
            "objective": finite(self.objective),
            "lower_bound": finite(self.lower_bound),
            "gap": finite(self.gap),
            "status": self.status.value,
            "limit": None if self.limit is None else self.limit.value,
            "backend": self.backend,
            "measure": problem.measure.describe(),
            "loss": problem.loss.label,
            **({"noise_cost": problem.noise_cost(test)} if test is not None and Need.NOISE in problem.needs else {}),
            "size": problem.size,
            "required": [problem.case_names[case] for case in problem.required_cases],
            "forbidden": [problem.case_names[case] for case in problem.forbidden_cases],
            **_rules_record(problem, test),
            "n_policies": problem.n_policies,
            "n_scenarios": problem.n_scenarios,
            "seconds": self.seconds,
            "scale": asdict(units),
            **_range_record(problem, units),
            "problem_sha256": problem_digest(problem),
            "targets": targets_record(problem),
            **source,
            **({} if self.choice is None else {"choice": self.choice.to_dict()}),
            **({"ranking": [each.to_dict(problem, units) for each in self.ranking]} if self.ranking else {}),
            **tuning,
        }

    def save(self, path: str | os.PathLike[str], problem: Problem, scale: Scale | None = None) -> None:
        """Write the solution to a file that `EfficientTest.load` and `rposst score` read: whole, or not at all.

        Parameters
        ----------
        path : str or path
        problem, scale
            As for `to_dict`.
        """
        if self.test is None:
            raise ProblemError("a solution without a test is not saved: its search ended without one.")
        write_atomically(Path(path), as_json(self.to_dict(problem, scale)) + "\n")


def table_digest(problem: Problem) -> str:
    """The digest of a problem's results with their names; that of the table if they were not rescaled."""
    return results_digest(problem.case_names, problem.policy_names, problem.results)


def _written(test: EfficientTest, problem: Problem) -> dict[str, Any]:
    """A test's own record, with its offset if the problem allows one, without what is too much to keep."""
    tuning = test.tuning
    if tuning is not None and tuning.results.size + tuning.full_scores.size > MOST_STORED:
        test = test.without_tuning()
    return {**test.to_dict(), **({"offset": test.offset} if problem.offset else {})}


def _rules_record(problem: Problem, test: EfficientTest | None) -> dict[str, Any]:
    """The rules about the choice, and what the test costs, if it is known what cases cost."""
    rules, costs = problem.rules.describe(problem.case_names), problem.rules.costs
    cost = {} if costs is None or test is None else {"cost": float(costs[list(test.cases)].sum())}
    return {**({"rules": rules} if rules else {}), **cost}


def _range_record(problem: Problem, scale: Scale) -> dict[str, Any]:
    """The range of results in the units of the file, where the scale does not tell it: if they were not rescaled."""
    low, high = (scale.score_in_file_units(float(end)) for end in (problem.results.min(), problem.results.max()))
    return {} if Scale(low, high) == scale else {"range": {"low": low, "high": high}}


def targets_record(problem: Problem) -> dict[str, Any]:
    """How many targets there are, their digest, and where they are few numbers, these."""
    targets = problem.targets
    values = {"values": targets.tolist()} if targets.size <= MOST_TARGET_NUMBERS else {}
    return {"count": len(targets), "sha256": numbers_digest(targets), **values}


def finite(value: Any) -> Any:
    """A value as JSON can say it: a number that is not finite becomes null, everything else stays."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
