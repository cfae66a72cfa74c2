"""What is done about missing cells, and what is said about them."""

import numpy as np
import pandas as pd

from rposst_opt.errors import ProblemError
from rposst_opt.files.choices import Missing
from rposst_opt.files.incomplete import BoolArray, complete_columns, complete_rows, fill, largest_complete_part

SHOWN = 3  # missing cells that are named


def without_missing(where: str, table: pd.DataFrame, missing: Missing) -> tuple[pd.DataFrame, list[str]]:
    """The table without missing cells, dropped or filled as was asked for, and notes."""
    absent = table.isna().to_numpy()
    if not absent.any():
        return table, []
    if missing is Missing.ERROR:
        raise ProblemError(_refusal(where, table, absent))
    if missing is Missing.FILL:
        return _filled(where, table, absent)
    cases, policies = _kept(absent, missing)
    n_cases, n_policies = int(cases.sum()), int(policies.sum())
    if not n_cases or not n_policies:
        raise ProblemError(f"{where}: --missing {missing} leaves nothing: every one of them has a missing cell.")
    found = ", the largest complete part found" if missing is Missing.DROP else ""
    note = (
        f"{_count(absent)} were missing: kept {n_cases:,} of {len(cases):,} test cases and {n_policies:,} of "
        f"{len(policies):,} policies{found}, as --missing {missing} says"
    )
    return table.loc[cases, policies], [note]


def _kept(absent: BoolArray, missing: Missing) -> tuple[BoolArray, BoolArray]:
    """Which test cases and which policies are kept."""
    if missing is Missing.DROP_CASES:
        return complete_rows(absent)
    if missing is Missing.DROP_POLICIES:
        return complete_columns(absent)
    return largest_complete_part(absent)


def _filled(where: str, table: pd.DataFrame, absent: BoolArray) -> tuple[pd.DataFrame, list[str]]:
    for kind, names, empty in (
        ("test case", table.index, np.flatnonzero(absent.all(axis=1))),
        ("policy", table.columns, np.flatnonzero(absent.all(axis=0))),
    ):
        if len(empty):
            name = names[int(empty[0])]
            raise ProblemError(f"{where}: the {kind} {name!r} has no cell to fill the others by: leave it out.")
    filled = fill(table.to_numpy())
    note = (
        f"{_count(absent)} were missing and are filled by a low-rank fit, as --missing fill says: it misses known "
        f"cells that were held out by {filled.error:.3g} of their case's standard deviation (root mean square; the "
        f"case's mean by {filled.error_of_means:.3g}), and by {filled.mean_error:.3g} in the file's units on average"
    )
    return pd.DataFrame(filled.table, index=table.index, columns=table.columns), [note]


def _refusal(where: str, table: pd.DataFrame, absent: BoolArray) -> str:
    """How many cells are missing, where, and what each choice would keep."""
    places = np.argwhere(absent)
    named = [
        f"test case {table.index[row]!r} and policy {table.columns[column]!r}"
        for row, column in places[:SHOWN].tolist()
    ]
    more = f" and {len(places) - SHOWN:,} more" if len(places) > SHOWN else ""
    choices = []
    for missing in (Missing.DROP_CASES, Missing.DROP_POLICIES, Missing.DROP):
        cases, policies = _kept(absent, missing)
        choices.append(f"{missing} keeps {cases.sum():,} × {policies.sum():,}")
    n_cases, n_policies = absent.shape
    return (
        f"{where}: {_count(absent)} {'is' if len(places) == 1 else 'are'} empty or missing (that of "
        f"{'; '.join(named)}{more}). Of {n_cases:,} test cases × {n_policies:,} policies, "
        f"--missing {', '.join(choices)}, fill guesses what is missing."
    )


def _count(absent: BoolArray) -> str:
    return f"{int(absent.sum()):,} of {absent.size:,} cells"
