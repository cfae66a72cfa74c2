"""How text and progress reach a terminal: consoles that leave names as they are, bars that leave no trace."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from rposst_opt.errors import RposstWarning

if TYPE_CHECKING:
    from rich.console import Console

    from rposst_opt.contract import Progress

MOMENT_SECONDS = 2.0  # after a second interrupt, for a run to end in its own way


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
def ending_at_a_second_interrupt() -> Iterator[None]:
    """Within this a second Ctrl-C ends the process with code 130, also while a solver does not return to Python.

    Python's own handlers run between two steps of the main thread, and a solver written in C++ may take all its time
    for one. The system tells a thread beside it, which gives the run a moment to end in its own way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ear, mouth = os.pipe()
    os.set_blocking(mouth, False)
    is_over = threading.Event()

    def watch() -> None:
        heard = 0
        while told := os.read(ear, 64):
            heard += told.count(signal.SIGINT)
            if heard >= 2:
                break
        if heard >= 2 and not is_over.wait(MOMENT_SECONDS):
            show_cursor = "\x1b[?25h\n" if sys.stderr.isatty() else ""  # a bar that is cut short has hidden it
            os.write(2, f"{show_cursor}rposst: interrupted.\n".encode())
            os._exit(130)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    before = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        is_over.set()
        os.close(mouth)
        watcher.join()
        os.close(ear)


@contextmanager
def progress_of_a_search() -> "Iterator[Callable[[Progress], None] | None]":
    """A bar on standard error, gone when the run is over; nothing where standard error is not a terminal."""
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    screen = console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    with Bar(BarColumn(), TextColumn("{task.description}"), console=screen, transient=True) as bar:
        # The share done, because the number of sets may be too large for a float.
        task = bar.add_task("", total=1.0, visible=False)

        def show(progress: "Progress") -> None:
            share = progress.share
            if share is None:
                share = progress.done / progress.total if progress.total else 0.0
            bar.update(task, completed=share, visible=True, description=progress_words(progress))

        yield show


def progress_words(progress: "Progress") -> str:
    """How far a run is, in one line: how much is done, how long it may still take, the best test and what is proved."""
    from rposst_opt.backends.forecast import in_words

    if progress.share is None and not progress.total:
        told = [f"{progress.done:,} {progress.unit}"]
    elif progress.share is None:
        total = f"{progress.total:,}" if progress.total < 10**15 else "very many"
        told = [f"{100 * (progress.done / progress.total):.1f} % of {total} {progress.unit}"]
    else:
        told = [f"{f'{100 * progress.share:.1f}' if progress.share >= 1e-3 else 'under 0.1'} % of the search"]
    if progress.seconds_left is not None:
        told.append(f"perhaps {in_words(progress.seconds_left)} left")
    has_test, is_bounded = progress.objective < float("inf"), progress.lower_bound > -float("inf")
    told.append(f"best {progress.objective:.6g}" if has_test else "no test yet")
    told += [f"at least {progress.lower_bound:.6g}"] if is_bounded else []
    told += [f"gap {progress.objective - progress.lower_bound:.3g}"] if is_bounded and has_test else []
    return ", ".join(told)


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
def solvers_in_turn() -> Iterator[dict[str, Any]]:
    """What `agree` and `compare` are to call: a line on standard error for each that answers, and news meanwhile."""
    from rposst_opt.reports.wording import finding_words

    with spinner() as say:
        yield {
            "progress": say,
            "heard": lambda name, seconds, progress: say(f"{name}: {progress_words(progress)}"),
            "found": lambda finding: notice(finding_words(finding)),
        }


@contextmanager
def spinner() -> Iterator[Callable[[str], None]]:
    """The name of the backend that runs, on standard error; nothing where that is not a terminal."""
    screen = console(stderr=True)
    if not screen.is_terminal:
        yield lambda name: None
        return
    with screen.status("") as status:
        yield lambda name: status.update(f"running {name}".replace("[", r"\["))
