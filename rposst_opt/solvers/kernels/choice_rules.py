"""Which cases may still be chosen? Rules about the choice, in a search that adds one case after the other.

A rule is low ≤ Σ a_x y_x ≤ high over the cases that are chosen. With k cases yet to be chosen after x, it can still be
kept only if

    total + a_x + (the least sum of k other cases) ≤ high    and    total + a_x + (the greatest) ≥ low

and where x is the last one, k = 0, only if it is kept. Whatever has the chosen cases and x has k others: so a case that
fails this is in no set that keeps the rules, now or farther down, and it is excluded below the node. The rest of the
search knows nothing of rules. Quotas "at least" of groups that have no case in common are also looked at together:
where as many cases are needed as are yet to be chosen, each of them must be one that is needed.
"""

from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.assembly import Rows
from rposst_opt.solvers.kernels.case_sets import ONE, WordArray, lowest_bit
from rposst_opt.solvers.kernels.compiling import internal


class ChoiceRules(NamedTuple):
    """Rules about the choice, over the cases that may be chosen, in the order of the search."""

    coefficients: FloatArray  # (rules, n_selectable)
    low: FloatArray
    high: FloatArray
    least: FloatArray  # (rules, size + 1): the least sum of so many cases, whichever they are
    greatest: FloatArray
    quota_of: IntArray  # (n_selectable,): which of the quotas that are looked at together a case counts for, or -1
    needed: IntArray  # (quotas,): how many cases each needs
    totals: FloatArray  # (rules + quotas,): of what is chosen; written anew at every node


def make_choice_rules(rows: Rows, size: int) -> ChoiceRules:
    """Rules over the cases that may be chosen, of which so many are, as the search reads them."""
    coefficients = np.ascontiguousarray(rows.matrix)
    if not len(coefficients):
        return _no_rules(coefficients.shape[1], size)
    ascending = np.sort(coefficients, axis=1)
    zero = np.zeros((len(coefficients), 1))
    least = np.hstack([zero, np.cumsum(ascending, axis=1)[:, :size]])
    greatest = np.hstack([zero, np.cumsum(ascending[:, ::-1], axis=1)[:, :size]])
    quota_of, needed = _disjoint_quotas(coefficients, rows.low)
    return ChoiceRules(
        coefficients=coefficients,
        low=rows.low.astype(np.float64),
        high=rows.high.astype(np.float64),
        least=least,
        greatest=greatest,
        quota_of=quota_of,
        needed=needed,
        totals=np.zeros(len(coefficients) + len(needed)),
    )


def _no_rules(n_selectable: int, size: int) -> ChoiceRules:
    """Nothing is ruled out; made without any arithmetic, since most problems are like that."""
    nothing, sums = np.zeros(0), np.zeros((0, size + 1))
    quota_of, needed = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return ChoiceRules(np.zeros((0, n_selectable)), nothing, nothing, sums, sums, quota_of, needed, nothing)


def _disjoint_quotas(coefficients: FloatArray, low: FloatArray) -> tuple[IntArray, IntArray]:
    """Quotas "at least" that no two cases share, the greatest first, and how many cases each needs."""
    needed: list[int] = []
    quota_of = np.full(coefficients.shape[1], -1, dtype=np.int64)
    is_quota = np.isin(coefficients, (0.0, 1.0)).all(axis=1) & np.isfinite(low) & (low > 0)
    for rule in sorted(np.flatnonzero(is_quota).tolist(), key=lambda rule: -low[rule]):
        members = coefficients[rule] == 1.0
        if (quota_of[members] < 0).all():
            quota_of[members] = len(needed)
            needed.append(int(low[rule]))
    return quota_of, np.array(needed, dtype=np.int64)


@internal
def exclude_what_breaks_rules(depth: int, size: int, chosen: IntArray, rules: ChoiceRules, excluded: WordArray) -> None:
    """Put the cases that the partial tuple cannot be continued with into the set of excluded ones."""
    coefficients, totals = rules.coefficients, rules.totals
    n_rules, n_selectable = coefficients.shape
    n_quotas = rules.needed.shape[0]
    if n_rules == 0 or depth >= size:
        return
    for rule in range(n_rules + n_quotas):
        totals[rule] = 0.0
    for i in range(depth):
        for rule in range(n_rules):
            totals[rule] += coefficients[rule, chosen[i]]
        if rules.quota_of[chosen[i]] >= 0:
            totals[n_rules + rules.quota_of[chosen[i]]] += 1.0
    after = size - depth - 1  # cases yet to be chosen after the next one
    lacking = 0.0
    for quota in range(n_quotas):
        lacking += max(rules.needed[quota] - totals[n_rules + quota], 0.0)
    for word in range(excluded.shape[0]):
        bits = ~excluded[word]
        while bits != 0:
            place = lowest_bit(bits)
            bits &= bits - ONE
            case = 64 * word + place
            if case >= n_selectable:
                break
            quota = rules.quota_of[case]
            is_needed = quota >= 0 and totals[n_rules + quota] < rules.needed[quota]
            may_be = lacking - (1.0 if is_needed else 0.0) <= after
            for rule in range(n_rules):
                total = totals[rule] + coefficients[rule, case]
                may_be = may_be and total + rules.least[rule, after] <= rules.high[rule]
                may_be = may_be and total + rules.greatest[rule, after] >= rules.low[rule]
            if not may_be:
                excluded[word] |= ONE << np.uint64(place)
