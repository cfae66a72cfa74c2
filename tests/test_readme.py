"""The README and all pages: their code is run, their tables are held against the code, their links lead somewhere."""

import os
import re
import shlex
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
import typer
from commands import Run

import formulations
import rposst_opt as ro
import rposst_opt.sklearn
from docs.docstring_markup import as_markdown
from docs.make_pictures import read_blocks, run_blocks
from docs.site_hooks import COMMANDS, ELSEWHERE, commands_page, link_on_the_site, option_row
from rposst_opt import backends
from rposst_opt.cli import app
from rposst_opt.cli.showing import _handles_words
from rposst_opt.files.samples import RESULTS, sample_text

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
# Their code needs pictures, files or cells around it, and has tests of its own.
RUN_ELSEWHERE = {ROOT / "docs" / page for page in ("k_of_n.md", "notebook.md", "how-to/add-a-backend.md")}
WITH_CODE = [page for page in PAGES if page not in RUN_ELSEWHERE and "```python\n" in page.read_text(encoding="utf-8")]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


# What pages print.


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_code_prints_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = read_blocks(text)
    assert len(blocks) == text.count("```python\n")
    outputs = run_blocks(blocks, tmp_path, page.name)  # the blocks of a page share a namespace
    assert outputs == [block.shown for block in blocks]


def words_of(line: str) -> str:
    """A line of a table without its frame, and with single blanks."""
    return " ".join(line.replace("│", " ").split())


def test_commands_of_the_readme_print_what_it_shows(rposst: Run) -> None:
    assert rposst("sample", "--out", "results.csv", "--new-out", "new_models.csv").code == 0
    consoles = re.findall(r"```console\n\$ rposst (.*)\n((?:.*\n)+?)```", README)
    assert len(consoles) == 2
    for command, shown in consoles:
        done = rposst(*shlex.split(command))
        assert done.code == 0
        printed = words_of(done.out)
        assert [line for line in shown.splitlines() if words_of(line) not in printed] == []


def test_the_readme_shows_ten_tasks_of_the_sample_as_they_are() -> None:
    table = sample_text(RESULTS).splitlines()
    block = README[README.index("    task,") :].split("\n\n")[0]
    shown = [line.strip().split(",") for line in block.splitlines()]
    assert len(shown) == 1 + 10
    assert shown == [line.split(",")[: len(shown[0])] for line in table[: len(shown)]]
    assert len(README.splitlines()) < 200


# What the README is.


def test_the_readme_is_short_and_speaks_to_those_who_come() -> None:
    assert len(README.splitlines()) < 200
    words = {"model", "benchmark", "leaderboard", "policies", "checkpoint", "opponents", "solver", "MILP"}
    assert [word for word in words if word not in README.split("## Install")[0]] == []


def test_trust_comes_before_speed() -> None:
    headings = re.findall(r"^## (.*)", README, flags=re.MULTILINE)
    assert headings.index("Install") < headings.index("How much to trust it") < headings.index("How fast")


# Tables against the code.


def table_rows(text: str, first_heading: str) -> list[list[str]]:
    table = re.search(rf"^\| {first_heading} \|.*?\n\|[- |]*\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].strip().splitlines()]


def test_the_table_of_backends_is_that_of_the_code() -> None:
    expected = []
    for name, entry in ro.BACKENDS.items():
        capabilities = entry.capabilities
        expected.append([f"`{name}`", capabilities.method, _handles_words(capabilities), capabilities.proves])
    assert table_rows(read("reference/backends.md"), "backend") == expected


def test_every_measure_and_loss_is_documented() -> None:
    page = read("reference/measures-and-losses.md")
    for kind in (*ro.Measure.__subclasses__(), *ro.Loss.__subclasses__()):
        if kind.__module__.startswith("rposst_opt"):
            assert f"`{kind.__name__}(" in page


# Commands.


def unknown_options(text: str) -> list[str]:
    """What commands in a text are given that they do not have, or have only for the sake of old scripts."""
    known: Any = typer.main.get_command(app)
    unknown = []
    for line in text.replace("\\\n", " ").splitlines():
        for name, rest in re.findall(r"\brposst ([a-z]+(?:-[a-z]+)*)([^`#]*)", line):
            options = re.findall(r"(?<=\s)--[a-z-]+", rest)
            if options and name not in known.commands:
                unknown.append(name)
            elif options and name != "domain":  # a group, whose commands differ
                shown = [one for one in known.commands[name].params if not one.hidden]
                names = {"--help", *(name for one in shown for name in (one.opts[0], *one.secondary_opts))}
                unknown += [f"{name} {option}" for option in options if option not in names]
    return unknown


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_have_the_options_that_a_page_gives_them(page: Path) -> None:
    assert unknown_options(page.read_text(encoding="utf-8")) == []


def test_planted_options_are_told() -> None:
    text = "`rposst solve x.csv --size 3 --parrots`, and\n    rposst parrot x.csv \\\n  --size 2  # --or-not\n"
    assert unknown_options(text) == ["solve --parrots", "parrot"]


# Links.


def headings_of(text: str) -> set[str]:
    """The anchors of a page's headings, as forges and the site name them."""
    without_code = re.sub(r"^```.*?^```\n", "", text, flags=re.DOTALL | re.MULTILINE)
    headings: list[str] = re.findall(r"^#+ (.*)", without_code, flags=re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def dead_links(page: Path) -> list[str]:
    """The relative links of a page that lead to no file, or to no heading of it."""
    links: list[tuple[str, str]] = re.findall(
        r"\]\((?![a-z]+:)([^)\s#]*)(#[^)\s]*)?\)", page.read_text(encoding="utf-8")
    )
    generated = ROOT / "docs" / COMMANDS
    dead = []
    for target, anchor in links:
        path = (page.parent / target).resolve() if target else page
        if path == generated:
            continue
        if not path.is_file() or (anchor and anchor[1:] not in headings_of(path.read_text(encoding="utf-8"))):
            dead.append(target + anchor)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_a_planted_dead_link_is_told(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A heading\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#a-heading) [b](other.md#parrots) [c](parrots.md) [d](https://example.org)\n")
    assert dead_links(page) == ["other.md#parrots", "parrots.md"]


def test_links_out_of_the_folder_lead_to_the_site_or_to_the_source() -> None:
    assert link_on_the_site("../../benchmarks/README.md", "reference/backends.md", "forge:") == "../benchmarks.md"
    assert link_on_the_site("docs/unseen.md", "changelog.md", "forge:") == "unseen.md"
    assert link_on_the_site("../rposst_opt/measures.py", "k_of_n.md", "forge:") == "forge:rposst_opt/measures.py"
    assert link_on_the_site("unseen.md", "k_of_n.md", "forge:") == "unseen.md"
    assert link_on_the_site("exact.png", "benchmarks.md", "forge:") == "benchmarks/exact.png"
    assert link_on_the_site("../parrots.py", "k_of_n.md", "forge:") == "../parrots.py"
    assert [path for path in ELSEWHERE if not (ROOT / path).is_file()] == []


# The site.


def test_docstrings_become_markdown() -> None:
    table = "==  ==\na   b\n==  ==\n1   2\n==  =="
    formula = "    a &= 1 \\\\\n    b &= 2\n"
    written = as_markdown(f"The value :math:`x`.\n\n.. math::\n\n{formula}\nMore.\n\n{table}")
    assert "The value $x$." in written
    assert "$$\n\\begin{split}\na &= 1 \\\\\nb &= 2\n\\end{split}\n$$\n\nMore." in written
    assert f"```text\n{table}\n```" in written


def test_every_command_is_in_the_reference_with_its_options() -> None:
    page = commands_page()
    for command in ("solve", "score", "validate", "verify", "domain racing-arrows-follower"):
        assert f"\n## rposst {command}\n" in page
    assert "`--out TEST.json`" in option_row("--out, --to TEST.json", "The file.")
    assert "\n| `--size" in page and "\n| Reading the table | |\n" in page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built with every warning as an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_reference_has_the_time_limits_of_all_commands() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| (\d+|none) \| ", read("reference/backends.md"), flags=re.MULTILINE)
    listed = {command: limit for commands, limit in rows for command in re.findall("`([a-z]+)`", commands)}
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    limits = {
        name: "none" if option.default is None else f"{option.default:g}"
        for name, command in commands.items()
        for option in command.params
        if "--time-limit" in option.opts
    }
    assert listed == limits and "validate" not in limits and "reproduce" not in limits
    [agree_limit] = [option.default for option in commands["report"].params if "--agree-time-limit" in option.opts]
    [minutes] = [option.default for option in commands["referee"].params if "--minutes" in option.opts]
    assert f"`--agree-time-limit`, {agree_limit:g}," in read("reference/backends.md")
    assert f"`--minutes`, {minutes:g}," in read("reference/backends.md")


def test_what_pages_say_about_installing_needs_no_package_index() -> None:
    notebooks = sorted((ROOT / "docs" / "notebook").glob("first_test.*"))
    assert len(notebooks) == 2
    for path in (*PAGES, *notebooks):
        assert not re.search(r"pip install ['\"]?rposst-opt", path.read_text(encoding="utf-8")), path


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    listed = {line.split(" ")[0] for line in zlib.decompress(inventory).decode().splitlines()}
    homes = {"analysis": "reports.analysis", "plots": "reports.plots"}
    names = {f"rposst_opt.{homes.get(name, name)}" for name in ro.__all__ if name != "__version__"}
    names |= {f"rposst_opt.sklearn.{name}" for name in rposst_opt.sklearn.__all__}
    names |= {f"rposst_opt.backends.{name}" for name in backends.__all__ if name not in ro.__all__}
    [folder] = formulations.__path__
    names |= {f"formulations.{path.stem}" for path in Path(folder).glob("*.py") if path.stem != "__init__"}
    assert names - listed == set()


def test_nothing_is_fetched_from_elsewhere_and_formulas_need_no_script(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    for text in pages.values():
        assert re.findall(r"<(?:script|img|iframe)[^>]* src=\"?(?:https?:)?//[^ >]*", text) == []
        assert re.findall(r"<link[^>]* rel=\"?(?:stylesheet|preconnect)[^>]* href=\"?(?:https?:)?//", text) == []
        formulas = re.findall(r"<math.*?</math>", text, flags=re.DOTALL)
        assert 'class="arithmatex"' not in text
        assert [formula for formula in formulas if "\\" in formula or ">&<" in formula] == []  # what was not understood
    assert "<math" in pages[site / "k_of_n.html"] and "<math" in pages[site / "explanation/proof.html"]
