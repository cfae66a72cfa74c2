"""What the documentation site needs besides its Markdown: generated pages, links out of the folder, mathematics.

MkDocs calls the functions ``on_...``; mkdocs.yml names this file. Pages are written so that a forge shows them as well:
links to source files are relative, formulas stand between dollars, and answers in plain ``<details>``.
"""

import posixpath
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import typer
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from rposst_opt.cli import app

ROOT = Path(__file__).parent.parent
COMMANDS = "reference/commands.md"
# Pages and pictures that live elsewhere in the repository, and where they are on the site.
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/exact.png": "benchmarks/exact.png",
    "benchmarks/grid.png": "benchmarks/grid.png",
    "benchmarks/players.png": "benchmarks/players.png",
}
HOMES = {page: path for path, page in ELSEWHERE.items()}
RELATIVE_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', flags=re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is generated, and what lives elsewhere."""
    files.append(File.generated(config, COMMANDS, content=commands_page()))
    for path, page in ELSEWHERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to where their files are on the site, and have what is folded away read as Markdown."""
    place = page.file.src_uri
    if place == ELSEWHERE["CHANGELOG.md"]:
        page.meta["search"] = {"boost": 0.5}  # it has every word of every page
    linked = RELATIVE_LINK.sub(lambda link: link_on_the_site(link[1], place, config.extra["source"]), markdown)
    return linked.replace("<details>", '<details markdown="1">')


def link_on_the_site(target: str, place: str, source: str) -> str:
    """Where a relative link of a page leads on the site: to a page, or to a source file on the forge."""
    home = HOMES.get(place, f"docs/{place}")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(home), target))
    if path in ELSEWHERE or path.startswith("docs/"):
        on_site = ELSEWHERE.get(path, path.removeprefix("docs/"))
        return posixpath.relpath(on_site, posixpath.dirname(place) or ".")
    return source + path if (ROOT / path).exists() else target


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write formulas as MathML, which browsers show by themselves."""
    return FORMULA.sub(lambda formula: mathml(unescape(formula[2]), displayed=formula[1] == "div"), html)


def mathml(formula: str, displayed: bool) -> str:
    """A formula in LaTeX as MathML."""
    written = convert(formula.strip(), display="block" if displayed else "inline")
    return f'<div class="formula">{written}</div>' if displayed else written


# The reference of commands.


def commands_page() -> str:
    """Every command with its arguments and options, as the command line itself says them."""
    group: Any = typer.main.get_command(app)
    context = group.context_class(group, info_name="rposst")
    parts = [
        "# Commands",
        "What `rposst COMMAND --help` says, in one page. Results go to standard output, progress and messages to "
        "standard error. Exit codes: 0 done, 1 no test (or solvers that disagree), 2 bad input.",
    ]
    for command, its_context in commands_below(group, context):
        parts += command_part(command, its_context)
    return "\n\n".join(parts) + "\n"


def commands_below(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """The commands of a group, and of groups in it."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command.hidden:
            continue
        its_context = command.context_class(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from commands_below(command, its_context)
        else:
            yield command, its_context


def command_part(command: Any, context: Any) -> Iterator[str]:
    """The heading of a command, its usage, what it does, and a table for each panel of its options."""
    yield f"## {context.command_path}"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    yield command.help.replace("\b\n", "").strip()
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        record = None if parameter.hidden else parameter.get_help_record(context)
        if record is not None:
            is_argument = parameter.param_type_name == "argument"
            panel = parameter.rich_help_panel or ("Arguments" if is_argument else "Options")
            panels.setdefault(panel, []).append(option_row(*record))
    for panel, rows in panels.items():
        yield "\n".join([f"| {panel} | |", "| --- | --- |", *rows])


def option_row(option: str, words: str) -> str:
    """A row of a table: an option as it is typed, and what it does."""
    typed = option.replace("|", r"\|")
    meaning = re.sub(r"([|\[<*])", r"\\\1", " ".join(words.split()))
    return f"| `{typed}` | {meaning} |"
