"""transformers' own Trainer."""

from __future__ import annotations

from turnmill.trainers import TrainingRun, trainer


@trainer("transformers")
def train_with_transformers(run: TrainingRun) -> None:
    """Transformers' Trainer: the loss from the logits of a whole micro-batch, whatever the model's head."""
    import transformers

    from turnmill.training.fed import FedSteps, arguments, resumed

    made = FedSteps(
        run,
        args=transformers.TrainingArguments(**arguments(run)),
        train_dataset=[{}],  # asked for, and never looked at: steps are ours
    )
    made.train(resume_from_checkpoint=resumed(run))
