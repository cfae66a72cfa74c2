"""What is said about a solution, in words that the terminal and the report share."""

from collections.abc import Sequence
from dataclasses import replace

from rposst_opt.contract import Stats
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.losses import AbsoluteError
from rposst_opt.measures import Mean, WorstCase
from rposst_opt.problem import Need, Problem
from rposst_opt.referee.comparison import Comparison
from rposst_opt.referee.findings import Agreement, Finding, Verdict
from rposst_opt.results import Scale
from rposst_opt.solution import Solution, Status
from rposst_opt.unseen.error_bars import LeftOut
from rposst_opt.values.showing import brief_number

HELD_OUT_HEADINGS = {
    "alike": "Policies like those that the test is tuned on",
    "strongest": "Policies stronger than all that the test is tuned on",
    "groups": "Policies of a group that the test is not tuned on",
}

ANSWERS = (Verdict.AGREES, Verdict.TIES, Verdict.DISAGREES)


def cases_words(count: int) -> str:
    """So many cases."""
    return "1 case" if count == 1 else f"{count} cases"


def in_a_row(words: Sequence[str]) -> str:
    """Words with commas between them, and an "and" before the last.

    >>> in_a_row(["1", "2", "4"])
    '1, 2 and 4'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def score_errors(problem: Problem, solution: Solution, scale: Scale) -> tuple[float, float, float]:
    """By how much the small test's score is off, in the units of the file: by the measure, on average, at worst."""
    assert solution.test is not None
    errors = replace(problem, loss=AbsoluteError(), noise=None)
    robust, mean, worst = (
        scale.error_in_file_units(replace(errors, measure=measure).objective(solution.test))
        for measure in (problem.measure, Mean(), WorstCase())
    )
    return robust, mean, worst


def offset_words(test: EfficientTest, scale: Scale) -> str:
    """What is added to every score, in the units of the file, and what is left for the cases."""
    return f"{test.in_file_units(scale).offset:.6g}, added to every score; the weights sum to {test.weights.sum():.4f}"


def cost_words(problem: Problem, test: EfficientTest) -> str:
    """What all cases of a test cost together, and what they may."""
    rules = problem.rules
    assert rules.costs is not None
    cost = brief_number(float(rules.costs[list(test.cases)].sum()))
    return cost if rules.budget is None else f"{cost}, of a budget of {brief_number(rules.budget)}"


def objective_words(problem: Problem, test: EfficientTest) -> str:
    """What the objective is made of."""
    said = f"{problem.measure.words}, {problem.loss.label} loss"
    return f"{said}; {problem.noise_cost(test):.6g} of it is noise" if Need.NOISE in problem.needs else said


def status_words(solution: Solution) -> str:
    """What is known about a solution."""
    if solution.status is Status.OPTIMAL:
        return "optimal (proved)"
    if solution.lower_bound == -float("inf"):
        return "feasible: nothing is proved about better tests"
    return "feasible: a better test may exist, within the gap"


def unseen_words(left_out: LeftOut | None) -> str:
    """How far off the test is on policies that it was not tuned on, as far as that is known."""
    if left_out is None:
        return "not known: the errors below are those of the policies that the test was tuned on"
    return (
        f"off by about {left_out.mean_error():.3g} on average, {left_out.worst_error():.3g} at worst, in the file's "
        f"units ({left_out.words})"
    )


def _count(number: int) -> str:
    """A number of sets: beyond what anybody reads out, and what a narrow page has room for, its size alone."""
    return f"{number:,}" if number < 10**15 else f"about {number:.1e}".replace("e+", "e")


def facts(problem: Problem, solution: Solution, scale: Scale, left_out: LeftOut | None = None) -> list[tuple[str, str]]:
    """What is known about a solution that has a test, as pairs of a label and a sentence."""
    assert solution.test is not None
    robust, mean, worst = score_errors(problem, solution, scale)
    lower_bound, gap = f"{solution.lower_bound:.6g}", f"{solution.gap:.3g}"
    if solution.lower_bound == -float("inf"):
        lower_bound, gap = "none", "unknown"
    work = f", {_count(solution.stats.tuples)} sets of cases" if solution.stats.tuples else ""
    work += f", {solution.stats.solved:,} one by one" if solution.stats.solved else ""
    told = [
        ("unseen policies", unseen_words(left_out)),
        *([("offset", offset_words(solution.test, scale))] if problem.offset else []),
        *([("cost", cost_words(problem, solution.test))] if problem.rules.costs is not None else []),
        ("objective", f"{solution.objective:.6g}   ({objective_words(problem, solution.test)})"),
        ("lower bound", lower_bound),
        ("gap", gap),
        ("status", status_words(solution)),
        (
            "tuned error",
            f"{robust:.6g} by that measure, {mean:.6g} on average, {worst:.6g} at worst, in the file's units: on the "
            "policies that the test was tuned on",
        ),
        ("backend", f"{solution.backend}, {solution.seconds:.2f} s{work}"),
    ]
    if solution.stats.local_search_share:
        told.append(("work", work_words(solution.stats)))
    if solution.limit is not None:
        if solution.choice is not None:
            told.append(("predicted", f"{solution.choice.backend} was {solution.choice.reason}"))
        told.append(("ended by", f"{solution.limit.value}{share_words(problem, solution.stats)}"))
    return told


def work_words(stats: Stats) -> str:
    """What the work of a search went into."""
    beside = stats.local_search_share + stats.relaxation_share
    return (
        f"{1 - beside:.0%} search, {stats.local_search_share:.0%} local search, {stats.relaxation_share:.0%} linear "
        "relaxation"
    )


def share_words(problem: Problem, stats: Stats) -> str:
    """How much of it a run had done when it was ended, as far as that is known."""
    if stats.share_done is not None:
        return f", after {f'about {stats.share_done:.1%}' if stats.share_done >= 1e-3 else 'under 0.1%'} of the search"
    return f", after {stats.tuples / problem.n_tuples:.3%} of the sets of cases" if stats.tuples else ""


def finding_words(finding: Finding) -> str:
    """What came of asking one backend, when the others have not been heard yet: numbers, and no verdict on them.

    A contradiction is one all the same, whatever the others say.
    """
    solution, candidate = finding.solution, finding.candidate
    if finding.verdict is Verdict.DISAGREES or solution is None or candidate is None:
        return f"{finding.backend}: {finding.verdict.words}"
    bound = f", at least {candidate.lower_bound:.6g}" if candidate.lower_bound > -float("inf") else ""
    ended = "" if solution.limit is None else f", when {solution.limit.value} ended it"
    return f"{finding.backend}: {solution.objective:.6g}{bound}, in {solution.seconds:.2f} s{ended}"


def comparison_words(comparison: Comparison) -> list[str]:
    """How solvers were compared, and what is not known of some."""
    table = comparison.table
    threads = f"{comparison.threads} {'thread' if comparison.threads == 1 else 'threads'}"
    said = [
        f"Each had {comparison.seconds:g} s in a process of its own, one after the other, so that they did not disturb "
        f"each other, and {threads} if it can be told. Times leave out compiling{' and loading' * comparison.is_warm}.",
        "Objectives are scored by the one judge. Bounds are the solvers' own, held against every test that was found.",
    ]
    silent = table.loc[~table["tells_tests"] & table["first_test_seconds"].notna(), "backend"].tolist()
    if silent:
        said.append(f"≤: told of no test before the answer, so it may have come sooner ({', '.join(silent)}).")
    return said


def agreement_words(report: Agreement) -> str:
    """Whether backends agree, and if not, who does not; and what came of the others."""
    agree = sum(report.counts.get(verdict, 0) for verdict in (Verdict.AGREES, Verdict.TIES))
    tuples = f", and on each of {len(report.by_tuple):,} sets of cases" if report.by_tuple else ""
    said = f"{agree} {'backend agrees' if agree == 1 else 'backends agree'}{tuples}"
    if not report.agreed:
        dissenters = sorted({finding.backend for finding in report.dissenters})
        said = f"No agreement: {', '.join(dissenters) or 'nobody answered'}"
    others = [f"{count} {verdict.words}" for verdict, count in report.counts.items() if verdict not in ANSWERS]
    return " ".join([f"{said}.", *([f"Of the others: {', '.join(others)}."] if others else [])])
