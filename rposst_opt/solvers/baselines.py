"""Simple ways to choose test cases: the paper's ablations, and two that practitioners use. None proves anything.

The paper's baselines (section "Deterministic CVaR RPOSST") weigh the chosen cases alike, and differ in what the
antagonist may choose:

======================  ==========================================  =======================
name                    policies                                    targets
======================  ==========================================  =======================
`minimax-uniform`       the worst one                               the worst one
`minimax-ttd-uniform`   all alike                                   the worst one
`minimax-tnp-uniform`   the worst one                               the uniform one
`miniaverage-uniform`   all alike                                   the uniform one
======================  ==========================================  =======================

Worst means worst among the problem's own policies and targets; probabilities play no part. Three of the four are the
first round of regret matching+ with another measure and other targets, and are played as that. `iterative-minimax` adds
one case at a time to keep the largest error small, and may take the same case again: then its weight grows, and cases
of weight zero fill the test up.

`kmeans-anchors` clusters test cases by their results, takes the case nearest to each centre, and weighs it by the share
of cases in its cluster. `random` draws cases, and weighs them alike.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.contract import Budget, Candidate, Capabilities, Progress, Stats
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.feasibility import all_rules, find_choice
from rposst_opt.measures import Mean, Measure, WorstCase
from rposst_opt.problem import ASSEMBLY_NEEDS, Need, Problem
from rposst_opt.results import full_scores
from rposst_opt.solvers.regret_matching import RegretMatching

TIE_TOLERANCE = 1e-12  # in units of the largest loss
DIGITS = 12  # to which cases' mean results are told apart
CHUNK = 4096  # tuples that are scored at a time


def claims_nothing(
    method: str, *, requires: tuple[str, ...] = (), extra: str | None = None, keeps_rules: bool = False
) -> Capabilities:
    """The capabilities of a selection that answers every problem, or all without rules, and guarantees nothing."""
    return Capabilities(
        method=method,
        handles=frozenset(Need) - (ASSEMBLY_NEEDS - {Need.CHOICE_RULES} if keeps_rules else ASSEMBLY_NEEDS),
        finds_optimum=False,
        is_heuristic=True,
        weighs_freely=False,
        proves="nothing",
        tolerance=1e-9,
        requires=requires,
        extra=extra,
    )


@dataclass(frozen=True, kw_only=True)
class UniformSelection:
    """The best cases with equal weights, against an antagonist who may choose policies, targets, both or neither.

    Parameters
    ----------
    worst_policy, worst_target : bool
        Whether the worst is looked at; if not, all policies count alike, and the target is the uniform one.
    threads : int, optional
        All cores by default; the answer is the same with any number.
    """

    worst_policy: bool
    worst_target: bool
    threads: int | None = None

    @property
    def capabilities(self) -> Capabilities:
        """It handles everything and proves nothing."""
        policies = "the worst policy" if self.worst_policy else "the average policy"
        targets = "the worst target" if self.worst_target else "the uniform target"
        method = f"equal weights, the least error for {policies} and {targets}"
        return claims_nothing(method, requires=("numba",), keeps_rules=True)

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Look at every tuple with equal weights."""
        if self.worst_target and not self.worst_policy:
            return _least_average_for_the_worst_target(problem, budget)
        measure: Measure = WorstCase() if self.worst_policy else Mean()
        targets = problem.targets if self.worst_target else np.full((1, problem.n_cases), 1 / problem.n_cases)
        alike = np.full((problem.n_policies, len(targets)), 1 / (problem.n_policies * len(targets)))
        names = problem.target_names if self.worst_target else ("0",)
        simpler = replace(problem, measure=measure, targets=targets, probabilities=alike, target_names=names)
        with budget.in_terms_of(problem, lambda test: test):
            played = RegretMatching(rounds=1, prune=False, threads=self.threads).solve(simpler, budget)
        return replace(played, lower_bound=-math.inf)


def _least_average_for_the_worst_target(problem: Problem, budget: Budget) -> Candidate:
    """Minimise, over tuples, the largest average loss over policies that a target can cause."""
    scores_of_targets = full_scores(problem.targets, problem.results)  # (n_targets, n_policies)
    best, chosen, done, limit = math.inf, next(problem.tuples()), 0, None
    tuples = problem.tuples()
    with budget.listening_for_interrupts():
        while chunk := list(itertools.islice(tuples, CHUNK)):
            scores = problem.results[np.array(chunk, dtype=np.int64)].mean(axis=1)
            worst = np.full(len(chunk), -math.inf)
            for target in scores_of_targets:
                worst = np.maximum(worst, problem.loss.value(scores, target).mean(axis=1))
            at = _first_least(worst, problem)
            if worst[at] < best - problem.allowance(TIE_TOLERANCE):
                best, chosen = float(worst[at]), chunk[at]
            done += len(chunk)
            if budget.is_heard:
                test = uniform_test(problem, chosen)
                objective = problem.objective(test)
                budget.tell(Progress(done=done, total=problem.n_tuples, objective=objective, test=test))
            limit = budget.reached() if done < problem.n_tuples else None
            if limit is not None:
                break
    test = uniform_test(problem, chosen)
    return Candidate(test=test, lower_bound=-math.inf, limit=limit, stats=Stats(tuples=done))


def _first_least(values: FloatArray, problem: Problem) -> int:
    """The place of the least value; of those that differ by rounding alone, the first."""
    return int(np.argmax(values <= values.min() + problem.allowance(TIE_TOLERANCE)))


def uniform_test(problem: Problem, cases: Iterable[int]) -> EfficientTest:
    """These cases with equal weights."""
    cases = list(cases)
    return problem.test(cases=cases, weights=np.full(len(cases), 1 / len(cases)))


@dataclass(frozen=True, kw_only=True)
class IterativeMinimax:
    """One case at a time, each time the one that keeps the largest loss least; a case may be taken again."""

    capabilities: ClassVar[Capabilities] = claims_nothing("one case at a time, the least largest error, equal weights")

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Take as many cases as a test has, the required ones once each."""
        counts = np.zeros(problem.n_cases, dtype=np.int64)
        counts[list(problem.required_cases)] = 1
        allowed = np.array(problem.eligible_cases)
        policies, scores_of_targets = problem.scenarios.policies, problem.scenarios.full_scores
        for taken in range(len(problem.required_cases) + 1, problem.n_chosen + 1):
            scores = (counts @ problem.results + problem.results[allowed]) / taken
            largest = problem.loss.value(scores[:, policies], scores_of_targets).max(axis=1)
            counts[allowed[_first_least(largest, problem)]] += 1
        return Candidate(test=_filled_up(problem, counts.astype(np.float64)), lower_bound=-math.inf)


def _filled_up(problem: Problem, weights: FloatArray) -> EfficientTest:
    """A test of these weights of all cases, with selectable cases of weight zero where it would have too few."""
    used = [case for case in problem.selectable_cases if weights[case] > 0]
    spare = [case for case in problem.selectable_cases if weights[case] == 0]
    cases = sorted([*problem.required_cases, *used, *spare[: problem.size - len(used)]])
    return problem.test(cases=cases, weights=weights[cases] / weights[cases].sum())


@dataclass(frozen=True, kw_only=True)
class RandomSubset:
    """Cases drawn at random, with equal weights; with rules, those that keep them and have the least random numbers.

    Parameters
    ----------
    seed : int
        The same seed draws the same cases.
    """

    seed: int = 0

    capabilities: ClassVar[Capabilities] = claims_nothing("cases at random, with equal weights", keeps_rules=True)

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Draw once."""
        rng = np.random.default_rng(self.seed)
        if problem.rules.choose:
            # Not every set is as likely as any other, but each that keeps the rules can be the one.
            cases = find_choice(all_rules(problem), problem.n_cases, rng.random(problem.n_cases))
            assert cases is not None  # the problem was checked before it was handed over
            return Candidate(test=uniform_test(problem, cases), lower_bound=-math.inf)
        drawn = rng.choice(np.array(problem.selectable_cases), problem.size, replace=False).tolist()
        return Candidate(test=uniform_test(problem, [*problem.required_cases, *drawn]), lower_bound=-math.inf)


@dataclass(frozen=True, kw_only=True)
class StratifiedRandom:
    """Cases drawn at random, one from each of as many groups, from the hardest to the easiest, with equal weights.

    Cases are sorted by their mean result and cut into groups of equal size, so that every draw has easy and hard cases
    alike. Each case is as likely as any other, up to the sizes of groups.

    Parameters
    ----------
    seed : int
        The same seed draws the same cases.
    """

    seed: int = 0

    capabilities: ClassVar[Capabilities] = claims_nothing("cases at random from hard to easy, with equal weights")

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Draw once."""
        rng = np.random.default_rng(self.seed)
        selectable = np.array(problem.selectable_cases)
        means = np.round((problem.results[selectable] / problem.unit).mean(axis=1), DIGITS)
        groups = np.array_split(selectable[np.argsort(means, kind="stable")], problem.size)
        drawn = [int(rng.choice(group)) for group in groups]
        return Candidate(test=uniform_test(problem, [*problem.required_cases, *drawn]), lower_bound=-math.inf)


@dataclass(frozen=True, kw_only=True)
class KMeansAnchors:
    """The test cases nearest to the centres of clusters, weighed by the sizes of the clusters (scikit-learn's k-means).

    Required cases take the clusters they are nearest to; forbidden ones are clustered, but not chosen.

    Parameters
    ----------
    seed : int
        The same seed makes the same clusters.
    """

    seed: int = 0

    capabilities: ClassVar[Capabilities] = claims_nothing(
        "k-means of test cases, the case nearest to each centre, weighed by cluster",
        requires=("sklearn",),
        extra="kmeans",
    )

    def solve(self, problem: Problem, budget: Budget) -> Candidate:
        """Cluster all cases, and give every cluster a case."""
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        distinct = len(np.unique(problem.first_alike))
        with threadpool_limits(1):  # tables are small, and threads that wait for each other take most of the time
            clusters = KMeans(min(problem.n_chosen, distinct), n_init=10, random_state=self.seed).fit(problem.results)
        distances = clusters.transform(problem.results)  # (n_cases, n_clusters)
        masses = np.bincount(clusters.labels_, minlength=distances.shape[1]).astype(np.float64)
        anchors = _assign(distances, problem.required_cases, problem.selectable_cases)
        weights = np.zeros(problem.n_cases)
        for cluster, case in anchors.items():
            weights[case] += masses[cluster]
        return Candidate(test=_filled_up(problem, weights), lower_bound=-math.inf)


def _assign(distances: FloatArray, required: tuple[int, ...], selectable: tuple[int, ...]) -> dict[int, int]:
    """A case for every cluster: required cases choose the nearest cluster that is left, then clusters choose."""
    left = list(range(distances.shape[1]))
    anchors: dict[int, int] = {}
    for case in required:
        if left:
            cluster = min(left, key=lambda cluster: distances[case, cluster])
            anchors[cluster] = case
            left.remove(cluster)
    free = list(selectable)
    for cluster in left:
        case = min(free, key=lambda case: distances[case, cluster])
        anchors[cluster] = case
        free.remove(case)
    return anchors
