"""The pseudo-Boolean form of a certificate: other solvers refute it, and find what a needed cut alone rules out."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from pysat.card import CardEnc
from pysat.solvers import Solver
from pyscipopt import Model

import rposst_opt as ro
from rposst_opt.checking.verification import hitting_problem
from rposst_opt.experiments.domains import racing_arrows
from rposst_opt.files.opb import as_opb


def variables_of(text: str) -> dict[str, str]:
    """The case that every variable stands for, as comments say."""
    return {variable: json.loads(name) for variable, name in re.findall(r"^\* (x\d+) is (.*)$", text, re.MULTILINE)}


def by_sat(text: str, folder: Path) -> set[str] | None:
    """The cases of a solution, by a SAT solver that is given the clauses and one cardinality constraint; or None."""
    lines = [line for line in text.splitlines() if not line.startswith("*")]
    terms = [[(int(factor), int(x)) for factor, x in re.findall(r"([+-]\d+) x(\d+)", line)] for line in lines]
    limits = [int(re.fullmatch(r".* >= (-?\d+) ;", line)[1]) for line in lines]  # type: ignore[index]  # all match
    with Solver("cadical153") as solver:
        for summands, limit in zip(terms, limits, strict=True):
            if limit == 1:
                assert {factor for factor, _ in summands} <= {1} or summands == [(0, 1)]
                solver.add_clause([x for factor, x in summands if factor])
            else:
                assert {factor for factor, _ in summands} == {-1}
                solver.append_formula(CardEnc.atmost([x for _, x in summands], -limit, encoding=1).clauses)
        if not solver.solve():
            return None
        model = solver.get_model()
    names = variables_of(text)
    return {names[f"x{x}"] for x in model if f"x{x}" in names}


def by_scip(text: str, folder: Path) -> set[str] | None:
    """The same by SCIP, which reads the file itself."""
    path = folder / "proof.opb"
    path.write_text(text)
    model = Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    if model.getStatus() == "infeasible":
        return None
    assert model.getStatus() == "optimal"
    names = variables_of(text)
    return {names[variable.name] for variable in model.getVars() if model.getVal(variable) > 0.5}


def proved() -> tuple[ro.Problem, ro.Certificate]:
    table = racing_arrows(14, np.random.default_rng(1))
    problem = ro.Problem(results=table, size=3, required_cases=[3], forbidden_cases=[0, 8], measure=ro.CVaR(0.1))
    certificate = ro.solve(problem, "exact", certificate=True).certificate
    assert certificate is not None
    return problem, certificate


@pytest.mark.parametrize("refute", [by_sat, by_scip])
def test_a_proof_is_refuted_and_what_a_needed_cut_rules_out_is_found(
    refute: Callable[[str, Path], set[str] | None], tmp_path: Path
) -> None:
    problem, proof = proved()
    assert refute(as_opb(hitting_problem(problem, proof)), tmp_path) is None
    needed = 0
    for number in range(len(proof.cuts)):
        lacking = replace(proof, cuts=proof.cuts[:number] + proof.cuts[number + 1 :])
        found = refute(as_opb(hitting_problem(problem, lacking)), tmp_path)
        assert (found is None) == ro.verify_certificate(problem, lacking).holds
        if found is not None:
            needed += 1
            cases = [problem.case_names.index(name) for name in found]
            assert len(cases) <= 3 and not {0, 3, 8} & set(cases)
            assert (proof.cuts[number].values(problem)[[*cases, 3]] >= proof.bound - 1e-9).all()
    assert needed


@pytest.mark.parametrize("refute", [by_sat, by_scip])
def test_exceptions_and_cuts_that_rule_everything_out_are_clauses_too(
    refute: Callable[[str, Path], set[str] | None], tmp_path: Path
) -> None:
    problem = ro.Problem(results=np.random.default_rng(0).random((5, 4)), size=2, case_names=list('ab"d\n'))
    everything = ro.Certificate(0.9, (), tuple(combinations(range(5), 2)))
    assert refute(as_opb(hitting_problem(problem, everything)), tmp_path) is None
    forgotten = replace(everything, exceptions=everything.exceptions[:-1])
    found = refute(as_opb(hitting_problem(problem, forgotten)), tmp_path)
    assert found is not None and found == {"d", "\n"}
    cut = ro.CertificateCut(np.array([0]), np.ones(1), np.zeros(1))
    assert refute(as_opb(hitting_problem(problem, ro.Certificate(-1.0, (cut,)))), tmp_path) is None
    assert refute(as_opb(hitting_problem(problem, ro.Certificate(-1.0, ()))), tmp_path) is not None


def test_the_first_line_counts_variables_and_constraints() -> None:
    problem, proof = proved()
    text = as_opb(hitting_problem(problem, proof))
    counts = re.fullmatch(r"\* #variable= (\d+) #constraint= (\d+)", text.splitlines()[0])
    assert counts is not None
    assert int(counts[1]) == 11 == len(variables_of(text))
    assert int(counts[2]) == sum(not line.startswith("*") for line in text.splitlines())
    assert "follower-003" not in variables_of(text).values()
