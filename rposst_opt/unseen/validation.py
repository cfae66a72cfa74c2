"""How far is a test off on policies that it was not tuned on, and which way of making one does best?"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rposst_opt.arrays import FloatArray, IntArray, in_order
from rposst_opt.errors import ProblemError, names_arguments
from rposst_opt.estimators import ESTIMATORS
from rposst_opt.results import finite_table, full_scores, is_frame, warn_of_scale
from rposst_opt.unseen.intervals import half_width
from rposst_opt.unseen.policy_ranking import kendall_tau
from rposst_opt.unseen.procedures import Purpose, Trial, attempt, check_known
from rposst_opt.unseen.runner import Tell, run_tasks, sources_digest
from rposst_opt.unseen.splits import Kind, Split, alike, by_group, strongest
from rposst_opt.values.showing import Shown, counted, listed

if TYPE_CHECKING:
    import pandas as pd

REPLICAS = 3
SEED = 2023
SELECTED = ("rposst", "rposst-offset", "greedy-ridge", "kmeans", "stratified")
WAY = ["kind", "size", "selection", "estimator"]  # columns that say what was done
TEN, DRAWS = 10, 400  # of how many policies the best is picked, and how often that is tried


@dataclass(frozen=True, eq=False)
class SplitTask:
    """Make tests of one size without the policies that a split holds out, and apply them to these."""

    name: str
    tuning: FloatArray
    others: FloatArray
    size: int
    purpose: Purpose
    selections: tuple[str, ...]
    estimators: tuple[str, ...]
    seed: int

    def run(self) -> list[Trial]:
        """Try every selection with every estimator."""
        return attempt(self.tuning, self.others, self.size, self.purpose, self.selections, self.estimators, self.seed)

    @cached_property
    def digest(self) -> str:
        """Tells tasks apart whose trials may differ."""
        asked = f"{sources_digest()} {self.size} {self.purpose!r} {self.selections} {self.estimators} {self.seed} "
        # What is shown of a large array is a few of its numbers, so their bytes are what tells arrays apart.
        arrays = (self.tuning, self.others, self.purpose.targets, self.purpose.noise)
        data = b"".join(np.ascontiguousarray(part).tobytes() for part in arrays if part is not None)
        return hashlib.sha256(asked.encode() + f"{self.tuning.shape}".encode() + data).hexdigest()[:16]

    def to_record(self, outcome: list[Trial]) -> object:
        """Trials as JSON has them."""
        return [
            {
                "selection": trial.selection,
                "cases": list(trial.cases),
                "tuned_errors": trial.tuned_errors.tolist(),
                "estimates": {method: found.tolist() for method, found in trial.estimates.items()},
                "full": trial.full.tolist(),
            }
            for trial in outcome
        ]

    def from_record(self, record: Any) -> list[Trial]:
        """The trials that were written."""
        trials = [
            Trial(
                each["selection"],
                tuple(each["cases"]),
                np.array(each["tuned_errors"]),
                {method: np.array(each["estimates"][method]) for method in self.estimators},
                np.array(each["full"]),
            )
            for each in record
        ]
        if tuple(trial.selection for trial in trials) != self.selections:
            raise ValueError("these are other selections' trials")
        return trials


@dataclass(frozen=True, eq=False, repr=False)
class Validation(Shown):
    """What came of trying every way of making a test on policies that were held out.

    Attributes
    ----------
    errors : DataFrame
        A row per (held-out policy, target) and way of making a test: what the full score is, and what was estimated.
    tuned : DataFrame
        A row per split, size and selection: the mean and the worst error of the test's own weights on the policies
        that it was tuned on.
    """

    errors: "pd.DataFrame"
    tuned: "pd.DataFrame"

    def _facts(self) -> list[tuple[str, str]]:
        tried = {name: [str(value) for value in self.errors[name].unique()] for name in (*WAY, "policy")}
        return [
            ("of", f"{counted(len(tried['policy']), 'policy')} held out ({', '.join(tried['kind'])})"),
            ("sizes", listed(tried["size"])),
            ("selections", listed(tried["selection"])),
            ("estimators", listed(tried["estimator"])),
        ]

    @cached_property
    def by_replica(self) -> "pd.DataFrame":
        """A row per replica and way: mean, 90th percentile and worst error, Kendall's τ, chance of picking the best."""
        rows = []
        for key, group in self.errors.groupby([*WAY, "replica"], sort=False):
            error = (group["estimate"] - group["full"]).abs().to_numpy()
            by_target = [part for _, part in group.groupby("target")]
            pairs = [(part["full"].to_numpy(), part["estimate"].to_numpy()) for part in by_target]
            rows.append(
                (
                    *key,
                    error.mean(),
                    np.quantile(error, 0.9),
                    error.max(),
                    _mean([kendall_tau(full, small) for full, small in pairs]),
                    _mean([chance_of_best(full, small) for full, small in pairs]),
                )
            )
        columns = [*WAY, "replica", "mean_error", "p90_error", "worst_error", "kendall_tau", "picks_best"]
        return _frame(rows, columns)

    @cached_property
    def summary(self) -> "pd.DataFrame":
        """A row per way: means over replicas (of the worst error the worst), and the tuned errors beside them.

        The 95 % interval of the mean error is Student's: over replicas, if policies were parted into folds several
        times, and over held-out policies otherwise.
        """
        together = dict.fromkeys(["mean_error", "p90_error", "kendall_tau", "picks_best"], "mean")
        means = self.by_replica.groupby(WAY, sort=False).agg({**together, "worst_error": "max"}).reset_index()
        means[["low", "high"]] = self._intervals()
        tuned = self.tuned.groupby(["kind", "size", "selection"], sort=False)[["tuned_mean", "tuned_worst"]].mean()
        return means.merge(tuned.reset_index(), on=["kind", "size", "selection"], how="left")

    def _intervals(self) -> list[tuple[float, float]]:
        """The interval of each way's mean error, in the order of the ways."""
        errors = dict(list(self.errors.groupby(WAY, sort=False)))
        replicas = self.by_replica.groupby(WAY, sort=False)["mean_error"]
        return [_interval(str(way[0]), means.to_numpy(), errors[way]) for way, means in replicas]


def _interval(kind: str, means: FloatArray, errors: "pd.DataFrame") -> tuple[float, float]:
    """Around the mean of the replicas' mean errors."""
    samples, centre = means, float(means.mean())
    if kind != Kind.ALIKE or len(samples) < 2:
        error = (errors["estimate"] - errors["full"]).abs()
        samples = error.groupby(errors["policy"]).mean().to_numpy()
    if len(samples) < 2:
        return float("nan"), float("nan")
    half = float(half_width(samples))
    return max(centre - half, 0.0), centre + half


def _frame(rows: Sequence[tuple[Any, ...]], columns: Sequence[str]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


@cache
def _draws(n_policies: int, seed: int) -> IntArray:
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n_policies)[:TEN] for _ in range(DRAWS)])


def chance_of_best(full: FloatArray, small: FloatArray, seed: int = SEED) -> float:
    """How often the best of ten random policies (of all, if there are fewer) by one score is the best by another.

    Of policies that tie for the best, one is picked at random.
    """
    if len(full) < 2:
        return float("nan")
    draws = _draws(len(full), seed)
    is_best = full[draws] >= full[draws].max(axis=1, keepdims=True)
    is_picked = small[draws] >= small[draws].max(axis=1, keepdims=True)
    return float(((is_best & is_picked).sum(axis=1) / is_picked.sum(axis=1)).mean())


@names_arguments
def validate(
    results: "ArrayLike | pd.DataFrame",
    sizes: Sequence[int],
    *,
    purpose: Purpose | None = None,
    selections: Sequence[str] = SELECTED,
    estimators: Sequence[str] = ESTIMATORS,
    groups: "Sequence[str] | pd.Series[Any] | Mapping[Any, Any] | None" = None,
    folds: int | None = None,
    replicas: int = REPLICAS,
    seed: int = SEED,
    jobs: int = 1,
    scheduler: str | None = None,
    folder: Path | None = None,
    tell: Tell | None = None,
) -> Validation:
    """Hold policies out, make tests without them, and see how far these are off on them.

    Everything is made again without the policies that are held out: scale, targets, choice, weights and estimator.
    Policies are left out one by one (where there are many, in five random folds, several times), then the strongest
    tenth, fifth and so on together, then each of the groups, if there are any.

    Parameters
    ----------
    results : array of shape (n_cases, n_policies), or DataFrame
        As they are: not rescaled beforehand.
    sizes : sequence of int
        How many cases a test has, besides the required ones.
    purpose : Purpose, optional
        Measure, loss and targets; the worst 1 %, the absolute error and the uniform target by default. Targets and
        noise that have names are matched with those of cases.
    selections, estimators : sequence of str
        Ways to choose cases (`unseen.procedures.SELECTIONS`) and ways to estimate from them (`estimators.ESTIMATORS`).
    groups : sequence of str, Series or dict, optional
        A family, a date or the like for each policy: each is held out once. A Series or a dict is matched with the
        names of policies.
    folds : int, optional
        Into how many random folds policies are parted; by default they are left out one by one, or where there are
        many, in five folds.
    replicas : int
        How often policies are parted into random folds.
    seed : int
    jobs, scheduler, folder, tell
        As for `unseen.runner.run_tasks`.
    """
    table = finite_table(results)
    n_policies = table.shape[1]
    names = [str(name) for name in results.columns] if is_frame(results) else [str(j) for j in range(n_policies)]
    purpose = Purpose() if purpose is None else _by_position(purpose, results, table)
    check_known(selections, estimators)
    uniform = np.full((1, len(table)), 1 / len(table))
    splits = alike(n_policies, folds=folds, replicas=replicas, seed=seed)
    splits += strongest(full_scores(uniform, table)[0])
    splits += [] if groups is None else by_group(_in_order_of_policies(groups, names))
    cells = [(split, size) for split in splits for size in sizes]
    tasks = [_task(table, split, size, purpose, selections, estimators, seed) for split, size in cells]
    outcomes = run_tasks(tasks, folder, jobs=jobs, scheduler=scheduler, tell=tell)
    return _validation(names, cells, outcomes)


def _by_position(purpose: Purpose, results: "ArrayLike | pd.DataFrame", table: FloatArray) -> Purpose:
    """The purpose with arrays in the order of the table's cases; what would be warned of for every split is, once."""
    if purpose.betas is not None and not purpose.is_rescaled:
        warn_of_scale(table, purpose.betas)
    return purpose.by_position([str(name) for name in (results.index if is_frame(results) else range(len(table)))])


def _in_order_of_policies(groups: "Sequence[str] | pd.Series[Any] | Mapping[Any, Any]", names: list[str]) -> list[str]:
    by_name = in_order("groups", groups, "policy", names)
    if by_name is not None:
        return [str(group) for group in by_name]
    if len(groups) != len(names):
        raise ProblemError(f"`groups` must have an entry per policy, got {len(groups)} for {len(names)}.")
    return list(groups)


def _task(
    table: FloatArray,
    split: Split,
    size: int,
    purpose: Purpose,
    selections: Sequence[str],
    estimators: Sequence[str],
    seed: int,
) -> SplitTask:
    held_out = "-".join(str(policy) for policy in split.held_out[:3])
    return SplitTask(
        name=f"{split.kind}-{split.replica}-{held_out}-{len(split.held_out)}-size-{size}",
        tuning=np.ascontiguousarray(table[:, split.tuning(table.shape[1])]),
        others=np.ascontiguousarray(table[:, list(split.held_out)]),
        size=size,
        purpose=purpose,
        selections=tuple(selections),
        estimators=tuple(estimators),
        seed=seed + split.replica,
    )


def _validation(
    names: Sequence[str], cells: Sequence[tuple[Split, int]], outcomes: Sequence[list[Trial]]
) -> Validation:
    import pandas as pd

    columns: dict[str, list[Any]] = defaultdict(list)
    tuned = []
    for (split, size), trials in zip(cells, outcomes, strict=True):
        policies = np.array([names[policy] for policy in split.held_out])
        for trial in trials:
            place = {"kind": split.kind.value, "replica": split.replica, "size": size, "selection": trial.selection}
            errors = {"tuned_mean": float(trial.tuned_errors.mean()), "tuned_worst": float(trial.tuned_errors.max())}
            tuned.append(place | errors)
            for method, found in trial.estimates.items():
                target, policy = np.indices(found.shape)
                for name, value in (place | {"estimator": method}).items():
                    columns[name].append(np.repeat(value, found.size))
                columns["policy"].append(policies[policy.ravel()])
                columns["target"].append(target.ravel())
                columns["full"].append(trial.full.ravel())
                columns["estimate"].append(found.ravel())
    estimates = pd.DataFrame({name: np.concatenate(parts) for name, parts in columns.items()})
    return Validation(estimates, pd.DataFrame(tuned))
