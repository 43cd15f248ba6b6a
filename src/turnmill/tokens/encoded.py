"""Token ids of one text, and where in the text each token stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


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

    def tokens_before(self, places: Sequence[int]) -> list[int] | None:
        """How many tokens end at or before each character; None where a token lies across one, or it is not known."""
        return None


class ByteEncoded(Encoded):
    """Token ids of a text whose bytes are the bytes of its tokens: their places are looked for where they are asked.

    Args:
        ids: (tokens,).
        text: in UTF-8.
        ends: (tokens,) the byte behind each token.
        characters: of the text.
    """

    __slots__ = ("_characters", "_ends", "_text")

    def __init__(self, ids: NDArray[np.int32], text: bytes, ends: NDArray[np.int32], characters: int) -> None:
        super().__init__(ids, None)
        self._text, self._ends, self._characters = text, ends, characters

    def _located(self) -> NDArray[np.int64]:
        """A token that holds some bytes of a character has the whole character as its place."""
        ends = self._ends
        starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
        if len(self._text) != self._characters:
            character = np.cumsum(self._begins_character(), dtype=np.int32) - 1
            starts, ends = character[starts], character[ends - 1] + 1
        return np.stack((starts, ends)).astype(np.int64).T  # each of the two in a row of memory

    def _begins_character(self) -> NDArray[np.bool_]:
        """(bytes,) whether a character begins there."""
        begins: NDArray[np.bool_] = (np.frombuffer(self._text, dtype=np.uint8) & 0xC0) != 0x80
        return begins

    def tokens_before(self, places: Sequence[int]) -> list[int] | None:
        """How many tokens end at or before each character; None where a token lies across one."""
        bounds = np.array(places, dtype=np.int32)
        if len(self._text) != self._characters:
            begins = np.flatnonzero(self._begins_character()).astype(np.int32)
            bounds = np.append(begins, np.int32(len(self._text)))[bounds]
        before = np.searchsorted(self._ends, bounds)
        if not len(self._ends) or not np.array_equal(self._ends[before], bounds):
            return None
        after: list[int] = (before + 1).tolist()
        return after
