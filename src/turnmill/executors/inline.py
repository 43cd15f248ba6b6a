"""Every task in this process, one after another."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from turnmill.executors import executor


@executor("inline")
def inline(function: Callable[[Any], Any], tasks: Sequence[Any], workers: int) -> Generator[Any, None, None]:
    """Runs tasks one after another in this process, whatever `workers` says."""
    for task in tasks:
        yield function(task)
