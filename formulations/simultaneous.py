r"""The exact optimum of RPOSST_sim, where a fresh tuple is drawn for every evaluation (paper, appendix; Algorithm 3).

The protagonist plays a distribution over tuples with weights for each; the antagonist does not see the draw. A
scenario's loss is then the *expected* loss over tuples, and the measure is applied to that.

*As one linear program* (`explicit_optimum`), for few tuples.

Variables    u_τx ≥ 0 (the probability of tuple τ times its weight on case x), t_τs (its share of scenario s's loss)
Constraints  Σ_τx u_τx = 1;  t_τs ≥ Σ_x u_τx [c_p0 + c_p1 (A[x, j_s] - b_s)] for every affine piece p
             ℓ_s = Σ_τ t_τs, and the tails of `formulations.epigraph`
Objective    minimise ρ(ℓ)

Why: t_τs ≥ P(τ) Δ(score - b_s) is the piece's inequality times P(τ) = Σ_x u_τx, so products never appear.

*By columns* (`column_generation_optimum`), for many tuples. Every test (τ, w) is a column, its vector of losses; the
master program mixes the columns it has. Its multipliers are weights α on scenarios that the measure allows, and for any
such α

.. math:: \min_{(\tau, w)} \sum_s \alpha_s \ell_s(w) \le \text{optimum}

since no mixture of tests has a smaller α-average than its best member. The left side is our own problem again, with
the mean as its measure and α as its Ψ: solving it either yields a column that improves the mixture or proves that none
does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, sparse

from formulations.duality import allowed_tail_weights
from formulations.epigraph import Epigraph, make_epigraph
from rposst_opt.arrays import FloatArray
from rposst_opt.contract import Budget, Candidate
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import BackendFailure, Unsupported
from rposst_opt.measures import Mean
from rposst_opt.problem import Need, Problem
from rposst_opt.solvers.exact import Exact
from rposst_opt.solvers.simultaneous import SMALLEST_PROBABILITY, MixedTest

COLUMN_TOLERANCE = 1e-7  # relative to the scale of losses: how much a column must promise to be worth adding
EXPLICIT_LOSSES = 20_000  # tuples times scenarios up to which the explicit program is the faster way


@dataclass(frozen=True)
class MixedOptimum:
    """A distribution over tests, what it is worth, and what is proved.

    Attributes
    ----------
    tests : tuple of EfficientTest
    probabilities : ndarray of shape (n_tests,)
    objective : float
        The measure of the expected losses, by `Problem.losses` and the measure.
    lower_bound : float
        No distribution over tests does better.
    """

    tests: tuple[EfficientTest, ...]
    probabilities: FloatArray
    objective: float
    lower_bound: float


def simultaneous_optimum(problem: Problem) -> MixedOptimum:
    """The best distribution over tests: all at once where the program is small and linear, by columns otherwise."""
    small = problem.n_tuples * problem.n_scenarios <= EXPLICIT_LOSSES
    if small and Need.POLYHEDRAL_LOSS in problem.needs:
        return explicit_optimum(problem)
    return column_generation_optimum(problem)


def explicit_optimum(problem: Problem) -> MixedOptimum:
    """Solve the linear program over all tuples at once; a loss with affine pieces is needed."""
    if Need.CURVED_LOSS in problem.needs:
        raise Unsupported("the explicit program needs a loss made of affine pieces: use column_generation_optimum.")
    epigraph = make_epigraph(problem)
    tuples = [sorted(cases) for cases in problem.tuples()]
    width, d = problem.n_chosen, len(epigraph.full_scores)
    errors = epigraph.results[:, epigraph.policies] - epigraph.full_scores
    blocks = []
    for c0, c1, _ in epigraph.pieces.coefficients:
        masses = sparse.block_diag([sparse.csr_array(c0 + c1 * errors[cases].T) for cases in tuples])
        blocks.append(sparse.hstack([masses, -sparse.eye_array(len(tuples) * d)]))
    n_masses = len(tuples) * width
    outcome, _, multipliers = _minimise_measure(
        epigraph,
        losses=sparse.hstack([sparse.csr_array((d, n_masses)), *[sparse.eye_array(d)] * len(tuples)]),
        rows=sparse.vstack(blocks),
        total=np.concatenate([np.ones(n_masses), np.zeros(len(tuples) * d)]),
        free=np.concatenate([np.zeros(n_masses, dtype=bool), np.ones(len(tuples) * d, dtype=bool)]),
    )
    masses_by_tuple = np.maximum(outcome[:n_masses], 0.0).reshape(len(tuples), width)
    probabilities = masses_by_tuple.sum(axis=1)
    drawn = np.flatnonzero(probabilities > SMALLEST_PROBABILITY)
    tests = [problem.test(cases=tuples[i], weights=masses_by_tuple[i] / probabilities[i]) for i in drawn]
    return _mixed(problem, tests, probabilities[drawn], _best_answer(problem, epigraph, multipliers).lower_bound)


def column_generation_optimum(problem: Problem, *, most_columns: int = 10_000) -> MixedOptimum:
    """Add the test that the current mixture lacks most, until none is lacking."""
    epigraph = make_epigraph(problem)
    first = next(problem.tuples())
    tests = [problem.test(cases=first, weights=np.full(problem.n_chosen, 1 / problem.n_chosen))]
    lower_bound = -np.inf
    while True:
        columns = np.stack([problem.losses(test) for test in tests], axis=1) / epigraph.unit
        mixture, value, multipliers = _minimise_measure(
            epigraph,
            losses=sparse.csr_array(columns),
            rows=sparse.csr_array((0, len(tests))),
            total=np.ones(len(tests)),
            free=np.zeros(len(tests), dtype=bool),
        )
        answer = _best_answer(problem, epigraph, multipliers)
        lower_bound = max(lower_bound, answer.lower_bound)
        promise = value * epigraph.unit - lower_bound
        if answer.test is None or promise <= COLUMN_TOLERANCE * problem.unit or len(tests) >= most_columns:
            break
        column = problem.losses(answer.test) / epigraph.unit
        if np.abs(columns - column[:, None]).max(axis=0).min() <= COLUMN_TOLERANCE / 10:
            break  # the column is there already: what is promised is the pricing's own inaccuracy
        tests.append(answer.test)
    return _mixed(problem, tests, mixture, lower_bound)


def _best_answer(problem: Problem, epigraph: Epigraph, multipliers: FloatArray) -> Candidate:
    """The test with the least average loss under the weights that the multipliers stand for."""
    alpha = allowed_tail_weights(epigraph, multipliers)
    table = np.zeros_like(problem.probabilities)
    table[np.nonzero(problem.probabilities)] = alpha / alpha.sum()
    return Exact().solve(replace(problem, measure=Mean(), probabilities=table), Budget())


def _mixed(
    problem: Problem, tests: Sequence[EfficientTest], probabilities: FloatArray, lower_bound: float
) -> MixedOptimum:
    """One test per tuple: averaging the weights of a tuple's tests cannot hurt, since losses are convex."""
    total: dict[tuple[int, ...], float] = {}
    weights: dict[tuple[int, ...], FloatArray] = {}
    for test, probability in zip(tests, probabilities, strict=True):
        if probability > SMALLEST_PROBABILITY:
            total[test.cases] = total.get(test.cases, 0.0) + probability
            weights[test.cases] = weights.get(test.cases, np.zeros(len(test.cases))) + probability * test.weights
    kept = tuple(problem.test(cases=cases, weights=weights[cases] / total[cases]) for cases in total)
    mixture = np.array(list(total.values())) / sum(total.values())
    objective = mixed_objective(problem, kept, mixture)
    return MixedOptimum(kept, mixture, objective, min(lower_bound, objective))


def mixed_objective(problem: Problem, tests: Sequence[EfficientTest], probabilities: FloatArray) -> float:
    """The measure of the losses that are expected when a test is drawn for every evaluation."""
    return MixedTest(tuple(tests), probabilities).objective(problem)


def exploitability(problem: Problem, mixed: MixedTest) -> float:
    """By how much a distribution over tests exceeds the best one's objective, at most."""
    return mixed.objective(problem) - simultaneous_optimum(problem).lower_bound


def _minimise_measure(
    epigraph: Epigraph, *, losses: sparse.sparray, rows: sparse.sparray, total: FloatArray, free: FloatArray
) -> tuple[FloatArray, float, FloatArray]:
    """Minimise the measure of ``losses @ z`` subject to ``rows @ z <= 0`` and ``total @ z = 1``.

    Returns z, the value, and the multipliers of ``u_is >= l_s - v_i``.
    """
    d, n = losses.shape
    parts = [(share, eta) for share, eta in zip(epigraph.shares, epigraph.tail_fractions, strict=True)]
    n_parts = len(parts)
    width = n + n_parts + n_parts * d  # z, v, u; the u of a part with η = 0 are fixed at zero
    cost = np.zeros(width)
    upper = np.full(width, np.inf)
    least, greatest = epigraph.loss_range()
    lower = np.concatenate([np.where(free, -np.inf, 0.0), np.full(n_parts, least), np.zeros(n_parts * d)])
    upper[n : n + n_parts] = greatest
    blocks = [sparse.hstack([rows, sparse.csr_array((rows.shape[0], width - n))])]
    for i, (share, eta) in enumerate(parts):
        cost[n + i] = share
        place = slice(n + n_parts + i * d, n + n_parts + (i + 1) * d)
        if eta == 0:
            upper[place] = 0.0
        else:
            cost[place] = share * epigraph.probabilities / eta
        minus_v = sparse.csr_array((-np.ones(d), (np.arange(d), np.full(d, i))), shape=(d, n_parts))
        minus_u = sparse.csr_array((-np.ones(d), (np.arange(d), i * d + np.arange(d))), shape=(d, n_parts * d))
        blocks.append(sparse.hstack([losses, minus_v, minus_u]))
    outcome = optimize.linprog(
        cost,
        A_ub=sparse.csr_array(sparse.vstack(blocks)),
        b_ub=np.zeros(rows.shape[0] + n_parts * d),
        A_eq=np.concatenate([total, np.zeros(width - n)])[None, :],
        b_eq=np.ones(1),
        bounds=np.stack([lower, upper], axis=1),
        method="highs",
    )
    if outcome.status != 0:
        raise BackendFailure(f"SciPy's linprog could not solve the master program: {outcome.message}")
    multipliers = -outcome.ineqlin.marginals[rows.shape[0] :].reshape(n_parts, d)
    return outcome.x[:n], float(outcome.fun), multipliers
