"""How long will a backend take? A table of coefficients, fitted to measured runs, says so before anything is run.

The logarithm of a backend's time to a proved answer is taken to be linear in a few features of a problem. There is one
row of coefficients per backend, in ``forecast.csv`` beside this file. ``rposst calibrate`` fits another for your own
machine, and writes it to your configuration folder, where it takes precedence; the variable RPOSST_FORECAST names yet
another place. A run that was cut short counts as having taken ten times as long as it ran, or what the model says if
that is more: problems that take too long mostly take far too long.

The model is crude: it is meant to tell milliseconds from minutes. How far off it was is in the table's last columns.
"""

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.errors import ProblemError
from rposst_opt.problem import Problem

TABLE = Path(__file__).with_name("forecast.csv")
VARIABLE = "RPOSST_FORECAST"
RIDGE = 0.05  # keeps coefficients small that few runs determine
CUT_SHORT = 10.0  # a run that was cut short counts as having taken so many times as long, or what the model says
REFINEMENTS = 50  # of the times of runs that were cut short
SMALL_GAP = 1e-3  # in units of the largest loss there can be: gaps below it hardly shorten a run
SHORTEST, LONGEST = 1e-4, 1e30  # seconds; nothing is predicted outside of these


FEATURES = (
    "constant",
    "log_tuples",
    "log_cases",
    "log_scenarios",
    "chosen",
    "tail",
    "tail_log_tuples",
    "log_rank",
    "curved",
    "log_gap",
)


GROWING = ("log_tuples", "log_cases", "log_scenarios", "chosen", "log_rank")


def features(problem: Problem, gap: float = 0.0) -> dict[str, float]:
    """What times are predicted from: sizes, the tail that counts, how alike cases are, and the gap that will do."""
    problem = problem.stated
    log_tuples = math.log10(problem.n_tuples)
    tail = max(problem.measure.reach(), 1.0 / problem.n_scenarios)
    return {
        "constant": 1.0,
        "log_tuples": log_tuples,
        "log_cases": math.log10(problem.n_cases),
        "log_scenarios": math.log10(problem.n_scenarios),
        "chosen": float(problem.n_chosen),
        "tail": tail,
        "tail_log_tuples": tail * log_tuples,
        "log_rank": math.log10(effective_rank(problem.results)),
        "curved": float(not problem.pieces.is_polyhedral),
        "log_gap": math.log10(1.0 + gap / problem.unit / SMALL_GAP),
    }


def effective_rank(results: FloatArray) -> float:
    """How many directions the test cases vary in: (Σ s²)² / Σ s⁴, with s the singular values about the mean case."""
    scaled = results / (float(np.abs(results).max()) or 1.0)  # sums, and squares of squares, might leave float64
    centred = scaled - scaled.mean(axis=0)
    centred /= float(np.abs(centred).max()) or 1.0
    smaller = centred @ centred.T if len(centred) < centred.shape[1] else centred.T @ centred
    total = float(np.trace(smaller))
    return max(1.0, total**2 / float((smaller**2).sum())) if total > 0 else 1.0


@dataclass(frozen=True)
class Run:
    """What a model is fitted to: a problem's features, the seconds, and whether the optimum was proved by then."""

    features: Mapping[str, float]
    seconds: float
    proved: bool


@dataclass(frozen=True)
class Model:
    """One backend's row of the table.

    Attributes
    ----------
    coefficients : mapping of str to float
        Of the features, for the decimal logarithm of the seconds.
    error : float
        The root mean square error of that logarithm over the runs that proved their optimum.
    runs, proved : int
        How many runs it was fitted to, and how many of them proved their optimum.
    """

    coefficients: Mapping[str, float]
    error: float
    runs: int
    proved: int

    def seconds(self, of: Mapping[str, float]) -> float:
        """The predicted time for a problem with these features."""
        logarithm = sum(coefficient * of[name] for name, coefficient in self.coefficients.items())
        return float(10 ** min(max(logarithm, math.log10(SHORTEST)), math.log10(LONGEST)))


def fit(runs: Sequence[Run]) -> Model:
    """Least squares on logarithms; runs that were cut short are pulled up to what the model says, if that is more.

    A larger problem is never predicted to take less time, nor a larger gap more: where the runs tell little, they must
    not say the contrary for problems beyond them.
    """
    from scipy.optimize import lsq_linear  # takes longer to import than a prediction takes

    names = list(FEATURES)
    design = np.array([[run.features[name] for name in names] for run in runs])
    least = np.log10([max(run.seconds, SHORTEST) * (1.0 if run.proved else CUT_SHORT) for run in runs])
    proved = np.array([run.proved for run in runs])
    penalty = np.sqrt(RIDGE) * np.eye(len(names))[1:]  # the constant is free
    low = [0.0 if name in GROWING else -np.inf for name in names]
    high = [0.0 if name == "log_gap" else np.inf for name in names]
    times = least
    for _ in range(REFINEMENTS):
        wanted = np.concatenate([times, np.zeros(len(penalty))])
        coefficients = lsq_linear(np.vstack([design, penalty]), wanted, (low, high)).x
        times = np.where(proved, least, np.maximum(least, design @ coefficients))
    misses = (design @ coefficients - least)[proved]
    error = float(np.sqrt((misses**2).mean())) if len(misses) else math.inf
    by_name = dict(zip(names, coefficients.tolist(), strict=True))
    return Model(by_name, error, len(runs), int(proved.sum()))


def as_table(models: Mapping[str, Model]) -> str:
    """The table, to be read by people and by `read_table`."""
    names = FEATURES
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["backend", *names, "error", "runs", "proved"])
    for backend, model in models.items():
        numbers = [f"{model.coefficients[name]:.4f}" for name in names]
        writer.writerow([backend, *numbers, f"{model.error:.3f}", model.runs, model.proved])
    return text.getvalue()


def read_table(path: Path) -> dict[str, Model]:
    """Read a table that `as_table` wrote."""
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
        read = {
            row.pop("backend"): Model(
                error=float(row.pop("error")),
                runs=int(row.pop("runs")),
                proved=int(row.pop("proved")),
                coefficients={name: float(value) for name, value in row.items()},
            )
            for row in rows
        }
        if not read or any(set(model.coefficients) != set(FEATURES) for model in read.values()):
            raise ValueError("its columns are others")
        return read
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProblemError(f"{path}: this is no table of predicted times ({error}): run rposst calibrate.") from None


def users_table() -> Path:
    """Where a user's own table is kept."""
    named = os.environ.get(VARIABLE)
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(named) if named else Path(folder) / "rposst-opt" / "forecast.csv"


def models() -> dict[str, Model]:
    """The user's table if there is one, or the package's."""
    own = users_table()
    try:
        changed = own.stat().st_mtime_ns
    except OSError:
        return _cached(TABLE, 0)
    return _cached(own, changed)


@cache
def _cached(path: Path, changed: int) -> dict[str, Model]:
    return read_table(path)


def in_words(seconds: float) -> str:
    """A predicted time, to two digits, which is more than can be known."""
    for limit, unit, name in ((1.0, 1e-3, "ms"), (100.0, 1.0, "s"), (6000.0, 60.0, "minutes"), (2e5, 3600.0, "hours")):
        if seconds < limit:
            rounded = float(f"{seconds / unit:.2g}")
            return f"{rounded:g} {name}"
    days = seconds / 86400
    return f"{float(f'{days:.2g}'):g} days" if days < 3650 else "years"


def predict(problem: Problem, backends: Iterable[str], gap: float = 0.0) -> dict[str, float]:
    """Seconds to a test that is proved to be within the gap, for those of the backends that the table knows."""
    known, of = models(), features(problem, gap)
    return {name: known[name].seconds(of) for name in backends if name in known and known[name].proved}
