"""Which tokens end a turn, for a template that comes without a model: a small table, each row with its source."""

from __future__ import annotations

from typing import NamedTuple


class Stops(NamedTuple):
    """The tokens at which generation ends."""

    markers: tuple[str, ...]
    """A template that holds all of them is of this family."""
    tokens: frozenset[str]
    source: str
    """Where the family's makers say so."""


def _row(markers: str, tokens: str, source: str) -> Stops:
    return Stops(tuple(markers.split()), frozenset(tokens.split()), source)


STOPS = (
    _row("<|channel|> <|return|> <|call|>", "<|return|> <|call|> <|endoftext|>", "gpt-oss generation_config.json"),
    _row("<|turn> <turn|>", "<turn|> <|tool_response> <eos>", "Gemma 4 generation_config.json"),
    _row("<start_of_turn> <end_of_turn>", "<end_of_turn> <eos>", "Gemma 2 and 3 generation_config.json"),
    _row("<|assistant|> <|observation|>", "<|user|> <|observation|> <|endoftext|>", "GLM-4 and 4.5 config.json"),
    _row("<|start_header_id|> <|eot_id|>", "<|eot_id|> <|eom_id|> <|end_of_text|>", "Llama 3.1 generation_config.json"),
    _row("<|eot|> <|eom|>", "<|eot|> <|eom|> <|end_of_text|>", "Llama 4 generation_config.json"),
    _row("<|header_start|> <|eot|>", "<|eot|> <|eom|> <|end_of_text|>", "Llama 4 generation_config.json"),
    _row("<|START_OF_TURN_TOKEN|> <|END_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "Command R generation_config.json"),
    _row("<｜Assistant｜>", "<｜end▁of▁sentence｜>", "DeepSeek V3 and R1 generation_config.json"),
    _row("<end_of_utterance>", "<end_of_utterance> <|im_end|>", "Idefics3 and SmolVLM generation_config.json"),
    _row("<|im_start|> <|im_end|>", "<|im_end|> <|endoftext|>", "ChatML; Qwen2.5 and Qwen3 generation_config.json"),
    _row("<|assistant|> <|end|>", "<|end|> <|endoftext|>", "Phi-3 and Phi-4-mini generation_config.json"),
    _row("<|start_of_role|> <|end_of_text|>", "<|end_of_text|>", "Granite 3 generation_config.json"),
    _row("[|assistant|] [|endofturn|]", "[|endofturn|]", "EXAONE 3.5 and 4 generation_config.json"),
    _row("[INST] [/INST]", "</s>", "Mistral and Llama 2 generation_config.json"),
)
"""The first row whose markers all stand in the template counts."""


def stops_of(template: str, eos_token: str | None = None) -> Stops:
    """The stop tokens of a template.

    Args:
        template: Jinja source.
        eos_token: the variable of that name, which belongs to the set wherever it is known.
    """
    own = frozenset({eos_token} if eos_token else ())
    for row in STOPS:
        if all(marker in template for marker in row.markers):
            return row._replace(tokens=row.tokens | own)
    return Stops((), own, "eos_token" if own else "nothing known")
