"""What can be reproduced by name, and what comes of it; the runs here are small."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rposst_opt as ro
from rposst_opt.experiments import reproductions
from rposst_opt.experiments.protocol import Choice, Split, holdout_errors
from rposst_opt.experiments.reproductions import DOMAINS, REPRODUCTIONS, Request, names_for_all, quick, reproduce

METHODS = ("regret-matching", "exact", "minimax-uniform", "random")


def poker_table(n: int = 8, seed: int = 0) -> pd.DataFrame:
    noise = 300 * np.random.default_rng(seed).normal(size=(n, n))
    names = [f"agent-{place}" for place in range(n)]
    return pd.DataFrame(noise - noise.T, index=names, columns=names)


def request(folder: Path, **changes: object) -> Request:
    asked: dict[str, object] = {"replicas": 2, "sizes": (2,), "methods": METHODS, **changes}
    return Request(folder=folder, **asked)  # type: ignore[arg-type]


def test_names_point_at_domains_and_drawings_that_exist() -> None:
    from rposst_opt.experiments.figures import DRAWINGS

    for asked in REPRODUCTIONS.values():
        assert set(asked.domains) <= set(DOMAINS)
        assert set(asked.draws) <= set(DRAWINGS)
        assert asked.place
        assert asked.needs


def test_every_figure_and_table_of_the_papers_experiments_has_a_name() -> None:
    said = " ".join(asked.place for asked in REPRODUCTIONS.values())
    for part in (
        "six domains",
        "50 policies",
        "500 policies",
        "ACPC",
        "collisions",
        "win-rate matrix",
        "which pairs each method chooses",
        "time to run T = 500",
    ):
        assert part in said


def test_a_poker_reproduction_writes_tables_and_figures(tmp_path: Path) -> None:
    table = poker_table()
    written = reproduce("poker", request(tmp_path, poker={"made-up": table}, every_error=True))
    assert all(path.exists() for path in written)
    folder = tmp_path / "poker"
    names = {path.name for path in written}
    assert {"selections.csv", "curves.csv", "summary.csv", "top-picks.csv", "errors.csv.gz", "domains.csv"} <= names
    assert {"errors-made-up.png", "errors-made-up.svg", "matrix-made-up.csv"} <= names
    back = ro.read_results(folder / "matrix-made-up.csv").results
    np.testing.assert_array_equal(back.to_numpy(), table.to_numpy())

    errors = pd.read_csv(folder / "errors.csv.gz")
    curves = pd.read_csv(folder / "curves.csv")
    for (holdout, method), rows in errors.groupby(["holdout", "method"]):
        hardest = rows.groupby("replica")["error"].max().mean()
        first = curves[(curves["holdout"] == holdout) & (curves["method"] == method) & (curves["rank"] == 1)]
        assert float(first["error"].iloc[0]) == pytest.approx(hardest)
    assert gzip.decompress((folder / "errors.csv.gz").read_bytes()).startswith(b"domain,holdout,size,replica")


def test_the_written_selections_and_matrix_give_the_written_errors(tmp_path: Path) -> None:
    """A stranger can check the errors from the CSV files alone."""
    reproduce("poker", request(tmp_path, poker={"made-up": poker_table()}, every_error=True, holdouts=(0.4,)))
    folder = tmp_path / "poker"
    matrix = ro.read_results(folder / "matrix-made-up.csv").results
    chosen = pd.read_csv(folder / "selections.csv")
    errors = pd.read_csv(folder / "errors.csv.gz")
    rows = list(matrix.index)
    for (replica, method), test in chosen.groupby(["replica", "method"]):
        here = errors[(errors["replica"] == replica) & (errors["method"] == method)]
        held = [matrix.columns.get_loc(name) for name in dict.fromkeys(here["policy"])]
        split = Split(
            cases=np.arange(8),
            tuning=np.array([place for place in range(8) if place not in held]),
            holdout=np.array(held),
        )
        choice = Choice(str(method), tuple(rows.index(name) for name in test["case"]), tuple(test["weight"]), 0.0)
        found = holdout_errors(matrix.to_numpy(), split, choice)
        np.testing.assert_allclose(here["error"], found.ravel(), atol=1e-12)


def test_all_takes_what_is_possible(tmp_path: Path) -> None:
    assert "poker" not in names_for_all(request(tmp_path))
    assert names_for_all(request(tmp_path, poker={"x": poker_table()})) == list(REPRODUCTIONS)


def test_poker_without_tables_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(ro.ProblemError, match="poker needs tables of duplicate scores"):
        reproduce("poker", request(tmp_path))


def test_an_unknown_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        ro.ProblemError, match=r"unknown name 'pokre': did you mean 'poker'\? Known: test-score-error, racing-arrows,"
    ):
        reproduce("pokre", request(tmp_path))


def test_quick_is_five_replicas_of_pairs_unless_told_otherwise(tmp_path: Path) -> None:
    short = quick(Request(folder=tmp_path))
    assert (short.replicas, short.sizes) == (5, (2,))
    assert quick(Request(folder=tmp_path, replicas=7, sizes=(1,))).replicas == 7
    assert quick(Request(folder=tmp_path, replicas=7, sizes=(1,))).sizes == (1,)


def test_the_500_arrows_leave_20_of_both_roles(tmp_path: Path) -> None:
    asked = request(tmp_path, replicas=1)
    studies = reproductions._studies(REPRODUCTIONS["racing-arrows-500"], asked)
    for study in studies:
        task = study.task(next(study.cells()))
        assert study.table.shape == (500, 500)
        assert task.tuning.shape == (20, 20)


def test_panels_share_what_grids_have_run(tmp_path: Path) -> None:
    reproduce("poker", request(tmp_path, poker={"made-up": poker_table()}, holdouts=(0.2,)))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.json")}
    told: list[tuple[str, int, int]] = []
    asked = request(
        tmp_path, poker={"made-up": poker_table()}, tell=lambda what, done, total: told.append((what, done, total))
    )
    panels = reproductions.Reproduction(
        place="", takes_tables=True, holdouts=(0.2,), sizes=(2,), draws=("error-panels",)
    )
    reproductions._write_tables(tmp_path, panels, asked)
    assert ("choosing tests", 2, 2) in told
    assert ("choosing tests", 1, 2) not in told
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.json")} == before


def test_runtimes_have_the_papers_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_poker = replace(REPRODUCTIONS["runtimes"], domains=(), replicas=1)
    monkeypatch.setitem(REPRODUCTIONS, "runtimes", only_poker)
    written = reproduce("runtimes", Request(folder=tmp_path, poker={"made-up": poker_table()}))
    table = pd.read_csv(written[0])
    assert table["method"].tolist() == ["T = 500", "T = 500, pruned", "exact"] * 3
    assert (table["seconds"] > 0).all()
    assert set(table["paper_seconds_16_cores"]) == {10.0}
