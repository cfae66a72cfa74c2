"""The searchers: where exchanging cases ends, and what becomes of nodes that are dealt out."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import rposst_opt as ro
from rposst_opt.contract import Budget
from rposst_opt.solvers.exact import START_TURN, Exact, _Proof
from rposst_opt.solvers.front import Front, set_of
from rposst_opt.solvers.kernels.learning import list_nearest
from rposst_opt.solvers.kernels.search_state import LEAF_COST, Nodes
from rposst_opt.solvers.prospect import Weights
from rposst_opt.solvers.searchers import SEARCHERS


def exchanged(problem: ro.Problem, work: float) -> _Proof:
    """A run in which single cases were exchanged as long as that helps."""
    proof = _Proof(problem, Exact(), Budget())
    proof.settle_first_tuple()
    left, may_help = proof.searchers.none_left, True
    while may_help:
        left, may_help = proof.searchers.exchange_alone(left, work)
        proof._take_found()
    return proof


@settings(max_examples=40)
@given(problems(), st.sampled_from([START_TURN, 1e4]))
def test_no_single_exchange_makes_the_tuple_better_at_which_exchanging_ends(problem: ro.Problem, work: float) -> None:
    proof = exchanged(problem, work)
    chosen = set(proof.best.cases)
    own = ro.solve(problem.restricted_to(proof._all_cases(proof.best.cases)), "exact")
    assert abs(own.objective - proof.best.value * problem.unit) <= problem.allowance(2e-10)
    for gone, come in product(chosen, set(range(proof.plan.n_selectable)) - chosen):
        cases = proof._all_cases(tuple(sorted(chosen - {gone} | {come})))
        other = ro.solve(problem.restricted_to(cases), "exact")
        assert other.objective >= proof.best.value * problem.unit - problem.allowance(2e-10)


def test_work_is_counted_whether_cases_are_exchanged_in_one_go_or_in_many() -> None:
    rng = np.random.default_rng(0)
    problem = ro.Problem(results=rng.random((30, 20)), size=3)
    for work in (1e12, 1e4):
        searchers = exchanged(problem, work).searchers
        assert searchers.leaves > 10 and searchers.nodes > 3
        counted = searchers.plan.call_cost * searchers.calls + LEAF_COST * searchers.leaves
        assert counted < searchers.work < 10 * counted


def test_with_another_threshold_a_searchers_own_cuts_are_hit_by_other_cases() -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((30, 20)), size=3)
    proof = exchanged(problem, 1e12)
    first, cuts = proof.searchers.members[0], proof.searchers.cuts
    own = slice(int(first.counts.own_start), int(first.counts.own_start + first.counts.learned))
    for factor in (0.9, 1.1):
        proof.searchers.set_threshold(factor * proof.best.value)
        below = [np.flatnonzero(values < first.levels.limit).tolist() for values in cuts.values[own]]
        assert len(below) > 5
        assert [hit.tolist() for hit in cuts.hit[own]] == [set_of(cases, 1).tolist() for cases in below]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_nodes_that_are_dealt_and_gathered_are_all_there_the_deepest_first(depths: list[int]) -> None:
    problem = ro.Problem(results=np.eye(9), size=5)
    front = _Proof(problem, Exact(), Budget()).searchers.new_front()
    cases = np.zeros((len(depths), 6), np.int64)
    cases[:, 0], cases[:, -1] = np.arange(len(depths)), depths
    front.nodes = Nodes(cases, np.arange(len(depths), dtype=np.uint64)[:, None])
    front.weights = np.arange(len(depths)) / 100
    hands, shares = front.deal(SEARCHERS)
    assert front.is_done
    front.gather(hands, [Weights(share, 0.0) for share in shares])
    assert front.nodes.cases[:, -1].tolist() == sorted(depths, reverse=True)
    assert sorted(front.nodes.cases[:, 0].tolist()) == list(range(len(depths)))
    assert front.nodes.cases[:, 0].tolist() == front.nodes.excluded[:, 0].tolist()
    assert np.array_equal(front.weights, front.nodes.cases[:, 0] / 100) and front.closed == 0.0


def test_a_front_begins_with_all_tuples_and_excludes_what_cannot_be_chosen() -> None:
    problem = ro.Problem(results=np.eye(9), size=2, required_cases=(3,), forbidden_cases=(4,))
    proof = _Proof(problem, Exact(), Budget())
    front: Front = proof.searchers.new_front()
    assert front.share_done() == 0.0
    assert (~front.nodes.excluded[0]).tolist() == set_of(range(7), 1).tolist()


def searched_by_a_pair(problem: ro.Problem, turn: float, pool: ThreadPoolExecutor | None) -> _Proof:
    """A run in which two searchers have searched all of the tree, from the first tuple there is."""
    proof = _Proof(problem, Exact(), Budget())
    proof.settle_first_tuple()
    while not proof.front.is_done:
        proof.searchers.take_turns_in_a_pair(proof.front, proof._threshold(), turn, pool)
        proof._take_found()
    return proof


@settings(max_examples=40)
@given(problems(), st.sampled_from([1e4, 1e6]))
def test_a_pair_leaves_nothing_better_behind_and_does_the_same_on_one_thread_and_on_two(
    problem: ro.Problem, turn: float
) -> None:
    proof = searched_by_a_pair(problem, turn, None)
    values = [
        ro.solve(problem.restricted_to(proof._all_cases(chosen)), "exact").objective
        for chosen in combinations(range(proof.plan.n_selectable), proof.plan.size)
    ]
    assert abs(min(values) - proof.best.value * problem.unit) <= problem.allowance(2e-10)
    with ThreadPoolExecutor(1) as pool:
        other = searched_by_a_pair(problem, turn, pool)
    assert (other.best.cases, other.best.value) == (proof.best.cases, proof.best.value)
    assert (other.searchers.work, other.searchers.calls) == (proof.searchers.work, proof.searchers.calls)


def test_two_who_find_something_in_one_turn_have_both_finds_taken() -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((30, 20)), size=3)
    proof = _Proof(problem, Exact(), Budget())
    proof.settle_first_tuple()
    proof.searchers.advance_alone(proof.front, 1e4)
    proof._take_found()
    assert len(proof.front.nodes.cases) > 1
    before = proof._threshold()
    proof.searchers.take_turns_in_a_pair(proof.front, before, 1e9, None)
    assert len(proof.searchers.found) == 2 and all(test.value < before for test in proof.searchers.found)
    assert proof.front.is_done


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # interpreted, sets of bits overflow on purpose
@given(st.lists(st.integers(0, 9), min_size=1, max_size=150), st.integers(1, 8), st.integers(0, 10), st.data())
def test_the_nearest_cases_are_the_greatest_below_the_limit_each_value_once(
    numbers: list[int], most: int, limit: int, data: st.DataObject
) -> None:
    values = np.array(numbers, dtype=float)
    members = data.draw(st.sets(st.integers(0, len(numbers) - 1)))
    within, nearest = set_of(members, (len(numbers) + 63) // 64), np.zeros(most, np.int64)
    count = list_nearest.py_func(most, float(limit), within, values, nearest)  # type: ignore[attr-defined]
    first_of = {values[case]: case for case in sorted(members, reverse=True) if values[case] < limit}
    assert nearest[:count].tolist() == [first_of[value] for value in sorted(first_of, reverse=True)][:most]
