"""History: whether a turn is shown with the context that inference would have prompted, and the renders that do so.

A *view* is a conversation that ends with one of its turns. What a template leaves out of a history stays left out when
the conversation goes on: so of all views that hold a turn its own is the one in which most earlier turns stand right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple

from turnmill.conversation import Checked, Conversation, Json
from turnmill.errors import Rejected
from turnmill.rendered import Rendered
from turnmill.rendering.renderer import Renderer
from turnmill.rendering.samples import Line, conversation

Mode = Literal["final", "auto", "per-turn"]

MAX_PROBED = 64
"""Kinds of rows (what they hold, their template arguments) that are probed; rows of further kinds are compared."""

PLAIN: tuple[Line, ...] = (
    ("user", "Questionone"), ("answer", "Answerone"), ("user", "Questiontwo"), ("answer", "Answertwo"),
    ("user", "Questionthree"), ("answer", "Answerthree"),
)  # fmt: skip
REASONED: tuple[Line, ...] = (
    ("user", "Questionone"), ("reasoning", "Reasonone"), ("answer", "Answerone"), ("user", "Questiontwo"),
    ("answer", "Answertwo"), ("user", "Questionthree"), ("reasoning", "Reasonthree"), ("answer", "Answerthree"),
)  # fmt: skip
CALLED: tuple[Line, ...] = (
    ("user", "Questionone"), ("call", "Cityone"), ("result", "Resultone"), ("answer", "Answerone"),
    ("user", "Questiontwo"), ("call", "Citytwo"), ("result", "Resulttwo"), ("call", "Citythree"),
    ("result", "Resultthree"), ("answer", "Answertwo"), ("user", "Questionthree"), ("answer", "Answerthree"),
)  # fmt: skip
BOTH: tuple[Line, ...] = (
    ("user", "Questionone"), ("reasoning", "Reasonone"), ("call", "Cityone"), ("result", "Resultone"),
    ("reasoning", "Reasontwo"), ("answer", "Answerone"), ("user", "Questiontwo"), ("reasoning", "Reasonthree"),
    ("call", "Citytwo"), ("result", "Resulttwo"), ("answer", "Answertwo"), ("user", "Questionthree"),
    ("answer", "Answerthree"),
)  # fmt: skip
SAMPLES: dict[tuple[bool, bool], tuple[Line, ...]] = {
    (False, False): PLAIN,
    (True, False): REASONED,
    (False, True): CALLED,
    (True, True): BOTH,
}
"""By whether the row reasons, and whether it has tools."""
SYSTEM: Line = ("system", "Systemone")


class View(NamedTuple):
    """A render of a conversation up to the end of one turn, and the turns that train there."""

    conversation: Conversation
    rendered: Rendered
    turns: frozenset[int] | None
    """Their numbers; None: all that train."""


class Context(NamedTuple):
    """How one trained turn stands in a render."""

    is_prompted: bool
    """All before it is what inference would have prompted; an empty think block alone is no difference."""
    is_reasoned: bool
    """The reasoning that was recorded for it is there."""

    @property
    def is_right(self) -> bool:
        """The model would have been asked so, and would have answered so."""
        return self.is_prompted and self.is_reasoned


class History:
    """What one template does to the past.

    Args:
        renderer: of the template.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._stable: dict[tuple[bool, bool, str], bool] = {}
        self._empty_block = _empty_block(renderer.probe.markers.think_close)

    def is_stable(self, row: Conversation, kwargs: Mapping[str, Json]) -> bool:
        """Whether the probe has shown that a row of this kind has every turn right in its one, final render.

        Args:
            row: the row.
            kwargs: its effective template arguments.
        """
        close = self._renderer.probe.markers.think_close
        if close and any(message.role == "assistant" and close in message.text for message in row.messages):
            return False  # templates cut answers at the tag
        reasons = any(message.channel == "analysis" for message in row.messages)
        key = (reasons, bool(row.tools), repr(sorted(kwargs.items(), key=lambda item: item[0])))
        if key not in self._stable and len(self._stable) < MAX_PROBED:
            self._stable[key] = self._is_sample_stable(SAMPLES[key[:2]], kwargs)
        return self._stable.get(key, False)

    def _is_sample_stable(self, lines: tuple[Line, ...], kwargs: Mapping[str, Json]) -> bool:
        contexts: list[Context] = []
        for variant in (lines, (SYSTEM, *lines)):
            row = Checked(conversation(variant))
            rendered = self._render(row, kwargs)
            if rendered is not None:
                contexts += self.contexts(row, rendered, kwargs, range(len(turns_of(row)))).values()
        return bool(contexts) and all(context.is_right for context in contexts)

    def contexts(
        self, row: Conversation, rendered: Rendered, kwargs: Mapping[str, Json], turns: Iterable[int]
    ) -> dict[int, Context]:
        """How each of these turns stands in a render, by comparing it with the prompt that inference would make.

        Args:
            row: the row, or a view of it.
            rendered: its render.
            kwargs: the row's effective template arguments.
            turns: numbers of its turns.
        """
        ranges = turns_of(row)
        knows_kinds = self._renderer.probe.rung == "tracked"
        shown = {span.message for span in rendered.spans if span.kind == "reasoning"}
        contexts: dict[int, Context] = {}
        for turn in turns:
            messages = [row.messages[index] for index in ranges[turn]]
            is_reasoned = not knows_kinds or all(
                message.recorded in shown for message in messages if message.channel == "analysis"
            )
            before = rendered.text[: rendered.prompt_ends[turn]]
            prompt = self._prompt(row, ranges[turn].start, kwargs)
            contexts[turn] = Context(prompt is not None and self._is_same(before, prompt), is_reasoned)
        return contexts

    def views(  # a row, its render, and the three ways in which its source may ask for another
        self,
        row: Checked,
        whole: Rendered,
        kwargs: Mapping[str, Json],
        turns: Collection[int],
        mode: Mode,
        control_tokens: str | None = None,
    ) -> tuple[list[View], dict[int, Context]]:
        """The renders in which a row's trained turns train, in order of their ends, and how each turn stands in its.

        Args:
            row: the row.
            whole: its final render.
            kwargs: its effective template arguments.
            turns: numbers of the turns that train.
            mode: `render.history`.
            control_tokens: the source's policy.
        """
        last = len(turns_of(row)) - 1
        contexts = self.contexts(row, whole, kwargs, turns)
        if mode == "final" or not turns or (mode == "auto" and all(one.is_right for one in contexts.values())):
            return [View(row, whole, frozenset(turns))], contexts
        held: dict[int, View] = {}
        open_turns = set(turns)
        while open_turns:
            turn = max(open_turns)
            view = View(row, whole, None) if turn == last else self._view(row, turn, kwargs, control_tokens)
            wanted = [turn] if mode == "per-turn" else sorted(open_turns)
            found = {} if view is None else self.contexts(view.conversation, view.rendered, kwargs, wanted)
            right = {one: context for one, context in found.items() if context.is_right or mode == "per-turn"}
            if view is None or turn not in right:  # no render mends it: it trains where the final render has it
                right, turn, view = {turn: contexts[turn]}, last, View(row, whole, None)
            held[turn] = view._replace(turns=frozenset(right) | (held[turn].turns or set() if turn in held else set()))
            contexts |= right
            open_turns -= set(right)
        return [held[end] for end in sorted(held)], contexts

    def _view(
        self, row: Conversation, turn: int, kwargs: Mapping[str, Json], control_tokens: str | None
    ) -> View | None:
        end = turns_of(row)[turn].stop
        ended = Checked(row.beginning(end))
        rendered = self._render(ended, kwargs, control_tokens)
        return None if rendered is None else View(ended, rendered, frozenset())

    def _render(self, row: Checked, kwargs: Mapping[str, Json], control_tokens: str | None = None) -> Rendered | None:
        """A render that no count knows of; None where the template refuses it."""
        counts = self._renderer.counts
        self._renderer.counts = Counter()
        try:
            return self._renderer.render(row, kwargs, control_tokens)
        except Rejected:
            return None
        finally:
            self._renderer.counts = counts

    def _prompt(self, row: Conversation, length: int, kwargs: Mapping[str, Json]) -> str | None:
        """What inference would prompt behind the first messages; None where the template refuses them."""
        renderer = self._renderer
        with suppress(Rejected):
            return renderer.template.plain(row.beginning(length), renderer.probe.form, kwargs, prompt=True)
        return None

    def _is_same(self, before: str, prompt: str) -> bool:
        if before == prompt or self._empty_block is None:
            return before == prompt
        return self._empty_block.sub("", before) == self._empty_block.sub("", prompt)


def turns_of(row: Conversation) -> list[range]:
    """The messages of each turn: a turn is a run of assistant messages."""
    turns: list[range] = []
    for index, message in enumerate(row.messages):
        if message.role != "assistant":
            continue
        if turns and turns[-1].stop == index:
            turns[-1] = range(turns[-1].start, index + 1)
        else:
            turns.append(range(index, index + 1))
    return turns


def _empty_block(close: str | None) -> re.Pattern[str] | None:
    """An empty think block and the white space behind it; None where the template has no tags."""
    opener = (close or "").replace("/", "", 1)
    if not close or opener == close:
        return None
    return re.compile(rf"{re.escape(opener)}\s*{re.escape(close)}\s*")
