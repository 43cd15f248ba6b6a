"""Which spans train, and how much: recorded weights and loss options, before any token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from turnmill.conversation import Conversation
from turnmill.rendered import TRAINED_KINDS, Kind, Loss, Span

Why = Literal["trained", "weight-zero", "not-last", "reasoning-off", "cut", "context", "role", "quoted"]
"""Why a message does or does not train; a row that was rejected says `rejected:CODE` instead."""

SpanWhy = Literal["trained", "template", "role", "reasoning-off", "not-last", "weight-zero"]
"""Why a span does or does not train: `template`, no message's text; `role`, of one that nothing is learnt from."""

MAY_TRAIN: frozenset[Kind] = TRAINED_KINDS | {"result"}


class Policy:
    """One row's loss, span by span.

    Args:
        conversation: the row.
        loss: the options.
    """

    def __init__(self, conversation: Conversation, loss: Loss) -> None:
        self._loss = loss
        self.turns = turns_of(conversation)
        self._turn_of = {recorded: turn for turn, members in enumerate(self.turns) for recorded in members}
        self._weights = recorded_weights(conversation)

    @property
    def scales_turns(self) -> bool:
        """Whether turns may weigh differently for their place in the row."""
        return self._loss.scaling != "uniform"

    def turn(self, span: Span) -> int:
        """The turn a span belongs to, -1 for none."""
        return self._turn_of.get(span.message, -1)

    def weights(self, spans: Sequence[Span]) -> list[float]:
        """Each span's weight before turns are scaled; 0 = it does not train."""
        return [self.weight(span) if span.kind in MAY_TRAIN else 0.0 for span in spans]

    def weight(self, span: Span) -> float:
        """The span's weight before turns are scaled; 0 = it does not train."""
        if span.kind == "result":
            return self._weights.get(span.message, 1.0) if self._loss.observations else 0.0
        if span.kind not in TRAINED_KINDS or span.message not in self._turn_of:
            return 0.0
        if span.kind == "reasoning" and not self._loss.reasoning:
            return 0.0
        if self._loss.turns == "last" and self.turn(span) != len(self.turns) - 1:
            return 0.0
        return self._weights.get(span.message, 1.0)

    def why_of(self, span: Span) -> SpanWhy:
        """Why the tokens of a span train, or what keeps them from it."""
        if self.weight(span) > 0:
            return "trained"
        if span.kind in ("frame", "scaffold"):
            return "template"
        if span.kind == "result":
            return "weight-zero" if self._loss.observations else "role"
        if span.kind not in TRAINED_KINDS or span.message not in self._turn_of:
            return "role"
        if span.kind == "reasoning" and not self._loss.reasoning:
            return "reasoning-off"
        is_early = self._loss.turns == "last" and self.turn(span) != len(self.turns) - 1
        return "not-last" if is_early else "weight-zero"

    def scales(self, tokens: Mapping[int, int]) -> dict[int, float]:
        """The scale of each trained turn, mean 1 over the row's trained tokens.

        Args:
            tokens: turn → its trained tokens; -1 for trained tokens of no turn (observations), whose scale is 1.

        Returns:
            turn → scale. `progressive` is ((rank + 1) / turns) ** 0.5 over trained turns; `last-heavy` 2 for the last.
        """
        trained = sorted(turn for turn, count in tokens.items() if turn >= 0 and count)
        if self._loss.scaling == "uniform" or len(trained) < 2:
            return {}
        raw = dict.fromkeys(trained, 1.0)
        if self._loss.scaling == "last-heavy":
            raw[trained[-1]] = 2.0
        else:
            raw = {turn: ((rank + 1) / len(trained)) ** 0.5 for rank, turn in enumerate(trained)}
        raw[-1] = 1.0
        total = sum(tokens.values())
        mean = sum(raw[turn] * count for turn, count in tokens.items() if turn in raw) / total
        return {turn: scale / mean for turn, scale in raw.items()}

    def why(self, message: int, kinds: Sequence[str], *, is_cut: bool) -> Why:
        """Why a recorded message does or does not train.

        Args:
            message: its recorded index.
            kinds: the kinds of its spans in the text.
            is_cut: whether its text was cut off by `fit`.
        """
        turn = self._turn_of.get(message)
        if turn is None and not ("result" in kinds and self._loss.observations):
            return "role"
        if self._weights.get(message) == 0:
            return "weight-zero"
        if turn is not None and self._loss.turns == "last" and turn != len(self.turns) - 1:
            return "not-last"
        if is_cut:
            return "cut"
        written = set(kinds) - {"frame", "scaffold"}
        if written <= {"reasoning"} and not self._loss.reasoning:
            return "reasoning-off"
        return "trained" if written & (TRAINED_KINDS | {"result"}) else "quoted"


def turns_of(conversation: Conversation) -> list[tuple[int, ...]]:
    """Turn by turn the recorded indices of its messages: a turn is a run of assistant messages, written as one."""
    turns: list[list[int]] = []
    previous = ""
    for message in conversation.messages:
        if message.role == "assistant":
            if previous != "assistant":
                turns.append([])
            if message.recorded not in turns[-1]:
                turns[-1].append(message.recorded)
        previous = message.role
    return [tuple(turn) for turn in turns]


def recorded_weights(conversation: Conversation) -> dict[int, float]:
    """Recorded index → recorded weight, of the messages that have one and are not the user's or the system's."""
    return {
        message.recorded: message.weight
        for message in conversation.messages
        if message.weight is not None and message.role in ("assistant", "tool")
    }
