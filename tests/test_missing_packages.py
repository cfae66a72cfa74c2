"""Without an optional package, one line says which one is missing and how to get it, before anything is solved."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
from forks import Forks

# What most runs import, and none of it imports a package that a test hides; save pandas, to which pyarrow is welcome.
IMPORTED = ("numba", "numpy", "pandas", "rich.console", "scipy.optimize", "typer")

PICTURES = "pictures need matplotlib, which is not installed: pip install 'rposst-opt[figures]'"
PAGES = {
    ("jinja2",): "a page needs jinja2, which is not installed: pip install 'rposst-opt[pages]'",
    ("plotly",): "a page needs plotly, which is not installed: pip install 'rposst-opt[pages]'",
    (
        "jinja2",
        "markupsafe",
        "plotly",
    ): "a page needs plotly and jinja2, which are not installed: pip install 'rposst-opt[pages]'",
}

GATHER_AND_RENDER = """
import rposst_opt as ro
from rposst_opt.reports.pages.report import gather
report = gather(ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1), backends=[])
print(report.test.cases)
from rposst_opt.reports.pages.report_page import report_page
try:
    report_page(report)
except ro.BackendUnavailable as error:
    print(error)
"""

SOLVE_NOTHING = """
import sys
import rposst_opt.backends

def refuse(*arguments, **options):
    raise AssertionError("something is solved")

rposst_opt.backends.solve = refuse
from rposst_opt.__main__ import main
for arguments in {commands!r}:
    sys.argv = ["rposst", *arguments]
    try:
        main()
    except SystemExit as ended:
        print(ended.code)
"""


HIDING = """
import sys
for package in {packages!r}:
    assert package not in sys.modules, f"{{package}} was imported before it could be hidden"
    sys.modules[package] = None
"""

RunWithout = Callable[[Sequence[str], str, Path], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks(*IMPORTED) as forks:
        yield forks


@pytest.fixture
def run_without(forks: Forks) -> RunWithout:
    """Run some Python in a new process that cannot find these packages."""

    def run(packages: Sequence[str], code: str, folder: Path) -> subprocess.CompletedProcess[str]:
        code = HIDING.format(packages=list(packages)) + code
        if "pyarrow" in packages:
            return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
        return forks.run(code, folder=folder)

    return run


@pytest.mark.parametrize(("packages", "message"), PAGES.items())
def test_a_report_is_gathered_without_what_its_page_needs(
    packages: tuple[str, ...], message: str, run_without: RunWithout, tmp_path: Path
) -> None:
    outcome = run_without((*packages, "matplotlib"), GATHER_AND_RENDER, tmp_path)
    assert outcome.stdout.splitlines() == ["(2,)", message], outcome.stderr


@pytest.mark.parametrize(("packages", "message"), PAGES.items())
def test_commands_that_write_pages_say_so_before_they_solve(
    packages: tuple[str, ...], message: str, run_without: RunWithout, tmp_path: Path
) -> None:
    (tmp_path / "results.csv").write_text("test_case,a,b\nx,0,1\ny,1,0\n")
    commands = [("report", "results.csv", "--size", "1", "--out", "page.html"), ("explore", "--out", "page.html")]
    outcome = run_without(packages, SOLVE_NOTHING.format(commands=commands), tmp_path)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "2\n2\n", f"rposst: {message}\n" * 2)
    assert not (tmp_path / "page.html").exists()


def test_the_commands_do_solve_when_nothing_is_missing(run_without: RunWithout, tmp_path: Path) -> None:
    outcome = run_without((), SOLVE_NOTHING.format(commands=[("explore", "--out", "page.html")]), tmp_path)
    assert "something is solved" in outcome.stderr


TABLES = {
    "pyarrow": ("results.parquet", b"PAR1", "a Parquet file needs pyarrow"),
    "openpyxl": ("results.csv", b"", "an Excel file needs openpyxl"),
    "zstandard": ("results.csv.zst", b"\x28\xb5\x2f\xfd", "a .zst file needs zstandard"),
}


@pytest.mark.parametrize("package", TABLES)
def test_formats_of_tables_without_their_packages(package: str, run_without: RunWithout, tmp_path: Path) -> None:
    name, content, message = TABLES[package]
    (tmp_path / name).write_bytes(content)
    options = ("--format", "excel") if package == "openpyxl" else ()
    commands = [("backends", name, "--size", "1", *options)]
    outcome = run_without([package], SOLVE_NOTHING.format(commands=commands), tmp_path)
    assert outcome.stdout == "2\n"
    assert outcome.stderr == f"rposst: {message}, which is not installed: pip install 'rposst-opt[tables]'\n"


def test_frames_of_others_without_narwhals(run_without: RunWithout, tmp_path: Path) -> None:
    code = """
import rposst_opt as ro
try:
    ro.read_results({"case": ["x"], "p": [1.0]})
except ro.BackendUnavailable as error:
    print(error)
"""
    outcome = run_without(["narwhals"], code, tmp_path)
    message = (
        "a DataFrame that is not of pandas needs narwhals, which is not installed: pip install 'rposst-opt[tables]'"
    )
    assert outcome.stdout.splitlines() == [message], outcome.stderr


@pytest.mark.parametrize(
    "statement",
    [
        "from rposst_opt import plots",
        "import rposst_opt as ro; ro.plots",
        "import rposst_opt.reports.plots",
        "import rposst_opt.experiments.figures",
    ],
)
def test_pictures_without_matplotlib(statement: str, run_without: RunWithout, tmp_path: Path) -> None:
    code = f"""
from rposst_opt.errors import BackendUnavailable
try:
    {statement}
except BackendUnavailable as error:
    print(error)
"""
    outcome = run_without(["matplotlib"], code, tmp_path)
    assert outcome.stdout.splitlines() == [PICTURES], outcome.stderr


@pytest.mark.parametrize("package", ["joblib", "matplotlib"])
def test_experiments_need_more_than_the_core(package: str, run_without: RunWithout, tmp_path: Path) -> None:
    commands = [("reproduce", name, "--quick", "--out", "reproduced") for name in ("racing-arrows", "all")]
    outcome = run_without([package], SOLVE_NOTHING.format(commands=commands), tmp_path)
    assert (outcome.returncode, outcome.stdout) == (0, "2\n2\n")
    message = f"experiments need {package}, which is not installed: pip install 'rposst-opt[experiments]'"
    told = [line for line in outcome.stderr.splitlines() if line.startswith("rposst: ")]
    assert told == [f"rposst: {message}"] * 2 and outcome.stderr.splitlines()[-1] == told[-1]
    assert not (tmp_path / "reproduced").exists()


@pytest.mark.parametrize(
    ("hidden", "before", "message"),
    [
        (["sklearn"], "", "TestSelector needs sklearn, which is not installed: pip install 'rposst-opt[sklearn]'"),
        (
            [],
            "import sklearn.utils.validation; del sklearn.utils.validation.validate_data",
            f"TestSelector needs scikit-learn 1.6 or newer, got {version('scikit-learn')}: "
            "pip install 'rposst-opt[sklearn]'",
        ),
    ],
)
def test_a_selector_without_scikit_learn_or_with_an_old_one(
    hidden: Sequence[str], before: str, message: str, run_without: RunWithout, tmp_path: Path
) -> None:
    code = f"""
{before}
from rposst_opt.errors import BackendUnavailable
try:
    from rposst_opt.sklearn import TestSelector
except BackendUnavailable as error:
    print(error)
"""
    outcome = run_without(hidden, code, tmp_path)
    assert outcome.stdout.splitlines() == [message], outcome.stderr
