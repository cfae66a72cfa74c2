"""Running the command line in tests."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

COMMAND = Path(sys.executable).with_name("rposst")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """What standard error says, besides how the table was read and what was written, which it always does."""
        return "".join(line for line in self.err.splitlines(keepends=True) if not line.startswith(("read ", "wrote ")))

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return strict_json(self.out)


Run = Callable[..., Outcome]


def strict_json(text: str) -> Any:
    return json.loads(text, parse_constant=refuse_constants)


def refuse_constants(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def run_process(*arguments: str, folder: Path, **environment: str) -> Outcome:
    """Run the installed command as its own process."""
    done = subprocess.run(
        [COMMAND, *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def has_traceback(text: str) -> bool:
    return "Traceback" in text or "Exception ignored" in text
