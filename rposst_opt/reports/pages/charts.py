"""What a report's charts show: the numbers that the scripts in `assets` read, by their names in the page's data."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.reports.pages.explorer import explorer_data
from rposst_opt.reports.pages.report import Report
from rposst_opt.solution import TIE_TOLERANCE
from rposst_opt.unseen.policy_ranking import ranking_words, ranks

ROUNDS_SHOWN = 150
MOMENTS_SHOWN = 200  # of each solver
OUTERMOST = (0.02, 0.98)  # quantiles at which colours may end
FAR_OUT = 2.0  # times as wide as the range between them, and they do
SEEN_WEIGHT = 0.999  # of the antagonist: the part of the losses that is shown at first


def targets(report: Report) -> list[str]:
    """How the targets are called."""
    return list(report.target_names)


def matrix(report: Report) -> dict[str, Any]:
    """The result matrix in the units of the file, the policy with the best mean first."""
    problem, test = report.problem, report.test
    columns = np.argsort(-problem.results.mean(axis=0), kind="stable")
    return {
        "policies": [problem.policy_names[policy] for policy in columns],
        "cases": problem.case_names,
        "results": report.scale.score_in_file_units(problem.results[:, columns]).tolist(),
        "range": [report.scale.score_in_file_units(bound) for bound in colour_range(problem.results)],
        "chosen": list(test.cases),
        "weights": test.weights.tolist(),
    }


def colour_range(results: FloatArray) -> tuple[float, float]:
    """The results between which colours differ: all of them, unless a few are so far out that the rest looks alike."""
    low, high = (float(bound) for bound in np.quantile(results, OUTERMOST))
    least, greatest = float(results.min()), float(results.max())
    return (low, high) if (high - low) * FAR_OUT < greatest - least and low < high else (least, greatest)


def scores(report: Report) -> dict[str, Any]:
    """Every policy's score by the small test, and by the full test for each target, with ranks."""
    problem = report.problem
    small = report.test.weighed(problem.results[list(report.test.cases)])
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


@dataclass(frozen=True)
class SortedLosses:
    """The losses of all scenarios, worst first: `order` has their positions.

    The judge breaks ties by position, which is as good as any other way; here those that tie share their weight, in
    proportion to their probabilities, so that nobody looks worse than who is just as bad.
    """

    order: IntArray
    losses: FloatArray
    weights: FloatArray
    probabilities: FloatArray

    @classmethod
    def of(cls, report: Report) -> "SortedLosses":
        """The losses of the report's test."""
        problem = report.problem
        losses, probabilities = problem.losses(report.test), problem.scenarios.probabilities
        order = np.argsort(-losses, kind="stable").astype(np.int64)
        weights = problem.measure.weights(losses, probabilities)[order]
        shared = _shared(weights, losses[order], probabilities[order], problem.allowance(TIE_TOLERANCE))
        return cls(order, losses[order], shared, probabilities[order])

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


def _shared(weights: FloatArray, losses: FloatArray, probabilities: FloatArray, tolerance: float) -> FloatArray:
    """The weights of losses, worst first, where those within the tolerance of the worst among them share theirs."""
    shared, first = weights.copy(), 0
    while first < len(losses):
        end = int(np.searchsorted(-losses, tolerance - losses[first], side="right"))
        likely = probabilities[first:end]
        shared[first:end] = weights[first:end].sum() * likely / likely.sum()
        first = end
    return shared


def losses(report: Report) -> dict[str, Any]:
    """The losses of all scenarios, worst first, and how much each counts."""
    sorted_losses = SortedLosses.of(report)
    problem, scenarios = report.problem, report.problem.scenarios
    return {
        "names": [
            f"{problem.policy_names[policy]}, {report.target_names[target]}"
            for policy, target in zip(
                scenarios.policies[sorted_losses.order], scenarios.target_rows[sorted_losses.order], strict=True
            )
        ],
        "loss": sorted_losses.losses.tolist(),
        "probability": sorted_losses.probabilities.tolist(),
        "weight": sorted_losses.weights.tolist(),
        "tail": sorted_losses.tails.tolist(),
        "objective": report.solution.objective,
        "seen": sorted_losses.seen(),
    }


def sizes(report: Report) -> dict[str, Any]:
    """The best objective and the proved bound of every size."""
    return {
        "size": (report.sizes["size"] + len(report.problem.required_cases)).tolist(),
        "objective": report.sizes["objective"].tolist(),
        "bound": report.sizes["lower_bound"].tolist(),
        "tests": [list(cases) for cases in report.sizes["cases"]],
        "own": report.problem.n_chosen,
    }


def budgets(report: Report) -> dict[str, Any]:
    """The objective and the bound of the best test for each budget."""
    table = report.budgets
    assert table is not None
    return {
        "budget": table["budget"].tolist(),
        "objective": table["objective"].tolist(),
        "bound": table["lower_bound"].tolist(),
        "tests": [list(cases) for cases in table["cases"]],
        "own": report.problem.rules.budget,
    }


def run(report: Report) -> dict[str, Any]:
    """What the run found and proved, and when."""
    return {
        "milliseconds": [1000 * seconds for seconds, _, _ in report.trace],
        "objective": [objective for _, objective, _ in report.trace],
        "bound": [bound for _, _, bound in report.trace],
    }


def profiles(report: Report) -> list[dict[str, Any]]:
    """What each of the other solvers had, and when; those that never had anything are left out."""
    if report.comparison is None:
        return []
    found = []
    for solver, moments in report.comparison.frame.groupby("backend", sort=False):
        rows = moments.iloc[_spread_out(len(moments), MOMENTS_SHOWN)]
        if rows[["objective", "claimed_bound"]].isna().all(axis=None):
            continue
        found.append(
            {
                "solver": solver,
                "seconds": rows["seconds"].tolist(),
                "objective": rows["objective"].tolist(),
                "bound": rows["claimed_bound"].tolist(),
                "isEnd": rows["is_end"].tolist(),
                "isRefuted": (rows["contradiction"] != "").tolist(),
            }
        )
    return found


def rounds(report: Report) -> dict[str, Any]:
    """How regret matching+ closed in on the best weights of the chosen cases."""
    rounds = report.rounds.iloc[_spread_out(len(report.rounds), ROUNDS_SHOWN)]
    return {
        "round": rounds["round"].tolist(),
        "objective": rounds["objective"].tolist(),
        "best": rounds["best"].tolist(),
        "bound": rounds["lower_bound"].tolist(),
    }


def _spread_out(count: int, most: int) -> list[int]:
    """At most so many of the first `count` positions, evenly apart on a logarithmic axis, the ends included."""
    places = np.unique(np.geomspace(1, count, most).round().astype(int)) - 1
    return [int(place) for place in places]


def explorer(report: Report) -> dict[str, Any]:
    """What the explorer and the game compute with."""
    problem = report.problem
    return explorer_data(problem.stated, problem.to_stated(report.test), report.target_names, report.game_values)
