r"""What does it cost when the small test's score misses the full test's?

A loss (the paper's difference function Δ) is a convex, piecewise quadratic function of the error, ``score - full
score``, and it is given by one table: the knots where pieces meet and the coefficients of each piece.

.. math::

    \Delta(e) = c_{p,0} + c_{p,1} e + c_{p,2} e^2 \quad\text{for } \kappa_{p} < e \le \kappa_{p+1}

Value, slope, the affine pieces that a linear program needs, and the compiled kernels all read that table, so a new loss
is one class with one property. Where two pieces meet, the slope is the left piece's (any value between the two would
do).
"""

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from rposst_opt.arrays import FloatArray, read_only
from rposst_opt.errors import ProblemError, unknown
from rposst_opt.values.described import Described

CONTINUITY_TOLERANCE = 1e-9  # relative to the value at the knot: pieces written down in decimals may miss by rounding


@dataclass(frozen=True, eq=False)
class PiecewiseQuadratic:
    """A convex function of one number, as a table of quadratic pieces.

    Attributes
    ----------
    knots : ndarray of shape (n_pieces - 1,)
        Where one piece ends and the next begins, ascending.
    coefficients : ndarray of shape (n_pieces, 3)
        Constant, linear and quadratic coefficient of each piece, from left to right.

    Examples
    --------
    >>> absolute = PiecewiseQuadratic(knots=[0.0], coefficients=[[0, -1, 0], [0, 1, 0]])
    >>> absolute.value(np.array([-2.0, 0.5]))
    array([2. , 0.5])
    """

    knots: FloatArray
    coefficients: FloatArray

    def __init__(self, *, knots: ArrayLike, coefficients: ArrayLike) -> None:
        for name, values in (("knots", knots), ("coefficients", coefficients)):
            try:
                array = np.array(values, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ProblemError(f"the {name} of a loss must be numbers: {error}.") from None
            array = array.reshape(0, 3) if name == "coefficients" and array.size == 0 else array
            object.__setattr__(self, name, read_only(array))
        if self.knots.ndim != 1:
            raise ProblemError(f"the knots of a loss must be a list, got shape {self.knots.shape}.")
        if self.coefficients.ndim != 2 or self.coefficients.shape[1] != 3:
            raise ProblemError(
                f"the coefficients of a loss must be rows of three, got shape {self.coefficients.shape}."
            )
        self._check_convex()

    def _check_convex(self) -> None:
        if len(self.coefficients) != len(self.knots) + 1:
            raise ProblemError(
                f"a loss with {len(self.knots)} knots must have one piece more than that, got {len(self.coefficients)}."
            )
        if not (np.isfinite(self.knots).all() and np.isfinite(self.coefficients).all()):
            raise ProblemError("the knots and coefficients of a loss must be finite.")
        constant, linear, quadratic = self.coefficients.T
        slope = linear[:, None] + 2 * quadratic[:, None] * self.knots
        value = constant[:, None] + self.knots * (linear[:, None] + self.knots * quadratic[:, None])
        at = np.arange(len(self.knots))
        scale = CONTINUITY_TOLERANCE * np.maximum(1.0, np.abs(value[at, at]))
        if (np.diff(self.knots) <= 0).any():
            raise ProblemError("the knots of a loss must ascend.")
        if (np.abs(value[at + 1, at] - value[at, at]) > scale).any():
            raise ProblemError("the pieces of a loss must meet at its knots.")
        if (quadratic < 0).any() or (slope[at + 1, at] < slope[at, at] - CONTINUITY_TOLERANCE).any():
            raise ProblemError("a loss must be convex: its slope may not decrease.")

    def _pieces_at(self, errors: FloatArray) -> FloatArray:
        chosen: FloatArray = self.coefficients[np.searchsorted(self.knots, errors, side="left")]
        return chosen

    def value(self, errors: FloatArray) -> FloatArray:
        """The function at each error."""
        pieces = self._pieces_at(errors)
        result: FloatArray = pieces[..., 0] + errors * (pieces[..., 1] + errors * pieces[..., 2])
        return result

    def slope(self, errors: FloatArray) -> FloatArray:
        """A subgradient at each error: the left slope where two pieces meet."""
        pieces = self._pieces_at(errors)
        result: FloatArray = pieces[..., 1] + errors * (2.0 * pieces[..., 2])
        return result

    @property
    def is_polyhedral(self) -> bool:
        """Whether every piece is affine, so that the function is the maximum of its pieces."""
        return not self.coefficients[:, 2].any()

    def slope_range(self) -> tuple[float, float]:
        """The least and the greatest slope; a quadratic end has none, hence -inf or inf."""
        _, linear, quadratic = self.coefficients.T
        return (
            -np.inf if quadratic[0] > 0 else float(linear[0]),
            np.inf if quadratic[-1] > 0 else float(linear[-1]),
        )

    def conjugate(self, slopes: FloatArray) -> FloatArray:
        """The supremum over errors e of ``slope * e - value(e)``, for slopes within `slope_range`.

        It is attained at a knot or where a quadratic piece has this slope.
        """
        _, linear, quadratic = self.coefficients.T
        left = np.concatenate([[-np.inf], self.knots])
        right = np.concatenate([self.knots, [np.inf]])
        curved = quadratic > 0
        tangent = np.clip((slopes[:, None] - linear[curved]) / (2 * quadratic[curved]), left[curved], right[curved])
        corners = self.knots if len(self.knots) or curved.any() else np.zeros(1)
        candidates = np.concatenate([tangent, np.broadcast_to(corners, (len(slopes), len(corners)))], axis=1)
        best: FloatArray = (slopes[:, None] * candidates - self.value(candidates)).max(axis=1)
        return best

    def rescaled(self, *, error_unit: float, value_unit: float) -> "PiecewiseQuadratic":
        """The same function, of errors and with values that are counted in these units."""
        with np.errstate(over="ignore", invalid="ignore"):
            powers = np.array([1.0, error_unit, error_unit * error_unit]) / value_unit
            coefficients = self.coefficients * powers
        if not np.isfinite(coefficients).all():
            raise ProblemError(f"errors of {error_unit:g} make the loss overflow: rescale the results first.")
        scaled = object.__new__(PiecewiseQuadratic)  # which needs no check, since units make no loss less convex
        object.__setattr__(scaled, "knots", read_only(self.knots / error_unit))
        object.__setattr__(scaled, "coefficients", read_only(coefficients))
        return scaled

    def minimum(self) -> float:
        """The least value that the function takes, or -inf when it has none."""
        steepest_fall, steepest_rise = self.slope_range()
        if steepest_fall > 0 or steepest_rise < 0:
            return -np.inf
        if self.is_polyhedral and len(self.knots):
            return float(self.value(self.knots).min())
        return 0.0 - float(self.conjugate(np.zeros(1))[0])


class Loss(Described, ABC):
    """A convex loss of a scenario; subclasses say only what their `pieces` are."""

    @property
    @abstractmethod
    def pieces(self) -> PiecewiseQuadratic:
        """The loss as a function of the error, ``score - full score``."""

    def value(self, scores: ArrayLike, full_scores: ArrayLike) -> FloatArray:
        """The loss of each score of the small test, beside the full test's."""
        return self.pieces.value(np.asarray(scores, dtype=np.float64) - np.asarray(full_scores, dtype=np.float64))

    def slope(self, scores: ArrayLike, full_scores: ArrayLike) -> FloatArray:
        """A subgradient of the loss in the score."""
        return self.pieces.slope(np.asarray(scores, dtype=np.float64) - np.asarray(full_scores, dtype=np.float64))


def _must_be_positive(name: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise ProblemError(f"`{name}` must be positive and finite, got {value:g}.")
    if not np.isfinite(float(value) * float(value)):
        raise ProblemError(f"`{name}` must have a finite square, got {value:g}.")


@dataclass(frozen=True)
class AbsoluteError(Loss):
    """|score - full score|, the paper's choice."""

    name = "absolute"

    @property
    def pieces(self) -> PiecewiseQuadratic:
        """Two affine pieces."""
        return PiecewiseQuadratic(knots=[0.0], coefficients=[[0, -1, 0], [0, 1, 0]])


@dataclass(frozen=True)
class SquaredError(Loss):
    """(score - full score)²."""

    name = "squared"

    @property
    def pieces(self) -> PiecewiseQuadratic:
        """One quadratic piece."""
        return PiecewiseQuadratic(knots=[], coefficients=[[0, 0, 1]])


@dataclass(frozen=True)
class HuberError(Loss):
    """Half the squared error up to `threshold`, and its tangent beyond: large errors count in proportion only."""

    threshold: float = 0.05
    name = "huber"

    def __post_init__(self) -> None:
        """Refuse a threshold that is not positive."""
        _must_be_positive("threshold", self.threshold)

    @property
    def pieces(self) -> PiecewiseQuadratic:
        """A quadratic piece between two affine ones."""
        bend, constant = self.threshold, -0.5 * self.threshold * self.threshold
        return PiecewiseQuadratic(
            knots=[-bend, bend], coefficients=[[constant, -bend, 0], [0, 0, 0.5], [constant, bend, 0]]
        )


@dataclass(frozen=True)
class PinballError(Loss):
    """An under-estimate costs `quantile` per unit, an over-estimate ``1 - quantile``."""

    quantile: float = 0.9
    name = "pinball"

    def __post_init__(self) -> None:
        """Refuse a quantile outside [0, 1]."""
        if not 0 <= self.quantile <= 1:
            raise ProblemError(f"`quantile` must lie in [0, 1], got {self.quantile:g}.")

    @property
    def pieces(self) -> PiecewiseQuadratic:
        """Two affine pieces of different steepness."""
        return PiecewiseQuadratic(knots=[0.0], coefficients=[[0, -self.quantile, 0], [0, 1 - self.quantile, 0]])


@dataclass(frozen=True)
class EpsilonInsensitiveError(Loss):
    """Errors up to `tolerance` are free, and what exceeds it counts in proportion."""

    tolerance: float = 0.01
    name = "epsilon-insensitive"

    def __post_init__(self) -> None:
        """Refuse a tolerance that is not positive."""
        _must_be_positive("tolerance", self.tolerance)

    @property
    def pieces(self) -> PiecewiseQuadratic:
        """A flat piece between two affine ones."""
        free = self.tolerance
        return PiecewiseQuadratic(
            knots=[-free, free], coefficients=[[-free, -1.0, 0.0], [0.0, 0.0, 0.0], [-free, 1.0, 0.0]]
        )


LOSSES: dict[str, type[Loss]] = {
    kind.name: kind for kind in (AbsoluteError, SquaredError, HuberError, PinballError, EpsilonInsensitiveError)
}


def loss_from_label(label: str) -> Loss:
    """Read a loss as the command line writes it: ``absolute``, ``huber:0.05``; more numbers have commas between them.

    Examples
    --------
    >>> loss_from_label("pinball:0.8")
    PinballError(quantile=0.8)
    """
    name, colon, text = label.partition(":")
    if name not in LOSSES:
        raise ProblemError(unknown("loss", name, LOSSES))
    wanted = fields(LOSSES[name])  # type: ignore[arg-type]  # they are dataclasses
    if colon and not wanted:
        raise ProblemError(f"loss {name!r} takes no number, got {label!r}.")
    numbers = [_number_in(label, part, len(wanted)) for part in text.split(",")] if colon else []
    settled = sum(field.default is not MISSING for field in wanted)
    if not len(wanted) - settled <= len(numbers) <= len(wanted):
        names = ", ".join(field.name for field in wanted)
        raise ProblemError(f"loss {name!r} takes {len(wanted)} numbers ({names}), got {label!r}.")
    return LOSSES[name](*numbers)


def _number_in(label: str, text: str, count: int) -> float:
    try:
        return float(text)
    except ValueError:
        example = f"{label.partition(':')[0]}:{','.join(['0.1'] * count)}"
        raise ProblemError(f"loss {label!r}: {text!r} is not a number. Write for instance {example}.") from None
