"""A stream as a torch `IterableDataset`, and the loader that keeps its order and its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from turnmill.errors import UsageError
from turnmill.stream.collate import Batch, collate_packed
from turnmill.stream.epoch_stream import EpochStream, account_of
from turnmill.stream.items import Item


class TorchStream(IterableDataset[list[Item]]):
    """The batches of a stream; each worker makes every n-th, so that a loader without a batch size keeps their order.

    Args:
        stream: one rank's; not copied.
    """

    def __init__(self, stream: EpochStream) -> None:
        self.stream = stream

    def __iter__(self) -> Iterator[list[Item]]:
        """What is left of the epoch."""
        info = get_worker_info()
        if info is None:
            yield from self.stream.of_worker(0, 1)
        else:
            yield from self.stream.of_worker(info.id, info.num_workers)


class Loader:
    """Collated batches of one rank; iterating gives what is left of an epoch, the next iteration the next epoch.

    Args:
        stream: one rank's.
        collate: items of a batch → tensors.
        workers: processes that make batches.
        options: of torch's `DataLoader` (`pin_memory`, `prefetch_factor` …).

    Raises:
        UsageError: workers that outlive an epoch.
    """

    def __init__(
        self,
        stream: EpochStream,
        collate: Callable[[list[Item]], Batch] = collate_packed,
        workers: int = 0,
        **options: Any,
    ) -> None:
        if options.get("persistent_workers"):
            raise UsageError("workers that outlive an epoch would repeat it: expected persistent_workers=False")
        self.stream = stream
        self._loader = DataLoader(
            TorchStream(stream), batch_size=None, collate_fn=_Accounted(collate), num_workers=workers, **options
        )

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self.stream)

    def __iter__(self) -> Iterator[Batch]:
        """What is left of the epoch."""
        step = self.stream.step
        for account, batch in self._loader:
            step += 1
            self.stream.step = step  # workers count in copies of their own, or ahead of what was taken
            self.stream.note(account)
            yield batch
        self.stream.end_epoch()

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, by what it gave: what workers made ahead is made again."""
        return self.stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on there; before the next iteration begins.

        Raises:
            StaleError: it stood in other data, or cut them into other batches.
        """
        self.stream.load_state_dict(state)


class _Accounted:
    """A collator that gives what a batch says of its making beside the tensors; a worker is sent it whole."""

    def __init__(self, collate: Callable[[list[Item]], Batch]) -> None:
        self._collate = collate

    def __call__(self, items: list[Item]) -> tuple[Any, Batch]:
        return account_of(items), self._collate(items)
