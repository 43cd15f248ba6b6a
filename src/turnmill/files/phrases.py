"""Phrase lists: those shipped with turnmill, and files of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from turnmill.errors import UnknownName, UsageError

SHIPPED = Path(__file__).parents[1] / "data" / "phrases"


@cache
def shipped(name: str) -> tuple[str, ...]:
    """The phrases of a shipped list: `names`, or `refusals/en`."""
    return phrases_of((SHIPPED / f"{name}.txt").read_text("utf-8"))


def shipped_languages(kind: str, languages: Iterable[str]) -> tuple[str, ...]:
    """The phrases of a kind in some languages, in order.

    Raises:
        UnknownName: no list is shipped for a language.
    """
    known = sorted(path.stem for path in (SHIPPED / kind).glob("*.txt"))
    for language in languages:
        if language not in known:
            raise UnknownName("language of phrase lists", language, known, next_step="turnmill config schema")
    return tuple(phrase for language in languages for phrase in shipped(f"{kind}/{language}"))


def phrases_of(text: str) -> tuple[str, ...]:
    """The phrases of a list, without empty lines and notes."""
    lines = (line.strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not (line == "#" or line.startswith("# ")))


def read_phrases(path: str) -> tuple[str, ...]:
    """The phrases of a file.

    Raises:
        UsageError: it cannot be read as UTF-8 text.
    """
    try:
        return phrases_of(Path(path).read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"cannot read the phrases of {path!r}: {problem}", next_step=f"ls -l {path}") from problem
