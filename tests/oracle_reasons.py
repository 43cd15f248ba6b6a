"""Why another library makes other tokens of a conversation, or trains others, and who is right."""

from __future__ import annotations

import re
from typing import NamedTuple

from oracle_rows import Difference


class Reason(NamedTuple):
    """A kind of difference."""

    name: str
    means: str
    """What differs, who is right, and why."""


BLOCK = Reason(
    "think block",
    "They write or train an empty think block. With thinking off the generation prompt holds it, so the model "
    "never writes it: training it is harmless, and not needed. Where they write one that the template leaves out,"
    " theirs is no longer the text that transformers and the serving engines make of the conversation; it is what"
    " the model saw when that turn was sampled. Ours is the template's text, and the block is not trained on any "
    "path.",
)
OPENER = Reason(
    "think tag",
    "We train the tag that opens recorded reasoning, although the generation prompt of this family holds it. The "
    "tag is the reasoning's wherever a prompt does not hold it; where one does, it costs nothing.",
)
LINE_END_BEFORE = Reason(
    "line end before",
    "We train the line end between header and think tag: GLM's generation prompt ends at `<|assistant|>`, so the "
    "model has to write it. Ours is right.",
)
CONTENT = Reason(
    "control text",
    "Content holds the text of a control token. They encode it as that token, and a message can then end its turn"
    " and open another; we encode its letters (`render.control_tokens: escape`). Ours is right.",
)
PIECES = Reason(
    "pieces",
    "The same text, encoded in other pieces: they encode parts of a turn each on its own. Ours are the ids of the"
    " whole text, as transformers gives them.",
)
EDGE = Reason(
    "turn's beginning",
    "An answer begins with a line end, which would be one token with its header's. We encode the two apart, as at"
    " inference, where the prompt is encoded before the answer exists; the template's tags cut a token in two. "
    "Ours is right.",
)
DEVELOPER = Reason(
    "developer",
    "The template drops developer messages. They drop them too, or refuse; we write them as system messages, and "
    "count it. Ours is right: a dropped instruction teaches to answer without it.",
)
LAST_STOP = Reason(
    "last stop",
    "The template writes no stop behind the last turn. Both append one; ours is the one that the template writes "
    "behind the same turn in the middle of a conversation, theirs is the end of text. Both end generation.",
)
CHANNEL = Reason(
    "channel",
    "They do not train the channel that opens a Harmony message (`<|channel|>final<|message|>`, ` "
    "to=functions.f`). The generation prompt is `<|start|>assistant`: the model has to choose the channel and the"
    " recipient itself. Ours is right.",
)
LAST_REASONING = Reason(
    "last reasoning",
    "They drop the reasoning before a final answer in the last turn as well as in earlier ones; the template "
    "keeps it there, and it is what a reasoning model learns from. Ours is right.",
)
HARMONY_TEXT = Reason(
    "Harmony text",
    'They write with `openai-harmony`, we with the template: it writes results as JSON text (`"…"`), `json` '
    "behind the channel of a call, and a blank line behind instructions. Ours is what transformers serves with "
    "this template; theirs is what the model was trained with. Turnmill's own `harmony` template writes results "
    "raw, as they do.",
)
OFF = Reason(
    "reasoning off",
    "Hy3's template is told `reasoning_effort: no_think` unless it is told otherwise. They then train no "
    "reasoning; we train what was recorded. For rows with reasoning say `render.template_kwargs: "
    "{reasoning_effort: high}`.",
)
REVISION = Reason(
    "revision",
    "They were written after another revision of the template: blank lines, the order of keys in tool "
    "definitions, where a run of results ends, a stop behind a question. Ours is the text of the template at "
    "hand.",
)
HEADER = Reason(
    "header",
    "The tags take the turn's header in (`<|start|>assistant`, `<｜Assistant｜>`, `<assistant>`). The generation "
    "prompt holds it: the model never writes it.",
)
BEHIND = Reason(
    "behind the stop",
    "The tags take in what the template writes behind the stop: a line end, or a second end of text (Phi 3.5). "
    "Generation has ended by then.",
)
RESULTS = Reason(
    "results' end",
    "The tags take in the token that ends a run of tool results. The one who runs the tools writes it; trained, "
    "it teaches a model to make up results. Ours is right.",
)
SUPPLIED = Reason(
    "stop of a call",
    "We train `<|tool_response>`, at which generation ends behind a call; the tags leave it out, and the model "
    "would not learn to stop there. Ours is right.",
)
REASONS = (
    BLOCK, OPENER, LINE_END_BEFORE, CONTENT, PIECES, EDGE, DEVELOPER, LAST_STOP, CHANNEL, LAST_REASONING, HARMONY_TEXT,
    OFF, REVISION, HEADER, BEHIND, RESULTS, SUPPLIED,
)  # fmt: skip

THINK = re.compile(r"</?think[^<>]*>|<\|channel>thought|<channel\|>")
MARKER = re.compile(r"<[^<>\s]+>")
REVISED = {
    "llama-cpp-deepseek-r1": r"(<｜end▁of▁sentence｜>)→",
    "deepseek-ai-DeepSeek-V4-Flash-0731": r"→\n\n|\n\n→<｜User｜>",
    "deepseekv3": r"\n?→(<｜tool▁(outputs|calls)▁(begin|end)｜>)*",
}
"""Template → the differences, ours→theirs, that its revision makes."""


def reason_of(template: str, probe: str, found: Difference) -> Reason | None:
    """Why a renderer differs; None where it is not explained."""
    ours, theirs, trains = found
    if trains == "ours":
        return _ours_alone(template, ours)
    if probe == "developer" and trains == "text":
        return DEVELOPER
    if ours == theirs and trains == "text":
        return CONTENT if MARKER.search(ours) else PIECES
    if _is_block(ours) and _is_block(theirs) and THINK.search(ours + theirs):
        return BLOCK
    if theirs == "<|endoftext|>" and ours in ("<|user|>", ""):
        return LAST_STOP
    if template in ("gptoss", "openai-gpt-oss-120b"):
        return LAST_REASONING if ours.startswith("analysis") else HARMONY_TEXT
    if template == "Kimi-K2-Instruct" and probe == "tools, none called":
        return REVISION
    if template == "qwen3_instruct_2507" and probe == "quoted think tag":
        return BLOCK
    if re.fullmatch(REVISED.get(template, r"(?!)"), f"{ours}→{theirs}", re.DOTALL):
        return REVISION
    return None


def _ours_alone(template: str, text: str) -> Reason | None:
    if template == "tencent-Hy3":
        return OFF
    if template in ("gptoss", "openai-gpt-oss-120b"):
        return CHANNEL
    if THINK.fullmatch(text):
        return OPENER
    return LINE_END_BEFORE if text == "\n" else None


def _is_block(text: str) -> bool:
    """Whether there is no more than think tags and white space."""
    return not _without_block(text)


def tag_reason_of(found: Difference) -> Reason | None:
    """Why generation tags differ; None where it is not explained."""
    ours, theirs, trains = found
    if trains == "ours":
        return SUPPLIED if ours == "<|tool_response>" else None
    if trains == "text" and ours == theirs:
        return CONTENT if MARKER.search(ours) else EDGE
    if trains == "text":
        return None
    if theirs in ("\n", "\n</s>"):
        return BEHIND
    if theirs.endswith("outputs▁end｜>"):
        return RESULTS
    if _is_block(theirs):
        return BLOCK
    return HEADER if re.fullmatch(r"<[^<>]*[aA]ssistant[^<>]*>|<\|start\|>assistant", _without_block(theirs)) else None


def _without_block(text: str) -> str:
    """The text without think tags and white space."""
    return THINK.sub("", text).strip()
