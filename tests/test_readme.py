"""The README's code is run, its output compared, and its table of backends held against the code."""

import contextlib
import io
import re
from pathlib import Path

import rposst_opt as ro
from rposst_opt.cli.showing import _handles_words

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", README, flags=re.DOTALL)


def test_there_is_an_example_of_at_most_fifteen_lines() -> None:
    assert len(EXAMPLES) >= 1
    assert len(EXAMPLES[0][0].strip().splitlines()) <= 16


def test_every_python_block_has_its_output_beside_it() -> None:
    assert len(re.findall(r"```python\n", README)) == len(EXAMPLES)


def test_examples_print_what_the_readme_says() -> None:
    for code, expected in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {})
        assert printed.getvalue() == expected


def table_rows(first_heading: str) -> list[list[str]]:
    table = re.search(rf"^\| {first_heading} \|.*?\n\|[- |]*\n((?:\|.*\n)+)", README, flags=re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].strip().splitlines()]


def test_the_table_of_backends_is_that_of_the_code() -> None:
    expected = []
    for name, entry in ro.BACKENDS.items():
        capabilities = entry.capabilities
        expected.append([f"`{name}`", capabilities.method, _handles_words(capabilities), capabilities.proves])
    assert table_rows("backend") == expected


def test_every_measure_and_loss_is_in_the_readme() -> None:
    for kind in (*ro.Measure.__subclasses__(), *ro.Loss.__subclasses__()):
        if kind.__module__.startswith("rposst_opt"):
            assert f"`{kind.__name__}(" in README


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert "docs/report.png" in links and "docs/k_of_n.md" in links
    assert [link for link in links if not (ROOT / link).is_file()] == []
