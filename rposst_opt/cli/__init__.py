"""The command line: ``rposst demo | solve | report | score | verify | agree | export | backends | calibrate | ...``.

Results go to standard output, progress and messages to standard error. Exit codes: 0 done, 1 no test, 2 bad input.

Only this module and `rposst_opt.cli.experiments` print. Heavy packages are imported inside the commands, so that help
and version answer at once; their names in annotations are for type checkers alone.
"""

import io
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_type_hints

import typer

import rposst_opt
from rposst_opt.cli.experiments import domain, reproduce
from rposst_opt.cli.terminal import console, plain
from rposst_opt.errors import ProblemError, RposstError

if TYPE_CHECKING:
    from rich.console import Console

    from rposst_opt.backends.agreement import Agreement
    from rposst_opt.contract import Capabilities, Progress
    from rposst_opt.measures import Measure
    from rposst_opt.problem import Problem
    from rposst_opt.results import Scale
    from rposst_opt.solution import Solution

app = typer.Typer(
    name="rposst",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(domain, name="domain")
app.command()(reproduce)


class NamedMeasure(StrEnum):
    """The measures that need no number."""

    MEAN = "mean"
    WORST = "worst"


Results = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS.csv",
        help="Results: a header of policies, a first column of test cases, numbers elsewhere; "
        "separated by comma, tab or semicolon.",
        show_default=False,
    ),
]
Size = Annotated[
    int, typer.Option(help="How many test cases to choose, besides the required ones.", show_default=False)
]
TailFraction = Annotated[
    float | None,
    typer.Option(help="Robust to this worst fraction of scenarios (CVaR); 0.01 unless another measure is named."),
]
KWorst = Annotated[int | None, typer.Option("--k", help="With --n: the mean of the k worst of n scenarios, exactly.")]
NDrawn = Annotated[int | None, typer.Option("--n", help="How many scenarios k-of-N draws.")]
MeasureName = Annotated[NamedMeasure | None, typer.Option("--measure", help="A measure without numbers.")]
LossName = Annotated[
    str,
    typer.Option(
        "--loss",
        metavar="NAME[:NUMBER]",
        help="absolute, squared, huber:THRESHOLD, pinball:QUANTILE or epsilon-insensitive:TOLERANCE.",
    ),
]
Betas = Annotated[
    str | None,
    typer.Option(
        metavar="0,1,2,4",
        help="Targets that stress cases with low results the more, the larger beta; 0 is the uniform one.",
    ),
]
Targets = Annotated[
    Path | None,
    typer.Option(metavar="FILE.csv", help="Target weights of all test cases; a row or a column per target."),
]
Probabilities = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv", help="Probability of each policy (row) and target (column); all alike if not given."
    ),
]
Require = Annotated[
    list[str] | None, typer.Option(metavar="CASE", help="A test case that the test must have; repeat for more.")
]
Forbid = Annotated[
    list[str] | None, typer.Option(metavar="CASE", help="A test case that the test must not have; repeat for more.")
]
Rescale = Annotated[bool, typer.Option(help="Map all results to [0, 1] first, as the paper does.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help="Stop then, with the best test so far.")]


@dataclass(frozen=True, kw_only=True)
class ProblemOptions:
    """What states a problem on the command line; the fields are the options that several commands share."""

    results: Results
    size: Size
    tail_fraction: TailFraction = None
    k: KWorst = None
    n: NDrawn = None
    measure: MeasureName = None
    loss: LossName = "absolute"
    betas: Betas = None
    targets: Targets = None
    probabilities: Probabilities = None
    require: Require = None
    forbid: Forbid = None
    rescale: Rescale = True


def takes_problem(*, optional: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, whose first parameter is `options`, the fields of `ProblemOptions` as its own options.

    With `optional`, the results and the size may be left out, and `options` is then None.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(ProblemOptions, include_extras=True)
        shared = []
        for option in fields(ProblemOptions):
            default = Parameter.empty if option.default is MISSING and not optional else None
            default = default if option.default is MISSING else option.default
            annotation = hints[option.name]
            if option.default is MISSING and optional:
                kind, *extras = get_args(annotation)
                annotation = Annotated[kind | None, *extras]
            shared.append(Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
        own = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for parameter in list(signature(command, eval_str=True).parameters.values())[1:]
        ]

        @wraps(command)
        def wrapper(**given: Any) -> None:
            stated = {option.name: given.pop(option.name) for option in shared}
            if optional and (stated["results"] is None) != (stated["size"] is None):
                raise ProblemError("RESULTS.csv and --size go together: give both, or neither.")
            idle = [option.name for option in shared if stated[option.name] != option.default]
            if stated["results"] is None and idle:
                raise ProblemError(f"--{idle[0].replace('_', '-')} states a problem: give RESULTS.csv and --size too.")
            command(None if stated["results"] is None else ProblemOptions(**stated), **given)

        wrapper.__signature__ = Signature([*shared, *own])  # type: ignore[attr-defined]  # read by Typer
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in [*shared, *own]}
        return wrapper

    return decorate


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rposst {rposst_opt.__version__}")
        raise typer.Exit()


@app.callback()
def rposst(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Choose a few test cases, with weights, whose score stays close to the full test's for the worst policies."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def demo() -> None:
    """Do the main job from start to end on a small race between arrows; nothing is needed or written."""
    import numpy as np

    from rposst_opt.experiments.domains import racing_arrows
    from rposst_opt.problem import Problem
    from rposst_opt.results import rescale, softmax_targets

    rng = np.random.default_rng(2023)
    table = racing_arrows(50, rng)
    seen = np.sort(rng.permutation(table.columns.size)[:40])
    tuning = table.iloc[:, seen]
    unseen = table.drop(columns=tuning.columns)
    scaled, scale = rescale(tuning)
    problem = Problem(
        results=scaled,
        size=3,
        targets=softmax_targets(scaled, betas=(0, 1, 2, 4)),
        case_names=list(table.index),
        policy_names=list(tuning.columns),
    )
    out = console()
    out.print(
        "Racing Arrows: 50 test cases (followers), 40 tuning policies (leaders), 4 targets, so 160 scenarios.\n"
        f"Choose 3 of the 50 test cases: {problem.n_tuples:,} sets, each with the best weights, for the worst 1 %."
    )
    solution = _solve(problem, "auto", {}, None, 0.0)
    if solution.test is not None:
        misses = np.abs(solution.test.score(unseen) - unseen.to_numpy().mean(axis=0))
        out.print(
            f"On {unseen.shape[1]} leaders that it was not tuned on, the small test's score differs from the full "
            f"test's by {misses.mean():.3f} on average and {misses.max():.3f} at most."
        )
    _show_solution(out, problem, solution, scale)


@app.command()
@takes_problem()
def solve(
    options: ProblemOptions,
    backend: Annotated[str, typer.Option(help="Which solver; `rposst backends` lists them.")] = "auto",
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of the game, for backends that play it; 500 unless given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="For backends that draw at random; 0 unless given.")] = None,
    time_limit: TimeLimit = None,
    gap: Annotated[
        float,
        typer.Option(
            help="Be content with this gap, in the units of the objective: 0.05 is 5 % of the rescaled range."
        ),
    ] = 0.0,
    top: Annotated[
        int | None,
        typer.Option(
            help="Show the best so many sets of cases; ties by the lower mean loss, then by position in the file."
        ),
    ] = None,
    all_optimal: Annotated[
        bool, typer.Option("--all-optimal", help="Show all sets of cases that are as good as the best.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="TEST.json", help="Write the test to this file.")] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="PROOF.json", help="Write a proof of the lower bound, for `rposst verify`, to this file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Choose test cases and weights from a results file."""
    from rposst_opt.files.tables import as_json as to_json
    from rposst_opt.files.tables import certificate_record, check_can_write, solution_record, write_atomically
    from rposst_opt.solution import Status

    for path in (out, certificate):
        if path is not None:
            check_can_write(path)
            _spare_inputs(path, options)
    problem, scale, _ = _read_problem(options)
    asked = {
        "rounds": rounds,
        "seed": seed,
        "top": top,
        "all_optimal": all_optimal or None,
        "certificate": bool(certificate) or None,
    }
    wanted = {name: value for name, value in asked.items() if value is not None}
    solution = _solve(problem, backend, wanted, time_limit, gap)
    record = to_json(solution_record(problem, solution, scale))
    try:
        if out is not None and solution.test is not None:
            write_atomically(out, record + "\n")
        if certificate is not None and solution.certificate is not None:
            write_atomically(certificate, to_json(certificate_record(problem, solution.certificate)) + "\n")
        elif certificate is not None:
            console(stderr=True).print(
                plain(f"{certificate} was not written: {solution.limit or 'the run'} came before a whole proof.")
            )
    finally:  # what was found is shown even if it cannot be written
        if as_json:
            print(record)
        else:
            _show_solution(console(), problem, solution, scale)
    if solution.status is Status.NO_TEST:
        raise typer.Exit(1)


@app.command()
@takes_problem()
def verify(
    options: ProblemOptions,
    certificate: Annotated[
        Path, typer.Argument(metavar="PROOF.json", help="What `rposst solve --certificate` wrote for this problem.")
    ],
    samples: Annotated[
        int, typer.Option(help="How many sets of cases to draw where there are too many to look at all.")
    ] = 100_000,
    seed: Annotated[int, typer.Option(help="For drawing them.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check a proof of a lower bound, without any solver; exit 1 if it does not hold."""
    from rposst_opt.certificate import verify_certificate
    from rposst_opt.files.tables import as_json as to_json
    from rposst_opt.files.tables import read_certificate

    problem = _read_problem(options).problem
    proof = read_certificate(certificate, problem)
    outcome = verify_certificate(problem, proof, samples=samples, seed=seed)
    if as_json:
        record = {
            "format": "rposst-verification/1",
            "holds": outcome.holds,
            "reason": outcome.reason,
            "bound": proof.bound,
            "n_cuts": len(proof.cuts),
            "n_exceptions": len(proof.exceptions),
            "n_checked": outcome.n_checked,
            "n_tuples": outcome.n_tuples,
        }
        print(to_json(record))
    elif outcome.holds:
        looked_at = "all" if outcome.is_complete else f"a sample of {outcome.n_checked:,} of the"
        apart = f", save on {len(proof.exceptions):,} named sets" if proof.exceptions else ""
        console().print(
            f"The proof holds: no test has an objective below {proof.bound:.9g}{apart}. "
            f"{len(proof.cuts):,} cuts were checked, and {looked_at} {outcome.n_tuples:,} sets of test cases."
        )
    else:
        console().print(plain(f"The proof does not hold: {outcome.reason}."))
    if not outcome.holds:
        raise typer.Exit(1)


@app.command()
@takes_problem()
def agree(
    options: ProblemOptions,
    backends: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these backends; all of them if not given.")
    ] = None,
    time_limit: Annotated[float, typer.Option(metavar="SECONDS", help="For each backend.")] = 60.0,
    by_tuple: Annotated[
        bool, typer.Option("--by-tuple", help="Compare the optimum of every set of cases too.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Write the table to this file as well.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run every backend on the same problem and say who agrees; exit 1 if somebody does not."""
    from rposst_opt.backends.agreement import agree as run_all
    from rposst_opt.files.tables import agreement_rows, as_csv, check_can_write, write_atomically
    from rposst_opt.files.tables import as_json as to_json

    if csv is not None:
        check_can_write(csv)
        _spare_inputs(csv, options)
    problem = _read_problem(options).problem
    names = None if backends is None else [name.strip() for name in backends.split(",")]
    with _spinner() as say:
        report = run_all(problem, names, time_limit_seconds=time_limit, by_tuple=by_tuple, progress=say)
    rows = agreement_rows(report)
    if csv is not None:
        write_atomically(csv, as_csv(rows))
    if as_json:
        print(to_json({"format": "rposst-agreement/1", "agreed": report.agreed, "backends": rows}))
    else:
        _show_agreement(console(), report)
    if not report.agreed:
        raise typer.Exit(1)


@app.command()
@takes_problem()
def report(
    options: ProblemOptions,
    out: Annotated[Path, typer.Option(metavar="REPORT.html", help="The page to write.")],
    backend: Annotated[str, typer.Option(help="Which solver; `rposst backends` lists them.")] = "auto",
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="For the test, and for the best test of each other size.")
    ] = 60.0,
    backends: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="Ask only these backends to agree; all that are predicted to be in time if not given."
        ),
    ] = None,
    agree_time_limit: Annotated[float, typer.Option(metavar="SECONDS", help="For each of them.")] = 10.0,
    ask_others: Annotated[bool, typer.Option("--agree/--no-agree", help="Whether others are asked at all.")] = True,
    largest_size: Annotated[
        int | None,
        typer.Option(min=1, help="Up to how many cases the best error is shown; two more than --size unless given."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The page's heading; the file's name unless given.")] = None,
) -> None:
    """Write a page for a browser: the test, its errors, its proof, who agrees, and the k-of-N explorer."""
    from rposst_opt.files.tables import check_can_write, write_atomically
    from rposst_opt.reports.pages.page import check_can_render
    from rposst_opt.reports.pages.report import gather
    from rposst_opt.reports.pages.report_page import report_page
    from rposst_opt.reports.wording import agreement_words

    check_can_render()
    check_can_write(out)
    _spare_inputs(out, options)
    if backends is not None and not ask_others:
        raise ProblemError("--backends and --no-agree exclude each other: give one of them.")
    stated = _read_problem(options)
    names = None if backends is None else [name.strip() for name in backends.split(",")]
    with _spinner() as say:
        found = gather(
            stated.problem,
            scale=stated.scale,
            target_names=stated.target_names,
            backend=backend,
            time_limit_seconds=time_limit,
            backends=names if ask_others else [],
            agree_seconds=agree_time_limit,
            largest_size=largest_size,
            tell=say,
        )
    if found is None:
        console().print("No test was found before the time limit.")
        raise typer.Exit(1)
    heading = title or f"A small test for {options.results.stem}"
    write_atomically(out, report_page(found, title=heading, command=_own_command()))
    _show_solution(console(), found.problem, found.solution, found.scale)
    missing = " An interrupt came before all was run, and the page lacks the rest." if found.interrupted else ""
    console(stderr=True).print(plain(f"{out}: open it in a browser; it needs no network.{missing}"), soft_wrap=True)
    if found.agreement is not None and not found.agreement.agreed:
        console().print(plain(agreement_words(found.agreement)))
        raise typer.Exit(1)


@app.command()
@takes_problem(optional=True)
def explore(
    options: ProblemOptions | None,
    out: Annotated[Path, typer.Option(metavar="EXPLORE.html", help="The page to write.")],
    time_limit: Annotated[float, typer.Option(metavar="SECONDS", help="For the test whose losses are shown.")] = 60.0,
) -> None:
    """Write a page for a browser with sliders for k, N and eta, and a game; on a small race if no results are given."""
    from rposst_opt.files.tables import check_can_write, write_atomically
    from rposst_opt.reports.pages.explorer import game_values
    from rposst_opt.reports.pages.explorer_page import explorer_page
    from rposst_opt.reports.pages.page import check_can_render

    check_can_render()
    check_can_write(out)
    if options is not None:
        _spare_inputs(out, options)
    problem, _, target_names = _small_race() if options is None else _read_problem(options)
    solution = _solve(problem, "auto", {}, time_limit, 0.0)
    if solution.test is None:
        console().print(f"No test was found before {solution.limit or 'the run ended'}.", markup=False)
        raise typer.Exit(1)
    values = game_values(problem, solution)
    title = "The k-of-N objective, by hand"
    write_atomically(out, explorer_page(problem, solution, target_names, values, title=title, command=_own_command()))
    console(stderr=True).print(plain(f"{out}: open it in a browser; it needs no network."), soft_wrap=True)


def _small_race() -> "Stated":
    """A problem that is small enough to look at: 20 followers, 12 leaders, 4 targets."""
    import numpy as np

    from rposst_opt.experiments.domains import racing_arrows
    from rposst_opt.measures import KOfN
    from rposst_opt.problem import Problem
    from rposst_opt.results import Scale, softmax_targets

    table = racing_arrows(20, np.random.default_rng(2023)).iloc[:, :12]
    betas = (0, 1, 2, 4)
    problem = Problem(results=table, size=3, measure=KOfN(1, 10), targets=softmax_targets(table, betas))
    return Stated(problem, Scale(0.0, 1.0), [f"beta {beta}" for beta in betas])


def _own_command() -> str:
    """The command line as it was given, for the page that it makes."""
    return shlex.join(["rposst", *sys.argv[1:]])


@app.command()
@takes_problem()
def export(
    options: ProblemOptions,
    out: Annotated[Path, typer.Option(metavar="MODEL.mps", help="The file to write: .mps, or .lp for people.")],
) -> None:
    """Write the mixed-integer program to a file that any solver reads."""
    from rposst_opt.backends import entry_of
    from rposst_opt.files.tables import check_can_write, write_with

    check_can_write(out)
    _spare_inputs(out, options)
    if out.suffix not in (".mps", ".lp"):
        raise ProblemError(f"{out}: the file must end in .mps or .lp.")
    problem = _read_problem(options).problem
    entry = entry_of("pulp-highs")
    reason = entry.capabilities.why_not(problem)
    if reason is not None:
        raise ProblemError(f"this problem is no mixed-integer linear program: {reason}.")
    write_with(out, lambda path: entry.module_attribute("write_model")(problem, path))
    console(stderr=True).print(
        f"{out}: y_3 says whether test case number 3 (counted from 0) is chosen, w_3 is its weight.", markup=False
    )


@app.command()
def score(
    test: Annotated[Path, typer.Argument(metavar="TEST.json", help="A test that `rposst solve --out` wrote.")],
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS.csv", help="Results of new policies on the test's cases; other cases may be missing."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Apply a test to new policies: their scores and their ranking, highest first."""
    from rich.table import Table

    from rposst_opt.files.tables import as_json as to_json
    from rposst_opt.files.tables import read_results, read_test
    from rposst_opt.reports.policy_ranking import ranks

    efficient_test = read_test(test)
    table = read_results(results, only_cases=efficient_test.case_names)
    scores = efficient_test.score(table)
    placed = zip(ranks(scores).tolist(), table.columns, scores.tolist(), strict=True)
    rows = [
        {"rank": rank, "policy": policy, "score": value}
        for rank, policy, value in sorted(placed, key=lambda place: -place[2])
    ]
    if as_json:
        print(to_json({"format": "rposst-scores/1", "scores": rows}))
        return
    shown = Table(title=f"Scores by {len(efficient_test.cases)} test cases, in the units of the file")
    shown.add_column("rank", justify="right")
    shown.add_column("policy", overflow="fold")
    shown.add_column("score", justify="right")
    for row in rows:
        shown.add_row(str(row["rank"]), plain(row["policy"]), f"{row['score']:.6g}")
    console().print(shown)


@app.command()
@takes_problem(optional=True)
def backends(options: ProblemOptions | None, time_limit: TimeLimit = None, as_json: AsJson = False) -> None:
    """List the solvers: what is installed, what each handles and proves; with a problem, who can solve it, how soon."""
    from rposst_opt.backends import BACKENDS, choose_backend, how_to_install
    from rposst_opt.backends.forecast import in_words
    from rposst_opt.files.tables import as_json as to_json

    problem = None if options is None else _read_problem(options).problem
    rows: list[dict[str, Any]] = []
    for name, entry in BACKENDS.items():
        capabilities = entry.capabilities
        install = how_to_install(capabilities)
        reason = None if problem is None else capabilities.why_not(problem)
        rows.append(
            {
                "name": name,
                "installed": install is None,
                "install": install,
                "method": capabilities.method,
                "handles": sorted(need.value for need in capabilities.handles),
                "finds_optimum": capabilities.finds_optimum,
                "proves": capabilities.proves,
                "tolerance": capabilities.tolerance,
                **({} if problem is None else {"solves_this": reason is None, "why_not": reason}),
            }
        )
    choice = None if problem is None else choose_backend(problem, time_limit_seconds=time_limit)
    if choice is not None:
        for row in rows:
            row["predicted_seconds"] = choice.predicted_seconds.get(row["name"])
    if as_json:
        auto = None if choice is None else choice.backend
        reason = None if choice is None else choice.reason
        print(to_json({"format": "rposst-backends/1", "auto": auto, "reason": reason, "backends": rows}))
        return
    out = console()
    for row in rows:
        state = "installed" if row["installed"] else f"not installed: {row['install']}"
        out.print(plain(f"{row['name']} ({state})"), soft_wrap=True)
        out.print(
            plain(f"    {row['method']}; handles {_handles_words(BACKENDS[row['name']].capabilities)}"), soft_wrap=True
        )
        out.print(plain(f"    proves {row['proves']}; tolerance {row['tolerance']:g}"), soft_wrap=True)
        if problem is not None:
            verdict = "can solve this problem" if row["solves_this"] else f"cannot solve this problem: {row['why_not']}"
            seconds = row["predicted_seconds"]
            if row["solves_this"] and seconds is not None:
                verdict += f", predicted to take {in_words(seconds)} to a proved optimum"
            out.print(plain(f"    {verdict}"), soft_wrap=True)
    if choice is not None:
        out.print(plain(f"auto stands for {choice.backend}: {choice.reason}."), soft_wrap=True)


@app.command()
def calibrate(
    seconds: Annotated[float, typer.Option(min=1.0, help="How long to measure, about.")] = 120.0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Where to write the table; your configuration folder unless given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Fit the times that `auto` predicts to this machine, by running the backends on small problems."""
    from rposst_opt.backends.calibration import calibrate as measure
    from rposst_opt.backends.forecast import as_table, users_table
    from rposst_opt.files.tables import check_can_write, write_atomically

    path = users_table() if out is None else out
    if out is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    check_can_write(path)
    with _spinner() as say:
        models = measure(seconds, tell=lambda what, share: say(f"{what} ({share:.0%} of the time)"))
    table = as_table(models)
    write_atomically(path, table)
    print(table, end="")
    in_use = "this table now" if path == users_table() else f"{users_table()}, if it is there"
    console(stderr=True).print(plain(f"{path}: {len(models)} backends; auto predicts by {in_use}."), soft_wrap=True)


def _handles_words(capabilities: "Capabilities") -> str:
    from rposst_opt.problem import Need

    loss = "any loss" if Need.CURVED_LOSS in capabilities.handles else "losses of affine pieces"
    measure = "any measure" if Need.ANY_MEASURE in capabilities.handles else "mixtures of CVaRs"
    return f"{loss}, {measure}"


def _measure(options: ProblemOptions) -> "Measure":
    """The one measure that the options name."""
    from rposst_opt.measures import CVaR, KOfN, Mean, WorstCase

    if (options.k is None) != (options.n is None):
        raise ProblemError("--k and --n go together: give both, or neither.")
    if sum(option is not None for option in (options.tail_fraction, options.k, options.measure)) > 1:
        raise ProblemError("--tail-fraction, --k with --n, and --measure exclude each other: give one of them.")
    if options.k is not None and options.n is not None:
        return KOfN(options.k, options.n)
    if options.measure is not None:
        return Mean() if options.measure is NamedMeasure.MEAN else WorstCase()
    return CVaR(0.01 if options.tail_fraction is None else options.tail_fraction)


class Stated(NamedTuple):
    """The problem that files and options state, the units of the results file, and how its targets are called."""

    problem: "Problem"
    scale: "Scale"
    target_names: list[str]


def _read_problem(options: ProblemOptions) -> Stated:
    """Read the files."""
    from rposst_opt.files.tables import read_probabilities, read_results, read_targets
    from rposst_opt.losses import loss_from_label
    from rposst_opt.problem import Problem
    from rposst_opt.results import Scale, rescale, softmax_targets

    if options.betas is not None and options.targets is not None:
        raise ProblemError("--betas and --targets exclude each other: give one of them.")
    measure, loss = _measure(options), loss_from_label(options.loss)
    sharpness = None if options.betas is None else _numbers("--betas", options.betas)
    table = read_results(options.results)
    values, scale = rescale(table) if options.rescale else (table.to_numpy(), Scale(0.0, 1.0))
    target_names, targets = ["uniform"], None
    if sharpness is not None:
        target_names, targets = [f"{beta:g}" for beta in sharpness], softmax_targets(values, sharpness)
    elif options.targets is not None:
        frame = read_targets(options.targets, list(table.index))
        target_names, targets = list(frame.index), frame.to_numpy()
    probabilities = None
    if options.probabilities is not None:
        probabilities = read_probabilities(options.probabilities, list(table.columns), target_names)
    problem = Problem(
        results=values,
        size=options.size,
        measure=measure,
        loss=loss,
        targets=targets,
        probabilities=probabilities,
        required_cases=options.require or (),
        forbidden_cases=options.forbid or (),
        case_names=list(table.index),
        policy_names=list(table.columns),
    )
    if sharpness is not None:
        target_names = [f"beta {name}" for name in target_names]
    return Stated(problem, scale, target_names)


def _spare_inputs(out: Path, options: ProblemOptions) -> None:
    """Refuse to write over a file that is read."""
    for path in (options.results, options.targets, options.probabilities):
        if path is not None and path.exists() and out.exists() and out.samefile(path):
            raise ProblemError(f"{out}: this file is read as input, and is not written over: name another.")


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProblemError(f"{option} must be numbers with commas between them, got {text!r}.") from None


def _solve(
    problem: "Problem", backend: str, options: dict[str, Any], time_limit: float | None, gap: float
) -> "Solution":
    """Solve, with a progress bar where somebody can see it."""
    from rposst_opt.backends import solve as solve_problem

    with _progress_bar() as progress:
        return solve_problem(problem, backend, time_limit_seconds=time_limit, gap=gap, progress=progress, **options)


@contextmanager
def _progress_bar() -> "Iterator[Callable[[Progress], None]]":
    """A bar on standard error, gone when the run is over; nothing where standard error is not a terminal."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda progress: None
        return
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>5.1f} % of {task.fields[sets]}"),
        TimeRemainingColumn(),
        TextColumn("best {task.fields[objective]:.6g}, at least {task.fields[bound]}, gap {task.fields[gap]}"),
    )
    with Bar(*columns, console=screen, transient=True) as bar:
        # The share done, because the number of sets may be too large for a float.
        task = bar.add_task("", total=1.0, visible=False, sets="", objective=float("inf"), bound="", gap="")

        def show(progress: "Progress") -> None:
            proved = progress.lower_bound > -float("inf")
            bar.update(
                task,
                completed=progress.done / progress.total,
                visible=True,
                sets=f"{f'{progress.total:,}' if progress.total < 10**15 else 'very many'} {progress.unit}",
                objective=progress.objective,
                bound=f"{progress.lower_bound:.6g}" if proved else "?",
                gap=f"{progress.objective - progress.lower_bound:.3g}" if proved else "?",
            )

        yield show


def _show_solution(out: "Console", problem: "Problem", solution: "Solution", scale: "Scale") -> None:
    """The chosen test and what is known about it, for people."""
    from rich.table import Table

    from rposst_opt.reports.wording import facts as describe

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
    for label, value in describe(problem, solution, scale):
        facts.add_row(plain(label), plain(value))
    out.print(facts)
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


def _show_agreement(out: "Console", report: "Agreement") -> None:
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
        shown.add_row(*(plain(cell) for cell in (finding.backend, *numbers, finding.verdict.value)))
    out.print(shown)
    for finding in report.findings:
        if finding.reason:
            out.print(plain(f"{finding.backend} {finding.verdict.value}: {finding.reason}"), soft_wrap=True)
    for cases, alone in report.by_tuple:
        for finding in alone.dissenters:
            names = ", ".join(repr(report.problem.case_names[case]) for case in cases)
            out.print(plain(f"on the cases {names}, {finding.backend} {finding.verdict.value}: {finding.reason}"))
    out.print(plain(agreement_words(report)))


@contextmanager
def _spinner() -> Iterator[Callable[[str], None]]:
    """The name of the backend that runs, on standard error; nothing where that is not a terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda name: None
        return
    with screen.status("") as status:
        yield lambda name: status.update(f"running {name}".replace("[", r"\["))


def run() -> int:
    """Run the command line; whatever goes wrong with the input becomes one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may not know every letter of a name
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except RposstError as error:
        return _complain(str(error))
    except BrokenPipeError:
        # Whoever read our output has gone. The interpreter would complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(f"the output cannot be written ({error.strerror}).")
    except Exception as error:
        # Typer's own errors about options and arguments; where their class lives differs between its versions.
        if not hasattr(error, "format_message"):
            raise
        return _complain(error.format_message())
    return code if isinstance(code, int) else 0


def _complain(message: str) -> int:
    print("rposst: " + " ".join(message.split()), file=sys.stderr)
    return 2
