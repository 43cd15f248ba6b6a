from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from turnmill import smollm2
from turnmill.models import open_model
from turnmill.options import Model, Score
from turnmill.scorers import ToScore
from turnmill.scorers.hf import open_hf


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


@pytest.mark.slow
def test_the_weights_are_those_that_transformers_reads_from_the_gguf():
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    ours = load_file(smollm2.weights_directory() / "model.safetensors")
    model = AutoModelForCausalLM.from_pretrained(
        smollm2.model_directory(), gguf_file=smollm2.GGUF_FILE, dtype=torch.float32
    )
    theirs = {name: value for name, value in model.state_dict().items() if name != "lm_head.weight"}
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name].to(torch.bfloat16)) for name in ours)


@pytest.mark.slow
def test_the_model_knows_a_capital():
    text = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"
    answer = "The capital of France is Paris.<|im_end|>"
    tokenizer = Tokenizer.from_file(str(smollm2.model_directory() / "tokenizer.json"))
    before, after = (tokenizer.encode(part, add_special_tokens=False).ids for part in (text, answer))
    wanted = np.array([False] * len(before) + [True] * len(after))
    scorer = open_hf(Score(threads=1), smollm2.weights_directory(), 0)
    ((_, nll),) = scorer.nll([ToScore(np.array([*before, *after], np.int32), wanted)])
    assert np.exp(nll.mean()) < 1.5
