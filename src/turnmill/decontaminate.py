"""Overlap with evaluation data: rows that share an n-gram of words with an evaluation item.

As Brown et al., "Language Models are Few-Shot Learners" (2020, appendix C) have it; 13 words are theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from turnmill.conversation import Conversation, Json
from turnmill.dedup.near import UNSAID
from turnmill.dialects import Reading, convert, dialects
from turnmill.errors import MAX_QUOTED_CHARACTERS, Rejected, quote
from turnmill.ngrams import NGramHasher, NGrams, shared_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_WORDS = 3
"""An item of fewer words tells nothing: it is not compared, and counted."""
FLAT = ("prompt-response", "alpaca", "text")
"""Dialects whose records hold more than a chat: choices, tests, passages."""
SYSTEM_COLUMNS = ("system", "system_prompt", "system_message")


class Item(NamedTuple):
    """What an evaluation item says."""

    texts: tuple[str, ...]
    prompt: str
    """What is asked; the longest text where that is not told. Compared as a whole where it is short."""


class Index(NamedTuple):
    """The n-grams of evaluation items."""

    hashes: NDArray[np.uint64]
    """Sorted, each once."""
    items: NDArray[np.int64]
    """The first item that holds each."""
    skipped: int
    """Items of which nothing is compared: they have fewer than `MIN_WORDS` words."""


class Hit(NamedTuple):
    """Where a row says what an evaluation item says."""

    item: int
    text: int
    """Number of the row's text in which it is found first."""
    words: str
    """The shared words, as they are compared; at most 80 characters."""
    is_whole: bool
    """The text is the item's prompt, word for word, and shorter than an n-gram."""
    shared: int
    """N-grams of the row that stand in evaluation items."""

    def fault(self, place: str, at: int | None) -> Rejected:
        """Why the row leaves.

        Args:
            place: `FILE:LINE` of the item.
            at: recorded index of the message.
        """
        if self.is_whole:
            return Rejected("evaluation-item", f"says what {place} asks: {quote(self.words)}", at=at)
        more = f", and {self.shared - 1:,} more n-grams" if self.shared > 1 else ""
        return Rejected("evaluation-overlap", f"shares with {place}: {quote(self.words)}{more}", at=at)


def item_of(record: dict[str, Json], dialect: str | None) -> Item:
    """What the record of an evaluation item says.

    Args:
        record: as it was read.
        dialect: of its file; None where no dialect is told: then all its texts count.
    """
    try:
        conversation = convert(record, dialects.get(dialect), Reading()) if dialect else None
    except Rejected:
        conversation = None
    spoken = spoken_texts(conversation) if conversation else []
    texts = spoken if conversation and dialect not in FLAT else list(_texts_in(record))
    asked = (message.text for message in conversation.messages if message.role == "user") if conversation else ()
    return Item(tuple(texts), next(iter(asked), max(texts, key=len, default="")))


def spoken_texts(conversation: Conversation) -> list[str]:
    """What is said in an evaluation item that is a chat, but for system prompts."""
    return [message.text for message in conversation.messages if message.role not in UNSAID]


def _texts_in(value: Json) -> Iterator[str]:
    """All texts in a JSON value, but for system prompts; nesting is followed without recursion."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            waiting += [inner for key, inner in reversed(found.items()) if key not in SYSTEM_COLUMNS]
        elif isinstance(found, list):
            waiting += reversed(found)


class Indexing:
    """Makes an index of items that come batch by batch.

    Args:
        ngram: words of an n-gram.
    """

    def __init__(self, ngram: int) -> None:
        self._ngram = ngram
        self._hasher = NGramHasher(ngram)
        self._found: list[tuple[NDArray[np.uint64], NDArray[np.int64]]] = []
        self._items = self._skipped = 0

    def add(self, items: Sequence[Item]) -> None:
        """Take the next items."""
        import numpy as np

        texts = [text for item in items for text in (*item.texts, item.prompt)]
        sizes = [len(item.texts) + 1 for item in items]
        owners = np.repeat(np.arange(len(items)), sizes)
        is_prompt = np.zeros(len(texts), dtype=np.bool_)
        is_prompt[np.cumsum(sizes) - 1] = True
        grams = self._hasher(texts)
        compared = (grams.words >= self._ngram) | (is_prompt & (grams.words >= MIN_WORDS))
        self._skipped += len(items) - len(np.unique(owners[compared]))
        counts = np.diff(grams.starts)
        is_kept = np.repeat(compared, counts)
        self._found.append((grams.hashes[is_kept], np.repeat(owners, counts)[is_kept] + self._items))
        self._items += len(items)

    def index(self) -> Index:
        """The index of all items that were added."""
        import numpy as np

        hashes = np.concatenate([np.zeros(0, np.uint64), *(hashes for hashes, _ in self._found)])
        items = np.concatenate([np.zeros(0, np.int64), *(items for _, items in self._found)])
        unique, first = np.unique(hashes, return_index=True)
        return Index(unique, items[first], self._skipped)


class Overlap:
    """Finds rows that say what evaluation items say.

    Args:
        index: of the items.
        ngram: words of an n-gram, those of the index.
    """

    def __init__(self, index: Index, ngram: int) -> None:
        self._index, self._ngram = index, ngram
        self._hasher = NGramHasher(ngram)

    def hits(self, rows: Sequence[Sequence[str]]) -> list[Hit | None]:
        """What each row shares with evaluation items, at the first place where it does.

        Args:
            rows: the texts of each row's messages, of all roles.
        """
        import numpy as np

        texts = [text for row in rows for text in row]
        grams = self._hasher(texts)
        places = self._places(grams)
        at_text = np.searchsorted(grams.starts, places, side="right") - 1
        edges = np.cumsum([0, *map(len, rows)])
        bounds = np.searchsorted(at_text, edges).tolist()
        found: list[Hit | None] = []
        for row, (start, end) in enumerate(pairwise(bounds)):
            if start == end:
                found.append(None)
                continue
            text, place = int(at_text[start]), int(places[start])
            item = int(self._index.items[np.searchsorted(self._index.hashes, grams.hashes[place])])
            words = shared_words(texts[text], place - int(grams.starts[text]), self._ngram)
            is_whole = int(grams.words[text]) < self._ngram
            found.append(Hit(item, text - int(edges[row]), words[:MAX_QUOTED_CHARACTERS], is_whole, end - start))
        return found

    def _places(self, grams: NGrams) -> NDArray[np.int64]:
        """Which of the n-grams stand in the index."""
        import numpy as np

        if not len(self._index.hashes):
            return np.zeros(0, dtype=np.int64)
        at = np.searchsorted(self._index.hashes, grams.hashes)
        found = self._index.hashes[np.minimum(at, len(self._index.hashes) - 1)]
        return np.flatnonzero(found == grams.hashes)
