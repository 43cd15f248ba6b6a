"""`openai-harmony`, asked to write our conversations and to read what our line trains."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import groupby

import openai_harmony as harmony
from tokenizers import Tokenizer

import assets
import corpus
from oracle_rows import Labelled, Ours
from turnmill.conversation import Message
from turnmill.models import open_template
from turnmill.options import Render
from turnmill.rendering.renderer import Renderer

STOPS = ("<|return|>", "<|call|>", "<|endoftext|>")
Turn = tuple[str, str | None, str]
"""Channel, recipient, text."""


@dataclass
class HarmonyFinding:
    """What was found of one template."""

    template: str
    compared: int = 0
    equal: list[str] = field(default_factory=list)
    """Probes whose ids are theirs."""
    read_back: list[str] = field(default_factory=list)
    """Probes of which they read every recorded turn out of what trains."""
    others: dict[str, list[Turn]] = field(default_factory=dict)
    """Probe → the recorded turns that they do not read out of it."""
    other_text: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Probe → our text and theirs, where the ids are others."""


def find_harmony(name: str) -> HarmonyFinding:
    """What is found of turnmill's own `harmony`, or of a public template."""
    source = open_template(name).template if name == "harmony" else corpus.paths()[name].read_text("utf-8")
    renderer = Renderer(source, {}, STOPS, None, Render(), name, accelerate=False)
    ours = Ours(renderer, Tokenizer.from_file(str(assets.gpt_oss_tokenizer() / "tokenizer.json")))
    encoding = _encoding()
    finding = HarmonyFinding(name)
    for probe, row, mine in ours.probes():
        finding.compared += 1
        written = harmony.Conversation.from_messages([_message(message) for message in row.messages])
        theirs = encoding.render_conversation_for_training(
            written, harmony.RenderConversationConfig(auto_drop_analysis=False)
        )
        if list(theirs) == list(mine.ids):
            finding.equal.append(probe)
        else:
            finding.other_text[probe] = (encoding.decode(list(mine.ids)), encoding.decode(list(theirs)))
        wanted, read = (
            [_turn(message) for message in row.messages if message.role == "assistant"],
            _read(encoding, mine),
        )
        if wanted == read:
            finding.read_back.append(probe)
        else:
            finding.others[probe] = [turn for turn in wanted if turn not in read]
    return finding


def keep_ranks_local() -> None:
    """Have `openai-harmony` read its ranks from the cache: it would fetch them."""
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = str(assets.tiktoken_ranks())


def _encoding() -> harmony.HarmonyEncoding:
    keep_ranks_local()
    return harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)


def _turn(message: Message) -> Turn:
    if message.is_call:
        return "commentary", message.recipient, message.text
    return message.channel or "final", None, message.text


def _read(encoding: harmony.HarmonyEncoding, row: Labelled) -> list[Turn]:
    """The messages in each stretch that trains, as a server reads a completion."""
    found: list[Turn] = []
    for trains, group in groupby(zip(row.ids, row.trained, strict=True), key=lambda pair: pair[1]):
        if trains:
            completion = [number for number, _ in group]
            messages = encoding.parse_messages_from_completion_tokens(completion, harmony.Role.ASSISTANT)
            found += [(one.channel or "", one.recipient, one.content[0].text) for one in messages]
    return found


def _message(message: Message) -> harmony.Message:
    make = harmony.Message
    if message.role == "tool":
        author = harmony.Author.new(harmony.Role.TOOL, message.name or "")
        return make.from_author_and_content(author, message.text).with_recipient("assistant").with_channel("commentary")
    if message.role == "developer":
        content = harmony.DeveloperContent.new().with_instructions(message.text)
        return make.from_role_and_content(harmony.Role.DEVELOPER, content)
    written = make.from_role_and_content(harmony.Role(message.role), message.text)
    if message.role != "assistant":
        return written
    channel, recipient, _ = _turn(message)
    written = written.with_channel(channel)
    return written.with_recipient(recipient).with_content_type("<|constrain|>json") if recipient else written
