"""Backends that claim the optimum, held against an optimum that was found without them."""

import pytest

import rposst_opt as ro
from rposst_opt.backends import BACKENDS, missing_packages
from rposst_opt.problem import Need
from rposst_opt.solution import Status


def provers_here(*needs: Need) -> list[str]:
    """Those that find the optimum of problems with these needs, and can be run here."""
    return [
        name
        for name, entry in BACKENDS.items()
        if entry.capabilities.finds_optimum
        and entry.capabilities.handles.issuperset(needs)
        and not missing_packages(entry.capabilities)
        and not entry.capabilities.unusable
    ]


def assert_proves(problem: ro.Problem, name: str, best: float, slack: float) -> None:
    """It says that its test is optimal, and it is, and so is its bound: up to its tolerance and the oracle's slack."""
    solution = ro.solve(problem, name)
    allowance = problem.allowance(BACKENDS[name].capabilities.tolerance + slack)
    assert solution.status is Status.OPTIMAL
    assert solution.objective == pytest.approx(best, abs=allowance)
    assert solution.lower_bound <= best + allowance
