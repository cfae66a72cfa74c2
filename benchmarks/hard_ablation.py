"""What does each ingredient of the exact solver bring? `exact` without it, on problems that take it a while.

`INGREDIENTS` says how each one is switched off: by other values for constants, wherever they are, or for fields of the
searchers' `Plan`. Constants of kernels are compiled in; for these, kernels are compiled anew, in a folder of their own.
"""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pandas as pd

from rposst_opt.arrays import IntArray
from rposst_opt.problem import Problem
from rposst_opt.solvers.kernels.search_state import Plan
from rposst_opt.solvers.searched_cases import cases_to_search

KERNELS = "rposst_opt.solvers.kernels."
FOLDERS = Path(__file__).parent.parent / ".benchmarks"
PROBLEMS, SHORTEST_SECONDS = 15, 0.5


@dataclass(frozen=True)
class Constant:
    """Another value for a name in a module, or, as in ``module:Class``, in a class."""

    owner: str
    name: str
    value: Any

    def check(self) -> None:
        """Refuse a name that is not there: it would be switched off without any effect."""
        getattr(resolve_name(self.owner), self.name)

    def change(self) -> None:
        """Put the other value there."""
        self.check()
        setattr(resolve_name(self.owner), self.name, self.value)

    @property
    def is_compiled_in(self) -> bool:
        """Whether kernels have to be compiled again for it."""
        return self.owner.startswith(KERNELS)


@dataclass(frozen=True)
class PlanField:
    """Another value for a field of every `Plan` that the exact solver makes."""

    name: str
    value: Any

    is_compiled_in = False

    def check(self) -> None:
        """Refuse a field that is not there."""
        if self.name not in Plan._fields:
            raise AttributeError(f"a plan has no field `{self.name}`; it has {', '.join(Plan._fields)}")

    def change(self) -> None:
        """Have the field filled in so."""
        self.check()
        made = resolve_name("rposst_opt.solvers.exact:Plan")
        Constant("rposst_opt.solvers.exact", "Plan", lambda **fields: made(**fields | {self.name: self.value})).change()


def _every_case(problem: Problem, *, everything: bool) -> tuple[IntArray, int]:
    return cases_to_search(problem, everything=True)


EXACT = "rposst_opt.solvers.exact"


def _never(*_: object) -> bool:
    return False


INGREDIENTS: dict[str, tuple[Constant | PlanField, ...]] = {
    "cuts that reach farther than their tuple": (
        Constant(EXACT, "REACH", 0),
        Constant(EXACT, "MOST_MORE", 0),
    ),
    "settling a tuple with others at once": (Constant(KERNELS + "learning", "LONGEST_LEAP", 0),),
    "cuts that are widened": (Constant("rposst_opt.solvers.searchers:Searchers", "widen_from_now_on", _never),),
    "finding out whether widening pays": (Constant("rposst_opt.solvers.widening:Widening", "decide", _never),),
    "passing over extensions after failures": (Constant(KERNELS + "learning", "MOST_EXTENSIONS_SKIPPED", 0),),
    "a share for relaxation and local search": (Constant("rposst_opt.solvers.besides:Besides", "may_go_on", _never),),
    "two searchers before there are eight": (Constant(EXACT, "PAIRED", 0.0),),
    "a ladder of bounds": (Constant("rposst_opt.solvers.ladder", "CLOSEST_RUNG", math.inf),),
    "a start by exchanging single cases": (Constant(EXACT, "LONGEST_START", 0.0),),
    "exchanging them roughly at first": (Constant(EXACT, "ROUGHNESS", 0.0),),
    "cuts that reach farther where many cases are left": (Constant(KERNELS + "learning", "EACH_PAYS", 10**9),),
    "searching cases that are alike once": (Constant(EXACT, "cases_to_search", _every_case),),
    "four thousand cuts kept, not one": (Constant("rposst_opt.solvers.searchers", "KEPT_CUTS", 1024),),
}


def switch_off(ingredient: str) -> None:
    """Do without it in this process from now on."""
    for change in INGREDIENTS[ingredient]:
        change.change()


def folder_of(ingredient: str) -> Path | None:
    """Where the kernels without this ingredient are kept; None if they are those of every other run."""
    changes = [change for change in INGREDIENTS.get(ingredient, ()) if change.is_compiled_in]
    if not changes:
        return None
    return FOLDERS / ("kernels-" + hashlib.sha256(repr(changes).encode()).hexdigest()[:16])


def chosen_problems(measured: pd.DataFrame, limit: float) -> list[str]:
    """Some of the problems that `exact` proved, but not at once; where these are few, those with the least gap too."""
    own = measured[measured["solver"] == "exact"]
    proved = own[(own["status"] == "optimal") & own["seconds"].between(SHORTEST_SECONDS, limit)].sort_values("seconds")
    unproved = own[own["status"] == "feasible"].sort_values("gap")
    evenly = [round(place * (len(proved) - 1) / (PROBLEMS - 1)) for place in range(PROBLEMS)]
    names = list(proved["problem"]) if len(proved) <= PROBLEMS else [proved["problem"].iloc[at] for at in evenly]
    return names + list(unproved["problem"])[: PROBLEMS - len(names)]
