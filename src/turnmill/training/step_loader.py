"""A run as one rank sees it: optimizer steps, each a list of micro-batches, over all epochs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from turnmill.isolation import COLLATORS, Layout
from turnmill.stream.collate import Batch, apart
from turnmill.stream.epoch_stream import EpochStream
from turnmill.stream.items import Item
from turnmill.stream.torch_stream import Loader
from turnmill.token_costs import batches_of


class MicroBatches(NamedTuple):
    """How the items of an optimizer step become micro-batches; workers are sent it."""

    layout: Layout
    batch_size: int
    """Packs of a micro-batch."""
    max_tokens: int
    """Rows times longest of a padded micro-batch; a longer example is one of its own."""
    pad_id: int = 0

    def __call__(self, items: Sequence[Item]) -> list[Batch]:
        """The items of a step, collated; padded, their examples are rows of about one length."""
        if self.layout == "padded":
            items = [one for item in items for one in apart(item)]
        collate = partial(COLLATORS[self.layout], pad_id=self.pad_id)
        return [collate([items[place] for place in places]) for places in self._places(items)]

    def _places(self, items: Sequence[Item]) -> Iterator[list[int]]:
        if self.layout == "padded":
            yield from batches_of([len(item["input_ids"]) for item in items], self.max_tokens)
        else:
            for start in range(0, len(items), self.batch_size):
                yield list(range(start, min(start + self.batch_size, len(items))))


class StepLoader:
    """The optimizer steps of one rank; iterating gives what is left of the run.

    Args:
        stream: of this rank; a batch of it is what an optimizer step learns from.
        micro_batches: how it is cut.
        epochs: how many there are; None: as many as are asked for.
        workers: processes that make batches.

    Attributes:
        epoch: of the step that was given last.
        micro_batches: of that epoch, up to that step.
    """

    def __init__(
        self, stream: EpochStream, micro_batches: MicroBatches, epochs: int | None = None, workers: int = 0
    ) -> None:
        self._stream = stream
        own = torch.Generator()  # else beginning to load would draw from the numbers that dropout draws from
        self._loader = Loader(stream, micro_batches, workers, generator=own)  # type: ignore[arg-type]  # lists of them
        self._epochs = epochs
        self.epoch = 0
        self.micro_batches = 0
        self._step, self._steps = 0, len(stream)

    def __iter__(self) -> Iterator[list[Batch]]:
        """What is left of the run."""
        while self._epochs is None or self._stream.epoch < self._epochs:
            self.epoch, self._steps = self._stream.epoch, len(self._stream)
            if self._stream.step == 0:
                self.micro_batches = 0
            for batches in self._loader:
                self.micro_batches += len(batches)
                self._step = self._stream.step
                yield batches  # type: ignore[misc]  # what MicroBatches made

    @property
    def is_epoch_end(self) -> bool:
        """Whether the step that was given last ended its epoch."""
        return self._step == self._steps

    @property
    def is_end(self) -> bool:
        """Whether it ended the run."""
        return self.is_epoch_end and self._epochs is not None and self.epoch + 1 >= self._epochs

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of the run."""
        return self.is_end or (self._epochs is not None and self.epoch >= self._epochs)

    @property
    def progress(self) -> float:
        """Epochs that were gone through, with the share of the current one."""
        return self.epoch + self._step / max(1, self._steps)

    def state_dict(self) -> dict[str, Any]:
        """Where it stands behind the step that was given last: small, JSON."""
        return {"stream": self._loader.state_dict(), "micro_batches": self.micro_batches}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on there.

        Raises:
            StaleError: it stood in other data, or cut them into other steps.
        """
        self._loader.load_state_dict(state["stream"])
        self.micro_batches = state["micro_batches"]
        self.epoch, self._step, self._steps = self._stream.epoch, self._stream.step, len(self._stream)


def steps_of(stream: EpochStream, epochs: int, *, exact: bool) -> int:
    """Optimizer steps of some epochs.

    Args:
        stream: at its beginning.
        epochs: how many.
        exact: plan every one; False: all are as long as the first.
    """
    if not exact:
        return len(stream) * epochs
    total = 0
    for epoch in range(epochs):
        stream.set_epoch(epoch)
        total += len(stream)
    stream.set_epoch(0)
    return total
