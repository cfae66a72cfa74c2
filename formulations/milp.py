r"""Test cases and weights together, as one mixed-integer linear program in PuLP.

Variables    y_x ∈ {0, 1} (case x is chosen), w_x ≥ 0 (its weight), score_j, ℓ_s, v_i, u_is
Constraints  Σ w = 1;  w_x ≤ y_x and Σ y = m over the cases that may be chosen; the required ones have w_x ≤ 1 alone
             score_j = Σ_x A[x, j] w_x;  ℓ_s ≥ c_p0 + c_p1 (score_{j_s} - b_s) for every piece p
             u_is ≥ ℓ_s - v_i, u_is ≥ 0; with a single part i, v_i + u_is takes the place of ℓ_s
Objective    minimise Σ_i λ_i (v_i + Σ_s Ψ_s u_is / η_i)

*Why it equals the problem.* The y of a feasible point are the indicator of a tuple, and w lives on it and on the
required cases; the rest is the epigraph (`formulations.epigraph`) of that tuple's objective. The link w_x ≤ y_x is a
big-M constraint with M = 1, which is as tight as can be, since weights on the simplex are at most 1. Forbidden cases
have no variables at all.

*What is believed.* PuLP's status 1 also covers a mere incumbent at a time limit, so `sol_status` decides; save for
Gurobi, whose incumbents PuLP does not tell of, so that Gurobi itself is asked. A bound is the solver's own: HiGHS, SCIP
and Gurobi are asked for it, and CBC writes it to its log if it was stopped; else it is the optimum that it claims. A
relative gap of zero is asked for, where solvers would stop at 1e-4.
"""

import importlib
import re
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# PuLP 3.3 loads HiGHS with its symbols open to all, and a solver that is loaded later may be bound to HiGHS's copies of
# the routines that both contain: OSQP then crashes. Solvers that are loaded earlier keep their own.
for _solver in ("osqp", "scs", "ecos", "piqp", "clarabel", "pyscipopt", "scipy.optimize"):
    if find_spec(_solver) is not None:
        importlib.import_module(_solver)

import pulp  # noqa: E402

from formulations.convex_solvers import SCIP_FEW_CUTS  # noqa: E402
from formulations.epigraph import Epigraph, make_epigraph, selected_test  # noqa: E402
from formulations.incumbents import (  # noqa: E402
    SOLVERS_INFINITY,
    Listener,
    listen_to_gurobi,
    listen_to_highs,
    listen_to_scip,
)
from formulations.licences import PROBES, as_failure, refusals_of  # noqa: E402
from rposst_opt.arrays import FloatArray  # noqa: E402
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Stats  # noqa: E402
from rposst_opt.efficient_test import EfficientTest  # noqa: E402
from rposst_opt.errors import BackendFailure, FalseClaim, ProblemError, instance_of  # noqa: E402
from rposst_opt.problem import ASSEMBLY_NEEDS, Need, Problem  # noqa: E402

HIGHS_OPTIONS = {
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
}
PROVED_OPTIMAL, INCUMBENT_ONLY = 1, 2  # PuLP's sol_status
IMPOSSIBLE = (pulp.LpStatusInfeasible, pulp.LpStatusUnbounded)  # every set is a test, and no loss is below its least
CBC_BOUND, CBC_ROUNDING = re.compile(r"best possible (-?[0-9][0-9.e+-]*)"), 5e-6


@dataclass(frozen=True)
class MilpSolver:
    """What has to be known about a solver that PuLP calls."""

    package: str  # its import name
    make: Callable[[float | None, int | None, Path], Any]  # from a limit in seconds, threads, and a file for its log
    bound: Callable[[Any, Path], float | None]  # from the solver's own model and its log, after solving, if it is there
    has_incumbent: Callable[[Any], bool] | None = None  # so too, where PuLP does not tell
    listen: Callable[[Any, Listener], dict[str, Any]] | None = None  # from PuLP's model, where the solver calls back
    begin: Callable[[Any], None] | None = None  # with what PuLP's model says, where PuLP does not see to it
    tolerance: float = 1e-6  # what its answers are good for, relative to the scale of the losses
    extra: str | None = None  # the extra of this distribution that installs it


def _cbc(time_limit: float | None, threads: int | None, log: Path) -> Any:
    with warnings.catch_warnings():
        # PuLP 4 will leave CBC out; until then it comes along, and its users are told to install it apart.
        warnings.simplefilter("ignore")
        return pulp.PULP_CBC_CMD(msg=False, timeLimit=time_limit, threads=threads, gapRel=0, gapAbs=0, logPath=str(log))


def _bound_in_cbcs_log(model: Any, log: Path) -> float | None:
    """The last bound that CBC tells of if it was stopped; what it says on the way to an optimum is less than that.

    It writes six digits of it, which may be more than it has proved. Its last line on it has three, and is not read.
    """
    said = log.read_text(errors="replace") if log.exists() else ""
    told = CBC_BOUND.findall(said)
    if not told or "Optimal solution found" in said:
        return None
    bound = float(told[-1])
    return bound - CBC_ROUNDING * abs(bound)


def _highs(time_limit: float | None, threads: int | None, log: Path) -> Any:
    if threads is not None:
        importlib.import_module("highspy").Highs.resetGlobalScheduler(True)  # it has the threads of the run before
    return pulp.HiGHS(msg=False, timeLimit=time_limit, threads=threads, gapRel=0, gapAbs=0, **HIGHS_OPTIONS)


def _scip(time_limit: float | None, threads: int | None, log: Path) -> Any:
    options = [f"{name}={value}" for name, value in SCIP_FEW_CUTS.items()]
    # It has one thread, and PuLP warns of any other.
    return pulp.SCIP_PY(msg=False, timeLimit=time_limit, gapRel=0, options=options)


def _gurobi(time_limit: float | None, threads: int | None, log: Path) -> Any:
    # In an environment of its own that is told to be silent first: settings are announced on standard output otherwise.
    # Zeros are for the environment too, since PuLP takes a gap or a time limit of zero for none at all.
    settings = {"OutputFlag": 0, "MIPGap": 0, "MIPGapAbs": 0, "FeasibilityTol": 1e-9, "IntFeasTol": 1e-9}
    settings |= {"TimeLimit": time_limit} if time_limit is not None else {}
    settings |= {"Threads": threads} if threads is not None else {}
    return pulp.GUROBI(msg=False, manageEnv=True, envOptions=settings)


def _between(solver: Any, prepare: Callable[[Any], dict[str, Any] | None]) -> None:
    """Have something done to a solver's model, and more arguments for its call: PuLP makes the one, then the other."""
    call = solver.callSolver

    def prepare_and_call(model: Any, **arguments: Any) -> None:
        more = prepare(model) or {}
        call(model, **{**arguments, **more})

    solver.callSolver = prepare_and_call


def _start_highs(model: Any) -> None:
    """Begin with the variables' values, which PuLP passes on to other solvers by itself."""
    start = importlib.import_module("highspy").HighsSolution()
    start.col_value = [variable.varValue for variable in sorted(model.variables(), key=lambda one: one.index)]
    model.solverModel.setSolution(start)


SOLVERS: dict[str, MilpSolver] = {
    "CBC": MilpSolver("pulp", _cbc, _bound_in_cbcs_log),
    "HIGHS": MilpSolver(
        "highspy",
        _highs,
        lambda model, log: float(model.getInfo().mip_dual_bound),
        listen=listen_to_highs,
        begin=_start_highs,
    ),
    "SCIP": MilpSolver(
        "pyscipopt", _scip, lambda model, log: float(model.getDualbound()), listen=listen_to_scip, extra="solvers"
    ),
    "GUROBI": MilpSolver(
        "gurobipy",
        _gurobi,
        lambda model, log: float(model.ObjBound),
        has_incumbent=lambda model: bool(model.SolCount > 0),
        listen=listen_to_gurobi,
        extra="gurobi",
    ),
}


class Tail(NamedTuple):
    """The variables of one CVaR in the measure."""

    fraction: float
    level: Any
    excesses: list[Any]  # none for the worst case

    def level_at(self, losses: FloatArray, probabilities: FloatArray) -> float:
        """The least level that no more than the fraction of all scenarios exceed."""
        worst_first = np.argsort(-losses, kind="stable")
        exceeding = np.cumsum(probabilities[worst_first])
        return float(losses[worst_first[min(int(np.searchsorted(exceeding, self.fraction)), len(losses) - 1)]])


@dataclass(frozen=True)
class SelectionProgram:
    """The program and those of its variables that make a test."""

    model: Any  # pulp.LpProblem
    chosen: dict[int, Any]  # y of every case that may be chosen
    weights: dict[int, Any]  # w of every case that may have a weight
    losses: list[Any]
    scores: list[Any]
    tails: list["Tail"]
    epigraph: Epigraph

    def start_from(self, test: EfficientTest) -> None:
        """Give every variable the value that it has at this test, for the solver to begin with."""
        epigraph = self.epigraph
        weights = test.full_weights()
        scores = epigraph.results.T @ weights
        losses = epigraph.pieces.value(scores[epigraph.policies] - epigraph.full_scores)
        values = [(self.chosen[case], float(case in test.cases)) for case in self.chosen]
        values += [(variable, float(weights[case])) for case, variable in self.weights.items()]
        values += zip(self.scores, scores.tolist(), strict=True)
        if isinstance(self.losses[0], pulp.LpVariable):  # of their own, or a level that stands for all, which follows
            values += zip(self.losses, losses.tolist(), strict=True)
        for tail in self.tails:
            level = tail.level_at(losses, epigraph.probabilities)
            values += [(tail.level, level)]
            values += zip(tail.excesses, np.maximum(losses - level, 0.0).tolist(), strict=False)
        for variable, value in values:  # within their bounds, where rounding has left them
            value = value if variable.lowBound is None else max(value, variable.lowBound)
            variable.setInitialValue(value if variable.upBound is None else min(value, variable.upBound))


def selection_program(problem: Problem) -> SelectionProgram:
    """State the whole selection."""
    epigraph = make_epigraph(problem)
    model = pulp.LpProblem("rposst", pulp.LpMinimize)
    chosen = {x: model.add_variable(f"y_{x}", cat="Binary") for x in problem.selectable_cases}
    required = {x: problem.rules.weight_limits(x) for x in problem.required_cases}
    weights = {x: model.add_variable(f"w_{x}", *required.get(x, (0, 1))) for x in problem.eligible_cases}
    n_policies, d = epigraph.results.shape[1], len(epigraph.full_scores)
    least, greatest = epigraph.loss_range()
    scores = [model.add_variable(f"score_{j}", 0, 1) for j in range(n_policies)]

    model += pulp.lpSum([]), "objective"
    model += pulp.lpSum(weights.values()) == 1, "weights_sum_to_one"
    _state_rules(problem, model, chosen, weights)
    for j in range(n_policies):
        score = pulp.lpSum(epigraph.results[x, j] * weight for x, weight in weights.items())
        model += scores[j] == score, f"score_of_{j}"
    objective = []
    parts: list[Tail] = []
    tails: list[list[Any]] = []  # v_i + u_is: what part i of the measure must not let the loss exceed
    for i, (share, fraction) in enumerate(zip(epigraph.shares, epigraph.tail_fractions, strict=True)):
        if fraction == 1:
            continue
        level = model.add_variable(f"level_{i}", least, greatest)
        objective.append(share * level)
        excesses = [model.add_variable(f"excess_{i}_{s}", 0) for s in range(d)] if fraction > 0 else []
        objective += [
            share * probability / fraction * excess
            for probability, excess in zip(epigraph.probabilities, excesses, strict=False)
        ]
        parts.append(Tail(fraction, level, excesses))
        tails.append([level + excess for excess in excesses] if fraction > 0 else [+level] * d)
    if len(epigraph.shares) == len(tails) == 1:
        losses = tails[0]  # a single tail stands for the losses themselves, which halves the program
    else:
        losses = [model.add_variable(f"loss_{s}", least, greatest) for s in range(d)]
        for i, tail in enumerate(tails):
            for s in range(d):
                model += tail[s] >= losses[s], f"tail_{i}_{s}"
    for share, fraction in zip(epigraph.shares, epigraph.tail_fractions, strict=True):
        if fraction == 1:
            objective += [share * epigraph.probabilities[s] * losses[s] for s in range(d)]
    for s in range(d):
        error = scores[epigraph.policies[s]] - epigraph.full_scores[s]
        for p, (c0, c1, _) in enumerate(epigraph.pieces.coefficients):
            model += losses[s] >= c0 + c1 * error, f"loss_{s}_piece_{p}"
    model.setObjective(pulp.lpSum(objective))
    return SelectionProgram(model, chosen, weights, losses, scores, parts, epigraph)


def _state_rules(problem: Problem, model: Any, chosen: dict[int, Any], weights: dict[int, Any]) -> None:
    """Weights only where chosen, and then within their limits; and the rules about the choice."""
    for x, y in chosen.items():
        least, most = problem.rules.weight_limits(x)
        model += weights[x] <= most * y, f"weight_only_if_chosen_{x}"
        if least > 0:
            model += weights[x] >= least * y, f"least_weight_{x}"
    for at, (coefficients, low, high) in enumerate(zip(*problem.choice_rows, strict=True)):
        total = pulp.lpSum(a * y for a, y in zip(coefficients.tolist(), chosen.values(), strict=True) if a)
        name = "size" if at == 0 else f"rule_{at}"
        if low == high:
            model += total == low, name
        else:
            if np.isfinite(low):
                model += total >= low, f"{name}_low"
            if np.isfinite(high):
                model += total <= high, f"{name}_high"


def write_model(problem: Problem, path: Path) -> None:
    """Write the program as a file that any solver reads: ``.mps``, or ``.lp`` for people.

    Variable y_3 says whether the case at position 3 is chosen, w_3 is its weight. The objective is in the units of
    `formulations.epigraph`.
    """
    model = selection_program(problem).model
    if path.suffix == ".lp":
        model.writeLP(str(path))
    else:
        model.writeMPS(str(path))


@dataclass(frozen=True, kw_only=True)
class MilpSelection:
    """Solve the whole selection as one mixed-integer program.

    Parameters
    ----------
    solver : str
        A name from `SOLVERS`.
    threads : int, optional
        As many as the solver takes by itself, by default. SCIP has one.
    start : EfficientTest, optional
        A test of the problem to begin with, for a problem without an offset.
    """

    solver: str = "HIGHS"
    threads: int | None = None
    start: EfficientTest | None = None

    def __post_init__(self) -> None:
        """Refuse a number of threads below one, and a start that is no test."""
        if self.threads is not None and self.threads < 1:
            raise ProblemError(f"`threads` must be at least 1, got {self.threads!r}.")
        if self.start is not None:
            instance_of(EfficientTest, "start", self.start)

    @property
    def capabilities(self) -> Capabilities:
        """What the program states and this solver solves."""
        solver = SOLVERS[self.solver]
        return Capabilities(
            method=f"one mixed-integer program in PuLP, by {self.solver}",
            handles=frozenset({Need.POLYHEDRAL_LOSS, Need.CVAR_MIXTURE, *ASSEMBLY_NEEDS}),
            finds_optimum=True,
            proves="the optimum, by the solver's own branch and bound",
            tolerance=solver.tolerance,
            requires=("pulp", solver.package),
            extra=solver.extra,
            why_no_licence=PROBES.get(solver.package),
        )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """State the program and have it solved."""
        started = time.perf_counter()
        program = selection_program(problem)
        if self.start is not None:
            reason = problem.why_not(self.start)
            if reason is not None:
                raise ProblemError(f"`start` is no test for this problem, as it is stated for solvers: {reason}.")
            program.start_from(self.start)
        built = time.perf_counter()
        shown = self._run(problem, program, budget)
        stats = Stats(build_seconds=built - started, solve_seconds=time.perf_counter() - built)
        proved = program.model.sol_status == PROVED_OPTIMAL
        limit = None if proved else Limit.TIME
        unit = program.epigraph.unit
        bound = float("-inf") if shown is None or shown <= -SOLVERS_INFINITY else shown * unit
        if not (proved or self._has_incumbent(program)):
            if budget.reached() is None:
                status = pulp.LpStatus[program.model.status]
                if program.model.status in IMPOSSIBLE:
                    claim = f"it calls the program {status.lower()}"
                    raise FalseClaim(f"{self.solver} claims that there is no best test: {claim}.")
                raise BackendFailure(f"{self.solver} ended with {status!r} and no test.")
            return Candidate(test=None, lower_bound=bound, limit=limit, stats=stats)
        claimed = float(pulp.value(program.model.objective)) * unit
        if proved and shown is None:
            bound = claimed
        chosen = {case: y.value() for case, y in program.chosen.items()}
        weights = {case: w.value() for case, w in program.weights.items()}
        return Candidate(
            test=selected_test(problem, chosen, weights),
            lower_bound=max(bound, problem.pieces.minimum()),
            claimed_objective=claimed,
            claimed_losses=np.array([loss.value() for loss in program.losses]) * unit,
            limit=limit,
            stats=stats,
        )

    def _run(self, problem: Problem, program: SelectionProgram, budget: Budget) -> float | None:
        """Have the program solved, and the solver's own bound, if it shows one; a refusal is told as such."""
        solver = SOLVERS[self.solver]
        listener = Listener(problem, program.chosen, program.weights, program.epigraph.unit, budget)
        try:
            with tempfile.TemporaryDirectory(prefix="rposst-") as folder:
                log = Path(folder) / "log"
                made = solver.make(budget.time_limit_seconds, self.threads, log)
                made.optionsDict["warmStart"] = self.start is not None
                if self.start is not None and solver.begin is not None:
                    _between(made, solver.begin)
                listen = solver.listen
                if listen is not None and budget.is_heard:
                    _between(made, lambda model: listen(model, listener))
                program.model.solve(made)
                listener.raise_what_was_raised()
                return solver.bound(program.model.solverModel, log)
        except refusals_of(solver.package) as error:
            raise as_failure(self.solver, solver.package, error) from None

    def _has_incumbent(self, program: SelectionProgram) -> bool:
        """Whether there is a test without a proof."""
        asked = SOLVERS[self.solver].has_incumbent
        if asked is not None:
            return asked(program.model.solverModel)
        return bool(program.model.sol_status == INCUMBENT_ONLY)
