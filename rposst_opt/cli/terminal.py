"""How text and progress reach a terminal: consoles that leave names as they are, bars that leave no trace."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rposst_opt.errors import RposstWarning

if TYPE_CHECKING:
    from rich.console import Console

    from rposst_opt.contract import Progress


def console(*, stderr: bool = False) -> "Console":
    """A console on standard output or standard error."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def plain(value: object) -> Any:
    """Text that a terminal shows as it is: no markup, no control characters."""
    from rich.text import Text

    text = str(value)
    printable = all(character.isprintable() or character == "\n" for character in text)
    return Text(text if printable else repr(text)[1:-1])


def notice(message: str) -> None:
    """A message on standard error, in one line however narrow the terminal is."""
    console(stderr=True).print(plain(message), soft_wrap=True)


@contextmanager
def warnings_as_notices() -> Iterator[None]:
    """Say what the package itself warns of in notices, each once; other warnings are shown as Python shows them."""
    said: set[str] = set()
    with warnings.catch_warnings():
        show_as_ever = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, RposstWarning):
                show_as_ever(message, category, filename, lineno, file, line)
            elif str(message) not in said:
                said.add(str(message))
                notice(f"Note: {message}")

        warnings.simplefilter("always", RposstWarning)
        warnings.showwarning = show
        yield


@contextmanager
def progress_of_a_search() -> "Iterator[Callable[[Progress], None]]":
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


@contextmanager
def progress_of_experiments() -> Iterator[Callable[[str, int, int], None]]:
    """A bar with the time that is left, on standard error; nothing where that is not a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda what, done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("", total=None)
        shown = ""

        def tell(what: str, done: int, total: int) -> None:
            nonlocal task, shown
            if what != shown or not bar.tasks:  # a new bar, so that the time that is left is not guessed from the old
                bar.remove_task(task)
                task, shown = bar.add_task(what, total=total, completed=done), what
            bar.update(task, completed=done, total=total)

        yield tell


@contextmanager
def spinner() -> Iterator[Callable[[str], None]]:
    """The name of the backend that runs, on standard error; nothing where that is not a terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda name: None
        return
    with screen.status("") as status:
        yield lambda name: status.update(f"running {name}".replace("[", r"\["))
