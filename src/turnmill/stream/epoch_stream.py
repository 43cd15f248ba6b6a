"""What every stream is: batches of one rank, epoch by epoch, from wherever it stopped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from turnmill.errors import StaleError, UsageError
from turnmill.stream.items import Item


class EpochStream(ABC):
    """The batches that one rank learns from; iterating gives one epoch, the next iteration the next.

    Args:
        batch_size: what one batch is made of: packs, examples or rows.
        rank: of this process.
        ranks: how many there are.

    Attributes:
        epoch: of the next batch.
        step: number of the next batch in its epoch.

    Raises:
        UsageError: a rank that is not among them, or empty batches.
    """

    def __init__(self, batch_size: int, rank: int, ranks: int) -> None:
        if not 0 <= rank < ranks or batch_size < 1:
            raise UsageError(
                f"rank {rank} of {ranks}, batches of {batch_size}; expected 0 <= rank < ranks, and at least 1"
            )
        self._batch_size, self._rank, self._ranks = batch_size, rank, ranks
        self.epoch = 0
        self.step = 0

    @abstractmethod
    def __len__(self) -> int:
        """Batches of the epoch, the same on all ranks."""

    @abstractmethod
    def of_worker(self, worker: int, workers: int) -> Iterator[list[Item]]:
        """The batches that one of a rank's workers makes of what is left of the epoch."""

    @property
    @abstractmethod
    def _identity(self) -> dict[str, Any]:
        """What another stream must have alike for its steps to be the same."""

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch, self.step = epoch, 0

    def __iter__(self) -> Iterator[list[Item]]:
        """What is left of the epoch."""
        for items in self.of_worker(0, 1):
            self.note(account_of(items))
            yield items
        self.end_epoch()

    def end_epoch(self) -> None:
        """Go to the next epoch, once every batch was taken."""
        self.set_epoch(self.epoch + 1)

    def note(self, account: Any) -> None:  # noqa: B027  # most streams have nothing to tell
        """Take in what a batch says of its making, once it is given: workers count in copies of their own."""

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


def account_of(items: list[Item]) -> Any:
    """What a batch says of its making; None where it says nothing."""
    return getattr(items, "account", None)
