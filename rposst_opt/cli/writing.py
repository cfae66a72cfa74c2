"""What may be written, and what was? The options that all commands share that write files, and their checks."""

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from rposst_opt.cli.commands import OUTPUT, with_parameters
from rposst_opt.cli.terminal import notice
from rposst_opt.errors import ProblemError

PICTURES = (".png", ".svg", ".pdf")

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of tables.", rich_help_panel=OUTPUT)
]
CsvFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE.csv", help="Write the table to this file as well.", rich_help_panel=OUTPUT),
]
CsvOut = Annotated[
    Path | None,
    typer.Option("--out", "--csv", metavar="FILE.csv", help="Write the table to this file.", rich_help_panel=OUTPUT),
]
Force = Annotated[
    bool, typer.Option("--force", help="Write over files that are there already.", rich_help_panel=OUTPUT)
]

_may_overwrite: ContextVar[bool] = ContextVar("may_overwrite", default=False)


def can_overwrite(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option --force, without which `check_output` refuses files that exist already.

    A command that has a parameter `force` is told of it as well.
    """
    own = dict(signature(command, eval_str=True).parameters)
    asked = Parameter("force", Parameter.KEYWORD_ONLY, default=False, annotation=Force)

    @wraps(command)
    def wrapper(**given: Any) -> None:
        before = _may_overwrite.set(given["force"])
        try:
            command(**{name: given[name] for name in own})
        finally:
            _may_overwrite.reset(before)

    return with_parameters(wrapper, {**own, "force": asked}.values())


def check_output(out: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse, before anything is run, a file that cannot be written, is read as input or is there already."""
    from rposst_opt.text_files import check_can_write, named

    check_can_write(out)
    for path in inputs:
        if path.exists() and out.exists() and out.samefile(path):
            raise ProblemError(f"{named(out)}: this file is read as input, and is not written over: name another.")
    if out.exists() and not _may_overwrite.get():
        raise ProblemError(f"{named(out)} exists already, and is not written over: name another, or give --force.")


def check_folder(folder: Path, names: Iterable[str], inputs: Iterable[Path] = ()) -> None:
    """Refuse, before anything is run, a folder that is none, or a file in it that `check_output` refuses."""
    from rposst_opt.text_files import named

    if folder.exists() and not folder.is_dir():
        raise ProblemError(f"{named(folder)}: this is a file, not a folder: name a folder.")
    if folder.is_dir():
        for name in names:
            check_output(folder / name, inputs)


def check_run_folder(
    folder: Path, tables: Iterable[str], written_format: str, asked: Mapping[str, Any], inputs: Iterable[Path] = ()
) -> None:
    """Refuse, before anything is run, a folder with tables of another run; the same run may go on in its own."""
    from rposst_opt.files.run_folders import SOURCE, check_same_run

    names = list(tables)
    if not _may_overwrite.get():
        check_same_run(folder, names, written_format, asked)
    before = _may_overwrite.set(True)  # of what is left, only inputs and what is no file are refused
    try:
        check_folder(folder, [*names, SOURCE], inputs)
    finally:
        _may_overwrite.reset(before)


def check_picture(out: Path, inputs: Iterable[Path]) -> None:
    """Refuse, before anything is run, what is no picture, cannot be drawn, is read as input or is there already."""
    from rposst_opt.reports import check_can_draw

    if out.suffix.lower() not in PICTURES:
        raise ProblemError(f"--out must be a picture ({', '.join(PICTURES)}), got {str(out)!r}.")
    check_can_draw()
    check_output(out, inputs)


def write_file(path: Path, text: str) -> None:
    """Write a file whole or not at all, and say so."""
    from rposst_opt.text_files import write_atomically

    write_atomically(path, text)
    wrote(path)


def write_file_with(path: Path, write: Callable[[Path], object]) -> None:
    """The same with a function that writes to the path it is given."""
    from rposst_opt.text_files import write_with

    write_with(path, write)
    wrote(path)


def wrote(path: Path, more: str | None = None) -> None:
    """Say on standard error that a file was written, and what else is to be said of it."""
    notice(f"wrote {path}" if more is None else f"wrote {path}: {more}")
