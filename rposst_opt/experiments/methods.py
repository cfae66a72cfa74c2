"""What is compared: the reference method, the proved optimum, the paper's baselines and two of practitioners.

A method is a backend with settled options. All of them see the same tuning matrix, and run on one core, since replicas
are what is run in parallel.
"""

from dataclasses import dataclass
from typing import Any

from rposst_opt.backends import entry_of

REFERENCE = "regret-matching"
# The two games that keep all tuples' weights are played for as many rounds as this allows, from 10 to 200: in the
# paper's largest problems they are far from having converged.
WORK_OF_GAMES = 100_000  # tuples times rounds


@dataclass(frozen=True)
class Method:
    """A way to choose a test, as figures and tables call it.

    Attributes
    ----------
    label : str
    in_paper : bool
        Whether the paper's figures have it; the others are drawn in the background.
    rounds : int or None
        Rounds of its game, where they are settled.
    """

    label: str
    in_paper: bool = False
    rounds: int | None = None


METHODS: dict[str, Method] = {
    REFERENCE: Method("RPOSST", in_paper=True, rounds=500),
    "exact": Method("exact optimum"),
    "minimax-uniform": Method("minimax uniform", in_paper=True),
    "iterative-minimax": Method("iterative minimax", in_paper=True),
    "minimax-tnp-uniform": Method("minimax(TNP) uniform", in_paper=True),
    "minimax-ttd-uniform": Method("minimax(TTD) uniform", in_paper=True),
    "miniaverage-uniform": Method("miniaverage uniform", in_paper=True),
    "sampled-regret-matching": Method("sampled 1-of-100"),
    "simultaneous": Method("best of RPOSST_sim"),
    "kmeans-anchors": Method("k-means anchors"),
    "random": Method("random"),
}


def options_of(method: str, n_tuples: int, seed: int) -> dict[str, Any]:
    """The options with which a method's backend is called on a problem of so many tuples."""
    settled = METHODS[method]
    rounds = min(200, max(10, WORK_OF_GAMES // n_tuples)) if settled.rounds is None else settled.rounds
    asked = {"rounds": rounds, "samples_per_tuple": max(2, rounds // 10), "seed": seed, "threads": 1}
    known = entry_of(method).options
    return {name: value for name, value in asked.items() if name in known}
