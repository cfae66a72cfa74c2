"""The solvers that CVXPY calls: what each takes, with which options it is run, and what its answers are good for."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

# The bound of these programs comes from branching: cuts hardly raise it, and SCIP spends most of its time on them.
# A few are left, since what takes the place of curved constraints is among them.
SCIP_FEW_CUTS = {"separating/maxroundsroot": 5, "separating/maxrounds": 1}


@dataclass(frozen=True)
class ConvexSolver:
    """What has to be known about a solver that CVXPY calls."""

    package: str  # its import name
    tolerance: float  # what its answers are good for, relative to the scale of the losses
    conic: bool = False  # whether it takes quadratic constraints, and so losses with curvature
    extra: str | None = None  # the extra of this distribution that installs it
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    made_options: Callable[[], Mapping[str, Any]] | None = None  # options that are made when it is first used
    crashes_after: str | None = None  # a package that must not be imported before it
    # From a time limit in seconds, options for programs with integers; None where it takes none, or not with curvature.
    with_integers: Callable[[float | None], dict[str, Any]] | None = None
    bound: Callable[[Any], float] | None = None  # its bound for such a program, from what CVXPY keeps of the run


@functools.cache
def _silent_gurobi() -> Mapping[str, Any]:
    """An environment that does not announce its licence on standard output."""
    import gurobipy

    return {"env": gurobipy.Env(params={"OutputFlag": 0})}


def _scip_with_integers(seconds: float | None) -> dict[str, Any]:
    limit = {} if seconds is None else {"limits/time": seconds}
    # With its own tolerance of 1e-6, cones are off by the root of that.
    exactly = {"limits/gap": 0.0, "numerics/feastol": 1e-9}
    return {"scip_params": {**exactly, **SCIP_FEW_CUTS, "misc/catchctrlc": False, **limit}}


def _gurobi_with_integers(seconds: float | None) -> dict[str, Any]:
    return {"MIPGap": 0.0, **({} if seconds is None else {"TimeLimit": seconds})}


def _mosek_with_integers(seconds: float | None) -> dict[str, Any]:
    limit = {} if seconds is None else {"MSK_DPAR_MIO_MAX_TIME": seconds}
    return {"mosek_params": {"MSK_DPAR_MIO_TOL_REL_GAP": 0.0, **limit}}


SOLVERS: dict[str, ConvexSolver] = {
    "CLARABEL": ConvexSolver(
        "clarabel", 1e-7, conic=True, options={"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    ),
    "HIGHS": ConvexSolver("highspy", 1e-7),
    # Without Anderson acceleration, which now and then keeps SCS from converging on programs of this shape.
    "SCS": ConvexSolver(
        "scs",
        1e-4,
        conic=True,
        options={"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 100_000, "acceleration_lookback": 0},
    ),
    "SCIPY": ConvexSolver("scipy", 1e-7),
    # With its default, adaptive step size OSQP stops short on programs of this shape: its value and its multipliers
    # are out by some hundredths.
    "OSQP": ConvexSolver(
        "osqp",
        1e-3,
        options={
            "rho": 1.0,
            "adaptive_rho": False,
            "eps_abs": 1e-7,
            "eps_rel": 1e-7,
            "max_iter": 50_000,
            "polishing": True,
        },
        crashes_after="pulp",  # see formulations.milp, which loads them in the right order
    ),
    "ECOS": ConvexSolver(
        "ecos", 1e-6, conic=True, extra="solvers", options={"abstol": 1e-10, "reltol": 1e-10, "feastol": 1e-10}
    ),
    "PIQP": ConvexSolver("piqp", 1e-5, extra="solvers", options={"eps_abs": 1e-10, "eps_rel": 1e-10}),
    # Without presolving, so that multipliers come back for the constraints as they were stated.
    "SCIP": ConvexSolver(
        "pyscipopt",
        1e-5,
        extra="solvers",
        options={"scip_params": {"presolving/maxrounds": 0, "propagating/maxroundsroot": 0, "misc/catchctrlc": False}},
        with_integers=_scip_with_integers,
        bound=lambda kept: float(kept["model"].getDualbound()),
    ),
    "GUROBI": ConvexSolver(
        "gurobipy",
        1e-6,
        conic=True,
        extra="gurobi",
        options={"BarConvTol": 1e-10, "BarQCPConvTol": 1e-10, "FeasibilityTol": 1e-9, "OptimalityTol": 1e-9},
        made_options=_silent_gurobi,
        with_integers=_gurobi_with_integers,
        bound=lambda kept: float(kept.ObjBound),
    ),
    "MOSEK": ConvexSolver("mosek", 1e-6, conic=True, extra="mosek", with_integers=_mosek_with_integers),
}
