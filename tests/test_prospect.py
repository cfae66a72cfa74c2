"""How much of a search is done: weights of a tree by hand and of real searches, and a share that moves with work."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rposst_opt as ro
from rposst_opt.arrays import FloatArray
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.solvers import exact
from rposst_opt.solvers.front import set_of
from rposst_opt.solvers.kernels.search_state import Nodes
from rposst_opt.solvers.prospect import Prospect, weights_left

LONGEST_STALL = 0.2  # of a run's work, between two moves of the share,
A_MOVE = 1e-3  # which are what one sees on a terminal


def random_numbers(n: int, p: int, size: int, measure: ro.Measure) -> ro.Problem:
    return ro.Problem(results=np.random.default_rng(0).random((n, p)), size=size, measure=measure)


def skills(n: int, p: int, size: int, measure: ro.Measure) -> ro.Problem:
    rng = np.random.default_rng(0)
    results = (rng.random((n, p)) < 1 / (1 + np.exp(rng.normal(size=p) + rng.normal(size=(n, 1))))).astype(float)
    return ro.Problem(results=results, size=size, measure=measure, targets=ro.softmax_targets(results))


def arrows(n: int, size: int, measure: ro.Measure) -> ro.Problem:
    results = racing_arrows(n, np.random.default_rng(1)).to_numpy()
    return ro.Problem(results=results, size=size, measure=measure, targets=ro.softmax_targets(results))


# Weights


def without(*cases: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """Ten cases, of which these are excluded."""
    return ~set_of(set(range(10)) - set(cases), 1)


def test_branches_share_the_weight_of_their_node_by_their_tuples() -> None:
    """Tuples of 3 of 10 cases, branched on {0, 1, 2}: 36, 28 and 21 tuples; below 1 on {4, 5}: 7 and 6.

    The search below 0 is done, and it was broken off when that below {1, 4} was done.
    """
    root = Nodes(np.array([[0, 0, 0, 0]]), without()[None])
    left = Nodes(np.array([[1, 5, 0, 2], [2, 0, 0, 1]]), np.array([without(0, 1, 4, 5), without(0, 1, 2)]))
    weights, closed = weights_left(root, np.ones(1), 1, left)
    np.testing.assert_allclose(weights, [28 / 85 * 6 / 13, 21 / 85])
    assert closed == pytest.approx(36 / 85 + 28 / 85 * 7 / 13)


def test_nodes_that_were_done_are_closed_and_those_not_begun_keep_their_weight() -> None:
    nodes = Nodes(np.array([[0, 0, 1], [1, 0, 1], [2, 0, 1]]), np.array([without(0), without(0, 1), without(0, 1, 2)]))
    none_left = Nodes(np.empty((0, 3), np.int64), np.empty((0, 1), np.uint64))
    weights, closed = weights_left(nodes, np.array([0.5, 0.3, 0.2]), 2, none_left)
    np.testing.assert_allclose(weights, [0.2])
    assert closed == pytest.approx(0.8)
    weights, closed = weights_left(nodes, np.array([0.5, 0.3, 0.2]), 0, none_left)
    np.testing.assert_allclose(weights, [0.5, 0.3, 0.2])
    assert closed == 0.0


def test_a_node_that_was_put_aside_whole_keeps_its_weight() -> None:
    node = Nodes(np.array([[3, 0, 0, 1]]), without(0, 3)[None])
    weights, closed = weights_left(node, np.array([0.25]), 1, node)
    np.testing.assert_allclose(weights, [0.25])
    assert closed == 0.0


@pytest.mark.parametrize("work", [3e4, 1e5, 1e6])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_in_a_real_search_weight_only_moves_from_what_is_left_to_what_is_done(size: int, work: float) -> None:
    proof = exact._Proof(random_numbers(16, 12, size, ro.CVaR(0.2)), exact.Exact(), ro.Budget())
    proof.settle_first_tuple()
    front, closed = proof.searchers.new_front(), [0.0]
    while not front.is_done:
        proof.searchers.advance_alone(front, work)
        closed.append(front.closed)
        assert front.closed + front.weights.sum() == pytest.approx(1.0)
        assert len(front.weights) == len(front.nodes.cases)
    assert closed == sorted(closed)
    assert closed[-1] == pytest.approx(1.0)


# The share


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=50))
def test_if_the_guess_is_right_the_share_is_that_of_the_work(pieces: list[float]) -> None:
    prospect, total, work = Prospect(), sum(pieces) * 1.25, 0.0
    for piece in pieces:
        work += piece
        prospect.note(work, work / total)
        assert prospect.share == pytest.approx(work / total)
        assert prospect.left == pytest.approx(total - work)


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(0, 1)), min_size=1, max_size=50))
def test_whatever_is_guessed_the_share_moves_forward_and_is_whole_at_the_end_alone(
    seen: list[tuple[float, float]],
) -> None:
    prospect, work = Prospect(), 0.0
    for piece, closed in seen:
        before = prospect.share
        work += piece
        prospect.note(work, closed)
        assert before <= prospect.share < 1
        if closed > 1e-3 and before < 0.99:
            assert prospect.share > before
    prospect.finish()
    assert (prospect.share, prospect.left, prospect.seconds_left) == (1.0, 0.0, 0.0)


def test_before_anything_is_done_nothing_is_said_of_the_time_left() -> None:
    assert Prospect().seconds_left is None
    hopeless = Prospect()
    hopeless.note(1e9, 0.0)
    assert hopeless.seconds_left == math.inf
    assert hopeless.share == 0.0


@pytest.fixture
def all_is_told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Work and share, whenever a run tells how far it is: after every turn, and turns are short."""
    told: list[tuple[float, float]] = []
    tell = exact._Proof.tell

    def note(proof: exact._Proof) -> None:
        told.append((float(proof.searchers.work) + proof.besides.work, proof.prospect.share))
        tell(proof)

    monkeypatch.setattr(exact._Proof, "tell", note)
    short = {
        "ALONE": 1e5,
        "PAIRED": 5e6,
        "PAIRS_TURN": 1e6,
        "SHORTEST_TURN": 1e5,
        "LONGEST_TURN": 3e5,
        "FIRST_ROUND": 1e7,
    }
    for name, value in short.items():
        monkeypatch.setattr(exact, name, value)
    monkeypatch.setattr(exact, "TELL_SECONDS", 0.0)
    return told


def longest_stall(told: FloatArray) -> float:
    """The most work between two moves that one sees, of all work until the search is done."""
    moved, work, longest = 0.0, 0.0, 0.0
    for now, share in told:
        longest = max(longest, now - work)
        if share >= moved + A_MOVE:
            moved, work = share, now
    return float(longest / told[-1, 0])


@pytest.mark.parametrize(
    "problem",
    [
        arrows(50, 6, ro.CVaR(0.1)),
        skills(40, 40, 5, ro.CVaR(0.1)),
        random_numbers(30, 30, 5, ro.CVaR(0.1)),
        random_numbers(32, 20, 5, ro.Mean()),
    ],
    ids=["arrows", "skills", "tail of random numbers", "mean of random numbers"],
)
def test_the_share_moves_forward_all_along_and_is_whole_at_the_end(
    problem: ro.Problem, all_is_told: list[tuple[float, float]]
) -> None:
    heard: list[ro.Progress] = []
    solution = ro.solve(problem, "exact", progress=heard.append)
    assert solution.status is ro.Status.OPTIMAL
    *on_the_way, at_the_end = [share for _, share in all_is_told]
    assert on_the_way == sorted(on_the_way)
    assert all(share < 1 for share in on_the_way)
    assert at_the_end == heard[-1].share == solution.stats.share_done == 1.0
    assert len(set(on_the_way)) > 10
    *searching, _ = all_is_told  # the last comes after ties were looked for
    assert longest_stall(np.array(searching)) < LONGEST_STALL
