"""What can go wrong, as a caller sees it.

Every message names the thing, the rule, the value and the way out, on one line. A limit that was reached is an outcome
(`Solution.limit`), not an error.
"""


class RposstError(Exception):
    """The parent of every error that this package raises on purpose."""


class ProblemError(RposstError, ValueError):
    """The data or the options given do not make a problem."""


class BackendNotFound(RposstError, LookupError):
    """No backend has this name."""


class BackendUnavailable(RposstError, ImportError):
    """A backend, a domain or a cluster needs a package that is not installed."""


class Unsupported(RposstError):
    """A backend is asked for something that it cannot do."""


class BackendFailure(RposstError):
    """A backend broke its contract: its test is not one, or its bound is above the objective."""
