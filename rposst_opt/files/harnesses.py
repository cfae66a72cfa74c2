"""How is a test handed to those who run it? The chosen cases as an evaluation harness takes them, or as a plain table.

A harness runs the cases and knows nothing of weights: the score is made afterwards, of its logs and the test's file.
"""

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rposst_opt.efficient_test import EfficientTest
from rposst_opt.errors import ProblemError
from rposst_opt.files import inspect_logs, lm_eval_logs
from rposst_opt.files.harness_runs import a_few
from rposst_opt.files.records import TEST_FORMAT, as_json, read_record, read_test

SUBSET_FORMAT = "rposst-subset/1"
GLOB = re.compile(r"[*?\[]")  # what Inspect takes for a pattern


@dataclass(frozen=True)
class Subset:
    """The cases of a test, for a harness.

    Attributes
    ----------
    test : EfficientTest
        The names and the weights.
    positions : sequence of int, optional
        Where the cases are among all, counted from 0; None where that is not known.
    task : str, optional
        The task that all cases belong to, if their names do not say it.
    """

    test: EfficientTest
    positions: Sequence[int] | None
    task: str | None = None


def read_subset(path: Path, task: str | None = None) -> Subset:
    """Read the cases of a test that `rposst solve --out` wrote."""
    test, record = read_test(path), read_record(path, TEST_FORMAT, "test")
    return Subset(test, None if record.get("positions") is None else test.cases, task)


def subset_for(harness: str, subset: Subset) -> str:
    """The chosen cases, as text for a file that the harness takes; `WRITERS` has the names.

    Examples
    --------
    >>> test = EfficientTest(cases=[1, 8], weights=[0.25, 0.75], case_names=["arc/8", "arc/1"], n_cases=9)
    >>> print(subset_for("lm-eval", Subset(test, test.cases)), end="")
    {"arc": [1, 8]}
    >>> print(subset_for("csv", Subset(test, test.cases)), end="")
    test_case,position,weight
    arc/8,1,0.25
    arc/1,8,0.75
    """
    if harness not in WRITERS:
        raise ProblemError(f"no harness is called {harness!r}; known are {', '.join(WRITERS)}.")
    if subset.task is not None and harness not in WITH_TASKS:
        raise ProblemError(
            f"--task goes with --for {' or '.join(WITH_TASKS)}: what --for {harness} writes has no tasks."
        )
    return WRITERS[harness](subset)


def how_to_score(harness: str, subset: Subset, test_file: Path, subset_file: Path | None) -> list[str]:
    """What to do with the file that was written, in sentences."""
    test = subset.test
    if harness not in WITH_TASKS:
        extra = f" To every weighted sum, add the test's offset, {test.offset:g}." if test.has_offset else ""
        return [f"A policy's score is the sum of its results on these cases, each times its weight.{extra}"]
    written = "SUBSET" if subset_file is None else shlex.quote(str(subset_file))
    task = "" if subset.task is None else f" --task {shlex.quote(subset.task)}"
    if harness == "lm-eval":
        tasks = shlex.quote(",".join(_documents_by_task(subset)))
        run = f"lm_eval --model … --tasks {tasks} --samples {written} --log_samples --output_path LOGS"
        beware = " (0.4.9 or newer, without --limit; a task that --tasks names and the file does not would run in full)"
    else:
        run = f'inspect eval … --sample-id "$(cat {written})" --log-dir LOGS'
        beware = " (without --limit)"
    return [
        f"Run the cases: {run}{beware}",
        f"Then score: rposst score {shlex.quote(str(test_file))} LOGS --format {harness}{task}. The harness's own "
        "averages know nothing of the weights.",
    ]


def _as_json(subset: Subset) -> str:
    cases = [
        {"name": name, **({} if subset.positions is None else {"position": subset.positions[i]}), "weight": weight}
        for i, (name, weight) in enumerate(zip(subset.test.case_names, subset.test.weights.tolist(), strict=True))
    ]
    offset = {"offset": subset.test.offset} if subset.test.has_offset else {}
    return as_json({"format": SUBSET_FORMAT, "cases": cases, **offset}) + "\n"


def _as_csv(subset: Subset) -> str:
    table = pd.DataFrame({"test_case": subset.test.case_names, "weight": subset.test.weights})
    if subset.positions is not None:
        table.insert(1, "position", list(subset.positions))
    return table.to_csv(index=False, lineterminator="\n")


def _for_lm_eval(subset: Subset) -> str:
    return json.dumps(_documents_by_task(subset)) + "\n"


def _documents_by_task(subset: Subset) -> dict[str, list[int]]:
    """What ``--samples`` takes. Ascending: lm-eval runs documents in their own order and numbers them in this one."""
    names = subset.test.case_names
    if subset.task is not None:
        strangers = [name for name in names if re.fullmatch(r"\d+", name, re.ASCII) is None]
        if strangers:
            raise ProblemError(
                f"with --task, every test case must be called by its number in the task, and {_are(strangers)} not: "
                "leave --task out if the names have their tasks in them."
            )
        found = [(subset.task, int(name)) for name in names]
    else:
        pairs = {name: lm_eval_logs.document_of(name) for name in names}
        strangers = [name for name, pair in pairs.items() if pair is None]
        if strangers:
            raise ProblemError(
                f"lm-eval knows test cases as task/number, and {_are(strangers)} not called so: name the task of plain "
                "numbers with --task, or take --for json or csv."
            )
        found = [pair for pair in pairs.values() if pair is not None]
    if len(set(found)) < len(found):
        raise ProblemError("two test cases have the same number in the same task: lm-eval cannot tell them apart.")
    by_task: dict[str, list[int]] = {}
    for task, document in sorted(found):
        by_task.setdefault(task, []).append(document)
    return by_task


def _for_inspect(subset: Subset) -> str:
    """What ``--sample-id`` takes: ids with commas between them, in which no sign stands for others."""
    names = subset.test.case_names
    cases = names if subset.task is None else [inspect_logs.case_name(subset.task, name) for name in names]
    pairs = {case: inspect_logs.sample_of(case) for case in cases}
    strangers = [case for case, pair in pairs.items() if pair is None]
    if strangers:
        raise ProblemError(
            f"Inspect knows test cases as task:id, and {_are(strangers)} not called so: name the task with --task, or "
            "take --for json or csv."
        )
    unsaid = [case for case in cases if "," in case or not case.isprintable() or case != case.strip()]
    if unsaid:
        raise ProblemError(
            f"--sample-id cannot say every name, and {_are(unsaid)} one with commas, spaces at an end or signs that do "
            "not print: take --for json, and give the ids to Inspect's eval(sample_id=…) in Python."
        )
    selectors = [
        inspect_logs.case_name(task, GLOB.sub(lambda sign: f"[{sign[0]}]", sample_id))
        for task, sample_id in (pair for pair in pairs.values() if pair is not None)
    ]
    return ",".join(selectors) + "\n"


def _are(names: Sequence[str]) -> str:
    return f"{a_few(names)} {'is' if len(names) == 1 else 'are'}"


WRITERS: dict[str, Callable[[Subset], str]] = {
    "lm-eval": _for_lm_eval,
    "inspect": _for_inspect,
    "json": _as_json,
    "csv": _as_csv,
}
WITH_TASKS = ("lm-eval", "inspect")
