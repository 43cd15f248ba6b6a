"""Items to tensors: packed without a mask, as one row with borders, with a block mask, or padded by length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from turnmill.stream.items import Item
from turnmill.tokens.pack import packed

if TYPE_CHECKING:
    import torch

Batch = dict[str, Any]
"""Names of a forward's arguments → tensors; besides `loss_weights`, and `trained_tokens`: how many labels count."""

IGNORE = -100
PAD_TO = 8
"""Rows are padded to a multiple of it."""


def collate_packed(items: Sequence[Item], pad_id: int = 0) -> Batch:
    """(items, longest) rows with `position_ids` that begin anew at each example, and no mask.

    A mask of ones would let examples see each other (measured on transformers 5.24); `position_ids` alone are what its
    sdpa, eager and flex attention tell examples by. The padding of a row is one more example, which learns nothing.
    """
    rows = _padded(items, pad_id)
    positions = np.zeros(rows["input_ids"].shape, dtype=np.int64)
    for row, item in zip(positions, items, strict=True):
        row[:] = _positions([*item["seq_lengths"].tolist(), len(row) - len(item["input_ids"])])
    return _tensors({**rows, "position_ids": positions})


def collate_flat(items: Sequence[Item], pad_id: int = 0) -> Batch:
    """(1, tokens) one row of all examples and where they begin: no mask, no padding.

    `cu_seq_lens_q/k`, `max_length_q/k` and `seq_idx` are for kernels that take borders: flash attention, state-space
    layers.
    """
    lengths = np.concatenate([item["seq_lengths"] for item in items]).astype(np.int64)
    joined = {
        name: np.concatenate([item[name] for item in items])[None] for name in ("input_ids", "labels", "loss_weights")
    }
    borders = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    batch = _tensors({**joined, "position_ids": _positions(lengths.tolist())[None]})
    made = _tensors(
        {"cu_seq_lens_q": borders, "seq_idx": np.repeat(np.arange(len(lengths)), lengths)[None].astype(np.int32)}
    )
    longest = int(lengths.max())
    return {
        **batch, **made, "cu_seq_lens_k": made["cu_seq_lens_q"], "max_length_q": longest, "max_length_k": longest,
    }  # fmt: skip


def collate_block(items: Sequence[Item], pad_id: int = 0) -> Batch:
    """As `collate_packed`, with a Boolean (items, 1, longest, longest) mask: a token sees its own example alone.

    For attention that does not tell examples by `position_ids`.
    """
    rows = collate_packed(items, pad_id)
    size = rows["input_ids"].shape[1]
    numbers = np.stack([_numbers([*item["seq_lengths"].tolist(), size - len(item["input_ids"])]) for item in items])
    same = numbers[:, :, None] == numbers[:, None, :]
    return {**rows, **_tensors({"attention_mask": (same & np.tri(size, dtype=bool))[:, None]})}


def collate_padded(items: Sequence[Item], pad_id: int = 0) -> Batch:
    """(examples, longest) each example a row of its own, padded on the right.

    `attention_mask` is by length: a padding token inside an example is part of it.
    """
    alone = [one for item in items for one in apart(item)]
    rows = _padded(alone, pad_id)
    lengths = np.array([len(one["input_ids"]) for one in alone])
    mask = (np.arange(rows["input_ids"].shape[1])[None] < lengths[:, None]).astype(np.int64)
    return _tensors({**rows, "attention_mask": mask})


def apart(item: Item) -> list[Item]:
    """The examples of a pack, an item each."""
    borders = np.cumsum(item["seq_lengths"])[:-1]
    parts = {name: np.split(item[name], borders) for name in ("input_ids", "labels", "loss_weights")}
    return [
        {**{name: values[number] for name, values in parts.items()}, "seq_lengths": item["seq_lengths"][number:][:1]}
        for number in range(len(item["seq_lengths"]))
    ]


def packed_together(items: Sequence[Item], max_tokens: int) -> list[Item]:
    """The examples of a batch in as few packs as they fit in, for batches that are made on the fly.

    Args:
        items: of a batch.
        max_tokens: of a pack; a single example that is longer has one of its own.
    """
    examples = [example for item in items for example in apart(item)]
    lengths = [min(len(example["input_ids"]), max_tokens) for example in examples]
    plan = packed(lengths, max_tokens, in_order=False)
    return [_joined([examples[number] for number in numbers]) for numbers in plan.lists()]


def _joined(examples: Sequence[Item]) -> Item:
    names = ("input_ids", "labels", "loss_weights", "seq_lengths")
    return {name: np.concatenate([example[name] for example in examples]) for name in names}


def _padded(items: Sequence[Item], pad_id: int) -> dict[str, NDArray[Any]]:
    longest = max(len(item["input_ids"]) for item in items)
    width = -(-longest // PAD_TO) * PAD_TO
    fills: dict[str, tuple[float, type]] = {
        "input_ids": (pad_id, np.int64), "labels": (IGNORE, np.int64), "loss_weights": (0.0, np.float32),
    }  # fmt: skip
    rows: dict[str, NDArray[Any]] = {
        name: np.full((len(items), width), fill, dtype=kind) for name, (fill, kind) in fills.items()
    }
    for number, item in enumerate(items):
        for name, values in rows.items():
            values[number, : len(item["input_ids"])] = item[name]
    return rows


def _positions(lengths: Sequence[int]) -> NDArray[np.int64]:
    """0, 1, 2 … of each length in turn."""
    return np.concatenate([np.arange(length, dtype=np.int64) for length in lengths])


def _numbers(lengths: Sequence[int]) -> NDArray[np.int64]:
    """Which of the lengths each place is in."""
    return np.repeat(np.arange(len(lengths)), lengths)


def _tensors(arrays: dict[str, NDArray[Any]]) -> dict[str, torch.Tensor]:
    import torch

    found = {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in arrays.items()}
    for name in ("input_ids", "labels"):
        if name in found:
            found[name] = found[name].long()
    if "labels" in found:
        found["trained_tokens"] = (found["labels"] != IGNORE).sum()
    return found
