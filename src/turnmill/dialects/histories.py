"""Sessions in order: what the model saw so far, and the threads that end where that changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from turnmill.conversation import Json
from turnmill.dialects.sessions import MOST_REPEATED_BYTES, Event, Thread, thread, too_branched, torn


class History:
    """The events that the model saw, in order, followed as a session goes on.

    Args:
        is_answer: whether the model says something in an event.
        columns: `id` and the linking columns of a thread, by its events and its branch.
        counts: takes events that say nothing.
    """

    def __init__(
        self,
        is_answer: Callable[[Event], bool],
        columns: Callable[[Sequence[Event], str | None], dict[str, Json]],
        counts: Counter[str],
    ) -> None:
        self.threads: list[Thread] = []
        self.items: list[Event] = []
        self.counts = counts
        self._is_answer, self._columns = is_answer, columns
        self._is_told: list[bool] = []
        """Of each item whether a thread that ended has it."""
        self._repeated = 0

    def add(self, event: Event, *, is_told: bool = False) -> None:
        """The model sees an event; `is_told`: again."""
        self.items.append(event)
        self._is_told.append(is_told)

    def replace(self, events: Sequence[Event]) -> None:
        """The model sees these from now on, in place of what it saw; none of them is new."""
        self.items = list(events)
        self._is_told = [True] * len(self.items)

    def end(self, branch: str | None = None) -> None:
        """End a thread, where the model said something that no thread has."""
        told = self._is_told
        if any(self._is_answer(item) and not known for item, known in zip(self.items, told, strict=True)):
            columns = self._columns(self.items, branch)
            self._repeated += sum(item.bytes for item, known in zip(self.items, told, strict=True) if known)
            if self._repeated > MOST_REPEATED_BYTES:
                own = [item for item, known in zip(self.items, told, strict=True) if not known]
                self.threads.append(thread(own, fault=too_branched(), **columns))
            else:
                self.threads.append(thread(self.items, told, **columns))
        self._is_told = [True] * len(self.items)

    def give_up(self, events: Sequence[Event], why: str) -> None:
        """Let go of what stands behind a place where it is lost what the model saw."""
        if events:
            columns = self._columns(events, None)
            self.threads.append(thread(events, fault=torn(why), **columns | {"ended": None}))
