"""What the exact solver does besides its search: how much, when, and that no part of it does better."""

from typing import Any

import numpy as np
import pytest
from budgets import Until

import rposst_opt as ro
from rposst_opt.contract import Budget
from rposst_opt.solvers import besides, exact
from rposst_opt.solvers.besides import share_besides


def random_problem(n: int, size: int) -> ro.Problem:
    return ro.Problem(results=np.random.default_rng(0).random((n, 20)), size=size, measure=ro.CVaR(0.1))


class TestShare:
    def test_where_the_end_is_in_sight_it_is_a_tenth(self) -> None:
        assert share_besides(1e9, 5e9) == share_besides(1e9, 0.0) == 0.1

    def test_where_little_is_left_it_is_a_tenth_however_little_is_done(self) -> None:
        assert share_besides(1e3, 1e8) == 0.1

    def test_the_less_of_a_long_search_is_done_the_more_it_is(self) -> None:
        assert share_besides(1e8, 2e9) == 1.0
        assert share_besides(1e8, 2e11) == 9.0
        assert share_besides(1e8, np.inf) == 9.0

    @pytest.mark.parametrize("total", [1e9, 1e11, 1e13])
    def test_in_all_it_is_a_tenth_of_a_search_that_ends_where_the_guess_is_right(self, total: float) -> None:
        work = np.linspace(0.0, total, 100_001)[1:]
        allowed = max(share_besides(done, total - done) * done for done in work.tolist())
        assert allowed == pytest.approx(0.1 * total)


def test_where_neither_kicks_nor_bounds_help_any_more_it_is_a_tenth_again() -> None:
    problem = random_problem(60, 10)
    beside = besides.Besides(problem, Budget(), threads=1)
    assert beside.step()
    assert beside.may_go_on(beside.work, 0.0) and beside.may_go_on(0.2 * beside.work, 0.0)  # nine times is allowed
    beside.climb.idle, beside.climb.has_proofs_left = beside.climb.method.kicks, False
    assert not beside.may_go_on(beside.work, 0.0)
    assert beside.may_go_on(11 * beside.work, 0.0)


def test_a_search_that_ends_soon_never_looks_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a local search was begun")

    monkeypatch.setattr(besides, "Climb", never)
    solution = ro.solve(random_problem(20, 3), "exact")
    assert solution.status is ro.Status.OPTIMAL
    assert (solution.stats.local_search_share, solution.stats.relaxation_share, solution.stats.kicks) == (0.0, 0.0, 0)


@pytest.mark.parametrize("options", [{}, {"top": 3}, {"certificate": True}], ids=str)
def test_a_hopeless_search_has_the_test_and_the_bound_of_local_search(options: dict[str, Any]) -> None:
    problem = random_problem(60, 10)
    local = ro.solve(problem, "local-search", kicks=5)
    budget = Until(lambda progress: progress.objective <= local.objective + 1e-9)
    candidate = exact.Exact(**options).solve(problem, budget)
    assert budget.is_content
    assert candidate.test is not None
    assert problem.objective(candidate.test) <= local.objective + 1e-9
    assert candidate.lower_bound >= local.lower_bound - 1e-9
    assert budget.told[-1].lower_bound == pytest.approx(candidate.lower_bound)
    assert candidate.stats.local_search_share > 0.5
    share = candidate.stats.share_done
    assert share is not None and 0 < share < 1e-3  # and does not say that half of it is done


def test_all_of_it_is_the_same_with_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"ALONE": 1e4, "PAIRED": 5e4, "SHORTEST_TURN": 2e4, "LONGEST_TURN": 2e5, "FIRST_ROUND": 2e5}
    for name, value in short.items():
        monkeypatch.setattr(exact, name, value)
    monkeypatch.setattr(besides, "LEAST_LEFT", 0.0)
    problem = random_problem(24, 5)
    runs = [ro.solve(problem, "exact", threads=threads) for threads in (1, 2, 3)]
    assert runs[0].stats.local_search_share > 0.1 and runs[0].stats.kicks > 0
    for run in runs[1:]:
        assert (run.objective, run.lower_bound) == (runs[0].objective, runs[0].lower_bound)
        for count in ("nodes", "cuts", "solved", "rounds", "kicks", "local_search_share", "relaxation_share"):
            assert getattr(run.stats, count) == getattr(runs[0].stats, count)
