"""Which backend does ``"auto"`` stand for, and why?"""

from collections.abc import Iterable

from rposst_opt.backends.forecast import in_words, predict
from rposst_opt.backends.table import BACKENDS, Entry, no_option, quoted, why_unusable
from rposst_opt.errors import ProblemError, Unsupported
from rposst_opt.problem import Problem
from rposst_opt.solution import BackendChoice

BEST_OF_ALL = "exact"  # it has the relaxation and a local search inside, so that no part of it does better
TOO_SHORT_TO_TELL = 0.05  # seconds: among backends predicted to be this fast, the first in the table is taken
LONG = 60.0  # seconds: from there on a run without a limit says so beforehand


def choose_backend(
    problem: Problem, options: Iterable[str] = (), *, time_limit_seconds: float | None = None, gap: float = 0.0
) -> BackendChoice:
    """The backend that `auto` stands for: `exact` if it can, and otherwise the one that is predicted to be soonest.

    What is predicted is the time to prove what is asked: the optimum, or a test within a gap. Options narrow the choice
    to backends that have them; where none of these finds optima, the first in the table is taken. Heuristics are never
    chosen: they have to be asked for.
    """
    options = tuple(options)
    predicted = predict(problem, BACKENDS, gap)
    soonest_first = sorted(predicted, key=lambda name: max(predicted[name], TOO_SHORT_TO_TELL))
    known: set[str] = set()
    # One by one: a backend's module is imported when it is looked at.
    for name in dict.fromkeys([*[name for name in BACKENDS if name == BEST_OF_ALL], *soonest_first, *BACKENDS]):
        entry = BACKENDS[name]
        if entry.capabilities.is_heuristic or not _can_solve(entry, problem):
            continue
        has = set(entry.options)
        known |= has
        if has.issuperset(options):
            return BackendChoice(name, predicted, _reason(name, predicted.get(name), time_limit_seconds, gap))
    strange = [option for option in options if option not in known]
    if known and strange:
        which = f"They have: {quoted(sorted(known))}."
        raise ProblemError(no_option("no backend that `auto` chooses among has an option", strange[0], which, known))
    if known:
        wanted = ", ".join(options)
        raise ProblemError(f"no backend has the options {wanted} together. Known: {', '.join(sorted(known))}.")
    raise Unsupported("no installed backend handles this problem.")


def _reason(name: str, seconds: float | None, time_limit_seconds: float | None, gap: float) -> str:
    """Why this backend, and how long it is predicted to take."""
    if seconds is None:
        return "the first that can; its time is not known"
    aim = f"a gap of {gap:g}" if gap else "the optimum"
    soonest = "" if name == BEST_OF_ALL else " soonest,"
    reason = f"predicted to prove {aim}{soonest} in about {in_words(seconds)}"
    if time_limit_seconds is not None and seconds > time_limit_seconds:
        rounded = float(f"{time_limit_seconds:.3g}")  # a share of a command's time has many digits
        reason += f", so within {rounded:g} s it looks for a good test and a bound"
    return reason


def long_run_words(choice: BackendChoice) -> str | None:
    """What to say before a run without a limit of time that is predicted to take long; None if it is not."""
    seconds = choice.predicted_seconds.get(choice.backend, 0.0)
    if seconds < LONG:
        return None
    return (
        f"this may take long: {choice.backend} is {choice.reason}. Ctrl-C ends it with the best test so far, and so do "
        "a limit of time, or a gap that will do."
    )


def _can_solve(entry: Entry, problem: Problem) -> bool:
    capabilities = entry.capabilities
    return capabilities.why_not(problem) is None and why_unusable(capabilities) is None
