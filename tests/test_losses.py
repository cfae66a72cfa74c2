import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import losses

import rposst_opt as ro
from rposst_opt.arrays import FloatArray
from rposst_opt.losses import LOSSES, loss_from_label

numbers = st.floats(-10, 10) | st.integers(-8, 8).map(lambda quarters: quarters / 4)


def cost(loss: ro.Loss, score: float, full_score: float) -> float:
    """The loss by the words of its docstring."""
    error = score - full_score
    if isinstance(loss, ro.AbsoluteError):
        return abs(error)
    if isinstance(loss, ro.SquaredError):
        return error**2
    if isinstance(loss, ro.HuberError):
        t = loss.threshold
        return error**2 / 2 if abs(error) <= t else t * (abs(error) - t / 2)
    if isinstance(loss, ro.PinballError):
        return loss.quantile * -error if error < 0 else (1 - loss.quantile) * error
    assert isinstance(loss, ro.EpsilonInsensitiveError)
    return max(abs(error) - loss.tolerance, 0.0)


@st.composite
def convex_tables(draw: st.DrawFn, *, affine: bool = False) -> ro.PiecewiseQuadratic:
    """Convex piecewise quadratic functions with up to five pieces, in quarters, so that all sums are exact."""
    n_knots = draw(st.integers(0, 4))
    quarters = st.integers(-12, 12).map(lambda number: number / 4)
    rises = st.integers(0, 6).map(lambda number: number / 4)
    knots = sorted(draw(st.sets(quarters, min_size=n_knots, max_size=n_knots)))
    curvatures = [0.0 if affine else draw(st.sampled_from([0.0, 0.25, 1.0, 2.0])) for _ in range(n_knots + 1)]
    here = knots[0] if knots else 0.0
    value, slope = draw(quarters), draw(quarters)
    coefficients: list[list[float]] = []
    for piece, curvature in enumerate(curvatures):
        if piece > 0:
            value, slope = evaluate(coefficients[-1], knots[piece - 1])
            here, slope = knots[piece - 1], slope + draw(rises)
        linear = slope - 2 * curvature * here
        coefficients.append([value - here * (linear + here * curvature), linear, curvature])
    return ro.PiecewiseQuadratic(knots=knots, coefficients=coefficients)


def evaluate(piece: list[float], error: float) -> tuple[float, float]:
    constant, linear, quadratic = piece
    return constant + linear * error + quadratic * error**2, linear + 2 * quadratic * error


def value_at(table: ro.PiecewiseQuadratic, error: float) -> float:
    piece = sum(error > knot for knot in table.knots.tolist())
    return evaluate(table.coefficients[piece].tolist(), error)[0]


@given(losses(), numbers, numbers)
def test_a_loss_costs_what_its_docstring_says(loss: ro.Loss, score: float, target: float) -> None:
    assert loss.value([score], [target])[0] == pytest.approx(cost(loss, score, target), rel=1e-12, abs=1e-12)


@given(losses(), st.lists(st.tuples(numbers, numbers), max_size=5))
def test_a_loss_takes_many_scores_at_once(loss: ro.Loss, pairs: list[tuple[float, float]]) -> None:
    scores, targets = [score for score, _ in pairs], [target for _, target in pairs]
    expected = [cost(loss, score, target) for score, target in pairs]
    assert loss.value(scores, targets).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert loss.slope(scores, targets).shape == (len(pairs),)


@given(losses(), numbers, numbers, numbers)
def test_the_slope_of_a_loss_is_a_subgradient(loss: ro.Loss, here: float, there: float, target: float) -> None:
    tangent = loss.value([here], [target])[0] + loss.slope([here], [target])[0] * (there - here)
    assert loss.value([there], [target])[0] >= tangent - 1e-10


@given(losses(), numbers, numbers, numbers, st.floats(0, 1))
def test_a_loss_is_convex_in_the_score(loss: ro.Loss, first: float, second: float, target: float, share: float) -> None:
    between, at_first, at_second = loss.value([share * first + (1 - share) * second, first, second], target)
    assert between <= share * at_first + (1 - share) * at_second + 1e-10


@given(losses(), numbers)
def test_a_right_score_costs_nothing(loss: ro.Loss, target: float) -> None:
    assert loss.value([target], [target])[0] == 0
    assert loss.pieces.minimum() == 0


def test_slopes_where_they_are_unique() -> None:
    scores, targets = np.array([0.2, 0.7]), np.full(2, 0.5)
    chosen: list[tuple[ro.Loss, list[float]]] = [
        (ro.AbsoluteError(), [-1, 1]),
        (ro.SquaredError(), [-0.6, 0.4]),
        (ro.HuberError(0.25), [-0.25, 0.2]),
        (ro.PinballError(0.75), [-0.75, 0.25]),
        (ro.EpsilonInsensitiveError(0.25), [-1, 0]),
    ]
    for loss, slopes in chosen:
        np.testing.assert_allclose(loss.slope(scores, targets), slopes, atol=1e-15)


def test_the_slope_where_two_pieces_meet_is_that_of_the_left_one() -> None:
    assert ro.AbsoluteError().slope([0.5], [0.5])[0] == -1
    assert ro.EpsilonInsensitiveError(0.25).slope([-0.25, 0.25], 0.0).tolist() == [-1, 0]


@given(losses())
def test_a_loss_is_polyhedral_unless_it_is_squared_somewhere(loss: ro.Loss) -> None:
    assert loss.pieces.is_polyhedral == (not isinstance(loss, ro.SquaredError | ro.HuberError))


@given(losses() | st.builds(ro.PinballError, st.sampled_from([0.0, 1.0])), numbers)
def test_a_polyhedral_loss_is_the_greatest_of_its_affine_pieces(loss: ro.Loss, error: float) -> None:
    if loss.pieces.is_polyhedral:
        greatest = max(constant + slope * error for constant, slope, _ in loss.pieces.coefficients)
        assert loss.value([error], [0.0])[0] == pytest.approx(greatest, abs=1e-12)


# Tables of quadratic pieces.


@given(convex_tables(), st.integers(-40, 40), st.integers(-40, 40))
def test_a_table_has_the_value_of_the_piece_and_a_subgradient_as_slope(
    table: ro.PiecewiseQuadratic, eighths: int, other_eighths: int
) -> None:
    here, there = eighths / 8, other_eighths / 8
    value, slope = table.value(np.array([here]))[0], table.slope(np.array([here]))[0]
    assert value == value_at(table, here)
    assert value_at(table, there) >= value + slope * (there - here)


@given(convex_tables(affine=True), st.integers(-40, 40))
def test_a_table_of_affine_pieces_is_the_greatest_of_them(table: ro.PiecewiseQuadratic, eighths: int) -> None:
    error = eighths / 8
    assert table.is_polyhedral
    assert table.value(np.array([error]))[0] == max(evaluate(piece, error)[0] for piece in table.coefficients.tolist())


@given(convex_tables())
def test_the_minimum_is_the_least_value(table: ro.PiecewiseQuadratic) -> None:
    (_, first_slope, first_curvature), (_, last_slope, last_curvature) = table.coefficients[[0, -1]].tolist()
    if (first_curvature == 0 and first_slope > 0) or (last_curvature == 0 and last_slope < 0):
        assert table.minimum() == -math.inf
        return
    grid = np.linspace(-100, 100, 40_001)  # no vertex is farther out, and steps of 1/200 miss one by 2/400² at most
    least = table.value(grid).min()
    assert least - 2e-5 <= table.minimum() <= least + 1e-12


@given(convex_tables(), st.floats(-1, 1))
def test_the_conjugate_is_how_far_a_line_through_the_origin_can_rise_above_the_function(
    table: ro.PiecewiseQuadratic, place: float
) -> None:
    least, greatest = table.slope_range()
    grid = np.linspace(-100, 100, 40_001)  # it has all knots, and misses a tangent point by 1/400 at most
    slopes = table.slope(np.array([-30.0, 30.0]))
    slope = float(np.clip(slopes.mean() + place * np.ptp(slopes) / 2, least, greatest))
    highest = (slope * grid - table.value(grid)).max()
    assert highest - 1e-9 <= table.conjugate(np.array([slope]))[0] <= highest + 2e-5


@given(convex_tables())
def test_the_slope_range_holds_all_slopes_and_no_more(table: ro.PiecewiseQuadratic) -> None:
    far = table.slope(np.array([-1e6, 1e6]))
    for end, curvature, slope in zip(table.slope_range(), table.coefficients[[0, -1], 2], far, strict=True):
        assert end == (math.copysign(math.inf, slope) if curvature > 0 else slope)


@pytest.mark.parametrize(
    ("knots", "coefficients", "least"),
    [
        ([], [[3, 0, 0]], 3),
        ([], [[3, 1, 0]], -math.inf),
        ([], [[3, -1, 0]], -math.inf),
        ([], [[3, -2, 1]], 2),
        ([0], [[1, -1, 0], [1, 0, 0]], 1),
        ([0], [[1, 0, 0], [1, 2, 0]], 1),
        ([0], [[-1, -1, 0], [-1, 0, 1]], -1),
        ([0], [[0, 1, 0], [0, 2, 0]], -math.inf),
    ],
)
def test_the_minimum_of_small_tables(knots: list[float], coefficients: list[list[float]], least: float) -> None:
    assert ro.PiecewiseQuadratic(knots=knots, coefficients=coefficients).minimum() == least


def test_a_table_keeps_its_own_copy_and_cannot_be_changed() -> None:
    knots, coefficients = np.zeros(1), np.array([[0.0, -1, 0], [0, 1, 0]])
    table = ro.PiecewiseQuadratic(knots=knots, coefficients=coefficients)
    knots[0], coefficients[0, 1] = 5, 5
    assert table.value(np.array([-2.0, 3.0])).tolist() == [2, 3]
    for array in (table.knots, table.coefficients):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


ABSOLUTE = [[0.0, -1, 0], [0, 1, 0]]

BAD_TABLES: list[tuple[object, object, str]] = [
    ([0.0], [[0, 1, 0], [0, -1, 0]], "a loss must be convex: its slope may not decrease."),
    ([], [[0, 0, -1]], "a loss must be convex: its slope may not decrease."),
    ([0.0], [[0, 0, 1], [0, -1, 1]], "a loss must be convex: its slope may not decrease."),
    ([0.0], [[0, -1, 0], [0.1, 1, 0]], "the pieces of a loss must meet at its knots."),
    ([1.0], [[0, -1, 0], [0, 1, 0]], "the pieces of a loss must meet at its knots."),
    ([1.0, 0.0], [[0, -1, 0], [0, 0, 0], [0, 1, 0]], "the knots of a loss must ascend."),
    ([0.0, 0.0], [[0, -1, 0], [0, 0, 0], [0, 1, 0]], "the knots of a loss must ascend."),
    ([], ABSOLUTE, "a loss with 0 knots must have .*, got 2."),
    ([0.0], [[0, 1, 0]], "a loss with 1 knots must have .*, got 1."),
    ([], [], "a loss with 0 knots must have .*, got 0."),
    ([math.nan], ABSOLUTE, "the knots and coefficients of a loss must be finite."),
    ([0.0], [[0, math.nan, 0], [0, 1, 0]], "the knots and coefficients of a loss must be finite."),
    ([0.0], [[0, -math.inf, 0], [0, 1, 0]], "the knots and coefficients of a loss must be finite."),
]


@pytest.mark.parametrize(("knots", "coefficients", "message"), BAD_TABLES)
def test_a_table_that_is_no_convex_function_is_refused(knots: object, coefficients: object, message: str) -> None:
    with pytest.raises(ro.ProblemError, match=message):
        ro.PiecewiseQuadratic(knots=knots, coefficients=coefficients)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "coefficients",
    [
        [[0, -1], [0, 1]],  # constant and slope, no curvature
        [[0, 0], [-1, 1], [0, 0]],  # a column per piece
        [["zero", -1, 0], [0, 1, 0]],
    ],
)
def test_coefficients_of_another_shape_are_refused_and_never_rearranged(coefficients: list[object]) -> None:
    with pytest.raises(ro.ProblemError, match="coefficients"):
        ro.PiecewiseQuadratic(knots=[0.0], coefficients=coefficients)  # type: ignore[arg-type]


# Losses as text.


@given(losses())
def test_a_loss_can_be_written_down_and_read_back(loss: ro.Loss) -> None:
    assert loss_from_label(loss.label) == loss


@pytest.mark.parametrize(
    ("label", "loss"),
    [
        ("absolute", ro.AbsoluteError()),
        ("squared", ro.SquaredError()),
        ("huber", ro.HuberError()),
        ("huber:0.05", ro.HuberError(0.05)),
        ("huber:1e-3", ro.HuberError(0.001)),
        ("pinball:0.8", ro.PinballError(0.8)),
        ("epsilon-insensitive:0.02", ro.EpsilonInsensitiveError(0.02)),
    ],
)
def test_a_label_names_a_loss_and_its_number(label: str, loss: ro.Loss) -> None:
    assert loss_from_label(label) == loss


def test_the_label_is_short_where_the_number_is() -> None:
    labels = [ro.AbsoluteError().label, ro.HuberError(0.05).label, ro.EpsilonInsensitiveError(0.02).label]
    assert labels == ["absolute", "huber:0.05", "epsilon-insensitive:0.02"]


BAD_LABELS = [
    ("cubic", f"unknown loss 'cubic'. Known: {', '.join(LOSSES)}."),
    ("", f"unknown loss ''. Known: {', '.join(LOSSES)}."),
    ("Huber:1", f"unknown loss 'Huber': did you mean 'huber'? Known: {', '.join(LOSSES)}."),
    ("absolute:1", "loss 'absolute' takes no number, got 'absolute:1'."),
    ("squared:", "loss 'squared' takes no number, got 'squared:'."),
    ("huber:wide", "loss 'huber:wide': 'wide' is not a number. Write for instance huber:0.1."),
    ("huber:", "loss 'huber:': '' is not a number."),
    ("huber:0.1:0.2", "loss 'huber:0.1:0.2': '0.1:0.2' is not a number."),
    ("huber:nan", "`threshold` must be positive and finite, got nan."),
    ("pinball:2", "`quantile` must lie in [0, 1], got 2."),
]


@pytest.mark.parametrize(("label", "message"), BAD_LABELS, ids=[label for label, _ in BAD_LABELS])
def test_a_label_that_names_no_loss_is_refused(label: str, message: str) -> None:
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        loss_from_label(label)


@dataclass(frozen=True)
class DeadZone(ro.Loss):
    low: float
    high: float = 0.5

    @property
    def pieces(self) -> ro.PiecewiseQuadratic:
        return ro.PiecewiseQuadratic(
            knots=[self.low, self.high], coefficients=[[self.low, -1.0, 0.0], [0.0, 0.0, 0.0], [-self.high, 1.0, 0.0]]
        )


@pytest.fixture
def dead_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOSSES, DeadZone.name, DeadZone)


@pytest.mark.usefixtures("dead_zone")
def test_a_label_may_have_more_numbers_than_one() -> None:
    assert loss_from_label("dead-zone:-0.1,0.3") == DeadZone(-0.1, 0.3)
    assert loss_from_label("dead-zone:-0.1") == DeadZone(-0.1, 0.5)
    assert loss_from_label(DeadZone(-0.2, 0.25).label) == DeadZone(-0.2, 0.25)


@pytest.mark.usefixtures("dead_zone")
@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("dead-zone", "loss 'dead-zone' takes 2 numbers (low, high), got 'dead-zone'."),
        ("dead-zone:0,1,2", "loss 'dead-zone' takes 2 numbers (low, high), got 'dead-zone:0,1,2'."),
        ("dead-zone:0,", "loss 'dead-zone:0,': '' is not a number. Write for instance dead-zone:0.1,0.1."),
    ],
)
def test_a_label_with_too_few_or_too_many_numbers_is_refused(label: str, message: str) -> None:
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        loss_from_label(label)


BAD_PARAMETERS: list[tuple[Callable[[float], ro.Loss], float, str]] = [
    (ro.HuberError, 0.0, "`threshold` must be positive and finite, got 0."),
    (ro.HuberError, -1.0, "`threshold` must be positive and finite, got -1."),
    (ro.HuberError, math.inf, "`threshold` must be positive and finite, got inf."),
    (ro.PinballError, -0.1, "`quantile` must lie in [0, 1], got -0.1."),
    (ro.PinballError, 1.1, "`quantile` must lie in [0, 1], got 1.1."),
    (ro.PinballError, math.nan, "`quantile` must lie in [0, 1], got nan."),
    (ro.EpsilonInsensitiveError, 0.0, "`tolerance` must be positive and finite, got 0."),
    (ro.EpsilonInsensitiveError, math.nan, "`tolerance` must be positive and finite, got nan."),
]


@pytest.mark.parametrize(("kind", "number", "message"), BAD_PARAMETERS)
def test_a_wrong_number_is_refused(kind: Callable[[float], ro.Loss], number: float, message: str) -> None:
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        kind(number)


def test_a_threshold_whose_square_overflows_is_refused() -> None:
    with pytest.raises(ro.ProblemError, match=r"threshold|finite"):
        ro.Problem(results=[[0.0, 1.0]], size=1, loss=ro.HuberError(1e200))


class Hinge(ro.Loss):
    """A loss that the package does not know: only scores above the full score cost."""

    name = "hinge"

    @property
    def pieces(self) -> ro.PiecewiseQuadratic:
        return ro.PiecewiseQuadratic(knots=[0.0], coefficients=[[0, 0, 0], [0, 1, 0]])


def test_a_loss_of_ones_own_needs_only_its_pieces() -> None:
    values: FloatArray = Hinge().value([0.25, 1.0], 0.5)
    assert values.tolist() == [0, 0.5]
    assert Hinge().slope([0.25, 1.0], 0.5).tolist() == [0, 1]
    assert Hinge().label == "hinge"
