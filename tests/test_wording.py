"""What is said of a run: what its work went into, and how much of it was done when it ended early."""

from dataclasses import replace

import pytest

import rposst_opt as ro
from rposst_opt.contract import Stats
from rposst_opt.reports.wording import facts
from rposst_opt.results import Scale

PROBLEM = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4], [0.1, 0.9]], size=2)


def told(stats: Stats, limit: ro.Limit | None = ro.Limit.TIME) -> dict[str, str]:
    return dict(facts(PROBLEM, replace(ro.solve(PROBLEM), stats=stats, limit=limit), Scale(0.0, 1.0)))


@pytest.mark.parametrize(
    ("stats", "words"),
    [
        (Stats(tuples=3, share_done=0.0321), "the time limit, after about 3.2% of the search"),
        (Stats(tuples=3, share_done=1e-30), "the time limit, after under 0.1% of the search"),
        (Stats(tuples=3), "the time limit, after 50.000% of the sets of cases"),
        (Stats(), "the time limit"),
    ],
)
def test_a_run_that_ended_early_says_how_much_of_it_was_done(stats: Stats, words: str) -> None:
    assert told(stats)["ended by"] == words
    assert "ended by" not in told(stats, limit=None)


def test_a_number_of_sets_is_written_out_where_it_can_be_read() -> None:
    assert ", 20,708,500 sets of cases" in told(Stats(tuples=20_708_500))["backend"]
    assert ", about 2.6e33 sets of cases" in told(Stats(tuples=26 * 10**32))["backend"]


def test_a_run_that_ended_early_says_what_auto_predicted() -> None:
    assert told(Stats())["predicted"].startswith("exact was predicted to prove the optimum in about ")
    assert "predicted" not in told(Stats(), limit=None)


def test_what_the_work_went_into_is_said_where_it_was_not_the_search_alone() -> None:
    assert told(Stats(local_search_share=0.6, relaxation_share=0.03))["work"] == (
        "37% search, 60% local search, 3% linear relaxation"
    )
    assert "work" not in told(Stats())
