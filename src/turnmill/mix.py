"""Mixing: how many examples of each source an epoch has, and which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnmill.conversation import Json
from turnmill.errors import UsageError, quote
from turnmill.options import Mix
from turnmill.shuffle import Shuffle

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


def epoch_parts(mixed: Sequence[Share], seed: int, epoch: int, part_examples: int) -> Iterator[NDArray[np.int64]]:
    """Example numbers of an epoch, source by source, so many at a time at most.

    A source is gone through in a new drawn order each pass, and an epoch goes on where the last one stopped: no example
    comes again before all others of its source have come.

    Args:
        mixed: in the order in which the examples are numbered.
        seed: of the draws.
        epoch: 0-based.
        part_examples: of one array.
    """
    for of_source in _of_epoch(mixed, seed, epoch):
        for number in of_source.passes:
            places = of_source.within(number)
            for start in range(places.start, places.stop, part_examples):
                stretch = np.arange(start, min(start + part_examples, places.stop))
                yield of_source.first + of_source.order(number).at(stretch)


def times(mixed: Sequence[Share], seed: int, epoch: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """(examples,) how often each of some examples comes in an epoch, as `epoch_parts` draws it."""
    found = np.zeros(len(numbers), np.int64)
    for of_source in _of_epoch(mixed, seed, epoch):
        own = np.flatnonzero((numbers >= of_source.first) & (numbers < of_source.first + of_source.size))
        for number in of_source.passes:
            places = of_source.within(number)
            if len(places) == of_source.size:
                found[own] += 1
                continue
            place = of_source.order(number).places(numbers[own] - of_source.first)
            found[own] += (place >= places.start) & (place < places.stop)
    return found


def passes_of(share: Share, epoch: int) -> Iterator[tuple[int, range]]:
    """The passes over a source that an epoch has a part of: the number of each, and which places of it."""
    of_source = _OfEpoch(0, share.size.examples, (0, 0), epoch * share.drawn, (epoch + 1) * share.drawn)
    for number in of_source.passes:
        yield number, of_source.within(number)


class _OfEpoch(NamedTuple):
    """The positions of a source's endless sequence of passes that are an epoch's."""

    first: int
    """Number of the source's first example."""
    size: int
    seed: tuple[int, int]
    start: int
    end: int

    @property
    def passes(self) -> range:
        """The passes that the epoch has a part of."""
        return range(self.start // self.size, -(-self.end // self.size)) if self.end > self.start else range(0)

    def within(self, number: int) -> range:
        """Which places of a pass are the epoch's."""
        before = number * self.size
        return range(max(self.start - before, 0), min(self.end - before, self.size))

    def order(self, number: int) -> Shuffle:
        """The drawn order of a pass."""
        return Shuffle(self.size, *self.seed, number)


def _of_epoch(mixed: Sequence[Share], seed: int, epoch: int) -> Iterator[_OfEpoch]:
    first = 0
    for place, share in enumerate(mixed):
        start = epoch * share.drawn
        yield _OfEpoch(first, share.size.examples, (seed, place), start, start + share.drawn)
        first += share.size.examples
