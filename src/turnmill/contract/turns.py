"""Rules of who may speak when: systems first, then a user, answers whole, calls answered in order."""

from __future__ import annotations

from turnmill.contract.state import TOOL_NAME, Fault, Rule, State
from turnmill.conversation import FUNCTIONS, Message
from turnmill.errors import quote


def systems_come_first(state: State, message: Message) -> Fault | None:
    """Any number of system and developer messages, before every other message."""
    if not state.met_turn:
        return None
    return "system-not-first", f"a {message.role} message follows another speaker; it must come before the first user"


def user_opens(state: State, message: Message) -> Fault | None:
    """The first message after the systems is a user's."""
    if state.met_turn or message.role == "user":
        return None
    return "first-turn-not-user", f"the conversation opens with {message.role}; expected a user's message first"


def system_and_user_have_no_channel(state: State, message: Message) -> Fault | None:
    """Only assistants and tools speak on channels, to a recipient."""
    if message.channel is not None:
        return "channel-invalid", f"a {message.role} message is on the channel {message.channel!r}; expected none"
    if message.recipient is not None:
        return "recipient-invalid", f"a {message.role} message is sent to {quote(message.recipient)}; expected nobody"
    return None


def calls_are_answered_before_user(state: State, message: Message) -> Fault | None:
    """No user speaks while calls wait for their results."""
    if not state.pending:
        return None
    return "calls-unanswered", f"a user speaks while {len(state.pending)} call(s) wait for results"


def user_follows_whole_turn(state: State, message: Message) -> Fault | None:
    """A user follows a final answer or a tool's result, never a user or a half-said turn."""
    previous = state.previous
    if previous is None or previous.role not in ("user", "assistant"):
        return None
    if previous.role == "user":
        return "user-after-user", "two user messages follow one another; expected an answer between"
    if previous.channel != "final":
        return "turn-without-answer", f"a user follows {previous.channel}; expected a final answer before"
    return None


def assistant_has_a_channel(state: State, message: Message) -> Fault | None:
    """Assistants speak on analysis, commentary or final."""
    if message.channel in ("analysis", "commentary", "final"):
        return None
    return "channel-invalid", f"an assistant message is on the channel {message.channel!r}"


def nothing_follows_final(state: State, message: Message) -> Fault | None:
    """A final answer ends its turn."""
    previous = state.previous
    if previous is None or previous.role != "assistant" or previous.channel != "final":
        return None
    return "assistant-after-final", "an assistant message follows a final answer; expected a user's message"


def text_waits_for_replies(state: State, message: Message) -> Fault | None:
    """Between calls and their results only calls stand."""
    if message.is_call or not state.pending:
        return None
    return "text-before-replies", f"{message.channel} text comes while {len(state.pending)} call(s) wait for results"


def call_waits_for_replies(state: State, message: Message) -> Fault | None:
    """No call comes between the results of a batch."""
    if not (message.is_call and state.pending and state.answered):
        return None
    return "call-between-replies", f"a call comes while {len(state.pending)} call(s) of the batch wait for results"


def call_is_addressed(state: State, message: Message) -> Fault | None:
    """A call is commentary to `functions.<name>`."""
    if message.recipient is None:
        return None
    if message.channel != "commentary":
        return "channel-invalid", f"a call is on the channel {message.channel!r}; expected commentary"
    name = message.recipient.removeprefix(FUNCTIONS)
    if not message.recipient.startswith(FUNCTIONS) or not TOOL_NAME.fullmatch(name):
        return "tool-name-invalid", f"{quote(name)} is called; expected letters, digits and _ . : - in a tool's name"
    return None


def reply_is_addressed(state: State, message: Message) -> Fault | None:
    """A tool's result is commentary to the assistant."""
    if message.channel != "commentary":
        return "channel-invalid", f"a tool's result is on the channel {message.channel!r}; expected commentary"
    if message.recipient != "assistant":
        return "recipient-invalid", f"a tool's result is sent to {quote(message.recipient)}; expected the assistant"
    return None


def reply_answers_oldest_call(state: State, message: Message) -> Fault | None:
    """Results come in the order of the calls, each from the tool that was called."""
    if not state.pending:
        return "tool-reply-unmatched", f"{quote(message.name)} answers, but no call waits for a result"
    if message.name != state.pending[0]:
        return "tool-reply-unmatched", f"{quote(message.name)} answers; expected {quote(state.pending[0])} next"
    return None


def raw_text_has_no_listener(state: State, message: Message) -> Fault | None:
    """A raw text is the model's own, said to nobody."""
    if message.role == "assistant" and message.recipient is None:
        return None
    return "channel-invalid", f"a {message.role} message is on the channel {message.channel!r}, that of raw texts"


SYSTEM: tuple[Rule, ...] = (systems_come_first, system_and_user_have_no_channel)
USER: tuple[Rule, ...] = (system_and_user_have_no_channel, calls_are_answered_before_user, user_follows_whole_turn)
ASSISTANT: tuple[Rule, ...] = (
    user_opens,
    assistant_has_a_channel,
    nothing_follows_final,
    call_is_addressed,
    text_waits_for_replies,
    call_waits_for_replies,
)
TOOL: tuple[Rule, ...] = (user_opens, reply_is_addressed, reply_answers_oldest_call)
RAW_TEXT: tuple[Rule, ...] = (raw_text_has_no_listener,)
