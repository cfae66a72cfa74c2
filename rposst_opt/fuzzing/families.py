"""Which problems are hard on solvers? Families of small ones, each drawn from its name and a seed alone.

All are so small that the exact search proves their optimum in milliseconds: at most nine test cases, nine policies and
three targets. What is hard about them is what they do to floating point, to bases and to branching.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError, unknown
from rposst_opt.losses import AbsoluteError, EpsilonInsensitiveError, Loss, PinballError, SquaredError
from rposst_opt.measures import CVaR, KOfN, Mean, Measure, Mixture, WorstCase
from rposst_opt.problem import Problem

MOST_CASES, MOST_POLICIES, MOST_TARGETS, LARGEST_SIZE = 9, 9, 3, 3
INTEGER_TOLERANCE = 1e-6  # what most solvers still take for a whole number


def draw(family: str, seed: int) -> Problem:
    """The problem of this family with this seed: the same on every machine.

    Examples
    --------
    >>> draw("binary", 5) == draw("binary", 5)
    True
    """
    if family not in FAMILIES:
        raise ProblemError(unknown("family", family, FAMILIES))
    if seed < 0:
        raise ProblemError(f"`seed` must be a whole number from 0 on, got {seed!r}.")
    return FAMILIES[family](np.random.default_rng([seed, *family.encode()]))


# What all families have in common


def _shape(rng: Generator) -> tuple[int, int]:
    return int(rng.integers(3, MOST_CASES + 1)), int(rng.integers(2, MOST_POLICIES + 1))


def _stated(rng: Generator, results: FloatArray, **stated: Any) -> Problem:
    """A problem with these results; what is not stated is drawn."""
    n_cases, n_policies = results.shape
    n_targets = int(rng.integers(1, MOST_TARGETS + 1))
    stated = {
        "size": int(rng.integers(1, min(LARGEST_SIZE, n_cases - 1) + 1)),
        "measure": _measure(rng),
        "loss": _loss(rng),
        "targets": _targets(rng, n_targets, n_cases),
        "offset": bool(rng.random() < 0.2),
        **stated,
    }
    return Problem(
        results=results,
        case_names=[f"case-{case}" for case in range(n_cases)],
        policy_names=[f"policy-{policy}" for policy in range(n_policies)],
        **stated,
    )


def _measure(rng: Generator) -> Measure:
    common: tuple[Measure, ...] = (
        CVaR(round(float(rng.uniform(0.05, 0.95)), 2)),
        WorstCase(),
        Mean(),
        KOfN(int(rng.integers(1, 4)), 10),
        Mixture([(0.75, CVaR(0.25)), (0.25, Mean())]),
    )
    return common[int(rng.choice(len(common), p=[0.5, 0.2, 0.1, 0.1, 0.1]))]


def _loss(rng: Generator) -> Loss:
    common: tuple[Loss, ...] = (AbsoluteError(), PinballError(0.8), EpsilonInsensitiveError(0.05), SquaredError())
    return common[int(rng.choice(len(common), p=[0.7, 0.1, 0.1, 0.1]))]


def _targets(rng: Generator, n_targets: int, n_cases: int) -> FloatArray:
    """The uniform target first, then others in eighths."""
    others = rng.multinomial(8, np.full(n_cases, 1 / n_cases), size=n_targets - 1) / 8
    return np.vstack([np.full((1, n_cases), 1 / n_cases), others])


# The families


def _plain(rng: Generator) -> Problem:
    """Independent numbers, with nothing hard about them: where a solver fails here, it fails anywhere."""
    return _stated(rng, rng.random(_shape(rng)))


def _binary(rng: Generator) -> Problem:
    """Right and wrong answers."""
    return _stated(rng, rng.integers(0, 2, size=_shape(rng)).astype(np.float64))


def _ties(rng: Generator) -> Problem:
    """Every test case is the one before it, turned by a policy: whole orbits of tests are as good as each other."""
    n_policies = int(rng.integers(3, MOST_POLICIES + 1))
    row = rng.integers(0, 3, size=n_policies) / 2
    return _stated(rng, np.array([np.roll(row, shift) for shift in range(n_policies)]))


def _scaled(rng: Generator) -> Problem:
    """Test cases in units that are up to twelve powers of ten apart."""
    n_cases, n_policies = _shape(rng)
    units = 10.0 ** rng.integers(-6, 7, size=(n_cases, 1))
    return _stated(rng, rng.random((n_cases, n_policies)) * units)


def _edges(rng: Generator) -> Problem:
    """Weights as small as what solvers take for zero, and hardly any set of cases to choose from.

    In the mixed-integer program a weight is at most the 0 or 1 that says whether its case is chosen. A solver that is
    content with 1e-6 in the place of 0 may give a weight to a case that it has not chosen: here the targets have
    weights of that size, so that it seems to pay, and one test case is large enough to make it count.
    """
    n_cases, n_policies = _shape(rng)
    results = rng.integers(0, 5, size=(n_cases, n_policies)) / 4
    results[rng.integers(n_cases)] *= 10.0 ** rng.integers(0, 7)
    tiny = INTEGER_TOLERANCE * rng.choice([0.1, 0.5, 1.0, 2.0, 10.0], size=n_cases)
    tiny[rng.integers(n_cases)] = 0.0
    target = np.where(tiny > 0, tiny, 1.0 - tiny.sum())
    size = int(rng.integers(max(1, n_cases - 2), n_cases))
    settled = rng.permutation(n_cases)
    return _stated(
        rng,
        results,
        targets=target,
        size=1 if rng.random() < 0.5 else size,
        required_cases=settled[:1].tolist() if rng.random() < 0.3 else (),
        forbidden_cases=settled[-1:].tolist() if rng.random() < 0.3 and n_cases - size > 1 else (),
    )


def _tails(rng: Generator) -> Problem:
    """Tails that are tiny, or a hair wider than a scenario, and scenarios that are all but impossible."""
    n_cases, n_policies = _shape(rng)
    likely = rng.random(n_policies) * 10.0 ** -rng.integers(0, 10, size=n_policies)
    probabilities = likely / likely.sum() if rng.random() < 0.5 else np.full(n_policies, 1 / n_policies)
    hair = 1.0 + float(rng.choice([1e-9, 1e-6, 1e-3]))
    least = min(1.0, float(probabilities.min()) * hair)
    one = min(1.0, float(rng.choice(probabilities)) * hair)
    measures: tuple[Measure, ...] = (
        CVaR(least),
        CVaR(one),
        CVaR(float(rng.choice([1e-12, 1e-9, 1e-6]))),
        Mixture([(1 - 1e-6, Mean()), (1e-6, CVaR(least))]),
        Mixture([(1e-7, Mean()), (1 - 1e-7, CVaR(one))]),
    )
    return _stated(
        rng,
        rng.random((n_cases, n_policies)),
        targets=None,
        measure=measures[rng.integers(len(measures))],
        probabilities=probabilities[:, np.newaxis],
    )


def _twins(rng: Generator) -> Problem:
    """Few different test cases and policies, each several times, or nearly: multipliers are not unique."""
    n_cases, n_policies = _shape(rng)
    seeds = rng.integers(0, 5, size=(2, 3)) / 4 if rng.random() < 0.5 else rng.random((2, 3))
    results = seeds[np.ix_(rng.integers(0, 2, size=n_cases), rng.integers(0, 3, size=n_policies))]
    if rng.random() < 0.5:
        results = results + rng.choice([-1e-9, 0.0, 1e-9], size=results.shape)
    return _stated(rng, results)


def _shifted(rng: Generator) -> Problem:
    """Results that differ in their last digits only: a large number, and a little on top."""
    n_cases, n_policies = _shape(rng)
    base = float(rng.choice([-1.0, 1.0])) * 10.0 ** int(rng.integers(3, 10))
    return _stated(rng, base + rng.integers(0, 100, size=(n_cases, n_policies)) / 64)


FAMILIES: dict[str, Callable[[Generator], Problem]] = {
    "plain": _plain,
    "binary": _binary,
    "ties": _ties,
    "scaled": _scaled,
    "edges": _edges,
    "tails": _tails,
    "twins": _twins,
    "shifted": _shifted,
}
