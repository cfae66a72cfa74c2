"""Which way imports point, and how large things are: read from the source, so that a bent arrow is told."""

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import rposst_opt as ro

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*ROOT.glob("rposst_opt/**/*.py"), *ROOT.glob("formulations/**/*.py")])

# A room is a folder of the package; the root is a room too. Each imports only from rooms in the lines above its own.
LAYERS = (
    {"values"},
    {"root"},
    {"solvers", "backends", "checking"},  # who checks a proof knows no solver
    {"referee"},  # it asks solvers, by their backends
    {"files"},
    {"unseen"},
    {"fuzzing"},  # it runs trials of the referee as `unseen` runs its own
    {"reports"},
    {"experiments"},
    {"cli", "sklearn"},  # the doors: nothing imports them
)
IN_THE_CLI = "rposst_opt.__main__"  # where the command begins: it stands at the root, and belongs to the last room
FORMULATIONS_MAY_IMPORT = {"rposst_opt.solvers.exact", "rposst_opt.solvers.simultaneous"}  # besides the root
MOST_MODULES_AT_THE_ROOT = 17
MOST_LINES_OF_A_FUNCTION, MOST_LINES_OF_A_FILE = 60, 450
EXCUSE = "# Long because "

# Where packages may be imported: a folder with all below it, or a single module.
HOMES = {
    "numba": {"rposst_opt.solvers.kernels.compiling", "rposst_opt.solvers.kernels.entries"},
    "cvxpy": {"formulations.convex"},
    "pulp": {"formulations.milp"},
    "matplotlib": {
        "rposst_opt.experiments.figures",
        "rposst_opt.reports.anytime",
        "rposst_opt.reports.looks",
        "rposst_opt.reports.plots",
    },
    "plotly": {"rposst_opt.reports.pages.page"},
    "jinja2": {"rposst_opt.reports.pages.page"},
    "rich": {"rposst_opt.cli"},
    "typer": {"rposst_opt.cli"},
    "narwhals": {"rposst_opt.files.formats"},
    "openpyxl": {"rposst_opt.files.formats"},
    "pyarrow": {"rposst_opt.files.formats"},
    "zstandard": {"rposst_opt.files.compression", "rposst_opt.files.inspect_logs"},
    "cloudpickle": {"rposst_opt.referee"},
    "joblib": {"rposst_opt.unseen.runner"},
    "distributed": {"rposst_opt.solvers.cluster"},
    "sklearn": {"rposst_opt.sklearn", "rposst_opt.solvers.baselines"},
    "pyspiel": {"rposst_opt.experiments.domains.leduc"},
    "open_spiel": {"rposst_opt.experiments.domains.leduc"},
    "axelrod": {"rposst_opt.experiments.domains.dilemma"},
    "inspect_ai": set(),  # logs are read without whoever wrote them
    "lm_eval": set(),
}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in SOURCES}
FRONT_PAGE = "rposst_opt"


def room_of(module: str) -> str:
    """The folder of a module of the package; the root is one."""
    if module == IN_THE_CLI:
        return "cli"
    path = MODULES[module].relative_to(ROOT / "rposst_opt")
    return "root" if len(path.parts) == 1 else path.parts[0]


@functools.cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """Everything in the tree of a source; nobody changes it, so that it is parsed once for all tests."""
    return tuple(ast.walk(ast.parse(source)))


@functools.cache
def imports_of(source: str) -> frozenset[str]:
    """All that a file imports, each name as a module and with what is taken from it."""
    found, front_page = set(), {FRONT_PAGE}
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            front_page |= {alias.asname for alias in node.names if alias.name == FRONT_PAGE and alias.asname}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None, "relative imports hide where they point"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    for node in nodes_of(source):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in front_page:
            found.add(f"{FRONT_PAGE}.{node.attr}")
    return frozenset(found)


def homes_of_public_names() -> dict[str, str]:
    """The modules that the package's front page takes its names from, when they are asked for."""
    modules = {f"{FRONT_PAGE}.{name}": f"{FRONT_PAGE}.{home}" for name, home in ro._MODULES.items()}
    return modules | {f"{FRONT_PAGE}.{name}": f"{FRONT_PAGE}.{home}" for name, home in ro._HOME_OF.items()}


def modules_imported_by(source: str) -> set[str]:
    """Which of our modules a file imports, also by way of the front page, which itself has nothing of its own."""
    homes = homes_of_public_names()
    return {homes.get(name, name) for name in imports_of(source)} & (MODULES.keys() - {FRONT_PAGE})


def imports_between_modules() -> dict[str, set[str]]:
    """Our modules, and which of ours each imports."""
    return {module: modules_imported_by(path.read_text()) for module, path in MODULES.items() if module != FRONT_PAGE}


def bent_arrows(imports: Mapping[str, set[str]]) -> list[str]:
    """Imports that point from a room to one that does not stand above it."""
    layer_of = {room: number for number, layer in enumerate(LAYERS) for room in layer}
    bent = []
    for module, imported in imports.items():
        for name in sorted(imported):
            if module.startswith("formulations"):
                free = name.startswith("formulations") or name in FORMULATIONS_MAY_IMPORT or room_of(name) == "root"
            elif name.startswith("formulations"):
                free = False
            else:
                mine, its = room_of(module), room_of(name)
                free = mine == its or layer_of[its] < layer_of[mine]
            if not free:
                bent.append(f"{module} imports {name}")
    return bent


def circles(imports: Mapping[str, set[str]]) -> list[str]:
    """Modules that import each other, in one room or in several."""
    left = {module: set(imported) for module, imported in imports.items()}
    while free := [module for module, imported in left.items() if not imported & left.keys()]:
        for module in free:
            del left[module]
    return sorted(left)


def test_rooms_import_one_way() -> None:
    assert bent_arrows(imports_between_modules()) == []


def test_no_modules_import_each_other() -> None:
    assert circles(imports_between_modules()) == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("rposst_opt.values.showing", "rposst_opt.problem"),
        ("rposst_opt.problem", "rposst_opt.backends"),
        ("rposst_opt.solvers.exact", "rposst_opt.backends"),
        ("rposst_opt.backends", "rposst_opt.solvers.exact"),
        ("rposst_opt.checking.hitting_sets", "rposst_opt.solvers.exact"),
        ("rposst_opt.solvers.exact", "rposst_opt.checking.hitting_sets"),
        ("rposst_opt.referee.agreement", "rposst_opt.files.tables"),
        ("rposst_opt.files.tables", "rposst_opt.reports.wording"),
        ("rposst_opt.reports.analysis", "rposst_opt.experiments.methods"),
        ("rposst_opt.unseen.runner", "rposst_opt.cli"),
        ("rposst_opt.unseen.validation", "rposst_opt.sklearn"),
        ("rposst_opt.referee.agreement", "rposst_opt.fuzzing.families"),
        ("rposst_opt.cli.validating", "rposst_opt.sklearn.selector"),
        ("rposst_opt.sklearn.selector", "rposst_opt.cli.options"),
        ("rposst_opt.solvers.kernels.response", "formulations.epigraph"),
        ("formulations.convex", "rposst_opt.backends"),
        ("formulations.convex", "rposst_opt.solvers.regret_matching"),
    ],
)
def test_a_planted_import_that_points_the_wrong_way_is_told(module: str, imported: str) -> None:
    imports = imports_between_modules()
    assert imported in MODULES
    imports[module].add(imported)
    assert bent_arrows(imports) == [f"{module} imports {imported}"]


@pytest.mark.parametrize(
    "line",
    [
        "import rposst_opt.backends",
        "from rposst_opt import backends",
        "from rposst_opt.backends import solve",
        "from rposst_opt import solve",
        "import rposst_opt\nrposst_opt.solve(problem)",
        "import rposst_opt as ro\n\ndef helper(problem):\n    return ro.solve(problem)",
        "if TYPE_CHECKING:\n    from rposst_opt import BACKENDS",
        "def helper():\n    from rposst_opt.backends import solve",
    ],
)
def test_an_import_is_seen_in_every_form(line: str) -> None:
    assert modules_imported_by(line) == {"rposst_opt.backends"}


def test_planted_imports_in_a_circle_are_told() -> None:
    imports = imports_between_modules()
    assert "rposst_opt.results" in imports["rposst_opt.problem"]
    imports["rposst_opt.results"].add("rposst_opt.problem")
    assert {"rposst_opt.problem", "rposst_opt.results"} <= set(circles(imports))


def test_every_room_has_its_layer_and_the_root_stays_small() -> None:
    rooms = {room_of(module) for module in MODULES if module.startswith("rposst_opt")}
    assert rooms == {room for layer in LAYERS for room in layer}
    assert len(list((ROOT / "rposst_opt").glob("*.py"))) <= MOST_MODULES_AT_THE_ROOT


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_heavy_packages_stay_at_home(path: Path) -> None:
    module = module_name(path)
    for package, homes in HOMES.items():
        if any(name.split(".")[0] == package for name in imports_of(path.read_text())):
            at_home = any(f"{module}.".startswith(f"{home}.") for home in homes)
            assert at_home, f"{package} is imported by {module}"


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_only_the_command_line_prints(path: Path) -> None:
    calls = [node.func for node in nodes_of(path.read_text()) if isinstance(node, ast.Call)]
    prints = any(isinstance(call, ast.Name) and call.id == "print" for call in calls)
    assert not prints or module_name(path).startswith("rposst_opt.cli")


def too_long(path: Path) -> list[str]:
    """What is longer than can be read in one breath, and has no comment that says why."""
    text = path.read_text()
    lines = text.splitlines()
    excused = any(line.startswith(EXCUSE) for line in lines)  # a function's excuse stands further in
    found = [path.name] if len(lines) > MOST_LINES_OF_A_FILE and not excused else []
    for node in nodes_of(text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            own = lines[node.lineno - 1 : node.end_lineno]
            if len(own) > MOST_LINES_OF_A_FUNCTION and not any(line.strip().startswith(EXCUSE) for line in own):
                found.append(node.name)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_functions_and_files_can_be_read_in_one_breath(path: Path) -> None:
    assert too_long(path) == []


def test_what_is_too_long_is_told_unless_it_says_why(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    body = [f"    x{line} = {line}" for line in range(MOST_LINES_OF_A_FUNCTION)]
    path.write_text("\n".join(["def endless():", *body]) + "\n")
    assert too_long(path) == ["endless"]
    path.write_text("\n".join(["def endless():", f"    {EXCUSE}it must be.", *body]) + "\n")
    assert too_long(path) == []
    many = "x = 1\n" * (MOST_LINES_OF_A_FILE + 1)
    path.write_text(many)
    assert too_long(path) == ["long.py"]
    path.write_text(f"{many}def brief():\n    {EXCUSE}it must be.\n    pass\n")
    assert too_long(path) == ["long.py"]
    path.write_text(f"{EXCUSE}it must be.\n{many}")
    assert too_long(path) == []


def public_names() -> Iterator[str]:
    for node in nodes_of((ROOT / "rposst_opt/__init__.py").read_text()):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("rposst_opt."):
            for alias in node.names:
                assert alias.asname == alias.name
                yield alias.name


def test_every_public_name_can_be_imported_and_is_declared_for_type_checkers() -> None:
    import rposst_opt as ro

    for name in ro.__all__:
        assert getattr(ro, name) is not None
    assert set(public_names()) == set(ro.__all__) - {"__version__"}
    assert set(dir(ro)) == set(ro.__all__)
