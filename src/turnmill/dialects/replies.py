"""Which result answers which call: by id, else by name or place where only one reading is possible."""

from __future__ import annotations

from collections.abc import Sequence

from turnmill.conversation import FUNCTIONS
from turnmill.dialects.recorded import Call, Utterance
from turnmill.errors import Rejected, quote


def match_replies(calls: Sequence[Call], replies: Sequence[Utterance]) -> list[tuple[Call, Utterance]]:
    """Each answered call of a batch with its result, in call order.

    Raises:
        Rejected: `tool-reply-unmatched`, `tool-reply-ambiguous` or `tool-reply-name-differs`.
    """
    answers: dict[int, Utterance] = {}
    for reply in replies:
        if reply.reply_to is not None:
            answers[_by_id(calls, reply, answers)] = reply
    unnamed = [reply for reply in replies if reply.reply_to is None]
    for name in dict.fromkeys(_tool(reply) for reply in unnamed):
        if name is not None:
            _by_place(calls, [reply for reply in unnamed if _tool(reply) == name], name, answers)
    _by_place(calls, [reply for reply in unnamed if _tool(reply) is None], None, answers)
    return [(calls[number], answers[number]) for number in sorted(answers)]


def _tool(reply: Utterance) -> str | None:
    return reply.name.removeprefix(FUNCTIONS) if reply.name else None


def _by_id(calls: Sequence[Call], reply: Utterance, answers: dict[int, Utterance]) -> int:
    number = next((number for number, call in enumerate(calls) if call.id == reply.reply_to), None)
    if number is None or number in answers:
        fault = "no call of the turn before has that id" if number is None else "that call is answered already"
        raise Rejected("tool-reply-unmatched", f"a result answers {quote(reply.reply_to)}; {fault}", at=reply.index)
    name = _tool(reply)
    if name is not None and name != calls[number].name:
        message = f"the result is by {quote(name)}; the call {quote(reply.reply_to)} is to {quote(calls[number].name)}"
        raise Rejected("tool-reply-name-differs", message, at=reply.index)
    return number


def _by_place(
    calls: Sequence[Call], replies: Sequence[Utterance], name: str | None, answers: dict[int, Utterance]
) -> None:
    """Give results without id the calls that are left, in order, where there are as many of both."""
    if not replies:
        return
    left = [number for number, call in enumerate(calls) if number not in answers and name in (None, call.name)]
    who = "a result without id" if name is None else f"a result of {quote(name)} without id"
    if len(replies) > len(left):
        message = f"{who} has no call to answer"
        raise Rejected("tool-reply-unmatched", message, at=replies[len(left)].index)
    if len(replies) < len(left) and len(left) > 1:
        message = f"{who} may answer any of {len(left)} calls"
        raise Rejected("tool-reply-ambiguous", message, at=replies[0].index)
    answers.update(zip(left, replies, strict=False))
