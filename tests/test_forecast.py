"""Predicted times: the model against runs made up by a known law, and what `auto` makes of predictions."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import Run as RunCommand
from hypothesis import given
from hypothesis import strategies as st

import rposst_opt as ro
from rposst_opt.backends import calibration, choose_backend, forecast, table
from rposst_opt.backends.calibration import fit_models, provers, record_of
from rposst_opt.backends.forecast import (
    Model,
    Run,
    as_table,
    effective_rank,
    features,
    fit,
    predict,
    read_table,
    users_table,
)
from rposst_opt.backends.synthetic import KINDS, MEASURES, SyntheticProblem, draw_synthetic

PROBLEM = SyntheticProblem("noisy", 20, 3, 10, 4, "cvar-0.01", "absolute", 0).problem()


@pytest.fixture
def own_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "forecast.csv"
    monkeypatch.setenv(forecast.VARIABLE, str(path))
    return path


def constant(seconds: float) -> Model:
    """A model that predicts the same for every problem."""
    names = features(PROBLEM)
    coefficients = dict.fromkeys(names, 0.0) | {"constant": math.log10(seconds)}
    return Model(coefficients, error=0.1, runs=10, proved=10)


def write(path: Path, seconds: Mapping[str, float]) -> None:
    path.write_text(as_table({name: constant(value) for name, value in seconds.items()}))


class TestFeatures:
    def test_they_are_what_they_are_called(self) -> None:
        found = features(PROBLEM)
        assert found["constant"] == 1.0
        assert found["log_tuples"] == pytest.approx(math.log10(math.comb(20, 3)))
        assert found["log_cases"] == pytest.approx(math.log10(20))
        assert found["log_scenarios"] == pytest.approx(math.log10(40))
        assert found["tail"] == pytest.approx(1 / 40)
        assert found["curved"] == 0.0
        assert features(replace(PROBLEM, measure=ro.Mean()))["tail"] == 1.0
        assert features(replace(PROBLEM, measure=ro.CVaR(0.2)))["tail"] == pytest.approx(0.2)
        assert features(replace(PROBLEM, loss=ro.SquaredError()))["curved"] == 1.0

    @pytest.mark.parametrize("shape", [(40, 9), (9, 40)])
    def test_the_effective_rank_counts_equal_directions(self, shape: tuple[int, int]) -> None:
        rng = np.random.default_rng(0)
        for rank in (1, 2, 4):
            left, _ = np.linalg.qr(rng.normal(size=(shape[0], rank)) - 0.0)
            left -= left.mean(axis=0)
            left, _ = np.linalg.qr(left)
            right, _ = np.linalg.qr(rng.normal(size=(shape[1], rank)))
            assert effective_rank(5.0 + left @ right.T) == pytest.approx(rank)

    @pytest.mark.parametrize("scale", [1e-300, 1e-90, 1e100, 1e150])
    def test_the_effective_rank_has_no_scale(self, scale: float) -> None:
        results = KINDS["real"](20, 10, np.random.default_rng(0))
        assert effective_rank(scale * results) == pytest.approx(effective_rank(results))
        assert ro.solve(ro.Problem(results=scale * results, size=1)).status is ro.Status.OPTIMAL

    def test_cases_that_are_all_alike_have_rank_one(self) -> None:
        assert effective_rank(np.ones((3, 4))) == 1.0
        assert effective_rank(np.full((3, 4), 1e308)) == 1.0


class TestFitting:
    def runs(
        self, law: Mapping[str, float], count: int = 200, noise: float = 0.0, limit: float = math.inf
    ) -> list[Run]:
        rng = np.random.default_rng(0)
        found = []
        for instance in draw_synthetic(count, seed=3):
            of = features(instance.problem())
            seconds = 10 ** (sum(law.get(name, 0.0) * value for name, value in of.items()) + noise * rng.normal())
            found.append(Run(of, min(seconds, limit), seconds <= limit))
        return found

    def test_a_known_law_comes_back(self) -> None:
        law = {"constant": -3.0, "log_tuples": 0.5, "log_scenarios": 1.0, "tail": 0.7}
        model = fit(self.runs(law, noise=0.05))
        for instance in draw_synthetic(20, seed=4):
            of = features(instance.problem())
            expected = 10 ** sum(law.get(name, 0.0) * value for name, value in of.items())
            assert model.seconds(of) == pytest.approx(expected, rel=0.25)
        assert model.error == pytest.approx(0.05, abs=0.02)

    def test_runs_that_were_cut_short_do_not_make_a_backend_look_fast(self) -> None:
        law = {"constant": -3.0, "log_tuples": 1.0}
        runs = self.runs(law, noise=0.05, limit=1.0)
        assert 0.2 < np.mean([run.proved for run in runs]) < 0.8
        model = fit(runs)
        naive = fit([replace(run, proved=True) for run in runs])
        of = features(
            SyntheticProblem("real", 500, 3, 20, 4, "cvar-0.01", "absolute", 0).problem()
        )  # 2e7 tuples: 2e4 s
        assert model.seconds(of) > 500
        assert naive.seconds(of) < model.seconds(of) / 5
        assert model.proved == sum(run.proved for run in runs)

    def test_predictions_stay_within_reason(self) -> None:
        steep = Model({"log_tuples": 1e6}, 0.0, 1, 1)  # one coefficient is enough to be silly
        assert steep.seconds({"log_tuples": 1.0}) == forecast.LONGEST
        assert steep.seconds({"log_tuples": -1.0}) == forecast.SHORTEST


class TestTables:
    def test_a_table_comes_back(self, tmp_path: Path) -> None:
        models = {"exact": constant(0.01), "pulp-cbc": constant(3.0)}
        (tmp_path / "table.csv").write_text(as_table(models))
        back = read_table(tmp_path / "table.csv")
        assert list(back) == ["exact", "pulp-cbc"]
        for name, model in models.items():
            assert back[name].seconds(features(PROBLEM)) == pytest.approx(model.seconds(features(PROBLEM)), rel=1e-3)
            assert back[name].runs == 10

    @pytest.mark.parametrize("text", ["backend,constant\nexact,1\n", "x", "backend,error,runs,proved\nexact,a,1,1\n"])
    def test_another_file_is_refused(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "table.csv"
        path.write_text(text + "\n" if text != "x" else "nonsense\nx\n")
        with pytest.raises(ro.ProblemError, match=r"table\.csv: this is no table of predicted times"):
            read_table(path)

    def test_the_packages_table_covers_the_provers_and_the_features(self) -> None:
        table = read_table(forecast.TABLE)
        assert set(provers()) <= set(table)
        for model in table.values():
            assert set(model.coefficients) == set(features(PROBLEM))

    def test_a_users_table_takes_precedence_and_may_change(self, own_table: Path) -> None:
        packaged = predict(PROBLEM, ["exact"])["exact"]
        write(own_table, {"exact": 1234.0})
        assert predict(PROBLEM, ["exact", "pulp-cbc"]) == {"exact": pytest.approx(1234.0, rel=1e-3)}
        own_table.unlink()
        assert predict(PROBLEM, ["exact"])["exact"] == packaged

    def test_the_configuration_folder_is_where_it_belongs(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.delenv(forecast.VARIABLE, raising=False)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        assert users_table() == tmp_path / "rposst-opt" / "forecast.csv"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0123, "12 ms"),
        (0.5, "500 ms"),
        (0.987, "990 ms"),
        (3.21, "3.2 s"),
        (99.0, "99 s"),
        (110.0, "1.8 minutes"),
        (5400.0, "90 minutes"),
        (7200.0, "2 hours"),
        (8.64e7, "1000 days"),
        (1e12, "years"),
    ],
)
def test_predicted_times_in_words(seconds: float, words: str) -> None:
    assert forecast.in_words(seconds) == words


def test_an_empty_variable_names_no_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(forecast.VARIABLE, "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert predict(PROBLEM, ["exact"])


class TestChoice:
    def test_exact_is_taken_and_the_solution_says_what_was_predicted(self, own_table: Path) -> None:
        write(own_table, {"exact": 50.0, "scipy-milp": 2.0, "pulp-highs": 7.0})
        solution = ro.solve(PROBLEM)
        assert solution.backend == "exact"
        assert solution.choice is not None
        assert solution.choice.predicted_seconds["pulp-highs"] == pytest.approx(7.0, rel=1e-3)
        assert solution.choice.reason == "predicted to prove the optimum in about 50 s"

    def test_without_it_the_soonest_is_taken(self, own_table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(own_table, {"exact": 0.5, "scipy-milp": 2.0, "pulp-highs": 7.0})
        monkeypatch.delitem(table.BACKENDS, "exact")
        choice = choose_backend(PROBLEM)
        assert choice.backend == "scipy-milp"
        assert choice.reason == "predicted to prove the optimum soonest, in about 2 s"

    def test_a_gap_that_will_do_is_part_of_the_prediction(self, own_table: Path) -> None:
        names = features(PROBLEM)
        hasty = Model(dict.fromkeys(names, 0.0) | {"constant": 2.0, "log_gap": -2.0}, 0.1, 10, 10)
        own_table.write_text(as_table({"exact": hasty}))
        assert choose_backend(PROBLEM).reason == "predicted to prove the optimum in about 1.7 minutes"
        choice = choose_backend(PROBLEM, gap=0.1)  # log10(1 + 0.1 / 0.001) is 2: it takes 0.01 s
        assert choice.reason == "predicted to prove a gap of 0.1 in about 9.8 ms"

    def test_times_too_short_to_tell_apart_leave_the_order_of_the_table(
        self, own_table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(table.BACKENDS, "exact")
        write(own_table, {"pulp-highs": 0.0002, "scipy-milp": 0.004})
        first = next(name for name in table.BACKENDS if name in ("pulp-highs", "scipy-milp"))
        assert choose_backend(PROBLEM).backend == first

    def test_the_smallest_problems_are_left_to_the_exact_solver(self) -> None:
        assert choose_backend(ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1)).backend == "exact"

    def test_a_named_backend_has_no_choice(self) -> None:
        assert ro.solve(PROBLEM, "exact").choice is None

    def test_those_that_are_not_installed_or_cannot_are_passed_over(
        self, own_table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(own_table, {"exact": 50.0, "scipy-milp": 2.0, "pulp-scip": 0.1})
        monkeypatch.setattr(table, "find_spec", lambda package: None if package in ("pyscipopt", "numba") else object())
        assert choose_backend(PROBLEM).backend == "scipy-milp"
        assert choose_backend(replace(PROBLEM, loss=ro.SquaredError())).backend != "scipy-milp"

    def test_options_narrow_the_choice(self, own_table: Path) -> None:
        write(own_table, {"exact": 50.0, "scipy-milp": 2.0})
        assert choose_backend(PROBLEM, ["certificate"]).backend == "exact"
        assert choose_backend(PROBLEM, ["rounds"]).backend == "regret-matching"

    def test_without_time_for_a_proof_it_is_still_the_one_that_has_all_parts(self, own_table: Path) -> None:
        write(own_table, {"exact": 50.0, "scipy-milp": 20.0})
        choice = choose_backend(PROBLEM, time_limit_seconds=10.0)
        assert choice.backend == "exact"
        assert choice.reason == (
            "predicted to prove the optimum in about 50 s, so within 10 s it looks for a good test and a bound"
        )

        odd, long = (choose_backend(PROBLEM, time_limit_seconds=seconds).reason for seconds in (10.2676, 12.0))
        assert "within 10.3 s" in odd and "within 12 s" in long

    def test_a_run_that_may_take_long_says_so_beforehand_unless_it_has_a_limit(self, own_table: Path) -> None:
        write(own_table, {"exact": 7200.0})
        with pytest.warns(ro.RposstWarning, match=r"^this may take long: exact is predicted to prove the optimum in "):
            ro.solve(PROBLEM)
        ro.solve(PROBLEM, time_limit_seconds=60.0)
        ro.solve(PROBLEM, "exact")

    def test_a_backend_that_the_table_does_not_know_comes_last(
        self, own_table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delitem(table.BACKENDS, "exact")
        write(own_table, {"pulp-cbc": 50.0})
        assert choose_backend(PROBLEM).backend == "pulp-cbc"

    @pytest.mark.slow
    def test_only_what_is_looked_at_is_imported(self, own_table: Path) -> None:
        """Importing CVXPY takes a second, which nobody should wait for who does not use it."""
        import subprocess
        import sys

        write(own_table, {"exact": 0.01, "cvxpy-clarabel": 2.0, "pulp-cbc": 3.0})
        code = (
            "import sys, rposst_opt as ro\n"
            "ro.solve(ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1))\n"
            "assert not {'cvxpy', 'pulp'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


class TestInstances:
    @given(st.integers(0, 10**6))
    def test_they_are_valid_and_the_same_each_time(self, seed: int) -> None:
        drawn = draw_synthetic(5, seed)
        assert drawn == draw_synthetic(5, seed)
        for instance in drawn:
            problem = instance.problem()
            assert (problem.n_cases, problem.size) == (instance.n, instance.m)
            np.testing.assert_array_equal(problem.results, instance.problem().results)

    def test_all_kinds_and_measures_turn_up(self) -> None:
        drawn = draw_synthetic(100, 0)
        assert {instance.kind for instance in drawn} == set(KINDS)
        assert {instance.measure for instance in drawn} == set(MEASURES)
        assert {instance.loss for instance in drawn} == {"absolute", "squared"}

    def test_kinds_are_what_they_are_called(self) -> None:
        rng = np.random.default_rng(0)
        assert set(np.unique(KINDS["binary"](30, 20, rng))) == {0.0, 1.0}
        assert effective_rank(KINDS["low-rank"](60, 40, rng)) < 6 < effective_rank(KINDS["real"](60, 40, rng))
        noisy = KINDS["noisy"](30, 20, rng) * 20
        np.testing.assert_allclose(noisy, noisy.round())

    def test_records_of_runs_are_fitted_and_others_passed_over(self) -> None:
        instances = draw_synthetic(12, 5)
        easy = [instance for instance in instances if instance.problem().n_tuples < 10**5]
        records = [record_of(each, "exact", ro.solve(each.problem(), "exact", time_limit_seconds=1)) for each in easy]
        records.append({**records[0], "backend": "exact", "status": "declined", "seconds": math.nan})
        records.append({**records[0], "backend": "pulp-cbc", "status": "feasible", "proved": False})
        models = fit_models(records)
        assert list(models) == ["exact"]  # the other has proved nothing
        assert models["exact"].runs == len(easy)


@pytest.mark.slow
def test_calibrating_writes_a_table_that_auto_reads(
    rposst: RunCommand, own_table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "provers", lambda: ["exact", "scipy-milp"])
    done = rposst("calibrate", "--seconds", "5")
    assert done.code == 0, done.err
    assert own_table.read_text() == done.out
    assert "exact" in read_table(own_table)
    assert str(own_table) in done.err.replace("\n", "")
    assert "auto predicts by this table now" in done.err.replace("\n", " ")
    elsewhere = rposst("calibrate", "--seconds", "1", "--out", "mine.csv")
    assert elsewhere.code == 0
    assert "auto predicts by this table now" not in elsewhere.err.replace("\n", " ")
    assert Path("mine.csv").read_text() == elsewhere.out


def test_the_command_line_prints_predicted_times_and_the_choice(rposst: RunCommand, own_table: Path) -> None:
    write(own_table, {"exact": 0.02, "scipy-milp": 7200.0})
    rposst("domain", "racing-arrows-follower", "--n", "8", "--out", "arrows.csv")
    shown = rposst("backends", "arrows.csv", "--size", "2").out
    assert "can solve this problem, predicted to take 20 ms to a proved optimum" in shown
    assert "predicted to take 2 hours to a proved optimum" in shown
    assert "auto stands for exact: predicted to prove the optimum in about 20 ms." in shown
    record = rposst("backends", "arrows.csv", "--size", "2", "--time-limit", "0.001", "--json").json
    assert record["auto"] == "exact"
    assert record["reason"].endswith("so within 0.001 s it looks for a good test and a bound")
    by_name = {row["name"]: row for row in record["backends"]}
    assert by_name["scipy-milp"]["predicted_seconds"] == pytest.approx(7200.0, rel=1e-3)
    assert by_name["random"]["predicted_seconds"] is None
    solved = rposst("solve", "arrows.csv", "--size", "2", "--json").json
    assert solved["choice"]["reason"].startswith("predicted to prove")
    write(own_table, {"exact": 7200.0})
    assert "Note: this may take long: exact is predicted to prove" in rposst("solve", "arrows.csv", "--size", "2").err


def test_calibration_measures_only_those_that_prove(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "exact" in provers()
    assert not {"local-search", "regret-matching", "random"} & set(provers())
    models = calibration.calibrate(1.0, backends=["exact"])
    assert list(models) == ["exact"]
