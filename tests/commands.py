"""Running the command line in tests."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return strict_json(self.out)


Run = Callable[..., Outcome]


def strict_json(text: str) -> Any:
    return json.loads(text, parse_constant=refuse_constants)


def refuse_constants(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")
