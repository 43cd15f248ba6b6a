"""Export real rows, let Axolotl, LLaMA-Factory and ms-swift load them with their own code, and compare what trains.

python bench/parity.py [DATA]

Targets of tokens must train on exactly the ids and labels that were prepared; those of messages render anew with a
template of their own, so their trained texts are compared, turn by turn, but for the line break behind a stop.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from environments import made, python_of, versions
from models import model_directory
from run import RESULTS, line, table
from tokenizers import Tokenizer

import turnmill
from turnmill.exporters import labels_and_weights
from turnmill.tokens.labels import IGNORE
from turnmill.verbs.export import export

PEERS = {
    "axolotl": ("axolotl", "axolotl_export.py"),
    "llamafactory": ("llamafactory", "llamafactory_export.py"),
    "ms-swift": ("swift", "swift_export.py"),
}
"""Target → the environment and the script that load it."""
LIMIT_S = 600
Labelled = tuple[list[int], list[int]]
"""Ids and labels."""


def loaded(target: str, folder: Path, model: Path) -> list[Labelled]:
    """What the target's own code makes of an export."""
    environment, script = PEERS[target]
    command = [python_of(environment), Path(__file__).parent / "peers" / script, folder, model]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    said = [text for text in ran.stdout.splitlines() if text.startswith("[[")]
    if not said:
        raise SystemExit(f"{target} loaded nothing: {ran.stderr[-2000:]}")
    return [(ids, labels) for ids, labels in json.loads(said[-1])]


def trained_texts(rows: list[Labelled], tokenizer: Tokenizer) -> list[list[str]]:
    """The texts that train of each row."""
    found = []
    for _, labels in rows:
        parts: list[list[int]] = [[]]
        for label in labels:
            if label != IGNORE:
                parts[-1].append(label)
            elif parts[-1]:
                parts.append([])
        found.append([tokenizer.decode(part, skip_special_tokens=False).rstrip("\n") for part in parts if part])
    return found


def main(data: str = str(Path(__file__).parents[1] / "examples" / "assistant.jsonl")) -> None:
    """Print a line for each target."""
    place = RESULTS / "parity"
    shutil.rmtree(place, ignore_errors=True)
    model = model_directory("smollm2 + chatml", place).resolve()
    prepared = turnmill.prepare(data, output=place / "out", model=str(model), options={"workers": 1})
    ours = [(list(one.input_ids), labels_and_weights(one)[0].tolist()) for one in prepared]
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    texts = trained_texts(ours, tokenizer)
    table("target", "rows written", "rows loaded", "same ids and labels", "same trained texts", "versions")
    for target, (environment, _) in PEERS.items():
        if missing := made(environment):
            line(target, "", "", "", "", missing)
            continue
        exported = export(prepared, target, place / target)
        theirs = loaded(target, (place / target).resolve(), model)
        same = sum(row in ours for row in theirs)
        alike = sum(text in texts for text in trained_texts(theirs, tokenizer))
        written = sum(count for name, count in exported.rows.items() if "eval" not in name)
        line(target, str(written), str(len(theirs)), str(same), str(alike), ", ".join(versions(environment)))


if __name__ == "__main__":
    main(*sys.argv[1:])
