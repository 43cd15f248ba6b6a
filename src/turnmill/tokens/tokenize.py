"""A rendered conversation to an example: segments to ids, spans to runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Conversation
from turnmill.errors import Rejected
from turnmill.rendered import Example, Loss, Rendered
from turnmill.tokens.encode import ANCHOR, Encoder
from turnmill.tokens.encoded import Encoded
from turnmill.tokens.loss import Policy
from turnmill.tokens.runs import Labelled, labelled, labelled_between


class Row(NamedTuple):
    """A row, its id and text, and the loss options of its source."""

    id: str
    conversation: Conversation
    rendered: Rendered
    loss: Loss


class Tokenizing:
    """Rows to examples with one encoder.

    Attributes:
        encoder: the encoder.
        counts: `tokenize/<what>` → how often; the encoder's too.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.counts = encoder.counts

    def examples(self, rows: Sequence[Row]) -> list[Example | Rejected]:
        """One example, or the rejection, a row; nothing is cut yet."""
        texts = [row.rendered.text for row in rows if _is_encoded_whole(row.conversation, row.rendered)]
        whole = iter(self.encoder.whole(texts))
        found: list[Example | Rejected] = []
        for row in rows:
            encoded = next(whole) if _is_encoded_whole(row.conversation, row.rendered) else None
            try:
                found.append(self._example(row, encoded))
            except Rejected as fault:
                found.append(fault)
        return found

    def offsets(self, conversation: Conversation, rendered: Rendered, loss: Loss) -> NDArray[np.int64]:
        """(tokens, 2): the characters [start, end) of each token of the row's example, before it is cut."""
        policy = Policy(conversation, loss)
        starts = _trained_starts(rendered, policy, policy.weights(rendered.spans))
        return self._bordered(conversation, rendered, starts, None).offsets

    def _example(self, row: Row, encoded: Encoded | None) -> Example:
        conversation, rendered, policy = row.conversation, row.rendered, Policy(row.conversation, row.loss)
        weights = policy.weights(rendered.spans)
        encoded, found = self._labelled(conversation, rendered, policy, weights, encoded)
        if found.straddling:
            self.counts["tokenize/straddling"] += found.straddling
        if not found.runs:
            raise Rejected("no-trainable-tokens", "nothing of this row trains under its weights and the loss options")
        meta = conversation.meta
        return Example(
            row_id=row.id,
            part=0,
            source=conversation.source,
            source_file=str(meta.get("source_file", "")),
            source_line=int(meta.get("source_line", 0)),
            input_ids=cast(Sequence[int], encoded.ids),
            runs=found.runs,
            turn_ends=found.turn_ends,
        )

    def _labelled(
        self,
        conversation: Conversation,
        rendered: Rendered,
        policy: Policy,
        weights: Sequence[float],
        encoded: Encoded | None,
    ) -> tuple[Encoded, Labelled]:
        """The ids and their runs: where every edge stands between two tokens, the edges alone are looked for."""
        spans, starts = rendered.spans, _trained_starts(rendered, policy, weights)
        if encoded is not None:
            edges = encoded.tokens_before([span.end for span in spans] + starts)
            if edges is not None:
                return encoded, labelled_between(spans, weights, policy, edges[: len(spans)])
        encoded = self._bordered(conversation, rendered, starts, encoded)
        return encoded, labelled(spans, weights, policy, encoded.offsets)

    def _bordered(
        self,
        conversation: Conversation,
        rendered: Rendered,
        starts: Sequence[int],
        encoded: Encoded | None,
    ) -> Encoded:
        """The ids, with a border at each trained turn's start that a token would otherwise lie across."""
        if encoded is None and conversation.is_raw_text:
            return self.encoder.pieces(rendered.text, rendered.spans, rendered.control_hits)
        if encoded is None:
            encoded = self.encoder.segments(rendered.text, (), rendered.control_hits)
        crossed = self.encoder.crossed(encoded, starts)
        if not crossed:
            return encoded
        if self.encoder.adds_prefix:
            self.counts["tokenize/start-untrained"] += len(crossed)
            return encoded
        self.counts["tokenize/start-cut"] += len(crossed)
        if rendered.control_hits:
            return self.encoder.segments(rendered.text, crossed, rendered.control_hits)
        return self.encoder.cut(rendered.text, encoded, crossed)


def _is_encoded_whole(conversation: Conversation, rendered: Rendered) -> bool:
    """Whether one encode of the text gives its ids: not around escaped content, nor for the spans of a raw text."""
    return not rendered.control_hits and not conversation.is_raw_text and ANCHOR not in rendered.text


def _trained_starts(rendered: Rendered, policy: Policy, weights: Sequence[float]) -> list[int]:
    """The characters where trained turns begin to be the model's own: where their generation prompts end."""
    trained = {policy.turn(span) for span, weight in zip(rendered.spans, weights, strict=True) if weight > 0}
    return [end for turn, end in enumerate(rendered.prompt_ends) if turn in trained]
