"""ms-swift's own reading of an export: what it would train on, as JSON.

python bench/peers/swift_export.py EXPORT MODEL_DIRECTORY
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path


def main(export: str, directory: str) -> None:
    """Print ids and labels of each row."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "USE_HF": "1"}
    with tempfile.TemporaryDirectory() as scratch:
        os.environ |= {"HF_DATASETS_CACHE": f"{scratch}/cache", "MODELSCOPE_CACHE": f"{scratch}/hub"}
        from swift.dataset import load_dataset
        from swift.model import get_processor
        from swift.template import get_template

        template = get_template(
            get_processor(directory, model_type="llama"), template_type="chatml", agent_template="hermes"
        )
        template.set_mode("train")
        rows, _ = load_dataset([str(Path(export, "train.jsonl").resolve())])
        found = [template.encode(row) for row in rows]
        print(json.dumps([[list(row["input_ids"]), list(row["labels"])] for row in found]))


if __name__ == "__main__":
    main(*sys.argv[1:])
