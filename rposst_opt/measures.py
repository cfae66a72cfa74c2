r"""How much does each scenario count, once losses are sorted from worst to best?

A robustness measure is one concave function g on [0, 1] with g(0) = 0 and g(1) = 1, its *tail weight*. With losses
sorted worst first and F the cumulative probability,

.. math::

    \rho(\ell) = \sum_i \bigl[g(F_i) - g(F_{i-1})\bigr]\, \ell_{(i)}

The differences of g are the antagonist's best response: among all weightings that g allows they cost the most.
Everything else (the value, the weights, the mixture of CVaRs that a linear program needs, the table that compiled code
reads) is derived here from `tail_weight`, so a new measure is one class with one method.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rposst_opt.arrays import SUM_TOLERANCE, FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.values.described import Described

EQUAL_PROBABILITY_TOLERANCE = 1e-12  # relative: 1/d written in decimals still counts as equally likely
MOST_DRAWN = 10**9  # scenarios in k-of-N; the incomplete beta function loses its accuracy far beyond
SHARE_TOLERANCE = 1e-9  # by how much the shares of a mixture may miss a sum of one


class CVaRMixture(NamedTuple):
    """A measure as a finite mixture of CVaRs: g(u) = Σ share · min(u / tail_fraction, 1)."""

    shares: FloatArray
    tail_fractions: FloatArray  # a tail fraction of zero is the worst case


class Measure(Described, ABC):
    """A robustness measure; subclasses say only what their `tail_weight` is."""

    @abstractmethod
    def tail_weight(self, tail: FloatArray) -> FloatArray:
        """The total weight g(u) of the worst scenarios whose probabilities add up to u."""

    @property
    def words(self) -> str:
        """What the measure averages, for people."""
        return f"mean of scenarios weighed by {self.label}"

    @property
    def cvar_tail_fraction(self) -> float | None:
        """The tail fraction of the CVaR that this measure is for all scenarios alike; None if it is none."""
        return None

    def k_of_n(self, draws: int) -> tuple[int, int] | None:
        """How many of how many sampled scenarios count, for games that sample; None where no k-of-N stands for it.

        A CVaR is approached by k of `draws` scenarios, at least one; `KOfN` brings its own n.
        """
        fraction = self.cvar_tail_fraction
        return None if fraction is None else (max(1, min(draws, round(fraction * draws))), draws)

    def weights(self, losses: ArrayLike, probabilities: ArrayLike) -> FloatArray:
        """The antagonist's best response: one weight per scenario, in the scenarios' own order.

        Ties among losses are broken by index.

        Examples
        --------
        >>> CVaR(0.5).weights([1.0, 3.0, 2.0], [0.5, 0.25, 0.25])
        array([0. , 0.5, 0.5])
        """
        losses = np.asarray(losses, dtype=np.float64)
        probabilities = np.asarray(probabilities, dtype=np.float64)
        worst_first = np.argsort(-losses, kind="stable")
        weights = np.empty_like(losses)
        if equally_likely(probabilities):
            weights[worst_first] = self.rank_weights(len(losses))
        else:
            cumulative = np.minimum(np.cumsum(probabilities[worst_first]), 1.0)
            cumulative[-1] = 1.0
            weights[worst_first] = np.maximum(np.diff(self.tail_weight(cumulative), prepend=0.0), 0.0)
        return weights

    def value(self, losses: ArrayLike, probabilities: ArrayLike) -> float:
        """The measure of the losses."""
        losses = np.asarray(losses, dtype=np.float64)
        return float(self.weights(losses, probabilities) @ losses)

    def rank_weights(self, n_scenarios: int) -> FloatArray:
        """The weights of equally likely losses, worst first."""
        ladder = self.tail_weight(np.arange(n_scenarios + 1) / n_scenarios)
        return np.maximum(np.diff(ladder), 0.0)

    def reach(self) -> float:
        """The tail probability beyond which no scenario counts: the least u with g(u) = 1."""
        if self.cvar_tail_fraction is not None:
            return max(self.cvar_tail_fraction, float(np.finfo(np.float64).smallest_subnormal))
        short, enough = 0.0, 1.0
        while enough - short > np.spacing(enough):
            middle = (short + enough) / 2
            if middle in (short, enough):
                break
            if self.tail_weight(np.array([middle]))[0] >= 1.0:
                enough = middle
            else:
                short = middle
        return enough

    def cvar_mixture(self, probabilities: FloatArray) -> CVaRMixture | None:
        """A finite mixture of CVaRs that gives the same value on scenarios with these probabilities, if there is one.

        With d equally likely scenarios only g(i/d) matters, so the straight lines between those points do for any g:
        the shares are the drops in the lines' slopes. With other probabilities a measure has to bring its own mixture.
        """
        if self.cvar_tail_fraction is not None:
            return CVaRMixture(np.ones(1), np.array([self.cvar_tail_fraction]))
        if not equally_likely(probabilities):
            return None
        d = len(probabilities)
        slopes = np.append(self.rank_weights(d), 0.0) * d
        fractions = np.arange(1, d + 1) / d
        shares = np.maximum(-np.diff(slopes), 0.0) * fractions
        kept = shares > np.finfo(float).eps
        return CVaRMixture(shares[kept] / shares[kept].sum(), fractions[kept])


def equally_likely(probabilities: FloatArray) -> bool:
    """Whether all scenarios have the same probability."""
    return bool(np.ptp(probabilities) <= EQUAL_PROBABILITY_TOLERANCE * probabilities.max())


@dataclass(frozen=True)
class Mean(Measure):
    """Every scenario counts by its probability; k-of-N with k = N."""

    name = "mean"

    def tail_weight(self, tail: FloatArray) -> FloatArray:
        """The tail itself: g(u) = u."""
        return np.asarray(tail, dtype=np.float64).copy()

    @property
    def words(self) -> str:
        """What the measure averages, for people."""
        return "mean of all scenarios"

    @property
    def cvar_tail_fraction(self) -> float:
        """CVaR of everything."""
        return 1.0


@dataclass(frozen=True)
class CVaR(Measure):
    """The mean of the worst `tail_fraction` of outcomes; the limit of k-of-N for k/N = `tail_fraction`.

    `tail_fraction` is the paper's η. Some libraries take one minus it; this package never does.
    """

    tail_fraction: float
    name = "cvar"

    def __post_init__(self) -> None:
        """Refuse a tail fraction outside [0, 1]."""
        if not 0 <= self.tail_fraction <= 1:
            raise ProblemError(f"`tail_fraction` must lie in [0, 1], got {self.tail_fraction:g}.")
        object.__setattr__(self, "tail_fraction", float(self.tail_fraction))

    def tail_weight(self, tail: FloatArray) -> FloatArray:
        """The tail's share of the worst `tail_fraction`: g(u) = min(u / tail_fraction, 1)."""
        if self.tail_fraction == 0:
            return np.where(np.asarray(tail) > 0, 1.0, 0.0)
        with np.errstate(over="ignore"):
            return np.minimum(np.asarray(tail, dtype=np.float64) / self.tail_fraction, 1.0)

    @property
    def words(self) -> str:
        """What the measure averages, for people."""
        if self.tail_fraction == 0:
            return WorstCase().words
        return f"mean of the worst {100 * self.tail_fraction:.4g} % of scenarios"

    @property
    def cvar_tail_fraction(self) -> float:
        """Its own."""
        return self.tail_fraction


@dataclass(frozen=True)
class WorstCase(Measure):
    """The largest loss; CVaR with a tail fraction of zero."""

    name = "worst"

    def tail_weight(self, tail: FloatArray) -> FloatArray:
        """All weight from the first scenario on: g(u) = 1 for u > 0."""
        return np.where(np.asarray(tail) > 0, 1.0, 0.0)

    @property
    def words(self) -> str:
        """What the measure averages, for people."""
        return "worst scenario"

    @property
    def cvar_tail_fraction(self) -> float:
        """CVaR of nothing but the worst."""
        return 0.0


@dataclass(frozen=True)
class KOfN(Measure):
    r"""The mean of the k worst of n scenarios drawn from Ψ, in exact expectation (paper, section 3.1).

    A scenario at tail position u is among the worst u·100 %; of n draws, Binomial(n, u) fall there, and the k worst
    count 1/k each, so

    .. math::

        g(u) = \tfrac1k\, E\bigl[\min(k, B_n)\bigr] = \tfrac1k \sum_{i=1}^k P[B_n \ge i]
             = P[B_n \ge k] + \tfrac{n u}{k}\, P[B_{n-1} \le k - 2], \qquad B_n \sim \text{Binomial}(n, u)

    The last form, two incomplete beta functions whatever k is, follows from i·P[B_n = i] = n·u·P[B_{n-1} = i - 1]. No
    sampling takes place, and Ψ may be any finite distribution. (g is the n-th Bernstein polynomial of CVaR(k/n)'s tail
    weight, which is why k-of-N tends to CVaR.)
    """

    k: int
    n: int
    name = "k-of-n"

    def __post_init__(self) -> None:
        """Refuse anything but whole numbers with 1 <= k <= n."""
        for name, number in (("k", self.k), ("n", self.n)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer):
                raise ProblemError(f"`{name}` must be a whole number, got {number!r}.")
            if number > MOST_DRAWN:
                raise ProblemError(f"`{name}` must be at most {MOST_DRAWN:,}: beyond it k-of-N is CVaR(k / n).")
        if not 1 <= self.k <= self.n:
            raise ProblemError(f"`k` must lie between 1 and `n`, got k = {self.k} and n = {self.n}.")
        object.__setattr__(self, "k", int(self.k))
        object.__setattr__(self, "n", int(self.n))

    def tail_weight(self, tail: FloatArray) -> FloatArray:
        """By two incomplete beta functions: g(u) = P[B_n >= k] + (n·u/k) P[B_{n-1} <= k - 2]."""
        from scipy.special import betainc, betaincc  # SciPy is slow to import, and most problems have no need of it

        tail = np.asarray(tail, dtype=np.float64)
        weight: FloatArray = betainc(self.k, self.n - self.k + 1, tail)
        if self.k > 1:
            weight = weight + (self.n / self.k) * tail * betaincc(self.k - 1, self.n - self.k + 1, tail)
        return np.minimum(weight, 1.0)

    @property
    def words(self) -> str:
        """What the measure averages, for people."""
        if self.k == 1:
            return f"expected worst of {self.n:,} scenarios drawn"
        return f"expected mean of the {self.k:,} worst of {self.n:,} scenarios drawn"

    def k_of_n(self, draws: int) -> tuple[int, int]:
        """Its own k and n, whatever `draws` is."""
        return self.k, self.n


@dataclass(frozen=True)
class Mixture(Measure):
    """A convex combination of measures.

    Parameters
    ----------
    parts : sequence of (share, measure)
        The shares are positive and sum to one.

    Examples
    --------
    Break the ties that 0/1 results cause, by looking at the mean a little as well:

    >>> Mixture([(0.95, CVaR(0.01)), (0.05, Mean())]).value([0.0, 1.0], [0.5, 0.5])
    0.975
    """

    parts: tuple[tuple[float, Measure], ...]
    name = "mixture"

    def __init__(self, parts: Sequence[tuple[float, Measure]]) -> None:
        checked = tuple((float(share), measure) for share, measure in parts)
        shares = [share for share, _ in checked]
        for _, measure in checked:
            if not isinstance(measure, Measure):
                raise ProblemError(f"the parts of a mixture must be measures, got {measure!r}.")
        if not checked or not all(np.isfinite(share) and share > 0 for share in shares):
            raise ProblemError(f"the shares of a mixture must be positive, got {shares}.")
        if abs(sum(shares) - 1) > SHARE_TOLERANCE:
            raise ProblemError(f"the shares of a mixture must sum to 1, got {sum(shares):g}.")
        total = sum(shares)
        object.__setattr__(self, "parts", tuple((share / total, measure) for share, measure in checked))

    @property
    def words(self) -> str:
        """What the measure averages, for people."""
        return " + ".join(f"{100 * share:.4g} % of the {part.words}" for share, part in self.parts)

    def describe(self) -> dict[str, object]:
        """The mixture and its parts, as JSON writes them."""
        return {"name": self.name, "parts": [{"share": share, **part.describe()} for share, part in self.parts]}

    def tail_weight(self, tail: FloatArray) -> FloatArray:
        """The same combination of the parts' tail weights."""
        return np.minimum(sum((s * part.tail_weight(tail) for s, part in self.parts), np.zeros_like(tail)), 1.0)

    def cvar_mixture(self, probabilities: FloatArray) -> CVaRMixture | None:
        """The parts' mixtures, together."""
        mixtures = [(share, part.cvar_mixture(probabilities)) for share, part in self.parts]
        known = [(share * mix.shares, mix.tail_fractions) for share, mix in mixtures if mix is not None]
        if len(known) < len(mixtures):
            return None
        fractions, group = np.unique(np.concatenate([fractions for _, fractions in known]), return_inverse=True)
        shares = np.zeros(len(fractions))
        np.add.at(shares, group, np.concatenate([part for part, _ in known]))
        return CVaRMixture(shares, fractions)


MEASURES: dict[str, type[Measure]] = {kind.name: kind for kind in (Mean, CVaR, WorstCase, KOfN, Mixture)}


class TailTable(NamedTuple):
    """A tail weight as polynomials on cells of [0, 1], for code that cannot call Python.

    On cell c, for u > 0, g(u) = Σ_i coefficients[c, i] tⁱ with t = (u - edges[c]) / (edges[c + 1] - edges[c]).
    """

    edges: FloatArray
    coefficients: FloatArray


def tabulate_mixture(mixture: CVaRMixture) -> TailTable:
    """Tabulate a mixture of CVaRs: straight lines between its tail fractions, exactly."""
    edges = np.unique(np.concatenate([[0.0, 1.0], mixture.tail_fractions]))
    left = np.maximum(edges, np.finfo(np.float64).tiny)[:, None]  # just above zero, where the worst case jumps
    with np.errstate(over="ignore", divide="ignore"):
        values = np.minimum(left / mixture.tail_fractions, 1.0) @ mixture.shares
    return TailTable(edges, np.ascontiguousarray(np.stack([values[:-1], np.diff(values)], axis=1)))


TABLE_DEGREE = 6
TABLE_TOLERANCE = (
    6e-14  # of g, whose values lie in [0, 1]: a little above the noise of SciPy's incomplete beta function
)
TABLE_DEPTH = 50  # a kink is closed in on until its cell is 2^-50 wide


def tabulate(tail_weight: Callable[[FloatArray], FloatArray]) -> TailTable:
    """Tabulate g to rounding accuracy, by halving cells until a polynomial fits each.

    This is what lets compiled loops take any measure and unequal probabilities, where g is needed at sums of
    probabilities that nobody knows beforehand. Smooth stretches take a few cells, a kink about fifty.
    """

    def just_above(tail: FloatArray) -> FloatArray:
        """The tail weight but for its value at zero: the worst case jumps there, and nobody asks for it."""
        return tail_weight(np.maximum(tail, np.finfo(np.float64).tiny))

    nodes = 0.5 - 0.5 * np.cos(np.pi * np.arange(TABLE_DEGREE + 1) / TABLE_DEGREE)
    checks = 0.5 - 0.5 * np.cos(np.pi * (np.arange(2 * TABLE_DEGREE) + 0.5) / (2 * TABLE_DEGREE))
    fit = np.linalg.inv(np.vander(nodes, increasing=True))
    evaluate = np.vander(checks, TABLE_DEGREE + 1, increasing=True)

    left, width = np.zeros(1), 1.0
    lefts: list[FloatArray] = []
    tables: list[FloatArray] = []
    for depth in range(TABLE_DEPTH + 1):
        values = just_above(left[:, None] + width * nodes)
        base = values[:, :1]  # fitting the increments keeps rounding errors in proportion to the cell
        coefficients = (values - base) @ fit.T
        misses = np.abs(coefficients @ evaluate.T + base - just_above(left[:, None] + width * checks)).max(axis=1)
        good = (misses <= TABLE_TOLERANCE) | (depth == TABLE_DEPTH)
        coefficients[:, 0] += base[:, 0]
        lefts.append(left[good])
        tables.append(coefficients[good])
        width /= 2
        left = np.concatenate([left[~good], left[~good] + width])
        if not len(left):
            break
    starts = np.concatenate(lefts)
    order = np.argsort(starts)
    return TailTable(np.append(starts[order], 1.0), np.ascontiguousarray(np.concatenate(tables)[order]))


def check_tail_weight(measure: Measure) -> None:
    """A measure of one's own must be one: proofs rest on it."""
    tails = np.linspace(0.0, 1.0, 129)
    weights = np.asarray(measure.tail_weight(tails), dtype=np.float64)
    if weights.shape != tails.shape or not np.isfinite(weights).all():
        raise ProblemError(f"the tail weight of {measure!r} must be a finite number for every tail in [0, 1].")
    if abs(weights[0]) > SUM_TOLERANCE or abs(weights[-1] - 1) > SUM_TOLERANCE:
        raise ProblemError(
            f"the tail weight of {measure!r} must go from 0 to 1, got {weights[0]:g} to {weights[-1]:g}."
        )
    if (np.diff(weights) < -SUM_TOLERANCE).any() or (np.diff(weights[1:], n=2) > SUM_TOLERANCE).any():
        raise ProblemError(f"the tail weight of {measure!r} must be concave and must not fall.")
