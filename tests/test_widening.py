"""Cuts that are widened, and leaps: what they claim is true, they save what they are for, and nobody else pays."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from oracles import cutting_plane_optimum

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.solvers import exact
from rposst_opt.solvers.kernels import compiling, learning
from rposst_opt.solvers.kernels.learning import PROBE_EVERY
from rposst_opt.solvers.kernels.search_state import MOSTLY, NEVER, SELDOM
from rposst_opt.solvers.kernels.tuple_game import settle
from rposst_opt.solvers.searchers import Searchers
from rposst_opt.solvers.widening import FEWEST_CUTS, Widening

MEASURES = [ro.CVaR(0.3), ro.Mean(), ro.KOfN(2, 7), ro.WorstCase()]
LOSSES = [ro.AbsoluteError(), ro.PinballError(0.7), ro.SquaredError()]


def some_problem(seed: int, n_cases: int, size: int, **changes: Any) -> ro.Problem:
    """Random numbers, or random zeros and ones, which have many ties."""
    rng = np.random.default_rng(seed)
    shape = n_cases, int(rng.integers(4, 10))
    results = rng.random(shape) if seed % 3 else rng.integers(0, 2, shape).astype(float)
    targets = ro.softmax_targets(results, betas=(0, 2))
    loss, measure = LOSSES[seed % len(LOSSES)], MEASURES[seed % len(MEASURES)]
    return ro.Problem(results=results, size=size, targets=targets, loss=loss, measure=measure, **changes)


def arrows(n: int) -> ro.Problem:
    """Cases that are alike."""
    table = racing_arrows(n, np.random.default_rng(0)).to_numpy()
    return ro.Problem(results=table, size=4, measure=ro.CVaR(0.1), targets=ro.softmax_targets(table, betas=(0, 2)))


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels run as they are written, so that their constants can be others."""
    monkeypatch.setattr(compiling.Kernel, "__call__", lambda kernel, *arguments: kernel.py_func(*arguments))
    with np.errstate(all="ignore"):  # sets of bits overflow on purpose
        yield


def searched(problem: ro.Problem, widening: int) -> Searchers:
    """The searchers after one of them has searched all of the tree alone."""
    proof = exact._Proof(problem, exact.Exact(), ro.Budget())
    proof.searchers.plan = proof.searchers.plan._replace(widening=widening)
    proof.settle_first_tuple()
    proof.searchers.set_threshold(proof._threshold())  # it begins roughly
    while not proof.front.is_done:
        proof.searchers.advance_alone(proof.front, 1e12)
        proof._take_found()
    proof.searchers.keep_cuts()
    return proof.searchers


# What cuts claim


@pytest.mark.parametrize("seed", range(12))
def test_no_cut_is_above_the_optimum_of_any_set_of_cases(seed: int) -> None:
    """Each is a bound by its least value on a set, and cutting planes of another kind say what the set is worth."""
    problem = some_problem(seed, n_cases=6, size=3, offset=seed % 4 == 3)
    stated = problem.stated
    searchers = searched(stated, MOSTLY)
    assert searchers.kept
    for size in (1, 3, 5):
        for chosen in itertools.combinations(range(problem.n_cases), size):
            cases = (*chosen, *stated.required_cases)
            optimum = cutting_plane_optimum(stated, cases, 1e-10) / stated.unit
            assert searchers.cuts.values[: searchers.kept, list(cases)].min(axis=1).max() <= optimum + 1e-9


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("longest_leap", [0, 5])
@pytest.mark.parametrize("seed", range(12))
def test_the_answer_is_the_same_and_proved_however_cuts_are_made(
    seed: int, longest_leap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = some_problem(100 + seed, n_cases=8, size=3, offset=seed % 4 == 3, required_cases=[0][: seed % 2])
    usual = ro.solve(problem, "exact")
    monkeypatch.setattr(learning, "LONGEST_LEAP", longest_leap)
    monkeypatch.setattr(exact, "NEVER", (MOSTLY, SELDOM)[seed % 2])
    other = ro.solve(problem, "exact", certificate=True)
    assert usual.test is not None and other.test is not None and other.certificate is not None
    assert other.status is ro.Status.OPTIMAL
    assert other.test.cases == usual.test.cases
    assert other.objective == pytest.approx(usual.objective, abs=problem.allowance(1e-9))
    assert ro.verify_certificate(problem, other.certificate).holds


# What they save


def test_widened_cuts_save_most_sets_where_cases_are_alike() -> None:
    problem = arrows(40)
    settled = {widening: searched(problem, widening).leaves for widening in (NEVER, SELDOM, MOSTLY)}
    assert settled[MOSTLY] < 0.6 * settled[NEVER]
    assert settled[MOSTLY] < settled[SELDOM]


@pytest.mark.usefixtures("interpreted")
def test_with_leaps_fewer_games_are_played_for_as_many_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, played = arrows(28), 0

    def counted(*arguments: Any) -> Any:
        nonlocal played
        played += 1
        return settle(*arguments)

    monkeypatch.setattr(learning, "settle", counted)
    games_of_a_set = []
    for longest in (3, 0):
        monkeypatch.setattr(learning, "LONGEST_LEAP", longest)
        played = 0
        leaves = searched(problem, NEVER).leaves
        games_of_a_set.append(played / leaves)
    assert games_of_a_set[0] < 0.9 * games_of_a_set[1]


# Whether it pays


def test_every_front_finds_out_for_itself() -> None:
    """What pays below one threshold need not pay below another, and the searchers follow the front they search."""
    proof = exact._Proof(arrows(30), exact.Exact(), ro.Budget())
    proof.settle_first_tuple()
    searchers, (easy, hard) = proof.searchers, (proof.searchers.new_front(), proof.searchers.new_front())
    hard.widening.pays = False
    searchers.advance_alone(easy, 1.0)
    assert searchers.plan.widening == NEVER  # as long as the problem may be solved at once
    searchers.widen_from_now_on()
    for front, widening in ((hard, SELDOM), (easy, MOSTLY), (hard, SELDOM)):
        searchers.advance_alone(front, 1.0)
        assert searchers.plan.widening == widening


def turn(widening: Widening, uses_if_widened: int, others: int, of_widening: float) -> None:
    """A turn in which cuts of both kinds are of so much use; each is a unit of work, and so much more if widened."""
    is_probe = np.arange(40 * PROBE_EVERY) % PROBE_EVERY == 0
    is_widened = is_probe != widening.pays
    extra = of_widening * is_widened.sum()
    widening.note_work(len(is_probe) + extra, extra)
    widening.note_uses(np.where(is_widened, uses_if_widened, others))
    widening.decide()


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize(
    ("uses_if_widened", "of_widening", "pays"),
    [(9, 0.9, True), (9, 1.1, False), (4, 0.01, False), (5, 0.1, True), (0, 0.0, False)],
)
def test_widening_pays_if_it_does_more_for_its_work(
    begins: bool, uses_if_widened: int, of_widening: float, pays: bool
) -> None:
    widening = Widening()
    widening.pays = begins
    turn(widening, uses_if_widened, 4, of_widening)
    assert widening.pays is pays


def test_nothing_is_decided_by_a_few_cuts() -> None:
    widening = Widening()
    widening.note_work(1e6, 9e5)
    widening.note_uses(np.zeros((FEWEST_CUTS - 1) * PROBE_EVERY, dtype=np.int64))
    widening.decide()
    assert widening.pays and widening.plan == MOSTLY
    widening.note_uses(np.zeros(PROBE_EVERY, dtype=np.int64))
    widening.decide()
    assert not widening.pays and widening.plan == SELDOM


def test_what_pays_later_is_found_out_later() -> None:
    widening = Widening()
    for uses_if_widened, pays in ((0, False), (50, True), (0, False)):
        for _ in range(20):
            turn(widening, uses_if_widened, 4, 0.5)
        assert widening.pays is pays
