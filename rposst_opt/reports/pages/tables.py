"""What a report's tables and captions say, section by section: what the files in `templates/sections` write."""

from typing import Any

from rposst_opt.files.records import agreement_rows
from rposst_opt.problem import Need
from rposst_opt.referee.comparison import Comparison
from rposst_opt.referee.findings import Verdict
from rposst_opt.reports.pages.answers import better_by_others
from rposst_opt.reports.pages.charts import OUTERMOST, SortedLosses, colour_range, profiles
from rposst_opt.reports.pages.report import Report
from rposst_opt.reports.wording import agreement_words, cost_words, facts, status_words
from rposst_opt.solution import Status
from rposst_opt.values.showing import counted

WORST_SHOWN = 30
FEW_CASES = 6  # more stand in several columns


def explorer(report: Report) -> dict[str, Any]:
    """What the explorer leaves out."""
    return {"has_noise": Need.NOISE in report.problem.needs}


def cases(report: Report) -> dict[str, Any]:
    """The small test: its cases with their weights, as numbers and as shares of the largest."""
    problem, test = report.problem, report.test
    largest = float(test.weights.max()) or 1.0
    offset = f", and the offset {test.in_file_units(report.scale).offset:.6g}" if problem.offset else ""
    return {
        "chosen": [
            {"name": name, "weight": f"{weight:.4f}", "share": f"{100 * weight / largest:.1f}"}
            for name, weight in zip(test.case_names, test.weights.tolist(), strict=True)
        ],
        "is_long": len(test.cases) > FEW_CASES,
        "and_offset": offset,
        "cost": None if problem.rules.costs is None else cost_words(problem, test),
    }


def results(report: Report) -> dict[str, Any]:
    """Where colours end, if that is before the results do."""
    results = report.problem.results
    if colour_range(results) == (results.min(), results.max()):
        return {"colour_words": ""}
    ends = f"the {OUTERMOST[0]:.0%} and {OUTERMOST[1]:.0%} quantiles"
    return {"colour_words": f" Colours end at {ends}, because a few results are far out."}


def scores(report: Report) -> dict[str, Any]:
    """The targets to choose from."""
    return {"targets": report.target_names}


def losses(report: Report) -> dict[str, Any]:
    """What the shade is."""
    return {"measure_words": f"the {report.problem.measure.words}"}


def worst(report: Report) -> dict[str, Any]:
    """The scenarios on which the small test is most wrong."""
    sorted_losses = SortedLosses.of(report)
    words = (
        f"The antagonist puts weight on {int((sorted_losses.weights > 0).sum()):,} of {report.problem.n_scenarios:,}; "
        "the worst come first, and those that tie share their weight. Scores are in the units of the file, losses in "
        "those that were optimised."
    )
    return {"words": words, "rows": _worst_rows(report, sorted_losses)}


def _worst_rows(report: Report, losses: SortedLosses) -> list[dict[str, str]]:
    problem, scale = report.problem, report.scale
    scores, targets = problem.scores(report.test), problem.scenarios.target_rows
    rows = []
    for place, scenario in enumerate(losses.order[:WORST_SHOWN].tolist()):
        policy = int(problem.scenarios.policies[scenario])
        rows.append(
            {
                "policy": problem.policy_names[policy],
                "target": report.target_names[targets[scenario]],
                "full": f"{scale.score_in_file_units(problem.scenarios.full_scores[scenario]):.5g}",
                "small": f"{scale.score_in_file_units(scores[policy]):.5g}",
                "loss": f"{losses.losses[place]:.5g}",
                "weight": f"{losses.weights[place]:.4g}",
            }
        )
    return rows


def sizes(report: Report) -> dict[str, Any]:
    """What the curve is, and whether all of it is proved."""
    if (report.sizes["status"] == Status.OPTIMAL.value).all():
        return {"words": "The best achievable objective of every size. All are proved optimal."}
    words = (
        "The best test that was found of every size. Where it is not proved, better ones may exist: a whisker reaches "
        "down to the proved bound. A larger test without its least useful cases stands in where that is better than "
        "what was found. Sizes for which there was no time are left out."
    )
    return {"words": words}


def budgets(report: Report) -> dict[str, Any]:
    """The best test for each budget, and what is known of it."""
    table, own = report.budgets, report.problem.rules.budget
    assert table is not None
    rows = [
        {
            "budget": f"{row['budget']:.5g}",
            "cost": f"{row['cost']:.5g}",
            "objective": f"{row['objective']:.5g}",
            "error": f"{report.scale.error_in_file_units(row['objective']):.5g}",
            "status": row["status"],
            "cases": ", ".join(row["cases"]),
            "is_own": row["budget"] == own,
        }
        for row in table.to_dict("records")
    ]
    words = "The best achievable objective for each budget, with costs in the units of the case file."
    if not (table["status"] == Status.OPTIMAL.value).all():
        words += " Where a budget is not proved, a whisker reaches down to the proved bound."
    return {"words": words, "rows": rows}


def run(report: Report) -> dict[str, Any]:
    """Whose run it was, how it ended, and all that is known of its answer."""
    return {
        "words": f"The run of {report.solution.backend}: {status_words(report.solution)}.",
        "facts": facts(report.problem, report.solution, report.scale, report.left_out),
    }


def agreement(report: Report) -> dict[str, Any]:
    """Who came to the same value, and who did not."""
    return {
        "words": _agreement_words(report),
        "profiles_words": _profiles_words(report.comparison) if profiles(report) else "",
        "rows": _agreement_rows(report),
    }


def _agreement_words(report: Report) -> str:
    if report.agreement is None:
        return "An interrupt came before others were asked." if report.interrupted else "Nobody else was asked."
    better = better_by_others(report)
    told = agreement_words(report.agreement)
    if better is not None:
        told = f"The others found a better test than this report's, at {better:.6g}. Among themselves: {told}"
    return f"{told} Every test is scored again by one judge; no solver's own number is shown as its objective."


def _profiles_words(comparison: Comparison | None) -> str:
    """What the lines and signs of the solvers' chart are, and how they were measured."""
    assert comparison is not None
    threads = counted(comparison.threads, "thread")
    return (
        "What each solver had, and when. Solid lines are the objectives of tests that it handed over, dashed ones the "
        "bound that it claims; signs are its answer, filled the objective and hollow the bound, and a solver that told "
        f"nothing on its way has these alone. Solvers ran one after the other, with {threads} where they can be "
        f"told and at most {comparison.seconds:g} s each; the loading of their code is not counted."
    )


def _agreement_rows(report: Report) -> list[dict[str, str]]:
    def shown(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    rows = [] if report.agreement is None else agreement_rows(report.agreement)
    told = [
        {
            "backend": row["backend"],
            "verdict": Verdict(row["verdict"]).words,
            "kind": row["verdict"].replace(" ", "-"),
            "objective": shown(row["objective"], ".9f"),
            "lower_bound": shown(row["lower_bound"], ".9f"),
            "seconds": shown(row["seconds"], ".2f"),
            "reason": row["reason"] or row["version"],
        }
        for row in rows
    ]
    nothing = {"objective": "", "lower_bound": "", "seconds": "", "kind": "soft", "verdict": "not asked"}
    return told + [{"backend": name, "reason": reason, **nothing} for name, reason in report.not_asked.items()]
