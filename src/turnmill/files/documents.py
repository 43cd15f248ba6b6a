"""JSON values that are not a line each: the elements of one array, or objects one after another.

Where a value ends is found by counting brackets outside strings, without parsing it, so that a value that is not JSON
is one bad record and memory never holds more than one value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from turnmill.errors import Rejected
from turnmill.files.compressed import BrokenStream
from turnmill.files.record import KEPT_OF_TOO_LARGE, Piece, too_large

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING_BODY = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_STRUCTURE = re.compile(rb'["{}\[\]]')
_WORD = re.compile(rb'[^ \t\r\n,"{}\[\]]*+')
_REST_OF_LINE = re.compile(rb"[^\n]*+")
_BACKSLASH, _COMMA, _CLOSING_BRACKET = b"\\,]"


def split_array(chunks: Iterable[bytes], *, limit: int) -> Iterator[Piece]:
    """The elements of the one array that the stream holds; `line` is the element's number from 1.

    What does not continue the array is the last piece, fatal, `broken-array`.
    """
    window = _Window(chunks)
    number = 0
    try:
        window.skip_space()
        window.take(1)  # the opening bracket, by which the layout was told
        for number, value, whole in _elements(window, limit):
            if not whole:
                yield _broken_array(number, value, window)
                return
            yield value.piece(number)
        if window.skip_space() is not None:
            value = _Value(window, limit)
            value.read(_REST_OF_LINE)
            yield _broken_array(number + 1, value, window)
    except BrokenStream as broken:
        yield Piece(number + 1, window.offset, b"", broken.fault, fatal=True)


def _elements(window: _Window, limit: int) -> Iterator[tuple[int, _Value, bool]]:
    """Number and bytes of each element behind the opening bracket, and whether a comma or the end follows it."""
    mark = window.skip_space()
    if mark == _CLOSING_BRACKET:
        window.take(1)
        return
    for number in count(1):
        value = _Value(window, limit)
        whole = mark is not None and value.read(_WORD) and window.skip_space() in (_COMMA, _CLOSING_BRACKET)
        yield number, value, whole
        if not whole or window.take(1) == b"]":
            return
        mark = window.skip_space()


def _broken_array(number: int, value: _Value, window: _Window) -> Piece:
    what = "the file ends inside it" if window.at_end else "what stands there does not continue the array"
    fault = Rejected("broken-array", f"element {number}: {what}; the rest of the file cannot be read")
    return Piece(number, value.offset, value.raw, fault, fatal=True)


def split_concatenated(chunks: Iterable[bytes], *, limit: int) -> Iterator[Piece]:
    """The values that stand one after another in the stream; `line` is the line on which each begins.

    What is neither object nor array is a piece up to the end of its line.
    """
    window = _Window(chunks)
    line = 1
    try:
        while window.skip_space() is not None:
            line = window.line
            value = _Value(window, limit)
            if not value.read(_REST_OF_LINE):
                fault = Rejected("truncated-file", f"the file ends inside the value that begins on line {line}")
                yield Piece(line, value.offset, value.raw, fault, fatal=True)
                return
            yield value.piece(line)
    except BrokenStream as broken:
        yield Piece(line, window.offset, b"", broken.fault, fatal=True)


class _Window:
    """The chunk of a stream at hand, and how much of the stream has been taken."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.data = b""
        self.position = 0
        self.line = 1
        self.offset = 0
        self.at_end = False

    def fill(self) -> bool:
        """Whether there is a byte left, getting the next chunk if need be."""
        while self.position == len(self.data) and not self.at_end:
            self.data, self.position = next(self._chunks, b""), 0
            self.at_end = not self.data
        return not self.at_end

    def take(self, count: int) -> bytes:
        """The next bytes of the chunk at hand."""
        taken = self.data[self.position : self.position + count]
        self.position += len(taken)
        self.offset += len(taken)
        self.line += taken.count(b"\n")
        return taken

    def skip_space(self) -> int | None:
        """The next byte that is not white space (not taken), None at the end."""
        while self.fill():
            self.take(_end(_SPACE, self.data, self.position) - self.position)
            if self.position < len(self.data):
                return self.data[self.position]
        return None


class _Value:
    """One value, taken from the window as far as the limit allows and skipped behind it."""

    def __init__(self, window: _Window, limit: int) -> None:
        self._window, self._limit = window, limit
        self._parts: list[bytes] = []
        self._length = self._depth = 0
        self._in_string = self._escaped = False
        self.offset = window.offset

    @property
    def raw(self) -> bytes:
        """Its bytes, or the first of them if it is too large."""
        return b"".join(self._parts)

    def piece(self, line: int) -> Piece:
        """The value as a record."""
        if self._length > self._limit:
            return Piece(line, self.offset, self.raw, too_large(self._limit))
        return Piece(line, self.offset, self.raw.rstrip(b" \t\r"))

    def read(self, word: re.Pattern[bytes]) -> bool:
        """Take the value; False if the stream ends first or no value begins here.

        Args:
            word: what a value is that begins with neither bracket nor brace.
        """
        if not self._window.fill():
            return False
        first = self._window.data[self._window.position]
        nested = first in b'{["' if word is _WORD else first in b"{["
        return self._take_nested() if nested else self._take_word(word)

    def _take_word(self, word: re.Pattern[bytes]) -> bool:
        while self._window.fill():
            end = _end(word, self._window.data, self._window.position)
            self._keep(end)
            if end < len(self._window.data):
                break
        return self._length > 0

    def _take_nested(self) -> bool:
        while self._window.fill():
            end, done = self._end_of_nested(self._window.data, self._window.position)
            self._keep(end)
            if done:
                return True
        return False

    def _keep(self, end: int) -> None:
        part = self._window.take(end - self._window.position)
        was_too_large = self._length > self._limit
        self._length += len(part)
        if not was_too_large:
            self._parts.append(part)
            if self._length > self._limit:
                kept = min(KEPT_OF_TOO_LARGE, self._limit + 1)  # the same bytes however the stream is cut
                self._parts = [self.raw[:kept]]

    def _end_of_nested(self, data: bytes, position: int) -> tuple[int, bool]:
        """Index behind the value and True, or the end of the data and False; remembers where in a value that is."""
        if self._escaped:
            position, self._escaped = position + 1, False
        while position < len(data):
            if self._in_string:
                position = self._end_of_string(data, position)
            else:
                found = _STRUCTURE.search(data, position)
                if found is None:
                    return len(data), False
                position = found.end()
                self._nest(found[0])
            if not (self._depth or self._in_string):
                return position, True
        return len(data), False

    def _end_of_string(self, data: bytes, position: int) -> int:
        position = _end(_STRING_BODY, data, position)
        if position == len(data):
            return position
        self._escaped = data[position] == _BACKSLASH  # its other half is in the next chunk
        self._in_string = self._escaped
        return position + 1

    def _nest(self, mark: bytes) -> None:
        if mark == b'"':
            self._in_string = True
        else:
            self._depth += 1 if mark in b"{[" else -1


def _end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    found = pattern.match(data, position)
    return position if found is None else found.end()
