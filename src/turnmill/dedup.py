"""Exact duplicates: which of several equal rows stays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from turnmill.conversation import Conversation


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


class Loser(NamedTuple):
    """A row that leaves, and the equal row that stays."""

    entry: Entry
    winner: Entry
    code: Literal["duplicate", "duplicate-other-weights"]
    """`duplicate-other-weights`: the model sees the same, but the loss is recorded differently."""


def weights_key(conversation: Conversation) -> str:
    """Recorded loss weights as text, equal where they train the same; empty where every message counts fully."""
    weights = [1.0 if message.weight is None else message.weight for message in conversation.messages]
    return ",".join(map(repr, weights)) if any(weight != 1.0 for weight in weights) else ""


def exact_duplicates(entries: Iterable[Entry]) -> list[Loser]:
    """The rows whose id another row has, in the order of their places.

    The winner is the row of the lowest place, whatever order the rows come in, so shards of ids (all rows of an id
    in one shard) give the same losers as one pass.
    """
    winners: dict[str, Entry] = {}
    losers: list[Entry] = []
    for entry in entries:
        winner = winners.setdefault(entry.id, entry)
        if entry.place < winner.place:
            winners[entry.id], entry = entry, winner
        if entry is not winners[entry.id]:
            losers.append(entry)
    losers.sort(key=lambda entry: entry.place)
    return [_loser(entry, winners[entry.id]) for entry in losers]


def _loser(entry: Entry, winner: Entry) -> Loser:
    return Loser(entry, winner, "duplicate" if entry.weights == winner.weights else "duplicate-other-weights")
