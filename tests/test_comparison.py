"""Who had what when: what solvers tell on their way is kept, scored, held against the facts, and shown."""

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from commands import Run
from matplotlib.lines import Line2D

import rposst_opt as ro
from formulations.incumbents import Listener, listen_to_gurobi
from rposst_opt import plots
from rposst_opt.backends import BACKENDS, Entry
from rposst_opt.referee.nursery import Account, Voice
from rposst_opt.reports.looks import COLOURS

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no solver's process imports this file

# The case at 2 misses both policies by 1/15, the others by 8/15.
PROBLEM = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1, measure=ro.WorstCase())
GOOD, BAD = (PROBLEM.test(cases=[case], weights=[1.0]) for case in (2, 0))
LEAST, MOST = PROBLEM.objective(GOOD), PROBLEM.objective(BAD)
ABILITY = ro.Capabilities(
    method="telling", handles=frozenset(ro.Need), finds_optimum=True, proves="anything", tolerance=1e-6
)


def told(objective: float, bound: float = -math.inf, test: ro.EfficientTest | None = None) -> ro.Progress:
    return ro.Progress(done=0, total=0, objective=objective, lower_bound=bound, test=test)


@dataclass(frozen=True)
class Teller:
    """A backend that tells this, does that, and then answers."""

    tells: tuple[Any, ...]
    does: Callable[[ro.Budget], object] = bool
    test: ro.EfficientTest = GOOD
    lower_bound: float = LEAST
    capabilities: ro.Capabilities = ABILITY

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        for progress in self.tells:
            budget.tell(progress)
        self.does(budget)
        return ro.Candidate(test=self.test, lower_bound=self.lower_bound)


HONEST = (told(math.inf, 0.0), told(MOST, 0.0, BAD), told(LEAST, 0.05, GOOD), told(LEAST, LEAST, GOOD))


def compared(*tellers: Teller, problem: ro.Problem = PROBLEM, **options: Any) -> ro.Comparison:
    return ro.compare(problem, tellers, seconds=20.0, warm_up=False, **options)


def of(comparison: ro.Comparison, place: int = 0) -> pd.DataFrame:
    names = list(dict.fromkeys(finding.backend for finding in comparison.findings))
    frame = comparison.frame
    return frame[frame["backend"] == names[place]].reset_index(drop=True)


# What an honest one tells.


def test_a_known_series_is_kept_in_its_order_and_scored() -> None:
    comparison = compared(Teller(HONEST))
    rows = of(comparison)
    np.testing.assert_array_equal(rows["objective"], [math.nan, MOST, LEAST, LEAST, LEAST])
    np.testing.assert_array_equal(rows["claimed_objective"], [math.nan, MOST, LEAST, LEAST, math.nan])
    np.testing.assert_array_equal(rows["claimed_bound"], [0.0, 0.0, 0.05, LEAST, LEAST])
    assert rows["is_end"].tolist() == [False] * 4 + [True]
    assert rows["contradiction"].tolist() == [""] * 5
    assert rows["seconds"].is_monotonic_increasing
    (row,) = comparison.table.to_dict("records")
    assert (row["verdict"], row["objective"], row["gap"], row["tells_tests"]) == ("agrees", LEAST, 0.0, True)
    assert row["first_test_seconds"] == rows["seconds"][1]
    assert row["near_best_seconds"] == rows["seconds"][2]
    assert row["seconds"] == rows["seconds"][4]


def test_within_one_percent_is_of_the_best_that_anybody_found() -> None:
    slow = Teller((told(MOST, 0.0, BAD),), test=BAD, lower_bound=0.0, capabilities=replace(ABILITY, is_heuristic=True))
    comparison = compared(slow, Teller(()))
    assert comparison.best_objective == LEAST
    table = comparison.table
    assert table["near_best_seconds"].notna().tolist() == [False, True]
    assert table["first_test_seconds"].notna().tolist() == [True, True]
    assert table["tells_tests"].tolist() == [True, False]  # of the second nobody knows when it had its test


def test_news_reaches_whoever_asked_while_the_solver_runs_and_findings_come_one_by_one() -> None:
    events: list[Any] = []
    ro.agree(
        PROBLEM,
        [Teller(HONEST[:2]), Teller(())],
        progress=lambda name: events.append(("asked", name)),
        heard=lambda name, seconds, progress: events.append((name, progress.objective, progress.test, seconds >= 0)),
        found=lambda finding: events.append(("found", finding.backend, finding.objective)),
    )
    assert events == [
        ("asked", "Teller"),
        ("Teller", math.inf, None, True),
        ("Teller", MOST, BAD, True),
        ("found", "Teller", LEAST),
        ("asked", "Teller (2)"),
        ("found", "Teller (2)", LEAST),
    ]


def test_what_is_not_new_is_told_once_in_a_while_at_most() -> None:
    same = told(LEAST, 0.0, GOOD)
    rows = of(compared(Teller((same,) * 2000 + (told(LEAST, 0.01, GOOD), told(LEAST - 1e-9, 0.01)))))
    changes = rows.drop_duplicates(["claimed_objective", "claimed_bound"])
    assert changes["claimed_bound"].tolist()[:3] == [0.0, 0.01, 0.01]
    assert len(rows) < 200


class Noting:
    """Keeps what is said to it."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def say(self, what: object) -> None:
        self.said.append(what)


def test_what_is_told_after_the_answer_is_told_to_nobody() -> None:
    voice = Noting()
    account = Account(cast(Voice, voice))
    account.tell(HONEST[0])
    account.close()
    account.tell(HONEST[1])  # by a thread that a solver has left behind: the next question would hear it
    assert [piece.progress for piece in voice.said] == [HONEST[0]]


def test_with_an_offset_tests_are_told_of_as_those_of_the_users_problem() -> None:
    problem = replace(PROBLEM, offset=True)
    comparison = ro.compare(problem, ["exact", "minimax-uniform"], time_limit_seconds=20.0, warm_up=False)
    assert [finding.verdict for finding in comparison.findings] == [ro.Verdict.AGREES] * 2
    for finding in comparison.findings:
        tests = [point.test for point in finding.profile if point.test is not None]
        assert len(tests) >= 2
        assert all(problem.why_not(test) is None for test in tests)


# Those who lie on their way.

FALSE = {
    "a bound above its own test": (
        told(MOST, MOST + 0.1, BAD),
        "it says that no test is below 0.633333333",
        MOST + 0.1,
    ),
    "a bound above its own number": (told(MOST, 0.6), "and that it has one at 0.533333333", 0.6),
    "a bound above what another reached": (told(math.inf, 0.2), "its lower bound 0.2 is refuted by Teller's test", 0.2),
    "a bound that is no number": (told(LEAST, math.nan, GOOD), "its lower bound is NaN", math.nan),
    "an objective that its test has not": (
        told(0.01, 0.0, BAD),
        "says that its test is worth 0.01, and the judge",
        0.0,
    ),
    "no test for this problem": (
        told(0.0, 0.0, ro.EfficientTest(cases=[0, 1], weights=[0.5, 0.5], n_cases=3)),
        "it tells of a test that is none",
        0.0,
    ),
}


@pytest.mark.parametrize("what", FALSE)
def test_a_contradiction_on_the_way_is_shown_and_only_the_liar_is_named(what: str) -> None:
    false, reason, bound = FALSE[what]
    comparison = compared(Teller(()), Teller((told(math.inf, 0.0), false, told(LEAST, 0.0, GOOD))))
    honest, liar = comparison.findings
    assert (honest.verdict, liar.verdict) == (ro.Verdict.AGREES, ro.Verdict.DISAGREES)
    assert reason in liar.reason and liar.reason.startswith("on its way, after ")
    rows = of(comparison, 1)
    assert (rows["contradiction"] != "").tolist() == [False, True, False, False]
    np.testing.assert_array_equal(rows["claimed_bound"][1], bound)  # as it was told, not as it ought to be
    assert not comparison.agreement.agreed


def test_a_number_without_a_test_is_a_claim_and_never_an_objective() -> None:
    comparison = compared(Teller((told(0.001), told(0.0))), Teller(()))
    rows = of(comparison)
    np.testing.assert_array_equal(rows["objective"], [math.nan, math.nan, LEAST])
    np.testing.assert_array_equal(rows["claimed_objective"], [0.001, 0.0, math.nan])
    assert comparison.best_objective == LEAST
    assert not comparison.table["tells_tests"][0]


def test_what_is_no_progress_is_the_solvers_own_error() -> None:
    tells = ("half way", told("low"), replace(told(0.5), test="a test"))  # type: ignore[arg-type]
    comparison = compared(*(Teller((what,)) for what in tells))
    assert [finding.reason for finding in comparison.findings] == [
        "it raised TypeError: what it tells of its progress is a str, not a Progress",
        "it raised TypeError: it tells of 'low' where a number is due",
        "it raised TypeError: the test that it tells of is a str, not an EfficientTest",
    ]


# Those who do not live to answer.


def hangs(budget: ro.Budget) -> None:
    while True:
        time.sleep(1)


def talks_without_end(budget: ro.Budget) -> None:
    bound = 0.0
    while True:
        budget.tell(told(LEAST, bound := bound + 1e-9, GOOD))
        time.sleep(1e-3)


def crashes(budget: ro.Budget) -> None:
    raise MemoryError("all is full")


@pytest.mark.parametrize("does", [hangs, talks_without_end])
def test_one_that_hangs_after_its_news_is_killed_and_its_profile_kept(does: Callable[[ro.Budget], None]) -> None:
    compared(Teller(()))  # so that nothing is imported in the seconds that are given
    comparison = ro.compare(PROBLEM, [Teller(HONEST[:3], does)], seconds=1.0, warm_up=False, patience_seconds=1.0)
    (finding,) = comparison.findings
    assert finding.verdict is ro.Verdict.PROVED_LESS
    assert "it did not answer within 2 s" in finding.reason
    assert "the best one that it told of on its way" in finding.reason
    assert finding.solution is not None and finding.solution.test == PROBLEM.tuned(GOOD)
    rows = of(comparison)
    np.testing.assert_array_equal(rows["objective"][:3], [math.nan, MOST, LEAST])
    assert not rows["is_end"].any()


def test_tests_of_one_that_died_are_facts_all_the_same() -> None:
    dies = Teller((told(LEAST, 0.0, GOOD),), crashes)
    sure = Teller((), test=BAD, lower_bound=MOST)
    comparison = compared(dies, sure)
    died, refuted = comparison.findings
    assert (died.verdict, died.solution) == (ro.Verdict.CRASHED, None)
    assert refuted.verdict is ro.Verdict.DISAGREES
    assert "is refuted by Teller's test at 0.0666666667" in refuted.reason
    assert comparison.table["objective"][0] == comparison.best_objective == LEAST


# Solvers as they are.


@cache
def middling_problem() -> ro.Problem:
    results = np.random.default_rng(5).random((11, 9))
    return ro.Problem(results=results, size=2, measure=ro.CVaR(0.3))


REAL = ["exact", "regret-matching", "local-search", "pulp-highs", "pulp-scip", "cvxpy-clarabel", "scipy-milp"]


@cache
def comparison_of_solvers() -> ro.Comparison:
    return ro.compare(middling_problem(), REAL, seconds=60.0, threads=1, warm_up=False)


@pytest.mark.usefixtures("compiled_kernels")
class TestRealSolvers:
    def test_none_contradicts_itself_or_another_on_its_way(self) -> None:
        comparison = comparison_of_solvers()
        assert (comparison.frame["contradiction"] == "").all(), comparison.frame
        assert comparison.agreement.agreed
        best = comparison.best_objective
        assert (comparison.frame["claimed_bound"].dropna() <= best + 1e-6).all()

    @pytest.mark.parametrize("name", REAL)
    def test_profiles_go_down_to_the_answer(self, name: str) -> None:
        (finding,) = [each for each in comparison_of_solvers().findings if each.backend == name]
        assert finding.solution is not None
        objectives = [point.objective for point in finding.profile]
        assert objectives == sorted(objectives, reverse=True)
        assert finding.profile[-1].is_end
        # The judge's score of the last test is that of the answer, by whatever way it came here.
        assert objectives[-1] == pytest.approx(finding.solution.objective, abs=1e-9)

    def test_it_is_known_who_tells_of_tests(self) -> None:
        table = comparison_of_solvers().table.set_index("backend")
        assert table.index[table["tells_tests"]].tolist() == REAL[:-1]
        assert table.loc["scipy-milp", "moments"] == 1

    def test_milp_solvers_tell_of_tests_that_are_no_better_than_their_bounds(self) -> None:
        frame = comparison_of_solvers().frame
        for name in ("pulp-highs", "pulp-scip"):
            rows = frame[frame["backend"] == name]
            assert (rows["claimed_bound"].fillna(-1.0) <= rows["objective"].fillna(9.0) + 1e-6).all()
            bounds = rows["claimed_bound"].dropna()
            assert bounds.is_monotonic_increasing


@dataclass(frozen=True, kw_only=True)
class Counting:
    """A backend whose bound tells how many threads it was given."""

    threads: int | None = None
    capabilities: ro.Capabilities = ABILITY

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        return ro.Candidate(test=GOOD, lower_bound=-float(self.threads or 99))


def test_threads_are_set_alike_for_those_that_have_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "counting", Entry(__name__, "Counting"))
    for threads in (1, 3):
        comparison = ro.compare(PROBLEM, ["counting", Counting(threads=7)], threads=threads, warm_up=False)
        assert comparison.table["lower_bound"].tolist() == [-threads, -7]


def test_every_solver_is_asked_before_so_that_it_has_loaded_its_code() -> None:
    times: Sequence[float] = [0.0]

    @dataclass(frozen=True)
    class Remembering:
        capabilities: ro.Capabilities = ABILITY

        def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
            times[0] -= 1  # type: ignore[index]
            return ro.Candidate(test=GOOD, lower_bound=times[0])

    assert ro.compare(PROBLEM, [Remembering()]).table["lower_bound"].tolist() == [-2.0]
    assert ro.compare(PROBLEM, [Remembering()], warm_up=False).table["lower_bound"].tolist() == [-3.0]


@pytest.mark.parametrize("options", [{"seconds": -1.0}, {"seconds": math.nan}, {"threads": 0}, {"threads": True}])
def test_bad_limits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ro.ProblemError, match="must be a"):
        ro.compare(PROBLEM, ["exact"], **options)


def test_a_comparison_is_shown_in_a_few_words_and_as_a_table() -> None:
    comparison = compared(Teller(HONEST))
    assert repr(comparison).count("\n") < 3
    assert "Teller" in repr(comparison)
    assert "<table" in comparison._repr_html_()


# The picture.


def frame_of(**solvers: list[tuple[float, float, float, str]]) -> pd.DataFrame:
    rows = [
        {
            "backend": name,
            "seconds": seconds,
            "objective": objective,
            "claimed_objective": objective,
            "claimed_bound": bound,
            "is_end": (seconds, objective, bound, objection) == points[-1],
            "contradiction": objection,
        }
        for name, points in solvers.items()
        for seconds, objective, bound, objection in points
    ]
    return pd.DataFrame(rows)


def points_of(line: Line2D) -> list[tuple[float, float]]:
    return [(float(across), float(up)) for across, up in np.asarray(line.get_xydata())]


def test_the_picture_has_a_colour_for_each_solver_solid_objectives_and_dashed_bounds() -> None:
    frame = frame_of(
        one=[(0.01, 0.9, math.nan, ""), (0.1, 0.5, 0.1, ""), (2.0, 0.4, 0.4, "")],
        silent=[(3.0, 0.4, 0.3, "")],
    )
    (axes,) = plots.anytime_profiles(frame).axes
    solid, dashed = (
        [line for line in axes.get_lines() if line.get_linestyle() == style and len(points_of(line)) > 1]
        for style in ("-", "--")
    )
    assert [line.get_color() for line in (*solid, *dashed)] == [COLOURS[0]] * 2
    assert points_of(solid[0]) == [(0.01, 0.9), (0.1, 0.5), (2.0, 0.4)]
    assert points_of(dashed[0]) == [(0.1, 0.1), (2.0, 0.4)]
    signs = [line for line in axes.get_lines() if line.get_marker() not in ("None", "x")]
    assert [(*points_of(line)[0], line.get_color()) for line in signs] == [
        (2.0, 0.4, COLOURS[0]),
        (2.0, 0.4, COLOURS[0]),
        (3.0, 0.4, COLOURS[1]),
        (3.0, 0.3, COLOURS[1]),
    ]
    assert axes.get_xscale() == "log"


def test_what_is_refuted_has_a_cross_where_it_was_told() -> None:
    frame = frame_of(liar=[(1.0, 0.5, 0.1, ""), (2.0, 0.5, 0.8, "false"), (3.0, 0.5, 0.2, "")])
    figure = plots.anytime_profiles(frame)
    crosses = [points_of(line) for line in figure.axes[0].get_lines() if line.get_marker() == "x"]
    assert (2.0, 0.8) in [point for points in crosses for point in points]
    assert "refuted" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_claims_without_a_test_are_dotted_and_said_to_be_claims() -> None:
    frame = frame_of(boaster=[(1.0, 0.5, math.nan, ""), (2.0, 0.4, math.nan, "")]).assign(objective=math.nan)
    figure = plots.anytime_profiles(frame)
    (line,) = [line for line in figure.axes[0].get_lines() if len(points_of(line)) > 1]
    assert line.is_dashed()
    assert points_of(line) == [(1.0, 0.5), (2.0, 0.4)]
    assert "claimed, no test" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_eighty_solvers_or_none_can_be_drawn_and_the_first_sixty_four_be_told_apart() -> None:
    many = frame_of(**{f"solver {number}": [(1.0, 0.5, 0.1, "")] for number in range(64)})
    figure = plots.anytime_profiles(many)
    handles = figure.legends[0].legend_handles
    assert len({(handle.get_color(), handle.get_marker()) for handle in handles}) == 64  # type: ignore[union-attr]
    plots.anytime_profiles(many.iloc[:0])


# The command.


class Late:
    """As `Teller`, made without options for the table of backends."""

    capabilities = replace(ABILITY, is_heuristic=True)

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        test = problem.test(cases=[0], weights=[1.0])
        budget.tell(told(problem.objective(test), 0.9, test))
        return ro.Candidate(test=test, lower_bound=-math.inf)


@pytest.mark.usefixtures("compiled_kernels")
class TestCommand:
    @pytest.fixture(autouse=True)
    def table(self, tmp_path: Path) -> None:
        pd.DataFrame(PROBLEM.results, index=list("abc"), columns=["x", "y"]).to_csv(tmp_path / "results.csv")

    def test_table_frame_and_picture_are_written(self, rposst: Run, tmp_path: Path) -> None:
        asked = ("--backends", "exact,scipy-milp", "--seconds", "30", "--measure", "worst")
        outcome = rposst("compare", "results.csv", "--size", "1", *asked, "--csv", "who.csv", "--out", "who.svg")
        assert outcome.code == 0
        assert "agrees" in outcome.out and "first" in outcome.out
        assert "≤: told of no test before the answer, so it may have come sooner (scipy-milp)." in outcome.out
        assert "Each had 30 s in a process of its own, one after the other" in outcome.out
        frame = pd.read_csv(tmp_path / "who.csv")
        assert frame.loc[frame["is_end"], "backend"].tolist() == ["exact", "scipy-milp"]
        assert frame.loc[frame["is_end"], "objective"].tolist() == pytest.approx([LEAST] * 2)
        assert "exact" in (tmp_path / "who.svg").read_text()
        lines = outcome.err.splitlines()
        assert [line.split(":")[0] for line in lines if line.startswith(("exact", "scipy"))] == ["exact", "scipy-milp"]

    def test_json_has_all_of_it_and_a_contradiction_is_exit_code_one(
        self, rposst: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(BACKENDS, "late", Entry(__name__, "Late"))
        asked = ("compare", "results.csv", "--size", "1", "--measure", "worst", "--json", "--backends")
        record = rposst(*asked, "scipy-milp").json
        assert (record["format"], record["agreed"], record["threads"]) == ("rposst-comparison/1", True, 1)
        assert [row["backend"] for row in record["backends"]] == ["scipy-milp"]
        assert record["profile"][-1]["is_end"] is True
        outcome = rposst(*asked, "scipy-milp,late")
        assert outcome.code == 1
        assert "on its way" in outcome.out and "late: disagrees" in outcome.err

    def test_a_picture_of_an_unknown_kind_is_refused_before_anybody_is_asked(self, rposst: Run) -> None:
        outcome = rposst("compare", "results.csv", "--size", "1", "--out", "who.doc")
        assert (outcome.code, outcome.out) == (2, "")
        assert "--out must be a picture (.png, .svg, .pdf), got 'who.doc'." in outcome.err


# What mixed-integer solvers are listened to with.


@pytest.mark.parametrize("name", ["pulp-highs", "pulp-scip"])
def test_what_is_raised_while_a_solver_calls_back_stops_it_and_is_raised(name: str) -> None:
    calls: list[ro.Progress] = []

    def refuse(progress: ro.Progress) -> None:
        calls.append(progress)
        raise ValueError("nobody wants to know")

    with pytest.raises(ValueError, match="nobody wants to know"):
        ro.solve(middling_problem(), name, progress=refuse)
    assert calls


def test_gurobi_is_asked_for_solutions_and_bounds_by_its_own_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gurobi needs a licence, so that a stand-in calls back as Gurobi does."""
    codes = {name: name for name in ("MIP", "MIPSOL", "MIP_OBJBND", "MIP_NODCNT", "MIPSOL_OBJBND", "MIPSOL_NODCNT")}
    module = SimpleNamespace(GRB=SimpleNamespace(Callback=SimpleNamespace(**codes)))
    monkeypatch.setitem(sys.modules, "gurobipy", cast(ModuleType, module))
    numbers = {"MIP_OBJBND": 0.02, "MIP_NODCNT": 3.0, "MIPSOL_OBJBND": -1e100, "MIPSOL_NODCNT": 0.0}
    solving = SimpleNamespace(cbGet=numbers.__getitem__, cbGetSolution=float)
    variables = {case: SimpleNamespace(solverVar=1.0 if case == 2 else 0.0) for case in range(3)}
    heard: list[ro.Progress] = []
    listener = Listener(PROBLEM, variables, variables, 0.5, ro.Budget(progress=heard.append))
    call = listen_to_gurobi(None, listener)["callback"]
    for where in ("MIPSOL", "MIP", "MIP", "PRESOLVE"):
        call(solving, where)
    assert [(each.test, each.objective, each.lower_bound, each.done) for each in heard] == [
        (GOOD, LEAST, -math.inf, 0),
        (GOOD, LEAST, 0.01, 3),
    ]


def test_the_limit_of_time_is_called_as_elsewhere_and_its_former_name_is_understood() -> None:
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1)
    limits = [
        ro.compare(problem, ["exact"], warm_up=False, time_limit_seconds=7.0).seconds,
        ro.compare(problem, ["exact"], warm_up=False, seconds=7.0).seconds,
        ro.compare(problem, ["exact"], 7.0, warm_up=False).seconds,
    ]
    assert limits == [7.0] * 3
    with pytest.raises(ro.ProblemError, match="`seconds` is the former name of `time_limit_seconds`: give one of them"):
        ro.compare(problem, ["exact"], time_limit_seconds=7.0, seconds=8.0)
