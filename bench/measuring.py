"""What every script of the bench measures alike; the standard library alone, for it runs in every environment."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MAX_TOKENS = 4096
Figures = dict[str, float]


def cpu_s() -> float:
    """User and system time of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def timed(figures: dict[str, Figures], stage: str) -> Iterator[None]:
    """Adds the stage's CPU and wall seconds."""
    cpu, wall = cpu_s(), time.perf_counter()
    yield
    figures[stage] = {"cpu_s": cpu_s() - cpu, "wall_s": time.perf_counter() - wall}


def peak_mib() -> int:
    """The most memory that this process, or one of its children, has held at once."""
    held = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return round(max(held) / 1024)


def answer(rows: int, stages: dict[str, Figures], **found: Any) -> None:
    """Prints what was found, as one JSON object on the last line."""
    print(json.dumps({"rows": rows, "stages": stages, "peak_mib": peak_mib(), **found}))


def found(left: set[int], planted: list[float], threshold: float = 0.8) -> dict[str, float]:
    """How many of the planted near-duplicates leave, and how many texts leave that none was planted for.

    Args:
        left: numbers of the texts that leave.
        planted: of each text, how similar it is to the one that it was made of; 0 where it was not made of one.
    """
    wanted = {number for number, similarity in enumerate(planted) if similarity >= threshold}
    wrong = sum(number not in wanted for number in left)
    return {"left": len(left), "recall": len(left & wanted) / max(1, len(wanted)), "wrong": wrong}


def kept(batches: Any) -> dict[str, int]:
    """Tokens and trained tokens.

    Args:
        batches: pairs of ids and labels, row by row.
    """
    tokens = trained = 0
    for ids, labels in batches:
        tokens += len(ids)
        trained += sum(label != -100 for label in labels)
    return {"tokens": tokens, "trained_tokens": trained}
