"""How far a run is, in the words of the terminal."""

import math

import pytest

import rposst_opt as ro
from rposst_opt.cli.terminal import progress_words


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (ro.Progress(done=1, total=8, objective=0.5), "12.5 % of 8 sets, best 0.5"),
        (
            ro.Progress(done=10**30, total=4 * 10**30, objective=0.5, lower_bound=0.125),
            "25.0 % of very many sets, best 0.5, at least 0.125, gap 0.375",
        ),
        (
            ro.Progress(done=4, total=8, objective=0.5, lower_bound=0.0, share=0.123, seconds_left=200.0),
            "12.3 % of the search, perhaps 3.3 minutes left, best 0.5, at least 0, gap 0.5",
        ),
        (
            ro.Progress(done=4, total=8, objective=0.5, share=1e-30, seconds_left=math.inf),
            "under 0.1 % of the search, perhaps years left, best 0.5",
        ),
        (ro.Progress(done=2, total=40, objective=0.5, unit="rounds"), "5.0 % of 40 rounds, best 0.5"),
    ],
)
def test_progress_in_words(progress: ro.Progress, words: str) -> None:
    assert progress_words(progress) == words
