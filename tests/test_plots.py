"""Pictures show the numbers of their tables, take any name, and leave matplotlib as it was."""

import inspect
import io
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot, rc_context, rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from matplotlib.tri import TriContourSet

import rposst_opt as ro
from rposst_opt import analysis, plots
from rposst_opt.reports import looks

NASTY_NAMES = (
    r"$x_1$ costs $\frac$ %",
    "a very long name " * 9,
    "<b>bold & brave</b>",
    "",
    "naïve λ→∞ 漢字 🚀 \x00\nsecond\tline",
    r"_\alpha_{",
)


SHORT_NAMES = tuple("abcdef")


def problem_of(names: tuple[str, ...] = SHORT_NAMES) -> ro.Problem:
    rng = np.random.default_rng(1)
    return ro.Problem(
        results=rng.random((6, 6)),
        size=2,
        measure=ro.CVaR(0.3),
        targets=rng.dirichlet(np.ones(6), 3),
        case_names=names,
        policy_names=names,
    )


@cache
def tables_of(names: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    return all_tables(problem_of(names))


@cache
def tables_of_sameness() -> dict[str, pd.DataFrame]:
    return all_tables(ro.Problem(results=np.full((6, 2), 0.5), size=2))


def all_tables(problem: ro.Problem) -> dict[str, pd.DataFrame]:
    test = problem.test(cases=[0, 3], weights=[0.4, 0.6])
    return {
        "tail_profile": analysis.tail_profile(ro.KOfN(2, 9), 12),
        "k_of_n_table": analysis.k_of_n_table(problem, test, ks=[1, 3], ns=[3, 10, 90]),
        "objective_surface": analysis.objective_surface(problem, [0, 1, 4], steps=10),
        "closing_in": analysis.closing_in(problem, [0, 1, 4], rounds=50),
        "sweep": analysis.sweep(problem, tail_fractions=[0.0, 0.2, 0.6, 1.0]),
        "size_curve": analysis.size_curve(problem, [1, 2, 3, 4]),
        "sensitivity": analysis.sensitivity(problem),
    }


@pytest.fixture
def tables() -> dict[str, pd.DataFrame]:
    return {name: table.copy() for name, table in tables_of(SHORT_NAMES).items()}


NAMES = sorted(
    name
    for name, function in inspect.getmembers(analysis, inspect.isfunction)
    if function.__module__ == analysis.__name__ and not name.startswith("_")
)


def draw(name: str, table: pd.DataFrame) -> Figure:
    function: Callable[[pd.DataFrame], Figure] = getattr(plots, name)
    return function(table)


def picture(figure: Figure) -> np.ndarray:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=80)
    buffer.seek(0)
    return np.asarray(imread(buffer))


@dataclass(frozen=True)
class Drawn:
    """A figure, its picture, and the table that it was drawn from, as drawing has left it."""

    figure: Figure
    picture: np.ndarray
    table: pd.DataFrame


@cache
def drawn_of(name: str, names: tuple[str, ...]) -> Drawn:
    """For tests that only look, at whatever number of dots."""
    table = tables_of(names)[name].copy()
    figure = draw(name, table)
    return Drawn(figure, picture(figure), table)


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in visible_texts(figure)]


def visible_texts(figure: Figure) -> list[Text]:
    """Texts that are drawn: matplotlib keeps ticks beyond the axes' limits, and does not draw them."""
    hidden = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not low - 1e-9 <= tick.get_loc() <= high + 1e-9:
                hidden |= {id(tick.label1), id(tick.label2)}
        if not axis.axes.axison:
            hidden |= {id(label) for label in axis.findobj(Text)}
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    return [text for text in texts if text.get_text() and text.get_visible() and id(text) not in hidden]


def line(axes: Axes, label: str) -> Line2D:
    (found,) = (each for each in axes.get_lines() if each.get_label() == label)
    return found


def check_line(drawn: Line2D, across: object, up: object) -> None:
    np.testing.assert_array_equal(drawn.get_xdata(), np.asarray(across))
    np.testing.assert_array_equal(drawn.get_ydata(), np.asarray(up))


# Every picture.


def test_each_table_of_analysis_has_its_picture() -> None:
    assert len(NAMES) == 7
    for name in NAMES:
        assert callable(getattr(plots, name))


@pytest.mark.parametrize("name", NAMES)
def test_every_picture_is_one_and_is_seven_inches_wide(name: str, tables: dict[str, pd.DataFrame]) -> None:
    drawn = drawn_of(name, SHORT_NAMES)
    assert isinstance(drawn.figure, Figure)
    assert drawn.picture.shape[1] == 7 * 80
    assert drawn.picture[..., :3].std() > 0.02  # something is on it
    pd.testing.assert_frame_equal(drawn.table, tables[name])


def test_a_notebook_shows_a_picture_though_nobody_imports_pyplot(tables: dict[str, pd.DataFrame]) -> None:
    shown = draw("size_curve", tables["size_curve"])
    assert isinstance(shown, looks.Picture)
    png, size = shown._repr_png_()
    drawn = imread(io.BytesIO(png))
    assert drawn.shape[:2] == (2 * size["height"], 2 * size["width"]) and size["width"] == 7 * 96


@pytest.mark.parametrize("name", NAMES)
def test_matplotlib_is_as_it_was(name: str, tables: dict[str, pd.DataFrame]) -> None:
    figures = pyplot.get_fignums()
    with rc_context({"font.size": 17, "axes.grid": False, "text.parse_math": True}):
        before = dict(rcParams)
        figure = draw(name, tables[name])
        with pytest.raises(KeyError):
            draw(name, pd.DataFrame({"unknown": [1]}))
        assert dict(rcParams) == before
        picture(figure)  # ticks that are made now would have the user's style instead
    assert pyplot.get_fignums() == figures
    labels = [label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()]
    assert labels
    assert {label.get_fontsize() for label in labels} == {8.0}
    assert not any(text.get_parse_math() for text in visible_texts(figure))


@pytest.mark.parametrize("names", [SHORT_NAMES, NASTY_NAMES], ids=["short", "nasty"])
@pytest.mark.parametrize("name", NAMES)
def test_no_words_overlap_or_leave_the_picture(name: str, names: tuple[str, ...]) -> None:
    figure = drawn_of(name, names).figure
    figure.set_dpi(100)
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in visible_texts(figure)]
    for text, box in boxes:
        assert -1 <= box.x0 <= box.x1 <= figure.bbox.width + 1, text
        assert -1 <= box.y0 <= box.y1 <= figure.bbox.height + 1, text
    for (first, box), (second, other) in itertools.combinations(boxes, 2):
        common = Bbox.intersection(box, other)
        assert common is None or min(common.width, common.height) < 2, (first, second)


# Names.


def test_names_are_drawn_as_they_are_or_shortened() -> None:
    figures = [
        plots.objective_surface(analysis.objective_surface(problem_of(NASTY_NAMES), [0, 1, 3], steps=3)),
        plots.objective_surface(analysis.objective_surface(problem_of(NASTY_NAMES), [2, 4, 5], steps=3)),
    ]
    for figure in figures:
        picture(figure)
    corners = [text.split("\n")[1] for figure in figures for text in words(figure) if text.startswith("only\n")]
    assert corners == [
        r"$x_1$ costs $\frac$ %",
        "a very long name a very l…",
        "(no name)",
        "<b>bold & brave</b>",
        "naïve λ→∞ □□ □ □ second l…",
        r"_\alpha_{",
    ]


def test_labels_of_lines_and_bars_take_any_name() -> None:
    problem = problem_of(NASTY_NAMES)
    profile = analysis.tail_profile(ro.Mean(), 3)
    shown = analysis.sensitivity(problem)
    shown["cost"] = np.arange(len(shown), dtype=float)
    for figure in (
        plots.tail_profile(*[profile] * 6, labels=NASTY_NAMES),
        plots.closing_in(analysis.closing_in(problem, range(6), rounds=5), labels=NASTY_NAMES),
        plots.sensitivity(shown),
    ):
        picture(figure)
        drawn = words(figure)
        assert {r"$x_1$ costs $\frac$ %", "a very long name a very l…", "(no name)", r"_\alpha_{"} <= set(drawn)
        assert not any(text.get_parse_math() for text in visible_texts(figure))
        assert max(len(line) for text in drawn if "name" in text for line in text.split("\n")) <= looks.LONGEST_NAME


def test_a_font_of_the_users_own_decides_which_letters_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rcParams, "font.family", ["DejaVu Sans Mono"])
    assert looks.short("λ漢") == "λ□"
    monkeypatch.setitem(rcParams, "font.family", ["STIXGeneral", "DejaVu Sans"])
    assert looks.short("λ漢") == "λ□"


def test_labels_must_fit() -> None:
    profile = analysis.tail_profile(ro.Mean(), 3)
    with pytest.raises(ro.ProblemError, match="at least one table"):
        plots.tail_profile()
    with pytest.raises(ro.ProblemError, match="one entry per profile, 1 in all, got 2"):
        plots.tail_profile(profile, labels=["a", "b"])
    with pytest.raises(ro.ProblemError, match="one entry per case, 2 in all, got 1"):
        plots.closing_in(analysis.closing_in(problem_of(), [0, 1], rounds=2), labels=["a"])


# What is drawn.


def test_profiles_are_curves_from_the_origin_and_steps() -> None:
    profiles = [analysis.tail_profile(measure, d) for measure, d in ((ro.CVaR(0.25), 5), (ro.KOfN(1, 3), 8))]
    figure = plots.tail_profile(*profiles, labels=["CVaR", "1 of 3"])
    curve, steps = figure.axes
    stairs = [patch for patch in steps.patches if isinstance(patch, StepPatch)]
    for profile, label, stair in zip(profiles, ("CVaR", "1 of 3"), stairs, strict=True):
        check_line(line(curve, label), [0, *profile["tail"]], [0, *profile["tail_weight"]])
        weights, edges, _ = stair.get_data()
        np.testing.assert_array_equal(weights, profile["weight"])
        np.testing.assert_array_equal(edges, np.arange(len(profile) + 1) + 0.5)
        assert stair.get_edgecolor() == pytest.approx(to_rgba(line(curve, label).get_color()))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["CVaR", "1 of 3"]
    assert not plots.tail_profile(profiles[0]).legends
    numbered = plots.tail_profile(*profiles).legends[0]
    assert [text.get_text() for text in numbered.get_texts()] == ["profile 1", "profile 2"]


def test_k_of_n_is_a_line_per_k_with_its_limit_dashed(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["k_of_n_table"]
    figure = plots.k_of_n_table(table.sample(frac=1.0, random_state=3))
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert len(axes.get_lines()) == 4
    for k, rows in table.groupby("k"):
        drawn = line(axes, f"k = {k}")
        check_line(drawn, rows["n"], rows["k_of_n"])
        (limit,) = (each for each in axes.get_lines() if each is not drawn and each.get_color() == drawn.get_color())
        check_line(limit, rows["n"], rows["cvar"])
        assert limit.is_dashed()
        assert not drawn.is_dashed()
    assert "10" in words(figure)
    (narrow,) = plots.k_of_n_table(table[table["n"] < 20]).axes
    assert narrow.get_xscale() == "linear"


def slope_along_the_second_case(steps: int = 12) -> pd.DataFrame:
    rows = [
        ("p", "q", "r", first / steps, second / steps, 1 - first / steps - second / steps, second / steps)
        for first in range(steps + 1)
        for second in range(steps + 1 - first)
    ]
    columns = ["case_1", "case_2", "case_3", "weight_1", "weight_2", "weight_3", "objective"]
    return pd.DataFrame(rows, columns=columns)


def test_the_surface_rises_towards_its_own_corner() -> None:
    table = slope_along_the_second_case()
    figure = plots.objective_surface(table)
    axes = figure.axes[0]
    at = {text.get_text(): np.array(text.xy) for text in axes.texts}  # type: ignore[attr-defined]
    corners = np.array([at["only\np"], at["only\nq"], at["only\nr"]])
    (filled,) = (each for each in axes.collections if isinstance(each, TriContourSet))
    levels = np.asarray(filled.levels)
    checked = 0
    for row in table.to_dict("records"):
        weights = np.array([row["weight_1"], row["weight_2"], row["weight_3"]])
        if weights.min() > 0.01 and np.abs(levels - row["objective"]).min() > 1e-3:
            inside = [path.contains_point(weights @ corners) for path in filled.get_paths()]
            (level,) = np.flatnonzero(inside)
            assert levels[level] < row["objective"] < levels[level + 1]
            checked += 1
    assert checked > 20


def test_the_least_point_of_the_surface_is_marked(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["objective_surface"]
    figure = plots.objective_surface(table)
    axes = figure.axes[0]
    at = {text.get_text(): np.array(text.xy) for text in axes.texts}  # type: ignore[attr-defined]
    least = table.to_dict("records")[int(table["objective"].argmin())]
    place = sum(least[f"weight_{corner}"] * at[f"only\n{name}"] for corner, name in enumerate("abe", start=1))
    (star,) = (each for each in axes.get_lines() if each.get_marker() == "*")
    np.testing.assert_allclose(np.asarray(star.get_xydata(), dtype=float), [place])
    shares = ", ".join(f"{least[f'weight_{corner}']:.3g}" for corner in (1, 2, 3))
    assert figure.get_suptitle() == f"least objective {least['objective']:.4g} (star), at weights {shares}"


def test_closing_in_draws_rounds_gap_and_weights(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["closing_in"]
    values, shares = plots.closing_in(table, labels=["a", "b", "e"]).axes
    check_line(line(values, "this round's test"), table["round"], table["objective"])
    check_line(line(values, "best test so far"), table["round"], table["best"])
    check_line(line(values, "proved lower bound"), table["round"], table["lower_bound"])
    (gap,) = values.collections
    edge = {(round(float(x), 9), round(float(y), 9)) for x, y in np.asarray(gap.get_paths()[0].vertices)}
    for column in ("best", "lower_bound"):
        assert {(number, round(value, 9)) for number, value in zip(table["round"], table[column], strict=True)} <= edge
    for place, label in enumerate("abe"):
        check_line(line(shares, label), table["round"], [weights[place] for weights in table["weights"]])
    low, high = values.get_ylim()
    assert low < table["lower_bound"].iloc[-1] <= table["objective"].max() < high
    unnamed = plots.closing_in(table).axes[1]
    assert [each.get_label() for each in unnamed.get_lines()] == ["case 1", "case 2", "case 3"]


def test_many_weights_are_drawn_and_some_named() -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((20, 4)), size=3)
    shares = plots.closing_in(analysis.closing_in(problem, range(20), rounds=3)).axes[1]
    assert len(shares.get_lines()) == 20
    legend = shares.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][-2:] == ["case 12", "and 8 more"]


def test_one_round_alone_is_seen() -> None:
    figure = plots.closing_in(analysis.closing_in(problem_of(), [2], rounds=1))
    assert {each.get_marker() for axes in figure.axes for each in axes.get_lines()} == {"o"}


def test_a_sweep_draws_three_losses_in_the_order_of_fractions(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["sweep"]
    (axes,) = plots.sweep(table.iloc[::-1]).axes
    check_line(line(axes, "worst loss"), table["tail_fraction"], table["worst_loss"])
    check_line(line(axes, "objective: mean of\nthe worst share"), table["tail_fraction"], table["objective"])
    check_line(line(axes, "mean loss"), table["tail_fraction"], table["mean_loss"])
    assert "not proved optimal" not in [each.get_label() for each in axes.get_lines()]


def answers(column: str, places: list[float]) -> pd.DataFrame:
    """A table as a time limit leaves it: proved, with a gap, without a bound, without a test."""
    return pd.DataFrame(
        {
            column: places,
            "objective": [0.8, 0.5, 0.4, np.inf],
            "lower_bound": [0.8, 0.3, -np.inf, -np.inf],
            "status": ["optimal", "feasible", "feasible", "no_test"],
            "mean_loss": [0.3, 0.25, 0.2, np.nan],
            "worst_loss": [0.9, 0.8, 0.7, np.nan],
        }
    )


def test_a_sweep_tells_what_is_not_proved_and_what_is_missing() -> None:
    table = answers("tail_fraction", [0.1, 0.2, 0.5, 0.9])
    figure = plots.sweep(table)
    (axes,) = figure.axes
    check_line(line(axes, "not proved optimal"), [0.2, 0.5], [0.5, 0.4])
    check_line(line(axes, "worst loss"), table["tail_fraction"], [0.9, 0.8, 0.7, np.nan])
    assert "no test was found in 1 of 4 runs" in words(figure)
    assert np.isfinite(axes.get_ylim()).all()


def test_sizes_are_drawn_with_their_values(tables: dict[str, pd.DataFrame]) -> None:
    table = tables["size_curve"]
    figure = plots.size_curve(table.iloc[::-1])
    (axes,) = figure.axes
    check_line(axes.get_lines()[0], table["size"], table["objective"])
    check_line(line(axes, "proved optimal"), table["size"], table["objective"])
    assert not axes.collections
    assert {f"{objective:.3g}" for objective in table["objective"]} <= set(words(figure))


def test_sizes_have_an_interval_where_they_are_not_proved() -> None:
    figure = plots.size_curve(answers("size", [1, 2, 3, 4]))
    (axes,) = figure.axes
    check_line(axes.get_lines()[0], [1, 2, 3, 4], [0.8, 0.5, 0.4, np.nan])
    check_line(line(axes, "proved optimal"), [1], [0.8])
    check_line(line(axes, "not proved"), [2, 3], [0.5, 0.4])
    bounded, unbounded = axes.collections
    np.testing.assert_array_equal(bounded.get_paths()[0].vertices, [[2, 0.3], [2, 0.5]])
    np.testing.assert_array_equal(unbounded.get_paths()[0].vertices, [[3, axes.get_ylim()[0]], [3, 0.4]])
    assert [bounded.get_label(), unbounded.get_label()] == ["down to the\nlower bound", "no lower bound"]
    assert "no test was found in 1 of 4 runs" in words(figure)


def test_many_sizes_are_not_annotated() -> None:
    table = pd.concat([answers("size", [1, 2, 3, 4])] * 8, ignore_index=True).assign(size=range(1, 33))
    assert "0.8" not in [text.get_text() for text in plots.size_curve(table).axes[0].texts]


def left_outs(costs: list[float], kinds: list[str]) -> pd.DataFrame:
    rows = [("nothing", -1, "", 0.0), *zip(kinds, range(len(costs)), map(str, range(len(costs))), costs, strict=True)]
    table = pd.DataFrame(rows, columns=["left_out", "position", "name", "cost"])
    return table.assign(worst_loss=1.0, judged_by_all=table["cost"] + 0.5)


def test_sensitivity_draws_the_costliest_on_top() -> None:
    table = left_outs([0.1, 0.0, 0.3, 1e-15, 0.2], ["policy", "policy", "policy", "target", "target"])
    figure = plots.sensitivity(table)
    (axes,) = figure.axes
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert [bar.get_width() for bar in bars] == [0.3, 0.2, 0.1]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["2", "target 4", "0"]
    bottom, top = axes.get_ylim()
    assert bottom > top
    assert len({bar.get_facecolor() for bar in bars}) == 2
    assert bars[0].get_facecolor() == bars[2].get_facecolor()
    assert bars[1].get_hatch()  # to be told apart in grey
    assert figure.get_suptitle() == "Left out one by one, 2 of 5 policies and targets cost nothing."
    assert {"0.3", "0.2", "0.1", "policy", "target"} <= set(words(figure))


def test_sensitivity_keeps_the_order_of_costs_that_differ_by_rounding() -> None:
    figure = plots.sensitivity(left_outs([0.1, 0.2, 0.1 + 1e-16, 0.1 - 1e-16], ["policy"] * 4))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["1", "0", "2", "3"]
    assert figure.get_suptitle() == "Left out one by one, each of 4 policies and targets costs something."


def test_sensitivity_counts_what_it_does_not_show() -> None:
    costs = [*np.linspace(1, 2, 30).tolist(), 0.0, np.inf, np.nan]
    figure = plots.sensitivity(left_outs(costs, ["policy"] * 33))
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)] == costs[29:9:-1]
    assert figure.get_suptitle() == (
        "Left out one by one, 1 of 33 policies and targets cost nothing; of the other 30, the 20 costliest are shown; "
        "for 2 there is no test to compare."
    )


# Tables without a test, and all alike.


@pytest.mark.parametrize("name", ["size_curve", "sweep", "sensitivity"])
def test_tables_without_any_test_make_a_picture(name: str) -> None:
    options: dict[str, Any] = {"backend": "scipy-milp", "time_limit_seconds": 0.0}
    table = {
        "size_curve": lambda: analysis.size_curve(problem_of(), [1, 2], **options),
        "sweep": lambda: analysis.sweep(problem_of(), tail_fractions=[0.1, 0.9], **options),
        "sensitivity": lambda: analysis.sensitivity(problem_of(), **options),
    }[name]()
    assert set(table["status"]) == {"no_test"}
    figure = draw(name, table)
    picture(figure)
    missing = "for 9 there is no test to compare" if name == "sensitivity" else "no test was found in 2 of 2 runs"
    assert any(missing in text for text in words(figure))


def test_holes_in_a_surface_are_left_white() -> None:
    table = slope_along_the_second_case()
    table.loc[table["weight_1"] > 0.6, "objective"] = np.inf
    figure = plots.objective_surface(table)
    (filled,) = (each for each in figure.axes[0].collections if isinstance(each, TriContourSet))
    near_the_first, near_the_second = (
        np.array(weights) @ plots.CORNERS for weights in ([0.9, 0.06, 0.04], [0.1, 0.86, 0.04])
    )
    assert not any(path.contains_point(near_the_first) for path in filled.get_paths())
    assert any(path.contains_point(near_the_second) for path in filled.get_paths())
    nothing = plots.objective_surface(table.assign(objective=np.nan))
    assert not nothing.axes[0].collections
    picture(nothing)


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_in_which_all_is_alike_makes_pictures(name: str) -> None:
    picture(draw(name, tables_of_sameness()[name].copy()))


@pytest.mark.parametrize("name", NAMES)
def test_axes_are_named_in_words(name: str) -> None:
    for axes in drawn_of(name, SHORT_NAMES).figure.axes:
        if axes.axison:
            labels = [axes.get_xlabel(), axes.get_ylabel()]
            assert any(re.search(r"[a-z]{4}", label) for label in labels)


def test_a_validation_shows_each_selection_with_its_best_estimator_by_kind() -> None:
    columns = ["kind", "size", "selection", "estimator", "mean_error", "low", "high"]
    rows = [
        ("alike", 2, "rposst", "weights", 0.3, 0.2, 0.4),
        ("alike", 2, "rposst", "ridge", 0.2, 0.1, 0.25),
        ("alike", 5, "rposst", "weights", 0.1, 0.05, 0.2),
        ("alike", 5, "rposst", "ridge", 0.15, 0.1, 0.2),
        ("alike", 5, "random", "weights", 0.4, np.nan, np.nan),
        ("strongest", 5, "rposst", "ridge", 0.6, 0.5, 0.9),
    ]
    figure = plots.validation(pd.DataFrame(rows, columns=columns))
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "held-out policies like the others",
        "the strongest policies held out",
    ]
    first, second = figure.axes
    drawn = line(first, "rposst")
    assert np.asarray(drawn.get_xdata()).tolist() == pytest.approx([1.975, 4.975])  # beside the other selection
    np.testing.assert_array_equal(drawn.get_ydata(), [0.2, 0.1])
    bars = next(each for each in first.collections if isinstance(each, LineCollection))
    np.testing.assert_allclose(bars.get_segments(), [[[1.975, 0.1], [1.975, 0.25]], [[4.975, 0.05], [4.975, 0.2]]])
    legend = second.get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["rposst"]
    assert picture(figure).ndim == 3
