"""Which player of the game proves a gap soonest? Run: make bench-players.

Regret matching+, its predictive, extragradient and smooth predictive relatives, and each of them with restarts, by one
thread: how many rounds T for each set of cases, doubled until it is enough, prove a test to be within 1e-2, 1e-4 and
1e-6 of the best, in units of the largest loss that a scenario can have (`Problem.loss_scale`):

- the paper's instance, Racing Arrows with 50 followers as test cases, 40 leaders and four softmax targets, 3 of the 50
  cases, CVaR 1 %;
- independent numbers, 12 cases and 40 policies, four softmax targets, 4 of the 12 cases, CVaR 10 %.

What counts is rounds, which here are questions to the antagonist: they are the same on every machine. The figure shows
the proved gap on the best set of cases alone against the rounds. What was measured goes to ``benchmarks/players.csv``
and ``benchmarks/players-curves.csv``, and from there to ``benchmarks/README.md`` and ``benchmarks/players.png``.
"""

import argparse
import importlib.metadata
import itertools
import platform
from collections.abc import Hashable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import rposst_opt as ro
from benchmarks.regret_matching import racing_arrows_problem
from rposst_opt.solvers.players import PLAYERS, RESTARTS
from rposst_opt.solvers.regret_matching import RegretMatching

HERE = Path(__file__).parent
GAPS = (1e-2, 1e-4, 1e-6)
SECONDS = 6.0  # for one run; where they do not suffice, no more rounds are tried
ROUNDS = [2**power for power in range(3, 22)]  # for each set of cases
CURVE = [int(rounds) for rounds in np.unique(np.geomspace(4, 200_000, 60).astype(int))]
START, END = "<!-- measured: players -->\n", "<!-- end of players -->\n"


def random_problem() -> ro.Problem:
    """Independent numbers: nothing that the players could make use of."""
    results = np.random.default_rng(2024).random((12, 40))
    return ro.Problem(results=results, size=4, measure=ro.CVaR(0.1), targets=ro.softmax_targets(results))


def make_problems() -> dict[str, ro.Problem]:
    """By the names that the table has."""
    return {"paper's instance": racing_arrows_problem(50, 3), "random numbers": random_problem()}


def alone(problem: ro.Problem, cases: tuple[int, ...]) -> ro.Problem:
    """The same problem with these cases and no others."""
    others = tuple(sorted(set(range(problem.n_cases)) - set(cases)))
    return replace(problem, size=1, required_cases=cases[1:], forbidden_cases=others)


def measure() -> pd.DataFrame:
    """Rounds and seconds of every player to every gap, with the gap that it reached."""
    rows = []
    for (name, problem), player, restarts in itertools.product(make_problems().items(), PLAYERS, RESTARTS):
        ro.solve(problem, RegretMatching(rounds=1, player=player, restarts=restarts))  # compiles, or loads
        for gap in GAPS:
            found = first_proof(problem, player, restarts, gap * problem.loss_scale)
            rows.append({"problem": name, "player": player, "restarts": restarts, "gap": gap, **found})
            print(*rows[-1].values(), flush=True)
    return pd.DataFrame(rows)


def first_proof(problem: ro.Problem, player: str, restarts: str, gap: float) -> dict[str, Any]:
    """The fewest rounds for each set of cases, of those tried, that prove this gap; or the most there was time for."""
    record: dict[str, Any] = {}
    for rounds in ROUNDS:
        method = RegretMatching(rounds=rounds, player=player, restarts=restarts, threads=1)
        solution = ro.solve(problem, method, gap=gap, time_limit_seconds=SECONDS)
        if solution.limit is not None and record:
            break
        record = {
            "rounds": rounds,
            "all_rounds": solution.stats.rounds,
            "seconds": solution.stats.solve_seconds,
            "objective": solution.objective,
            "lower_bound": solution.lower_bound,
            "is_proved": solution.limit is None and solution.gap <= gap + problem.allowance(1e-12),
        }
        if record["is_proved"]:
            break
    return record


def check(measured: pd.DataFrame) -> None:
    """No test may be better than anybody's bound."""
    for name, rows in measured.groupby("problem"):
        assert rows.objective.min() >= rows.lower_bound.max() - 1e-9, name


def curves() -> pd.DataFrame:
    """The proved gap on the best set of cases after so many rounds."""
    rows = []
    for name, problem in make_problems().items():
        best = ro.solve(problem, "exact").test
        assert best is not None
        one = alone(problem, best.cases)
        for player, restarts, rounds in itertools.product(PLAYERS, RESTARTS, CURVE):
            solution = ro.solve(one, "regret-matching", rounds=rounds, player=player, restarts=restarts, prune=False)
            gap = solution.gap / problem.loss_scale
            rows.append({"problem": name, "player": player, "restarts": restarts, "rounds": rounds, "gap": gap})
    return pd.DataFrame(rows)


def table(measured: pd.DataFrame) -> str:
    """Rounds for each set of cases, and all rounds and seconds in brackets, to each gap."""
    columns = [(name, gap) for name in measured.problem.unique() for gap in GAPS]
    lines = [
        "| player | restarts | " + " | ".join(f"{name}, {gap:.0e}" for name, gap in columns) + " |",
        "| --- " * (2 + len(columns)) + "|",
    ]
    for (player, restarts), rows in measured.groupby(["player", "restarts"], sort=False):
        found = {(row["problem"], row["gap"]): _cell(row) for row in rows.to_dict("records")}
        lines.append(f"| {player} | {restarts} | " + " | ".join(found[column] for column in columns) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: Mapping[Hashable, Any]) -> str:
    if row["is_proved"]:
        return f"{row['rounds']:,} ({row['all_rounds']:,}; {row['seconds']:.2g} s)"
    return f"not with {row['rounds']:,}"


def figure(drawn: pd.DataFrame, path: Path) -> None:
    """The proved gap against rounds, one chart per problem."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    colours = dict(zip(PLAYERS, ["#0072B2", "#D55E00", "#009E73", "#CC79A7"], strict=True))
    styles = dict(zip(RESTARTS, ["-", ":", "--"], strict=True))
    names = list(drawn.problem.unique())
    chart, charts = plt.subplots(1, len(names), figsize=(12, 5), layout="constrained", sharey=True)
    for axes, name in zip(charts, names, strict=True):
        for player, restarts in itertools.product(PLAYERS, RESTARTS):
            rows = drawn[(drawn.problem == name) & (drawn.player == player) & (drawn.restarts == restarts)]
            gaps = rows.gap.clip(lower=1e-10)  # what is left below is rounding
            axes.plot(rows.rounds, gaps, styles[restarts], color=colours[player], linewidth=1.3)
        axes.set(xscale="log", yscale="log", xlabel="rounds (questions to the antagonist)", title=name)
        axes.set_ylim(bottom=5e-11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3, which="major")
    charts[0].set_ylabel("proved gap, in units of the largest loss")
    for player, colour in colours.items():
        charts[-1].plot([], [], color=colour, label=player)
    for restarts, style in styles.items():
        words = "no restarts" if restarts == "never" else f"restarts from the {restarts} round"
        charts[-1].plot([], [], style, color="#555555", label=words)
    charts[-1].legend(frameon=False, loc="lower left", fontsize=8)
    chart.suptitle("The best set of cases alone: what each player has proved after so many rounds", fontsize=10)
    chart.savefig(path, dpi=120)


def circumstances(remark: str) -> str:
    """Where and with what it was measured."""
    return (
        f"Measured on {date.today()} by `make bench-players`: {platform.machine()}, one thread, Python "
        f"{platform.python_version()}, numba {importlib.metadata.version('numba')}.{remark and ' ' + remark}\n"
    )


def write_report(measured: pd.DataFrame, drawn: pd.DataFrame, remark: str) -> None:
    """Put the table and the figure into the benchmarks' README."""
    readme = HERE / "README.md"
    before, rest = readme.read_text().split(START)
    _, after = rest.split(END)
    readme.write_text(before + START + circumstances(remark) + "\n" + table(measured) + END + after)
    figure(drawn, HERE / "players.png")


def main() -> None:
    """Measure, or draw again what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--redraw", action="store_true", help="use what benchmarks/players*.csv have")
    parser.add_argument("--remark", default="", help="what else ran on the machine, for the README")
    options = parser.parse_args()
    files = HERE / "players.csv", HERE / "players-curves.csv"
    measured, drawn = map(pd.read_csv, files) if options.redraw else (measure(), curves())
    check(measured)
    for rows, path in zip((measured, drawn), files, strict=True):
        rows.to_csv(path, index=False)
    write_report(measured, drawn, options.remark)
    print(table(measured))


if __name__ == "__main__":
    main()
