"""Which problems are hard? Sixty of them, drawn by a rule from four families, and any table of one's own.

*The rule.* Each of the four families with each of the five measures has three problems: one with fewer than 10⁷ sets of
cases, one with 10⁷ to 10¹¹, and one with more. For each of them the number of cases n and the size m of a test are
drawn from `CASES` and `SIZES` until the number of sets is as said, then the number of policies, one or four softmax
targets, and the seed of its matrix. What comes out is kept: nobody has looked at a solver first.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rposst_opt as ro
from rposst_opt.arrays import FloatArray
from rposst_opt.backends.synthetic import KINDS
from rposst_opt.experiments.domains import racing_arrows

SEED = 2023
CASES = (40, 50, 60, 80, 100, 140, 200, 280, 400, 560, 800)  # each about 1.35 times the one before
SIZES = (3, 4, 5, 6, 7, 8, 9, 10)
POLICIES = (30, 60, 120)
BETAS = {1: (0.0,), 4: (0.0, 1.0, 2.0, 4.0)}  # by the number of targets
SETS = ((0.0, 1e7), (1e7, 1e11), (1e11, math.inf))
MEASURES: dict[str, ro.Measure] = {
    "cvar-0.01": ro.CVaR(0.01),
    "cvar-0.1": ro.CVaR(0.1),
    "cvar-0.3": ro.CVaR(0.3),
    "mean": ro.Mean(),
    "1-of-100": ro.KOfN(1, 100),
}
NOISE = 0.05  # standard deviation, beside chances from 0 to 1


def _arrows(n: int, p: int, rng: np.random.Generator) -> FloatArray:
    """Some followers as test cases, and some leaders as policies, of as many as the larger number needs."""
    most = max(n, p)
    table = racing_arrows(most, rng).to_numpy()
    followers, leaders = (np.sort(rng.permutation(most)[:count]) for count in (n, p))
    return np.asarray(table[np.ix_(followers, leaders)])


def _noisy_low_rank(n: int, p: int, rng: np.random.Generator) -> FloatArray:
    """Chances of policies with three skills, and noise."""
    return KINDS["low-rank"](n, p, rng) + rng.normal(scale=NOISE, size=(n, p))


FAMILIES: dict[str, Callable[[int, int, np.random.Generator], FloatArray]] = {
    "arrows": _arrows,
    "skills": KINDS["binary"],
    "low-rank": _noisy_low_rank,
    "independent": KINDS["real"],
}


@dataclass(frozen=True)
class HardProblem:
    """A problem by a few words and numbers, to be made again anywhere."""

    family: str
    n: int
    policies: int
    m: int
    targets: int
    measure: str
    seed: int

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return _name(self.family, (self.n, self.policies), self.m, self.targets, self.measure)

    def problem(self) -> ro.Problem:
        """Make it, rescaled as the command line does."""
        results = FAMILIES[self.family](self.n, self.policies, np.random.default_rng(self.seed))
        return ro.Problem.from_results(results, size=self.m, betas=BETAS[self.targets], measure=MEASURES[self.measure])


def _name(of: str, shape: tuple[int, ...], m: int, targets: int, measure: str) -> str:
    return f"{of}-{shape[0]}x{shape[1]}-m{m}-t{targets}-{measure}"


def drawn() -> list[HardProblem]:
    """The sixty, by the rule above."""
    rng = np.random.default_rng(SEED)
    return [_draw(rng, *of) for of in itertools.product(FAMILIES, MEASURES, SETS)]


def _draw(rng: np.random.Generator, family: str, measure: str, sets: tuple[float, float]) -> HardProblem:
    n, m = next(pair for pair in _pairs(rng) if sets[0] <= math.comb(*pair) < sets[1])
    return HardProblem(
        family=family,
        n=n,
        policies=int(rng.choice(POLICIES)),
        m=m,
        targets=int(rng.choice(list(BETAS))),
        measure=measure,
        seed=int(rng.integers(10**6)),
    )


def _pairs(rng: np.random.Generator) -> Iterator[tuple[int, int]]:
    """Numbers of cases and sizes, without an end."""
    while True:
        yield int(rng.choice(CASES)), int(rng.choice(SIZES))


def problems(only: str = "") -> dict[str, ro.Problem]:
    """The sixty problems by their names, or those that have this in their name."""
    return {each.name: each.problem() for each in drawn() if only in each.name}


def problems_of_table(
    path: Path, sizes: Sequence[int], measures: Sequence[str], targets: int = 4
) -> dict[str, ro.Problem]:
    """A user's table with each of these sizes and measures, rescaled as the command line does."""
    results = ro.read_results(path).results
    return {
        _name(path.stem, results.shape, m, targets, measure): ro.Problem.from_results(
            results, size=m, betas=BETAS[targets], measure=MEASURES[measure]
        )
        for m, measure in itertools.product(sizes, measures)
    }
