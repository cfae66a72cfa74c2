"""How is a report's time shared out over its parts, and how long will it take?

The test itself has half of the time limit. What it does not need is left to the parts after it, in the proportions of
`SHARES`, and so on: whoever is soon done leaves more to the others.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rposst_opt.backends import AUTO, BACKENDS, choose_backend, why_unusable
from rposst_opt.backends.forecast import in_words, predict
from rposst_opt.errors import ProblemError
from rposst_opt.problem import Need, Problem
from rposst_opt.reports.budgets import BUDGETS
from rposst_opt.unseen.error_bars import FOLDS

STARTING_SECONDS = 2.0  # a solver in a process of its own, and its code loaded
LEAST_SECONDS = 1.0  # with less, a solver is not asked
PATIENCE = 4.0  # predicted times are wrong by such factors: beyond it a backend is not asked


class Part(StrEnum):
    """What a report runs, in this order."""

    TEST = "the test itself"
    LEFT_OUT = "the test without some policies"
    SIZES = "other sizes"
    BUDGETS = "other budgets"
    GAMES = "the page's game"
    OTHERS = "other solvers"


SHARES = {
    Part.TEST: 0.5,
    Part.LEFT_OUT: 0.2,
    Part.SIZES: 0.1,
    Part.BUDGETS: 0.05,
    Part.GAMES: 0.05,
    Part.OTHERS: 0.1,
}


def shared_out(seconds: float, parts: Sequence[Part]) -> dict[Part, float]:
    """How much of so many seconds each part has, if the parts before it need nothing less than theirs."""
    total = sum(SHARES[part] for part in parts)
    return {part: seconds * SHARES[part] / total for part in parts}


class Clock:
    """Shares out the time that is left over the parts that are left; without a limit there is no end to it."""

    def __init__(self, seconds: float | None, parts: Sequence[Part]) -> None:
        if seconds is not None and not seconds >= 0:
            raise ProblemError(f"`time_limit_seconds` must not be negative, got {seconds:g}.")
        self._ends = math.inf if seconds is None else time.monotonic() + seconds
        self._parts = list(parts)

    def share(self, part: Part) -> float:
        """Seconds for this part, which begins now."""
        left = max(self._ends - time.monotonic(), 0.0)
        return shared_out(left, self._parts[self._parts.index(part) :])[part]


def finite_or_none(seconds: float) -> float | None:
    """A limit as `solve` takes it."""
    return seconds if math.isfinite(seconds) else None


@dataclass(frozen=True)
class Asked:
    """Which other solvers are asked, how many seconds each has, and why others are not asked."""

    names: Sequence[str]
    seconds: float
    not_asked: Mapping[str, str]


def who_is_asked(problem: Problem, backends: Sequence[str] | None, most_each: float, share: float) -> Asked:
    """Those that are named, or all that promise something and are predicted to be in time.

    Who is predicted to take far longer than `most_each` is not asked; if time is short, only the soonest are. Each has
    as much of the share as the others.
    """
    if backends is not None:
        return Asked(backends, max(_each(share, len(backends), most_each), min(LEAST_SECONDS, most_each)), {})
    promising = [name for name, entry in BACKENDS.items() if not entry.capabilities.is_heuristic]
    predicted = predict(problem, promising)
    not_asked = {
        name: f"predicted to take {in_words(seconds)}"
        for name, seconds in predicted.items()
        if seconds > PATIENCE * most_each
    }
    names = [name for name in promising if name not in not_asked]
    able = _able(problem, names)
    if math.isfinite(share):
        soonest = sorted(able, key=lambda name: predicted.get(name, math.inf))
        late = set(soonest[int(share // (STARTING_SECONDS + LEAST_SECONDS)) :])
        not_asked |= dict.fromkeys((name for name in names if name in late), "no time was left to ask it")
        names, able = ([name for name in each if name not in late] for each in (names, able))
    return Asked(names, _each(share, len(able), most_each), not_asked)


def _able(problem: Problem, names: Sequence[str]) -> list[str]:
    """Those that have to be started: others are told at once that they cannot."""
    capabilities = {name: BACKENDS[name].capabilities for name in names}
    return [name for name, has in capabilities.items() if has.why_not(problem) is None and why_unusable(has) is None]


def _each(share: float, count: int, most: float) -> float:
    return min(most, max(share / max(count, 1) - STARTING_SECONDS, 0.0))


@dataclass(frozen=True)
class Plan:
    """What a report is to run, and in how much time.

    Attributes
    ----------
    problem : Problem
    backend : str
    time_limit_seconds : float or None
        In all.
    leaves_out : bool
        Whether the test is made again without some policies.
    sizes : sequence of int
        Whose best tests are shown.
    backends : sequence of str, or None
        Who is asked to agree; None for all that promise something and are predicted to be in time.
    agree_seconds : float
        At most, for each of them.
    """

    problem: Problem
    backend: str
    time_limit_seconds: float | None
    leaves_out: bool
    sizes: Sequence[int]
    backends: Sequence[str] | None
    agree_seconds: float

    @property
    def parts(self) -> list[Part]:
        """What there is to run for this problem."""
        is_run = {
            Part.LEFT_OUT: self.leaves_out,
            Part.SIZES: Need.ANY_NUMBER not in self.problem.needs,  # what matters there is the budget
            Part.BUDGETS: self.problem.rules.costs is not None,
            Part.OTHERS: self.backends is None or len(self.backends) > 0,
        }
        return [part for part in Part if is_run.get(part, True)]

    def asked(self, share: float) -> Asked:
        """Which other solvers are asked, if there are so many seconds for all of them."""
        return who_is_asked(self.problem, self.backends, self.agree_seconds, share)

    def expected_seconds(self) -> float:
        """About how long it takes: what is predicted of each part, as far as its share of the time allows.

        Where nothing is predicted, a part is taken to need its share. The page's game and the writing take little.
        """
        problem, parts = self.problem, self.parts
        limit = math.inf if self.time_limit_seconds is None else self.time_limit_seconds
        shares = shared_out(limit, parts)
        test = _predicted(problem, self.backend)
        expected = [min(test, shares[Part.TEST])]
        if Part.LEFT_OUT in parts and test <= shares[Part.TEST]:
            ways = (test * count for count in (problem.n_policies, FOLDS))
            expected.append(next((seconds for seconds in ways if seconds <= shares[Part.LEFT_OUT]), 0.0))
        if Part.SIZES in parts:
            others = [_predicted(replace(problem, size=size), AUTO) for size in self.sizes if size != problem.size]
            expected.append(min(sum(others), shares[Part.SIZES]))
        if Part.BUDGETS in parts:
            expected.append(min(BUDGETS * test, shares[Part.BUDGETS]))
        if Part.OTHERS in parts:
            asked = self.asked(max(limit - sum(expected), 0.0))  # they come last, and have what the others leave
            each = predict(problem, able := _able(problem, asked.names))
            expected += [STARTING_SECONDS + min(each.get(name, 0.0), asked.seconds) for name in able]
        return min(sum(expected), limit)


def _predicted(problem: Problem, backend: str) -> float:
    """Seconds to a proved answer, if somebody knows, and without end if nobody does."""
    name = choose_backend(problem).backend if backend == AUTO else backend
    return predict(problem, [name]).get(name, 0.0 if BACKENDS[name].capabilities.is_heuristic else math.inf)
