"""A second witness of where turns begin and end: what the template writes with a turn and does not write without it.

It knows nothing of who wrote a character. What a turn adds to the prompt before it is compared with what tracked
strings say of it, and both must name the same characters, but for the differences that `Witness` explains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from turnmill.conversation import Conversation, Json
from turnmill.errors import Rejected, quote
from turnmill.rendered import TRAINED_KINDS, Kind
from turnmill.rendering.form import Entry, Form
from turnmill.rendering.markers import Markers

if TYPE_CHECKING:
    from turnmill.rendering.template import Template


class Testimony(NamedTuple):
    """What the witness says of a render's turns."""

    seen: int
    """Edges (beginnings and ends of turns) that it could see: a template that rewrites its history hides some."""
    faults: list[str]
    """Edges where it says otherwise, and what lies between."""


class Turn(NamedTuple):
    """Where a turn's trained text begins and ends, by its spans."""

    start: int
    reasoned: int
    """End of the reasoning that it begins with, `start` where it begins with none."""
    end: int


class Witness:
    """Compares the turns of one render with the differences between the template's renders of its beginnings.

    Args:
        template: the template.
        form: how rows are written for it.
        markers: what it writes around turns.
    """

    def __init__(self, template: Template, form: Form, markers: Markers) -> None:
        self._template, self._form, self._markers = template, form, markers

    def testimony(
        self,
        conversation: Conversation,
        kwargs: Mapping[str, Json],
        text: str,
        parts: Sequence[tuple[int, int, int, Kind]],
        entries: Sequence[Entry],
    ) -> Testimony:
        """What it says of one render.

        Args:
            conversation: the row.
            kwargs: its template arguments.
            text: its render.
            parts: (start, end, index in `Conversation.messages`, kind), covering the text.
            entries: what the messages were written as.
        """
        seen, faults = 0, []
        for entry in entries:
            own = [part for part in parts if part[2] in entry.messages and part[3] in TRAINED_KINDS]
            if entry.role != "assistant" or not own:
                continue
            reasoned = next((start for start, _, _, kind in own if kind != "reasoning"), own[-1][1])
            edges = list(self._edges(conversation, kwargs, text, entry, Turn(own[0][0], reasoned, own[-1][1])))
            seen += len(edges)
            faults += [fault for fault in edges if fault]
        return Testimony(seen, faults)

    def _edges(
        self, row: Conversation, kwargs: Mapping[str, Json], text: str, entry: Entry, turn: Turn
    ) -> Iterator[str]:
        """A fault for each edge that is seen, "" where it is as the spans say."""
        prompt = self._shown(row, kwargs, entry.messages[0], prompt=True)
        if prompt is not None and text.startswith(prompt):
            between = text[min(turn.start, len(prompt)) : max(turn.start, len(prompt))]
            is_right = self._explains_start(text, len(prompt), turn)
            yield "" if is_right else f"a turn begins {quote(between)} away from where its generation prompt ends"
        whole = self._shown(row, kwargs, entry.messages[-1] + 1, prompt=False)
        if whole is not None and text.startswith(whole):
            between = text[min(turn.end, len(whole)) : max(turn.end, len(whole))]
            is_right = self._explains_end(text, len(whole), turn.end)
            yield "" if is_right else f"a turn ends {quote(between)} away from what it adds to the messages before it"

    def _shown(self, row: Conversation, kwargs: Mapping[str, Json], messages: int, *, prompt: bool) -> str | None:
        """The template's text for the first messages; None where it refuses them."""
        with suppress(Rejected):
            return self._template.plain(row.beginning(messages), self._form, kwargs, prompt=prompt)
        return None

    def _explains_start(self, text: str, prompt: int, turn: Turn) -> bool:
        """Whether the prompt's end and the turn's beginning are one place.

        The prompt may open the think block of a turn that reasons: its tag is the reasoning's. Behind the prompt there
        may be white space, an empty think block, or a header that the prompt lacks, which are the template's.
        """
        if turn.start < prompt:
            return prompt <= turn.reasoned
        between = text[prompt : turn.start].strip()
        closer = self._markers.think_close
        headers = [header.strip() for header in self._markers.headers.values()]
        return not between or between in headers or (closer is not None and between.endswith(closer))

    def _explains_end(self, text: str, whole: int, end: int) -> bool:
        """Whether what the turn adds ends with its stop.

        Where the template writes the stop of a turn only as another message follows, the turn has it. Behind a stop
        the template may write white space and control tokens of its own.
        """
        if end > whole:
            return text[whole:end].strip() in self._markers.stops
        rest = text[end:whole]
        for token in self._markers.control:
            rest = rest.replace(token, "")
        return not rest.strip()
