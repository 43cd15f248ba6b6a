"""The regression battery: small sets of everyday skills, shipped with the package, that a training may cost."""

from __future__ import annotations

from pathlib import Path

from turnmill.options import EvalSource

FOLDER = Path(__file__).parent.parent / "data" / "battery"
PREFIX = "battery/"
"""Of the names of its sets."""


def battery_sources() -> tuple[EvalSource, ...]:
    """Its sets, by name; optional: a template that cannot say tools leaves that set out, named."""
    return tuple(
        EvalSource(f"{PREFIX}{path.stem}", (str(path),), dialect="openai", optional=True)
        for path in sorted(FOLDER.glob("*.jsonl"))
    )
