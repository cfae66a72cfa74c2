"""Choosing a test and using it: ``rposst demo | solve | score | export``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rposst_opt.cli.commands import OUTPUT, RUN, SCORES
from rposst_opt.cli.options import (
    ProblemOptions,
    Stated,
    purpose_of,
    read_problem,
    source_of,
    takes_problem,
    takes_reading,
)
from rposst_opt.cli.reading import ReadingOptions, open_table, table_of_cells
from rposst_opt.cli.running import BackendName, Scheduler, TimeLimit
from rposst_opt.cli.showing import show_scores, show_solution
from rposst_opt.cli.terminal import console, ending_at_a_second_interrupt, notice, progress_of_a_search
from rposst_opt.cli.writing import AsJson, CsvOut, check_output, write_file, wrote
from rposst_opt.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd

    from rposst_opt.efficient_test import EfficientTest
    from rposst_opt.problem import Problem
    from rposst_opt.solution import Solution
    from rposst_opt.unseen.error_bars import LeftOut

A_FEW_SECONDS = 8.0
TABLES = (".csv", ".tsv", ".parquet", ".feather", ".xlsx", ".xls")


def demo() -> None:
    """Do the main job from start to end on a small race between arrows; nothing is needed or written."""
    import numpy as np

    from rposst_opt.backends import solve as solve_problem
    from rposst_opt.experiments.domains import racing_arrows
    from rposst_opt.problem import Problem
    from rposst_opt.results import rescale, softmax_targets
    from rposst_opt.unseen.error_bars import leave_out
    from rposst_opt.unseen.procedures import Purpose

    rng = np.random.default_rng(2023)
    table = racing_arrows(50, rng)
    seen = np.sort(rng.permutation(table.columns.size)[:40])
    tuning = table.iloc[:, seen]
    unseen = table.drop(columns=tuning.columns)
    scaled, scale = rescale(tuning)
    betas = (0.0, 1.0, 2.0, 4.0)
    problem = Problem(
        results=scaled,
        size=3,
        targets=softmax_targets(scaled, betas=betas),
        case_names=list(table.index),
        policy_names=list(tuning.columns),
    )
    out = console()
    out.print(
        "Racing Arrows: 50 test cases (followers), 40 tuning policies (leaders), 4 targets, so 160 scenarios.\n"
        f"Choose 3 of the 50 test cases: {problem.n_tuples:,} sets, each with the best weights, for the worst 1 %."
    )
    with progress_of_a_search() as progress:
        solution = solve_problem(problem, progress=progress)
    if solution.test is not None:
        misses = np.abs(solution.test.score(unseen) - unseen.to_numpy().mean(axis=0))
        out.print(
            f"On {unseen.shape[1]} leaders that it was not tuned on, the small test's score differs from the full "
            f"test's by {misses.mean():.3f} on average and {misses.max():.3f} at most."
        )
    left_out = leave_out(
        tuning.to_numpy(), 3, Purpose(betas=betas), backend=solution.backend, options={}, most_seconds=A_FEW_SECONDS
    )
    show_solution(out, problem, solution, scale, left_out)


def _of_run(text: str, metavar: str | None = None) -> Any:
    return typer.Option(metavar=metavar, help=text, rich_help_panel=RUN)


def _of_output(*names: str, text: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=OUTPUT, show_default=False)


Rounds = Annotated[int | None, _of_run("Rounds of the game, for backends that play it; 500 unless given.")]
PlayerName = Annotated[
    str | None,
    _of_run(
        "Who plays the game of `regret-matching`: regret-matching+ unless given, predictive, extragradient or "
        "smooth-predictive.",
        "NAME",
    ),
]
Restarts = Annotated[
    str | None,
    _of_run(
        "When the proved gap has halved, that player starts again from the last or the best round; never unless given.",
        "last|best",
    ),
]
Seed = Annotated[int | None, _of_run("For backends that draw at random; 0 unless given.")]
Gap = Annotated[
    float,
    _of_run("Be content with this gap, in the units of the objective: 0.05 is 5 % of the rescaled range."),
]
Top = Annotated[
    int | None,
    _of_output(text="Show the best so many sets of cases; ties by the lower mean loss, then by position in the file."),
]
AllOptimal = Annotated[bool, _of_output("--all-optimal", text="Show all sets of cases that are as good as the best.")]
TestFile = Annotated[Path | None, _of_output(metavar="TEST.json", text="Write the test to this file.")]
ProofFile = Annotated[
    Path | None,
    _of_output(metavar="PROOF.json", text="Write a proof of the lower bound, for `rposst verify`, to this file."),
]
ErrorBars = Annotated[
    bool | None,
    _of_output(
        "--error-bars/--no-error-bars",
        text="Make the test again without each policy in turn, or without each of ten folds where they are many, for "
        "the error on policies that it has not seen and for `rposst score`'s intervals; by default if that takes a few "
        "seconds at most.",
    ),
]


@takes_problem()
def solve(
    options: ProblemOptions,
    backend: BackendName = "auto",
    rounds: Rounds = None,
    player: PlayerName = None,
    restarts: Restarts = None,
    seed: Seed = None,
    time_limit: TimeLimit = None,
    gap: Gap = 0.0,
    scheduler: Scheduler = None,
    out: TestFile = None,
    certificate: ProofFile = None,
    error_bars: ErrorBars = None,
    top: Top = None,
    all_optimal: AllOptimal = False,
    as_json: AsJson = False,
) -> None:
    """Choose test cases and weights from a results file.

    Unless told otherwise, it looks for the test with the smallest error for the worst 1 % of the file's policies, until
    it is proved that none is better.
    """
    from rposst_opt.backends import solve as solve_problem
    from rposst_opt.files.records import as_json as to_json
    from rposst_opt.files.records import solution_record
    from rposst_opt.solution import Status
    from rposst_opt.unseen.error_bars import left_out_record

    for option, path in (("--out", out), ("--certificate", certificate)):
        if path is not None:
            check_output(path, options.files)
            _check_is_no_table(option, path)
    stated = read_problem(options)
    problem, scale = stated.problem, stated.scale
    ranking = _given(top=top, all_optimal=all_optimal)
    game = _given(rounds=rounds, player=player, restarts=restarts, seed=seed)
    wanted = game | _given(scheduler=scheduler, certificate=certificate is not None) | ranking
    with progress_of_a_search() as progress, ending_at_a_second_interrupt():
        solution = solve_problem(problem, backend, time_limit_seconds=time_limit, gap=gap, progress=progress, **wanted)
    left_out = _left_out(options, stated, solution, error_bars, game | _given(gap=gap or None))
    given = _given(backend=backend) | game | _given(time_limit=time_limit, gap=gap or None)
    record = solution_record(problem, solution, scale, source_of(options, stated, given))
    if left_out is not None:
        record |= {"unseen": _unseen_record(left_out), "left_out": left_out_record(left_out)}
    try:
        if out is not None and solution.test is not None:
            write_file(out, to_json(record) + "\n")
        if certificate is not None:
            _write_certificate(certificate, problem, solution)
    finally:  # what was found is shown even if it cannot be written
        if as_json:
            print(to_json(record))
        else:
            show_solution(console(), problem, solution, scale, left_out)
    if solution.status is Status.NO_TEST:
        raise typer.Exit(1)


def _left_out(
    options: ProblemOptions, stated: Stated, solution: "Solution", wanted: bool | None, given: dict[str, Any]
) -> "LeftOut | None":
    """Tests without some policies, where they are wanted, or if nothing is said, where they take no time."""
    from rposst_opt.unseen.splits import FEWEST_TUNED_ON
    from rposst_opt.unseen.stand_in import leave_out_after, why_not_left_out

    few = stated.problem.n_policies <= FEWEST_TUNED_ON
    if wanted and (options.probabilities is not None or few):
        raise ProblemError(f"--error-bars needs more than {FEWEST_TUNED_ON} policies and no --probabilities.")
    if wanted is False or options.probabilities is not None or few or solution.test is None:
        return None
    seconds = None if wanted else A_FEW_SECONDS
    try:
        left_out = leave_out_after(
            solution,
            stated.table.to_numpy(),
            stated.problem.size,
            purpose_of(options, stated),
            options=given,
            most_seconds=seconds,
            search_seconds=seconds,
        )
    except KeyboardInterrupt:  # what was found is shown all the same
        notice("The error on policies that it has not seen was not worked out: an interrupt came before.")
        return None
    if left_out is None:
        reason = why_not_left_out(solution, stated.problem)
        remedy = "--error-bars asks for it" if reason is None else "a run to its end tells"
        notice(
            "The error on policies that it has not seen was not worked out, as "
            f"{reason or 'that takes more than a few seconds'}: {remedy}, and `rposst validate` compares ways to lower "
            "it."
        )
    return left_out


def _unseen_record(left_out: "LeftOut") -> dict[str, Any]:
    """By estimator, how far off scores of policies are that were left out."""
    return {
        method: {"mean_error": left_out.mean_error(method), "worst_error": left_out.worst_error(method)}
        for method in left_out.errors
    }


def _given(**options: Any) -> dict[str, Any]:
    """Those options that were given: a backend may not know the others."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def _check_is_no_table(option: str, path: Path) -> None:
    """Refuse a name that would say of JSON that it is a table."""
    if path.suffix.lower() in TABLES:
        raise ProblemError(
            f"{option} writes JSON, got {str(path)!r}: name it .json; a test's cases and weights become a table by "
            "`rposst write-subset TEST.json --for csv`."
        )


def _write_certificate(path: Path, problem: "Problem", solution: "Solution") -> None:
    """Write the proof, or say that there is none to write."""
    from rposst_opt.files.records import as_json, certificate_record

    if solution.certificate is not None:
        write_file(path, as_json(certificate_record(problem, solution.certificate)) + "\n")
    else:
        reason = f"{solution.limit or 'the run'} came before a whole proof"
        notice(f"{path} was not written: {reason}.")


def _of_scores(*names: str, text: str, min: int | None = None) -> Any:
    return typer.Option(*names, min=min, help=text, rich_help_panel=SCORES)


EstimatorName = Annotated[
    str, _of_scores(text="How the full score is estimated: weights, ridge, residual, kernel or aipw.")
]
TargetNumber = Annotated[int, _of_scores(min=1, text="Which target's score, by its number, for estimators that learn.")]
Level = Annotated[float, _of_scores(text="The probability with which intervals hold the full score.")]
IntervalKind = Annotated[
    str,
    _of_scores(
        text="jackknife, from results on the test's cases alone; or jackknife+, with a bound (2 × level - 1) and "
        "mostly wider, from results on the cases of all tests that were made without a policy."
    ),
]
Strict = Annotated[
    bool, _of_scores("--strict", text="Refuse results that are not on the scale that the test was made for.")
]


@takes_reading
def score(
    options: ReadingOptions,
    test: Annotated[Path, typer.Argument(metavar="TEST.json", help="A test that `rposst solve --out` wrote.")],
    estimator: EstimatorName = "weights",
    target: TargetNumber = 1,
    level: Level = 0.9,
    intervals: IntervalKind = "jackknife",
    strict: Strict = False,
    csv: CsvOut = None,
    as_json: AsJson = False,
) -> None:
    """Apply a test to new policies: their scores with intervals, and their ranking, highest first.

    Of the results, only those on the test's cases are needed, unless jackknife+ intervals are asked for.
    """
    from rposst_opt.files.records import as_json as to_json
    from rposst_opt.files.records import read_test
    from rposst_opt.unseen.error_bars import check_kind, known_policies, read_left_out

    if not 0 < level < 1:
        raise ProblemError(f"--level must lie between 0 and 1, got {level:g}.")
    check_kind(intervals, estimator)
    if csv is not None:
        check_output(csv, [options.results, test])
    efficient_test, left_out = read_test(test), read_left_out(test)
    table = _read_new_results(options, efficient_test, left_out, intervals)
    if strict:
        _check_scale(efficient_test, table, test)
    known = known_policies(efficient_test, table)
    if known is not None:
        notice(known)
    scored = _scored(efficient_test, left_out, table, method=estimator, target=target - 1, level=level, kind=intervals)
    if csv is not None:
        _write_scores(csv, scored["scores"])
    if as_json:
        print(to_json({"format": "rposst-scores/1", **scored}))
        return
    show_scores(console(), scored, len(efficient_test.cases))


def _write_scores(path: Path, rows: list[dict[str, Any]]) -> None:
    """A row for each policy, best first, with what `--json` says of it."""
    import pandas as pd

    write_file(path, pd.DataFrame(rows).to_csv(index=False))


def _check_scale(test: "EfficientTest", table: "pd.DataFrame", path: Path) -> None:
    """Refuse results on another scale than the test's, and a test that does not know its scale."""
    if test.scale is None:
        raise ProblemError(
            f"{path}: the range of results that this test was made for is not there: leave --strict out."
        )
    test.score(table, strict=True)


def _read_new_results(
    options: ReadingOptions, test: "EfficientTest", left_out: "LeftOut | None", kind: str
) -> "pd.DataFrame":
    """New policies' results on the test's cases, and for jackknife+ on those of tests without a policy."""
    from rposst_opt.unseen.error_bars import JACKKNIFE_PLUS

    needed = [*test.case_names]
    if left_out is not None and kind == JACKKNIFE_PLUS:
        needed += [name for other in left_out.tests for name in other.case_names]
    read = table_of_cells(open_table(options), options, needed)
    for note in read.notes:
        notice(note)
    return read.results


def _scored(
    test: "EfficientTest",
    left_out: "LeftOut | None",
    table: "pd.DataFrame",
    *,
    method: str,
    target: int,
    level: float,
    kind: str,
) -> dict[str, Any]:
    """Scores, best first, and what is known about how far they can be trusted."""
    import numpy as np

    from rposst_opt.files.records import finite
    from rposst_opt.unseen import error_bars
    from rposst_opt.unseen.policy_ranking import ranks

    scores = np.asarray(test.estimate(table, method, target=target), dtype=np.float64)
    rows = [
        {"rank": rank, "policy": policy, "score": value}
        for rank, policy, value in zip(ranks(scores).tolist(), table.columns, scores.tolist(), strict=True)
    ]
    scored: dict[str, Any] = {"estimator": method}
    if left_out is not None:
        found = error_bars.intervals(test, left_out, table, method=method, level=level, target=target, kind=kind)
        places = error_bars.rank_intervals(found.low, found.high)
        for row, low, high, place in zip(rows, found.low.tolist(), found.high.tolist(), places, strict=True):
            row |= {"low": finite(low), "high": finite(high), "best_rank": place[0], "worst_rank": place[1]}
        pairs = error_bars.pairs_not_told_apart(found.low, found.high)
        scored |= {"level": level, "intervals": kind, "left_out": left_out.words}
        scored |= {"n_left_out": len(left_out.tests), "n_applied": found.n_applied}
        scored |= {"not_told_apart": [[table.columns[one], table.columns[two]] for one, two in pairs]}
    if test.tuning is not None:
        for row, beyond in zip(rows, error_bars.beyond_what_was_seen(test, table), strict=True):
            row["unlike"] = beyond
    return scored | {"scores": sorted(rows, key=lambda row: -row["score"])}


@takes_problem()
def export(
    options: ProblemOptions,
    out: Annotated[
        Path,
        typer.Option(metavar="MODEL.mps", help="The file to write: .mps, or .lp for people.", rich_help_panel=OUTPUT),
    ],
) -> None:
    """Write the mixed-integer program to a file that any solver reads."""
    from rposst_opt.backends import entry_of
    from rposst_opt.files.writing import write_with

    check_output(out, options.files)
    if out.suffix not in (".mps", ".lp"):
        raise ProblemError(f"--out must end in .mps or .lp, got {str(out)!r}.")
    problem = read_problem(options).problem
    entry = entry_of("pulp-highs")
    reason = entry.capabilities.why_not(problem)
    if reason is not None:
        raise ProblemError(f"this problem is no mixed-integer linear program: {reason}.")
    write_with(out, lambda path: entry.module_attribute("write_model")(problem.stated, path))
    said = "y_3 says whether test case number 3 (counted from 0) is chosen, w_3 is its weight."
    if problem.offset:
        low, high = problem.n_cases, problem.n_cases + 1
        said += f" The offset is a mixture: w_{low} times the lowest result and w_{high} times the highest."
    wrote(out, said)
