"""Make the Jupyter form and the page of the notebook anew, from its marimo form ``docs/notebook/first_test.py``.

Run ``python docs/make_notebook.py`` after a change to the notebook, or to what it calls. marimo runs it, and the page
shows what came of every cell. The Jupyter form has no outputs: the page has them, and a notebook is there to be run.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from runpy import run_path
from typing import Any, NamedTuple

import nbformat
import pandas as pd
from matplotlib.figure import Figure

from rposst_opt import plots

DOCS = Path(__file__).parent
MARIMO = DOCS / "notebook/first_test.py"
JUPYTER = MARIMO.with_suffix(".ipynb")
PAGE = "notebook.md"
PICTURES = "notebook"  # a folder beside the page
DPI = 110
FOREWORD = """<!-- Made by `make pictures` from docs/notebook/first_test.py: change that, and make it again. -->
"""
AFTERWORD = """
This page shows what the notebook prints and draws when it is run. Run it yourself in
[Jupyter](notebook/first_test.ipynb) or in [marimo](notebook/first_test.py): both have the same cells, and each goes
from top to bottom.
"""


class Cell(NamedTuple):
    """A cell of the notebook: its text if it is Markdown, its code if it is not."""

    is_markdown: bool
    source: str


def read_cells(source: str) -> list[Cell]:
    """The cells of a marimo notebook, in their order; a Jupyter notebook has no use for that which imports marimo."""
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    cells = [_cell(source, function) for function in functions]
    return [cell for cell in cells if cell.source != "import marimo as mo"]


def _cell(source: str, function: ast.FunctionDef) -> Cell:
    body = [node for node in function.body if not isinstance(node, ast.Return)]
    match body:
        case [ast.Expr(ast.Call(ast.Attribute(ast.Name("mo"), "md"), [ast.Constant(str(text))]))]:
            return Cell(True, inspect.cleandoc(text))
    first, last = body[0].lineno - 1, body[-1].end_lineno
    return Cell(False, textwrap.dedent("\n".join(source.splitlines()[first:last])))


def jupyter_form(cells: Sequence[Cell]) -> str:
    """The same cells as the text of an .ipynb file, without outputs."""
    notebook: Any = nbformat.v4.new_notebook(
        cells=[_jupyter_cell(number, cell) for number, cell in enumerate(cells, start=1)],
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )
    nbformat.validate(notebook)
    return str(nbformat.writes(notebook)) + "\n"


def _jupyter_cell(number: int, cell: Cell) -> Any:
    new = nbformat.v4.new_markdown_cell if cell.is_markdown else nbformat.v4.new_code_cell
    return new(cell.source, id=f"cell-{number}")


def run_in_marimo(path: Path) -> list[object]:
    """What each cell of `read_cells` comes to, by marimo."""
    outputs, _ = run_path(str(path))["app"].run()
    return list(outputs)[1:]  # without that of the cell that imports marimo


def make_page(cells: Sequence[Cell], outputs: Sequence[object], folder: Path) -> None:
    """Write the page with all text, code and outputs into a folder, and its pictures into one below that."""
    (folder / PICTURES).mkdir(exist_ok=True)
    parts = [FOREWORD]
    for cell, output in zip(cells, outputs, strict=True):
        parts.append(f"{cell.source}\n" if cell.is_markdown else f"```python\n{cell.source}\n```\n")
        if not cell.is_markdown and output is not None:
            parts.append(_shown(cell, output, folder) + "\n")
    (folder / PAGE).write_text("\n".join([*parts, AFTERWORD.strip("\n") + "\n"]), encoding="utf-8")


def _shown(cell: Cell, output: object, folder: Path) -> str:
    """An output in Markdown."""
    if isinstance(output, Figure):
        name = next(name for name in plots_named_in(cell.source))
        path = f"{PICTURES}/{name.replace('_', '-')}.png"
        output.savefig(folder / path, dpi=DPI, metadata={"Software": None})
        said = str(inspect.getdoc(getattr(plots, name))).splitlines()[0].removeprefix("Draw ")
        return f"![{said[0].upper()}{said[1:]}]({path})"
    if isinstance(output, pd.DataFrame):
        return _table(output)
    if isinstance(output, str):
        return "\n".join(f"> {line}" for line in textwrap.wrap(output, 110))
    return f"```text\n{output!r}\n```"


def plots_named_in(code: str) -> Iterator[str]:
    """The pictures that code asks for."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "plots":
            yield node.attr


def _table(frame: pd.DataFrame) -> str:
    """A table in Markdown, with its index unless that is a mere count from zero."""
    shown = frame if isinstance(frame.index, pd.RangeIndex) and frame.index.start == 0 else frame.reset_index()
    shown = shown.rename(columns={"index": ""})
    is_number = [pd.api.types.is_numeric_dtype(dtype) for dtype in shown.dtypes]
    rows = [list(shown.columns), ["---:" if right else "---" for right in is_number]]
    rows += [[_number(value) for value in row] for row in shown.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Write the Jupyter form, the page and its pictures."""
    cells = read_cells(MARIMO.read_text(encoding="utf-8"))
    JUPYTER.write_text(jupyter_form(cells), encoding="utf-8")
    make_page(cells, run_in_marimo(MARIMO), DOCS)


if __name__ == "__main__":
    main()
