"""The duplicates of rows that are all held at once: plain and slow, and what partitions of their keys must give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

from turnmill.dedup import Entry, Loser, Near, near_duplicates


def exact_duplicates(entries: Iterable[Entry]) -> list[Loser]:
    """The rows whose id another row has, in the order of their places.

    The winner is the row of the lowest place, whatever order the rows come in, so shards of ids (all rows of an id
    in one shard) give the same losers as one pass.
    """
    return [Loser(entry, winner, repeat_code(entry, winner)) for entry, winner in _losers(entries, lambda one: one.id)]


def exchange_duplicates(entries: Iterable[Entry]) -> list[Loser]:
    """The rows whose first exchange another row has, in the order of their places; the lowest place wins."""
    known = (entry for entry in entries if entry.exchange)
    losers = _losers(known, lambda one: one.exchange)
    return [Loser(entry, winner, "duplicate-first-exchange") for entry, winner in losers]


def duplicates(entries: Sequence[Entry], by: Sequence[str], near: Near | None = None) -> list[Loser]:
    """The rows that leave under some ways of comparing, the strictest first; in the order of their places.

    Args:
        entries: all rows.
        by: `exact`, `first-exchange`, `near`.
        near: what is known of near-duplicates, where `near` is asked for.
    """
    ways: dict[str, Callable[[Iterable[Entry]], list[Loser]]] = {
        "exact": exact_duplicates,
        "first-exchange": exchange_duplicates,
        "near": partial(near_duplicates, near=near or Near((), {})),
    }
    losers: list[Loser] = []
    for way, find in ways.items():
        if way in by:
            lost = {loser.entry.place for loser in losers}
            losers += find([entry for entry in entries if entry.place not in lost])
    return sorted(losers, key=lambda loser: loser.entry.place)


def repeat_code(entry: Entry, winner: Entry) -> Literal["duplicate", "duplicate-other-weights"]:
    """The code of a row that has another's id."""
    return "duplicate" if entry.weights == winner.weights else "duplicate-other-weights"


def _losers(entries: Iterable[Entry], key: Callable[[Entry], str]) -> list[tuple[Entry, Entry]]:
    """(loser, winner) of each row whose key a row of a lower place has."""
    winners: dict[str, Entry] = {}
    losers: list[Entry] = []
    for entry in entries:
        winner = winners.setdefault(key(entry), entry)
        if entry.place < winner.place:
            winners[key(entry)], entry = entry, winner
        if entry is not winners[key(entry)]:
            losers.append(entry)
    losers.sort(key=lambda entry: entry.place)
    return [(entry, winners[key(entry)]) for entry in losers]
