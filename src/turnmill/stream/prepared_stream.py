"""A plain iterator over prepared data: batches of one rank, epoch by epoch, resumable in constant time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnmill.errors import StaleError, UsageError
from turnmill.files.prepared import PreparedData, Side
from turnmill.stream.items import Item, Items, examples_of, item_of, packs_of
from turnmill.stream.steps import Steps


class PreparedStream:
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
        self.prepared = prepared if isinstance(prepared, PreparedData) else PreparedData(prepared, whole=False)
        if not 0 <= rank < ranks or batch_size < 1:
            raise UsageError(
                f"rank {rank} of {ranks}, batches of {batch_size}; expected 0 <= rank < ranks, and at least 1"
            )
        self._examples = self.prepared.examples(side)
        if not len(self._examples):
            raise UsageError(f"{self.prepared.folder} holds no rows of {side!r}", next_step="turnmill prepare --help")
        self._side, self._batch_size, self._rank, self._ranks = side, batch_size, rank, ranks
        self._packed = bool(self.prepared.epochs_recipe["pack"]["on"]) if packed is None else packed
        self.epoch = 0
        self.step = 0
        self._items: tuple[int, Items] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch, self.step = epoch, 0

    def __len__(self) -> int:
        """Batches of the epoch, the same on all ranks."""
        return self._steps().total

    def __iter__(self) -> Iterator[list[Item]]:
        """What is left of the epoch."""
        yield from self.of_worker(0, 1)
        self.set_epoch(self.epoch + 1)

    def of_worker(self, worker: int, workers: int) -> Iterator[list[Item]]:
        """The batches that one of a rank's workers makes of what is left of the epoch."""
        steps, items = self._steps(), self._epoch_items()
        for step in steps.of_worker(self.step, worker, workers):
            span = steps.span(step, self._rank)
            self.step = step + 1
            yield [item_of(self._examples, items.of(place)) for place in span] or [item_of(self._examples, [])]

    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands: small, JSON, whatever the size of the data."""
        return {"epoch": self.epoch, "step": self.step, "of": self._identity}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where another stream of the same data stood.

        Raises:
            StaleError: it stood in other data, or cut them into other batches.
        """
        if state["of"] != self._identity:
            raise StaleError(
                f"this state is of {state['of']}; the stream is of {self._identity}: the same step would be other rows",
                next_step="turnmill census OUT",
            )
        self.epoch, self.step = state["epoch"], state["step"]

    @property
    def _identity(self) -> dict[str, Any]:
        return {
            "data": self.prepared.manifest["fingerprint"], "side": self._side, "packed": self._packed,
            "batch_size": self._batch_size, "ranks": self._ranks,
        }  # fmt: skip

    def _steps(self) -> Steps:
        return Steps(self._epoch_items().total, self._batch_size, self._ranks)

    def _epoch_items(self) -> Items:
        if self._items is None or self._items[0] != self.epoch:
            self._items = (self.epoch, self._made())
        return self._items[1]

    def _made(self) -> Items:
        if self._packed:
            return packs_of(self.prepared, self._side, self.epoch)
        return examples_of(self.prepared, self._side, self.epoch, self._batch_size * self._ranks)
