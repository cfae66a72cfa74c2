"""Results in units of their own: rescaled for the problem, scored as they are, and told when they are off."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run
from hypothesis import given
from hypothesis import strategies as st
from sample_files import write_table

import rposst_opt as ro
from rposst_opt.files.records import read_test, solution_record
from rposst_opt.results import off_scale
from rposst_opt.unseen.error_bars import beyond_what_was_seen

CASES, POLICIES = list("abcd"), ["p", "q", "r"]
TABLE = pd.DataFrame(
    [[20.0, 40.0, 90.0], [60.0, 80.0, 30.0], [50.0, 20.0, 100.0], [70.0, 60.0, 80.0]], index=CASES, columns=POLICIES
)


def test_a_problem_of_a_table_in_its_own_units_is_the_one_of_the_command_line() -> None:
    problem = ro.Problem.from_results(TABLE, size=2, betas=(0, 2), noise={"d": 8.0, "a": 0.0, "b": 4.0, "c": 2.0})
    values, scale = ro.rescale(TABLE)
    np.testing.assert_array_equal(problem.results, values)
    np.testing.assert_array_equal(problem.targets, ro.softmax_targets(values, (0, 2)))
    assert problem.scale == scale == ro.Scale(20.0, 100.0)
    assert (problem.case_names, problem.policy_names) == (tuple(CASES), tuple(POLICIES))
    assert problem.target_names == ("beta 0", "beta 2")
    assert problem.noise is not None and problem.noise.tolist() == pytest.approx([0.0, 0.05, 0.025, 0.1])
    assert replace(problem, size=1).scale == scale


def test_names_and_all_else_can_be_stated_too() -> None:
    problem = ro.Problem.from_results(
        TABLE.to_numpy(), size=1, measure=ro.Mean(), case_names=CASES, targets={"d": 1, "a": 0, "b": 0, "c": 0}
    )
    assert problem.targets.tolist() == [[0, 0, 0, 1]]
    assert ro.Problem.from_results(TABLE, size=1, betas=(1, 1)).target_names == ("0", "1")
    with pytest.raises(ro.ProblemError, match="`betas` and `targets` exclude each other"):
        ro.Problem.from_results(TABLE, size=1, betas=(0,), targets=[0.25] * 4)
    with pytest.raises(TypeError, match="measur"):
        ro.Problem.from_results(TABLE, size=1, measur=ro.Mean())


def test_without_rescaling_results_are_taken_as_they_are() -> None:
    problem = ro.Problem.from_results(TABLE, size=1, rescale=False, noise=3.0)
    np.testing.assert_array_equal(problem.results, TABLE)
    assert problem.scale == ro.Scale(0.0, 1.0)
    assert problem.noise is not None and problem.noise.tolist() == [3.0] * 4
    test = problem.test(cases=[0], weights=[1.0])
    assert test.scale == ro.Scale(20.0, 100.0) and not test.is_rescaled


@given(st.integers(0, 2**32 - 1), st.floats(-50, 50), st.floats(0.01, 100))
def test_scores_are_in_the_units_of_the_table_also_with_an_offset(seed: int, low: float, spread: float) -> None:
    rng = np.random.default_rng(seed)
    table = low + spread * rng.random((4, 3))
    problem = ro.Problem.from_results(table, size=2, offset=True)
    assert problem.scale is not None
    *weights, of_low, of_high = rng.dirichlet(np.ones(4)).tolist()
    test = problem.tuned(problem.test(cases=[1, 3], weights=weights, offset=of_high))  # [0, 1] is the range of results
    scores = problem.scale.score_in_file_units(problem.scores(test))
    np.testing.assert_allclose(test.score(table), scores, atol=1e-12 * (spread + abs(low)) * 10)
    np.testing.assert_allclose(test.estimate(table), scores, atol=1e-12 * (spread + abs(low)) * 10)
    # In the table's units it is still a test of this problem, and as good.
    in_table = test.in_table_units()
    assert in_table.in_table_units() is in_table
    assert in_table.in_file_units(problem.scale) is in_table
    assert problem.why_not(in_table) is None
    assert problem.objective(in_table) == pytest.approx(problem.objective(test), abs=1e-9)
    assert problem.stated.objective(problem.to_stated(in_table)) == pytest.approx(problem.objective(test), abs=1e-9)
    assert of_low >= 0


def test_what_a_solution_knows_of_its_scale_and_its_tuning_policies_is_in_the_units_of_the_table() -> None:
    table = TABLE.assign(s=[30.0, 70.0, 40.0, 65.0], t=[80.0, 35.0, 90.0, 75.0])
    test = ro.solve(ro.Problem.from_results(table, size=2, offset=True)).test
    assert test is not None and test.scale == ro.Scale(20.0, 100.0) and test.is_rescaled
    values, scale = ro.rescale(table)
    plain = ro.solve(ro.Problem(results=values, size=2, offset=True, case_names=CASES)).test
    assert plain is not None
    for method in ("weights", "ridge", "aipw"):
        expected = plain.in_file_units(scale).estimate(table, method)
        np.testing.assert_allclose(test.estimate(table, method), expected, atol=1e-9)
    # A backend of another package may make its tests itself, and know nothing of scales.
    foreign = ro.EfficientTest(
        cases=test.cases, weights=test.weights, offset=test.offset, n_cases=4, case_names=CASES[:2]
    )
    tuned = ro.Problem.from_results(table, size=2, offset=True).tuned(foreign)
    assert (tuned.scale, tuned.is_rescaled) == (test.scale, True)
    for new in (table, table[["p"]] + 60):
        assert beyond_what_was_seen(test, new) == beyond_what_was_seen(plain.in_file_units(scale), new)


def test_a_rescaled_test_needs_its_scale() -> None:
    with pytest.raises(ro.ProblemError, match="needs its `scale`"):
        ro.EfficientTest(cases=[0], weights=[1.0], n_cases=1, is_rescaled=True)


# Softmax targets.


@pytest.mark.parametrize("results", [[[0.0], [87.0]], [[-0.5], [0.5]]])
def test_softmax_targets_of_results_that_are_not_rescaled_come_with_a_warning(results: list[list[float]]) -> None:
    with pytest.warns(
        ro.RposstWarning, match="softmax targets are made of results from .* first, with `rescale`"
    ) as told:
        ro.softmax_targets(results, betas=(0, 1))
    assert told[0].filename == __file__
    with pytest.warns(ro.RposstWarning, match="softmax targets"):
        ro.Problem.from_results(results, size=1, rescale=False, betas=(1,))
    ro.softmax_targets(results, betas=(0, 0))  # the uniform target whatever the scale is
    ro.Problem.from_results(results, size=1, betas=(1,))


def test_validation_warns_once_and_not_for_every_split() -> None:
    options: dict[str, Any] = {"selections": ["random"], "estimators": ["weights"], "folds": 2, "replicas": 1}
    with pytest.warns(ro.RposstWarning) as told:
        ro.validate(TABLE.assign(s=1.0), [1], purpose=ro.Purpose(betas=(1.0,), is_rescaled=False), **options)
    assert len(told) == 1
    ro.validate(TABLE.assign(s=1.0), [1], purpose=ro.Purpose(betas=(1.0,)), **options)


# New results on another scale.

UNIT = ro.Scale(0.0, 1.0)
OFF: dict[str, tuple[ro.Scale, list[float], str]] = {
    "percent": (
        UNIT,
        [87.3, 12.0],
        "the new results reach 87.3, and the test was made for results from 0 to 1: percent?",
    ),
    "shares": (
        ro.Scale(20, 95),
        [0.2, 0.9],
        "the new results reach only 0.9, .*: are they too small by a factor of 100",
    ),
    "shares of percents": (ro.Scale(0, 100), [0.0, 1.0], "reach only 1, .* 0 to 100: are they too small by a factor"),
    "a factor of 100": (ro.Scale(-5, 5), [-200, 400], "reach 400, .* -5 to 5: are they too large by a factor of 100"),
    "another factor": (UNIT, [0.0, 7.0], "reach 7, .*: are they in the same units"),
    "a shift down": (ro.Scale(10, 20), [0.0, 4.0], "reach 0, .* 10 to 20: are they shifted, or in other units"),
    "a shift up": (UNIT, [1.7, 2.2], "reach 2.2, .*: are they shifted, or in other units"),
    "all in one hundredth": (UNIT, [0.003, 0.01], "reach only 0.01, .* 0 to 1: are they too small by a factor of 100"),
    "of one sign": (ro.Scale(-95, -20), [-0.9, -0.25], "are they too small by a factor of 100"),
}
ON: dict[str, tuple[ro.Scale, list[float]]] = {
    "the same": (UNIT, [0.0, 1.0]),
    "a little better": (UNIT, [0.9, 1.2]),
    "nothing right": (UNIT, [0.0, 0.0]),
    "hardly anything right": (UNIT, [0.001, 0.0]),
    "one better than that": (UNIT, [0.003, 0.4]),
    "zero in the middle": (ro.Scale(-1000, 1000), [-5.0, 8.0]),
    "no range": (ro.Scale(3.0, 3.0), [0.0, 100.0]),
    "beyond float64": (ro.Scale(-1e308, 1e308), [1e308, -1e308]),
}


@pytest.mark.parametrize("what", OFF)
def test_results_off_by_a_factor_or_a_shift_are_told(what: str) -> None:
    scale, new, message = OFF[what]
    problem = ro.Problem.from_results([[scale.low], [scale.high]], size=1)
    test = problem.test(cases=[0], weights=[1.0])
    for scored in (test, test.in_table_units()):
        with pytest.warns(ro.RposstWarning, match=message) as told:
            scores = scored.score([new])
        assert told[0].filename == __file__
        assert scores.tolist() == new
        with pytest.raises(ro.ProblemError, match=message):
            scored.score([new], strict=True)
        with pytest.raises(ro.ProblemError, match=message):
            scored.estimate([new], strict=True)


@pytest.mark.parametrize("what", ON)
def test_results_that_are_merely_better_or_worse_are_not(what: str) -> None:
    scale, new = ON[what]
    assert off_scale(scale, np.array([new])) is None


@given(st.floats(-100, 100), st.floats(0.1, 100), st.lists(st.floats(-0.4, 1.4), min_size=1, max_size=5))
def test_nothing_within_half_a_range_is_called_too_large_or_shifted(
    low: float, spread: float, new: list[float]
) -> None:
    message = off_scale(ro.Scale(low, low + spread), low + spread * np.array([new]))
    assert message is None or "reach only" in message


def test_small_results_are_no_surprise_where_a_tuning_policy_had_them_too() -> None:
    known, new = np.array([[0.5, 0.004], [0.9, 0.009]]), np.array([[0.008], [0.01]])
    assert off_scale(UNIT, new, known) is None
    assert off_scale(UNIT, new, known[:, :1]) is not None
    assert off_scale(UNIT, np.array([[90.0]]), 100 * known) is None  # a file that calls what was not rescaled so
    assert off_scale(UNIT, np.empty((2, 0)), known) is None
    rounding = np.finfo(np.float64).eps
    for result in (3.0, -3e-37):  # all results were alike but for rounding, and so are the new ones
        alike = ro.Scale(min(result, result * (1 + rounding)), max(result, result * (1 + rounding)))
        assert off_scale(alike, np.array([[result * (1 + 9 * rounding)]])) is None
    around_zero = ro.Scale(-1000.0, 1000.0)
    assert off_scale(around_zero, np.array([[-5.0, 8.0]]), np.array([[-700.0, 600.0]])) is not None
    assert off_scale(around_zero, np.array([[-5.0, 8.0]]), np.array([[-700.0, 6.0]])) is None


def test_a_test_that_does_not_know_its_scale_says_nothing_unless_asked_to() -> None:
    test = ro.Problem(results=TABLE / 100, size=1).test(cases=["a"], weights=[1.0])
    assert test.score(TABLE).tolist() == [20.0, 40.0, 90.0]
    with pytest.raises(ro.ProblemError, match="does not know for what range of results it was made"):
        test.score(TABLE, strict=True)


# Files and the command line.


@pytest.mark.parametrize("rescale", [True, False])
def test_a_file_keeps_the_range_of_results(tmp_path: Path, rescale: bool) -> None:
    problem = ro.Problem.from_results(TABLE, size=2, rescale=rescale)
    assert problem.scale is not None
    record = solution_record(problem, ro.solve(problem), problem.scale)
    assert record["scale"] == ({"low": 20.0, "high": 100.0} if rescale else {"low": 0.0, "high": 1.0})
    assert ("range" in record) != rescale
    (tmp_path / "test.json").write_text(json.dumps(record))
    assert read_test(tmp_path / "test.json").scale == ro.Scale(20.0, 100.0)


@pytest.mark.parametrize(
    "scale", [7, [0, 1], {"low": 1}, {"low": 1, "high": 0}, {"low": "0", "high": 1}, {"low": 0, "high": 10**400}]
)
def test_a_file_with_a_scale_that_is_none_is_refused(tmp_path: Path, scale: object) -> None:
    record = {"format": "rposst-test/1", "cases": ["a"], "weights": [1.0], "scale": scale}
    (tmp_path / "test.json").write_text(json.dumps(record))
    with pytest.raises(ro.ProblemError, match=r'test\.json.*"scale" must be two finite numbers, "low" and "high"'):
        read_test(tmp_path / "test.json")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_table(tmp_path / "table.csv", CASES, POLICIES, TABLE.to_numpy().tolist())
    write_table(tmp_path / "shares.csv", CASES, ["n"], [[0.3], [0.4], [0.5], [0.6]])
    write_table(tmp_path / "better.csv", CASES, ["n"], [[103.0], [101.0], [104.0], [105.0]])
    record = {"format": "rposst-test/1", "cases": ["a", "c"], "weights": [0.5, 0.5], "scale": {"low": 20, "high": 100}}
    (tmp_path / "test.json").write_text(json.dumps(record))
    (tmp_path / "unknown.json").write_text(json.dumps({**record, "scale": None}))
    return tmp_path


TOLD = (
    "the new results reach only 0.5, and the test was made for results from 20 to 100: are they too small by a factor"
)


def test_scoring_on_another_scale_prints_a_notice(rposst: Run, files: Path) -> None:
    outcome = rposst("score", "test.json", "shares.csv", "--json")
    assert outcome.json["scores"][0]["score"] == pytest.approx(0.4)
    assert outcome.told.startswith(f"Note: {TOLD}")
    assert len(outcome.told.splitlines()) == 1
    assert rposst("score", "test.json", "better.csv").told == ""


def test_scoring_strictly_on_another_scale_is_bad_input(rposst: Run, files: Path) -> None:
    outcome = rposst("score", "test.json", "shares.csv", "--strict")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.told.startswith(f"rposst: {TOLD}")
    assert rposst("score", "test.json", "better.csv", "--strict").code == 0
    unknown = rposst("score", "unknown.json", "better.csv", "--strict")
    assert unknown.code == 2 and "unknown.json" in unknown.told and "leave --strict out" in unknown.err
    assert rposst("score", "unknown.json", "shares.csv").told == ""


def test_a_test_of_results_that_were_not_rescaled_knows_their_range(rposst: Run, files: Path) -> None:
    assert rposst("solve", "table.csv", "--size", "2", "--no-rescale", "--out", "plain.json").code == 0
    assert rposst("score", "plain.json", "better.csv", "--strict").code == 0
    assert rposst("score", "plain.json", "shares.csv", "--strict").code == 2
    told = rposst("score", "plain.json", "shares.csv").told  # more than one part of the command looks at the results
    assert told.startswith("Note: the new results reach only 0.") and len(told.splitlines()) == 1


def test_what_the_package_warns_of_is_a_notice_on_the_command_line(rposst: Run, files: Path) -> None:
    outcome = rposst("solve", "table.csv", "--size", "1", "--no-rescale", "--betas", "0,1", "--no-error-bars")
    assert outcome.code == 0
    notes = [line for line in outcome.told.splitlines() if line.startswith("Note: ")]
    assert len(notes) == 1 and notes[0].startswith("Note: softmax targets are made of results from 20 to 100")
    assert rposst("solve", "table.csv", "--size", "1", "--betas", "0,1").told == ""
    write_table(files / "targets.csv", CASES, ["t"], [[5], [3], [2], [0]])
    outcome = rposst("solve", "table.csv", "--size", "1", "--targets", "targets.csv")
    assert outcome.code == 0
    assert outcome.told == (
        "Note: `targets` that do not sum to 1 are taken as importances, and divided by their sum: they sum to 10.\n"
    )


def test_warnings_of_others_are_left_as_they_are() -> None:
    import warnings

    from rposst_opt.cli.terminal import warnings_as_notices

    with pytest.warns(DeprecationWarning, match="old"), warnings_as_notices():
        warnings.warn("old", DeprecationWarning, stacklevel=1)
