import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from instances import INSTANCES
from linear_programs import linear_program
from strategies import problems

import rposst_opt as ro
from rposst_opt.backends import BACKENDS, Entry, how_to_install
from rposst_opt.referee.agreement import Finding

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no solver's process imports this file

HONEST = ["regret-matching", "scipy-milp"]
TOLERANCE = 1e-6  # of a witness, relative to the largest loss, which is 1 in `PROBLEM`
TAIL_FRACTION = 0.3

PROBLEM = ro.Problem(
    results=[
        [0.0, 1.0, 0.2, 0.4],
        [1.0, 0.0, 0.9, 0.1],
        [0.4, 0.3, 0.7, 1.0],
        [0.8, 0.6, 0.1, 0.2],
        [0.3, 0.9, 0.5, 0.0],
    ],
    size=2,
    measure=ro.CVaR(TAIL_FRACTION),
    case_names=["a", "b", "c", "d", "e"],
    policy_names=["north", "east", "south", "west"],
)
SETTLED = ro.Problem(
    results=PROBLEM.results, size=1, required_cases=["b"], forbidden_cases=["d"], case_names=PROBLEM.case_names
)


def best_by_linear_programming(problem: ro.Problem, cases: tuple[int, ...]) -> tuple[float, list[float]]:
    """The least CVaR of absolute errors with these cases, and its weights: Rockafellar and Uryasev's program.

    The variables are the weights, the threshold, the errors and their excesses over the threshold.
    """
    table = problem.results[list(cases)]
    means = problem.targets[0] @ problem.results
    chosen, policies = table.shape
    ones, nothing = np.eye(policies), np.zeros((policies, policies))
    flat, column = np.zeros((policies, 1)), np.ones((policies, 1))
    optimum = linear_program(
        [*[0.0] * chosen, 1.0, *[0.0] * policies, *(problem.probabilities[:, 0] / TAIL_FRACTION)],
        A_ub=np.block(
            [
                [table.T, flat, -ones, nothing],
                [-table.T, flat, -ones, nothing],
                [np.zeros((policies, chosen)), -column, ones, -ones],
            ]
        ),
        b_ub=[*means, *-means, *[0.0] * policies],
        A_eq=[[*[1.0] * chosen, 0.0, *[0.0] * (2 * policies)]],
        b_eq=[1.0],
        bounds=[*[(0, None)] * chosen, (None, None), *[(0, None)] * (2 * policies)],
    )
    return float(optimum.fun), [float(weight) for weight in optimum.x[:chosen]]


TUPLES: list[tuple[int, ...]] = list(combinations(range(5), 2))
BY_TUPLE = {cases: best_by_linear_programming(PROBLEM, cases) for cases in TUPLES}
RANKED = sorted(BY_TUPLE, key=lambda cases: BY_TUPLE[cases][0])
OPTIMUM = PROBLEM.test(cases=RANKED[0], weights=BY_TUPLE[RANKED[0]][1])
OBJECTIVE = PROBLEM.objective(OPTIMUM)
WORSE = PROBLEM.test(cases=RANKED[-1], weights=BY_TUPLE[RANKED[-1]][1])
LOSSES = PROBLEM.losses(OPTIMUM)
TAIL_WEIGHTS = PROBLEM.measure.weights(LOSSES, PROBLEM.scenarios.probabilities)
HEAVIEST, WEIGHTLESS = int(np.argmax(TAIL_WEIGHTS)), int(np.argmin(TAIL_WEIGHTS))


def test_the_stage_is_set() -> None:
    assert PROBLEM.unit == 1
    assert pytest.approx(BY_TUPLE[RANKED[0]][0], abs=1e-9) == OBJECTIVE > 0.05
    assert BY_TUPLE[RANKED[1]][0] > OBJECTIVE + 0.01  # no other tuple ties
    assert PROBLEM.objective(WORSE) > OBJECTIVE + 0.1
    assert TAIL_WEIGHTS[HEAVIEST] > 0.1 and TAIL_WEIGHTS[WEIGHTLESS] == 0


ABILITY = ro.Capabilities(
    method="saying what it is told",
    handles=frozenset(ro.Need),
    finds_optimum=True,
    proves="whatever it is told",
    tolerance=TOLERANCE,
)

WITH_A_RATE = replace(ABILITY, finds_optimum=False)

Says = Callable[[ro.Problem, ro.Budget], Any]


@dataclass(frozen=True)
class Witness:
    """A backend that says what it is told, true or not."""

    says: Says
    capabilities: ro.Capabilities = ABILITY

    def solve(self, problem: ro.Problem, budget: ro.Budget) -> Any:
        return self.says(problem, budget)


@dataclass(frozen=True)
class WitnessWithARate(Witness):
    """One that promises to come close, the closer the more rounds it plays."""

    rounds: int = 1

    def __post_init__(self) -> None:
        promised = replace(WITH_A_RATE, promised_gap=partial(ro.regret_matching_gap, rounds=self.rounds))
        object.__setattr__(self, "capabilities", promised)


def saying(**claims: Any) -> Says:
    """The truth, but for these claims."""
    return lambda problem, budget: ro.Candidate(**{"test": OPTIMUM, "lower_bound": 0.0, **claims})


def saying_test(cases: list[int], weights: list[float], n_cases: int = 5) -> Says:
    """A test that is made when the backend runs, as its maker may refuse."""

    def says(problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        test = ro.EfficientTest(cases=cases, weights=weights, n_cases=n_cases)
        return ro.Candidate(test=test, lower_bound=0.0)

    return says


def raising(error: BaseException) -> Says:
    def says(problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        raise error

    return says


def losses_off_by(difference: float, scenario: int) -> np.ndarray:
    losses = LOSSES.copy()
    losses[scenario] += difference
    return losses


Register = Callable[..., None]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    """Put a witness into the table."""

    def put(name: str, says: Says, kind: type[Witness] = Witness, **settled: Any) -> None:
        monkeypatch.setitem(BACKENDS, name, Entry(__name__, kind.__name__, {"says": says, **settled}))

    return put


def finding_of(report: ro.Agreement, backend: str) -> Finding:
    (finding,) = [finding for finding in report.findings if finding.backend == backend]
    return finding


def only_the_liar_is_named(report: ro.Agreement, verdict: ro.Verdict, reason: str) -> bool:
    liar = finding_of(report, "liar")
    assert (liar.verdict, reason in liar.reason) == (verdict, True), liar
    contradicts = verdict is ro.Verdict.DISAGREES
    assert [finding.backend for finding in report.dissenters] == ["liar"] * contradicts, report.dissenters
    assert report.agreed is not contradicts
    for name in HONEST:
        assert finding_of(report, name).verdict is ro.Verdict.AGREES
        assert finding_of(report, name).solution is not None
    return True


# Liars.

TOO_GOOD = f"says that its test is worth {OBJECTIVE - 0.05:.9g}, and the judge says {OBJECTIVE:.9g}: off by 0.05"

FALSE_ANSWERS: dict[str, tuple[Says, str]] = {
    "an objective that is too good": (saying(claimed_objective=OBJECTIVE - 0.05), TOO_GOOD),
    "an objective that is too bad": (saying(claimed_objective=OBJECTIVE + 0.05), "says that its test is worth"),
    "an objective that is no number": (saying(claimed_objective=math.nan), "says that its test is worth nan"),
    "losses that are too small in the tail": (
        saying(claimed_losses=losses_off_by(-0.05, HEAVIEST)),
        f"in the tail, it says that scenario {HEAVIEST} (policy {PROBLEM.policy_names[HEAVIEST]!r}) loses "
        f"{LOSSES[HEAVIEST] - 0.05:.9g}, and the judge says {LOSSES[HEAVIEST]:.9g}",
    ),
    "losses that are too large in the tail": (
        saying(claimed_losses=losses_off_by(0.05, HEAVIEST)),
        f"in the tail, it says that scenario {HEAVIEST}",
    ),
    "losses that are no numbers in the tail": (
        saying(claimed_losses=losses_off_by(math.nan, HEAVIEST)),
        f"in the tail, it says that scenario {HEAVIEST}",
    ),
    "a bound above the optimum": (
        saying(lower_bound=OBJECTIVE + 0.05),
        f"lower bound {OBJECTIVE + 0.05:.9g} is refuted",
    ),
    "a bound above the optimum below its own test": (
        saying(test=WORSE, lower_bound=OBJECTIVE + 0.05),
        f"lower bound {OBJECTIVE + 0.05:.9g} is refuted by",
    ),
    "a bound above the optimum when stopped early": (
        saying(test=WORSE, lower_bound=OBJECTIVE + 0.05, limit=ro.Limit.TIME),
        f"lower bound {OBJECTIVE + 0.05:.9g} is refuted by",
    ),
    "a bound of infinity": (saying(lower_bound=math.inf), "lower bound inf is refuted by"),
    "a bound that is no number": (saying(lower_bound=math.nan), "its lower bound is NaN"),
    "a valid test that is not the best": (
        saying(test=WORSE),
        f"its test is at {PROBLEM.objective(WORSE):.9g}, and ",
    ),
}

CRASHES: dict[str, tuple[Says, str]] = {
    "weights that sum to two": (saying_test([0, 1], [1.0, 1.0]), "must be non-negative and sum to 1"),
    "a negative weight": (saying_test([0, 1], [1.5, -0.5]), "must be non-negative and sum to 1"),
    "weights that are no numbers": (saying_test([0, 1], [math.nan, 1.0]), "must be a list of finite numbers"),
    "a wrong value": (raising(ValueError("no such luck")), "it raised ValueError: no such luck"),
    "a keyboard interrupt": (raising(KeyboardInterrupt("stop")), "it raised KeyboardInterrupt: stop"),
    "an exit": (raising(SystemExit(3)), "it raised SystemExit: 3"),
    "any base exception": (raising(BaseException("the floor")), "it raised BaseException: the floor"),
}

NO_ANSWERS: dict[str, tuple[Says, str]] = {
    "too few cases": (saying_test([0], [1.0]), "it has 1 test cases, and the problem asks for 2"),
    "too many cases": (saying_test([0, 1, 2], [0.5, 0.25, 0.25]), "it has 3 test cases, and the problem asks for 2"),
    "a test of another problem": (saying_test([0, 1], [0.5, 0.5], 4), "it is made for 4 test cases"),
    "nothing": (lambda problem, budget: None, "it returned nothing"),
    "no test": (saying(test=None), "it found no test, and nothing had stopped it"),
}

NOTHING_IN_TIME: dict[str, tuple[Says, str]] = {
    "no test in time": (saying(test=None, limit=ro.Limit.TIME), "it found no test before the time limit ended its run"),
}

LIES = {
    **{lie: (says, ro.Verdict.DISAGREES, reason) for lie, (says, reason) in FALSE_ANSWERS.items()},
    **{lie: (says, ro.Verdict.DISAGREES, reason) for lie, (says, reason) in NO_ANSWERS.items()},
    **{lie: (says, ro.Verdict.CRASHED, reason) for lie, (says, reason) in CRASHES.items()},
    **{lie: (says, ro.Verdict.FOUND_NOTHING, reason) for lie, (says, reason) in NOTHING_IN_TIME.items()},
    "a bound above the optimum and no test in time": (
        saying(test=None, limit=ro.Limit.TIME, lower_bound=OBJECTIVE + 0.05),
        ro.Verdict.DISAGREES,
        f"lower bound {OBJECTIVE + 0.05:.9g} is refuted by",
    ),
}


@pytest.mark.parametrize("names", [["liar", *HONEST], [*HONEST, "liar"]], ids=["asked first", "asked last"])
@pytest.mark.parametrize("lie", LIES)
def test_exactly_the_liar_is_named(lie: str, names: list[str], register: Register) -> None:
    says, verdict, reason = LIES[lie]
    register("liar", says)
    assert only_the_liar_is_named(ro.agree(PROBLEM, names), verdict, reason)


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (saying_test([1, 3], [0.5, 0.5]), "it has the forbidden test case 'd'"),
        (saying_test([0, 2], [0.5, 0.5]), "it lacks the required test case 'b'"),
    ],
)
def test_a_test_against_the_rules_is_named(says: Says, reason: str, register: Register) -> None:
    register("liar", says)
    report = ro.agree(SETTLED, ["liar", *HONEST])
    assert only_the_liar_is_named(report, ro.Verdict.DISAGREES, reason)


GARBAGE: dict[str, Says] = {
    "losses of too few scenarios": saying(claimed_losses=LOSSES[:3]),
    "losses of too many scenarios": saying(claimed_losses=np.append(LOSSES, 0.0)),
    "no candidate at all": lambda problem, budget: "a test",
    "cases instead of a test": saying(test=(0, 1)),
    "no bound": saying(lower_bound=None),
}


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_does_not_stop_the_comparison(garbage: str, register: Register) -> None:
    register("liar", GARBAGE[garbage])
    report = ro.agree(PROBLEM, [*HONEST, "liar"])
    assert [finding.backend for finding in report.dissenters] == ["liar"]


def test_a_false_bound_is_refuted_by_the_name_of_who_has_the_best_test(register: Register) -> None:
    register("liar", saying(test=WORSE, lower_bound=OBJECTIVE + 0.05))
    register("champion", saying())
    register("second", saying(test=PROBLEM.test(cases=RANKED[1], weights=[0.5, 0.5]), limit=ro.Limit.TIME))
    report = ro.agree(PROBLEM, ["second", "liar", "champion"])
    assert report.best is not None and report.best.backend == "champion"
    assert [finding.backend for finding in report.dissenters] == ["liar"]
    assert f"is refuted by champion's test at {OBJECTIVE:.9g}: off by 0.05" in report.dissenters[0].reason


def test_a_missed_optimum_comes_with_who_found_it(register: Register) -> None:
    register("liar", saying(test=WORSE))
    register("champion", saying())
    report = ro.agree(PROBLEM, ["liar", "champion"])
    missed = PROBLEM.objective(WORSE) - OBJECTIVE
    assert [finding.backend for finding in report.dissenters] == ["liar"]
    assert f"champion found one at {OBJECTIVE:.9g}: off by {missed:.3g}" in report.dissenters[0].reason


NEVER_THE_BEST = {**NO_ANSWERS, **CRASHES, **NOTHING_IN_TIME}


@pytest.mark.parametrize("says", [says for says, _ in NEVER_THE_BEST.values()], ids=list(NEVER_THE_BEST))
def test_what_is_no_answer_is_never_the_best(says: Says, register: Register) -> None:
    register("liar", says)
    report = ro.agree(PROBLEM, ["liar", *HONEST])
    assert report.best is not None and report.best.backend in HONEST
    assert finding_of(report, "liar").solution is None


def test_liars_in_the_majority_are_named_all_the_same(register: Register) -> None:
    for name in ("liar", "crony", "toady"):
        register(name, saying(test=WORSE, claimed_objective=OBJECTIVE + 0.1, lower_bound=OBJECTIVE + 0.1))
    report = ro.agree(PROBLEM, ["liar", "crony", "scipy-milp", "toady"])
    assert [finding.backend for finding in report.dissenters] == ["liar", "crony", "toady"]
    assert finding_of(report, "scipy-milp").verdict is ro.Verdict.AGREES


def test_a_liar_with_nobody_beside_it_is_still_held_against_its_own_test(register: Register) -> None:
    register("liar", saying(lower_bound=OBJECTIVE + 0.05))
    report = ro.agree(PROBLEM, ["liar"])
    assert [finding.backend for finding in report.dissenters] == ["liar"]
    assert "is refuted by liar's test" in report.dissenters[0].reason


def test_a_backend_that_is_a_little_late_is_waited_for(register: Register) -> None:
    def dawdles(problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        while budget.reached() is None:
            time.sleep(0.01)
        time.sleep(0.1)
        return ro.Candidate(test=OPTIMUM, lower_bound=0.0)

    register("late", dawdles)
    report = ro.agree(PROBLEM, ["late"], time_limit_seconds=0.1, patience_seconds=20)
    assert report.agreed
    solution = report.findings[0].solution
    assert solution is not None and 0.2 <= solution.seconds < 20


def test_a_method_with_a_rate_must_keep_it(register: Register) -> None:
    rounds = 10_000
    allowed = 2 * 0.5 * math.sqrt(2 / rounds)  # the Corollary's ε: the results of a policy spread over 0..1, m = 2
    assert 0 < allowed < PROBLEM.objective(WORSE) - OBJECTIVE
    register("liar", saying(test=WORSE), WitnessWithARate, rounds=rounds)
    report = ro.agree(PROBLEM, [*HONEST, "liar"])
    assert only_the_liar_is_named(report, ro.Verdict.DISAGREES, f"its test is at {PROBLEM.objective(WORSE):.9g}")
    assert f"with {allowed + TOLERANCE:.3g} allowed" in report.dissenters[0].reason


# Honest backends that must not be named.


def test_a_method_with_a_rate_may_miss_by_that_much(register: Register) -> None:
    register("coarse", saying(test=WORSE), WitnessWithARate, rounds=2)
    register("vague", saying(test=WORSE), capabilities=WITH_A_RATE)  # it promises nothing
    report = ro.agree(PROBLEM, ["coarse", "vague", *HONEST])
    assert report.agreed, report.dissenters
    assert [finding.verdict for finding in report.findings] == [ro.Verdict.AGREES] * 4


@pytest.mark.parametrize("difference", [0.5, -7.0, math.inf, math.nan])
def test_losses_without_weight_may_be_anything(difference: float, register: Register) -> None:
    register("careless", saying(claimed_losses=losses_off_by(difference, WEIGHTLESS)))
    report = ro.agree(PROBLEM, [*HONEST, "careless"])
    assert report.agreed, report.dissenters


def test_true_claims_are_not_objected_to(register: Register) -> None:
    register("honest", saying(claimed_objective=OBJECTIVE, claimed_losses=LOSSES, lower_bound=OBJECTIVE))
    report = ro.agree(PROBLEM, [*HONEST, "honest"])
    assert report.agreed, report.dissenters
    finding = finding_of(report, "honest")
    assert (finding.verdict, finding.reason) == (ro.Verdict.AGREES, "")
    assert finding.solution is not None and finding.solution.status is ro.Status.OPTIMAL


def test_other_cases_with_the_same_objective_tie(register: Register) -> None:
    twins = ro.Problem(results=[[0.0], [1.0], [1.0], [3.0]], size=1, case_names=["a", "b", "twin of b", "c"])
    register("twin", saying(test=twins.test(cases=[2], weights=[1.0])))
    report = ro.agree(twins, ["regret-matching", "twin"])
    assert report.agreed
    assert [finding.verdict for finding in report.findings] == [ro.Verdict.AGREES, ro.Verdict.TIES]
    assert report.findings[1].reason == "as good as regret-matching's cases ['b']"


@pytest.mark.parametrize("limit", list(ro.Limit))
def test_a_run_that_was_stopped_may_be_worse(limit: ro.Limit, register: Register) -> None:
    register("stopped", saying(test=WORSE, lower_bound=OBJECTIVE / 2, limit=limit))
    report = ro.agree(PROBLEM, ["stopped", *HONEST])
    assert report.agreed, report.dissenters
    finding = finding_of(report, "stopped")
    assert (finding.verdict, finding.reason) == (ro.Verdict.PROVED_LESS, f"stopped early by {limit.value}")
    assert finding.solution is not None and finding.solution.lower_bound == OBJECTIVE / 2
    assert report.best is not None and report.best.backend in HONEST


def test_proving_nothing_is_no_lie(register: Register) -> None:
    register("modest", saying(lower_bound=-math.inf))
    report = ro.agree(PROBLEM, [*HONEST, "modest"])
    assert report.agreed, report.dissenters
    solution = finding_of(report, "modest").solution
    assert solution is not None and solution.gap == math.inf


@pytest.mark.parametrize(
    ("extra", "command"), [(None, "pip install surely_missing"), ("parrots", "pip install 'rposst-opt[parrots]'")]
)
def test_a_backend_that_is_not_installed_is_listed_with_the_command(
    extra: str | None, command: str, register: Register
) -> None:
    ability = replace(ABILITY, requires=("math", "surely_missing"), extra=extra)
    register("absent", raising(AssertionError("it was run")), capabilities=ability)
    report = ro.agree(PROBLEM, ["absent", *HONEST])
    assert report.agreed
    finding = finding_of(report, "absent")
    assert finding.verdict is ro.Verdict.UNAVAILABLE and command in finding.reason
    assert finding.solution is None


def test_a_backend_that_cannot_state_the_problem_is_listed_with_the_reason() -> None:
    curved = ro.Problem(results=PROBLEM.results, size=2, loss=ro.SquaredError())
    report = ro.agree(curved, HONEST)
    assert report.agreed
    assert [finding.verdict for finding in report.findings] == [ro.Verdict.AGREES, ro.Verdict.DECLINED]
    assert report.findings[1].reason == "it does not handle a loss with curvature"


def test_nobody_agrees_when_nobody_answers() -> None:
    curved = ro.Problem(results=PROBLEM.results, size=2, loss=ro.SquaredError())
    report = ro.agree(curved, ["scipy-milp"])
    assert not report.agreed
    assert (report.dissenters, report.best) == ((), None)


def nudged(amount: float) -> ro.EfficientTest:
    """The optimal cases, with weights that cost this much of the objective or a little less."""
    weights = OPTIMUM.weights
    for step in (amount, -amount):
        test = PROBLEM.test(cases=OPTIMUM.cases, weights=[weights[0] + step, weights[1] - step])
        if PROBLEM.objective(test) > OBJECTIVE + amount / 20:
            return test
    raise AssertionError("the optimum is flat")


ERRORS: dict[str, Callable[[float], Says]] = {
    "its objective": lambda error: saying(claimed_objective=OBJECTIVE + error),
    "its losses": lambda error: saying(claimed_losses=losses_off_by(error / TAIL_WEIGHTS[HEAVIEST], HEAVIEST)),
    "its bound": lambda error: saying(lower_bound=OBJECTIVE + error),
    "its test": lambda error: saying(test=nudged(error)),
}


@pytest.mark.parametrize("what", ERRORS)
def test_errors_within_the_stated_tolerance_are_allowed_and_others_are_not(what: str, register: Register) -> None:
    makes = ERRORS[what]
    register("loose", makes(0.009), capabilities=replace(ABILITY, tolerance=0.01))
    report = ro.agree(PROBLEM, [*HONEST, "loose"])
    assert report.agreed, report.dissenters
    register("liar", makes(0.009), capabilities=replace(ABILITY, tolerance=0.009 / 30))
    report = ro.agree(PROBLEM, [*HONEST, "loose", "liar"])
    assert [finding.backend for finding in report.dissenters] == ["liar"], report.dissenters


def test_the_tolerance_is_relative_to_the_scale_of_losses(register: Register) -> None:
    large = ro.Problem(results=1000 * PROBLEM.results, size=2, measure=PROBLEM.measure)
    register("close", saying(claimed_objective=1000 * OBJECTIVE + 500 * TOLERANCE))
    register("liar", saying(claimed_objective=1000 * OBJECTIVE + 2000 * TOLERANCE))
    assert only_the_liar_is_named(
        ro.agree(large, [*HONEST, "close", "liar"]), ro.Verdict.DISAGREES, "says that its test is worth"
    )


# Everybody on everything.


def witnesses() -> list[str]:
    return [name for name, entry in BACKENDS.items() if not entry.capabilities.is_heuristic]


def asks_all_backends_once(report: ro.Agreement) -> bool:
    return [finding.backend for finding in report.findings] == witnesses()


def objections(report: ro.Agreement) -> str:
    return "\n".join(f"{finding.backend} {finding.verdict}: {finding.reason}" for finding in report.dissenters)


def features_of(problem: ro.Problem, report: ro.Agreement) -> Iterator[str]:
    yield f"size {problem.size}"
    yield type(problem.loss).__name__
    yield type(problem.measure).__name__
    if np.ptp(problem.probabilities) > 0:
        yield "unequal probabilities"
    if (problem.probabilities == 0).any():
        yield "an impossible scenario"
    if problem.required_cases:
        yield "required cases"
    if problem.forbidden_cases:
        yield "forbidden cases"
    if len(problem.targets) > 1:
        yield "several targets"
    if problem.n_tuples == 1:
        yield "nothing to choose"
    if problem.n_policies == 1:
        yield "one policy"
    if problem.loss_scale == 0:
        yield "results all alike"
    elif len(np.unique(problem.results, axis=0)) < problem.n_cases:
        yield "duplicate cases"
    if any(finding.verdict is ro.Verdict.TIES for finding in report.findings):
        yield "ties"


FEATURES = {
    *("size 1", "size 2", "size 3"),
    *("AbsoluteError", "SquaredError", "HuberError", "PinballError", "EpsilonInsensitiveError"),
    *("Mean", "WorstCase", "CVaR", "KOfN", "Mixture"),
    *("unequal probabilities", "an impossible scenario", "required cases", "forbidden cases", "several targets"),
    *("nothing to choose", "one policy", "results all alike", "duplicate cases", "ties"),
}


@pytest.mark.slow
def test_all_backends_agree_on_two_hundred_random_problems() -> None:
    answered: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    reports = 0

    @seed(20240229)
    @settings(
        max_examples=200,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(problems(most_cases=5, most_policies=4))
    def all_agree(problem: ro.Problem) -> None:
        nonlocal reports
        report = ro.agree(problem)
        assert asks_all_backends_once(report)
        for finding in report.findings:
            assert finding.solution is not None or finding.reason
        reports += 1
        seen.update(features_of(problem, report))
        answered.update(finding.backend for finding in report.findings if finding.solution is not None)
        assert report.agreed, objections(report)

    all_agree()
    assert reports >= 200
    assert seen.keys() >= FEATURES, f"never seen: {FEATURES - seen.keys()}"
    installed = [name for name in witnesses() if how_to_install(BACKENDS[name].capabilities) is None]
    assert len(installed) >= 10
    assert {name: answered[name] for name in installed if answered[name] < 20} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTANCES)
def test_all_backends_agree_on_what_is_derived_by_hand(name: str) -> None:
    instance = INSTANCES[name]()
    report = ro.agree(instance.problem)
    assert report.agreed, objections(report)
    assert asks_all_backends_once(report)
    assert report.best is not None and report.best.solution is not None
    allowed = 1e-6 * instance.problem.unit
    if all(finding.solution is None for finding in report.findings[1:]):  # regret matching+ alone, at its rate
        allowed += ro.regret_matching_gap(instance.problem, 500)
    assert report.best.solution.objective == pytest.approx(instance.objective, abs=allowed)


def test_all_backends_agree_on_a_measure_with_a_tiny_share() -> None:
    """The third CVaR has a share of 3e-9: HiGHS's presolve calls the program unbounded if its level is free."""
    problem = ro.Problem(
        results=[[1.0, 0.75, 0.5, 0.25], [0.25, 0.0, 0.0, 0.0]],
        size=2,
        measure=ro.KOfN(1, 30),
        loss=ro.EpsilonInsensitiveError(0.21194045311121432),
        targets=[[0.25241806, 0.74758194]],
    )
    report = ro.agree(problem)
    assert report.agreed, objections(report)


# Tuple by tuple.


@pytest.mark.slow
def test_all_backends_agree_on_every_single_tuple() -> None:
    small = replace(PROBLEM, forbidden_cases=(4,))
    report = ro.agree(small, by_tuple=True)
    assert report.agreed, objections(report)
    assert [cases for cases, _ in report.by_tuple] == list(combinations(range(4), 2))
    for cases, agreement in report.by_tuple:
        assert agreement.agreed, objections(agreement)
        assert asks_all_backends_once(agreement)
        assert agreement.best is not None and agreement.best.solution is not None
        assert agreement.best.solution.test is not None and agreement.best.solution.test.cases == cases
        assert agreement.best.solution.objective == pytest.approx(BY_TUPLE[cases][0], abs=1e-6)


def test_tuples_have_the_required_cases_and_not_the_forbidden_ones() -> None:
    report = ro.agree(SETTLED, HONEST, by_tuple=True)
    assert report.agreed, objections(report)
    assert [cases for cases, _ in report.by_tuple] == [(0, 1), (1, 2), (1, 4)]


def test_tuples_are_not_compared_unless_asked_for() -> None:
    assert ro.agree(PROBLEM, HONEST).by_tuple == ()


def test_a_lie_about_one_tuple_is_caught_tuple_by_tuple(register: Register) -> None:
    neglected = RANKED[-1]

    def neglects_a_tuple(problem: ro.Problem, budget: ro.Budget) -> ro.Candidate:
        if problem.selectable_cases == neglected:
            return ro.Candidate(test=problem.test(cases=neglected, weights=[0.0, 1.0]), lower_bound=0.0)
        return BACKENDS["scipy-milp"].make().solve(problem, budget)

    lone = PROBLEM.test(cases=neglected, weights=[0.0, 1.0])
    assert PROBLEM.objective(lone) > BY_TUPLE[neglected][0] + 0.01
    register("liar", neglects_a_tuple)
    assert ro.agree(PROBLEM, [*HONEST, "liar"]).agreed
    report = ro.agree(PROBLEM, [*HONEST, "liar"], by_tuple=True)
    assert len(report.by_tuple) == math.comb(5, 2)
    assert [cases for cases, agreement in report.by_tuple if not agreement.agreed] == [neglected]
    assert [finding.backend for finding in report.dissenters] == ["liar"]
    assert not report.agreed


# Whom to ask.


def test_unknown_backends_are_refused_before_anything_runs(register: Register) -> None:
    asked: list[str] = []
    with pytest.raises(ro.BackendNotFound, match="unknown backend 'magic'"):
        ro.agree(PROBLEM, ["scipy-milp", "magic"], progress=asked.append)
    assert asked == []


def test_somebody_must_be_asked() -> None:
    with pytest.raises(ro.ProblemError, match="must name at least one backend"):
        ro.agree(PROBLEM, [])


@pytest.mark.parametrize("names", [["scipy-milp", "regret-matching"], ["pulp-cbc", "regret-matching", "scipy-milp"]])
def test_the_report_is_in_the_order_of_the_names(names: list[str]) -> None:
    asked: list[str] = []
    report = ro.agree(PROBLEM, names, progress=asked.append)
    assert [finding.backend for finding in report.findings] == names == asked
    assert report.problem is PROBLEM


def test_every_installed_solver_comes_with_its_version() -> None:
    report = ro.agree(PROBLEM)
    for finding in report.findings:
        if finding.verdict is ro.Verdict.UNAVAILABLE:
            assert "pip install" in finding.reason
            continue
        package = BACKENDS[finding.backend].capabilities.requires[-1]
        assert finding.version.startswith(f"{package} "), finding.backend
        assert finding.version.split()[1][0].isdigit()
