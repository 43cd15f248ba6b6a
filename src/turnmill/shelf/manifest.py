"""`dataset.toml`: what a dataset is called, which file holds its rows, and how they are read."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from turnmill.conversation import Role
from turnmill.errors import UnknownName, UsageError, quote

MANIFEST = "dataset.toml"
MAX_MANIFEST_BYTES = 1 << 20

Format = Literal["jsonl", "json", "parquet"]
FORMATS: tuple[Format, ...] = ("jsonl", "json", "parquet")
"""What a data file can be; its name ends with the format."""
MAX_NAME_CHARACTERS = 122
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
NAME_RULE = (
    f"1 to {MAX_NAME_CHARACTERS} of the characters A-Z a-z 0-9 . _ -, a letter or digit first, and no two dots together"
)
TEXTS = ("name", "description", "format", "file", "version", "generator", "dialect", "licence")
TABLES = ("columns", "roles", "splits")
KEYS = (*TEXTS, *TABLES)
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
HELD_OUT = "eval"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a `dataset.toml` says; every value was checked."""

    name: str
    """Of the dataset: what a job asks for."""
    file: str
    """The data file, relative to the dataset's directory, with `/` between its parts."""
    description: str = ""
    format: Format = "jsonl"
    version: str = ""
    generator: str = ""
    """The script that writes `file`; only told, never run."""
    dialect: str | None = None
    """How a row says a chat, or `auto`; None: instruction, input and output, by the line rule."""
    licence: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    """Our column → the row's."""
    roles: dict[str, str] = field(default_factory=dict)
    """The row's speaker → our role."""
    splits: dict[str, float] = field(default_factory=dict)
    """`eval` → the share of rows below 1, or the number of rows from 1 on, that is held out."""
    unknown: tuple[str, ...] = ()
    """Keys that mean nothing here."""

    @property
    def is_by_line_rule(self) -> bool:
        """Whether the file travels as it is: JSON lines of instruction, input and output."""
        return self.dialect is None


def parse_manifest(content: bytes, directory: str) -> Manifest:
    """What the bytes of a manifest say.

    Args:
        content: of `dataset.toml`.
        directory: name of the dataset's directory, which is the default name.

    Raises:
        UsageError: not TOML, no `file`, or a value that no dataset can have.
    """
    table = _table_of(content)
    for key in TEXTS:
        _require(table, key, str, "a text in quotes")
    for key in TABLES:
        _require(table, key, dict, "a table")
    format_ = _format_of(table.get("format", "jsonl"))
    dialect = table.get("dialect", None if format_ == "jsonl" else "auto")
    _refuse_idle(table, dialect)
    return Manifest(
        name=checked_name(table.get("name", directory)),
        file=_file_of(table, format_),
        description=table.get("description", ""),
        format=format_,
        version=table.get("version", ""),
        generator=table.get("generator", ""),
        dialect=None if dialect is None else _dialect_of(dialect),
        licence=table.get("licence", ""),
        columns=_texts_of(table, "columns", lambda _: None),
        roles=_texts_of(table, "roles", _check_role),
        splits=_splits_of(table.get("splits", {})),
        unknown=tuple(key for key in table if key not in KEYS),
    )


def notes_of(manifest: Manifest) -> list[str]:
    """What is not wrong, but hardly meant: keys that nobody reads."""
    notes = []
    for key in manifest.unknown:
        near = difflib.get_close_matches(key, KEYS, n=1)
        notes.append(f"nothing reads the key {quote(key)}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return notes


def checked_name(name: str) -> str:
    """The name, where a dataset can have it.

    Raises:
        UsageError: it cannot.
    """
    if _NAME.fullmatch(name) and len(name) <= MAX_NAME_CHARACTERS and ".." not in name:
        return name
    raise UsageError(f"the name is {quote(name)}; expected {NAME_RULE}")


def _table_of(content: bytes) -> dict[str, Any]:
    if len(content) > MAX_MANIFEST_BYTES:
        raise UsageError(f"{MANIFEST} has {len(content):,} bytes; expected at most {MAX_MANIFEST_BYTES:,}")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UsageError(f"{MANIFEST} is not UTF-8: byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{MANIFEST} is not TOML: {str(error)[:200]}") from None


def _require(table: dict[str, Any], key: str, kind: type, expected: str) -> None:
    if key in table and not isinstance(table[key], kind):
        raise UsageError(f"`{key}` is {quote(table[key])}; expected {expected}")


def _format_of(name: str) -> Format:
    if name not in FORMATS:
        raise UsageError(f"`format` is {quote(name)}; expected {', '.join(FORMATS)}")
    return name


def _file_of(table: dict[str, Any], format_: Format) -> str:
    if "file" not in table:
        raise UsageError(f'{MANIFEST} names no data file; expected file = "ROWS.{format_}"')
    file = table["file"]
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\\" in file or _CONTROL.search(file):
        what = (
            "expected a relative path inside the dataset's directory, without `..`, backslashes and control characters"
        )
        raise UsageError(f"`file` is {quote(file)}; {what}")
    if not file.endswith(f".{format_}"):
        raise UsageError(f"`file` is {quote(file)}; expected a name that ends in .{format_}")
    return path.as_posix()


def _dialect_of(name: str) -> str:
    from turnmill.dialects import dialects

    if name != "auto" and name not in dialects.names():
        # A shelf is data: it names no code to load, as `path/to/mine.py:name` would.
        raise UnknownName("dialect", name, ["auto", *dialects.names()], next_step="turnmill list dialects")
    return name


def _refuse_idle(table: dict[str, Any], dialect: str | None) -> None:
    """Mappings belong to a dialect: without one they would do nothing."""
    idle = [key for key in ("columns", "roles") if key in table and dialect is None]
    if idle:
        raise UsageError(f"`{idle[0]}` says how a dialect is read, and none is named; expected a `dialect`, too")


def _texts_of(table: dict[str, Any], key: str, check: Callable[[str], None]) -> dict[str, str]:
    found: dict[str, Any] = table.get(key, {})
    for name, value in found.items():
        if not isinstance(value, str):
            raise UsageError(f"`{key}.{name}` is {quote(value)}; expected a text in quotes")
        check(value)
    return found


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise UsageError(f"`roles` gives {quote(role)}; expected {', '.join(ROLES)}")


def _splits_of(splits: dict[str, Any]) -> dict[str, float]:
    for name, held in splits.items():
        is_share = isinstance(held, float) and 0 < held < 1
        is_count = isinstance(held, int) and not isinstance(held, bool) and held >= 1
        if name != HELD_OUT or not (is_share or is_count):
            expected = f"{HELD_OUT} = a share below 1, or a number of rows"
            raise UsageError(f"`splits` has {quote(name)} = {quote(held)}; expected {expected}")
    return cast("dict[str, float]", splits)
