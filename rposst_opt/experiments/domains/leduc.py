"""Checkpoints of one training run on Leduc poker, and three scripted agents: a population made as Gran Turismo's was.

Leduc poker is small enough to list every way a game can end. A policy then is how likely it does its own part of each
ending, from either seat, and the results of all pairs come out of matrix products, exactly.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import BackendUnavailable, ProblemError

if TYPE_CHECKING:
    import pandas as pd

FOLD, CALL, RAISE = 0, 1, 2
N_ACTIONS = 3
JACK, KING = 0, 2  # OpenSpiel's number of a card is its rank times the number of suits, plus its suit
SUITS = 2


class Decision(NamedTuple):
    """What a player sees when it has to act: its own card, the public card if it lies there, and what is allowed."""

    private: int
    public: int | None
    allowed: tuple[int, ...]


Rule = Callable[[Decision], int]
Moves = tuple[tuple[str, int], ...]  # the information states at which a player acted, and how


@dataclass(frozen=True)
class Game:
    """Leduc poker, listed.

    Attributes
    ----------
    decisions : mapping of str to Decision
        What can be seen at each information state, by OpenSpiel's name for it.
    chance : array of shape (endings,)
        How likely the cards of each ending are dealt.
    payoffs : array of shape (endings,)
        What the player in seat 0 wins at each ending, in chips; the other loses as much.
    moves : array of shape (2, endings, moves)
        Which actions each seat takes on the way: positions in a flattened policy, and its length where there is none.
    """

    decisions: dict[str, Decision]
    chance: FloatArray
    payoffs: FloatArray
    moves: NDArray[np.intp]


def checkpoints(
    *,
    n_checkpoints: int = 43,
    iterations: int = 100,
    matches: int | None = None,
    rng: np.random.Generator | None = None,
) -> "pd.DataFrame":
    """Checkpoints of one training run on Leduc poker, and three scripted agents.

    The run is counterfactual regret minimisation, and a checkpoint is the strategy that it plays at that moment, not
    the average of all so far: each average beats all earlier ones, while the strategies of the moment get better fast
    at first and then go round in circles, as those of self-play do. Checkpoints are dense early and sparse late.

    Parameters
    ----------
    n_checkpoints : int
        How many checkpoints to keep: the first after one iteration, the last, or the only one, after all of them.
    iterations : int
        How long to train; nothing in the run is random.
    matches : int, optional
        Play so many games a pair, half of them with each seating, instead of computing the expected result.
    rng : numpy.random.Generator, optional
        Deals the cards of these games, and draws the moves.

    Returns
    -------
    DataFrame of shape (n_checkpoints + 3, n_checkpoints + 3)
        What the column player, the policy, wins from the row player, the test case: chips per game, the mean over both
        seats. The row player wins the negative, to the last digit.
    """
    import pandas as pd

    _check(n_checkpoints, iterations, matches, rng)
    pyspiel = _openspiel()
    leduc, game = _game()
    trained = training_run(pyspiel.CFRSolver(leduc), game, schedule(n_checkpoints, iterations))
    policies = np.array([*trained, *(scripted(game, rule) for rule in SCRIPTED.values())])
    names = [*(f"checkpoint-{number:0{len(str(n_checkpoints - 1))}d}" for number in range(n_checkpoints)), *SCRIPTED]
    payoffs, law = payoff_law(game, policies)
    if matches is not None and rng is not None:
        law = rng.multinomial(matches // 2, law) / (matches // 2)
    seat_0_wins = law @ payoffs
    return pd.DataFrame((seat_0_wins.T - seat_0_wins) / 2, index=names, columns=names)


def schedule(n_checkpoints: int, iterations: int) -> list[int]:
    """After which iterations to keep a checkpoint: from 1 to the last, ever farther apart, no two at once."""
    order = np.arange(n_checkpoints)
    evenly_growing = np.rint(np.geomspace(iterations, 1, n_checkpoints)[::-1]).astype(int)
    stops: list[int] = (np.maximum.accumulate(evenly_growing - order) + order).tolist()
    return stops


@cache
def _game() -> tuple[Any, Game]:
    """OpenSpiel's Leduc poker, and every way in which it can end: it is the same for all tables."""
    leduc = _openspiel().load_game("leduc_poker")
    return leduc, listed(leduc)


def listed(leduc: Any) -> Game:
    """Every way in which OpenSpiel's Leduc poker can end."""
    decisions: dict[str, Decision] = {}
    endings = _endings(leduc.new_initial_state(), 1.0, (), ((), ()), decisions)
    chance, payoffs, played = zip(*endings, strict=True)
    place = {information_state: N_ACTIONS * number for number, information_state in enumerate(decisions)}
    longest = max(len(own) for both in played for own in both)
    moves = np.full((2, len(played), longest), N_ACTIONS * len(decisions), dtype=np.intp)
    for number, both in enumerate(played):
        for seat, own in enumerate(both):
            moves[seat, number, : len(own)] = [place[information_state] + action for information_state, action in own]
    return Game(decisions, np.array(chance), np.array(payoffs), moves)


def _endings(
    state: Any, chance: float, ranks: tuple[int, ...], moves: tuple[Moves, Moves], decisions: dict[str, Decision]
) -> Iterator[tuple[float, float, tuple[Moves, Moves]]]:
    """How a game can go on from a state: how likely its cards are, what seat 0 wins, and what each seat did.

    The decisions on the way are noted in `decisions`.
    """
    if state.is_terminal():
        yield chance, state.player_return(0), moves
    elif state.is_chance_node():
        for card, probability in state.chance_outcomes():
            yield from _endings(state.child(card), chance * probability, (*ranks, card // SUITS), moves, decisions)
    else:
        seat, name = state.current_player(), state.information_state_string()
        public = ranks[2] if len(ranks) == 3 else None
        decisions[name] = Decision(ranks[seat], public, tuple(state.legal_actions()))
        for action in decisions[name].allowed:
            own = (*moves[seat], (name, action))
            both = (own, moves[1]) if seat == 0 else (moves[0], own)
            yield from _endings(state.child(action), chance, ranks, both, decisions)


def training_run(solver: Any, game: Game, stops: list[int]) -> list[FloatArray]:
    """The solver's current strategy after each of the given numbers of iterations, as decisions × actions."""
    kept = []
    for iteration in range(1, stops[-1] + 1):
        solver.evaluate_and_update_policy()
        if iteration in stops:
            kept.append(tabulated(solver.tabular_current_policy().policy_table(), game))
    return kept


def tabulated(policy_table: dict[str, list[tuple[int, float]]], game: Game) -> FloatArray:
    """A policy as decisions × actions, from OpenSpiel's table of it."""
    policy = np.zeros((len(game.decisions), N_ACTIONS))
    for place, information_state in enumerate(game.decisions):
        for action, probability in policy_table[information_state]:
            policy[place, action] = probability
    return policy


def scripted(game: Game, rule: Rule) -> FloatArray:
    """A policy that follows a rule, as decisions × actions."""
    return np.eye(N_ACTIONS)[[rule(decision) for decision in game.decisions.values()]]


def always_call(decision: Decision) -> int:
    """Never bets and never folds."""
    return CALL


def always_raise(decision: Decision) -> int:
    """Bets and raises as long as the rules allow, then calls."""
    return RAISE if RAISE in decision.allowed else CALL


def tight(decision: Decision) -> int:
    """Raises with a pair or a king, folds other jacks to a bet, and calls with the rest."""
    if decision.private in (decision.public, KING):
        return always_raise(decision)
    return FOLD if decision.private == JACK and FOLD in decision.allowed else CALL


SCRIPTED: dict[str, Rule] = {"always-call": always_call, "always-raise": always_raise, "tight": tight}


def payoff_law(game: Game, policies: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What seat 0 can win, and how likely each policy there wins that from each policy in seat 1.

    Returns
    -------
    array of shape (payoffs,), array of shape (policies, policies, payoffs)
        The probabilities are exact: the second array times the first is the expected result.
    """
    with_none = np.column_stack([policies.reshape(len(policies), -1), np.ones(len(policies))])
    seat_0, seat_1 = (with_none[:, game.moves[seat]].prod(axis=2) for seat in (0, 1))
    payoffs = np.unique(game.payoffs)
    return payoffs, np.stack([(seat_0 * game.chance * (game.payoffs == won)) @ seat_1.T for won in payoffs], axis=2)


def _check(n_checkpoints: int, iterations: int, matches: int | None, rng: np.random.Generator | None) -> None:
    if n_checkpoints < 1:
        raise ProblemError(f"`n_checkpoints` must be at least 1, got {n_checkpoints}.")
    if iterations < n_checkpoints:
        raise ProblemError(f"`iterations` must be at least `n_checkpoints`, {n_checkpoints}, got {iterations}.")
    if matches is not None and (matches < 2 or matches % 2):
        raise ProblemError(f"`matches` must be an even number from 2, to swap seats half the time, got {matches}.")
    if matches is not None and rng is None:
        raise ProblemError("`matches` needs `rng`, a numpy.random.Generator that deals the cards.")


def _openspiel() -> Any:
    try:
        import pyspiel
    except ModuleNotFoundError as error:
        if error.name != "pyspiel":
            raise  # it is there, and lacks something itself
        raise BackendUnavailable("Leduc poker needs OpenSpiel: pip install 'rposst-opt[openspiel]'") from None
    return pyspiel
