"""Tests, certificates and agreements as JSON or CSV, and tests and certificates read back.

All errors are `ProblemError`s of one line that say where in the file the trouble is.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rposst_opt import __version__
from rposst_opt.arrays import is_number
from rposst_opt.certificate import Certificate, CertificateCut, problem_digest, problem_facts
from rposst_opt.checking.claims import Claims
from rposst_opt.efficient_test import TEST_FORMAT, EfficientTest
from rposst_opt.errors import ProblemError
from rposst_opt.problem import Problem
from rposst_opt.referee.comparison import Comparison
from rposst_opt.referee.findings import Agreement, Finding
from rposst_opt.results import Scale
from rposst_opt.solution import Solution, finite
from rposst_opt.text_files import as_json, named, read_record
from rposst_opt.values.digests import is_digest

__all__ = [
    "CERTIFICATE_FORMAT",
    "TEST_FORMAT",
    "agreement_rows",
    "as_csv",
    "as_json",
    "certificate_record",
    "comparison_record",
    "finite",
    "read_certificate",
    "read_claims",
    "read_record",
    "read_test",
    "solution_record",
]

CERTIFICATE_FORMAT = "rposst-certificate/1"
COMPARISON_FORMAT = "rposst-comparison/1"


def solution_record(
    problem: Problem, solution: Solution, scale: Scale, source: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """A solution as one JSON object, with what is known of where its problem comes from (`Solution.to_dict`)."""
    return solution.to_dict(problem, scale, source=source)


def certificate_record(problem: Problem, certificate: Certificate) -> dict[str, Any]:
    """A certificate as one JSON object; its scenarios are numbered policy by policy, then target by target."""
    return {
        "format": CERTIFICATE_FORMAT,
        "package_version": __version__,
        "problem_sha256": problem_digest(problem),
        "problem": problem_facts(problem),
        "bound": certificate.bound,
        "exceptions": [[problem.stated.case_names[case] for case in cases] for cases in certificate.exceptions],
        "cuts": [
            {
                "scenarios": cut.scenarios.tolist(),
                "tail_weights": cut.tail_weights.tolist(),
                "pulls": cut.pulls.tolist(),
                **_noise_record(problem, cut),
            }
            for cut in certificate.cuts
        ],
    }


def _noise_record(problem: Problem, cut: CertificateCut) -> dict[str, Any]:
    """The direction of a cut's noise, by the names of cases, if it has any."""
    if not len(cut.noisy_cases):
        return {}
    names = [problem.stated.case_names[case] for case in cut.noisy_cases]
    return {"noise": dict(zip(names, cut.noise_direction.tolist(), strict=True))}


def agreement_rows(report: Agreement) -> list[dict[str, Any]]:
    """What every backend says, a record each; the tuples one by one follow, where they were asked for."""
    rows = [_finding_record(report.problem, finding, None) for finding in report.findings]
    for cases, alone in report.by_tuple:
        rows += [_finding_record(report.problem, finding, cases) for finding in alone.findings]
    return rows


def _finding_record(problem: Problem, finding: Finding, tuple_cases: tuple[int, ...] | None) -> dict[str, Any]:
    solution, candidate = finding.solution, finding.candidate
    test = None if solution is None else solution.test
    return {
        "backend": finding.backend,
        "only_cases": None if tuple_cases is None else [problem.case_names[case] for case in tuple_cases],
        "verdict": finding.verdict.value,
        "reason": finding.reason,
        "objective": None if solution is None else finite(solution.objective),
        "lower_bound": None if candidate is None else finite(candidate.lower_bound),
        "gap": None if solution is None else finite(solution.gap),
        "cases": None if test is None else list(test.case_names),
        "weights": None if test is None else test.weights.tolist(),
        "seconds": None if solution is None else solution.seconds,
        "build_seconds": None if candidate is None else candidate.stats.build_seconds,
        "solve_seconds": None if candidate is None else candidate.stats.solve_seconds,
        "version": finding.version,
    }


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """A comparison as one JSON object: a record for each solver, and one for each moment of each; null is not known."""
    return {
        "format": COMPARISON_FORMAT,
        "agreed": comparison.agreement.agreed,
        "seconds": comparison.seconds,
        "threads": comparison.threads,
        "best_objective": finite(comparison.best_objective),
        "backends": _records(comparison.table),
        "profile": _records(comparison.frame),
    }


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(name): None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Records as CSV; lists are written as JSON in their cells."""
    cells = [
        {key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows
    ]
    return pd.DataFrame(cells).to_csv(index=False)


def read_test(path: Path) -> EfficientTest:
    """Read a test that `rposst solve --out` or `EfficientTest.save` wrote."""
    return EfficientTest.load(path)


def read_claims(path: Path, problem: Problem) -> Claims:
    """Read a test for this problem, and what its file says of it; one for another problem is refused.

    The test's cases are found by their names, and its offset is put into the units of the problem.
    """
    record, test = read_record(path, TEST_FORMAT, "test"), read_test(path)
    said = None if test.provenance is None else test.provenance.problem_sha256
    if said is not None and said != problem_digest(problem):
        raise ProblemError(
            f"{named(path)}: this is a test for another problem: give the table and the options that it was made with."
        )
    numbers = {name: record.get(name) for name in ("objective", "lower_bound")}
    for name, value in numbers.items():
        if value is not None and not is_number(value):
            raise ProblemError(f'{named(path)}: "{name}" must be a number, got {value!r}.')
    try:
        offset = test.offset_on(problem.scale) if test.has_offset else None
        own = problem.test(cases=test.case_names, weights=test.weights, offset=offset)
    except ProblemError as error:
        raise ProblemError(f"{named(path)}: {error}") from None
    return Claims(test=own, **numbers)


def read_certificate(path: Path, problem: Problem) -> Certificate:
    """Read a certificate that `rposst solve --certificate` wrote for this problem.

    One of another problem is refused. Older files do not say which problem they are about; then `problem_sha256` of the
    certificate is None. Whether it proves anything is not checked here.
    """
    record = read_record(path, CERTIFICATE_FORMAT, "certificate")
    _check_problem(path, record, problem)
    bound, exceptions, cuts = record.get("bound"), record.get("exceptions"), record.get("cuts")
    if not is_number(bound):
        raise ProblemError(f'{named(path)}: "bound" must be a number.')
    if not isinstance(exceptions, list) or not all(
        isinstance(cases, list) and all(isinstance(case, str) for case in cases) for cases in exceptions
    ):
        raise ProblemError(f'{named(path)}: "exceptions" must be a list of lists of test cases.')
    position_of = {name: position for position, name in enumerate(problem.stated.case_names)}
    unknown = [case for cases in exceptions for case in cases if case not in position_of]
    if unknown:
        raise ProblemError(f"{named(path)}: unknown test case {unknown[0]!r}.")
    if not isinstance(cuts, list):
        raise ProblemError(f'{named(path)}: "cuts" must be a list.')
    return Certificate(
        bound=float(bound),
        cuts=tuple(_read_cut(path, number, cut, position_of) for number, cut in enumerate(cuts)),
        exceptions=tuple(tuple(position_of[case] for case in cases) for cases in exceptions),
        problem_sha256=record.get("problem_sha256"),
    )


WORDS_OF_FACTS = {
    "results_sha256": "results",
    "targets_sha256": "targets",
    "probabilities_sha256": "probabilities",
    "noise_sha256": "noise",
    "noise_weight": "weight of noise",
}


def _check_problem(path: Path, record: dict[str, Any], problem: Problem) -> None:
    """Refuse a proof about another problem, and say in what they differ."""
    said = record.get("problem_sha256")
    if said is None:
        return
    if not is_digest(said):
        raise ProblemError(f'{named(path)}: "problem_sha256" must be 64 hexadecimal digits, got {said!r}.')
    if said == problem_digest(problem):
        return
    facts, told = json.loads(json.dumps(problem_facts(problem))), record.get("problem")
    differ = [name for name in facts if isinstance(told, dict) and told.get(name) != facts[name]]
    other = f" (other {', '.join(WORDS_OF_FACTS.get(name, name) for name in differ)})" if differ else ""
    raise ProblemError(
        f"{named(path)}: this is a proof about another problem{other}: give the table and the options that it was made "
        "with."
    )


def _read_cut(path: Path, number: int, record: object, position_of: dict[str, int]) -> CertificateCut:
    where = f"{named(path)}: cut {number}"
    if not isinstance(record, dict):
        raise ProblemError(f"{where} must be an object.")
    for name in ("scenarios", "tail_weights", "pulls"):
        values = record.get(name)
        if not isinstance(values, list) or not all(is_number(value) for value in values):
            raise ProblemError(f'{where}: "{name}" must be a list of numbers.')
    if not all(isinstance(scenario, int) for scenario in record["scenarios"]):
        raise ProblemError(f'{where}: "scenarios" must be whole numbers.')
    noise = record.get("noise", {})
    if not isinstance(noise, dict) or not all(is_number(part) for part in noise.values()):
        raise ProblemError(f'{where}: "noise" must be an object with a number per test case.')
    unknown = [case for case in noise if case not in position_of]
    if unknown:
        raise ProblemError(f"{where}: unknown test case {unknown[0]!r}.")
    try:
        return CertificateCut(
            np.array(record["scenarios"], dtype=np.int64),
            np.array(record["tail_weights"], dtype=np.float64),
            np.array(record["pulls"], dtype=np.float64),
            np.array([position_of[case] for case in noise], dtype=np.int64),
            np.array(list(noise.values()), dtype=np.float64),
        )
    except OverflowError:
        raise ProblemError(f"{where} has a number that is too large.") from None
