"""The notebook runs from top to bottom, its two forms have the same cells, and its page shows what came of them."""

import ast
import builtins
from pathlib import Path

import nbformat
import pytest
from pictures import PICTURE_TOLERANCE, picture_distance

from docs.make_notebook import DOCS, JUPYTER, MARIMO, PAGE, Cell, jupyter_form, make_page, read_cells, run_in_marimo

SOURCE = MARIMO.read_text(encoding="utf-8")
CELLS = read_cells(SOURCE)
MOST_BYTES = 150_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where marimo has run the notebook, and the page was made of what came of it."""
    made = tmp_path_factory.mktemp("docs")
    make_page(CELLS, run_in_marimo(MARIMO), made)
    return made


def test_the_jupyter_form_has_the_cells_of_the_marimo_form_and_no_outputs() -> None:
    notebook = nbformat.read(JUPYTER, as_version=4)
    assert [Cell(cell.cell_type == "markdown", cell.source) for cell in notebook.cells] == CELLS
    assert all(not cell.get("outputs") for cell in notebook.cells)
    assert JUPYTER.read_text(encoding="utf-8") == jupyter_form(CELLS)
    assert len(CELLS) == SOURCE.count("@app.cell") - 1  # that which imports marimo is not for Jupyter


def test_nothing_is_used_before_it_is_there_when_cells_run_from_top_to_bottom() -> None:
    known = set(dir(builtins))
    for cell in CELLS:
        nodes = [] if cell.is_markdown else list(ast.walk(ast.parse(cell.source)))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        known |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
        known |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
        assert {node.id for node in names} <= known, cell.source


def test_the_page_shows_what_comes_of_every_cell(folder: Path) -> None:
    assert (folder / PAGE).read_text(encoding="utf-8") == (DOCS / PAGE).read_text(encoding="utf-8")


def test_the_pictures_are_those_that_are_drawn(folder: Path) -> None:
    drawn = sorted(path.relative_to(folder) for path in folder.glob("*/*.png"))
    assert drawn == sorted(path.relative_to(DOCS) for path in MARIMO.parent.glob("*.png")) and drawn
    for path in drawn:
        assert picture_distance(folder / path, DOCS / path) < PICTURE_TOLERANCE, path
        assert (DOCS / path).stat().st_size < MOST_BYTES
