"""A byte-level tokenizer's work word by word, each word once: the same ids, without splitting texts the slow way.

A byte-level tokenizer cuts a text into words by patterns and merges bytes inside each word alone, so the ids of a text
are its words' ids, joined. The patterns are the tokenizer's own, read by another engine: `Words` asks the tokenizer
itself whether both cut alike, on random texts when it is made, and on every character when it first occurs. Where they
do not, or the tokenizer does anything else, the text is none for this path.
"""

from __future__ import annotations

import json
import random
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from turnmill.tokens.offsets import FORMS, steps_of

BYTE_LEVEL_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""How `ByteLevel` cuts a text where it cuts at all (GPT-2's pattern)."""

SINGLE_SPACE = re.compile(r" (?=\S)(?<=\S )")
"""A space between two characters that are none: each pattern begins a word with it, or behind it."""

MAX_BYTES = 16 * 2**20
"""Of the texts that a memory holds, and their ids; with more all are forgotten."""
BYTES_OF_ENTRY = 100
"""What an entry takes beside its text and ids, while the table grows."""
MAX_CHARACTERS = 100
"""Longer texts are rarely seen twice."""
PROBES = 1000
"""Random texts on which both engines must cut alike."""
PROBE_ALPHABET = "aBzé的ßǅ0²५ \t\n\r\u00a0\u2003'sT.,-!?_(#/\u0301\u200d👩"
"""Letters of each case and none, digits, signs, white space and marks: what the patterns tell apart."""

Cut = Callable[[str], list[str]]


class Memory(dict[str, bytes]):
    """Text → the ids of its tokens, int32 as bytes; what is not known is made.

    Args:
        make: the ids of a text.
    """

    def __init__(self, make: Callable[[str], bytes]) -> None:
        self._make = make
        self._bytes = 0

    def __missing__(self, text: str) -> bytes:
        ids = self._make(text)
        if len(text) <= MAX_CHARACTERS:
            size = sys.getsizeof(text) + sys.getsizeof(ids) + BYTES_OF_ENTRY
            if self._bytes + size > MAX_BYTES:
                self.clear()
                self._bytes = 0
            self._bytes += size
            self[text] = ids
        return ids


def words_of(make: Any, stored: dict[str, Any]) -> Words | None:
    """`Words` of a byte-level tokenizer, where it can be read so and cuts alike.

    Args:
        make: the tokenizer's type.
        stored: the tokenizer as its JSON says.
    """
    if not is_wordwise(stored):
        return None
    words = Words(make, stored)
    return words if words.is_sound() else None


class Words:
    """Texts to ids by a memory of words, and of the pieces between single spaces, where a word always begins.

    Args:
        make: the tokenizer's type.
        stored: the tokenizer as its JSON says; `is_wordwise` holds.
    """

    name = "words"

    def __init__(self, make: Any, stored: dict[str, Any]) -> None:
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        bare = {**stored, "added_tokens": [], "normalizer": None, "post_processor": None, "pre_tokenizer": level}
        self._merger = make.from_str(json.dumps(bare))
        empty = {**stored["model"], "vocab": {}, "merges": []}
        cutter = {**bare, "model": empty, "pre_tokenizer": stored["pre_tokenizer"]}
        self._cutter = make.from_str(json.dumps(cutter)).pre_tokenizer
        self._forms = [step["type"] for step in steps_of(stored["normalizer"], "normalizers")]
        self._cuts = [_cut_by(pattern) for pattern in _patterns(stored)]
        self._added = list(_added_patterns(stored))
        self._added_ids = {token["content"]: _stored([token["id"]]) for token in stored["added_tokens"]}
        self._words = Memory(self._merged)
        self._pieces = Memory(self._joined)
        self._after_space = Memory(lambda piece: self._joined(f" {piece}"))
        self._proven: set[str] = set()
        self._doubted: set[str] = set()

    def is_sound(self) -> bool:
        """Whether both engines cut random texts alike; the same texts every time."""
        draw = random.Random(0)
        alphabet = [letter for letter in PROBE_ALPHABET if self._proves(letter)]
        texts = ("".join(draw.choices(alphabet, k=draw.randint(1, 40))) for _ in range(PROBES))
        return len(alphabet) > len(PROBE_ALPHABET) // 2 and all(self._cuts_alike(text) for text in texts)

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int32] | None]:
        """The ids of each text, (tokens,); None where the tokenizer itself must be asked."""
        return [self._encoded(text) for text in texts]

    def _encoded(self, text: str) -> NDArray[np.int32] | None:
        if not self._knows(text):
            return None
        ids: list[bytes] = []
        for stretch, is_added in self._stretches(text, 0):
            if is_added:
                ids.append(self._added_ids[stretch])
            elif stretch:
                first, *others = SINGLE_SPACE.split(stretch)
                ids.append(self._pieces[first])
                ids += map(self._after_space.__getitem__, others)
        return np.frombuffer(b"".join(ids), dtype=np.int32)

    def _joined(self, piece: str) -> bytes:
        return b"".join(map(self._words.__getitem__, self._cut(piece)))

    def _merged(self, word: str) -> bytes:
        return _stored(self._merger.encode(word, add_special_tokens=False).ids)

    def _stretches(self, text: str, level: int) -> Iterator[tuple[str, bool]]:
        """The text split at added tokens: those that are sought in raw text first."""
        if level == len(self._added):
            yield text, False
            return
        for number, stretch in enumerate(self._added[level].split(text)):
            if number % 2:
                yield stretch, True
            else:
                yield from self._stretches(stretch, level + 1)

    def _cut(self, piece: str) -> list[str]:
        words = [piece]
        for cut in self._cuts:
            words = cut(words[0]) if len(words) == 1 else [part for word in words for part in cut(word)]
        return words

    def _knows(self, text: str) -> bool:
        """Whether every character is proven and the tokenizer would leave the text as it is."""
        if not text.isascii() and not all(unicodedata.is_normalized(form, text) for form in self._forms):
            return False
        letters = set(text)
        new = letters - self._proven - self._doubted
        if new:
            self._prove(sorted(new))
        return self._doubted.isdisjoint(letters)

    def _prove(self, letters: Sequence[str]) -> None:
        """Compare both engines on texts of these characters: all at once, then, where they differ, one by one."""
        if self._cuts_alike(" ".join(map(_contexts, letters))):
            self._proven.update(letters)
            return
        for letter in letters:
            self._proves(letter)

    def _proves(self, letter: str) -> bool:
        is_alike = self._cuts_alike(_contexts(letter))
        (self._proven if is_alike else self._doubted).add(letter)
        return is_alike

    def _cuts_alike(self, text: str) -> bool:
        first, *others = SINGLE_SPACE.split(text)
        words = [word for piece in (first, *(f" {other}" for other in others)) for word in self._cut(piece)]
        ends = list(accumulate(map(len, words)))
        return [high for _, (_, high) in self._cutter.pre_tokenize_str(text)] == ends


def is_wordwise(stored: dict[str, Any]) -> bool:
    """Whether a byte-level tokenizer cuts words by patterns, merges inside them, and finds added tokens as text."""
    model = stored["model"]
    return (
        not model.get("dropout")
        and not model.get("continuing_subword_prefix")
        and not model.get("end_of_word_suffix")
        and all(step["type"] in FORMS for step in steps_of(stored["normalizer"], "normalizers"))
        and all(map(_is_pattern, steps_of(stored["pre_tokenizer"], "pretokenizers")))
        and not any(token[flag] for token in stored["added_tokens"] for flag in ("lstrip", "rstrip", "single_word"))
        and all(unicodedata.is_normalized("NFC", token["content"]) for token in stored["added_tokens"])
    )


def _is_pattern(step: dict[str, Any]) -> bool:
    if step["type"] == "Split":
        return step["behavior"] == "Isolated" and not step["invert"] and _compiles(_split_pattern(step))
    return step["type"] in ("Digits", "ByteLevel")


def _compiles(pattern: str) -> bool:
    """Whether the other engine reads a pattern, and as one without groups."""
    try:
        return not regex.compile(pattern).groups
    except regex.error:
        return False


def _split_pattern(step: dict[str, Any]) -> str:
    pattern: dict[str, str] = step["pattern"]
    return pattern["Regex"] if "Regex" in pattern else regex.escape(pattern["String"])


def _patterns(stored: dict[str, Any]) -> Iterator[str]:
    """The patterns whose matches become words, in the order they are applied."""
    for step in steps_of(stored["pre_tokenizer"], "pretokenizers"):
        if step["type"] == "Digits":
            yield r"\p{N}" if step["individual_digits"] else r"\p{N}+"
        elif step["type"] == "Split":
            yield _split_pattern(step)
        elif step["use_regex"]:
            yield BYTE_LEVEL_WORDS


def _cut_by(pattern: str) -> Cut:
    """A text cut into the matches of a pattern and what lies between them."""
    if pattern == BYTE_LEVEL_WORDS:
        return regex.compile(pattern).findall  # its matches leave nothing between them
    split = regex.compile(f"({pattern})").split
    return lambda text: [part for part in split(text) if part]


def _added_patterns(stored: dict[str, Any]) -> Iterator[re.Pattern[str]]:
    """Patterns of the added tokens, the longest first: of those sought in raw text, then of the others."""
    for is_normalized in (False, True):
        texts = [token["content"] for token in stored["added_tokens"] if token["normalized"] is is_normalized]
        if texts:
            ordered = sorted(texts, key=lambda text: (-len(text), text))
            yield re.compile("(" + "|".join(map(re.escape, ordered)) + ")")


def _stored(ids: Sequence[int]) -> bytes:
    return np.array(ids, dtype=np.int32).tobytes()


def _contexts(letter: str) -> str:
    """A character beside each kind of neighbour that a pattern may look at."""
    return f"x{letter}y {letter}{letter}1{letter} '{letter}X{letter}x\n{letter}.{letter}!"
