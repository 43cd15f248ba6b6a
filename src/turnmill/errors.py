"""The error tree: what can go wrong, and the exit code each kind ends a command with.

    TurnmillError
    ├── UsageError        the command, the config or a path is wrong   exit 2, nothing was written
    │   └── UnknownName   no plug-in, field or source of that name     exit 2
    ├── Rejected          one row broke a rule                         counted, quarantined, the run goes on
    │   └── Filtered      its source lets the row go on purpose        counted apart, outside the health limit
    ├── HealthError       too many rows left a source                  exit 3, nothing was published
    ├── StaleError        stored data no longer match their manifest   exit 4
    └── Interrupted       somebody ended the run, which can go on      exit 130, as shells have it

Anything else that is raised is a bug and keeps its traceback. A message says what, where, got, expected;
`next_step` is the command to type next.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable
from typing import Any

MAX_QUOTED_CHARACTERS = 80
"""At most this much of a row is shown in a message: chat rows are private."""


def quote(value: object, limit: int = MAX_QUOTED_CHARACTERS) -> str:
    """`repr` of a value, cut to `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shell_word(value: object) -> str:
    """A path or name as one word of a command to type."""
    return shlex.quote(str(value))


_USER = re.compile(r"""(?<=://)(?:[^/\s'"]*@|[^/\s'"@:]+:[^\s'"@]*@)""")
_PASSWORD = re.compile(r"""(?<=[?&])((?:ssl)?password=)[^&\s'"]*""")
_WEB_QUERY = re.compile(r"(https?://[^\s?'\"]*)\?[^\s'\"]+")


def redacted(text: str) -> str:
    """The text without what URLs in it may hold of credentials: user, passwords, and the query of a web address."""
    if "://" not in text:
        return text
    return _PASSWORD.sub(r"\1***", _WEB_QUERY.sub(r"\1?***", _USER.sub("***@", text)))


class TurnmillError(Exception):
    """Base of everything turnmill raises on purpose; credentials in URLs are taken out of what it says.

    Attributes:
        next_step: the next command to type, or None.
        exit_code: what the command line exits with.
    """

    exit_code = 1

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        message, next_step = redacted(message), next_step and redacted(next_step)
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        return self.message


class UsageError(TurnmillError):
    """The command, the config or a path is wrong; nothing was written."""

    exit_code = 2


class UnsafeTemplate(UsageError):
    """A chat template that renders, but trained on would teach a model the wrong thing; the message gives the mend.

    Args:
        code: what is wrong, lower-kebab, listed in `turnmill.codes`.
        message: where, and what to do about it.
        next_step: the next command to type.
    """

    def __init__(self, code: str, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message, next_step=next_step)
        self.code = code

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unsafe, (self.code, self.message, self.next_step))


def _unsafe(code: str, message: str, next_step: str | None) -> UnsafeTemplate:
    return UnsafeTemplate(code, message, next_step=next_step)


class UnknownName(UsageError):
    """A name that is not among the known ones; the message suggests the nearest."""

    def __init__(self, what: str, name: str, known: Iterable[str], *, next_step: str | None = None) -> None:
        self.name, self.what = name, what
        self.known = sorted(known)
        near = difflib.get_close_matches(name, self.known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        super().__init__(
            f"unknown {what} {quote(name)}.{hint} Known: {', '.join(self.known) or 'none'}.", next_step=next_step
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (_unknown_name, (self.what, self.name, self.known, self.next_step))


def _unknown_name(what: str, name: str, known: list[str], next_step: str | None) -> UnknownName:
    return UnknownName(what, name, known, next_step=next_step)


class Rejected(TurnmillError):
    """One row broke a rule.

    Args:
        code: the rule's code, lower-kebab, listed in `turnmill.codes`.
        message: one sentence: what was found and what was expected.
        at: index of the offending message in the recorded list, None where no single message is at fault.
    """

    def __init__(self, code: str, message: str, *, at: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.at = at

    def __str__(self) -> str:
        where = "" if self.at is None else f" (message {self.at})"
        return f"{self.code}: {self.message}{where}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rejected, (self.code, self.message, self.at))


def _rejected(code: str, message: str, at: int | None) -> Rejected:
    return Rejected(code, message, at=at)


class Filtered(Rejected):
    """A source lets one row go on purpose: nothing is wrong with it that a person should mend.

    Args:
        message: one sentence: what was found, and why such rows are left out.
    """

    CODE = "source-filtered"

    def __init__(self, message: str) -> None:
        super().__init__(self.CODE, message)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Filtered, (self.message,))


class HealthError(TurnmillError):
    """Too many rows of a source were rejected, or none was accepted; nothing was published."""

    exit_code = 3


class StaleError(TurnmillError):
    """Stored data do not match the manifest or the recipe they are said to come from."""

    exit_code = 4


class Interrupted(TurnmillError):
    """Somebody ended the run: what was done is saved, and it can go on from there."""

    exit_code = 130
