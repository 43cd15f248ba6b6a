"""Who wrote a text that a filter, a method or a print made of others without keeping their runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jinja2 import Undefined
from markupsafe import Markup

from turnmill.rendering.filter_marks import marked_as
from turnmill.rendering.trace import Trace
from turnmill.rendering.tracked import MIXED, Tracked, concatenated, origins_within, tracked

_JSON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]|[^\s\[\]{}",:]+')


def derived(trace: Trace, made: Any, sources: Iterable[Any]) -> Any:
    """What was made of `sources`, with an origin.

    A plain text made of one writer's texts is that writer's; of none, the template's; of several, `MIXED`. A tracked
    text has kept its runs, and what is no text has none.
    """
    if isinstance(made, Tracked) or not isinstance(made, str) or not made:
        return made
    return tracked(made, _writer(trace, sources))


def _writer(trace: Trace, sources: Iterable[Any]) -> int:
    template = trace.here
    fields = set()
    for number in origins_within(list(sources)):
        if number == MIXED or trace.origins[number].kind is not None:
            fields.add(number)
        else:
            template = number
    return fields.pop() if len(fields) == 1 else MIXED if fields else template


def printed(trace: Trace, value: Any) -> Any:
    """A value as a template prints it: the writer of a list or dict is found, what other objects hold is not known."""
    if isinstance(value, Tracked | Undefined):
        return value
    if value is None or isinstance(value, str | int | float):
        return value if isinstance(value, Markup) else trace.literal(str(value))
    if isinstance(value, dict | list | tuple):
        return derived(trace, str(value), [value])
    return tracked(str(value), MIXED)


def replaced(trace: Trace, made: str, text: str, new: Any) -> str:
    """The text of a replacement: what replaces a part goes to that part's writer, and may be no other message's."""
    fields = {origin for origin in origins_within(new) if origin == MIXED or trace.origins[origin].kind is not None}
    return made if fields <= set(origins_within(text)) else tracked(str.__str__(made), MIXED)


def called(trace: Trace, made: str, method: Any, arguments: list[Any]) -> Any:
    """The text that a call gave; of a method, the string it belongs to is one of its sources."""
    name, text = getattr(method, "__name__", ""), getattr(method, "__self__", None)
    if not isinstance(text, str):
        return derived(trace, made, arguments)
    if name == "replace" and len(arguments) > 1:
        return replaced(trace, made, text, arguments[1])
    if name in ("format", "format_map"):
        made = str.__str__(made)  # the sandbox makes it with the class of the pattern, without its runs
    return derived(trace, made, [text, *arguments])


def json_text(trace: Trace, text: str, value: Any, *, sort_keys: bool) -> Tracked:
    """The JSON text of a value: each string its own writer's, the rest the writer's whose container it stands in."""
    if trace.is_known(value):
        return tracked(text, trace.origin_of(value))
    origins = list(_json_origins(trace, value, trace.here, sort_keys))
    tokens = list(_JSON_TOKEN.finditer(text))
    if len(origins) != len(tokens):
        return tracked(text, _writer(trace, [value]))
    parts: list[str] = []
    position = 0
    for token, (around, own) in zip(tokens, origins, strict=True):
        parts += [tracked(text[position : token.start()], around), tracked(token.group(), own)]
        position = token.end()
    return concatenated([*parts, text[position:]])


def _json_origins(trace: Trace, value: Any, around: int, sort_keys: bool) -> Iterator[tuple[int, int]]:
    """(origin of what stands before it, its own origin) of each token of a value's JSON text."""
    if not isinstance(value, dict | list | tuple):
        yield around, _json_writer(trace, value, around)
        return
    inside = trace.origin_of(value) if trace.is_known(value) else around
    yield around, inside
    if isinstance(value, dict):
        for key, item in sorted(value.items()) if sort_keys else value.items():
            yield inside, _json_writer(trace, key, inside)
            yield from _json_origins(trace, item, inside, sort_keys)
    else:
        for item in value:
            yield from _json_origins(trace, item, inside, sort_keys)
    yield inside, inside


def _json_writer(trace: Trace, value: Any, around: int) -> int:
    return _writer(trace, [value]) if isinstance(value, Tracked) else around


def deriving_filter(function: Callable[..., Any], trace_now: Callable[[], Trace]) -> Callable[..., Any]:
    """A filter whose plain texts get an origin."""

    def run(*arguments: Any, **named: Any) -> Any:
        return derived(trace_now(), function(*arguments, **named), [*arguments, *named.values()])

    return marked_as(function, run)
