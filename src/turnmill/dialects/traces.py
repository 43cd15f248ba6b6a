"""What an agent's run says, as a conversation: shared by the dialects that read events instead of messages.

A run is recorded as it happens, not as a chat is written: its user side comes in pieces (results, what the harness
adds, what the user types), and it stops anywhere. So three things are always done, and counted: results stand before
the other pieces of their side, pieces of the user in a row are one turn, joined by a blank line, and what stands behind
the last thing that the agent said is left out, for nothing there is learned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import msgspec

from turnmill.conversation import Conversation, Json, Message
from turnmill.dialects import Reading
from turnmill.dialects.assemble import assemble
from turnmill.dialects.fields import Fields, require_known
from turnmill.dialects.recorded import Utterance
from turnmill.dialects.row import read_row
from turnmill.dialects.sessions import EVENTS, TRACE_COLUMNS
from turnmill.errors import Rejected, quote

BLANK_LINE = "\n\n"


def open_trace(record: dict[str, Json], reading: Reading) -> tuple[Fields, list[dict[str, Json]]]:
    """The columns of a thread that nobody took yet, and its events.

    Raises:
        Rejected: `no-messages`, `messages-not-list`, or an event that is no object.
        UnknownName: the source maps columns or message keys; a trace has none to map.
    """
    require_known("column", reading.mapping.columns, ())
    require_known("tag", reading.mapping.tags, ())
    fields = Fields(record, {})
    events = fields.take("events")
    if events is None:
        raise Rejected("no-messages", "the row has no events")
    if not isinstance(events, list):
        raise Rejected("messages-not-list", f"the events are {quote(events)}; expected a list")
    for index, event in enumerate(events):
        if not isinstance(event, dict):
            raise Rejected("message-not-object", f"an event is {quote(event)}; expected an object", at=index)
    return fields, events


def read_trace(
    fields: Fields, utterances: Sequence[Utterance], reading: Reading, *, system: str | None = None
) -> Conversation:
    """The conversation of what a run's events say.

    Args:
        fields: columns of the thread that nobody took yet.
        utterances: in the order of the events; their indexes are those of the events.
        reading: where things are counted.
        system: the system text where it is recorded beside the events.

    Raises:
        Rejected: what the utterances cannot be read as.
    """
    shared = fields.take_as_is("shared")
    for taken in EVENTS:
        fields.take_as_is(taken)
    linked = {name: value for name in TRACE_COLUMNS if (value := fields.take_as_is(name)) is not None}
    said = without_tail(utterances, reading.counts)
    if isinstance(shared, list):
        _take_as_context(said, {index for index in shared if isinstance(index, int)}, reading.counts)
    turns = list(_in_turns(said, reading.counts))
    conversation = read_row(fields, turns, reading, system=system, assembly=_assembled)
    return msgspec.structs.replace(conversation, meta={**conversation.meta, **linked})


def _assembled(utterances: Sequence[Utterance], counts: Counter[str]) -> tuple[Message, ...]:
    """The messages; a text that the assistant itself goes on after is commentary."""
    messages = list(assemble(utterances, counts))
    for number, (message, following) in enumerate(pairwise(messages)):
        if message.channel == "final" and following.role == "assistant":
            messages[number] = msgspec.structs.replace(message, channel="commentary")
    return tuple(messages)


def without_tail(utterances: Sequence[Utterance], counts: Counter[str]) -> list[Utterance]:
    """The utterances up to the last of the assistant; all of them where it never speaks."""
    end = len(utterances)
    while end and utterances[end - 1].role != "assistant":
        end -= 1
    if not end:
        return list(utterances)
    if end < len(utterances):
        counts["read/trace-tail-dropped"] += len(utterances) - end
    return list(utterances[:end])


def _take_as_context(utterances: Sequence[Utterance], shared: set[int], counts: Counter[str]) -> None:
    """Give weight 0 to what an earlier thread of the session says too: it trains there, once."""
    for utterance in utterances:
        if utterance.index in shared and utterance.role in ("assistant", "tool"):
            utterance.weight = 0.0
            counts["read/trained-in-another-branch"] += utterance.role == "assistant"


def _in_turns(utterances: Sequence[Utterance], counts: Counter[str]) -> Iterator[Utterance]:
    """The utterances with each user side in order: results, then what the user says as one text."""
    for is_assistant, run in groupby(utterances, key=lambda utterance: utterance.role == "assistant"):
        if is_assistant:
            yield from run
            continue
        side = list(run)
        results = [utterance for utterance in side if utterance.role == "tool"]
        others = [utterance for utterance in side if utterance.role != "tool"]
        if results and side[: len(results)] != results:
            counts["read/results-moved-up"] += 1
        yield from results
        yield from _joined(others, counts)


def _joined(utterances: Sequence[Utterance], counts: Counter[str]) -> Iterator[Utterance]:
    """Neighbours of the role user as one; blank ones say nothing."""
    for role, run in groupby(utterances, key=lambda utterance: utterance.role):
        side = list(run)
        pieces = [utterance for utterance in side if role != "user" or utterance.text.strip()]
        if len(pieces) < len(side):
            counts["read/blank-text-dropped"] += len(side) - len(pieces)
        if role != "user" or len(pieces) < 2:
            yield from pieces
            continue
        first, *others = pieces
        first.text += "".join(BLANK_LINE + other.text for other in others)
        counts["read/user-events-joined"] += len(others)
        yield first
