"""What a certificate proves, as a pseudo-Boolean problem in the format OPB, for solvers that are not ours.

A variable per test case that may be chosen says whether it is. There is a clause for every set that must be hit, and
not more cases than the problem asks for. The certificate holds if this has no solution. Many solvers of the yearly
competition [1]_ write proofs of that, which verified checkers check.

References
----------
.. [1] O. Roussel, V. Manquinho, "Input/Output Format and Solver Requirements for the Competitions of Pseudo-Boolean
   Solvers", 2012.
"""

import json
from collections.abc import Iterable

from rposst_opt.checking.hitting_sets import as_bits, members_of
from rposst_opt.checking.verification import HittingProblem
from rposst_opt.errors import Unsupported


def as_opb(question: HittingProblem) -> str:
    """The question whether some test cases hit all sets, as text; comments say which variable is which case.

    Sets that a required case hits are left out. A set that nobody can hit is a clause that nothing satisfies.
    """
    problem = question.problem
    if problem.choice_rules:
        raise Unsupported(
            "a proof with rules about the choice cannot be written as OPB, which has whole numbers alone."
        )
    cases, required = problem.selectable_cases, as_bits(problem.required_cases)
    variables = {case: f"x{number}" for number, case in enumerate(cases, start=1)}
    to_hit = {each & as_bits(cases) for each in question.sets if not each & required}
    clauses = [[variables[case] for case in members_of(each)] for each in sorted(to_hit)]
    lines = [
        f"* #variable= {len(cases)} #constraint= {len(clauses) + 1}",
        f"* A solution is a set of {problem.size} test cases that the certificate does not account for.",
        *(f"* {variable} is {json.dumps(problem.case_names[case])}" for case, variable in variables.items()),
        f"{_sum(-1, variables.values())} >= {-problem.size} ;",
        *(f"{_sum(+1, clause) or '+0 x1'} >= 1 ;" for clause in clauses),
    ]
    return "\n".join(lines) + "\n"


def _sum(coefficient: int, variables: Iterable[str]) -> str:
    return " ".join(f"{coefficient:+d} {variable}" for variable in variables)
