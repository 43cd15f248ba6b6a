"""Harmony's wire text: `<|start|>HEADER<|message|>CONTENT<|end|>`, message after message.

A header is who speaks, ` to=RECIPIENT` behind the speaker or the channel, `<|channel|>CHANNEL`, and a content type
(`<|constrain|>json`). Format: https://cookbook.openai.com/articles/openai-harmony
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from turnmill.conversation import Json
from turnmill.errors import Rejected, quote

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
MARK = re.compile("|".join(map(re.escape, (START, CHANNEL, CONSTRAIN, MESSAGE, *ENDS))))

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
TO = "to="


def is_wire(value: Json) -> bool:
    """Whether a value is wire text: text that opens with a message's start."""
    return isinstance(value, str) and value.lstrip().startswith(START)


def read_wire(text: str) -> list[dict[str, Json]]:
    """The messages of a wire text as objects (role, name, channel, recipient, content).

    Raises:
        Rejected: `harmony-malformed`; `at` is the number of the message.
    """
    return list(_messages(text))


def _messages(text: str) -> Iterator[dict[str, Json]]:
    place, index = 0, 0
    while text[place:].strip():
        start = MARK.search(text, place)
        if start is None or start.group() != START or text[place : start.start()].strip():
            raise _malformed(f"{quote(text[place : place + 40])} stands between messages; expected {START}", index)
        body = _body(text, start.end(), index)
        message = _header(text[start.end() : body.start()], index)
        end = MARK.search(text, body.end())
        if end is None or end.group() not in ENDS:
            found = "the text ends" if end is None else end.group()
            raise _malformed(f"{found} inside a content; expected one of {' '.join(ENDS)}", index)
        if end.group() == "<|call|>" and "recipient" not in message:
            raise _malformed("<|call|> ends a message without recipient", index)
        yield message | {"content": text[body.end() : end.start()]}
        place, index = end.end(), index + 1


def _body(text: str, place: int, index: int) -> re.Match[str]:
    """Where the content begins."""
    for mark in MARK.finditer(text, place):
        if mark.group() == MESSAGE:
            return mark
        if mark.group() not in (CHANNEL, CONSTRAIN):
            raise _malformed(f"{mark.group()} inside a header; expected {MESSAGE}", index)
    raise _malformed(f"a header without {MESSAGE}", index)


def _header(header: str, index: int) -> dict[str, Json]:
    """Speaker, channel and recipient; a speaker that is no role is a tool."""
    typed = header.replace(CONSTRAIN, f" {CONSTRAIN}")
    before, channel, behind = typed.partition(CHANNEL)
    if CHANNEL in behind:
        raise _malformed(f"two channels in {quote(header)}", index)
    speaker, *words = before.split() or [""]
    on, *more = behind.split() or [""]
    if not speaker or (channel and not on):
        raise _malformed(f"no {'channel' if speaker else 'speaker'} in {quote(header)}", index)
    found: dict[str, Json] = {"role": speaker} if speaker in ROLES else {"role": "tool", "name": speaker}
    if on:
        found["channel"] = on
    recipients = [word.removeprefix(TO) for word in words + more if word.startswith(TO)]
    if len(recipients) > 1 or "" in recipients:
        raise _malformed(f"recipients in {quote(header)}; expected one", index)
    if recipients:
        found["recipient"] = recipients[0]
    content_types = [word.removeprefix(CONSTRAIN) for word in words + more if not word.startswith(TO)]
    if len([kind for kind in content_types if kind]) > 1:
        raise _malformed(f"{quote(header)} is no header; expected SPEAKER to=RECIPIENT", index)
    return found


def _malformed(message: str, index: int) -> Rejected:
    return Rejected("harmony-malformed", f"wire text: {message}", at=index)
