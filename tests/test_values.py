"""Objects are compared, copied and pickled by value, and data have one digest whatever they came from."""

import copy
import hashlib
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_files import AWKWARD_NAMES, write_table
from strategies import problems

import rposst_opt as ro
from rposst_opt.certificate import problem_digest
from rposst_opt.estimators import TuningScores
from rposst_opt.files.reading import read_results
from rposst_opt.values.by_value import alike
from rposst_opt.values.digests import facts_digest, is_digest, numbers_digest, results_digest


def a_problem(**changes: Any) -> ro.Problem:
    results = np.random.default_rng(3).random((5, 4))
    asked: dict[str, Any] = {"results": results, "size": 2, "targets": ro.softmax_targets(results)}
    return ro.Problem(**{**asked, **changes})


def a_test() -> ro.EfficientTest:
    problem = a_problem()
    return problem.test(cases=[0, 3], weights=[0.3, 0.7]).tuned_on(
        problem.results, problem.targets, ["p", "q", "r", "s"]
    )


def a_solution(**changes: Any) -> ro.Solution:
    facts: dict[str, Any] = {
        "test": a_test(),
        "objective": 0.25,
        "lower_bound": -np.inf,
        "gap": np.inf,
        "status": ro.Status.FEASIBLE,
        "backend": "exact",
        "limit": None,
        "seconds": 1.5,
        "stats": ro.Stats(),
        "certificate": ro.Certificate(0.1, (ro.CertificateCut(np.arange(2), np.ones(2) / 2, np.ones(2)),)),
        "choice": ro.BackendChoice("exact", {"exact": 0.1}, "it is fast"),
    }
    return ro.Solution(**{**facts, **changes})


class Odd(ro.Measure):
    """A measure as somebody else may write it: no dataclass, not to be compared, with an array."""

    def __init__(self, power: float) -> None:
        self.power, self.table = power, np.array([power, 1.0])

    def tail_weight(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(probability) ** self.power


COPIERS = {"pickle": lambda value: pickle.loads(pickle.dumps(value)), "copy": copy.copy, "deepcopy": copy.deepcopy}
MAKERS = {"problem": a_problem, "test": a_test, "solution": a_solution}


class TestEquality:
    @pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
    def test_two_that_are_made_alike_are_equal_and_hash_alike(self, make: Any) -> None:
        assert make() == make() and make() is not make()
        assert not (make() != make())
        assert hash(make()) == hash(make()) and len({make(), make()}) == 1

    @pytest.mark.parametrize(
        "changes",
        [
            {"size": 1},
            {"measure": ro.Mean()},
            {"loss": ro.SquaredError()},
            {"targets": None},
            {"probabilities": np.array([[1, 0, 0, 0], *np.zeros((3, 4))])},
            {"required_cases": [1]},
            {"forbidden_cases": [1]},
            {"case_names": list("abcde")},
            {"policy_names": list("abcd")},
            {"offset": True},
            {"noise": 0.1},
            {"noise": 0.1, "noise_weight": 2.0},
            {"results": np.random.default_rng(3).random((5, 4)) + np.eye(5, 4) * 1e-15},
        ],
        ids=lambda changes: ", ".join(changes),
    )
    def test_problems_that_differ_in_anything_are_not_equal(self, changes: dict[str, Any]) -> None:
        assert a_problem() != a_problem(**changes)
        assert problem_digest(a_problem()) != problem_digest(a_problem(**changes))

    def test_what_has_been_worked_out_makes_no_difference(self) -> None:
        used = a_problem()
        assert used.stated is used and len(used.scenarios.policies) == 16
        assert used == a_problem() and hash(used) == hash(a_problem())

    @given(problems())
    @settings(max_examples=40)
    def test_a_problem_that_is_copied_with_the_same_options_is_the_same_to_the_last_bit(
        self, problem: ro.Problem
    ) -> None:
        again = replace(replace(problem))
        assert again == problem and problem_digest(again) == problem_digest(problem)

    def test_tests_that_differ_in_anything_but_their_origin_are_not_equal(self) -> None:
        test = a_test()
        assert replace(test, provenance=ro.EfficientTest.from_dict(test.to_dict()).provenance) == test
        assert test.tuning is not None
        others = [
            replace(test, weights=np.array([0.7, 0.3])),
            replace(test, cases=(0, 4)),
            replace(test, case_names=("a", "b")),
            replace(test, n_cases=6),
            replace(test, scale=ro.Scale(0.0, 2.0)),
            replace(test, tuning=None),
            replace(test, tuning=replace(test.tuning, policy_names=())),
            replace(test, weights=np.array([0.25, 0.7]), offset=0.01),
        ]
        assert all(other != test for other in others)

    def test_solutions_are_compared_by_all_that_they_say(self) -> None:
        assert a_solution() != a_solution(seconds=2.0)
        assert a_solution() != a_solution(certificate=None)
        assert a_solution() != a_solution(test=None)
        assert a_solution(gap=np.nan) == a_solution(gap=np.nan)

    def test_nothing_is_equal_to_something_else(self) -> None:
        assert a_problem() != a_test() and a_test() != "test" and a_problem() is not None
        assert (a_problem() == 3) is False

    def test_a_measure_that_cannot_be_compared_is_compared_by_what_it_has(self) -> None:
        assert a_problem(measure=Odd(0.5)) == a_problem(measure=Odd(0.5)) != a_problem(measure=Odd(0.25))
        assert hash(a_problem(measure=Odd(0.5))) == hash(a_problem(measure=Odd(0.5)))
        assert pickle.loads(pickle.dumps(a_problem(measure=Odd(0.5)))) == a_problem(measure=Odd(0.5))

    def test_functions_are_alike_only_if_they_are_the_same(self) -> None:
        assert alike(len, len)
        assert not alike(lambda: 1, lambda: 1)

    def test_zero_is_zero_and_kinds_of_numbers_are_told_apart_in_arrays_alone(self) -> None:
        assert alike(np.array([0.0, np.nan]), np.array([-0.0, np.nan])) and alike(1, 1.0)
        assert not alike(np.array([1]), np.array([1.0])) and not alike(np.ones(2), [1.0, 1.0])


class TestCopies:
    @pytest.mark.parametrize("copier", COPIERS.values(), ids=COPIERS)
    @pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
    def test_a_copy_is_equal(self, make: Any, copier: Any) -> None:
        assert copier(make()) == make()

    @pytest.mark.parametrize("copier", COPIERS.values(), ids=COPIERS)
    def test_arrays_stay_locked(self, copier: Any) -> None:
        problem, test = copier(a_problem(noise=0.1)), copier(a_test())
        arrays = [problem.results, problem.targets, problem.probabilities, problem.noise, test.weights]
        arrays += [test.tuning.results, test.tuning.full_scores]
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0

    @pytest.mark.parametrize("copier", COPIERS.values(), ids=COPIERS)
    def test_an_array_that_is_not_locked_stays_so_and_its_original_too(self, copier: Any) -> None:
        cut = ro.CertificateCut(np.arange(2), np.ones(2) / 2, np.ones(2))
        assert copier(cut).pulls.flags.writeable and cut.pulls.flags.writeable

    def test_what_has_been_worked_out_is_left_behind_and_worked_out_again(self) -> None:
        problem = a_problem(offset=True)
        assert problem.stated.n_cases == 7
        pickled = pickle.dumps(problem)
        assert len(pickled) == len(pickle.dumps(a_problem(offset=True)))
        read = pickle.loads(pickled)
        assert "stated" not in vars(read) and read.stated == problem.stated

    def test_a_copy_does_the_same_work(self) -> None:
        problem, test = pickle.loads(pickle.dumps((a_problem(), a_test())))
        assert problem.objective(test) == a_problem().objective(a_test())
        new = np.random.default_rng(1).random((5, 3))
        for method in ("weights", "ridge", "aipw"):
            assert np.array_equal(test.estimate(new, method), a_test().estimate(new, method))

    def test_what_is_given_as_tuning_scores_is_not_locked(self) -> None:
        given_results = np.ones((2, 3))
        scores = TuningScores(given_results, np.ones((1, 3)))
        given_results[0, 0] = 5.0
        assert scores.results[0, 0] == 1.0
        with pytest.raises(
            ro.ProblemError, match=r"a column per policy .* got shapes \(2, 3\) and \(1, 2\) and 0 names"
        ):
            TuningScores(np.ones((2, 3)), np.ones((1, 2)))
        with pytest.raises(ro.ProblemError, match="and 1 names"):
            TuningScores(np.ones((2, 3)), np.ones((1, 3)), ("p",))


class TestDigests:
    def test_of_a_table_it_is_that_of_names_and_numbers_as_documented(self) -> None:
        data = b'[["a","\\u00df\\n"],["p","q"]]\n' + np.array([1.0, 2.0, 0.0, 0.5], dtype="<f8").tobytes()
        table = np.array([[1.0, 2.0], [-0.0, 0.5]])
        assert results_digest(["a", "ß\n"], ["p", "q"], table) == hashlib.sha256(data).hexdigest()
        assert results_digest(["a", "ß\n"], ["p", "q"], np.asfortranarray(table)) == hashlib.sha256(data).hexdigest()
        assert results_digest(["a", "ß\n"], ["p", "q"], table.astype(">f8")) == hashlib.sha256(data).hexdigest()

    def test_it_is_the_same_whatever_file_the_table_came_from(self, tmp_path: Path) -> None:
        names, numbers = list(AWKWARD_NAMES), np.random.default_rng(0).random((len(AWKWARD_NAMES), 3)) * 1e-7
        policies = ["p", "q,r", "ß"]
        expected = results_digest(names, policies, numbers)
        for separator in ",;\t":
            path = write_table(
                tmp_path / "table.csv", names, policies, numbers.tolist(), separator=separator, quote_all=True
            )
            read = read_results(path).results
            assert results_digest(list(read.index), list(read.columns), read.to_numpy()) == expected
        frame = pd.DataFrame(np.asfortranarray(numbers), index=names, columns=policies)
        assert results_digest(list(frame.index), list(frame.columns), frame.to_numpy()) == expected

    @given(st.lists(st.text(), min_size=4, max_size=4, unique=True))
    @settings(max_examples=50)
    def test_another_name_number_or_order_is_another_table(self, names: list[str]) -> None:
        cases, policies = names[:2], names[2:]
        numbers = np.array([[1.0, 2.0], [3.0, 4.0]])
        digests = {
            results_digest(cases, policies, numbers),
            results_digest(cases[::-1], policies, numbers),
            results_digest(cases[::-1], policies, numbers[::-1]),
            results_digest(policies, cases, numbers),
            results_digest(cases, policies, numbers.T),
            results_digest(cases, policies, np.nextafter(numbers, 9.0)),
        }
        assert len(digests) == 6
        assert all(is_digest(digest) for digest in digests)

    def test_shapes_of_numbers_are_told_apart(self) -> None:
        assert numbers_digest(np.ones((2, 3))) != numbers_digest(np.ones((3, 2)))

    def test_the_order_of_facts_and_addresses_in_memory_make_no_difference(self) -> None:
        assert facts_digest({"a": 1, "b": "<f at 0x7f12>"}) == facts_digest({"b": "<f at 0x55>", "a": 1})
        assert facts_digest({"a": 1}) != facts_digest({"a": 2})

    @pytest.mark.parametrize("value", [None, 3, "", "a" * 63, "A" * 64, "g" * 64, "a" * 64 + "\n"])
    def test_what_is_no_digest(self, value: object) -> None:
        assert not is_digest(value)
