"""Near-duplicates by rensa or datasketch, each pair compared by exact Jaccard, as their own examples have it.

python bench/peers/near_duplicates.py TEXTS.jsonl rensa | datasketch
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import measuring

THRESHOLD, NGRAM, HASHES = 0.8, 3, 128
BANDS = 16


def ngrams(text: str) -> list[str]:
    """Three words each."""
    found = text.split()
    return [" ".join(found[at : at + NGRAM]) for at in range(len(found) - NGRAM + 1)]


def rensa() -> tuple[Any, Callable[[list[str]], Any]]:
    """Its index, and its sketch of n-grams."""
    from rensa import RMinHash, RMinHashLSH

    def sketch(found: list[str]) -> Any:
        made = RMinHash(HASHES, 42)
        made.update(found)
        return made

    return RMinHashLSH(THRESHOLD, HASHES, BANDS), sketch


def datasketch() -> tuple[Any, Callable[[list[str]], Any]]:
    """Its index, and its sketch of n-grams."""
    from datasketch import MinHash, MinHashLSH

    def sketch(found: list[str]) -> Any:
        made = MinHash(HASHES)
        made.update_batch([one.encode() for one in found])
        return made

    return MinHashLSH(threshold=THRESHOLD, num_perm=HASHES), sketch


def losers(texts: Sequence[str], index: Any, sketch: Callable[[list[str]], Any]) -> set[int]:
    """Numbers of the texts that are near one that stays."""
    left: set[int] = set()
    sets: list[set[str]] = []
    for number, text in enumerate(texts):
        found = ngrams(text)
        made, ours = sketch(found), set(found)
        sets.append(ours)
        if any(len(ours & sets[other]) >= THRESHOLD * len(ours | sets[other]) for other in index.query(made)):
            left.add(number)
        else:
            index.insert(number, made)
    return left


def main(data: str, peer: str) -> None:
    """Measure, and print what was found."""
    given = [json.loads(line) for line in Path(data).read_text().splitlines()]
    index, sketch = {"rensa": rensa, "datasketch": datasketch}[peer]()
    figures: dict[str, measuring.Figures] = {}
    with measuring.timed(figures, "near"):
        left = losers([one["text"] for one in given], index, sketch)
    measuring.answer(len(given), figures, **measuring.found(left, [one["similarity"] for one in given]))


if __name__ == "__main__":
    main(*sys.argv[1:])
