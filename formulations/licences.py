"""Has a commercial solver a licence here? It is asked once, by a program of two variables."""

import functools
import importlib

from rposst_opt.errors import BackendFailure, LicenceMissing, RposstError

GUROBI_REFUSALS = (10009, 10010)  # "no licence", and "model too large for this one"
MOSEK_REFUSALS = range(1000, 1030)  # its response codes about licences


@functools.cache
def why_no_gurobi() -> str | None:
    """What Gurobi says if there is no licence for it."""
    gurobipy = importlib.import_module("gurobipy")
    try:
        with gurobipy.Env(params={"OutputFlag": 0}) as environment, gurobipy.Model(env=environment) as model:
            one, other = model.addVar(), model.addVar()
            model.addConstr(one + other >= 1)
            model.setObjective(one + 2 * other)
            model.optimize()
    except gurobipy.GurobiError as error:
        return _told(error)
    return None


@functools.cache
def why_no_mosek() -> str | None:
    """What MOSEK says if there is no licence for it."""
    mosek = importlib.import_module("mosek")
    try:
        with mosek.Env() as environment, environment.Task() as task:
            task.appendvars(2)
            task.putvarboundslice(0, 2, [mosek.boundkey.ra] * 2, [0.0] * 2, [1.0] * 2)
            task.putclist([0, 1], [1.0, 2.0])
            task.optimize()
    except mosek.Error as error:
        return _told(error)
    return None


ERRORS = {"gurobipy": "GurobiError", "mosek": "Error"}  # what the packages of such solvers raise
PROBES = {"gurobipy": why_no_gurobi, "mosek": why_no_mosek}  # by the solver's package


def refusals_of(package: str) -> tuple[type[Exception], ...]:
    """What this package raises if it will not solve a program."""
    if package not in ERRORS:
        return ()
    refusal: type[Exception] = getattr(importlib.import_module(package), ERRORS[package])
    return (refusal,)


def as_failure(solver: str, package: str, error: Exception) -> RposstError:
    """Such a refusal, told as what it is: for want of a licence that covers the program, or for another reason."""
    known = GUROBI_REFUSALS if package == "gurobipy" else MOSEK_REFUSALS
    if int(getattr(error, "errno", 0)) in known:
        return LicenceMissing(f"{solver} has no licence for this program: {_told(error)}")
    return BackendFailure(f"{solver} refuses the program: {_told(error)}")


def _told(error: Exception) -> str:
    return " ".join(str(error).split())
