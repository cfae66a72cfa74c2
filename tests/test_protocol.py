"""Splits, what reaches a solver and what does not, errors against a slow oracle, intervals against SciPy."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rposst_opt as ro
from rposst_opt.arrays import FloatArray
from rposst_opt.backends import BACKENDS
from rposst_opt.experiments import protocol
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.experiments.methods import METHODS, WORK_OF_GAMES, options_of
from rposst_opt.experiments.protocol import (
    Choice,
    Split,
    choose_tests,
    draw_split,
    holdout_errors,
    mean_with_interval,
    tuning_problem,
)
from rposst_opt.experiments.studies import Cell, Study

QUICK = ("exact", "regret-matching", "minimax-uniform", "iterative-minimax", "random")


def study(seed: int = 0, n: int = 12, **changes: object) -> Study:
    table = racing_arrows(n, np.random.default_rng(seed))
    return Study(name="arrows", title="Arrows", table=table, methods=QUICK, replicas=3, **changes)  # type: ignore[arg-type]


class TestSplits:
    @given(st.integers(2, 60), st.integers(1, 60), st.floats(0.02, 0.98), st.integers(0, 99))
    def test_every_policy_is_on_one_side(self, n_policies: int, n_cases: int, holdout: float, seed: int) -> None:
        held = round(holdout * n_policies)
        if not 0 < held < n_policies:
            with pytest.raises(ro.ProblemError, match="leaves none on one side"):
                draw_split((n_cases, n_policies), holdout, np.random.default_rng(seed))
            return
        split = draw_split((n_cases, n_policies), holdout, np.random.default_rng(seed))
        assert sorted([*split.tuning, *split.holdout]) == list(range(n_policies))
        assert len(split.holdout) == held
        assert split.cases.tolist() == list(range(n_cases))

    @pytest.mark.parametrize(("n", "holdout", "held"), [(50, 0.2, 10), (50, 0.6, 30), (15, 0.2, 3), (46, 0.4, 18)])
    def test_as_many_as_in_the_paper_are_held_out(self, n: int, holdout: float, held: int) -> None:
        assert len(draw_split((n, n), holdout, np.random.default_rng(0)).holdout) == held

    def test_rows_are_held_out_too_where_asked(self) -> None:
        split = draw_split((500, 500), 0.96, np.random.default_rng(0), hold_out_cases=True)
        assert (len(split.cases), len(split.tuning), len(split.holdout)) == (20, 20, 480)
        assert split.cases.tolist() != split.tuning.tolist()

    def test_every_policy_is_held_out_about_equally_often(self) -> None:
        times = np.zeros(20)
        for replica in range(1000):
            times[study(n=20).split(Cell(0.2, 1, replica)).holdout] += 1
        # Binomial(1000, 0.2): mean 200, standard deviation 12.6.
        assert np.all(np.abs(times - 200) < 5 * 12.7)

    def test_splits_are_the_same_for_all_sizes_and_differ_between_replicas_and_holdouts(self) -> None:
        of = study(n=30)
        assert of.split(Cell(0.2, 1, 5)).holdout.tolist() == of.split(Cell(0.2, 3, 5)).holdout.tolist()
        assert of.split(Cell(0.2, 1, 5)).holdout.tolist() != of.split(Cell(0.2, 1, 6)).holdout.tolist()
        assert not set(of.split(Cell(0.2, 1, 5)).holdout) <= set(of.split(Cell(0.4, 1, 5)).holdout)


class TestLeakage:
    @settings(max_examples=10)
    @given(st.integers(0, 10**6), st.sampled_from([0.2, 0.4, 0.6]), st.integers(1, 2))
    def test_whatever_held_out_policies_do_the_chosen_tests_are_the_same(
        self, seed: int, holdout: float, size: int
    ) -> None:
        of = study()
        cell = Cell(holdout, size, seed % 7)
        split = of.split(cell)
        other_table = of.table.copy()
        other_table.iloc[:, split.holdout] = np.random.default_rng(seed).normal(
            scale=1e3, size=(12, len(split.holdout))
        )
        other = Study(name="arrows", title="Arrows", table=other_table, methods=QUICK)
        assert other.task(cell).digest == of.task(cell).digest
        assert other.task(cell).run() == of.task(cell).run()

    def test_a_task_has_no_room_for_held_out_columns(self) -> None:
        of = study()
        task = of.task(Cell(0.4, 2, 0))
        split = of.split(Cell(0.4, 2, 0))
        assert task.tuning.shape == (12, 12 - len(split.holdout))
        np.testing.assert_array_equal(task.tuning, of.table.iloc[:, split.tuning].to_numpy())

    def test_scale_and_targets_of_errors_come_from_tuning_policies(self) -> None:
        results = np.array([[0.0, 2.0, 50.0], [2.0, 0.0, -50.0]])
        split = Split(cases=np.array([0, 1]), tuning=np.array([0, 1]), holdout=np.array([2]))
        # Tuning results lie in [0, 2] and both cases have the mean 1, so all targets are uniform: the score of the
        # held-out policy is 0 by every target, and 50 by the first case. Off by 50, in units of 2.
        errors = holdout_errors(results, split, Choice("exact", (0,), (1.0,), 0.0))
        np.testing.assert_allclose(errors, [[25.0, 25.0, 25.0, 25.0]])


def errors_one_by_one(results: FloatArray, tuning: list[int], holdout: list[int], choice: Choice) -> list[list[float]]:
    """The paper's section "Experimental Setup", told one number after the other."""
    seen = [[row[j] for j in tuning] for row in results.tolist()]
    low, high = min(map(min, seen)), max(map(max, seen))
    means = [sum((value - low) / (high - low) for value in row) / len(row) for row in seen]
    errors = []
    for j in holdout:
        score = sum(w * results[x, j] for x, w in zip(choice.cases, choice.weights, strict=True))
        of_policy = []
        for beta in (0, 1, 2, 4):
            raw = [math.exp(-beta * mean) for mean in means]
            target = sum(weight * results[x, j] for x, weight in enumerate(raw)) / sum(raw)
            of_policy.append(abs(score - target) / (high - low))
        errors.append(of_policy)
    return errors


@given(st.integers(0, 10**6))
def test_errors_are_those_of_the_papers_words(seed: int) -> None:
    rng = np.random.default_rng(seed)
    results = rng.normal(scale=10.0 ** rng.integers(-3, 5), size=(6, 9))
    split = draw_split((6, 9), 0.4, rng)
    weights = rng.dirichlet(np.ones(2))
    choice = Choice("exact", (1, 4), tuple(weights.tolist()), 0.0)
    expected = errors_one_by_one(results, split.tuning.tolist(), split.holdout.tolist(), choice)
    np.testing.assert_allclose(holdout_errors(results, split, choice), expected, rtol=1e-9, atol=1e-12)


class TestChoosing:
    def test_the_problem_is_the_papers(self) -> None:
        tuning = 100 * racing_arrows(10, np.random.default_rng(1)).to_numpy()[:, :7] - 20
        problem = tuning_problem(tuning, 2)
        assert (problem.results.min(), problem.results.max()) == (0.0, 1.0)
        assert problem.measure == ro.CVaR(0.01)
        assert isinstance(problem.loss, ro.AbsoluteError)
        np.testing.assert_allclose(problem.targets, ro.softmax_targets(problem.results, betas=(0, 1, 2, 4)))
        assert np.ptp(problem.probabilities) == 0.0

    def test_every_method_chooses_and_none_beats_the_exact_one_on_tuning_policies(self) -> None:
        tuning = racing_arrows(10, np.random.default_rng(1)).to_numpy()[:, :7]
        choices = choose_tests(tuning, 2, tuple(METHODS), seed=3)
        assert [choice.method for choice in choices] == list(METHODS)
        problem = tuning_problem(tuning, 2)
        by_method = {choice.method: choice for choice in choices}
        for choice in choices:
            test = problem.test(cases=choice.cases, weights=choice.weights)
            assert choice.objective == pytest.approx(problem.objective(test), abs=1e-12)
            assert choice.objective >= by_method["exact"].objective - 1e-9
        assert by_method["regret-matching"].objective <= by_method["random"].objective

    def test_an_interrupt_does_not_pass_for_an_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tuning = racing_arrows(8, np.random.default_rng(1)).to_numpy()[:, :5]

        def interrupted(problem: ro.Problem, backend: str, **options: object) -> ro.Solution:
            return replace(ro.solve(problem, "exact"), limit=ro.Limit.INTERRUPT)

        monkeypatch.setattr(protocol, "solve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            choose_tests(tuning, 2, ("exact",), seed=0)

    def test_methods_are_backends_and_the_papers_six_are_among_them(self) -> None:
        assert set(METHODS) <= set(BACKENDS)
        assert sum(method.in_paper for method in METHODS.values()) == 6

    def test_the_reference_plays_500_rounds_and_other_games_as_many_as_they_may(self) -> None:
        large = tuning_problem(racing_arrows(50, np.random.default_rng(1)).to_numpy(), 3)
        small = tuning_problem(racing_arrows(8, np.random.default_rng(1)).to_numpy(), 2)
        assert options_of("regret-matching", large.n_tuples, 0) == {"rounds": 500, "threads": 1}
        assert options_of("simultaneous", large.n_tuples, 4) == {"rounds": 10, "seed": 4}
        assert options_of("simultaneous", small.n_tuples, 4) == {"rounds": 200, "seed": 4}
        assert WORK_OF_GAMES // large.n_tuples < 10
        assert options_of("minimax-uniform", large.n_tuples, 0) == {"threads": 1}


class TestIntervals:
    @given(st.integers(2, 30), st.integers(0, 10**6))
    def test_they_are_scipys(self, count: int, seed: int) -> None:
        samples = np.random.default_rng(seed).normal(size=(count, 3))
        mean, low, high = mean_with_interval(samples)
        for column in range(3):
            interval = stats.ttest_1samp(samples[:, column], 0.0).confidence_interval(0.95)
            assert mean[column] == pytest.approx(samples[:, column].mean())
            assert (low[column], high[column]) == pytest.approx((interval.low, interval.high))

    def test_one_sample_has_no_interval(self) -> None:
        mean, low, high = mean_with_interval(np.array([[1.0, 2.0]]))
        assert mean.tolist() == [1.0, 2.0]
        assert np.isnan(low).all()
        assert np.isnan(high).all()

    @pytest.mark.slow
    def test_they_cover_the_truth_95_times_in_100(self) -> None:
        rng = np.random.default_rng(0)
        covered = 0
        for _ in range(4000):
            _, low, high = mean_with_interval(rng.normal(1.0, 2.0, size=(6, 1)))
            covered += bool(low[0] <= 1.0 <= high[0])
        assert abs(covered - 3800) < 5 * math.sqrt(4000 * 0.95 * 0.05)
