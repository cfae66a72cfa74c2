"""Names must be there, differ from each other, and be those that are expected."""

from collections import Counter
from collections.abc import Sequence

from rposst_opt.errors import ProblemError


def check_names(where: str, kind: str, names: Sequence[str], hint: str = "") -> None:
    """Refuse names that are empty or not unique; `kind` is what they name, and `hint` what repeated names may mean."""
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise ProblemError(f"{where}: every {kind} must have a name, and number {number} has none.")
    if len(set(names)) < len(names):
        repeated = next(name for name, count in Counter(names).items() if count > 1)
        raise ProblemError(f"{where}: the {kind} {repeated!r} is there more than once: names must differ.{hint}")


def check_same_names(where: str, kind: str, names: Sequence[str], expected: Sequence[str]) -> None:
    """Refuse names that lack one that is expected, or that have another."""
    there, wanted = set(names), set(expected)
    missing = [name for name in expected if name not in there]
    surplus = [name for name in names if name not in wanted]
    if missing:
        raise ProblemError(f"{where}: the {kind} {missing[0]!r} is missing ({len(missing)} of {len(expected)} are).")
    if surplus:
        raise ProblemError(f"{where}: there is no {kind} {surplus[0]!r} in this problem: remove it.")
