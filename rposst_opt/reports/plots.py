"""What do the tables of `rposst_opt.analysis` look like? A picture for each, of the same name.

Nothing is solved here, and no window opens: each function returns a figure, for ``figure.savefig("curve.png")``, and a
notebook shows it. Lines differ in their dashes or markers as well as in their colours, for print in grey. The picture
of a comparison is in `rposst_opt.reports.anytime`.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.reports import check_can_draw
from rposst_opt.reports.anytime import anytime_profiles as anytime_profiles
from rposst_opt.reports.looks import (
    BESIDE,
    BLACK,
    BLUE,
    COLOURS,
    DASHES,
    GREEN,
    GREY,
    LONGEST_NAME,
    MARKERS,
    ORANGE,
    SKY_BLUE,
    VERMILION,
    WIDE,
    WIDTH,
    Picture,
    in_style,
    numbers,
    short,
)
from rposst_opt.solution import Status

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter
    from matplotlib.tri import Triangulation
except ModuleNotFoundError:
    check_can_draw()
    raise

MOST_BARS = 20
MOST_VALUES = 16  # points of a curve that are annotated with their values
MOST_LABELS = 12  # entries of a legend
COSTS_NOTHING = 1e-8  # of the largest loss: two optima may differ by this much and still both be proved

LEFT_OUT_LOOKS: dict[str, dict[str, Any]] = {
    "policy": {"color": BLUE},
    "target": {"facecolor": ORANGE, "edgecolor": BLACK, "hatch": "////"},
}
HELD_OUT_WORDS = {
    "alike": "held-out policies like the others",
    "strongest": "the strongest policies held out",
    "groups": "each group of policies held out",
}
SMALL: dict[str, Any] = {
    "textcoords": "offset points",
    "fontsize": 7,
    "bbox": {"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.3},
}

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])  # of a triangle whose sides have length one


@in_style
def tail_profile(*tables: pd.DataFrame, labels: Sequence[str] | None = None) -> Figure:
    """Draw the tail weights of measures, and what each loss weighs by its rank."""
    if not tables:
        raise ProblemError("a picture of tail profiles needs at least one table.")
    names = _labels(labels, len(tables), "profile")
    figure = Picture(figsize=(WIDTH, 3.0), layout="constrained")
    curve, steps = figure.subplots(1, 2)
    for table, name, colour, dashes in zip(tables, names, cycle(COLOURS), cycle(DASHES), strict=False):
        look = {"color": colour, "linestyle": dashes, "linewidth": 1.6}
        curve.plot([0.0, *table["tail"]], [0.0, *table["tail_weight"]], label=name, **look)
        steps.stairs(table["weight"], np.arange(len(table) + 1) + 0.5, baseline=0.0, **look)
    curve.set(xlim=(0, 1), ylim=(0, 1.03), xlabel="worst share of the scenarios", ylabel="weight of that share, g")
    steps.set(xlabel="rank of a loss (1 is the worst)", ylabel="weight of that loss")
    steps.set_xlim(0.5, max(len(table) for table in tables) + 0.5)
    steps.set_ylim(bottom=0)
    steps.set_axisbelow(True)
    steps.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if labels is not None or len(tables) > 1:
        columns = 2 if max(map(len, names)) > LONGEST_NAME / 2 else 4
        # Named one by one, as matplotlib itself passes over names that begin with an underscore.
        figure.legend(handles=curve.get_lines(), loc="outside upper center", ncols=columns, frameon=False)
    return figure


@in_style
def k_of_n_table(table: pd.DataFrame) -> Figure:
    """Draw what a test is worth under k-of-N against N, and dashed the CVaR with the same tail fraction."""
    figure = Picture(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    dashed: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.0}
    for (k, rows), colour, marker in zip(table.groupby("k"), cycle(COLOURS), cycle(MARKERS), strict=False):
        curve = rows.sort_values("n")
        axes.plot(curve["n"], numbers(curve, "cvar"), color=colour, **dashed)
        axes.plot(curve["n"], numbers(curve, "k_of_n"), color=colour, marker=marker, markersize=4, label=f"k = {k}")
    _scale_counts(axes, table["n"])
    axes.set(xlabel="N, scenarios drawn", ylabel="objective of the test")
    limit = Line2D([], [], color=GREY, label="CVaR of the\nsame tail, k/N", **dashed)
    axes.legend(handles=[*axes.get_legend_handles_labels()[0], limit], **BESIDE)
    return figure


@in_style
def objective_surface(table: pd.DataFrame) -> Figure:
    """Draw the objective over the weights of three cases, a corner for each, and mark its least value."""
    figure = Picture(figsize=(WIDTH, 5.0), layout="constrained")
    axes = figure.subplots()
    weights = table[["weight_1", "weight_2", "weight_3"]].to_numpy(dtype=float)
    objective = numbers(table, "objective")
    _fill_triangle(figure, axes, weights @ CORNERS, objective)
    _draw_triangle(axes, [str(table[f"case_{place}"].iloc[0]) for place in (1, 2, 3)])
    if np.isfinite(objective).any():
        least = int(np.nanargmin(objective))
        star: dict[str, Any] = {"color": "white", "markeredgecolor": BLACK, "markersize": 13, "clip_on": False}
        axes.plot(*(weights[least] @ CORNERS)[:, None], "*", zorder=5, **star)
        shares = ", ".join(f"{weight:.3g}" for weight in weights[least])
        figure.suptitle(f"least objective {objective[least]:.4g} (star), at weights {shares}", fontsize=9)
    axes.set(aspect="equal", xlim=(-0.2, 1.2), ylim=(-0.12, 0.95))
    axes.set_axis_off()
    return figure


def _fill_triangle(figure: Figure, axes: Axes, points: FloatArray, objective: FloatArray) -> None:
    triangles = Triangulation(points[:, 0], points[:, 1])
    triangles.set_mask(~np.isfinite(objective)[triangles.triangles].all(axis=1))
    if not len(triangles.get_masked_triangles()):
        return
    shown = objective[np.isfinite(objective)]
    levels = MaxNLocator(14).tick_values(float(shown.min()), float(shown.max()))
    heights = np.nan_to_num(objective)  # a hidden triangle's height must be a number too
    filled = axes.tricontourf(triangles, heights, levels=levels, cmap="viridis_r")
    figure.colorbar(filled, ax=axes, label="objective (lower is better)", shrink=0.8)


def _draw_triangle(axes: Axes, names: Sequence[str]) -> None:
    """The outline, lines where a weight is 1/4, 1/2 or 3/4, and a name at each corner."""
    axes.fill(*CORNERS.T, facecolor="none", edgecolor=BLACK, linewidth=0.9)
    for share in (0.25, 0.5, 0.75):
        for apex in range(3):
            ends = share * CORNERS[apex] + (1 - share) * np.delete(CORNERS, apex, axis=0)
            axes.plot(*ends.T, color="white", linewidth=0.5, alpha=0.6)
    for corner, name, up in zip(CORNERS, names, (-9, -9, 9), strict=True):
        align: dict[str, Any] = {"ha": "center", "va": "bottom" if up > 0 else "top"}
        axes.annotate(f"only\n{short(name)}", corner, xytext=(0, up), textcoords="offset points", **align)


@in_style
def closing_in(table: pd.DataFrame, *, labels: Sequence[str] | None = None) -> Figure:
    """Draw how the best test and the lower bound meet, and how the weights settle.

    Parameters
    ----------
    table : DataFrame
    labels : sequence of str, optional
        Names for the weights, which are in the order of the cases' positions in the problem.
    """
    figure = Picture(figsize=(WIDTH, 4.8), layout="constrained")
    values, shares = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    dots: dict[str, Any] = {"marker": "o", "markersize": 3} if len(table) <= WIDE else {}  # one round makes no line
    _draw_gap(values, table, dots)
    weights = np.array(table["weights"].tolist())
    names = _labels(labels, weights.shape[1], "case")
    for weight, name, colour, dashes in zip(weights.T, names, cycle(COLOURS), cycle(DASHES), strict=False):
        shares.plot(table["round"], weight, color=colour, linestyle=dashes, linewidth=1.3, label=name, **dots)
    shares.set(xlabel="rounds of regret matching+", ylabel="weights of this\nround's test", ylim=(-0.02, 1.02))
    more = Line2D([], [], linestyle="none", label=f"and {len(names) - MOST_LABELS} more")
    shares.legend(handles=[*shares.get_lines()[:MOST_LABELS], *([more] if len(names) > MOST_LABELS else [])], **BESIDE)
    _scale_counts(shares, table["round"])
    return figure


def _draw_gap(axes: Axes, table: pd.DataFrame, dots: dict[str, Any]) -> None:
    """The best test and the lower bound, what is between them, and the tests that were tried."""
    rounds, best, bound = table["round"], numbers(table, "best"), numbers(table, "lower_bound")
    axes.plot(rounds, numbers(table, "objective"), color=GREY, linewidth=0.7, label="this round's test", **dots)
    axes.fill_between(rounds, bound, best, color=SKY_BLUE, alpha=0.25, linewidth=0, label="gap")
    axes.plot(rounds, best, color=BLUE, linewidth=1.8, label="best test so far", **dots)
    dashed: dict[str, Any] = {"color": VERMILION, "linewidth": 1.4, "linestyle": (0, (6, 2))}
    axes.plot(rounds, bound, label="proved lower bound", **dashed, **dots)
    axes.set(ylabel="objective", ylim=_around_the_end(table))
    axes.legend(**BESIDE)


def _around_the_end(table: pd.DataFrame) -> tuple[float, float]:
    """Limits that show every objective; the first bounds may be far below, and leave the picture."""
    objective, bound = numbers(table, "objective"), numbers(table, "lower_bound")
    end, top = float(np.nanmin(objective)), float(np.nanmax(objective))
    reach = max(top - end, end - float(bound[-1]))
    reach = reach if reach > 1e-9 * abs(end) else 0.1 * abs(end) or 1.0  # all alike: no axis of rounding errors
    return max(float(np.nanmin(bound)), end - 1.5 * reach) - 0.05 * reach, top + 0.05 * reach


@in_style
def sweep(table: pd.DataFrame) -> Figure:
    """Draw what the best test for each tail fraction is worth, and its mean and its worst loss."""
    figure = Picture(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    ordered = table.sort_values("tail_fraction")
    for column, label, colour, marker, dashes in (
        ("worst_loss", "worst loss", VERMILION, "^", (0, (6, 2))),
        ("objective", "objective: mean of\nthe worst share", BLUE, "o", "-"),
        ("mean_loss", "mean loss", GREEN, "s", (0, (2, 1))),
    ):
        look: dict[str, Any] = {"color": colour, "linestyle": dashes, "marker": marker, "markersize": 4}
        axes.plot(ordered["tail_fraction"], numbers(ordered, column), label=label, clip_on=False, zorder=3, **look)
    unproved = ordered[ordered["status"] == Status.FEASIBLE]
    if len(unproved):
        hollow: dict[str, Any] = {"color": BLUE, "markerfacecolor": "white", "clip_on": False, "zorder": 4}
        axes.plot(unproved["tail_fraction"], unproved["objective"], "o", label="not proved optimal", **hollow)
    axes.set(xlim=(0, 1), xlabel="tail fraction (0: only the worst scenario counts, 1: all count alike)", ylabel="loss")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.legend(**BESIDE)
    _tell_of_missing(axes, table)
    return figure


@in_style
def size_curve(table: pd.DataFrame) -> Figure:
    """Draw the objective of the best test of each size, and the way down to its lower bound if it is not proved."""
    figure = Picture(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    ordered = table.sort_values("size")
    found = ordered[np.isfinite(ordered["objective"])]
    axes.plot(ordered["size"], numbers(ordered, "objective"), color=BLUE, linewidth=1.2)
    _draw_answers(axes, found, "size")
    axes.set_xlim(table["size"].min() - 0.5, table["size"].max() + 0.7)
    axes.margins(y=0.15)
    bounds = found["lower_bound"][np.isfinite(found["lower_bound"])]
    axes.set_ylim(bottom=min([0.0, *bounds]))
    _draw_intervals(axes, found[found["status"] == Status.FEASIBLE])
    if len(found) <= MOST_VALUES:
        _annotate(axes, found["size"], found["objective"])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set(xlabel="size of the test (cases to choose)", ylabel="objective of the best test")
    if len(found):
        axes.legend(**BESIDE)
    _tell_of_missing(axes, table)
    return figure


@in_style
def budget_curve(table: pd.DataFrame) -> Figure:
    """Draw the objective of the best test that each budget pays for, and the way down to its bound if not proved."""
    figure = Picture(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    ordered = table.sort_values("budget")
    found = ordered[np.isfinite(ordered["objective"])]
    if len(found):
        ends = [*found["budget"], float(found["budget"].iloc[-1]) * 1.05]
        axes.step(ends, [*found["objective"], found["objective"].iloc[-1]], where="post", color=BLUE, linewidth=1.2)
    _draw_answers(axes, found, "budget")
    if len(found) and found["budget"].min() > 0 and found["budget"].max() > WIDE * found["budget"].min():
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    bounds = found["lower_bound"][np.isfinite(found["lower_bound"])]
    axes.set_ylim(bottom=min([0.0, *bounds]))
    _draw_intervals(axes, found[found["status"] == Status.FEASIBLE].assign(size=lambda rows: rows["budget"]))
    axes.set(xlabel="budget", ylabel="objective of the best test")
    if len(found):
        axes.legend(**BESIDE)
    return figure


def _draw_answers(axes: Axes, found: pd.DataFrame, against: str) -> None:
    """A dot for every test: filled if it is proved."""
    for status, label, fill in ((Status.OPTIMAL, "proved optimal", BLUE), (Status.FEASIBLE, "not proved", "white")):
        points = found[found["status"] == status]
        if len(points):
            look: dict[str, Any] = {"color": BLUE, "markerfacecolor": fill, "markersize": 5, "zorder": 4}
            axes.plot(points[against], points["objective"], "o", label=label, **look)


def _draw_intervals(axes: Axes, unproved: pd.DataFrame) -> None:
    """From objectives down to lower bounds, or to the bottom of the panel where nothing is proved."""
    bounded = np.isfinite(unproved["lower_bound"])
    floor = axes.get_ylim()[0]
    for rows, ends, label, dashes in (
        (unproved[bounded], unproved["lower_bound"][bounded], "down to the\nlower bound", "-"),
        (unproved[~bounded], np.full((~bounded).sum(), floor), "no lower bound", (0, (1, 2))),
    ):
        if len(rows):
            axes.vlines(rows["size"], ends, rows["objective"], color=VERMILION, linestyle=dashes, label=label)


def _annotate(axes: Axes, places: Sequence[float], values: Sequence[float]) -> None:
    for place, value in zip(places, values, strict=True):
        axes.annotate(f"{value:.3g}", (place, value), xytext=(4, 4), **SMALL)


@in_style
def sensitivity(table: pd.DataFrame) -> Figure:
    """Draw what it would have cost not to have known a policy or a target, for those that matter most."""
    left_out = table[table["left_out"] != "nothing"]
    known = left_out[np.isfinite(left_out["cost"])]
    scale = float(np.abs(numbers(table, "worst_loss")[np.isfinite(table["worst_loss"])]).max(initial=0.0))
    costly = known[known["cost"] > COSTS_NOTHING * scale]
    in_steps = (
        costly["cost"] / (COSTS_NOTHING * scale or 1.0)
    ).round()  # costs that differ by rounding keep their order
    costly = costly.loc[in_steps.sort_values(ascending=False, kind="stable").index]
    shown = costly.head(MOST_BARS)
    figure = Picture(figsize=(WIDTH, 1.5 + 0.19 * max(len(shown), 3)), layout="constrained")
    axes = figure.subplots()
    figure.suptitle(_what_is_shown(left_out, known, costly, shown), fontsize=8)
    _draw_bars(axes, shown)
    axes.set_xlabel("cost of not having known it: how much worse the test is, judged by all")
    handles = [
        Patch(label=kind, linewidth=0.4, **look)
        for kind, look in LEFT_OUT_LOOKS.items()
        if (shown["left_out"] == kind).any()
    ]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_bars(axes: Axes, shown: pd.DataFrame) -> None:
    for place, (kind, cost) in enumerate(zip(shown["left_out"], shown["cost"], strict=True)):
        axes.barh(place, cost, height=0.7, linewidth=0.4, **LEFT_OUT_LOOKS[kind])
        axes.annotate(f"{cost:.3g}", (cost, place), xytext=(3, 0), va="center", **SMALL)
    names = [_bar_name(kind, name) for kind, name in zip(shown["left_out"], shown["name"], strict=True)]
    axes.set_yticks(range(len(shown)), names)
    axes.set_ylim(max(len(shown), 3) - 0.4, -0.6)  # the costliest on top
    axes.set_xlim(left=0.0, right=1.1 * float(shown["cost"].max()) if len(shown) else 1.0)
    axes.grid(axis="y", visible=False)
    axes.set_axisbelow(True)


def _what_is_shown(left_out: pd.DataFrame, known: pd.DataFrame, costly: pd.DataFrame, shown: pd.DataFrame) -> str:
    """In words: how many left-outs cost nothing, how many are not shown, and how many have no test."""
    those = f"{len(known) - len(costly)} of {len(left_out)} policies and targets cost nothing"
    if 0 < len(left_out) == len(costly):
        those = f"each of {len(left_out)} policies and targets costs something"
    parts = [f"Left out one by one, {those}"]
    if len(shown) < len(costly):
        parts.append(f"of the other {len(costly)}, the {len(shown)} costliest are shown")
    if len(known) < len(left_out):
        parts.append(f"for {len(left_out) - len(known)} there is no test to compare")
    return "; ".join(parts) + "."


def _bar_name(kind: str, name: str) -> str:
    return f"target {short(name)}" if kind == "target" else short(name)


@in_style
def validation(table: pd.DataFrame) -> Figure:
    """Draw the mean error on held-out policies over the size of the test: each selection with its best estimator.

    `table` is `rposst_opt.unseen.validation.Validation.summary`. Bars are 95 % intervals.
    """
    kinds = list(dict.fromkeys(table["kind"]))
    figure = Picture(figsize=(WIDTH, 0.6 + 2.4 * len(kinds)), layout="constrained")
    panels = figure.subplots(len(kinds), 1, squeeze=False)[:, 0]
    for axes, kind in zip(panels, kinds, strict=True):
        of_kind = table[table["kind"] == kind]
        selections = list(dict.fromkeys(of_kind["selection"]))
        for place, (selection, colour, marker) in enumerate(zip(selections, cycle(COLOURS), cycle(MARKERS))):
            ways = of_kind[of_kind["selection"] == selection]
            best = ways.loc[ways.groupby("size")["mean_error"].idxmin()].sort_values("size")
            beside = best["size"] + 0.05 * (place - (len(selections) - 1) / 2)  # so that bars can be told apart
            axes.plot(beside, best["mean_error"], color=colour, marker=marker, markersize=4, label=short(selection))
            axes.vlines(beside, best["low"], best["high"], color=colour, linewidth=1.0)
        axes.set_title(HELD_OUT_WORDS.get(kind, kind), loc="left")
        axes.set_ylim(bottom=0.0)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set(ylabel="mean error on them")
        axes.legend(**BESIDE)
    panels[-1].set_xlabel("size of the test (cases to choose)")
    return figure


def _labels(labels: Sequence[str] | None, count: int, noun: str) -> list[str]:
    """Names for a legend: those that are given, or numbers."""
    if labels is None:
        return [f"{noun} {number}" for number in range(1, count + 1)]
    if len(labels) != count:
        raise ProblemError(f"`labels` must have one entry per {noun}, {count} in all, got {len(labels)}.")
    return [short(label) for label in labels]


def _scale_counts(axes: Axes, counts: pd.Series) -> None:
    """Make an axis of whole numbers logarithmic if it is wide, with ticks in plain figures."""
    if counts.max() > WIDE * counts.min():
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(counts.min() - 0.5, counts.max() + 0.5)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _tell_of_missing(axes: Axes, table: pd.DataFrame) -> None:
    missing = int((~np.isfinite(table["objective"])).sum())
    if missing == len(table):
        axes.set_ylim(0.0, 1.0)
    if missing:
        axes.set_title(f"no test was found in {missing} of {len(table)} runs", loc="left", fontsize=8)
