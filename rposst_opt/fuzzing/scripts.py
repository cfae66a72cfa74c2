"""A contradiction without this package: a few lines of Python that need nothing but the solver's own.

A script reads the program, has it solved with the options that were used, prints what the solver claims and what a
feasible point reaches, and ends with code 3 if these contradict each other; Python itself ends with 1 if it fails.
There is one for every way in which this package calls solvers; solvers of other packages, and our own, have none.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rposst_opt.backends import entry_of
from rposst_opt.contract import Backend
from rposst_opt.problem import Need, Problem

MODEL, STATED = "model.mps", "model.json"
SHOWN = 3  # how a script ends that shows the contradiction: not as one that fails


@dataclass(frozen=True)
class Script:
    """What a solver's developers can run: the script, what it needs, the files that it reads and its arguments."""

    text: str
    needs: str
    files: Mapping[str, str]
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Truth:
    """What a solver is held against, in the units of its program."""

    reached: float  # by a feasible point
    allowed: float  # by how much a claim may differ
    cases: tuple[int, ...]  # that are chosen there


def script_for(backend: Backend, problem: Problem, truth: Truth, title: str) -> Script | None:
    """The script that shows what this backend's solver says of this problem; None where there is none."""
    for kind in type(backend).__mro__:
        write = WRITERS.get((kind.__module__, kind.__name__))
        if write is not None:
            return write(backend, problem.stated, truth, title)
    return None


def model_files(problem: Problem) -> dict[str, str]:
    """The mixed-integer program as files that any solver reads; none where it is no linear one."""
    entry = entry_of("pulp-highs")
    if entry.capabilities.why_not(problem) is not None:
        return {}
    texts = {}
    with tempfile.TemporaryDirectory(prefix="rposst-") as folder:
        for name in (MODEL, "model.lp"):
            entry.module_attribute("write_model")(problem.stated, Path(folder) / name)
            texts[name] = (Path(folder) / name).read_text()
    return texts


def _whole(title: str, needs: str, body: str, truth: Truth) -> str:
    chosen = ", ".join(f"y_{case}" for case in truth.cases)
    return f'''"""{title}

It needs {needs}. It ends with code {SHOWN} if the contradiction shows, and with 0 if it does not.
"""

{body}
reached, allowed = {float(truth.reached)!r}, {float(truth.allowed)!r}
print("a feasible point, with {chosen} = 1, has the objective", reached)
raise SystemExit(0 if all(abs(claim - reached) <= allowed for claim in claims) else {SHOWN})
'''


# Mixed-integer programs in files

HIGHS = """import highspy

solver = highspy.Highs()
for option, value in {options!r}.items():
    solver.setOptionValue(option, value)
solver.readModel("model.mps")
solver.run()
claims = solver.getInfo().objective_function_value, solver.getInfo().mip_dual_bound
print("HiGHS", solver.version(), solver.modelStatusToString(solver.getModelStatus()), "objective, bound:", *claims)"""

SCIP = """import pyscipopt

solver = pyscipopt.Model()
solver.hideOutput()
solver.setParam("limits/gap", 0.0)
solver.readProblem("model.mps")
solver.optimize()
claims = solver.getObjVal(), solver.getDualbound()
print("SCIP", solver.version(), solver.getStatus(), "objective, bound:", *claims)"""

GUROBI = """import gurobipy

solver = gurobipy.read("model.mps")
for option, value in {options!r}.items():
    solver.setParam(option, value)
solver.optimize()
claims = solver.ObjVal, solver.ObjBound
print("Gurobi", gurobipy.gurobi.version(), solver.Status, "objective, bound:", *claims)"""

CBC = """import re
import subprocess
import sys

command = sys.argv[1] if len(sys.argv) > 1 else "cbc"
options = "-ratio 0 -allow 0 -timeMode elapsed -branch -printingOptions all -solution solution.txt"
subprocess.run([command, "model.mps", *options.split()], check=True, stdout=subprocess.DEVNULL)
with open("solution.txt") as file:
    said = file.readline().strip()
claims = [float(number) for number in re.findall(r"objective value (.*)", said)]
print("CBC", said)"""


def _of_a_file(backend: Any, problem: Problem, truth: Truth, title: str) -> Script:
    module = entry_of("pulp-highs").module_attribute
    package = "CBC's command, `cbc`" if backend.solver == "CBC" else module("SOLVERS")[backend.solver].package
    zero_gap = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0}
    body = {
        "HIGHS": HIGHS.format(options={"output_flag": False, **zero_gap, **module("HIGHS_OPTIONS")}),
        "SCIP": SCIP,
        "GUROBI": GUROBI.format(options={"MIPGap": 0, "MIPGapAbs": 0, "FeasibilityTol": 1e-9, "IntFeasTol": 1e-9}),
        "CBC": CBC,
    }[backend.solver]
    needs = f"{package} and nothing else"
    arguments = (module("SOLVERS")["CBC"].make(None, None, Path("log")).path,) if backend.solver == "CBC" else ()
    return Script(_whole(title, needs, body, truth), needs, {}, arguments)


# Programs as arrays

SCIPY = """import json

import scipy

with open("model.json") as file:
    stated = json.load(file)
rules = scipy.optimize.LinearConstraint(stated["rows"], stated["low"], stated["high"])
bounds = scipy.optimize.Bounds(stated["lower"], stated["upper"])
found = scipy.optimize.milp(
    stated["cost"], integrality=stated["integer"], bounds=bounds, constraints=rules, options={"mip_rel_gap": 0.0}
)
claims = found.fun, found.mip_dual_bound
print("SciPy", scipy.__version__, found.message, "objective, bound:", *claims)"""

CVXPY = """import json

import cvxpy as cp
import numpy as np

with open("model.json") as file:
    stated = {{name: np.array(value) for name, value in json.load(file).items()}}
scores, likely = stated["full_scores"], stated["probabilities"]
claims = []
for cases in stated["sets"]:
    w, losses = cp.Variable(len(cases), nonneg=True), cp.Variable(len(scores))
    errors = (stated["results"][cases].T @ w)[stated["policies"]] - scores
    rules, value = [cp.sum(w) == 1], 0.0
    rules += [losses >= c0 + c1 * errors + (c2 * cp.square(errors) if c2 else 0) for c0, c1, c2 in stated["pieces"]]
    for share, tail in zip(stated["shares"], stated["tail_fractions"]):
        if tail == 1:
            value += share * (likely @ losses)
            continue
        level = cp.Variable()
        excess = cp.Variable(len(scores), nonneg=True) if tail > 0 else np.zeros(len(scores))
        value += share * level + (share / tail * (likely @ excess) if tail > 0 else 0)
        rules.append(level + excess >= losses)
{choice}    program = cp.Problem(cp.Minimize(value), rules)
    program.solve(solver={solver!r}, **{options!r})
    claims.append(program.value)
claims = [min(claims)]
print({solver!r}, "by CVXPY", cp.__version__, program.status, "objective:", *claims)"""

CHOICE = """    y = cp.Variable(len(stated["choosable"]), boolean=True)
    rules += [w[stated["choosable"]] <= y, cp.sum(y) == {size}]
"""


def _of_arrays(backend: Any, problem: Problem, truth: Truth, title: str) -> Script:
    arrays = entry_of("scipy-milp").module_attribute("selection_arrays")(problem)
    names = ("cost", "low", "high", "lower", "upper", "integer")
    stated = {"rows": arrays.rows.toarray().tolist(), **{name: getattr(arrays, name).tolist() for name in names}}
    needs = "scipy and nothing else"
    return Script(_whole(title, needs, SCIPY, truth), needs, {STATED: json.dumps(stated)})


def _of_cones(backend: Any, problem: Problem, truth: Truth, title: str, *, whole: bool) -> Script | None:
    """In CVXPY, for losses that are the largest of their pieces."""
    module = entry_of("cvxpy-clarabel").module_attribute
    epigraph = module("make_epigraph")(problem)
    if Need.NOISE in problem.needs or not (epigraph.pieces.is_polyhedral or len(epigraph.pieces.coefficients) == 1):
        return None
    solver = module("SOLVERS")[backend.solver]
    eligible = list(problem.eligible_cases)
    stated = {name: getattr(epigraph, name).tolist() for name in EPIGRAPH}
    stated["pieces"] = epigraph.pieces.coefficients.tolist()
    stated["sets"] = [eligible] if whole else [sorted(cases) for cases in problem.tuples()]
    stated["choosable"] = [eligible.index(case) for case in problem.selectable_cases]
    own = getattr(backend, "own_options", False)
    options = solver.with_integers(None) if whole else {} if own else dict(solver.options)
    choice = CHOICE.format(size=problem.size) if whole else ""
    needs = f"cvxpy and {solver.package}"
    body = CVXPY.format(solver=backend.solver, options=options, choice=choice)
    return Script(_whole(title, needs, body, truth), needs, {STATED: json.dumps(stated)})


def _of_each_set(backend: Any, problem: Problem, truth: Truth, title: str) -> Script | None:
    return _of_cones(backend, problem, truth, title, whole=False)


def _of_all_sets(backend: Any, problem: Problem, truth: Truth, title: str) -> Script | None:
    return _of_cones(backend, problem, truth, title, whole=True)


EPIGRAPH = ("results", "policies", "full_scores", "probabilities", "shares", "tail_fractions")
WRITERS: dict[tuple[str, str], Callable[[Any, Problem, Truth, str], Script | None]] = {
    ("formulations.milp", "MilpSelection"): _of_a_file,
    ("formulations.direct", "DirectMilp"): _of_arrays,
    ("formulations.convex", "ConvexEnumeration"): _of_each_set,
    ("formulations.convex", "ConvexSelection"): _of_all_sets,
}
