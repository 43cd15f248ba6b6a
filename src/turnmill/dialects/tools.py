"""Tool definitions and template arguments of a row, as values or as JSON text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from turnmill.contract.json_text import JsonFault, strict_json
from turnmill.conversation import Json, Message
from turnmill.dialects.fields import is_empty
from turnmill.errors import Rejected, quote


def read_tools(given: Iterable[tuple[str, Json]], counts: Counter[str]) -> tuple[Json, ...]:
    """The row's tool definitions as recorded, out of the places where they may stand.

    Args:
        given: (place, value) pairs; a value is a list or its JSON text.
        counts: where JSON text is counted.

    Raises:
        Rejected: `tools-not-json`, `tools-not-list`, or `tools-disagree` where two places differ.
    """
    found: dict[str, tuple[Json, ...]] = {}
    for place, value in given:
        tools = _tool_list(value, place, counts)
        if tools:
            found[place] = tools
    lists = list(found.values())
    if any(tools != lists[0] for tools in lists[1:]):
        raise Rejected("tools-disagree", f"{' and '.join(found)} define different tools")
    return lists[0] if lists else ()


def _tool_list(value: Json, place: str, counts: Counter[str]) -> tuple[Json, ...]:
    if isinstance(value, str) and value.strip():
        value = _decoded(value, place)
        counts["read/tools-json-text"] += 1
    if is_empty(value) or isinstance(value, str):
        return ()
    if not isinstance(value, list):
        raise Rejected("tools-not-list", f"{place} is {quote(value)}; expected a list of tool definitions")
    return tuple(_decoded(tool, place) if isinstance(tool, str) else tool for tool in value)


def _decoded(text: str, place: str) -> Json:
    try:
        return strict_json(text)
    except JsonFault as fault:
        raise Rejected("tools-not-json", f"{place}: {fault}; got {quote(text)}") from None


def read_template_kwargs(value: Json) -> dict[str, Json]:
    """The row's template arguments, an object or its JSON text.

    Raises:
        Rejected: `template-kwargs-invalid`.
    """
    if isinstance(value, str) and value.strip():
        try:
            value = strict_json(value)
        except JsonFault as fault:
            raise Rejected("template-kwargs-invalid", f"chat_template_kwargs: {fault}") from None
    if is_empty(value):
        return {}
    if not isinstance(value, dict):
        raise Rejected("template-kwargs-invalid", f"chat_template_kwargs is {quote(value)}; expected an object")
    return dict(value)


def settle_thinking(kwargs: dict[str, Json], messages: Iterable[Message], counts: Counter[str]) -> None:
    """Drop a recorded boolean `enable_thinking`, which the messages say themselves; a recorded string stays."""
    recorded = kwargs.get("enable_thinking")
    if recorded is None or isinstance(recorded, bool):
        kwargs.pop("enable_thinking", None)
        thinks = any(message.channel == "analysis" for message in messages)
        if recorded is not None and recorded != thinks:
            counts["read/enable-thinking-replaced"] += 1
