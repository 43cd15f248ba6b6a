"""What is said about a code."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """What a code means."""

    stage: str
    """The verb that gives it: read, convert, check, filter, dedup, decontaminate, render, tokenize, fit, select,
    template."""
    means: str
    """One sentence: the fault."""
    example: str
    """The smallest row, part of one, or template that gets it."""
    remedy: str
    """What to do about it."""
