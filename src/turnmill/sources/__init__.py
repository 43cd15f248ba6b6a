"""Sources: a file each, a public dataset pinned to its bytes, and how its rows become chats.

A source's file defines one function that gives a `PinnedSource`, and what it needs of its own:

    @source("superior-reasoning")
    def superior_reasoning() -> PinnedSource:
        return PinnedSource(
            pin=Pin("hf://datasets/organization/name@0123…", ("data/*.parquet",)),
            convert=chat_of,
            tokens=0.4e9,
            licence="apache-2.0",
        )

`convert` takes a record as it was published and gives one that the source's dialect reads. What it raises as
ValueError, KeyError or TypeError rejects that row as `conversion-failed`; `Rejected` with a code says more, and
`Filtered` lets a row go on purpose. It never invents what the record does not hold.

The function's first line of documentation is the source's summary. Whoever changes what a source's conversion gives of
the same record raises `VERSION` of its module (1 where there is none), so that everything built of it is built anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from turnmill.conversation import Json
from turnmill.errors import UsageError
from turnmill.registry import Registry

COMMIT = re.compile(r"hf://[^@]+@[0-9a-f]{40}(/.*)?")
SHA256 = re.compile(r"[0-9a-f]{64}")


class Pin(NamedTuple):
    """Published files, named so that they cannot change."""

    url: str
    """`hf://datasets/org/name@COMMIT` with all 40 digits, a web address or store URL, or a local path."""
    files: tuple[str, ...] = ()
    """Names or globs below the URL; none: the URL is the file or folder itself."""
    sha256: Mapping[str, str] = {}
    """File name → its hash; demanded of everything but a commit and a local path."""


Record = dict[str, Json]


class Withheld(NamedTuple):
    """Where the prompts are that a dataset gives by hash alone."""

    pin: Pin
    """The dataset that holds them."""
    texts: Callable[[Record], list[str]]
    """Record of that dataset → the texts it holds."""
    wanted: Callable[[Record], str | None]
    """Published record → hex sha256 of the prompt that it withholds, None where it withholds none."""


Convert = Callable[[Record], Record]
Prompts = Callable[[str], str]
"""Hex sha256 of a withheld prompt's UTF-8 → the prompt; raises `Rejected("prompt-withheld")`."""


@dataclass(frozen=True)
class PinnedSource:
    """A public dataset, pinned, and how its rows become chats."""

    pin: Pin
    tokens: float
    """About how many tokens its chats have: its weight in a mix."""
    licence: str
    """As its publisher names it."""
    dialect: str = "openai"
    """Of what `convert` gives."""
    convert: Convert | None = None
    """Published record → record of the dialect; None: they are the same."""
    convert_with_prompts: Callable[[Record, Prompts], Record] | None = None
    """In place of `convert`, for a source whose prompts are withheld."""
    withheld: Withheld | None = None
    columns: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    repairs: tuple[str, ...] = ()
    keep_columns: tuple[str, ...] = ()
    """Annotations that stay as columns (a reward, a teacher)."""
    fractional: bool = False
    """Admit recorded weights other than 0 and 1."""

    def __post_init__(self) -> None:
        if not self.tokens > 0:
            what = f"source {self.pin.url}: its weight is {self.tokens!r} tokens; expected a number above 0"
            raise UsageError(what, next_step="turnmill sources list")
        if (self.withheld is None) != (self.convert_with_prompts is None):
            raise UsageError(f"source {self.pin.url}: `withheld` and `convert_with_prompts` go together")
        for pin in self.pins:
            check_pin(pin)

    @property
    def pins(self) -> tuple[Pin, ...]:
        """All that is fetched for it."""
        return (self.pin,) if self.withheld is None else (self.pin, self.withheld.pin)


def check_pin(pin: Pin) -> None:
    """Refuse what may change under its name.

    Raises:
        UsageError: a branch in place of a commit, or a web address without its hash.
    """
    if pin.url.startswith("hf://"):
        if not COMMIT.fullmatch(pin.url):
            what = f"{pin.url} is not pinned; expected a commit of 40 digits behind @, not a branch or a tag"
            raise UsageError(what, next_step="git ls-remote https://huggingface.co/datasets/ORG/NAME main")
    elif "://" in pin.url and not (pin.sha256 and all(SHA256.fullmatch(one) for one in pin.sha256.values())):
        what = f"{pin.url} is not pinned; expected `sha256` of each of its files, 64 hex digits"
        raise UsageError(what, next_step="sha256sum FILE")


sources: Registry[Callable[[], PinnedSource]] = Registry("sources")
source = sources.register

NO_REQUEST = "the user's request is in no conversation, and neither it nor the tools that were served can be recovered"
IDENTITY = "the assistant is taught to say that it is another model"
UNRECOVERABLE: dict[str, str] = {
    "penfever/nemotron-gym-agent-workplace-v2-qwen3.5-122b-131k-opencode-traces": NO_REQUEST,
    "penfever/selfinstruct-naive-sandboxes-2-verified-qwen3.5-122b-131k-opencode-traces": NO_REQUEST,
    "penfever/nemotron-gym-identity-following-v2-minimax-m27-131k-traces": IDENTITY,
    "penfever/nemotron-gym-identity-following-v2-qwen3.5-122b-131k-opencode-traces": IDENTITY,
    "nvidia/Nemotron-SFT-Instruction-Following-Chat-v3, rows of lmsys-chat-1m": "their prompts are withheld, and the "
    "dataset that holds them is given only to those who accept its terms",
}
"""Published dataset → why it is no source: what a chat needs is not in it, and nothing is invented."""


def all_sources() -> dict[str, PinnedSource]:
    """Every source by name, sorted.

    Raises:
        UsageError: one has no weight, or is not pinned.
    """
    return {name: sources.get(name)() for name in sources.names()}
