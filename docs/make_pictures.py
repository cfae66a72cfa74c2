"""Run the tutorial's code: draw its pictures anew, and say where it prints something else than the text shows.

Run ``python docs/make_pictures.py`` after a change to the tutorial or to what it calls.
"""

import contextlib
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

TUTORIAL = Path(__file__).with_name("k_of_n.md")
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", flags=re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A piece of code, the line of the tutorial where it begins, and the output that the tutorial shows below it."""

    line: int
    code: str
    shown: str


def read_blocks(tutorial: str) -> list[Block]:
    """Find all code of a tutorial, in its order."""
    return [
        Block(tutorial.count("\n", 0, match.start(1)) + 1, match[1], match[2] or "")
        for match in BLOCK.finditer(tutorial)
    ]


def run_blocks(blocks: Sequence[Block], folder: Path, page: str = TUTORIAL.name) -> list[str]:
    """Run the code in one namespace and in a folder, to which pictures are relative; return what each block prints."""
    namespace: dict[str, object] = {}
    outputs = []
    with contextlib.chdir(folder):
        for block in blocks:
            printed = io.StringIO()
            lines_before = "\n" * (block.line - 1)  # so that a traceback names the page's lines
            with contextlib.redirect_stdout(printed):
                exec(compile(lines_before + block.code, page, "exec"), namespace)
            outputs.append(printed.getvalue())
    return outputs


def main() -> int:
    """Draw the pictures beside the tutorial; fail if a block does not print what is shown below it."""
    blocks = read_blocks(TUTORIAL.read_text(encoding="utf-8"))
    outputs = run_blocks(blocks, TUTORIAL.parent)
    stale = [(block, output) for block, output in zip(blocks, outputs, strict=True) if output != block.shown]
    for block, output in stale:
        print(f"{TUTORIAL.name}, line {block.line}: the text shows\n{block.shown}and the code prints\n{output}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
