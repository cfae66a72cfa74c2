"""Hypothesis strategies for measures, losses and small problems.

What is drawn from within another strategy is made once and kept: to make it anew takes longer than to draw from it.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import strategies as st

import rposst_opt as ro

RESULT_KINDS = ("binary", "coarse", "real", "duplicates", "constant")


@functools.cache
def simple_measures() -> st.SearchStrategy[ro.Measure]:
    return st.one_of(
        st.just(ro.Mean()),
        st.just(ro.WorstCase()),
        st.builds(ro.CVaR, st.sampled_from([0.0, 0.01, 0.1, 0.25, 0.5, 0.9, 1.0]) | st.floats(0.001, 1.0)),
        st.integers(1, 40).flatmap(lambda n: st.integers(1, n).map(lambda k: ro.KOfN(k, n))),
    )


@functools.cache
def measures() -> st.SearchStrategy[ro.Measure]:
    mixtures = st.builds(
        lambda share, first, second: ro.Mixture([(share, first), (1 - share, second)]),
        st.floats(0.05, 0.95),
        simple_measures(),
        simple_measures(),
    )
    return simple_measures() | mixtures


@functools.cache
def losses() -> st.SearchStrategy[ro.Loss]:
    return st.one_of(
        st.just(ro.AbsoluteError()),
        st.just(ro.SquaredError()),
        st.builds(ro.HuberError, st.floats(0.01, 1.0)),
        st.builds(ro.PinballError, st.floats(0.05, 0.95)),
        st.builds(ro.EpsilonInsensitiveError, st.floats(0.001, 0.3)),
    )


@functools.cache
def distributions(size: int) -> st.SearchStrategy[np.ndarray]:
    """Distributions over `size` things: uniform, uneven, and with zeros."""
    uneven = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    return st.just(np.full(size, 1 / size)) | uneven.map(lambda parts: np.array(parts) / sum(parts))


@functools.cache
def settled_cases(n_cases: int) -> st.SearchStrategy[list[int]]:
    """Some cases, fewer than half, in any order."""
    return st.permutations(range(n_cases)).flatmap(lambda p: st.integers(0, (n_cases - 1) // 2).map(lambda k: p[:k]))


@st.composite
def problems(
    draw: st.DrawFn, *, most_cases: int = 6, most_policies: int = 5, kinds: Sequence[str] = RESULT_KINDS
) -> ro.Problem:
    """Small problems of every kind: 0/1, coarse and real-valued results, ties, required and forbidden cases, any Ψ."""
    n_cases = draw(st.integers(1, most_cases))
    n_policies = draw(st.integers(1, most_policies))
    n_targets = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables: dict[str, Callable[[], np.ndarray]] = {
        "binary": lambda: rng.integers(0, 2, (n_cases, n_policies)).astype(float),
        "coarse": lambda: rng.integers(0, 5, (n_cases, n_policies)) / 4,
        "real": lambda: rng.random((n_cases, n_policies)),
        "duplicates": lambda: rng.random((1 + n_cases // 2, n_policies))[rng.integers(0, 1 + n_cases // 2, n_cases)],
        "constant": lambda: np.full((n_cases, n_policies), 0.25),
    }
    results = tables[draw(st.sampled_from(kinds))]()
    settled = draw(settled_cases(n_cases))
    n_required = draw(st.integers(0, len(settled)))
    return ro.Problem(
        results=results,
        size=draw(st.integers(1, min(3, n_cases - len(settled)))),
        measure=draw(measures()),
        loss=draw(losses()),
        targets=rng.dirichlet(np.ones(n_cases), n_targets),
        probabilities=draw(distributions(n_policies * n_targets)).reshape(n_policies, n_targets),
        required_cases=settled[:n_required],
        forbidden_cases=settled[n_required:],
    )
