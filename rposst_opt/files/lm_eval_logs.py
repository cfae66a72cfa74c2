"""How does lm-evaluation-harness (lm-eval) name test cases and log results?

A test case is a document of a task, called ``task/number``, as in ``arc_easy/17``: the number is lm-eval's ``doc_id``,
which ``--samples`` takes. With ``--log_samples``, version 0.4.7 or newer writes for every run a file of the model,
``results_DATE.json``, and beside it a file of every task, ``samples_TASK_DATE.jsonl``, with a line for each document
and filter.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from rposst_opt.errors import ProblemError
from rposst_opt.files.harness_runs import (
    Run,
    check_repetitions,
    chosen_by_task,
    log_files,
    long_table,
    of_task,
)
from rposst_opt.text_files import named, read_text, unreadable

SAMPLES = re.compile(r"samples_(?P<task>.+)_(?P<date>[^_]+)\.jsonl")
CASE = re.compile(r"(?P<task>.+)/(?P<document>\d+)", re.ASCII | re.DOTALL)
NO_FILTER = "none"  # what lm-eval calls the filter of a task that has none
# What changes where a model runs, and not what it answers.
TECHNICAL = {"batch_size", "device", "max_batch_size", "parallelize", "tensor_parallel_size", "gpu_memory_utilization"}


class Document(NamedTuple):
    """A line of a log: a document, what it is known by, and its metrics, save those that are no single number."""

    number: int
    filter: str
    digest: str | None
    metrics: dict[str, float]


@dataclass(frozen=True)
class _Log:
    run: Run
    documents: list[Document]


def case_name(task: str, document: int) -> str:
    """The test case that a document of a task is.

    >>> case_name("arc_easy", 17), document_of("arc_easy/17"), document_of("arc_easy")
    ('arc_easy/17', ('arc_easy', 17), None)
    """
    return f"{task}/{document}"


def document_of(case: str) -> tuple[str, int] | None:
    """The task and the number of a test case's document; None if it is not called like one."""
    found = CASE.fullmatch(case)
    return None if found is None else (found["task"], int(found["document"]))


def read_lm_eval(
    paths: Path | Sequence[Path], *, metric: str | None = None, filter: str | None = None, task: str | None = None
) -> pd.DataFrame:
    """Read what lm-eval wrote with ``--log_samples``, without lm-eval.

    Parameters
    ----------
    paths : Path or sequence of Path
        Folders, with all below them, or ``samples_*.jsonl`` files, each with its ``results_*.json`` beside it.
    metric, filter : str, optional
        Which is read, where there are several; or several in order of preference, with commas between them: a task
        takes the first that it has. A task without filters needs none. Values are taken as they are, also those of
        metrics for which less is better.
    task : str, optional
        Read this task alone, and call its test cases by their numbers: ``17``, not ``arc_easy/17``.

    Returns
    -------
    DataFrame with columns case, policy and value
        A policy is lm-eval's ``model_name``. A document that was run several times has several rows.
    """
    nothing = "there is no samples_*.jsonl here: run lm_eval with --log_samples and --output_path."
    logs = [_read_log(path) for path in log_files(paths, ["samples_*.jsonl"], nothing)]
    logs = of_task(list({(log.run.where.name, log.run.policy): log for log in logs}.values()), task)  # no copies
    check_repetitions(log.run for log in logs)
    _check_documents(logs)
    filters = _filters_by_task(logs, filter)
    metrics = chosen_by_task("metric", metric, _metrics_by_task(logs, filters))
    return long_table(
        (
            str(document.number) if task is not None else case_name(log.run.task, document.number),
            log.run.policy,
            document.metrics[metrics[log.run.task]],
        )
        for log in logs
        for document in log.documents
        if document.filter == filters[log.run.task]
    )


def _read_log(path: Path) -> _Log:
    found = SAMPLES.fullmatch(path.name)
    if found is None:
        raise ProblemError(
            f"{named(path)}: a log of lm-eval is called samples_TASK_DATE.jsonl: name one, or its folder."
        )
    documents = list(_read_documents(path))
    if not documents:
        raise ProblemError(f"{named(path)}: this log has no documents.")
    return _Log(_read_run(path, found["task"], found["date"]), documents)


def _read_documents(path: Path) -> Iterator[Document]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _read_document(f"{named(path)}, line {number}", line)
    except OSError as error:
        raise unreadable(path, error) from None


def _read_document(where: str, line: bytes) -> Document:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{where}: this is not JSON ({error}): was the run interrupted?") from None
    if not isinstance(record, dict):
        raise ProblemError(f"{where}: a line of lm-eval's log must be an object.")
    number, filter_name, names, digest = (record.get(key) for key in ("doc_id", "filter", "metrics", "doc_hash"))
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ProblemError(f'{where}: "doc_id" must be the number of a document.')
    if not isinstance(filter_name, str):
        raise ProblemError(f'{where}: "filter" must be a name: this takes lm-eval 0.4.7 or newer.')
    if not isinstance(names, list) or not all(isinstance(name, str) and name in record for name in names):
        raise ProblemError(f'{where}: "metrics" must name values of the line: this takes lm-eval 0.4.7 or newer.')
    values = {name: _as_number(record[name]) for name in names}
    metrics = {name: value for name, value in values.items() if value is not None}
    return Document(number, filter_name, digest if isinstance(digest, str) else None, metrics)


def _as_number(value: object) -> float | None:
    """A metric of a document as a number: not a number where there is none, None where it is something else."""
    if value is None:
        return math.nan
    if not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _read_run(path: Path, task: str, date: str) -> Run:
    """What the file beside a log tells of its run."""
    beside = sorted(file for file in path.parent.glob("*.json") if file.stem.endswith(f"_{date}"))
    if len(beside) != 1:
        raise ProblemError(
            f"{named(path)}: {len(beside) or 'no'} files beside it end in _{date}.json, and lm-eval's results, which "
            "tell the model, must be there once: keep them together."
        )
    try:
        results = json.loads(read_text(beside[0]))
    except (ValueError, RecursionError) as error:
        raise ProblemError(f"{named(beside[0])}: this is not JSON ({error}).") from None
    policy = results.get("model_name") if isinstance(results, dict) else None
    if not isinstance(policy, str) or not policy:
        raise ProblemError(f'{named(beside[0])}: "model_name" must be there: these are no results of lm-eval.')
    config, shots = (_object(results.get(key)) for key in ("config", "n-shot"))
    settings = {
        "model": results.get("model_source"),
        "model_args": _arguments(config.get("model_args")),
        "gen_kwargs": _arguments(config.get("gen_kwargs")),
        "num_fewshot": shots.get(task),
        "system_instruction": results.get("system_instruction"),
        "chat_template": results.get("chat_template_sha"),
    }
    return Run(path, task, policy, settings)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _arguments(given: object) -> dict[str, str]:
    """Arguments of a model, which older versions log as text, newer ones as an object."""
    pairs: Any = given.items() if isinstance(given, dict) else ()
    if isinstance(given, str):
        pairs = (part.partition("=")[::2] for part in given.split(",") if part)
    return {name: str(value) for name, value in pairs if name not in TECHNICAL}


def _check_documents(logs: list[_Log]) -> None:
    """Refuse logs in which one number stands for different documents."""
    first_of: dict[tuple[str, int], tuple[str, Path]] = {}
    for log in logs:
        for document in log.documents:
            if document.digest is not None:
                key = log.run.task, document.number
                digest, first = first_of.setdefault(key, (document.digest, log.run.where))
                if document.digest != digest:
                    raise ProblemError(
                        f"{named(log.run.where)}: document {document.number} of task {log.run.task!r} is another one "
                        f'than in {named(first)} (by "doc_hash"): the data differ, so read these logs apart.'
                    )


def _filters_by_task(logs: list[_Log], wanted: str | None) -> dict[str, str]:
    """The filter of every task: the one that is wanted, or its only one; tasks that do not filter are not asked."""
    offered: dict[str, set[str]] = {}
    for log in logs:
        offered.setdefault(log.run.task, set()).update(document.filter for document in log.documents)
    settled = {
        task: next(iter(names))
        for task, names in offered.items()
        if names == {NO_FILTER} or (wanted is None and len(names) == 1)
    }
    asked = {task: names for task, names in offered.items() if task not in settled}
    return settled | chosen_by_task("filter", wanted, asked)


def _metrics_by_task(logs: list[_Log], filters: dict[str, str]) -> dict[str, set[str]]:
    """What every document of a task has as a single number."""
    offered: dict[str, set[str]] = {}
    for log in logs:
        read = [document for document in log.documents if document.filter == filters[log.run.task]]
        if not read:
            raise ProblemError(f"{named(log.run.where)}: nothing here has the filter {filters[log.run.task]!r}.")
        for document in read:
            offered.setdefault(log.run.task, set(document.metrics)).intersection_update(document.metrics)
        if not offered[log.run.task]:
            raise ProblemError(f"{named(log.run.where)}: no metric is a single number for every document.")
    return offered
