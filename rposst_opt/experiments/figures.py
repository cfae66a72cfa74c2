"""Draw a reproduction's figures from the CSV files in its folder, as PNG and SVG; nothing is solved here.

`DRAWINGS` is the table. Colours are those of Okabe and Ito, which people of all colour vision can tell apart; lines
differ in their dashes too, and carry their names at their ends.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.experiments.methods import METHODS, REFERENCE
from rposst_opt.files.writing import write_with
from rposst_opt.reports import check_can_draw
from rposst_opt.reports.looks import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY_BLUE, STYLE, VERMILION

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
except ModuleNotFoundError:
    check_can_draw()
    raise

LOOKS: dict[str, dict[str, Any]] = {
    REFERENCE: {"color": BLUE, "linewidth": 2.4},
    "exact": {"color": BLACK, "linewidth": 1.1, "linestyle": (0, (2, 2))},
    "minimax-uniform": {"color": VERMILION, "linewidth": 1.5},
    "iterative-minimax": {"color": GREEN, "linewidth": 1.5, "linestyle": (0, (6, 2))},
    "minimax-tnp-uniform": {"color": PURPLE, "linewidth": 1.5, "linestyle": (0, (4, 1, 1, 1))},
    "minimax-ttd-uniform": {"color": ORANGE, "linewidth": 1.5, "linestyle": (0, (1, 1))},
    "miniaverage-uniform": {"color": SKY_BLUE, "linewidth": 1.5, "linestyle": (0, (8, 2, 1, 2))},
}
BACKGROUND = {
    "sampled-regret-matching": (0, (1, 1)),
    "simultaneous": (0, (5, 2)),
    "kmeans-anchors": (0, (3, 1, 1, 1)),
    "random": (0, (1, 3)),
}
ERROR_LABEL = "score error, share of the\nrange of tuning results"
LABEL_GAP = 0.062  # of a panel's height, between the names of two lines


def draw(drawing: str, folder: Path) -> list[Path]:
    """Make a drawing from the tables in a folder, into the same folder."""
    with rc_context(STYLE):
        return DRAWINGS[drawing](folder)


def _save(figure: Figure, path: Path) -> list[Path]:
    """Write PNG and SVG without dates, so that the same tables give the same bytes."""
    written = []
    layout = figure.get_layout_engine()
    assert layout is not None
    fixed = any(axes.get_aspect() != "auto" for axes in figure.axes)
    for _ in range(2 if fixed else 1):  # for both files; pictures of a fixed shape take a second look
        layout.execute(figure)
    figure.set_layout_engine("none")
    for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None, "Creator": None})):
        target = path.with_name(path.name + suffix)
        # The temporary file's name ends like the target's, which tells matplotlib the format.
        write_with(target, lambda temporary, m=metadata: figure.savefig(temporary, dpi=150, metadata=m))  # type: ignore[misc]
        written.append(target)
    return written


def _look(method: str) -> dict[str, Any]:
    return LOOKS.get(method) or {"color": GREY, "linewidth": 0.9, "linestyle": BACKGROUND.get(method, "-")}


def _curves(axes: Axes, table: pd.DataFrame) -> None:
    """Mean errors from the easiest pair to the hardest, with intervals for the paper's own methods."""
    methods = [method for method in METHODS if method in set(table["method"])]
    for method in sorted(methods, key=lambda method: method in LOOKS):  # those of the paper on top
        curve = table[table["method"] == method].sort_values("rank", ascending=False)
        place = np.arange(1, len(curve) + 1)
        look = _look(method)
        axes.plot(place, curve["error"], **look)
        if METHODS[method].in_paper:
            axes.fill_between(place, curve["low"], curve["high"], color=look["color"], alpha=0.12, linewidth=0)
    axes.set_xlim(1, max(2, int(table["rank"].max())))
    axes.set_xlabel("(policy, target) pairs, hardest last")


def _headroom(table: pd.DataFrame) -> float:
    """The top of an axis that shows all lines; intervals of few replicas may leave it."""
    return 1.08 * float(table["error"].max()) or 1.0


def _name_lines(axes: Axes, table: pd.DataFrame) -> None:
    """Write each line's name beside its end, moved apart where they would overlap; the axes' limits are settled."""
    low, high = axes.get_ylim()
    hardest = table[table["rank"] == 1]
    ends = sorted(zip(((hardest["error"] - low) / (high - low)).tolist(), hardest["method"].tolist(), strict=True))
    heights = _apart([end for end, _ in ends], LABEL_GAP)
    for (end, method), height in zip(ends, heights, strict=True):
        color, weight = _look(method)["color"], "bold" if method == REFERENCE else "normal"
        link = Line2D([1.0, 1.05], [end, height], transform=axes.transAxes, color=color, linewidth=0.6, clip_on=False)
        axes.add_line(link)
        axes.text(
            1.06,
            height,
            METHODS[method].label,
            transform=axes.transAxes,
            va="center",
            fontsize=7,
            color=color,
            weight=weight,
        )


def _apart(wanted: Sequence[float], gap: float) -> list[float]:
    """Heights near the wanted ones, which ascend, with at least a gap between them, and none above the panel."""
    heights = list(wanted)
    for _ in range(200):
        for lower in range(len(heights) - 1):
            overlap = gap - (heights[lower + 1] - heights[lower])
            if overlap > 0:
                heights[lower] -= overlap / 2
                heights[lower + 1] += overlap / 2
    ceiling = 1.0
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], ceiling)
        ceiling = heights[place] - gap
    return heights


def error_grids(folder: Path) -> list[Path]:
    """A figure per domain, as in the appendix: sizes of test down, holdouts across; with one holdout, sizes across."""
    written = []
    curves, titles = _curves_and_titles(folder)
    for domain, of_domain in curves.groupby("domain", sort=False):
        sizes, holdouts = sorted(set(of_domain["size"])), sorted(set(of_domain["holdout"]))
        if len(holdouts) == 1:
            figure = Figure(figsize=(4.2 * len(sizes), 3.4), layout="constrained")
            panels = figure.subplots(1, len(sizes), squeeze=False)[0]
            rows = [([axes], [(size, holdouts[0])]) for axes, size in zip(panels, sizes, strict=True)]
        else:
            figure = Figure(figsize=(2.6 * len(holdouts) + 2.2, 2.2 * len(sizes) + 0.8), layout="constrained")
            panels = figure.subplots(len(sizes), len(holdouts), squeeze=False, sharey="row")
            rows = [(list(row), [(size, h) for h in holdouts]) for row, size in zip(panels, sizes, strict=True)]
        for axes_of_row, cuts in rows:
            _draw_row(axes_of_row, cuts, of_domain)
        figure.suptitle(f"{titles[str(domain)]}: error on held-out policies, with 95 % intervals", fontsize=10)
        written += _save(figure, folder / f"errors-{_slug(str(domain))}")
    return written


def _draw_row(row: Sequence[Axes], cuts: Sequence[tuple[int, float]], of_domain: pd.DataFrame) -> None:
    """Panels that share their vertical axis, and the names of lines beside the last."""
    for axes, (size, holdout) in zip(row, cuts, strict=True):
        cell = of_domain[(of_domain["size"] == size) & (of_domain["holdout"] == holdout)]
        _curves(axes, cell)
        axes.set_title(f"m = {size}, {holdout:.0%} of policies held out", fontsize=8)
    row[0].set_ylim(0, _headroom(of_domain[of_domain["size"] == cuts[0][0]]))
    row[0].set_ylabel(ERROR_LABEL)
    _name_lines(row[-1], cell)


def error_panels(folder: Path) -> list[Path]:
    """A panel per domain; a figure per holdout and size (the paper's main figure is that of 20 % and two cases)."""
    written = []
    curves, titles = _curves_and_titles(folder)
    for (holdout, size), of_both in curves.groupby(["holdout", "size"], sort=False):
        domains = list(dict.fromkeys(of_both["domain"]))
        across = min(2, len(domains))
        down = -(-len(domains) // across)
        figure = Figure(figsize=(4.4 * across, 2.6 * down + 0.6), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False)
        for axes, domain in zip(panels.flat, domains, strict=False):
            of_domain = of_both[of_both["domain"] == domain]
            _curves(axes, of_domain)
            axes.set_ylim(0, _headroom(of_domain))
            axes.set_title(titles[str(domain)])
            axes.set_ylabel(ERROR_LABEL)
            _name_lines(axes, of_domain)
        for axes in panels.flat[len(domains) :]:
            axes.set_axis_off()
        cut = f"{holdout:.0%} of policies held out, tests of {size} cases"
        figure.suptitle(f"Error on held-out policies: {cut}, 95 % intervals", fontsize=10)
        written += _save(figure, folder / f"panels-{_percent(holdout)}-size-{size}")
    return written


def _curves_and_titles(folder: Path) -> tuple[pd.DataFrame, dict[str, str]]:
    titles = pd.read_csv(folder / "domains.csv")
    by_domain = dict(zip(titles["domain"].astype(str), titles["title"].astype(str), strict=True))
    return pd.read_csv(folder / "curves.csv"), by_domain


def _percent(holdout: object) -> str:
    return f"holdout-{100 * float(str(holdout)):.0f}"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


def frequency_matrices(folder: Path) -> list[Path]:
    """How often each pair of cases was chosen, a triangle per method (the appendix's matrices).

    RPOSST weighs its cases, and the upper triangle of its panel has the mean weight of the row's case in the pair.
    """
    written = []
    selections = pd.read_csv(folder / "selections.csv", dtype={"case": str})
    pairs = selections[selections["size"] == 2]
    for (domain, holdout), of_domain in pairs.groupby(["domain", "holdout"], sort=False):
        cases = [str(name) for name in pd.read_csv(folder / f"matrix-{domain}.csv", index_col=0, dtype={0: str}).index]
        methods = [method for method in METHODS if METHODS[method].in_paper and method in set(of_domain["method"])]
        figure = Figure(figsize=(10, 7.6), layout="constrained")
        panels = figure.subplots(2, 3, squeeze=False)
        for axes, method in zip(panels.flat, methods, strict=False):
            counts, weights = _pair_counts(of_domain[of_domain["method"] == method], cases)
            frequencies = axes.imshow(np.ma.masked_equal(counts, 0), cmap="viridis_r", vmin=0, vmax=100)
            if method == REFERENCE:
                shares = axes.imshow(np.ma.masked_invalid(weights), cmap="magma_r", vmin=0, vmax=1)
                figure.colorbar(shares, ax=panels, location="bottom", label="mean weight (upper triangle)", shrink=0.5)
            axes.plot([-0.5, len(cases) - 0.5], [-0.5, len(cases) - 0.5], color=GREY, linewidth=0.6)
            axes.grid(False)
            axes.set_title(f"{METHODS[method].label}\nmost often {_top_pair(counts, cases)}")
            axes.set_xlabel("test case, by its row")
            axes.set_ylabel("test case, by its row")
        for axes in panels.flat[len(methods) :]:
            axes.set_axis_off()
        if methods:
            figure.colorbar(frequencies, ax=panels, label="chosen, % of replicas (lower triangle)", shrink=0.6)
        title = f"{domain}, {holdout:.0%} of policies held out: which pairs of test cases each method chooses"
        figure.suptitle(title, fontsize=10)
        written += _save(figure, folder / f"frequencies-{_slug(str(domain))}-{_percent(holdout)}")
    return written


def _pair_counts(chosen: pd.DataFrame, cases: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Percent of replicas that chose each pair (below the diagonal), and mean weights of the row's case (above it).

    A case that was taken alone, because a method took it twice, is on the diagonal.
    """
    place = {name: position for position, name in enumerate(cases)}
    counts, totals = np.zeros((len(cases), len(cases))), np.zeros((len(cases), len(cases)))
    replicas = chosen["replica"].nunique()
    for _, test in chosen[chosen["weight"] > 0].groupby("replica"):
        pairs = [(place[str(name)], float(share)) for name, share in zip(test["case"], test["weight"], strict=True)]
        (first, weight), (second, _) = min(pairs), max(pairs)  # the same one where a test has one case only
        counts[second, first] += 1
        totals[first, second] += weight
    with np.errstate(invalid="ignore"):
        weights = totals / counts.T
    weights[np.tril_indices(len(cases))] = np.nan
    return 100 * counts / max(replicas, 1), weights


def _top_pair(counts: np.ndarray, cases: Sequence[str]) -> str:
    """The pair that is chosen most often, and how often."""
    row, column = np.unravel_index(int(counts.argmax()), counts.shape)
    return f"{cases[int(column)]} & {cases[int(row)]}, {counts[row, column]:.0f} %"


def result_matrix(folder: Path) -> list[Path]:
    """A domain's whole matrix, from the column player's point of view."""
    written = []
    for path in sorted(folder.glob("matrix-*.csv")):
        table = pd.read_csv(path, index_col=0)
        figure = Figure(figsize=(6.4, 5.4), layout="constrained")
        axes = figure.subplots()
        image = _heat_map(axes, table)
        axes.set_xlabel("policy, by its column")
        axes.set_ylabel("test case, by its row")
        axes.set_title(f"{path.stem.removeprefix('matrix-')}: results of the column's policy")
        figure.colorbar(image, ax=axes, label="result")
        written += _save(figure, folder / path.stem)
    return written


def _heat_map(axes: Axes, table: pd.DataFrame) -> Any:
    values = table.to_numpy(dtype=float)
    middle = float((values.max() + values.min()) / 2)
    half = float(np.abs(values - middle).max()) or 1.0
    axes.grid(False)
    return axes.imshow(values, cmap="RdBu", vmin=middle - half, vmax=middle + half, aspect="auto")


def chosen_pair(folder: Path) -> list[Path]:
    """The two rows of the matrix that RPOSST chooses most often."""
    written = []
    picks = pd.read_csv(folder / "top-picks.csv")
    picks = picks[(picks["method"] == REFERENCE) & (picks["size"] == 2)]
    for (domain, holdout), of_domain in picks.groupby(["domain", "holdout"], sort=False):
        top = of_domain.sort_values("percent", ascending=False).iloc[0]
        table = pd.read_csv(folder / f"matrix-{domain}.csv", index_col=0)
        names = str(top["cases"]).split(", ")
        order = table.mean().sort_values().index
        figure = Figure(figsize=(9, 2.4), layout="constrained")
        axes = figure.subplots()
        image = _heat_map(axes, table.loc[names, order])
        axes.set_yticks(range(len(names)), names)
        axes.set_xticks(range(len(order)), [str(name) for name in order], rotation=90, fontsize=6)
        axes.set_xlabel("policies, from the weakest to the strongest by the full test")
        axes.set_title(f"{domain}: the pair that RPOSST chooses in {top['percent']:.0f} % of replicas")
        figure.colorbar(image, ax=axes, label="result")
        written += _save(figure, folder / f"chosen-pair-{_slug(str(domain))}-{_percent(holdout)}")
    return written


DRAWINGS: dict[str, Callable[[Path], list[Path]]] = {
    "error-grids": error_grids,
    "error-panels": error_panels,
    "frequency-matrices": frequency_matrices,
    "result-matrix": result_matrix,
    "chosen-pair": chosen_pair,
}
