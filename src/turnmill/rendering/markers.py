"""What a template writes around turns, as the probe learned it: headers, think closers, stops, control tokens."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

TAG_LIKE = re.compile(
    r"<\|[^<>|\s]{1,64}\|>|<[|｜][^<>\n]{1,64}?[|｜]?>|<[^<>|\s]{1,64}\|>|</?[A-Za-z_][\w.:-]{0,63}>|\[/?[A-Z_]{2,32}\]"
)
"""Text shaped as a control token, for bare template files that come without a tokenizer."""


@dataclass(frozen=True, slots=True)
class Markers:
    """The template's own text that decides what of a turn the model writes."""

    headers: dict[str, str] = field(default_factory=dict)
    """Role before a turn → the header that opens it, the same in every turn and generation prompt."""
    think_close: str | None = None
    """What ends a reasoning block (`</think>`); None where the template says none."""
    stops: tuple[str, ...] = ()
    """Generation eos set, longest first."""
    control: tuple[str, ...] = ()
    """Control tokens that the template writes, longest first."""

    def header_length(self, literal: str, role_before: str) -> int:
        """Characters of a turn's leading literal that are its header."""
        shared = common_prefix(literal, self.headers.get(role_before, ""))
        plain = self.headers.get("user", "")
        if len(shared) < len(plain) and literal.startswith(plain):
            shared = plain
        return len(shared)


def common_prefix(first: str, second: str) -> str:
    """The longest shared beginning, cut back so that no tag is split."""
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    shared = first[:length]
    if length == len(first) or length == len(second):
        return shared
    opened = max(shared.rfind("<"), shared.rfind("["))
    closed = max(shared.rfind(">"), shared.rfind("]"))
    return shared[:opened] if opened > closed else shared


def first_of(text: str, tokens: tuple[str, ...], start: int = 0) -> tuple[int, int] | None:
    """(start, end) of the earliest of `tokens` in `text` from `start`; the longest where several begin together."""
    found = _any_of(tokens).search(text, start) if tokens else None
    return None if found is None else found.span()


@functools.cache
def _any_of(tokens: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(token) for token in sorted(tokens, key=len, reverse=True)))


def last_of(text: str, tokens: tuple[str, ...]) -> tuple[int, int] | None:
    """(start, end) of the last of `tokens` in `text`; the longest where several end together."""
    found = [(position + len(token), len(token)) for token in tokens if (position := text.rfind(token)) >= 0]
    if not found:
        return None
    end, length = max(found)
    return end - length, end
