"""Who is held out? Ways to part policies into those that a test is tuned on and those that it is then tried on."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.errors import ProblemError

MOST_LEFT_OUT_ONE_BY_ONE = 60  # policies; where there are more, folds say as much for less
FOLDS = 5
SHARES_OF_STRONGEST = (0.1, 0.2, 0.3, 0.4)
FEWEST_TUNED_ON = 3


class Kind(StrEnum):
    """What held-out policies are like, compared with those that a test is tuned on; the value is for tables."""

    ALIKE = "alike"  # drawn from the same
    STRONGEST = "strongest"  # better than all that were seen
    GROUPS = "groups"  # of another family, date or whatever a user's column says


@dataclass(frozen=True)
class Split:
    """Policies that are held out together.

    Splits of one kind and replica hold every policy out at most once; together they make one set of estimates.
    """

    kind: Kind
    replica: int
    held_out: tuple[int, ...]

    def tuning(self, n_policies: int) -> IntArray:
        """The policies that a test is tuned on."""
        return np.setdiff1d(np.arange(n_policies), self.held_out)


def alike(n_policies: int, *, folds: int | None, replicas: int, seed: int) -> list[Split]:
    """Leave each policy out once; in folds, if so many are asked for or policies are many, in several replicas."""
    if n_policies <= FEWEST_TUNED_ON:
        raise ProblemError(f"holding policies out needs at least {FEWEST_TUNED_ON + 1} of them, got {n_policies}.")
    if folds is None and n_policies <= MOST_LEFT_OUT_ONE_BY_ONE:
        return alike_one_by_one(n_policies)
    count = FOLDS if folds is None else folds
    if not 2 <= count <= n_policies:
        raise ProblemError(f"`folds` must lie between 2 and the {n_policies} policies, got {count}.")
    splits = []
    for replica in range(replicas):
        order = np.random.default_rng([seed, replica]).permutation(n_policies)
        splits += [Split(Kind.ALIKE, replica, tuple(sorted(part.tolist()))) for part in np.array_split(order, count)]
    return splits


def alike_one_by_one(n_policies: int) -> list[Split]:
    """Leave each policy out alone."""
    return [Split(Kind.ALIKE, 0, (policy,)) for policy in range(n_policies)]


def strongest(scores: FloatArray, shares: Sequence[float] = SHARES_OF_STRONGEST) -> list[Split]:
    """Hold out the policies with the highest scores: a split for each share that leaves enough on both sides."""
    order = np.argsort(-np.round(scores / (np.abs(scores).max() or 1.0), 12), kind="stable")
    sizes = sorted({round(share * len(scores)) for share in shares})
    kept = [size for size in sizes if 1 <= size <= len(scores) - FEWEST_TUNED_ON]
    return [Split(Kind.STRONGEST, replica, tuple(sorted(order[:size].tolist()))) for replica, size in enumerate(kept)]


def by_group(groups: Sequence[str]) -> list[Split]:
    """Hold each group of policies out once."""
    names = sorted(set(groups))
    if len(names) < 2:
        raise ProblemError(f"holding groups out needs at least two of them, got {', '.join(names) or 'none'}.")
    return [
        Split(Kind.GROUPS, 0, tuple(policy for policy, group in enumerate(groups) if group == name)) for name in names
    ]
