"""Faster ways to a tokenizer's ids, each taken only where it has been proven to give the same ones."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from turnmill.tokens.offsets import steps_of
from turnmill.tokens.relay import Relay
from turnmill.tokens.words import BYTE_LEVEL_WORDS, PROBE_ALPHABET, words_of

PROBES = 500
"""Random texts on which a foreign tokenizer must give the same ids."""
THREADS_OF_FASTOKENS = "FASTOKENS_BPE_THREADS"
MAX_REMEMBERED = 4_000_000
"""Characters that `fastokens` may remember the words of: some ten bytes each where every word is long and new."""


class Accelerator(Protocol):
    """Gives a tokenizer's ids, or none."""

    name: str

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int32] | None]:
        """The ids of each text, (tokens,); None where the tokenizer itself must be asked."""


class Fastokens:
    """The `fastokens` package (`pip install 'turnmill[fast]'`).

    It remembers words for every thread that encodes, up to a number of words of any length, and never gives that memory
    back while the thread lives: a long word is a paragraph of a script without spaces, or bytes as text. So it encodes
    in a relay of threads, and starts none of its own, which never end: there is a process for every core.

    Args:
        stored: the tokenizer as its JSON says, without a post-processor.
    """

    name = "fastokens"

    def __init__(self, stored: dict[str, Any]) -> None:
        os.environ.setdefault(THREADS_OF_FASTOKENS, "1")  # it looks there once, when it first encodes
        import fastokens  # type: ignore[import-untyped]  # it has none

        self._tokenizer = fastokens.Tokenizer.from_json_str(json.dumps(with_one_pattern(stored)))
        self._relay = Relay(MAX_REMEMBERED)

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int32] | None]:
        """The ids of each text, (tokens,); None of one that it refuses: of bytes that the vocabulary lacks."""
        try:
            return list(self._together(texts))
        except ValueError:
            return self._one_by_one(texts)

    def _one_by_one(self, texts: Sequence[str]) -> list[NDArray[np.int32] | None]:
        found: list[NDArray[np.int32] | None] = [None] * len(texts)
        for number, text in enumerate(texts):
            with suppress(ValueError):
                (found[number],) = self._together([text])
        return found

    def _together(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The ids of all as one buffer, which costs no object a token."""
        ids, ends = self._relay.run(self._flat, texts)
        flat = np.frombuffer(ids, dtype=np.int32)
        return [flat[start:end] for start, end in pairwise(np.frombuffer(ends, dtype=np.uint64).tolist())]

    def _flat(self, texts: Sequence[str]) -> tuple[bytes, bytes]:
        """(tokens of all,) ids, uint32, and (texts + 1,) where each begins, uint64."""
        found: tuple[bytes, bytes] = self._tokenizer.encode_batch_flat(list(texts), add_special_tokens=False)
        return found


def with_one_pattern(stored: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer that cuts digits off and words out of the rest, as one that does both by one pattern: ids are equal.

    `fastokens` takes three times as long for the two.

    Args:
        stored: the tokenizer as its JSON says.
    """
    steps = steps_of(stored.get("pre_tokenizer"), "pretokenizers")
    if [step["type"] for step in steps] != ["Digits", "ByteLevel"] or not steps[1]["use_regex"]:
        return stored
    digits = r"\p{N}" if steps[0]["individual_digits"] else r"\p{N}+"
    # where digits have been cut off, white space before them ends a text: nothing of it is left for a word behind
    words = BYTE_LEVEL_WORDS.replace(r" ?\p{N}+", digits).replace(r"\s+(?!\S)", r"\s+(?=\p{N})|\s+(?!\S)")
    split = {"type": "Split", "pattern": {"Regex": words}, "behavior": "Isolated", "invert": False}
    return {
        **stored,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, {**steps[1], "use_regex": False}]},
    }


def accelerator_of(tokenizer: Any, stored: dict[str, Any]) -> Accelerator | None:
    """The fastest way that gives the tokenizer's ids on random texts.

    Args:
        tokenizer: what `stored` makes.
        stored: a byte-level tokenizer as its JSON says, without a post-processor.
    """
    if find_spec("fastokens") is not None and (found := _fastokens(stored)) and is_sound(found, tokenizer, stored):
        return found
    return words_of(type(tokenizer), stored)


def _fastokens(stored: dict[str, Any]) -> Accelerator | None:
    try:
        return Fastokens(stored)
    except Exception:  # it says in its own ways that it cannot read a tokenizer
        return None


def is_sound(accelerator: Accelerator, tokenizer: Any, stored: dict[str, Any]) -> bool:
    """Whether it gives the tokenizer's ids on random texts; the same texts every time."""
    texts = list(_probe_texts([token["content"] for token in stored["added_tokens"]]))
    found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    given = accelerator.encode(texts)
    return all(ids is None or ids.tolist() == wanted.ids for ids, wanted in zip(given, found, strict=True))


def _probe_texts(added: Sequence[str]) -> Iterator[str]:
    """Texts of all sorts of letters, of added tokens and their beginnings, and of characters drawn at random."""
    draw = random.Random(0)
    for _ in range(PROBES):
        bits = draw.choices(PROBE_ALPHABET, k=draw.randint(0, 30))
        bits += [token[: draw.choice([len(token), 3])] for token in draw.sample(added, min(2, len(added)))]
        bits += [chr(draw.choice([draw.randint(32, 0xD7FF), draw.randint(0xE000, 0x10FFFF)])) for _ in range(3)]
        bits += [draw.choice(PROBE_ALPHABET) * draw.randint(1, 40)]
        draw.shuffle(bits)
        yield "".join(bits)
