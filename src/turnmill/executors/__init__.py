"""Executors: a file each, run a function over tasks and give the results in the tasks' order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from turnmill.registry import Registry

Executor = Callable[[Callable[[Any], Any], Sequence[Any], int], Generator[Any, None, None]]
"""(function, tasks, workers) → the results, in the tasks' order.

Function and tasks are picklable. An exception of the function is raised when its task's turn comes; tasks that have
not begun by then are dropped.
"""

executors: Registry[Executor] = Registry("executors")
executor = executors.register
