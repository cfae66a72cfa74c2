"""Every statement of the problem against the judge, and every lower bound against an independent optimum.

The optimum of a tuple comes from `best_of_tuple`: cutting planes made of nothing but `Problem.objective` and
`Problem.cut`, and SciPy's `linprog` for the master program. None of the formulations under test is part of it.
"""

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import highspy
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import cutting_plane_optimum, every_tuple
from scipy.optimize import Bounds, LinearConstraint, milp, minimize_scalar
from strategies import losses, problems

import formulations.convex as convex
import formulations.convex_solvers as convex_solvers
import formulations.direct as direct
import formulations.milp as milp_programs
import formulations.simultaneous as simultaneous
import rposst_opt as ro
from formulations.convex import ConvexEnumeration, ConvexSelection, TupleProgram, tuple_optima
from formulations.direct import selection_arrays
from formulations.duality import allowed_tail_weights, dual_cut
from formulations.epigraph import Epigraph, make_epigraph
from formulations.milp import selection_program, write_model
from formulations.simultaneous import MixedOptimum, column_generation_optimum, explicit_optimum, mixed_objective
from rposst_opt.experiments.domains import racing_arrows

FREE_SOLVERS = ("CLARABEL", "HIGHS", "SCS", "SCIPY", "OSQP", "ECOS", "PIQP", "SCIP")
INSTALLED_SOLVERS = [name for name in FREE_SOLVERS if find_spec(convex_solvers.SOLVERS[name].package) is not None]
CONIC_SOLVERS = [name for name in INSTALLED_SOLVERS if convex_solvers.SOLVERS[name].conic]
MIXED_INTEGER_BACKENDS = ["scipy-milp", "pulp-cbc", "pulp-highs"] + [
    f"pulp-{solver}"
    for solver, package in (("scip", "pyscipopt"), ("gurobi", "gurobipy"))
    if find_spec(package) is not None
]

HALF_AND_HALF = ro.Mixture([(0.5, ro.CVaR(0.3)), (0.3, ro.WorstCase()), (0.2, ro.Mean())])
MEASURES = [ro.CVaR(0.3), ro.CVaR(0.01), ro.WorstCase(), ro.Mean(), HALF_AND_HALF, ro.KOfN(2, 5)]
AFFINE_LOSSES = [ro.AbsoluteError(), ro.PinballError(0.8), ro.EpsilonInsensitiveError(0.05)]
CURVED_LOSSES = [ro.SquaredError(), ro.HuberError(0.1)]
LOSSES = [*AFFINE_LOSSES, *CURVED_LOSSES]

UNIT_TOLERANCE = 1e-9  # of `Problem.unit`: rounding and the gap at which the cutting planes stop


def random_problem(seed: int, *, n_cases: int = 5, n_policies: int = 4, size: int = 2, **options: Any) -> ro.Problem:
    rng = np.random.default_rng(seed)
    options.setdefault("results", rng.random((n_cases, n_policies)))
    return ro.Problem(size=size, targets=rng.dirichlet(np.ones(n_cases), 2), **options)


def uneven(seed: int, n_policies: int = 4) -> np.ndarray:
    table = np.random.default_rng(seed).integers(0, 5, (n_policies, 2)).astype(float)
    table[0, 0] = 3.0
    return np.asarray(table / table.sum())


def coin_flips(seed: int, n_cases: int = 5, n_policies: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (n_cases, n_policies)).astype(float)


@functools.cache
def small_problems() -> dict[str, ro.Problem]:
    """One of every kind that a linear program can state."""
    far = 1e4 * np.random.default_rng(4).random((4, 4)) - 3e3
    return {
        "cvar": random_problem(0, measure=ro.CVaR(0.3)),
        "ties": random_problem(1, results=coin_flips(1), measure=ro.WorstCase()),
        "required and forbidden": random_problem(2, n_cases=6, required_cases=[4], forbidden_cases=[0]),
        "unequal": random_problem(
            3, n_cases=4, measure=HALF_AND_HALF, loss=ro.PinballError(0.8), probabilities=uneven(3)
        ),
        "other units": random_problem(4, n_cases=4, results=far, measure=ro.Mean()),
        "k of n": random_problem(5, n_cases=4, measure=ro.KOfN(2, 5), loss=ro.EpsilonInsensitiveError(0.05)),
        "all but one": random_problem(6, n_cases=4, size=3, measure=ro.CVaR(0.6), probabilities=uneven(6)),
    }


PROBLEM_NAMES = list(small_problems())


@functools.cache
def best_of_tuple(problem: ro.Problem, cases: tuple[int, ...]) -> float:
    """The least objective of weights on these cases."""
    return cutting_plane_optimum(problem, cases, UNIT_TOLERANCE / 2)


@functools.cache
def brute_force(problem: ro.Problem) -> float:
    return min(best_of_tuple(problem, cases) for cases in every_tuple(problem))


def rounding(problem: ro.Problem) -> float:
    return problem.allowance(UNIT_TOLERANCE)


def tuple_program(problem: ro.Problem, solver: str) -> TupleProgram:
    return TupleProgram(make_epigraph(problem), problem.n_chosen, solver)


def random_test(problem: ro.Problem, rng: np.random.Generator) -> ro.EfficientTest:
    cases = rng.choice(problem.n_cases, rng.integers(1, problem.n_cases + 1), replace=False)
    return problem.test(cases=cases.tolist(), weights=rng.dirichlet(np.ones(len(cases))))


# 1. The epigraph.


def value_by_hand(epigraph: Epigraph, weights: np.ndarray) -> float:
    """The program's value at these weights, with ℓ, v and u as small as the constraints allow."""
    errors = weights @ epigraph.results[:, epigraph.policies] - epigraph.full_scores
    piece = np.array([sum(knot < error for knot in epigraph.pieces.knots) for error in errors], dtype=int)
    constant, linear, quadratic = epigraph.pieces.coefficients[piece].T
    loss = constant + linear * errors + quadratic * errors**2
    if epigraph.pieces.is_polyhedral:
        c0, c1, _ = epigraph.pieces.coefficients.T
        np.testing.assert_allclose(loss, (c0[:, None] + np.outer(c1, errors)).max(axis=0), atol=1e-12)
    value = 0.0
    for share, fraction in zip(epigraph.shares, epigraph.tail_fractions, strict=True):
        if fraction == 0:
            value += share * loss.max()
        else:  # piecewise linear in v with kinks at the losses, so one of them is best
            value += share * min(v + epigraph.probabilities @ np.maximum(loss - v, 0) / fraction for v in loss)
    return float(value)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_the_epigraph_is_worth_what_the_judge_says(measure: ro.Measure, loss: ro.Loss) -> None:
    rng = np.random.default_rng(7)
    evenly = random_problem(8, measure=measure, loss=loss, results=40 * rng.random((5, 4)) - 25)
    lopsided = random_problem(9, measure=measure, loss=loss, probabilities=uneven(9))
    for problem in [evenly] if isinstance(measure, ro.KOfN) else [evenly, lopsided]:
        epigraph = make_epigraph(problem)
        for _ in range(5):
            test = random_test(problem, rng)
            value = value_by_hand(epigraph, test.full_weights()) * epigraph.unit
            assert value == pytest.approx(problem.objective(test), rel=1e-9, abs=1e-9 * problem.unit)


@settings(max_examples=50)
@given(problem=problems(), seed=st.integers(0, 1000))
def test_the_epigraph_of_any_problem_is_worth_what_the_judge_says(problem: ro.Problem, seed: int) -> None:
    assume(ro.Need.CVAR_MIXTURE in problem.needs)
    epigraph, test = make_epigraph(problem), random_test(problem, np.random.default_rng(seed))
    value = value_by_hand(epigraph, test.full_weights()) * epigraph.unit
    assert value == pytest.approx(problem.objective(test), rel=1e-9, abs=1e-9 * problem.unit)


@pytest.mark.parametrize("number", range(len(LOSSES)))
def test_results_in_other_units_give_the_same_program(number: int) -> None:
    per_mille = [ro.AbsoluteError(), ro.PinballError(0.8), ro.EpsilonInsensitiveError(500.0)]
    per_mille += [ro.SquaredError(), ro.HuberError(1000.0)]
    results = np.random.default_rng(10).random((5, 4))
    one = make_epigraph(random_problem(10, results=results, loss=LOSSES[number]))
    other = make_epigraph(random_problem(10, results=1e4 * results - 700, loss=per_mille[number]))
    for name in ("results", "policies", "full_scores", "probabilities", "shares", "tail_fractions"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-11)
    np.testing.assert_allclose(one.pieces.knots, other.pieces.knots, atol=1e-11)
    np.testing.assert_allclose(one.pieces.coefficients, other.pieces.coefficients, atol=1e-11)
    assert one.results.min() == 0
    assert one.results.max() == 1
    assert other.unit == pytest.approx(one.unit * (1e4 if number < len(AFFINE_LOSSES) else 1e8))


def test_a_measure_that_is_no_mixture_of_cvars_has_no_epigraph() -> None:
    with pytest.raises(ro.Unsupported, match="no finite mixture of CVaRs"):
        make_epigraph(random_problem(11, measure=ro.KOfN(2, 5), probabilities=uneven(11)))


# 2. Weak duality.

FUNCTIONS = {
    **{repr(loss): loss.pieces for loss in LOSSES},
    "half a parabola": ro.PiecewiseQuadratic(knots=[0.0], coefficients=[[0, 0, 1], [0, 2, 0]]),
    "four pieces": ro.PiecewiseQuadratic(
        knots=[-1.0, 0.0, 0.5], coefficients=[[-2.0, -3, 0], [0, 0, 1.0], [0, 0.5, 0], [0.125, 0, 0.5]]
    ),
    "a line": ro.PiecewiseQuadratic(knots=[], coefficients=[[0.3, 2, 0]]),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_the_conjugate_is_the_supremum_over_a_fine_grid(name: str) -> None:
    function = FUNCTIONS[name]
    least, most = function.slope_range()
    slopes = np.linspace(max(least, -3.0), min(most, 3.0), 13)
    grid = np.linspace(-4, 4, 160_001)
    supremum = np.array([(slope * grid - function.value(grid)).max() for slope in slopes])
    np.testing.assert_allclose(function.conjugate(slopes), supremum, atol=1e-8)


def arbitrary_numbers(size: int) -> st.SearchStrategy[np.ndarray]:
    number = st.floats(-2, 2) | st.sampled_from([0.0, -1e300, 1e300, 1e-12, -1e-12, 0.125])
    return st.lists(number, min_size=size, max_size=size).map(np.array)


@settings(max_examples=60)
@given(problem=problems(most_policies=2), data=st.data())
def test_whatever_the_multipliers_the_tail_weights_lie_in_the_risk_envelope(problem: ro.Problem, data: Any) -> None:
    assume(ro.Need.CVAR_MIXTURE in problem.needs)
    epigraph, d = make_epigraph(problem), problem.n_scenarios
    multipliers = data.draw(arbitrary_numbers(len(epigraph.shares) * d)).reshape(-1, d)
    alpha = allowed_tail_weights(epigraph, multipliers)
    assert alpha.min() >= 0
    assert alpha.sum() == pytest.approx(1, abs=1e-9)
    subsets = np.array(list(itertools.product([0, 1], repeat=d)))
    allowed = problem.measure.tail_weight(np.minimum(subsets @ epigraph.probabilities, 1.0))
    assert (subsets @ alpha <= allowed + 1e-9).all()


def test_tail_weights_that_are_allowed_already_are_left_alone() -> None:
    for measure in (ro.CVaR(0.3), ro.WorstCase(), ro.Mean()):
        problem = random_problem(12, measure=measure, probabilities=uneven(12))
        losses_of_a_test = problem.losses(random_test(problem, np.random.default_rng(0)))
        alpha = measure.weights(losses_of_a_test, problem.scenarios.probabilities)
        np.testing.assert_allclose(allowed_tail_weights(make_epigraph(problem), alpha[None, :]), alpha, atol=1e-12)


@settings(max_examples=100)
@given(problem=problems(), data=st.data(), seed=st.integers(0, 1000))
def test_a_cut_from_arbitrary_multipliers_is_below_every_test(problem: ro.Problem, data: Any, seed: int) -> None:
    assume(ro.Need.CVAR_MIXTURE in problem.needs)
    epigraph, d = make_epigraph(problem), problem.n_scenarios
    multipliers = data.draw(arbitrary_numbers(len(epigraph.shares) * d)).reshape(-1, d)
    alpha = allowed_tail_weights(epigraph, multipliers)
    pulls = data.draw(st.lists(st.floats(-50, 50) | st.just(0.0), min_size=d, max_size=d).map(np.array))
    pulls = pulls * alpha if data.draw(st.booleans()) else pulls
    cut = dual_cut(epigraph, alpha, pulls) * epigraph.unit
    rng = np.random.default_rng(seed)
    for _ in range(5):
        test = random_test(problem, rng)
        assert problem.objective(test) >= test.full_weights() @ cut - rounding(problem)


@settings(max_examples=50)
@given(problem=problems(), loss=losses(), seed=st.integers(0, 1000))
def test_a_cut_from_the_best_response_touches_its_test(problem: ro.Problem, loss: ro.Loss, seed: int) -> None:
    assume(ro.Need.CVAR_MIXTURE in problem.needs)
    problem = replace(problem, loss=loss)
    epigraph, test = make_epigraph(problem), random_test(problem, np.random.default_rng(seed))
    alpha = problem.measure.weights(problem.losses(test), problem.scenarios.probabilities)
    errors = test.full_weights() @ epigraph.results[:, epigraph.policies] - epigraph.full_scores
    cut = dual_cut(epigraph, alpha, alpha * epigraph.pieces.slope(errors)) * epigraph.unit
    assert test.full_weights() @ cut == pytest.approx(problem.objective(test), abs=rounding(problem))


def test_a_vanishing_tail_weight_with_a_large_pull_does_not_spoil_the_cut() -> None:
    problem = random_problem(13, loss=ro.SquaredError(), measure=ro.WorstCase())
    epigraph = make_epigraph(problem)
    alpha, pulls = np.zeros(problem.n_scenarios), np.zeros(problem.n_scenarios)
    alpha[:2], pulls[:2] = [1.0, 1e-310], 1.0
    cut = dual_cut(epigraph, alpha, pulls) * epigraph.unit
    assert not np.isnan(cut).any()
    assert (cut <= [problem.objective(problem.test(cases=[case], weights=[1.0])) for case in range(5)]).all()


# 3. One convex program per tuple.


@pytest.mark.slow
@pytest.mark.parametrize("solver", INSTALLED_SOLVERS)
@pytest.mark.parametrize("name", PROBLEM_NAMES)
def test_every_tuple_gets_its_optimum_and_a_true_lower_bound(name: str, solver: str) -> None:
    problem, tolerance = small_problems()[name], convex_solvers.SOLVERS[solver].tolerance
    optima = list(tuple_optima(problem, tuple_program(problem, solver)))
    assert [optimum.cases for optimum in optima] == every_tuple(problem)
    for optimum in optima:
        best = best_of_tuple(problem, optimum.cases)
        value = problem.objective(problem.test(cases=optimum.cases, weights=optimum.weights))
        slack = tolerance * problem.unit + rounding(problem)
        assert best - rounding(problem) <= value <= best + slack
        assert best - slack <= optimum.lower_bound <= best + rounding(problem)
        assert optimum.claimed_objective == pytest.approx(best, abs=slack)


@pytest.mark.parametrize("loss", CURVED_LOSSES, ids=repr)
@pytest.mark.parametrize("solver", CONIC_SOLVERS)
def test_curved_losses_get_their_optimum_by_conic_solvers(solver: str, loss: ro.Loss) -> None:
    for measure, probabilities in [(ro.CVaR(0.3), None), (ro.WorstCase(), None), (HALF_AND_HALF, uneven(14))]:
        problem = random_problem(14, n_cases=4, loss=loss, measure=measure, probabilities=probabilities)
        slack = convex_solvers.SOLVERS[solver].tolerance * problem.unit + rounding(problem)
        for optimum in tuple_optima(problem, tuple_program(problem, solver)):
            best = minimize_scalar(
                lambda w, problem=problem, cases=optimum.cases: problem.objective(
                    problem.test(cases=cases, weights=[w, 1 - w])
                ),
                bounds=(0, 1),
                method="bounded",
                options={"xatol": 1e-11},
            ).fun
            value = problem.objective(problem.test(cases=optimum.cases, weights=optimum.weights))
            assert value == pytest.approx(best, abs=slack)
            assert best - slack <= optimum.lower_bound <= best + rounding(problem)


@pytest.mark.parametrize("loss", [ro.AbsoluteError(), ro.HuberError(0.1)], ids=repr)
def test_a_program_used_again_answers_like_one_built_afresh(loss: ro.Loss) -> None:
    problem = random_problem(15, loss=loss, measure=ro.CVaR(0.5))
    epigraph = make_epigraph(problem)
    reused = TupleProgram(epigraph, 2, "CLARABEL")
    for cases in [(0, 1), (3, 4), (0, 1), (1, 2)]:
        one, other = reused.solve(cases), TupleProgram(epigraph, 2, "CLARABEL").solve(cases)
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)
        assert one.lower_bound == pytest.approx(other.lower_bound, abs=1e-8)
        assert one.claimed_objective == pytest.approx(other.claimed_objective, abs=1e-8)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("SCS", {"max_iters": 1}),
        ("SCS", {"max_iters": 7}),
        ("OSQP", {"max_iter": 1}),
        ("OSQP", {"max_iter": 30}),
        ("CLARABEL", {"max_iter": 1}),
        ("CLARABEL", {"max_iter": 4}),
    ],
    ids=str,
)
def test_a_solver_stopped_far_too_early_still_yields_a_true_lower_bound(
    solver: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(convex_solvers.SOLVERS, solver, replace(convex_solvers.SOLVERS[solver], options=options))
    for name in PROBLEM_NAMES:
        problem = small_problems()[name]
        program = tuple_program(problem, solver)
        for cases in every_tuple(problem)[:2]:
            try:
                optimum = program.solve(cases)
            except ro.BackendFailure:  # a solver may also say that it has no answer
                continue
            best = best_of_tuple(problem, cases)
            assert optimum.lower_bound <= best + rounding(problem)
            assert problem.objective(problem.test(cases=cases, weights=optimum.weights)) >= best - rounding(problem)


@pytest.mark.parametrize(("solver", "options"), [("SCS", {"max_iters": 5}), ("OSQP", {"max_iter": 10})])
def test_a_solver_that_does_not_finish_claims_nothing_and_what_it_has_is_scored(
    solver: str, options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = small_problems()["cvar"]
    finished = ConvexEnumeration(solver=solver).solve(problem, ro.Budget())
    assert finished.limit is None and finished.claimed_objective is not None

    monkeypatch.setitem(convex_solvers.SOLVERS, solver, replace(convex_solvers.SOLVERS[solver], options=options))
    solution = ro.solve(problem, ConvexEnumeration(solver=solver))
    assert (solution.status, solution.limit) == (ro.Status.FEASIBLE, ro.Limit.SOLVER)
    assert solution.objective > brute_force(problem) + 1e-3  # so that it had something to be wrong about
    assert solution.lower_bound <= brute_force(problem) + rounding(problem)
    candidate = ConvexEnumeration(solver=solver).solve(problem, ro.Budget())
    assert (candidate.claimed_objective, candidate.claimed_losses) == (None, None)


@pytest.mark.parametrize("solver", ["CLARABEL", "HIGHS"])
def test_without_time_the_enumeration_has_a_test_and_a_true_bound(solver: str) -> None:
    for problem in (random_problem(16, n_cases=6, size=3), small_problems()["required and forbidden"]):
        solution = ro.solve(problem, ConvexEnumeration(solver=solver), time_limit_seconds=0)
        assert solution.test is not None
        assert problem.why_not(solution.test) is None
        assert solution.limit is ro.Limit.TIME
        assert solution.stats.tuples < problem.n_tuples
        assert solution.lower_bound <= brute_force(problem) + rounding(problem)
        assert solution.objective >= brute_force(problem) - rounding(problem)


def test_osqp_errs_with_its_default_step_size_and_not_with_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tuple was found by a search over 75 random ones; most others come out right either way."""
    results = racing_arrows(50, np.random.default_rng(2)).to_numpy()[:, :40]
    targets = ro.softmax_targets(results, betas=(0, 1, 2, 4))
    problem = ro.Problem(results=results, size=3, measure=ro.CVaR(0.01), targets=targets)
    epigraph, cases = make_epigraph(problem), (33, 40, 43)
    best = TupleProgram(epigraph, 3, "HIGHS").solve(cases).claimed_objective
    ours, tolerance = TupleProgram(epigraph, 3, "OSQP").solve(cases), convex_solvers.SOLVERS["OSQP"].tolerance
    assert ours.claimed_objective == pytest.approx(best, abs=tolerance)
    assert ours.lower_bound == pytest.approx(best, abs=tolerance)
    assert problem.objective(problem.test(cases=cases, weights=ours.weights)) == pytest.approx(best, abs=tolerance)
    monkeypatch.setitem(convex_solvers.SOLVERS, "OSQP", replace(convex_solvers.SOLVERS["OSQP"], options={}))
    theirs = TupleProgram(epigraph, 3, "OSQP").solve(cases)
    assert abs(theirs.claimed_objective - best) > 1e-3
    assert theirs.lower_bound <= best + rounding(problem)


# 4. The whole selection as a mixed-integer program.


@pytest.mark.parametrize("backend", MIXED_INTEGER_BACKENDS)
@pytest.mark.parametrize("name", PROBLEM_NAMES)
def test_the_mixed_integer_program_finds_the_best_of_all_tuples(name: str, backend: str) -> None:
    problem = small_problems()[name]
    solution = ro.solve(problem, backend)
    slack = ro.BACKENDS[backend].capabilities.tolerance * problem.unit + rounding(problem)
    assert solution.status is ro.Status.OPTIMAL
    assert solution.limit is None
    assert solution.objective == pytest.approx(brute_force(problem), abs=slack)
    assert solution.lower_bound == pytest.approx(brute_force(problem), abs=slack)


@settings(max_examples=15)
@given(problem=problems(most_cases=5, most_policies=4))
def test_arrays_for_scipy_find_the_best_of_all_tuples_of_any_problem(problem: ro.Problem) -> None:
    assume(problem.needs == {ro.Need.CVAR_MIXTURE, ro.Need.POLYHEDRAL_LOSS})
    solution = ro.solve(problem, "scipy-milp")
    slack = 1e-6 * problem.unit + rounding(problem)
    assert solution.objective == pytest.approx(brute_force(problem), abs=slack)
    assert solution.lower_bound <= brute_force(problem) + slack


@pytest.mark.parametrize("name", PROBLEM_NAMES)
def test_both_statements_of_the_program_have_one_relaxation_and_a_single_tail_saves_the_losses(name: str) -> None:
    import pulp  # not above: loaded before OSQP it makes OSQP crash, and `formulations.milp` sees to the order

    problem = small_problems()[name]
    model, arrays = selection_program(problem).model, selection_arrays(problem)
    fractions, d, n = arrays.epigraph.tail_fractions, problem.n_scenarios, len(problem.eligible_cases)
    tails, excesses = int((fractions < 1).sum()), int(((fractions > 0) & (fractions < 1)).sum())
    losses = 0 if len(fractions) == tails == 1 else d
    variables = len(problem.selectable_cases) + n + problem.n_policies + losses + tails + excesses * d
    rows_of_tails = tails * d if losses else 0
    rows = 2 + len(problem.selectable_cases) + problem.n_policies + len(problem.pieces.coefficients) * d + rows_of_tails
    assert (model.numConstraints(), model.numVariables()) == arrays.rows.shape == (rows, variables)
    for variable in model.variables():
        variable.cat = "Continuous"
    model.solve(pulp.HiGHS(msg=False))
    relaxed = milp(
        arrays.cost,
        bounds=Bounds(arrays.lower, arrays.upper),
        constraints=LinearConstraint(arrays.rows, arrays.low, arrays.high),
    )
    assert pulp.value(model.objective) == pytest.approx(relaxed.fun, abs=1e-6)
    assert relaxed.fun * problem.unit <= brute_force(problem) + 1e-6 * problem.unit


class TwiceTheSame(ro.Measure):
    """CVaR(1/2) as a mixture that names the same tail fraction twice."""

    name = "twice"

    def tail_weight(self, tail: np.ndarray) -> np.ndarray:
        return ro.CVaR(0.5).tail_weight(tail)

    def cvar_mixture(self, probabilities: np.ndarray) -> Any:
        mixture = ro.CVaR(0.5).cvar_mixture(probabilities)
        assert mixture is not None
        return mixture._replace(shares=np.array([0.25, 0.75]), tail_fractions=np.array([0.5, 0.5]))


@pytest.mark.parametrize("backend", ["scipy-milp", "pulp-highs", "cvxpy-highs"])
def test_a_mixture_may_name_a_tail_fraction_twice(backend: str) -> None:
    problem = random_problem(17, n_cases=4, measure=TwiceTheSame())
    expected = brute_force(replace(problem, measure=ro.CVaR(0.5)))
    assert ro.solve(problem, backend).objective == pytest.approx(expected, abs=1e-6)


@functools.cache
def long_problem() -> tuple[ro.Problem, float]:
    """A selection that takes minutes, and the objective of a fair test for it."""
    results = racing_arrows(60, np.random.default_rng(0)).to_numpy()[:, :48]
    problem = ro.Problem(results=results, size=4, targets=ro.softmax_targets(results, betas=(0, 1, 2, 4)))
    some = replace(problem, forbidden_cases=tuple(case for case in range(60) if case % 5))
    return problem, ro.solve(some, "regret-matching", rounds=100).objective


@pytest.mark.parametrize("backend", ["pulp-cbc", "pulp-highs"])
def test_a_solver_that_calls_a_program_infeasible_claims_what_cannot_be(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contradictory(problem: ro.Problem) -> milp_programs.SelectionProgram:
        program = selection_program(problem)
        program.model.addConstraint(sum(program.chosen.values()) >= problem.size + 1)
        return program

    monkeypatch.setattr(milp_programs, "selection_program", contradictory)
    with pytest.raises(ro.FalseClaim, match="claims that there is no best test: it calls the program infeasible"):
        ro.solve(small_problems()["cvar"], backend)


@pytest.mark.parametrize("backend", ["pulp-cbc", "pulp-highs"])
def test_so_does_one_that_calls_it_unbounded(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def bottomless(problem: ro.Problem) -> milp_programs.SelectionProgram:
        program = selection_program(problem)
        program.model.setObjective(program.model.objective - program.model.add_variable("abyss", 0))
        return program

    monkeypatch.setattr(milp_programs, "selection_program", bottomless)
    # What a solver calls unbounded, PuLP may have as infeasible.
    with pytest.raises(ro.FalseClaim, match=r"claims that there is no best test: it calls the program (unb|inf)"):
        ro.solve(small_problems()["cvar"], backend)


@pytest.mark.parametrize(("status", "claim"), [(2, "infeasible"), (3, "unbounded")])
def test_so_does_scipys(status: int, claim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = direct._run_milp
    refused = lambda *asked, **options: SimpleNamespace(**{**run(*asked, **options), "status": status})  # noqa: E731
    monkeypatch.setattr(direct, "_run_milp", refused)
    with pytest.raises(ro.FalseClaim, match=f"SciPy's milp claims that there is no best test: .* {claim}"):
        ro.solve(small_problems()["cvar"], "scipy-milp")


@pytest.mark.parametrize("claim", ["infeasible", "unbounded"])
def test_so_does_one_that_is_asked_through_cvxpy(claim: str) -> None:
    program = TupleProgram(make_epigraph(small_problems()["cvar"]), 2, "CLARABEL")
    if claim == "infeasible":
        program.program = cp.Problem(program.objective, [*program.constraints, program.weights >= 1])
    else:
        bottomless = cp.Minimize(program.objective.expr - cp.Variable(nonneg=True))
        program.program = cp.Problem(bottomless, program.constraints)
    with pytest.raises(ro.FalseClaim, match=rf"CLARABEL claims that there is no best test of \[0, 1\]: {claim}"):
        program.solve((0, 1))


@pytest.mark.parametrize("backend", MIXED_INTEGER_BACKENDS)
def test_too_short_a_time_gives_no_false_claim(backend: str) -> None:
    problem, upper_bound = long_problem()
    solution = ro.solve(problem, backend, time_limit_seconds=0.2)
    assert solution.limit is ro.Limit.TIME
    assert solution.status is not ro.Status.OPTIMAL
    assert solution.lower_bound <= upper_bound + rounding(problem)
    if solution.test is None:
        assert solution.status is ro.Status.NO_TEST
    else:
        assert problem.why_not(solution.test) is None
        assert solution.objective == problem.objective(solution.test)


NOT_SOLVED = 0  # PuLP's status


HIGHS: Any = type(milp_programs.SOLVERS["HIGHS"].make(None, None, Path("log")))


class Tacit(HIGHS):  # type: ignore[misc] # PuLP has no types
    """HiGHS, of whose tests PuLP does not tell, as it does not tell of Gurobi's when time is up."""

    def actualSolve(self, program: Any) -> Any:
        super().actualSolve(program)
        program.assignStatus(NOT_SOLVED)
        return NOT_SOLVED


def test_a_test_that_pulp_does_not_tell_of_is_read_from_the_solvers_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    tacit = replace(
        milp_programs.SOLVERS["HIGHS"],
        make=lambda time_limit, threads, log: Tacit(msg=False, timeLimit=time_limit, gapRel=0),
        has_incumbent=lambda model: bool(np.isfinite(model.getObjectiveValue())),
    )
    monkeypatch.setitem(milp_programs.SOLVERS, "HIGHS", tacit)
    problem = random_problem(20, n_cases=8)
    solution = ro.solve(problem, "pulp-highs", time_limit_seconds=60)
    best = ro.solve(problem, "exact").objective
    assert solution.limit is ro.Limit.TIME
    assert [solution.objective, solution.lower_bound] == pytest.approx([best, best], abs=problem.allowance(1e-6))


def test_parts_of_a_measure_that_hardly_count_do_not_mislead_scipy() -> None:
    # With costs as they are, SciPy 1.17.1 calls the optimum of about one in fifteen of these too high.
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(4, 60))
        problem = ro.Problem(
            results=rng.integers(0, 5, (3, 3)) / 4,
            size=1,
            measure=ro.KOfN(int(rng.integers(1, min(n, 8) + 1)), n),
            targets=rng.dirichlet(np.ones(3), 2),
        )
        best = min(problem.objective(problem.test(cases=[case], weights=[1.0])) for case in range(3))
        arrays = selection_arrays(problem)
        outcome = direct._run_milp(arrays, None, presolve=True)
        assert outcome.fun * arrays.epigraph.unit == pytest.approx(best, abs=problem.allowance(1e-6))


def test_a_lie_that_scipy_repeats_unsimplified_is_still_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    run, asked = direct._run_milp, []

    def lie(arrays: direct.SelectionArrays, time_limit_seconds: float | None, *, presolve: bool) -> Any:
        asked.append(presolve)
        outcome = run(arrays, time_limit_seconds, presolve=presolve)
        outcome.fun, outcome.mip_dual_bound = outcome.fun + 0.1, outcome.mip_dual_bound + 0.1
        return outcome

    monkeypatch.setattr(direct, "_run_milp", lie)
    with pytest.raises(ro.BackendFailure, match="claims that no test is below"):
        ro.solve(random_problem(24, n_cases=5), "scipy-milp")
    assert asked == [True, False]


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
@pytest.mark.parametrize("loss", AFFINE_LOSSES, ids=repr)
def test_a_start_fulfils_every_constraint_and_is_worth_what_the_judge_says(loss: ro.Loss, measure: ro.Measure) -> None:
    for problem in (random_problem(21, loss=loss, measure=measure), random_problem(22, results=coin_flips(22))):
        program, test = selection_program(problem), ro.solve(problem, "regret-matching", rounds=5).test
        assert test is not None
        program.start_from(test)
        assert all(constraint.valid(1e-9) for constraint in program.model.constraints())
        worth = program.model.objective.value() * program.epigraph.unit
        assert worth == pytest.approx(problem.objective(test), abs=rounding(problem))


@pytest.mark.parametrize("backend", [name for name in MIXED_INTEGER_BACKENDS if name != "scipy-milp"])
def test_solvers_begin_with_the_test_that_they_are_given(backend: str) -> None:
    results = np.random.default_rng(0).random((40, 30))
    problem = ro.Problem(results=results, size=6, measure=ro.CVaR(0.1), targets=ro.softmax_targets(results))
    start = ro.solve(problem, "local-search", effort=2_000).test
    assert start is not None
    solution = ro.solve(problem, backend, start=start, time_limit_seconds=1.0)  # alone they are at twice that by then
    assert solution.objective <= problem.objective(start) + problem.allowance(1e-6)


def test_what_is_no_test_for_the_problem_is_no_start() -> None:
    problem = random_problem(23)
    with pytest.raises(ro.ProblemError, match="`start` must be a EfficientTest"):
        ro.solve(problem, "pulp-highs", start=[0, 1])
    with pytest.raises(ro.ProblemError, match=r"`start` is no test for this problem.*it has 1 test cases"):
        ro.solve(problem, "pulp-highs", start=replace(problem, size=1).test(cases=[0], weights=[1.0]))


@pytest.mark.skipif(find_spec("gurobipy") is None, reason="gurobipy is optional, and not free")
def test_gurobi_keeps_what_it_has_when_it_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = milp_programs.SOLVERS["GUROBI"]

    def at_the_root(time_limit: float | None, threads: int | None, log: Path) -> Any:
        solver = whole.make(time_limit, threads, log)
        solver.env_options["NodeLimit"] = 1
        return solver

    monkeypatch.setitem(milp_programs.SOLVERS, "GUROBI", replace(whole, make=at_the_root))
    solution = ro.solve(long_problem()[0], "pulp-gurobi", threads=1)
    assert solution.status is ro.Status.FEASIBLE and 0 < solution.lower_bound < solution.objective


@pytest.mark.skipif(find_spec("gurobipy") is None, reason="gurobipy is optional, and not free")
def test_gurobi_is_told_of_zeros_too() -> None:
    solver = milp_programs.SOLVERS["GUROBI"].make(0.0, 2, Path("log"))
    solver.initGurobi()
    told = solver.model.Params
    assert (told.MIPGap, told.MIPGapAbs, told.TimeLimit, told.Threads) == (0, 0, 0, 2)


@pytest.mark.skipif(find_spec("gurobipy") is None, reason="gurobipy is optional, and not free")
def test_a_program_that_gurobi_refuses_is_told() -> None:
    problem = random_problem(21, n_cases=1200, size=1)
    with pytest.raises(ro.LicenceMissing, match="GUROBI has no licence for this program: Model too large for size-lim"):
        ro.solve(problem, "pulp-gurobi")


@pytest.mark.parametrize(
    ("said", "bound"),
    [
        (
            "Cbc0005I Partial search - best objective 0.5 (best possible 0.25), took 9 iterations\n"
            "Result - Stopped on time limit\n\nObjective value:  0.50000000\nLower bound:   0.300\nGap:   0.67\n",
            0.25,
        ),
        ("Cbc0010I After 100 nodes, 50 on tree, 1e+50 best solution, best possible 2.5e-05 (3.0 seconds)\n", 2.5e-5),
        ("Cbc0005I Partial search - best objective 1e+50 (best possible -0.123457), took 0 iterations\n", -0.123457),
        ("Result - No feasible solution found\nLower bound:   0.125\n", None),  # rounded, perhaps upwards
        ("Cbc0010I After 9 nodes, best possible 0.1 (3 seconds)\nResult - Optimal solution found\n", None),
        ("Welcome to the CBC MILP Solver\n", None),
        (None, None),
    ],
)
def test_cbcs_bound_is_the_last_in_its_log_if_it_was_stopped(
    said: str | None, bound: float | None, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    if said is not None:
        log.write_text(said)
    told = milp_programs._bound_in_cbcs_log(None, log)
    assert told == (None if bound is None else pytest.approx(bound, rel=6e-6))
    assert told is None or bound is None or told < bound - 4e-6 * abs(bound)  # six digits may have been rounded up


@pytest.mark.parametrize("backend", [name for name in MIXED_INTEGER_BACKENDS if name.startswith("pulp")])
def test_the_number_of_threads_makes_no_difference_to_the_optimum(backend: str) -> None:
    problem = random_problem(22, n_cases=8)
    objectives = [ro.solve(problem, backend, threads=threads).objective for threads in (1, 2)]
    assert objectives == pytest.approx([ro.solve(problem, "exact").objective] * 2, abs=problem.allowance(1e-6))
    with pytest.raises(ro.ProblemError, match=r"`threads` must be at least 1, got 0\."):
        ro.solve(problem, backend, threads=0)


@pytest.mark.parametrize("backend", MIXED_INTEGER_BACKENDS)
def test_without_time_nothing_is_found_and_hardly_anything_proved(backend: str) -> None:
    problem, upper_bound = long_problem()
    solution = ro.solve(problem, backend, time_limit_seconds=0)
    assert (solution.status, solution.limit) == (ro.Status.NO_TEST, ro.Limit.TIME)
    # Nothing, or that losses are not negative, or a first relaxation; no solver's own infinity.
    assert solution.lower_bound == -np.inf or 0 <= solution.lower_bound <= upper_bound


@pytest.mark.parametrize("backend", MIXED_INTEGER_BACKENDS)
def test_what_no_mixed_integer_linear_program_states_is_declined_with_the_reason(backend: str) -> None:
    with pytest.raises(ro.Unsupported, match="it does not handle a loss with curvature"):
        ro.solve(random_problem(18, loss=ro.HuberError()), backend)
    with pytest.raises(ro.Unsupported, match="it does not handle a measure known only by its tail weights"):
        ro.solve(random_problem(18, measure=ro.KOfN(2, 5), probabilities=uneven(18)), backend)


@pytest.mark.parametrize("ending", [".mps", ".lp"])
@pytest.mark.parametrize("name", PROBLEM_NAMES)
def test_a_written_model_is_read_and_solved_to_the_same_value(name: str, ending: str, tmp_path: Path) -> None:
    problem, path = small_problems()[name], tmp_path / f"model{ending}"
    write_model(problem, path)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    value = solver.getInfo().objective_function_value * problem.unit
    assert value == pytest.approx(brute_force(problem), abs=1e-6 * problem.unit)


# 5. The whole selection as a mixed-integer convex program.


@pytest.mark.slow
@pytest.mark.skipif(find_spec("pyscipopt") is None, reason="SCIP is not installed")
@pytest.mark.parametrize("loss", CURVED_LOSSES, ids=repr)
@pytest.mark.parametrize(
    "options",
    [
        {"measure": ro.CVaR(0.3)},
        {"measure": HALF_AND_HALF, "probabilities": uneven(19)},
        {"measure": ro.WorstCase(), "required_cases": [2], "forbidden_cases": [0], "size": 1},
    ],
    ids=["cvar", "unequal", "required and forbidden"],
)
def test_choosing_and_weighing_at_once_equals_enumeration_for_curved_losses(
    loss: ro.Loss, options: dict[str, Any]
) -> None:
    problem = random_problem(19, n_cases=4, loss=loss, **options)
    solution = ro.solve(problem, ConvexSelection(solver="SCIP"))
    slack = convex.MIXED_INTEGER_TOLERANCE * problem.unit
    assert solution.status is ro.Status.OPTIMAL
    assert solution.objective == pytest.approx(ro.solve(problem, "cvxpy-clarabel").objective, abs=slack)
    assert solution.objective == pytest.approx(brute_force(problem), abs=slack)
    assert solution.lower_bound <= brute_force(problem) + rounding(problem)


def test_a_solver_that_takes_no_integers_cannot_choose() -> None:
    with pytest.raises(ro.ProblemError, match="one of SCIP, GUROBI, MOSEK, got 'CLARABEL'"):
        ConvexSelection(solver="CLARABEL")


@pytest.mark.skipif(find_spec("pyscipopt") is None, reason="SCIP is not installed")
def test_choosing_and_weighing_at_once_without_time_is_no_failure() -> None:
    solution = ro.solve(
        random_problem(19, loss=ro.SquaredError()), ConvexSelection(solver="SCIP"), time_limit_seconds=0
    )
    assert solution.limit is ro.Limit.TIME
    assert solution.status is ro.Status.NO_TEST


# 6. A fresh tuple for every evaluation.

MIXERS: list[Callable[[ro.Problem], MixedOptimum]] = [explicit_optimum, column_generation_optimum]


def check_mixed(problem: ro.Problem, mixed: MixedOptimum, tolerance: float = 1e-6) -> None:
    assert mixed.probabilities.min() >= 0
    assert mixed.probabilities.sum() == pytest.approx(1, abs=1e-9)
    assert len({test.cases for test in mixed.tests}) == len(mixed.tests) == len(mixed.probabilities)
    assert all(problem.why_not(test) is None for test in mixed.tests)
    expected = sum(q * problem.losses(test) for q, test in zip(mixed.probabilities, mixed.tests, strict=True))
    value = problem.measure.value(np.asarray(expected), problem.scenarios.probabilities)
    assert mixed.objective == pytest.approx(value, abs=rounding(problem))
    assert mixed.objective == mixed_objective(problem, mixed.tests, mixed.probabilities)
    assert mixed.lower_bound <= mixed.objective <= mixed.lower_bound + problem.allowance(tolerance)


@pytest.mark.parametrize("name", PROBLEM_NAMES)
def test_both_ways_to_the_mixed_optimum_agree_and_beat_the_sequential_one(name: str) -> None:
    problem = small_problems()[name]
    explicit, by_columns = explicit_optimum(problem), column_generation_optimum(problem)
    assert explicit.objective == pytest.approx(by_columns.objective, abs=1e-6 * problem.unit)
    for mixed in (explicit, by_columns):
        check_mixed(problem, mixed)
        assert mixed.objective <= ro.solve(problem, "scipy-milp").objective + 1e-7 * problem.unit
        assert mixed.lower_bound <= min(explicit.objective, by_columns.objective) + rounding(problem)


@settings(max_examples=10)
@given(problem=problems(most_cases=4, most_policies=3))
def test_both_ways_to_the_mixed_optimum_agree_on_any_problem(problem: ro.Problem) -> None:
    assume(problem.needs == {ro.Need.CVAR_MIXTURE, ro.Need.POLYHEDRAL_LOSS})
    explicit, by_columns = explicit_optimum(problem), column_generation_optimum(problem)
    assert explicit.objective == pytest.approx(by_columns.objective, abs=problem.allowance(1e-6))
    check_mixed(problem, explicit)
    check_mixed(problem, by_columns)
    assert by_columns.objective <= brute_force(problem) + problem.allowance(1e-6)


@pytest.mark.parametrize("find", MIXERS)
def test_mixing_does_not_help_where_every_case_is_off_by_the_same(find: Callable[[ro.Problem], MixedOptimum]) -> None:
    """Results 0 and 1, target 1/2: either case is off by 1/2, and so is every average of losses."""
    problem = ro.Problem(results=[[0.0], [1.0]], size=1)
    assert brute_force(problem) == 0.5
    assert find(problem).objective == pytest.approx(0.5, abs=1e-9)
    check_mixed(problem, find(problem))


@pytest.mark.parametrize("find", MIXERS)
def test_mixing_halves_the_worst_case_where_cases_err_in_turn(find: Callable[[ro.Problem], MixedOptimum]) -> None:
    """Case 0 over-estimates policy 0 by 1, case 1 under-estimates policy 1 by 1, and case 2 is the target.

    Either case alone has a worst loss of 1. Drawn with probabilities q and 1 - q they have the expected losses q and
    1 - q, whose larger one is least, at 1/2, for q = 1/2.
    """
    problem = ro.Problem(
        results=[[1.0, 0.0], [0.0, -1.0], [0.0, 0.0]],
        size=1,
        measure=ro.WorstCase(),
        targets=[[0.0, 0.0, 1.0]],
        forbidden_cases=[2],
    )
    mixed = find(problem)
    assert brute_force(problem) == 1.0
    assert mixed.objective == pytest.approx(0.5, abs=1e-7)
    assert mixed.lower_bound == pytest.approx(0.5, abs=1e-6)
    assert sorted(test.cases for test in mixed.tests) == [(0,), (1,)]
    np.testing.assert_allclose(mixed.probabilities, 0.5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2])
def test_a_curved_loss_is_mixed_by_columns_and_refused_by_the_explicit_program(size: int) -> None:
    """Errors of 1 on one policy each, squared: alone 1, mixed 1/2; together w² and (1 - w)², at best 1/4."""
    problem = ro.Problem(
        results=[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]],
        size=size,
        measure=ro.WorstCase(),
        loss=ro.SquaredError(),
        targets=[[0.0, 0.0, 1.0]],
        forbidden_cases=[2],
    )
    with pytest.raises(ro.Unsupported, match="affine pieces"):
        explicit_optimum(problem)
    mixed = column_generation_optimum(problem)
    check_mixed(problem, mixed)
    assert mixed.objective == pytest.approx({1: 0.5, 2: 0.25}[size], abs=1e-6)


def test_a_curved_loss_mixed_by_columns_beats_the_sequential_optimum_on_random_problems() -> None:
    for loss, seed in zip(CURVED_LOSSES, (20, 21), strict=True):
        problem = random_problem(seed, n_cases=3, loss=loss, measure=ro.CVaR(0.3))
        mixed = column_generation_optimum(problem)
        check_mixed(problem, mixed)
        assert mixed.objective <= brute_force(problem) + 1e-6 * problem.unit


@pytest.mark.parametrize("loss", [ro.AbsoluteError(), ro.SquaredError()])
@pytest.mark.parametrize("limit", [0, 10**9])
def test_the_mixed_optimum_does_not_depend_on_the_way_to_it(
    loss: ro.Loss, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simultaneous, "EXPLICIT_LOSSES", limit)
    problem = ro.Problem(results=np.random.default_rng(4).random((5, 4)), size=2, measure=ro.CVaR(0.5), loss=loss)
    optimum = simultaneous.simultaneous_optimum(problem)
    by_columns = simultaneous.column_generation_optimum(problem)
    assert optimum.objective == pytest.approx(by_columns.objective, abs=1e-6 * problem.unit)
