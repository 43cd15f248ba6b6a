"""A rendered conversation to an example: segments to ids, spans to runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from turnmill.conversation import Conversation
from turnmill.errors import Rejected
from turnmill.rendered import Example, Loss, Rendered
from turnmill.tokens.encode import ANCHOR, Encoder
from turnmill.tokens.encoded import Encoded
from turnmill.tokens.loss import Policy
from turnmill.tokens.runs import labelled


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
        asked = [_asked(row) for row in rows]
        found: list[Example | Rejected] = []
        for one, encoded in zip(asked, self._encoded(asked), strict=True):
            try:
                found.append(encoded if isinstance(encoded, Rejected) else self._example(one, encoded))
            except Rejected as fault:
                found.append(fault)
        return found

    def placed(self, conversation: Conversation, rendered: Rendered, loss: Loss) -> Encoded:
        """The tokens of the row's example before it is cut, and where each stands in the text.

        Raises:
            Rejected: as `Encoder.segments` does.
        """
        (encoded,) = self._encoded([_asked(Row("", conversation, rendered, loss))])
        if isinstance(encoded, Rejected):
            raise encoded
        return encoded

    def _encoded(self, asked: Sequence[Asked]) -> list[Encoded | Rejected]:
        """Each row's ids, with a border at each trained turn's start that a token would otherwise lie across."""
        whole = iter(self.encoder.whole([one.row.rendered.text for one in asked if _is_encoded_whole(one.row)]))
        found = [next(whole) if _is_encoded_whole(one.row) else self._in_parts(one.row) for one in asked]
        crossed = [self._crossed(one, encoded) for one, encoded in zip(asked, found, strict=True)]
        parted = [number for number, borders in enumerate(crossed) if borders]
        cuts = [
            (asked[number].row.rendered.text, encoded, crossed[number])
            for number in parted
            if isinstance(encoded := found[number], Encoded) and not asked[number].row.rendered.control_hits
        ]
        anew = iter(self.encoder.cut(cuts))
        for number in parted:
            rendered = asked[number].row.rendered
            found[number] = (
                self.encoder.segments(rendered.text, crossed[number], rendered.control_hits)
                if rendered.control_hits
                else next(anew)
            )
        return found

    def _in_parts(self, row: Row) -> Encoded | Rejected:
        """The ids of a row that no one encode gives."""
        rendered = row.rendered
        try:
            if row.conversation.is_raw_text:
                return self.encoder.pieces(rendered.text, rendered.spans, rendered.control_hits)
            return self.encoder.segments(rendered.text, (), rendered.control_hits)
        except Rejected as fault:
            return fault

    def _crossed(self, asked: Asked, encoded: Encoded | Rejected) -> list[int]:
        """The starts of trained turns that a token lies across, and that can be borders."""
        if isinstance(encoded, Rejected) or asked.row.conversation.is_raw_text:
            return []
        crossed = self.encoder.crossed(encoded, asked.starts)
        if not crossed:
            return []
        if self.encoder.adds_prefix:
            self.counts["tokenize/start-untrained"] += len(crossed)
            return []
        self.counts["tokenize/start-cut"] += len(crossed)
        return crossed

    def _example(self, asked: Asked, encoded: Encoded) -> Example:
        row, spans = asked.row, asked.row.rendered.spans
        found = labelled(spans, asked.weights, asked.policy, encoded.edges([span.end for span in spans]))
        if found.straddling:
            self.counts["tokenize/straddling"] += found.straddling
        if not found.runs:
            raise Rejected("no-trainable-tokens", "nothing of this row trains under its weights and the loss options")
        meta = row.conversation.meta
        return Example(
            row_id=row.id,
            part=0,
            source=row.conversation.source,
            source_file=str(meta.get("source_file", "")),
            source_line=int(meta.get("source_line", 0)),
            input_ids=cast(Sequence[int], encoded.ids),
            runs=found.runs,
            turn_ends=found.turn_ends,
        )


class Asked(NamedTuple):
    """What is asked of a row's ids."""

    row: Row
    policy: Policy
    weights: list[float]
    """Of each span, before turns are scaled."""
    starts: list[int]
    """The characters where trained turns begin to be the model's own."""


def _asked(row: Row) -> Asked:
    policy = Policy(row.conversation, row.loss)
    weights = policy.weights(row.rendered.spans)
    return Asked(row, policy, weights, _trained_starts(row.rendered, policy, weights))


def _is_encoded_whole(row: Row) -> bool:
    """Whether one encode of the text gives its ids: not around escaped content, nor for the spans of a raw text."""
    rendered = row.rendered
    return not rendered.control_hits and not row.conversation.is_raw_text and ANCHOR not in rendered.text


def _trained_starts(rendered: Rendered, policy: Policy, weights: Sequence[float]) -> list[int]:
    """The characters where trained turns begin to be the model's own: where their generation prompts end."""
    trained = {policy.turn(span) for span, weight in zip(rendered.spans, weights, strict=True) if weight > 0}
    return [end for turn, end in enumerate(rendered.prompt_ends) if turn in trained]
