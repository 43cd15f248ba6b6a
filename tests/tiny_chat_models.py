"""A small random model with a tokenizer and a template: whole directories, made in a moment."""

from __future__ import annotations

import json
from pathlib import Path

from tiny_models import save_tiny_model
from tokenizers_of_tests import byte_level
from turnmill.models import OWN_TEMPLATES


def save_chat_model(directory: Path, model_type: str = "llama", **more: object) -> Path:
    """A model that reads chats in ChatML, the same for each `seed`."""
    tokenizer = byte_level()
    size, stop = tokenizer.get_vocab_size(), tokenizer.token_to_id("<|im_end|>")
    config = {"vocab_size": size, "eos_token_id": stop, "max_position_embeddings": 2048, **more}
    save_tiny_model(directory, model_type, **config)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    (directory / "chat_template.jinja").write_text((OWN_TEMPLATES / "chatml.jinja").read_text("utf-8"), "utf-8")
    return directory
