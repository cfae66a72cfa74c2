import pytest
from instances import INSTANCES

import rposst_opt as ro
from rposst_opt.backends import how_to_install

COMMERCIAL = {"gurobi", "mosek"}


@pytest.mark.parametrize("backend", list(ro.BACKENDS))
def test_every_free_backend_is_installed_here(backend: str) -> None:
    capabilities = ro.BACKENDS[backend].capabilities
    assert how_to_install(capabilities) is None or capabilities.extra in COMMERCIAL


@pytest.mark.parametrize("backend", list(ro.BACKENDS))
@pytest.mark.parametrize("name", list(INSTANCES))
def test_every_backend_finds_the_value_derived_by_hand(name: str, backend: str) -> None:
    problem, expected = INSTANCES[name]().problem, INSTANCES[name]().objective
    capabilities = ro.BACKENDS[backend].capabilities
    if how_to_install(capabilities) is not None:
        with pytest.raises(ro.BackendUnavailable, match=rf"pip install 'rposst-opt\[{capabilities.extra}\]'"):
            ro.solve(problem, backend)
        return
    if capabilities.why_not(problem) is not None:
        with pytest.raises(ro.Unsupported, match="cannot solve this problem"):
            ro.solve(problem, backend)
        return
    if backend == "sampled-regret-matching" and isinstance(problem.measure, ro.Mixture):
        with pytest.raises(ro.Unsupported, match="KOfN"):
            ro.solve(problem, backend)
        return
    solution = ro.solve(problem, backend)
    slack = problem.allowance(capabilities.tolerance)
    allowed = slack if capabilities.finds_optimum else ro.regret_matching_gap(problem, 500) + slack
    assert expected - slack <= solution.objective
    assert capabilities.is_heuristic or solution.objective <= expected + allowed
    assert solution.lower_bound <= expected + slack


def test_the_reference_method_comes_much_closer_than_its_bound() -> None:
    for make in INSTANCES.values():
        instance = make()
        solution = ro.solve(instance.problem, "regret-matching", rounds=2000)
        assert solution.objective <= instance.objective + 2e-3 * max(instance.problem.loss_scale, 1e-9)
