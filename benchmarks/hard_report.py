"""What was measured on hard problems, as tables and verdicts in Markdown."""

import math
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.solvers.running import available_cores

README = Path(__file__).parent / "README.md"
START, END = "<!-- measured: {} -->\n", "<!-- end of {} -->\n"
TOLERANCE = (
    1e-6  # of objectives and gaps, whose unit is the range of results: what a MILP solver's answers are good for
)
TOO_LARGE = "over its licence"
OWN = "exact"


def check(measured: pd.DataFrame) -> None:
    """No answer may be below anybody's bound: checked before anything is reported."""
    for _, rows in measured.groupby("problem"):
        told = rows[["problem", "solver", "objective", "lower_bound", "status"]].to_string()
        assert rows["lower_bound"].max() <= rows["objective"].min() + 2 * TOLERANCE, told


def compared(measured: pd.DataFrame, rival: str) -> pd.DataFrame:
    """The problems that both `exact` and this rival were given, with what each has: ``gap`` and ``gap_rival``, say."""
    own, other = (measured[measured["solver"] == solver] for solver in (OWN, rival))
    return own.merge(other[other["status"] != TOO_LARGE], on="problem", suffixes=("", "_rival"))


def lost(measured: pd.DataFrame, rival: str, column: str) -> list[str]:
    """The problems on which `exact` is above the rival in this column."""
    pairs = compared(measured, rival)
    return [str(name) for name in pairs[pairs[column] > pairs[f"{column}_rival"] + TOLERANCE]["problem"]]


def time_ratio(measured: pd.DataFrame, rival: str) -> tuple[float, int]:
    """How many times as long the rival took where both have proved the optimum: the geometric mean, and of how many."""
    pairs = compared(measured, rival)
    both = pairs[(pairs["status"] == "optimal") & (pairs["status_rival"] == "optimal")]
    return float(np.exp(np.log(both["seconds_rival"] / both["seconds"]).mean())), len(both)


def verdicts(measured: pd.DataFrame) -> str:
    """Whether `exact` is ever behind, and on what; whatever comes out."""
    solvers = solvers_of(measured)
    provers = [solver for solver in solvers if solver != "local-search"]
    own = measured[measured["solver"] == OWN]
    lines = [f"- `{OWN}` proved {(own['status'] == 'optimal').sum()} of {len(own)}."]
    for rival in provers[1:]:
        pairs = compared(measured, rival)
        ours, theirs = ((pairs[column] == "optimal").sum() for column in ("status", "status_rival"))
        lines.append(f"- `{rival}` proved {theirs} of the {len(pairs)} that it was given, and `{OWN}` {ours} of these.")
    for rival in provers[1:]:
        lines.append(_verdict("gap", rival, measured))
    for rival in solvers[1:]:
        lines.append(_verdict("objective", rival, measured))
    for rival in provers[1:]:
        ratio, both = time_ratio(measured, rival)
        if both:
            lines.append(
                f"- Where both proved it ({both} problems), `{rival}` took {ratio:.3g} times as long as `{OWN}`."
            )
    return "\n".join(lines) + "\n"


def _verdict(column: str, rival: str, measured: pd.DataFrame) -> str:
    names = lost(measured, rival, column)
    listed = f": {', '.join(names)}" if names else ""
    total = len(compared(measured, rival))
    return f"- The {column} of `{OWN}` is above that of `{rival}` on {len(names)} of {total} problems{listed}."


def solvers_of(measured: pd.DataFrame) -> list[str]:
    """Who was measured, `exact` first."""
    return sorted(measured["solver"].unique(), key=lambda solver: (solver != OWN, solver == "local-search", solver))


def table(measured: pd.DataFrame) -> str:
    """A line per problem: who proved it in what time, and what the others have."""
    solvers = solvers_of(measured)
    rows = []
    for problem, runs in measured.groupby("problem", sort=False):
        best = float(runs["objective"].min())
        by_solver = {run["solver"]: run for run in runs.to_dict("records")}
        cells = [_cell(by_solver.get(solver), best) for solver in solvers]
        rows.append([f"{problem}", f"{best:.5f}", *cells])
    return as_markdown(["problem", "best", *solvers], rows)


def _cell(run: dict[Any, Any] | None, best: float) -> str:
    """What a run came to; gaps are in percent of the best objective that anybody has found."""
    if run is None:
        return ""
    if run["status"] == "optimal":
        return f"**proved, {run['seconds']:.2f} s**"
    if run["status"] == "no_test":
        return f"no test, bound {run['lower_bound']:.5f}"
    if not math.isfinite(run["objective"]):
        return str(run["status"])
    return f"{run['objective']:.5f}, gap {share_of(run['gap'], best)}"


def share_of(gap: float, best: float) -> str:
    """A gap in percent of an objective."""
    if not math.isfinite(gap):
        return "unknown"
    return f"{gap / best:.2%}" if best > 0 else f"{gap:.2g}"


def as_markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def circumstances(measured: pd.DataFrame, command: str) -> str:
    """Where, when and with what it was measured."""
    dates = sorted(measured["date"].unique())
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    limits = measured.groupby("solver", sort=False)["limit"].first()
    threads = ", ".join(str(number) for number in sorted(measured["threads"].unique()))
    versions = measured.groupby("solver", sort=False)["versions"].unique()
    who = "; ".join(f"`{name}` {limits[name]:g} s ({' and '.join(versions[name])})" for name in solvers_of(measured))
    return (
        f"Measured on {days} by {command}: {platform.machine()}, {available_cores()} cores, Python "
        f"{platform.python_version()}, {threads} threads for each run. {who}.\n"
    )


def section(measured: pd.DataFrame, command: str) -> str:
    """All of it."""
    return "\n".join([circumstances(measured, command), verdicts(measured), table(measured)])


def ablation_section(measured: pd.DataFrame, command: str) -> str:
    """How much longer `exact` takes without each ingredient: in all, and problem by problem."""
    whole = measured[measured["without"] == ""]
    ingredients = [str(name) for name in measured["without"].unique() if name]
    summary = [
        [str(number), name, *_brought(whole.merge(measured[measured["without"] == name], on="problem"))]
        for number, name in enumerate(ingredients, 1)
    ]
    rows = []
    for problem, runs in measured.groupby("problem", sort=False):
        best = float(runs["objective"].min())
        by_ingredient = {run["without"]: run for run in runs.to_dict("records")}
        rows.append([f"{problem}", *(_short_cell(by_ingredient.get(name), best) for name in ("", *ingredients))])
    head = ["", "without", "proved with it", "without it", "time without, over time with", "gap with it", "without it"]
    return "\n".join(
        [
            circumstances(measured, command),
            "The ratio is a geometric mean, in which a run without a proof counts with its time limit; gaps are means",
            "over all of the problems, in units of the objective.\n",
            as_markdown(head, summary),
            as_markdown(["problem", "whole", *(str(number) for number in range(1, len(ingredients) + 1))], rows),
        ]
    )


def _brought(both: pd.DataFrame) -> list[str]:
    """What an ingredient brings, from runs with it (``_x``) and without it (``_y``) side by side."""
    proved = [both[f"status_{side}"] == "optimal" for side in "xy"]
    times = [both[f"seconds_{side}"].where(is_so, both["limit_x"]) for side, is_so in zip("xy", proved, strict=True)]
    ratio = np.exp(np.log(times[1] / times[0]).mean())
    counts = [f"{is_so.sum()}" for is_so in proved]
    return [*counts, f"{ratio:.2f}", *(f"{both[f'gap_{side}'].mean():.5f}" for side in "xy")]


def _short_cell(run: dict[Any, Any] | None, best: float) -> str:
    if run is None:
        return ""
    return f"{run['seconds']:.2f} s" if run["status"] == "optimal" else share_of(run["gap"], best)


def put_into_readme(name: str, text: str) -> None:
    """Put a section between its markers in the benchmarks' README."""
    start, end = START.format(name), END.format(name)
    before, rest = README.read_text().split(start)
    _, after = rest.split(end)
    README.write_text(before + start + text + end + after)
