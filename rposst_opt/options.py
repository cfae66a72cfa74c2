"""Checks of what backends take as options."""

from rposst_opt.errors import ProblemError

MOST = 10**9  # of rounds, threads or samples: beyond it somebody has mistyped


def check_counts(**options: int | None) -> None:
    """Refuse whatever is not a whole number from 1 on; None is an option that was not given."""
    for name, number in options.items():
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST:
            raise ProblemError(f"`{name}` must be a whole number from 1 to {MOST:,}, got {number!r}.")
