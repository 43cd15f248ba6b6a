"""Phrases as patterns: `{a|b}` for one of several, case, white space and the form of apostrophes apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

LEAD_IN, WHOLE_LINE = "+ ", "= "
"""What begins a line of a list that is no plain phrase."""

_APOSTROPHES = str.maketrans("’‘ʼ＇", "''''")
_END = r"(?![a-z\u00df-\u024f\u0370-\u052f0-9_]|'s\b)"
"""No letter follows of a script that writes spaces."""
_PIECES = re.compile(r"\{(\w+)\}|[{|}]|\s+|[^{|}\s]+")


def plain(text: str) -> str:
    """The text as phrases are matched: case folded, one kind of apostrophe, single spaces; lines stay lines."""
    return re.sub(r"[^\S\n]+", " ", text.translate(_APOSTROPHES).casefold())


def pattern(phrase: str, names: Mapping[str, Iterable[str]] | None = None) -> str:
    """A phrase as a regular expression over `plain` text.

    Args:
        phrase: as a list has it.
        names: what `{name}` and the like stand for.

    Raises:
        ValueError: a brace is not closed, or a name stands for nothing that is known.
    """
    depth, found = 0, []
    for piece in _PIECES.finditer(plain(phrase.strip())):
        text, name = piece[0], piece[1]
        if name is not None:
            if names is None or name not in names:
                raise ValueError(f"{{{name}}} in the phrase {phrase!r} stands for nothing")
            found.append(_one_of(names[name]))
        elif text in "{}":
            depth += 1 if text == "{" else -1
            found.append("(?:" if text == "{" else ")")
        elif text == "|" and depth:
            found.append("|")
        else:
            found.append(" " if text.isspace() else re.escape(text))
        if depth < 0:
            break
    if depth:
        raise ValueError(f"the braces of the phrase {phrase!r} do not match")
    return "".join(found) + _END


def _one_of(names: Iterable[str]) -> str:
    longest_first = sorted(map(plain, names), key=len, reverse=True)
    return "(?:" + "|".join(map(re.escape, longest_first)) + ")" if longest_first else r"(?!)"


@lru_cache(maxsize=32)
def at_start(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Finds a text that begins with lead-ins, any number of them, and a phrase."""
    lead_ins = [pattern(phrase.removeprefix(LEAD_IN)) for phrase in phrases if phrase.startswith(LEAD_IN)]
    others = [pattern(phrase) for phrase in phrases if not phrase.startswith(LEAD_IN)]
    lead = f"(?:(?:{'|'.join(lead_ins)})[ \n]*)*" if lead_ins else ""
    return re.compile(rf"[\s\"'*_#]*{lead}(?:{'|'.join(others) or '(?!)'})")


@lru_cache(maxsize=32)
def at_sentence(phrases: tuple[str, ...], names: tuple[tuple[str, tuple[str, ...]], ...] = ()) -> re.Pattern[str]:
    """Finds a sentence that begins with a phrase, and a line that is one."""
    known = dict(names)
    lines = [pattern(phrase.removeprefix(WHOLE_LINE), known) for phrase in phrases if phrase.startswith(WHOLE_LINE)]
    others = [pattern(phrase, known) for phrase in phrases if not phrase.startswith(WHOLE_LINE)]
    begin = r"(?:\A|(?<=[\n.!?;:,。！？；，]))[ *_#-]*"
    line = rf"|^[ *_#-]*(?:{'|'.join(lines)})[ ]*$" if lines else ""
    return re.compile(rf"{begin}(?:{'|'.join(others) or '(?!)'}){line}", re.MULTILINE)
