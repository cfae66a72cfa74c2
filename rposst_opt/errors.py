"""What can go wrong, as a caller sees it.

Every message names the thing, the rule, the value and the way out, on one line. A limit that was reached is an outcome
(`Solution.limit`), not an error.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from importlib.util import find_spec
from inspect import currentframe, signature
from typing import ParamSpec, TypeVar

Kind = TypeVar("Kind")
Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class RposstError(Exception):
    """The parent of every error that this package raises on purpose."""


class ProblemError(RposstError, ValueError):
    """The data or the options given do not make a problem."""


class Infeasible(ProblemError):
    """No test keeps all rules of a problem.

    Attributes
    ----------
    core : tuple of str
        Rules that cannot hold together, of which none can be spared.
    """

    def __init__(self, message: str, core: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.core = core


class BackendNotFound(RposstError, LookupError):
    """No backend has this name."""


class BackendUnavailable(RposstError, ImportError):
    """A backend, a domain, a page, a picture, a log or a cluster needs a package that is not installed."""


class LicenceMissing(BackendUnavailable):
    """A solver has no licence here, or one that does not cover the problem."""


class Unsupported(RposstError):
    """A backend is asked for something that it cannot do."""


class BackendFailure(RposstError):
    """A backend broke its contract: its test is not one, or its bound is above the objective."""


class FalseClaim(BackendFailure):
    """A solver claims what cannot be: that a problem has no test, or tests as good as one likes."""


class RposstWarning(UserWarning):
    """What this package does with data that is usable, and may not mean what it seems to."""


def warn(message: str) -> None:
    """Warn at the line that called the package, wherever in the package the reason was found."""
    level, frame = 1, currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, RposstWarning, stacklevel=level - 1 if frame is None else level)


def check_installed(who_needs: str, packages: Sequence[str], *, extra: str) -> None:
    """Refuse to go on without packages, looked for without importing them; the extra is the one that installs them.

    >>> check_installed("a page needs", ["paper"], extra="pages")
    Traceback (most recent call last):
    rposst_opt.errors.BackendUnavailable: a page needs paper, which is not installed: pip install 'rposst-opt[pages]'
    """
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise BackendUnavailable(
            f"{who_needs} {' and '.join(missing)}, which {are} not installed: pip install 'rposst-opt[{extra}]'"
        )


def instance_of(kind: type, name: str, value: Kind) -> Kind:
    """The value of an argument, if it is of this kind."""
    if not isinstance(value, kind):
        raise ProblemError(f"`{name}` must be a {kind.__name__}, for instance one of rposst_opt's, got {value!r}.")
    return value


def closest(name: object, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, whatever its capitals; None if none is much like it.

    >>> closest("Exat", ["auto", "exact"]), closest("magic", ["auto", "exact"])
    ('exact', None)
    """
    in_small_letters = {each.lower(): each for each in known}
    found = get_close_matches(str(name).lower(), in_small_letters, n=1)
    return in_small_letters[found[0]] if found else None


# Words for one thing: of those that are known, the first is meant. They come before words that are spelt alike.
SAME_WORDS = (
    ("out", "csv", "output", "output-file", "out-file", "output-dir", "out-dir", "folder", "directory", "save"),
    ("backend", "backends", "solver", "solvers", "algorithm"),
    ("time-limit", "time-limit-seconds", "seconds", "minutes", "limit", "time", "timeout", "max-time", "max-seconds"),
    ("jobs", "n-jobs", "processes", "workers"),
    ("threads", "n-threads", "cores"),
    ("size", "sizes", "n-cases", "subset-size", "test-size"),
    ("force", "overwrite"),
    ("seed", "random-state", "random-seed"),
    ("require", "required-cases", "required", "include"),
    ("forbid", "forbidden-cases", "forbidden", "exclude"),
    ("tail-fraction", "tail", "alpha", "cvar"),
)
ALIKE = 0.75  # from which share of letters in common on a name of an option is a slip of the pen


def closest_option(name: str, known: Iterable[str]) -> str | None:
    """The known option or argument that is meant by this name: another word for it, or the same, misspelt.

    >>> closest_option("--solver", ["--scorer", "--backend"]), closest_option("--json", ["--n", "--noise"])
    ('--backend', None)
    >>> closest_option("time_limit", ["time_limit_seconds", "gap"]), closest_option("sise", ["size"])
    ('time_limit_seconds', 'size')
    """
    plain_name = _plain(name)
    by_plain = {_plain(each): each for each in known}
    for words in SAME_WORDS:
        meant = [word for word in words if word in by_plain] if plain_name in words else []
        if meant:
            return by_plain[meant[0]]
    found = get_close_matches(plain_name, by_plain, n=1, cutoff=ALIKE)
    return by_plain[found[0]] if found else None


def _plain(name: str) -> str:
    return name.lstrip("-").lower().replace("_", "-")


def check_arguments(who: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is none of an argument, as Python does, and say which one is meant.

    >>> check_arguments("agree", ["time_limit"], ["backends", "time_limit_seconds"])
    Traceback (most recent call last):
    TypeError: agree has no argument 'time_limit': did you mean 'time_limit_seconds'?
    """
    names = list(known)
    for name in given:
        if name not in names:
            meant = closest_option(name, names)
            asked = f". It has: {', '.join(names)}." if meant is None else f": did you mean {meant!r}?"
            raise TypeError(f"{who} has no argument {name!r}{asked}")


def names_arguments(function: Callable[Asked, Answer]) -> Callable[Asked, Answer]:
    """The same function, which answers an argument that it has not by the one that is meant."""
    known = list(signature(function).parameters)

    @wraps(function)
    def wrapper(*values: Asked.args, **given: Asked.kwargs) -> Answer:
        check_arguments(function.__name__, given, known)
        return function(*values, **given)

    return wrapper


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """A message about a name that is not known: what it may have meant, and all that are known.

    >>> unknown("backend", "exat", ["auto", "exact"])
    "unknown backend 'exat': did you mean 'exact'? Known: auto, exact."
    """
    names = list(known)
    meant = closest(name, names)
    asked = "." if meant is None else f": did you mean {meant!r}?"
    return f"unknown {what} {name!r}{asked} Known: {', '.join(names)}."
