"""What a conversation becomes: text with spans, then tokens with runs. Arrays begin in `turnmill.tokens`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

Kind = Literal[
    "frame", "system", "user", "tools", "reasoning", "answer", "call", "result", "stop", "scaffold"
]  # fmt: skip
KINDS: tuple[Kind, ...] = (
    "frame", "system", "user", "tools", "reasoning", "answer", "call", "result", "stop", "scaffold",
)  # fmt: skip
"""Who wrote a character: `frame` and `scaffold` are the template's (headers; an empty think block), `stop` ends a turn,
the rest are named for the text they hold. The order is stored (a run's kind is an index): append only."""

TRAINED_KINDS: frozenset[Kind] = frozenset({"reasoning", "answer", "call", "stop"})
"""What the model itself writes at inference."""


class Span(msgspec.Struct, frozen=True):
    """Characters [start, end) of the text, all of one message and kind."""

    start: int
    end: int
    message: int
    """Index in the recorded message list, -1 where no recorded message is behind it."""
    kind: Kind


class Rendered(msgspec.Struct, frozen=True):
    """One conversation as the template writes it."""

    text: str
    spans: tuple[Span, ...]
    """Disjoint, ordered, covering the text."""
    prompt_ends: tuple[int, ...]
    """Character where each assistant turn's generation prompt ends, in turn order."""
    control_hits: tuple[tuple[int, int], ...] = ()
    """Characters [start, end) of control-token text of which content wrote at least one character, in order."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Which spans the model learns from, and how much. Knows nothing of tokens."""

    turns: Literal["all", "last"] = "all"
    """Train every assistant turn, or only the last."""
    reasoning: bool = True
    """Train reasoning."""
    observations: bool = False
    """Train the results of tools as well."""
    scaling: Literal["uniform", "progressive", "last-heavy"] = "uniform"
    """Weight of turns: equal; ((rank + 1) / turns) ** 0.5; or 2 for the last, 1 for the rest. Mean 1 a row."""
    fractional: bool = False
    """Admit recorded weights other than 0 and 1."""


class Run(msgspec.Struct, frozen=True):
    """Tokens up to `end` (from the run before), all of one message, kind and weight."""

    end: int
    message: int
    kind: Kind
    weight: float
    """Loss weight; 0 = ignored."""


class Example(msgspec.Struct, frozen=True):
    """One training example: (`row_id`, `part`) is its key."""

    row_id: str
    part: int
    source: str
    source_file: str
    source_line: int
    input_ids: Sequence[int]
    """A list where it is read back; (tokens,) int32 where it is made."""
    runs: list[Run]
    """Covering the tokens, in order."""
    turn_ends: list[int]
    """Token offsets after each trained turn's stop: where an example may be cut."""
