"""The weights of a model directory, or of adapters, and their hash."""

from __future__ import annotations

from pathlib import Path

import xxhash

from turnmill.errors import UsageError, shell_word

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
CONFIGS = ("config.json", "adapter_config.json")
CHUNK_BYTES = 1 << 22


def weights_digest(directory: Path) -> str:
    """32 hex digits over the weight files and what says how they are used (`config.json`, of adapters theirs).

    Raises:
        UsageError: there are no weights.
    """
    files = next((found for pattern in WEIGHTS if (found := sorted(directory.glob(pattern)))), [])
    if not files:
        what = f"{directory} holds no weights ({' or '.join(WEIGHTS)}); expected the model itself"
        raise UsageError(what, next_step=f"ls {shell_word(directory)}")
    digest = xxhash.xxh3_128()
    for path in [*files, *(directory / name for name in CONFIGS if (directory / name).is_file())]:
        digest.update(path.name.encode())
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()
