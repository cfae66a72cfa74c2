"""The command line: ``rposst demo | solve | score | backends``.

Results go to standard output, progress and messages to standard error. Exit codes: 0 done, 1 no test, 2 bad input.

Only this module prints. Heavy packages are imported inside the commands, so that help and version answer at once; their
names in annotations are for type checkers alone.
"""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import rposst_opt
from rposst_opt.errors import RposstError

if TYPE_CHECKING:
    from rich.console import Console

    from rposst_opt.measures import Measure
    from rposst_opt.problem import Problem
    from rposst_opt.results import Scale
    from rposst_opt.solution import Capabilities, Progress, Solution

app = typer.Typer(
    name="rposst",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    out = _console()
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
def solve(
    results: Results,
    size: Size,
    tail_fraction: TailFraction = None,
    k: KWorst = None,
    n: NDrawn = None,
    measure: MeasureName = None,
    loss: LossName = "absolute",
    betas: Betas = None,
    targets: Targets = None,
    probabilities: Probabilities = None,
    require: Require = None,
    forbid: Forbid = None,
    backend: Annotated[str, typer.Option(help="Which solver; `rposst backends` lists them.")] = "auto",
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of the game, for backends that play it; 500 unless given.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop then, with the best test so far.")
    ] = None,
    gap: Annotated[
        float,
        typer.Option(
            help="Be content with this gap, in the units of the objective: 0.05 is 5 % of the rescaled range."
        ),
    ] = 0.0,
    rescale: Rescale = True,
    out: Annotated[Path | None, typer.Option(metavar="TEST.json", help="Write the test to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Choose test cases and weights from a results file."""
    from rposst_opt.io import as_json as to_json
    from rposst_opt.io import check_can_write, solution_record, write_atomically
    from rposst_opt.solution import Status

    if out is not None:
        check_can_write(out)
    problem, scale = _read_problem(
        results=results,
        size=size,
        measure=_measure(tail_fraction, k, n, measure),
        loss=loss,
        betas=betas,
        targets=targets,
        probabilities=probabilities,
        require=require or [],
        forbid=forbid or [],
        rescaled=rescale,
    )
    solution = _solve(problem, backend, {} if rounds is None else {"rounds": rounds}, time_limit, gap)
    record = to_json(solution_record(problem, solution, scale))
    if out is not None and solution.test is not None:
        write_atomically(out, record + "\n")
    if as_json:
        print(record)
    else:
        _show_solution(_console(), problem, solution, scale)
    if solution.status is Status.NO_TEST:
        raise typer.Exit(1)


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

    from rposst_opt.io import as_json as to_json
    from rposst_opt.io import read_results, read_test

    efficient_test = read_test(test)
    table = read_results(results, only_cases=efficient_test.case_names)
    scores = efficient_test.score(table)
    ranked = sorted(zip(table.columns, scores.tolist(), strict=True), key=lambda pair: -pair[1])
    rows = [
        {"rank": 1 + sum(other > value for _, other in ranked), "policy": policy, "score": value}
        for policy, value in ranked
    ]
    if as_json:
        print(to_json({"format": "rposst-scores/1", "scores": rows}))
        return
    shown = Table(title=f"Scores by {len(efficient_test.cases)} test cases, in the units of the file")
    shown.add_column("rank", justify="right")
    shown.add_column("policy", overflow="fold")
    shown.add_column("score", justify="right")
    for row in rows:
        shown.add_row(str(row["rank"]), _plain(row["policy"]), f"{row['score']:.6g}")
    _console().print(shown)


@app.command()
def backends(
    results: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RESULTS.csv]", help="With --size: say also who can solve this problem.", show_default=False
        ),
    ] = None,
    size: Annotated[int | None, typer.Option(help="How many test cases to choose from RESULTS.csv.")] = None,
    tail_fraction: TailFraction = None,
    k: KWorst = None,
    n: NDrawn = None,
    measure: MeasureName = None,
    loss: LossName = "absolute",
    betas: Betas = None,
    targets: Targets = None,
    probabilities: Probabilities = None,
    as_json: AsJson = False,
) -> None:
    """List the solvers: what is installed, what each handles and what it proves."""
    from rich.table import Table

    from rposst_opt.backends import BACKENDS, choose_backend, missing_packages
    from rposst_opt.errors import ProblemError
    from rposst_opt.io import as_json as to_json

    if (results is None) != (size is None):
        raise ProblemError("RESULTS.csv and --size go together: give both, or neither.")
    problem = None
    if results is not None and size is not None:
        chosen_measure = _measure(tail_fraction, k, n, measure)
        problem, _ = _read_problem(
            results=results,
            size=size,
            measure=chosen_measure,
            loss=loss,
            betas=betas,
            targets=targets,
            probabilities=probabilities,
            require=[],
            forbid=[],
            rescaled=True,
        )
    rows: list[dict[str, Any]] = []
    entry_words = {}
    for name, entry in BACKENDS.items():
        capabilities = entry.capabilities
        entry_words[name] = _handles_words(capabilities)
        missing = missing_packages(capabilities)
        reason = None if problem is None else capabilities.why_not(problem)
        rows.append(
            {
                "name": name,
                "installed": not missing,
                "missing": missing,
                "method": capabilities.method,
                "handles": sorted(need.value for need in capabilities.handles),
                "finds_optimum": capabilities.finds_optimum,
                "proves": capabilities.proves,
                "tolerance": capabilities.tolerance,
                **({} if problem is None else {"solves_this": reason is None, "why_not": reason}),
            }
        )
    auto = None if problem is None else choose_backend(problem)
    if as_json:
        print(to_json({"format": "rposst-backends/1", "auto": auto, "backends": rows}))
        return
    shown = Table(title="Backends")
    shown.add_column("name", no_wrap=True)
    for heading in ("installed", "method", "handles", "proves", "tolerance"):
        shown.add_column(heading, overflow="fold")
    if problem is not None:
        shown.add_column("this problem")
    for row in rows:
        cells = [
            row["name"],
            "yes" if row["installed"] else f"no: needs {', '.join(row['missing'])}",
            row["method"],
            entry_words[row["name"]],
            row["proves"],
            f"{row['tolerance']:g}",
        ]
        if problem is not None:
            cells.append(
                ("yes, auto's choice" if row["name"] == auto else "yes") if row["solves_this"] else row["why_not"]
            )
        shown.add_row(*(_plain(cell) for cell in cells))
    _console().print(shown)


def _handles_words(capabilities: "Capabilities") -> str:
    from rposst_opt.problem import Need

    loss = "any loss" if Need.CURVED_LOSS in capabilities.handles else "losses of affine pieces"
    measure = "any measure" if Need.ANY_MEASURE in capabilities.handles else "mixtures of CVaRs"
    return f"{loss}, {measure}"


def _measure(tail_fraction: float | None, k: int | None, n: int | None, name: NamedMeasure | None) -> "Measure":
    """The one measure that the options name."""
    from rposst_opt.errors import ProblemError
    from rposst_opt.measures import CVaR, KOfN, Mean, WorstCase

    if (k is None) != (n is None):
        raise ProblemError("--k and --n go together: give both, or neither.")
    if sum([tail_fraction is not None, k is not None, name is not None]) > 1:
        raise ProblemError("--tail-fraction, --k with --n, and --measure exclude each other: give one of them.")
    if k is not None and n is not None:
        return KOfN(k, n)
    if name is not None:
        return Mean() if name is NamedMeasure.MEAN else WorstCase()
    return CVaR(0.01 if tail_fraction is None else tail_fraction)


def _read_problem(
    *,
    results: Path,
    size: int,
    measure: "Measure",
    loss: str,
    betas: str | None,
    targets: Path | None,
    probabilities: Path | None,
    require: list[str],
    forbid: list[str],
    rescaled: bool,
) -> "tuple[Problem, Scale]":
    """The problem that files and options state, and the units of the results file."""
    import numpy as np

    from rposst_opt.errors import ProblemError
    from rposst_opt.io import read_probabilities, read_results, read_targets
    from rposst_opt.losses import loss_from_label
    from rposst_opt.problem import Problem
    from rposst_opt.results import Scale, rescale, softmax_targets

    if betas is not None and targets is not None:
        raise ProblemError("--betas and --targets exclude each other: give one of them.")
    chosen_loss = loss_from_label(loss)
    sharpness = None if betas is None else _numbers("--betas", betas)
    table = read_results(results)
    if rescaled:
        values, scale = rescale(table)
    else:
        values, scale = table.to_numpy(), Scale(0.0, 1.0)
    target_names, rows = ["uniform"], np.full((1, len(table)), 1 / len(table))
    if sharpness is not None:
        target_names, rows = [f"{beta:g}" for beta in sharpness], softmax_targets(values, sharpness)
    elif targets is not None:
        frame = read_targets(targets, list(table.index))
        target_names, rows = list(frame.index), frame.to_numpy()
    problem = Problem(
        results=values,
        size=size,
        measure=measure,
        loss=chosen_loss,
        targets=rows,
        probabilities=(
            None if probabilities is None else read_probabilities(probabilities, list(table.columns), target_names)
        ),
        required_cases=require,
        forbidden_cases=forbid,
        case_names=list(table.index),
        policy_names=list(table.columns),
    )
    return problem, scale


def _numbers(option: str, text: str) -> list[float]:
    from rposst_opt.errors import ProblemError

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
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>5.1f} % of {task.fields[sets]} sets"),
        TimeRemainingColumn(),
        TextColumn("best {task.fields[objective]:.6g}"),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        # The share done, because the number of sets may be too large for a float.
        task = bar.add_task("", total=1.0, visible=False, sets="", objective=float("inf"))

        def show(progress: "Progress") -> None:
            bar.update(
                task,
                completed=progress.done / progress.total,
                visible=True,
                sets=f"{progress.total:,}" if progress.total < 10**15 else "very many",
                objective=progress.objective,
            )

        yield show


def _show_solution(out: "Console", problem: "Problem", solution: "Solution", scale: "Scale") -> None:
    """The chosen test and what is known about it, for people."""
    from rich.table import Table

    if solution.test is None:
        out.print(f"No test was found before {solution.limit or 'the run ended'}.", markup=False)
        return
    chosen = Table(title=f"{len(solution.test.cases)} of {problem.n_cases} test cases")
    chosen.add_column("test case", overflow="fold")
    chosen.add_column("weight", justify="right")
    for name, weight in zip(solution.test.case_names, solution.test.weights.tolist(), strict=True):
        chosen.add_row(_plain(name), f"{weight:.4f}")
    out.print(chosen)

    facts = Table(show_header=False, box=None, pad_edge=False)
    facts.add_column()
    facts.add_column()
    for label, value in _facts(problem, solution, scale):
        facts.add_row(_plain(label), _plain(value))
    out.print(facts)


def _facts(problem: "Problem", solution: "Solution", scale: "Scale") -> list[tuple[str, str]]:
    from rposst_opt.losses import AbsoluteError
    from rposst_opt.measures import Mean, WorstCase
    from rposst_opt.solution import Status

    assert solution.test is not None
    errors = replace(problem, loss=AbsoluteError())
    robust = scale.in_file_units(errors.objective(solution.test))
    mean = scale.in_file_units(replace(errors, measure=Mean()).objective(solution.test))
    worst = scale.in_file_units(replace(errors, measure=WorstCase()).objective(solution.test))
    status = (
        "optimal (proved)" if solution.status is Status.OPTIMAL else "feasible: a better test may exist, within the gap"
    )
    facts = [
        ("objective", f"{solution.objective:.6g}   ({_measure_words(problem.measure)}, {problem.loss.label} loss)"),
        ("lower bound", f"{solution.lower_bound:.6g}"),
        ("gap", f"{solution.gap:.3g}"),
        ("status", status),
        (
            "score error",
            f"{robust:.6g} by that measure, {mean:.6g} on average, {worst:.6g} at worst, in the file's units",
        ),
        ("backend", f"{solution.backend}, {solution.seconds:.2f} s, {solution.stats.tuples:,} sets of cases"),
    ]
    if solution.limit is not None:
        share = solution.stats.tuples / problem.n_tuples
        facts.append(("ended by", f"{solution.limit.value}, after {share:.3%} of the sets of cases"))
    return facts


def _measure_words(measure: "Measure") -> str:
    from rposst_opt.measures import CVaR, KOfN, Mean, WorstCase

    if isinstance(measure, CVaR):
        return f"mean of the worst {measure.tail_fraction:.4g} of scenarios"
    if isinstance(measure, KOfN):
        return f"mean of the {measure.k} worst of {measure.n} scenarios drawn"
    if isinstance(measure, Mean):
        return "mean of all scenarios"
    if isinstance(measure, WorstCase):
        return "worst scenario"
    return measure.name


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def _plain(value: object) -> Any:
    """Text that a terminal shows as it is: no markup, no control characters."""
    from rich.text import Text

    text = str(value)
    printable = all(character.isprintable() or character == "\n" for character in text)
    return Text(text if printable else repr(text)[1:-1])


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
