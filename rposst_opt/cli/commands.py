"""What does a command look like in help, and in whose words does it complain? Panels, and how Typer is told of them."""

import re
from collections.abc import Callable, Iterable
from copy import copy
from inspect import Parameter, Signature
from typing import Any

from typer.core import TyperCommand, TyperGroup

from rposst_opt.errors import RposstError

CHECKS = "What is checked"
SCORES = "The scores"
DRAWN = "The problems that are drawn"
PROBLEM = "The problem"
ROBUSTNESS = "Robustness"
RULES = "Rules for the choice"
TRIALS = "The trials"
READING = "Reading the table"
RUN = "The run"
OUTPUT = "Output"
PANELS = (CHECKS, SCORES, DRAWN, PROBLEM, ROBUSTNESS, RULES, TRIALS, READING, RUN, OUTPUT)  # as help shows them

OLD_NAMES = frozenset({"--export", "--seconds"})  # of options that have a better one; they are understood, not shown

# Arguments in Python whose option is called otherwise; the others have the same name, with dashes.
OPTION_OF = {"time_limit_seconds": "--time-limit", "required_cases": "--require", "forbidden_cases": "--forbid"}
ARGUMENT = re.compile(r"(?<!column )`([a-z_]+)`")


class Command(TyperCommand):
    """A command whose options stand in panels, and whose errors speak of options, not of arguments in Python."""

    def get_params(self, ctx: Any) -> Any:
        """Arguments and options, in the order of their panels."""
        return in_panels(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the line of usage; what must be given needs no braces around it."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show help, with options by the names that they have now; the command itself still knows all others."""
        shown = copy(self)
        shown.params = [_shortened(option) for option in self.params]
        super(Command, shown).format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RposstError as error:
            names = {option.name: option.opts[0] for option in self.params if option.opts[0].startswith("--")}
            error.args = (in_options(str(error), names), *error.args[1:])
            raise


class Group(TyperGroup):
    """Commands under one name; its flags are shown as those of commands are."""

    def get_params(self, ctx: Any) -> Any:
        """The options of the group itself."""
        return in_panels(super().get_params(ctx))


def in_panels(options: Iterable[Any]) -> list[Any]:
    """Options in the order of their panels, flags without a type beside them; what is written, and help, are output."""
    options = list(options)
    has_panels = any(_panel(option) in PANELS for option in options)
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""  # what every version of Typer shows in place of the type, where it is given
        if has_panels and _panel(option) is None and not {"--out", "--help"}.isdisjoint(option.opts):
            option.rich_help_panel = OUTPUT
    return sorted(options, key=lambda option: PANELS.index(_panel(option)) if _panel(option) in PANELS else -1)


def _panel(option: Any) -> str | None:
    return getattr(option, "rich_help_panel", None)


def _shortened(option: Any) -> Any:
    """An option without its old names, and with --x/--no-x in one: columns that are wide take the place of the text."""
    option = copy(option)
    if option.metavar is None and isinstance(getattr(option, "min", None), int):
        option.metavar = "<int>"  # the range stands beside it, and need not be announced
    option.opts = [name for name in option.opts if name == option.opts[0] or name not in OLD_NAMES]
    name = option.opts[0].removeprefix("--")
    if option.secondary_opts == [f"--no-{name}"]:
        option.opts, option.secondary_opts = [f"--[no-]{name}"], []
        if option.default is not None:
            option.default = name if option.default else f"no-{name}"
    return option


def in_options(message: str, options: dict[str, str]) -> str:
    """A message that names arguments in Python, with the options of a command in their place.

    >>> in_options("`top` must be positive; the column `top` is not.", {"top": "--top"})
    '--top must be positive; the column `top` is not.'
    """
    known = options | {argument: option for argument, option in OPTION_OF.items() if option in options.values()}
    return ARGUMENT.sub(lambda found: known.get(found[1], found[0]), message)


def with_parameters(wrapper: Callable[..., None], parameters: Iterable[Parameter]) -> Callable[..., None]:
    """The command with these parameters, as Typer reads them; arguments come in their order."""
    named = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    wrapper.__signature__ = Signature(named)  # type: ignore[attr-defined]  # read by Typer
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
    return wrapper
