"""Choosing in steps: what each step may do, and what greed costs."""

from dataclasses import replace

import numpy as np
import pytest

import rposst_opt as ro
from rposst_opt.backends.iterative import select_iteratively

PROBLEM = ro.Problem(results=np.random.default_rng(4).random((12, 9)), size=4, measure=ro.CVaR(0.2), required_cases=[7])


@pytest.mark.parametrize("sizes", [None, [1, 3], [2, 2], [4]])
@pytest.mark.parametrize("backend", ["auto", "regret-matching", "minimax-uniform"])
def test_each_step_keeps_the_cases_of_those_before(sizes: list[int] | None, backend: str) -> None:
    selection = select_iteratively(PROBLEM, backend, step_sizes=sizes)
    cases: set[int] = {7}
    for step, size in zip(selection.steps, sizes or [1, 1, 1, 1], strict=True):
        assert step.test is not None
        assert cases < set(step.test.cases)
        assert len(step.test.cases) == len(cases) + size
        cases = set(step.test.cases)
    assert PROBLEM.why_not(selection.test) is None
    assert selection.objective == PROBLEM.objective(selection.test)
    assert selection.cost_of_greed is None


def test_each_step_is_optimal_given_the_ones_before() -> None:
    selection = select_iteratively(PROBLEM)
    required: tuple[int, ...] = (7,)
    for step in selection.steps:
        alone = ro.solve(replace(PROBLEM, size=1, required_cases=required), "scipy-milp")
        assert step.objective == pytest.approx(alone.objective, abs=1e-6)
        assert step.test is not None
        required = step.test.cases
    objectives = [step.objective for step in selection.steps]
    assert objectives == sorted(objectives, reverse=True)


def test_greed_costs_what_the_joint_optimum_saves() -> None:
    selection = select_iteratively(PROBLEM, compare=True)
    assert selection.joint is not None and selection.cost_of_greed is not None
    assert selection.cost_of_greed == selection.objective - selection.joint.objective
    assert selection.cost_of_greed >= -1e-9
    at_once = select_iteratively(PROBLEM, step_sizes=[4], compare=True)
    assert at_once.cost_of_greed == pytest.approx(0.0, abs=1e-9)
    greedy = select_iteratively(ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=2), compare=True)
    assert greedy.cost_of_greed is not None and greedy.cost_of_greed > 0.01


def test_without_a_proof_the_cost_is_not_known() -> None:
    selection = select_iteratively(PROBLEM, compare=True, joint_time_limit_seconds=0.0)
    assert selection.joint is not None
    assert (selection.cost_of_greed is None) == (selection.joint.status is not ro.Status.OPTIMAL)


@pytest.mark.parametrize("sizes", [[], [1], [2, 3], [0, 4], [5, -1]])
def test_steps_that_do_not_add_up_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ro.ProblemError, match="step_sizes"):
        select_iteratively(PROBLEM, step_sizes=sizes)
