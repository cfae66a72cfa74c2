"""What the project says of itself in its own files is true, and said in one way: extras, versions, workflow, guide."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Run

import rposst_opt as ro

ROOT = Path(__file__).parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: dict[str, Any] = PYPROJECT["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NOT_FREE = {"gurobi", "mosek"}
ALL = "all"
SOURCES = sorted([*ROOT.glob("rposst_opt/**/*.py"), *ROOT.glob("formulations/**/*.py")])
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()


def read_yaml(path: str) -> dict[Any, Any]:
    content = yaml.safe_load((ROOT / path).read_text())
    assert isinstance(content, dict)
    return content


def distribution(requirement: str) -> str:
    """The name of what is required, as package indexes write it."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


@cache
def distributions_of_packages() -> Mapping[str, list[str]]:
    """Which distributions brought a package that can be imported; it takes a look into all of them."""
    return packages_distributions()


# Extras


def test_all_has_every_extra_that_is_free_and_no_other() -> None:
    [itself] = EXTRAS[ALL]
    named = re.fullmatch(r"rposst-opt\[(.*)\]", itself)
    assert named is not None
    assert sorted(named[1].split(",")) == sorted(EXTRAS.keys() - NOT_FREE - {ALL})


def test_no_extra_has_what_comes_along_anyway() -> None:
    core = {distribution(requirement) for requirement in PROJECT["dependencies"]}
    for extra, requirements in EXTRAS.items():
        assert not core & {distribution(requirement) for requirement in requirements}, extra


def test_a_package_has_the_same_bounds_in_every_extra() -> None:
    bounds: dict[str, set[str]] = {}
    for requirement in (one for requirements in EXTRAS.values() for one in requirements):
        bounds.setdefault(distribution(requirement), set()).add(requirement)
    assert [several for several in bounds.values() if len(several) > 1] == []


@pytest.mark.parametrize("backend", list(ro.BACKENDS))
def test_the_extra_that_a_backend_names_brings_what_it_requires(backend: str) -> None:
    capabilities = ro.BACKENDS[backend].capabilities
    requirements = PROJECT["dependencies"] if capabilities.extra is None else EXTRAS[capabilities.extra]
    brought = {distribution(requirement) for requirement in [*requirements, *PROJECT["dependencies"]]}
    known = distributions_of_packages()
    for package in capabilities.requires:
        names = known.get(package.split(".")[0], [package])
        assert brought & {distribution(name) for name in names} or came_along(names, brought), package


def came_along(names: list[str], brought: set[str]) -> bool:
    """Whether something that is brought requires one of these in turn: CVXPY brings solvers."""
    for name in brought:
        try:
            further = {distribution(one) for one in requires(name) or [] if "extra ==" not in one}
        except PackageNotFoundError:
            continue
        if further & {distribution(one) for one in names}:
            return True
    return False


def extras_named_in(text: str) -> set[str]:
    """The extras in commands such as ``pip install 'rposst-opt[a,b]'`` and ``pip install .[a]``."""
    groups: list[str] = re.findall(r"(?:rposst-opt|[\s'\"`]\.)\[([a-z][a-z,-]*)\]", text)
    return {name for group in groups for name in group.split(",")}


def extras_in_calls(path: Path) -> set[str]:
    """The extras that code passes on by name, as in ``Capabilities(extra="solvers")``."""
    keywords = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.keyword)]
    values = [keyword.value for keyword in keywords if keyword.arg == "extra"]
    return {value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)}


@pytest.mark.parametrize("path", [*SOURCES, *DOCUMENTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_extra_that_is_named_can_be_installed(path: Path) -> None:
    named = extras_named_in(path.read_text()) | (extras_in_calls(path) if path.suffix == ".py" else set())
    assert named <= EXTRAS.keys()


def test_extras_are_found_where_they_are_named() -> None:
    assert extras_named_in("pip install 'rposst-opt[pages,parrots]', or `pip install .[gurobi]`; x[.[0]]") == {
        "pages",
        "parrots",
        "gurobi",
    }
    assert "solvers" in extras_in_calls(ROOT / "formulations/convex_solvers.py")
    assert {"solvers", "kmeans", "cluster"} <= extras_named_in((ROOT / "docs/reference/backends.md").read_text())


def test_the_documentation_lists_every_extra() -> None:
    table = (ROOT / "docs/reference/install.md").read_text().split("| extra | brings | for |\n")[1].split("\n\n")[0]
    first_cells = [row.split("|")[1] for row in table.splitlines()[1:]]
    assert sorted(re.findall(r"`([a-z]+)`", " ".join(first_cells))) == sorted(EXTRAS)


def imported_packages(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.split(".")[0]


def test_every_package_that_the_code_imports_is_declared() -> None:
    requirements = [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]
    declared = {distribution(requirement) for requirement in requirements}
    ours = {"rposst_opt", "formulations"}
    known = distributions_of_packages()
    for path in SOURCES:
        for package in set(imported_packages(path)) - sys.stdlib_module_names - ours:
            names = {distribution(name) for name in known.get(package, [package])}
            assert names & declared or came_along(sorted(names), declared), f"{path.name} imports {package}"


# Versions of Python


def versions_in_classifiers() -> list[str]:
    pattern = r"Programming Language :: Python :: (3\.\d+)"
    found = [re.fullmatch(pattern, classifier) for classifier in PROJECT["classifiers"]]
    return [match[1] for match in found if match is not None]


def test_the_oldest_version_of_python_is_said_once() -> None:
    oldest = versions_in_classifiers()[0]
    assert PROJECT["requires-python"] == f">={oldest}"
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert f"Python {oldest} or newer" in (ROOT / "README.md").read_text()
    assert f"Python {oldest} or newer" in (ROOT / "Makefile").read_text()


def test_the_workflow_runs_the_script_on_every_version_that_is_promised() -> None:
    workflow = read_yaml(".github/workflows/ci.yml")
    [job] = workflow["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == versions_in_classifiers()
    assert workflow["permissions"] == {"contents": "read"}
    [setup] = [step for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python@")]
    assert setup["with"]["python-version"] == "${{ matrix.python }}"
    [run] = [step for step in job["steps"] if "run" in step]
    assert run["run"] == ".ci/run"
    assert run["env"] == {"PYTHON": "python${{ matrix.python }}"}


def test_the_script_and_make_take_the_python_that_they_are_given() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert "make test\n" in script and "make try-guides\n" in script and "export PYTHON=${PYTHON:-python3}" in script
    plan = subprocess.run(
        ["make", "--dry-run", "--always-make", ".venv/core"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHON": "python-of-mine"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "python-of-mine -m venv .venv" in plan.stdout


# Commands


def targets_of_make() -> dict[str, str]:
    """The targets that are for people, and what they need."""
    lines: list[tuple[str, str]] = re.findall(r"^([a-z-]+):(.*?)  ## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return dict(lines)


def test_the_demo_needs_the_core_alone_and_the_tests_everything() -> None:
    needs = targets_of_make()
    assert needs["demo"].split() == ["$(VENV)/core"]
    assert all("$(VENV)/installed" in needs[target] for target in ("lint", "typecheck", "pytest", "release-check"))


@pytest.mark.parametrize(
    "document", ["README.md", "CONTRIBUTING.md", ".github/pull_request_template.md", ".pre-commit-config.yaml"]
)
def test_every_make_command_in_a_document_exists(document: str) -> None:
    commands: list[str] = re.findall(r"(?:`|    |: )make (?:PYTHON=\S+ )?([a-z-]+)", (ROOT / document).read_text())
    assert commands
    assert set(commands) <= targets_of_make().keys()


def test_hooks_run_what_ci_runs() -> None:
    configuration = read_yaml(".pre-commit-config.yaml")
    [repository] = configuration["repos"]
    stages = {hook["entry"].removeprefix("make "): hook["stages"] for hook in repository["hooks"]}
    assert repository["repo"] == "local"
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in repository["hooks"])
    assert stages.keys() == set(targets_of_make()["test"].split())
    installed = set(configuration["default_install_hook_types"])
    assert installed == {stage for each in stages.values() for stage in each}
    assert stages["pytest"] == ["pre-push"]  # they take too long for every commit


def test_what_make_builds_is_ignored_by_git_and_removed_by_make_clean() -> None:
    makefile = (ROOT / "Makefile").read_text()
    removed = re.search(r"^\trm -rf (\.venv .*)$", makefile, re.MULTILINE)
    assert removed is not None
    environments = set(re.findall(r"\.venv(?:-[a-z]+)?", makefile))
    assert environments <= set(removed[1].split())
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    assert set(removed[1].split()) <= ignored


# Citation


def test_the_citation_has_this_version() -> None:
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == ro.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["title"] == PROJECT["name"]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]


def test_the_changelog_begins_with_what_is_not_released_and_then_has_this_version_with_its_day() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = read_yaml("CITATION.cff")["date-released"]
    assert headings[:2] == ["[Unreleased]", f"[{ro.__version__}] - {released}"]


def test_the_citation_and_the_readme_cite_the_same_paper() -> None:
    [paper] = read_yaml("CITATION.cff")["references"]
    readme = " ".join((ROOT / "README.md").read_text().replace("> ", "").split())
    authors = ", ".join(f"{author['given-names']} {author['family-names']}" for author in paper["authors"])
    assert f"{authors}. *{paper['title']}.*" in readme


# The guide


def rows_of_the_guide(text: str) -> dict[str, str]:
    """What can be added, and the row that says how."""
    section = text.split("## Where a new thing goes\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    return {row.split(" | ")[0].removeprefix("| "): row for row in rows}


def missing_paths(rows: Mapping[str, str]) -> list[str]:
    """The files and folders that rows name and that do not exist."""
    quoted: list[str] = re.findall(r"`([^`]+)`", " ".join(rows.values()))
    paths = [name for name in quoted if "/" in name or name.endswith((".py", ".toml", ".md"))]
    return [path for path in paths if not (ROOT / path).exists()]


def test_the_guide_says_where_each_new_thing_goes_and_every_place_exists() -> None:
    rows = rows_of_the_guide(CONTRIBUTING)
    kinds = ("loss", "measure", "backend", "domain", "method", "section", "instance")
    assert [kind for kind in kinds if not any(kind in row for row in rows)] == []
    assert missing_paths(rows) == []


def test_a_planted_path_that_does_not_exist_is_told() -> None:
    planted = CONTRIBUTING.replace("`rposst_opt/losses.py`", "`rposst_opt/parrots.py`", 1)
    assert missing_paths(rows_of_the_guide(planted)) == ["rposst_opt/parrots.py"]


def has_table(path: Path, table: str) -> bool:
    """Whether a file, or some file of a folder, defines a table."""
    files = path.glob("*.py") if path.is_dir() else [path]
    return any(re.search(rf"^{table}\b.* = ", file.read_text(), re.MULTILINE) for file in files)


def test_every_table_that_the_guide_names_is_where_it_says() -> None:
    named: dict[str, str] = {}
    for row in rows_of_the_guide(CONTRIBUTING).values():
        files: list[str] = re.findall(r"`([\w/]+\.py)`", row)
        tables: list[tuple[str, str]] = re.findall(r"table `([A-Z_]+)`(?: of `([\w/.]+)`| there)", row)
        named |= {table: place or files[0] for table, place in tables}
    assert named.keys() >= {"LOSSES", "MEASURES", "OWN_BACKENDS", "DOMAINS", "METHODS", "INSTANCES"}
    assert [table for table, place in named.items() if not has_table(ROOT / place, table)] == []


def test_links_and_files_of_the_guide_exist() -> None:
    paths: list[str] = re.findall(r"`((?:tests|rposst_opt|formulations)/[\w/.]+)`", CONTRIBUTING)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    commands: list[str] = re.findall(r"\btests/\w+\.py", CONTRIBUTING)
    assert [path for path in commands if not (ROOT / path).is_file()] == []


# Templates of the forge


@pytest.mark.parametrize("name", ["bug", "feature", "wrong-answer"])
def test_issue_forms_are_whole(name: str) -> None:
    form = read_yaml(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert form["name"] and form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    kinds = {"markdown", "textarea", "input", "dropdown", "checkboxes"}
    assert {field["type"] for field in form["body"]} <= kinds


def test_forms_ask_for_commands_that_exist(rposst: Run) -> None:
    form = (ROOT / ".github/ISSUE_TEMPLATE/wrong-answer.yml").read_text()
    assert "rposst agree results.csv --size … --json" in form and "rposst backends --json" in form
    for command in ("agree", "backends"):
        assert "--json" in rposst(command, "--help").out


# What is distributed


def faults_of(*, wheel: list[str], source: list[str], files: list[str]) -> list[str]:
    spec = spec_from_file_location("check_distributions", ROOT / ".ci/check_distributions.py")
    assert spec is not None and spec.loader is not None
    check = module_from_spec(spec)
    spec.loader.exec_module(check)
    found: list[str] = check.faults(wheel=wheel, source=source, files=files)
    return found


def test_a_fault_in_a_distribution_is_told() -> None:
    ends = ("py.typed", "forecast.csv", "samples/results.csv", "page.html", "page.js", "page.css")
    packages = [f"rposst_opt/{end}" for end in ends]
    files = ["README.md", *packages]
    metadata = "rposst_opt-0.2.0.dist-info/METADATA"
    assert faults_of(wheel=[*packages, metadata], source=[*files, "PKG-INFO"], files=files) == []
    assert faults_of(wheel=[name for name in packages if "forecast" not in name], source=files, files=files) == [
        "the wheel lacks rposst_opt/forecast.csv",
        "the wheel has no file that ends in forecast.csv",
    ]
    assert faults_of(wheel=[*packages, "tests/oracles.py"], source=packages, files=files) == [
        "the source distribution lacks README.md",
        "the wheel has tests/oracles.py",
    ]
