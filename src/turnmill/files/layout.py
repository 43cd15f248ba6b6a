"""How JSON text lies in a file, told by its content, never by its name."""

from __future__ import annotations

import json

from turnmill.errors import UsageError, shell_word
from turnmill.files.record import Layout

HEAD_BYTES = 1 << 18
"""Bytes of a file that are looked at."""

UTF8_MARK = b"\xef\xbb\xbf"
_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"{\x00": "UTF-16LE",
    b"[\x00": "UTF-16LE",
    b"\x00{": "UTF-16BE",
    b"\x00[": "UTF-16BE",
}
_SPACE = " \t\r\n"


def layout_of(head: bytes, path: str) -> Layout:
    """The layout of a file with these first bytes (unpacked).

    Raises:
        UsageError: text of another encoding than UTF-8.
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            step = f"iconv -f {encoding} -t UTF-8 {shell_word(path)} > {shell_word(f'{path}.utf8')}"
            raise UsageError(f"{path} is {encoding} text; expected UTF-8", next_step=step)
    text = head.removeprefix(UTF8_MARK).decode("utf-8", errors="replace").lstrip(_SPACE)
    if not text.startswith(("{", "[")):
        return "lines"
    return _array_layout(text) if text.startswith("[") else _object_layout(text)


def _array_layout(text: str) -> Layout:
    """One array, unless the first line is a whole array and more values follow."""
    end = _end_of_value(text)
    if end is None or "\n" in text[:end]:
        return "array"
    rest_of_line, _, more = text[end:].partition("\n")
    return "lines" if not rest_of_line.strip(_SPACE) and more.strip(_SPACE) else "array"


def _object_layout(text: str) -> Layout:
    """Lines, unless the first object spans lines or another one follows it on its line."""
    end = _end_of_value(text)
    if end is None:
        _, *others = text.split("\n")
        return "lines" if not others or any(map(_is_object, others)) else "concatenated"
    rest_of_line = text[end:].partition("\n")[0].strip(_SPACE)
    return "concatenated" if "\n" in text[:end] or rest_of_line.startswith("{") else "lines"


def _end_of_value(text: str) -> int | None:
    try:
        return json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        return None


def _is_object(line: str) -> bool:
    return line.startswith("{") and _end_of_value(line) == len(line.rstrip(_SPACE))
