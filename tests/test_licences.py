"""Solvers that need a licence: one that has none, or one for smaller programs, is told from one that fails."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rposst_opt as ro
from formulations.licences import as_failure, refusals_of, why_no_gurobi, why_no_mosek


class Refusal(Exception):
    """What a solver's package raises."""

    def __init__(self, errno: int, words: str) -> None:
        super().__init__(words)
        self.errno = errno


class Willing:
    """Stands for an environment, a model or a task, and does whatever is asked of it, but for solving."""

    def __init__(self, refusal: Exception | None) -> None:
        self._refusal = refusal

    def __enter__(self) -> "Willing":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments, **options: Willing(self._refusal) if name == "Task" else 1

    def optimize(self) -> None:
        if self._refusal is not None:
            raise self._refusal


def pretend(monkeypatch: pytest.MonkeyPatch, package: str, refusal: Exception | None) -> None:
    """Put a package in the place of the solver's."""
    module: Any = ModuleType(package)
    module.GurobiError = module.Error = Refusal
    module.Env = module.Model = lambda *arguments, **options: Willing(refusal)
    module.boundkey = SimpleNamespace(ra=0)
    monkeypatch.setitem(sys.modules, package, module)
    why_no_gurobi.cache_clear()
    why_no_mosek.cache_clear()


@pytest.fixture(autouse=True)
def forget_what_was_pretended() -> Any:
    yield
    why_no_gurobi.cache_clear()
    why_no_mosek.cache_clear()


@pytest.mark.parametrize(("package", "probe"), [("gurobipy", why_no_gurobi), ("mosek", why_no_mosek)])
def test_a_program_of_two_variables_tells_whether_there_is_a_licence(
    package: str, probe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, package, None)
    assert probe() is None
    pretend(monkeypatch, package, Refusal(10009, "no licence\n was found"))
    assert probe() == "no licence was found"


@pytest.mark.parametrize(
    ("solver", "package", "code", "kind"),
    [
        ("GUROBI", "gurobipy", 10009, ro.LicenceMissing),
        ("GUROBI", "gurobipy", 10010, ro.LicenceMissing),
        ("GUROBI", "gurobipy", 10003, ro.BackendFailure),
        ("MOSEK", "mosek", 1008, ro.LicenceMissing),
        ("MOSEK", "mosek", 1295, ro.BackendFailure),
    ],
)
def test_a_refusal_for_want_of_a_licence_is_told_from_others(
    solver: str, package: str, code: int, kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = Refusal(code, "it says no")
    pretend(monkeypatch, package, error)
    assert refusals_of(package) == (Refusal,)
    told = as_failure(solver, package, error)
    assert type(told) is kind
    assert solver in str(told) and "it says no" in str(told)


def test_solvers_without_licences_refuse_nothing() -> None:
    assert refusals_of("highspy") == ()
