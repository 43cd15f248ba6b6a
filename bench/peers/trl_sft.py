"""TRL: the preparation of its SFTTrainer, assistant-only loss, packed.

    python bench/peers/trl_sft.py ROWS.jsonl MODEL_DIRECTORY [PROCESSES]

The trainer is made once on one row with a model of a few weights, so that neither imports nor the model are in the
timer; then its own preparation runs on all rows.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import measuring


def trainer_of(tokenizer: Any, first: Any, scratch: str, processes: int) -> Any:
    """A trainer whose preparation is set as turnmill's defaults are."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import SFTConfig, SFTTrainer

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes))
    options = SFTConfig(
        output_dir=scratch,
        max_length=measuring.MAX_TOKENS,
        packing=True,
        packing_strategy="bfd",
        assistant_only_loss=True,
        dataset_num_proc=processes,
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    return SFTTrainer(model, options, train_dataset=first, processing_class=tokenizer)


def main(data: str, directory: str, processes: str = "1") -> None:
    """Measure, and print what was found."""
    import datasets
    from transformers import PreTrainedTokenizerFast

    datasets.disable_progress_bars()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(directory)
    tokenizer.chat_template = Path(directory, "chat_template.jinja").read_text("utf-8")
    figures: dict[str, measuring.Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        loaded = datasets.load_dataset("json", data_files=data, split="train[:1]", cache_dir=f"{scratch}/first")
        trainer = trainer_of(tokenizer, loaded, scratch, int(processes))
        with measuring.timed(figures, "prepare"):
            rows = datasets.load_dataset("json", data_files=data, split="train", cache_dir=f"{scratch}/all")
            packed = trainer._prepare_dataset(rows, tokenizer, trainer.args, True, None, "train")
        found = measuring.kept(zip(packed["input_ids"], packed["labels"], strict=True))
    measuring.answer(len(rows), figures, packs=len(packed), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
