"""One colour a kind, the same in the terminal and in pages, and how text that came from data is made safe to show."""

from __future__ import annotations

import re
from typing import NamedTuple

from turnmill.rendered import Kind


class Colour(NamedTuple):
    """How a kind looks."""

    terminal: str
    """A rich style."""
    light: str
    """CSS background on a light page."""
    dark: str
    """CSS background on a dark page."""


COLOURS: dict[Kind, Colour] = {
    "frame": Colour("bright_black", "#e8e8ec", "#33333a"),
    "system": Colour("magenta", "#f1def6", "#4b2f55"),
    "user": Colour("blue", "#dbe8fd", "#253d66"),
    "tools": Colour("bright_magenta", "#fbe0ee", "#5a2a45"),
    "reasoning": Colour("yellow", "#fdf0c4", "#57480f"),
    "answer": Colour("green", "#d9f2d9", "#1f4d26"),
    "call": Colour("cyan", "#d0f1f2", "#124e52"),
    "result": Colour("bright_blue", "#dfe6ee", "#35465c"),
    "stop": Colour("red", "#fddcd6", "#62291f"),
    "scaffold": Colour("bright_black", "#f1efe6", "#423f33"),
}

MEANINGS: dict[Kind, str] = {
    "frame": "the template's own text",
    "system": "system and developer messages",
    "user": "the user's text",
    "tools": "tool definitions",
    "reasoning": "the assistant's reasoning",
    "answer": "the assistant's text",
    "call": "the assistant's tool calls",
    "result": "results of tools",
    "stop": "the token that ends a turn",
    "scaffold": "an empty block of the template",
}

_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, colour the terminal, or turn the direction of what follows."""


def showable(text: str) -> str:
    """The text with control and direction characters written out."""
    return _UNSHOWABLE.sub(lambda found: f"⟨{ord(found[0]):02X}⟩", text)
