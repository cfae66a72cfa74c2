"""Is a test as good as its file says, and how far is it from the best that a checked proof leaves possible?"""

import math
from dataclasses import dataclass

from rposst_opt.certificate import CHECK_TOLERANCE
from rposst_opt.checking.verification import Verification
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Claims:
    """A test, and what its file says of it; None where the file says nothing.

    Attributes
    ----------
    test : EfficientTest
    objective, lower_bound : float or None
    """

    test: EfficientTest
    objective: float | None = None
    lower_bound: float | None = None


@dataclass(frozen=True, kw_only=True)
class CheckedTest:
    """What came of checking a test's claims.

    Attributes
    ----------
    reason : str or None
        What is wrong, if anything is.
    objective : float
        `Problem.objective` of the test; +inf if it is no answer to the problem.
    bound : float
        What is proved of all tests.
    """

    reason: str | None
    objective: float
    bound: float

    @property
    def gap(self) -> float:
        """By how much the test may be worse than the best; what rounding makes of it below zero is zero."""
        return max(self.objective - self.bound, 0.0)


def check_claims(problem: Problem, claims: Claims, verification: Verification) -> CheckedTest:
    """Score the test again, and hold what its file says against that and against what was proved.

    Numbers may differ by ``problem.allowance(1e-9)``.

    Parameters
    ----------
    problem : Problem
    claims : Claims
        Of a test with this problem's names and units.
    verification : Verification
        Of a certificate for this problem.
    """
    reason = problem.why_not(claims.test)
    if reason is not None:
        return CheckedTest(reason=reason, objective=math.inf, bound=verification.bound)
    allowance = problem.allowance(CHECK_TOLERANCE)
    objective, bound = problem.objective(claims.test), verification.bound
    if claims.objective is not None and not abs(claims.objective - objective) <= allowance:
        reason = f"its file says that its objective is {claims.objective:.9g}, and it is {objective:.9g}"
    elif objective < bound - allowance:
        reason = f"its objective is {objective:.9g}, below the bound of {bound:.9g}, so that the proof is wrong"
    elif verification.holds and claims.lower_bound is not None and not claims.lower_bound <= bound + allowance:
        reason = f"its file says that no test is below {claims.lower_bound:.9g}, and {bound:.9g} is what is proved"
    return CheckedTest(reason=reason, objective=objective, bound=bound)
