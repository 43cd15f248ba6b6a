"""Trainers: a file each, what moves a model's weights.

A trainer takes optimizer steps from `run.steps`, each a list of micro-batches of tensors, and learns from each the mean
of `loss_weights` times NLL over all its micro-batches and all ranks. Behind each step it asks `run.watch` what to do:

    @trainer("my-trainer")
    def train_with_mine(run: TrainingRun) -> None:
        \"\"\"My own loop: what it is good for.\"\"\"
        for step, batches in enumerate(run.steps, start=1):
            ... learn, at the rate run.schedule.rate(step - 1) ...
            decision = run.watch.behind(step, stops=run.watch.stops)
            run.watch.logged({"loss": loss})
            if decision.stop:
                break
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnmill.options import Train
from turnmill.registry import Registry

if TYPE_CHECKING:
    from turnmill.training.schedule import Schedule
    from turnmill.training.step_loader import StepLoader
    from turnmill.training.watch import Watch


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """What a trainer is given."""

    model: Any
    """Of transformers, on its device; the adapters, where there are some, are in it."""
    tokenizer: Any
    """Of transformers, with the template that is trained."""
    steps: StepLoader
    """The optimizer steps of this rank; iterating gives what is left of the run."""
    schedule: Schedule
    """The learning rate of each step."""
    options: Train
    """Settled: `dtype` is a name of torch's."""
    seed: int
    device: str
    """`cpu` or `cuda`."""
    folder: Path
    """Where the trainer may write what it likes."""
    watch: Watch
    """Told of every step; says when to evaluate, to save, to stop."""
    rank: int = 0
    resume_from: Path | None = None
    """A checkpoint whose weights, optimizer and random numbers the trainer takes first."""


Trainer = Callable[[TrainingRun], None]

trainers: Registry[Trainer] = Registry("trainers")
trainer = trainers.register
