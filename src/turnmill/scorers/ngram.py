"""Scores without a model: an adaptive n-gram of each sequence alone, for trials and tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.options import Score
from turnmill.scorers import Nll, ToScore, scorer

UNIGRAM_SHARE = 0.5
"""Of the mixture; the other half is the bigram's."""


class Ngram:
    """Every token is predicted from how often it stood in the sequence before, alone and behind its neighbour.

    Args:
        vocabulary: how many tokens there are: an unseen one has 1/vocabulary.
    """

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = vocabulary

    @property
    def identity(self) -> dict[str, Json]:
        """The scorer and its vocabulary."""
        return {"scorer": "ngram", "version": 1, "vocabulary": self._vocabulary}

    def nll(self, sequences: Sequence[ToScore]) -> Iterator[tuple[int, Nll]]:
        """In the order given."""
        for number, one in enumerate(sequences):
            yield number, self._nll(one.input_ids.astype(np.int64))[one.wanted].astype(np.float32)

    def _nll(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """(tokens,) nats of each token; both estimates are smoothed by one count of the uniform distribution."""
        before = np.arange(len(ids))
        unigram = (_earlier(ids) + 1 / self._vocabulary) / (before + 1)
        pairs = np.concatenate([[-1], ids[:-1] * self._vocabulary + ids[1:]])
        context = np.concatenate([[0], _earlier(ids[:-1])])
        bigram = (_earlier(pairs) + unigram) / (context + 1)
        mixed: NDArray[np.float64] = UNIGRAM_SHARE * unigram + (1 - UNIGRAM_SHARE) * bigram
        nats: NDArray[np.float64] = -np.log(mixed)
        return nats


def _earlier(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) how often each value stood before its place."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(values) else order
    first = np.repeat(starts, np.diff(np.append(starts, len(values))))
    counts = np.empty(len(values), dtype=np.int64)
    counts[order] = np.arange(len(values)) - first
    return counts


@scorer("ngram")
def open_ngram(options: Score, directory: Path | None, vocabulary: int) -> Ngram:
    """Scores without a model: an adaptive n-gram of each sequence alone, for trials and tests."""
    return Ngram(vocabulary)
