"""Near-duplicates: rows whose texts share most of their word n-grams, found by MinHash and locality-sensitive hashing.

Broder, "On the resemblance and containment of documents" (1997); Indyk and Motwani, "Approximate nearest neighbors"
(1998). Hashing only proposes pairs: each is compared by the exact Jaccard similarity of its two sets of n-grams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from math import ceil, log
from typing import TYPE_CHECKING, NamedTuple

from turnmill.ngrams import STEP, NGramHasher, mixed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNSAID = ("system", "developer")
"""Roles whose texts are left out: a long prompt that many rows share would make all of them near-duplicates."""
RECALL = 0.99
"""Of the pairs at the threshold itself, so many are proposed; of more similar ones, more."""
MAX_BANDS = 16
MAX_BAND_ROWS = 16
MAX_LEADERS = 32
"""Rows of a bucket that the others are compared with: what bounds a bucket of a hundred thousand rows."""
DEPTH = 3
"""How often a bucket's followers are compared among themselves, should those that they follow leave themselves."""
REMEMBERED_PAIRS = 1 << 20

Similarity = Callable[[int, int], float]
"""(number, number) → the exact Jaccard similarity of two texts' sets of n-grams."""


class Bands(NamedTuple):
    """How a signature is cut: texts that agree on all rows of a band are compared."""

    number: int
    rows: int


class Sketch(NamedTuple):
    """What is kept of some texts."""

    sets: NDArray[np.uint64]
    """The n-grams of each text, sorted, each once."""
    starts: NDArray[np.int64]
    """Where each text's set begins, and the end of the last."""
    digests: NDArray[np.uint64]
    """Equal where the sets are equal."""
    keys: NDArray[np.uint64]
    """(texts, bands): what two texts that agree on a band share."""

    def set_of(self, number: int) -> NDArray[np.uint64]:
        """One text's set."""
        return self.sets[self.starts[number] : self.starts[number + 1]]


class NearPair(NamedTuple):
    """Two texts that are near-duplicates."""

    first: int
    """The lower number."""
    second: int
    similarity: float


def said(messages: Iterable[Sequence[str]]) -> str:
    """The text of a row that is compared: what all messages say, but for system prompts; no roles, no names.

    Args:
        messages: role and text of each, and what else there is.
    """
    return "\n".join(message[1] for message in messages if message[0] not in UNSAID)


@cache
def bands_of(threshold: float) -> Bands:
    """The longest bands with which `RECALL` of the pairs at the threshold agree on one of at most `MAX_BANDS`."""
    chosen = Bands(MAX_BANDS, 1)
    for rows in range(1, MAX_BAND_ROWS + 1):
        agreeing = threshold**rows
        count = 1 if agreeing >= RECALL else ceil(log(1 - RECALL) / log(1 - agreeing))
        if count <= MAX_BANDS:
            chosen = Bands(count, rows)
    return chosen


class Sketcher:
    """Makes sketches.

    Args:
        threshold: Jaccard similarity from which on texts are near-duplicates, above 0 to 1.
        ngram: words of an n-gram.
    """

    def __init__(self, threshold: float, ngram: int) -> None:
        self.bands = bands_of(threshold)
        self._ngrams = NGramHasher(ngram)

    def __call__(self, texts: Sequence[str]) -> Sketch:
        """The sketch of texts. One without words has an empty set, which is near nothing."""
        import numpy as np

        found = self._ngrams(texts)
        sets, starts = _as_sets(found.hashes, found.starts)
        full = np.diff(starts) > 0
        digests = np.zeros(len(texts), dtype=np.uint64)
        keys = np.zeros((len(texts), self.bands.number), dtype=np.uint64)
        if full.any():
            digests[full] = mixed(np.add.reduceat(mixed(sets), starts[:-1][full]))
            keys[full] = self._keys(sets, starts[:-1][full])
        return Sketch(sets, starts, digests, keys)

    def _keys(self, sets: NDArray[np.uint64], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
        import numpy as np

        number, rows = self.bands
        keys = np.empty((len(starts), number), dtype=np.uint64)
        multipliers = _multipliers(number * rows)
        for band in range(number):
            key = np.full(len(starts), band + 1, dtype=np.uint64)
            for multiplier in multipliers[band * rows : (band + 1) * rows]:
                key = mixed(key * np.uint64(STEP) + np.minimum.reduceat(sets * multiplier, starts))
            keys[:, band] = key
        return keys


def _as_sets(hashes: NDArray[np.uint64], starts: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Each stretch sorted, its repeats left out."""
    import numpy as np

    for start, end in pairwise(starts.tolist()):
        hashes[start:end].sort()
    is_first = np.ones(len(hashes), dtype=np.bool_)
    is_first[1:] = hashes[1:] != hashes[:-1]
    is_first[starts[:-1][np.diff(starts) > 0]] = True
    kept = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(is_first, dtype=np.int64)))
    return hashes[is_first], kept[starts]


def _multipliers(count: int) -> NDArray[np.uint64]:
    """Odd numbers: multiplication by one permutes the 64-bit numbers."""
    import numpy as np

    return mixed(np.arange(1, count + 1, dtype=np.uint64) * np.uint64(STEP)) | np.uint64(1)


def jaccard(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> float:
    """Shared members over all members of two sorted sets without repeats; 0 where both are empty."""
    import numpy as np

    both = np.concatenate((one, other))
    both.sort()
    shared = int(np.count_nonzero(both[1:] == both[:-1]))
    return shared / (len(both) - shared) if len(both) else 0.0


class Comparing:
    """Compares the texts of buckets, no pair twice.

    Args:
        set_of: number of a text → its sorted set.
        threshold: similarity from which on two are near-duplicates.
    """

    def __init__(self, set_of: Callable[[int], NDArray[np.uint64]], threshold: float) -> None:
        self._set_of, self._threshold = set_of, threshold
        self._known: dict[tuple[int, int], float] = {}
        self.compared = 0

    def pairs(
        self, keys: NDArray[np.uint64], numbers: NDArray[np.int64], digests: NDArray[np.uint64]
    ) -> list[NearPair]:
        """The near-duplicates among texts that share a key, in order.

        Of texts with equal sets the lowest stands for all. In a bucket of many texts not every pair is compared, but
        each text with the lowest that no lower one of the bucket is near.

        Args:
            keys: all entries of some keys, in any order.
            numbers: the text of each entry.
            digests: of that text's set.
        """
        found: dict[tuple[int, int], float] = {}
        for bucket in _buckets(keys, numbers, digests):
            found.update(self._bucket(bucket))
        return [NearPair(first, second, found[first, second]) for first, second in sorted(found)]

    def _bucket(self, members: list[int]) -> Iterator[tuple[tuple[int, int], float]]:
        for _ in range(DEPTH):
            leaders: list[int] = []
            followers: list[int] = []
            for member in members:
                follows = False
                for leader in leaders:
                    similarity = self._similarity(leader, member)
                    if similarity >= self._threshold:
                        follows = True
                        yield (leader, member), similarity
                if follows:
                    followers.append(member)
                elif len(leaders) < MAX_LEADERS:
                    leaders.append(member)
            if len(followers) < 2:
                return
            members = followers

    def _similarity(self, first: int, second: int) -> float:
        known = self._known.get((first, second))
        if known is None:
            if len(self._known) >= REMEMBERED_PAIRS:
                self._known.clear()
            known = self._known[first, second] = self._compare(first, second)
        return known

    def _compare(self, first: int, second: int) -> float:
        self.compared += 1
        one, other = self._set_of(first), self._set_of(second)
        fewer, more = sorted((len(one), len(other)))
        return jaccard(one, other) if fewer >= self._threshold * more else 0.0


def _buckets(keys: NDArray[np.uint64], numbers: NDArray[np.int64], digests: NDArray[np.uint64]) -> Iterator[list[int]]:
    """The texts of each key that two different sets have, in order, the lowest of each set alone."""
    import numpy as np

    order = np.argsort(keys)
    ordered = keys[order]
    same = ordered[1:] == ordered[:-1]
    is_shared = np.zeros(len(keys), dtype=np.bool_)
    is_shared[1:] |= same
    is_shared[:-1] |= same
    order = order[is_shared]
    if not len(order):
        return
    order = order[np.lexsort((numbers[order], digests[order], keys[order]))]
    keys, numbers, digests = keys[order], numbers[order], digests[order]
    is_first = np.concatenate(([True], (keys[1:] != keys[:-1]) | (digests[1:] != digests[:-1])))
    keys, numbers = keys[is_first], numbers[is_first]
    order = np.lexsort((numbers, keys))
    keys, numbers = keys[order], numbers[order]
    edges = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1], [True])))
    listed = numbers.tolist()
    for start, end in pairwise(edges.tolist()):
        if end - start > 1:
            yield listed[start:end]


def near_pairs(texts: Sequence[str], threshold: float = 0.8, ngram: int = 3) -> list[NearPair]:
    """The near-duplicates among texts in memory; of equal sets the lowest stands for all, see `Comparing.pairs`."""
    import numpy as np

    sketch = Sketcher(threshold, ngram)(texts)
    full = np.flatnonzero(np.diff(sketch.starts))
    keys = sketch.keys[full]
    numbers = np.repeat(full, keys.shape[1])
    comparing = Comparing(sketch.set_of, threshold)
    return comparing.pairs(keys.ravel(), numbers, sketch.digests[numbers])
