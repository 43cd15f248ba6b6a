"""The form of an upload, read as its bytes come: the file goes on as it is, the fields are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from turnmill.errors import quote
from turnmill.server.problems import Problem

FILE = "file"
FIELDS = ("filename", "format", "dialect")
MAX_FIELD_BYTES = 1024


class UploadForm:
    """A form with one file and a few fields.

    Args:
        content_type: of the request.
        write: takes the pieces of the file.

    Raises:
        Problem: 400: it is no form.
    """

    def __init__(self, content_type: str, write: Callable[[bytes], None]) -> None:
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            raise _not_valid(f"the body is {quote(content_type)}; expected multipart/form-data with a boundary")
        self._write = write
        self._values: dict[str, bytes] = {}
        self._sent_filename: str | None = None
        self._part = ""
        self._header, self._value = b"", b""
        self._disposition = b""
        self._is_whole = False
        callbacks = {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": self._data,
            "on_end": self._end,
        }
        try:
            self._parser = MultipartParser(options[b"boundary"], callbacks)  # type: ignore[arg-type]  # names are known
        except FormParserError as error:
            raise _not_valid(str(error)) from None

    def feed(self, chunk: bytes) -> None:
        """Take a further piece of the body.

        Raises:
            Problem: 400: it is no such form.
        """
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise _not_valid(f"the form is broken: {error}") from None

    def finish(self) -> None:
        """Nothing more comes.

        Raises:
            Problem: 400: the form has no end, or no file.
        """
        if not self._is_whole:
            raise _not_valid("the form breaks off before its last boundary")
        if FILE not in self._values:
            raise _not_valid("the form has no file in the field 'file'", FILE)

    def field(self, name: str) -> str | None:
        """What a field says; None where it is not there, or empty.

        Raises:
            Problem: 400: it is no UTF-8.
        """
        try:
            return self._values.get(name, b"").decode("utf-8") or None
        except UnicodeDecodeError:
            raise _not_valid(f"the field {name!r} is not UTF-8", name) from None

    @property
    def filename(self) -> str:
        """What the file is to be called.

        Raises:
            Problem: 400: nothing says it.
        """
        name = self.field("filename") or self._sent_filename
        if not name:
            raise _not_valid("the file has no name; expected one in the form's field 'filename'", "filename")
        return name

    def _begin(self) -> None:
        self._disposition = self._header = self._value = b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _headers_finished(self) -> None:
        kind, options = parse_options_header(self._disposition.decode("latin-1"))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if kind != b"form-data" or name not in (FILE, *FIELDS):
            raise _not_valid(f"the form has the field {quote(name)}; expected {', '.join((FILE, *FIELDS))}", name)
        if name in self._values:
            raise _not_valid(f"the form has the field {name!r} twice; expected it once", name)
        self._part, self._values[name] = name, b""
        if name == FILE and b"filename" in options:
            self._sent_filename = options[b"filename"].decode("utf-8", "replace")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._part == FILE:
            self._write(data[start:end])
            return
        self._values[self._part] += data[start:end]
        if len(self._values[self._part]) > MAX_FIELD_BYTES:
            raise _not_valid(f"the field {self._part!r} has more than {MAX_FIELD_BYTES:,} bytes", self._part)

    def _end(self) -> None:
        self._is_whole = True


def _not_valid(detail: str, field: str | None = None) -> Problem:
    more: dict[str, Any] = {} if field is None else {"faults": [{"at": f"body.{field}"[:100], "error": detail}]}
    return Problem(400, "request-not-valid", detail, **more)
