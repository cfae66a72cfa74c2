"""The pages in a real browser: they open alone, say what the package says, and show any name as text."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browsers import Browser
from commands import Run
from scipy import stats
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

import rposst_opt as ro
from rposst_opt import analysis
from rposst_opt.reports.pages.explorer import GameValues, game_values
from rposst_opt.reports.pages.explorer_page import explorer_page
from rposst_opt.reports.pages.report import Report, gather
from rposst_opt.reports.pages.report_page import report_page
from rposst_opt.reports.pages.sections import SECTIONS, Section
from rposst_opt.unseen.splits import Kind

CASE_NAMES = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<b>bold</b> &amp; &lt;",
    "{{ 7 * 7 }} ${6 * 7} %{y} $x^2$",
    "quotes \" ' `",
    "a very long name of a test case that goes on and on and on and does not fit anywhere",
    "<img src=x onerror=alert(3)>",
    "–ünïcode 日本語 🎯",
    "L" * 300,
    "plain",
)
POLICY_NAMES = (
    "<script>alert(5)</script>",
    "<a href='x'>link</a>",
    "<i>policy</i>",
    "&amp;",
    "%{x}",
    "long policy name, " * 4 + "that is",
    "p7",
    "p8",
)
TARGET_NAMES = ("<script>alert(6)</script>", "plain target")


@dataclass(frozen=True)
class Page:
    """A page, and the problem and the solution that it is about."""

    path: Path
    problem: ro.Problem
    solution: ro.Solution

    @property
    def test(self) -> ro.EfficientTest:
        assert self.solution.test is not None
        return self.solution.test

    def objective(self, measure: ro.Measure, weights: Sequence[float] | None = None) -> float:
        asked = replace(self.problem, measure=measure)
        test = self.test if weights is None else asked.test(cases=self.test.cases, weights=weights)
        return asked.objective(test)


@pytest.fixture(scope="module")
def nasty_report(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A report in which every name would like to be something else, and no two scenarios are equally likely."""
    rng = np.random.default_rng(4)
    results = rng.random((len(CASE_NAMES), len(POLICY_NAMES)))
    targets = np.stack([np.full(len(CASE_NAMES), 1 / len(CASE_NAMES)), rng.dirichlet(np.ones(len(CASE_NAMES)))])
    problem = ro.Problem(
        results=results,
        size=2,
        measure=ro.KOfN(2, 10),
        targets=targets,
        probabilities=rng.dirichlet(np.ones(16)).reshape(8, 2),
        required_cases=[0],
        costs=np.arange(1.0, len(CASE_NAMES) + 1),
        case_names=CASE_NAMES,
        policy_names=POLICY_NAMES,
    )
    backends = ["exact", "regret-matching"]
    report = gather(problem, scale=ro.Scale(-10.0, 30.0), target_names=TARGET_NAMES, backends=backends)
    assert report is not None
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_page(report, title="<script>alert(7)</script>", command="<b>rposst</b>"), "utf-8")
    return Page(path, problem, report.solution)


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report on twenty chosen cases with long names, in which nothing was searched for."""
    results = np.random.default_rng(7).random((30, 6))
    stems = ("geography", "a long name of a test case about history and geography", "unit_tests/with_no_space_" * 2)
    problem = ro.Problem(
        results=results,
        size=20,
        measure=ro.CVaR(0.5),
        case_names=[f"{stems[case % 3]}{case}" for case in range(30)],
        policy_names=[f"a policy with a name that is rather long, number {policy}" for policy in range(6)],
        costs=np.linspace(1000, 2000, 30),
    )
    solution = ro.solve(problem, "random")
    assert solution.test is not None
    report = Report(
        problem=problem,
        scale=ro.Scale(0.0, 100.0),
        target_names=["a target with a name that is rather long as well"],
        solution=solution,
        trace=[(0.1, solution.objective, solution.lower_bound)],
        sizes=analysis.size_curve(problem, [20], known={20: solution}),
        rounds=analysis.closing_in(problem, solution.test.cases, rounds=5),
        comparison=ro.compare(ro.Problem(results=results[:4], size=1), ["exact", "scipy-milp"], 5.0),
        budgets=pd.DataFrame(
            {
                "budget": [12345.678],
                "cost": [12345.678],
                "objective": [0.0123456789],
                "lower_bound": [0.0123456789],
                "status": ["feasible"],
                "cases": [solution.test.case_names],
            }
        ),
        not_asked={"pulp-cbc": "predicted to take 3.5 minutes"},
    )
    path = tmp_path_factory.mktemp("long") / "report.html"
    title = "A small test for a_table_with_an_extraordinarily_long_name_and_no_space_in_it_at_all"
    path.write_text(report_page(report, title=title, command=f"rposst report {'x' * 100}.csv"), "utf-8")
    return path


@pytest.fixture(scope="module")
def small_report() -> Report:
    """A report that is soon made."""
    results = np.random.default_rng(9).random((4, 5))
    report = gather(ro.Problem(results=results, size=1, costs=[1, 2, 3, 4]), backends=[])
    assert report is not None
    return report


@pytest.fixture(scope="module")
def race_explorer(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """An explorer on equally likely scenarios."""
    results = np.random.default_rng(5).integers(0, 4, (9, 6)) / 3
    problem = ro.Problem(results=results, size=3, measure=ro.CVaR(0.2), targets=ro.softmax_targets(results))
    solution = ro.solve(problem)
    assert solution.test is not None
    path = tmp_path_factory.mktemp("explorer") / "explore.html"
    names = [f"beta {beta}" for beta in (0, 1, 2, 4)]
    values = game_values(problem, solution)
    page = explorer_page(problem, solution, names, values, title="Explorer", command="rposst explore")
    path.write_text(page, "utf-8")
    return Page(path, problem, solution)


WritePage = Callable[[str], Path]


@pytest.fixture(scope="module")
def write_page(tmp_path_factory: pytest.TempPathFactory) -> WritePage:
    """Writes a page that one test opens."""
    path = tmp_path_factory.mktemp("pages") / "page.html"

    def write(text: str) -> Path:
        path.write_text(text, "utf-8")
        return path

    return write


def rows_of(browser: Browser, selector: str) -> list[list[str]]:
    script = "return [...document.querySelectorAll(arguments[0])].map(r => [...r.cells].map(c => c.textContent))"
    rows: list[list[str]] = browser.run(script, selector)
    return rows


def hover(browser: Browser, chart: str, x: float, y: float, axes: str = "") -> str:
    """Move the mouse to a point of a chart, given in its axes' own numbers, and read the label that comes up."""
    element = browser.find(f"#{chart}")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", element)
    left, top = browser.run(
        """
        const [chart, x, y, axes] = arguments;
        const {_fullLayout: layout} = chart, box = chart.getBoundingClientRect();
        const [across, down] = [layout[`xaxis${axes}`], layout[`yaxis${axes}`]];
        return [box.left + across._offset + across.d2p(x), box.top + down._offset + down.d2p(y)];
        """,
        element,
        x,
        y,
        axes,
    )
    # A chart answers to a mouse that moves, and to some of its moves only: the last one counts.
    chain = ActionChains(browser.driver, duration=20)
    for step in (3, 1, 0):
        chain.w3c_actions.pointer_action.move_to_location(int(left), int(top) + step)
        chain.pause(0.2)
    chain.perform()
    label = WebDriverWait(browser.driver, 5).until(lambda _: element.find_elements(By.CSS_SELECTOR, ".hovertext"))[0]
    return "\n".join(part.get_attribute("textContent") or "" for part in label.find_elements(By.TAG_NAME, "text"))


def press(element: WebElement, *keys: str) -> None:
    element.send_keys(*keys)


def type_into(browser: Browser, selector: str, value: object) -> None:
    box = browser.find(selector)
    browser.run("arguments[0].scrollIntoView({block: 'center'})", box)
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(Keys.NULL, str(value), Keys.TAB)


def test_a_page_opens_alone_and_without_complaints(browser: Browser, nasty_report: Page, race_explorer: Page) -> None:
    for page in (nasty_report, race_explorer):
        for width, dark in ((1400, False), (400, True)):
            browser.look_at(page.path, width=width, dark=dark, anew=True)
            assert browser.complaints() == []
            assert browser.requests() == [browser.address]


def test_what_would_leave_the_page_is_refused(browser: Browser, race_explorer: Page) -> None:
    browser.look_at(race_explorer.path)
    refused = browser.driver.execute_async_script(
        """
        const done = arguments[0];
        document.addEventListener("securitypolicyviolation", (event) => done(event.blockedURI), {once: true});
        const picture = Object.assign(new Image(), {src: "http://127.0.0.1:9/picture.png"});
        document.body.append(picture);
        picture.remove();  // the page is looked at by others
        setTimeout(() => done("nothing"), 3000);
        """
    )
    assert refused == "http://127.0.0.1:9/picture.png"
    browser.complaints()


@pytest.mark.parametrize("width", [1400, 400])
def test_nothing_sticks_out_of_the_page(browser: Browser, nasty_report: Page, race_explorer: Page, width: int) -> None:
    for page in (nasty_report, race_explorer):
        browser.look_at(page.path, width=width)
        assert browser.run("return document.documentElement.scrollWidth") <= width


CLIPPED = """
    const told = [];
    for (const element of document.querySelectorAll("header *, main *, footer *")) {
        const holds = element.closest(".chart") === null && element.clientWidth > 0;
        if (holds && element.scrollWidth > element.clientWidth + 1)
            told.push(`${element.tagName} ${element.textContent.trim().slice(0, 60)}`);
    }
    for (const chart of document.querySelectorAll(".chart")) {
        const {left, right} = chart.getBoundingClientRect();
        for (const text of chart.querySelectorAll("text")) {
            const box = text.getBoundingClientRect();
            if (box.width > 0 && (box.left < left - 1 || box.right > right + 1))
                told.push(`${chart.id} ${text.textContent}`);
        }
    }
    return told;
"""


@pytest.mark.parametrize("width", [1400, 400])
def test_nothing_is_clipped(
    browser: Browser, long_report: Path, nasty_report: Page, race_explorer: Page, width: int
) -> None:
    for path in (long_report, nasty_report.path, race_explorer.path):
        browser.look_at(path, width=width)
        assert browser.run(CLIPPED) == []


def test_the_first_screen_has_all_chosen_cases_and_the_three_answers(browser: Browser, long_report: Path) -> None:
    browser.look_at(long_report)
    bottoms = browser.run(
        "return [...document.querySelectorAll('.chosen tr, .main strong')].map(e => e.getBoundingClientRect().bottom)"
    )
    assert len(bottoms) == 1 + 20 + 3 and max(bottoms) <= 900


@pytest.mark.parametrize("section", [section for section in SECTIONS if section.id != "game"], ids=lambda each: each.id)
def test_a_section_can_stand_alone(
    browser: Browser, small_report: Report, section: Section, write_page: WritePage
) -> None:
    browser.open(write_page(report_page(small_report, sections=[section])))
    assert browser.complaints() == []
    assert browser.run("return [...document.querySelectorAll('section')].map(each => each.id)") == [section.id]
    assert browser.run("return [...document.querySelectorAll('.chart')].every(chart => chart.data.length > 0)")


# Names


def test_names_are_shown_as_they_are_in_tables(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    assert browser.find("h1").text == "<script>alert(7)</script>"
    assert browser.find("footer code").text == "<b>rposst</b>"
    assert {"<script>alert(1)</script>", "L" * 300} < set(nasty_report.test.case_names)
    chosen = [row[0] for row in rows_of(browser, "#cases tbody tr")]
    assert chosen == list(nasty_report.test.case_names)
    assert {row[0] for row in rows_of(browser, "#ranking tr")} == set(POLICY_NAMES)
    assert {row[1] for row in rows_of(browser, "#worst tbody tr")} == set(TARGET_NAMES)
    assert [row[0] for row in rows_of(browser, "#maker tr")] == list(nasty_report.test.case_names)
    # Nothing in the page was made by a name.
    assert browser.find_all("main img, main script, main i, main b, main a:not(.modebar-btn)") == []
    assert [option.text for option in browser.find_all("#target option")] == list(TARGET_NAMES)


def test_names_are_shown_as_they_are_in_charts(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    ticks = browser.run(
        "return [...document.querySelectorAll('#chart-matrix .ytick text')].map(tick => tick.textContent)"
    )
    shortened = [name if len(name) <= 22 else f"{name[:11]}…{name[-10:]}" for name in CASE_NAMES]
    assert [tick.strip() for tick in ticks][: len(CASE_NAMES)] == shortened
    assert browser.find_all(".js-plotly-plot a:not(.modebar-btn), .js-plotly-plot img") == []


@pytest.mark.parametrize("width", [400, 1200])
def test_labels_of_cases_and_policies_stay_distinct(browser: Browser, write_page: WritePage, width: int) -> None:
    """Some names differ at their ends, some in the middle, and one is what another would be cut to."""
    cases = [*(f"multi-step-reasoning-{number}" for number in range(9, 13)), "plain"]
    cases += [f"a-subject-of-study/{subject}/in-five-shots-each" for subject in ("law", "art")]
    cases += ["a-subject-o…shots-each", "a-subj…-each"]
    policies = [f"a-model-with-a-long-name-{size}-instruct-preview" for size in ("7b", "70b", "8b", "405b")]
    results = np.random.default_rng(1).random((len(cases), len(policies)))
    report = gather(ro.Problem(results=results, size=2, case_names=cases, policy_names=policies), backends=[])
    assert report is not None
    browser.open(write_page(report_page(report)), width=width)
    axes = browser.run(
        "const {xaxis, yaxis, yaxis2} = document.getElementById('chart-matrix').layout;"
        "return [xaxis.ticktext, yaxis.ticktext, yaxis2.ticktext]"
    )
    for labels, names in zip(axes, (policies, cases, report.test.case_names), strict=True):
        assert len(set(labels)) == len(labels) == (0 if width == 400 and names is policies else len(names))
    assert [label[-3:] for label in axes[1][:4]] == ["g-9", "-10", "-11", "-12"]
    assert "plain" in axes[1]


def test_a_name_cannot_end_the_pages_data(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    cases = browser.run("return JSON.parse(document.getElementById('data').textContent).matrix.cases")
    assert cases == list(CASE_NAMES)
    assert len(browser.find_all("script")) == 10  # the theme, the data, plotly, six of ours, and the start


# Hovering


def test_hovering_names_a_result(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    order = np.argsort(-nasty_report.problem.results.mean(axis=0), kind="stable")
    case, place = 1, 3
    told = hover(browser, "chart-matrix", place, case)
    result = -10 + 40 * nasty_report.problem.results[case, order[place]]
    assert CASE_NAMES[case] in told
    assert POLICY_NAMES[order[place]] in told
    assert f"result {result:.6g}" in told.replace("−", "-")
    top = hover(browser, "chart-matrix", place, 1, axes="2")  # the panel of the chosen cases
    assert nasty_report.test.case_names[1] in top


def test_hovering_names_a_policy_and_its_scores(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    problem = nasty_report.problem
    full = -10 + 40 * problem.results.mean(axis=0)
    small = -10 + 40 * nasty_report.test.score(problem.results)
    told = hover(browser, "chart-scores", full[0], small[0]).replace("−", "-")
    assert POLICY_NAMES[0] in told
    assert f"full score {full[0]:.6g}, small test {small[0]:.6g}" in told
    assert f"full test: rank {1 + (full > full[0]).sum()}, small test: rank {1 + (small > small[0]).sum()}" in told


def test_hovering_names_a_scenario_and_its_loss(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    problem = nasty_report.problem
    losses = problem.losses(nasty_report.test)
    weights = problem.measure.weights(losses, problem.scenarios.probabilities)
    worst = int(np.argmax(losses))
    likely = problem.scenarios.probabilities[worst]
    told = hover(browser, "chart-losses", likely / 2, losses[worst] / 3)
    policy, target = POLICY_NAMES[problem.scenarios.policies[worst]], TARGET_NAMES[worst % 2]
    assert f"{policy}, {target}" in told
    assert f"loss {losses[worst]:.6g}" in told
    assert f"weight {weights[worst]:.4g}" in told


# The explorer says what the package says


TOLD_OF_MEASURES = """
    return arguments[0].map((name) => {
        const objective = document.getElementById(`objective-${name}`);
        return {
            objective: objective.dataset.value,
            shown: objective.checkVisibility() ? objective.innerText : "",
            heaviest: document.getElementById(`heaviest-${name}`).dataset.value,
        };
    });
"""


def assert_numbers_are_the_packages(
    browser: Browser, page: Page, k: int, n: int, tail_fraction: float, weights: Sequence[float] | None = None
) -> None:
    measures = {"k-of-n": ro.KOfN(k, n), "cvar": ro.CVaR(tail_fraction), "mean": ro.Mean(), "worst": ro.WorstCase()}
    test = page.test if weights is None else page.problem.test(cases=page.test.cases, weights=weights)
    losses = page.problem.losses(test)
    for (name, measure), told in zip(measures.items(), browser.run(TOLD_OF_MEASURES, list(measures)), strict=True):
        expected = page.objective(measure, weights)
        assert float(told["objective"]) == pytest.approx(expected, rel=1e-10, abs=1e-12), name
        assert float(told["shown"].replace("−", "-")) == pytest.approx(expected, rel=1e-5, abs=1e-12), name
        heaviest = shared_weights(measure, losses, page.problem.scenarios.probabilities)[0]
        assert float(told["heaviest"]) == pytest.approx(heaviest, rel=1e-9, abs=1e-12), name


def shared_weights(measure: ro.Measure, losses: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """The weights of losses, worst first, where those that tie share theirs by their probabilities."""
    weights = measure.weights(losses, probabilities)
    ties = np.abs(losses[:, None] - losses[None]) <= 1e-9
    together = (ties @ weights) * probabilities / (ties @ probabilities)
    return np.asarray(together[np.argsort(-losses, kind="stable")])


def test_losses_that_tie_share_their_weight(browser: Browser, write_page: WritePage) -> None:
    """A case that one of four policies passes is off by 3/4 on it and by 1/4 on the three others, who are alike."""
    problem = ro.Problem(results=np.eye(4), size=1, measure=ro.CVaR(0.5))
    solution = ro.solve(problem)
    browser.open(write_page(explorer_page(problem, solution, ["all"], GameValues(), title="Ties", command="rposst")))
    *_, weights, cvar = chart_data(browser, "chart-sorted")
    assert cvar["y"] == pytest.approx([1 / 2, 1 / 6, 1 / 6, 1 / 6])
    assert len({round(weight, 12) for weight in weights["y"][1:]}) == 1 and sum(weights["y"]) == pytest.approx(1)
    alike = ro.Problem(results=np.array([[0.0, 1.0], [1.0, 0.0]]), size=1)  # either case is off by 1/2 on both
    solution = ro.solve(alike)
    browser.open(write_page(explorer_page(alike, solution, ["all"], GameValues(), title="Ties", command="rposst")))
    for name in ("k-of-n", "cvar", "mean", "worst"):
        told = browser.run("return document.getElementById(arguments[0]).dataset.value", f"heaviest-{name}")
        assert float(told) == pytest.approx(1 / 2), name


def test_the_way_to_the_limit_is_the_packages(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    path = browser.run("return Explorer.limitPath()")
    assert [point["n"] for point in path][:3] == [5, 10, 20]
    for point in path:
        exact = nasty_report.objective(ro.KOfN(point["k"], point["n"]))
        assert point["value"] == pytest.approx(exact, rel=1e-9)
    assert path[-1]["value"] == pytest.approx(nasty_report.objective(ro.CVaR(0.2)), rel=1e-2)


def test_the_sliders_start_at_the_problems_own_measure(
    browser: Browser, nasty_report: Page, race_explorer: Page
) -> None:
    browser.look_at(nasty_report.path)
    assert_numbers_are_the_packages(browser, nasty_report, 2, 10, 0.2)
    assert browser.number("#objective-k-of-n") == pytest.approx(nasty_report.solution.objective, rel=1e-9)
    browser.look_at(race_explorer.path)
    assert_numbers_are_the_packages(browser, race_explorer, 1, 5, 0.2)
    assert browser.number("#objective-cvar") == pytest.approx(race_explorer.solution.objective, rel=1e-9)


def test_the_formulas_agree_with_the_package_everywhere(browser: Browser, race_explorer: Page) -> None:
    browser.look_at(race_explorer.path)
    rng = np.random.default_rng(0)
    tails = np.concatenate([[0.0, 1e-12, 1.0, 1 - 1e-12], rng.random(40), 10.0 ** rng.uniform(-8, 0, 40)])
    for n in (1, 2, 3, 7, 30, 200, 3000, 10_000):
        for k in {1, 2, (n + 1) // 2, n - 1, n} & set(range(1, n + 1)):
            script = "return arguments[2].map(Measures.kOfN(arguments[0], arguments[1]).tailWeight)"
            assert browser.run(script, k, n, tails.tolist()) == pytest.approx(
                ro.KOfN(k, n).tail_weight(tails), abs=2e-11
            )


def test_no_call_has_more_arguments_than_a_browser_takes(browser: Browser, race_explorer: Page) -> None:
    browser.look_at(race_explorer.path)
    script = """
        const losses = Array.from({length: 300000}, (_, place) => place);
        return Measures.value(Measures.cvar(0.5), losses, losses.map(() => 1 / losses.length));
    """
    assert browser.run(script) == pytest.approx(np.arange(150_000, 300_000).mean())


def test_a_page_whose_formulas_were_wrong_would_say_so(
    browser: Browser, race_explorer: Page, write_page: WritePage
) -> None:
    browser.look_at(race_explorer.path)
    note = browser.find("#formula-check")
    assert note.get_attribute("class") == "fine" and browser.number("#formula-check") < 1e-10
    text = race_explorer.path.read_text("utf-8")
    assert text.count("(n / k) * tail") == 1
    browser.open(write_page(text.replace("(n / k) * tail", "(n / k) * tail * 1.000001")))
    note = browser.find("#formula-check")
    assert note.get_attribute("class") == "wrong" and "do not trust" in note.text


def test_moving_the_sliders_gives_the_packages_numbers(
    browser: Browser, nasty_report: Page, race_explorer: Page
) -> None:
    for page, k, n in ((nasty_report, 2, 10), (race_explorer, 1, 5)):
        browser.open(page.path)
        before = browser.number("#objective-k-of-n")
        press(browser.find("#slider-k"), Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        assert browser.number("#objective-k-of-n") < before
        assert_numbers_are_the_packages(browser, page, k + 2, n, (k + 2) / n)
        press(browser.find("#slider-n"), *[Keys.ARROW_RIGHT] * 5)
        assert_numbers_are_the_packages(browser, page, k + 2, n + 5, (k + 2) / (n + 5))
        press(browser.find("#slider-eta"), Keys.ARROW_RIGHT)  # and lets go of k/N
        fraction = float(browser.find("#slider-eta").get_attribute("value") or "nan")
        assert fraction != pytest.approx((k + 2) / (n + 5), abs=1e-6)
        assert not browser.find("#linked").is_selected()
        assert_numbers_are_the_packages(browser, page, k + 2, n + 5, fraction)
        browser.find("#linked").click()
        assert_numbers_are_the_packages(browser, page, k + 2, n + 5, (k + 2) / (n + 5))


def test_numbers_may_be_typed(browser: Browser, nasty_report: Page) -> None:
    browser.open(nasty_report.path)
    for k, n in ((1, 1), (1, 10_000), (9_999, 10_000), (50, 1000), (200, 200)):
        type_into(browser, "#box-n", n)
        type_into(browser, "#box-k", k)
        assert_numbers_are_the_packages(browser, nasty_report, k, n, k / n)


def test_nonsense_that_is_typed_becomes_the_nearest_sense(browser: Browser, race_explorer: Page) -> None:
    browser.open(race_explorer.path)
    type_into(browser, "#box-n", -3)
    assert_numbers_are_the_packages(browser, race_explorer, 1, 1, 1.0)
    type_into(browser, "#box-n", 1e9)
    type_into(browser, "#box-k", 1e9)
    assert_numbers_are_the_packages(browser, race_explorer, 10_000, 10_000, 1.0)
    type_into(browser, "#box-eta", 7)
    assert_numbers_are_the_packages(browser, race_explorer, 10_000, 10_000, 1.0)
    type_into(browser, "#box-eta", 0)
    assert_numbers_are_the_packages(browser, race_explorer, 10_000, 10_000, 0.0)


def test_moving_the_tests_weights_gives_the_packages_numbers(browser: Browser, nasty_report: Page) -> None:
    browser.open(nasty_report.path)
    browser.find("#explorer summary").click()
    slider = browser.find("#slider-weight-1")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", slider)
    press(slider, *[Keys.PAGE_UP] * 3)
    weights = [browser.number(f"#weight-{place}") for place in range(3)]
    assert sum(weights) == pytest.approx(1.0)
    assert weights != pytest.approx(nasty_report.test.weights, abs=0.01)
    assert_numbers_are_the_packages(browser, nasty_report, 2, 10, 0.2, weights)
    assert browser.number("#objective-k-of-n") > nasty_report.solution.objective
    browser.find("#best-weights").click()
    assert_numbers_are_the_packages(browser, nasty_report, 2, 10, 0.2)


def test_the_curves_are_the_packages(browser: Browser, race_explorer: Page) -> None:
    browser.open(race_explorer.path)
    type_into(browser, "#box-n", 12)
    type_into(browser, "#box-k", 3)
    curves = browser.run(
        "return document.getElementById('chart-tail-weight').data.map(trace => [trace.name, trace.x, trace.y])"
    )
    measures = {"mean": ro.Mean(), "CVaR(0.25)": ro.CVaR(0.25), "3-of-12": ro.KOfN(3, 12)}
    assert {name for name, _, _ in curves} == set(measures)
    for name, tails, weights in curves:
        assert weights == pytest.approx(measures[name].tail_weight(np.array(tails)), abs=1e-12)
    bars = browser.run("return document.getElementById('chart-sorted').data.map(trace => [trace.type, trace.y])")
    losses = np.sort(race_explorer.problem.losses(race_explorer.test))[::-1]
    assert bars[0][1] == pytest.approx(losses, abs=1e-12)
    likely = np.full(24, 1 / 24)
    assert bars[3][1] == pytest.approx(shared_weights(ro.KOfN(3, 12), losses, likely), abs=1e-12)
    assert bars[4][1] == pytest.approx(shared_weights(ro.CVaR(0.25), losses, likely), abs=1e-12)


def test_the_way_to_the_limit_is_a_line_where_it_is_one(browser: Browser, race_explorer: Page) -> None:
    browser.open(race_explorer.path)
    type_into(browser, "#box-n", 7)
    type_into(browser, "#box-k", 7)
    low, high = browser.run("return document.getElementById('chart-limit').layout.yaxis.range")
    mean = race_explorer.objective(ro.Mean())
    assert low < 0.9995 * mean and high > 1.0005 * mean


# The game


def test_a_round_of_the_game_is_one_of_regret_matching(browser: Browser, nasty_report: Page) -> None:
    """Charge the first cards of every hand, and follow the maker's weights with the cuts of the package."""
    browser.open(nasty_report.path)
    problem, cases = nasty_report.problem, nasty_report.test.cases
    weights, regrets = np.full(3, 1 / 3), np.zeros(3)
    averaged, charges, perfect = np.zeros(3), [], []
    for number in range(1, 6):
        hand = [int(card.get_attribute("data-scenario") or "") for card in browser.find_all("#cards button")]
        assert len(hand) == 6
        losses = problem.losses(problem.test(cases=cases, weights=weights))
        for place in (0, 1):
            browser.find_all("#cards button")[place].click()
        browser.find("#charge").click()
        charges.append(losses[hand[:2]].mean())
        perfect.append(np.sort(losses[hand])[-2:].mean())
        averaged += number * weights
        scores = weights @ problem.results[list(cases)]
        costs = np.zeros(3)
        for scenario in hand[:2]:
            policy = problem.scenarios.policies[scenario]
            slope = np.sign(scores[policy] - problem.scenarios.full_scores[scenario])
            costs += slope * problem.results[list(cases), policy] / 2
        regrets = np.maximum(regrets + weights @ costs - costs, 0)
        weights = regrets / regrets.sum() if regrets.sum() > 0 else np.full(3, 1 / 3)
        shown = browser.run("return [...document.querySelectorAll('#maker tr')].map(row => Number(row.dataset.value))")
        assert shown == pytest.approx(weights, abs=1e-12)
    assert browser.number("#game-rounds") == 5
    assert browser.number("#game-yours") == pytest.approx(np.mean(charges), rel=1e-9)
    assert browser.number("#game-perfect") == pytest.approx(np.mean(perfect), rel=1e-9)
    worth = nasty_report.objective(ro.KOfN(2, 6), (averaged / averaged.sum()).tolist())
    assert browser.number("#game-value") == pytest.approx(worth, rel=1e-9)


def test_the_games_optimum_is_proved_and_its_maker_learns(browser: Browser, race_explorer: Page) -> None:
    browser.open(race_explorer.path)
    others = tuple(case for case in range(9) if case not in race_explorer.test.cases)
    for k, n in ((2, 6), (1, 8), (3, 3)):
        Select(browser.find("#game-n")).select_by_value(str(n))
        Select(browser.find("#game-k")).select_by_value(str(k))
        asked = replace(race_explorer.problem, measure=ro.KOfN(k, n), forbidden_cases=others)
        least = ro.solve(asked, "scipy-milp").objective
        assert browser.number("#game-least") == pytest.approx(least, abs=1e-7)
        assert browser.number("#game-rounds") == 0
        first = browser.number("#game-value")
        browser.find("#play-many").click()
        browser.run("for (let more = 0; more < 7; more += 1) document.getElementById('play-many').click()")
        assert browser.number("#game-rounds") == 800
        assert least - 1e-9 <= browser.number("#game-value") <= least + 0.2 * (first - least) + 0.01
        assert browser.number("#game-yours") == browser.number("#game-perfect")


def test_a_game_whose_optimum_is_not_proved_can_be_played(
    browser: Browser, race_explorer: Page, write_page: WritePage
) -> None:
    names = [f"beta {beta}" for beta in (0, 1, 2, 4)]
    text = explorer_page(race_explorer.problem, race_explorer.solution, names, GameValues(), title="", command="")
    browser.open(write_page(text))
    browser.find("#play-many").click()
    assert browser.number("#game-rounds") == 100
    assert browser.find("#game-least").text == "–"
    assert browser.complaints() == []


def test_only_k_cards_can_be_charged(browser: Browser, race_explorer: Page) -> None:
    browser.open(race_explorer.path)
    assert not browser.find("#charge").is_enabled()
    for place in (0, 1, 2):
        browser.find_all("#cards button")[place].click()
    pressed = [card.get_attribute("aria-pressed") for card in browser.find_all("#cards button")]
    assert pressed == ["true", "true", "false", "false", "false", "false"]
    assert browser.find("#charge").is_enabled()
    browser.find_all("#cards button")[0].click()
    assert not browser.find("#charge").is_enabled()
    browser.find("#pick-worst").click()
    losses = [float(card.find_element(By.CLASS_NAME, "loss").text) for card in browser.find_all("#cards button")]
    picked = [card.get_attribute("aria-pressed") == "true" for card in browser.find_all("#cards button")]
    assert sum(picked) == 2
    assert min(np.array(losses)[picked]) >= max(np.array(losses)[~np.array(picked)])
    browser.find("#charge").click()
    browser.find("#restart").click()
    assert browser.number("#game-rounds") == 0


# The report's tables


def test_the_ranking_follows_the_chosen_target(browser: Browser, nasty_report: Page) -> None:
    browser.open(nasty_report.path)
    problem = nasty_report.problem
    small = nasty_report.test.score(problem.results)
    for place, weights in enumerate(problem.targets):
        Select(browser.find("#target")).select_by_value(str(place))
        full = weights @ problem.results
        rows = {row[0]: row[1:] for row in rows_of(browser, "#ranking tr")}
        for j, policy in enumerate(POLICY_NAMES):
            score, rank, small_score, small_rank, moves = (cell.replace("−", "-") for cell in rows[policy])
            assert float(score) == pytest.approx(-10 + 40 * full[j], rel=1e-4)
            assert float(small_score) == pytest.approx(-10 + 40 * small[j], rel=1e-4)
            by_full, by_small = 1 + (full > full[j]).sum(), 1 + (small > small[j]).sum()
            assert (int(rank), int(small_rank)) == (by_full, by_small)
            expected = {-1: f"▼ {by_small - by_full}", 0: "=", 1: f"▲ {by_full - by_small}"}
            assert moves == expected[int(np.sign(by_full - by_small))]
        pairs = [(i, j) for i in range(8) for j in range(i)]
        swapped = sum((full[i] - full[j]) * (small[i] - small[j]) < 0 for i, j in pairs)
        assert f"Pairs of policies: 28; in the opposite order: {swapped}" in browser.find("#ranking-words").text
        axis = browser.run("return document.getElementById('chart-scores').data[1].x")
        assert axis == pytest.approx(-10 + 40 * full)


def test_a_single_target_offers_no_choice(browser: Browser, small_report: Report, write_page: WritePage) -> None:
    browser.open(write_page(report_page(small_report)))
    assert not browser.find("#target").is_displayed()
    assert browser.complaints() == []


def test_all_losses_can_be_looked_at(browser: Browser, nasty_report: Page) -> None:
    browser.open(nasty_report.path)
    browser.find("#losses-all").click()
    assert browser.run("return document.getElementById('chart-losses').layout.xaxis.range") == [0, 1]
    browser.find("#losses-tail").click()
    assert browser.run("return document.getElementById('chart-losses').layout.xaxis.range[1]") <= 1


def test_shading_and_losses_make_the_objective(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    losses, _, shade = browser.run(
        "return document.getElementById('chart-losses').data.map(t => ({x: t.x, y: t.y, width: t.width}))"
    )
    density = shade["y"][1:]
    area = sum(loss * width * times for loss, width, times in zip(losses["y"], losses["width"], density, strict=True))
    assert area == pytest.approx(nasty_report.solution.objective, rel=1e-9)


def test_the_shade_begins_at_the_worst_and_ends_where_nothing_counts(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    problem = nasty_report.problem
    losses, likely = problem.losses(nasty_report.test), problem.scenarios.probabilities
    worst_first = np.argsort(-losses, kind="stable")
    tails = np.cumsum(likely[worst_first])
    bars, _, shade = chart_data(browser, "chart-losses")
    assert shade["x"] == pytest.approx([0.0, *tails]) and shade["line"]["shape"] == "vh"
    by_position = problem.measure.weights(losses, likely)
    alike = np.abs(losses[:, None] - losses) < 1e-9  # who ties shares, in proportion to probability
    assert alike.sum() > len(losses)
    counts = ((alike @ by_position) / (alike @ likely))[worst_first]
    assert shade["y"] == pytest.approx([counts[0], *counts])
    assert bars["y"] == pytest.approx(losses[worst_first])
    assert bars["x"] == pytest.approx(tails - likely[worst_first] / 2)
    assert bars["width"] == pytest.approx(likely[worst_first])


def chart_data(browser: Browser, chart: str) -> list[dict[str, Any]]:
    """What a chart draws, without what plotly keeps beside it."""
    script = "return JSON.parse(JSON.stringify(document.getElementById(arguments[0]).data))"
    traces: list[dict[str, Any]] = browser.run(script, chart)
    return traces


def test_charts_of_the_proof_draw_objectives_above_bounds(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    data = browser.run("return JSON.parse(document.getElementById('data').textContent)")
    run = {trace["name"]: trace for trace in chart_data(browser, "chart-run")}
    assert run["best test so far"]["y"] == data["run"]["objective"]
    assert run["proved bound"]["y"] == data["run"]["bound"]
    assert run["best test so far"]["x"] == run["proved bound"]["x"] == data["run"]["milliseconds"]
    assert run["best test so far"]["y"][-1] == nasty_report.solution.objective
    assert run["proved bound"]["y"][-1] == nasty_report.solution.lower_bound
    rounds = {trace["name"]: trace for trace in chart_data(browser, "chart-rounds")}
    for name, key in (("best round", "best"), ("proved bound", "bound"), ("this round", "objective")):
        assert rounds[name]["y"] == data["rounds"][key] and rounds[name]["x"] == data["rounds"]["round"]
    (sizes,) = chart_data(browser, "chart-sizes")
    assert sizes["x"] == [2, 3, 4, 5]  # the required case is counted
    assert sizes["y"] == data["sizes"]["objective"] and sizes["y"][1] == nasty_report.solution.objective
    assert [size for size, place in zip(sizes["marker"]["size"], sizes["x"], strict=True) if place == 3] == [13]
    lower = np.array(sizes["y"]) - sizes["error_y"]["arrayminus"]
    assert lower == pytest.approx(data["sizes"]["bound"], abs=1e-12)


def test_the_chart_of_solvers_draws_their_objectives_and_bounds(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    profiles = browser.run("return JSON.parse(document.getElementById('data').textContent).profiles")
    *lines, crosses = chart_data(browser, "chart-profiles")
    assert [profile["solver"] for profile in profiles] == ["exact", "regret-matching"] and crosses["x"] == []
    for place, profile in enumerate(profiles):
        bounds, objectives, last_bound, last_objective = lines[4 * place : 4 * place + 4]
        assert bounds["y"] == profile["bound"] and objectives["y"] == profile["objective"]
        assert bounds["line"]["dash"] == "dash" and objectives["line"]["dash"] == "solid"
        assert objectives["x"] == [max(seconds, 1e-3) for seconds in profile["seconds"]]
        assert last_objective["y"] == [profile["objective"][-1]] and last_bound["y"] == [profile["bound"][-1]]
        assert last_objective["showlegend"] and last_objective["name"] == profile["solver"]
        assert last_objective["y"] == pytest.approx([nasty_report.solution.objective], abs=1e-3)


def test_weights_and_scores_are_drawn(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    widths = browser.run("return [...document.querySelectorAll('.bar span')].map(e => e.getBoundingClientRect().width)")
    weights = nasty_report.test.weights
    assert np.array(widths) / max(widths) == pytest.approx(weights / weights.max(), abs=0.01)
    same, policies = chart_data(browser, "chart-scores")
    assert same["x"] == same["y"]
    assert policies["x"] == pytest.approx(-10 + 40 * nasty_report.problem.results.mean(axis=0))
    assert policies["y"] == pytest.approx(-10 + 40 * nasty_report.test.score(nasty_report.problem.results))


def test_frames_and_arrows_mark_the_chosen_cases(browser: Browser, nasty_report: Page) -> None:
    browser.look_at(nasty_report.path)
    chosen = list(nasty_report.test.cases)
    everything, alone, arrows = chart_data(browser, "chart-matrix")
    assert arrows["y"] == chosen
    frames = browser.run("return document.getElementById('chart-matrix').layout.shapes.map(f => [f.y0, f.y1])")
    assert frames == [[case - 0.5, case + 0.5] for case in chosen]
    order = np.argsort(-nasty_report.problem.results.mean(axis=0), kind="stable")
    in_the_files_units = -10 + 40 * nasty_report.problem.results[:, order]
    assert np.array(everything["z"]) == pytest.approx(in_the_files_units)
    assert np.array(alone["z"]) == pytest.approx(in_the_files_units[chosen])


def test_lines_and_names_in_the_explorers_charts(browser: Browser, nasty_report: Page) -> None:
    browser.open(nasty_report.path)
    type_into(browser, "#box-eta", 0.4)  # another tail than k/N = 0.2
    problem, test = nasty_report.problem, nasty_report.test
    losses = problem.losses(test)
    worst_first = np.argsort(-losses, kind="stable")
    bars, cvar, k_of_n, weights, _ = chart_data(browser, "chart-sorted")
    assert cvar["y"] == pytest.approx([nasty_report.objective(ro.CVaR(0.4))] * 2)
    assert k_of_n["y"] == pytest.approx([nasty_report.objective(ro.KOfN(2, 10))] * 2)
    shown = [name.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for name in bars["text"]]
    pairs = [(problem.scenarios.policies[s], problem.scenarios.target_rows[s]) for s in worst_first]
    assert shown == [f"{POLICY_NAMES[policy]}, {TARGET_NAMES[target]}" for policy, target in pairs]
    assert weights["text"] == bars["text"]
    limit, _ = chart_data(browser, "chart-limit")
    assert limit["y"] == pytest.approx([nasty_report.objective(ro.CVaR(0.2))] * 2)
    objective = chart_data(browser, "chart-losses")[1]
    assert objective["y"] == [nasty_report.solution.objective] * 2


def test_the_game_draws_by_probability_and_charts_what_it_says(browser: Browser, nasty_report: Page) -> None:
    browser.open(nasty_report.path)
    drawn = browser.run(
        """
        const seen = [], {paint} = Charts;
        Charts.paint = () => {};  // an empty chart is the same in all games, and takes longer than the draws
        for (let game = 0; game < 600; game += 1) {
            document.getElementById("restart").click();
            for (const card of document.getElementById("cards").children) seen.push(Number(card.dataset.scenario));
        }
        Charts.paint = paint;
        return seen;
        """
    )
    probabilities = nasty_report.problem.scenarios.probabilities
    counts = np.bincount(drawn, minlength=len(probabilities))
    assert counts.sum() == 3600
    assert stats.chisquare(counts, 3600 * probabilities).pvalue > 1e-4  # its draws are the same in every run
    browser.find("#play-many").click()
    yours, worth, least = chart_data(browser, "chart-game")
    assert yours["y"][-1] == pytest.approx(browser.number("#game-yours"))
    assert worth["y"][-1] == pytest.approx(browser.number("#game-value"))
    assert least["y"] == [browser.number("#game-least")] * 2
    assert yours["x"] == list(range(1, 101))


# Policies that nobody has seen


@dataclass(frozen=True)
class Validated:
    """A page, and the validation that it shows."""

    path: Path
    validation: ro.Validation


@pytest.fixture(scope="module")
def validated_report(tmp_path_factory: pytest.TempPathFactory) -> Validated:
    """A report with trials of every kind."""
    results = np.random.default_rng(1).random((8, 7))
    names = [f"p{policy}" for policy in range(7)]
    validation = ro.validate(
        pd.DataFrame(results, columns=names),
        [2],
        selections=["rposst", "random"],
        estimators=["weights", "ridge"],
        groups=list("aabbccc"),
    )
    problem, scale = ro.Purpose().problem(results, 2)
    named = replace(problem, policy_names=tuple(names))
    report = gather(named, scale=scale, backends=[], largest_size=2, validation=validation)
    assert report is not None
    path = tmp_path_factory.mktemp("validated") / "report.html"
    path.write_text(report_page(report), "utf-8")
    return Validated(path, validation)


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (1400, True), (400, False), (400, True)])
def test_the_trials_on_unseen_policies_are_shown_without_complaints(
    browser: Browser, validated_report: Validated, width: int, dark: bool
) -> None:
    browser.look_at(validated_report.path, width=width, dark=dark, anew=True)
    assert browser.complaints() == []
    told = browser.find("#unseen").text
    for kind in Kind:
        assert ro.recommend(validated_report.validation, kind).sentence in told
    assert len(browser.find_all("#unseen .chart svg.main-svg")) >= 3
    assert browser.run("return document.documentElement.scrollWidth") <= width
    beyond = "return [...document.querySelectorAll('#unseen .scroll')].map(e => e.scrollWidth - e.clientWidth)"
    assert browser.run(beyond) == [0, 0, 0]


@pytest.mark.parametrize("kind", list(Kind))
def test_the_chart_of_unseen_policies_draws_the_summarys_numbers(
    browser: Browser, validated_report: Validated, kind: Kind
) -> None:
    browser.look_at(validated_report.path)
    summary = validated_report.validation.summary
    ways = summary[summary["kind"] == kind.value].sort_values("mean_error", kind="stable").reset_index(drop=True)
    tuned, others, own = chart_data(browser, f"chart-unseen-{kind.value}")
    assert tuned["x"] == pytest.approx(ways["tuned_mean"].tolist())
    place = int(ways.index[(ways["selection"] == "rposst") & (ways["estimator"] == "weights")][0])
    assert own["y"] == [place] and own["marker"]["color"] != others["marker"]["color"]
    for drawn in (others, own):
        of_trace = ways.iloc[drawn["y"]]
        assert drawn["x"] == pytest.approx(of_trace["mean_error"].tolist())
        high = np.array(drawn["x"]) + drawn["error_x"]["array"]
        low = np.array(drawn["x"]) - drawn["error_x"]["arrayminus"]
        assert high == pytest.approx(of_trace["high"].to_numpy())
        assert low == pytest.approx(of_trace["low"].to_numpy(), abs=1e-12)
    told = hover(browser, f"chart-unseen-{kind.value}", own["x"][0], place)
    assert "rposst, weights" in told and f"tuned {ways['tuned_mean'][place]:.3g}" in told


def test_the_trials_are_on_paper_too(browser: Browser, validated_report: Validated) -> None:
    browser.open(validated_report.path, dark=True)
    browser.run(
        """
        window.seen = [];
        addEventListener("beforeprint", () => document.querySelectorAll("#unseen .chart").forEach((chart) =>
            seen.push(chart.clientWidth, chart._fullLayout.width, chart._fullLayout.font.color)));
        """
    )
    assert browser.print().startswith(b"%PDF")
    seen = browser.run("return seen")
    assert len(seen) == 9
    assert all(drawn == width <= 700 for width, drawn in zip(seen[::3], seen[1::3], strict=True))
    assert set(seen[2::3]) == {"#1d2126"}  # the light theme's ink


# Light, dark and paper


def test_light_and_dark(browser: Browser, nasty_report: Page) -> None:
    def looks() -> tuple[str, str]:
        paper, ink = browser.run(
            """
            const chart = document.getElementById("chart-matrix");
            return [getComputedStyle(document.body).backgroundColor, chart._fullLayout.font.color];
            """
        )
        return paper, ink

    browser.look_at(nasty_report.path)
    light = looks()
    browser.open(nasty_report.path, dark=True)
    dark = looks()
    assert light[0] != dark[0] and light[1] != dark[1]
    browser.find("#theme").click()
    assert looks() == light
    browser.find("#theme").click()
    assert looks() == dark


def test_printing_is_light_and_leaves_the_screen_as_it_was(browser: Browser, nasty_report: Page) -> None:
    browser.open(nasty_report.path, dark=True)
    browser.run(
        """
        window.seen = [];
        addEventListener("beforeprint", () => seen.push(
            document.documentElement.dataset.theme, document.getElementById("chart-matrix").clientWidth));
        """
    )
    printed = browser.print()
    assert printed.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12
    theme, width = browser.run("return seen")
    assert theme == "light" and width <= 700
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    assert not browser.run("return document.documentElement.classList.contains('printing')")
    assert browser.run("return document.getElementById('chart-matrix')._fullLayout.width") > 900


def test_paper_has_all_tables_and_no_controls(browser: Browser, nasty_report: Page) -> None:
    browser.open(nasty_report.path)
    shown = "return [...document.querySelectorAll(arguments[0])].map(e => e.getClientRects().length > 0)"
    assert all(browser.run(shown, "nav, button, .controls, #game"))
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not any(browser.run(shown, "nav, button, .controls, #game"))
    assert all(browser.run(shown, "section:not(#game) table, section:not(#game) .chart, .tile"))
    assert browser.run("return document.querySelector('#scores .scroll').clientHeight") > 100
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_narrow_screen_has_one_column(browser: Browser, nasty_report: Page) -> None:
    lefts = "return [...document.querySelector('#scores .pair').children].map(e => e.getBoundingClientRect().left)"
    browser.look_at(nasty_report.path, width=1400)
    first, second = browser.run(lefts)
    assert first < second
    browser.look_at(nasty_report.path, width=400)
    first, second = browser.run(lefts)
    assert first == second


# Size


def test_very_many_scenarios_are_drawn_as_an_outline_and_still_answer(browser: Browser, write_page: WritePage) -> None:
    results = np.random.default_rng(8).random((4, 500))
    problem = ro.Problem(results=results, size=1, measure=ro.CVaR(0.1), policy_names=[f"p{j}" for j in range(500)])
    report = gather(problem, backends=[])
    assert report is not None
    browser.open(write_page(report_page(report)))
    assert browser.complaints() == []
    losses = np.sort(problem.losses(report.test))[::-1]
    columns, _, _ = chart_data(browser, "chart-losses")
    assert columns.get("type") != "bar" and columns["y"] == pytest.approx(losses)
    told = hover(browser, "chart-losses", 10.5 / 500, losses[10] / 3)
    assert f"loss {losses[10]:.6g}" in told
    assert problem.policy_names[np.argsort(-problem.losses(report.test), kind="stable")[10]] in told


def test_a_large_matrix_opens_without_complaints(browser: Browser, rposst: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    skill, difficulty = rng.normal(size=200), rng.normal(size=(500, 1))
    table = pd.DataFrame(1 / (1 + np.exp(difficulty - skill + rng.normal(size=(500, 200)) / 3)))
    table.index = pd.Index([f"item-{place}" for place in range(500)])
    table.columns = [f"model-{place}" for place in range(200)]
    table.to_csv("large.csv", index_label="test_case")
    options = ("--size", "3", "--betas", "0,1,2,4", "--tail-fraction", "0.05", "--time-limit", "1", "--no-agree")
    outcome = rposst("report", "large.csv", *options, "--largest-size", "3", "--out", "large.html")
    assert outcome.code == 0, outcome.err
    browser.open(tmp_path / "large.html")
    assert browser.complaints() == []
    assert browser.run("return document.getElementById('chart-matrix').data[0].z.length") == 500
