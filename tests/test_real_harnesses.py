"""The real lm-eval and Inspect run what `write-subset` writes, and what they log is read and scored.

They are not looked for first: where one is not installed these tests fail.
"""

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run
from harness_process import QUESTION, HarnessProcess, knows
from sample_files import complaint

from rposst_opt.efficient_test import EfficientTest
from rposst_opt.files.inspect_logs import read_inspect
from rposst_opt.files.lm_eval_logs import read_lm_eval
from rposst_opt.files.records import read_test
from rposst_opt.files.writing import write_table

N_DOCUMENTS = 12
N_SAMPLES = 8
SEEN, NEW = ("org/a", "b", "c", "d"), "new"
CHOICE_TASK = {"output_type": "multiple_choice", "doc_to_choice": ["yes", "no"], "doc_to_target": 0}
WORDS_TASK = {
    "output_type": "generate_until",
    "doc_to_target": "yes",
    "generation_kwargs": {"until": ["\n"]},
    "filter_list": [
        {"name": "strict", "filter": [{"function": "take_first"}]},
        {"name": "loose", "filter": [{"function": "lowercase"}, {"function": "take_first"}]},
    ],
}


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """Test cases × policies, repetitions averaged, in the order of the logs."""
    rows, columns = table["case"].unique(), table["policy"].unique()
    return table.groupby(["case", "policy"])["value"].mean().unstack().loc[rows, columns]


def check_score(test: EfficientTest, logged: pd.DataFrame, full: dict[str, float]) -> None:
    """The test's score of the new model is its weights times what a run of everything would have found."""
    expected = sum(weight * full[name] for name, weight in zip(test.case_names, test.weights.tolist(), strict=True))
    assert set(logged.index) == set(test.case_names)
    assert np.asarray(test.score(logged)) == pytest.approx([expected], abs=1e-12)


def check_command(rposst: Run, test: EfficientTest, logs: Path, *reading: str, full: dict[str, float]) -> None:
    """`rposst score` says the same of the logs."""
    scored = rposst("score", "test.json", str(logs), *reading, "--json")
    assert scored.code == 0, scored.err
    expected = sum(weight * full[name] for name, weight in zip(test.case_names, test.weights.tolist(), strict=True))
    assert [row["score"] for row in json.loads(scored.out)["scores"]] == pytest.approx([expected], abs=1e-12)


# lm-eval


@pytest.fixture(scope="module")
def lm_eval(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarnessProcess]:
    folder = tmp_path_factory.mktemp("lm-eval")
    documents = [{"number": number, "question": f"{QUESTION} {number}"} for number in range(N_DOCUMENTS)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    (folder / "tasks").mkdir()
    metrics = {"choice_task": ["acc", "acc_norm"], "words_task": ["exact_match"]}
    for name, task in (("choice_task", CHOICE_TASK), ("words_task", WORDS_TASK)):
        shared = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(folder / "documents.jsonl")}},
            "test_split": "test",
            "doc_to_text": "{{question}}",
            "metric_list": [{"metric": metric} for metric in metrics[name]],
        }
        (folder / "tasks" / f"{name}.yaml").write_text(json.dumps({**shared, **task}))  # JSON is YAML
    process = HarnessProcess("lm-eval", folder)
    for model in SEEN:
        run_lm_eval(process, model, "full")
    yield process
    process.close()


def run_lm_eval(process: HarnessProcess, model: str, output: str, *more: str) -> None:
    arguments = ["run", "--model", "knowing", "--model_args", f"pretrained={model}", "--include_path", "tasks"]
    tasks = [] if "--tasks" in more else ["--tasks", "choice_task,words_task"]
    process.run(*arguments, *tasks, "--output_path", output, "--log_samples", *more)


def logged_documents(folder: Path) -> list[tuple[str, int, int]]:
    """From lm-eval's logs: the task, the number that it gives the document, and the one within the document."""
    found = []
    for path in folder.rglob("samples_*.jsonl"):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            found.append(
                (path.name.rsplit("_", 1)[0].removeprefix("samples_"), record["doc_id"], record["doc"]["number"])
            )
    return found


def test_logs_of_lm_eval_have_the_averages_that_it_reports_itself(lm_eval: HarnessProcess) -> None:
    folder = lm_eval.errors.parent / "full"
    table = wide(read_lm_eval(folder, metric="acc,exact_match", filter="loose"))
    assert set(table.columns) == set(SEEN)
    assert len(table) == 2 * N_DOCUMENTS
    for path in folder.rglob("results_*.json"):
        report = json.loads(path.read_text())
        for task, metric in (("choice_task", "acc,none"), ("words_task", "exact_match,loose")):
            mine = table.loc[[name for name in table.index if name.startswith(f"{task}/")], report["model_name"]]
            assert len(mine) == N_DOCUMENTS
            assert mine.mean() == pytest.approx(report["results"][task][metric], abs=1e-12)
            expected = [float(knows(report["model_name"], number)) for number in range(N_DOCUMENTS)]
            assert mine.tolist() == expected


def test_several_metrics_and_filters_of_lm_eval_are_listed(lm_eval: HarnessProcess) -> None:
    folder = lm_eval.errors.parent / "full"
    assert complaint(lambda: read_lm_eval(folder)) == (
        "the logs have more than one filter: 'loose', 'strict' in task 'words_task': say by `filter` which is read, or "
        "several in order of preference with commas between them."
    )
    message = complaint(lambda: read_lm_eval(folder, filter="strict"))
    assert (
        "more than one metric: 'acc', 'acc_norm' in task 'choice_task'; 'exact_match' in task 'words_task'" in message
    )
    strict = read_lm_eval(folder, metric="exact_match", filter="strict", task="words_task")
    assert strict["value"].unique().tolist() == [0.0]  # the model shouts, and only the loose filter forgives that
    assert sorted(strict["case"].unique(), key=int) == [str(number) for number in range(N_DOCUMENTS)]


def test_lm_eval_runs_the_chosen_documents_and_the_score_is_that_of_the_test(
    lm_eval: HarnessProcess, rposst: Run, tmp_path: Path
) -> None:
    folder, reading = lm_eval.errors.parent, ("--format", "lm-eval", "--metric", "acc,exact_match", "--filter", "loose")
    solved = rposst("solve", str(folder / "full"), *reading, "--size", "3", "--out", "test.json")
    assert solved.code == 0, solved.err
    assert f"read a long table of {2 * N_DOCUMENTS} test cases ('case') × {len(SEEN)} policies" in solved.err
    test = read_test(tmp_path / "test.json")
    written = rposst("write-subset", "test.json", "--for", "lm-eval", "--out", "subset.json")
    assert (written.code, written.out) == (0, "")
    subset = json.loads((tmp_path / "subset.json").read_text())
    assert f"--tasks {','.join(subset)} --samples subset.json" in written.err
    assert "rposst score test.json LOGS --format lm-eval" in written.err

    run_lm_eval(lm_eval, NEW, "subset", "--tasks", ",".join(subset), "--samples", str(tmp_path / "subset.json"))
    ran = logged_documents(folder / "subset")
    assert {(task, number) for task, number, _ in ran} == {(task, number) for task in subset for number in subset[task]}
    assert [number for _, number, _ in ran] == [within for _, _, within in ran]
    logged = wide(read_lm_eval(folder / "subset", metric="acc,exact_match", filter="loose"))
    full = {f"{task}/{i}": float(knows(NEW, i)) for task in ("choice_task", "words_task") for i in range(N_DOCUMENTS)}
    check_score(test, logged, full)
    check_command(rposst, test, folder / "subset", *reading, full=full)


def test_plain_numbers_make_the_way_to_lm_eval_and_back_with_the_name_of_their_task(
    lm_eval: HarnessProcess, rposst: Run, tmp_path: Path
) -> None:
    record = {"format": "rposst-test/1", "cases": ["11", "2", "7"], "positions": [11, 2, 7], "n_cases": 12}
    (tmp_path / "test.json").write_text(json.dumps(record | {"weights": [0.5, 0.25, 0.25]}))
    written = rposst("write-subset", "test.json", "--for", "lm-eval", "--task", "choice_task", "--out", "subset.json")
    assert "--format lm-eval --task choice_task." in written.err
    run_lm_eval(lm_eval, NEW, "plain", "--tasks", "choice_task", "--samples", str(tmp_path / "subset.json"))
    logs, full = lm_eval.errors.parent / "plain", {str(i): float(knows(NEW, i)) for i in range(N_DOCUMENTS)}
    logged = read_lm_eval(logs, metric="acc", task="choice_task")
    test = read_test(tmp_path / "test.json")
    check_score(test, wide(logged), full)
    reading = ("--format", "lm-eval", "--metric", "acc", "--task", "choice_task")
    check_command(rposst, test, logs, *reading, full=full)


# Why the numbers of a subset are written in ascending order. If lm-eval has mended this, the order is free.
def test_lm_eval_numbers_documents_wrongly_if_they_are_not_in_order(lm_eval: HarnessProcess) -> None:
    run_lm_eval(lm_eval, NEW, "unordered", "--tasks", "choice_task", "--samples", '{"choice_task": [7, 2]}')
    ran = logged_documents(lm_eval.errors.parent / "unordered")
    assert sorted(ran) == [("choice_task", 2, 7), ("choice_task", 7, 2)]


# Inspect


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarnessProcess]:
    folder = tmp_path_factory.mktemp("inspect")
    shutil.copy(Path(__file__).with_name("inspect_tasks.py"), folder)
    process = HarnessProcess("inspect", folder)
    run_inspect(process, ",".join(f"knowing/{model}" for model in SEEN), "full", "--epochs", "2")
    run_inspect(process, "knowing/failing", "failed", "--no-fail-on-error")
    yield process
    process.close()


def run_inspect(process: HarnessProcess, models: str, output: str, *more: str) -> None:
    process.run("eval", "inspect_tasks.py", "--model", models, "--log-dir", output, "--display", "none", *more)


def reports(folder: Path) -> Iterator[dict[str, Any]]:
    """The logs as Inspect's own reader has them."""
    for path in folder.glob("*.json"):
        yield json.loads(path.read_text())


def test_logs_of_inspect_have_the_averages_that_it_reports_itself(inspect: HarnessProcess, tmp_path: Path) -> None:
    folder = inspect.errors.parent
    inspect.run("log", "convert", str(folder / "full"), "--to", "json", "--output-dir", str(tmp_path / "converted"))
    matched, sized = (read_inspect(folder / "full", scorer=scorer) for scorer in ("match", "points/size"))
    assert len(matched) == 2 * len(SEEN) * N_SAMPLES
    assert sized["value"].std() > 0 and sized.groupby(["case", "policy"])["value"].nunique().eq(2).all()
    seen = []
    for report in reports(tmp_path / "converted"):
        model = report["eval"]["model"]
        averages = {score["name"]: next(iter(score["metrics"].values())) for score in report["results"]["scores"]}
        assert wide(matched)[model].mean() == pytest.approx(averages["match"]["value"], abs=1e-12)
        assert wide(sized)[model].mean() == pytest.approx(averages["size"]["value"], abs=1e-12)
        expected = [float(knows(model.removeprefix("knowing/"), number)) for number in range(N_SAMPLES)]
        assert wide(matched)[model].tolist() == expected
        seen.append(model)
    assert sorted(seen) == sorted(f"knowing/{model}" for model in SEEN)
    both = [folder / "full", tmp_path / "converted"]
    assert len(read_inspect(both, scorer="match")) == len(matched)  # a log and its copy are one
    copied = wide(read_inspect(tmp_path / "converted", scorer="match"))
    pd.testing.assert_frame_equal(copied, wide(matched), check_like=True)


def test_several_scorers_of_inspect_are_listed(inspect: HarnessProcess) -> None:
    assert complaint(lambda: read_inspect(inspect.errors.parent / "full")) == (
        "the logs have more than one scorer: 'match', 'points/short', 'points/size' in task 'knowing': say by `scorer` "
        "which is read, or several in order of preference with commas between them."
    )


def test_a_sample_that_failed_is_a_missing_cell(inspect: HarnessProcess) -> None:
    table = read_inspect(inspect.errors.parent / "failed", scorer="match", task="knowing")
    assert table.loc[table["value"].isna(), ["case", "policy"]].to_numpy().tolist() == [["3", "knowing/failing"]]
    assert len(table) == N_SAMPLES


def test_the_logs_that_are_read_are_compressed_with_zstandard(inspect: HarnessProcess) -> None:
    [path] = (inspect.errors.parent / "failed").glob("*.eval")
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("summaries.json").compress_type == 93


def test_inspect_runs_the_chosen_samples_and_the_score_is_that_of_the_test(
    inspect: HarnessProcess, rposst: Run, tmp_path: Path
) -> None:
    folder = inspect.errors.parent
    write_table(tmp_path / "results.csv", wide(read_inspect(folder / "full", scorer="match")))
    required = [part for name in ("knowing:odd*", "knowing:user:7") for part in ("--require", name)]
    assert rposst("solve", "results.csv", "--size", "2", *required, "--out", "test.json").code == 0
    test = read_test(tmp_path / "test.json")
    written = rposst("write-subset", "test.json", "--for", "inspect")
    assert written.code == 0
    assert "rposst score test.json LOGS --format inspect" in written.err

    run_inspect(inspect, f"knowing/{NEW}", "subset", "--sample-id", written.out.rstrip("\n"))
    logged = read_inspect(folder / "subset", scorer="match")
    assert len(logged) == len(test.cases) == 4
    names = wide(read_inspect(folder / "full", scorer="match")).index
    full = {name: float(knows(NEW, number)) for number, name in enumerate(names)}
    check_score(test, wide(logged), full)
    check_command(rposst, test, folder / "subset", "--format", "inspect", "--scorer", "match", full=full)
