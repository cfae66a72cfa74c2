"""What others may add, carried all the way: a measure, a loss and a backend that this package does not know."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from commands import Outcome, has_traceback, strict_json
from forks import Forks

import rposst_opt as ro
from rposst_opt.backends.table import offered_by_others
from rposst_opt.files.records import as_json, read_test, solution_record
from rposst_opt.files.writing import write_atomically
from rposst_opt.reports.pages.report import gather
from rposst_opt.reports.pages.report_page import report_page


class MostlyTheWorst(ro.Measure):
    """No name, no dataclass, one method; its parameter is whatever it keeps."""

    def __init__(self, power: float) -> None:
        self.power = power

    def tail_weight(self, tail: np.ndarray) -> np.ndarray:
        """More weight on the worst, the larger the power."""
        return np.asarray(1 - (1 - np.asarray(tail)) ** self.power)


@dataclass(frozen=True)
class DeadZone(ro.Loss):
    """Two parameters and no name: errors between them are free."""

    low: float
    high: float

    @property
    def pieces(self) -> ro.PiecewiseQuadratic:
        """A flat piece between two affine ones."""
        free, steep = [0.0, 0.0, 0.0], [[self.low, -1.0, 0.0], [-self.high, 1.0, 0.0]]
        return ro.PiecewiseQuadratic(knots=[self.low, self.high], coefficients=[steep[0], free, steep[1]])


RESULTS = np.random.default_rng(5).random((8, 6))


@pytest.fixture
def problem() -> ro.Problem:
    return ro.Problem(results=RESULTS, size=2, measure=MostlyTheWorst(3.0), loss=DeadZone(-0.02, 0.05))


def test_a_nameless_measure_and_a_loss_of_two_parameters_are_called_by_their_classes_and_all_their_fields() -> None:
    assert MostlyTheWorst(3.0).describe() == {"name": "mostly-the-worst", "power": 3.0}
    assert repr(MostlyTheWorst(3.0)) == "MostlyTheWorst(power=3.0)"
    assert DeadZone(-0.02, 0.05).label == "dead-zone:-0.02,0.05"
    assert DeadZone(-0.02, 0.05).describe() == {"name": "dead-zone", "low": -0.02, "high": 0.05}
    assert "mostly-the-worst:3.0" in MostlyTheWorst(3.0).words


def test_a_mixture_describes_a_part_that_the_package_does_not_know() -> None:
    mixed = ro.Mixture([(0.5, MostlyTheWorst(2.0)), (0.5, ro.Mean())])
    json.dumps(mixed.describe())
    assert "mostly-the-worst:2.0" in mixed.words and "mean of all scenarios" in mixed.words


def test_parameters_of_any_kind_can_be_written() -> None:
    class Odd(ro.Measure):
        def __init__(self) -> None:
            self.table, self.inner, self.flag = np.array([1.0, np.inf]), ro.CVaR(0.5), np.bool_(True)
            self.where = {"a": (1, object)}
            self._memory = "private"

        def tail_weight(self, tail: np.ndarray) -> np.ndarray:
            return np.asarray(tail)

    described = strict_json(json.dumps(Odd().describe(), allow_nan=False))
    assert described["table"] == [1.0, "inf"] and described["inner"] == {"name": "cvar", "tail_fraction": 0.5}
    assert described["flag"] is True and "_memory" not in described
    assert Odd().label.startswith("odd:")


def test_they_go_from_solve_through_files_and_solvers_to_the_report(problem: ro.Problem, tmp_path: Path) -> None:
    solution = ro.solve(problem)
    assert solution.status is ro.Status.OPTIMAL and solution.test is not None
    # An independent judge: sorted losses, weighed by differences of 1 - (1 - u)³.
    errors = solution.test.weights @ RESULTS[list(solution.test.cases)] - RESULTS.mean(axis=0)
    losses = np.sort(np.maximum(np.maximum(-0.02 - errors, errors - 0.05), 0.0))[::-1]
    assert solution.objective == pytest.approx(float(np.diff(1 - (1 - np.arange(7) / 6) ** 3) @ losses), abs=1e-12)

    path = tmp_path / "test.json"
    write_atomically(path, as_json(solution_record(problem, solution, ro.Scale(0.0, 1.0))))
    written = strict_json(path.read_text())
    assert written["measure"] == {"name": "mostly-the-worst", "power": 3.0}
    assert written["loss"] == "dead-zone:-0.02,0.05"
    assert read_test(path).score(RESULTS[list(solution.test.cases)]) == pytest.approx(solution.test.score(RESULTS))

    report = ro.agree(problem)
    assert report.agreed, report.dissenters
    answered = {finding.backend for finding in report.findings if finding.solution is not None}
    assert {"exact", "regret-matching", "scipy-milp", "pulp-cbc", "cvxpy-clarabel"} <= answered

    found = gather(problem, backends=["regret-matching"], time_limit_seconds=30.0)
    assert found is not None
    page = report_page(found)
    assert "mostly-the-worst:3.0" in page and "dead-zone:-0.02,0.05" in page


# Backends

STRANGER = '''
"""A backend of another package: every set of cases with equal weights, and the best of them."""
from dataclasses import dataclass
from itertools import combinations

import numpy as np

import rposst_opt as ro


@dataclass(frozen=True)
class EqualWeights:
    backwards: bool = False

    @property
    def capabilities(self):
        return ro.Capabilities(
            method="equal weights, one set after the other", handles=frozenset(ro.Need), finds_optimum=False,
            proves="nothing", tolerance=1e-9,
        )

    def solve(self, problem, budget):
        tests = [
            problem.test(cases=cases, weights=np.full(len(cases), 1 / len(cases))) for cases in problem.tuples()
        ]
        best = min(tests[::-1] if self.backwards else tests, key=problem.objective)
        return ro.Candidate(test=best, lower_bound=-np.inf)


def broken():
    raise RuntimeError("no licence for this")


def of_another_kind():
    return 7
'''

Install = Callable[..., dict[str, str]]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Lay a package out as installers do, in a folder of its own; returns the environment that finds it."""

    def run(**points: str) -> dict[str, str]:
        site = tmp_path / "site"
        folder = site / "stranger-1.0.dist-info"
        folder.mkdir(parents=True)
        (site / "stranger.py").write_text(STRANGER)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
        lines = [f"{name.replace('_', '-')} = {value}" for name, value in points.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[rposst_opt.backends]", *lines]) + "\n")
        table = tmp_path / "results.csv"
        names = ",".join(f"policy {policy}" for policy in range(RESULTS.shape[1]))
        rows = [f"case {place}," + ",".join(map(repr, row)) for place, row in enumerate(RESULTS.tolist())]
        table.write_text("\n".join([f"case,{names}", *rows]) + "\n")
        paths = [str(site), str(Path(ro.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        return {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "200"}

    return run


COMMANDS = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from rposst_opt.__main__ import main
outcomes = []
for arguments in json.loads(sys.argv[1]):
    sys.argv, out, err = ["rposst", *arguments], StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    outcomes.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks("cvxpy", "highspy", "numba", "pandas", "pulp", "rich.console", "scipy.optimize", "typer") as forks:
        yield forks


def rposst(forks: Forks, environment: dict[str, str], folder: Path, *commands: str) -> list[Outcome]:
    """Give these commands, one after the other, in a new process: to start one takes longer than they do."""
    asked = json.dumps([command.split() for command in commands])
    ran = forks.run(COMMANDS, asked, folder=folder, **environment)
    assert ran.returncode == 0, ran.stderr
    return [Outcome(*outcome) for outcome in json.loads(ran.stdout)]


@pytest.mark.slow
def test_a_backend_of_another_package_is_listed_asked_and_reported(
    install: Install, forks: Forks, tmp_path: Path
) -> None:
    environment = install(equal_weights="stranger:EqualWeights")
    backends, solve, score, agree, report = rposst(
        forks,
        environment,
        tmp_path,
        "backends results.csv --size 2 --json",
        "solve results.csv --size 2 --backend equal-weights --out test.json --json",
        "score test.json results.csv --json",
        "agree results.csv --size 2 --json",
        "report results.csv --size 2 --backends exact,equal-weights --out page.html",
    )
    listed = backends.json
    row = next(row for row in listed["backends"] if row["name"] == "equal-weights")
    assert row["installed"] and row["solves_this"] and row["method"] == "equal weights, one set after the other"
    assert listed["auto"] == "exact"

    solved = solve.json
    assert solved["backend"] == "equal-weights" and solved["status"] == "feasible" and solved["weights"] == [0.5, 0.5]
    assert len(score.json["scores"]) == RESULTS.shape[1]

    agreed = agree.json
    said = {row["backend"]: row for row in agreed["backends"]}
    assert agreed["agreed"] and said["equal-weights"]["objective"] >= said["exact"]["objective"] - 1e-12

    assert report.code == 0, report.err
    assert "equal-weights" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_a_package_that_does_not_load_is_told_and_troubles_nobody_else(
    install: Install, forks: Forks, tmp_path: Path
) -> None:
    environment = install(broken="stranger:broken", nowhere="strange_land:Backend", number="stranger:of_another_kind")
    in_json, in_words, broken, others, agree = rposst(
        forks,
        environment,
        tmp_path,
        "backends results.csv --size 2 --json",
        "backends",
        "solve results.csv --size 2 --backend broken",
        "solve results.csv --size 2",
        "agree results.csv --size 2 --backends exact,broken --json",
    )
    rows = {row["name"]: row for row in in_json.json["backends"]}
    assert "no licence for this" in rows["broken"]["unusable"] and not rows["broken"]["installed"]
    assert "strange_land" in rows["nowhere"]["unusable"]
    assert "stranger" in rows["number"]["unusable"]
    assert in_words.code == 0 and "cannot be used: what stranger offers" in in_words.out
    assert broken.code == 2 and "no licence for this" in broken.out + broken.err
    assert not has_traceback(broken.out + broken.err)
    assert others.code == 0 and "optimal (proved)" in others.out
    verdicts = {row["backend"]: row["verdict"] for row in agree.json["backends"]}
    assert verdicts == {"exact": "agrees", "broken": "unavailable"}


def test_a_name_that_is_taken_is_passed_over_and_told(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(exact="stranger:EqualWeights", fresh="stranger:EqualWeights")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    offered = offered_by_others(ro.BACKENDS)
    assert list(offered) == ["fresh"] and offered["fresh"].provider == "stranger"
    assert "'exact'" in caplog.text and "stranger" in caplog.text
    assert offered["fresh"].options == ["backwards"]


@dataclass(frozen=True)
class Optimist:
    """A backend that was made already, and claims too much."""

    bound: float = 1.0
    capabilities = ro.Capabilities(
        method="hope", handles=frozenset(ro.Need), finds_optimum=False, proves="nothing", tolerance=1e-9
    )

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        cases = next(problem.tuples())
        test = problem.test(cases=cases, weights=np.full(len(cases), 1 / len(cases)))
        return ro.Candidate(test=test, lower_bound=self.bound)


def test_backends_that_were_made_already_can_be_asked_to_agree() -> None:
    from rposst_opt.solvers.regret_matching import RegretMatching

    problem = ro.Problem(results=RESULTS, size=2)
    asked = ["exact", RegretMatching(rounds=2000), RegretMatching(rounds=3), Optimist()]
    report = ro.agree(problem, asked)  # type: ignore[arg-type]  # a protocol's attribute may be a class's
    names = [finding.backend for finding in report.findings]
    assert names == ["exact", "regret-matching", "regret-matching (2)", "Optimist"]
    assert [finding.backend for finding in report.dissenters] == ["Optimist"]
    assert "refuted" in report.dissenters[0].reason
    by_tuple = ro.agree(problem, [RegretMatching(rounds=50), "exact"], by_tuple=True)
    assert by_tuple.agreed and len(by_tuple.by_tuple) == problem.n_tuples
