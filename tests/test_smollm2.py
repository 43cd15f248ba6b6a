from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from turnmill.models import open_model
from turnmill.options import Model


@pytest.fixture(scope="module")
def tokenizer(smollm2_directory: Path) -> Tokenizer:
    return Tokenizer.from_file(str(smollm2_directory / "tokenizer.json"))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("assistant", ["ass", "istant"]),
        ("<|im_start|>user\nHi<|im_end|>\n", ["<|im_start|>", "user", "Ċ", "Hi", "<|im_end|>", "Ċ"]),
        (" there 2024", ["Ġthere", "Ġ", "2", "0", "2", "4"]),
        ("½ ²", ["Â½", "Ġ", "Â²"]),
    ],
)
def test_text_is_cut_as_the_model_learned_it(tokenizer: Tokenizer, text: str, tokens: list[str]) -> None:
    assert tokenizer.encode(text).tokens == tokens


@pytest.mark.parametrize(("token", "number"), [("<|endoftext|>", 0), ("<|im_start|>", 1), ("<|im_end|>", 2)])
def test_control_tokens_keep_their_ids(tokenizer: Tokenizer, token: str, number: int) -> None:
    assert tokenizer.token_to_id(token) == number
    assert tokenizer.encode(token).ids == [number]


@pytest.mark.parametrize("text", ["naïve café\u00a0", "日本語 🙂", "\r\n\t  x", "def f():\n    return '{}'\n", "٣"])
def test_every_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_the_model_is_known_by_its_name(write) -> None:
    template = write("own.jinja", "{{ messages }}")
    model = open_model(Model("smollm2", template=str(template)))
    assert model.eos == {"<|im_end|>"}
    assert model.context_tokens == 8192
    assert model.special_tokens["bos_token"] == "<|im_start|>"
    assert all(token.special for token in model.added_tokens)
