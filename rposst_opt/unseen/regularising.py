"""How much should what is peculiar to a policy count? Try several strengths on policies that are held out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.estimators import WEIGHTS
from rposst_opt.unseen.procedures import Purpose, attempt
from rposst_opt.unseen.splits import alike

STRENGTHS = (0.0, 0.03, 0.1, 0.3, 1.0, 3.0)
MOST_FOLDS = 10
SEED = 2023


@dataclass(frozen=True)
class StrengthChoice:
    """Which strength of regularisation does best on policies that a test was not tuned on.

    Attributes
    ----------
    strength : float
        The one with the least error; zero means that regularising did not help.
    errors : dict of float to float
        By strength, the mean error of the test's own weights on held-out policies, in the results' units.
    """

    strength: float
    errors: dict[float, float]

    @property
    def sentence(self) -> str:
        """What was tried and what came of it, for people."""
        tried = ", ".join(f"{strength:g}: {error:.3g}" for strength, error in self.errors.items())
        return (
            f"Regularised by {self.strength:g}: mean errors on held-out policies by strength were {tried}. The least "
            "of these looks a little better than it is, and so does an error on unseen policies that is given "
            "hereafter: the strength was chosen with all of them."
        )


def choose_strength(
    results: FloatArray, size: int, purpose: Purpose, *, strengths: Sequence[float] = STRENGTHS, seed: int = SEED
) -> StrengthChoice:
    """Make tests of this size without some of the policies, with every strength, and see how far off they are on these.

    Of strengths that do equally well it is the least.
    """
    n_policies = results.shape[1]
    splits = alike(n_policies, folds=min(n_policies, MOST_FOLDS), replicas=1, seed=seed)
    errors = {}
    for strength in strengths:
        regularised = replace(purpose, regularise=strength, noise=None)
        misses = []
        for split in splits:
            known, others = results[:, split.tuning(n_policies)], results[:, list(split.held_out)]
            (trial,) = attempt(known, others, size, regularised, ["rposst"], [WEIGHTS], seed)
            misses.append(np.abs(trial.estimates[WEIGHTS] - trial.full).ravel())
        errors[strength] = float(np.concatenate(misses).mean())
    return StrengthChoice(min(errors, key=lambda strength: (errors[strength], strength)), errors)
