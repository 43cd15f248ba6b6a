"""Recorded utterances → messages: channels, calls joined with their results in call order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from turnmill.conversation import FUNCTIONS, Channel, Message
from turnmill.dialects.recorded import Call, Utterance
from turnmill.dialects.replies import match_replies
from turnmill.errors import Rejected, quote


def assemble(utterances: Sequence[Utterance], counts: Counter[str]) -> tuple[Message, ...]:
    """The messages of a conversation.

    Text in a run of assistant utterances that calls is commentary, else final; reasoning is analysis.

    Raises:
        Rejected: a result that belongs to no call.
    """
    if not any(said.calls or said.reasoning or said.role == "tool" for said in utterances):
        return tuple(_only_said(said) for said in utterances)
    runs = [(role, list(run)) for role, run in groupby(utterances, key=lambda utterance: utterance.role)]
    messages: list[Message] = []
    for number, (role, run) in enumerate(runs):
        if role == "assistant":
            follows = runs[number + 1] if number + 1 < len(runs) else None
            replies = follows[1] if follows is not None and follows[0] == "tool" else []
            messages.extend(_assistant_run(run, replies, counts))
        elif role != "tool":
            messages.extend(Message(role, said.text, name=said.name, recorded=said.index) for said in run)
        elif number == 0 or runs[number - 1][0] != "assistant":
            raise _unmatched(run[0])
    return tuple(messages)


def _only_said(utterance: Utterance) -> Message:
    """The message of an utterance where nobody reasons, calls or answers a call."""
    if utterance.role == "assistant":
        return _spoken(utterance, utterance.text, "final")
    return Message(utterance.role, utterance.text, name=utterance.name, recorded=utterance.index)


def _unmatched(reply: Utterance) -> Rejected:
    who = quote(reply.name) if reply.name else "a tool"
    return Rejected("tool-reply-unmatched", f"{who} gives a result, but no call stands before it", at=reply.index)


def _assistant_run(run: list[Utterance], replies: list[Utterance], counts: Counter[str]) -> Iterator[Message]:
    """One turn of the assistant, and the results its calls got."""
    calling = [number for number, utterance in enumerate(run) if utterance.calls]
    if not calling:
        if replies:
            raise _unmatched(replies[0])
        for utterance in run:
            yield from _said(utterance, "final", counts)
    elif replies or calling[-1] == len(run) - 1:
        yield from _whole_batch(run, replies, counts)
    else:  # text behind calls that nobody answered stays where it is, for the contract to refuse
        for number, utterance in enumerate(run):
            yield from _said(utterance, "commentary" if number <= calling[-1] else "final", counts)
            yield from _calls(utterance, counts)


def _whole_batch(run: list[Utterance], replies: list[Utterance], counts: Counter[str]) -> Iterator[Message]:
    """Texts, then all calls of the run as one batch, then the results in call order."""
    for number, utterance in enumerate(run):
        said = list(_said(utterance, "commentary", counts))
        if said and any(before.calls for before in run[:number]):
            counts["read/text-moved-before-calls"] += 1
        yield from said
    for utterance in run:
        yield from _calls(utterance, counts)
    answers = match_replies(_batch(run), replies)
    if [reply.index for _, reply in answers] != [reply.index for reply in replies]:
        counts["read/replies-reordered"] += 1
    for call, reply in answers:
        yield _result(call, reply)


def _batch(run: list[Utterance]) -> list[Call]:
    calls = [call for utterance in run for call in utterance.calls]
    ids = [call.id for call in calls if call.id is not None]
    if len(set(ids)) < len(ids):
        raise Rejected("call-id-repeated", f"two calls of one turn share an id: {quote(ids)}", at=run[-1].index)
    return calls


def _said(utterance: Utterance, channel: Channel, counts: Counter[str]) -> Iterator[Message]:
    """Reasoning and text of an utterance; a text that says nothing is left out where something else is said."""
    if utterance.reasoning:
        yield _spoken(utterance, utterance.reasoning, "analysis")
    silent = not utterance.text or (bool(utterance.calls) and utterance.text.isspace())
    if not silent or not (utterance.reasoning or utterance.calls):
        yield _spoken(utterance, utterance.text, channel)
    elif utterance.text:
        counts["read/blank-text-dropped"] += 1


def _spoken(utterance: Utterance, text: str, channel: Channel, recipient: str | None = None) -> Message:
    return Message(
        "assistant",
        text,
        channel,
        name=utterance.name,
        recipient=recipient,
        weight=utterance.weight,
        recorded=utterance.index,
    )


def _calls(utterance: Utterance, counts: Counter[str]) -> Iterator[Message]:
    for call in utterance.calls:
        if call.id is None:
            counts["read/ids-synthesised"] += 1
        yield _spoken(utterance, call.arguments, "commentary", FUNCTIONS + call.name)


def _result(call: Call, reply: Utterance) -> Message:
    return Message(
        "tool",
        reply.text,
        "commentary",
        name=FUNCTIONS + call.name,
        recipient="assistant",
        weight=reply.weight,
        recorded=reply.index,
    )
