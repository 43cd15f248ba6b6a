"""JSON text read strictly: duplicate keys, NaN and infinities are faults, integers keep every digit."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Literal, NoReturn

from turnmill.conversation import Json
from turnmill.errors import quote


class JsonFault(ValueError):
    """What is wrong with a JSON text.

    Attributes:
        kind: `not-json`, `duplicate-key` or `non-finite`.
    """

    def __init__(self, kind: Literal["not-json", "duplicate-key", "non-finite"], detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        times = Counter(key for key, _ in pairs)
        repeated = next(key for key, count in times.items() if count > 1)
        raise JsonFault("duplicate-key", f"the key {quote(repeated)} stands twice in one object")
    return value


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonFault("non-finite", f"the number {quote(text)} is too large for a float")
    return number


def _constant(name: str) -> NoReturn:
    raise JsonFault("non-finite", f"{name} is not a JSON number")


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


def strict_json(text: str) -> Json:
    """The value of a JSON text.

    Raises:
        JsonFault: not JSON, nested too deeply, a duplicate key, or a number that JSON has not.
    """
    try:
        return _decoder.decode(text)
    except JsonFault:
        raise
    except RecursionError:
        raise JsonFault("not-json", "the JSON is nested too deeply to read") from None
    except json.JSONDecodeError as error:
        raise JsonFault("not-json", f"{error.msg.removesuffix(' at')} at character {error.pos}") from None
    except ValueError as error:  # an integer of more digits than Python reads
        raise JsonFault("not-json", str(error)) from None
