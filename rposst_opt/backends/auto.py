"""Which backend does ``"auto"`` stand for, and why?"""

from collections.abc import Iterable

from rposst_opt.backends.forecast import in_words, predict
from rposst_opt.backends.table import BACKENDS, Entry, why_unusable
from rposst_opt.errors import ProblemError, Unsupported
from rposst_opt.problem import Problem
from rposst_opt.solution import BackendChoice

TOO_SHORT_TO_TELL = 0.05  # seconds: among backends predicted to be this fast, the first in the table is taken
ANYTIME = "local-search"  # what `auto` stands for when there is no time for a proof


def choose_backend(
    problem: Problem, options: Iterable[str] = (), *, time_limit_seconds: float | None = None, gap: float = 0.0
) -> BackendChoice:
    """The backend that `auto` stands for: of those that can, the one that is predicted to prove what is asked soonest.

    What is asked is the optimum, or a test within a gap. If even that one is predicted to take longer than there is
    time, the best anytime method is taken instead. Options narrow the choice to backends that have them; where none of
    these finds optima, the first in the table is taken. Other heuristics are never chosen: they have to be asked for.
    """
    options = tuple(options)
    predicted = predict(problem, BACKENDS, gap)
    soonest_first = sorted(predicted, key=lambda name: max(predicted[name], TOO_SHORT_TO_TELL))
    known: set[str] = set()
    # One by one: a backend's module is imported when it is looked at.
    for name in dict.fromkeys([*soonest_first, *BACKENDS]):
        entry = BACKENDS[name]
        if entry.capabilities.is_heuristic or not _can_solve(entry, problem):
            continue
        has = set(entry.options)
        known |= has
        if not has.issuperset(options):
            continue
        seconds = predicted.get(name)
        aim = f"a gap of {gap:g}" if gap else "the optimum"
        if seconds is None:
            return BackendChoice(name, predicted, "the first that can; its time is not known")
        too_long = time_limit_seconds is not None and seconds > time_limit_seconds
        if too_long and _can_stand_in(problem, options):
            reason = (
                f"no backend is predicted to prove {aim} within {time_limit_seconds:g} s ({name}, the fastest, "
                f"would take about {in_words(seconds)}), so {ANYTIME} looks for a good test"
            )
            return BackendChoice(ANYTIME, predicted, reason)
        return BackendChoice(name, predicted, f"predicted to prove {aim} soonest, in about {in_words(seconds)}")
    if known:
        wanted = ", ".join(options)
        raise ProblemError(f"no backend has the options {wanted} together. Known: {', '.join(sorted(known))}.")
    raise Unsupported("no installed backend handles this problem.")


def _can_solve(entry: Entry, problem: Problem) -> bool:
    capabilities = entry.capabilities
    return capabilities.why_not(problem) is None and why_unusable(capabilities) is None


def _can_stand_in(problem: Problem, options: tuple[str, ...]) -> bool:
    """Whether the anytime method is there, and has the options that are asked for."""
    entry = BACKENDS.get(ANYTIME)
    return entry is not None and _can_solve(entry, problem) and set(entry.options).issuperset(options)
