"""Rows that say the same, found among many at once: the columns of a table in place of an object a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import xxhash

from turnmill.dedup import Entry, Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Way = Literal["exact", "first-exchange"]

ENTRY = [
    ("id_high", "<u8"),
    ("id_low", "<u8"),
    ("exchange_high", "<u8"),
    ("exchange_low", "<u8"),
    ("weights", "<u8"),
    ("file", "<i8"),
    ("line", "<i8"),
    ("row", "<i8"),
]
"""What dedup needs to know of a row, in 64 bytes: ids and exchanges as numbers (no exchange: 0), a hash of the weights,
the number of its file and its line there, its number over all sources."""
KEYS: dict[Way, tuple[str, str]] = {
    "exact": ("id_high", "id_low"),
    "first-exchange": ("exchange_high", "exchange_low"),
}
"""Way of comparing → the two halves of what is compared; the first half says which partition a row is in."""


class Repeats(NamedTuple):
    """Rows that leave, and the row that stays for each; places in the entries."""

    losers: NDArray[np.int64]
    winners: NDArray[np.int64]


def halves(keys: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Both halves of keys of 32 hex digits; an empty one is 0."""
    import numpy as np

    packed = bytes.fromhex("".join(key or "0" * 32 for key in keys))
    numbers = np.frombuffer(packed, dtype=">u8").astype("<u8").reshape(-1, 2)
    return numbers[:, 0], numbers[:, 1]


def weights_hash(weights: str) -> int:
    """64 bits of `weights_key`: 0 where every message counts fully."""
    return xxhash.xxh3_64_intdigest(weights.encode()) if weights else 0


def ids_of(entries: NDArray[Any]) -> list[str]:
    """The ids of entries, as hex digits."""
    import numpy as np

    digits = np.column_stack((entries["id_high"], entries["id_low"])).astype(">u8").tobytes().hex()
    return [digits[start : start + 32] for start in range(0, len(digits), 32)]


def entry_of(entry: Any, place: Place) -> Entry:
    """The entry as an object; its weights are their hash."""
    row_id = f"{int(entry['id_high']):016x}{int(entry['id_low']):016x}"
    return Entry(row_id, f"{entry['weights']:x}", place, row=int(entry["row"]))


def repeated(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which keys occur more than once; 0 is none."""
    import numpy as np

    order = np.argsort(keys, kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    found: NDArray[np.bool_] = np.zeros(len(keys), dtype=np.bool_)
    found[order[1:][same]] = True
    found[order[:-1][same]] = True
    found &= keys != 0
    return found


def repeats(entries: NDArray[Any], way: Way) -> Repeats:
    """The rows whose key a row of a lower place has.

    Args:
        entries: of `ENTRY`; all rows of a key are among them. Files are numbered in the order of sources and names.
        way: what is compared.
    """
    import numpy as np

    high, low = (entries[name] for name in KEYS[way])
    order = np.lexsort((entries["row"], entries["line"], entries["file"], low, high))
    high, low = high[order], low[order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    is_first |= (high == 0) & (low == 0)
    winner_of = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    return Repeats(order[~is_first], order[winner_of[~is_first]])
