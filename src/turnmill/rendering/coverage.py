"""The proof that a render says the whole conversation: every text, reasoning, call name and argument, by origin."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec

from turnmill.conversation import FUNCTIONS, Conversation, Json, Message
from turnmill.errors import Rejected, quote
from turnmill.rendering.form import Form, Written, leaves
from turnmill.rendering.segments import Segment

if TYPE_CHECKING:
    from turnmill.rendering.template import Dialog


Key = TypeVar("Key")


class Said:
    """What of each message reached the text."""

    def __init__(self, text: str, segments: Sequence[Segment]) -> None:
        self._text, self._segments = text, segments
        self._fields: dict[int, str] = {}
        self.tools = False
        for segment in segments:
            if segment.kind is not None:
                self._fields[segment.message] = (
                    self._fields.get(segment.message, "") + text[segment.start : segment.end]
                )
                self.tools |= segment.kind == "tools"

    @cached_property
    def _calls(self) -> dict[tuple[int, int], str]:
        return self._joined(lambda segment: (segment.entry, segment.call))

    @cached_property
    def _entries(self) -> dict[int, str]:
        return self._joined(lambda segment: segment.entry)

    def _joined(self, key_of: Callable[[Segment], Key]) -> dict[Key, str]:
        pieces: dict[Key, list[str]] = defaultdict(list)
        for segment in self._segments:
            pieces[key_of(segment)].append(self._text[segment.start : segment.end])
        return {key: "".join(parts) for key, parts in pieces.items()}

    def field(self, message: int) -> str:
        """All characters that come from a message's text."""
        return self._fields.get(message, "")

    def call(self, entry: int, number: int) -> str:
        """All characters written while a call was rendered, the template's included."""
        return self._calls.get((entry, number)) or self.entry(entry)

    def entry(self, entry: int) -> str:
        """All characters written while an entry was rendered."""
        return self._entries.get(entry, "")


class CoarseSaid(Said):
    """What of each message reached the text of its turn, or, of the others, what lies around the turns.

    Where only turns are told apart, a message's text must stand in its turn's.
    """

    def __init__(self, conversation: Conversation, text: str, segments: Sequence[Segment], written: Written) -> None:
        super().__init__(text, segments)
        self._texts = [message.text for message in conversation.messages]
        self._entry_of = {index: number for number, entry in enumerate(written.entries) for index in entry.messages}
        self._around = self.entry(-1)
        self.tools = bool(conversation.tools) and all(name in text for name in _tool_names(conversation.tools))

    def field(self, message: int) -> str:
        """The message's text, or what of it is there."""
        shown, own = self.entry(self._entry_of[message]) or self._around, self._texts[message]
        return own if own in shown else own.strip() if own.strip() in shown else ""

    def call(self, entry: int, number: int) -> str:
        """All characters of the turn."""
        return self.entry(entry)


def said_of(conversation: Conversation, dialog: Dialog) -> Said:
    """What of each message reached the text."""
    if dialog.is_coarse:
        return CoarseSaid(conversation, dialog.text, dialog.segments, dialog.written)
    return Said(dialog.text, dialog.segments)


def _tool_names(tools: Sequence[Json]) -> Iterator[str]:
    for tool in tools:
        if isinstance(tool, dict):
            function = tool.get("function", tool)
            yield str(function.get("name", "") if isinstance(function, dict) else "")


def check_coverage(conversation: Conversation, written: Written, form: Form, said: Said, counts: Counter[str]) -> None:
    """Count what the template trims or strips by policy; refuse what it loses.

    Raises:
        Rejected: `content-lost`, naming message and field; `turns-overlap`, a turn's text stands there twice.
    """
    last_turn = max((n for n, entry in enumerate(written.entries) if entry.role == "assistant"), default=-1)
    for number, entry in enumerate(written.entries):
        for index in entry.messages:
            message = conversation.messages[index]
            if message.is_call:
                _check_call(message, form, said, number, entry.calls.index(index))
            elif number in written.verbatim:
                if index == entry.messages[-1]:
                    original = msgspec.structs.replace(message, text=conversation.verbatim[message.recorded])
                    _check_text(original, "".join(map(said.field, entry.messages)), counts)
            elif message.channel == "analysis":
                _check_reasoning(message, said.field(index), number < last_turn, counts)
            else:
                _check_text(message, said.field(index), counts)
    if conversation.tools and not said.tools:
        counts["render/tools-unsaid"] += 1


def _check_text(message: Message, shown: str, counts: Counter[str]) -> None:
    if shown == message.text:
        return
    bare = message.text.strip()
    _check_once(message, shown)
    if bare in shown:
        if shown == bare or message.text not in shown:
            counts["render/trimmed"] += 1
        return
    if json.dumps(message.text, ensure_ascii=False) in shown or json.dumps(message.text) in shown:
        return
    raise _lost(message, "text", message.text)


def _check_once(message: Message, shown: str) -> None:
    bare = message.text.strip()
    if message.role == "assistant" and bare and shown.count(bare) > message.text.count(bare):
        what = "reasoning" if message.channel == "analysis" else "text"
        raise Rejected(
            "turns-overlap", f"the template writes the assistant's {what} twice: {quote(bare)}", at=message.recorded
        )


def _check_reasoning(message: Message, shown: str, is_history: bool, counts: Counter[str]) -> None:
    if not shown and is_history:
        counts["render/history-reasoning-stripped"] += 1
        return
    _check_once(message, shown)
    if message.text.strip() not in shown or not shown:
        raise _lost(message, "reasoning", message.text)
    if shown != message.text:
        counts["render/trimmed"] += 1


def _check_call(message: Message, form: Form, said: Said, entry: int, number: int) -> None:
    name = (message.recipient or "").removeprefix(FUNCTIONS)
    shown = said.call(entry, number)
    if name not in shown:
        shown = said.entry(entry)
    if name not in shown:
        raise _lost(message, "call name", name)
    if message.text in shown:
        return
    arguments = json.loads(message.text)
    if form.arguments == "text" or (arguments and str(arguments) in shown):
        raise _lost(message, "arguments as JSON", message.text)
    for part in [*_keys(arguments), *leaves(arguments)]:
        if not any(spelling in shown for spelling in _spellings(part)):
            raise _lost(message, "argument", str(part))


def _keys(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for item in value.values() for key in _keys(item))]
    return [key for item in value for key in _keys(item)] if isinstance(value, list) else []


def _spellings(leaf: Json) -> tuple[str, ...]:
    """How templates write a scalar of a call's arguments."""
    if isinstance(leaf, str):
        return leaf, leaf.strip(), json.dumps(leaf, ensure_ascii=False)[1:-1], json.dumps(leaf)[1:-1]
    return json.dumps(leaf), str(leaf)


def _lost(message: Message, field: str, value: str) -> Rejected:
    return Rejected(
        "content-lost",
        f"the template leaves out the {message.role}'s {field} {quote(value, 60)}",
        at=message.recorded if message.recorded >= 0 else None,
    )
