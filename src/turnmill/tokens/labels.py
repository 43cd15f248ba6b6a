"""Labels, loss weights and kinds of an example's tokens, all derived from its runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

IGNORE = -100
"""Label of a token the model does not learn from (the convention of PyTorch's cross entropy)."""


def per_token(run_ends: Sequence[int], values: ArrayLike) -> NDArray[np.generic]:
    """One value a token from one value a run.

    Args:
        run_ends: (runs,) token offset behind each run.
        values: (runs,).

    Returns:
        (tokens,).
    """
    ends = np.array([0, *run_ends], dtype=np.int64)
    return np.repeat(np.asarray(values), ends[1:] - ends[:-1])


def loss_weights(run_ends: Sequence[int], run_weights: ArrayLike) -> NDArray[np.float32]:
    """(tokens,) loss weight of each token; 0 = ignored."""
    return per_token(run_ends, np.asarray(run_weights, dtype=np.float32)).astype(np.float32, copy=False)


def labels(input_ids: ArrayLike, run_ends: Sequence[int], run_weights: ArrayLike) -> NDArray[np.int32]:
    """(tokens,) `input_ids` where the model learns, `IGNORE` elsewhere. Not shifted: the trainer shifts."""
    ids = np.asarray(input_ids, dtype=np.int32)
    return np.where(loss_weights(run_ends, run_weights) > 0, ids, np.int32(IGNORE)).astype(np.int32, copy=False)
