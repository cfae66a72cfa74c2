import math
import re
from dataclasses import FrozenInstanceError, replace
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import distributions, losses, measures, problems

import rposst_opt as ro
from rposst_opt.arrays import FloatArray

LARGEST = float(np.finfo(np.float64).max)

TABLE = [[0.0, 1.0, 0.5], [1.0, 0.0, 0.25], [0.5, 0.5, 0.0], [0.75, 0.25, 1.0]]


def make(**changes: Any) -> ro.Problem:
    return ro.Problem(**{"results": TABLE, "size": 2, **changes})


@st.composite
def any_test_of(draw: st.DrawFn, problem: ro.Problem) -> ro.EfficientTest:
    """Tests of any number of cases, allowed or not, with any weights."""
    cases = sorted(draw(st.sets(st.integers(0, problem.n_cases - 1), min_size=1)))
    return problem.test(cases=cases, weights=draw(distributions(len(cases))))


@st.composite
def problems_with_tests(
    draw: st.DrawFn, count: int = 1
) -> tuple[ro.Problem, ro.EfficientTest] | tuple[ro.Problem, ro.EfficientTest, ro.EfficientTest]:
    problem = draw(problems())
    return problem, *[draw(any_test_of(problem)) for _ in range(count)]  # type: ignore[return-value]


# The objective once more, in plain Python and by the words of the definitions.


def plain_tail_weight(measure: ro.Measure, tail: float) -> float:
    if isinstance(measure, ro.Mean):
        return tail
    if isinstance(measure, ro.WorstCase) or (isinstance(measure, ro.CVaR) and measure.tail_fraction == 0):
        return 1.0 if tail > 0 else 0.0
    if isinstance(measure, ro.CVaR):
        return min(tail / measure.tail_fraction, 1.0)
    if isinstance(measure, ro.KOfN):
        chances = [math.comb(measure.n, i) * tail**i * (1 - tail) ** (measure.n - i) for i in range(measure.n + 1)]
        return math.fsum(min(i, measure.k) * chance for i, chance in enumerate(chances)) / measure.k
    assert isinstance(measure, ro.Mixture)
    return math.fsum(share * plain_tail_weight(part, tail) for share, part in measure.parts)


def plain_loss(loss: ro.Loss, error: float) -> float:
    if isinstance(loss, ro.AbsoluteError):
        return abs(error)
    if isinstance(loss, ro.SquaredError):
        return error**2
    if isinstance(loss, ro.HuberError):
        small = abs(error) <= loss.threshold
        return error**2 / 2 if small else loss.threshold * (abs(error) - loss.threshold / 2)
    if isinstance(loss, ro.PinballError):
        return max(-loss.quantile * error, (1 - loss.quantile) * error)
    assert isinstance(loss, ro.EpsilonInsensitiveError)
    return max(0.0, abs(error) - loss.tolerance)


def plain_objective(problem: ro.Problem, test: ro.EfficientTest) -> float:
    outcomes = []
    for policy in range(problem.n_policies):
        column = [float(problem.results[case, policy]) for case in range(problem.n_cases)]
        score = math.fsum(weight * column[case] for case, weight in zip(test.cases, test.weights, strict=True))
        for number, target in enumerate(problem.targets):
            full_score = math.fsum(share * result for share, result in zip(target, column, strict=True))
            outcomes.append((plain_loss(problem.loss, score - full_score), problem.probabilities[policy, number]))
    total = before = tail = 0.0
    for loss, probability in sorted(outcomes, reverse=True):
        tail = min(tail + probability, 1.0)
        after = plain_tail_weight(problem.measure, tail)
        total += (after - before) * loss
        before = after
    return total


@given(problems_with_tests())
def test_the_objective_is_the_measure_of_the_losses(given_problem: tuple[ro.Problem, ro.EfficientTest]) -> None:
    problem, test = given_problem
    assert problem.objective(test) == pytest.approx(plain_objective(problem, test), abs=1e-11)


def test_an_objective_worked_out_by_hand() -> None:
    problem = ro.Problem(
        results=[[0.0, 1.0], [1.0, 0.0]],
        size=1,
        measure=ro.CVaR(0.5),
        targets=[[0.5, 0.5], [0.9, 0.1]],
        probabilities=[[0.1, 0.2], [0.3, 0.4]],
    )
    # The first case gives the policies the scores 0 and 1. Full scores are 0.5 and 0.1, and 0.5 and 0.9.
    # So the losses are 0.5 and 0.1, and 0.5 and 0.1; the worst half is 0.4 of the former and 0.1 of the latter.
    assert problem.objective(problem.test(cases=[0], weights=[1.0])) == pytest.approx((0.4 * 0.5 + 0.1 * 0.1) / 0.5)


@given(problems_with_tests(count=2))
def test_the_subgradient_supports_the_objective(
    given_problem: tuple[ro.Problem, ro.EfficientTest, ro.EfficientTest],
) -> None:
    problem, here, there = given_problem
    gradient = problem.subgradient(here)
    assert gradient.shape == (problem.n_cases,)
    step = there.full_weights() - here.full_weights()
    assert problem.objective(there) >= problem.objective(here) + gradient @ step - 1e-10


@given(problems_with_tests(count=2))
def test_a_cut_is_a_lower_bound_for_every_test(
    given_problem: tuple[ro.Problem, ro.EfficientTest, ro.EfficientTest],
) -> None:
    problem, here, there = given_problem
    cut = problem.cut(here)
    assert cut.shape == (problem.n_cases,)
    assert problem.objective(there) >= there.full_weights() @ cut - 1e-10
    assert problem.objective(there) >= cut[list(there.cases)].min() - 1e-10
    assert here.full_weights() @ cut == pytest.approx(problem.objective(here), abs=1e-10)
    objective, same_cut = problem.objective_and_cut(here)
    assert objective == problem.objective(here) and same_cut.tolist() == cut.tolist()


@given(problems_with_tests(), st.randoms(use_true_random=False))
def test_the_order_of_cases_policies_and_targets_does_not_matter(
    given_problem: tuple[ro.Problem, ro.EfficientTest], random: Random
) -> None:
    problem, test = given_problem
    cases, policies, targets = (
        random.sample(range(count), count) for count in (problem.n_cases, problem.n_policies, len(problem.targets))
    )
    shuffled = ro.Problem(
        results=problem.results[np.ix_(cases, policies)],
        size=problem.size,
        measure=problem.measure,
        loss=problem.loss,
        targets=problem.targets[np.ix_(targets, cases)],
        probabilities=problem.probabilities[np.ix_(policies, targets)],
    )
    same_test = shuffled.test(cases=[cases.index(case) for case in test.cases], weights=test.weights)
    assert shuffled.objective(same_test) == pytest.approx(problem.objective(test), abs=1e-11)
    np.testing.assert_allclose(shuffled.scores(same_test), problem.scores(test)[policies], atol=1e-12)


@given(problems_with_tests())
def test_a_test_of_all_cases_with_the_target_as_weights_makes_no_error(
    given_problem: tuple[ro.Problem, ro.EfficientTest],
) -> None:
    problem, _ = given_problem
    single = replace(problem, targets=problem.targets[:1], probabilities=None)  # type: ignore[arg-type]
    full = single.test(cases=range(single.n_cases), weights=single.targets[0])
    assert single.objective(full) <= single.rounding


@given(measures(), losses(), st.floats(-1e6, 1e6), st.integers(1, 5), st.integers(1, 4))
def test_constant_results_leave_nothing_to_get_wrong(
    measure: ro.Measure, loss: ro.Loss, constant: float, n_cases: int, n_policies: int
) -> None:
    problem = ro.Problem(results=np.full((n_cases, n_policies), constant), size=1, measure=measure, loss=loss)
    test = problem.test(cases=range(n_cases), weights=np.full(n_cases, 1 / n_cases))
    assert 0 <= problem.objective(test) <= problem.rounding
    assert problem.loss_scale == 0
    assert np.isfinite(problem.cut(test)).all()


@pytest.mark.parametrize("loss", [ro.AbsoluteError(), ro.SquaredError()], ids=repr)
@pytest.mark.parametrize("largest", [1e150, 1.3e154, 1e300, 1e308, LARGEST])
@pytest.mark.parametrize("pattern", ["zero to large", "large alone", "large constant"])
def test_large_results_are_refused_or_handled_without_overflow(loss: ro.Loss, largest: float, pattern: str) -> None:
    table = {
        "zero to large": np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.9, 0.8], [1.0, 1.0], [0.0, 1.0], [0.5, 1.0]]),
        "large alone": np.array([[0.9, 0.8], [0.7, 1.0], [1.0, 1.0], [0.95, 0.75], [0.9, 1.0], [1.0, 1.0], [0.8, 1.0]]),
        "large constant": np.ones((7, 2)),
    }[pattern]
    try:
        problem = ro.Problem(results=table * largest, size=1, loss=loss)
    except ro.ProblemError as error:
        assert "rescale" in str(error)
        return
    assert math.isfinite(problem.loss_scale)
    assert math.isfinite(problem.rounding)
    for test in (problem.test(cases=[0], weights=[1]), problem.test(cases=range(7), weights=np.full(7, 1 / 7))):
        assert math.isfinite(problem.objective(test))
        assert np.isfinite(problem.cut(test)).all()


@pytest.mark.parametrize("loss", [ro.AbsoluteError(), ro.SquaredError()], ids=repr)
def test_large_results_of_both_signs_are_refused_with_advice(loss: ro.Loss) -> None:
    with pytest.raises(ro.ProblemError, match=r"`results` from -1e\+308 to 1e\+308 .*overflow: rescale them first"):
        ro.Problem(results=[[1e308, -1e308], [0.0, 0.0]], size=1, loss=loss)


# What a problem holds.


def test_defaults_are_those_of_the_paper() -> None:
    problem = make()
    assert problem.measure == ro.CVaR(0.01)
    assert problem.loss == ro.AbsoluteError()
    np.testing.assert_allclose(problem.targets, np.full((1, 4), 0.25))
    np.testing.assert_allclose(problem.probabilities, np.full((3, 1), 1 / 3))
    assert problem.case_names == ("0", "1", "2", "3")
    assert problem.policy_names == ("0", "1", "2")
    assert (problem.n_cases, problem.n_policies, problem.n_scenarios) == (4, 3, 3)


def test_arrays_are_copied_and_cannot_be_changed() -> None:
    results = np.array(TABLE)
    targets = np.array([[0.25, 0.25, 0.25, 0.25]])
    probabilities = np.array([[0.5], [0.25], [0.25]])
    problem = make(results=results, targets=targets, probabilities=probabilities)
    test = problem.test(cases=[0, 1], weights=[0.5, 0.5])
    before = problem.objective(test)
    results[:], targets[:], probabilities[:] = 7, 7, 7
    assert problem.objective(test) == before
    assert replace(problem).objective(test) == before
    arrays: list[FloatArray] = [problem.results, problem.targets, problem.probabilities, test.weights]
    for array in [*arrays, *problem.scenarios]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(FrozenInstanceError):
        problem.size = 3  # type: ignore[misc]


def test_distributions_written_in_decimals_are_made_to_sum_to_one() -> None:
    problem = make(targets=[[0.3333333, 0.3333333, 0.3333333, 0.0]], probabilities=[[0.3333333]] * 3)
    assert problem.targets.sum() == pytest.approx(1, abs=1e-15)
    assert problem.probabilities.sum() == pytest.approx(1, abs=1e-15)


def test_a_data_frame_brings_its_names() -> None:
    frame = pd.DataFrame(TABLE, index=["oval", "figure eight", "hairpin", "chicane"], columns=["ann", "bob", "cy"])
    problem = ro.Problem(results=frame, size=1, required_cases=["hairpin"], forbidden_cases="oval")
    assert problem.case_names == ("oval", "figure eight", "hairpin", "chicane")
    assert problem.policy_names == ("ann", "bob", "cy")
    assert (problem.required_cases, problem.forbidden_cases) == ((2,), (0,))
    np.testing.assert_array_equal(problem.results, TABLE)
    test = problem.test(cases=["hairpin", "figure eight"], weights=[0.25, 0.75])
    assert test.cases == (1, 2)
    assert test.case_names == ("figure eight", "hairpin")
    np.testing.assert_allclose(problem.scores(test), 0.75 * np.array(TABLE[1]) + 0.25 * np.array(TABLE[2]))


def test_names_may_be_given_beside_a_data_frame() -> None:
    problem = ro.Problem(results=pd.DataFrame(TABLE), size=1, case_names=list("abcd"), policy_names=list("xyz"))
    assert (problem.case_names, problem.policy_names) == (tuple("abcd"), tuple("xyz"))
    assert ro.Problem(results=pd.DataFrame(TABLE), size=1).case_names == ("0", "1", "2", "3")


def test_required_and_forbidden_cases_go_by_position_or_by_name() -> None:
    by_position = make(case_names=list("abcd"), required_cases=[3, 1], forbidden_cases=np.array([0]), size=1)
    by_name = make(case_names=list("abcd"), required_cases=["d", "b", "b"], forbidden_cases="a", size=1)
    for problem in (by_position, by_name):
        assert problem.required_cases == (1, 3)
        assert problem.forbidden_cases == (0,)
        assert problem.selectable_cases == (2,)
        assert problem.n_chosen == 3


@given(problems())
def test_tuples_are_counted_among_the_cases_that_are_not_settled(problem: ro.Problem) -> None:
    free = problem.n_cases - len(problem.required_cases) - len(problem.forbidden_cases)
    assert len(problem.selectable_cases) == free
    assert problem.n_tuples == math.comb(free, problem.size)
    assert problem.n_chosen == problem.size + len(problem.required_cases)


@given(problems())
def test_scenarios_are_the_pairs_that_can_happen(problem: ro.Problem) -> None:
    policies, targets = np.nonzero(problem.probabilities)
    scenarios = problem.scenarios
    assert problem.n_scenarios == len(policies)
    assert scenarios.policies.tolist() == policies.tolist()
    assert (scenarios.probabilities > 0).all()
    assert scenarios.probabilities.sum() == pytest.approx(1, abs=1e-12)
    for scenario, (policy, target) in enumerate(zip(policies, targets, strict=True)):
        full_score = problem.targets[target] @ problem.results[:, policy]
        assert scenarios.full_scores[scenario] == pytest.approx(full_score, abs=1e-12)
        assert scenarios.probabilities[scenario] == problem.probabilities[policy, target]
        assert scenarios.offsets[policy] <= scenario < scenarios.offsets[policy + 1]
    assert len(scenarios.offsets) == problem.n_policies + 1


def test_policies_that_cannot_happen_do_not_count() -> None:
    changed = np.array(TABLE)
    changed[:, 1] = [9.0, -9.0, 9.0, -9.0]
    probabilities = [[0.25], [0.0], [0.75]]
    one, other = make(probabilities=probabilities), make(results=changed, probabilities=probabilities)
    assert one.n_scenarios == 2
    for cases in ([0, 1], [1, 2], [2, 3]):
        test = one.test(cases=cases, weights=[0.25, 0.75])
        assert one.objective(test) == other.objective(test)
        assert make(measure=ro.WorstCase(), probabilities=probabilities).objective(test) == max(
            abs(one.scores(test) - one.results.mean(axis=0))[[0, 2]]
        )


@pytest.mark.parametrize(
    ("loss", "measure", "probabilities", "needs"),
    [
        (ro.AbsoluteError(), ro.CVaR(0.1), None, {ro.Need.POLYHEDRAL_LOSS, ro.Need.CVAR_MIXTURE}),
        (ro.PinballError(), ro.Mean(), [[0.5], [0.3], [0.2]], {ro.Need.POLYHEDRAL_LOSS, ro.Need.CVAR_MIXTURE}),
        (ro.EpsilonInsensitiveError(), ro.KOfN(1, 3), None, {ro.Need.POLYHEDRAL_LOSS, ro.Need.CVAR_MIXTURE}),
        (ro.AbsoluteError(), ro.KOfN(1, 3), [[0.5], [0.3], [0.2]], {ro.Need.POLYHEDRAL_LOSS, ro.Need.ANY_MEASURE}),
        (ro.AbsoluteError(), ro.KOfN(1, 3), [[0.5], [0.0], [0.5]], {ro.Need.POLYHEDRAL_LOSS, ro.Need.CVAR_MIXTURE}),
        (ro.SquaredError(), ro.WorstCase(), None, {ro.Need.CURVED_LOSS, ro.Need.CVAR_MIXTURE}),
        (ro.HuberError(), ro.KOfN(1, 3), [[0.5], [0.3], [0.2]], {ro.Need.CURVED_LOSS, ro.Need.ANY_MEASURE}),
    ],
)
def test_needs_are_read_from_the_loss_and_the_measure(
    loss: ro.Loss, measure: ro.Measure, probabilities: list[list[float]] | None, needs: set[ro.Need]
) -> None:
    assert make(loss=loss, measure=measure, probabilities=probabilities).needs == needs


def test_one_thing_about_a_problem_can_be_replaced() -> None:
    problem = make(required_cases=[1], case_names=list("abcd"))
    test = problem.test(cases=[1, 2, 3], weights=[0.5, 0.25, 0.25])
    problem.objective(test)  # so that everything that is computed once has been
    changed = replace(problem, measure=ro.Mean(), size=1)
    assert (changed.size, changed.measure, changed.required_cases) == (1, ro.Mean(), (1,))
    assert changed.case_names == problem.case_names
    assert changed.objective(test) == make(measure=ro.Mean()).objective(test) != problem.objective(test)
    assert replace(problem, loss=ro.SquaredError()).needs != problem.needs
    with pytest.raises(ro.ProblemError, match="`size`"):
        replace(problem, size=4)


def test_why_a_test_is_no_answer() -> None:
    problem = make(required_cases=[1], forbidden_cases=[0], case_names=list("abcd"), size=1)
    weights = [0.5, 0.5]
    assert problem.why_not(problem.test(cases=[1, 2], weights=weights)) is None
    assert "lacks the required test case 'b'" in str(problem.why_not(problem.test(cases=[2, 3], weights=weights)))
    assert "forbidden test case 'a'" in str(problem.why_not(problem.test(cases=[0, 1], weights=weights)))
    assert "1 test cases" in str(problem.why_not(problem.test(cases=[1], weights=[1.0])))
    other = ro.EfficientTest(cases=[1, 2], weights=weights, n_cases=5)
    assert "made for 5 test cases" in str(problem.why_not(other))
    with pytest.raises(ro.ProblemError, match="a test of 5 test cases does not fit a problem of 4"):
        problem.objective(other)


# What is refused.


def with_cell(value: object) -> list[list[object]]:
    table: list[list[object]] = [list(row) for row in TABLE]
    table[2][1] = value
    return table


BAD_PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"results": with_cell(math.nan)}, "`results` must be finite, got nan for test case '2' and policy '1'."),
    (
        {"results": with_cell(-math.inf), "case_names": list("abcd"), "policy_names": list("xyz")},
        "`results` must be finite, got -inf for test case 'c' and policy 'y'.",
    ),
    ({"results": with_cell(None)}, "`results` must be "),
    ({"results": with_cell("fast")}, "`results` must be a table of numbers: could not convert string to float: 'fast'"),
    ({"results": [[1.0, 2.0], [3.0]]}, "`results` must be a table of numbers"),
    ({"results": []}, "`results` must be a table of test cases by policies, got shape (0,)."),
    ({"results": [[]]}, "`results` must be a table of test cases by policies, got shape (1, 0)."),
    ({"results": [1.0, 2.0]}, "`results` must be a table of test cases by policies, got shape (2,)."),
    ({"results": 3.0}, "`results` must be a table of test cases by policies, got shape ()."),
    ({"results": [TABLE]}, "`results` must be a table of test cases by policies, got shape (1, 4, 3)."),
    ({"results": pd.Series([1.0, 2.0])}, "`results` must be a table of test cases by policies, got shape (2,)."),
    ({"results": pd.DataFrame({"x": ["fast", "slow"]})}, "`results` must be a table of numbers"),
    (
        {"results": pd.DataFrame([[1.0], [2.0]], index=["a", "a"])},
        "`case_names` must differ from each other, got 'a' more than once.",
    ),
    ({"case_names": list("abca")}, "`case_names` must differ from each other, got 'a' more than once."),
    ({"policy_names": ["x", "y", "y"]}, "`policy_names` must differ from each other, got 'y' more than once."),
    ({"case_names": list("abc")}, "`case_names` must have 4 names, one per test case, got 3."),
    (
        {"results": with_cell(math.nan), "case_names": ["a", "b"]},
        "`case_names` must have 4 names, one per test case, got 2.",
    ),
    ({"policy_names": list("wxyz")}, "`policy_names` must have 3 names, one per policy, got 4."),
    ({"size": 0}, "`size` must lie between 1 and the 4 test cases, got 0."),
    ({"size": -1}, "`size` must lie between 1 and the 4 test cases, got -1."),
    ({"size": 5}, "`size` must lie between 1 and the 4 test cases, got 5."),
    (
        {"size": 3, "required_cases": [0], "forbidden_cases": [1]},
        "`size` must lie between 1 and the 2 test cases that are neither required nor forbidden, got 3.",
    ),
    ({"size": 2.0}, "`size` must be a whole number, got 2.0."),
    ({"size": True}, "`size` must be a whole number, got True."),
    ({"size": "2"}, "`size` must be a whole number, got '2'."),
    ({"size": None}, "`size` may be left out only where there is a `budget`."),
    ({"required_cases": ["z"]}, "unknown test case 'z'. Known: '0', '1', '2', '3'."),
    ({"forbidden_cases": ["z"]}, "unknown test case 'z'. Known: '0', '1', '2', '3'."),
    ({"required_cases": [4]}, "unknown test case 4: give a name, or a position from 0 to 3."),
    ({"required_cases": [-1]}, "unknown test case -1: give a name, or a position from 0 to 3."),
    ({"required_cases": [True]}, "unknown test case True: give a name, or a position from 0 to 3."),
    ({"required_cases": [1.0]}, "unknown test case 1.0: give a name, or a position from 0 to 3."),
    (
        {"required_cases": [2], "forbidden_cases": ["c"], "case_names": list("abcd")},
        "test case 'c' is both required and forbidden.",
    ),
    ({"targets": [0.25] * 3}, "`targets` must have one row per target and 4 columns, got shape (3,)."),
    ({"targets": [[0.5, 0.5]]}, "`targets` must have one row per target and 4 columns, got shape (1, 2)."),
    ({"targets": np.empty((0, 4))}, "`targets` must have one row per target and 4 columns, got shape (0, 4)."),
    ({"targets": [["a", 0, 0, 1]]}, "`targets` must be a table of numbers"),
    ({"targets": [[0.25] * 4, [1.5, -0.5, 0, 0]]}, "row 1 of `targets` must not be negative, got -0.5."),
    ({"targets": [[0.25] * 4, [0.0] * 4]}, "row 1 of `targets` must have a number above zero, got zeros alone."),
    ({"targets": [[math.nan, 0, 0, 1]]}, "row 0 of `targets` must be finite, got nan."),
    ({"targets": [[1e308] * 4]}, "row 0 of `targets` must sum to 1, got inf."),
    (
        {"probabilities": [1 / 3] * 3},
        "`probabilities` must have a row per policy and a column per target, 3 x 1, got shape (3,).",
    ),
    ({"probabilities": [[1.0]]}, "`probabilities` must have a row per policy and a column per target, 3 x 1"),
    ({"probabilities": [["a"], [0], [1]]}, "`probabilities` must be a table of numbers"),
    ({"probabilities": [[1.5], [-0.5], [0]]}, "`probabilities` must not be negative, got -0.5."),
    ({"probabilities": [[0.5], [0.4], [0]]}, "`probabilities` must sum to 1, got 0.9."),
    ({"probabilities": [[0.0], [0.0], [0.0]]}, "`probabilities` must sum to 1, got 0."),
    ({"probabilities": [[math.nan], [0.5], [0.5]]}, "`probabilities` must be finite, got nan."),
    ({"measure": "mean"}, "`measure` must be a Measure, for instance one of rposst_opt's, got 'mean'."),
    ({"measure": ro.CVaR}, "`measure` must be a Measure, for instance one of rposst_opt's, got <class"),
    ({"measure": 0.01}, "`measure` must be a Measure, for instance one of rposst_opt's, got 0.01."),
    ({"loss": "absolute"}, "`loss` must be a Loss, for instance one of rposst_opt's, got 'absolute'."),
]


@pytest.mark.parametrize(("changes", "message"), BAD_PROBLEMS, ids=[message for _, message in BAD_PROBLEMS])
def test_what_makes_no_problem_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        make(**changes)


def test_only_a_few_of_many_known_cases_are_listed() -> None:
    with pytest.raises(ro.ProblemError, match=r"'0', .*'7' and 92 more\."):
        ro.Problem(results=np.zeros((100, 1)), size=1, required_cases=["z"])


# Rescaling and targets.


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8).filter(lambda row: max(row) - min(row) > 1e-3))
def test_rescaling_maps_the_least_result_to_zero_and_the_greatest_to_one(row: list[float]) -> None:
    rescaled, scale = ro.rescale([row])
    assert (scale.low, scale.high) == (min(row), max(row))
    assert (float(rescaled.min()), float(rescaled.max())) == (0.0, 1.0)
    np.testing.assert_allclose(scale.score_in_file_units(rescaled), [row], atol=1e-9)
    np.testing.assert_allclose(
        [[scale.low + scale.error_in_file_units(each) for each in rescaled[0]]], [row], atol=1e-9
    )


@pytest.mark.parametrize("largest", [1e308, LARGEST])
def test_rescaling_copes_with_the_largest_numbers(largest: float) -> None:
    rescaled, scale = ro.rescale([[largest, -largest, 0.0]])
    assert rescaled.tolist() == [[1, 0, 0.5]]
    assert (scale.low, scale.high) == (-largest, largest)
    assert scale.error_in_file_units(0.25) == largest / 2
    assert scale.score_in_file_units(0.25) == pytest.approx(-largest / 2)
    ro.Problem(results=rescaled, size=1)


@pytest.mark.parametrize("constant", [0.0, -3.5, 1e308, LARGEST])
def test_rescaled_constant_results_are_zero(constant: float) -> None:
    rescaled, scale = ro.rescale(np.full((2, 3), constant))
    assert rescaled.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert scale == ro.Scale(low=constant, high=constant)
    assert scale.error_in_file_units(0.5) == 0
    assert scale.score_in_file_units(0.5) == constant


def test_rescaling_does_not_hide_which_result_is_missing() -> None:
    with pytest.raises(ro.ProblemError, match=r"nan.*\b1\b.*\b0\b"):
        ro.Problem(results=ro.rescale([[1.0, 2.0], [math.nan, 3.0]])[0], size=1)


NOT_RESCALED = pytest.mark.filterwarnings("ignore:softmax targets are made of results:rposst_opt.RposstWarning")


@NOT_RESCALED
@given(
    st.lists(st.lists(st.floats(-5, 5), min_size=2, max_size=2), min_size=1, max_size=5),
    st.lists(st.floats(-5, 5), min_size=1, max_size=3),
)
def test_softmax_targets_follow_their_formula(results: list[list[float]], betas: list[float]) -> None:
    targets = ro.softmax_targets(results, betas=betas)
    for beta, target in zip(betas, targets, strict=True):
        likings = [math.exp(-beta * sum(row) / len(row)) for row in results]
        np.testing.assert_allclose(target, [liking / sum(likings) for liking in likings], rtol=1e-10)


def test_softmax_targets_stress_hard_cases_more_the_larger_beta_is() -> None:
    targets = ro.softmax_targets(TABLE)
    assert targets.shape == (4, 4)
    np.testing.assert_allclose(targets[0], 0.25)
    hardest = int(np.argmin(np.mean(TABLE, axis=1)))
    assert (np.diff(targets[:, hardest]) > 0).all()
    make(targets=targets)


@NOT_RESCALED
@pytest.mark.parametrize("beta", [1e3, 1e100, 1e308, LARGEST])
def test_a_huge_beta_leaves_only_the_hardest_cases(beta: float) -> None:
    results = [[3.0, 3.0], [1.0, 1.0], [1.0, 1.0], [2.0, 2.0]]
    np.testing.assert_allclose(ro.softmax_targets(results, betas=(beta,)), [[0, 0.5, 0.5, 0]])
    np.testing.assert_allclose(ro.softmax_targets(results, betas=(-beta,)), [[1, 0, 0, 0]])


@NOT_RESCALED
@pytest.mark.parametrize("large", [1e300, 1e308])
def test_huge_results_of_one_sign_have_softmax_targets(large: float) -> None:
    results = [[large, large, large], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(ro.softmax_targets(results, betas=(0, 1)), [[0.5, 0.5], [0.0, 1.0]])


BAD_TARGETS: list[tuple[object, object, str]] = [
    ([1.0, 2.0], (0,), "`results` must be a table of test cases by policies, got shape (2,)."),
    ([[]], (0,), "`results` must be a table of test cases by policies, got shape (1, 0)."),
    ([[1.0], [2.0]], (), "`betas` must be a list of finite numbers, got ()."),
    ([[1.0], [2.0]], 1.0, "`betas` must be a list of finite numbers, got 1.0."),
    ([[1.0], [2.0]], (math.nan,), "`betas` must be a list of finite numbers, got (nan,)."),
    ([[1.0], [2.0]], (math.inf,), "`betas` must be a list of finite numbers, got (inf,)."),
    ([[math.nan], [2.0]], (0,), "`results` must be finite"),
    ([[math.inf], [2.0]], (0,), "`results` must be finite"),
    ([[-math.inf], [2.0]], (0,), "`results` must be finite"),
    ([[math.inf], [math.inf]], (0,), "`results` must be finite"),
    ([[1e308], [-1e308]], (0,), "rescale them first"),
]


@pytest.mark.parametrize(("results", "betas", "message"), BAD_TARGETS)
def test_softmax_targets_of_nonsense_are_refused(results: object, betas: object, message: str) -> None:
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        ro.softmax_targets(results, betas=betas)  # type: ignore[arg-type]


# The small test itself.


def test_a_test_keeps_its_cases_in_order_each_with_its_weight_and_name() -> None:
    test = ro.EfficientTest(cases=[4, 0, 2], weights=[0.5, 0.2, 0.3], case_names=["e", "a", "c"], n_cases=5)
    assert test.cases == (0, 2, 4)
    assert test.case_names == ("a", "c", "e")
    np.testing.assert_allclose(test.weights, [0.2, 0.3, 0.5])
    np.testing.assert_allclose(test.full_weights(), [0.2, 0, 0.3, 0, 0.5])
    assert ro.EfficientTest(cases=[3, 1], weights=[0.5, 0.5], n_cases=5).case_names == ("1", "3")


@pytest.mark.parametrize("weights", [[0.5, 0.5 + 1e-7], [0.5, 0.5 - 1e-7], [1 + 1e-7, -1e-7], [-1e-7, 1.0]])
def test_weights_that_miss_the_simplex_as_solvers_do_are_mended(weights: list[float]) -> None:
    mended = ro.EfficientTest(cases=[0, 1], weights=weights, n_cases=2).weights
    assert (mended >= 0).all()
    assert mended.sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(mended, weights, atol=3e-7)


BAD_TESTS: list[tuple[dict[str, Any], str]] = [
    ({"weights": [0.5, 0.501]}, "the weights of a test must be non-negative and sum to 1, got [0.5, 0.501]."),
    ({"weights": [0.5, 0.499]}, "the weights of a test must be non-negative and sum to 1, got [0.5, 0.499]."),
    ({"weights": [1.001, -0.001]}, "the weights of a test must be non-negative and sum to 1, got [1.001, -0.001]."),
    ({"weights": [math.nan, 1.0]}, "the weights of a test must be a list of finite numbers, got [nan, 1.0]."),
    ({"weights": [math.inf, 0.0]}, "the weights of a test must be a list of finite numbers, got [inf, 0.0]."),
    ({"weights": [[0.5, 0.5]]}, "the weights of a test must be a list of finite numbers, got [[0.5, 0.5]]."),
    ({"weights": [1.0]}, "got 2 cases, 1 weights and 2 names."),
    ({"case_names": ["a"]}, "got 2 cases, 2 weights and 1 names."),
    ({"cases": [], "weights": []}, "the weights of a test must be non-negative and sum to 1, got []."),
    ({"cases": [1, 1]}, "a test must not use a case twice, got cases [1, 1]."),
    ({"cases": [0, 3]}, "the cases of a test must lie in 0..2, got [0, 3]."),
    ({"cases": [-1, 0]}, "the cases of a test must lie in 0..2, got [-1, 0]."),
]


@pytest.mark.parametrize(("changes", "message"), BAD_TESTS, ids=[message for _, message in BAD_TESTS])
def test_what_makes_no_test_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        ro.EfficientTest(**{"cases": [0, 1], "weights": [0.5, 0.5], "n_cases": 3, "case_names": ["a", "b"], **changes})


def test_a_case_between_two_positions_is_refused_and_never_rounded() -> None:
    with pytest.raises(ro.ProblemError, match=r"1\.75"):
        ro.EfficientTest(cases=[0, 1.75], weights=[0.5, 0.5], n_cases=3)  # type: ignore[list-item]


@pytest.fixture
def small_test() -> ro.EfficientTest:
    return ro.EfficientTest(cases=[2, 0], weights=[0.25, 0.75], case_names=["hairpin", "oval"], n_cases=4)


def test_a_score_is_the_weighted_mean_of_the_chosen_rows(small_test: ro.EfficientTest) -> None:
    all_rows = np.arange(8.0).reshape(4, 2)
    expected = [0.75 * 0 + 0.25 * 4, 0.75 * 1 + 0.25 * 5]
    assert small_test.score(all_rows).tolist() == expected
    assert small_test.score(all_rows[[0, 2]]).tolist() == expected
    assert small_test.score(all_rows[[0, 2]].tolist()).tolist() == expected


def test_only_the_chosen_rows_must_be_known(small_test: ro.EfficientTest) -> None:
    assert small_test.score([[0.0], [math.nan], [4.0], [math.nan]]).tolist() == [1]


def test_a_data_frame_is_scored_by_names_in_any_order(small_test: ro.EfficientTest) -> None:
    frame = pd.DataFrame({"ann": [8.0, 1.0, 4.0], "bob": [0.0, 1.0, 8.0]}, index=["hairpin", "figure eight", "oval"])
    assert small_test.score(frame).tolist() == [0.25 * 8 + 0.75 * 4, 0.75 * 8]
    assert small_test.score(frame.iloc[::-1]).tolist() == [0.25 * 8 + 0.75 * 4, 0.75 * 8]


BAD_NEW_RESULTS: list[tuple[object, str]] = [
    (pd.DataFrame({"ann": [1.0]}, index=["oval"]), "the results lack 'hairpin', which the test needs"),
    (pd.DataFrame({"ann": [1.0]}, index=["chicane"]), "the results lack 'oval', 'hairpin', which the test needs"),
    (
        pd.DataFrame({"ann": [1.0, 2.0, 3.0]}, index=["oval", "hairpin", "oval"]),
        "the results have test case 'oval' more than once",
    ),
    (np.zeros((3, 2)), "`new_results` must have 4 rows (all cases) or 2 (the chosen ones)"),
    (np.zeros(4), "column per policy, got shape (4,)."),
    ([[math.nan], [0.0]], "`new_results` must be finite for the cases of the test."),
    ([["fast"], ["slow"]], "`new_results`"),
    (pd.DataFrame({"ann": ["fast", "slow"]}, index=["oval", "hairpin"]), "results"),
]


@pytest.mark.parametrize(("new_results", "message"), BAD_NEW_RESULTS, ids=[message for _, message in BAD_NEW_RESULTS])
def test_results_that_cannot_be_scored_are_refused(
    small_test: ro.EfficientTest, new_results: Any, message: str
) -> None:
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        small_test.score(new_results)


@given(problems())
def test_the_sets_of_cases_are_all_there_once_and_each_can_be_the_only_one(problem: ro.Problem) -> None:
    listed = list(problem.tuples())
    assert len(listed) == len({frozenset(cases) for cases in listed}) == problem.n_tuples
    assert [cases[: problem.size] for cases in listed] == sorted(cases[: problem.size] for cases in listed)
    for cases in listed:
        assert cases[problem.size :] == problem.required_cases
        assert not set(cases) & set(problem.forbidden_cases)
    assert set(problem.eligible_cases) == set(range(problem.n_cases)) - set(problem.forbidden_cases)
    alone = problem.restricted_to(listed[-1])
    assert list(alone.tuples()) == [listed[-1]]
    assert alone.required_cases == problem.required_cases


def test_what_counts_as_equal_grows_with_the_tolerance_and_the_unit() -> None:
    problem = ro.Problem(results=[[0.0, 50.0], [100.0, 50.0]], size=1)
    assert problem.allowance(0.0) == problem.rounding > 0
    assert problem.allowance(1e-3) == pytest.approx(0.1)
