"""The tokens of a row as an explanation tells them: where each stands, who wrote it, and why it trains or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import NOT_RECORDED
from turnmill.rendered import KINDS, Example, Kind, Rendered
from turnmill.tokens.fit import Part
from turnmill.tokens.labels import loss_weights, per_token
from turnmill.tokens.loss import Policy

TokenWhy = Literal[
    "trained", "template", "role", "reasoning-off", "not-last", "weight-zero", "context", "straddles", "cut"
]
WHYS: tuple[TokenWhy, ...] = (
    "trained", "template", "role", "reasoning-off", "not-last", "weight-zero", "context", "straddles", "cut",
)  # fmt: skip
"""Why a token does or does not train: as of a span; `context`, it trains in another example of the row; `straddles`, it
has characters that train and characters that do not; `cut`, no example has it."""

Stretch = tuple[int, int]
"""Characters [start, end)."""
Numbers = NDArray[np.int64]


class ExplainedRun(msgspec.Struct, frozen=True):
    """Tokens up to `end` (from the run before), all of one message and kind that train, or not, for one reason."""

    end: int
    message: int | None
    kind: Kind
    why: TokenWhy


class Facts(NamedTuple):
    """What is told of some tokens beside their ids, labels and weights."""

    offsets: tuple[Stretch, ...]
    """Of each token, counted in the text that they are shown with."""
    runs: tuple[ExplainedRun, ...]
    control: tuple[int, ...]
    """Which are control tokens."""
    bytes: tuple[tuple[int, str], ...]
    """Which stand for bytes that are no whole character, and the bytes (hex)."""


class ExplainedCut(msgspec.Struct, frozen=True):
    """Characters [start, end) of the text that no example has, and their tokens."""

    start: int
    end: int
    input_ids: tuple[int, ...]
    offsets: tuple[Stretch, ...]
    """Counted from `start`."""
    runs: tuple[ExplainedRun, ...]
    control: tuple[int, ...]
    bytes: tuple[tuple[int, str], ...]


class Tokenized(NamedTuple):
    """All tokens of a rendered row, and the parts of them that are examples."""

    parts: Sequence[Part]
    ids: NDArray[np.int32]
    offsets: Numbers
    """(tokens, 2): the characters [start, end) of each."""
    control: NDArray[np.bool_]
    """(tokens,)"""
    bytes_of: Callable[[int], bytes | None]
    """Id → the bytes that it stands for, where its vocabulary spells them."""


class TokenTeller:
    """Tells of the tokens of one rendered row.

    Args:
        rendered: its text.
        tokenized: the tokens.
        policy: of the whole row: what one of its renders does not train, another may.
    """

    def __init__(self, rendered: Rendered, tokenized: Tokenized, policy: Policy) -> None:
        self._spans, self._tokenized = rendered.spans, tokenized
        self._whys = np.array([WHYS.index(policy.why_of(span)) for span in rendered.spans], dtype=np.int64)
        ends = np.array([span.end for span in rendered.spans], dtype=np.int64)
        starts = tokenized.offsets[:, 0]
        reached = np.maximum(tokenized.offsets[:, 1] - 1, starts)
        last = max(0, len(ends) - 1)
        self._low = np.minimum(np.searchsorted(ends, starts, side="right"), last)
        self._high = np.minimum(np.searchsorted(ends, reached, side="right"), last)
        self._is_broken = broken(tokenized.offsets)

    def part(self, example: Example, places: Numbers, characters: Sequence[Stretch]) -> Facts:
        """The tokens of an example.

        Args:
            example: the example.
            places: (tokens,) which of the row's tokens they are.
            characters: the stretches of the row's text that the example's text is made of.
        """
        ends = [run.end for run in example.runs]
        messages = per_token(ends, [run.message for run in example.runs])
        kinds = per_token(ends, [KINDS.index(run.kind) for run in example.runs])
        weights = loss_weights(ends, [run.weight for run in example.runs])
        whys = np.where(weights > 0, WHYS.index("trained"), self._why_not(places))
        return self._facts(places, _shifted(self._tokenized.offsets[places], characters), (messages, kinds, whys))

    def cuts(self, places: Sequence[Numbers]) -> tuple[ExplainedCut, ...]:
        """What none of the examples has, in order.

        Args:
            places: of each example, which of the row's tokens it has.
        """
        is_kept = np.zeros(len(self._tokenized.ids) + 2, dtype=np.bool_)
        is_kept[[0, -1]] = True
        for one in places:
            is_kept[one + 1] = True
        edges = np.flatnonzero(np.diff(is_kept.astype(np.int8)))
        return tuple(self._cut(*pair) for pair in edges.reshape(-1, 2).tolist())

    def _cut(self, first: int, behind: int) -> ExplainedCut:
        offsets = self._tokenized.offsets[first:behind]
        start, end = int(offsets[0, 0]), int(offsets[-1, 1])
        places = np.arange(first, behind)
        spans = [self._spans[number] for number in self._low[places].tolist()]
        messages = np.array([span.message for span in spans])
        kinds = np.array([KINDS.index(span.kind) for span in spans])
        whys = np.full(len(places), WHYS.index("cut"))
        facts = self._facts(places, offsets - start, (messages, kinds, whys))
        return ExplainedCut(start, end, tuple(self._tokenized.ids[places].tolist()), *facts)

    def _why_not(self, places: Numbers) -> Numbers:
        """(tokens,) why each would not train, which of `WHYS`."""
        low, high = self._low[places], self._high[places]
        is_wanted = self._whys == WHYS.index("trained")
        wanted = np.concatenate(([0], np.cumsum(is_wanted)))
        found = wanted[high + 1] - wanted[low]
        straddles = (found > 0) & (found <= high - low)
        of_span = np.where(is_wanted, WHYS.index("context"), self._whys)[low]
        return np.where(straddles, WHYS.index("straddles"), of_span)

    def _facts(self, places: Numbers, offsets: Numbers, said: tuple[NDArray[np.generic], ...]) -> Facts:
        is_control, ids = self._tokenized.control[places], self._tokenized.ids[places]
        spelt = [(place, self._tokenized.bytes_of(int(ids[place]))) for place in _true(self._is_broken[places])]
        return Facts(
            offsets=tuple((start, end) for start, end in offsets.tolist()),
            runs=tuple(_runs(*said)),
            control=tuple(_true(is_control)),
            bytes=tuple((place, found.hex()) for place, found in spelt if found is not None),
        )


def broken(offsets: Numbers) -> NDArray[np.bool_]:
    """(tokens,) whether each shares a character with a neighbour: the character's bytes are spread over them.

    Args:
        offsets: (tokens, 2).
    """
    found = np.zeros(len(offsets), dtype=np.bool_)
    shares = offsets[1:, 0] < np.maximum.accumulate(offsets[:, 1])[:-1]
    found[1:] |= shares
    found[:-1] |= shares
    return found


def recorded(message: int) -> int | None:
    """A message's recorded index; None where no recorded message is behind it."""
    return None if message == NOT_RECORDED else message


def _shifted(offsets: Numbers, characters: Sequence[Stretch]) -> Numbers:
    """Offsets in a text that is put together of stretches, of offsets in the text that they are taken from."""
    starts = np.array([start for start, _ in characters], dtype=np.int64)
    lengths = [end - start for start, end in characters]
    shifts = np.cumsum([0, *lengths[:-1]], dtype=np.int64) - starts
    of_token = np.maximum(np.searchsorted(starts, offsets[:, 0], side="right") - 1, 0)
    return offsets + shifts[of_token][:, None]


def _runs(
    messages: NDArray[np.generic], kinds: NDArray[np.generic], whys: NDArray[np.generic]
) -> Sequence[ExplainedRun]:
    said = np.stack((messages, kinds, whys))
    changes = np.flatnonzero((said[:, 1:] != said[:, :-1]).any(axis=0)) + 1
    edges = [0, *changes.tolist(), said.shape[1]]
    told = []
    for start, end in pairwise(edges):
        message, kind, why = said[:, start].tolist()
        told.append(ExplainedRun(end, recorded(message), KINDS[kind], WHYS[why]))
    return told


def _true(which: NDArray[np.bool_]) -> list[int]:
    found: list[int] = np.flatnonzero(which).tolist()
    return found
