"""Which cases does an exact search look at? Of cases that are alike, one; and what any other set is called there."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rposst_opt.arrays import IntArray
from rposst_opt.assembly import rows_of
from rposst_opt.certificate import CertificateCut
from rposst_opt.feasibility import all_rules, find_choice
from rposst_opt.problem import Problem
from rposst_opt.solvers.kernels.choice_rules import ChoiceRules, make_choice_rules


def cases_to_search(problem: Problem, *, everything: bool) -> tuple[IntArray, int]:
    """The cases that can be chosen, then the required ones; and how many of these there are.

    Of cases with equal results, up to rounding, only the first is needed, as long as enough remain.
    """
    selectable, required = list(problem.selectable_cases), list(problem.required_cases)
    if not everything:
        first_alike = problem.first_alike.tolist()
        taken = {first_alike[case] for case in required}
        distinct = []
        for case in selectable:
            if first_alike[case] not in taken:
                taken.add(first_alike[case])
                distinct.append(case)
        spare = sorted(set(selectable).difference(distinct))
        selectable = sorted(distinct + spare[: max(0, problem.size - len(distinct))])
    return np.array(selectable + required, dtype=np.int64), len(required)


def as_searched(problem: Problem, cases: IntArray, chosen: IntArray) -> tuple[int, ...]:
    """A set of the problem's cases as positions among those searched, without the required ones, ascending.

    A case that is not searched has the results of one that is; where the set has both, others fill the place.

    Parameters
    ----------
    problem : Problem
    cases : ndarray of int
        Those searched, with the required ones at the end, as `cases_to_search` has them.
    chosen : ndarray of int
        The set, as positions in the problem.
    """
    n_selectable = len(cases) - len(problem.required_cases)
    place = {int(case): at for at, case in enumerate(cases[:n_selectable])}
    free = [int(case) for case in chosen if case not in problem.required_cases]
    alike = [case if case in place else problem.first_alike[case] for case in free]
    kept = {place[case] for case in alike if case in place}
    spare = [at for at in range(n_selectable) if at not in kept]
    return tuple(sorted([*kept, *spare[: problem.size - len(kept)]]))


def cuts_as_stated(problem: Problem, cases: IntArray, cuts: Iterable[CertificateCut]) -> tuple[CertificateCut, ...]:
    """Cuts that were recorded by a search of these cases, in the problem's own units and positions."""
    # In the arrays' units a slope is that of the scaled loss by the scaled error.
    unit = problem.unit / (float(np.ptp(problem.results)) or 1.0)
    return tuple(replace(cut, pulls=cut.pulls * unit, noisy_cases=cases[cut.noisy_cases]) for cut in cuts)


# Rules about the choice


def searched_rules(problem: Problem, cases: IntArray) -> ChoiceRules:
    """The rules as the search reads them, over those of the cases searched that may be chosen."""
    selectable = cases[: len(cases) - len(problem.required_cases)].tolist()
    return make_choice_rules(rows_of(problem.choice_rules, selectable, problem.required_cases), problem.size)


def first_choice(problem: Problem, cases: IntArray) -> tuple[int, ...]:
    """Some tuple that keeps the rules, as positions among the cases searched: the first, if there are no rules."""
    if not problem.rules.choose:
        return tuple(range(problem.size))
    choice = find_choice(all_rules(problem), problem.n_cases)
    assert choice is not None  # the problem was checked before it was handed over
    place_of = {int(case): place for place, case in enumerate(cases)}
    return tuple(sorted(place_of[case] for case in choice if case not in problem.required_cases))
