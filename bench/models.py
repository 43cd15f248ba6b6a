"""Model directories of the bench: a real tokenizer, and a template."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import assets  # noqa: E402  # found once the path says where

MODELS = {
    "smollm2 + chatml": ("smollm2", "chatml"),
    "smollm2 + qwen3": ("smollm2", "qwen3_training"),
    "qwen3": ("qwen3", "qwen3_training"),
}
"""Name → tokenizer and template: our own, or one of TRL's with generation tags."""
TEMPLATES = ("chatml", "qwen3", "qwen2_5", "llama3_1", "glm4moe", "gptoss", "gemma")
"""What is rendered with spans and without."""
FILES = ("tokenizer.json", "tokenizer_config.json", "config.json", "generation_config.json")


def template_path(name: str) -> Path:
    """One of our own templates, or TRL's of that name."""
    own = ROOT / "src" / "turnmill" / "rendering" / "templates" / f"{name}.jinja"
    return own if own.exists() else assets.trl_templates() / own.name


def model_directory(name: str, under: Path) -> Path:
    """A directory with all that a trainer reads of a model but its weights."""
    tokenizer, template = MODELS[name]
    directory = under / name.replace(" + ", "-")
    directory.mkdir(parents=True, exist_ok=True)
    source = assets.smollm2_directory() if tokenizer == "smollm2" else assets.qwen3_tokenizer()
    for file in FILES:
        if (source / file).exists():
            shutil.copy(source / file, directory)
    if tokenizer == "qwen3":
        _describe_qwen3(directory)
    shutil.copy(template_path(template), directory / "chat_template.jinja")
    return directory


def _describe_qwen3(directory: Path) -> None:
    """The configs that the tokenizer's package lacks."""
    end = {"eos_token_id": [151645, 151643], "pad_token_id": 151643, "bos_token_id": 151643}
    sizes = {"vocab_size": 151936, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1, "max_position_embeddings": 40960}
    kind = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
    (directory / "config.json").write_text(json.dumps({**kind, **sizes, **heads, "eos_token_id": 151645}))
    (directory / "generation_config.json").write_text(json.dumps(end))
