"""One self-contained page: a template, its sections, their data as JSON, and all styles and scripts within it."""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import rposst_opt
from rposst_opt.errors import check_installed
from rposst_opt.reports.pages.sections import Section

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SHARED_SCRIPTS = ("measures.js", "charts.js")


def check_can_render() -> None:
    """Refuse to go on without what pages need."""
    check_installed("a page needs", ["plotly", "jinja2"], extra="pages")


def render(
    template: str,
    *,
    sections: Sequence[tuple[Section, Mapping[str, Any]]],
    data: Mapping[str, Any],
    **values: object,
) -> str:
    """Fill a template, and that of each section with what it shows; every value is text, whatever it contains."""
    check_can_render()
    return (
        _environment()
        .get_template(template)
        .render(
            sections=sections,
            data=inline_json(data),
            scripts=dict.fromkeys(
                [*SHARED_SCRIPTS, *(script for section, _ in sections for script in section.scripts)]
            ),
            asset=asset,
            plotly=_plotly(),
            version=rposst_opt.__version__,
            **values,
        )
    )


@functools.cache
def _environment() -> "Environment":
    """Where templates are found, and kept once they are compiled."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("rposst_opt.reports.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@functools.cache
def _plotly() -> "Markup":
    """Plotly's script, which is read from its package once."""
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())


def asset(name: str) -> "Markup":
    """A style sheet or a script of this package."""
    from markupsafe import Markup

    return Markup((files("rposst_opt.reports.pages") / "assets" / name).read_text("utf-8"))


def inline_json(data: Mapping[str, Any]) -> "Markup":
    """Data for a script element: no name in it can end the element, and numbers that JSON cannot say become null."""
    from markupsafe import Markup

    text = json.dumps(_finite(data), allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
