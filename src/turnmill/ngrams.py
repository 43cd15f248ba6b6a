"""Word n-grams of texts as 64-bit hashes: what near-duplicates, and overlap with evaluation data, are told by.

A word is what stands between white space, in NFC and casefolded, without the punctuation around it; signs that carry
meaning (`+`, `-`, `=`, `<`, `%`, `#`) stay. In scripts that put no spaces between words (Han, kana, Thai, Lao, Khmer,
Burmese) every character is a word. A text of fewer than n words has one n-gram: all its words.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import xxhash

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff"  # radicals, numerals, kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"  # Han
)
"""Characters of scripts that put no spaces between words: blocks, which no version of Unicode changes."""
_PIECES = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")
AROUND = ".,;:!?…\"'“”„‘’‚«»‹›()[]{}*_`\u3001\u3002，！？：；（）「」『』《》【】"
"""Punctuation that is taken off both ends of a word."""
KNOWN_TOKENS = 1 << 18
"""So many different tokens are remembered; then all are forgotten, so that memory is bounded."""
MAX_KNOWN_LENGTH = 64
"""Characters; longer tokens are never remembered."""
GIANT_LENGTH = 1 << 16
"""Characters of a token whose words are taken one by one: a book without spaces is one token."""
MIX_1, MIX_2, STEP = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15
"""The constants of splitmix64 (Steele, Lea and Flood 2014)."""


class NGrams(NamedTuple):
    """The n-grams of some texts."""

    hashes: NDArray[np.uint64]
    """Of all n-grams, text by text, in the order of the text; one that is repeated is there each time."""
    starts: NDArray[np.int64]
    """Where each text's begin, and the end of the last: one more than there are texts."""
    words: NDArray[np.int64]
    """Words of each text."""


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    return [word for token in text.split() for piece in _pieces_of(token) if (word := piece.strip(AROUND))]


def shared_words(text: str, number: int, n: int) -> str:
    """The words of a text's n-gram of that number, counted from 0, with spaces between."""
    return " ".join(words(text)[number : number + n])


class NGramHasher:
    """Hashes the n-grams of texts; words that were met before cost a look-up.

    Equal words have equal hashes on every machine and in every version.

    Args:
        n: words of an n-gram, at least 1.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._known = _Tokens()

    def __call__(self, texts: Sequence[str]) -> NGrams:
        """The n-grams of texts."""
        import numpy as np

        hashes, lengths = self._known.hashed(texts)
        starts = _edges(lengths)
        counts = np.where(lengths >= self._n, lengths - self._n + 1, np.minimum(lengths, 1))
        edges = _edges(counts)
        first = np.repeat(starts[:-1] - edges[:-1], counts) + np.arange(edges[-1])
        end = np.repeat(starts[1:], counts)
        return NGrams(self._chained(hashes, first, end), edges, lengths)

    def _chained(
        self, hashes: NDArray[np.uint64], first: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """The hash of each n-gram: of the words from `first` on, none of them at or behind `end`."""
        import numpy as np

        padded = np.concatenate((hashes, np.zeros(self._n, dtype=np.uint64)))
        is_short = bool(len(first)) and bool((first + self._n > end).any())
        found = np.full(len(first), STEP, dtype=np.uint64)
        for number in range(self._n):
            at = first + number
            words_there = np.where(at < end, padded[at], np.uint64(0)) if is_short else padded[at]
            found = mixed(found * np.uint64(STEP) + words_there)
        return found


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64-bit values, every bit of which depends on every bit of the given ones (splitmix64's finish)."""
    import numpy as np

    values = (values ^ (values >> np.uint64(30))) * np.uint64(MIX_1)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(MIX_2)
    found: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return found


class _Tokens(dict[str, int]):
    """Token (what stands between white space) → its number; the words of a number lie side by side in `_hashes`."""

    def __init__(self) -> None:
        super().__init__()
        self._forget()

    def _forget(self) -> None:
        self.clear()
        self._hash_of = _Pieces()
        self._hashes, self._first, self._count = array("Q"), array("q"), array("q")

    def __missing__(self, token: str) -> int:
        number, first = len(self._first), len(self._hashes)
        self._hashes.extend(filter(None, map(self._hash_of.__getitem__, _pieces_of(token))))
        self._first.append(first)
        self._count.append(len(self._hashes) - first)
        if len(token) <= MAX_KNOWN_LENGTH:
            self[token] = number
        return number

    def hashed(self, texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The hashes of all words, text by text, and how many each text has."""
        import numpy as np

        if len(self._first) > KNOWN_TOKENS or len(self._hash_of) > KNOWN_TOKENS:
            self._forget()
        tokens = [text.split() for text in texts]
        lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
        numbers = np.fromiter(map(self.__getitem__, chain.from_iterable(tokens)), np.int64, int(lengths.sum()))
        hashes, first, counts = np.array(self._hashes), np.array(self._first), np.array(self._count)
        if not len(numbers):
            return np.zeros(0, dtype=np.uint64), np.zeros(len(texts), dtype=np.int64)
        edges = _edges(counts[numbers])
        at = np.repeat(first[numbers] - edges[:-1], counts[numbers]) + np.arange(edges[-1])
        return hashes[at], np.diff(edges[_edges(lengths)])


def _edges(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where stretches of such lengths begin, and the end of the last."""
    import numpy as np

    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)))


class _Pieces(dict[str, int]):
    """Piece of a token → the hash of the word in it, never 0; 0 where it is punctuation alone."""

    def __missing__(self, piece: str) -> int:
        word = piece.strip(AROUND)
        found = xxhash.xxh3_64_intdigest(word.encode("utf-8", "surrogatepass")) | 1 if word else 0
        if len(piece) <= MAX_KNOWN_LENGTH:
            self[piece] = found
        return found


def _pieces_of(token: str) -> Iterable[str]:
    """The words of a token, with the punctuation around them."""
    if token.isascii():
        return (token.lower(),)
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", token).casefold())
    if len(folded) < GIANT_LENGTH:
        return _PIECES.findall(folded)
    return (match[0] for match in _PIECES.finditer(folded))
