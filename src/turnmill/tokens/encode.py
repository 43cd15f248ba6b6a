"""Text to token ids in segments, each token with the characters it stands for.

A tokenizer is passed in: any object with the interface of `tokenizers.Tokenizer`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnmill.errors import Rejected

ANCHOR = "\ue000turnmill\ue000"
"""A token of our own that stands before a segment and is taken off: what follows it is encoded as inside a text."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of one text."""

    ids: NDArray[np.int32]
    """(tokens,)."""
    offsets: NDArray[np.int64]
    """(tokens, 2): the characters [start, end) of each token."""


class Encoder:
    """Encodes texts whole, or in segments where a border must stand.

    Args:
        tokenizer: a `tokenizers.Tokenizer`; it is copied, not changed.
        control: texts of the control tokens.

    Attributes:
        adds_prefix: the tokenizer puts a space before text that follows a token (old SentencePiece models): a segment
            that starts inside a word cannot be encoded as the word goes on.
    """

    def __init__(self, tokenizer: Any, control: Sequence[str]) -> None:
        make, stored = type(tokenizer), json.loads(tokenizer.to_str())
        stored["truncation"] = stored["padding"] = None
        self._main = _anchored(make, stored)
        plain = dict(stored)
        plain["added_tokens"] = [token for token in stored["added_tokens"] if token["content"] not in set(control)]
        self._plain = _anchored(make, plain)
        self._control_ids = {tokenizer.token_to_id(text) for text in control} - {None}
        self._added_ids = np.array([token["id"] for token in stored["added_tokens"]], dtype=np.int32)
        alone = self._main.encode(ANCHOR + "x", add_special_tokens=False)
        self.adds_prefix = "".join(map(self._main.id_to_token, alone.ids[1:])) != "x"

    def whole(self, texts: Sequence[str]) -> list[Encoded]:
        """Each text in one encode."""
        return [_encoded(found, 0, 0) for found in self._main.encode_batch(list(texts), add_special_tokens=False)]

    def segments(self, text: str, borders: Sequence[int], escaped: Sequence[tuple[int, int]]) -> Encoded:
        """The encodes of the stretches between borders, joined; escaped stretches hold no control token.

        Raises:
            Rejected: `control-token-unescapable`, the vocabulary has no other spelling of it.
        """
        edges = sorted({0, len(text), *borders, *(edge for stretch in escaped for edge in stretch)})
        plain = {start for start, _ in escaped}
        parts: list[Encoded] = []
        for start, end in pairwise(edges):
            part = self._segment(text[start:end], start, is_plain=start in plain)
            if start in plain and self._control_ids & set(part.ids.tolist()):
                raise Rejected(
                    "control-token-unescapable",
                    f"the vocabulary spells {text[start:end]!r} in no way but as the control token",
                )
            parts.append(part)
        return Encoded(
            np.concatenate([part.ids for part in parts] or [np.zeros(0, np.int32)]),
            np.concatenate([part.offsets for part in parts] or [np.zeros((0, 2), np.int64)]),
        )

    def cut(self, text: str, encoded: Encoded, border: int) -> Encoded:
        """The same ids but with a border: only the stretch between the added tokens around it is encoded anew.

        An added token is found before anything else is done to a text, so nothing beyond it hangs on the stretch.
        """
        added = np.isin(encoded.ids, self._added_ids)
        before = np.flatnonzero(added & (encoded.offsets[:, 1] <= border))
        after = np.flatnonzero(added & (encoded.offsets[:, 0] >= border))
        first = int(before[-1]) + 1 if len(before) else 0
        last = int(after[0]) if len(after) else len(encoded.ids)
        start = int(encoded.offsets[first - 1, 1]) if first else 0
        end = int(encoded.offsets[last, 0]) if last < len(encoded.ids) else len(text)
        head, tail = self._segment(text[start:border], start), self._segment(text[border:end], border)
        ids = [encoded.ids[:first], head.ids, tail.ids, encoded.ids[last:]]
        offsets = [encoded.offsets[:first], head.offsets, tail.offsets, encoded.offsets[last:]]
        return Encoded(np.concatenate(ids), np.concatenate(offsets))

    def _segment(self, text: str, start: int, *, is_plain: bool = False) -> Encoded:
        tokenizer = self._plain if is_plain else self._main
        if start == 0:
            return _encoded(tokenizer.encode(text, add_special_tokens=False), 0, 0)
        return _encoded(tokenizer.encode(ANCHOR + text, add_special_tokens=False), 1, start - len(ANCHOR))


def _anchored(make: Any, stored: dict[str, Any]) -> Any:
    tokenizer = make.from_str(json.dumps(stored))
    tokenizer.add_special_tokens([ANCHOR])
    return tokenizer


def _encoded(found: Any, skip: int, shift: int) -> Encoded:
    offsets = np.asarray(found.offsets, dtype=np.int64).reshape(-1, 2)[skip:]
    return Encoded(np.asarray(found.ids, dtype=np.int32)[skip:], offsets + shift)
