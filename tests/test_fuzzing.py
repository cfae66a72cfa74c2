"""A fuzzer of solvers: problems by name and seed, liars of every kind caught and made small, runs that go on."""

import math
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from commands import Run

import rposst_opt as ro
from formulations.convex import ConvexEnumeration, ConvexSelection
from formulations.direct import DirectMilp
from formulations.milp import MilpSelection
from rposst_opt.backends import BACKENDS, Entry
from rposst_opt.fuzzing import trials
from rposst_opt.fuzzing.families import FAMILIES, draw
from rposst_opt.fuzzing.reproduction import RESULTS, SCRIPT, WITH_THE_PACKAGE, Contradicted, folder_of, run_script
from rposst_opt.fuzzing.run import MOST_FOLDERS, TRIALS, News
from rposst_opt.fuzzing.scripts import SHOWN, Truth, model_files, script_for
from rposst_opt.fuzzing.shrinking import cost, shrink
from rposst_opt.fuzzing.trials import Outcome, Trial
from rposst_opt.referee.findings import Finding

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no solver's process imports this file
pytestmark = pytest.mark.usefixtures("compiled_kernels")

SEED = 2  # of a problem of the family binary that has more than that
LEAST_CASES, LEAST_POLICIES = 3, 2  # where liars begin to lie


# Families


@pytest.mark.parametrize("family", FAMILIES)
def test_a_problem_is_drawn_from_its_family_and_seed_alone(family: str) -> None:
    first = draw(family, 7)
    others = [draw(family, seed) for seed in range(40)]
    assert draw(family, 7) == first == others[7]
    assert sum(other == first for other in others) == 1
    assert all(first != draw(other, 7) for other in FAMILIES if other != family)


@pytest.mark.parametrize("family", FAMILIES)
def test_problems_are_small_enough_to_be_proved_at_once(family: str) -> None:
    drawn = [draw(family, seed) for seed in range(40)]
    assert max(problem.n_tuples for problem in drawn) <= math.comb(9, 3)
    for problem in drawn[:3]:
        assert ro.solve(problem, "exact", time_limit_seconds=5).status is ro.Status.OPTIMAL


def test_families_are_what_they_are_called() -> None:
    def results(family: str) -> list[np.ndarray]:
        return [draw(family, seed).results for seed in range(30)]

    assert all(set(table.ravel()) <= {0.0, 1.0} for table in results("binary"))
    assert all(np.array_equal(table[1], np.roll(table[0], 1)) for table in results("ties"))
    assert max(np.ptp(np.log10(table.max(axis=1))) for table in results("scaled")) > 9
    assert all(np.abs(table).min() > 900 and np.ptp(table) < 2 for table in results("shifted"))
    assert all(len(np.unique(table.round(6), axis=0)) <= 2 for table in results("twins"))
    edges = [draw("edges", seed).targets for seed in range(30)]
    assert all(np.sum((targets > 0) & (targets < 1e-4)) == targets.size - 1 for targets in edges)
    tails = [draw("tails", seed) for seed in range(60)]
    assert any(problem.probabilities.min() < 1e-6 for problem in tails)
    assert any(problem.measure.reach() < 1e-5 for problem in tails)


@pytest.mark.parametrize(
    ("family", "seed", "said"),
    [("parrots", 0, "unknown family 'parrots'. Known: plain, binary"), ("plain", -1, "`seed` must be a whole number")],
)
def test_what_cannot_be_drawn_is_refused(family: str, seed: int, said: str) -> None:
    with pytest.raises(ro.ProblemError, match=said):
        draw(family, seed)


# Shrinking


def test_what_does_not_matter_is_left_out() -> None:
    problem = ro.Problem(
        results=np.random.default_rng(0).random((8, 7)) + 1e6,
        size=3,
        measure=ro.CVaR(0.123456),
        loss=ro.SquaredError(),
        targets=np.random.default_rng(1).dirichlet(np.ones(8), 3),
        required_cases=[2],
        forbidden_cases=[4],
        offset=True,
        noise=0.1,
    )
    small = shrink(problem, lambda smaller: "5" in smaller.case_names and smaller.n_policies >= 2)
    assert small.case_names == ("5",)
    assert (small.n_policies, len(small.targets), small.size) == (2, 1, 1)
    assert (small.required_cases, small.forbidden_cases, small.offset, small.noise) == ((), (), False, None)
    assert (small.loss, small.measure) == (ro.AbsoluteError(), ro.Mean())
    assert set(small.results.ravel()) == {0.0}


def test_what_matters_stays() -> None:
    problem = draw("plain", 3)
    kept = shrink(problem, lambda smaller: smaller == problem)
    assert kept == problem
    needed = float(np.round(problem.results[1, 1], 2))
    small = shrink(problem, lambda smaller: bool((np.round(smaller.results, 2) == needed).any()))
    assert small.results.tolist() == [[needed]]


def test_every_step_is_cheaper_and_questions_are_few() -> None:
    asked: list[ro.Problem] = []

    def contradicts(smaller: ro.Problem) -> bool:
        asked.append(smaller)
        return len(asked) % 3 == 0

    problem = draw("tails", 5)
    small = shrink(problem, contradicts, most_questions=50)
    assert len(asked) <= 50
    accepted = [problem, *asked[2::3]]
    costs = [cost(one) for one in accepted]
    assert costs == sorted(costs, reverse=True) and len(set(costs)) == len(costs)
    assert small == accepted[-1]


# Liars

Lies = Callable[[ro.Problem, ro.Candidate], ro.Candidate]


@dataclass(frozen=True, kw_only=True)
class Liar(DirectMilp):
    """SciPy's solver, but for what is told of its answer where there is room for a lie."""

    lies: Lies

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        candidate = super().solve(problem, budget)
        enough = problem.n_cases >= LEAST_CASES and problem.n_policies >= LEAST_POLICIES
        return self.lies(problem, candidate) if enough else candidate

    def __repr__(self) -> str:
        return f"Liar({self.lies.__name__})"


def smuggled(test: ro.EfficientTest, weights: list[float]) -> ro.EfficientTest:
    """A test that was never checked."""
    copy = replace(test)
    object.__setattr__(copy, "weights", np.array(weights))
    return copy


def wrong_optimum(problem: ro.Problem, candidate: ro.Candidate) -> ro.Candidate:
    assert candidate.claimed_objective is not None
    wrong = candidate.claimed_objective + 0.1 * problem.unit
    return replace(candidate, claimed_objective=wrong, lower_bound=wrong)


def bound_too_high(problem: ro.Problem, candidate: ro.Candidate) -> ro.Candidate:
    return replace(candidate, lower_bound=candidate.lower_bound + 0.1 * problem.unit)


def bound_that_is_no_number(problem: ro.Problem, candidate: ro.Candidate) -> ro.Candidate:
    return replace(candidate, lower_bound=math.nan)


def weights_off(problem: ro.Problem, candidate: ro.Candidate) -> ro.Candidate:
    assert candidate.test is not None
    first, *others = candidate.test.weights.tolist()
    return replace(candidate, test=smuggled(candidate.test, [first + 0.5, *others]))


def weights_that_are_no_numbers(problem: ro.Problem, candidate: ro.Candidate) -> ro.Candidate:
    assert candidate.test is not None
    return replace(candidate, test=smuggled(candidate.test, [math.nan for _ in candidate.test.cases]))


def worse_test(problem: ro.Problem, candidate: ro.Candidate) -> ro.Candidate:
    """The worst single case of any set, and nothing said of its value."""
    tests = [
        problem.test(cases=cases, weights=[float(case == heavy) for case in cases])
        for cases in problem.tuples()
        for heavy in cases
    ]
    worst = max(tests, key=problem.objective)
    return ro.Candidate(test=worst, lower_bound=problem.pieces.minimum())


LIES: dict[str, tuple[Lies, ro.Contradiction]] = {
    "wrong optimum": (wrong_optimum, ro.Contradiction.FALSE_VALUE),
    "bound too high": (bound_too_high, ro.Contradiction.REFUTED_BOUND),
    "bound that is no number": (bound_that_is_no_number, ro.Contradiction.REFUTED_BOUND),
    "weights off": (weights_off, ro.Contradiction.NO_ANSWER),
    "weights that are no numbers": (weights_that_are_no_numbers, ro.Contradiction.NO_ANSWER),
    "worse test": (worse_test, ro.Contradiction.MISSED_OPTIMUM),
}


def table_of(files: dict[str, str], name: str = RESULTS) -> pd.DataFrame:
    return pd.read_csv(StringIO(files[name]), index_col=0, dtype=str).astype(float)


@pytest.mark.parametrize("lie", LIES)
def test_a_liar_is_caught_and_its_problem_made_as_small_as_can_be(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if lie != "worse test":  # one script is enough to be run in a process of its own
        monkeypatch.setattr("rposst_opt.fuzzing.reproduction.run_script", lambda files, arguments: "")
    lies, contradiction = LIES[lie]
    drawn = draw("binary", SEED)
    assert drawn.n_cases > LEAST_CASES and drawn.n_policies > LEAST_POLICIES
    outcome = Trial(family="binary", seed=SEED, backends=("exact", Liar(lies=lies))).run()
    honest, liar = outcome.rows
    assert (honest["verdict"], liar["verdict"]) == ("agrees", "disagrees")
    assert liar["contradiction"] == contradiction.value
    [(name, files)] = outcome.folders.items()
    assert liar["folder"] == name == "contradictions/Liar-binary-2"
    assert table_of(files).shape == (LEAST_CASES, LEAST_POLICIES)
    assert len(table_of(files, "targets.csv")) == 1
    assert "# Liar: " + contradiction.value in files["README.md"]
    assert "a certificate was checked in rational numbers" in files["README.md"]
    # What lies stands between the solver and us, so that the solver alone tells the truth.
    assert ("(it ended with code 0)" in files["README.md"]) is (lie == "worse test")
    assert WITH_THE_PACKAGE not in files  # since no table has this solver


def no_answer_at_all(problem: ro.Problem, candidate: ro.Candidate) -> ro.Candidate:
    raise RuntimeError("no such luck")


def test_a_crash_is_made_small_too_and_contradicts_nobody() -> None:
    outcome = Trial(family="binary", seed=SEED, backends=("exact", Liar(lies=no_answer_at_all))).run()
    assert [(row["verdict"], row["contradiction"]) for row in outcome.rows] == [("agrees", ""), ("crashed", "")]
    [(name, files)] = outcome.folders.items()
    assert name == "crashes/Liar-binary-2"
    assert table_of(files).shape == (LEAST_CASES, LEAST_POLICIES)
    assert "Liar crashed: it raised RuntimeError: no such luck" in files["README.md"]


def test_what_was_told_often_enough_is_counted_only() -> None:
    told = frozenset({("Liar", ro.Contradiction.REFUTED_BOUND.value)})
    outcome = Trial(family="binary", seed=SEED, backends=("exact", Liar(lies=bound_too_high)), told=told).run()
    assert [row["verdict"] for row in outcome.rows] == ["agrees", "disagrees"]
    assert outcome.folders == {}


def test_the_honest_have_no_folder() -> None:
    outcome = Trial(family="twins", seed=1, backends=("exact", "scipy-milp", DirectMilp())).run()
    assert {row["verdict"] for row in outcome.rows} <= {"agrees", "ties"}
    assert outcome.folders == {}


PROBLEM = ro.Problem(results=[[0.0, 1.0, 0.2], [1.0, 0.0, 0.9], [0.4, 0.3, 0.7]], size=2, measure=ro.CVaR(0.5))


def a_negative_weight(problem: ro.Problem, candidate: ro.Candidate) -> ro.Candidate:
    assert candidate.test is not None
    return replace(candidate, test=smuggled(candidate.test, [1.5, -0.5]))


def test_weights_that_sum_to_one_and_are_no_weights_are_no_answer() -> None:
    honest, liar = ro.agree(PROBLEM, ["scipy-milp", Liar(lies=a_negative_weight)]).findings
    assert honest.verdict is ro.Verdict.AGREES
    assert (liar.verdict, liar.contradiction) == (ro.Verdict.DISAGREES, ro.Contradiction.NO_ANSWER)
    assert "must be non-negative and sum to 1, got [1.5, -0.5]" in liar.reason


# Scripts

SOLVERS: dict[str, ro.Backend] = {
    "HIGHS": MilpSelection(solver="HIGHS"),
    "SCIP": MilpSelection(solver="SCIP"),
    "CBC": MilpSelection(solver="CBC"),
    "SciPy": DirectMilp(),
    "CVXPY": ConvexEnumeration(solver="CLARABEL"),
    "CVXPY, own options": ConvexEnumeration(solver="CLARABEL", own_options=True),
    "CVXPY, integers": ConvexSelection(solver="SCIP"),
}
STATED = {
    "absolute": PROBLEM,
    "offset and required": replace(PROBLEM, offset=True, size=1, required_cases=(1,), loss=ro.PinballError(0.8)),
    "mixture": replace(PROBLEM, measure=ro.Mixture([(0.5, ro.WorstCase()), (0.25, ro.Mean()), (0.25, ro.CVaR(0.6))])),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("stated", STATED)
def test_a_script_tells_whether_its_solver_is_right(
    solver: str, stated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = STATED[stated]
    optimum = ro.solve(problem, "exact").objective / problem.unit
    monkeypatch.chdir(tmp_path)
    for reached, code in ((optimum, 0), (optimum - 0.05, SHOWN)):
        truth = Truth(reached=reached, allowed=1e-4, cases=(0, 1))
        script = script_for(SOLVERS[solver], problem, truth, "A solver.")
        assert script is not None
        for name, text in {SCRIPT: script.text, **script.files, **model_files(problem)}.items():
            (tmp_path / name).write_text(text)
        monkeypatch.setattr(sys, "argv", [SCRIPT, *script.arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(SCRIPT)
        assert ended.value.code == code
        assert f"the objective {reached!r}" in capsys.readouterr().out
        assert "rposst" not in script.text


def test_a_script_runs_where_nothing_else_is_imported() -> None:
    optimum = ro.solve(PROBLEM, "exact").objective / PROBLEM.unit
    for reached, code in ((optimum, 0), (optimum - 0.05, SHOWN)):
        script = script_for(SOLVERS["HIGHS"], PROBLEM, Truth(reached, 1e-6, (0, 1)), "HiGHS.")
        assert script is not None and "import highspy" in script.text
        assert f"(it ended with code {code})" in run_script({SCRIPT: script.text, **model_files(PROBLEM)}, ())


def test_our_own_solvers_have_no_script_and_curved_losses_no_linear_model() -> None:
    truth = Truth(0.0, 1e-6, (0,))
    assert script_for(ro.BACKENDS["regret-matching"].make(), PROBLEM, truth, "") is None
    curved = replace(PROBLEM, loss=ro.HuberError())
    assert model_files(curved) == {}
    assert script_for(SOLVERS["CVXPY"], curved, truth, "") is None


def test_the_script_with_the_package_states_the_same_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = ro.Problem(
        results=np.random.default_rng(0).random((5, 2)) / 3,
        size=1,
        measure=ro.Mixture([(0.3, ro.KOfN(1, 7)), (0.7, ro.CVaR(0.1 + 0.2))]),
        loss=ro.PinballError(0.7),
        targets=np.random.default_rng(1).dirichlet(np.ones(5), 3),
        probabilities=np.full((2, 3), 1 / 6),
        required_cases=["b"],
        forbidden_cases=["d"],
        offset=True,
        case_names=list("abcde"),
        policy_names=["north", "south"],
    )
    finding = Finding(backend="scipy-milp", verdict=ro.Verdict.CRASHED)
    found = Contradicted(
        family="plain",
        seed=0,
        drawn=problem,
        backend=DirectMilp(),
        name="scipy-milp",
        is_in_the_table=True,
        finding=finding,
        agreement=ro.Agreement(problem=problem, findings=(finding,)),
    )
    for name, text in folder_of(found).items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    asked: list[ro.Problem] = []

    def agree(problem: ro.Problem, backends: list[str]) -> ro.Agreement:
        asked.append(problem)
        return ro.Agreement(problem=problem, findings=())

    monkeypatch.setattr(ro, "agree", agree)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(WITH_THE_PACKAGE)
    assert ended.value.code is True  # since nobody answered
    assert asked == [problem]


# Runs


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Which trials are run, each with a row for an honest solver and, on even seeds, one for a liar."""
    done: list[tuple[str, int]] = []

    def run(trial: Trial) -> Outcome:
        done.append((trial.family, trial.seed))
        lie = trial.seed % 2 == 0
        folder = f"contradictions/liar-{trial.name}" if lie and not trial.told else ""
        contradiction = "a bound that a test refutes" if lie else ""
        common = {"family": trial.family, "seed": trial.seed, "reason": "", "folder": ""}
        honest = {**common, "backend": "exact", "verdict": "agrees", "contradiction": ""}
        liar = {**common, "backend": "liar", "verdict": "disagrees" if lie else "ties", "folder": folder}
        return Outcome(
            [honest, liar | {"contradiction": contradiction}], {folder: {"README.md": "x"}} if folder else {}
        )

    monkeypatch.setattr(Trial, "run", run)
    return done


def test_a_run_goes_on_where_it_was(runs: list[tuple[str, int]], tmp_path: Path) -> None:
    begun = ro.fuzz(problems=3, seed=5, families=["ties", "plain"], backends=["scipy-milp"], folder=tmp_path)
    assert runs == [("ties", 5), ("plain", 5), ("ties", 6)]
    further = ro.fuzz(problems=5, seed=5, families=["ties", "plain"], backends=["scipy-milp"], folder=tmp_path)
    assert runs[3:] == [("plain", 6), ("ties", 7)]
    assert (begun.n_problems, further.n_problems) == (3, 5)
    assert further.trials.head(6).equals(begun.trials)
    assert pd.read_csv(tmp_path / TRIALS, keep_default_na=False).equals(further.trials)
    ro.fuzz(problems=5, seed=5, families=["ties", "plain"], backends=["pulp-cbc"], folder=tmp_path)
    assert len(runs) == 10  # other solvers were not asked yet


def test_a_run_that_is_killed_has_kept_what_was_done(
    runs: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Trial.run

    def interrupted(trial: Trial) -> Outcome:
        if len(runs) == 2:
            raise KeyboardInterrupt
        return run(trial)

    monkeypatch.setattr(Trial, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ro.fuzz(problems=4, seed=5, families=["plain"], backends=["scipy-milp"], folder=tmp_path)
    assert len(pd.read_csv(tmp_path / TRIALS)) == 2 * 2
    monkeypatch.setattr(Trial, "run", run)
    ro.fuzz(problems=4, seed=5, families=["plain"], backends=["scipy-milp"], folder=tmp_path)
    assert runs == [("plain", 5), ("plain", 6), ("plain", 7), ("plain", 8)]


def test_the_first_contradictions_of_a_kind_are_made_small_and_all_are_counted(
    runs: list[tuple[str, int]], tmp_path: Path
) -> None:
    told: list[News] = []
    report = ro.fuzz(problems=12, seed=0, families=["plain"], backends=[], folder=tmp_path, tell=told.append)
    assert (report.n_problems, len(report.contradictions), report.agreed) == (12, 6, False)
    folders = [f"contradictions/liar-plain-{seed}" for seed in (0, 2, 4)]
    assert sorted(report.folders) == folders
    assert [(tmp_path / name / "README.md").read_text() for name in folders] == ["x"] * MOST_FOLDERS
    assert report.counts.to_dict("index") == {
        "exact": {"agrees": 12, "ties": 0, "disagrees": 0},
        "liar": {"agrees": 0, "ties": 6, "disagrees": 6},
    }
    assert [(news.problems, news.contradictions) for news in told] == [(i + 1, i // 2 + 1) for i in range(12)]


def test_time_ends_a_run(runs: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**6, 10))
    monkeypatch.setattr("rposst_opt.fuzzing.run.time.monotonic", lambda: float(next(clock)))
    report = ro.fuzz(minutes=2, backends=[])
    assert 1 < report.n_problems < 12


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"minutes": 0}, "`minutes` must be a number above 0, got 0"),
        ({"minutes": math.nan}, "`minutes` must be a number above 0, got nan"),
        ({"problems": 0}, "`problems` must be at least 1, got 0"),
        ({"families": ["parrots"]}, "unknown family 'parrots'"),
        ({"backends": ["parrots"]}, "unknown backend 'parrots'"),
    ],
)
def test_a_run_that_makes_no_sense_is_refused(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(ro.RposstError, match=said):
        ro.fuzz(**asked)


def test_the_exact_search_is_always_asked_and_heuristics_only_by_name() -> None:
    asked = trials.who_is_asked(None)
    assert "exact" in asked and "random" not in asked and "scipy-milp" in asked
    assert trials.who_is_asked(["scipy-milp"]) == ("exact", "scipy-milp")
    assert trials.who_is_asked(["scipy-milp", "exact"]) == ("scipy-milp", "exact")


def test_a_trial_can_be_handed_to_another_process() -> None:
    trial = Trial(family="ties", seed=1, backends=("exact", Liar(lies=worse_test)))
    copy = cloudpickle.loads(cloudpickle.dumps(trial))
    assert (copy.name, copy.digest) == (trial.name, trial.digest)
    assert replace(trial, backends=("exact",)).digest != trial.digest
    assert replace(trial, versions=("scipy 0.1",)).digest != trial.digest


# The command


def test_the_command_says_who_agrees(rposst: Run) -> None:
    options = ("--problems", "2", "--families", "binary", "--backends", "scipy-milp")
    outcome = rposst("referee", *options)
    assert (outcome.code, outcome.told) == (0, "")
    assert "2 problems, by every solver" in outcome.out and "Nobody contradicts the facts." in outcome.out
    record = rposst("referee", *options, "--json").json
    assert (record["format"], record["problems"], record["agreed"]) == ("rposst-referee/1", 2, True)
    assert [row["backend"] for row in record["backends"]] == ["exact", "scipy-milp"]
    assert all(sum(row["counts"].values()) == 2 for row in record["backends"])


def test_the_command_keeps_what_contradicts(rposst: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "liar", Entry(__name__, "Liar", {"lies": bound_too_high}))
    options = ("--problems", "1", "--seed", str(SEED), "--families", "binary", "--backends", "liar", "--out", "found")
    outcome = rposst("referee", *options)
    assert outcome.code == 1
    assert "liar disagrees on binary 2: its lower bound" in outcome.told
    assert "1 answer contradicts the facts." in outcome.out
    folder = tmp_path / "found" / "contradictions" / "liar-binary-2"
    assert str(folder.relative_to(tmp_path)) in outcome.out
    assert {RESULTS, SCRIPT, WITH_THE_PACKAGE, "README.md", "model.mps", "model.lp"} <= {
        path.name for path in folder.iterdir()
    }
    again = rposst("referee", *options, "--json")
    assert again.code == 1 and '"agreed": false' in again.out


def test_the_command_refuses_what_it_does_not_know(rposst: Run) -> None:
    outcome = rposst("referee", "--families", "parrots")
    assert outcome.code == 2 and "unknown family 'parrots'" in outcome.err
