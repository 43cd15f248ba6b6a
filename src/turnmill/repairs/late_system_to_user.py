"""Instructions that stand in the middle of a conversation, as harnesses give them when something changes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnmill.conversation import Conversation, Message
from turnmill.repairs import Mending, conversation_repair
from turnmill.repairs.merge_turns import BLANK_LINE


@conversation_repair("late-system-to-user")
def late_system_to_user(conversation: Conversation, mending: Mending) -> Conversation:
    """Let the user say systems' and developers' texts behind the first turn, joined to what the user says beside them.

    By a blank line, in their order. What is joined has the recorded number of the first.
    """
    first = _first_turn(conversation.messages)
    late = {number for number, message in enumerate(conversation.messages) if number > first and _instructs(message)}
    messages: list[Message] = []
    was_late = False
    for number, message in enumerate(conversation.messages):
        is_late = number in late
        said = msgspec.structs.replace(message, role="user", name=None) if is_late else message
        if messages and messages[-1].role == "user" == said.role and (is_late or was_late):
            before = messages[-1]
            messages[-1] = msgspec.structs.replace(before, text=before.text + BLANK_LINE + said.text)
        else:
            messages.append(said)
        was_late = is_late
    return msgspec.structs.replace(conversation, messages=tuple(messages)) if late else conversation


def _instructs(message: Message) -> bool:
    return message.role in ("system", "developer")


def _first_turn(messages: Sequence[Message]) -> int:
    return next((number for number, message in enumerate(messages) if not _instructs(message)), len(messages))
