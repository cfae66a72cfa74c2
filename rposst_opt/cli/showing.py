"""Tables and sentences for people: a solution, its ranking, scores, who agrees, and who can solve what."""

import math
from typing import TYPE_CHECKING, Any

from rposst_opt.cli.terminal import plain

if TYPE_CHECKING:
    from rich.console import Console

    from rposst_opt.contract import Capabilities
    from rposst_opt.problem import Problem
    from rposst_opt.referee.comparison import Comparison
    from rposst_opt.referee.findings import Agreement
    from rposst_opt.results import Scale
    from rposst_opt.solution import BackendChoice, Solution
    from rposst_opt.unseen.error_bars import LeftOut

SHOWN_IN_DETAIL = 0.1  # seconds: of shorter times, tenths of a millisecond are shown


def show_solution(
    out: "Console", problem: "Problem", solution: "Solution", scale: "Scale", left_out: "LeftOut | None" = None
) -> None:
    """The chosen test and what is known about it, for people."""
    from rich.table import Table

    from rposst_opt.reports.wording import facts as describe
    from rposst_opt.reports.wording import score_errors
    from rposst_opt.unseen.error_bars import warning

    if solution.test is None:
        out.print(f"No test was found before {solution.limit or 'the run ended'}.", markup=False)
        return
    chosen = Table(title=f"{len(solution.test.cases)} of {problem.n_cases} test cases")
    chosen.add_column("test case", overflow="fold")
    chosen.add_column("weight", justify="right")
    for name, weight in zip(solution.test.case_names, solution.test.weights.tolist(), strict=True):
        chosen.add_row(plain(name), f"{weight:.4f}")
    out.print(chosen)

    facts = Table(show_header=False, box=None, pad_edge=False)
    facts.add_column()
    facts.add_column()
    for label, value in describe(problem, solution, scale, left_out):
        facts.add_row(plain(label), plain(value))
    out.print(facts)
    warned = None if left_out is None else warning(left_out, score_errors(problem, solution, scale)[1])
    if warned is not None:
        out.print(plain(f"Beware: {warned}"))
    if solution.ranking:
        _show_ranking(out, solution)


def _show_ranking(out: "Console", solution: "Solution") -> None:
    """The best sets of cases, for people."""
    from rich.table import Table

    count = len(solution.ranking)
    shown = Table(title="The best set of cases" if count == 1 else f"The best {count:,} sets of cases")
    shown.add_column("objective", justify="right", no_wrap=True)
    shown.add_column("mean loss", justify="right", no_wrap=True)
    shown.add_column("test cases and weights", overflow="fold")
    for ranked in solution.ranking:
        pairs = zip(ranked.test.case_names, ranked.test.weights.tolist(), strict=True)
        cases = ", ".join(f"{name} {weight:.3f}" for name, weight in pairs)
        shown.add_row(f"{ranked.objective:.9g}", f"{ranked.mean_loss:.6g}", plain(cases))
    out.print(shown)


def show_scores(out: "Console", scored: dict[str, Any], n_cases: int) -> None:
    """The scores of policies by a test, for people."""
    from rich.table import Table

    rows, has_intervals = scored["scores"], "level" in scored
    shown = Table(title=f"Scores by {n_cases} test cases, in the units of the file")
    shown.add_column("rank", justify="right")
    shown.add_column("policy", overflow="fold")
    shown.add_column("score", justify="right")
    if has_intervals:
        shown.add_column(f"{scored['level']:.0%} interval", justify="right")
        shown.add_column("ranks", justify="right")
    is_flagged = any(row.get("unlike") for row in rows)
    if is_flagged:
        shown.add_column("unlike what was seen", overflow="fold")
    for row in rows:
        cells = [str(row["rank"]), plain(row["policy"]), f"{row['score']:.6g}"]
        if has_intervals:
            cells += [_interval_words(row), f"{row['best_rank']} to {row['worst_rank']}"]
        shown.add_row(*cells, *([row.get("unlike") or ""] if is_flagged else []))
    out.print(shown)
    if not has_intervals:
        out.print("The file has no error bars: `rposst solve --error-bars` makes them.", markup=False)
        return
    count, pairs = len(scored["not_told_apart"]), len(rows) * (len(rows) - 1) // 2
    out.print(
        f"Intervals ({scored['intervals']}, {scored['left_out']}) are for policies like those that the test was tuned "
        f"on. {count:,} of {pairs:,} pairs of policies are not told apart.",
        markup=False,
    )


def _interval_words(row: dict[str, Any]) -> str:
    low, high = ("unknown" if end is None else f"{end:.4g}" for end in (row["low"], row["high"]))
    return f"{low} to {high}"


def show_agreement(out: "Console", report: "Agreement") -> None:
    """Who says what, for people."""
    from rich.table import Table

    from rposst_opt.reports.wording import agreement_words

    shown = Table(title=f"{report.problem.size} of {report.problem.n_cases} test cases, by every backend")
    shown.add_column("backend", no_wrap=True)
    for heading in ("objective", "lower bound", "seconds"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("verdict", no_wrap=True)
    for finding in report.findings:
        solution, candidate = finding.solution, finding.candidate
        numbers = ["", "", ""]
        if solution is not None and candidate is not None:
            numbers = [f"{solution.objective:.9f}", f"{candidate.lower_bound:.9f}", f"{solution.seconds:.2f}"]
        shown.add_row(*(plain(cell) for cell in (finding.backend, *numbers, finding.verdict.words)))
    out.print(shown)
    _show_reasons(out, report)
    for cases, alone in report.by_tuple:
        for finding in alone.dissenters:
            names = ", ".join(repr(report.problem.case_names[case]) for case in cases)
            out.print(plain(f"on the cases {names}, {finding.backend}, {finding.verdict.words}: {finding.reason}"))
    out.print(plain(agreement_words(report)))


def _show_reasons(out: "Console", report: "Agreement") -> None:
    for finding in report.findings:
        if finding.reason:
            out.print(plain(f"{finding.backend}, {finding.verdict.words}: {finding.reason}"), soft_wrap=True)


def show_comparison(out: "Console", comparison: "Comparison") -> None:
    """Who had what when, for people."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from rposst_opt.reports.wording import agreement_words, comparison_words

    problem = comparison.problem
    title = f"{problem.size} of {problem.n_cases} test cases, by solvers one after the other"
    shown = Table(title=title, box=SIMPLE_HEAD, padding=0, show_edge=False)
    shown.add_column("solver", no_wrap=True)
    for heading in ("objective", "bound", "gap", "seconds", "first\ntest", "within\n1 %"):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column("verdict", overflow="fold")
    for row, finding in zip(comparison.table.to_dict("records"), comparison.findings, strict=True):
        at_most = "" if row["tells_tests"] else "≤ "
        cells = [
            row["backend"],
            *(_number_words(row[name], ".5g") for name in ("objective", "lower_bound")),
            _number_words(row["gap"], ".2g"),
            _seconds_words(row["seconds"]),
            *(_seconds_words(row[name], at_most) for name in ("first_test_seconds", "near_best_seconds")),
            finding.verdict.words,
        ]
        shown.add_row(*(plain(cell) for cell in cells))
    out.print(shown)
    _show_reasons(out, comparison.agreement)
    out.print(plain(agreement_words(comparison.agreement)), soft_wrap=True)
    for sentence in comparison_words(comparison):
        out.print(plain(sentence), soft_wrap=True)


def _number_words(number: float | None, digits: str) -> str:
    return "" if number is None or math.isnan(number) else f"{number:{digits}}"


def _seconds_words(seconds: float | None, before: str = "") -> str:
    words = _number_words(seconds, ".2f" if seconds is None or seconds >= SHOWN_IN_DETAIL else ".4f")
    return f"{before}{words}" if words else ""


def show_backends(out: "Console", rows: list[dict[str, Any]], choice: "BackendChoice | None") -> None:
    """What each backend is and proves, and with a problem whether it can solve it, for people."""
    from rposst_opt.backends import BACKENDS

    for row in rows:
        state = "installed" if row["installed"] else f"not installed: {row['install']}"
        if row["unusable"] is not None:
            state = f"cannot be used: {row['unusable']}"
        handles = _handles_words(BACKENDS[row["name"]].capabilities)
        out.print(plain(f"{row['name']} ({state})"), soft_wrap=True)
        out.print(plain(f"    {row['method']}; handles {handles}"), soft_wrap=True)
        out.print(plain(f"    proves {row['proves']}; tolerance {row['tolerance']:g}"), soft_wrap=True)
        if choice is not None:
            out.print(plain(f"    {_verdict_words(row)}"), soft_wrap=True)
    if choice is not None:
        out.print(plain(f"auto stands for {choice.backend}: {choice.reason}."), soft_wrap=True)


def _verdict_words(row: dict[str, Any]) -> str:
    from rposst_opt.backends.forecast import in_words

    if not row["solves_this"]:
        return f"cannot solve this problem: {row['why_not']}"
    seconds = row["predicted_seconds"]
    time = "" if seconds is None else f", predicted to take {in_words(seconds)} to a proved optimum"
    return f"can solve this problem{time}"


def _handles_words(capabilities: "Capabilities") -> str:
    from rposst_opt.problem import Need

    loss = "any loss" if Need.CURVED_LOSS in capabilities.handles else "losses of affine pieces"
    measure = "any measure" if Need.ANY_MEASURE in capabilities.handles else "mixtures of CVaRs"
    rules = ", rules" if Need.CHOICE_RULES in capabilities.handles else ""
    limits = ", limits to weights" if Need.WEIGHT_LIMITS in capabilities.handles else ""
    return f"{loss}, {measure}{rules}{limits}"
