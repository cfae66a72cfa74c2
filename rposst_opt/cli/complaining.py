"""What was wrong with the options? Typer's own errors, in words that name the option, the value and the way out."""

import re
from typing import Any

from rposst_opt.cli.commands import OLD_NAMES
from rposst_opt.errors import closest, closest_option

CHOICES = re.compile(r"'(?P<value>.*?)' is not one of (?P<choices>'.*')")


def in_our_words(error: Any) -> str:
    """What one of Typer's errors says; how it is made differs between its versions, so that little is asked of it."""
    context = getattr(error, "ctx", None)
    if hasattr(error, "possibilities"):
        return _no_such_option(error.option_name, context)
    option = getattr(error, "param", None)
    message = str(error.format_message())
    if option is None:
        if context is None or message.endswith("?"):
            return message
        return f"{message.rstrip('.')}. See `{context.command_path} --help`."
    name = option.opts[0] if option.opts[0].startswith("-") else option.metavar or option.name
    if message.startswith("Missing"):
        return f"{name} is missing. {option.help or ''}"
    return _wrong_value(name, error)


def _no_such_option(name: str, context: Any) -> str:
    """There is no such option; if one is meant by it, that is named."""
    options = [] if context is None else context.command.get_params(context)
    names = [each for option in options for each in (*option.opts, *option.secondary_opts) if each.startswith("-")]
    meant = closest_option(name, [each for each in names if each not in OLD_NAMES])
    if meant is not None:
        return f"there is no option {name}: did you mean {meant}?"
    return f"there is no option {name}." + ("" if context is None else f" See `{context.command_path} --help`.")


def _wrong_value(name: str, error: Any) -> str:
    """What an option must be, and what it was."""
    chosen = CHOICES.search(error.message)
    if chosen is not None:
        choices = re.findall(r"'([^']*)'", chosen["choices"])
        meant = closest(chosen["value"], choices)
        asked = "." if meant is None else f": did you mean {meant}?"
        return f"{name} must be one of {', '.join(choices)}, got {chosen['value']!r}{asked}"
    details = getattr(error.__cause__, "errors", None)
    if details is None:
        return f"{name}: {error.message}"
    rule = error.message.split(", unable")[0].replace("Input should be", "must be")
    return f"{name} {rule}, got {details()[0].get('input')!r}."
