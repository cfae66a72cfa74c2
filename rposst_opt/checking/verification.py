"""Does a certificate prove its bound? Every cut is checked, and that no set of test cases is left that none rules out.

A cut rules out the sets on which it is nowhere below the bound (`rposst_opt.certificate`). So a set that no cut rules
out has, for every cut, a case at which the cut is below the bound: it hits the set of such cases. Whether that can be
is asked of `hitting_sets`, which accounts for all sets of cases without looking at each. For a set that the certificate
names as an exception there is the set of all other cases: it alone, among sets of as many cases, does not hit that. And
it is solved again, by itself (`one_set`).
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rposst_opt.assembly import least_average
from rposst_opt.certificate import (
    CHECK_TOLERANCE,
    BoolArray,
    Certificate,
    CertificateCut,
    checked_values,
    problem_digest,
)
from rposst_opt.checking.hitting_sets import LinearRule, Search, as_bits, find_allowed_hitting_set, find_hitting_set
from rposst_opt.checking.one_set import best_cut
from rposst_opt.checking.rationals import RationalCuts
from rposst_opt.errors import ProblemError
from rposst_opt.problem import Need, Problem

MOST_EXCEPTIONS = 1_000  # each is solved again, which takes some hundredths of a second


class Refused(ProblemError):
    """A certificate does not prove what it says; the message is the reason."""


@dataclass(frozen=True)
class Verification:
    """What came of checking a certificate.

    Attributes
    ----------
    holds : bool
    reason : str or None
        What is wrong, if anything is.
    n_checked, n_tuples : int
        How many sets of test cases are accounted for, and how many there are: all of them if the certificate holds.
    bound : float
        No test has an objective below it: the bound of the certificate, or what is proved of a set that it names as an
        exception, if that is less; -inf if the certificate does not hold.
    n_nodes : int
        The size of the search that accounts for them.
    """

    holds: bool
    reason: str | None
    n_checked: int
    n_tuples: int
    bound: float = -math.inf
    n_nodes: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every set of test cases is accounted for."""
        return self.n_checked == self.n_tuples


def verify_certificate(
    problem: Problem,
    certificate: Certificate,
    *,
    samples: int | None = None,
    seed: int | None = None,
    exact_arithmetic: bool = False,
    most_exceptions: int = MOST_EXCEPTIONS,
) -> Verification:
    """Check every cut, and that every set of test cases is ruled out by one, or named as an exception and solved again.

    All sets are accounted for, however many there are; that takes as long as the proof is large.

    Parameters
    ----------
    problem : Problem
    certificate : Certificate
    samples, seed
        Without effect, and deprecated: sets of test cases are not drawn any more.
    exact_arithmetic : bool
        Whether cuts are worked out in rational numbers (`rposst_opt.checking.rationals`), which takes some
        milliseconds for each. What is proved then holds to the last digit, for the problem that the floats state;
        otherwise it holds up to rounding, by ``problem.allowance(1e-9)``.
    most_exceptions : int
        A certificate with more exceptions is refused, since each of them takes time.
    """
    if samples is not None or seed is not None:
        said = "`samples` and `seed` have no effect: all sets of test cases are accounted for. Leave them out."
        warnings.warn(said, DeprecationWarning, stacklevel=2)
    try:
        _check_form(problem, certificate, most_exceptions)
        cuts = _cuts_of(problem, exact_arithmetic=exact_arithmetic)
        left = _left_to_hit(problem, certificate, cuts)
        search = left.search()
        if search.found is not None:
            names = [left.problem.case_names[case] for case in left.filled_up(search.found)]
            raise Refused(f"nothing rules out {', '.join(names)}")
        bound = certificate.bound
        for exception in set(certificate.exceptions):  # of each no more is worked out than that it is not below
            bound = min(bound, _bound_of(left.problem, exception, cuts, wanted=bound))
    except Refused as refusal:
        return Verification(False, str(refusal), 0, problem.n_tuples)
    return Verification(True, None, problem.n_tuples, problem.n_tuples, bound, search.nodes)


@dataclass(frozen=True)
class HittingProblem:
    """Which set of test cases does a certificate not account for? One that hits all of these sets.

    Attributes
    ----------
    problem : Problem
        As solvers are given it (`Problem.stated`).
    sets : tuple of int
        For every cut the cases at which it is below the bound, and for every exception the cases that it does not have;
        as bits.
    """

    problem: Problem
    sets: tuple[int, ...]

    def search(self) -> Search:
        """Look for cases that hit all sets together with the required ones, not more than are to be chosen.

        Where there are rules about the choice, they must be kept.
        """
        asked = {
            "candidates": as_bits(self.problem.selectable_cases),
            "required": as_bits(self.problem.required_cases),
        }
        if Need.ANY_NUMBER not in self.problem.needs and not self.problem.choice_rules:
            return find_hitting_set(self.sets, self.problem.size, **asked)
        rules = [
            LinearRule(rule.coefficients.tolist(), rule.low - rule.slack, rule.high + rule.slack)
            for rule in self.problem.choice_rules
        ]
        nodes = 0
        for size in self.problem.sizes:
            found = find_allowed_hitting_set(self.sets, size, **asked, rules=rules)
            nodes += found.nodes
            if found.found is not None:
                return Search(found.found, nodes)
        return Search(None, nodes)

    def filled_up(self, chosen: Sequence[int]) -> tuple[int, ...]:
        """A whole set of test cases that has these and hits whatever they hit."""
        if self.problem.choice_rules or Need.ANY_NUMBER in self.problem.needs:
            return tuple(sorted([*self.problem.required_cases, *chosen]))
        others = [case for case in self.problem.selectable_cases if case not in chosen]
        return tuple(sorted([*self.problem.required_cases, *chosen, *others[: self.problem.size - len(chosen)]]))


def hitting_problem(problem: Problem, certificate: Certificate, *, exact_arithmetic: bool = False) -> HittingProblem:
    """What a certificate has to show that it has no solution; a certificate that is none is `Refused`."""
    _check_form(problem, certificate, len(certificate.exceptions))
    return _left_to_hit(problem, certificate, _cuts_of(problem, exact_arithmetic=exact_arithmetic))


class Cuts(Protocol):
    """What the cuts of a certificate say, in one arithmetic or another."""

    def below(self, cuts: Sequence[CertificateCut], bound: float) -> Iterator[BoolArray | str]:
        """For every cut whether it is below the bound, case by case; or why it is none."""

    def least(self, cut: CertificateCut, cases: Sequence[int]) -> float:
        """What a cut proves for tests on these cases."""


class RoundedCuts:
    """Cuts in floats: whatever rounding may have taken from them is allowed for."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.allowance = problem, problem.allowance(CHECK_TOLERANCE)

    def below(self, cuts: Sequence[CertificateCut], bound: float) -> Iterator[BoolArray | str]:
        """For every cut whether it is below the bound, case by case; or why it is none. What is not a number is."""
        for values in checked_values(self.problem, cuts):
            yield values if isinstance(values, str) else ~(values >= bound - self.allowance)

    def least(self, cut: CertificateCut, cases: Sequence[int]) -> float:
        """What a cut proves for tests on these cases, with weights within their limits; nothing if it has overflown."""
        least = least_average(cut.values(self.problem)[list(cases)], *self.problem.rules.limits_of(cases))
        return least if math.isfinite(least) else -math.inf


def _cuts_of(problem: Problem, *, exact_arithmetic: bool) -> Cuts:
    return RationalCuts(problem.stated) if exact_arithmetic else RoundedCuts(problem.stated)


def _check_form(problem: Problem, certificate: Certificate, most_exceptions: int) -> None:
    """Refuse a certificate of another problem, without a bound, or with exceptions that are none or too many."""
    if certificate.problem_sha256 is not None and certificate.problem_sha256 != problem_digest(problem):
        raise Refused("it is about another problem")
    if not math.isfinite(certificate.bound):
        raise Refused("its bound is not a finite number")
    if len(set(certificate.exceptions)) > most_exceptions:
        raise Refused(
            f"it names {len(set(certificate.exceptions)):,} sets of test cases as exceptions, and not more than "
            f"{most_exceptions:,} are solved again unless more are asked for"
        )
    stated = problem.stated
    selectable, required = set(stated.selectable_cases), set(stated.required_cases)
    for number, cases in enumerate(certificate.exceptions):
        chosen = selectable & set(cases)
        if len(chosen) not in stated.sizes or set(cases) != chosen | required:
            raise Refused(f"exception {number} is no set of test cases that the problem asks for")


def _left_to_hit(problem: Problem, certificate: Certificate, cuts: Cuts) -> HittingProblem:
    """The sets that a set of cases must hit to be left over; a cut that is none is refused."""
    stated = problem.stated
    sets = []
    for number, is_below in enumerate(cuts.below(certificate.cuts, certificate.bound)):
        if isinstance(is_below, str):
            raise Refused(f"cut {number} is none: {is_below}")
        sets.append(int.from_bytes(np.packbits(is_below, bitorder="little").tobytes(), "little"))
    everyone = as_bits(stated.selectable_cases)
    sets += [everyone & ~as_bits(cases) for cases in certificate.exceptions]
    return HittingProblem(stated, tuple(sets))


def _bound_of(stated: Problem, cases: Sequence[int], cuts: Cuts, wanted: float) -> float:
    """What is proved of tests on these cases, by a cut of our own that is checked like all others."""
    cut = best_cut(stated, cases, wanted)
    reason = cut.why_not(stated)
    if reason is not None:
        names = ", ".join(stated.case_names[case] for case in cases)
        raise Refused(f"the exception {names} could not be solved again: {reason}")
    return cuts.least(cut, cases)
