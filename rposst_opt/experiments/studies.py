"""A study: one result matrix, cut up in many ways, and a test chosen by every method in each cell.

A study is a list of tasks that know nothing of each other. What a task needs is in it, and its seed too, so it gives
the same answer wherever and whenever it is run.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from rposst_opt.arrays import FloatArray
from rposst_opt.experiments.methods import METHODS, options_of
from rposst_opt.experiments.protocol import (
    HOLDOUTS,
    REPLICAS,
    SIZES,
    Choice,
    Split,
    choose_tests,
    draw_split,
)
from rposst_opt.unseen.runner import sources_digest

if TYPE_CHECKING:
    import pandas as pd

SEED = 2023


@dataclass(frozen=True)
class Cell:
    """One way to cut a matrix up: how much is held out, how large the test, and which replica it is."""

    holdout: float
    size: int
    replica: int


@dataclass(frozen=True, eq=False)
class Task:
    """Choose tests for one tuning matrix.

    Attributes
    ----------
    name : str
        Says the study and the cell.
    tuning : ndarray
        Results of the tuning policies; there is no other data in a task.
    size : int
    methods : tuple of str
    seed : int
    """

    name: str
    tuning: FloatArray
    size: int
    methods: tuple[str, ...]
    seed: int

    def run(self) -> tuple[Choice, ...]:
        """Have every method choose."""
        return choose_tests(self.tuning, self.size, self.methods, self.seed)

    def to_record(self, outcome: tuple[Choice, ...]) -> object:
        """Choices as JSON has them."""
        return [choice.__dict__ for choice in outcome]

    def from_record(self, record: Any) -> tuple[Choice, ...]:
        """The choices that were written."""
        choices = tuple(
            Choice(each["method"], tuple(each["cases"]), tuple(each["weights"]), each["objective"]) for each in record
        )
        if tuple(choice.method for choice in choices) != self.methods:
            raise ValueError("these are other methods' choices")
        return choices

    @cached_property
    def digest(self) -> str:
        """Tells tasks apart whose answers may differ."""
        n_tuples = comb(len(self.tuning), self.size)
        options = [(method, options_of(method, n_tuples, self.seed)) for method in self.methods]
        asked = f"{sources_digest()} {self.name} {self.tuning.shape} {self.size} {self.seed} {options} "
        return hashlib.sha256(asked.encode() + np.ascontiguousarray(self.tuning).tobytes()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """A result matrix and the ways in which it is cut up.

    Attributes
    ----------
    name : str
    title : str
        For figures.
    table : DataFrame
        Test cases by policies.
    holdouts, sizes, replicas
        Every combination of them is a cell.
    hold_out_cases : bool
        Whether rows are held out as well as columns.
    """

    name: str
    title: str
    table: "pd.DataFrame"
    holdouts: tuple[float, ...] = HOLDOUTS
    sizes: tuple[int, ...] = SIZES
    replicas: int = REPLICAS
    hold_out_cases: bool = False
    methods: tuple[str, ...] = tuple(METHODS)
    seed: int = SEED

    @cached_property
    def results(self) -> FloatArray:
        """The matrix."""
        return np.ascontiguousarray(self.table.to_numpy(dtype=np.float64))

    def cells(self) -> Iterator[Cell]:
        """Every cell, replica by replica, so that an unfinished run has some of each."""
        for replica in range(self.replicas):
            for holdout in self.holdouts:
                for size in self.sizes:
                    yield Cell(holdout, size, replica)

    def split(self, cell: Cell) -> Split:
        """Which policies a cell holds out: the same for every size of test."""
        rng = np.random.default_rng([self.seed, round(1000 * cell.holdout), cell.replica])
        return draw_split(self.results.shape, cell.holdout, rng, hold_out_cases=self.hold_out_cases)

    def task(self, cell: Cell) -> Task:
        """What has to be done for a cell."""
        split = self.split(cell)
        return Task(
            name=f"{self.name}/holdout-{1000 * cell.holdout:04.0f}-size-{cell.size}-replica-{cell.replica:04d}",
            tuning=self.results[np.ix_(split.cases, split.tuning)],
            size=cell.size,
            methods=self.methods,
            seed=cell.replica,
        )
