"""Certificates: those of the solver hold, and whatever is changed about them is noticed."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import problems

import rposst_opt as ro
from rposst_opt.checking.one_set import best_cut
from rposst_opt.cut_program import CutProgram
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.files.records import as_json, certificate_record, read_certificate
from rposst_opt.solvers import exact, ladder


def arrows() -> ro.Problem:
    table = racing_arrows(16, np.random.default_rng(1)).to_numpy()
    return ro.Problem(results=table, size=3, targets=ro.softmax_targets(table), measure=ro.CVaR(0.1))


def certified(problem: ro.Problem, **options: Any) -> tuple[ro.Solution, ro.Certificate]:
    solution = ro.solve(problem, "exact", certificate=True, **options)
    assert solution.certificate is not None
    return solution, solution.certificate


@given(problems())
@settings(max_examples=150)
def test_every_certificate_of_the_solver_holds(problem: ro.Problem) -> None:
    solution, proof = certified(problem)
    outcome = ro.verify_certificate(problem, proof)
    assert outcome.holds, outcome.reason
    assert outcome.is_complete and outcome.n_checked == problem.n_tuples
    assert outcome.bound == proof.bound
    assert solution.objective - proof.bound <= problem.allowance(1e-9)
    assert not proof.exceptions


def any_cut(problem: ro.Problem, rng: np.random.Generator) -> ro.CertificateCut:
    """A cut that no solver would make, where any weights are allowed."""
    tail_weights = rng.dirichlet(np.full(problem.n_scenarios, 0.3))
    return ro.CertificateCut(
        np.arange(problem.n_scenarios), tail_weights, tail_weights * rng.uniform(-1, 1, problem.n_scenarios)
    )


@pytest.mark.parametrize("seed", range(20))
def test_any_cuts_and_any_bound_hold_if_and_only_if_every_set_is_ruled_out(seed: int) -> None:
    """By looking at every set: the least value of some cut on it must not be below the bound."""
    rng = np.random.default_rng(seed)
    settled = rng.permutation(8)
    required, forbidden = settled[: rng.integers(3)], settled[4 : 4 + rng.integers(3)]
    problem = ro.Problem(
        results=rng.random((8, 5)), size=2, measure=ro.WorstCase(), required_cases=required, forbidden_cases=forbidden
    )
    cuts = tuple(any_cut(problem, rng) for _ in range(15))
    values = np.array([cut.values(problem) for cut in cuts])
    reached = [max(row[list(cases)].min() for row in values) for cases in problem.tuples()]
    for bound in rng.uniform(values.min(), values.max(), 20).tolist():
        outcome = ro.verify_certificate(problem, ro.Certificate(bound, cuts))
        assert outcome.holds == (min(reached) >= bound)


@given(problems())
@settings(max_examples=50)
def test_every_cut_is_below_the_objective_of_every_test(problem: ro.Problem) -> None:
    """The checker's numbers c_x against the judge, at weights drawn at random over all cases."""
    _, proof = certified(problem)
    rng = np.random.default_rng(0)
    for cut in proof.cuts:
        values = cut.values(problem)
        for _ in range(3):
            test = problem.test(cases=range(problem.n_cases), weights=rng.dirichlet(np.full(problem.n_cases, 0.3)))
            below = values @ test.full_weights()
            assert below <= problem.objective(test) + problem.allowance(1e-10)


@pytest.mark.parametrize("top", [1, 5])
def test_a_ranking_is_proved_by_naming_its_tests(top: int) -> None:
    problem = arrows()
    solution, proof = certified(problem, top=top)
    assert ro.verify_certificate(problem, proof).holds
    assert {ranked.test.cases for ranked in solution.ranking} <= set(proof.exceptions)
    forgotten = replace(proof, exceptions=proof.exceptions[1:])
    outcome = ro.verify_certificate(problem, forgotten)
    assert not outcome.holds
    assert outcome.reason is not None and "rules out" in outcome.reason


def higher_bound(proof: ro.Certificate) -> ro.Certificate:
    return replace(proof, bound=proof.bound * 1.001)


def no_bound(proof: ro.Certificate) -> ro.Certificate:
    return replace(proof, bound=float("nan"))


def no_cuts(proof: ro.Certificate) -> ro.Certificate:
    return replace(proof, cuts=())


def changed_cut(change: Callable[[ro.CertificateCut], ro.CertificateCut]) -> Callable[[ro.Certificate], ro.Certificate]:
    return lambda proof: replace(proof, cuts=(change(proof.cuts[0]), *proof.cuts[1:]))


TAMPERED: dict[str, tuple[Callable[[ro.Certificate], ro.Certificate], str]] = {
    "a higher bound": (higher_bound, "rules out"),
    "no bound": (no_bound, "finite"),
    "no cuts": (no_cuts, "rules out"),
    "heavier weights": (
        changed_cut(lambda cut: replace(cut, tail_weights=1.5 * cut.tail_weights)),
        "no distribution",
    ),
    "a negative weight": (
        changed_cut(lambda cut: replace(cut, tail_weights=np.append(cut.tail_weights[:-1], -0.1))),
        "no distribution",
    ),
    "all weight on one scenario": (
        changed_cut(lambda cut: ro.CertificateCut(cut.scenarios[:1], np.ones(1), cut.pulls[:1])),
        "allows",
    ),
    "steeper slopes": (changed_cut(lambda cut: replace(cut, pulls=1.01 * cut.pulls)), "slope"),
    "a scenario that is not there": (
        changed_cut(lambda cut: replace(cut, scenarios=cut.scenarios + 1000)),
        "beyond",
    ),
    "a negative scenario": (changed_cut(lambda cut: replace(cut, scenarios=cut.scenarios - 1000)), "beyond"),
    "a scenario twice": (
        changed_cut(lambda cut: replace(cut, scenarios=np.full_like(cut.scenarios, cut.scenarios[0]))),
        "twice",
    ),
    "a pull too few": (changed_cut(lambda cut: replace(cut, pulls=cut.pulls[1:])), "as many"),
    "an infinite pull": (changed_cut(lambda cut: replace(cut, pulls=np.full_like(cut.pulls, np.inf))), "finite"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_noticed(name: str) -> None:
    problem = arrows()
    _, proof = certified(problem)
    assert len(proof.cuts[0].scenarios) >= 2
    tamper, words = TAMPERED[name]
    outcome = ro.verify_certificate(problem, tamper(proof))
    assert not outcome.holds
    assert outcome.reason is not None and words in outcome.reason


@pytest.mark.parametrize("exact_arithmetic", [False, True])
def test_a_slope_beyond_all_numbers_is_refused(exact_arithmetic: bool) -> None:
    problem = ro.Problem(results=np.eye(3), size=1, loss=ro.SquaredError(), measure=ro.WorstCase())
    steep = ro.CertificateCut(np.arange(2), np.array([1e-300, 1.0]), np.array([1e10, 0.0]))
    outcome = ro.verify_certificate(problem, ro.Certificate(0.0, (steep,)), exact_arithmetic=exact_arithmetic)
    assert outcome.reason == "cut 0 is none: it has a slope that is not finite"


def test_some_cut_is_needed() -> None:
    """Taking cuts away one by one, sooner or later a set of cases is not ruled out any more, and it is named."""
    problem = arrows()
    _, proof = certified(problem)
    needed = [
        number
        for number in range(len(proof.cuts))
        if not ro.verify_certificate(problem, replace(proof, cuts=proof.cuts[:number] + proof.cuts[number + 1 :])).holds
    ]
    assert needed


def test_another_problem_is_not_proved() -> None:
    problem = arrows()
    _, proof = certified(problem)
    assert not ro.verify_certificate(replace(problem, measure=ro.CVaR(0.5)), proof).holds
    assert not ro.verify_certificate(replace(problem, results=problem.results[::-1].copy()), proof).holds
    assert not ro.verify_certificate(replace(problem, size=8), proof).holds


def test_a_bound_that_is_a_little_too_high_is_refused_among_more_than_ten_million_sets() -> None:
    table = racing_arrows(50, np.random.default_rng(0)).to_numpy()[:, ::2]
    problem = ro.Problem(results=table, size=6, targets=ro.softmax_targets(table))
    assert problem.n_tuples > 10_000_000
    solution, proof = certified(problem)
    outcome = ro.verify_certificate(problem, proof)
    assert outcome.holds and outcome.is_complete and outcome.bound == proof.bound
    assert outcome.n_nodes < 10_000
    for little in (1e-4, 1e-7):
        forged = ro.verify_certificate(problem, replace(proof, bound=solution.objective + little))
        assert not forged.holds and not forged.is_complete and forged.bound == -math.inf
        assert forged.reason is not None and forged.reason.startswith("nothing rules out ")


def test_what_is_named_as_not_ruled_out_is_a_whole_set_that_no_cut_rules_out() -> None:
    table = np.random.default_rng(3).random((9, 5))
    problem = ro.Problem(
        results=table, size=3, required_cases=[4], forbidden_cases=[2, 7], case_names=[f"c{i}" for i in range(9)]
    )
    solution, proof = certified(problem)
    higher = replace(proof, bound=solution.objective + 1e-3)
    reason = str(ro.verify_certificate(problem, higher).reason)
    cases = [int(name.removeprefix("c")) for name in reason.removeprefix("nothing rules out ").split(", ")]
    assert len(set(cases)) == 4 and 4 in cases and not {2, 7} & set(cases)
    assert all((cut.values(problem)[cases] < higher.bound).any() for cut in proof.cuts)


def test_sampling_is_a_thing_of_the_past() -> None:
    problem = arrows()
    _, proof = certified(problem)
    with pytest.warns(DeprecationWarning, match="`samples` and `seed` have no effect"):
        assert ro.verify_certificate(problem, proof, samples=1, seed=3).is_complete


# Exceptions


def every_set_an_exception(problem: ro.Problem, bound: float) -> ro.Certificate:
    return ro.Certificate(bound, (), tuple(tuple(sorted(cases)) for cases in problem.stated.tuples()))


@pytest.mark.parametrize("exact_arithmetic", [False, True])
@pytest.mark.parametrize("offset", [False, True])
def test_exceptions_prove_no_more_than_their_own_bounds_do(exact_arithmetic: bool, offset: bool) -> None:
    problem = ro.Problem(
        results=np.random.default_rng(1).random((6, 5)), size=2, measure=ro.CVaR(0.4), required_cases=[1], offset=offset
    )
    forged = every_set_an_exception(problem, 0.9)
    outcome = ro.verify_certificate(problem, forged, exact_arithmetic=exact_arithmetic)
    best = ro.solve(problem, "exact").objective
    assert outcome.holds
    assert best - 1e-9 <= outcome.bound <= best + 1e-12
    forgotten = replace(forged, exceptions=forged.exceptions[1:])
    assert not ro.verify_certificate(problem, forgotten, exact_arithmetic=exact_arithmetic).holds


@given(problems())
@settings(max_examples=40)
def test_a_set_that_is_solved_again_has_a_proof_that_reaches_its_optimum(problem: ro.Problem) -> None:
    cases = sorted([*problem.selectable_cases[: problem.size], *problem.required_cases])
    cut = best_cut(problem, cases)
    assert cut.why_not(problem) is None
    optimum = ro.solve(problem.restricted_to(cases), "exact").objective
    assert cut.values(problem)[cases].min() == pytest.approx(optimum, abs=problem.allowance(1e-9))


def test_a_set_with_noise_is_solved_again_too() -> None:
    rng = np.random.default_rng(2)
    for loss in (ro.AbsoluteError(), ro.SquaredError()):
        problem = ro.Problem(results=rng.random((6, 5)), size=3, loss=loss, noise=rng.random(6))
        cut = best_cut(problem, [0, 2, 5])
        assert cut.why_not(problem) is None and len(cut.noisy_cases)
        optimum = ro.solve(problem.restricted_to([0, 2, 5]), "exact").objective
        assert cut.values(problem)[[0, 2, 5]].min() == pytest.approx(optimum, abs=problem.allowance(1e-9))


def test_a_linear_program_that_fails_costs_the_bound_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = ro.Problem(results=np.random.default_rng(1).random((4, 5)), size=2, measure=ro.CVaR(0.4))
    whole = ro.verify_certificate(problem, every_set_an_exception(problem, 0.9)).bound
    solve = CutProgram.solve
    monkeypatch.setattr(CutProgram, "solve", lambda program: solve(program)._replace(is_solved=False))
    outcome = ro.verify_certificate(problem, every_set_an_exception(problem, 0.9))
    assert outcome.holds and outcome.bound < whole


def test_a_ranking_proves_the_optimum_by_its_exceptions() -> None:
    problem = arrows()
    solution, proof = certified(problem, top=5)
    outcome = ro.verify_certificate(problem, proof)
    assert outcome.bound == pytest.approx(solution.objective, abs=1e-9)
    assert outcome.bound < proof.bound - 1e-4


def test_too_many_exceptions_are_refused() -> None:
    problem = arrows()
    forged = every_set_an_exception(problem, 0.5)
    outcome = ro.verify_certificate(problem, forged, most_exceptions=559)
    assert outcome.reason == (
        "it names 560 sets of test cases as exceptions, and not more than 559 are solved again unless more are asked "
        "for"
    )
    table = np.random.default_rng(0).random((40, 3))
    large = ro.Problem(results=table, size=20, measure=ro.Mean())
    some = itertools.islice(large.tuples(), 1_001)
    assert "names 1,001 sets" in str(ro.verify_certificate(large, ro.Certificate(0.0, (), tuple(some))).reason)


@pytest.mark.parametrize(
    "cases",
    [(), (0,), (0, 1, 2), (0, 0, 1), (2, 3, 4), (1, 2, 3, 5), (0, 1, 6), (-1, 1, 2), tuple(range(6))],
    ids=str,
)
def test_an_exception_that_is_no_set_of_the_problem_is_refused(cases: tuple[int, ...]) -> None:
    problem = ro.Problem(
        results=np.random.default_rng(1).random((6, 5)), size=2, required_cases=[1], forbidden_cases=[0]
    )
    _, proof = certified(problem)
    assert ro.verify_certificate(problem, replace(proof, exceptions=((1, 2, 3),))).holds
    outcome = ro.verify_certificate(problem, replace(proof, exceptions=((1, 2, 3), cases)))
    assert outcome.reason == "exception 1 is no set of test cases that the problem asks for"


def test_a_bound_from_a_gap_is_certified_too() -> None:
    problem = arrows()
    solution, proof = certified(problem, gap=0.05)
    assert ro.verify_certificate(problem, proof).holds
    assert proof.bound == pytest.approx(solution.lower_bound, abs=1e-12)
    assert proof.bound < solution.objective - 0.04


def test_ties_that_a_short_ranking_leaves_out_are_named_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_TESTS", 10)
    problem = ro.Problem(results=np.full((8, 3), 0.5), size=3)
    solution, proof = certified(problem, top=2)
    assert len(solution.ranking) == 2
    assert ro.verify_certificate(problem, proof).holds
    assert len(proof.exceptions) == problem.n_tuples


def test_a_bound_that_was_climbed_for_is_certified_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The climb proves enough before the search is done, with these odd proportions of work."""
    for name, value in {"FIRST_ROUND": 1e3, "SHORTEST_TURN": 1e3, "LONGEST_TURN": 1e3}.items():
        monkeypatch.setattr(exact, name, value)
    monkeypatch.setattr(ladder, "FIRST_STEP", 0.9)
    table = racing_arrows(40, np.random.default_rng(1)).to_numpy()
    problem = ro.Problem(results=table, size=5, targets=ro.softmax_targets(table))
    solution, proof = certified(problem, gap=0.1)
    assert solution.gap <= 0.1 + 1e-9
    assert ro.verify_certificate(problem, proof).holds


def test_a_certificate_survives_its_file(tmp_path: Path) -> None:
    problem = arrows()
    _, proof = certified(problem, top=2)
    path = tmp_path / "proof.json"
    path.write_text(as_json(certificate_record(problem, proof)))
    read = read_certificate(path, problem)
    assert (read.bound, read.exceptions) == (proof.bound, proof.exceptions)
    for mine, its in zip(proof.cuts, read.cuts, strict=True):
        assert np.array_equal(mine.scenarios, its.scenarios)
        assert np.array_equal(mine.tail_weights, its.tail_weights)
        assert np.array_equal(mine.pulls, its.pulls)


BROKEN_FILES: dict[str, tuple[Any, str]] = {
    "not JSON": ("{", "not JSON"),
    "another format": ('{"format": "rposst-test/1"}', "not a certificate"),
    "a list": ("[]", "not a certificate"),
    "no bound": ({"bound": "low"}, "bound"),
    "a bound that is true": ({"bound": True}, "bound"),
    "exceptions": ({"exceptions": [1]}, "exceptions"),
    "an unknown case": ({"exceptions": [["nobody"]]}, "nobody"),
    "no cuts": ({"cuts": None}, "cuts"),
    "a cut that is a number": ({"cuts": [3]}, "cut 0"),
    "a cut without pulls": ({"cuts": [{"scenarios": [0], "tail_weights": [1.0]}]}, "pulls"),
    "half a scenario": ({"cuts": [{"scenarios": [0.5], "tail_weights": [1.0], "pulls": [1.0]}]}, "whole"),
    "a huge scenario": ({"cuts": [{"scenarios": [10**30], "tail_weights": [1.0], "pulls": [1.0]}]}, "too large"),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_a_broken_file_is_told_in_one_line(name: str, tmp_path: Path) -> None:
    content, words = BROKEN_FILES[name]
    whole = {"format": "rposst-certificate/1", "bound": 0.0, "exceptions": [], "cuts": []}
    path = tmp_path / "proof.json"
    path.write_text(content if isinstance(content, str) else json.dumps(whole | content))
    with pytest.raises(ro.ProblemError, match=words) as caught:
        read_certificate(path, arrows())
    assert "\n" not in str(caught.value)
