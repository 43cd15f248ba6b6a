"""Halves of surrogate pairs that stand alone: texts that were cut between UTF-16 units."""

from __future__ import annotations

import re

from turnmill.conversation import Json
from turnmill.repairs import Mending, record_repair

REPLACEMENT = "\ufffd"
_LONE = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
"""Escapes of JSON text: a whole pair, half of one, any other; the half is the group."""


@record_repair("replace-surrogates")
def replace_surrogates(record: dict[str, Json], mending: Mending) -> dict[str, Json]:
    """Write U+FFFD for each half of a surrogate pair that stands alone, in texts, keys, and JSON text of arguments."""
    mended: dict[str, Json] = _mended(record)
    return mended


def _mended(value: Json) -> Json:
    if isinstance(value, str):
        return _LONE.sub(REPLACEMENT, value)
    if isinstance(value, list):
        return [_mended(item) for item in value]
    if isinstance(value, dict):
        return {_LONE.sub(REPLACEMENT, key): _field(key, item) for key, item in value.items()}
    return value


def _field(key: str, value: Json) -> Json:
    if key == "arguments" and isinstance(value, str):
        value = _ESCAPES.sub(lambda found: r"\ufffd" if found[1] else found[0], value)
    return _mended(value)
