"""Axolotl's own reading of an export: what it would train on, as JSON.

python bench/peers/axolotl_export.py EXPORT MODEL_DIRECTORY
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

NEEDED = {
    "tokenizer_type": "PreTrainedTokenizerFast", "dataset_processes": 1, "micro_batch_size": 1,
    "gradient_accumulation_steps": 1, "num_epochs": 1, "learning_rate": 0.0001,
}  # fmt: skip
"""What its config must say beside the data."""


def main(export: str, directory: str) -> None:
    """Print ids and labels of each example."""
    os.environ |= {"AXOLOTL_IS_PREPROCESS": "1", "AXOLOTL_DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
    import yaml
    from axolotl.cli.args import PreprocessCliArgs
    from axolotl.cli.config import load_cfg
    from axolotl.common.datasets import load_datasets

    os.chdir(export)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HF_DATASETS_CACHE"] = f"{scratch}/cache"
        own = {"base_model": directory, "dataset_prepared_path": f"{scratch}/prepared", "output_dir": f"{scratch}/out"}
        path = Path(scratch, "config.yaml")
        path.write_text(json.dumps({**yaml.safe_load(Path("axolotl.yaml").read_text("utf-8")), **NEEDED, **own}))
        options = load_cfg(str(path), is_preprocess=True)
        options.is_preprocess = True
        made = load_datasets(cfg=options, cli_args=PreprocessCliArgs()).train_dataset
        print(json.dumps([[row["input_ids"], row["labels"]] for row in made]))


if __name__ == "__main__":
    main(*sys.argv[1:])
