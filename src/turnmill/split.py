"""Held-out rows: prompt groups under a hash threshold."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from turnmill.conversation import Conversation, canonical_json
from turnmill.errors import UsageError, quote
from turnmill.options import Split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_GROUP_SHARE = 0.01
"""A group of a larger share of the rows always trains: held out, it would be most of the evaluation."""

KEY_SPACE = 2**64

TOGETHER = -1
"""In place of the number of a source, for those that are held out together."""


class Sides(NamedTuple):
    """Which rows are held out."""

    held_out: NDArray[np.bool_]
    """One a row."""
    oversized: dict[int, int]
    """Group key → rows, of the groups that train because they are too large to hold out."""


class Pool(NamedTuple):
    """What there is of a source when some of its groups are looked at."""

    rows: int
    """All of it."""
    before: int = 0
    """In groups of lower keys that are small enough to be held out."""


class Amount(NamedTuple):
    """Rows of some groups of a source."""

    in_groups: int
    """In those that are small enough to be held out."""
    held_out: int


class HeldOut(NamedTuple):
    """`Sides` of some groups, with what they amount to."""

    held_out: NDArray[np.bool_]
    oversized: dict[int, int]
    amounts: dict[int, Amount]
    """By source, or `TOGETHER`."""


def group_key(conversation: Conversation, group_field: str | None = None) -> int:
    """The 64-bit key of a row's group: xxh3 of the first user text, or of the kept column that names the group.

    Text is compared in NFC, casefolded, with runs of white space as one space. A row without a user text, or
    without the column, is its own group.
    """
    if group_field is not None:
        value = conversation.meta.get(group_field)
        return _key(conversation.id.encode() if value is None else canonical_json(value))
    for message in conversation.messages:
        if message.role == "user":
            return _key(normalised(message.text).encode())
    return _key(conversation.id.encode())


def _key(identity: bytes) -> int:
    return xxhash.xxh3_64_intdigest(identity)


@lru_cache(maxsize=4)
def normalised(text: str) -> str:
    """Text in NFC, casefolded, ends trimmed and runs of white space as one space; several keys of a row ask for it."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(folded.split())


def joined_groups(links: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The key of each group that is linked to others: the smallest of all that links lead to.

    Args:
        links: keys of two groups each.
    """
    parents: dict[int, int] = {}

    def root(key: int) -> int:
        parents.setdefault(key, key)
        while parents[key] != key:
            parents[key] = key = parents[parents[key]]
        return key

    for one, other in links:
        low, high = sorted((root(one), root(other)))
        parents[high] = low
    return {key: root(key) for key in parents}


def split_rows(
    keys: Sequence[int] | NDArray[np.uint64],
    sources: Sequence[int] | NDArray[np.int64],
    options: Split,
    own: Mapping[int, Split] | None = None,
    names: Sequence[str] = (),
) -> Sides:
    """Hold out whole groups: those whose key falls under `fraction`, or the lowest keys until `rows` are reached.

    A group's side under `fraction` depends on its key alone, so it never changes when rows are added (but for a
    group that grows past 1 % of the rows). With `per_source` each source holds out on its own; a group that is held
    out of one source is held out of all, so that no prompt stands on both sides.

    Args:
        keys: `group_key` of every row.
        sources: number of every row's source.
        options: how much to hold out.
        own: source → how much of it, where it says so for itself: then it holds out on its own.
        names: of the sources, for messages.

    Raises:
        UsageError: both `fraction` and `rows` are given, one is out of range, or there are not so many rows to hold out
            in whole groups beside some that train.
    """
    import numpy as np

    own = own or {}
    for given in (options, *own.values()):
        require_one_amount(given)
    row_keys = np.asarray(keys, dtype=np.uint64)
    drawn_from = pooled(np.asarray(sources, dtype=np.int64), options, own)
    rows = dict(zip(*(found.tolist() for found in np.unique(drawn_from, return_counts=True)), strict=True))
    pools = {source: Pool(count) for source, count in rows.items()}
    found = hold_out(row_keys, drawn_from, options, own, pools)
    require_enough(rows, found.amounts, options, own, names)
    return Sides(found.held_out, found.oversized)


def pooled(sources: NDArray[np.int64], options: Split, own: Collection[int]) -> NDArray[np.int64]:
    """The source that each row is held out of: `TOGETHER` of those that do not hold out on their own."""
    import numpy as np

    return sources if options.per_source else np.where(np.isin(sources, list(own)), sources, TOGETHER)


def hold_out(
    keys: NDArray[np.uint64],
    drawn_from: NDArray[np.int64],
    options: Split,
    own: Mapping[int, Split],
    pools: Mapping[int, Pool],
) -> HeldOut:
    """Which rows of some groups are held out: all rows of all groups, or of those whose keys lie in a range.

    Args:
        keys: of every row's group.
        drawn_from: `pooled` of every row.
        options: how much to hold out.
        own: source → how much of it, where it says so for itself.
        pools: source → what there is of it beyond these rows.
    """
    import numpy as np

    held = [np.zeros(0, dtype=np.uint64)]
    oversized: dict[int, int] = {}
    amounts: dict[int, Amount] = {}
    for source in np.unique(drawn_from).tolist():
        chosen, amounts[source], large = _choose_groups(
            keys[drawn_from == source], own.get(source, options), pools[source]
        )
        held.append(chosen)
        for key, rows in large.items():
            oversized[key] = oversized.get(key, 0) + rows
    too_large = np.fromiter(oversized, dtype=np.uint64)
    return HeldOut(np.isin(keys, np.setdiff1d(np.concatenate(held), too_large)), oversized, amounts)


def require_one_amount(options: Split) -> None:
    """Refuse options that say in two ways, or in none that can be, how much to hold out.

    Raises:
        UsageError: both `fraction` and `rows` are given, or one is out of range.
    """
    if options.fraction and options.rows:
        raise UsageError("split.fraction and split.rows are both given; expected one of them")
    if not 0.0 <= options.fraction < 1.0:
        raise UsageError(f"split.fraction is {options.fraction}; expected 0 or more, and less than 1")
    if options.rows < 0:
        raise UsageError(f"split.rows is {options.rows}; expected 0 or more")


def _choose_groups(
    row_keys: NDArray[np.uint64], options: Split, pool: Pool
) -> tuple[NDArray[np.uint64], Amount, dict[int, int]]:
    """Keys of the groups to hold out, how many rows that is, and the oversized groups with their rows."""
    import numpy as np

    keys, sizes = np.unique(row_keys, return_counts=True)  # in key order
    large = sizes > max(1.0, MAX_GROUP_SHARE * pool.rows)
    oversized = dict(zip(keys[large].tolist(), sizes[large].tolist(), strict=True))
    keys, sizes = keys[~large], sizes[~large]
    if options.rows:
        taken = pool.before + np.cumsum(sizes) - sizes < options.rows
    else:
        taken = keys < np.uint64(int(options.fraction * KEY_SPACE))
    amount = Amount(int(sizes.sum()), int(sizes[taken].sum()))
    return keys[taken], amount, oversized if options.fraction or options.rows else {}


def require_enough(
    rows: Mapping[int, int],
    amounts: Mapping[int, Amount],
    options: Split,
    own: Mapping[int, Split],
    names: Sequence[str] = (),
) -> None:
    """Refuse to hold out fewer rows than were asked for, or all there are.

    Args:
        rows: source, or `TOGETHER` → its rows.
        amounts: of the same.
        options: how much to hold out.
        own: source → how much of it, where it says so for itself.
        names: of the sources.

    Raises:
        UsageError: so it would be.
    """
    for source in sorted({*rows, *own, *(range(len(names)) if options.per_source else ())}):
        wanted, found = own.get(source, options).rows, amounts.get(source, Amount(0, 0))
        there = rows.get(source, 0)
        if not wanted or wanted <= found.held_out < there:
            continue
        where = f" of source {quote(names[source])}" if source != TOGETHER and names else ""
        too_large = there - found.in_groups
        large = f", {too_large:,} of them in groups of over {MAX_GROUP_SHARE:.0%}, which train" if too_large else ""
        what = f"split.rows is {wanted:,}, but {there:,} rows{where} are left to split{large}"
        raise UsageError(f"{what}; expected fewer, in whole groups", next_step="--split.fraction 0.05")
