"""Docstrings are written in the markup that NumPy's are; the site reads Markdown. This turns the one into the other."""

import re
from typing import Any

import griffe

DISPLAYED = re.compile(r"^([ ]*)\.\. math::(.*)\n((?:\1[ ]+\S.*\n|[ ]*\n)*)", flags=re.MULTILINE)
INLINE = re.compile(r":math:`([^`]+)`")
TABLE = re.compile(r"^([ ]*)(=+(?:[ ]+=+)+)\n(?:.*\n)+?\1\2\n(?:.*\n)+?\1\2$", flags=re.MULTILINE)
REFERENCE = re.compile(r"^([ ]*)\.\. \[(\d+)\] ", flags=re.MULTILINE)
CODE_FOLLOWS = re.compile(r"::$", flags=re.MULTILINE)


def as_markdown(docstring: str) -> str:
    """The same docstring with formulas between dollars, tables as they stand and references as a list."""
    text = DISPLAYED.sub(_displayed, docstring + "\n")
    text = INLINE.sub(lambda formula: f"${formula[1].strip()}$", text)
    text = TABLE.sub(lambda table: f"{table[1]}```text\n{table[0]}\n{table[1]}```", text)
    text = REFERENCE.sub(lambda number: f"{number[1]}\n{number[1]}\\[{number[2]}\\] ", text)
    return CODE_FOLLOWS.sub(":", text).rstrip("\n")


def _displayed(formula: re.Match[str]) -> str:
    margin = formula[1]
    lines = [line.strip() for line in (formula[2], *formula[3].splitlines()) if line.strip()]
    if any("&" in line for line in lines):
        lines = [r"\begin{split}", *lines, r"\end{split}"]
    body = "\n".join(margin + line for line in lines)
    return f"{margin}$$\n{body}\n{margin}$$\n\n"


class DocstringMarkup(griffe.Extension):
    """What mkdocs.yml has griffe do with every docstring that it reads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Turn the docstring of a module, class, function or attribute into Markdown."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
