"""What has names is matched by name: targets, probabilities, noise, groups and new results."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rposst_opt as ro
from rposst_opt.reports.analysis import _leave_one_out
from rposst_opt.unseen.validation import validate

CASES, POLICIES = ["pong", "alien", "skiing"], ["ann", "bob"]
TABLE = pd.DataFrame([[0.0, 1.0], [1.0, 0.5], [0.25, 0.75]], index=CASES, columns=POLICIES)


def make(**changes: Any) -> ro.Problem:
    return ro.Problem(**{"results": TABLE, "size": 1, **changes})


def test_columns_of_targets_in_another_order_are_found_by_name() -> None:
    targets = pd.DataFrame([[0.0, 0.0, 1.0]], columns=["skiing", "alien", "pong"])
    np.testing.assert_array_equal(make(targets=targets).targets, [[1.0, 0.0, 0.0]])


def test_rows_and_columns_of_probabilities_in_another_order_are_found_by_name() -> None:
    targets = pd.DataFrame([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], index=["hard", "easy"], columns=CASES)
    likely = pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], index=["bob", "ann"], columns=["easy", "hard"])
    for frame in (likely, likely.T):
        problem = make(targets=targets, probabilities=frame)
        np.testing.assert_allclose(problem.probabilities, [[0.4, 0.3], [0.2, 0.1]])
        assert problem.target_names == ("hard", "easy")


IMPORTANCES = {"skiing": 0.5, "pong": 0.2, "alien": 0.3}
SAME_TARGETS: dict[str, Callable[[], Any]] = {
    "a dict": lambda: IMPORTANCES,
    "a Series": lambda: pd.Series(IMPORTANCES),
    "a list": lambda: [0.2, 0.3, 0.5],
    "a row": lambda: pd.DataFrame(IMPORTANCES, index=["t"]),
    "a column": lambda: pd.DataFrame({"t": IMPORTANCES}),
    "a dict of a dict": lambda: {"t": IMPORTANCES},
    "a dict of dicts by case": lambda: {name: {"t": share} for name, share in IMPORTANCES.items()},
    "a list of a Series": lambda: [pd.Series(IMPORTANCES)],
    "a list of a dict": lambda: [IMPORTANCES],
}


@pytest.mark.parametrize("given_as", SAME_TARGETS)
def test_one_target_may_be_given_in_many_ways(given_as: str) -> None:
    np.testing.assert_allclose(make(targets=SAME_TARGETS[given_as]()).targets, [[0.2, 0.3, 0.5]], rtol=1e-15)


def test_names_of_targets_are_kept() -> None:
    two = {"hard": {"pong": 1, "alien": 0, "skiing": 0}, "easy": pd.Series([1.0, 0, 0], ["skiing", "alien", "pong"])}
    problem = make(targets=two)
    assert problem.target_names == ("hard", "easy")
    np.testing.assert_array_equal(problem.targets, [[1, 0, 0], [0, 0, 1]])
    assert make(targets=pd.Series(IMPORTANCES, name="hard")).target_names == ("hard",)
    assert make(targets=[[1, 0, 0], [0, 1, 0]]).target_names == ("0", "1")
    assert make(targets=[[1, 0, 0], [0, 1, 0]], target_names=["x", "y"]).target_names == ("x", "y")
    # Names that are given as well are matched with those of targets.
    turned = make(targets=two, target_names=["easy", "hard"])
    assert turned.target_names == ("easy", "hard")
    np.testing.assert_array_equal(turned.targets, [[0, 0, 1], [1, 0, 0]])
    assert {name for kind, _, name, _ in _leave_one_out(problem) if kind == "target"} == {"hard", "easy"}
    assert ro.solve(problem, "minimax-tnp-uniform").test is not None  # it puts another target in their place


@pytest.mark.parametrize("kind", [dict, pd.Series])
def test_a_probability_for_every_policy_is_shared_out_among_targets(kind: Callable[[Any], Any]) -> None:
    likely = kind({"bob": 0.75, "ann": 0.25})
    np.testing.assert_array_equal(make(probabilities=likely).probabilities, [[0.25], [0.75]])
    shared = make(probabilities=likely, targets=[[1, 0, 0], [0, 0, 1]]).probabilities
    np.testing.assert_array_equal(shared, [[0.125, 0.125], [0.375, 0.375]])


def test_targets_without_names_are_matched_with_columns_in_order_unless_these_are_positions() -> None:
    likely = pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], index=POLICIES, columns=["x", "y"])
    two = [[1, 0, 0], [0, 0, 1]]
    np.testing.assert_allclose(make(targets=two, probabilities=likely).probabilities, likely)
    turned = likely.set_axis([1, 0], axis=1)
    np.testing.assert_allclose(make(targets=two, probabilities=turned).probabilities, likely.iloc[:, ::-1])
    alone = pd.DataFrame({"anything": [0.75, 0.25]}, index=["bob", "ann"])
    np.testing.assert_allclose(make(probabilities=alone).probabilities, [[0.25], [0.75]])


def test_noise_is_found_by_name() -> None:
    for noise in (
        {"skiing": 3.0, "pong": 1.0, "alien": 2.0},
        pd.DataFrame({"s": [2, 1, 3]}, ["alien", "pong", "skiing"]),
    ):
        found = make(noise=noise).noise
        assert found is not None and found.tolist() == [1, 2, 3]


def test_names_that_are_no_text_are_matched_as_text() -> None:
    frame = TABLE.set_axis([10, 20, 30]).set_axis([1.5, 2.5], axis=1)
    problem = ro.Problem(
        results=frame, size=1, targets={30: 1, "10": 0, 20: 0}, probabilities=pd.Series({2.5: 1.0, 1.5: 0.0})
    )
    assert problem.case_names == ("10", "20", "30")
    np.testing.assert_array_equal(problem.targets, [[0, 0, 1]])
    np.testing.assert_array_equal(problem.probabilities, [[0], [1]])


def test_results_without_names_have_positions_for_names() -> None:
    plain = TABLE.to_numpy()
    frame = pd.DataFrame([[0.0, 0.5, 0.5]])
    np.testing.assert_array_equal(ro.Problem(results=plain, size=1, targets=frame).targets, frame)
    turned = frame[[2, 1, 0]]
    np.testing.assert_array_equal(ro.Problem(results=plain, size=1, targets=turned).targets, frame)
    with pytest.raises(ro.ProblemError, match="neither rows nor columns of `targets` have the name of every test case"):
        ro.Problem(results=plain, size=1, targets=frame.set_axis(CASES, axis=1))


def frame(rows: list[Any], columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(np.full((len(rows), len(columns)), 1 / len(columns)), index=rows, columns=columns)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "foreign columns": (
        {"targets": frame(["t"], ["pong", "alien", "tennis"])},
        "`targets` must have every test case once and no others; missing: 'skiing' (1 of 3); unknown: 'tennis' (1 of ",
    ),
    "foreign rows": ({"targets": frame(["pong", "x", "alien"], ["t"])}, "missing: 'skiing' (1 of 3); unknown: 'x'"),
    "one more": ({"targets": {**IMPORTANCES, "tennis": 0.0}}, "unknown: 'tennis' (1 of 4)."),
    "one less": ({"targets": pd.Series([1.0], ["pong"])}, "missing: 'alien', 'skiing' (2 of 3)."),
    "one twice": ({"targets": frame(["t"], [*CASES, "pong"])}, "more than once: 'pong'."),
    "nothing known": (
        {"targets": frame(["a"], ["x"])},
        "neither rows nor columns of `targets` have the name of every test case: rows are 'a' (with 0 of 3 names), "
        "columns 'x' (with 0), and the names 'pong', 'alien', 'skiing'.",
    ),
    "cases both ways": (
        {"targets": frame(CASES, CASES)},
        "rows and columns of `targets` both have the name of every test case",
    ),
    "parts that differ": (
        {"targets": {"a": IMPORTANCES, "b": {"pong": 1.0}}},
        "part 1 of `targets` must have every name of its part 0 once and no others; missing: 'skiing', 'alien' (2 of ",
    ),
    "parts without names": ({"targets": {"a": IMPORTANCES, "b": [1, 0, 0]}}, "all parts of `targets` must be mappings"),
    "lists in a dict": ({"targets": {"a": [1, 0, 0]}}, "every name in `targets` must have one value, or a mapping"),
    "text": ({"targets": {**IMPORTANCES, "pong": "much"}}, "`targets` must be a table of numbers"),
    "target names that do not fit": (
        {"targets": {"a": IMPORTANCES}, "target_names": ["b"]},
        "`targets` must have every name of `target_names` once and no others; missing: 'b' (1 of 1); unknown: 'a'",
    ),
    "too many target names": (
        {"targets": [0.2, 0.3, 0.5], "target_names": ["a", "b"]},
        "`target_names` must have 1 names, one per target, got 2.",
    ),
    "foreign policies": (
        {"probabilities": {"ann": 0.5, "bea": 0.5}},
        "`probabilities` must have every policy once and no others; missing: 'bob' (1 of 2); unknown: 'bea' (1 of 2).",
    ),
    "foreign targets": (
        {
            "targets": {"a": IMPORTANCES, "b": IMPORTANCES},
            "probabilities": pd.DataFrame(0.25, index=POLICIES, columns=["a", "c"]),
        },
        "`probabilities` must have every target once and no others; missing: 'b' (1 of 2); unknown: 'c' (1 of 2).",
    ),
    "noise of other cases": ({"noise": {"pong": 1.0}}, "`noise` must have every test case once and no others"),
    "two columns of noise": ({"noise": frame(CASES, [0, 1])}, "`noise` must have one value per test case, got 2."),
}


@pytest.mark.parametrize("what", REFUSED)
def test_missing_and_foreign_names_are_refused_and_listed(what: str) -> None:
    changes, message = REFUSED[what]
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        make(**changes)


def test_of_many_names_a_few_are_listed() -> None:
    results = pd.DataFrame(np.eye(20), index=[f"case {place}" for place in range(20)])
    with pytest.raises(ro.ProblemError, match=r"missing: 'case 1', .*'case 8' and 11 more \(19 of 20\)\.$"):
        ro.Problem(results=results, size=1, targets={"case 0": 1.0})


def test_policies_and_targets_may_share_names_unless_they_share_all() -> None:
    targets = pd.DataFrame([[1.0, 0, 0], [0, 1, 0]], index=["ann", "zoe"], columns=CASES)
    likely = pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], index=POLICIES, columns=["ann", "zoe"])
    for each in (likely, likely.T, likely.iloc[::-1]):
        np.testing.assert_allclose(make(targets=targets, probabilities=each).probabilities, likely)
    same = targets.set_axis(POLICIES)
    with pytest.raises(ro.ProblemError, match="rows and columns of `probabilities` both have the name of every policy"):
        make(targets=same, probabilities=likely.set_axis(POLICIES, axis=1))


def test_names_that_are_numbers_from_0_on_are_names_where_the_table_has_them() -> None:
    targets = pd.DataFrame([[1.0, 0, 0], [0, 1, 0]], index=["1", "0"], columns=CASES)
    problem = make(targets=targets, target_names=["0", "1"])
    assert problem.target_names == ("0", "1")
    np.testing.assert_array_equal(problem.targets, targets.loc[["0", "1"]])
    named = targets.set_axis(["ann", "zoe"])
    assert make(targets=named, target_names=["0", "1"]).target_names == ("ann", "zoe")  # as a problem without names has


class WithoutRowNames:
    """A table as polars has it: columns with names, rows without."""

    columns = ("skiing", "alien", "pong")

    def to_numpy(self) -> np.ndarray:
        return np.array([[0.5, 0.3, 0.2]])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.to_numpy().astype(dtype)


def test_columns_of_a_table_without_names_of_rows_are_found_by_name() -> None:
    np.testing.assert_allclose(make(targets=WithoutRowNames()).targets, [[0.2, 0.3, 0.5]])


@st.composite
def named_problems(draw: st.DrawFn, *, kinds: tuple[str, str, str] = ("", "", "")) -> dict[str, Any]:
    """What states a problem, by name; names of cases, policies and targets begin with these."""
    counts = [draw(st.integers(2, 5)) for _ in kinds]
    texts = st.sampled_from(["", "a", "b", "B", " ", "1", "1.0", "0", "é", "a b"])
    cases, policies, targets = (
        [kind + name for name in draw(st.lists(texts, min_size=count, max_size=count, unique=True))]
        for kind, count in zip(kinds, counts, strict=True)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    likely = rng.dirichlet(np.ones(len(policies) * len(targets))).reshape(len(policies), len(targets))
    return {
        "results": pd.DataFrame(rng.random((len(cases), len(policies))), index=cases, columns=policies),
        "targets": pd.DataFrame(rng.dirichlet(np.ones(len(cases)), len(targets)), index=targets, columns=cases),
        "probabilities": pd.DataFrame(likely, index=policies, columns=targets),
        "noise": pd.Series(rng.random(len(cases)), index=cases),
    }


def as_arrays(stated: dict[str, Any]) -> ro.Problem:
    """The same problem without names: what stands where is all that counts."""
    arrays: dict[str, Any] = {name: np.array(value) for name, value in stated.items()}  # no views that are locked
    return ro.Problem(size=1, **arrays)


@settings(max_examples=25)
@given(named_problems(), st.data())
def test_any_order_of_names_states_the_same_problem(stated: dict[str, Any], data: st.DataObject) -> None:
    expected, mixed, results = as_arrays(stated), dict(stated), stated["results"]
    for name, names in (("targets", results.index), ("probabilities", results.columns)):
        rows, columns = (data.draw(st.permutations(range(count))) for count in stated[name].shape)
        table = stated[name].iloc[list(rows), list(columns)]
        assume(not set(table.index) == set(table.columns) == set(names))  # nobody can tell which is which
        mixed[name] = table.T if data.draw(st.booleans()) else table
    turned = stated["noise"].iloc[list(data.draw(st.permutations(range(len(results)))))]
    mixed["noise"] = turned.to_dict() if data.draw(st.booleans()) else turned
    found = ro.Problem(size=1, target_names=list(stated["targets"].index), **mixed)
    np.testing.assert_array_equal(found.targets, expected.targets)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, rtol=1e-14)
    assert found.noise is not None and expected.noise is not None
    np.testing.assert_array_equal(found.noise, expected.noise)
    weights = np.random.default_rng(0).dirichlet(np.ones(expected.n_cases))
    tests = [problem.test(cases=range(problem.n_cases), weights=weights) for problem in (found, expected)]
    assert found.objective(tests[0]) == pytest.approx(expected.objective(tests[1]), rel=1e-12)


@settings(max_examples=25)
@given(
    named_problems(kinds=("case ", "policy ", "target ")),
    st.sampled_from(["targets", "probabilities", "noise"]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_a_name_too_many_or_too_few_is_always_refused(
    stated: dict[str, Any], name: str, is_foreign: bool, is_turned: bool, data: st.DataObject
) -> None:
    table = stated[name].T if name == "targets" else stated[name]  # a row per case, or per policy
    place = data.draw(st.integers(0, len(table) - 1))
    names = ["never seen" if here == place else label for here, label in enumerate(table.index)]
    changed = table.set_axis(names) if is_foreign else table.drop(index=table.index[place])
    with pytest.raises(ro.ProblemError, match=f"`{name}`"):
        ro.Problem(size=1, **{**stated, name: changed.T if is_turned else changed})


# One dimension, and importances.


def test_importances_are_divided_by_their_sum_and_that_is_told_where_it_was_asked_for() -> None:
    with pytest.warns(ro.RposstWarning, match="they sum to 10") as told:
        problem = make(targets={"pong": 5, "alien": 3, "skiing": 2})
    np.testing.assert_allclose(problem.targets, [[0.5, 0.3, 0.2]])
    assert [warning.filename for warning in told] == [__file__] * len(told)
    with pytest.warns(ro.RposstWarning, match=r"taken as importances, and divided by their sum: row 1 sums to 0\.95\."):
        problem = make(targets=[[0.2, 0.3, 0.5], [0.2, 0.3, 0.45]])
    np.testing.assert_allclose(problem.targets.sum(axis=1), 1, rtol=1e-15)


def test_a_distribution_comes_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(targets=[0.3333333, 0.3333333, 0.3333333])


# Groups and new results.


def test_groups_are_found_by_the_names_of_policies() -> None:
    rng = np.random.default_rng(0)
    names = ["a1", "b1", "a2", "b2", "a3"]
    table = pd.DataFrame(rng.random((4, 5)), columns=names)
    options: dict[str, Any] = {"selections": ["random"], "estimators": ["weights"], "folds": 2, "replicas": 1}
    expected = validate(table, [1], groups=["a", "b", "a", "b", "a"], **options).errors
    shuffled = {name: name[0] for name in sorted(names, reverse=True)}
    for groups in (shuffled, pd.Series(shuffled)):
        pd.testing.assert_frame_equal(validate(table, [1], groups=groups, **options).errors, expected)
    with pytest.raises(ro.ProblemError, match=r"`groups` must have every policy once and no others; missing: 'b2'"):
        validate(table, [1], groups={"a1": "a", "b1": "b", "a2": "a", "a3": "a"}, **options)


def test_a_purpose_finds_its_targets_and_its_noise_by_the_names_of_cases() -> None:
    table = pd.DataFrame(np.random.default_rng(0).random((3, 5)), index=CASES)
    options: dict[str, Any] = {"selections": ["random"], "estimators": ["weights"], "folds": 2, "replicas": 1}
    by_place = ro.Purpose(targets=np.array([[0.2, 0.3, 0.5]]), noise=np.array([1.0, 2.0, 3.0]))
    noise: Any = pd.Series({"skiing": 3.0, "pong": 1.0, "alien": 2.0})
    by_name = ro.Purpose(targets=pd.DataFrame(IMPORTANCES, index=[0]), noise=noise)  # type: ignore[arg-type]
    expected = validate(table, [2], purpose=by_place, **options).errors
    pd.testing.assert_frame_equal(validate(table, [2], purpose=by_name, **options).errors, expected)


def test_the_results_of_one_policy_or_of_several_are_scored_by_name() -> None:
    test = make().test(cases=["skiing"], weights=[1.0])
    one, two = {"skiing": 7.0, "pong": 1.0}, pd.Series({"pong": 2.0, "skiing": 8.0})
    assert test.score(one).tolist() == [7.0]
    assert test.score(two).tolist() == [8.0]
    assert test.score([one, two.to_dict()]).tolist() == [7.0, 8.0]
    assert test.score({"x": two, "y": one}).tolist() == [8.0, 7.0]
    with pytest.raises(ro.ProblemError, match="the results lack 'skiing'"):
        test.score({"pong": 1.0})
