"""What is a report opened for? The cards of its first screen: the error on new policies, the ranking, the proof.

Numbers of policies that the test was tuned on are named as such, and never stand in for those of new ones.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.referee.findings import Verdict
from rposst_opt.reports.pages.report import Report
from rposst_opt.reports.pages.unseen_policies import own_way
from rposst_opt.reports.wording import score_errors
from rposst_opt.solution import TIE_TOLERANCE, Status
from rposst_opt.unseen.error_bars import warning
from rposst_opt.unseen.policy_ranking import kendall_tau
from rposst_opt.unseen.splits import FEWEST_TUNED_ON
from rposst_opt.unseen.validation import TEN, chance_of_best

DOES_NOT_TELL = "the errors on the policies that the test was tuned on do not tell."
TO_FIND_OUT = "To find out, with the other options of this report:"
COMMANDS = ("rposst validate --out FOLDER", "rposst report --validation FOLDER")
UNKNOWN = float("nan")


def answers(report: Report) -> dict[str, Any]:
    """The three cards that come first, and the rest: each has a label, a value and a note, and may have commands."""
    robust, mean, worst = score_errors(report.problem, report.solution, report.scale)
    agreeing, agreeing_note = _who_agrees(report)
    return {
        "first": [_unseen_card(report, mean), _ranking_card(report), _proof_card(report)],
        "rest": [
            {
                "label": "Error on tuning policies",
                "value": f"{mean:.4g}",
                "note": "on average, in the file's units, on the policies that the test was tuned on; "
                f"{robust:.4g} as {report.problem.measure.words}, {worst:.4g} at worst",
            },
            {"label": "Solvers that agree", "value": agreeing, "note": agreeing_note},
        ],
    }


def _unseen_card(report: Report, tuned_mean: float) -> dict[str, Any]:
    """How far off the test is on policies that it has not seen, with a warning where that is far more than tuned."""
    label, left_out, way = "Expected error on new policies", report.left_out, own_way(report)
    if left_out is not None:
        note = f"on average, in the file's units, with {left_out.words}; {left_out.worst_error():.4g} at worst"
        warned = warning(left_out, tuned_mean)
        note += "" if warned is None else f". Beware: {warned}"
        return {"label": label, "value": f"{left_out.mean_error():.4g}", "note": note}
    if way is not None:
        note = (
            "on average, in the file's units, over policies that were held out in the trials given; "
            f"{way['worst_error']:.4g} at worst"
        )
        return {"label": label, "value": f"{way['mean_error']:.4g}", "note": note}
    if report.problem.n_policies <= FEWEST_TUNED_ON:
        note = f"some policies would have to be left out, and that takes at least {FEWEST_TUNED_ON + 1} of them"
        return {"label": label, "value": "unknown", "note": note}
    note = f"{DOES_NOT_TELL} {TO_FIND_OUT}"
    if report.why_not_left_out is not None:
        note = (
            f"the test was not made again without some policies, as {report.why_not_left_out}, and {DOES_NOT_TELL} "
            f"Give a longer --time-limit. {TO_FIND_OUT.replace('To', 'Or to', 1)}"
        )
    return {"label": label, "value": "unknown", "note": note, "commands": COMMANDS}


def _ranking_card(report: Report) -> dict[str, str]:
    """Whether policies stand in the same order: those that were left out, and beside them those tuned on."""
    label, tuned = "Is the ranking kept?", tuned_tau(report)
    on_tuned = "" if np.isnan(tuned) else f"{tuned:.2f} on those that the test was tuned on"
    tau, chance, whose = _ranking_of_new(report)
    if np.isnan(tau):
        note = f"on new policies. Kendall's τ is {on_tuned}" if on_tuned else "there is nothing to rank"
        return {"label": label, "value": "unknown", "note": note}
    note = f"Kendall's τ {whose} (1: the same ranking, 0: none of it)"
    note += f"; {on_tuned}" if on_tuned else ""
    note += "" if np.isnan(chance) else f". The best of ten is picked with a chance of {100 * chance:.0f} %"
    return {"label": label, "value": f"τ {tau:.2f}", "note": note}


def tuned_tau(report: Report) -> float:
    """Kendall's τ of small and full scores on the tuning policies, on average over targets."""
    problem = report.problem
    small = report.test.weighed(problem.results[list(report.test.cases)])
    full = [(weights[:, None] * problem.results).sum(axis=0) for weights in problem.targets]
    return _mean([kendall_tau(each, small) for each in full])


def _ranking_of_new(report: Report) -> tuple[float, float, str]:
    """Kendall's τ, the chance of picking the best of ten, and whose they are; NaN for what is not known."""
    scores: Sequence[tuple[FloatArray, FloatArray]] = [] if report.left_out is None else report.left_out.scores()
    if scores:
        tau = _mean([kendall_tau(full, small) for full, small in scores])
        has_ten = report.problem.n_policies > TEN  # of fewer there is one draw, and no chance to speak of
        chance = _mean([chance_of_best(full, small) for full, small in scores]) if has_ten else UNKNOWN
        return tau, chance, "on policies that were left out, each scored by a test without it"
    way = own_way(report)
    if way is None:
        return UNKNOWN, UNKNOWN, ""
    chance = way["picks_best"] if report.problem.n_policies > TEN else UNKNOWN
    return way["kendall_tau"], chance, "on policies that were held out in the trials given"


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else UNKNOWN


def _proof_card(report: Report) -> dict[str, str]:
    """Whether a better test can exist, in words."""
    label, solution = "Is it proved?", report.solution
    if solution.status is Status.OPTIMAL:
        beyond = f" by more than {solution.gap:.2g}" if solution.gap > 0 else ""
        note = f"no other choice of cases and weights is better{beyond}, on the policies that the test was tuned on"
        return {"label": label, "value": "Yes", "note": note}
    if not np.isfinite(solution.gap):
        return {"label": label, "value": "No", "note": "nothing is proved about better tests"}
    note = f"a better test may exist, with an objective of {solution.lower_bound:.3g} or more instead of "
    return {"label": label, "value": "No", "note": f"{note}{solution.objective:.3g}"}


def _who_agrees(report: Report) -> tuple[str, str]:
    """How many solvers came to the same value by themselves, and what is to be said of the others."""
    agreement = report.agreement
    if agreement is None:
        return "–", "none was asked"
    better = better_by_others(report)
    if better is not None:
        return "0", f"others found a better test, at {better:.4g}"
    counts = agreement.counts
    if agreement.dissenters:
        notes = [f"{len(agreement.dissenters)} disagree"]
    else:
        notes = ["nobody answered" if agreement.best is None else "nobody disagrees"]
    told = (Verdict.PROVED_LESS, Verdict.FOUND_NOTHING, Verdict.NO_LICENCE, Verdict.CRASHED)
    notes += [f"{counts[verdict]} {verdict.words}" for verdict in told if verdict in counts]
    return str(counts.get(Verdict.AGREES, 0) + counts.get(Verdict.TIES, 0)), "; ".join(notes)


def better_by_others(report: Report) -> float | None:
    """The best objective of the other solvers, if it is better than this report's test."""
    best = None if report.agreement is None else report.agreement.best
    if best is None or best.solution is None or best.capabilities is None:
        return None
    allowance = report.problem.allowance(TIE_TOLERANCE + best.capabilities.tolerance)
    better = best.solution.objective < report.solution.objective - allowance
    return best.solution.objective if better else None
