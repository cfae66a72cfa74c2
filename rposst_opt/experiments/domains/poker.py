"""Duplicate poker: result matrices from tables and match logs of the Annual Computer Poker Competition (ACPC).

A duplicate match is played twice, with the same cards and the players in each other's seats, so that the luck of the
deal cancels. In every matrix a row is an opponent (a test case), a column is an agent (a policy), and an entry is what
the column's agent wins from the row's opponent.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rposst_opt.arrays import FloatArray, as_numbers
from rposst_opt.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd

Pair = tuple[str, str]

BIG_BLINDS = {"holdem.limit.2p.reverse_blinds.game": 10, "holdem.nolimit.2p.reverse_blinds.game": 100}
TABLE_ROUNDING = 1e-6  # by so much of its size may an entry of a table differ from its mirror image
CHIP_ROUNDING = Decimal("0.000001")  # the dealer prints chips to six decimals
HEADER = re.compile(r"# name/game/hands/seed \S+ (?:\S*/)?([^\s/]+) \d+ \d+")  # the game may come with its folder
CHIPS = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)\|(-?[0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True, eq=False)
class Crosstable:
    """A complete table of scores, and the pairs of agents that it has no match of: these stand as 0."""

    results: "pd.DataFrame"
    unplayed: tuple[Pair, ...]


@dataclass(frozen=True, eq=False)
class MatchScores:
    """Scores in milli-big-blinds per game, how many hands each counts, and the pairs without a match: these are 0."""

    results: "pd.DataFrame"
    hands: "pd.DataFrame"
    unplayed: tuple[Pair, ...]


class Hand(NamedTuple):
    """One hand: the cards that the log shows, who had the positions 0 and 1, and what they won."""

    cards: str
    seats: Pair
    chips: tuple[Decimal, Decimal]


@dataclass(frozen=True, eq=False)
class MatchLog:
    """One match in one seating: how its headers call the game, its hands by number, and what each player won."""

    file: str
    games: set[str]
    hands: dict[str, Hand]
    totals: dict[str, Decimal]


def crosstable(table: "pd.DataFrame") -> Crosstable:
    """Check and complete a table of duplicate scores, where what one agent wins the other loses.

    Parameters
    ----------
    table : DataFrame
        The column agent's score against the row opponent. The competition prints the row player's: transpose that
        first, because the signs alone do not tell. The columns may stand in any order. A blank cell is filled in from
        its mirror image. A pair that is blank or 0 in both cells counts as not played.
    """
    import pandas as pd

    agents, columns = agents_of(table), [str(name) for name in table.columns]
    blanks_as_nan = np.where(table.notna().to_numpy(), table.to_numpy(dtype=object), np.nan)
    scores = as_numbers("table", blanks_as_nan)[:, [columns.index(agent) for agent in agents]]
    refuse(np.isinf(scores), "be finite", scores, agents)
    refuse(np.diag(np.nan_to_num(np.diag(scores)) != 0), "have zeros or blanks on its diagonal", scores, agents)
    halves = scores / 2  # because the sum of two entries may be beyond float64
    uneven = np.abs(halves + halves.T) > TABLE_ROUNDING * np.abs(halves)
    refuse(uneven, "be antisymmetric", scores, agents)
    complete = np.nan_to_num(np.where(np.isnan(scores), 0.0 - scores.T, scores))
    unplayed = tuple(
        (agents[first], agents[second])
        for first, second in combinations(range(len(agents)), 2)
        if complete[first, second] == 0  # and with it the mirror image
    )
    return Crosstable(pd.DataFrame(complete, index=agents, columns=agents), unplayed)


def agents_of(table: "pd.DataFrame") -> list[str]:
    """The names of the rows, or an error if the columns have others, or if a name comes twice."""
    rows, columns = [str(name) for name in table.index], [str(name) for name in table.columns]
    for axis, names, others in (("row", rows, columns), ("column", columns, rows)):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ProblemError(f"`table` must name each agent once on each axis, got more than one {axis} {repeated}.")
        missing = [name for name in others if name not in names]
        if missing:
            raise ProblemError(f"`table` must have the same names on both axes, got no {axis} {missing}.")
    if len(rows) < 2:
        raise ProblemError(f"`table` must have at least two agents, got {rows}.")
    return rows


def refuse(wrong: NDArray[np.bool_], rule: str, scores: FloatArray, agents: Sequence[str]) -> None:
    """Raise an error with the first wrong cell and its mirror image, if any cell is wrong."""
    cells = np.argwhere(wrong).tolist()
    if cells:
        row, column = cells[0]
        got = [
            f"{scores[opponent, agent]} for {agents[agent]!r} against {agents[opponent]!r}"
            for opponent, agent in dict.fromkeys([(row, column), (column, row)])
        ]
        raise ProblemError(f"`table` must {rule}, got {' and '.join(got)}.")


def duplicate_scores(logs: Iterable[tuple[str, Iterable[str]]], *, big_blind: float | None = None) -> MatchScores:
    """Score the matches that an ACPC dealer logged, once it is sure that each was played in both seatings.

    Parameters
    ----------
    logs : iterable of (file name, lines)
        Of two-player matches since 2011, one game only, in any order; of each match both seatings. They are read one
        at a time and kept until the other seating comes. A match of an agent with itself says nothing and is skipped.
    big_blind : float, optional
        In chips. Without it, each log must name one of `BIG_BLINDS` as its game.

    Returns
    -------
    MatchScores
        With the agents sorted by name. A score is 1000 × chips / big blind / hands over all logs of the pair.
    """
    if big_blind is not None and not 0 < big_blind < math.inf:
        raise ProblemError(f"`big_blind` must be a positive number of chips, got {big_blind}.")
    files_of_games: dict[str, str] = {}
    waiting: defaultdict[Pair, list[MatchLog]] = defaultdict(list)
    chips: defaultdict[Pair, Decimal] = defaultdict(Decimal)
    hands: defaultdict[Pair, int] = defaultdict(int)
    for file, lines in logs:
        log = read_log(file, lines)
        check_game(log, files_of_games, big_blind)
        if len(log.totals) == 1:
            continue
        first, second = sorted(log.totals)
        pair = (first, second)
        twin = next((other for other in waiting[pair] if are_duplicates(log, other)), None)
        if twin is None:
            waiting[pair].append(log)
            continue
        waiting[pair].remove(twin)
        chips[pair] += log.totals[first] + twin.totals[first]
        hands[pair] += len(log.hands) + len(twin.hands)
    check_none_waits([log.file for logs_of_pair in waiting.values() for log in logs_of_pair])
    if not hands:
        raise ProblemError("`logs` must hold a match between two agents, got none.")
    return score_tables(chips, hands, BIG_BLINDS[next(iter(files_of_games))] if big_blind is None else big_blind)


def score_tables(chips: Mapping[Pair, Decimal], hands: Mapping[Pair, int], big_blind: float) -> MatchScores:
    """Tables from the chips that the first of each pair won from the second, and from the numbers of hands."""
    import pandas as pd

    agents = sorted({agent for pair in hands for agent in pair})
    results = pd.DataFrame(0.0, index=agents, columns=agents)
    counts = pd.DataFrame(0, index=agents, columns=agents)
    for (first, second), count in hands.items():
        score = float(1000 * Fraction(chips[first, second]) / Fraction(big_blind) / count)
        results.loc[second, first], results.loc[first, second] = score, 0.0 - score
        counts.loc[second, first] = counts.loc[first, second] = count
    return MatchScores(results, counts, tuple(pair for pair in combinations(agents, 2) if pair not in hands))


def check_game(log: MatchLog, files_of_games: dict[str, str], big_blind: float | None) -> None:
    """Note the game of a log, and refuse a second game or one whose big blind nobody says."""
    files_of_games.update((game, log.file) for game in sorted(log.games - files_of_games.keys()))
    if len(files_of_games) > 1:
        raise ProblemError(f"`logs` must be of one game, got {files_of_games}.")
    if big_blind is None and not log.games & BIG_BLINDS.keys():
        game = "".join(log.games)
        raise ProblemError(
            f"Match log {log.file!r}: its header must name a known game, got {game!r}: give `big_blind`."
        )


def are_duplicates(log: MatchLog, other: MatchLog) -> bool:
    """Whether the other log has the same deals with the players in each other's seats."""
    return log.hands.keys() == other.hands.keys() and all(
        hand.seats == other.hands[number].seats[::-1] and same_deal(hand.cards, other.hands[number].cards)
        for number, hand in log.hands.items()
    )


def same_deal(cards: str, other_cards: str) -> bool:
    """Whether the hole and board cards that both show are the same: after a fold the rest of the board is not shown."""
    return cards == other_cards or all(
        these == those or "" in (these, those)
        for these, those in zip(re.split(r"[|/]", cards), re.split(r"[|/]", other_cards), strict=False)
    )


def check_none_waits(files: Sequence[str]) -> None:
    """Refuse matches of which only one seating is there."""
    if files:
        raise ProblemError(
            f"Match log {min(files)!r}: its twin is missing, a log of the same cards with the players in each other's "
            f"seats: add it, or leave this log out ({len(files)} of all logs are without a twin)."
        )


def read_log(file: str, lines: Iterable[str]) -> MatchLog:
    """One log, or an error with its name."""
    try:
        return parse_log(file, lines)
    except ProblemError as error:
        raise ProblemError(f"Match log {file!r}: {error}") from None


def parse_log(file: str, lines: Iterable[str]) -> MatchLog:
    """One log, whose lines may come in any order."""
    games: set[str] = set()
    hands: dict[str, Hand] = {}
    scores: list[Mapping[str, Decimal]] = []
    for line in map(str.strip, lines):
        if not line or line.startswith("#"):
            games.update(HEADER.findall(line))
            continue
        kind, *fields = line.partition(" #")[0].rstrip().split(":")  # some logs have the time behind each hand
        if kind == "STATE" and len(fields) == 5:
            number, _, cards, chips, names = fields
            if number in hands:
                raise ProblemError(f"hand {number} comes twice.")
            hands[number] = Hand(cards, *seats_and_chips(chips, names))
        elif kind == "SCORE" and len(fields) == 2:
            scores.append(dict(zip(*seats_and_chips(*fields), strict=True)))
        else:
            raise ProblemError(f"{line!r} is no line of a dealer's log; those before 2011 were written differently.")
    if len(scores) != 1:
        raise ProblemError(f"a finished match has one SCORE line, got {len(scores)}.")
    check_numbers(hands.keys())
    return MatchLog(file, games, hands, checked_totals(hands.values(), scores[0]))


def check_numbers(numbers: Collection[str]) -> None:
    """Refuse numbers of hands that do not count from 0, or none at all."""
    missing = [number for number in range(max(1, len(numbers))) if str(number) not in numbers]
    if missing:
        raise ProblemError(f"its {len(numbers)} hands must be numbered from 0 without a gap, got none {missing[0]}.")


def seats_and_chips(chips: str, names: str) -> tuple[Pair, tuple[Decimal, Decimal]]:
    """The two players of a line and what they won."""
    seats, amounts = names.split("|"), CHIPS.fullmatch(chips)
    if len(seats) != 2:
        raise ProblemError(f"only matches of two players can be read, got {len(seats)} players {seats}.")
    if not amounts or Decimal(amounts[1]) + Decimal(amounts[2]) != 0:
        raise ProblemError(f"what one player wins the other must lose, got chips {chips!r} for {names!r}.")
    return (seats[0], seats[1]), (Decimal(amounts[1]), Decimal(amounts[2]))


def checked_totals(hands: Collection[Hand], score: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """What each player won in all hands, as the SCORE line says too; one name only, if an agent played itself."""
    totals = dict.fromkeys(score, Decimal())
    for hand in hands:
        if totals.keys() != set(hand.seats):
            raise ProblemError(f"its hands and SCORE line must be of the same two, got {hand.seats} and {(*score,)}.")
        for name, won in zip(hand.seats, hand.chips, strict=True):
            totals[name] += won
    for name, total in totals.items():
        if len(totals) == 2 and abs(score[name] - total) > CHIP_ROUNDING * len(hands):
            raise ProblemError(f"its SCORE line has {score[name]} for {name!r}, but its hands sum to {total}.")
    return totals
