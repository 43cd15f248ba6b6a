"""The one shape of a chat: a `Conversation` of text-only `Message`s in the Harmony manner (channels and recipients)."""

from __future__ import annotations

import json
from typing import Any, Literal, NewType

import msgspec
import xxhash

Role = Literal["system", "developer", "user", "assistant", "tool"]
Channel = Literal["analysis", "commentary", "final", "text"]
"""`text` is the one that no chat has: a raw text, which nobody asked for and no template writes."""
Json = Any
"""A JSON value as `json.loads` gives it: dict, list, str, int, float, bool or None."""

NOT_RECORDED = -1
"""`Message.recorded` of a text that stood outside the recorded message list (a top-level `system` field)."""

FUNCTIONS = "functions."
"""Prefix of a tool's name where it speaks (`Message.name`) or is called (`Message.recipient`)."""

PROVENANCE = ("source_file", "source_line", "row", "repairs")
"""Keys of `Conversation.meta` that have their own columns; every other one is an annotation."""

COLUMNS = (
    "id", "messages", "source", "source_id", "chat_template_kwargs", "weights", "recorded", "verbatim", *PROVENANCE,
)  # fmt: skip
"""Columns of the canonical table in order; annotation columns follow."""


class Message(msgspec.Struct, frozen=True):
    """One utterance: who says what, on which channel, to whom."""

    role: Role
    text: str
    """What is said. For a call: its arguments as JSON text, keys and numbers as recorded, `, ` and `: ` between."""
    channel: Channel | None = None
    """Assistant: analysis (reasoning), commentary (text beside calls, and calls) or final. Tool: commentary.
    Raw text: text."""
    name: str | None = None
    """Author's name as recorded; on a tool's result the function that speaks (`functions.x`)."""
    recipient: str | None = None
    """The tool that is called (`functions.x`); `assistant` on a tool's result."""
    weight: float | None = None
    """Recorded loss weight, None where none was recorded."""
    recorded: int = NOT_RECORDED
    """Index in the recorded message list; several messages share it where one recorded message became several."""

    @property
    def is_call(self) -> bool:
        """Whether the assistant calls a tool here."""
        return self.role == "assistant" and self.recipient is not None


class Conversation(msgspec.Struct, frozen=True):
    """One row of chat data, or one raw text: a single assistant message on the channel `text`."""

    messages: tuple[Message, ...]
    tools: tuple[Json, ...] = ()
    """Tool definitions as recorded."""
    template_kwargs: dict[str, Json] = {}
    """Arguments of the chat template recorded with the row, without `tools`."""
    source: str = ""
    source_id: str | None = None
    """The row's id in its source, None where it has none."""
    verbatim: dict[int, str] = {}
    """Recorded content by recorded index, where a think block was taken out of it."""
    meta: dict[str, Json] = {}
    """Provenance (`source_file`, `source_line`, `row`) and declared annotation columns."""

    @property
    def is_raw_text(self) -> bool:
        """Whether this is a raw text and no chat: it is trained on as it stands, without a template."""
        return len(self.messages) == 1 and self.messages[0].channel == "text"

    def beginning(self, messages: int) -> Conversation:
        """The conversation up to so many messages."""
        return msgspec.structs.replace(self, messages=self.messages[:messages])

    @property
    def id(self) -> str:
        """32 hex digits of xxh3-128 over what the model sees: messages, tools and template arguments."""
        return xxhash.xxh3_128_hexdigest(canonical_bytes(self))

    def loss_id(self, loss: Json) -> str:
        """32 hex digits of xxh3-128 over id, recorded weights and loss options (as a JSON value)."""
        weights = [message.weight for message in self.messages]
        return xxhash.xxh3_128_hexdigest(canonical_json([self.id, weights, loss]))


Checked = NewType("Checked", Conversation)  # type: ignore[misc]  # mypy takes it for a non-frozen subclass
"""A conversation that met the chat contract: made by `contract.check`, and by `readmit` from published rows."""


_canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
_recorded = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def canonical_json(value: Json) -> bytes:
    """UTF-8 bytes of sorted, compact JSON: equal for equal values in any key order.

    Raises:
        ValueError: a number that JSON has not (NaN, infinity), or a lone surrogate.
    """
    return _canonical.encode(value).encode("utf-8")


def template_kwargs(conversation: Conversation) -> dict[str, Json]:
    """The row's template arguments as they are hashed and stored: tools in, `enable_thinking` derived.

    `enable_thinking` is whether any message is an analysis, unless the row recorded a string for it.
    """
    kwargs = dict(conversation.template_kwargs)
    if not isinstance(kwargs.get("enable_thinking"), str):
        kwargs["enable_thinking"] = any(message.channel == "analysis" for message in conversation.messages)
    if conversation.tools:
        kwargs["tools"] = list(conversation.tools)
    return kwargs


def canonical_bytes(conversation: Conversation) -> bytes:
    """The bytes that are hashed to the row's id: canonical JSON of its messages and template arguments.

    Messages hold texts alone, which msgspec writes as `canonical_json` does, and faster.
    """
    messages = msgspec.json.encode([_hashed(message) for message in conversation.messages])
    kwargs = canonical_json(template_kwargs(conversation))
    return b'{"chat_template_kwargs":%b,"messages":%b}' % (kwargs, messages)


class _Part(msgspec.Struct):
    """Content of a message, as it is hashed."""

    text: str
    type: str


class _Hashed(msgspec.Struct):
    """A message as it is hashed: its keys in order, those that are unset left out."""

    channel: str | msgspec.UnsetType
    content: tuple[_Part]
    name: str | None
    recipient: str | msgspec.UnsetType
    role: str


def _hashed(message: Message) -> _Hashed:
    text = message.text
    if message.is_call:
        text = canonical_json(json.loads(text)).decode("utf-8")
    channel = msgspec.UNSET if message.channel is None else message.channel
    recipient = msgspec.UNSET if message.recipient is None else message.recipient
    return _Hashed(channel, (_Part(text, "text"),), message.name, recipient, message.role)


def recorded_json(value: Json) -> str:
    """JSON text in recorded key order, `, ` and `: ` between: how arguments, tools and kwargs are stored."""
    return _recorded.encode(value)
