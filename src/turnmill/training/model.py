"""The model that is trained: loaded, put on its device, with adapters where they are asked for."""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from turnmill.causal_lm import Placement, load, placed
from turnmill.errors import UsageError
from turnmill.options import Lora, Train

EXTRA = "pip install 'turnmill[train]'"
REPORTERS = ("mlflow", "tensorboard", "trackio", "wandb")
"""Who can be told of metrics, each by the package of its name."""


class Ranks(NamedTuple):
    """This process among those that train together."""

    rank: int = 0
    total: int = 1
    local: int = 0
    """Its number on this machine."""


def ranks_of_this() -> Ranks:
    """As `torchrun` says it; one process where it does not."""
    rank, count, local = (os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    return Ranks(int(rank or 0), int(count or 1), int(local or 0))


def leave_ranks(ranks: Ranks) -> None:
    """Wait for the other processes, and part from them: one that ends first would break off what others still say."""
    import torch.distributed as distributed

    if ranks.total > 1 and distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


def require_packages(options: Train) -> None:
    """Refuse what a missing package would end later.

    Raises:
        UsageError: one that training needs, or one that is to be told of the metrics, is not installed.
    """
    needed = ["torch", "transformers", "accelerate"]
    needed += ["trl", "datasets"] if options.trainer == "trl" else []
    needed += ["peft"] if options.method == "lora" else []
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"train needs {', '.join(missing)}, which is not installed", next_step=EXTRA)
    for name in options.report_to:
        if name not in REPORTERS:
            what = f"train.report_to: got {name!r}, expected some of {', '.join(REPORTERS)}"
            raise UsageError(what, next_step="turnmill config schema")
        if importlib.util.find_spec(name) is None:
            raise UsageError(f"train.report_to: {name} is not installed", next_step=f"pip install {name}")


def placement_of(options: Train, ranks: Ranks) -> Placement:
    """Where the model is put, and in which numbers its weights are loaded.

    Weights that train are float32, whatever is computed in; those beside adapters are what is computed in.

    Raises:
        UsageError: a GPU that is not there, or several for one process.
    """
    import torch

    found = placed(Placement(options.device, options.dtype, options.attention, options.threads), "train")
    if found.is_on_gpu:
        if not torch.cuda.is_available():
            raise UsageError("train.device is cuda, and torch finds no GPU", next_step="--train.device cpu")
        count = torch.cuda.device_count()
        if count > 1 and ranks.total == 1:
            what = f"{count} GPUs are visible to one process; expected a process each, or CUDA_VISIBLE_DEVICES=0"
            raise UsageError(what, next_step=f"torchrun --nproc-per-node {count} -m turnmill train OUT")
        found = found._replace(device=f"cuda:{ranks.local}")
    return found


def load_model(directory: Path, placement: Placement, method: str) -> Any:
    """The model of a directory as it is trained.

    Raises:
        UsageError: it cannot be loaded.
    """
    dtype = placement.dtype if method == "lora" else "float32"
    model = load(directory, placement._replace(dtype=dtype))
    model.config.use_cache = False
    return model


def with_adapters(model: Any, options: Lora, seed: int, *, is_checkpointing: bool) -> Any:
    """The model with low-rank adapters, its own weights frozen.

    Raises:
        UsageError: it has no layers of these names.
    """
    import peft
    import transformers

    transformers.set_seed(seed)
    targets = options.targets[0] if options.targets == ("all-linear",) else list(options.targets)
    config = peft.LoraConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        lora_dropout=options.dropout,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft asks the model by a name that is being renamed
            made: Any = peft.get_peft_model(model, config)
    except ValueError as problem:
        what = f"train.lora.targets: {(str(problem).splitlines() or [''])[0]}"
        raise UsageError(what, next_step="--train.lora.targets all-linear") from problem
    if is_checkpointing:
        made.enable_input_require_grads()
    return made


def require_readable(model: Any, greatest: int, longest: int, directory: Path) -> None:
    """Refuse data that the model cannot read.

    Args:
        model: what is trained.
        greatest: token id of the data.
        longest: example of the data, in tokens.
        directory: of the model.

    Raises:
        UsageError: it has no embedding for the greatest token id, or sees fewer tokens than the longest example has.
    """
    embedded = int(model.get_input_embeddings().weight.shape[0])
    if greatest >= embedded:
        what = f"the data hold the token {greatest}; the model in {directory} embeds {embedded:,} (0 to {embedded - 1})"
        raise UsageError(what, next_step="--train.model DIR")
    context = getattr(model.config, "max_position_embeddings", None)
    if context and longest > context:
        what = f"the data hold an example of {longest:,} tokens; the model in {directory} sees {context:,}"
        raise UsageError(what, next_step=f"turnmill prepare DATA --max-tokens {context} --output OUT")


def load_tokenizer(directory: Path, template: str) -> Any:
    """Transformers' tokenizer of a directory, with the template that is trained.

    Raises:
        UsageError: it cannot be loaded.
    """
    import transformers

    try:
        found: Any = transformers.AutoTokenizer.from_pretrained(directory)
    except (OSError, ValueError, KeyError) as problem:
        what = f"cannot load the tokenizer in {directory}: {(str(problem).splitlines() or [''])[0]}"
        raise UsageError(what, next_step=f"ls {directory}") from problem
    found.chat_template = template
    return found
