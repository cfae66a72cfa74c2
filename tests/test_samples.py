"""The tables that come with the package: the script that made them makes them again, and none is lost by writing."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
from commands import Run

import rposst_opt as ro

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "rposst_opt/samples"


def made_again() -> dict[str, str]:
    spec = spec_from_file_location("make_samples", ROOT / "docs/make_samples.py")
    assert spec is not None and spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    texts: dict[str, str] = script.samples()
    return texts


def test_the_script_makes_the_tables_that_are_shipped() -> None:
    assert made_again() == {path.name: path.read_text() for path in FOLDER.iterdir()}


def test_the_tables_belong_together() -> None:
    results, new, cases = ro.sample_results(), ro.sample_results(new_models=True), ro.sample_cases()
    assert list(results.index) == list(new.index) == list(cases.index)
    assert not set(results.columns) & set(new.columns)
    long = pd.read_csv(FOLDER / "long.csv").pivot(index="task", columns="model", values="score")
    again = long.loc[results.index, results.columns]
    assert 0 < again.isna().sum().sum() < again.size / 20
    assert ((again == results) | again.isna()).all(axis=None)


def test_tables_are_written_as_they_are_shipped_and_said_to_be_made_up(rposst: Run, tmp_path: Path) -> None:
    options = {"out": "results", "cases-out": "cases", "new-out": "new_models", "long-out": "long", "runs-out": "runs"}
    named = [part for option, name in options.items() for part in (f"--{option}", f"{name}.csv")]
    written = rposst("sample", *named)
    assert written.code == 0 and "made up" in written.err
    for name in options.values():
        assert (tmp_path / f"{name}.csv").read_bytes() == (FOLDER / f"{name}.csv").read_bytes()


def test_a_file_that_is_there_is_not_lost(rposst: Run, tmp_path: Path) -> None:
    mine = tmp_path / "results.csv"
    mine.write_text("my own")
    refused = rposst("sample", "--new-out", "new.csv", "--out", "results.csv")
    assert refused.code == 2 and "results.csv exists already" in refused.err
    assert mine.read_text() == "my own" and not (tmp_path / "new.csv").exists()
    assert rposst("sample", "--out", "results.csv", "--force").code == 0
    assert mine.read_text().startswith("task,")
    twice = rposst("sample", "--out", "one.csv", "--new-out", "./one.csv")
    assert twice.code == 2 and "named twice" in twice.err
    nothing = rposst("sample")
    assert nothing.code == 2 and "--out names the file" in nothing.err
