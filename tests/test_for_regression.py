"""Selections for regressions, step by step with regressions that are fitted anew."""

import numpy as np
import pytest
from hypothesis import given
from strategies import problems

import rposst_opt as ro
from rposst_opt.solvers.for_regression import PENALTIES, errors_with_each


def error_of_leaving_one_out(features: np.ndarray, outcomes: np.ndarray, penalty: float) -> float:
    """Mean squared error when each policy's outcome is predicted by a ridge regression on the others.

    Features and outcomes are centred beforehand, over all policies, and there is no intercept.
    """
    total = 0.0
    for left_out in range(features.shape[1]):
        kept = np.arange(features.shape[1]) != left_out
        known = features[:, kept]
        slopes = np.linalg.solve(known @ known.T + penalty * np.eye(len(known)), known @ outcomes[:, kept].T)
        total += float(((features[:, left_out] @ slopes - outcomes[:, left_out]) ** 2).mean())
    return float(total / features.shape[1])


def greedily(problem: ro.Problem) -> list[int]:
    results = problem.results / (problem.results.max() - problem.results.min())
    features = results - results.mean(axis=1, keepdims=True)
    outcomes = problem.targets @ features
    found = []
    for share in PENALTIES:
        penalty = share * float((features**2).sum(axis=1).mean())
        chosen, error = list(problem.required_cases), np.inf
        for _ in range(problem.size):
            errors = {
                case: error_of_leaving_one_out(features[[*chosen, case]], outcomes, penalty)
                for case in problem.selectable_cases
                if case not in chosen
            }
            best = min(errors, key=lambda case: errors[case])
            chosen, error = [*chosen, best], errors[best]
        found.append((error, chosen))
    return sorted(min(found)[1])


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
def test_the_error_with_each_case_added_is_that_of_fitting_anew(penalty: float) -> None:
    rng = np.random.default_rng(4)
    features, outcomes = rng.normal(size=(5, 7)), rng.normal(size=(2, 7))
    chosen = features[:2]
    inverse = np.asarray(np.linalg.inv(chosen.T @ chosen + penalty * np.eye(7)), dtype=np.float64)
    found = errors_with_each(inverse, features[2:], outcomes)
    expected = [error_of_leaving_one_out(features[[0, 1, case]], outcomes, penalty) for case in (2, 3, 4)]
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_greedy_selection_takes_the_case_with_which_a_regression_predicts_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = ro.Problem(
        results=rng.normal(size=(9, 7)),
        size=3,
        targets=rng.dirichlet(np.ones(9), 2),
        required_cases=[4] if seed % 2 else [],
        forbidden_cases=[0] if seed % 3 else [],
    )
    test = ro.solve(problem, "greedy-ridge").test
    assert test is not None
    assert list(test.cases) == greedily(problem)
    assert test.weights == pytest.approx(1 / len(test.cases))


@pytest.mark.parametrize("seed", range(4))
def test_mrmr_maximises_the_ratio_of_f_statistic_to_mean_correlation(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = ro.Problem(results=rng.random((8, 12)), size=4)
    correlations = np.abs(np.corrcoef(np.vstack([problem.results, problem.results.mean(axis=0)])))
    relevance = correlations[8, :8] ** 2 / (1 - correlations[8, :8] ** 2)
    chosen: list[int] = []
    for _ in range(4):
        merits = {
            case: relevance[case] / (np.mean([correlations[case, other] for other in chosen]) if chosen else 1)
            for case in range(8)
            if case not in chosen
        }
        chosen.append(max(merits, key=lambda case: merits[case]))
    test = ro.solve(problem, "mrmr").test
    assert test is not None
    assert list(test.cases) == sorted(chosen)


def test_stratified_draws_have_a_case_of_every_difficulty() -> None:
    results = np.repeat(np.random.default_rng(0).permutation(20)[:, None] / 20, 3, axis=1)
    problem = ro.Problem(results=results, size=5)
    drawn: set[int] = set()
    for seed in range(60):
        test = ro.solve(problem, "stratified-random", seed=seed).test
        assert test is not None
        assert sorted(np.floor(results[list(test.cases), 0] * 5).astype(int)) == [0, 1, 2, 3, 4]
        drawn.update(test.cases)
    assert drawn == set(range(20))


@pytest.mark.parametrize("backend", ["greedy-ridge", "mrmr", "stratified-random"])
@given(problem=problems())
def test_they_answer_every_problem_with_equal_weights(backend: str, problem: ro.Problem) -> None:
    solution = ro.solve(problem, backend)
    assert solution.test is not None
    assert problem.why_not(solution.test) is None
    assert len(solution.test.cases) == problem.n_chosen
    assert solution.test.weights == pytest.approx(1 / problem.n_chosen)
    again = ro.solve(problem, backend).test
    assert again is not None and again.cases == solution.test.cases
