import importlib
import math
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import distributions, problems

import formulations
import rposst_opt as ro
from rposst_opt.backends import BACKENDS, Entry, judge

PROBLEM = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4], [0.9, 0.3]], size=2)
TEST = PROBLEM.test(cases=[0, 2], weights=[0.5, 0.5])
OBJECTIVE = PROBLEM.objective(TEST)
TOLERANCE = 1e-6


def capabilities(**changes: Any) -> ro.Capabilities:
    return ro.Capabilities(
        **{
            "method": "saying what it is told",
            "handles": frozenset(ro.Need),
            "finds_optimum": True,
            "proves": "whatever it is told",
            "tolerance": TOLERANCE,
            **changes,
        }
    )


@dataclass
class Parrot:
    """A backend that hands back what it was made with, true or not."""

    test: ro.EfficientTest | None = None
    lower_bound: float = -math.inf
    limit: ro.Limit | None = None
    budgets: list[ro.Budget] = field(default_factory=list)

    capabilities: ClassVar[ro.Capabilities] = capabilities()

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        self.budgets.append(budget)
        budget.tell(ro.Progress(done=1, total=2, objective=0.5))
        return ro.Candidate(
            test=self.test, lower_bound=self.lower_bound, limit=self.limit, stats=ro.Stats(tuples=3, rounds=7)
        )


class AffineParrot(Parrot):
    """One that handles the simplest problems only."""

    capabilities: ClassVar[ro.Capabilities] = capabilities(
        handles=frozenset({ro.Need.POLYHEDRAL_LOSS, ro.Need.CVAR_MIXTURE})
    )


class HomelessParrot(Parrot):
    """One that needs packages which nobody has."""

    capabilities: ClassVar[ro.Capabilities] = capabilities(requires=("surely_missing", "math", "missing_too"))


class HomelessParrotWithAnExtra(Parrot):
    capabilities: ClassVar[ro.Capabilities] = capabilities(requires=("surely_missing",), extra="parrots")


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let nothing but the named backends of this file be known."""

    def set_up(**kinds: type[Parrot]) -> None:
        for name in list(BACKENDS):
            monkeypatch.delitem(BACKENDS, name)
        for name, kind in kinds.items():
            monkeypatch.setitem(BACKENDS, name, Entry(__name__, kind.__name__))

    return set_up


def solve_with(**claims: Any) -> ro.Solution:
    return ro.solve(PROBLEM, Parrot(**claims))


# What an answer is worth.


def test_a_bound_that_meets_the_objective_makes_it_optimal() -> None:
    solution = solve_with(test=TEST, lower_bound=OBJECTIVE)
    assert solution.status is ro.Status.OPTIMAL
    assert (solution.objective, solution.lower_bound, solution.gap) == (OBJECTIVE, OBJECTIVE, 0)
    assert solution.test is not None
    assert (solution.test.cases, solution.test.weights.tolist()) == (TEST.cases, TEST.weights.tolist())


def test_a_bound_below_the_objective_leaves_a_gap() -> None:
    solution = solve_with(test=TEST, lower_bound=OBJECTIVE - 0.125)
    assert solution.status is ro.Status.FEASIBLE
    assert solution.lower_bound == OBJECTIVE - 0.125
    assert solution.gap == pytest.approx(0.125)


def test_a_backend_that_proves_nothing_has_an_infinite_gap() -> None:
    solution = solve_with(test=TEST, lower_bound=-math.inf)
    assert (solution.status, solution.objective, solution.gap) == (ro.Status.FEASIBLE, OBJECTIVE, math.inf)


def test_a_gap_within_the_tolerance_is_optimal_and_is_still_told() -> None:
    solution = solve_with(test=TEST, lower_bound=OBJECTIVE - TOLERANCE / 2)
    assert solution.status is ro.Status.OPTIMAL
    assert solution.gap == pytest.approx(TOLERANCE / 2)
    assert solve_with(test=TEST, lower_bound=OBJECTIVE - 2 * TOLERANCE).status is ro.Status.FEASIBLE


def test_a_bound_above_the_objective_by_rounding_is_lowered_to_it() -> None:
    solution = solve_with(test=TEST, lower_bound=OBJECTIVE + TOLERANCE / 2)
    assert solution.status is ro.Status.OPTIMAL
    assert (solution.lower_bound, solution.gap) == (OBJECTIVE, 0)


def test_the_tolerance_is_relative_to_the_scale_of_losses() -> None:
    large = ro.Problem(results=1000 * PROBLEM.results, size=2)
    objective = large.objective(TEST)
    within = ro.solve(large, Parrot(TEST, objective + 500 * TOLERANCE))
    assert (within.status, within.gap) == (ro.Status.OPTIMAL, 0)
    with pytest.raises(ro.BackendFailure, match="claims that no test is below"):
        ro.solve(large, Parrot(TEST, objective + 2000 * TOLERANCE))


@pytest.mark.parametrize("lower_bound", [-math.inf, 0.0, 0.25])
def test_no_test_is_an_outcome(lower_bound: float) -> None:
    solution = solve_with(test=None, lower_bound=lower_bound, limit=ro.Limit.TIME)
    assert solution.status is ro.Status.NO_TEST
    assert solution.test is None
    assert (solution.objective, solution.lower_bound, solution.gap) == (math.inf, lower_bound, math.inf)
    assert solution.limit is ro.Limit.TIME


def test_all_that_a_backend_tells_reaches_the_caller() -> None:
    news: list[ro.Progress] = []
    backend = Parrot(TEST, 0.0, ro.Limit.INTERRUPT)
    solution = ro.solve(PROBLEM, backend, time_limit_seconds=60, gap=0.25, progress=news.append)
    assert solution.backend == "Parrot"
    assert solution.limit is ro.Limit.INTERRUPT
    assert solution.stats == ro.Stats(tuples=3, rounds=7)
    assert 0 <= solution.seconds < 60
    assert [progress.done for progress in news] == [1]
    (budget,) = backend.budgets
    assert (budget.time_limit_seconds, budget.gap) == (60, 0.25)


@given(problems(), st.data())
def test_the_judge_scores_by_the_problem_alone(problem: ro.Problem, data: st.DataObject) -> None:
    chosen = [*problem.required_cases, *problem.selectable_cases[: problem.size]]
    test = problem.test(cases=chosen, weights=data.draw(distributions(len(chosen))))
    objective = problem.objective(test)
    shortfall = data.draw(st.floats(-1e-10, 1) | st.just(0.0)) * problem.loss_scale
    solution = judge(
        problem, ro.Candidate(test=test, lower_bound=objective - shortfall), "parrot", tolerance=1e-9, seconds=0.0
    )
    assert solution.objective == objective
    assert solution.lower_bound <= solution.objective
    assert solution.gap == solution.objective - solution.lower_bound
    assert solution.gap == pytest.approx(max(shortfall, 0), abs=1e-12)
    optimal = solution.gap <= 1e-9 * problem.loss_scale + problem.rounding
    assert solution.status is (ro.Status.OPTIMAL if optimal else ro.Status.FEASIBLE)


# Lies.


def test_a_bound_above_the_objective_is_a_lie() -> None:
    with pytest.raises(ro.BackendFailure, match=r"'Parrot' claims that no test is below .*, and its own .*is at"):
        solve_with(test=TEST, lower_bound=OBJECTIVE + 2 * TOLERANCE)
    with pytest.raises(ro.BackendFailure, match="claims that no test is below inf"):
        solve_with(test=TEST, lower_bound=math.inf)


@pytest.mark.parametrize("test", [TEST, None])
def test_a_bound_that_is_no_number_is_a_lie(test: ro.EfficientTest | None) -> None:
    with pytest.raises(ro.BackendFailure, match="'Parrot' returned NaN as its lower bound"):
        solve_with(test=test, lower_bound=math.nan)


SETTLED = ro.Problem(
    results=PROBLEM.results, size=1, required_cases=["b"], forbidden_cases=["d"], case_names=["a", "b", "c", "d"]
)

NO_ANSWERS = [
    ([0, 1, 2], 4, "no answer: it has 3 test cases, and the problem asks for 2"),
    ([1], 4, "no answer: it has 1 test cases, and the problem asks for 2"),
    ([1, 3], 4, "no answer: it has the forbidden test case 'd'"),
    ([0, 2], 4, "no answer: it lacks the required test case 'b'"),
    ([0, 1], 3, "no answer: it is made for 3 test cases, and the problem has 4"),
]


@pytest.mark.parametrize(("cases", "n_cases", "reason"), NO_ANSWERS)
def test_a_test_that_is_no_answer_is_a_lie(cases: list[int], n_cases: int, reason: str) -> None:
    test = ro.EfficientTest(cases=cases, weights=[1 / len(cases)] * len(cases), n_cases=n_cases)
    with pytest.raises(ro.BackendFailure, match=f"'Parrot' returned a test that is {reason}"):
        ro.solve(SETTLED, Parrot(test, 0.0))


class Heavyweight(Parrot):
    """One whose weights sum to two."""

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        return ro.Candidate(test=problem.test(cases=[0, 1], weights=[1.0, 1.0]), lower_bound=0.0)


def test_weights_off_the_simplex_never_reach_the_judge() -> None:
    with pytest.raises(ro.ProblemError, match="must be non-negative and sum to 1"):
        ro.solve(PROBLEM, Heavyweight())


# Who may be asked, and for what.


def test_a_backend_is_not_asked_for_what_it_does_not_handle(only: Callable[..., None]) -> None:
    only(affine=AffineParrot, parrot=Parrot, ara=Parrot)
    curved = ro.Problem(results=PROBLEM.results, size=2, loss=ro.SquaredError())
    message = (
        r"backend 'affine' cannot solve this problem: it does not handle a loss with curvature "
        r"\(SquaredError\(\), CVaR\(tail_fraction=0\.01\)\)\. Backends that can: parrot, ara\."
    )
    with pytest.raises(ro.Unsupported, match=message):
        ro.solve(curved, "affine")
    backend = AffineParrot()
    with pytest.raises(ro.Unsupported, match="it does not handle a loss with curvature"):
        ro.solve(curved, backend)
    assert backend.budgets == []


def test_every_need_that_is_not_met_is_named(only: Callable[..., None]) -> None:
    only(affine=AffineParrot)
    awkward = ro.Problem(
        results=PROBLEM.results, size=2, loss=ro.HuberError(), measure=ro.KOfN(1, 3), probabilities=[[0.4], [0.6]]
    )
    with pytest.raises(ro.Unsupported) as caught:
        ro.solve(awkward, "affine")
    assert ro.Need.CURVED_LOSS.value in str(caught.value)
    assert ro.Need.ANY_MEASURE.value in str(caught.value)
    assert "Backends that can: none." in str(caught.value)


def test_auto_passes_over_backends_that_cannot(only: Callable[..., None]) -> None:
    only(homeless=HomelessParrot, affine=AffineParrot, parrot=Parrot)
    curved = ro.Problem(results=PROBLEM.results, size=2, loss=ro.SquaredError())
    assert ro.solve(curved).backend == "parrot"


def test_auto_says_when_there_is_nobody_to_ask(only: Callable[..., None]) -> None:
    only(homeless=HomelessParrot, affine=AffineParrot)
    curved = ro.Problem(results=PROBLEM.results, size=2, loss=ro.SquaredError())
    with pytest.raises(ro.Unsupported, match="no installed backend handles this problem"):
        ro.solve(curved)


def test_an_unknown_backend_is_refused_with_the_known_ones(only: Callable[..., None]) -> None:
    only(parrot=Parrot, ara=Parrot)
    with pytest.raises(ro.BackendNotFound, match=r"unknown backend 'magic'\. Known: auto, parrot, ara\."):
        ro.solve(PROBLEM, "magic")


def test_a_missing_package_comes_with_the_command_that_installs_it(only: Callable[..., None]) -> None:
    only(homeless=HomelessParrot, extra=HomelessParrotWithAnExtra)
    message = (
        "backend 'homeless' needs surely_missing, missing_too, which is not installed: "
        "pip install surely_missing missing_too"
    )
    with pytest.raises(ro.BackendUnavailable, match=message):
        ro.solve(PROBLEM, "homeless")
    with pytest.raises(ro.BackendUnavailable, match=r"needs surely_missing, .*: pip install '?rposst-opt\[parrots\]"):
        ro.solve(PROBLEM, "extra")


ONE_PER_MODULE = {entry.module: name for name, entry in BACKENDS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ONE_PER_MODULE.values())
def test_a_backend_whose_package_is_missing_says_so_although_its_module_imports_it(name: str) -> None:
    required = BACKENDS[name].capabilities.requires
    if not required:
        return
    package = required[0]
    program = f"""
import sys
sys.modules[{package!r}] = None  # what Python itself puts there for a package that must not be imported
import rposst_opt as ro
try:
    ro.solve(ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1), {name!r})
except ro.BackendUnavailable as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert f"backend {name!r} needs {package}" in run.stdout, run.stderr
    assert "pip install" in run.stdout


def test_an_unknown_option_is_refused_with_the_known_ones(only: Callable[..., None]) -> None:
    only(parrot=Parrot)
    message = r"backend 'parrot' has no option `colour`\. It has: `test`, `lower_bound`, `limit`, `budgets`\."
    with pytest.raises(ro.ProblemError, match=message):
        ro.solve(PROBLEM, "parrot", lower_bound=0.0, colour="green")


def test_an_option_of_the_reference_method_that_is_misspelt_is_refused() -> None:
    with pytest.raises(
        ro.ProblemError,
        match=r"backend 'regret-matching' has no option `round`: did you mean `rounds`\? It has: .*`rounds`",
    ):
        ro.solve(PROBLEM, "regret-matching", round=5)


def test_options_of_a_named_backend_reach_it(only: Callable[..., None]) -> None:
    only(parrot=Parrot)
    solution = ro.solve(PROBLEM, "parrot", test=TEST, lower_bound=0.0)
    assert solution.test is not None
    assert (solution.backend, solution.test.cases, solution.lower_bound) == ("parrot", TEST.cases, 0.0)


def test_a_backend_made_beforehand_goes_by_its_name_in_the_table(only: Callable[..., None]) -> None:
    only(polly=Parrot)
    assert ro.solve(PROBLEM, Parrot(TEST)).backend == "polly"
    assert ro.solve(PROBLEM, AffineParrot(TEST)).backend == "AffineParrot"


def test_options_do_not_go_with_a_backend_made_beforehand() -> None:
    with pytest.raises(ro.ProblemError, match="option `rounds` goes with a backend's name"):
        ro.solve(PROBLEM, Parrot(TEST), rounds=5)


@pytest.mark.parametrize("seconds", [-1.0, -math.inf, math.nan])
def test_a_time_limit_must_not_be_negative(seconds: float) -> None:
    with pytest.raises(ro.ProblemError, match=f"`time_limit_seconds` must not be negative, got {seconds:g}"):
        ro.solve(PROBLEM, Parrot(TEST), time_limit_seconds=seconds)


@pytest.mark.parametrize("gap", [-1e-9, math.nan, math.inf])
def test_a_gap_must_be_a_number_from_zero_on(gap: float) -> None:
    with pytest.raises(ro.ProblemError, match=f"`gap` must be a number from 0 on, got {gap:g}"):
        ro.solve(PROBLEM, Parrot(TEST), gap=gap)


def test_limits_of_zero_are_allowed() -> None:
    backend = Parrot(TEST)
    ro.solve(PROBLEM, backend, time_limit_seconds=0, gap=0)
    assert backend.budgets[0].reached() is ro.Limit.TIME


# The table.


def modules_of_the_distribution() -> list[str]:
    packages = [ro, formulations]
    return [
        module.name
        for package in packages
        for module in pkgutil.walk_packages(package.__path__, prefix=f"{package.__name__}.")
        if not module.name.endswith("__main__")
    ]


def test_every_backend_is_in_the_table() -> None:
    declared = {
        (kind.__module__, kind.__name__)
        for name in modules_of_the_distribution()
        for kind in vars(importlib.import_module(name)).values()
        if isinstance(kind, type)
        and kind.__module__ == name
        and hasattr(kind, "capabilities")
        and hasattr(kind, "solve")
        and kind is not ro.Backend
    }
    assert ("rposst_opt.solvers.regret_matching", "RegretMatching") in declared
    assert declared <= {(entry.module, entry.kind) for entry in BACKENDS.values()}


@pytest.mark.parametrize("name", BACKENDS)
def test_every_entry_leads_to_a_backend(name: str) -> None:
    backend = BACKENDS[name].make()
    assert isinstance(backend.capabilities, ro.Capabilities)
    assert callable(backend.solve)
    assert backend.capabilities.handles
    assert backend.capabilities.handles <= frozenset(ro.Need)
    assert 0 < backend.capabilities.tolerance < 1e-2
    assert backend.capabilities.method and backend.capabilities.proves
