"""What a report says of policies that nobody has seen: the trials of a validation, for tests of its own size."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.backends import entry_of
from rposst_opt.estimators import WEIGHTS
from rposst_opt.reports.pages.report import Report
from rposst_opt.reports.wording import HELD_OUT_HEADINGS, cases_words, in_a_row
from rposst_opt.unseen.procedures import SEARCH, SELECTIONS
from rposst_opt.unseen.recommendation import recommend
from rposst_opt.unseen.splits import Kind
from rposst_opt.unseen.validation import Validation

BEST_SHOWN = 10
OPTIMISED = next(name for name, selection in SELECTIONS.items() if selection.backend == SEARCH)


@dataclass(frozen=True, eq=False)
class Ways:
    """The best ways of making a test, on held-out policies of one kind, and the report's own way.

    Attributes
    ----------
    kind : Kind
    table : DataFrame
        Rows of `Validation.summary`, the best first, with their rank among all.
    own : int or None
        The row of the way in which the report's test was made; None if it was not tried.
    """

    kind: Kind
    table: pd.DataFrame
    own: int | None

    @property
    def chart_id(self) -> str:
        """Of the chart's element."""
        return f"chart-unseen-{self.kind.value}"


def own_selection(backend: str) -> str | None:
    """What `validate` calls the choice of this backend; None if it does not try it.

    Whoever optimises the objective chooses as RPOSST does, in trials by local search.
    """
    for name, selection in SELECTIONS.items():
        if selection.backend == backend:
            return name
    return None if entry_of(backend).capabilities.is_heuristic else OPTIMISED


def size_shown(report: Report, validation: Validation) -> int:
    """The report's size, or the nearest one that was tried."""
    sizes = sorted(int(size) for size in set(validation.summary["size"]))
    return min(sizes, key=lambda size: abs(size - report.problem.size))


def ways_of(report: Report) -> list[Ways]:
    """The best ways for each kind of held-out policies; none without a validation."""
    if report.validation is None:
        return []
    summary = report.validation.summary
    of_size = summary[summary["size"] == size_shown(report, report.validation)]
    mine = own_selection(report.solution.backend)
    found = []
    for kind in Kind:
        ways = of_size[of_size["kind"] == kind.value].sort_values("mean_error", kind="stable")
        if ways.empty:
            continue
        ranked = ways.assign(rank=np.arange(1, len(ways) + 1))
        is_own = ((ranked["selection"] == mine) & (ranked["estimator"] == WEIGHTS)).to_numpy()
        table = ranked[(ranked["rank"] <= BEST_SHOWN).to_numpy() | is_own].reset_index(drop=True)
        place = np.flatnonzero(is_own)
        found.append(Ways(kind, table, min(int(place[0]), BEST_SHOWN) if len(place) else None))
    return found


def own_way(report: Report) -> dict[str, Any] | None:
    """What came of tests that were made as the report's, of its size, on policies like the others; None if untried."""
    for ways in ways_of(report):
        if ways.kind is Kind.ALIKE and ways.own is not None:
            way = {str(name): value for name, value in ways.table.iloc[ways.own].items()}
            return way if way["size"] == report.problem.size else None
    return None


def chart(report: Report) -> list[dict[str, Any]]:
    """For each kind of held-out policies the mean errors of the best ways, with intervals and tuned errors."""
    return [
        {
            "chart": ways.chart_id,
            "ways": [list(way) for way in ways.table[["selection", "estimator"]].itertuples(index=False)],
            "mean": ways.table["mean_error"].tolist(),
            "low": ways.table["low"].tolist(),
            "high": ways.table["high"].tolist(),
            "tuned": ways.table["tuned_mean"].tolist(),
            "own": ways.own,
        }
        for ways in ways_of(report)
    ]


def shown(report: Report) -> dict[str, Any]:
    """What follows from the trials, and the best ways as a table; or how to come by them."""
    validation, size = report.validation, report.problem.size
    if validation is None:
        return {"words": None, "size": size, "parts": []}
    parts = [
        {
            "heading": HELD_OUT_HEADINGS[ways.kind.value],
            "sentence": recommend(validation, ways.kind).sentence,
            "chart": ways.chart_id,
            "has_own": ways.own is not None,
            "rows": _rows(ways),
        }
        for ways in ways_of(report)
    ]
    return {"words": _words(report, validation), "size": size, "parts": parts}


def _rows(ways: Ways) -> list[dict[str, Any]]:
    rows = []
    for place, way in enumerate(ways.table.to_dict("records")):
        errors = [f"{way[name]:.3g}" for name in ("mean_error", "p90_error", "worst_error", "tuned_mean")]
        shares = [f"{way[name]:.2f}" for name in ("kendall_tau", "picks_best")]
        numbers = ["–" if number == "nan" else number for number in [*errors, *shares]]
        name = f"{way['selection']}, {way['estimator']}"
        rows.append({"rank": way["rank"], "way": name, "numbers": numbers, "is_own": place == ways.own})
    return rows


def _words(report: Report, validation: Validation) -> str:
    """Which tests were tried, and whether this one is among them."""
    own_size, size = report.problem.size, size_shown(report, validation)
    besides = " besides the required ones" if report.problem.required_cases else ""
    words = ""
    if size != own_size:
        tried = in_a_row([str(each) for each in sorted(set(validation.summary["size"]))])
        words = (
            f"This test has {cases_words(own_size)}{besides}, and tests of {tried} were tried: the nearest is shown. "
        )
    words += (
        f"Tests of {cases_words(size)}{besides} were made without some of the policies, and then tried on these. "
        "Errors are in the units of the file."
    )
    if all(ways.own is None for ways in ways_of(report)):
        return f"{words} The way in which this report's test was made is not among them."
    return words
