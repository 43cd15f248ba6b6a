"""From a record's bytes to its object: a fast parser for the good ones, one exact path that decides every doubt."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import NoReturn

import msgspec

from turnmill.conversation import Json
from turnmill.errors import Rejected, quote

MAX_DEPTH = 256
"""Objects and arrays inside each other: fixed, so that no row depends on how deep the caller's stack is."""

_SPACE_BEFORE_COLON = re.compile(rb'"[ \t\r\n]+:')

_decode: Callable[[bytes], Json] = msgspec.json.Decoder().decode


def decode(raw: bytes) -> dict[str, Json]:
    """The object that a record's bytes hold.

    Raises:
        Rejected: they are not UTF-8, not JSON, not an object, or hold what JSON text cannot say once and for all
            (a key twice, NaN or an overflowing number, half a surrogate pair).
    """
    try:
        value = _decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return decode_exactly(raw)
    keys, depth = _keys_and_depth(value)
    if type(value) is dict and depth <= MAX_DEPTH and keys == _keys_written(raw):
        return value
    return decode_exactly(raw)


def decode_exactly(raw: bytes, *, admit_surrogates: bool = False) -> dict[str, Json]:
    """What `decode` gives, by the path that finds the fault where there is one.

    Args:
        raw: the record's bytes.
        admit_surrogates: texts may hold half a surrogate pair: for a repair to mend.
    """
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as problem:
        raise Rejected("invalid-utf8", f"byte {problem.start} of the record is not UTF-8: {problem.reason}") from None
    value = _parse(text)
    if _keys_and_depth(value)[1] > MAX_DEPTH:
        raise _too_deep()
    if "\\u" in text and not admit_surrogates:
        _refuse_surrogates(value)
    if not isinstance(value, dict):
        raise Rejected("record-not-an-object", f"the record is {_kind(value)}; expected a JSON object")
    return value


def _parse(text: str) -> Json:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}" if problem.lineno > 1 else f"column {problem.colno}"
        raise Rejected(
            "invalid-json", f"not JSON: {problem.msg.removesuffix(' at')} at {where} of the record"
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # the only other one: an integer of more digits than Python converts
        limit = sys.get_int_max_str_digits()
        raise Rejected("invalid-json", f"not JSON that can be read: an integer of over {limit} digits") from None


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    entries = dict(pairs)
    if len(entries) == len(pairs):
        return entries
    times = Counter(key for key, _ in pairs)
    twice = next(key for key, count in times.items() if count > 1)
    raise Rejected("duplicate-key", f"the key {quote(twice)} stands twice in one object")


def _refuse_constant(name: str) -> NoReturn:
    raise Rejected("non-finite-number", f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Rejected("non-finite-number", f"{quote(text)} is over the largest number a double holds")
    return number


def _refuse_surrogates(value: Json) -> None:
    half = lone_surrogate(value)
    if half is not None:
        raise Rejected("lone-surrogate", f"{half} is half of a surrogate pair and stands alone") from None


def lone_surrogate(value: Json) -> str | None:
    """The first half of a surrogate pair that stands alone in a text of the value, as its escape."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as problem:
        return f"\\u{ord(problem.object[problem.start]):04x}"
    return None


def _keys_and_depth(value: Json) -> tuple[int, int]:
    """How many keys its objects have in all, and how deep they and its arrays nest."""
    keys = depth = 0
    level = [value]
    while level:
        inner: list[Json] = []
        for node in level:
            if type(node) is dict:
                keys += len(node)
                inner.extend(node.values())
            elif type(node) is list:
                inner.extend(node)
        level = inner
        depth += 1
    return keys, depth


def _keys_written(raw: bytes) -> int:
    """How many keys stand in valid JSON text; -1 where only a parser can tell."""
    if _SPACE_BEFORE_COLON.search(raw):
        return -1
    if b'\\":' not in raw:
        return raw.count(b'":')
    *before, _ = raw.split(b'\\":')  # a quote inside a text: it stands behind an odd number of backslashes
    inside_texts = sum(1 - (len(part) - len(part.rstrip(b"\\"))) % 2 for part in before)
    return raw.count(b'":') - inside_texts


def _too_deep() -> Rejected:
    return Rejected("invalid-json", f"objects and arrays nest deeper than {MAX_DEPTH}")


def _kind(value: Json) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
