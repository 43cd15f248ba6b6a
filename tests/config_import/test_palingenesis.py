from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from turnmill.config import Config, load
from turnmill.config_import import as_yaml
from turnmill.config_import.palingenesis import KEYS, SOURCE_KEYS, counterpart, import_palingenesis
from turnmill.errors import UsageError

GIVEN = {
    "data.seed": (7, 7),
    "model.name_or_path": ("models/m", "models/m"),
    "data.think_tags": (["[THINK]", "[/THINK]"], ("[THINK]",)),
    "preprocess.eval_holdout": (100, 100),
    "data.chat_template_kwargs": ({"enable_thinking": False}, {"enable_thinking": False}),
    "data.last_turn_only": ("yes", "last"),
    "data.train_on_reasoning": (False, False),
    "data.include_observations": (True, True),
    "data.turn_scaling": ("last_heavy", "last-heavy"),
    "data.max_seq_length": ("2048", 2048),
    "data.packing": (True, True),
    "preprocess.enabled": (True, True),
    "preprocess.max_batch_tokens": (4096, 4096),
    "preprocess.strategy": ("medium_focus", "medium-focus"),
    "preprocess.budget": (500, 500),
    "preprocess.min_ppl": (2, 2.0),
    "preprocess.max_ppl": (-1, 0.0),
    "preprocess.filter_score": ("full", "full"),
    "preprocess.group_field": ("topic", "topic"),
    "preprocess.max_samples": (50, 50),
    "preprocess.output_dir": ("prepared", "prepared"),
    "train.output_dir": ("checkpoints", "checkpoints"),
    "train.epochs": ("3", 3),
    "train.max_steps": (900, 900),
    "train.exact_steps": ("true", True),
    "train.per_device_batch_size": (4, 4),
    "train.gradient_accumulation_steps": (2, 2),
    "train.learning_rate": ("4.5e-5", 4.5e-5),
    "train.min_learning_rate": (1e-6, 1e-6),
    "train.lr_scheduler": ("linear", "linear"),
    "train.warmup_ratio": (0, 0.0),
    "train.optimizer": ("adamw8bit", "adamw_bnb_8bit"),
    "train.weight_decay": (0, 0.0),
    "train.max_grad_norm": (0.5, 0.5),
    "train.gradient_checkpointing": ("full", True),
    "train.bf16": (False, "float32"),
    "train.save_steps": (200, 200),
    "train.logging_steps": (10, 10),
    "model.attn_implementation": ("eager", "eager"),
    "data.num_workers": (4, 4),
    "data.eval_every": (50, 50),
    "data.eval_dataset": ("held-out.jsonl", "held-out.jsonl"),
}
"""Their key → a value there, and the value of our field."""

SOURCE_GIVEN = {
    "sources.name": ("s", "s"),
    "sources.dataset": ("a.jsonl", ("a.jsonl",)),
    "sources.messages_field": ("dialog", {"messages": "dialog"}),
    "sources.tools_field": ("functions", {"tools": "functions"}),
    "sources.chat_template_kwargs": ({"k": 1}, {"k": 1}),
    "sources.last_turn_only": (True, {"turns": "last"}),
}


def loaded(tree: dict[str, Any], folder: Path) -> Config:
    path = folder / "run.yaml"
    path.write_text(as_yaml(import_palingenesis(tree)))
    return load(path)[0]


def value_of(config: Any, dotted: str) -> Any:
    return reduce(getattr, dotted.split("."), config)


def test_the_table_and_its_cases_name_the_same_keys():
    assert set(GIVEN) == {key.old for key in KEYS}
    assert set(SOURCE_GIVEN) == {key.old for key in SOURCE_KEYS}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.old)
def test_a_key_becomes_ours(key, tmp_path):
    theirs, ours = GIVEN[key.old]
    section, _, option = key.old.partition(".")
    assert value_of(loaded({section: {option: theirs}}, tmp_path), key.ours) == ours


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.old)
def test_a_key_that_is_left_out_is_what_it_was_there(key, tmp_path):
    default = value_of(Config(), key.ours) if key.default is None else key.read(key.default)
    assert value_of(loaded({"data": {}}, tmp_path), key.ours) == default


@pytest.mark.parametrize("key", [key for key in KEYS if key.same is not None], ids=lambda key: key.old)
def test_what_needs_no_line_is_our_default(key):
    assert value_of(Config(), key.ours) == key.same


@pytest.mark.parametrize("key", SOURCE_KEYS, ids=lambda key: key.old)
def test_a_sources_key_becomes_ours(key, tmp_path):
    theirs, ours = SOURCE_GIVEN[key.old]
    entry = {"dataset": "a.jsonl", key.old.partition(".")[2]: theirs}
    (source,) = loaded({"data": {"sources": [entry]}}, tmp_path).sources
    assert getattr(source, key.ours.partition(".")[0]) == ours


EVAL_SOURCES = [
    {"name": "lm", "dataset": "docs.jsonl", "mode": "pretrain", "text_field": "body", "weight": 0.4, "samples": 200},
    {"dataset": "mcqa.jsonl", "last_turn_only": True, "regression_floor": 2, "messages_field": "turns"},
]


def test_held_out_sets_become_ours(tmp_path):
    text, chats = loaded({"data": {"eval_sources": EVAL_SOURCES}}, tmp_path).evaluate.eval_sources
    assert (text.name, text.data, text.mode, text.columns) == ("lm", ("docs.jsonl",), "text", {"text": "body"})
    assert (text.weight, text.samples) == (0.4, 200)
    assert (chats.name, chats.loss, chats.regression_floor) == ("mcqa", {"turns": "last"}, 2.0)
    assert (chats.weight, chats.samples, chats.columns) == (1.0, 100, {"messages": "turns"})


def test_one_data_set_is_a_source(tmp_path):
    tree = {"data": {"dataset": "data/chat.jsonl", "messages_field": "turns", "tools_field": "tools"}}
    (source,) = loaded(tree, tmp_path).sources
    assert (source.name, source.data, source.columns) == ("chat", ("data/chat.jsonl",), {"messages": "turns"})


def test_what_is_not_read_is_named():
    entries = [
        {"dataset": "org/set", "weight": 0.3, "name": "hub"},
        {"dataset": "text.jsonl", "mode": "pretrain"},
        {"dataset": "pairs.jsonl", "mode": "dpo"},
        {"dataset": "ok.jsonl", "mode": "sft"},
    ]
    imported = import_palingenesis({"data": {"sources": entries, "mix_epoch": "total"}, "train": {"ema": True}})
    assert [(source["name"], source.get("mode")) for source in imported.tree["sources"]] == [
        ("hub", None), ("text", "text"), ("ok", None),
    ]  # fmt: skip
    assert imported.notes == [
        "hub: 'org/set' may be a name on a hub: give its files",
        "hub: sources.weight 0.3 is not yet read",
        "pairs: sources.mode 'dpo' is not yet read; the source is left out",
        "data.mix_epoch: 'total' is not yet read",
        "train.ema: True is not yet read",
    ]


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"seed": 1}, "expected base_model and datasets"),
        ({"data": {"max_seq_length": "long"}}, "data.max_seq_length is 'long'"),
        ({"data": {"think_tags": ["<a>", "<b>"]}}, "an opening tag and its closing one"),
        ({"data": {"think_tags": "<a>"}}, "an opening tag and its closing one"),
        ({"data": {"sources": [{"name": "x"}]}}, "entries with a dataset"),
    ],
)
def test_what_is_wrong_is_said(tree, said):
    with pytest.raises(UsageError, match=said):
        import_palingenesis(tree)


@pytest.mark.parametrize(
    ("old", "ours"),
    [
        ("data.max_seq_length", "fit.max_tokens"),
        ("max_seq_length", "fit.max_tokens"),
        ("fit.max_seq_length", "fit.max_tokens"),
        ("sources.0.messages_field", "sources.columns.messages"),
        ("loss.name", None),
        ("fit.max_tokenz", None),
    ],
)
def test_old_keys_have_counterparts(old, ours):
    assert counterpart(old) == ours


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("data: {max_seq_length: 8}", "'data' is a section of palingenesis"),
        ("fit: {max_seq_length: 8}", "Did you mean 'fit.max_tokens'"),
        ("sources: [{name: a, data: x, messages_field: m}]", "Did you mean 'sources.columns.messages'"),
        ("fit: {max_tokenz: 8}", "Did you mean 'max_tokens'"),
    ],
)
def test_a_config_with_old_keys_is_told_ours(tmp_path, text, said):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        load(path)
    assert caught.value.next_step.startswith("turnmill config ")


def test_a_flag_with_an_old_key_is_told_ours():
    with pytest.raises(UsageError, match=r"--data.max_seq_length: unknown here. Did you mean --fit.max_tokens\?"):
        load(None, [("data.max_seq_length", "8")])


@pytest.mark.parametrize(("key", "value"), [("lr_scheduler", "power_decay"), ("optimizer", "muon")])
def test_a_way_to_train_that_is_not_ours_becomes_a_note(key, value):
    imported = import_palingenesis({"train": {key: value}})
    assert imported.notes == [f"train.{key}: {value!r} is not yet read"]
    assert "train" not in imported.tree
