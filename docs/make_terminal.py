"""Film a terminal: run the commands below on a small table, and show them with what they print in docs/terminal.svg.

Run ``python docs/make_terminal.py`` after a change to what the commands print. The film is one SVG file that moves by
style sheets alone; where nothing moves, it shows the scene `STILL`. Its description has all of it as text.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

FILM = Path(__file__).with_name("terminal.svg")
COMMANDS = (
    "rposst sample --out results.csv --new-out new_models.csv",
    "rposst solve results.csv --size 4 --offset --error-bars --out test.json",
    "rposst score test.json new_models.csv",
)
STILL = 1
PROMPT = "$ "
COLUMNS = 100

# A bar is gone when its run is over, so a film that shows what is left has none.
BAR = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h(?:\r|\x1b\[1A|\x1b\[2K)*", flags=re.DOTALL)
THEME = TerminalTheme((22, 27, 34), (214, 220, 228), [(120, 120, 120)] * 8)
PROMPT_STYLE, COMMAND_STYLE = "bold #7ee787", "bold #ffffff"

# Sizes in pixels, as rich has them: letters of 20 pixels, 0.61 as wide as high.
LETTER, LINE, MARGIN, BAR_HEIGHT = 20 * 0.61, 20 * 1.22, 16, 34
PARTS = "<!-- part -->"
LETTER_SECONDS, LINE_SECONDS, ENTER_SECONDS, READING_SECONDS, END_SECONDS = 0.05, 0.05, 0.5, 1.5, 0.4
SECONDS_TO_READ_A_LINE = 0.35


@dataclass(frozen=True)
class Scene:
    """A command and the lines that it prints, with their looks."""

    command: str
    lines: tuple[Text, ...]

    @property
    def typing_seconds(self) -> float:
        """How long somebody types."""
        return len(self.command) * LETTER_SECONDS

    @property
    def seconds(self) -> float:
        """How long the scene is shown."""
        reading = READING_SECONDS + SECONDS_TO_READ_A_LINE * len(self.lines)
        return self.typing_seconds + ENTER_SECONDS + LINE_SECONDS * len(self.lines) + reading + END_SECONDS

    @property
    def text(self) -> str:
        """All of it as plain text."""
        return "\n".join([PROMPT + self.command, *(line.plain.rstrip() for line in self.lines)])


def play(commands: Sequence[str], folder: Path) -> list[Scene]:
    """Run commands in a folder, one after the other, as a terminal of this width shows them."""
    source = str(Path(__file__).parent.parent)
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "TERM": "xterm", "PYTHONPATH": source}
    scenes = []
    for command in commands:
        arguments = [sys.executable, "-m", "rposst_opt", *command.split()[1:]]
        ran = subprocess.run(
            arguments, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        printed = Text.from_ansi(BAR.sub("", ran.stdout.decode()).rstrip())
        scenes.append(Scene(command, tuple(printed.wrap(_screen(), COLUMNS))))
    return scenes


def _screen() -> Console:
    return Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")


def film(scenes: Sequence[Scene]) -> str:
    """The scenes as one SVG file that shows them in turn, for ever."""
    total = sum(scene.seconds for scene in scenes)
    width = 2 * MARGIN + COLUMNS * LETTER
    height = BAR_HEIGHT + 2 * MARGIN + LINE * (1 + max(len(scene.lines) for scene in scenes))
    shown, styles, begin = [], [], 0.0
    for number, scene in enumerate(scenes):
        style, body = _drawn(number, scene)
        shown.append(body)
        styles += [style, _motion(number, scene, begin, total)]
        begin += scene.seconds
    dots = "".join(f'<circle cx="{MARGIN + 6 + 20 * place}" cy="18" r="6" fill="#3b434d"/>' for place in range(3))
    words = html.escape("\n\n".join(scene.text for scene in scenes), quote=False)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">
<title>{len(scenes)} commands of rposst and what they print</title>
<desc>{words}</desc>
<style>
text {{ font: 20px "DejaVu Sans Mono", "Fira Code", Menlo, Consolas, monospace; white-space: pre; }}
.scene, .cover, .cursor {{ opacity: 0; }}
#scene-{STILL} {{ opacity: 1; }}
{"".join(styles)}@media (prefers-reduced-motion: reduce) {{ .scene, .cover, .cursor {{ animation: none !important; }} }}
</style>
<rect width="100%" height="100%" rx="8" fill="{THEME.background_color.hex}"/>
{dots}
{"".join(shown)}</svg>
"""


def _drawn(number: int, scene: Scene) -> tuple[str, str]:
    """The style sheet and the picture of a scene, with covers that slide away from what is not yet typed or printed."""
    console = _screen()
    console.print(Text.assemble((PROMPT, PROMPT_STYLE), (scene.command, COMMAND_STYLE)))
    for line in scene.lines:
        console.print(line, overflow="crop", no_wrap=True)
    exported = console.export_svg(
        theme=THEME,
        code_format=f"{{styles}}{PARTS}{{backgrounds}}{{matrix}}{PARTS}{{lines}}",
        font_aspect_ratio=LETTER / 20,
        unique_id=f"s{number}",
    )
    styles, picture, clips = exported.split(PARTS)
    typed, ground = len(PROMPT) * LETTER, THEME.background_color.hex
    rest, below = COLUMNS * LETTER - typed, LINE * len(scene.lines)
    body = f"""<g class="scene" id="scene-{number}" transform="translate({MARGIN} {BAR_HEIGHT + MARGIN})">
<defs>{clips}</defs>
{picture}
<svg x="{typed:.1f}" width="{rest:.1f}" height="{LINE + 2:.1f}">
<rect class="cover" id="typing-{number}" width="100%" height="100%" fill="{ground}"/>
<rect class="cursor" id="cursor-{number}" y="2" width="{LETTER:.1f}" height="{LINE - 2:.1f}" fill="#d6dce4"/></svg>
<svg y="{LINE + 1:.1f}" width="100%" height="{below:.1f}">
<rect class="cover" id="printing-{number}" width="100%" height="100%" fill="{ground}"/></svg>
</g>
"""
    return re.sub(r"\n\s*", "\n", styles) + "\n", body


def _motion(number: int, scene: Scene, begin: float, total: float) -> str:
    """When a scene is shown, and when its covers slide."""
    letters, lines = len(scene.command), len(scene.lines)
    entered = begin + scene.typing_seconds + ENTER_SECONDS
    printed, over = entered + LINE_SECONDS * lines, begin + scene.seconds - END_SECONDS

    def at(seconds: float) -> str:
        return f"{100 * seconds / total:.3f}%"

    hidden, visible = "opacity: 0", "opacity: 1"
    away, down = f"transform: translateX({letters * LETTER:.1f}px)", f"transform: translateY({lines * LINE:.1f}px)"
    start, typed = at(begin), at(begin + scene.typing_seconds)
    steps = "animation-timing-function: steps"
    frames = {
        "scene": f"0% {{ {hidden} }} {start} {{ {visible} }} {at(over)}, 100% {{ {hidden} }}",
        "typing": f"0%, {start} {{ {visible}; transform: none; {steps}({letters}) }} {typed}, {at(entered)} "
        f"{{ {visible}; {away} }} {at(entered + 0.01)}, 100% {{ {hidden}; {away} }}",
        "printing": f"0%, {at(entered)} {{ {visible}; transform: none; {steps}({lines}) }} {at(printed)} "
        f"{{ {visible}; {down} }} {at(printed + 0.01)}, 100% {{ {hidden}; {down} }}",
    }
    rules = [f"@keyframes {name}-{number} {{ {frame} }}\n" for name, frame in frames.items()]
    rules += [f"#{name}-{number} {{ animation: {name}-{number} {total:.2f}s step-end infinite; }}\n" for name in frames]
    rules += [f"#cursor-{number} {{ animation: typing-{number} {total:.2f}s step-end infinite; }}\n"]
    return "".join(rules)


def main() -> None:
    """Run the commands in an empty folder, and write the film."""
    with tempfile.TemporaryDirectory() as folder:
        scenes = play(COMMANDS, Path(folder))
    FILM.write_text(film(scenes), encoding="utf-8")


if __name__ == "__main__":
    main()
