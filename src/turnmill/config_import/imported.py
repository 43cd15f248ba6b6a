"""What was read of another tool's config."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Imported:
    """Our config, and what it does not say."""

    tree: dict[str, Any] = field(default_factory=dict)
    """As a config file holds it: only what differs from our defaults."""
    notes: list[str] = field(default_factory=list)
    """What was not read, and where the two tools differ."""

    def put(self, dotted: str, value: Any) -> None:
        """Set a field by its dotted path."""
        *parents, key = dotted.split(".")
        place = self.tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[key] = value
