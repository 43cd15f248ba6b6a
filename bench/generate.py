"""Chat rows of a seed, as OpenAI JSON lines: the same rows for the same seed and Python version.

1 to 12 turns, a fifth of the rows with tools, a third with a system prompt; English prose, Python code, and words of
several scripts. English and code are Python's own: its language reference and its standard library.
"""

from __future__ import annotations

import json
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SEED = 20261130
SCRIPTS = {
    "Han": (0x4E00, 0x6E00, 1, 3, ""),
    "Kana": (0x3042, 0x3093, 2, 5, ""),
    "Hangul": (0xAC00, 0xB400, 1, 4, " "),
    "Cyrillic": (0x0430, 0x044F, 2, 9, " "),
    "Arabic": (0x0627, 0x064A, 2, 7, " "),
    "Devanagari": (0x0915, 0x0939, 2, 5, " "),
    "Latin": (0x00E0, 0x00FC, 1, 3, " "),
}
"""Script → first and last code point, letters of a word, and what stands between words."""
CALLS = ("look_up", "convert", "search_files", "book", "measure")


class Texts:
    """Passages of any script, drawn by one random generator."""

    def __init__(self, draw: random.Random) -> None:
        from pydoc_data.topics import topics

        self._draw = draw
        self._prose = [part for text in topics.values() for part in text.split("\n\n") if len(part) > 80]
        library = Path(sysconfig.get_path("stdlib"))
        self._code = [
            block
            for path in sorted(library.glob("*.py"))[:120]
            for block in path.read_text("utf-8", "replace").split("\n\n\n")
            if 100 < len(block) < 2000
        ]
        self._words = {script: [self._word(*bounds) for _ in range(3000)] for script, bounds in SCRIPTS.items()}

    def _word(self, first: int, last: int, least: int, most: int, _: str) -> str:
        return "".join(chr(self._draw.randint(first, last)) for _ in range(self._draw.randint(least, most)))

    def passage(self, kind: str) -> str:
        """A text of some 50 to 1,500 characters."""
        if kind == "prose":
            return "\n\n".join(self._draw.sample(self._prose, self._draw.randint(1, 3)))
        if kind == "code":
            return f"```python\n{self._draw.choice(self._code)}\n```"
        words = self._words[kind]
        count = self._draw.randint(10, 80)
        frequent = [words[int(self._draw.paretovariate(0.8)) % len(words)] for _ in range(count)]
        return SCRIPTS[kind][4].join(frequent) + "."


def tool(draw: random.Random, name: str, texts: Texts) -> dict[str, Any]:
    """A tool's definition."""
    properties = {key: {"type": "string", "description": key} for key in ("query", "unit", "limit")}
    parameters = {"type": "object", "properties": properties, "required": ["query"]}
    described = texts.passage("prose")[: draw.randint(20, 200)]
    return {"type": "function", "function": {"name": name, "description": described, "parameters": parameters}}


def record(draw: random.Random, texts: Texts) -> dict[str, Any]:
    """One conversation in the form that providers of chat models take."""
    kind = draw.choices(["prose", "code", *SCRIPTS], [40, 20, *([40 / len(SCRIPTS)] * len(SCRIPTS))])[0]
    messages: list[dict[str, Any]] = []
    if draw.random() < 0.33:
        messages.append({"role": "system", "content": texts.passage("prose")[:400]})
    names = draw.sample(CALLS, draw.randint(1, 4)) if draw.random() < 0.2 else []
    for turn in range(draw.randint(1, 12)):
        messages.append({"role": "user", "content": texts.passage(draw.choice([kind, "prose"]))[:800]})
        if names and draw.random() < 0.5:
            messages += called(draw, draw.choice(names), f"call_{turn}", texts)
        messages.append({"role": "assistant", "content": texts.passage(kind)})
    row: dict[str, Any] = {"messages": messages}
    if names:
        row["tools"] = json.dumps([tool(draw, name, texts) for name in names])
    return row


def called(draw: random.Random, name: str, call_id: str, texts: Texts) -> Iterator[dict[str, Any]]:
    """A call and its result."""
    arguments = json.dumps({"query": texts.passage("prose")[:60], "limit": str(draw.randint(1, 99))})
    function = {"name": name, "arguments": arguments}
    yield {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }
    yield {"role": "tool", "tool_call_id": call_id, "content": texts.passage("prose")[:600]}


def write(path: Path, rows: int, seed: int = SEED) -> None:
    """So many rows as JSON lines."""
    draw = random.Random(seed)
    texts = Texts(draw)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(rows):
            file.write(json.dumps(record(draw, texts), ensure_ascii=False) + "\n")
