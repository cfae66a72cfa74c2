"""What do the guides say is to be typed, and what is printed then?

In a page, a block ``console`` has commands after ``$`` and what they print, where … stands for what is left out,
lines or a part of one. All else must be printed: a number in a guide that the command does not print is told.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from commands import Outcome

DOCS = Path(__file__).parent.parent / "docs"
LEFT_OUT = "…"
WIDTH = "100"  # the terminal's, in columns


class Step(NamedTuple):
    """A command of a page, the lines that the page shows of its output, and the section it stands in."""

    command: str
    shown: list[str]
    section: str

    @property
    def code(self) -> int:
        """The exit code: that of a mistake where the page shows one being told."""
        return 2 if any(line.startswith("rposst: ") for line in self.shown) else 0


def steps_of(text: str) -> Iterator[Step]:
    section, inside, step = "", False, None
    for line in text.splitlines():
        if line.startswith("```"):
            inside = line == "```console"
            if step is not None and not inside:
                yield step
                step = None
        elif inside and line.startswith("$ "):
            if step is not None:
                yield step
            step = Step(line.removeprefix("$ "), [], section)
        elif inside:
            assert step is not None, f"{line!r} is printed by nobody"
            step.shown.append(line)
        elif line.startswith("## "):
            section = line.removeprefix("## ")


def steps(page: str, *sections: int) -> list[Step]:
    """The steps of a page, or of some of its numbered sections."""
    numbers = tuple(f"{number}." for number in sections)
    return [step for step in steps_of((DOCS / page).read_text()) if not sections or step.section.startswith(numbers)]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)


def squeezed(line: str) -> str:
    return " ".join(line.split())


def faults(step: Step, outcome: Outcome) -> list[str]:
    """An exit code that is not the page's, and lines that it shows and nobody prints, each with the nearest one."""
    if outcome.code != step.code:
        return [f"exit code {outcome.code}: {outcome.err}"]
    printed = [squeezed(line) for line in (outcome.out + "\n" + outcome.err).splitlines()]
    patterns = {line: ".*".join(map(re.escape, squeezed(line).split(LEFT_OUT))) for line in step.shown}
    missing = [
        squeezed(line) for line, pattern in patterns.items() if not any(re.fullmatch(pattern, one) for one in printed)
    ]
    return [f"{line}   [printed: {get_close_matches(line, printed, n=1, cutoff=0.0)}]" for line in missing]
