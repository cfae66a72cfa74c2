"""A test that is saved and read back is the same test, in Python and on the command line; what is no test is told."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_files import AWKWARD_NAMES, complaint, write_random_table, write_table

import rposst_opt as ro
from rposst_opt import solution as solution_module
from rposst_opt.certificate import problem_digest
from rposst_opt.efficient_test import Provenance
from rposst_opt.files.reading import read_results
from rposst_opt.files.records import read_test
from rposst_opt.unseen.error_bars import known_policies
from rposst_opt.values.digests import results_digest


@st.composite
def efficient_tests(draw: st.DrawFn) -> ro.EfficientTest:
    """With odd names, with and without an offset, tuning scores and a scale; weights with all their bits."""
    n_cases = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cases = draw(st.lists(st.integers(0, n_cases - 1), min_size=1, unique=True))
    names = draw(st.lists(st.text() | st.sampled_from(AWKWARD_NAMES), min_size=n_cases, max_size=n_cases, unique=True))
    with_offset = draw(st.booleans())
    total = draw(st.sampled_from([1.0, 1 - 1e-9, 0.5])) if with_offset else 1.0
    weights = rng.dirichlet(np.ones(len(cases))) * total
    test = ro.EfficientTest(
        cases=cases,
        weights=weights,
        n_cases=n_cases,
        case_names=[names[case] for case in cases],
        offset=draw(st.sampled_from([0.0, 0.125, -1 / 3])) if with_offset else None,
    )
    if draw(st.booleans()):
        policies = draw(st.sampled_from([(), ("p", 'q "r"', "s\nt")]))
        test = test.tuned_on(rng.normal(size=(n_cases, 3)), rng.dirichlet(np.ones(n_cases), 2), policies)
    scale = draw(st.none() | st.tuples(st.floats(-1e3, 1e3), st.floats(0, 1e3)))
    return test if scale is None else test.in_file_units(ro.Scale(scale[0], scale[0] + scale[1]))


def a_test() -> ro.EfficientTest:
    return ro.EfficientTest(cases=[5, 2], weights=[0.25, 0.75], case_names=["b", "a"], n_cases=9)


class TestRoundTrips:
    @given(efficient_tests())
    @settings(max_examples=150)
    def test_a_test_survives_its_record_to_the_last_bit(self, test: ro.EfficientTest) -> None:
        back = ro.EfficientTest.from_dict(json.loads(json.dumps(test.to_dict(), allow_nan=False)))
        assert back == test
        new = np.random.default_rng(0).random((test.n_cases, 4))
        new = new if test.scale is None else test.scale.score_in_file_units(new)
        assert np.array_equal(back.score(new), test.score(new))
        frame = pd.DataFrame(test.rows_of(new)[::-1], index=test.case_names[::-1])
        assert np.array_equal(back.score(frame), test.score(new))
        assert ro.EfficientTest.from_dict(back.to_dict()) == back

    @pytest.mark.parametrize("as_text", [True, False])
    def test_a_file_is_named_by_text_or_path(self, tmp_path: Path, as_text: bool) -> None:
        path = tmp_path / "test.json"
        a_test().save(str(path) if as_text else path)
        assert ro.EfficientTest.load(str(path) if as_text else path) == a_test() == read_test(path)
        assert path.read_text().endswith("}\n") and [each.name for each in tmp_path.iterdir()] == ["test.json"]

    def test_weights_are_not_scaled_again(self) -> None:
        """Of weights that sum to one up to rounding, none may change in its last bit, however often they are saved."""
        rng = np.random.default_rng(5)
        for _ in range(200):
            test = ro.EfficientTest(cases=range(7), weights=rng.dirichlet(np.ones(7)), n_cases=7)
            back = ro.EfficientTest.from_dict(test.to_dict())
            assert back.weights.tolist() == test.weights.tolist() == replace(back).weights.tolist()

    def test_a_test_of_rescaled_results_scores_those_of_the_file(self, tmp_path: Path) -> None:
        table = np.random.default_rng(2).normal(50, 20, (6, 9))
        scaled, scale = ro.rescale(table)
        problem = ro.Problem(results=scaled, size=2, offset=True)
        test = problem.test(cases=[1, 4], weights=[0.3, 0.4], offset=0.15)
        test.in_file_units(scale).save(tmp_path / "test.json")
        back = ro.EfficientTest.load(tmp_path / "test.json")
        assert back.scale == scale and test.scale is None
        assert back.score(table) == pytest.approx(scale.score_in_file_units(test.score(scaled)), rel=1e-12)
        assert np.array_equal(back.score(table), test.in_file_units(scale).score(table))

    def test_what_was_read_keeps_its_origin_when_it_is_saved_again(self) -> None:
        origin = Provenance(table_sha256="a" * 64, problem_sha256="b" * 64)
        record = replace(a_test(), provenance=origin).to_dict()
        assert (record["table_sha256"], record["problem_sha256"]) == ("a" * 64, "b" * 64)
        read = ro.EfficientTest.from_dict(record)
        assert read.provenance == replace(origin, package_version=ro.__version__)
        assert read.to_dict() == record

    def test_a_frame_has_positions_and_weights_by_name(self) -> None:
        frame = a_test().to_frame()
        assert frame.index.tolist() == ["a", "b"] and frame.index.name == "test_case"
        assert frame.to_dict("list") == {"position": [2, 5], "weight": [0.75, 0.25]}

    def test_cases_of_one_name_are_not_written(self, tmp_path: Path) -> None:
        twins = ro.EfficientTest(cases=[0, 1], weights=[0.5, 0.5], case_names=["a", "a"], n_cases=2)
        assert "different names, got 'a' twice" in complaint(lambda: twins.save(tmp_path / "test.json"))
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_not_there_is_told(self, tmp_path: Path) -> None:
        assert "does not exist" in complaint(lambda: a_test().save(tmp_path / "no" / "test.json"))


class TestTamperedRecords:
    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"format": "rposst-test/2"}, "rposst-test/1"),
            ({"positions": [2]}, '"positions" must have a number per case, got 1 for 2 cases'),
            ({"positions": [2, 2]}, "must not use a case twice"),
            ({"positions": [2, 9]}, "must lie in 0..8"),
            ({"positions": [-1, 2]}, '"positions" must be a list of whole numbers from 0 on'),
            ({"positions": [0.0, 2]}, '"positions" must be'),
            ({"positions": [True, 2]}, '"positions" must be'),
            ({"positions": "01"}, '"positions" must be'),
            ({"n_cases": None}, '"n_cases" must be the number of all cases, got None'),
            ({"n_cases": "9"}, '"n_cases" must be'),
            ({"n_cases": 10**400}, '"n_cases" must be'),
            ({"scale": [0, 1]}, '"scale" must be two finite numbers'),
            ({"scale": {"low": 0}}, '"scale" must be two finite numbers'),
            ({"scale": {"low": 2, "high": 1}}, '"scale" must be two finite numbers'),
            ({"scale": {"low": 0, "high": float("inf")}}, '"scale" must be two finite numbers'),
            ({"scale": {"low": 0, "high": 10**400}}, '"scale" must be two finite numbers'),
            ({"scale": {"low": False, "high": 1}}, '"scale" must be two finite numbers'),
            ({"table_sha256": "abc"}, '"table_sha256" must be 64 hexadecimal digits'),
            ({"problem_sha256": 3}, '"problem_sha256" must be 64 hexadecimal digits'),
            ({"package_version": 1}, '"package_version" must be a text'),
            ({"offset": "0"}, '"offset" must be a number'),
            ({"offset": float("nan")}, "offset of a test must be a finite number"),
            ({"weights": [0.25, 0.7]}, "sum to 1"),
            ({"tuning": []}, '"tuning" must be an object'),
            ({"tuning": {"results": [[1]], "full_scores": [[1]]}}, "a row per case"),
            ({"tuning": {"results": [[1], [1]], "full_scores": [[1, 2]]}}, "a column per policy"),
            ({"tuning": {"results": [[1], [2]], "full_scores": [[1]], "policies": "p"}}, "a list of names"),
            ({"tuning": {"results": [[1], [2]], "full_scores": [[1]], "policies": ["p", "q"]}}, "must have 1 names"),
        ],
        ids=str,
    )
    def test_each_is_told_with_the_file_in_one_line(self, tmp_path: Path, changes: dict[str, Any], words: str) -> None:
        path = tmp_path / "test.json"
        path.write_text(json.dumps({**a_test().to_dict(), **changes}))
        message = complaint(lambda: ro.EfficientTest.load(path))
        assert message.startswith(f"{path}: ") and words in message
        with pytest.raises(ro.ProblemError):
            ro.EfficientTest.from_dict({**a_test().to_dict(), **changes})

    @pytest.mark.parametrize("record", [None, [], "test", 3])
    def test_what_is_no_object_is_no_test(self, record: Any) -> None:
        assert "this is not a test" in complaint(lambda: ro.EfficientTest.from_dict(record))

    def test_older_files_without_positions_or_origin_are_read(self) -> None:
        test = ro.EfficientTest.from_dict({"format": "rposst-test/1", "cases": ["z", "a"], "weights": [0.25, 0.75]})
        assert (test.cases, test.n_cases, test.case_names) == ((0, 1), 2, ("z", "a"))
        assert test.provenance is None and test.scale is None


class TestSolutions:
    def solved(self, **changes: Any) -> tuple[ro.Problem, ro.Solution]:
        results = pd.DataFrame(
            np.random.default_rng(1).random((5, 4)), index=list("abcde"), columns=[f"p{j}" for j in range(4)]
        )
        problem = ro.Problem(results=results, size=2, **changes)
        return problem, ro.solve(problem, "scipy-milp")

    def test_a_solution_says_where_it_comes_from(self, tmp_path: Path) -> None:
        problem, solution = self.solved(offset=True)
        solution.save(tmp_path / "test.json", problem)
        record = json.loads((tmp_path / "test.json").read_text())
        assert record["package_version"] == ro.__version__
        assert record["table_sha256"] == results_digest(problem.case_names, problem.policy_names, problem.results)
        assert record["problem_sha256"] == problem_digest(problem)
        assert record["targets"]["values"] == problem.targets.tolist() and record["targets"]["count"] == 1
        assert solution.test is not None
        made_for = ro.Scale(float(problem.results.min()), float(problem.results.max()))
        assert record["scale"] == {"low": 0.0, "high": 1.0} and record["range"] == asdict(made_for)
        assert ro.EfficientTest.load(tmp_path / "test.json") == replace(solution.test, scale=made_for)

    def test_the_digest_of_a_table_that_was_rescaled_is_not_guessed(self) -> None:
        problem, solution = self.solved()
        assert "table_sha256" not in solution.to_dict(problem, ro.Scale(0.0, 5.0))
        known = solution.to_dict(problem, ro.Scale(0.0, 5.0), source={"table_sha256": "c" * 64})
        assert known["table_sha256"] == "c" * 64

    def test_tuning_scores_that_are_too_many_are_left_out_and_targets_named_by_digest(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        problem, solution = self.solved()
        assert "tuning" in solution.to_dict(problem) and "values" in solution.to_dict(problem)["targets"]
        monkeypatch.setattr(solution_module, "MOST_STORED", 11)
        monkeypatch.setattr(solution_module, "MOST_TARGET_NUMBERS", 4)
        record = solution.to_dict(problem)
        assert "tuning" not in record and "values" not in record["targets"] and "sha256" in record["targets"]

    def test_without_a_test_nothing_is_saved(self, tmp_path: Path) -> None:
        problem, solution = self.solved()
        nothing = replace(solution, test=None, status=ro.Status.NO_TEST)
        assert "without a test" in complaint(lambda: nothing.save(tmp_path / "test.json", problem))
        assert nothing.to_dict(problem)["cases"] == []


class TestNamesOfPolicies:
    def test_scores_of_a_frame_are_a_series_by_policy_and_those_of_an_array_an_array(self) -> None:
        new = pd.DataFrame([[4.0, 0.0], [9.0, 9.0]], index=["a", "b"], columns=["old", "new"])
        for found in (a_test().score(new), a_test().estimate(new)):
            pd.testing.assert_series_equal(found, pd.Series([5.25, 2.25], index=["old", "new"], name="score"))
        assert type(a_test().score(new.to_numpy())) is np.ndarray
        by_number = a_test().score(pd.DataFrame(new.to_numpy(), index=["a", "b"]))
        assert by_number.index.tolist() == [0, 1]

    def test_estimates_that_are_learned_are_a_series_too(self) -> None:
        results = np.random.default_rng(0).random((9, 6))
        test = a_test().tuned_on(results, np.full((1, 9), 1 / 9))
        frame = pd.DataFrame(results[[5, 2]], index=["b", "a"], columns=list("uvwxyz"))
        found = test.estimate(frame, "ridge")
        assert found.index.tolist() == list("uvwxyz")
        assert np.array_equal(found, test.estimate(results, "ridge"))

    def test_policies_that_the_test_was_tuned_on_are_told(self) -> None:
        results = np.random.default_rng(0).random((9, 3))
        test = a_test().tuned_on(results, np.full((1, 9), 1 / 9), ["p", "q", "r"])
        new = pd.DataFrame(results[[5, 2]], index=["b", "a"], columns=["p", "x", "r"])
        told = known_policies(test, new)
        assert told is not None and told.startswith("2 of 3 policies are called like") and "meant for others" in told
        told = known_policies(test, 100 * new)
        assert told is not None and "'p' had other results then" in told
        assert known_policies(test, new.set_axis(list("xyz"), axis=1)) is None
        assert known_policies(a_test(), new) is None
        assert known_policies(a_test().tuned_on(results, np.full((1, 9), 1 / 9)), new) is None


@pytest.mark.usefixtures("compiled_kernels")
class TestCommandLine:
    def test_a_test_that_was_saved_in_python_is_scored_and_one_that_was_solved_is_loaded(
        self, rposst: Run, tmp_path: Path
    ) -> None:
        write_random_table(tmp_path / "results.csv", 6, 5)
        solved = rposst("solve", "results.csv", "--size", "2", "--offset", "--betas", "0,2", "--out", "test.json")
        assert solved.code == 0
        table = read_results(tmp_path / "results.csv").results
        new = table.set_axis([f"new {name}" for name in table.columns], axis=1)
        new.to_csv(tmp_path / "new.csv")
        test = ro.EfficientTest.load(tmp_path / "test.json")
        test.save(tmp_path / "again.json")
        for name in ("test.json", "again.json"):
            outcome = rposst("score", name, "new.csv", "--json")
            found = {row["policy"]: row["score"] for row in outcome.json["scores"]}
            assert found == test.score(new).to_dict()
            assert "called like" not in outcome.err
        assert [table.index[case] for case in test.cases] == list(test.case_names) and test.n_cases == 6
        assert test.scale == ro.Scale(table.to_numpy().min(), table.to_numpy().max())

    def test_the_file_says_what_was_asked_of_which_table(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 5)
        asked = ("--size", "2", "--betas", "0,2", "--tail-fraction", "0.5", "--require", "c1", "--backend", "exact")
        record = rposst("solve", "results.csv", *asked, "--json").json
        table = read_results(tmp_path / "results.csv").results
        digest = results_digest(list(table.index), list(table.columns), table.to_numpy())
        assert (record["package_version"], record["table_sha256"]) == (ro.__version__, digest)
        assert record["options"] == {
            "results": "results.csv",
            "size": 2,
            "tail_fraction": 0.5,
            "betas": "0,2",
            "require": ["c1"],
            "backend": "exact",
        }
        targets = ro.softmax_targets(ro.rescale(table)[0], (0, 2))
        assert record["targets"]["betas"] == [0, 2] and record["targets"]["names"] == ["beta 0", "beta 2"]
        assert record["targets"]["values"] == pytest.approx(targets)
        problem = ro.Problem(
            results=ro.rescale(table)[0],
            size=2,
            measure=ro.CVaR(0.5),
            targets=targets,
            required_cases=["c1"],
            case_names=list(table.index),
            policy_names=list(table.columns),
        )
        assert record["problem_sha256"] == problem_digest(problem)

    def test_scores_of_tuning_policies_and_of_other_units_are_told(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 5)
        rposst("solve", "results.csv", "--size", "2", "--out", "test.json")
        outcome = rposst("score", "test.json", "results.csv")
        assert (
            outcome.code == 0 and "5 of 5 policies are called like policies that the test was tuned on" in outcome.err
        )
        table = read_results(tmp_path / "results.csv").results
        write_table(tmp_path / "hundred.csv", list(table.index), list(table.columns), (100 * table).to_numpy().tolist())
        assert "see whether the units are the same" in rposst("score", "test.json", "hundred.csv").err

    def test_a_proof_of_another_table_or_with_a_forged_name_is_refused(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 6, 5)
        rposst("solve", "results.csv", "--size", "2", "--certificate", "proof.json")
        table = read_results(tmp_path / "results.csv").results
        other = table.to_numpy().copy()
        other[3, 3] /= 2
        write_table(tmp_path / "other.csv", list(table.index), list(table.columns), other.tolist())
        outcome = rposst("verify", "other.csv", "proof.json", "--size", "2")
        assert (outcome.code, outcome.out) == (2, "") and "another problem (other results): " in outcome.err
        record = json.loads((tmp_path / "proof.json").read_text())
        (tmp_path / "forged.json").write_text(json.dumps({**record, "problem_sha256": "0" * 64}))
        outcome = rposst("verify", "results.csv", "forged.json", "--size", "2")
        assert outcome.code == 2 and "this is a proof about another problem: " in outcome.err
        (tmp_path / "forged.json").write_text(json.dumps({**record, "problem_sha256": "short"}))
        outcome = rposst("verify", "results.csv", "forged.json", "--size", "2")
        assert outcome.code == 2 and "64 hexadecimal digits" in outcome.err

    def test_the_name_of_another_problem_does_not_make_a_proof_hold(self, rposst: Run, tmp_path: Path) -> None:
        write_random_table(tmp_path / "results.csv", 7, 5)
        for size in ("1", "3"):
            rposst("solve", "results.csv", "--size", size, "--certificate", f"proof{size}.json")
        one, three = (json.loads((tmp_path / f"proof{size}.json").read_text()) for size in (1, 3))
        forged = {**one, "problem_sha256": three["problem_sha256"], "problem": three["problem"]}
        (tmp_path / "forged.json").write_text(json.dumps(forged))
        outcome = rposst("verify", "results.csv", "forged.json", "--size", "3")
        assert outcome.code == 1 and "does not hold" in outcome.out


def test_a_certificate_of_another_problem_does_not_hold_in_python_either() -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((4, 3)), size=1)
    cut = ro.CertificateCut(np.array([0]), np.ones(1), np.ones(1))
    proof = ro.Certificate(-1.0, (cut,), problem_sha256=problem_digest(problem))
    reason = ro.verify_certificate(replace(problem, size=2), proof).reason
    assert reason == "it is about another problem"
    assert ro.verify_certificate(problem, proof).reason != reason


class TestScales:
    """A test is saved in the units of its table, whatever units it was found in."""

    TABLE = pd.DataFrame(np.random.default_rng(4).normal(50, 20, (6, 5)), index=list("abcdef"), columns=list("vwxyz"))

    @pytest.mark.parametrize("rescale", [True, False])
    def test_a_test_that_is_rescaled_is_saved_in_the_units_of_the_table(self, tmp_path: Path, rescale: bool) -> None:
        problem = ro.Problem.from_results(self.TABLE, size=2, offset=True, rescale=rescale)
        low = 0.0 if rescale else float(self.TABLE.to_numpy().min())
        test = problem.tuned(problem.test(cases=[1, 4], weights=[0.3, 0.4], offset=0.3 * low + 0.01))
        test.save(tmp_path / "test.json")
        record = json.loads((tmp_path / "test.json").read_text())
        back = ro.EfficientTest.load(tmp_path / "test.json")
        assert back == test.in_table_units() and test.is_rescaled == rescale and not back.is_rescaled
        assert record["offset"] == test.in_table_units().offset
        assert back.scale == ro.Scale(self.TABLE.to_numpy().min(), self.TABLE.to_numpy().max()) == test.scale
        for method in ("weights", "ridge", "aipw"):
            pd.testing.assert_series_equal(
                back.estimate(self.TABLE, method), test.estimate(self.TABLE, method), check_exact=True
            )
        with pytest.raises(ro.ProblemError, match="are they too small by a factor of 100"):
            back.score(self.TABLE / 100, strict=True)

    def test_a_solution_knows_the_scale_of_its_problem(self, tmp_path: Path) -> None:
        problem = ro.Problem.from_results(self.TABLE, size=2, offset=True)
        solution = ro.solve(problem, "scipy-milp")
        assert solution.test is not None and problem.scale is not None
        solution.save(tmp_path / "test.json", problem)
        record = json.loads((tmp_path / "test.json").read_text())
        assert record["scale"] == asdict(problem.scale) and "range" not in record and "table_sha256" not in record
        assert record == solution.to_dict(problem, problem.scale)
        back = ro.EfficientTest.load(tmp_path / "test.json")
        pd.testing.assert_series_equal(back.score(self.TABLE), solution.test.score(self.TABLE), check_exact=True)
        told = known_policies(solution.test, self.TABLE)
        assert told is not None and told == known_policies(back, self.TABLE) and "the same results" in told

    def test_the_range_of_results_that_were_not_rescaled_is_not_guessed(self) -> None:
        test = a_test().in_file_units(ro.Scale(0.0, 1.0))
        assert test == a_test() and test.scale is None
        assert a_test().in_file_units(ro.Scale(0.0, 5.0)).scale == ro.Scale(0.0, 5.0)

    @pytest.mark.parametrize("spoiled", [[0, 1], {"low": 1, "high": 0}])
    def test_a_range_that_is_none_is_refused(self, spoiled: object) -> None:
        record = {**a_test().to_dict(), "scale": {"low": 0, "high": 1}, "range": spoiled}
        message = complaint(lambda: ro.EfficientTest.from_dict(record))
        assert message.startswith('"range" must be two finite numbers')

    def test_what_an_offset_is_added_to_is_said(self) -> None:
        problem = ro.Problem.from_results(self.TABLE, size=2, offset=True)
        test = problem.test(cases=[1, 4], weights=[0.3, 0.4], offset=0.1)
        assert repr(test).endswith("n_cases=6, offset=0.1, is_rescaled=True)")
        assert f"an offset of {test.in_table_units().offset:.6g}" in test._repr_html_()

    def test_scores_by_name_are_a_series_whatever_has_the_names(self) -> None:
        test = ro.EfficientTest(cases=[0, 1], weights=[0.5, 0.5], case_names=["a", "b"], n_cases=2)
        one = pd.Series({"b": 3.0, "a": 1.0}, name="new")
        assert test.score(one).to_dict() == {"new": 2.0}
        assert test.score({"x": {"a": 1.0, "b": 2.0}, "y": {"b": 4.0, "a": 0.0}}).to_dict() == {"x": 1.5, "y": 2.0}
        assert test.score({"a": 1.0, "b": 2.0}).to_dict() == {0: 1.5}
        assert type(test.score([[1.0], [2.0]])) is np.ndarray
