"""Who had what when? The picture of a comparison: objectives and bounds of solvers against time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray
from rposst_opt.reports import check_can_draw
from rposst_opt.reports.looks import BLACK, COLOURS, GREY, WIDE, WIDTH, Picture, in_style, numbers, short

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
except ModuleNotFoundError:
    check_can_draw()
    raise

SHADES = (*COLOURS, GREY)
SIGNS = "os^DvPX*"  # of answers; of solvers beyond the eighth, each has its sign in another colour
DASHED, DOTTED = (0, (4, 2)), (0, (1, 1.5))
MOST_DETAIL = 1e3  # an axis of time that spans more than this factor has ticks at powers of ten alone
SHORTEST_SECONDS = 1e-3  # what took less is drawn there: logarithms know no zero


@in_style
def anytime_profiles(frame: pd.DataFrame) -> Figure:
    """Draw objectives (solid) and lower bounds (dashed) of solvers against time; an answer has a marker.

    `frame` is `rposst_opt.referee.comparison.Comparison.frame`. Solvers that tell nothing on the way have their markers
    alone. Numbers that solvers claim without handing a test over are dotted, and what is refuted has a cross.
    """
    figure = Picture(figsize=(WIDTH, 4.6), layout="constrained")
    axes = figure.subplots()
    solvers = list(dict.fromkeys(frame["backend"]))
    latest = float(frame["seconds"].max()) if len(frame) else 1.0
    handles = []
    for solver, (colour, sign) in zip(solvers, _appearances(), strict=False):
        rows = frame[frame["backend"] == solver]
        _draw_solver(axes, rows, colour, sign)
        handles.append(Line2D([], [], color=colour, marker=sign, markersize=5, label=short(solver)))
    axes.set(xlabel="seconds since the solver was asked", ylabel="objective (solid), claimed bound (dashed)")
    answers = "markers are answers: filled their objective, hollow their bound"
    axes.set_title(answers if frame["is_end"].any() else "nobody has answered", loc="left", fontsize=8)
    _scale_seconds(axes, frame["seconds"].to_numpy(dtype=np.float64), latest)
    if len(frame):
        figure.legend(handles=[*handles, *_key(frame)], loc="outside lower center", ncols=4, frameon=False)
    return figure


def _appearances() -> Iterator[tuple[str, str]]:
    """A colour and a sign for each solver: the first 64 of them can be told apart."""
    for turn in range(len(SIGNS)):
        for place, colour in enumerate(SHADES):
            yield colour, SIGNS[(place + turn) % len(SIGNS)]


def _draw_solver(axes: Axes, rows: pd.DataFrame, colour: str, sign: str) -> None:
    seconds = np.maximum(rows["seconds"].to_numpy(dtype=np.float64), SHORTEST_SECONDS)
    objectives, claims, bounds = (numbers(rows, name) for name in ("objective", "claimed_objective", "claimed_bound"))
    look: dict[str, Any] = {"color": colour, "drawstyle": "steps-post"}
    _draw_line(axes, seconds, objectives, linewidth=1.7, **look)
    _draw_line(axes, seconds, bounds, linewidth=1.2, linestyle=DASHED, **look)
    if not np.isfinite(objectives).any():
        _draw_line(axes, seconds, claims, linewidth=1.0, linestyle=DOTTED, **look)
    ends = rows["is_end"].to_numpy(dtype=bool)
    for values, filled in ((objectives, True), (bounds, False)):
        face = colour if filled else "white"
        axes.plot(
            seconds[ends], values[ends], sign, color=colour, markerfacecolor=face, markersize=6, zorder=4, alpha=0.9
        )
    refuted = (rows["contradiction"] != "").to_numpy(dtype=bool)
    for values in (bounds, claims):
        axes.plot(seconds[refuted], values[refuted], "x", color=BLACK, markersize=8, markeredgewidth=1.8, zorder=5)


def _draw_line(axes: Axes, seconds: FloatArray, values: FloatArray, **look: Any) -> None:
    """A line through what is known, if that is more than one moment."""
    known = np.isfinite(values)
    if known.sum() > 1:
        axes.plot(seconds[known], values[known], **look)


def _key(frame: pd.DataFrame) -> list[Line2D]:
    """What other lines and signs mean, if there are any."""
    key = []
    has_tests = frame.groupby("backend")["objective"].transform("count") > 0
    if frame.loc[~has_tests, "claimed_objective"].notna().any():
        key.append(Line2D([], [], color=BLACK, linewidth=1.0, linestyle=DOTTED, label="claimed, no test"))
    if (frame["contradiction"] != "").any():
        key.append(Line2D([], [], color=BLACK, marker="x", linewidth=0, markersize=7, label="refuted"))
    return key


def _scale_seconds(axes: Axes, seconds: FloatArray, latest: float) -> None:
    """Make the axis of time logarithmic if it is wide, with ticks in plain figures."""
    earliest = max(float(seconds.min()), SHORTEST_SECONDS) if len(seconds) else SHORTEST_SECONDS
    if latest > WIDE * earliest:
        axes.set_xscale("log")
        axes.set_xlim(earliest / 1.3, latest * 1.3)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if latest < MOST_DETAIL * earliest else (1.0,)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.set_xlim(left=0.0, right=1.05 * latest)
