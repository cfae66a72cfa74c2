"""The exact solver against every tuple solved on its own.

The oracle is one linear program per tuple, by SciPy's `linprog`, that knows nothing of cuts, games or trees: the loss
is stated by its affine pieces, and the measure by *all* orders in which the scenarios can be sorted. Curved losses are
closed in on by cutting planes with `linprog` as the master.
"""

import itertools
import math
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from oracles import TIGHT, cutting_plane_optimum
from scipy import sparse
from scipy.optimize import linprog
from strategies import RESULT_KINDS, problems

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.solvers import exact
from rposst_opt.solvers.front import set_of
from rposst_opt.solvers.kernels.case_sets import count_bits, first_member
from rposst_opt.solvers.kernels.problem_arrays import scaled_problem_arrays
from rposst_opt.solvers.kernels.search_state import Nodes
from rposst_opt.solvers.kernels.tuple_game import CALLS, EXTENDED, make_tuple_game, place_row, settle
from rposst_opt.solvers.ladder import Ladder


def all_tuples(problem: ro.Problem) -> Iterator[tuple[int, ...]]:
    for chosen in itertools.combinations(problem.selectable_cases, problem.size):
        yield tuple(sorted(chosen + problem.required_cases))


def allowed_weights(problem: ro.Problem) -> np.ndarray:
    """The antagonist's weights for every order of the scenarios: the corners of what the measure allows."""
    probabilities = problem.scenarios.probabilities
    orders = np.array(list(itertools.permutations(range(len(probabilities)))))
    tails = np.pad(np.minimum(np.cumsum(probabilities[orders], axis=1), 1.0), ((0, 0), (1, 0)))
    weights = np.empty(orders.shape)
    np.put_along_axis(weights, orders, np.diff(problem.measure.tail_weight(tails), axis=1), axis=1)
    return np.unique(weights.round(15), axis=0)


def linear_program(
    problem: ro.Problem, cases: tuple[int, ...], corners: np.ndarray
) -> tuple[np.ndarray, list[float], list[tuple[float | None, float | None]]]:
    """Minimise t subject to t ≥ Σ_s α_s ℓ_s for every corner α, ℓ_s ≥ every affine piece, w on the simplex.

    Of the variables w, ℓ and t: rows that are at most 0, one that is 1, and bounds.
    """
    scale, spread = problem.unit, float(np.ptp(problem.results)) or 1.0
    scenarios, width, d = problem.scenarios, len(cases), problem.n_scenarios
    errors = (problem.results[list(cases)][:, scenarios.policies] - scenarios.full_scores) / spread  # w sums to one
    rows = [np.hstack([np.zeros((len(corners), width)), corners, -np.ones((len(corners), 1))])]
    for constant, linear, _ in problem.loss.pieces.coefficients:
        pieces = (constant + linear * spread * errors.T) / scale
        rows.append(np.hstack([pieces, -np.eye(d), np.zeros((d, 1))]))
    return np.vstack(rows), [1.0] * width + [0.0] * (d + 1), [(0, 1)] * width + [(None, None)] * (d + 1)


def optima_by_linear_programs(
    problem: ro.Problem, tuples: list[tuple[int, ...]], corners: np.ndarray
) -> dict[tuple[int, ...], float]:
    """The optimum of each of these tuples: programs that share no variable, solved as one, which takes least time."""
    tables, simplices, bounds = zip(*[linear_program(problem, cases, corners) for cases in tuples], strict=True)
    table = sparse.block_diag(tables, format="csc")
    width = len(simplices[0])
    outcome = linprog(
        np.tile(np.append(np.zeros(width - 1), 1.0), len(tuples)),
        A_ub=table,
        b_ub=np.zeros(table.shape[0]),
        A_eq=sparse.block_diag(simplices, format="csc"),
        b_eq=np.ones(len(tuples)),
        bounds=list(itertools.chain(*bounds)),
        options=TIGHT,
    )
    assert outcome.status == 0, outcome.message
    values = outcome.x.reshape(len(tuples), width)[:, -1] * problem.unit
    return dict(zip(tuples, values.tolist(), strict=True))


def optima(problem: ro.Problem) -> dict[tuple[int, ...], float]:
    """The optimum of every tuple."""
    tuples = list(all_tuples(problem))
    if not problem.loss.pieces.is_polyhedral:
        return {cases: cutting_plane_optimum(problem, cases, 5e-10) for cases in tuples}
    return optima_by_linear_programs(problem, tuples, allowed_weights(problem))


def near(problem: ro.Problem, tolerance: float = 1e-9) -> float:
    return tolerance * problem.unit + problem.rounding


LOSSES = [
    ro.AbsoluteError(),
    ro.SquaredError(),
    ro.HuberError(0.1),
    ro.PinballError(0.8),
    ro.EpsilonInsensitiveError(0.05),
]
MEASURES = [
    ro.Mean(),
    ro.WorstCase(),
    ro.CVaR(0.01),
    ro.CVaR(0.4),
    ro.KOfN(1, 3),
    ro.KOfN(3, 7),
    ro.Mixture([(0.9, ro.CVaR(0.2)), (0.1, ro.Mean())]),
    ro.Mixture([(0.5, ro.KOfN(2, 5)), (0.5, ro.WorstCase())]),
]


def random_problem(seed: int, *, loss: ro.Loss | None = None, most_cases: int = 8) -> ro.Problem:
    """A problem of at most six scenarios: ties and duplicates among results, any measure, any Ψ, any settled cases."""
    rng = np.random.default_rng(seed)
    n_cases, n_policies = int(rng.integers(2, most_cases + 1)), int(rng.integers(1, 4))
    n_targets = int(rng.integers(1, 3))
    kind = RESULT_KINDS[seed % len(RESULT_KINDS)]
    if kind == "binary":
        results = rng.integers(0, 2, (n_cases, n_policies)).astype(float)
    elif kind == "coarse":
        results = rng.integers(0, 4, (n_cases, n_policies)) / 3
    elif kind == "duplicates":
        results = rng.random((1 + n_cases // 2, n_policies))[rng.integers(0, 1 + n_cases // 2, n_cases)]
    elif kind == "constant":
        results = np.full((n_cases, n_policies), 0.3)
    else:
        results = 10.0 ** rng.integers(-3, 4) * rng.random((n_cases, n_policies)) + rng.integers(-5, 6)
    probabilities = rng.dirichlet(np.ones(n_policies * n_targets)).reshape(n_policies, n_targets)
    settled = rng.permutation(n_cases)[: rng.integers(0, (n_cases + 1) // 2)].tolist()
    split = int(rng.integers(0, len(settled) + 1))
    return ro.Problem(
        results=results,
        size=int(rng.integers(1, min(4, n_cases - len(settled)) + 1)),
        measure=MEASURES[int(rng.integers(len(MEASURES)))],
        loss=LOSSES[int(rng.integers(len(LOSSES)))] if loss is None else loss,
        targets=rng.dirichlet(np.ones(n_cases), n_targets),
        probabilities=None if rng.random() < 0.4 else probabilities,
        required_cases=settled[:split],
        forbidden_cases=settled[split:],
    )


def check_against_brute_force(problem: ro.Problem, solution: ro.Solution) -> dict[tuple[int, ...], float]:
    by_tuple = optima(problem)
    best = min(by_tuple.values())
    assert solution.test is not None
    assert abs(solution.objective - best) <= near(problem)
    assert solution.objective - solution.lower_bound <= near(problem)
    assert solution.lower_bound <= best + near(problem, 1e-10)
    assert by_tuple[solution.test.cases] <= best + near(problem)
    assert solution.status is ro.Status.OPTIMAL
    assert solution.limit is None
    return by_tuple


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_it_equals_a_linear_program_per_tuple(block: int) -> None:
    """Fifty random problems in each block, with losses that linear programs state."""
    polyhedral = [loss for loss in LOSSES if loss.pieces.is_polyhedral]
    for seed in range(50 * block, 50 * block + 50):
        problem = random_problem(seed, loss=polyhedral[seed % len(polyhedral)])
        check_against_brute_force(problem, ro.solve(problem, "exact"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_it_equals_cutting_planes_per_tuple_where_the_loss_is_curved(seed: int) -> None:
    problem = random_problem(1000 + seed, loss=(ro.SquaredError(), ro.HuberError(0.1))[seed % 2], most_cases=6)
    check_against_brute_force(problem, ro.solve(problem, "exact"))


# One tuple.


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_of_one_tuple_equals_a_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(2000 + seed, loss=(ro.AbsoluteError(), ro.PinballError(0.7))[seed % 2])
    corners = allowed_weights(problem)
    cases = tuple(
        sorted(rng.choice(problem.n_cases, int(rng.integers(1, problem.n_cases + 1)), replace=False).tolist())
    )
    arrays = scaled_problem_arrays(problem, np.arange(problem.n_cases))
    workspace = make_tuple_game(arrays, len(cases))
    for row, case in enumerate(cases):
        place_row(row, case, arrays.results, workspace)
    lower, upper = settle(len(cases), np.inf, -np.inf, 1e-12, arrays, workspace, 0.0)
    wanted = optima_by_linear_programs(problem, [cases], corners)[cases] / problem.unit
    assert abs(lower - wanted) <= 1e-9 + problem.rounding / problem.unit
    assert abs(upper - wanted) <= 1e-9 + problem.rounding / problem.unit
    weights = workspace.vectors[1, : len(cases)]
    objective = problem.objective(problem.test(cases=cases, weights=weights / weights.sum())) / problem.unit
    assert abs(objective - upper) <= 1e-12 + 2 * problem.rounding / problem.unit


def test_settling_stops_at_the_threshold_with_a_mixture_that_proves_it() -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((10, 30)), size=4, measure=ro.CVaR(0.1))
    arrays = scaled_problem_arrays(problem, np.arange(10))
    workspace = make_tuple_game(arrays, 4)
    for row in range(4):
        place_row(row, row, arrays.results, workspace)
    full, _ = settle(4, np.inf, -np.inf, 1e-12, arrays, workspace, 0.0)
    workspace = make_tuple_game(arrays, 4)
    for row in range(4):
        place_row(row, row, arrays.results, workspace)
    lower, _ = settle(4, 0.9 * full, -np.inf, 1e-12, arrays, workspace, 0.0)
    assert 0.9 * full <= lower <= full + 1e-12
    _, upper = settle(4, np.inf, 1.2 * full, 1e-12, arrays, workspace, 0.0)
    assert upper < 1.2 * full


def test_below_the_threshold_a_share_of_the_gain_may_be_left() -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((10, 30)), size=5, measure=ro.CVaR(0.1))
    arrays = scaled_problem_arrays(problem, np.arange(10))

    def settled(threshold: float, leftover: float) -> tuple[float, float, int]:
        workspace = make_tuple_game(arrays, 5)
        for row in range(5):
            place_row(row, row, arrays.results, workspace)
        lower, upper = settle(5, threshold, -np.inf, 1e-12, arrays, workspace, leftover)
        return lower, upper, int(workspace.state[CALLS])

    _, optimum, questions = settled(np.inf, 0.0)
    for leftover in (0.01, 0.1, 1.0):
        lower, upper, fewer = settled(1.5 * optimum, leftover)
        assert lower <= optimum + 1e-12 and optimum - 1e-12 <= upper
        assert upper - optimum <= leftover * (1.5 * optimum - upper) and fewer < questions
        assert settled(0.9 * optimum, leftover)[0] >= 0.9 * optimum  # above the threshold all is as ever


@pytest.mark.parametrize("spoiled", [0.0, np.nan, 1e24])
def test_a_basis_that_rounding_has_spoiled_is_not_believed(spoiled: float) -> None:
    """Its weights are no distribution: clipped and scaled, they had an objective of minus infinity."""
    problem = ro.Problem(results=np.random.default_rng(0).random((10, 30)), size=4, measure=ro.CVaR(0.1))
    arrays = scaled_problem_arrays(problem, np.arange(10))
    workspace = make_tuple_game(arrays, 4)
    for row in range(4):
        place_row(row, row, arrays.results, workspace)
    lower, upper = settle(4, np.inf, -np.inf, 1e-12, arrays, workspace, 0.0)
    workspace.inverse[:], workspace.state[EXTENDED] = spoiled, 1  # it is taken for one to go on from
    assert settle(4, np.inf, -np.inf, 1e-12, arrays, workspace, 0.0) == pytest.approx((lower, upper), abs=1e-11)
    assert np.isfinite(workspace.vectors[1, :4]).all()


def test_nothing_is_proved_by_weights_that_are_good_enough_at_once() -> None:
    """The first question already ends it, and there is no basis yet whose value could be mistaken for a bound."""
    problem = ro.Problem(results=np.full((4, 3), 0.5), size=2)
    arrays = scaled_problem_arrays(problem, np.arange(4))
    workspace = make_tuple_game(arrays, 2)
    workspace.inverse[:], workspace.values[:], workspace.basic[:] = 1e9, 1e9, 0
    place_row(0, 0, arrays.results, workspace)
    place_row(1, 1, arrays.results, workspace)
    assert settle(2, 1e-3, 1e-3, 1e-12, arrays, workspace, 0.0) == (-np.inf, 0.0)


# Larger problems.


def arrows(n: int, size: int, seed: int = 0, **changes: Any) -> ro.Problem:
    table = racing_arrows(n, np.random.default_rng(seed)).to_numpy()[:, : n - n // 5]
    return ro.Problem(results=table, size=size, targets=ro.softmax_targets(table), **changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "problem",
    [
        arrows(30, 3),
        arrows(24, 4, measure=ro.Mixture([(0.95, ro.CVaR(0.05)), (0.05, ro.Mean())])),
        arrows(16, 3, measure=ro.KOfN(3, 20), loss=ro.PinballError(0.8)),
        ro.Problem(results=np.random.default_rng(5).random((25, 15)), size=3, required_cases=[3], forbidden_cases=[1]),
        ro.Problem(results=np.random.default_rng(6).random((70, 12)), size=2, measure=ro.CVaR(0.2)),
    ],
    ids=["arrows", "mixture", "k of n", "settled", "two words"],
)
def test_it_agrees_with_a_mixed_integer_program(problem: ro.Problem) -> None:
    by_search, by_milp = ro.solve(problem, "exact"), ro.solve(problem, "pulp-scip")
    assert by_search.status is by_milp.status is ro.Status.OPTIMAL
    assert abs(by_search.objective - by_milp.objective) <= 1e-6 * problem.unit
    assert by_search.lower_bound <= by_milp.objective + near(problem)
    assert by_milp.lower_bound <= by_search.objective + 1e-6 * problem.unit


@given(problems())
def test_it_is_never_worse_than_regret_matching_and_proves_more(problem: ro.Problem) -> None:
    solution, played = ro.solve(problem, "exact"), ro.solve(problem, "regret-matching", rounds=50)
    assert solution.status is ro.Status.OPTIMAL
    assert solution.objective <= played.objective + near(problem)
    assert solution.lower_bound >= played.lower_bound - near(problem)
    assert solution.gap <= near(problem)


@given(problems(kinds=("duplicates", "constant", "binary")))
def test_twins_and_the_cases_that_are_left_out_for_them_make_no_difference(problem: ro.Problem) -> None:
    """With a ranking no case is left out, so both ways of searching meet."""
    assert abs(ro.solve(problem, "exact").objective - ro.solve(problem, "exact", top=1).objective) <= near(problem)


@pytest.mark.parametrize("seed", range(12))
def test_nearly_equal_cases_and_far_offsets_do_not_spoil_the_proof(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = rng.random((4, 8))[rng.integers(0, 4, 14)]
    results = 10.0 ** rng.integers(-6, 6) * (base + 10.0 ** -rng.integers(3, 13) * rng.standard_normal((14, 8)))
    results += np.abs(results).max() * rng.integers(0, 1000)
    measure = (ro.KOfN(1, 30), ro.CVaR(0.1), ro.Mixture([(1 - 1e-5, ro.WorstCase()), (1e-5, ro.Mean())]))[seed % 3]
    problem = ro.Problem(results=results, size=3, measure=measure, loss=LOSSES[seed % 5])
    solution = ro.solve(problem, "exact")
    assert solution.status is ro.Status.OPTIMAL
    assert solution.gap <= near(problem)


def test_cases_equal_to_a_required_one_are_passed_over_only_while_others_are_left() -> None:
    row, other = [0.0, 1.0], [1.0, 0.2]
    problem = ro.Problem(results=[row, row, row, other], size=1, required_cases=[0])
    assert ro.solve(problem, "exact").test.cases == (0, 3)  # type: ignore[union-attr]
    crowded = ro.Problem(results=[row, row, row, other], size=3, required_cases=[0])
    assert ro.solve(crowded, "exact").test.cases == (0, 1, 2, 3)  # type: ignore[union-attr]


# Threads, limits and bounds on the way.


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns so short that several searchers, and the climb for a bound, have their part in small problems."""
    monkeypatch.setattr(exact, "ALONE", 1e4)
    monkeypatch.setattr(exact, "PAIRS_TURN", 1e4)
    monkeypatch.setattr(exact, "PAIRED", 5e4)
    monkeypatch.setattr(exact, "SHORTEST_TURN", 2e4)
    monkeypatch.setattr(exact, "LONGEST_TURN", 2e5)
    monkeypatch.setattr(exact, "FIRST_ROUND", 2e5)
    monkeypatch.setattr(exact, "TELL_SECONDS", 0.0)


def same(one: ro.EfficientTest | None, other: ro.EfficientTest | None) -> bool:
    assert one is not None and other is not None
    return one.cases == other.cases and np.array_equal(one.weights, other.weights)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("options", [{}, {"top": 7}, {"all_optimal": True}, {"certificate": True}], ids=str)
def test_the_whole_run_is_the_same_with_any_number_of_threads(options: dict[str, Any]) -> None:
    problem = arrows(40, 4)
    runs = [ro.solve(problem, "exact", threads=threads, **options) for threads in (1, 2, 3)]
    assert runs[0].stats.cuts > 50
    for run in runs[1:]:
        assert same(run.test, runs[0].test)
        assert (run.objective, run.lower_bound) == (runs[0].objective, runs[0].lower_bound)
        for count in ("nodes", "cuts", "solved", "rounds"):
            assert getattr(run.stats, count) == getattr(runs[0].stats, count)
        for mine, its in zip(run.ranking, runs[0].ranking, strict=True):
            assert same(mine.test, its.test)


@pytest.mark.usefixtures("impatient")
def test_bounds_on_the_way_are_true_and_improve() -> None:
    problem = arrows(80, 6)
    told: list[ro.Progress] = []
    solution = ro.solve(problem, "exact", progress=told.append)
    bounds = [progress.lower_bound for progress in told]
    assert solution.status is ro.Status.OPTIMAL
    assert len({bound for bound in bounds if bound > 0}) >= 2
    assert bounds == sorted(bounds)
    assert bounds[-1] <= solution.objective
    assert all(progress.objective >= solution.objective - near(problem) for progress in told)
    assert all(0 <= progress.done <= progress.total == problem.n_tuples for progress in told)
    assert told[-1].done > told[0].done


def test_a_bound_that_was_climbed_for_is_not_above_a_test_that_was_found_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A threshold between the best two values: the whole tree is searched below it, and the best is what is found."""
    monkeypatch.setattr(exact, "SHORTEST_TURN", math.inf)
    problem = ro.Problem(results=np.random.default_rng(1).random((12, 8)), size=3, measure=ro.CVaR(0.3))
    best, second = (ranked.objective / problem.unit for ranked in ro.solve(problem, "exact", top=2).ranking)
    proof = exact._Proof(problem, exact.Exact(top=9), ro.Budget())
    proof.settle_first_tuple()
    ladder = Ladder()
    ladder.front, ladder.threshold = proof.searchers.new_front(), (best + second) / 2
    assert proof.best.value > ladder.threshold
    with ThreadPoolExecutor(1) as pool:
        proof._climb_the_ladder(ladder, 1.0, pool)
    assert ladder.front.is_done
    assert best - 1e-9 <= proof.bound <= best


@pytest.mark.parametrize(("work_left", "most"), [(math.inf, True), (1e3, True), (1.0, False), (0.0, False)])
def test_a_bound_has_most_of_the_work_as_long_as_the_searchs_end_is_not_in_sight(
    work_left: float, most: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left is a multiple of what was done."""
    monkeypatch.setattr(exact, "FIRST_ROUND", 1e5)
    proof = exact._Proof(arrows(40, 5), exact.Exact(), ro.Budget())
    proof.settle_first_tuple()
    given = []

    def seen() -> None:
        proof.prospect.left = work_left * proof.searchers.work

    def climb(ladder: Ladder, work: float, pool: ThreadPoolExecutor) -> ro.Limit:
        given.append(work / (work + exact.FIRST_ROUND))
        return ro.Limit.TIME

    monkeypatch.setattr(proof, "_look_ahead", seen)
    monkeypatch.setattr(proof, "_climb_the_ladder", climb)
    with ThreadPoolExecutor(1) as pool:
        proof._search_and_climb(proof.front, pool)
    assert len(given) == 1 and (given[0] > 0.5) is most


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("seed", range(8))
def test_a_time_limit_ends_with_a_true_bound(seed: int) -> None:
    problem = arrows(60, 5, seed)
    optimum = ro.solve(problem, "exact").objective
    stopped = ro.solve(problem, "exact", time_limit_seconds=0.004 * seed)
    assert stopped.test is not None
    assert stopped.lower_bound <= optimum <= stopped.objective + near(problem)
    assert (stopped.limit is None) == (stopped.status is ro.Status.OPTIMAL)
    assert stopped.stats.tuples <= problem.n_tuples


def test_with_no_time_at_all_there_is_still_a_test() -> None:
    stopped = ro.solve(arrows(60, 5), "exact", time_limit_seconds=0.0, certificate=True, top=3)
    assert stopped.limit is ro.Limit.TIME
    assert stopped.status is ro.Status.FEASIBLE
    assert stopped.lower_bound >= 0.0
    assert stopped.certificate is None


@pytest.mark.parametrize("gap", [0.1, 0.05])
def test_a_gap_that_is_enough_saves_work(gap: float) -> None:
    problem = arrows(80, 6)
    full, enough = ro.solve(problem, "exact"), ro.solve(problem, "exact", gap=gap)
    assert enough.limit is None
    assert enough.gap <= gap + near(problem)
    assert enough.lower_bound <= full.objective <= enough.objective + near(problem)
    assert enough.stats.nodes < full.stats.nodes


def test_an_interrupt_ends_with_the_best_test_and_a_bound() -> None:
    bounds = [0.0]

    def interrupt_once_there_is_a_bound(progress: ro.Progress) -> None:
        if bounds[-1] <= 0 < progress.lower_bound:
            threading.Thread(target=signal.raise_signal, args=[signal.SIGINT]).start()
        bounds.append(progress.lower_bound)

    solution = ro.solve(arrows(300, 9), "exact", progress=interrupt_once_there_is_a_bound)
    assert solution.limit is ro.Limit.INTERRUPT
    assert solution.status is ro.Status.FEASIBLE
    assert solution.test is not None
    assert solution.lower_bound > 0


# Rankings.


def ranked_by_hand(problem: ro.Problem) -> list[tuple[float, tuple[int, ...]]]:
    return sorted((value, cases) for cases, value in optima(problem).items())


@pytest.mark.parametrize("seed", range(30))
def test_the_best_few_tuples_are_those_of_brute_force(seed: int) -> None:
    problem = random_problem(3000 + seed, loss=ro.AbsoluteError(), most_cases=7)
    values = [value for value, _ in ranked_by_hand(problem)]
    top = 1 + seed % 6
    solution = ro.solve(problem, "exact", top=top)
    assert len(solution.ranking) == min(top, problem.n_tuples)
    np.testing.assert_allclose([ranked.objective for ranked in solution.ranking], values[:top], atol=near(problem))
    assert len({ranked.test.cases for ranked in solution.ranking}) == len(solution.ranking)
    assert same(solution.test, solution.ranking[0].test)
    by_tuple = {cases: value for value, cases in ranked_by_hand(problem)}
    for ranked in solution.ranking:
        assert abs(by_tuple[ranked.test.cases] - ranked.objective) <= near(problem)
        assert ranked.objective == problem.objective(ranked.test)


@pytest.mark.parametrize("seed", range(20))
def test_all_optimal_tuples_are_those_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = ro.Problem(results=rng.integers(0, 2, (7, 3)).astype(float), size=2, measure=ro.CVaR(0.4))
    values = ranked_by_hand(problem)
    tied = {cases for value, cases in values if value <= values[0][0] + 1e-10}
    solution = ro.solve(problem, "exact", all_optimal=True)
    assert {ranked.test.cases for ranked in solution.ranking} == tied


def least_mean_among_optimal_weights(problem: ro.Problem, cases: tuple[int, ...], optimum: float) -> float:
    """Minimise the mean loss over weights whose objective is the optimum, by a linear program."""
    corners, scenarios, width, d = allowed_weights(problem), problem.scenarios, len(cases), problem.n_scenarios
    errors = problem.results[list(cases)][:, scenarios.policies] - scenarios.full_scores
    rows = [np.hstack([np.zeros((len(corners), width)), corners])]
    bounds = [np.full(len(corners), optimum + 1e-10)]
    for constant, linear, _ in problem.loss.pieces.coefficients:
        rows.append(np.hstack([constant + linear * errors.T, -np.eye(d)]))
        bounds.append(np.zeros(d))
    outcome = linprog(
        np.concatenate([np.zeros(width), scenarios.probabilities]),
        A_ub=np.vstack(rows),
        b_ub=np.concatenate(bounds),
        A_eq=[[1.0] * width + [0.0] * d],
        b_eq=[1.0],
        bounds=[(0, 1)] * width + [(None, None)] * d,
        options=TIGHT,
    )
    return float(outcome.fun)


@pytest.mark.parametrize("seed", range(25))
def test_ties_go_to_the_lower_mean_loss_that_optimal_weights_allow_and_then_to_the_index(seed: int) -> None:
    rng = np.random.default_rng(seed)
    results = rng.integers(0, 3, (7, 5)) / 2
    problem = ro.Problem(results=results, size=3, measure=ro.WorstCase())
    solution = ro.solve(problem, "exact", all_optimal=True)
    for ranked in solution.ranking:
        wanted = least_mean_among_optimal_weights(problem, ranked.test.cases, solution.objective)
        assert abs(ranked.mean_loss - wanted) <= 1e-7
    keys = [(round(ranked.mean_loss, 8), ranked.test.cases) for ranked in solution.ranking]
    assert keys == sorted(keys)
    assert ro.solve(problem, "exact", top=1).test.cases == keys[0][1]  # type: ignore[union-attr]


def test_a_ranking_can_be_longer_than_there_are_tuples_and_names_twins() -> None:
    row, other = [0.0, 1.0], [1.0, 0.0]
    problem = ro.Problem(results=[row, row, other, other], size=2)
    solution = ro.solve(problem, "exact", top=100)
    assert [ranked.test.cases for ranked in solution.ranking] == [(0, 2), (0, 3), (1, 2), (1, 3), (0, 1), (2, 3)]
    best = ro.solve(problem, "exact", all_optimal=True)
    assert [ranked.test.cases for ranked in best.ranking] == [(0, 2), (0, 3), (1, 2), (1, 3)]


def test_with_a_ranking_a_gap_does_not_end_the_search_early() -> None:
    problem = arrows(30, 3)
    exactly, roughly = ro.solve(problem, "exact", top=5), ro.solve(problem, "exact", top=5, gap=0.2)
    assert [one.objective for one in exactly.ranking] == [one.objective for one in roughly.ranking]


def test_too_many_ties_are_refused_or_settled_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_TESTS", 50)
    monkeypatch.setattr(exact, "OWN_CUTS", 20)
    alike = ro.Problem(results=np.full((12, 3), 0.5), size=3)
    with pytest.raises(ro.Unsupported, match="optimal"):
        ro.solve(alike, "exact", all_optimal=True)
    few = ro.solve(alike, "exact", top=4)
    assert [ranked.test.cases for ranked in few.ranking] == [(0, 1, 2), (0, 1, 3), (0, 1, 4), (0, 1, 5)]


@pytest.mark.parametrize(
    "options", [{"top": 0}, {"top": 2.0}, {"threads": 0}, {"top": 2, "all_optimal": True}], ids=str
)
def test_options_without_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ro.ProblemError):
        ro.solve(arrows(10, 2), "exact", **options)


# Sets as bits.


@njit  # type: ignore[untyped-decorator]
def count_and_find(words: np.ndarray) -> tuple[int, int]:
    """What only compiled code may call."""
    return count_bits(words[0]), first_member(words)


@given(st.integers(0, 2**64 - 1))
def test_bits_are_counted(word: int) -> None:
    assert count_and_find(np.array([word], dtype=np.uint64))[0] == word.bit_count()


@given(st.sets(st.integers(0, 199)))
def test_the_first_member_of_a_set(members: set[int]) -> None:
    words = set_of(members, 4)
    assert sum(int(word).bit_count() for word in words) == len(members)
    assert count_and_find(words)[1] == min(members, default=-1)


def test_the_share_that_is_done_counts_tuples() -> None:
    """The tree over 10 cases of tuples of 3: branching on {0, 1, 2} rules out C(7, 3) = 35 of 120."""
    front = exact._Proof(ro.Problem(results=np.eye(10), size=3), exact.Exact(), ro.Budget()).searchers.new_front()
    assert front.share_done() == 0.0
    excluded = np.array([~set_of(range(case + 1, 10), 1)[0] for case in range(3)])
    front.nodes = Nodes(np.array([[0, 0, 0, 1], [1, 0, 0, 1], [2, 0, 0, 1]]), excluded[:, None])
    assert front.share_done() == pytest.approx(35 / 120)
    assert math.comb(9, 2) + math.comb(8, 2) + math.comb(7, 2) == 120 - 35
