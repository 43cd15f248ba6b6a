"""What became of one row: its text by kind, its tokens and labels, and why each message does or does not train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import NOT_RECORDED, Conversation, Json
from turnmill.errors import Rejected
from turnmill.rendered import Example, Kind, Rendered, Span
from turnmill.tokens.fit import Part
from turnmill.tokens.labels import labels, loss_weights
from turnmill.tokens.loss import Policy


class ExplainedSpan(msgspec.Struct, frozen=True):
    """Characters [start, end) of one message and kind."""

    start: int
    end: int
    message: int | None
    """Index in the recorded message list, None where no recorded message is behind it."""
    kind: Kind
    trained: bool


class ExplainedTurn(msgspec.Struct, frozen=True):
    """One recorded message."""

    message: int
    trained: bool
    why: str
    """`trained`, `weight-zero`, `not-last`, `reasoning-off`, `cut`, `context`, `role`, `quoted`, `rejected:CODE`."""


class ExplainedToken(msgspec.Struct, frozen=True):
    """One token of an example."""

    text: str
    """Its characters; "" where the token before has them too (bytes of one character)."""
    id: int
    label: int
    weight: float
    message: int | None
    kind: Kind


class ExplainedExample(msgspec.Struct, frozen=True):
    """One training example of the row."""

    part: int
    text: str
    """What is kept of the row's text."""
    spans: tuple[ExplainedSpan, ...]
    input_ids: tuple[int, ...] | None = None
    """None without a tokenizer, as are labels and weights."""
    labels: tuple[int, ...] | None = None
    weights: tuple[float, ...] | None = None
    tokens: tuple[ExplainedToken, ...] = ()


class Explanation(msgspec.Struct, frozen=True):
    """One row."""

    row: int
    id: str | None
    place: str
    """Source, file and line."""
    text: str | None = None
    """The whole text; None where the row has none."""
    spans: tuple[ExplainedSpan, ...] = ()
    weights: tuple[float, ...] = ()
    """Loss weight of each span; none for a row that leaves."""
    turns: tuple[ExplainedTurn, ...] = ()
    examples: tuple[ExplainedExample, ...] = ()
    control_hits: tuple[tuple[int, int], ...] = ()
    """Characters [start, end) of control-token text in content."""
    roles: dict[int, str] = {}
    """Recorded index → who speaks."""
    code: str | None = None
    """Of a row that leaves."""
    message: str | None = None
    at: int | None = None
    """Recorded index of the message at fault."""
    repairs: tuple[str, ...] = ()
    """Those that changed the row, in order."""

    def as_json(self) -> dict[str, Json]:
        """One line of `explain --json`."""
        first = self.examples[0] if self.examples else None
        value: dict[str, Json] = {
            "row": self.row,
            "id": self.id,
            "text": self.text,
            "spans": msgspec.to_builtins(self.spans),
            "input_ids": msgspec.to_builtins(first.input_ids) if first else None,
            "labels": msgspec.to_builtins(first.labels) if first else None,
            "turns": msgspec.to_builtins(self.turns),
            "examples": [_without_tokens(example) for example in self.examples],
        }
        if self.repairs:
            value["repairs"] = list(self.repairs)
        if self.code is not None:
            value |= {"code": self.code, "message": self.message}
        if self.control_hits and self.text is not None:
            hits = [{"start": start, "end": end, "text": self.text[start:end]} for start, end in self.control_hits]
            value["control_hits"] = hits
        return value


def _without_tokens(example: ExplainedExample) -> dict[str, Json]:
    value: dict[str, Json] = msgspec.to_builtins(example)
    del value["tokens"]
    return value


def explain_accepted(
    row: int,
    place: str,
    conversation: Conversation,
    rendered: Rendered,
    policy: Policy,
    tokenized: tuple[Sequence[Part], NDArray[np.int64]] | None,
) -> Explanation:
    """A row that gave an example, or several parts of one.

    Args:
        row: its number.
        place: source, file and line.
        conversation: the row.
        rendered: its whole text.
        policy: its loss.
        tokenized: the parts, and the characters [start, end) of each token of the whole text, (tokens, 2); None
            without a tokenizer.
    """
    wanted = [policy.weight(span) for span in rendered.spans]
    if tokenized is None:
        kept, weights = [(0, len(rendered.text))], wanted
        shown = [ExplainedExample(0, rendered.text, _explained_spans(rendered.spans, wanted))]
    else:
        views = [_View(rendered, part, tokenized[1]) for part in tokenized[0]]
        of_parts = [view.weights(wanted) for view in views]
        weights = [max(of_span) for of_span in zip(*of_parts, strict=True)]
        kept = [stretch for view in views for stretch in view.characters]
        shown = [view.shown(of_part) for view, of_part in zip(views, of_parts, strict=True)]
    spans = _explained_spans(rendered.spans, weights)
    return Explanation(
        row=row,
        id=conversation.id,
        place=place,
        text=rendered.text,
        spans=spans,
        weights=tuple(weights),
        turns=_turns(conversation, rendered, policy, kept),
        examples=tuple(shown),
        control_hits=rendered.control_hits,
        roles=roles_of(conversation),
        repairs=_repairs_of(conversation),
    )


def explain_together(
    row: Conversation, explained: Sequence[Explanation], policy: Policy, rendered: Rendered
) -> Explanation:
    """One explanation of a row that trains in several renders: the last one's text, and the examples of all.

    Args:
        row: the whole conversation.
        explained: each render, in order.
        policy: the row's own loss.
        rendered: the last render.
    """
    trained = {turn.message for one in explained for turn in one.turns if turn.trained}
    kept = [(0, len(rendered.text))]
    turns = []
    for turn in _turns(row, rendered, policy, kept):
        why = "trained" if turn.message in trained else "cut" if turn.trained else turn.why
        turns.append(ExplainedTurn(turn.message, why == "trained", why))
    return msgspec.structs.replace(
        explained[-1],
        id=row.id,
        roles=roles_of(row),
        turns=tuple(turns),
        examples=tuple(example for one in explained for example in one.examples),
    )


def explain_left(
    row: int, place: str, fault: Rejected, conversation: Conversation | None, *, has_id: bool, rendered: Rendered | None
) -> Explanation:
    """A row that leaves.

    Args:
        row: its number.
        place: source, file and line.
        fault: why.
        conversation: what is known of it.
        has_id: whether it was checked, so that its id stands for something.
        rendered: its text, where it came so far.
    """
    roles = roles_of(conversation) if conversation else {}
    return Explanation(
        row=row,
        id=conversation.id if conversation and has_id else None,
        place=place,
        text=rendered.text if rendered else None,
        spans=_explained_spans(rendered.spans, [0.0] * len(rendered.spans)) if rendered else (),
        turns=tuple(ExplainedTurn(message, False, f"rejected:{fault.code}") for message in roles),
        control_hits=rendered.control_hits if rendered else (),
        roles=roles,
        code=fault.code,
        message=fault.message,
        at=fault.at,
        repairs=_repairs_of(conversation) if conversation else (),
    )


def _repairs_of(conversation: Conversation) -> tuple[str, ...]:
    return tuple(conversation.meta.get("repairs", ()))


def place_of(conversation: Conversation) -> str:
    """Source, file and line of a row."""
    meta = conversation.meta
    return f"{conversation.source}: {meta.get('source_file', '')}:{meta.get('source_line', '')}"


def roles_of(conversation: Conversation) -> dict[int, str]:
    """Recorded index → who speaks, in recorded order."""
    roles = {m.recorded: m.role for m in conversation.messages if m.recorded != NOT_RECORDED}
    return dict(sorted(roles.items()))


class _View:
    """One part of an example over the text it comes from.

    Attributes:
        characters: the stretches [start, end) of the text that it holds.
    """

    def __init__(self, rendered: Rendered, part: Part, offsets: NDArray[np.int64]) -> None:
        self._rendered, self._example = rendered, part.example
        places = np.concatenate([np.arange(stretch.start, stretch.end) for stretch in part.stretches])
        self._offsets = offsets[places]
        self.characters = [
            (int(offsets[start, 0]) if start else 0, int(offsets[end - 1, 1])) for start, end, _ in part.stretches
        ]

    def weights(self, wanted: Sequence[float]) -> list[float]:
        """The weights of the tokens in each span, 0 where none trains: cut off, context, or across a border."""
        runs = self._example.runs
        of_tokens = loss_weights([run.end for run in runs], [run.weight for run in runs])
        starts, ends = self._offsets[:, 0], self._offsets[:, 1]
        return [
            float(of_tokens[(starts < span.end) & (ends > span.start)].max(initial=0.0)) if weight > 0 else 0.0
            for span, weight in zip(self._rendered.spans, wanted, strict=True)
        ]

    def shown(self, weights: Sequence[float]) -> ExplainedExample:
        """The part's own text, spans and tokens."""
        text = "".join(self._rendered.text[start:end] for start, end in self.characters)
        spans = tuple(self._spans(_explained_spans(self._rendered.spans, weights)))
        shown = ExplainedExample(self._example.part, text, spans)
        return _with_tokens(shown, self._example, self._rendered.text, self._offsets)

    def _spans(self, spans: Sequence[ExplainedSpan]) -> Iterator[ExplainedSpan]:
        shift = 0
        for low, high in self.characters:
            for span in spans:
                if span.start < high and span.end > low:
                    start, end = max(span.start, low) - low + shift, min(span.end, high) - low + shift
                    yield msgspec.structs.replace(span, start=start, end=end)
            shift += high - low


def _explained_spans(spans: Sequence[Span], weights: Sequence[float]) -> tuple[ExplainedSpan, ...]:
    return tuple(
        ExplainedSpan(span.start, span.end, _recorded(span.message), span.kind, weight > 0)
        for span, weight in zip(spans, weights, strict=True)
    )


def _recorded(message: int) -> int | None:
    return None if message == NOT_RECORDED else message


def _with_tokens(shown: ExplainedExample, example: Example, text: str, offsets: NDArray[np.int64]) -> ExplainedExample:
    ends, run_weights = [run.end for run in example.runs], [run.weight for run in example.runs]
    ids = tuple(map(int, example.input_ids))
    found = labels(ids, ends, run_weights).tolist()
    weights = loss_weights(ends, run_weights).tolist()
    tokens: list[ExplainedToken] = []
    run = seen = 0
    for number, token in enumerate(ids):
        if number >= ends[run]:
            run += 1
        start, end = offsets[number].tolist()
        own = text[max(start, seen) : end]
        seen = max(seen, end)
        owner = example.runs[run]
        tokens.append(ExplainedToken(own, token, found[number], weights[number], _recorded(owner.message), owner.kind))
    return msgspec.structs.replace(
        shown, input_ids=ids, labels=tuple(found), weights=tuple(weights), tokens=tuple(tokens)
    )


def _turns(
    conversation: Conversation, rendered: Rendered, policy: Policy, kept: Sequence[tuple[int, int]]
) -> tuple[ExplainedTurn, ...]:
    """Why each recorded message does or does not train."""
    turns: list[ExplainedTurn] = []
    for message in roles_of(conversation):
        spans = [span for span in rendered.spans if span.message == message]
        is_cut = bool(spans) and not any(span.start < end and span.end > start for span in spans for start, end in kept)
        why = policy.why(message, [span.kind for span in spans], is_cut=is_cut)
        turns.append(ExplainedTurn(message, why == "trained", why))
    return tuple(turns)
