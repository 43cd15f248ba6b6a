from __future__ import annotations

import itertools

import numpy as np
import pytest

from turnmill.files.prepared import PreparedData
from turnmill.stream.prepared_stream import PreparedStream
from turnmill.training.step_loader import MicroBatches, StepLoader, steps_of


def loader(out, layout="flat", packs=3, epochs=2, **ranks) -> StepLoader:
    stream = PreparedStream(PreparedData(out, whole=False), packs, packed=True, **ranks)
    return StepLoader(stream, MicroBatches(layout, 1, 128), epochs)


def learned(batches) -> list[int]:
    """The labels of a step, in whatever order."""
    return sorted(label for batch in batches for label in batch["labels"].flatten().tolist() if label != -100)


def test_a_step_has_the_same_labels_packed_and_padded(out):
    packed, padded = (list(loader(out, layout)) for layout in ("flat", "padded"))
    assert list(map(learned, packed)) == list(map(learned, padded))
    assert all(batch["input_ids"].numel() <= 128 for batches in padded for batch in batches)


def test_ranks_share_each_step(out):
    alone = [learned(batches) for batches in loader(out, packs=4)]
    shared = [loader(out, packs=2, rank=rank, ranks=2) for rank in range(2)]
    together = [sorted(itertools.chain(*map(learned, step))) for step in zip(*shared, strict=True)]
    assert together == alone


@pytest.mark.parametrize("layout", ["flat", "padded"])
@pytest.mark.parametrize("taken", [1, 4, 5, 7])
def test_it_goes_on_where_it_stood(out, layout, taken):
    whole, first, again = (loader(out, layout) for _ in range(3))
    for _ in itertools.islice(first, taken):
        pass
    again.load_state_dict(first.state_dict())
    rest = [learned(batches) for batches in again]
    assert rest == [learned(batches) for batches in whole][taken:]
    assert again.is_end


def test_the_end_of_epochs_and_of_the_run_are_told(out):
    made = loader(out)
    ends = [(made.is_epoch_end, made.is_end, made.micro_batches) for _ in made]
    packs = [len(PreparedData(out, whole=False).plan("train", epoch)) for epoch in range(2)]
    assert [count for epoch_end, _, count in ends if epoch_end] == packs
    assert [end for _, end, _ in ends].index(True) == len(ends) - 1
    stream = PreparedStream(PreparedData(out, whole=False), 3, packed=True)
    assert steps_of(stream, 2, exact=True) == len(ends)
    assert stream.epoch == 0


def test_without_a_number_of_epochs_it_never_ends(out):
    steps = itertools.islice(loader(out, epochs=None), 20)
    assert np.all([len(batches) >= 1 for batches in steps])
