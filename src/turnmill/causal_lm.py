"""A causal language model of transformers, loaded from a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from turnmill.errors import UsageError, shell_word


class Placement(NamedTuple):
    """Where a model runs, and in which numbers."""

    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`; `auto`: a GPU where there is one."""
    dtype: str = "auto"
    """`float32`, `bfloat16`, `float16`; `auto`: bfloat16 on a GPU, else float32."""
    attention: str = "auto"
    """As transformers names it; `auto`: its own choice."""
    threads: int | None = None
    """Of a CPU; None: as many as torch takes."""

    @property
    def is_on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.startswith("cuda")


def placed(placement: Placement, who: str) -> Placement:
    """The placement with `auto` settled for device and numbers.

    Args:
        placement: what was asked for.
        who: what needs the model, for the error.

    Raises:
        UsageError: transformers or torch is missing.
    """
    try:
        import torch
        import transformers  # noqa: F401  # told here, before hours of other work
    except ImportError as missing:
        what = f"{who} needs {missing.name}, which is not installed"
        raise UsageError(what, next_step="pip install 'turnmill[hf]'") from None
    device = placement.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = placement.dtype
    if dtype == "auto":
        dtype = "bfloat16" if device.startswith("cuda") else "float32"
    return placement._replace(device=device, dtype=dtype)


def load(directory: Path, placement: Placement) -> Any:
    """The model of a directory, in evaluation mode, where `placed` put it.

    Raises:
        UsageError: it cannot be loaded.
    """
    import torch
    import transformers
    from safetensors import SafetensorError

    if placement.threads is not None:
        torch.set_num_threads(placement.threads)
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs
    try:
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            directory,
            dtype=getattr(torch, placement.dtype),
            attn_implementation=None if placement.attention == "auto" else placement.attention,
        )
        return model.to(placement.device).eval()
    except (OSError, ValueError, ImportError, RuntimeError, SafetensorError) as problem:
        what = f"cannot load the model in {directory}: {(str(problem).splitlines() or [''])[0]}"
        raise UsageError(what, next_step=f"ls {shell_word(directory)}") from problem
