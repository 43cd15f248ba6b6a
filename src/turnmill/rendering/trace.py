"""What one render remembers: which message wrote what, and which message was being rendered when.

An *entry* is a message as the template sees it (a dict of the `messages` list), a *call* one of its tool calls.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from turnmill.rendered import Kind
from turnmill.rendering.tracked import MIXED, UNKNOWN, Tracked, origins_within, tracked

NOBODY = -1
"""Entry of text that no message owns."""


class Owner(NamedTuple):
    """The message, and in it the tool call, that is being rendered."""

    entry: int = NOBODY
    call: int = -1


class Origin(NamedTuple):
    """Where characters came from: a field of an entry, or template text while `owner` was rendered."""

    owner: Owner
    kind: Kind | None
    """What a field holds; None for template text."""
    message: int = -1
    """Index in `Conversation.messages` of the message whose field it is."""


UNOWNED = Owner()


class Trace:
    """The state of one tracked render."""

    def __init__(self) -> None:
        self.origins: list[Origin] = [Origin(UNOWNED, None)]
        self.owner = UNOWNED
        self._numbers: dict[Origin, int] = {self.origins[0]: UNKNOWN}
        self._literals: dict[tuple[str, Owner], Tracked] = {}
        self._objects: dict[int, int] = {}
        self._owners: dict[int, Owner] = {}
        self._stack: list[tuple[Owner, bool]] = []
        self._counting = False
        self._kept: list[Any] = []  # ids are only unique while the objects live

    def number(self, origin: Origin) -> int:
        """The number of an origin, given out on first sight."""
        if origin not in self._numbers:
            self._numbers[origin] = len(self.origins)
            self.origins.append(origin)
        return self._numbers[origin]

    def wrap(self, value: Any, origin: Origin) -> Any:
        """A JSON value whose strings, keys included, are tracked to `origin`; its containers are known by identity."""
        number = self.number(origin)
        if isinstance(value, str):
            return tracked(value, number)
        if isinstance(value, dict):
            wrapped: Any = {self.wrap(key, origin): self.wrap(item, origin) for key, item in value.items()}
        elif isinstance(value, list | tuple):
            wrapped = [self.wrap(item, origin) for item in value]
        else:
            return value
        self.know(wrapped, origin)
        return wrapped

    def named(self, name: str, message: int) -> str:
        """Whose result a message is, as the template may see it: no field that must be said.

        Args:
            name: the function's.
            message: index in `Conversation.messages`.
        """
        return name

    def know(self, container: Any, origin: Origin) -> None:
        """Remember what a container's JSON text is to be attributed to."""
        self._objects[id(container)] = self.number(origin)
        self._kept.append(container)

    def own(self, container: Any, owner: Owner) -> None:
        """Remember that a loop over `container` renders `owner`."""
        self._owners[id(container)] = owner
        self._kept.append(container)

    def stand_for(self, container: Any, other: Any) -> None:
        """Remember of a container what was told of the one that it stands for."""
        if id(other) in self._objects:
            self._objects[id(container)] = self._objects[id(other)]
        if id(other) in self._owners:
            self._owners[id(container)] = self._owners[id(other)]
        self._kept.append(container)

    def is_known(self, value: Any) -> bool:
        """Whether `know` was told of this container."""
        return id(value) in self._objects

    def origin_of(self, container: Any) -> int:
        """The origin number of a container that `know` was told of."""
        return self._objects[id(container)]

    @property
    def here(self) -> int:
        """The origin number of template text written now."""
        return self.number(Origin(self.owner, None))

    def literal(self, text: str) -> Tracked:
        """Template text, stamped with the message being rendered now."""
        key = (text, self.owner)
        made = self._literals.get(key)
        if made is None:
            made = self._literals[key] = tracked(text, self.here)
        return made

    def push(self) -> None:
        """A loop begins."""
        self._stack.append((self.owner, self._counting))
        self._counting = False

    def pop(self) -> None:
        """The loop has ended: the message rendered before it is rendered on."""
        self.owner, self._counting = self._stack.pop()

    def enter(self, value: Any) -> None:
        """A loop's body begins with `value`: a message or a call of the message at hand is rendered from here."""
        self._counting = type(value) is int
        owner = self._owner_of(value)
        if owner is not None and (owner.call < 0 or owner.entry == self.owner.entry or self.owner == UNOWNED):
            self.owner = owner
        elif self._counting and self._stack:
            self.owner = self._stack[-1][0]

    def _owner_of(self, value: Any) -> Owner | None:
        """Whose text a dict holds; one that the template made of a message's fields stands for that message."""
        if not isinstance(value, dict):
            return None
        if id(value) in self._owners or self.is_known(value):
            return self._owners.get(id(value))
        found = {self.origins[number].owner.entry for number in origins_within(value) if number != MIXED}
        found.discard(NOBODY)
        return Owner(found.pop()) if len(found) == 1 else None

    def assign(self, value: Any) -> None:
        """A variable is set: in a counting loop the first message taken from the list is the one rendered."""
        if not self._counting or not isinstance(value, dict):
            return
        owner = self._owner_of(value)
        if owner is not None and owner.call < 0:
            self.owner, self._counting = owner, False
