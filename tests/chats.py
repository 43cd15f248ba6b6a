"""Small chats for tests."""

from __future__ import annotations


def chat(*texts: str, **columns) -> dict:
    """A record of user and assistant in turn."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)], **columns}


def numbered(count: int, start: int = 0) -> list[list[str]]:
    """So many different chats of one turn."""
    return [[f"What is {n} plus {n}?", f"It is {2 * n}."] for n in range(start, start + count)]
