"""What do all pictures have in common? Colours, dashes and markers, the style of axes, and how names are drawn.

Colours are those of Okabe and Ito, which people of all colour vision can tell apart.
"""

import io
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
import pandas as pd

from rposst_opt.arrays import FloatArray
from rposst_opt.reports import check_can_draw

try:
    from matplotlib import rc_context, rcParams
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties, findfont, get_font
except ModuleNotFoundError:
    check_can_draw()
    raise

BLACK = "#000000"
ORANGE = "#E69F00"
SKY_BLUE = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#8a8a8a"

STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "svg.hashsalt": "rposst-opt",  # the same names inside the file whenever it is drawn
    "svg.fonttype": "none",
    "text.parse_math": False,  # names come from users, and a dollar sign in them is a dollar sign
    "text.usetex": False,
}

WIDTH = 7.0  # inches
LONGEST_NAME = 26  # letters
WIDE = 20  # an axis that spans more than this factor is logarithmic

COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE, BLACK)
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1)), (0, (8, 2, 1, 2)), (0, (4, 1, 1, 1, 1, 1)))
MARKERS = "os^DvPX"
BESIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False}

SCREEN_DPI = 96
FINER = 2  # than a screen's dots: letters stay sharp on screens that have more of them

Parameters = ParamSpec("Parameters")


class Picture(Figure):
    """A figure that a notebook shows as a picture, also where nobody has imported pyplot."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture, and how large it is to be shown."""
        width, height = (round(float(inches) * SCREEN_DPI) for inches in self.get_size_inches())
        png = io.BytesIO()
        self.savefig(png, format="png", dpi=SCREEN_DPI * FINER)
        return png.getvalue(), {"width": width, "height": height}


def in_style(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Have a picture drawn in our style, and leave matplotlib as it was."""

    @wraps(draw)
    def drawn(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with rc_context(STYLE):
            figure = draw(*args, **kwargs)
            figure.draw_without_rendering()  # ticks are made when they are first drawn, and take their style then
            return figure

    return drawn


def short(name: str) -> str:
    """A user's name as it can be drawn: on one line, in letters that the font has, and not too long."""
    fonts = [get_font(findfont(FontProperties(family=[family]))) for family in rcParams["font.family"]]
    line = " ".join(str(name).split()) or "(no name)"
    kept = line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"
    return "".join(letter if any(font.get_char_index(ord(letter)) for font in fonts) else "□" for letter in kept)


def numbers(table: pd.DataFrame, column: str) -> FloatArray:
    """A column with NaN, which leaves a gap in a line, in place of infinity, which would stretch the axis."""
    values = table[column].to_numpy(dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)
