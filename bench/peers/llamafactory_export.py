"""LLaMA-Factory's own reading of an export: what it would train on, as JSON.

python bench/peers/llamafactory_export.py EXPORT MODEL_DIRECTORY
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path


def main(export: str, directory: str) -> None:
    """Print ids and labels of each row."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "DISABLE_VERSION_CHECK": "1"}
    import yaml
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from llamafactory.model import load_tokenizer

    os.chdir(export)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HF_DATASETS_CACHE"] = f"{scratch}/cache"
        own = {"stage": "sft", "do_train": True, "model_name_or_path": directory, "template": "qwen3_nothink",
               "output_dir": f"{scratch}/out", "preprocessing_num_workers": 1}  # fmt: skip
        model, data, training, *_ = get_train_args({**yaml.safe_load(Path("data.yaml").read_text("utf-8")), **own})
        loaded = load_tokenizer(model)
        template = get_template_and_fix_tokenizer(loaded["tokenizer"], data)
        made = get_dataset(template, model, data, training, stage="sft", **loaded)["train_dataset"]
        print(json.dumps([[row["input_ids"], row["labels"]] for row in made]))


if __name__ == "__main__":
    main(*sys.argv[1:])
