"""Writes a random model of a fifth of a second a step, with the tokenizer of SmolLM2.

python examples/shelf/tiny_model.py DIRECTORY
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from turnmill.smollm2 import model_directory

PARTS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def main(directory: Path) -> None:
    """Make the directory."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    source = model_directory()
    torch.manual_seed(1)
    directory.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        if (source / name).exists():
            shutil.copy2(source / name, directory / name)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
