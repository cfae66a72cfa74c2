"""What do the texts of options say? Names, numbers and ranges with commas between them."""

from typing import TypeVar

from rposst_opt.errors import ProblemError

Number = TypeVar("Number", int, float)


def as_number(text: str) -> float | None:
    """The number that a text says, if it says one."""
    try:
        return float(text)
    except ValueError:
        return None


def listed(text: str) -> list[str]:
    """The names in an option that has commas between them."""
    return [name.strip() for name in text.split(",")]


def numbers(option: str, text: str, kind: type[Number]) -> list[Number]:
    """The numbers in an option that has commas between them."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise ProblemError(f"{option} must be numbers with commas between them, got {text!r}.") from None


def numbers_and_ranges(option: str, text: str) -> list[int]:
    """The whole numbers in an option such as ``1,2,5-8``, each once and ascending."""
    found: set[int] = set()
    for part in listed(text):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ProblemError(f"{option} must be whole numbers or ranges with commas between them, got {text!r}.")
        found.update(range(int(first), int(last if dash else first) + 1))
    if not found or min(found) < 1:
        raise ProblemError(f"{option} must name at least one number from 1 on, got {text!r}.")
    return sorted(found)
