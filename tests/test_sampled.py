"""Algorithm 1: sampled objectives against exact ones, the Theorem's promise, and seeds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.solvers.bounds import largest_loss, sampled_gap
from rposst_opt.solvers.kernels.sampled import mean_of_worst, play_sampled
from rposst_opt.solvers.sampled import DirichletSampler, SampledRegretMatching, TableSampler, k_and_n


def arrows(n: int, size: int, **changes: Any) -> ro.Problem:
    table = racing_arrows(n, np.random.default_rng(5)).to_numpy()
    return ro.Problem(results=table, size=size, targets=ro.softmax_targets(table), **changes)


def uneven(problem: ro.Problem) -> ro.Problem:
    weights = np.random.default_rng(1).dirichlet(np.ones(problem.probabilities.size))
    return replace(problem, probabilities=weights.reshape(problem.probabilities.shape))


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 10), (3, 10), (10, 10)])
@pytest.mark.parametrize("equal", [True, False])
def test_sampled_losses_converge_to_the_exact_measure(k: int, n: int, equal: bool) -> None:
    problem = arrows(8, 2, measure=ro.KOfN(k, n))
    problem = problem if equal else uneven(problem)
    test = problem.test(cases=[1, 4], weights=[0.3, 0.7])
    rng, samples = np.random.default_rng(0), 40_000
    policies, targets = TableSampler(problem).draw(rng, (1, samples, n))
    means = np.empty((1, samples))
    pieces = problem.loss.pieces
    mean_of_worst(problem.scores(test)[None], policies, targets, k, pieces.knots, pieces.coefficients, means)
    assert means.mean() == pytest.approx(problem.objective(test), abs=5 * means.std() / np.sqrt(samples) + 1e-12)


def rounds_by_hand(
    problem: ro.Problem, cases: list[int], policies: np.ndarray, targets: np.ndarray, k: int
) -> np.ndarray:
    """The inner loop of Algorithm 1, as the pseudocode has it."""
    q = np.zeros(len(cases))
    for drawn_policies, drawn_targets in zip(policies, targets, strict=True):
        w = q / q.sum() if q.sum() > 0 else np.full(len(cases), 1 / len(cases))
        scores = w @ problem.results[cases]
        losses = problem.loss.value(scores[drawn_policies], drawn_targets)
        worst = np.argsort(-losses, kind="stable")[:k]
        slopes = problem.loss.slope(scores[drawn_policies[worst]], drawn_targets[worst])
        v = -(problem.results[cases][:, drawn_policies[worst]] @ slopes) / k
        q = np.maximum(q + v - w @ v, 0)
    return w


@pytest.mark.parametrize("loss", [ro.AbsoluteError(), ro.SquaredError(), ro.HuberError(0.1)], ids=repr)
@pytest.mark.parametrize(("k", "n"), [(1, 5), (4, 9), (6, 6)])
def test_the_compiled_loop_is_the_pseudocode(loss: ro.Loss, k: int, n: int) -> None:
    problem = ro.Problem(results=np.random.default_rng(2).random((6, 7)), size=3, loss=loss, required_cases=[5])
    policies, targets = TableSampler(problem).draw(np.random.default_rng(3), (40, n))
    tuples = np.array([[0, 1, 2, 5], [1, 3, 4, 5]])
    weights = np.empty(tuples.shape)
    pieces = problem.loss.pieces
    play_sampled(tuples, policies, targets, k, problem.results, pieces.knots, pieces.coefficients, weights)
    for cases, mine in zip(tuples.tolist(), weights, strict=True):
        np.testing.assert_allclose(mine, rounds_by_hand(problem, cases, policies, targets, k), atol=1e-12)


def test_the_theorems_promise_is_kept() -> None:
    """With p = q = 1/4 a gap of ε/q in at least 9/16 of the runs; with the rounds played it is kept in nearly all."""
    problem = arrows(8, 2, measure=ro.KOfN(1, 10))
    optimum = ro.solve(problem, "exact").objective
    promise = sampled_gap(problem, rounds=400, p=0.25, q=0.25)
    runs = [ro.solve(problem, "sampled-regret-matching", rounds=400, seed=seed).objective for seed in range(200)]
    assert promise.probability == pytest.approx(9 / 16)
    assert np.mean(np.array(runs) - optimum <= promise.gap) >= promise.probability
    # The promise is wide. What is reached is far better, and would not be without learning and choosing.
    uniform = ro.solve(problem, "minimax-uniform").objective
    assert np.median(runs) - optimum <= 0.25 * (uniform - optimum) + 0.02 * largest_loss(problem)


def test_more_rounds_and_samples_come_closer() -> None:
    problem = arrows(10, 2, measure=ro.KOfN(2, 20))
    optimum = ro.solve(problem, "exact").objective

    def typical_gap(rounds: int, samples: int) -> float:
        options: dict[str, Any] = {"rounds": rounds, "samples_per_tuple": samples}
        runs = [ro.solve(problem, "sampled-regret-matching", seed=seed, **options).objective for seed in range(15)]
        return float(np.median(runs)) - optimum

    assert typical_gap(2000, 400) < 0.5 * typical_gap(5, 2)


@pytest.mark.parametrize("size", [2, 3])
def test_the_same_seed_on_one_thread_or_two_and_another_seed(size: int) -> None:
    problem = arrows(14, size, measure=ro.KOfN(1, 10))
    runs = [
        ro.solve(problem, "sampled-regret-matching", rounds=60, seed=seed, threads=threads)
        for seed, threads in ((1, 1), (1, 2), (2, 2))
    ]
    tests = [run.test for run in runs]
    assert tests[0] is not None and tests[1] is not None and tests[2] is not None
    assert tests[0].cases == tests[1].cases
    assert np.array_equal(tests[0].weights, tests[1].weights)
    assert runs[0].stats.rounds != runs[2].stats.rounds or not np.array_equal(tests[0].weights, tests[2].weights)


def test_scenarios_may_come_from_an_infinite_distribution() -> None:
    problem = arrows(8, 2, measure=ro.KOfN(1, 5))
    sampler = DirichletSampler(problem, concentration=0.5)
    policies, targets = sampler.draw(np.random.default_rng(0), (3000, 2))
    assert policies.shape == targets.shape == (3000, 2)
    means = [targets[policies == j].mean() for j in range(problem.n_policies)]
    np.testing.assert_allclose(means, problem.results.mean(axis=0), atol=0.05)  # a symmetric Dirichlet has uniform mean
    assert len(np.unique(targets)) > 1000
    solution = ro.solve(problem, "sampled-regret-matching", rounds=50, sampler=sampler)
    assert solution.test is not None


def test_the_table_is_drawn_from_by_its_probabilities() -> None:
    problem = uneven(arrows(5, 1))
    policies, targets = TableSampler(problem).draw(np.random.default_rng(0), (200_000,))
    scenarios = problem.scenarios
    for policy, target, probability in zip(*scenarios[:3], strict=True):
        share = np.mean((policies == policy) & (targets == target))
        alike = scenarios.probabilities[(scenarios.policies == policy) & (scenarios.full_scores == target)].sum()
        assert share == pytest.approx(alike, abs=5 * np.sqrt(alike / 200_000)), probability


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (ro.KOfN(3, 8), (3, 8)),
        (ro.CVaR(0.25), (25, 100)),
        (ro.CVaR(0.001), (1, 100)),
        (ro.CVaR(0.0), (1, 100)),
        (ro.WorstCase(), (1, 100)),
        (ro.Mean(), (100, 100)),
    ],
    ids=repr,
)
def test_which_scenarios_count_for_a_measure(measure: ro.Measure, expected: tuple[int, int]) -> None:
    assert k_and_n(measure, 100) == expected


def test_other_measures_are_refused() -> None:
    problem = arrows(6, 1, measure=ro.Mixture([(0.5, ro.Mean()), (0.5, ro.WorstCase())]))
    with pytest.raises(ro.Unsupported, match="KOfN"):
        ro.solve(problem, "sampled-regret-matching")


@pytest.mark.parametrize("options", [{"rounds": 0}, {"draws": 0}, {"samples_per_tuple": 1.5}, {"threads": 0}], ids=str)
def test_options_without_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ro.ProblemError):
        SampledRegretMatching(**options)


def test_a_time_limit_still_gives_a_test() -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((40, 10)), size=3, measure=ro.KOfN(1, 50))
    solution = ro.solve(problem, "sampled-regret-matching", time_limit_seconds=0.0)
    assert solution.limit is ro.Limit.TIME
    assert solution.test is not None
