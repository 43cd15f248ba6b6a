"""The marks by which jinja knows what a filter or test wants beside its value, for one that wraps another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MARKS = ("jinja_pass_arg", "jinja_async_variant")


def marked_as(function: Any, wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """The wrapper, called by jinja as the function that it wraps."""
    for mark in MARKS:
        if hasattr(function, mark):
            setattr(wrapper, mark, getattr(function, mark))
    return wrapper
