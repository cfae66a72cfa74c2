"""How text reaches a terminal: consoles that leave names as they are."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def console(*, stderr: bool = False) -> "Console":
    """A console on standard output or standard error."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=False)


def plain(value: object) -> Any:
    """Text that a terminal shows as it is: no markup, no control characters."""
    from rich.text import Text

    text = str(value)
    printable = all(character.isprintable() or character == "\n" for character in text)
    return Text(text if printable else repr(text)[1:-1])
