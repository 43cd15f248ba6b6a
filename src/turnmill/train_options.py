"""The options of `train`: the section of the config, and its part of `--help`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Lora:
    """Low-rank adapters, in place of all weights."""

    rank: int = 16
    """Of an adapter's two matrices."""
    alpha: int = 32
    """What an adapter adds is scaled by alpha / rank."""
    dropout: float = 0.0
    """Share of an adapter's inputs that is dropped."""
    targets: tuple[str, ...] = ("all-linear",)
    """Names of the layers that get one; `all-linear`: every linear layer but the head."""


@dataclass(frozen=True, slots=True)
class Train:
    """How a model is trained on a prepared folder."""

    data: str | None = None
    """The prepared folder, OUT of `prepare`, where none is given on the command line."""
    output: str | None = None
    """The folder that the trained model is published in, where `--output` is not given."""
    trainer: str = "trl"
    """What runs the training (`turnmill list trainers`)."""
    model: str | None = None
    """Directory of the model that is trained; default `model.name_or_path`, else the model the data were prepared for.
    Its tokenizer must be the one of the data."""
    method: Literal["full", "lora"] = "full"
    """Train all weights, or adapters beside them."""
    lora: Lora = Lora()
    """The adapters of `method: lora`."""
    packing: Literal["auto", "on", "off"] = "auto"
    """Examples in one row; `auto`: as prepared, where the model was seen to keep them apart; `on`: an error where it
    does not; `off`: a row each, padded, rows of about one length together."""
    streaming: bool = False
    """Make examples of OUT's conversations as they are asked for, in place of reading those that are stored."""
    batch_size: int = 1
    """Packs of a micro-batch, of each process; unpacked: so many times `fit.max_tokens` padded tokens at most."""
    gradient_accumulation_steps: int = 16
    """Micro-batches of an optimizer step, of each process."""
    epochs: int = 1
    """How often the data are gone through."""
    max_steps: int | None = None
    """End after so many optimizer steps, however often they go through the data: the horizon, too."""
    exact_steps: bool = False
    """Plan every epoch for the horizon, in place of taking all to be as long as the first."""
    learning_rate: float | None = None
    """The highest; default 2e-5, with adapters 2e-4."""
    min_learning_rate: float | None = None
    """Where it ends and stays; default a tenth of the highest."""
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    """How it falls from the highest to the lowest, over the horizon."""
    warmup_ratio: float = 0.05
    """Share of the horizon over which it rises."""
    optimizer: str = "adamw_torch"
    """As transformers names it."""
    weight_decay: float = 0.1
    """Of the optimizer."""
    max_grad_norm: float = 1.0
    """Longer gradients are cut to it; 0: none is."""
    gradient_checkpointing: bool = False
    """Compute activations twice in place of keeping them."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """What is computed in; weights that train stay float32. `auto`: bfloat16 on a GPU, else float32."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto`: a GPU where there is one."""
    attention: str = "auto"
    """As transformers names it (`sdpa`, `eager`, `flash_attention_2`); `auto`: its own choice."""
    threads: int | None = None
    """Of a CPU; default: as many as torch takes."""
    loader_workers: int = 0
    """Processes that make batches; 0: the training process itself."""
    eval_every: int = 100
    """Evaluate every so many optimizer steps, and at the end; 0: never."""
    patience: int | None = None
    """End after so many evaluations in a row without a new best one."""
    save_every: int = 500
    """Save a checkpoint every so many optimizer steps; the best one and the last are saved whatever it is."""
    keep_checkpoints: int = 2
    """How many of the last checkpoints stay beside the best one."""
    log_every: int = 1
    """Log the loss every so many optimizer steps."""
    report_to: tuple[str, ...] = ()
    """Who is told of the metrics, too: `wandb`, `mlflow`, `tensorboard`, `trackio`."""
    run_name: str | None = None
    """What the run is called there; default the name of the output."""
