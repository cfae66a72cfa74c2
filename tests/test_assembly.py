"""Rules about the choice and limits to weights: every backend that claims them against enumeration and linear programs.

The oracle reads the rules as they were given, and states its own linear program for each set of cases.
"""

import functools
import itertools
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from linear_programs import linear_program

import rposst_opt as ro
from rposst_opt.backends import BACKENDS, why_unusable
from rposst_opt.feasibility import all_rules, can_be_kept, find_choice, minimal_core

PROBLEMS = 300
QUICK = ("exact", "scipy-milp", "pulp-highs")  # asked on all problems; others on one of every so many
EVERY = 1 if os.environ.get("RPOSST_ASSEMBLY") == "all" else 15


@dataclass(frozen=True)
class Drawn:
    """A problem as it was drawn: plain numbers, without any of the package's classes."""

    results: np.ndarray
    size: int
    tail: float
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def problem(self) -> ro.Problem:
        measure = ro.Mean() if self.tail == 1 else ro.CVaR(self.tail)
        return ro.Problem(results=self.results, size=self.size, measure=measure, **self.given)

    def allowed(self) -> list[tuple[int, ...]]:
        """All sets of cases that keep all rules."""
        n = len(self.results)
        fewest = 1 if self.given.get("size_is") == "at most" else self.size
        required = set(self.given.get("required_cases", ()))
        free = [case for case in range(n) if case not in required]
        sets = [
            tuple(sorted({*chosen, *required}))
            for size in range(fewest, self.size + 1)
            for chosen in itertools.combinations(free, size)
        ]
        return [cases for cases in sets if self.keeps(set(cases))]

    def keeps(self, cases: set[int]) -> bool:
        given = self.given
        spent = sum(given["costs"][case] for case in cases) if "budget" in given else 0.0
        counts = {
            group: sum(group in given["groups"][case] for case in cases)
            for group in {*given.get("at_least", {}), *given.get("at_most", {})}
        }
        least, most = given.get("least_weight", 0.0), given.get("most_weight", 1.0)
        may_be_less = given.get("offset", False)
        return (
            spent <= given.get("budget", 0.0) * (1 + 1e-9)
            and all(counts[group] >= count for group, count in given.get("at_least", {}).items())
            and all(counts[group] <= count for group, count in given.get("at_most", {}).items())
            and all(len(cases & set(pair)) <= 1 for pair in given.get("conflicts", ()))
            and all(len(cases & set(pair)) in (0, len(pair)) for pair in given.get("together", ()))
            and least * len(cases) <= 1 + 1e-9
            and (may_be_less or most * len(cases) >= 1 - 1e-9)
        )

    def least_loss(self, cases: tuple[int, ...]) -> float:
        """The least objective of weights on these cases: one linear program."""
        results = self.results[list(cases)].T
        full = self.results.mean(axis=0)
        d, k = results.shape
        least, most = self.given.get("least_weight", 0.0), self.given.get("most_weight", 1.0)
        limits = [(least, most)] * k
        if self.given.get("offset"):  # a mixture of the least and the greatest result
            ends = [self.results.min(), self.results.max()]
            results, k = np.column_stack([results, np.tile(ends, (d, 1))]), k + 2
            limits += [(0.0, 1.0)] * 2
        # Variables: weights, level, excesses.
        cost = np.concatenate([np.zeros(k), [1.0], np.full(d, 1 / (d * self.tail))])
        above = np.hstack([results, -np.ones((d, 1)), -np.eye(d)])
        below = np.hstack([-results, -np.ones((d, 1)), -np.eye(d)])
        outcome = linear_program(
            cost,
            A_ub=np.vstack([above, below]),
            b_ub=np.concatenate([full, -full]),
            A_eq=[np.concatenate([np.ones(k), np.zeros(1 + d)])],
            b_eq=[1.0],
            bounds=[*limits, (None, None), *[(0, None)] * d],
        )
        return float(outcome.fun)

    def optimum(self) -> float | None:
        values = [self.least_loss(cases) for cases in self.allowed()]
        return min(values) if values else None


def drawn(seed: int) -> Drawn:
    """A small problem with some rules, of which few or no sets may be left."""
    rng = np.random.default_rng(seed)
    n, policies = int(rng.integers(4, 9)), int(rng.integers(2, 6))
    results = np.round(rng.random((n, policies)), int(rng.integers(1, 4)))
    size = int(rng.integers(1, min(n, 5)))
    given: dict[str, Any] = {}
    has = rng.random(8) < 0.4
    if has[0]:
        given["costs"] = np.round(rng.random(n), 1).tolist()
        given["budget"] = float(np.round(rng.uniform(0.2, 0.7) * size, 1))
    if has[1]:
        given["groups"] = [[str(name) for name in rng.choice(3, rng.integers(1, 3), replace=False)] for _ in range(n)]
        known = sorted({group for groups in given["groups"] for group in groups})
        given["at_least"] = {known[0]: int(rng.integers(0, 3))}
        given["at_most"] = {known[-1]: int(rng.integers(0, 3))}
    if has[2]:
        given["conflicts"] = [rng.choice(n, int(rng.integers(2, 4)), replace=False).tolist()]
    if has[3]:
        given["together"] = [rng.choice(n, int(rng.integers(2, 4)), replace=False).tolist()]
    if has[4]:
        given["most_weight"] = float(np.round(rng.uniform(0.2, 0.9), 1))
    if has[5]:
        given["least_weight"] = min(float(np.round(rng.uniform(0.05, 0.5), 2)), given.get("most_weight", 1.0))
    if has[6]:
        given["size_is"] = "at most"
    if has[7]:
        given["required_cases"] = [int(rng.integers(n))]
        size = min(size, n - 1)
    if rng.random() < 0.2:
        given["offset"] = True
    tail = float(rng.choice([0.2, 0.5, 1.0]))
    return Drawn(results, size, tail, given)


@functools.cache
def able(name: str) -> bool:
    capabilities = BACKENDS[name].capabilities
    is_able = ro.Need.CHOICE_RULES in capabilities.handles and not capabilities.is_heuristic
    return is_able and why_unusable(capabilities) is None


def asked_on(seed: int) -> list[str]:
    """Who is asked on this problem: the quick ones, and each of the others on some."""
    others = [name for name in BACKENDS if able(name) and name not in QUICK]
    return [*QUICK, *(name for place, name in enumerate(others) if (seed + place) % EVERY == 0)]


@pytest.mark.parametrize("part", range(10))
def test_every_backend_that_claims_rules_equals_enumeration(part: int) -> None:
    feasible = 0
    for seed in range(part, PROBLEMS, 10):
        problem_drawn = drawn(seed)
        problem, optimum = problem_drawn.problem, problem_drawn.optimum()
        assert (find_choice(all_rules(problem), problem.n_cases) is None) == (optimum is None)
        if optimum is None:
            with pytest.raises(ro.Infeasible) as caught:
                ro.solve(problem)
            assert_minimal(problem, caught.value.core)
            continue
        feasible += 1
        for name in asked_on(seed):
            backend = BACKENDS[name].capabilities
            if backend.why_not(problem) is not None:
                continue
            solution = ro.solve(problem, name)
            allowance = problem.allowance(backend.tolerance)
            promised = 0.0 if backend.promised_gap is None else backend.promised_gap(problem)
            told = (seed, name, problem_drawn.given)
            assert -allowance <= solution.objective - optimum <= allowance + promised + 1e-9, told
            assert solution.lower_bound <= optimum + allowance + 1e-9, told
            if backend.finds_optimum:
                assert solution.status is ro.Status.OPTIMAL, told
    assert feasible >= 10  # of thirty


def assert_minimal(problem: ro.Problem, core: tuple[str, ...]) -> None:
    """No set of cases keeps all rules of the core; without any one of them, some set does."""
    rules = [rule for rule in all_rules(problem) if rule.words in core]
    assert {rule.words for rule in rules} == set(core)
    sets = [
        cases for size in range(problem.n_cases + 1) for cases in itertools.combinations(range(problem.n_cases), size)
    ]

    def can_be(kept: list[ro.Rule]) -> bool:
        return any(all(rule.why_not(cases) is None for rule in kept) for cases in sets)

    assert not can_be(rules)
    for words in core:
        assert can_be([rule for rule in rules if rule.words != words])


@pytest.mark.parametrize("seed", range(60))
def test_sets_that_keep_the_rules_are_those_of_the_oracle(seed: int) -> None:
    problem = drawn(seed).problem
    assert sorted(tuple(sorted(cases)) for cases in problem.tuples()) == sorted(drawn(seed).allowed())
    found = find_choice(all_rules(problem), problem.n_cases)
    assert (found in drawn(seed).allowed()) if found is not None else not drawn(seed).allowed()
    assert can_be_kept(all_rules(problem), problem.n_cases) == bool(drawn(seed).allowed())


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_the_judge_refuses_every_set_that_breaks_a_rule(seed: int) -> None:
    problem, allowed = drawn(seed).problem, set(drawn(seed).allowed())
    limits_weights = problem.rules.limit_weights
    for size in range(1, problem.n_cases + 1):
        for cases in itertools.combinations(range(problem.n_cases), size):
            reason = problem.why_not(problem.test(cases=cases, weights=np.full(size, 1 / size)))
            if cases not in allowed:
                assert reason is not None
            elif not limits_weights:
                assert reason is None


def table() -> np.ndarray:
    return np.random.default_rng(1).random((8, 6))


def test_the_judge_refuses_weights_beyond_their_limits() -> None:
    problem = ro.Problem(results=table(), size=2, least_weight=0.2, most_weight=0.7)
    assert problem.why_not(problem.test(cases=[0, 1], weights=[0.3, 0.7])) is None
    reason = problem.why_not(problem.test(cases=[0, 1], weights=[0.25, 0.75]))
    assert reason == "its weight of 0.75 for '1' is not between 0.2 and 0.7"
    by_case = problem.with_rules(least_weight=dict.fromkeys(map(str, range(8)), 0.0), most_weight=[1.0] + [0.5] * 7)
    assert by_case.why_not(by_case.test(cases=[0, 1], weights=[0.9, 0.1])) is None
    assert by_case.why_not(by_case.test(cases=[1, 2], weights=[0.9, 0.1])) is not None


@pytest.mark.parametrize(
    ("cases", "reason"),
    [
        ([0, 1, 2], "the rule is a budget of 5, and its cases cost 6"),
        ([3, 4, 5], "the rule is at least 1 of 'a', and it has 0"),
        ([0, 3, 6], "the rule is at most one of '3', '6', and it has 2"),
        ([0, 4, 7], "the rule is all or none of '4', '5', and it has some of them"),
    ],
)
def test_the_judge_says_which_rule_is_broken_and_how(cases: list[int], reason: str) -> None:
    problem = ro.Problem(
        results=table(),
        size=3,
        costs=[1.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        budget=5,
        groups={"0": "a", "1": "a"},
        at_least={"a": 1},
        conflicts=[(3, 6)],
        together=[(4, 5)],
    )
    assert problem.why_not(problem.test(cases=cases, weights=[0.2, 0.3, 0.5])) == reason


def test_the_core_of_a_budget_says_what_the_others_cost() -> None:
    groups = ["math", "math", "math", "code", "code", "code", "code", "code"]
    costs = [2.0, 2.5, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    problem = ro.Problem(results=table(), size=3, costs=costs, budget=3, groups=groups, at_least={"math": 2})
    said = r"together: a budget of 3; at least 2 of 'math'\. The cheapest choice that keeps the others costs 4\.5\."
    with pytest.raises(ro.Infeasible, match=said) as no:
        ro.solve(problem)
    assert no.value.core == ("a budget of 3", "at least 2 of 'math'")
    with pytest.raises(ro.Infeasible):
        ro.agree(problem, backends=["exact", "scipy-milp"])


def test_a_core_is_found_among_rules_that_can_be_kept() -> None:
    problem = ro.Problem(
        results=table(),
        size=4,
        costs=1.0,
        budget=4,
        conflicts=[(0, 1, 2)],
        together=[(0, 3), (3, 1)],
        required_cases=[3],
        groups={"0": "a", "1": "a", "6": ["a", "b"]},
        at_most={"a": 2, "b": 1},
    )
    core = {rule.words for rule in minimal_core(all_rules(problem), problem.n_cases)}
    assert core == {
        "at most one of '0', '1', '2'",
        "all or none of '0', '3'",
        "all or none of '1', '3'",
        "'3' required",
    }


def test_a_budget_of_three_tenths_pays_for_three_cases_of_a_tenth() -> None:
    problem = ro.Problem(results=table(), size=3, costs=0.1, budget=0.3)
    for backend in ("exact", "scipy-milp", "pulp-highs", "regret-matching"):
        assert len(ro.solve(problem, backend).test.cases) == 3  # type: ignore[union-attr]
    with pytest.raises(ro.Infeasible):
        ro.solve(problem.with_rules(budget=0.2999))


def test_without_a_size_any_number_may_be_chosen_that_the_budget_pays_for() -> None:
    problem = ro.Problem(results=table(), costs=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], budget=7)
    assert problem.sizes == range(1, 4) and problem.size == 8
    best = min(
        (ro.solve(ro.Problem(results=table(), size=size, costs=problem.rules.costs, budget=7)) for size in (1, 2, 3)),
        key=lambda solution: solution.objective,
    )
    for backend in ("exact", "scipy-milp"):
        assert ro.solve(problem, backend).objective == pytest.approx(best.objective, abs=1e-7)
    with pytest.raises(ro.ProblemError, match="`size` may be left out only where there is a `budget`"):
        ro.Problem(results=table())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"budget": 2}, "`budget` needs `costs`"),
        ({"costs": [1.0] * 7}, r"`costs` must be a number or 8 of them, one per test case, got \(7,\)"),
        ({"costs": [-1.0] * 8}, "`costs` must be finite and not be negative, got -1"),
        ({"costs": 1.0, "budget": -1}, "`budget` must be a finite number that is not negative, got -1"),
        ({"groups": ["a"] * 7}, "`groups` must have an entry for each of the 8 test cases, got 7"),
        ({"groups": {"nobody": "a"}}, "unknown test case 'nobody'"),
        ({"groups": ["a"] * 8, "at_least": {"b": 1}}, "`at_least` speaks of the group 'b', which no test case is in"),
        ({"at_most": {"b": 1}}, "which no test case is in. `groups` are not given"),
        ({"groups": ["a"] * 8, "at_least": {"a": -1}}, "`at_least` of 'a' must be a whole number from 0 on, got -1"),
        ({"conflicts": [("0",)]}, "`conflicts` must be sets of two or more test cases"),
        ({"together": [("0", "x")]}, "unknown test case 'x'"),
        ({"least_weight": 0.6, "most_weight": 0.5}, "the least weight of test case '0' is above its most"),
        ({"most_weight": 1.5}, "`most_weight` must be finite and lie between 0 and 1, got 1.5"),
        ({"size_is": "about"}, "`size_is` must be 'exactly' or 'at most', got 'about'"),
    ],
)
def test_what_is_no_rule_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ro.ProblemError, match=message):
        ro.Problem(results=table(), size=2, **given)


def test_an_argument_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="Problem has no argument 'bugdet'"):
        ro.Problem(results=table(), size=2, bugdet=3)  # type: ignore[call-arg]


def test_one_number_is_a_quota_of_every_group() -> None:
    problem = ro.Problem(results=table(), size=3, groups=["a", "a", "b", "b", "c", "c", None, None], at_least=1)
    solution = ro.solve(problem)
    assert solution.test is not None
    assert sorted(case // 2 for case in solution.test.cases) == [0, 1, 2]


def test_a_backend_that_cannot_says_so_and_names_others() -> None:
    problem = ro.Problem(results=table(), size=2, costs=1.0, budget=2, most_weight=0.8)
    with pytest.raises(ro.Unsupported, match=r"does not handle limits to the weights of cases.*scipy-milp"):
        ro.solve(problem, "regret-matching")
    with pytest.raises(ro.Unsupported, match="rules about the choice, such as a budget"):
        ro.solve(problem.with_rules(most_weight=None), "kmeans-anchors")


def test_rules_are_part_of_a_problems_identity() -> None:
    plain = ro.Problem(results=table(), size=2)
    ruled = plain.with_rules(costs=1.0, budget=2)
    assert plain != ruled and ruled == plain.with_rules(costs=[1.0] * 8, budget=2.0)
    assert replace(ruled, size=3).rules == ruled.rules
    assert "a budget of 2" in repr(ruled)


def test_the_best_sets_are_ranked_among_those_that_keep_the_rules() -> None:
    problem = ro.Problem(results=table(), size=2, conflicts=[(0, 1), (2, 3), (4, 5)], costs=range(8), budget=9)
    ranking = ro.solve(problem, "exact", top=5).ranking
    values = sorted((Drawn(table(), 2, 0.01).least_loss(tuple(sorted(cases))), cases) for cases in problem.tuples())
    assert [each.objective for each in ranking] == pytest.approx([value for value, _ in values[:5]], abs=1e-7)
    assert all(problem.keeps_rules(each.test.cases) for each in ranking)
    everything = ro.solve(problem, "exact", top=100).ranking
    assert len(everything) == len(values)


# Proofs


def ruled(seed: int) -> ro.Problem:
    """A problem with rules about the choice, and sets that keep them."""
    rng = np.random.default_rng(seed)
    return ro.Problem(
        results=rng.random((9, 6)),
        size=3,
        measure=ro.CVaR(0.4),
        costs=np.round(rng.random(9), 1),
        budget=1.4,
        groups=["a", "b", "c"] * 3,
        at_least={"a": 1},
        conflicts=[(3, 4)],
        offset=bool(seed % 2),
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("exact_arithmetic", [False, True])
def test_a_certificate_is_checked_among_the_sets_that_keep_the_rules(seed: int, exact_arithmetic: bool) -> None:
    problem = ruled(seed)
    solution = ro.solve(problem, "exact", certificate=True)
    proof = solution.certificate
    assert proof is not None and proof.bound == pytest.approx(solution.objective, abs=1e-8)
    checked = ro.verify_certificate(problem, proof, exact_arithmetic=exact_arithmetic)
    assert checked.holds, checked.reason
    raised = replace(proof, bound=proof.bound + 1e-4)
    assert not ro.verify_certificate(problem, raised).holds
    # Without the rules better sets may be chosen, which nothing rules out.
    free = problem.with_rules(budget=None, at_least=None, conflicts=None)
    if ro.solve(free).objective < proof.bound - 1e-6:
        refused = ro.verify_certificate(free, replace(proof, problem_sha256=None))
        assert not refused.holds and "nothing rules out" in str(refused.reason)


@pytest.mark.parametrize("seed", range(4))
def test_a_certificate_is_one_for_any_number_of_cases(seed: int) -> None:
    problem = ruled(seed).with_rules(size_is="at most")
    solution = ro.solve(problem, "exact", certificate=True)
    proof = solution.certificate
    assert solution.objective == pytest.approx(ro.solve(problem, "scipy-milp").objective, abs=1e-7)
    assert proof is not None and proof.bound == pytest.approx(solution.objective, abs=1e-8)
    checked = ro.verify_certificate(problem, proof)
    assert checked.holds, checked.reason
    assert not ro.verify_certificate(problem, replace(proof, bound=proof.bound + 1e-4)).holds


def test_news_of_a_search_for_any_number_are_of_tests_that_keep_the_rules() -> None:
    news: list[ro.Progress] = []
    problem = ruled(0).with_rules(size_is="at most")
    solution = ro.solve(problem, "exact", progress=news.append)
    told = [each.test for each in news if each.test is not None]
    assert told and all(problem.why_not(test) is None for test in told)
    assert min(problem.objective(test) for test in told) == pytest.approx(solution.objective, abs=1e-9)


ANY_NUMBER: dict[str, Any] = {"size_is": "at most"}
LIMITS: dict[str, Any] = {"most_weight": 0.6}


@pytest.mark.parametrize(
    ("backend", "given"),
    [
        ("exact", ANY_NUMBER),
        ("exact", LIMITS),
        ("exact", ANY_NUMBER | LIMITS),
        ("regret-matching", ANY_NUMBER),
        ("local-search", ANY_NUMBER),
        ("cvxpy-clarabel", ANY_NUMBER | LIMITS),
    ],
)
def test_what_is_told_on_the_way_is_true_of_the_whole(backend: str, given: dict[str, Any]) -> None:
    problem = ruled(4).with_rules(**given)
    best = ro.solve(problem, "scipy-milp").objective
    news: list[ro.Progress] = []
    ro.solve(problem, backend, progress=news.append)
    for each in news:
        assert each.lower_bound <= best + 1e-7 and each.objective >= best - 1e-7
        if each.test is not None:
            assert problem.why_not(each.test) is None
            assert problem.objective(each.test) == pytest.approx(each.objective, abs=1e-7)


def test_a_certificate_that_lacks_cuts_is_refused_with_an_allowed_set() -> None:
    problem = ruled(2)
    proof = ro.solve(problem, "exact", certificate=True).certificate
    assert proof is not None
    without = replace(proof, cuts=proof.cuts[:1], exceptions=())
    refused = ro.verify_certificate(problem, without)
    assert not refused.holds
    assert refused.reason is not None
    names = refused.reason.removeprefix("nothing rules out ").split(", ")
    assert problem.keeps_rules([int(name) for name in names])


# Local search and baselines


@pytest.mark.parametrize("backend", ["local-search", "random", "minimax-uniform", "minimax-ttd-uniform"])
def test_heuristics_keep_the_rules(backend: str) -> None:
    for seed in range(0, 12, 2):
        problem = ruled(seed)
        solution = ro.solve(problem, backend)
        best = ro.solve(problem, "exact")
        assert solution.objective >= best.objective - 1e-9
        assert solution.lower_bound <= best.objective + 1e-9
        if backend == "local-search":
            assert solution.objective == pytest.approx(best.objective, abs=1e-8)


@pytest.mark.parametrize("given", [{}, ANY_NUMBER, LIMITS, ANY_NUMBER | LIMITS])
@pytest.mark.parametrize("backend", ["exact", "scipy-milp", "pulp-highs", "cvxpy-clarabel"])
def test_a_run_that_is_cut_short_claims_no_more_than_is_true(backend: str, given: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    problem = ro.Problem(
        results=rng.random((14, 10)), size=4, measure=ro.CVaR(0.2), costs=rng.uniform(0.5, 1.5, 14), budget=4.0
    ).with_rules(**given)
    best = ro.solve(problem, "scipy-milp").objective
    cut_short = ro.solve(problem, backend, time_limit_seconds=0.0)
    assert cut_short.lower_bound <= best + 1e-7 <= cut_short.objective + 2e-7
    if cut_short.limit is None:
        assert cut_short.objective == pytest.approx(best, abs=1e-6)
    if backend == "exact":
        assert cut_short.test is not None and cut_short.lower_bound > -np.inf


# What a sceptic tried


@pytest.mark.parametrize("given", [{"most_weight": 0.4}, {"least_weight": 0.1, "most_weight": 0.5}])
def test_a_ranking_that_is_cut_short_proves_nothing_of_other_sets(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However early the search without limits is stopped, the bound is true."""
    problem = ro.Problem(results=np.random.default_rng(2).random((12, 20)), size=4, measure=ro.CVaR(0.1), **given)
    best = ro.solve(problem, "scipy-milp").objective
    for most_looks in range(1, 60, 4):
        looks = iter(range(most_looks))
        monkeypatch.setattr(
            ro.Budget, "reached", lambda budget, looks=looks: None if next(looks, None) is not None else ro.Limit.TIME
        )
        solution = ro.solve(problem, "exact")
        assert solution.lower_bound <= best + 1e-8 <= solution.objective + 2e-8
        assert solution.status is not ro.Status.OPTIMAL or solution.objective == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("backend", ["exact", "scipy-milp", "pulp-highs", "local-search", "regret-matching"])
@pytest.mark.parametrize(
    ("costs", "budget", "size"),
    [
        ([1.0] * 7 + [1e9], 2.5, 2),  # a dear case is no excuse
        ([1.5] * 7 + [1e9], 3.1, 2),
        ([0.0, 1e-9, 1e-9, 1e-9, 0.0, 1.0, 1.0, 1.0], 0.0, 2),
        ([1e6, 1e6 + 1, 1e6 + 2, 1e6 + 3, 1e6 + 4, 1e6, 1e6, 1e6], 3e6, 3),
        (np.array([4, 3, 2, 1, 4, 3, 2, 1]) * 1e-8, 5e-8, 2),
    ],
)
def test_a_budget_is_kept_whatever_its_unit(backend: str, costs: Any, budget: float, size: int) -> None:
    problem = ro.Problem(results=table(), size=size, costs=costs, budget=budget)
    solution = ro.solve(problem, backend)
    assert solution.test is not None
    assert sum(np.array(costs)[list(solution.test.cases)]) <= budget * (1 + 5e-7)
    allowed = [
        cases
        for cases in itertools.combinations(range(8), size)
        if sum(np.array(costs)[list(cases)]) <= budget * (1 + 5e-7)
    ]
    assert sorted(tuple(sorted(cases)) for cases in problem.tuples()) == allowed
    best = min(Drawn(table(), size, 0.01).least_loss(cases) for cases in allowed)
    assert solution.objective == pytest.approx(best, abs=1e-6 if backend != "regret-matching" else 0.02)


def test_a_dear_case_does_not_make_the_budget_loose() -> None:
    with pytest.raises(ro.Infeasible, match=r"a budget of 2\.5\. The cheapest choice that keeps the others costs 4\."):
        ro.solve(ro.Problem(results=table(), size=4, costs=[1.0] * 7 + [1e9], budget=2.5))
    with pytest.raises(ro.Infeasible, match="costs 2e-08"):
        ro.solve(ro.Problem(results=table(), size=2, costs=np.array([4, 3, 2, 1, 4, 3, 2, 1]) * 1e-8, budget=1e-8))


@pytest.mark.parametrize("given", [{"most_weight": 0.3333333}, {"most_weight": 0.3333332}, {"least_weight": 0.3333334}])
def test_limits_that_sum_to_one_up_to_rounding_will_do(given: dict[str, float]) -> None:
    problem = ro.Problem(results=table(), size=3, **given)  # type: ignore[arg-type]
    by_milp = ro.solve(problem, "scipy-milp")
    assert ro.solve(problem, "exact").objective == pytest.approx(by_milp.objective, abs=1e-5)


def test_rules_of_other_cases_are_refused_and_can_be_cut_down() -> None:
    rules = ro.Problem(
        results=table(),
        size=2,
        costs=range(8),
        budget=9,
        conflicts=[(1, 2), (6, 7)],
        together=[(0, 3, 4)],
        groups={"1": "a", "6": "a"},
        at_most={"a": 1},
    ).rules
    with pytest.raises(ro.ProblemError, match="the rules are those of other test cases: there are 5 here"):
        ro.Problem(results=table()[:5], size=2, rules=rules)
    kept = [1, 4, 3, 6, 7]
    fewer = ro.Problem(results=table()[kept], size=2, rules=rules.of_cases(kept))
    assert fewer.rules.costs is not None and fewer.rules.costs.tolist() == kept
    assert fewer.rules.conflicts == ((3, 4),) and fewer.rules.together == ((1, 2),)
    assert fewer.rules.groups == {"a": (0, 3)}


def test_what_would_be_ignored_is_refused() -> None:
    with pytest.raises(ro.ProblemError, match="`at_least` is for every group, and `groups` are not given"):
        ro.Problem(results=table(), size=2, at_least=3)
    with pytest.raises(ro.ProblemError, match="`size_is` goes with `size`"):
        ro.Problem(results=table(), size_is="exactly", costs=1, budget=3)
    pairs = ro.Problem(results=table(), size=2, conflicts=np.array([[1, 2], [3, 4]]))
    assert pairs.rules.conflicts == ((1, 2), (3, 4))
    with pytest.raises(ro.Unsupported, match="step by step"):
        ro.select_iteratively(ro.Problem(results=table(), size=3, most_weight=0.4))


@pytest.mark.parametrize("given", [LIMITS, {"least_weight": 0.15}, ANY_NUMBER | LIMITS, LIMITS | {"least_weight": 0.1}])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("exact_arithmetic", [False, True])
def test_a_certificate_covers_limits_to_weights(seed: int, given: dict[str, Any], exact_arithmetic: bool) -> None:
    problem = ruled(seed).with_rules(**given)
    solution = ro.solve(problem, "exact", certificate=True)
    assert solution.objective == pytest.approx(ro.solve(problem, "scipy-milp").objective, abs=1e-7)
    proof = solution.certificate
    assert proof is not None and proof.bound == pytest.approx(solution.objective, abs=1e-8)
    checked = ro.verify_certificate(problem, proof, exact_arithmetic=exact_arithmetic)
    assert checked.holds, checked.reason
    assert checked.bound == pytest.approx(solution.objective, abs=1e-7)
    raised = ro.verify_certificate(problem, replace(proof, bound=proof.bound + 1e-4), exact_arithmetic=exact_arithmetic)
    assert not raised.holds or raised.bound <= solution.objective + 1e-7
    # Without limits some set is better, and the same cuts and exceptions prove no more than that.
    free = problem.with_rules(least_weight=None, most_weight=None)
    less = ro.verify_certificate(free, replace(proof, problem_sha256=None))
    assert not less.holds or less.bound <= ro.solve(free).objective + 1e-7
