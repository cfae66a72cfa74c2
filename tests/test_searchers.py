"""The searchers: where exchanging cases ends, and what becomes of nodes that are dealt out."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import rposst_opt as ro
from rposst_opt.contract import Budget
from rposst_opt.solvers.exact import ALONE, Exact, _Proof
from rposst_opt.solvers.front import Front, set_of
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
@given(problems(), st.sampled_from([ALONE, 1e4]))
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
