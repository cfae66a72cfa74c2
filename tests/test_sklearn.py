"""Test selection as scikit-learn has it: its conventions, what y means, and policies that are held out."""

import itertools
import os
import pickle
import subprocess
import sys
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from linear_programs import linear_program
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import rposst_opt as ro
from rposst_opt.backends.table import OWN_BACKENDS
from rposst_opt.estimators import ESTIMATORS
from rposst_opt.results import targets_of
from rposst_opt.sklearn import TestSelector, UnreachableScoreWarning
from rposst_opt.solvers.baselines import claims_nothing

# Checks of scikit-learn that cannot apply, and why not: none.
EXPECTED_TO_FAIL: dict[str, str] = {}
# Checks that are skipped within this process, and why.
SKIPPED = {
    "check_array_api_input": "SCIPY_ARRAY_API must be set before SciPy is imported: a process of its own does it"
}


def policies(seed: int = 0, n_policies: int = 14, n_cases: int = 7, low: float = 20.0, high: float = 90.0) -> Any:
    """Results in units of their own, a row per policy, that a skill and a difficulty explain in part."""
    rng = np.random.default_rng(seed)
    skill, difficulty = rng.normal(size=(n_policies, 1)), rng.normal(size=n_cases)
    return low + (high - low) / (1 + np.exp(difficulty - skill + rng.normal(size=(n_policies, n_cases)) / 2))


def least_worst_error(X: Any, y: Any, size: int, *, without: tuple[int, ...] = ()) -> float:
    """By linear programs over all sets of features: how far the best weighted mean is from y, for the worst policy."""
    best = np.inf
    for cases in itertools.combinations([case for case in range(X.shape[1]) if case not in without], size):
        chosen, ones = X[:, cases], np.ones((len(X), 1))
        program = linear_program(
            [*np.zeros(size), 1.0],
            A_ub=np.vstack([np.hstack([chosen, -ones]), np.hstack([-chosen, -ones])]),
            b_ub=np.concatenate([y, -y]),
            A_eq=[[*np.ones(size), 0.0]],
            b_eq=[1.0],
        )
        best = min(best, program.fun)
    return float(best)


# scikit-learn's conventions


@pytest.mark.slow
@pytest.mark.parametrize(
    "selector",
    [
        TestSelector(),
        TestSelector(size=2, offset=True, rescale=False, backend="regret-matching"),
        TestSelector(estimator="aipw", backend="greedy-ridge"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::rposst_opt.sklearn.UnreachableScoreWarning")  # y of the checks is just any
def test_scikit_learns_own_checks_pass(selector: TestSelector) -> None:
    outcomes = check_estimator(selector, expected_failed_checks=EXPECTED_TO_FAIL, on_skip=None)
    assert len(outcomes) > 50
    assert {each["check_name"] for each in outcomes if each["status"] != "passed"} <= SKIPPED.keys()


@pytest.mark.slow
def test_the_check_that_is_skipped_here_passes_in_a_process_of_its_own() -> None:
    code = """
import warnings
from contextlib import nullcontext
from sklearn.utils.estimator_checks import check_estimator
from rposst_opt.sklearn import TestSelector, UnreachableScoreWarning
warnings.simplefilter("ignore", UnreachableScoreWarning)
outcomes = check_estimator(TestSelector(backend="greedy-ridge"), on_skip=None)
print({each["status"] for each in outcomes})
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "{'passed'}\n", run.stderr


def test_parameters_are_kept_as_they_are_and_cloned() -> None:
    settings: dict[str, Any] = {
        "size": 2,
        "measure": ro.CVaR(0.3),
        "loss": ro.SquaredError(),
        "targets": np.full((1, 7), 1 / 7),
        "required_cases": ["x"],
        "backend_options": {"rounds": 10},
    }
    selector = TestSelector(**settings)
    parameters = selector.get_params()
    assert all(parameters[name] is value for name, value in settings.items())
    other = clone(selector).set_params(size=3, measure=ro.Mean())
    assert (other.size, other.measure, other.loss) == (3, ro.Mean(), ro.SquaredError())
    assert (selector.size, selector.measure) == (2, ro.CVaR(0.3))


def test_it_is_a_regressor_and_a_transformer_that_needs_no_y() -> None:
    tags = get_tags(TestSelector())
    assert is_regressor(TestSelector()) and tags.transformer_tags is not None
    assert not tags.target_tags.required and not tags.input_tags.sparse and not tags.input_tags.allow_nan


def test_a_fitted_selector_can_be_pickled() -> None:
    X = policies()
    selector = TestSelector(size=2, estimator="kernel", offset=True).fit(X, X[:, 0])
    again = pickle.loads(pickle.dumps(selector))
    assert again.predict(X).tolist() == selector.predict(X).tolist()
    assert again.solution_.objective == selector.solution_.objective


def test_features_that_have_names_keep_them() -> None:
    frame = pd.DataFrame(policies(), columns=[f"task {i}" for i in range(7)])
    selector = TestSelector(size=2, required_cases=["task 5"]).fit(frame).set_output(transform="pandas")
    chosen = selector.transform(frame)
    assert "task 5" in chosen.columns and len(chosen.columns) == 3
    assert list(selector.get_feature_names_out()) == list(chosen.columns) == list(selector.test_.case_names)
    pd.testing.assert_frame_equal(chosen, frame[list(chosen.columns)])
    assert selector.feature_names_in_.tolist() == list(frame.columns)
    assert selector.test_.score(frame.T).tolist() == selector.predict(frame).tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        selector.predict(frame[frame.columns[::-1]])


def test_the_chosen_columns_come_out_and_can_be_put_back() -> None:
    X = policies()
    selector = TestSelector(size=3)
    chosen = selector.fit_transform(X)
    assert selector.get_support(indices=True).tolist() == selector.cases_.tolist() == list(selector.test_.cases)
    assert selector.get_support().sum() == 3
    assert chosen.tolist() == X[:, selector.cases_].tolist()
    assert selector.inverse_transform(chosen)[:, selector.cases_].tolist() == chosen.tolist()


def test_what_does_not_fit_is_refused() -> None:
    X = policies()
    selector = TestSelector(size=2)
    for method in (selector.predict, selector.transform, selector.score):
        with pytest.raises(NotFittedError):
            method(X)
    selector.fit(X)
    for method in (selector.predict, selector.transform, selector.score):
        with pytest.raises(ValueError, match="X has 6 features, but TestSelector is expecting 7 features"):
            method(X[:, 1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        selector.fit(X, X[1:, 0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 8}, r"`size` must not exceed n_features = 7, got 8\."),
        ({"size": 0}, r"`size` must lie between 1 and the 7 test cases, got 0\."),
        ({"size": 2.0}, r"`size` must be a whole number, got 2\.0\."),
        ({"estimator": "oracle"}, r"unknown estimator 'oracle'\. Known: weights, ridge"),
        ({"rescale": "no"}, r"`rescale` must be True or False, got 'no'\."),
        ({"offset": 1}, r"`offset` must be True or False, got 1\."),
        ({"betas": (0,), "targets": np.full((1, 7), 1 / 7)}, r"`betas` and `targets` both declare targets: give one"),
        ({"targets": np.full((1, 6), 1 / 6)}, r"`targets` must have one row per target and 7 columns"),
        ({"measure": 0.1}, r"`measure` must be a Measure"),
        (
            {"backend": "random", "backend_options": {"seed": 1}, "random_state": 2},
            r"`random_state` is the backend's option `seed`: give one of them\.",
        ),
    ],
)
def test_parameters_are_checked_when_it_is_fitted(settings: dict[str, Any], message: str) -> None:
    selector = TestSelector(**settings)
    with pytest.raises(ro.ProblemError, match=message):
        selector.fit(policies())


# What is solved


@pytest.mark.parametrize("is_rescaled", [True, False])
@pytest.mark.parametrize("offset", [True, False])
def test_the_test_is_that_of_solve_on_the_table_turned_round(is_rescaled: bool, offset: bool) -> None:
    X = policies()
    results, scale = ro.rescale(X.T) if is_rescaled else (X.T, ro.Scale(0.0, 1.0))
    betas, measure = (0, 1) if is_rescaled else (0, 0.01), ro.CVaR(0.2)
    problem = ro.Problem(
        results=results,
        size=2,
        measure=measure,
        loss=ro.HuberError(0.1),
        targets=targets_of(results, betas),
        offset=offset,
    )
    expected = ro.solve(problem, "exact")
    selector = TestSelector(
        size=2,
        measure=measure,
        loss=ro.HuberError(0.1),
        betas=betas,
        rescale=is_rescaled,
        offset=offset,
        backend="exact",
    )
    with nullcontext() if is_rescaled else pytest.warns(ro.RposstWarning, match="depends on the scale of results"):
        selector.fit(X)
    assert expected.test is not None
    assert selector.test_.cases == expected.test.cases
    assert selector.weights_.tolist() == expected.test.weights.tolist()
    assert (selector.solution_.objective, selector.solution_.lower_bound) == (expected.objective, expected.lower_bound)
    assert selector.scale_ == scale
    by_hand = scale.score_in_file_units(expected.test.score(results))
    assert selector.predict(X) == pytest.approx(by_hand, rel=1e-12)
    assert expected.test.has_offset == offset  # or one of the two has shown nothing


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_predictions_are_the_estimators_in_the_units_of_x(estimator: str) -> None:
    X, new = policies(), policies(1)
    selector = TestSelector(size=2, estimator=estimator, rescale=False).fit(X)
    test = ro.EfficientTest(cases=selector.cases_.tolist(), weights=selector.weights_, n_cases=7)
    expected = test.tuned_on(X.T, np.full((1, 7), 1 / 7)).estimate(new.T, estimator)
    assert selector.predict(new) == pytest.approx(expected, rel=1e-9)
    assert TestSelector(size=2, estimator=estimator).fit(X).predict(new) == pytest.approx(expected, rel=1e-4)
    on_chosen_cases_alone = selector.test_.estimate(new[:, selector.cases_].T, estimator)
    assert selector.predict(new).tolist() == on_chosen_cases_alone.tolist()


def test_a_seed_is_for_backends_that_draw() -> None:
    X = policies(n_cases=40)
    problem = ro.Problem(results=ro.rescale(X.T)[0], size=3)
    drawn = [ro.solve(problem, "random", seed=seed).test for seed in (5, 6)]
    for seed, test in zip((5, 6), drawn, strict=True):
        assert test is not None
        selector = TestSelector(size=3, backend="random", random_state=seed).fit(X)
        assert selector.test_.cases == test.cases
    states = [TestSelector(size=3, backend="random", random_state=np.random.RandomState(1)).fit(X) for _ in range(2)]
    assert states[0].test_.cases == states[1].test_.cases
    unseeded = ro.solve(problem, "random").test
    assert unseeded is not None
    assert TestSelector(size=3, backend="random").fit(X).test_.cases == unseeded.cases
    assert TestSelector(size=1, random_state=5).fit(X).test_.cases == TestSelector(size=1).fit(X).test_.cases


@dataclass(frozen=True)
class Barren:
    """A backend that comes back with nothing, or with half an answer after an interrupt."""

    limit: ro.Limit
    has_test: bool = False
    asked: list[tuple[float | None, float]] = field(default_factory=list)
    capabilities: ClassVar[ro.Capabilities] = claims_nothing("nothing")

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        self.asked.append((budget.time_limit_seconds, budget.gap))
        test = problem.test(cases=[0], weights=[1.0]) if self.has_test else None
        return ro.Candidate(test=test, lower_bound=-np.inf, limit=self.limit)


def test_without_a_test_there_is_an_error() -> None:
    with pytest.raises(ro.RposstError, match=r"backend 'Barren' found no test within `time_limit_seconds`, got 0\.5"):
        TestSelector(backend=Barren(ro.Limit.TIME), time_limit_seconds=0.5).fit(policies())


def test_time_limit_and_gap_reach_the_backend() -> None:
    backend = Barren(ro.Limit.TIME, has_test=True)
    selector = TestSelector(backend=backend, time_limit_seconds=0.5, gap=0.25).fit(policies())
    assert backend.asked == [(0.5, 0.25)]
    assert selector.solution_.limit is ro.Limit.TIME


def test_an_interrupt_ends_what_fits_selectors_one_after_another() -> None:
    with pytest.raises(KeyboardInterrupt):
        TestSelector(backend=Barren(ro.Limit.INTERRUPT, has_test=True)).fit(policies())


# What y means


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_without_targets_y_is_the_mean_or_what_it_is(dtype: type) -> None:
    X = policies().astype(dtype)
    plain, with_mean = TestSelector(size=2).fit(X), TestSelector(size=2).fit(X, X.mean(axis=1))
    assert with_mean.problem_.n_cases == 7
    assert with_mean.problem_.targets.tolist() == [[1 / 7] * 7]
    assert with_mean.weights_.tolist() == plain.weights_.tolist()
    assert with_mean.predict(X).tolist() == plain.predict(X).tolist()
    beside_it = X.mean(axis=1) + dtype(0.01)
    assert TestSelector(size=2).fit(X, beside_it).problem_.n_cases == 8


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("is_rescaled", [True, False])
def test_any_y_is_what_the_test_is_close_to(seed: int, is_rescaled: bool) -> None:
    X = policies(seed)
    y = np.random.default_rng(seed).uniform(X.min(axis=1), X.max(axis=1))
    selector = TestSelector(size=2, measure=ro.WorstCase(), rescale=is_rescaled).fit(X, y)
    worst = np.abs(selector.predict(X) - y).max()
    assert worst == pytest.approx(least_worst_error(X, y, 2), rel=1e-6)
    assert worst < least_worst_error(X, X.mean(axis=1), 2) + np.abs(y - X.mean(axis=1)).max()
    assert selector.scale_.error_in_file_units(selector.solution_.objective) == pytest.approx(worst, rel=1e-9)
    assert selector.test_.n_cases == 7 and max(selector.test_.cases) < 7
    assert selector.solution_.status is ro.Status.OPTIMAL


def test_a_y_of_its_own_changes_nothing_else_that_is_asked() -> None:
    X = policies()
    settings: dict[str, Any] = {"size": 2, "measure": ro.KOfN(1, 3), "loss": ro.SquaredError(), "offset": True}
    selector = TestSelector(**settings, required_cases=[5], forbidden_cases=[0], backend="regret-matching")
    problem = selector.fit(X, X[:, 4] / 2 + X[:, 5] / 2).problem_
    assert problem.n_cases == 8
    assert {name: getattr(problem, name) for name in settings} == settings
    assert (problem.required_cases, problem.forbidden_cases) == ((5,), (0, 7))
    assert problem.probabilities == pytest.approx(np.full((14, 1), 1 / 14))


def test_y_is_one_more_full_score_beside_declared_targets() -> None:
    X = policies()
    targets = np.eye(7)[[0, 1]]
    y = X[:, 4]
    selector = TestSelector(size=2, measure=ro.WorstCase(), targets=targets, rescale=False).fit(X, y)
    worst = np.abs(selector.predict(X) - np.stack([y, X[:, 0], X[:, 1]])).max()
    assert selector.solution_.objective == pytest.approx(worst, rel=1e-9)
    three = ro.Problem(results=X.T, size=2, measure=ro.WorstCase(), targets=np.eye(7)[[4, 0, 1]])
    assert selector.solution_.objective == pytest.approx(ro.solve(three).objective, rel=1e-9)


def test_a_declared_target_that_is_y_is_the_one_that_is_predicted() -> None:
    X = policies()
    targets = np.random.default_rng(1).dirichlet(np.ones(7), 3)
    plain = TestSelector(size=2, targets=targets, estimator="ridge").fit(X)
    for row in range(3):
        y = X @ targets[row]
        selector = TestSelector(size=2, targets=targets, estimator="ridge").fit(X, y)
        assert selector.problem_.n_cases == 7
        assert selector.test_.cases == plain.test_.cases
        assert selector.predict(X) == pytest.approx(plain.test_.estimate(X.T, "ridge", target=row), rel=1e-9)
        assert selector.score(X) == pytest.approx(selector.score(X, y), rel=1e-12)


CHOOSE_FOR_THE_MEAN = ["kmeans-anchors", "minimax-tnp-uniform", "miniaverage-uniform"]
CHOOSE_FOR_A_REGRESSION = ["greedy-ridge", "mrmr"]
CHOOSE_BLINDLY = ["random", "stratified-random"]
CHOOSE_BY_SCORES = [
    "exact",
    "regret-matching",
    "local-search",
    "sampled-regret-matching",
    "simultaneous",
    "minimax-uniform",
    "minimax-ttd-uniform",
    "iterative-minimax",
]


def test_it_is_known_of_each_of_our_solvers_how_it_takes_y() -> None:
    ours = {name for name, entry in OWN_BACKENDS.items() if entry.module.startswith("rposst_opt.solvers")}
    assert {*CHOOSE_FOR_THE_MEAN, *CHOOSE_FOR_A_REGRESSION, *CHOOSE_BLINDLY, *CHOOSE_BY_SCORES} == ours


@pytest.mark.parametrize("backend", [*CHOOSE_BY_SCORES, *CHOOSE_FOR_A_REGRESSION])
def test_every_backend_that_looks_at_full_scores_finds_the_feature_that_is_y(backend: str) -> None:
    X = policies(2)
    for case in (1, 4):
        assert TestSelector(size=1, backend=backend).fit(X, X[:, case]).cases_.tolist() == [case]


@pytest.mark.parametrize("backend", CHOOSE_FOR_THE_MEAN)
def test_a_backend_that_would_not_look_at_y_is_refused_with_one(backend: str) -> None:
    X = policies()
    TestSelector(backend=backend).fit(X, X.mean(axis=1))
    message = f"backend '{backend}' chooses test cases for their mean, and y is another full score: leave y out"
    made = ro.BACKENDS[backend].make()
    for each in (backend, made):
        with pytest.raises(ro.ProblemError, match=message):
            TestSelector(backend=each).fit(X, X[:, 3])


def test_a_y_that_no_weights_reach_is_told() -> None:
    X = policies()
    y = X.mean(axis=1)
    y[3], y[5] = X[3].max() + 7.0, X[5].min() - 2.0
    message = (
        r"^for 2 of 14 policies, y lies outside the range of its own results, by up to 7, which no weights on test "
        r"cases can reach\. Give y in the units of X, or choose test cases for a regression: "
        r"backend='greedy-ridge', estimator='ridge'\.$"
    )
    choices: list[dict[str, Any]] = [{}, {"estimator": "ridge"}, {"backend": "greedy-ridge"}]
    for settings in choices:
        with pytest.warns(UnreachableScoreWarning, match=message) as told:
            TestSelector(**settings).fit(X, y)
        assert [each.filename for each in told] == [__file__]
    TestSelector(offset=True).fit(X, y)  # each of them within the range of all results


def test_with_an_offset_a_y_beyond_all_results_is_told() -> None:
    X = policies()
    with pytest.warns(
        UnreachableScoreWarning, match=r"14 of 14 .* range of all results, .* where an offset leaves less"
    ):
        TestSelector(offset=True).fit(X, 1000.0 + X.mean(axis=1))


@pytest.mark.parametrize("backend", [*CHOOSE_FOR_A_REGRESSION, *CHOOSE_BLINDLY])
def test_a_regression_takes_y_in_units_of_its_own(backend: str) -> None:
    X, new = policies(n_policies=30), policies(7)
    selector = TestSelector(size=1, backend=backend, estimator="ridge").fit(X, 1000.0 - 40.0 * X[:, 2])
    if backend in CHOOSE_FOR_A_REGRESSION:
        assert selector.cases_.tolist() == [2]
        assert selector.predict(new) == pytest.approx(1000.0 - 40.0 * new[:, 2], rel=1e-3)


def test_a_y_that_was_rounded_is_not_told_of() -> None:
    X = np.vstack([policies(), np.full(7, 100 / 3)])
    rounded = X.mean(axis=1).round(2)
    assert rounded[-1] < X[-1].min()
    assert TestSelector(size=2).fit(X, rounded).problem_.n_cases == 8


def test_forbidden_features_reach_nothing() -> None:
    X = policies()
    X[:, 6] = 2 * X.max()
    y = X[:, :5].mean(axis=1)
    y[0] = 1.5 * X[0, :6].max()
    TestSelector().fit(X, y)
    with pytest.warns(UnreachableScoreWarning, match="1 of 14"):
        TestSelector(forbidden_cases=[6]).fit(X, y)


def test_units_make_no_difference() -> None:
    X = policies()
    y = X.min(axis=1) / 2 + X.max(axis=1) / 2
    for estimator in ESTIMATORS:
        selector = TestSelector(size=2, estimator=estimator, offset=True)
        predicted = selector.fit(X, y).predict(X)
        assert clone(selector).fit(3 * X - 50, 3 * y - 50).predict(3 * X - 50) == pytest.approx(
            3 * predicted - 50, rel=1e-4
        )


def test_results_that_are_all_alike_leave_y_what_it_is() -> None:
    X = np.full((5, 3), 0.25)
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    with pytest.warns(UnreachableScoreWarning, match="5 of 5"):
        assert TestSelector(estimator="ridge").fit(X, y).predict(X) == pytest.approx(np.full(5, 3.0))
    assert TestSelector().fit(X).predict(X).tolist() == [0.25] * 5


def test_numbers_that_are_too_large_are_refused_and_not_warned_of() -> None:
    y = np.where(np.arange(14) % 2, 1.7e308, -1.7e308)
    with pytest.raises(ro.ProblemError, match="absolute loss overflow: rescale them first"):
        TestSelector(rescale=False).fit(policies(), y)
    for unit in (1e-5, 1e300):
        with pytest.raises(
            ro.ProblemError, match=r"y from -1\.7e\+308 to 1\.7e\+308 is too large: give it in the units"
        ):
            TestSelector().fit(unit * policies(), y)


# Policies that are held out


def determination(y: Any, predicted: Any) -> float:
    """R² by its formula."""
    return float(1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def by_hand(X: Any, held_out: Any, size: int) -> Any:
    """What a test says of policies that were held out, made step by step without scikit-learn."""
    tuning = np.delete(X, held_out, axis=0)
    low, high = tuning.min(), tuning.max()
    rescaled = (tuning - low) / (high - low)
    problem = ro.Problem(results=rescaled.T, size=size, targets=ro.softmax_targets(rescaled.T, (0, 2)))
    test = ro.solve(problem).test
    assert test is not None
    return X[held_out][:, list(test.cases)] @ test.weights


@pytest.mark.parametrize("with_y", [True, False])
def test_cross_validation_is_the_loop_over_policies_that_are_held_out(with_y: bool) -> None:
    X = policies(n_policies=20)
    y = X.mean(axis=1)
    folds = KFold(4, shuffle=True, random_state=1)
    expected = [determination(y[held_out], by_hand(X, held_out, 2)) for _, held_out in folds.split(X)]
    found = cross_val_score(TestSelector(size=2, betas=(0, 2)), X, y if with_y else None, cv=folds)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_nothing_of_a_policy_that_is_held_out_reaches_the_test(estimator: str) -> None:
    X, folds = policies(n_policies=16), KFold(4)
    selector = TestSelector(size=2, betas=(0, 2), estimator=estimator, offset=True)
    plain = cross_validate(selector, X, X.mean(axis=1), cv=folds, return_estimator=True)["estimator"]
    probe = policies(9)
    for fold, (_, held_out) in enumerate(folds.split(X)):
        other = X.copy()
        other[held_out] = policies(5, len(held_out), low=-500.0, high=500.0)
        found = cross_validate(selector, other, other.mean(axis=1), cv=folds, return_estimator=True)["estimator"]
        assert found[fold].test_.cases == plain[fold].test_.cases
        assert found[fold].predict(probe).tolist() == plain[fold].predict(probe).tolist()
        changed = [each.predict(probe).tolist() != plain[i].predict(probe).tolist() for i, each in enumerate(found)]
        assert [i for i, differs in enumerate(changed) if not differs] == [fold]


def test_size_measure_and_estimator_can_be_searched_for() -> None:
    X = policies(n_policies=20)
    y = X.mean(axis=1)
    grid = {"size": [1, 3], "measure": [ro.CVaR(0.2), ro.Mean()], "estimator": ["weights", "ridge"]}
    search = GridSearchCV(TestSelector(), grid, cv=4, scoring="neg_mean_absolute_error").fit(X, y)
    for settings, found in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        errors = []
        for tuning, held_out in KFold(4).split(X):
            predicted = TestSelector(**settings).fit(X[tuning]).predict(X[held_out])
            errors.append(np.abs(predicted - y[held_out]).mean())
        assert found == pytest.approx(-np.mean(errors), rel=1e-9)
    assert search.best_params_["size"] == 3
    flags = GridSearchCV(TestSelector(), {"offset": np.array([True, False])}, cv=4).fit(X, y)
    assert flags.best_estimator_.test_.has_offset == flags.best_params_["offset"]
    assert search.predict(X).tolist() == search.best_estimator_.predict(X).tolist()


def test_a_selector_stands_in_a_pipeline_at_its_end_or_before() -> None:
    X, y = policies(n_policies=20), policies(n_policies=20)[:, 2]
    before = Pipeline([("select", TestSelector(size=2)), ("regress", LinearRegression())]).fit(X, y)
    chosen = TestSelector(size=2).fit(X, y).cases_
    expected = LinearRegression().fit(X[:, chosen], y).predict(X[:, chosen])
    assert before.predict(X) == pytest.approx(expected)
    assert before[:-1].get_feature_names_out().tolist() == [f"x{case}" for case in chosen]

    at_the_end = Pipeline([("scale", StandardScaler()), ("select", TestSelector(size=2))]).fit(X)
    scaled = StandardScaler().fit_transform(X)
    assert at_the_end.predict(X) == pytest.approx(TestSelector(size=2).fit(scaled).predict(scaled))
    with pytest.warns(UnreachableScoreWarning, match="20 of 20"):
        at_the_end.fit(X, y)


def test_scores_without_y_are_those_of_the_first_target() -> None:
    X, new = policies(), policies(3)
    selector = TestSelector(size=2).fit(X)
    assert selector.score(new) == pytest.approx(determination(new.mean(axis=1), selector.predict(new)))
    weights = np.arange(len(new)) % 2
    assert selector.score(new, sample_weight=weights) == pytest.approx(selector.score(new[1::2]))
    target = np.eye(7)[[3]]
    selector = TestSelector(size=2, targets=target, forbidden_cases=[3]).fit(X)
    assert selector.score(new) == pytest.approx(determination(new[:, 3], selector.predict(new)))
    with pytest.raises(ro.ProblemError, match=r"this selector was fitted to a y of its own: `score` needs y too\."):
        TestSelector().fit(X, X[:, 1]).score(new)


def test_what_is_solved_can_be_judged_and_proved_again() -> None:
    X = policies()
    options = {"certificate": True}
    selector = TestSelector(size=2, backend="exact", backend_options=options).fit(X, X[:, 4] / 2 + X[:, 5] / 2)
    solution, problem = selector.solution_, selector.problem_
    assert solution.test is not None and solution.certificate is not None
    assert problem.objective(solution.test) == solution.objective
    assert ro.verify_certificate(problem, solution.certificate).holds
    assert solution.objective == pytest.approx(0.0, abs=1e-9)
    assert selector.cases_.tolist() == [4, 5]
    assert problem.case_names[-1] == "y" and problem.forbidden_cases == (7,)
    named = TestSelector(size=2).fit(pd.DataFrame(X, columns=list("abcxyzw")), X[:, 0])
    assert named.problem_.case_names[-1] == "-y"


def test_it_does_not_warn_where_there_is_nothing_to_say() -> None:
    X = policies()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        TestSelector(size=2, betas=(0, 1)).fit(X, X.mean(axis=1)).score(X)
    assert told == []
