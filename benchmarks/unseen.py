"""What a test is worth on policies that nobody has seen: ``python -m benchmarks.unseen --table results.csv``.

For every table and size, policies are held out: a fifth at random, several times, and the strongest fifth, each time
with a tenth of the others left away at random. Tests are made of the others by every selection, and their estimates by
every estimator are held against the full scores. Besides, `validate` is run on the others alone, and what it recommends
is compared with the best combination in hindsight: regret is the ratio of their mean errors, less one.

Tables are CSV files, test cases by policies; ``--transpose`` turns one round, ``--long CASE,POLICY,VALUE`` reads a long
one, with means over repetitions. Cases and policies with missing results are left out, the worst first.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.backends import solve
from rposst_opt.estimators import ESTIMATORS
from rposst_opt.results import full_scores
from rposst_opt.unseen.error_bars import intervals, leave_out_one_by_one
from rposst_opt.unseen.procedures import Purpose, attempt
from rposst_opt.unseen.recommendation import recommend
from rposst_opt.unseen.splits import Kind, strongest
from rposst_opt.unseen.validation import validate

SELECTIONS = ("rposst", "rposst-offset", "greedy-ridge", "kmeans", "stratified", "mrmr")
SIZES = (3, 10, 30, 100)
HELD_OUT, LEFT_AWAY = 0.2, 0.1
OUT = Path(__file__).with_suffix(".csv")
MOST_COVERED = 100  # policies, for intervals that leave them out one by one


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
    return [
        place
        | {
            "selection": each.selection,
            "estimator": method,
            "mean_error": float(np.abs(estimates - each.full).mean()),
            "worst_error": float(np.abs(estimates - each.full).max()),
            "is_recommended": (each.selection, method) == (advice.selection, advice.estimator),
        }
        for each in attempt(known, others, size, Purpose(), SELECTIONS, ESTIMATORS, replica)
        for method, estimates in each.estimates.items()
    ]


def regrets(trials: pd.DataFrame) -> pd.DataFrame:
    """By table, size and kind: the recommended combinations' mean error over the best one's in hindsight, less one."""
    rows = []
    for (table, size, kind), group in trials.groupby(["table", "size", "kind"], sort=False):
        by_way = group.groupby(["selection", "estimator"])["mean_error"].mean()
        recommended = group[group["is_recommended"]]["mean_error"].mean()
        rows.append((table, size, kind, by_way.min(), recommended, recommended / by_way.min() - 1))
    return pd.DataFrame(rows, columns=["table", "size", "kind", "best", "recommended", "regret"])


def coverage(results: FloatArray, size: int, level: float, replicas: int) -> dict[str, float]:
    """How many random held-out policies the intervals cover, how wide they are, and the same of tuning errors alone."""
    covered, naive, widths, narrow, count = 0, 0, 0.0, 0.0, 0
    for kind, _, tuning, held_out in splits(results, replicas):
        if kind is not Kind.ALIKE:
            continue
        known, others, purpose = results[:, tuning], results[:, held_out], Purpose()
        problem, scale = purpose.problem(known, size)
        options: dict[str, Any] = {"kicks": 1, "threads": 1}
        left_out = leave_out_one_by_one(known, size, purpose, backend="local-search", options=options)
        chosen = solve(problem, "local-search", **options).test
        assert chosen is not None and left_out is not None
        test, full = chosen.in_file_units(scale), full_scores(problem.targets, others)[0]
        found = intervals(test, left_out, others, level=level)
        radius = np.quantile(np.abs(test.score(known) - full_scores(problem.targets, known)[0]), level)
        covered += int(((found.low <= full) & (full <= found.high)).sum())
        naive += int((np.abs(found.scores - full) <= radius).sum())
        widths += float((found.high - found.low).sum())
        narrow += float(2 * radius * len(full))
        count += len(full)
    return {
        "covered": covered / count,
        "width": widths / count,
        "covered_by_tuning_errors": naive / count,
        "width_by_tuning_errors": narrow / count,
    }


def main() -> None:
    """Run it and print what came of it."""
    arguments = _parse()
    tables = {
        path.name.split(".")[0]: read_table(path, transpose=arguments.transpose, long=arguments.long).to_numpy(float)
        for path in arguments.table
    }
    asked = [
        (name, results, size, *split)
        for name, results in tables.items()
        for size in arguments.sizes
        if 2 * size <= len(results)
        for split in splits(results, arguments.replicas)
    ]
    run = Parallel(n_jobs=arguments.jobs, batch_size=1, verbose=10)
    trials = pd.DataFrame([row for rows in run(delayed(trial)(*each) for each in asked) for row in rows])
    trials.to_csv(arguments.out, index=False)
    found = regrets(trials)
    print(found.round(4).to_string(index=False))
    print(found.groupby("kind")["regret"].mean().round(3).to_string())
    for name, results in tables.items():
        if results.shape[1] <= MOST_COVERED:
            print(name, coverage(results, arguments.sizes[0], 0.9, arguments.replicas))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, action="append", required=True)
    parser.add_argument("--transpose", action="store_true")
    parser.add_argument("--long", metavar="CASE,POLICY,VALUE")
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=list(SIZES))
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
