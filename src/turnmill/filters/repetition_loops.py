"""Texts that say the same again and again: a model that got stuck, and would teach it."""

from __future__ import annotations

import re
from typing import NamedTuple

from turnmill.conversation import Checked
from turnmill.errors import Rejected, quote
from turnmill.filters import row_filter
from turnmill.filters.answers import without_code
from turnmill.options import Filter

_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+|[^\w\s]|_")
"""Words, signs, and characters of scripts without spaces."""
_REPEATED_WORDS = 3
"""So many words that came before begin a loop."""


class Loop(NamedTuple):
    """A stretch of a text that repeats one piece without a break."""

    piece: str
    repeats: int
    characters: int


@row_filter("repetition-loops")
def repetition_loops(conversation: Checked, options: Filter) -> Rejected | None:
    """Refuse a conversation whose assistant repeats the same words many times in a row, code apart."""
    bounds = options.repetition_loops
    for message in conversation.messages:
        if message.role != "assistant" or message.is_call or message.weight == 0:
            continue
        loop = longest_loop(without_code(message.text), bounds.min_repeats, bounds.min_characters)
        if loop is not None:
            what = (
                f"{quote(loop.piece, 60)} stands {loop.repeats:,} times in a row, over {loop.characters:,} characters"
            )
            return Rejected("repetition-loops", what, at=message.recorded)
    return None


def longest_loop(text: str, min_repeats: int, min_characters: int) -> Loop | None:
    """The longest loop of words in a text, None where none is long enough; one pass over its words.

    Only pieces with letters count: rules, tables and rows of zeros are meant.
    """
    words = list(_WORDS.finditer(text)) if len(text) >= min_characters else []
    last: dict[tuple[str, ...], int] = {}
    best: Loop | None = None
    start = period = 0
    for number in range(len(words) - _REPEATED_WORDS + 1):
        gram = tuple(word[0] for word in words[number : number + _REPEATED_WORDS])
        found = number - last.get(gram, number)
        last[gram] = number
        if found == 0 or found != period:
            start, period = number - found, found
            continue
        end = number + _REPEATED_WORDS
        characters = words[end - 1].end() - words[start].start()
        repeats = (end - start) // period
        if repeats >= min_repeats and characters >= min_characters and (best is None or characters > best.characters):
            piece = text[words[start].start() : words[start + period - 1].end()]
            best = Loop(piece, repeats, characters) if re.search(r"[^\W\d_]{2}|[\u3040-\uffff]", piece) else best
    return best
