"""Several calls at once, for templates that can only say one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnmill.conversation import Conversation, Message
from turnmill.repairs import Mending, conversation_repair


@conversation_repair("split-parallel-calls")
def split_parallel_calls(conversation: Conversation, mending: Mending) -> Conversation:
    """Put the result of each call right behind it where several calls were made at once: call, result, call, result.

    Only where every call of the batch has its result: a waiting call cannot stand before another.
    """
    messages: list[Message] = []
    calls: list[Message] = []
    replies: list[Message] = []
    for message in conversation.messages:
        if message.is_call and not replies:
            calls.append(message)
        elif message.role == "tool" and calls:
            replies.append(message)
        else:
            messages += _in_turn(calls, replies)
            calls, replies = ([message], []) if message.is_call else ([], [])
            messages += [] if message.is_call else [message]
    messages += _in_turn(calls, replies)
    return msgspec.structs.replace(conversation, messages=tuple(messages))


def _in_turn(calls: Sequence[Message], replies: Sequence[Message]) -> list[Message]:
    answered = [call.recipient for call in calls] == [reply.name for reply in replies]
    if not answered:
        return [*calls, *replies]
    return [message for pair in zip(calls, replies, strict=True) for message in pair]
