"""Problems to be solved for a table, here or in other processes."""

from dataclasses import dataclass

from rposst_opt.backends import solve
from rposst_opt.problem import Problem
from rposst_opt.solution import Solution


@dataclass(frozen=True)
class Question:
    """A problem to be solved, here or elsewhere."""

    problem: Problem
    backend: str
    time_limit_seconds: float | None

    @property
    def size(self) -> int:
        """How many cases it is about."""
        return self.problem.size

    def run(self) -> Solution:
        """The answer."""
        return solve(self.problem, self.backend, time_limit_seconds=self.time_limit_seconds)
