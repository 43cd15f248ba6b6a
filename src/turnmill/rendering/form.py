"""How a conversation is written down for a template: the `messages` list it is given, and who wrote each part of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from turnmill.contract.definitions import enveloped
from turnmill.conversation import FUNCTIONS, Conversation, Json, Message
from turnmill.errors import Rejected
from turnmill.rendered import Kind
from turnmill.rendering.trace import Origin, Owner, Trace

TURN_JOINER = "\n\n"
"""Between texts of one turn, or of several system messages, where the template takes only one."""

CALL_ID_WIDTH = 9
"""Characters of a made call id: letters and digits alone, as the strictest templates (Mistral's) ask."""


@dataclass(frozen=True, slots=True)
class Form:
    """The way of writing a conversation that survives a template: what `probe` learns."""

    arguments: Literal["object", "text"] = "object"
    """A call's arguments as an object or as JSON text."""
    empty_content: bool = True
    """A turn of calls alone has the content "", rather than none."""
    developer: bool = True
    """The template knows the role developer; else it is written as system."""
    several_systems: bool = True
    """The template takes several system messages; else they are joined."""
    reasoning: bool = True
    """The template says reasoning; else a turn is written with its recorded text, think block included."""
    parts: bool = False
    """A text is a list of one text part, as templates of vision models take it."""
    bare_tools: bool = True
    """Tool definitions recorded without the `function` wrapper are written so; else they are wrapped."""


@dataclass(slots=True)
class Entry:
    """One message as the template sees it, made of one or several of the conversation's."""

    role: str
    messages: list[int]
    """Indices in `Conversation.messages`."""
    recorded: int
    """Recorded index of its last message: whose header and stop it is."""
    calls: list[int] = field(default_factory=list)
    """Indices of the messages that are its calls."""


@dataclass(slots=True)
class Written:
    """A conversation written down for a template."""

    entries: list[Entry]
    dicts: list[dict[str, Any]]
    tools: list[Json] | None
    verbatim: frozenset[int] = frozenset()
    """Entries written with their recorded text, think block included."""


def entries_of(conversation: Conversation, form: Form, counts: Counter[str]) -> list[Entry]:
    """The messages grouped as a template takes them: a run of assistant messages is one turn.

    Raises:
        Rejected: `turn-not-representable`, an order within a turn that no template keeps.
    """
    entries: list[Entry] = []
    for index, message in enumerate(conversation.messages):
        role = _role(message, form, counts)
        joins = role == "assistant" or (role == "system" and not form.several_systems)
        if entries and entries[-1].role == role and joins:
            entries[-1].messages.append(index)
            entries[-1].recorded = message.recorded
        else:
            entries.append(Entry(role, [index], message.recorded))
        if message.is_call:
            entries[-1].calls.append(index)
    for entry in entries:
        _check_order(conversation, entry)
        if entry.role == "system" and len(entry.messages) > 1:
            counts["render/systems-joined"] += 1
    return entries


def _role(message: Message, form: Form, counts: Counter[str]) -> str:
    if message.role == "developer" and not form.developer:
        counts["render/developer-as-system"] += 1
        return "system"
    return message.role


def rank(message: Message) -> int:
    """Where in a turn a message stands: reasoning, text, calls."""
    return 2 if message.is_call else 0 if message.channel == "analysis" else 1


def _check_order(conversation: Conversation, entry: Entry) -> None:
    """Templates print reasoning, then text, then calls: another order would train another turn than was recorded."""
    if entry.role != "assistant" or len(entry.messages) == 1:
        return
    previous = 0
    for index in entry.messages:
        message = conversation.messages[index]
        place = rank(message)
        if place < previous:
            names = ("reasoning", "text", "calls")
            raise Rejected(
                "turn-not-representable",
                f"{names[place]} after {names[previous]} in one turn: templates print reasoning, text, calls",
                at=message.recorded,
            )
        previous = place


def function_name(message: Message) -> str:
    """The function that a call is to, or that a result is of."""
    return ((message.recipient if message.is_call else message.name) or "").removeprefix(FUNCTIONS)


def tool_as_written(tool: Json, form: Form) -> Json:
    """A tool's definition as the template takes it; the same object where it is as recorded."""
    if not isinstance(tool, dict) or "function" in tool or (form.bare_tools and "input_schema" not in tool):
        return tool
    return enveloped(tool)


class Writer:
    """Writes one conversation down; with a trace, every string knows its message and field."""

    def __init__(
        self, conversation: Conversation, form: Form, trace: Trace | None, counts: Counter[str], *, is_read: bool
    ) -> None:
        self._conversation, self._form, self._trace, self._counts = conversation, form, trace, counts
        self._is_read = is_read
        self._entry = -1
        self._call_number = 0
        self._open_ids: list[str] = []
        self._verbatim: set[int] = set()

    def write(self, entries: list[Entry]) -> Written:
        """The entries as a template's `messages`, and its `tools`."""
        dicts = []
        for number, entry in enumerate(entries):
            self._entry = number
            written = self._dict(entry)
            dicts.append(self._in_parts(written) if self._form.parts else written)
            if self._trace is not None:
                self._trace.own(dicts[-1], Owner(number))
        tools = [self._wrapped(self._tool(tool), "tools", -1, entry=-1) for tool in self._conversation.tools] or None
        if tools and self._trace is not None:
            self._trace.know(tools, Origin(Owner(), "tools"))
        return Written(entries, dicts, tools, frozenset(self._verbatim))

    def _in_parts(self, written: dict[str, Any]) -> dict[str, Any]:
        if "content" in written:
            written["content"] = [{"type": "text", "text": written["content"]}]
        return written

    def _tool(self, tool: Json) -> Json:
        written = tool_as_written(tool, self._form)
        if written is not tool:
            self._counts["render/tools-wrapped"] += 1
        return written

    def _wrapped(self, value: Any, kind: Kind, message: int, *, entry: int | None = None, call: int = -1) -> Any:
        if self._trace is None:
            return value if self._is_read or type(value) is str else _plain(value)
        owner = Owner(self._entry if entry is None else entry, call)
        return self._trace.wrap(value, Origin(owner, kind, message))

    def _dict(self, entry: Entry) -> dict[str, Any]:
        first = self._conversation.messages[entry.messages[0]]
        if entry.role == "assistant":
            return self._assistant(entry)
        if entry.role == "tool":
            return self._result(entry.messages[0], first)
        kind: Kind = "user" if entry.role == "user" else "system"
        written = {"role": entry.role, "content": self._texts(entry.messages, kind)}
        if first.name is not None:
            written["name"] = first.name
        return written

    def _texts(self, indices: list[int], kind: Kind) -> Any:
        """The texts of one kind, joined by a blank line that belongs to the later one."""
        text: Any = None
        for index in indices:
            piece = self._wrapped(self._conversation.messages[index].text, kind, index)
            if text is not None:
                self._counts["render/texts-joined"] += 1
            text = piece if text is None else text + self._wrapped(TURN_JOINER, kind, index) + piece
        return text

    def _assistant(self, entry: Entry) -> dict[str, Any]:
        messages = self._conversation.messages
        reasoning = [index for index in entry.messages if messages[index].channel == "analysis"]
        texts = [index for index in entry.messages if rank(messages[index]) == 1]
        written: dict[str, Any] = {"role": "assistant"}
        if reasoning and not self._form.reasoning:
            written["content"] = self._verbatim_text(entry, reasoning)
        elif texts:
            written["content"] = self._texts(texts, "answer")
        elif not entry.calls or self._form.empty_content:
            written["content"] = ""
        if reasoning and self._form.reasoning:
            written["reasoning_content"] = self._texts(reasoning, "reasoning")
            written = {"thinking": written["reasoning_content"], **written}
        if names := [messages[index].name for index in entry.messages if messages[index].name]:
            written["name"] = names[-1]
        if entry.calls:
            written["tool_calls"] = [self._call(index, number) for number, index in enumerate(entry.calls)]
        return written

    def _verbatim_text(self, entry: Entry, reasoning: list[int]) -> Any:
        """A turn's recorded text, think block included: for a template that cannot say reasoning."""
        recorded = self._conversation.messages[reasoning[0]].recorded
        original = self._conversation.verbatim.get(recorded)
        if original is None or len({self._conversation.messages[i].recorded for i in entry.messages}) > 1:
            raise Rejected(
                "reasoning-unsayable",
                "the template cannot say reasoning, and the row has no recorded text with a think block",
                at=recorded,
            )
        self._counts["render/reasoning-verbatim"] += 1
        self._verbatim.add(self._entry)
        answer = self._conversation.messages[entry.messages[-1]].text if not entry.calls else ""
        block = original.removesuffix(answer) if answer else original
        written = self._wrapped(block, "reasoning", reasoning[0])
        return written + self._wrapped(answer, "answer", entry.messages[-1]) if block != original else written

    def _call(self, index: int, number: int) -> dict[str, Any]:
        message = self._conversation.messages[index]
        name = function_name(message)
        arguments: Json = json.loads(message.text) if self._form.arguments == "object" else message.text
        made_id = f"call{self._call_number:0{CALL_ID_WIDTH - 4}d}"
        self._call_number += 1
        self._open_ids.append(made_id)
        function = {
            "name": self._wrapped(name, "call", index, call=number),
            "arguments": self._wrapped(arguments, "call", index, call=number),
        }
        call = {"id": made_id, "type": "function", "function": function}
        if self._trace is not None:
            owner = Owner(self._entry, number)
            for container in (call, function):
                self._trace.know(container, Origin(owner, "call", index))
                self._trace.own(container, owner)
        return call

    def _result(self, index: int, message: Message) -> dict[str, Any]:
        name = function_name(message)
        return {
            "role": "tool",
            "content": self._wrapped(message.text, "result", index),
            "name": self._trace.named(name, index) if self._trace is not None else name,
            "tool_call_id": self._open_ids.pop(0) if self._open_ids else "call00000",
        }


def _plain(value: Any) -> Any:
    """A fresh copy: a template may not see one object where it would see two."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def write(
    conversation: Conversation, form: Form, trace: Trace | None, counts: Counter[str], *, is_read: bool = False
) -> Written:
    """The conversation as a template's input, tracked where a trace is given.

    Args:
        conversation: the row.
        form: how it is written.
        trace: of a tracked render; None without.
        counts: `render/<what>` → how often.
        is_read: no template runs on it, so it may share objects with the row.

    Raises:
        Rejected: `turn-not-representable`, or `reasoning-unsayable`.
    """
    entries = entries_of(conversation, form, counts)
    return Writer(conversation, form, trace, counts, is_read=is_read).write(entries)


def leaves(value: Json) -> Iterator[Json]:
    """The scalars of a JSON value, in order."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value
