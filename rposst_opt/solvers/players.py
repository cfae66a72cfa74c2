r"""Who else could play the game? Players from the years since, beside the paper's regret matching+.

In every round a player turns its *pseudoregrets* :math:`q \ge 0` into weights :math:`w = q / 1^\top q`, hears the
antagonist's best response as a payoff :math:`v` per case, and regrets :math:`r(w) = v - w^\top v`. Write
:math:`[\cdot]_+` for the positive part, and :math:`\Pi` for the nearest point of the *chopped* orthant
:math:`\{q \ge 0,\ 1^\top q \ge 1\}`.

``"regret-matching+"`` [1]_, the reference:

.. math:: w^t \propto q^t, \qquad q^{t+1} = [q^t + r(w^t)]_+

``"predictive"`` [2]_ (PRM+) expects the last regret once more; rounds are averaged with weights t²:

.. math:: w^t \propto [q^t + r(w^{t-1})]_+, \qquad q^{t+1} = [q^t + r(w^t)]_+

``"smooth-predictive"`` [3]_ (SPRM+) does the same away from zero, where weights would jump:

.. math:: w^t \propto \Pi(q^t + \eta\, r(w^{t-1})), \qquad q^{t+1} = \Pi(q^t + \eta\, r(w^t))

``"extragradient"`` [3]_ (ExRM+) asks the antagonist instead of expecting, so a round has two questions:

.. math:: u^t \propto q^t, \qquad w^t \propto \Pi(q^t + \eta\, r(u^t)), \qquad q^{t+1} = \Pi(q^t + \eta\, r(w^t))

All begin with equal weights; :math:`\eta` is `step` over the largest payoff G. `rounds` counts questions, so that
players are compared at equal cost. Beside the rounds, the average of rounds (weights t²) is asked about after 8, 16,
32, ... of them. The answer is the best weights of all that were asked about; ties go to the earlier.

**What is proved.** Whoever plays, every answer of the antagonist is a cut, any average of cuts is a cut, and its least
entry bounds the tuple from below. The averages of all rounds since the last restart, plain and weighted by t², are
tried after every round, and so is every single cut.

**What is promised.** The fast rates of [2]_, [3]_ and [4]_ are for two players who both move smoothly. Here the
antagonist answers at its best, payoffs jump where another scenario becomes the worst, and what remains is what holds
against anybody: a gap that falls with 1/√T (`rposst_opt.solvers.bounds.predictive_gap`). On the benchmarks
(`make bench-players`) predictions alone do not pay; restarts do.

**Restarts.** With two smooth players, extragradient and smooth predictive RM+ converge in their last iterate, and
linearly so if they start again from it, with normalised pseudoregrets, when their steps have become short [4]_. Against
a best response steps do not become short by themselves: the payoffs at the optimum do not vanish. So our rule is
another. The measure of progress is the proved gap, as in restarted methods for linear programs [5]_: whenever it has
halved, the game starts again, from the last round (``restarts="last"``: :math:`q \leftarrow 4 q`) or from the best
weights (``restarts="best"``: :math:`q \leftarrow 4\,(1^\top q)\,w`). Larger pseudoregrets are shorter steps. Averages
begin anew then, and also when 36 % of all rounds have passed since they did. No rate is promised for this; the bound
holds as ever.

References
----------
.. [1] O. Tammelin. *Solving large imperfect information games using CFR+.* 2014. arXiv:1407.5042.
.. [2] G. Farina, C. Kroer, T. Sandholm. *Faster game solving via predictive Blackwell approachability: connecting
   regret matching and mirror descent.* AAAI 2021. arXiv:2007.14358.
.. [3] G. Farina, J. Grand-Clément, C. Kroer, C.-W. Lee, H. Luo. *Regret matching+: (in)stability and fast convergence
   in games.* NeurIPS 2023. arXiv:2305.14709.
.. [4] Y. Cai, G. Farina, J. Grand-Clément, C. Kroer, C.-W. Lee, H. Luo, W. Zheng. *Last-iterate convergence properties
   of regret-matching algorithms in games.* 2023; ICLR 2025. arXiv:2311.00676.
.. [5] D. Applegate, O. Hinder, H. Lu, M. Lubin. *Faster first-order primal-dual methods for linear programming using
   restarts and sharpness.* Mathematical Programming 201, 2023. arXiv:2105.12715.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from rposst_opt.errors import ProblemError, closest
from rposst_opt.problem import Problem
from rposst_opt.solvers.bounds import predictive_gap, regret_matching_gap, steepest_payoff
from rposst_opt.solvers.kernels.players import FROM_BEST, FROM_LAST, NEVER, Player

REGRET_MATCHING = "regret-matching+"
STEP, LONGEST_STEP = 0.1, 1e6


class _Rule(NamedTuple):
    """What sets a player apart."""

    words: str
    predicts: bool = False
    probes: bool = False
    is_smooth: bool = False


PLAYERS = {
    REGRET_MATCHING: _Rule("regret matching+"),
    "predictive": _Rule("predictive regret matching+", predicts=True),
    "extragradient": _Rule("extragradient regret matching+", probes=True, is_smooth=True),
    "smooth-predictive": _Rule("smooth predictive regret matching+", predicts=True, is_smooth=True),
}
RESTARTS = {"never": NEVER, "last": FROM_LAST, "best": FROM_BEST}


class PlayerChoice(NamedTuple):
    """A player with its options, as `RegretMatching` takes them."""

    name: str
    restarts: str
    step: float | None

    def check(self) -> None:
        """Refuse players and restarts that there are not, and steps that are of no use."""
        for option, value, known in (("player", self.name, PLAYERS), ("restarts", self.restarts, RESTARTS)):
            if not isinstance(value, str) or value not in known:
                meant = closest(value, known)
                asked = "." if meant is None else f": did you mean {meant!r}?"
                raise ProblemError(f"`{option}` must be one of {', '.join(known)}, got {value!r}{asked}")
        if self.step is None:
            return
        if not PLAYERS[self.name].is_smooth:
            smooth = " and ".join(name for name, rule in PLAYERS.items() if rule.is_smooth)
            raise ProblemError(f"`step` goes with the players {smooth}; {self.name} has none.")
        if isinstance(self.step, bool) or not isinstance(self.step, int | float) or not 0 < self.step <= LONGEST_STEP:
            raise ProblemError(f"`step` must be a number above 0 and at most {LONGEST_STEP:,.0f}, got {self.step!r}.")

    @property
    def is_reference(self) -> bool:
        """Whether this is the paper's Algorithm 2."""
        return self.name == REGRET_MATCHING and self.restarts == "never"

    @property
    def method(self) -> str:
        """What it does, in a few words."""
        if self.is_reference:
            return "regret matching+ on every tuple (paper, Algorithm 2)"
        from_where = "" if self.restarts == "never" else f", started again from the {self.restarts} round"
        return f"{PLAYERS[self.name].words} on every tuple{from_where}"

    @property
    def proves(self) -> str:
        """What its lower bound is, in a few words."""
        if self.is_reference:
            return "a gap of at most 2G √(m/T), by averaged cuts"
        return "a gap, by averaged cuts"

    def promised_gap(self, rounds: int) -> Callable[[Problem], float] | None:
        """How far from the optimum an answer may be after so many rounds; nothing is promised with restarts."""
        if self.is_reference:
            return partial(regret_matching_gap, rounds=rounds)
        if self.restarts != "never":
            return None
        rule = PLAYERS[self.name]
        step = self._step if rule.is_smooth else math.inf
        return partial(predictive_gap, rounds=rounds, questions_per_round=1 + rule.probes, step=step)

    def player(self, problem: Problem, least_gap: float) -> Player:
        """The same in numbers, for this problem's payoffs; a gap below `least_gap` is rounding."""
        rule = PLAYERS[self.name]
        largest_payoff = steepest_payoff(problem)
        return Player(
            predicts=rule.predicts,
            probes=rule.probes,
            floor=1.0 if rule.is_smooth else 0.0,
            step=self._step / largest_payoff if rule.is_smooth and largest_payoff > 0 else 1.0,
            restarts=RESTARTS[self.restarts],
            least_gap=float(least_gap),
        )

    @property
    def _step(self) -> float:
        return float(STEP if self.step is None else self.step)
