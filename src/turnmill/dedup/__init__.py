"""Duplicates: which of several rows that say the same stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import xxhash

from turnmill.conversation import Conversation, canonical_json
from turnmill.dedup.near import NearPair
from turnmill.split import normalised


class Place(NamedTuple):
    """Where a row was read; places are compared to choose the winner."""

    source: int
    """Number of its source, in the order of the recipe."""
    file: str
    line: int


class Entry(NamedTuple):
    """What dedup needs to know of a row."""

    id: str
    weights: str
    """`weights_key` of the row."""
    place: Place
    exchange: str = ""
    """`exchange_key` of the row."""
    row: int = -1
    """Its number over all sources."""


class Near(NamedTuple):
    """What is known of near-duplicates among the rows."""

    pairs: Sequence[NearPair]
    """By row number; of rows whose texts have the same n-grams one stands for all."""
    texts: Mapping[int, int]
    """Row → what rows whose texts have the same n-grams share: of rows that are in a pair, or whose n-grams another
    row has."""


class Loser(NamedTuple):
    """A row that leaves, and the row that stays for it."""

    entry: Entry
    winner: Entry
    code: Literal["duplicate", "duplicate-other-weights", "duplicate-first-exchange", "near-duplicate"]
    """`duplicate-other-weights`: the model sees the same, but the loss is recorded differently."""
    similarity: float | None = None
    """Jaccard similarity of the two rows' n-grams, of near-duplicates alone."""


def weights_key(conversation: Conversation) -> str:
    """Recorded loss weights as text, equal where they train the same; empty where every message counts fully."""
    if all(message.weight is None for message in conversation.messages):
        return ""
    weights = [1.0 if message.weight is None else message.weight for message in conversation.messages]
    return ",".join(map(repr, weights)) if any(weight != 1.0 for weight in weights) else ""


def exchange_key(conversation: Conversation) -> str:
    """32 hex digits of xxh3-128 over the first user text and the first assistant turn, calls included, normalised.

    Empty where either is missing.
    """
    user = next((message.text for message in conversation.messages if message.role == "user"), None)
    turn: list[str] = []
    for message in conversation.messages:
        if message.role == "assistant":
            turn += [message.channel or "", message.recipient or "", normalised(message.text)]
        elif turn:
            break
    if user is None or not turn:
        return ""
    return xxhash.xxh3_128_hexdigest(canonical_json([normalised(user), turn]))


def near_duplicates(entries: Iterable[Entry], near: Near) -> list[Loser]:
    """The rows that are near a row of a lower place that stays, in the order of their places.

    Each is near the very row that stays for it: a chain of small changes does not take the row at its end away.
    """
    alike: dict[int, list[Entry]] = {}
    for entry in sorted(entries, key=lambda one: one.place):
        if entry.row in near.texts:
            alike.setdefault(near.texts[entry.row], []).append(entry)
    neighbours: dict[int, list[tuple[int, float]]] = {}
    for first, second, similarity in near.pairs:
        one, other = near.texts[first], near.texts[second]
        neighbours.setdefault(one, []).append((other, similarity))
        neighbours.setdefault(other, []).append((one, similarity))
    staying: dict[int, Entry] = {}
    losers: list[Loser] = []
    for text, rows in alike.items():  # in the order of their lowest places
        found = [(staying[other], value) for other, value in neighbours.get(text, []) if other in staying]
        winner, similarity = min(found, key=lambda one: one[0].place, default=(rows[0], 1.0))
        if not found:
            staying[text] = rows[0]
        losers += [Loser(row, winner, "near-duplicate", similarity) for row in rows if row is not winner]
    return sorted(losers, key=lambda loser: loser.entry.place)
