"""LLaMA-Factory: its own loading, conversion, template and packing.

    python bench/peers/llamafactory_sft.py ROWS.jsonl MODEL_DIRECTORY [PROCESSES]

Its templates are its own: `qwen3_nothink` for every model of the bench, for it has <|im_start|> turns and tools.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import measuring

COLUMNS = {"messages": "messages", "tools": "tools"}
TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "observation_tag": "tool",
    "function_tag": "function",
    "system_tag": "system",
}


def arguments(data: str, directory: str, scratch: str, processes: int) -> dict[str, Any]:
    """Its options, beside a `dataset_info.json` that names the rows."""
    described = {
        "rows": {"file_name": str(Path(data).resolve()), "formatting": "openai", "columns": COLUMNS, "tags": TAGS}
    }
    Path(scratch, "dataset_info.json").write_text(json.dumps(described))
    return {
        "stage": "sft",
        "do_train": True,
        "model_name_or_path": directory,
        "template": "qwen3_nothink",
        "dataset": "rows",
        "dataset_dir": scratch,
        "cutoff_len": measuring.MAX_TOKENS,
        "packing": True,
        "neat_packing": True,
        "preprocessing_num_workers": processes,
        "overwrite_cache": True,
        "output_dir": f"{scratch}/out",
        "report_to": "none",
        "use_cpu": True,
    }


def main(data: str, directory: str, processes: str = "1") -> None:
    """Measure, and print what was found."""
    import datasets
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from llamafactory.model import load_tokenizer

    datasets.disable_progress_bars()
    figures: dict[str, measuring.Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        options = arguments(data, directory, scratch, int(processes))
        model, of_data, training, *_ = get_train_args(options)
        model.cache_dir = scratch
        loaded = load_tokenizer(model)
        template = get_template_and_fix_tokenizer(loaded["tokenizer"], of_data)
        with measuring.timed(figures, "prepare"):
            made = get_dataset(template, model, of_data, training, stage="sft", **loaded)["train_dataset"]
        real = (
            (ids[: sum(map(bool, mask))], labels)
            for ids, mask, labels in zip(made["input_ids"], made["attention_mask"], made["labels"], strict=True)
        )
        found = measuring.kept(real)
    with open(data, encoding="utf-8") as file:
        measuring.answer(sum(1 for _ in file), figures, packs=len(made), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
