"""Turn markers must be tokens: in a vocabulary that spells them as plain text, a model never learns where turns end."""

from __future__ import annotations

import re
from typing import Any

from turnmill.errors import UnsafeTemplate
from turnmill.rendering.markers import TAG_LIKE
from turnmill.rendering.probe import Probe

BRACKETED = re.compile(r"\[/?[A-Z_]+\]")
"""`[INST]`: the makers of older models trained these as plain text."""


def turn_markers(probe: Probe) -> tuple[str, ...]:
    """The control-token-like texts that open or end turns, in the order in which they are written."""
    stops = (probe.answer_stop, probe.call_stop, probe.last_stop, probe.added_stop)
    written = [*probe.markers.headers.values(), *filter(None, stops)]
    found = [match.group() for text in written for match in TAG_LIKE.finditer(text)]
    found += [stop for stop in stops if stop]
    return tuple(dict.fromkeys(marker for marker in found if not BRACKETED.fullmatch(marker)))


def check_markers(tokenizer: Any, probe: Probe, name: str) -> None:
    """Refuse a template whose turn markers the tokenizer does not know as one token each.

    Args:
        tokenizer: an object with the interface of `tokenizers.Tokenizer`.
        probe: of the template.
        name: the model, in messages.

    Raises:
        UnsafeTemplate: `turn-marker-not-a-token`; the message names the markers.
    """
    spelled = {
        marker: len(ids)
        for marker in turn_markers(probe)
        if len(ids := tokenizer.encode(marker, add_special_tokens=False).ids) != 1
    }
    if spelled:
        listed = ", ".join(f"{marker!r} ({count} tokens)" for marker, count in spelled.items())
        raise UnsafeTemplate(
            "turn-marker-not-a-token",
            f"{name}: turn markers are plain text in this vocabulary: {listed}; expected one token each. "
            "The template belongs to another model, or the tokens are not in tokenizer.json: use the model's own "
            "template, or add the tokens",
            next_step=f"turnmill template check {name}",
        )
