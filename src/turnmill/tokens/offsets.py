"""Where each token stands in its text, from the bytes that tokens stand for: no offsets need be asked of the tokenizer.

A byte-level vocabulary spells every byte as one character, so the bytes of a token are known without its text, and
their running sum is its place.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnmill.tokens.encoded import ByteEncoded, Encoded

FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def _byte_letters() -> dict[str, int]:
    """The letter that stands for each byte in a byte-level vocabulary (GPT-2's) → the byte."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted(set(range(0x100)) - set(visible))
    return {chr(byte): byte for byte in visible} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


BYTE_LETTERS = _byte_letters()
FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")
"""How a vocabulary of characters spells a byte of a character that it lacks."""


def bytes_of(spelling: str, *, is_byte_level: bool) -> bytes | None:
    """The bytes of a text that a token stands for; None where its spelling does not say them.

    Args:
        spelling: the token in its vocabulary; not an added token, which is spelled as its text.
        is_byte_level: whether each of its letters stands for a byte.
    """
    if is_byte_level:
        known = [BYTE_LETTERS.get(letter) for letter in spelling]
        return None if None in known else bytes(byte for byte in known if byte is not None)
    found = FALLBACK.fullmatch(spelling)
    return bytes([int(found[1], 16)]) if found else None


class ByteOffsets:
    """Offsets of a byte-level tokenizer.

    Args:
        stored: the tokenizer as its JSON says, not one of the kinds `is_byte_level` refuses.
        vocabulary: token → id, added tokens too.
    """

    def __init__(self, stored: dict[str, Any], vocabulary: dict[str, int]) -> None:
        self._forms = [step["type"] for step in steps_of(stored["normalizer"], "normalizers")]
        lengths = np.zeros(max(vocabulary.values()) + 1, dtype=np.int32)
        for token, number in vocabulary.items():
            lengths[number] = len(token)
        for token in stored["added_tokens"]:
            lengths[token["id"]] = len(token["content"].encode("utf-8"))
        self._lengths = lengths

    def placed(self, text: str, ids: NDArray[np.int32]) -> Encoded | None:
        """The text with the place of each token; None where the tokenizer changed the text."""
        if not text.isascii() and not all(unicodedata.is_normalized(form, text) for form in self._forms):
            return None
        ends = np.cumsum(self._lengths[ids], dtype=np.int32)
        encoded = text.encode("utf-8")
        if not len(ids) or ends[-1] != len(encoded):
            return None
        return ByteEncoded(ids, encoded, ends, len(text))


def steps_of(stage: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    """The steps of a tokenizer's stage, whether it is none, one or a sequence."""
    return [] if stage is None else stage.get(name, [stage])


def is_byte_level(stored: dict[str, Any]) -> bool:
    """Whether the bytes of a text are the bytes of its tokens: byte-level, no prefix space, one normal form at most."""
    if not all(step["type"] in FORMS for step in steps_of(stored["normalizer"], "normalizers")):
        return False
    levels = [step for step in steps_of(stored["pre_tokenizer"], "pretokenizers") if step["type"] == "ByteLevel"]
    return stored["model"]["type"] == "BPE" and len(levels) == 1 and not levels[0].get("add_prefix_space", True)
