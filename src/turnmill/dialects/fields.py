"""Named fields of a record or a message, taken by our names; what nobody took is left over to be named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from turnmill.conversation import Json
from turnmill.errors import MAX_QUOTED_CHARACTERS, Rejected, UnknownName, quote


def is_empty(value: Json) -> bool:
    """Whether an optional field says nothing: null, or an empty text, list or object."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)


class Fields:
    """The fields of one JSON object.

    Args:
        values: the object.
        names: our name → the object's; an unmapped name is looked up under its aliases.
    """

    def __init__(self, values: dict[str, Json], names: Mapping[str, str]) -> None:
        self.rest = dict(values)
        self.dropped = 0
        """Optional fields that were there and empty."""
        self.names = names

    def _keys(self, name: str, aliases: tuple[str, ...]) -> tuple[str, ...]:
        return (self.names[name],) if name in self.names else (name, *aliases)

    def take(self, name: str, *aliases: str) -> Json:
        """The first of the named optional fields that is there and not empty, else None."""
        for key in self._keys(name, aliases):
            if key in self.rest:
                if not is_empty(self.rest[key]):
                    return self.rest.pop(key)
                del self.rest[key]
                self.dropped += 1
        return None

    def take_as_is(self, name: str) -> Json:
        """The optional field whatever it holds (an empty list may say something), None where it is absent."""
        return self.rest.pop(self.names.get(name, name), None)

    def take_one(self, name: str, *aliases: str, at: int | None = None) -> Json:
        """The field that has several spellings, empty values as they are.

        Raises:
            Rejected: `twin-keys-disagree` where two spellings are there and differ.
        """
        keys = self._keys(name, aliases)
        if len(keys) == 1:
            return self.rest.pop(keys[0], None)
        found: dict[str, Json] = {}
        for key in keys:
            value = self.rest.pop(key, None)
            if value is not None:
                found[key] = value
        values = list(found.values())
        if any(value != values[0] for value in values[1:]):
            spellings = ", ".join(f"{key}={quote(value, 30)}" for key, value in found.items())
            raise Rejected("twin-keys-disagree", f"one field is spelled twice: {spellings}", at=at)
        return values[0] if values else None

    def count_left(self, counts: Counter[str], what: str) -> None:
        """Count what nobody took (`read/undeclared-<what>/<name>`) and what was empty."""
        for key, value in self.rest.items():
            if value is not None:
                counts[f"read/undeclared-{what}/{key[:MAX_QUOTED_CHARACTERS]}"] += 1
        if self.dropped:
            counts["read/empty-keys-dropped"] += self.dropped


def require_known(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a mapping of fields that a dialect does not have.

    Raises:
        UnknownName: with the nearest known name.
    """
    for name in names:
        if name not in known:
            raise UnknownName(what, name, known)
