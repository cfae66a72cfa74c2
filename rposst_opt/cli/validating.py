"""Truth on policies that nobody has seen: ``rposst validate``."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import asdict, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rposst_opt.cli.commands import OUTPUT, TRIALS
from rposst_opt.cli.options import ProblemOptions, Stated, purpose_of, read_problem, table_digest, takes_problem
from rposst_opt.cli.parsing import listed
from rposst_opt.cli.reading import ReadingOptions
from rposst_opt.cli.running import Jobs, Scheduler
from rposst_opt.cli.terminal import console, notice, plain, progress_of_experiments
from rposst_opt.cli.writing import AsJson, check_run_folder, wrote
from rposst_opt.errors import ProblemError

if TYPE_CHECKING:
    from rich.console import Console

    from rposst_opt.unseen.procedures import Purpose
    from rposst_opt.unseen.recommendation import Recommendation
    from rposst_opt.unseen.validation import Validation

FIGURE = "errors.png"
SHOWN = 6  # ways of each kind and size, the best ones

Selections = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Ways to choose cases: rposst, rposst-offset, greedy-ridge, kmeans, stratified, random, mrmr; the first "
        "five unless given.",
        show_default=False,
        rich_help_panel=TRIALS,
    ),
]
Estimators = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Ways to estimate the full score: weights, ridge, residual, kernel, aipw; all unless given.",
        show_default=False,
        rich_help_panel=TRIALS,
    ),
]
Groups = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.csv",
        help="Policies (first column) and their groups (second), such as families or years: each is held out once.",
        show_default=False,
        rich_help_panel=TRIALS,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        help="Hold policies out in so many random folds; one by one unless given, beyond 60 policies in five folds.",
        show_default=False,
        rich_help_panel=TRIALS,
    ),
]
Replicas = Annotated[
    int, typer.Option(min=1, help="How often policies are parted into random folds.", rich_help_panel=TRIALS)
]
Seed = Annotated[int, typer.Option(help="For folds and for random cases.", rich_help_panel=TRIALS)]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Where tables are written, and what is done is kept: run again, it goes on where it stopped.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]


@takes_problem(several_sizes=True)
def validate(
    options: ProblemOptions,
    sizes: list[int],
    selections: Selections = None,
    estimators: Estimators = None,
    groups: Groups = None,
    folds: Folds = None,
    replicas: Replicas = 3,
    seed: Seed = 2023,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    out: Folder = None,
    as_json: AsJson = False,
) -> None:
    """How far off are tests on policies that they were not tuned on? Hold some out, and make tests without them."""
    from rposst_opt.estimators import ESTIMATORS
    from rposst_opt.files.tables import read_groups
    from rposst_opt.solvers.cluster import check_cluster
    from rposst_opt.unseen import validation as unseen
    from rposst_opt.unseen.recommendation import recommend
    from rposst_opt.unseen.splits import Kind

    if scheduler is not None:
        check_cluster()
    stated, purpose = _read_purpose(options)
    table = stated.table
    trials: dict[str, Any] = {
        "selections": _able(purpose) if selections is None else tuple(listed(selections)),
        "estimators": ESTIMATORS if estimators is None else tuple(listed(estimators)),
        "folds": folds,
        "replicas": replicas,
        "seed": seed,
    }
    asked = _asked(options, stated, groups) | {"size": sizes} | trials
    if out is not None:
        _check_folder(out, stated, asked, [*options.files, *([] if groups is None else [groups])])
    with progress_of_experiments() as tell:
        found = unseen.validate(
            table,
            sizes,
            purpose=purpose,
            groups=None if groups is None else read_groups(groups, list(table.columns)),
            **trials,
            jobs=jobs or os.cpu_count() or 1,
            scheduler=scheduler,
            folder=None if out is None else out / "done",
            tell=tell,
        )
    kinds = [kind for kind in Kind if kind.value in set(found.summary["kind"])]
    advice = [recommend(found, kind) for kind in kinds]
    if out is not None:
        _write(out, found, table_digest(table), asked)
        wrote(out, "tables of all trials" + (f", and the figure {FIGURE}." if find_spec("matplotlib") else "."))
    if as_json:
        _print_json(found, advice)
        return
    _show(console(), found, advice)


def _read_purpose(options: ProblemOptions) -> "tuple[Stated, Purpose]":
    """The problem with the results as they are in the file, and what tests are for."""
    if options.probabilities is not None:
        raise ProblemError("--probabilities of held-out policies are not known: `rposst validate` takes none.")
    if options.regularise == "auto":
        raise ProblemError("--regularise auto would look at held-out policies: `rposst validate` takes numbers only.")
    stated = read_problem(options)
    return stated, purpose_of(options, stated)


def _asked(options: ProblemOptions, stated: Stated, groups: Path | None) -> dict[str, Any]:
    """What the options ask of tests, apart from the table; of a file, what is in it, whatever its name."""
    from rposst_opt.values.digests import numbers_digest

    own = [field for field in fields(options) if field.name not in {each.name for each in fields(ReadingOptions)}]
    given = {field.name: getattr(options, field.name) for field in own if getattr(options, field.name) != field.default}
    asked = {name: _digest(value) if isinstance(value, Path) else value for name, value in given.items()}
    noise = {} if stated.noise is None else {"noise": numbers_digest(stated.noise)}
    return asked | noise | ({} if groups is None else {"groups": _digest(groups)})


def _digest(path: Path) -> str:
    from rposst_opt.text_files import read_bytes

    return hashlib.sha256(read_bytes(path)).hexdigest()


def _check_folder(out: Path, stated: Stated, asked: dict[str, Any], inputs: Sequence[Path]) -> None:
    """Refuse a folder with tables of another run."""
    from rposst_opt.unseen.validation_files import SOURCE_FORMAT, TABLES, asked_of

    check_run_folder(out, [*TABLES, FIGURE], SOURCE_FORMAT, asked_of(table_digest(stated.table), asked), inputs)


def _able(purpose: "Purpose") -> tuple[str, ...]:
    """The selections that are tried unless others are named, without those that cannot be; these are told."""
    from rposst_opt.backends import entry_of, how_to_install
    from rposst_opt.problem import Need
    from rposst_opt.unseen.procedures import SELECTIONS
    from rposst_opt.unseen.validation import SELECTED

    asked = {Need.CHOICE_RULES: purpose.rules.choose, Need.WEIGHT_LIMITS: purpose.rules.limit_weights}
    able = []
    for name in SELECTED:
        capabilities = entry_of(SELECTIONS[name].backend).capabilities
        unmet = [need.value for need, is_asked in asked.items() if is_asked and need not in capabilities.handles]
        reason = how_to_install(capabilities) or (f"it does not handle {' or '.join(unmet)}." if unmet else None)
        if reason is None:
            able.append(name)
        else:
            notice(f"{name} was left out: {reason}")
    if not able:
        raise ProblemError("no selection that `validate` knows handles limits to weights: leave them out.")
    return tuple(able)


def _write(folder: Path, found: "Validation", table_sha256: str, asked: dict[str, Any]) -> None:
    """Tidy tables, and a figure where matplotlib is installed."""
    from rposst_opt.files.writing import write_with
    from rposst_opt.unseen.validation_files import write_validation

    (folder / FIGURE).unlink(missing_ok=True)  # one of an earlier run would not go with the tables
    write_validation(folder, found, table_sha256, asked)
    if find_spec("matplotlib") is None:
        notice("No figure was drawn: pip install 'rposst-opt[figures]'")
        return
    from rposst_opt.reports import plots

    write_with(folder / FIGURE, lambda path: plots.validation(found.summary).savefig(path, dpi=150))


def _print_json(found: "Validation", advice: "list[Recommendation]") -> None:
    from rposst_opt.files.records import as_json, finite

    rows = [{key: finite(value) for key, value in row.items()} for row in found.summary.to_dict("records")]
    advised = [{key: finite(value) for key, value in asdict(each).items()} for each in advice]
    for record, each in zip(advised, advice, strict=True):
        record["sentence"] = each.sentence
    print(as_json({"format": "rposst-validation/1", "summary": rows, "recommendations": advised}))


LEGEND = (
    "Errors of held-out policies' scores, in the units of the file: their mean, what nine of ten stay below, the "
    "worst. Tuned: the mean error of the test's own weights on the policies that it was tuned on. τ: Kendall's, "
    "between estimates and full scores. Best: how often the best of ten policies is found. The tables have intervals."
)


def _show(out: "Console", found: "Validation", advice: "list[Recommendation]") -> None:
    """The best ways of each kind and size, then what follows."""
    from rich.table import Table

    from rposst_opt.reports.wording import HELD_OUT_HEADINGS, cases_words

    for place, ways in found.summary.groupby(["kind", "size"], sort=False):
        kind, size = cast("tuple[str, int]", place)
        shown = Table(title=f"{HELD_OUT_HEADINGS[kind]}: {cases_words(size)}")
        shown.add_column("cases by", no_wrap=True)
        shown.add_column("estimate by", no_wrap=True)
        for heading in ("mean", "90 %", "worst", "tuned", "τ", "best"):
            shown.add_column(heading, justify="right", no_wrap=True)
        for way in ways.sort_values("mean_error", kind="stable").head(SHOWN).to_dict("records"):
            errors = [f"{way[name]:.3g}" for name in ("mean_error", "p90_error", "worst_error", "tuned_mean")]
            shares = [f"{way[name]:.2f}" for name in ("kendall_tau", "picks_best")]
            shown.add_row(way["selection"], way["estimator"], *errors, *shares)
        out.print(shown)
    out.print(LEGEND, markup=False)
    for each in advice:
        out.print(plain(each.sentence))
