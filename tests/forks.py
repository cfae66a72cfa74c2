"""Processes that need no time to begin: another one has imported what takes long, and forks itself for each of them.

A process that is started per test spends a second or more on importing what this package builds upon. Here that is done
once, in a process that knows nothing of pytest nor of this package. What it forks is a process like any other: it has
its own folder, environment and output, is the first of its own group, and ends as Python ends.
"""

import gc
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any


class Forks:
    """Forks of a process that has imported these modules, and whatever they import.

    Parameters
    ----------
    *modules : str
    """

    def __init__(self, *modules: str) -> None:
        self._control, theirs = Pipe()
        line = [sys.executable, __file__, str(theirs.fileno()), *modules]
        self._process = subprocess.Popen(line, pass_fds=[theirs.fileno()])
        theirs.close()

    def __enter__(self) -> "Forks":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._control.close()
        self._process.wait()

    def start(self, code: str, *arguments: str, folder: Path, out: Path, err: Path, **environment: str) -> "Fork":
        """Begin to run some Python, with its output in these files."""
        surroundings = {**os.environ, **environment}
        return Fork(self.ask("fork", code, arguments, str(folder), surroundings, str(out), str(err)), self)

    def run(self, code: str, *arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run some Python to its end."""
        with tempfile.TemporaryDirectory() as outputs:
            out, err = (Path(outputs) / name for name in ("out", "err"))
            ended = self.start(code, *arguments, folder=folder, out=out, err=err, **environment).wait()
            return subprocess.CompletedProcess([code, *arguments], ended, out.read_text(), err.read_text())

    def ask(self, *wish: object) -> int:
        """Have the process that is forked do this."""
        self._control.send(wish)
        return int(self._control.recv())


@dataclass(frozen=True)
class Fork:
    """A process that was forked, the first of a group of its own."""

    number: int
    forks: Forks

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return bool(self.forks.ask("is running", self.number))

    def kill(self) -> None:
        """End it, and all that it has started."""
        os.killpg(self.number, signal.SIGKILL)

    def wait(self) -> int:
        """The exit code, or minus the signal that ended it, when it has ended; to be asked once."""
        return self.forks.ask("wait", self.number)


def serve(control: Connection) -> None:
    """Do what is asked for, until nobody is left to ask."""
    while True:
        try:
            what, *about = control.recv()
        except EOFError:
            return
        if what == "wait":
            _, status = os.waitpid(about[0], 0)
            control.send(os.waitstatus_to_exitcode(status))
            continue
        if what == "is running":
            control.send(os.waitid(os.P_PID, about[0], os.WEXITED | os.WNOHANG | os.WNOWAIT) is None)
            continue
        with warnings.catch_warnings():
            # Python warns of threads that a fork leaves behind. Those of linear algebra, the only ones, are made anew.
            warnings.simplefilter("ignore", DeprecationWarning)
            number = os.fork()
        if number == 0:
            control.close()
            become(*about)
            return  # to the end of this file, and so of the process
        control.send(number)


def become(code: str, arguments: list[str], folder: str, environment: dict[str, str], out: str, err: str) -> None:
    """Be the process that was asked for: as if Python had been given this code by its option ``-c``."""
    os.setsid()
    os.chdir(folder)
    for stream, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        opened = os.open(path, flags | (os.O_CREAT if stream else 0))
        os.dup2(opened, stream)
        os.close(opened)
    added = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path and path not in sys.path]
    sys.path[1:1] = added
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    main: Any = ModuleType("__main__")
    sys.modules["__main__"] = main
    exec(compile(code, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    sys.path[0] = ""  # as for all code that Python is given by its option -c: the folder it runs in
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.freeze()
    serve(Connection(int(sys.argv[1])))
