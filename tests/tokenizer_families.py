"""Real tokenizers of six families, each with a template of its family, and texts that try them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer

import assets


class Family(NamedTuple):
    """A tokenizer and what is known of it."""

    files: Callable[[], Path]
    """The directory of `tokenizer.json`."""
    markers: dict[str, int]
    """Tokens of its turns, with the ids that its makers gave them."""
    eos: list[int]
    """`eos_token_id` of its `generation_config.json`."""
    template: str = ""
    """A template of TRL's, where the directory has none."""
    ways: tuple[str, ...] = ("fastokens", "words")
    """How texts are encoded with `fastokens`, and without, where a faster way is asked for."""
    bos: str | None = None
    """What its template writes once, at the beginning."""


SLOW = ("tokenizers",)
"""The tokenizer itself: no faster way knows vocabularies like SentencePiece's."""
FAMILIES = {
    "qwen3": Family(
        assets.qwen3_tokenizer,
        {"<|im_start|>": 151644, "<|im_end|>": 151645, "<think>": 151667, "<tool_call>": 151657},
        [151645, 151643],
    ),
    "gpt-oss": Family(
        assets.gpt_oss_tokenizer,
        {"<|start|>": 200006, "<|message|>": 200008, "<|channel|>": 200005, "<|end|>": 200007, "<|return|>": 200002},
        [200002, 199999, 200012],
        template="gptoss",
    ),
    "gemma-3": Family(
        assets.gemma3_tokenizer, {"<start_of_turn>": 105, "<end_of_turn>": 106}, [1, 106], ways=SLOW, bos="<bos>"
    ),
    "gemma-4": Family(
        assets.gemma4_directory, {"<|turn>": 105, "<turn|>": 106, "<|channel>": 100}, [1, 106, 50], ways=SLOW,
        bos="<bos>",
    ),
    "llama-3": Family(
        assets.llama3_tokenizer,
        {"<|start_header_id|>": 128006, "<|end_header_id|>": 128007, "<|eot_id|>": 128009},
        [128001, 128009],
        bos="<|begin_of_text|>",
    ),
    "deepseek-v3": Family(
        assets.deepseek_v3_tokenizer, {"<｜User｜>": 128803, "<｜Assistant｜>": 128804}, [1],
        bos="<｜begin▁of▁sentence｜>",
    ),
}  # fmt: skip


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """The tokenizer of a family."""
    return Tokenizer.from_file(str(FAMILIES[name].files() / "tokenizer.json"))


def model_directory(name: str, directory: Path) -> Path:
    """A model directory with the family's tokenizer, template and stops."""
    family = FAMILIES[name]
    for file in family.files().iterdir():
        if file.is_file():
            shutil.copy(file, directory)
    (directory / "generation_config.json").write_text(json.dumps({"eos_token_id": family.eos}))
    if family.template:
        shutil.copy(assets.trl_templates() / f"{family.template}.jinja", directory / "chat_template.jinja")
    return directory


TEXTS = (
    "", " ", "\n", "Hello world", "  two  spaces  ", "\n\n\nbefore", "behind \n\t ", "don't I'LL 'S",
    "Grüße, 世界! 'def' f(x):\n\n  \treturn 12345 x", "\u3000全角\u00a0space\u200bnone\ufeffmark", "a\x00b\x1c\x7f",
    "1234567890 3.14159 ² ५", "\r\n\r\nlines\u2028\u2029", "ſ א עברית العربية हिन्दी ไทย", "x" * 300, " " * 70,
    "👩‍👩‍👧 😀🇩🇪", "▁under▁score▁", "[INST] x [/INST]", "\ue000own\ue000", "𝔘𝔫𝔦 ﬁ ẛ̣",
)  # fmt: skip
"""Texts that tokenizers differ on."""
NOT_COMPOSED = ("cafe\u0301 au lait", "\u1e9b\u0323", "n\u0303\u0303", "\u1112\u1161\u11ab", "e\u0301" * 20)
"""Texts that are not in the normal form NFC."""


def drawn_texts(control: tuple[str, ...], count: int) -> list[str]:
    """Texts drawn from those above, from control tokens and their beginnings, and from all characters."""
    draw = random.Random(7)
    bits = [*TEXTS, *NOT_COMPOSED, *control, *(token[:-1] for token in control)]
    letters = [chr(draw.choice([draw.randint(32, 0xD7FF), draw.randint(0xE000, 0x10FFFF)])) for _ in range(200)]
    return ["".join(draw.choices([*bits, *letters, "a", " ", "\n", "  "], k=draw.randint(1, 9))) for _ in range(count)]
