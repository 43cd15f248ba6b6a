"""A plain iterator over prepared data: batches of one rank, epoch by epoch, resumable in constant time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnmill.errors import UsageError
from turnmill.files.prepared import PreparedData, Side
from turnmill.stream.epoch_stream import EpochStream
from turnmill.stream.items import Item, examples_of, item_of
from turnmill.stream.steps import Steps
from turnmill.tokens.pack import Plan


class PreparedStream(EpochStream):
    """The batches that one rank learns from; iterating gives one epoch, the next iteration the next.

    Every example of an epoch comes once over all ranks and workers, each rank has the same number of batches, and the
    batches of step n of all ranks together are the next items of the plan: the order of a curriculum survives.

    Args:
        prepared: OUT, or its folder (sizes alone are compared with the manifest; open it yourself to have hashes
            compared).
        batch_size: items of a batch: packs, or examples where `packed` is False.
        side: whose rows.
        packed: packs of whole examples; None: as the data were prepared.
        rank: of this process.
        ranks: how many there are.

    Attributes:
        prepared: the data.
        epoch: of the next batch.
        step: number of the next batch in its epoch.

    Raises:
        UsageError: no rows of that side, or a rank that is not among them.
    """

    def __init__(
        self,
        prepared: PreparedData | str | Path,
        batch_size: int = 1,
        *,
        side: Side = "train",
        packed: bool | None = None,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        super().__init__(batch_size, rank, ranks)
        self.prepared = prepared if isinstance(prepared, PreparedData) else PreparedData(prepared, whole=False)
        self._examples = self.prepared.examples(side)
        if not len(self._examples):
            raise UsageError(f"{self.prepared.folder} holds no rows of {side!r}", next_step="turnmill prepare --help")
        self._side = side
        self._packed = bool(self.prepared.epochs_recipe["pack"]["on"]) if packed is None else packed
        self._items: tuple[int, Plan] | None = None

    def __len__(self) -> int:
        """Batches of the epoch, the same on all ranks."""
        return self._steps().total

    def of_worker(self, worker: int, workers: int) -> Iterator[list[Item]]:
        """The batches that one of a rank's workers makes of what is left of the epoch."""
        steps, items = self._steps(), self._epoch_items()
        for step in steps.of_worker(self.step, worker, workers):
            span = steps.span(step, self._rank)
            self.step = step + 1
            yield [item_of(self._examples, items.of(place)) for place in span] or [item_of(self._examples, [])]

    @property
    def _identity(self) -> dict[str, Any]:
        return {
            "data": self.prepared.manifest["fingerprint"], "side": self._side, "packed": self._packed,
            "batch_size": self._batch_size, "ranks": self._ranks,
        }  # fmt: skip

    def _steps(self) -> Steps:
        return Steps(self._epoch_items().packs, self._batch_size, self._ranks)

    def _epoch_items(self) -> Plan:
        if self._items is None or self._items[0] != self.epoch:
            self._items = (self.epoch, self._made())
        return self._items[1]

    def _made(self) -> Plan:
        if self._packed:
            return self.prepared.packs_of(self._side, self.epoch)
        return examples_of(self.prepared, self._side, self.epoch, self._batch_size * self._ranks)
