"""Mixing: how many examples of each source an epoch has, and which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.errors import UsageError, quote
from turnmill.options import Mix

UPSAMPLED, SUBSAMPLED = 1.05, 0.95
"""Passes above and below which a source is said to be repeated, or cut."""


class Size(NamedTuple):
    """What a source has."""

    examples: int
    tokens: int
    trained_tokens: int

    def in_unit(self, unit: str) -> int:
        """Of the unit that weights are given in."""
        return {"rows": self.examples, "tokens": self.tokens, "trained-tokens": self.trained_tokens}[unit]


class Share(NamedTuple):
    """What a source gives to every epoch."""

    source: str
    size: Size
    weight: float
    """Of all sources' together 1."""
    drawn: int
    """Examples an epoch."""

    @property
    def passes(self) -> float:
        """How often the source is gone through in an epoch."""
        return self.drawn / self.size.examples if self.size.examples else 0.0

    @property
    def tokens(self) -> int:
        """Tokens an epoch, on average."""
        return round(self.passes * self.size.tokens)

    @property
    def as_json(self) -> dict[str, Json]:
        """As a manifest keeps it."""
        return {
            "source": self.source, **self.size._asdict(), "weight": self.weight, "drawn": self.drawn,
            "tokens_drawn": self.tokens, "passes": self.passes, "says": self.says,
        }  # fmt: skip

    @property
    def says(self) -> str:
        """In a word."""
        if not self.size.examples:
            return "empty"
        if self.passes > UPSAMPLED:
            return "upsampled"
        return "subsampled" if self.passes < SUBSAMPLED else "one pass"


def stored(share: Mapping[str, Any]) -> Share:
    """A share as a manifest kept it."""
    size = Size(share["examples"], share["tokens"], share["trained_tokens"])
    return Share(share["source"], size, share["weight"], share["drawn"])


def shares(sizes: Mapping[str, Size], weights: Mapping[str, float | None], options: Mix) -> list[Share]:
    """What each source gives to an epoch.

    A source without a weight has its share of all examples as one; weights are of the same scale. With
    `epoch: total` an epoch is as large as all sources together, with `first-exhausted` it ends where the first source
    has been gone through once. Examples are counted, so with weights in tokens shares hold on average.

    Args:
        sizes: by source, in the order of reading.
        weights: by source; None where none is given.
        options: the `mix` section.

    Raises:
        UsageError: a weight is negative or not finite, or no source that has examples has one.
    """
    for name, weight in weights.items():
        if weight is not None and not 0 <= weight < float("inf"):
            what = f"sources.{name}.weight is {quote(weight)}; expected a finite number of at least 0"
            raise UsageError(what, next_step=f"--sources.{name}.weight 1")
    amounts = {name: size.in_unit(options.unit) for name, size in sizes.items()}
    total = sum(amounts.values())
    asked = {name: _weight(weights.get(name), amounts[name], total) for name in sizes}
    asked = {name: weight if amounts[name] else 0.0 for name, weight in asked.items()}
    together = sum(asked.values())
    if total and not together:
        named = next(iter(sizes))
        raise UsageError(
            "the weights of the sources sum to 0: nothing would train", next_step=f"--sources.{named}.weight 1"
        )
    parts = {name: weight / together if together else 0.0 for name, weight in asked.items()}
    reach = _epoch(amounts, parts, total, options)
    drawn = _drawn(sizes, amounts, {name: part * reach for name, part in parts.items()}, options)
    return [Share(name, size, parts[name], drawn[name]) for name, size in sizes.items()]


def require_filled(mixed: Sequence[Share], weights: Mapping[str, float | None]) -> None:
    """Refuse a weight that was given to a source that has nothing: an epoch cannot be what was asked for.

    Raises:
        UsageError: such a source, where others have examples.
    """
    empty = [share.source for share in mixed if not share.size.examples and weights.get(share.source)]
    if empty and any(share.size.examples for share in mixed):
        what = f"source {empty[0]!r} has weight {weights[empty[0]]:g} in the mix and no example to give to an epoch"
        raise UsageError(f"{what}; expected rows, or weight 0", next_step=f"--sources.{empty[0]}.weight 0")


def _weight(given: float | None, amount: int, total: int) -> float:
    return given if given is not None else amount / total if total else 0.0


def _epoch(amounts: Mapping[str, int], parts: Mapping[str, float], total: int, options: Mix) -> float:
    """How much of the unit an epoch has."""
    if options.epoch == "total":
        return float(total)
    return min((amounts[name] / part for name, part in parts.items() if part), default=0.0)


def _drawn(
    sizes: Mapping[str, Size], amounts: Mapping[str, int], wanted: Mapping[str, float], options: Mix
) -> dict[str, int]:
    """Whole examples of each source; in rows they sum to the epoch exactly."""
    exact = {
        name: wanted[name] * size.examples / amounts[name] if amounts[name] else 0.0 for name, size in sizes.items()
    }
    drawn = {name: int(count) for name, count in exact.items()}
    left = round(sum(exact.values())) - sum(drawn.values())
    for name in sorted(exact, key=lambda name: (drawn[name] - exact[name], name))[:left]:
        drawn[name] += 1
    if options.max_passes is None:
        return drawn
    return {name: min(count, int(options.max_passes * sizes[name].examples)) for name, count in drawn.items()}


def epoch_numbers(mixed: Sequence[Share], seed: int, epoch: int) -> NDArray[np.int64]:
    """Example numbers of an epoch, source by source.

    A source is gone through in a new drawn order each pass, and an epoch goes on where the last one stopped: no example
    comes again before all others of its source have come.

    Args:
        mixed: in the order in which the examples are numbered.
        seed: of the draws.
        epoch: 0-based.
    """
    first = 0
    parts = []
    for place, share in enumerate(mixed):
        parts.append(first + _drawn_of(share, seed, place, epoch * share.drawn))
        first += share.size.examples
    return np.concatenate([np.empty(0, np.int64), *parts])


def _drawn_of(share: Share, seed: int, place: int, start: int) -> NDArray[np.int64]:
    """`drawn` numbers from position `start` of a source's endless sequence of passes."""
    size, end = share.size.examples, start + share.drawn
    if not share.drawn:
        return np.empty(0, np.int64)
    passes = [
        np.random.default_rng([seed, place, number]).permutation(size)
        for number in range(start // size, -(-end // size))
    ]
    first = start - start // size * size
    return np.concatenate(passes)[first : first + share.drawn].astype(np.int64)
