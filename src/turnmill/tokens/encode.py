"""Text to token ids in segments, each token with the characters it stands for.

A tokenizer is passed in: any object with the interface of `tokenizers.Tokenizer`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from turnmill.errors import Rejected
from turnmill.rendered import Span
from turnmill.tokens.accelerators import Accelerator, accelerator_of
from turnmill.tokens.encoded import ByteEncoded, Encoded
from turnmill.tokens.offsets import ByteOffsets, bytes_of, is_byte_level

CONFIRM_EVERY = 256
"""Of so many texts that are encoded the fast way one is encoded by the tokenizer too."""

ANCHOR = "\ue000turnmill\ue000"
"""A token of our own that stands before a segment and is taken off: what follows it is encoded as inside a text.

No vocabulary has it, so no text may: `segments` and `pieces` refuse one, and `whole` is not asked for one."""


class Encoder:
    """Encodes texts whole, or in segments where a border must stand.

    Args:
        tokenizer: a `tokenizers.Tokenizer`; it is copied, not changed, and must not be.
        control: texts of the control tokens.
        accelerate: take a faster way where it is proven to give the same ids.

    Attributes:
        counts: `tokenize/<what>` → how often.
        adds_prefix: the tokenizer puts a space before text that follows a token (old SentencePiece models): a segment
            that starts inside a word cannot be encoded as the word goes on.
    """

    def __init__(self, tokenizer: Any, control: Sequence[str], *, accelerate: bool = False) -> None:
        make, stored = type(tokenizer), _bare(tokenizer)
        self._main = _anchored(make, stored)
        self._tokenizer, self._control = tokenizer, frozenset(control)
        self._bytes = ByteOffsets(stored, self._main.get_vocab()) if is_byte_level(stored) else None
        self._fast: Accelerator | None = None
        self._is_accelerated = False
        self.counts: Counter[str] = Counter()
        self._control_ids = {tokenizer.token_to_id(text) for text in control} - {None}
        added_ids = [token["id"] for token in stored["added_tokens"]]
        special = {token["id"] for token in stored["added_tokens"] if token["special"]}
        self._is_whole = np.zeros(max([*self._main.get_vocab().values(), *added_ids]) + 1, dtype=np.bool_)
        self._is_whole[sorted(special | self._control_ids)] = True
        alone = self._main.encode(ANCHOR + "x", add_special_tokens=False)
        self.accelerate(is_on=accelerate)
        self.adds_prefix = "".join(map(self._main.id_to_token, alone.ids[1:])) != "x"

    @cached_property
    def _plain(self) -> Any:
        """The tokenizer without its control tokens: few rows need it, and it takes a second to make."""
        stored = _bare(self._tokenizer)
        stored["added_tokens"] = [token for token in stored["added_tokens"] if token["content"] not in self._control]
        return _anchored(type(self._tokenizer), stored)

    def accelerate(self, *, is_on: bool) -> None:
        """Take a faster way where one is proven to give the same ids, or none any more."""
        if is_on == self._is_accelerated or self._bytes is None:
            return  # what was distrusted stays so
        self._is_accelerated = is_on
        self._fast = accelerator_of(self._main, _bare(self._tokenizer)) if is_on else None

    @property
    def way(self) -> str:
        """How texts are encoded: `tokenizers`, or the name of what gives the same ids faster."""
        return self._fast.name if self._fast else "tokenizers"

    def is_control(self, ids: NDArray[np.int32]) -> NDArray[np.bool_]:
        """(tokens,) whether each is a control token: one that no text may become unless the template writes it."""
        return self._is_whole[ids]

    def bytes_of(self, number: int) -> bytes | None:
        """The bytes that the token of an id stands for; None where its vocabulary does not spell bytes."""
        spelling = self._main.id_to_token(number)
        return None if spelling is None else bytes_of(spelling, is_byte_level=self._bytes is not None)

    def whole(self, texts: Sequence[str]) -> list[Encoded]:
        """Each text in one encode."""
        if self._bytes is None:
            return [_encoded(found, 0, 0) for found in self._main.encode_batch(list(texts), add_special_tokens=False)]
        found = self._ids(texts)
        return [self._placed(self._bytes, text, ids) for text, ids in zip(texts, found, strict=True)]

    def _placed(self, places: ByteOffsets, text: str, ids: NDArray[np.int32]) -> Encoded:
        return places.placed(text, ids) or _encoded(self._asked(text), 0, 0)

    def _ids(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The ids of each text, (tokens,): the fast way where that knows them, else from the tokenizer itself."""
        known = self._fast.encode(texts) if self._fast else [None] * len(texts)
        if not all(self._confirms(text, ids) for text, ids in zip(texts, known, strict=True)):
            self._fast = None
            self.counts["tokenize/fast-distrusted"] += 1
            return self._ids(texts)
        others = [text for text, ids in zip(texts, known, strict=True) if ids is None]
        if not others:
            return [ids for ids in known if ids is not None]
        asked = iter(self._main.encode_batch_fast(others, add_special_tokens=False))
        return [np.asarray(next(asked).ids, dtype=np.int32) if ids is None else ids for ids in known]

    def _confirms(self, text: str, ids: NDArray[np.int32] | None) -> bool:
        """Whether the tokenizer gives the same ids: it is asked for one text in `CONFIRM_EVERY`, chosen by its hash."""
        if ids is None or xxh3_64_intdigest(text.encode()) % CONFIRM_EVERY:
            return True
        return bool(self._asked(text).ids == ids.tolist())

    def _asked(self, text: str) -> Any:
        return self._main.encode(text, add_special_tokens=False)

    def segments(self, text: str, borders: Sequence[int], escaped: Sequence[tuple[int, int]]) -> Encoded:
        """The encodes of the stretches between borders, joined; escaped stretches hold no control token.

        Raises:
            Rejected: `control-token-unescapable`, the vocabulary has no other spelling of it, or the text has `ANCHOR`.
        """
        _refuse_anchor(text)
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
        return _joined(parts)

    def pieces(self, text: str, spans: Sequence[Span], escaped: Sequence[tuple[int, int]]) -> Encoded:
        """The encodes of the spans, each as a text of its own, joined; escaped stretches hold no control token.

        Raises:
            Rejected: `control-token-unescapable`.
        """
        _refuse_anchor(text)
        parts: list[Encoded] = []
        for span in spans:
            inside = [(low - span.start, high - span.start) for low, high in escaped if span.start <= low < span.end]
            piece = text[span.start : span.end]
            part = self.segments(piece, (), inside) if inside else self.whole([piece])[0]
            parts.append(Encoded(part.ids, part.offsets + span.start))
        return _joined(parts)

    def crossed(self, encoded: Encoded, borders: Sequence[int]) -> list[int]:
        """Those of the borders that a token lies across; a control token is never cut, so where one lies is none."""
        return encoded.crossed(borders, self._is_whole) if borders else []

    def cut(self, rows: Sequence[tuple[str, Encoded, Sequence[int]]]) -> list[Encoded]:
        """The same ids but with borders: only the stretches between control tokens that hold them are anew.

        A control token is found before anything else is done to a text, so nothing beyond it hangs on the stretch. (Of
        other added tokens, as white space is in Gemma 3, one hangs on where the one before it ends.)

        Args:
            rows: text, its ids, and the borders in order, of those that `crossed` gives.
        """
        parted = [list(self._parted(*row)) for row in rows]
        asked = [(text, part) for (text, _, _), parts in zip(rows, parted, strict=True) for part in parts]
        anew = iter(self._segments([(text[part.start : part.end], part.start) for text, part in asked if part.is_anew]))
        return [
            self._rejoined(text, encoded, parts, anew) for (text, encoded, _), parts in zip(rows, parted, strict=True)
        ]

    def _parted(self, text: str, encoded: Encoded, borders: Sequence[int]) -> Iterator[Part]:
        """The tokens that stay, and between them the characters that are encoded anew, border by border."""
        whole = np.flatnonzero(self._is_whole[encoded.ids])
        places = encoded.places(whole)
        stretches = np.searchsorted(places[:, 1], borders, side="right")
        done = 0
        for stretch, inside in groupby(zip(stretches.tolist(), borders, strict=True), key=itemgetter(0)):
            first = int(whole[stretch - 1]) + 1 if stretch else 0
            last = int(whole[stretch]) if stretch < len(whole) else len(encoded.ids)
            start = int(places[stretch - 1, 1]) if stretch else 0
            end = int(places[stretch, 0]) if stretch < len(whole) else len(text)
            yield Part(done, first)
            edges = [start, *(border for _, border in inside), end]
            yield from (Part(low, high, is_anew=True) for low, high in pairwise(edges))
            done = last
        yield Part(done, len(encoded.ids))

    def _rejoined(self, text: str, encoded: Encoded, parts: Sequence[Part], anew: Iterator[Encoded]) -> Encoded:
        """What stays, and between it what is anew."""
        made = [next(anew) if part.is_anew else part for part in parts]
        ids = [encoded.ids[one.start : one.end] if isinstance(one, Part) else one.ids for one in made]
        if self._bytes is not None and isinstance(encoded, ByteEncoded):
            placed = self._bytes.placed(text, np.concatenate(ids))
            if placed is not None:
                return placed
        offsets = [encoded.offsets[one.start : one.end] if isinstance(one, Part) else one.offsets for one in made]
        return Encoded(np.concatenate(ids), np.concatenate(offsets))

    def _segments(self, texts: Sequence[tuple[str, int]]) -> list[Encoded]:
        """Each text that begins at a character of a longer one."""
        if self._fast is None:
            return [self._segment(text, start) for text, start in texts]
        found = self.whole([text for text, _ in texts])
        return [one.moved(start) for one, (_, start) in zip(found, texts, strict=True)]

    def _segment(self, text: str, start: int, *, is_plain: bool = False) -> Encoded:
        if self._fast is not None and not is_plain:
            (found,) = self._segments([(text, start)])
            return found
        tokenizer = self._plain if is_plain else self._main
        if start == 0:
            return _encoded(tokenizer.encode(text, add_special_tokens=False), 0, 0)
        return _encoded(tokenizer.encode(ANCHOR + text, add_special_tokens=False), 1, start - len(ANCHOR))


class Part(NamedTuple):
    """Tokens [start, end) that stay, or characters that are encoded anew."""

    start: int
    end: int
    is_anew: bool = False


def _joined(parts: Sequence[Encoded]) -> Encoded:
    return Encoded(
        np.concatenate([part.ids for part in parts] or [np.zeros(0, np.int32)]),
        np.concatenate([part.offsets for part in parts] or [np.zeros((0, 2), np.int64)]),
    )


def _refuse_anchor(text: str) -> None:
    if ANCHOR in text:
        raise Rejected("control-token-unescapable", f"the text holds {ANCHOR!r}, a mark of turnmill's own")


def _bare(tokenizer: Any) -> dict[str, Any]:
    """A tokenizer as its JSON says, without what it does to ids at the end."""
    stored: dict[str, Any] = json.loads(tokenizer.to_str())
    stored["truncation"] = stored["padding"] = None
    stored["post_processor"] = None  # it would add tokens that the template writes, and trim spaces off offsets
    return stored


def _anchored(make: Any, stored: dict[str, Any]) -> Any:
    tokenizer = make.from_str(json.dumps(stored))
    tokenizer.add_special_tokens([ANCHOR])
    return tokenizer


def _encoded(found: Any, skip: int, shift: int) -> Encoded:
    offsets = np.asarray(found.offsets, dtype=np.int64).reshape(-1, 2)[skip:]
    return Encoded(np.asarray(found.ids, dtype=np.int32)[skip:], offsets + shift)
