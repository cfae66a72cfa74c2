"""Tests, certificates and agreements as JSON or CSV, and tests and certificates read back.

All errors are `ProblemError`s of one line that say where in the file the trouble is.
"""

import json
import math
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray
from rposst_opt.backends.agreement import Agreement, Finding
from rposst_opt.certificate import Certificate, CertificateCut
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError
from rposst_opt.estimators import TuningScores
from rposst_opt.files.text import named, read_text
from rposst_opt.problem import Need, Problem
from rposst_opt.results import Scale
from rposst_opt.solution import BackendChoice, RankedTest, Solution

TEST_FORMAT = "rposst-test/1"
CERTIFICATE_FORMAT = "rposst-certificate/1"


MOST_STORED = 200_000  # numbers of tuning policies in a test's file


def solution_record(problem: Problem, solution: Solution, scale: Scale) -> dict[str, Any]:
    """A solution as one JSON object. A number that JSON cannot say (an infinite bound, say) becomes null."""
    test = solution.test
    return {
        "format": TEST_FORMAT,
        "cases": [] if test is None else list(test.case_names),
        "positions": [] if test is None else list(test.cases),
        "weights": [] if test is None else test.weights.tolist(),
        **({} if test is None or not problem.offset else {"offset": test.in_file_units(scale).offset}),
        "objective": finite(solution.objective),
        "lower_bound": finite(solution.lower_bound),
        "gap": finite(solution.gap),
        "status": solution.status.value,
        "limit": None if solution.limit is None else solution.limit.value,
        "backend": solution.backend,
        "measure": problem.measure.describe(),
        "loss": problem.loss.label,
        **({"noise_cost": problem.noise_cost(test)} if test is not None and Need.NOISE in problem.needs else {}),
        "size": problem.size,
        "required": [problem.case_names[case] for case in problem.required_cases],
        "n_cases": problem.n_cases,
        "n_policies": problem.n_policies,
        "n_scenarios": problem.n_scenarios,
        "seconds": solution.seconds,
        "scale": {"low": scale.low, "high": scale.high},
        **_range_record(problem, scale),
        **({} if solution.choice is None else {"choice": _choice_record(solution.choice)}),
        **(
            {"ranking": [_ranked_record(problem, ranked, scale) for ranked in solution.ranking]}
            if solution.ranking
            else {}
        ),
        **_tuning_record(problem, test, scale),
    }


def _range_record(problem: Problem, scale: Scale) -> dict[str, Any]:
    """The range of results in the units of the file, where the scale does not tell it: if they were not rescaled."""
    low, high = (scale.score_in_file_units(float(end)) for end in (problem.results.min(), problem.results.max()))
    return {} if Scale(low, high) == scale else {"range": {"low": low, "high": high}}


def _tuning_record(problem: Problem, test: EfficientTest | None, scale: Scale) -> dict[str, Any]:
    """What estimators learn from, in the units of the file, unless it is too much to keep."""
    tuning = None if test is None else test.in_file_units(scale).tuning
    if tuning is None or tuning.results.size + tuning.full_scores.size > MOST_STORED:
        return {}
    return {
        "tuning": {
            "policies": list(problem.policy_names),
            "results": tuning.results.tolist(),
            "full_scores": tuning.full_scores.tolist(),
        }
    }


def _choice_record(choice: BackendChoice) -> dict[str, Any]:
    return {"reason": choice.reason, "predicted_seconds": dict(choice.predicted_seconds)}


def _ranked_record(problem: Problem, ranked: RankedTest, scale: Scale) -> dict[str, Any]:
    return {
        "cases": list(ranked.test.case_names),
        "weights": ranked.test.weights.tolist(),
        **({"offset": ranked.test.in_file_units(scale).offset} if problem.offset else {}),
        "objective": finite(ranked.objective),
        "mean_loss": finite(ranked.mean_loss),
    }


def certificate_record(problem: Problem, certificate: Certificate) -> dict[str, Any]:
    """A certificate as one JSON object; its scenarios are numbered policy by policy, then target by target."""
    return {
        "format": CERTIFICATE_FORMAT,
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


def finite(value: Any) -> Any:
    """A value as JSON can say it: a number that is not finite becomes null, everything else stays."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(record: object) -> str:
    """A record as JSON text that any reader takes and any terminal shows."""
    return json.dumps(record, indent=2, allow_nan=False)


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Records as CSV; lists are written as JSON in their cells."""
    cells = [
        {key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows
    ]
    return pd.DataFrame(cells).to_csv(index=False)


def read_test(path: Path) -> EfficientTest:
    """Read a test that `rposst solve --out` wrote.

    Its cases are known by name; new results need not have the other cases, so the positions are those among the chosen.
    """
    record = read_record(path, TEST_FORMAT, "test")
    cases, weights, offset = record.get("cases"), record.get("weights"), record.get("offset")
    if not isinstance(cases, list) or not all(isinstance(case, str) for case in cases):
        raise ProblemError(f'{named(path)}: "cases" must be a list of names.')
    if not isinstance(weights, list) or not all(_is_number(weight) for weight in weights):
        raise ProblemError(f'{named(path)}: "weights" must be a list of numbers.')
    if offset is not None and not _is_number(offset):
        raise ProblemError(f'{named(path)}: "offset" must be a number.')
    if not cases:
        raise ProblemError(f"{named(path)}: this test has no cases: its search ended without one.")
    if len(set(cases)) < len(cases):
        raise ProblemError(f'{named(path)}: "cases" must differ from each other.')
    try:
        return EfficientTest(
            cases=range(len(cases)),
            weights=weights,
            case_names=cases,
            n_cases=len(cases),
            offset=offset,
            tuning=_read_tuning(path, record.get("tuning")),
            scale=_read_scale(path, record),
        )
    except ProblemError as error:
        raise ProblemError(f"{named(path)}: {error}") from None


def _read_scale(path: Path, record: dict[str, Any]) -> Scale | None:
    """The range of results that a test was made for, if its file says so."""
    name = "scale" if record.get("range") is None else "range"
    found = record.get(name)
    if found is None:
        return None
    ends = [found.get("low"), found.get("high")] if isinstance(found, dict) else []
    numbers = [_as_float(end) for end in ends if _is_number(end)]
    if len(numbers) != 2 or not -math.inf < numbers[0] <= numbers[1] < math.inf:
        raise ProblemError(f'{named(path)}: "{name}" must be two finite numbers, "low" and "high".')
    return Scale(*numbers)


def _read_tuning(path: Path, record: object) -> TuningScores | None:
    """What a test's file says of its tuning policies, if it does."""
    if record is None:
        return None
    if not isinstance(record, dict):
        raise ProblemError(f'{named(path)}: "tuning" must be an object.')
    results, full_scores = (_read_matrix(path, name, record.get(name)) for name in ("results", "full_scores"))
    if results.shape[1] != full_scores.shape[1]:
        raise ProblemError(f'{named(path)}: "results" and "full_scores" of "tuning" must have a column per policy.')
    return TuningScores(results, full_scores)


def _read_matrix(path: Path, name: str, rows: object) -> FloatArray:
    """A table of finite numbers, a list per row."""
    matrix = None
    if isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows):
        numbers = all(_is_number(value) for row in rows for value in row)
        if numbers and len({len(row) for row in rows}) == 1:
            matrix = np.array([[_as_float(value) for value in row] for row in rows])
    if matrix is None or matrix.size == 0 or not np.isfinite(matrix).all():
        raise ProblemError(f'{named(path)}: "{name}" of "tuning" must be rows of numbers, all of one length.')
    return matrix


def _as_float(number: float) -> float:
    """A number of a file as a float; one that is too large becomes infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf


def read_certificate(path: Path, problem: Problem) -> Certificate:
    """Read a certificate that `rposst solve --certificate` wrote. What it says is not checked here."""
    record = read_record(path, CERTIFICATE_FORMAT, "certificate")
    bound, exceptions, cuts = record.get("bound"), record.get("exceptions"), record.get("cuts")
    if not _is_number(bound):
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
    )


def _read_cut(path: Path, number: int, record: object, position_of: dict[str, int]) -> CertificateCut:
    where = f"{named(path)}: cut {number}"
    if not isinstance(record, dict):
        raise ProblemError(f"{where} must be an object.")
    for name in ("scenarios", "tail_weights", "pulls"):
        values = record.get(name)
        if not isinstance(values, list) or not all(_is_number(value) for value in values):
            raise ProblemError(f'{where}: "{name}" must be a list of numbers.')
    if not all(isinstance(scenario, int) for scenario in record["scenarios"]):
        raise ProblemError(f'{where}: "scenarios" must be whole numbers.')
    noise = record.get("noise", {})
    if not isinstance(noise, dict) or not all(_is_number(part) for part in noise.values()):
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


def read_record(path: Path, wanted: str, what: str) -> dict[str, Any]:
    """Read a JSON object of this format."""
    try:
        record = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{named(path)}: this is not JSON ({error}).") from None
    if not isinstance(record, dict) or record.get("format") != wanted:
        raise ProblemError(f'{named(path)}: this is not a {what}: a JSON object with "format": "{wanted}" is expected.')
    return record


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
