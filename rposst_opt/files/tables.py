"""Reading results, targets, tests, certificates and match logs, and writing most of these.

No mathematics here, and every name in a file is only data.

A table has a header with names, a first column with names, and numbers elsewhere; commas, tabs or semicolons separate
them. All errors are `ProblemError`s of one line that say where in the file the trouble is.
"""

import gzip
import io
import json
import math
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray
from rposst_opt.backends.agreement import Agreement, Finding
from rposst_opt.certificate import Certificate, CertificateCut
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError
from rposst_opt.problem import Problem
from rposst_opt.results import Scale
from rposst_opt.solution import BackendChoice, RankedTest, Solution

TEST_FORMAT = "rposst-test/1"
CERTIFICATE_FORMAT = "rposst-certificate/1"
SEPARATORS = (",", "\t", ";")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
NO_NUMBER = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


def read_results(path: Path, *, only_cases: Collection[str] | None = None) -> pd.DataFrame:
    """Read a result matrix: test cases as rows, policies as columns.

    With `only_cases`, other rows are passed over unread, so they may be incomplete; missing cases stay missing.
    """
    return _read_table(path, rows="test case", columns="policy", only_rows=only_cases)


def read_crosstable(path: Path) -> pd.DataFrame:
    """Read a table of agents against agents; a blank cell is a missing number."""
    return _read_table(path, rows="agent", columns="agent", blanks=True)


def match_logs(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of every match log (``.log`` or ``.log.gz``) in a folder and its subfolders, by name."""
    if not folder.is_dir():
        raise ProblemError(f"{_named(folder)}: there is no such folder.")
    paths = sorted(path for path in folder.rglob("*") if path.name.endswith((".log", ".log.gz")))
    if not paths:
        raise ProblemError(f"{_named(folder)}: there are no match logs (*.log, *.log.gz) in this folder.")
    for path in paths:
        try:
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
        except (OSError, EOFError, zlib.error) as error:
            raise ProblemError(f"{_named(path)}: cannot be read ({error}).") from None
        yield str(path.relative_to(folder)), text.decode("utf-8", errors="replace").splitlines()


def read_targets(path: Path, case_names: Sequence[str]) -> pd.DataFrame:
    """Read target distributions, one per row of the outcome, columns in the order of `case_names`.

    In the file, the test cases may be the rows or the columns; their names tell which.
    """
    table = _read_table(path, rows="row", columns="column")
    known = set(case_names)
    if len(known & set(table.columns)) > len(known & set(table.index)):
        _check_same_names(path, "test case", list(table.columns), case_names)
        return table[list(case_names)]
    _check_same_names(path, "test case", list(table.index), case_names)
    return table.loc[list(case_names)].T


def read_probabilities(path: Path, policy_names: Sequence[str], target_names: Sequence[str]) -> FloatArray:
    """Read the probability of each policy (row) and target (column), in the order of the names given.

    With a single target its column may have any name.
    """
    table = _read_table(path, rows="policy", columns="target")
    _check_same_names(path, "policy", list(table.index), policy_names)
    if len(target_names) == 1 and table.shape[1] == 1:
        return table.loc[list(policy_names)].to_numpy()
    _check_same_names(path, "target", list(table.columns), target_names)
    return table.loc[list(policy_names), list(target_names)].to_numpy()


def _read_table(
    path: Path, *, rows: str, columns: str, only_rows: Collection[str] | None = None, blanks: bool = False
) -> pd.DataFrame:
    cells = _read_cells(path)
    if cells.shape[0] < 2:
        raise ProblemError(f"{_named(path)}: there must be at least one {rows} below the header, got none.")
    if cells.shape[1] < 2:
        raise ProblemError(
            f"{_named(path)}: there must be at least one {columns} beside the names, got none. "
            "Columns are separated by a comma, a tab or a semicolon."
        )
    header = cells.iloc[0, 1:].tolist()
    body = cells.iloc[1:]
    if only_rows is not None:
        body = body[body[0].isin(list(only_rows))]
    names = body[0].tolist()
    _check_names(path, columns, header)
    _check_names(path, rows, names)
    numbers = _as_numbers(path, body.iloc[:, 1:], rows, names, columns, header, blanks=blanks)
    return pd.DataFrame(numbers, index=names, columns=header)


def _read_cells(path: Path) -> pd.DataFrame:
    """The file as text, cell by cell."""
    text = _read_text(path)
    if not text.strip():
        raise ProblemError(f"{_named(path)}: the file is empty.")
    if "\0" in text:
        raise ProblemError(f"{_named(path)}: this is not a text file (it holds a zero byte).")
    separator = max(SEPARATORS, key=_unquoted_header(text).count)
    try:
        return pd.read_csv(
            io.StringIO(text, newline=""), sep=separator, header=None, dtype=str, keep_default_na=False, na_filter=False
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = " ".join(str(error).replace("Error tokenizing data. C error: ", "").split())
        raise ProblemError(f"{_named(path)}: the rows do not have the header's number of columns ({reason}).") from None


def _named(path: Path) -> str:
    """The path for a message of one line."""
    return str(path) if str(path).isprintable() else repr(str(path))


def _unquoted_header(text: str) -> str:
    """The first line that is not blank, without what is in quotes: separators there are part of a name."""
    unquoted = re.sub(r'"(?:[^"]|"")*"', '""', text)
    return next((line for line in re.split(r"[\r\n]", unquoted) if line.strip()), "")


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"{_named(path)}: the file is not UTF-8 text (byte {error.start}): save it as UTF-8."
        ) from None
    except OSError as error:
        raise ProblemError(f"{_named(path)}: cannot be read ({error.strerror}).") from None


def _check_names(path: Path, kind: str, names: list[str]) -> None:
    for place, name in enumerate(names, start=2):
        if not name.strip():
            raise ProblemError(f"{_named(path)}: every {kind} must have a name, and number {place - 1} has none.")
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ProblemError(f"{_named(path)}: the {kind} {repeated!r} is there more than once: names must differ.")


def _check_same_names(path: Path, kind: str, names: Sequence[str], expected: Sequence[str]) -> None:
    missing = [name for name in expected if name not in set(names)]
    surplus = [name for name in names if name not in set(expected)]
    if missing:
        raise ProblemError(
            f"{_named(path)}: the {kind} {missing[0]!r} is missing ({len(missing)} of {len(expected)} are)."
        )
    if surplus:
        raise ProblemError(f"{_named(path)}: there is no {kind} {surplus[0]!r} in this problem: remove it.")


def _as_numbers(
    path: Path, cells: pd.DataFrame, rows: str, names: list[str], columns: str, header: list[str], *, blanks: bool
) -> FloatArray:
    # Python reads a number to its last bit, which not every version of pandas does.
    texts = [[text.strip() for text in row] for row in cells.to_numpy().tolist()]
    numbers = np.array([[float(text) if NUMBER.fullmatch(text) else np.nan for text in row] for row in texts])
    allowed = np.array([[blanks and not text for text in row] for row in texts], dtype=bool)
    bad = np.argwhere(~np.isfinite(numbers) & ~allowed)
    if len(bad):
        row, column = bad[0]
        text = texts[row][column]
        where = f"{_named(path)}: the cell of {rows} {names[row]!r} and {columns} {header[column]!r}"
        if not text:
            raise ProblemError(f"{where} is empty: every cell needs a number.")
        if NUMBER.fullmatch(text) or NO_NUMBER.fullmatch(text):
            raise ProblemError(f"{where} must be finite, got {text!r}.")
        hint = " Write decimals with a point." if "," in text else ""
        raise ProblemError(f"{where} must be a number, got {text!r}.{hint}")
    return numbers


def solution_record(problem: Problem, solution: Solution, scale: Scale) -> dict[str, Any]:
    """A solution as one JSON object. A number that JSON cannot say (an infinite bound, say) becomes null."""
    test = solution.test
    return {
        "format": TEST_FORMAT,
        "cases": [] if test is None else list(test.case_names),
        "positions": [] if test is None else list(test.cases),
        "weights": [] if test is None else test.weights.tolist(),
        "objective": _finite(solution.objective),
        "lower_bound": _finite(solution.lower_bound),
        "gap": _finite(solution.gap),
        "status": solution.status.value,
        "limit": None if solution.limit is None else solution.limit.value,
        "backend": solution.backend,
        "measure": problem.measure.describe(),
        "loss": problem.loss.label,
        "size": problem.size,
        "required": [problem.case_names[case] for case in problem.required_cases],
        "n_cases": problem.n_cases,
        "n_policies": problem.n_policies,
        "n_scenarios": problem.n_scenarios,
        "seconds": solution.seconds,
        "scale": {"low": scale.low, "high": scale.high},
        **({} if solution.choice is None else {"choice": _choice_record(solution.choice)}),
        **({"ranking": [_ranked_record(ranked) for ranked in solution.ranking]} if solution.ranking else {}),
    }


def _choice_record(choice: BackendChoice) -> dict[str, Any]:
    return {"reason": choice.reason, "predicted_seconds": dict(choice.predicted_seconds)}


def _ranked_record(ranked: RankedTest) -> dict[str, Any]:
    return {
        "cases": list(ranked.test.case_names),
        "weights": ranked.test.weights.tolist(),
        "objective": _finite(ranked.objective),
        "mean_loss": _finite(ranked.mean_loss),
    }


def certificate_record(problem: Problem, certificate: Certificate) -> dict[str, Any]:
    """A certificate as one JSON object; its scenarios are numbered policy by policy, then target by target."""
    return {
        "format": CERTIFICATE_FORMAT,
        "bound": certificate.bound,
        "exceptions": [[problem.case_names[case] for case in cases] for cases in certificate.exceptions],
        "cuts": [
            {
                "scenarios": cut.scenarios.tolist(),
                "tail_weights": cut.tail_weights.tolist(),
                "pulls": cut.pulls.tolist(),
            }
            for cut in certificate.cuts
        ],
    }


def read_certificate(path: Path, problem: Problem) -> Certificate:
    """Read a certificate that `rposst solve --certificate` wrote. What it says is not checked here."""
    record = _read_object(path, CERTIFICATE_FORMAT, "certificate")
    bound, exceptions, cuts = record.get("bound"), record.get("exceptions"), record.get("cuts")
    if not _is_number(bound):
        raise ProblemError(f'{_named(path)}: "bound" must be a number.')
    if not isinstance(exceptions, list) or not all(
        isinstance(cases, list) and all(isinstance(case, str) for case in cases) for cases in exceptions
    ):
        raise ProblemError(f'{_named(path)}: "exceptions" must be a list of lists of test cases.')
    position_of = {name: position for position, name in enumerate(problem.case_names)}
    unknown = [case for cases in exceptions for case in cases if case not in position_of]
    if unknown:
        raise ProblemError(f"{_named(path)}: unknown test case {unknown[0]!r}.")
    if not isinstance(cuts, list):
        raise ProblemError(f'{_named(path)}: "cuts" must be a list.')
    return Certificate(
        bound=float(bound),
        cuts=tuple(_read_cut(path, number, cut) for number, cut in enumerate(cuts)),
        exceptions=tuple(tuple(position_of[case] for case in cases) for cases in exceptions),
    )


def _read_cut(path: Path, number: int, record: object) -> CertificateCut:
    where = f"{_named(path)}: cut {number}"
    if not isinstance(record, dict):
        raise ProblemError(f"{where} must be an object.")
    for name in ("scenarios", "tail_weights", "pulls"):
        values = record.get(name)
        if not isinstance(values, list) or not all(_is_number(value) for value in values):
            raise ProblemError(f'{where}: "{name}" must be a list of numbers.')
    if not all(isinstance(scenario, int) for scenario in record["scenarios"]):
        raise ProblemError(f'{where}: "scenarios" must be whole numbers.')
    try:
        return CertificateCut(
            np.array(record["scenarios"], dtype=np.int64),
            np.array(record["tail_weights"], dtype=np.float64),
            np.array(record["pulls"], dtype=np.float64),
        )
    except OverflowError:
        raise ProblemError(f"{where} has a number that is too large.") from None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
        "objective": None if solution is None else _finite(solution.objective),
        "lower_bound": None if candidate is None else _finite(candidate.lower_bound),
        "gap": None if solution is None else _finite(solution.gap),
        "cases": None if test is None else list(test.case_names),
        "weights": None if test is None else test.weights.tolist(),
        "seconds": None if solution is None else solution.seconds,
        "build_seconds": None if candidate is None else candidate.stats.build_seconds,
        "solve_seconds": None if candidate is None else candidate.stats.solve_seconds,
        "version": finding.version,
    }


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Records as CSV; lists are written as JSON in their cells."""
    cells = [
        {key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows
    ]
    return pd.DataFrame(cells).to_csv(index=False)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def as_json(record: object) -> str:
    """A record as JSON text that any reader takes and any terminal shows."""
    return json.dumps(record, indent=2, allow_nan=False)


def _read_object(path: Path, wanted: str, what: str) -> dict[str, Any]:
    """Read a JSON object of this format."""
    try:
        record = json.loads(_read_text(path))
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{_named(path)}: this is not JSON ({error}).") from None
    if not isinstance(record, dict) or record.get("format") != wanted:
        raise ProblemError(
            f'{_named(path)}: this is not a {what}: a JSON object with "format": "{wanted}" is expected.'
        )
    return record


def read_test(path: Path) -> EfficientTest:
    """Read a test that `rposst solve --out` wrote.

    Its cases are known by name; new results need not have the other cases, so the positions are those among the chosen.
    """
    record = _read_object(path, TEST_FORMAT, "test")
    cases, weights = record.get("cases"), record.get("weights")
    if not isinstance(cases, list) or not all(isinstance(case, str) for case in cases):
        raise ProblemError(f'{_named(path)}: "cases" must be a list of names.')
    if not isinstance(weights, list) or not all(_is_number(weight) for weight in weights):
        raise ProblemError(f'{_named(path)}: "weights" must be a list of numbers.')
    if not cases:
        raise ProblemError(f"{_named(path)}: this test has no cases: its search ended without one.")
    if len(set(cases)) < len(cases):
        raise ProblemError(f'{_named(path)}: "cases" must differ from each other.')
    try:
        return EfficientTest(cases=range(len(cases)), weights=weights, case_names=cases, n_cases=len(cases))
    except ProblemError as error:
        raise ProblemError(f"{_named(path)}: {error}") from None


def check_can_write(path: Path) -> None:
    """Find out before a long run whether its outcome can be written, without touching anything."""
    folder = path.parent
    try:
        if not folder.is_dir():
            raise ProblemError(f"{_named(path)}: the folder {str(folder)!r} does not exist: make it first.")
        if path.exists() and not path.is_file():
            raise ProblemError(f"{_named(path)}: this is a folder or a device, not a file: name a file.")
        if not os.access(folder, os.W_OK):
            raise ProblemError(f"{_named(path)}: the folder {str(folder)!r} cannot be written to.")
    except OSError as error:
        raise ProblemError(f"{_named(path)}: cannot be written ({error.strerror}).") from None


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that at every moment there is either the old one or the whole new one."""
    write_with(path, lambda temporary: temporary.write_bytes(text.encode("utf-8")))


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a result matrix so that reading it back gives the same numbers."""
    write_atomically(path, table.to_csv(index_label="test_case", lineterminator="\n"))


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """The same with a function that writes to the path it is given."""
    check_can_write(path)
    path = Path(os.path.realpath(path))  # a link stays a link
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".rposst-", suffix=path.suffix[:8])
        os.close(handle)
        try:
            write(Path(name))
            with open(name, "rb") as file:
                os.fsync(file.fileno())
            os.chmod(name, _usual_permissions(path))
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ProblemError(f"{_named(path)}: cannot be written ({error.strerror}).") from None


def _usual_permissions(path: Path) -> int:
    """Those of the file that is replaced, or of a new one; a temporary file has stricter ones."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
