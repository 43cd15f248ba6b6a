"""Tokens and what each of them weighs: exactly what was prepared, for trainers that take it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from turnmill.conversation import Json
from turnmill.exporters import Exporting, Howto, exporter, labels_and_weights
from turnmill.files.prepared import Side
from turnmill.tokens.labels import IGNORE

if TYPE_CHECKING:
    import pyarrow as pa


def schema(**columns: str) -> pa.Schema:
    """Lists of int32 or float32, never null."""
    import pyarrow as pa

    kinds = {"int32": pa.int32(), "float32": pa.float32()}
    return pa.schema([pa.field(name, pa.list_(kinds[kind]), nullable=False) for name, kind in columns.items()])


def count_fractions(exporting: Exporting, side: Side) -> None:
    """Count the examples whose weights a label cannot say."""
    weighted = sum(any(run.weight not in (0, 1) for run in example.runs) for example in exporting.examples(side))
    exporting.lose("examples with loss weights that are neither 0 nor 1", weighted)


@exporter("trl")
def to_trl(exporting: Exporting) -> Howto:
    """TRL's packed rows: `input_ids`, `labels`, `seq_lengths`, and the settings under which they stay apart."""
    for side in exporting.sides:
        count_fractions(exporting, side)
        exporting.table(
            f"{side}.parquet", schema(input_ids="int32", labels="int32", seq_lengths="int32"), _packs(exporting, side)
        )
    return Howto("train.py", TRL)


def _packs(exporting: Exporting, side: Side) -> Iterator[dict[str, Json]]:
    for numbers in exporting.data.plan(side):
        examples = [exporting.data.examples(side)[number] for number in numbers]
        yield {
            "input_ids": [token for example in examples for token in example.input_ids],
            "labels": [label for example in examples for label in labels_and_weights(example)[0].tolist()],
            "seq_lengths": [len(example.input_ids) for example in examples],
        }


TRL = """from datasets import load_dataset
from trl import SFTConfig, SFTTrainer

train = load_dataset("parquet", data_files="train.parquet", split="train")
config = SFTConfig(
    output_dir="model",
    padding_free=True,
    max_length=None,
    dataset_kwargs={"skip_prepare_dataset": True},
)
SFTTrainer("MODEL", args=config, train_dataset=train).train()
"""


@exporter("axolotl")
def to_axolotl(exporting: Exporting) -> Howto:
    """Axolotl's pre-tokenized rows, an example each: `input_ids`, `attention_mask`, `labels`."""
    for side in exporting.sides:
        count_fractions(exporting, side)
        columns = schema(input_ids="int32", attention_mask="int32", labels="int32")
        exporting.table(f"{side}/data.parquet", columns, _masked(exporting, side))
    lines = ["datasets:", "  - path: ./train", "    type:"]
    lines += ["test_datasets:", "  - path: ./eval", "    split: train", "    type:"] * ("eval" in exporting.sides)
    lines += [f"sequence_len: {exporting.data.manifest['max_tokens']}", "sample_packing: true"]
    return Howto("axolotl.yaml", "\n".join(lines) + "\n")


def _masked(exporting: Exporting, side: Side) -> Iterator[dict[str, Json]]:
    for example in exporting.examples(side):
        ids = list(example.input_ids)
        yield {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels_and_weights(example)[0].tolist()}


@exporter("levanter")
def to_levanter(exporting: Exporting) -> Howto:
    """Levanter's prebuilt rows: `input_ids`, and at each place the weight of predicting the token behind it."""
    for side in exporting.sides:
        exporting.table(
            f"{side}.parquet", schema(input_ids="int32", loss_weights="float32"), _predicting(exporting, side)
        )
    lines = ["data:", "  components:", "    turnmill:", "      source:", "        type: url"]
    lines += ["        train_urls: [train.parquet]", "      format:", "        type: prebuilt"]
    lines += ["        input_ids_key: input_ids", "        loss_weights_key: loss_weights"]
    return Howto("data.yaml", "\n".join(lines) + "\n")


def _predicting(exporting: Exporting, side: Side) -> Iterator[dict[str, Json]]:
    for example in exporting.examples(side):
        weights = labels_and_weights(example)[1].tolist()
        yield {"input_ids": list(example.input_ids), "loss_weights": [*weights[1:], 0.0]}


@exporter("tinker")
def to_tinker(exporting: Exporting) -> Howto:
    """Tinker's data as lines of `tokens` and `weights`, and the ten lines that make a `Datum` of each."""
    for side in exporting.sides:
        exporting.lines(f"{side}.jsonl", _weighted(exporting, side))
    return Howto("load.py", TINKER)


def _weighted(exporting: Exporting, side: Side) -> Iterator[Json]:
    for example in exporting.examples(side):
        yield {"tokens": list(example.input_ids), "weights": labels_and_weights(example)[1].tolist()}


TINKER = """import json

import tinker

data = []
for line in open("train.jsonl"):
    row = json.loads(line)
    tokens, weights = row["tokens"], row["weights"]
    targets = {"target_tokens": tokens[1:], "weights": weights[1:]}
    data.append(tinker.Datum(model_input=tinker.ModelInput.from_ints(tokens[:-1]), loss_fn_inputs=targets))
"""


@exporter("megatron")
def to_megatron(exporting: Exporting) -> Howto:
    """Megatron-Bridge's packed rows: `input_ids`, `loss_mask` of the token that each predicts, `seq_start_id`."""
    for side in exporting.sides:
        count_fractions(exporting, side)
        exporting.pickled(f"{side}.npy", _started(exporting, side))
    held_out = '\n        packed_val_data_path="eval.npy",' if "eval" in exporting.sides else ""
    return Howto("dataset.py", MEGATRON.format(size=exporting.data.manifest["max_tokens"], held_out=held_out))


def _started(exporting: Exporting, side: Side) -> Iterator[dict[str, Json]]:
    for numbers in exporting.data.plan(side):
        examples = [exporting.data.examples(side)[number] for number in numbers]
        sizes = [len(example.input_ids) for example in examples]
        learns = [
            label != IGNORE for example in examples for label in [*labels_and_weights(example)[0][1:].tolist(), IGNORE]
        ]
        yield {
            "input_ids": [token for example in examples for token in example.input_ids],
            "loss_mask": learns,
            "seq_start_id": [0, *accumulate(sizes)][:-1],
        }


MEGATRON = """from megatron.bridge.data.datasets.packed_sequence import PackedSequenceSpecs
from megatron.bridge.training.config import FinetuningDatasetConfig

dataset = FinetuningDatasetConfig(
    dataset_root=".",
    seq_length={size},
    packed_sequence_specs=PackedSequenceSpecs(
        packed_sequence_size={size},
        packed_train_data_path="train.npy",{held_out}
    ),
)
"""
