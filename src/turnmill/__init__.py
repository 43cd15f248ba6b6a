"""turnmill: chat data in any dialect, made into training data a language model can be trusted to learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from turnmill.api import (
        all_sources,
        check,
        evaluate,
        explain,
        open_prepared,
        open_rows,
        prepare,
        read,
        read_artifact,
        render,
        run_steps,
        source_steps,
        train,
    )
    from turnmill.conversation import Conversation, Message
    from turnmill.errors import HealthError, Rejected, StaleError, TurnmillError, UsageError
    from turnmill.verbs.source_steps import Chats, Texts

_HOMES = {
    "Chats": "turnmill.verbs.source_steps",
    "Conversation": "turnmill.conversation",
    "HealthError": "turnmill.errors",
    "Message": "turnmill.conversation",
    "Rejected": "turnmill.errors",
    "StaleError": "turnmill.errors",
    "Texts": "turnmill.verbs.source_steps",
    "TurnmillError": "turnmill.errors",
    "UsageError": "turnmill.errors",
    "all_sources": "turnmill.api",
    "check": "turnmill.api",
    "evaluate": "turnmill.api",
    "explain": "turnmill.api",
    "open_prepared": "turnmill.api",
    "open_rows": "turnmill.api",
    "prepare": "turnmill.api",
    "read": "turnmill.api",
    "read_artifact": "turnmill.api",
    "render": "turnmill.api",
    "run_steps": "turnmill.api",
    "source_steps": "turnmill.api",
    "train": "turnmill.api",
}
"""Public name → its module, imported when the name is first asked for."""

__all__ = [
    "Chats", "Conversation", "HealthError", "Message", "Rejected", "StaleError", "Texts", "TurnmillError",
    "UsageError", "__version__", "all_sources", "check", "evaluate", "explain", "open_prepared", "open_rows", "prepare",
    "read", "read_artifact", "render", "run_steps", "source_steps", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("turnmill")
    if name not in _HOMES:
        raise AttributeError(f"module 'turnmill' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
