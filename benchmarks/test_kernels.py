"""The hot kernels, timed by pytest-benchmark: make bench-kernels. Among the tests they run once, for their answers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rposst_opt as ro
from benchmarks.regret_matching import racing_arrows_problem
from rposst_opt.backends.synthetic import SyntheticProblem
from rposst_opt.solvers.kernels.cut_mixture import make_cut_mixture
from rposst_opt.solvers.kernels.problem_arrays import scaled_problem_arrays
from rposst_opt.solvers.kernels.swaps import price_cases, settle_rows
from rposst_opt.solvers.kernels.tuple_game import make_tuple_game

Benchmark = Callable[..., Any]


@pytest.mark.parametrize("size", [3, 10, 30])
def test_settling_a_set_of_cases(benchmark: Benchmark, size: int) -> None:
    problem = SyntheticProblem("binary", 400, size, 60, 4, "cvar-0.01", "absolute", 0).problem()
    arrays = scaled_problem_arrays(problem, np.arange(problem.n_cases))
    mixture = make_cut_mixture(arrays)
    rows = np.arange(size) * 7

    def settle_afresh() -> tuple[float, float]:
        return settle_rows(rows, 1e-11, arrays, make_tuple_game(arrays, size), mixture)

    lower, upper = benchmark(settle_afresh)
    assert upper - lower < 1e-9


def test_pricing_two_thousand_cases(benchmark: Benchmark) -> None:
    problem = SyntheticProblem("binary", 2000, 30, 60, 4, "cvar-0.01", "absolute", 0).problem()
    arrays = scaled_problem_arrays(problem, np.arange(problem.n_cases))
    workspace, mixture, prices = make_tuple_game(arrays, 30), make_cut_mixture(arrays), np.empty(2000)
    rows = np.arange(30) * 60
    lower, _ = settle_rows(rows, 1e-11, arrays, workspace, mixture)
    least = benchmark(price_cases, arrays, mixture, prices)
    assert least == prices.min()
    assert prices[rows].min() == pytest.approx(lower, abs=1e-9)


@pytest.mark.parametrize(("backend", "n", "size"), [("exact", 50, 3), ("exact", 200, 3), ("regret-matching", 50, 2)])
def test_whole_solves(benchmark: Benchmark, backend: str, n: int, size: int) -> None:
    problem = racing_arrows_problem(n, size)
    solution = benchmark(ro.solve, problem, backend)
    assert solution.objective >= solution.lower_bound
    assert solution.gap < 0.05
