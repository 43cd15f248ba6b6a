"""Small models that were trained on prepared rows until they know them by heart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tiny_models import tiny_model
from turnmill.exporters import labels_and_weights
from turnmill.files.prepared import PreparedData

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
SIZE: dict[str, Any] = {
    "vocab_size": 49152, "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256,
    "tie_word_embeddings": True,
}  # fmt: skip


def small(model_type: str = "llama") -> Any:
    """A random model for SmolLM2's tokenizer."""
    return tiny_model(model_type, **SIZE)


def learn(model: Any, folder: Path, steps: int = 60) -> Any:
    """The model, after so many steps over all rows of a prepared folder at once."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    data = PreparedData(folder).examples()
    found = [(torch.tensor(list(one.input_ids)), torch.from_numpy(labels_and_weights(one)[0])) for one in data]
    ids = pad_sequence([pair[0] for pair in found], batch_first=True)
    labels = pad_sequence([pair[1] for pair in found], batch_first=True, padding_value=-100).long()[:, 1:]
    trained = labels != -100
    bare = model.get_base_model() if hasattr(model, "get_base_model") else model
    optimizer = torch.optim.Adam([one for one in model.parameters() if one.requires_grad], lr=2e-2)
    model.train()
    for _ in range(steps):
        states = bare.base_model(input_ids=ids).last_hidden_state[:, :-1][trained]  # the head costs most
        torch.nn.functional.cross_entropy(bare.lm_head(states), labels[trained]).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval()


def save(model: Any, tokenizer: Path, folder: Path) -> Path:
    """The model with a tokenizer's files beside its weights."""
    model.save_pretrained(folder)
    for name in TOKENIZER_FILES:
        shutil.copy(tokenizer / name, folder)
    return folder
