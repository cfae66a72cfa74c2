"""Small problems whose answers can be derived by hand; every backend is run on each of them.

To add one, write a function that returns an `Instance`, with the derivation in its docstring, and list it in
`INSTANCES`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rposst_opt.losses import EpsilonInsensitiveError, HuberError, PinballError, SquaredError
from rposst_opt.measures import CVaR, KOfN, Mean, Mixture, WorstCase
from rposst_opt.problem import Problem


@dataclass(frozen=True)
class Instance:
    """A problem and its optimal value."""

    problem: Problem
    objective: float


def _coin(**options: object) -> Problem:
    """One policy with results 0 and 1 on two cases, and the two targets that look at one case each.

    With weight w on the second case the score is w; scenario 0 has the target 0 and scenario 1 the target 1.
    """
    settings: dict[str, object] = {"results": [[0.0], [1.0]], "size": 2, "targets": np.eye(2), **options}
    return Problem(**settings)  # type: ignore[arg-type]  # the callers below pass fields of Problem


def opposite_policies() -> Instance:
    """Two cases rank two policies in opposite ways: either case alone is off by 1/2 for both policies."""
    return Instance(Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1), 0.5)


def opposite_policies_both() -> Instance:
    """With both cases at weight 1/2, the small test is the full one."""
    return Instance(Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=2), 0.0)


def nearest_case() -> Instance:
    """One policy with results 0, 1 and 3, so a full score of 4/3: the nearest single case is off by 1/3."""
    return Instance(Problem(results=[[0.0], [1.0], [3.0]], size=1, measure=Mean()), 1 / 3)


def straddling_pair() -> Instance:
    """As before with two cases: a pair with one result below 4/3 and one above hits it exactly."""
    return Instance(Problem(results=[[0.0], [1.0], [3.0]], size=2, measure=WorstCase()), 0.0)


def forced_far_case() -> Instance:
    """As before with one case besides the required third and without the second: 3w = 4/3 is hit by w = 4/9."""
    problem = Problem(results=[[0.0], [1.0], [3.0]], size=1, required_cases=[2], forbidden_cases=[1])
    return Instance(problem, 0.0)


def torn_worst_case() -> Instance:
    """Losses w and 1 - w: the larger is least at w = 1/2."""
    return Instance(_coin(measure=WorstCase()), 0.5)


def torn_mean() -> Instance:
    """Losses w and 1 - w average to 1/2 whatever w is: every weighting ties."""
    return Instance(_coin(measure=Mean()), 0.5)


def torn_cvar() -> Instance:
    """CVaR(3/4) weighs the larger loss 2/3 and the smaller 1/3, so w = 1/2 is best and gives 1/2."""
    return Instance(_coin(measure=CVaR(0.75)), 0.5)


def torn_squared() -> Instance:
    """Losses w² and (1 - w)²: the larger is least at w = 1/2."""
    return Instance(_coin(measure=WorstCase(), loss=SquaredError()), 0.25)


def torn_squared_mean() -> Instance:
    """(w² + (1 - w)²) / 2 is least at w = 1/2."""
    return Instance(_coin(measure=Mean(), loss=SquaredError()), 0.25)


def torn_huber() -> Instance:
    """At w = 1/2 both errors exceed the threshold 1/5, so the loss is 1/5 · 1/2 - 1/2 · (1/5)² = 0.08."""
    return Instance(_coin(measure=WorstCase(), loss=HuberError(0.2)), 0.08)


def torn_pinball() -> Instance:
    """An over-estimate costs (1 - q) w and an under-estimate q (1 - w): equal at w = q, where both are q (1 - q)."""
    return Instance(_coin(measure=WorstCase(), loss=PinballError(0.8)), 0.16)


def torn_insensitive() -> Instance:
    """Errors are w and 1 - w less the free 1/10: the larger is least at w = 1/2."""
    return Instance(_coin(measure=WorstCase(), loss=EpsilonInsensitiveError(0.1)), 0.4)


def lopsided_k_of_n() -> Instance:
    """KOfN(1, 2) with unequal Ψ, where sampling or equal weights would be wrong.

    g(u) = 1 - (1 - u)². The target 0 has the probability 1/5, so for w >= 1/2 the loss w is the worse one, with weight
    g(1/5) = 0.36, and the objective 0.36 w + 0.64 (1 - w) falls until w = 1, where it is 0.36. For w < 1/2 the loss
    1 - w is the worse one, with weight g(4/5) = 0.96, and the objective is at least 1/2.
    """
    return Instance(_coin(measure=KOfN(1, 2), probabilities=[[0.2, 0.8]]), 0.36)


def lopsided_mixture() -> Instance:
    """Half worst case, half mean, targets 0 and 1 at 1/5 and 4/5.

    For w >= 1/2 the objective is w/2 + (w/5 + 4 (1 - w)/5)/2 = 0.4 + 0.2 w, for w < 1/2 it is
    (1 - w)/2 + (w/5 + 4 (1 - w)/5)/2 = 0.9 - 0.8 w; both give 1/2 at w = 1/2, the least.
    """
    return Instance(_coin(measure=Mixture([(0.5, WorstCase()), (0.5, Mean())]), probabilities=[[0.2, 0.8]]), 0.5)


def identical_cases() -> Instance:
    """All cases alike: every test is exact, and all tie."""
    return Instance(Problem(results=np.tile([[0.3, 0.7, 0.1]], (5, 1)), size=2), 0.0)


def constant_results() -> Instance:
    """No spread at all, where a scale of zero invites a division by it."""
    return Instance(Problem(results=np.full((4, 3), 7.5), size=2), 0.0)


INSTANCES: dict[str, Callable[[], Instance]] = {
    make.__name__: make
    for make in (
        opposite_policies,
        opposite_policies_both,
        nearest_case,
        straddling_pair,
        forced_far_case,
        torn_worst_case,
        torn_mean,
        torn_cvar,
        torn_squared,
        torn_squared_mean,
        torn_huber,
        torn_pinball,
        torn_insensitive,
        lopsided_k_of_n,
        lopsided_mixture,
        identical_cases,
        constant_results,
    )
}
