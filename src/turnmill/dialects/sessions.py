"""Sessions: files whose lines are events of an agent's run, and how events become rows.

Most dialects read a record a row. A *session dialect* also gathers: it is handed the events of a whole file and gives
its *threads*, each of them one conversation as the model saw it (a run, a branch of it, a sub-agent's run). A thread is
an ordinary record (its events as they were recorded, where they stood, and columns that link it), which the dialect of
the same name then reads as any other: so rows, quarantine and replay know nothing of sessions.

A line that cannot be read is a row of its own. What depends on it cannot be trusted: events that it may have come
before, or that name it as their parent, leave as `session-torn`; what stood before it is a conversation that ends
early.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnmill.conversation import Json
from turnmill.dialects import dialects
from turnmill.errors import Rejected, quote

TRACE_COLUMNS = ("session", "agent", "parent", "parent_call", "branch", "ended")
"""Columns that link and describe threads, kept as annotations without being asked for: the session's id; the
sub-agent, null for the main one; the session that started this one or that it was forked from; the id of the call that
started it; `abandoned` where the session went another way; how the run ended, where that is recorded."""

EVENTS = ("events", "lines", "shared", "trace")
"""Columns of a thread that its dialect takes: the events; each one's line; the indexes of those that an earlier thread
has too, which train there; the dialect's name, by which a thread that left is known again."""

MOST_REPEATED_BYTES = 256 * 1024 * 1024
"""Bytes of lines that all threads of one session repeat of earlier ones; further threads leave."""

SAMPLE_EVENTS = 50
"""Events of a file by which it is told to be a session."""


class Event(NamedTuple):
    """One event of a session."""

    line: int
    """Its physical line, or its number among the elements of an array."""
    value: dict[str, Json] | None
    """None where the line cannot be read."""
    bytes: int = 0
    """Of its line."""


class Thread(NamedTuple):
    """One conversation of a session, not yet read."""

    line: int
    """Of its first own event."""
    record: dict[str, Json]
    """`TRACE_COLUMNS`, `EVENTS`, `id`, and what the dialect adds."""
    fault: Rejected | None = None
    """Why it is none."""


@dataclass(frozen=True, slots=True)
class Session:
    """How a session dialect gathers; its functions count what they drop (`read/<what>`)."""

    tell: Callable[[Sequence[dict[str, Json]]], str | None]
    """Why these first events are of this dialect; None where they are not."""
    take: Callable[[dict[str, Json], Counter[str]], dict[str, Json] | None]
    """The part of an event that `threads` needs; None where it needs nothing of it. Called as events come in, so that
    memory holds no more of a session than its conversations."""
    threads: Callable[[Sequence[Event], Counter[str]], list[Thread]]
    """The threads of all events of a file, in file order."""
    reads_rows: bool = False
    """Whether the dialect reads files of a run a row, too."""


sessions: dict[str, Session] = {}
"""By name of the dialect, filled as the dialects are found."""


traced: set[str] = set()
"""Dialects of a run a row, whose rows have `TRACE_COLUMNS`, too; filled as the dialects are found."""


def has_trace_columns(name: str) -> bool:
    """Whether rows of a dialect are linked by `TRACE_COLUMNS`."""
    return session_of(name) is not None or name in traced


def session_of(name: str) -> Session | None:
    """How a dialect gathers; None for one that reads a record a row."""
    dialects.names()  # finds the files, and with them their sessions
    return sessions.get(name)


def thread_dialect(record: dict[str, Json]) -> str | None:
    """The dialect of a record that is a thread already, as quarantine keeps it; None for any other record."""
    name = record.get("trace")
    if not isinstance(name, str) or not isinstance(record.get("events"), list):
        return None
    return name if session_of(name) is not None else None


def threads_of(session: Session, events: Sequence[Event], counts: Counter[str]) -> list[Thread]:
    """The threads of a session; what its dialect cannot take apart is one, with its fault."""
    try:
        return session.threads(events, counts)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"the session cannot be taken apart: {type(error).__name__}: {quote(str(error))}"
        readable = [event for event in events if event.value is not None]
        return [thread(readable, fault=Rejected("conversion-failed", what))]


def is_session(name: str, sample: Sequence[dict[str, Json]]) -> bool:
    """Whether a file that begins with these records, and that is said to be of a dialect, is one session of it."""
    session = session_of(name)
    if session is None or any(thread_dialect(record) for record in sample):
        return False
    return not session.reads_rows or session.tell(sample) is not None


class Told(NamedTuple):
    """A session dialect, and what it was told by."""

    name: str
    why: str


def tell_session(sample: Sequence[dict[str, Json]]) -> Told | None:
    """The session dialect of a file that begins with these records; None for a file of a record a row."""
    dialects.names()
    if any(thread_dialect(record) for record in sample):
        return None
    for name in sorted(sessions):
        why = sessions[name].tell(sample)
        if why is not None:
            return Told(name, why)
    return None


def thread(
    events: Sequence[Event], is_shared: Sequence[bool] = (), fault: Rejected | None = None, **columns: Json
) -> Thread:
    """A thread of these events.

    Args:
        events: those of the conversation, in the order in which the model saw them.
        is_shared: of each event whether an earlier thread has it too; nothing = none.
        fault: why it is no conversation.
        columns: `id` and `TRACE_COLUMNS`; those that say nothing are left out.
    """
    shared = [index for index, shares in enumerate(is_shared) if shares]
    own = next((event for event, shares in zip(events, is_shared, strict=False) if not shares), events[0])
    record = {name: value for name, value in columns.items() if value is not None}
    record["events"] = [event.value for event in events]
    record["lines"] = [event.line for event in events]
    if shared:
        record["shared"] = shared
    return Thread(own.line, record, fault)


def torn(why: str) -> Rejected:
    """The fault of events whose context is not known."""
    return Rejected("session-torn", f"{why}: what the model saw before these events is not known")


def too_branched() -> Rejected:
    """The fault of a thread that would repeat too much of earlier ones."""
    what = f"the branches of the session repeat over {MOST_REPEATED_BYTES:,} bytes of earlier ones"
    return Rejected("session-too-branched", what)


def in_file_order(threads: Iterable[Thread]) -> list[Thread]:
    """Threads by their first own line."""
    return sorted(threads, key=lambda one: one.line)
