"""Records with something broken inside, drawn from a seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

JUNK = ["", " ", "x", "user", "assistant", "tool", "<think>", "{}", '{"name": "f", "arguments": {}}', "<|start|>",
        None, True, 0, 1.5, -1, [], {}, [[]], [None], {"type": "text"}, {"role": "user"}, "\ud800"]  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def damaged(record: dict, draw: random.Random) -> dict:
    record = copy.deepcopy(record)
    for _ in range(draw.randint(1, 3)):
        found = list(places(record))
        if not found:
            break
        container, key = draw.choice(found)
        if draw.random() < 0.3:
            del container[key]
        elif isinstance(container, list) and draw.random() < 0.5:
            container.insert(key, copy.deepcopy(draw.choice(found)[0]))
        else:
            container[key] = copy.deepcopy(draw.choice(JUNK))
    return record
