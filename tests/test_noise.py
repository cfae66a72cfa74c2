"""Noise in the results: its cost by hand, by drawing, by cone programs stated anew, and in proofs."""

import json
import math
from dataclasses import replace
from pathlib import Path

import clarabel
import numpy as np
import pandas as pd
import pytest
from commands import Run
from hypothesis import given
from hypothesis import strategies as st
from provers import assert_proves, provers_here
from sample_files import write_random_table
from scipy import sparse
from strategies import problems

import rposst_opt as ro
from rposst_opt.errors import Unsupported
from rposst_opt.problem import NOISE_WEIGHT, Need
from rposst_opt.results import peculiar_spread
from rposst_opt.unseen.procedures import Purpose, attempt
from rposst_opt.unseen.regularising import choose_strength
from rposst_opt.unseen.validation import SplitTask

ALIKE = ro.Problem(results=[[0.2, 0.8], [0.2, 0.8]], size=2, noise=[1.0, 2.0], noise_weight=0.1)


def least_objective(problem: ro.Problem, cases: tuple[int, ...]) -> float:
    """The least CVaR of absolute errors, and what noise costs, over weights of these cases: one cone program.

    Variables: w, the threshold v, the excesses u and the noise t, with u_s + v ≥ ±(a_s·w - b_s) and ‖κ s ∘ w‖ ≤ t.
    """
    assert isinstance(problem.measure, ro.CVaR) and problem.noise is not None
    scenarios, m, d = problem.scenarios, len(cases), problem.n_scenarios
    tail = max(problem.measure.tail_fraction, float(scenarios.probabilities.min()))
    scores = problem.results[list(cases)][:, scenarios.policies].T
    ones, nothing = np.ones((d, 1)), np.zeros((d, 1))
    noise = np.zeros((m + 1, m + d + 2))
    noise[0, -1] = -1.0
    noise[1:, :m] = -np.diag(problem.noise_weight * problem.noise[list(cases)])
    matrix = np.vstack(
        [
            np.hstack([np.ones((1, m)), np.zeros((1, d + 2))]),
            -np.eye(m, m + d + 2),
            -np.eye(d, m + d + 2, m + 1),
            np.hstack([scores, -ones, -np.eye(d), nothing]),
            np.hstack([-scores, -ones, -np.eye(d), nothing]),
            noise,
        ]
    )
    right = np.concatenate([[1.0], np.zeros(m + d), scenarios.full_scores, -scenarios.full_scores, np.zeros(m + 1)])
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(m + 3 * d), clarabel.SecondOrderConeT(m + 1)]
    cost = np.concatenate([np.zeros(m), [1.0], scenarios.probabilities / tail, [1.0]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    nothing_quadratic = sparse.csc_matrix((len(cost), len(cost)))
    solved = clarabel.DefaultSolver(nothing_quadratic, cost, sparse.csc_matrix(matrix), right, cones, settings).solve()
    assert "Solved" in str(solved.status), solved.status
    return float(solved.obj_val)


def random_problem(rng: np.random.Generator) -> ro.Problem:
    """A small problem with noise that is small, large, or absent in some cases; with and without an offset."""
    n, p = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    results = [
        rng.normal(size=(n, p)),
        100 + 3 * rng.random((n, p)),
        rng.integers(0, 2, (n, p)).astype(float),
        np.repeat(rng.random((1, p)), n, axis=0),
    ][int(rng.integers(0, 4))]
    unequal = rng.random((p, 2)) + 0.05
    return ro.Problem(
        results=results,
        size=int(rng.integers(1, min(n, 3) + 1)),
        measure=ro.CVaR(float(rng.choice([0.01, 0.3, 1.0]))),
        targets=rng.dirichlet(np.ones(n), 2),
        probabilities=unequal / unequal.sum() if rng.random() < 0.5 else None,
        offset=bool(rng.random() < 0.3),
        noise=rng.random(n) * 10 ** rng.uniform(-2, 1) * (rng.random(n) < 0.8),
        noise_weight=float(rng.choice([NOISE_WEIGHT, 0.1, 3.0])),
    )


@pytest.mark.slow
def test_every_backend_that_takes_noise_equals_a_cone_program_stated_anew() -> None:
    rng, provers = np.random.default_rng(5), provers_here(Need.NOISE)
    assert {"exact", "cvxpy-clarabel", "cvxpy-mip-scip"} <= set(provers)
    for number in range(200):
        problem = random_problem(rng)
        stated = problem.stated
        best = min(least_objective(stated, cases) for cases in stated.tuples())
        # The native solver every time, and the others by turns.
        for name in dict.fromkeys(("exact", provers[number % len(provers)])):
            assert_proves(problem, name, best, slack=2e-8)


@pytest.mark.slow
def test_the_reference_method_and_local_search_come_as_near_as_they_promise() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        problem = random_problem(rng)
        exact = ro.solve(problem, "exact")
        played, searched = ro.solve(problem, "regret-matching", rounds=2000), ro.solve(problem, "local-search", kicks=1)
        assert exact.objective <= played.objective + problem.allowance(1e-9)
        assert played.objective <= exact.objective + ro.regret_matching_gap(problem.stated, 2000)
        assert played.lower_bound <= exact.objective + problem.allowance(1e-9)
        assert exact.objective <= searched.objective + problem.allowance(1e-9)
        assert searched.lower_bound <= exact.objective + problem.allowance(1e-9)


def test_by_hand() -> None:
    """Both cases are exact, so only noise costs: the weights are as 1 / s², 4 to 1, and it costs κ / √(1 + 1/4)."""
    for backend in ("exact", "regret-matching", "local-search", "cvxpy-clarabel"):
        solution, is_near = ro.solve(ALIKE, backend), backend == "regret-matching"
        assert solution.test is not None
        assert solution.objective == pytest.approx(0.1 * math.sqrt(0.8), abs=1e-4 if is_near else 1e-8)
        assert solution.test.weights == pytest.approx([0.8, 0.2], abs=0.02 if is_near else 1e-4)


def test_cases_that_say_the_same_share_the_noise() -> None:
    """Without noise a second case with the same results is of no use; with it, it is what averages noise out."""
    results = [[0.0, 1.0], [0.0, 1.0], [0.5, 0.9]]
    targets = [[1.0, 0.0, 0.0]]
    solution = ro.solve(ro.Problem(results=results, size=2, targets=targets, noise=0.3), "exact")
    assert solution.test is not None and solution.test.cases == (0, 1)
    assert solution.test.weights == pytest.approx([0.5, 0.5], abs=1e-4)
    assert solution.objective == pytest.approx(NOISE_WEIGHT * 0.3 / math.sqrt(2), abs=1e-9)


def test_the_objective_is_above_the_mean_error_of_noisy_scores() -> None:
    rng = np.random.default_rng(1)
    results, noise = rng.random((5, 4)), rng.random(5) / 2
    problem = ro.Problem(results=results, size=3, measure=ro.Mean(), noise=noise)
    test = problem.test(cases=[0, 2, 3], weights=[0.5, 0.2, 0.3])
    drawn = results + noise[:, None] * rng.normal(size=(200_000, 5, 1))
    errors = np.abs(np.einsum("i,kij->kj", test.full_weights(), drawn) - results.mean(axis=0)).mean()
    bias = np.abs(test.full_weights() @ results - results.mean(axis=0)).mean()
    assert bias < errors - 0.01 < problem.objective(test)
    exact_bias_free = replace(problem, results=np.repeat(results[:1], 5, axis=0))
    unbiased = np.abs(np.einsum("i,kij->kj", test.full_weights(), drawn - results)).mean()
    assert exact_bias_free.objective(test) == pytest.approx(unbiased, rel=0.01)


@given(problems(most_cases=5, most_policies=4), st.integers(0, 2**32 - 1))
def test_a_cut_is_below_the_objective_everywhere_and_touches_it_where_it_was_made(
    problem: ro.Problem, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    problem = replace(problem, noise=rng.random(problem.n_cases) * rng.integers(0, 2, problem.n_cases))
    cases = [*problem.required_cases, *problem.selectable_cases[: problem.size]]
    here, there = (problem.test(cases=cases, weights=rng.dirichlet(np.ones(len(cases)))) for _ in range(2))
    cut = problem.cut(here)
    assert cut @ here.full_weights() == pytest.approx(problem.objective(here), abs=problem.allowance(1e-9))
    assert cut @ there.full_weights() <= problem.objective(there) + problem.allowance(1e-9)
    assert problem.objective_and_cut(here)[0] == problem.objective(here)


@given(problems(most_cases=5, most_policies=4), st.floats(0, 2), st.floats(0, 2))
def test_dearer_noise_never_makes_the_optimum_better(problem: ro.Problem, one: float, other: float) -> None:
    noise = np.linspace(0.1, 1.0, problem.n_cases)
    low, high = (
        ro.solve(replace(problem, noise=noise, noise_weight=weight), "exact").objective
        for weight in sorted([one, other])
    )
    assert low <= high + replace(problem, noise=noise, noise_weight=2.0).allowance(1e-9)


def test_noise_that_costs_nothing_changes_nothing() -> None:
    problem = ro.Problem(results=np.random.default_rng(2).random((6, 5)), size=2)
    for silent in (replace(problem, noise=np.zeros(6)), replace(problem, noise=np.ones(6), noise_weight=0.0)):
        assert Need.NOISE not in silent.needs
        assert ro.solve(silent, "pulp-highs").objective == pytest.approx(ro.solve(problem, "exact").objective, abs=1e-9)


def test_certificates_prove_it_and_forged_ones_do_not() -> None:
    rng = np.random.default_rng(8)
    for _ in range(40):
        problem = random_problem(rng)
        solution = ro.solve(problem, "exact", certificate=True)
        assert solution.certificate is not None
        assert ro.verify_certificate(problem, solution.certificate).holds
        assert solution.certificate.bound == pytest.approx(solution.objective, abs=problem.allowance(2e-10))
        higher = replace(solution.certificate, bound=solution.certificate.bound + 1e-6 * problem.unit)
        assert not ro.verify_certificate(problem, higher).holds
        silent = replace(problem, noise=None)
        cuts = solution.certificate.cuts
        if any(len(cut.noisy_cases) for cut in cuts):
            assert "has none" in str(ro.verify_certificate(silent, solution.certificate).reason)
            longer = tuple(
                replace(cut, noise_direction=1.1 * cut.noise_direction / np.linalg.norm(cut.noise_direction))
                for cut in cuts
            )
            reason = ro.verify_certificate(problem, replace(solution.certificate, cuts=longer)).reason
            assert "longer than one" in str(reason)


@pytest.mark.parametrize("backend", ["pulp-highs", "scipy-milp", "sampled-regret-matching", "cvxpy-osqp"])
def test_who_cannot_state_it_says_so(backend: str) -> None:
    with pytest.raises(Unsupported, match="noise in the results"):
        ro.solve(ALIKE, backend)


def test_the_answer_does_not_depend_on_the_last_bit_or_the_order() -> None:
    rng = np.random.default_rng(9)
    for _ in range(60):
        problem = random_problem(rng)
        answer = ro.solve(problem, "exact").test
        order = rng.permutation(problem.n_cases)
        assert answer is not None and problem.noise is not None
        jitter = 1 + np.finfo(float).eps * rng.integers(-2, 3, problem.results.shape)
        nudged = ro.solve(replace(problem, results=problem.results * jitter), "exact").test
        assert nudged is not None and nudged.cases == answer.cases
        assert nudged.weights == pytest.approx(answer.weights, abs=1e-4)
        moved = replace(
            problem, results=problem.results[order], noise=problem.noise[order], targets=problem.targets[:, order]
        )
        again = ro.solve(moved, "exact")
        assert again.objective == pytest.approx(problem.objective(answer), abs=problem.allowance(1e-9))


@pytest.mark.parametrize(
    ("noise", "weight", "message"),
    [
        ([0.1], 1.0, "2 of them"),
        ([0.1, -0.1], 1.0, "not negative, got -0.1"),
        ([0.1, math.nan], 1.0, "finite and not negative, got nan"),
        ("loud", 1.0, "table of numbers"),
        (0.1, -1.0, "`noise_weight`"),
        (0.1, math.inf, "`noise_weight`"),
        (0.1, True, "`noise_weight`"),
    ],
)
def test_nonsense_is_refused(noise: object, weight: float, message: str) -> None:
    with pytest.raises(ro.ProblemError, match=message):
        ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1, noise=noise, noise_weight=weight)  # type: ignore[arg-type]


class TestCommands:
    """Noise on the command line, in files and on pages."""

    def test_solve_says_what_noise_costs_and_its_proof_is_verified(self, rposst: Run, tmp_path: Path) -> None:
        table, noise = tmp_path / "results.csv", tmp_path / "noise.csv"
        write_random_table(table, 6, 5)
        noise.write_text("case,error\n" + "".join(f"c{i},{0.1 + 0.2 * i}\n" for i in reversed(range(6))))
        asked = (str(table), "--size", "2", "--noise", str(noise))
        done = rposst("solve", *asked, "--certificate", "proof.json", "--json")
        assert done.code == 0, done.err
        record = json.loads(done.out)
        assert 0 < record["noise_cost"] < record["objective"]
        assert rposst("verify", *asked, "proof.json").code == 0
        silent = rposst("verify", str(table), "--size", "2", "proof.json")
        assert (silent.code, silent.out) == (2, "")
        assert "this is a proof about another problem (other noise, weight of noise): " in silent.err
        results = pd.read_csv(table, index_col=0)
        scaled, scale = ro.rescale(results)
        stated = ro.Problem(results=scaled, size=2, noise=(0.1 + 0.2 * np.arange(6)) / (scale.high - scale.low))
        assert record["objective"] == pytest.approx(ro.solve(stated, "exact").objective, abs=1e-9)
        assert "of it is noise" in rposst("solve", *asked).out

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--noise", "0.1", "--regularise", "0.1"), "exclude each other"),
            (("--noise-weight", "0.1"), "goes with --noise"),
            (("--noise", "nowhere.csv"), "nowhere.csv"),
            (("--noise", "-1"), "not negative"),
            (("--regularise", "much"), "`auto`"),
            (("--regularise", "-1"), "`auto`"),
        ],
    )
    def test_nonsense_is_one_line(self, rposst: Run, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
        table = tmp_path / "results.csv"
        write_random_table(table, 6, 5)
        done = rposst("solve", str(table), "--size", "2", *options)
        assert done.code == 2 and message in done.err and done.told.count("\n") == 1

    def test_a_report_and_an_explorer_say_that_there_is_noise(self, rposst: Run, tmp_path: Path) -> None:
        table = tmp_path / "results.csv"
        write_random_table(table, 6, 5)
        asked = (str(table), "--size", "2", "--noise", "0.2")
        assert rposst("report", *asked, "--out", "report.html").code == 0
        page = (tmp_path / "report.html").read_text()
        assert " of it is noise)" in page and "What the noise of scores costs" in page
        assert rposst("explore", *asked, "--out", "explorer.html").code == 0
        assert "What the noise of scores costs" in (tmp_path / "explorer.html").read_text()
        assert rposst("explore", *asked[:-2], "--out", "quiet.html").code == 0
        assert "What the noise of scores costs" not in (tmp_path / "quiet.html").read_text()


class TestRegularising:
    """What is peculiar to a policy counts as noise, by a strength that held-out policies choose."""

    def test_the_spread_is_what_common_factors_leave(self) -> None:
        rng = np.random.default_rng(3)
        skills, loads = rng.normal(size=(2, 400)), rng.normal(size=(20, 2))
        spread = np.linspace(0.1, 1.0, 20)
        results = loads @ skills + spread[:, None] * rng.normal(size=(20, 400))
        assert peculiar_spread(results) == pytest.approx(spread, abs=0.2)
        assert np.corrcoef(peculiar_spread(results), spread)[0, 1] > 0.97

    def test_few_policies_are_no_trouble(self) -> None:
        for n_policies in (1, 2, 3):
            spread = peculiar_spread(np.random.default_rng(0).random((5, n_policies)))
            assert spread.shape == (5,) and np.isfinite(spread).all()

    def test_the_strength_is_chosen_by_errors_that_anyone_can_work_out(self) -> None:
        table = np.random.default_rng(0).random((12, 9))
        choice = choose_strength(table, 3, Purpose(), strengths=(0.0, 1.0))
        errors = []
        for left_out in range(9):
            known = np.delete(table, left_out, axis=1)
            scaled, scale = ro.rescale(known)
            problem = ro.Problem(results=scaled, size=3, noise=peculiar_spread(scaled), noise_weight=1.0)
            test = ro.solve(problem, "local-search", kicks=1, threads=1, effort=40_000 // 9).test
            assert test is not None
            score = test.in_file_units(scale).score(table[:, [left_out]])
            errors.append(abs(score.item() - table[:, left_out].mean()))
        assert choice.errors[1.0] == pytest.approx(np.mean(errors), rel=1e-6)
        assert choice.strength == min(choice.errors, key=lambda strength: choice.errors[strength])

    def test_held_out_policies_do_not_touch_it(self) -> None:
        rng = np.random.default_rng(1)
        known, others = rng.random((8, 6)), rng.random((8, 2))
        purpose = Purpose(regularise=0.5)
        (clean,) = attempt(known, others, 2, purpose, ["rposst"], ["weights"], 0)
        (poisoned,) = attempt(known, others * 1e6 - 7, 2, purpose, ["rposst"], ["weights"], 0)
        assert clean.cases == poisoned.cases and np.array_equal(clean.tuned_errors, poisoned.tuned_errors)

    def test_the_command_tells_what_was_tried(self, rposst: Run, tmp_path: Path) -> None:
        table = tmp_path / "results.csv"
        write_random_table(table, 8, 6)
        done = rposst("solve", str(table), "--size", "2", "--regularise", "auto")
        assert done.code == 0 and "Regularised by" in done.err and "3: 0." in done.err
        refused = rposst("validate", str(table), "--size", "2", "--regularise", "auto")
        assert refused.code == 2 and "held-out" in refused.err


def test_standard_errors_are_those_of_means_of_repetitions() -> None:
    rng = np.random.default_rng(0)
    repetitions = rng.normal(size=(3, 2000, 5)) * np.array([1.0, 2.0, 3.0])[:, None, None]
    repetitions[:, ::2, 3:] = np.nan
    expected = np.array([1.0, 2.0, 3.0]) * math.sqrt((1 / 5 + 1 / 3) / 2)
    assert ro.standard_errors(repetitions) == pytest.approx(expected, rel=0.03)
    with pytest.raises(ro.ProblemError, match="two results or more"):
        ro.standard_errors([[[1.0, math.nan]]])


def test_arrays_that_differ_in_the_middle_are_told_apart_by_what_is_kept_on_disk() -> None:
    """Their representations are alike: NumPy shows a few numbers of a large array."""
    targets = np.full((2, 2000), 1 / 2000)
    other = targets.copy()
    other[1, 900:902] = 0.0, 2 / 2000
    assert repr(targets) == repr(other)
    table = np.random.default_rng(0).random((2000, 6))
    digests = {
        SplitTask("one", table, table[:, :1], 2, Purpose(targets=each), ("rposst",), ("weights",), 0).digest
        for each in (targets, other)
    }
    assert len(digests) == 2
