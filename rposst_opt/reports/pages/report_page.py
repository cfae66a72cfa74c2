"""A report as one page: what its tables say, and what its charts show. Nothing is solved here."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.backends import BACKENDS
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.files.tables import agreement_rows
from rposst_opt.problem import Problem
from rposst_opt.reports.pages.explorer import explorer_data
from rposst_opt.reports.pages.page import EXPLORER_SCRIPTS, render
from rposst_opt.reports.pages.report import Report
from rposst_opt.reports.policy_ranking import ranking_words, ranks
from rposst_opt.reports.wording import agreement_words, facts, measure_words, score_errors, status_words
from rposst_opt.solution import TIE_TOLERANCE, Status

ROUNDS_SHOWN = 150
WORST_SHOWN = 30
OUTERMOST = (0.02, 0.98)  # quantiles at which colours may end
FAR_OUT = 2.0  # times as wide as the range between them, and they do
SEEN_WEIGHT = 0.999  # of the antagonist: the part of the losses that is shown at first


def report_page(report: Report, *, title: str = "A small test", command: str = "rposst_opt.reports.pages") -> str:
    """The report as one page; `command` is what the page says that it was made by."""
    problem, solution, test = report.problem, report.solution, report.test
    losses = _Losses.of(problem, test)
    return render(
        "report.html",
        data=_data(report, losses),
        scripts=(*EXPLORER_SCRIPTS, "report.js"),
        title=title,
        command=command,
        words=(
            f"{len(test.cases)} of {problem.n_cases} test cases stand in for all of them; "
            f"{problem.n_policies} tuning policies, {len(report.target_names)} "
            f"{'target' if len(report.target_names) == 1 else 'targets'}, {problem.n_scenarios:,} scenarios."
        ),
        tiles=_tiles(report),
        chosen=[(name, f"{weight:.4f}") for name, weight in zip(test.case_names, test.weights.tolist(), strict=True)],
        facts=facts(problem, solution, report.scale),
        targets=report.target_names,
        colour_words=_colour_words(problem.results),
        measure_words=f"the {measure_words(problem.measure)}",
        worst=_worst_rows(report, losses),
        worst_words=(
            f"The antagonist puts weight on {int((losses.weights > 0).sum()):,} of {problem.n_scenarios:,}; "
            "the worst come first. Where losses tie, it charges them in the order of the file. Scores are in the units "
            "of the file, losses in those that were optimised."
        ),
        sizes_words=_sizes_words(report.sizes),
        run_words=f"The run of {solution.backend}: {status_words(solution)}.",
        agreement=_agreement_rows(report),
        agreement_words=_agreement_words(report),
    )


# What the tables say


def _tiles(report: Report) -> list[dict[str, str]]:
    """The four things that a colleague looks for first."""
    problem, solution = report.problem, report.solution
    robust, mean, worst = score_errors(problem, solution, report.scale)
    proved = solution.status is Status.OPTIMAL
    agreeing, agreeing_note = _who_agrees(report)
    return [
        {
            "label": "Score error, in the file's units",
            "value": f"{robust:.4g}",
            "note": f"{measure_words(problem.measure)}; {mean:.4g} on average, {worst:.4g} at worst",
        },
        {
            "label": "Objective",
            "value": f"{solution.objective:.4g}",
            "note": f"{problem.loss.label} loss, in the units that were optimised",
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


def _who_agrees(report: Report) -> tuple[str, str]:
    """How many solvers came to the same value by themselves, and what is to be said of the others."""
    agreement = report.agreement
    if agreement is None:
        return "–", "none was asked"
    better = _better_by_others(report)
    if better is not None:
        return "0", f"others found a better test, at {better:.4g}"
    answered = [finding.solution for finding in agreement.findings if finding not in agreement.dissenters]
    in_time = [solution for solution in answered if solution is not None and solution.limit is None]
    stopped = sum(solution is not None and solution.limit is not None for solution in answered)
    notes = [f"{len(agreement.dissenters)} do not" if agreement.dissenters else "nobody disagrees"]
    if stopped:
        notes.append(f"{stopped} ran out of time")
    return str(len(in_time)), "; ".join(notes)


def _better_by_others(report: Report) -> float | None:
    """The best objective of the other solvers, if it is better than this report's test."""
    best = None if report.agreement is None else report.agreement.best
    if best is None or best.solution is None:
        return None
    allowance = report.problem.allowance(TIE_TOLERANCE + BACKENDS[best.backend].capabilities.tolerance)
    better = best.solution.objective < report.solution.objective - allowance
    return best.solution.objective if better else None


def _agreement_words(report: Report) -> str:
    if report.agreement is None:
        return "An interrupt came before others were asked." if report.interrupted else "Nobody else was asked."
    better = _better_by_others(report)
    told = agreement_words(report.agreement)
    if better is not None:
        told = f"The others found a better test than this report's, at {better:.6g}. Among themselves: {told}"
    return f"{told} Every test is scored again by one judge; no solver's own number is shown as its objective."


def _agreement_rows(report: Report) -> list[dict[str, str]]:
    def shown(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    rows = [] if report.agreement is None else agreement_rows(report.agreement)
    told = [
        {
            "backend": row["backend"],
            "verdict": row["verdict"],
            "kind": row["verdict"],
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


def _sizes_words(sizes: pd.DataFrame) -> str:
    if (sizes["status"] == Status.OPTIMAL.value).all():
        return "All are proved optimal."
    return "Where a size is not proved, a whisker reaches down to the proved bound."


# What the charts show


@dataclass(frozen=True)
class _Losses:
    """The losses of all scenarios, worst first: `order` has their positions."""

    order: IntArray
    losses: FloatArray
    weights: FloatArray
    probabilities: FloatArray

    @classmethod
    def of(cls, problem: Problem, test: EfficientTest) -> "_Losses":
        losses, probabilities = problem.losses(test), problem.scenarios.probabilities
        order = np.argsort(-losses, kind="stable").astype(np.int64)
        weights = problem.measure.weights(losses, probabilities)
        return cls(order, losses[order], weights[order], probabilities[order])

    @property
    def tails(self) -> FloatArray:
        """The share of scenarios that are at least as bad."""
        tails: FloatArray = np.minimum(np.cumsum(self.probabilities), 1.0)
        return tails

    def seen(self) -> float:
        """The share of scenarios that is worth a look at first."""
        heavy = int(np.searchsorted(np.cumsum(self.weights), SEEN_WEIGHT))
        reach = self.tails[min(heavy, len(self.tails) - 1)]
        return float(min(1.0, max(3 * reach, self.tails[min(19, len(self.tails) - 1)])))


def _worst_rows(report: Report, losses: _Losses) -> list[dict[str, str]]:
    problem, scale = report.problem, report.scale
    scores, targets = problem.scores(report.test), problem.scenarios.targets
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


def _data(report: Report, losses: _Losses) -> dict[str, Any]:
    problem, test = report.problem, report.test
    scenarios, targets = problem.scenarios, problem.scenarios.targets
    rounds = report.rounds.iloc[_spread_out(len(report.rounds), ROUNDS_SHOWN)]
    return {
        "targets": list(report.target_names),
        "matrix": _matrix(report),
        "scores": _scores(report),
        "losses": {
            "names": [
                f"{problem.policy_names[scenarios.policies[scenario]]}, {report.target_names[targets[scenario]]}"
                for scenario in losses.order
            ],
            "loss": losses.losses.tolist(),
            "probability": losses.probabilities.tolist(),
            "weight": losses.weights.tolist(),
            "tail": losses.tails.tolist(),
            "objective": report.solution.objective,
            "seen": losses.seen(),
        },
        "run": {
            "milliseconds": [1000 * seconds for seconds, _, _ in report.trace],
            "objective": [objective for _, objective, _ in report.trace],
            "bound": [bound for _, _, bound in report.trace],
        },
        "rounds": {
            "round": rounds["round"].tolist(),
            "objective": rounds["objective"].tolist(),
            "best": rounds["best"].tolist(),
            "bound": rounds["lower_bound"].tolist(),
        },
        "sizes": {
            "size": (report.sizes["size"] + len(problem.required_cases)).tolist(),
            "objective": report.sizes["objective"].tolist(),
            "bound": report.sizes["lower_bound"].tolist(),
            "tests": [list(cases) for cases in report.sizes["cases"]],
            "own": problem.n_chosen,
        },
        "explorer": explorer_data(problem, test, report.target_names, report.game_values),
    }


def _spread_out(count: int, most: int) -> list[int]:
    """At most so many of the first `count` positions, evenly apart on a logarithmic axis, the ends included."""
    places = np.unique(np.geomspace(1, count, most).round().astype(int)) - 1
    return [int(place) for place in places]


def _colour_range(results: FloatArray) -> tuple[float, float]:
    """The results between which colours differ: all of them, unless a few are so far out that the rest looks alike."""
    low, high = (float(bound) for bound in np.quantile(results, OUTERMOST))
    least, greatest = float(results.min()), float(results.max())
    return (low, high) if (high - low) * FAR_OUT < greatest - least and low < high else (least, greatest)


def _colour_words(results: FloatArray) -> str:
    if _colour_range(results) == (results.min(), results.max()):
        return ""
    return (
        f" Colours end at the {OUTERMOST[0]:.0%} and {OUTERMOST[1]:.0%} quantiles, because a few results are far out."
    )


def _matrix(report: Report) -> dict[str, Any]:
    """The result matrix in the units of the file, the policy with the best mean first."""
    problem, test = report.problem, report.test
    columns = np.argsort(-problem.results.mean(axis=0), kind="stable")
    return {
        "policies": [problem.policy_names[policy] for policy in columns],
        "cases": problem.case_names,
        "results": report.scale.score_in_file_units(problem.results[:, columns]).tolist(),
        "range": [report.scale.score_in_file_units(bound) for bound in _colour_range(problem.results)],
        "chosen": list(test.cases),
        "weights": test.weights.tolist(),
    }


def _scores(report: Report) -> dict[str, Any]:
    """Every policy's score by the small test, and by the full test for each target, with ranks."""
    problem = report.problem
    small = report.test.score(problem.results)
    full = []
    for weights in problem.targets:
        # Not a matrix product: that may round equal columns differently, and equal policies must rank alike.
        score = (weights[:, None] * problem.results).sum(axis=0)
        full.append(
            {
                "score": report.scale.score_in_file_units(score).tolist(),
                "ranks": ranks(score).tolist(),
                "words": ranking_words(problem.policy_names, score, small),
            }
        )
    return {
        "policies": problem.policy_names,
        "small": report.scale.score_in_file_units(small).tolist(),
        "smallRanks": ranks(small).tolist(),
        "full": full,
    }
