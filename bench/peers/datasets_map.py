"""What a script of one's own does: `datasets.map` and `apply_chat_template` with its mask; nothing is packed.

python bench/peers/datasets_map.py ROWS.jsonl MODEL_DIRECTORY
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import measuring


def tokenized(row: dict[str, Any], tokenizer: Any) -> dict[str, Any]:
    """A row's ids and labels."""
    messages = [{key: value for key, value in one.items() if value is not None} for one in row["messages"]]
    made = tokenizer.apply_chat_template(
        messages,
        tools=measuring.json.loads(row["tools"]) if row.get("tools") else None,
        enable_thinking=False,
        return_dict=True,
        return_assistant_tokens_mask=True,
        truncation=True,
        max_length=measuring.MAX_TOKENS,
    )
    pairs = zip(made["input_ids"], made["assistant_masks"], strict=True)
    return {"input_ids": made["input_ids"], "labels": [token if is_trained else -100 for token, is_trained in pairs]}


def main(data: str, directory: str) -> None:
    """Measure, and print what was found."""
    import datasets
    from transformers import PreTrainedTokenizerFast

    datasets.disable_progress_bars()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(directory)
    tokenizer.chat_template = Path(directory, "chat_template.jinja").read_text("utf-8")
    figures: dict[str, measuring.Figures] = {}
    with tempfile.TemporaryDirectory() as scratch:
        with measuring.timed(figures, "prepare"):
            rows = datasets.load_dataset("json", data_files=data, split="train", cache_dir=scratch)
            mapped = rows.map(tokenized, fn_kwargs={"tokenizer": tokenizer}, remove_columns=rows.column_names)
        found = measuring.kept(zip(mapped["input_ids"], mapped["labels"], strict=True))
    measuring.answer(len(rows), figures, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
