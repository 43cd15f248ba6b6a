"""Trainers of transformers' kind, fed with optimizer steps: the loss of a step is that of its documents alone.

The data, their order and their cut into steps are ours; the trainer keeps the loop, the optimizer, the devices, the
ranks and the state of a checkpoint. It takes a list of micro-batches as one batch, so that nothing of a step depends on
how it counts them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
import transformers
from safetensors import SafetensorError
from torch.optim.lr_scheduler import LambdaLR

from turnmill.errors import HealthError, UsageError, shell_word
from turnmill.isolation import OF_THE_LOSS
from turnmill.stream.collate import IGNORE
from turnmill.training.checkpoints import Checkpoints
from turnmill.training.watch import LOSS, Watch

if TYPE_CHECKING:
    from turnmill.trainers import TrainingRun

ENDLESS = 10**9
"""Optimizer steps that no run has: the data and the watch end it."""


def arguments(run: TrainingRun) -> dict[str, Any]:
    """What every trainer of this kind is told."""
    options = run.options
    return {
        "output_dir": str(run.folder),
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": 1,
        "max_steps": ENDLESS,
        "learning_rate": run.schedule.highest,
        "optim": options.optimizer,
        "weight_decay": options.weight_decay,
        "max_grad_norm": options.max_grad_norm,
        "activation_checkpointing": options.gradient_checkpointing,
        "bf16": options.dtype == "bfloat16",
        "fp16": False,
        "use_cpu": run.device == "cpu",
        "ddp_find_unused_parameters": any("expert" in name for name, _ in run.model.named_parameters()),
        "seed": run.seed,
        "logging_strategy": "steps",
        "logging_steps": options.log_every,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "eval_strategy": "no",
        "eval_on_start": run.watch.owes_evaluation,
        "report_to": list(options.report_to) if run.rank == 0 else [],
        "run_name": options.run_name,
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "ignore_data_skip": True,
        "include_num_input_tokens_seen": "no",
    }


class FedSteps(transformers.Trainer):
    """A trainer that learns from a run's steps; another of transformers' kind stands behind it in a class of both.

    Args:
        run: what it is given.
        others: arguments of the trainer behind it.
    """

    def __init__(self, run: TrainingRun, **others: Any) -> None:
        self.run = run
        super().__init__(model=run.model, callbacks=[_Told(run.watch)], **others)
        self.loss_is_scaled_for_ga = True
        self.processing_class = None  # else the stop tokens of the model's own config become the tokenizer's
        self.remove_callback(transformers.PrinterCallback)

    def weighted_nll(
        self, model: Any, inputs: dict[str, Any], labels: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """Sum of weight times NLL of a micro-batch: float32, over the trained positions of the logits alone.

        Args:
            model: as it is called in training.
            inputs: of its forward.
            labels: (rows, tokens), not shifted.
            weights: (rows, tokens), 0 where nothing trains.
        """
        logits = model(**inputs, use_cache=False).logits
        trained = labels[:, 1:] != IGNORE
        kept = logits[:, :-1][trained].float()
        nll = torch.nn.functional.cross_entropy(kept, labels[:, 1:][trained], reduction="none")
        return (nll * weights[:, 1:][trained]).sum()

    def get_train_dataloader(self) -> Any:
        """The run's steps."""
        return self.run.steps

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> LambdaLR:
        """The run's learning rates; nothing of them hangs on how many steps the trainer takes it to have."""
        schedule = self.run.schedule
        made = LambdaLR(
            self.optimizer,  # type: ignore[arg-type]  # it is there by now
            lambda step: schedule.rate(step) / (schedule.highest or 1.0),
        )
        self.lr_scheduler, self._created_lr_scheduler = made, True
        return made

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> torch.Tensor | None:
        """Sum of the weights of a step, over all ranks."""
        weights = [batch["loss_weights"][:, 1:].double().sum() for step in batch_samples for batch in step]
        if not weights:
            return None
        total: torch.Tensor = self.accelerator.reduce(torch.stack(weights).sum().to(device), "sum")
        return torch.where(total > 0, total, torch.ones_like(total))

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """Forward and backward of a step's micro-batches; ranks agree on gradients behind the last."""
        losses = []
        for number, batch in enumerate(inputs):
            is_last = number == len(inputs) - 1
            with nullcontext() if is_last else self.accelerator.no_sync(model):
                losses.append(super().training_step(model, batch, num_items_in_batch))
        return torch.stack(losses).sum()

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """A micro-batch's part of the step's weighted mean; times the ranks, whose gradients are averaged."""
        labels, weights, _ = (inputs.pop(name) for name in OF_THE_LOSS)
        total = self.weighted_nll(model, inputs, labels, weights)
        loss: torch.Tensor = total / num_items_in_batch.to(total.dtype) * self.accelerator.num_processes
        return loss

    def floating_point_ops(self, inputs: Any) -> int:
        """Not counted."""
        return 0

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """Measure the model as the run says, and do what follows from it."""
        watch = self.run.watch
        if watch.evaluate is None:
            return {}
        metrics = watch.evaluate(self.model)
        decision = watch.evaluated(metrics)
        self.control.should_save |= decision.save
        self.control.should_training_stop |= decision.stop
        self.callback_handler.on_log(self.args, self.state, self.control, _as_reported(metrics))
        return {"eval_loss": metrics[LOSS]}

    def _get_output_dir(self, trial: Any) -> str:
        return str(self.run.watch.checkpoints.draft)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        require_numbers(model, self.state.global_step)
        with _written(self.run.watch.checkpoints):
            transformers.Trainer._save_checkpoint(self, model, trial)  # TRL's would write a card, too
        self.accelerator.wait_for_everyone()
        if self.run.rank == 0:
            self.run.watch.saved()
        self.accelerator.wait_for_everyone()


class _Told(transformers.TrainerCallback):
    """Tells the watch of steps and logs, and the trainer what it decides."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        decision = self._watch.behind(state.global_step, stops=_any_rank(self._watch.stops, args))
        state.epoch = self._watch.loader.progress
        control.should_evaluate |= decision.evaluate
        control.should_save |= decision.save
        control.should_training_stop |= decision.stop
        control.should_log |= decision.stop

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """What is to be done was done behind the last step; transformers would do it once more."""
        control.should_evaluate = control.should_save = control.should_log = False

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any) -> None:
        if logs and "loss" in logs:
            names = ("loss", "learning_rate", "grad_norm")
            self._watch.logged({name: float(logs[name]) for name in names if name in logs})


def require_numbers(model: Any, step: int) -> None:
    """Refuse to keep weights that a last step broke: its own loss does not show it.

    Raises:
        HealthError: one that trains is no number.
    """
    for name, values in model.named_parameters():
        if values.requires_grad and not bool(torch.isfinite(values).all()):
            what = f"{name} holds no finite numbers behind step {step}: the weights are of no use, and are not saved"
            raise HealthError(what, next_step="--train.learning_rate 1e-5")


@contextmanager
def _written(checkpoints: Checkpoints) -> Iterator[None]:
    """Turns what the disk refuses into an error: those who write weights have errors of their own for it.

    Raises:
        UsageError: a checkpoint cannot be written; those before it stay.
    """
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (OSError, RuntimeError, SafetensorError) as problem:
        reason = (str(problem).splitlines() or [""])[0]
        what = f"cannot write a checkpoint into {checkpoints.draft}: {reason}"
        raise UsageError(what, next_step=f"df -h {shell_word(checkpoints.folder)}") from problem


def _any_rank(flag: bool, args: Any) -> bool:
    """Whether the flag is set on any rank."""
    if args.world_size == 1:
        return flag
    told = torch.tensor(float(flag), device=args.device)
    torch.distributed.all_reduce(told, op=torch.distributed.ReduceOp.MAX)
    return bool(told)


def _as_reported(metrics: dict[str, float]) -> dict[str, float]:
    """Metrics as transformers' integrations tell them from those of training."""
    return {name.replace("eval/", "eval_", 1): value for name, value in metrics.items()}


def resumed(run: TrainingRun) -> str | None:
    """The checkpoint that a run goes on from, as a trainer takes it."""
    return None if run.resume_from is None else os.fspath(run.resume_from)
