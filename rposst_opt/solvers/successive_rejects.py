r"""Which of many arms has the least expected loss, when a loss can only be sampled (Audibert and Bubeck 2010)?

Successive Rejects divides its budget of T₂ samples into K - 1 phases. In phase k every arm that is left is sampled
until it has

.. math:: n_k = \Bigl\lceil \frac{1}{\overline{\log} K} \cdot \frac{T_2 - K}{K + 1 - k} \Bigr\rceil

samples, and then the arm with the largest mean is rejected. Ties are broken by index: of arms with equal means, the
last is rejected.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.errors import ProblemError
from rposst_opt.solvers.bounds import log_bar

Sampler = Callable[[IntArray, int], FloatArray]


def phase_lengths(n_arms: int, budget: int) -> list[int]:
    """How many samples each arm that is left has after phase 1, ..., K - 1 (n_k in the formula).

    Examples
    --------
    >>> phase_lengths(4, 100)
    [16, 21, 31]
    """
    if budget < n_arms:
        raise ProblemError(f"{n_arms:,} arms need a budget of at least as many samples, got {budget:,}.")
    share = (budget - n_arms) / log_bar(n_arms)
    return [math.ceil(share / (n_arms + 1 - k)) for k in range(1, n_arms)]


def successive_rejects(sample: Sampler, n_arms: int, budget: int) -> int:
    """The arm that is left.

    Parameters
    ----------
    sample : callable
        ``sample(arms, count)`` returns losses of shape (len(arms), count).
    n_arms : int
    budget : int
        How many samples may be drawn in all.
    """
    arms = np.arange(n_arms)
    totals, drawn = np.zeros(n_arms), 0
    for length, phases in itertools.groupby(phase_lengths(n_arms, budget)):
        if length > drawn:
            totals[arms] += sample(arms, length - drawn).sum(axis=1)
            drawn = length
        # Phases without new samples reject one after the other, which is to reject the worst of them together.
        best_first = np.argsort(totals[arms], kind="stable")
        arms = np.sort(arms[best_first[: len(arms) - len(list(phases))]])
    return int(arms[0])
