"""What is asked: choose test cases and weights whose score stays close to the full test's.

`Problem` checks all data, and `Problem.objective` is the only code in the package that says how good a test is.
"""

# Long because what states a problem and what judges a test are one class, and every argument is explained there.
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, cached_property
from inspect import signature
from itertools import combinations
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from rposst_opt.arrays import (
    WEIGHT_TOLERANCE,
    FloatArray,
    IntArray,
    NamedValues,
    Scenarios,
    checked_names,
    checked_noise,
    checked_noise_weight,
    checked_probabilities,
    checked_targets,
    is_frame,
    read_only,
)
from rposst_opt.assembly import GivenRules, Rows, Rule, RuleKind, Rules, SizeIs, changed_rules, rows_of
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError, check_arguments, instance_of
from rposst_opt.losses import AbsoluteError, Loss, PiecewiseQuadratic
from rposst_opt.measures import CVaR, Measure, check_tail_weight
from rposst_opt.results import (
    Scale,
    check_finite,
    checked_size,
    finite_table,
    first_alike,
    full_scores,
    numeric_table,
    positions_of,
    softmax_targets,
    unused_names,
)
from rposst_opt.results import rescale as to_unit_range
from rposst_opt.values.by_value import ByValue
from rposst_opt.values.showing import Shown, brief_number, counted, listed, quoted

if TYPE_CHECKING:
    import pandas as pd

ROUNDING_STEPS = 16  # how many roundings in a row, all the same way, a score may suffer
NOISE_WEIGHT = math.sqrt(2 / math.pi)  # the mean distance of a normal variable from its mean, by standard deviation
PHANTOMS = ("always the lowest", "always the highest")  # what an offset is a mixture of


class Need(StrEnum):
    """What a problem asks of a backend; the value is the sentence shown to the user."""

    POLYHEDRAL_LOSS = "a loss made of affine pieces"
    CURVED_LOSS = "a loss with curvature"
    CVAR_MIXTURE = "a measure that is a finite mixture of CVaRs"
    ANY_MEASURE = "a measure known only by its tail weights"
    NOISE = "noise in the results"
    CHOICE_RULES = "rules about the choice, such as a budget"
    WEIGHT_LIMITS = "limits to the weights of cases"
    ANY_NUMBER = "a number of cases that is not fixed"


ASSEMBLY_NEEDS = frozenset({Need.CHOICE_RULES, Need.WEIGHT_LIMITS, Need.ANY_NUMBER})  # what rules ask of a backend


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem(ByValue, Shown):
    r"""Choose `size` test cases and weights so that the small test's score stays close to the full test's.

    .. math::

        \min_{\tau,\,w}\ \rho_\Psi\bigl[\Delta(A_{\tau,j}^\top w,\ A_{\cdot,j}^\top\sigma)\bigr]
        \quad \text{s.t.}\quad \tau = \tau^0 \cup \tau',\ |\tau'| = m,\ w \in \triangle^{|\tau|}

    Parameters
    ----------
    results : array of shape (n_cases, n_policies), or DataFrame
        Test case results A: a row is a test case, a column a tuning policy. A DataFrame brings its names, as text. What
        else has names (a DataFrame, a Series, a dict) is matched with these, and must have all of them and no others;
        arrays and lists are taken in order. Where results have no names, their positions "0", "1" and so on are.
    size : int, optional
        How many cases to choose (m), besides the required ones. It may be left out where there is a budget: then any
        number may be chosen that it allows.
    measure : Measure
        How scenarios are weighed; the worst 1 % by default, as in the paper.
    loss : Loss
        What a wrong score costs; the absolute error by default.
    targets : array of shape (n_targets, n_cases) or (n_cases,), DataFrame, Series or dict, optional
        Target distributions σ, one per row; the uniform one by default. In a DataFrame, test cases may be the columns
        or the rows; a dict has an importance for every case, or a dict or Series of these for every target.
        Importances that do not sum to one are divided by their sum, with an `RposstWarning`.
    probabilities : array of shape (n_policies, n_targets), DataFrame, Series or dict, optional
        How likely each (policy, target) pair is (Ψ); all alike by default. A Series or a dict has one for every policy,
        which is shared out equally among targets. Targets without names are matched with columns in order.
    required_cases, forbidden_cases : iterable of int or str
        Cases that every test has (τ⁰) or none may have, by position or by name.
    case_names, policy_names, target_names : sequence of str, optional
        If they are not given, those that results and targets bring.
    offset : bool
        Whether a score may have an offset and weights that sum to less than one:

        .. math:: \text{offset} + \sum_x w_x A_{xj}, \quad w \ge 0,\ \textstyle\sum w \le 1,\quad
                  (1 - \textstyle\sum w)\,\min A \le \text{offset} \le (1 - \textstyle\sum w)\,\max A

        Scores stay in the range of results. The paper has none; with one, tests of few cases are often much closer
        for policies that they were not tuned on.
    noise : array of shape (n_cases,), Series, dict or float, optional
        The standard error s_x of each case's result, from repetitions, say. A score then has the standard error
        :math:`\|s \circ w\|_2`, and `noise_weight` times that is added to the objective.
    noise_weight : float
        κ; by default √(2/π), for :math:`E|bias + noise| \le |bias| + \sqrt{2/\pi}\,\|s \circ w\|_2` if the noise is
        normal and the loss is the absolute error. With other losses it is a price like any other.
    scale : Scale, optional
        The interval of the table's own units that was mapped to [0, 1] to make `results`, and Scale(0, 1) where they
        are as they were; `from_results` sets it. Scores of tests are then in the table's units.
    size_is : str
        ``"exactly"``, or ``"at most"`` where fewer cases may be chosen, one at least.
    costs : array of shape (n_cases,), Series, dict or float, optional
        What each case costs, in any unit: minutes, money.
    budget : float, optional
        What all cases of a test may cost together, the required ones included: within half a millionth of it, which is
        what adding up may lose, and exactly if all are whole numbers and it is at most 100,000.
    groups : dict, Series or sequence, optional
        The group of each case, or a list of its groups; a dict may leave cases out.
    at_least, at_most : dict of str to int, or int, optional
        How many cases of a group a test must have, and may have; one number is for every group.
    conflicts, together : iterable of sets of int or str
        Sets of cases, by position or name, of which a test may have one at most, or has all or none.
    least_weight, most_weight : float, array of shape (n_cases,), Series or dict, optional
        Between which weights every case of a test must have, by themselves or case by case. An offset has none of it.
    rules : Rules, optional
        All of these, as another problem has them; what is given besides takes the place of what they say.

    Examples
    --------
    Two cases and two policies that they rank in opposite ways; each policy's full score is 1/2:

    >>> problem = Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1)
    >>> problem.objective(problem.test(cases=[0], weights=[1.0]))
    0.5
    """

    results: FloatArray
    size: int
    measure: Measure
    loss: Loss
    targets: FloatArray
    probabilities: FloatArray
    required_cases: tuple[int, ...]
    forbidden_cases: tuple[int, ...]
    case_names: tuple[str, ...]
    policy_names: tuple[str, ...]
    offset: bool
    noise: FloatArray | None
    noise_weight: float
    target_names: tuple[str, ...]
    scale: Scale | None
    rules: Rules

    def __init__(
        self,
        *,
        results: "ArrayLike | pd.DataFrame",
        size: int | None = None,
        measure: Measure | None = None,
        loss: Loss | None = None,
        targets: NamedValues = None,
        probabilities: NamedValues = None,
        required_cases: Iterable[int | str] = (),
        forbidden_cases: Iterable[int | str] = (),
        case_names: Sequence[str] | None = None,
        policy_names: Sequence[str] | None = None,
        offset: bool = False,
        noise: NamedValues = None,
        noise_weight: float = NOISE_WEIGHT,
        target_names: Sequence[str] | None = None,
        scale: Scale | None = None,
        rules: Rules | None = None,
        **given: Unpack[GivenRules],
    ) -> None:
        check_arguments("Problem", given, _arguments())
        set_field = object.__setattr__  # the fields are frozen for everyone else
        if is_frame(results):
            case_names = list(results.index) if case_names is None else case_names
            policy_names = list(results.columns) if policy_names is None else policy_names
        table = read_only(numeric_table(results))
        n_cases, n_policies = table.shape
        set_field(self, "results", table)
        set_field(self, "measure", instance_of(Measure, "measure", CVaR(0.01) if measure is None else measure))
        check_tail_weight(self.measure)
        set_field(self, "loss", instance_of(Loss, "loss", AbsoluteError() if loss is None else loss))
        set_field(self, "case_names", checked_names("case_names", case_names, n_cases))
        set_field(self, "policy_names", checked_names("policy_names", policy_names, n_policies))
        check_finite(table, self.case_names, self.policy_names)
        set_field(self, "noise", checked_noise(noise, self.case_names))
        set_field(self, "noise_weight", checked_noise_weight(noise_weight))
        self._check_range()

        rows, names = checked_targets(targets, self.case_names, target_names)
        set_field(self, "targets", rows)
        set_field(self, "target_names", names)
        set_field(self, "probabilities", checked_probabilities(probabilities, self.policy_names, names))

        required, forbidden = self._positions(required_cases), self._positions(forbidden_cases)
        for case in required:
            if case in forbidden:
                raise ProblemError(f"test case {self.case_names[case]!r} is both required and forbidden.")
        set_field(self, "required_cases", required)
        set_field(self, "forbidden_cases", forbidden)
        set_field(self, "rules", self._checked_rules(rules, given, size_is_open=size is None))
        most = len(self.selectable_cases)
        set_field(self, "size", checked_size(most if size is None else size, most, n_cases))
        set_field(self, "offset", instance_of(bool, "offset", offset))
        set_field(self, "scale", scale if scale is None else instance_of(Scale, "scale", scale))

    def _checked_rules(self, rules: Rules | None, given: GivenRules, *, size_is_open: bool) -> Rules:
        """The rules with what is given besides; without a size, any number of cases that a budget pays for."""
        rules = Rules() if rules is None else instance_of(Rules, "rules", rules)
        rules.check_fits(self.n_cases)
        if size_is_open:
            if given.get("size_is", SizeIs.AT_MOST) != SizeIs.AT_MOST:
                raise ProblemError("`size_is` goes with `size`: without one, any number may be chosen.")
            given["size_is"] = SizeIs.AT_MOST
        rules = changed_rules(rules, given, self.case_names) if given else rules
        if size_is_open and rules.budget is None:
            raise ProblemError("`size` may be left out only where there is a `budget`.")
        return rules

    @classmethod
    def from_results(
        cls,
        results: "ArrayLike | pd.DataFrame",
        *,
        size: int | None = None,
        rescale: bool = True,
        betas: Sequence[float] | None = None,
        noise: NamedValues = None,
        **stated: Any,
    ) -> "Problem":
        """The problem of a table that is in units of its own, stated as the command line does.

        Objective, losses and bounds are in rescaled units; ``problem.scale.error_in_file_units`` has them in the
        table's. Scores and estimates of the tests that are found are in the table's units, also with an offset.

        Parameters
        ----------
        results : array of shape (n_cases, n_policies), or DataFrame
        size : int
        rescale : bool
            Whether to map all results to [0, 1] first, as the paper does.
        betas : sequence of float, optional
            In the place of targets: those that `softmax_targets` makes of the rescaled results.
        noise : array of shape (n_cases,), Series, dict or float, optional
            Standard errors, in the table's units.
        **stated
            All else that `Problem` takes.

        Examples
        --------
        >>> problem = Problem.from_results([[0.0, 100.0], [100.0, 0.0], [40.0, 60.0]], size=1, betas=(0, 1))
        >>> problem.results.max(), problem.scale, problem.target_names
        (np.float64(1.0), Scale(low=0.0, high=100.0), ('beta 0', 'beta 1'))
        """
        check_arguments("Problem.from_results", stated, [*_arguments(), "rescale", "betas"])
        values, scale = to_unit_range(results) if rescale else (finite_table(results), Scale(0.0, 1.0))
        stated = {name: value for name, value in stated.items() if value is not None}
        if is_frame(results):
            stated = {"case_names": list(results.index), "policy_names": list(results.columns)} | stated
        if betas is not None and "targets" in stated:
            raise ProblemError("`betas` and `targets` exclude each other: give one of them.")
        if betas is not None:
            names = [f"beta {beta:g}" for beta in betas]
            of_betas = {"target_names": names} if len(set(names)) == len(names) else {}
            stated = of_betas | stated | {"targets": softmax_targets(values, betas)}
        problem = cls(results=values, size=size, noise=noise, scale=scale, **stated)
        if not rescale or problem.noise is None:
            return problem
        return replace(problem, noise=scale.error_from_file_units(problem.noise))

    def _check_range(self) -> None:
        if not (np.isfinite(self.loss_scale) and np.isfinite(self.rounding)):
            raise ProblemError(
                f"`results` from {self.results.min():g} to {self.results.max():g} make the {self.loss.name} loss "
                "overflow: rescale them first."
            )

    def _positions(self, cases: Iterable[int | str]) -> tuple[int, ...]:
        return positions_of(cases, self._position_of_name)

    @cached_property
    def _position_of_name(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.case_names)}

    @property
    def n_cases(self) -> int:
        """How many test cases there are (n)."""
        return len(self.results)

    @property
    def n_policies(self) -> int:
        """How many tuning policies there are (p)."""
        return int(self.results.shape[1])

    @property
    def n_scenarios(self) -> int:
        """How many (policy, target) pairs have a positive probability (d)."""
        return len(self.scenarios.policies)

    @property
    def n_chosen(self) -> int:
        """How many cases a test has, or may have at most, with the required ones."""
        return self.sizes[-1] + len(self.required_cases)

    @property
    def n_tuples(self) -> int:
        """How many sets of cases there are to choose from, whether or not they keep the rules about the choice."""
        return sum(math.comb(len(self.selectable_cases), size) for size in self.sizes)

    @property
    def sizes(self) -> range:
        """How many cases may be chosen besides the required ones."""
        if self.rules.size_is is SizeIs.EXACTLY:
            return range(self.size, self.size + 1)
        return range(1, max(1, min(self.size, self._most_affordable)) + 1)

    @cached_property
    def _most_affordable(self) -> int:
        """How many cases the budget pays for besides the required ones, if they are the cheapest."""
        most = len(self.selectable_cases)
        for rule in self.choice_rules:
            if rule.kind is RuleKind.BUDGET:
                cheapest = np.sort(rule.coefficients[list(self.selectable_cases)])
                spent = float(rule.coefficients[list(self.required_cases)].sum()) + np.cumsum(cheapest)
                most = min(most, int(np.count_nonzero(spent <= rule.high + rule.slack)))
        return most

    @cached_property
    def choice_rules(self) -> tuple[Rule, ...]:
        """The rules about the choice, the number of cases and the required and forbidden ones aside."""
        return self.rules.rows(self.case_names, weights_may_sum_to_less=self.offset)

    @cached_property
    def selectable_cases(self) -> tuple[int, ...]:
        """The cases that are neither required nor forbidden, ascending."""
        settled = {*self.required_cases, *self.forbidden_cases}
        return tuple(case for case in range(self.n_cases) if case not in settled)

    @cached_property
    def eligible_cases(self) -> tuple[int, ...]:
        """The cases that a test may have, required or chosen, ascending."""
        return tuple(sorted(self.required_cases + self.selectable_cases))

    @property
    def choice_rows(self) -> Rows:
        """All rules about the choice, the number of cases first, as rows over the selectable cases."""
        rows = rows_of(self.choice_rules, self.selectable_cases, self.required_cases)
        ones = np.ones((1, len(self.selectable_cases)))
        return Rows(
            np.vstack([ones, rows.matrix]), np.append(self.sizes[0], rows.low), np.append(self.sizes[-1], rows.high)
        )

    def tuples(self) -> Iterator[tuple[int, ...]]:
        """Every set of cases that a test may have: the chosen ones in lexicographic order, the required ones after.

        Where their number is not fixed, fewer come before more.
        """
        for size in self.sizes:
            for chosen in combinations(self.selectable_cases, size):
                if self.keeps_rules(chosen + self.required_cases):
                    yield chosen + self.required_cases

    def keeps_rules(self, cases: Sequence[int]) -> bool:
        """Whether a test of these cases keeps the rules about the choice."""
        return all(rule.why_not(cases) is None for rule in self.choice_rules)

    def restricted_to(self, cases: Iterable[int]) -> "Problem":
        """The same problem with no other cases to choose from; the required ones stay."""
        kept = set(cases)
        others = [case for case in self.selectable_cases if case not in kept]
        left = len(self.selectable_cases) - len(others)
        size = min(self.size, left) if self.rules.size_is is SizeIs.AT_MOST else self.size
        return replace(self, forbidden_cases=(*self.forbidden_cases, *others), size=size)

    def with_rules(self, **given: Unpack[GivenRules]) -> "Problem":
        """The same problem with other rules: what is given, by the names of arguments, in the place of what it has.

        None takes a rule away.

        Examples
        --------
        >>> problem = Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1, costs=[1, 2, 3], budget=2)
        >>> list(problem.tuples()), list(problem.with_rules(budget=1).tuples())
        ([(0,), (1,)], [(0,)])
        """
        return replace(self, rules=changed_rules(self.rules, given, self.case_names))

    @cached_property
    def stated(self) -> "Problem":
        """The problem as solvers are given it: without an offset, and if there is one, with two required cases more.

        An offset is a mixture of two phantom cases, one whose result is always the least in the table and one whose
        result is always the greatest. They have no weight in any target. So all methods, cuts and proofs apply.
        """
        if not self.offset:
            return self
        phantoms = np.repeat([[self.results.min()], [self.results.max()]], self.n_policies, axis=1)
        return Problem(
            results=np.vstack([self.results, phantoms]),
            size=self.size,
            measure=self.measure,
            loss=self.loss,
            targets=np.hstack([self.targets, np.zeros((len(self.targets), 2))]),
            probabilities=self.probabilities,
            required_cases=(*self.required_cases, self.n_cases, self.n_cases + 1),
            forbidden_cases=self.forbidden_cases,
            case_names=[*self.case_names, *unused_names(self.case_names, PHANTOMS)],
            policy_names=self.policy_names,
            noise=None if self.noise is None else [*self.noise, 0.0, 0.0],
            noise_weight=self.noise_weight,
            target_names=self.target_names,
            rules=self.rules.with_phantoms(2),
        )

    def from_stated(self, test: EfficientTest) -> EfficientTest:
        """A test of the `stated` problem as one of this: the weights of the phantom cases make the offset."""
        if not self.offset:
            return test
        weights = test.full_weights()
        cases = [case for case in test.cases if case < self.n_cases]
        offset = float(weights[self.n_cases :] @ self.stated.results[self.n_cases :, 0])
        return self.test(cases=cases, weights=weights[cases], offset=offset)

    def to_stated(self, test: EfficientTest) -> EfficientTest:
        """A test of this problem as one of the `stated` problem."""
        if not self.offset:
            return test
        low, high = float(self.results.min()), float(self.results.max())
        missing = max(1.0 - float(test.weights.sum()), 0.0)
        share = (test.offset_on(self.scale) - missing * low) / (high - low) if high > low else 0.0
        of_high = min(max(share, 0.0), missing)
        weights = [*test.weights, missing - of_high, of_high]
        return self.stated.test(cases=[*test.cases, self.n_cases, self.n_cases + 1], weights=weights)

    @cached_property
    def first_alike(self) -> IntArray:
        """For every case, the first one with the same results, up to rounding: itself, if no earlier one has them."""
        return read_only(first_alike(self.results))

    @cached_property
    def pieces(self) -> PiecewiseQuadratic:
        """The loss as a function of the error; made and checked once, however often it is needed."""
        return self.loss.pieces

    @cached_property
    def loss_scale(self) -> float:
        """The largest loss that a score between the least and the greatest result can have."""
        with np.errstate(over="ignore", invalid="ignore"):
            spread = float(self.results.max() - self.results.min())
            return float(np.abs(self.pieces.value(np.array([-spread, spread]))).max())

    @cached_property
    def noise_costs(self) -> FloatArray:
        """κ s_x: what the noise of each case would cost if it had all the weight; empty if none costs anything."""
        costs = np.zeros(0) if self.noise is None else self.noise_weight * self.noise
        return read_only(costs if costs.max(initial=0.0) > np.finfo(np.float64).tiny else np.zeros(0))

    @cached_property
    def unit(self) -> float:
        """The scale of tolerances: the largest objective there can be, or 1 where it is zero and there is no scale."""
        return (self.loss_scale + float(self.noise_costs.max(initial=0.0))) or 1.0

    @cached_property
    def rounding(self) -> float:
        """What rounding in float64 can do to an objective, also where all results are alike and their scale is zero."""
        with np.errstate(over="ignore", invalid="ignore"):
            largest = float(np.abs(self.results).max())
            ulp = np.finfo(np.float64).eps * largest
            widest = float(np.ptp(self.results)) + ulp
            if not np.isfinite(largest + ROUNDING_STEPS * ulp):
                return np.inf
            steepest = float(np.abs(self.pieces.slope(np.array([-widest, widest]))).max())
            of_noise = np.finfo(np.float64).eps * float(self.noise_costs.max(initial=0.0))
            return ROUNDING_STEPS * (ulp * steepest + of_noise)

    def allowance(self, tolerance: float) -> float:
        """By how much two objectives may differ and count as equal: a share of the unit, and what rounding can do."""
        return tolerance * self.unit + self.rounding

    @cached_property
    def scenarios(self) -> Scenarios:
        """The scenarios, in the order of their policies."""
        return Scenarios.of(self.probabilities, self._full_scores)

    @cached_property
    def _full_scores(self) -> FloatArray:
        return read_only(full_scores(self.targets, self.results))

    @cached_property
    def needs(self) -> frozenset[Need]:
        """What a backend must handle to solve this problem."""
        polyhedral = self.pieces.is_polyhedral
        mixture = self.measure.cvar_mixture(self.scenarios.probabilities) is not None
        return frozenset(
            {
                Need.POLYHEDRAL_LOSS if polyhedral else Need.CURVED_LOSS,
                Need.CVAR_MIXTURE if mixture else Need.ANY_MEASURE,
                *([Need.NOISE] if len(self.noise_costs) else []),
                *([Need.CHOICE_RULES] if self.rules.choose else []),
                *([Need.WEIGHT_LIMITS] if self.rules.limit_weights else []),
                *([Need.ANY_NUMBER] if self.rules.size_is is SizeIs.AT_MOST else []),
            }
        )

    def test(self, *, cases: Iterable[int | str], weights: ArrayLike, offset: float | None = None) -> EfficientTest:
        """Make a test of these cases, by position or name, and their weights; with an offset, if that is allowed."""
        positions = [self._positions([case])[0] for case in cases]
        return EfficientTest(
            cases=positions,
            weights=weights,
            case_names=[self.case_names[case] for case in positions],
            n_cases=self.n_cases,
            offset=offset,
            **self._scale_of_tests,
        )

    @cached_property
    def _scale_of_tests(self) -> dict[str, Any]:
        """What a test is told of the range of results that it is made for, and of its own units."""
        if self.scale is None:
            return {}
        if self.scale == Scale(0.0, 1.0):
            return {"scale": Scale(float(self.results.min()), float(self.results.max()))}
        return {"scale": self.scale, "is_rescaled": True}

    def tuned(self, test: EfficientTest) -> EfficientTest:
        """The same test, in the units of this problem, with all that it can know of the results it was tuned on."""
        known = {"known_scores": self._full_scores, **self._scale_of_tests}
        return test.tuned_on(self.results, self.targets, self.policy_names, **known)

    def why_not(self, test: EfficientTest) -> str | None:
        """Why this test is not an answer to this problem, or None if it is one."""
        if test.n_cases != self.n_cases:
            return f"it is made for {test.n_cases} test cases, and the problem has {self.n_cases}"
        missing = [self.case_names[case] for case in self.required_cases if case not in test.cases]
        if missing:
            return f"it lacks the required test case {missing[0]!r}"
        banned = [self.case_names[case] for case in self.forbidden_cases if case in test.cases]
        if banned:
            return f"it has the forbidden test case {banned[0]!r}"
        if len(test.cases) - len(self.required_cases) not in self.sizes:
            return f"it has {len(test.cases)} test cases, and the problem asks for {self._at_most}{self.n_chosen}"
        for rule in self.choice_rules:
            reason = rule.why_not(test.cases)
            if reason is not None:
                return reason
        for case, weight in zip(test.cases, test.weights.tolist(), strict=True):
            least, most = self.rules.weight_limits(case)
            if not least - WEIGHT_TOLERANCE <= weight <= most + WEIGHT_TOLERANCE:
                name = self.case_names[case]
                return f"its weight of {weight:g} for {name!r} is not between {least:g} and {most:g}"
        if test.has_offset and not self.offset:
            return "it has an offset, and the problem allows none"
        missing_weight = 1.0 - float(test.weights.sum())
        least, most = missing_weight * float(self.results.min()), missing_weight * float(self.results.max())
        slack = WEIGHT_TOLERANCE * max(1.0, float(np.abs(self.results).max()))
        offset = test.offset_on(self.scale)
        if not least - slack <= offset <= most + slack:
            return f"its offset of {offset:g} is beyond the range of results, {least:g} to {most:g}"
        return None

    def scores(self, test: EfficientTest) -> FloatArray:
        """The small test's score of every tuning policy."""
        if test.n_cases != self.n_cases:
            raise ProblemError(f"a test of {test.n_cases} test cases does not fit a problem of {self.n_cases}.")
        scores: FloatArray = test.offset_on(self.scale) + test.weights @ self.results[list(test.cases)]
        return scores

    def losses(self, test: EfficientTest) -> FloatArray:
        """The loss of every scenario."""
        return self.pieces.value(self._errors(test))

    def _errors(self, test: EfficientTest) -> FloatArray:
        errors: FloatArray = self.scores(test)[self.scenarios.policies] - self.scenarios.full_scores
        return errors

    def objective(self, test: EfficientTest) -> float:
        """How bad this test is: the measure of its losses, and what its noise costs. The one judge."""
        return self.measure.value(self.losses(test), self.scenarios.probabilities) + self.noise_cost(test)

    def noise_cost(self, test: EfficientTest) -> float:
        """What the noise of a score adds to the objective: κ times its standard error; zero without noise."""
        parts = self.noise_costs * test.full_weights() if len(self.noise_costs) else np.zeros(1)
        largest = float(parts.max())  # whose square may be beyond float64
        return largest * float(np.linalg.norm(parts / largest)) if largest > 0 else 0.0

    def subgradient(self, test: EfficientTest) -> FloatArray:
        """A subgradient of the objective in the weights of all cases.

        Returns
        -------
        ndarray of shape (n_cases,)
            Σ_s α_s δ_s A[x, j_s], with α the antagonist's best response and δ the slopes of the losses; with noise,
            what it costs besides, κ s_x² w_x / ‖s ∘ w‖.
        """
        return self._judged(test)[1]

    def _judged(self, test: EfficientTest) -> tuple[float, FloatArray]:
        """The objective and a subgradient of it, from one look at the losses."""
        scenarios, errors, cost = self.scenarios, self._errors(test), self.noise_cost(test)
        losses = self.pieces.value(errors)
        weights = self.measure.weights(losses, scenarios.probabilities)
        pull = weights * self.pieces.slope(errors)
        gradient: FloatArray = self.results @ np.bincount(scenarios.policies, pull, minlength=self.n_policies)
        if cost:
            gradient += self.noise_costs * (self.noise_costs * test.full_weights() / cost)
        return float(weights @ losses) + cost, gradient

    def cut(self, test: EfficientTest) -> FloatArray:
        """One number c_x per case, such that every test with weights w has an objective of at least Σ w_x c_x.

        The objective is convex in the weights, so it lies above its tangent at this test; on the simplex the tangent's
        constant can be given to every case. Hence no weights on a set of cases can do better than the least c_x in it.
        With an offset, two more numbers follow, for the phantom cases of the `stated` problem.
        """
        return self.stated.cut(self.to_stated(test)) if self.offset else self.objective_and_cut(test)[1]

    def objective_and_cut(self, test: EfficientTest) -> tuple[float, FloatArray]:
        """`objective` and `cut`, in the time of either: what every round of a method needs that averages cuts."""
        if self.offset:
            return self.objective(test), self.cut(test)
        objective, gradient = self._judged(test)
        cut: FloatArray = objective + (gradient - gradient @ test.full_weights())
        return objective, cut

    @property
    def _at_most(self) -> str:
        """What stands before the number of cases in sentences."""
        return "" if self.rules.size_is is SizeIs.EXACTLY else f"{self.rules.size_is.value} "

    def _facts(self) -> list[tuple[str, str]]:
        """What is asked, in labels and values."""
        facts = [
            ("choose", f"{self._at_most}{self.size:,} of {self.n_cases:,} test cases"),
            ("for", f"{counted(self.n_policies, 'policy')}, {counted(len(self.targets), 'target')}"),
            ("results", f"from {brief_number(self.results.min())} to {brief_number(self.results.max())}"),
            ("measure", repr(self.measure)),
            ("loss", repr(self.loss)),
        ]
        for label, cases in (("required", self.required_cases), ("forbidden", self.forbidden_cases)):
            facts += [(label, listed([quoted(self.case_names[case]) for case in cases]))] if cases else []
        facts += self.rules.facts(self.case_names)
        facts += [("offset", "allowed")] if self.offset else []
        facts += [("noise", f"with weight {brief_number(self.noise_weight)}")] if self.noise is not None else []
        return facts


@cache
def _arguments() -> tuple[str, ...]:
    """What `Problem` can be given, rules included."""
    return (*list(signature(Problem).parameters)[:-1], *GivenRules.__annotations__)
