"""How does Inspect (inspect-ai) name test cases and log results?

A test case is a sample of a task, called ``task:id``, as in ``arc:q17``, which ``--sample-id`` takes. A log is one
model on one task: JSON, or an ``.eval`` file, which is a zip archive with a ``header.json`` and a ``summaries.json``,
compressed with Zstandard by versions from 2026 on. Epochs are repetitions.
"""

import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from rposst_opt.errors import ProblemError, check_installed
from rposst_opt.files.harness_runs import (
    Run,
    check_repetitions,
    check_same,
    chosen_by_task,
    log_files,
    long_table,
    of_task,
)
from rposst_opt.text_files import named, read_text, unreadable

# As Inspect itself finds logs in a folder: every .eval file, and JSON whose name begins with a time.
LOGS = ("*.eval", "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*.json")
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # correct, incorrect, partly correct, no answer
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
# What changes how a model is asked, and not what it answers; another seed makes a repetition.
TECHNICAL = {"max_connections", "adaptive_connections", "max_retries", "timeout", "attempt_timeout", "batch", "seed"}
ZSTANDARD = 93  # the number of this compression in zip archives
# Besides errors of the system, what Python raises on archives in which bytes are wrong.
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, struct.error)
LOCAL_HEADER = struct.Struct("<26x2H")  # of a member of a zip archive: how long its name and its extra field are


class Sample(NamedTuple):
    """One epoch of a sample: its id, what it is known by, and its scores."""

    id: str
    digest: str | None
    scores: dict[str, Any]


@dataclass(frozen=True)
class _Log:
    run: Run
    task_settings: dict[str, Any]
    samples: list[Sample]


def case_name(task: str, sample_id: str) -> str:
    """The test case that a sample of a task is.

    >>> case_name("arc", "q17"), sample_of("arc:q17"), sample_of("q17")
    ('arc:q17', ('arc', 'q17'), None)
    """
    return f"{task}:{sample_id}"


def sample_of(case: str) -> tuple[str, str] | None:
    """The task and the id of a test case's sample; None if it is not called like one."""
    task, _, sample_id = case.partition(":")
    return (task, sample_id) if task and sample_id else None


def read_inspect(paths: Path | Sequence[Path], *, scorer: str | None = None, task: str | None = None) -> pd.DataFrame:
    """Read logs of Inspect, without Inspect.

    Parameters
    ----------
    paths : Path or sequence of Path
        Folders, with all below them, or ``.eval`` and ``.json`` files.
    scorer : str, optional
        Which is read, where there are several; or several in order of preference, with commas between them. Of a scorer
        with several values, one is called ``scorer/value``. Grades become numbers as Inspect's own metrics make them.
    task : str, optional
        Read this task alone, and call its test cases by their ids: ``q17``, not ``arc:q17``.

    Returns
    -------
    DataFrame with columns case, policy and value
        A policy is Inspect's ``model``. A sample has a row for every epoch; a sample that was never scored has one
        without a value. What several logs have of the same epoch, by its ``uuid``, counts once: the last.
    """
    nothing = "there is no log of Inspect here: a file that ends in .eval, or DATE_TASK_ID.json."
    logs = of_task([_read_log(path) for path in log_files(paths, LOGS, nothing)], task)
    _check_tasks(logs)
    check_repetitions(log.run for log in logs)
    scorers = chosen_by_task("scorer", scorer, _scorers_by_task(logs))
    last_with = {sample.digest: log for log in logs for sample in log.samples if sample.digest is not None}
    return long_table(
        (
            sample.id if task is not None else case_name(log.run.task, sample.id),
            log.run.policy,
            _as_number(sample.scores.get(scorers[log.run.task])),
        )
        for log in logs
        for sample in log.samples
        if sample.digest is None or last_with[sample.digest] is log
    )


def _read_log(path: Path) -> _Log:
    header, samples = _read_archive(path) if path.suffix == ".eval" else _read_json(path)
    described = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(described, dict):
        raise ProblemError(f'{named(path)}: this is not a log of Inspect: it has no "eval".')
    for key in ("task", "model"):
        if not isinstance(described.get(key), str):
            raise ProblemError(f'{named(path)}: "{key}" of "eval" must be a name.')
    if not isinstance(samples, list) or not samples:
        raise ProblemError(f"{named(path)}: this log has no samples.")
    generation = described.get("model_generate_config")
    settings = {
        "model_args": described.get("model_args"),
        "model_generate_config": {
            name: value
            for name, value in (generation.items() if isinstance(generation, dict) else ())
            if name not in TECHNICAL
        },
        "solver": described.get("solver"),
        "solver_args": described.get("solver_args"),
    }
    run = Run(path, described["task"], described["model"], settings)
    task_settings = {name: described.get(name) for name in ("task_args", "task_version")}
    return _Log(run, task_settings, [_read_sample(path, number, sample) for number, sample in enumerate(samples)])


def _read_json(path: Path) -> tuple[Any, Any]:
    log = _loaded(named(path), read_text(path))
    return log, log.get("samples") if isinstance(log, dict) else None


def _read_archive(path: Path) -> tuple[Any, Any]:
    """The header of an .eval file, and what it says of every sample in brief."""
    names = ("header.json", "summaries.json")
    contents = _members(path, names)
    if contents is None:
        raise ProblemError(
            f"{named(path)}: {' and '.join(names)} must be in it: the run has not ended, or was killed (`inspect log "
            "recover` mends that)."
        )
    header, samples = (_loaded(f"{named(path)}: {name}", contents[name]) for name in names)
    return header, samples


def _members(path: Path, names: Sequence[str]) -> dict[str, bytes] | None:
    """Members of a zip archive; None if one is missing."""
    try:
        with zipfile.ZipFile(path) as archive:
            if not set(names) <= set(archive.namelist()):
                return None
            return {name: _member(path, archive, name) for name in names}
    except OSError as error:
        raise unreadable(path, error) from None
    except DAMAGE as error:
        raise ProblemError(f"{named(path)}: this is not a whole .eval file ({error}).") from None


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type == ZSTANDARD:  # Python itself knows it from 3.14 on only
        return _zstandard_member(path, info)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{name} is compressed in a way that Inspect does not use")
    return archive.read(info)


def _zstandard_member(path: Path, info: zipfile.ZipInfo) -> bytes:
    """A member that is compressed with Zstandard, which may have several frames."""
    check_installed(
        f"{named(path)}: this log, which is compressed with Zstandard, needs", ["zstandard"], extra="inspect"
    )
    import zstandard

    with path.open("rb") as file:
        file.seek(info.header_offset)
        header = file.read(LOCAL_HEADER.size)
        if len(header) < LOCAL_HEADER.size:
            raise zipfile.BadZipFile(f"{info.filename} is cut off")
        file.seek(sum(LOCAL_HEADER.unpack(header)), 1)
        compressed = file.read(info.compress_size)
    try:
        with zstandard.ZstdDecompressor().stream_reader(compressed, read_across_frames=True) as reader:
            content: bytes = reader.read()
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(f"{info.filename}: {error}") from None
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"{info.filename} is damaged")
    return content


def _loaded(where: str, text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{where}: this is not JSON ({error}).") from None


def _read_sample(path: Path, number: int, record: object) -> Sample:
    where = f"{named(path)}: sample {number}"
    if not isinstance(record, dict):
        raise ProblemError(f"{where} must be an object.")
    sample_id, scores, digest = (record.get(key) for key in ("id", "scores", "uuid"))
    if not isinstance(sample_id, str | int) or isinstance(sample_id, bool):
        raise ProblemError(f'{where}: "id" must be a name or a whole number.')
    if scores is not None and not isinstance(scores, dict):
        raise ProblemError(f'{where}: "scores" must be an object.')
    return Sample(str(sample_id), digest if isinstance(digest, str) else None, dict(_values(where, scores or {})))


def _values(where: str, scores: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The scores of a sample by name; those of a scorer with several values one by one."""
    for name, score in scores.items():
        if not isinstance(score, dict) or "value" not in score:
            raise ProblemError(f'{where}: the score {name!r} must have a "value".')
        value = score["value"]
        if isinstance(value, dict):
            yield from ((f"{name}/{part}", one) for part, one in value.items())
        else:
            yield name, value


def _as_number(value: object) -> float:
    """A score as Inspect's metrics count it; not a number where there is none. A TypeError if it is something else."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        text = value.strip().lower()
        number = GRADES.get(value, WORDS.get(text))
        value = _finite(text) if number is None else number
    if not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _check_tasks(logs: list[_Log]) -> None:
    """Refuse logs in which one name stands for different tasks: their samples may have the same ids."""
    first_of: dict[str, _Log] = {}
    for log in logs:
        first = first_of.setdefault(log.run.task, log)
        what = f"task {log.run.task!r} has another"
        check_same(first.run, log.run, what, log.task_settings, first.task_settings)


def _scorers_by_task(logs: list[_Log]) -> dict[str, set[str]]:
    """What gives a number for every sample of a task that it scored."""
    offered: dict[str, set[str]] = {log.run.task: set() for log in logs}
    refused: dict[str, dict[str, str]] = {log.run.task: {} for log in logs}
    for log in logs:
        for sample in log.samples:
            for name, value in sample.scores.items():
                offered[log.run.task].add(name)
                try:
                    _as_number(value)
                except (TypeError, OverflowError):
                    refused[log.run.task].setdefault(name, f"{named(log.run.where)}: sample {sample.id!r}: {name!r}")
    for task, names in offered.items():
        if not names:
            raise ProblemError(f"no sample of task {task!r} was scored: look into the logs for what went wrong.")
        if names == refused[task].keys():
            raise ProblemError(f"{next(iter(refused[task].values()))} is neither a number nor a grade.")
        names -= refused[task].keys()
    return offered
