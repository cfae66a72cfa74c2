"""From choices to tidy tables: who chose what, how far off that is on held-out policies, and how sure we are of it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.experiments.methods import METHODS, REFERENCE
from rposst_opt.experiments.protocol import HARDEST, Choice, holdout_errors, mean_with_interval
from rposst_opt.experiments.studies import Cell, Study

if TYPE_CHECKING:
    import pandas as pd

Outcomes = list[tuple[Cell, tuple[Choice, ...]]]
SortedErrors = dict[tuple[float, int], dict[str, list[FloatArray]]]


def selections(study: Study, outcomes: Outcomes) -> "pd.DataFrame":
    """A row per chosen case: by whom, in which cell, with what weight, and the test's objective on tuning policies."""
    import pandas as pd

    names = [str(name) for name in study.table.index]
    rows = []
    for cell, choices in outcomes:
        cases = study.split(cell).cases
        for choice in choices:
            for case, weight in zip(choice.cases, choice.weights, strict=True):
                rows.append(
                    (*_place(study, cell), cell.replica, choice.method, names[cases[case]], weight, choice.objective)
                )
    columns = ["domain", "holdout", "size", "replica", "method", "case", "weight", "objective"]
    return pd.DataFrame(rows, columns=columns)


def _place(study: Study, cell: Cell) -> tuple[str, float, int]:
    return study.name, cell.holdout, cell.size


def errors(study: Study, outcomes: Outcomes) -> "pd.DataFrame":
    """A row per (held-out policy, target) pair: its error, for every method and cell."""
    import pandas as pd

    names = np.array([str(name) for name in study.table.columns])
    frames = []
    for cell, choices in outcomes:
        split = study.split(cell)
        for choice in choices:
            found = holdout_errors(study.results, split, choice)
            policy, target = np.indices(found.shape)
            frames.append(
                pd.DataFrame(
                    {
                        "domain": study.name,
                        "holdout": cell.holdout,
                        "size": cell.size,
                        "replica": cell.replica,
                        "method": choice.method,
                        "policy": names[split.holdout][policy.ravel()],
                        "target": target.ravel(),
                        "error": found.ravel(),
                    }
                )
            )
    return pd.concat(frames, ignore_index=True)


def sorted_errors(study: Study, outcomes: Outcomes) -> SortedErrors:
    """For every holdout and size, each method's errors: a row per replica, the hardest pair first."""
    found: SortedErrors = {
        (holdout, size): {method: [] for method in study.methods} for holdout in study.holdouts for size in study.sizes
    }
    for cell, choices in outcomes:
        split = study.split(cell)
        for choice in choices:
            of_pairs = holdout_errors(study.results, split, choice)
            found[cell.holdout, cell.size][choice.method].append(np.sort(of_pairs, axis=None)[::-1])
    return found


def curves(domain: str, found: SortedErrors) -> "pd.DataFrame":
    """The mean over replicas of the sorted errors, with its interval; rank 1 is the hardest pair of a replica."""
    import pandas as pd

    frames = []
    for (holdout, size), by_method in found.items():
        for method, rows in by_method.items():
            mean, low, high = mean_with_interval(np.array(rows))
            place = {"domain": domain, "holdout": holdout, "size": size, "method": method}
            frames.append(
                pd.DataFrame({**place, "rank": np.arange(1, len(mean) + 1), "error": mean, "low": low, "high": high})
            )
    return pd.concat(frames, ignore_index=True)


def summary(domain: str, found: SortedErrors) -> "pd.DataFrame":
    """A row per method: its mean, hardest-four and largest error, and how it compares with RPOSST replica by replica.

    `excess` is the method's hardest-four error minus RPOSST's in the same replica: positive where RPOSST is better.
    """
    import pandas as pd

    rows = []
    for (holdout, size), by_method in found.items():
        reference = by_method.get(REFERENCE)
        for method, by_replica in by_method.items():
            hardest_first = np.array(by_replica)
            hardest = hardest_first[:, :HARDEST].mean(axis=1)
            row: dict[str, Any] = {"domain": domain, "holdout": holdout, "size": size, "method": method}
            row |= {"replicas": len(hardest_first), "pairs": hardest_first.shape[1]}
            row |= _named("mean_error", hardest_first.mean(axis=1))
            row |= _named("hardest_four", hardest)
            row |= _named("largest", hardest_first[:, 0])
            if reference is not None:
                row |= _named("excess", hardest - np.array(reference)[:, :HARDEST].mean(axis=1))
            rows.append(row)
    return pd.DataFrame(rows)


def comparison(found: "pd.DataFrame") -> "pd.DataFrame":
    """How often the paper's claims hold, a row per domain; a comparison is of one baseline in one (holdout, size) cell.

    RPOSST counts as better or worse where the 95 % interval of the paired difference on the hardest four pairs leaves
    zero out. `robust_better` counts the cells in which minimax uniform has a lower hardest-four error than miniaverage
    uniform, `tnp_better` those in which minimax(TNP) has a lower one than minimax(TTD).

    Parameters
    ----------
    found : DataFrame
        As `summary` makes it, with all of the paper's methods.
    """
    import pandas as pd

    baselines = [method for method, known in METHODS.items() if known.in_paper and method != REFERENCE]
    rows = []
    for domain, of_domain in found.groupby("domain", sort=False):
        against = of_domain[of_domain["method"].isin(baselines)]
        hardest = of_domain.pivot(index=["holdout", "size"], columns="method", values="hardest_four")
        rows.append(
            {
                "domain": domain,
                "comparisons": len(against),
                "rposst_better": int((against["excess_low"] > 0).sum()),
                "rposst_worse": int((against["excess_high"] < 0).sum()),
                "cells": len(hardest),
                "robust_better": int((hardest["minimax-uniform"] < hardest["miniaverage-uniform"]).sum()),
                "tnp_better": int((hardest["minimax-tnp-uniform"] < hardest["minimax-ttd-uniform"]).sum()),
            }
        )
    return pd.DataFrame(rows)


def _named(name: str, samples: FloatArray) -> dict[str, float]:
    mean, low, high = mean_with_interval(samples)
    return {name: float(mean), f"{name}_low": float(low), f"{name}_high": float(high)}


def top_picks(chosen: "pd.DataFrame", *, count: int = 2) -> "pd.DataFrame":
    """The sets of cases that each method chose most often, with how often that was, in percent of replicas.

    Parameters
    ----------
    chosen : DataFrame
        As `selections` makes it.
    count : int
        How many sets to list for each method.
    """
    import pandas as pd

    keys = ["domain", "holdout", "size", "method"]
    counted = chosen[chosen["weight"] > 0]  # a case of weight zero only fills a test up
    sets = counted.groupby([*keys, "replica"], sort=False)["case"].agg(lambda cases: ", ".join(sorted(cases)))
    rows = []
    for key, of_method in sets.groupby(keys, sort=False):
        frequencies = 100 * of_method.value_counts() / len(of_method)
        ordered = sorted(frequencies.items(), key=lambda pair: (-pair[1], pair[0]))
        for cases, percent in ordered[:count]:
            rows.append((*key, cases, percent))
    return pd.DataFrame(rows, columns=[*keys, "cases", "percent"])
