"""Anthropic messages: content in blocks (text, thinking, tool_use, tool_result) and `system` beside them.

A block of redacted thinking rejects its row: the model did think, and nobody can say what. Tool definitions stay as
recorded (`input_schema`); the contract and the rendering know that form.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from turnmill.contract.definitions import bare_function
from turnmill.conversation import FUNCTIONS, Conversation, Json, Message, Role
from turnmill.dialects import Reading, dialect, writer
from turnmill.dialects.calls import read_arguments, read_call_id
from turnmill.dialects.content import MEDIA, read_content, read_text
from turnmill.dialects.fields import Fields
from turnmill.dialects.recorded import Call, Utterance
from turnmill.dialects.row import open_chat, read_row
from turnmill.dialects.turns import Manner, Speaker, open_message, read_speaker, settle_answer
from turnmill.dialects.weights import read_weight
from turnmill.dialects.writing import shared_columns
from turnmill.errors import Rejected, quote

SPEAKERS: dict[str, Speaker] = {"user": "user", "assistant": "assistant", "system": "system"}
MANNER = Manner(SPEAKERS)

PASSED_OVER = ("cache_control", "signature")
"""Keys of a block that say nothing to a model."""


@dialect("anthropic")
def anthropic(record: dict[str, Json], reading: Reading) -> Conversation:
    """Anthropic messages: content blocks (text, thinking, tool_use, tool_result), system, input_schema."""
    fields, messages = open_chat(record, reading, "messages", "conversation")
    system = _system_text(fields.take_as_is("system"), reading.counts)
    utterances = [said for index, message in enumerate(messages) for said in utterances_of(message, index, reading)]
    return read_row(fields, utterances, reading, system=system)


def _system_text(value: Json, counts: Counter[str]) -> str:
    return read_content(value, 0, counts).text if isinstance(value, list) else read_text(value, "system")


def utterances_of(message: Json, index: int, reading: Reading) -> list[Utterance]:
    """What one message says, in order: a user's results and texts, an assistant's reasoning, texts and calls.

    Raises:
        Rejected: what the message, or one of its blocks, cannot be read as.
    """
    fields = open_message(message, index, reading)
    speaker = read_speaker(fields.take_one("role", at=index), index, MANNER, reading)
    if speaker == "function_call":
        raise Rejected("unknown-speaker", "function_call speaks; expected user, assistant or system", at=index)
    said = _Said(speaker, index, reading.counts)
    content = fields.take_one("content", at=index)
    if content is not None and not isinstance(content, (str, list)):
        raise Rejected("non-string-content", f"content is {quote(content)}; expected text or blocks", at=index)
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        said.add(block)
    utterances = said.utterances or [Utterance(index, speaker)]
    for utterance in utterances:
        if utterance.role == "assistant":
            thought, utterance.reasoning = utterance.reasoning, ""
            settle_answer(utterance, thought, reading)
    _weigh(utterances, fields, reading)
    fields.count_left(reading.counts, "key")
    return utterances


def _weigh(utterances: list[Utterance], fields: Fields, reading: Reading) -> None:
    """Give a recorded weight to what the message's assistant or tools say; others take none."""
    weighed = [utterance for utterance in utterances if utterance.role in ("assistant", "tool")]
    weight = read_weight(fields, (weighed or utterances)[0], fractional=reading.fractional, counts=reading.counts)
    for utterance in weighed:
        utterance.weight = weight


class _Said:
    """The utterances of one message, as its blocks come in."""

    def __init__(self, role: Role, index: int, counts: Counter[str]) -> None:
        self.utterances: list[Utterance] = []
        self._role, self._index, self._counts = role, index, counts

    def add(self, block: Json) -> None:
        """Take in a block.

        Raises:
            Rejected: a block of another kind, of another speaker, or without its text.
        """
        if not isinstance(block, dict):
            raise Rejected("non-string-content", f"a block is {quote(block)}; expected an object", at=self._index)
        fields = Fields(block, {})
        kind = fields.rest.pop("type", None)
        role, take = BLOCKS.get(kind if isinstance(kind, str) else "", (None, None))
        if take is None:
            code = "non-text-content" if any(medium in str(kind) for medium in MEDIA) else "unknown-content-part"
            raise Rejected(code, f"a block is of type {quote(kind)}", at=self._index)
        if role not in (None, self._role):
            message = f"a {self._role} message holds a block of type {quote(kind)}"
            raise Rejected("calls-outside-assistant", message, at=self._index)
        take(self, fields)
        for key in PASSED_OVER:
            fields.rest.pop(key, None)
        fields.count_left(self._counts, "key")

    def text(self, block: Fields) -> None:
        """Text: of the utterance before where nothing was called since."""
        text = read_text(block.take_one("text"), "a text block", self._index)
        utterance = self._current(lambda last: last.role == self._role and not last.calls)
        if utterance.text:
            self._counts["read/text-parts-joined"] += 1
        utterance.text += text

    def thinking(self, block: Fields) -> None:
        """Reasoning: opens an utterance, for it stands where it was thought."""
        reasoning = read_text(block.take_one("thinking"), "a thinking block", self._index)
        self._current(lambda last: False).reasoning = reasoning

    def redacted(self, block: Fields) -> None:
        """Reasoning that was taken out."""
        raise Rejected("reasoning-redacted", "a block of redacted thinking stands in for reasoning", at=self._index)

    def call(self, block: Fields) -> None:
        """A call: of the utterance before."""
        name = block.take_one("name")
        if not isinstance(name, str) or not name:
            raise Rejected("tool-call-malformed", f"a call's name is {quote(name)}; expected text", at=self._index)
        arguments = read_arguments(block.take_one("input"), name, self._index, self._counts)
        call = Call(name, arguments, read_call_id(block.take("id"), self._index))
        self._current(lambda last: True).calls += (call,)

    def result(self, block: Fields) -> None:
        """A tool's result."""
        content = read_content(block.take_one("content"), self._index, self._counts)
        if content.calls or content.reasoning or content.tools is not None:
            raise Rejected("unknown-content-part", "a tool's result holds other parts than text", at=self._index)
        reply_to = read_call_id(block.take("tool_use_id"), self._index)
        self.utterances.append(Utterance(self._index, "tool", content.text, reply_to=reply_to))

    def _current(self, goes_on: Callable[[Utterance], bool]) -> Utterance:
        """The last utterance where the block goes on with it, else a new one."""
        if not self.utterances or not goes_on(self.utterances[-1]):
            self.utterances.append(Utterance(self._index, self._role))
        return self.utterances[-1]


BLOCKS: dict[str, tuple[Role | None, Callable[[_Said, Fields], None]]] = {
    "text": (None, _Said.text),
    "thinking": ("assistant", _Said.thinking),
    "redacted_thinking": ("assistant", _Said.redacted),
    "tool_use": ("assistant", _Said.call),
    "tool_result": ("user", _Said.result),
}
"""Type of a block → who may say it (None: anybody), and what becomes of it."""


@writer("anthropic")
def write_anthropic(conversation: Conversation) -> dict[str, Json]:
    """Messages of blocks, results in the user's message, system beside them, tools with input_schema.

    Raises:
        Rejected: `dialect-cannot-say`: a developer, or several systems.
    """
    heads = [message for message in conversation.messages if message.role in ("system", "developer")]
    if len(heads) > 1 or any(message.role == "developer" for message in heads):
        raise Rejected("dialect-cannot-say", "anthropic has one system and no developer", at=heads[-1].recorded)
    record: dict[str, Json] = {"system": heads[0].text} if heads else {}
    if conversation.tools:
        record["tools"] = [_definition(tool) for tool in conversation.tools]
    record["messages"] = _written(conversation.messages[len(heads) :])
    return record | shared_columns(conversation)


def _definition(tool: Json) -> Json:
    return {"input_schema" if key == "parameters" else key: value for key, value in bare_function(tool).items()}


def _written(messages: Iterable[Message]) -> list[Json]:
    """A message for each run of one side with one weight; a user's text weighs nothing and joins the results before."""
    ids = (f"toolu_{number}" for number in count(1))
    waiting: list[str] = []
    written: list[Json] = []
    for message in messages:
        block = _block(message, ids, waiting)
        if written and _goes_on(written[-1], message, block):
            written[-1]["content"].append(block)
        else:
            weight = {} if message.weight is None else {"weight": message.weight}
            written.append({"role": _side(message), "content": [block], **weight})
    for entry in written:
        if [block["type"] for block in entry["content"]] == ["text"]:
            entry["content"] = entry["content"][0]["text"]
    return written


def _side(message: Message) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _goes_on(entry: Json, message: Message, block: Json) -> bool:
    """Whether a block can join the message before: two texts in a row would be read as one."""
    if entry["role"] != _side(message):
        return False
    two_texts = block["type"] == "text" == entry["content"][-1]["type"]
    return message.role == "user" or (entry.get("weight") == message.weight and not two_texts)


def _block(message: Message, ids: Iterator[str], waiting: list[str]) -> Json:
    if message.role == "tool":
        return {"type": "tool_result", "tool_use_id": waiting.pop(0), "content": message.text}
    if message.is_call:
        waiting.append(next(ids))
        name = (message.recipient or "").removeprefix(FUNCTIONS)
        return {"type": "tool_use", "id": waiting[-1], "name": name, "input": json.loads(message.text)}
    kind = "thinking" if message.channel == "analysis" else "text"
    return {"type": kind, kind: message.text}
