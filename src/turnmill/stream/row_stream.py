"""Rows rendered, encoded and fitted as they are asked for: a stream without prepared examples."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Checked
from turnmill.errors import UsageError
from turnmill.files.examples import Laid
from turnmill.files.packed import packed_row
from turnmill.files.quarantine import Left
from turnmill.rendered import Example
from turnmill.stream.epoch_stream import EpochStream
from turnmill.stream.items import Item, item_of
from turnmill.stream.row_order import Cut, OfSource, Places, RowOrder, in_blocks
from turnmill.tokens.labels import loss_weights

TOGETHER = 256
"""Rows that are encoded together, at least."""


@dataclass(frozen=True, slots=True)
class Account:
    """What became of the rows of a batch."""

    rows: int
    examples: int
    left: tuple[Left, ...]


class Batch(list[Item]):
    """The examples of a batch, an item each, and the account of its rows."""

    account: Account


class Rows(Protocol):
    """Rows that can be picked, in blocks that are read at once; workers are sent it."""

    @property
    def identity(self) -> str:
        """The same where the rows are the same."""

    @property
    def block_rows(self) -> tuple[int, ...]:
        """Rows of each block."""

    def sizes(self, block: int) -> NDArray[np.int64]:
        """(rows,) about how long each row of a block is."""

    def picked(self, block: int, places: Sequence[int]) -> Iterable[Picked]:
        """The rows at some places of a block, in order."""


class Picked(NamedTuple):
    """A checked row with its id, or why it left before."""

    row: Checked | None
    row_id: str
    left: Left | None = None


class Make(Protocol):
    """The row pipeline with its options; workers are sent it."""

    @property
    def identity(self) -> str:
        """The same where the same rows give the same examples."""

    def __call__(self, rows: Sequence[Checked], ids: Sequence[str]) -> Iterable[list[Example] | Left]:
        """Each row's examples, or why it has none."""


class RowStream(EpochStream):
    """The batches that one rank learns from, made of rows on the fly.

    Every row of an epoch comes once over all ranks and workers; of a mix, as often as its source's share says. A batch
    is made of `batch_size` rows: a row that gives no example makes its batch smaller (one token that learns nothing
    stands for an empty one), a row that gives several makes it larger. So each rank has the same number of batches,
    whatever becomes of its rows.

    Args:
        rows: what is read.
        make: what makes examples of it.
        cut: how its batches are cut of an epoch.
        on_left: is given every row of this rank that gives no example, with its code, once its batch is taken.
        mixed: how many rows an epoch has of each source; None: every row once.

    Attributes:
        epoch: of the next batch.
        step: number of the next batch in its epoch.
        counts: of this rank's rows of the epoch so far: `rows/read`, `rows/accepted`, `rows/<class>`, `codes/<code>`,
            `examples`.

    Raises:
        UsageError: no rows, or a rank that is not among them.
    """

    def __init__(
        self,
        rows: Rows,
        make: Make,
        cut: Cut,
        on_left: Callable[[Left], None] | None = None,
        mixed: tuple[OfSource, ...] | None = None,
    ) -> None:
        super().__init__(cut.batch_size, cut.rank, cut.ranks)
        self._rows, self._make = rows, make
        self._order = RowOrder(rows.block_rows, cut, mixed)
        if not self._order.rows:
            raise UsageError("there are no rows to stream", next_step="turnmill census DATA")
        self._on_left = on_left
        self.counts: Counter[str] = Counter()

    def __getstate__(self) -> dict[str, Any]:
        """What a worker is sent: what left is told where batches are taken."""
        return {**self.__dict__, "_on_left": None}

    def __len__(self) -> int:
        """Batches of the epoch, the same on all ranks."""
        return self._order.steps.total

    def of_worker(self, worker: int, workers: int) -> Iterator[Batch]:
        """The batches that one of a rank's workers makes of what is left of the epoch."""
        width = self._order.window_steps
        own = self._order.steps.of_worker(self.step, worker, workers)
        for number, of_window in groupby(own, key=lambda step: step // width):
            steps = list(of_window)
            window = self._order.window(self.epoch, number, self._rows.sizes)
            batches = self._batches([window[step - number * width] for step in steps])
            for step, batch in zip(steps, batches, strict=True):
                self.step = step + 1
                yield batch

    def _batches(self, steps: Sequence[Places]) -> Iterator[Batch]:
        """The batches of some steps; their rows are read at once and encoded by the hundred."""
        held = {
            (block, place): picked
            for block, places in in_blocks(steps).items()
            for place, picked in zip(places, self._rows.picked(block, places), strict=True)
        }
        waiting = iter(steps)
        while some := list(islice(waiting, -(-TOGETHER // self._batch_size))):
            rows = [[held[block, place] for block, place in step.tolist()] for step in some]
            made = iter(self._made([row for step in rows for row in step]))
            for step in rows:
                yield _batch(list(islice(made, len(step))))

    def _made(self, rows: Sequence[Picked]) -> Iterator[list[Example] | Left]:
        good = [(picked.row, picked.row_id) for picked in rows if picked.row is not None]
        made = iter(self._make([row for row, _ in good], [row_id for _, row_id in good]))
        for picked in rows:
            yield next(made) if picked.left is None else picked.left

    def note(self, account: Account | None) -> None:
        """Count a batch's rows; the first row of each code is told of, and all of them at the end of the epoch."""
        if account is None:
            return
        if self.step == 1:
            self.counts.clear()
        self.counts["rows/read"] += account.rows
        self.counts["rows/accepted"] += account.rows - len(account.left)
        self.counts["examples"] += account.examples
        for left in account.left:
            self.counts[f"rows/{left.class_}"] += 1
            self.counts[f"codes/{left.code}"] += 1
            if self.counts[f"codes/{left.code}"] == 1:
                place = f"{left.source_file}:{left.source_line}"
                warnings.warn(f"{place} gives no example: {left.code}: {left.message}", stacklevel=2)
            if self._on_left is not None:
                self._on_left(left)

    def end_epoch(self) -> None:
        """Go to the next epoch, once every batch was taken; its counts stay until the next batch."""
        epoch, read = self.epoch, self.counts["rows/read"]
        super().end_epoch()
        left = read - self.counts["rows/accepted"]
        if left:
            codes = ", ".join(f"{count:,} {key.removeprefix('codes/')}" for key, count in self._codes())
            told = f"epoch {epoch}, rank {self._rank}: {left:,} of {read:,} rows gave no example: {codes}"
            warnings.warn(told, stacklevel=2)

    def _codes(self) -> list[tuple[str, int]]:
        return sorted((item for item in self.counts.items() if item[0].startswith("codes/")), key=lambda item: -item[1])

    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands, and what it has counted: small, JSON, whatever the size of the data."""
        return {**super().state_dict(), "counts": dict(self.counts)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another stream of the same rows and options stood.

        Raises:
            StaleError: it stood in other rows, made other examples, or cut them into other batches.
        """
        super().load_state_dict(state)
        self.counts = Counter(state["counts"])

    @property
    def _identity(self) -> dict[str, Any]:
        cut = self._order.cut._asdict()
        del cut["rank"]
        mixed = self._order.mixed
        drawn = {} if mixed is None else {"drawn": {one.share.source: one.share.drawn for one in mixed}}
        return {"rows": self._rows.identity, "made": self._make.identity, **cut, **drawn}


def _batch(made: Sequence[list[Example] | Left]) -> Batch:
    left = tuple(one for one in made if isinstance(one, Left))
    examples = [example for one in made if not isinstance(one, Left) for example in one]
    batch = Batch([_item(example) for example in examples] or [item_of(None, [])])
    batch.account = Account(len(made), len(examples), left)
    return batch


def _item(example: Example) -> Item:
    ids, runs = np.asarray(example.input_ids, np.int32), example.runs
    weights = loss_weights([run.end for run in runs], [run.weight for run in runs])
    return packed_row(Laid([example.row_id], np.array([len(ids)], np.int32), ids, weights))
