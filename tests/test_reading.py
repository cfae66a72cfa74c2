"""Any table in: its form and orientation are found out and said, or an error shows the readings; nothing is guessed."""

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import zstandard
from sample_files import complaint

import rposst_opt as ro
from rposst_opt.files import formats
from rposst_opt.files.formats import results_log

CASES, POLICIES = ["pong", "hard, one", "tennis", "skiing"], ["dqn", "ppo", "a2c"]
NUMBERS = np.random.default_rng(7).normal(size=(4, 3)).round(3)
EXPECTED = pd.DataFrame(NUMBERS, index=CASES, columns=POLICIES)


def read(text: str, folder: Path, name: str = "results.csv", **options: Any) -> ro.ResultTable:
    path = folder / name
    path.write_text(text)
    return ro.read_results(path, **options)


def refusal(text: str, folder: Path, **options: Any) -> str:
    return complaint(lambda: read(text, folder, **options))


def same(table: ro.ResultTable, expected: pd.DataFrame = EXPECTED) -> bool:
    """Whether the same results have the same names, in any order."""
    found = table.results.loc[list(expected.index), list(expected.columns)]
    return table.results.shape == expected.shape and bool((found.to_numpy() == expected.to_numpy()).all())


class TestSilentMisreadingsOfOld:
    def test_policies_as_rows_are_read_as_such_where_the_header_says_so(self, tmp_path: Path) -> None:
        table = read("model,pong,tennis,skiing\ndqn,1,2,3\nppo,4,5,6\n", tmp_path)
        assert list(table.results.index) == ["pong", "tennis", "skiing"]
        assert table.results.to_numpy()[0].tolist() == [1.0, 4.0]
        assert table.notes == ("read 3 test cases (columns) × 2 policies (rows); --cases-are rows if that is wrong",)

    def test_policies_as_rows_are_read_as_such_where_columns_are_items(self, tmp_path: Path) -> None:
        table = read(",item-0,item-1,item-2\ndqn,1,2,3\nppo,4,5,6\n", tmp_path)
        assert list(table.results.columns) == ["dqn", "ppo"]

    def test_where_names_do_not_tell_the_line_says_so(self, tmp_path: Path) -> None:
        table = read(",pong,tennis\ndqn,1,2\nppo,4,5\n", tmp_path)
        assert table.notes == (
            "read 2 test cases (rows) × 2 policies (columns), as nothing in the names tells otherwise; "
            "--cases-are columns if that is wrong",
        )
        turned = read(",pong,tennis\ndqn,1,2\nppo,4,5\n", tmp_path, cases_are="columns")
        assert list(turned.results.index) == ["pong", "tennis"]

    @pytest.mark.parametrize("first", ["0.5,0.25,0.125", "1,0,1", "3,7,5", "0.5,-,0.1"])
    def test_a_first_policy_is_not_taken_for_names(self, tmp_path: Path, first: str) -> None:
        rows = [f"{cell},2,3" for cell in first.split(",")]
        text = "\n".join(["dqn,ppo,a2c", *rows]) + "\n"
        message = refusal(text, tmp_path)
        assert "'dqn'" in message and "--names" in message and "--no-names" in message

    def test_a_matrix_without_names_is_read_where_that_is_said(self, tmp_path: Path) -> None:
        table = read("dqn,ppo\n0.5,2\n0.25,3\n", tmp_path, names=False)
        assert table.results.to_dict("list") == {"dqn": [0.5, 0.25], "ppo": [2.0, 3.0]}
        assert list(table.results.index) == ["0", "1"]
        assert "numbered the rows from 0 to 1" in table.notes[0]

    @pytest.mark.parametrize("heading", ["model", "task"])
    def test_a_policy_called_model_is_not_taken_for_names_either(self, tmp_path: Path, heading: str) -> None:
        assert "--no-names" in refusal(f"{heading},baseline\n0.3,0.4\n0.5,0.6\n", tmp_path)

    def test_rows_that_are_counted_have_names_and_that_is_said(self, tmp_path: Path) -> None:
        rows = "".join(f"{row},{row % 3},1\n" for row in range(6))
        table = read(f"x,p,q\n{rows}", tmp_path)
        assert table.results.shape == (6, 2)
        assert table.notes[0] == "took the numbers of the first column, 0 to 5, for names of rows"

    @pytest.mark.parametrize("text", ["x,1,2\ny,3,4\n", "0.1,0.2\n0.3,0.4\n", "0,1,2\n3,4,5\n", "x,0.5\ny,0.5\n"])
    def test_a_first_row_of_results_is_not_taken_for_a_header(self, tmp_path: Path, text: str) -> None:
        message = refusal(text, tmp_path)
        assert "--header" in message and "--no-header" in message

    def test_a_file_without_a_header_is_read_where_that_is_said(self, tmp_path: Path) -> None:
        table = read("x,1,2\ny,3,4\n", tmp_path, header=False)
        assert table.results.to_dict("split") == {"index": ["x", "y"], "columns": ["0", "1"], "data": [[1, 2], [3, 4]]}
        bare = read("1,2\n3,4\n", tmp_path, header=False, names=False)
        assert bare.results.to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]

    def test_names_that_contradict_each_other_are_refused_with_both_readings(self, tmp_path: Path) -> None:
        message = refusal("case,item-1,item-2\nmodel-1,1,2\nmodel-2,3,4\n", tmp_path)
        for word in ("--cases-are rows", "--cases-are columns", "'case'", "'model-1'", "'item-1'"):
            assert word in message

    def test_numbered_columns_beside_named_rows_are_refused_with_both_readings(self, tmp_path: Path) -> None:
        message = refusal(",0,1,2\ndqn,1,2,3\nppo,3,4,5\n", tmp_path)
        assert "--cases-are rows" in message and "--cases-are columns" in message

    def test_agents_against_agents_are_no_contradiction(self, tmp_path: Path) -> None:
        table = read("opponent,agent-1,agent-2\nagent-1,0,2\nagent-2,-2,0\n", tmp_path)
        assert table.results.loc["agent-1", "agent-2"] == 2.0


@pytest.mark.parametrize("corner", ["Test case", "cases", "item_id", "Games", "environment", "opponent", "prompt_id"])
def test_words_for_test_cases(tmp_path: Path, corner: str) -> None:
    assert list(read(f"{corner},a,b\nx,1,2\n", tmp_path).results.index) == ["x"]


@pytest.mark.parametrize("corner", ["Model", "policies", "Agent name", "checkpoint_id", "METHOD", "Player"])
def test_words_for_policies(tmp_path: Path, corner: str) -> None:
    assert list(read(f"{corner},a,b\nx,1,2\n", tmp_path).results.index) == ["a", "b"]


class TestLongTables:
    TEXT = "task,model,score\nx,p,1\nx,q,2\ny,p,3\ny,q,4\n"
    FOUND = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["x", "y"], columns=["p", "q"])

    @pytest.mark.parametrize(
        "header", ["task,model,score", "game,x,v", "x,agent,v", "Item,Model,accuracy", "test_case,policy,result"]
    )
    def test_they_are_found_out_and_said(self, tmp_path: Path, header: str) -> None:
        table = read(self.TEXT.replace("task,model,score", header), tmp_path)
        assert same(table, self.FOUND)
        case, policy, value = header.split(",")
        assert table.notes == (
            f"read a long table of 2 test cases ('{case}') × 2 policies ('{policy}') with values '{value}', as names "
            "and cells tell; --long CASE,POLICY,VALUE if that is wrong",
        )

    def test_columns_may_be_in_any_order_and_beside_others(self, tmp_path: Path) -> None:
        text = ",score,seconds,family,model,task\n0,1,9,f,p,x\n1,2,9,f,q,x\n2,3,9,f,p,y\n3,4,9,f,q,y\n"
        table = read(text, tmp_path)
        assert same(table, self.FOUND)
        assert "'seconds' passed over" in table.notes[0]

    def test_numbers_may_be_names_where_the_heading_says_so(self, tmp_path: Path) -> None:
        table = read("item_id,model,correct\n7,p,1\n7,q,0\n8,p,0\n8,q,1\n", tmp_path)
        assert list(table.results.index) == ["7", "8"]

    def test_which_column_has_the_cases_is_asked_where_nothing_tells(self, tmp_path: Path) -> None:
        message = refusal(self.TEXT.replace("task,model", "a,b"), tmp_path)
        assert "--long a,b,score or --long b,a,score" in message

    def test_which_column_has_the_values_is_asked_where_nothing_tells(self, tmp_path: Path) -> None:
        message = refusal("task,model,f1,em\nx,p,1,2\nx,q,2,3\ny,p,3,4\ny,q,5,6\n", tmp_path)
        assert "--long task,model,f1 or --long task,model,em" in message

    def test_what_is_said_is_done(self, tmp_path: Path) -> None:
        table = read("a,b,f1,em\nx,p,1,2\nx,q,2,3\ny,p,3,4\ny,q,4,6\n", tmp_path, long=("a", "b", "f1"))
        assert same(table, self.FOUND)
        assert table.notes[0].endswith("as --long says")

    @pytest.mark.parametrize("long", [("a", "b", "d"), ("a", "a", "c")])
    def test_columns_must_be_there_and_differ(self, tmp_path: Path, long: tuple[str, str, str]) -> None:
        assert "`long`" in (message := refusal("a,b,c\nx,p,1\n", tmp_path, long=long)) or "'d'" in message

    def test_kinds_of_results_are_not_averaged(self, tmp_path: Path) -> None:
        text = "task,model,metric,score\nx,p,f1,1\nx,p,em,2\nx,q,f1,3\nx,q,em,4\ny,p,f1,1\ny,q,f1,1\n"
        message = refusal(text, tmp_path)
        assert "'metric'" in message and "--long task,model,score" in message

    def test_a_wide_table_with_repeated_categories_is_no_long_one(self, tmp_path: Path) -> None:
        text = "item,kind,sort,p,q\na,k,s,1,2\nb,k,s,3,4\nc,k,s,5,6\n"
        message = refusal(text, tmp_path)
        assert "--drop-columns kind,sort" in message
        assert read(text, tmp_path, drop_columns=["kind", "sort"]).results.shape == (3, 2)

    def test_a_bad_value_is_named(self, tmp_path: Path) -> None:
        message = refusal(self.TEXT.replace("y,p,3", "y,p,three"), tmp_path)
        for word in ("'score'", "'y'", "'p'", "'three'"):
            assert word in message


class TestRepetitions:
    def test_they_are_averaged_with_standard_errors_as_the_formula_has_them(self, tmp_path: Path) -> None:
        repetitions = np.random.default_rng(3).normal(size=(4, 3, 5))
        rows = [
            f'"{case}",{policy},{run},{repetitions[i, j, run].item()!r}'
            for i, case in enumerate(CASES)
            for j, policy in enumerate(POLICIES)
            for run in range(5)
        ]
        table = read("\n".join(["game,agent,run,return", *rows]), tmp_path)
        np.testing.assert_allclose(table.results.to_numpy(), repetitions.mean(axis=2), rtol=1e-12)
        assert table.standard_errors is not None and list(table.standard_errors.index) == CASES
        np.testing.assert_allclose(table.standard_errors, ro.standard_errors(repetitions), rtol=1e-12)
        assert table.notes[-1] == "averaged 60 values, 5 of each test case and policy"

    def test_missing_cells_and_repetitions_go_together(self, tmp_path: Path) -> None:
        text = "task,model,score\nx,p,1\nx,p,3\nx,q,5\nx,q,NA\ny,p,2\ny,q,-\nz,p,1\nz,q,1\nz,q,9\n"
        assert "1 of 6 cells is empty or missing" in refusal(text, tmp_path)
        table = read(text, tmp_path, missing="drop-cases")
        assert table.results.to_dict("split") == {"index": ["x", "z"], "columns": ["p", "q"], "data": [[2, 5], [1, 5]]}
        assert table.standard_errors is not None and table.standard_errors.tolist() == [1.0, 4.0]
        alone = read(text, tmp_path, missing="drop-policies")
        assert alone.standard_errors is not None and alone.standard_errors["x"] == 1.0
        assert alone.standard_errors[["y", "z"]].isna().all()  # z is repeated only with the policy that was dropped
        assert alone.notes[-1] == "2 test cases have no repetitions, and no standard error"

    def test_without_repetitions_there_are_no_standard_errors(self, tmp_path: Path) -> None:
        assert read(TestLongTables.TEXT, tmp_path).standard_errors is None

    def test_means_of_very_large_numbers_are_finite(self, tmp_path: Path) -> None:
        table = read("task,model,score\nx,p,1.7e308\nx,p,1.7e308\nx,q,1\ny,p,1\ny,q,1\n", tmp_path)
        assert table.results.loc["x", "p"] == 1.7e308


class TestMissingCells:
    TEXT = "case,p,q,r\na,1,2,-\nb,4,5,6\nc,7,N/A,9\nd,1,2,3\n"

    def test_the_error_says_how_many_where_and_what_each_choice_keeps(self, tmp_path: Path) -> None:
        message = refusal(self.TEXT, tmp_path)
        for words in (
            "2 of 12 cells are empty or missing",
            "test case 'a' and policy 'r'",
            "drop-cases keeps 2 × 3",
            "drop-policies keeps 4 × 1",
            "drop keeps 2 × 3",
            "fill",
        ):
            assert words in message

    @pytest.mark.parametrize(
        ("missing", "cases", "policies"),
        [("drop-cases", "bd", "pqr"), ("drop-policies", "abcd", "p"), ("drop", "bd", "pqr"), ("fill", "abcd", "pqr")],
    )
    def test_each_choice_keeps_what_it_says(self, tmp_path: Path, missing: str, cases: str, policies: str) -> None:
        table = read(self.TEXT, tmp_path, missing=missing)
        assert (list(table.results.index), list(table.results.columns)) == (list(cases), list(policies))
        assert np.isfinite(table.results.to_numpy()).all()
        assert table.notes[-1].startswith("2 of 12 cells were missing")

    def test_filling_says_how_far_off_it_is(self, tmp_path: Path) -> None:
        assert "held out by" in read(self.TEXT, tmp_path, missing="fill").notes[-1]

    @pytest.mark.parametrize("missing", ["error", "drop", "fill"])
    def test_a_row_that_is_cut_short_is_no_missing_cell(self, tmp_path: Path, missing: str) -> None:
        message = refusal("case,p,q\na,1,2\nb,3,4\nc,5\n", tmp_path, missing=missing)
        assert "'c'" in message and "'q'" in message and "its row ends before it" in message

    def test_nothing_left_is_an_error(self, tmp_path: Path) -> None:
        text = "case,p,q\na,1,\nb,,2\n"
        assert "leaves nothing" in refusal(text, tmp_path, missing="drop-cases")
        assert "'c'" in refusal("case,p,q\na,1,2\nc,,\n", tmp_path, missing="fill")

    def test_an_unknown_choice_is_named(self, tmp_path: Path) -> None:
        assert "'ignore'" in refusal(self.TEXT, tmp_path, missing="ignore")


class TestCellsThatWereRefused:
    def test_percentages(self, tmp_path: Path) -> None:
        text = "case,p,q\na,61.0%,5 %\nb,7%,8\n"
        assert "--percent" in refusal(text, tmp_path)
        table = read(text, tmp_path, percent=True)
        assert table.results.to_numpy().tolist() == [[61.0, 5.0], [7.0, 8.0]]
        assert table.notes[-1] == "read 3 of 4 cells such as 61.0% as 61.0, as --percent says"

    @pytest.mark.parametrize("text", ["case;p;q\na;0,5;1\nb;-1,25e3;,5\n", 'case,p,q\na,"0,5",1\nb,"-1,25e3",",5"\n'])
    def test_decimal_commas(self, tmp_path: Path, text: str) -> None:
        assert "--decimal ," in refusal(text, tmp_path)
        assert read(text, tmp_path, decimal=",").results.to_numpy().tolist() == [[0.5, 1.0], [-1250.0, 0.5]]

    def test_a_decimal_comma_separates_no_cells(self, tmp_path: Path) -> None:
        table = read("case;p,1,x,y\na;0,5\n", tmp_path, decimal=",")
        assert table.results.to_dict("split") == {"index": ["a"], "columns": ["p,1,x,y"], "data": [[0.5]]}

    def test_points_are_no_decimal_commas(self, tmp_path: Path) -> None:
        assert "leave --decimal out" in refusal("case;p\na;0.5\n", tmp_path, decimal=",")
        assert "1.234,5" in refusal("case;p\na;1.234,5\n", tmp_path, decimal=",")

    def test_a_text_column(self, tmp_path: Path) -> None:
        text = "case,category,p\na,hard,1\nb,easy,2\n"
        message = refusal(text, tmp_path)
        assert "'category'" in message and "'hard'" in message and "--drop-columns category" in message
        table = read(text, tmp_path, drop_columns=["category"])
        assert table.results.shape == (2, 1)
        assert table.notes[0] == "left out 1 of 3 columns, as --drop-columns says"

    def test_a_column_that_is_not_there_cannot_be_dropped(self, tmp_path: Path) -> None:
        assert "'kind'" in refusal("case,p\na,1\n", tmp_path, drop_columns=["kind"])


def wide() -> pd.DataFrame:
    return EXPECTED.rename_axis("test case").reset_index()


def turned() -> pd.DataFrame:
    return EXPECTED.T.rename_axis("model").reset_index()


def long() -> pd.DataFrame:
    table = wide().melt(id_vars="test case", var_name="policy", value_name="score")
    return table.sample(frac=1, random_state=0)


def as_text(frame: pd.DataFrame, separator: str = ",") -> bytes:
    return frame.to_csv(index=False, sep=separator).encode()


def zipped(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("folder/results.csv", data)
    return packed.getvalue()


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def as_records(frame: pd.DataFrame) -> bytes:
    return "\n".join(json.dumps(record) for record in frame.to_dict("records")).encode()


FORMATS: dict[str, Callable[[pd.DataFrame], bytes]] = {
    "results.csv": as_text,
    "results.tsv": lambda frame: as_text(frame, "\t"),
    "semicolons.csv": lambda frame: as_text(frame, ";"),
    "results.csv.gz": lambda frame: gzip.compress(as_text(frame)),
    "results.csv.bz2": lambda frame: bz2.compress(as_text(frame)),
    "results.csv.xz": lambda frame: lzma.compress(as_text(frame)),
    "results.csv.zst": lambda frame: zstandard.ZstdCompressor().compress(as_text(frame)),
    "results.zip": lambda frame: zipped(as_text(frame)),
    "results.jsonl": as_records,
    "results.ndjson.gz": lambda frame: gzip.compress(as_records(frame)),
    "results.json": lambda frame: json.dumps(frame.to_dict("records")).encode(),
    "results.parquet": lambda frame: written(lambda out: frame.to_parquet(out, index=False)),
    "results.feather": lambda frame: written(lambda out: frame.reset_index(drop=True).to_feather(out)),
    "results.xlsx": lambda frame: written(lambda out: frame.to_excel(out, index=False)),
}
FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas, numbered": lambda frame: frame.reset_index(drop=True),
    "pandas, with an index": lambda frame: frame.set_index(frame.columns[0]),
    "polars": lambda frame: polars.DataFrame(frame.to_dict("list")),
    "pyarrow": lambda frame: pyarrow.table(frame.to_dict("list")),
}
FORMS = {"wide": wide, "policies as rows": turned, "long": long}


class TestFormats:
    @pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
    @pytest.mark.parametrize("name", FORMATS)
    def test_every_format_gives_the_same_table_in_every_form(
        self, tmp_path: Path, name: str, form: Callable[[], pd.DataFrame]
    ) -> None:
        for path in (tmp_path / name, tmp_path / "without-a-suffix"):
            path.write_bytes(FORMATS[name](form()))
            assert same(ro.read_results(path))

    @pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
    @pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
    def test_frames_give_the_same_table_in_every_form(
        self, frame: Callable[[pd.DataFrame], Any], form: Callable[[], pd.DataFrame]
    ) -> None:
        assert same(ro.read_results(frame(form())))

    def test_a_frame_of_numbers_has_its_rows_numbered(self) -> None:
        table = ro.read_results(pd.DataFrame({"dqn": [0.5, 0.25], "ppo": [1.0, 2.0]}))
        assert list(table.results.index) == ["0", "1"]
        with pytest.raises(ro.ProblemError, match="--no-names"):
            ro.read_results(polars.DataFrame({"dqn": [0.5, 0.25], "ppo": [1.0, 2.0]}))

    def test_missing_and_boolean_cells_of_typed_tables(self) -> None:
        frame = polars.DataFrame({"task": ["a", "b"], "dqn": [True, False], "ppo": [None, True]})
        table = ro.read_results(frame, missing="drop-cases")
        assert table.results.to_dict("split") == {"index": ["b"], "columns": ["dqn", "ppo"], "data": [[0.0, 1.0]]}

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(as_text(turned())))))
        assert same(ro.read_results("-"))

    def test_several_sheets_are_told(self, tmp_path: Path) -> None:
        path = tmp_path / "results.xlsx"
        with pd.ExcelWriter(path) as writer:
            wide().to_excel(writer, sheet_name="Scores", index=False)
            turned().to_excel(writer, sheet_name="Other", index=False)
        assert ro.read_results(path).notes[0] == "read the sheet 'Scores', the first of 2"

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("results.parquet", b"case,p\nx,1\n", "not what its name says"),
            ("results.parquet", b"PAR1 and nothing else", "this Parquet file cannot be read"),
            ("results.feather", b"ARROW1 and nothing else", "this Feather file cannot be read"),
            ("results.csv.gz", b"\x1f\x8b\x08 cut", "cannot be unpacked"),
            ("results.csv.zst", b"\x28\xb5\x2f\xfd cut", "cannot be unpacked"),
            ("results.xlsx", b"PK\x03\x04 cut", "cannot be unpacked"),
            ("results.xls", b"\xd0\xcf\x11\xe0\xa1", "save it as .xlsx"),
            ("results.jsonl", b'{"case": "x", "p": 1}\n{"case": ', "not JSON"),
            ("results.jsonl", b'{"case": "x", "p": 1, "p": 2}', "same key twice"),
            ("results.jsonl", b'{"case": "x", "p": [1]}', "'p' must be a number"),
            ("results.jsonl", b"[1, 2]", "JSON objects"),
        ],
    )
    def test_what_cannot_be_read_is_told_in_one_line(
        self, tmp_path: Path, name: str, content: bytes, words: str
    ) -> None:
        (tmp_path / name).write_bytes(content)
        assert words in complaint(lambda: ro.read_results(tmp_path / name))

    def test_a_format_is_chosen_by_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def read_log(path: Path, task: str) -> pd.DataFrame:
            table = EXPECTED.add(len(path.name + task)).rename_axis("case").reset_index()
            return table.melt("case", var_name="policy", value_name="value")

        monkeypatch.setitem(formats.FORMATS, "made-up", results_log(read_log, "task"))
        read = ro.read_results(tmp_path, format="made-up", task="some task")
        assert same(read, EXPECTED.add(len(tmp_path.name + "some task")))
        assert "made-up" in complaint(lambda: ro.read_results(tmp_path, format="nonsense"))

    @pytest.mark.parametrize("source", [3, None, [[1.0, 2.0]], polars.DataFrame({"a": [1.0]}).lazy()])
    def test_what_is_no_table_is_named_by_its_type(self, source: object) -> None:
        assert type(source).__name__ in complaint(lambda: ro.read_results(source))


class TestOnlyTheCasesOfATest:
    @pytest.mark.parametrize("text", ["x,a,b,c\np,1,2,3\nq,4,5,6\n", "x,p,q\na,1,4\nb,2,5\nc,3,6\n"])
    def test_their_names_decide_on_the_orientation(self, tmp_path: Path, text: str) -> None:
        table = read(text, tmp_path, only_cases=["c", "a"])
        assert table.results.to_dict("split") == {"index": ["a", "c"], "columns": ["p", "q"], "data": [[1, 4], [3, 6]]}

    def test_their_names_decide_in_a_long_table(self, tmp_path: Path) -> None:
        text = "one,two,score\np,a,1\np,b,2\nq,a,4\nq,b,5\n"
        assert list(read(text, tmp_path, only_cases=["b"]).results.index) == ["b"]

    def test_none_of_them_is_one_line_with_names_of_both_sides(self, tmp_path: Path) -> None:
        message = refusal("case,p,q\na,1,4\nb,2,5\n", tmp_path, only_cases=["x", "y"])
        for word in ("'x'", "'y'", "'a'", "'b'", "'p'"):
            assert word in message
