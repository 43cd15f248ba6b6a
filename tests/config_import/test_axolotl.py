"""Axolotl's YAML, as far as it says what becomes of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turnmill.config import load
from turnmill.config_import import as_yaml, import_config
from turnmill.config_import.axolotl import import_axolotl
from turnmill.errors import UsageError

ONE = {"path": "a.jsonl", "type": "chat_template"}


def source_of(**entry: Any) -> dict:
    return import_axolotl({"datasets": [ONE | entry]}).tree["sources"][0]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, {}),
        ({"type": "sharegpt"}, {}),
        ({"type": "alpaca"}, {"dialect": "alpaca"}),
        ({"type": "alpaca_chat.load_qa"}, None),
        ({"type": "completion"}, {"mode": "text"}),
        ({"type": "completion", "field": "body"}, {"mode": "text", "columns": {"text": "body"}}),
        ({"field_messages": "conversations"}, {}),
        ({"field_messages": "talk", "field_tools": "functions"},
         {"columns": {"messages": "talk", "tools": "functions"}}),
        ({"message_property_mappings": {"role": "from", "content": "value"}}, {}),
        ({"message_property_mappings": {"role": "who"}}, {"tags": {"role": "who"}}),
        ({"message_field_role": "who", "message_field_content": "said"}, {"tags": {"role": "who", "content": "said"}}),
        ({"message_field_training": "train"}, {}),
        ({"message_field_training": "training"}, {"tags": {"train": "training"}}),
        ({"roles": {"assistant": ["gpt", "model"], "user": "human"}}, {"roles": {"model": "assistant"}}),
        ({"path": "org/name"}, {"data": ["hf://datasets/org/name"]}),
        ({"path": "org/name", "data_files": ["x.jsonl", "y.jsonl"]},
         {"data": ["hf://datasets/org/name/x.jsonl", "hf://datasets/org/name/y.jsonl"]}),
        ({"path": "json", "data_files": "x.jsonl"}, {"data": ["x.jsonl"]}),
        ({"path": "./chats/b.jsonl"}, {"data": ["./chats/b.jsonl"]}),
    ],
)  # fmt: skip
def test_a_data_set_becomes_a_source(entry, expected):
    if expected is None:
        with pytest.raises(UsageError, match="not read: type"):
            source_of(**entry)
        return
    source = source_of(**entry)
    source.pop("name")
    assert source == {"data": ["a.jsonl"]} | expected


@pytest.mark.parametrize(
    ("given", "path", "ours"),
    [
        ({"base_model": "models/m"}, "model.name_or_path", "models/m"),
        ({"sequence_len": 2048}, "fit.max_tokens", 2048),
        ({"val_set_size": 0.05}, "split.fraction", 0.05),
        ({"val_set_size": 200}, "split.rows", 200),
        ({"seed": 7}, "seed", 7),
        ({}, "pack.on", False),
        ({"sample_packing": True}, "pack.on", None),
        ({}, "fit.overflow", "drop"),
        ({"excess_length_strategy": "truncate"}, "fit.overflow", None),
    ],
)
def test_what_holds_for_the_run(given, path, ours):
    section, _, key = path.partition(".")
    found = import_axolotl({"datasets": [ONE]} | given).tree.get(section)
    assert (found.get(key) if key and found else found) == ours


@pytest.mark.parametrize(
    ("given", "note"),
    [
        ({"train_on_inputs": True}, "train_on_inputs"),
        ({"datasets": [ONE | {"roles_to_train": ["user", "assistant"]}]}, "a: roles_to_train"),
        ({"datasets": [ONE | {"train_on_eos": "none"}]}, "a: train_on_eos"),
        ({"datasets": [ONE | {"message_field_training_detail": "detail"}]}, "parts of a message are not masked"),
        ({"datasets": [ONE | {"split": "train[:10%]"}]}, "a: split"),
        ({"datasets": [ONE, {"path": "b.jsonl", "type": "input_output"}]}, "b: not read: type 'input_output'"),
        ({"chat_template": "llama3"}, "chat_template 'llama3' is not read"),
    ],
)
def test_what_is_not_read_is_said(given, note):
    assert any(note in said for said in import_axolotl({"datasets": [ONE]} | given).notes)


def test_what_is_as_ours_needs_no_note():
    entry = ONE | {"roles_to_train": ["assistant"], "train_on_eos": "turn"}
    assert import_axolotl({"datasets": [entry], "train_on_inputs": False}).notes == []


def test_two_files_of_one_name_and_raw_texts_are_sources_apart():
    tree = import_axolotl({"datasets": [ONE, {"path": "b/a.jsonl"}], "pretraining_dataset": "books.jsonl"}).tree
    assert [source["name"] for source in tree["sources"]] == ["a", "a-2", "books"]
    assert tree["sources"][2]["mode"] == "text"


def test_what_is_written_is_a_config(tmp_path: Path):
    path = tmp_path / "axolotl.yaml"
    path.write_text("base_model: m\ndatasets:\n  - {path: a.jsonl, type: chat_template, roles: {assistant: [model]}}\n")
    (tmp_path / "run.yaml").write_text(as_yaml(import_config(path)))
    config = load(tmp_path / "run.yaml")[0]
    assert (config.sources[0].roles, config.fit.overflow, config.pack.on) == ({"model": "assistant"}, "drop", False)
