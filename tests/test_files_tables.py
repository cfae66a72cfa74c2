from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sample_files import AWKWARD_NAMES, complaint, write_table

import rposst_opt as ro
from rposst_opt.files.tables import match_logs, read_probabilities, read_targets


def read_results(path: Path, **options: Any) -> pd.DataFrame:
    return ro.read_results(path, **options).results


SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";"}


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
        numbers = name in ("1e5", "007")  # which may be results as well as names, so that it must be said
        table = read_results(path, **({"header": True, "names": True} if numbers else {}))
        assert (list(table.index), list(table.columns)) == ([name], [name])
        if numbers:
            assert "--no-header" in complaint(lambda: read_results(path))
            assert "--no-names" in complaint(lambda: read_results(path, header=True))

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
    @pytest.mark.parametrize("text", ["inf", "-inf"])
    @pytest.mark.parametrize("separator", SEPARATORS.values(), ids=SEPARATORS)
    def test_numbers_must_be_finite(self, tmp_path: Path, text: str, separator: str) -> None:
        assert "finite" in self.cell_complaint(tmp_path, text, separator)

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
        assert "--decimal ," in self.cell_complaint(tmp_path, '"0,5"', ",", shown="0,5")

    @pytest.mark.parametrize("text", ["", "   ", '""', "-", "?", "NA", "N/A", "nan", "NaN", "null", " - "])
    def test_a_cell_must_not_be_missing(self, tmp_path: Path, text: str) -> None:
        assert "1 of 6 cells is empty or missing" in self.cell_complaint(tmp_path, text, ",", shown="")

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


class TestMatchLogs:
    def test_they_are_read_in_order_of_their_names(self, tmp_path: Path) -> None:
        for name in ("b.log", "a.log", "c/0.log"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(f"{name}\r\nsecond\n")
        read = list(match_logs(tmp_path))
        assert [name for name, _ in read] == ["a.log", "b.log", "c/0.log"]
        assert read[0][1] == ["a.log", "second"]
