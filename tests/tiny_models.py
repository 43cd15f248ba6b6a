"""Small random models of transformers' architectures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

COMMON: dict[str, Any] = {
    "vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64,
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
OWN: dict[str, dict[str, Any]] = {
    "qwen3": {"head_dim": 8},
    "qwen3_moe": {"head_dim": 8, **EXPERTS},
    "gemma2": {"head_dim": 8, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 8},
    "gemma3_text": {"head_dim": 8, "sliding_window": 8},
    "cohere": {"logit_scale": 0.25},
    "granite": {"logits_scaling": 4.0},
    "gpt_oss": {"head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    "mamba2": {"state_size": 8, "num_heads": 8, "head_dim": 8, "n_groups": 1, "expand": 2},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "qwen3_next": {
        "head_dim": 8, **EXPERTS, "shared_expert_intermediate_size": 16, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
        "layer_types": ["linear_attention", "full_attention"],
    },
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
}  # fmt: skip


def tiny_model(model_type: str, *, seed: int = 1, **more: Any) -> Any:
    """A random model of an architecture, the same each time."""
    import torch
    import transformers

    torch.set_num_threads(1)  # several would wait for one another longer than such matrices take
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(model_type, **{**COMMON, **OWN.get(model_type, {}), **more})
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def save_tiny_model(directory: Path, model_type: str, **more: Any) -> Path:
    """The same, written to a directory."""
    tiny_model(model_type, **more).save_pretrained(directory)
    return directory
