"""What mixed-integer solvers know while they run: incumbents, as tests, and the bound that they claim.

HiGHS, SCIP and Gurobi call back. An incumbent's cases and weights are made a test, and told of with its objective by
`Problem`: the solver's own number may be larger, as its epigraph need not be tight before the end. The bound is the
solver's. What is raised while a solver calls back cannot pass through it, so that it is asked to stop, and then raised.
"""

import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

from formulations.epigraph import selected_test
from rposst_opt.contract import Budget, Progress
from rposst_opt.efficient_test import EfficientTest
from rposst_opt.problem import Problem

SOLVERS_INFINITY = 1e20  # what SCIP, and others above it, write for infinity

Value = Callable[[Any], float]  # of a variable of PuLP, in an incumbent


class Listener:
    """Hears what a solver says while it runs, and passes on what is new.

    Parameters
    ----------
    problem : Problem
    chosen, weights : mapping from case to variable
    unit : float
        Of the program's objective.
    budget : Budget
    """

    def __init__(
        self, problem: Problem, chosen: Mapping[int, Any], weights: Mapping[int, Any], unit: float, budget: Budget
    ) -> None:
        self._problem, self._budget, self._unit = problem, budget, unit
        self._chosen, self._weights = chosen, weights
        self._test: EfficientTest | None = None
        self._objective, self._bound = math.inf, -math.inf
        self._raised: BaseException | None = None

    def hear(self, bound: float, nodes: int, value: Value | None = None) -> bool:
        """Pass on a bound, and a new incumbent if there is one; whether the solver must stop."""
        try:
            proved = -math.inf if abs(bound) >= SOLVERS_INFINITY else bound * self._unit
            if value is None and proved <= self._bound:
                return self._raised is not None
            self._bound = max(self._bound, proved)
            if value is not None:
                self._take(value)
            self._tell(nodes)
        except BaseException as error:  # also an interrupt: it is raised again when the solver has stopped
            self._raised = error
        return self._raised is not None

    def _take(self, value: Value) -> None:
        chosen = {case: value(variable) for case, variable in self._chosen.items()}
        weights = {case: value(variable) for case, variable in self._weights.items()}
        test = selected_test(self._problem, chosen, weights)
        objective = self._problem.objective(test)
        if objective < self._objective:
            self._test, self._objective = test, objective

    def _tell(self, nodes: int) -> None:
        told = Progress(
            done=nodes, total=0, unit="nodes", objective=self._objective, lower_bound=self._bound, test=self._test
        )
        self._budget.tell(told)

    def raise_what_was_raised(self) -> None:
        """After the solver has stopped."""
        if self._raised is not None:
            raise self._raised


# How solvers are listened to: from the model of PuLP, whose `solverModel` is made but not run, to more arguments of
# the run.


def listen_to_highs(model: Any, listener: Listener) -> dict[str, Any]:
    """Of improving solutions and, as often as HiGHS asks whether to stop, of the bound."""
    kinds = importlib.import_module("highspy").cb.HighsCallbackType

    def heard(kind: int, message: str, out: Any, into: Any, ours: Any) -> None:
        incumbent = out.mip_solution if kind == kinds.kCallbackMipImprovingSolution else None
        value: Value | None = None if incumbent is None else lambda variable: float(incumbent[variable.index])
        if listener.hear(float(out.mip_dual_bound), int(out.mip_node_count), value):
            into.user_interrupt = True

    model.solverModel.setCallback(heard, None)
    for kind in (kinds.kCallbackMipImprovingSolution, kinds.kCallbackMipInterrupt):
        model.solverModel.startCallback(kind)
    return {}


def listen_to_scip(model: Any, listener: Listener) -> dict[str, Any]:
    """Of every better solution, and of the bound whenever a node is solved."""
    scip = importlib.import_module("pyscipopt")
    better, solved = scip.SCIP_EVENTTYPE.BESTSOLFOUND, scip.SCIP_EVENTTYPE.NODESOLVED

    class Handler(scip.Eventhdlr):  # type: ignore[misc,name-defined] # it has no types
        def eventinit(self) -> None:
            for kind in (better, solved):
                self.model.catchEvent(kind, self)

        def eventexit(self) -> None:
            for kind in (better, solved):
                self.model.dropEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            incumbent = self.model.getBestSol() if event.getType() == better else None
            value: Value | None = None if incumbent is None else lambda variable: float(incumbent[variable.solverVar])
            if listener.hear(float(self.model.getDualbound()), int(self.model.getNNodes()), value):
                self.model.interruptSolve()

    model.solverModel.includeEventhdlr(Handler(), "rposst", "tells of tests and bounds")
    return {}


def listen_to_gurobi(model: Any, listener: Listener) -> dict[str, Any]:
    """Of every new solution, and of the bound as Gurobi looks around."""
    codes = importlib.import_module("gurobipy").GRB.Callback

    def heard(solving: Any, where: int) -> None:
        if where == codes.MIPSOL:
            bound, nodes = solving.cbGet(codes.MIPSOL_OBJBND), solving.cbGet(codes.MIPSOL_NODCNT)
            stop = listener.hear(bound, int(nodes), lambda variable: float(solving.cbGetSolution(variable.solverVar)))
        elif where == codes.MIP:
            stop = listener.hear(solving.cbGet(codes.MIP_OBJBND), int(solving.cbGet(codes.MIP_NODCNT)))
        else:
            return
        if stop:
            solving.terminate()

    return {"callback": heard}
