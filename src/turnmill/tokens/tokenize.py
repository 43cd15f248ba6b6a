"""A rendered conversation to an example: segments to ids, spans to runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Conversation
from turnmill.errors import Rejected
from turnmill.rendered import Example, Loss, Rendered, Run
from turnmill.tokens.encode import Encoded, Encoder
from turnmill.tokens.loss import Policy


class Row(NamedTuple):
    """A row, its id and text, and the loss options of its source."""

    id: str
    conversation: Conversation
    rendered: Rendered
    loss: Loss


class Tokenizing:
    """Rows to examples with one encoder.

    Attributes:
        counts: `tokenize/<what>` → how often; the encoder's too.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.counts = encoder.counts

    def examples(self, rows: Sequence[Row]) -> list[Example | Rejected]:
        """One example, or the rejection, a row; nothing is cut yet."""
        texts = [row.rendered.text for row in rows if _is_encoded_whole(row.conversation, row.rendered)]
        whole = iter(self._encoder.whole(texts))
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
        weights = np.array([policy.weight(span) for span in rendered.spans])
        return self._bordered(conversation, rendered, policy, weights, None).offsets

    def _example(self, row: Row, encoded: Encoded | None) -> Example:
        conversation, rendered, policy = row.conversation, row.rendered, Policy(row.conversation, row.loss)
        weights = np.array([policy.weight(span) for span in rendered.spans])
        encoded = self._bordered(conversation, rendered, policy, weights, encoded)
        low, high = spans_of_tokens(rendered, encoded.offsets)
        token_weights = self._token_weights(weights, low, high)
        if not token_weights.any():
            raise Rejected("no-trainable-tokens", "nothing of this row trains under its weights and the loss options")
        turns = np.array([policy.turn(span) for span in rendered.spans])[high]
        token_weights *= _scales(policy, turns, token_weights)
        runs = _runs(rendered, np.where(token_weights > 0, high, low), token_weights)
        meta = conversation.meta
        return Example(
            row_id=row.id,
            part=0,
            source=conversation.source,
            source_file=str(meta.get("source_file", "")),
            source_line=int(meta.get("source_line", 0)),
            input_ids=encoded.ids.tolist(),
            runs=runs,
            turn_ends=turn_ends(turns, token_weights),
        )

    def _bordered(
        self,
        conversation: Conversation,
        rendered: Rendered,
        policy: Policy,
        weights: NDArray[np.float64],
        encoded: Encoded | None,
    ) -> Encoded:
        """The ids, with a border at each trained turn's start that a token would otherwise lie across."""
        starts = _trained_starts(rendered, policy, weights)
        if encoded is None and conversation.is_raw_text:
            return self._encoder.pieces(rendered.text, rendered.spans, rendered.control_hits)
        if encoded is None:
            encoded = self._encoder.segments(rendered.text, (), rendered.control_hits)
        crossed = self._encoder.crossed(encoded, starts)
        if not crossed:
            return encoded
        if self._encoder.adds_prefix:
            self.counts["tokenize/start-untrained"] += len(crossed)
            return encoded
        self.counts["tokenize/start-cut"] += len(crossed)
        if rendered.control_hits:
            return self._encoder.segments(rendered.text, crossed, rendered.control_hits)
        return self._encoder.cut(rendered.text, encoded, crossed)

    def _token_weights(
        self, weights: NDArray[np.float64], low: NDArray[np.int64], high: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """A token's weight is the least of the spans it lies in: it trains only if all of its characters do."""
        token_weights = weights[low]
        for token in np.flatnonzero(low != high):
            inside = weights[low[token] : high[token] + 1]
            token_weights[token] = inside.min()
            if inside.min() == 0 and inside.max() > 0:
                self.counts["tokenize/straddling"] += 1
        return token_weights


def _is_encoded_whole(conversation: Conversation, rendered: Rendered) -> bool:
    """Whether one encode of the text gives its ids: not around escaped content, nor for the spans of a raw text."""
    return not rendered.control_hits and not conversation.is_raw_text


def spans_of_tokens(rendered: Rendered, offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first and the last span each token has characters in: two (tokens,) arrays of span indices."""
    ends = np.array([span.end for span in rendered.spans])
    last = len(ends) - 1
    low = np.searchsorted(ends, offsets[:, 0], side="right")
    high = np.searchsorted(ends, np.maximum(offsets[:, 1] - 1, offsets[:, 0]), side="right")
    return np.minimum(low, last), np.minimum(high, last)


def _trained_starts(rendered: Rendered, policy: Policy, weights: NDArray[np.float64]) -> list[int]:
    """The characters where trained turns begin to be the model's own: where their generation prompts end."""
    trained = {policy.turn(span) for span, weight in zip(rendered.spans, weights, strict=True) if weight > 0}
    return [end for turn, end in enumerate(rendered.prompt_ends) if turn in trained]


def _scales(policy: Policy, turns: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    counts = Counter(turns[weights > 0].tolist())
    scales = policy.scales(counts)
    return np.array([scales.get(turn, 1.0) for turn in turns.tolist()]) if scales else np.ones(len(turns))


def _runs(rendered: Rendered, spans: NDArray[np.int64], weights: NDArray[np.float64]) -> list[Run]:
    """Tokens of one span and weight as runs; neighbours that say the same are one."""
    changes = np.flatnonzero((np.diff(spans) != 0) | (np.diff(weights) != 0)) + 1
    edges = [0, *changes.tolist(), len(spans)]
    runs: list[Run] = []
    for start, end in pairwise(edges):
        if start == end:
            continue
        span, weight = rendered.spans[spans[start]], float(weights[start])
        if runs and (runs[-1].message, runs[-1].kind, runs[-1].weight) == (span.message, span.kind, weight):
            runs[-1] = Run(end, span.message, span.kind, weight)
        else:
            runs.append(Run(end, span.message, span.kind, weight))
    return runs


def turn_ends(turns: NDArray[np.int64], weights: NDArray[np.float64]) -> list[int]:
    """Token offsets behind the last trained token of each trained turn."""
    trained = np.flatnonzero((weights > 0) & (turns >= 0))
    if not len(trained):
        return []
    last = np.flatnonzero(np.diff(turns[trained], append=-2) != 0)
    return [int(end) + 1 for end in trained[last]]
