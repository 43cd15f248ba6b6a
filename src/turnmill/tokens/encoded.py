"""Token ids of one text, and where in the text each token stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Edges(NamedTuple):
    """Where the spans of a text end among its tokens."""

    begun: list[int]
    """(spans,) tokens that begin before the end of each; of the last, all."""
    across: list[tuple[int, int]]
    """Tokens that lie across an edge, in order, and the last span that each reaches into."""


class Encoded:
    """Token ids of one text.

    Args:
        ids: (tokens,).
        offsets: (tokens, 2): the characters [start, end) of each token.
    """

    __slots__ = ("_offsets", "ids")

    def __init__(self, ids: NDArray[np.int32], offsets: NDArray[np.int64] | None) -> None:
        self.ids, self._offsets = ids, offsets

    @property
    def offsets(self) -> NDArray[np.int64]:
        """(tokens, 2): the characters [start, end) of each token."""
        if self._offsets is None:
            self._offsets = self._located()
        return self._offsets

    def _located(self) -> NDArray[np.int64]:
        raise NotImplementedError

    def places(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """(tokens asked for, 2): the characters [start, end) of some tokens."""
        return self.offsets[tokens]

    def moved(self, start: int) -> Encoded:
        """The same tokens where their text begins at a character of a longer one."""
        return _Moved(self, start)

    def edges(self, ends: Sequence[int]) -> Edges:
        """Where spans end.

        Args:
            ends: the character behind each span; they are disjoint, ordered and cover the text.
        """
        starts, reached = self.offsets[:, 0], np.maximum(self.offsets[:, 1] - 1, self.offsets[:, 0])
        bounds = np.array(ends)
        bounds[-1] = max(bounds[-1], int(reached.max(initial=0)) + 1)
        begun = np.searchsorted(starts, bounds)
        across = np.flatnonzero(reached >= np.repeat(bounds, np.diff(begun, prepend=0)))
        return _edges(begun, across, np.searchsorted(bounds, reached[across], side="right"))

    def crossed(self, borders: Sequence[int], is_whole: NDArray[np.bool_]) -> list[int]:
        """Those of the borders that a token lies across, in order.

        Args:
            borders: characters, in order.
            is_whole: by id, whether a token is never cut, so that no border is where one lies.
        """
        if not np.any(_reached(self.offsets, borders) > borders):
            return []
        reached = _reached(self.offsets[~is_whole[self.ids]], borders)
        return [border for border, end in zip(borders, reached.tolist(), strict=True) if border < end]


def _edges(begun: NDArray[np.int64], across: NDArray[np.int64], highs: NDArray[np.int64]) -> Edges:
    return Edges(begun.tolist(), list(zip(across.tolist(), highs.tolist(), strict=True)))


def _reached(offsets: NDArray[np.int64], borders: Sequence[int]) -> NDArray[np.int64]:
    """How far the tokens that begin before each border reach."""
    begun = np.searchsorted(offsets[:, 0], borders)
    return np.concatenate(([0], np.maximum.accumulate(offsets[:, 1])))[begun]


class _Moved(Encoded):
    """The tokens of a text that begins at a character of a longer one; their places are asked for rarely."""

    __slots__ = ("_encoded", "_start")

    def __init__(self, encoded: Encoded, start: int) -> None:
        super().__init__(encoded.ids, None)
        self._encoded, self._start = encoded, start

    def _located(self) -> NDArray[np.int64]:
        return self._encoded.offsets + self._start


class ByteEncoded(Encoded):
    """Token ids of a text whose bytes are the bytes of its tokens: their places are looked for where they are asked.

    Args:
        ids: (tokens,).
        text: in UTF-8.
        ends: (tokens,) the byte behind each token.
        characters: of the text.
    """

    __slots__ = ("_begins", "_characters", "_ends", "_text")

    def __init__(self, ids: NDArray[np.int32], text: bytes, ends: NDArray[np.int32], characters: int) -> None:
        super().__init__(ids, None)
        self._text, self._ends, self._characters = text, ends, characters
        self._begins: NDArray[np.int32] | None = None

    def _located(self) -> NDArray[np.int64]:
        """A token that holds some bytes of a character has the whole character as its place."""
        ends = self._ends
        starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
        if len(self._text) != self._characters:
            character = np.cumsum(self._begins_character(), dtype=np.int32) - 1
            starts, ends = character[starts], character[ends - 1] + 1
        return np.stack((starts, ends)).astype(np.int64).T  # each of the two in a row of memory

    def places(self, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
        """(tokens asked for, 2): the characters [start, end) of some tokens."""
        ends: NDArray[np.integer] = self._ends[tokens]
        starts: NDArray[np.integer] = np.where(tokens > 0, self._ends[tokens - 1], 0)
        if len(self._text) != self._characters:
            starts = np.searchsorted(self._characters_begin(), starts, side="right") - 1
            ends = np.searchsorted(self._characters_begin(), ends - 1, side="right")
        return np.stack((starts, ends)).astype(np.int64).T

    def _begins_character(self) -> NDArray[np.bool_]:
        """(bytes,) whether a character begins there."""
        begins: NDArray[np.bool_] = (np.frombuffer(self._text, dtype=np.uint8) & 0xC0) != 0x80
        return begins

    def edges(self, ends: Sequence[int]) -> Edges:
        """Where spans end: tokens lie one behind the other, so only the first that reaches an end can lie across it."""
        bounds = self._bytes_before(ends)
        last = np.searchsorted(self._ends, bounds)
        is_across = self._ends[last] > bounds
        if not is_across.any():
            return Edges((last + 1).tolist(), [])
        across = np.unique(last[is_across])
        return _edges(last + 1, across, np.searchsorted(bounds, self._ends[across] - 1, side="right"))

    def crossed(self, borders: Sequence[int], is_whole: NDArray[np.bool_]) -> list[int]:
        """Those of the borders that a token lies across, in order."""
        bounds = self._bytes_before(borders)
        last = np.searchsorted(self._ends, bounds)
        is_crossed = (bounds > 0) & (self._ends[last] > bounds) & ~is_whole[self.ids[last]]
        return [border for border, crossed in zip(borders, is_crossed.tolist(), strict=True) if crossed]

    def _bytes_before(self, places: Sequence[int]) -> NDArray[np.int32]:
        """(places,) the byte at which each character begins."""
        bounds = np.array(places, dtype=np.int32)
        if len(self._text) == self._characters:
            return bounds
        return self._characters_begin()[bounds]

    def _characters_begin(self) -> NDArray[np.int32]:
        """(characters + 1,) the byte at which each begins, and the end."""
        if self._begins is None:
            begins = np.flatnonzero(self._begins_character()).astype(np.int32)
            self._begins = np.append(begins, np.int32(len(self._text)))
        return self._begins
