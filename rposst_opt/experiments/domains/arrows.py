"""Racing Arrows: a follower tries to pass a slower leader, who tries to block (paper, appendix "Racing Arrows")."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError

if TYPE_CHECKING:
    import pandas as pd

LEADER_SPEED, FOLLOWER_SPEED = 0.8, 1.0
BLOCKING_ANGLE = np.pi / 10
MARGIN = 0.05 * np.pi  # angles are spread over the half-circle less this margin, then shifted by up to as much


def racing_arrows(
    n: int, rng: np.random.Generator, *, test_cases: Literal["followers", "leaders"] = "followers"
) -> "pd.DataFrame":
    """Racing Arrows (paper, section 5): a follower tries to pass a slower leader, who tries to block.

    Each of `n` leaders and `n` followers is an arrow with an angle in [0, π]. The leader wins if the two angles differ
    by less than π/10; otherwise the one who gets further wins, by speed times the sine of the angle, and equals share.

    Returns
    -------
    DataFrame of shape (n, n)
        What the column player, the policy, gets against the row player, the test case: 1, 0 or 0.5.
    """
    import pandas as pd

    if n < 1:
        raise ProblemError(f"`n` must be at least 1, got {n}.")
    if test_cases not in ("followers", "leaders"):
        raise ProblemError(f"`test_cases` must be 'followers' or 'leaders', got {test_cases!r}.")
    spread = np.linspace(MARGIN, np.pi - MARGIN, n)
    leaders = spread + rng.uniform(-MARGIN, MARGIN, n)
    followers = spread + rng.uniform(-MARGIN, MARGIN, n)
    leader_wins = leader_payoffs(leaders, followers)
    leader_names = [f"leader-{i:03d}" for i in range(n)]
    follower_names = [f"follower-{i:03d}" for i in range(n)]
    if test_cases == "followers":
        return pd.DataFrame(leader_wins, index=follower_names, columns=leader_names)
    return pd.DataFrame(1.0 - leader_wins.T, index=leader_names, columns=follower_names)


def leader_payoffs(leaders: FloatArray, followers: FloatArray) -> FloatArray:
    """What each leader (column) gets against each follower (row); the follower gets the rest of 1."""
    difference = np.abs(followers[:, None] - leaders[None, :])
    leader_distance = LEADER_SPEED * np.sin(leaders)[None, :]
    follower_distance = FOLLOWER_SPEED * np.sin(followers)[:, None]
    unblocked = np.where(
        leader_distance > follower_distance, 1.0, np.where(leader_distance < follower_distance, 0.0, 0.5)
    )
    return np.where(difference < BLOCKING_ANGLE, 1.0, unblocked)
