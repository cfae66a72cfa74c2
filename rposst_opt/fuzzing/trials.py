"""One problem, all solvers: who contradicts the facts, and on which smallest problem.

The exact search is always asked, since what it proves is what others are held against; it may be refuted like any
other. The rules are those of `rposst_opt.referee.agreement`, and no others.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rposst_opt import __version__
from rposst_opt.backends import BACKENDS, make_backend, name_of, why_unusable
from rposst_opt.contract import Backend
from rposst_opt.fuzzing.families import draw
from rposst_opt.fuzzing.reproduction import Contradicted, folder_of, version_of
from rposst_opt.fuzzing.shrinking import shrink
from rposst_opt.problem import Problem
from rposst_opt.referee.agreement import agree
from rposst_opt.referee.findings import Agreement, Finding, Verdict
from rposst_opt.solution import finite

REFERENCE = "exact"
TIME_LIMIT_SECONDS = 10.0  # for one solver on one problem
SHRINKING_SECONDS = 120.0  # after which no smaller problem is looked for

# What is made small, and below which folder it goes; only contradictions are held against a solver.
TO_BE_SHOWN = {Verdict.DISAGREES: "contradictions", Verdict.CRASHED: "crashes"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    Attributes
    ----------
    rows : list of dict
        What each solver said, a row each.
    folders : dict of str to dict of str to str
        For each contradiction or crash that was made small: the name of its folder, and its files by their names.
    """

    rows: list[Row]
    folders: dict[str, dict[str, str]] = field(default_factory=dict)


class Evidence(NamedTuple):
    """What an accused said, and what all did who were asked with it."""

    finding: Finding
    agreement: Agreement


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A problem to be drawn and given to all solvers; a `rposst_opt.unseen.runner.Task`.

    Attributes
    ----------
    family, seed
        What the problem is drawn from.
    backends : tuple of str or Backend
        Who is asked.
    versions : tuple of str
        Of their packages.
    time_limit_seconds : float
        For each.
    told : frozenset of (backend, contradiction or verdict)
        What was made small often enough, and is only counted from now on.
    """

    family: str
    seed: int
    backends: tuple[str | Backend, ...]
    versions: tuple[str, ...] = ()
    time_limit_seconds: float = TIME_LIMIT_SECONDS
    told: frozenset[tuple[str, str]] = frozenset()

    @property
    def name(self) -> str:
        """Says what it is; a file is called by it."""
        return f"{self.family}-{self.seed}"

    @property
    def digest(self) -> str:
        """Tells trials apart whose outcomes may differ: other solvers, other versions of them, another time."""
        asked = repr((__version__, self.backends, self.versions, self.time_limit_seconds))
        return hashlib.sha256(asked.encode()).hexdigest()[:12]

    def run(self) -> Outcome:
        """Draw the problem, ask all, and make what contradicts small."""
        problem = draw(self.family, self.seed)
        report = self._ask(problem, self.backends)
        rows, folders = [], {}
        for finding, backend in zip(report.findings, self.backends, strict=True):
            folder = ""
            if finding.verdict in TO_BE_SHOWN and (finding.backend, what_of(finding)) not in self.told:
                folder = f"{TO_BE_SHOWN[finding.verdict]}/{finding.backend}-{self.name}".replace(" ", "-")
                folders[folder] = folder_of(self._made_small(problem, report, finding, backend))
            rows.append(self._row(finding, folder))
        return Outcome(rows, folders)

    def _ask(self, problem: Problem, backends: Sequence[str | Backend]) -> Agreement:
        return agree(problem, backends, time_limit_seconds=self.time_limit_seconds)

    def _made_small(
        self, problem: Problem, report: Agreement, finding: Finding, backend: str | Backend
    ) -> Contradicted:
        """The smallest problem that is found on which the same solver contradicts, or crashes, in the same way.

        Only those are asked whose answers are evidence: the exact search, and whoever had the best test.
        """
        evident = {REFERENCE, "" if report.best is None else report.best.backend} - {finding.backend}
        pairs = zip(report.findings, self.backends, strict=True)
        asked = [backend, *(other for found, other in pairs if found.backend in evident)]
        shown = Evidence(finding, report)
        deadline = time.monotonic() + SHRINKING_SECONDS

        def contradicts(smaller: Problem) -> bool:
            nonlocal shown
            if time.monotonic() > deadline:
                return False
            said = self._ask(smaller, asked)
            accused = said.findings[0]
            if _offence(accused) != _offence(finding):
                return False
            shown = Evidence(accused, said)
            return True

        shrink(problem, contradicts)
        return Contradicted(
            family=self.family,
            seed=self.seed,
            drawn=problem,
            backend=made(backend),
            name=finding.backend,
            is_in_the_table=isinstance(backend, str),
            finding=shown.finding,
            agreement=shown.agreement,
        )

    def _row(self, finding: Finding, folder: str) -> Row:
        solution, candidate = finding.solution, finding.candidate
        return {
            "family": self.family,
            "seed": self.seed,
            "backend": finding.backend,
            "verdict": finding.verdict.value,
            "contradiction": "" if finding.contradiction is None else finding.contradiction.value,
            "reason": finding.reason,
            "objective": None if solution is None else finite(solution.objective),
            "lower_bound": None if candidate is None else finite(candidate.lower_bound),
            "seconds": None if solution is None else solution.seconds,
            "version": finding.version,
            "folder": folder,
        }

    def to_record(self, outcome: Outcome) -> object:
        """The outcome as JSON has it."""
        return {"rows": outcome.rows, "folders": outcome.folders}

    def from_record(self, record: object) -> Outcome:
        """The outcome that was written."""
        if not isinstance(record, dict) or not isinstance(record["rows"], list):
            raise ValueError("no outcome of a trial")
        if any((row["family"], row["seed"]) != (self.family, self.seed) for row in record["rows"]):
            raise ValueError("the outcome of another trial")
        return Outcome(record["rows"], dict(record["folders"]))


def what_of(finding: Finding) -> str:
    """What is shown of a solver: how it contradicts, or that it crashed."""
    return finding.verdict.value if finding.contradiction is None else finding.contradiction.value


def _offence(finding: Finding) -> tuple[str, str]:
    """What has to stay while a problem is made smaller; how a crash ended, too, and no number of a contradiction."""
    return what_of(finding), finding.reason if finding.verdict is Verdict.CRASHED else ""


def made(backend: str | Backend) -> Backend:
    """The backend itself."""
    return make_backend(backend, {}) if isinstance(backend, str) else backend


def who_is_asked(backends: Sequence[str | Backend] | None) -> tuple[str | Backend, ...]:
    """The exact search, and these; or whoever is installed and promises something."""
    if backends is None:
        usable = {name: entry.capabilities for name, entry in BACKENDS.items()}
        backends = [name for name, can in usable.items() if not can.is_heuristic and why_unusable(can) is None]
    names = [backend if isinstance(backend, str) else name_of(backend) for backend in backends]
    return (*backends,) if REFERENCE in names else (REFERENCE, *backends)


def versions_of(backends: Sequence[str | Backend]) -> tuple[str, ...]:
    """The versions of all packages that these backends need."""
    packages = dict.fromkeys(package for backend in backends for package in made(backend).capabilities.requires)
    return tuple(f"{package} {version_of(package)}" for package in packages)
