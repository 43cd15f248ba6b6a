"""One row in several examples: each trained turn in one of them, and weights that are the row's, not the example's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from turnmill.conversation import Checked, Conversation, Json
from turnmill.rendered import Example, Loss, Rendered
from turnmill.rendering.history import Context, History, Mode, View
from turnmill.rendering.renderer import Renderer
from turnmill.tokens.loss import Policy, turns_of

SAMPLED = 64
"""Of so many rows that the probe answers for, one (by its id) is compared with its prompts all the same."""


class Asked(NamedTuple):
    """What a source asks of a row's history."""

    mode: Mode
    loss: Loss
    template_kwargs: Mapping[str, Json]
    control_tokens: str | None


def trained_only(view: Conversation, turns: Collection[int], results: Collection[int]) -> Conversation:
    """The conversation with weight 0 on every turn and result but these: what else it holds is context.

    Args:
        view: a conversation.
        turns: numbers of its turns that train.
        results: recorded indices of its results that may train.
    """
    kept = {recorded for turn, members in enumerate(turns_of(view)) if turn in turns for recorded in members}
    kept |= set(results)
    messages = tuple(
        message
        if message.role not in ("assistant", "tool") or message.recorded in kept
        else msgspec.structs.replace(message, weight=0.0)
        for message in view.messages
    )
    return msgspec.structs.replace(view, messages=messages)


def results_by_view(views: Sequence[Conversation]) -> list[set[int]]:
    """Recorded indices of the results that each view trains: the first view that holds one does.

    Args:
        views: in order of their ends.
    """
    seen: set[int] = set()
    of_views: list[set[int]] = []
    for view in views:
        held = {message.recorded for message in view.messages if message.role == "tool"}
        of_views.append(held - seen)
        seen |= held
    return of_views


def unscaled(loss: Loss) -> Loss:
    """The options for one of several examples: turns are scaled over the whole row."""
    return Loss(turns=loss.turns, reasoning=loss.reasoning, observations=loss.observations, fractional=loss.fractional)


def scaled(row: Conversation, loss: Loss, examples: Sequence[Example]) -> list[Example]:
    """A row's examples with the weights of its turns: mean 1 over the trained tokens of all of them together.

    Args:
        row: the whole conversation.
        loss: its options.
        examples: of `unscaled` options.
    """
    policy = Policy(row, loss)
    turn_of = {recorded: turn for turn, members in enumerate(policy.turns) for recorded in members}
    counts: Counter[int] = Counter()
    for example in examples:
        start = 0
        for run in example.runs:
            if run.weight > 0:
                counts[turn_of.get(run.message, -1)] += run.end - start
            start = run.end
    scales = policy.scales(counts)
    if not scales:
        return list(examples)
    return [
        msgspec.structs.replace(
            example,
            runs=[
                msgspec.structs.replace(run, weight=run.weight * scales.get(turn_of.get(run.message, -1), 1.0))
                for run in example.runs
            ],
        )
        for example in examples
    ]


class Histories:
    """Rows to the renders they train in, with one renderer.

    Args:
        renderer: of the template.

    Attributes:
        counts: `history/<what>` → how many trained turns, over all rows so far.
    """

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._history = History(renderer)
        self.counts: Counter[str] = Counter()

    def views(self, row: Checked, row_id: str, whole: Rendered, asked: Asked) -> list[View]:
        """The renders in which the row's turns train, each with the weights of its own turns alone.

        A row whose kind the probe has shown to be stable is not rendered again; of one in `SAMPLED` a turn is compared,
        which proves the probe. `count_stable` counts such rows.

        Args:
            row: the row.
            row_id: its id.
            whole: its final render.
            asked: what its source asks for.
        """
        if row.is_raw_text:
            return [View(row, whole, frozenset())]
        kwargs = self._renderer.kwargs_of(row, asked.template_kwargs)
        if asked.mode != "per-turn" and self._history.is_stable(row, kwargs):
            if self._is_proven(row, row_id, whole, kwargs):
                return [View(row, whole, None)]
            self.counts["history/probe-wrong"] += 1
        policy = Policy(row, asked.loss)
        turns = {policy.turn(span) for span in whole.spans if policy.weight(span) > 0} - {-1}
        views, contexts = self._history.views(row, whole, kwargs, turns, asked.mode, asked.control_tokens)
        self._count(contexts.values())
        if asked.loss.observations and len(views[-1].conversation.messages) < len(row.messages):
            views.append(View(row, whole, frozenset()))
        if len(views) == 1 and views[0].conversation is row:
            return views
        results = results_by_view([view.conversation for view in views])
        return [
            view._replace(conversation=trained_only(view.conversation, view.turns or (), of_view))
            for view, of_view in zip(views, results, strict=True)
        ]

    def _is_proven(self, row: Checked, row_id: str, whole: Rendered, kwargs: Mapping[str, Json]) -> bool:
        """Whether a turn of the row, if it is one of the sample, stands as its prompt would have it."""
        number, turns = int(row_id[:8], 16), len(whole.prompt_ends)
        if number % SAMPLED or not turns:
            return True
        (context,) = self._history.contexts(row, whole, kwargs, [number // SAMPLED % turns]).values()
        return context.is_right

    def count_stable(self, turns: int) -> None:
        """Trained turns of a row that the probe answers for."""
        self.counts["history/turns"] += turns
        self.counts["history/as-prompted"] += turns

    def _count(self, contexts: Iterable[Context]) -> None:
        for context in contexts:
            self.counts["history/turns"] += 1
            self.counts["history/as-prompted"] += context.is_prompted
            self.counts["history/without-reasoning"] += not context.is_reasoned
