from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnmill import models
from turnmill.errors import UnknownName, UsageError
from turnmill.models import AddedToken, open_model, open_template
from turnmill.options import Model

SPECIAL = ["<s>", "</s>", "<|im_end|>", "<|call|>"]
TOKENIZER = {
    "version": "1.0",
    "added_tokens": [
        {"id": number, "content": token, "special": True, "normalized": False, "lstrip": False, "rstrip": False,
         "single_word": False}
        for number, token in enumerate(SPECIAL)
    ],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {**{t: n for n, t in enumerate(SPECIAL)}, "end": 4}, "unk_token": "end"},
}  # fmt: skip
BOS_FIRST = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
}
CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": "{{ messages }}", "eos_token": "</s>"}

TWO_TEMPLATES = [{"name": "default", "template": "D"}, {"name": "rag", "template": "R"}]

Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A model directory: `tokenizer.json`, plus the named files (a dict is written as JSON)."""

    def make(files: dict[str, Any] | None = None, tokenizer: dict[str, Any] | None = None) -> Path:
        root = tmp_path / "model"
        content = {"tokenizer.json": TOKENIZER | (tokenizer or {}), "tokenizer_config.json": CONFIG} | (files or {})
        for name, value in content.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
        return root

    return make


def opened(directory: Path, **options: Any) -> models.LoadedModel:
    return open_model(Model(str(directory), **options))


# templates


@pytest.mark.parametrize(
    ("files", "template", "origin"),
    [
        ({}, "{{ messages }}", "tokenizer_config.json"),
        ({"chat_template.jinja": "J"}, "J", "chat_template.jinja"),
        ({"tokenizer_config.json": {}, "chat_template.json": {"chat_template": "P"}}, "P", "chat_template.json"),
        ({"chat_template.json": {"chat_template": "P"}}, "{{ messages }}", "tokenizer_config.json"),
        (
            {"tokenizer_config.json": {"chat_template": [{"name": "default", "template": "D"}]}},
            "D",
            "tokenizer_config.json",
        ),
    ],
)
def test_where_the_template_comes_from(folder: Folder, files: dict[str, Any], template: str, origin: str) -> None:
    model = opened(folder(files))
    assert (model.template, model.template_origin) == (template, origin)


def test_named_templates_of_both_forms(folder: Folder) -> None:
    files = {
        "tokenizer_config.json": {"chat_template": TWO_TEMPLATES},
        "additional_chat_templates/tool_use.jinja": "T",
    }
    model = opened(folder(files))
    assert model.templates == {"default": "D", "rag": "R", "tool_use": "T"}
    assert opened(folder(files), template="rag").template == "R"


def test_a_file_takes_the_place_of_the_models_template(folder: Folder, write: Callable[..., Path]) -> None:
    path = write("mine.jinja", "M")
    model = opened(folder(), template=str(path))
    assert (model.template, model.template_origin) == ("M", str(path))


def test_an_unknown_template_lists_the_named_ones(folder: Folder) -> None:
    directory = folder({"additional_chat_templates/tool_use.jinja": "T"})
    with pytest.raises(UnknownName, match=r"unknown template 'tool_us'\. Did you mean 'tool_use'\?"):
        opened(directory, template="tool_us")


# special tokens and stops


def test_special_tokens_of_every_form(folder: Folder) -> None:
    config = CONFIG | {
        "bos_token": {"content": "<s>", "lstrip": False},
        "pad_token": None,
        "call_token": "<|call|>",
        "add_bos_token": True,
        "extra_special_tokens": {"image_token": "<image>"},
    }
    model = opened(folder({"tokenizer_config.json": config}), special_tokens={"bos_token": "<b>"})
    assert model.special_tokens == {
        "bos_token": "<b>", "eos_token": "</s>", "call_token": "<|call|>", "image_token": "<image>",
    }  # fmt: skip


@pytest.mark.parametrize(("decoder", "bos"), [({}, None), (None, "<s>")])
def test_the_special_tokens_map_counts_without_a_decoder_alone(folder: Folder, decoder: Any, bos: str | None) -> None:
    config = CONFIG if decoder is None else CONFIG | {"added_tokens_decoder": decoder}
    model = opened(folder({"tokenizer_config.json": config, "special_tokens_map.json": {"bos_token": "<s>"}}))
    assert model.special_tokens.get("bos_token") == bos


@pytest.mark.parametrize(
    ("files", "eos", "origin"),
    [
        ({}, {"</s>"}, "eos_token"),
        ({"config.json": {"eos_token_id": 2}}, {"<|im_end|>"}, "config.json"),
        ({"config.json": {"text_config": {"eos_token_id": [2, 4]}}}, {"<|im_end|>", "end"}, "config.json"),
        ({"config.json": {"eos_token_id": 1}, "generation_config.json": {"eos_token_id": [2, 3]}},
         {"<|im_end|>", "<|call|>"}, "generation_config.json"),
        ({"generation_config.json": {"eos_token_id": 99}}, {"</s>"}, "eos_token"),
        ({"tokenizer_config.json": {"chat_template": "x"}}, set(), "nothing known"),
    ],
)  # fmt: skip
def test_the_stop_tokens(folder: Folder, files: dict[str, Any], eos: set[str], origin: str) -> None:
    model = opened(folder(files))
    assert (model.eos, model.eos_origin) == (eos, origin)


def test_an_eos_token_given_by_hand_joins_the_stops(folder: Folder) -> None:
    directory = folder({"generation_config.json": {"eos_token_id": 1}})
    assert opened(directory, special_tokens={"eos_token": "<|im_end|>"}).eos == {"</s>", "<|im_end|>"}


# the rest of the directory


@pytest.mark.parametrize(
    ("files", "context"),
    [
        ({}, None),
        ({"config.json": {"max_position_embeddings": 8192}}, 8192),
        ({"config.json": {"text_config": {"max_position_embeddings": 4096}}}, 4096),
        ({"tokenizer_config.json": CONFIG | {"model_max_length": 2048}}, 2048),
        ({"tokenizer_config.json": CONFIG | {"model_max_length": 10**30}}, None),
    ],
)
def test_the_context(folder: Folder, files: dict[str, Any], context: int | None) -> None:
    assert opened(folder(files)).context_tokens == context


@pytest.mark.parametrize(
    ("post_processor", "before", "after"),
    [
        (None, (), ()),
        (BOS_FIRST, ("<s>",), ()),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, BOS_FIRST]}, ("<s>",), ()),
        ({"type": "BertProcessing", "sep": ["</s>", 1], "cls": ["<s>", 0]}, ("<s>",), ("</s>",)),
    ],
)
def test_what_the_tokenizer_adds(folder: Folder, post_processor: Any, before: Any, after: Any) -> None:
    model = opened(folder(tokenizer={"post_processor": post_processor}))
    assert (model.added_before, model.added_after) == (before, after)
    if post_processor is None or post_processor["type"] == "TemplateProcessing":
        encoded = model.tokenizer().encode("end").tokens
        assert encoded == [*before, "end", *after]


def test_stored_truncation_and_padding_are_taken_off(folder: Folder) -> None:
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    padding = {
        "strategy": {"Fixed": 5}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0,
        "pad_token": "<s>",
    }  # fmt: skip
    model = opened(folder(tokenizer={"truncation": truncation, "padding": padding}))
    assert model.tokenizer().encode("end end end").tokens == ["end"] * 3


def test_added_tokens_and_hash(folder: Folder) -> None:
    model = opened(folder())
    assert model.added_tokens[2] == AddedToken(2, "<|im_end|>", special=True)
    assert len(model.tokenizer_sha256 or "") == 64


# what is wrong with it


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tokenizer_config.json": "{"}, r"tokenizer_config\.json' is not valid JSON: .* line 1"),
        ({"generation_config.json": "[]"}, r"generation_config\.json' holds a list, expected a JSON object"),
        ({"tokenizer.json": "{"}, r"cannot read .*tokenizer\.json"),
        ({"tokenizer.json": "{}"}, r"cannot read .*tokenizer\.json': Object missing required field `model`"),
        ({"tokenizer_config.json": {}}, r"has no chat template .*: name a file with --template FILE"),
        (
            {"tokenizer_config.json": {"chat_template": [{"name": "rag", "template": "R"}]}},
            "several chat templates .*rag",
        ),
    ],
)
def test_a_broken_directory_says_which_file(folder: Folder, files: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        opened(folder(files))


def test_a_slow_tokenizer_says_how_to_convert_it(folder: Folder) -> None:
    directory = folder({"tokenizer.model": ""})
    (directory / "tokenizer.json").unlink()
    with pytest.raises(UsageError, match=r"no tokenizer\.json \(found only tokenizer\.model\)") as caught:
        opened(directory)
    assert "save_pretrained" in (caught.value.next_step or "")


@pytest.mark.parametrize(
    ("name", "message", "next_step"),
    [
        ("{folder}l", r"no such model directory: '.*modell'\. Did you mean '.*model'\?", "--model {folder}"),
        ("smollm", r"Did you mean 'smollm2'\?", "--model smollm2"),
        ("Qwen/Qwen3-0.6B", r"no such model directory", "hf download Qwen/Qwen3-0.6B --local-dir Qwen3-0.6B"),
        ("{folder}/tokenizer.json", r"is a file, expected a model directory", "--template {folder}/tokenizer.json"),
    ],
)
def test_no_such_model(folder: Folder, name: str, message: str, next_step: str) -> None:
    directory = folder()
    with pytest.raises(UsageError, match=message) as caught:
        open_model(Model(name.format(folder=directory)))
    assert caught.value.next_step == next_step.format(folder=directory)


def test_no_model_at_all() -> None:
    with pytest.raises(UsageError, match="no model given"):
        open_model(Model())


# without a model


def test_a_bare_template_has_stops_and_no_tokenizer(trl_templates: Path) -> None:
    model = open_template(str(trl_templates / "qwen3.jinja"))
    assert model.eos == {"<|im_end|>", "<|endoftext|>"}
    assert model.tokenizer_path is None
    with pytest.raises(UsageError, match="tokens need a model"):
        model.tokenizer()


def test_own_templates_are_named_not_guessed() -> None:
    with pytest.raises(UnknownName, match="unknown template 'nope'"):
        open_template("nope")


# against transformers


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config.json": CONFIG | {"bos_token": "<s>", "call_token": "<|call|>"}},
        {"tokenizer_config.json": CONFIG | {"extra_special_tokens": {"image_token": "<|call|>"}, "pad_token": None}},
        {"special_tokens_map.json": {"bos_token": {"content": "<s>"}, "eos_token": "<|im_end|>"}},
        {"chat_template.jinja": "J", "additional_chat_templates/tool_use.jinja": "T"},
        {"tokenizer_config.json": {"chat_template": [{"name": "default", "template": "D"}]}},
    ],
)
def test_templates_see_what_transformers_shows_them(folder: Folder, files: dict[str, Any]) -> None:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    from transformers import PreTrainedTokenizerFast

    directory = folder(files)
    theirs = PreTrainedTokenizerFast.from_pretrained(directory)
    ours = opened(directory)
    assert ours.special_tokens == theirs.special_tokens_map
    assert ours.template == theirs.get_chat_template()


DECODED = {"content": "<think>", "special": False, "normalized": False, "lstrip": False, "rstrip": False,
           "single_word": False}  # fmt: skip


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        CONFIG | {"added_tokens_decoder": {"5": DECODED}},
        CONFIG | {"added_tokens_decoder": {"2": DECODED | {"content": "<|im_end|>", "lstrip": True}}},
        CONFIG | {"pad_token": "<pad>", "extra_special_tokens": ["<think>", "end"]},
        CONFIG | {"pad_token": "<pad>", "added_tokens_decoder": {"7": DECODED}},
    ],
)
def test_tokens_are_those_of_transformers(folder: Folder, config: dict[str, Any]) -> None:
    from transformers import PreTrainedTokenizerFast

    directory = folder({"tokenizer_config.json": config})
    theirs = PreTrainedTokenizerFast.from_pretrained(directory)
    model = opened(directory)
    ours = model.tokenizer()
    for text in ("end <think> x", "end  <|im_end|> end", "<pad>end</s>"):
        assert ours.encode(text, add_special_tokens=False).ids == theirs.encode(text, add_special_tokens=False)
    assert {token.content: token.id for token in model.added_tokens} == theirs.get_added_vocab()
