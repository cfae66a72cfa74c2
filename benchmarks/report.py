"""Tables and figures of what ``benchmarks.grid`` measured, written to ``benchmarks/README.md``; nothing is run here.

Run: python -m benchmarks.report
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.grid import CHECK_SECONDS, FIT_SECONDS
from rposst_opt.backends import choose_backend
from rposst_opt.backends.forecast import TABLE, VARIABLE
from rposst_opt.backends.synthetic import SyntheticProblem
from rposst_opt.reports.looks import GREY

HERE = Path(__file__).parent
START, END = "<!-- measured: grid -->\n", "<!-- end of grid -->\n"
KEYS = list(SyntheticProblem.__dataclass_fields__)
SHIFT = 0.01  # seconds, of geometric means: a run that is ten times faster than this counts no more than that
FLOOR = 0.05  # seconds: shorter times count as this when choices are judged
GAPS = (1e-3, 1e-6, 1e-9)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def summary(measured: pd.DataFrame) -> pd.DataFrame:
    """A row per backend, of runs that asked for the optimum: its times, and what it solved and proved.

    Times are summed up by the shifted geometric mean, over all problems that the backend handles.
    """
    rows = []
    asked = measured[(measured["status"] != "declined") & (measured["split"] != "gap")]
    for backend, runs in asked.groupby("backend", sort=False):
        limit = np.where(runs["split"] == "fit", FIT_SECONDS, CHECK_SECONDS)
        proved = runs["status"] == "optimal"
        seconds = np.where(proved, runs["seconds"], limit)
        row = {
            "backend": backend,
            "problems": len(runs),
            "seconds": float(np.exp(np.log(seconds + SHIFT).mean()) - SHIFT),
            "not run": float((runs["status"] == "not run").mean()),
            "solved": float(runs["status"].isin(["optimal", "feasible"]).mean()),
        }
        for gap in GAPS:
            row[f"proved to {gap:g}"] = float((runs["relative_gap"].fillna(np.inf) <= gap).mean())
        rows.append(row)
    return pd.DataFrame(rows).sort_values("seconds")


def as_markdown(table: pd.DataFrame) -> str:
    """The summary, for people."""
    head = ["backend", "problems", "seconds", "not run", "found a test", *(f"proved to {gap:g}" for gap in GAPS)]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for row in table.to_dict("records"):
        shares = [
            f"{row['not run']:.0%}",
            f"{row['solved']:.0%}",
            *(f"{row[f'proved to {gap:g}']:.0%}" for gap in GAPS),
        ]
        lines.append(f"| `{row['backend']}` | {row['problems']} | {row['seconds']:.3f} | " + " | ".join(shares) + " |")
    return "\n".join(lines) + "\n"


def judged_choices(measured: pd.DataFrame) -> pd.DataFrame:
    """What `auto` would have chosen on each problem for checking that somebody proved, and how it would have fared."""
    rows = []
    for _, runs in measured[measured["split"] == "check"].groupby(KEYS, sort=False):
        proved = runs[(runs["status"] == "optimal") & (runs["backend"] != "local-search")].sort_values("seconds")
        if proved.empty:
            continue
        times = dict(zip(proved["backend"].astype(str), proved["seconds"].astype(float), strict=True))
        fastest = next(iter(times))
        instance = SyntheticProblem(**{name: proved[name].tolist()[0] for name in KEYS})
        chosen = choose_backend(instance.problem()).backend
        best, taken = max(times[fastest], FLOOR), max(times.get(chosen, np.inf), FLOOR)
        rows.append((*instance.__dict__.values(), chosen, fastest, taken, best, taken / best))
    return pd.DataFrame(rows, columns=[*KEYS, "auto", "fastest", "auto_seconds", "best_seconds", "ratio"])


def provers_of(measured: pd.DataFrame) -> list[str]:
    """The backends that proved most, best first: as many as there are colours."""
    counts = measured[measured["status"] == "optimal"]["backend"].value_counts()
    return [str(name) for name in counts.index[: len(COLOURS)]]


def figure(measured: pd.DataFrame, path: Path) -> None:
    """Performance profiles, times against the number of tuples, and who is fastest at which n and m."""
    chart = Figure(figsize=(14, 4.6), layout="constrained")
    profile, scaling, winners = chart.subplots(1, 3)
    measured = measured[measured["split"] != "gap"]
    names = provers_of(measured)
    proved = measured[measured["status"] == "optimal"].assign(
        key=lambda rows: rows[KEYS].astype(str).agg("|".join, axis=1)
    )
    best = proved.groupby("key")["seconds"].min()
    for name, colour in zip(names, COLOURS, strict=False):
        runs = proved[proved["backend"] == name]
        ratios = np.sort((runs["seconds"] / best.loc[runs["key"]].to_numpy()).to_numpy())
        share = np.arange(1, len(ratios) + 1) / len(best)
        profile.step(np.append(ratios, 1e5), np.append(share, share[-1]), where="post", color=colour, label=name)
        scaling.loglog(runs["tuples"], runs["seconds"], "o", markersize=3, alpha=0.7, color=colour, label=name)
    profile.set(xscale="log", xlim=(1, 1e5), ylim=(0, 1), xlabel="time, as a multiple of the fastest backend's")
    profile.set(ylabel="share of the problems that somebody proved", title="performance profiles (Dolan and Moré)")
    profile.legend(frameon=False, fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.65))
    scaling.set(xlabel="sets of cases", ylabel="seconds to a proved optimum", title="scaling")
    fastest = proved.loc[proved.groupby("key")["seconds"].idxmin()]
    for name, colour in [*zip(names, COLOURS, strict=False), ("others", GREY)]:
        rows = fastest[~fastest["backend"].isin(names)] if name == "others" else fastest[fastest["backend"] == name]
        if len(rows):
            spread = np.random.default_rng(0).uniform(0.93, 1.07, (2, len(rows)))
            winners.loglog(rows["n"] * spread[0], rows["m"] * spread[1], "o", color=colour, label=name, markersize=5)
    unsolved = measured.assign(key=measured[KEYS].astype(str).agg("|".join, axis=1))
    unsolved = unsolved[~unsolved["key"].isin(best.index)].drop_duplicates("key")
    winners.loglog(unsolved["n"], unsolved["m"], "x", color=GREY, label="nobody in time")
    winners.set(xlabel="test cases, n", ylabel="cases to choose, m", title="who is fastest", ylim=(0.8, 30))
    winners.legend(frameon=False, fontsize=7, loc="upper left")
    for axes in (profile, scaling, winners):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    chart.savefig(path, dpi=110)


def report(measured: pd.DataFrame) -> str:
    """The whole section, as Markdown."""
    choices = judged_choices(measured)
    close = float((choices["ratio"] <= 1.5).mean())
    lost = choices[choices["ratio"] > 1.5]
    chosen = ", ".join(f"`{name}` {count} times" for name, count in choices["auto"].value_counts().items())
    fastest = ", ".join(f"`{name}` {count} times" for name, count in choices["fastest"].value_counts().items())
    lines = [
        (HERE / "grid.txt").read_text(),
        f"{measured.groupby(KEYS).ngroups} problems; `seconds` is the shifted geometric mean (shift {SHIFT:g} s) over",
        f"all problems that a backend handles, with the time limit ({FIT_SECONDS:g} s, or {CHECK_SECONDS:g} s on the",
        "problems for checking) where it proved nothing. Problems much larger than one on which it was cut short were",
        "not run, and count as not solved. Heuristics prove nothing, so their `seconds` are the limit.\n",
        as_markdown(summary(measured)),
        "![Profiles, scaling and winners](grid.png)\n",
        f"**What `auto` chooses.** On {len(choices)} problems that its table was not fitted to, and that somebody",
        f"proved in time, `auto` takes at most 1.5 times as long as the fastest backend in {close:.0%}, and",
        f"{choices['ratio'].max():.2g} times as long at worst (times under {1000 * FLOOR:.0f} ms count as that).",
        f"It chooses {chosen}; the fastest was {fastest}.",
    ]
    if len(lost):
        worst = lost.sort_values("ratio", ascending=False).head(5).to_dict("records")
        lines.append("The choices that cost most:\n")
        for row in worst:
            what = f"{row['kind']}, n = {row['n']}, m = {row['m']}, {row['policies']} policies, {row['measure']}"
            times = f"{row['auto']} {row['auto_seconds']:.2f} s, {row['fastest']} {row['best_seconds']:.2f} s"
            lines.append(f"- {what}: {times}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the report; choices are judged by the package's table, whatever table the user has."""
    os.environ[VARIABLE] = str(TABLE)
    measured = pd.read_csv(HERE / "grid.csv")
    readme = HERE / "README.md"
    before, rest = readme.read_text().split(START)
    _, after = rest.split(END)
    text = report(measured)
    readme.write_text(before + START + text + END + after)
    figure(measured, HERE / "grid.png")
    print(text)


if __name__ == "__main__":
    main()
