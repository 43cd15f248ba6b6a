"""Known faults between OUT and the trainer: labels that are shifted twice or not at all, and text that a tokenizer
writes another way."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import transformers
from tokenizers import Tokenizer

import turnmill
from chats import chat
from tokenizers_of_tests import byte_level
from training_runs import losses, prepared, tiny_chat_model, train
from turnmill.exporters import exporters, labels_and_weights
from turnmill.files.prepared import PreparedData
from turnmill.rendered import Example, Run
from turnmill.stream.collate import collate_block, collate_flat, collate_packed, collate_padded
from turnmill.stream.prepared_stream import PreparedStream
from turnmill.trainers import trainers
from turnmill.verbs.export import export

IGNORE = -100
SCENARIO = Example("r", 0, "s", "f", 1, [1, 5, 6, 2], [Run(2, 0, "user", 0.0), Run(4, 1, "answer", 1.0)], [4])


def test_labels_are_the_ids_in_their_own_places():
    labels, weights = labels_and_weights(SCENARIO)
    assert labels.tolist() == [IGNORE, IGNORE, 6, 2]
    assert weights.tolist() == [0, 0, 1, 1]


ROWS = {
    "one turn": [chat("Hi?", "Ho and so.")],
    "several turns": [chat("q", "a1", "r", "a2 and more", "s", "a3")],
    "a first token that trains": [{"text": "so and so"}],
    "fractional weights": [{"messages": [{"role": "user", "content": "q"},
                                         {"role": "assistant", "content": "a b", "weight": 0.25},
                                         {"role": "user", "content": "r"}, {"role": "assistant", "content": "c d e"}]}],
    "packed": [chat(f"q{number}", "yes" + " so" * number) for number in range(4)],
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tiny, tmp_path_factory) -> dict[str, Path]:
    return {name: prepared(tmp_path_factory.mktemp("rows"), tiny, rows, **{"split.fraction": 0.0})
            for name, rows in ROWS.items()}  # fmt: skip


def shifted(model: Path, out: Path, by: int) -> float:
    """The weighted mean cost of each document alone if a label stood `by` places before its token."""
    network = transformers.AutoModelForCausalLM.from_pretrained(model)
    total = weight = 0.0
    for example in PreparedData(out):
        labels, weights = labels_and_weights(example)
        with torch.inference_mode():
            logits = network(input_ids=torch.tensor([list(example.input_ids)]), use_cache=False).logits[0].double()
        cost = -torch.log_softmax(logits, -1)
        for place in np.flatnonzero(labels != IGNORE):
            if place >= by:
                total += float(weights[place] * cost[place - by, labels[place]])
                weight += float(weights[place])
    return total / weight


@pytest.mark.parametrize("trainer", trainers.names())
@pytest.mark.parametrize("rows", ROWS)
def test_a_trainer_learns_the_next_token_and_no_other(folders, tiny, tmp_path, rows, trainer):
    out = folders[rows]
    train(out, tmp_path / "model", tiny, trainer=trainer, max_steps=1, gradient_accumulation_steps=4)
    (found,) = losses(tmp_path / "model")
    assert found == pytest.approx(shifted(tiny, out, 1), abs=1e-5)
    assert all(abs(found - shifted(tiny, out, by)) > 1e-4 for by in (0, 2))


@pytest.mark.parametrize("collate", [collate_packed, collate_flat, collate_block, collate_padded])
@pytest.mark.parametrize("rows", ROWS)
def test_a_batch_has_each_label_in_the_place_of_its_token(folders, collate, rows):
    stream = PreparedStream(PreparedData(folders[rows]), 2, packed=True)
    batch = collate(next(iter(stream)))
    labelled = batch["labels"] != IGNORE
    assert labelled.any()
    assert (batch["labels"][labelled] == batch["input_ids"][labelled]).all()
    assert ((batch["loss_weights"] > 0) == labelled).all()


@pytest.mark.parametrize("target", exporters.names())
def test_an_export_says_by_which_convention_its_labels_are_read(folders, tmp_path, target):
    export(PreparedData(folders["one turn"]), target, tmp_path / "there")
    said = json.loads((tmp_path / "there" / "manifest.json").read_text())["labels"]
    assert said.startswith("not shifted")
    assert PreparedData(folders["one turn"]).manifest["labels"].startswith("not shifted")


def test_a_target_that_weighs_predictions_gets_them_one_place_earlier(folders, tmp_path):
    data = PreparedData(folders["several turns"])
    export(data, "levanter", tmp_path / "there")
    (path,) = (tmp_path / "there").rglob("*.parquet")
    for row, example in zip(pq.read_table(path).to_pylist(), data, strict=True):
        _, weights = labels_and_weights(example)
        assert row["loss_weights"] == [*weights[1:].tolist(), 0.0]


DECOMPOSED = {
    "an accent at the end": "cafe\u0301!",
    "an accent on the last letter": "cafe\u0301",
    "accents all over": "e\u0301e\u0301 a\u030a o\u0308o\u0308",
    "syllables of jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af",
    "several marks on a letter": "s\u0323\u0307 ok",
    "composed already": "caf\u00e9!",
    "a mark that nothing takes": "x\u0301 y",
}


@pytest.fixture(scope="module")
def nfc(tmp_path_factory) -> Path:
    """The tiny model with a tokenizer that composes what it reads."""
    directory = tiny_chat_model(tmp_path_factory.mktemp("nfc") / "model")
    byte_level(nfc=True).save(str(directory / "tokenizer.json"))
    return directory


@pytest.mark.parametrize("what", DECOMPOSED)
def test_text_that_a_tokenizer_composes_is_learned_whole_with_its_stop(nfc, tmp_path, what):
    answer = DECOMPOSED[what]
    out = prepared(tmp_path, nfc, [chat("q", answer, "e\u0301?", f"{answer} {answer}")], **{"split.fraction": 0.0})
    tokenizer = Tokenizer.from_file(str(nfc / "tokenizer.json"))
    (example,) = turnmill.open_prepared(out)
    labels, _ = labels_and_weights(example)
    learned = tokenizer.decode([token for token in labels.tolist() if token != IGNORE], skip_special_tokens=False)
    whole = unicodedata.normalize("NFC", answer)
    assert learned == f"{whole}<|im_end|>{whole} {whole}<|im_end|>"
    train(out, tmp_path / "model", nfc, max_steps=1)
    assert losses(tmp_path / "model") == pytest.approx([shifted(nfc, out, 1)], abs=1e-5)
