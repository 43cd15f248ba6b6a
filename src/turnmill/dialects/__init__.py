"""Dialects: a file each, raw record → Conversation; of those that can be written also the way back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from collections.abc import Mapping as AnyMapping
from dataclasses import dataclass, field

from turnmill.conversation import COLUMNS, Conversation, Json
from turnmill.errors import Rejected, UnknownName, quote
from turnmill.options import DEFAULT_THINK_TAGS, KEEP_ALL
from turnmill.registry import Registry


@dataclass(frozen=True, slots=True)
class Mapping:
    """How one source names its fields: what is not named keeps the dialect's own name."""

    columns: dict[str, str] = field(default_factory=dict)
    """Our column → the record's (`{"messages": "dialog", "tools": "functions"}`)."""
    tags: dict[str, str] = field(default_factory=dict)
    """Our message key → the record's (`{"role": "speaker", "content": "text"}`)."""
    roles: dict[str, str] = field(default_factory=dict)
    """The record's role or speaker → ours (`{"bing": "assistant"}`)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a dialect is given besides the record: the source's mapping, and where it counts what it did."""

    mapping: Mapping = field(default_factory=Mapping)
    think_tags: tuple[str, ...] = DEFAULT_THINK_TAGS
    fractional: bool = False
    """Admit recorded weights other than 0 and 1 (`loss.fractional`)."""
    keep_columns: tuple[str, ...] = ()
    """Undeclared columns that are kept in `meta`."""
    counts: Counter[str] = field(default_factory=Counter)
    """`read/<what>` → how often."""

    def kept(self, columns: AnyMapping[str, Json]) -> list[str]:
        """Which of the undeclared columns are kept."""
        if self.keep_columns != KEEP_ALL:
            return [name for name in self.keep_columns if name in columns]
        return [name for name, value in columns.items() if value is not None and name not in COLUMNS]


Dialect = Callable[[dict[str, Json], Reading], Conversation]
"""Raises `Rejected` for a wrong record; ValueError, UnicodeError, KeyError and TypeError become `conversion-failed`."""

dialects: Registry[Dialect] = Registry("dialects")
dialect = dialects.register

Writer = Callable[[Conversation], dict[str, Json]]
"""A record that the dialect reads as the conversation; raises `Rejected` where it has no form for it. What it gives
is read back before anybody gets it (`dialects.writing`)."""

writers: dict[str, Writer] = {}
"""By name of the dialect, filled as the dialects are found."""


def writer(name: str) -> Callable[[Writer], Writer]:
    """Decorator that enters the way back into a dialect."""

    def enter(function: Writer) -> Writer:
        writers[name] = function
        return function

    return enter


def writer_of(name: str) -> Writer:
    """How a dialect is written.

    Raises:
        UnknownName: no such dialect, or one that is only read.
    """
    dialects.names()  # finds the files, and with them their writers
    if name not in writers:
        raise UnknownName("dialect to write", name, writers, next_step="turnmill convert --help")
    return writers[name]


def convert(record: Json, dialect: Dialect, reading: Reading) -> Conversation:
    """The conversation of one record: the border where what a record breaks becomes the record's fault.

    Raises:
        Rejected: the dialect's own faults; `record-not-object`; `conversion-failed` for a ValueError, UnicodeError,
            KeyError or TypeError of the conversion, and for nesting deeper than Python follows.
    """
    if not isinstance(record, dict):
        raise Rejected("record-not-object", f"the record is {quote(record)}; expected an object")
    try:
        return dialect(record, reading)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        detail = f"{type(error).__name__}: {quote(str(error))}"
        raise Rejected("conversion-failed", f"the record cannot be converted: {detail}") from error
