"""A row under a stranger's template, which is rendered in a process with little time, little memory and no files."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import msgspec

from turnmill.conversation import Json
from turnmill.errors import UnsafeTemplate, UsageError
from turnmill.executors.limited import Limits, answer_of, hold, warm_up, written
from turnmill.models import LoadedModel
from turnmill.options import Render
from turnmill.rendering.renderer import Renderer
from turnmill.stops import stops_of
from turnmill.verbs.explain import Selection, explain
from turnmill.verbs.tokenize import renderer_of

NAME = "the request"


class Asked(msgspec.Struct, frozen=True):
    """What the process is given."""

    source: dict[str, Json]
    row: int
    template: str
    special_tokens: dict[str, str]
    limits: Limits
    sections: dict[str, dict[str, Json]] = {}


class Answered(msgspec.Struct, frozen=True):
    """What it gives back: a row, or why there is none."""

    explanation: dict[str, Json] | None = None
    refusal: str = ""
    code: str | None = None
    """What the template would teach wrongly; None where it, or the row, cannot be used at all."""


def explain_foreign(
    source: dict[str, Json],
    row: int,
    template: str,
    special_tokens: Mapping[str, str],
    sections: Mapping[str, dict[str, Json]] | None = None,
    limits: Limits | None = None,
) -> dict[str, Json]:
    """The row as `explain --json` says it, under that template and without a tokenizer.

    Args:
        source: of a config, with one file of rows.
        row: its number, from 0.
        template: Jinja text.
        special_tokens: `bos_token` and the like, by variable name.
        sections: of the config, but for `model`.
        limits: what the process may take once it has read the row.

    Raises:
        UsageError: no such row, or the template cannot be used, or went over a limit and was ended.
        UnsafeTemplate: it renders, but would teach the wrong thing.
    """
    limits = limits or Limits()
    asked = Asked(source, row, template, dict(special_tokens), limits, dict(sections or {}))
    answer = answer_of("turnmill.shelf.foreign_template", msgspec.json.encode(asked), "the template", limits)
    answered = msgspec.json.decode(answer, type=Answered)
    if answered.explanation is not None:
        return answered.explanation
    if answered.code is not None:
        raise UnsafeTemplate(answered.code, answered.refusal)
    raise UsageError(answered.refusal)


def _renderer(asked: Asked) -> Renderer:
    """Of the stranger's template; nothing that it does from here on goes over a limit."""
    warm_up(asked.limits)
    hold(asked.limits)
    stops = stops_of(asked.template, asked.special_tokens.get("eos_token"))
    model = LoadedModel(NAME, asked.template, "given", asked.special_tokens, stops.tokens, stops.source)
    return renderer_of(model, msgspec.convert(asked.sections.get("render", {}), Render))


def _answer(asked: Asked) -> Answered:
    from turnmill.config import reloaded

    config = reloaded({"sources": [asked.source], "model": {"template": "chatml"}, **asked.sections})
    selection = Selection(str(asked.row))
    try:
        for _ in explain(config, {}, selection):
            pass  # imports what a row imports late
        explained = next(explain(config, {}, selection, lambda: _renderer(asked)))
        return Answered(explained.as_json())
    except UsageError as fault:
        return Answered(None, fault.message, fault.code if isinstance(fault, UnsafeTemplate) else None)


def main() -> int:
    """Explains what standard input asks for."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Asked)
    return written(lambda: _answer(asked))


if __name__ == "__main__":
    sys.exit(main())
