"""Content of a message: text, null, or a list of parts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from turnmill.conversation import Json
from turnmill.dialects.calls import read_calls
from turnmill.dialects.recorded import Call
from turnmill.errors import Rejected, quote

MEDIA = ("image", "audio", "video", "file")
"""A part whose type names one of these is not text."""

TEXT_TYPES = ("text", "input_text", "output_text")


@dataclass(slots=True)
class Content:
    """What the content of one message holds."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    tools: Json = None


def read_content(value: Json, at: int, counts: Counter[str]) -> Content:
    """Content by kind; texts of several parts joined with nothing between.

    Raises:
        Rejected: `non-string-content`, `non-text-content`, `unknown-content-part`, or a call's fault.
    """
    if value is None:
        return Content()
    if isinstance(value, str):
        return Content(value)
    if not isinstance(value, list):
        raise Rejected("non-string-content", f"content is {quote(value)}; expected text", at=at)
    content = Content()
    for part in value:
        _add_part(content, part, at, counts)
    if len(value) > 1:
        counts["read/text-parts-joined"] += 1
    return content


def _add_part(content: Content, part: Json, at: int, counts: Counter[str]) -> None:
    if not isinstance(part, dict):
        raise Rejected("non-string-content", f"a content part is {quote(part)}; expected an object", at=at)
    kind = part.get("type")
    if kind in TEXT_TYPES:
        content.text += _part_text(part, at)
        if content.calls:
            counts["read/text-moved-before-calls"] += 1
    elif kind == "reasoning":
        content.reasoning += _part_text(part, at)
    elif kind == "tool_call":
        content.calls += read_calls(part.get("value", part.get("tool_call")), at, counts)
    elif kind == "tools":
        content.tools = part.get("value", part.get("tools"))
    elif any(medium in str(kind) for medium in MEDIA) or any(f"{medium}_url" in part for medium in MEDIA):
        raise Rejected("non-text-content", f"a content part is {quote(kind)}; turnmill reads text only", at=at)
    else:
        raise Rejected("unknown-content-part", f"a content part is of type {quote(kind)}", at=at)


def _part_text(part: dict[str, Json], at: int) -> str:
    text = part.get("text")
    if text is None:
        text = part.get("value")
    if not isinstance(text, str):
        raise Rejected("non-string-content", f"a {part['type']} part holds {quote(text)}; expected text", at=at)
    return text


def read_text(value: Json, what: str, at: int | None = None) -> str:
    """A plain text field, empty where it is null.

    Raises:
        Rejected: `non-string-content`.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Rejected("non-string-content", f"{what} is {quote(value)}; expected text", at=at)
    return value
