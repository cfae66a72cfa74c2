import csv
import errno
import io
import json
import math
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from contract import KEYS_OF_THE_CONTRACT

import rposst_opt as ro
from rposst_opt.files.records import as_json, read_test, solution_record
from rposst_opt.files.tables import read_probabilities, read_results, read_targets
from rposst_opt.files.writing import check_can_write, write_atomically
from rposst_opt.losses import loss_from_label

AWKWARD_NAMES = (
    "<script>alert(1)</script>",
    "../x",
    "a,b",
    'he said "hi"',
    '"',
    "two\nlines",
    "two\r\nlines",
    "a\ttab",
    "semi;colon",
    ",;\t,;\t;;;\t\t\t",
    " leading and trailing ",
    "größer ∑ 文字",
    "🙂👩‍🚀",
    "[red]x[/red]",
    "nan",
    "NA",
    "None",
    "1e5",
    "007",
    "#comment",
    "'quoted'",
    "back\\slash",
    "\x1b[31mred",
    "line\u2028separator",
    "=1+1",
)
SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";"}


def complaint(call: Callable[[], object]) -> str:
    """The message of the ProblemError that this call must end with, which must be a single line."""
    with pytest.raises(ro.ProblemError) as caught:
        call()
    message = str(caught.value)
    assert len(message.splitlines()) == 1, message
    return message


def write_table(
    path: Path,
    cases: list[str],
    policies: list[str],
    results: list[list[float]],
    *,
    separator: str = ",",
    quote_all: bool = False,
    corner: str = "case",
) -> Path:
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=separator,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL,
    )
    writer.writerow([corner, *policies])
    writer.writerows([case, *map(repr, row)] for case, row in zip(cases, results, strict=True))
    path.write_bytes(text.getvalue().encode())
    return path


def refuse_constants(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def strict_json(text: str) -> Any:
    return json.loads(text, parse_constant=refuse_constants)


class TestTablesThatAreRead:
    @pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
    def test_awkward_names_come_back_unchanged(self, tmp_path: Path, separator: str) -> None:
        names = list(AWKWARD_NAMES)
        numbers = np.random.default_rng(0).normal(size=(len(names), len(names)))
        path = write_table(tmp_path / "results.csv", names, names[::-1], numbers.tolist(), separator=separator)
        table = read_results(path)
        assert list(table.index) == names
        assert list(table.columns) == names[::-1]
        np.testing.assert_array_equal(table.to_numpy(), numbers)

    @pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
    @pytest.mark.parametrize("name", AWKWARD_NAMES, ids=repr)
    def test_a_quoted_name_alone_comes_back_unchanged(self, tmp_path: Path, name: str, separator: str) -> None:
        path = write_table(
            tmp_path / "results.csv", [name], [name], [[0.5]], separator=separator, quote_all=True, corner=name
        )
        table = read_results(path)
        assert (list(table.index), list(table.columns)) == ([name], [name])

    @pytest.mark.parametrize(
        "text",
        [
            '"a;b;c;d",p,q\nx,1,2\n',
            '"a\t\t\t\t",p,q\nx,1,2\n',
            '"a,b,c,d";p;q\nx;1;2\n',
            '"a,b,c,d"\tp\tq\nx\t1\t2\n',
            '"two\n;;;;;lines",p,q\nx,1,2\n',
            '"a "";;;;"" b",p,q\nx,1,2\n',
        ],
    )
    def test_separators_within_a_quoted_corner_do_not_count(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "results.csv"
        path.write_bytes(text.encode())
        table = read_results(path)
        assert table.to_dict("split") == {"index": ["x"], "columns": ["p", "q"], "data": [[1.0, 2.0]]}

    @pytest.mark.parametrize(
        ("text", "policy"),
        [
            ('c,"p;;;;",q\nx,1,2\n', "p;;;;"),
            ('c,"\t\t\tp\t",q\nx,1,2\n', "\t\t\tp\t"),
            ('c;"p,,,,";q\nx;1;2\n', "p,,,,"),
        ],
    )
    def test_separators_within_a_quoted_policy_do_not_count(self, tmp_path: Path, text: str, policy: str) -> None:
        path = tmp_path / "results.csv"
        path.write_bytes(text.encode())
        table = read_results(path)
        assert list(table.columns) == [policy, "q"]
        assert table.to_numpy().tolist() == [[1.0, 2.0]]

    @pytest.mark.parametrize(
        "text",
        [
            "c,p,q\nx,1,2\ny,3,4\n",
            "c,p,q\nx,1,2\ny,3,4",
            "c\tp\tq\nx\t1\t2\ny\t3\t4\n",
            "c;p;q\nx;1;2\ny;3;4\n",
            "c,p,q\r\nx,1,2\r\ny,3,4\r\n",
            "\ufeffc,p,q\nx,1,2\ny,3,4\n",
            '\ufeff"c",p,q\nx,1,2\ny,3,4\n',
            ",p,q\nx,1,2\ny,3,4\n",
            "\n\nc,p,q\n\nx,1,2\n\n\ny,3,4\n\n\n",
            "\r\n\r\nc,p,q\r\n\r\nx,1,2\r\n\r\ny,3,4\r\n\r\n",
            "  \nc,p,q\n   \nx,1,2\ny,3,4\n",
            '"c","p","q"\n"x","1","2"\n"y","3","4"\n',
            "c,p,q\nx, 1 , 2\ny,3.0,+4e0\n",
        ],
        ids=lambda text: repr(text)[:40],
    )
    def test_the_same_table_may_be_written_in_many_ways(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "results.csv"
        path.write_bytes(text.encode())
        table = read_results(path)
        assert table.to_dict("split") == {
            "index": ["x", "y"],
            "columns": ["p", "q"],
            "data": [[1.0, 2.0], [3.0, 4.0]],
        }

    def test_numbers_are_read_to_the_last_bit(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(1)
        numbers = rng.normal(size=(200, 5)) * 10.0 ** rng.integers(-290, 290, (200, 5))
        numbers[0] = [5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1 + 0.2, 2.2250738585072014e-308]
        cases = [f"case {number}" for number in range(200)]
        path = write_table(tmp_path / "results.csv", cases, list("pqrst"), numbers.tolist())
        np.testing.assert_array_equal(read_results(path).to_numpy(), numbers)

    def test_a_single_cell_is_a_table(self, tmp_path: Path) -> None:
        path = write_table(tmp_path / "results.csv", ["x"], ["p"], [[3.0]])
        assert read_results(path).loc["x", "p"] == 3.0

    def test_rows_that_are_not_asked_for_may_be_incomplete_or_repeated(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text("c,p,q\nx,1,2\nother,,\nother,words,nan\n,,\ny,3,4\n")
        table = read_results(path, only_cases=["y", "x", "absent"])
        assert list(table.index) == ["x", "y"]
        assert table.to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]

    def test_rows_that_are_asked_for_are_checked(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text("c,p,q\nx,1,\ny,3,4\ny,3,4\n")
        assert "'x'" in complaint(lambda: read_results(path, only_cases=["x"]))
        assert "'y'" in complaint(lambda: read_results(path, only_cases=["y"]))


class TestTablesThatAreRefused:
    @pytest.mark.parametrize(
        ("text", "rule"), [("nan", "finite"), ("NaN", "finite"), ("inf", "finite"), ("-inf", "finite")]
    )
    @pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
    def test_numbers_must_be_finite(self, tmp_path: Path, text: str, rule: str, separator: str) -> None:
        assert rule in self.cell_complaint(tmp_path, text, separator)

    @pytest.mark.parametrize("text", ["1e999", "-1e999", "Infinity", "9" * 400])
    def test_numbers_must_not_be_beyond_what_a_float_holds(self, tmp_path: Path, text: str) -> None:
        assert "finite" in self.cell_complaint(tmp_path, text, ",")

    @pytest.mark.parametrize(
        "text", ["hello", "True", "0x10", "1_000", "50%", "2020-01-01", "1j", "None", "--1", "1 2"]
    )
    def test_text_is_no_number(self, tmp_path: Path, text: str) -> None:
        assert "must be a number" in self.cell_complaint(tmp_path, text, ",")

    def test_a_decimal_comma_is_recognised(self, tmp_path: Path) -> None:
        assert "point" in self.cell_complaint(tmp_path, "0,5", ";")
        assert "point" in self.cell_complaint(tmp_path, "0,5", "\t")
        assert "point" in self.cell_complaint(tmp_path, '"0,5"', ",", shown="0,5")

    @pytest.mark.parametrize("text", ["", "   ", '""'])
    def test_a_cell_must_not_be_empty(self, tmp_path: Path, text: str) -> None:
        assert "empty" in self.cell_complaint(tmp_path, text, ",", shown="")

    def test_a_cell_with_line_breaks_still_makes_one_line(self, tmp_path: Path) -> None:
        assert "must be a number" in self.cell_complaint(tmp_path, '"two\nlines"', ",", shown="two\\nlines")

    @staticmethod
    def cell_complaint(folder: Path, text: str, separator: str, shown: str | None = None) -> str:
        path = folder / "results.csv"
        rows = [["c", "policy one", "policy two"], ["first", "1", "2"], ["bad case", "3", text], ["last", "5", "6"]]
        path.write_text("\n".join(separator.join(row) for row in rows) + "\n")
        message = complaint(lambda: read_results(path))
        assert str(path) in message
        assert "'bad case'" in message
        assert "'policy two'" in message
        assert (text if shown is None else shown) in message
        return message

    def test_the_first_bad_cell_is_the_one_named(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text("c,p,q\nx,1,bad\ny,worse,nan\n")
        message = complaint(lambda: read_results(path))
        assert "'x'" in message
        assert "'q'" in message

    def test_a_short_row_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text("c,p,q\nx,1,2\nshort,3\ny,5,6\n")
        message = complaint(lambda: read_results(path))
        assert str(path) in message
        assert "'short'" in message
        assert "'q'" in message

    @pytest.mark.parametrize("tail", ["7", "", "words"])
    def test_a_long_row_is_named(self, tmp_path: Path, tail: str) -> None:
        path = tmp_path / "results.csv"
        path.write_text(f"c,p,q\nx,1,2\nlong,3,4,{tail}\ny,5,6\n")
        message = complaint(lambda: read_results(path))
        assert str(path) in message
        assert "line 3" in message or "'long'" in message
        assert "4" in message

    def test_a_header_without_a_corner_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text("p,q\nx,1,2\n")
        assert str(path) in complaint(lambda: read_results(path))

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", ["empty"]),
            (b"\n \n\t\r\n", ["empty"]),
            (b"\xef\xbb\xbf", ["empty"]),
            (b"c,p,q\n", ["test case", "header"]),
            (b"c\nx\ny\n", ["policy", "comma", "tab", "semicolon"]),
            (b"c p q\nx 1 2\n", ["policy", "comma", "tab", "semicolon"]),
            (b"c,p,q\nx,1,2\ny,3,4\nx,5,6\n", ["test case", "'x'", "more than once"]),
            (b"c,p,q,p\nx,1,2,3\n", ["policy", "'p'", "more than once"]),
            (b"c,p,q\nx,1,2\n,3,4\n", ["test case", "name", "2"]),
            (b"c,p,q\nx,1,2\n  ,3,4\n", ["test case", "name", "2"]),
            (b"c,p,\nx,1,2\n", ["policy", "name", "2"]),
            (b"c,p,q\n,,\n", ["test case", "name", "1"]),
            (b"c,p,q\nx,1,\x00\n", ["not a text file"]),
            (b"\x89PNG\r\n\x1a\n\x00\x00", ["UTF-8"]),
            ("c,p\nGröße,1\n".encode("latin-1"), ["UTF-8", "byte 6"]),
            ("c,p\nx,1\n".encode("utf-16"), ["UTF-8"]),
            (b'c,"p,q\nx,1,2\n', []),
            (b'c,p,q\nx,"1,2\ny,3,4\n', []),
        ],
        ids=lambda value: repr(value)[:30] if isinstance(value, bytes) else "",
    )
    def test_files_that_are_no_table(self, tmp_path: Path, content: bytes, words: list[str]) -> None:
        path = tmp_path / "results.csv"
        path.write_bytes(content)
        message = complaint(lambda: read_results(path))
        for word in [str(path), *words]:
            assert word in message

    def test_a_repeated_name_with_line_breaks_still_makes_one_line(self, tmp_path: Path) -> None:
        path = tmp_path / "results.csv"
        path.write_text('c,p\n"two\nlines",1\n"two\nlines",2\n')
        assert "two\\nlines" in complaint(lambda: read_results(path))

    def test_a_file_must_be_there(self, tmp_path: Path) -> None:
        assert "missing.csv" in complaint(lambda: read_results(tmp_path / "missing.csv"))

    def test_a_folder_is_no_file(self, tmp_path: Path) -> None:
        assert str(tmp_path) in complaint(lambda: read_results(tmp_path))

    def test_a_path_with_line_breaks_still_makes_one_line(self, tmp_path: Path) -> None:
        assert "lines.csv" in complaint(lambda: read_results(tmp_path / "two\nlines.csv"))


class TestTargets:
    CASES = ("a", "b", "c")

    @pytest.mark.parametrize(
        "text",
        [
            "case,t1,t2\na,0.1,0.2\nb,0.3,0.4\nc,0.6,0.4\n",
            "case,t1,t2\nc,0.6,0.4\na,0.1,0.2\nb,0.3,0.4\n",
            "target,a,b,c\nt1,0.1,0.3,0.6\nt2,0.2,0.4,0.4\n",
            "target;c;a;b\nt1;0.6;0.1;0.3\nt2;0.4;0.2;0.4\n",
        ],
    )
    def test_cases_may_be_rows_or_columns_in_any_order(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "targets.csv"
        path.write_text(text)
        targets = read_targets(path, self.CASES)
        assert targets.to_dict("split") == {
            "index": ["t1", "t2"],
            "columns": ["a", "b", "c"],
            "data": [[0.1, 0.3, 0.6], [0.2, 0.4, 0.4]],
        }

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("case,t1\na,0.5\nc,0.5\n", "'b'"),
            ("target,a,c\nt1,0.5,0.5\n", "'b'"),
            ("case,t1\na,0.5\nb,0.5\nc,0\nextra,0\n", "'extra'"),
            ("target,a,b,extra,c\nt1,0.5,0.5,0,0\n", "'extra'"),
            ("case,t1\na,0.5\nb,0.5\nC,0\n", "'c'"),
        ],
        ids=["row missing", "column missing", "surplus row", "surplus column", "another case"],
    )
    def test_a_missing_or_surplus_case_is_named(self, tmp_path: Path, text: str, name: str) -> None:
        path = tmp_path / "targets.csv"
        path.write_text(text)
        message = complaint(lambda: read_targets(path, self.CASES))
        assert str(path) in message
        assert name in message

    def test_a_bad_cell_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "targets.csv"
        path.write_text("case,t1\na,0.5\nb,half\nc,0\n")
        message = complaint(lambda: read_targets(path, self.CASES))
        for word in (str(path), "'b'", "'t1'", "'half'"):
            assert word in message


class TestProbabilities:
    def read(self, folder: Path, text: str, targets: tuple[str, ...]) -> list[list[float]]:
        path = folder / "probabilities.csv"
        path.write_text(text)
        table: list[list[float]] = read_probabilities(path, ["p", "q"], targets).tolist()
        return table

    def test_names_decide_the_order(self, tmp_path: Path) -> None:
        text = "policy,t2,t1\nq,0.3,0.1\np,0.2,0.4\n"
        assert self.read(tmp_path, text, ("t1", "t2")) == [[0.4, 0.2], [0.1, 0.3]]

    def test_the_column_of_a_single_target_may_have_any_name(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, "policy,whatever\nq,0.3\np,0.7\n", ("uniform",)) == [[0.7], [0.3]]

    @pytest.mark.parametrize(
        ("text", "targets", "name"),
        [
            ("policy,t1\np,1\n", ("t1",), "'q'"),
            ("policy,t1\np,1\nq,0\nr,0\n", ("t1",), "'r'"),
            ("policy,t1\np,1\nq,0\n", ("t1", "t2"), "'t2'"),
            ("policy,t1,t2,t3\np,1,0,0\nq,0,0,0\n", ("t1", "t2"), "'t3'"),
            ("policy,t1,t2\np,1,0\nq,0,0\n", ("t1",), "'t2'"),
            ("policy,t1\np,1\nq,\n", ("t1",), "'q'"),
        ],
    )
    def test_what_is_missing_or_surplus_is_named(
        self, tmp_path: Path, text: str, targets: tuple[str, ...], name: str
    ) -> None:
        message = complaint(lambda: self.read(tmp_path, text, targets))
        assert "probabilities.csv" in message
        assert name in message


def a_test_record(**changes: object) -> dict[str, object]:
    return {"format": "rposst-test/1", "cases": ["a", "b"], "weights": [0.25, 0.75], **changes}


class TestTestsThatAreRead:
    def read(self, folder: Path, text: str) -> ro.EfficientTest:
        path = folder / "test.json"
        path.write_bytes(text.encode())
        return read_test(path)

    def test_names_and_weights_are_all_that_is_needed(self, tmp_path: Path) -> None:
        test = self.read(tmp_path, json.dumps(a_test_record()))
        assert test.case_names == ("a", "b")
        assert test.weights.tolist() == [0.25, 0.75]

    def test_the_order_of_the_cases_is_kept(self, tmp_path: Path) -> None:
        test = self.read(tmp_path, json.dumps(a_test_record(cases=["z", "a"])))
        assert dict(zip(test.case_names, test.weights.tolist(), strict=True)) == {"z": 0.25, "a": 0.75}

    def test_whole_numbers_are_weights_and_a_byte_order_mark_is_no_trouble(self, tmp_path: Path) -> None:
        test = self.read(tmp_path, "\ufeff" + json.dumps(a_test_record(weights=[0, 1])))
        assert test.weights.tolist() == [0.0, 1.0]

    def test_what_was_written_comes_back(self, tmp_path: Path) -> None:
        names = list(AWKWARD_NAMES)
        results = np.random.default_rng(5).random((len(names), 4))
        problem = ro.Problem(results=results, size=len(names), case_names=names)
        weights = np.random.default_rng(6).dirichlet(np.ones(len(names)))
        test = problem.test(cases=range(len(names)), weights=weights)
        path = tmp_path / "test.json"
        write_atomically(path, as_json(solution_record(problem, a_solution(test), ro.Scale(0.0, 1.0))))
        back = read_test(path)
        assert back.case_names == tuple(names)
        np.testing.assert_allclose(back.weights, test.weights, rtol=1e-15)
        np.testing.assert_allclose(back.score(results), test.score(results), rtol=1e-15)


class TestTestsThatAreRefused:
    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("", "JSON"),
            ("{", "JSON"),
            ("case,p\nx,1\n", "JSON"),
            ('{"format":\n "rposst-test/1",\n}', "JSON"),
            ("\0\0\0", "JSON"),
            ("[" * 200_000, "JSON"),
            ('{"a":' * 200_000 + "1" + "}" * 200_000, "JSON"),
            ("[]", "rposst-test/1"),
            ("3", "rposst-test/1"),
            ("null", "rposst-test/1"),
            ('"rposst-test/1"', "rposst-test/1"),
            ("{}", "rposst-test/1"),
            (json.dumps(a_test_record(format="rposst-test/2")), "rposst-test/1"),
            (json.dumps(a_test_record(format=["rposst-test/1"])), "rposst-test/1"),
            (json.dumps(a_test_record(cases=None)), "cases"),
            (json.dumps(a_test_record(cases="ab")), "cases"),
            (json.dumps(a_test_record(cases=[0, 1])), "cases"),
            (json.dumps(a_test_record(cases=[["a"], "b"])), "cases"),
            (json.dumps(a_test_record(cases={"a": 1, "b": 2})), "cases"),
            (json.dumps(a_test_record(cases=["a", "a"])), "cases"),
            (json.dumps(a_test_record(cases=[], weights=[])), "cases"),
            (json.dumps(a_test_record(cases=[])), "cases"),
            (json.dumps(a_test_record(weights=None)), "weights"),
            (json.dumps(a_test_record(weights=["0.25", "0.75"])), "weights"),
            (json.dumps(a_test_record(weights=[True, False])), "weights"),
            (json.dumps(a_test_record(weights=[[0.25], [0.75]])), "weights"),
            (json.dumps(a_test_record(weights={"a": 0.25})), "weights"),
            (json.dumps(a_test_record(weights=[])), "weights"),
            (json.dumps(a_test_record(weights=[1.0])), "weight"),
            (json.dumps(a_test_record(weights=[0.5, 0.25, 0.25])), "weight"),
            (json.dumps(a_test_record(weights=[0.25, 0.7])), "sum to 1"),
            (json.dumps(a_test_record(weights=[1.5, -0.5])), "non-negative"),
            (json.dumps(a_test_record(weights=[0, 0])), "sum to 1"),
            (json.dumps(a_test_record(weights=[math.nan, 0.5])), "finite"),
            (json.dumps(a_test_record(weights=[math.inf, 0.5])), "finite"),
            (json.dumps(a_test_record(weights=[1e308, 1e308])), "sum to 1"),
            (json.dumps(a_test_record(weights=[10**400, 0])), "weights"),
            ('{"format": "rposst-test/1", "cases": ["a"], "weights": [1' + "0" * 5000 + "]}", ""),
        ],
        ids=lambda value: repr(value)[-45:],
    )
    def test_what_is_no_test_is_refused(self, tmp_path: Path, text: str, word: str) -> None:
        path = tmp_path / "test.json"
        path.write_text(text)
        message = complaint(lambda: read_test(path))
        assert str(path) in message
        assert word in message

    def test_a_test_must_be_utf8(self, tmp_path: Path) -> None:
        path = tmp_path / "test.json"
        path.write_bytes(json.dumps(a_test_record(cases=["Größe", "b"]), ensure_ascii=False).encode("latin-1"))
        assert "UTF-8" in complaint(lambda: read_test(path))

    def test_a_test_must_be_a_file_that_is_there(self, tmp_path: Path) -> None:
        assert "missing.json" in complaint(lambda: read_test(tmp_path / "missing.json"))
        assert str(tmp_path) in complaint(lambda: read_test(tmp_path))


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


class TestWritingAtomically:
    def test_the_content_is_written_as_utf8_without_translation(self, tmp_path: Path) -> None:
        path = tmp_path / "out.json"
        write_atomically(path, "größer\r\n🙂\n")
        assert path.read_bytes() == "größer\r\n🙂\n".encode()
        assert os.listdir(tmp_path) == ["out.json"]

    def test_an_existing_file_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "out.json"
        path.write_text("a much longer text than the new one")
        write_atomically(path, "new")
        assert path.read_text() == "new"
        assert os.listdir(tmp_path) == ["out.json"]

    def test_a_bare_file_name_is_in_the_current_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        write_atomically(Path("out.json"), "new")
        assert os.listdir(tmp_path) == ["out.json"]

    @pytest.mark.usefixtures("usual_umask")
    def test_a_new_file_has_the_permissions_that_the_umask_leaves(self, tmp_path: Path) -> None:
        write_atomically(tmp_path / "out.json", "new")
        (tmp_path / "plain").write_text("new")
        assert permissions(tmp_path / "out.json") == permissions(tmp_path / "plain") == 0o640

    @pytest.mark.usefixtures("usual_umask")
    def test_the_umask_is_left_as_it_was(self, tmp_path: Path) -> None:
        write_atomically(tmp_path / "out.json", "new")
        assert os.umask(0o027) == 0o027

    @pytest.mark.usefixtures("usual_umask")
    @pytest.mark.parametrize("mode", [0o600, 0o664, 0o755])
    def test_an_existing_file_keeps_its_permissions(self, tmp_path: Path, mode: int) -> None:
        path = tmp_path / "out.json"
        path.write_text("old")
        path.chmod(mode)
        write_atomically(path, "new")
        assert permissions(path) == mode

    @pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
    def test_when_writing_fails_the_old_file_stays(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        def fail(*arguments: object, **options: object) -> NoReturn:
            raise OSError(errno.ENOSPC, "No space left on device")

        path = tmp_path / "out.json"
        path.write_text("old")
        monkeypatch.setattr(os, step, fail)
        message = complaint(lambda: write_atomically(path, "new"))
        assert str(path) in message
        assert "No space left on device" in message
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["out.json"]

    def test_an_interrupt_while_writing_leaves_no_trace(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*arguments: object) -> NoReturn:
            raise KeyboardInterrupt

        path = tmp_path / "out.json"
        path.write_text("old")
        monkeypatch.setattr(os, "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomically(path, "new")
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["out.json"]

    def test_the_longest_name_that_the_system_takes_will_do(self, tmp_path: Path) -> None:
        path = tmp_path / ("x" * os.pathconf(tmp_path, "PC_NAME_MAX"))
        write_atomically(path, "new")
        assert path.read_text() == "new"


@pytest.mark.parametrize(
    "function", [check_can_write, lambda path: write_atomically(path, "new")], ids=["check", "write"]
)
class TestPlacesThatCannotBeWritten:
    def test_the_folder_must_exist(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        message = complaint(lambda: function(tmp_path / "missing" / "out.json"))
        assert str(tmp_path / "missing") in message
        assert os.listdir(tmp_path) == []

    def test_the_folder_must_not_be_a_file(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        (tmp_path / "file").write_text("old")
        assert str(tmp_path / "file") in complaint(lambda: function(tmp_path / "file" / "out.json"))
        assert (tmp_path / "file").read_text() == "old"

    def test_a_folder_is_no_target(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        (tmp_path / "folder").mkdir()
        assert str(tmp_path / "folder") in complaint(lambda: function(tmp_path / "folder"))
        assert list(tmp_path.rglob("*")) == [tmp_path / "folder"]

    def test_the_folder_must_be_writable(
        self, tmp_path: Path, function: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda *arguments, **options: False)
        assert str(tmp_path) in complaint(lambda: function(tmp_path / "out.json"))
        assert os.listdir(tmp_path) == []

    def test_a_name_may_not_be_too_long(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        complaint(lambda: function(tmp_path / ("x" * 300)))
        assert os.listdir(tmp_path) == []

    def test_what_is_not_a_plain_file_is_not_replaced(self, tmp_path: Path, function: Callable[[Path], None]) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        assert str(path) in complaint(lambda: function(path))
        assert path.is_fifo()


class TestCheckingWhetherAFileCanBeWritten:
    def test_nothing_is_touched(self, tmp_path: Path) -> None:
        existing = tmp_path / "existing.json"
        existing.write_text("old")
        before = (existing.stat(), tmp_path.stat().st_mtime_ns)
        check_can_write(existing)
        check_can_write(tmp_path / "new.json")
        after = (existing.stat(), tmp_path.stat().st_mtime_ns)
        assert after == before
        assert existing.read_text() == "old"
        assert os.listdir(tmp_path) == ["existing.json"]


def a_problem(measure: ro.Measure | None = None, loss: ro.Loss | None = None) -> ro.Problem:
    return ro.Problem(
        results=[[0.0, 1.0, 0.5], [1.0, 0.0, 0.25], [0.5, 0.5, 0.0]],
        size=1,
        measure=measure,
        loss=loss,
        required_cases=["second"],
        case_names=["first", "second", "third"],
        policy_names=["p", "q", "r"],
    )


def a_solution(test: ro.EfficientTest | None, **changes: Any) -> ro.Solution:
    facts: dict[str, Any] = {
        "objective": 0.25,
        "lower_bound": 0.125,
        "gap": 0.125,
        "status": ro.Status.FEASIBLE,
        "backend": "regret-matching",
        "limit": None,
        "seconds": 1.5,
        "stats": ro.Stats(),
    }
    return ro.Solution(test=test, **{**facts, **changes})


class TestSolutionRecord:
    SCALE = ro.Scale(-2.0, 3.0)

    def record(self, problem: ro.Problem, solution: ro.Solution) -> dict[str, Any]:
        record: dict[str, Any] = strict_json(as_json(solution_record(problem, solution, self.SCALE)))
        return record

    def test_it_has_the_keys_of_the_contract_with_their_types(self) -> None:
        problem = a_problem()
        record = self.record(problem, a_solution(problem.test(cases=[0, 1], weights=[0.25, 0.75])))
        for key, kind in KEYS_OF_THE_CONTRACT.items():
            assert type(record[key]) is kind, key

    def test_it_says_what_was_asked_and_found(self) -> None:
        problem = a_problem()
        record = self.record(problem, a_solution(problem.test(cases=["second", "first"], weights=[0.75, 0.25])))
        expected = {
            "format": "rposst-test/1",
            "cases": ["first", "second"],
            "weights": [0.25, 0.75],
            "objective": 0.25,
            "lower_bound": 0.125,
            "gap": 0.125,
            "status": "feasible",
            "backend": "regret-matching",
            "measure": {"name": "cvar", "tail_fraction": 0.01},
            "loss": "absolute",
            "size": 1,
            "n_cases": 3,
            "n_policies": 3,
            "n_scenarios": 3,
            "seconds": 1.5,
            "scale": {"low": -2.0, "high": 3.0},
        }
        assert {key: record[key] for key in expected} == expected
        assert record["limit"] is None
        assert record["required"] == ["second"]

    def test_infinite_bounds_become_null(self) -> None:
        problem = a_problem()
        test = problem.test(cases=[0, 1], weights=[0.25, 0.75])
        record = self.record(problem, a_solution(test, lower_bound=-math.inf, gap=math.inf))
        assert (record["objective"], record["lower_bound"], record["gap"]) == (0.25, None, None)

    def test_without_a_test_there_are_no_cases(self) -> None:
        solution = a_solution(
            None,
            objective=math.inf,
            lower_bound=-math.inf,
            gap=math.inf,
            status=ro.Status.NO_TEST,
            limit=ro.Limit.TIME,
        )
        record = self.record(a_problem(), solution)
        assert (record["cases"], record["weights"], record["objective"]) == ([], [], None)
        assert (record["status"], record["limit"]) == ("no_test", "the time limit")

    @pytest.mark.parametrize(
        ("measure", "described"),
        [
            (ro.CVaR(0.25), {"name": "cvar", "tail_fraction": 0.25}),
            (ro.KOfN(2, 7), {"name": "k-of-n", "k": 2, "n": 7}),
            (ro.Mean(), {"name": "mean"}),
            (ro.WorstCase(), {"name": "worst"}),
        ],
        ids=repr,
    )
    def test_it_names_the_measure(self, measure: ro.Measure, described: dict[str, object]) -> None:
        problem = a_problem(measure=measure)
        record = self.record(problem, a_solution(problem.test(cases=[0, 1], weights=[0.25, 0.75])))
        assert record["measure"] == described

    @pytest.mark.parametrize(
        "loss",
        [
            ro.AbsoluteError(),
            ro.SquaredError(),
            ro.HuberError(0.25),
            ro.PinballError(0.123456789),
            ro.EpsilonInsensitiveError(1e-7),
        ],
        ids=repr,
    )
    def test_it_names_the_loss_so_that_it_can_be_read_back(self, loss: ro.Loss) -> None:
        problem = a_problem(loss=loss)
        record = self.record(problem, a_solution(problem.test(cases=[0, 1], weights=[0.25, 0.75])))
        assert loss_from_label(record["loss"]) == loss

    def test_a_number_that_json_cannot_say_is_never_written(self) -> None:
        with pytest.raises(ValueError, match="JSON"):
            as_json({"number": math.nan})
