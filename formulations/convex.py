r"""One tuple's weights as a convex program in CVXPY, and all tuples by enumeration.

Variables    w (weights of the tuple's cases), ℓ_s (losses), v_i and u_is (the parts of the measure)
Constraints  w ≥ 0, Σ w = 1;  ℓ_s ≥ Δ(score_{j_s} - b_s) with score = A_τᵀ w;  u_is ≥ ℓ_s - v_i, u_is ≥ 0
Objective    minimise Σ_i λ_i (v_i + Σ_s Ψ_s u_is / η_i)

Why this equals the problem of one tuple is said in `formulations.epigraph`. A loss with affine pieces takes one
constraint per piece. A loss with quadratic pieces has its error cut into one stretch per piece,

.. math:: e_s = \kappa_1 + t_{s0} + t_{s1} + \dots,\qquad t_{s0} \le 0,\quad 0 \le t_{sp} \le \kappa_{p+1} - \kappa_p

and ℓ_s ≥ Δ(κ₁) + Σ_p (slope at the stretch's beginning · t_sp + c_p2 t_sp²): slopes ascend, so it never pays to use a
later stretch before an earlier one is full, and the sum is Δ(e_s).

The tuple's results A_τ are a CVXPY parameter. The program is compiled once and solved for as many tuples as there are,
which takes a third of the time or less where the solver is fast (`make bench-methods`).

The lower bound is made from the solver's multipliers by `formulations.duality`: it is true whatever the solver did.
"""

import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import cvxpy as cp
import numpy as np

from formulations.convex_solvers import SOLVERS
from formulations.duality import allowed_tail_weights, dual_cut
from formulations.epigraph import Epigraph, make_epigraph, selected_test
from formulations.licences import PROBES, as_failure, refusals_of
from rposst_opt.arrays import FloatArray
from rposst_opt.assembly import least_average
from rposst_opt.contract import Budget, Candidate, Capabilities, Limit, Progress, Stats
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import BackendFailure, FalseClaim, ProblemError
from rposst_opt.problem import ASSEMBLY_NEEDS, Need, Problem

CONIC_NEEDS = (Need.CURVED_LOSS, Need.NOISE)  # what takes a second-order cone
IMPOSSIBLE = (cp.INFEASIBLE, cp.UNBOUNDED)  # every set of cases is a test, and no loss is below its least
MIXED_INTEGER_TOLERANCE = 1e-4  # what mixed-integer answers are good for where the constraints are curved


class TupleOptimum(NamedTuple):
    """The best weights of a tuple, a lower bound on what any weights of it can reach, and the solver's own claims."""

    cases: tuple[int, ...]
    weights: FloatArray
    lower_bound: float
    claimed_objective: float
    claimed_losses: FloatArray
    is_finished: bool  # by the solver's own account; if not, it claims nothing, and its bound is true all the same


class TupleProgram:
    """The program of one tuple: compiled once, solved for every tuple of the same width."""

    def __init__(
        self, epigraph: Epigraph, width: int, solver: str, *, own_options: bool = False, limit_weights: bool = True
    ) -> None:
        self.epigraph, self.solver = epigraph, solver
        self.options: Mapping[str, Any] = {} if own_options else SOLVERS[solver].options
        n_policies, d = epigraph.results.shape[1], len(epigraph.full_scores)
        self.tuple_results = cp.Parameter((n_policies, width))
        self.tuple_noise = cp.Parameter(width, nonneg=True) if len(epigraph.noise) else None
        self.weights = cp.Variable(width, nonneg=True)
        self.losses = losses = cp.Variable(d)
        scores = self.tuple_results @ self.weights
        errors = scores[epigraph.policies] - epigraph.full_scores
        self._pieces: list[cp.Constraint] = []
        self._link: cp.Constraint | None = None
        constraints = [cp.sum(self.weights) == 1, *self._losses_above(errors, losses)]
        self.weight_limits: tuple[cp.Parameter, cp.Parameter] | None = None
        if limit_weights and epigraph.limits_weights:
            least, most = self.weight_limits = cp.Parameter(width, nonneg=True), cp.Parameter(width, nonneg=True)
            constraints += [self.weights >= least, self.weights <= most]

        objective: cp.Expression = cp.Constant(0.0)
        self._tails: list[cp.Constraint | None] = []
        self.levels: list[cp.Variable] = []
        for share, fraction in zip(epigraph.shares, epigraph.tail_fractions, strict=True):
            if fraction == 1:
                objective += share * (epigraph.probabilities @ losses)
                self._tails.append(None)
                continue
            level = cp.Variable()
            self.levels.append(level)
            excess: cp.Expression = cp.Constant(np.zeros(d))
            objective += share * level
            if fraction > 0:
                excess = cp.Variable(d, nonneg=True)
                objective += (share / fraction) * (epigraph.probabilities @ excess)
            self._tails.append(level + excess >= losses)
        constraints += [tail for tail in self._tails if tail is not None]
        self._cone: cp.Constraint | None = None
        if self.tuple_noise is not None:
            noise = cp.Variable()
            self._cone = cp.SOC(noise, cp.multiply(self.tuple_noise, self.weights))
            constraints.append(self._cone)
            objective += noise
        self.objective, self.constraints = cp.Minimize(objective), constraints
        self.program = cp.Problem(self.objective, self.constraints)

    def _losses_above(self, errors: cp.Expression, losses: cp.Variable) -> list[cp.Constraint]:
        """ℓ_s ≥ Δ(e_s)."""
        pieces = self.epigraph.pieces
        if pieces.is_polyhedral:
            self._pieces = [losses >= c0 + c1 * errors for c0, c1, _ in pieces.coefficients]
            return self._pieces
        d = losses.size
        first = pieces.knots[:1] if len(pieces.knots) else np.zeros(1)
        starts = np.concatenate([first, pieces.knots])
        lengths = np.concatenate([[np.inf], np.diff(pieces.knots), [np.inf]]) if len(pieces.knots) else [np.inf]
        constraints: list[cp.Constraint] = []
        covered: cp.Expression = cp.Constant(np.full(d, first[0]))
        value: cp.Expression = cp.Constant(np.full(d, float(pieces.value(first)[0])))
        for p, ((_, c1, c2), start, length) in enumerate(zip(pieces.coefficients, starts, lengths, strict=True)):
            stretch = cp.Variable(d)
            if len(pieces.knots):
                constraints.append(stretch <= 0 if p == 0 else stretch >= 0)
            if np.isfinite(length):
                constraints.append(stretch <= length)
            covered = covered + stretch
            value = value + (c1 + 2 * c2 * start) * stretch
            if c2 > 0:
                value = value + c2 * cp.square(stretch)
        self._link = covered == errors
        return [*constraints, self._link, losses >= value]

    def be_about(self, cases: tuple[int, ...]) -> None:
        """Fill in the results of these cases, and their noise."""
        self.cases = cases
        self.tuple_results.value = self.epigraph.results[list(cases)].T
        if self.tuple_noise is not None:
            self.tuple_noise.value = self.epigraph.noise[list(cases)]
        if self.weight_limits is not None:
            least, most = self.weight_limits
            least.value, most.value = self.epigraph.least_weights[list(cases)], self.epigraph.most_weights[list(cases)]

    def solve(self, cases: tuple[int, ...]) -> TupleOptimum:
        """Find the best weights of these cases."""
        self.be_about(cases)
        run_solver(self.program, self.solver, self.options)
        status = self.program.status
        if status in IMPOSSIBLE:
            raise FalseClaim(f"{self.solver} claims that there is no best test of {list(cases)}: {status}.")
        weights = self.weights.value
        if weights is None or not np.isfinite(weights).all() or not np.maximum(weights, 0).sum() > 0:
            raise BackendFailure(f"{self.solver} returned no weights for {list(cases)}: {status}.")
        on_simplex = np.maximum(weights, 0.0)
        unit = self.epigraph.unit
        return TupleOptimum(
            cases=cases,
            weights=on_simplex / on_simplex.sum(),
            lower_bound=self._lower_bound(list(cases)),
            claimed_objective=float(self.program.value) * unit,
            claimed_losses=self.losses.value * unit,
            is_finished=status == cp.OPTIMAL,
        )

    def _lower_bound(self, cases: list[int]) -> float:
        """What no weights of these cases are below: the least that the cut is on average over any allowed weights."""
        cut = self.cut()[cases]
        if self.weight_limits is None:
            return float(cut.min())
        return least_average(cut, self.epigraph.least_weights[cases], self.epigraph.most_weights[cases])

    def cut(self) -> FloatArray:
        """What the last solution's multipliers prove, for every test case, in the problem's units."""
        epigraph = self.epigraph
        d = len(epigraph.full_scores)
        multipliers = np.zeros((len(self._tails), d))
        for part, tail in enumerate(self._tails):
            if tail is not None and tail.dual_value is not None:
                multipliers[part] = np.nan_to_num(tail.dual_value)
        alpha = allowed_tail_weights(epigraph, multipliers)
        return epigraph.unit * dual_cut(epigraph, alpha, self._pulls(alpha), self._noise_direction())

    def _noise_direction(self) -> FloatArray | None:
        """Where the noise of the last solution's score comes from, for all cases: the multipliers of the cone."""
        if self._cone is None:
            return None
        direction = np.zeros(len(self.epigraph.results))
        if self._cone.dual_value is not None:
            direction[list(self.cases)] = -np.nan_to_num(self._cone.dual_value[1]).ravel()
        return direction

    def _pulls(self, alpha: FloatArray) -> FloatArray:
        """α_s δ_s, from the multipliers of the losses' constraints."""
        pieces, d = self.epigraph.pieces, len(self.epigraph.full_scores)
        if self._link is not None:
            return -np.nan_to_num(np.zeros(d) if self._link.dual_value is None else self._link.dual_value)
        duals = np.array([np.zeros(d) if piece.dual_value is None else piece.dual_value for piece in self._pieces])
        duals = np.maximum(np.nan_to_num(duals), 0.0)
        # A solver may drop the multiplier of a row that it has turned into a bound. Any slope makes a true bound, so
        # the weight that has none gets the slope at the solution.
        scores = self.tuple_results.value @ np.nan_to_num(self.weights.value)
        slopes = pieces.slope(scores[self.epigraph.policies] - self.epigraph.full_scores)
        pulls: FloatArray = pieces.coefficients[:, 1] @ duals + np.maximum(alpha - duals.sum(axis=0), 0.0) * slopes
        return pulls


def run_solver(program: cp.Problem, solver: str, options: Mapping[str, Any]) -> None:
    """Have CVXPY solve a program; a solver that gives up is a failure of the backend."""
    known = SOLVERS[solver]
    if known.crashes_after in sys.modules and known.package not in sys.modules:
        raise BackendFailure(
            f"{solver} crashes if {known.crashes_after} is imported before it: import {known.package} first."
        )
    try:
        if known.made_options is not None:
            options = {**options, **known.made_options()}
        with warnings.catch_warnings():
            # CVXPY warns of inaccurate answers; here every answer is scored again and its bound made from scratch.
            warnings.simplefilter("ignore")
            program.solve(solver=solver, warm_start=False, **options)
    except cp.SolverError as error:
        raise BackendFailure(f"{solver} gave up: {error}") from None
    except refusals_of(known.package) as error:
        raise as_failure(solver, known.package, error) from None


def tuple_optima(problem: Problem, program: TupleProgram) -> Iterator[TupleOptimum]:
    """The optimum of every tuple, in lexicographic order."""
    for cases in problem.tuples():
        yield program.solve(tuple(sorted(cases)))


@dataclass(frozen=True, kw_only=True)
class ConvexEnumeration:
    """Solve the convex program of every tuple and take the best.

    Parameters
    ----------
    solver : str
        A name from `SOLVERS`.
    own_options : bool
        Whether the solver keeps its own defaults, in the place of the options that programs of this shape need.
    """

    solver: str = "CLARABEL"
    own_options: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """What this solver handles."""
        solver = SOLVERS[self.solver]
        return Capabilities(
            method=f"a convex program per tuple in CVXPY, by {self.solver}",
            handles=frozenset(
                {
                    *(Need.POLYHEDRAL_LOSS, Need.CVAR_MIXTURE, Need.CHOICE_RULES, Need.WEIGHT_LIMITS),
                    *(CONIC_NEEDS if solver.conic else []),
                }
            ),
            finds_optimum=True,
            proves="the optimum, by weak duality from the solver's multipliers",
            tolerance=solver.tolerance,
            requires=("cvxpy", solver.package),
            extra=solver.extra,
            why_no_licence=PROBES.get(solver.package),
        )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Solve the program of every tuple, as far as the budget allows."""
        started = time.perf_counter()
        epigraph = make_epigraph(problem)
        program = TupleProgram(epigraph, problem.n_chosen, self.solver, own_options=self.own_options)
        built = time.perf_counter()
        best: EfficientTest | None = None
        claims: TupleOptimum | None = None
        objective, lower_bound, done, limit, all_finished = np.inf, np.inf, 0, None, True
        with budget.listening_for_interrupts():
            for optimum in tuple_optima(problem, program):
                test = problem.test(cases=optimum.cases, weights=optimum.weights)
                value = problem.objective(test)
                if value < objective:
                    best, objective, claims = test, value, optimum
                lower_bound = min(lower_bound, optimum.lower_bound)
                all_finished = all_finished and optimum.is_finished
                done += 1
                budget.tell(Progress(done=done, total=problem.n_tuples, objective=objective, test=best))
                if done < problem.n_tuples and (limit := budget.reached()) is not None:
                    everything = problem.eligible_cases
                    relaxed = TupleProgram(
                        epigraph, len(everything), self.solver, own_options=self.own_options, limit_weights=False
                    )
                    lower_bound = min(lower_bound, relaxed.solve(everything).lower_bound)
                    break
        is_proved = objective - lower_bound <= problem.allowance(self.capabilities.tolerance)
        if limit is None and not (all_finished or is_proved):
            limit = Limit.SOLVER
        if claims is not None and not claims.is_finished:
            claims = None
        return Candidate(
            test=best,
            lower_bound=max(lower_bound, problem.pieces.minimum()),
            claimed_objective=None if claims is None else claims.claimed_objective,
            claimed_losses=None if claims is None else claims.claimed_losses,
            limit=limit,
            stats=Stats(build_seconds=built - started, solve_seconds=time.perf_counter() - built, tuples=done),
        )


def _choice(problem: Problem, weights: cp.Variable, chosen: cp.Variable) -> list[cp.Constraint]:
    """Weights only where chosen, all within their limits, and the rules about the choice."""
    limits = np.array([problem.rules.weight_limits(case) for case in problem.eligible_cases])
    places = [problem.eligible_cases.index(case) for case in problem.selectable_cases]
    settled = [problem.eligible_cases.index(case) for case in problem.required_cases]
    constraints = [weights[places] <= cp.multiply(limits[places, 1], chosen)]
    if Need.WEIGHT_LIMITS in problem.needs:
        constraints.append(weights[places] >= cp.multiply(limits[places, 0], chosen))
        if settled:
            constraints += [weights[settled] >= limits[settled, 0], weights[settled] <= limits[settled, 1]]
    rules = problem.choice_rows
    for low, high, coefficients in zip(rules.low, rules.high, rules.matrix, strict=True):
        total = coefficients @ chosen
        if low == high:
            constraints.append(total == low)
        else:
            constraints += [total >= low] if np.isfinite(low) else []
            constraints += [total <= high] if np.isfinite(high) else []
    return constraints


@dataclass(frozen=True, kw_only=True)
class ConvexSelection:
    """Choose cases and weights together, as one mixed-integer convex program: the route for losses with curvature.

    It is the program above over all cases, with y_x ∈ {0, 1}, w_x ≤ y_x and Σ y = m.

    Parameters
    ----------
    solver : str
        A name from `SOLVERS`, of a solver that takes integers.
    """

    solver: str = "SCIP"

    def __post_init__(self) -> None:
        """Refuse a solver that takes no integers."""
        able = [name for name, known in SOLVERS.items() if known.with_integers is not None]
        if self.solver not in able:
            raise ProblemError(f"`solver` must take integers: one of {', '.join(able)}, got {self.solver!r}.")

    @property
    def capabilities(self) -> Capabilities:
        """What this solver handles."""
        solver = SOLVERS[self.solver]
        return Capabilities(
            method=f"one mixed-integer convex program in CVXPY, by {self.solver}",
            handles=frozenset({Need.POLYHEDRAL_LOSS, Need.CVAR_MIXTURE, *CONIC_NEEDS, *ASSEMBLY_NEEDS}),
            finds_optimum=True,
            proves="the optimum, on the solver's word",
            tolerance=MIXED_INTEGER_TOLERANCE,
            requires=("cvxpy", solver.package),
            extra=solver.extra,
            why_no_licence=PROBES.get(solver.package),
        )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """State the program and have it solved."""
        started = time.perf_counter()
        epigraph = make_epigraph(problem)
        cases = problem.eligible_cases
        program = TupleProgram(epigraph, len(cases), self.solver, limit_weights=False)
        program.be_about(cases)
        chosen = cp.Variable(len(problem.selectable_cases), boolean=True)
        choice = _choice(problem, program.weights, chosen)
        least, greatest = epigraph.loss_range()
        choice += [bound for level in program.levels for bound in (level >= least, level <= greatest)]
        selection = cp.Problem(program.objective, [*program.constraints, *choice])
        built = time.perf_counter()
        with_integers = SOLVERS[self.solver].with_integers
        assert with_integers is not None
        try:
            run_solver(selection, self.solver, with_integers(budget.time_limit_seconds))
        except BackendFailure:
            if budget.reached() is None:
                raise
            # CVXPY calls it an error when time runs out before anything is found.
            return Candidate(test=None, lower_bound=-np.inf, limit=Limit.TIME)
        stats = Stats(build_seconds=built - started, solve_seconds=time.perf_counter() - built)
        proved = selection.status == cp.OPTIMAL
        limit = None if proved else Limit.TIME
        if program.weights.value is None or chosen.value is None:
            if budget.reached() is None:
                if selection.status in IMPOSSIBLE:
                    raise FalseClaim(
                        f"{self.solver} claims that there is no best test: it calls the program {selection.status}."
                    )
                raise BackendFailure(f"{self.solver} ended with {selection.status!r} and no test.")
            return Candidate(test=None, lower_bound=-np.inf, limit=limit, stats=stats)
        claimed = float(selection.value) * epigraph.unit
        bound = claimed if proved else self._bound(selection) * epigraph.unit
        slack = MIXED_INTEGER_TOLERANCE * problem.unit / 2
        return Candidate(
            test=selected_test(
                problem,
                dict(zip(problem.selectable_cases, chosen.value, strict=True)),
                dict(zip(cases, program.weights.value, strict=True)),
            ),
            lower_bound=max(bound - slack, problem.pieces.minimum()),
            claimed_objective=claimed,
            claimed_losses=program.losses.value * epigraph.unit,
            limit=limit,
            stats=stats,
        )

    def _bound(self, selection: cp.Problem) -> float:
        """What the solver had proved when it was stopped, if CVXPY has kept it."""
        bound = SOLVERS[self.solver].bound
        return -np.inf if bound is None else bound(selection.solver_stats.extra_stats)
