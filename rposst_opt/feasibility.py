"""Is there a test that keeps all rules, and if not, which of them cannot hold together?

A choice is looked for by SciPy's mixed-integer solver, and what it finds is checked; among few cases all choices are
looked through, which is quicker. Where there is none, rules are dropped one by one as long as what is left still cannot
hold; so the core that remains is minimal: without any one of its rules, the others can be kept.
"""

import functools
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from rposst_opt.arrays import FloatArray, read_only
from rposst_opt.assembly import Rule, RuleKind, SizeIs, counted_size
from rposst_opt.errors import BackendFailure, Infeasible
from rposst_opt.problem import Problem
from rposst_opt.values.showing import listed, quoted

INFEASIBLE = 2  # SciPy's status
FEW_CASES = 12  # all choices of so many are looked through sooner than SciPy's solver is called


def check_feasible(problem: Problem) -> None:
    """Refuse a problem that no test can answer, and say which of its rules cannot hold together."""
    if not problem.rules.choose and not problem.rules.limit_weights:
        return
    rules = all_rules(problem)
    if not can_be_kept(rules, problem.n_cases):
        core = minimal_core(rules, problem.n_cases)
        raise Infeasible(_words(core, problem.n_cases), tuple(rule.words for rule in core))


def all_rules(problem: Problem) -> list[Rule]:
    """What a choice has to keep, with the size and with the required and forbidden cases, in words."""
    names, n_cases = problem.case_names, problem.n_cases
    required, forbidden = (np.zeros(n_cases) for _ in range(2))
    required[list(problem.required_cases)], forbidden[list(problem.forbidden_cases)] = 1.0, 1.0
    size_is, least = problem.rules.size_is, 1 if problem.rules.size_is is SizeIs.AT_MOST else problem.size
    rules = [
        Rule(f"{counted_size(problem.size, size_is)} to choose", 1.0 - required, least, problem.size),
        *problem.choice_rules,
    ]
    for case in problem.required_cases:
        alone = np.zeros(n_cases)
        alone[case] = 1.0
        rules.append(Rule(f"{quoted(names[case])} required", alone, 1, 1))
    if problem.forbidden_cases:
        banned = listed([quoted(names[case]) for case in problem.forbidden_cases])
        rules.append(Rule(f"{banned} forbidden", forbidden, 0, 0))
    return rules


def can_be_kept(rules: Sequence[Rule], n_cases: int) -> bool:
    """Whether there are cases that keep all of these rules."""
    if n_cases > FEW_CASES:
        return find_choice(rules, n_cases) is not None
    totals = _all_choices(n_cases) @ np.array([rule.coefficients for rule in rules]).T
    low, high = np.array([(rule.low - rule.slack, rule.high + rule.slack) for rule in rules]).T
    return bool(((low <= totals) & (totals <= high)).all(axis=1).any())


@functools.cache
def _all_choices(n_cases: int) -> FloatArray:
    """A row for every set of cases, with a one for each case that it has."""
    return read_only((np.arange(2**n_cases)[:, None] >> np.arange(n_cases) & 1).astype(np.float64))


def find_choice(rules: Sequence[Rule], n_cases: int, costs: FloatArray | None = None) -> tuple[int, ...] | None:
    """Cases that keep all of these rules, at the least cost if costs are given; None if there are none."""
    # In units of the largest cost: a solver is content with an absolute gap.
    cost = np.zeros(n_cases) if costs is None else costs / (float(np.abs(costs).max(initial=0.0)) or 1.0)
    rows = [rule.row() for rule in rules]
    coefficients = tuple(coefficients.tobytes() for coefficients, _, _ in rows)
    cases = _cheapest(cost.tobytes(), coefficients, tuple((float(low), float(high)) for _, low, high in rows))
    if cases is None:
        return None
    for rule in rules:
        reason = rule.why_not(cases)
        if reason is not None:
            raise BackendFailure(f"SciPy's milp found cases that break a rule: {reason}.")
    return cases


@lru_cache(maxsize=32)  # a run asks the same questions for every policy that it leaves out, of every number of cases
def _cheapest(
    cost: bytes, coefficients: tuple[bytes, ...], ends: tuple[tuple[float, float], ...]
) -> tuple[int, ...] | None:
    """Cases at the least cost that keep to these rows of numbers; None if there are none."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    costs = np.frombuffer(cost)
    rows = np.frombuffer(b"".join(coefficients)).reshape(len(ends), len(costs))
    limits = LinearConstraint(rows, *np.array(ends).reshape(len(ends), 2).T)
    # To the end: SciPy's solver is content with a share.
    exactly = {"mip_rel_gap": 0.0}
    outcome = milp(costs, integrality=np.ones(len(costs)), bounds=Bounds(0, 1), constraints=limits, options=exactly)
    if outcome.status == INFEASIBLE:
        return None
    if outcome.x is None:
        raise BackendFailure(f"SciPy's milp could not find out whether the rules can be kept: {outcome.message}")
    return tuple(int(case) for case in np.flatnonzero(outcome.x > 0.5))


def minimal_core(rules: Sequence[Rule], n_cases: int) -> list[Rule]:
    """Rules that cannot hold together, of which none can be spared."""
    core = list(rules)
    for rule in rules:
        others = [each for each in core if each is not rule]
        if find_choice(others, n_cases) is None:
            core = others
    return core


def _words(core: Sequence[Rule], n_cases: int) -> str:
    """Which rules cannot hold together, and where a budget is one of them, what the others cost at least."""
    said = f"no test keeps all rules. These cannot hold together: {'; '.join(dict.fromkeys(r.words for r in core))}"
    for rule in core:
        others = [each for each in core if each is not rule]
        if rule.kind is RuleKind.BUDGET and others:
            cheapest = find_choice(others, n_cases, rule.coefficients)
            assert cheapest is not None  # the core is minimal
            cost = f"{float(rule.coefficients[list(cheapest)].sum()):.10g}"
            return f"{said}. The cheapest choice that keeps the others costs {cost}."
    return f"{said}."
