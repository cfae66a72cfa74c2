"""The tables of analysis mean what they say: against linear programs, enumeration, sampling and work by hand."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_programs import linear_program
from oracles import cutting_plane_optimum, every_tuple
from strategies import measures, problems

import rposst_opt as ro
from rposst_opt import analysis
from rposst_opt.reports.sizes import with_cases_dropped
from rposst_opt.solvers import bounds

EXACT = 1e-12  # sums of a few numbers around one
SOLVED = 1e-7  # what a linear program and a backend may differ by
FRACTIONS = (0.0, 0.07, 0.3, 0.5, 1.0)

Row = dict[str, Any]


def rows_of(table: pd.DataFrame) -> list[Row]:
    return [dict(zip(table.columns, values, strict=True)) for values in table.itertuples(index=False)]


def worst_share(losses: np.ndarray, probabilities: np.ndarray, fraction: float) -> float:
    """CVaR as it is told to a child: go down from the worst loss until the fraction is used up."""
    order = np.argsort(-losses)
    if fraction == 0:
        return float(losses[probabilities > 0].max())
    left, total = fraction, 0.0
    for scenario in order:
        taken = min(left, probabilities[scenario])
        total, left = total + taken * losses[scenario], left - taken
    return total / fraction


def absolute_errors(problem: ro.Problem, cases: tuple[str, ...], weights: tuple[float, ...]) -> np.ndarray:
    """Of every policy and target, in the order of the flattened probabilities."""
    errors = np.zeros((problem.n_policies, len(problem.targets)))
    for policy, target in np.ndindex(errors.shape):
        score = sum(
            weight * problem.results[problem.case_names.index(name), policy]
            for name, weight in zip(cases, weights, strict=True)
        )
        full = sum(problem.targets[target, case] * problem.results[case, policy] for case in range(problem.n_cases))
        errors[policy, target] = abs(score - full)
    return errors.ravel()


def judged(problem: ro.Problem, fraction: float, row: Row) -> float:
    """What a row's test is worth to a problem with absolute errors and CVaR."""
    losses = absolute_errors(problem, row["cases"], row["weights"])
    return worst_share(losses, problem.probabilities.ravel(), fraction)


def linear_optimum(problem: ro.Problem, cases: tuple[int, ...], fraction: float) -> float:
    """min t + Σ p u / fraction over weights, t and u ≥ 0, with |score - full| ≤ t + u; without u for the worst."""
    policies, targets = np.nonzero(problem.probabilities)
    scores = problem.results[list(cases)][:, policies].T
    wanted = np.einsum("sx,xs->s", problem.targets[targets], problem.results[:, policies])
    count, width = scores.shape
    slack = -np.eye(count) if fraction > 0 else np.zeros((count, count))
    one_sided = np.column_stack([scores, -np.ones(count), slack])
    other_side = np.column_stack([-scores, -np.ones(count), slack])
    shares = problem.probabilities[policies, targets] / fraction if fraction > 0 else np.zeros(count)
    outcome = linear_program(
        np.concatenate([np.zeros(width), [1.0], shares]),
        A_ub=np.vstack([one_sided, other_side]),
        b_ub=np.concatenate([wanted, -wanted]),
        A_eq=[[1.0] * width + [0.0] * (count + 1)],
        b_eq=[1.0],
        bounds=[(0, None)] * width + [(None, None)] + [(0, None)] * count,
    )
    return float(outcome.fun)


def brute_force(problem: ro.Problem, fraction: float) -> float:
    """The least of all sets' linear programs."""
    return min(linear_optimum(problem, cases, fraction) for cases in every_tuple(problem))


def with_absolute_cvar(problem: ro.Problem, fraction: float) -> ro.Problem:
    return replace(problem, measure=ro.CVaR(fraction), loss=ro.AbsoluteError())


def expected_worst(losses: np.ndarray, probabilities: np.ndarray, k: int, n: int) -> float:
    """The mean of the k worst of n, over every way to draw n scenarios."""
    total = 0.0
    for drawn in itertools.product(range(len(losses)), repeat=n):
        total += float(np.prod(probabilities[list(drawn)]) * np.sort(losses[list(drawn)])[::-1][:k].mean())
    return total


def uneven_problem() -> ro.Problem:
    """Four scenarios, of which one is impossible and the others are not alike."""
    return ro.Problem(
        results=[[0.0, 0.3], [1.0, 0.9], [0.4, 0.1]],
        size=1,
        targets=[[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]],
        probabilities=[[0.5, 0.0], [0.2, 0.3]],
    )


# Tail profiles.


@pytest.mark.parametrize(
    ("measure", "d", "weights"),
    [
        (ro.Mean(), 4, [0.25, 0.25, 0.25, 0.25]),
        (ro.WorstCase(), 3, [1.0, 0.0, 0.0]),
        (ro.CVaR(0.25), 5, [0.8, 0.2, 0.0, 0.0, 0.0]),  # a quarter is one and a quarter of five
        (ro.CVaR(0.01), 5, [1.0, 0.0, 0.0, 0.0, 0.0]),
        (ro.KOfN(1, 2), 2, [0.75, 0.25]),  # the better one is the worst of two draws a quarter of the time
        (ro.KOfN(2, 2), 3, [1 / 3, 1 / 3, 1 / 3]),
        (ro.Mixture([(0.5, ro.Mean()), (0.5, ro.WorstCase())]), 2, [0.75, 0.25]),
    ],
)
def test_profiles_by_hand(measure: ro.Measure, d: int, weights: list[float]) -> None:
    table = analysis.tail_profile(measure, d)
    assert table["rank"].tolist() == list(range(1, d + 1))
    np.testing.assert_allclose(table["tail"], [rank / d for rank in range(1, d + 1)])
    np.testing.assert_allclose(table["weight"], weights, atol=EXACT)
    np.testing.assert_allclose(table["tail_weight"], np.cumsum(weights), atol=EXACT)


@pytest.mark.parametrize(("k", "n", "d"), [(1, 3, 4), (2, 3, 3), (3, 4, 2), (2, 5, 3)])
def test_k_of_n_profiles_by_counting_draws(k: int, n: int, d: int) -> None:
    counted = np.zeros(d)
    for drawn in itertools.product(range(d), repeat=n):
        for rank in sorted(drawn)[:k]:
            counted[rank] += 1 / (k * d**n)
    np.testing.assert_allclose(analysis.tail_profile(ro.KOfN(k, n), d)["weight"], counted, atol=EXACT)


@given(measures(), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_profile_weights_are_a_falling_distribution_and_give_the_measure(
    measure: ro.Measure, d: int, seed: int
) -> None:
    table = analysis.tail_profile(measure, d)
    weights = table["weight"].to_numpy()
    assert weights.sum() == pytest.approx(1.0, abs=EXACT)
    assert (np.diff(weights) <= 1e-9).all()
    assert (weights >= 0).all()
    np.testing.assert_allclose(np.cumsum(weights), table["tail_weight"], atol=1e-9)
    losses = np.random.default_rng(seed).random(d)
    assert np.sort(losses)[::-1] @ weights == pytest.approx(measure.value(losses, np.full(d, 1 / d)), abs=1e-9)


# The table of k-of-N.


def test_k_of_n_is_the_mean_over_all_draws() -> None:
    problem = uneven_problem()
    test = problem.test(cases=[0, 2], weights=[0.3, 0.7])
    losses = absolute_errors(problem, test.case_names, tuple(test.weights))
    table = analysis.k_of_n_table(problem, test, ks=[2, 1, 3], ns=(n for n in (1, 4, 2, 3)))
    assert list(zip(table["k"], table["n"], strict=True)) == [
        (2, 4), (2, 2), (2, 3), (1, 1), (1, 4), (1, 2), (1, 3), (3, 4), (3, 3),
    ]  # fmt: skip
    for row in rows_of(table):
        assert row["tail_fraction"] == row["k"] / row["n"]
        drawn = expected_worst(losses, problem.probabilities.ravel(), row["k"], row["n"])
        assert row["k_of_n"] == pytest.approx(drawn, abs=EXACT)
        limit = worst_share(losses, problem.probabilities.ravel(), row["k"] / row["n"])
        assert row["cvar"] == pytest.approx(limit, abs=EXACT)
        assert row["difference"] == pytest.approx(drawn - limit, abs=EXACT)


def test_k_of_n_is_what_sampling_tends_to() -> None:
    rng = np.random.default_rng(5)
    problem = ro.Problem(
        results=rng.random((6, 9)),
        size=2,
        targets=rng.dirichlet(np.ones(6), 3),
        probabilities=rng.dirichlet(np.ones(27) / 3).reshape(9, 3),
    )
    test = problem.test(cases=[1, 4], weights=[0.6, 0.4])
    losses = absolute_errors(problem, test.case_names, tuple(test.weights))
    for row in rows_of(analysis.k_of_n_table(problem, test, ks=[1, 5], ns=[5, 30])):
        drawn = losses[rng.choice(len(losses), (20_000, row["n"]), p=problem.probabilities.ravel())]
        means = np.sort(drawn, axis=1)[:, ::-1][:, : row["k"]].mean(axis=1)
        assert abs(row["k_of_n"] - means.mean()) < 5 * means.std() / np.sqrt(len(means))


@given(problems(), st.integers(1, 4), st.integers(1, 4), st.data())
def test_k_of_n_stays_below_cvar_and_closes_in_on_it(
    problem: ro.Problem, k: int, factor: int, data: st.DataObject
) -> None:
    """Two halves' worst are no worse than the worst of both, and min(B, k) misses by √(k (1 - k/n)) / 2 at most."""
    size = data.draw(st.integers(1, problem.n_cases))
    test = problem.test(cases=range(size), weights=np.full(size, 1 / size))
    scales = [2**step for step in range(6)]
    rows = [
        row
        for scale in scales
        for row in rows_of(analysis.k_of_n_table(problem, test, ks=[k * scale], ns=[k * factor * scale]))
    ]
    rounding = problem.allowance(1e-10)
    missing = np.array([-row["difference"] for row in rows])
    assert (missing >= -rounding).all()
    assert (np.diff(missing) <= rounding).all()
    worst = problem.losses(test).max()
    for row, miss in zip(rows, missing, strict=True):
        assert miss <= worst * np.sqrt((1 - 1 / factor) / row["k"]) / 2 + rounding


# The surface.


def test_the_surface_has_every_point_of_the_grid_once_with_its_objective() -> None:
    problem = replace(uneven_problem(), measure=ro.CVaR(0.4), case_names=("a", "b", "c"))
    table = analysis.objective_surface(problem, ["c", "a", "b"], steps=5)
    assert len(table) == 21
    points = table[["weight_1", "weight_2", "weight_3"]].to_numpy()
    np.testing.assert_allclose(points.sum(axis=1), 1.0)
    assert {tuple(point) for point in np.rint(5 * points).astype(int).tolist()} == {
        point for point in itertools.product(range(6), repeat=3) if sum(point) == 5
    }
    np.testing.assert_allclose(5 * points, np.rint(5 * points), atol=EXACT)
    for row in rows_of(table):
        names = (row["case_1"], row["case_2"], row["case_3"])
        losses = absolute_errors(problem, names, (row["weight_1"], row["weight_2"], row["weight_3"]))
        assert row["objective"] == pytest.approx(worst_share(losses, problem.probabilities.ravel(), 0.4), abs=EXACT)
    assert {*table["case_1"], *table["case_2"], *table["case_3"]} == {"a", "b", "c"}


def test_the_surface_is_least_where_the_weights_are_the_target() -> None:
    problem = ro.Problem(results=np.eye(3), size=3, targets=[[0.5, 0.25, 0.25]])
    table = analysis.objective_surface(problem, [0, 1, 2], steps=8)
    least = rows_of(table)[int(table["objective"].argmin())]
    assert [least["weight_1"], least["weight_2"], least["weight_3"]] == [0.5, 0.25, 0.25]
    assert least["objective"] == 0.0
    assert (table["objective"] == 0).sum() == 1


@settings(max_examples=20)
@given(problems(most_cases=5).filter(lambda problem: problem.n_cases >= 3), st.sampled_from(FRACTIONS))
def test_no_point_of_the_surface_is_below_the_linear_program(problem: ro.Problem, fraction: float) -> None:
    problem = with_absolute_cvar(problem, fraction)
    table = analysis.objective_surface(problem, [0, 2, 1], steps=6)
    optimum = linear_optimum(problem, (0, 1, 2), fraction)
    assert table["objective"].min() >= optimum - SOLVED
    # The nearest point of the grid moves at most 2/3 of a step of weight, and so a score by 1/9 of the results' range.
    assert table["objective"].min() <= optimum + problem.unit / 9 + SOLVED


# Regret matching, round by round.


def test_closing_in_by_hand() -> None:
    """The loss is |w₂ - 3/4|, with a slope of -1 below and 1 above.

    Round 1, (1/2, 1/2): cut (3/4, -1/4), regrets (-1/2, 1/2)⁺. Round 2, (0, 1): cut (-3/4, 1/4), regrets (1, 1/2); the
    plain average of cuts is (0, 0). Round 3, (2/3, 1/3): cut (3/4, -1/4), regrets (2/3, 7/6). Round 4, (4/11, 7/11):
    cut (3/4, -1/4) again; the linear average is (3/4 - 2·3/4 + 3·3/4 + 4·3/4, -(1 - 2 + 3 + 4)/4) / 10 and no better
    than the plain one of round 2.
    """
    problem = ro.Problem(results=[[0.0], [1.0]], size=2, targets=[[0.25, 0.75]])
    table = analysis.closing_in(problem, [0, 1], rounds=4)
    assert table["round"].tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(table["objective"], [1 / 4, 1 / 4, 5 / 12, 5 / 44])
    np.testing.assert_allclose(table["best"], [1 / 4, 1 / 4, 1 / 4, 5 / 44])
    np.testing.assert_allclose(table["lower_bound"], [-1 / 4, 0, 0, 0], atol=EXACT)
    np.testing.assert_allclose(
        table["weights"].tolist(), [[1 / 2, 1 / 2], [0.0, 1.0], [2 / 3, 1 / 3], [4 / 11, 7 / 11]]
    )


def test_without_any_regret_the_weights_stay_equal() -> None:
    problem = ro.Problem(results=np.full((3, 2), 0.5), size=3)
    table = analysis.closing_in(problem, [0, 1, 2], rounds=4)
    np.testing.assert_allclose(table["weights"].tolist(), np.full((4, 3), 1 / 3))
    assert table["lower_bound"].tolist() == table["best"].tolist() == [0.0] * 4


def test_one_case_is_settled_at_once() -> None:
    problem = uneven_problem()
    (row,) = rows_of(analysis.closing_in(problem, [1], rounds=1))
    worth = judged(problem, 0.01, {"cases": ("1",), "weights": (1.0,)})
    assert row["weights"] == (1.0,)
    assert row["objective"] == row["best"] == pytest.approx(worth)
    assert row["lower_bound"] == pytest.approx(worth)


def test_weights_are_in_the_order_of_the_cases_positions() -> None:
    problem = replace(uneven_problem(), case_names=("a", "b", "c"))
    by_name = analysis.closing_in(problem, ["c", "a"], rounds=30)
    pd.testing.assert_frame_equal(by_name, analysis.closing_in(problem, [0, 2], rounds=30))
    last = rows_of(by_name)[-1]
    worth = judged(problem, 0.01, {"cases": ("a", "c"), "weights": last["weights"]})
    assert last["objective"] == pytest.approx(worth)


@settings(max_examples=40)
@given(problems(most_cases=4), st.sampled_from(FRACTIONS), st.data())
def test_best_and_bound_hold_the_linear_optimum_between_them(
    problem: ro.Problem, fraction: float, data: st.DataObject
) -> None:
    cases = tuple(range(data.draw(st.integers(1, problem.n_cases))))
    problem = with_absolute_cvar(problem, fraction)
    optimum = linear_optimum(problem, cases, fraction)
    table = analysis.closing_in(problem, cases, rounds=60)
    assert (table["best"] >= optimum - SOLVED).all()
    assert (table["lower_bound"] <= optimum + SOLVED).all()


@pytest.mark.slow
@settings(max_examples=40)
@given(problems(most_cases=4), st.data())
def test_every_measure_and_loss_closes_in_as_fast_as_the_corollary_says(
    problem: ro.Problem, data: st.DataObject
) -> None:
    cases = tuple(range(data.draw(st.integers(1, problem.n_cases))))
    alone = replace(problem, size=len(cases), required_cases=(), forbidden_cases=())
    table = analysis.closing_in(problem, cases, rounds=60)
    rounding = problem.allowance(1e-9)
    for row in rows_of(table):
        assert row["best"] - row["lower_bound"] <= bounds.regret_matching_gap(alone, row["round"]) + rounding
    np.testing.assert_array_equal(table["best"], np.minimum.accumulate(table["objective"]))
    assert (np.diff(table["lower_bound"]) >= 0).all()
    weights = np.array(table["weights"].tolist())
    assert weights.shape == (60, len(cases))
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    optimum = cutting_plane_optimum(alone, cases, tolerance=1e-7)
    assert table["lower_bound"].max() <= optimum + 1e-6 * problem.unit + rounding
    assert table["best"].min() >= optimum - 1e-6 * problem.unit - rounding


# Sweeps and sizes.


def check_answer(problem: ro.Problem, fraction: float, row: Row) -> None:
    """A row tells the optimum by brute force, and its test is an answer that is worth what the row says."""
    assert row["status"] == "optimal"
    assert row["objective"] == pytest.approx(brute_force(problem, fraction), abs=SOLVED)
    assert row["lower_bound"] == pytest.approx(row["objective"], abs=SOLVED)
    assert row["objective"] == pytest.approx(judged(problem, fraction, row), abs=EXACT)
    assert row["mean_loss"] == pytest.approx(judged(problem, 1.0, row), abs=EXACT)
    assert row["worst_loss"] == pytest.approx(judged(problem, 0.0, row), abs=EXACT)
    cases = {problem.case_names.index(name) for name in row["cases"]}
    assert len(cases) == problem.size + len(problem.required_cases)
    assert cases.issuperset(problem.required_cases)
    assert cases.isdisjoint(problem.forbidden_cases)


@pytest.mark.slow
@settings(max_examples=25)
@given(problems(most_cases=5))
def test_a_sweep_is_brute_force_for_every_fraction_and_falls(problem: ro.Problem) -> None:
    problem = replace(problem, loss=ro.AbsoluteError())
    table = analysis.sweep(problem, tail_fractions=FRACTIONS)
    assert table["tail_fraction"].tolist() == list(FRACTIONS)
    for fraction, row in zip(FRACTIONS, rows_of(table), strict=True):
        check_answer(problem, fraction, row)
    assert (np.diff(table["objective"]) <= SOLVED).all()
    assert (table["mean_loss"] <= table["objective"] + EXACT).all()
    assert (table["objective"] <= table["worst_loss"] + EXACT).all()


def test_a_sweep_keeps_the_order_it_is_asked_for_and_ignores_the_measure() -> None:
    columns = ["tail_fraction", "objective", "cases"]
    first, second = (
        analysis.sweep(replace(uneven_problem(), measure=measure), tail_fractions=iter((1, 0, 0.3)))
        for measure in (ro.Mean(), ro.WorstCase())
    )
    assert first["tail_fraction"].tolist() == [1.0, 0.0, 0.3]
    pd.testing.assert_frame_equal(first[columns], second[columns])
    assert first["objective"][0] < first["objective"][2] < first["objective"][1]


@settings(max_examples=25)
@given(problems(most_cases=5), st.sampled_from(FRACTIONS))
def test_sizes_are_brute_force_and_more_is_never_worse(problem: ro.Problem, fraction: float) -> None:
    problem = with_absolute_cvar(problem, fraction)
    sizes = list(range(1, len(problem.selectable_cases) + 1))
    table = analysis.size_curve(problem, sizes)
    assert table["size"].tolist() == sizes
    for size, row in zip(sizes, rows_of(table), strict=True):
        check_answer(replace(problem, size=size), fraction, row)
    assert (np.diff(table["objective"]) <= SOLVED).all()


def test_sizes_by_hand() -> None:
    """Four cases, each of which only its own policy passes: a test of m cases misses the others by 1/4."""
    problem = ro.Problem(results=np.eye(4), size=1, measure=ro.WorstCase(), forbidden_cases=[3])
    table = analysis.size_curve(problem, [3, 1, 2])
    assert table["size"].tolist() == [3, 1, 2]
    # m equal weights miss their own policies by 1/m - 1/4, and the others by 1/4.
    np.testing.assert_allclose(table["objective"], [1 / 4, 3 / 4, 1 / 4], atol=1e-9)


def tired_at(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a run for so many cases finds nothing, and proves nothing."""
    solve = ro.solve

    def tired(asked: ro.Problem, *options: Any, **more: Any) -> ro.Solution:
        solution = solve(asked, *options, **more)
        if asked.size != size:
            return solution
        return replace(solution, test=None, objective=np.inf, lower_bound=-np.inf, status=ro.Status.NO_TEST)

    monkeypatch.setattr("rposst_opt.reports.questions.solve", tired)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"required_cases": [4]},
        {"offset": True},
        {"most_weight": 0.7, "required_cases": [4]},
        {"size_is": "at most", "least_weight": 0.2},
        {"size_is": "at most", "costs": np.arange(1, 7) / 4, "budget": 3.0, "conflicts": [(0, 1)]},
    ],
    ids=lambda given: " ".join(given) or "plain",
)
def test_where_a_run_ends_early_a_size_takes_what_its_neighbours_know(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = np.random.default_rng(5).random((6, 5))
    problem = ro.Problem(results=results, size=1, measure=ro.CVaR(0.4), **given)
    fresh = analysis.size_curve(problem, [2, 3, 4])
    tired_at(3, monkeypatch)
    table = analysis.size_curve(problem, [4, 3, 2]).iloc[::-1].reset_index(drop=True)
    assert table["status"].tolist() == ["optimal", "feasible", "optimal"]
    assert (np.diff(table["objective"]) <= EXACT).all() and table["objective"][1] >= fresh["objective"][1] - SOLVED
    assert table["lower_bound"].to_numpy() == pytest.approx(fresh["lower_bound"][[0, 2, 2]].to_numpy(), abs=SOLVED)
    row, larger = table.iloc[1], replace(problem, size=3)
    assert set(fresh["cases"][0]) <= set(row["cases"])
    if not problem.offset:
        test = larger.test(cases=row["cases"], weights=row["weights"])
        assert larger.why_not(test) is None and larger.objective(test) == row["objective"]


@pytest.mark.parametrize(
    "given",
    [{"least_weight": 0.3}, {"together": [(0, 1, 2)], "required_cases": [0], "forbidden_cases": [3, 4]}],
    ids=lambda given: " ".join(given),
)
def test_rules_that_keep_a_smaller_test_out_of_a_larger_one_leave_each_size_alone(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three weights of 0.3 are far from two of 0.5; and a rule about the choice may keep out all else."""
    results = np.random.default_rng(5).random((6, 5))
    problem = ro.Problem(results=results, size=2, measure=ro.CVaR(0.4), **given)
    sizes = [2, 3]
    alone = [ro.solve(replace(problem, size=size)) for size in sizes]
    table = analysis.size_curve(problem, sizes)
    assert table["objective"].tolist() == [each.objective for each in alone]
    assert table["lower_bound"].tolist() == [each.lower_bound for each in alone]
    tired_at(2, monkeypatch)
    assert analysis.size_curve(problem, sizes)["lower_bound"][0] == -np.inf


def test_a_smaller_test_grows_by_cases_that_the_rules_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what is left, one is in conflict and one is too dear."""
    results = np.random.default_rng(5).random((6, 5))
    problem = ro.Problem(results=results, size=2, measure=ro.CVaR(0.4))
    first, second = ro.solve(problem).test.cases  # type: ignore[union-attr]
    others = [case for case in range(6) if case not in (first, second)]
    costs = np.where(np.arange(6) == others[1], 9.0, 1.0)
    ruled = problem.with_rules(costs=costs, budget=4.0, conflicts=[(first, others[0])])
    tired_at(3, monkeypatch)
    row = analysis.size_curve(ruled, [2, 3]).iloc[1]
    cases = {ruled.case_names.index(name) for name in row["cases"]}
    assert {first, second} < cases and not cases & set(others[:2]) and row["status"] == "feasible"


# What a policy or a target is worth.


def two_by_two() -> ro.Problem:
    """Targets that want one case each; Ψ is (1/2, 1/10) for the first policy and (1/10, 3/10) for the second.

    The loss is zero under a case's own target, and under the other 1 for policy p and 1/2 for policy q. So case a costs
    1/10 + 3/20 = 1/4, and case b 1/2 + 1/20 = 11/20.
    """
    return ro.Problem(
        results=[[0.0, 0.5], [1.0, 0.0]],
        size=1,
        measure=ro.Mean(),
        targets=[[1.0, 0.0], [0.0, 1.0]],
        probabilities=[[0.5, 0.1], [0.1, 0.3]],
        case_names=("a", "b"),
        policy_names=("p", "q"),
    )


def test_sensitivity_by_hand() -> None:
    """Without p, Ψ is (1/4, 3/4) and b costs 1/8; without the first target only b's own is left; otherwise a stays."""
    table = analysis.sensitivity(two_by_two())
    assert table["left_out"].tolist() == ["nothing", "policy", "policy", "target", "target"]
    assert table["position"].tolist() == [-1, 0, 1, 0, 1]
    assert table["name"].tolist() == ["", "p", "q", "0", "1"]
    assert table["cases"].tolist() == [("a",), ("b",), ("a",), ("b",), ("a",)]
    np.testing.assert_allclose(table["objective"], [1 / 4, 1 / 8, 1 / 6, 0, 0], atol=1e-9)
    np.testing.assert_allclose(table["worst_loss"], [1, 1 / 2, 1, 0, 0], atol=1e-9)
    np.testing.assert_allclose(table["judged_by_all"], [1 / 4, 11 / 20, 1 / 4, 11 / 20, 1 / 4], atol=1e-9)
    np.testing.assert_allclose(table["cost"], [0, 3 / 10, 0, 3 / 10, 0], atol=1e-9)


def test_what_has_no_probability_costs_nothing_and_what_has_all_of_it_cannot_be_left_out() -> None:
    problem = replace(two_by_two(), probabilities=[[0.7, 0.3], [0.0, 0.0]])  # type: ignore[arg-type]
    table = analysis.sensitivity(problem)
    assert table[["left_out", "name"]].values.tolist() == [
        ["nothing", ""], ["policy", "q"], ["target", "0"], ["target", "1"],
    ]  # fmt: skip
    assert table["objective"][1] == pytest.approx(table["objective"][0])
    assert table["cost"][1] == pytest.approx(0.0, abs=EXACT)


def test_the_only_policy_and_the_only_target_stay() -> None:
    table = analysis.sensitivity(ro.Problem(results=[[0.0], [1.0]], size=1))
    assert table["left_out"].tolist() == ["nothing"]
    assert table["cost"].tolist() == [0.0]


# Sizes that learn from larger ones


def solved_badly(problem: ro.Problem, size: int) -> ro.Solution:
    """An answer for which there was no time: some test, and nothing proved."""
    return replace(ro.solve(replace(problem, size=size), "random", seed=3), limit=ro.Limit.TIME)


def test_a_size_that_had_no_time_is_at_least_the_larger_one_without_its_least_useful_cases() -> None:
    problem = ro.Problem(results=np.random.default_rng(6).random((12, 30)), size=5)
    best = ro.solve(problem)
    assert best.test is not None
    found = {5: best, 4: solved_badly(problem, 4), 2: solved_badly(problem, 2), 1: ro.solve(replace(problem, size=1))}
    told = with_cases_dropped(problem, found, 60.0)
    expected, cases = {}, best.test.cases
    for size in (4, 3, 2):
        ways = [
            ro.solve(replace(problem, size=size).restricted_to(kept)) for kept in itertools.combinations(cases, size)
        ]
        chosen = min(ways, key=lambda way: way.objective)
        assert chosen.test is not None
        expected[size], cases = chosen.objective, chosen.test.cases
    for size in (4, 2):
        assert expected[size] < found[size].objective
        assert told[size].objective == pytest.approx(expected[size], abs=1e-9)
        test = told[size].test
        assert test is not None and replace(problem, size=size).why_not(test) is None
        assert told[size].status is ro.Status.FEASIBLE and told[size].lower_bound == found[size].lower_bound
    assert told[5] is found[5] and told[1] is found[1]
    assert with_cases_dropped(problem, found, 0.0) == found


def test_cases_that_the_rules_ask_for_are_not_dropped() -> None:
    results = np.random.default_rng(6).random((6, 10))
    problem = ro.Problem(results=results, size=2, groups=["a", "a", "b", "b", "c", "c"], at_least={"a": 1})
    larger = problem.test(cases=[1, 2], weights=[0.5, 0.5])
    found = {2: replace(ro.solve(problem), test=larger), 1: solved_badly(problem, 1)}
    told = with_cases_dropped(problem, found, 60.0)
    assert told[1].test is not None and told[1].test.cases in ((0,), (1,))


def leave_out(problem: ro.Problem, kind: str, position: int) -> ro.Problem:
    """The smaller problem, written out."""
    policies = [j for j in range(problem.n_policies) if kind != "policy" or j != position]
    targets = [t for t in range(len(problem.targets)) if kind != "target" or t != position]
    kept = np.array([[problem.probabilities[j, t] for t in targets] for j in policies])
    return ro.Problem(
        results=problem.results[:, policies],
        size=problem.size,
        measure=problem.measure,
        targets=problem.targets[targets],
        probabilities=kept / kept.sum(),
        required_cases=problem.required_cases,
        forbidden_cases=problem.forbidden_cases,
    )


@pytest.mark.slow
@settings(max_examples=25)
@given(problems(most_cases=4, most_policies=4), st.sampled_from(FRACTIONS))
def test_sensitivity_is_brute_force_on_the_smaller_problems(problem: ro.Problem, fraction: float) -> None:
    problem = with_absolute_cvar(problem, fraction)
    table = analysis.sensitivity(problem)
    expected = [("nothing", -1)]
    expected += [("policy", j) for j in range(problem.n_policies) if problem.probabilities[j].sum() < 1 - 1e-9]
    expected += [("target", t) for t in range(len(problem.targets)) if problem.probabilities[:, t].sum() < 1 - 1e-9]
    assert list(zip(table["left_out"], table["position"], strict=True)) == expected
    whole = brute_force(problem, fraction)
    for (kind, position), row in zip(expected, rows_of(table), strict=True):
        check_answer(leave_out(problem, kind, position), fraction, row)
        assert row["judged_by_all"] == pytest.approx(judged(problem, fraction, row), abs=EXACT)
        assert row["cost"] == pytest.approx(row["judged_by_all"] - whole, abs=SOLVED)
        assert row["cost"] >= -SOLVED


# Several processes.

TABLES: dict[str, Callable[..., pd.DataFrame]] = {
    "sweep": lambda problem, **options: analysis.sweep(problem, tail_fractions=[0.5, 0.0, 1.0], **options),
    "size_curve": lambda problem, **options: analysis.size_curve(problem, [3, 1, 2], **options),
    "sensitivity": lambda problem, **options: analysis.sensitivity(problem, **options),
}


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster within this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("workers", [pytest.param("two processes", marks=pytest.mark.slow), "a cluster"])
def test_tables_are_the_same_whoever_makes_them_and_all_is_told(name: str, workers: str, scheduler: str) -> None:
    problem, told = uneven_problem(), list[tuple[str, int, int]]()
    options: dict[str, Any] = {"jobs": 2} if workers == "two processes" else {"scheduler": scheduler}
    table = TABLES[name](problem, **options, tell=lambda *news: told.append(news))
    assert table.drop(columns="seconds").equals(TABLES[name](problem).drop(columns="seconds"))
    assert told == [("choosing tests", done, len(table)) for done in range(len(table) + 1)]


def test_a_size_that_is_known_is_not_solved_again_and_counts_as_done() -> None:
    problem, told = uneven_problem(), list[int]()
    known = ro.solve(replace(problem, size=2))
    table = analysis.size_curve(
        problem, [1, 2], backend="nope", known={1: known, 2: known}, tell=lambda what, done, total: told.append(done)
    )
    assert told == [2] and table["objective"].tolist() == [known.objective] * 2


# Limits and errors.


@pytest.mark.parametrize("table_of", TABLES.values(), ids=TABLES)
def test_without_time_a_row_has_no_test_or_an_honest_one(table_of: Callable[..., pd.DataFrame]) -> None:
    rng = np.random.default_rng(2)
    problem = ro.Problem(results=rng.random((5, 3)), size=2, measure=ro.CVaR(0.4))
    empty = table_of(problem, backend="scipy-milp", time_limit_seconds=0.0)
    assert set(empty["status"]) == {"no_test"}
    assert (empty["objective"] == np.inf).all()
    assert (empty["lower_bound"] == -np.inf).all()
    assert empty[["mean_loss", "worst_loss"]].isna().all(axis=None)
    assert set(empty["cases"]) == set(empty["weights"]) == {()}
    hasty, patient = table_of(problem, time_limit_seconds=0.0), table_of(problem)
    assert set(hasty["status"]) <= {"feasible", "optimal"}
    assert (hasty["objective"] >= patient["objective"] - SOLVED).all()
    assert (hasty["lower_bound"] <= patient["objective"] + SOLVED).all()
    if "cost" in empty:
        assert empty["cost"].isna().all()
        assert (empty["judged_by_all"] == np.inf).all()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda problem, test: analysis.tail_profile(ro.Mean(), 0), "`d` must be a whole number from 1 on, got 0"),
        (lambda problem, test: analysis.tail_profile(ro.Mean(), 2.5), "`d` .* from 1 on, got 2.5"),  # type: ignore[arg-type]
        (lambda problem, test: analysis.tail_profile(ro.Mean(), True), "`d` must be a whole number .* got True"),
        (lambda problem, test: analysis.k_of_n_table(problem, test, ks=[3], ns=[1, 2]), "a pair with k <= n"),
        (lambda problem, test: analysis.k_of_n_table(problem, test, ks=[], ns=[1]), "a pair with k <= n"),
        (lambda problem, test: analysis.k_of_n_table(problem, test, ks=[0], ns=[1]), "`k` must lie between 1 and `n`"),
        (
            lambda problem, test: analysis.k_of_n_table(two_by_two(), test, ks=[1], ns=[1]),
            "a test of 3 test cases does not fit a problem of 2",
        ),
        (lambda problem, test: analysis.objective_surface(problem, [0, 1]), "over three cases, got 2"),
        (lambda problem, test: analysis.objective_surface(problem, [0, 1, 1]), "must not use a case twice"),
        (lambda problem, test: analysis.objective_surface(problem, [0, 1, "x"]), "unknown test case 'x'"),
        (lambda problem, test: analysis.objective_surface(problem, [0, 1, 2], steps=0), "`steps` .* from 1 on, got 0"),
        (lambda problem, test: analysis.objective_surface(problem, [0, 1, 2], steps=401), "at most 400, got 401"),
        (lambda problem, test: analysis.closing_in(problem, []), "`cases` must have at least one test case"),
        (lambda problem, test: analysis.closing_in(problem, [0, 0]), "must not use a case twice"),
        (lambda problem, test: analysis.closing_in(problem, [7]), "a position from 0 to 2"),
        (lambda problem, test: analysis.closing_in(problem, [0], rounds=0), "`rounds` .* from 1 on, got 0"),
        (lambda problem, test: analysis.sweep(problem, tail_fractions=[]), "`tail_fractions` must have at least one"),
        (lambda problem, test: analysis.sweep(problem, tail_fractions=[1.5]), r"must lie in \[0, 1\], got 1.5"),
        (lambda problem, test: analysis.size_curve(problem, []), "`sizes` must have at least one entry"),
        (lambda problem, test: analysis.size_curve(problem, [1, 4]), "between 1 and the 3 test cases, got 4"),
        (lambda problem, test: analysis.sensitivity(problem, time_limit_seconds=-1.0), "must not be negative, got -1"),
    ],
)  # fmt: skip
def test_bad_questions_are_refused_in_plain_words(
    ask: Callable[[ro.Problem, ro.EfficientTest], pd.DataFrame], message: str
) -> None:
    problem = uneven_problem()
    with pytest.raises(ro.ProblemError, match=message):
        ask(problem, problem.test(cases=[0], weights=[1.0]))


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(ro.BackendNotFound, match="unknown backend 'nope'"):
        analysis.sweep(uneven_problem(), tail_fractions=[0.5], backend="nope")
