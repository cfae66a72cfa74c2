"""The answer is a function of the problem: rounding, the order of policies and the number of threads do not choose."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from linear_programs import linear_program

import rposst_opt as ro
from rposst_opt import analysis
from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.results import first_alike, targets_of
from rposst_opt.solvers import climber, exact, local_search, ties
from rposst_opt.solvers.canonical import Weighed, Weigher, least_squares_weights
from rposst_opt.solvers.exact import Exact
from rposst_opt.solvers.kernels import compiling
from rposst_opt.solvers.kernels.problem_arrays import scaled_problem_arrays, with_mean_alone
from rposst_opt.solvers.local_search import LocalSearch
from rposst_opt.solvers.searchers import FoundTest

PROBLEMS = 240
WEIGHTS_ALIKE = 1e-7
MEASURES: tuple[ro.Measure, ...] = (ro.CVaR(0.01), ro.Mean(), ro.CVaR(0.3), ro.KOfN(2, 5), ro.WorstCase())
KINDS: tuple[Callable[[np.random.Generator, int, int], np.ndarray], ...] = (
    lambda rng, n, p: rng.integers(0, 2, (n, p)).astype(float),
    lambda rng, n, p: rng.integers(0, 5, (n, p)) / 4,
    lambda rng, n, p: np.round(rng.random((n, p)), 1),
    lambda rng, n, p: rng.random((3, p))[rng.integers(0, 3, n)],
    lambda rng, n, p: rng.integers(0, 3, (n, p, 3)).mean(axis=2),
)


def full_of_ties(count: int, seed: int) -> Iterator[tuple[ro.Problem, np.random.Generator]]:
    """Problems of 0/1 results, coarse and rounded ones, repeated cases, and means of few runs."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        n, p, size = int(rng.integers(4, 13)), int(rng.integers(1, 8)), int(rng.integers(1, 4))
        results = KINDS[number % len(KINDS)](rng, n, p)
        betas = (0, 1, 2, 4)[: int(rng.integers(1, 5))]
        measure = MEASURES[number // len(KINDS) % len(MEASURES)]
        problem = ro.Problem(results=results, size=size, measure=measure, targets=targets_of(results, betas))
        yield problem, rng


def nudged(problem: ro.Problem, rng: np.random.Generator) -> ro.Problem:
    """The same problem with every result and target moved by up to two units in the last place."""

    def nudge(values: np.ndarray) -> np.ndarray:
        return np.asarray(values + rng.integers(-2, 3, values.shape) * np.spacing(np.abs(values)))

    targets = np.abs(nudge(problem.targets))
    return replace(problem, results=nudge(problem.results), targets=targets / targets.sum(axis=1, keepdims=True))


def is_the_same(one: ro.EfficientTest | None, other: ro.EfficientTest | None) -> bool:
    assert one is not None and other is not None
    return one.cases == other.cases and bool(np.abs(one.weights - other.weights).max() <= WEIGHTS_ALIKE)


def moved_by_rounding(count: int, seed: int, backend: str = "exact", **options: Any) -> Iterator[bool]:
    """Of each problem, whether the answer is another when it is nudged."""
    for problem, rng in full_of_ties(count, seed):
        answer, again = (ro.solve(each, backend, **options) for each in (problem, nudged(problem, rng)))
        is_as_good = abs(answer.objective - again.objective) <= 1e-9 * problem.unit
        yield not (is_as_good and is_the_same(answer.test, again.test))


@pytest.mark.slow
def test_the_last_bits_of_results_and_targets_do_not_choose_the_answer() -> None:
    assert sum(moved_by_rounding(PROBLEMS, seed=0)) == 0


def test_without_the_choice_among_ties_they_would(monkeypatch: pytest.MonkeyPatch) -> None:
    def any_one(searchers: object, best: FoundTest, *others: object, cut_short: bool) -> tuple[list[FoundTest], bool]:
        return [best], False

    def any_weights(weigher: Weigher, sets: IntArray, weights: FloatArray) -> list[Weighed]:
        return [Weighed(rows, its, 0.0, 0.0, is_unique=True) for rows, its in zip(sets, weights, strict=True)]

    monkeypatch.setattr(exact, "tied_tests", any_one)
    assert any(
        not is_the_same(ro.solve(problem, "exact").test, ro.solve(problem, "exact", top=1).test)
        for problem, _ in full_of_ties(60, seed=1)
    )
    monkeypatch.undo()
    monkeypatch.setattr(Weigher, "by_mean", any_weights)
    assert any(moved_by_rounding(PROBLEMS, seed=1))


@pytest.mark.slow
def test_they_do_not_choose_the_answer_of_local_search_either(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(moved_by_rounding(PROBLEMS, seed=9, backend="local-search", kicks=1, threads=1)) == 0
    monkeypatch.setattr(local_search, "rounded_arrays", lambda arrays: arrays)
    for module in (local_search, climber):
        monkeypatch.setattr(module, "DIGITS", 17)
        monkeypatch.setattr(module, "IMPROVEMENT", 0.0)
    assert any(moved_by_rounding(PROBLEMS, seed=9, backend="local-search", kicks=1, threads=1))


@pytest.mark.slow
def test_it_is_the_first_of_the_ranking_and_no_order_of_policies_or_number_of_threads_changes_it() -> None:
    for problem, rng in full_of_ties(80, seed=2):
        answer = ro.solve(problem, "exact")
        assert not answer.one_of_many
        ranked = ro.solve(problem, "exact", top=1)
        assert is_the_same(answer.test, ranked.test)
        assert is_the_same(answer.test, ro.solve(problem, "exact", threads=1).test)
        order = rng.permutation(problem.n_policies)
        turned = replace(problem, results=problem.results[:, order], probabilities=problem.probabilities[order])
        assert is_the_same(answer.test, ro.solve(turned, "exact").test)


@pytest.mark.slow
def test_another_order_of_cases_changes_no_more_than_the_choice_by_position() -> None:
    unique = 0
    for problem, rng in full_of_ties(80, seed=3):
        order = rng.permutation(problem.n_cases)
        answer = ro.solve(problem, "exact", all_optimal=True)
        turned = replace(problem, results=problem.results[order], targets=problem.targets[:, order])
        again = ro.solve(turned, "exact")
        assert answer.test is not None and again.test is not None
        back = problem.test(cases=order[list(again.test.cases)].tolist(), weights=again.test.weights)
        least = answer.ranking[0]
        tied = [entry.test for entry in answer.ranking if entry.mean_loss <= least.mean_loss + 1e-9 * problem.unit]
        assert any(is_the_same(back, test) for test in tied)
        unique += len(tied) == 1
    assert unique > 10  # where the choice by position plays no part


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{"top": 4}, {"all_optimal": True}])
def test_rankings_stay_too(asked: dict[str, Any]) -> None:
    for problem, rng in full_of_ties(40, seed=4):
        best, again = (ro.solve(each, "exact", **asked).ranking for each in (problem, nudged(problem, rng)))
        assert len(best) == len(again)
        assert all(is_the_same(one.test, two.test) for one, two in zip(best, again, strict=True))


TABLES: dict[str, Callable[[ro.Problem], pd.DataFrame]] = {
    "sweep": lambda problem: analysis.sweep(problem, tail_fractions=[0.0, 0.5, 1.0]),
    "size curve": lambda problem: analysis.size_curve(problem, range(1, min(4, problem.n_cases))),
    "sensitivity": analysis.sensitivity,
}


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_tables_of_answers_stay_too(table: Callable[[ro.Problem], pd.DataFrame]) -> None:
    for problem, rng in full_of_ties(40, seed=10):
        first, second = table(problem), table(nudged(problem, rng))
        assert first["cases"].tolist() == second["cases"].tolist()
        for one, two in zip(first["weights"], second["weights"], strict=True):
            assert np.abs(np.array(one) - np.array(two)).max() <= WEIGHTS_ALIKE
        for losses in ("objective", "mean_loss", "worst_loss"):
            # The worst loss follows the weights; it plays no part in their choice.
            assert np.abs(first[losses] - second[losses]).max() <= 1e-6 * problem.unit


# Other processors and numbers of threads


def some_answers(threads: int) -> list[tuple[list[int], list[float]]]:
    """Cases and weights of a handful of problems full of ties, by both methods that give canonical ones."""
    found = []
    for problem, _ in full_of_ties(24, seed=11):
        for method in (Exact(threads=threads), LocalSearch(threads=threads, kicks=1)):
            test = ro.solve(problem, method).test
            assert test is not None
            found.append((list(test.cases), test.weights.tolist()))
    return found


def are_alike(some: list[tuple[list[int], list[float]]], others: list[tuple[list[int], list[float]]]) -> bool:
    return all(
        one_cases == other_cases and np.abs(np.array(one) - np.array(other)).max() <= WEIGHTS_ALIKE
        for (one_cases, one), (other_cases, other) in zip(some, others, strict=True)
    )


def test_one_thread_and_two_find_the_same() -> None:
    assert are_alike(some_answers(threads=1), some_answers(threads=2))


COMPILED_ANSWERS = """
import gc, json, test_canonical
gc.disable()  # numba makes millions of objects, and looking for garbage among them takes a tenth of the time
test_canonical.compiling.compile_from_now_on()
print(json.dumps(test_canonical.some_answers(threads=1)))
"""


@pytest.mark.slow
def test_a_processor_without_special_instructions_finds_the_same() -> None:
    here = Path(__file__).parent
    assert compiling.FOLDER is not None
    plain = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_OPT": "0",  # compiled sooner, and with other instructions once more
        "NUMBA_CACHE_DIR": str(compiling.FOLDER.parent / "for-a-plain-processor"),
    }
    outcome = subprocess.run(
        [sys.executable, "-c", COMPILED_ANSWERS],
        env={**os.environ, **plain, "PYTHONPATH": os.pathsep.join([str(here.parent), str(here)])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert are_alike(some_answers(threads=1), json.loads(outcome.stdout))


def test_of_too_many_ties_the_first_by_position_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ties, "MOST_COMPARED", 2)
    many = 0
    for problem, rng in full_of_ties(60, seed=5):
        everything = ro.solve(problem, "exact", all_optimal=True).ranking
        distinct = [
            entry.test.cases
            for entry in everything
            if len(set(problem.first_alike[list(entry.test.cases)])) == problem.size
        ]
        if len(distinct) <= 2:
            continue
        many += 1
        answer = ro.solve(problem, "exact")
        assert answer.test is not None and not answer.one_of_many
        # Of cases with the same results only the first takes part.
        firsts = [cases for cases in distinct if all(problem.first_alike[case] == case for case in cases)]
        if len(firsts) > 2:
            assert answer.test.cases == min(firsts)
        assert is_the_same(answer.test, ro.solve(nudged(problem, rng), "exact").test)
    assert many > 15


def test_an_answer_that_was_not_compared_with_all_its_equals_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ro.Problem(results=np.eye(12), size=3)
    assert not ro.solve(problem, "exact").one_of_many
    monkeypatch.setattr(ties, "LEAST_WORK", -1e18)  # the work is spent before it begins
    answer = ro.solve(problem, "exact")
    assert answer.one_of_many and answer.status is ro.Status.OPTIMAL


# The weights of one set, by other ways


def least_mean_by_linear_programming(problem: ro.Problem, cases: tuple[int, ...], objective: float) -> float:
    """The least mean of absolute errors of weights whose CVaR is no more than the objective."""
    assert isinstance(problem.measure, ro.CVaR)
    scenarios, m, d = problem.scenarios, len(cases), problem.n_scenarios
    rows = problem.results[list(cases)][:, scenarios.policies].T
    eta = max(problem.measure.tail_fraction, 1 / d)
    # variables: w, losses, v, u; u >= loss - v; v + sum(u) / (d eta) <= objective
    zero, eye = np.zeros((d, d)), np.eye(d)
    above = [
        np.hstack([rows, -eye, np.zeros((d, 1)), zero]),
        np.hstack([-rows, -eye, np.zeros((d, 1)), zero]),
        np.hstack([np.zeros((d, m)), eye, -np.ones((d, 1)), -eye]),
        np.concatenate([np.zeros(m + d), [1.0], np.full(d, 1 / (d * eta))])[None],
    ]
    outcome = linear_program(
        np.concatenate([np.zeros(m), np.full(d, 1 / d), np.zeros(1 + d)]),
        A_ub=np.vstack(above),
        b_ub=np.concatenate([scenarios.full_scores, -scenarios.full_scores, np.zeros(d), [objective]]),
        A_eq=[np.concatenate([np.ones(m), np.zeros(2 * d + 1)])],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)] * (d + 1) + [(0, None)] * d,
    )
    return float(outcome.fun)


def test_of_optimal_weights_those_with_the_least_mean_loss_are_taken() -> None:
    moved = 0
    for problem, _ in full_of_ties(100, seed=6):
        if not isinstance(problem.measure, ro.CVaR):
            continue
        test = ro.solve(problem, "exact").test
        assert test is not None
        mean = replace(problem, measure=ro.Mean()).objective(test)
        least = least_mean_by_linear_programming(problem, test.cases, problem.objective(test) + 1e-10)
        assert mean == pytest.approx(least, abs=2e-8)
        equal = problem.test(cases=test.cases, weights=np.full(len(test.cases), 1 / len(test.cases)))
        moved += problem.objective(equal) > problem.objective(test) + 1e-9
    assert moved > 5  # not only sets on which all weights are alike


def test_of_these_those_with_the_least_sum_of_squares_are_taken() -> None:
    cp = pytest.importorskip("cvxpy")
    unequal = 0
    for problem, _ in full_of_ties(60, seed=7):
        if not isinstance(problem.measure, ro.Mean) or problem.size == 1:
            continue
        test = ro.solve(problem, "exact").test
        assert test is not None
        weights = cp.Variable(len(test.cases), nonneg=True)
        scores = problem.results[list(test.cases)].T[problem.scenarios.policies] @ weights
        losses = cp.abs(scores - problem.scenarios.full_scores)
        allowed = problem.objective(test) + 1e-9
        program = cp.Problem(
            cp.Minimize(cp.sum_squares(weights)),
            [cp.sum(weights) == 1, problem.scenarios.probabilities @ losses <= allowed],
        )
        program.solve(solver="CLARABEL")
        assert np.abs(weights.value - test.weights).max() <= 2e-5
        unequal += bool(np.ptp(test.weights) > 1e-3)
    assert unequal > 0


def test_two_cases_that_do_equally_well_share_the_weight() -> None:
    """Cases 0 and 1 are off by the same in opposite ways for nobody: one policy, whose full score lies between."""
    problem = ro.Problem(results=[[0.5], [0.5], [0.0], [1.0]], size=2, required_cases=[], forbidden_cases=[2, 3])
    test = ro.solve(problem, "exact").test
    assert test is not None and test.weights.tolist() == pytest.approx([0.5, 0.5])
    arrays = scaled_problem_arrays(problem, np.arange(4))
    rows, given = np.array([0, 1]), np.array([1.0, 0.0])
    for known in (
        np.empty((0, 2)),
        np.zeros((1, 2)),
        np.full((1, 2), 9.0),
    ):  # the last are no cuts: no weights have them
        weights = least_squares_weights(arrays, with_mean_alone(arrays), rows, given, known)
        assert weights == pytest.approx([0.5, 0.5])


# Cases with the same results


@pytest.mark.parametrize("scale", [1.0, 1e9, 1e-9])
@pytest.mark.parametrize("offset", [0.0, 1e3, -5.0])
def test_cases_that_are_alike_are_found_up_to_rounding(scale: float, offset: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(30):
        zeros_and_ones = rng.integers(0, 2, (int(rng.integers(1, 40)), int(rng.integers(1, 6)))).astype(np.float64)
        results: FloatArray = zeros_and_ones * scale + offset * scale
        expected = [int(np.flatnonzero((results == row).all(axis=1))[0]) for row in results]
        moved = np.asarray(results + rng.integers(-2, 3, results.shape) * np.spacing(np.abs(results)), dtype=float)
        assert first_alike(results).tolist() == first_alike(moved).tolist() == expected


def test_cases_that_differ_by_more_than_rounding_are_not_alike() -> None:
    assert first_alike(np.array([[1.0, 2.0], [1.0, 2.0 + 1e-13]])).tolist() == [0, 1]
    assert first_alike(np.array([[1.0, 2.0], [2.0, 1.0]])).tolist() == [0, 1]


def test_sets_that_are_weighed_together_are_weighed_as_each_alone() -> None:
    for problem, _ in full_of_ties(20, seed=7):
        arrays = scaled_problem_arrays(problem, np.arange(problem.n_cases))
        sets = np.array(list(itertools.islice(itertools.combinations(range(problem.n_cases), 2), 20)))
        weights = np.full(sets.shape, 0.5)
        for at, weighed in enumerate(Weigher(arrays).by_mean(sets, weights)):
            (alone,) = Weigher(arrays).by_mean(sets[at : at + 1], weights[at : at + 1])
            assert weighed.rows.tolist() == sets[at].tolist()
            assert weighed.objective == pytest.approx(alone.objective, abs=1e-10)
            assert weighed.mean_loss == pytest.approx(alone.mean_loss, abs=1e-8)


def test_a_least_squares_problem_that_is_given_up_leaves_good_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = []

    def gives_up(*arguments: object) -> None:
        given_up.append(arguments)
        raise RuntimeError("Maximum number of iterations reached.")

    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.25, 0.75]], size=3)
    settled = ro.solve(problem, "exact")
    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    assert ro.solve(problem, "exact").objective == pytest.approx(settled.objective, abs=1e-9)
    assert given_up
