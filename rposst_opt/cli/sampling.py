"""The command line's part for trying things: ``rposst sample`` writes made-up tables that come with the package."""

from pathlib import Path
from typing import Annotated, Any

import typer

from rposst_opt.cli.options import check_output
from rposst_opt.cli.terminal import notice
from rposst_opt.errors import ProblemError


def _file(what: str) -> Any:
    return typer.Option(metavar="FILE.csv", help=what, show_default=False)


Results = Annotated[Path | None, _file("Scores in percent of 30 models (columns) on 24 tasks (rows).")]
Cases = Annotated[Path | None, _file("What each task costs, in minutes, and its group.")]
NewModels = Annotated[Path | None, _file("Four more models of the same kind, on all tasks.")]
Long = Annotated[Path | None, _file("The scores of the 30 models again, a row each, some missing.")]
Runs = Annotated[Path | None, _file("Another table: four runs each of 20 checkpoints on 16 levels, a row per run.")]
Force = Annotated[bool, typer.Option("--force", help="Write over files that are there.")]


def sample(
    out: Results = None,
    cases_out: Cases = None,
    new_out: NewModels = None,
    long_out: Long = None,
    runs_out: Runs = None,
    force: Force = False,
) -> None:
    """Write a small, made-up leaderboard to try things on, and what belongs to it."""
    from rposst_opt.files import samples
    from rposst_opt.files.writing import write_atomically

    asked = (
        (out, samples.RESULTS, "30 models on 24 tasks, scores in percent"),
        (cases_out, samples.CASES, "cost in minutes and group of the 24 tasks"),
        (new_out, samples.NEW_MODELS, "4 new models on the same tasks"),
        (long_out, samples.LONG, "the scores of the 30 models, a row each, some missing"),
        (runs_out, samples.RUNS, "20 checkpoints on 16 levels, 4 runs of each, a row per run"),
    )
    wanted = [(path, name, what) for path, name, what in asked if path is not None]
    if not wanted:
        raise ProblemError("--out names the file to write, as in: rposst sample --out results.csv.")
    _check([path for path, _, _ in wanted], force=force)
    for path, name, what in wanted:
        write_atomically(path, samples.sample_text(name))
        notice(f"{path}: {what}.")
    notice("All of it is made up: nothing was measured, and none of it exists.")


def _check(paths: list[Path], *, force: bool) -> None:
    """Refuse, before any file is written, what cannot be written, or would be lost."""
    for place, path in enumerate(paths):
        check_output(path)
        if path.exists() and not force:
            raise ProblemError(f"{path} exists already, and is not written over: name another, or give --force.")
        if path.resolve() in [other.resolve() for other in paths[:place]]:
            raise ProblemError(f"{path} is named twice: each table needs a file of its own.")
