"""The iterated prisoner's dilemma between the strategies of the Axelrod library: a large population, written by others.

The strategies are those that the library calls ordinary and quick: they neither read each other's minds nor take long.
Its teams of strategies are left out, because a match of theirs takes many times as long.
"""

import inspect
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import BackendUnavailable, ProblemError

if TYPE_CHECKING:
    import pandas as pd


def axelrod_tournament(
    *, turns: int = 50, repetitions: int = 2, n_strategies: int | None = None, seed: int = 0
) -> "pd.DataFrame":
    """A round robin of the Axelrod library's strategies in the iterated prisoner's dilemma.

    Both players know how many turns a match has. Per turn, mutual cooperation scores 3 for each and mutual defection 1;
    who defects alone scores 5, and the other 0.

    Parameters
    ----------
    turns : int
        How long a match is.
    repetitions : int
        How many matches a pair plays if one of the two is stochastic; others play one, which says it all.
    n_strategies : int, optional
        Take only so many, drawn by the seed. With the same seed, fewer are some of the more, with the same results.
    seed : int
        Decides what stochastic strategies do, match by match.

    Returns
    -------
    DataFrame of shape (strategies, strategies)
        What the column strategy, the policy, scores per turn against the row strategy, the test case.
    """
    import pandas as pd

    for name, value in {"turns": turns, "repetitions": repetitions}.items():
        if value < 1:
            raise ProblemError(f"`{name}` must be at least 1, got {value}.")
    if seed < 0:
        raise ProblemError(f"`seed` must not be negative, got {seed}.")
    players = population()
    if n_strategies is not None:
        if not 1 <= n_strategies <= len(players):
            raise ProblemError(f"`n_strategies` must be from 1 to {len(players)}, got {n_strategies}.")
        drawn = np.random.default_rng(seed).permutation(len(players))[:n_strategies]
        players = [players[position] for position in sorted(drawn)]
    names = [player.name for player in players]
    return pd.DataFrame(round_robin(players, turns, repetitions, seed), index=names, columns=names)


def population() -> list[Any]:
    """One player of each ordinary strategy that is quick and not a team, in the library's order."""
    axelrod = _axelrod()
    kinds = axelrod.short_run_time_strategies
    return [kind() for kind in kinds if not issubclass(kind, axelrod.MetaPlayer)]


def round_robin(players: Sequence[Any], turns: int, repetitions: int, seed: int) -> FloatArray:
    """The mean score per turn of each player (column) against each (row), a copy of itself included."""
    scores = np.zeros((len(players), len(players)))
    for first, second in combinations_with_replacement(range(len(players)), 2):
        own, opposing = mean_scores(players[first], players[second], turns, repetitions, seed)
        scores[second, first] = own
        scores[first, second] = opposing if first != second else (own + opposing) / 2
    return scores


def mean_scores(player: Any, opponent: Any, turns: int, repetitions: int, seed: int) -> tuple[float, float]:
    """What two players score per turn, on average over their matches, whatever others play and in which order."""
    axelrod = _axelrod()
    stochastic = axelrod.Classifiers["stochastic"]
    pair = (player, opponent if opponent is not player else opponent.clone())
    n_matches = repetitions if any(stochastic(one) for one in pair) else 1
    total = np.zeros(2)
    for repetition in range(n_matches):
        match = axelrod.Match(pair, turns=turns, seed=match_seed(player.name, opponent.name, repetition, seed))
        match.play()
        total += match.final_score_per_turn()
    own, opposing = (total / n_matches).tolist()
    return own, opposing


def match_seed(player: str, opponent: str, repetition: int, seed: int) -> int:
    """A seed of its own for each match, from the names of the two: who else takes part does not matter."""
    who = [zlib.crc32(name.encode()) for name in (player, opponent)]
    return int(np.random.SeedSequence([seed, *who, repetition]).generate_state(1)[0])


@contextmanager
def _every_source_read_once() -> Iterator[None]:
    """Importing Axelrod asks for the sources of a few hundred methods, ten thousand times: most of its time."""
    if "axelrod" in sys.modules:
        yield
        return
    read, known = inspect.getsource, dict[Any, str]()

    def remember(object: Any) -> str:
        function = getattr(object, "__func__", object)  # a method is made anew for each player, its function is not
        if function not in known:
            known[function] = read(object)
        return known[function]

    inspect.getsource = remember
    try:
        yield
    finally:
        inspect.getsource = read


def _axelrod() -> Any:
    try:
        with warnings.catch_warnings(), _every_source_read_once():
            # Its sources have escape sequences that Python warns of when it compiles them for the first time.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            import axelrod
    except ModuleNotFoundError as error:
        if error.name != "axelrod":
            raise  # it is there, and lacks something itself
        raise BackendUnavailable(
            "the iterated prisoner's dilemma needs the Axelrod library: pip install 'rposst-opt[axelrod]'"
        ) from None
    return axelrod
