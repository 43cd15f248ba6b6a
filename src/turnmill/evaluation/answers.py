"""How near a given answer lies to the recorded one, and what differs between two models: means with standard errors."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import regex

ARTICLES = ("a", "an", "the")
"""English ones, as SQuAD's measure leaves them out (Rajpurkar et al. 2016)."""
REASONING_ENDS = ("</think>", "[/THINK]", "◁/think▷", "<|end_think|>", "<|channel|>final<|message|>", "<channel|>")
"""What stands between reasoning and the answer; what is compared stands behind the last of them."""


class Nearness(NamedTuple):
    """An answer beside the recorded one, each from 0 to 1."""

    exact: float
    """1 where both are the same text, white space around them aside."""
    normalised: float
    """1 where both are the same words: see `words`."""
    f1: float
    """Harmonic mean of precision and recall of words, as often as they occur."""


def nearness(given: str, recorded: str) -> Nearness:
    """How near an answer is to the recorded one, behind the reasoning of both."""
    ours, theirs = without_reasoning(given), without_reasoning(recorded)
    exact = float(ours == theirs)
    a, b = words(ours), words(theirs)
    if not a and not b:
        return Nearness(exact, exact, exact)
    shared = sum((Counter(a) & Counter(b)).values())
    return Nearness(exact, float(a == b), 2 * shared / (len(a) + len(b)))


def without_reasoning(text: str) -> str:
    """What stands behind the last end of reasoning, without white space around it."""
    end = max((text.rfind(mark) + len(mark) for mark in REASONING_ENDS if mark in text), default=0)
    return text[end:].strip()


def words(text: str) -> list[str]:
    """NFC, case folded, without punctuation (but between digits) and English articles; cut at white space.

    In scripts that have no spaces between words every character is one.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return [word for word in _pattern("words").findall(_pattern("marks").sub(" ", folded)) if word not in ARTICLES]


@cache
def _pattern(name: str) -> regex.Pattern[str]:
    import regex

    unspaced = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    return regex.compile(
        {
            "marks": r"(?<=\d)[\p{P}](?=\d)(*SKIP)(*FAIL)|[\p{P}`^~|$+<>=]",
            "words": rf"[{unspaced}]\p{{M}}*|[^\s{unspaced}]+",
        }[name]
    )


class Estimate(NamedTuple):
    """A mean, and how far it may be off."""

    mean: float
    """NaN where there is nothing."""
    error: float
    """One standard error; NaN of fewer than two rows."""
    turns: int


def mean_of(values: ArrayLike, rows: Sequence[str], weights: ArrayLike | None = None) -> Estimate:
    """The mean of what was measured on turns, whose rows are independent, and the turns of a row are not.

    The error is that of a ratio of sums over rows (clusters): the turns of one conversation count together.

    Args:
        values: (turns,) sums: of a mean over tokens, those of its tokens.
        rows: (turns,) the row of each.
        weights: (turns,) what each sum is over; None: 1.
    """
    sums: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    shares = np.ones(len(sums)) if weights is None else np.asarray(weights, dtype=np.float64)
    total = float(shares.sum())
    if not total:
        return Estimate(math.nan, math.nan, 0)
    mean = float(sums.sum()) / total
    _, cluster = np.unique(np.array(rows, dtype=object).astype(str), return_inverse=True)
    off = np.bincount(cluster, weights=sums - mean * shares)
    clusters = len(off)
    if clusters < 2:
        return Estimate(mean, math.nan, len(sums))
    return Estimate(mean, math.sqrt(clusters / (clusters - 1) * float((off**2).sum())) / total, len(sums))
