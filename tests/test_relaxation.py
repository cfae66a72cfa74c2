"""The linear relaxation: a bound on every test, at every moment."""

from typing import Any

import highspy
import numpy as np
import pytest
from budgets import Until
from hypothesis import given, settings
from strategies import problems

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.solvers.exact import Exact
from rposst_opt.solvers.kernels.problem_arrays import scaled_problem_arrays
from rposst_opt.solvers.relaxation import Relaxation


def relaxation_of(problem: ro.Problem) -> Relaxation:
    cases = np.array(problem.eligible_cases)
    return Relaxation(scaled_problem_arrays(problem, np.arange(problem.n_cases)), cases)


def arrows(size: int) -> ro.Problem:
    table = racing_arrows(60, np.random.default_rng(1)).to_numpy()
    return ro.Problem(results=table, size=size, targets=ro.softmax_targets(table), measure=ro.CVaR(0.1))


@settings(max_examples=60)
@given(problems())
def test_its_value_is_attained_and_its_bound_holds_for_weights_at_random(problem: ro.Problem) -> None:
    relaxed = relaxation_of(problem)
    relaxed.play()
    early = relaxed.bound
    relaxed.close_in()
    weights = np.zeros(problem.n_cases)
    weights[relaxed.rows] = relaxed.weights
    test = problem.test(cases=range(problem.n_cases), weights=weights)
    noise = problem.objective(test) - relaxed.value * problem.unit  # the relaxation is that of the losses alone
    assert noise >= -problem.allowance(1e-10)
    assert early <= relaxed.bound <= relaxed.value + 1e-12
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights[relaxed.rows] = rng.dirichlet(np.full(len(relaxed.rows), 0.3))
        other = problem.objective(problem.test(cases=range(problem.n_cases), weights=weights))
        assert relaxed.bound * problem.unit <= other + problem.allowance(1e-10)


@settings(max_examples=60)
@given(problems())
def test_bound_and_value_meet(problem: ro.Problem) -> None:
    relaxed = relaxation_of(problem)
    relaxed.play()
    relaxed.close_in()
    assert relaxed.value - relaxed.bound <= (1e-6 if problem.pieces.coefficients[:, 2].any() else 1e-9)


def test_another_number_of_threads_in_this_process_is_no_trouble() -> None:
    """HiGHS has one number of threads in a process, and refuses a program that asks for another."""
    highspy.Highs.resetGlobalScheduler(True)
    with_three = highspy.Highs()
    with_three.silent()
    with_three.setOptionValue("threads", 3)
    with_three.addVar(0.0, 1.0)
    assert with_three.run() == highspy.HighsStatus.kOk
    relaxed = relaxation_of(arrows(3))
    relaxed.play()
    relaxed.close_in()
    highspy.Highs.resetGlobalScheduler(True)
    assert relaxed.value - relaxed.bound <= 1e-9


def test_every_bound_on_the_way_holds_and_is_no_lower_than_the_one_before() -> None:
    relaxed = relaxation_of(arrows(3))
    relaxed.play()
    bounds = [relaxed.bound]
    while not relaxed.is_settled:
        relaxed.close_in(1)
        bounds.append(relaxed.bound)
    assert len(bounds) > 5
    assert bounds == sorted(bounds)
    assert bounds[-1] <= relaxed.value


@pytest.mark.parametrize("options", [{}, {"top": 3}, {"certificate": True}], ids=str)
def test_the_exact_solver_has_the_relaxations_bound_without_any_time(options: dict[str, Any]) -> None:
    problem = arrows(9)
    relaxed = relaxation_of(problem)
    relaxed.play()
    at_once = ro.solve(problem, "exact", time_limit_seconds=1e-9, **options)
    assert at_once.limit is not None
    assert at_once.lower_bound >= relaxed.bound * problem.unit
    assert at_once.objective >= at_once.lower_bound


def test_the_bound_of_the_exact_solver_never_falls_and_ends_above_the_relaxations() -> None:
    problem = arrows(9)
    relaxed = relaxation_of(problem)
    relaxed.play()
    relaxed.close_in()
    wanted = relaxed.bound * problem.unit - 1e-9
    local = ro.solve(problem, "local-search", kicks=1).objective + 1e-9
    budget = Until(lambda told: told.lower_bound >= wanted and told.objective <= local)
    found = Exact().solve(problem, budget)
    bounds = [progress.lower_bound for progress in budget.told]
    assert budget.is_content
    assert bounds == sorted(bounds)
    assert found.lower_bound >= wanted


@pytest.mark.parametrize("offset", [False, True])
def test_a_test_from_elsewhere_is_searched_by_its_alike(offset: bool) -> None:
    """Cases with equal results are searched once; a local search may choose the copy."""
    rng = np.random.default_rng(0)
    few = rng.random((12, 30))
    results = np.vstack([few, few])
    problem = ro.Problem(results=results, size=8, measure=ro.CVaR(0.3), offset=offset, required_cases=(3,))
    found = ro.solve(problem, "exact", time_limit_seconds=30.0)
    alone = ro.solve(ro.Problem(results=few, size=8, measure=ro.CVaR(0.3), offset=offset, required_cases=(3,)), "exact")
    assert found.objective == pytest.approx(alone.objective, abs=1e-9)
