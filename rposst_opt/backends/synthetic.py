"""Problems to measure backends on: made from a few words and numbers, the same anywhere."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.losses import AbsoluteError, Loss, SquaredError
from rposst_opt.measures import CVaR, KOfN, Mean, Measure, WorstCase
from rposst_opt.problem import Problem
from rposst_opt.results import softmax_targets

CASES = (10, 15, 20, 30, 50, 80, 120, 200, 300, 500)
SIZES = (1, 2, 3, 4, 5, 6, 8, 10)
POLICIES = (5, 10, 20, 40, 60)
MOST_TUPLES = 10**9
MEASURES: dict[str, Measure] = {
    "cvar-0.01": CVaR(0.01),
    "cvar-0.2": CVaR(0.2),
    "worst": WorstCase(),
    "mean": Mean(),
    "1-of-100": KOfN(1, 100),
}
LOSSES: dict[str, Loss] = {"absolute": AbsoluteError(), "squared": SquaredError()}


def _skilled(n: int, p: int, rng: np.random.Generator) -> FloatArray:
    """Probabilities of right answers: policies with three skills, items of different difficulty."""
    skills, loads = rng.normal(size=(p, 3)), rng.gamma(2.0, 0.5, size=(n, 3))
    chances: FloatArray = 1 / (1 + np.exp(rng.normal(size=(n, 1)) - loads @ skills.T))
    return chances


KINDS: dict[str, Callable[[int, int, np.random.Generator], FloatArray]] = {
    "binary": lambda n, p, rng: (rng.random((n, p)) < _skilled(n, p, rng)).astype(np.float64),
    "real": lambda n, p, rng: rng.random((n, p)),
    "low-rank": lambda n, p, rng: _skilled(n, p, rng),
    "noisy": lambda n, p, rng: rng.binomial(20, _skilled(n, p, rng)) / 20,
}


@dataclass(frozen=True)
class SyntheticProblem:
    """A problem by a few words and numbers, to be made again anywhere."""

    kind: str
    n: int
    m: int
    policies: int
    targets: int
    measure: str
    loss: str
    seed: int

    def problem(self) -> Problem:
        """Make it."""
        results = KINDS[self.kind](self.n, self.policies, np.random.default_rng(self.seed))
        return Problem(
            results=results,
            size=self.m,
            measure=MEASURES[self.measure],
            loss=LOSSES[self.loss],
            targets=softmax_targets(results, betas=(0, 1, 2, 4)[: self.targets]),
        )


def draw_synthetic(count: int, seed: int) -> list[SyntheticProblem]:
    """Problems drawn at random from the grid; one in five has a curved loss."""
    return list(itertools.islice(synthetic_problems(seed), count))


def synthetic_problems(seed: int) -> Iterator[SyntheticProblem]:
    """The same without an end."""
    rng = np.random.default_rng(seed)
    kinds = itertools.cycle(KINDS)
    while True:
        drawn = SyntheticProblem(
            kind=next(kinds),
            n=int(rng.choice(CASES)),
            m=int(rng.choice(SIZES)),
            policies=int(rng.choice(POLICIES)),
            targets=int(rng.choice((1, 4))),
            measure=str(rng.choice(list(MEASURES))),
            loss=str(rng.choice(["absolute"] * 4 + ["squared"])),
            seed=int(rng.integers(10**6)),
        )
        if 2 * drawn.m <= drawn.n and math.comb(drawn.n, drawn.m) <= MOST_TUPLES:
            yield drawn
