"""Subsets for evaluation harnesses, and their logs: what is written, what is read, and what is refused in one line."""

import json
import math
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zstandard
from commands import Run
from hypothesis import given
from hypothesis import strategies as st
from sample_files import complaint

import rposst_opt as ro
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.files import inspect_logs, lm_eval_logs
from rposst_opt.files.harnesses import Subset, subset_for
from rposst_opt.files.inspect_logs import read_inspect
from rposst_opt.files.lm_eval_logs import read_lm_eval

DATE = "2026-01-02T03-04-05.678901"
N_MUTATIONS = 300


def a_test(*names: str, weights: Sequence[float] | None = None, **more: Any) -> EfficientTest:
    equal = [1 / len(names)] * len(names)
    return EfficientTest(
        cases=range(len(names)), weights=weights or equal, case_names=names, n_cases=len(names), **more
    )


def subset(*names: str, task: str | None = None) -> Subset:
    return Subset(a_test(*names), None, task)


def write_test(path: Path, names: Sequence[str], positions: object, **more: Any) -> None:
    weights = [1 / len(names)] * len(names)
    record = {"format": "rposst-test/1", "cases": list(names), "positions": positions, "weights": weights}
    path.write_text(json.dumps(record | {"n_cases": 50} | more))


# What is written


def test_documents_are_ascending_for_lm_eval_whatever_their_order_in_the_test() -> None:
    text = subset_for("lm-eval", subset("b/10", "a/2", "b/9", "a/b/7"))
    assert json.loads(text) == {"a": [2], "a/b": [7], "b": [9, 10]}
    assert json.loads(subset_for("lm-eval", subset("10", "9", task="b"))) == {"b": [9, 10]}


def test_no_sign_stands_for_others_in_what_inspect_takes() -> None:
    from fnmatch import fnmatchcase

    names = ("t:a*", "t:b?", "t:[c]", "t:d]", "pkg/t:e:f", "t:1")
    selectors = subset_for("inspect", subset(*names)).rstrip("\n").split(",")
    assert selectors == ["t:a[*]", "t:b[?]", "t:[[]c]", "t:d]", "pkg/t:e:f", "t:1"]
    assert [[fnmatchcase(name, selector) for name in names] for selector in selectors] == np.eye(6, dtype=bool).tolist()
    assert subset_for("inspect", subset("a", "b:c", task="t")) == "t:a,t:b:c\n"


@pytest.mark.parametrize(
    ("harness", "cases", "parts"),
    [
        ("lm-eval", subset("a/1", "17", "go", "x/y", "a/-1"), ["task/number, and '17', 'a/-1', 'go' and 1 more are"]),
        ("lm-eval", subset("a/1", "2", task="a"), ["with --task", "'a/1' is not", "leave --task out"]),
        ("lm-eval", subset("07", "7", task="a"), ["the same number"]),
        ("inspect", subset("q1"), ["task:id", "'q1' is not", "--task"]),
        ("inspect", subset("t:"), ["task:id", "'t:' is not"]),
        ("inspect", subset("t:a,b", "t:c "), ["'t:a,b', 't:c ' are one with commas", "--for json"]),
        ("inspect", subset("t:two\nlines"), ["'t:two\\nlines' is one", "do not print"]),
        ("json", subset("a", task="t"), ["--task goes with --for lm-eval or inspect", "--for json"]),
        ("parrot", subset("a"), ["'parrot'", "lm-eval, inspect, json, csv"]),
    ],
)  # fmt: skip
def test_what_a_harness_cannot_be_told_is_named(harness: str, cases: Subset, parts: list[str]) -> None:
    message = complaint(lambda: subset_for(harness, cases))
    assert [part for part in parts if part not in message] == [], message


def test_names_positions_and_weights_are_in_json_and_csv(rposst: Run, tmp_path: Path) -> None:
    write_test(tmp_path / "test.json", ["b,1", "a"], [40, 7])
    outcome = rposst("write-subset", "test.json", "--for", "json")
    assert outcome.json == {
        "format": "rposst-subset/1",
        "cases": [{"name": "a", "position": 7, "weight": 0.5}, {"name": "b,1", "position": 40, "weight": 0.5}],
    }
    assert outcome.err.startswith("A policy's score is the sum of its results on these cases, each times its weight.")
    outcome = rposst("write-subset", "test.json", "--for", "csv", "--out", "subset.csv")
    assert (outcome.code, outcome.out) == (0, "")
    assert (tmp_path / "subset.csv").read_text() == 'test_case,position,weight\na,7,0.5\n"b,1",40,0.5\n'


def test_an_offset_is_not_forgotten(rposst: Run, tmp_path: Path) -> None:
    write_test(tmp_path / "test.json", ["a", "b"], [0, 1], offset=0.25)
    outcome = rposst("write-subset", "test.json", "--for", "json")
    assert outcome.json["offset"] == 0.25
    assert "add the test's offset, 0.25" in outcome.err
    assert "add the test's offset, 0.25" in rposst("write-subset", "test.json", "--for", "csv").err


def test_positions_that_a_file_does_not_have_are_left_out_and_wrong_ones_refused(rposst: Run, tmp_path: Path) -> None:
    write_test(tmp_path / "test.json", ["a", "b"], None)
    assert rposst("write-subset", "test.json", "--for", "csv").out == "test_case,weight\na,0.5\nb,0.5\n"
    assert rposst("write-subset", "test.json", "--for", "json").json["cases"][0] == {"name": "a", "weight": 0.5}
    wrong_ones: dict[str, list[object]] = {
        '"positions" must have a number per case': [[1]],
        "a test must not use a case twice": [[1, 1]],
        "the cases of a test must lie in 0..49": [[0, 50]],
        '"positions" must be a list of whole numbers from 0 on.': [[0, -1], [0, True], [0, 1.5], "01", {}],
    }
    for message, wrong in ((message, wrong) for message, several in wrong_ones.items() for wrong in several):
        write_test(tmp_path / "test.json", ["a", "b"], wrong)
        outcome = rposst("write-subset", "test.json", "--for", "csv")
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"rposst: test.json: {message}") and outcome.err.count("\n") == 1


def test_the_command_refuses_what_it_does_not_know_and_to_write_over_the_test(rposst: Run, tmp_path: Path) -> None:
    write_test(tmp_path / "test.json", ["a/1"], [0])
    before = (tmp_path / "test.json").read_bytes()
    for arguments, part in (
        (["--for", "parrot"], "parrot"),
        ([], "--for"),
        (["--for", "csv", "--out", "test.json"], "is read as input"),
        (["--for", "csv", "--out", "nowhere/x.csv"], "does not exist"),
    ):
        outcome = rposst("write-subset", "test.json", *arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert part in outcome.err and outcome.err.count("\n") == 1
    assert (tmp_path / "test.json").read_bytes() == before


def test_what_to_run_next_is_said_with_the_names_of_the_files(rposst: Run, tmp_path: Path) -> None:
    write_test(tmp_path / "my test.json", ["b/1", "a/2"], [0, 1])
    outcome = rposst("write-subset", "my test.json", "--for", "lm-eval")
    assert outcome.out == '{"a": [2], "b": [1]}\n'
    run, score = outcome.err.splitlines()
    assert "--tasks a,b --samples SUBSET --log_samples --output_path LOGS (0.4.9 or newer, without --limit;" in run
    assert score.startswith("Then score: rposst score 'my test.json' LOGS --format lm-eval. ")


# Names: the way there and back


@given(task=st.text(min_size=1), document=st.integers(min_value=0, max_value=10**12))
def test_every_document_is_found_by_the_name_of_its_case(task: str, document: int) -> None:
    assert lm_eval_logs.document_of(lm_eval_logs.case_name(task, document)) == (task, document)


@given(task=st.text(min_size=1).filter(lambda task: ":" not in task), sample=st.text(min_size=1))
def test_every_sample_is_found_by_the_name_of_its_case(task: str, sample: str) -> None:
    assert inspect_logs.sample_of(inspect_logs.case_name(task, sample)) == (task, sample)


# Logs of lm-eval, as it writes them


def document(number: int, *, filter: str = "none", **metrics: Any) -> dict[str, Any]:
    return {"doc_id": number, "filter": filter, "metrics": list(metrics), "doc_hash": f"hash {number}", **metrics}


def lm_eval_log(
    folder: Path, documents: Sequence[object], *, model: str = "m", task: str = "t", date: str = DATE, **results: Any
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_{date}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in documents))
    (folder / f"results_{date}.json").write_text(json.dumps({"model_name": model, **results}))
    return path


def rows(table: pd.DataFrame) -> list[tuple[str, str, float]]:
    assert list(table.columns) == ["case", "policy", "value"]
    return [(case, policy, value) for case, policy, value in table.itertuples(index=False)]


def test_runs_of_the_same_model_are_repetitions_and_a_copy_of_a_run_is_not(tmp_path: Path) -> None:
    lm_eval_log(tmp_path / "m", [document(0, acc=1), document(3, acc=True)])
    lm_eval_log(tmp_path / "m", [document(3, acc=0.0)], date="2026-01-03T00-00-00")
    lm_eval_log(tmp_path / "copy" / "m", [document(0, acc=1), document(3, acc=True)])
    lm_eval_log(tmp_path / "n", [document(0, acc=0.5)], model="org/n", task="t_with_lines")
    expected = [("t_with_lines/0", "org/n", 0.5), ("t/0", "m", 1.0), ("t/3", "m", 1.0), ("t/3", "m", 0.0)]
    assert sorted(rows(read_lm_eval(tmp_path))) == sorted(expected)
    assert sorted(rows(read_lm_eval([tmp_path / "m", tmp_path / "n"]))) == sorted(expected)
    assert rows(read_lm_eval(tmp_path, task="t_with_lines")) == [("0", "org/n", 0.5)]


def test_logs_are_tables_like_any_other_for_the_command_line_and_for_python(rposst: Run, tmp_path: Path) -> None:
    for model, answers in {"m": (1, 0, 1), "n": (0, 1, 1)}.items():
        lm_eval_log(tmp_path / model, [document(i, acc=each, f1=0) for i, each in enumerate(answers)], model=model)
    read = ro.read_results(tmp_path, format="lm-eval", metric="acc", task="t")
    assert read.results.loc[["0", "1", "2"], ["m", "n"]].to_numpy().tolist() == [[1, 0], [0, 1], [1, 1]]
    assert read.notes[0].endswith("with values 'value', as its logs are")
    solved = rposst("solve", str(tmp_path), "--format", "lm-eval", "--metric", "acc", "--size", "2", "--json")
    assert json.loads(solved.out)["cases"] == ["t/0", "t/1"]
    several = rposst("solve", str(tmp_path), "--format", "lm-eval", "--size", "2")
    assert several.code == 2 and "'acc'" in several.err and "'f1'" in several.err
    assert "--scorer goes with --format inspect." in complaint(
        lambda: ro.read_results(tmp_path, format="lm-eval", scorer="match")
    )
    assert "--task goes with --format lm-eval or inspect." in complaint(lambda: ro.read_results(tmp_path, task="t"))


def test_a_cell_without_a_number_is_missing_once_and_only_if_no_repetition_has_one(tmp_path: Path) -> None:
    lm_eval_log(tmp_path, [document(0, acc=None), document(1, acc=math.nan)])
    lm_eval_log(tmp_path, [document(0, acc=1.0), document(1, acc=None)], date="2026-01-03T00-00-00")
    table = read_lm_eval(tmp_path)
    assert table["case"].tolist() == ["t/1", "t/0"]
    assert math.isnan(table["value"][0]) and table["value"][1] == 1.0


def test_a_metric_that_is_no_single_number_is_not_offered(tmp_path: Path) -> None:
    lm_eval_log(tmp_path, [document(0, acc=1.0, bleu=["a", "b"]), document(1, acc=0.0, bleu=["a", "b"])])
    assert read_lm_eval(tmp_path)["value"].tolist() == [1.0, 0.0]
    assert complaint(lambda: read_lm_eval(tmp_path, metric="bleu")) == "task 't' has no metric 'bleu'; it has 'acc'."
    lm_eval_log(tmp_path, [document(0, bleu=["a", "b"])])
    assert "no metric is a single number for every document" in complaint(lambda: read_lm_eval(tmp_path))


def test_the_only_filter_of_a_task_is_read_unless_another_is_wanted(tmp_path: Path) -> None:
    lm_eval_log(tmp_path, [document(0, filter="strict", acc=1.0)])
    assert read_lm_eval(tmp_path)["value"].tolist() == [1.0]
    assert (
        complaint(lambda: read_lm_eval(tmp_path, filter="loose")) == "task 't' has no filter 'loose'; it has 'strict'."
    )
    lm_eval_log(tmp_path, [document(0, acc=0.0)])
    assert read_lm_eval(tmp_path, filter="loose")["value"].tolist() == [0.0]  # it filters nothing


@pytest.mark.parametrize(
    ("first", "second", "part"),
    [
        ({"model_args": "pretrained=m,revision=1"}, {"model_args": "pretrained=m,revision=2"}, "`model_args`"),
        ({"gen_kwargs": {"temperature": 0}}, {"gen_kwargs": {"temperature": 1}}, "`gen_kwargs`"),
    ],
)
def test_other_settings_make_no_repetition(tmp_path: Path, first: object, second: object, part: str) -> None:
    lm_eval_log(tmp_path, [document(0, acc=1.0)], config=first)
    lm_eval_log(tmp_path, [document(0, acc=1.0)], config=second, date="2026-01-03T00-00-00")
    message = complaint(lambda: read_lm_eval(tmp_path))
    assert "'m' was run on task 't' with another " + part in message and "read such logs apart" in message


def test_arguments_that_do_not_change_answers_make_a_repetition_however_they_are_logged(tmp_path: Path) -> None:
    lm_eval_log(tmp_path, [document(0, acc=1.0)], config={"model_args": "pretrained=m,device=cpu"})
    later = {"model_args": {"pretrained": "m", "batch_size": 8}}
    lm_eval_log(tmp_path, [document(0, acc=0.0)], config=later, date="2026-01-03T00-00-00")
    assert read_lm_eval(tmp_path)["value"].tolist() == [1.0, 0.0]


def test_one_number_for_different_documents_is_told(tmp_path: Path) -> None:
    lm_eval_log(tmp_path / "m", [document(5, acc=1.0)])
    lm_eval_log(tmp_path / "n", [{**document(5, acc=1.0), "doc_hash": "another"}], model="n")
    message = complaint(lambda: read_lm_eval(tmp_path))
    assert "document 5 of task 't' is another one than in" in message and "doc_hash" in message


def broken(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_broken_logs_of_lm_eval_get_one_line_that_says_where(tmp_path: Path) -> None:
    path = lm_eval_log(tmp_path, [document(0, acc=1.0), document(1, acc=1.0)])
    results = path.with_name(f"results_{DATE}.json")
    whole, told = path.read_text(), results.read_text()
    for text, part in (
        (whole[:-20], "line 2: this is not JSON"),
        (whole + "[]\n", "line 3: a line of lm-eval's log must be an object"),
        ("", "no documents"),
        *((json.dumps({**document(0, acc=1.0), "doc_id": bad}), 'line 1: "doc_id"') for bad in (None, True, -1, "0")),
        (json.dumps({"doc_id": 0, "acc": 1.0}), 'line 1: "filter" must be a name: this takes lm-eval 0.4.7'),
        (json.dumps({"doc_id": 0, "filter": "none", "acc": 1.0}), 'line 1: "metrics" must name values'),
        (json.dumps({"doc_id": 0, "filter": "none", "metrics": ["f1"]}), 'line 1: "metrics" must name values'),
        ("[" * 100_000, "line 1: this is not JSON"),
        ('{"doc_id": ' + "9" * 5000 + "}", "line 1: this is not JSON"),
    ):
        message = complaint(partial(read_lm_eval, broken(path, text).parent))
        assert message.startswith(str(path)) and part in message, message
    path.write_text(whole)
    for text, part in (
        ("{", "this is not JSON"),
        ("[]", '"model_name" must be there'),
        ('{"model_name": 3}', '"model_name" must be there'),
    ):
        message = complaint(partial(read_lm_eval, broken(results, text).parent))
        assert message.startswith(str(results)) and part in message, message
    results.unlink()
    assert f"no files beside it end in _{DATE}.json" in complaint(lambda: read_lm_eval(path))
    results.write_text(told)
    assert "a log of lm-eval is called samples_TASK_DATE.jsonl" in complaint(lambda: read_lm_eval(results))
    assert "there is no such file" in complaint(lambda: read_lm_eval(path.with_name(f"samples_gone_{DATE}.jsonl")))
    assert "the logs have no task 'u'; they have 't'." in complaint(lambda: read_lm_eval(tmp_path, task="u"))


def test_a_folder_without_logs_says_how_to_make_them(tmp_path: Path) -> None:
    assert complaint(lambda: read_lm_eval(tmp_path)) == (
        f"{tmp_path}: there is no samples_*.jsonl here: run lm_eval with --log_samples and --output_path."
    )
    assert complaint(lambda: read_inspect(tmp_path)) == (
        f"{tmp_path}: there is no log of Inspect here: a file that ends in .eval, or DATE_TASK_ID.json."
    )
    assert complaint(lambda: read_inspect([])).startswith("no log is named")


# Logs of Inspect, as it writes them


def sample(sample_id: object, value: object, *, epoch: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": sample_id, "epoch": epoch, "scores": {"s": {"value": value}}, **more}


def header(task: str = "t", model: str = "org/m", **more: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"task": task, "model": model, **more}}


def write_json(path: Path, head: object, samples: object) -> None:
    path.write_text(json.dumps({**head, "samples": samples} if isinstance(head, dict) else head))


def write_deflated(path: Path, head: object, samples: object) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(head))
        archive.writestr("summaries.json", json.dumps(samples))


def write_zstandard(path: Path, head: object, samples: object) -> None:
    """As newer versions do, each member in two frames, which Python below 3.14 cannot write."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (
            ("header.json", json.dumps(head).encode()),
            ("summaries.json", json.dumps(samples).encode()),
        ):
            frames = [zstandard.ZstdCompressor().compress(part) for part in (content[:5], content[5:])]
            archive.writestr(name, b"".join(frames))
            info = archive.getinfo(name)
            info.compress_type, info.file_size, info.CRC = 93, len(content), zlib.crc32(content)


WRITERS: dict[str, Callable[[Path, object, object], None]] = {
    "2026-01-01T00-00-00_t_a.json": write_json,
    "deflated.eval": write_deflated,
    "zstandard.eval": write_zstandard,
}
FORMATS = pytest.mark.parametrize("name", WRITERS)


@FORMATS
def test_epochs_are_repetitions_and_grades_are_numbers(name: str, tmp_path: Path) -> None:
    values = ["C", "I", "P", "N", 0.25, True, "yes", "No", "3.5", 7]
    samples = [sample(number, value) for number, value in enumerate(values)]
    samples += [sample(0, "I", epoch=2), {"id": "x", "epoch": 1, "scores": {}, "error": "it failed"}]
    WRITERS[name](tmp_path / name, header(), samples)
    table = read_inspect(tmp_path)
    assert table["value"].tolist()[:-1] == [1.0, 0.0, 0.5, 0.0, 0.25, 1.0, 1.0, 0.0, 3.5, 7.0, 0.0]
    assert table["case"].tolist() == [*(f"t:{number}" for number in range(len(values))), "t:0", "t:x"]
    assert math.isnan(table["value"].iloc[-1]) and set(table["policy"]) == {"org/m"}
    assert read_inspect(tmp_path / name, task="t")["case"].tolist()[-2:] == ["0", "x"]


def test_the_same_epoch_in_several_logs_counts_once(tmp_path: Path) -> None:
    write_deflated(tmp_path / "1.eval", header(), [sample(0, "I", uuid="a"), {"id": 1, "scores": {}, "uuid": "b"}])
    write_deflated(tmp_path / "2.eval", header(), [sample(0, "C", uuid="a"), sample(1, "C", uuid="c"), sample(1, "I")])
    assert rows(read_inspect(tmp_path)) == [("t:0", "org/m", 1.0), ("t:1", "org/m", 1.0), ("t:1", "org/m", 0.0)]


def test_a_value_among_several_of_a_scorer_is_named_by_both(tmp_path: Path) -> None:
    write_deflated(tmp_path / "1.eval", header(), [sample(0, {"a": 1, "b": "C"}), sample(1, {"a": 2, "b": "I"})])
    assert "'s/a', 's/b' in task 't'" in complaint(lambda: read_inspect(tmp_path))
    assert read_inspect(tmp_path, scorer="s/b")["value"].tolist() == [1.0, 0.0]
    assert "task 't' has no scorer 's'; it has 's/a', 's/b'." in complaint(lambda: read_inspect(tmp_path, scorer="s"))


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ({"task_args": {"subject": "law"}}, "task 't' has another `task_args` ({'subject': 'law'})"),
        ({"task_version": 2}, "task 't' has another `task_version`"),
        ({"model_args": {"x": 1}}, "'org/m' was run on task 't' with another `model_args`"),
        ({"model_generate_config": {"temperature": 1.0}}, "with another `model_generate_config`"),
        ({"solver": "cot"}, "with another `solver`"),
    ],
)
def test_logs_that_must_not_be_mixed_are_told(setting: dict[str, Any], part: str, tmp_path: Path) -> None:
    write_deflated(tmp_path / "1.eval", header(), [sample(0, "C")])
    write_deflated(tmp_path / "2.eval", header(**setting), [sample(0, "C")])
    assert part in complaint(lambda: read_inspect(tmp_path))


def test_another_seed_makes_a_repetition(tmp_path: Path) -> None:
    write_deflated(tmp_path / "1.eval", header(model_generate_config={"seed": 1}), [sample(0, "C")])
    write_deflated(tmp_path / "2.eval", header(model_generate_config={"seed": 2}), [sample(0, "I")])
    assert read_inspect(tmp_path)["value"].tolist() == [1.0, 0.0]


@FORMATS
@pytest.mark.parametrize(
    ("head", "samples", "part"),
    [
        ([], [sample(0, "C")], 'it has no "eval"'),
        ({"eval": {"task": "t"}}, [sample(0, "C")], '"model" of "eval" must be a name'),
        (header(), [], "this log has no samples"),
        (header(), {}, "this log has no samples"),
        (header(), [[]], "sample 0 must be an object"),
        (header(), [sample(None, "C")], 'sample 0: "id" must be a name or a whole number'),
        (header(), [{"id": 0, "scores": []}], 'sample 0: "scores" must be an object'),
        (header(), [{"id": 0, "scores": {"s": {}}}], "sample 0: the score 's' must have a \"value\""),
        (header(), [{"id": 0}], "no sample of task 't' was scored"),
        (header(), [sample(0, "maybe")], "sample '0': 's' is neither a number nor a grade"),
        (header(), [sample(0, [1, 2])], "sample '0': 's' is neither a number nor a grade"),
        (header(), [sample(0, 10**400)], "sample '0': 's' is neither a number nor a grade"),
    ],
)
def test_broken_logs_of_inspect_get_one_line(
    name: str, head: object, samples: object, part: str, tmp_path: Path
) -> None:
    WRITERS[name](tmp_path / name, head, samples)
    assert part in complaint(lambda: read_inspect(tmp_path))


def test_archives_that_are_not_whole_get_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"no archive")
    assert "this is not a whole .eval file" in complaint(lambda: read_inspect(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    assert "header.json and summaries.json must be in it: the run has not ended" in complaint(
        lambda: read_inspect(path)
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{")
        archive.writestr("summaries.json", "[]")
    assert "header.json: this is not JSON" in complaint(lambda: read_inspect(path))
    write_zstandard(path, header(), [sample(0, "C")])
    content = bytearray(path.read_bytes())
    content[content.index(b"summaries.json") + 30] ^= 255
    path.write_bytes(content)
    assert "this is not a whole .eval file (summaries.json" in complaint(lambda: read_inspect(path))
    write_zstandard(path, header(), [sample(0, "C")])
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\x01\x02") + 16] ^= 1  # the checksum of what is to come out of the last member
    path.write_bytes(content)
    assert "(summaries.json is damaged)" in complaint(lambda: read_inspect(path))
    assert "there is no such file" in complaint(lambda: read_inspect(tmp_path / "gone.eval"))


def test_without_zstandard_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    write_deflated(tmp_path / "old.eval", header(), [sample(0, "C")])
    assert len(read_inspect(tmp_path)) == 1
    write_zstandard(tmp_path / "new.eval", header(), [sample(0, "C")])
    with pytest.raises(ro.BackendUnavailable) as caught:
        read_inspect(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'new.eval'}: this log, which is compressed with Zstandard, needs zstandard, which is not "
        "installed: pip install 'rposst-opt[inspect]'"
    )


@pytest.mark.slow
def test_whatever_bytes_are_changed_there_is_a_table_or_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(17)
    samples = [sample(number, "C", uuid=str(number)) for number in range(3)]
    for name, write in WRITERS.items():
        write(tmp_path / name, header(), samples)
    lm_eval_path = lm_eval_log(tmp_path, [document(number, acc=1.0) for number in range(3)])
    outcomes = {"table": 0, "line": 0}
    for path in [*(tmp_path / name for name in WRITERS), lm_eval_path]:
        read = read_lm_eval if path is lm_eval_path else read_inspect
        whole = path.read_bytes()
        for _ in range(N_MUTATIONS):
            content = bytearray(whole)
            for place in rng.integers(len(content), size=rng.integers(1, 4)):
                content[place] = rng.integers(256)
            path.write_bytes(content[: rng.integers(len(content)) if rng.random() < 0.2 else len(content)])
            try:
                read(path)
                outcomes["table"] += 1
            except ro.ProblemError as error:
                assert len(str(error).splitlines()) == 1
                outcomes["line"] += 1
        path.write_bytes(whole)
    assert min(outcomes.values()) > N_MUTATIONS // 10
