"""The command lines of the real lm-eval and Inspect, kept in one process: starting them takes seconds.

As a program it reads a list of arguments, as JSON, from every line of standard input, runs the command line with them,
and answers with a line. `HarnessProcess` is the other end of it.
"""

import functools
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

QUESTION = "Does it know number"


def knows(model: str, number: int) -> bool:
    """Whether a model gets a question right: as good as at random, and always the same."""
    return zlib.crc32(f"{model}/{number}".encode()) % 3 > 0


class HarnessProcess:
    """A process with a harness; everything is local, and nothing is fetched."""

    def __init__(self, harness: str, folder: Path) -> None:
        local = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
        private = {"XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")}
        self.errors = folder / f"{harness}.stderr"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, __file__, harness],
                cwd=folder,
                env={**os.environ, **local, **private},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(self, *arguments: str) -> None:
        """Run the harness's command line, and wait until it has ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", self.errors.read_text()[-3000:]

    def close(self) -> None:
        self.process.communicate(timeout=60)


def lm_eval_command() -> Callable[[list[str]], Any]:
    """lm-eval's command line with a model that `knows`, and without its own tasks: listing these takes long."""
    import lm_eval.tasks
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model

    class Knowing(LM):  # type: ignore[misc]  # lm-eval is not looked into
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        @classmethod
        def create_from_arg_obj(cls, given: dict[str, Any], config: object = None) -> "Knowing":
            return cls(given["pretrained"])

        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            answers = [(self._knows(request), request.args[1].strip()) for request in requests]
            return [(-1.0 if (answer == "yes") == right else -2.0, False) for right, answer in answers]

        def generate_until(self, requests: list[Any]) -> list[str]:
            return ["YES" if self._knows(request) else "no" for request in requests]

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            raise NotImplementedError

        def _knows(self, request: Any) -> bool:
            return knows(self.name, int(request.args[0].removeprefix(QUESTION)))

    register_model("knowing")(Knowing)
    lm_eval.tasks.TaskManager = functools.partial(lm_eval.tasks.TaskManager, include_defaults=False)

    def run(arguments: list[str]) -> None:
        sys.argv = ["lm_eval", *arguments]
        cli_evaluate()

    return run


def inspect_command() -> Callable[[list[str]], Any]:
    """Inspect's command line with a model that `knows`."""
    import inspect_tasks  # noqa: F401  # models must be known before Inspect loads the file of its tasks
    from inspect_ai._cli.main import inspect

    return functools.partial(inspect.main, standalone_mode=False)


def serve(run: Callable[[list[str]], Any]) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the harness prints is no answer
    for line in sys.stdin:
        run(json.loads(line))
        answers.write("done\n")
        answers.flush()


if __name__ == "__main__":
    serve({"lm-eval": lm_eval_command, "inspect": inspect_command}[sys.argv[1]]())
