"""What the ranks of a run tell each other, where `torch.distributed` is on; alone, nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def place() -> tuple[int, int]:
    """Rank, and how many there are."""
    import torch.distributed as distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def added_over_ranks(values: NDArray[np.float64], device: Any) -> NDArray[np.float64]:
    """The sum of all ranks' arrays; every rank calls it.

    Args:
        values: of one shape on all ranks.
        device: where tensors of this rank lie.
    """
    import torch
    import torch.distributed as distributed

    if place()[1] == 1:
        return values
    on_device = "nccl" in str(distributed.get_backend())
    tensor = torch.from_numpy(np.ascontiguousarray(values)).to(device if on_device else "cpu")
    distributed.all_reduce(tensor)
    found: NDArray[np.float64] = tensor.cpu().numpy()
    return found


def gathered(value: Any) -> list[Any]:
    """Every rank's value, in order; every rank calls it."""
    import torch.distributed as distributed

    ranks = place()[1]
    if ranks == 1:
        return [value]
    found: list[Any] = [None] * ranks
    distributed.all_gather_object(found, value)
    return found
