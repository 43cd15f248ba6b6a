"""Scorers: a file each, how many nats each token costs a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.options import Score
from turnmill.registry import Registry


class ToScore(NamedTuple):
    """A sequence of tokens, and which of them are asked for."""

    input_ids: NDArray[np.int32]
    """(tokens,)."""
    wanted: NDArray[np.bool_]
    """(tokens,); never the first: nothing stands before it."""


class Unscored(NamedTuple):
    """A sequence that has no scores, and why."""

    reason: str


Nll = NDArray[np.float32]
"""(wanted tokens,) nats each, given the tokens before it in its own sequence alone."""


class Scorer(Protocol):
    """A loaded model that scores."""

    @property
    def identity(self) -> dict[str, Json]:
        """What its numbers depend on: by content, not by path."""
        ...

    def nll(self, sequences: Sequence[ToScore]) -> Iterator[tuple[int, Nll | Unscored]]:
        """Of every sequence its number and scores, in the order in which they are done."""
        ...


OpenScorer = Callable[[Score, Path | None, int], Scorer]
"""(the `score` section, the model's directory, size of its vocabulary) → a scorer, loaded and tried once."""

scorers: Registry[OpenScorer] = Registry("scorers")
scorer = scorers.register
