"""A judge of spans that knows nothing of how they were made: the words of sample conversations, and who said them."""

from __future__ import annotations

import json
from collections import Counter

from turnmill.conversation import Conversation, Message
from turnmill.rendered import TRAINED_KINDS
from turnmill.rendering.attribute import Attribution
from turnmill.rendering.form import leaves
from turnmill.rendering.markers import Markers
from turnmill.rendering.template import Dialog


def is_attributed(conversation: Conversation, dialog: Dialog, markers: Markers) -> bool:
    """Whether of a sample just the assistant's words are trained, as many turns as it has being closed by a stop.

    Every text of a sample is a word found nowhere else. A word that the template leaves out says nothing.
    """
    attribution = Attribution(dialog.text, dialog.segments, dialog.written.entries, markers, Counter())
    parts = attribution.parts
    trained = "\n".join(dialog.text[start:end] for start, end, _, kind in parts if kind in TRAINED_KINDS)
    turns = [number for number, entry in enumerate(dialog.written.entries) if entry.role == "assistant"]
    return all(attribution.stops[turn] for turn in turns[:-1]) and all(
        (word in trained) == (message.role == "assistant")
        for message in conversation.messages
        for word in _words(message)
        if word in dialog.text
    )


def _words(message: Message) -> list[str]:
    if not message.is_call:
        return [message.text]
    return [leaf for leaf in leaves(json.loads(message.text)) if isinstance(leaf, str)]
