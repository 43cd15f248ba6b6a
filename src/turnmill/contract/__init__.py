"""The chat contract: rules as small functions, walked in one pass."""

from __future__ import annotations

import msgspec

from turnmill.contract import texts, turns
from turnmill.contract.definitions import row_rules
from turnmill.contract.state import Fault, Rule, State
from turnmill.conversation import NOT_RECORDED, Checked, Conversation, Message, Role
from turnmill.errors import Rejected, quote
from turnmill.options import Check

RULES: dict[Role, tuple[Rule, ...]] = {
    "system": turns.SYSTEM + texts.SYSTEM,
    "developer": turns.SYSTEM + texts.SYSTEM,
    "user": turns.USER + texts.USER,
    "assistant": turns.ASSISTANT + texts.ASSISTANT,
    "tool": turns.TOOL + texts.TOOL,
}
"""By speaker, in the order in which they are asked."""


def check(conversation: Conversation, options: Check | None = None) -> Checked:
    """The conversation, once it has met every rule of the contract.

    Only `partial_batch: trim` changes it, by whole messages at its end.

    Raises:
        Rejected: the first rule that was broken; `at` is the index in the recorded list.
    """
    options = options or Check()
    if not conversation.messages:
        raise Rejected("no-messages", "the conversation has no messages")
    state = State(options, row_rules(conversation))
    if conversation.is_raw_text:
        return _checked_text(state, conversation)
    for message in conversation.messages:
        _apply_rules(state, message)
    if state.pending and state.answered and options.partial_batch == "trim":
        return Checked(_trimmed(conversation))
    if not state.met_assistant:
        raise Rejected("no-assistant-turn", "the conversation has no assistant message: nothing to learn from")
    fault = _ending_fault(state, conversation.messages[-1])
    if fault is not None:
        raise _rejected(fault, conversation.messages[-1])
    return Checked(conversation)


def _checked_text(state: State, conversation: Conversation) -> Checked:
    """A raw text: the rules of what is said hold, those of who may speak when have nothing to ask."""
    message = conversation.messages[0]
    for rule in turns.RAW_TEXT + texts.RAW_TEXT:
        fault = rule(state, message)
        if fault is not None:
            raise _rejected(fault, message)
    return Checked(conversation)


def readmit(conversation: Conversation) -> Checked:
    """The conversation of a row that `check` or a later step published, read back: nothing is asked again."""
    return Checked(conversation)


def _apply_rules(state: State, message: Message) -> None:
    rules = RULES.get(message.role)
    if rules is None:
        raise _rejected(("unknown-speaker", f"{quote(message.role)} speaks"), message)
    for rule in rules:
        fault = rule(state, message)
        if fault is not None:
            raise _rejected(fault, message)
    state.advance(message)


def _rejected(fault: Fault, message: Message) -> Rejected:
    return Rejected(*fault, at=None if message.recorded == NOT_RECORDED else message.recorded)


def _ending_fault(state: State, last: Message) -> Fault | None:
    if state.pending and state.answered:
        return "partial-batch", f"the conversation ends while {len(state.pending)} call(s) of a batch wait for results"
    if last.role != "assistant":
        return "last-turn-not-assistant", f"the conversation ends with {last.role}; expected the assistant"
    if state.pending and state.options.unanswered_calls == "reject":
        return "calls-unanswered", f"the conversation ends while {len(state.pending)} call(s) wait for results"
    if not last.is_call and last.channel != "final":
        return "turn-without-answer", f"the conversation ends with {last.channel}; expected a final answer or a call"
    return None


def _trimmed(conversation: Conversation) -> Conversation:
    """The conversation up to its last final answer: what stands before a batch must itself be a whole ending."""
    finals = [number for number, message in enumerate(conversation.messages) if message.channel == "final"]
    if not finals:
        fault = "partial-batch", "a batch is half answered, and no final answer stands before it to end with"
        raise _rejected(fault, conversation.messages[-1])
    return msgspec.structs.replace(conversation, messages=conversation.messages[: finals[-1] + 1])
