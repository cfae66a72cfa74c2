"""What a report gathers and says, before any browser draws it."""

import html
import json
import re
import sys
import tomllib
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Run
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau
from strategies import problems

import rposst_opt as ro
from rposst_opt.backends import BACKENDS, Entry, why_unusable
from rposst_opt.backends.forecast import predict
from rposst_opt.reports.pages import report as gathering
from rposst_opt.reports.pages.explorer import GAMES, GameValues, explorer_data, game_values
from rposst_opt.reports.pages.explorer_page import explorer_page
from rposst_opt.reports.pages.page import inline_json
from rposst_opt.reports.pages.report import SIZES_AT_LEAST, Report, gather
from rposst_opt.reports.pages.report_page import report_page
from rposst_opt.reports.pages.sections import SECTIONS, Section
from rposst_opt.reports.pages.timing import SHARES, Clock, Part, Plan, who_is_asked
from rposst_opt.reports.wording import unseen_words
from rposst_opt.unseen.error_bars import leave_out
from rposst_opt.unseen.procedures import Purpose

ROOT = Path(__file__).parent.parent
UNITS = ro.Scale(0.0, 1.0)


def arrows() -> ro.Problem:
    results = np.random.default_rng(2).random((8, 6))
    return ro.Problem(results=results, size=2, measure=ro.CVaR(0.1), targets=ro.softmax_targets(results, (0, 3)))


def gathered(problem: ro.Problem, **options: Any) -> Report:
    names = [f"target {place}" for place in range(len(problem.targets))]
    report = gather(problem, scale=UNITS, target_names=names, **{"backends": [], **options})
    assert report is not None
    return report


@cache
def report_on_arrows() -> Report:
    """For tests that read it and ask nobody to agree."""
    return gathered(arrows())


class Reader(HTMLParser):
    """Reads a page's data and its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.data: dict[str, Any] = {}
        self.sections: dict[str, list[list[str]]] = {}
        self._where, self._section, self._cell = "", "", False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "section":
            self._section = given["id"] or ""
            self.sections[self._section] = []
        if tag == "tr" and self._section:
            self.sections[self._section].append([])
        self._cell = tag in ("td", "th")
        if self._cell and self._section:
            self.sections[self._section][-1].append("")
        self._where = (given.get("id") or "") if tag == "script" else tag

    def handle_data(self, data: str) -> None:
        if self._where == "data":
            self.data = json.loads(data)
        elif self._cell and self._section:
            self.sections[self._section][-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")
        self._where = ""


def page_of(report: Report) -> Reader:
    return Reader(report_page(report, title="A report", command="rposst report"))


def test_the_page_has_what_was_found() -> None:
    problem = arrows()
    report = gathered(problem, backends=["exact", "scipy-milp", "cvxpy-clarabel"])
    page = page_of(report)
    best = ro.solve(problem, "scipy-milp")
    assert best.test is not None
    assert report.solution.objective == pytest.approx(best.objective, abs=1e-8)
    assert [row[0] for row in page.sections["cases"][1:3]] == [problem.case_names[case] for case in report.test.cases]
    assert page.data["matrix"]["chosen"] == list(report.test.cases)
    order = np.argsort(-problem.results.mean(axis=0))
    assert np.array(page.data["matrix"]["results"]) == pytest.approx(problem.results[:, order])
    told = page.data["losses"]
    assert np.dot(told["weight"], told["loss"]) == pytest.approx(report.solution.objective)
    assert told["loss"] == sorted(problem.losses(report.test), reverse=True)
    assert told["tail"][-1] == pytest.approx(1.0)
    agreement = page.sections["agreement"]
    assert [(row[0], row[1]) for row in agreement[1:]] == [
        ("exact", "agrees"),
        ("scipy-milp", "agrees"),
        ("cvxpy-clarabel", "agrees"),
    ]
    assert all(float(row[2]) == pytest.approx(report.solution.objective, abs=1e-6) for row in agreement[1:])


def test_the_worst_scenarios_come_first_by_name_in_the_files_units() -> None:
    results = np.array([[0.0, 0.5, 1.0], [1.0, 0.5, 0.0], [0.2, 0.9, 0.4]])
    problem = ro.Problem(
        results=results, size=1, measure=ro.CVaR(0.5), case_names=list("abc"), policy_names=["x", "y", "z"]
    )
    report = gather(problem, scale=ro.Scale(-100.0, 100.0), target_names=["all alike"], backends=[])
    assert report is not None
    rows = page_of(report).sections["worst"][1:]
    losses = problem.losses(report.test)
    full = results.mean(axis=0)
    for row, policy in zip(rows, np.argsort(-losses, kind="stable"), strict=True):
        assert row[:2] == ["xyz"[policy], "all alike"]
        assert float(row[2]) == pytest.approx(-100 + 200 * full[policy], rel=1e-4)
        assert float(row[3]) == pytest.approx(-100 + 200 * problem.scores(report.test)[policy], rel=1e-4)
        assert float(row[4]) == pytest.approx(losses[policy], rel=1e-4)
    assert [float(row[5]) for row in rows] == pytest.approx([2 / 3, 1 / 3, 0.0], abs=1e-4)


def test_scenarios_that_tie_at_the_edge_of_the_tail_share_their_weight() -> None:
    """Losses of a are 3/4 for its own policy and 1/4 for three others: half of four scenarios are the first, and one
    more, of which nobody can say which.
    """
    problem = ro.Problem(results=np.eye(4), size=1, measure=ro.CVaR(0.5))
    report = replace(gathered(problem, largest_size=1))
    case = report.test.cases[0]
    page = page_of(report)
    rows = page.sections["worst"][1:]
    assert rows[0][0] == problem.policy_names[case]
    assert [float(row[5]) for row in rows] == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6], abs=1e-4)
    told = page.data["losses"]
    assert told["weight"] == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    assert np.dot(told["weight"], told["loss"]) == pytest.approx(problem.objective(report.test)) == pytest.approx(0.5)


def test_sizes_are_the_exact_optima_of_every_size() -> None:
    problem = arrows()
    sizes = page_of(report_on_arrows()).data["sizes"]
    assert sizes["size"] == [1, 2, 3, 4] and sizes["own"] == 2
    for size, objective in zip(sizes["size"], sizes["objective"], strict=True):
        expected = ro.solve(
            ro.Problem(results=problem.results, size=size, measure=problem.measure, targets=problem.targets),
            "scipy-milp",
        )
        assert objective == pytest.approx(expected.objective, abs=1e-7)


@pytest.mark.parametrize(("largest", "shown"), [(1, [1, 2]), (5, [1, 2, 3, 4, 5]), (100, list(range(1, 9)))])
def test_the_largest_size_may_be_named(largest: int, shown: list[int]) -> None:
    assert page_of(gathered(arrows(), largest_size=largest)).data["sizes"]["size"] == shown


def test_the_run_ends_with_the_answer_and_its_bound() -> None:
    report = report_on_arrows()
    run = page_of(report).data["run"]
    assert len(run["milliseconds"]) >= 2
    assert run["milliseconds"] == sorted(run["milliseconds"])
    assert run["objective"][-1] == report.solution.objective and run["bound"][-1] == report.solution.lower_bound
    assert (np.diff(run["objective"]) <= 1e-12).all() and (np.diff(run["bound"]) >= 0).all()
    # Every objective on the way is a test's, so none is below the optimum.
    assert min(run["objective"]) == pytest.approx(report.solution.objective)


def test_rounds_close_in_on_the_optimum_of_the_chosen_cases() -> None:
    report = report_on_arrows()
    rounds = page_of(report).data["rounds"]
    assert rounds["round"][0] == 1 and rounds["round"][-1] == 500
    assert rounds["bound"][-1] <= report.solution.objective + 1e-12 <= rounds["best"][-1] + 2e-12
    assert rounds["best"][-1] - rounds["bound"][-1] < 0.2 * (rounds["best"][0] - rounds["bound"][0])


class Liar(ro.Backend):
    """Says that its test, any one, cannot be beaten."""

    capabilities = ro.BACKENDS["exact"].capabilities

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        weights = np.full(problem.n_chosen, 1 / problem.n_chosen)
        test = problem.test(cases=list(range(problem.n_cases))[-problem.n_chosen :], weights=weights)
        return ro.Candidate(test=test, lower_bound=problem.objective(test))


def test_a_liar_is_named_in_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "liar", Entry(__name__, "Liar"))
    report = gathered(arrows(), backends=["exact", "liar", "scipy-milp"])
    page = report_page(report, title="", command="")
    rows = {row[0]: row for row in Reader(page).sections["agreement"]}
    assert rows["exact"][1] == "agrees" and rows["liar"][1] == "disagrees"
    assert re.search("is refuted by (exact|scipy-milp)'s test", rows["liar"][5])  # they tie
    assert "No agreement: liar." in page
    refuted = {profile["solver"]: profile["isRefuted"][-1] for profile in Reader(page).data["profiles"]}
    assert refuted == {"exact": False, "liar": True, "scipy-milp": False}
    assert re.search(r"Solvers that agree</span><strong>2</strong><span>1 disagree<", page)


class OutOfTime(Liar):
    """Has the best test when the time is up."""

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        best = ro.solve(problem).test
        return ro.Candidate(test=best, lower_bound=-np.inf, limit=ro.Limit.TIME)


class OutOfLuck(OutOfTime):
    """Chooses by a rule of its own."""

    capabilities = ro.BACKENDS["kmeans-anchors"].capabilities


def test_who_ran_out_of_time_has_not_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "out-of-time", Entry(__name__, "OutOfTime"))
    page = report_page(gathered(arrows(), backends=["exact", "out-of-time", "scipy-milp"]))
    assert tiles_of(page)["Solvers that agree"] == ("2", "nobody disagrees; 1 proved less in the time")


class OutOfIdeas(OutOfTime):
    """Has nothing when the time is up."""

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        return ro.Candidate(test=None, lower_bound=-np.inf, limit=ro.Limit.TIME)


def test_where_nobody_answered_it_is_not_said_that_nobody_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "out-of-ideas", Entry(__name__, "OutOfIdeas"))
    page = report_page(gathered(arrows(), backends=["out-of-ideas"]))
    assert tiles_of(page)["Solvers that agree"] == ("0", "nobody answered; 1 found nothing in the time")


def tiles_of(page: str) -> dict[str, tuple[str, str]]:
    found = re.findall(r'"tile"><span>(.*?)</span><strong>(.*?)</strong><span>(.*?)</span>', page)
    return {html.unescape(label): (html.unescape(value), html.unescape(note)) for label, value, note in found}


def test_the_first_screen_has_the_answers_in_their_order() -> None:
    page = report_page(report_on_arrows())
    assert re.findall(r'<section id="(\w+)">', page)[:2] == ["cases", "answers"]
    assert list(tiles_of(page)) == [
        "Expected error on new policies",
        "Is the ranking kept?",
        "Is it proved?",
        "Error on tuning policies",
        "Solvers that agree",
    ]
    run = {row[0]: row[1] for row in Reader(page).sections["run"]}
    assert {"objective", "gap", "lower bound"} < run.keys()


def test_the_tiles_have_the_error_in_the_files_units() -> None:
    problem = ro.Problem(results=arrows().results, size=2, measure=ro.CVaR(0.5), loss=ro.SquaredError())
    report = gather(problem, scale=ro.Scale(-100.0, 100.0), backends=[])
    assert report is not None
    page = report_page(report)
    tiles = tiles_of(page)
    errors = 200 * np.abs(problem.scores(report.test) - problem.results.mean(axis=0))
    value, note = tiles["Error on tuning policies"]
    assert float(value) == pytest.approx(errors.mean(), rel=1e-3)  # as that on new policies: they are compared
    assert note == (
        "on average, in the file's units, on the policies that the test was tuned on; "
        f"{np.sort(errors)[-3:].mean():.4g} as mean of the worst 50 % of scenarios, {errors.max():.4g} at worst"
    )
    value, note = tiles["Expected error on new policies"]
    assert value == "unknown" and "on the policies that the test was tuned on do not tell" in note
    assert "<code>rposst validate --out FOLDER</code><code>rposst report --validation FOLDER</code>" in page
    small = problem.scores(report.test)
    tau = kendalltau(problem.results.mean(axis=0), small).statistic
    assert tiles["Is the ranking kept?"] == (
        "unknown",
        f"on new policies. Kendall's τ is {tau:.2f} on those that the test was tuned on",
    )
    assert tiles["Is it proved?"][0] == "Yes"
    assert tiles["Is it proved?"][1].startswith("no other choice of cases and weights is better")
    assert tiles["Is it proved?"][1].endswith("on the policies that the test was tuned on")
    assert tiles["Solvers that agree"] == ("–", "none was asked")


def test_the_first_tiles_are_of_policies_that_were_left_out() -> None:
    results = 100 * arrows().results
    purpose = Purpose(measure=ro.CVaR(0.5))
    problem, scale = purpose.problem(results, 2)
    report = gather(problem, scale=scale, backends=[], made_of=(results, purpose))
    assert report is not None
    left_out = leave_out(results, 2, purpose, backend="exact", options={})
    assert left_out is not None
    page = report_page(report)
    (label, (value, note)), (_, (tau, tau_note)) = list(tiles_of(page).items())[:2]
    assert (label, value) == ("Expected error on new policies", f"{left_out.mean_error():.4g}")
    assert note.startswith("on average, in the file's units, with each policy left out in turn; ")
    estimates = [test.score(results[:, [policy]])[0] for policy, test in enumerate(left_out.tests)]
    assert tau == f"τ {kendalltau(results.mean(axis=0), estimates).statistic:.2f}"
    tuned = kendalltau(results.mean(axis=0), problem.scores(report.test)).statistic
    assert f"{tuned:.2f} on those that the test was tuned on" in tau_note
    assert f"off by about {left_out.mean_error():.3g} on average" in html.unescape(page)


def cut_short(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Report:
    """A report whose test was found and not proved in its time."""
    monkeypatch.setitem(BACKENDS, "out-of-time", Entry(__name__, "OutOfTime"))
    results, purpose = 100 * np.random.default_rng(2).random((8, 14)), Purpose(measure=ro.CVaR(0.5))
    problem, scale = purpose.problem(results, 2)
    made = {"backends": [], "made_of": (results, purpose), "backend": "out-of-time", "largest_size": 2}
    report = gather(problem, scale=scale, **{**made, **options})
    assert report is not None and report.solution.limit is ro.Limit.TIME
    return report


def test_the_first_tiles_are_known_where_the_test_is_not_proved_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    report = cut_short(monkeypatch)
    assert report.left_out is not None
    page = report_page(report)
    tiles = tiles_of(page)
    value, note = tiles["Expected error on new policies"]
    assert value == f"{report.left_out.mean_error():.4g}"
    assert "with policies left out in 10 folds by local-search" in note
    ((full, small),) = report.left_out.scores()
    assert tiles["Is the ranking kept?"][0] == f"τ {kendalltau(full, small).statistic:.2f}"
    assert unseen_words(report.left_out) in html.unescape(page)  # as `solve` says it


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"time_limit_seconds": 0.0}, "that takes longer than its share of the time"),
        ({"backend": "out-of-luck"}, "the time limit ended out-of-luck, and local-search chooses in another way"),
    ],
)
def test_where_the_error_on_new_policies_stays_unknown_the_page_says_why_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], reason: str
) -> None:
    monkeypatch.setitem(BACKENDS, "out-of-luck", Entry(__name__, "OutOfLuck"))
    report = cut_short(monkeypatch, **options)
    assert report.left_out is None
    value, note = tiles_of(report_page(report))["Expected error on new policies"]
    assert value == "unknown"
    assert f"as {reason}, and the errors on the policies that the test was tuned on do not tell" in note
    assert "Give a longer --time-limit" in note


def test_what_is_not_proved_is_not_called_so() -> None:
    report = gathered(arrows(), backend="miniaverage-uniform")
    tiles = tiles_of(report_page(report))
    assert tiles["Is it proved?"] == ("No", "nothing is proved about better tests")
    report = gathered(arrows(), backend="regret-matching")
    assert report.solution.gap > 1e-6
    bound, objective = f"{report.solution.lower_bound:.3g}", f"{report.solution.objective:.3g}"
    assert tiles_of(report_page(report))["Is it proved?"] == (
        "No",
        f"a better test may exist, with an objective of {bound} or more instead of {objective}",
    )


def test_the_table_shows_each_backends_own_bound() -> None:
    report = gathered(arrows(), backends=["exact", "regret-matching"])
    assert report.agreement is not None
    rows = {row[0]: row for row in page_of(report).sections["agreement"]}
    for finding in report.agreement.findings:
        assert finding.solution is not None and finding.candidate is not None
        assert float(rows[finding.backend][2]) == pytest.approx(finding.solution.objective, abs=1e-9)
        assert float(rows[finding.backend][3]) == pytest.approx(finding.candidate.lower_bound, abs=1e-9)
    assert float(rows["regret-matching"][3]) < float(rows["regret-matching"][2])


def test_the_profiles_are_what_each_solver_had_when() -> None:
    report = gathered(arrows(), backends=["exact", "regret-matching", "scipy-milp"])
    assert report.agreement is not None
    profiles = {profile["solver"]: profile for profile in page_of(report).data["profiles"]}
    assert list(profiles) == ["exact", "regret-matching", "scipy-milp"]
    for finding in report.agreement.findings:
        profile = profiles[finding.backend]
        assert finding.solution is not None and finding.candidate is not None
        assert profile["objective"][-1] == finding.solution.objective
        assert profile["bound"][-1] == finding.candidate.lower_bound
        assert profile["isEnd"] == [False] * (len(profile["isEnd"]) - 1) + [True]
        assert profile["seconds"] == sorted(profile["seconds"])
        objectives = [objective for objective in profile["objective"] if objective is not None]
        assert objectives == sorted(objectives, reverse=True)
    assert profiles["regret-matching"]["bound"][-1] < report.solution.objective


def test_without_others_there_is_no_chart_of_them() -> None:
    page = report_page(report_on_arrows())
    assert 'id="chart-profiles"' not in page and Reader(page).data["profiles"] == []


def test_colours_leave_out_what_is_far_out_and_say_so() -> None:
    results = np.random.default_rng(0).random((20, 20))
    for outlier, clipped in ((1.0, False), (50.0, True)):
        results[0, 0] = outlier
        problem = ro.Problem(results=results, size=1)
        report = gather(problem, scale=ro.Scale(10.0, 30.0), backends=[], largest_size=1)
        assert report is not None
        page = report_page(report)
        low, high = Reader(page).data["matrix"]["range"]
        expected = np.quantile(results, [0.02, 0.98]) if clipped else np.array([results.min(), results.max()])
        assert [low, high] == pytest.approx(10 + 20 * expected)
        assert ("Colours end at the 2% and 98% quantiles" in page) == clipped


def test_the_tail_is_what_is_seen_first() -> None:
    def seen(measure: ro.Measure, d: int) -> float:
        results = np.random.default_rng(1).random((5, d))
        report = gathered(ro.Problem(results=results, size=1, measure=measure), largest_size=1)
        share: float = page_of(report).data["losses"]["seen"]
        return share

    assert seen(ro.CVaR(0.1), 200) == pytest.approx(0.3)
    assert seen(ro.WorstCase(), 200) == pytest.approx(0.1)  # twenty scenarios
    assert [seen(ro.Mean(), 200), seen(ro.CVaR(0.01), 10)] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("count", [1, 2])
def test_targets_can_be_chosen_where_there_are_several(count: int) -> None:
    results = arrows().results
    problem = ro.Problem(results=results, size=1, targets=ro.softmax_targets(results, range(count)))
    page = report_page(gathered(problem, largest_size=1))
    assert ('<div class="controls" hidden>' in page) == (count == 1)
    assert page.count("<option ") == count


def test_backends_that_would_take_too_long_are_listed_and_not_asked() -> None:
    report = gathered(arrows(), backends=None, agree_seconds=0.05)
    assert report.agreement is not None
    asked = {finding.backend for finding in report.agreement.findings}
    assert report.not_asked and not asked & set(report.not_asked)
    assert "exact" in asked
    witnesses = {name for name, entry in BACKENDS.items() if not entry.capabilities.is_heuristic}
    assert asked | set(report.not_asked) == witnesses
    rows = {row[0]: row for row in page_of(report).sections["agreement"]}
    for name in report.not_asked:
        assert rows[name][1] == "not asked" and rows[name][5].startswith("predicted to take ")


@pytest.mark.parametrize(
    ("stage", "sizes"),
    [
        ("regret matching+", [2]),
        ("the best tests", [2]),
        ("the best weights for every game", [1, 2, 3, 4]),
        ("exact", [1, 2, 3, 4]),
    ],
)
def test_an_interrupt_leaves_out_the_rest_of_a_report(stage: str, sizes: list[int]) -> None:
    def interrupt(what: str) -> None:
        if what.startswith(stage):
            raise KeyboardInterrupt

    report = gathered(arrows(), backends=["exact"], tell=interrupt)
    assert report.interrupted and report.agreement is None
    assert report.sizes["size"].tolist() == sizes
    page = report_page(report)
    assert "An interrupt came before others were asked." in page
    assert report.solution.status is ro.Status.OPTIMAL


def test_who_is_too_slow_is_known_before_an_interrupt_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rposst_opt.reports.pages.report.compare", interrupted)
    report = gathered(arrows(), backends=None, agree_seconds=0.05)
    assert report.interrupted and report.not_asked
    rows = page_of(report).sections["agreement"]
    assert {row[0] for row in rows[1:]} == set(report.not_asked)


def test_an_interrupted_size_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size that is farthest from the report's own comes first."""

    def interrupted(problem: ro.Problem, *options: Any, **more: Any) -> ro.Solution:
        solution = ro.solve(problem, *options, **more)
        return replace(solution, limit=ro.Limit.INTERRUPT) if problem.size == 1 else solution

    monkeypatch.setattr("rposst_opt.reports.pages.report.solve", interrupted)
    report = gathered(arrows(), backends=["exact"])
    assert report.sizes["size"].tolist() == [1, 2]
    assert report.interrupted and report.agreement is None


def test_sizes_are_spread_where_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only solving moves, by all the time that it may take."""
    now, limits = [0.0], []

    def until_the_limit(problem: ro.Problem, *options: Any, time_limit_seconds: float, **more: Any) -> ro.Solution:
        limits.append(time_limit_seconds)
        now[0] += time_limit_seconds
        return ro.solve(problem, "random")

    problem = ro.Problem(results=np.random.default_rng(3).random((40, 6)), size=20)
    solution = ro.solve(problem, "random")
    report = gathered(problem, backend="random", largest_size=20, time_limit_seconds=0.0)
    report = replace(report, solution=replace(solution, status=ro.Status.OPTIMAL))
    clock = Clock(None, [Part.SIZES])
    monkeypatch.setattr(clock, "share", lambda part: 100.0)
    monkeypatch.setattr(gathering, "solve", until_the_limit)
    monkeypatch.setattr(gathering, "time", SimpleNamespace(monotonic=lambda: now[0]))
    report = gathering._with_sizes(report, clock=clock, tell=lambda what: None, sizes=range(1, 23))
    shown = report.sizes["size"].tolist()
    assert len(shown) == 1 + SIZES_AT_LEAST and sum(limits) <= 100.0
    assert limits == pytest.approx([limits[0]] * SIZES_AT_LEAST)  # each has as long as the others
    assert shown[0] == 1 and 20 in shown
    assert max(larger / smaller for smaller, larger in pairwise(shown)) <= 2
    assert (np.diff(report.sizes["objective"]) <= 1e-12).all()


def least_of(report: Report) -> list[float]:
    return [report.game_values.least[n][k] for k, n in GAMES]


def test_the_games_values_are_the_least_on_the_chosen_cases() -> None:
    report = report_on_arrows()
    alone = arrows().restricted_to(report.test.cases)
    for (k, n), least in zip(GAMES, least_of(report), strict=True):
        best = ro.solve(replace(alone, measure=ro.KOfN(k, n)), "scipy-milp")
        assert least == pytest.approx(best.objective, abs=1e-7)
    game = page_of(report).data["explorer"]["game"]
    assert [game[str(n)][str(k)] for k, n in GAMES] == least_of(report)


def test_a_game_that_is_not_proved_in_time_has_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def out_of_time(problem: ro.Problem, **options: Any) -> ro.Solution:
        limits.append(options["time_limit_seconds"])
        return replace(ro.solve(problem), status=ro.Status.FEASIBLE, limit=ro.Limit.TIME)

    monkeypatch.setattr("rposst_opt.reports.pages.explorer.solve", out_of_time)
    report = gathered(arrows(), backends=["exact"])
    assert np.isnan(least_of(report)).all() and not report.interrupted
    assert len(limits) == len(GAMES) and all(0 < limit <= 10 for limit in limits)
    assert report.agreement is not None
    assert set(page_of(report).data["explorer"]["game"]["8"].values()) == {None}


def test_games_that_there_is_no_time_for_are_left_out() -> None:
    solution = ro.solve(arrows())
    assert np.isnan(
        [value for row in game_values(arrows(), solution, all_seconds=-1.0).least.values() for value in row.values()]
    ).all()


@pytest.mark.parametrize("raised", [False, True])
def test_an_interrupt_leaves_out_the_other_games(monkeypatch: pytest.MonkeyPatch, raised: bool) -> None:
    asked = []

    def interrupted_at_the_third(problem: ro.Problem, **options: Any) -> ro.Solution:
        asked.append(problem.measure)
        if len(asked) == 3 and raised:
            raise KeyboardInterrupt
        solution = ro.solve(problem)
        stopped = replace(solution, status=ro.Status.FEASIBLE, limit=ro.Limit.INTERRUPT)
        return stopped if len(asked) == 3 else solution

    monkeypatch.setattr("rposst_opt.reports.pages.explorer.solve", interrupted_at_the_third)
    report = gathered(arrows(), backends=["exact"])
    assert len(asked) == 3
    assert np.isfinite(least_of(report)[:2]).all() and np.isnan(least_of(report)[2:]).all()
    assert report.interrupted and report.agreement is None
    assert "An interrupt came before others were asked." in report_page(report)


def test_an_interrupted_solution_has_no_games() -> None:
    stopped = replace(ro.solve(arrows()), limit=ro.Limit.INTERRUPT)
    values = game_values(arrows(), stopped)
    assert values.interrupted and np.isnan([values.least[n][k] for k, n in GAMES]).all()


def test_pages_solve_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    report = gathered(arrows(), backends=["exact", "scipy-milp"])

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("something is solved while a page is written")

    monkeypatch.setattr(ro.Budget, "__init__", refuse)  # which no backend runs without
    solving = ("agree", "closing_in", "compare", "game_values", "judge", "make_backend", "size_curve", "solve")
    for module in [module for name, module in sys.modules.items() if name.startswith("rposst_opt.")]:
        for name in solving:
            if callable(vars(module).get(name)):
                monkeypatch.setattr(module, name, refuse)
    with pytest.raises(AssertionError, match="something is solved"):
        gathered(arrows())
    assert "agrees" in report_page(report)
    names = report.target_names
    assert explorer_page(report.problem, report.solution, names, report.game_values, title="", command="")


MOTTO = Section(
    id="motto",
    link="Our motto",
    heading="What we say",
    template="agreement.html",
    shows=lambda report: {"words": f"{len(report.test.cases)} & no more", "profiles_words": "", "rows": []},
    data={"motto": lambda report: ["less", "is", "more"]},
    scripts=("report.js",),
    start="Report.startMotto",
)


@pytest.mark.parametrize("place", [0, 3, len(SECTIONS)])
def test_a_section_is_one_entry(place: int) -> None:
    sections = [*SECTIONS[:place], MOTTO, *SECTIONS[place:]]
    report = report_on_arrows()
    page = report_page(report, sections=sections)
    shown = [section.id for section in sections if section.is_shown(report)]
    assert re.findall(r'<a href="#(\w+)">', page) == shown and len(shown) == len(sections) - 1
    assert '<a href="#motto">Our motto</a>' in page
    assert re.search(r'<section id="motto">\s*<h2>What we say</h2>\s*<p>2 &amp; no more</p>\s*</section>', page)
    read = Reader(page)
    assert list(read.sections) == shown
    assert read.data["motto"] == ["less", "is", "more"]
    starts = re.findall(r"^([\w.]+)\(data\);$", page, re.M)
    assert starts == [each.start for each in sections if each.start is not None and each.is_shown(report)]


def test_sections_that_share_data_mean_the_same_by_it() -> None:
    assert len({section.id for section in SECTIONS}) == len(SECTIONS)
    read = {(name, reader) for section in SECTIONS for name, reader in section.data.items()}
    assert len({name for name, _ in read}) == len(read)


def test_a_test_that_others_beat_is_not_called_agreed() -> None:
    report = gathered(arrows(), backend="random", backends=["exact", "scipy-milp"])
    best = ro.solve(arrows()).objective
    assert report.solution.objective > best + 0.01
    page = report_page(report)
    assert tiles_of(page)["Solvers that agree"] == ("0", f"others found a better test, at {best:.4g}")
    assert f"The others found a better test than this report&#39;s, at {best:.6g}." in page
    sizes = Reader(page).data["sizes"]
    assert sizes["objective"][1] == pytest.approx(best)  # the best achievable, not this one


# One limit for everything


class ByHand:
    """A clock that stands still until it is told."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic


def test_what_a_part_does_not_need_is_left_to_those_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    time = ByHand()
    monkeypatch.setattr("rposst_opt.reports.pages.timing.time", time)
    clock = Clock(100.0, list(Part))
    assert sum(SHARES.values()) == pytest.approx(1.0)
    assert clock.share(Part.TEST) == pytest.approx(50.0)
    time.now = 10.0  # it took ten seconds
    assert clock.share(Part.LEFT_OUT) == pytest.approx(90 * 0.2 / 0.5)
    time.now = 10.0 + 90 * 0.2 / 0.5
    assert clock.share(Part.SIZES) == pytest.approx(90 * 0.1 / 0.5)
    assert clock.share(Part.OTHERS) == pytest.approx(100 - time.now)
    time.now = 101.0
    assert clock.share(Part.OTHERS) == 0.0
    assert Clock(None, list(Part)).share(Part.TEST) == np.inf
    with pytest.raises(ro.ProblemError, match="`time_limit_seconds` must not be negative, got -1"):
        Clock(-1.0, list(Part))


def test_if_everybody_takes_all_the_time_there_is_it_still_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    time, limits = ByHand(), list[float]()

    def slow(problem: ro.Problem, *options: Any, time_limit_seconds: float, **more: Any) -> ro.Solution:
        time.now += time_limit_seconds
        limits.append(time_limit_seconds)
        return ro.solve(problem, *options, **more)

    for module in ("pages.report", "pages.explorer", "questions"):
        monkeypatch.setattr(f"rposst_opt.reports.{module}.solve", slow)
    for module in ("report", "timing"):
        monkeypatch.setattr(f"rposst_opt.reports.pages.{module}.time", time)
    gathered(with_costs(size=2), time_limit_seconds=20.0)
    assert limits[0] == pytest.approx(20 * 0.5 / 0.7)  # nobody is left out here, and nobody else is asked
    assert sum(limits) == pytest.approx(20.0) and len(limits) > 1 + 3 + len(GAMES)


def test_where_time_is_short_the_soonest_are_asked_and_the_others_are_named() -> None:
    problem = arrows()
    unhurried = who_is_asked(problem, None, 10.0, 600.0)
    assert unhurried.seconds == 10.0
    asked = who_is_asked(problem, None, 10.0, 7.0)
    able = [name for name in asked.names if BACKENDS[name].capabilities.why_not(problem) is None]
    able = [name for name in able if why_unusable(BACKENDS[name].capabilities) is None]
    assert len(able) == 2 and asked.seconds == pytest.approx(1.5)
    predicted = predict(problem, unhurried.names)
    late = [name for name, reason in asked.not_asked.items() if reason == "no time was left to ask it"]
    assert late and max(predicted[name] for name in able) <= min(predicted.get(name, np.inf) for name in late)
    assert set(asked.names) | set(asked.not_asked) == set(unhurried.names) | set(unhurried.not_asked)
    assert who_is_asked(problem, ["exact", "pulp-cbc"], 10.0, 0.0).names == ["exact", "pulp-cbc"]  # as they were told


def test_how_long_it_may_take_is_told_before_anything_is_run() -> None:
    expected, done = list[float](), list[str]()

    def expect(seconds: float) -> None:
        assert not done
        expected.append(seconds)

    gathered(arrows(), expect=expect, tell=done.append)
    assert len(expected) == 1 and 0 < expected[0] < 10
    hopeless = ro.Problem(results=np.random.default_rng(0).random((400, 300)), size=30)
    plan = Plan(
        problem=hopeless,
        backend="auto",
        time_limit_seconds=80.0,
        leaves_out=True,
        sizes=range(29, 31),
        backends=[],
        agree_seconds=10.0,
    )
    assert 40 < plan.expected_seconds() <= 80


def test_no_test_is_no_report() -> None:
    problem = arrows()
    assert gather(problem, scale=UNITS, target_names=["a", "b"], backend="scipy-milp", time_limit_seconds=0.0) is None


@settings(max_examples=25)
@given(problems())
def test_every_problem_has_a_page(problem: ro.Problem) -> None:
    """Ties, one policy, zero probabilities, constant results, any loss and measure, required and forbidden cases."""
    report = gathered(problem, largest_size=problem.size)
    page = page_of(report)
    assert page.data["losses"]["objective"] == report.solution.objective
    assert set(page.sections) >= {"cases", "results", "scores", "losses", "worst", "sizes", "run", "agreement", "game"}


@given(
    st.recursive(st.text() | st.integers(-9, 9) | st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=8)
)
def test_data_survive_the_page_whatever_they_say(value: Any) -> None:
    text = str(inline_json({"value": value, "name": "</script><!--<script>"}))
    assert "<" not in text
    assert json.loads(text) == {"value": value, "name": "</script><!--<script>"}


def test_numbers_that_json_cannot_say_become_null() -> None:
    text = inline_json({"a": [float("inf"), -float("inf"), float("nan"), 0.1], "b": (1.0, {"c": float("nan")})})
    assert json.loads(text) == {"a": [None, None, None, 0.1], "b": [1.0, {"c": None}]}


@pytest.mark.parametrize(
    ("measure", "k", "n", "linked"),
    [
        (ro.KOfN(3, 70), 3, 70, True),
        (ro.CVaR(0.01), 1, 100, True),
        (ro.CVaR(0.3), 3, 10, True),
        (ro.CVaR(1.0), 1, 1, True),
        (ro.CVaR(1 / 3), 1, 3, False),
        (ro.CVaR(0.0), 1, 200, False),
        (ro.CVaR(0.0001), 1, 200, False),
        (ro.Mean(), 1, 1, True),
        (ro.WorstCase(), 1, 200, False),
    ],
)
def test_the_sliders_begin_at_the_problems_measure(measure: ro.Measure, k: int, n: int, linked: bool) -> None:
    problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0]], size=1, measure=measure)
    test = problem.test(cases=[0], weights=[1.0])
    settings = explorer_data(problem, test, ["uniform"], GameValues())["settings"]
    assert (settings["k"], settings["n"], settings["linked"]) == (k, n, linked)
    if isinstance(measure, ro.CVaR):
        assert settings["tailFraction"] == measure.tail_fraction


# On the command line


@pytest.fixture
def results(tmp_path: Path) -> Path:
    table = pd.DataFrame(
        100 * np.random.default_rng(3).random((6, 5)),
        index=[f"case {place}" for place in range(6)],
        columns=[f"policy {place}" for place in range(5)],
    )
    path = tmp_path / "results.csv"
    table.to_csv(path, index_label="test_case")
    return path


def test_report_writes_a_page_and_prints_the_test(rposst: Run, results: Path) -> None:
    outcome = rposst(
        "report", "results.csv", "--size", "2", "--betas", "0,2", "--backends", "exact,pulp-cbc", "--out", "r.html"
    )
    assert outcome.code == 0, outcome.err
    assert "optimal (proved)" in outcome.out and "r.html" in outcome.err
    assert "each policy left out in turn" in outcome.out
    assert re.search(r"This may take about .* s, .* no longer than about 5 minutes \(--time-limit\)\.", outcome.err)
    page = Reader(Path("r.html").read_text("utf-8"))
    solved = rposst("solve", "results.csv", "--size", "2", "--betas", "0,2", "--json").json
    assert [page.data["matrix"]["cases"][case] for case in page.data["matrix"]["chosen"]] == solved["cases"]
    assert page.data["losses"]["objective"] == pytest.approx(solved["objective"])
    assert page.data["targets"] == ["beta 0", "beta 2"]
    assert 0 <= min(min(row) for row in page.data["matrix"]["results"]) and page.data["matrix"]["range"][1] > 50
    assert [row[0] for row in page.sections["agreement"][1:]] == ["exact", "pulp-cbc"]


def test_a_report_says_which_command_made_it(rposst: Run, results: Path) -> None:
    outcome = rposst("report", "results.csv", "--size", "1", "--no-agree", "--title", "Ours & yours", "--out", "r.html")
    assert outcome.code == 0, outcome.err
    text = Path("r.html").read_text("utf-8")
    assert "<h1>Ours &amp; yours</h1>" in text
    assert "rposst report results.csv --size 1 --no-agree --title &#39;Ours &amp; yours&#39; --out r.html" in text


def test_a_report_on_disagreement_is_written_and_exits_with_one(
    rposst: Run, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, "liar", Entry(__name__, "Liar"))
    outcome = rposst("report", "results.csv", "--size", "2", "--backends", "exact,liar", "--out", "r.html")
    assert outcome.code == 1
    assert "No agreement: liar." in outcome.out
    assert "No agreement: liar." in Path("r.html").read_text("utf-8")


def test_an_interrupted_report_is_written_and_says_so(
    rposst: Run, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rposst_opt.reports.pages.report.compare", interrupted)
    outcome = rposst("report", "results.csv", "--size", "2", "--out", "r.html")
    assert outcome.code == 0
    assert "the page lacks the rest" in outcome.err and "optimal (proved)" in outcome.out
    assert "An interrupt came before others were asked." in Path("r.html").read_text("utf-8")


def test_a_report_without_a_test_exits_with_one_and_writes_nothing(rposst: Run, results: Path) -> None:
    outcome = rposst(
        "report", "results.csv", "--size", "2", "--backend", "scipy-milp", "--time-limit", "0", "--out", "r.html"
    )
    assert outcome.code == 1
    assert "No test was found" in outcome.out
    assert not Path("r.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "nowhere/r.html"), "the folder 'nowhere' does not exist"),
        (("--out", "results.csv"), "is read as input"),
        (("--out", "r.pdf"), "--out must be a page for a browser (.html or .htm), got 'r.pdf'."),
        (("--out", "r.html", "--time-limit", "-1"), "must not be negative"),
        (("--out", "r.html", "--no-agree", "--backends", "exact"), "exclude each other"),
        (("--out", "r.html", "--backends", "nobody"), "nobody"),
        (("--out", "r.html", "--backend", "nobody"), "nobody"),
        (("--out", "r.html", "--agree-time-limit", "-1"), "must not be negative"),
        ((), "--out"),
    ],
)
def test_a_report_that_cannot_be_made_is_refused_in_one_line(
    rposst: Run, results: Path, arguments: tuple[str, ...], message: str
) -> None:
    before = results.read_bytes()
    outcome = rposst("report", "results.csv", "--size", "2", *arguments)
    assert outcome.code == 2
    assert message in outcome.err and len(outcome.told.strip().splitlines()) == 1
    assert results.read_bytes() == before


def test_explore_needs_nothing_and_takes_results(rposst: Run, results: Path) -> None:
    assert rposst("explore", "--out", "small.html").code == 0
    text = Path("small.html").read_text("utf-8")
    assert "A scenario is a policy together with a target" in text and "Its loss is what it costs" in text
    homepage = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Homepage"]
    assert f'<a href="{homepage}/blob/main/docs/k_of_n.md">' in text and (ROOT / "docs/k_of_n.md").exists()
    small = Reader(text).data["explorer"]
    assert len(small["cases"]) == 3 and len(small["policies"]) == 12 and small["settings"]["n"] == 10
    outcome = rposst("explore", "results.csv", "--size", "2", "--k", "2", "--n", "7", "--out", "own.html")
    assert outcome.code == 0, outcome.err
    own = Reader(Path("own.html").read_text("utf-8")).data["explorer"]
    assert own["policies"] == [f"policy {place}" for place in range(5)]
    assert (own["settings"]["k"], own["settings"]["n"]) == (2, 7)
    assert rposst("explore", "--size", "2", "--out", "own.html").code == 2
    idle = rposst("explore", "--k", "3", "--n", "10", "--out", "own.html")
    assert idle.code == 2 and "--k states a problem" in idle.err
    assert rposst("explore", "results.csv", "--size", "2", "--out", "results.csv").code == 2


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (ro.CVaR(0.01), "mean of the worst 1 % of scenarios"),
        (ro.CVaR(0.0), "worst scenario"),
        (ro.WorstCase(), "worst scenario"),
        (ro.KOfN(1, 2000), "expected worst of 2,000 scenarios drawn"),
        (ro.KOfN(5, 100), "expected mean of the 5 worst of 100 scenarios drawn"),
        (ro.Mean(), "mean of all scenarios"),
        (
            ro.Mixture([(0.5, ro.Mean()), (0.5, ro.WorstCase())]),
            "50 % of the mean of all scenarios + 50 % of the worst scenario",
        ),
    ],
)
def test_measures_in_words(measure: ro.Measure, words: str) -> None:
    assert measure.words == words


# Rules


def with_costs(**given: Any) -> ro.Problem:
    results = arrows().results
    costs = np.linspace(1.0, 3.0, len(results))
    return ro.Problem(results=results, measure=arrows().measure, costs=costs, **given)


def test_a_report_on_a_budget_shows_what_others_would_bring_and_no_sizes() -> None:
    problem = with_costs(budget=4.5)
    report = gathered(problem, backends=["exact", "scipy-milp"])
    page = page_of(report)
    assert "sizes" not in page.sections and "sizes" not in page.data
    told = page.data["budgets"]
    assert told["own"] == 4.5 and told["budget"][-1] == pytest.approx(13.5) and 4.5 in told["budget"]
    assert (np.diff(told["objective"]) <= 1e-12).all()
    assert told["objective"][told["budget"].index(4.5)] == pytest.approx(report.solution.objective, abs=1e-9)
    (own,) = [row for row in page.sections["budgets"][1:] if row[0] == "4.5"]
    assert set(own[5].split(", ")) == set(report.test.case_names)
    assert [row[1] for row in page.sections["agreement"][1:]] == ["agrees", "agrees"]


def test_sizes_that_cannot_keep_the_rules_are_left_out() -> None:
    groups = ["a", "b"] * (arrows().n_cases // 2) + ["a"] * (arrows().n_cases % 2)
    report = gathered(with_costs(size=3, groups=groups, at_least={"a": 1, "b": 2}))
    assert report.sizes["size"].tolist() == [3, 4, 5]
    assert report.budgets is not None and report.budgets["budget"].iloc[0] == pytest.approx(
        report.budgets["cost"].iloc[0]
    )


def test_without_costs_there_is_no_section_on_budgets() -> None:
    assert "budgets" not in page_of(report_on_arrows()).sections
