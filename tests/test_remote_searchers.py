"""A search on a cluster has the answer, the bound and the proof of a search on one machine."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import pytest
from clusters import InlineCluster

import rposst_opt as ro
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.problem import Need
from rposst_opt.solvers import exact, remote_searchers, searchers
from rposst_opt.solvers.cluster import Cluster
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.remote_searchers import Hand, Held, Turn, end_round, state_of_the_code, take_turn


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns so short that even small problems are sent, in several rounds."""
    monkeypatch.setattr(exact, "ALONE", 1e4)
    monkeypatch.setattr(exact, "PAIRED", 5e4)
    monkeypatch.setattr(exact, "PAIRS_TURN", 1e4)
    monkeypatch.setattr(exact, "SHORTEST_TURN", 1e5)
    monkeypatch.setattr(exact, "FIRST_ROUND", 1e6)
    monkeypatch.setattr(remote_searchers, "AT_HOME", 1e5)
    monkeypatch.setattr(remote_searchers, "SHORTEST_TURN", 1e5)
    monkeypatch.setattr(remote_searchers, "LONGEST_TURN", 1e6)
    monkeypatch.setattr(searchers, "COLLECTING_TURN", 1e5)


def solve_on(cluster: InlineCluster, problem: ro.Problem, **options: Any) -> ro.Solution:
    """Solve a problem with this cluster at whatever address."""

    @contextmanager
    def reached_at(scheduler: str | None) -> Iterator[InlineCluster | None]:
        yield None if scheduler is None else cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "reached_at", reached_at)
        return ro.solve(problem, "exact", scheduler=cluster.address, **options)


def arrows(n: int, size: int, **changes: Any) -> ro.Problem:
    table = racing_arrows(n, np.random.default_rng(0)).to_numpy()[:, : n - n // 5]
    return ro.Problem(results=table, size=size, targets=ro.softmax_targets(table), **changes)


def noisy(seed: int, n_cases: int, n_policies: int, size: int, **changes: Any) -> ro.Problem:
    return ro.Problem(results=np.random.default_rng(seed).random((n_cases, n_policies)), size=size, **changes)


def skills(seed: int, n_cases: int, n_policies: int, size: int, **changes: Any) -> ro.Problem:
    """Results of zeros and ones, with many sets that are as good as the best."""
    results = np.random.default_rng(seed).integers(0, 2, (n_cases, n_policies)).astype(float)
    return ro.Problem(results=results, size=size, **changes)


PROBLEMS = {
    "arrows": arrows(40, 4),
    "numbers": noisy(0, 24, 20, 4, measure=ro.CVaR(0.1)),
    "mean": noisy(1, 20, 16, 4, measure=ro.Mean()),
    "k of n": noisy(2, 20, 16, 4, measure=ro.KOfN(2, 10)),
    "squared": noisy(3, 18, 12, 3, loss=ro.SquaredError(), measure=ro.CVaR(0.3)),
    "settled": noisy(4, 24, 16, 3, measure=ro.CVaR(0.2), required_cases=[3], forbidden_cases=[1]),
    "ties": skills(5, 20, 14, 4, measure=ro.CVaR(0.2)),
    "long": noisy(8, 26, 30, 4, measure=ro.CVaR(0.1)),
    "with an offset": noisy(6, 20, 16, 3, measure=ro.CVaR(0.2), offset=True),
    "noise": noisy(7, 20, 16, 3, measure=ro.CVaR(0.2), noise=np.full(20, 0.1)),
}


def assert_same_answer(problem: ro.Problem, one: ro.Solution, other: ro.Solution) -> None:
    """As far as an answer is a function of the problem, and not of the path of the search that found it."""
    near = 1e-9 * problem.unit
    is_smooth = Need.NOISE in problem.needs or Need.CURVED_LOSS in problem.needs
    assert (one.status, one.one_of_many) == (other.status, other.one_of_many)
    assert abs(one.objective - other.objective) <= near and abs(one.lower_bound - other.lower_bound) <= near
    pairs = [(one.test, other.test)]
    pairs += [(mine.test, its.test) for mine, its in zip(one.ranking, other.ranking, strict=True)]
    for mine, its in pairs:
        assert mine is not None and its is not None and mine.cases == its.cases
        assert np.allclose(mine.weights, its.weights, rtol=0, atol=1e-4 if is_smooth else 1e-7)


@pytest.mark.parametrize("n_threads", [1, 5])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_answer_and_the_bound_are_those_of_one_machine(name: str, n_threads: int) -> None:
    cluster = InlineCluster(n_threads)
    solution = solve_on(cluster, PROBLEMS[name])
    assert cluster.rounds, "nothing was sent"
    assert solution.status is ro.Status.OPTIMAL
    assert_same_answer(PROBLEMS[name], solution, ro.solve(PROBLEMS[name], "exact"))


@pytest.mark.parametrize("options", [{"top": 7}, {"all_optimal": True}], ids=str)
@pytest.mark.parametrize("name", ["numbers", "ties"])
def test_rankings_are_those_of_one_machine(name: str, options: dict[str, Any]) -> None:
    cluster = InlineCluster()
    solution = solve_on(cluster, PROBLEMS[name], **options)
    assert cluster.rounds
    assert_same_answer(PROBLEMS[name], solution, ro.solve(PROBLEMS[name], "exact", **options))


@pytest.mark.parametrize("name", ["numbers", "mean", "settled", "noise"])
def test_a_certificate_whose_cuts_were_learned_elsewhere_holds(name: str) -> None:
    problem, cluster = PROBLEMS[name], InlineCluster()
    solution = solve_on(cluster, problem, certificate=True)
    assert sum(len(turn.records) for _, turns in cluster.rounds for turn in turns) > 0
    alone = ro.solve(problem, "exact", certificate=True)
    assert_same_answer(problem, solution, alone)
    assert solution.certificate is not None and alone.certificate is not None
    assert abs(solution.certificate.bound - alone.certificate.bound) <= 1e-9 * problem.unit
    assert ro.verify_certificate(problem, solution.certificate).holds


def test_hands_that_do_not_come_back_are_searched_again() -> None:
    problem = PROBLEMS["numbers"]
    cluster = InlineCluster(loses=lambda number, hand: (number + hand) % 3 == 0)
    solution = solve_on(cluster, problem, certificate=True)
    assert any(None in turns for _, turns in cluster.rounds)
    assert_same_answer(problem, solution, ro.solve(problem, "exact", certificate=True))
    assert solution.certificate is not None and ro.verify_certificate(problem, solution.certificate).holds


def test_what_one_hand_has_learned_all_know_in_the_next_round() -> None:
    cluster = InlineCluster()
    solve_on(cluster, PROBLEMS["numbers"])
    assert len(cluster.rounds) >= 2
    learned_by = [{cut.tobytes() for cut in turn.cuts} for turn in cluster.rounds[0][1]]
    assert sum(bool(cuts) for cuts in learned_by) >= 2
    for _, known, _ in cluster.rounds[1][0]:
        sent = {cut.tobytes() for cut in known}
        assert all(cuts <= sent for cuts in learned_by)


def test_cuts_that_were_of_use_elsewhere_are_kept_longer() -> None:
    """Half of the cuts go where there is no place for more: those of least use, wherever that was."""
    problem, cluster = PROBLEMS["numbers"], InlineCluster()
    proof = exact._Proof(problem, exact.Exact(), ro.Budget())
    proof.settle_first_tuple()
    proof.searchers.keep_cuts()
    crew = remote_searchers.Crew(proof.searchers, cast(Cluster, cluster))
    crew._n_threads = 1
    while not any(turn.uses_of_known.any() for _, turns in cluster.rounds for turn in turns):
        before = proof.searchers.kept_uses[: proof.searchers.kept] // 2
        assert crew._deal_out(proof.front, 0.1, 1e5, lambda: None) is None
    used = sum(turn.uses_of_known for turn in cluster.rounds[-1][1])
    assert np.array_equal(proof.searchers.kept_uses[: len(before)], before + used)


def test_what_is_left_and_what_is_closed_weigh_the_whole_tree() -> None:
    problem, cluster = PROBLEMS["numbers"], InlineCluster(loses=lambda number, hand: (number + hand) % 5 == 0)
    proof = exact._Proof(problem, exact.Exact(), ro.Budget())
    proof.settle_first_tuple()
    crew, front, closed = remote_searchers.Crew(proof.searchers, cast(Cluster, cluster)), proof.front, [0.0]
    crew._n_threads = 1
    while not front.is_done:
        crew._deal_out(front, 0.07, 1e5, lambda: None)
        assert len(front.weights) == len(front.nodes.cases) and (front.weights >= 0).all()
        assert math.isclose(front.weights.sum() + front.closed, 1.0)
        closed.append(front.closed)
    assert len(closed) > 5 and closed == sorted(closed)


def test_sets_that_are_as_good_are_looked_for_on_the_cluster_too() -> None:
    cluster = InlineCluster()
    solution = solve_on(cluster, PROBLEMS["numbers"])
    best = solution.objective / PROBLEMS["numbers"].unit
    assert any(hand.threshold > best for hands, _ in cluster.rounds[-1:] for _, _, hand in hands)


def test_all_work_is_counted() -> None:
    cluster = InlineCluster()
    solution = solve_on(cluster, PROBLEMS["numbers"])
    efforts = [turn.effort for _, turns in cluster.rounds for turn in turns]
    assert solution.stats.cuts > sum(effort.learned for effort in efforts) > 0
    assert solution.stats.solved > sum(effort.leaves for effort in efforts) > 0
    assert solution.stats.nodes > sum(effort.nodes for effort in efforts) > 0
    assert solution.stats.rounds > sum(effort.calls for effort in efforts) > 0


# What is done on a worker.


def a_hand(problem: ro.Problem, **changes: Any) -> tuple[Held, np.ndarray, Hand]:
    """What a worker is sent when a search begins."""
    proof = exact._Proof(problem, exact.Exact(), ro.Budget())
    arrays, plan = proof.searchers.arrays, proof.plan
    held = Held(arrays, proof.searchers.rules, capacity=1, record=False, written_by=state_of_the_code())
    hand = Hand(proof.front.nodes, plan, threshold=0.1, work=1e6, most_cuts=100, round="a round")
    return held, np.empty((0, len(arrays.results))), hand._replace(**changes)


def assert_same_turn(one: Turn, other: Turn) -> None:
    assert np.array_equal(one.left.cases, other.left.cases) and np.array_equal(one.left.excluded, other.left.excluded)
    assert np.array_equal(one.cuts, other.cuts) and one.effort == other.effort


def test_a_turn_does_not_depend_on_what_the_worker_has_done_before() -> None:
    asked = a_hand(PROBLEMS["numbers"])
    first = take_turn(*asked)
    take_turn(*a_hand(PROBLEMS["mean"]))
    assert len(first.cuts) > 0 and len(first.left.cases) > 0
    assert_same_turn(take_turn(*asked), first)


def test_no_more_cuts_are_brought_back_than_wanted_and_these_are_the_most_used() -> None:
    held, known, hand = a_hand(PROBLEMS["numbers"])
    whole, few = (
        take_turn(held, known, hand._replace(most_cuts=10**6)),
        take_turn(held, known, hand._replace(most_cuts=5)),
    )
    assert len(few.cuts) == 5 < len(whole.cuts)
    assert np.array_equal(few.uses, whole.uses[:5]) and (np.diff(whole.uses) <= 0).all()


def test_a_round_that_has_ended_ends_on_the_workers_too() -> None:
    held, known, hand = a_hand(PROBLEMS["numbers"], work=math.inf, round="one that has ended")
    end_round(hand.round)
    turn = take_turn(held, known, hand)
    assert turn.effort.work == 0
    assert np.array_equal(turn.left.cases, hand.nodes.cases)


def test_a_worker_with_another_version_is_told() -> None:
    held, known, hand = a_hand(PROBLEMS["numbers"])
    with pytest.raises(ro.ProblemError, match=r"^the worker has rposst-opt .* and the search is by another\.$"):
        take_turn(held._replace(written_by="another"), known, hand)


def test_arrays_that_were_unlocked_on_their_way_are_locked_again() -> None:
    held, known, hand = a_hand(PROBLEMS["noise"])
    copies: list[Any] = [one.copy() if isinstance(one, np.ndarray) else one for one in held.arrays]
    unlocked = ProblemArrays(*copies)
    turn = take_turn(held._replace(arrays=unlocked), known, hand)
    assert not any(isinstance(one, np.ndarray) and one.flags.writeable for one in unlocked)
    assert_same_turn(turn, take_turn(held, known, hand))


# Clusters that fail.


def test_a_cluster_that_is_lost_is_told_and_the_search_goes_on_here() -> None:
    problem, cluster = PROBLEMS["numbers"], InlineCluster(is_lost_in=1)
    message = r"^the cluster does not answer any more\. The search goes on on this machine\.$"
    with pytest.warns(ro.RposstWarning, match=message):
        solution = solve_on(cluster, problem)
    assert len(cluster.rounds) == 1
    assert_same_answer(problem, solution, ro.solve(problem, "exact"))


def test_a_cluster_from_which_nothing_comes_back_is_given_up() -> None:
    problem, cluster = PROBLEMS["numbers"], InlineCluster(loses=lambda number, hand: number > 0)
    with pytest.warns(ro.RposstWarning, match=r"^nothing comes back from the cluster at 'tcp://nowhere:8786'\."):
        solution = solve_on(cluster, problem)
    assert len(cluster.rounds) == 1 + remote_searchers.FRUITLESS_ROUNDS
    assert_same_answer(problem, solution, ro.solve(problem, "exact"))


def test_a_cluster_without_workers_is_told_once_and_this_machine_searches_alone() -> None:
    problem, cluster = PROBLEMS["numbers"], InlineCluster(n_threads=0)
    with pytest.warns(
        ro.RposstWarning, match=r"has no workers: this machine searches alone until some come\.$"
    ) as told:
        solution = solve_on(cluster, problem)
    assert len(told) == 1 and not cluster.rounds
    assert_same_answer(problem, solution, ro.solve(problem, "exact"))
