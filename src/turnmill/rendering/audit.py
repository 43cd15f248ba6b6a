"""A judge of spans that knows nothing of how they were made: the words of a conversation, who said them, and stops."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnmill.conversation import Conversation, Json, Message
from turnmill.errors import quote
from turnmill.rendering.form import leaves
from turnmill.rendering.markers import first_of, last_of

Range = tuple[int, int]
"""Characters [start, end)."""

_WORD = re.compile(r"\b[A-Z]\w{5,}")

TOOLS = -1
"""Who says the words of tool definitions."""


class Place(NamedTuple):
    """Where a word of a message stands in the text."""

    start: int
    end: int
    message: int
    """Index in `Conversation.messages`, or `TOOLS`."""


def faults_of(
    conversation: Conversation,
    text: str,
    trained: Sequence[Range],
    stops: tuple[str, ...],
    control: tuple[str, ...],
    *,
    is_open: bool = False,
) -> list[str]:
    """What is wrong with the trained characters of a render; empty where nothing is.

    Every word of a turn must train and no word of any other message. Behind a turn's last word it must train up to
    the first token of the generation eos set (where the template closes a turn by none of them: to a control token),
    and no further.

    Args:
        conversation: its words of six letters and more, the first a capital, tell its messages apart; a word that
            several messages say counts where the text has it as often.
        text: the render.
        trained: disjoint ranges of it, in order.
        stops: generation eos set.
        control: every control token of the template.
        is_open: whether the last turn may end without a stop.
    """
    places = sorted(_places(conversation, text))
    ranges = _joined(trained)
    faults = list(_word_faults(conversation, text, places, ranges))
    stretches = _stretches(conversation, places)
    for number, (low, high, after) in enumerate(stretches):
        is_last = number == len(stretches) - 1
        limit = len(text) if after is None else after
        fault = _end_fault(text, high, limit, ranges, stops, control)
        if fault and not (is_open and is_last and after is None):
            faults.append(f"{fault}, behind {quote(text[low:high])}")
    for start, end in ranges:
        if text[start:end] not in stops and not any(start < high and low < end for low, high, _ in stretches):
            faults.append(f"trains {quote(text[start:end])}, which no turn says")
    return faults


def _joined(ranges: Sequence[Range]) -> list[Range]:
    joined: list[Range] = []
    for start, end in ranges:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        elif start < end:
            joined.append((start, end))
    return joined


def _places(conversation: Conversation, text: str) -> Iterator[Place]:
    """Where each message's words stand, but for words that the text has not as often as several messages say them."""
    said: dict[str, list[int]] = defaultdict(list)
    for message, words in enumerate(map(_words, conversation.messages)):
        for word in words:
            said[word].append(message)
    for tool in conversation.tools:
        for word in (match for leaf in leaves(tool) if isinstance(leaf, str) for match in _WORD.findall(leaf)):
            said[word].append(TOOLS)
    names = {
        word for message in conversation.messages for word in _WORD.findall(message.recipient or message.name or "")
    }
    for word, messages in said.items():
        if word in names or (len(messages) > 1 and TOOLS in messages):
            continue
        found = [match.span() for match in re.finditer(re.escape(word), text)]
        if len(found) == len(messages):
            yield from (Place(*span, message) for span, message in zip(found, messages, strict=True))
        elif len(messages) == 1:
            yield from (Place(*span, messages[0]) for span in found)


def _words(message: Message) -> list[str]:
    texts: list[Json] = list(leaves(json.loads(message.text))) if message.is_call else [message.text]
    return [word for text in texts if isinstance(text, str) for word in _WORD.findall(text)]


def _is_turn(conversation: Conversation, message: int) -> bool:
    return message != TOOLS and conversation.messages[message].role == "assistant"


def _word_faults(
    conversation: Conversation, text: str, places: Sequence[Place], ranges: Sequence[Range]
) -> Iterator[str]:
    starts = [start for start, _ in ranges]
    for place in places:
        before = bisect_right(starts, place.start) - 1
        is_inside = before >= 0 and ranges[before][1] >= place.end
        is_touched = any(start < place.end and place.start < end for start, end in ranges)
        is_turn = _is_turn(conversation, place.message)
        if is_turn and not is_inside:
            yield f"does not train {quote(text[place.start : place.end])} of a turn"
        if not is_turn and is_touched:
            yield f"trains {quote(text[place.start : place.end])}, which no turn says"


def _stretches(conversation: Conversation, places: Sequence[Place]) -> list[tuple[int, int, int | None]]:
    """(start, end, start of the next foreign word) of the words of turns that no other message's word parts."""
    stretches: list[tuple[int, int, int | None]] = []
    is_inside = False
    for place in places:
        is_turn = _is_turn(conversation, place.message)
        if is_turn and is_inside:
            stretches[-1] = (stretches[-1][0], place.end, None)
        elif is_turn:
            stretches.append((place.start, place.end, None))
        elif is_inside:
            stretches[-1] = (*stretches[-1][:2], place.start)
        is_inside = is_turn
    return stretches


def _end_fault(
    text: str, end: int, limit: int, ranges: Sequence[Range], stops: tuple[str, ...], control: tuple[str, ...]
) -> str | None:
    """What is wrong with where the training of a turn ends, whose last word ends at `end`."""
    trained = next((high for low, high in ranges if low < end <= high), None)
    if trained is None:
        return None  # its last word does not train, which is a fault already
    found = first_of(text[:limit], stops, end)
    if found is not None:
        if trained == found[1]:
            return None
        return f"trains up to {quote(text[end:trained])}, not to the stop {text[found[0] : found[1]]!r}"
    closing = last_of(text[end:trained], control)
    if closing is not None and end + closing[1] == trained:
        return None
    return "trains no stop"
