"""TRL's SFTTrainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnmill.trainers import TrainingRun, trainer

if TYPE_CHECKING:
    import torch


@trainer("trl")
def train_with_trl(run: TrainingRun) -> None:
    """TRL's SFTTrainer: its head gives log-probabilities in tiles, so that a batch's logits are never whole."""
    from datasets import Dataset
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from turnmill.training.fed import FedSteps, arguments, resumed

    class FedSft(FedSteps, SFTTrainer):
        def weighted_nll(
            self, model: Any, inputs: dict[str, Any], labels: torch.Tensor, weights: torch.Tensor
        ) -> torch.Tensor:
            found = model(**inputs, labels=labels, use_cache=False, fused_lm_head=True)
            total: torch.Tensor = -(found.log_probs.float() * weights[:, 1:]).sum()
            return total

    config = SFTConfig(
        **arguments(run), max_length=None, packing=False, dataset_kwargs={"skip_prepare_dataset": True},
        router_aux_loss_coef=0.0,
    )  # fmt: skip
    made = FedSft(
        run,
        args=config,
        train_dataset=Dataset.from_dict({"input_ids": [[0]], "labels": [[0]]}),  # its columns are asked for alone
        processing_class=run.tokenizer,
        data_collator=lambda rows: rows,
    )
    made.train(resume_from_checkpoint=resumed(run))
