"""What a test is worth on policies that nobody has seen: ``python -m benchmarks.unseen --table results.csv``.

For every table and size, policies are held out: a fifth at random, several times, and the strongest fifth, each time
with a tenth of the others left away at random. Tests are made of the others by every selection, and their estimates by
every estimator are held against the full scores. Besides, `validate` is run on the others alone, and what it recommends
is compared with the best combination in hindsight: regret is the ratio of their mean errors, less one.

Tables are CSV files, test cases by policies; ``--transpose`` turns one round, ``--long CASE,POLICY,VALUE`` reads a long
one, with means over repetitions, and ``--within-cases`` maps the results of every case to [0, 1], for cases that have
units of their own. Cases and policies with missing results are left out, the worst first. ``--domain arrows`` is Racing
Arrows, both roles.

Intervals are those of tests of ``--interval-sizes``, with and without an offset, on random held-out policies, in
``--interval-replicas`` (as many as it takes to hold out 600 policies, unless given); ``--intervals-only`` leaves out
the rest. What they cover is printed with its standard error over replicas: policies that are held out together share a
test.

Every run writes its trials and its intervals as CSV; ``--join A.csv B.csv`` reads several of them and prints what they
say together, and with ``--figure`` draws it.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.backends import solve
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.estimators import ESTIMATORS, WEIGHTS
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.problem import Problem
from rposst_opt.results import full_scores
from rposst_opt.unseen.error_bars import JACKKNIFE, JACKKNIFE_PLUS, LeftOut, intervals, leave_out
from rposst_opt.unseen.procedures import EFFORT, KICKS, LEAST_EFFORT, Purpose, attempt
from rposst_opt.unseen.recommendation import recommend
from rposst_opt.unseen.splits import Kind, strongest
from rposst_opt.unseen.validation import Validation, validate

SELECTIONS = ("rposst", "rposst-offset", "greedy-ridge", "kmeans", "stratified", "mrmr")
SIZES = (3, 10, 30, 100)
HELD_OUT, LEFT_AWAY = 0.2, 0.1
OUT = Path(__file__).with_suffix(".csv")
LEVEL = 0.9  # of intervals
INTERVAL_SIZES, FEWEST_HELD_OUT = (3, 10), 600
MOST_TUNED_ON = 64  # for intervals: as many policies as can be left out again and again
ESTIMATORS_WITH_INTERVALS = [method for method in ESTIMATORS if method != "aipw"]  # which takes longer than all others
MOST_SETS = 100_000  # of cases, for intervals of tests that are proved to be the best
FEWEST_REPLICAS = 20  # of intervals, where many policies are held out together
WAY = ["table", "size", "offset", "estimator", "way"]
NAMED = 12  # ways that are shown, the best ones


def read_table(path: Path, *, transpose: bool, long: str | None) -> pd.DataFrame:
    """Test cases by policies, without holes."""
    if long is not None:
        case, policy, value = long.split(",")
        table = pd.read_csv(path).pivot_table(index=case, columns=policy, values=value)
    else:
        table = pd.read_csv(path, index_col=0)
    table = table.T if transpose else table
    while table.isna().to_numpy().any():
        rows, columns = table.isna().mean(axis=1), table.isna().mean(axis=0)
        table = table.drop(index=rows.idxmax()) if rows.max() >= columns.max() else table.drop(columns=columns.idxmax())
    return table


def splits(results: FloatArray, replicas: int) -> Iterator[tuple[Kind, int, IntArray, IntArray]]:
    """Kind, replica, tuning policies and held-out ones."""
    n_policies = results.shape[1]
    best = np.array(strongest(results.mean(axis=0), (HELD_OUT,))[0].held_out)
    for replica in range(replicas):
        rng = np.random.default_rng([7, replica])
        held_out = rng.permutation(n_policies)[: max(1, round(HELD_OUT * n_policies))]
        yield Kind.ALIKE, replica, np.setdiff1d(np.arange(n_policies), held_out), held_out
        others = rng.permutation(np.setdiff1d(np.arange(n_policies), best))
        yield Kind.STRONGEST, replica, np.sort(others[: round((1 - LEFT_AWAY) * len(others))]), best


def trial(
    name: str, results: FloatArray, size: int, kind: Kind, replica: int, tuning: IntArray, held_out: IntArray
) -> list[dict[str, Any]]:
    """The mean error of every combination on the held-out policies, and which of them was recommended."""
    known, others = results[:, tuning], results[:, held_out]
    found = validate(known, [size], selections=SELECTIONS, folds=min(5, len(tuning)), replicas=2)
    advice = recommend(found, kind)
    place = {"table": name, "size": size, "kind": kind.value, "replica": replica}
    inner = _inner_errors(found)
    return [
        place
        | {
            "selection": each.selection,
            "estimator": method,
            "mean_error": float(np.abs(estimates - each.full).mean()),
            "worst_error": float(np.abs(estimates - each.full).max()),
            "is_recommended": (each.selection, method) == (advice.selection, advice.estimator),
            **{f"validated_{of}": inner[of.value, each.selection, method] for of in (Kind.ALIKE, Kind.STRONGEST)},
        }
        for each in attempt(known, others, size, Purpose(), SELECTIONS, ESTIMATORS, replica)
        for method, estimates in each.estimates.items()
    ]


def _inner_errors(found: Validation) -> dict[Any, float]:
    """What the validation on tuning policies alone says of every kind and way: geometric means over replicas."""
    errors = found.by_replica.assign(error=found.by_replica["mean_error"].clip(lower=1e-300).apply(math.log))
    return dict(errors.groupby(["kind", "selection", "estimator"])["error"].mean().apply(math.exp))


def regrets(trials: pd.DataFrame) -> pd.DataFrame:
    """By table, size and kind: the recommended combinations' mean error over the best one's in hindsight, less one."""
    rows = []
    for (table, size, kind), group in trials.groupby(["table", "size", "kind"], sort=False):
        by_way = group.groupby(["selection", "estimator"])["mean_error"].mean()
        recommended = group[group["is_recommended"]]["mean_error"].mean()
        rows.append((table, size, kind, by_way.min(), recommended, recommended / by_way.min() - 1))
    return pd.DataFrame(rows, columns=["table", "size", "kind", "best", "recommended", "regret"])


def random_splits(n_policies: int, replicas: int | None = None) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Replica, tuning policies and held-out ones, for intervals; as many replicas as it takes, unless given."""
    n_held_out = _held_out_together(n_policies)
    for replica in range(replicas_for_intervals(n_policies) if replicas is None else replicas):
        order = np.random.default_rng([7, replica]).permutation(n_policies)
        yield replica, np.sort(order[n_held_out:]), order[:n_held_out]


def _held_out_together(n_policies: int) -> int:
    return max(1, round(HELD_OUT * n_policies), n_policies - MOST_TUNED_ON)


def replicas_for_intervals(n_policies: int) -> int:
    """As many as it takes to hold out enough policies, and to say how far they differ."""
    return max(FEWEST_REPLICAS, math.ceil(FEWEST_HELD_OUT / _held_out_together(n_policies)))


def coverage(
    name: str, results: FloatArray, size: int, offset: bool, replica: int, tuning: IntArray, held_out: IntArray
) -> list[dict[str, Any]]:
    """Of one replica, by estimator and way: how many held-out policies intervals cover, and how wide they are."""
    known, others = results[:, tuning], results[:, held_out]
    purpose = Purpose(offset=offset)
    problem, scale = purpose.problem(known, size)
    backend, options = _gentle_backend(problem)
    left_out = leave_out(known, size, purpose, backend=backend, options=options, estimators=ESTIMATORS_WITH_INTERVALS)
    chosen = solve(problem, backend, **options).test
    assert chosen is not None and left_out is not None
    test, full = chosen.in_file_units(scale), full_scores(problem.targets, others)[0]
    place = {"table": name, "size": size, "offset": offset, "replica": replica, "policies": len(held_out)}
    return [
        place
        | {
            "estimator": method,
            "way": way,
            "covered": int(((low <= full) & (full <= high)).sum()),
            "width": float((high - low).mean()),
        }
        for method in ESTIMATORS_WITH_INTERVALS
        for way, (low, high) in _ends(test, left_out, known, others, method).items()
    ]


def _gentle_backend(problem: Problem) -> tuple[str, dict[str, Any]]:
    """Who chooses: the proved optimum where sets are few, as by default; elsewhere local search, as in `validate`."""
    if problem.n_tuples <= MOST_SETS:
        return "exact", {"threads": 1}
    effort = max(LEAST_EFFORT, EFFORT // problem.n_chosen**2)
    return "local-search", {"kicks": KICKS, "threads": 1, "effort": effort}


def _ends(
    test: EfficientTest, left_out: LeftOut, known: FloatArray, others: FloatArray, method: str
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """By way: the lower and the upper ends of the intervals of other policies.

    Beside those of `rposst score` stand the jackknife with a radius between two errors, where the level lies between
    their ranks; for the test's own weights, ends halfway between those of the jackknife and of jackknife+; and what one
    would say from the errors on tuning policies alone.
    """
    alone = intervals(test, left_out, others, method=method, level=LEVEL)
    radii = np.abs(left_out.errors[method][0])
    between = float(np.quantile(radii, LEVEL, method="weibull"))
    tuned = float(np.quantile(np.abs(test.estimate(known, method) - known.mean(axis=0)), LEVEL))
    found = {
        JACKKNIFE: (alone.low, alone.high),
        "between ranks": (alone.scores - between, alone.scores + between),
        "tuning": (alone.scores - tuned, alone.scores + tuned),
    }
    if method == WEIGHTS:
        plus = intervals(test, left_out, others, level=LEVEL, kind=JACKKNIFE_PLUS)
        found[JACKKNIFE_PLUS] = (plus.low, plus.high)
        found["halfway"] = ((alone.low + plus.low) / 2, (alone.high + plus.high) / 2)
    return found


def shares_covered(covered: pd.DataFrame) -> pd.DataFrame:
    """By table, size, offset, estimator and way: the share that is covered, and the width over that from tuning errors.

    The standard error is that of the mean over replicas, which are random splits of the same policies.
    """
    by_replica = covered.assign(share=covered["covered"] / covered["policies"]).groupby(WAY, sort=False)
    found = by_replica.agg(
        policies=("policies", "sum"),
        replicas=("replica", "count"),
        share=("share", "mean"),
        standard_error=("share", "sem"),
        width=("width", "mean"),
    ).reset_index()
    naive = found[found["way"] == "tuning"][[*WAY[:-1], "width"]]
    beside = found.merge(naive, on=WAY[:-1], suffixes=("", "_by_tuning"))
    return beside.assign(ratio=beside["width"] / beside["width_by_tuning"]).drop(columns="width_by_tuning")


def rivals(trials: pd.DataFrame) -> pd.DataFrame:
    """By kind, size and way: the geometric mean, over tables, of the mean error over the best way's in hindsight."""
    errors = trials.groupby(["kind", "size", "table", "selection", "estimator"], sort=False)["mean_error"].mean()
    best = errors.groupby(["kind", "size", "table"]).transform("min")
    ratios = (errors / best).apply(math.log).groupby(["kind", "size", "selection", "estimator"], sort=False).mean()
    found: pd.DataFrame = ratios.apply(math.exp).rename("ratio").reset_index()
    return found.sort_values(["kind", "size", "ratio"], kind="stable")


def draw(trials: pd.DataFrame, path: Path) -> None:
    """For every kind and size, the error over the best way's in hindsight: a dot per way, the best ones named."""
    from matplotlib.figure import Figure

    ranked = rivals(trials)
    kinds, sizes = list(dict.fromkeys(ranked["kind"])), sorted(set(ranked["size"]))
    figure = Figure(figsize=(4.2 * len(sizes), 4.0 * len(kinds)), layout="constrained")
    panels = figure.subplots(len(kinds), len(sizes), squeeze=False)
    for row, kind in enumerate(kinds):
        for column, size in enumerate(sizes):
            axes = panels[row, column]
            ways = ranked[(ranked["kind"] == kind) & (ranked["size"] == size)].head(NAMED).iloc[::-1]
            names = [f"{way.selection}, {way.estimator}" for way in ways.itertuples()]
            axes.barh(names, ways["ratio"], color=["C1" if "rposst" in name else "C0" for name in names])
            axes.axvline(1.0, color="black", linewidth=0.8)
            axes.set_xlim(left=0.0)
            axes.set_title(f"{kind}, {size} cases", fontsize="medium")
    figure.supxlabel("mean error on held-out policies, as a multiple of the best way's in hindsight")
    figure.savefig(path, dpi=110)


def tell(trials: pd.DataFrame, covered: pd.DataFrame) -> None:
    """Print the best ways, the regret of what is recommended, and what intervals cover."""
    if len(trials):
        _tell_trials(trials)
    if len(covered):
        _tell_coverage(shares_covered(covered))


def _tell_coverage(shares: pd.DataFrame) -> None:
    for place, ways in shares.groupby(["estimator", "size", "way"], sort=False):
        low, high = ways["share"].min(), ways["share"].max()
        print(*place, f"cover {low:.3f} to {high:.3f}, {ways['share'].mean():.3f} on average over tables")
    print(shares[shares["estimator"] == WEIGHTS].round(3).to_string(index=False))


def _tell_trials(trials: pd.DataFrame) -> None:
    for place, ways in rivals(trials).groupby(["kind", "size"], sort=False):
        print(*place)
        print(ways.head(NAMED)[["selection", "estimator", "ratio"]].round(2).to_string(index=False, header=False))
    found = regrets(trials)
    print(found.round(4).to_string(index=False))
    print(found.groupby("kind")["regret"].mean().round(3).to_string())


def main() -> None:
    """Run it and print what came of it."""
    arguments = _parse()
    if arguments.join:
        trials = _joined([path for path in arguments.join if path.exists()])  # none are written by --intervals-only
        covered = _joined([_beside(path) for path in arguments.join])
    else:
        trials, covered = _run(_tables(arguments), arguments)
        if len(trials):
            trials.to_csv(arguments.out, index=False)
        covered.to_csv(_beside(arguments.out), index=False)
    tell(trials, covered)
    if arguments.figure is not None:
        draw(trials, arguments.figure)


def _joined(paths: list[Path]) -> pd.DataFrame:
    return pd.concat([pd.DataFrame(), *map(pd.read_csv, paths)], ignore_index=True)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}-intervals.csv")


def _tables(arguments: argparse.Namespace) -> dict[str, FloatArray]:
    tables = {
        path.name.split(".")[0]: read_table(path, transpose=arguments.transpose, long=arguments.long)
        for path in arguments.table or ()
    }
    if arguments.domain == "arrows":
        arrows = racing_arrows(50, np.random.default_rng(0))
        tables |= {"arrows-followers": arrows, "arrows-leaders": arrows.T}
    if arguments.within_cases:
        tables = {
            name: table.sub(table.min(axis=1), axis=0).div(np.ptp(table.to_numpy(), axis=1), axis=0)
            for name, table in tables.items()
        }
    return {name: table.to_numpy(float) for name, table in tables.items()}


def _run(tables: dict[str, FloatArray], arguments: argparse.Namespace) -> tuple[pd.DataFrame, pd.DataFrame]:
    asked = [
        (name, results, size, *split)
        for name, results in tables.items()
        for size in arguments.sizes
        if 2 * size <= len(results)
        for split in splits(results, arguments.replicas)
    ]
    run = Parallel(n_jobs=arguments.jobs, batch_size=1, verbose=10)
    trials = [] if arguments.intervals_only else run(delayed(trial)(*each) for each in asked)
    covered = run(
        delayed(coverage)(name, results, size, offset, *split)
        for name, results in tables.items()
        for size in arguments.interval_sizes
        if 2 * size <= len(results)
        for offset in (False, True)
        for split in random_splits(results.shape[1], arguments.interval_replicas)
    )
    return _rows(trials), _rows(covered)


def _rows(found: list[list[dict[str, Any]]]) -> pd.DataFrame:
    return pd.DataFrame([row for rows in found for row in rows])


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--table", type=Path, action="append")
    asked.add_argument("--domain", choices=["arrows"])
    asked.add_argument("--join", type=Path, nargs="+")
    parser.add_argument("--transpose", action="store_true")
    parser.add_argument("--long", metavar="CASE,POLICY,VALUE")
    parser.add_argument("--within-cases", action="store_true")
    parser.add_argument("--sizes", type=_numbers, default=list(SIZES))
    parser.add_argument("--intervals-only", action="store_true")
    parser.add_argument("--interval-sizes", type=_numbers, default=list(INTERVAL_SIZES))
    parser.add_argument("--interval-replicas", type=int)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--figure", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
