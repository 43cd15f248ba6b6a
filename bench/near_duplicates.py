"""Near-duplicates: documents per CPU second beside rensa and datasketch, and how many of the planted ones are found.

python bench/near_duplicates.py [--texts 100000] [--rounds 3] [--no-peers]

Everybody is given the same texts in memory, cuts them into n-grams of three words, proposes pairs at 0.8 and compares
them by exact Jaccard. `turnmill, steps` reads stored rows and writes what the steps write.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import environments
from run import RESULTS, line, measured, table, versions

THRESHOLD, NGRAM = 0.8, 3
ENVIRONMENT = "near"
OURS = {"turnmill": ("", "turnmill_near.py", "memory"), "turnmill, steps": ("", "turnmill_near.py", "steps")}
PEERS = {name: (ENVIRONMENT, "peers/near_duplicates.py", name) for name in ("rensa", "datasketch")}


def texts(count: int, seed: int = 20_261_130) -> Iterator[dict[str, Any]]:
    """Texts of 20 to 68 words, the last fifth of them earlier ones with one to three words changed."""
    draw = random.Random(seed)
    known = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(known) + 1)]
    plain = count - count // 5
    made = [draw.choices(known, weights, k=draw.randint(20, 68)) for _ in range(plain)]
    yield from ({"text": " ".join(text), "similarity": 0.0} for text in made)
    for base in draw.sample(range(plain), count // 5):
        changed = list(made[base])
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            changed[draw.randrange(len(changed))] = f"edit{draw.randrange(10**6)}"
        yield {"text": " ".join(changed), "similarity": similarity(made[base], changed)}


def similarity(one: list[str], other: list[str]) -> float:
    """The exact Jaccard similarity of their n-grams."""
    sets = [{tuple(found[at : at + NGRAM]) for at in range(len(found) - NGRAM + 1)} for found in (one, other)]
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def texts_file(count: int) -> Path:
    """The texts, made once."""
    path = RESULTS / f"texts-{count}.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(text) + "\n" for text in texts(count)))
    return path


def main() -> None:
    """Measure everybody by turns, print the table, keep the figures."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--no-peers", action="store_true")
    chosen = options.parse_args()
    missing = "" if chosen.no_peers else environments.made(ENVIRONMENT)
    contenders = dict(OURS) if chosen.no_peers or missing else OURS | PEERS
    if missing:
        print(f"left out: {ENVIRONMENT}: {missing}")
    data = texts_file(chosen.texts)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for number in range(chosen.rounds):
        for name, (environment, script, what) in contenders.items():
            print(f"round {number + 1} of {chosen.rounds}: {name}", file=sys.stderr)
            runs[name].append(measured(environment, script, data, what))
    shown(runs, chosen.texts)
    standing = [ENVIRONMENT] if len(contenders) > len(OURS) else []
    path = RESULTS / time.strftime("near-%Y%m%d-%H%M%S.json", time.gmtime())
    path.write_text(json.dumps({"versions": versions(standing), "runs": runs}, indent=1))
    print(f"\nall figures: {path}")


def shown(runs: dict[str, list[dict[str, Any]]], count: int) -> None:
    """The table."""
    table(f"near-duplicates, {count:,} texts", "per CPU s", "peak MiB", "recall", "wrong", "left", "load")
    for name, found in runs.items():
        speed = median(run["rows"] / run["stages"]["near"]["cpu_s"] for run in found)
        peak, load = (max(run[key] for run in found) for key in ("peak_mib", "load"))
        first = found[0]
        line(name, f"{speed:,.0f}", peak, f"{first['recall']:.4f}", first["wrong"], f"{first['left']:,}", f"{load:.1f}")


if __name__ == "__main__":
    main()
