import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rposst_opt as ro
from rposst_opt.experiments.domains.poker import MatchScores, crosstable, duplicate_scores

NAN = float("nan")
LIMIT_GAME = "holdem.limit.2p.reverse_blinds.game"
NO_LIMIT_GAME = "holdem.nolimit.2p.reverse_blinds.game"
LIMIT = f"# name/game/hands/seed some.match {LIMIT_GAME} 2 7"
NO_LIMIT = f"# name/game/hands/seed some.match {NO_LIMIT_GAME} 2 7"

# Ann wins 10 + 20 chips in one seating and 5 - 40 in the other: -5 chips in 4 hands.
# At a big blind of 10 chips that is 1000 * -5 / 10 / 4 = -125 milli-big-blinds per game, and +125 for Bob.
ANN_FIRST = [
    LIMIT,
    "#--t_response 600000",
    "STATE:0:rrc/rc/rf:3s5d|Td2s/4d5c4s/Kd:10|-10:Ann|Bob",
    "STATE:1:rf:7d5s|Kh9c:-20|20:Bob|Ann",
    "SCORE:30|-30:Ann|Bob",
]
BOB_FIRST = [
    LIMIT,
    "STATE:0:f:3s5d|Td2s:-5|5:Bob|Ann",
    "STATE:1:rc/cc/cc/cc:7d5s|Kh9c/As3hTs/Jh/Js:-40|40:Ann|Bob",
    "SCORE:35|-35:Bob|Ann",
]

Lines = list[str]
Logs = list[tuple[str, Lines]]
MATCH: Logs = [("ann.bob.0.log", ANN_FIRST), ("ann.bob.1.log", BOB_FIRST)]


def edited(lines: Lines, *edits: tuple[str, str]) -> Lines:
    """The lines with each text replaced, which must be there."""
    text = "\n".join(lines)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text.split("\n")


def renamed(logs: Logs, ann: str, bob: str) -> Logs:
    return [
        (file.replace("ann", ann).replace("bob", bob), edited(lines, ("Ann", ann), ("Bob", bob)))
        for file, lines in logs
    ]


def entries(table: pd.DataFrame) -> list[list[float]]:
    assert list(table.index) == list(table.columns)
    return table.to_numpy().tolist()


def table_of(rows: list[list[object]], names: str = "abc", columns: str | None = None) -> pd.DataFrame:
    return pd.DataFrame(rows, index=list(names), columns=list(names if columns is None else columns))


class TestCrosstable:
    def test_a_complete_table_comes_back_as_it_was(self) -> None:
        table = table_of([[0, 3.5, -2], [-3.5, 0, 7], [2, -7, 0]])
        answer = crosstable(table)
        assert entries(answer.results) == [[0, 3.5, -2], [-3.5, 0, 7], [2, -7, 0]]
        assert list(answer.results.index) == ["a", "b", "c"]
        assert (answer.results.dtypes == np.float64).all()
        assert answer.unplayed == ()

    def test_columns_are_put_in_the_order_of_the_rows(self) -> None:
        answer = crosstable(table_of([[-2, 0, 3.5], [7, -3.5, 0], [0, 2, -7]], columns="cab"))
        assert entries(answer.results) == [[0, 3.5, -2], [-3.5, 0, 7], [2, -7, 0]]

    def test_a_pair_that_is_blank_or_zero_in_both_cells_is_declared_once_and_stands_as_zero(self) -> None:
        answer = crosstable(table_of([[0, NAN, 0], [NAN, 0, 7], [0, -7, 0]]))
        assert answer.unplayed == (("a", "b"), ("a", "c"))
        assert entries(answer.results) == [[0, 0, 0], [0, 0, 7], [0, -7, 0]]

    def test_unplayed_pairs_come_in_the_order_of_the_table_and_not_of_the_alphabet(self) -> None:
        answer = crosstable(table_of([[0, 1, 0], [-1, 0, 0], [0, 0, 0]], names="zya"))
        assert answer.unplayed == (("z", "a"), ("y", "a"))

    def test_a_cell_that_alone_is_blank_is_filled_in_by_antisymmetry(self) -> None:
        answer = crosstable(table_of([[0, NAN, -2], [-3.5, 0, 7], [NAN, -7, 0]]))
        assert entries(answer.results) == [[0, 3.5, -2], [-3.5, 0, 7], [2, -7, 0]]
        assert answer.unplayed == ()

    def test_a_blank_diagonal_is_zero(self) -> None:
        assert entries(crosstable(table_of([[NAN, 1], [-1, NAN]], "ab")).results) == [[0, 1], [-1, 0]]

    @pytest.mark.parametrize("blank", [None, pd.NA, NAN])
    def test_every_kind_of_blank_is_one(self, blank: object) -> None:
        table = table_of([[0, blank], [-3, blank]], "ab").astype(object)
        assert entries(crosstable(table).results) == [[0, 3], [-3, 0]]

    def test_names_that_are_no_text_become_text(self) -> None:
        answer = crosstable(pd.DataFrame([[0, 0], [0, 0]], index=[1, 2], columns=[2, 1]))
        assert list(answer.results.columns) == ["1", "2"]
        assert answer.unplayed == (("1", "2"),)

    def test_the_table_itself_is_left_alone(self) -> None:
        table = table_of([[NAN, NAN], [-3.5, 0]], "ab")
        before = table.copy()
        results = crosstable(table).results
        results.loc["a", "b"] = 9.0
        pd.testing.assert_frame_equal(table, before)

    def test_numbers_may_differ_by_what_was_rounded_in_print_and_no_more(self) -> None:
        crosstable(table_of([[0, 773.1877], [-773.188, 0]], "ab"))
        with pytest.raises(ro.ProblemError, match="antisymmetric"):
            crosstable(table_of([[0, 773.1], [-773.188, 0]], "ab"))

    def test_small_numbers_have_no_more_room_than_large_ones(self) -> None:
        with pytest.raises(ro.ProblemError, match="antisymmetric"):
            crosstable(table_of([[0, 1e-9], [-2e-9, 0]], "ab"))

    def test_numbers_as_large_as_they_get_do_not_overflow(self) -> None:
        assert entries(crosstable(table_of([[0, 1.7e308], [-1.7e308, 0]], "ab")).results)[0][1] == 1.7e308
        with pytest.raises(ro.ProblemError, match="antisymmetric"):
            crosstable(table_of([[0, 1.7e308], [1.7e308, 0]], "ab"))

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([[0, 5], [3, 0]], "be antisymmetric, got 5.0 for 'b' against 'a' and 3.0 for 'a' against 'b'"),
            ([[0, 0], [3, 0]], "be antisymmetric, got 0.0 for 'b' against 'a' and 3.0 for 'a' against 'b'"),
            ([[0, 5], [-5, 2]], "have zeros or blanks on its diagonal, got 2.0 for 'b' against 'b'"),
            ([[0, np.inf], [NAN, 0]], "be finite, got inf for 'b' against 'a' and nan for 'a' against 'b'"),
            ([[0, np.inf], [-np.inf, 0]], "be finite, got inf for 'b' against 'a' and -inf for 'a' against 'b'"),
            ([[-np.inf, 1], [-1, 0]], "be finite, got -inf for 'a' against 'a'"),
            ([[0, "many"], [1, 0]], "be a table of numbers: could not convert string to float: 'many'"),
        ],
    )
    def test_wrong_numbers_are_told_with_their_cells(self, rows: list[list[object]], message: str) -> None:
        with pytest.raises(ro.ProblemError) as error:
            crosstable(table_of(rows, "ab"))
        assert str(error.value) == f"`table` must {message}."

    @pytest.mark.parametrize(
        ("names", "columns", "message"),
        [
            ("abc", "abd", r"same names on both axes, got no row \['d'\]"),
            ("abc", "ab", r"same names on both axes, got no column \['c'\]"),
            ("aba", "abc", r"each agent once on each axis, got more than one row \['a'\]"),
            ("abc", "bbc", r"each agent once on each axis, got more than one column \['b'\]"),
            ("abc", "abcc", r"each agent once on each axis, got more than one column \['c'\]"),
            ("a", "a", r"at least two agents, got \['a'\]"),
            ("", "", r"at least two agents, got \[\]"),
        ],
    )
    def test_wrong_names_are_told(self, names: str, columns: str, message: str) -> None:
        with pytest.raises(ro.ProblemError, match=message):
            crosstable(pd.DataFrame(0.0, index=list(names), columns=list(columns)))

    @given(st.integers(2, 6), st.data())
    def test_whatever_is_blanked_or_shuffled_the_table_comes_back(self, n: int, data: st.DataObject) -> None:
        names = [f"agent-{place}" for place in range(n)]
        pairs = list(combinations(names, 2))
        scores = {pair: data.draw(st.just(0.0) | st.floats(allow_nan=False, allow_infinity=False)) for pair in pairs}
        complete = pd.DataFrame(0.0, index=names, columns=names)
        for (first, second), score in scores.items():
            complete.loc[first, second], complete.loc[second, first] = score, -score
        given_table = complete.copy()
        for first, second in pairs:
            cells = [(first, second), (second, first)]
            blanks = data.draw(st.lists(st.sampled_from(cells), max_size=2, unique=True))
            for row, column in blanks:
                given_table.loc[row, column] = NAN
            if len(blanks) == 2:
                scores[first, second] = complete.loc[first, second] = complete.loc[second, first] = 0.0
        answer = crosstable(given_table[data.draw(st.permutations(names))])
        assert entries(answer.results) == entries(complete)
        assert answer.unplayed == tuple(pair for pair in pairs if scores[pair] == 0)
        again = crosstable(answer.results)
        assert entries(again.results) == entries(answer.results)
        assert again.unplayed == answer.unplayed


class TestScoresByHand:
    def test_chips_of_both_seatings_are_added_and_the_columns_agent_is_scored(self) -> None:
        answer = duplicate_scores(MATCH)
        assert list(answer.results.index) == list(answer.results.columns) == ["Ann", "Bob"]
        assert answer.results.loc["Bob", "Ann"] == -125.0
        assert answer.results.loc["Ann", "Bob"] == 125.0
        assert answer.hands.to_numpy().tolist() == [[0, 4], [4, 0]]
        assert answer.unplayed == ()

    def test_the_diagonal_is_zero_and_the_types_are_those_of_scores_and_counts(self) -> None:
        answer = duplicate_scores(MATCH)
        assert np.diag(answer.results).tolist() == [0.0, 0.0]
        assert (answer.results.dtypes == np.float64).all()
        assert (answer.hands.dtypes == np.int64).all()

    def test_a_no_limit_big_blind_is_a_hundred_chips(self) -> None:
        logs = [(file, edited(lines, (LIMIT_GAME, NO_LIMIT_GAME), ("rrc", "r300c"))) for file, lines in MATCH[:1]]
        logs += [(file, edited(lines, (LIMIT_GAME, NO_LIMIT_GAME))) for file, lines in MATCH[1:]]
        assert duplicate_scores(logs).results.loc["Bob", "Ann"] == -12.5  # 1000 * -5 / 100 / 4

    def test_a_big_blind_that_is_given_wins_over_the_header(self) -> None:
        assert duplicate_scores(MATCH, big_blind=2.5).results.loc["Bob", "Ann"] == -500.0  # 1000 * -5 / 2.5 / 4

    def test_chips_may_be_decimals_and_are_added_exactly(self) -> None:
        # Ann wins 0.1 + 0.2 in one seating and loses 0.3 + 40 in the other: exactly -40 in 4 hands.
        ann_first = edited(ANN_FIRST, (":10|-10:", ":0.1|-0.1:"), (":-20|20:", ":-0.2|0.2:"), ("30|-30", "0.3|-0.3"))
        bob_first = edited(BOB_FIRST, (":-5|5:", ":0.300000|-0.300000:"), (":35|-35:", ":40.3|-40.3:"))
        assert duplicate_scores([("0", ann_first), ("1", bob_first)]).results.loc["Bob", "Ann"] == -1000.0

    def test_longer_matches_weigh_more(self) -> None:
        # A second match of one hand per seating, in which Ann wins 7 + 8 chips: 10 chips in 6 hands in all.
        more = [
            ("second.0", [LIMIT, "STATE:0:f:2c2d|2h2s:7|-7:Ann|Bob", "SCORE:7|-7:Ann|Bob"]),
            ("second.1", [LIMIT, "STATE:0:f:2c2d|2h2s:-8|8:Bob|Ann", "SCORE:-8|8:Bob|Ann"]),
        ]
        answer = duplicate_scores([MATCH[0], *more, MATCH[1]])
        assert answer.results.loc["Bob", "Ann"] == pytest.approx(1000 * 10 / 10 / 6, rel=1e-15)
        assert answer.hands.loc["Ann", "Bob"] == 6

    def test_agents_are_sorted_and_pairs_without_a_match_are_declared(self) -> None:
        answer = duplicate_scores([*renamed(MATCH, "Zoe", "Bob"), *renamed(MATCH, "Cat", "Ann")])
        assert list(answer.results.index) == ["Ann", "Bob", "Cat", "Zoe"]
        assert answer.unplayed == (("Ann", "Bob"), ("Ann", "Zoe"), ("Bob", "Cat"), ("Cat", "Zoe"))
        assert entries(answer.results) == [[0, 0, -125, 0], [0, 0, 0, -125], [125, 0, 0, 0], [0, 125, 0, 0]]
        assert entries(answer.hands) == [[0, 0, 4, 0], [0, 0, 0, 4], [4, 0, 0, 0], [0, 4, 0, 0]]

    def test_a_draw_was_played(self) -> None:
        even = edited(BOB_FIRST, (":-5|5:", ":-10|10:"), (":35|-35:", ":30|-30:"))
        answer = duplicate_scores([MATCH[0], ("even", even)])
        assert entries(answer.results) == [[0, 0], [0, 0]]
        assert not np.signbit(answer.results.to_numpy()).any()
        assert answer.unplayed == ()
        assert answer.hands.loc["Ann", "Bob"] == 4

    def test_a_match_of_an_agent_with_itself_is_skipped(self) -> None:
        alone = edited(ANN_FIRST, ("Ann", "Eve"), ("Bob", "Eve"))
        answer = duplicate_scores([("alone.log", alone), *MATCH])
        assert list(answer.results.index) == ["Ann", "Bob"]
        assert answer.results.loc["Bob", "Ann"] == -125.0


class TestRealLogs:
    def test_windows_line_ends_blanks_and_times_behind_the_hands_are_no_matter(self) -> None:
        lines = [f"{line} # 1479132064.35\r\n" if line.startswith("STATE") else f"{line} \r\n" for line in ANN_FIRST]
        answer = duplicate_scores([("crlf", ["\n", *lines, "# end", "   "]), MATCH[1]])
        assert answer.results.loc["Bob", "Ann"] == -125.0

    def test_the_header_may_name_the_games_folder(self) -> None:
        logs = [(file, edited(lines, (LIMIT_GAME, f"server/trunk/{LIMIT_GAME}"))) for file, lines in MATCH]
        assert duplicate_scores([*logs, *renamed(MATCH, "Cat", "Dan")]).results.loc["Bob", "Ann"] == -125.0

    def test_a_header_may_come_again_where_a_match_was_taken_up_again(self) -> None:
        again = [*ANN_FIRST[:3], LIMIT, *ANN_FIRST[3:]]
        assert duplicate_scores([("again", again), MATCH[1]]).results.loc["Bob", "Ann"] == -125.0

    def test_names_stay_as_they_are_written(self) -> None:
        answer = duplicate_scores(renamed(MATCH, "Hugh_iro_2pn_2017", "hyperborean3pk.RM-PUE"))
        assert list(answer.results.index) == ["Hugh_iro_2pn_2017", "hyperborean3pk.RM-PUE"]

    def test_seats_need_not_alternate_as_long_as_they_are_swapped(self) -> None:
        fixed = [
            ("0", [LIMIT, *(f"STATE:{hand}:f:2c2d|2h2s:7|-7:Ann|Bob" for hand in range(2)), "SCORE:14|-14:Ann|Bob"]),
            ("1", [LIMIT, *(f"STATE:{hand}:f:2c2d|2h2s:-8|8:Bob|Ann" for hand in range(2)), "SCORE:-16|16:Bob|Ann"]),
        ]
        assert duplicate_scores(fixed).results.loc["Bob", "Ann"] == 750.0  # 1000 * (14 + 16) / 10 / 4

    def test_hole_cards_that_one_log_hides_are_not_compared(self) -> None:
        hidden = edited(BOB_FIRST, (":3s5d|Td2s:", ":|Td2s:"), ("7d5s|Kh9c/", "7d5s|/"))
        assert duplicate_scores([MATCH[0], ("hidden", hidden)]).results.loc["Bob", "Ann"] == -125.0

    def test_logs_may_be_read_while_they_are_scored(self) -> None:
        opened: list[str] = []

        def lines_of(file: str, lines: Lines) -> Iterator[str]:
            opened.append(file)
            yield from lines

        def logs() -> Iterator[tuple[str, Iterator[str]]]:
            for place, (file, lines) in enumerate(MATCH):
                assert len(opened) == place
                yield file, lines_of(file, lines)

        assert duplicate_scores(logs()).results.loc["Bob", "Ann"] == -125.0

    def test_chips_rounded_in_print_may_sum_to_a_little_more_than_the_score(self) -> None:
        hands = [f"STATE:{hand}:f:2c2d|2h2s:16.666667|-16.666667:Ann|Bob" for hand in range(6)]
        twin = [f"STATE:{hand}:f:2c2d|2h2s:0|0:Bob|Ann" for hand in range(6)]
        logs = [("0", [LIMIT, *hands, "SCORE:100|-100:Ann|Bob"]), ("1", [LIMIT, *twin, "SCORE:0|0:Bob|Ann"])]
        # The sum of the hands counts: 1000 * 100.000002 / 10 / 12.
        assert duplicate_scores(logs).results.loc["Bob", "Ann"] == pytest.approx(833.33335, rel=1e-15)
        logs[0] = ("0", [LIMIT, *hands, "SCORE:100.00001|-100.00001:Ann|Bob"])
        with pytest.raises(
            ro.ProblemError, match=r"SCORE line has 100.00001 for 'Ann', but its hands sum to 100.000002"
        ):
            duplicate_scores(logs)


class TestTwins:
    def check_unpaired(self, logs: Logs, file: str) -> None:
        with pytest.raises(ro.ProblemError, match=rf"Match log '{file}': its twin is missing"):
            duplicate_scores(logs)

    def test_a_match_in_one_seating_is_refused(self) -> None:
        with pytest.raises(ro.ProblemError) as error:
            duplicate_scores([*renamed(MATCH, "Cat", "Dan"), MATCH[1]])
        assert str(error.value) == (
            "Match log 'ann.bob.1.log': its twin is missing, a log of the same cards with the players in each other's "
            "seats: add it, or leave this log out (1 of all logs are without a twin)."
        )

    def test_the_first_of_all_logs_without_a_twin_is_told(self) -> None:
        with pytest.raises(ro.ProblemError, match=r"'ann.bob.0.log': .* \(2 of all logs are without a twin\)"):
            duplicate_scores([*renamed(MATCH, "cat", "dan")[1:], MATCH[0]])

    def test_the_same_seating_twice_is_no_duplicate(self) -> None:
        self.check_unpaired([("b", ANN_FIRST), ("a", ANN_FIRST)], "a")

    def test_a_third_log_needs_a_fourth(self) -> None:
        self.check_unpaired([*MATCH, ("third", BOB_FIRST)], "third")
        answer = duplicate_scores([*MATCH, ("third", BOB_FIRST), ("fourth", ANN_FIRST)])
        assert answer.results.loc["Bob", "Ann"] == -125.0
        assert answer.hands.loc["Ann", "Bob"] == 8

    def test_other_players_with_the_same_cards_are_no_twin(self) -> None:
        self.check_unpaired([MATCH[0], *renamed(MATCH, "Ann", "Cat")[1:]], "Ann.Cat.1.log")

    @pytest.mark.parametrize(
        ("shown", "instead"),
        [("|Td2s", "|Td3s"), (":3s5d|", ":3s6d|"), (":7d5s|", ":5s7d|"), ("Kh9c/", "Kh9d/")],
    )
    def test_other_hole_cards_in_one_hand_are_no_duplicate(self, shown: str, instead: str) -> None:
        self.check_unpaired([MATCH[0], ("other", edited(BOB_FIRST, (shown, instead)))], "ann.bob.0.log")

    def test_boards_are_compared_as_far_as_both_show_them(self) -> None:
        board = "Td2s/4d5c4s/Kd"
        longer = edited(BOB_FIRST, ("Td2s", "Td2s/4d5c4s/Kd/2h"))
        shorter = edited(BOB_FIRST, ("Td2s", "Td2s/4d5c4s"))
        for lines in (longer, shorter, edited(BOB_FIRST, ("Td2s", board))):
            assert duplicate_scores([MATCH[0], ("x", lines)]).results.loc["Bob", "Ann"] == -125.0
        for wrong in ("Td2s/4d5c4h", "Td2s/4d5c4s/Kh", "Td2s/4d5c4s/Qd/2h"):
            self.check_unpaired([MATCH[0], ("x", edited(BOB_FIRST, ("Td2s", wrong)))], "ann.bob.0.log")

    def test_a_single_hand_in_the_same_seats_is_no_duplicate(self) -> None:
        same_seats = edited(BOB_FIRST, (":-40|40:Ann|Bob", ":40|-40:Bob|Ann"))
        self.check_unpaired([MATCH[0], ("x", same_seats)], "ann.bob.0.log")

    def test_a_longer_match_is_no_duplicate(self) -> None:
        longer = [*BOB_FIRST[:-1], "STATE:2:f:2c2d|2h2s:0|0:Bob|Ann", BOB_FIRST[-1]]
        self.check_unpaired([("longer", longer), MATCH[0]], "ann.bob.0.log")
        self.check_unpaired([MATCH[0], ("longer", longer)], "ann.bob.0.log")


class TestWrongLogs:
    @pytest.mark.parametrize(
        ("edit", "message"),
        [
            (("SCORE:30|-30:Ann|Bob", ""), "a finished match has one SCORE line, got 0."),
            (("SCORE:30", "SCORE:0|0:Ann|Bob\nSCORE:30"), "a finished match has one SCORE line, got 2."),
            (("SCORE:30|-30", "SCORE:31|-31"), "its SCORE line has 31 for 'Ann', but its hands sum to 30."),
            (("SCORE:30|-30", "SCORE:-30|30"), "its SCORE line has -30 for 'Ann', but its hands sum to 30."),
            (
                ("SCORE:30|-30:Ann|Bob", "SCORE:30|-30:Ann|Cat"),
                "its hands and SCORE line must be of the same two, got ('Ann', 'Bob') and ('Ann', 'Cat').",
            ),
            (
                (":-20|20:Bob|Ann", ":-20|20:Bob|Cat"),
                "its hands and SCORE line must be of the same two, got ('Bob', 'Cat') and ('Ann', 'Bob').",
            ),
            (
                (":-20|20:Bob|Ann", ":-20|20:Ann|Ann"),
                "its hands and SCORE line must be of the same two, got ('Ann', 'Ann') and ('Ann', 'Bob').",
            ),
            ((":10|-10:", ":10|-9:"), "what one player wins the other must lose, got chips '10|-9' for 'Ann|Bob'."),
            ((":10|-10:", ":10:"), "what one player wins the other must lose, got chips '10' for 'Ann|Bob'."),
            ((":10|-10:", ":nan|nan:"), "what one player wins the other must lose, got chips 'nan|nan' for 'Ann|Bob'."),
            (
                ("SCORE:30|-30", "SCORE:30|-3"),
                "what one player wins the other must lose, got chips '30|-3' for 'Ann|Bob'.",
            ),
            (
                ("STATE:0:rrc/rc/rf:3s5d|Td2s/4d5c4s/Kd:10|-10:Ann|Bob", "STATE:0:rff:As|Ks|Qs:2|-1|-1:Ann|Bob|Cat"),
                "only matches of two players can be read, got 3 players ['Ann', 'Bob', 'Cat'].",
            ),
            (("STATE:1:", "STATE:2:"), "its 2 hands must be numbered from 0 without a gap, got none 1."),
            (("STATE:0:", "STATE:2:"), "its 2 hands must be numbered from 0 without a gap, got none 0."),
            (("STATE:1:", "STATE:0:"), "hand 0 comes twice."),
            (
                ("STATE:1:rf:7d5s|Kh9c:-20|20:Bob|Ann", "Bob|Ann:1:rf:7d5s|Kh9c:-20|20"),
                "'Bob|Ann:1:rf:7d5s|Kh9c:-20|20' is no line of a dealer's log; those before 2011 were written "
                "differently.",
            ),
            (
                ("STATE:1:rf:7d5s|Kh9c:-20|20:Bob|Ann", "STATE:1:rf:7d5s"),
                "'STATE:1:rf:7d5s' is no line of a dealer's log; those before 2011 were written differently.",
            ),
        ],
    )
    def test_the_file_and_what_is_wrong_are_told(self, edit: tuple[str, str], message: str) -> None:
        with pytest.raises(ro.ProblemError) as error:
            duplicate_scores([("wrong.log", edited(ANN_FIRST, edit)), MATCH[1]])
        assert str(error.value) == f"Match log 'wrong.log': {message}"

    def test_a_log_without_hands_is_refused(self) -> None:
        with pytest.raises(ro.ProblemError, match=r"'none.log': its 0 hands must be numbered .* got none 0"):
            duplicate_scores([("none.log", [LIMIT, "SCORE:0|0:Ann|Bob"])])

    def test_a_file_that_is_empty_is_refused(self) -> None:
        with pytest.raises(ro.ProblemError, match=r"'empty.log': a finished match has one SCORE line, got 0"):
            duplicate_scores([("empty.log", [])])

    @pytest.mark.parametrize("logs", [[], [("alone", edited(ANN_FIRST, ("Ann", "Bob")))]])
    def test_there_must_be_a_match_of_two(self, logs: Logs) -> None:
        with pytest.raises(ro.ProblemError, match="must hold a match between two agents, got none"):
            duplicate_scores(logs)


class TestBigBlind:
    def without_header(self, logs: Logs) -> Logs:
        return [(file, [line for line in lines if not line.startswith("#")]) for file, lines in logs]

    def test_without_a_header_it_must_be_given(self) -> None:
        logs = [MATCH[0], *self.without_header(MATCH[1:])]
        with pytest.raises(ro.ProblemError) as error:
            duplicate_scores(logs)
        assert str(error.value) == (
            "Match log 'ann.bob.1.log': its header must name a known game, got '': give `big_blind`."
        )
        assert duplicate_scores(logs, big_blind=10).results.loc["Bob", "Ann"] == -125.0

    def test_for_an_unknown_game_it_must_be_given(self) -> None:
        logs = [(file, edited(lines, (LIMIT_GAME, "leduc.limit.2p.game"))) for file, lines in MATCH]
        with pytest.raises(ro.ProblemError, match=r"'ann.bob.0.log': its header .*, got 'leduc.limit.2p.game'"):
            duplicate_scores(logs)
        assert duplicate_scores(logs, big_blind=1).results.loc["Bob", "Ann"] == -1250.0

    @pytest.mark.parametrize("big_blind", [None, 10])
    def test_two_games_are_refused_whether_it_is_given_or_not(self, big_blind: float | None) -> None:
        others = [(f"other.{file}", edited(lines, (LIMIT, NO_LIMIT))) for file, lines in renamed(MATCH, "Cat", "Dan")]
        with pytest.raises(ro.ProblemError) as error:
            duplicate_scores([*MATCH, *others], big_blind=big_blind)
        assert str(error.value) == (
            f"`logs` must be of one game, got {{'{LIMIT_GAME}': 'ann.bob.0.log', "
            f"'{NO_LIMIT_GAME}': 'other.Cat.Dan.0.log'}}."
        )

    def test_two_games_in_one_file_are_refused(self) -> None:
        with pytest.raises(ro.ProblemError, match="must be of one game"):
            duplicate_scores([("both", [NO_LIMIT, *ANN_FIRST]), MATCH[1]])

    @pytest.mark.parametrize("big_blind", [0, -10, NAN, float("inf")])
    def test_it_must_be_a_positive_number(self, big_blind: float) -> None:
        with pytest.raises(ro.ProblemError, match=f"`big_blind` must be a positive number of chips, got {big_blind}"):
            duplicate_scores(MATCH, big_blind=big_blind)


DECK = [rank + suit for rank in "23456789TJQKA" for suit in "cdhs"]
ROUNDS = [4, 7, 8, 9]  # how many of the cards are dealt by the end of each betting round


@dataclass
class Tournament:
    """Random duplicate matches written down as the dealer does, with a tally of its own."""

    rng: random.Random
    big_blind: int
    logs: Logs = field(default_factory=list)
    chips: dict[tuple[str, str], Fraction] = field(default_factory=dict)
    hands: dict[tuple[str, str], int] = field(default_factory=dict)

    def play(self, one: str, other: str, n_hands: int) -> None:
        decks = [self.rng.sample(DECK, 9) for _ in range(n_hands)]
        for seats in ((one, other), (other, one)):
            lines = [self.header(n_hands), "#--t_response 600000"]
            won_by_first = Fraction(0)
            for number, deck in enumerate(decks):
                won = Fraction(self.rng.randint(-200, 200), self.rng.choice([1, 1, 1, 2, 4]))
                won_by_first += won
                if number % 2 == 0:
                    lines.append(self.hand(number, won, deck, seats))
                else:
                    lines.append(self.hand(number, -won, deck, seats[::-1]))
            lines.append(f"SCORE:{chips(won_by_first)}|{chips(-won_by_first)}:{'|'.join(seats)}")
            self.logs.append((f"{one}.{other}.{len(self.logs)}.log", lines))
            self.count(*seats, won_by_first, n_hands)

    def header(self, n_hands: int) -> str:
        game = {10: LIMIT_GAME, 100: NO_LIMIT_GAME}[self.big_blind]
        return f"# name/game/hands/seed match {game} {n_hands} {self.rng.randint(0, 2**31)}"

    def hand(self, number: int, won: Fraction, deck: list[str], seats: tuple[str, str]) -> str:
        last_round = self.rng.randrange(4)
        holes = f"{''.join(deck[:2])}|{''.join(deck[2:4])}"
        boards = ["".join(deck[ROUNDS[place] : ROUNDS[place + 1]]) for place in range(last_round)]
        betting = "/".join([*["r300c", "cc", "r600r1800c"][:last_round], "f"])
        return f"STATE:{number}:{betting}:{'/'.join([holes, *boards])}:{chips(won)}|{chips(-won)}:{'|'.join(seats)}"

    def count(self, one: str, other: str, won: Fraction, n_hands: int) -> None:
        for pair, gain in (((one, other), won), ((other, one), -won)):
            self.chips[pair] = self.chips.get(pair, Fraction(0)) + gain
            self.hands[pair] = self.hands.get(pair, 0) + n_hands

    def expected(self, agents: list[str]) -> list[list[float]]:
        """By opponents in rows and agents in columns."""
        return [
            [
                float(1000 * self.chips[agent, opponent] / self.big_blind / self.hands[agent, opponent])
                if (agent, opponent) in self.chips
                else 0.0
                for agent in agents
            ]
            for opponent in agents
        ]


def chips(amount: Fraction) -> str:
    """As the dealer prints it: six decimals without the zeros at their end."""
    return f"{float(amount):.6f}".rstrip("0").rstrip(".")


@st.composite
def tournaments(draw: st.DrawFn) -> Tournament:
    agents = draw(st.permutations(["Slumbot", "Hugh_iro", "ASHE", "marv"]))[: draw(st.integers(2, 4))]
    tournament = Tournament(random.Random(draw(st.integers(0, 2**32 - 1))), draw(st.sampled_from([10, 100])))
    for place, (one, other) in enumerate(combinations(agents, 2)):
        for _ in range(draw(st.integers(0 if place else 1, 2))):
            tournament.play(one, other, draw(st.integers(1, 5)))
    return tournament


def same(some: MatchScores, others: MatchScores) -> bool:
    return some.results.equals(others.results) and some.hands.equals(others.hands) and some.unplayed == others.unplayed


class TestRandomTournaments:
    @given(tournaments())
    def test_the_matrix_is_the_one_that_was_tallied(self, tournament: Tournament) -> None:
        answer = duplicate_scores(tournament.logs)
        agents = sorted({agent for pair in tournament.chips for agent in pair})
        assert list(answer.results.index) == agents
        assert entries(answer.results) == tournament.expected(agents)
        assert entries(answer.results.T) == entries(-answer.results)
        assert entries(answer.hands) == [[tournament.hands.get((a, b), 0) for a in agents] for b in agents]
        assert answer.unplayed == tuple(pair for pair in combinations(agents, 2) if pair not in tournament.chips)

    @given(tournaments(), st.randoms(use_true_random=False))
    @settings(max_examples=50)
    def test_the_order_of_files_and_of_lines_is_no_matter(self, tournament: Tournament, rng: random.Random) -> None:
        shuffled = [(file, rng.sample(lines, len(lines))) for file, lines in tournament.logs]
        rng.shuffle(shuffled)
        assert same(duplicate_scores(shuffled), duplicate_scores(tournament.logs))

    @given(tournaments(), st.data())
    @settings(max_examples=50)
    def test_no_log_can_be_left_out(self, tournament: Tournament, data: st.DataObject) -> None:
        place = data.draw(st.integers(0, len(tournament.logs) - 1))
        twin = tournament.logs[place ^ 1][0]  # the two seatings of a match are written one after the other
        with pytest.raises(ro.ProblemError, match=f"Match log '{twin}': its twin is missing"):
            duplicate_scores(tournament.logs[:place] + tournament.logs[place + 1 :])

    @given(tournaments())
    @settings(max_examples=50)
    def test_the_scores_are_a_crosstable_without_change(self, tournament: Tournament) -> None:
        answer = duplicate_scores(tournament.logs)
        table = crosstable(answer.results)
        assert table.results.equals(answer.results)
        assert set(answer.unplayed) <= set(table.unplayed)

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda line: line.replace("SCORE:", "SCORE:1"),
            lambda line: line.replace("STATE:0:", "STATE:9:"),
            lambda line: line.replace("SCORE:", "#SCORE:"),
        ],
    )
    def test_a_log_that_is_spoilt_is_found_among_many(self, spoil: Callable[[str], str]) -> None:
        tournament = Tournament(random.Random(3), 10)
        for one, other in combinations(["a", "b", "c"], 2):
            tournament.play(one, other, 4)
        file, lines = tournament.logs[3]
        tournament.logs[3] = (file, [spoil(line) for line in lines])
        with pytest.raises(ro.ProblemError, match=f"^Match log '{file}': "):
            duplicate_scores(tournament.logs)
