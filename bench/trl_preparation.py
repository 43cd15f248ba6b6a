"""Times the preparation of TRL's SFTTrainer on one file of rows, in this process; prints one JSON object.

    python bench/trl_preparation.py ROWS.jsonl MODEL_DIRECTORY

Runs in an environment of its own. The trainer is made once on one row with a model of a few weights, so that neither
imports nor the model are in the timer; then its own preparation runs on all rows.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def cpu_s() -> float:
    """User and system time of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def trainer_of(tokenizer: Any, first: Any, scratch: str) -> Any:
    """A trainer whose preparation is set as turnmill's defaults are."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from trl import SFTConfig, SFTTrainer

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes))
    options = SFTConfig(
        output_dir=scratch,
        max_length=4096,
        packing=True,
        packing_strategy="bfd",
        assistant_only_loss=True,
        dataset_num_proc=1,
        report_to="none",
        use_cpu=True,
        bf16=False,
    )
    return SFTTrainer(model, options, train_dataset=first, processing_class=tokenizer)


def main(data: str, directory: str) -> None:
    """Measure, and print what was found."""
    import datasets
    from transformers import PreTrainedTokenizerFast

    datasets.disable_progress_bars()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(directory)
    tokenizer.chat_template = Path(directory, "chat_template.jinja").read_text("utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        loaded = datasets.load_dataset("json", data_files=data, split="train[:1]", cache_dir=f"{scratch}/first")
        trainer = trainer_of(tokenizer, loaded, scratch)
        cpu, wall = cpu_s(), time.perf_counter()
        rows = datasets.load_dataset("json", data_files=data, split="train", cache_dir=f"{scratch}/all")
        packed = trainer._prepare_dataset(rows, tokenizer, trainer.args, True, None, "train")
        figures = {"cpu_s": cpu_s() - cpu, "wall_s": time.perf_counter() - wall}
        tokens = sum(sum(lengths) for lengths in packed["seq_lengths"])
        trained = sum(label != -100 for labels in packed["labels"] for label in labels)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"rows": len(rows), "stages": {"prepare": figures}, "peak_mib": round(peak), "packs": len(packed)}
    print(json.dumps({**found, "tokens": tokens, "trained_tokens": trained}))


if __name__ == "__main__":
    main(*sys.argv[1:])
