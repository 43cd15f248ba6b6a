"""Reasoning of an assistant's message: in a field of its own, or in a think block that leads the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from turnmill.dialects.fields import Fields
from turnmill.dialects.recorded import Utterance
from turnmill.errors import Rejected, quote

REASONING_KEYS = ("reasoning_content", "reasoning", "thinking", "think")

NEWLINES = "\r\n"


class ThinkBlock(NamedTuple):
    """A text that began with a balanced think block."""

    reasoning: str
    """What stood inside, without newlines at its edges."""
    answer: str
    """What stood behind, without newlines before it."""


def closer(opener: str) -> str:
    """The closing tag of an opening one: `<think>` → `</think>`, `<|start_think|>` → `<|end_think|>`."""
    return opener.replace("start", "end") if "start" in opener else f"{opener[0]}/{opener[1:]}"


def split_think(text: str, openers: Sequence[str]) -> ThinkBlock | None:
    """The leading balanced think block of a text, None where there is none. Later blocks are text."""
    body = text.lstrip(NEWLINES)
    if not body.startswith(tuple(openers)):
        return None
    for opener in openers:
        if body.startswith(opener):
            end = _balanced_end(body, opener)
            if end is None:
                return None
            inside = body[len(opener) : end - len(closer(opener))]
            return ThinkBlock(inside.strip(NEWLINES), body[end:].lstrip(NEWLINES))
    return None


@lru_cache(maxsize=64)
def openers_and_closers(openers: tuple[str, ...]) -> tuple[str, ...]:
    """All tags of think blocks."""
    return (*openers, *map(closer, openers))


@lru_cache(maxsize=64)
def _tags(opener: str) -> re.Pattern[str]:
    return re.compile(f"({re.escape(opener)})|{re.escape(closer(opener))}")


def _balanced_end(body: str, opener: str) -> int | None:
    """Where the closer of the first opener ends, counting nested pairs."""
    depth = 0
    for tag in _tags(opener).finditer(body):
        depth += 1 if tag.group(1) else -1
        if depth == 0:
            return tag.end()
    return None


def reasoning_field(fields: Fields, at: int) -> str:
    """The reasoning recorded in a field of the message, empty where there is none.

    Raises:
        Rejected: `non-string-content`, or `reasoning-fields-disagree` where two fields differ.
    """
    found: dict[str, str] = {}
    for key in REASONING_KEYS:
        value = fields.take(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise Rejected("non-string-content", f"{key} is {quote(value)}; expected text", at=at)
        found[key] = value
    if len(set(found.values())) > 1:
        raise Rejected("reasoning-fields-disagree", f"{' and '.join(found)} hold different reasoning", at=at)
    return next(iter(found.values()), "")


def place_reasoning(utterance: Utterance, recorded: str, openers: Sequence[str], counts: Counter[str]) -> None:
    """Give an assistant's utterance its reasoning: the recorded field or part, else the leading think block."""
    block = split_think(utterance.text, openers)
    if block is not None:
        utterance.verbatim, utterance.text = utterance.text, block.answer
        if recorded:
            counts["read/think-block-beside-field"] += 1
    else:
        for tag in openers_and_closers(tuple(openers)):
            if tag in utterance.text:
                counts["read/think-tag-in-text"] += 1
                break
    reasoning = recorded or (block.reasoning if block else "")
    if reasoning.strip():
        utterance.reasoning = reasoning
    elif recorded or block:
        counts["read/empty-think"] += 1
