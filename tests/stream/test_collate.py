"""Tensors of packs and examples; the isolation of packed rows is proven on a small model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from turnmill.stream.collate import apart, collate_block, collate_flat, collate_packed, collate_padded, packed_together
from turnmill.stream.items import item_of

COLLATES = [collate_packed, collate_flat, collate_block, collate_padded]


def item(*lengths: int, seed: int = 0) -> dict:
    total = sum(lengths)
    ids = np.random.default_rng(seed).integers(0, 90, total).astype(np.int32)
    labels = ids.copy()
    starts = np.cumsum([0, *lengths[:-1]])
    labels[starts] = -100
    weights = np.ones(total, np.float32)
    weights[starts] = 0
    return {"input_ids": ids, "labels": labels, "seq_lengths": np.array(lengths, np.int32), "loss_weights": weights,
            "row_ids": [str(n) for n in range(len(lengths))]}  # fmt: skip


ITEMS = [item(5, 9, 3), item(4, 6, seed=1)]


@pytest.fixture(scope="module")
def model():
    import transformers

    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        "llama", vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2,
    )  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def loss_of(model, batch) -> float:
    """Sum of the NLL of all labels."""
    known = {"input_ids", "position_ids", "attention_mask"}
    with torch.inference_mode():
        logits = model(**{name: value for name, value in batch.items() if name in known}, use_cache=False).logits
    losses = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, 96), batch["labels"][:, 1:].reshape(-1), ignore_index=-100, reduction="sum"
    )
    return float(losses)


@pytest.mark.parametrize("collate", COLLATES)
def test_examples_cost_in_a_batch_what_they_cost_alone(model, collate):
    parts = [one for row in ITEMS for one in _single(row)]
    alone = sum(loss_of(model, collate_padded([part])) for part in parts)
    assert loss_of(model, collate(ITEMS)) == pytest.approx(alone, rel=1e-4)


def _single(row: dict) -> list[dict]:
    borders = np.cumsum(row["seq_lengths"])[:-1]
    split = {name: np.split(row[name], borders) for name in ("input_ids", "labels", "loss_weights")}
    return [
        {**{name: parts[n] for name, parts in split.items()}, "seq_lengths": row["seq_lengths"][n : n + 1]}
        for n in range(len(row["seq_lengths"]))
    ]


@pytest.mark.parametrize("collate", COLLATES)
def test_the_labels_that_count_are_counted(collate):
    assert int(collate(ITEMS)["trained_tokens"]) == 22


def test_packed_positions_begin_anew_and_there_is_no_mask():
    batch = collate_packed(ITEMS)
    assert batch["position_ids"][1].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, *range(14)]
    assert "attention_mask" not in batch
    assert batch["input_ids"].shape == (2, 24)


def test_flat_has_borders_and_no_padding():
    batch = collate_flat(ITEMS)
    assert batch["cu_seq_lens_q"].tolist() == [0, 5, 14, 17, 21, 27]
    assert (batch["max_length_q"], batch["input_ids"].shape) == (9, (1, 27))
    assert batch["seq_idx"][0].tolist() == [0] * 5 + [1] * 9 + [2] * 3 + [3] * 4 + [4] * 6


def test_padding_is_by_length_though_a_token_has_the_padding_id():
    one = item(3)
    one["input_ids"][:] = 0
    batch = collate_padded([one, item(8)], pad_id=0)
    assert batch["attention_mask"].sum(1).tolist() == [3, 8]
    assert batch["labels"][0].tolist() == [-100, *one["labels"][1:].tolist(), *[-100] * 5]


@pytest.mark.parametrize("collate", COLLATES)
def test_a_rank_that_has_nothing_left_learns_nothing(collate):
    batch = collate([item_of(None, [])])
    assert int(batch["trained_tokens"]) == 0
    assert batch["input_ids"].numel() >= 1


def single(length: int) -> dict:
    arrays = {name: np.full(length, length, np.int32) for name in ("input_ids", "labels", "loss_weights")}
    return {**arrays, "seq_lengths": np.array([length], np.int32), "row_ids": [str(length)]}


def test_a_batch_is_packed_into_as_few_packs_as_it_fits_in():
    packs = packed_together([single(length) for length in (5, 2, 8, 3, 6, 4)], 10)
    assert sorted(len(pack["input_ids"]) for pack in packs) == [8, 10, 10]
    assert sorted(len(example["labels"]) for pack in packs for example in apart(pack)) == [2, 3, 4, 5, 6, 8]


def test_an_example_that_is_longer_than_a_pack_has_its_own():
    packs = packed_together([single(3), single(12)], 10)
    assert sorted(pack["seq_lengths"].tolist() for pack in packs) == [[3], [12]]
