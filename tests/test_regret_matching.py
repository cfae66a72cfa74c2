"""The reference method against the paper's pseudocode in plain Python, and against certified optima of every tuple."""

import functools
import itertools
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from linear_programs import linear_program
from oracles import every_tuple
from strategies import problems

import rposst_opt as ro

CLOSE_CALL = 1e-12  # a tie or a kink nearer than this may be decided either way by rounding


class SquareRoot(ro.Measure):
    name = "square-root"

    def tail_weight(self, tail: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(tail))


class FourPieces(ro.Loss):
    name = "four-pieces"

    @property
    def pieces(self) -> ro.PiecewiseQuadratic:
        return ro.PiecewiseQuadratic(
            knots=[-0.3, 0.0, 0.2], coefficients=[[-0.45, -2, 0], [0, -0.5, 0], [0, 0.25, 0], [-0.55, 3, 0]]
        )


class BelowZero(ro.Loss):
    name = "below-zero"

    @property
    def pieces(self) -> ro.PiecewiseQuadratic:
        return ro.PiecewiseQuadratic(knots=[0.0], coefficients=[[-0.25, -1, 0], [-0.25, 1, 0]])


# The oracle: nothing below computes with rposst_opt; it only reads a problem's data.


class Scenario(NamedTuple):
    results: list[float]
    target: float
    probability: float


class Answer(NamedTuple):
    """What the antagonist sees at some weights, and does."""

    errors: list[float]
    losses: list[float]
    slopes: list[float]
    weights: list[float]
    loss: float


class Round(NamedTuple):
    loss: float
    cases: tuple[int, ...]
    weights: list[float]
    regret_sum: float
    is_close_call: bool


@functools.cache
def tail_weight(measure: ro.Measure, tail: float) -> float:
    match measure:
        case ro.Mean():
            return tail
        case ro.WorstCase() | ro.CVaR(0):
            return 1.0 if tail > 0 else 0.0
        case ro.CVaR(tail_fraction):
            return min(tail / tail_fraction, 1.0)
        case ro.KOfN(k, n):
            hits = range(1, n + 1)
            return math.fsum(min(h, k) / k * math.comb(n, h) * tail**h * (1 - tail) ** (n - h) for h in hits)
        case ro.Mixture():
            return math.fsum(share * tail_weight(part, tail) for share, part in measure.parts)
        case SquareRoot():
            return math.sqrt(tail)
    raise NotImplementedError(measure)


def value_and_slope(loss: ro.Loss, error: float) -> tuple[float, float]:
    match loss:
        case ro.AbsoluteError():
            return abs(error), 1.0 if error > 0 else -1.0
        case ro.SquaredError():
            return error**2, 2 * error
        case ro.HuberError(threshold):
            if abs(error) <= threshold:
                return error**2 / 2, error
            return threshold * (abs(error) - threshold / 2), math.copysign(threshold, error)
        case ro.PinballError(quantile):
            return ((1 - quantile) * error, 1 - quantile) if error > 0 else (-quantile * error, -quantile)
        case ro.EpsilonInsensitiveError(tolerance):
            if error > tolerance:
                return error - tolerance, 1.0
            return (0.0, 0.0) if error > -tolerance else (-error - tolerance, -1.0)
        case FourPieces():
            if error <= 0:
                return (-0.5 * error, -0.5) if error > -0.3 else (-2 * error - 0.45, -2.0)
            return (0.25 * error, 0.25) if error <= 0.2 else (3 * error - 0.55, 3.0)
        case BelowZero():
            return abs(error) - 0.25, 1.0 if error > 0 else -1.0
    raise NotImplementedError(loss)


def kinks(loss: ro.Loss) -> list[float]:
    match loss:
        case ro.EpsilonInsensitiveError(tolerance):
            return [-tolerance, tolerance]
        case ro.SquaredError() | ro.HuberError():
            return []
        case FourPieces():
            return [-0.3, 0.0, 0.2]
    return [0.0]


def scenarios_of(problem: ro.Problem) -> list[Scenario]:
    scenarios = []
    for results, likelihoods in zip(problem.results.T.tolist(), problem.probabilities.tolist(), strict=True):
        for distribution, probability in zip(problem.targets.tolist(), likelihoods, strict=True):
            if probability > 0:
                target = sum(share * result for share, result in zip(distribution, results, strict=True))
                scenarios.append(Scenario(results, target, probability))
    return scenarios


def antagonist_weights(measure: ro.Measure, losses: Sequence[float], probabilities: Sequence[float]) -> list[float]:
    weights = [0.0] * len(losses)
    tail, before = 0.0, 0.0
    for scenario in sorted(range(len(losses)), key=lambda index: (-losses[index], index)):
        tail = min(tail + probabilities[scenario], 1.0)
        after = tail_weight(measure, tail)
        weights[scenario] = max(after - before, 0.0)
        before = after
    return weights


def antagonist_answer(
    problem: ro.Problem, scenarios: Sequence[Scenario], cases: Sequence[int], weights: Sequence[float]
) -> Answer:
    errors = [
        sum(weight * scenario.results[case] for weight, case in zip(weights, cases, strict=True)) - scenario.target
        for scenario in scenarios
    ]
    losses, slopes = map(list, zip(*(value_and_slope(problem.loss, error) for error in errors), strict=True))
    blame = antagonist_weights(problem.measure, losses, [scenario.probability for scenario in scenarios])
    return Answer(errors, losses, slopes, blame, sum(share * loss for share, loss in zip(blame, losses, strict=True)))


def is_close_call(
    problem: ro.Problem, scenarios: Sequence[Scenario], cases: Sequence[int], answer: Answer, regret_sum: float
) -> bool:
    """Whether rounding could turn this round: at a tie, at a kink, or when regrets all but vanish."""
    pulls = [
        [slope * (scenario.results[case] - scenario.results[cases[0]]) for case in cases]
        for slope, scenario in zip(answer.slopes, scenarios, strict=True)
    ]
    worst_first = sorted(range(len(scenarios)), key=lambda index: (-answer.losses[index], index))
    distances = [regret_sum] if regret_sum > 0 else []
    for worse, better in itertools.pairwise(worst_first):
        if answer.weights[worse] > 0 and pulls[worse] != pulls[better]:
            distances.append(answer.losses[worse] - answer.losses[better])
    for error, blame, scenario in zip(answer.errors, answer.weights, scenarios, strict=True):
        if blame > 0 and len({scenario.results[case] for case in cases}) > 1:
            distances.extend(abs(error - kink) for kink in kinks(problem.loss))
    return min(distances, default=math.inf) < CLOSE_CALL


def play(problem: ro.Problem, scenarios: Sequence[Scenario], cases: tuple[int, ...], rounds: int) -> Iterator[Round]:
    regrets = [0.0] * len(cases)
    for _ in range(rounds):
        regret_sum = sum(regrets)
        weights = [regret / regret_sum if regret_sum > 0 else 1 / len(cases) for regret in regrets]
        answer = antagonist_answer(problem, scenarios, cases, weights)
        turns_on_rounding = is_close_call(problem, scenarios, cases, answer, regret_sum)
        yield Round(answer.loss, cases, weights, regret_sum, turns_on_rounding)
        payoffs = [
            -sum(
                blame * slope * scenario.results[case]
                for blame, slope, scenario in zip(answer.weights, answer.slopes, scenarios, strict=True)
            )
            for case in cases
        ]
        average = sum(weight * payoff for weight, payoff in zip(weights, payoffs, strict=True))
        regrets = [max(regret + payoff - average, 0.0) for regret, payoff in zip(regrets, payoffs, strict=True)]


def algorithm_2(problem: ro.Problem, rounds: int) -> list[list[Round]]:
    """All rounds of all tuples."""
    scenarios = scenarios_of(problem)
    return [list(play(problem, scenarios, cases, rounds)) for cases in every_tuple(problem)]


def up_to_the_first_close_call(plays: Sequence[Sequence[Round]]) -> list[Sequence[Round]]:
    """The rounds before rounding could have turned any tuple's game, so that all correct programs agree on them."""
    close_calls = (number for game in plays for number, each in enumerate(game, start=1) if each.is_close_call)
    certain = min(close_calls, default=len(plays[0]))
    return [game[:certain] for game in plays]


def best_round(plays: Sequence[Sequence[Round]]) -> Round:
    return min(itertools.chain.from_iterable(plays), key=lambda each: each.loss)


def is_steady(problem: ro.Problem, played: Round, at: int) -> bool:
    """Whether this round's weights hardly move when all results do by their last bit: regrets near zero magnify it."""
    signs = np.where(np.indices(problem.results.shape).sum(axis=0) % 2, math.inf, -math.inf)
    nudged = replace(problem, results=np.nextafter(problem.results, signs))
    again = next(itertools.islice(play(nudged, scenarios_of(nudged), played.cases, at + 1), at, None))
    return float(np.abs(np.subtract(again.weights, played.weights)).max()) < 1e-11


class Bracket(NamedTuple):
    """Two numbers between which an optimum lies, the upper one reached by a test."""

    low: float
    high: float


def optimum_of_tuple(problem: ro.Problem, cases: tuple[int, ...]) -> Bracket:
    """Solve linear programs that know ever more tangents of the losses and ever more answers of the antagonist.

    The variables are the weights, the scenarios' losses and the objective. Every program is a relaxation, so its value
    bounds the optimum from below; the loss of its weights bounds it from above.
    """
    scenarios = scenarios_of(problem)
    n_weights, n_scenarios = len(cases), len(scenarios)
    results = np.array([[scenario.results[case] for case in cases] for scenario in scenarios])
    objective = np.zeros(n_weights + n_scenarios + 1)
    objective[-1] = 1.0
    on_the_simplex = np.zeros((1, len(objective)))
    on_the_simplex[0, :n_weights] = 1.0
    rows: list[np.ndarray] = []
    limits: list[float] = []

    def learn_from(weights: Sequence[float]) -> float:
        answer = antagonist_answer(problem, scenarios, cases, weights)
        for index, (error, loss, slope) in enumerate(zip(answer.errors, answer.losses, answer.slopes, strict=True)):
            tangent = np.zeros(len(objective))
            tangent[:n_weights] = slope * results[index]
            tangent[n_weights + index] = -1.0
            rows.append(tangent)
            limits.append(slope * (scenarios[index].target + error) - loss)
        rows.append(np.concatenate([np.zeros(n_weights), answer.weights, [-1.0]]))
        limits.append(0.0)
        return answer.loss

    high = min(learn_from(vertex) for vertex in np.eye(n_weights).tolist())
    low = -math.inf
    for _ in range(100):
        program = linear_program(
            objective,
            A_ub=np.array(rows),
            b_ub=limits,
            A_eq=on_the_simplex,
            b_eq=[1.0],
            bounds=[(0, None)] * n_weights + [(-1, None)] * (n_scenarios + 1),  # no loss here is below -1
        )
        low = max(low, program.fun)
        weights = np.maximum(program.x[:n_weights], 0.0)
        high = min(high, learn_from((weights / weights.sum()).tolist()))
        if high - low <= 1e-10:
            break
    assert high - low <= 1e-8  # HiGHS takes coefficients below 1e-9 for zero, and some of the antagonist's are
    return Bracket(low, high)


def optimum(problem: ro.Problem) -> Bracket:
    brackets = [optimum_of_tuple(problem, cases) for cases in every_tuple(problem)]
    return Bracket(min(low for low, _ in brackets), min(high for _, high in brackets))


def only_this_tuple(problem: ro.Problem, cases: tuple[int, ...]) -> ro.Problem:
    return ro.Problem(
        results=problem.results,
        size=1,
        measure=problem.measure,
        loss=problem.loss,
        targets=problem.targets,
        probabilities=problem.probabilities,
        required_cases=cases[1:],
        forbidden_cases=set(range(problem.n_cases)) - set(cases),
    )


def play_all(problem: ro.Problem, rounds: int, **options: Any) -> ro.Solution:
    return ro.solve(problem, "regret-matching", rounds=rounds, **options)


def answer_of(solution: ro.Solution) -> ro.EfficientTest:
    assert solution.test is not None
    return solution.test


RANDOM = np.random.default_rng(20230801)
REAL = RANDOM.random((5, 4))
BINARY = RANDOM.integers(0, 2, (5, 6)).astype(float)
TWO_TARGETS = RANDOM.dirichlet(np.ones(5), 2)
MANY_POLICIES = RANDOM.random((5, 32))

SHAPES: dict[str, dict[str, Any]] = {
    "ties": {"results": np.round(4 * REAL) / 4, "size": 2},
    "duplicate cases": {"results": REAL[[0, 1, 0, 2, 1]], "size": 2, "targets": TWO_TARGETS},
    "duplicate policies": {"results": REAL[:, [0, 1, 0, 1]], "size": 2, "targets": TWO_TARGETS},
    "one policy": {"results": REAL[:, :1], "size": 2, "targets": TWO_TARGETS},
    "one target": {"results": REAL, "size": 3, "targets": TWO_TARGETS[:1]},
    "one policy and one target": {"results": REAL[:, :1], "size": 2},
    "every case chosen": {"results": REAL, "size": 5, "targets": TWO_TARGETS},
    "size one": {"results": REAL, "size": 1, "targets": TWO_TARGETS},
    "required cases": {"results": REAL, "size": 2, "targets": TWO_TARGETS, "required_cases": [3, 1]},
    "forbidden cases": {"results": REAL, "size": 2, "targets": TWO_TARGETS, "forbidden_cases": [0]},
    "required and forbidden cases": {
        "results": REAL,
        "size": 1,
        "targets": TWO_TARGETS,
        "required_cases": [4],
        "forbidden_cases": [0, 2],
    },
    "unequal probabilities with zeros": {
        "results": REAL,
        "size": 2,
        "targets": TWO_TARGETS,
        "probabilities": np.array([[3, 0], [1, 1], [0, 0], [2, 4]]) / 11,
    },
    "constant results": {"results": np.full((5, 4), 0.25), "size": 2, "targets": TWO_TARGETS},
    "results of 0 and 1": {"results": BINARY, "size": 2},
    "results of 0 and 1 with two targets": {"results": BINARY, "size": 3, "targets": TWO_TARGETS},
    "many scenarios": {"results": MANY_POLICIES, "size": 1, "required_cases": [2], "targets": TWO_TARGETS},
    "many scenarios with unequal probabilities": {
        "results": MANY_POLICIES,
        "size": 1,
        "required_cases": [2],
        "targets": TWO_TARGETS,
        "probabilities": RANDOM.dirichlet(np.ones(64)).reshape(32, 2),
    },
    "results far from zero": {"results": 1000 + 10 * REAL, "size": 2, "targets": TWO_TARGETS},
    "negative results": {"results": -3 * REAL, "size": 2, "targets": TWO_TARGETS},
}
MEASURES: list[ro.Measure] = [
    ro.Mean(),
    ro.CVaR(0.3),
    ro.WorstCase(),
    ro.KOfN(2, 5),
    ro.Mixture([(0.9, ro.CVaR(0.1)), (0.1, ro.Mean())]),
    SquareRoot(),
]
LOSSES: list[ro.Loss] = [
    ro.AbsoluteError(),
    ro.SquaredError(),
    ro.HuberError(0.1),
    ro.PinballError(0.8),
    ro.EpsilonInsensitiveError(0.05),
    FourPieces(),
    BelowZero(),
]
UNEVEN = np.array([[3, 0], [1, 1], [0, 2], [2, 4]]) / 13

every_shape = pytest.mark.parametrize("shape", SHAPES)
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.name)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
equal_and_unequal_probabilities = pytest.mark.parametrize("probabilities", [None, UNEVEN], ids=["equal", "unequal"])


def make_problem(shape: str, **more: Any) -> ro.Problem:
    return ro.Problem(**{**SHAPES[shape], **more})


def larger_problem(seed: int, **more: Any) -> ro.Problem:
    random = np.random.default_rng(seed)
    results = random.random((14, 12))
    targets = random.dirichlet(np.ones(14), 3)
    arguments: dict[str, Any] = {"results": results, "targets": targets, "size": 3, "measure": ro.CVaR(0.1), **more}
    return ro.Problem(**arguments)


def assert_plays_algorithm_2(problem: ro.Problem, rounds: int) -> None:
    plays = up_to_the_first_close_call(algorithm_2(problem, rounds))
    solution = play_all(problem, rounds=len(plays[0]))
    scale = max(1.0, float(np.abs(problem.results).max()))
    assert solution.objective == pytest.approx(best_round(plays).loss, rel=0, abs=1e-9 * scale)


def assert_brackets(solution: ro.Solution, best: Bracket, scale: float = 1.0) -> None:
    assert solution.objective >= best.low - 1e-9 * scale
    assert solution.lower_bound <= best.high + 1e-12 * scale


def assert_same_answer(one: ro.Solution, other: ro.Solution) -> None:
    assert answer_of(one).cases == answer_of(other).cases
    assert answer_of(one).weights.tolist() == answer_of(other).weights.tolist()
    assert one.lower_bound == pytest.approx(other.lower_bound, rel=0, abs=1e-12)


@every_measure
@every_shape
def test_every_measure_is_played_as_in_the_pseudocode(shape: str, measure: ro.Measure) -> None:
    assert_plays_algorithm_2(make_problem(shape, measure=measure), rounds=20)


@every_loss
@every_shape
def test_every_loss_is_played_as_in_the_pseudocode(shape: str, loss: ro.Loss) -> None:
    assert_plays_algorithm_2(make_problem(shape, loss=loss, measure=ro.CVaR(0.4)), rounds=20)


@equal_and_unequal_probabilities
@every_measure
@every_loss
def test_every_measure_goes_with_every_loss(
    loss: ro.Loss, measure: ro.Measure, probabilities: np.ndarray | None
) -> None:
    problem = make_problem("forbidden cases", loss=loss, measure=measure, probabilities=probabilities)
    assert_plays_algorithm_2(problem, rounds=20)


@given(problems(most_cases=5), st.integers(1, 60))
def test_any_problem_is_played_as_in_the_pseudocode(problem: ro.Problem, rounds: int) -> None:
    assert_plays_algorithm_2(problem, rounds)


@given(problems(most_cases=5, kinds=["real"]), st.integers(1, 100))
def test_cases_and_weights_are_those_of_the_best_round(problem: ro.Problem, rounds: int) -> None:
    plays = up_to_the_first_close_call(algorithm_2(problem, rounds))
    best = best_round(plays)
    others = [each for each in itertools.chain.from_iterable(plays) if each[1:3] != best[1:3]]
    runner_up = min((each.loss for each in others), default=math.inf)
    assume(runner_up - best.loss > 1e-9)
    assume(is_steady(problem, best, at=next(game.index(best) for game in plays if best in game)))
    test = answer_of(play_all(problem, rounds=len(plays[0])))
    assert test.cases == best.cases
    assert test.weights.tolist() == pytest.approx(best.weights, rel=0, abs=1e-9)


def problem_in_quarters(
    seed: int, n_policies: int, measure: ro.Measure, loss: ro.Loss | None = None, step: int = 1
) -> ro.Problem:
    """Four cases against a fifth: rounding touches none of the first round's losses, so its many ties are exact."""
    quarters = np.random.default_rng(seed).integers(0, 5, (5, n_policies)) / 4
    return ro.Problem(
        results=quarters[:, ::step],
        size=4,
        targets=[[0, 0, 0, 0, 1]],
        forbidden_cases=[4],
        measure=measure,
        loss=loss,
    )


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([2, 4, 8, 16]),
    st.sampled_from(MEASURES),
    st.sampled_from([ro.AbsoluteError(), ro.PinballError(0.75), ro.EpsilonInsensitiveError(0.25), BelowZero()]),
)
def test_exact_ties_and_kinks_are_decided_as_in_the_pseudocode(
    seed: int, n_policies: int, measure: ro.Measure, loss: ro.Loss
) -> None:
    problem = problem_in_quarters(seed, n_policies, measure, loss)
    plays = algorithm_2(problem, rounds=2)
    assume(all(second.regret_sum > CLOSE_CALL for _, second in plays))
    assert play_all(problem, rounds=2).objective == pytest.approx(best_round(plays).loss, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    ("measure", "n_policies", "seed"),
    [
        (ro.WorstCase(), 4, 1),
        (ro.CVaR(0.3), 8, 1),
        (ro.KOfN(2, 5), 4, 1),
        (ro.KOfN(2, 5), 8, 5),
        (ro.KOfN(2, 5), 64, 3),
        (SquareRoot(), 64, 34),
    ],
)
def test_the_order_of_the_policies_decides_ties(measure: ro.Measure, n_policies: int, seed: int) -> None:
    forwards = problem_in_quarters(seed, n_policies, measure)
    backwards = problem_in_quarters(seed, n_policies, measure, step=-1)
    expected = [best_round(algorithm_2(problem, rounds=2)).loss for problem in (forwards, backwards)]
    assert abs(expected[0] - expected[1]) > 1e-6
    assert [play_all(problem, rounds=2).objective for problem in (forwards, backwards)] == pytest.approx(
        expected, rel=0, abs=1e-12
    )


def test_the_first_of_tied_scenarios_is_taken_for_the_worst() -> None:
    problem = ro.Problem(
        results=[
            [0.0, 0.75, 1.0, 0.0],
            [0.25, 0.0, 0.75, 0.25],
            [0.0, 1.0, 0.0, 1.0],
            [1.0, 0.0, 0.75, 0.5],
            [0.25, 0.75, 0.5, 0.75],
        ],
        size=4,
        targets=[[0, 0, 0, 0, 1]],
        forbidden_cases=[4],
        measure=ro.WorstCase(),
    )
    assert play_all(problem, rounds=1).objective == 0.3125
    assert play_all(problem, rounds=2).objective == pytest.approx(0.25, rel=0, abs=1e-12)


def test_the_left_slope_is_taken_at_a_kink() -> None:
    problem = ro.Problem(
        results=[
            [0.5, 0.25, 0.5, 0.5],
            [0.25, 0.75, 0.0, 0.0],
            [0.0, 0.75, 1.0, 0.75],
            [0.25, 0.5, 0.5, 0.0],
            [0.25, 0.0, 0.75, 1.0],
        ],
        size=4,
        targets=[[0, 0, 0, 0, 1]],
        forbidden_cases=[4],
        measure=ro.Mean(),
    )
    assert play_all(problem, rounds=1).objective == 0.375
    assert play_all(problem, rounds=2).objective == pytest.approx(0.2375, rel=0, abs=1e-12)


def test_the_first_of_tied_rounds_is_kept() -> None:
    problem = ro.Problem(results=[[0.0], [1.0]], size=2, targets=[[0.25, 0.75]])
    solution = play_all(problem, rounds=2)  # the second round has all its weight on the second case
    assert solution.objective == 0.25
    assert answer_of(solution).weights.tolist() == [0.5, 0.5]


def test_the_first_of_tied_tuples_is_kept() -> None:
    alike = ro.Problem(results=np.full((4, 2), 0.5), size=2, required_cases=[1])
    assert answer_of(play_all(alike, rounds=10)).cases == (0, 1, 2)
    results = np.zeros((1000, 1))
    results[100:] = 0.5
    good_from_100_on = ro.Problem(results=results, size=1, targets=results.T / results.sum())
    for threads in (1, 2, 3):
        assert answer_of(play_all(good_from_100_on, rounds=1, threads=threads)).cases == (100,)


@given(problems(most_cases=5))
def test_every_tuple_alone_comes_as_close_to_its_optimum_as_the_corollary_promises(problem: ro.Problem) -> None:
    for cases in every_tuple(problem):
        alone = only_this_tuple(problem, cases)
        best = optimum_of_tuple(problem, cases)
        solution = play_all(alone, rounds=100)
        promised = ro.regret_matching_gap(alone, rounds=100)
        assert_brackets(solution, best)
        assert solution.objective <= best.high + promised + 1e-9
        assert solution.gap <= promised + 1e-9


@given(problems(most_cases=5), st.integers(1, 200))
def test_the_answer_comes_as_close_to_the_optimum_as_the_corollary_promises(problem: ro.Problem, rounds: int) -> None:
    best = optimum(problem)
    for prune in (True, False):
        solution = play_all(problem, rounds, prune=prune)
        promised = ro.regret_matching_gap(problem, rounds)
        assert_brackets(solution, best)
        assert solution.objective <= best.high + promised + 1e-9
        assert solution.gap <= promised + 1e-9
    assert_brackets(play_all(problem, rounds, gap=0.1), best)
    assert_brackets(play_all(problem, rounds, time_limit_seconds=0), best)


@pytest.mark.slow
@every_shape
@pytest.mark.parametrize("loss", [ro.AbsoluteError(), ro.HuberError(0.1), BelowZero()], ids=lambda loss: loss.name)
def test_the_bounds_hold_in_every_shape_of_problem(shape: str, loss: ro.Loss) -> None:
    problem = make_problem(shape, loss=loss, measure=ro.KOfN(2, 5))
    best = optimum(problem)
    solution = play_all(problem, rounds=300)
    scale = max(1.0, float(np.abs(problem.results).max()))
    assert_brackets(solution, best, scale)
    assert solution.objective <= best.high + ro.regret_matching_gap(problem, rounds=300) + 1e-9 * scale
    assert_brackets(play_all(problem, rounds=300, time_limit_seconds=0), best, scale)


@pytest.mark.slow
@equal_and_unequal_probabilities
@every_measure
@pytest.mark.parametrize("loss", [ro.SquaredError(), ro.HuberError(0.1), FourPieces()], ids=lambda loss: loss.name)
def test_two_cases_come_close_to_the_best_weights_on_a_fine_grid(
    loss: ro.Loss, measure: ro.Measure, probabilities: np.ndarray | None
) -> None:
    problem = make_problem("forbidden cases", loss=loss, measure=measure, probabilities=probabilities, size=2)
    scenarios = scenarios_of(problem)
    shares = [step / 200 for step in range(201)]
    on_the_grid = min(
        antagonist_answer(problem, scenarios, cases, [share, 1 - share]).loss
        for cases in every_tuple(problem)
        for share in shares
    )
    solution = play_all(problem, rounds=2000)
    steepest = max(abs(value_and_slope(loss, error)[1]) for error in (-1.0, 1.0))
    between_grid_points = steepest * float(np.ptp(problem.results, axis=0).max()) / 400
    assert solution.lower_bound <= on_the_grid + 1e-12
    assert solution.objective >= on_the_grid - between_grid_points
    assert solution.objective <= on_the_grid + ro.regret_matching_gap(problem, rounds=2000)


@pytest.mark.parametrize("tail_fraction", [0.05, 0.3, 1.0])
def test_the_oracle_agrees_with_the_textbook_linear_program_for_cvar(tail_fraction: float) -> None:
    problem = make_problem("unequal probabilities with zeros", measure=ro.CVaR(tail_fraction))
    scenarios = scenarios_of(problem)
    n_scenarios = len(scenarios)
    for cases in every_tuple(problem):
        n_weights = len(cases)
        excess_rows = [
            [sign * scenario.results[case] for case in cases]
            + [-1.0]
            + [-float(own == other) for other in range(n_scenarios)]
            for own, scenario in enumerate(scenarios)
            for sign in (1, -1)
        ]
        program = linear_program(
            [0.0] * n_weights + [1.0] + [scenario.probability / tail_fraction for scenario in scenarios],
            A_ub=excess_rows,
            b_ub=[sign * scenario.target for scenario in scenarios for sign in (1, -1)],
            A_eq=[[1.0] * n_weights + [0.0] * (n_scenarios + 1)],
            b_eq=[1.0],
            bounds=[(0, None)] * n_weights + [(None, None)] + [(0, None)] * n_scenarios,
        )
        assert optimum_of_tuple(problem, cases).high == pytest.approx(program.fun, rel=0, abs=1e-9)


@given(problems(), st.integers(1, 100))
def test_pruning_changes_neither_the_answer_nor_the_bound(problem: ro.Problem, rounds: int) -> None:
    assert_same_answer(play_all(problem, rounds, prune=True), play_all(problem, rounds, prune=False))


@pytest.mark.slow
@every_measure
@pytest.mark.parametrize("seed", range(3))
def test_pruning_saves_rounds_of_larger_problems_without_changing_the_answer(measure: ro.Measure, seed: int) -> None:
    problem = larger_problem(seed, measure=measure)
    pruned, full = play_all(problem, rounds=300), play_all(problem, rounds=300, prune=False)
    assert_same_answer(pruned, full)
    assert pruned.stats.rounds < full.stats.rounds == 300 * problem.n_tuples
    assert pruned.stats.tuples == full.stats.tuples == problem.n_tuples


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize(
    "problem",
    [larger_problem(7), larger_problem(8, results=np.round(np.random.default_rng(8).random((14, 12))), targets=None)],
    ids=["real", "binary"],
)
def test_the_number_of_threads_does_not_change_the_answer(problem: ro.Problem, prune: bool) -> None:
    one, two, three = (play_all(problem, rounds=100, prune=prune, threads=threads) for threads in (1, 2, 3))
    assert_same_answer(one, two)
    assert_same_answer(one, three)


@given(problems())
def test_more_rounds_never_make_the_objective_worse(problem: ro.Problem) -> None:
    objectives = [play_all(problem, rounds).objective for rounds in (1, 2, 3, 5, 10, 30, 100)]
    assert all(later <= earlier + 1e-12 for earlier, later in itertools.pairwise(objectives))


@pytest.mark.parametrize("seed", range(5))
def test_a_gap_that_was_asked_for_is_reached_with_less_work(seed: int) -> None:
    random = np.random.default_rng(seed)
    problem = larger_problem(seed, results=random.integers(0, 2, (14, 12)))
    # By one thread: how much several of them can pass over depends on who finds a good test first.
    content = play_all(problem, rounds=5000, gap=0.1, threads=1)
    eager = play_all(problem, rounds=5000, threads=1)
    assert ro.regret_matching_gap(problem, rounds=5000) <= 0.1
    assert content.gap <= 0.1 + 1e-9
    assert content.lower_bound <= eager.objective
    assert content.objective <= eager.objective + 0.1
    assert content.stats.rounds < eager.stats.rounds


def test_a_time_limit_of_zero_still_gives_a_test_and_a_bound() -> None:
    random = np.random.default_rng(4)
    targets = np.zeros((1, 60))
    targets[0, :2] = 0.5
    problem = ro.Problem(
        results=random.random((60, 30)), size=4, measure=ro.WorstCase(), targets=targets, forbidden_cases=[0, 1]
    )
    stopped = play_all(problem, rounds=2000, prune=False, time_limit_seconds=0)
    assert stopped.limit is ro.Limit.TIME
    assert stopped.status is ro.Status.FEASIBLE
    assert stopped.stats.tuples < problem.n_tuples
    assert problem.why_not(answer_of(stopped)) is None
    better = play_all(problem, rounds=100, time_limit_seconds=0.5)
    assert 0 <= stopped.lower_bound <= better.objective <= stopped.objective


def test_a_time_limit_is_kept_within_seconds_when_rounds_and_scenarios_are_many() -> None:
    problem = larger_problem(3, targets=np.random.default_rng(3).dirichlet(np.ones(14), 100))
    stopped = play_all(problem, rounds=200_000, prune=False, time_limit_seconds=0.1)
    assert stopped.limit is ro.Limit.TIME
    assert stopped.lower_bound <= play_all(problem, rounds=50).objective
    assert stopped.seconds < 5


def test_more_tuples_than_a_machine_integer_can_count_are_no_obstacle() -> None:
    random = np.random.default_rng(6)
    problem = ro.Problem(results=random.random((1000, 10)), size=20)
    assert problem.n_tuples > 2**64
    stopped = play_all(problem, rounds=20, time_limit_seconds=0.1)
    assert stopped.limit is ro.Limit.TIME
    assert problem.why_not(answer_of(stopped)) is None


@pytest.mark.parametrize("tiny", [1e-13, 5e-16, 1e-17, 1e-20, 1e-300])
@pytest.mark.parametrize(
    "measure",
    [ro.WorstCase(), ro.CVaR(0.0), ro.CVaR(1e-15), ro.Mixture([(0.5, ro.WorstCase()), (0.5, ro.Mean())]), SquareRoot()],
    ids=["worst", "cvar 0", "cvar 1e-15", "mixture", "square-root"],
)
def test_a_scenario_counts_however_unlikely_it_is(measure: ro.Measure, tiny: float) -> None:
    problem = ro.Problem(
        results=[[1.0, 0.5, 0.5, 0.5], [0.0, 0.4, 0.6, 0.5], [0.2, 0.3, 0.9, 0.1]],
        size=2,
        measure=measure,
        probabilities=np.array([[tiny], [0.5], [0.3], [0.2]]),
    )
    best = optimum(problem)
    solution = play_all(problem, rounds=300)
    assert_brackets(solution, best)
    assert solution.objective <= best.high + ro.regret_matching_gap(problem, rounds=300) + 1e-9


MEMORY_SCRIPT = """
import resource, sys
import numba, numpy as np, pandas, scipy.special
import rposst_opt as ro

def problem(n_cases, n_policies):
    random = np.random.default_rng(0)
    results = random.random((n_cases, n_policies))
    return ro.Problem(results=results, size=3, targets=ro.softmax_targets(results, betas=(0, 1, 2, 4)))

ro.solve(problem(4, 4), "regret-matching", rounds=10)
if sys.argv[1] == "large":
    solution = ro.solve(problem(500, 400), "regret-matching", time_limit_seconds=3)
    assert solution.limit is ro.Limit.TIME and solution.test is not None
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_megabytes(size: str) -> float:
    run = subprocess.run([sys.executable, "-c", MEMORY_SCRIPT, size], capture_output=True, text=True, check=True)
    kilobytes_or_bytes = int(run.stdout)
    return kilobytes_or_bytes / (1024**2 if sys.platform == "darwin" else 1024)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the resource module is for Unix")
def test_a_large_problem_needs_little_memory() -> None:
    play_all(larger_problem(0), rounds=10)
    assert peak_megabytes("large") < peak_megabytes("tiny") + 200


def test_a_single_tuple_that_is_cut_short_tells_of_the_time_limit() -> None:
    problem = ro.Problem(results=np.random.default_rng(8).random((4, 50)), size=4)
    stopped = ro.solve(problem, "regret-matching", rounds=10**9, time_limit_seconds=0.2)
    assert stopped.limit is ro.Limit.TIME
    assert stopped.stats.rounds < 10**9
    assert stopped.lower_bound <= stopped.objective
