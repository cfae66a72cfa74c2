"""What does a report show, and in which order? One entry per section, and nothing else to edit.

The navigation, the templates and the scripts' start all read `SECTIONS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rposst_opt.problem import Need
from rposst_opt.reports.pages import answers, charts, tables, unseen_policies
from rposst_opt.reports.pages.report import Report


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section of a page.

    Attributes
    ----------
    id : str
        Of its element.
    link : str
        What the navigation calls it.
    heading : str
    template : str
        The file in `templates/sections` that stands below the heading.
    shows : callable
        Reads off a report what that file writes, under the name `shown`.
    data : mapping of str to callable
        Read off a report what its charts draw, by name in the page's data. Sections may share a name if they mean the
        same.
    scripts : tuple of str
        The files in `assets` that its charts need.
    start : str or None
        The function in them that starts its charts; it is called with the page's data.
    is_shown : callable
        Whether a report has this section at all.
    """

    id: str
    link: str
    heading: str
    template: str
    shows: Callable[[Report], Mapping[str, Any]] = lambda report: {}
    data: Mapping[str, Callable[[Report], Any]] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()
    start: str | None = None
    is_shown: Callable[[Report], bool] = lambda report: True


CASES = Section(
    id="cases",
    link="Cases",
    heading="The small test",
    template="cases.html",
    shows=tables.cases,
)
ANSWERS = Section(
    id="answers",
    link="In short",
    heading="How good is it?",
    template="answers.html",
    shows=answers.answers,
)
RESULTS = Section(
    id="results",
    link="Results",
    heading="The results",
    template="results.html",
    shows=tables.results,
    data={"matrix": charts.matrix},
    scripts=("report.js",),
    start="Report.startResults",
)
SCORES = Section(
    id="scores",
    link="Scores and ranking",
    heading="Scores and ranking",
    template="scores.html",
    shows=tables.scores,
    data={"scores": charts.scores, "targets": charts.targets},
    scripts=("report.js",),
    start="Report.startScores",
)
LOSSES = Section(
    id="losses",
    link="Losses",
    heading="Where the small test is wrong",
    template="losses.html",
    shows=tables.losses,
    data={"losses": charts.losses},
    scripts=("report.js",),
    start="Report.startLosses",
)
WORST = Section(
    id="worst",
    link="Worst scenarios",
    heading="The antagonist's worst scenarios",
    template="worst.html",
    shows=tables.worst,
)
UNSEEN = Section(
    id="unseen",
    link="Unseen policies",
    heading="Policies that nobody has seen",
    template="unseen.html",
    shows=unseen_policies.shown,
    data={"unseen": unseen_policies.chart},
    scripts=("report.js",),
    start="Report.startUnseen",
)
SIZES = Section(
    id="sizes",
    link="How many cases?",
    heading="How many cases?",
    template="sizes.html",
    shows=tables.sizes,
    data={"sizes": charts.sizes},
    scripts=("report.js",),
    start="Report.startSizes",
    is_shown=lambda report: Need.ANY_NUMBER not in report.problem.needs,
)
BUDGETS = Section(
    id="budgets",
    link="What does it cost?",
    heading="What does a larger budget bring?",
    template="budgets.html",
    shows=tables.budgets,
    data={"budgets": charts.budgets},
    scripts=("report.js",),
    start="Report.startBudgets",
    is_shown=lambda report: report.budgets is not None,
)
RUN = Section(
    id="run",
    link="The proof",
    heading="The proof, as it came",
    template="run.html",
    shows=tables.run,
    data={"run": charts.run, "rounds": charts.rounds},
    scripts=("report.js",),
    start="Report.startRun",
)
AGREEMENT = Section(
    id="agreement",
    link="Do solvers agree?",
    heading="Do solvers agree?",
    template="agreement.html",
    shows=tables.agreement,
    data={"profiles": charts.profiles},
    scripts=("profiles.js",),
    start="Profiles.start",
)
EXPLORER = Section(
    id="explorer",
    link="k-of-N",
    heading="The k-of-N objective",
    template="explorer.html",
    shows=tables.explorer,
    data={"explorer": charts.explorer},
    scripts=("explorer.js",),
    start="Explorer.start",
)
GAME = Section(
    id="game",
    link="Play",
    heading="Play the antagonist",
    template="game.html",
    data={"explorer": charts.explorer},
    scripts=("explorer.js", "game.js"),  # it computes with the explorer, which must stand before it
    start="Game.start",
)

SECTIONS = (CASES, ANSWERS, RESULTS, SCORES, LOSSES, WORST, UNSEEN, SIZES, BUDGETS, RUN, AGREEMENT, EXPLORER, GAME)
