"""Figures are drawn from tables alone, name what they show, and are the same whenever they are drawn."""

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.image import imread

from rposst_opt.experiments import figures
from rposst_opt.experiments.methods import METHODS

CASES = [f"case-{place}" for place in range(5)]


def write_tables(folder: Path, *, domains: tuple[str, ...] = ("first", "second"), title: str = "A title") -> None:
    """What a reproduction leaves behind, made up."""
    rng = np.random.default_rng(0)
    curves, selections, picks = [], [], []
    for domain in domains:
        pd.DataFrame(rng.random((5, 7)), index=CASES, columns=[f"policy-{j}" for j in range(7)]).to_csv(
            folder / f"matrix-{domain}.csv", index_label="test_case"
        )
        for method in METHODS:
            for size in (1, 2):
                for holdout in (0.2, 0.4):
                    errors = np.sort(rng.random(8))[::-1]
                    for rank, error in enumerate(errors, start=1):
                        curves.append((domain, holdout, size, method, rank, error, error - 0.1, error + 0.1))
            for replica in range(4):
                weight = 0.3 if replica < 3 else 0.9
                pair = ("case-1", "case-4") if replica < 3 else ("case-0", "case-2")
                for case, share in zip(pair, (weight, 1 - weight), strict=True):
                    selections.append((domain, 0.2, 2, replica, method, case, share, 0.1))
            picks.append((domain, 0.2, 2, method, "case-1, case-4", 75.0))
    columns = ["domain", "holdout", "size", "method", "rank", "error", "low", "high"]
    pd.DataFrame(curves, columns=columns).to_csv(folder / "curves.csv", index=False)
    columns = ["domain", "holdout", "size", "replica", "method", "case", "weight", "objective"]
    pd.DataFrame(selections, columns=columns).to_csv(folder / "selections.csv", index=False)
    columns = ["domain", "holdout", "size", "method", "cases", "percent"]
    pd.DataFrame(picks, columns=columns).to_csv(folder / "top-picks.csv", index=False)
    titles = pd.DataFrame({"domain": domains, "title": [title] * len(domains)})
    titles.to_csv(folder / "domains.csv", index=False)


def words_of(path: Path) -> str:
    return " ".join("".join(node.itertext()) for node in ElementTree.parse(path).iter() if node.tag.endswith("text"))


@pytest.mark.parametrize("drawing", figures.DRAWINGS)
def test_every_drawing_is_a_picture_and_the_same_bytes_each_time(drawing: str, tmp_path: Path) -> None:
    write_tables(tmp_path, domains=("first",))
    written = figures.draw(drawing, tmp_path)
    assert {path.suffix for path in written} == {".png", ".svg"}
    first = {path: path.read_bytes() for path in written}
    for path in written:
        if path.suffix == ".png":
            picture = imread(path)
            assert min(picture.shape[:2]) > 200
            assert picture[..., :3].std() > 0.01  # something is on it
    figures.draw(drawing, tmp_path)
    assert {path: path.read_bytes() for path in written} == first


def test_other_tables_make_another_picture(tmp_path: Path) -> None:
    write_tables(tmp_path, domains=("first",))
    before = figures.draw("result-matrix", tmp_path)[0].read_bytes()
    matrix = pd.read_csv(tmp_path / "matrix-first.csv", index_col=0)
    matrix.loc["case-0"] = 0.5
    matrix.to_csv(tmp_path / "matrix-first.csv")
    assert figures.draw("result-matrix", tmp_path)[0].read_bytes() != before


def test_grids_name_axes_methods_and_panels_and_have_plain_files(tmp_path: Path) -> None:
    write_tables(tmp_path, domains=("first", "a b&c"), title="Races & <dice>")
    written = figures.draw("error-grids", tmp_path)
    assert len(written) == 4
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", path.name) for path in written)
    words = words_of(tmp_path / "errors-first.svg")
    for wanted in ("Races & <dice>", "m = 2, 40% of policies held out", "share of the", "hardest last"):
        assert wanted in words
    for method in METHODS.values():
        assert method.label in words


def test_frequencies_count_pairs_below_the_diagonal_and_weigh_above_it(tmp_path: Path) -> None:
    write_tables(tmp_path)
    chosen = pd.read_csv(tmp_path / "selections.csv")
    chosen = chosen[(chosen["domain"] == "first") & (chosen["method"] == "exact")]
    counts, weights = figures._pair_counts(chosen, CASES)
    expected = np.zeros((5, 5))
    expected[4, 1], expected[2, 0] = 75.0, 25.0
    np.testing.assert_array_equal(counts, expected)
    assert weights[1, 4] == pytest.approx(0.3)
    assert weights[0, 2] == pytest.approx(0.9)
    assert np.isfinite(weights).sum() == 2


def test_a_case_of_weight_zero_was_not_chosen() -> None:
    chosen = pd.DataFrame({"replica": [0, 0], "case": ["case-0", "case-3"], "weight": [0.0, 1.0]})
    counts, _ = figures._pair_counts(chosen, CASES)
    assert counts[3, 3] == 100.0
    assert counts.sum() == 100.0


def test_frequencies_are_of_pairs_only(tmp_path: Path) -> None:
    write_tables(tmp_path, domains=("first",))
    chosen = pd.read_csv(tmp_path / "selections.csv")
    single = chosen.assign(size=1, weight=1.0).drop_duplicates(["replica", "method"])
    pd.concat([single, chosen, chosen.assign(holdout=0.4)]).to_csv(tmp_path / "selections.csv", index=False)
    written = figures.draw("frequency-matrices", tmp_path)
    names = sorted(path.name for path in written if path.suffix == ".svg")
    assert names == ["frequencies-first-holdout-20.svg", "frequencies-first-holdout-40.svg"]
    assert "case-1 & case-4, 75 %" in words_of(tmp_path / names[0])


def test_the_chosen_pair_and_its_frequency_are_named(tmp_path: Path) -> None:
    write_tables(tmp_path, domains=("first",))
    figures.draw("chosen-pair", tmp_path)
    words = words_of(tmp_path / "chosen-pair-first-holdout-20.svg")
    assert "75 % of replicas" in words
    assert "case-1" in words
    assert "case-4" in words
    assert "case-2" not in words


@given(st.lists(st.floats(0, 1), min_size=1, max_size=11).map(sorted))
def test_names_of_lines_do_not_overlap_and_keep_their_order(wanted: list[float]) -> None:
    heights = figures._apart(wanted, 0.06)
    assert all(upper - lower >= 0.06 - 1e-3 for lower, upper in itertools.pairwise(heights))
    assert heights[-1] <= 1.0
    assert heights[0] > -0.7


def test_heights_that_are_apart_stay() -> None:
    assert figures._apart([0.1, 0.5, 0.9], 0.06) == [0.1, 0.5, 0.9]
