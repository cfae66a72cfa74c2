"""What does scikit-learn need to choose test cases? A selector of features that is a regressor of full scores too."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.backends import AUTO, entry_of, name_of, solve
from rposst_opt.contract import Backend, Limit
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import BackendUnavailable, ProblemError, RposstError, check_installed, unknown
from rposst_opt.estimators import ESTIMATORS, WEIGHTS
from rposst_opt.losses import Loss
from rposst_opt.measures import Measure
from rposst_opt.problem import Problem
from rposst_opt.results import Scale, full_scores
from rposst_opt.sklearn.statement import Statement, state
from rposst_opt.solution import Solution

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    check_installed("TestSelector needs", ["sklearn"], extra="sklearn")
    raise BackendUnavailable(
        f"TestSelector needs scikit-learn 1.6 or newer, got {version('scikit-learn')}: "
        "pip install 'rposst-opt[sklearn]'"
    ) from error

if TYPE_CHECKING:
    from typing import Self

# They choose for the mean of all test cases, whatever else is the full score.
FOR_THE_MEAN = frozenset({"kmeans-anchors", "minimax-tnp-uniform", "miniaverage-uniform"})
# They choose without asking what any weights give, so for them y may be in units of its own.
WITHOUT_WEIGHTS = frozenset({"greedy-ridge", "mrmr", "random", "stratified-random"})


class UnreachableScoreWarning(UserWarning):
    """What is to be estimated lies beyond what weights on test cases can give, so that the choice may mean little."""


class TestSelector(SelectorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Choose a few features, with weights, whose weighted mean stays close to the full score of every sample.

    Samples (rows of X) are policies, features (columns of X) are test cases, and what is predicted is the full score.
    So whatever holds samples out, `cross_val_score` say, tells how good a test is for policies that it has not seen.

    Parameters
    ----------
    size : int
        How many test cases to choose, besides the required ones.
    measure : Measure, optional
        How (policy, target) pairs are weighed; the worst 1 % by default.
    loss : Loss, optional
        What a wrong score costs; the absolute error by default.
    betas : sequence of float, optional
        Declares targets that are made of the results, `softmax_targets(X.T, betas)`, of those in `fit` alone.
    targets : array of shape (n_targets, n_features), optional
        Declares targets: weights of all test cases, one distribution per row.
    offset : bool
        Whether scores may have an offset and weights that sum to less than one (`Problem`).
    rescale : bool
        Whether results are mapped to [0, 1] first, as ``rposst solve`` does: `betas`, `loss`, `gap` and `solution_` are
        then in these units. Predictions are in those of X either way.
    required_cases, forbidden_cases : iterable of int or str
        Test cases that must or must not be chosen, by position or by name.
    estimator : {"weights", "ridge", "residual", "kernel", "aipw"}
        How the full score is predicted from the chosen test cases: by the weights that are optimised and proved, or by
        what learns from the policies in `fit` (`rposst_opt.estimators`).
    backend : str or Backend
        As for `solve`.
    backend_options : dict, optional
        Options of the backend, such as ``{"rounds": 1000}``.
    time_limit_seconds : float, optional
    gap : float
        As for `solve`.
    random_state : int or RandomState, optional
        The seed of a backend that draws and is named by `backend`. Without one, and with ``"auto"``, the backend's own
        seed is used, which is always the same.

    Attributes
    ----------
    test_ : EfficientTest
        The chosen test, for results in the units of X. ``test_.estimate(new_results, estimator)`` predicts the full
        scores of new policies that have been run on the chosen test cases alone; these are rows there.
    cases_ : ndarray of shape (n_chosen,)
        The chosen features, by position, ascending.
    weights_ : ndarray of shape (n_chosen,)
    problem_ : Problem
        What was solved. A y that is no declared target's full score is its last test case, which is forbidden.
    solution_ : Solution
        The answer to that, with its objective, lower bound, gap and status.
    scale_ : Scale
        What of X is 0 and 1 in `problem_` and `solution_`.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has names for its columns.

    Warns
    -----
    UnreachableScoreWarning
        Where y lies beyond the results, as a score in other units does: no choice by weights means much then.

    Notes
    -----
    ``fit(X)`` takes the declared targets (`targets` or `betas`) for what a test is to be close to, the first for what
    is predicted, and the mean of all features if none is declared. ``fit(X, y)`` takes y for the full score, whatever
    it is: test cases and weights are chosen to be close to y, and y is what estimators learn and what is predicted.
    Declared targets are then further full scores that the test is to be close to, all alike. So ``fit(X)`` and
    ``fit(X, X.mean(axis=1))`` are the same where no target is declared, or the uniform one first.

    What comes before a selector in a pipeline changes what it takes for results: after a `StandardScaler`, the mean of
    all features is that of standardised ones, and a y in the old units is out of reach.

    Examples
    --------
    >>> import numpy as np
    >>> from rposst_opt.sklearn import TestSelector
    >>> X = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 0.4]])  # two policies, three test cases
    >>> selector = TestSelector(size=1).fit(X)
    >>> selector.get_support(indices=True), selector.predict(X)
    (array([2]), array([0.4, 0.4]))
    """

    __test__ = False  # pytest would take the class for tests

    # What fitting finds out.
    test_: EfficientTest
    cases_: IntArray
    weights_: FloatArray
    problem_: Problem
    solution_: Solution
    scale_: Scale
    n_features_in_: int

    def __init__(
        self,
        *,
        size: int = 1,
        measure: Measure | None = None,
        loss: Loss | None = None,
        betas: Sequence[float] | None = None,
        targets: ArrayLike | None = None,
        offset: bool = False,
        rescale: bool = True,
        required_cases: Iterable[int | str] = (),
        forbidden_cases: Iterable[int | str] = (),
        estimator: str = WEIGHTS,
        backend: str | Backend = AUTO,
        backend_options: Mapping[str, Any] | None = None,
        time_limit_seconds: float | None = None,
        gap: float = 0.0,
        random_state: "int | np.random.RandomState | None" = None,
    ) -> None:
        self.size = size
        self.measure = measure
        self.loss = loss
        self.betas = betas
        self.targets = targets
        self.offset = offset
        self.rescale = rescale
        self.required_cases = required_cases
        self.forbidden_cases = forbidden_cases
        self.estimator = estimator
        self.backend = backend
        self.backend_options = backend_options
        self.time_limit_seconds = time_limit_seconds
        self.gap = gap
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> "Self":
        """Choose test cases and weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The results of tuning policies: a row is a policy, a column a test case.
        y : array-like of shape (n_samples,), optional
            The full score of every policy; by default that of the declared targets, or the mean of all features.
        """
        if self.estimator not in ESTIMATORS:
            raise ProblemError(unknown("estimator", self.estimator, ESTIMATORS))
        if y is None:
            policies, outcome = validate_data(self, X, dtype=np.float64), None
        else:
            policies, outcome = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        stated = self._stated(policies, outcome)
        self._check_choice(stated)
        solution = solve(
            stated.problem,
            self.backend,
            time_limit_seconds=self.time_limit_seconds,
            gap=self.gap,
            **self._options(),
        )
        if solution.limit is Limit.INTERRUPT:
            raise KeyboardInterrupt  # half an answer must not be taken for a whole one, nor a search go on without it
        if solution.test is None:
            raise RposstError(
                f"backend {solution.backend!r} found no test within `time_limit_seconds`, got "
                f"{self.time_limit_seconds}: allow more time, or use backend 'local-search'."
            )
        self.problem_, self.solution_, self.scale_ = stated.problem, solution, stated.scale
        self.test_ = replace(solution.test, n_cases=self.n_features_in_).in_file_units(stated.scale)
        self.cases_ = np.array(self.test_.cases, dtype=np.int64)
        self.weights_ = self.test_.weights
        return self

    def _stated(self, policies: FloatArray, outcome: NDArray[Any] | None) -> Statement:
        """The problem that these results, y and the parameters state."""
        if isinstance(self.size, Integral) and self.size > self.n_features_in_:
            raise ProblemError(f"`size` must not exceed n_features = {self.n_features_in_}, got {self.size}.")
        return state(
            policies,
            outcome,
            is_rescaled=_flag("rescale", self.rescale),
            betas=self.betas,
            targets=self.targets,
            size=self.size,
            measure=self.measure,
            loss=self.loss,
            offset=_flag("offset", self.offset),
            required_cases=self.required_cases,
            forbidden_cases=self.forbidden_cases,
            case_names=getattr(self, "feature_names_in_", None),
        )

    def _check_choice(self, stated: Statement) -> None:
        """Refuse a backend that would not look at y, and warn where y is out of reach for the one that does."""
        backend = self.backend if isinstance(self.backend, str) else name_of(self.backend)
        if stated.has_y and backend in FOR_THE_MEAN:
            raise ProblemError(
                f"backend {backend!r} chooses test cases for their mean, and y is another full score: leave y out, or "
                "use another backend."
            )
        if stated.unreachable is not None and (self.estimator == WEIGHTS or backend not in WITHOUT_WEIGHTS):
            warnings.warn(
                f"{stated.unreachable}. Give y in the units of X, or choose test cases for a regression: "
                "backend='greedy-ridge', estimator='ridge'.",
                UnreachableScoreWarning,
                stacklevel=3,
            )

    def _options(self) -> dict[str, Any]:
        """The backend's options, with a seed if it takes one and there is one."""
        options = dict(self.backend_options or {})
        draws = isinstance(self.backend, str) and self.backend != AUTO and "seed" in entry_of(self.backend).options
        if self.random_state is None or not draws:
            return options
        if "seed" in options:
            raise ProblemError("`random_state` is the backend's option `seed`: give one of them.")
        if isinstance(self.random_state, Integral):
            return options | {"seed": int(self.random_state)}
        return options | {"seed": int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))}

    def predict(self, X: ArrayLike) -> FloatArray:
        """The full score of every policy, by the estimator, from its results on the chosen test cases.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Of all features, as in `fit`; those that were not chosen are not looked at, but must be finite numbers.
        """
        policies = self._policies(X)
        # Nothing is said of their scale, as cross-validation would say it again for every part.
        predicted: FloatArray = self.test_.estimated(self.test_.rows_of(policies.T), self.estimator)[0]
        return predicted

    def score(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """The coefficient of determination R² of the predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            The true full scores; by default those of the first declared target, or the means of all features.
        sample_weight : array-like of shape (n_samples,), optional
        """
        if y is None:
            policies = self._policies(X)
            if self.problem_.n_cases > self.n_features_in_:
                raise ProblemError("this selector was fitted to a y of its own: `score` needs y too.")
            y = full_scores(self.problem_.targets[:1], policies.T)[0]
        return float(super().score(X, y, sample_weight=sample_weight))

    def _policies(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        policies: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        return policies

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.cases_] = True
        return mask

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.regressor_tags.poor_score = True  # a weighted mean of few features is not meant to follow just any y
        return tags


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ProblemError(f"`{name}` must be True or False, got {value!r}.")
    return bool(value)
