"""Estimators against scikit-learn and against leaving policies out one by one."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge

import rposst_opt as ro
from rposst_opt.estimators import ESTIMATORS, PENALTIES, TuningScores, ridge_regression


def table(seed: int, n_cases: int = 12, n_policies: int = 9) -> np.ndarray:
    """Results that a skill and a difficulty explain in part."""
    rng = np.random.default_rng(seed)
    skill, difficulty = rng.normal(size=n_policies), rng.normal(size=(n_cases, 1))
    return 1 / (1 + np.exp(difficulty - skill + rng.normal(size=(n_cases, n_policies)) / 2))


def tuned_test(results: np.ndarray, cases: list[int], targets: np.ndarray | None = None) -> ro.EfficientTest:
    targets = np.full((1, len(results)), 1 / len(results)) if targets is None else targets
    test = ro.EfficientTest(cases=cases, weights=np.full(len(cases), 1 / len(cases)), n_cases=len(results))
    return test.tuned_on(results, targets)


def best_penalty(features: np.ndarray, outcome: np.ndarray) -> float:
    """The penalty with the least error when policies are left out and the regression is fitted anew, one by one."""
    centred = features - features.mean(axis=0)
    largest = np.linalg.norm(centred, 2) ** 2

    def error(penalty: float) -> float:
        total = 0.0
        for left_out in range(len(outcome)):
            kept = np.arange(len(outcome)) != left_out
            fitted = Ridge(alpha=penalty).fit(features[kept], outcome[kept])
            total += (fitted.predict(features[[left_out]])[0] - outcome[left_out]) ** 2
        return total

    return float(min((share * largest for share in PENALTIES), key=error))


@pytest.mark.parametrize("seed", range(5))
def test_ridge_is_scikit_learns_with_the_penalty_that_leaving_out_one_by_one_finds(seed: int) -> None:
    results, new = table(seed), table(seed + 100, n_policies=4)
    cases, targets = [1, 4, 7], np.random.default_rng(seed).dirichlet(np.ones(12), 2)
    found = tuned_test(results, cases, targets).estimates_by_target(new, "ridge")
    for target, estimates in zip(targets, found, strict=True):
        features, outcome = results[cases].T, target @ results
        fitted = Ridge(alpha=best_penalty(features, outcome)).fit(features, outcome)
        assert estimates == pytest.approx(fitted.predict(new[cases].T), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_residual_is_ridge_on_what_the_mean_leaves(seed: int) -> None:
    results, new, cases = table(seed), table(seed + 100, n_policies=4), [0, 2, 9]
    features, left = results[cases].T, results.mean(axis=0) - results[cases].mean(axis=0)
    fitted = Ridge(alpha=best_penalty(features, left)).fit(features, left)
    expected = new[cases].mean(axis=0) + fitted.predict(new[cases].T)
    assert tuned_test(results, cases).estimate(new, "residual") == pytest.approx(expected, abs=1e-6)


def estimated_from_others(
    results: np.ndarray, full: np.ndarray, cases: list[int], new: np.ndarray, share: float
) -> float:
    """Regress a policy's results on those of others, predict all of its results, and add what the chosen ones leave."""
    others = results[cases]
    largest = np.linalg.norm(others - others.mean(axis=0), 2) ** 2
    fitted = Ridge(alpha=share * largest).fit(others, new)
    return float(fitted.predict(full[None])[0] + (new - fitted.predict(others)).mean())


@pytest.mark.parametrize("seed", range(3))
def test_aipw_regresses_a_policys_results_on_those_of_others_and_predicts_from_their_full_scores(seed: int) -> None:
    results, new, cases = table(seed), table(seed + 100, n_policies=3), [0, 2, 5, 8, 9, 11]
    full, everyone = results.mean(axis=0), np.arange(results.shape[1])

    def error(share: float) -> float:
        estimates = [
            estimated_from_others(
                results[:, everyone != left_out], full[everyone != left_out], cases, results[cases, left_out], share
            )
            for left_out in everyone
        ]
        return float(((estimates - full) ** 2).sum())

    share = min(PENALTIES, key=error)
    expected = [estimated_from_others(results, full, cases, policy[cases], share) for policy in new.T]
    assert tuned_test(results, cases).estimate(new, "aipw") == pytest.approx(np.array(expected), abs=1e-6)


def test_kernel_regression_is_scikit_learns_on_centred_outcomes() -> None:
    rng = np.random.default_rng(3)
    known, new, outcome = rng.normal(size=(8, 3)), rng.normal(size=(4, 3)), rng.normal(size=8)
    centre = np.eye(8) - 1 / 8
    gram, cross = (1 + known @ known.T) ** 2, (1 + known @ new.T) ** 2
    found = ridge_regression(gram, cross, outcome[None])[0]
    centred, largest = centre @ gram @ centre, np.linalg.norm(centre @ gram @ centre, 2)
    new_centred = centre @ (cross - gram.mean(axis=1, keepdims=True))
    candidates = [
        outcome.mean()
        + KernelRidge(alpha=share * largest, kernel="precomputed")
        .fit(centred, outcome - outcome.mean())
        .predict(new_centred.T)
        for share in PENALTIES
    ]
    assert min(float(np.abs(found - candidate).max()) for candidate in candidates) < 1e-9


def test_a_relation_with_products_is_learned_by_the_kernel_and_not_by_a_line() -> None:
    rng = np.random.default_rng(8)
    chosen, unseen = rng.random((2, 40)), rng.random((2, 20))

    def full(rows: np.ndarray) -> np.ndarray:
        return np.asarray(0.2 + rows[0] * rows[1] + 0.3 * rows[0] ** 2)

    test = ro.EfficientTest(
        cases=[0, 1], weights=[0.5, 0.5], n_cases=9, tuning=TuningScores(chosen, full(chosen)[None])
    )
    by_kernel, by_line = (np.abs(test.estimate(unseen, how) - full(unseen)).max() for how in ("kernel", "ridge"))
    assert by_kernel < 0.01 < 0.05 < by_line


@pytest.mark.parametrize("method", ESTIMATORS)
def test_estimates_do_not_depend_on_units(method: str) -> None:
    results, new = table(1), table(2, n_policies=5)
    test = tuned_test(results, [0, 3, 6, 9])
    shifted = tuned_test(40 * results - 7, [0, 3, 6, 9])
    assert shifted.estimate(40 * new - 7, method) == pytest.approx(40 * test.estimate(new, method) - 7, abs=1e-8)
    in_units = test.in_file_units(ro.Scale(-7, 33))
    assert in_units.estimate(40 * new - 7, method) == pytest.approx(40 * test.estimate(new, method) - 7, abs=1e-8)


@pytest.mark.parametrize("method", ESTIMATORS)
def test_the_order_of_cases_and_of_tuning_policies_makes_no_difference(method: str) -> None:
    results, new, cases = table(1), table(2, n_policies=5), [0, 3, 6, 9]
    order = np.random.default_rng(0).permutation(results.shape[1])
    expected = tuned_test(results, cases).estimate(new, method)
    assert tuned_test(results[:, order], cases[::-1]).estimate(new, method) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("method", ESTIMATORS)
def test_policies_that_are_all_alike_and_a_single_case_are_no_trouble(method: str) -> None:
    alike = np.full((5, 4), 0.25)
    assert tuned_test(alike, [1, 2]).estimate(alike, method) == pytest.approx(0.25)
    estimates = tuned_test(table(4), [3]).estimate(table(5), method)
    assert np.isfinite(estimates).all()


def test_weights_are_the_score_for_every_target() -> None:
    results, targets = table(1), np.random.default_rng(1).dirichlet(np.ones(12), 3)
    test = tuned_test(results, [2, 5], targets)
    assert test.estimates_by_target(results).tolist() == [test.score(results).tolist()] * 3
    solved = ro.solve(ro.Problem(results=results, size=2, targets=targets)).test
    assert solved is not None
    assert solved.estimate(results, "ridge", target=2) == pytest.approx(
        tuned_test(results, list(solved.cases), targets).estimate(results, "ridge", target=2)
    )


def test_what_cannot_be_estimated_is_told() -> None:
    bare = ro.EfficientTest(cases=[0], weights=[1.0], n_cases=3)
    with pytest.raises(ro.ProblemError, match="'ridge' learns from tuning policies, and this test knows none"):
        bare.estimate([[1.0]], "ridge")
    test = tuned_test(table(1), [2, 5])
    with pytest.raises(ro.ProblemError, match=r"unknown estimator 'guess'\. Known: weights, ridge"):
        test.estimate(table(1), "guess")
    with pytest.raises(ro.ProblemError, match=r"`target` must lie in 0..0, got 1"):
        test.estimate(table(1), "ridge", target=1)
    with pytest.raises(ro.ProblemError, match="`tuning` must have a row per case, got 2 for 1"):
        ro.EfficientTest(cases=[0], weights=[1.0], n_cases=3, tuning=TuningScores(np.ones((2, 4)), np.ones((1, 4))))
