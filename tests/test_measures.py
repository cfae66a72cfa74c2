import json
import math
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import chain, combinations, pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import distributions, measures

import rposst_opt as ro
from rposst_opt.arrays import FloatArray
from rposst_opt.measures import TailTable, tabulate

CLOSE = 1e-10  # losses stay below 10 and no tail weight is steeper than 1000, so rounding is a hundred times smaller


class SquareRoot(ro.Measure):
    """A measure that the package does not know."""

    name = "square-root"

    def tail_weight(self, tail: FloatArray) -> FloatArray:
        return np.sqrt(tail)


any_measure = measures() | st.just(SquareRoot())
some_losses = st.integers(-8, 8).map(lambda quarters: quarters / 4) | st.floats(-10, 10)

SMOOTH_AND_SHARP = [
    ro.Mean(),
    ro.CVaR(0.3),
    ro.CVaR(0.01),
    ro.CVaR(1e-6),
    ro.CVaR(0.0),
    ro.WorstCase(),
    ro.KOfN(1, 1),
    ro.KOfN(3, 7),
    ro.KOfN(7, 7),
    ro.KOfN(1, 1000),
    ro.KOfN(30, 1000),
    ro.KOfN(500, 1000),
    ro.Mixture([(0.95, ro.CVaR(0.01)), (0.05, ro.Mean())]),
    ro.Mixture([(0.5, ro.WorstCase()), (0.3, ro.KOfN(3, 100)), (0.2, ro.CVaR(0.1))]),
]


@st.composite
def outcomes(draw: st.DrawFn, *, most: int = 8, vectors: int = 1) -> tuple[FloatArray, ...]:
    """As many vectors of losses as asked for, and the probabilities of their scenarios."""
    size = draw(st.integers(1, most))
    losses = [np.array(draw(st.lists(some_losses, min_size=size, max_size=size))) for _ in range(vectors)]
    return *losses, draw(distributions(size))


def weights_in_order(measure: ro.Measure, order: Iterable[int], probabilities: FloatArray) -> FloatArray:
    """The increments of the tail weight when scenarios are taken in this order: a corner of the risk envelope."""
    weights = np.zeros(len(probabilities))
    before = taken = 0.0
    for scenario in order:
        taken = min(taken + float(probabilities[scenario]), 1.0)
        after = float(measure.tail_weight(np.array([taken]))[0])
        weights[scenario] = after - before
        before = after
    return weights


def mean_of_worst(losses: FloatArray, probabilities: FloatArray, tail_fraction: float) -> float:
    if tail_fraction == 0:
        return float(losses[probabilities > 0].max())
    total, left = 0.0, tail_fraction
    for loss, probability in sorted(zip(losses.tolist(), probabilities.tolist(), strict=True), reverse=True):
        taken = min(probability, left)
        total, left = total + taken * loss, left - taken
    return total / tail_fraction


def k_of_n_tail_weight(k: int, n: int, tail: Fraction) -> Fraction:
    """(1/k) Σ_{i=1..k} P[Binomial(n, tail) >= i], in whole numbers over one denominator."""
    inside, outside = tail.numerator, tail.denominator - tail.numerator
    exactly = [math.comb(n, i) * inside**i * outside ** (n - i) for i in range(n + 1)]
    at_least = sum(exactly)
    total = 0
    for i in range(1, k + 1):
        at_least -= exactly[i - 1]
        total += at_least
    return Fraction(total, k * tail.denominator**n)


def contains_k_of_n(measure: ro.Measure) -> bool:
    if isinstance(measure, ro.Mixture):
        return any(contains_k_of_n(part) for _, part in measure.parts)
    return isinstance(measure, ro.KOfN)


def read_table(table: TailTable, tails: FloatArray) -> FloatArray:
    cells = np.clip(np.searchsorted(table.edges, tails, side="left") - 1, 0, len(table.coefficients) - 1)
    places = (tails - table.edges[cells]) / (table.edges[cells + 1] - table.edges[cells])
    powers = places[:, None] ** np.arange(table.coefficients.shape[1])
    return np.asarray((table.coefficients[cells] * powers).sum(axis=1))


# What makes a measure coherent.


@given(any_measure, outcomes(vectors=2))
def test_larger_losses_never_have_a_smaller_value(measure: ro.Measure, given_outcomes: tuple[FloatArray, ...]) -> None:
    losses, others, probabilities = given_outcomes
    larger = np.maximum(losses, others)
    assert measure.value(losses, probabilities) <= measure.value(larger, probabilities) + CLOSE


@given(any_measure, outcomes(), st.floats(-10, 10))
def test_a_constant_added_to_all_losses_is_added_to_the_value(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...], constant: float
) -> None:
    losses, probabilities = given_outcomes
    shifted = measure.value(losses + constant, probabilities)
    assert shifted == pytest.approx(measure.value(losses, probabilities) + constant, abs=CLOSE)


@given(any_measure, outcomes(), st.floats(0, 10))
def test_a_factor_of_all_losses_is_a_factor_of_the_value(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...], factor: float
) -> None:
    losses, probabilities = given_outcomes
    scaled = measure.value(factor * losses, probabilities)
    assert scaled == pytest.approx(factor * measure.value(losses, probabilities), abs=CLOSE)


@given(any_measure, outcomes(vectors=2), st.floats(0, 1))
def test_the_value_is_convex_in_the_losses(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...], share: float
) -> None:
    losses, others, probabilities = given_outcomes
    between = measure.value(share * losses + (1 - share) * others, probabilities)
    chord = share * measure.value(losses, probabilities) + (1 - share) * measure.value(others, probabilities)
    assert between <= chord + CLOSE


@given(any_measure, outcomes())
def test_the_value_lies_between_the_mean_and_the_maximum(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...]
) -> None:
    losses, probabilities = given_outcomes
    value = measure.value(losses, probabilities)
    assert float(losses @ probabilities) - CLOSE <= value <= losses[probabilities > 0].max() + CLOSE


@given(any_measure, outcomes(vectors=2))
def test_losses_that_rank_the_scenarios_alike_have_values_that_add_up(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...]
) -> None:
    losses, others, probabilities = given_outcomes
    alike = np.empty_like(others)
    alike[np.argsort(losses, kind="stable")] = np.sort(others)
    together = measure.value(losses + alike, probabilities)
    apart = measure.value(losses, probabilities) + measure.value(alike, probabilities)
    assert together == pytest.approx(apart, abs=CLOSE)


@given(any_measure, outcomes(), st.randoms(use_true_random=False))
def test_the_order_of_the_scenarios_does_not_matter(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...], random: Random
) -> None:
    losses, probabilities = given_outcomes
    order = list(range(len(losses)))
    random.shuffle(order)
    shuffled = measure.value(losses[order], probabilities[order])
    assert shuffled == pytest.approx(measure.value(losses, probabilities), abs=CLOSE)


@given(any_measure, outcomes(), st.integers(0, 7))
def test_a_scenario_split_into_two_halves_counts_as_before(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...], position: int
) -> None:
    losses, probabilities = given_outcomes
    split = position % len(losses)
    halved = np.append(probabilities, probabilities[split] / 2)
    halved[split] /= 2
    assert measure.value(np.append(losses, losses[split]), halved) == pytest.approx(
        measure.value(losses, probabilities), abs=CLOSE
    )


# The antagonist's weights.


@given(any_measure, outcomes())
def test_the_weights_are_a_distribution_and_give_the_value(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...]
) -> None:
    losses, probabilities = given_outcomes
    weights = measure.weights(losses, probabilities)
    assert weights.shape == losses.shape
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert measure.value(losses, probabilities) == pytest.approx(math.fsum(weights * losses), abs=CLOSE)


@pytest.mark.parametrize("measure", SMOOTH_AND_SHARP, ids=repr)
def test_the_weights_of_many_unlikely_scenarios_are_a_distribution_too(measure: ro.Measure) -> None:
    rng = np.random.default_rng(5)
    weights = measure.weights(rng.random(20_000), rng.dirichlet(np.ones(20_000)))
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-12)


@given(any_measure, outcomes(most=6))
def test_the_weights_lie_in_the_risk_envelope(measure: ro.Measure, given_outcomes: tuple[FloatArray, ...]) -> None:
    losses, probabilities = given_outcomes
    weights = measure.weights(losses, probabilities)
    everyone = range(len(losses))
    for subset in chain.from_iterable(combinations(everyone, count) for count in range(len(losses) + 1)):
        chosen = list(subset)
        allowed = measure.tail_weight(np.array([min(math.fsum(probabilities[chosen]), 1.0)]))[0]
        assert weights[chosen].sum() <= allowed + 1e-12


@given(any_measure, outcomes(), st.integers(0, 2**32 - 1))
def test_no_member_of_the_risk_envelope_costs_more_than_the_weights(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...], seed: int
) -> None:
    losses, probabilities = given_outcomes
    rng = np.random.default_rng(seed)
    corners = [weights_in_order(measure, rng.permutation(len(losses)).tolist(), probabilities) for _ in range(3)]
    member = rng.dirichlet(np.ones(3)) @ np.array(corners)
    assert member @ losses <= measure.value(losses, probabilities) + CLOSE


@given(any_measure, outcomes())
def test_equally_bad_scenarios_are_weighed_in_the_order_in_which_they_are_given(
    measure: ro.Measure, given_outcomes: tuple[FloatArray, ...]
) -> None:
    _, probabilities = given_outcomes
    alike = np.full(len(probabilities), 0.25)
    in_order = weights_in_order(measure, range(len(alike)), probabilities)
    np.testing.assert_allclose(measure.weights(alike, probabilities), in_order, atol=CLOSE)


@given(any_measure, st.integers(1, 30))
def test_rank_weights_are_those_of_descending_losses(measure: ro.Measure, n_scenarios: int) -> None:
    descending = np.arange(n_scenarios, 0.0, -1)
    even = np.full(n_scenarios, 1 / n_scenarios)
    in_order = weights_in_order(measure, range(n_scenarios), even)
    np.testing.assert_allclose(measure.rank_weights(n_scenarios), in_order, atol=CLOSE)
    np.testing.assert_allclose(measure.weights(descending, even), in_order, atol=CLOSE)


# Measures that are each other's special cases.


@given(outcomes())
def test_the_mean_has_four_names(given_outcomes: tuple[FloatArray, ...]) -> None:
    losses, probabilities = given_outcomes
    mean = math.fsum(losses * probabilities)
    for measure in (ro.Mean(), ro.CVaR(1), ro.KOfN(5, 5), ro.KOfN(1, 1), ro.KOfN(1000, 1000)):
        assert measure.value(losses, probabilities) == pytest.approx(mean, abs=CLOSE)


@given(outcomes(), st.floats(0, 1))
def test_a_tail_smaller_than_any_scenario_is_the_worst_case(
    given_outcomes: tuple[FloatArray, ...], share: float
) -> None:
    losses, probabilities = given_outcomes
    least = float(probabilities[probabilities > 0].min())
    worst = losses[probabilities > 0].max()
    for measure in (ro.WorstCase(), ro.CVaR(0), ro.CVaR(share * least), ro.CVaR(least)):
        assert measure.value(losses, probabilities) == pytest.approx(worst, abs=CLOSE)


@given(outcomes(), st.floats(0.001, 1))
def test_cvar_is_the_mean_of_the_worst_outcomes(given_outcomes: tuple[FloatArray, ...], tail_fraction: float) -> None:
    losses, probabilities = given_outcomes
    value = ro.CVaR(tail_fraction).value(losses, probabilities)
    assert value == pytest.approx(mean_of_worst(losses, probabilities, tail_fraction), abs=CLOSE)


@given(outcomes(), measures(), measures(), st.floats(0.01, 0.99))
def test_a_mixture_is_the_average_of_its_parts(
    given_outcomes: tuple[FloatArray, ...], first: ro.Measure, second: ro.Measure, share: float
) -> None:
    losses, probabilities = given_outcomes
    mixture = ro.Mixture([(share, first), (1 - share, second)])
    average = share * first.value(losses, probabilities) + (1 - share) * second.value(losses, probabilities)
    assert mixture.value(losses, probabilities) == pytest.approx(average, abs=CLOSE)


def test_a_mixture_of_shares_that_miss_one_by_rounding_still_has_a_total_weight_of_one() -> None:
    for miss in (9e-10, -9e-10):
        mixture = ro.Mixture([(0.5, ro.Mean()), (0.5 + miss, ro.CVaR(0.1))])
        even = np.full(4, 0.25)
        cvars = mixture.cvar_mixture(even)
        assert cvars is not None
        assert mixture.tail_weight(np.ones(1))[0] == pytest.approx(1, abs=1e-15)
        assert mixture.weights(np.arange(4.0), even).sum() == pytest.approx(1, abs=1e-12)
        assert cvars.shares.sum() == pytest.approx(1, abs=1e-12)


@given(outcomes(), st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))))
def test_k_of_n_tends_to_cvar_from_below(given_outcomes: tuple[FloatArray, ...], draw_sizes: tuple[int, int]) -> None:
    losses, probabilities = given_outcomes
    k, n = draw_sizes
    limit = ro.CVaR(k / n).value(losses, probabilities)
    distances = [limit - ro.KOfN(k * r, n * r).value(losses, probabilities) for r in (1, 2, 4, 16, 64, 256, 1024)]
    assert min(distances) >= -CLOSE
    assert all(later <= earlier + CLOSE for earlier, later in pairwise(distances))
    assert distances[-1] <= np.ptp(losses) * math.sqrt(n / k / (n * 1024)) + CLOSE


# Exactness of k-of-N.


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))),
    st.integers(0, 2**20).map(lambda numerator: Fraction(numerator, 2**20)),
)
def test_k_of_n_is_an_exact_sum_of_binomial_tails(draw_sizes: tuple[int, int], tail: Fraction) -> None:
    k, n = draw_sizes
    tail_weight = ro.KOfN(k, n).tail_weight(np.array([float(tail)]))[0]
    assert tail_weight == pytest.approx(float(k_of_n_tail_weight(k, n, tail)), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 10, 30, 500, 999, 1000])
def test_k_of_a_thousand_is_an_exact_sum_of_binomial_tails(k: int) -> None:
    tails = [Fraction(numerator, 1024) for numerator in (0, 1, 10, 31, 100, 512, 1023, 1024)]
    exact = [float(k_of_n_tail_weight(k, 1000, tail)) for tail in tails]
    tail_weights = ro.KOfN(k, 1000).tail_weight(np.array([float(tail) for tail in tails]))
    np.testing.assert_allclose(tail_weights, exact, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("k", "n", "plays"), [(1, 1, 200_000), (1, 5, 200_000), (2, 5, 200_000), (5, 5, 200_000), (3, 20, 100_000)]
)
def test_k_of_n_is_what_playing_the_game_pays_on_average(k: int, n: int, plays: int) -> None:
    assert_playing_the_game_pays_the_value(k, n, plays)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "n", "plays"), [(1, 100, 50_000), (10, 100, 50_000), (30, 1000, 10_000)])
def test_k_of_many_is_what_playing_the_game_pays_on_average(k: int, n: int, plays: int) -> None:
    assert_playing_the_game_pays_the_value(k, n, plays)


def assert_playing_the_game_pays_the_value(k: int, n: int, plays: int) -> None:
    rng = np.random.default_rng(20230815)
    losses = np.array([0.9, 0.1, 0.4, 0.4, 0.75, 0.0, 0.2])
    probabilities = np.array([0.01, 0.3, 0.05, 0.15, 0.09, 0.35, 0.05])
    drawn = rng.choice(losses, p=probabilities, size=(plays, n))
    payoffs = np.partition(drawn, n - k, axis=1)[:, n - k :].mean(axis=1)
    standard_error = payoffs.std(ddof=1) / math.sqrt(plays)
    assert abs(payoffs.mean() - ro.KOfN(k, n).value(losses, probabilities)) <= 5 * standard_error


# The tail weight itself.


@pytest.mark.parametrize("measure", SMOOTH_AND_SHARP, ids=repr)
def test_a_tail_weight_rises_from_zero_to_one_and_is_concave(measure: ro.Measure) -> None:
    grid = np.linspace(0, 1, 2001)
    ladder = measure.tail_weight(grid)
    assert ladder[0] == 0
    assert ladder[-1] == pytest.approx(1, abs=1e-15)
    assert np.diff(ladder).min() >= -1e-13
    assert np.diff(ladder, 2).max() <= 2e-13
    assert (ladder >= grid - 1e-13).all()


@given(any_measure, st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_a_tail_weight_lies_above_its_chords(measure: ro.Measure, tails: list[float]) -> None:
    left, middle, right = sorted(tails)
    if left == right:
        return
    share = (right - middle) / (right - left)
    at_left, at_middle, at_right = measure.tail_weight(np.array([left, middle, right]))
    assert at_middle >= share * at_left + (1 - share) * at_right - 1e-12


@given(measures(), st.integers(1, 10).flatmap(distributions), st.integers(0, 2**32 - 1))
def test_a_mixture_of_cvars_gives_the_same_value(measure: ro.Measure, probabilities: FloatArray, seed: int) -> None:
    mixture = measure.cvar_mixture(probabilities)
    unequal = len(set(probabilities.tolist())) > 1
    assert (mixture is None) == (unequal and contains_k_of_n(measure))
    if mixture is None:
        return
    assert (mixture.shares >= 0).all()
    assert mixture.shares.sum() == pytest.approx(1, abs=1e-12)
    losses = np.random.default_rng(seed).normal(size=len(probabilities))
    cvars = [mean_of_worst(losses, probabilities, float(fraction)) for fraction in mixture.tail_fractions]
    assert mixture.shares @ np.array(cvars) == pytest.approx(measure.value(losses, probabilities), abs=CLOSE)


def test_a_measure_of_ones_own_is_a_mixture_of_cvars_only_if_scenarios_are_equally_likely() -> None:
    losses = np.array([0.3, 0.9, 0.1, 0.5])
    mixture = SquareRoot().cvar_mixture(np.full(4, 0.25))
    assert mixture is not None
    cvars = [mean_of_worst(losses, np.full(4, 0.25), float(fraction)) for fraction in mixture.tail_fractions]
    assert mixture.shares @ np.array(cvars) == pytest.approx(SquareRoot().value(losses, np.full(4, 0.25)), abs=CLOSE)
    assert SquareRoot().cvar_mixture(np.array([0.2, 0.2, 0.2, 0.4])) is None


def random_tails(seed: int, smallest: float) -> FloatArray:
    """Positive ones: a table is for the tails of scenarios, and those have a probability."""
    rng = np.random.default_rng(seed)
    return np.concatenate([[smallest, 1.0], rng.random(5000), 10 ** rng.uniform(math.log10(smallest), 0, 5000)])


@pytest.mark.parametrize("measure", SMOOTH_AND_SHARP, ids=repr)
def test_the_table_for_compiled_code_agrees_with_the_tail_weight(measure: ro.Measure) -> None:
    tails = random_tails(seed=1, smallest=1e-14)
    table = tabulate(measure.tail_weight)
    assert table.edges[0] == 0 and table.edges[-1] == 1
    assert (np.diff(table.edges) > 0).all()
    assert table.coefficients.shape[0] == len(table.edges) - 1
    np.testing.assert_allclose(read_table(table, tails), measure.tail_weight(tails), rtol=0, atol=1e-13)


@pytest.mark.parametrize("tail_fraction", [0.3, 0.01])
def test_the_table_agrees_close_to_a_kink_too(tail_fraction: float) -> None:
    tails = tail_fraction * (1 + np.linspace(-1e-13, 1e-13, 2001))
    table = tabulate(ro.CVaR(tail_fraction).tail_weight)
    np.testing.assert_allclose(read_table(table, tails), ro.CVaR(tail_fraction).tail_weight(tails), rtol=0, atol=1e-13)


def test_the_table_of_the_worst_case_counts_a_scenario_however_unlikely() -> None:
    tails = random_tails(seed=2, smallest=1e-300)
    np.testing.assert_allclose(
        read_table(tabulate(ro.WorstCase().tail_weight), tails), np.ones_like(tails), rtol=0, atol=1e-13
    )


def test_the_table_of_a_square_root_is_accurate_except_within_its_first_cell() -> None:
    table = tabulate(SquareRoot().tail_weight)
    tails = random_tails(seed=3, smallest=1e-18)
    misses = np.abs(read_table(table, tails) - np.sqrt(tails))
    assert misses[tails >= 2.0**-48].max() <= 1e-13
    assert misses.max() <= 2e-9


@pytest.mark.parametrize(
    ("measure", "reach"),
    [
        (ro.Mean(), 1.0),
        (ro.CVaR(1.0), 1.0),
        (ro.CVaR(0.3), 0.3),
        (ro.CVaR(0.01), 0.01),
        (ro.CVaR(1e-6), 1e-6),
        (ro.KOfN(1, 1), 1.0),
        (ro.Mixture([(0.5, ro.CVaR(0.1)), (0.5, ro.CVaR(0.25))]), 0.25),
        (ro.Mixture([(0.5, ro.WorstCase()), (0.5, ro.CVaR(0.25))]), 0.25),
        (ro.Mixture([(0.95, ro.CVaR(0.01)), (0.05, ro.Mean())]), 1.0),
    ],
    ids=repr,
)
def test_reach_is_where_the_tail_weight_becomes_one(measure: ro.Measure, reach: float) -> None:
    assert measure.reach() == pytest.approx(reach, rel=1e-14)


def test_reach_of_the_worst_case_is_next_to_nothing() -> None:
    assert 0 < ro.WorstCase().reach() < 1e-300
    assert 0 < ro.CVaR(0.0).reach() < 1e-300


def test_reach_of_one_of_n_is_where_the_chance_of_missing_it_rounds_to_nothing() -> None:
    assert ro.KOfN(1, 1000).reach() == pytest.approx(1 - 2 ** (-54 / 1000), rel=1e-2)


@given(any_measure)
def test_reach_is_the_least_tail_whose_weight_is_one(measure: ro.Measure) -> None:
    reach = measure.reach()
    assert measure.tail_weight(np.array([reach]))[0] == 1
    just_below = [np.nextafter(reach, 0), np.nextafter(np.nextafter(reach, 0), 0)]
    assert measure.tail_weight(np.array(just_below)).min() < 1
    assert (measure.tail_weight(np.linspace(reach, 1, 50)) >= 1 - 1e-14).all()


# How measures are written down and refused.


@given(measures())
def test_every_measure_can_be_written_as_json(measure: ro.Measure) -> None:
    described = measure.describe()
    assert described["name"] == measure.name
    assert json.loads(json.dumps(described)) == described


@pytest.mark.parametrize(
    ("measure", "described"),
    [
        (ro.Mean(), {"name": "mean"}),
        (ro.WorstCase(), {"name": "worst"}),
        (ro.CVaR(0.01), {"name": "cvar", "tail_fraction": 0.01}),
        (ro.KOfN(3, 100), {"name": "k-of-n", "k": 3, "n": 100}),
        (
            ro.Mixture([(0.75, ro.Mean()), (0.25, ro.CVaR(0.5))]),
            {
                "name": "mixture",
                "parts": [{"share": 0.75, "name": "mean"}, {"share": 0.25, "name": "cvar", "tail_fraction": 0.5}],
            },
        ),
    ],
    ids=repr,
)
def test_a_measure_is_described_by_its_name_and_numbers(measure: ro.Measure, described: dict[str, object]) -> None:
    assert measure.describe() == described


@pytest.mark.parametrize(
    "measure",
    [
        ro.CVaR(np.float64(0.5)),
        ro.CVaR(np.float32(0.5)),  # type: ignore[arg-type]  # what users pass all the same
        ro.CVaR(np.int64(1)),  # type: ignore[arg-type]
        ro.KOfN(np.int64(2), np.int32(5)),  # type: ignore[arg-type]
        ro.Mixture([(np.float32(1), ro.Mean())]),  # type: ignore[list-item]
    ],
    ids=repr,
)
def test_numbers_of_numpy_can_be_written_as_json(measure: ro.Measure) -> None:
    json.dumps(measure.describe())


BAD_MEASURES: list[tuple[Callable[[], object], str]] = [
    (lambda: ro.CVaR(1.5), "`tail_fraction` must lie in [0, 1], got 1.5."),
    (lambda: ro.CVaR(-0.1), "`tail_fraction` must lie in [0, 1], got -0.1."),
    (lambda: ro.CVaR(math.nan), "`tail_fraction` must lie in [0, 1], got nan."),
    (lambda: ro.KOfN(3, 2), "`k` must lie between 1 and `n`, got k = 3 and n = 2."),
    (lambda: ro.KOfN(0, 2), "`k` must lie between 1 and `n`, got k = 0 and n = 2."),
    (lambda: ro.KOfN(-1, 2), "`k` must lie between 1 and `n`, got k = -1 and n = 2."),
    (lambda: ro.KOfN(1.5, 2), "`k` must be a whole number, got 1.5."),  # type: ignore[arg-type]
    (lambda: ro.KOfN(1, 2.0), "`n` must be a whole number, got 2.0."),  # type: ignore[arg-type]
    (lambda: ro.KOfN(True, 2), "`k` must be a whole number, got True."),
    (lambda: ro.KOfN("1", 2), "`k` must be a whole number, got '1'."),  # type: ignore[arg-type]
    (lambda: ro.Mixture([]), "the shares of a mixture must be positive, got []."),
    (
        lambda: ro.Mixture([(1.5, ro.Mean()), (-0.5, ro.WorstCase())]),
        "the shares of a mixture must be positive, got [1.5, -0.5].",
    ),
    (lambda: ro.Mixture([(math.nan, ro.Mean())]), "the shares of a mixture must be positive, got [nan]."),
    (
        lambda: ro.Mixture([(0.5, ro.Mean()), (0.4, ro.WorstCase())]),
        "the shares of a mixture must sum to 1, got 0.9.",
    ),
]


@pytest.mark.parametrize(("make", "message"), BAD_MEASURES, ids=[message for _, message in BAD_MEASURES])
def test_wrong_parameters_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ro.ProblemError, match=re.escape(message)):
        make()


def test_a_mixture_of_something_else_than_measures_is_refused() -> None:
    with pytest.raises(ro.ProblemError, match="'mean'"):
        ro.Mixture([(1.0, "mean")])  # type: ignore[list-item]
