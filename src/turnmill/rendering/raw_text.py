"""Raw texts as they are trained on: no template; what the tokenizer puts before a text, the text, the end token."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import NamedTuple

from turnmill.conversation import Conversation
from turnmill.errors import Rejected, UsageError
from turnmill.rendered import Rendered, Span
from turnmill.rendering.control import ControlScan


class Around(NamedTuple):
    """The tokens around a raw text."""

    before: str = ""
    """What the tokenizer puts before a plain text (its BOS, where it adds one)."""
    after: str | None = ""
    """The end token; None: the model names none."""


NOTHING = Around()
"""No tokens: a text alone, where nobody knows them."""


def render_raw_text(
    conversation: Conversation, around: Around, scan: ControlScan, policy: str | None, counts: Counter[str]
) -> Rendered:
    """The text between its tokens, in spans that are encoded each on its own; all of it is the answer.

    Args:
        conversation: a raw text.
        around: the model's tokens.
        scan: finds control tokens.
        policy: for control-token text, None = `reject`. Under `keep`, a text that begins or ends with the model's
            token itself gets no second one.
        counts: takes `render/<what>`.

    Raises:
        Rejected: `text-holds-control-tokens`.
        UsageError: the model has no end token.
    """
    if around.after is None:
        what = "the model names no end token, and every raw text ends with one"
        raise UsageError(what, next_step="""--special-tokens '{"eos_token": "</s>"}'""")
    message = conversation.messages[0]
    text = message.text
    hits = scan.hits(text, [(0, len(text))])
    if hits:
        counts["render/control-token-text"] += len(hits)
    if hits and policy in (None, "reject"):
        start, end = hits[0]
        fault = f"the text holds the control token {text[start:end]!r}; `control_tokens` of its source says what to do"
        raise Rejected("text-holds-control-tokens", fault, at=message.recorded)
    before, after = around.before, around.after
    if policy == "keep":
        before = "" if text.startswith(before) else before
        after = "" if text.endswith(after) else after
        hits = ()
    edges = [0, len(before), len(before) + len(text), len(before) + len(text) + len(after)]
    spans = tuple(Span(start, end, message.recorded, "answer") for start, end in pairwise(edges) if start < end)
    shifted = tuple((start + len(before), end + len(before)) for start, end in hits)
    return Rendered(before + text + after, spans, (), shifted)
