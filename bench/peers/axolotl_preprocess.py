"""Axolotl: what `axolotl preprocess` does after its imports; it packs only while it trains.

python bench/peers/axolotl_preprocess.py ROWS.jsonl MODEL_DIRECTORY
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import measuring


def config(data: str, directory: str, scratch: str) -> dict[str, Any]:
    """Its config: assistant turns trained with their stops, one process."""
    rows = {
        "path": str(Path(data).resolve()),
        "ds_type": "json",
        "type": "chat_template",
        "field_messages": "messages",
        "field_tools": "tools",
        "roles_to_train": ["assistant"],
        "train_on_eos": "turn",
    }
    return {
        "base_model": directory,
        "tokenizer_type": "PreTrainedTokenizerFast",
        "chat_template": "jinja",
        "chat_template_jinja": Path(directory, "chat_template.jinja").read_text("utf-8"),
        "datasets": [rows],
        "dataset_prepared_path": f"{scratch}/prepared",
        "dataset_processes": 1,
        "sequence_len": measuring.MAX_TOKENS,
        "sample_packing": True,
        "output_dir": f"{scratch}/out",
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 1,
        "num_epochs": 1,
        "learning_rate": 0.0001,
    }


def main(data: str, directory: str) -> None:
    """Measure, and print what was found."""
    os.environ |= {"AXOLOTL_IS_PREPROCESS": "1", "AXOLOTL_DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
    from axolotl.cli.args import PreprocessCliArgs
    from axolotl.cli.config import load_cfg
    from axolotl.common.datasets import load_datasets
    from axolotl.utils.trainer import disable_datasets_caching

    figures: dict[str, measuring.Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HF_DATASETS_CACHE"] = f"{scratch}/cache"
        path = Path(scratch, "config.yaml")
        path.write_text(json.dumps(config(data, directory, scratch)))
        options = load_cfg(str(path), is_preprocess=True)
        options.is_preprocess = True
        with measuring.timed(figures, "prepare"), disable_datasets_caching():
            made = load_datasets(cfg=options, cli_args=PreprocessCliArgs()).train_dataset
        found = measuring.kept(zip(made["input_ids"], made["labels"], strict=True))
    with open(data, encoding="utf-8") as file:
        measuring.answer(sum(1 for _ in file), figures, examples=len(made), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
