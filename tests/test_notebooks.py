"""Objects in a notebook: texts of one to three lines, and tables in which no name is ever markup."""

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sample_files import AWKWARD_NAMES

import rposst_opt as ro
from rposst_opt.referee.agreement import Agreement, Finding
from rposst_opt.unseen.validation import validate
from rposst_opt.values import showing

NASTY = '<script>alert("1")</script>\n& \'quotes\' "here"'


def a_problem(n_cases: int = 30) -> ro.Problem:
    names = [NASTY, "x" * 5000, *(name for name in AWKWARD_NAMES), *(f"case {i}" for i in range(n_cases))]
    results = np.random.default_rng(0).random((len(names), 4))
    return ro.Problem(
        results=results, size=2, case_names=names, required_cases=[0], forbidden_cases=[1], offset=True, noise=0.1
    )


def a_test(problem: ro.Problem, count: int = 3) -> ro.EfficientTest:
    return problem.test(cases=range(count), weights=np.full(count, 0.9 / count), offset=0.05)


def a_solution(test: ro.EfficientTest | None, **changes: Any) -> ro.Solution:
    facts: dict[str, Any] = {
        "objective": 0.25,
        "lower_bound": -np.inf,
        "gap": np.inf,
        "status": ro.Status.FEASIBLE,
        "backend": NASTY,
        "limit": ro.Limit.TIME,
        "seconds": 1.5,
        "stats": ro.Stats(),
    }
    return ro.Solution(test=test, **{**facts, **changes})


def an_agreement(problem: ro.Problem) -> Agreement:
    solution = a_solution(a_test(problem))
    candidate = ro.Candidate(test=solution.test, lower_bound=0.2)
    findings = [
        Finding(backend="exact", verdict=ro.Verdict.AGREES, solution=solution, candidate=candidate),
        Finding(backend="other", verdict=ro.Verdict.CRASHED, reason=NASTY),
        *(Finding(backend=f"missing {i}", verdict=ro.Verdict.UNAVAILABLE, reason="none") for i in range(30)),
        Finding(backend="last", verdict=ro.Verdict.DISAGREES, solution=solution, candidate=candidate, reason="wrong"),
    ]
    return Agreement(problem=problem, findings=tuple(findings))


def shown_objects() -> dict[str, Any]:
    problem = a_problem()
    return {
        "problem": problem,
        "test": a_test(problem),
        "long test": a_test(problem, 40),
        "solution": a_solution(a_test(problem)),
        "no test": a_solution(None, status=ro.Status.NO_TEST),
        "agreement": an_agreement(problem),
        "finding": an_agreement(problem).findings[1],
        "certificate": ro.Certificate(0.25, (), ((0, 1),)),
    }


class Reader(HTMLParser):
    """Collects the tags, attributes and texts of a piece of HTML, and sees whether every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("name", shown_objects())
def test_texts_have_at_most_three_lines_and_tables_are_whole(name: str) -> None:
    shown = shown_objects()[name]
    text = repr(shown)
    assert text.startswith(f"{type(shown).__name__}(") and text.endswith(")")
    assert len(text.splitlines()) <= 3 and len(text) < 900
    reader = read(shown._repr_html_())
    assert reader.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert reader.attributes <= {"style", "scope", "colspan"}
    html = shown._repr_html_()
    assert "http" not in html and "url(" not in html and len(html) < 40_000


def test_names_are_text_and_nothing_else() -> None:
    problem = a_problem()
    for shown in (a_test(problem), a_solution(a_test(problem)), an_agreement(problem)):
        assert NASTY in read(shown._repr_html_()).texts
    assert repr(NASTY)[1:30] in repr(problem)
    assert "half \ufffd" in read(showing.html_facts("half \ud800".replace("\ud800", "\ufffd"), [])).texts
    showing.html_facts("half \ud800", []).encode("utf-8")


def test_no_colour_is_named_so_that_light_and_dark_are_readable() -> None:
    html = "".join(shown._repr_html_() for shown in shown_objects().values())
    assert "#" not in html.replace("&#x27;", "").replace("#comment", "") and "rgb" not in html
    assert set(part.split(";")[0] for part in html.split("color:")[1:]) == {"inherit"}


def test_a_problem_says_what_is_asked() -> None:
    results = pd.DataFrame([[0.0, 1.0], [1.0, 0.0]], index=["a", "b"])
    assert repr(ro.Problem(results=results, size=1)) == (
        "Problem(choose 1 of 2 test cases; for 2 policies, 1 target;\n"
        "        results from 0 to 1; measure CVaR(tail_fraction=0.01); loss AbsoluteError())"
    )


def test_a_test_shows_its_first_cases_and_says_how_many_more_there_are() -> None:
    test = ro.EfficientTest(cases=range(8), weights=np.full(8, 1 / 8), n_cases=9)
    assert repr(test) == (
        "EfficientTest({'0': 0.125, '1': 0.125, '2': 0.125, '3': 0.125, '4': 0.125, '5': 0.125 and 2 more}, n_cases=9)"
    )
    many = ro.EfficientTest(cases=range(25), weights=np.full(25, 1 / 25), n_cases=25)
    assert "and 5 more" in read(many._repr_html_()).texts


def test_a_solution_is_shown_with_its_test_if_it_has_one() -> None:
    test = ro.EfficientTest(cases=[1], weights=[1.0], case_names=["b"], n_cases=2)
    found = a_solution(test, backend="exact", limit=None, lower_bound=0.25, gap=0.0, status=ro.Status.OPTIMAL)
    assert repr(found).replace("\n         ", " ") == (
        "Solution(status optimal; objective 0.25; lower bound 0.25; gap 0; by exact in 1.5 s; "
        "test EfficientTest({'b': 1}, n_cases=2))"
    )
    assert {"1 of 2 test cases", "b", "0.25"} <= set(read(found._repr_html_()).texts)
    assert "test None" in repr(a_solution(None))


def test_every_backend_and_every_dissenter_is_in_the_table_of_an_agreement() -> None:
    agreement = an_agreement(a_problem())
    texts = read(agreement._repr_html_()).texts
    assert {"No agreement", "last", "wrong", "missing 29", "disagrees"} <= set(texts)
    assert repr(agreement).startswith(
        "Agreement(agreed no; backends 1 agrees, 1 disagrees, 30 not installed, 1 crashed; "
    )


def test_a_validation_says_what_was_tried() -> None:
    results = np.random.default_rng(0).random((5, 6))
    found = validate(results, [1, 2], selections=["random"], estimators=["weights"], folds=3, replicas=1)
    assert repr(found).startswith("Validation(of 6 policies held out (")
    assert "sizes 1, 2; " in repr(found) and "selections random" in repr(found)


def test_a_measure_with_a_long_text_does_not_make_a_long_text() -> None:
    class Verbose(ro.Measure):
        def __init__(self) -> None:
            self.table = np.zeros((200, 200))

        def tail_weight(self, probability: np.ndarray) -> np.ndarray:
            return np.asarray(probability)

    problem = ro.Problem(results=[[0.0, 1.0]], size=1, measure=Verbose())
    assert len(repr(problem).splitlines()) <= 3 and len(repr(problem)) < 600
