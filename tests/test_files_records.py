import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import strict_json
from contract import KEYS_OF_THE_CONTRACT
from sample_files import AWKWARD_NAMES, complaint

import rposst_opt as ro
from rposst_opt.files.records import as_json, read_test, solution_record
from rposst_opt.files.writing import write_atomically
from rposst_opt.losses import loss_from_label


def a_test_record(**changes: object) -> dict[str, object]:
    return {"format": "rposst-test/1", "cases": ["a", "b"], "weights": [0.25, 0.75], **changes}


def a_problem(measure: ro.Measure | None = None, loss: ro.Loss | None = None) -> ro.Problem:
    return ro.Problem(
        results=[[0.0, 1.0, 0.5], [1.0, 0.0, 0.25], [0.5, 0.5, 0.0]],
        size=1,
        measure=measure,
        loss=loss,
        required_cases=["second"],
        case_names=["first", "second", "third"],
        policy_names=["p", "q", "r"],
    )


def a_solution(test: ro.EfficientTest | None, **changes: Any) -> ro.Solution:
    facts: dict[str, Any] = {
        "objective": 0.25,
        "lower_bound": 0.125,
        "gap": 0.125,
        "status": ro.Status.FEASIBLE,
        "backend": "regret-matching",
        "limit": None,
        "seconds": 1.5,
        "stats": ro.Stats(),
    }
    return ro.Solution(test=test, **{**facts, **changes})


class TestTestsThatAreRead:
    def read(self, folder: Path, text: str) -> ro.EfficientTest:
        path = folder / "test.json"
        path.write_bytes(text.encode())
        return read_test(path)

    def test_names_and_weights_are_all_that_is_needed(self, tmp_path: Path) -> None:
        test = self.read(tmp_path, json.dumps(a_test_record()))
        assert test.case_names == ("a", "b")
        assert test.weights.tolist() == [0.25, 0.75]

    def test_the_order_of_the_cases_is_kept(self, tmp_path: Path) -> None:
        test = self.read(tmp_path, json.dumps(a_test_record(cases=["z", "a"])))
        assert dict(zip(test.case_names, test.weights.tolist(), strict=True)) == {"z": 0.25, "a": 0.75}

    def test_whole_numbers_are_weights_and_a_byte_order_mark_is_no_trouble(self, tmp_path: Path) -> None:
        test = self.read(tmp_path, "\ufeff" + json.dumps(a_test_record(weights=[0, 1])))
        assert test.weights.tolist() == [0.0, 1.0]

    def test_what_was_written_comes_back(self, tmp_path: Path) -> None:
        names = list(AWKWARD_NAMES)
        results = np.random.default_rng(5).random((len(names), 4))
        problem = ro.Problem(results=results, size=len(names), case_names=names)
        weights = np.random.default_rng(6).dirichlet(np.ones(len(names)))
        test = problem.test(cases=range(len(names)), weights=weights)
        path = tmp_path / "test.json"
        write_atomically(path, as_json(solution_record(problem, a_solution(test), ro.Scale(0.0, 1.0))))
        back = read_test(path)
        assert back.case_names == tuple(names)
        np.testing.assert_allclose(back.weights, test.weights, rtol=1e-15)
        np.testing.assert_allclose(back.score(results), test.score(results), rtol=1e-15)


class TestTestsThatAreRefused:
    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("", "the file is empty"),
            ("{", "JSON"),
            ("case,p\nx,1\n", "JSON"),
            ('{"format":\n "rposst-test/1",\n}', "JSON"),
            ("\0\0\0", "JSON"),
            ("[" * 200_000, "JSON"),
            ('{"a":' * 200_000 + "1" + "}" * 200_000, "JSON"),
            ("[]", "rposst-test/1"),
            ("3", "rposst-test/1"),
            ("null", "rposst-test/1"),
            ('"rposst-test/1"', "rposst-test/1"),
            ("{}", "rposst-test/1"),
            (json.dumps(a_test_record(format="rposst-test/2")), "rposst-test/1"),
            (json.dumps(a_test_record(format=["rposst-test/1"])), "rposst-test/1"),
            (json.dumps(a_test_record(cases=None)), "cases"),
            (json.dumps(a_test_record(cases="ab")), "cases"),
            (json.dumps(a_test_record(cases=[0, 1])), "cases"),
            (json.dumps(a_test_record(cases=[["a"], "b"])), "cases"),
            (json.dumps(a_test_record(cases={"a": 1, "b": 2})), "cases"),
            (json.dumps(a_test_record(cases=["a", "a"])), "cases"),
            (json.dumps(a_test_record(cases=[], weights=[])), "cases"),
            (json.dumps(a_test_record(cases=[])), "cases"),
            (json.dumps(a_test_record(weights=None)), "weights"),
            (json.dumps(a_test_record(weights=["0.25", "0.75"])), "weights"),
            (json.dumps(a_test_record(weights=[True, False])), "weights"),
            (json.dumps(a_test_record(weights=[[0.25], [0.75]])), "weights"),
            (json.dumps(a_test_record(weights={"a": 0.25})), "weights"),
            (json.dumps(a_test_record(weights=[])), "weights"),
            (json.dumps(a_test_record(weights=[1.0])), "weight"),
            (json.dumps(a_test_record(weights=[0.5, 0.25, 0.25])), "weight"),
            (json.dumps(a_test_record(weights=[0.25, 0.7])), "sum to 1"),
            (json.dumps(a_test_record(weights=[1.5, -0.5])), "non-negative"),
            (json.dumps(a_test_record(weights=[0, 0])), "sum to 1"),
            (json.dumps(a_test_record(weights=[math.nan, 0.5])), "finite"),
            (json.dumps(a_test_record(weights=[math.inf, 0.5])), "finite"),
            (json.dumps(a_test_record(weights=[1e308, 1e308])), "sum to 1"),
            (json.dumps(a_test_record(weights=[10**400, 0])), "weights"),
            ('{"format": "rposst-test/1", "cases": ["a"], "weights": [1' + "0" * 5000 + "]}", ""),
        ],
        ids=lambda value: repr(value)[-45:],
    )
    def test_what_is_no_test_is_refused(self, tmp_path: Path, text: str, word: str) -> None:
        path = tmp_path / "test.json"
        path.write_text(text)
        message = complaint(lambda: read_test(path))
        assert str(path) in message
        assert word in message

    def test_a_test_must_be_utf8(self, tmp_path: Path) -> None:
        path = tmp_path / "test.json"
        path.write_bytes(json.dumps(a_test_record(cases=["Größe", "b"]), ensure_ascii=False).encode("latin-1"))
        assert "UTF-8" in complaint(lambda: read_test(path))

    def test_a_test_must_be_a_file_that_is_there(self, tmp_path: Path) -> None:
        assert "missing.json" in complaint(lambda: read_test(tmp_path / "missing.json"))
        assert str(tmp_path) in complaint(lambda: read_test(tmp_path))


class TestSolutionRecord:
    SCALE = ro.Scale(-2.0, 3.0)

    def record(self, problem: ro.Problem, solution: ro.Solution) -> dict[str, Any]:
        record: dict[str, Any] = strict_json(as_json(solution_record(problem, solution, self.SCALE)))
        return record

    def test_it_has_the_keys_of_the_contract_with_their_types(self) -> None:
        problem = a_problem()
        record = self.record(problem, a_solution(problem.test(cases=[0, 1], weights=[0.25, 0.75])))
        for key, kind in KEYS_OF_THE_CONTRACT.items():
            assert type(record[key]) is kind, key

    def test_it_says_what_was_asked_and_found(self) -> None:
        problem = a_problem()
        record = self.record(problem, a_solution(problem.test(cases=["second", "first"], weights=[0.75, 0.25])))
        expected = {
            "format": "rposst-test/1",
            "cases": ["first", "second"],
            "weights": [0.25, 0.75],
            "objective": 0.25,
            "lower_bound": 0.125,
            "gap": 0.125,
            "status": "feasible",
            "backend": "regret-matching",
            "measure": {"name": "cvar", "tail_fraction": 0.01},
            "loss": "absolute",
            "size": 1,
            "n_cases": 3,
            "n_policies": 3,
            "n_scenarios": 3,
            "seconds": 1.5,
            "scale": {"low": -2.0, "high": 3.0},
        }
        assert {key: record[key] for key in expected} == expected
        assert record["limit"] is None
        assert record["required"] == ["second"]

    def test_infinite_bounds_become_null(self) -> None:
        problem = a_problem()
        test = problem.test(cases=[0, 1], weights=[0.25, 0.75])
        record = self.record(problem, a_solution(test, lower_bound=-math.inf, gap=math.inf))
        assert (record["objective"], record["lower_bound"], record["gap"]) == (0.25, None, None)

    def test_without_a_test_there_are_no_cases(self) -> None:
        solution = a_solution(
            None,
            objective=math.inf,
            lower_bound=-math.inf,
            gap=math.inf,
            status=ro.Status.NO_TEST,
            limit=ro.Limit.TIME,
        )
        record = self.record(a_problem(), solution)
        assert (record["cases"], record["weights"], record["objective"]) == ([], [], None)
        assert (record["status"], record["limit"]) == ("no_test", "the time limit")

    @pytest.mark.parametrize(
        ("measure", "described"),
        [
            (ro.CVaR(0.25), {"name": "cvar", "tail_fraction": 0.25}),
            (ro.KOfN(2, 7), {"name": "k-of-n", "k": 2, "n": 7}),
            (ro.Mean(), {"name": "mean"}),
            (ro.WorstCase(), {"name": "worst"}),
        ],
        ids=repr,
    )
    def test_it_names_the_measure(self, measure: ro.Measure, described: dict[str, object]) -> None:
        problem = a_problem(measure=measure)
        record = self.record(problem, a_solution(problem.test(cases=[0, 1], weights=[0.25, 0.75])))
        assert record["measure"] == described

    @pytest.mark.parametrize(
        "loss",
        [
            ro.AbsoluteError(),
            ro.SquaredError(),
            ro.HuberError(0.25),
            ro.PinballError(0.123456789),
            ro.EpsilonInsensitiveError(1e-7),
        ],
        ids=repr,
    )
    def test_it_names_the_loss_so_that_it_can_be_read_back(self, loss: ro.Loss) -> None:
        problem = a_problem(loss=loss)
        record = self.record(problem, a_solution(problem.test(cases=[0, 1], weights=[0.25, 0.75])))
        assert loss_from_label(record["loss"]) == loss

    def test_a_number_that_json_cannot_say_is_never_written(self) -> None:
        with pytest.raises(ValueError, match="JSON"):
            as_json({"number": math.nan})
