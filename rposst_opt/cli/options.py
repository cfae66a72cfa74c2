"""Which problem do the options state? The options that commands share, and the problem that is read from the files."""

import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_type_hints

import typer

from rposst_opt.cli.assembling import RuleOptions, rules_of
from rposst_opt.cli.commands import PROBLEM, ROBUSTNESS, RULES, with_parameters
from rposst_opt.cli.parsing import as_number, numbers, numbers_and_ranges
from rposst_opt.cli.reading import ReadingOptions, read_table
from rposst_opt.cli.terminal import notice
from rposst_opt.cli.writing import check_output as check_output
from rposst_opt.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd

    from rposst_opt.arrays import FloatArray
    from rposst_opt.measures import Measure
    from rposst_opt.problem import Problem
    from rposst_opt.results import Scale
    from rposst_opt.unseen.procedures import Purpose


REPETITIONS = "repetitions"
ANY_BUDGET = 1e300  # that pays for everything


class NamedMeasure(StrEnum):
    """The measures that need no number."""

    MEAN = "mean"
    WORST = "worst"


def _about(panel: str, *names: str, metavar: str | None = None, text: str, shows_default: bool = False) -> Any:
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel, show_default=shows_default)


Size = Annotated[
    int | None,
    _about(PROBLEM, text="How many test cases to choose, besides the required ones; with --budget it may be left out."),
]
Sizes = Annotated[
    str,
    _about(
        PROBLEM,
        "--size",
        metavar="1,2,5-8",
        text="How many test cases to choose, besides the required ones: numbers and ranges, with commas between them.",
    ),
]
LossName = Annotated[
    str,
    _about(
        PROBLEM,
        "--loss",
        metavar="NAME[:NUMBER]",
        text="absolute, squared, huber:THRESHOLD, pinball:QUANTILE or epsilon-insensitive:TOLERANCE.",
        shows_default=True,
    ),
]
Betas = Annotated[
    str | None,
    _about(
        PROBLEM,
        metavar="0,1,2,4",
        text="Targets that stress cases with low results the more, the larger beta; 0 is the uniform one, which is the "
        "only one unless given.",
    ),
]
Targets = Annotated[
    Path | None,
    _about(PROBLEM, metavar="FILE.csv", text="Target weights of all test cases; a row or a column per target."),
]
Probabilities = Annotated[
    Path | None,
    _about(
        PROBLEM,
        metavar="FILE.csv",
        text="Probability of each policy (row) and target (column); all alike unless given.",
    ),
]
Rescale = Annotated[
    bool, _about(PROBLEM, text="Map all results to [0, 1] first, as the paper does.", shows_default=True)
]
Offset = Annotated[
    bool, _about(PROBLEM, "--offset", text="Let scores have an offset, with weights that sum to one at most.")
]
TailFraction = Annotated[
    float | None,
    _about(ROBUSTNESS, text="Robust to this worst fraction of scenarios (CVaR); 0.01 unless another measure is named."),
]
KWorst = Annotated[
    int | None, _about(ROBUSTNESS, "--k", text="With --n: the mean of the k worst of n scenarios, exactly.")
]
NDrawn = Annotated[int | None, _about(ROBUSTNESS, "--n", text="With --k: how many scenarios k-of-N draws.")]
MeasureName = Annotated[
    NamedMeasure | None,
    _about(ROBUSTNESS, "--measure", text="Over all scenarios the mean, or the worst, instead of a worst fraction."),
]
Noise = Annotated[
    str | None,
    _about(
        ROBUSTNESS,
        metavar="NUMBER|FILE",
        text="Standard error of every case's result, in the file's units: a number, a file with one per test case, or "
        "`repetitions` for those of a long table. The noise of a score is then part of the objective.",
    ),
]
NoiseWeight = Annotated[
    float | None,
    _about(
        ROBUSTNESS,
        text="With --noise: what a unit of a score's standard error costs; 0.798, its mean absolute value, unless "
        "given.",
    ),
]
Regularise = Annotated[
    str | None,
    _about(
        ROBUSTNESS,
        metavar="NUMBER|auto",
        text="For policies not seen yet: count what is peculiar to a policy as noise, by this much; `auto` tries "
        "several strengths on policies that are held out.",
    ),
]
Require = Annotated[
    list[str] | None, _about(RULES, metavar="CASE", text="A test case that the test must have; repeat for more.")
]
Forbid = Annotated[
    list[str] | None, _about(RULES, metavar="CASE", text="A test case that the test must not have; repeat for more.")
]


@dataclass(frozen=True, kw_only=True)
class ProblemOptions(RuleOptions):
    """What states a problem on the command line; the fields are the options that several commands share."""

    size: Size = None
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
    offset: Offset = False
    noise: Noise = None
    noise_weight: NoiseWeight = None
    regularise: Regularise = None

    @property
    def files(self) -> list[Path]:
        """What is read to state the problem."""
        is_file = self.noise not in (None, REPETITIONS) and as_number(str(self.noise)) is None
        noise = Path(str(self.noise)) if is_file else None
        read = (self.results, self.targets, self.probabilities, self.cases, noise)
        return [path for path in read if path is not None]


def takes_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, whose first parameter is `options`, the fields of `ReadingOptions` as its own options."""
    shared = _parameters_of(ReadingOptions)
    own = list(signature(command, eval_str=True).parameters.values())[1:]

    @wraps(command)
    def wrapper(**given: Any) -> None:
        stated = {option.name: given.pop(option.name) for option in shared}
        command(ReadingOptions(**stated), **given)

    return with_parameters(wrapper, [*own, *shared])


def takes_problem(
    *, optional: bool = False, several_sizes: bool = False, size_may_be_open: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, whose first parameter is `options`, the fields of `ProblemOptions` as its own options.

    With `optional`, the results and the size may be left out, and `options` is then None. With `several_sizes` the size
    is a list, which the command's `sizes` is given; the options have the largest. With `size_may_be_open` there need be
    neither a size nor a budget: whatever costs say may be chosen.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        shared = _parameters_of(ProblemOptions, optional=optional, several_sizes=several_sizes)
        own = list(signature(command, eval_str=True).parameters.values())[2 if several_sizes else 1 :]

        @wraps(command)
        def wrapper(**given: Any) -> None:
            stated = {option.name: given.pop(option.name) for option in shared}
            if several_sizes and stated["size"] is None:
                raise ProblemError("--size says how many test cases to choose: give a number, or several.")
            if several_sizes:
                given["sizes"] = sizes = numbers_and_ranges("--size", stated["size"])
                stated["size"] = max(sizes)
            if size_may_be_open and stated["size"] is None and stated["budget"] is None:
                stated["budget"] = ANY_BUDGET
            if stated["results"] is None or (stated["size"] is None and stated["budget"] is None):
                _refuse_half_a_problem(stated, shared)
                command(None, **given)
            else:
                command(ProblemOptions(**stated), **given)

        return with_parameters(wrapper, [*shared, *own])

    return decorate


def _parameters_of(
    options: type[ReadingOptions], *, optional: bool = False, several_sizes: bool = False
) -> list[Parameter]:
    """The fields of options as parameters of a command; if `optional`, none of them must be given."""
    hints = get_type_hints(options, include_extras=True) | ({"size": Sizes} if several_sizes else {})
    shared = []
    for option in fields(options):
        default, annotation = option.default, hints[option.name]
        if default is MISSING and optional:
            kind, *extras = get_args(annotation)
            default, annotation = None, Annotated[kind | None, *extras]
        elif default is MISSING:
            default = Parameter.empty
        shared.append(Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return shared


def _refuse_half_a_problem(stated: dict[str, Any], shared: list[Parameter]) -> None:
    """Without results and size, no option may say more about a problem; and some commands need one."""
    if stated["results"] is not None and stated["size"] is None:
        raise ProblemError("--size says how many test cases to choose: give it, or --budget with --cases.")
    if (stated["results"] is None) != (stated["size"] is None):
        raise ProblemError("RESULTS.csv and --size go together: give both, or neither.")
    idle = [option.name for option in shared if stated[option.name] != option.default]
    if idle:
        raise ProblemError(f"--{idle[0].replace('_', '-')} states a problem: give RESULTS.csv and --size too.")


class Stated(NamedTuple):
    """The problem that files and options state, the units of the results file, how targets are called, the file.

    Where results are noisy, also their standard errors in the units of the file; and the strength of regularisation.
    """

    problem: "Problem"
    scale: "Scale"
    target_names: list[str]
    table: "pd.DataFrame"
    noise: "FloatArray | None" = None
    strength: float | None = None


def read_problem(options: ProblemOptions) -> Stated:
    """The problem that the options state, from the files that they name."""
    from rposst_opt.files.tables import read_probabilities, read_targets
    from rposst_opt.losses import loss_from_label
    from rposst_opt.problem import Problem
    from rposst_opt.results import Scale, rescale, softmax_targets

    if options.betas is not None and options.targets is not None:
        raise ProblemError("--betas and --targets exclude each other: give one of them.")
    measure, loss = _measure(options), loss_from_label(options.loss)
    sharpness = None if options.betas is None else numbers("--betas", options.betas, float)
    read = read_table(options)
    table = read.results
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
        offset=options.offset,
        **rules_of(options, list(table.index)),
    )
    if sharpness is not None:
        target_names = [f"beta {name}" for name in target_names]
    return _with_noise(options, Stated(problem, scale, target_names, table), read.standard_errors)


def _with_noise(options: ProblemOptions, stated: Stated, of_repetitions: "pd.Series[float] | None") -> Stated:
    """The same problem with noise, if the options ask for it."""
    import numpy as np

    from rposst_opt.files.tables import read_noise
    from rposst_opt.problem import NOISE_WEIGHT
    from rposst_opt.unseen.procedures import regularisation

    if options.noise is not None and options.regularise is not None:
        raise ProblemError("--noise and --regularise exclude each other: give one of them.")
    if options.noise_weight is not None and options.noise is None:
        raise ProblemError("--noise-weight goes with --noise: give both.")
    problem = stated.problem
    if options.regularise is not None:
        strength = _strength(options, stated)
        return stated._replace(problem=replace(problem, **regularisation(problem.results, strength)), strength=strength)
    if options.noise is None:
        return stated
    number = as_number(options.noise)
    if number is not None and not 0 <= number < math.inf:
        raise ProblemError(f"--noise must be a standard error, finite and not negative, got {options.noise}.")
    if options.noise == REPETITIONS:
        errors = _errors_of_repetitions(of_repetitions)
    elif number is not None:
        errors = np.full(problem.n_cases, number)
    else:
        errors = read_noise(Path(options.noise), problem.case_names)
    weight = NOISE_WEIGHT if options.noise_weight is None else options.noise_weight
    scaled = stated.scale.error_from_file_units(errors) if options.rescale else errors
    return stated._replace(problem=replace(problem, noise=scaled, noise_weight=weight), noise=errors)


def _errors_of_repetitions(errors: "pd.Series[float] | None") -> "FloatArray":
    """The standard errors that a table's repetitions tell, which every case must have."""
    import numpy as np

    if errors is None:
        raise ProblemError(
            "--noise repetitions needs a long table with several values of a test case and a policy: give a number or "
            "a file instead."
        )
    unknown = errors.index[errors.isna()]
    if len(unknown):
        raise ProblemError(
            f"--noise repetitions needs two values of some policy for every test case, and {unknown[0]!r} has none "
            f"({len(unknown)} of {len(errors)} have none): give a number or a file."
        )
    return np.array(errors, dtype=np.float64)


def _strength(options: ProblemOptions, stated: Stated) -> float:
    """How strongly to regularise: as much as was said, or as held-out policies say."""
    from rposst_opt.unseen.regularising import choose_strength
    from rposst_opt.unseen.splits import FEWEST_TUNED_ON

    strength = as_number(str(options.regularise))
    if strength is not None and 0 <= strength < math.inf:
        return strength
    if options.regularise != "auto":
        raise ProblemError(f"--regularise must be a number from 0 on or `auto`, got {options.regularise!r}.")
    if options.probabilities is not None:
        raise ProblemError("--regularise auto holds policies out, and takes no --probabilities: give a number.")
    if stated.problem.n_policies <= FEWEST_TUNED_ON:
        raise ProblemError(f"--regularise auto needs more than {FEWEST_TUNED_ON} policies: give a number.")
    notice("Trying strengths of regularisation on policies that are held out...")
    choice = choose_strength(stated.table.to_numpy(), stated.problem.size, purpose_of(options, stated))
    notice(choice.sentence)
    return choice.strength


def purpose_of(options: ProblemOptions, stated: Stated) -> "Purpose":
    """What a test is for, so that it can be made again without some policies."""
    from rposst_opt.unseen.procedures import Purpose

    problem = stated.problem
    return Purpose(
        measure=problem.measure,
        loss=problem.loss,
        betas=None if options.betas is None else tuple(numbers("--betas", options.betas, float)),
        targets=None if options.targets is None else problem.targets,
        required_cases=problem.required_cases,
        forbidden_cases=problem.forbidden_cases,
        offset=problem.offset,
        is_rescaled=options.rescale,
        case_names=problem.case_names,
        noise=stated.noise,
        noise_weight=problem.noise_weight,
        regularise=stated.strength,
        rules=problem.rules,
    )


def table_digest(table: "pd.DataFrame") -> str:
    """SHA-256 of a table as it was read, before it was rescaled."""
    from rposst_opt.values.digests import results_digest

    return results_digest(list(table.index), list(table.columns), table.to_numpy())


def source_of(options: ProblemOptions, stated: Stated, given: dict[str, Any]) -> dict[str, Any]:
    """Where a problem comes from, for its solution's file: the table's digest, the targets, the options."""
    from rposst_opt.solution import targets_record

    said = {option.name: (getattr(options, option.name), option.default) for option in fields(options)}
    asked = {name: value for name, (value, default) in said.items() if value != default}
    betas = {} if options.betas is None else {"betas": numbers("--betas", options.betas, float)}
    return {
        "table_sha256": table_digest(stated.table),
        "targets": {**targets_record(stated.problem), "names": stated.target_names, **betas},
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in (asked | given).items()},
    }


def _measure(options: ProblemOptions) -> "Measure":
    """The one measure that the options name."""
    from rposst_opt.measures import MEASURES, CVaR, KOfN

    if (options.k is None) != (options.n is None):
        raise ProblemError("--k and --n go together: give both, or neither.")
    if sum(option is not None for option in (options.tail_fraction, options.k, options.measure)) > 1:
        raise ProblemError("--tail-fraction, --k with --n, and --measure exclude each other: give one of them.")
    if options.k is not None and options.n is not None:
        return KOfN(options.k, options.n)
    if options.measure is not None:
        return MEASURES[options.measure]()
    return CVaR(0.01 if options.tail_fraction is None else options.tail_fraction)
