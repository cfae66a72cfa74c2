"""``rposst domain`` and ``rposst reproduce``, as a user meets them."""

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import Run

import rposst_opt as ro
from rposst_opt.backends import table
from rposst_opt.errors import BackendUnavailable
from rposst_opt.experiments import reproductions
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.experiments.reproductions import DOMAINS, REPRODUCTIONS, Domain, Reproduction

LOG = """\
# name/game/hands/seed match holdem.limit.2p.reverse_blinds.game 2 1
#--t_response 600000
STATE:0:rc/cc/cc/cc:2h3h|4h5h/6c7c8c/9c/Tc:{first}|{second}:{one}|{two}
STATE:1:f:2d3d|4d5d:5|-5:{two}|{one}
SCORE:{total}|{minus}:{one}|{two}
"""


def log(one: str, two: str, first: int) -> str:
    """A match of two hands; `one` wins `first` chips in the first hand, and loses 5 in the second."""
    total = first - 5
    return LOG.format(one=one, two=two, first=first, second=-first, total=total, minus=-total)


def write_poker(path: Path, n: int = 6, blank: bool = False) -> pd.DataFrame:
    noise = np.random.default_rng(0).normal(scale=100.0, size=(n, n)).round(3)
    names = [f"agent-{place}" for place in range(n)]
    table = pd.DataFrame(noise - noise.T, index=names, columns=names).astype(object)
    if blank:
        table.iloc[0, 1] = table.iloc[1, 0] = ""
    path.write_text(table.to_csv(index_label="test_case"))
    return table


class TestDomains:
    @pytest.mark.parametrize("role", ["follower", "leader"])
    def test_arrows_are_those_of_the_function(self, rposst: Run, role: str) -> None:
        done = rposst("domain", f"racing-arrows-{role}", "--n", "7", "--seed", "4", "--out", "arrows.csv")
        assert (done.code, done.out) == (0, "")
        assert done.err == "wrote arrows.csv: 7 test cases, 7 policies, results from 0 to 1.\n"
        expected = racing_arrows(7, np.random.default_rng(4), test_cases=f"{role}s")  # type: ignore[arg-type]
        pd.testing.assert_frame_equal(ro.read_results(Path("arrows.csv")).results, expected, check_names=False)

    def test_a_written_domain_can_be_solved(self, rposst: Run) -> None:
        rposst("domain", "passing-race", "--races", "2", "--out", "race.csv")
        assert rposst("solve", "race.csv", "--size", "2", "--json").json["status"] == "optimal"

    def test_unplayed_pairs_are_named(self, rposst: Run) -> None:
        write_poker(Path("table.csv"), blank=True)
        done = rposst("domain", "poker-crosstable", "table.csv", "--out", "checked.csv")
        assert done.code == 0
        assert "Did not play each other, and stand as 0: agent-0 and agent-1." in done.err
        assert ro.read_results(Path("checked.csv")).results.loc["agent-0", "agent-1"] == 0.0

    def test_a_table_is_not_written_over(self, rposst: Run) -> None:
        write_poker(Path("table.csv"))
        before = Path("table.csv").read_bytes()
        done = rposst("domain", "poker-crosstable", "table.csv", "--out", "table.csv")
        assert done.code == 2
        assert "is not written over" in done.err
        assert Path("table.csv").read_bytes() == before

    def test_logs_become_duplicate_scores(self, rposst: Run) -> None:
        Path("logs/sub").mkdir(parents=True)
        Path("logs/a.0.log").write_text(log("Alice", "Bob", 10))
        with gzip.open("logs/sub/a.1.log.gz", "wt") as file:
            file.write(log("Bob", "Alice", 20))
        Path("logs/readme.txt").write_text("not a log")
        done = rposst("domain", "poker-logs", "logs", "--out", "scores.csv")
        assert done.code == 0, done.err
        # Alice wins 10 - 5 = 5 chips in one seating, and Bob 20 - 5 = 15 in the other: Alice has -10 chips after four
        # hands with a big blind of 10, that is -250 milli-big-blinds per game.
        scores = ro.read_results(Path("scores.csv")).results
        assert scores.loc["Bob", "Alice"] == -250.0
        assert scores.loc["Alice", "Bob"] == 250.0

    @pytest.mark.parametrize(
        ("make", "complaint"),
        [
            ("", "logs: there is no such folder."),
            ("folder", "logs: there are no match logs (*.log, *.log.gz) in this folder."),
            ("damaged", "broken.log.gz: cannot be read"),
        ],
    )
    def test_folders_without_logs_are_told(self, rposst: Run, make: str, complaint: str) -> None:
        if make:
            Path("logs").mkdir()
        if make == "damaged":
            Path("logs/broken.log.gz").write_bytes(gzip.compress(b"# a log" * 100)[:20])
        done = rposst("domain", "poker-logs", "logs", "--out", "scores.csv")
        assert done.code == 2
        assert complaint in done.err
        assert not Path("scores.csv").exists()

    @pytest.mark.skipif(importlib.util.find_spec("pyspiel") is None, reason="OpenSpiel is not installed")
    def test_checkpoints_with_matches_are_noisy(self, rposst: Run) -> None:
        rposst("domain", "checkpoints", "--out", "exact.csv")
        rposst("domain", "checkpoints", "--matches", "20", "--seed", "1", "--out", "noisy.csv")
        exact, noisy = ro.read_results(Path("exact.csv")).results, ro.read_results(Path("noisy.csv")).results
        assert exact.shape == noisy.shape == (46, 46)
        assert list(exact.index) == list(noisy.index)
        difference = np.abs(exact.to_numpy() - noisy.to_numpy())
        assert 0.05 < difference.mean() < 3.0

    def test_collisions_leave_the_built_in_drivers_out(self, rposst: Run) -> None:
        rposst("domain", "passing-race", "--races", "4", "--out", "wins.csv")
        rposst("domain", "passing-race", "--races", "4", "--collisions", "--out", "collisions.csv")
        assert len(ro.read_results(Path("wins.csv")).results) == 46
        assert len(ro.read_results(Path("collisions.csv")).results) == 43
        assert ro.read_results(Path("collisions.csv")).results.to_numpy().min() < 0

    def test_an_unknown_domain_is_told(self, rposst: Run) -> None:
        done = rposst("domain", "chess", "--out", "x.csv")
        assert done.code == 2
        assert "chess" in done.err


class TestReproduce:
    def test_the_list_has_every_name_and_what_it_needs(self, rposst: Run) -> None:
        done = rposst("reproduce", "--list")
        assert done.code == 0
        for name, asked in REPRODUCTIONS.items():
            assert f"{name}\n    {asked.place}\n    needs {asked.needs}\n" in done.out

    def test_without_a_name_the_list_is_shown(self, rposst: Run) -> None:
        done = rposst("reproduce")
        assert done.code == 0
        assert "Name one of these" in done.out

    def test_poker_from_start_to_end(self, rposst: Run) -> None:
        write_poker(Path("cup.csv"))
        asked = (
            "--quick",
            "--replicas",
            "2",
            "--methods",
            "exact, regret-matching",
            "--holdouts",
            "0.4",
            "--jobs",
            "1",
        )
        done = rposst("reproduce", "poker", "--table", "cup.csv", *asked, "--out", "found")
        assert done.code == 0, done.err
        written = [Path(line) for line in done.out.splitlines()]
        assert all(path.exists() for path in written)
        assert Path("found/poker/errors-cup.png") in written
        summary = pd.read_csv("found/poker/summary.csv")
        assert set(summary["method"]) == {"exact", "regret-matching"}
        assert set(summary["holdout"]) == {0.4}
        assert rposst("reproduce", "poker", "--table", "cup.csv", *asked, "--out", "found").out == done.out

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["pokre"], "unknown name 'pokre'"),
            (["poker"], "poker needs tables of duplicate scores (--table, once for each)"),
            (["poker", "--table", "none.csv"], "none.csv: there is no such file"),
            (["racing-arrows", "--methods", "exact,guess"], "unknown method 'guess'. Known: regret-matching, exact"),
            (["racing-arrows", "--sizes", "1,two"], "--sizes must be numbers with commas between them, got '1,two'"),
            (["racing-arrows", "--holdouts", "1.5"], "holding out 1.5 of 50 policies leaves none on one side"),
            (["racing-arrows", "--sizes", "0"], "`size` must lie between 1 and the 50 test cases, got 0"),
            (["racing-arrows", "--replicas", "0"], "replicas"),
            (["racing-arrows", "--sizes", "2,2"], "--sizes has 2 more than once"),
            (["racing-arrows", "--methods", "exact,exact"], "--methods has exact more than once"),
        ],
    )
    def test_mistakes_are_told_in_one_line(self, rposst: Run, arguments: list[str], complaint: str) -> None:
        done = rposst("reproduce", *arguments, "--jobs", "1")
        assert done.code == 2
        assert complaint in done.err
        assert len(done.err.strip().splitlines()) == 1

    def test_all_leaves_out_what_is_not_installed_and_says_so(
        self, rposst: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def missing() -> pd.DataFrame:
            raise BackendUnavailable("the chess domain needs chess, which is not installed: pip install chess")

        write_poker(Path("cup.csv"))
        monkeypatch.setitem(DOMAINS, "chess", Domain("Chess", missing))
        two = {"poker": REPRODUCTIONS["poker"], "chess": Reproduction(place="none", domains=("chess",))}
        monkeypatch.setattr(reproductions, "REPRODUCTIONS", two)
        asked = ("--table", "cup.csv", "--quick", "--methods", "exact", "--jobs", "1")
        done = rposst("reproduce", "all", *asked)
        assert done.code == 0
        assert "chess was left out: the chess domain needs chess, which is not installed: pip install chess" in done.err
        assert "reproduced/poker/summary.csv" in done.out
        alone = rposst("reproduce", "chess", "--methods", "exact")
        assert alone.code == 2

    def test_methods_that_are_not_installed_are_named(self, rposst: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(table, "find_spec", lambda package: None if package == "sklearn" else object())
        write_poker(Path("cup.csv"))
        done = rposst("reproduce", "poker", "--table", "cup.csv", "--quick", "--replicas", "1", "--jobs", "1")
        assert done.code == 0, done.err
        assert "kmeans-anchors was left out: pip install" in done.err
        assert "kmeans-anchors" not in set(pd.read_csv("reproduced/poker/summary.csv")["method"])

    def test_tables_need_names_of_their_own(self, rposst: Run) -> None:
        write_poker(Path("axelrod.csv"))
        done = rposst("reproduce", "poker", "--table", "axelrod.csv")
        assert done.code == 2
        assert "another domain has the name 'axelrod' already" in done.err
