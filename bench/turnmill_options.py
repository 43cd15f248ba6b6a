"""The options that the bench gives turnmill, for both of its scripts."""

from __future__ import annotations

import sys

MODES = ("fastokens", "words", "off")
"""Accelerated with the package `fastokens`, accelerated without it, and not accelerated."""


def flags(model: str, mode: str, workers: str = "1") -> list[tuple[str, str]]:
    """What would be typed; call it before turnmill looks for `fastokens`."""
    if mode == "words":
        sys.modules["fastokens"] = None  # type: ignore[assignment]  # python's way to say that there is none
    return [
        ("model.name_or_path", model),
        ("workers", workers),
        ("fit.max_tokens", "4096"),
        ("dedup.by", "[exact]"),
        ("accelerate", "false" if mode == "off" else "true"),
    ]
