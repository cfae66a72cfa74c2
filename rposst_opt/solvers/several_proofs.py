"""Problems that take the exact solver several proofs: any number of cases, and weights with limits."""

import math
from dataclasses import replace
from typing import NamedTuple, Protocol

from rposst_opt.assembly import SizeIs
from rposst_opt.certificate import Certificate, CertificateCut
from rposst_opt.contract import Budget, Candidate, Limit, Progress
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.feasibility import all_rules, can_be_kept
from rposst_opt.problem import Need, Problem
from rposst_opt.solvers.limited_weights import LimitedWeights

MARGIN = 1e-10  # in units of the largest objective: a test must be better than the one before by this
FIRST_SETTLED, MOST_SETTLED = 32, 20_000  # sets that are settled with limits to weights; at first, and in the end


class Proved(NamedTuple):
    """What comes of one proof, and a bound beside it (`solvers.besides`), which holds for fewer cases too."""

    candidate: Candidate
    relaxation_bound: float


class Prove(Protocol):
    """How a problem of a fixed number of cases and without limits to weights is solved."""

    def __call__(self, problem: Problem, *, below: float = math.inf, top: int | None = None) -> Proved:
        """The best test, if it is below that value, or the best so many sets."""


def solve_in_parts(problem: Problem, prove: Prove, budget: Budget) -> Candidate:
    """Solve a problem whose number of cases is not fixed, or whose weights have limits."""
    if Need.ANY_NUMBER in problem.needs:
        return _for_each_number(problem, prove, budget)
    return _of_one_number(problem, prove, budget).candidate


def _of_one_number(problem: Problem, prove: Prove, budget: Budget, below: float = math.inf) -> Proved:
    if Need.WEIGHT_LIMITS in problem.needs:
        return _LimitedSearch(problem, prove, budget, below).run()
    return prove(problem, below=below)


def _for_each_number(problem: Problem, prove: Prove, budget: Budget) -> Candidate:
    """The best test of any number of cases: a search for each, from the most on, for tests better than before.

    Where more cases may be chosen they are mostly better, so that a search for fewer is soon over. After a limit the
    relaxation's bound is all that is proved.
    """
    best: Candidate | None = None
    below, bound, limit = math.inf, math.inf, None
    cuts: list[CertificateCut] = []
    exceptions: list[tuple[int, ...]] = []
    for size in reversed(problem.sizes):
        of_size = replace(problem.with_rules(size_is=SizeIs.EXACTLY), size=size)
        if not can_be_kept(all_rules(of_size), problem.n_cases):
            continue
        with budget.telling(lambda progress: replace(progress, lower_bound=-math.inf)):  # it is that of this number
            candidate, relaxation_bound = _of_one_number(of_size, prove, budget, below)
        bound, limit = min(bound, candidate.lower_bound), candidate.limit
        if candidate.certificate is not None:
            cuts += candidate.certificate.cuts
            exceptions += candidate.certificate.exceptions
        if candidate.test is not None:
            best, below = candidate, problem.objective(candidate.test)
        if limit is not None:
            bound = min(bound, relaxation_bound) if size > problem.sizes[0] else bound
            break
    assert best is not None  # some number of cases keeps the rules
    is_whole = best.certificate is not None and limit is None
    certificate = Certificate(bound=bound, cuts=tuple(cuts), exceptions=tuple(exceptions)) if is_whole else None
    # The time is that of all searches, which the last one tells; what else is counted is its own.
    return replace(best, lower_bound=bound, limit=limit, certificate=certificate, stats=candidate.stats)


class _LimitedSearch:
    """Sets in the order of their values without limits, each settled with them (`solvers.limited_weights`)."""

    def __init__(self, problem: Problem, prove: Prove, budget: Budget, below: float) -> None:
        self.problem, self.prove, self.budget = problem, prove, budget
        self.limited, self.settled = LimitedWeights(problem), set[tuple[int, ...]]()
        self.best: EfficientTest | None = None
        self.objective, self.bound = below, math.inf  # of the best test, and of all sets that were settled

    def run(self) -> Proved:
        """Settle sets until no other can be better, or a limit is reached."""
        count = FIRST_SETTLED
        while True:
            with self.budget.telling(self._without_limits):
                ranked, relaxation_bound = self.prove(self.problem, top=count)
            frontier, limit = self._settle(ranked)
            if len(ranked.ranking) < count and limit is None:
                frontier = math.inf  # there are no other sets
            if limit is not None or not self._is_better(frontier):
                break
            if count >= MOST_SETTLED:
                limit = Limit.SOLVER
                break
            count = min(4 * count, MOST_SETTLED)
        bound, proof = min(self.bound, frontier, self.objective), ranked.certificate
        if proof is not None:  # its cuts rule out all sets but those it names, which a checker settles with limits
            proof = None if limit is not None else replace(proof, bound=min(proof.bound, bound))
        answer = replace(ranked, test=self.best, lower_bound=bound, ranking=(), limit=limit, one_of_many=True)
        return Proved(replace(answer, certificate=proof), relaxation_bound)

    def _settle(self, ranked: Candidate) -> tuple[float, Limit | None]:
        """Settle the ranked sets that may be better; what all other sets cannot be below, and what has ended it.

        Where a limit has ended the ranking, other sets may be anywhere above its bound.
        """
        margin, value = MARGIN * self.problem.unit, -math.inf
        limit = ranked.limit
        for test in ranked.ranking:
            value = self.problem.objective(test)
            if not self._is_better(value):
                break
            if test.cases not in self.settled:
                if self.best is not None and limit is None:
                    limit = self.budget.reached()
                if self.best is not None and limit is not None:
                    break
                self._settle_one(test.cases)
        return ranked.lower_bound if ranked.limit is not None else value - margin, limit

    def _settle_one(self, cases: tuple[int, ...]) -> None:
        self.settled.add(cases)
        lower, upper, weights = self.limited.settle(cases)
        self.bound = min(self.bound, lower)
        if self._is_better(upper):
            self.best, self.objective = self.problem.test(cases=cases, weights=weights), upper

    def _is_better(self, value: float) -> bool:
        return value < self.objective - MARGIN * self.problem.unit

    def _without_limits(self, progress: Progress) -> Progress:
        """What a search that knows no limits says: its bound is true of weights with limits, its tests are not."""
        return replace(progress, test=None, objective=self.objective)
