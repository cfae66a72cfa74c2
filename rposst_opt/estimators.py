r"""From the results on a test's few cases to the score on all of them: ways to estimate it for a new policy.

The test's own weights are one way, and the one whose error is optimised and proved. The others learn from the tuning
policies, whose results on the chosen cases X (m × p) and full scores b (one row per target) are known:

ridge
    regresses b on the results of the chosen cases, with an intercept.
kernel
    the same with all products of two results as well (a polynomial kernel of degree two).
residual
    the plain mean of the chosen cases, plus ridge regression of what it leaves.
aipw
    turns the table round: it regresses the new policy's results, case by case, on the tuning policies' results there,
    and predicts the new policy's full score from theirs. Since it learns about the new policy from its own results, it
    may go beyond all that was seen, which is what a policy better than all before needs. (Augmented inverse propensity
    weighting; in surveys, the generalised regression estimator.)

Regression is ridge regression in its dual form, with an intercept that is not penalised. The penalty is the one with
the least squared error when a tuning policy is left out: by its closed form, or for aipw, whose regressions are of a
policy's few results, by estimating the full score of each tuning policy from all others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rposst_opt.arrays import FloatArray, is_number, read_only
from rposst_opt.errors import ProblemError, unknown
from rposst_opt.results import Scale
from rposst_opt.values.by_value import ByValue

PENALTIES = np.logspace(-6, 2, 33)  # in units of the largest eigenvalue of the centred Gram matrix
MOST_LEFT_OUT = 64  # tuning policies, to choose the penalty of aipw


@dataclass(frozen=True, eq=False)
class TuningScores(ByValue):
    """What is known of the tuning policies, as far as estimators need it.

    Attributes
    ----------
    results : ndarray of shape (n_chosen, n_policies)
        On the test's cases, in their order.
    full_scores : ndarray of shape (n_targets, n_policies)
    policy_names : tuple of str
        What the policies are called; empty where that is not known.
    """

    results: FloatArray
    full_scores: FloatArray
    policy_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("results", "full_scores"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=np.float64)))
        n_policies = {part.shape[1] if part.ndim == 2 else -1 for part in (self.results, self.full_scores)}
        if self.policy_names:
            object.__setattr__(self, "policy_names", tuple(str(name) for name in self.policy_names))
            n_policies.add(len(self.policy_names))
        if len(n_policies) > 1 or -1 in n_policies:
            shapes = f"{self.results.shape} and {self.full_scores.shape}"
            raise ProblemError(
                "`tuning` must have a column per policy in its results and its full scores, and a name per policy or "
                f"none, got shapes {shapes} and {len(self.policy_names)} names."
            )

    def of_cases(self, order: Sequence[int]) -> "TuningScores":
        """The same of these cases, by their places among the test's."""
        return TuningScores(self.results[list(order)], self.full_scores, self.policy_names)

    def in_file_units(self, scale: Scale) -> "TuningScores":
        """The same for results that are not rescaled."""
        results, full_scores = (scale.score_in_file_units(part) for part in (self.results, self.full_scores))
        return TuningScores(results, full_scores, self.policy_names)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            **({"policies": list(self.policy_names)} if self.policy_names else {}),
            "results": self.results.tolist(),
            "full_scores": self.full_scores.tolist(),
        }

    @classmethod
    def from_dict(cls, record: object) -> "TuningScores":
        """What `to_dict` made; an error says what else it is."""
        if not isinstance(record, dict):
            raise ProblemError('"tuning" must be an object.')
        results, full_scores = (_matrix_in(name, record.get(name)) for name in ("results", "full_scores"))
        if results.shape[1] != full_scores.shape[1]:
            raise ProblemError('"results" and "full_scores" of "tuning" must have a column per policy.')
        names = record.get("policies", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ProblemError('"policies" of "tuning" must be a list of names.')
        if names and len(names) != results.shape[1]:
            raise ProblemError(f'"policies" of "tuning" must have {results.shape[1]} names, got {len(names)}.')
        return cls(results, full_scores, tuple(names))


def _matrix_in(name: str, rows: object) -> FloatArray:
    """A table of finite numbers, a list per row."""
    matrix = None
    if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows):
        numbers = all(is_number(value) for row in rows for value in row)
        if numbers and len({len(row) for row in rows}) == 1:
            matrix = np.array([[_as_float(value) for value in row] for row in rows])
    if matrix is None or matrix.size == 0 or not np.isfinite(matrix).all():
        raise ProblemError(f'"{name}" of "tuning" must be rows of numbers, all of one length.')
    return matrix


def _as_float(number: float) -> float:
    """A number of a file as a float; one that is too large becomes infinite."""
    try:
        return float(number)
    except OverflowError:
        return np.inf


Method = Callable[[TuningScores, FloatArray], FloatArray]


def ridge_regression(gram: FloatArray, cross: FloatArray, outcomes: FloatArray) -> FloatArray:
    """Fit every row of outcomes on p known points, and predict it at q new ones.

    Parameters
    ----------
    gram : ndarray of shape (p, p)
        Inner products of the known points.
    cross : ndarray of shape (p, q)
        Inner products of the known points with the new ones.
    outcomes : ndarray of shape (n, p)

    Returns
    -------
    ndarray of shape (n, q)

    Examples
    --------
    A line through three points, and what it says of a fourth:

    >>> x, new = np.array([0.0, 1.0, 2.0]), np.array([4.0])
    >>> ridge_regression(np.outer(x, x), np.outer(x, new), 1 + x[None]).round(3)
    array([[5.]])
    """
    middle = outcomes.mean(axis=1, keepdims=True)
    centred, new = _centred(gram, cross)
    values, vectors = _eigen(centred)
    rotated = (outcomes - middle) @ vectors
    penalties = PENALTIES * (values[-1] or 1.0)
    best = _errors_of_leaving_one_out(values, vectors, rotated, penalties).argmin(axis=1)
    predicted: FloatArray = middle + (rotated / (values + penalties[best][:, None])) @ (vectors.T @ new)
    return predicted


def _centred(gram: FloatArray, cross: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Inner products after all points have been moved so that the mean of the known ones is at the origin."""
    row_means, mean = gram.mean(axis=-1, keepdims=True), gram.mean(axis=(-2, -1), keepdims=True)
    across = cross.mean(axis=-2, keepdims=True)
    return gram - row_means - row_means.swapaxes(-2, -1) + mean, cross - across - row_means + mean


def _eigen(centred: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, ascending and without what rounding leaves of zeros, and eigenvectors."""
    values, vectors = np.linalg.eigh(centred)
    return np.where(values > len(centred) * np.finfo(np.float64).eps * values[..., -1:], values, 0.0), vectors


def _errors_of_leaving_one_out(
    values: FloatArray, vectors: FloatArray, rotated: FloatArray, penalties: FloatArray
) -> FloatArray:
    """The sum of squared errors of every outcome (row) with every penalty (column)."""
    left = penalties[:, None] / (values + penalties[:, None])  # (penalties, p): what each direction leaves unexplained
    influence = 1.0 - 1.0 / len(values) - (1.0 - left) @ (vectors**2).T
    residuals = (rotated[:, None, :] * left) @ vectors.T  # (n, penalties, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        errors: FloatArray = ((residuals / influence) ** 2).sum(axis=2)
    return np.where((influence > 1e-9).all(axis=1), errors, np.inf)


def _ridge(tuning: TuningScores, rows: FloatArray) -> FloatArray:
    known = tuning.results
    return ridge_regression(known.T @ known, known.T @ rows, tuning.full_scores)


def _kernel(tuning: TuningScores, rows: FloatArray) -> FloatArray:
    centre = tuning.results.mean(axis=1, keepdims=True)
    known, new = tuning.results - centre, rows - centre
    scale = float((known**2).sum(axis=0).mean()) or 1.0
    return ridge_regression(
        (1.0 + known.T @ known / scale) ** 2, (1.0 + known.T @ new / scale) ** 2, tuning.full_scores
    )


def _residual(tuning: TuningScores, rows: FloatArray) -> FloatArray:
    known = tuning.results
    left = tuning.full_scores - known.mean(axis=0)
    estimates: FloatArray = rows.mean(axis=0) + ridge_regression(known.T @ known, known.T @ rows, left)
    return estimates


def _aipw(tuning: TuningScores, rows: FloatArray) -> FloatArray:
    known, full = tuning.results, tuning.full_scores
    share = PENALTIES[_aipw_errors(tuning).argmin()]
    return _aipw_with(known @ known.T, known @ full.T, rows.T[:, None, :], np.array([share]))[:, 0].T


def _aipw_with(gram: FloatArray, cross: FloatArray, outcomes: FloatArray, shares: FloatArray) -> FloatArray:
    """Estimates of shape (policies, shares, targets), from Gram matrices of cases that are common or one per policy."""
    middle = outcomes.mean(axis=-1, keepdims=True)  # (policies, 1, 1)
    centred, new = _centred(gram, cross)
    values, vectors = _eigen(centred)
    penalties = shares[:, None] * np.where(values[..., -1:, None] > 0, values[..., -1:, None], 1.0)
    rotated = (outcomes - middle) @ vectors  # (policies, 1, cases)
    estimates: FloatArray = middle + (rotated / (values[..., None, :] + penalties)) @ (vectors.swapaxes(-2, -1) @ new)
    return estimates


def _aipw_errors(tuning: TuningScores) -> FloatArray:
    """How far off the full scores of tuning policies are, with every penalty, estimated from all others."""
    known, full = tuning.results, tuning.full_scores
    left_out = np.unique(np.linspace(0, known.shape[1] - 1, MOST_LEFT_OUT).round().astype(np.int64))
    gram, cross = known @ known.T, known @ full.T
    errors = np.zeros(len(PENALTIES))
    for policy in left_out:
        mine = known[:, policy]
        others = gram - np.outer(mine, mine), cross - np.outer(mine, full[:, policy])
        estimates = _aipw_with(*others, mine[None, None], PENALTIES)[0]  # (penalties, targets)
        errors += ((estimates - full[:, policy]) ** 2).sum(axis=1)
    return errors


LEARNED: dict[str, Method] = {"ridge": _ridge, "residual": _residual, "kernel": _kernel, "aipw": _aipw}
WEIGHTS = "weights"
ESTIMATORS = (WEIGHTS, *LEARNED)


def learned_estimates(method: str, tuning: TuningScores | None, rows: FloatArray) -> FloatArray:
    """The full score by every target (row) of new policies (columns), from their results on the chosen cases."""
    if method not in LEARNED:
        raise ProblemError(unknown("estimator", method, ESTIMATORS))
    if tuning is None:
        raise ProblemError(f"the estimator {method!r} learns from tuning policies, and this test knows none.")
    return LEARNED[method](tuning, rows)
