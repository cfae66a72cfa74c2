"""The command line's part for experiments: ``rposst domain`` and ``rposst reproduce``."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rposst_opt.cli.commands import OUTPUT, Command, Group
from rposst_opt.cli.parsing import Number, listed, numbers
from rposst_opt.cli.running import Jobs, Scheduler
from rposst_opt.cli.terminal import console, notice, plain, progress_of_experiments
from rposst_opt.cli.writing import can_overwrite, check_output, check_run_folder, wrote
from rposst_opt.errors import BackendUnavailable, ProblemError, unknown

if TYPE_CHECKING:
    import pandas as pd

    from rposst_opt.experiments.reproductions import Request

Part = TypeVar("Part")
WRITTEN = (".csv", ".gz", ".png", ".svg")  # how the names of a reproduction's tables and figures end

domain = typer.Typer(
    help="Write a domain's result matrix to a file.",
    cls=Group,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[
    Path, typer.Option(metavar="FILE.csv", help="The file to write.", show_default=False, rich_help_panel=OUTPUT)
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same matrix.")]
Count = Annotated[int, typer.Option("--n", help="How many leaders, and how many followers.")]
Races = Annotated[int, typer.Option(help="Races of each pair, half of them with sides swapped.")]


@domain.command("racing-arrows-follower", cls=Command)
@can_overwrite
def racing_arrows_follower(out: Out, n: Count = 50, seed: Seed = 2023) -> None:
    """Racing Arrows: the test cases are followers, the policies leaders; what a leader gets, 0 to 1."""
    _write_arrows(out, n, seed, "followers")


@domain.command("racing-arrows-leader", cls=Command)
@can_overwrite
def racing_arrows_leader(out: Out, n: Count = 50, seed: Seed = 2023) -> None:
    """Racing Arrows: the test cases are leaders, the policies followers; what a follower gets, 0 to 1."""
    _write_arrows(out, n, seed, "leaders")


def _write_arrows(out: Path, n: int, seed: int, test_cases: str) -> None:
    import numpy as np

    from rposst_opt.experiments.domains.arrows import racing_arrows

    check_output(out)
    _write(out, racing_arrows(n, np.random.default_rng(seed), test_cases=test_cases))  # type: ignore[arg-type]


@domain.command("poker-crosstable", cls=Command)
@can_overwrite
def poker_crosstable(
    table: Annotated[Path, typer.Argument(metavar="TABLE.csv", help="Duplicate scores, the column agent's.")], out: Out
) -> None:
    """A competition's table of duplicate scores, checked; pairs that did not play are named and stand as 0."""
    from rposst_opt.experiments.domains.poker import crosstable
    from rposst_opt.files.tables import read_crosstable

    check_output(out, [table])
    checked = crosstable(read_crosstable(table))
    _write(out, checked.results)
    _tell_unplayed(checked.unplayed)


@domain.command("poker-logs", cls=Command)
@can_overwrite
def poker_logs(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Match logs of the ACPC dealer; subfolders count.")],
    out: Out,
    big_blind: Annotated[
        float | None, typer.Option(help="In chips; from the logs' game if not given.", show_default=False)
    ] = None,
) -> None:
    """Match logs of a poker competition, as duplicate scores in milli-big-blinds per game."""
    from rposst_opt.experiments.domains.poker import duplicate_scores
    from rposst_opt.files.tables import match_logs

    check_output(out)
    scores = duplicate_scores(match_logs(folder), big_blind=big_blind)
    _write(out, scores.results)
    _tell_unplayed(scores.unplayed)


@domain.command("checkpoints", cls=Command)
@can_overwrite
def checkpoints(
    out: Out,
    matches: Annotated[
        int | None,
        typer.Option(help="Play so many matches a cell, half in each seat, instead of computing expected values."),
    ] = None,
    seed: Seed = 2023,
) -> None:
    """Leduc poker: 43 checkpoints of one training run and 3 scripted agents; chips per game (needs OpenSpiel)."""
    import numpy as np

    from rposst_opt.experiments.domains.leduc import checkpoints as make

    check_output(out)
    _write(out, make(matches=matches, rng=np.random.default_rng(seed)))


@domain.command("passing-race", cls=Command)
@can_overwrite
def passing_race(
    out: Out,
    races: Races = 20,
    collisions: Annotated[bool, typer.Option("--collisions", help="Both get -1 in a race with a collision.")] = False,
    seed: Seed = 2023,
) -> None:
    """A small one-on-one race with overtaking: win rates, or results where collisions cost both."""
    import numpy as np

    from rposst_opt.experiments.domains.passing import passing_race as make

    check_output(out)
    _write(out, make(races=races, rng=np.random.default_rng(seed), collision_penalty=collisions))


@domain.command("axelrod", cls=Command)
@can_overwrite
def axelrod(
    out: Out,
    turns: Annotated[int, typer.Option(help="Turns of each match.")] = 50,
    seed: Seed = 2023,
) -> None:
    """The iterated prisoner's dilemma: strategies of the Axelrod library, mean score per turn (needs axelrod)."""
    from rposst_opt.experiments.domains.dilemma import axelrod_tournament

    check_output(out)
    _write(out, axelrod_tournament(turns=turns, seed=seed))


def _write(out: Path, table: "pd.DataFrame") -> None:
    from rposst_opt.files.writing import write_table

    write_table(out, table)
    values = table.to_numpy(dtype=float)
    rows, columns = values.shape
    wrote(out, f"{rows} test cases, {columns} policies, results from {values.min():.6g} to {values.max():.6g}.")


def _tell_unplayed(unplayed: tuple[tuple[str, str], ...]) -> None:
    if unplayed:
        pairs = "; ".join(f"{first} and {second}" for first, second in unplayed)
        notice(f"Did not play each other, and stand as 0: {pairs}.")


Name = Annotated[str | None, typer.Argument(metavar="NAME", help="What to reproduce, or `all`; see --list.")]
ListNames = Annotated[bool, typer.Option("--list", help="List what can be reproduced, and what each needs.")]
Folder = Annotated[Path, typer.Option(metavar="FOLDER", help="Where tables and figures go.", rich_help_panel=OUTPUT)]
Tables = Annotated[
    list[Path] | None,
    typer.Option(metavar="TABLE.csv", help="A poker table of duplicate scores; repeat for more.", show_default=False),
]
Quick = Annotated[bool, typer.Option("--quick", help="5 replicas, tests of two cases.")]
Replicas = Annotated[
    int | None, typer.Option(min=1, help="Random holdout sets of each kind; 100 unless given.", show_default=False)
]
Sizes = Annotated[str | None, typer.Option(metavar="1,2,3", help="How many cases tests have.", show_default=False)]
Holdouts = Annotated[
    str | None, typer.Option(metavar="0.2,0.4,0.6", help="Shares of policies held out.", show_default=False)
]
Methods = Annotated[
    str | None,
    typer.Option(
        metavar="A,B", help="Only these methods, by their backends' names; all unless given.", show_default=False
    ),
]
EveryError = Annotated[
    bool,
    typer.Option("--every-error", help="Also write the error on every pair, to errors.csv.gz.", rich_help_panel=OUTPUT),
]


def reproduce(
    name: Name = None,
    list_names: ListNames = False,
    out: Folder = Path("reproduced"),
    table: Tables = None,
    quick: Quick = False,
    replicas: Replicas = None,
    sizes: Sizes = None,
    holdouts: Holdouts = None,
    methods: Methods = None,
    every_error: EveryError = False,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
) -> None:
    """Run the paper's experiments, write their tables, draw their figures; run again, it goes on where it stopped."""
    from rposst_opt.experiments import reproductions
    from rposst_opt.solvers.cluster import check_cluster
    from rposst_opt.unseen.runner import check_can_run

    if list_names or name is None:
        _show_list(complain=not list_names)
        return
    wanted = _installed_methods() if methods is None else _known_methods(methods)
    check_can_run()
    if scheduler is not None:
        check_cluster()
    with progress_of_experiments() as tell:
        request = reproductions.Request(
            folder=out,
            poker=_read_poker(table or []),
            replicas=replicas,
            sizes=_different_numbers("--sizes", sizes, int),
            holdouts=_different_numbers("--holdouts", holdouts, float),
            methods=wanted,
            every_error=every_error,
            jobs=jobs or os.cpu_count() or 1,
            scheduler=scheduler,
            tell=tell,
        )
        written, left_out = _carry_out(name, reproductions.quick(request) if quick else request)
    for path in written:
        print(path)
    for message in left_out:
        notice(message)


def _carry_out(name: str, request: "Request") -> tuple[list[Path], list[str]]:
    """The files that were written, and of `all` what was left out because it needs what is not installed."""
    from rposst_opt.experiments import reproductions

    if name != reproductions.ALL:
        _check_folder(name, request)
        return reproductions.reproduce(name, request), []
    written: list[Path] = []
    left_out: list[str] = []
    names = reproductions.names_for_all(request)
    for each in names:
        _check_folder(each, request)
    for each in names:
        try:
            written += reproductions.reproduce(each, request)
        except BackendUnavailable as error:
            left_out.append(f"{each} was left out: {error}")
    return written, left_out


def _check_folder(name: str, request: "Request") -> None:
    """Refuse a folder with tables of another run."""
    from rposst_opt.experiments.reproductions import SOURCE_FORMAT, asked_of

    asked, folder = asked_of(name, request), request.folder / name
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    tables = [path.name for path in files if path.suffix in WRITTEN]
    check_run_folder(folder, tables, SOURCE_FORMAT, asked)


def _known_methods(text: str) -> tuple[str, ...]:
    """The methods that an option names."""
    from rposst_opt.experiments.methods import METHODS

    wanted = _all_different("--methods", listed(text))
    strange = [method for method in wanted if method not in METHODS]
    if strange:
        raise ProblemError(unknown("method", strange[0], METHODS))
    return wanted


def _installed_methods() -> tuple[str, ...]:
    """All methods whose packages are there; the others are named."""
    from rposst_opt.backends import entry_of, how_to_install
    from rposst_opt.experiments.methods import METHODS

    missing = {method: how_to_install(entry_of(method).capabilities) for method in METHODS}
    for method, install in missing.items():
        if install is not None:
            notice(f"{method} was left out: {install}")
    return tuple(method for method in METHODS if missing[method] is None)


def _show_list(*, complain: bool) -> None:
    from rposst_opt.experiments.reproductions import REPRODUCTIONS

    out = console()
    if complain:
        out.print("Name one of these, or `all`:\n", markup=False)
    for name, asked in REPRODUCTIONS.items():
        out.print(plain(name))
        out.print(plain(f"    {asked.place}"), soft_wrap=True)
        out.print(plain(f"    needs {asked.needs}"), soft_wrap=True)


def _different_numbers(option: str, text: str | None, kind: type[Number]) -> tuple[Number, ...] | None:
    """The numbers in an option, if it was given."""
    return None if text is None else _all_different(option, numbers(option, text, kind))


def _all_different(option: str, parts: list[Part]) -> tuple[Part, ...]:
    """The same parts; what is there twice would be counted twice, and make intervals too narrow."""
    repeated = [part for part in parts if parts.count(part) > 1]
    if repeated:
        raise ProblemError(f"{option} has {repeated[0]} more than once: name each once.")
    return tuple(parts)


def _read_poker(paths: list[Path]) -> "dict[str, pd.DataFrame]":
    from rposst_opt.experiments.domains.poker import crosstable
    from rposst_opt.experiments.reproductions import DOMAINS
    from rposst_opt.files.tables import read_crosstable

    tables = {}
    for path in paths:
        if path.stem in DOMAINS or path.stem in tables:
            raise ProblemError(f"{path}: another domain has the name {path.stem!r} already: rename the file.")
        checked = crosstable(read_crosstable(path))
        _tell_unplayed(checked.unplayed)
        tables[path.stem] = checked.results
    return tables
