"""Texts with near-duplicates planted among them, and what of them an exact comparison finds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from turnmill.ngrams import words

Pairs = dict[tuple[int, int], float]


def vocabulary(size: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(size)]


def planted(count: int, *, edited: int, seed: int = 0) -> list[str]:
    """So many texts of 20 to 68 words, and as many edited ones, of each of which some words are changed."""
    draw, known = random.Random(seed), vocabulary(20_000)
    weights = [1 / (rank + 1) for rank in range(len(known))]
    texts = [" ".join(draw.choices(known, weights, k=draw.randint(20, 68))) for _ in range(count)]
    return texts + [changed(texts[draw.randrange(count)], draw.choice((1, 1, 1, 2, 3)), draw) for _ in range(edited)]


def changed(text: str, times: int, draw: random.Random) -> str:
    """The text with so many words replaced."""
    found = text.split()
    for _ in range(times):
        found[draw.randrange(len(found))] = f"edit{draw.randrange(10**6)}"
    return " ".join(found)


def exact_pairs(texts: Sequence[str], threshold: float, n: int = 3) -> Pairs:
    """Every pair whose exact Jaccard similarity is at least the threshold, by comparing all that share an n-gram."""
    sets = [ngrams_of(text, n) for text in texts]
    holders: dict[tuple[str, ...], list[int]] = {}
    found: Pairs = {}
    for second, ours in enumerate(sets):
        for first in {number for ngram in ours for number in holders.get(ngram, ())}:
            shared = len(sets[first] & ours)
            similarity = shared / (len(sets[first]) + len(ours) - shared)
            if similarity >= threshold:
                found[first, second] = similarity
        for ngram in ours:
            holders.setdefault(ngram, []).append(second)
    return found


def ngrams_of(text: str, n: int) -> set[tuple[str, ...]]:
    found = words(text)
    return set(_windows(found, n)) if found else set()


def _windows(found: list[str], n: int) -> Iterator[tuple[str, ...]]:
    for at in range(max(1, len(found) - n + 1)):
        yield tuple(found[at : at + n])
