"""The film of the terminal shows what its commands print."""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from commands import Run

from docs.make_terminal import COLUMNS, COMMANDS, FILM, PROMPT

SVG = "{http://www.w3.org/2000/svg}"
MOST_BYTES = 300_000


def words(text: str) -> Counter[str]:
    """What is said, however it is wrapped, and however long it took."""
    return Counter(re.sub(r"\b[\d.]+ m?s\b", "… s", text).split())


def test_the_film_shows_what_the_commands_print(rposst: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    described = ElementTree.parse(FILM).findtext(f"{SVG}desc")
    assert described is not None
    scenes = re.split(rf"^{re.escape(PROMPT)}", described, flags=re.MULTILINE)[1:]
    assert [scene.splitlines()[0] for scene in scenes] == list(COMMANDS)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    for command, scene in zip(COMMANDS, scenes, strict=True):
        printed = rposst(*command.split()[1:])
        assert printed.code == 0
        assert words(printed.err + printed.out) == words(scene.removeprefix(command))


def test_the_film_is_small_and_asks_for_nothing_else() -> None:
    text = FILM.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text) and "prefers-reduced-motion" in text
