"""Tiny tests that tell the truth: choose a few test cases and weights whose score stays close to the full test's.

>>> import rposst_opt as ro
>>> problem = ro.Problem(results=[[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]], size=1)
>>> ro.solve(problem).test.cases
(2,)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from rposst_opt.assembly import Rule as Rule
    from rposst_opt.assembly import Rules as Rules
    from rposst_opt.assembly import SizeIs as SizeIs
    from rposst_opt.backends import BACKENDS as BACKENDS
    from rposst_opt.backends import solve as solve
    from rposst_opt.backends.forms import Forms as Forms
    from rposst_opt.backends.forms import make_forms as make_forms
    from rposst_opt.backends.iterative import IterativeSelection as IterativeSelection
    from rposst_opt.backends.iterative import select_iteratively as select_iteratively
    from rposst_opt.certificate import Certificate as Certificate
    from rposst_opt.certificate import CertificateCut as CertificateCut
    from rposst_opt.checking.verification import Verification as Verification
    from rposst_opt.checking.verification import verify_certificate as verify_certificate
    from rposst_opt.contract import Backend as Backend
    from rposst_opt.contract import Budget as Budget
    from rposst_opt.contract import Candidate as Candidate
    from rposst_opt.contract import Capabilities as Capabilities
    from rposst_opt.contract import Limit as Limit
    from rposst_opt.contract import Progress as Progress
    from rposst_opt.contract import Stats as Stats
    from rposst_opt.efficient_test import EfficientTest as EfficientTest
    from rposst_opt.errors import BackendFailure as BackendFailure
    from rposst_opt.errors import BackendNotFound as BackendNotFound
    from rposst_opt.errors import BackendUnavailable as BackendUnavailable
    from rposst_opt.errors import FalseClaim as FalseClaim
    from rposst_opt.errors import Infeasible as Infeasible
    from rposst_opt.errors import LicenceMissing as LicenceMissing
    from rposst_opt.errors import ProblemError as ProblemError
    from rposst_opt.errors import RposstError as RposstError
    from rposst_opt.errors import RposstWarning as RposstWarning
    from rposst_opt.errors import Unsupported as Unsupported
    from rposst_opt.files.reading import ResultTable as ResultTable
    from rposst_opt.files.reading import read_results as read_results
    from rposst_opt.files.samples import sample_cases as sample_cases
    from rposst_opt.files.samples import sample_results as sample_results
    from rposst_opt.fuzzing.run import FuzzingReport as FuzzingReport
    from rposst_opt.fuzzing.run import fuzz as fuzz
    from rposst_opt.losses import AbsoluteError as AbsoluteError
    from rposst_opt.losses import EpsilonInsensitiveError as EpsilonInsensitiveError
    from rposst_opt.losses import HuberError as HuberError
    from rposst_opt.losses import Loss as Loss
    from rposst_opt.losses import PiecewiseQuadratic as PiecewiseQuadratic
    from rposst_opt.losses import PinballError as PinballError
    from rposst_opt.losses import SquaredError as SquaredError
    from rposst_opt.measures import CVaR as CVaR
    from rposst_opt.measures import KOfN as KOfN
    from rposst_opt.measures import Mean as Mean
    from rposst_opt.measures import Measure as Measure
    from rposst_opt.measures import Mixture as Mixture
    from rposst_opt.measures import WorstCase as WorstCase
    from rposst_opt.problem import Need as Need
    from rposst_opt.problem import Problem as Problem
    from rposst_opt.referee.agreement import agree as agree
    from rposst_opt.referee.comparison import Comparison as Comparison
    from rposst_opt.referee.comparison import compare as compare
    from rposst_opt.referee.findings import Agreement as Agreement
    from rposst_opt.referee.findings import Contradiction as Contradiction
    from rposst_opt.referee.findings import Verdict as Verdict
    from rposst_opt.reports import analysis as analysis
    from rposst_opt.reports import plots as plots
    from rposst_opt.results import Scale as Scale
    from rposst_opt.results import rescale as rescale
    from rposst_opt.results import softmax_targets as softmax_targets
    from rposst_opt.results import standard_errors as standard_errors
    from rposst_opt.solution import BackendChoice as BackendChoice
    from rposst_opt.solution import RankedTest as RankedTest
    from rposst_opt.solution import Solution as Solution
    from rposst_opt.solution import Status as Status
    from rposst_opt.solvers.bounds import regret_matching_gap as regret_matching_gap
    from rposst_opt.solvers.sampled import DirichletSampler as DirichletSampler
    from rposst_opt.solvers.sampled import SampledRegretMatching as SampledRegretMatching
    from rposst_opt.solvers.sampled import ScenarioSampler as ScenarioSampler
    from rposst_opt.solvers.sampled import TableSampler as TableSampler
    from rposst_opt.solvers.simultaneous import MixedTest as MixedTest
    from rposst_opt.solvers.simultaneous import Simultaneous as Simultaneous
    from rposst_opt.unseen.procedures import Purpose as Purpose
    from rposst_opt.unseen.recommendation import Recommendation as Recommendation
    from rposst_opt.unseen.recommendation import recommend as recommend
    from rposst_opt.unseen.validation import Validation as Validation
    from rposst_opt.unseen.validation import validate as validate

# Where each public name lives. Names are imported when they are first used, so that the command line can print its help
# without waiting for NumPy.
_HOMES = {
    "assembly": ("Rule", "Rules", "SizeIs"),
    "referee.agreement": ("agree",),
    "referee.comparison": ("Comparison", "compare"),
    "referee.findings": ("Agreement", "Contradiction", "Verdict"),
    "backends": ("BACKENDS", "solve"),
    "solvers.bounds": ("regret_matching_gap",),
    "certificate": ("Certificate", "CertificateCut"),
    "checking.verification": ("Verification", "verify_certificate"),
    "contract": ("Backend", "Budget", "Candidate", "Capabilities", "Limit", "Progress", "Stats"),
    "efficient_test": ("EfficientTest",),
    "errors": (
        "BackendFailure",
        "BackendNotFound",
        "BackendUnavailable",
        "FalseClaim",
        "Infeasible",
        "LicenceMissing",
        "ProblemError",
        "RposstError",
        "RposstWarning",
        "Unsupported",
    ),
    "files.reading": ("ResultTable", "read_results"),
    "files.samples": ("sample_cases", "sample_results"),
    "fuzzing.run": ("FuzzingReport", "fuzz"),
    "backends.forms": ("Forms", "make_forms"),
    "backends.iterative": ("IterativeSelection", "select_iteratively"),
    "losses": (
        "AbsoluteError",
        "EpsilonInsensitiveError",
        "HuberError",
        "Loss",
        "PiecewiseQuadratic",
        "PinballError",
        "SquaredError",
    ),
    "measures": ("CVaR", "KOfN", "Mean", "Measure", "Mixture", "WorstCase"),
    "solvers.simultaneous": ("MixedTest", "Simultaneous"),
    "problem": ("Need", "Problem"),
    "results": ("Scale", "rescale", "softmax_targets", "standard_errors"),
    "solvers.sampled": ("DirichletSampler", "SampledRegretMatching", "ScenarioSampler", "TableSampler"),
    "unseen.procedures": ("Purpose",),
    "unseen.recommendation": ("Recommendation", "recommend"),
    "unseen.validation": ("Validation", "validate"),
    "solution": ("BackendChoice", "RankedTest", "Solution", "Status"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = {"analysis": "reports.analysis", "plots": "reports.plots"}

__all__ = ["__version__", *sorted([*_HOME_OF, *_MODULES])]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found: Any = import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _HOME_OF:
        found = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found  # Python asks only once
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
