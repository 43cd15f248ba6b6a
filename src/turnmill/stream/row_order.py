"""Which rows each rank sees when, without knowing what becomes of them: the order of an epoch, window by window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.mix import Share, passes_of
from turnmill.stream.steps import Steps

WINDOW_ROWS = 2048
UNIT_ROWS = 256
"""Neighbouring rows that stay together until their window: so much of a file is read at once."""

Places = NDArray[np.int64]
"""(rows, 2) block of each row, and its place there."""
Sizes = Callable[[int], NDArray[np.int64]]
"""Block → (rows,) about how long each of its rows is."""


class Cut(NamedTuple):
    """How a rank's batches are cut of an epoch."""

    batch_size: int = 8
    """Rows of a batch."""
    rank: int = 0
    ranks: int = 1
    seed: int = 0
    """Of the order."""
    is_kept: bool = False
    """The order in which the rows lie, and no lengths together."""
    window_rows: int = WINDOW_ROWS
    """Rows of a rank that are ordered, and held by each of its workers, together."""


class OfSource(NamedTuple):
    """What a source gives to every epoch, and where its rows lie."""

    share: Share
    blocks: range


class RowOrder(NamedTuple):
    """The steps of every epoch over rows that lie in blocks.

    A step takes `batch_size` rows for each rank, whatever becomes of them, so all ranks have the same number of steps.
    `kept`: step n of all ranks together is the next rows. Otherwise units of rows are shuffled and each rank takes a
    stretch of them, window by window: the rows of a window are shuffled and cut into steps of about one length, and the
    steps are shuffled, alike on all ranks, which so have batches of like lengths at the same time.

    `mixed`: an epoch has so many rows of each source. A source is gone through unit by unit, in a new order each time,
    and an epoch goes on where the last one stopped: no row comes again before all others of its source have come.
    """

    block_rows: tuple[int, ...]
    cut: Cut
    mixed: tuple[OfSource, ...] | None = None
    """None: every row comes once."""

    @property
    def rows(self) -> int:
        """Rows of an epoch."""
        return sum(self.block_rows) if self.mixed is None else sum(one.share.drawn for one in self.mixed)

    @property
    def steps(self) -> Steps:
        """The steps of an epoch, on every rank."""
        return Steps(self.rows, self.cut.batch_size, self.cut.ranks)

    @property
    def window_steps(self) -> int:
        """Steps of a window; the last may have fewer."""
        return max(1, self.cut.window_rows // self.cut.batch_size)

    def window(self, epoch: int, number: int, sizes: Sizes) -> list[Places]:
        """The rows of this rank in each of a window's steps.

        Args:
            epoch: 0-based.
            number: of the window in the epoch.
            sizes: what rows of about one length are told by; not asked for where the order is kept.
        """
        first = number * self.window_steps
        steps = range(first, min(first + self.window_steps, self.steps.total))
        if self.cut.is_kept:
            units = self._units(epoch)
            return [self._places(units, self.steps.span(step, self.cut.rank)) for step in steps]
        return self._shuffled(epoch, steps, sizes)

    def _shuffled(self, epoch: int, steps: range, sizes: Sizes) -> list[Places]:
        total, rank, ranks = self.rows, self.cut.rank, self.cut.ranks
        begin, end = rank * total // ranks, (rank + 1) * total // ranks
        units = np.random.default_rng([self.cut.seed, epoch]).permutation(self._units(epoch))
        random = np.random.default_rng([self.cut.seed, epoch, steps.start])
        order = random.permutation(len(steps))  # first: the ranks draw alike, however many rows they have
        places = self._places(
            units, range(begin + steps.start * self.cut.batch_size, min(end, begin + steps.stop * self.cut.batch_size))
        )
        places = places[random.permutation(len(places))]
        known = {block: sizes(block) for block in np.unique(places[:, 0]).tolist()}
        lengths = np.array([known[block][place] for block, place in places.tolist()], dtype=np.int64)
        cut = np.array_split(places[np.argsort(lengths, kind="stable")], len(steps))
        return [cut[step] for step in order]

    def _units(self, epoch: int) -> NDArray[np.int64]:
        """(units, 3) block, first row there, rows: the units that an epoch has, source by source."""
        units = self._all_units()
        if self.mixed is None:
            return units
        parts = [units[:0]]
        for place, (share, blocks) in enumerate(self.mixed):
            own = units[(units[:, 0] >= blocks.start) & (units[:, 0] < blocks.stop)]
            for number, rows in passes_of(share, epoch):
                random = np.random.default_rng([self.cut.seed, place, number])
                parts.append(_within(own if self.cut.is_kept else random.permutation(own), rows))
        return np.concatenate(parts)

    def _all_units(self) -> NDArray[np.int64]:
        """The units of all blocks, which are cut to at most `UNIT_ROWS`, in order."""
        rows = np.array(self.block_rows, dtype=np.int64)
        counts = -(-rows // UNIT_ROWS)
        blocks = np.repeat(np.arange(len(rows)), counts)
        firsts = UNIT_ROWS * (np.arange(len(blocks)) - (np.cumsum(counts) - counts)[blocks])
        return np.stack([blocks, firsts, np.minimum(UNIT_ROWS, rows[blocks] - firsts)], axis=1)

    def _places(self, units: NDArray[np.int64], span: range) -> Places:
        """The rows at some neighbouring positions of units that lie end to end."""
        ends = np.cumsum(units[:, 2])
        positions = np.arange(span.start, span.stop)
        numbers = np.searchsorted(ends, positions, side="right")
        inside = positions - (ends - units[:, 2])[numbers]
        return np.stack([units[numbers, 0], units[numbers, 1] + inside], axis=1)


def _within(units: NDArray[np.int64], rows: range) -> NDArray[np.int64]:
    """The units, and parts of units, that hold some neighbouring rows of units that lie end to end."""
    ends = np.cumsum(units[:, 2])
    begins = ends - units[:, 2]
    held = np.flatnonzero((ends > rows.start) & (begins < rows.stop))
    found = units[held].copy()
    skipped = np.maximum(rows.start - begins[held], 0)
    found[:, 1] += skipped
    found[:, 2] = np.minimum(ends[held], rows.stop) - begins[held] - skipped
    return found


def in_blocks(places: Sequence[Places]) -> dict[int, list[int]]:
    """Block → places of the rows there, sorted; a row that comes twice has one place."""
    found: dict[int, set[int]] = {}
    for block, place in (row for step in places for row in step.tolist()):
        found.setdefault(block, set()).add(place)
    return {block: sorted(own) for block, own in sorted(found.items())}
