"""What became of one row: its text by kind, its tokens and labels, and why each message does or does not train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import NOT_RECORDED, Conversation, Json
from turnmill.errors import Rejected
from turnmill.rendered import Kind, Rendered, Span
from turnmill.report.explained_tokens import ExplainedCut, ExplainedRun, Stretch, Tokenized, TokenTeller, recorded
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
    role: str = ""
    """Who speaks."""


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
    """None without a tokenizer, as are labels and weights; what follows them is empty then."""
    labels: tuple[int, ...] | None = None
    weights: tuple[float, ...] | None = None
    offsets: tuple[Stretch, ...] = ()
    """Characters [start, end) of each token, in the example's own text."""
    runs: tuple[ExplainedRun, ...] = ()
    """Whose the tokens are, and why they train or not."""
    control: tuple[int, ...] = ()
    """Which tokens are control tokens."""
    bytes: tuple[tuple[int, str], ...] = ()
    """Which tokens stand for bytes that are no whole character, and the bytes (hex)."""
    kept: tuple[Stretch, ...] | None = None
    """Of the row's text, what the example's text is put together of; None where that is of another render."""
    nll: tuple[float | None, ...] | msgspec.UnsetType = msgspec.UNSET
    """Nats that each token costs a model, given those before it; None for the first; unset where none was asked."""

    @property
    def tokens(self) -> tuple[ExplainedToken, ...]:
        """Its tokens, one by one; none without a tokenizer."""
        return tuple(self._tokens())

    def _tokens(self) -> Iterator[ExplainedToken]:
        told = zip(self.offsets, self.input_ids or (), self.labels or (), self.weights or (), strict=True)
        seen = place = 0
        for run in self.runs:
            for (start, end), token, label, weight in islice(told, run.end - place):
                own = self.text[max(start, seen) : end]
                yield ExplainedToken(own, token, label, weight, run.message, run.kind)
                seen = max(seen, end)
            place = run.end


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
    cut: tuple[ExplainedCut, ...] = ()
    """What of the text no example has, with its tokens; none without a tokenizer."""
    max_tokens: int | None = None
    """That an example may have; None without a tokenizer."""
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
            "examples": msgspec.to_builtins(self.examples),
            "cut": msgspec.to_builtins(self.cut),
            "max_tokens": self.max_tokens,
        }
        if self.repairs:
            value["repairs"] = list(self.repairs)
        if self.code is not None:
            value |= {"code": self.code, "message": self.message, "at": self.at}
        if self.control_hits and self.text is not None:
            hits = [{"start": start, "end": end, "text": self.text[start:end]} for start, end in self.control_hits]
            value["control_hits"] = hits
        return value


def explain_accepted(
    row: int,
    place: str,
    conversation: Conversation,
    rendered: Rendered,
    policy: Policy,
    tokenized: Tokenized | None,
    own_policy: Policy | None = None,
) -> Explanation:
    """A row that gave an example, or several parts of one.

    Args:
        row: its number.
        place: source, file and line.
        conversation: the row.
        rendered: its whole text.
        policy: its loss.
        tokenized: its tokens and parts; None without a tokenizer.
        own_policy: of the whole row, where this is one of several renders of it.
    """
    wanted = [policy.weight(span) for span in rendered.spans]
    cuts: tuple[ExplainedCut, ...] = ()
    if tokenized is None:
        kept, weights = [(0, len(rendered.text))], wanted
        shown = [ExplainedExample(0, rendered.text, _explained_spans(rendered.spans, wanted), kept=tuple(kept))]
    else:
        views = [_View(rendered, part, tokenized.offsets) for part in tokenized.parts]
        of_parts = [view.weights(wanted) for view in views]
        weights = [max(of_span) for of_span in zip(*of_parts, strict=True)]
        kept = [stretch for view in views for stretch in view.characters]
        teller = TokenTeller(rendered, tokenized, own_policy or policy)
        shown = [view.shown(of_part, teller) for view, of_part in zip(views, of_parts, strict=True)]
        cuts = teller.cuts([view.places for view in views])
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
        cut=cuts,
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
        turns.append(msgspec.structs.replace(turn, trained=why == "trained", why=why))
    others = [example for one in explained[:-1] for example in one.examples]
    return msgspec.structs.replace(
        explained[-1],
        id=row.id,
        roles=roles_of(row),
        turns=tuple(turns),
        examples=(*(msgspec.structs.replace(other, kept=None) for other in others), *explained[-1].examples),
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
        turns=tuple(ExplainedTurn(message, False, f"rejected:{fault.code}", role) for message, role in roles.items()),
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
        places: (tokens,) which of the row's tokens it holds.
        characters: the stretches [start, end) of the text that it holds.
    """

    def __init__(self, rendered: Rendered, part: Part, offsets: NDArray[np.int64]) -> None:
        self._rendered, self._example = rendered, part.example
        self.places = np.concatenate([np.arange(stretch.start, stretch.end) for stretch in part.stretches])
        self._offsets = offsets[self.places]
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

    def shown(self, weights: Sequence[float], teller: TokenTeller) -> ExplainedExample:
        """The part's own text, spans and tokens."""
        example = self._example
        ends, run_weights = [run.end for run in example.runs], [run.weight for run in example.runs]
        facts = teller.part(example, self.places, self.characters)
        return ExplainedExample(
            example.part,
            "".join(self._rendered.text[start:end] for start, end in self.characters),
            tuple(self._spans(_explained_spans(self._rendered.spans, weights))),
            tuple(map(int, example.input_ids)),
            tuple(labels(example.input_ids, ends, run_weights).tolist()),
            tuple(loss_weights(ends, run_weights).tolist()),
            *facts,
            kept=tuple(self.characters),
        )

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
        ExplainedSpan(span.start, span.end, recorded(span.message), span.kind, weight > 0)
        for span, weight in zip(spans, weights, strict=True)
    )


def _turns(
    conversation: Conversation, rendered: Rendered, policy: Policy, kept: Sequence[tuple[int, int]]
) -> tuple[ExplainedTurn, ...]:
    """Why each recorded message does or does not train."""
    turns: list[ExplainedTurn] = []
    for message, role in roles_of(conversation).items():
        spans = [span for span in rendered.spans if span.message == message]
        is_cut = bool(spans) and not any(span.start < end and span.end > start for span in spans for start, end in kept)
        why = policy.why(message, [span.kind for span in spans], is_cut=is_cut)
        turns.append(ExplainedTurn(message, why == "trained", why, role))
    return tuple(turns)
