"""Scores with an offset: the same problem with two phantom cases, held against programs that state it directly."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from commands import Run
from hypothesis import given
from hypothesis import strategies as st
from linear_programs import linear_program
from provers import assert_proves, provers_here
from sample_files import write_table
from strategies import problems

import rposst_opt as ro
from rposst_opt import analysis
from rposst_opt.results import Scale

TWO_CASES = ro.Problem(results=[[0.0, 0.5], [1.0, 0.75]], size=1, measure=ro.WorstCase(), offset=True)


def least_objective(problem: ro.Problem, cases: tuple[int, ...]) -> float:
    """The least CVaR of absolute errors over weights of these cases and an offset, as one linear program.

    Variables: w, the offset o, the threshold v and the excesses u, with u_s ≥ ±(o + a_s·w - b_s) - v,
    Σw ≤ 1 and (1 - Σw) low ≤ o ≤ (1 - Σw) high.
    """
    assert isinstance(problem.measure, ro.CVaR)
    scenarios, m, d = problem.scenarios, len(cases), problem.n_scenarios
    tail = max(problem.measure.tail_fraction, float(scenarios.probabilities.min()))
    low, high = problem.results.min(), problem.results.max()
    rows = problem.results[list(cases)][:, scenarios.policies].T
    scores = np.hstack([rows, np.ones((d, 1))])
    others = np.hstack([-np.ones((d, 1)), -np.eye(d)])
    nothing = np.zeros((1, d + 1))
    outcome = linear_program(
        np.concatenate([np.zeros(m + 1), [1.0], scenarios.probabilities / tail]),
        A_ub=np.vstack(
            [
                np.hstack([scores, others]),
                np.hstack([-scores, others]),
                np.hstack([np.ones((1, m)), [[0.0]], nothing]),
                np.hstack([np.full((1, m), high), [[1.0]], nothing]),
                np.hstack([np.full((1, m), -low), [[-1.0]], nothing]),
            ]
        ),
        b_ub=np.concatenate([scenarios.full_scores, -scenarios.full_scores, [1.0, high, -low]]),
        bounds=[(0, None)] * m + [(None, None)] * 2 + [(0, None)] * d,
    )
    return float(outcome.fun)


def random_problem(rng: np.random.Generator) -> ro.Problem:
    """A small problem, of results around zero, far from it, or of 0 and 1."""
    n, p = int(rng.integers(2, 7)), int(rng.integers(1, 6))
    results = [
        rng.normal(size=(n, p)),
        100 + 3 * rng.random((n, p)),
        rng.integers(0, 2, (n, p)).astype(float),
        np.round(rng.random((n, p)), 1) - 5,
    ][int(rng.integers(0, 4))]
    unequal = rng.random((p, 2)) + 0.05
    return ro.Problem(
        results=results,
        size=int(rng.integers(1, min(n, 3) + 1)),
        measure=ro.CVaR(float(rng.choice([0.01, 0.3, 1.0]))),
        targets=rng.dirichlet(np.ones(n), 2),
        probabilities=unequal / unequal.sum() if rng.random() < 0.5 else None,
        offset=True,
    )


@pytest.mark.slow
def test_every_backend_that_proves_something_equals_the_program_that_states_the_offset() -> None:
    rng = np.random.default_rng(5)
    provers = provers_here()
    assert {"exact", "pulp-highs", "pulp-cbc", "cvxpy-clarabel", "scipy-milp"} <= set(provers)
    for number in range(200):
        problem = random_problem(rng)
        best = min(least_objective(problem, cases) for cases in combinations(range(problem.n_cases), problem.size))
        # The native solver every time, and the others by turns: a solver's start-up outweighs these problems.
        for name in ("exact", provers[number % len(provers)], provers[(7 * number + 3) % len(provers)]):
            assert_proves(problem, name, best, slack=1e-8)


@pytest.mark.slow
def test_the_reference_method_and_local_search_come_near_it_too() -> None:
    rng = np.random.default_rng(6)
    for _ in range(30):
        problem = random_problem(rng)
        exact = ro.solve(problem, "exact")
        played, searched = ro.solve(problem, "regret-matching", rounds=2000), ro.solve(problem, "local-search")
        assert exact.objective <= played.objective + problem.allowance(1e-9)
        assert played.objective <= exact.objective + 0.02 * problem.unit
        assert played.lower_bound <= exact.objective + problem.allowance(1e-9)
        assert exact.objective <= searched.objective + problem.allowance(1e-9)


def test_by_hand() -> None:
    """Case 0 has the results 0 and 1/2, case 1 has 1 and 3/4; the full scores are 1/2 and 5/8.

    For both policies the full score is 1/2 + (case 0)/4, so an offset of 1/2 with a weight of 1/4 on case 0 is exact;
    without one, a single case misses by 1/2.
    """
    solution = ro.solve(TWO_CASES)
    assert solution.objective == pytest.approx(0.0, abs=1e-10)
    assert solution.test is not None and solution.test.cases == (0,)
    assert solution.test.weights == pytest.approx([0.25], abs=1e-9)
    assert solution.test.offset == pytest.approx(0.5)
    assert solution.test.score([[0.2], [9.9]]) == pytest.approx([0.55])
    assert ro.solve(replace(TWO_CASES, offset=False)).objective == pytest.approx(0.5)


@given(problems(), st.integers(0, 2**32 - 1))
def test_a_test_goes_to_the_stated_problem_and_back(problem: ro.Problem, seed: int) -> None:
    problem, rng = replace(problem, offset=True), np.random.default_rng(seed)
    cases = [*problem.required_cases, *problem.selectable_cases[: problem.size]]
    *weights, of_low, of_high = rng.dirichlet(np.ones(len(cases) + 2))
    offset = of_low * problem.results.min() + of_high * problem.results.max()
    test = problem.test(cases=cases, weights=weights, offset=offset)
    assert problem.why_not(test) is None
    stated = problem.to_stated(test)
    assert problem.stated.why_not(stated) is None
    assert problem.stated.objective(stated) == pytest.approx(problem.objective(test), abs=1e-9)
    back = problem.from_stated(stated)
    assert back.cases == test.cases and back.weights == pytest.approx(test.weights)
    assert back.offset == pytest.approx(test.offset)


@given(problems(most_cases=5, most_policies=4))
def test_an_offset_never_makes_the_optimum_worse(problem: ro.Problem) -> None:
    without = ro.solve(problem, "exact")
    with_one = ro.solve(replace(problem, offset=True), "exact")
    assert with_one.objective <= without.objective + problem.allowance(1e-9)


def test_cuts_hold_for_every_weight_and_offset() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        problem = random_problem(rng)
        at, elsewhere = (
            problem.from_stated(
                problem.stated.test(
                    cases=range(problem.n_cases + 2), weights=rng.dirichlet(np.full(problem.n_cases + 2, 0.5))
                )
            )
            for _ in range(2)
        )
        cut = problem.cut(at)
        assert cut.shape == (problem.n_cases + 2,)
        below = cut @ problem.to_stated(elsewhere).full_weights()
        assert problem.objective(elsewhere) >= below - problem.allowance(1e-9)
        objective, same_cut = problem.objective_and_cut(at)
        assert objective == problem.objective(at) and same_cut.tolist() == cut.tolist()


def test_certificates_prove_it_and_forged_ones_do_not() -> None:
    problem = replace(
        ro.Problem(results=np.random.default_rng(8).random((9, 6)), size=2, measure=ro.CVaR(0.2)), offset=True
    )
    solution = ro.solve(problem, "exact", certificate=True)
    assert solution.certificate is not None
    assert ro.verify_certificate(problem, solution.certificate).holds
    assert not ro.verify_certificate(problem, replace(solution.certificate, bound=solution.objective + 0.01)).holds
    # The same proof says nothing about the problem without an offset: its tests are some of those with one.
    assert solution.objective <= ro.solve(replace(problem, offset=False)).objective


def test_a_score_beyond_the_range_of_results_is_refused() -> None:
    def why_not(weights: list[float], offset: float | None) -> str | None:
        return TWO_CASES.why_not(TWO_CASES.test(cases=[0], weights=weights, offset=offset))

    assert why_not([0.25], 0.5) is None
    assert why_not([1.0], None) is None
    assert "beyond the range" in str(why_not([0.25], 0.76))
    assert "beyond the range" in str(why_not([0.25], -0.01))
    assert "beyond the range" in str(why_not([1.0], 0.1))
    plain = replace(TWO_CASES, offset=False)
    assert "allows none" in str(plain.why_not(plain.test(cases=[0], weights=[0.25], offset=0.5)))
    with pytest.raises(ro.ProblemError, match="sum to at most 1"):
        TWO_CASES.test(cases=[0], weights=[1.2], offset=0.0)
    with pytest.raises(ro.ProblemError, match="offset of a test must be a finite number"):
        TWO_CASES.test(cases=[0], weights=[0.5], offset=float("nan"))
    with pytest.raises(ro.ProblemError, match="`offset` must be a bool"):
        replace(TWO_CASES, offset=0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["random", "kmeans-anchors", "minimax-uniform", "iterative-minimax"])
def test_rules_that_weigh_by_themselves_have_no_offset(backend: str) -> None:
    problem = ro.Problem(results=np.random.default_rng(9).random((8, 5)), size=3, offset=True)
    with_one, without = ro.solve(problem, backend), ro.solve(replace(problem, offset=False), backend)
    assert with_one.test is not None and without.test is not None
    assert with_one.test.cases == without.test.cases
    assert with_one.test.weights.tolist() == without.test.weights.tolist()
    assert with_one.test.offset == 0.0


def test_phantom_cases_never_take_a_name_that_is_taken() -> None:
    names = ["always the lowest", "-always the lowest", "c"]
    problem = ro.Problem(results=np.eye(3), size=1, case_names=names, offset=True)
    assert len(set(problem.stated.case_names)) == 5


def test_backends_agree_on_it_and_a_liar_is_named() -> None:
    problem = ro.Problem(results=np.random.default_rng(10).random((7, 5)), size=2, measure=ro.CVaR(0.3), offset=True)
    report = ro.agree(problem, ["exact", "regret-matching", "scipy-milp", "cvxpy-clarabel"])
    assert report.agreed
    solution = report.findings[0].solution
    assert solution is not None and solution.test is not None
    assert solution.test.n_cases == problem.n_cases and solution.test.has_offset


def test_analyses_take_it_along() -> None:
    problem = ro.Problem(results=np.random.default_rng(11).random((6, 5)), size=2, offset=True)
    sizes, plain = (analysis.size_curve(each, [1, 2, 3]) for each in (problem, replace(problem, offset=False)))
    assert (sizes["objective"] <= plain["objective"] + 1e-9).all()
    assert (sizes["objective"] < plain["objective"] - 1e-3).any()
    assert (analysis.sensitivity(problem)["cost"] >= -1e-9).all()
    selection = ro.select_iteratively(problem, compare=True)
    assert selection.cost_of_greed is not None and selection.cost_of_greed >= -1e-9
    assert selection.test.has_offset


# Units and files


def test_an_offset_goes_over_to_the_units_of_the_file() -> None:
    rng = np.random.default_rng(12)
    table = 500 + 40 * rng.random((5, 6))
    scaled, scale = ro.rescale(table)
    test = ro.solve(ro.Problem(results=scaled, size=2, offset=True)).test
    assert test is not None and test.has_offset
    in_file = test.in_file_units(scale)
    assert in_file.score(table) == pytest.approx(scale.score_in_file_units(test.score(scaled)))
    plain = ro.solve(ro.Problem(results=scaled, size=2)).test
    assert plain is not None
    moved = plain.in_file_units(Scale(3.0, 9.0))
    assert (moved.weights.tolist(), moved.offset, moved.has_offset) == (plain.weights.tolist(), 0.0, False)


def test_from_a_file_to_scores_of_new_policies(rposst: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    cases, policies = [f"c{i}" for i in range(6)], [f"p{j}" for j in range(8)]
    table = np.round(-20 + 300 * rng.random((6, 8)), 2)
    write_table(tmp_path / "results.csv", cases, policies, table.tolist())
    asked = ("results.csv", "--size", "2", "--offset", "--tail-fraction", "0.3")
    outcome = rposst("solve", *asked, "--out", "test.json", "--certificate", "proof.json")
    assert outcome.code == 0
    assert "added to every score; the weights sum to" in outcome.out
    record = json.loads((tmp_path / "test.json").read_text())
    chosen = [cases.index(name) for name in record["cases"]]
    expected = record["offset"] + np.array(record["weights"]) @ table[chosen]
    errors = np.sort(np.abs(expected - table.mean(axis=0)))[::-1]
    spread = table.max() - table.min()
    cvar = (errors[:2].sum() + 0.4 * errors[2]) / 2.4  # the worst 30 % of eight
    assert record["objective"] == pytest.approx(cvar / spread, abs=1e-9)
    scored = json.loads(rposst("score", "test.json", "results.csv", "--json").out)["scores"]
    assert {row["policy"]: row["score"] for row in scored} == pytest.approx(dict(zip(policies, expected, strict=True)))
    assert rposst("verify", *asked, "proof.json").code == 0
    assert rposst("export", *asked, "--out", "model.mps").code == 0
    assert rposst("agree", *asked, "--backends", "exact,scipy-milp").code == 0
    (tmp_path / "test.json").write_text(json.dumps({**record, "offset": "much"}))
    refused = rposst("score", "test.json", "results.csv")
    assert refused.code == 2 and '"offset" must be a number' in refused.err


def test_a_report_tells_of_the_offset(rposst: Run, tmp_path: Path) -> None:
    cases, policies = ["one", "two", "three"], ["p", "q", "r"]
    write_table(tmp_path / "results.csv", cases, policies, [[1, 2, 3], [3, 1, 2], [2, 9, 1]])
    assert rposst("solve", "results.csv", "--size", "1", "--offset", "--out", "test.json").code == 0
    assert rposst("report", "results.csv", "--size", "1", "--offset", "--no-agree", "--out", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert f"with these weights, and the offset {ro.EfficientTest.load(tmp_path / 'test.json').offset:.6g}." in page
    assert "always the highest" in page  # the game weighs what the offset is made of
