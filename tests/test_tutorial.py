"""The tutorial's code is run, its output and pictures are compared, and its formulas are held to numbers."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.mathtext import MathTextParser
from pictures import PICTURE_TOLERANCE, picture_distance
from scipy import stats

import rposst_opt as ro
from docs.make_pictures import TUTORIAL, read_blocks, run_blocks
from rposst_opt import analysis, plots
from rposst_opt.arrays import FloatArray

DOCS = TUTORIAL.parent
TEXT = TUTORIAL.read_text(encoding="utf-8")
BLOCKS = read_blocks(TEXT)
PROSE = re.sub(r"^```.*?^```\n", "", TEXT, flags=re.DOTALL | re.MULTILINE)
IMAGES = re.findall(r"!\[(.*?)\]\((.*?)\)", PROSE)
DISPLAYED = re.findall(r"\$\$(.+?)\$\$", PROSE, flags=re.DOTALL)
INLINE = re.findall(r"\$(.+?)\$", re.sub(r"\$\$.+?\$\$", "", PROSE, flags=re.DOTALL), flags=re.DOTALL)
SECTIONS = re.split(r"^## (?=\d)", PROSE.split("\n## Where to go on")[0], flags=re.MULTILINE)[1:]

MOST_BYTES = 150_000


@dataclass(frozen=True)
class Run:
    """What the tutorial's code has printed, and the folder that it has drawn into."""

    outputs: list[str]
    folder: Path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("docs")
    for path in {Path(target).parent for _, target in IMAGES}:
        (folder / path).mkdir()
    return Run(run_blocks(BLOCKS, folder), folder)


# What the code prints and draws.


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=[f"line-{block.line}" for block in BLOCKS])
def test_every_block_prints_what_the_text_shows(run: Run, number: int) -> None:
    assert run.outputs[number] == BLOCKS[number].shown


def test_all_code_and_all_output_is_found() -> None:
    assert len(BLOCKS) == TEXT.count("```python\n")
    assert sum(bool(block.shown) for block in BLOCKS) == TEXT.count("```text\n")
    assert TEXT.count("```") == 2 * (TEXT.count("```python\n") + TEXT.count("```text\n"))


def test_code_and_output_fit_on_a_page() -> None:
    assert max(len(line) for block in BLOCKS for line in (block.code + block.shown).splitlines()) <= 100


def test_pictures_are_drawn_by_the_code_and_all_are_shown(run: Run) -> None:
    shown = {target for _, target in IMAGES}
    assert 5 <= len(shown) == len(IMAGES)
    assert {path.relative_to(run.folder).as_posix() for path in run.folder.rglob("*.png")} == shown
    assert {path.relative_to(DOCS).as_posix() for path in (DOCS / "k_of_n").iterdir()} == shown
    assert all(len(words.split()) >= 5 for words, _ in IMAGES)


@pytest.mark.parametrize("target", [target for _, target in IMAGES])
def test_pictures_are_those_that_the_code_draws_now(run: Run, target: str) -> None:
    assert (DOCS / target).stat().st_size <= MOST_BYTES
    advice = f"{target} is stale: run `python docs/make_pictures.py` and look at it"
    assert picture_distance(DOCS / target, run.folder / target) <= PICTURE_TOLERANCE, advice


def draw_tail_weights(path: Path, *measures: ro.Measure) -> Path:
    tables = [analysis.tail_profile(measure, 20) for measure in measures]
    labels = ["mean", "1 of 5", "5 of 25", "CVaR(1/5)"]
    plots.tail_profile(*tables, labels=labels).savefig(path, dpi=150)
    return path


def test_a_stale_picture_is_told_from_one_in_another_type(tmp_path: Path) -> None:
    now = [ro.Mean(), ro.KOfN(1, 5), ro.KOfN(5, 25), ro.CVaR(0.2)]
    true = draw_tail_weights(tmp_path / "now.png", *now)
    with rc_context({"text.hinting": "none"}):
        other_type = draw_tail_weights(tmp_path / "type.png", *now)
    assert 0 < picture_distance(true, other_type) <= PICTURE_TOLERANCE
    for place, before in ((1, ro.KOfN(1, 4)), (2, ro.KOfN(4, 20)), (3, ro.CVaR(0.25))):
        stale = draw_tail_weights(tmp_path / "stale.png", *(*now[:place], before, *now[place + 1 :]))
        assert picture_distance(true, stale) > PICTURE_TOLERANCE


# What the text is made of.


def test_every_section_has_exercises_and_every_exercise_an_answer() -> None:
    assert len(SECTIONS) == 9
    for section in SECTIONS:
        assert re.search(r"^\*\*Exercise \d+\.\*\*", section, flags=re.MULTILINE), section[:40]
    exercises = re.split(r"^\*\*Exercise (?=\d)", PROSE, flags=re.MULTILINE)[1:]
    assert [int(exercise.split(".")[0]) for exercise in exercises] == list(range(1, len(exercises) + 1))
    for exercise in exercises:
        question, answer = exercise.split("<details>\n<summary>Answer</summary>\n\n")
        assert question.strip()
        assert len(answer.split("</details>")[0].split()) >= 10
    assert TEXT.count("<details>") == TEXT.count("</details>") == len(exercises)


def heading_anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    links = [target for _, target in re.findall(r"(?<!!)\[([^\]]*)\]\(([^)]+)\)", PROSE)]
    assert len(links) >= 12
    for link in links:
        file, _, anchor = link.partition("#")
        assert not anchor or anchor in heading_anchors(PROSE)
        assert not file or (DOCS / file).is_file()
    assert sum(link.startswith("#") for link in links) == len(SECTIONS)


def test_formulas_can_be_set_and_markdown_leaves_them_alone() -> None:
    parser = MathTextParser("path")
    for formula in {*DISPLAYED, *INLINE}:
        assert formula == formula.strip()
        assert "\n" not in formula, formula
        assert not re.search(r"\\[^A-Za-z ]", formula), f"a backslash before a sign is markdown's: {formula}"
        assert not re.search(r"[*`]|\}_|_ ", formula), f"could be taken for emphasis: {formula}"
        parser.parse("$" + re.sub(r"\\(le|ge)\b", r"\\\1q", formula) + "$")  # \le and \ge are not known to it


def test_dollars_come_in_pairs() -> None:
    assert all(line.count("$") % 2 == 0 for line in PROSE.splitlines())


# What the text says, where no code beside it shows it.


def states(formula: str) -> None:
    """The text has this formula, so that it cannot be changed without the test that holds it to numbers."""
    assert formula in " ".join(PROSE.split()), formula


GRID = np.linspace(0.0, 1.0, 201)
PAIRS = [(1, 1), (1, 2), (2, 2), (1, 7), (3, 7), (5, 9), (4, 40), (20, 40), (39, 40)]
EVERY_PAIR = pytest.mark.parametrize(("k", "n"), PAIRS)


def binomial_tails(k: int, n: int, u: FloatArray) -> FloatArray:
    """G as the text defines it, from the probabilities of all counts."""
    counts = np.arange(n + 1)
    chances = stats.binom.pmf(counts[:, None], n, u)
    weight: FloatArray = (np.minimum(counts, k) @ chances) / k
    return weight


def draw_losses(seed: int, d: int = 7) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    return rng.random(d), rng.dirichlet(np.ones(d))


@EVERY_PAIR
def test_the_three_forms_of_the_tail_weight_agree(k: int, n: int) -> None:
    states(r"g(u) = \frac{1}{k} \mathbb{E}[\min(k, B)] = \frac{1}{k} \sum_{i=1}^{k} \mathbb{P}[B \ge i]")
    states(r"g(u) = \mathbb{P}[B \ge k] + \frac{N u}{k} \mathbb{P}[B' \le k - 2]")
    tails = sum(stats.binom.sf(i - 1, n, GRID) for i in range(1, k + 1)) / k
    short = stats.binom.sf(k - 1, n, GRID) + n * GRID / k * stats.binom.cdf(k - 2, n - 1, GRID)
    for form in (tails, short, ro.KOfN(k, n).tail_weight(GRID)):
        np.testing.assert_allclose(form, binomial_tails(k, n, GRID), atol=1e-12)


@EVERY_PAIR
def test_the_slope_of_the_tail_weight(k: int, n: int) -> None:
    states(r"g'(u) = \frac{N}{k} \mathbb{P}[B' \le k - 1]")
    step, inner = 1e-5, GRID[1:-1]
    numeric = (binomial_tails(k, n, inner + step) - binomial_tails(k, n, inner - step)) / (2 * step)
    slope = n / k * stats.binom.cdf(k - 1, n - 1, GRID)
    np.testing.assert_allclose(slope[1:-1], numeric, atol=1e-5)
    assert slope[0] == pytest.approx(n / k)
    assert (np.diff(slope) <= 1e-12).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_rule_of_the_antagonist_costs_more_than_the_greedy_one(seed: int) -> None:
    states(r"\sum_s \alpha_s \ell_s(w) \le \rho(w) \quad \text{for every } \alpha \in E")
    losses, psi = draw_losses(seed, d=4)
    k, n = 2, 3
    greedy = ro.KOfN(k, n).value(losses, psi)
    rng = np.random.default_rng(seed)
    alpha = np.zeros(len(losses))
    for draw in itertools.product(range(len(losses)), repeat=n):
        selected = rng.permutation(n)[:k]  # any rule will do; this one answers each draw at random
        np.add.at(alpha, np.array(draw)[selected], psi[list(draw)].prod() / k)
    assert alpha.sum() == pytest.approx(1)
    for size in range(1, 5):
        for members in itertools.combinations(range(4), size):
            inside = min(psi[list(members)].sum(), 1.0)
            assert alpha[list(members)].sum() <= binomial_tails(k, n, np.array([inside]))[0] + 1e-12
    assert alpha @ losses <= greedy + 1e-12


@pytest.mark.parametrize(("k", "n"), [pair for pair in PAIRS if pair[0] < pair[1]])
def test_how_far_the_tail_weight_is_from_its_limit(k: int, n: int) -> None:
    states(r"\max_u [h(u) - g(u)] = 1 - g(\eta) = (1 - \eta) \mathbb{P}[B = k] \le \sqrt{\frac{1 - \eta}{2 \pi k}}")
    states(r"h(u) - g(u) \le c \exp(-2 N (u - \eta)^2), \quad c = \max(1, 1/\eta - 1)")
    eta = k / n
    points = np.union1d(GRID, [eta])
    short = np.minimum(points / eta, 1.0) - binomial_tails(k, n, points)
    at_kink = (1 - eta) * stats.binom.pmf(k, n, eta)
    assert (short >= -1e-12).all()
    assert points[short.argmax()] == eta
    assert short.max() == pytest.approx(at_kink, abs=1e-12)
    assert at_kink <= np.sqrt((1 - eta) / (2 * np.pi * k))
    assert (short <= max(1, 1 / eta - 1) * np.exp(-2 * n * (points - eta) ** 2) + 1e-12).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_value_climbs_to_cvar_and_how_far_below_it_stays(seed: int) -> None:
    states(r"0 \le \text{CVaR}(\eta) - \rho \le (\ell_{(1)} - \ell_{(d)}) (1 - \eta) \mathbb{P}[B = k]")
    losses, psi = draw_losses(seed)
    for k, n in ((1, 3), (2, 5), (3, 4)):
        values = [ro.KOfN(k * times, n * times).value(losses, psi) for times in range(1, 30)]
        assert (np.diff(values) >= -1e-12).all()
        limit = ro.CVaR(k / n).value(losses, psi)
        for times, value in enumerate(values, start=1):
            most = np.ptp(losses) * (1 - k / n) * stats.binom.pmf(k * times, n * times, k / n)
            assert -1e-12 <= limit - value <= most + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_the_value_falls_with_k_and_rises_with_n(seed: int) -> None:
    states("does not rise with $k$ and does not fall with $N$")
    losses, psi = draw_losses(seed)
    for n in range(2, 9):
        values = [ro.KOfN(k, n).value(losses, psi) for k in range(1, n + 1)]
        more = [ro.KOfN(k, n + 1).value(losses, psi) for k in range(1, n + 1)]
        assert (np.diff(values) <= 1e-12).all()
        assert (np.subtract(more, values) >= -1e-12).all()
        assert values[-1] == pytest.approx(psi @ losses)


@pytest.mark.parametrize("seed", range(5))
def test_cvar_is_a_minimum_over_the_edge(seed: int) -> None:
    states(r"\text{CVaR}(\eta) = \min_v \ v + \frac{1}{\eta} \sum_s \Psi_s \max(\ell_s - v, 0)")
    losses, psi = draw_losses(seed)
    for eta in (0.05, 0.3, 1.0):
        least = min(edge + psi @ np.maximum(losses - edge, 0) / eta for edge in losses)  # it is piecewise linear
        assert ro.CVaR(eta).value(losses, psi) == pytest.approx(least)


def draw_problem(seed: int, measure: ro.Measure) -> ro.Problem:
    rng = np.random.default_rng(seed)
    results = rng.random((6, 5))
    psi = rng.dirichlet(np.ones(10)).reshape(5, 2)
    return ro.Problem(results=results, size=3, measure=measure, targets=rng.dirichlet(np.ones(6), 2), probabilities=psi)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("measure", [ro.CVaR(0.2), ro.KOfN(2, 7)])
def test_regret_matching_keeps_its_promise(measure: ro.Measure, seed: int) -> None:
    states(r"\text{best} - \text{lower bound} \le U \sqrt{\frac{m}{T}}")
    states(r"\frac{1}{T} \sum_t \rho(w^t) - \min_{x \in \tau} \frac{1}{T} \sum_t c^t_x")
    problem, cases, rounds = draw_problem(seed, measure), [0, 2, 5], 50
    spread = np.ptp(problem.results[cases], axis=0).max()
    table = analysis.closing_in(problem, cases, rounds=rounds)
    cuts = np.array([problem.cut(problem.test(cases=cases, weights=weights))[cases] for weights in table["weights"]])
    regrets = (table["objective"].to_numpy()[:, None] - cuts).sum(axis=0)
    lower_bound = cuts.mean(axis=0).min()
    assert table["objective"].mean() - lower_bound == pytest.approx(regrets.max() / rounds)
    assert table["best"].iloc[-1] - lower_bound <= spread * np.sqrt(3 / rounds)
    assert regrets.max() <= spread * np.sqrt(3 * rounds)
    for weights in np.random.default_rng(seed).dirichlet(np.ones(3), 20):
        test = problem.test(cases=cases, weights=weights)
        assert (problem.objective(test) >= cuts @ weights - 1e-12).all()


@pytest.mark.parametrize("d", [2, 3, 10])
@EVERY_PAIR
def test_k_of_n_is_a_mixture_of_cvars_by_the_drops_in_slope(k: int, n: int, d: int) -> None:
    states("its share is $i/d$ times the drop in slope at $i/d$")
    slopes = np.append(np.diff(binomial_tails(k, n, np.arange(d + 1) / d)) * d, 0.0)
    shares = -np.diff(slopes) * np.arange(1, d + 1) / d
    assert shares.sum() == pytest.approx(1)
    losses, psi = draw_losses(0, d)[0], np.full(d, 1 / d)
    parts = [ro.CVaR(i / d).value(losses, psi) for i in range(1, d + 1)]
    assert ro.KOfN(k, n).value(losses, psi) == pytest.approx(shares @ parts)


@pytest.mark.parametrize("seed", range(5))
def test_what_one_more_scenario_can_do(seed: int) -> None:
    states(r"rises by at most $(\varepsilon / \eta) L$")
    states(r"the same argument gives $g(\varepsilon) L$, and $g(\varepsilon) \le g'(0) \varepsilon$")
    losses, psi = draw_losses(seed)
    for measure, slope in ((ro.CVaR(0.3), 1 / 0.3), (ro.KOfN(2, 9), 9 / 2), (ro.Mean(), 1.0), (ro.WorstCase(), np.inf)):
        for probability, loss in itertools.product((1e-3, 0.05, 0.6), (0.0, 0.5, 1.0)):
            now = measure.value(np.append(losses, loss), np.append((1 - probability) * psi, probability))
            most = measure.tail_weight(np.array([probability]))[0]
            assert now <= measure.value(losses, psi) + most + 1e-12
            assert most <= slope * probability


def test_the_verdict_on_robustness_follows_from_the_numbers_beside_it() -> None:
    line = re.compile(r"(\w+) +m = (\d), (all|four hardest) *: .* difference ([-+.\d]+) ± ([.\d]+)")
    shown = "".join(block.shown for block in BLOCKS)
    settings = {match[:3]: (float(match[3]), float(match[4])) for match in line.findall(shown)}
    assert len(settings) == 8
    hardest = {key[:2]: difference for key, difference in settings.items() if key[2] == "four hardest"}
    average = [difference for key, difference in settings.items() if key[2] == "all"]
    states("the robust answer has the lower error in all four settings")
    assert all(mean < 0 for mean, _ in hardest.values())
    states("(followers with $m = 3$, leaders with $m = 2$) the difference is more than two standard errors")
    clear = {key for key, (mean, error) in hardest.items() if mean < -2 * error}
    assert clear == {("followers", "3"), ("leaders", "2")}
    states("clearly worse in two settings, and there is no clear difference in the other two")
    assert sum(mean > 2 * error for mean, error in average) == 2
    assert sum(abs(mean) < error for mean, error in average) == 2
