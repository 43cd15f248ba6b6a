"""What the contract remembers while it walks a conversation."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from turnmill.conversation import Message
from turnmill.options import Check

TOOL_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
"""A tool's name, whole."""

Fault = tuple[str, str]
"""A code and its message."""


@dataclass(slots=True)
class State:
    """What stood before the message at hand."""

    options: Check
    defined_tools: frozenset[str] = frozenset()
    previous: Message | None = None
    """The message before, whoever spoke it."""
    met_turn: bool = False
    """Whether a message that is neither system nor developer has come."""
    met_assistant: bool = False
    pending: deque[str] = field(default_factory=deque)
    """Recipients of the calls of this batch that nobody answered yet, oldest first."""
    answered: int = 0
    """Replies to the batch so far."""

    def advance(self, message: Message) -> None:
        """Take in a message that broke no rule."""
        role = message.role
        if role == "assistant":
            self.met_assistant = True
            if message.recipient is not None:
                self.pending.append(message.recipient)
                self.answered = 0
        elif role == "tool":
            self.pending.popleft()
            self.answered += 1
        self.met_turn = self.met_turn or role not in ("system", "developer")
        self.previous = message


Rule = Callable[[State, Message], Fault | None]
"""None where the message keeps the rule."""
