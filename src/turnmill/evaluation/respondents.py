"""Who is asked: what a local model and an endpoint have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from turnmill.conversation import Json
from turnmill.evaluation.questions import Question
from turnmill.scorers import Unscored

LEAST_ROOM = 32


class Sampling(NamedTuple):
    """How answers are drawn."""

    temperature: float = 0.0
    """0: the likeliest token each time."""
    top_p: float = 1.0
    """Of the likeliest tokens, those that together have this probability."""
    seed: int = 0
    max_new_tokens: int | None = None
    """None: half as many again as were recorded, and `LEAST_ROOM` more at the least."""

    def room(self, question: Question) -> int:
        """Tokens that an answer may have."""
        recorded = len(question.answer_ids)
        return self.max_new_tokens or recorded + max(LEAST_ROOM, recorded // 2)


class Answer(NamedTuple):
    """What was said, or why nothing was."""

    text: str
    ended: bool = True
    """Whether it came to an end by itself."""
    fault: str | None = None
    """Why there is no answer."""


class Respondent(Protocol):
    """A model that can be asked."""

    @property
    def identity(self) -> dict[str, Json]:
        """What its answers depend on, as far as can be told."""
        ...

    @property
    def costless(self) -> str | None:
        """Why it cannot say what the recorded answers cost it; None where it can."""
        ...

    def recorded(self, question: Question) -> str:
        """The recorded answer in the form in which this one answers."""
        ...

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """Number and answer of each, in the order in which they come."""
        ...

    def costs(self, questions: Sequence[Question]) -> Iterator[tuple[int, float | Unscored]]:
        """Number of each, and the nats of its answer's trained tokens."""
        ...
