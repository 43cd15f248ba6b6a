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
    _row(
        "<|system_start|> <|assistant_end|> <|tools_suffix|>",
        "<|assistant_end|> <|tools_suffix|> </s>",
        "Apertus: swiss-ai/Megatron-LM, saver_swissai_hf",
    ),
    _row(
        "<|begin|> <|calls|> <|think|>",
        "<|flush|> <|calls|> <|endoftext|>",
        "Solar Open: llama.cpp src/llama-vocab.cpp",
    ),
    _row("<|im_user|> <|im_middle|> <|im_end|>", "<|im_end|>", "Kimi K2 config.json; renderers kimi_k2.py"),
    _row(
        "<|open|> <|close|> <|end_of_msg|>", "<|end_of_msg|>", "Kimi K3 config.json, by llama.cpp conversion/kimi_k3.py"
    ),
    _row("]~b] [e~[", "[e~[", "MiniMax M2 and M3: llama.cpp src/llama-vocab.cpp; renderers minimax_m2.py"),
    _row(
        "<beginning_of_sentence> <end_of_sentence>",
        "<end_of_sentence>",
        "MiniMax M1: the token that closes each turn of its template",
    ),
    _row("<seed:bos> <seed:eos>", "<seed:eos>", "Seed-OSS tokenizer_config.json, and the template's own eos_token"),
    _row("<｜hy_User <｜hy_eos", "<｜hy_eos:opensource｜>", "Hy3: renderers hy3.py, and the template's own eos_token"),
    _row(
        "<role> <|role_end|>",
        "<|role_end|> <|endoftext|>",
        "Ling 2 and 3: the token that closes each turn of its template, and its end of text",
    ),
    _row(
        "<assistant> </assistant> <system> </system>",
        "</assistant>",
        "Laguna config.json, by llama.cpp conversion/laguna.py",
    ),
    _row("<|role_sep|> <|message_sep|>", "<|message_sep|> </s>", "GigaChat 3: vLLM gigachat3_tool_parser.py"),
    _row(
        "<SPECIAL_11> <SPECIAL_12>", "<SPECIAL_12>", "Nemotron Nano 2: the token that closes each turn of its template"
    ),
    _row(
        "<sep> <tool_call> <REKA_IMG_TOKEN>",
        "<sep>",
        "Reka Flash 3 and Edge: the token that closes each turn of their templates",
    ),
    _row("<|Bot|> <|User|> <｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "Spark: the token that closes each turn"),
    _row("<|begin_assistant|> <|end|>", "<|end|>", "Apriel 1.6: the token that closes each turn of its template"),
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
