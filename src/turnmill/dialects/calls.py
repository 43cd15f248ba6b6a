"""Tool calls in every recorded form: name and arguments as an object, as JSON text, or as JSON text twice over."""

from __future__ import annotations

from collections import Counter

from turnmill.contract.json_text import JsonFault, strict_json
from turnmill.conversation import Json, recorded_json
from turnmill.dialects.recorded import Call
from turnmill.errors import Rejected, quote


def read_calls(value: Json, at: int, counts: Counter[str]) -> tuple[Call, ...]:
    """The calls of a `tool_calls` list (or its JSON text), or of a single call.

    Raises:
        Rejected: `tool-call-not-json`, `tool-call-malformed`, or a fault of the arguments.
    """
    if isinstance(value, str):
        value = _decoded(value, at, counts)
    entries = value if isinstance(value, list) else [value]
    if not entries:
        raise Rejected("tool-call-malformed", "a list of calls is empty; expected a call", at=at)
    calls = tuple(_call(entry, at, counts) for entry in entries)
    ids = [call.id for call in calls if call.id is not None]
    if len(set(ids)) < len(ids):
        raise Rejected("call-id-repeated", f"two calls of one message share an id: {quote(ids)}", at=at)
    return calls


def _decoded(text: str, at: int, counts: Counter[str]) -> Json:
    try:
        value = strict_json(text)
    except JsonFault as fault:
        raise Rejected("tool-call-not-json", f"a call is {quote(text)}: {fault}", at=at) from None
    counts["read/calls-json-text"] += 1
    return value


def _call(entry: Json, at: int, counts: Counter[str]) -> Call:
    if isinstance(entry, str):
        entry = _decoded(entry, at, counts)
    if not isinstance(entry, dict):
        raise Rejected("tool-call-malformed", f"a call is {quote(entry)}; expected an object", at=at)
    kind = entry.get("type")
    if kind not in (None, "", "function"):
        raise Rejected("tool-call-malformed", f"a call is of type {quote(kind)}; expected function", at=at)
    function = entry["function"] if isinstance(entry.get("function"), dict) else entry
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise Rejected("tool-call-malformed", f"a call's name is {quote(name)}; expected text", at=at)
    arguments = read_arguments(function.get("arguments"), name, at, counts)
    return Call(name, arguments, read_call_id(entry.get("id"), at))


def read_call_id(value: Json, at: int) -> str | None:
    """The id of a call, or of the call that a result answers; a number as its digits.

    Raises:
        Rejected: `call-id-not-text`.
    """
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise Rejected("call-id-not-text", f"a call's id is {quote(value)}; expected text", at=at)
    return value


def read_arguments(value: Json, name: str, at: int, counts: Counter[str]) -> str:
    """Arguments of a call as JSON text of an object, keys and numbers as recorded.

    Raises:
        Rejected: `tool-arguments-not-json`, `-duplicate-key`, `-non-finite` or `-not-object`.
    """
    where = f"arguments of {quote(name)}"
    for counter in ("read/arguments-json-text", "read/arguments-double-encoded"):
        if isinstance(value, str):
            try:
                value = strict_json(value)
            except JsonFault as fault:
                raise Rejected(f"tool-arguments-{fault.kind}", f"{where}: {fault}; got {quote(value)}", at=at) from None
            counts[counter] += 1
    if not isinstance(value, dict):
        raise Rejected("tool-arguments-not-object", f"{where} are {quote(value)}; expected an object", at=at)
    try:
        return recorded_json(value)
    except ValueError as error:
        raise Rejected("tool-arguments-non-finite", f"{where}: {error}", at=at) from None
