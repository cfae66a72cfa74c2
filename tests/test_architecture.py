"""Which way imports point: read from the source, so that a bent arrow is told."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("rposst_opt/**/*.py"), *ROOT.glob("formulations/**/*.py")])

# Each module of ours may import only modules that stand before it.
ORDER = [
    "rposst_opt.errors",
    "rposst_opt.losses",
    "rposst_opt.measures",
    "rposst_opt.results",
    "rposst_opt.efficient_test",
    "rposst_opt.problem",
    "rposst_opt.ranking",
    "rposst_opt.instances",
    "rposst_opt.bounds",
    "rposst_opt.certificate",
    "rposst_opt.solution",
    "rposst_opt.forecast",
    "rposst_opt.compilation",
    "rposst_opt.options",
    "rposst_opt.kernels",
    "rposst_opt.kernels.compiling",
    "rposst_opt.kernels.response",
    "rposst_opt.kernels.regret_matching",
    "rposst_opt.kernels.tuple_game",
    "rposst_opt.kernels.swaps",
    "rposst_opt.kernels.hitting_set",
    "rposst_opt.kernels.sampled",
    "rposst_opt.game",
    "rposst_opt.searchers",
    "rposst_opt.exact",
    "rposst_opt.successive_rejects",
    "rposst_opt.sampled",
    "rposst_opt.mixed",
    "rposst_opt.baselines",
    "rposst_opt.local_search",
    "rposst_opt.backends",
    "rposst_opt.iterative",
    "rposst_opt.calibration",
    "rposst_opt.agreement",
    "rposst_opt.analysis",
    "rposst_opt.plots",
    "rposst_opt.io",
    "rposst_opt.words",
    "rposst_opt.terminal",
    "rposst_opt.pages",
    "rposst_opt.pages.page",
    "rposst_opt.pages.explorer",
    "rposst_opt.pages.report",
    "rposst_opt.pages.report_page",
    "rposst_opt.experiments",
    "rposst_opt.experiments.domains.arrows",
    "rposst_opt.experiments.domains.poker",
    "rposst_opt.experiments.domains.leduc",
    "rposst_opt.experiments.domains.passing",
    "rposst_opt.experiments.domains.dilemma",
    "rposst_opt.experiments.domains",
    "rposst_opt.experiments.methods",
    "rposst_opt.experiments.protocol",
    "rposst_opt.experiments.studies",
    "rposst_opt.experiments.runner",
    "rposst_opt.experiments.tables",
    "rposst_opt.experiments.figures",
    "rposst_opt.experiments.reproductions",
    "rposst_opt.experiments.cli",
    "rposst_opt.cli",
    "rposst_opt.__main__",
]

HOMES = {
    "numba": {"rposst_opt.kernels.compiling"},
    "cvxpy": {"formulations.convex"},
    "pulp": {"formulations.milp"},
    "matplotlib": {"rposst_opt.experiments.figures", "rposst_opt.plots"},
    "plotly": {"rposst_opt.pages.page"},
    "jinja2": {"rposst_opt.pages.page"},
    "rich": {"rposst_opt.cli", "rposst_opt.experiments.cli", "rposst_opt.terminal"},
    "typer": {"rposst_opt.cli", "rposst_opt.experiments.cli"},
    "joblib": {"rposst_opt.experiments.runner"},
    "distributed": {"rposst_opt.experiments.runner"},
    "pyspiel": {"rposst_opt.experiments.domains.leduc"},
    "open_spiel": {"rposst_opt.experiments.domains.leduc"},
    "axelrod": {"rposst_opt.experiments.domains.dilemma"},
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_imports_point_backwards_only(path: Path) -> None:
    module = module_name(path)
    if module in ("rposst_opt", "formulations"):
        return
    ours = {name for name in imports_of(path) if name in ORDER}
    if module.startswith("formulations"):
        assert not ours & {"rposst_opt.backends", "rposst_opt.cli", "rposst_opt.io", "rposst_opt.game"}
        return
    assert module in ORDER, f"{module} has no place in the order of imports yet"
    assert all(ORDER.index(name) < ORDER.index(module) for name in ours)


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_nothing_in_the_package_imports_the_formulations(path: Path) -> None:
    if not module_name(path).startswith("formulations"):
        assert not any(name.split(".")[0] == "formulations" for name in imports_of(path))


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_heavy_packages_stay_at_home(path: Path) -> None:
    for package, homes in HOMES.items():
        if any(name.split(".")[0] == package for name in imports_of(path)):
            assert module_name(path) in homes, f"{package} is imported by {module_name(path)}"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_only_the_command_lines_print(path: Path) -> None:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    prints = any(isinstance(call, ast.Name) and call.id == "print" for call in calls)
    assert not prints or module_name(path) in ("rposst_opt.cli", "rposst_opt.experiments.cli")


def test_every_public_name_can_be_imported_and_is_documented() -> None:
    import rposst_opt as ro

    for name in ro.__all__:
        assert getattr(ro, name) is not None
    declared = {
        alias.asname
        for node in ast.walk(ast.parse((ROOT / "rposst_opt/__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("rposst_opt.")
        for alias in node.names
    }
    assert declared == set(ro.__all__) - {"__version__"}
