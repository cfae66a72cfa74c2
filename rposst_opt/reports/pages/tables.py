"""What a report's tables and captions say, section by section: what the files in `templates/sections` write."""

from typing import Any

import numpy as np

from rposst_opt.files.records import agreement_rows
from rposst_opt.problem import Need
from rposst_opt.referee.comparison import Comparison
from rposst_opt.referee.findings import Verdict
from rposst_opt.reports.pages.charts import OUTERMOST, SortedLosses, colour_range, profiles
from rposst_opt.reports.pages.report import Report
from rposst_opt.reports.pages.unseen_policies import own_way
from rposst_opt.reports.wording import agreement_words, facts, score_errors, status_words
from rposst_opt.solution import TIE_TOLERANCE, Status
from rposst_opt.unseen.error_bars import warning
from rposst_opt.values.showing import counted

WORST_SHOWN = 30


def tiles(report: Report) -> list[dict[str, str]]:
    """The five things that a colleague looks for first."""
    problem, solution = report.problem, report.solution
    robust, mean, worst = score_errors(problem, solution, report.scale)
    proved = solution.status is Status.OPTIMAL
    agreeing, agreeing_note = _who_agrees(report)
    return [
        _unseen_tile(report, mean),
        {
            "label": "Tuned error, in the file's units",
            "value": f"{robust:.4g}",
            "note": f"{problem.measure.words}; {mean:.4g} on average, {worst:.4g} at worst, on the policies that the "
            "test was tuned on",
        },
        {
            "label": "Objective",
            "value": f"{solution.objective:.4g}",
            "note": f"{problem.loss.label} loss{_and_noise(report)}, in the units that were optimised",
        },
        {
            "label": "Gap",
            "value": "0" if proved else f"{solution.gap:.3g}" if np.isfinite(solution.gap) else "unknown",
            "note": (
                f"proved: no other choice of cases is better by more than {solution.gap:.3g}"
                if proved
                else status_words(solution)
            ),
        },
        {
            "label": "Solvers that agree",
            "value": agreeing,
            "note": agreeing_note,
        },
    ]


def _and_noise(report: Report) -> str:
    """By how much the noise of scores adds to the objective, if it does."""
    cost = report.problem.noise_cost(report.test)
    return f" and {cost:.4g} for noise" if cost else ""


def _unseen_tile(report: Report, tuned_mean: float) -> dict[str, str]:
    """How far off the test is on policies that it has not seen, with a warning where that is far more than tuned."""
    label = "Error on unseen policies"
    left_out = report.left_out
    if left_out is None:
        return {"label": label} | _validated(report)
    note = f"on average, with {left_out.words}; {left_out.worst_error():.4g} at worst"
    warned = warning(left_out, tuned_mean)
    if warned is not None:
        note += f". Beware: {warned}"
    return {"label": label, "value": f"{left_out.mean_error():.4g}", "note": note}


def _validated(report: Report) -> dict[str, str]:
    """The error of tests that were made as this one, on policies that were held out, if that was tried."""
    way = own_way(report)
    if way is None:
        return {"value": "unknown", "note": "rposst validate finds out"}
    note = f"on average over policies that were held out in the trials given; {way['worst_error']:.4g} at worst"
    return {"value": f"{way['mean_error']:.4g}", "note": note}


def _who_agrees(report: Report) -> tuple[str, str]:
    """How many solvers came to the same value by themselves, and what is to be said of the others."""
    agreement = report.agreement
    if agreement is None:
        return "–", "none was asked"
    better = _better_by_others(report)
    if better is not None:
        return "0", f"others found a better test, at {better:.4g}"
    counts = agreement.counts
    notes = [f"{len(agreement.dissenters)} disagree" if agreement.dissenters else "nobody disagrees"]
    told = (Verdict.PROVED_LESS, Verdict.FOUND_NOTHING, Verdict.NO_LICENCE, Verdict.CRASHED)
    notes += [f"{counts[verdict]} {verdict.words}" for verdict in told if verdict in counts]
    return str(counts.get(Verdict.AGREES, 0) + counts.get(Verdict.TIES, 0)), "; ".join(notes)


def _better_by_others(report: Report) -> float | None:
    """The best objective of the other solvers, if it is better than this report's test."""
    best = None if report.agreement is None else report.agreement.best
    if best is None or best.solution is None or best.capabilities is None:
        return None
    allowance = report.problem.allowance(TIE_TOLERANCE + best.capabilities.tolerance)
    better = best.solution.objective < report.solution.objective - allowance
    return best.solution.objective if better else None


def explorer(report: Report) -> dict[str, Any]:
    """What the explorer leaves out."""
    return {"has_noise": Need.NOISE in report.problem.needs}


def cases(report: Report) -> dict[str, Any]:
    """The small test, and what is known about it."""
    test = report.test
    return {
        "chosen": [
            (name, f"{weight:.4f}") for name, weight in zip(test.case_names, test.weights.tolist(), strict=True)
        ],
        "facts": facts(report.problem, report.solution, report.scale, report.left_out),
        "and_offset": ", and the offset" if report.problem.offset else "",
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
    """Whether all sizes are proved."""
    if (report.sizes["status"] == Status.OPTIMAL.value).all():
        return {"words": "All are proved optimal."}
    return {"words": "Where a size is not proved, a whisker reaches down to the proved bound."}


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
    """Whose run it was, and how it ended."""
    return {"words": f"The run of {report.solution.backend}: {status_words(report.solution)}."}


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
    better = _better_by_others(report)
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
    return told + [
        {"backend": name, "reason": f"predicted to take {words}", **nothing} for name, words in report.not_asked.items()
    ]
